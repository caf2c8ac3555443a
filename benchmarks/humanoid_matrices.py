"""Mass matrix, its inverse and derivatives of a humanoid (Talos, floating base) against Pinocchio, on one core.

``out=`` is given; Pinocchio is called once per state from Python.  Its crba and computeMinverse write one half of a
symmetric matrix, ours both: the second ratio is against Pinocchio with the other half copied too, by NumPy's fastest
way, which is what a caller needs who wants the matrix.  All answers are compared before times count.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from tree_dynamics import Pair, best, cpu_name, pair, pin

import linkwise as lw
from linkwise.compiler.runtime import threads

BATCHES = (64, 256, 1024)
MATRICES = {"mass_matrix": pin.crba, "mass_matrix_inverse": pin.computeMinverse}
DERIVATIVES = {
    "inverse_dynamics_derivatives": pin.computeRNEADerivatives,
    "forward_dynamics_derivatives": pin.computeABADerivatives,
}


def measure(both: Pair, algorithm: str, batch: int) -> tuple[float, float, float, float, float]:
    """ns per state of ours, Pinocchio's and, of matrices, Pinocchio's with both halves; seconds to compile or load; and
    the largest relative difference."""
    mech, model, q_order, v_order = both
    rng = np.random.default_rng(2024)
    q, v = lw.random_state(mech, rng, (batch,))
    given = [q] if algorithm in MATRICES else [q, v, rng.normal(size=v.shape)]
    orders = [q_order, v_order, v_order]
    start = time.perf_counter()
    kernel = lw.compile(algorithm, mech)
    seconds = time.perf_counter() - start
    found = kernel(*given)
    data, peer = model.createData(), (MATRICES | DERIVATIVES)[algorithm]
    states = [np.ascontiguousarray(x[:, order]) for x, order in zip(given, orders, strict=False)]
    lower = np.tri(mech.nv, k=-1, dtype=bool)

    def halves() -> None:
        for state in zip(*states, strict=True):
            peer(model, data, *state)

    def wholes() -> None:
        for state in zip(*states, strict=True):
            matrix = peer(model, data, *state)
            np.copyto(matrix, matrix.T, where=lower)

    error = 0.0
    for k in range(0, batch, 16):
        matrix = peer(model, data, *(x[k] for x in states))
        if algorithm in MATRICES:
            pairs = [(found[k], np.triu(matrix) + np.triu(matrix, 1).T)]
        else:
            theirs = (data.ddq_dq, data.ddq_dv) if algorithm.startswith("forward") else (data.dtau_dq, data.dtau_dv)
            pairs = list(zip(found[k][:2], theirs, strict=True))
        for own, other in pairs:
            error = max(error, float(np.abs(own[np.ix_(v_order, v_order)] - other).max() / np.abs(other).max()))
    if not error < 1e-9:
        raise SystemExit(f"{algorithm}: the answers differ by {error:.1e} (relative)")
    calls = [lambda: kernel(*given, out=found), halves, *([wholes] if algorithm in MATRICES else [])]
    times = [1e9 * x / batch for x in best(*calls, rounds=12, slice_seconds=0.1)]
    return (*times, *[float("nan")] * (3 - len(times)), seconds, error)  # type: ignore[return-value]


def main() -> None:
    threads.set_num_threads(1)
    name = sys.argv[1] if len(sys.argv) > 1 else "Talos, floating"
    both = pair(name)
    print(f"linkwise {lw.__version__}, Pinocchio {pin.__version__}; {cpu_name()}, one thread, float64; {name}\n")
    print(f"{'algorithm':30} batch  ns per state  ratio  ratio, both halves  difference  compile or load s")
    lowest = {}
    for algorithm in (*MATRICES, *DERIVATIVES):
        for batch in BATCHES:
            own, half, whole, seconds, error = measure(both, algorithm, batch)
            lowest[algorithm, batch] = half / own
            print(
                f"{algorithm:30} {batch:5}  {own:12.0f}  {half / own:5.1f}  {whole / own:18.1f}  {error:10.1e}  "
                f"{seconds:17.2f}"
            )
    (algorithm, batch), ratio = min(lowest.items(), key=lambda item: item[1])
    print(f"\nRATIO to Pinocchio: {ratio:.1f} ({algorithm}, batch {batch}) to {max(lowest.values()):.1f}")


if __name__ == "__main__":
    main()
