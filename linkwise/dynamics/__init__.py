"""The public array functions: trees, derivatives, closed mechanisms, diagonalized dynamics, DeNOC, identification."""

from typing import Any

from ..compiler.registry import DECIDED_OPTIONS
from ..mechanism import Mechanism
from ..mechanism.resistance import judges_loops


def _fronts(mech: Mechanism) -> Any:
    """The order in which loops are eliminated."""
    from ..constraints.elimination_orders import fronts  # here, so that importing the package stays quick

    return fronts(mech)


def _independent_velocities(mech: Mechanism) -> Any:
    """Velocities that determine the others under constraints."""
    from ..constraints.elimination_orders import independent_places

    return independent_places(mech)


def _sweeps(mech: Mechanism) -> Any:
    """The orders of clusters that are eliminated in links and multipliers."""
    return _fronts(mech).sweeps


def _units(mech: Mechanism) -> Any:
    """What makes constraints and coordinates dimensionless."""
    from ..constraints.sizes import constraint_units

    return constraint_units(mech)


def _form(mech: Mechanism) -> str:
    """How the velocities of momenta are found."""
    from .momenta import cheapest_form

    return cheapest_form(mech)


@judges_loops
def _loops_resist(mech: Mechanism) -> bool | None:
    """Whether loops carry the links that have no mass."""
    from .massless import has_inertia_with_loops

    return has_inertia_with_loops(mech)


DECIDED_OPTIONS["fronts"] = _fronts
DECIDED_OPTIONS["sweeps"] = _sweeps
DECIDED_OPTIONS["independent_velocities"] = _independent_velocities
DECIDED_OPTIONS["units"] = _units
DECIDED_OPTIONS["form"] = _form
