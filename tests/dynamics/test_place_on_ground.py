"""Configurations that are lifted or lowered until the first contact point touches."""

from __future__ import annotations

import math

import numpy as np
import pytest

import linkwise as lw
from tests.units import SYSTEMS

BODY = lw.Builder().link("body", 2.0, inertia=(0.02, 0.015, 0.01)).joint("free", lw.Floating(), "ground", "body")
BOX = BODY.shape("skin", "body", "box", (0.1, 0.15, 0.05)).build()


def gap(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    points = lw.contact.contact_points(mech, q, np.zeros(mech.nv))
    return (points.gap - [pair.law.margin for pair in mech.contact.parts]).min(axis=-1)


@pytest.mark.parametrize("normal", [(0, 0, 1), (0.3, -0.2, 1.0), (1, 0, 0.2)])
@pytest.mark.parametrize("gravity", [(0, 0, -9.81), (-1.0, 0.5, -3.0), (0, 0, 0)])
def test_a_batch_moves_against_gravity_until_it_touches(normal, gravity):
    mech = BOX.with_gravity(gravity).with_ground(0.3, normal)
    rng = np.random.default_rng(0)
    q, _ = lw.random_state(mech, rng, (4, 3))
    q[..., 4:] = rng.normal(size=(4, 3, 3))  # inside and above
    placed = lw.contact.place_on_ground(mech, q)
    np.testing.assert_allclose(gap(mech, placed), 0.0, atol=1e-12)
    np.testing.assert_allclose(placed[..., :4], q[..., :4], atol=1e-14)
    up = -np.array(gravity) if any(gravity) else np.array(normal)
    np.testing.assert_allclose(np.cross(placed[..., 4:] - q[..., 4:], up), 0.0, atol=1e-12)
    corners = np.stack(np.meshgrid(*[(-1, 1)] * 3), axis=-1).reshape(-1, 3) * (0.1, 0.15, 0.05)
    poses = lw.frame_pose(mech, placed, "body")
    heights = (corners @ np.swapaxes(poses[..., :3, :3], -1, -2) + poses[..., None, :3, 3]) @ normal
    np.testing.assert_allclose(heights.min(axis=-1) / np.linalg.norm(normal), 0.3, atol=1e-12)


def test_margins_and_names_of_joints():
    mech = BOX.with_ground(margin=0.02)
    placed = lw.contact.place_on_ground(mech, {"free": [1, 0, 0, 0, 0.4, 0.5, -3.0]})
    np.testing.assert_allclose(placed, [1, 0, 0, 0, 0.4, 0.5, 0.07], atol=1e-14)
    np.testing.assert_allclose(lw.contact.place_on_ground(mech)[6], 0.07, atol=1e-14)


def test_a_base_on_slides_is_lifted_by_them():
    builder = (
        lw.Builder().link("rail").link("trunk", 3.0, inertia=(0.03,) * 3).link("leg", 1.0, (0, 0, -0.1), (0.01,) * 3)
    )
    builder.joint("x", lw.Prismatic((1, 0, 0)), "ground", "rail").joint(
        "z", lw.Prismatic((0.6, 0, 0.8)), "rail", "trunk"
    )
    mech = builder.joint("hip", lw.Revolute((0, 1, 0)), "trunk", "leg").build()
    mech = mech.with_shape("foot", "leg", "sphere", 0.02, (0, 0, -0.3)).with_ground(0.1)
    q = lw.contact.place_on_ground(mech, {"x": 0.2, "z": 0.5, "hip": 0.7})
    np.testing.assert_allclose(gap(mech, q), 0.0, atol=1e-13)
    assert q[mech.q_index("hip")] == 0.7
    position = lw.frame_pose(mech, q, "trunk")[:3, 3]
    np.testing.assert_allclose(position[0], 0.2 + 0.6 * 0.5, atol=1e-13)  # straight up
    np.testing.assert_allclose(position[2], 0.1 + 0.02 + 0.3 * math.cos(0.7), atol=1e-13)


def test_bodies_are_placed_one_by_one_on_what_is_fixed():
    builder = lw.Builder()
    for name in "ab":
        builder.link(name, 1.0, inertia=(0.01,) * 3).joint(f"free_{name}", lw.Floating(), "ground", name)
    mech = builder.shape("a", "a", "sphere", 0.1).shape("b", "b", "sphere", 0.2).build()
    mech = mech.with_shape("step", "ground", "box", (0.5, 0.5, 0.25), (0, 0, 0.25)).with_ground()
    mech = mech.with_contact(("a", "step"), ("b", "step"), ("a", "b"))
    q = np.tile(lw.neutral(mech), (4, 1))
    q[:, 4:7] = [[0, 0, 0.1], [0.55, 0, 2.0], [3, 0, -1.0], [0.3, 0.2, 4.0]]
    q[:, 11:] = [5.0, 0.0, 0.0]
    placed = lw.contact.place_on_ground(mech, q)
    beside = 0.5 + math.sqrt(0.1**2 - 0.05**2)  # on the edge of the step
    np.testing.assert_allclose(placed[:, 6], [0.6, beside, 0.1, 0.6], atol=1e-9)
    np.testing.assert_allclose(placed[:, 13], 0.2, atol=1e-12)


def test_units_do_not_matter():
    for units in SYSTEMS:
        mech = units.mechanism(BOX.with_ground(0.2, (0.1, 0.0, 1.0)))
        q = units.q(BOX, [0.8, 0.0, 0.6, 0.0, 0.1, 0.2, -0.4])
        np.testing.assert_allclose(gap(mech, lw.contact.place_on_ground(mech, q)) / units.length, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: BOX, r"has no contacts: mech.with_ground"),
        (lambda: BOX.with_ground(0.0).with_acting(False), r"is switched off: mech.with_acting\(contact=True\)"),
        (lambda: _arm().with_ground(-1.0), "can be lifted: it stands on a fixed base.*floating_base=True"),
        (lambda: BOX.with_ground(0.0, (0, 0, -1)), "gravity does not point into it"),
        (lambda: BOX.with_ground(0.0).with_loops(_held()), "can be lifted"),
    ],
)
def test_what_cannot_be_placed_is_refused(make, message):
    with pytest.raises(lw.MechanismError, match=message):
        lw.contact.place_on_ground(make())


def _arm() -> lw.Mechanism:
    builder = (
        lw.Builder().link("arm", 1.0, (0.2, 0, 0), (0.01,) * 3).joint("hinge", lw.Revolute((0, 1, 0)), "ground", "arm")
    )
    return builder.shape("tip", "arm", "sphere", 0.05, (0.4, 0, 0)).build()


def _held() -> lw.constraints.Loop:
    still = (np.eye(3), np.zeros(3))
    return lw.constraints.Loop("held", lw.Spherical(), "ground", still, "body", still)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_coordinates_that_are_not_finite_are_refused(number):
    mech = BOX.with_ground()
    with pytest.raises(lw.MechanismError, match="q has entries that are not finite"):
        lw.contact.place_on_ground(mech, np.where(np.arange(7) == 5, number, lw.neutral(mech)))


def test_what_is_no_mechanism_is_refused():
    with pytest.raises(TypeError, match="a Mechanism is needed"):
        lw.contact.place_on_ground("robot.xml")
