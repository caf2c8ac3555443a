"""Compliant contact between shapes of a mechanism: where they touch, with what force, and the wrenches on links.

Every pair of shapes is one or several elementary contacts: an ellipsoid (a ball, a point) against a plane, a ball or
half of a line segment with a radius against a box, two such segments, or two convex shapes by their support functions.
All that a plane of the ground needs of a link is its normal and height as the link sees them, three numbers and one
that a sweep from base to tip propagates; other pairs meet in the world's axes.  The cost is linear in links and pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...mechanism import PLANE, Bump, ContactPair, Pose, Shape, bumps
from ...mechanism.elements import CONTACT_FRICTION
from ...mechanism.shapes import ROUND, by_parts, by_supports, presses_back, summands
from ..links.closest_points import CENTRED, Nearest, closest_of_segments, point_from_box, segment_from_box
from ..links.contact_force import Law, Response, at_least, contact_response, elastic_energy, explicit_response
from ..links.convex_distance import Separation, Sides, Summand, separations
from ..links.kinematics import velocity_base_to_tip
from ..recursions.sweep import base_to_tip
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar, is_zero, select, sqrt
from ..spatial import ArticulatedInertia, Force, Matrix3, Motion, Symmetric3, Vector3
from ..spatial.motion import NO_FORCE, NO_MOTION
from ..spatial.pose import Pose as WorldPose
from ..spatial.pose import beyond
from ..spatial.three import IDENTITY, ZERO
from .algorithm import algorithm
from .kinematics import internal_poses

CONTACT = "forces that follow from depths and velocities of shapes, not linear in them"

Six = tuple[Scalar, ...]


class _VariedLaw(NamedTuple):
    """A ``ContactLaw`` whose friction is an input."""

    stiffness: float
    dissipation: float
    damping: float
    friction: Scalar
    slip_speed: float
    smoothing: float
    margin: float


class Placed(NamedTuple):
    """A shape, the body that carries it (-1: the ground), and its pose in that body's link frame."""

    body: int
    pose: Pose
    shape: Shape


class Touch(NamedTuple):
    """An elementary contact, along the axes of ``body_a``'s link frame, or of the world where ``in_world``.

    normal   from b to a
    depth    by which the shapes are in each other, negative if they are apart
    point    where they touch
    bound    1 / b of steps that are explicit (``links/contact_force.py``)
    mass     about the least that the contact feels
    load     the weight that bounds the spring where a step takes it explicitly
    """

    law: Law
    body_a: int
    body_b: int
    in_world: bool
    normal: Vector3
    depth: Scalar
    point: Vector3
    bound: float = 0.0
    mass: float = math.inf
    load: float = math.inf

    @property
    def pressed(self) -> Scalar:
        """The depth that the law is about."""
        return self.depth + self.law.margin


class Contacts:
    """Contacts of a tree in one configuration, by default of all pairs. Forces need velocities; implicit forces
    improve with an estimate ``reached`` of the velocities at the end of the step.
    """

    def __init__(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        v: Sequence[Scalar] | None = None,
        pairs: Sequence[ContactPair] | None = None,
        explicit_step: float | None = None,
        reached: Sequence[Scalar] | None = None,
    ):
        self._tree, self._mech = tree, tree.mechanism
        self._at = Configuration(tree, q)
        self._v, self._reached = v, reached
        self._shared: dict[int, Scalar] = {}
        self._seen_planes: dict[tuple[float, ...], list[tuple[Vector3, Scalar]]] = {}
        pairs = self._mech.contact_pairs if pairs is None else pairs
        placed = ((pair.name, self._placed(pair)) for pair in pairs)
        convex = {name: self._sides(a, b) for name, (a, b) in placed if by_supports(a.shape, b.shape)}
        separated = dict(zip(convex, separations(list(convex.values())), strict=True))
        self.touches = [
            touch._replace(
                bound=0.0 if explicit_step is None else explicit_step / pair.mass,
                mass=pair.mass,
                load=pair.load,
            )
            for pair in pairs
            for touch in self._touches(pair, separated)
        ]

    def _placed(self, pair: ContactPair) -> tuple[Placed, Placed]:
        a, b = (Placed(*shape.placed(self._mech), shape) for shape in map(self._mech.contact.shape, pair.shapes))
        return a, b

    # -- where shapes touch ---------------------------------------------------------------------------------------

    def _touches(self, pair: ContactPair, separated: Mapping[str, Separation]) -> list[Touch]:
        (a, b), law = self._placed(pair), self._law(pair)
        if pair.name in separated:
            return [self._apart(law, a, b, separated[pair.name])]
        if not by_parts(b.shape):
            return [self._segments(law, a, b)]
        if b.shape.kind != PLANE:
            return self._contacts_with_box(law, a, b)
        parts = bumps(a.shape, a.pose)
        if b.body < 0:
            return [self._contact_with_ground(law, a.body, part, b.pose) for part in parts]
        return [self._contact_with_plane(law, a.body, part, b.body, b.pose) for part in parts]

    def _law(self, pair: ContactPair) -> Law:
        """Parameters of a contact: those of the pair, except for parameters that are inputs."""
        friction = self._varied.get(pair.name)
        if friction is None:
            return pair.law
        return _VariedLaw(**{**vars(pair.law), "friction": np.asarray(friction).item()})

    @cached_property
    def _varied(self) -> dict[str, Scalar]:
        """Coefficients of friction that are not the mechanism's own, by pair."""
        varied = self._tree.numbers_that_act
        names = ((pair.name, (CONTACT_FRICTION, k)) for k, pair in enumerate(self._mech.contact_pairs))
        return {name: varied[key] for name, key in names if key in varied}

    def _contact_with_ground(self, law: Law, body: int, part: Bump, plane: Pose) -> Touch:
        """A part of a link against a plane of the ground, in the link's own axes."""
        normal, height = self._plane_seen(plane)[body]
        centre = Vector3(*part.centre.tolist())
        reach, point = _lowest(part, centre, normal)
        return Touch(law, body, -1, False, normal, reach - height - normal.dot(centre), point)

    def _plane_seen(self, plane: Pose) -> list[tuple[Vector3, Scalar]]:
        """The normal of a plane of the ground in every link's frame, and the height of the link's origin above it."""
        normal = Vector3(*plane[0][:, 2].tolist())
        offset = float(plane[0][:, 2] @ plane[1])
        key = (*normal, offset)
        if key not in self._seen_planes:

            def step(i: int, parent: tuple[Vector3, Scalar] | None) -> tuple[Vector3, Scalar]:
                above, height = parent or (normal, -offset)
                transform = self._at.joint_kinematics[i].transform
                return transform.vector_into(above), height + above.dot(transform.position())

            internal = base_to_tip(self._tree.links, "the ground as links see it", step)
            self._seen_planes[key] = [
                (link.user.vector_into(n), h + n.dot(link.user.position()))
                for link, (n, h) in zip(self._tree.links, internal, strict=True)
            ]
        return self._seen_planes[key]

    def _contact_with_plane(self, law: Law, body_a: int, part: Bump, body_b: int, plane: Pose) -> Touch:
        """A part of a link against a plane that moves, in the world's axes."""
        normal = self._direction(body_b, plane[0][:, 2])
        centre = self._point(body_a, part.centre)
        rotation, _ = self._pose(body_a)
        seen = rotation.T @ normal
        reach, offset = _lowest(part, ZERO, seen)
        depth = reach - normal.dot(centre - self._point(body_b, plane[1]))
        return Touch(law, body_a, body_b, True, normal, depth, centre + rotation @ offset)

    def _contacts_with_box(self, law: Law, a: Placed, b: Placed) -> list[Touch]:
        """Contacts with a box: balls and corners touch at its closest point, or on the closest face if they are
        inside; a capsule by both halves. Boxes also touch by corners of the second in faces of the first.
        """
        size, parts = b.shape.size, [part.centre for part in bumps(a.shape, a.pose)]
        radius = a.shape.size[0] if a.shape.kind in ROUND else 0.0
        if a.shape.kind == "capsule":
            half, middle, axis = a.shape.size[1], a.pose[1], a.pose[0][:, 2] * a.shape.size[1]
            seen, along = self._seen_by(b, self._point(a.body, middle)), self._direction_seen_by(b, a.body, axis)
            halves = segment_from_box(seen, along, half, size)
            points = [
                Vector3(*middle.tolist()) + Vector3(*axis.tolist()) * nearest_point.along for nearest_point in halves
            ]
            return [
                self._off_a_box(law, a, b, radius, *nearest_point) for nearest_point in zip(points, halves, strict=True)
            ]
        nearest = [point_from_box(self._seen_by(b, self._point(a.body, centre)), size) for centre in parts]
        points = [Vector3(*centre.tolist()) for centre in parts]
        touches = [
            self._off_a_box(law, a, b, radius, *nearest_point) for nearest_point in zip(points, nearest, strict=True)
        ]
        return touches + (self._corners_within(law, a, b) if presses_back(a.shape, b.shape) else [])

    def _off_a_box(self, law: Law, a: Placed, b: Placed, radius: float, centre: Vector3, nearest: Nearest) -> Touch:
        """A ball about a point of a link against a box.  In the world's axes, or where the box is fixed to the ground
        in the link's own."""
        rotation, position = self._pose(a.body)
        normal = self._pose(b.body)[0] @ (Matrix3.from_rows(b.pose[0].tolist()) @ nearest.normal)
        depth, moves = radius - nearest.distance, b.body >= 0
        normal, centre = (normal, rotation @ centre + position) if moves else (rotation.T @ normal, centre)
        return Touch(law, a.body, b.body, moves, normal, depth, centre - normal * (radius - 0.5 * depth))

    def _corners_within(self, law: Law, a: Placed, b: Placed) -> list[Touch]:
        """Corners of a fixed box in the faces of a moving one, in the axes of the moving link."""
        axes, middle = Matrix3.from_rows(a.pose[0].tolist()), Vector3(*a.pose[1].tolist())
        touches = []
        for corner in bumps(b.shape, b.pose):
            seen = self._seen_by(a, Vector3(*corner.centre.tolist()))
            distance, away, _ = point_from_box(seen, a.shape.size)
            point = axes @ (seen - away * (0.5 * distance)) + middle
            touches.append(Touch(law, a.body, -1, False, axes @ -away, -distance, point))
        return touches

    def _seen_by(self, box: Placed, point: Vector3) -> Vector3:
        """A world point in a shape's axes, from its centre."""
        link, axes = self._pose(box.body)[0], Matrix3.from_rows(box.pose[0].tolist())
        return axes.T @ (link.T @ (point - self._point(box.body, box.pose[1])))

    def _direction_seen_by(self, box: Placed, body: int, direction: np.ndarray) -> Vector3:
        """A direction of a link in the axes of a shape."""
        link, axes = self._pose(box.body)[0], Matrix3.from_rows(box.pose[0].tolist())
        return axes.T @ (link.T @ self._direction(body, direction))

    def _sides(self, a: Placed, b: Placed) -> Sides:
        """Two convex shapes along the axes of the second.  If their centres coincide, the first goes with gravity."""
        gravity = np.array(self._mech.gravity)
        down = gravity / np.linalg.norm(gravity) if gravity.any() else np.array([0.0, 0.0, -1.0])
        (radius_a, first), (radius_b, second) = summands(a.shape), summands(b.shape)
        turned = [a.pose[0] @ axes for axes in first]
        return Sides(
            self._seen_by(b, self._point(a.body, a.pose[1])),
            (
                [_summand(axes, [self._direction_seen_by(b, a.body, axis) for axis in axes.T]) for axes in turned],
                [_summand(axes, [Vector3(*axis.tolist()) for axis in axes.T]) for axes in second],
            ),
            (radius_a, radius_b),
            self._axes(b).T @ Vector3(*down.tolist()),
        )

    def _apart(self, law: Law, a: Placed, b: Placed, apart: Separation) -> Touch:
        """Two convex shapes.  In the world's axes, or where the second is fixed to the ground in the link's own."""
        (rotation, position), axes, moves = self._pose(a.body), self._axes(b), b.body >= 0
        normal, point = axes @ apart.normal, axes @ apart.point + self._point(b.body, b.pose[1])
        if not moves:
            normal, point = rotation.T @ normal, rotation.T @ (point - position)
        return Touch(law, a.body, b.body, moves, normal, -apart.gap, point)

    def _axes(self, side: Placed) -> Matrix3:
        """The axes of a shape in the world."""
        return self._pose(side.body)[0].times(Matrix3.from_rows(side.pose[0].tolist()))

    def _segments(self, law: Law, *sides: Placed) -> Touch:
        """Two balls or capsules: the points of their axes that are closest to each other."""
        (body_a, _, a), (body_b, _, b) = sides
        centres = [self._point(body, pose[1]) for body, pose, _ in sides]
        axes = [
            self._direction(body, pose[0][:, 2] * shape.size[1]) if shape.kind == "capsule" else None
            for body, pose, shape in sides
        ]
        closest = closest_of_segments(
            centres, axes, [shape.size[1] if shape.kind == "capsule" else 0.0 for *_, shape in sides]
        )
        between = closest[0] - closest[1]
        radii = a.size[0] + b.size[0]
        distance = sqrt(between.dot(between) + CENTRED * radii**2)  # axes may meet
        normal = between * (1.0 / distance)
        depth = radii - distance
        middle = closest[1] + normal * (b.size[0] - 0.5 * depth)
        return Touch(law, body_a, body_b, True, normal, depth, middle)

    @cached_property
    def _poses(self) -> list[WorldPose]:
        """Poses of the links' user frames."""
        internal = internal_poses(self._tree, self._at.joint_kinematics)
        return [beyond(pose, link.user) for pose, link in zip(internal, self._tree.links, strict=True)]

    def _pose(self, body: int) -> WorldPose:
        return self._poses[body] if body >= 0 else (IDENTITY, ZERO)

    def _point(self, body: int, point: np.ndarray) -> Vector3:
        """A point of a link, in the world."""
        rotation, position = self._pose(body)
        return rotation @ Vector3(*point.tolist()) + position

    def _direction(self, body: int, direction: np.ndarray) -> Vector3:
        return self._pose(body)[0] @ Vector3(*direction.tolist())

    # -- velocities and forces ------------------------------------------------------------------------------------

    @cached_property
    def _velocities(self) -> list[Motion]:
        assert self._v is not None
        return self._velocities_of_links(self._v)

    @cached_property
    def _reached_velocities(self) -> list[Motion] | None:
        return None if self._reached is None else self._velocities_of_links(self._reached)

    def _velocities_of_links(self, v: Sequence[Scalar]) -> list[Motion]:
        """Velocities of links in their user frames."""
        joint_velocities = self._tree.velocities(v)

        def step(i: int, parent: Motion | None) -> Motion:
            return velocity_base_to_tip(self._at.joint_kinematics[i], parent or NO_MOTION, joint_velocities[i])

        internal = base_to_tip(self._tree.links, "velocities of what touches", step)
        return [link.user.motion_into(motion) for link, motion in zip(self._tree.links, internal, strict=True)]

    def _velocity_of(self, velocities: list[Motion], body: int, touch: Touch) -> Vector3:
        """Velocity of the touching point of a body, along the axes of the contact."""
        if body < 0:
            return ZERO
        omega, linear = velocities[body]
        if not touch.in_world:
            return linear + omega.cross(touch.point)
        rotation, position = self._pose(body)
        return rotation @ linear + (rotation @ omega).cross(touch.point - position)

    def responses(self, step: Scalar = 0.0) -> list[Response]:
        """Forces on the first side of every contact, along its axes. With ``step`` these are the forces of a step,
        implicit where the other side is the ground.
        """
        return [self._response(touch, step) for touch in self.touches]

    def _response(self, touch: Touch, step: Scalar) -> Response:
        def velocity(of: list[Motion]) -> Vector3:
            return self._velocity_of(of, touch.body_a, touch) - self._velocity_of(of, touch.body_b, touch)

        now = velocity(self._velocities)
        if touch.in_world and not is_zero(step):
            count_a, count_b = self._sharing(touch.body_a), self._sharing(touch.body_b)
            sharing = at_least(select(count_a < count_b, count_b, count_a), 1.0)
            return explicit_response(touch.law, touch.normal, touch.pressed, now, step, touch.mass, sharing, touch.load)
        later = None if touch.in_world else self._reached_velocities
        reached = None if later is None else velocity(later)
        bounds = touch.bound, touch.mass, reached, touch.load
        return contact_response(touch.law, touch.normal, touch.pressed, now, step, *bounds)

    def _sharing(self, body: int) -> Scalar:
        """Number of contacts between a link and other moving links."""
        if body not in self._shared:
            touches = (touch for touch in self.touches if touch.in_world and body in (touch.body_a, touch.body_b))
            count = sum((select(0.0 < touch.pressed, 1.0, 0.0) for touch in touches), 0.0)
            self._shared[body] = count if body >= 0 else 0.0
        return self._shared[body]

    def wrenches(self, step: Scalar = 0.0) -> dict[int, Force]:
        """Wrenches on links, at the origins of their user frames."""
        total: dict[int, Force] = {}
        for touch, response in zip(self.touches, self.responses(step), strict=True):
            for body, push in ((touch.body_a, response.force), (touch.body_b, -response.force)):
                if body >= 0:
                    total[body] = total.get(body, NO_FORCE) + self._force_on_link(body, touch, push)
        return total

    def resistances(self, step: Scalar) -> dict[int, ArticulatedInertia]:
        """Resistance of ground contacts to accelerations of links during a step h, as an added inertia h X* C X at the
        links' origins in their user frames. X maps to the velocity of the contact point and C is its resistance.
        Contacts between moving links are explicit (``explicit_response``).
        """
        total: dict[int, ArticulatedInertia] = {}
        for touch, response in zip(self.touches, self.responses(step), strict=True):
            if not touch.in_world:
                resistance = Symmetric3(*(step * x for x in response.resistance(touch.normal)))
                at_link = at_point(resistance, touch.point)
                known = total.get(touch.body_a)
                total[touch.body_a] = at_link if known is None else known + at_link
        return total

    def _force_on_link(self, body: int, touch: Touch, force: Vector3) -> Force:
        point = touch.point
        if touch.in_world:
            rotation, position = self._pose(body)
            point, force = rotation.T @ (point - position), rotation.T @ force
        return Force(point.cross(force), force)

    def energy(self) -> Scalar:
        """The energy of the contacts' springs."""
        return sum((elastic_energy(touch.law, touch.pressed, touch.bound, touch.load) for touch in self.touches), 0.0)

    def in_world(self, touch: Touch, vector: Vector3, is_point: bool = False) -> Vector3:
        """A vector or point of a contact in the world's axes."""
        if touch.in_world:
            return vector
        rotation, position = self._pose(touch.body_a)
        return rotation @ vector + position if is_point else rotation @ vector


def _lowest(part: Bump, centre: Vector3, normal: Vector3) -> tuple[Scalar, Vector3]:
    """Extent sqrt(n . A n) of a part below its centre against a normal, and the lowest point c - A n /
    sqrt(n . A n).
    """
    if part.radius is not None:
        return part.radius, centre - normal * part.radius
    across = Matrix3.from_rows(part.squares.tolist()) @ normal
    reach = sqrt(normal.dot(across))
    return reach, centre - across * (1.0 / reach)


def _summand(axes: np.ndarray, seen: Sequence[Vector3]) -> Summand:
    """A part of a shape with the half axes (3, n), which are ``seen`` along the axes of another one."""
    return Summand(tuple(seen), float(np.linalg.norm(axes)) / math.sqrt(axes.shape[1]))


def at_point(resistance: Symmetric3, point: Vector3) -> ArticulatedInertia:
    """X* C X with X = [-p~, 1]: what a resistance C at the point p is at the origin."""
    columns = [point.cross(resistance.row(k)) for k in range(3)]  # of p~ C, as C is symmetric
    coupling = Matrix3(*columns).T
    return ArticulatedInertia(Symmetric3.from_rows([point.cross(row) for row in coupling]), coupling, resistance)


# -- algorithms -------------------------------------------------------------------------------------------------


@algorithm(("q", "v"), "wrenches", options=("explicit",), reason=CONTACT)
def contact_wrenches(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], explicit: float = False) -> list[Six]:
    """(n_links, 6): what contact does to every link, in link frames."""
    wrenches = _all_of(tree, q, v, explicit).wrenches()
    return [wrenches.get(i, NO_FORCE).flat() for i in range(len(tree.links))]


@algorithm(
    ("q", "v"),
    options=("explicit",),
    reason=CONTACT,
    sizes={"contact_points": lambda mech: (len(mech.contact.parts), 10)},
)
def contact_points(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], explicit: float = False) -> list[Six]:
    """(n, 10): gap, point, normal and force on the first side of every elementary contact, in the world's axes."""
    contacts = _all_of(tree, q, v, explicit)
    return [
        (
            -touch.depth,
            *contacts.in_world(touch, touch.point, is_point=True),
            *contacts.in_world(touch, touch.normal),
            *contacts.in_world(touch, response.force),
        )
        for touch, response in zip(contacts.touches, contacts.responses(), strict=True)
    ]


def _all_of(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar] | None, explicit: float) -> Contacts:
    """All contacts with friction limited by its cone only; with the bound of explicit methods (True); or as explicit
    steps of the given length use them.
    """
    pairs = tree.mechanism.contact_pairs
    if isinstance(explicit, bool):
        return Contacts(tree, q, v, pairs if explicit else [pair.without_bound for pair in pairs])
    if not explicit > 0.0:
        raise ValueError(f"explicit is True, False or the length of explicit steps, not {explicit!r}")
    return Contacts(tree, q, v, [pair.softened(explicit) for pair in pairs], explicit)


@algorithm(("q",), "energy", options=("explicit",), reason=CONTACT)
def contact_energy(tree: Tree, q: Sequence[Scalar], explicit: float = False) -> Scalar:
    """(): what the springs of all contacts hold."""
    return _all_of(tree, q, None, explicit).energy()
