"""Random trees of hinges, slides and balls, fixed and free, against MuJoCo.

MuJoCo's velocity of a free body has its linear part first and in world axes: ``v_mujoco = T(q) v``.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw

mujoco = pytest.importorskip("mujoco")
mujoco.set_mju_user_warning(lambda message: None)  # instead of a file MUJOCO_LOG.TXT in the present folder

TYPES = {lw.Revolute: "hinge", lw.Prismatic: "slide", lw.Spherical: "ball", lw.Floating: "free"}


def numbers(values) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(values))


def mjcf(mech: lw.Mechanism) -> str:
    """The mechanism as MJCF text, with all digits."""

    def body(i: int) -> str:
        b = mech.bodies[i]
        x, y, z, w = Rotation.from_matrix(b.rotation).as_quat()
        axis = f' axis="{numbers(b.kind.axis)}"' if hasattr(b.kind, "axis") else ""
        moments = [b.inertia[j, k] for j, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        return (
            f'<body name="{b.link}" pos="{numbers(b.position)}" quat="{numbers((w, x, y, z))}">'
            f'<joint name="{b.joint}" type="{TYPES[type(b.kind)]}"{axis} armature="{b.armature[0]!r}"/>'
            f'<inertial mass="{b.mass!r}" pos="{numbers(b.com)}" fullinertia="{numbers(moments)}"/>'
            + "".join(body(child) for child in mech.tree.children[i])
            + "</body>"
        )

    roots = "".join(body(i) for i, parent in enumerate(mech.tree.parents) if parent < 0)
    return (
        f'<mujoco><compiler angle="radian" autolimits="false"/><option gravity="{numbers(mech.gravity)}"/>'
        f"<worldbody>{roots}</worldbody></mujoco>"
    )


class Peer:
    def __init__(self, mech: lw.Mechanism):
        self.mech = mech
        self.model = mujoco.MjModel.from_xml_string(mjcf(mech))
        self.data = mujoco.MjData(self.model)
        assert (self.model.nq, self.model.nv) == (mech.nq, mech.nv)

    def set(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Put MuJoCo into the state; T and dT/dt v."""
        mech, data = self.mech, self.data
        tie, drift = np.zeros((mech.nv, mech.nv)), np.zeros(mech.nv)
        for body in mech.bodies:
            joint = self.model.joint(body.joint)
            at_q, at_v = joint.qposadr[0], joint.dofadr[0]
            own_q, own_v = q[mech.q_index(body.joint)], mech.v_index(body.joint)
            if isinstance(body.kind, lw.Floating):
                # The pose is in the world, ours in the joint's frame at zero.
                placed = Rotation.from_matrix(body.rotation)
                turned = placed * Rotation.from_quat(own_q[[1, 2, 3, 0]])
                x, y, z, w = turned.as_quat()
                data.qpos[at_q : at_q + 7] = [*(body.position + placed.apply(own_q[4:])), w, x, y, z]
                omega, linear = v[own_v][:3], v[own_v][3:]
                tie[at_v : at_v + 3, own_v][:, 3:] = turned.as_matrix()
                tie[at_v + 3 : at_v + 6, own_v][:, :3] = np.eye(3)
                drift[at_v : at_v + 3] = turned.apply(np.cross(omega, linear))
            else:
                data.qpos[at_q : at_q + len(own_q)] = own_q
                tie[at_v : at_v + body.nv, own_v] = np.eye(body.nv)
        data.qvel[:] = tie @ v
        data.qfrc_applied[:] = np.linalg.solve(tie.T, tau)
        mujoco.mj_forward(self.model, data)
        return tie, drift


@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("n, seed", [(2, 0), (3, 1), (5, 2), (8, 3), (13, 4), (20, 5)])
def test_agrees_with_mujoco(n, seed, floating):
    mech = lw.mechanisms.random_tree(n, seed, joints=("revolute", "prismatic", "spherical"), floating_base=floating)
    peer = Peer(mech)
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, (10,))
    tau = rng.normal(size=v.shape)
    found = {
        name: lw.compile(name, mech, target="numpy")
        for name in ("mass_matrix", "bias_force", "forward_dynamics", "link_poses")
    }
    for i in range(len(q)):
        tie, drift = peer.set(q[i], v[i], tau[i])
        full = np.zeros((mech.nv, mech.nv))
        if hasattr(peer.data, "qM"):  # before MuJoCo 4
            mujoco.mj_fullM(peer.model, full, peer.data.qM)
        else:
            mujoco.mj_fullM(peer.model, peer.data, full)
        acceleration = peer.data.qacc.copy()
        expected = {
            "mass_matrix": tie.T @ full @ tie,
            "bias_force": tie.T @ (full @ drift + peer.data.qfrc_bias),
            "forward_dynamics": np.linalg.solve(tie, acceleration - drift),
        }
        given = {"mass_matrix": (q[i],), "bias_force": (q[i], v[i]), "forward_dynamics": (q[i], v[i], tau[i])}
        for name, value in expected.items():
            error = np.linalg.norm(found[name](*given[name]) - value) / np.linalg.norm(value)
            assert error < 1e-9, f"{name}: relative error {error:.1e}"
        poses = found["link_poses"](q[i])
        for k, link in enumerate(mech.link_names):
            body = peer.data.body(link)
            np.testing.assert_allclose(poses[k, :3, 3], body.xpos, rtol=0, atol=1e-12)
            np.testing.assert_allclose(poses[k, :3, :3], body.xmat.reshape(3, 3), rtol=0, atol=1e-12)
