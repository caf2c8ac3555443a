"""Measurements of kernels: time per state, share of the peak, ratios to the interpreter and to other libraries."""

from __future__ import annotations

import functools
import importlib.metadata
import math
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.compiler.runtime import llvm_loader
from linkwise.demo.timing import best, cpu_name

from .peak import fma_peak
from .peers import peers

ALGORITHMS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")
TOLERANCE = {"float64": 1e-8, "float32": 1e-2}  # of the largest number of an answer; ill-conditioned ones lose digits
STRAY = 0.02  # seconds for which random velocities move an assembled configuration
INTERPRETER, FEW = "NumPy, interpreted", 256  # the numpy target; so many states are enough for it


@dataclass(frozen=True)
class Conditions:
    """What was measured with what.  ``peak``: operations per second of one core."""

    versions: dict[str, str]
    cpu: str
    target: str
    lanes: int
    dtype: str
    threads: int
    batch: int
    peak: float


@dataclass(frozen=True)
class Measurement:
    """One kernel.

    batch, single   seconds per state in a batch, seconds per call with one state
    compile         seconds from nothing, or from the disk cache, to a function
    operations      scalar operations per state; None where not all of them are in compiled code, as with loops
    peak_share      of the peak of all threads that ran, in the batch; nan without operations
    against         library -> (times slower in a batch or nan, times slower for one state)
    """

    algorithm: str
    batch: float
    single: float
    compile: float
    operations: int | None
    peak_share: float
    against: dict[str, tuple[float, float]] = field(default_factory=dict)


def conditions(dtype: str, threads: int, batch: int) -> Conditions:
    """Versions, machine, and its measured peak."""
    packages = ("linkwise", "numpy", "llvmlite")
    versions = {name: _version(name) for name in packages} | {"python": platform.python_version()}
    options = llvm_loader.host_options(dtype)
    return Conditions(versions, cpu_name(), options.cpu, options.lanes, dtype, threads, batch, fma_peak(dtype))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # a checkout that is on the path, not installed
        return lw.__version__ if package == "linkwise" else "unknown"


def measure(mech: lw.Mechanism, algorithm: str, at: Conditions) -> Measurement:
    """Time one kernel under ``at``, its answers compared with every library it is set against.

    With loops, forward dynamics is ``lw.forward_dynamics``, compiled, with its checks.
    """
    rng = np.random.default_rng(0)
    if mech.loops and algorithm == "forward_dynamics":
        q, v = closed_states(mech, rng, at.batch)
        return _measure_closed(mech, (q, v, rng.normal(size=v.shape)), at)
    q, v = lw.random_state(mech, rng, (at.batch,))
    start = time.perf_counter()
    kernel = lw.compile(algorithm, mech, dtype=at.dtype)
    compile_seconds = time.perf_counter() - start
    others = () if algorithm == "mass_matrix" else (v, rng.normal(size=v.shape))
    exact = (q, *others)
    batch, single = _timed(kernel, [np.asarray(x, at.dtype) for x in exact], at)
    operations = sum(kernel.op_counts.values())
    return Measurement(
        algorithm,
        batch,
        single,
        compile_seconds,
        operations,
        operations / batch / (at.peak * at.threads),
        _against(mech, algorithm, kernel, exact, batch, single, at.dtype),
    )


def _timed(function: Callable[..., Any], states: Sequence[np.ndarray], at: Conditions) -> tuple[float, float]:
    """Seconds per state of a batch, and per call with its first state."""
    one = [x[0].copy() for x in states]
    before = lw.codegen.get_num_threads()
    lw.codegen.set_num_threads(at.threads)
    try:
        clock = time.thread_time if at.threads == 1 else time.perf_counter
        (batch,) = best(lambda: function(*states), clock=clock)
        (single,) = best(lambda: function(*one), repeats=200, slice_seconds=0.03)
    finally:
        lw.codegen.set_num_threads(before)
    return batch / len(states[0]), single


def closed_states(mech: lw.Mechanism, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """q (count, nq) and v (count, nv) with all loops closed: moved a little from one assembled configuration."""
    rest = lw.viewer.configurations.assemble_near(mech, lw.neutral(mech))
    start = np.broadcast_to(rest, (count, mech.nq))
    v = lw.constraints.project(mech, start, rng.normal(size=(count, mech.nv)))[1]
    return lw.constraints.project(mech, lw.integrate(mech, start, v, STRAY), v)


def _measure_closed(
    mech: lw.Mechanism, states: tuple[np.ndarray, np.ndarray, np.ndarray], at: Conditions
) -> Measurement:
    """Two formulations that share the compiled terms, and neither matrices nor factorizations, must agree."""
    if at.dtype != "float64":
        raise ValueError("forward dynamics of mechanisms with loops is computed in float64: choose that dtype")
    start = time.perf_counter()
    found = lw.forward_dynamics(mech, *states)
    first_seconds = time.perf_counter() - start
    _agree(found, lw.forward_dynamics(mech, *states, method="lagrange"), "its Lagrange multipliers", at.dtype)
    batch, single = _timed(functools.partial(lw.forward_dynamics, mech), states, at)
    return Measurement("forward_dynamics", batch, single, first_seconds, None, math.nan)


def _against(
    mech: lw.Mechanism,
    algorithm: str,
    kernel: lw.Kernel,
    exact: Sequence[np.ndarray],
    batch: float,
    single: float,
    dtype: str,
) -> dict[str, tuple[float, float]]:
    """How many times slower others are: in a batch, for one state."""
    interpreter = lw.compile(algorithm, mech, dtype=dtype, target="numpy")
    few = [np.asarray(x[:FEW], dtype) for x in exact]
    _agree(kernel(*few), interpreter(*few), INTERPRETER, dtype)
    one = [x[0].copy() for x in few]
    in_batch, alone = best(lambda: interpreter(*few), lambda: interpreter(*one), rounds=2)
    found = {INTERPRETER: (in_batch / len(few[0]) / batch, alone / single)}
    for peer in peers(mech, algorithm):
        call, result = peer.single(*(x[0] for x in exact))
        _agree(kernel(*one), result(), peer.library, dtype)
        (alone,) = best(call, repeats=200, slice_seconds=0.03)
        ratio = float("nan")
        if peer.batch is not None:
            call, result = peer.batch(*exact)
            _agree(kernel(*(np.asarray(x, dtype) for x in exact)), result(), peer.library, dtype)
            ratio = best(call)[0] / len(exact[0]) / batch
        found[peer.library] = (ratio, alone / single)
    return found


def _agree(found: np.ndarray, expected: np.ndarray, library: str, dtype: str) -> None:
    difference = float(np.abs(found - expected).max() / (np.abs(expected).max() or 1.0))
    if not difference < TOLERANCE[dtype]:
        raise ArithmeticError(f"the answers of linkwise and {library} differ by {difference:.1e} (relative)")
