"""Semi-implicit steps on the ground: against dense matrices, closed forms, MuJoCo; no energy from contact."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw
from tests.oracle.contact import Contacts, normal_force

from .on_the_ground import free_body, of_package, package_file, puck


def test_all_methods_bounce_as_an_accurate_integration_does():
    """A puck that falls by 0.1 m: how high it comes back, and how deep it goes, in steps of 1 and 0.1 ms."""
    mech = puck(friction=0.0)
    exact = lw.simulate(mech, [0.2, 0.0], None, 0.25, settings=lw.motion.Settings(rtol=1e-9, atol=1e-9), step=1e-3)
    for method, errors in (("rk4", (0.5, 0.07)), ("semi_implicit", (0.05, 0.01))):
        for dt, error in zip((1e-3, 1e-4), errors, strict=True):
            q, v = lw.rollout(mech, [0.2, 0.0], None, None, dt, round(0.25 / dt), method)
            assert v[:, 0].max() == pytest.approx(exact.v[:, 0].max(), abs=error)
            assert q[:, 0].min() == pytest.approx(exact.q[:, 0].min(), abs=2e-3)


def linear_law(force, depth: float, rate: float, h: float, mass: float) -> tuple[float, float]:
    """Of a step from a rate: the convex force at that rate and its slope, from the rate that Newton's method has for a
    free mass: the tangent where the depth shrinks, the secant to where it is zero or the rate is where it grows."""

    def slope(u):
        return (force(u + 1e-6) - force(u - 1e-6)) / 2e-6

    ended = rate
    if rate > 0.0:
        ended = max(0.0, rate - h / mass * force(rate) / (1.0 + h / mass * slope(rate)))
    start = max(0.0, -depth / h)
    along = (force(ended) - force(start)) / (ended - start) if ended > start + 1e-9 / h else slope(ended)
    return force(ended) + along * (rate - ended), along


@pytest.mark.parametrize("speed", [0.05, -0.5, -5.0])
def test_semi_implicit_steps_solve_for_the_forces_of_their_end(speed):
    """(M + h sum of J* C J) a = tau - bias + sum of J* f, a along axes that do not turn, assembled densely from the
    oracle's law: forces at the depth that velocities lead to, C their slope by the velocity along the normal and their
    secant across it.  That is solved twice: friction is first that of a normal force as a step leaves it to a free
    mass, the more so the faster it falls, then of the normal force that this reaches; what does not touch yet is then a
    damper, or let go where it pulled.  The axes turn after that."""
    mech = free_body("capsule", (0.08, 0.15), friction=0.7, smoothing=1e-3)
    mech = mech.with_shape("box", "body", "box", (0.1, 0.1, 0.1)).with_contact(("box", "floor"), friction=0.3)
    rng, h = np.random.default_rng(4), 2e-3
    q, v = lw.random_state(mech, rng)
    q[4:], v = (0.0, 0.0, 0.11), speed * v
    contacts = Contacts(mech, q, v).found
    bias = lw.mass_matrix(mech, q) @ [0.0, 0.0, 0.0, *np.cross(v[:3], v[3:])] - lw.bias_force(mech, q, v)

    def solved(reached=None):
        matrix, right, touching = lw.mass_matrix(mech, q), bias, 0
        for pair, _, _, depth, point, normal, _ in contacts:
            jacobian = lw.jacobian(mech, q, "body", "world_aligned")
            jacobian = jacobian[3:] + np.cross(jacobian[:3], point - q[4:], axisa=0).T  # v + omega x r
            velocity, law, mass = jacobian @ v, pair.law, pair.step * pair.law.damping
            rate, across = -normal @ velocity, np.eye(3) - np.outer(normal, normal)

            def push(u, depth=depth, law=law):
                return normal_force(law, depth + h * u, u)

            force, along = linear_law(push, depth, rate, h, mass)
            if reached is None:
                falling = (h * rate) ** 2 / ((h * rate) ** 2 + depth**2)
                load = force / (1.0 + falling * h * along / mass)
                slid = across @ velocity
            else:
                end = jacobian @ reached
                ended, load = -normal @ end, force + along * (-normal @ end - rate)
                slid = max(across @ velocity, across @ end, key=np.linalg.norm)
                if depth < 0.0:
                    along = load / ended if load > 0.0 else 0.0
                    force = along * rate
                load = max(0.0, load)
            drag = law.friction * load / np.sqrt(slid @ slid + law.slip_speed**2)
            matrix = matrix + h * jacobian.T @ (along * np.outer(normal, normal) + drag * across) @ jacobian
            right = right + jacobian.T @ (force * normal - drag * across @ velocity)
            touching += push(rate) > 0.0
        assert touching >= 2
        return v + h * np.linalg.solve(matrix, right)

    _, found = lw.rollout(mech, q, v, None, h, 1, "semi_implicit")
    expected = solved(solved())
    expected[3:] = Rotation.from_rotvec(h * expected[:3]).inv().apply(expected[3:])
    np.testing.assert_allclose(found[-1], expected, rtol=1e-5, atol=1e-7 * abs(speed))


def work_of_contact(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """What a step of M (v' - v) = dt (contact - bias) gives to its kinetic energy, less what the bias does at v', an
    upper bound of what contact does; and that energy.  For joints whose velocities are the rates of q."""
    bare = mech.with_acting("contact")
    _, after = lw.rollout(bare, q, v, None, dt, 1, "semi_implicit", final_only=True)
    bias = np.sum(after * lw.bias_force(bare, q, v), axis=-1)
    before = lw.kinetic_energy(bare, q, v)
    return lw.kinetic_energy(bare, q, after) - before + dt * bias, before


@pytest.mark.parametrize("friction", [0.0, 0.8])
def test_semi_implicit_contact_takes_energy_from_robots_that_fall_at_any_speed(friction):
    """Half-cheetahs above the ground, 2000 postures at speeds of up to some ten metres a second and 50 rad/s: contact
    gives them nothing in steps of 1 to 20 ms, by default and where it is ten times as stiff.  Of those that are in the
    ground it may set free what springs hold, at a speed of 2 / dissipation at most: more than springs hold never."""
    mech = of_package("gymnasium", "envs/mujoco/assets/half_cheetah.xml").with_contact(friction=friction)
    rng, count = np.random.default_rng(0), 2000
    q, v = rng.uniform(-1.5, 1.5, (count, 9)), rng.normal(size=(count, 9)) * [2, 8, 8, 25, 25, 25, 25, 25, 25]
    q[:, 2] *= 2.0
    gaps = lw.contact.contact_points(mech, q, v).gap.min(axis=-1)
    q[:, 1] += rng.uniform(0.0, 0.1, count) - gaps
    sunk = q - np.eye(9)[1] * rng.uniform(0.0, 0.2, (count, 1))
    stiff = mech.with_contact(stiffness=1e6)
    for one, dt in itertools.product((mech, stiff), (1e-3, 1e-2, 2e-2)):
        given, energies = work_of_contact(one, q, v, dt)
        assert (given <= 1e-9 * energies).all()
        assert one is mech or (given < -0.1 * energies).sum() > 50  # how many lose much in a step grows with stiffness
        given, energies = work_of_contact(one, sunk, v, dt)
        assert (given <= lw.contact.contact_energy(one, sunk)).all() and (given < 0.05 * energies).all()


def test_semi_implicit_contact_kicks_no_half_cheetah_that_mujoco_stops():
    """A foot that comes down at 25 m/s while another is 12 cm in the ground: MuJoCo's own step takes four fifths of the
    energy, and shorter steps agree."""
    mujoco = pytest.importorskip("mujoco")
    mech = of_package("gymnasium", "envs/mujoco/assets/half_cheetah.xml")
    q = [-0.4699, -0.5024, 3.4723, -0.7281, 0.4604, -0.1891, 0.6784, 0.6933, 0.3457]
    v = [0.7768, -3.5623, 3.8257, -50.4187, 0.5249, 7.431, -3.2589, -6.4759, 4.3688]
    model = mujoco.MjModel.from_xml_path(str(package_file("gymnasium", "envs/mujoco/assets/half_cheetah.xml")))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_step(model, data)
    theirs = float(lw.kinetic_energy(mech, data.qpos.copy(), data.qvel.copy()))
    assert theirs < 0.25 * lw.kinetic_energy(mech, q, v)
    for dt in (1e-2, 5e-3, 1e-3):
        end = lw.rollout(mech, q, v, None, dt, round(0.01 / dt), "semi_implicit", final_only=True)
        assert lw.kinetic_energy(mech, *end) < 1.1 * theirs


@pytest.mark.parametrize("dt", [1e-3, 5e-3, 1e-2])
def test_semi_implicit_friction_stays_in_its_cone_while_a_puck_lands(dt):
    """A puck that slides at 2 m/s stops after v^2 / (2 mu g), whether it starts on the ground or falls on it: it flies
    on before it lands, and loses mu times the vertical impulse in all."""
    mech, mu, g = puck(friction=0.3), 0.3, 9.81
    for fall in (0.0, 0.02, 0.05):
        q, v = lw.rollout(mech, [0.1 + fall, 0.0], [0.0, 2.0], None, dt, round(1.5 / dt), "semi_implicit")
        lost, pushed = -np.diff(v[:, 1]), np.diff(v[:, 0]) + g * dt
        assert (pushed > -1e-12).all() and (lost <= mu * pushed + 1e-12).all()
        assert 0.0 <= v[-1, 1] < 1e-3
        flight = math.sqrt(2.0 * fall / g)
        expected = 2.0 * flight + (2.0 - mu * g * flight) ** 2 / (2.0 * mu * g)
        assert q[-1, 1] == pytest.approx(expected, rel=0.04 if dt < 1e-2 else 0.05)


def test_semi_implicit_friction_hardly_leaves_its_cone_where_it_tips_a_body():
    """Friction presses the front of a body that slides, and lifts its rear: of the whole body's normal force it takes
    its share all the same, in steps five times as long as contacts are made for."""
    dt, mu, g = 5e-3, 0.3, 9.81
    mech = free_body("box", (0.2, 0.2, 0.05), friction=mu)
    q, v = lw.rollout(mech, [1, 0, 0, 0, 0, 0, 0.1], [0, 0, 0, 2.0, 0, 0], None, dt, 300, "semi_implicit")
    speed = np.array([lw.jacobian(mech, x, "body", "world_aligned")[3:] @ y for x, y in zip(q, v, strict=True)])
    lost, pushed = -np.diff(speed[:, 0]), np.diff(speed[:, 2]) + g * dt
    assert (lost <= mu * pushed * (1.0 + 1e-3) + 1e-12).all()
    assert np.abs(v[-1]).max() < 1e-3


def test_semi_implicit_steps_follow_friction_that_is_far_too_stiff_for_explicit_ones():
    """On a slope below the angle of friction a box creeps at the share of the slip speed that holds it."""
    tilt = 0.2
    mech = free_body("box", (0.1, 0.1, 0.05), friction=0.5, slip_speed=1e-4)
    mech = mech.with_gravity((9.81 * math.sin(tilt), 0.0, -9.81 * math.cos(tilt)))
    q, v = lw.rollout(mech, [1, 0, 0, 0, 0, 0, 0.05], None, None, 5e-3, 1000, "semi_implicit")
    share = math.tan(tilt) / 0.5
    creep = 1e-4 * share / math.sqrt(1.0 - share**2)
    np.testing.assert_allclose((q[-1] - q[-101])[4] / 0.5, creep, rtol=1e-3)
    assert np.abs(v[-1]).max() < 1e-3


def test_steps_that_are_too_long_for_explicit_methods_are_warned_of():
    mech, q = free_body("sphere", (0.1,)), [1, 0, 0, 0, 0, 0, 1]
    message = r"steps of 0.005 s are too long for contact 'skin/floor'.*gives way by 0.0\d+ under.*semi_implicit"
    with pytest.warns(lw.MechanismWarning, match=message):
        lw.rollout(mech, q, None, None, 5e-3, 1, "rk4")
    with pytest.warns(lw.MechanismWarning, match="semi_implicit"):
        lw.simulate(mech, q, None, 0.1, method="rk4", step=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.rollout(mech, q, None, None, 5e-3, 1, "semi_implicit")
        lw.rollout(mech, q, None, None, [1e-3, 5e-4], 1, "rk4")
        lw.rollout(mech.with_contact(stiffness=1e3), q, None, None, 5e-3, 1, "rk4")
        lw.rollout(mech.with_acting(False), q, None, None, 5e-3, 1, "rk4")


def test_semi_implicit_simulations_under_control_take_the_steps_of_rollouts():
    mech = free_body("box", (0.1, 0.1, 0.05))
    q, v = [1, 0, 0, 0, 0, 0, 0.06], [0.5, 0.3, 0, 0.3, 0, 0]
    motion = lw.simulate(mech, q, v, 0.2, control=lambda t, q, v: -0.1 * v, method="semi_implicit", step=1e-3)
    rolled, _ = lw.rollout(mech, q, v, None, 1e-3, 200, "semi_implicit", feedback={"kd": np.full(6, 0.1)})
    np.testing.assert_allclose(motion.q[-1], rolled[-1], atol=1e-9)


@pytest.mark.parametrize(("name", "dt"), [("half_cheetah", 0.01), ("ant", 0.01), ("hopper", 0.002)])
def test_single_precision_is_double_precision_but_for_rounding(name, dt):
    """From rest, and step by step in the middle of the motion, with limits, contact and motors."""
    mech = of_package("gymnasium", f"envs/mujoco/assets/{name}.xml")
    ctrl = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 1, len(mech.forces.actuators)))

    def motion(kind, q0, v0, steps, ctrl):
        q0, v0, ctrl = (np.asarray(x, kind) for x in (q0, v0, ctrl))
        return lw.rollout(mech, q0, v0, None, kind(dt), steps, "semi_implicit", ctrl=ctrl)

    start = (mech.initial, np.zeros(mech.nv), 60, ctrl[:, 0])
    (q, v), (q_single, _) = (motion(kind, *start) for kind in (np.float64, np.float32))
    np.testing.assert_allclose(q_single[:10], q[:10], atol=1e-6)
    np.testing.assert_allclose(q_single, q, atol=1e-3)
    (_, v), (_, v_single) = (motion(kind, q[:-1], v[:-1], 1, ctrl) for kind in (np.float64, np.float32))
    np.testing.assert_allclose(v_single, v, atol=1e-3)


def sides(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """(nv, nv) twice: one-sided differences of the velocities after a step by those before it, backwards and
    forwards."""
    size = 1e-7
    starts = np.concatenate([v[None], v + size * np.eye(mech.nv), v - size * np.eye(mech.nv)])
    ends = lw.rollout(mech, np.tile(q, (len(starts), 1)), starts, None, dt, 1, final_only=True)[1]
    return (ends[0] - ends[mech.nv + 1 :]).T / size, (ends[1 : mech.nv + 1] - ends[0]).T / size


@pytest.mark.parametrize("dt", [1e-3, 5e-3])
@pytest.mark.parametrize("kind, size", [("sphere", (0.1,)), ("box", (0.1, 0.15, 0.05)), ("cylinder", (0.1, 0.1))])
def test_gradients_of_what_rests_have_no_kinks(kind, size, dt):
    mech = free_body(kind, size)
    q, v = (path[-1] for path in lw.rollout(mech, lw.contact.place_on_ground(mech), None, None, dt, round(4.0 / dt)))
    assert np.abs(v).max() < 1e-9
    before, after = sides(mech, q, v, dt)
    exact, _ = lw.derivatives.rollout_derivatives(mech, np.stack([q, q]), np.stack([v, v]), None, dt)
    exact = exact[0, mech.nv :, mech.nv :]
    np.testing.assert_allclose(before, exact, rtol=0, atol=2e-5)
    np.testing.assert_allclose(after, exact, rtol=0, atol=2e-5)
    assert 0.5 < exact[5, 5] < 0.9 or dt > 1e-3  # the ground gives way to what presses, and to what lifts
