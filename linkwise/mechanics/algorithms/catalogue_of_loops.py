"""The named algorithms of loops: constraints, closed dynamics by elimination, loops that hold or let go, projection."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from . import (
    closed_derivatives,
    closed_dynamics,
    closed_projection,
    contact_dynamics,
    independent_coordinates,
    integration,
    linearization,
    loop_constraints,
)
from . import expressions as ex
from .algorithm import Algorithm

STEP = ("q", "v", "tau", "dt")

# Why recursions are written by hand.
MANIFOLD = "steps on the configuration manifold are the joints' own, link by link"
LOOPS = "loops are walked from side to side; links beside the way do not enter"
CLUSTERS = "links that loops tie together are eliminated together, with pivots chosen by the state"
HELD = "clusters of links whose loops hold or let go, by a number per loop, are eliminated together"


def closed_step(name: str, method: integration.Method) -> Algorithm:
    results = ("state", "reliability", "steps_to_singular")
    recursion = partial(integration.closed_step, method)
    return _eliminated(f"closed_{name}_step", STEP, results, recursion, ("settled",), within_loops=True)


def _eliminated(
    name: str,
    inputs: tuple[str, ...],
    output: Any,
    recursion: Callable[..., Any],
    options: tuple[str, ...] = (),
    within_loops: bool = False,
) -> Algorithm:
    ports = ("wrenches",) if "wrenches" in signature(recursion).parameters else ()
    more: Any = {"ports": ports, "within_loops": within_loops}
    return Algorithm(name, inputs, output, recursion, ("fronts", *options), reason=CLUSTERS, **more)


def _held(name: str, inputs: tuple[str, ...], output: str, **more: Any) -> Algorithm:
    """Under all loops, or under those whose number in ``active`` is not 0 but 1."""
    recursion = getattr(contact_dynamics, name)
    ports = ("active", "wrenches") if len(inputs) == 3 else ("active",)
    more = {"reason": HELD, "solves_motion": True, "heeds_loops": True, "ports": ports, **more}
    sweeps = ("sweeps",) if "sweeps" in signature(recursion).parameters else ()
    more["options"] = (*more.get("options", ()), "units", *sweeps)
    return Algorithm(f"closed_{name}", inputs, output, recursion, **more)


def _forward_dynamics(
    tree: Any, q: Any, v: Any, tau: Any, active: Any = None, wrenches: Any = None, *, fronts: Any
) -> Any:
    """Accelerations with all constraints by elimination, with those that are ``active`` by multipliers."""
    if active is None:
        return closed_dynamics.closed_forward_dynamics(tree, q, v, tau, wrenches, fronts=fronts)
    return contact_dynamics.forward_dynamics(tree, q, v, tau, wrenches, active, units=fronts.units)


LOOP_ALGORITHMS: tuple[Algorithm, ...] = (
    Algorithm("position_error", ("q",), "constraint_error", loop_constraints.position_error, reason=LOOPS),
    Algorithm("constraint_jacobian", ("q",), "constraint_jacobian", expression=lambda mech: ex.CONSTRAINT_JACOBIAN),
    Algorithm(
        "delassus_matrix",
        ("q",),
        "delassus_matrix",
        expression=lambda mech: ex.DELASSUS_MATRIX,
        solves_motion=True,
        heeds_loops=True,
    ),
    Algorithm("constraint_bias", ("q", "v"), "constraint_error", loop_constraints.constraint_bias, reason=LOOPS),
    Algorithm("constrained_terms", ("q", "v"), "constrained_terms", loop_constraints.constrained_terms, reason=LOOPS),
    Algorithm(
        "closed_forward_dynamics",
        ("q", "v", "tau"),
        "a",
        _forward_dynamics,
        ("fronts",),
        reason=CLUSTERS,
        ports=("active", "wrenches"),
        within_loops=True,
    ),
    _eliminated(
        "closed_motion",
        ("q", "v", "tau"),
        ("a", "reliability", "consistency"),
        closed_dynamics.closed_motion,
        within_loops=True,
    ),
    _held("multipliers", ("q", "v", "tau"), "multipliers"),
    _held("constraint_forces", ("q", "v", "tau"), "tau"),
    _held("loop_reactions", ("q", "v", "tau"), "loop_wrenches"),
    _held("joint_wrenches", ("q", "v", "tau"), "transmitted", at_user_origins=True),
    _held(
        "inverse_dynamics",
        ("q", "v", "a"),
        "tau",
        options=("actuated", "units"),
        defaults={"actuated": lambda mech: None},
        solves_motion=False,
    ),
    _held(
        "static_forces",
        ("q",),
        "tau",
        options=("actuated", "units"),
        defaults={"actuated": lambda mech: None},
        solves_motion=False,
        ports=("active", "wrenches"),
    ),
    _held(
        "motor_forces",
        ("q", "tau"),
        "tau",
        options=("actuated", "units"),
        defaults={"actuated": lambda mech: None},
        solves_motion=False,
    ),
    _held("impact", ("q", "v"), "v"),
    _held("impact_impulses", ("q", "v"), "loop_wrenches"),
    Algorithm(
        "joint_wrenches_within_loops",
        ("q", "v", "a", "multipliers"),
        "transmitted",
        contact_dynamics.joint_wrenches_within_loops,
        reason=LOOPS,
        at_user_origins=True,
        ports=("wrenches",),
    ),
    _eliminated(
        "closed_projection",
        ("q", "v"),
        ("state", "reliability"),
        closed_projection.closed_projection,
        ("settled",),
    ),
    _eliminated(
        "closed_assembly_iteration", ("q",), ("q_next", "reliability"), closed_projection.closed_assembly_iteration
    ),
    _eliminated(
        "closed_null_space",
        ("q",),
        ("null_space", "reliability"),
        independent_coordinates.closed_null_space,
        ("independent",),
    ),
    _eliminated(
        "closed_independent_terms",
        ("q", "v"),
        ("mass", "bias", "null_space", "offset", "reliability"),
        independent_coordinates.closed_independent_terms,
        ("independent",),
    ),
    *(closed_step(name, method) for name, method in integration.METHODS.items()),
    _eliminated(
        "closed_forward_dynamics_derivatives",
        ("q", "v", "tau"),
        ("d_q", "d_v", "d_tau", "reliability", "consistency"),
        closed_derivatives.closed_forward_dynamics_derivatives,
        within_loops=True,
    ),
    _eliminated(
        "closed_motion_derivatives",
        ("q", "v", "tau"),
        ("a", "multipliers", "d_state", "d_a", "d_multipliers", "reliability", "consistency"),
        closed_derivatives.closed_motion_derivatives,
        within_loops=True,
    ),
    _eliminated(
        "closed_rate_jacobian",
        ("q", "v", "tau"),
        ("rate_jacobian", "reliability", "consistency"),
        closed_derivatives.closed_rate_jacobian,
        within_loops=True,
    ),
    Algorithm("loop_alignments", ("q",), "loop_alignments", loop_constraints.loop_alignments, reason=LOOPS),
    Algorithm("loop_motion_maps", ("q",), "loop_motion_maps", loop_constraints.loop_motion_maps, reason=LOOPS),
    Algorithm(
        "constraint_motion",
        ("q", "v", "a", "multipliers"),
        "constraint_motion",
        linearization.constraint_motion,
        reason=LOOPS,
    ),
    Algorithm("step_rate_jacobian", ("v",), "step_rate_jacobian", linearization.step_rate_jacobian, reason=MANIFOLD),
)
