"""Closed-chain forward dynamics of the five-bar against its tree forward dynamics plus the SVD of its Jacobian."""

from __future__ import annotations

import numpy as np

import linkwise as lw
from benchmarks.speed import best


def main() -> None:
    mech = lw.mechanisms.five_bar()
    tree = mech.spanning_tree
    rng = np.random.default_rng(0)
    symmetric = [2 * np.pi / 3, np.pi / 3 + np.arccos(2 / 3), 2 * np.arcsin(2 / 3), np.pi / 3 + np.arccos(2 / 3)]
    lw.codegen.set_num_threads(1)
    print("five-bar, one thread, double precision: closed / (tree forward dynamics + SVD of G)")
    for count in (1, 1000):
        q, v = lw.constraints.project(
            mech, symmetric + 0.02 * rng.normal(size=(count, 4)), np.ones((count, 4)), largest=1.0
        )
        tau = rng.normal(size=(count, 4))
        if count == 1:
            q, v, tau = q[0], v[0], tau[0]
        jacobian = lw.constraints.constraint_jacobian(mech, q)
        seconds = best(
            lambda q=q, v=v, tau=tau: lw.forward_dynamics(mech, q, v, tau),
            lambda q=q, v=v, tau=tau: lw.forward_dynamics(tree, q, v, tau),
            lambda jacobian=jacobian: np.linalg.svd(jacobian),
            repeats=100 if count == 1 else 1,
        )
        closed, open_chain, svd = (x / count for x in seconds)
        print(
            f"batch {count:5d}: closed {closed * 1e6:6.2f} us, tree {open_chain * 1e6:5.3f} us, "
            f"SVD {svd * 1e6:5.2f} us, ratio {closed / (open_chain + svd):.2f}"
        )


if __name__ == "__main__":
    main()
