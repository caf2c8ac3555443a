"""Velocity and acceleration of a frame and of its origin, for observers at rest.

The rate of the components of a velocity [omega; v] is the spatial acceleration; it transforms between frames like a
velocity.  The acceleration of the point at the frame's origin, the classical acceleration, adds omega x v.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..operators.expression import Expression
from ..operators.plan import evaluate
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar
from ..spatial import Motion
from ..spatial.motion import NO_MOTION
from . import expressions as ex
from .algorithm import algorithm
from .jacobians import OBSERVERS, require_frame
from .kinematics import path_transform

Six = tuple[Scalar, ...]


@algorithm(
    ("q", "v"),
    "velocity",
    options=("link", "frame"),
    expression=lambda mech, link, frame="link": ex.frame_velocity(mech, link) if frame == "link" else None,
    reason=OBSERVERS,
)
def frame_velocity(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], link: str, frame: str = "link") -> Six:
    """(6,): [omega; v] as an observer sees it (``jacobians.py``)."""
    at = Configuration(tree, q)
    return _observed(at, link, frame, _value_at_frame(at, ex.frame_velocity(tree.mechanism, link), v=v)).flat()


@algorithm(
    ("q", "v", "a"),
    "acceleration",
    options=("link", "frame", "classical"),
    expression=lambda mech, link, frame="link", classical=False: (
        ex.frame_acceleration(mech, link) if frame == "link" and not classical else None
    ),
    reason=OBSERVERS,
)
def frame_acceleration(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    link: str,
    frame: str = "link",
    classical: bool = False,
) -> Six:
    """(6,): spatial, or classical: with omega x v of the velocity for the same observer."""
    at, vectors = Configuration(tree, q), {"v": v, "a": a}
    if classical and frame != "world":
        return _observed(at, link, frame, _point_acceleration(at, link, ex.INERTIAL_ACCELERATIONS, **vectors)).flat()
    acceleration = _value_at_frame(at, ex.frame_acceleration(tree.mechanism, link), **vectors)
    seen = _observed(at, link, frame, acceleration)
    if classical:
        velocity = _observed(at, link, frame, _value_at_frame(at, ex.frame_velocity(tree.mechanism, link), v=v))
        seen = Motion(seen.angular, seen.linear + velocity.angular.cross(velocity.linear))
    return seen.flat()


@algorithm(
    ("q", "v"),
    "acceleration",
    options=("link", "frame"),
    expression=lambda mech, link, frame="link": (
        ex.jacobian_rate_times_velocity(mech, link) if frame == "link" else None
    ),
    reason=OBSERVERS,
)
def jacobian_rate_times_velocity(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], link: str, frame: str = "link"
) -> Six:
    """(6,): dJ/dt v. For an observer who moves with the frame's origin without rotating, its linear part is the
    acceleration of that point."""
    at = Configuration(tree, q)
    if frame == "world_aligned":
        return _observed(at, link, frame, _point_acceleration(at, link, ex.phi.T @ ex.a, v=v)).flat()
    return _observed(
        at, link, frame, _value_at_frame(at, ex.jacobian_rate_times_velocity(tree.mechanism, link), v=v)
    ).flat()


def _value_at_frame(at: Configuration, expression: Expression, **vectors: Any) -> Motion:
    """The value of an expression B* x; zero for the ground."""
    (motion,) = evaluate(expression, at, **vectors)
    return NO_MOTION if motion is None else motion


def _point_acceleration(
    at: Configuration, link: str, accelerations: Expression, v: Sequence[Scalar], **more: Any
) -> Motion:
    """The classical acceleration of a frame in its axes: the acceleration of the link's internal origin plus
    omega x (omega x p) of the lever arm p."""
    body, transform = at.to_frame(link)
    if body < 0:
        return NO_MOTION
    moved = transform.motion_into(evaluate(accelerations, at, v=v, **more)[body])
    omega = evaluate(ex.LINK_VELOCITIES, at, v=v)[body].angular
    added = transform.vector_into(omega.cross(omega.cross(transform.position())))
    return Motion(moved.angular, moved.linear + added)


def _observed(at: Configuration, link: str, frame: str, motion: Motion) -> Motion:
    """A motion expressed in the frame's axes at its origin, for the chosen observer."""
    require_frame(frame)
    if frame == "link":
        return motion
    transform = path_transform(at, link)
    if frame == "world":
        return transform.motion_back(motion)
    return Motion(transform.vector_back(motion.angular), transform.vector_back(motion.linear))
