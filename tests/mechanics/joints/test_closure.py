"""The closure of every joint kind: zero exactly at the poses of the joint, one number for every DoF that it takes."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.jet import jet, parts
from linkwise.mechanics.spatial import Matrix3, Vector3

from ..spatial.dense import pose, skew
from .test_joints import KINDS, columns, draw

CLOSING = [*KINDS[:-1], lw.Helical((1.0, 0.0, 0.0), 0.0), lw.Helical((0.0, 1.0, 0.0), -2.5), lw.Fixed()]
every_kind = pytest.mark.parametrize("kind", CLOSING, ids=lambda kind: f"{type(kind).__name__}{CLOSING.index(kind)}")


def closure(kind, rotation, position) -> np.ndarray:
    return np.array(kind.closure(Matrix3.from_rows(rotation.tolist()), Vector3(*position.tolist())), dtype=float)


def alignment(kind, rotation, position) -> float:
    return kind.loop_alignment(Matrix3.from_rows(rotation.tolist()), Vector3(*position.tolist()))


def gradient(kind, rotation, position) -> np.ndarray:
    """(6 - nv, 6): rates of the closure per unit twist of the child side, in its own frame."""
    result = np.zeros((6 - kind.nv, 6))
    for k, unit in enumerate(np.eye(6)):
        turning, sliding = rotation @ skew(unit[:3]), rotation @ unit[3:]
        rows = [Vector3(*map(jet, row, rate)) for row, rate in zip(rotation.tolist(), turning.tolist(), strict=True)]
        moved = kind.closure(Matrix3(*rows), Vector3(*map(jet, position.tolist(), sliding.tolist())))
        result[:, k] = [parts(x)[1] for x in moved]
    return result


def turned(axis: int, angle: float = np.pi) -> np.ndarray:
    k = skew(np.eye(3)[axis])
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k


@every_kind
def test_it_vanishes_at_every_pose_of_the_joint(kind):
    for seed in range(5):
        q, _ = draw(kind, seed) if kind.nq else ([], [])
        at = pose(kind.transform([3.0 * x if isinstance(kind, lw.Helical) else x for x in q]))
        assert closure(kind, *at).shape == (6 - kind.nv,)
        np.testing.assert_allclose(closure(kind, *at), 0.0, atol=1e-14)
        assert alignment(kind, *at) > 0.9


@every_kind
def test_its_gradient_is_the_complement_of_the_freedom(kind):
    """What the joint allows does not change it, everything else does: 6 - nv independent rows."""
    q, _ = draw(kind) if kind.nq else ([], [])
    rows = gradient(kind, *pose(kind.transform(q)))
    if kind.nv:
        np.testing.assert_allclose(rows @ columns(kind.motion(q)), 0.0, atol=1e-14)
    assert np.linalg.svd(rows)[1][-1] > 0.15


@every_kind
def test_mirror_images_close_but_face_away(kind):
    q, _ = draw(kind) if kind.nq else ([], [])
    rotation, position = pose(kind.transform(q))
    if isinstance(kind, lw.Spherical | lw.Universal):
        assert alignment(kind, turned(0), position) == 1.0  # no pose in reach is a mirror image
        return
    mirrored = rotation @ turned(0)
    np.testing.assert_allclose(closure(kind, mirrored, position), 0.0, atol=1e-14)
    assert alignment(kind, mirrored, position) < -0.9


def test_half_a_turn_of_a_screw_too_far_faces_away():
    kind = lw.Helical((0.0, 0.0, 1.0), 0.2)
    rotation, position = pose(kind.transform([0.4]))
    further = position + [0.0, 0.0, 0.2 * np.pi]
    np.testing.assert_allclose(closure(kind, rotation, further), 0.0, atol=1e-15)
    assert alignment(kind, rotation, further) == pytest.approx(-1.0)
    assert alignment(kind, rotation, further + [0.0, 0.0, 0.2 * np.pi]) == pytest.approx(1.0)
