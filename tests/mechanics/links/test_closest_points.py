"""Segments beside boxes, against a search along the segment."""

from __future__ import annotations

import numpy as np

from linkwise.mechanics.links.closest_points import segment_from_box
from linkwise.mechanics.spatial import Vector3


def found(middle, axis, half):
    vectors = [Vector3(*x.tolist()) for x in (middle, axis)]
    return segment_from_box(*vectors, float(np.linalg.norm(axis)), half.tolist())


def distance(point, half):
    return np.linalg.norm(point - np.clip(point, -half, half), axis=-1)


def test_the_closer_of_both_points_is_the_closest_of_the_segment():
    rng, met, passed = np.random.default_rng(0), 0, 0
    for _ in range(1000):
        half, middle, axis = rng.uniform(0.1, 1.0, 3), rng.normal(size=3), rng.normal(size=3)
        axis[rng.random(3) < 0.2] = 0.0  # along faces and edges too
        if not axis.any():
            continue
        low, high = -1.0, 1.0
        for _ in range(80):  # the distance along a segment is convex
            a, b = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, b) if distance(middle + a * axis, half) < distance(middle + b * axis, half) else (a, high)
        least = min(distance(middle + t * axis, half) for t in (low, -1.0, 1.0))
        if least < 1e-6:
            continue
        halves = found(middle, axis, half)
        nearest = min(halves, key=lambda one: one.distance)
        np.testing.assert_allclose(nearest.distance, least, rtol=0, atol=1e-9)
        point = middle + nearest.along * axis
        away = nearest.distance * np.array(nearest.normal)
        np.testing.assert_allclose(away, point - np.clip(point, -half, half), atol=1e-9)
        met, passed = met + 1, passed + (abs(nearest.along) < 1.0)
    assert met > 500 and passed > 200


def test_what_lies_across_a_face_leaves_it_on_both_sides():
    """By the edges it passes, wherever the ends are, and by its ends where they are on the face."""
    half = np.array([0.1, 0.2, 0.05])
    for angle in np.linspace(0.1, 6.2, 13):
        axis = np.array([np.cos(angle), np.sin(angle), 0.0])
        middle = np.array([0.02, -0.05, 0.08])
        leaves = [np.sign(u) * h - m for u, h, m in zip(axis, half, middle, strict=True)][:2]
        ahead = min(x / u for x, u in zip(leaves, axis, strict=False))
        behind = max((-np.sign(u) * h - m) / u for u, h, m in zip(axis[:2], half, middle, strict=False))
        for length in (1.0, 0.04):
            one, other = found(middle, length * axis, half)
            np.testing.assert_allclose(
                [one.along, other.along], [max(behind / length, -1.0), min(ahead / length, 1.0)], atol=1e-12
            )
            for each in (one, other):
                np.testing.assert_allclose([each.distance, *each.normal], [0.03, 0.0, 0.0, 1.0], atol=1e-12)


def test_inside_it_is_pushed_out_by_the_edges_it_passes():
    for each in found(np.array([0.0, 0.01, 0.09]), np.array([1.0, 0.0, 0.0]), np.array([0.1, 0.1, 0.1])):
        np.testing.assert_allclose(
            [abs(each.along), each.distance, *each.normal], [0.1, -0.01, 0.0, 0.0, 1.0], atol=1e-9
        )
