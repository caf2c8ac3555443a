"""The one way by which elements act: a law of one's own in steps, single calls and derivatives, by plain dynamics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.resolved import Resolved
from linkwise.mechanics.elements.law import Acting, ForceLaw
from linkwise.mechanics.spatial import Force, Vector3
from linkwise.motion.step import Step


@dataclass(frozen=True)
class Wind(ForceLaw):
    """A force on a frame that drags its origin along with a wind in the world, switched by a control input that an
    activation follows; and a force at a joint."""

    frame: str
    joint: str
    n_ctrl = 1
    n_activation = 1

    def act(self, at, ctrl, activation):
        rotation, position = at.pose(self.frame)
        speed = rotation @ at.velocity(self.frame).linear
        drag = (Vector3(1.0 + position.z, 0.5, 0.0) - speed) * activation[0]
        at.push_frame(self.frame, Force(Vector3(0.0, 0.0, 0.3), rotation.T @ drag))
        at.push_joint(self.joint, [-x for x in at.velocities(self.joint)])
        return [ctrl[0] - activation[0]]


def by_hand(mech, law, q, v, activation):
    """The joint forces, from poses and Jacobians."""
    pose = lw.frame_pose(mech, q, law.frame)
    jacobian = lw.jacobian(mech, q, law.frame)
    drag = (np.array([1.0 + pose[2, 3], 0.5, 0.0]) - pose[:3, :3] @ (jacobian @ v)[3:]) * activation
    tau = jacobian.T @ np.concatenate([[0.0, 0.0, 0.3], pose[:3, :3].T @ drag])
    tau[mech.v_index(law.joint)] -= v[mech.v_index(law.joint)]
    return tau


def case(seed):
    mech = lw.mechanisms.random_tree(4, seed, floating_base=seed == 1)
    mech = mech.with_frame("tip", mech.link_names[-1], (np.eye(3), (0.1, 0.2, 0.3)))
    return mech, Wind("tip", mech.joint_names[1]), *lw.random_state(mech, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(2))
def test_joint_forces_and_rates(seed):
    mech, law, q, v = case(seed)
    forces, rates = Resolved(mech, Acting((law,))).forces_and_rates(q, v, np.array([2.0]), np.array([0.7]))
    np.testing.assert_allclose(forces, by_hand(mech, law, q, v, 0.7), atol=1e-12)
    np.testing.assert_allclose(rates, [1.3])


@pytest.mark.parametrize("seed", range(2))
def test_derivatives_by_all_inputs(seed):
    mech, law, q, v = case(seed)
    elements, u, w = Resolved(mech, Acting((law,))), np.array([2.0]), np.array([0.7])
    found = elements.all_derivatives(q, v, u, w)

    def central(move):
        ends = [np.concatenate(elements.forces_and_rates(*move(s))) for s in (-2e-4, -1e-4, 1e-4, 2e-4)]
        return (8.0 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / 1.2e-3

    for k, e in enumerate(np.eye(mech.nv)):
        along_q = central(lambda s, e=e: (lw.integrate(mech, q, e, s), v, u, w))
        np.testing.assert_allclose(found.by_q[:, k], along_q, atol=1e-9)
        np.testing.assert_allclose(found.by_v[:, k], central(lambda s, e=e: (q, v + s * e, u, w)), atol=1e-9)
    np.testing.assert_allclose(found.by_ctrl[:, 0], central(lambda s: (q, v, u + s, w)), atol=1e-9)
    np.testing.assert_allclose(found.by_activation[:, 0], central(lambda s: (q, v, u, w + s)), atol=1e-9)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_compiled_steps_evaluate_laws_in_every_stage(method):
    """Against the same method on accelerations by plain dynamics, in coordinates that are ordinary ones."""
    mech = lw.mechanisms.random_tree(3, 5, joints=("revolute", "prismatic"))
    mech = mech.with_frame("tip", mech.link_names[-1], (np.eye(3), (0.1, 0.2, 0.3)))
    law, (q, v) = Wind("tip", mech.joint_names[1]), lw.random_state(mech, np.random.default_rng(5))
    tau, u, w, h, n = np.ones(mech.nv), np.array([2.0]), np.array([0.7]), 0.02, mech.nv
    step = Step(method, Acting((law,)), ("ctrl", "activation"))(mech)
    found = step(q, v, tau, h, u, w)

    def rates(x):
        q, v, w = x[:n], x[n : 2 * n], x[2 * n :]
        return np.concatenate([v, lw.forward_dynamics(mech, q, v, tau + by_hand(mech, law, q, v, w[0])), u - w])

    x = np.concatenate([q, v, w])
    if method == "rk4":
        k1 = rates(x)
        k2 = rates(x + h / 2 * k1)
        k3 = rates(x + h / 2 * k2)
        k4 = rates(x + h * k3)
        expected = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    else:
        expected = x + h * rates(x)
        expected[:n] = q + h * expected[n : 2 * n]
    np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(expected).max())
