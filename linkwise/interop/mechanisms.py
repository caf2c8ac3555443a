"""Conversion between two linkwise mechanisms with the same joints in another order, such as one that was saved and
loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import linkwise as lw

from .conversion import Conversion
from .joints import Elsewhere, Same
from .pairing import Foreign, paired


def to_mechanism(mech: lw.Mechanism, other: lw.Mechanism, others: Iterable[str] = ()) -> Conversion:
    """A conversion of states, forces and matrices to the joint order of another mechanism with the same joints. A saved
    and reloaded mechanism has depth-first order (MJCF) or composed joints.

    others   names of joints of the other mechanism that are locked in ``mech``: they stay at ``other.initial``
    """
    there = {}
    for body in other.bodies:
        if not body.mimic:
            q, v = range(other.nq)[other.q_index(body.joint)], range(other.nv)[other.v_index(body.joint)]
            there[body.joint] = Foreign(list(q), list(v), body.kind.nv == 6, body.kind.kind_name())

    def chart(body: Any, joint: Foreign) -> Same:
        if not body.kind.is_free or body.parent >= 0:
            return Same()
        (twin,) = (
            twin_body
            for twin_body in other.bodies
            if not twin_body.mimic and other.v_index(twin_body.joint).start == joint.v[0]
        )
        return Elsewhere(twin.rotation.T @ body.rotation, twin.rotation.T @ (body.position - twin.position))

    return Conversion(paired(mech, "linkwise", there, chart, np.array(other.initial), other.nv, others), forth=True)
