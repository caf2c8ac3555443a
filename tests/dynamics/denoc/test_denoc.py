"""lw.formulations.denoc against stacked operators, Pinocchio and the rest of the library, on random serial and
branching arms."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from tests.dynamics.denoc.mass_centres import complement, generalized_mass, mass_rate, rate_of_change
from tests.physics.test_mimic import tied_and_free
from tests.physics.trees import rebuilt, trees_of

SERIAL = [
    lw.mechanisms.planar_arm(3),
    lw.mechanisms.stanford_arm(),
    lw.mechanisms.puma560(),
    lw.mechanisms.chain(7),
]
ARMS = [lw.mechanisms.random_tree(n, seed, joints=("revolute", "prismatic")) for n, seed in ((2, 1), (5, 2), (12, 3))]
ALL_KINDS = [lw.mechanisms.random_tree(n, n) for n in (3, 6, 9)] + [lw.mechanisms.random_tree(5, 4, floating_base=True)]
TREES = [*SERIAL, *ARMS, *ALL_KINDS]
STATES = 20
every_tree = pytest.mark.parametrize("mech", TREES, ids=lambda mech: mech.name)


def states(mech, seed=0):
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, (STATES,))
    return q, v, rng.normal(size=v.shape), rng.normal(size=(STATES, mech.n_links, 6))


def same(found, expected, tolerance=1e-10):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * np.abs(expected).max(initial=1e-3))


def by_state(function, *arrays):
    return np.array([function(*state) for state in zip(*arrays, strict=True)])


def times(matrices, vectors):
    return np.einsum("...ij,...j->...i", matrices, vectors)


def transposed(matrices):
    return np.swapaxes(matrices, -1, -2)


# -- the complement -----------------------------------------------------------------------------------


@every_tree
def test_matrices_are_the_operators_moved_to_mass_centres(mech):
    q, *_ = states(mech)
    N_l, N_d = lw.formulations.denoc.matrices(mech, q)
    same(N_l, by_state(lambda q: complement(mech, q)[0], q))
    same(N_d, by_state(lambda q: complement(mech, q)[1], q))


@every_tree
def test_complement_gives_the_twists_of_the_mass_centres(mech):
    q, v, *_ = states(mech)
    N_l, N_d = lw.formulations.denoc.matrices(mech, q)
    twists = times(N_l @ N_d, v).reshape(STATES, -1, 6)
    turns, velocities = lw.link_poses(mech, q)[..., :3, :3], lw.link_velocities(mech, q, v)
    com = np.array([body.com for body in mech.bodies])
    same(twists[..., :3], times(turns, velocities[..., :3]))
    same(twists[..., 3:], times(turns, velocities[..., 3:] + np.cross(velocities[..., :3], com)))


@every_tree
def test_propagation_is_the_identity_and_a_shift_where_a_link_is_on_the_way(mech):
    """(13), (17): exact zeros and ones everywhere else."""
    q, *_ = states(mech)
    N_l, _ = lw.formulations.denoc.matrices(mech, q)
    blocks = N_l.reshape(STATES, mech.n_links, 6, mech.n_links, 6).swapaxes(2, 3)
    for i in range(mech.n_links):
        for j in range(mech.n_links):
            block, on_the_way = blocks[:, i, j].copy(), j in mech.tree.path(i)
            if on_the_way and i != j:
                lever = block[:, 3:, :3].copy()
                np.testing.assert_array_equal(lever, -transposed(lever))
                block[:, 3:, :3] = 0.0
            np.testing.assert_array_equal(block, np.broadcast_to(np.eye(6) * on_the_way, block.shape))


# -- equations of motion ------------------------------------------------------------------------------


@every_tree
def test_inertia_matrix_is_the_projected_mass(mech):
    q, *_ = states(mech)
    N_l, N_d = lw.formulations.denoc.matrices(mech, q)
    projected = transposed(N_l @ N_d) @ by_state(lambda q: generalized_mass(mech, q), q) @ N_l @ N_d
    found = lw.formulations.denoc.inertia_matrix(mech, q)
    same(found, projected + op.dense(op.R, mech, q[0]))
    same(found, by_state(lambda q: op.dense(op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R, mech, q), q))
    np.testing.assert_array_equal(found, transposed(found))


@every_tree
def test_coriolis_matrix_gives_the_bias_without_gravity(mech):
    q, v, *_ = states(mech)
    weightless = mech.with_gravity((0.0, 0.0, 0.0))
    same(times(lw.formulations.denoc.coriolis_matrix(mech, q, v), v), lw.bias_force(weightless, q, v))


@every_tree
def test_coriolis_matrix_is_that_of_the_definition(mech):
    """C = N* (M dN/dt + dM/dt N) after (20), dN/dt by differences."""
    q, v, *_ = (array[0] for array in states(mech))

    def noc(q):
        N_l, N_d = lw.formulations.denoc.matrices(mech, q)
        return N_l @ N_d

    N, N_dot = noc(q), rate_of_change(noc, mech, q, v)
    expected = N.T @ (generalized_mass(mech, q) @ N_dot + mass_rate(mech, q, v) @ N)
    same(lw.formulations.denoc.coriolis_matrix(mech, q, v), expected, 1e-7)


@every_tree
def test_inertia_rate_less_twice_the_coriolis_matrix_is_skew(mech):
    """C + C* = N* M dN/dt + dN/dt* M N + N* (omega x I - I omega x) N is the rate of the inertia matrix."""
    q, v, *_ = (array[0] for array in states(mech))
    C = lw.formulations.denoc.coriolis_matrix(mech, q, v)
    same(C + C.T, rate_of_change(lambda q: lw.mass_matrix(mech, q), mech, q, v), 1e-7)


def test_coriolis_matrix_is_not_the_one_of_christoffel_symbols():
    mech = lw.mechanisms.chain(4)
    q, v, *_ = (array[0] for array in states(mech))
    difference = lw.formulations.denoc.coriolis_matrix(mech, q, v) - lw.coriolis_matrix(mech, q, v)
    assert np.abs(difference).max() > 1e-2
    same(difference, -difference.T, 1e-12)


@every_tree
def test_forces_are_the_projected_wrenches(mech):
    q, _, _, wrenches = states(mech)
    N_l, N_d = lw.formulations.denoc.matrices(mech, q)
    same(lw.formulations.denoc.forces(mech, q, wrenches), times(transposed(N_l @ N_d), wrenches.reshape(STATES, -1)))


@every_tree
def test_weights_as_wrenches_are_the_gravity_forces(mech):
    q, *_ = states(mech)
    weights = np.concatenate([np.zeros((mech.n_links, 3)), mech.parameters.masses[:, None] * mech.gravity], axis=1)
    same(lw.formulations.denoc.forces(mech, q, weights), -lw.gravity_force(mech, q))


@every_tree
def test_factors_of_the_inertia_matrix(mech):
    q, *_ = states(mech)
    U, D = lw.formulations.denoc.udu(mech, q)
    same(U @ D @ transposed(U), lw.mass_matrix(mech, q))
    same(U, by_state(lambda q: op.dense(op.identity(op.JOINT) + op.H @ op.phi @ op.K, mech, q), q))
    same(D, by_state(lambda q: op.dense(op.D, mech, q), q))
    for i, a in enumerate(mech.bodies):
        rows = mech.v_index(a.joint)
        for j, b in enumerate(mech.bodies):
            columns = mech.v_index(b.joint)
            if i != j:
                assert not D[:, rows, columns].any()
            if i > j:
                assert not U[:, rows, columns].any()
        np.testing.assert_array_equal(U[:, rows, rows], np.broadcast_to(np.eye(a.nv), (STATES, a.nv, a.nv)))


@every_tree
def test_dynamics_agree_with_the_rest_of_the_library_and_undo_each_other(mech):
    q, v, a, _ = states(mech)
    tau = lw.formulations.denoc.inverse_dynamics(mech, q, v, a)
    same(tau, lw.inverse_dynamics(mech, q, v, a))
    same(lw.formulations.denoc.forward_dynamics(mech, q, v, tau), a, 1e-9)
    same(lw.formulations.denoc.forward_dynamics(mech, q, v, a), lw.forward_dynamics(mech, q, v, a))


# -- Pinocchio ----------------------------------------------------------------------------------------


def depth_first(mech):
    """The same arm with every branch declared in one go, the order that Pinocchio needs."""
    order, waiting = [], [i for i in reversed(range(mech.n_links)) if mech.tree.parents[i] < 0]
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(mech.tree.children[order[-1]])
    return rebuilt(mech, order)


@pytest.mark.parametrize("mech", [*SERIAL[:2], *map(depth_first, ARMS)], ids=lambda mech: f"{mech.name}_{mech.nv}")
def test_against_pinocchio(mech):
    pytest.importorskip("pinocchio")
    from tests.peers.pinocchio_peer import mirrored

    q, v, a, wrenches = states(mech)
    answers = mirrored(mech).answers(q, v, a, wrenches)
    same(lw.formulations.denoc.inertia_matrix(mech, q), answers["mass_matrix"])
    same(lw.formulations.denoc.inverse_dynamics(mech, q, v, a), answers["inverse_dynamics"])
    same(lw.formulations.denoc.forward_dynamics(mech, q, v, a), answers["forward_dynamics"])
    U, D = lw.formulations.denoc.udu(mech, q)
    same(transposed(np.linalg.inv(U)) @ np.linalg.inv(D) @ np.linalg.inv(U), answers["mass_matrix_inverse"])
    same(times(lw.formulations.denoc.coriolis_matrix(mech, q, v), v), answers["bias_force"] - answers["gravity_force"])


# -- edges --------------------------------------------------------------------------------------------


def with_mimic_joint():
    builder = lw.Builder()
    for name, parent in (("upper", "ground"), ("lower", "upper")):
        builder.link(name, 1.0, (0.1, 0.2, -0.5), (0.1, 0.2, 0.15))
        mimic = lw.Mimic("upper_joint", -2.0, 0.3) if name == "lower" else None
        builder.joint(
            f"{name}_joint", lw.Revolute((0.0, 1.0, 0.0)), parent, name, (None, (0.0, 0.1, -1.0)), mimic=mimic
        )
    return builder.build()


def test_followers_move_with_their_leaders():
    mech = with_mimic_joint()
    q, v, a, _ = states(mech)
    N_l, N_d = lw.formulations.denoc.matrices(mech, q)
    assert N_d.shape == (STATES, 12, 1)
    turns, velocities = lw.link_poses(mech, q)[..., :3, :3], lw.link_velocities(mech, q, v)
    same(times(N_l @ N_d, v).reshape(STATES, 2, 6)[..., :3], times(turns, velocities[..., :3]))
    same(lw.formulations.denoc.inertia_matrix(mech, q), lw.mass_matrix(mech, q))
    same(
        times(lw.formulations.denoc.coriolis_matrix(mech, q, v), v) + lw.gravity_force(mech, q),
        lw.bias_force(mech, q, v),
    )
    same(lw.formulations.denoc.forward_dynamics(mech, q, v, a), lw.forward_dynamics(mech, q, v, a))
    U, D = lw.formulations.denoc.udu(mech, q)
    same(U @ D @ np.swapaxes(U, -1, -2), lw.mass_matrix(mech, q))


def test_a_link_without_mass_is_seen_at_the_point_the_mechanism_gives():
    builder = lw.Builder().link("hub", 0.0, (0.0, 0.0, 0.4)).link("rod", 2.0, (0.0, 0.3, 0.0), (0.1, 0.1, 0.1))
    builder.joint("turn", lw.Revolute((1.0, 0.0, 0.0)), "ground", "hub")
    builder.joint("swing", lw.Revolute((0.0, 0.0, 1.0)), "hub", "rod")
    mech = builder.build()
    q, v, a, _ = states(mech)
    N_l, N_d = lw.formulations.denoc.matrices(mech, q)
    twist = times(N_l @ N_d, v)[:, :6]
    turns = lw.link_poses(mech, q)[:, 0, :3, :3]
    np.testing.assert_allclose(twist[:, 3:], np.cross(twist[:, :3], turns @ [0.0, 0.0, mech.bodies[0].com[2]]))
    same(lw.formulations.denoc.inverse_dynamics(mech, q, v, a), lw.inverse_dynamics(mech, q, v, a))
    same(lw.formulations.denoc.forward_dynamics(mech, q, v, a), lw.forward_dynamics(mech, q, v, a))


def test_public_functions_compile_as_themselves_and_take_parameters():
    mech = lw.mechanisms.chain(3)
    q, v, *_ = (array[0] for array in states(mech))
    same(
        lw.compile(lw.formulations.denoc.coriolis_matrix, mech)(q, v), lw.formulations.denoc.coriolis_matrix(mech, q, v)
    )
    heavier = lw.compile(lw.formulations.denoc.coriolis_matrix, mech, parameters=("mass", "com"))
    com = np.array([body.com for body in mech.bodies])
    same(heavier(q, v, mech.parameters.masses, com), lw.formulations.denoc.coriolis_matrix(mech, q, v))
    inertia = np.array([body.inertia for body in mech.bodies])
    all_inputs = lw.compile(lw.formulations.denoc.udu, mech, parameters=("mass", "com", "inertia"))
    same(
        all_inputs(q, 2.0 * mech.parameters.masses, com, 2.0 * inertia)[1], 2.0 * lw.formulations.denoc.udu(mech, q)[1]
    )


def test_one_state_and_empty_batches():
    mech = lw.mechanisms.chain(3)
    q, v, *_ = states(mech)
    N_l, N_d = lw.formulations.denoc.matrices(mech, q[0])
    assert (N_l.shape, N_d.shape) == ((18, 18), (18, 3))
    U, D = lw.formulations.denoc.udu(mech, q[:0])
    assert U.shape == D.shape == (0, 3, 3)


def test_a_mechanism_that_does_not_move():
    mech = lw.Builder().link("post", 1.0).joint("weld", lw.Fixed(), "ground", "post").build()
    q = np.zeros((5, 0))
    assert [x.shape for x in lw.formulations.denoc.matrices(mech, q)] == [(5, 0, 0), (5, 0, 0)]
    assert [x.shape for x in lw.formulations.denoc.udu(mech, q)] == [(5, 0, 0), (5, 0, 0)]
    assert (
        lw.formulations.denoc.coriolis_matrix(mech, q, q).shape
        == lw.formulations.denoc.inertia_matrix(mech, q).shape
        == (5, 0, 0)
    )
    assert lw.formulations.denoc.forward_dynamics(mech, q, q, q).shape == (5, 0)


@pytest.mark.filterwarnings("ignore::linkwise.files.InertiaWarning")
def test_what_cannot_be_solved_is_refused():
    mech = lw.Builder().link("hub").joint("turn", lw.Revolute((0, 0, 1)), "ground", "hub").build(strict=False)
    for call in (
        lambda: lw.formulations.denoc.udu(mech, [0.0]),
        lambda: lw.formulations.denoc.forward_dynamics(mech, [0.0], [0.0], [0.0]),
    ):
        with pytest.raises(lw.MechanismError, match="needs a positive mass matrix"):
            call()
    assert lw.formulations.denoc.inertia_matrix(mech, [0.0]).tolist() == [[0.0]]


@trees_of([(2, 1, True), (5, 0, False), (8, 1, True)])
def test_accelerations_of_given_forces(tree):
    """The three steps of Section 5.2, for any joints, against the inertia matrix as a whole."""
    model = tree()
    q, _, phi, _ = model.states(3)
    found = model.denoc_accelerations(q, phi)
    np.testing.assert_allclose(np.einsum("...ij,...j->...i", model.denoc_inertia_matrix(q), found), phi, atol=1e-9)


def test_accelerations_where_joints_mimic_others():
    mech, *_ = tied_and_free(1)
    q, phi = lw.random_state(mech, np.random.default_rng(0))
    np.testing.assert_allclose(
        lw.mass_matrix(mech, q) @ lw.formulations.denoc.accelerations(mech, q, phi), phi, atol=1e-9
    )
