"""A mechanism that moves in a plane is seen square to it; any other in space."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.skeleton import Skeleton
from linkwise.viewer.views import plane_of_motion, view_of
from tests.viewer.to_draw import BUILT_IN, FLAT, KINDS, built, hinged


def seen(mech, q, view="auto"):
    return view_of(mech, np.asarray(q, dtype=float), view, Skeleton(mech).at(np.asarray(q, dtype=float)).points)


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_mechanisms(name):
    mech, q = built(name)
    assert seen(mech, q).flat == (name in FLAT)
    np.testing.assert_allclose(seen(mech, q).up @ mech.gravity, -np.linalg.norm(mech.gravity))


@pytest.mark.parametrize("name", FLAT)
def test_nothing_moves_out_of_the_plane_that_is_found(name):
    mech, q = built(name)
    normal = plane_of_motion(mech, np.array(q))
    rng = np.random.default_rng(1)
    moved = lw.integrate(mech, np.array(q), rng.normal(size=(20, mech.nv)), 1.0)
    heights = lw.link_poses(mech, moved)[..., :3, 3] @ normal
    assert np.ptp(heights, axis=0).max() < 1e-12


def test_axes_of_the_world_point_right_and_up():
    assert seen(*built("double_pendulum")).labels == ("x (m)", "z (m)")
    assert seen(*built("five_bar")).labels == ("x (m)", "y (m)")
    about_x = lw.Builder().link("a", 1.0, (0, 0.3, 0)).joint("j", lw.Revolute((-1, 0, 0)), "ground", "a").build("a")
    assert seen(about_x, [0.2]).labels == ("y (m)", "z (m)")


def test_an_oblique_plane_is_seen_square():
    normal = np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0)
    builder = lw.Builder().link("a", 1.0, (0.3, -0.3, 0.0)).link("b", 1.0, (0.0, 0.0, 0.4))
    builder.joint("first", lw.Revolute(normal), "ground", "a")
    mech = builder.joint("second", lw.Prismatic((1.0, -1.0, 0.0)), "a", "b").build("oblique")
    view = seen(mech, [0.3, 0.2])
    assert view.flat
    np.testing.assert_allclose(np.abs(view.toward @ normal), 1.0)
    assert view.labels == ("across (m)", "z (m)")


def test_an_arm_that_swings_under_no_weight_is_seen_from_above():
    arm = lw.mechanisms.planar_arm(3, gravity=(0.0, 0.0, -9.81))
    assert seen(arm, [0.1, 0.2, 0.3]).labels == ("x (m)", "y (m)")
    assert seen(arm.with_gravity((0, 0, 0)), [0.1, 0.2, 0.3]).labels == ("x (m)", "y (m)")


def test_slides_alone_span_a_plane_or_space():
    def slides(*axes):
        builder = lw.Builder()
        for i, axis in enumerate(axes):
            parent = f"link{i - 1}" if i else "ground"
            builder.link(f"link{i}", 1.0, (0.1, 0.2, 0.3)).joint(f"j{i}", lw.Prismatic(axis), parent, f"link{i}")
        return builder.build("slides")

    assert seen(slides((1, 0, 0)), [0.5]).labels == ("x (m)", "z (m)")
    assert seen(slides((0, 0, 1)), [0.5]).flat
    assert seen(slides((1, 0, 0), (0, 1, 0)), [0.5, 0.1]).labels == ("x (m)", "y (m)")
    assert not seen(slides((1, 0, 0), (0, 1, 0), (0, 0, 1)), [0.5, 0.1, 0.2]).flat


@pytest.mark.parametrize("kind", KINDS)
def test_axes_in_two_directions_need_space(kind):
    mech = hinged(kind)
    assert not seen(mech, np.concatenate([[0.0], KINDS[kind].neutral()])).flat


def test_a_shaft_on_one_line_of_sight_is_seen_from_the_side():
    builder = lw.Builder().link("shaft", 1.0, (0, 0, 0.5), (0.1, 0.1, 0.01)).link("top")
    builder.joint("turn", lw.Revolute((0, 0, 1)), "ground", "shaft")
    mech = builder.joint("weld", lw.Fixed(), "shaft", "top", (None, (0, 0, 1.0))).build("shaft")
    assert plane_of_motion(mech, np.zeros(1)) is not None and not seen(mech, [0.0]).flat


def test_views_by_name():
    mech, q = built("puma560")
    assert seen(mech, q, "xz").labels == ("x (m)", "z (m)") and seen(mech, q, "yz").flat
    assert not seen(*built("five_bar"), "3d").flat
    with pytest.raises(ValueError, match="view must be one of 'auto', '3d'"):
        seen(mech, q, "front")
