"""Loop constraints against differences along the configuration manifold, for every joint, closing or in the tree."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

from .random_loops import CLOSING, closed_at, with_loops

STEP = 4e-3
FIRST = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # central differences of order eight
SECOND = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)

every_kind = pytest.mark.parametrize("kind", CLOSING, ids=lambda kind: type(kind).__name__)


def random_mechanism(kind, seed):
    tree = lw.mechanisms.random_tree(6, seed)
    q, v = lw.random_state(tree, np.random.default_rng(seed))
    names = ("ground", *tree.link_names)
    rng = np.random.default_rng(seed + 100)
    a, b = rng.choice(len(names), 2, replace=False)
    mech = with_loops(tree, closed_at(tree, q, kind, names[a], names[b], seed))
    return mech, q, v


@every_kind
def test_jacobian_and_bias_are_derivatives_along_motions(kind):
    for seed in range(3):
        mech, q, _ = random_mechanism(kind, seed)
        q, v = lw.random_state(mech, np.random.default_rng(seed + 7))  # the loop is torn open, all terms count

        def error(t, mech=mech, q=q, v=v):
            return lw.constraints.position_error(mech, lw.integrate(mech, q, v, t))

        rate = sum(w * (error(k * STEP) - error(-k * STEP)) for k, w in enumerate(FIRST, 1)) / STEP
        curvature = SECOND[0] * error(0.0)
        curvature = (
            curvature + sum(w * (error(k * STEP) + error(-k * STEP)) for k, w in enumerate(SECOND) if k)
        ) / STEP**2
        assert error(0.0).shape == (6 - kind.nv,)
        np.testing.assert_allclose(lw.constraints.constraint_jacobian(mech, q) @ v, rate, atol=1e-8)
        scale = 1.0 + np.abs(curvature).max()
        np.testing.assert_allclose(lw.constraints.constraint_bias(mech, q, v), curvature, atol=1e-8 * scale)


@every_kind
def test_a_loop_closed_by_construction_has_no_error(kind):
    mech, q, _ = random_mechanism(kind, 4)
    np.testing.assert_allclose(lw.constraints.position_error(mech, q), 0.0, atol=1e-13)


def test_followers_are_folded_into_their_leaders():
    builder = lw.Builder()
    parent = "ground"
    for i in range(3):
        builder.link(f"link{i}", 1.0, (0.3, 0.1, 0.0), (0.1, 0.1, 0.1))
        mimic = lw.Mimic("joint0", -2.0, 0.3) if i == 2 else None
        builder.joint(f"joint{i}", lw.Revolute((0, 0.2, 1)), parent, f"link{i}", (None, (0.5, 0, 0)), mimic=mimic)
        parent = f"link{i}"
    builder.loop("tip", lw.Spherical(), "ground", (None, (1.0, 0.5, 0.0)), "link2", (None, (0.4, 0, 0)))
    mech, q, v = builder.build(), np.array([0.3, -0.7]), np.array([1.1, -0.4])
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    assert jacobian.shape == (3, 2)
    numeric = (
        lw.constraints.position_error(mech, q + 1e-6 * v) - lw.constraints.position_error(mech, q - 1e-6 * v)
    ) / 2e-6
    np.testing.assert_allclose(jacobian @ v, numeric, atol=1e-8)


def test_cost_grows_with_the_path_not_with_its_square():
    """Loops from the ground to the tip of a chain: operations per joint stay the same (spencer2004 A.3.2)."""
    counts = []
    for n in (8, 16, 32):
        chain = lw.mechanisms.chain(n)
        q, _ = lw.random_state(chain, np.random.default_rng(0))
        mech = with_loops(chain, closed_at(chain, q, lw.Revolute(), "ground", f"link{n}"))
        counts.append(
            [
                sum(lw.compile(name, mech, target="numpy").op_counts.values())
                for name in ("constraint_jacobian", "constraint_bias")
            ]
        )
    first, second, third = np.array(counts)
    assert np.all(third - second < 2.1 * (second - first))


def test_joints_that_carry_both_sides_do_not_enter():
    mech = lw.mechanisms.chain(6)
    q, _ = lw.random_state(mech, np.random.default_rng(0))
    mech = with_loops(mech, closed_at(mech, q, lw.Revolute(), "link3", "link6"))
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    assert not jacobian[:, :3].any() and jacobian[:, 3:].any()


def test_a_mechanism_without_loops_has_no_constraints():
    mech = lw.mechanisms.planar_arm(2)
    q, v = np.zeros((4, 2)), np.zeros((4, 2))
    assert lw.constraints.position_error(mech, q).shape == (4, 0)
    assert lw.constraints.constraint_jacobian(mech, q).shape == (4, 0, 2)
    np.testing.assert_array_equal(lw.constraints.degrees_of_freedom(mech, q), [2, 2, 2, 2])
    tau = np.ones((4, 2))
    expected = np.linalg.solve(lw.mass_matrix(mech, q), (tau - lw.bias_force(mech, q, v))[..., None])[..., 0]
    np.testing.assert_allclose(lw.forward_dynamics(mech, q, v, tau), expected, atol=1e-12)
    with_nothing = mech.with_loops()
    np.testing.assert_allclose(lw.constraints.constraint_forces(with_nothing, q, v, tau), 0.0, atol=1e-15)


def test_loops_are_added_to_mechanisms_from_elsewhere():
    """As for one that was read from a file, which has no loops."""
    built = lw.mechanisms.four_bar()
    loop = lw.constraints.Loop("pin", lw.Revolute(), "coupler", built.loops[0].pose_a, "rocker", built.loops[0].pose_b)
    mech = built.spanning_tree.with_loops(loop)
    assert mech == built and not built.spanning_tree.loops
    with pytest.raises(lw.MechanismError, match="two loops are named"):
        mech.with_loops(loop)
    with pytest.raises(lw.MechanismError, match="no loop 'pinn': did you mean 'pin'"):
        mech.constraints.rows("pinn")


@pytest.mark.parametrize("name", ["position_error", "constraint_jacobian", "constraint_bias", "constrained_terms"])
def test_parameters_may_be_inputs(name):
    """Poses and masses as inputs of the kernel give the same numbers: jets and symbols mix."""
    mech = lw.mechanisms.loader()
    q, v = lw.random_state(mech, np.random.default_rng(0))
    poses = np.tile(np.eye(4), (mech.n_links, 1, 1))
    for body, matrix in zip(mech.bodies, poses, strict=True):
        matrix[:3, :3], matrix[:3, 3] = body.rotation, body.position
    arguments = (q,) if name in ("position_error", "constraint_jacobian") else (q, v)
    found = lw.compile(name, mech, parameters=("pose", "mass"))(*arguments, poses, mech.parameters.masses)
    np.testing.assert_allclose(found, lw.compile(name, mech)(*arguments), rtol=1e-10, atol=1e-9)
