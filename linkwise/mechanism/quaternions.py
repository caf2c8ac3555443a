"""Quaternions from callers: of unit length, or an error.

One rule for all states, postures and targets: a quaternion with rounding errors, up to ``NOT_UNIT``, is normalised; any
other length, and zero, is an error with the joint's name (of guesses, only zero). Functions of arrays such as
``forward_dynamics`` do not check: a quaternion of any length except zero represents a rotation there. ``check_state``
reports lengths and component orders of other libraries.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.mechanics.joints import QUATERNION, Joint
from linkwise.mechanism.checks import MechanismError

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

NOT_UNIT = 1e-3  # a quaternion whose length is further from 1 than this was not meant as one


def with_unit_quaternions(mech: Mechanism, name: str, q: np.ndarray, furthest: float = NOT_UNIT) -> np.ndarray:
    """(..., nq): configurations with normalised quaternions; q itself if they are normalised. ``name`` is the
    argument's name for messages; ``furthest`` is the largest accepted error in length, unlimited for guesses.
    """
    for body in mech.bodies:
        if not body.mimic and _quaternions(body.kind):
            columns = mech.q_index(body.joint)
            numbers = q[..., columns]
            unit = unit_coordinates(body.kind, f"the quaternion of joint {body.joint!r} in {name}", numbers, furthest)
            if unit is not numbers:
                q = np.array(q)
                q[..., columns] = unit
    return q


def has_quaternions(mech: Mechanism) -> bool:
    """Whether the mechanism has quaternion coordinates."""
    return any(not body.mimic and _quaternions(body.kind) for body in mech.bodies)


def unit_coordinates(kind: Joint, label: str, values: Any, furthest: float = NOT_UNIT) -> np.ndarray:
    """(..., n): coordinates of one joint with quaternions of unit length; ``label`` names the quaternion in
    messages.
    """
    numbers = np.asarray(values)
    for columns in _quaternions(kind):
        lengths = np.linalg.norm(numbers[..., columns], axis=-1)
        off = np.abs(lengths - 1.0)
        wrong = (off > furthest) | (lengths == 0.0)
        if wrong.any():
            _refuse(label, float(lengths.flat[int(np.argmax(wrong))]))
        if (off > 8.0 * np.finfo(numbers.dtype).eps).any():  # others keep their digits
            numbers = np.array(numbers)
            numbers[..., columns] /= lengths[..., None]
    return numbers


def _refuse(label: str, length: float) -> None:
    if length == 0.0:
        raise MechanismError(
            f"{label} is zero, which is no rotation: (1, 0, 0, 0) is the one by no angle, and linkwise.neutral(mech) "
            "has it in place; linkwise.motion.check_state(mech, q) says whether q is in another library's order"
        )
    raise MechanismError(
        f"{label} is not of unit length but {length:.6g} long: divide it by its length, and give [w, x, y, z], before "
        "the position of a floating joint; linkwise.motion.check_state(mech, q) says whether q is in another library's "
        "order"
    )


@lru_cache(maxsize=256)
def _quaternions(kind: Joint) -> Sequence[list[int]]:
    """Indices of each quaternion among a joint's coordinates."""
    indices = [index for index, measure in enumerate(kind.measures("q")) if measure.of == QUATERNION]
    return [indices[i : i + 4] for i in range(0, len(indices), 4)]
