"""MuJoCo: its model from a mechanism's numbers, and its calls.

Every call is its whole pipeline up to joint forces or accelerations; contacts and constraints are switched off.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import linkwise as lw

from .protocol import ROLLOUT, STEP, STEPS, Calls, Peer, is_plain, one_by_one

HOW = {
    "inverse_dynamics": "mj_inverse; batches in a loop from Python",
    "forward_dynamics": "mj_forward; batches in a loop from Python",
    "mass_matrix": "mj_kinematics, mj_comPos, mj_crb, mj_fullM; batches in a loop from Python",
    "mass_matrix_inverse": "the same, mj_factorM, mj_solveM of the identity; batches in a loop from Python",
    "forward_dynamics_derivatives": "none: finite differences only (mjd_transitionFD)",
    ROLLOUT: "mujoco.rollout, semi-implicit Euler, one thread",
}

# Bytes for contacts and constraints in every ``MjData``: without these a hundred a body are used.  By default it is
# 13 MiB or more, half of the memory of a machine for a batch of 1,000.
ARENA = 1 << 20
DEEPEST, MOST = 400, 2_000  # bodies: of files that nest, and whose compiling takes less than half a minute


def model_of(mujoco: Any, mech: lw.Mechanism) -> Any:
    """The model of a mechanism of hinges and slides, on a base that is fixed or free; None for others, and where MuJoCo
    does not accept its inertias."""
    base, *others = mech.bodies
    free = base.kind.is_free and not np.any(base.armature)
    if not all(map(is_plain, others)) or not (free or is_plain(base)) or mech.loops:
        return None
    if len(mech.bodies) > MOST:
        raise TimeoutError(f"compiling more than {MOST} bodies takes minutes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.MechanismWarning)  # what acts is switched off
            nested = len(mech.bodies) < DEEPEST
            spec = mujoco.MjSpec.from_string(lw.interop.mjcf_text(mech)) if nested else _from_numbers(mujoco, mech)
        spec.memory = ARENA
        model = spec.compile()
    except ValueError:
        return None
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= int(off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT | off.mjDSBL_ACTUATION)
    model.opt.disableflags |= int(off.mjDSBL_SPRING | off.mjDSBL_DAMPER)
    model.opt.timestep = STEP
    return model


def _from_numbers(mujoco: Any, mech: lw.Mechanism) -> Any:
    """The specification without a file: those nest no deeper than MuJoCo's reader of XML."""
    spec = mujoco.MjSpec()
    made: list[Any] = []
    spec.option.gravity = mech.gravity
    for body in mech.bodies:
        parent = made[body.parent] if body.parent >= 0 else spec.worldbody
        place = {"pos": body.position, "quat": lw.kinematics.so3.to_quaternion(body.rotation)}
        own = parent.add_body(name=body.link, explicitinertial=True, mass=body.mass, ipos=body.com, **place)
        own.fullinertia = [body.inertia[a, b] for a, b in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        hinge = mujoco.mjtJoint.mjJNT_HINGE if body.kind.hinge else mujoco.mjtJoint.mjJNT_SLIDE
        own.add_joint(name=body.joint, type=hinge, axis=body.kind.hinge or body.kind.slide, armature=body.armature[0])
        made.append(own)
    return spec


def peer(mech: lw.Mechanism, task: str) -> Peer | None:
    if task not in HOW or HOW[task].startswith("none"):
        return None
    import mujoco

    floating = mech.bodies[0].kind.is_free
    model = model_of(mujoco, mech)
    if model is None or (floating and task not in ("inverse_dynamics", "forward_dynamics")):
        return None
    there = lw.interop.to_mujoco(mech, model)
    if task == ROLLOUT:
        batch = _rollout(mujoco, model, there)
        single = _of_one(batch)
        return Peer(f"MuJoCo {mujoco.__version__}", single, batch, HOW[task], 10_000)
    single = _single(mujoco, model, there, task)
    return Peer(f"MuJoCo {mujoco.__version__}", single, one_by_one(single), HOW[task], 256)


def _of_one(batch: Callable[..., Calls]) -> Callable[..., Calls]:
    def single(*state: np.ndarray) -> Calls:
        call, result = batch(*(x[None] for x in state))
        return call, lambda: result()[0]

    return single


def _single(mujoco: Any, model: Any, there: Any, task: str) -> Callable[..., Calls]:
    def single(*state: np.ndarray) -> Calls:
        data, (q, *others) = mujoco.MjData(model), state
        data.qpos[:] = there.q(q)
        if others:
            data.qvel[:] = there.v(q, others[0])
        if task == "inverse_dynamics":
            data.qacc[:] = there.a(q, *others)
        elif task == "forward_dynamics":
            data.qfrc_applied[:] = there.tau(q, others[1])
        matrix, unit = np.zeros((model.nv, model.nv)), np.eye(model.nv)

        def composite() -> None:
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_crb(model, data)

        def full() -> None:
            composite()
            mujoco.mj_fullM(model, data, matrix)

        def inverse() -> None:
            composite()
            mujoco.mj_factorM(model, data)
            mujoco.mj_solveM(model, data, matrix, unit)

        calls: dict[str, Callable[[], Any]] = {
            "inverse_dynamics": lambda: mujoco.mj_inverse(model, data),
            "forward_dynamics": lambda: mujoco.mj_forward(model, data),
            "mass_matrix": full,
            "mass_matrix_inverse": inverse,
        }
        read: dict[str, Callable[[], np.ndarray]] = {
            "inverse_dynamics": lambda: there.inverse.tau(data.qpos, data.qfrc_inverse),
            "forward_dynamics": lambda: there.inverse.a(data.qpos, data.qvel, data.qacc),
            "mass_matrix": lambda: there.inverse.matrix(data.qpos, matrix),
            "mass_matrix_inverse": lambda: there.inverse.matrix(data.qpos, matrix, takes="tau", gives="v"),
        }

        def result() -> np.ndarray:
            calls[task]()
            return read[task]()

        return calls[task], result

    return single


def _rollout(mujoco: Any, model: Any, there: Any) -> Callable[..., Calls]:
    from mujoco import rollout

    def batch(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Calls:
        data, count, nq = mujoco.MjData(model), len(q), model.nq
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        start = np.zeros((count, mujoco.mj_stateSize(model, kind)))
        start[:, 1 : 1 + nq] = there.q(q)  # after the time
        start[:, 1 + nq : 1 + nq + model.nv] = there.v(q, v)
        forces = np.repeat(there.tau(q, tau)[:, None], STEPS, axis=1)
        states = np.zeros((count, STEPS, start.shape[1]))
        runner = rollout.Rollout(nthread=0)
        applied = mujoco.mjtState.mjSTATE_QFRC_APPLIED

        def run() -> None:
            runner.rollout(
                model, data, start, forces, control_spec=applied, nstep=STEPS, state=states, skip_checks=False
            )

        def result() -> np.ndarray:
            run()
            last = states[:, -1, 1:]
            return np.concatenate(there.inverse.state(last[:, :nq], last[:, nq : nq + model.nv]), -1)

        return run, result

    return batch
