"""Figures 3.3 to 3.10 of spencer2004: a five-bar mechanism through its singular position.

The stretched-out position is (pi, 0, pi, 0) in the interior angles of the second example; the printed (pi, 0, 0, pi)
is not closed in them.  There the motion may branch; ``lw.simulate`` goes straight on, where the exact motion does.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

import linkwise as lw
from linkwise.demo.drawing import Panel, over
from linkwise.demo.exhibit import Animation, Comparison, Exhibit, Paper, Table, compare

from .spencer2004_linkages import enter_chapter_2, enter_chapter_4

PAPER = Paper(
    key="spencer2004",
    title="Applications of the Local State-Space Form of Constrained Mechanical Systems",
    authors="E. L. Spencer, Iowa State University, 2004",
    about="Mechanisms with closed loops as ordinary differential equations on a manifold: local coordinates, null "
    "spaces, a formulation that passes through singular positions, and linearization in independent "
    "coordinates.",
    absent=(
        ("Figure 2.1", "a commutative diagram"),
        ("Figure 4.1", "a photograph"),
        ("Figure 4.3", "screens of another program"),
    ),
)
enter_chapter_2(PAPER)
RETURN = 2.82  # s, printed: back in the singular position

STRETCHED = (math.pi, 0.0, math.pi, 0.0)
SYMMETRIC = (
    2 * math.pi / 3,
    math.pi / 3 + math.acos(2 / 3),
    2 * math.asin(2 / 3),
    math.pi / 3 + math.acos(2 / 3),
)
DURATION, STEP = 5.0, 1e-3
PLANAR = (0, 1)  # of the five constraints of a revolute loop, those that a planar mechanism can violate
PASSAGE = 100.0  # condition number beyond which the mechanism passes its singular position


@cache
def released_stretched(duration: float = DURATION, stabilization: str | None = "projection") -> lw.Trajectory:
    """Example 1: from rest in the singular position, the SVD form (3.5)."""
    with warnings.catch_warnings():  # that there are several ways out: the figure shows which is taken
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.simulate(
            lw.mechanisms.five_bar(),
            STRETCHED,
            np.zeros(4),
            duration,
            method="rk4",
            step=STEP,
            settings=lw.motion.Settings(stabilization=stabilization),
        )


@dataclass(frozen=True)
class PrintedMotion:
    """A motion by the method that the text prints, and nothing else: ``lw.simulate`` passes singular positions on its
    own arcs, whatever keeps loops closed elsewhere."""

    mechanism: lw.Mechanism
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray

    @cached_property
    def energy(self) -> np.ndarray:
        mech = self.mechanism
        return np.asarray(lw.kinetic_energy(mech, self.q, self.v) + lw.potential_energy(mech, self.q))

    @cached_property
    def constraint_error(self) -> np.ndarray:
        return np.linalg.norm(lw.constraints.position_error(self.mechanism, self.q), axis=-1)


Motion = lw.Trajectory | PrintedMotion


@cache
def with_baumgarte(duration: float = DURATION) -> PrintedMotion:
    """Example 2: Lagrange multipliers (2.5) with Baumgarte's terms (3.8), alpha = beta = 10, in steps of RK4."""
    mech, count = lw.mechanisms.five_bar(), round(duration / STEP)

    def rates(x: np.ndarray) -> np.ndarray:
        q, v = np.split(x, 2)
        a = lw.forward_dynamics(mech, q, v, np.zeros(4), method="lagrange", baumgarte=(10.0, 10.0))
        return np.concatenate([v, a])

    states = [np.concatenate([SYMMETRIC, np.zeros(4)])]
    with warnings.catch_warnings():  # that loops are open in the end, which the figures show
        warnings.simplefilter("ignore", lw.MechanismWarning)
        for _ in range(count):
            x = states[-1]
            k1 = rates(x)
            k2 = rates(x + 0.5 * STEP * k1)
            k3 = rates(x + 0.5 * STEP * k2)
            k4 = rates(x + STEP * k3)
            states.append(x + STEP / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))
    q, v = np.split(np.array(states), 2, axis=1)
    return PrintedMotion(mech, STEP * np.arange(count + 1), q, v)


@cache
def with_projection(duration: float = DURATION, keep_energy: bool = True) -> lw.Trajectory:
    """Example 2: the SVD form (3.5) with projection (3.10, 3.11), onto the energy too if wanted."""
    return lw.simulate(
        lw.mechanisms.five_bar(),
        SYMMETRIC,
        np.zeros(4),
        duration,
        method="rk4",
        step=STEP,
        settings=lw.motion.Settings(keep_energy=keep_energy),
    )


def return_time(motion: lw.Trajectory) -> float:
    """When a motion from the stretched position is nearest to it again, after the first second."""
    later = np.flatnonzero(motion.t > 1.0)
    apart = np.abs(motion.q[later] - motion.q[0]).max(axis=1)
    return float(motion.t[later[np.argmin(apart)]])


def condition_numbers(motion: Motion) -> np.ndarray:
    """sigma_1 / sigma_m of the constraint Jacobian."""
    values = np.linalg.svd(_jacobian(motion), compute_uv=False)
    return values[:, 0] / np.maximum(values[:, -1], np.finfo(float).eps)


def passages(motion: Motion) -> np.ndarray:
    """Times at which the condition number peaks above ``PASSAGE``."""
    numbers = condition_numbers(motion)
    inside = np.flatnonzero((numbers[1:-1] > numbers[:-2]) & (numbers[1:-1] > numbers[2:]) & (numbers[1:-1] > PASSAGE))
    return motion.t[1 + inside]


def multipliers(motion: Motion) -> np.ndarray:
    """(steps, 2): Lagrange multipliers along a motion with Baumgarte's terms."""
    return lw.constraints.multipliers(
        motion.mechanism, motion.q, motion.v, np.zeros(4), method="lagrange", baumgarte=(10.0, 10.0)
    )[:, PLANAR]


def spike_indicator(motion: Motion) -> np.ndarray:
    """(steps,): the size of v_m u_m* dG/dt v (3.7)."""
    u, _, _ = np.linalg.svd(_jacobian(motion))
    bias = lw.constraints.constraint_bias(motion.mechanism, motion.q, motion.v)[:, PLANAR]
    return np.abs(np.einsum("ti,ti->t", u[:, :, -1], bias))


def _jacobian(motion: Motion) -> np.ndarray:
    """(steps, 2, 4): the rows of G that a planar mechanism can violate."""
    return lw.constraints.constraint_jacobian(motion.mechanism, motion.q)[:, PLANAR, :]


# -- chapter 3, first example -------------------------------------------------------------------------


@PAPER.shows("Figure 3.1", "Five-bar mechanism, with Table 3.1")
def figure_3_1() -> Exhibit:
    mech = lw.mechanisms.five_bar()
    length = 2.0 * mech.parameters.coms[:, 0]
    rows = [
        (body.link, f"{length[k]:g}", f"{body.mass:g}", f"{body.inertia[2, 2]:g}") for k, body in enumerate(mech.bodies)
    ]
    printed = np.array([[1.0, 2.0, 1.0], [1.5, 3.0, 2.0], [1.5, 3.0, 2.0], [1.0, 2.0, 1.0]])
    found = np.array([[length[k], body.mass, body.inertia[2, 2]] for k, body in enumerate(mech.bodies)])
    return Exhibit(
        "Four moving links, the fifth is the ground between two supports 1 m apart; two degrees of freedom.",
        pictures=(lw.viewer.draw(mech, np.array(SYMMETRIC), labels=True),),
        tables=(Table(("link", "length (m)", "mass (kg)", "inertia (kg m²)"), rows),),
        compared=(compare("numbers as printed", found, printed, 1e-15),),
        remark="The stretched-out singular position is (pi, 0, pi, 0) in the interior angles of the second example; "
        "the printed (pi, 0, 0, pi) is not closed in them. The distance of the supports is read off the "
        "initial position.",
    )


@PAPER.shows("Figure 3.2", "The five-bar mechanism goes through its singular position")
def figure_3_2() -> Exhibit:
    motion = with_projection()
    passed = passages(motion)[0]
    first, at, last = (round((passed + offset) / STEP) for offset in (-0.6, 0.0, 0.25))
    shown = slice(first, last + 1)
    flat = np.abs(_heights(motion.mechanism, motion.q[at])).max()
    return Exhibit(
        "Released as in Figure 3.1 (palest) it falls; when its links lie in one line the constraints lose a rank, "
        f"and the motion passes through: at {passed:.3f} s the joints are within {1000 * flat:.0f} mm of that line.",
        pictures=(
            lw.viewer.snapshots(motion.mechanism, motion.q[shown], motion.t[shown], count=6),
            Animation(with_projection(2.0)),
        ),
        compared=(
            Comparison(
                "gap between links and support on the way (m)", float(motion.constraint_error[shown].max()), 1e-3
            ),
            Comparison("height of the joints above the line in passing (m)", float(flat), 0.01),
        ),
    )


def _heights(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """(4,): of the joints above the supports."""
    return lw.link_poses(mech, q)[:, 1, 3]


@PAPER.shows("Figure 3.3", "Joint trajectories, first example")
def figure_3_3() -> Exhibit:
    motion = released_stretched()
    found = return_time(motion)
    back = round(found / STEP)
    again = motion.q[back:] - motion.q[: len(motion.t) - back]
    return Exhibit(
        "Released at rest in the singular position it falls, bobs up and down once, and is back and at rest after "
        f"{found:.3f} s (upright line); the text says 2.82 s. There it repeats the motion, as the text has it: the "
        f"curves right of the line are those of the start, to {np.abs(again).max():.0e} rad.",
        pictures=(over(motion.t, [Panel("joint angle (rad)", _joints(motion), marks=(found,))]),),
        compared=(
            Comparison("time of return less the printed one (s)", abs(found - RETURN), 0.01),
            compare(
                "position at the return: that of the start (rad)", motion.q[back], motion.q[0], 1e-5, relative=False
            ),
            Comparison("second motion less the first (rad)", float(np.abs(again).max()), 0.01),
            Comparison("way back: the way down, run backwards (rad)", asymmetry(motion), 0.01),
        ),
        remark="The scan has no curves. At rest in the singular position the mechanism could leave it in several ways; "
        "lw.simulate takes the branch nearest to its acceleration, and says so.",
    )


def asymmetry(motion: lw.Trajectory) -> float:
    """How far a motion that returns is from being its own mirror image about the moment at which it reverses (rad)."""
    back = round(return_time(motion) / STEP)
    reverses = int(np.argmin(np.abs(motion.v[back // 4 : -(-3 * back // 4)]).max(axis=1))) + back // 4
    reach = min(reverses, back - reverses)
    way, back_again = motion.q[reverses - reach : reverses + 1], motion.q[reverses : reverses + reach + 1]
    return float(np.abs(way - back_again[::-1]).max())


@PAPER.shows("Figure 3.4", "Condition number of the constraint matrix, first example")
def figure_3_4() -> Exhibit:
    motion = released_stretched()
    numbers = condition_numbers(motion)
    near = np.abs(motion.t - RETURN) < 0.03
    peak = float(motion.t[near][np.argmax(numbers[near])])
    return Exhibit(
        f"The peaks are the singular position: {numbers[0]:.0e} at the start, {numbers[near].max():.0e} at the "
        f"return, below {numbers[500:2400].max():.0f} in between.",
        pictures=(over(motion.t, [Panel("condition number", {"": numbers}, logarithmic=True)]),),
        compared=(Comparison("time of the second peak less the printed 2.82 s (s)", abs(peak - RETURN), 0.01),),
    )


@PAPER.shows("Figure 3.5", "Energy, first example")
def figure_3_5() -> Exhibit:
    motion = released_stretched()
    kinetic = lw.kinetic_energy(motion.mechanism, motion.q, motion.v)
    potential = lw.potential_energy(motion.mechanism, motion.q)
    change = motion.energy - motion.energy[0]
    panels = [
        Panel("energy (J)", {"kinetic": kinetic, "potential": potential}, "(a)"),
        Panel("change of energy (J)", {"": change}, "(b)"),
    ]
    return Exhibit(
        f"Up to {kinetic.max():.0f} J go to and fro between height and motion; their sum hardly changes.",
        pictures=(over(motion.t, panels),),
        compared=(Comparison("largest change of energy (J)", float(np.abs(change).max()), 1e-3),),
    )


@PAPER.shows("Figure 3.6", "Constraint violation, first example")
def figure_3_6() -> Exhibit:
    without, motion = released_stretched(stabilization=None), released_stretched()
    panels = [
        Panel("constraint violation (m)", {"": np.maximum(m.constraint_error, 1e-17)}, name, logarithmic=True)
        for name, m in (("without stabilization, as printed", without), ("with projection", motion))
    ]
    drifts, kept = (float(m.constraint_error.max()) for m in (without, motion))
    return Exhibit(
        f"Without stabilization, as in the text, the loop opens by drift alone, to {drifts:.0e} m, and is back after "
        f"{return_time(without):.3f} s: the gap opens the crossing of branches. With projection, as in Figures 3.3 to "
        f"3.5, it stays closed to {kept:.0e} m.",
        pictures=(over(motion.t, panels),),
        compared=(
            Comparison("largest violation without stabilization (m)", drifts, 1e-5),
            Comparison("with projection (m)", kept, 1e-11),
        ),
    )


# -- chapter 3, second example ------------------------------------------------------------------------

BRANCHING = (
    "The text closes loops to 1e-3 by projection; here they are closed to rounding, since a gap opens the crossing of "
    "branches into a hyperbola and turns the motion aside."
)
ALIKE = 3.9  # s: so long both methods give one motion
BEFORE_FOUR = (3.8, 4.05)  # "just before 4s": where the text sees the drift grow and the multipliers spike


@PAPER.shows("Figure 3.7", "Joint trajectories, second example")
def figure_3_7() -> Exhibit:
    baumgarte, projection = with_baumgarte(), with_projection()
    before = baumgarte.t < ALIKE
    singular = ", ".join(f"{time:.2f}" for time in passages(projection))
    unlike = [float(np.abs(m.q[:, 1] - m.q[:, 3]).max()) for m in (baumgarte, projection)]
    return Exhibit(
        f"Released symmetrically at rest, it goes through the singular position at speed, at {singular} s, straight on "
        f"each time, as the exact motion does: q_2 and q_4 stay the same, to {unlike[1]:.0e} rad at the end. Lagrange "
        "multipliers with Baumgarte's terms pass at the same times, and leave the symmetry after the last one, by "
        f"{unlike[0]:.1f} rad at the end.",
        pictures=(
            over(
                projection.t,
                [
                    Panel("joint angle (rad)", _joints(baumgarte), "multipliers, Baumgarte"),
                    Panel("joint angle (rad)", _joints(projection), "SVD, projection"),
                ],
            ),
        ),
        compared=(
            compare(
                f"both methods up to {ALIKE} s (rad)",
                baumgarte.q[before],
                projection.q[before],
                1e-3,
                relative=False,
            ),
            Comparison("q_2 less q_4 with projection (rad)", unlike[1], 0.01),
            Comparison(
                "passages, less the most the text allows (three)",
                float(max(0, *(len(passages(m)) - 3 for m in (baumgarte, projection)))),
                0.0,
            ),
        ),
        remark=BRANCHING,
    )


@PAPER.shows("Figure 3.8", "Constraint drift: Baumgarte against projection")
def figure_3_8() -> Exhibit:
    pair: dict[str, Motion] = {"(a) Baumgarte": with_baumgarte(), "(b) projection": with_projection()}
    panels = [
        Panel("constraint violation (m)", {"": np.maximum(m.constraint_error, 1e-16)}, name, logarithmic=True)
        for name, m in pair.items()
    ]
    worst = {name: float(m.constraint_error.max()) for name, m in pair.items()}
    drift = pair["(a) Baumgarte"]
    when = float(drift.t[np.argmax(drift.constraint_error)])
    earlier = float(drift.constraint_error[drift.t < BEFORE_FOUR[0]].max())
    return Exhibit(
        f"With Baumgarte's terms the loop opens by no more than {earlier:.1e} m until the passage just before 4 s, "
        f"which drives it to {worst['(a) Baumgarte']:.1e} m at {when:.2f} s, as the text says; projection keeps it "
        f"closed to {worst['(b) projection']:.0e} m.",
        pictures=(over(drift.t, panels),),
        compared=(
            Comparison("violation with projection (m)", worst["(b) projection"], 1e-11),
            Comparison("drift before 3.8 s as a share of the largest", earlier / worst["(a) Baumgarte"], 1e-3),
            _just_before_four("time of the largest drift", when),
        ),
        remark=BRANCHING,
    )


def _just_before_four(what: str, time: float) -> Comparison:
    return Comparison(f"{what}: outside of {BEFORE_FOUR[0]} to {BEFORE_FOUR[1]} s by (s)", _outside(time), 0.0)


def _outside(time: float) -> float:
    first, last = BEFORE_FOUR
    return max(first - time, time - last, 0.0)


@PAPER.shows("Figure 3.9", "Indicators of large accelerations")
def figure_3_9() -> Exhibit:
    baumgarte, projection = with_baumgarte(), with_projection()
    forces, indicator = multipliers(baumgarte), spike_indicator(projection)
    at = [np.abs(projection.t - time) < 0.0015 for time in passages(projection)]
    around = [np.abs(projection.t - time) < 0.1 for time in passages(projection)]
    share = max(float(indicator[a].min() / indicator[b].max()) for a, b in zip(at, around, strict=True))
    sizes = np.abs(forces).max(axis=1)
    spike = float(baumgarte.t[np.argmax(sizes)])
    panels = [
        Panel(
            "multipliers (N)",
            {"lambda_1": np.abs(forces[:, 0]), "lambda_2": np.abs(forces[:, 1])},
            "(a) Lagrange multipliers, their sizes",
            logarithmic=True,
            marks=passages(baumgarte),
        ),
        Panel(
            "|v_m u_m* dG/dt v|",
            {"": np.maximum(indicator, 1e-5)},
            "(b) SVD null space",
            logarithmic=True,
            marks=passages(projection),
        ),
    ]
    return Exhibit(
        f"Upright lines are passages of the singular position. (a) The multipliers spike to {sizes.max():.1e} N at "
        f"{spike:.2f} s (their median is {np.median(np.abs(forces)):.0f} N). (b) The term (3.7) that could make "
        "accelerations large in the SVD form falls by orders of magnitude at the passages, and nothing spikes.",
        pictures=(over(baumgarte.t, panels),),
        compared=(
            Comparison("(3.7) at a passage, as a share of its size around it", share, 0.001),
            _just_before_four("time of the spike of the multipliers", spike),
        ),
        remark=BRANCHING,
    )


@PAPER.shows("Figure 3.10", "Conservation of energy")
def figure_3_10() -> Exhibit:
    pair: dict[str, Motion] = {"(a) multipliers, Baumgarte": with_baumgarte(), "(b) SVD, projection": with_projection()}
    without = with_projection(keep_energy=False)
    lost = {name: float(np.abs(m.energy - m.energy[0]).max()) for name, m in pair.items()}
    lost_without = float(np.abs(without.energy - without.energy[0]).max())
    panels = [Panel("change of energy (J)", {"": m.energy - m.energy[0]}, name) for name, m in pair.items()]
    violated, kept = lost.values()
    return Exhibit(
        f"Multipliers with Baumgarte's terms lose {violated:.0f} J at the passages; projected onto the energy as "
        "well, the SVD form keeps it; projected onto positions and velocities alone it still loses only "
        f"{lost_without:.1g} J.",
        pictures=(over(without.t, panels),),
        compared=(
            Comparison("change of energy with projection (J)", kept, 1e-3),
            Comparison(
                "change without projection onto energy, as a share of Baumgarte's", lost_without / violated, 0.1
            ),
        ),
        remark=BRANCHING,
    )


def _joints(motion: Motion) -> dict[str, np.ndarray]:
    return {f"q_{k + 1}": series for k, series in enumerate(motion.q.T)}


enter_chapter_4(PAPER)
