"""saha1999: operation counts, torques along given motions and free falls, of a planar arm and the Stanford arm.

Choices where the paper is silent: Figure 4 prints no dimensions, the planar arm has three rods of 1 m and 1 kg; (39)
as printed ends at pi, here at the values the text gives for it (60 degrees, 0.1 m), while (38) is used as printed; the
free falls last as long as they are instructive.  Which way gravity acts along Z_1 of the Stanford arm is not printed
either.  The text sees joint 2 turn beyond 90 degrees in free fall, so it acts along +Z_1; along -Z_1 it would mirror
theta_2 at 90 degrees.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

import linkwise as lw
from linkwise.demo.drawing import Panel, over
from linkwise.demo.exhibit import Comparison, Exhibit, Paper, Table, compare

from .diagrams import growth
from .operation_counts import TABLES, CountTable, counted, general_arm, our_rows

PAPER = Paper(
    key="saha1999",
    title="Dynamics of Serial Multibody Systems Using the Decoupled Natural Orthogonal Complement Matrices",
    authors="S. K. Saha, Journal of Applied Mechanics, 1999",
    about="Twists at the mass centres, two matrices whose product propagates joint rates to them, and from these "
    "recursive inverse and forward dynamics. `lw.formulations.denoc` computes in the paper's own form.",
    absent=(("Figures 1 to 3 and 10", "sketches that define symbols"),),
)

DURATION = 10.0  # T of (38) and (39)
PLANAR_FALL, STANFORD_FALL = 5.0, 1.5  # seconds
SAMPLES = 501
QUARTER, SIXTY_DEGREES = math.pi / 2.0, math.pi / 3.0
STANFORD_START = (0.0, QUARTER, 0.0, 0.0, 0.0, 0.0)
STANFORD_END = (SIXTY_DEGREES, SIXTY_DEGREES, 0.1, SIXTY_DEGREES, SIXTY_DEGREES, SIXTY_DEGREES)
SLIDING = 2  # joint 3 is prismatic
TOLERANCES = (1e-8, 1e-10, 1e-12)
GROWTH_FROM, GROWTH_TO = 1e-9, 1e-2  # rad, m: deviations whose growth is measured
HELD = 2.0  # seconds for which torques alone keep the motion


class Torques(NamedTuple):
    """t (m,), q, v, a of a prescribed motion and the joint torques and forces tau (m, n) that it takes."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray


def planar_arm() -> lw.Mechanism:
    return lw.mechanisms.planar_arm(3)


def stanford_arm() -> lw.Mechanism:
    """Table 3, with gravity along +Z_1."""
    arm = lw.mechanisms.stanford_arm()
    return arm.with_gravity(-arm.gravity)


def cycloid(
    start: Sequence[float] | np.ndarray, end: Sequence[float] | np.ndarray, duration: float, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v, a (m, n) of the cycloids (38), (39) from ``start`` at t = 0 to ``end`` at ``duration``, at rest at both.

    From 0 to pi it is the printed formula.
    """
    start, way = np.asarray(start, dtype=float), np.asarray(end, dtype=float) - np.asarray(start, dtype=float)
    share, rate, change = (x[:, None] for x in lw.trajectories.cycloid(np.asarray(t, dtype=float), duration))
    return start + way * share, way * rate, way * change


def planar_torques() -> Torques:
    """Figure 5, along (38) as printed."""
    return _torques(planar_arm(), (0.0,) * 3, (math.pi,) * 3)


@cache
def planar_fall() -> lw.Trajectory:
    """Figure 6: released at rest, stretched out along X."""
    return _fall(planar_arm(), (0.0,) * 3, PLANAR_FALL)


def stanford_torques() -> Torques:
    """Figure 8."""
    return _torques(stanford_arm(), STANFORD_START, STANFORD_END)


@cache
def stanford_fall() -> lw.Trajectory:
    """Figure 9: released at rest with the sliding joint's axis level."""
    return _fall(stanford_arm(), STANFORD_START, STANFORD_FALL)


def _fall(mech: lw.Mechanism, start: Sequence[float], duration: float) -> lw.Trajectory:
    times = np.linspace(0.0, duration, SAMPLES)
    return lw.simulate(
        mech, start, np.zeros(mech.nv), duration, settings=lw.motion.Settings(rtol=1e-12, atol=1e-12), t_eval=times
    )


def _torques(mech: lw.Mechanism, start: Sequence[float], end: Sequence[float]) -> Torques:
    t = np.linspace(0.0, DURATION, SAMPLES)
    q, v, a = cycloid(start, end, DURATION, t)
    return Torques(t, q, v, a, lw.formulations.denoc.inverse_dynamics(mech, q, v, a))


@cache
def open_loop(arm: str, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """t and the largest deviation (m,) from the motion of Figure 5 ("planar") or 8 ("stanford") under its own torques,
    which are functions of time alone, in steps of this tolerance."""
    mech, start, end = {
        "planar": (planar_arm(), (0.0,) * 3, (math.pi,) * 3),
        "stanford": (stanford_arm(), STANFORD_START, STANFORD_END),
    }[arm]

    def torques(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return lw.formulations.denoc.inverse_dynamics(mech, *cycloid(start, end, DURATION, np.array([t])))[0]

    times = np.linspace(0.0, DURATION, SAMPLES)
    motion = lw.simulate(
        mech, start, None, DURATION, torques, settings=lw.motion.Settings(rtol=tolerance, atol=tolerance), t_eval=times
    )
    return times, np.abs(motion.q - cycloid(start, end, DURATION, times)[0]).max(axis=1)


def growth_per_second(t: np.ndarray, deviation: np.ndarray) -> float:
    """The factor by which a deviation grows in a second, from where it leaves round-off to where it is large."""
    grows = (deviation > GROWTH_FROM) & (np.maximum.accumulate(deviation) < GROWTH_TO)
    return math.exp(np.polyfit(t[grows], np.log(deviation[grows]), 1)[0])


def planar_closed_form(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Torques (..., 3) of three equal rods from Lagrange's equations in the rods' absolute angles, written out."""
    length, mass, gravity = 1.0, 1.0, 9.81
    angle, rate, acceleration = (np.cumsum(x, axis=-1) for x in (q, v, a))
    load = mass * np.array([2.0, 1.0, 0.0])  # what each rod has at its end
    static = length * (0.5 * mass + load)
    moments = []
    for i in range(3):
        total = gravity * static[i] * np.cos(angle[..., i])
        for j in range(3):
            inertia = length * static[max(i, j)] if i != j else mass * length**2 / 3.0 + length**2 * load[i]
            apart = angle[..., i] - angle[..., j]
            total = total + inertia * (np.cos(apart) * acceleration[..., j] + np.sin(apart) * rate[..., j] ** 2)
        moments.append(total)
    return np.stack([sum(moments[i:]) for i in range(3)], axis=-1)


# -- tables -------------------------------------------------------------------------------------------

DRAWN = (2, 3, 4, 6, 8, 12)
BEYOND = 24  # joints, more than our formulas are made from


def _counts(table: CountTable) -> Exhibit:
    """Formulas as printed beside what our programs need."""
    ours, n = our_rows(table.number), table.shown[0]
    rows = sorted((*table.printed, *ours.values()), key=lambda row: sum(row.at(n)))
    cells = [
        (row.name, *row.formulas, *(f"{row.at(n).multiplications} M {row.at(n).additions} A" for n in table.shown))
        for row in rows
    ]
    head = ("algorithm", "multiplications M", "additions A", *(f"n = {n}" for n in table.shown))
    printed = [(row, k) for row in table.printed for k in row.counts]
    misprints = [
        f"{row.name} at n = {k}: printed {count} {unit}, by formula {right}"
        for row, k in printed
        for count, right, unit in zip(row.counts[k], row.misprints.get(k, row.counts[k]), "MA", strict=True)
        if count != right
    ]
    curves = {row.name: [sum(row.at(k)) for k in DRAWN] for row in (*ours.values(), *table.printed)}
    return Exhibit(
        "The arm has n revolute joints and no number that is zero or one by luck; what is counted is the compiled "
        "program of one state. Sines and cosines are left out and a division counts as a multiplication, as in the "
        f"paper. {_standing(table, n)}",
        pictures=(growth(DRAWN, curves),),
        tables=(Table(head, cells),),
        compared=(
            compare(
                f"printed counts{', the misprint corrected' if misprints else ''}: printed formulas",
                [row.misprints.get(k, row.counts[k]) for row, k in printed],
                [row.by_formula(k) for row, k in printed],
                0.0,
            ),
            compare(
                f"our formulas: programs of an arm of {BEYOND} joints, counted",
                [ours[name].by_formula(BEYOND) for name in table.named],
                [counted(name, BEYOND) for name in table.named],
                0.0,
            ),
            *_counted_programs(table, n),
        ),
        remark="; ".join(misprints),
    )


def _standing(table: CountTable, n: int) -> str:
    """What the paper's own algorithm takes here, beside what is printed for it."""
    here, there = our_rows(table.number)[table.counts].at(n), table.proposed.at(n)
    text = (
        f"For n = {n} the paper's own algorithm, compiled from `lw.formulations.denoc`, needs {here.multiplications} M "
        f"{here.additions} A, where {there.multiplications} M {there.additions} A are printed for it."
    )
    if table.counts != "denoc_accelerations":
        return text
    whole = our_rows(table.number)["denoc_forward_dynamics"].at(n)
    return (
        f"{text} These are the three steps of Section 5.2, whose input is φ = τ - C v "
        "(`lw.formulations.denoc.accelerations`); with "
        f"φ computed too (`lw.formulations.denoc.forward_dynamics`) they are {whole.multiplications} M "
        f"{whole.additions} A."
    )


def _counted_programs(table: CountTable, n: int) -> Iterator[Comparison]:
    """The programs whose operations are counted solve the equations of motion."""
    arm, rng = general_arm(n), np.random.default_rng(n)
    q, v = lw.random_state(arm, rng)
    a, mass, bias = rng.normal(size=n), lw.mass_matrix(arm, q), lw.bias_force(arm, q, v)
    force = mass @ a + bias
    given = {"denoc_accelerations": (q, mass @ a), "inverse": (q, v, a), "forward": (q, v, force)}
    for name in table.named:
        inverse = name.endswith("inverse_dynamics")
        inputs = given.get(name) or given["inverse" if inverse else "forward"]
        result = lw.compile(name, arm, target="numpy")(*inputs)
        yield compare(
            f"{name}, counted for n = {n}: mass matrix and bias forces", result, force if inverse else a, 1e-9
        )


@PAPER.shows("Table 1", "Computational complexities in inverse dynamics")
def table_1() -> Exhibit:
    return _counts(TABLES[0])


@PAPER.shows("Table 2", "Computational complexities in forward dynamics")
def table_2() -> Exhibit:
    return _counts(TABLES[1])


# -- figures ------------------------------------------------------------------------------------------


@PAPER.shows("Figure 4", "A manipulator of three degrees of freedom")
def figure_4() -> Exhibit:
    arm = planar_arm()
    return Exhibit(
        "Three rods in the plane X-Y, gravity along -Y, drawn on the way of Figure 5, each joint at 30 degrees.",
        pictures=(lw.viewer.draw(arm, np.full(3, math.pi / 6.0), labels=True),),
        compared=(
            compare(
                "its end: sum of the rods by their absolute angles (m)",
                *_planar_tip(arm, np.array([0.3, 0.5, -0.8])),
                1e-14,
            ),
        ),
        remark="The scan has the caption only; it prints no dimensions. Rods of 1 m and 1 kg.",
    )


def _planar_tip(arm: lw.Mechanism, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    angles = np.cumsum(q)
    return lw.frame_pose(arm, q, "tip")[:2, 3], np.array([np.cos(angles).sum(), np.sin(angles).sum()])


@PAPER.shows("Figure 5", "Torques for the planar manipulator of three degrees of freedom")
def figure_5() -> Exhibit:
    found = planar_torques()
    curves = {f"tau_{k + 1}": series for k, series in enumerate(found.tau.T)}
    return Exhibit(
        "Each joint rotates by 180 degrees along the cycloid (38) in 10 s. At the start the stretched arm holds the "
        f"weight of its rods, {_numbers(found.tau[0])} N m; at the end, folded back upon itself, "
        f"{_numbers(found.tau[-1])} N m.",
        pictures=(over(found.t, [Panel("joint torque (N m)", curves)]),),
        compared=(
            compare(
                "explicit expressions of the torques, as the text does",
                found.tau,
                planar_closed_form(*found[1:4]),
                1e-12,
            ),
            compare("weights of the rods at the start (N m)", found.tau[0], 9.81 * np.array([4.5, 2.0, 0.5]), 1e-12),
            compare("weights of the rods at the end (N m)", found.tau[-1], 9.81 * np.array([-1.5, 1.0, -0.5]), 1e-12),
            _held_at_first("planar"),
        ),
        remark="The scan has no curves and Figure 4 prints no dimensions: rods of 1 m and 1 kg. "
        + _not_held("planar", TOLERANCES[-1]),
    )


@PAPER.shows("Figure 6", "Simulated joint angles of the planar manipulator")
def figure_6() -> Exhibit:
    fall = planar_fall()
    curves = {f"th_{k + 1}": series for k, series in enumerate(np.degrees(fall.q).T)}
    return Exhibit(
        "Released at rest, stretched out: theta_1 first grows in the negative direction, then the arm swings as a "
        f"triple pendulum. After {PLANAR_FALL:g} s it is at {_numbers(np.degrees(fall.q[-1]))} degrees.",
        pictures=(over(fall.t, [Panel("joint angle (deg)", curves)]),),
        compared=(
            Comparison(
                "torques of the motion, by the explicit expressions (N m)",
                _largest(planar_closed_form(fall.q, fall.v, fall.a)),
                1e-8,
            ),
            _energy_kept(fall),
        ),
        remark="The scan has no curves; how long the fall lasts is not said.",
    )


@PAPER.shows("Figure 7", "The Stanford arm, with Table 3")
def figure_7() -> Exhibit:
    arm = stanford_arm()
    rows = []
    for body in arm.bodies:
        inertia = np.diag(body.inertia)
        kind = type(body.kind).__name__.lower()
        rows.append((body.joint, kind, f"{body.mass:g}", _numbers(body.com), _numbers(inertia)))
    q, _ = lw.random_state(arm, np.random.default_rng(3))
    return Exhibit(
        "The arm as the library holds it: masses, centres of mass and inertias about them, in the frames of the links.",
        pictures=(lw.viewer.draw(arm, STANFORD_START, frames=True),),
        tables=(Table(("joint", "kind", "mass (kg)", "centre of mass (m)", "inertia (kg m²)"), rows),),
        compared=(
            compare(
                "hand's pose: product of the Denavit-Hartenberg matrices of Appendix A",
                lw.frame_pose(arm, q, "link6"),
                _dh_pose(q),
                1e-12,
            ),
            compare("masses as printed (kg)", [b.mass for b in arm.bodies], [9, 6, 4, 1, 0.6, 0.5], 0.0),
        ),
    )


def _dh_pose(q: np.ndarray) -> np.ndarray:
    """The hand's frame: the product of the matrices of Appendix A, with the columns b, alpha and theta of Table 3."""
    pose = np.eye(4)
    for offset, twist, value in zip((0.2, 0.1, None, 0.6, 0.0, 0.0), (-90, -90, 0, 90, -90, 0), q, strict=True):
        theta, b = (0.0, value) if offset is None else (value, offset)
        (c, s), (ca, sa) = ((math.cos(x), math.sin(x)) for x in (theta, math.radians(twist)))
        pose = pose @ np.array([[c, -s * ca, s * sa, 0], [s, c * ca, -c * sa, 0], [0, sa, ca, b], [0, 0, 0, 1]])
    return pose


@PAPER.shows("Figure 8", "Torques and force for the Stanford arm")
def figure_8() -> Exhibit:
    found, arm = stanford_torques(), stanford_arm()
    labels = ["force (N)" if k == SLIDING else "torque (N m)" for k in range(6)]
    power = np.sum(found.tau * found.v, axis=1)
    work = float(np.sum(0.5 * (power[1:] + power[:-1]) * np.diff(found.t)))
    gain = lw.potential_energy(arm, found.q[-1]) - lw.potential_energy(arm, found.q[0])
    return Exhibit(
        "Every angle goes to 60 degrees and the sliding joint to 0.1 m along the cycloids (39) in 10 s, computed at "
        f"the mass centres (Section 5.1). At the end the joints hold {_numbers(found.tau[-1])} (N m, joint 3: N).",
        pictures=(
            over(found.t, _joint_panels(found.tau, labels), columns=2, width=8.0),
            over(open_loop("stanford", TOLERANCES[0])[0], [_open_loop_panel("stanford")]),
        ),
        compared=(
            compare(
                "the same by the library's other frames and sweeps",
                found.tau,
                lw.inverse_dynamics(arm, *found[1:4]),
                1e-12,
            ),
            compare("weights that hang on the joints at the end, by hand", found.tau[-1], _stanford_weights(), 1e-12),
            Comparison("work of the joints less gain of energy (J)", float(abs(work - gain)), 1e-3),
            _held_at_first("stanford"),
        ),
        remark="The scan has no curves. Which way gravity acts along Z_1 is not printed; the text of Figure 9 asks "
        "for +Z_1. " + _not_held("stanford", TOLERANCES[-1]),
    )


def _held_at_first(arm: str) -> Comparison:
    t, deviation = open_loop(arm, TOLERANCES[-1])
    what = f"forward simulation under these torques: the motion, for {HELD:g} s (rad, m)"
    return Comparison(what, float(deviation[t <= HELD].max()), 1e-9)


def _not_held(arm: str, tolerance: float) -> str:
    """What becomes of the motion if its torques are functions of time alone."""
    t, deviation = open_loop(arm, tolerance)
    lost = t[np.flatnonzero(deviation > 0.1)[0]]
    return (
        f"Without feedback these torques do not keep the motion for {DURATION:g} s: in a forward simulation of "
        f"tolerance {tolerance:.0e} deviations grow {growth_per_second(t, deviation):.0f}-fold per second and exceed "
        f"0.1 after {lost:.1f} s. That is a property of the motion, not of the method: smaller tolerances only delay "
        "it. `lw.control.computed_torque` follows the motion."
    )


def _open_loop_panel(arm: str) -> Panel:
    curves = {f"tolerance {tolerance:.0e}": open_loop(arm, tolerance)[1] for tolerance in TOLERANCES}
    visible = {name: np.where(series > 0.0, series, np.nan) for name, series in curves.items()}
    return Panel("off by (rad, m)", visible, "Forward simulation under these torques, without feedback", True)


def _stanford_weights() -> np.ndarray:
    """What hangs on joints 2 and 3 at the end of the motion, joint 2 at 60 degrees and joint 3 at 0.1 m."""
    load, moment = 4.0 + 1.0 + 0.6 + 0.5, 1.0 * 0.7 + (0.6 + 0.5) * 0.6
    along, across = math.cos(SIXTY_DEGREES), math.sin(SIXTY_DEGREES)
    return 9.81 * np.array([0.0, -(moment + 0.1 * load) * across, load * along, 0.0, 0.0, 0.0])


@PAPER.shows("Figure 9", "Simulated joint angles and displacement of the Stanford arm")
def figure_9() -> Exhibit:
    fall, arm = stanford_fall(), stanford_arm()
    labels = ["displacement (m)" if k == SLIDING else "angle (deg)" for k in range(6)]
    barely = fall.q[np.degrees(fall.q[:, 1]) < 95.0, SLIDING].max()
    return Exhibit(
        "Released at rest with the sliding joint level. As the text says, joint 3 sharply increases once joint 2 "
        f"has turned beyond 90 degrees: {barely:.3f} m while joint 2 is below 95 degrees, {fall.q[-1, SLIDING]:.2f} "
        f"m after {STANFORD_FALL:g} s.",
        pictures=(over(fall.t, _joint_panels(_in_degrees(fall.q), labels), columns=2, width=8.0),),
        compared=(
            Comparison(
                "torques of the motion, by inverse dynamics (N m)",
                _largest(lw.formulations.denoc.inverse_dynamics(arm, fall.q, fall.v, fall.a)),
                1e-8,
            ),
            _energy_kept(fall),
        ),
        remark="The scan has no curves; how long the fall lasts is not said. Gravity acts along +Z_1.",
    )


def _joint_panels(values: np.ndarray, labels: Sequence[str]) -> list[Panel]:
    return [
        Panel(label, {"": series}, f"({'abcdef'[k]}) Joint {k + 1}")
        for k, (series, label) in enumerate(zip(values.T, labels, strict=True))
    ]


def _in_degrees(q: np.ndarray) -> np.ndarray:
    angles = np.degrees(q)
    angles[..., SLIDING] = q[..., SLIDING]
    return angles


def _numbers(values: np.ndarray) -> str:
    return f"({', '.join(f'{value:.4g}' for value in np.round(values, 9) + 0.0)})"


def _largest(values: np.ndarray) -> float:
    return float(np.abs(values).max())


def _energy_kept(motion: lw.Trajectory) -> Comparison:
    change = np.abs(motion.energy - motion.energy[0]).max() / motion.kinetic_energy.max()
    return Comparison("change of energy, as a share of the largest kinetic energy", float(change), 1e-8)
