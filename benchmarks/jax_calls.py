"""What calls through JAX cost over the kernels themselves: one state, where JAX's own way of calling counts, and
batches that ``jax.vmap`` makes.

    python benchmarks/jax_calls.py [--seconds 2]

Every time is the best of many; what is compared takes turns, so that all of it meets the same conditions.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

import linkwise as lw
import linkwise.jax as lwj

NAMES = ("forward_dynamics", "inverse_dynamics", "mass_matrix")
BATCH = 4096


def best(calls: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Microseconds by name."""
    found = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            found[name] = min(found[name], 1e6 * (time.perf_counter() - start))
    return found


def compared(mech: lw.Mechanism, name: str, batch: tuple[int, ...], seconds: float) -> dict[str, float]:
    """A kernel, the same compiled by JAX, and a sum of the arguments, which is all JAX's own."""
    kernel = lw.compile(name, mech)
    given = np.random.default_rng(0).normal(size=(len(kernel.inputs), *batch, mech.nv))
    inside = [jnp.asarray(x) for x in given]
    function = jax.jit(jax.vmap(lambda *x: getattr(lwj, name)(mech, *x)) if batch else lwj.differentiable(kernel))
    total = jax.jit(lambda *x: sum(x))
    calls = {
        "kernel": lambda: kernel(*given),
        "JAX": lambda: function(*inside).block_until_ready(),
        "sum": lambda: total(*inside).block_until_ready(),
    }
    return best(calls, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each comparison")
    seconds = parser.parse_args().seconds
    jax.config.update("jax_enable_x64", True)
    arm = lw.mechanisms.puma560()
    print(f"one state of {arm.name}, microseconds")
    for name in NAMES:
        t = compared(arm, name, (), seconds)
        print(
            f"  {name:17} kernel {t['kernel']:6.2f}   JAX {t['JAX']:6.2f}, {t['JAX'] - t['sum']:5.2f} of that beside "
            f"what it needs for a sum"
        )
    for threads in sorted({1, lw.codegen.get_num_threads()}):
        lw.codegen.set_num_threads(threads)
        print(f"{BATCH} states, jit(vmap(f)), {threads} thread{'s' * (threads > 1)}, microseconds")
        for name in NAMES:
            t = compared(arm, name, (BATCH,), seconds)
            print(f"  {name:17} kernel {t['kernel']:6.0f}   JAX {t['JAX']:6.0f}   ratio {t['JAX'] / t['kernel']:.2f}")


if __name__ == "__main__":
    main()
