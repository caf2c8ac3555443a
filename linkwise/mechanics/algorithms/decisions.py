"""Default values of options that depend on the mechanism.

Defaults may need numerical results: kernels of the mechanism are run at configurations with closed loops.  The
functions are therefore above the compiler, and imported on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...mechanism import Mechanism

if TYPE_CHECKING:
    from ..links.constraint_units import ConstraintUnits
    from ..links.loop_elimination import Fronts


def fronts(mech: Mechanism) -> Fronts:
    """The order in which constraints are eliminated."""
    from ...constraints import elimination_orders

    return elimination_orders.fronts(mech)


def sweeps(mech: Mechanism) -> Any:
    """The orders of clusters that are eliminated in links and multipliers."""
    return fronts(mech).sweeps


def independent_velocities(mech: Mechanism) -> Any:
    """Independent velocities, which determine the others under constraints."""
    from ...constraints import elimination_orders

    return elimination_orders.independent_places(mech)


def units(mech: Mechanism) -> ConstraintUnits:
    """Units that make constraints and coordinates dimensionless."""
    from ...constraints import sizes

    return sizes.constraint_units(mech)


def form(mech: Mechanism) -> str:
    """The form of the momentum equations with the fewest operations."""
    from ...dynamics import momenta

    return momenta.cheapest_form(mech)


def refuse_infinitesimal_motions(mech: Mechanism, subject: str) -> None:
    """Refuse ``what`` for constraints that block motions to second order which they allow to first order."""
    from ...constraints import infinitesimal

    infinitesimal.refuse_infinitesimal_motions(mech, subject)


#: By the name of the option, for every algorithm.
DECISIONS: Mapping[str, Callable[[Mechanism], Any]] = MappingProxyType(
    {
        "fronts": fronts,
        "sweeps": sweeps,
        "independent_velocities": independent_velocities,
        "units": units,
        "form": form,
    }
)
