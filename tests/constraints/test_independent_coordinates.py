"""Kernels of closed quantities: the null space, the equations of motion along it, forces of loops, one iteration of
assembly; against NumPy's singular values."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.constraints.sizes import sizes
from linkwise.mechanism import MechanismError

from .built_in import STRETCHED
from .test_elimination import CLOSED, relative, states

FLOATING = {"branches": lambda: lw.mechanisms.four_bar_branches(1, 2)}
MECHANISMS = {name: getattr(lw.mechanisms, name) for name in CLOSED} | FLOATING
every_mechanism = pytest.mark.parametrize("name", MECHANISMS)


def independent_joints(mech, q):
    """Names of joints of one coordinate that describe the motion well at q."""
    return tuple(lw.linearize(mech, q, independent="partitioning").independent)


def transposed(x):
    return np.swapaxes(x, -1, -2)


@every_mechanism
def test_the_null_space_is_that_of_the_constraints(name):
    mech = MECHANISMS[name]()
    q = states(mech, 8)[0]
    basis, reliability = lw.compile("closed_null_space", mech)(q)
    reference = lw.constraints.null_space(mech, q)
    fine = reliability > 1.0
    assert basis.shape == reference.shape and fine.sum() >= 6
    basis, reference, q = basis[fine], reference[fine], q[fine]
    np.testing.assert_allclose(basis @ transposed(basis), reference @ transposed(reference), atol=1e-11)
    np.testing.assert_allclose(transposed(basis) @ basis - np.eye(basis.shape[-1]), 0.0, atol=1e-12)
    np.testing.assert_array_equal(lw.constraints.null_space(mech, q, method="elimination"), basis)


@pytest.mark.slow_cases("delta_robot")
@pytest.mark.parametrize("name", ["four_bar", "five_bar", "slider_crank", "loader", "delta_robot"])
def test_the_equations_of_motion_along_the_null_space(name):
    mech = MECHANISMS[name]()
    q, v, tau, wrenches = states(mech, 6)
    for joints in (None, independent_joints(mech, q[0])):
        for extra in ((), (wrenches,)):
            kernel = lw.compile("closed_independent_terms", mech, ports=("wrenches",) * len(extra), independent=joints)
            mass, bias, basis, offset, reliability = kernel(q, v, *extra)
            fine = reliability > 1.0
            assert fine.sum() >= 4
            forces = (transposed(basis) @ tau[..., None])[..., 0]
            x = np.linalg.solve(mass[fine], (forces - bias)[fine][..., None])
            found = (basis[fine] @ x)[..., 0] + offset[fine]
            pushed = {"wrenches": wrenches} if extra else {}
            reference = lw.forward_dynamics(mech, q, v, tau, method="svd", **pushed)[fine]
            assert relative(found, reference) < 1e-9
            if joints is None:
                np.testing.assert_allclose(transposed(basis[fine]) @ offset[fine][..., None], 0.0, atol=1e-9)
            else:
                places = [mech.v_index(joint).start for joint in joints]
                np.testing.assert_allclose(found[:, places], x[..., 0], rtol=1e-9, atol=1e-9)
                expected = lw.constraints.null_space(mech, q, method="partitioning", independent=joints)
                np.testing.assert_allclose(basis[fine], expected[fine], rtol=1e-9, atol=1e-9)


def test_independent_joints_are_as_many_as_the_degrees_of_freedom():
    with pytest.raises(
        MechanismError, match="2 coordinates .*'crank_joint', 'rocker_joint'.* has 1 degrees of freedom"
    ):
        lw.compile("closed_null_space", lw.mechanisms.four_bar(), independent=("crank_joint", "rocker_joint"))


def test_the_null_space_of_singular_positions_is_left_to_singular_values():
    mech = lw.mechanisms.five_bar()
    assert not lw.compile("closed_null_space", mech)(STRETCHED)[1] > 1.0
    found = lw.constraints.null_space(mech, STRETCHED, method="elimination")
    assert found.shape == (4, 3)  # a degree of freedom more than elsewhere
    np.testing.assert_array_equal(found, lw.constraints.null_space(mech, STRETCHED))


@every_mechanism
def test_forces_of_loops_and_accelerations_by_multipliers(name):
    mech = MECHANISMS[name]()
    q, v, tau, wrenches = states(mech, 6)
    for pushed in ({}, {"wrenches": wrenches}):
        ports, extra = tuple(pushed), pushed.values()
        active = np.ones(len(mech.loops))
        accelerations = lw.compile("closed_forward_dynamics", mech, ports=("active", *ports))(q, v, tau, active, *extra)
        forces = lw.compile("closed_constraint_forces", mech, ports=ports)(q, v, tau, *extra)
        known = np.isfinite(forces).all(axis=-1)
        assert known.sum() >= 4
        reference = lw.constraints.constraint_forces(mech, q, v, tau, method="svd", **pushed)
        size = np.abs(reference).max(axis=-1, keepdims=True)
        np.testing.assert_allclose((forces / size)[known], (reference / size)[known], atol=1e-9)
        np.testing.assert_allclose(
            lw.constraints.constraint_forces(mech, q, v, tau, **pushed) / size, reference / size, atol=1e-9
        )
        reference = lw.forward_dynamics(mech, q, v, tau, method="svd", **pushed)
        assert relative(accelerations[known], reference[known]) < 1e-9


def test_loops_that_let_go_have_no_forces():
    mech = lw.mechanisms.loader()
    q, v, tau, _ = states(mech, 5)
    active = np.random.default_rng(0).random((5, len(mech.loops))) < 0.5
    found = lw.constraints.constraint_forces(mech, q, v, tau, active=active)
    a = lw.forward_dynamics(mech, q, v, tau, active=active)
    expected = lw.inverse_dynamics(mech.spanning_tree, q, v, a) - tau  # what is missing to a
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    nothing = lw.constraints.constraint_forces(mech, q, v, tau, active=np.zeros((5, len(mech.loops)), bool))
    np.testing.assert_allclose(nothing, 0.0, atol=1e-9)


@every_mechanism
def test_one_iteration_of_assembly_is_that_of_gauss_and_newton(name):
    mech = MECHANISMS[name]()
    q = states(mech, 6)[0]
    there = lw.integrate(mech, q, 0.01 * np.random.default_rng(1).normal(size=(6, mech.nv)), 1.0)
    kernel = lw.compile("closed_assembly_iteration", mech)
    found, reliability = kernel(there)
    fine = reliability > 1.0
    assert found.shape == q.shape and fine.sum() >= 4
    errors = [
        np.abs(lw.constraints.position_error(mech, x)).max(axis=-1)[fine] for x in (there, found, kernel(found)[0])
    ]
    for before, after in zip(errors, errors[1:], strict=False):
        assert (after < 20.0 * before**2 + 1e-12).all()  # quadratic
    if name in ("four_bar", "five_bar", "slider_crank", "loader"):  # no constraint but zeros is redundant
        columns = sizes(mech).columns  # steps are the shortest with lengths in units of the loops' sizes
        jacobian = lw.constraints.constraint_jacobian(mech, there) * columns
        step = -np.linalg.pinv(jacobian, rcond=1e-8) @ lw.constraints.position_error(mech, there)[..., None]
        expected = lw.integrate(mech, there, columns * step[..., 0], 1.0)
        np.testing.assert_allclose(found[fine], expected[fine], atol=1e-11)


@pytest.mark.parametrize(
    "name",
    [
        "closed_null_space",
        "closed_independent_terms",
        "closed_constraint_forces",
        "closed_assembly_iteration",
        "closed_forward_dynamics",
    ],
)
def test_the_reference_target_computes_the_same(name):
    mech = lw.mechanisms.five_bar()
    arrays = states(mech, 5)
    compiled, interpreted = (lw.compile(name, mech, target=target) for target in ("cpu", "numpy"))
    given = [dict(zip(("q", "v", "tau"), arrays, strict=False))[k] for k in compiled.inputs]
    both = [kernel(*given) for kernel in (compiled, interpreted)]
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in both), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    assert all(kernel.source(language) for kernel in (compiled,) for language in ("c", "cuda"))
