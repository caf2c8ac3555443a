"""The pictures of docs/theory, drawn by the library.

python -m tools.theory_pictures

Run it after a change of how mechanisms are drawn, and look at what it made: docs/pictures/theory_*.png.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402 - after the choice of a backend
import numpy as np  # noqa: E402

import linkwise as lw  # noqa: E402
from linkwise import operators as op  # noqa: E402

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "0.5"


def save(figure: plt.Figure, name: str) -> None:
    figure.savefig(PICTURES / f"theory_{name}.png", dpi=110, bbox_inches="tight")
    plt.close(figure)


def frames() -> None:
    """Links, their frames and joints."""
    arm = lw.mechanisms.stanford_arm()
    picture = lw.viewer.draw(arm, [0.3, 1.2, 0.4, 0.3, 0.6, 0.0], frames=True, labels=True, masses=False)
    picture.savefig(PICTURES / "theory_frames.png", dpi=110)


def structure() -> None:
    """Which blocks of the operators of a branching tree are not zero."""
    tree = lw.mechanisms.quadruped(())
    q = lw.random_state(tree, np.random.default_rng(0))[0]
    shown = {
        r"$\mathcal{E}_\phi$: to the parent": op.E_phi,
        r"$\phi$: to all ancestors": op.phi,
        r"$H\phi M\phi^*H^*$: mass matrix": op.H @ op.phi @ op.M @ op.phi.T @ op.H.T,
        r"$I+H\phi K$: its factor": op.I + op.H @ op.phi @ op.K,
    }
    figure, axes = plt.subplots(1, 4, figsize=(12, 3.2))
    for ax, (title, operator) in zip(axes, shown.items(), strict=True):
        matrix = op.dense(operator, tree, q)
        ax.spy(np.abs(matrix) > 1e-12, markersize=120 / len(matrix), color=BLUE)
        ax.set_title(title, fontsize=10)
        ax.set_xticks([])
        ax.set_yticks([])
    save(figure, "structure")


def articulated() -> None:
    """What a hand that shakes one link of a chain feels: with the joints beyond locked, and free."""
    chain = lw.mechanisms.planar_arm(10)
    q = np.full(10, 0.25)
    locked, free = [], []
    for k in range(10):
        P = op.dense(op.P, chain, q)[6 * k : 6 * k + 6, 6 * k : 6 * k + 6]
        beyond = chain.with_locked({name: 0.25 for name in chain.joint_names[k + 1 :]})
        R = op.dense(op.M, beyond, q[: k + 1])[6 * k : 6 * k + 6, 6 * k : 6 * k + 6]
        free.append(np.linalg.eigvalsh(P[3:5, 3:5])[0])
        locked.append(np.linalg.eigvalsh(R[3:5, 3:5])[0])
    figure, ax = plt.subplots(figsize=(6, 3))
    links = np.arange(1, 11)
    ax.plot(links, locked, "o-", color=GREY, label="composite: joints beyond locked")
    ax.plot(links, free, "o-", color=ORANGE, label="articulated: joints beyond free, softest direction")
    ax.set(xlabel="link", ylabel="mass (kg)", xticks=links)
    ax.legend(frameon=False)
    save(figure, "articulated")


def filtering() -> None:
    """Variances of the joint forces of a chain with random accelerations of its links: before and after measuring."""
    chain = lw.mechanisms.planar_arm(10)
    q = np.full(10, 0.25)
    variance = np.diag(op.dense(op.H @ op.phi @ op.M @ op.phi.T @ op.H.T, chain, q))
    innovation = np.diag(op.dense(op.D, chain, q))
    figure, ax = plt.subplots(figsize=(6, 3))
    joints = np.arange(1, 11)
    ax.semilogy(joints, variance, "o-", color=GREY, label="$m_{kk}$: nothing else known")
    ax.semilogy(joints, innovation, "o-", color=BLUE, label="$D_k$: all joint forces further out known")
    ax.set(xlabel="joint", ylabel="variance, kg m$^2$", xticks=joints)
    ax.legend(frameon=False)
    save(figure, "filtering")


def singular() -> None:
    """A five-bar on its way through the singular position where it is stretched."""
    five = lw.mechanisms.five_bar()
    start = lw.constraints.assemble(five, [2.1, 1.9, 1.5, 1.9])
    rank = lw.constraints.generic_rank(five, start)
    motion = lw.simulate(five, start, None, 0.62, t_eval=0.01)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
    lw.viewer.snapshots(motion, count=5, ax=left)
    right.plot(motion.t, lw.constraints.conditioning(five, motion.q, rank), color=BLUE)
    right.set(xlabel="time (s)", ylabel="conditioning of G", ylim=(0, None))
    save(figure, "singular")


if __name__ == "__main__":
    for draw in (frames, structure, articulated, filtering, singular):
        draw()
