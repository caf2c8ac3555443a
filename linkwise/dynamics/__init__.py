"""The public array functions: trees, derivatives, closed mechanisms, diagonalized dynamics, DeNOC, identification."""

from typing import Any

from ..compiler.registry import DECIDED_OPTIONS
from ..mechanism import Mechanism
from ..mechanism.resistance import judges_loops


def _fronts(mech: Mechanism) -> Any:
    """The order in which loops are eliminated."""
    from .closed.structure import fronts  # here, so that importing the package stays quick

    return fronts(mech)


def _loop_size(mech: Mechanism) -> float:
    """Metres: the size of the smallest loop, or the largest ratio of a coupling, at most 1, by which it is judged how
    open one is."""
    from .closed.sizes import sizes

    return 1.0 / float(sizes(mech).rows.max(initial=1.0))


def _units(mech: Mechanism) -> tuple[float, ...]:
    """(nv,): the units of velocities in which joint forces are compared with torques."""
    from .closed.force_units import velocity_units

    return tuple(velocity_units(mech).tolist())


def _row_units(mech: Mechanism) -> tuple[float, ...]:
    """(m,): the units in which multipliers, forces and torques, are compared."""
    from .closed.force_units import multiplier_units

    return tuple(multiplier_units(mech).tolist())


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
DECIDED_OPTIONS["loop_size"] = _loop_size
DECIDED_OPTIONS["form"] = _form
DECIDED_OPTIONS["units"] = _units
DECIDED_OPTIONS["row_units"] = _row_units
