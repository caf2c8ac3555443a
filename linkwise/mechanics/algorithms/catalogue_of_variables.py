"""The named algorithms in joint momenta, and steps in momenta or total joint rates."""

from __future__ import annotations

from functools import partial

from . import momenta
from .algorithm import Algorithm
from .catalogue_of_loops import HELD, MANIFOLD, STEP
from .steps_in_variables import VARIABLES, methods_in, step

CLOSED = "linkwise.closed.forward_dynamics with joint velocities"


def step_in(coordinates: str, method: str) -> Algorithm:
    """One step of a method in other variables than joint velocities."""
    return Algorithm(
        f"{coordinates}_{method}_step",
        STEP,
        "state",
        partial(step, coordinates, methods_in(coordinates)[method]),
        options=("form",) if coordinates == "momentum" else (),
        reason=MANIFOLD,
        solves_motion=True,
        ports=("wrenches",),
        link_by_link=True,
        with_loops="coordinates='joint'",
    )


def steps_of(method: str) -> list[Algorithm]:
    """The steps of a method in all variables that take it."""
    return [step_in(coordinates, method) for coordinates in VARIABLES if method in methods_in(coordinates)]


MOMENTUM_ALGORITHMS = (
    Algorithm("joint_momenta", ("q", "v"), "p", expression=lambda mech: momenta.MOMENTA),
    Algorithm(
        "momentum_velocities",
        ("q", "p"),
        "v",
        momenta.velocities,
        options=("form", "units"),
        expression=momenta.velocities_of_tree,
        reason=HELD,
        solves_motion=True,
        heeds_loops=True,
        ports=("active",),
    ),
    Algorithm(
        "momentum_motion",
        ("q", "p", "tau"),
        ("p_rate", "v"),
        momenta.motion,
        options=("form", "units"),
        reason=momenta.REASON,
        solves_motion=True,
        heeds_loops=True,
        ports=("active", "wrenches"),
        link_by_link=True,
    ),
    Algorithm(
        "momentum_motion_and_total_rates",
        ("q", "p", "tau"),
        ("p_rate", "v", "nu"),
        momenta.motion_and_total_rates,
        options=("normalized", "form", "units", "fronts", "independent_velocities"),
        reason=momenta.REASON,
        solves_motion=True,
        heeds_loops=True,
        ports=("wrenches",),
        link_by_link=True,
    ),
    *(step_in(coordinates, name) for coordinates in VARIABLES for name in methods_in(coordinates)),
)
