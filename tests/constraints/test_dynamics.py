"""All formulations give one motion, and it is that of free bodies held together by multipliers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError
from tests.oracle import maximal_coordinates
from tests.simulated import simulate
from tests.work import lines_run

from .built_in import FREEDOMS, STRETCHED, SYMMETRIC, assembled, built, every_mechanism, random_state

METHODS = ("svd", "lagrange", "partitioning", "tangent", "differentiable")


def relative(found, expected) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@every_mechanism
def test_built_in_mechanisms_are_assembled_with_the_freedoms_they_claim(name):
    mech = built(name)
    np.testing.assert_allclose(lw.constraints.position_error(mech, assembled(name)), 0.0, atol=1e-14)
    assert lw.constraints.degrees_of_freedom(mech, assembled(name)) == FREEDOMS[name]
    assert lw.constraints.degrees_of_freedom(mech, random_state(name)[0]) == FREEDOMS[name]


@pytest.mark.seed("spencer2004", "2.1a", by="library")
@pytest.mark.seed("spencer2004", "2.1b", by="library")
@pytest.mark.seed("spencer2004", "2.1c", by="library")
@pytest.mark.seed("spencer2004", "A.8a", by="library")
@pytest.mark.seed("spencer2004", "A.8b", by="library")
@pytest.mark.seed("spencer2004", "A.8c", by="library")
@pytest.mark.seed("spencer2004", "2.43b", by="library")
@every_mechanism
def test_all_formulations_agree_with_each_other_and_with_free_bodies(name):
    mech = built(name)
    for seed in range(3):
        q, v = random_state(name, seed)
        tau = np.random.default_rng(seed + 10).normal(size=mech.nv) * 5.0
        found = {method: lw.forward_dynamics(mech, q, v, tau, method=method) for method in METHODS}
        for a in found.values():
            assert relative(a, found["svd"]) < 1e-9
        assert relative(found["svd"], maximal_coordinates.forward_dynamics(mech, q, v, tau).accelerations) < 1e-9
        # (2.1b), (A.8b) with what the constraints exert, and (2.1c), (A.8c): g is zero, and stays so along q, v, a to
        # second order in time, so that what is left of it falls eightfold when the time is halved.
        a, forces = found["svd"], lw.constraints.constraint_forces(mech, q, v, tau)
        inertial = lw.mass_matrix(mech, q) @ a
        assert relative(inertial, tau - lw.bias_force(mech, q, v) + forces) < 1e-8
        np.testing.assert_allclose(lw.constraints.position_error(mech, q), 0.0, atol=1e-11)
        errors = [
            np.linalg.norm(lw.constraints.position_error(mech, lw.integrate(mech, q, v + 0.5 * t * a, t)))
            for t in (2e-3, 1e-3)
        ]
        assert errors[1] < 1e-9 or 6.0 < errors[0] / errors[1] < 10.0


@pytest.mark.seed("spencer2004", "2.2", by="library")
@pytest.mark.seed("spencer2004", "2.3", by="library")
@every_mechanism
def test_accelerations_keep_the_loops_closed(name):
    mech = built(name)
    q, v = random_state(name)
    a = lw.forward_dynamics(mech, q, v, np.ones(mech.nv))
    bias = lw.constraints.constraint_bias(mech, q, v)
    np.testing.assert_allclose(lw.constraints.constraint_jacobian(mech, q) @ v, 0.0, atol=1e-11)
    np.testing.assert_allclose(
        lw.constraints.constraint_jacobian(mech, q) @ a + bias, 0.0, atol=1e-9 * (1.0 + np.abs(bias).max())
    )


@pytest.mark.seed("spencer2004", "2.4", by="library")
@pytest.mark.seed("spencer2004", "2.5a", by="library")
@pytest.mark.seed("spencer2004", "2.5b", by="library")
def test_lagrange_multipliers_as_printed():
    """Two planar rows of full rank: lambda = (G M^-1 G*)^-1 (G M^-1 F + dG/dt v)."""
    mech = built("five_bar")
    q, v = random_state("five_bar", 4)
    tau = np.array([1.0, -2.0, 3.0, 0.5])
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    planar = np.flatnonzero(jacobian.any(axis=1))
    assert len(planar) == 2
    jacobian, bias = jacobian[planar], lw.constraints.constraint_bias(mech, q, v)[planar]
    inverse = np.linalg.inv(lw.mass_matrix(mech, q))
    force = tau - lw.bias_force(mech, q, v)
    printed = np.linalg.solve(jacobian @ inverse @ jacobian.T, jacobian @ inverse @ force + bias)
    np.testing.assert_allclose(lw.constraints.multipliers(mech, q, v, tau)[planar], printed, rtol=1e-10)
    np.testing.assert_allclose(
        lw.forward_dynamics(mech, q, v, tau, method="lagrange"),
        inverse @ (force - jacobian.T @ printed),
        rtol=1e-10,
    )
    # (2.5a), (2.5b): along a motion that is integrated in this form, dq/dt is v and dv/dt the printed right-hand side.
    np.testing.assert_array_equal(lw.kinematics.coordinate_rates(mech, q, v), v)
    h = 1e-3
    options = {"formulation": "lagrange", "stabilization": None, "method": "dop853", "rtol": 1e-12, "atol": 1e-12}
    motion = simulate(mech, q, v, 4 * h, tau, t_eval=h * np.arange(5), **options)
    slopes = [(x[0] - 8 * x[1] + 8 * x[3] - x[4]) / (12 * h) for x in (motion.q, motion.v)]
    np.testing.assert_allclose(slopes[0], motion.v[2], atol=1e-8)
    there = lw.forward_dynamics(mech, motion.q[2], motion.v[2], tau, method="lagrange")
    np.testing.assert_allclose(slopes[1], there, atol=1e-6)
    assert np.abs(slopes[0] - v).max() > 1e-3  # it moves


@every_mechanism
def test_reactions_replace_the_loops(name):
    """The spanning tree, driven by the loop reactions as external wrenches, moves like the closed mechanism."""
    mech = built(name)
    q, v = random_state(name, 2)
    rng = np.random.default_rng(5)
    tau, wrenches = rng.normal(size=mech.nv), rng.normal(size=(mech.n_links, 6))
    a = lw.forward_dynamics(mech, q, v, tau, wrenches=wrenches)
    reactions = lw.constraints.loop_reactions(mech, q, v, tau, wrenches=wrenches)
    forces = lw.constraints.constraint_forces(mech, q, v, tau, wrenches=wrenches)
    total = wrenches.copy()
    for loop, reaction in zip(mech.loops, reactions, strict=True):
        at = lw.frame_pose(mech, q, loop.link_b) @ homogeneous(loop.pose_b)
        moment, force = at[:3, :3] @ reaction[:3], at[:3, :3] @ reaction[3:]
        for link, sign in ((loop.link_b, 1.0), (loop.link_a, -1.0)):
            body = mech.frame(link).body
            if body >= 0:
                pose = lw.link_poses(mech, q)[body]
                arm = at[:3, 3] - pose[:3, 3]
                total[body] += sign * np.concatenate(
                    [pose[:3, :3].T @ (moment + np.cross(arm, force)), pose[:3, :3].T @ force]
                )
    tree = mech.spanning_tree
    assert relative(lw.forward_dynamics(tree, q, v, tau, total), a) < 1e-8
    assert relative(lw.forward_dynamics(tree, q, v, tau + forces, wrenches), a) < 1e-8


def homogeneous(pose) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = pose
    return matrix


@every_mechanism
def test_inverse_dynamics_undoes_forward_dynamics(name):
    mech = built(name)
    q, v = random_state(name, 3)
    a = lw.forward_dynamics(mech, q, v, np.random.default_rng(0).normal(size=mech.nv))
    tau = lw.inverse_dynamics(mech, q, v, a)
    assert relative(lw.forward_dynamics(mech, q, v, tau), a) < 1e-8
    for _ in range(3):  # any other forces with the same effect are larger: adding constraint forces does nothing
        other = tau + lw.constraints.constraint_jacobian(mech, q).T @ np.random.default_rng(1).normal(
            size=mech.n_constraints
        )
        assert np.linalg.norm(other) > np.linalg.norm(tau)


def crank_and_slider():
    """A crank of 0.3 m and a rod of 1 m that drive a slider along x, without gravity."""
    pin = lw.Revolute((0, 0, 1))
    builder = lw.Builder("slider-crank")
    for name, length in (("arm", 0.3), ("rod", 1.0), ("block", 0.1)):
        builder.link(name, 1.0, (length / 2, 0, 0), (1e-3, 1e-3, 1e-3))
    builder.joint("crank", pin, "ground", "arm").joint("knee", pin, "arm", "rod", pose=(0.3, 0, 0))
    builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "block")
    return builder.loop("pin", pin, "rod", (1.0, 0, 0), "block", (0, 0, 0)).build(gravity=(0, 0, 0))


def test_forces_that_do_not_reach_the_motion_are_refused():
    """A slider cannot turn its crank at dead centres, be they exact or so but for round-off; near them it takes the
    torque of the crank by the ratio of their velocities."""
    mech, v = crank_and_slider(), np.zeros(3)
    refused = pytest.raises(MechanismError, match="'slide' .* cannot produce this acceleration")
    for q in (np.array([0.0, 0.0, 1.3]), np.array([np.pi, -np.pi, 0.7]), np.array([np.pi, np.pi, 0.7])):
        a = lw.constraints.null_space(mech, q, independent="crank") @ [1.0]
        for given in (
            {"a": [1.0], "independent": "crank"},
            {"a": a},
            {"a": [1.0], "independent": "crank", "weights": [4]},
        ):
            with refused:
                lw.inverse_dynamics(mech, q, v, actuated="slide", **given)
        with refused:
            lw.inverse_dynamics(mech, np.stack([q, q]), v, np.stack([a, a]), actuated="slide")
        still = lw.inverse_dynamics(mech, q, v, 0.0 * v, actuated="slide")
        np.testing.assert_array_equal(still, 0.0)
    for angle in (1e-3, 1e-6, 1e-8):
        q = lw.constraints.assemble(mech, [angle, -1.3 * angle, 1.3], hold=["crank"])
        crank, slide = (
            lw.inverse_dynamics(mech, q, v, [1.0], actuated=name, independent="crank") for name in ("crank", "slide")
        )
        ratio = -0.3 * np.sin(angle) * (1.0 + 0.3 * np.cos(angle) / np.sqrt(1.0 - (0.3 * np.sin(angle)) ** 2))
        np.testing.assert_allclose(slide[2] * ratio, crank[0], rtol=1e-5)


def test_actuated_joints_and_weights():
    mech = built("stewart_platform")
    q, v = random_state("stewart_platform")
    legs = [f"leg{i}_rod_joint" for i in range(1, 7)]
    a = lw.forward_dynamics(mech, q, v, np.random.default_rng(0).normal(size=mech.nv))
    tau = lw.inverse_dynamics(mech, q, v, a, actuated=legs)
    driven = np.concatenate([np.arange(mech.nv)[mech.v_index(leg)] for leg in legs])
    assert not np.delete(tau, driven).any()
    assert relative(lw.forward_dynamics(mech, q, v, tau), a) < 1e-8
    with pytest.raises(MechanismError, match="cannot produce this acceleration"):
        lw.inverse_dynamics(mech, q, v, a, actuated=legs[:5])

    mech = built("four_bar")
    q, v = random_state("four_bar")
    a = lw.forward_dynamics(mech, q, v, [1.0, 0.0, 0.0])
    both = ("crank_joint", "rocker_joint")
    even, uneven = (lw.inverse_dynamics(mech, q, v, a, actuated=both, weights=w) for w in (None, (1e6, 1.0)))
    assert abs(uneven[0]) < 1e-3 * abs(even[0]) and abs(uneven[2]) > abs(even[2])
    crank = lw.inverse_dynamics(mech, q, v, a, actuated=("crank_joint",))
    np.testing.assert_allclose(crank, [1.0, 0.0, 0.0], atol=1e-10)
    alone = lw.inverse_dynamics(mech, q, v, a[:1], actuated=("crank_joint",), independent=("crank_joint",))
    np.testing.assert_allclose(alone, crank, atol=1e-10)
    with pytest.raises(MechanismError, match="violates? the constraints of loop 'pin'"):
        lw.inverse_dynamics(mech, q, v, a + [0.0, 1.0, 0.0])


def test_a_given_distribution_of_the_effort():
    """Forces in the given proportions, whatever the configuration, and with the motion asked for."""
    mech, both = built("four_bar"), ("rocker_joint", "crank_joint")
    for seed in range(3):
        q, v = random_state("four_bar", seed)
        a = lw.forward_dynamics(mech, q, v, [1.0, 0.0, 0.5])
        tau = lw.inverse_dynamics(mech, q, v, a, actuated=both, distribution=[[3.0], [1.0]])
        assert tau[1] == 0.0 and np.isclose(tau[2], 3.0 * tau[0], rtol=1e-12)  # rows in the order of actuated
        assert relative(lw.forward_dynamics(mech, q, v, tau), a) < 1e-9
        np.testing.assert_allclose(
            lw.inverse_dynamics(mech, q, v, a, actuated=both, distribution=[3.0, 1.0]), tau, rtol=1e-12
        )
        # With K_a* W = 1 the pattern is multiplied by the generalized force of the crank: half of it from each joint.
        basis = lw.constraints.null_space(mech, q, independent=("crank_joint",))[[2, 0]]
        shares = 0.5 / basis
        assert np.allclose(basis.T @ shares, 1.0)
        load = lw.inverse_dynamics(mech.spanning_tree, q, v, a)
        whole = lw.constraints.null_space(mech, q, independent=("crank_joint",))[:, 0] @ load
        tau = lw.inverse_dynamics(mech, q, v, a, actuated=both, distribution=shares)
        np.testing.assert_allclose(tau[[2, 0]], shares[:, 0] * whole, rtol=1e-9)
        np.testing.assert_allclose(tau[[2, 0]] * basis[:, 0], 0.5 * whole, rtol=1e-9)  # each half of the power


def test_distributions_of_a_stewart_platform_with_redundant_motors():
    """Six legs and two motors at the foot of one: eight forces for six degrees of freedom, by patterns or weights."""
    mech = built("stewart_platform")
    q, v = random_state("stewart_platform")
    legs = [f"leg{i}_rod_joint" for i in range(1, 7)]
    a = lw.forward_dynamics(mech, q, v, np.random.default_rng(0).normal(size=mech.nv))
    actuated = [*legs, "leg1_joint"]
    count = sum(mech.bodies[mech.body_index(name)].kind.nv for name in actuated)
    driven = np.concatenate([np.arange(mech.nv)[mech.v_index(name)] for name in actuated])
    patterns = np.random.default_rng(1).normal(size=(count, 6))
    tau = lw.inverse_dynamics(mech, q, v, a, actuated=actuated, distribution=patterns)
    assert not np.delete(tau, driven).any()
    assert relative(lw.forward_dynamics(mech, q, v, tau), a) < 1e-8
    x = np.linalg.lstsq(patterns, tau[driven], rcond=None)[0]
    np.testing.assert_allclose(patterns @ x, tau[driven], atol=1e-8)  # in the span of the patterns
    # Patterns that are more than enough: the least of them, which weights say as well.
    weights = np.random.default_rng(2).uniform(0.5, 2.0, count)
    by_weights = lw.inverse_dynamics(mech, q, v, a, actuated=actuated, weights=weights)
    by_patterns = lw.inverse_dynamics(mech, q, v, a, actuated=actuated, distribution=np.diag(weights**-0.5))
    np.testing.assert_allclose(by_weights, by_patterns, atol=1e-10)
    # A batch, with patterns of its own for every state.
    batch = lw.inverse_dynamics(
        mech, np.stack([q, q]), v, a, actuated=actuated, distribution=np.stack([patterns, 2.0 * patterns])
    )
    np.testing.assert_allclose(batch, np.stack([tau, tau]), atol=1e-9)


def test_distributions_and_weights_that_make_no_sense():
    mech, both = built("four_bar"), ("crank_joint", "rocker_joint")
    q, v = random_state("four_bar")
    a = lw.forward_dynamics(mech, q, v, [1.0, 0.0, 0.0])

    def solve(**options):
        return lw.inverse_dynamics(mech, q, v, a, actuated=both, **options)

    basis = lw.constraints.null_space(mech, q)[[0, 2], 0]
    with pytest.raises(MechanismError, match="shared as the 1 columns of distribution say, cannot produce"):
        solve(distribution=[[basis[1]], [-basis[0]]])  # these forces cancel along the freedom
    with pytest.raises(MechanismError, match=r"shape \(..., 2, k\), not \(3, 1\)"):
        solve(distribution=np.ones((3, 1)))
    with pytest.raises(MechanismError, match="give one of them"):
        solve(distribution=[1.0, 1.0], weights=[1.0, 1.0])
    for weights in ([1.0], [1.0, -1.0], [1.0, 0.0], [1.0, np.nan]):
        with pytest.raises(MechanismError, match="2 positive numbers"):
            solve(weights=weights)
    # Weights go with the joints as they are named, in any order.
    one = lw.inverse_dynamics(mech, q, v, a, actuated=("crank_joint", "rocker_joint"), weights=(1.0, 9.0))
    other = lw.inverse_dynamics(mech, q, v, a, actuated=("rocker_joint", "crank_joint"), weights=(9.0, 1.0))
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_batches_with_singular_states_among_them():
    """A thousand five-bars at once, some stretched out: each as if it were alone."""
    mech, rng = built("five_bar"), np.random.default_rng(0)
    q = np.empty((1000, 4))
    q[:] = lw.constraints.project(
        mech, SYMMETRIC + 0.02 * rng.normal(size=(1000, 4)), np.zeros((1000, 4)), largest=1.0
    )[0]
    q[::7] = STRETCHED
    v = lw.constraints.project(mech, q, rng.normal(size=(1000, 4)))[1]
    tau = rng.normal(size=(1000, 4))
    np.testing.assert_array_equal(np.unique(lw.constraints.degrees_of_freedom(mech, q)), [2, 3])
    assert (lw.constraints.degrees_of_freedom(mech, q[::7]) == 3).all()
    for method in ("svd", "lagrange"):
        together = lw.forward_dynamics(mech, q, v, tau, method=method)
        assert np.isfinite(together).all()
        for i in range(0, 1000, 97):
            alone = lw.forward_dynamics(mech, q[i], v[i], tau[i], method=method)
            np.testing.assert_allclose(together[i], alone, rtol=1e-9, atol=1e-9)
    basis = lw.constraints.null_space(mech, q[:8])
    assert basis.shape == (8, 4, 3) and not basis[1, :, 2].any() and basis[0, :, 2].any()
    np.testing.assert_allclose(lw.constraints.constraint_jacobian(mech, q[:8]) @ basis, 0.0, atol=1e-12)


def test_every_basis_spans_the_null_space():
    for name in ("five_bar", "bricard", "delta_robot"):
        mech, (q, _) = built(name), random_state(name)
        jacobian = lw.constraints.constraint_jacobian(mech, q)
        expected = lw.constraints.null_space(mech, q)
        np.testing.assert_allclose(expected.T @ expected, np.eye(FREEDOMS[name]), atol=1e-12)
        for method in ("partitioning", "tangent", "differentiable"):
            basis = lw.constraints.null_space(mech, q, method=method)
            assert basis.shape == expected.shape
            np.testing.assert_allclose(jacobian @ basis, 0.0, atol=1e-11)
            np.testing.assert_allclose(expected @ (expected.T @ basis), basis, atol=1e-11)


def test_coordinates_of_the_user():
    mech, (q, v) = built("five_bar"), random_state("five_bar")
    tau = np.array([1.0, 2.0, -1.0, 0.0])
    expected = lw.forward_dynamics(mech, q, v, tau)
    rows = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -2.0]])
    for independent in (("joint1", "joint2"), ("joint4", "joint1"), rows):
        found = lw.forward_dynamics(mech, q, v, tau, independent=independent)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    basis = lw.constraints.null_space(mech, q, independent=rows)
    np.testing.assert_allclose(rows @ basis, np.eye(2), atol=1e-12)
    with pytest.raises(MechanismError, match="2 degrees of freedom, 1 coordinates were chosen"):
        lw.forward_dynamics(mech, q, v, tau, independent=("joint1",))
    with pytest.raises(MechanismError, match="joint names or rows"):
        lw.forward_dynamics(mech, q, v, tau, independent=[1.0, 2.0])


def test_a_mechanism_that_cannot_move():
    mech = built("four_bar")
    q = np.zeros(3)
    pose = lw.frame_pose(mech, q, mech.link_names[0])
    locked = mech.with_loops(lw.constraints.Loop("lock", lw.Fixed(), "ground", pose, mech.link_names[0], None))
    assert lw.constraints.degrees_of_freedom(locked, q) == 0
    for options in ({}, {"independent": ()}):
        a = lw.forward_dynamics(locked, q, 0.0 * q, np.ones(3), **options)
        np.testing.assert_allclose(a, 0.0, atol=1e-12)
    np.testing.assert_array_equal(lw.inverse_dynamics(locked, q, 0.0 * q, [], independent=(), actuated=()), 0.0)
    chart = lw.kinematics.local_parametrization(locked, q)
    np.testing.assert_allclose(chart.configuration([]), q, atol=1e-12)
    assert chart.derivative(q).shape == (3, 0) and chart.forward_dynamics(q, 0.0 * q, np.ones(3)).shape == (0,)


def test_options_that_make_no_sense():
    mech, (q, v) = built("five_bar"), random_state("five_bar")
    tau, two = np.zeros(4), ("joint1", "joint2")
    for options, message in (
        ({"baumgarte": 5.0}, r"baumgarte must be two numbers \(alpha, beta\), not 5.0"),
        ({"rank": -1}, "rank must be a number of constraints, 0 or more"),
        ({"rank": 1.5}, "rank must be a number"),
        ({"rank": [2, 2]}, r"or one for each of the states of shape \(\), not \[2, 2\]"),
        ({"independent": ()}, "2 degrees of freedom, 0 coordinates were chosen"),
        ({"independent": two, "method": "lagrange"}, "'lagrange' has no independent coordinates"),
    ):
        with pytest.raises(MechanismError, match=message):
            lw.forward_dynamics(mech, q, v, tau, **options)
    with pytest.raises(MechanismError, match=r"a has shape \(2,\), expected \(..., 4\)"):
        lw.inverse_dynamics(mech, q, v, [1.0, 2.0])
    with pytest.raises(MechanismError, match=r"a of the independent coordinates has shape \(\), expected \(..., 2\)"):
        lw.inverse_dynamics(mech, q, v, 1.0, independent=two)


@pytest.mark.seed("spencer2004", "3.8", by="library")
@pytest.mark.seed("spencer2004", "Baumgarte stabilization", by="library")
@pytest.mark.parametrize("method", METHODS)
def test_baumgarte_terms(method):
    """Off the manifold: g'' + 2 alpha g' + beta^2 g = 0."""
    mech = built("five_bar")
    q, v = SYMMETRIC + [0.01, 0.02, -0.01, 0.0], np.array([1.0, 0.3, -0.2, 0.5])
    a = lw.forward_dynamics(mech, q, v, np.zeros(4), method=method, baumgarte=(3.0, 5.0))
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    error = jacobian @ a + lw.constraints.constraint_bias(mech, q, v)
    error += 6.0 * jacobian @ v + 25.0 * lw.constraints.position_error(mech, q)
    np.testing.assert_allclose(error, 0.0, atol=1e-10)


def test_a_massless_link_is_no_obstacle_where_loops_drive_it():
    """Only the degrees of freedom need inertia: the rod of a slider-crank may weigh nothing, but Lagrange's M^-1 then
    fails."""
    full = lw.mechanisms.slider_crank()
    bodies = list(full.bodies)
    bodies[1] = dataclasses.replace(bodies[1], mass=0.0, inertia=np.zeros((3, 3)))
    mech = dataclasses.replace(full, bodies=tuple(bodies))
    q, v = np.zeros(3), lw.constraints.null_space(mech, np.zeros(3), independent=("crank_joint",))[:, 0]
    a = lw.forward_dynamics(mech, q, v, np.array([1.0, 0.0, 0.0]))
    assert np.isfinite(a).all()
    with pytest.raises(MechanismError, match="use method='svd'"):
        lw.forward_dynamics(mech, q, v, np.zeros(3), method="lagrange")


@pytest.mark.parametrize("far", [(0.3, 0.2, 0.0), (0.3, 0.25, 0.0), (0.4, 0.1, 0.1)])
def test_a_rod_between_two_balls_needs_inertia_about_itself(far):
    """Nothing resists its spin, which the second ball leaves as free as the first: no rounding may count as inertia."""
    far, a, c = np.array(far), 0.1, 0.3
    along = far + [-a, 0.0, c]
    length = np.linalg.norm(along)
    x = np.cross([0, 1, 0], along) / np.linalg.norm(np.cross([0, 1, 0], along))
    axes = np.column_stack([x, np.cross(along / length, x), along / length])

    def built_with(about_itself):
        builder = lw.Builder().link("crank", 0.5, (a / 2, 0, 0), (0, 4e-4, 4e-4))
        builder.link("rod", 0.4, (0, 0, length / 2), (3e-3, 3e-3, about_itself))
        builder.link("rocker", 0.8, (0, 0, c / 2), (6e-3, 6e-3, 0)).joint("in", lw.Revolute(), "ground", "crank")
        builder.joint("out", lw.Revolute((0, 1, 0)), "ground", "rocker", far)
        builder.joint("ball", lw.Spherical(), "crank", "rod", (axes, (a, 0, 0)))
        return builder.loop("far_ball", lw.Spherical(), "rod", (0, 0, length), "rocker", (0, 0, c)).build("rssr")

    with pytest.raises(MechanismError, match=r"'ball' \(the spin of link 'rod' about its axis \(0, 0, 1\).*armature"):
        built_with(0.0)
    built_with(1e-9)


def test_unknown_methods_are_refused():
    mech = built("five_bar")
    with pytest.raises(MechanismError, match="spanning_tree"):
        lw.mass_matrix_inverse(mech, SYMMETRIC)
    for method in ("svdd", "biased"):
        with pytest.raises(ValueError, match=f"unknown method '{method}'"):
            lw.forward_dynamics(mech, SYMMETRIC, np.zeros(4), np.zeros(4), method=method)
    with pytest.raises(ValueError, match="unknown method 'svdd': did you mean 'svd'"):
        lw.forward_dynamics(mech, SYMMETRIC, np.zeros(4), np.zeros(4), method="svdd")


def test_work_does_not_grow_with_the_number_of_states():
    mech = built("five_bar")
    q, v = random_state("five_bar")

    def work(*batch):
        states = (np.broadcast_to(x, (*batch, 4)).copy() for x in (q, v, np.ones(4)))
        arguments = (mech, *states)
        lw.forward_dynamics(*arguments)  # compiled
        return lines_run(lambda: lw.forward_dynamics(*arguments))

    assert work(8000) < 500  # lines of Python: for threads that share the states, none for each state
    assert work() <= work(2) <= work(100)  # a few states take a short cut
