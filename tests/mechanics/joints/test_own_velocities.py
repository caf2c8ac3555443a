"""Joints with as many velocities as coordinates, which are not their rates: nothing takes one for the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.spatial import Motion, Vector3
from linkwise.mechanics.spatial.motion import NO_MOTION
from linkwise.mechanism import MechanismError
from tests.simulated import simulate

from ...linearization.differences import Neighbourhood, close, slope
from .body_planar import BodyPlanar, cart, turned

PLAIN, OWN = cart(lw.Planar), cart(BodyPlanar)


def states(seed: int, shape: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """q, v along the moving axes, the same as rates of coordinates, and T."""
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(OWN, rng, shape)
    matrix = turned(q)
    return q, v, (matrix @ v[..., None])[..., 0], matrix


def test_what_the_joint_and_the_mechanism_say():
    joint = BodyPlanar()
    assert joint.nq == joint.nv and not joint.rates_are_velocities and not joint.steps_commute
    assert not OWN.coordinates.rates_are_velocities and not OWN.coordinates.steps_commute
    assert (
        PLAIN.coordinates.rates_are_velocities
        and PLAIN.coordinates.steps_commute
        and not PLAIN.coordinates.structure_constants.any()
    )
    # [E_x, E_turn] = -E_y, [E_y, E_turn] = E_x
    np.testing.assert_array_equal(joint.structure_constants[0, 2], [0.0, -1.0, 0.0])
    np.testing.assert_array_equal(joint.structure_constants[1, 2], [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(joint.structure_constants, -np.swapaxes(joint.structure_constants, 0, 1))


def test_step_rates_are_rates_of_steps():
    joint, rng = BodyPlanar(), np.random.default_rng(4)
    u, v, q0 = (0.02 * rng.normal(size=3)).tolist(), rng.normal(size=3).tolist(), rng.normal(size=3).tolist()
    there = joint.integrate(q0, u, 1.0)
    rate = slope(lambda s: np.array(joint.difference(q0, joint.integrate(there, v, s))), 1e-3)
    np.testing.assert_allclose(joint.step_rate(u, v), rate, atol=2e-8)
    assert np.abs(rate - v).max() > 1e-3


def test_dynamics_agree_with_the_ordinary_joint():
    q, v, rates, t = states(0, (5,))
    np.testing.assert_allclose(lw.kinetic_energy(OWN, q, v), lw.kinetic_energy(PLAIN, q, rates), rtol=1e-12)
    tau = np.random.default_rng(1).normal(size=v.shape)
    a = lw.forward_dynamics(PLAIN, q, rates, tau)
    own = lw.forward_dynamics(OWN, q, v, (np.swapaxes(t, -1, -2) @ tau[..., None])[..., 0])
    turning = slope(lambda s: (turned(lw.integrate(OWN, q, v, s)) @ v[..., None])[..., 0], 1e-3)
    np.testing.assert_allclose((t @ own[..., None])[..., 0] + turning, a, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "dop853"},
        {"method": "radau", "rtol": 1e-8, "atol": 1e-8},
        {"method": "lsoda"},
        {"method": "rk4", "step": 1e-3},
        {"method": "rk4", "step": 1e-3, "control": lambda t, q, v: 0.0 * v},
        {"method": "dop853", "coordinates": "nu"},
        {"method": "rk4", "step": 1e-3, "coordinates": "xi"},
    ],
    ids=["dop853", "radau", "lsoda", "rk4", "rk4 controlled", "nu", "xi"],
)
def test_simulate(options):
    q, v, rates, _ = states(3)
    found = simulate(OWN, q, v, 0.3, **options)
    expected = lw.simulate(PLAIN, q, rates, 0.3, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11))
    np.testing.assert_allclose(found.q[-1], expected.q[-1], atol=3e-7)
    assert np.ptp(found.energy) < 1e-5


def test_simulate_with_a_loop():
    own, plain = cart(BodyPlanar, loop=True), cart(lw.Planar, loop=True)
    rng = np.random.default_rng(2)
    q = lw.constraints.assemble(own, 0.2 * rng.normal(size=7))
    v = lw.constraints.null_space(own, q) @ rng.normal(size=lw.constraints.degrees_of_freedom(own, q))
    found = lw.simulate(own, q, v, 0.2)
    expected = lw.simulate(plain, q, turned(q) @ v, 0.2)
    np.testing.assert_allclose(found.q[-1], expected.q[-1], atol=1e-6)
    with_charts = lw.simulate(own, q, v, 0.2, settings=lw.motion.Settings(coordinates="independent"))
    np.testing.assert_allclose(with_charts.q[-1], expected.q[-1], atol=1e-6)


def test_rollout_is_of_fourth_order():
    q, v, rates, _ = states(5)
    exact = lw.simulate(PLAIN, q, rates, 0.4, settings=lw.motion.Settings(rtol=1e-12, atol=1e-12)).q[-1]
    errors = [np.abs(lw.rollout(OWN, q, v, None, 0.4 / n, n, final_only=True)[0] - exact).max() for n in (20, 40)]
    assert errors[1] < 1e-4 and 3.6 < np.log2(errors[0] / errors[1]) < 4.6
    first = [
        np.abs(lw.rollout(OWN, q, v, None, 0.4 / n, n, "semi_implicit", final_only=True)[0] - exact).max()
        for n in (400, 800)
    ]
    assert 0.8 < np.log2(first[0] / first[1]) < 1.2


def test_derivatives():
    q, v, _, _ = states(6)
    rng = np.random.default_rng(7)
    tau, a = rng.normal(size=(2, 7))

    def along(function):
        columns = [slope(lambda s, e=e: function(lw.integrate(OWN, q, e, s)), 2e-3) for e in np.eye(7)]
        return np.stack(columns, axis=-1)

    d_q, d_v, d_tau = lw.forward_dynamics_derivatives(OWN, q, v, tau)
    close(d_q, along(lambda q: lw.forward_dynamics(OWN, q, v, tau)), 1e-9)
    close(
        d_v,
        np.stack([slope(lambda s, e=e: lw.forward_dynamics(OWN, q, v + s * e, tau), 1e-2) for e in np.eye(7)], -1),
        1e-9,
    )
    close(d_tau, lw.mass_matrix_inverse(OWN, q), 1e-10)
    close(lw.inverse_dynamics_derivatives(OWN, q, v, a)[0], along(lambda q: lw.inverse_dynamics(OWN, q, v, a)), 1e-9)
    close(lw.derivatives.mass_matrix_derivatives(OWN, q), along(lambda q: lw.mass_matrix(OWN, q)), 1e-9)
    d_qq = lw.derivatives.inverse_dynamics_second_derivatives(OWN, q, v, a)[0]
    close(d_qq, along(lambda q: lw.inverse_dynamics_derivatives(OWN, q, v, a)[0]), 1e-8)
    assert np.abs(d_qq - np.swapaxes(d_qq, 1, 2)).max() > 1e-2


def test_curvature_is_a_tensor():
    """Its components along the moving axes are those along the coordinates, turned."""
    q, _, _, t = states(8)
    expected = np.einsum("abcd,ai,bj,ck,dl->ijkl", lw.formulations.diagonal.curvature(PLAIN, q), t, t, t, t)
    close(lw.formulations.diagonal.curvature(OWN, q), expected, 1e-10)


@pytest.mark.parametrize("loop", [False, True])
def test_linearize(loop):
    mech, rng = cart(BodyPlanar, loop), np.random.default_rng(9)
    q, v, _, _ = states(9)
    if loop:
        q = lw.constraints.assemble(mech, 0.2 * rng.normal(size=7))
        v = lw.constraints.null_space(mech, q) @ rng.normal(size=lw.constraints.degrees_of_freedom(mech, q))
    tau = rng.normal(size=7)
    model = lw.linearize(mech, q, v, tau)
    a, b, drift = Neighbourhood(mech, q, v, tau, model.rows).model()
    close(model.A, a, 1e-8)
    close(model.B, b, 1e-8)
    close(model.drift, drift, 1e-8)
    half = model.A.shape[0] // 2
    assert np.abs(model.A[:half, :half]).max() > 1e-3  # steps do not commute: y's rate is not R v away from the state


def test_springs_and_dampers():
    q, v, _, _ = states(10)
    passive = lw.forces.Passive.springs({"drive": (1.0, 2.0, 3.0), "hinge": 4.0}, {"drive": (0.1, -0.2, 0.3)})
    passive += lw.forces.Passive.dampers({"drive": (0.3, 0.2, 0.1)})
    still = np.zeros(7)
    gradient = [slope(lambda s, e=e: passive.energy(OWN, lw.integrate(OWN, q, e, s)), 1e-3) for e in np.eye(7)]
    np.testing.assert_allclose(passive.forces(OWN, q, still), -np.array(gradient), rtol=1e-9, atol=1e-9)
    by_q, by_v = passive.derivatives(OWN, q, v)
    columns = [slope(lambda s, e=e: passive.forces(OWN, lw.integrate(OWN, q, e, s), v), 1e-3) for e in np.eye(7)]
    close(by_q, np.stack(columns, axis=1), 1e-9)
    np.testing.assert_allclose(np.diag(by_v), [-0.3, -0.2, -0.1, 0, 0, 0, 0])
    sprung = lw.simulate(OWN, q, v, 0.5, passive=passive)
    assert (np.diff(sprung.energy) < 1e-8).all()
    with pytest.raises(MechanismError, match="whose coordinates have no bounds"):
        lw.forces.Passive.stops({"drive": (-1.0, 1.0)}, 10.0).on(OWN)


@dataclass(frozen=True)
class Geared(lw.Revolute):
    """A hinge whose velocity is twice the rate of its angle."""

    def motion(self, q):
        return (Motion(Vector3(0.0, 0.0, 0.5), Vector3(0.0, 0.0, 0.0)),)

    def q_rate(self, q, v):
        return [v[0] * 0.5]

    def integrate(self, q, v, dt):
        return [q[0] + v[0] * dt * 0.5]

    def difference(self, q0, q1):
        return [(q1[0] - q0[0]) * 2.0]


def hinged(joint: lw.Revolute) -> lw.Builder:
    builder = lw.Builder("hinged").link("first", 1.0, (0.0, 0.1, 0.4), (0.1, 0.1, 0.1))
    return builder.joint("one", joint, "ground", "first")


def test_steps_that_commute_without_being_changes_of_coordinates():
    mech, plain = hinged(Geared((1.0, 0.0, 0.0))).build(), hinged(lw.Revolute((1.0, 0.0, 0.0))).build()
    assert mech.coordinates.steps_commute and not mech.coordinates.rates_are_velocities
    found, expected = lw.simulate(mech, [0.3], [1.0], 0.5), lw.simulate(plain, [0.3], [0.5], 0.5)
    np.testing.assert_allclose(found.q[-1], expected.q[-1], atol=1e-8)
    np.testing.assert_allclose(found.v[-1], 2.0 * expected.v[-1], atol=1e-8)


def test_a_mimic_joint_needs_rates_as_velocities():
    builder = hinged(Geared((1.0, 0.0, 0.0))).link("second", 1.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.1))
    builder.joint("two", lw.Revolute((1.0, 0.0, 0.0)), "first", "second", mimic=lw.Mimic("one"))
    with pytest.raises(MechanismError, match="whose rate is its velocity"):
        builder.build()


@dataclass(frozen=True)
class Warped(Geared):
    """Motions that change with q beside velocities that are no rates."""

    def motion_rate(self, q, v):
        return (Motion(Vector3(0.0, 0.0, v[0]), Vector3(0.0, 0.0, 0.0)),)


def test_velocities_of_no_group_are_refused():
    with pytest.raises(MechanismError, match="along the axes of the moving frame"):
        hinged(Warped())
    assert BodyPlanar().motion_rate([0.0] * 3, [1.0] * 3) == (NO_MOTION,) * 3
