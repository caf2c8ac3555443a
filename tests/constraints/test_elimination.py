"""Compiled forward dynamics of closed mechanisms, eliminated cluster by cluster, against the SVD and against trees."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.links.loop_elimination import Front, Row, eliminate

from .built_in import STRETCHED

CLOSED = ["four_bar", "five_bar", "slider_crank", "loader", "bricard", "delta_robot", "stewart_platform", "n_four_bar"]


def states(mech, count, seed=0):
    rng, start, found = np.random.default_rng(seed), lw.constraints.assemble(mech, mech.initial), []
    while len(found) < count:
        guess = lw.integrate(mech, start, 0.3 * rng.normal(size=mech.nv), 1.0)
        try:
            found.append(lw.constraints.assemble(mech, guess, tries=1))
        except lw.constraints.AssemblyError:
            continue
    q = np.array(found)
    basis = lw.constraints.null_space(mech, q)
    v = np.einsum("...ij,...j->...i", basis, rng.normal(size=(count, basis.shape[-1])))
    return q, v, rng.normal(size=(count, mech.nv)), rng.normal(size=(count, mech.n_links, 6))


def relative(found, expected):
    return (np.abs(found - expected).max(axis=-1) / np.abs(expected).max(axis=-1)).max()


@pytest.mark.parametrize("name", CLOSED)
def test_elimination_agrees_with_the_svd(name):
    mech = getattr(lw.mechanisms, name)()
    q, v, tau, wrenches = states(mech, 20)
    for extra in ({}, {"wrenches": wrenches}):
        reference = lw.forward_dynamics(mech, q, v, tau, method="svd", **extra)
        assert relative(lw.forward_dynamics(mech, q, v, tau, **extra), reference) < 1e-11
    single = lw.forward_dynamics(mech, q[3], v[3], tau[3])
    assert relative(single, lw.forward_dynamics(mech, q, v, tau)[3]) < 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_a_tree_is_the_case_without_loops(seed):
    mech = lw.mechanisms.random_tree(8, seed=seed, floating_base=bool(seed % 2))
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, (5,))
    tau, wrenches = rng.normal(size=v.shape), rng.normal(size=(5, mech.n_links, 6))
    expected = lw.forward_dynamics(mech, q, v, tau, wrenches)
    kernel = lw.compile("closed_forward_dynamics", mech, ports="wrenches")
    assert relative(kernel(q, v, tau, wrenches), expected) < 1e-10


def test_a_singular_position_has_a_degree_of_freedom_more():
    """The five-bar stretched out, at rest: the kernel itself finds that a pivot vanishes."""
    mech = lw.mechanisms.five_bar()
    q, v, tau = STRETCHED, np.zeros(4), np.array([1.0, -2.0, 0.5, 0.3])
    np.testing.assert_allclose(lw.constraints.position_error(mech, q), 0.0, atol=1e-14)
    reference = lw.forward_dynamics(mech, q, v, tau, method="svd")
    found, reliability, _ = lw.compile("closed_motion", mech)(q, v, tau)
    assert lw.constraints.degrees_of_freedom(mech, q) == 3
    assert 0.0 <= reliability < 1.0
    np.testing.assert_allclose(found, reference, rtol=1e-10)


def test_kernels_give_no_numbers_where_a_pivot_vanishes_that_they_rely_on():
    """Two four-bars lying flat: three degrees of freedom, of which the order of elimination knows nothing."""
    mech = lw.mechanisms.n_four_bar(2)
    q, v, tau = 0.5 * np.pi * np.array([1.0, 1.0, 1.0, -1.0, -1.0]), np.zeros(5), np.ones(5)
    assert lw.constraints.degrees_of_freedom(mech, q) == 3
    with np.errstate(invalid="ignore"):
        assert np.isnan(lw.compile("closed_forward_dynamics", mech)(q, v, tau)).all()
    reference = lw.forward_dynamics(mech, q, v, tau, method="svd")
    np.testing.assert_allclose(lw.forward_dynamics(mech, q, v, tau), reference, rtol=1e-12)


@pytest.mark.parametrize("off", [0.0, 1e-9, 1e-6, 1e-4])
@pytest.mark.parametrize("name", ["n_four_bar", "parallelogram"])
def test_singular_positions_and_beside_them(name, off):
    """Four-bars that lie flat, or nearly so: the dense equations of motion, in the least-squares sense in singular
    positions, where velocities may belong to no branch."""
    rng = np.random.default_rng(3)
    if name == "n_four_bar":
        mech, q = lw.mechanisms.n_four_bar(2), 0.5 * np.pi * np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    else:
        mech, q = lw.mechanisms.four_bar(2.0, 1.0, 2.0, 1.0), 0.5 * np.pi * np.array([-1.0, 1.0, -1.0])
    q = lw.constraints.assemble(mech, q + off) if off else q
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    values = np.linalg.svd(jacobian, compute_uv=False)
    kept = values > 1e-8 * values[0]
    v, tau = np.zeros(mech.nv) if off else rng.normal(size=mech.nv), rng.normal(size=mech.nv)
    v -= np.linalg.pinv(jacobian, rcond=1e-8) @ (jacobian @ v)
    expected = lw.forward_dynamics(mech, q, v, tau, method="svd")
    error = np.abs(expected).max() * (1e-13 + 10.0 * values[~kept].max(initial=1e-15)) / values[kept].min()
    found, status, consistency = lw.compile("closed_motion", mech, singular=True)(q, v, tau)
    assert status > 1.0 and consistency > 1.0
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=error)
    np.testing.assert_allclose(lw.forward_dynamics(mech, q, v, tau), expected, rtol=0.0, atol=error)


def test_singular_states_of_a_batch_with_forces_on_links():
    mech, rng = lw.mechanisms.four_bar(2.0, 1.0, 2.0, 1.0), np.random.default_rng(5)
    flat = 0.5 * np.pi * np.array([-1.0, 1.0, -1.0])
    q = np.array([flat, lw.constraints.assemble(mech, flat + 0.3), flat, np.full(3, np.nan)])
    tau, wrenches = rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 6))
    v = np.zeros((4, 3))
    found = lw.forward_dynamics(mech, q, v, tau, wrenches=wrenches)
    expected = lw.forward_dynamics(mech, q[:3], v[:3], tau[:3], wrenches[:3], method="svd")
    np.testing.assert_allclose(found[:3], expected, rtol=1e-10, atol=1e-10)
    assert np.isnan(found[3]).all()


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_elimination_by_rank_of_rows_by_numbers(rank):
    """Five constraints on six coordinates, of any rank, that contradict each other: K spans the null space, and K y + k
    solves them in the least-squares sense."""
    rng = np.random.default_rng(rank)
    matrix = rng.normal(size=(5, rank)) @ rng.normal(size=(rank, 6))
    bias = rng.normal(size=5)
    rows = {i: Row(dict(enumerate(matrix[i].tolist())), float(bias[i])) for i in range(5)}
    found = eliminate(rows, range(6), (Front(tuple(range(5)), tuple(range(6)), 3, by_rank=True),))
    basis, offset = np.array([found.basis[c] for c in range(6)]), np.array([found.offset[c] for c in range(6)])
    np.testing.assert_allclose(matrix @ basis, 0.0, atol=1e-13)
    assert np.linalg.matrix_rank(basis) == 6 - rank == found.free + sum(found.indicators)
    least = matrix @ np.linalg.pinv(matrix) @ bias if rank else np.zeros(5)
    if rank < 3:  # all three pivots: the other two constraints are supposed to be implied
        np.testing.assert_allclose(matrix @ offset, -least, atol=1e-12)


def test_elimination_of_rows_by_numbers():
    """Two constraints on four coordinates, and one more that they imply."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(3, 4))
    matrix[2] = 0.3 * matrix[0] - 2.0 * matrix[1]
    bias = np.array([0.5, -1.0, 0.3 * 0.5 + 2.0])
    rows = {i: Row(dict(enumerate(matrix[i].tolist())), float(bias[i])) for i in range(3)}
    found = eliminate(rows, range(4), (Front((0, 1, 2), (0, 1, 2, 3), 2),))
    basis, offset = np.array([found.basis[c] for c in range(4)]), np.array([found.offset[c] for c in range(4)])
    np.testing.assert_allclose(matrix @ basis, 0.0, atol=1e-14)
    np.testing.assert_allclose(matrix @ offset, -bias, atol=1e-14)
    assert found.free == 2 and np.linalg.matrix_rank(basis) == 2
