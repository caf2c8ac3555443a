"""Modes: shapes that really are eigenvectors, on robots whose joints differ a thousandfold, and exact zeros."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

import linkwise as lw
from linkwise.linearization.modes import modes_of

from ..constraints.built_in import built, random_state

ARMS = (
    "ur_description/urdf/ur3_robot.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "ur_description/urdf/ur10_robot.urdf",
    "kinova_description/robots/kinova.urdf",
    "panda_description/urdf/panda.urdf",
    pytest.param("z1_description/urdf/z1.urdf", marks=pytest.mark.slow),
    pytest.param("xarm_description/urdf/xarm7.urdf", marks=pytest.mark.slow),
    pytest.param("so_arm_description/urdf/so101.urdf", marks=pytest.mark.slow),
    pytest.param("talos_data/robots/talos_left_arm.urdf", marks=pytest.mark.slow),
    pytest.param("a1_description/urdf/a1.urdf", marks=pytest.mark.slow),
)


def robot(path: str) -> lw.Mechanism:
    pin = pytest.importorskip("pinocchio")
    file = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots" / path
    if not file.exists():
        pytest.skip("example-robot-data is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lw.load(file)


def solve_the_model(model: lw.control.StateSpace, tolerance: float = 1e-8) -> None:
    """|A x - lambda x| is small beside the fastest motion times |x|, for every mode."""
    modes = model.modes()
    fastest = np.abs(model.eigenvalues()).max()
    y = model.rows @ modes.shapes
    x = np.concatenate([y, y * modes.eigenvalues])
    wrong = np.linalg.norm(model.A @ x - x * modes.eigenvalues, axis=0)
    assert np.all(wrong <= tolerance * fastest * np.linalg.norm(x, axis=0)), wrong / np.linalg.norm(x, axis=0)
    np.testing.assert_allclose(np.abs(modes.shapes).max(axis=0), 1.0)


@pytest.mark.parametrize("path", ARMS, ids=lambda path: Path(path).stem)
def test_shapes_of_robots_are_eigenvectors(path):
    mech = robot(path).with_acting(False)  # whose limits and friction are stiff
    rng = np.random.default_rng(0)
    hanging = lw.find_equilibrium(mech, lw.neutral(mech))
    held = lw.find_equilibrium(mech, lw.random_state(mech, rng)[0], solve_for="tau")
    dampers = lw.forces.Passive.dampers(dict.fromkeys(mech.joint_names, 0.1))
    for found in (hanging, held):
        model = lw.linearize(mech, found.q, tau=found.tau)
        solve_the_model(model)
        solve_the_model(lw.linearize(mech, found.q, tau=found.tau, passive=dampers))
        # Frequencies are those of the generalized symmetric problem, K x = omega^2 M x.
        stiffness = -lw.mass_matrix(mech, found.q) @ model.A[mech.nv :, : mech.nv]
        squares = scipy.linalg.eigh(0.5 * (stiffness + stiffness.T), lw.mass_matrix(mech, found.q), eigvals_only=True)
        ours = np.sort(np.unique(np.round(-(model.modes().eigenvalues ** 2).real, 6)))
        for square in squares:
            assert np.abs(ours - square).min() <= 1e-6 * np.abs(squares).max()


@pytest.mark.parametrize("name", ["ur3", "ur5", "ur10"])
def test_directions_without_forces_are_zero_once(name):
    """Round-off of 1e-31 in A is no frequency: three joints of these arms meet no force where they hang."""
    mech = robot(f"ur_description/urdf/{name}_robot.urdf")
    modes = lw.linearize(mech, lw.find_equilibrium(mech, lw.neutral(mech)).q).modes()
    still = modes.eigenvalues == 0.0
    assert still.sum() == 3 and np.isnan(modes.damping_ratios[still]).all() and modes.frequencies[~still].min() > 0.1
    np.testing.assert_allclose(np.abs(modes.shapes[:, still]), np.eye(6)[:, [0, 4, 5]], atol=1e-9)
    assert repr(modes) == str(modes)  # as the last line of a notebook's cell
    lines = str(modes).splitlines()[1:4]
    assert [line.split()[:2] for line in lines] == [["0", "-"]] * 3


def test_a_body_that_nothing_holds():
    """A free body drifts six ways; with a damper to the ground it stays wherever it is."""
    builder = lw.Builder().link("body", 2.0, (0.1, 0.0, 0.0), (0.1, 0.2, 0.3))
    mech = builder.joint("base", lw.Floating(), "ground", "body").build().with_gravity((0, 0, 0))
    q = lw.neutral(mech)
    modes = lw.linearize(mech, q).modes()
    np.testing.assert_array_equal(modes.eigenvalues, np.zeros(6))
    np.testing.assert_allclose(modes.shapes, np.eye(6), atol=1e-12)
    damped = lw.linearize(mech, q, passive=lw.forces.Passive.dampers({"base": 0.5})).modes()
    assert np.sum(damped.eigenvalues == 0.0) == 6 and np.all(damped.eigenvalues[6:].real < -0.1)


def test_a_cart_on_wheels_rocks_and_else_stays_where_it_is():
    """Two wheels on the axle of a hanging weight, without slip: a pendulum on a cart with the wheels' inertia."""
    radius, builder = 0.2, lw.Builder().link("axle", 5.0, (0, 0, -0.08), (0.2, 0.2, 0.2))
    for side, y in (("left", 0.25), ("right", -0.25)):
        builder.link(side, 1.0, inertia=(radius**2 / 4.0, radius**2 / 2.0, radius**2 / 4.0))
        builder.joint(f"{side}_spin", lw.Revolute((0, 1, 0)), "axle", side, (0, y, 0)).wheel(
            f"{side}_rim", side, radius
        )
    cart = builder.joint("base", lw.Floating(), "ground", "axle", (0, 0, radius)).build("cart")
    modes = lw.linearize(cart, lw.neutral(cart)).modes()
    moved, moment, inertia = 8.0, 5.0 * 0.08, 0.2 + 5.0 * 0.08**2
    rocking = np.sqrt(moment * 9.81 / (inertia - moment**2 / moved))
    assert modes.frequencies[:-1].tolist() == [0.0] * 5  # along and about the ground, and each wheel
    assert modes.frequencies[-1] == pytest.approx(rocking, rel=1e-12)
    assert np.linalg.matrix_rank(modes.shapes[:, :-1]) == 5


def test_motion_mimic_and_loops():
    """Gyroscopic terms, coordinates that follow others, closed loops: whatever A is, shapes belong to it."""
    for name in ("loader", "five_bar", "delta_robot", "stewart_platform"):
        q, v = random_state(name, 1)
        solve_the_model(lw.linearize(built(name), q))
        moving = lw.linearize(built(name), q, v)
        modes = moving.modes()
        values = moving.eigenvalues()
        for value in modes.eigenvalues:
            assert np.abs(values - value).min() <= 1e-6 * np.abs(values).max()


def test_slow_beside_fast_modes_keep_their_digits():
    """A stiff and a soft mode, frequencies a million apart, coupled by the inertia."""
    mass = np.array([[2.0, 0.3], [0.3, 0.5]])
    stiffness = np.array([[1e12, 0.0], [0.0, 3.0]])
    matrix = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(mass, stiffness), np.zeros((2, 2))]])
    modes = modes_of(matrix, mass, np.eye(2, 4), ("a", "b"))
    exact = np.sqrt(3.0 / 0.5)  # the stiff coordinate stands still
    np.testing.assert_allclose(modes.frequencies[0], exact, rtol=1e-3)
    fast = np.sqrt(1e12 * mass[1, 1] / np.linalg.det(mass))
    np.testing.assert_allclose(modes.frequencies[1], fast, rtol=1e-9)
    none = modes_of(np.zeros((4, 4)), mass, np.eye(2, 4), ("a", "b"))
    assert not none.eigenvalues.any()
