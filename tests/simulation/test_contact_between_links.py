"""Links that touch each other: steps of any length lose no copy of a robot, and gain no energy where balls meet."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw

from .on_the_ground import of_package

BALLS = """<mujoco><option gravity="0 0 {g}"/><worldbody><geom name="floor" type="plane" size="1 1 1"/>
  <body name="low" pos="0 0 0.1"><joint name="low" type="slide" axis="0 0 1"/>
    <geom name="low" size="0.1" mass="2"/></body>
  <body name="high" pos="0 0 0.3"><joint name="high" type="slide" axis="0 0 1"/>
    <geom name="high" size="0.1" mass="0.5"/></body>
</worldbody></mujoco>"""


def balls(gravity: float) -> lw.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.files.OmissionWarning)
        mech = lw.load(BALLS.format(g=gravity))
    return mech.with_contact(("low", "high"))


def test_balls_that_meet_keep_their_momentum_and_gain_no_energy():
    """However fast they are, and however long the steps."""
    mech = balls(0.0).contact.without("floor")
    speed, dt = np.meshgrid([0.1, 1.0, 5.0, 20.0], [5e-4, 1e-3, 3e-3, 0.01, 0.03], indexing="ij")
    v0 = np.stack([0.2 * speed, -0.8 * speed], axis=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q, v = lw.rollout(mech, [0.0, 0.01], v0, None, dt, 400, "semi_implicit")
    momentum, energy = v @ mech.parameters.masses, 0.5 * v**2 @ mech.parameters.masses
    np.testing.assert_allclose(momentum, momentum[..., :1] + 0 * momentum, rtol=1e-12, atol=1e-12)
    rest = 0.5 * momentum[..., 0] ** 2 / mech.parameters.masses.sum()
    kept = (energy[..., -1] - rest) / (energy[..., 0] - rest)
    met = dt * speed < 0.2  # else they pass through each other in a step
    assert kept[met].max() < 0.5 and (energy.max(axis=-1) <= energy[..., 0] * (1 + 1e-12)).all()
    assert (v[..., -1, 1] > v[..., -1, 0])[met].all()


def test_one_ball_rests_on_the_other_by_its_weight():
    mech = balls(-9.81)
    dt = np.array([5e-4, 1e-3, 2e-3, 3e-3])
    q, v = lw.rollout(mech, None, None, None, dt, 4000, "semi_implicit", final_only=True)
    assert np.abs(v).max() < 1e-6
    between = [pair.shapes == ("low", "high") for pair in mech.contact.parts].index(True)
    points = lw.contact.contact_points(
        mech, q[:2], v[:2]
    )  # the law itself; longer steps than it is made for make it softer
    np.testing.assert_allclose(np.abs(points.force[:, between, 2]), 0.5 * 9.81, rtol=1e-6)
    sunk = 0.2 - np.diff(q + [0.1, 0.3])[:, 0]
    np.testing.assert_allclose(sunk[0], sunk[1], rtol=1e-6)
    assert (np.diff(sunk[1:]) > 0.0).all() and sunk.max() < 1e-3


def test_bodies_that_would_sink_far_into_each_other_are_warned_of():
    """Contact between moving links is explicit: long steps make it soft, which a heavy body on a light one shows."""
    mech = balls(-9.81)
    with pytest.warns(lw.MechanismWarning, match="'low/high'.*gives way by 0.0.* between moving links are explicit"):
        lw.rollout(mech, None, None, None, 2e-2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.rollout(mech, None, None, None, 2e-3, 2)


def test_axes_of_capsules_that_meet_push_nowhere():
    mech = balls(0.0).contact.without("floor")
    points = lw.contact.contact_points(mech, [0.2, 0.0], [0.0, 0.0])  # the middles of both balls in one place
    assert np.isfinite(points.force).all() and points.gap[0] == pytest.approx(-0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "package, file", [("gymnasium", "envs/mujoco/assets/humanoid.xml"), ("dm_control", "suite/humanoid.xml")]
)
def test_no_copy_of_a_humanoid_is_lost(package, file):
    """Random controls for two seconds, in steps of 1 ms, of the file and longer ones: joints stay as slow as without
    contact between links, and nothing is told."""
    alone = of_package(package, file)
    touching = alone.with_contact(*alone.contact.pairs_between_links)
    lower, upper = alone.forces.ctrl_range.T
    rng = np.random.default_rng(0)
    for dt in (1e-3, alone.metadata.timestep, 0.01):
        ctrl = rng.uniform(lower, upper, (512, round(2.0 / 0.03) + 1, alone.n_ctrl)).repeat(round(0.03 / dt), axis=1)
        starts, steps = np.tile(alone.initial, (len(ctrl), 1)), ctrl.shape[1]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fastest = [
                np.abs(lw.rollout(mech, starts, None, None, dt, steps, "semi_implicit", ctrl=ctrl)[1]).max(axis=(1, 2))
                for mech in (alone, touching)
            ]
        assert np.isfinite(fastest).all() and fastest[1].max() < 1.5 * fastest[0].max()
