"""CUDA kernels on the GPU at hand: are they right, and how fast, through the public calls.

    python benchmarks/gpu.py [--robots FOLDER] [--part checks,libraries,rates,latency,rollouts,closed,derivatives,mjx]

Results are compared with the NumPy reference first.  Rates are billions of states (or steps) per second from CUDA
events, the best of several rounds; writes ``benchmarks/results/gpu-<device>.md``.  ``--robots`` is the folder
``robots`` of example-robot-data, found with Pinocchio if that is installed.
Every algorithm on every mechanism: ``python -m tools.catalogue_on_host --gpu``.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
import platform
import tempfile
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import cupy
import numpy as np
from gpu_cases import (
    CHECKED,
    DTYPES,
    FAILED,
    OTHER,
    TOLERANCES,
    VARIANTS,
    check,
    found_robots,
    initial_states,
    mechanism,
    states,
)

import linkwise as lw

RESULTS = Path(__file__).parent / "results"
CHECK_SECONDS = 130  # checks that are not done by then are listed as such
STATES = 1 << 22


# -- right ----------------------------------------------------------------------------------------------


def checks(robots: Path) -> list[str]:
    return checked(robots, CHECKED, CHECK_SECONDS)


def checked(robots: Path, chosen: dict[str, Sequence[str]], patience: float | None) -> list[str]:
    tasks = [(m, a, dtype) for m, names in chosen.items() for a in names if a in VARIANTS for dtype in DTYPES]
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(min(14, multiprocessing.cpu_count()), mp_context=context)
    found = {pool.submit(check, *task, robots): task for task in sorted(tasks, key=lambda t: t[0] != "Talos")}
    done, late = concurrent.futures.wait(found, timeout=patience)
    for process in list(pool._processes.values()):
        process.terminate()
    lines, slow, wrong = ["## Right", "", "| mechanism | precision | checked | largest relative error | of |"], [], []
    lines += ["| --- | --- | --- | --- | --- |"]
    results = {found[future]: future.result() for future in done if not future.exception()}
    lost = [found[future] for future in done if future.exception()]
    for name in chosen:
        for dtype in DTYPES:
            mine = {a: x for (m, a, d), x in results.items() if (m, d) == (name, dtype)}
            own = {a: x for a, x in mine.items() if not x.note.startswith((OTHER, FAILED))}
            if own:
                worst = max(own, key=lambda a: own[a].error)
                lines.append(f"| {name} | {dtype} | {len(own)} | {own[worst].error:.1e} | {worst} |")
            slow += [f"{name} {a} {dtype} {x.seconds:.0f} s" for a, x in own.items() if x.seconds > 10.0]
            wrong += [f"- {name}, {dtype}: {a} {x.note}" for a, x in own.items() if x.note]
            wrong += [f"- {name}, {dtype}: {a} {x.note}" for a, x in mine.items() if x.note.startswith(FAILED)]
    lines += ["", f"Tolerances {TOLERANCES}.", "", *wrong, *(f"- the process of {task} ended" for task in lost)]
    lines += [f"- not done after {patience} s: {', '.join(str(found[future]) for future in late)}"] if late else []
    lines += [f"- longer than 10 s to compile: {', '.join(slow)}"] if slow else []
    return lines


def libraries(robots: Path) -> list[str]:
    """Arrays of other libraries through a public function: type of the result, and whether it is right."""
    mech, lines = mechanism("UR5", robots), ["## Arrays of other libraries, `forward_dynamics(ur5, ...)`", ""]
    kernel = lw.compile("forward_dynamics", mech, target="numpy")
    arrays = states(mech, kernel, 1000)
    expected = kernel(*arrays)

    def report(name: str, given: list, read) -> None:
        result = lw.forward_dynamics(mech, *given)
        error = np.abs(read(result) - expected).max() / np.abs(expected).max()
        lines.append(f"- {name}: {type(result).__module__}.{type(result).__name__} {result.dtype}, error {error:.0e}")

    report("CuPy", list(map(cupy.asarray, arrays)), cupy.asnumpy)
    try:
        import torch

        tensors = [torch.from_numpy(x).cuda() for x in arrays]
        report("torch", tensors, lambda x: x.cpu().numpy())
        with torch.cuda.stream(torch.cuda.Stream()):
            report("torch, on a stream", [x.clone() for x in tensors], lambda x: x.cpu().numpy())
    except ImportError:
        lines.append("- torch is not installed")
    try:
        import jax

        report("JAX", [jax.device_put(x.astype(np.float32)) for x in arrays], np.asarray)
    except ImportError:
        lines.append("- JAX is not installed")
    q, v, tau = map(cupy.asarray, arrays)
    trajectory = lw.rollout(mech, q, v, tau[:, None], 0.001, 10)
    reference = lw.rollout(mech, arrays[0], arrays[1], arrays[2][:, None], 0.001, 10, target="numpy")
    errors = [
        float(np.abs(cupy.asnumpy(x) - y).max() / np.abs(y).max()) for x, y in zip(trajectory, reference, strict=True)
    ]
    return [*lines, f"- rollout, CuPy, 10 steps of RK4: {type(trajectory[0]).__module__}, error {max(errors):.0e}"]


# -- fast -----------------------------------------------------------------------------------------------


def seconds(call, rounds: int = 4, repeats: int = 10) -> float:
    """Of one call on the device: the best of several rounds."""
    call()
    start, end, found = cupy.cuda.Event(), cupy.cuda.Event(), []
    for _ in range(rounds):
        start.record()
        for _ in range(repeats):
            call()
        end.record()
        end.synchronize()
        found.append(cupy.cuda.get_elapsed_time(start, end) / 1e3 / repeats)
    return min(found)


def copy_bandwidth() -> float:
    """Bytes read and written per second by a copy on the device."""
    source = cupy.zeros(1 << 29, np.float32)
    target = cupy.empty_like(source)
    return 2 * source.nbytes / seconds(lambda: cupy.copyto(target, source))


def columns(x: cupy.ndarray) -> cupy.ndarray:
    return cupy.ascontiguousarray(x.T).T


RATES = {  # mechanism, algorithm: what the public call must reach in billions of states per second, f32 and f64
    ("UR5", "inverse_dynamics"): (30.0, 16.0),
    ("UR5", "forward_dynamics"): (26.0, 15.0),
    ("Panda", "forward_dynamics"): (17.0, 8.0),
    ("chain(20)", "forward_dynamics"): (None, 1.2),
    ("Talos", "inverse_dynamics"): (4.0, 2.0),
    ("Talos", "forward_dynamics"): (2.0, 0.8),
}


def rates(robots: Path) -> list[str]:
    bandwidth = copy_bandwidth()
    lines = [
        "## Calls with arrays on the device",
        "",
        f"{STATES} states, billions of states per second; copy bandwidth {bandwidth / 1e12:.2f} TB/s.  Kernel alone: "
        "(n, batch) and `out`, its share of the copy bandwidth beside it.",
        "",
        "| | precision | kernel alone | share | (batch, n) | with `out` | (n, batch) with `out` | wanted | compile |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (name, algorithm), wanted in RATES.items():
        mech = mechanism(name, robots)
        for dtype, least in zip(DTYPES, wanted, strict=True):
            kernel = lw.compile(algorithm, mech, dtype=dtype, target="cuda")
            small = states(mech, kernel, 4096)
            arrays = [cupy.asarray(np.tile(x, (STATES // 4096, 1)).astype(dtype)) for x in small]
            begin = time.perf_counter()
            out = kernel(*arrays)
            cupy.cuda.Device().synchronize()
            compiling = time.perf_counter() - begin
            across, out_across = [columns(x) for x in arrays], columns(out)
            times = [
                seconds(partial(kernel, *across, out=out_across)),
                seconds(partial(kernel, *arrays)),
                seconds(partial(kernel, *arrays, out=out)),
            ]
            alone, call, given = (STATES / x / 1e9 for x in times)
            moved = sum(x.nbytes for x in (*arrays, out)) / times[0] / bandwidth
            found = "met" if call >= (least or 0) else "met by (n, batch) alone" if alone >= (least or 0) else "NOT met"
            goal = "" if least is None else f"{least:g}: {found}"
            lines.append(
                f"| {name} {algorithm} | {dtype} | {alone:.2f} | {100 * moved:.0f} % | {call:.2f} | {given:.2f} | "
                f"{alone:.2f} | {goal} | {compiling:.1f} s |"
            )
            print(lines[-1], flush=True)
            cupy.get_default_memory_pool().free_all_blocks()
    return lines


def latency(robots: Path) -> list[str]:
    mech = mechanism("UR5", robots)
    empty = cupy.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
    device = cupy.cuda.Device()
    lines = ["## Latency, UR5 forward dynamics, 4096 states, synchronised after each call", ""]

    def each(call, repeats: int = 2000) -> float:
        found = []
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(repeats):
                call()
                device.synchronize()
            found.append((time.perf_counter() - start) / repeats)
        return 1e6 * min(found)

    bare = each(lambda: empty((1,), (1,), ()))
    for dtype in DTYPES:
        kernel = lw.compile("forward_dynamics", mech, dtype=dtype, target="cuda")
        arrays = [cupy.asarray(x.astype(dtype)) for x in states(mech, kernel, 4096)]
        out = kernel(*arrays)
        calls = {
            "kernel": partial(kernel, *arrays),
            "kernel with `out`": partial(kernel, *arrays, out=out),
            "`forward_dynamics(ur5, ...)`": partial(lw.forward_dynamics, mech, *arrays),
        }
        for name, call in calls.items():
            call()
            found = each(call)
            verdict = "met" if found <= 3 * bare else "NOT met"
            lines.append(
                f"- {dtype}, {name}: {found:.1f} us, {found / bare:.2f} bare launches ({bare:.1f} us): {verdict}"
            )
    return lines


ROLLOUTS = {  # mechanism: states, and what must be reached in billions of steps per second, f32 and f64
    "UR5": (1 << 19, (6.0, 2.5)),
    "Panda": (1 << 18, (None, None)),
    "Talos": (1 << 17, (0.2, None)),
    "five-bar": (1 << 20, (1.0, None)),
}


def rollouts(robots: Path) -> list[str]:
    lines = ["## Rollouts, RK4, billions of steps per second", ""]
    lines += ["Closed mechanisms: that initial states are closed first counts.", ""]
    lines += ["| | precision | states | steps | last state | trajectory kept | wanted |", "| --- |" + " --- |" * 6]
    for name, (count, wanted) in ROLLOUTS.items():
        mech = mechanism(name, robots)
        steps = 500 if mech.loops else 50
        small = initial_states(mech, 4096)
        for dtype, least in zip(DTYPES, wanted, strict=True):
            if (name, dtype) == ("Talos", "float64"):
                continue  # it takes longest to compile, and nothing is wanted of it
            q, v = (cupy.asarray(np.tile(x, (count // 4096, 1)).astype(dtype)) for x in small)
            tau = cupy.zeros((1, mech.nv), dtype)
            dt = np.asarray(1e-3, dtype)
            last = seconds(partial(lw.rollout, mech, q, v, tau, dt, steps, final_only=True), 3, 3)
            kept = seconds(partial(lw.rollout, mech, q, v, tau, dt, steps, every=steps // 50), 3, 3)
            last, kept = (count * steps / x / 1e9 for x in (last, kept))
            goal = "" if least is None else f"{least:g}: {'met' if last >= least else 'NOT met'}"
            lines.append(f"| {name} | {dtype} | {count} | {steps} | {last:.2f} | {kept:.2f} | {goal} |")
            print(lines[-1], flush=True)
            cupy.get_default_memory_pool().free_all_blocks()
    return lines


def closed(robots: Path) -> list[str]:
    """Rollouts of closed mechanisms against the CPU, through singular positions too."""
    lines = ["## Rollouts of closed mechanisms against those on the CPU, 300 steps of 1 ms", ""]
    for name in ("five-bar", "Stewart platform"):
        mech = mechanism(name, robots)
        q, v = initial_states(mech, 256)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.MechanismWarning)
            expected = lw.rollout(mech, q, v, None, 1e-3, 300)
            found = lw.rollout(mech, cupy.asarray(q), cupy.asarray(v), None, 1e-3, 300)
        difference = np.abs(cupy.asnumpy(found[0]) - expected[0]).max(axis=(-2, -1))
        gap = np.abs(lw.constraints.position_error(mech, cupy.asnumpy(found[0][:, -1]))).max()
        quantiles = ", ".join(f"{np.quantile(difference, x):.0e}" for x in (0.5, 0.9, 1.0))
        lines.append(f"- {name}, float64: median, 90 percent and largest difference {quantiles}; largest gap {gap:.0e}")
    return lines


MJX_STATES, MJX_STEPS = 1 << 15, 50


def mjx(robots: Path) -> list[str]:
    """The same UR5 in MJX: RK4 steps, float32, without what does not act here."""
    lines = ["## Beside MJX: UR5, RK4, float32", ""]
    try:
        import jax
        import mujoco
        from mujoco import mjx as peer
    except ImportError as error:
        return [*lines, f"- not compared: {error}"]
    mech = mechanism("UR5", robots)
    file = Path(tempfile.mkdtemp()) / "ur5.xml"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        mech.save(file)
    model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-3
    for flag in ("CONSTRAINT", "CONTACT", "EQUALITY", "FRICTIONLOSS", "LIMIT", "ACTUATION"):
        model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
    there, data = peer.put_model(model), peer.make_data(model)
    q, v = (x.astype(np.float32) for x in lw.random_state(mech, np.random.default_rng(0), (MJX_STATES,)))

    @jax.jit
    def run(q, v):
        def one(q, v):
            state = data.replace(qpos=q, qvel=v)
            end, _ = jax.lax.scan(lambda d, _: (peer.step(there, d), None), state, None, length=MJX_STEPS)
            return end.qpos, end.qvel

        return jax.vmap(one)(q, v)

    on_jax = [jax.device_put(x) for x in (q, v)]
    begin = time.perf_counter()
    theirs = jax.block_until_ready(run(*on_jax))
    compiling = time.perf_counter() - begin
    taken = []
    for _ in range(3):
        begin = time.perf_counter()
        jax.block_until_ready(run(*on_jax))
        taken.append(time.perf_counter() - begin)
    given = [cupy.asarray(x) for x in (q, v)]
    dt = np.float32(1e-3)
    bare = mech.with_acting(False)
    call = partial(lw.rollout, bare, *given, None, dt, MJX_STEPS, final_only=True)
    ours, rate = call(), seconds(call, 3, 3)
    error = float(np.abs(cupy.asnumpy(ours[0]) - np.asarray(theirs[0])).max())
    steps = MJX_STATES * MJX_STEPS / 1e9
    return [
        *lines,
        f"- {MJX_STATES} states, {MJX_STEPS} steps, last state kept, both float32; MJX {mujoco.__version__} on JAX "
        f"{jax.__version__}, vmap and scan inside jit, constraints, contacts and limits off",
        f"- MJX {steps / min(taken):.4f}, linkwise {steps / rate:.3f} billion steps per second: "
        f"{min(taken) / rate:.0f} times (compiling: MJX {compiling:.0f} s); largest difference of q {error:.0e}",
    ]


def derivatives(robots: Path) -> list[str]:
    mech, count, bandwidth = mechanism("Panda", robots), 1 << 20, copy_bandwidth()
    lines = [f"## Derivatives of forward dynamics, Panda, {count} states", ""]
    for dtype in DTYPES:
        kernel = lw.compile("forward_dynamics_derivatives", mech, dtype=dtype, target="cuda")
        arrays = [cupy.asarray(np.tile(x, (count // 4096, 1)).astype(dtype)) for x in states(mech, kernel, 4096)]
        out = kernel(*arrays)
        given = out if isinstance(out, tuple) else (out,)
        across = tuple(
            cupy.empty((*x.shape[1:], count), dtype).transpose(x.ndim - 1, *range(x.ndim - 1)) for x in given
        )
        times = {
            "(batch, n)": seconds(partial(kernel, *arrays, out=given)),
            "(n, batch)": seconds(partial(kernel, *map(columns, arrays), out=across)),
        }
        moved = sum(x.nbytes for x in (*arrays, *given))
        for layout, taken in times.items():
            share = moved / taken / bandwidth
            lines.append(
                f"- {dtype}, {layout}: {1e3 * taken:.2f} ms, {100 * share:.0f} % of copy bandwidth (wanted: 60)"
            )
    return lines


USUAL = (checks, libraries, rates, latency, rollouts, closed, derivatives, mjx)
PARTS = {part.__name__: part for part in USUAL}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", type=Path)
    parser.add_argument("--part", default=",".join(part.__name__ for part in USUAL))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    robots = given.robots or found_robots()
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    lines = [f"# {device}: linkwise {lw.__version__}", ""]
    version = cupy.cuda.runtime.runtimeGetVersion()
    lines += [
        f"CuPy {cupy.__version__}, CUDA {version // 1000}.{version % 1000 // 10}, Python {platform.python_version()}."
    ]
    start = time.perf_counter()
    for part in given.part.split(","):
        begin = time.perf_counter()
        lines += ["", *PARTS[part](robots), "", f"({part}: {time.perf_counter() - begin:.0f} s)"]
        print("\n".join(lines), flush=True)
        written(given.results, device, lines)
    lines += ["", f"In all {time.perf_counter() - start:.0f} s: `python benchmarks/gpu.py --part {given.part}`"]
    written(given.results, device, lines)


def written(folder: Path, device: str, lines: list[str]) -> None:
    """The report so far, which a run that is cut off leaves behind."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"gpu-{device.replace(' ', '-')}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
