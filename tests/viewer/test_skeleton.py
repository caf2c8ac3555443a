"""What is drawn of a mechanism is where the mechanism is."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.scene import scene
from linkwise.viewer.skeleton import Skeleton, bounds, symbol_size
from linkwise.viewer.symbols import symbol
from tests.viewer.to_draw import BUILT_IN, built, hinged, mechanism


def ends(link) -> np.ndarray:
    """(N, 3): where a link's bars end and its plate has corners."""
    return np.concatenate([link.bars.reshape(-1, 3), link.plate])


def contains(points: np.ndarray, point: np.ndarray) -> bool:
    return bool(np.any(np.linalg.norm(points - point, axis=-1) < 1e-9))


@pytest.mark.quick_one_in(3)
@pytest.mark.parametrize("name", BUILT_IN)
def test_there_is_a_shape_per_link_and_a_mark_per_joint(name):
    mech, q = built(name)
    sketch = Skeleton(mech).at(np.array(q))
    assert len(sketch.links) == mech.n_links
    assert [mark.name for mark in sketch.joints] == list(mech.joint_names)
    assert len(sketch.loops) == len([loop for loop in mech.loops if isinstance(loop.kind, lw.extend.Joint)])
    poses = [lw.frame_pose(mech, np.array(q), link) for link in mech.link_names]
    np.testing.assert_allclose([mark.origin for mark in sketch.joints], np.array(poses)[:, :3, 3], atol=1e-12)
    centres = [pose[:3, :3] @ com + pose[:3, 3] for pose, com in zip(poses, mech.parameters.coms, strict=True)]
    np.testing.assert_allclose([link.centre for link in sketch.links], centres, atol=1e-12)


@pytest.mark.parametrize("name", BUILT_IN)
def test_bars_reach_every_joint_that_a_link_carries(name):
    mech, q = built(name)
    sketch = Skeleton(mech).at(np.array(q))
    for index, body in enumerate(mech.bodies):
        start = sketch.joints[index].start[:3, 3]
        if body.parent >= 0 and not isinstance(body.kind, lw.Floating):
            parent = sketch.links[body.parent]
            at_its_own_joint = np.linalg.norm(start - sketch.joints[body.parent].origin) < 1e-9
            inside = len(parent.plate) > 0  # corners are drawn; a point between corners is on the plate
            assert contains(ends(parent), start) or at_its_own_joint or inside
    for loop in sketch.loops:
        for side in loop:
            if side.body >= 0:
                link = sketch.links[side.body]
                assert contains(np.vstack([ends(link), sketch.poses[side.body][:3, 3]]), side.origin) or len(link.plate)


CLOSED = [name for name in BUILT_IN if any(isinstance(loop.kind, lw.extend.Joint) for loop in mechanism(name).loops)]


@pytest.mark.parametrize("name", CLOSED)
def test_sides_of_a_loop_meet_when_it_is_closed_and_only_then(name):
    mech, q = built(name)
    skeleton = Skeleton(mech)

    def gaps(q) -> np.ndarray:
        return np.array([np.linalg.norm(a.origin - b.origin) for a, b in skeleton.at(np.asarray(q)).loops])

    assert gaps(q).max() < 1e-9
    opened = lw.integrate(mech, np.array(q), 0.3 * np.random.default_rng(0).normal(size=mech.nv), 1.0)
    assert gaps(opened).max() > 1e-3


def test_wheels_have_rims():
    """In their plane, at their radius, and on the ground where they touch it."""
    mech = lw.mechanisms.bicycle()
    sketch = Skeleton(mech).at(lw.neutral(mech))
    for link, radius in ((1, 0.3), (3, 0.35)):
        ring = sketch.links[link].thin[-33:-1, 0]
        np.testing.assert_allclose(np.linalg.norm(ring - sketch.links[link].centre, axis=1), radius, rtol=1e-12)
        np.testing.assert_allclose(ring[:, 1], 0.0, atol=1e-12)
        assert abs(ring[:, 2].min()) < 0.01 * radius
    ball = (
        lw.Builder().link("ball", 1.0, inertia=(1.0,) * 3).joint("base", lw.Floating(), "ground", "ball", (0, 0, 0.2))
    )
    rolling = ball.ball("floor", "ball", 0.2).build("ball")
    assert len(Skeleton(rolling).at(lw.neutral(rolling)).links[0].thin) == 3 * 33


def test_a_uniform_rod_that_carries_nothing_is_drawn_in_its_full_length():
    mech = lw.mechanisms.double_pendulum(length=0.7)
    sketch = Skeleton(mech).at(np.array([0.4, -0.9]))
    np.testing.assert_allclose(np.linalg.norm(np.diff(sketch.links[1].bars[0], axis=0)), 0.7, rtol=1e-12)


def test_tips_of_welded_frames_end_the_last_link_and_continue_a_bar():
    arm = lw.mechanisms.planar_arm(2)
    q = np.array([0.3, 0.5])
    assert contains(ends(Skeleton(arm).at(q).links[1]), lw.frame_pose(arm, q, "tip")[:3, 3])
    governor, q = built("flyball_governor")
    sketch = Skeleton(governor).at(np.array(q))
    ball = lw.frame_pose(governor, np.array(q), "left_ball")[:3, 3]
    assert contains(ends(sketch.links[governor.link_names.index("left_arm")]), ball)


def test_named_points_of_planar_links_are_marked_and_links_reach_them():
    """P beside the pins of a coupler spans a plate with them, Q behind a crank's pin is on a bar; in space neither."""
    four_bar = lw.Builder().linkage(
        {"O": (0, 0), "A": (0, 0.1), "B": (0.35, 0.25), "C": (0.3, 0), "P": (0.2, 0.35), "Q": (0, -0.05)},
        {"ground": "OC", "crank": "OAQ", "coupler": "ABP", "rocker": "CB"},
    )
    mech = four_bar.build("four_bar")
    sketch = Skeleton(mech).at(np.zeros(3))
    assert {name: mech.link_names[link] for name, link, _ in sketch.named} == {"P": "coupler", "Q": "crank"}
    for name, link, place in sketch.named:
        np.testing.assert_allclose(place, {"P": (0.2, 0.35, 0.0), "Q": (0.0, -0.05, 0.0)}[name], atol=1e-12)
        assert contains(ends(sketch.links[link]), place)
        (dot,) = (part for part in scene(mech).parts if part.name == f"skeleton/{mech.link_names[link]}/{name}")
        np.testing.assert_allclose(sketch.poses[link] @ dot.pose[:, 3], [*place, 1.0], atol=1e-12)
    spatial = (
        four_bar.link("top", 1.0, inertia=(1, 1, 1))
        .joint("swivel", lw.Revolute((1, 0, 0)), "crank", "top")
        .build("spatial")
    )
    assert Skeleton(spatial).at(np.zeros(4)).named == ()


def test_three_joints_in_a_plane_span_a_plate():
    loader, q = built("loader")
    sketch = Skeleton(loader).at(np.array(q))
    plates = {loader.link_names[i]: len(link.plate) for i, link in enumerate(sketch.links) if len(link.plate)}
    assert plates == {"boom": 4, "bell_crank": 3}
    platform = Skeleton(built("stewart_platform")[0]).at(np.array(built("stewart_platform")[1])).links[0]
    assert len(platform.plate) == 6


def test_a_leaf_without_extent_is_still_in_the_picture():
    mech = lw.Builder().link("a", 1.0, inertia=(1, 1, 1)).joint("j", lw.Revolute(), "ground", "a").build("dot")
    sketch = Skeleton(mech).at(np.zeros(1))
    assert len(sketch.joints) == 1 and len(sketch.points) and symbol_size(sketch, bounds([sketch])) > 0.0


def test_symbols_shrink_where_joints_are_close():
    far, near = (Skeleton(lw.mechanisms.planar_arm(n, length=3.0 / n)).at(np.zeros(n)) for n in (3, 30))
    assert symbol_size(near, bounds([near])) < 0.6 * symbol_size(far, bounds([far]))


def test_joints_that_slide_start_where_they_are_fixed():
    mech = hinged("prismatic")
    q = np.array([0.0, 0.3])
    mark = Skeleton(mech).at(q).joints[1]
    np.testing.assert_allclose(mark.start[:3, 3], (0.1, 0.0, 0.4), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(mark.origin - mark.start[:3, 3]), 0.3, rtol=1e-12)


def test_a_loop_that_slides_is_closed_with_its_sides_apart():
    """A block turns on a crank and slides in a slot of the rocker: the sides are apart along the slot."""
    builder = lw.Builder().link("crank", 1.0, (0.1, 0, 0), (1, 1, 1)).link("block", 1.0, (0, 0, 0), (1, 1, 1))
    builder.link("rocker", 1.0, (0, 0.4, 0), (1, 1, 1)).joint("turn", lw.Revolute(), "ground", "crank")
    builder.joint("pin", lw.Revolute(), "crank", "block", (None, (0.2, 0.0, 0.0)))
    builder.joint("swing", lw.Revolute(), "ground", "rocker", (None, (0.0, -0.6, 0.0)))
    slot = lw.Prismatic((0.0, 1.0, 0.0))
    mech = builder.loop("slot", slot, "rocker", (None, (0, 0, 0)), "block", (None, (0, 0, 0))).build("shaper")
    q = lw.constraints.assemble(mech, [0.5, 0.0, 0.0], hold=("turn",))
    sketch = Skeleton(mech).at(q)
    (fixed, moving), (error,) = sketch.loops[0], sketch.open
    assert error < 1e-9 and np.linalg.norm(fixed.origin - moving.origin) > 0.5
    along = moving.end[:3, 1]
    np.testing.assert_allclose(np.cross(moving.origin - fixed.origin, along), 0.0, atol=1e-9)
    rail = symbol(moving, 0.01).rails[0]  # from the fixed side to the moving one
    for point in (fixed.origin, moving.origin):
        assert np.dot(rail[0] - point, rail[1] - point) < 0.0
    assert Skeleton(mech).at(q + 0.1).open[0] > 1e-3


HOPPER = """<mujoco><worldbody><geom type="plane" size="9 9 1"/><body name="leg" pos="0 0 .7">
  <joint name="x" type="slide" axis="1 0 0" pos="0 0 -.7"/><joint name="z" type="slide" axis="0 0 1" pos="0 0 -.7"/>
  <joint name="y" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.6" size=".04"/>
  <body name="foot" pos=".13 0 -.72"><joint name="ankle" axis="0 1 0" pos="-.13 0 .12"/>
  <geom type="capsule" fromto="-.26 0 .12 .13 0 .12" size=".06"/></body></body></worldbody></mujoco>"""


def test_bars_of_bodies_with_shapes_do_not_leave_them():
    """Origins of bodies, and of slides along their axes, are anywhere: here below the floor."""
    sketch = Skeleton(lw.load(HOPPER)).at(np.zeros(4))
    drawn = {link: shape for link, shape in zip(("x", "z", "leg", "foot"), sketch.links, strict=True)}
    assert not len(drawn["x"].bars) and not len(drawn["z"].bars)
    np.testing.assert_allclose(drawn["leg"].bars, [[[0.0, 0.0, 0.7], [0.0, 0.0, 0.1]]], atol=1e-12)
    foot = drawn["foot"].points
    np.testing.assert_allclose(foot[:, 2], 0.1, atol=1e-12)
    assert -0.19 < foot[:, 0].min() and 0.2 < foot[:, 0].max() < 0.32
