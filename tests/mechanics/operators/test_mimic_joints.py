"""Operator expressions where joints mimic others: compiled against the dense oracle; factors by elimination."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.algorithms import expressions as ex
from linkwise.mechanics.operators.vectors import input_vectors
from tests.physics.test_mimic import tied_and_free

from .random_expressions import Generator, StackedVectors, link_accelerations

SEEDS = range(4)
CASES = 15
MASS_MATRIX = op.S.T @ (op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R) @ op.S
v, tau = op.coordinate_vector("v"), op.coordinate_vector("tau")
f = op.link_vector("f")


@cache
def tied(seed: int) -> lw.Mechanism:
    return tied_and_free(seed)[0]


class StackedOfAllJoints(StackedVectors):
    """Stacked operators of a mechanism of ``tied_and_free``, with the biases of its free joints."""

    def __init__(self, seed: int, q: np.ndarray, vectors: dict[str, np.ndarray]) -> None:
        mech, free, tie, offset = tied_and_free(seed)
        super().__init__(mech, q, vectors)
        self.q, self.accelerations = tie @ q + offset, link_accelerations(free)


def joint_size(mech: lw.Mechanism) -> int:
    return sum(body.kind.nv for body in mech.bodies)


def compare(expression: op.Expression, of: int, seed: int = 0) -> None:
    """The compiled expression against stacked matrices, to 1e-10 of the numbers on the way."""
    mech, rng = tied(of), np.random.default_rng(seed)
    q, _ = lw.random_state(mech, rng)
    kernel = lw.compile(expression, mech, target="numpy")
    vectors = {name: rng.normal(size=kernel.input_shapes[name]) for name in kernel.inputs[1:]}
    at = StackedOfAllJoints(of, q, vectors)
    expected = at.matrix(expression)
    found = np.asarray(kernel(q, *vectors.values())).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-10 * max(1.0, at.size_of_terms(expression)))


@pytest.mark.quick_one_in(3)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "expression",
    [
        MASS_MATRIX,
        MASS_MATRIX.inv,
        MASS_MATRIX.inv @ tau,
        MASS_MATRIX @ v,
        tau.T @ MASS_MATRIX.inv @ tau,
        2.0 * MASS_MATRIX.inv @ op.S.T @ op.H @ op.phi @ f,
        op.S,
        op.S.T,
        op.S.T @ op.S,
        op.S @ op.S.T,
        (op.S.T @ op.S).inv,
        op.S @ MASS_MATRIX.inv @ op.S.T,
        op.phi.T @ op.H.T @ op.S @ v,
        op.S.T @ op.H @ op.phi @ (op.M @ op.phi.T @ op.bias_acceleration(op.S @ v) + op.bias_force(op.S @ v)),
        op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R,
        op.identity(op.COORDINATE),
        op.H @ op.phi @ f,
        *ex.ACCELERATION_PARTS,
    ],
    ids=str,
)
def test_expressions(expression, seed):
    compare(expression, seed, seed)


@pytest.mark.parametrize("share", range(4))
def test_random_expressions(share):
    """Any expression compiles: vectors of joint space have a number for every joint, mimic joints included."""
    for case in range(share * CASES, (share + 1) * CASES):
        mech, rng = tied(case % len(SEEDS)), np.random.default_rng(case)
        generator = Generator(rng, mech.spanning_tree)
        generator.movable = []  # links with six degrees of freedom are another matter here
        space = (op.JOINT, op.FORCE, op.MOTION)[case % 3]
        expression = generator.vector(space, 3) if case % 2 else generator.operator(op.JOINT, space, 3)
        shapes = lw.compile(expression, mech, target="numpy").input_shapes
        for name, where in input_vectors(expression).items():
            assert shapes[name] == ((joint_size(mech),) if where == op.JOINT else (mech.n_links, 6))
        compare(expression, case % len(SEEDS), case)


@pytest.mark.parametrize("seed", SEEDS)
def test_operational_inertia_and_jacobian(seed):
    mech = lw.load(GRIPPER, floating_base=True)
    q, _ = lw.random_state(mech, np.random.default_rng(seed))
    for link in mech.link_names:
        jacobian = lw.jacobian(mech, q, link)
        np.testing.assert_allclose(jacobian, op.dense(op.B(link).T @ op.phi.T @ op.H.T @ op.S, mech, q), atol=1e-13)
        expected = np.linalg.inv(jacobian @ np.linalg.solve(lw.mass_matrix(mech, q), jacobian.T))
        found = lw.control.operational_inertia(mech, q, link)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_diagonalized_dynamics(seed, normalized):
    """Factors of the mass matrix, and the equation of motion in their rates, against forward dynamics."""
    mech, rng = tied(seed), np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng)
    torque, wrenches = rng.normal(size=mech.nv), rng.normal(size=(mech.n_links, 6))
    mass, factor = lw.mass_matrix(mech, q), lw.formulations.diagonal.factor(mech, q, normalized)
    pivots = np.eye(mech.nv) if normalized else lw.formulations.denoc.udu(mech, q)[1]
    scale = np.linalg.cond(mass)
    close = lambda found, expected: np.testing.assert_allclose(  # noqa: E731
        found, expected, rtol=0.0, atol=1e-13 * scale * max(1.0, np.abs(expected).max())
    )
    close(factor @ pivots @ factor.T, mass)
    close(lw.formulations.diagonal.factor_inverse(mech, q, normalized) @ factor, np.eye(mech.nv))
    nu = lw.formulations.diagonal.rates(mech, q, v, normalized)
    close(nu, factor.T @ v)
    close(lw.formulations.diagonal.velocities(mech, q, nu, normalized), v)
    close(factor @ lw.formulations.diagonal.forces(mech, q, torque, normalized), torque)
    close(lw.formulations.diagonal.torques(mech, q, torque, normalized), factor @ torque)
    acceleration = lw.forward_dynamics(mech, q, v, torque, wrenches)
    rate = lw.formulations.diagonal.factor_rate(mech, q, v, normalized)
    step = 1e-6
    ends = [lw.formulations.diagonal.factor(mech, lw.integrate(mech, q, v, h), normalized) for h in (step, -step)]
    np.testing.assert_allclose(rate, (ends[0] - ends[1]) / (2 * step), rtol=0.0, atol=1e-7 * scale)
    close(lw.formulations.diagonal.factor_derivatives(mech, q, normalized) @ v, rate)
    change, velocities = lw.formulations.diagonal.motion(mech, q, nu, torque, wrenches, normalized)
    close(velocities, v)
    close(change, factor.T @ acceleration + rate.T @ v)
    working = lw.formulations.diagonal.all_forces(mech, q, torque, wrenches, normalized)
    close(pivots @ change + lw.formulations.diagonal.coriolis(mech, q, nu, normalized), working)
    if normalized:
        close(nu @ lw.formulations.diagonal.coriolis(mech, q, nu), 0.0)


def test_link_accelerations_of_forward_dynamics():
    for seed in SEEDS:
        mech, rng = tied(seed), np.random.default_rng(seed)
        q, v = lw.random_state(mech, rng)
        torque = rng.normal(size=mech.nv)
        expected = lw.link_accelerations(mech, q, v, lw.forward_dynamics(mech, q, v, torque))
        velocities = lw.link_velocities(mech, q, v)
        expected[:, 3:] += np.cross(velocities[:, :3], velocities[:, 3:])
        found = lw.kinematics.forward_link_accelerations(mech, q, v, torque)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())


GRIPPER = """<robot name="gripper"><link name="base"><inertial><mass value="2"/><origin xyz="0.03 0 0"/>
  <inertia ixx="0.02" iyy="0.02" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="palm"><inertial><mass value="1.5"/><origin xyz="0 0.02 0.1"/>
  <inertia ixx="0.02" iyy="0.03" izz="0.02" ixy="0.001" ixz="0" iyz="0.002"/></inertial></link>
<link name="left"><inertial><mass value="0.4"/><origin xyz="0.05 0 0.02"/>
  <inertia ixx="0.002" iyy="0.003" izz="0.002" ixy="0" ixz="0.0001" iyz="0"/></inertial></link>
<link name="right"><inertial><mass value="0.5"/><origin xyz="0.05 0.01 0.02"/>
  <inertia ixx="0.002" iyy="0.003" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="wrist" type="continuous"><parent link="base"/><child link="palm"/><axis xyz="0 1 0"/></joint>
<joint name="open" type="continuous"><parent link="palm"/><child link="left"/><axis xyz="1 0 0"/>
  <origin xyz="0 0.1 0.2" rpy="0.3 0 0"/></joint>
<joint name="follow" type="continuous"><parent link="palm"/><child link="right"/><axis xyz="0 0 1"/>
  <origin xyz="0 -0.1 0.2" rpy="0 0.2 0.4"/><mimic joint="open" multiplier="-1.5" offset="0.1"/></joint></robot>"""
