"""Cameras see all of a mechanism, and little else; several stand beside each other.  A pinhole camera of the tests'
own looks at every corner of every mesh."""

import inspect

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.browser.player import clip_of
from linkwise.viewer.browser.session import Session
from linkwise.viewer.framing import ASPECT, FIELD, beside, camera, frame, points_of, viewpoint

SIZES = {"planar_arm": (3,), "chain": (6,), "random_tree": (8, 3), "n_four_bar": (3,), "four_bar_branches": (2,)}
NAMES = [name for name, made in inspect.getmembers(lw.mechanisms, inspect.isfunction)]
QUICK = ("cart_pole", "slider_crank", "five_bar")
Z = np.array([0.0, 0.0, 1.0])


def seen(points, position, look_at, up):
    """(n, 2): where points are in the picture, from -1 to 1 across the smaller side of the window and its aspect."""
    ahead = (look_at - position) / np.linalg.norm(look_at - position)
    right = np.cross(ahead, up) / np.linalg.norm(np.cross(ahead, up))
    depth = (points - position) @ ahead
    assert depth.min() > 0.0, "in front of the camera"
    across = (points - position) @ np.stack([right, np.cross(right, ahead)], axis=1)
    return across / depth[:, None] / np.tan(0.5 * FIELD) / [ASPECT, 1.0]


def vertices(session, q):
    """(n, 3): every corner of everything that moves."""
    moving = [part for part in session.scene.shown if part.link in session.mech.link_names]
    placed = session.scene.placed(lw.link_poses(session.mech, q), moving)
    meshes = [part.shape.mesh().vertices for part in moving]
    return np.concatenate([mesh @ pose[:3, :3].T + pose[:3, 3] for mesh, pose in zip(meshes, placed, strict=True)])


def of_session(session, q, count=1):
    gravity = session.mech.gravity
    up = -gravity / np.linalg.norm(gravity) if gravity.any() else Z
    points = points_of(session.scene, session.mech, q)
    aside, lift = viewpoint(session.mech, session.q, points, up)
    return frame(count, points, aside, up, lift), up


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in NAMES])
def test_all_of_a_mechanism_is_in_the_picture_and_fills_it(name):
    session = Session(getattr(lw.mechanisms, name)(*SIZES.get(name, ())))
    framing, up = of_session(session, session.q)
    at = seen(vertices(session, session.q), framing.position, framing.look_at, up)
    assert 0.6 < np.abs(at).max() < 0.97


def test_nearest_camera():
    points = np.random.default_rng(3).normal(size=(40, 3)) * [1.0, 4.0, 1.3] + [50.0, -20.0, 7.0]
    for aside, up in ((np.array([1.0, 0.0, 0.0]), Z), (np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0]))):
        position, look_at = camera(points, aside, up)
        wide, high = np.abs(seen(points, position, look_at, up)).max(axis=0)
        assert max(wide, high) == pytest.approx(0.88, abs=1e-9)
        back = (position - look_at) / np.linalg.norm(position - look_at)
        assert back @ np.cross(up, aside) == pytest.approx(0.0, abs=1e-12)


def test_a_motion_stays_in_the_picture_unless_it_goes_far():
    arm = lw.mechanisms.double_pendulum()
    session = Session(arm)
    clip = clip_of(lw.simulate(arm, [3.0, 0.0], [0.0, 0.0], 3.0))
    framing, up = of_session(session, clip.moments(24))
    for q in clip.moments(7):
        assert np.abs(seen(vertices(session, q), framing.position, framing.look_at, up)).max() < 1.0
    free = lw.mechanisms.rolling_disk()
    there = np.tile(lw.neutral(free), (2, 1))
    there[1, 4] = 100.0
    points = points_of(Session(free).scene, free, there)
    assert np.ptp(points, axis=0).max() < 2.0


def test_several_stand_apart_and_as_large_as_there_is_room():
    session = Session(lw.mechanisms.planar_arm(2))
    one, up = of_session(session, session.q)
    nine, _ = of_session(session, session.q, 9)
    assert len(nine.offsets) == 9
    points, sizes = vertices(session, session.q), []
    for offset in nine.offsets:
        at = seen(points + offset, nine.position, nine.look_at, up)
        assert np.abs(at).max() < 1.0
        sizes.append(np.ptp(at, axis=0).max())
    alone = np.ptp(seen(points, one.position, one.look_at, up), axis=0).max()
    assert min(sizes) > alone / 5.0, "nine in rows, each at least a fifth as large as one alone"
    extent = np.array([2.0, 1.0, 3.0])
    apart = beside(7, 3, extent, np.array([0.0, -1.0, 0.0]), Z)
    gaps = np.abs(apart[:, None] - apart[None])[~np.eye(7, dtype=bool)]
    assert ((gaps[:, 0] >= 2.0) | (gaps[:, 1] >= 1.0)).all() and not gaps[:, 2].any()
