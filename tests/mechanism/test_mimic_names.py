"""A mimic joint named where coordinates are asked for: its own is meant, not that of the joint it follows."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError

RATIO, OFFSET = -2.0, 0.3


def arm(ratio: float = RATIO, kind: lw.Revolute | lw.Prismatic | None = None) -> lw.Mechanism:
    """Three links; "follow" = ratio * lead + offset."""
    builder = lw.Builder("arm")
    for name in ("a", "b", "c"):
        builder.link(name, 1.0, (0.1, 0.2, 0.3), (0.1, 0.2, 0.25))
    builder.joint("lead", lw.Revolute((1.0, 0.0, 0.0)), "ground", "a")
    builder.joint(
        "follow",
        kind or lw.Revolute((0.0, 1.0, 0.0)),
        "a",
        "b",
        (None, (0.0, 0.0, 0.5)),
        mimic=lw.Mimic("lead", ratio, OFFSET),
    )
    builder.joint("ball", lw.Spherical(), "b", "c", (None, (0.0, 0.0, 0.5)))
    return builder.build()


def four_bar() -> lw.Mechanism:
    """A four-bar linkage whose crank leads a wheel."""
    builder = lw.Builder("four_bar")
    for name, length in (("crank", 1.0), ("coupler", 3.0), ("rocker", 2.5), ("wheel", 0.0)):
        builder.link(name, 1.0, (length / 2, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.joint("crank_joint", lw.Revolute(), "ground", "crank")
    builder.joint("coupler_joint", lw.Revolute(), "crank", "coupler", (None, (1.0, 0.0, 0.0)))
    builder.joint("rocker_joint", lw.Revolute(), "ground", "rocker", (None, (3.0, 0.0, 0.0)))
    builder.joint("wheel_joint", lw.Revolute(), "ground", "wheel", mimic=lw.Mimic("crank_joint", RATIO, OFFSET))
    builder.loop("pin", lw.Revolute(), "coupler", (None, (3.0, 0.0, 0.0)), "rocker", (None, (2.5, 0.0, 0.0)))
    return builder.build()


def test_place():
    mech, rng = arm(), np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (3,))
    lead, follow, ball = (mech.coordinates.place(name) for name in ("lead", "follow", "ball"))
    assert (lead.ratio, lead.offset) == (1.0, 0.0) and (follow.ratio, follow.offset) == (RATIO, OFFSET)
    np.testing.assert_array_equal(follow.positions(q), RATIO * lead.positions(q) + OFFSET)
    np.testing.assert_array_equal(follow.velocities(v), RATIO * v[:, :1])
    np.testing.assert_array_equal(ball.positions(q), q[:, 1:])
    np.testing.assert_allclose(follow.q_at(follow.positions(q)), q[:, :1], atol=1e-15)
    np.testing.assert_allclose(follow.v_at(follow.velocities(v)), v[:, :1], atol=1e-15)
    # The mimic joint's link is where its own joint alone would bring it.
    own = arm().with_locked({"lead": [0.4]})
    expected = lw.frame_pose(own, lw.neutral(own), "b")
    np.testing.assert_allclose(lw.frame_pose(mech, [0.4, 1.0, 0.0, 0.0, 0.0], "b"), expected, atol=1e-15)
    with pytest.raises(MechanismError, match="ratio 0"):
        arm(0.0).coordinates.place("follow").q_at([0.1])


def test_follow_drives_the_named_joint():
    mech = four_bar()
    q = lw.constraints.assemble(mech, [0.5, 0.5, 1.0], hold=("wheel_joint",))
    assert q[0] == 0.5  # holding the wheel holds the crank
    there = lw.linkages.follow(mech, q, {"wheel_joint": RATIO * 0.8 + OFFSET})
    np.testing.assert_allclose(there, lw.linkages.follow(mech, q, {"crank_joint": 0.8}), atol=1e-10)
    assert there[0] == pytest.approx(0.8, abs=1e-15)
    with pytest.raises(MechanismError, match="two values"):
        lw.linkages.follow(mech, q, {"crank_joint": 0.8, "wheel_joint": 0.1})


def test_independent_coordinates_of_a_closed_mechanism():
    mech = four_bar()
    q = lw.constraints.assemble(mech, [0.5, 0.5, 1.0], hold=("crank_joint",))
    by_crank = lw.constraints.null_space(mech, q, independent=("crank_joint",))
    np.testing.assert_allclose(lw.constraints.null_space(mech, q, independent=("wheel_joint",)), by_crank / RATIO)
    chart = lw.kinematics.local_parametrization(mech, q, ("wheel_joint",))
    y, rate = chart.independent_state(lw.linkages.follow(mech, q, {"crank_joint": 0.6}), by_crank[:, 0])
    np.testing.assert_allclose([*y, *rate], [RATIO * 0.1, RATIO], atol=1e-9)
    a = lw.inverse_dynamics(mech, q, 0.0 * q, [0.7], independent=("crank_joint",))
    np.testing.assert_allclose(
        lw.inverse_dynamics(mech, q, 0.0 * q, [RATIO * 0.7], independent=("wheel_joint",)), a, atol=1e-12
    )
    with pytest.raises(MechanismError, match="mimics 'crank_joint' and has no force of its own"):
        lw.inverse_dynamics(mech, q, 0.0 * q, 0.0 * q, actuated=("wheel_joint",))


def test_linearize_names_followers():
    mech = arm()
    q, v = lw.random_state(mech, np.random.default_rng(1))
    model = lw.linearize(mech, q, v, inputs=("lead", "follow"), outputs=("lead", "follow", "follow.rate", "ball"))
    assert model.input_names == ("lead", "follow")
    assert model.output_names == ("lead", "follow", "follow.rate", "ball[0]", "ball[1]", "ball[2]")
    np.testing.assert_allclose(model.C[1], RATIO * model.C[0])
    np.testing.assert_array_equal(model.C[0], np.eye(8)[0])
    np.testing.assert_array_equal(model.C[2], RATIO * np.eye(8)[4])
    np.testing.assert_allclose(model.B[:, 1], RATIO * model.B[:, 0])
    # A unit force at the mimic joint does the work of ratio at the mimicked one.
    here, step = lw.forward_dynamics(mech, q, v, np.zeros(4)), RATIO * np.eye(4)[0]
    np.testing.assert_allclose(model.B[4:, 1], lw.forward_dynamics(mech, q, v, step) - here, atol=1e-12)


def test_linearize_in_the_coordinate_of_a_follower():
    mech = four_bar()
    q = lw.constraints.assemble(mech, [0.5, 0.5, 1.0], hold=("crank_joint",))
    crank, wheel = (lw.linearize(mech, q, independent=(name,)) for name in ("crank_joint", "wheel_joint"))
    assert wheel.independent == ("wheel_joint",)
    np.testing.assert_allclose(wheel.A, crank.A, atol=1e-9)
    np.testing.assert_allclose(wheel.B, RATIO * crank.B, atol=1e-12)


def test_equilibrium_held_by_a_follower():
    mech = arm()
    q = np.array([0.3, *np.array([1.0, 0.1, -0.2, 0.3]) / np.linalg.norm([1.0, 0.1, -0.2, 0.3])])
    expected = lw.gravity_force(mech, q)
    found = lw.find_equilibrium(mech, q, solve_for="tau", actuated=("follow", "ball"))
    np.testing.assert_allclose(found.tau, expected, atol=1e-9)
    # Of two motors at one coordinate the one with more leverage does most.
    both = lw.find_equilibrium(mech, q, solve_for="tau", actuated=("lead", "follow", "ball"))
    np.testing.assert_allclose(both.tau, expected, atol=1e-9)


def test_events_and_passive_elements_see_the_follower():
    mech, q, v = arm(), np.array([0.1, 1.0, 0.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])
    passes = lw.motion.joint_passes(mech, "follow", -0.1)
    assert passes.function(0.0, q, v) == pytest.approx(RATIO * 0.1 + OFFSET + 0.1)
    assert lw.motion.velocity_zero(mech, "follow").function(0.0, q, v) < 0.0
    spring = lw.forces.Passive.springs({"follow": 3.0}, {"follow": 0.0})
    np.testing.assert_allclose(spring.forces(mech, q, v)[0], -3.0 * RATIO * (RATIO * 0.1 + OFFSET))


def grip(**first: lw.Limits) -> lw.Mechanism:
    """Two slides; "second" = -2 first, within a tenth of what "first" may do."""
    builder = lw.Builder("grip").link("a", 1.0).link("b", 1.0)
    builder.joint("first", lw.Prismatic(), "ground", "a", limits=first.get("limits", lw.Limits(-1, 1)))
    limits = lw.Limits(-0.1, 0.3, velocity=0.5)
    return builder.joint("second", lw.Prismatic(), "a", "b", mimic=lw.Mimic("first", -2.0), limits=limits).build("grip")


def test_a_posture_of_a_mimic_joint_is_one_of_the_joint_it_mimics():
    mech = grip()
    told = mech.metadata.with_postures({"h": {"second": -0.5}, "both": {"first": 0.25, "second": [-0.5]}, "none": {}})
    assert {name: q.tolist() for name, q in told.postures.items()} == {"h": [0.25], "both": [0.25], "none": [0.0]}
    assert told.coordinates.place("second").positions(told.postures["h"]).tolist() == [-0.5]
    assert arm().metadata.with_postures({"h": {"follow": OFFSET - 1.0}}).postures["h"][0] == pytest.approx(0.5)
    with pytest.raises(
        MechanismError, match="posture 'h' of mechanism 'grip': joint 'second' mimics 'first' and is at"
    ):
        mech.metadata.with_postures({"h": {"second": -0.4, "first": 0.25}})
    still = arm(0.0)
    np.testing.assert_array_equal(
        still.metadata.with_postures({"h": {"follow": OFFSET}}).postures["h"], lw.neutral(still)
    )
    with pytest.raises(MechanismError, match="is at 0.3 with it, not at 1: "):
        still.metadata.with_postures({"h": {"follow": 1.0}})


def test_random_states_keep_to_the_limits_of_mimic_joints():
    mech, rng = grip(), np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (2000,), within_limits=True)
    second = -2.0 * q
    assert -0.1 <= second.min() < -0.09 and 0.29 < second.max() <= 0.3
    assert 0.49 < np.abs(-2.0 * v).max() <= 0.5
    one_sided = grip(limits=lw.Limits(lower=-0.05))
    q, _ = lw.random_state(one_sided, rng, (2000,), within_limits=True)
    assert -0.05 <= q.min() < -0.049 and 0.049 < q.max() <= 0.05
    with pytest.raises(MechanismError, match="limits of 'first' and of what mimics it: 0.5 exceeds 0.05"):
        lw.random_state(grip(limits=lw.Limits(0.5, 1.0)), rng, within_limits=True)
    stuck = arm(0.0).with_limits(follow=lw.Limits(1.0, 2.0))
    with pytest.raises(MechanismError, match="it stays at 0.3, and may go from 1 to 2"):
        lw.random_state(stuck, rng, within_limits=True)
