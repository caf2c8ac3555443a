"""Code that CasADi generates: expressions of adam, written as C, compiled with all optimizations, called by buffers."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw

from .descriptions import urdf_of
from .protocol import DERIVATIVES, ROLLOUT, STEP, STEPS, Calls, Peer, is_fixed_arm

FLAGS = ("-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")
LONGEST = 30  # joints: beyond, C compilers take minutes for the code
TASKS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", *DERIVATIVES, ROLLOUT)


def peer(mech: lw.Mechanism, task: str) -> Peer | None:
    if task not in TASKS or not is_fixed_arm(mech) or mech.nv > LONGEST or shutil.which("gcc") is None:
        return None
    import casadi

    function, compiled = _compiled(casadi, _function(casadi, mech, task))
    version = importlib.metadata.version
    how = f"adam {version('adam-robotics')} expression, generated C, gcc {' '.join(FLAGS[:3])}, one FunctionBuffer call"
    single = _single(casadi, compiled, function, task, mech.nv)
    return Peer(f"CasADi {version('casadi')}", single, _batch(casadi, compiled, task, mech.nv), how, 100_000)


def _function(casadi: Any, mech: lw.Mechanism, task: str) -> Any:
    """A CasADi function of q, v, u over the mechanism's own coordinates."""
    from adam.casadi import KinDynComputations

    names = list(mech.joint_names)
    robot = KinDynComputations(urdf_of(mech), names, gravity=np.array([*mech.gravity, 0.0, 0.0, 0.0]))
    q, v, u = (casadi.SX.sym(name, mech.nv) for name in ("q", "v", "u"))
    here, still = casadi.SX(np.eye(4)), casadi.SX.zeros(6)
    mass = robot.mass_matrix(here, q)[6:, 6:]
    bias = robot.bias_force(here, q, still, v)[6:]
    inverse, forward = casadi.mtimes(mass, u) + bias, casadi.ldl_solve(u - bias, *casadi.ldl(mass))
    if task == ROLLOUT:
        v_next = v + STEP * forward
        step = casadi.Function("one", [casadi.vertcat(q, v), u], [casadi.vertcat(q + STEP * v_next, v_next)])
        return step
    results = {
        "inverse_dynamics": [inverse],
        "forward_dynamics": [forward],
        "mass_matrix": [mass],
        "inverse_dynamics_derivatives": [
            casadi.horzcat(casadi.jacobian(inverse, q), casadi.jacobian(inverse, v), mass)
        ],
        "forward_dynamics_derivatives": [casadi.horzcat(*(casadi.jacobian(forward, x) for x in (q, v, u)))],
    }[task]
    given = [q] if task == "mass_matrix" else [q, v, u]
    return casadi.Function(task, given, [casadi.densify(x) for x in results])


def _compiled(casadi: Any, function: Any) -> tuple[Any, Any]:
    folder = tempfile.mkdtemp(prefix="linkwise_casadi_")
    source, library = Path(folder) / f"{function.name()}.c", Path(folder) / f"{function.name()}.so"
    generator = casadi.CodeGenerator(source.name)
    generator.add(function)
    generator.generate(f"{folder}/")
    subprocess.run(["gcc", *FLAGS, str(source), "-o", str(library), "-lm"], check=True, capture_output=True)
    compiled = casadi.external(function.name(), str(library))
    weakref.finalize(compiled, shutil.rmtree, folder, True)
    return function, compiled


def _single(casadi: Any, compiled: Any, function: Any, task: str, nv: int) -> Callable[..., Calls]:
    batch = _batch(casadi, compiled, task, nv)

    def single(*state: np.ndarray) -> Calls:
        call, result = batch(*(x[None] for x in state))
        return call, lambda: result()[0]

    return single


def _batch(casadi: Any, compiled: Any, task: str, nv: int) -> Callable[..., Calls]:
    """``map`` of the compiled function, in one thread; a rollout is its ``mapaccum`` in ``map``."""

    def batch(*states: np.ndarray) -> Calls:
        count = len(states[0])
        shape = (count, 3, nv, nv) if task in DERIVATIVES else (count, nv, nv)
        if task == ROLLOUT:
            q, v, tau = states
            mapped = compiled.mapaccum(STEPS).map(count)
            inputs = [np.concatenate([q, v], -1), np.repeat(tau, STEPS, axis=0)]
            out = np.empty((count, STEPS, 2 * nv))
        else:
            mapped = compiled.map(count) if count > 1 else compiled
            inputs = list(states)
            out = np.empty((count, compiled.nnz_out(0)))
        inputs = [np.ascontiguousarray(x) for x in inputs]
        buffer, run = mapped.buffer()
        for k, x in enumerate(inputs):
            buffer.set_arg(k, x.data)
        buffer.set_res(0, out.data)
        keep = (buffer, mapped, inputs)  # the buffer holds addresses only

        def call() -> Any:
            return keep, run()

        def result() -> np.ndarray:
            call()
            if task == ROLLOUT:
                return np.array(out[:, -1])
            if task in ("inverse_dynamics", "forward_dynamics"):
                return np.array(out).reshape(count, nv)
            return np.swapaxes(out.reshape(shape), -1, -2).copy()  # CasADi stores columns first

        return call, result

    return batch
