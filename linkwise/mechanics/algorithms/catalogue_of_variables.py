"""The named algorithms in joint momenta, and steps in momenta or total joint rates."""

from __future__ import annotations

from functools import partial

from . import momenta
from .algorithm import Algorithm
from .catalogue_of_loops import MANIFOLD, STEP
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


def _motion(name: str, more: tuple[str, ...] = (), options: tuple[str, ...] = ("form",)) -> Algorithm:
    return Algorithm(
        f"momentum_{name}",
        ("q", "p", "tau"),
        ("p_rate", "v", *more),
        getattr(momenta, name),
        options,
        reason=momenta.REASON,
        solves_motion=True,
        ports=("wrenches",),
        link_by_link=True,
        with_loops=CLOSED,
    )


MOMENTUM_ALGORITHMS = (
    Algorithm("joint_momenta", ("q", "v"), "p", expression=lambda mech: momenta.MOMENTA),
    Algorithm(
        "momentum_velocities",
        ("q", "p"),
        "v",
        options=("form",),
        expression=momenta.velocities,
        solves_motion=True,
        with_loops=CLOSED,
    ),
    _motion("motion"),
    _motion("motion_and_total_rates", ("nu",), ("normalized", "form")),
    *(step_in(coordinates, name) for coordinates in VARIABLES for name in methods_in(coordinates)),
)
