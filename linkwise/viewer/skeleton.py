"""The skeleton of a mechanism, as points and directions in the world.  No matplotlib here.

A link is a stick figure: bars from its joint to the joints, loop attachments and welded frames it carries, a plate
where three or more joints lie in a plane, its mass centre.  A link that carries nothing ends where a uniform bar of
its inertia would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

import linkwise as lw

from .elements import ROD, ElementMark, element_marks

SAME_POINT = 1e-9  # metres
USUAL_SIZE, LEAST_SIZE = 0.02, 0.008  # of a joint's symbol, as a share of the picture's diagonal, of the mechanism's
FINEST = 0.2  # line, against the usual
# The length of a guide on the ground to either side of zero, where no limits say it: shares of the diagonal, and of the
# way to the nearest other joint.
GUIDE, ASIDE = 0.25, 0.5
BLADE = 0.25  # half the length of a knife edge, as a share of the longest way between joints
RIM = 32  # straight lines around a wheel
FLAT = 1e-6  # thickness over width below which points lie in a plane


@dataclass(frozen=True)
class LinkShape:
    """One link.  Points are in the link's frame as a shape, in the world as part of a sketch.

    bars     (m, 2, 3) from the joint to what the link carries, and its blades
    thin     (m, 2, 3) to its mass centre, to welded frames beside the ways to other joints, and around its wheels
    plate    (k, 3) corners, or none (0, 3)
    centre   (3,) of mass
    """

    bars: np.ndarray
    thin: np.ndarray
    plate: np.ndarray
    centre: np.ndarray

    @property
    def points(self) -> np.ndarray:
        """(N, 3): all of them."""
        return np.concatenate([self.bars.reshape(-1, 3), self.thin.reshape(-1, 3), self.plate, self.centre[None]])

    def moved(self, pose: np.ndarray) -> LinkShape:
        """The shape in another frame, in which its own frame has a pose (4, 4)."""
        rotation, position = pose[:3, :3].T, pose[:3, 3]
        return LinkShape(*(part @ rotation + position for part in (self.bars, self.thin, self.plate, self.centre)))


@dataclass(frozen=True)
class JointMark:
    """One joint, or one side of a joint that closes a loop, in the world.

    kind      the joint, such as lw.Revolute(axis)
    body      index of the link it moves or, for a side of a loop, of the link that carries it; -1 for the ground
    grounded  its fixed side is on the ground
    start     (4, 4) frame of its fixed side; that of its moving side at zero coordinates
    end       (4, 4) frame of its moving side; of the fixed side of a joint that closes a loop, ``start`` once more
    travel    from where to where it slides along its guide, zero being at ``start``; None where that is not drawn
    """

    name: str
    kind: Any
    body: int
    grounded: bool
    start: np.ndarray
    end: np.ndarray
    closes_loop: bool = False
    travel: tuple[float, float] | None = None

    @property
    def origin(self) -> np.ndarray:
        return self.end[:3, 3]

    @property
    def guide(self) -> np.ndarray:
        """(2, 3): ends of the guide of a joint on the ground; (0, 3) without a guide."""
        if self.travel is None:
            return np.zeros((0, 3))
        return self.start[:3, 3] + np.outer(self.travel, self.start[:3, :3] @ np.asarray(self.kind.slide))

    @property
    def guides_only(self) -> bool:
        """The fixed side of a joint that closes a loop, which only shows the guide of a slide."""
        return self.closes_loop and self.end is self.start


@dataclass(frozen=True)
class Sketch:
    """A mechanism in one configuration, in the world.

    links    one shape per moving link
    joints   one mark per moving joint
    loops    two marks per loop, side A and side B, which coincide if the loop is closed and does not slide
    open     error of each loop (metres, sines of angles)
    poses    (n_links, 4, 4)
    elements   springs, dampers, cylinders, gears
    named    name, index of the link and place of every named point of a planar mechanism's links that is at no joint
    """

    links: tuple[LinkShape, ...]
    joints: tuple[JointMark, ...]
    loops: tuple[tuple[JointMark, JointMark], ...]
    open: np.ndarray
    poses: np.ndarray
    elements: tuple[ElementMark, ...] = ()
    named: tuple[tuple[str, int, np.ndarray], ...] = ()

    @property
    def marks(self) -> tuple[JointMark, ...]:
        return (*self.joints, *(side for pair in self.loops for side in pair))

    @property
    def labels(self) -> list[tuple[str, int | None, np.ndarray]]:
        """Names of joints, loops, rods and points of planar links, with their links (None for rods) and positions."""
        named: list[tuple[str, int | None, np.ndarray]] = [
            (mark.name, mark.body, mark.origin) for mark in (*self.joints, *(moving for _, moving in self.loops))
        ]
        named += [(mark.name, None, 0.5 * (mark.a + mark.b)) for mark in self.elements if mark.kinds == (ROD,)]
        return [*named, *self.named]

    @cached_property
    def points(self) -> np.ndarray:
        """(N, 3): all points that a picture must contain."""
        return np.concatenate([self.own_points, *(mark.guide for mark in self.joints)])

    @cached_property
    def own_points(self) -> np.ndarray:
        """(N, 3): ``points`` without the guides of joints on the ground."""
        starts = [mark.start[:3, 3] for mark in self.marks if not is_free(mark)]
        parts = [link.points for link in self.links] + [mark.origin[None] for mark in self.marks]
        parts += [mark.points for mark in self.elements]
        return np.concatenate([*parts, np.reshape(starts, (-1, 3))])


def is_free(mark: JointMark) -> bool:
    """Whether a joint floats on the ground, so that only the position of its link matters."""
    return mark.grounded and mark.kind.is_free


class Skeleton:
    """The shapes of a mechanism's links, computed once; ``at(q)`` puts them where they are."""

    def __init__(self, mech: lw.Mechanism, passive: Any = None):
        self._passive = passive
        if not mech.n_links:
            raise ValueError(f"mechanism {mech.name!r} has no moving links: there is nothing to draw")
        self.mech = mech
        normals = _normals(mech)
        self.named = [_named(mech, index, normal) for index, normal in enumerate(normals)]
        self.shapes = [_shape(mech, index, list(self.named[index].values())) for index in range(mech.n_links)]

    def at(self, q: np.ndarray) -> Sketch:
        """The sketch at one configuration (nq,)."""
        mech = self.mech
        poses = lw.link_poses(mech, q)
        world = np.concatenate([poses, np.eye(4)[None]])  # the ground is body -1
        links = tuple(shape.moved(pose) for shape, pose in zip(self.shapes, poses, strict=True))
        starts = [world[body.parent] @ pose_of(body) for body in mech.bodies]
        joints = tuple(
            JointMark(body.joint, body.kind, index, body.parent < 0, start, world[index])
            for index, (body, start) in enumerate(zip(mech.bodies, starts, strict=True))
        )
        joints = tuple(replace(mark, travel=self._travel(mark, joints, links)) for mark in joints)
        loops = []
        for loop in closing_joints(mech):
            (a, frame_a), (b, frame_b) = (attachment(mech, loop, side) for side in "ab")
            fixed, moving = world[a] @ frame_a, world[b] @ frame_b
            side = JointMark(loop.name, loop.kind, a, a < 0, fixed, fixed, closes_loop=True)
            loops.append((side, replace(side, body=b, grounded=b < 0, end=moving)))
        errors = np.zeros(len(loops))
        if loops and not mech.constraints.waits_for_time:  # else the closed positions are unknown
            error = lw.constraints.position_error(mech, q)
            errors = np.array([np.linalg.norm(error[mech.constraints.rows(side.name)]) for side, _ in loops])
        named = tuple(
            (name, index, poses[index, :3, :3] @ point + poses[index, :3, 3])
            for index, points in enumerate(self.named)
            for name, point in points.items()
        )
        elements = self.elements(poses, joints, self._passive)
        return Sketch(links, joints, tuple(loops), errors, poses, elements, named)

    def elements(self, poses: np.ndarray, joints: Sequence[JointMark], passive: Any) -> tuple[ElementMark, ...]:
        """Rods without mass, springs, dampers, cylinders and gears, where links and joints are."""
        world = np.concatenate([poses, np.eye(4)[None]])
        bars = []
        for loop in rods(self.mech):
            (a, frame_a), (b, frame_b) = (attachment(self.mech, loop, side) for side in "ab")
            start, end = (world[a] @ frame_a)[:3, 3], (world[b] @ frame_b)[:3, 3]
            bars.append(ElementMark((ROD,), start, end, (a, b), name=loop.name))
        return (*bars, *element_marks(self.mech, passive, world, joints))

    def _travel(
        self, mark: JointMark, others: Sequence[JointMark], links: Sequence[LinkShape]
    ) -> tuple[float, float] | None:
        """Drawn ends of the guide of a joint on the ground: its limits, or some of the way to other joints."""
        if not mark.grounded or not mark.kind.slide:
            return None
        reach = float(np.linalg.norm(np.ptp(np.concatenate([link.points for link in links]), axis=0)))
        apart = np.linalg.norm([other.origin - mark.origin for other in others], axis=-1)
        nearest = float(apart[apart > 1e-3 * reach].min(initial=np.inf))
        return travel(self.mech.bodies[mark.body], min(GUIDE * reach, ASIDE * nearest), reach)


def travel(body: Any, usual: float, most: float) -> tuple[float, float] | None:
    """Ends of the travel of a slider: its limits, or ``usual`` metres to either side without limits; at most ``most``.
    None for joints that do not slide."""
    if not body.kind.slide or usual < SAME_POINT:
        return None
    (low,), (high,) = body.limits.lower, body.limits.upper
    low, high = (float(low) if np.isfinite(low) else -usual), (float(high) if np.isfinite(high) else usual)
    return float(np.clip(low, -most, most)), float(np.clip(high, -most, most))


def closing_joints(mech: lw.Mechanism) -> list[lw.constraints.Loop]:
    """Joints that close loops.  Couplings are not drawn, and contacts are where links touch."""
    return _loops_of_kind(mech, lw.extend.Joint)


def rods(mech: lw.Mechanism) -> list[lw.constraints.Loop]:
    """Rods without mass, which keep points of links at a distance."""
    return _loops_of_kind(mech, lw.contact.Distance)


def _loops_of_kind(mech: lw.Mechanism, *kinds: type) -> list[Any]:
    """Loops whose kind is one of ``kinds``."""
    return [loop for loop in mech.loops if isinstance(loop, lw.constraints.Loop) and isinstance(loop.kind, kinds)]


def bounds(sketches: Sequence[Sketch]) -> np.ndarray:
    """(2, 3): the lowest and the highest coordinates of all points."""
    points = np.concatenate([sketch.points for sketch in sketches])
    return np.array([points.min(axis=0), points.max(axis=0)])


def together(
    named: Sequence[tuple[str, int | None, np.ndarray]], within: float
) -> list[tuple[str, int | None, np.ndarray]]:
    """One label for names that stand nearer to each other than ``within`` metres."""
    groups: list[tuple[list[str], int | None, np.ndarray]] = []
    for name, link, position in named:
        near = [names for names, _, other in groups if np.linalg.norm(other - position) < within]
        if near:
            near[0].append(name)
        else:
            groups.append(([name], link, position))
    return [(", ".join(names), link, position) for names, link, position in groups]


def symbol_size(sketch: Sketch, box: np.ndarray, factor: float = 1.0) -> float:
    """Size of joints in metres, times a ``factor``: a share of the picture, less where joints are close together, but
    not less than a share of the mechanism."""
    if not (np.isfinite(factor) and factor > 0.0):
        raise ValueError(f"the size of symbols must be positive, 1 for the usual one, got {factor!r}")
    diagonal = float(np.linalg.norm(box[1] - box[0]))
    if diagonal < SAME_POINT:
        return 0.1 * factor
    origins = np.array([mark.origin for mark in sketch.marks])
    apart = np.linalg.norm(origins[:, None] - origins[None], axis=-1)
    nearest = np.where(apart > 1e-3 * diagonal, apart, np.inf).min(axis=1)
    typical = float(np.median(nearest)) if np.isfinite(nearest).any() else np.inf
    extent = min(diagonal, float(np.linalg.norm(np.ptp(sketch.points, axis=0))))
    return factor * min(max(0.16 * typical, LEAST_SIZE * extent), USUAL_SIZE * diagonal)


def fineness(size: float, box: np.ndarray) -> float:
    """The width of lines of symbols of this size, against the usual: less where they are small in the picture."""
    usual = USUAL_SIZE * float(np.linalg.norm(box[1] - box[0]))
    return min(1.0, max(FINEST, size / usual)) if usual > 0.0 else 1.0


# -- the shape of one link ----------------------------------------------------------------------------


def _shape(mech: lw.Mechanism, index: int, named: Sequence[np.ndarray]) -> LinkShape:
    """The shape of a link up to its joints and ``named`` points."""
    body = mech.bodies[index]
    origin = np.zeros(3)

    def continues(tip: np.ndarray, end: np.ndarray) -> bool:
        """Whether a tip continues the bar from the origin to ``end``."""
        return tip @ end > end @ end and np.linalg.norm(np.cross(tip, end)) < FLAT * (tip @ end)

    carried = [*_carried(mech, index), *named]
    tips = [frame.position for frame in mech.frames.values() if frame.body == index and not _is_origin(mech, frame)]
    tips = _distinct(tips, besides=[origin, *carried])
    plate = _plate(_distinct([*carried] if body.kind.is_free else [origin, *carried]))
    ends = [] if len(plate) else _distinct(carried, besides=[origin])
    if not carried:
        ends, tips = (tips, []) if len(tips) else (_rod_end(body), [])
    ends += [tip for tip in tips if any(continues(tip, end) for end in ends)]
    return LinkShape(
        bars=np.concatenate([_spokes(ends), *_blades(mech, index)]),
        thin=np.concatenate([_spokes([*tips, *_distinct([body.com], besides=[origin])]), *_rims(mech, index)]),
        plate=plate,
        centre=np.asarray(body.com),
    )


def _carried(mech: lw.Mechanism, index: int) -> list[np.ndarray]:
    """(3,) each: joints of the links that a link carries, and its sides of joints and rods that close loops."""
    carried = [
        mech.bodies[child].position
        for child in mech.tree.children[index]
        if not mech.bodies[child].kind.is_free and not _slides_past(mech, child)
    ]
    return carried + [
        frame[:3, 3]
        for loop in (*closing_joints(mech), *rods(mech))
        for holder, frame in (attachment(mech, loop, side) for side in "ab")
        if holder == index
    ]


def _is_origin(mech: lw.Mechanism, frame: Any) -> bool:
    """Whether a frame is the origin of a body of MJCF with shapes and a joint elsewhere: it may be anywhere."""
    link, joint = mech.link_names[frame.body], mech.joint_names[frame.body]
    if frame.name == link or link != f"{frame.name}/{joint}":
        return False
    return any(shape.placed(mech)[0] == frame.body for shape in mech.shapes)


def _slides_past(mech: lw.Mechanism, child: int) -> bool:
    """Whether a link without mass carries a slide that is off along its own axis: there is nothing to draw."""
    body = mech.bodies[child]
    carrier = mech.bodies[body.parent]
    if carrier.mass or not body.kind.slide:
        return False
    axis = body.rotation @ np.asarray(body.kind.slide)
    return bool(np.linalg.norm(np.cross(axis, body.position)) < SAME_POINT)


def _named(mech: lw.Mechanism, index: int, normal: np.ndarray | None) -> dict[str, np.ndarray]:
    """Frames of a link in a plane with this normal, away from joints, such as a coupler's point; one of equal ones."""
    labelled: dict[str, np.ndarray] = {}
    if normal is None:
        return labelled
    joints = [np.zeros(3), *_carried(mech, index)]
    link = mech.link_names[index].split("/")[0]  # a body of MJCF is no point of itself, wherever its joint is
    for name, frame in mech.frames.items():
        within = frame.body == index and abs(frame.position @ normal) < SAME_POINT
        if within and name != link and _distinct([frame.position], besides=[*joints, *labelled.values()]):
            labelled[name] = np.asarray(frame.position)
    return labelled


def _normals(mech: lw.Mechanism) -> list[np.ndarray | None]:
    """The normal of the plane in which all links move, in the frame of each; None where there is no such plane."""
    rotations: list[np.ndarray] = []
    hinges: list[np.ndarray] = []
    slides: list[np.ndarray] = []
    for body in mech.bodies:
        rotations.append((rotations[body.parent] if body.parent >= 0 else np.eye(3)) @ body.rotation)
        for step in body.kind.steps:
            (hinges if step.turns else slides).append(rotations[-1] @ step.axis)
    is_planar = bool(hinges) and all(body.kind.steps for body in mech.bodies)
    is_planar = is_planar and np.linalg.norm(np.cross(hinges, hinges[0]), axis=-1).max() <= FLAT
    is_planar = is_planar and np.abs(np.reshape(slides, (-1, 3)) @ hinges[0]).max(initial=0.0) <= FLAT
    return [rotation.T @ hinges[0] if is_planar else None for rotation in rotations]


def _rims(mech: lw.Mechanism, index: int) -> list[np.ndarray]:
    """(m, 2, 3) each: rims of wheels and great circles of balls of a link, with a spoke."""
    segments = []
    for loop in _loops_of_kind(mech, lw.contact.Wheel, lw.contact.Ball):
        holder, frame = attachment(mech, loop, "b")
        axes = [loop.kind.axis] if isinstance(loop.kind, lw.contact.Wheel) else np.eye(3)
        for axis in axes if holder == index else ():
            across = np.linalg.svd((frame[:3, :3] @ axis)[:, None])[0][:, 1:]  # two directions in its plane
            angles = np.linspace(0.0, 2.0 * np.pi, RIM + 1)
            ring = frame[:3, 3] + loop.kind.radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1) @ across.T
            segments.append(np.stack([ring[:-1], ring[1:]], axis=1))
            segments.append(np.stack([frame[:3, 3], ring[0]])[None])
    return segments


def _blades(mech: lw.Mechanism, index: int) -> list[np.ndarray]:
    """(1, 2, 3) each: the knife edges that a link glides on."""
    half = BLADE * max((float(np.linalg.norm(body.position)) for body in mech.bodies), default=0.0) or 0.1
    segments = []
    for loop in _loops_of_kind(mech, lw.contact.KnifeEdge):
        holder, frame = attachment(mech, loop, "b")
        if holder == index:
            ahead = half * (frame[:3, :3] @ np.asarray(loop.kind.direction))
            segments.append(np.array([[frame[:3, 3] - ahead, frame[:3, 3] + ahead]]))
    return segments


def _distinct(points: Sequence[np.ndarray], besides: Sequence[np.ndarray] = ()) -> list[np.ndarray]:
    """The points without repetitions and without ``besides``."""
    distinct: list[np.ndarray] = []
    for point in points:
        if all(np.linalg.norm(point - other) > SAME_POINT for other in (*besides, *distinct)):
            distinct.append(np.asarray(point))
    return distinct


def _plate(points: list[np.ndarray]) -> np.ndarray:
    """(k, 3): corners of the convex plate spanned by three or more points of one plane, in order; otherwise empty."""
    if len(points) < 3:
        return np.zeros((0, 3))
    middle = np.mean(points, axis=0)
    _, sizes, directions = np.linalg.svd(points - middle)
    if len(sizes) > 2 and sizes[2] > FLAT * sizes[0] or sizes[1] < 1e-3 * sizes[0]:
        return np.zeros((0, 3))
    corners = ConvexHull((points - middle) @ directions[:2].T).vertices
    return np.asarray(points)[corners]


def _rod_end(body: Any) -> list[np.ndarray]:
    """End of the uniform bar from the joint through the mass centre with the link's second moment: m s^2 / 3 on either
    side of the centre."""
    way = float(np.linalg.norm(body.com))
    if way <= SAME_POINT:
        return []
    direction = np.asarray(body.com) / way
    moment = 0.5 * np.trace(body.inertia) - direction @ body.inertia @ direction
    return [body.com + direction * np.sqrt(max(3.0 * moment / body.mass, 0.0) if body.mass > 0.0 else 0.0)]


def _spokes(ends: Sequence[np.ndarray]) -> np.ndarray:
    """(m, 2, 3)"""
    return np.array([[np.zeros(3), end] for end in ends]).reshape(-1, 2, 3)


def pose_of(placed: Any) -> np.ndarray:
    """(4, 4) of anything with a rotation and a position."""
    return matrix(placed.rotation, placed.position)


def matrix(rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """(4, 4) of a pose."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, position
    return pose


def attachment(mech: lw.Mechanism, loop: lw.constraints.Loop, side: str) -> tuple[int, np.ndarray]:
    """The link that carries a side of a loop's joint and the side's frame (4, 4) in that link's frame."""
    frame = mech.frame(getattr(loop, f"link_{side}"))
    return frame.body, pose_of(frame) @ matrix(*getattr(loop, f"pose_{side}"))
