"""Signed distances of convex shapes: against MuJoCo's, against quadratic programs, and by what defines them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.mechanics.links.convex_distance import Sides, Summand, separations
from linkwise.mechanics.spatial import Vector3
from linkwise.mechanism.shapes import summands
from tests.units import SYSTEMS

SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
PAIRS = [("ellipsoid", other) for other in SIZES] + [("sphere", "cylinder"), ("capsule", "cylinder")]
DOWN = Vector3(0.0, 0.0, -1.0)
EXACT = 2e-4  # of the size of both shapes: faces bulge by 1e-4 of it


class Pair:
    """Two random shapes: the first one turned by ``rotation`` and with its centre at ``between``, by NumPy alone."""

    def __init__(self, rng: np.random.Generator, kinds: tuple[str, str], apart: float):
        """``apart``: how far the centres are apart along some direction, in what makes the shapes touch there."""
        self.shapes = [
            lw.contact.Shape(kind, "ground", kind, np.exp(rng.uniform(math.log(0.1), 0.0, SIZES[kind])))
            for kind in kinds
        ]
        self.rotation = Rotation.random(random_state=int(rng.integers(2**31))).as_matrix()
        self.radii = tuple(summands(shape)[0] for shape in self.shapes)
        first, second = (summands(shape)[1] for shape in self.shapes)
        self.axes = [[self.rotation @ x for x in first], second]
        direction = rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        self.between = np.zeros(3)
        self.between = -apart * self.gap_along(direction) * direction
        self.size = sum(self.radii) + sum(np.linalg.norm(x) for side in self.axes for x in side)

    def gap_along(self, normals: np.ndarray) -> np.ndarray:
        """By how much the shapes are apart along unit vectors (..., 3)."""
        extents = sum(np.linalg.norm(normals @ x, axis=-1) for side in self.axes for x in side)
        return normals @ self.between - extents - sum(self.radii)

    def separation(self, unit: float = 1.0) -> tuple[float, np.ndarray, np.ndarray]:
        def parts(side):
            return [
                Summand(
                    tuple(Vector3(*(unit * axis).tolist()) for axis in x.T),
                    float(unit * np.linalg.norm(x)) / math.sqrt(x.shape[1]),
                )
                for x in side
            ]

        sides = Sides(
            Vector3(*(unit * self.between).tolist()),
            (parts(self.axes[0]), parts(self.axes[1])),
            tuple(unit * radius for radius in self.radii),
            DOWN,
        )
        (result,) = separations([sides])
        return result.gap, np.array(result.normal), np.array(result.point)

    def distance(self) -> float:
        """Of shapes whose cores are apart: the least distance of a point of one core and one of the other."""
        columns = [x for side in self.axes for x in side]
        cuts = np.cumsum([x.shape[1] for x in columns])[:-1]
        matrix = np.hstack(columns)

        def squared(u):
            rest = self.between - matrix @ u
            return rest @ rest, -2.0 * matrix.T @ rest

        bounds = [
            {"type": "ineq", "fun": lambda u, k=k: 1.0 - np.split(u, cuts)[k] @ np.split(u, cuts)[k]}
            for k in range(len(columns))
        ]
        options = {"ftol": 1e-14, "maxiter": 300}
        found = minimize(
            squared, np.zeros(matrix.shape[1]), jac=True, constraints=bounds, method="SLSQP", options=options
        )
        return math.sqrt(found.fun) - sum(self.radii)


@pytest.mark.parametrize("kinds", PAIRS)
def test_shapes_that_are_apart_have_the_least_distance_of_their_points(kinds):
    rng = np.random.default_rng(1)
    for _ in range(6):
        pair = Pair(rng, kinds, rng.uniform(1.1, 3.0))
        assert abs(pair.separation()[0] - pair.distance()) < EXACT * pair.size


@pytest.mark.parametrize("kinds", PAIRS)
def test_the_normal_is_the_best_and_points_lie_on_both_surfaces(kinds):
    """Of shapes that are apart, touch, or penetrate a little: no normal separates them further."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        pair = Pair(rng, kinds, rng.uniform(0.98, 1.5))
        gap, normal, point = pair.separation()
        smallest = min(min(shape.size) for shape in pair.shapes)
        if gap < -0.2 * smallest:
            continue
        around = normal + rng.normal(size=(500, 3)) * np.exp(rng.uniform(-10.0, 1.0, (500, 1)))
        around /= np.linalg.norm(around, axis=-1, keepdims=True)
        assert abs(np.linalg.norm(normal) - 1.0) < 1e-12
        assert abs(pair.gap_along(normal) - gap) < EXACT * pair.size
        assert pair.gap_along(around).max() < gap + EXACT * pair.size
        for centre, axes, radius, side in (
            (pair.between, pair.axes[0], pair.radii[0], 1.0),
            (np.zeros(3), pair.axes[1], pair.radii[1], -1.0),
        ):  # the point is beyond each surface by half of the gap, and beyond no other part of it by more
            extents = sum(np.linalg.norm(around @ x, axis=-1) for x in axes) + radius
            beyond = -side * (around @ (point - centre)) - extents
            assert beyond.max() < 0.5 * abs(gap) + 5.0 * EXACT * pair.size


@pytest.mark.parametrize("kinds", PAIRS)
def test_distances_are_those_of_mujoco(kinds):
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(3)
    deep = wrong = 0
    for _ in range(30):
        pair = Pair(rng, kinds, rng.uniform(0.6, 1.6))
        quaternion = np.roll(Rotation.from_matrix(pair.rotation).as_quat(), 1)
        geoms = "".join(
            f'<geom type="{shape.kind}" size="{" ".join(map(str, shape.size))}" pos="{" ".join(map(str, at))}" '
            f'quat="{" ".join(map(str, turned))}"/>'
            for shape, at, turned in zip(
                pair.shapes, (pair.between, np.zeros(3)), (quaternion, [1, 0, 0, 0]), strict=True
            )
        )
        model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        expected = mujoco.mj_geomDistance(model, data, 0, 1, 100.0, np.zeros(6))
        error = (pair.separation()[0] - expected) / pair.size
        if expected > -0.3 * min(min(shape.size) for shape in pair.shapes):
            assert abs(error) < EXACT
        else:  # several ways out: the one taken may not be the shortest
            deep, wrong = deep + 1, wrong + (abs(error) > EXACT)
            assert error < EXACT
    assert wrong <= 0.2 * deep


@pytest.mark.parametrize("units", SYSTEMS, ids=str)
@pytest.mark.parametrize("kinds", PAIRS)
def test_units_do_not_matter(kinds, units):
    rng = np.random.default_rng(4)
    for _ in range(5):
        pair = Pair(rng, kinds, rng.uniform(0.7, 1.6))
        (gap, normal, point), (scaled, direction, at) = pair.separation(), pair.separation(units.length)
        np.testing.assert_allclose(scaled, gap * units.length, atol=1e-9 * units.length)
        np.testing.assert_allclose(direction, normal, atol=1e-6)
        np.testing.assert_allclose(at, point * units.length, atol=1e-6 * units.length)


@pytest.mark.parametrize("lift", [0.0, 4e-5])
@pytest.mark.parametrize("kinds", PAIRS)
def test_shapes_about_one_point_are_parted_along_an_axis(kinds, lift):
    """Without a direction between the centres, and where ways up and down differ by less than faces bulge, the first
    one goes with gravity, by no more than it must."""
    rng = np.random.default_rng(5)
    pair = Pair(rng, kinds, 0.0)
    pair.between = np.array([0.0, 0.0, lift * pair.size])
    gap, normal, point = pair.separation()
    assert np.isfinite([gap, *normal, *point]).all() and normal[2] <= lift
    assert abs(pair.gap_along(normal) - gap) < EXACT * pair.size
