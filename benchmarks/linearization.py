"""Linearization of the loader against its own closed forward dynamics: one state, and a batch."""

from __future__ import annotations

import numpy as np

import linkwise as lw
from benchmarks.speed import best


def main() -> None:
    mech = lw.mechanisms.loader()
    rng = np.random.default_rng(0)
    lw.codegen.set_num_threads(1)
    steps = 0.05 * rng.normal(size=(1000, 2))
    basis = lw.constraints.null_space(mech, lw.neutral(mech))
    guesses = lw.integrate(mech, lw.neutral(mech), steps @ basis.T, 1.0)
    q, v = lw.constraints.project(mech, guesses, rng.normal(size=(1000, mech.nv)), largest=1.0)
    tau = rng.normal(size=(1000, mech.nv))
    print("loader, one thread: linearize / forward_dynamics")
    for count, repeats in ((1, 100), (1000, 1)):
        state = (q[0], v[0], tau[0]) if count == 1 else (q, v, tau)
        seconds = best(
            lambda state=state: lw.linearize(mech, *state),
            lambda state=state: lw.forward_dynamics(mech, *state),
            repeats=repeats,
        )
        model, motion = (x / count for x in seconds)
        print(
            f"batch {count:5d}: linearize {model * 1e6:6.1f} us, forward dynamics {motion * 1e6:5.1f} us, "
            f"ratio {model / motion:.2f}"
        )


if __name__ == "__main__":
    main()
