"""What must not change does not: energy, momentum, the length of quaternions; and a motion known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ellipj

import linkwise as lw
from tests.simulated import simulate

LONG = pytest.param(100.0, marks=pytest.mark.slow)
TIGHT = {"rtol": 1e-12, "atol": 1e-12}


def energy_error(trajectory: lw.Trajectory) -> float:
    """Change of the energy, relative to the kinetic energy that comes and goes."""
    return float(np.abs(trajectory.energy - trajectory.energy[0]).max() / trajectory.kinetic_energy.max())


@pytest.mark.parametrize("duration", [5.0, LONG])
def test_double_pendulum(duration):
    trajectory = simulate(lw.mechanisms.double_pendulum(), [2.0, 1.0], [0.0, 0.0], duration, **TIGHT)
    assert energy_error(trajectory) < 1e-9
    assert np.ptp(trajectory.q[:, 0]) > 3.0


@pytest.mark.parametrize("duration", [2.0, LONG])
def test_chain_of_ten(duration):
    rng = np.random.default_rng(1)
    chain = lw.mechanisms.chain(10)
    trajectory = simulate(chain, 0.3 * rng.normal(size=10), rng.normal(size=10), duration, **TIGHT)
    assert energy_error(trajectory) < 1e-9
    assert np.abs(trajectory.v).max() > 5.0


@pytest.mark.parametrize("duration", [5.0, LONG])
def test_stanford_arm_with_a_spring_that_holds_its_slide(duration):
    arm = lw.mechanisms.stanford_arm()
    slide = arm.joint_names[2]
    spring = lw.forces.Passive.springs({slide: 300.0}, {slide: 0.2})
    trajectory = simulate(arm, [0.3, -0.5, 0.2, 0.4, 0.6, -0.3], np.zeros(6), duration, passive=spring, **TIGHT)
    assert energy_error(trajectory) < 1e-9
    assert np.ptp(trajectory.passive_energy) > 0.1 and np.ptp(trajectory.potential_energy) > 1.0


def test_stanford_arm_let_go():
    """Its slide falls for kilometres in 100 s; the energy is kept to its initial value all the same."""
    arm = lw.mechanisms.stanford_arm()
    trajectory = simulate(arm, [0.1, 1.2, 0.4, 0.3, 0.5, 0.2], np.zeros(6), 100.0, **TIGHT)
    energy = trajectory.energy
    assert np.abs(energy - energy[0]).max() < 1e-9 * abs(energy[0])
    assert np.abs(trajectory.q[:, 2]).max() > 1e3


@pytest.mark.parametrize("method", ["dop853", "rk45", "radau", "bdf", "lsoda", "rk4"])
def test_momentum_and_quaternions_of_a_floating_tree(method):
    tree = lw.mechanisms.random_tree(5, 3, floating_base=True).with_gravity((0.0, 0.0, 0.0))
    q, v = lw.random_state(tree, np.random.default_rng(0))
    trajectory = lw.simulate(
        tree, q, v, 0.3, method=method, settings=lw.motion.Settings(rtol=1e-9, atol=1e-9), step=2e-3
    )
    momentum = lw.momentum(tree, trajectory.q, trajectory.v)
    assert np.abs(momentum - momentum[0]).max() < 1e-5 * np.abs(momentum).max()
    for body in tree.bodies:
        if body.kind.nq != body.kind.nv:
            quaternion = trajectory.q[:, tree.q_index(body.joint)][:, :4]
            np.testing.assert_allclose(np.linalg.norm(quaternion, axis=1), 1.0, atol=1e-14)
    assert np.abs(trajectory.q[-1] - trajectory.q[0]).max() > 0.1


class Tumbling:
    """A free asymmetric body: Euler's equations solved by Jacobi's elliptic functions (Landau and Lifshitz, Mechanics,
    37.10), the turn about its angular momentum by a quadrature of them (37.16)."""

    moments = np.array([1.0, 2.0, 2.6])

    def __init__(self, first: float, third: float):
        one, two, three = self.moments
        self.start = np.array([first, 0.0, third])
        energy, square = self.start @ (self.moments * self.start), ((self.moments * self.start) ** 2).sum()
        assert square > energy * two  # nearer to the axis of the largest moment
        self.amplitudes = np.sqrt(
            [
                (energy * three - square) / (one * (three - one)),
                (energy * three - square) / (two * (three - two)),
                (square - energy * one) / (three * (three - one)),
            ]
        )
        self.pace = np.sqrt((three - two) * (square - energy * one) / (one * two * three))
        self.parameter = (two - one) * (energy * three - square) / ((three - two) * (square - energy * one))
        self.size = np.sqrt(square)

    def omega(self, t):
        """(3, ...): the angular velocity in the axes of the body."""
        sn, cn, dn, _ = ellipj(self.pace * np.asarray(t), self.parameter)
        a, b, c = self.amplitudes
        return np.array([a * cn, b * sn, c * dn])

    def orientation(self, t: float) -> np.ndarray:
        """The body's axes as columns in axes whose z is the angular momentum, by Euler's angles."""

        def precession(time: float) -> float:
            x, y, _ = self.omega(time)
            one, two, _ = self.moments
            return self.size * (one * x**2 + two * y**2) / ((one * x) ** 2 + (two * y) ** 2)

        phi = quad(precession, 0.0, t, epsabs=1e-13, epsrel=1e-13, limit=1000)[0]
        x, y, z = self.moments * self.omega(t) / self.size
        theta, psi = np.arccos(z), np.arctan2(x, y)
        return about_z(phi) @ about_x(theta) @ about_z(psi)


def about_z(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])


def about_x(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0, 0], [0, c, -s], [0, s, c]])


def tumbling_body(kind: lw.Floating | lw.Spherical) -> lw.Mechanism:
    builder = lw.Builder().link("body", 2.0, (0, 0, 0), Tumbling.moments)
    return builder.joint("free", kind, "ground", "body").build("body", (0, 0, 0))


@pytest.mark.parametrize("duration", [10.0, LONG])
@pytest.mark.parametrize("kind", [lw.Spherical(), lw.Floating()], ids=["spherical", "floating"])
def test_tumbling_body_against_elliptic_functions(kind, duration):
    exact, mech = Tumbling(1.0, 1.5), tumbling_body(kind)
    v = np.zeros(mech.nv)
    v[:3] = exact.start
    times = np.linspace(0.0, duration, 41)
    trajectory = lw.simulate(
        mech, lw.neutral(mech), v, duration, t_eval=times, settings=lw.motion.Settings(rtol=1e-13, atol=1e-13)
    )
    np.testing.assert_allclose(trajectory.v[:, :3], exact.omega(times).T, atol=1e-10 * duration)
    momentum = lw.momentum(mech, trajectory.q, trajectory.v)
    np.testing.assert_allclose(momentum, momentum[:1] * np.ones((41, 1)), atol=1e-9)
    assert energy_error(trajectory) < 1e-9
    poses = lw.link_poses(mech, trajectory.q)[:, 0, :3, :3]
    turned = exact.orientation(duration) @ exact.orientation(0.0).T  # in axes along the momentum
    to_world = poses[0] @ exact.orientation(0.0).T
    np.testing.assert_allclose(poses[-1], to_world @ turned @ to_world.T @ poses[0], atol=1e-10 * duration)
