"""Libraries on JAX, on the CPU in double precision: adam, frax, JaxSim and MJX, vectorized by vmap and compiled."""

from __future__ import annotations

import importlib.metadata
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw

from .descriptions import sdf_of, urdf_of
from .mujoco import model_of
from .protocol import ROLLOUT, STEP, STEPS, TASKS, Calls, Peer, is_fixed_arm

LONGEST = 20  # joints: beyond, XLA takes minutes for unrolled recursions, and once took 21 GB
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
SCHEDULER = "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"  # asked for by frax, from JAX 0.9.1 on
MOST = 1_000  # states in a batch: each size is compiled by itself
Function = Callable[..., Any]


def jax_in_double_precision() -> Any:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    later = tuple(int(part) for part in importlib.metadata.version("jax").split(".")[:3]) >= (0, 9, 1)
    os.environ.setdefault("XLA_FLAGS", f"{ONE_THREAD} {SCHEDULER}" if later else ONE_THREAD)  # heard before JAX loads
    os.environ.setdefault("JAX_ENABLE_X64", "1")
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def _peer(library: str, package: str, jax: Any, function: Function, how: str, takes_batches: bool = False) -> Peer:
    def calls(compiled_function: Function, arrays: tuple[np.ndarray, ...]) -> Calls:
        given = [jax.numpy.asarray(x) for x in arrays]
        return (
            lambda: compiled_function(*given).block_until_ready(),
            lambda: np.asarray(compiled_function(*given)),
        )

    one, many = jax.jit(function), jax.jit(function if takes_batches else jax.vmap(function))
    name = f"{library} {importlib.metadata.version(package)}"
    how = f"{how}; jit, batches {'as it takes them' if takes_batches else 'by vmap'}"
    return Peer(name, lambda *x: calls(one, x), lambda *x: calls(many, x), how, MOST, time.perf_counter)


def _tasks(jax: Any, parts: dict[str, Function], takes_batches: bool = False) -> dict[str, Function]:
    """Derivatives and rollouts of a library's own dynamics by JAX."""
    joined = jax.numpy.concatenate
    made = dict(parts)
    for name in ("inverse_dynamics", "forward_dynamics"):
        if name in parts:
            slopes = (_by_directions if takes_batches else jax.jacfwd)(parts[name], argnums=(0, 1, 2))
            made[f"{name}_derivatives"] = lambda q, v, u, slopes=slopes: jax.numpy.stack(slopes(q, v, u), -3)
    if "forward_dynamics" in parts:

        def rollout(q: Any, v: Any, u: Any) -> Any:
            def step(state: Any, _: Any) -> Any:
                q, v = state
                v = v + STEP * parts["forward_dynamics"](q, v, u)
                return (q + STEP * v, v), None

            return joined(jax.lax.scan(step, (q, v), None, length=STEPS)[0], -1)

        made[ROLLOUT] = rollout
    if "mass_matrix" in parts:
        made.setdefault("mass_matrix_inverse", lambda q: jax.numpy.linalg.inv(parts["mass_matrix"](q)))
    return made


def _by_directions(function: Function, argnums: tuple[int, ...]) -> Function:
    """``jax.jacfwd`` of functions that vmap does not take, but which take batches themselves."""
    import jax

    def by(which: int, arrays: tuple[Any, ...]) -> Any:
        still = [jax.numpy.zeros_like(x) for x in arrays]

        def along(direction: Any) -> Any:
            directions = [x + direction if k == which else x for k, x in enumerate(still)]
            return jax.jvp(function, arrays, tuple(directions))[1]

        return jax.numpy.moveaxis(jax.lax.map(along, jax.numpy.eye(arrays[which].shape[-1])), 0, -1)

    return lambda *arrays: tuple(by(which, arrays) for which in argnums)


def adam(mech: lw.Mechanism, task: str) -> Peer | None:
    """Its algorithms are those of a floating base; an arm's are their joint part, the base at rest.  They take batches;
    under vmap they fail with JAX 0.8 and later."""
    if task not in TASKS or not is_fixed_arm(mech) or mech.nv > LONGEST:
        return None
    jax = jax_in_double_precision()
    from adam.jax import KinDynComputations

    gravity = np.array([*mech.gravity, 0.0, 0.0, 0.0])
    robot = KinDynComputations(urdf_of(mech), list(mech.joint_names), gravity=gravity)

    def mass(q: Any) -> Any:
        return robot.mass_matrix(jax.numpy.broadcast_to(jax.numpy.eye(4), (*q.shape[:-1], 4, 4)), q)[..., 6:, 6:]

    def bias(q: Any, v: Any) -> Any:
        here = jax.numpy.broadcast_to(jax.numpy.eye(4), (*q.shape[:-1], 4, 4))
        return robot.bias_force(here, q, jax.numpy.zeros((*q.shape[:-1], 6)), v)[..., 6:]

    parts: dict[str, Function] = {
        "inverse_dynamics": lambda q, v, a: (mass(q) @ a[..., None])[..., 0] + bias(q, v),
        "forward_dynamics": lambda q, v, tau: jax.numpy.linalg.solve(mass(q), (tau - bias(q, v))[..., None])[..., 0],
        "mass_matrix": mass,
    }
    made = _tasks(jax, parts, takes_batches=True)
    return _peer("adam", "adam-robotics", jax, made[task], "mass_matrix and bias_force", takes_batches=True)


def frax(mech: lw.Mechanism, task: str) -> Peer | None:
    if task not in TASKS or not is_fixed_arm(mech) or mech.nv > LONGEST or tuple(mech.gravity) != (0.0, 0.0, -9.81):
        return None
    jax = jax_in_double_precision()
    from frax import Robot

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        path.write_text(urdf_of(mech, massive_root=True))
        robot = Robot(str(path))
    if list(robot.joint_names) != list(mech.joint_names):
        return None
    parts: dict[str, Function] = {
        "inverse_dynamics": lambda q, v, a: robot.mass_matrix(q) @ a + robot.nonlinear_bias(q, v),
        "forward_dynamics": lambda q, v, tau: robot.forward_dynamics(q, v, tau, None),
        "mass_matrix": robot.mass_matrix,
        "mass_matrix_inverse": lambda q: robot.mass_matrix_inverse(robot.mass_matrix(q)),
    }
    return _peer("frax", "frax", jax, _tasks(jax, parts)[task], "mass_matrix, nonlinear_bias, forward_dynamics")


def jaxsim(mech: lw.Mechanism, task: str) -> Peer | None:
    if task not in TASKS or not is_fixed_arm(mech) or mech.nv > LONGEST:
        return None
    jax = jax_in_double_precision()
    import jaxsim.api as js

    model = js.model.JaxSimModel.build_from_model_description(
        model_description=sdf_of(mech), gravity=-float(mech.gravity[2])
    )
    order = [list(model.joint_names()).index(name) for name in mech.joint_names]
    back = np.argsort(order)

    def state(q: Any, v: Any) -> Any:
        return js.data.JaxSimModelData.build(model=model, joint_positions=q[back], joint_velocities=v[back])

    def mass(q: Any) -> Any:
        full = js.model.free_floating_mass_matrix(model, state(q, 0.0 * q))
        return full[6:, 6:][np.ix_(order, order)]

    parts: dict[str, Function] = {
        "inverse_dynamics": lambda q, v, a: js.model.inverse_dynamics(model, state(q, v), joint_accelerations=a[back])[
            1
        ][np.array(order)],
        "forward_dynamics": lambda q, v, tau: js.model.forward_dynamics_aba(model, state(q, v), joint_forces=tau[back])[
            1
        ][np.array(order)],
        "mass_matrix": mass,
    }
    how = "inverse_dynamics, forward_dynamics_aba, free_floating_mass_matrix"
    return _peer("JaxSim", "jaxsim", jax, _tasks(jax, parts)[task], how)


def mjx(mech: lw.Mechanism, task: str) -> Peer | None:
    if task not in ("inverse_dynamics", "forward_dynamics", "mass_matrix", ROLLOUT) or mech.nv > LONGEST:
        return None
    jax = jax_in_double_precision()
    import mujoco
    from mujoco import mjx as library

    model = model_of(mujoco, mech)
    order = None if model is None else lw.interop.to_mujoco(mech, model).q(np.arange(float(mech.nq)))
    if order is None or model.nq != model.nv or not np.array_equal(order, np.arange(mech.nq)):
        return None
    put = library.put_model(model)
    blank = library.make_data(put)

    def forward(q: Any, v: Any, tau: Any) -> Any:
        return library.forward(put, blank.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc

    def mass(q: Any) -> Any:
        data = library.crb(put, library.com_pos(put, library.kinematics(put, blank.replace(qpos=q))))
        return library.full_m(put, data)

    def rollout(q: Any, v: Any, tau: Any) -> Any:
        data = blank.replace(qpos=q, qvel=v, qfrc_applied=tau)
        data = jax.lax.scan(lambda d, _: (library.step(put, d), None), data, None, length=STEPS)[0]
        return jax.numpy.concatenate([data.qpos, data.qvel])

    parts: dict[str, Function] = {
        "inverse_dynamics": lambda q, v, a: library.inverse(put, blank.replace(qpos=q, qvel=v, qacc=a)).qfrc_inverse,
        "forward_dynamics": forward,
        "mass_matrix": mass,
        ROLLOUT: rollout,
    }
    return _peer("MJX", "mujoco-mjx", jax, parts[task], "mjx.inverse, forward, crb and full_m, step in scan")
