"""Vectors as numbers in the user's link frames, and as values per link in internal frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...mechanism import Mechanism
from ..recursions.tree import Configuration
from ..scalar import Scalar
from ..spatial import Force, Motion
from .expression import Expression, Vector
from .spaces import COORDINATE, FORCE, JOINT, LOOP, MOTION, SCALAR, Space, SpaceError

Place = tuple[int, int]  # link and component


def input_vectors(expression: Expression) -> dict[str, Space]:
    """The vectors of an expression in order of appearance, with their spaces."""
    if expression.domain is None or (expression.codomain is None and not expression.is_vector):
        raise SpaceError(
            f"nothing says on which space {expression} acts: use op.identity(op.JOINT) or another space of op"
        )
    spaces: dict[str, Space] = {}
    for part in expression.walk():
        if isinstance(part, Vector):
            if part.codomain is None:
                raise SpaceError(
                    f"{part.name} is a link vector of forces or of motions: nothing in {expression} says which"
                )
            if spaces.setdefault(part.name, part.codomain) != part.codomain:
                raise SpaceError(f"{part.name} is used both in {spaces[part.name]} and in {part.codomain}")
    return spaces


def space_size(space: Space, mechanism: Mechanism) -> int:
    """Size of a vector of a space."""
    if space == JOINT:
        return sum(body.kind.nv for body in mechanism.bodies)
    if space in (FORCE, MOTION):
        return 6 * mechanism.n_links
    if space == COORDINATE:
        return mechanism.nv
    if space == LOOP:
        return mechanism.n_constraints
    return 1 if space == SCALAR else 6


def given(at: Configuration, space: Space, array: Any) -> list[Any]:
    """A user's array as values per link."""
    if space == JOINT:
        return at.tree.per_joint(array)
    if space in (COORDINATE, LOOP):
        return [list(array)]
    if space.link:
        return [from_user(at, space, 0, array)]
    return [from_user(at, space, i, row) for i, row in enumerate(array)]


def flattened(at: Configuration, space: Space, values: Sequence[Any]) -> Any:
    """Values per link as the user's array."""
    numbers = [to_user(at, space, i, value) for i, value in enumerate(values)]
    if space in (FORCE, MOTION):
        return numbers
    if space == JOINT:
        return [x for part in numbers for x in part]
    return numbers[0][0] if space == SCALAR else numbers[0]


def places(at: Configuration, space: Space) -> list[Place]:
    """Link and component of every number of a vector, in the order of the flattened array."""
    links = range(len(at.tree.links))
    if space == JOINT:
        return [(i, k) for i in links for k in range(at.tree.links[i].joint.nv)]
    if space in (FORCE, MOTION):
        return [(i, k) for i in links for k in range(6)]
    return [(-1, k) for k in range(space_size(space, at.tree.mechanism))]


def unit_vector(at: Configuration, space: Space, j: int, k: int) -> list:
    """The vector with a one at link j, component k (in the user's frame), as values per link."""
    values: list = [None] * max(len(at.tree.links), 1)
    plain = space in (JOINT, COORDINATE, LOOP)
    size = at.tree.links[j].joint.nv if space == JOINT else space_size(space, at.tree.mechanism) if plain else 6
    numbers = [1.0 if m == k else 0.0 for m in range(size)]
    values[max(j, 0)] = numbers if plain else from_user(at, space, j, numbers)
    return values


def from_user(at: Configuration, space: Space, i: int, six: Sequence[Scalar]) -> Force | Motion:
    """Six numbers in the user's frame of link i as a force or motion in its internal frame."""
    value = Force.of(list(six)) if space.holds_forces else Motion.of(list(six))
    if space.link:
        return value
    user = at.tree.links[i].user
    return user.force_back(value) if space.holds_forces else user.motion_back(value)  # type: ignore[arg-type]


def to_user(at: Configuration, space: Space, i: int, value: Any) -> list[Scalar]:
    """A value at link i as numbers in the user's frame."""
    if space == JOINT:
        return [0.0] * at.tree.links[i].joint.nv if value is None else list(value)
    if space in (COORDINATE, LOOP):
        return [0.0] * space_size(space, at.tree.mechanism) if value is None else list(value)
    if value is None:
        return [0.0] * (6 if space.link or space in (FORCE, MOTION) else 1)
    if space in (FORCE, MOTION):
        user = at.tree.links[i].user
        value = user.force_into(value) if space == FORCE else user.motion_into(value)
    return list(value.flat()) if isinstance(value, (Force, Motion)) else [value]


def component(at: Configuration, space: Space, i: int, value: Any, m: int) -> Scalar:
    return to_user(at, space, i, value)[m]
