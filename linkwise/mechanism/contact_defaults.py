"""Default numbers of contacts: made from masses, sizes and gravity of a mechanism, so that units do not matter."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from linkwise.mechanism.mobility_of_points import PointMobility
from linkwise.mechanism.shapes import PLANE, ContactLaw, ContactPair, Shape, bumps, is_implicit

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

# Dimensionless: with L the size of what touches and g gravity, lengths are parts of L, speeds of sqrt(g L).
SINK = 1e-3  # the depth at which one contact carries all of the weight
SMOOTHING = 0.25  # of that depth: where the force sets in smoothly
DISSIPATION = 20.0  # what falls on the ground hardly bounces; springs let go at 2 / DISSIPATION
SLIP_SPEED = 5e-4
STEP = 5e-3  # of sqrt(L / g): without gravity, a step h stands for it
USUAL_STEP = 1e-3  # that step where nothing of the mechanism sets a time: the only number with a unit, seconds


class Defaults:
    """Default contact parameters of one mechanism in its initial configuration.

    Trees that can touch each other may rest on one contact together: M is their mass, L the size of the largest, W =
    M g their weight.  m is the smallest mass that a force at one of the touching points feels, in any direction:

        stiffness = W / (0.001 L)         damping = 2 sqrt(m stiffness)    smoothing = 0.00025 L
        dissipation = 20 / sqrt(g L)      slip_speed = 0.0005 sqrt(g L)

    So one contact that carries everything is 0.001 L deep, and four feet are a quarter of that.  With a step h,
    that of the file if none is given, the stiffness is M / (1.5 h^2) if that is less (``ContactPair.settling``).

    Without gravity sqrt(L / g) is 200 steps h; without a step the time of the stiffest spring in a joint
    (``Scales.time``).  Without either no rule is free of units: masses and lengths make no time.  A millisecond stands
    for the step then.
    """

    def __init__(self, mech: Mechanism, pairs: Iterable[tuple[str, str]] = ()):
        """``pairs``: names of all shapes in contact; without them every tree is alone."""
        self._mech, self._pairs = mech, list(pairs)
        self._felt: dict[str, float] = {}

    def pair(self, a: str, b: str, friction: float | None = None, step: float | None = None) -> ContactPair:
        """Two shapes, the second a plane if one is, with numbers for their contact."""
        shapes = [self._mech.contact.shape(name) for name in (a, b)]
        mobility = sum(map(self._mobility, shapes))
        carried, length = self._carried(shapes)
        gravity = self._gravity(length, step)
        load, speed = carried * gravity, math.sqrt(gravity * length)
        mass = 1.0 / mobility if mobility > 0.0 else carried
        stiffness = load / (SINK * length)
        law = ContactLaw(
            stiffness=stiffness,
            dissipation=DISSIPATION / speed,
            damping=2.0 * math.sqrt(mass * stiffness),
            friction=max(shape.friction for shape in shapes) if friction is None else friction,
            slip_speed=SLIP_SPEED * speed,
            smoothing=SMOOTHING * SINK * length,
        )
        made = ContactPair(a, b, law, mass, carried, load)
        return made.settling(step or self._mech.metadata.timestep or 0.0) if is_implicit(self._mech, made) else made

    def length(self, pair: ContactPair) -> float:
        """L of a pair."""
        return self._carried([self._mech.contact.shape(name) for name in pair.shapes])[1]

    def time(self, pair: ContactPair) -> float:
        """sqrt(L / g) of a pair."""
        length = self.length(pair)
        return math.sqrt(length / self._gravity(length))

    def _carried(self, shapes: Iterable[Shape]) -> tuple[float, float]:
        """Mass and size that may rest on a contact of these shapes: all trees in contact, or between two trees all but
        the lighter one.
        """
        roots = {self._roots[body] for shape in shapes if (body := shape.placed(self._mech)[0]) >= 0}
        trees = {tree for root in roots for tree in self._heaps[root]}
        mass = sum(self._trees[tree][0] for tree in trees)
        if len(roots) > 1:
            mass -= min(self._trees[root][0] for root in roots)
        size = max((self._trees[tree][1] for tree in trees), default=0.0)
        return mass or 1.0, size or max(map(_extent, self._mech.shapes), default=0.0) or 1.0

    def _gravity(self, length: float, step: float | None = None) -> float:
        """g, or what stands for it."""
        gravity = float(np.linalg.norm(self._mech.gravity))
        if gravity:
            return gravity
        step = step or self._mech.metadata.timestep
        time = step / STEP if step else self._mech._scales.time  # that of a spring, infinite without any
        return length / (time if math.isfinite(time) else USUAL_STEP / STEP) ** 2

    @cached_property
    def _roots(self) -> list[int]:
        """The root of the tree of every body."""
        roots: list[int] = []
        for i, body in enumerate(self._mech.bodies):
            roots.append(i if body.parent < 0 else roots[body.parent])
        return roots

    @cached_property
    def _heaps(self) -> dict[int, list[int]]:
        """Root of a tree -> the roots of all trees that touch each other or are tied, directly or by others."""
        heaps, mech = {root: [root] for root in self._roots}, self._mech
        touching = [[mech.contact.shape(name).placed(mech)[0] for name in names] for names in self._pairs]
        tied = [[mech.frame(name).body for name in loop.links] for loop in mech.loops if loop.links]
        mimics = [[i, mech.body_index(x.mimic.joint)] for i, x in enumerate(mech.bodies) if x.mimic]
        for bodies in (*touching, *tied, *mimics):
            if min(bodies) < 0:
                continue
            first, second = (heaps[self._roots[body]] for body in bodies)
            if first is not second:
                first += second
                heaps |= dict.fromkeys(second, first)
        return heaps

    @cached_property
    def _trees(self) -> dict[int, tuple[float, float]]:
        """Root -> mass of its tree, and the largest distance of its links and shapes from its centre of mass."""
        points: dict[int, list[tuple[np.ndarray, float, float]]] = {}  # position, mass, size about it
        for body, (rotation, position), root in zip(self._mech.bodies, self._points.poses, self._roots, strict=True):
            points.setdefault(root, []).append((position + rotation @ body.com, body.mass, 0.0))
        for shape in self._mech.shapes:
            carrier, pose = shape.placed(self._mech)
            if carrier >= 0:
                rotation, position = self._points.poses[carrier]
                points[self._roots[carrier]].append((position + rotation @ pose[1], 0.0, _extent(shape)))
        weights = {}
        for root, parts in points.items():
            centers, masses, sizes = (np.array(x) for x in zip(*parts, strict=True))
            total = float(masses.sum())
            centre = masses @ centers / total if total > 0.0 else centers.mean(axis=0)
            counted = (masses > 0.0) | (sizes > 0.0)
            reach = np.linalg.norm(centers - centre, axis=-1) + sizes
            weights[root] = total, float(reach.max(where=counted, initial=0.0))
        return weights

    @cached_property
    def _points(self) -> PointMobility:
        return PointMobility(self._mech)

    def _mobility(self, shape: Shape) -> float:
        """Largest inverse effective mass of the points of a shape; zero on the ground."""
        if shape.name not in self._felt:
            body, pose = shape.placed(self._mech)
            points = [
                bump.centre + side * math.sqrt(float(np.trace(bump.squares)) / 3.0) * axis
                for bump in (bumps(shape, pose) if shape.kind != PLANE else [])
                for axis in np.eye(3)
                for side in ((-1.0, 1.0) if bump.squares.any() else (0.0,))
            ]
            self._felt[shape.name] = self._points.mobility(body, np.array(points or [pose[1]])) if body >= 0 else 0.0
        return self._felt[shape.name]


def _extent(shape: Shape) -> float:
    """Largest distance of a shape's surface from its centre; zero for planes."""
    if shape.kind == PLANE:
        return 0.0
    if shape.kind in ("sphere", "ellipsoid"):
        return max(shape.size)
    return sum(shape.size) if shape.kind == "capsule" else math.hypot(*shape.size)
