"""MuJoCo: its model from a mechanism's numbers, and its calls.

Every call is its whole pipeline up to joint forces or accelerations; contacts and constraints are switched off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import linkwise as lw

from .protocol import ROLLOUT, STEP, STEPS, Calls, Peer, of_kinds, one_by_one

HOW = {
    "inverse_dynamics": "mj_inverse; batches in a loop from Python",
    "forward_dynamics": "mj_forward; batches in a loop from Python",
    "mass_matrix": "mj_kinematics, mj_comPos, mj_crb, mj_fullM; batches in a loop from Python",
    "mass_matrix_inverse": "the same, mj_factorM, mj_solveM of the identity; batches in a loop from Python",
    "forward_dynamics_derivatives": "none: finite differences only (mjd_transitionFD)",
    ROLLOUT: "mujoco.rollout, semi-implicit Euler, one thread",
}


def spec(mujoco: Any, mech: lw.Mechanism) -> Any:
    """The mechanism in MuJoCo's terms."""
    kinds = {lw.Revolute: mujoco.mjtJoint.mjJNT_HINGE, lw.Prismatic: mujoco.mjtJoint.mjJNT_SLIDE}
    made = mujoco.MjSpec()
    made.option.gravity, made.option.timestep = np.array(mech.gravity), STEP
    made.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    made.compiler.degree = False
    bodies: list[Any] = []
    for body in mech.bodies:
        parent = bodies[body.parent] if body.parent >= 0 else made.worldbody
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(body.rotation).ravel())
        child = parent.add_body(name=body.link, pos=np.array(body.position), quat=quaternion)
        axis = np.array(body.kind.axis)  # type: ignore[attr-defined]
        child.add_joint(name=body.joint, type=kinds[type(body.kind)], axis=axis, armature=body.armature[0])
        child.mass, child.ipos, child.explicitinertial = body.mass, np.array(body.com), True
        child.fullinertia = body.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        bodies.append(child)
    return made


def compiled(mujoco: Any, mech: lw.Mechanism) -> tuple[Any, list[int]] | None:
    """The model and where joints stand in it; None where MuJoCo does not accept the mechanism."""
    if not of_kinds(mech, lw.Revolute, lw.Prismatic) or any(body.mass <= 0.0 for body in mech.bodies):
        return None
    try:
        model = spec(mujoco, mech).compile()
    except ValueError:  # inertias that MuJoCo does not accept
        return None
    return model, [model.joint(name).qposadr[0] for name in mech.joint_names]


def peer(mech: lw.Mechanism, task: str) -> Peer | None:
    if task not in HOW or HOW[task].startswith("none"):
        return None
    import mujoco

    found = compiled(mujoco, mech)
    if found is None:
        return None
    model, order = found
    if task == ROLLOUT:
        batch = _rollout(mujoco, model, order)
        single = _of_one(batch)
        return Peer(f"MuJoCo {mujoco.__version__}", single, batch, HOW[task], 10_000)
    single = _single(mujoco, model, order, task)
    return Peer(f"MuJoCo {mujoco.__version__}", single, one_by_one(single), HOW[task], 256)


def _of_one(batch: Callable[..., Calls]) -> Callable[..., Calls]:
    def single(*state: np.ndarray) -> Calls:
        call, result = batch(*(x[None] for x in state))
        return call, lambda: result()[0]

    return single


def _single(mujoco: Any, model: Any, order: list[int], task: str) -> Callable[..., Calls]:
    fields = {"inverse_dynamics": ("qvel", "qacc"), "forward_dynamics": ("qvel", "qfrc_applied")}

    def single(q: np.ndarray, *others: np.ndarray) -> Calls:
        data = mujoco.MjData(model)
        for name, values in zip(("qpos", *fields.get(task, ())), (q, *others), strict=True):
            getattr(data, name)[order] = values
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

        def result() -> np.ndarray:
            calls[task]()
            if task == "inverse_dynamics":
                return np.array(data.qfrc_inverse[order])
            if task == "forward_dynamics":
                return np.array(data.qacc[order])
            return matrix[np.ix_(order, order)]

        return calls[task], result

    return single


def _rollout(mujoco: Any, model: Any, order: list[int]) -> Callable[..., Calls]:
    from mujoco import rollout

    def batch(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Calls:
        data, count, nv = mujoco.MjData(model), len(q), model.nv
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        start = np.zeros((count, mujoco.mj_stateSize(model, kind)))
        start[:, [1 + k for k in order]] = q  # after the time
        start[:, [1 + nv + k for k in order]] = v
        forces = np.zeros((count, STEPS, nv))
        forces[:, :, order] = tau[:, None]
        states = np.zeros((count, STEPS, start.shape[1]))
        runner = rollout.Rollout(nthread=0)
        applied = mujoco.mjtState.mjSTATE_QFRC_APPLIED

        def run() -> None:
            runner.rollout(
                model, data, start, forces, control_spec=applied, nstep=STEPS, state=states, skip_checks=False
            )

        def result() -> np.ndarray:
            run()
            return np.concatenate(
                [states[:, -1, [1 + k for k in order]], states[:, -1, [1 + nv + k for k in order]]], -1
            )

        return run, result

    return batch
