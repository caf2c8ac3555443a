"""Independent coordinates given by relations R(q, y) = 0: charts, rates, dynamics and motions in them."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.kinematics import ChartError, implicit_coordinates, local_parametrization
from linkwise.mechanics.scalar import atan2, cos, sin, sqrt
from linkwise.mechanism import MechanismError
from tests.simulated import simulate

from .built_in import FREEDOMS, built, random_state
from .test_charts import pendulum

PENDULUM = pendulum()


def of_pendulum(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle), angle + np.pi])


def pendulum_angle():
    """tan-free: the mass stands in the direction of y, (q1, q2) x (cos y, sin y) = 0."""
    return implicit_coordinates(PENDULUM, lambda q, y: [q[1] * cos(y[0]) - q[0] * sin(y[0])], [-1.0])


def apex(length: float = 2.0):
    """The five-bar's apex in polar coordinates about the origin, each equation mixing both coordinates."""

    def relation(q, y, pose):
        return [pose[0, 3] - y[0] * cos(y[1]), length * (pose[1, 3] - y[0] * sin(y[1]))]

    return relation


def stiff_relation(q, y):
    """A relation of the crank-rocker that is linear in nothing."""
    return [sin(q[0]) + 0.3 * q[2] ** 2 - y[0] - 0.1 * y[0] ** 3]


CASES = {
    "pendulum": lambda: (PENDULUM, of_pendulum(-0.8), pendulum_angle()),
    "five_bar": lambda: (
        built("five_bar"),
        random_state("five_bar")[0],
        implicit_coordinates(built("five_bar"), apex(), [1.5, 1.2], frames=("link3",)),
    ),
    "four_bar": lambda: (
        built("four_bar"),
        random_state("four_bar")[0],
        implicit_coordinates(built("four_bar"), stiff_relation, [0.0]),
    ),
    "stewart_platform": lambda: (
        built("stewart_platform"),
        random_state("stewart_platform")[0],
        implicit_coordinates(built("stewart_platform"), platform_pose, np.zeros(6), frames=("platform",)),
    ),
}
every_case = pytest.mark.parametrize("case", CASES)


def platform_pose(q, y, pose):
    """Position and the vector part of the rotation of a platform: its angles are given by their sines only."""
    return [
        *(pose[i, 3] - y[i] - 0.1 * y[(i + 1) % 3] ** 2 for i in range(3)),
        *(pose[(i + 2) % 3, (i + 1) % 3] - pose[(i + 1) % 3, (i + 2) % 3] - 2.0 * sin(y[3 + i]) for i in range(3)),
    ]


def state_of(case: str):
    mech, q, coordinates = CASES[case]()
    v = lw.constraints.project(mech, q, np.random.default_rng(3).normal(size=mech.nv))[1]
    return mech, q, v, local_parametrization(mech, q, coordinates)


@pytest.mark.seed("spencer2004", "2.20", by="library")
@pytest.mark.seed("spencer2004", "2.25", by="library")
@pytest.mark.seed("spencer2004", "2.26", by="library")
@every_case
def test_coordinates_and_their_rates_along_a_motion(case):
    """R(q, y) = 0 along the motion, dy/dt by (2.26) and its derivative against differences of y itself."""
    mech, q, v, chart = state_of(case)
    a = lw.forward_dynamics(mech, q, v, np.zeros(mech.nv))
    h = 1e-3
    values = []
    for t in (-2 * h, -h, 0.0, h, 2 * h):
        # Along q, v, a to second order; what is missing is of third order in t.
        there = lw.constraints.project(mech, lw.integrate(mech, q, v + 0.5 * t * a, t), v)[0]
        values.append(chart.coordinates.value(there))
        np.testing.assert_allclose(chart.coordinates.residual(there, values[-1]), 0.0, atol=1e-12)
    y, rate = chart.independent_state(q, v)
    np.testing.assert_allclose(y, values[2], atol=1e-12)
    numeric = (values[0] - 8 * values[1] + 8 * values[3] - values[4]) / (12 * h)
    scale = 1.0 + np.abs(rate).max()
    np.testing.assert_allclose(rate, numeric, atol=2e-7 * scale)
    second = chart.coordinates.rows(q, y) @ a + chart.coordinates.curvature(q, v, y)
    numeric = (-values[0] + 16 * values[1] - 30 * values[2] + 16 * values[3] - values[4]) / (12 * h**2)
    np.testing.assert_allclose(second, numeric, atol=1e-4 * scale**2)


@pytest.mark.seed("spencer2004", "2.29", by="library")
@pytest.mark.seed("spencer2004", "2.31", by="library")
@pytest.mark.seed("spencer2004", "2.40", by="library")
@pytest.mark.seed("spencer2004", "2.44", by="library")
@every_case
def test_psi_and_its_derivative(case):
    mech, q, v, chart = state_of(case)
    y, rate = chart.independent_state(q, v)
    rng = np.random.default_rng(1)
    there = y + 0.03 * rng.normal(size=len(y))
    moved = chart.configuration(there)
    np.testing.assert_allclose(lw.constraints.position_error(mech, moved), 0.0, atol=1e-12)
    np.testing.assert_allclose(chart.coordinates.residual(moved, there), 0.0, atol=1e-12)
    np.testing.assert_allclose(chart.coordinates.value(moved), there, atol=1e-11)
    basis = chart.derivative(moved, there)
    direction, h = rng.normal(size=len(y)), 1e-4
    ahead, behind = (chart.configuration(there + s * direction, moved, 1e-13) for s in (h, -h))
    numeric = (lw.difference(mech, moved, ahead) - lw.difference(mech, moved, behind)) / (2 * h)
    np.testing.assert_allclose(basis @ direction, numeric, atol=1e-5 * np.abs(numeric).max())
    # As printed, from the derivatives of R themselves.
    left, right = chart.coordinates.by_q(moved, there), chart.coordinates.by_y(moved, there)
    printed = np.linalg.pinv(np.vstack([left, lw.constraints.constraint_jacobian(mech, moved)]))[:, : len(y)] @ -right
    np.testing.assert_allclose(basis, printed, atol=1e-9 * np.abs(printed).max())
    np.testing.assert_allclose(chart.velocity(q, rate), v, atol=1e-10)


@pytest.mark.seed("spencer2004", "2.42b", by="library")
@pytest.mark.seed("spencer2004", "2.43b", by="library")
@every_case
def test_dynamics_agree_with_every_formulation(case):
    mech, q, v, chart = state_of(case)
    rng = np.random.default_rng(2)
    tau, wrenches = rng.normal(size=mech.nv), rng.normal(size=(mech.n_links, 6))
    found = chart.acceleration(q, v, chart.forward_dynamics(q, v, tau, wrenches))
    for method in ("svd", "lagrange", "partitioning", "tangent", "differentiable"):
        if method == "lagrange" and np.linalg.eigvalsh(lw.mass_matrix(mech, q))[0] < 1e-9:
            continue
        expected = lw.forward_dynamics(mech, q, v, tau, method=method, wrenches=wrenches)
        np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    coordinates = chart.coordinates
    own = lw.forward_dynamics(mech, q, v, tau, wrenches=wrenches, independent=coordinates)
    np.testing.assert_allclose(own, found, atol=1e-9 * np.abs(found).max())
    np.testing.assert_allclose(
        lw.constraints.null_space(mech, q, independent=coordinates), chart.derivative(q), atol=1e-9
    )


@pytest.mark.seed("spencer2004", "2.45", by="library")
def test_the_zero_printed_in_2_45_is_for_linear_coordinates_only():
    """dK/dt dy/dt against differences of K along the motion: the second derivative of R belongs into it."""
    mech, q, v, chart = state_of("five_bar")
    y, rate = chart.independent_state(q, v)
    h, slopes = 1e-5, []
    for t in (-h, h):
        there = chart.configuration(y + t * rate, q, 1e-14)
        slopes.append(chart.derivative(there, y + t * rate) @ rate)
    numeric = (slopes[1] - slopes[0]) / (2 * h)
    np.testing.assert_allclose(chart.offset(q, v), numeric, atol=1e-6)
    stacked = np.vstack([chart.coordinates.by_q(q, y), lw.constraints.constraint_jacobian(mech, q)])
    bias = np.concatenate([np.zeros(2), lw.constraints.constraint_bias(mech, q, v)])
    printed = -np.linalg.pinv(stacked) @ bias
    assert np.abs(printed - numeric).max() > 0.1
    # With the missing term it holds, and any such k gives the same accelerations.
    bias[:2] = chart.coordinates.bias(q, v, y, rate)
    np.testing.assert_allclose(-np.linalg.pinv(stacked) @ bias, numeric, atol=1e-6)


@pytest.mark.parametrize("case", ["pendulum", "five_bar", "four_bar"])
def test_motions_in_implicit_coordinates(case):
    """Integrated in y: the motion of the other formulations, loops closed throughout, energy kept."""
    mech, q, v, chart = state_of(case)
    implicit = {"coordinates": "independent", "independent": chart.coordinates, "worst_condition": 1e9}
    motion = simulate(mech, q, 0.5 * v, 0.1, method="rk4", step=1e-3, **implicit)
    assert motion.chart_changes == 0
    assert motion.constraint_error.max() < 1e-11 and motion.velocity_error.max() < 1e-9
    expected = lw.simulate(mech, q, 0.5 * v, 0.1, method="rk4", step=1e-3)
    np.testing.assert_allclose(motion.q[-1], expected.q[-1], atol=2e-9)
    assert np.ptp(motion.energy) < 1e-7 * (1.0 + np.abs(motion.energy).max())


def test_a_pendulum_goes_round_and_round_in_its_angle():
    """The angle given implicitly is global: no chart is changed over several turns, and y counts them."""
    chart = local_parametrization(PENDULUM, of_pendulum(-0.8), pendulum_angle())
    q, rate = of_pendulum(-0.8), np.array([12.0])
    v = chart.velocity(q, rate)
    by_angle = {"coordinates": "independent", "independent": pendulum_angle(), "worst_condition": 50.0}
    motion = simulate(PENDULUM, q, v, 1.5, method="rk4", step=5e-3, **by_angle)
    assert motion.chart_changes == 0
    turned = np.unwrap(np.arctan2(motion.q[:, 1], motion.q[:, 0]))
    assert turned[-1] - turned[0] > 4 * np.pi
    # The rod's angle is a coordinate of the tree as well, and turns with the mass.
    np.testing.assert_allclose(motion.q[:, 2] - motion.q[0, 2], turned - turned[0], atol=1e-9)
    # A plain pendulum, its rod's inertia included, has the same energy all the way: theta' from the height.
    inertia = 1.0 + 1e-3 * 0.25 + 1e-4
    weight = 9.81 * (1.0 + 1e-3 * 0.5)
    speeds = np.einsum("ij,ij->i", motion.v[:, :1], motion.v[:, :1]) + motion.v[:, 1] ** 2
    np.testing.assert_allclose(
        0.5 * inertia * speeds + weight * motion.q[:, 1], 0.5 * inertia * 144.0 + weight * np.sin(-0.8), atol=1e-4
    )


def test_derivatives_of_the_user_and_their_complex_step():
    """by_q and by_y given: the bias by complex step is that of the traced relation, and that of the user as well."""
    mech, (q, v) = built("four_bar"), random_state("four_bar")
    traced = implicit_coordinates(mech, stiff_relation, [0.0])

    def relation(q, y):
        return np.array([np.sin(q[0]) + 0.3 * q[2] ** 2 - y[0] - 0.1 * y[0] ** 3])

    def by_q(q, y):
        return np.array([[np.cos(q[0]), 0.0, 0.6 * q[2]]])

    def by_y(q, y):
        return np.array([[-1.0 - 0.3 * y[0] ** 2]])

    own = implicit_coordinates(mech, relation, [0.0], by_q=by_q, by_y=by_y)
    y = traced.value(q)
    np.testing.assert_allclose(own.value(q), y, rtol=1e-13)
    np.testing.assert_allclose(own.rows(q, y), traced.rows(q, y), rtol=1e-13)
    np.testing.assert_allclose(own.curvature(q, v, y), traced.curvature(q, v, y), rtol=1e-12)
    np.testing.assert_allclose(traced.by_y(q, y), by_y(q, y), rtol=1e-14)

    def real_only(q, y):
        return by_q(np.asarray(q, dtype=float) if np.isrealobj(q) else lw.jacobian(mech, q, "rocker"), y)

    refused = implicit_coordinates(mech, relation, [0.0], by_q=real_only, by_y=by_y)
    with pytest.raises(MechanismError, match="do not take complex arrays.*give bias"):
        refused.curvature(q, v, y)
    given = implicit_coordinates(
        mech,
        relation,
        [0.0],
        by_q=real_only,
        by_y=by_y,
        bias=lambda q, v, y, r: [-np.sin(q[0]) * v[0] ** 2 + 0.6 * v[2] ** 2 - 0.6 * y[0] * r[0] ** 2],
    )
    np.testing.assert_allclose(given.curvature(q, v, y), traced.curvature(q, v, y), rtol=1e-12)


def test_quaternion_joints_and_functions_of_scalars():
    """A spherical pendulum without loops: two of its three degrees of freedom by angles of a point, one by the spin."""
    mech = (
        lw.Builder()
        .link("bob", 1.0, (0.0, 0.0, -1.0), (0.1, 0.2, 0.3))
        .joint("ball", lw.Spherical(), "ground", "bob")
        .build()
    )

    def relation(q, y, pose):
        x, z = pose[0, 2], pose[2, 2]
        return [atan2(x, z) - y[0], sqrt(x * x + z * z) * sin(y[1]) - pose[1, 2] * cos(y[1]), 2.0 * q[3] - y[2] + 0.0]

    rng = np.random.default_rng(0)
    q = lw.integrate(mech, lw.neutral(mech), [0.3, -0.4, 0.2], 1.0)
    v = rng.normal(size=3)
    coordinates = implicit_coordinates(mech, relation, [0.0, 0.0, 0.0], frames=("bob",))
    chart = local_parametrization(mech, q, coordinates)
    y, rate = chart.independent_state(q, v)
    h = 1e-4
    values = [coordinates.value(lw.integrate(mech, q, v, t)) for t in (-h, 0.0, h)]
    np.testing.assert_allclose(rate, (values[2] - values[0]) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(
        coordinates.curvature(q, v, y), (values[2] - 2 * values[1] + values[0]) / h**2, atol=1e-5
    )
    tau = rng.normal(size=3)
    found = chart.acceleration(q, v, chart.forward_dynamics(q, v, tau))
    np.testing.assert_allclose(found, lw.forward_dynamics(mech, q, v, tau), rtol=1e-9)


def test_inverse_dynamics_of_accelerations_of_coordinates():
    for case in ("five_bar", "four_bar"):
        mech, q, v, chart = state_of(case)
        wanted = np.random.default_rng(5).normal(size=FREEDOMS[case])
        tau = lw.inverse_dynamics(mech, q, v, wanted, independent=chart.coordinates)
        np.testing.assert_allclose(chart.forward_dynamics(q, v, tau), wanted, atol=1e-8)
        batch = lw.inverse_dynamics(mech, np.stack([q, q]), np.stack([v, 0 * v]), wanted, independent=chart.coordinates)
        np.testing.assert_allclose(batch[0], tau, atol=1e-9)


def test_batches_of_states_with_coordinates():
    mech, chart = state_of("four_bar")[::3]
    states = [random_state("four_bar", seed) for seed in range(4)]
    q, v = (np.stack(x) for x in zip(*states, strict=True))
    tau = np.random.default_rng(0).normal(size=(4, 3))
    together = lw.forward_dynamics(mech, q, v, tau, independent=chart.coordinates)
    np.testing.assert_allclose(together, lw.forward_dynamics(mech, q, v, tau), atol=1e-9 * np.abs(together).max())
    bases = lw.constraints.null_space(mech, q, independent=chart.coordinates)
    np.testing.assert_allclose(bases[2], chart.derivative(q[2]), atol=1e-9)
    assert lw.forward_dynamics(mech, q[:0], v[:0], tau[:0], independent=chart.coordinates).shape == (0, 3)
    none = lw.inverse_dynamics(mech, q[:0], v[:0], np.zeros((0, 1)), independent=chart.coordinates)
    assert none.shape == (0, 3)


@pytest.mark.seed("spencer2004", "2.27", by="library")
@pytest.mark.seed("spencer2004", "2.28", by="library")
def test_conditions_are_checked():
    mech = PENDULUM
    x = implicit_coordinates(mech, lambda q, y: [q[0] - y[0]], [0.5])
    local_parametrization(mech, of_pendulum(-1.0), x)
    with pytest.raises(ChartError, match=r"do not describe the motion.*\(2\.28\)"):
        local_parametrization(mech, of_pendulum(0.0), x)
    squared = implicit_coordinates(mech, lambda q, y: [q[1] + 1.0 - y[0] ** 2], [0.0])
    with pytest.raises(ChartError, match=r"does not determine y.*2\.27 is violated"):
        local_parametrization(mech, of_pendulum(-np.pi / 2), squared)
    with pytest.raises(ChartError, match="no coordinates y"):
        implicit_coordinates(mech, lambda q, y: [y[0] ** 2 + 1.0 + 0.0 * q[0]], [0.3]).value(of_pendulum(0.1))
    with pytest.raises(ChartError, match="1 degrees of freedom to 2 coordinates"):
        two = implicit_coordinates(mech, lambda q, y: [q[0] - y[0], q[1] - y[1]], [0.0, 0.0])
        local_parametrization(mech, of_pendulum(-1.0), two)


def test_relations_that_cannot_be_used():
    mech = PENDULUM
    with pytest.raises(MechanismError, match="linkwise.extend.scalar"):
        implicit_coordinates(mech, lambda q, y: [np.sin(q[0]) - y[0]], [0.0])
    with pytest.raises(MechanismError, match="gives 1 numbers, not an array of shape"):
        implicit_coordinates(mech, lambda q, y: [q[0], q[1]], [0.0])
    with pytest.raises(MechanismError, match="guess must be"):
        implicit_coordinates(mech, lambda q, y: [q[0] - y[0]], 0.0)
    with pytest.raises(MechanismError, match="give both derivatives"):
        implicit_coordinates(mech, lambda q, y: [q[0] - y[0]], [0.0], by_q=lambda q, y: [[1.0, 0.0, 0.0]])
    with pytest.raises(MechanismError, match="did you mean 'mass'"):
        implicit_coordinates(mech, lambda q, y, pose: [pose[0, 3] - y[0]], [0.0], frames=("masss",))
    with pytest.raises(MechanismError, match="must give 1 rows"):
        implicit_coordinates(
            mech, lambda q, y: [q[0], q[1]], [0.0], by_q=lambda q, y: np.eye(3)[:1], by_y=lambda q, y: -np.eye(1)
        ).value(of_pendulum(0.3))
