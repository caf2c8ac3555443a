"""The dense operators against the compiled recursions, with which they share nothing, and against their definitions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.operators.dense import StackedOperators
from linkwise.mechanics.operators.expression import Inverse

KINDS = lw.mechanisms.EVERY_KIND
TREES = [
    *(lw.mechanisms.random_tree(4, seed, joints=(kind,)) for seed, kind in enumerate(KINDS)),
    *(lw.mechanisms.random_tree(9, seed) for seed in range(4)),
    lw.mechanisms.random_tree(7, 11, floating_base=True),
    lw.mechanisms.random_tree(8, 12, joints=(*KINDS, "fixed"), floating_base=True),
    lw.mechanisms.puma560(),
]
every_tree = pytest.mark.parametrize("mech", TREES, ids=lambda mech: mech.name)


def state(mech, shape=()):
    return lw.random_state(mech, np.random.default_rng(7), shape)


def same(a, b, tolerance=1e-10):
    scale = max(1.0, np.abs(b).max(initial=0.0))
    np.testing.assert_allclose(a, b, rtol=0.0, atol=tolerance * scale)


# -- against the library ------------------------------------------------------------------------------


@pytest.mark.smoke_cases("random_tree_4_0", "random_tree_4_1", "random_tree_9_0")
@every_tree
def test_mass_matrix(mech):
    q, _ = state(mech)
    same(op.dense(op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R, mech, q), lw.mass_matrix(mech, q))


@pytest.mark.smoke_cases("random_tree_4_0", "random_tree_4_1", "random_tree_9_0")
@every_tree
def test_mass_matrix_inverse(mech):
    q, _ = state(mech)
    factor = op.I - op.H @ op.psi @ op.K
    innovations = op.dense(factor.T, mech, q) @ np.linalg.inv(op.dense(op.D, mech, q)) @ op.dense(factor, mech, q)
    same(innovations, lw.mass_matrix_inverse(mech, q), 1e-9)


@every_tree
def test_link_velocities(mech):
    q, v = state(mech)
    same((op.dense(op.phi.T @ op.H.T, mech, q) @ v).reshape(-1, 6), lw.link_velocities(mech, q, v))


@pytest.mark.quick_one_in(2)
@every_tree
def test_jacobian_of_every_frame(mech):
    q, _ = state(mech)
    for frame in tuple(mech.frames)[1:]:
        same(op.dense(op.B(frame).T @ op.phi.T @ op.H.T, mech, q), lw.jacobian(mech, q, frame))


def test_operational_inertia_of_a_welded_frame():
    mech = lw.mechanisms.random_tree(8, 12, joints=(*KINDS, "fixed"), floating_base=True)
    q, _ = state(mech)
    welded = [name for name, frame in mech.frames.items() if frame.body >= 0 and name not in mech.link_names]
    assert welded
    for frame in (welded[0], mech.link_names[-1]):
        jacobian = op.dense(op.B(frame).T @ op.phi.T @ op.H.T, mech, q)
        inverse = jacobian @ np.linalg.inv(op.dense(op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R, mech, q))
        same(np.linalg.inv(inverse @ jacobian.T), lw.control.operational_inertia(mech, q, frame), 1e-9)


def test_a_force_on_the_ground_moves_nothing():
    mech = TREES[0]
    assert not op.dense(op.B("ground"), mech, lw.neutral(mech)).any()
    assert not op.dense(op.A("ground"), mech, lw.neutral(mech)).any()


def test_a_motion_of_one_frame():
    """A moves the link that carries the frame as the frame moves, and A* feels a force there; checked with poses."""
    mech = lw.mechanisms.random_tree(8, 12, joints=(*KINDS, "fixed"), floating_base=True)
    q, _ = state(mech)
    rng = np.random.default_rng(1)
    poses = lw.link_poses(mech, q)
    for frame in tuple(mech.frames)[1:]:
        body = mech.frame(frame).body
        omega, velocity, moment, force = rng.normal(size=(4, 3))
        relative = np.linalg.solve(poses[body], lw.frame_pose(mech, q, frame))
        turn, lever = relative[:3, :3], relative[:3, 3]
        turned = turn @ omega
        moved = np.zeros((mech.n_links, 6))
        moved[body] = [*turned, *(turn @ velocity - np.cross(turned, lever))]
        same(op.dense(op.A(frame), mech, q) @ np.concatenate([omega, velocity]), moved.ravel())
        loads = np.zeros((mech.n_links, 6))
        loads[body] = [*moment, *force]
        felt = [*(turn.T @ (moment - np.cross(lever, force))), *(turn.T @ force)]
        same(op.dense(op.A(frame).T, mech, q) @ loads.ravel(), np.array(felt))
        same(op.dense(op.A(frame).T @ op.B(frame), mech, q), np.eye(6))


# -- against their definitions ------------------------------------------------------------------------


@every_tree
def test_operators_are_what_their_letters_say(mech):
    q, _ = state(mech)
    shift, articulated_shift, phi, psi = (op.dense(x, mech, q) for x in (op.E_phi, op.E_psi, op.phi, op.psi))
    identity = np.eye(6 * mech.n_links)
    same(phi, np.linalg.inv(identity - shift))
    same(psi, np.linalg.inv(identity - articulated_shift))
    h, m, p, d, g, r = (op.dense(x, mech, q) for x in (op.H, op.M, op.P, op.D, op.G, op.R))
    same(d, h @ p @ h.T + r)
    same(g @ d, p @ h.T)
    same(op.dense(op.K, mech, q), shift @ g)
    same(op.dense(op.tau, mech, q), g @ h)
    same(op.dense(op.tau_bar, mech, q), identity - g @ h)
    same(articulated_shift, shift @ (identity - g @ h))
    same(m, p - shift @ op.dense(op.P_plus, mech, q) @ shift.T)
    same(op.dense(op.Phi, mech, q), phi - identity)
    np.testing.assert_array_equal(op.dense(op.psi.T, mech, q), psi.T)


def test_forces_are_carried_to_the_parents_frame():
    """E_phi keeps the power of a force: what the parent's twist does on the carried force, it does at the child."""
    mech = TREES[-3]
    q, _ = state(mech)
    rng = np.random.default_rng(0)
    poses = lw.link_poses(mech, q)
    shift = op.dense(op.E_phi, mech, q)
    for child, parent in enumerate(mech.tree.parents):
        if parent < 0:
            continue
        moment, force = rng.normal(size=(2, 3))
        relative = np.linalg.solve(poses[parent], poses[child])
        turned = relative[:3, :3] @ force
        expected = [*(relative[:3, :3] @ moment + np.cross(relative[:3, 3], turned)), *turned]
        block = shift[6 * parent : 6 * parent + 6, 6 * child : 6 * child + 6]
        same(block @ np.concatenate([moment, force]), np.array(expected))


# -- expressions --------------------------------------------------------------------------------------


def test_sums_products_and_multiples():
    mech = TREES[4]
    q, _ = state(mech)
    h, phi, k = (op.dense(x, mech, q) for x in (op.H, op.phi, op.K))
    eye = np.eye(mech.nv)
    same(op.dense(2.0 * op.I - 3.0 * (op.H @ op.phi @ op.K).T / 2.0, mech, q), 2.0 * eye - 1.5 * (h @ phi @ k).T)
    np.testing.assert_array_equal(op.dense(op.H @ op.phi - op.H @ op.phi, mech, q), np.zeros_like(h))
    np.testing.assert_array_equal(op.dense(op.identity(op.JOINT), mech, q), eye)


def test_batches():
    mech = TREES[8]
    q, _ = state(mech, (2, 3))
    factor = op.I + op.H @ op.phi @ op.K
    together = op.dense(factor, mech, q)
    assert together.shape == (2, 3, mech.nv, mech.nv)
    np.testing.assert_array_equal(together[1, 2], op.dense(factor, mech, q[1, 2]))
    assert op.dense(factor, mech, np.zeros((0, mech.nq))).shape == (0, mech.nv, mech.nv)


def inverse(of):
    """The inverse of any expression, also of those for which the algebra has no closed form."""
    node = object.__new__(Inverse)
    object.__setattr__(node, "of", of)
    return node


def test_inverses_are_numerical():
    mech = TREES[9]
    q, _ = state(mech)
    total = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R
    same(op.dense(inverse(total), mech, q), lw.mass_matrix_inverse(mech, q), 1e-9)
    same(op.dense(inverse(op.phi) + op.E_phi, mech, q), np.eye(6 * mech.n_links))


# -- what is refused ----------------------------------------------------------------------------------


def test_singular_and_rectangular_matrices_have_no_inverse():
    mech = lw.mechanisms.chain(3)
    task = op.B("link3").T @ op.phi.T @ op.H.T
    with pytest.raises(ValueError, match="is singular in this configuration"):
        op.dense(inverse(task @ task.T), mech, np.zeros(3))
    with pytest.raises(ValueError, match="H is a 3 x 18 matrix"):
        op.dense(inverse(op.H), mech, np.zeros(3))


def test_massless_joints_are_named():
    mech = lw.mechanisms.chain(3)
    tip = dataclasses.replace(mech.bodies[2], mass=0.0, inertia=np.zeros((3, 3)))
    mech = dataclasses.replace(mech, bodies=(*mech.bodies[:2], tip))
    with pytest.raises(ValueError, match="D of joint 'joint3' is singular"):
        op.dense(op.psi, mech, np.zeros(3))


def test_mimic_joints_have_joint_space_of_their_own():
    """Operators see every joint; S ties them to the coordinates."""
    builder = lw.Builder().link("a", 1.0).link("b", 1.0, (0.1, 0.0, 0.0), (1.0, 1.0, 1.0))
    builder.joint("lead", lw.Revolute((0, 0, 1)), "ground", "a")
    mech = builder.joint("follow", lw.Revolute((0, 0, 1)), "a", "b", mimic=lw.Mimic("lead", -2.0, 0.5)).build("pair")
    q = np.array([0.3])
    np.testing.assert_array_equal(op.dense(op.S, mech, q), [[1.0], [-2.0]])
    assert op.dense(op.H, mech, q).shape == (2, 12) and op.dense(op.phi, mech, q).shape == (12, 12)
    turned = op.dense(op.E_phi, mech, q)[:3, 6:9]  # rotation of the second joint, at -2 * 0.3 + 0.5
    np.testing.assert_allclose(turned[0, 0], np.cos(-0.1), rtol=1e-15)


def test_wrong_arguments():
    mech = lw.mechanisms.chain(3)
    with pytest.raises(TypeError, match="takes expressions without vectors"):
        op.dense(op.phi.T @ op.H.T @ op.joint_vector("v"), mech, np.zeros(3))
    with pytest.raises(ValueError, match=r"op.identity\(op.JOINT\)"):
        op.dense(op.I, mech, np.zeros(3))
    with pytest.raises(ValueError, match=r"q must have shape \(..., 3\)"):
        op.dense(op.phi, mech, np.zeros(4))
    with pytest.raises(TypeError, match="operator expression"):
        op.dense("phi", mech, np.zeros(3))
    with pytest.raises(TypeError, match="takes a mechanism"):
        op.dense(op.phi, "chain", np.zeros(3))
    with pytest.raises(lw.MechanismError, match="no link or frame 'hand'"):
        op.dense(op.B("hand"), mech, np.zeros(3))


@every_tree
def test_composite_inertias_mobilities_and_block_inverses(mech):
    """The further operators that closed forms are written with."""
    q, _ = state(mech)
    stacked = StackedOperators(mech, q)
    rigid = np.linalg.multi_dot([stacked.phi, stacked.M, stacked.phi.T])
    propagation = stacked.phi - np.eye(6 * mech.n_links)
    same(stacked.C + propagation @ stacked.C + stacked.C @ propagation.T, rigid)
    roots = [link for link, parent in enumerate(mech.tree.parents) if parent < 0]
    same(sum(stacked.C[6 * root + 5, 6 * root + 5] for root in roots), np.sum(mech.parameters.masses))
    motions = stacked.phi.T @ stacked.H.T
    same(stacked.Omega, motions @ lw.mass_matrix_inverse(mech, q) @ motions.T, 1e-9)
    for block_diagonal in ("D", "P", "M") if mech.parameters.masses.all() else ("D", "P"):
        product = getattr(stacked, block_diagonal) @ getattr(stacked, f"{block_diagonal}_inv")
        same(product, np.eye(len(product)), 1e-9)
