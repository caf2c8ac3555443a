"""What stands on contact by default: hardly deep, at rest, and insensitive to small changes, at all usual steps."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

from .legged_models import load
from .on_the_ground import free_body


def light_footed() -> tuple[lw.Mechanism, np.ndarray]:
    """A trunk of 2 kg on four legs of 60 g, each on a ball of 1 cm, and its posture on the ground."""
    builder = (
        lw.Builder().link("trunk", 2.0, inertia=(0.01, 0.02, 0.02)).joint("base", lw.Floating(), "ground", "trunk")
    )
    for name, x, y in (("a", 0.2, 0.1), ("b", 0.2, -0.1), ("c", -0.2, 0.1), ("d", -0.2, -0.1)):
        for part, carrier, mass, place in (
            ("thigh", "trunk", 0.04, (x, y, 0)),
            ("shin", f"{name}thigh", 0.02, (0, 0, -0.16)),
        ):
            builder.link(f"{name}{part}", mass, (0, 0, -0.08), (mass * 0.16**2 / 12,) * 3)
            builder.joint(f"{name}{part}_joint", lw.Revolute((0, 1, 0)), carrier, f"{name}{part}", place, armature=2e-3)
        builder.shape(f"{name}foot", f"{name}shin", "sphere", 0.01, (0, 0, -0.16))
    mech = builder.build().with_ground(friction=0.8)
    posture = {j: 0.6 if "thigh" in j else -1.2 for j in mech.joint_names[1:]}
    return mech, lw.contact.place_on_ground(mech, posture)


@pytest.mark.parametrize("step", [None, 5e-3])
def test_a_robot_on_light_feet_sinks_less_than_a_millimetre(step):
    mech, q = light_footed()
    mech = mech if step is None else mech.with_contact(step=step)
    for dt in (1e-3, 5e-3):
        legs = mech.joint_names[1:]
        hold = {"target": q, "kp": dict.fromkeys(legs, 40.0), "kd": dict.fromkeys(legs, 0.5)}
        path = lw.rollout(mech, q, None, None, dt, round(2.0 / dt), feedback=hold)
        end = [x[-1] for x in path]
        points = lw.contact.contact_points(
            mech.with_contact(step=max(dt, step or 0.0)), *end
        )  # numbers that these steps take
        assert (-points.gap < 1e-3).all() and np.abs(end[1]).max() < 2e-2
        assert points.force[:, 2].sum() == pytest.approx(9.81 * mech.parameters.masses.sum(), rel=0.01)


@pytest.mark.parametrize("dt", [1e-3, 5e-3, 1e-2, 2e-2])
def test_flat_bodies_come_to_rest_in_steps_of_any_usual_length(dt):
    """On a slope inside the cone of friction: it creeps at the share of the slip speed that holds it."""
    tilt, mu = 0.2, 0.5
    mech = free_body("box", (0.1, 0.1, 0.05), friction=mu)
    mech = mech.with_gravity((9.81 * np.sin(tilt), 0.0, -9.81 * np.cos(tilt)))
    q, v = lw.rollout(mech, lw.contact.place_on_ground(mech), None, None, dt, round(3.0 / dt))
    share = np.tan(tilt) / mu
    creep = mech.contact_pairs[0].law.slip_speed * share / np.sqrt(1.0 - share**2)
    np.testing.assert_allclose(v[-50:, 3], creep, rtol=1e-3)
    assert np.abs(v[-50:, [0, 1, 2, 4, 5]]).max() < 1e-6


def test_small_changes_of_controls_stay_small_at_the_steps_of_the_file():
    """An ant in steps of 10 ms, 64 random controls: 1e-8 more of them grew to more than 1e-2 in 50 steps before."""
    mech, rng = load("ant"), np.random.default_rng(0)
    q, v = lw.rollout(mech, lw.contact.place_on_ground(mech), None, None, None, 150, final_only=True)
    assert -(lw.contact.contact_points(mech, q, v).gap - 0.02).min() < 1e-3  # margins of 1 cm each
    ctrl = rng.uniform(-1.0, 1.0, (64, 50, mech.n_ctrl)) * 0.3
    more = ctrl.copy()
    more[:, 0] += 1e-8
    ends = [lw.rollout(mech, q, v, None, None, 50, ctrl=one, final_only=True)[1] for one in (ctrl, more)]
    growth = np.abs(ends[1] - ends[0]).max(axis=-1)
    assert np.median(growth) < 1e-6 and growth.max() < 1e-3
