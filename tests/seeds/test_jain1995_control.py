"""jain1995, Section 8: forward dynamics in two sweeps, and decoupled control.

Simulated motions are the library's: its accelerations under the moments T = m epsilon, integrated by SciPy.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import linkwise as lw

from .jain1995 import Articulated, Moving, Stacked, moving_chain, moving_chains
from .tip_to_base import TipToBase, close, differ, results, tilde

# Forward dynamics ------------------------------------------------------------------------------------------------


def outward(arm: TipToBase, parts: Articulated, xi) -> tuple[np.ndarray, list]:
    """Table 1, right column, with D^(-1/2) nu = xi: joint rates and link velocities V(0) = 0, V(1) ... V(n+1) = 0."""
    V, theta_dot = [np.zeros(6)] * (arm.n + 2), np.zeros(arm.n)
    for k in range(arm.n, 0, -1):
        V_plus = arm.phi(k + 1, k).T @ V[k + 1]
        theta_dot[k - 1] = xi[k - 1] - (parts.G[k].T @ V_plus).item()
        V[k] = V_plus + arm.H[k][0] * theta_dot[k - 1]
    return theta_dot, V


def inward(arm: TipToBase, parts: Articulated, theta_dot, V, xi, T, with_lambda: bool = True) -> np.ndarray:
    """xi_dot: lambda_dot of (7.10), and (8.3) with + lambda_dot(k) H*(k) xi(k) where the print has "+ i(k)"."""
    lam, gamma, xi_dot = np.zeros((6, 6)), np.zeros(6), np.zeros(arm.n)
    for k in range(1, arm.n + 1):
        psi, K = (parts.psi[k - 1], parts.K[k - 1]) if k > 1 else (np.zeros((6, 6)), np.zeros((6, 1)))
        H, w, v = arm.H[k][0], tilde(V[k][:3]), tilde(V[k][3:])
        X = np.kron(np.eye(2), tilde(arm.h[k] * theta_dot[k - 1])) @ parts.P[k]
        lam = psi @ lam @ psi.T + X + X.T
        V_tilde = np.block([[w, np.zeros((3, 3))], [v, w]])
        zeta = K[:, 0] * T[k - 2] + with_lambda * lam @ H * xi[k - 1] - (X + V_tilde.T @ arm.M[k]) @ V[k]
        gamma = psi @ gamma + zeta
        xi_dot[k - 1] = (T[k - 1] - H @ gamma) / parts.D[k].item()
    return xi_dot


def moments(chain: Moving) -> np.ndarray:
    return np.random.default_rng(8).normal(size=chain.n) * 3.0


def xi_and_rate(chain: Moving) -> tuple[np.ndarray, np.ndarray]:
    """xi = (I + H phi K)* theta_dot and its rate, from the library's accelerations under ``moments``."""
    factor, J = (lambda arm, x: (x.I + x.H @ x.phi @ x.K).T), chain.arm.joints
    theta_ddot = J @ lw.forward_dynamics(chain.mech, chain.q, chain.v, J.T @ moments(chain))
    now = factor(chain.arm, chain.x)
    return now @ chain.theta_dot, chain.dot(factor) @ chain.theta_dot + now @ theta_ddot


@results("jain1995", "8.1", "8.2", by="library")
@moving_chains
def test_driving_term(chain):
    """xi_dot = D^-1 (T - H psi zeta); printed is T^-1 H psi zeta."""
    x, V, T, (xi, expected) = chain.x, chain.V, moments(chain), xi_and_rate(chain)
    quadratic = chain.lambda_dot @ x.H.T @ xi - (chain.Omega_delta @ x.P + chain.V_tilde.T @ x.M) @ V
    kappa = (x.I - x.H @ x.psi @ x.K) @ T
    inverse = np.linalg.inv(x.D)
    close(inverse @ (kappa - x.H @ x.psi @ quadratic), expected)
    zeta = x.K @ T + quadratic  # (8.2)
    close(inverse @ (T - x.H @ x.psi @ zeta), expected)  # (8.1)
    differ(inverse @ x.H @ x.psi @ zeta, expected)  # with the T^-1 of the print read as D^-1


@results("jain1995", "Algorithm 8.1", "8.3", by="library")
@moving_chains
def test_two_sweeps(chain):
    """One outward, one inward; step 4 prints nu = D^(-1/2) xi for nu = D^(1/2) xi."""
    xi, expected = xi_and_rate(chain)
    theta_dot, V = outward(chain.arm, chain.x.parts, xi)
    close(theta_dot, chain.theta_dot)
    close(chain.arm.stack(V), chain.V)
    sweep = lambda *options: inward(chain.arm, chain.x.parts, theta_dot, V, xi, moments(chain), *options)  # noqa: E731
    close(sweep(), expected)
    differ(sweep(False), expected)  # without the term that the print has lost
    nu = chain.x.m.T @ chain.theta_dot
    close(chain.x.root_D @ xi, nu)
    differ(np.linalg.solve(chain.x.root_D, xi), nu)  # step 4 as printed


def motion(mech, q, v, moments_at, times, tolerance=1e-8) -> np.ndarray:
    """(len(times), 2 n): q and v by the library's forward dynamics under moments_at(q, v)."""

    def rates(_, state):
        q, v = np.split(state, 2)
        return np.concatenate([v, lw.forward_dynamics(mech, q, v, moments_at(q, v))])

    start = np.concatenate([q, v])
    return solve_ivp(rates, (0.0, times[-1]), start, "DOP853", t_eval=times, rtol=tolerance, atol=tolerance / 10).y.T


@results("jain1995", "Algorithm 8.1", by="model")
def test_algorithm_8_1():
    """The six steps, over and over, approach the true motion with the first order of their integration step; the
    diagonal equations under a better integrator agree with it."""
    chain, duration = moving_chain(3, 2), 0.2
    mech, J, T = chain.mech, chain.arm.joints, moments(chain)
    expected = J @ motion(mech, chain.q, chain.v, lambda q, v: J.T @ T, [duration], 1e-11)[0, : chain.n]
    xi_0 = xi_and_rate(chain)[0]

    def literal(steps):
        theta, xi, dt = J @ chain.q, xi_0, duration / steps
        theta_dot, V = outward(chain.arm, chain.x.parts, xi)  # "the very first time"
        for _ in range(steps):
            arm = TipToBase(mech, J.T @ theta)
            parts = Articulated(arm)  # 1
            xi = xi + dt * inward(arm, parts, theta_dot, V, xi, T)  # 2, 3
            theta_dot, V = outward(arm, parts, xi)  # 4
            theta = theta + dt * theta_dot  # 5
        return theta

    errors = [np.abs(literal(steps) - expected).max() for steps in (50, 100, 200)]
    assert errors[2] < 0.02 and 1.9 < errors[0] / errors[1] < 2.1 and 1.9 < errors[1] / errors[2] < 2.1

    def rates(_, state):
        theta, xi = np.split(state, 2)
        arm = TipToBase(mech, J.T @ theta)
        parts = Articulated(arm)
        theta_dot, V = outward(arm, parts, xi)
        return np.concatenate([theta_dot, inward(arm, parts, theta_dot, V, xi, T)])

    start = np.concatenate([J @ chain.q, xi_0])
    close(solve_ivp(rates, (0.0, duration), start, "DOP853", rtol=1e-11, atol=1e-12).y[: chain.n, -1], expected, 1e-9)


# Decoupled control -----------------------------------------------------------------------------------------------


def end_effector(arm: TipToBase) -> np.ndarray:
    """Y: the position of the tip and three unit vectors attached to it."""
    return np.concatenate([arm.origin[0], *arm.rotation[1].T])


def B(arm: TipToBase) -> np.ndarray:
    """(6n, 12): Y_dot = B* V of all links."""
    y = arm.rotation[1].T
    of_tip = np.block([[np.zeros((3, 3)), *(tilde(axis) for axis in y)], [np.eye(3), np.zeros((3, 9))]])
    return arm.B @ of_tip


@results("jain1995", "8.5", by="library")
@moving_chains
def test_rate_of_the_end_effector(chain):
    """Y_dot = B* phi* H* theta_dot, printed without stars."""
    x, arm = chain.x, chain.arm
    close(B(arm).T @ x.phi.T @ x.H.T @ chain.theta_dot, chain.dot(lambda arm, x: end_effector(arm)))
    with pytest.raises(ValueError, match="mismatch"):  # as printed
        _ = x.phi @ x.H
    J = lw.jacobian(chain.mech, chain.q, "tip", "world_aligned")
    omega, velocity = (J @ chain.v).reshape(2, 3)
    close(velocity, (B(arm).T @ chain.V)[:3])
    close(np.cross(omega, end_effector(arm)[3:6]), (B(arm).T @ chain.V)[3:6])


class Control:
    """epsilon = - c1 nu + c2 D^(-1/2) H psi B e: (8.6) with the sign and the factor it needs; c2 = 0 is (8.4)."""

    def __init__(self, mech, goal, c1, c2=0.0, sign: float = 1.0, has_root: bool = True) -> None:
        self.mech, self.goal, self.c1, self.c2, self.sign, self.has_root = mech, goal, c1, c2, sign, has_root

    def epsilon(self, arm, x, nu):
        root = np.linalg.inv(x.root_D) if self.has_root else x.I
        error = self.goal - end_effector(arm)
        return -self.c1 * nu + self.sign * self.c2 * (root @ x.H @ x.psi @ B(arm) @ error)

    def moments(self, q, v):
        arm = TipToBase(self.mech, q)
        x = Stacked(arm)
        return arm.joints.T @ x.m @ self.epsilon(arm, x, x.m.T @ arm.joints @ v)

    def lyapunov(self, q, v) -> tuple[float, float]:
        """||nu||^2, twice the library's kinetic energy, and ||e||^2."""
        error = self.goal - end_effector(TipToBase(self.mech, q))
        return 2 * lw.kinetic_energy(self.mech, q, v), error @ error

    def rate(self, chain: Moving) -> float:
        """d/dt (||nu||^2 + ||e||^2) in this state under the control, by the equations of motion."""
        J = chain.arm.joints
        theta_ddot = J @ lw.forward_dynamics(chain.mech, chain.q, chain.v, self.moments(chain.q, chain.v))
        M_dot = chain.dot(lambda arm, x: x.mass_matrix)
        energy = chain.theta_dot @ (M_dot @ chain.theta_dot + 2 * chain.x.mass_matrix @ theta_ddot)
        return energy - 2 * (self.goal - end_effector(chain.arm)) @ chain.dot(lambda arm, x: end_effector(arm))


@results("jain1995", "Control 8.1", "8.4", by="model")
def test_rate_feedback():
    """The kinetic energy falls at the rate nu* c nu, and along a whole motion; the arm comes to rest anywhere."""
    chain, c = moving_chain(3, 2), np.array([1.0, 2.0, 4.0])
    control = Control(chain.mech, end_effector(chain.arm), c)
    nu = chain.x.m.T @ chain.theta_dot
    close(control.epsilon(chain.arm, chain.x, nu), -c * nu)  # (8.4)
    # With e the distance from here, ||e||^2 is stationary: the rate is that of twice the kinetic energy.
    close(control.rate(chain), -2 * nu @ (c * nu), 1e-9)
    states = motion(chain.mech, chain.q, chain.v, control.moments, np.linspace(0.0, 4.0, 41))
    energies = np.array([lw.kinetic_energy(chain.mech, *np.split(state, 2)) for state in states])
    assert (np.diff(energies) < 0.0).all() and energies[-1] < 1e-3 * energies[0]
    # Between the slowest and the fastest gain, for every motion.
    times = np.linspace(0.0, 4.0, 41)
    assert (energies[1:] < energies[0] * np.exp(-2 * c.min() * times[1:])).all()
    assert (energies[1:] > energies[0] * np.exp(-2 * c.max() * times[1:])).all()


@results("jain1995", "Control 8.2", "8.6", by="model")
def test_end_effector_regulation():
    """Printed: - c2 H psi B epsilon. With e for epsilon, the sign is + and D^(-1/2) is missing, for then
    d/dt (||nu||^2 + ||e||^2) = -2 nu* c1 nu, if c2 = 1; other gains c2 must be scalar and weight ||e||^2 in the sum."""
    chain, c1 = moving_chain(3, 2), np.array([3.0, 4.0, 5.0])
    goal_q = chain.q + np.array([0.5, -0.4, 0.6])
    goal = end_effector(TipToBase(chain.mech, goal_q))
    nu = chain.x.m.T @ chain.theta_dot
    close(Control(chain.mech, goal, c1, 1.0).rate(chain), -2 * nu @ (c1 * nu), 1e-9)
    for wrong in (dict(sign=-1.0), dict(has_root=False), dict(c2=np.array([0.5, 1.0, 2.0]))):
        differ(Control(chain.mech, goal, c1, **{"c2": 1.0, **wrong}).rate(chain), -2 * nu @ (c1 * nu))
    # Released at rest, the printed sign drives the arm away; unequal gains c2 let the sum grow in some slow motions.
    slow = 1e-3 * np.random.default_rng(1).normal(size=(20, 3))
    rates = lambda **how: [  # noqa: E731
        Control(chain.mech, goal, c1, **how).rate(Moving(chain.mech, chain.q, v)) for v in slow
    ]
    assert max(rates(c2=1.0)) < 0.0 < max(rates(c2=np.array([0.5, 1.0, 2.0])))
    assert max(rates(c2=1.0, sign=-1.0)) > 0.0

    c2, times = 25.0, np.linspace(0.0, 4.0, 41)
    control = Control(chain.mech, goal, c1, c2)
    states = motion(chain.mech, chain.q, chain.v, control.moments, times)
    parts = np.array([control.lyapunov(*np.split(state, 2)) for state in states])
    total = parts @ [1.0, c2]
    assert (np.diff(total) < 0.0).all() and total[-1] < 1e-5 * total[0]
    away = Control(chain.mech, goal, c1, c2, sign=-1.0)
    rest = motion(chain.mech, chain.q, np.zeros(3), away.moments, times[:11])
    assert away.lyapunov(*np.split(rest[-1], 2))[1] > parts[0, 1]
    np.testing.assert_allclose(end_effector(TipToBase(chain.mech, states[-1, :3])), goal, atol=1e-3)
    np.testing.assert_allclose(states[-1, 3:], 0.0, atol=5e-3)


@results("jain1995", "Control 8.2", "8.6", by="library")
def test_linkwise_regulates_the_end_effector():
    """The law is (8.6) with its sign, its factor and a scalar c2; the arm "goes to the prescribed configuration", in
    position and orientation, "while simultaneously driving all the velocities to zero"."""
    chain, c1, c2 = moving_chain(3, 2), np.array([3.0, 4.0, 5.0]), 25.0
    mech, J = chain.mech, chain.arm.joints
    goal_q = chain.q + np.array([0.5, -0.4, 0.6])
    goal = lw.frame_pose(mech, goal_q, "tip")
    regulation = lw.formulations.diagonal.end_effector_regulation(mech, "tip", goal, J.T @ c1, c2, c2)
    printed = Control(mech, end_effector(TipToBase(mech, goal_q)), c1, c2)
    nu = lw.formulations.diagonal.rates(mech, chain.q, chain.v)
    close(J @ (regulation.pull(chain.q) - (J.T @ c1) * nu), printed.epsilon(chain.arm, chain.x, J @ nu))
    close(regulation(0.0, chain.q, chain.v), printed.moments(chain.q, chain.v))
    states = motion(mech, chain.q, chain.v, lambda q, v: regulation(0.0, q, v), np.linspace(0.0, 8.0, 41))
    q, v = np.split(states, 2, axis=1)
    assert (np.diff(regulation.lyapunov(q, v)) < 0.0).all()
    np.testing.assert_allclose(lw.frame_pose(mech, q[-1], "tip"), goal, atol=1e-5)
    np.testing.assert_allclose(v[-1], 0.0, atol=1e-4)


@results("jain1995", "Control 8.2", by="library")
def test_the_prescribed_configuration_is_not_reached_from_everywhere():
    """Printed: the control "guarantees" it. A stretched arm whose springs pull along it is at rest, away from it."""
    mech = lw.mechanisms.planar_arm(2).with_gravity((0.0, 0.0, 0.0))
    goal = lw.frame_pose(mech, np.array([0.7, -1.4]), "tip")
    regulation = lw.formulations.diagonal.end_effector_regulation(mech, "tip", goal, orientation_gain=0.0)
    at_rest, stretched = np.zeros(2), np.zeros(2)
    assert np.abs(regulation.error(stretched)[:3]).max() > 0.1
    close(lw.forward_dynamics(mech, stretched, at_rest, regulation(0.0, stretched, at_rest)), at_rest)


@results("jain1995", "Control 8.2", by="library")
def test_from_an_open_set_of_starts_it_ends_elsewhere():
    """An arm with its elbow on the other side: a minimum of the springs' energy away from the goal.  By the paper's own
    function every motion that starts near it, with less energy than leads out, ends in it."""
    mech = lw.mechanisms.planar_arm(2).with_gravity((0.0, 0.0, 0.0))
    regulation = lw.formulations.diagonal.end_effector_regulation(
        mech, "tip", lw.frame_pose(mech, np.array([0.4, 1.2]), "tip"), orientation_gain=2.0
    )
    place = minimize(regulation.potential, np.array([1.6, -1.2]), tol=1e-14).x
    slopes = (
        np.array([regulation.pull(place + step) - regulation.pull(place - step) for step in 1e-5 * np.eye(2)]) / 2e-5
    )
    energy = lambda step: regulation.potential(place + step)  # noqa: E731
    h = 1e-3
    curvature = [
        [
            (energy(h * (a + b)) - energy(h * (a - b)) - energy(h * (b - a)) + energy(-h * (a + b))) / (4 * h * h)
            for b in np.eye(2)
        ]
        for a in np.eye(2)
    ]
    assert np.abs(regulation.pull(place)).max() < 1e-4 and np.abs(regulation.error(place)).max() > 0.5
    assert np.linalg.eigvalsh(curvature).min() > 0.1 and np.abs(slopes).max() > 0.1
    q, v = motion(mech, place + 0.05, np.zeros(2), lambda q, v: regulation(0.0, q, v), np.array([0.0, 6.0]))[
        -1
    ].reshape(2, 2)
    np.testing.assert_allclose(q, place, atol=1e-2)
