"""Mechanisms, kernels, motions and linear models as tables with a picture each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import linkwise as lw

from .html import Markup, block, folded, number, picture, preformatted, table

CURVES = 7  # coordinates that are drawn of a motion
STATES = 8  # of a linear model, whose matrices are shown


def mechanism(mech: lw.Mechanism) -> dict[str, str]:
    """Its joints, and a drawing."""
    rows = [_joint_row(mech, body) for body in mech.bodies]
    joints = table(("joint", "kind", "moves", "on", "limits", "mass (kg)"), rows, numbers=(5,))
    loops = [(constraint.name, *_sides(constraint)) for constraint in mech.loops]
    constraints = table(("constraint", "kind", "between"), loops) if loops else Markup()
    words = repr(mech)[len(f"<Mechanism {mech.name!r}: ") : -1]
    drawing = picture(lambda: lw.viewer.draw(mech, ticks=False, masses=False), f"drawing of {mech.name}")
    return block(mech.name, words, drawing, Markup(joints + constraints))


def _joint_row(mech: lw.Mechanism, body: Any) -> tuple[Any, ...]:
    kind = type(body.kind).__name__.lower()
    if body.mimic:
        kind += f", mimics {body.mimic.joint}"
    parent = "ground" if body.parent < 0 else mech.link_names[body.parent]
    limits = zip(body.limits.lower, body.limits.upper, strict=True)
    bounds = [f"{number(low)} .. {number(high)}" for low, high in limits if math.isfinite(low) or math.isfinite(high)]
    return body.joint, kind, body.link, parent, ", ".join(bounds), number(body.mass)


def _sides(loop: Any) -> tuple[str, str]:
    if isinstance(loop, lw.constraints.Loop):
        return type(loop.kind).__name__.lower(), f"{loop.link_a}, {loop.link_b}"
    return type(loop).__name__.lower(), ", ".join(map(str, getattr(loop, "ratios", ())))


def kernel(shown: lw.Kernel) -> dict[str, str]:
    """Inputs, outputs, cost and sweeps of a kernel."""
    shapes = [*(("takes", *item) for item in shown.input_shapes.items())]
    shapes += [("gives", *item) for item in shown.output_shapes.items()]
    arrays = table(("", "array", "shape of one state"), [(label, name, str(shape)) for label, name, shape in shapes])
    counts = shown.op_counts
    costs = table(("operations", "of one state"), [*counts.items(), ("in all", sum(counts.values()))], numbers=(1,))
    plan = folded("plan", preformatted(shown.plan()))
    return block(f"Kernel {shown.name}", f"{shown.dtype}, target {shown.target}", arrays, costs, plan)


def trajectory(motion: lw.Trajectory) -> dict[str, str]:
    """Start, end and extremes of each coordinate, and the curves of the first ones."""
    words = repr(motion).partition(": ")[2][:-1]
    mech, batch = motion.mechanism, motion.q.shape[1:-1]
    if batch:
        words += f", batch {batch}"
    title = f"Trajectory of {mech.name}"
    if not motion.q.size:
        return block(title, words)
    q = motion.q.reshape(len(motion.q), -1, mech.nq)
    columns = (q[0].min(0), q[0].max(0), q[-1].min(0), q[-1].max(0), q.min((0, 1)), q.max((0, 1)))
    heads = ["first", "first, to", "last", "last, to", "lowest", "highest"]
    shown = range(6) if batch else (0, 2, 4, 5)
    names = mech.coordinates.names("q")
    rows = [(name, *(number(columns[k][i]) for k in shown)) for i, name in enumerate(names)]
    extremes = table(["q", *(heads[k] for k in shown)], rows, numbers=range(1, 7))
    return block(title, words, picture(lambda: _curves(motion), f"coordinates of {mech.name} over time"), extremes)


def _curves(motion: lw.Trajectory) -> Any:
    """Coordinates over time, of the first motion of a batch."""
    from linkwise.viewer import style

    @style.styled
    def draw() -> Any:
        figure, axes = style.subplots(width=3.4, height=2.4)
        first = motion.q.reshape(len(motion.q), -1, motion.mechanism.nq)[:, 0]
        for k, name in enumerate(motion.mechanism.coordinates.names("q")[:CURVES]):
            axes.plot(motion.t, first[:, k], label=name)
        axes.set_xlabel("t (s)")
        axes.legend(fontsize=6)
        return figure

    return draw()


def state_space(model: lw.control.StateSpace) -> dict[str, str]:
    """The matrices of a small model, the eigenvalues, and where they are in the plane."""
    words = repr(model).partition(", ")[2][:-1]
    title = f"StateSpace of {model.mechanism.name}"
    if model.A.ndim > 2:
        return block(title, words)
    names = model.state_names
    heads = ["d/dt of", *names, *(f"u: {name}" for name in model.input_names), "drift"]
    rows = [(name, *(number(x) for x in row)) for name, row in zip(names, model.shown(), strict=True)]
    matrices = table(heads, rows, numbers=range(1, len(heads)), many=len(rows))
    if len(names) > STATES:
        matrices = folded("matrices", matrices)
    values = [(_complex(value),) for value in model.eigenvalues()]
    plane = picture(lambda: lw.viewer.plot_eigenvalues(model), "eigenvalues in the complex plane")
    return block(title, words, plane, table(("eigenvalue (1/s)",), values, numbers=(0,)), matrices)


def _complex(value: complex) -> str:
    small = 1e-12 * abs(value)
    real, imaginary = (0.0 if abs(x) <= small else x for x in (value.real, value.imag))
    return f"{real:.4g}" if not imaginary else f"{real:.4g} {'-' if imaginary < 0 else '+'} {abs(imaginary):.4g}j"


def modes(result: Any) -> dict[str, str]:
    """Frequencies, damping, and the largest displacements of each mode."""
    rows = []
    for k, value in enumerate(result.eigenvalues):
        shape = result.shapes[:, k]
        order = np.argsort(-np.abs(shape), kind="stable")[:3]
        moved = ", ".join(f"{result.coordinates[i]} {shape[i].real:.2f}" for i in order if abs(shape[i]) > 0.01)
        ratio = result.damping_ratios[k]
        rows.append((number(result.frequencies_hz[k]), number(ratio) if value else "-", _complex(value), moved))
    head = ("frequency (Hz)", "damping ratio", "eigenvalue (1/s)", "largest displacements")
    return block("Modes", f"{len(rows)}, slowest first", table(head, rows, numbers=(0, 1, 2)))


ENDS = ("lowest", "highest")
VERDICTS = {True: "proven", False: "does not hold", None: "not settled"}


def expression(formula: Any) -> dict[str, str]:
    """The formula in the notation of the papers."""
    return {"text/latex": rf"$\displaystyle {formula.latex()}$"}


def proof(shown: Any) -> dict[str, str]:
    """The chain of equal forms, each with its reason."""
    if shown.holds is not True:
        return block("Proof", VERDICTS[shown.holds], preformatted(str(shown)))
    claim = str(shown).partition("\n")[0]
    lemmas = [("lemma", *str(lemma).partition("\n")[::2]) for lemma in shown.lemmas]
    steps = [("", claim.partition(" = ")[0], ""), *(("=", step.form, step.reason) for step in shown.steps)]
    rows = [*((kind, form, "") for kind, form, _ in lemmas), *steps]
    return block(claim, VERDICTS[True], table(("", "form", "because"), rows, many=len(rows)))


def inverse_kinematics(result: Any) -> dict[str, str]:
    """The configuration that was found, by joint; of many the largest errors."""
    mech, words = result.mechanism, str(result).partition(": ")[2]
    title = f"Inverse kinematics of {mech.name}"
    if result.q.ndim > 1:
        return block(title, words)
    names = mech.coordinates.names("q")
    rows = [(name, number(x)) for name, x in zip(names, result.q, strict=True)]
    return block(title, words, table(("q", "found"), rows, numbers=(1,)))


def range_of_motion(motion_range: Any) -> dict[str, str]:
    """The limits of a range, their causes, and the other coordinates over this one."""
    rows = [(name, number(end.value), end.cause, end.joint) for name, end in zip(ENDS, motion_range.ends, strict=True)]
    rows += [("dead centre", number(end.value), "", "") for end in motion_range.dead_centres]
    ends = table(("", motion_range.coordinate, "what stops it", "joint"), rows, numbers=(1,))
    curves = picture(lambda: lw.viewer.plot_range(motion_range), f"other coordinates over {motion_range.coordinate}")
    return block(f"Range of {motion_range.coordinate}", f"of {motion_range.mechanism.name}", curves, ends)


def text(value: Any) -> dict[str, str]:
    """Its own lines."""
    return {"text/html": preformatted(str(value))}
