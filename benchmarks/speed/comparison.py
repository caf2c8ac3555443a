"""linkwise beside other libraries: the same mechanisms, tasks, states and answers, one thread, double precision.

A comparison is a list of rows, each the time of one task for one mechanism in one library and one size of batch; every
answer is compared before its time counts.  ``comparison_report`` writes them down.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.demo.timing import best, cpu_name

from .peers import ALL, STEP, STEPS, TASKS, Peer, missing
from .peers.protocol import CLOSED, ROLLOUT
from .report import closed_states

US = "linkwise"
BATCHES = (1, 10, 100, 1_000, 10_000, 100_000)
#: Of the largest number of an answer: long chains lose digits on both sides, and semi-implicit steps of floating bases
#: differ in second order, by the frame in which velocities are added up.
TOLERANCE, OF_ROLLOUTS = 1e-6, 1e-4
#: Seconds that making a peer, or compiling code of every size of batch, may take: beyond, larger batches and mechanisms
#: are not tried; and that one call may: beyond a tenth of it is measured once, beyond all of it is the last.
PATIENCE, LONG_CALL = 10.0, 5.0
MEMORY = 400_000_000  # bytes of results in a batch


@dataclass(frozen=True)
class Row:
    """Seconds per state.  ``batch`` is 0 for single calls; ``note`` says why there is no time."""

    mechanism: str
    nv: int
    task: str
    library: str
    batch: int
    seconds: float
    error: float = 0.0
    how: str = ""
    note: str = ""


@dataclass(frozen=True)
class Settings:
    """How much is measured."""

    batches: Sequence[int] = BATCHES
    libraries: Sequence[str] = tuple(ALL)
    rounds: int = 6
    slice_seconds: float = 0.06


@dataclass
class Comparison:
    """Rows, and what was compared with what."""

    settings: Settings
    rows: list[Row] = field(default_factory=list)
    load: float = 0.0
    seconds: float = 0.0

    @property
    def versions(self) -> dict[str, str]:
        packages = ("linkwise", "numpy", "llvmlite", "pin", "mujoco", "drake", "casadi", "adam-robotics", "jax", "frax")
        found = {"python": platform.python_version(), "processor": cpu_name()}
        for package in (*packages, "jaxsim", "mujoco-mjx"):
            try:
                found[package] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                found[package] = lw.__version__ if package == "linkwise" else "not installed"
        return found


# -- what is compared -----------------------------------------------------------------------------------

CHAINS = (5, 10, 20, 50, 100, 1_000, 10_000)
OF_CHAINS = ("inverse_dynamics", "forward_dynamics")


def cases(quick: bool) -> Iterator[tuple[str, Callable[[], lw.Mechanism], Sequence[str]]]:
    """Name, maker and tasks of every mechanism."""
    if quick:
        yield "chain of 5", partial(_chain, 5), tuple(TASKS)
        yield "four-bar", lw.mechanisms.four_bar, (CLOSED,)
        return
    yield "arm, 6 joints", partial(_chain, 6), tuple(TASKS)
    yield "general arm, 7 joints", partial(_chain, 7), tuple(TASKS)
    yield "quadruped (18 DoF)", lambda: lw.mechanisms.quadruped(()), tuple(TASKS)
    yield "humanoid", lambda: lw.mechanisms.humanoid(()), tuple(TASKS)
    for n in CHAINS:
        yield f"chain of {n}", partial(_chain, n), OF_CHAINS
    for name in ("four_bar", "delta_robot", "stewart_platform"):
        yield name.replace("_", " "), getattr(lw.mechanisms, name), (CLOSED,)


def _chain(n: int) -> lw.Mechanism:
    return lw.mechanisms.chain(n).with_gravity((0.0, 0.0, -9.81))


# -- measuring ------------------------------------------------------------------------------------------


def compare(
    settings: Settings,
    chosen: Sequence[tuple[str, Callable[[], lw.Mechanism], Sequence[str]]],
    tell: Callable[[str], None] = lambda _: None,
    keep: Callable[[Comparison], object] = lambda _: None,
) -> Comparison:
    """Measure everything; one after the other, in this process.  ``keep`` gets what there is after each mechanism."""
    begun = time.perf_counter()
    found = Comparison(settings, load=os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan"))
    tired: dict[tuple[str, str], str] = {}  # library and task -> the mechanism that took too long
    before = lw.codegen.get_num_threads()
    lw.codegen.set_num_threads(1)
    try:
        for name, make, tasks in chosen:
            for task in tasks:
                tell(f"{name}: {task}")
                found.rows.extend(_task(name, make, task, settings, tired))
            found.seconds = time.perf_counter() - begun
            keep(found)
    finally:
        lw.codegen.set_num_threads(before)
    return found


def _task(
    name: str,
    make: Callable[[], lw.Mechanism],
    task: str,
    settings: Settings,
    tired: dict[tuple[str, str], str],
) -> Iterator[Row]:
    mech = make()
    if (US, task) in tired:
        yield Row(name, mech.nv, task, US, 0, float("nan"), note=f"not tried: {tired[US, task]}")
        return
    begun = time.perf_counter()
    function, states = ours(mech, task), _states(mech, task)
    few = states(16)
    expected = function(*few)
    seconds = time.perf_counter() - begun
    if seconds > PATIENCE:
        tired[US, task] = f"{name} took {seconds:.0f} s to compile"
    timed = partial(best, rounds=settings.rounds, slice_seconds=settings.slice_seconds)
    sizes = [n for n in settings.batches if n * expected[0].nbytes * (STEPS if task == ROLLOUT else 1) <= MEMORY]
    one = [x[0].copy() for x in few]
    (alone,) = timed(lambda: function(*one), repeats=_repeats(1))
    yield Row(name, mech.nv, task, US, 0, alone, how=f"compiled in {seconds:.1f} s")
    for n in sizes:
        given = states(n)
        function(*given)  # memory of results is new at the first call
        yield Row(name, mech.nv, task, US, n, timed(partial(function, *given), repeats=_repeats(n))[0] / n)
    for library in settings.libraries:
        yield from _peer_rows(name, mech, task, library, (few, expected, states, sizes), timed, tired)


def _peer_rows(
    name: str, mech: lw.Mechanism, task: str, library: str, own: Any, timed: Any, tired: dict[tuple[str, str], str]
) -> Iterator[Row]:
    few, expected, states, sizes = own
    blank = partial(Row, name, mech.nv, task, library, 0, float("nan"))
    if missing(library):
        yield blank(note=f"not installed: {', '.join(missing(library))}")
        return
    if (library, task) in tired:
        yield blank(note=f"not tried: {tired[library, task]}")
        return
    begun = time.perf_counter()
    try:
        peer = ALL[library][1](mech, task)
        if peer is None:
            yield blank(note="no such task, or not of such a mechanism")
            return
        call, result = peer.single(*(x[0] for x in few))
        error = _difference(result(), expected[0])
    except Exception as trouble:  # whatever other libraries raise is said, and does not end the comparison
        yield blank(note=f"failed: {type(trouble).__name__}: {str(trouble)[:100]}")
        return
    seconds = time.perf_counter() - begun
    if seconds > PATIENCE:
        tired[library, task] = f"{name} took {seconds:.0f} s to prepare"
    if not error < (OF_ROLLOUTS if task == ROLLOUT else TOLERANCE):
        yield blank(error=error, note=f"answers differ by {error:.1e}")
        return
    timed = partial(timed, clock=peer.clock)
    (alone,) = timed(call, repeats=_repeats(1))
    yield Row(name, mech.nv, task, peer.library, 0, alone, error, f"{peer.how} (ready in {seconds:.1f} s)")
    for row, compiling in _batches(name, mech, task, peer, states, sizes, timed, error):
        yield row
        seconds, one_call = seconds + compiling, row.seconds * min(row.batch, peer.most)
        if seconds > PATIENCE:
            tired.setdefault((library, task), f"{name} took {seconds:.0f} s to compile")
            note = f"larger batches not tried after {seconds:.0f} s of compiling"
        elif one_call > LONG_CALL:
            note = f"larger batches not tried: a call takes {one_call:.0f} s"
        else:
            continue
        for n in [n for n in sizes if n > row.batch][:1]:
            yield replace(row, batch=n, seconds=float("nan"), note=note)
        return


def _batches(
    name: str, mech: lw.Mechanism, task: str, peer: Peer, states: Any, sizes: Sequence[int], timed: Any, error: float
) -> Iterator[tuple[Row, float]]:
    """Rows, and the seconds that the first call of each took longer than others.  Of a library without batches the loop
    over a few states stands for all sizes: its time per state is the same."""
    measured: dict[int, float] = {}
    for n in sizes if peer.batch is not None else ():
        asked, compiling = min(n, peer.most), 0.0
        if asked not in measured:
            try:
                call, _ = peer.batch(*states(asked))  # type: ignore[misc]
                begun = time.perf_counter()
                call()
                compiling = time.perf_counter() - begun
                begun = time.perf_counter()
                call()
                once = time.perf_counter() - begun
                is_long = once > 0.1 * LONG_CALL
                measured[asked] = (once if is_long else timed(call, repeats=_repeats(asked))[0]) / asked
            except Exception as trouble:  # as above
                note = f"batches failed: {type(trouble).__name__}: {str(trouble)[:100]}"
                yield Row(name, mech.nv, task, peer.library, n, float("nan"), error, note=note), 0.0
                return
            compiling = max(0.0, compiling - measured[asked] * asked)
        yield Row(name, mech.nv, task, peer.library, n, measured[asked], error), compiling


def _repeats(batch: int) -> int:
    """Calls between two looks at the clock, which takes half a microsecond itself."""
    return 20 if batch <= 10 else 1


def ours(mech: lw.Mechanism, task: str) -> Callable[..., np.ndarray]:
    """A task as a function of arrays."""
    if task == CLOSED:
        return partial(lw.forward_dynamics, mech)
    if task == ROLLOUT:

        def rollout(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
            end = lw.rollout(mech, q, v, tau[..., None, :], STEP, STEPS, "semi_implicit", final_only=True)
            return np.concatenate(end, -1)

        return rollout
    return lw.compile(task, mech)


def _states(mech: lw.Mechanism, task: str) -> Callable[[int], list[np.ndarray]]:
    """Random states of one task, the same for every library."""

    def states(count: int) -> list[np.ndarray]:
        rng = np.random.default_rng(2024)
        some = min(count, 1000)
        q, v = closed_states(mech, rng, some) if task == CLOSED else lw.random_state(mech, rng, (some,))
        wanted = {"v": v, "a": rng.normal(size=v.shape), "tau": rng.normal(size=v.shape)}
        if task == ROLLOUT:  # gentle: what is chaotic within so few steps compares rounding errors
            wanted = {"v": 0.1 * v, "tau": 1e-3 * wanted["tau"]}
        arrays = [q, *(wanted[name] for name in TASKS.get(task, ("v", "tau")))]
        return [np.ascontiguousarray(np.tile(x, (-(-count // some), 1))[:count]) for x in arrays]

    return states


def _difference(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(np.asarray(found) - expected).max() / (np.abs(expected).max() or 1.0))
