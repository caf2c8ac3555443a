"""Frames held at one place after another: the results of mechanisms made for themselves, by code that is shared."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import linkwise as lw


def leg() -> lw.Mechanism:
    """A body that slides along a rail, with a leg of two links."""
    builder = lw.Builder()
    for name in ("body", "thigh", "shin"):
        builder.link(name, 1.0, (0.0, 0.0, -0.1), (0.1, 0.1, 0.1))
    builder.joint("rail", lw.Prismatic((1, 0, 0)), "ground", "body", (None, (0, 0, 1.0)))
    builder.joint("hip", lw.Revolute((0, 1, 0)), "body", "thigh")
    builder.joint("knee", lw.Revolute((0, 1, 0)), "thigh", "shin", (None, (0, 0, -0.5)))
    return builder.build("leg").with_frame("foot", "shin", (None, (0, 0, -0.5)))


def test_steps_of_a_leg_share_code_and_are_warned_of_by_name(compiled):
    robot = leg()
    v, tau = np.zeros(3), np.array([1.0, 2.0, 3.0])
    for step in range(5):
        q = np.array([0.3 * step, 0.4 - 0.1 * step, -0.8])
        held = lw.contact.hold_frames(robot, "foot", q, points=True)
        if step == 2:
            compiled.clear()  # one place by its own code, the second and all others by what they share
        np.testing.assert_array_equal(held.initial, q)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = [
                lw.forward_dynamics(held, q, v, tau),
                lw.inverse_dynamics(held, q, v, v, actuated=("hip", "knee")),
                lw.constraints.loop_reactions(held, q, v, tau)[0],
                np.array([lw.constraints.degrees_of_freedom(held)]),
            ]
        if step > 1:
            continue
        alone = copy.deepcopy(held)  # without a family: its numbers folded in
        expected = [
            lw.forward_dynamics(alone, q, v, tau, method="svd"),
            lw.inverse_dynamics(alone, q, v, v, actuated=("hip", "knee")),
            lw.constraints.loop_reactions(alone, q, v, tau)[0],
            [1],
        ]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)
    assert not compiled
    heavy = lw.contact.hold_frames(robot.with_payload("body", 2.0), "foot", q, points=True)
    a = lw.forward_dynamics(heavy, q, v, tau)
    np.testing.assert_allclose(a, lw.forward_dynamics(copy.deepcopy(heavy), q, v, tau), atol=1e-10)
    with pytest.warns(
        lw.MechanismWarning, match=r"'foot' of mechanism 'leg' is held 0\.287.*hold_frames.*active="
    ) as told:
        lw.forward_dynamics(held, q + (0.4, 0, 0), v, tau)
    assert len(told) == 1
    with pytest.raises(lw.MechanismError, match="'foot' is held already.*before it was"):
        lw.contact.hold_frames(held, "foot", q)


def test_frames_of_one_name_and_orders_of_elimination_are_told_apart():
    """What is held turns on a rail: at first only one of the rows in its axes says something, later all three do."""
    builder = lw.Builder().link("slide", 1.0).link("head", 1.0, inertia=(0.1, 0.2, 0.3))
    builder.joint("rail", lw.Prismatic((1, 0, 0)), "ground", "slide").joint("ball", lw.Spherical(), "slide", "head")
    robot = builder.build()
    v, tau = np.zeros(4), np.array([1.0, 0.2, 0.3, 0.4])
    aside = robot.with_frame("tool", "head", (None, (0.0, 0.1, 0.0)))
    ahead = robot.with_frame("tool", "head", (None, (0.3, 0.0, 0.0)))
    turning = [(robot, "head", angle) for angle in (0.0, 0.1, np.pi / 2)]
    for mech, frame, angle in (*turning, (aside, "tool", 0.0), (ahead, "tool", 0.1), (aside, "tool", 0.7)):
        q = np.array([0.2 * angle, np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)])
        held = lw.contact.hold_frames(mech, frame, q, points=True)
        found = lw.forward_dynamics(held, q, v, tau)
        expected = lw.forward_dynamics(copy.deepcopy(held), q, v, tau, method="svd")
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_ground_carries_what_stands():
    """In world axes, whatever those of the feet are: the forces together are the weight."""
    robot = lw.mechanisms.quadruped(())
    toes = [name for name in robot.frames if name.endswith("_toe")]
    q = lw.integrate(robot, robot.initial, np.r_[0.3, -0.2, 0.5, np.zeros(15)], 1.0)  # on a slope
    held, rest = lw.contact.hold_frames(robot, toes, q, points=True), np.zeros(robot.nv)
    torques = lw.inverse_dynamics(held, q, rest, rest, actuated=robot.joint_names[1:])
    ground = lw.constraints.loop_reactions(held, q, rest, torques, frame="world_aligned")
    np.testing.assert_allclose(ground[:, 3:].sum(axis=0), (0, 0, 9.81 * robot.parameters.masses.sum()), atol=1e-8)
    with pytest.warns(
        lw.MechanismWarning, match=r"'trunk_joint' among them, which floats.*unactuated=\['trunk_joint'\]"
    ):
        lw.static_forces(held, q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(lw.static_forces(held, q, unactuated=["trunk_joint"]), torques, atol=1e-9)
    own = lw.constraints.loop_reactions(held, q, rest, torques)
    for toe, one, other in zip(toes, own, ground, strict=True):
        np.testing.assert_allclose(lw.frame_pose(robot, q, toe)[:3, :3] @ one[3:], other[3:], atol=1e-9)
    with pytest.raises(ValueError, match="unknown frame 'world': known: 'loop', 'world_aligned'"):
        lw.constraints.loop_reactions(held, q, rest, torques, frame="world")
