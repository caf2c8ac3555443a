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
    types = mujoco.mjtJoint
    kinds = {lw.Revolute: types.mjJNT_HINGE, lw.Prismatic: types.mjJNT_SLIDE, lw.Floating: types.mjJNT_FREE}
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
        axis = np.array(getattr(body.kind, "axis", (0.0, 0.0, 1.0)))
        child.add_joint(name=body.joint, type=kinds[type(body.kind)], axis=axis, armature=body.armature[0])
        child.mass, child.ipos, child.explicitinertial = body.mass, np.array(body.com), True
        child.fullinertia = body.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        bodies.append(child)
    return made


def compiled(mujoco: Any, mech: lw.Mechanism) -> tuple[Any, list[int]] | None:
    """The model of hinges and slides and where they stand in it; None where MuJoCo does not accept the mechanism."""
    model = _model(mujoco, mech) if of_kinds(mech, lw.Revolute, lw.Prismatic) else None
    return None if model is None else (model, [model.joint(name).qposadr[0] for name in mech.joint_names])


def _model(mujoco: Any, mech: lw.Mechanism) -> Any:
    if any(body.mass <= 0.0 for body in mech.bodies):
        return None
    try:
        return spec(mujoco, mech).compile()
    except ValueError:  # inertias that MuJoCo does not accept
        return None


class Floating:
    """A floating base in MuJoCo's coordinates: position before quaternion, linear velocity along the world's axes.

    Velocities there are B v of linkwise's, accelerations B a + dB/dt v, forces B^-* tau."""

    def __init__(self, mech: lw.Mechanism, model: Any):
        names, self.origin = mech.joint_names[1:], np.array(mech.bodies[0].position)
        self.q_order = [*range(7), *(model.joint(name).qposadr[0] for name in names)]
        self.v_order = [*range(6), *(model.joint(name).dofadr[0] for name in names)]

    @staticmethod
    def fits(mech: lw.Mechanism) -> bool:
        base, *others = mech.bodies
        free = type(base.kind) is lw.Floating and np.array_equal(base.rotation, np.eye(3))
        rest = all(type(body.kind) in (lw.Revolute, lw.Prismatic) and body.mimic is None for body in others)
        return free and rest and not mech.loops and not np.any(base.armature)

    def configuration(self, q: np.ndarray) -> np.ndarray:
        found = np.empty(len(q))
        found[self.q_order] = [*(q[4:7] + self.origin), *q[:4], *q[7:]]
        return found

    def matrix(self, mujoco: Any, q: np.ndarray) -> np.ndarray:
        """B."""
        rotation, count = np.empty(9), len(self.v_order)
        mujoco.mju_quat2Mat(rotation, np.ascontiguousarray(q[:4]))
        found = np.zeros((count, count))
        found[:3, 3:6], found[3:6, :3] = rotation.reshape(3, 3), np.eye(3)
        found[self.v_order[6:], range(6, count)] = 1.0
        return found

    def convection(self, mujoco: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """dB/dt v."""
        turned = np.zeros(len(v))
        turned[3:6] = np.cross(v[:3], v[3:6])
        return self.matrix(mujoco, q) @ turned


def peer(mech: lw.Mechanism, task: str) -> Peer | None:
    if task not in HOW or HOW[task].startswith("none"):
        return None
    import mujoco

    if Floating.fits(mech):
        model = _model(mujoco, mech)
        if model is None or task not in ("inverse_dynamics", "forward_dynamics"):
            return None
        single = _floating(mujoco, mech, model, task)
        return Peer(f"MuJoCo {mujoco.__version__}", single, one_by_one(single), HOW[task], 256)
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


def _floating(mujoco: Any, mech: lw.Mechanism, model: Any, task: str) -> Callable[..., Calls]:
    base = Floating(mech, model)
    inverse = task == "inverse_dynamics"

    def single(q: np.ndarray, v: np.ndarray, u: np.ndarray) -> Calls:
        data, b = mujoco.MjData(model), base.matrix(mujoco, q)
        bent = base.convection(mujoco, q, v)
        data.qpos[:], data.qvel[:] = base.configuration(q), b @ v
        if inverse:
            data.qacc[:] = b @ u + bent
        else:
            data.qfrc_applied[:] = np.linalg.solve(b.T, u)
        function = mujoco.mj_inverse if inverse else mujoco.mj_forward

        def result() -> np.ndarray:
            function(model, data)
            return b.T @ data.qfrc_inverse if inverse else np.linalg.solve(b, data.qacc - bent)

        return (lambda: function(model, data)), result

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
