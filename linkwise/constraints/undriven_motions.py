"""Motions in which no actuated joint moves, so that no force of theirs has a part in them: named in messages."""

from __future__ import annotations

import numpy as np

from ..dynamics import trees as tree
from ..mechanism import Mechanism
from .decomposition import decompose
from .idle_motions import STILL, hint
from .sizes import sizes, units
from .tolerances import LOOPS

MORE_MOTORS = "actuate at least as many joints as there are degrees of freedom, of those that move with them here"


def advice(mech: Mechanism, q: np.ndarray, null: np.ndarray, driven: np.ndarray) -> str:
    """What to do where forces of the ``driven`` coordinates cannot produce an acceleration at q (nq,), of whose motions
    ``null`` (nv, p) is a basis of unit motions: motors at other joints too, where that helps; joints that float have
    none, and what moves them alone can only follow."""
    null = null[:, np.abs(null).any(axis=0)]
    floating = [body.joint for body in mech.bodies if body.kind.is_free]
    floats = np.isin(np.arange(mech.nv), [k for joint in floating for k in range(mech.nv)[mech.v_index(joint)]])
    columns = sizes(mech).columns
    undriven = _without(null, driven, columns)
    left = _without(null, np.union1d(driven, np.flatnonzero(~floats)), columns)  # with motors wherever they may be
    said = []
    if undriven.shape[1] > left.shape[1] or not left.size:
        said.append(MORE_MOTORS + hint(mech, q, rates=True, null=undriven))
    if left.size:
        moving = [joint for joint in floating if np.abs((left.T / columns).T[mech.v_index(joint)]).max() > STILL]
        names, count, dofs = " and ".join(map(repr, moving)), left.shape[1], null.shape[1]
        which = _words(mech, q, left[:, 0], moving[0]) if count == len(moving) == 1 else ""
        said.append(
            f"in {count} of the {dofs} degrees of freedom{which} no joint moves but {names}, which no motor drives: "
            f"leave that free, and give the accelerations of {dofs - count} independent joints or coordinates alone, "
            "a={name: number} or a with independent=...; the others follow"
        )
    return "; ".join(said)


def _without(null: np.ndarray, driven: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(nv, k): a basis of the motions among ``null`` in which the driven coordinates stand still, or move by less than
    what closed loops leave unknown."""
    rows = null[driven] / columns[driven, None]
    rows = rows[np.linalg.norm(rows, axis=-1) > LOOPS.closed]
    return null @ decompose(rows).null if len(rows) else null


def _words(mech: Mechanism, q: np.ndarray, v: np.ndarray, joint: str) -> str:
    """Of a motion of a floating link with all that it carries: the line about which it rotates, if it does."""
    body = mech.body_index(joint)
    pose, twist = tree.link_poses(mech, q)[body], tree.link_velocities(mech, q, v)[body]
    angular, linear = pose[:3, :3] @ twist[:3], pose[:3, :3] @ twist[3:]
    square = angular @ angular
    if square < STILL**2 or abs(angular @ linear) > STILL * units(mech).length * square:
        return ""
    through, along = pose[:3, 3] + np.cross(angular, linear) / square, angular / np.sqrt(square)
    return (
        f", the rotation of link {mech.link_names[body]!r} with all that it carries about the line through "
        f"{_numbers(through)} along {_numbers(along)} of the world,"
    )


def _numbers(vector: np.ndarray) -> str:
    return f"({', '.join(f'{x + 0.0:.3g}' for x in vector.round(6))})"
