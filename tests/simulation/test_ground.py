"""On the ground: balls against closed forms and accurate integration, drops that gain no energy, robots that stand."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.integrate

import linkwise as lw
from tests.oracle.contact import normal_force

from .on_the_ground import RIGID, energy, free_body, of_package, puck, quietly

# -- one ball ---------------------------------------------------------------------------------------------


def test_an_elastic_ball_comes_back_after_a_known_time():
    """It falls by h, is pressed in for 2 (pi - atan(v w / g)) / w with w^2 = k / m, and rises again."""
    mech, h, g = puck(**RIGID, friction=0.0), 0.5, 9.81
    w, v = math.sqrt(RIGID["stiffness"] / 2.0), math.sqrt(2.0 * g * h)
    period = 2.0 * v / g + 2.0 * (math.pi - math.atan(v * w / g)) / w
    motion = lw.simulate(mech, [0.1 + h, 0.0], [0.0, 0.0], period, step=1e-3)
    np.testing.assert_allclose(motion.q[-1], [0.1 + h, 0.0], atol=1e-7)
    np.testing.assert_allclose(motion.v[-1], 0.0, atol=1e-6)
    assert np.ptp(motion.energy) < 1e-6


def test_a_ball_that_loses_energy_moves_as_an_accurate_integration_says():
    mech = puck(friction=0.0)
    (pair,) = mech.contact_pairs

    def rates(t, x):
        return [x[1], normal_force(pair.law, 0.1 - x[0], -x[1]) / 2.0 - 9.81]

    exact = scipy.integrate.solve_ivp(rates, (0.0, 0.6), [0.3, 0.0], "DOP853", rtol=1e-12, atol=1e-12, max_step=1e-4)
    motion = lw.simulate(mech, [0.3, 0.0], [0.0, 0.0], 0.6, step=1e-3)
    np.testing.assert_allclose(motion.q[-1][0], exact.y[0, -1], atol=1e-8)
    stiff = lw.simulate(
        mech, [0.3, 0.0], [0.0, 0.0], 0.6, method="radau", settings=lw.motion.Settings(rtol=1e-8, atol=1e-8)
    )
    np.testing.assert_allclose(stiff.q[-1][0], exact.y[0, -1], atol=1e-5)


def test_a_sliding_body_slows_down_by_its_closed_form():
    """dw/dt = -mu g w / sqrt(w^2 + s^2), so that F(w) = sqrt(w^2 + s^2) - s asinh(s / w) falls by mu g t."""
    mu, s = 0.4, 0.05
    mech = puck(**RIGID, friction=mu, slip_speed=s)
    height = 0.1 - 2.0 * 9.81 / RIGID["stiffness"]

    def f(w):
        return math.sqrt(w * w + s * s) - s * math.asinh(s / w)

    motion = lw.simulate(mech, [height, 0.0], [0.0, 1.0], 0.25)
    for k in range(0, len(motion.t), 5):
        assert f(1.0) - f(motion.v[k, 1]) == pytest.approx(mu * 9.81 * motion.t[k], abs=1e-7)
    assert motion.v[-1, 1] < 0.05


def test_rollouts_and_simulations_agree():
    mech = free_body("box", (0.1, 0.15, 0.05))
    q = np.array([0.9, 0.3, 0.2, 0.1, 0.0, 0.0, 0.3]) / [*[math.sqrt(0.95)] * 4, 1, 1, 1]
    v = np.array([1.0, 2.0, 0.0, 0.5, 0.0, 0.0])
    motion = lw.simulate(mech, q, v, 0.5, method="dop853", step=1e-3)
    for dt, near in ((1e-4, 1.2e-3), (2e-5, 2e-4)):  # what explicit steps cannot follow is bounded: of first order
        steps = round(0.5 / dt)
        rolled, _ = lw.rollout(mech, q, v, None, dt, steps, "rk4", every=steps)
        np.testing.assert_allclose(rolled[-1], motion.q[-1], atol=near)
    assert lw.contact.contact_points(mech, motion.q, motion.v).force.any()


def test_boxes_rest_on_stairs():
    """One flat on a step, one that leans against it is stopped, one beside them on the floor."""
    text = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/><geom type="box" pos="0.5 0 0.1" size=".2 1 .1"/>
      <body pos="0.5 0 0.4"><freejoint/><geom name="crate" type="box" size=".1 .1 .05"/></body>
      <body pos="0 0.5 0.05"><joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
        <geom name="sled" type="box" size=".1 .1 .05"/></body></worldbody></mujoco>"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.files.OmissionWarning)
        mech = lw.load(text)
    assert [pair.shape_a for pair in mech.contact_pairs].count("crate") == 2
    v0 = {"x": 3.0}
    q, v = lw.rollout(mech.with_contact(friction=0.1), None, v0, None, 2e-3, 1000, "semi_implicit", final_only=True)
    np.testing.assert_allclose(q[:7], [1, 0, 0, 0, 0.5, 0, 0.25], atol=1e-3)
    assert np.abs(v).max() < 1e-3 and 0.15 < q[mech.q_index("x")][0] < 0.202


CAN = """<mujoco><option timestep="0.001"/><worldbody><geom name="floor" type="plane" size="9 9 1"/>
  <body name="can" pos="0 0 0.2"><freejoint name="root"/>
  <geom type="cylinder" size=".1 .2" mass="2" friction="1"/></body></worldbody></mujoco>"""


def test_a_can_pushed_at_its_top_stands_until_it_tips():
    """Statics: it tips at m g r / height = 4.9 N, 2 kg of radius 0.1 m pushed 0.4 m above the ground."""
    mech = lw.load(CAN)
    forces, way = np.array([0.5, 2.0, 3.0, 4.0, 4.0, 5.2]), np.array([0.0, 0.0, 0.0, 0.0, 0.4, 0.0])
    push = np.stack([np.cos(way), np.sin(way), 0.0 * way], axis=-1) * forces[:, None]
    wrenches = np.concatenate([np.cross([0.0, 0.0, 0.2], push), push], axis=-1)[:, None, None]
    start = np.tile(mech.initial, (6, 1))
    q, v = lw.rollout(mech, start, None, None, 1e-3, 3000, "semi_implicit", wrenches=wrenches, every=10)
    tilt = np.degrees(2.0 * np.arcsin(np.linalg.norm(q[..., 1:4], axis=-1).clip(max=1.0)))
    assert (tilt[:4].max(axis=1) < 0.5).all() and tilt[4].max() < 1.0 and tilt[5].max() > 45.0
    assert (tilt[:4, -1] < 0.2).all() and np.abs(v[:3, -1]).max() < 1e-3  # at rest


# -- energy -----------------------------------------------------------------------------------------------

BODIES = {
    "sphere": (0.1,),
    "capsule": (0.08, 0.15),
    "cylinder": (0.1, 0.12),
    "box": (0.1, 0.15, 0.05),
    "ellipsoid": (0.1, 0.15, 0.05),
}


def assert_drops_gain_nothing(kind: str, count: int, seed: int) -> None:
    """Every motion stays below its first energy, and within itself rises by no more than steps of 1 ms are off."""
    mech, rng = free_body(kind, BODIES[kind], friction=0.5), np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, (count,))
    q[:, 4:], v = np.column_stack([np.zeros((count, 2)), rng.uniform(0.3, 1.0, count)]), rng.normal(size=(count, 6))
    v[:, :3] *= 3.0
    assert (lw.contact.contact_points(mech, q, v).gap > 0.0).all()
    q, v = lw.rollout(mech, q, v, None, 1e-3, 2000, "rk4")
    energies = energy(mech, q, v, explicit=1e-3)
    first = energies[:, :1]
    assert ((energies - first) / first).max() < 1e-9
    later = np.maximum.accumulate(energies[:, ::-1], axis=1)[:, ::-1]
    assert ((later - energies) / first).max() < 2e-4
    assert (energies[:, -1:] < 0.9 * first).all()
    points = lw.contact.contact_points(mech, q, v)
    along = np.sum(points.force * points.normal, axis=-1)
    across = np.linalg.norm(points.force - along[..., None] * points.normal, axis=-1)
    assert (along >= 0.0).all() and (across <= 0.5 * along + 1e-9).all()
    assert points.gap.min() > -0.05  # nothing falls through


@pytest.mark.parametrize("kind", BODIES)
def test_drops_gain_no_energy(kind):
    assert_drops_gain_nothing(kind, 20, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BODIES)
def test_a_thousand_drops_gain_no_energy(kind):
    assert_drops_gain_nothing(kind, 200, 1)


@pytest.mark.slow
def test_dropped_ants_gain_no_energy():
    mech = of_package("gymnasium", "envs/mujoco/assets/ant.xml").with_acting("contact")
    rng, count = np.random.default_rng(0), 100
    q, v = np.tile(mech.initial, (count, 1)), rng.normal(size=(count, mech.nv))
    q[:, 7:], q[:, :4], q[:, 6] = rng.uniform(-1, 1, (count, 8)), rng.normal(size=(count, 4)), 1.8
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    assert (lw.contact.contact_points(mech, q, v).gap > 0.01).all()
    q, v = lw.rollout(mech, q, v, None, 1e-3, 2000, "rk4")
    energies = energy(mech, q, v, explicit=1e-3)
    assert ((energies - energies[:, :1]) / energies[:, :1]).max() < 1e-9


# -- derivatives ------------------------------------------------------------------------------------------


def pressed_quadruped() -> tuple[lw.Mechanism, np.ndarray, np.ndarray]:
    """The library's, a little in the ground and sliding: away from kinks."""
    mech = lw.mechanisms.quadruped(held=())
    for leg in ("front_left", "front_right", "rear_left", "rear_right"):
        mech = mech.with_shape(f"{leg}_foot", f"{leg}_toe", "sphere", 0.02)
    mech = mech.with_ground(-0.02)
    q, v = lw.neutral(mech), 0.05 * np.random.default_rng(1).normal(size=mech.nv)
    q[6] -= 1e-3
    return mech, q, v


def differences(mech, function, q, v, step=1e-6):
    """(d_q, d_v) of a function of (q, v), along tangent directions, by central differences."""
    units = np.eye(mech.nv)
    d_q = [function(lw.integrate(mech, q, e, step), v) - function(lw.integrate(mech, q, e, -step), v) for e in units]
    d_v = [function(q, v + step * e) - function(q, v - step * e) for e in units]
    return np.array(d_q).T / (2.0 * step), np.array(d_v).T / (2.0 * step)


def assert_same_derivatives(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7 * np.abs(other).max())


def test_derivatives_of_joint_forces_include_contact():
    mech, q, v = pressed_quadruped()
    found = lw.derivatives.joint_force_derivatives(mech, q, v)
    assert_same_derivatives(found[:2], differences(mech, lambda q, v: lw.forces.joint_forces(mech, q, v), q, v))


def test_linear_models_include_contact():
    mech, q, v = pressed_quadruped()
    tau, n = np.zeros(mech.nv), mech.nv
    model = lw.linearize(mech, q, v, tau)
    expected = differences(mech, lambda q, v: lw.forward_dynamics(mech, q, v, tau, forces="all"), q, v)
    assert_same_derivatives((model.A[n:, :n], model.A[n:, n:]), expected)


def test_derivatives_at_a_kink_are_those_of_the_pressed_side():
    mech, still = puck(**RIGID), np.zeros(2)
    touching = np.array([0.1, 0.0])
    assert lw.contact.contact_points(mech, touching, still).gap == 0.0
    assert lw.derivatives.joint_force_derivatives(mech, touching, still).by_q[0, 0] == -RIGID["stiffness"]
    smooth = mech.with_contact(smoothing=1e-3)
    assert lw.derivatives.joint_force_derivatives(smooth, touching, still).by_q[0, 0] == 0.0


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_gradients_through_rollouts_include_contact(method):
    mech, steps, dt = free_body("box", (0.1, 0.15, 0.05), friction=0.5), 30, 1e-3
    q0, v0 = np.array([0.995, 0.0, 0.0998, 0.0, 0.0, 0.0, 0.06]), np.array([0.3, 0.5, 0.1, 0.4, 0.1, -0.3])
    q0[:4] /= np.linalg.norm(q0[:4])
    q, v = lw.rollout(mech, q0, v0, None, dt, steps, method)
    assert lw.contact.contact_points(mech, q, v).force.any()
    weight = np.arange(1.0, 7.0)
    found = lw.derivatives.rollout_vjp(mech, q, v, None, dt, steps, (None, weight), method, wrt=("q0", "v0"))

    def last(q0, v0):
        return lw.rollout(mech, q0, v0, None, dt, steps, method, final_only=True)[1] @ weight

    expected = differences(mech, last, q0, v0, 1e-7)
    assert_same = zip((found["q0"], found["v0"]), expected, strict=True)
    for one, other in assert_same:
        np.testing.assert_allclose(one, other, atol=1e-5 * np.abs(other).max())


# -- links among each other -------------------------------------------------------------------------------


def test_links_that_collide_keep_their_momentum():
    builder = lw.Builder().link("a", 1.0, inertia=(0.01,) * 3).link("b", 2.0, inertia=(0.02,) * 3)
    builder.joint("free_a", lw.Floating(), "ground", "a").joint("free_b", lw.Floating(), "ground", "b")
    builder.shape("ball", "a", "sphere", 0.1).shape("rod", "b", "capsule", (0.1, 0.2))
    mech = builder.build(gravity=(0, 0, 0)).with_contact(("ball", "rod"), friction=0.3)
    q = np.array([1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0.5, 0.03, 0.1])
    v = np.array([0, 5.0, 0, 1, 0, 0, 0, 0, 3, 0, 0, 0])
    path = lw.rollout(mech, q, v, None, 1e-4, 10_000, every=100)
    momentum, energies = lw.momentum(mech, *path), energy(mech, *path)
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-9)
    assert np.abs(path[1][-1, 9:] - v[9:]).max() > 0.01 and (np.diff(energies) < 1e-9).all()
    assert energies[-1] < 0.9 * energies[0]


# -- robots -----------------------------------------------------------------------------------------------


def ant():
    mech = of_package("gymnasium", "envs/mujoco/assets/ant.xml")
    q = mech.initial.copy()
    q[7:] = 0, 1, 0, -1, 0, -1, 0, 1
    return mech, q, 20.0, 2.0


def half_cheetah():
    mech = of_package("gymnasium", "envs/mujoco/assets/half_cheetah.xml")
    return mech, mech.initial.copy(), 200.0, 5.0


def humanoid():
    mech = of_package("dm_control", "suite/humanoid.xml")
    return mech, mech.initial.copy(), 500.0, 20.0


def quadruped():
    pinocchio = pytest.importorskip("pinocchio")
    robots = Path(pinocchio.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    mech = quietly(robots / "a1_description/urdf/a1.urdf", floating_base=True).with_ground()
    q = mech.initial.copy()
    for leg in ("FR", "FL", "RR", "RL"):
        q[mech.q_index(f"{leg}_thigh_joint")], q[mech.q_index(f"{leg}_calf_joint")] = 0.8, -1.6
    return mech, q, 100.0, 2.0


def humanoid_of_urdf():
    """Unitree's G1: balls under its soles, and gains that steps of 1 ms can follow where a joint moves little."""
    pinocchio = pytest.importorskip("pinocchio")
    robots = Path(pinocchio.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    mech = quietly(robots / "g1_description/urdf/g1_29dof_rev_1_0.urdf", floating_base=True)
    mech = mech.with_ground(shapes=[shape.name for shape in mech.shapes if "ankle" in shape.link])
    q = mech.initial.copy()
    for side in ("left", "right"):
        for joint, angle in (("hip_pitch", -0.1), ("knee", 0.25), ("ankle_pitch", -0.15)):
            q[mech.q_index(f"{side}_{joint}_joint")] = angle
    moved = 1.0 / np.linalg.inv(lw.mass_matrix(mech, q)).diagonal()
    strong = np.array(
        [any(part in name for part in ("hip", "knee", "ankle", "waist")) for name in mech.joint_names[1:]]
    )
    kp = np.minimum(np.where(strong, 400.0, 20.0), 0.2 * moved[6:] / 1e-6)
    kd = np.minimum(np.where(strong, 10.0, 1.0), 0.7 * moved[6:] / 1e-3)
    return mech, q, dict(zip(mech.joint_names[1:], kp, strict=True)), dict(zip(mech.joint_names[1:], kd, strict=True))


def standing(make):
    """A robot just above the ground, the gains of feedback at its joints, and where its height is in q."""
    mech, q, kp, kd = make()
    root = mech.joint_names[0]
    height = 6 if mech.bodies[0].nq == 7 else mech.q_index("rootz").start
    q[height] -= lw.contact.contact_points(mech, q, np.zeros(mech.nv)).gap.min()
    moved = [body.joint for body in mech.bodies if body.joint not in (root, "rootx", "rootz", "rooty")]
    gains = {k: x if isinstance(x, dict) else dict.fromkeys(moved, x) for k, x in (("kp", kp), ("kd", kd))}
    return mech, q, gains, height


def assert_stands(mech, start, height, q, v, explicit=False) -> None:
    assert abs(q[-1][height] - start[height]) < 0.06 and np.abs(v[-1]).max() < 0.05
    weight = -float(mech.parameters.masses.sum()) * mech.gravity[2]
    points = lw.contact.contact_points(mech, q[-1], v[-1], explicit=explicit)
    np.testing.assert_allclose(points.force[:, 2].sum(), weight, rtol=0.02)
    assert points.gap.min() > -5e-3


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
@pytest.mark.parametrize(
    "make", [ant, pytest.param(half_cheetah, marks=pytest.mark.slow), pytest.param(quadruped, marks=pytest.mark.slow),
             pytest.param(humanoid, marks=pytest.mark.slow), pytest.param(humanoid_of_urdf, marks=pytest.mark.slow)]
)  # fmt: skip
def test_robots_stand_for_ten_seconds_of_rollouts(make, method):
    mech, start, gains, height = standing(make)
    q, v = lw.rollout(mech, start, None, None, 1e-3, 10_000, method, feedback={"target": start, **gains}, every=100)
    assert_stands(mech, start, height, q, v, explicit=1e-3 if method == "rk4" else False)


@pytest.mark.slow
@pytest.mark.parametrize("make", [ant, half_cheetah, quadruped, humanoid, humanoid_of_urdf])
def test_robots_stand_for_ten_seconds_of_simulation(make):
    mech, start, gains, height = standing(make)
    control = lw.control.joint_feedback(mech, start, **gains, gravity=False)
    motion = lw.simulate(mech, start, None, 10.0, control=control, settings=lw.motion.Settings(rtol=1e-5, atol=1e-5))
    assert_stands(mech, start, height, motion.q, motion.v)


def test_contact_of_mechanisms_with_mimic_joints_in_semi_implicit_steps():
    """Fixed steps end where adaptive ones do, up to creeping, also where they are long."""
    mech = lw.load("""<mujoco><worldbody><geom type="plane" size="3 3 .1"/>
      <body name="sled" pos="0 0 0.2"><joint name="x" type="slide" axis="1 0 0"/>
        <joint name="z" type="slide" axis="0 0 1"/><joint name="pitch" axis="0 1 0"/>
        <geom type="box" size="0.2 0.1 0.04" density="700"/>
        <body name="left" pos="-0.15 0.12 -0.06"><joint name="left" axis="0 1 0" damping="0.1"/>
          <geom type="sphere" size="0.08" density="700"/></body>
        <body name="right" pos="-0.15 -0.12 -0.06"><joint name="right" axis="0 1 0" damping="0.1"/>
          <geom type="sphere" size="0.08" density="700"/></body></body></worldbody>
      <equality><joint joint1="right" joint2="left"/></equality></mujoco>""")
    assert mech.coordinates.mimic_joints == ("right",)
    exact = lw.simulate(mech, None, None, 0.6).q[-1]
    for dt, apart in ((1e-3, 0.005), (2e-3, 0.01)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            q, _ = lw.rollout(mech, None, None, None, dt, round(0.6 / dt), "semi_implicit", final_only=True)
        np.testing.assert_allclose(q[1:3], exact[1:3], atol=apart)
