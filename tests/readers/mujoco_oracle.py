"""A model read by us and by MuJoCo, put into the same state.

Order and meaning of coordinates: joints come in the same order, and hinges, slides and balls have the same numbers. A
free body has ``qpos = [position; quaternion]`` where ours is ``[quaternion; position]``, and ``qvel = [v; omega]``, v
in world axes, omega in body axes, where ours is ``[omega; v]``, both in body axes: ``qvel = T(q) v`` and ``qacc = T a +
dT/dt v``. Mimic joints have coordinates of their own in MuJoCo: ``T`` then has more rows than columns, and
MuJoCo's equations are projected on its columns.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw

mujoco = pytest.importorskip("mujoco")
mujoco.set_mju_user_warning(lambda message: None)  # instead of a file MUJOCO_LOG.TXT in the present folder


def matrix(quaternion) -> np.ndarray:
    return Rotation.from_quat(np.asarray(quaternion)[[1, 2, 3, 0]]).as_matrix()


class Pair:
    """One text or file, read twice."""

    def __init__(self, text_or_path: str | Path, **options):
        is_text = isinstance(text_or_path, str)
        make = mujoco.MjModel.from_xml_string if is_text else mujoco.MjModel.from_xml_path
        self.model = make(str(text_or_path))
        self.data = mujoco.MjData(self.model)
        self.mech = lw.load(text_or_path, **options)
        self.tree = self.mech.spanning_tree

    def only_inertia(self) -> Pair:
        """Take from MuJoCo what is no part of M(q) a + bias: constraints, springs, dampers, fluids."""
        bits = mujoco.mjtDisableBit
        off = bits.mjDSBL_CONSTRAINT | bits.mjDSBL_CONTACT | bits.mjDSBL_SPRING | bits.mjDSBL_DAMPER
        self.model.opt.disableflags |= int(off) | int(bits.mjDSBL_ACTUATION)
        self.model.opt.density, self.model.opt.viscosity = 0.0, 0.0
        return self

    def set(self, q, v, tau=None) -> tuple[np.ndarray, np.ndarray]:
        """Put MuJoCo into the state; T and dT/dt v."""
        mech, model, data = self.tree, self.model, self.data
        tie, drift = np.zeros((model.nv, mech.nv)), np.zeros(model.nv)
        for index, body in enumerate(mech.bodies):
            at_q, at_v = model.jnt_qposadr[index], model.jnt_dofadr[index]
            own_q, own_v = q[mech.q_index(body.joint)], mech.v_index(body.joint)
            if isinstance(body.kind, lw.Floating):
                rotation = matrix(own_q[:4])
                data.qpos[at_q : at_q + 7] = [*own_q[4:], *own_q[:4] / np.linalg.norm(own_q[:4])]
                tie[at_v : at_v + 3, own_v][:, 3:] = rotation
                tie[at_v + 3 : at_v + 6, own_v][:, :3] = np.eye(3)
                drift[at_v : at_v + 3] = rotation @ np.cross(v[own_v][:3], v[own_v][3:])
            elif body.mimic:
                data.qpos[at_q] = body.mimic.ratio * own_q[0] + body.mimic.offset
                tie[at_v, own_v] = body.mimic.ratio
            else:
                data.qpos[at_q : at_q + len(own_q)] = own_q
                tie[at_v : at_v + body.nv, own_v] = np.eye(body.nv)
        data.qvel[:] = tie @ v
        data.qfrc_applied[:] = 0.0 if tau is None else np.linalg.pinv(tie.T) @ tau
        mujoco.mj_forward(model, data)
        return tie, drift

    def mass_matrix(self) -> np.ndarray:
        full = np.zeros((self.model.nv, self.model.nv))
        if hasattr(self.data, "qM"):  # before MuJoCo 4
            mujoco.mj_fullM(self.model, full, self.data.qM)
        else:
            mujoco.mj_fullM(self.model, self.data, full)
        return full

    def body_inertia(self, body: int) -> np.ndarray:
        """About the centre of mass, along the axes of the body's frame."""
        rotation = matrix(self.model.body_iquat[body])
        return rotation @ np.diag(self.model.body_inertia[body]) @ rotation.T

    def assert_same_dynamics(self, seed: int = 0, states: int = 3, tolerance: float = 1e-10) -> None:
        """Mass matrix, bias forces, accelerations, frames of bodies and sites at random states."""
        self.only_inertia()
        mech, model, data = self.tree, self.model, self.data
        assert mech.nq == model.nq - sum(body.mimic is not None for body in mech.bodies)
        assert len(mech.bodies) == model.njnt
        kernels = {
            name: lw.compile(name, mech, target="numpy") for name in ("mass_matrix", "bias_force", "forward_dynamics")
        }
        rng = np.random.default_rng(seed)
        for q, v in zip(*lw.random_state(mech, rng, (states,)), strict=True):
            tau = rng.normal(size=mech.nv)
            tie, drift = self.set(q, v, tau)
            full = self.mass_matrix()
            mass, bias = tie.T @ full @ tie, tie.T @ (full @ drift + data.qfrc_bias)
            scale = np.abs(mass).max()
            np.testing.assert_allclose(kernels["mass_matrix"](q), mass, rtol=0, atol=tolerance * scale)
            bias_scale = max(np.abs(bias).max(), scale)
            np.testing.assert_allclose(kernels["bias_force"](q, v), bias, rtol=0, atol=tolerance * bias_scale)
            if len(tie) == mech.nv:  # MuJoCo knows no acceleration of joints that are tied
                acceleration = np.linalg.solve(tie, data.qacc - drift)
                found = kernels["forward_dynamics"](q, v, tau)
                condition = np.linalg.cond(mass)
                bound = tolerance * max(1.0, condition * 1e-3) * max(1.0, np.abs(acceleration).max())
                np.testing.assert_allclose(found, acceleration, rtol=0, atol=bound)
            self.assert_same_frames(q)

    def assert_same_frames(self, q) -> None:
        mech, model, data = self.tree, self.model, self.data
        pose = lw.compile("link_poses", mech, target="numpy")(q)

        def in_world(name):
            frame = mech.frame(name)
            carrier = pose[frame.body] if frame.body >= 0 else np.eye(4)
            return carrier[:3, :3] @ frame.rotation, carrier[:3, 3] + carrier[:3, :3] @ frame.position

        named = [(model.body(i).name or f"body{i}", data.xmat[i], data.xpos[i]) for i in range(model.nbody)]
        for i in range(model.nsite):
            if name := model.site(i).name:  # a body of the same name has it first
                frame = f"{name}_site" if f"{name}_site" in mech.frames else name
                named.append((frame, data.site_xmat[i], data.site_xpos[i]))
        for name, rotation, position in named:
            found = in_world(name)
            np.testing.assert_allclose(found[0], rotation.reshape(3, 3), rtol=0, atol=1e-12, err_msg=name)
            np.testing.assert_allclose(found[1], position, rtol=0, atol=1e-11, err_msg=name)
