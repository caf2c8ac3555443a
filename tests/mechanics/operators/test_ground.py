"""W, the forces of the links next to the ground moved to the world: its meaning, its recursions, what follows of it."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.algorithms import expressions as ex
from linkwise.mechanics.operators.algebra import COMPOSITE
from linkwise.mechanics.operators.plan import plan_for
from linkwise.mechanics.operators.spaces import FORCE_ON_GROUND

KINDS = lw.mechanisms.EVERY_KIND


def two_arms() -> lw.Mechanism:
    """Two links next to the ground."""
    builder = lw.Builder()
    for side, kind in (("left", lw.Revolute((0, 1, 2))), ("right", lw.Helical((1, 0, 1), 0.3))):
        builder.link(f"{side}_arm", 1.2, (0.1, 0.2, -0.3), (0.2, 0.3, 0.25)).link(
            f"{side}_hand", 0.7, (0.1, 0, 0.2), (0.1, 0.2, 0.15)
        )
        builder.joint(f"{side}_shoulder", kind, "ground", f"{side}_arm", lw.pose((0.4, -0.2, 0.5), rpy=(0.3, 0.2, 0.9)))
        builder.joint(f"{side}_wrist", lw.Universal((1, 0, 0), (0, 1, 0)), f"{side}_arm", f"{side}_hand")
    return builder.build("two_arms")


TREES = [
    *(lw.mechanisms.random_tree(4, seed, joints=(kind,)) for seed, kind in enumerate(KINDS)),
    lw.mechanisms.random_tree(9, 2),
    lw.mechanisms.random_tree(8, 12, joints=(*KINDS, "fixed"), floating_base=True),
    lw.mechanisms.chain(12),
    two_arms(),
]
every_tree = pytest.mark.parametrize("mech", TREES, ids=lambda mech: mech.name)
x, f = op.joint_vector("x"), op.link_vector("f")
EXPRESSIONS = [
    op.W,
    op.W.T,
    op.W @ op.phi,
    op.W @ op.phi @ op.M @ op.phi.T @ op.H.T,
    op.H @ op.phi @ op.M @ op.phi.T @ op.W.T,
    op.W @ op.phi @ op.M @ op.phi.T @ op.W.T,
    op.W @ op.psi @ op.M @ op.psi.T @ op.W.T,
    op.W @ op.phi @ op.M @ op.phi.T @ op.A("link2"),
    op.W @ (op.phi - op.I) @ op.P @ op.H.T + 2.0 * op.W @ op.M @ op.phi.T @ op.H.T,
    op.W.T @ op.B("ground").T @ op.phi.T,
    op.W @ op.phi @ op.M @ op.phi.T @ op.H.T @ x,
    op.phi.T @ op.W.T @ (op.W @ op.phi @ op.M @ op.phi.T @ op.W.T).inv @ op.W @ op.phi @ op.M @ op.phi.T @ op.H.T @ x,
    op.W @ op.phi @ f,
]


@every_tree
def test_forces_are_moved_to_the_worlds_origin(mech):
    """Checked with the poses of the links next to the ground; what W leaves out does not reach the ground."""
    q, _ = lw.random_state(mech, np.random.default_rng(7))
    forces, poses = np.random.default_rng(1).normal(size=(mech.n_links, 6)), lw.link_poses(mech, q)
    total = np.zeros(6)
    for pose, parent, (moment, force) in zip(poses, mech.tree.parents, forces.reshape(-1, 2, 3), strict=True):
        if parent < 0:
            turned = pose[:3, :3] @ force
            total += [*(pose[:3, :3] @ moment + np.cross(pose[:3, 3], turned)), *turned]
    np.testing.assert_allclose(op.dense(op.W, mech, q) @ forces.ravel(), total, atol=1e-12)
    assert op.W.codomain == FORCE_ON_GROUND and op.W.T.domain == FORCE_ON_GROUND.dual


@pytest.mark.quick_one_in(3)
@every_tree
@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_compiled_expressions_against_stacked_matrices(mech, expression):
    if "A('link2')" in str(expression) and "link2" not in mech.link_names:
        expression = op.W @ op.phi @ op.M @ op.phi.T @ op.A("left_hand")
    q, _ = lw.random_state(mech, np.random.default_rng(3))
    kernel = lw.compile(expression, mech, target="numpy")
    rng = np.random.default_rng(4)
    vectors = {name: rng.normal(size=kernel.input_shapes[name]) for name in kernel.inputs[1:]}
    expected = op.dense(expression, mech, q, vectors)
    found = np.asarray(kernel(q, *vectors.values())).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-11 * max(1.0, np.abs(expected).max()))


@every_tree
def test_the_momentum_matrix_is_made_of_composite_bodies(mech):
    """By columns or by rows, as its shape asks for; C stands where M stood."""
    computed = plan_for(ex.MOMENTUM_MATRIX, mech).computed
    expected = op.W @ op.phi @ COMPOSITE @ op.H.T
    assert computed in (expected, expected.T)


def test_composite_bodies_pay():
    """The matrix costs less than columns of the momentum one after the other."""
    mech = lw.mechanisms.chain(12)
    one = sum(lw.compile("momentum", mech, target="numpy").op_counts.values())
    assert sum(lw.compile("momentum_matrix", mech, target="numpy").op_counts.values()) < 2.5 * one


def test_chains_deeper_than_the_recursion_limit():
    mech = lw.mechanisms.planar_arm(150)
    q, v = lw.random_state(mech, np.random.default_rng(0))
    momentum = lw.compile("momentum", mech, target="numpy")(q, v)
    np.testing.assert_allclose(lw.compile("momentum_matrix", mech, target="numpy")(q) @ v, momentum, rtol=1e-10)


def test_what_is_at_the_ground_is_not_on_a_link():
    with pytest.raises(op.SpaceError):
        op.H @ op.W
    with pytest.raises(op.SpaceError):
        op.W.T @ op.W @ op.H.T
    assert op.parse("W @ phi @ M @ phi.T @ H.T") == op.W @ op.phi @ op.M @ op.phi.T @ op.H.T
