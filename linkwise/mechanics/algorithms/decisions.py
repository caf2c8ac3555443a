"""Options that the mechanism decides where a caller does not.

Deciding takes numbers: kernels of the mechanism are run at configurations in which its loops close.  So these functions
are at home above the compiler, and imported when an option is decided.
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
    """Velocities that determine the others under constraints."""
    from ...constraints import elimination_orders

    return elimination_orders.independent_places(mech)


def units(mech: Mechanism) -> ConstraintUnits:
    """Units of constraints and coordinates that make them dimensionless."""
    from ...constraints import sizes

    return sizes.constraint_units(mech)


def form(mech: Mechanism) -> str:
    """The form of the momentum equations with the fewest operations."""
    from ...dynamics import momenta

    return momenta.cheapest_form(mech)


def refuse_infinitesimal_motions(mech: Mechanism, what: str) -> None:
    """Refuse ``what`` where constraints block motions to second order that they allow to first."""
    from ...constraints import infinitesimal

    infinitesimal.refuse_infinitesimal_motions(mech, what)


#: By the name of the option, whatever algorithm has it.
DECISIONS: Mapping[str, Callable[[Mechanism], Any]] = MappingProxyType(
    {
        "fronts": fronts,
        "sweeps": sweeps,
        "independent_velocities": independent_velocities,
        "units": units,
        "form": form,
    }
)
