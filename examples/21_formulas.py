"""Closed formulas of three textbook mechanisms, in symbols named after joints and parameters, as pages of mathematics.

python examples/21_formulas.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")


def double_pendulum() -> lw.Mechanism:
    """Two bodies on hinges, hanging at q = 0."""
    builder = lw.Builder()
    builder.link("upper", 1.3, (0, 0, -0.4), (0.02, 0.03, 0.02)).link("lower", 0.7, (0, 0, -0.3), (0.01, 0.02, 0.015))
    builder.joint("shoulder", lw.Revolute((0, 1, 0)), "ground", "upper")
    builder.joint("elbow", lw.Revolute((0, 1, 0)), "upper", "lower", (None, (0, 0, -0.9)))
    return builder.build("double_pendulum")


def cart_pole() -> lw.Mechanism:
    """A pole on a cart, upright at q = 0."""
    builder = lw.Builder().link("cart", 2.0, (0, 0, 0), np.eye(3)).link("pole", 0.3, (0, 0, 0.4), (0.01, 0.01, 0.001))
    builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "cart")
    builder.joint("hinge", lw.Revolute((0, 1, 0)), "cart", "pole")
    return builder.build("cart_pole")


def difference(formulas: lw.codegen.Formulas, mech: lw.Mechanism, algorithm: str) -> float:
    """How far the formulas are from the compiled kernel, at random states."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(20, *shape)) for _, shape, _ in formulas.inputs]
    expected = getattr(lw, algorithm)(mech, *arrays)
    return np.abs(formulas(*arrays) - expected).max() / np.abs(expected).max()


def page(title: str, parts: list[tuple[str, lw.codegen.Formulas]], path: Path) -> None:
    """A picture of the formulas; its height follows from their number."""
    lines: list[tuple[str, str]] = []
    for heading, formulas in parts:
        lines.append(("heading", heading))
        body = formulas.latex(width=80).split("\n", 1)[1].rsplit("\n", 1)[0]
        for line in body.split("\\\\"):
            tall = r"\Delta}" in line
            line = line.strip().replace("&", "")
            lines.append(("fraction", line.replace(r"\frac", r"\dfrac")) if tall else ("formula", line))
    heights = [{"formula": 0.42, "fraction": 0.66, "heading": 0.5}[kind] for kind, _ in lines]
    total = sum(heights) + 0.9
    figure = plt.figure(figsize=(9.6, total))
    figure.text(0.03, 1.0 - 0.45 / total, title, fontsize=15, weight="bold", va="center")
    top = 0.8
    for (kind, line), height in zip(lines, heights, strict=True):
        top += height / 2
        place = 1.0 - top / total
        if kind != "heading":
            figure.text(0.05, place, f"${line}$", fontsize=13, va="center", math_fontfamily="cm")
        else:
            figure.text(0.03, place, line, fontsize=11, va="center", color="#444444")
        top += height / 2
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"picture: {path}")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    pendulum, arm, cart = double_pendulum(), lw.mechanisms.planar_arm(3), cart_pole()
    rods = {f"r{k}": f"l{k}/2" for k in (1, 2, 3)} | {f"I{k}": f"m{k}*l{k}**2/12" for k in (1, 2, 3)}
    pages = (
        (
            "Double pendulum",
            "double_pendulum",
            pendulum,
            ("mass_matrix", "inverse_dynamics", "mass_matrix_inverse"),
            None,
        ),
        ("Three uniform rods (saha1999, Section 6.1)", "planar_arm", arm, ("inverse_dynamics",), rods),
        ("Cart and pole", "cart_pole", cart, ("mass_matrix", "forward_dynamics"), None),
    )
    headings = {
        "mass_matrix": "mass matrix",
        "inverse_dynamics": "joint torques",
        "mass_matrix_inverse": "inverse of the mass matrix",
        "forward_dynamics": "accelerations",
    }
    for title, name, mech, algorithms, symbols in pages:
        found = [(algorithm, lw.codegen.symbolic(mech, algorithm, symbols)) for algorithm in algorithms]
        print(f"\n{title}\n{found[0][1]}")
        worst = max(difference(formulas, mech, algorithm) for algorithm, formulas in found)
        print(f"largest difference to the compiled kernels: {worst:.0e}")
        page(title, [(headings[algorithm], formulas) for algorithm, formulas in found], FOLDER / f"21_{name}.png")


if __name__ == "__main__":
    main()
