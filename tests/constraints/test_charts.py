"""Local parametrizations: Psi, its derivative, its Newton iteration, and where charts end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.kinematics import ChartError, Coordinates, ImplicitCoordinates, implicit_coordinates
from tests.simulated import simulate

from .built_in import FREEDOMS, built, every_mechanism, random_state


@pytest.mark.seed("spencer2004", "2.11", by="library")
@pytest.mark.seed("spencer2004", "2.14", by="library")
@pytest.mark.seed("spencer2004", "2.17", by="library")
@pytest.mark.seed("spencer2004", "2.18", by="library")
@pytest.mark.seed("spencer2004", "2.30", by="library")
@pytest.mark.seed("spencer2004", "2.44", by="library")
@pytest.mark.seed("spencer2004", "Theorem 2.3.1", by="library")
@every_mechanism
def test_psi_and_its_inverse_and_derivative(name):
    mech = built(name)
    q, v = random_state(name, 1)
    chart = lw.kinematics.local_parametrization(mech, q)
    rng = np.random.default_rng(0)
    y = 0.05 * rng.normal(size=FREEDOMS[name])
    there = chart.configuration(y)
    assert np.linalg.norm(lw.constraints.position_error(mech, there)) < 1e-13
    back, rate = chart.independent_state(there, lw.constraints.project(mech, there, v)[1])
    np.testing.assert_allclose(back, y, atol=1e-13)
    derivative = chart.derivative(there)
    np.testing.assert_allclose(lw.constraints.constraint_jacobian(mech, there) @ derivative, 0.0, atol=1e-11)
    np.testing.assert_allclose(chart.coordinates.rows(there) @ derivative, np.eye(len(y)), atol=1e-11)
    direction, h = rng.normal(size=len(y)), 1e-4
    ahead, behind = (chart.configuration(y + s * direction, there) for s in (h, -h))
    numeric = (lw.difference(mech, there, ahead) - lw.difference(mech, there, behind)) / (2 * h)
    np.testing.assert_allclose(derivative @ direction, numeric, atol=1e-5)
    np.testing.assert_allclose(chart.velocity(there, rate), lw.constraints.project(mech, there, v)[1], atol=1e-10)


@pytest.mark.seed("spencer2004", "2.15", by="library")
@pytest.mark.seed("spencer2004", "2.16", by="library")
@pytest.mark.seed("spencer2004", "2.42a", by="library")
@pytest.mark.seed("spencer2004", "2.42b", by="library")
@pytest.mark.seed("spencer2004", "2.45", by="library")
@every_mechanism
def test_the_local_state_space_form_gives_the_same_accelerations(name):
    mech = built(name)
    origin, _ = random_state(name, 1)
    chart = lw.kinematics.local_parametrization(mech, origin)
    q = chart.configuration(np.full(FREEDOMS[name], 0.03))  # away from the origin, where the chart is curved
    v = lw.constraints.project(mech, q, np.random.default_rng(1).normal(size=mech.nv))[1]
    tau = np.random.default_rng(2).normal(size=mech.nv)
    a = lw.forward_dynamics(mech, q, v, tau)
    found = chart.acceleration(q, v, chart.forward_dynamics(q, v, tau))
    np.testing.assert_allclose(found, a, atol=1e-9 * np.abs(a).max())


def test_charts_of_joints_rows_and_functions():
    mech = built("five_bar")
    q, v = random_state("five_bar")
    tau, rows = np.array([1.0, 0.0, 2.0, 0.0]), np.array([[1.0, 0.0, 0.0, 0.2], [0.0, 1.0, 1.0, 0.0]])

    def apex(q):  # the point between links 2 and 3, a nonlinear choice
        return lw.frame_pose(mech, q, "link3")[:2, 3]

    def apex_rows(q):
        return lw.jacobian(mech, q, "link3", frame="world_aligned")[3:5]

    def apex_bias(q, v):
        rate = lw.link_accelerations(mech, q, v, np.zeros(4))[2]
        twist = lw.link_velocities(mech, q, v)[2]
        return (lw.frame_pose(mech, q, "link3")[:3, :3] @ (rate[3:] + np.cross(twist[:3], twist[3:])))[:2]

    expected = lw.forward_dynamics(mech, q, v, tau)
    for independent in (("joint1", "joint2"), rows, Coordinates(apex, apex_rows, apex_bias)):
        chart = lw.kinematics.local_parametrization(mech, q, independent)
        y, _ = chart.independent_state(q, v)
        moved = chart.configuration(y + [0.02, -0.03])
        np.testing.assert_allclose(chart.independent_state(moved, v)[0], y + [0.02, -0.03], atol=1e-12)
        np.testing.assert_allclose(chart.acceleration(q, v, chart.forward_dynamics(q, v, tau)), expected, rtol=1e-9)


def pendulum() -> lw.Mechanism:
    """The pendulum of Section 2.3: a mass on two slides, and a rod of 1 m from it to the origin."""
    builder = lw.Builder().link("across").link("mass", 1.0).link("rod", 1e-3, (0.5, 0, 0), (0, 1e-4, 1e-4))
    builder.joint("q1", lw.Prismatic((1, 0, 0)), "ground", "across").joint(
        "q2", lw.Prismatic((0, 1, 0)), "across", "mass"
    )
    builder.joint("angle", lw.Revolute((0, 0, 1)), "mass", "rod")
    builder.loop("pivot", lw.Revolute((0, 0, 1)), "ground", None, "rod", (None, (1.0, 0.0, 0.0)))
    return builder.build("pendulum", (0.0, -9.81, 0.0))


def hanging(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle), angle + np.pi])


def whole_state(mech: lw.Mechanism, relation: ImplicitCoordinates, q, v, y, y_rate) -> tuple[np.ndarray, np.ndarray]:
    """[D1 R; H] and D2 R of Theorem 2.3.1 by differences: x = (q, v), y = (y, dy/dt), R = (R_q, dR_q/dt), h = (g, G v),
    of the pendulum, whose rates are velocities and of whose five constraints three are zero in its plane."""
    n, p, kept = mech.nv, len(y), lw.constraints.constraint_jacobian(mech, q).any(axis=1)

    def residual(x, both):
        (q, v), (y, y_rate) = np.split(x, [n]), np.split(both, [p])
        rates = relation.by_q(q, y) @ v + relation.by_y(q, y) @ y_rate  # (2.26)
        return np.concatenate([relation.residual(q, y), rates])

    def closure(x):
        q, v = x[:n], x[n:]
        rates = lw.constraints.constraint_jacobian(mech, q) @ v
        return np.concatenate([lw.constraints.position_error(mech, q)[kept], rates[kept]])

    def slopes(function, at):
        return np.stack([(function(at + e) - function(at - e)) / 2e-5 for e in 1e-5 * np.eye(len(at))], axis=1)

    x, both = np.concatenate([q, v]), np.concatenate([y, y_rate])
    stacked = np.vstack([slopes(lambda x: residual(x, both), x), slopes(closure, x)])
    return stacked, slopes(lambda both: residual(x, both), both)


@pytest.mark.seed("spencer2004", "2.22", by="library")
@pytest.mark.seed("spencer2004", "2.28", by="library")
def test_the_condition_on_the_whole_state_is_that_on_positions():
    """|D1 R; H| of positions and velocities is the square of |D1 R_q; G|, whatever the velocity: (2.28)."""
    mech = pendulum()
    chart = lw.kinematics.local_parametrization(mech, hanging(-1.0), ("q1",))
    for angle in np.linspace(-np.pi, np.pi, 13):
        q, v = hanging(angle), 1.7 * np.array([-np.sin(angle), np.cos(angle), 1.0])
        np.testing.assert_allclose(lw.constraints.constraint_jacobian(mech, q) @ v, 0.0, atol=1e-15)
        y, y_rate = chart.independent_state(q, v)
        stacked, _ = whole_state(mech, chart.coordinates, q, v, y, y_rate)
        conditions = chart.conditions(q, y)
        square = conditions[conditions.any(axis=1)]
        assert stacked.shape == (6, 6) and np.abs(stacked[4:, :3]).max() > 0.5  # velocities enter, in dG/dt
        assert abs(np.linalg.det(square)) == pytest.approx(abs(q[1]), abs=1e-14)
        assert abs(np.linalg.det(stacked)) == pytest.approx(q[1] ** 2, abs=1e-8)


@pytest.mark.seed("spencer2004", "2.21", by="library")
@pytest.mark.seed("spencer2004", "2.27", by="library")
@pytest.mark.seed("spencer2004", "Theorem 2.3.1", by="library")
def test_coordinates_that_the_relation_does_not_determine():
    """q1 = y^3: below the pivot (2.22) holds, yet Psi^-1 is not differentiable; |D2 R| = 9 y^4 is zero there alone."""
    mech = pendulum()
    relation = implicit_coordinates(mech, lambda q, y: [q[0] - y[0] ** 3], [0.0])
    for angle in (-2.0, -np.pi / 2, -1.0):
        q, v = hanging(angle), np.array([-np.sin(angle), np.cos(angle), 1.0])
        q[0] = 0.0 if angle == -np.pi / 2 else q[0]  # exactly
        y, y_rate = np.cbrt(q[:1]), np.array([0.6])
        stacked, by_y = whole_state(mech, relation, q, v, y, y_rate)
        assert abs(np.linalg.det(stacked)) == pytest.approx(np.sin(angle) ** 2, rel=1e-6)  # (2.22)
        assert np.linalg.det(by_y) == pytest.approx(9.0 * y[0] ** 4, abs=1e-8)  # (2.21)
        slopes = -np.linalg.solve(stacked, np.vstack([by_y, np.zeros((4, 2))]))  # D Psi
        near = replace(relation, guess=y)
        if y[0]:
            assert np.linalg.matrix_rank(slopes, tol=1e-6) == 2
            chart = lw.kinematics.local_parametrization(mech, q, near)
            np.testing.assert_allclose(slopes[:3, :1], chart.derivative(q, y), atol=1e-8)
        else:
            assert np.linalg.matrix_rank(slopes, tol=1e-6) < 2
            with pytest.raises(ChartError, match="does not determine y.*2.27 is violated"):
                lw.kinematics.local_parametrization(mech, q, near)


@pytest.mark.seed("spencer2004", "Section 2.3", by="library")
@pytest.mark.seed("spencer2004", "2.25", by="library")
@pytest.mark.seed("spencer2004", "2.27", by="library")
@pytest.mark.seed("spencer2004", "2.28", by="library")
def test_pendulum_conditions_fail_exactly_at_the_two_points():
    """y = q1 describes the motion wherever q2 is not zero, and fails at (1, 0) and (-1, 0) only."""
    mech, at = pendulum(), hanging
    chart = lw.kinematics.local_parametrization(mech, at(-1.0), ("q1",))
    for angle in np.linspace(-np.pi, np.pi, 41):
        q = at(angle)
        np.testing.assert_allclose(lw.constraints.position_error(mech, q), 0.0, atol=1e-15)
        # The determinant [1 0; 2 q1 2 q2] of the paper, with its one constraint q1^2 + q2^2 = 1.
        printed = np.linalg.det([[1.0, 0.0], [2.0 * q[0], 2.0 * q[1]]])
        smallest = np.linalg.svd(chart.conditions(q))[1][-1]
        assert (smallest < 1e-12) == (abs(printed) < 1e-12) == (abs(q[1]) < 1e-12)
    for angle in (0.0, np.pi):
        with pytest.raises(ChartError, match="do not describe the motion"):
            lw.kinematics.local_parametrization(mech, at(angle), ("q1",))
        lw.kinematics.local_parametrization(mech, at(angle), ("q2",))
    # One-to-one around other points: q1 gives back q2.
    q = chart.configuration([0.2])
    np.testing.assert_allclose(q[1], -np.sqrt(1.0 - (np.cos(-1.0) + 0.2) ** 2), atol=1e-12)
    with pytest.raises(ChartError, match="out of reach"):
        chart.configuration([2.0])


def test_newton_stops_by_its_contraction_estimate():
    """The returned point is as near to Psi(y) as the estimate promises, and a loose tolerance saves iterations."""
    mech = built("four_bar")
    chart = lw.kinematics.local_parametrization(mech, np.zeros(3), ("crank_joint",))
    exact = chart.configuration([0.6], tolerance=1e-14)
    for tolerance in (1e-3, 1e-6, 1e-9):
        found = chart.configuration([0.6], tolerance=tolerance)
        assert np.linalg.norm(found - exact) <= tolerance


def test_charts_change_on_the_way():
    """A crank-rocker driven by its rocker's angle: the chart fails at the rocker's turning points and is replaced."""
    mech = built("four_bar")
    q = np.zeros(3)
    v = 6.0 * lw.constraints.null_space(mech, q, independent=("crank_joint",))[:, 0]
    by_rocker = {"coordinates": "independent", "independent": ("rocker_joint",), "worst_condition": 8.0}
    motion = simulate(mech, q, v, 0.4, method="rk4", step=2e-3, **by_rocker)
    assert motion.chart_changes >= 1
    assert motion.constraint_error.max() < 1e-12 and motion.velocity_error.max() < 1e-10
    expected = lw.simulate(mech, q, v, 0.4, method="rk4", step=1e-3)
    np.testing.assert_allclose(motion.q[-1], expected.q[-1], atol=1e-6)
    assert np.ptp(motion.energy) < 1e-5


def test_derivatives_of_differences():
    """The tangent maps behind charts of quaternion joints, against central differences."""
    mech = lw.mechanisms.random_tree(6, 3)
    rng = np.random.default_rng(0)
    q0, v = lw.random_state(mech, rng)
    q1 = lw.integrate(mech, q0, 0.5 * rng.normal(size=mech.nv), 1.0)
    h = 1e-4
    values = [lw.difference(mech, q0, lw.integrate(mech, q1, v, s * h)) for s in (-1, 0, 1)]
    jacobian, bias = lw.compile("difference_jacobian", mech), lw.compile("difference_bias", mech)
    np.testing.assert_allclose(jacobian(q0, q1) @ v, (values[2] - values[0]) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(bias(q0, q1, v), (values[2] - 2 * values[1] + values[0]) / h**2, atol=1e-5)
    np.testing.assert_allclose(jacobian(q0, q0), np.eye(mech.nv), atol=1e-12)


def test_a_chart_of_open_loops_is_answered_with_a_warning():
    with pytest.warns(lw.MechanismWarning, match="loop 'pin' of mechanism 'four_bar' is open by"):
        lw.kinematics.local_parametrization(built("four_bar"), [0.1, 0.0, 0.0])
