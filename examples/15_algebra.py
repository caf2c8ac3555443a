"""Four papers' forms of forward dynamics: proven to be one map, and simplified to what costs least on each mechanism.

python examples/15_algebra.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw
from linkwise import operators as op

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
BLUE, GREY = "#0072B2", "#BBBBBB"

v, T = op.joint_vector("v"), op.joint_vector("T")
a, b, g = op.bias_acceleration(v), op.bias_force(v), op.gravity()
WHITENING = op.I - op.H @ op.psi @ op.K
MASS_MATRIX = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R


def articulated_body() -> op.Expression:
    """rodriguez1986 Result 8.1: biases inside the filter and the smoother."""
    nu = op.D.inv @ (T - op.H @ op.psi @ (b + op.E_phi @ (op.G @ T + op.P_plus @ a)))
    alpha = op.psi.T @ (op.H.T @ nu + op.tau_bar.T @ (a + g))
    return nu - op.G.T @ (op.E_phi.T @ alpha + a + g)


#: Accelerations of the joints, as the papers write them.
FORMS = {
    "bias-free\n(rodriguez1992, 1)": MASS_MATRIX.inv @ (T - op.H @ op.phi @ (op.M @ op.phi.T @ (a + g) + b)),
    "biased\n(rodriguez1992, 3)": WHITENING.T
    @ op.D.inv
    @ (T - op.H @ op.psi @ (op.M @ op.phi.T @ (a + g) + b + op.K @ T)),
    "articulated body\n(rodriguez1986)": articulated_body(),
}
MECHANISMS = (
    lw.mechanisms.puma560(),
    lw.mechanisms.stanford_arm(),
    lw.mechanisms.planar_arm(6),
    lw.mechanisms.chain(8),
    lw.mechanisms.random_tree(9, 1, joints=("prismatic", "spherical")),
)


def operations(expression: op.Expression, mech: lw.Mechanism, simplify: bool) -> int:
    return sum(lw.compile(expression, mech, target="numpy", simplify=simplify).op_counts.values())


def difference(mech: lw.Mechanism) -> float:
    """The largest difference between the results of the forms, as written and simplified, relative to the largest."""
    rng = np.random.default_rng(0)
    q, rates = lw.random_state(mech, rng, (20,))
    inputs = {"v": rates, "T": rng.normal(size=(20, mech.nv))}
    results = []
    for form in FORMS.values():
        for simplify in (False, True):
            kernel = lw.compile(form, mech, target="numpy", simplify=simplify)
            results.append(kernel(q, *(inputs[name] for name in kernel.inputs[1:])))
    return float(np.ptp(results, axis=0).max() / np.abs(results).max())


def draw(written: np.ndarray, simplified: np.ndarray, path: Path) -> None:
    """Operations relative to the cheapest form, as written and simplified."""
    figure, plots = plt.subplots(1, len(MECHANISMS), figsize=(13.5, 3.8), sharey=True, layout="constrained")
    places = np.arange(len(FORMS))
    for axes, mech, before, after in zip(plots, MECHANISMS, written, simplified, strict=True):
        axes.bar(places - 0.2, 100 * before / after.min(), 0.4, color=GREY, label="as written")
        axes.bar(places + 0.2, 100 * after / after.min(), 0.4, color=BLUE, label="simplified")
        axes.set_title(f"{mech.name}: {after.min()}", fontsize=9)
        axes.set_xticks(places, FORMS, rotation=75, fontsize=7)
        axes.set_ylim(85, None)
        axes.grid(axis="y", alpha=0.3)
    plots[0].set_ylabel("operations, % of the cheapest form")
    plots[0].legend(frameon=False, fontsize=8)
    figure.suptitle("Forward dynamics: the same map in three forms", fontsize=11)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"picture: {path}")


if __name__ == "__main__":
    first, *others = FORMS.values()
    for name, form in zip(list(FORMS)[1:], others, strict=True):
        proof = op.prove(first, form)
        print(f"bias-free = {name.splitlines()[0]}: {proof.holds}, {len(proof.steps)} steps")
    written, simplified = (
        np.array([[operations(form, mech, simplify) for form in FORMS.values()] for mech in MECHANISMS])
        for simplify in (False, True)
    )
    for mech, before, after in zip(MECHANISMS, written, simplified, strict=True):
        print(f"{mech.name:18} as written {before}   simplified {after}   results differ by {difference(mech):.0e}")
    print("simplified, all forms cost the same:", bool((simplified == simplified[:, :1]).all()))
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw(written, simplified, FOLDER / "15_algebra.png")
