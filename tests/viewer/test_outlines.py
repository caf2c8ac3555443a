"""The floor and outlines of what touches it are drawn, where they are."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.drawing import floor, floor_lines, outlines, touching
from linkwise.viewer.skeleton import Skeleton
from linkwise.viewer.views import View

pytest.importorskip("matplotlib")
KINDS = {
    "sphere": 0.1,
    "capsule": (0.05, 0.2),
    "cylinder": (0.1, 0.2),
    "box": (0.1, 0.2, 0.3),
    "ellipsoid": (0.1, 0.2, 0.05),
}
IN_SPACE = View(np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0]), flat=False)
FLAT = View(IN_SPACE.right, IN_SPACE.up, flat=True)


def sled(kind: str = "box") -> lw.Mechanism:
    builder = lw.Builder().link("body", 1.0, inertia=(0.1, 0.1, 0.1)).link("arm", 0.5, (0, 0, 0.2), (0.01, 0.01, 0.01))
    builder.joint("root", lw.Floating(), "ground", "body").joint("hinge", lw.Revolute((0, 1, 0)), "body", "arm")
    return builder.build("sled").with_shape("hull", "body", kind, KINDS[kind]).with_ground(-0.1)


def inside_by(kind: str, x: np.ndarray) -> np.ndarray:
    """How far points in the shape's frame are from its surface, about; zero on it."""
    size = np.atleast_1d(KINDS[kind])
    if kind in ("sphere", "ellipsoid"):
        return np.linalg.norm(x / size, axis=-1) - 1.0
    if kind == "box":
        return (np.abs(x) / size).max(axis=-1) - 1.0
    radial, beyond = np.hypot(x[:, 0], x[:, 1]), np.abs(x[:, 2]) - size[1]
    if kind == "capsule":
        return np.hypot(radial, np.maximum(beyond, 0.0)) - size[0]
    return np.maximum(radial - size[0], beyond)


@pytest.mark.parametrize("kind", KINDS)
def test_outlines_lie_on_the_surface(kind):
    mech = sled(kind)
    q = lw.configuration(mech, {"root": [0.9, 0.1, 0.3, -0.2, 0.5, 0.1, 0.7]})
    (shape, pose), (plane, _) = touching(mech, Skeleton(mech).at(q))
    assert (shape.name, plane.kind) == ("hull", "plane")
    for view in (IN_SPACE, FLAT):
        points = np.concatenate(outlines(shape, pose, view))
        local = (points - pose[:3, 3]) @ pose[:3, :3]
        assert np.abs(inside_by(kind, local)).max() < 1e-9
    assert np.ptp(points @ FLAT.right) > 0.09


def test_a_floor_is_below_the_picture_unless_it_is_far_away():
    mech = sled()
    _, (plane, pose) = touching(mech, Skeleton(mech).at(mech.initial))
    box = np.array([[-1.0, -0.5, 0.0], [1.0, 0.5, 1.0]])
    patch = floor(plane, pose, box)
    assert np.allclose(patch[:, 2], -0.1)
    assert (patch.min(axis=0)[:2] < box[0, :2]).all() and (patch.max(axis=0)[:2] > box[1, :2]).all()
    assert floor(plane, pose, box + [0, 0, 5.0]) is None
    line, *strokes = floor_lines(patch, FLAT, 0.02)
    assert np.allclose(line[:, 2], -0.1) and all(stroke[1, 2] < -0.1 for stroke in strokes)
    assert not floor_lines(patch, IN_SPACE, 0.02)


def painted(figure) -> set[str]:
    return {artist.get_gid() for artist in figure.axes[0].collections}


def test_pictures_show_them_if_asked():
    mech = sled()
    figure = lw.viewer.draw(mech)
    assert {"floor", "shapes"} <= painted(figure)
    assert figure.axes[0].get_zlim()[0] < -0.1
    assert not {"floor", "shapes"} & painted(lw.viewer.draw(mech, shapes=False))
    assert not {"floor", "shapes"} & painted(lw.viewer.draw(mech.contact.without()))
    path = np.stack([mech.initial, mech.initial])
    path[1, 6] = 0.5
    assert {"floor", "shapes"} <= painted(lw.viewer.snapshots(mech, path, [0.0, 1.0], view="xz", count=2))
