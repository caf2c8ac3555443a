"""Starts inside the ground: nothing is thrown up, no energy appears, and a warning says what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.resolved import resolved

from .legged_models import MODELS, load
from .on_the_ground import energy, free_body, package_file, puck, quietly

GYMNASIUM = (
    *("ant", "half_cheetah", "hopper", "humanoid", "humanoidstandup", "point", "pusher_v5", "walker2d", "walker2d_v5"),
)
SUITE = (
    *("cheetah", "dog", "finger", "fish", "hopper", "humanoid", "humanoid_CMU", "manipulator", "quadruped", "stacker"),
    "walker",
)


def sunk(mech: lw.Mechanism, count: int, seed: int) -> np.ndarray:
    """(count, nq): random postures within limits; a base that moves freely up to 0.25 m inside the ground."""
    rng = np.random.default_rng(seed)
    q, _ = lw.random_state(mech, rng, (count,))
    for body in mech.bodies:
        if body.kind.nq == 1 and not body.mimic:
            index = mech.q_index(body.joint)
            low, high = (np.clip(bound[index], -1.0, 1.0) for bound in (mech.limits.lower, mech.limits.upper))
            q[:, index] = rng.uniform(low, high, (count, 1))
    depths, height = rng.uniform(0.0, 0.25, count), _height_of_base(mech, q[0])
    if height is not None and mech.contact_pairs:
        q = lw.contact.place_on_ground(mech, q)
        q[:, height] -= depths
    return lw.constraints.assemble(mech, q) if mech.loops else q


def _height_of_base(mech: lw.Mechanism, q: np.ndarray) -> int | None:
    """The coordinate that lifts everything: of a free or planar base, or of slides."""
    upwards = lw.centroidal.center_of_mass_jacobian(mech, q)[2]
    for body in mech.bodies[:3]:
        first = mech.q_index(body.joint).start
        if isinstance(body.kind, lw.Floating):
            return first + 6
        if isinstance(body.kind, lw.Planar):
            return first + 1
        if isinstance(body.kind, lw.Prismatic) and abs(upwards[mech.v_index(body.joint)] - 1.0).max() < 1e-9:
            return first
    return None


def rise(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """(...): how far the centre of mass rises above its start, of motions (..., records, nq)."""
    height = lw.center_of_mass(mech, q)[..., 2]
    return height.max(axis=-1) - height[..., 0]


def rise_in_mujoco(mech: lw.Mechanism, model, starts: np.ndarray, dt: float, steps: int) -> np.ndarray:
    mujoco = pytest.importorskip("mujoco")
    model.opt.timestep = dt
    there, rises = lw.interop.to_mujoco(mech, model), []
    for q in starts:
        data = mujoco.MjData(model)
        data.qpos[:] = there.q(q)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        first = highest = data.subtree_com[0, 2]
        for _ in range(steps):
            mujoco.mj_step(model, data)
            highest = max(highest, data.subtree_com[0, 2])
        rises.append(highest - first)
    return np.array(rises)


def assert_not_thrown(mech: lw.Mechanism, model, count: int, duration: float, steps_of: tuple[float | None, ...]):
    """Neutral, the file's start and random postures in the ground: no higher than MuJoCo's, no energy gained."""
    starts = np.concatenate([lw.neutral(mech)[None], mech.initial[None], sunk(mech, count, 0)])
    for given in steps_of:
        dt = mech.metadata.timestep if given is None else given
        steps = round(duration / dt)
        q, v = _followed(mech, starts, given, steps)
        highest = rise_in_mujoco(mech, model, starts, dt, steps)
        assert (rise(mech, q) < highest + 0.1).all()
        if any(
            any(actuator.bias) for actuator in mech.forces.actuators
        ):  # servos work: energy is looked at without them
            q, v = _followed(mech.with_acting(actuators=False), starts, given, steps)
        settled = (
            mech.with_contact(step=max(dt, mech.metadata.timestep)) if mech.contact_pairs else mech
        )  # as these steps do
        energies = energy(settled, q, v) + _energy_of_joints(mech, q)
        assert (energies <= energies[:, :1] * (1.0 + 1e-9) + 1e-9).all()


def _followed(mech: lw.Mechanism, starts: np.ndarray, dt: float | None, steps: int) -> tuple[np.ndarray, np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.contact.PenetrationWarning)
        warnings.simplefilter("ignore", lw.motion.LimitWarning)
        q, v = lw.rollout(mech, starts, None, None, dt, steps)
    assert np.isfinite(q).all()
    return q, v


def _energy_of_joints(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """What springs and stops of joints hold."""
    elements = resolved(mech.with_acting(contact=False, actuators=False))
    return np.zeros(q.shape[:-1]) if elements is None else elements.energy(q)


def test_a_hopper_in_the_ground_is_not_thrown_up():
    mujoco = pytest.importorskip("mujoco")
    assert_not_thrown(load("hopper"), mujoco.MjModel.from_xml_string(MODELS["hopper"]), 3, 0.5, (None,))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_robots_in_the_ground_are_not_thrown_up_from_fifty_starts(name):
    mujoco = pytest.importorskip("mujoco")
    assert_not_thrown(load(name), mujoco.MjModel.from_xml_string(MODELS[name]), 50, 1.5, (None, 1e-3))


@pytest.mark.slow
@pytest.mark.parametrize(
    "package, path",
    [
        *(("gymnasium", f"envs/mujoco/assets/{name}.xml") for name in GYMNASIUM),
        *(("dm_control", f"suite/{name}.xml") for name in SUITE),
    ],
)
def test_models_of_packages_in_the_ground_are_not_thrown_up(package, path):
    mujoco = pytest.importorskip("mujoco")
    file = package_file(package, path)
    assert_not_thrown(quietly(file), mujoco.MjModel.from_xml_path(str(file)), 50, 1.5, (None, 1e-3))


@pytest.mark.parametrize("kind, size", [("sphere", (0.1,)), ("box", (0.1, 0.1, 0.1)), ("capsule", (0.05, 0.1))])
@pytest.mark.parametrize("dt", [1e-3, 2e-4])
def test_explicit_steps_release_no_more_than_springs_hold(kind, size, dt):
    """Bodies 1 to 30 cm in the ground, thrown up by metres before: rises are bounded, energy falls."""
    mech = free_body(kind, size)
    q = np.tile(lw.contact.place_on_ground(mech), (5, 1))
    q[:, 6] -= [0.01, 0.03, 0.05, 0.1, 0.3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.contact.PenetrationWarning)
        path = lw.rollout(mech, q, None, None, dt, round(0.6 / dt), "rk4")
    energies = energy(mech, *path, explicit=dt)
    assert (np.diff(energies, axis=1) < 1e-4 * energies[:, :1]).all()
    above = path[0][..., 6].max(axis=1) - lw.contact.place_on_ground(mech)[6]
    assert (above < 0.12).all()


def test_explicit_energy_is_the_integral_of_explicit_forces():
    mech, dt = puck(), 1e-3
    heights = np.linspace(0.1, 0.02, 20001)
    q = np.stack([heights, 0.0 * heights], axis=-1)
    force = lw.contact.contact_points(mech, q, np.zeros(2), explicit=dt).force[:, 0, 2]
    work = np.concatenate([[0.0], np.cumsum(0.5 * (force[1:] + force[:-1]) * -np.diff(heights))])
    np.testing.assert_allclose(lw.contact.contact_energy(mech, q, explicit=dt), work, atol=1e-7 * work[-1])
    assert force.max() < 0.5 * lw.contact.contact_points(mech, q[-1], np.zeros(2)).force[0, 2]
    rate = np.array([-1e-5, 1e-5])[:, None] * [1.0, 0.0]  # the slope by the rate is bounded: mass / dt
    slopes = np.diff(lw.contact.contact_points(mech, q[:, None], rate, explicit=dt).force[..., 0, 2], axis=1) / -2e-5
    assert slopes.max() <= mech.contact_pairs[0].mass / dt * (1.0 + 1e-6)


def test_a_start_in_penetration_is_warned_of():
    mech = free_body("sphere", (0.1,))
    deep = [1.0, 0, 0, 0, 0, 0, 0.05]
    message = r"'skin/floor' by 0.05; lw.contact.place_on_ground\(mech, q\) lifts"
    with pytest.warns(lw.contact.PenetrationWarning, match=message):
        q, v = lw.rollout(mech, deep, None, None, 1e-3, 1000)
    assert 0.0998 < q[-1, 6] < 0.1 and q[:, 6].max() < 0.101 and np.abs(v[:, 5]).max() < 0.25  # it leaves slowly
    with pytest.warns(lw.contact.PenetrationWarning, match=message):  # whatever was called before
        lw.rollout(mech, deep, None, None, 1e-3, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.rollout(free_body("sphere", (0.1,)), [1.0, 0, 0, 0, 0, 0, 0.099], None, None, 1e-3, 10)
        lw.rollout(free_body("sphere", (0.1,)).with_acting(contact=False), deep, None, None, 1e-3, 10)
    with pytest.warns(lw.contact.PenetrationWarning, match=message):
        lw.simulate(free_body("sphere", (0.1,)), deep, None, 0.01)
    batch = np.array([[1.0, 0, 0, 0, 0, 0, height] for height in (0.2, 0.07, 0.05)])
    with pytest.warns(lw.contact.PenetrationWarning, match=message):
        lw.rollout(free_body("sphere", (0.1,)), batch, None, None, 1e-3, 1)
    assert issubclass(lw.contact.PenetrationWarning, lw.MechanismWarning)


def test_repeated_rollouts_warn_of_starts_in_penetration():
    mech = free_body("sphere", (0.1,))
    q, v = np.array([1.0, 0, 0, 0, 0, 0, 0.2]), np.zeros(6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            lw.rollout(mech, q, v, None, 1e-3, 20)
    q[6] = 0.02
    with pytest.warns(lw.contact.PenetrationWarning, match="by 0.08"):
        lw.rollout(mech, q, v, None, 1e-3, 20)
