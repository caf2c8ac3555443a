"""spencer2004, Chapters 2 and 4: a pendulum as a manifold, a parallelogram's constant basis, a linearized loader."""

from __future__ import annotations

from typing import Any

import numpy as np

import linkwise as lw
from linkwise.demo.drawing import COLOURS, figure, styled, tidy
from linkwise.demo.exhibit import Comparison, Exhibit, Paper, Table, compare

Pair = tuple[str, str]
ANGLES: Pair = ("boom_joint", "bucket_joint")
CYLINDERS: Pair = ("lift_piston_joint", "tilt_piston_joint")


def enter_chapter_2(paper: Paper) -> None:
    """The exhibits that come before the five-bar."""
    paper.shows("Figure 2.2", "Simple pendulum in Cartesian coordinates")(figure_2_2)
    paper.shows("Figure 2.3", "The position manifold of a pendulum in Cartesian coordinates")(figure_2_3)
    paper.shows("Figure 2.4", "Parallel four-bar robot (Section 2.4.1)")(figure_2_4)


def enter_chapter_4(paper: Paper) -> None:
    """The exhibits that come after it."""
    paper.shows("Figure 4.2", "The loader linkage")(figure_4_2)
    paper.shows("Section 4.5", "The loader, linearized in two sets of independent coordinates")(section_4_5)


# -- chapter 2 ----------------------------------------------------------------------------------------


def pendulum() -> lw.Mechanism:
    """Figure 2.2: a mass on two slides, q1 across and q2 up, and a rod of 1 m without weight to the origin."""
    builder = lw.Builder().link("across").link("mass", 1.0).link("rod", 1e-9, (0.5, 0, 0), (0, 1e-10, 1e-10))
    builder.joint("q1", lw.Prismatic((1, 0, 0)), "ground", "across")
    builder.joint("q2", lw.Prismatic((0, 1, 0)), "across", "mass")
    builder.joint("angle", lw.Revolute((0, 0, 1)), "mass", "rod")
    builder.loop("pivot", lw.Revolute((0, 0, 1)), "ground", None, "rod", (None, (1.0, 0.0, 0.0)))
    return builder.build("pendulum", (0.0, -9.81, 0.0))


def figure_2_2() -> Exhibit:
    mech = pendulum()
    rng = np.random.default_rng(0)
    angle, rate = rng.uniform(-np.pi, np.pi, 100), rng.normal(size=100)
    along, across = (
        np.stack([np.cos(angle), np.sin(angle)], axis=-1),
        np.stack([-np.sin(angle), np.cos(angle)], axis=-1),
    )
    q = np.concatenate([along, angle[:, None] + np.pi], axis=-1)
    v = np.concatenate([rate[:, None] * across, rate[:, None]], axis=-1)
    a = lw.forward_dynamics(mech, q, v, np.zeros((100, 3)))
    swings = -9.81 * np.cos(angle)  # of the angle, from q1 upward, by hand
    expected = swings[:, None] * across - rate[:, None] ** 2 * along
    lowest = np.array([np.sin(0.6), -np.cos(0.6), 0.6 + np.pi / 2.0])
    return Exhibit(
        "A mass on two slides, q1 across and q2 up, held at 1 m from the origin by a rod that closes a loop: two "
        "coordinates, one constraint, one degree of freedom.",
        pictures=(lw.viewer.draw(mech, lowest, labels=True),),
        compared=(
            Comparison(
                "degrees of freedom less one", float(np.abs(lw.constraints.degrees_of_freedom(mech, q[0]) - 1)), 0.0
            ),
            Comparison(
                "accelerations: those of an angle, relative",
                float(np.abs(a[:, :2] - expected).max() / np.abs(expected).max()),
                1e-8,
            ),
        ),
    )


def figure_2_3() -> Exhibit:
    mech = pendulum()
    angles = np.linspace(-np.pi, np.pi, 721)
    q = np.stack([np.cos(angles), np.sin(angles), angles + np.pi], axis=-1)
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    rows = np.concatenate([np.broadcast_to([1.0, 0.0, 0.0], (len(q), 1, 3)), jacobian], axis=1)
    smallest = np.linalg.svd(rows, compute_uv=False)[:, -1]  # of (2.28) for y = q1
    vanish = angles[np.flatnonzero(smallest < 1e-9)]
    expected = np.array([-np.pi, 0.0, np.pi])
    return Exhibit(
        "The pendulum of Figure 2.2 as a mass on two slides with a rod that closes a loop: its positions are a "
        "circle. With q1 as the local coordinate the condition (2.28) fails at the two circled points and nowhere "
        "else.",
        pictures=(_circle(angles, q, smallest),),
        compared=(
            Comparison(
                "gap of the loop on the circle (m)", float(np.abs(lw.constraints.position_error(mech, q)).max()), 1e-14
            ),
            compare(
                "points where (2.28) fails: angles 0 and ±π (rad)",
                vanish if len(vanish) == 3 else np.full(3, np.nan),
                expected,
                1e-12,
            ),
        ),
    )


@styled
def _circle(angles: np.ndarray, q: np.ndarray, smallest: np.ndarray) -> Any:
    """The manifold, coloured by how well q1 describes it, and the same over the angle."""
    drawn = figure(8.6, 3.4)
    circle, curve = drawn.subplots(1, 2, width_ratios=(1.0, 1.5))
    circle.scatter(q[:, 0], q[:, 1], c=smallest, cmap="viridis", s=9)
    circle.plot([1.0, -1.0], [0.0, 0.0], "o", mfc="none", mec=COLOURS[1], ms=12, mew=2)
    circle.set_aspect("equal")
    tidy(circle, "brighter: better described by q1", "q1", "q2")
    curve.plot(np.degrees(angles), smallest, color=COLOURS[0], label="smallest singular value of (2.28)")
    curve.plot(
        np.degrees(angles), np.abs(2.0 * q[:, 1]), "--", color=COLOURS[1], label="|2 q2|, the printed determinant"
    )
    curve.set_ylim(0.0, 2.7)
    curve.legend(loc="upper center", ncols=2)
    tidy(curve, "", "angle on the circle (deg)", "")
    return drawn


def figure_2_4() -> Exhibit:
    mech = lw.mechanisms.parallel_four_bar_robot(1.0, 0.6)
    printed = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    rng = np.random.default_rng(24)
    open_angles = rng.uniform(-3.0, 3.0, (200, 2))
    open_angles = open_angles[np.abs(np.sin(open_angles[:, 0] - open_angles[:, 1])) > 0.2]
    q = np.stack([_parallelogram(*pair) for pair in open_angles])
    bases = np.stack([lw.constraints.null_space(mech, one, independent=("joint1", "joint2")) for one in q])
    rows = [
        (name, *(f"{x + 0.0:.10g}" for x in row))
        for name, row in zip(mech.joint_names, np.round(bases[0], 12), strict=True)
    ]
    return Exhibit(
        "Two driving links, two driven ones: with q1 and q2 independent, K of (2.44) is the same everywhere, computed "
        f"here from the loop's Jacobian at {len(q)} random positions.",
        pictures=(lw.viewer.draw(mech, _parallelogram(1.9, 0.5), labels=True),),
        tables=(Table(("joint", "by q1", "by q2"), rows),),
        compared=(
            Comparison(
                "gap of the loop on (2.48) (m)", float(np.abs(lw.constraints.position_error(mech, q)).max()), 1e-13
            ),
            compare("K: printed matrix", bases, np.broadcast_to(printed, bases.shape), 1e-10),
        ),
        remark="Lengths are not printed: 1 m and 0.6 m.",
    )


def _parallelogram(q1: float, q2: float) -> np.ndarray:
    """(2.48)."""
    return np.array([q1, q2, q1 - q2, q2 - q1 - np.pi])


# -- chapter 4 ----------------------------------------------------------------------------------------


def figure_4_2() -> Exhibit:
    mech = lw.mechanisms.loader()
    q = lw.neutral(mech)
    dofs = lw.constraints.degrees_of_freedom(mech, q)
    rows = [(body.joint, type(body.kind).__name__.lower(), body.link, f"{body.mass:g}") for body in mech.bodies]
    found = [mech.n_links, len(mech.loops), dofs]
    return Exhibit(
        "Boom, bell crank, link, bucket and two cylinders of barrel and piston each: 8 bodies, 3 loops, 2 DoF.",
        pictures=(lw.viewer.draw(mech, q, labels=True),),
        tables=(Table(("joint", "kind", "body", "mass (kg)"), rows),),
        compared=(
            compare("bodies, loops, degrees of freedom as printed", found, [8, 3, 2], 0.0),
            Comparison("gaps of the loops (m)", float(np.abs(lw.constraints.position_error(mech, q)).max()), 1e-12),
        ),
        remark="The thesis prints no dimensions or masses; these are plausible ones.",
    )


def section_4_5() -> Exhibit:
    mech = lw.mechanisms.loader()
    q = lw.neutral(mech)
    compared, tables, lines = [], [], []
    for name, independent in (("boom and bucket", ANGLES), ("cylinders", CYLINDERS)):
        model = lw.linearize(mech, q, independent=independent)
        rows = [
            (state, *(f"{x + 0.0:.5g}" for x in row))
            for state, row in zip(model.state_names, np.round(model.A, 12), strict=True)
        ]
        tables.append(Table((f"A, {name}", *model.state_names), rows))
        lines.append(f"{name}: {_listed(model.eigenvalues())}")
        differences = _by_differences(mech, q, independent)
        compared.append(compare(f"A, {name}: differences of the local state-space form", model.A, differences, 1e-6))
        compared.append(compare(f"eigenvalues, {name}: of the differences", *_both_spectra(model.A, differences), 1e-6))
    held = lw.find_equilibrium(mech, q, solve_for="tau", actuated=CYLINDERS)
    spectra = [
        np.linalg.eigvals(lw.linearize(mech, held.q, tau=held.tau, independent=x).A) for x in (ANGLES, CYLINDERS)
    ]
    compared.append(
        compare(
            "held in equilibrium: eigenvalues in both coordinates",
            _sorted_squares(spectra[0]),
            _sorted_squares(spectra[1]),
            1e-8,
        )
    )
    return Exhibit(
        "At rest, without forces in the cylinders, which is no equilibrium: the eigenvalues depend on the "
        f"coordinates, as in the print. {'; '.join(lines)}. Held by the cylinders it is one, and then they do not "
        "(Theorem 4.1.2).",
        tables=tuple(tables),
        compared=tuple(compared),
        remark="Printed for another loader's dimensions: ±0.54643 ± 1.5734i and ±0.37624 ± 1.5642i; not comparable.",
    )


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{z.real:.4f} ± {z.imag:.4f}i" for z in np.round(values, 9) + 0.0 if z.imag >= 0.0)


def _sorted_squares(values: np.ndarray) -> np.ndarray:
    """Squares of eigenvalues, which come in pairs of both signs where nothing is damped; real and imaginary parts."""
    squares = values**2
    squares = squares[np.lexsort((squares.imag.round(9), squares.real.round(9)))]
    return np.stack([squares.real, squares.imag])


def _both_spectra(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _sorted_squares(np.linalg.eigvals(left)), _sorted_squares(np.linalg.eigvals(right))


def _by_differences(mech: lw.Mechanism, q: np.ndarray, independent: Pair, step: float = 1e-3) -> np.ndarray:
    """A of (4.8): the rates of (y, dy/dt), each position found by closing the loops, by differences of fourth order."""
    chart = lw.kinematics.local_parametrization(mech, q, independent)
    start = chart.independent_state(q, np.zeros(mech.nv))

    def rate(y: np.ndarray, y_rate: np.ndarray) -> np.ndarray:
        there = chart.configuration(y, tolerance=1e-13)
        v = chart.velocity(there, y_rate)
        return np.concatenate([y_rate, chart.forward_dynamics(there, v, np.zeros(mech.nv))])

    columns = []
    for unit in np.eye(4) * step:
        samples = {k: rate(start[0] + k * unit[:2], start[1] + k * unit[2:]) for k in (-2, -1, 1, 2)}
        columns.append((8.0 * (samples[1] - samples[-1]) - (samples[2] - samples[-2])) / (12.0 * step))
    return np.array(columns).T
