"""Mechanisms of every kind with one regular state each: the columns of the product of quantities and mechanisms."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

import linkwise as lw

from ..oracle import maximal_coordinates as maximal
from ..oracle import random_closed

Z = (0.0, 0.0, 1.0)
MOMENT = 0.1  # s, at which the driven mechanism is looked at


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism and a state whose velocities keep its constraints.

    q, v, tau    (nq,), (nv,), (nv,)
    active       (number of constraints,) booleans, or None where all hold; v keeps those that do
    tree         no constraints
    holonomic    all constraints restrict configurations
    scleronomic  no constraint follows a function of time
    """

    name: str
    mech: lw.Mechanism
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    active: np.ndarray | None = None

    @property
    def tree(self) -> bool:
        return not self.mech.loops

    @property
    def holonomic(self) -> bool:
        return self.name != "rolling"

    @property
    def scleronomic(self) -> bool:
        return self.name != "driven"

    def __str__(self) -> str:
        return self.name


NAMES = (
    "tree",
    "floating",
    "mimic",
    "one loop",
    "three loops",
    "ladder",
    "overconstrained",
    "rolling",
    "driven",
    "held feet",
    "masked feet",
    "springs",
)
SINGULAR = "singular"  # where a law says that nothing can be; no column of the product


@cache
def case(name: str) -> Case:
    """The case of this name; every call returns the same object, so that kernels are compiled once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return _MAKERS[name](np.random.default_rng((*NAMES, SINGULAR).index(name)))


def _tree(rng: np.random.Generator) -> Case:
    return _at_random_state("tree", lw.mechanisms.random_tree(5, 11, random_closed.KINDS), rng)


def _floating(rng: np.random.Generator) -> Case:
    return _at_random_state("floating", lw.mechanisms.random_tree(4, 5, random_closed.KINDS, True), rng)


def _mimic(rng: np.random.Generator) -> Case:
    mech = lw.mechanisms.random_tree(5, 3, ("revolute", "prismatic", "helical", "universal"))
    single = [i for i, body in enumerate(mech.bodies) if body.kind.nv == 1]
    bodies = list(mech.bodies)
    rule = lw.Mimic(bodies[single[0]].joint, -1.3, 0.2)
    bodies[single[-1]] = replace(bodies[single[-1]], mimic=rule)
    return _at_random_state("mimic", replace(mech, bodies=tuple(bodies)), rng)


def _at_random_state(name: str, mech: lw.Mechanism, rng: np.random.Generator) -> Case:
    q, v = lw.random_state(mech, rng)
    return Case(name, mech, q, v, rng.normal(size=mech.nv))


def _one_loop(rng: np.random.Generator) -> Case:
    """A spatial chain of skew hinges, a slider and a ball joint, closed by a hinge."""
    mech = lw.mechanisms.random_tree(6, 2, ("revolute", "prismatic", "universal"))
    q = lw.random_state(mech, rng)[0]
    pose = maximal.Pose(np.eye(3), np.array([0.2, -0.1, 0.3]))
    last = mech.n_links - 1
    loop = random_closed.closing(mech, q, "loop", lw.Spherical(), [0.8, 0.2, -0.4, 0.4], -1, pose, last)
    return _on_constraints("one loop", mech.with_loops(loop), q, rng)


def _three_loops(rng: np.random.Generator) -> Case:
    """Two loops that share links and one of its own, closed by three kinds of joints; a floating base."""
    mech = lw.mechanisms.random_tree(9, 8, ("revolute", "cylindrical", "spherical"), True)
    q = lw.random_state(mech, rng)[0]
    kinds = (lw.Spherical(), lw.Universal((1, 0.2, 0), (0.3, 1, 0.5)), lw.Planar((0.5, 0.5, 1)))
    ends = ((0, mech.n_links - 1), (1, mech.n_links - 2), (2, mech.n_links - 3))
    loops = []
    for k, (kind, (a, b)) in enumerate(zip(kinds, ends, strict=True)):
        pose = maximal.Pose(np.eye(3), rng.normal(size=3) * 0.3)
        joint = kind.random(rng, ())
        loops.append(random_closed.closing(mech, q, f"loop{k}", kind, joint, a, pose, b))
    return _on_constraints("three loops", mech.with_loops(*loops), q, rng)


def scissor_lift(stages: int) -> lw.Mechanism:
    """Crossed bars hinged in the middle and to the next stage at both ends; the first stage slides on the ground."""
    builder, hinge = lw.Builder(), lw.Revolute(Z)
    for k in range(stages):
        for side in "ab":
            builder.link(f"{side}{k}", 1.0, (0.5, 0, 0), (0.02, 0.08, 0.08))
    builder.link("shoe", 0.3, (0, 0, 0), (0.01, 0.01, 0.01))
    builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "shoe")
    builder.joint("foot_a", hinge, "ground", "a0").joint("foot_b", hinge, "shoe", "b0")
    builder.loop("cross0", hinge, "a0", (0.5, 0, 0), "b0", (0.5, 0, 0))
    for k in range(1, stages):
        builder.joint(f"knee_b{k}", hinge, f"a{k - 1}", f"b{k}", (1, 0, 0))
        builder.joint(f"knee_a{k}", hinge, f"b{k - 1}", f"a{k}", (1, 0, 0))
        builder.loop(f"cross{k}", hinge, f"a{k}", (0.5, 0, 0), f"b{k}", (0.5, 0, 0))
    return builder.build(f"scissor_lift_{stages}", (0, -9.81, 0))


def scissor_lift_at(mech: lw.Mechanism, angle: float) -> np.ndarray:
    """(nq,): the configuration in which all bars are inclined by ``angle``."""
    at = {"slide": np.cos(angle), "foot_a": angle, "foot_b": np.pi - angle}
    for joint in mech.joint_names:
        if joint.startswith("knee_b"):  # from bar a, inclined by angle, to bar b, inclined by pi - angle
            at[joint] = np.pi - 2 * angle
        elif joint.startswith("knee_a"):
            at[joint] = 2 * angle - np.pi
    q = np.zeros(mech.nq)
    for joint, value in at.items():
        q[mech.q_index(joint)] = value
    return q


def _ladder(rng: np.random.Generator) -> Case:
    mech = scissor_lift(3)
    return _on_constraints("ladder", mech, scissor_lift_at(mech, 0.6), rng)


def _overconstrained(rng: np.random.Generator) -> Case:
    drawn = random_closed.case("planar", 7)
    state = drawn.states[0]
    return Case("overconstrained", drawn.mech, state.q, state.v, state.tau)


def _rolling(rng: np.random.Generator) -> Case:
    mech = lw.mechanisms.snakeboard()
    q = lw.integrate(mech, mech.initial, 0.3 * rng.normal(size=mech.nv), 1.0)  # any: blades restrict velocities alone
    return _on_constraints("rolling", mech, q, rng)


def driven_five_bar() -> lw.Mechanism:
    """A five-bar with one crank on a prescribed motion."""
    drive = lw.constraints.Drive(lambda t: 2.0 + 0.3 * np.sin(4.0 * t))
    five_bar = lw.mechanisms.five_bar()
    crank = five_bar.joint_names[0]
    return five_bar.with_loops(lw.constraints.Coupling("motor", {crank: 1.0}, drive=drive))


def _driven(rng: np.random.Generator) -> Case:
    """A driven five-bar at one instant."""
    mech = driven_five_bar().constraints.at_time(MOMENT)
    start = np.array([2 * np.pi / 3, np.pi / 3 + np.arccos(2 / 3), 2 * np.arcsin(2 / 3), np.pi / 3 + np.arccos(2 / 3)])
    q, v = lw.constraints.project(mech, lw.constraints.assemble(mech, start), rng.normal(size=mech.nv))
    return Case("driven", mech, q, v, rng.normal(size=mech.nv))


def _standing(name: str, rng: np.random.Generator, active: list[bool] | None) -> Case:
    robot = lw.mechanisms.quadruped()
    free = robot.spanning_tree if robot.loops else robot
    feet = [link for link in free.link_names if free.link_names.index(link) not in free.tree.parents][:4]
    q = lw.integrate(free, free.initial, 0.2 * rng.normal(size=free.nv), 1.0)
    mech = lw.contact.hold_frames(free, feet, q, points=True)
    return _on_constraints(name, mech, q, rng, None if active is None else np.array(active))


def _springs(rng: np.random.Generator) -> Case:
    """A four-bar whose joints have springs and dampers; joint forces of these are not among tau."""
    mech = lw.mechanisms.four_bar()
    bodies = tuple(replace(body, stiffness=(2.0 + k,), damping=(0.3,)) for k, body in enumerate(mech.bodies))
    mech = replace(mech, bodies=bodies)
    return _on_constraints("springs", mech, lw.constraints.assemble(mech, mech.initial), rng)


def _singular(rng: np.random.Generator) -> Case:
    """A parallelogram that lies flat, where two branches of positions cross."""
    mech = lw.mechanisms.four_bar(2.0, 1.0, 2.0, 1.0)
    q = np.array([-0.5, 0.5, -0.5]) * np.pi  # crank and rocker, upright at zero, along the coupler
    return Case(SINGULAR, mech, q, np.zeros(mech.nv), rng.normal(size=mech.nv))


def _on_constraints(
    name: str, mech: lw.Mechanism, q: np.ndarray, rng: np.random.Generator, active: np.ndarray | None = None
) -> Case:
    """A state at q whose velocities keep the constraints that hold."""
    from .oracle import constraint_jacobian, null_space

    rows = constraint_jacobian(mech, q, active)
    basis = null_space(mech, rows)
    v = basis @ rng.normal(size=basis.shape[1])
    return Case(name, mech, q, v, rng.normal(size=mech.nv), active)


_MAKERS = {
    "tree": _tree,
    "floating": _floating,
    "mimic": _mimic,
    "one loop": _one_loop,
    "three loops": _three_loops,
    "ladder": _ladder,
    "overconstrained": _overconstrained,
    "rolling": _rolling,
    "driven": _driven,
    "held feet": lambda rng: _standing("held feet", rng, None),
    "masked feet": lambda rng: _standing("masked feet", rng, [True, False, False, True]),
    "springs": _springs,
    SINGULAR: _singular,
}
