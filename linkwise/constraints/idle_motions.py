"""Idle motions for messages: of one link alone, such as the spin of a rod between two ball joints, and those in which
no actuated joint moves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..dynamics import trees as tree
from ..mechanism import Mechanism, MechanismError
from ..mechanism.checks import names_of
from .decomposition import decompose
from .equations import decomposed, refuse_structure
from .formulations import UnsuitableCoordinates
from .sizes import sizes, units
from .tolerances import LOOPS

MORE_MOTORS = "actuate at least as many joints as there are degrees of freedom, of those that move with them here"
STILL = 1e-7  # of unit motions, lengths in units of the mechanism: slower links are at rest


class IdleMotion(NamedTuple):
    """A motion of one link while all others are at rest.

    link       name of the link
    joint      the joint that carries it
    words      description of the motion, for messages
    position   name in ``q_names`` of the coordinate that moves most, which can be held
    rate       name in ``v_names`` of that coordinate
    """

    link: str
    joint: str
    words: str
    position: str
    rate: str


def idle_motions(mech: Mechanism, q: np.ndarray, null: np.ndarray | None = None) -> list[IdleMotion]:
    """The idle motions at q (nq,), one for each link that has exactly one.  Motions are those that loops allow, or the
    span of ``null`` (nv, p)."""
    null = decomposed(mech, q).null if null is None else null
    twists = tree.link_velocities(mech, q, null.T) / np.repeat([1.0, units(mech).length], 3)
    entries = []
    for body, link in enumerate(mech.link_names):
        others = np.delete(twists, body, axis=1).reshape(len(twists), -1)
        motions = decompose(others.T, 0.0)
        alone = motions.v[:, int(np.count_nonzero(motions.s > STILL)) :]
        if alone.shape[1] == 1 and len(mech.bodies) > 1:
            v = null @ alone[:, 0]
            rates = tree.coordinate_rates(mech, q, v)
            names = (mech.q_names[np.argmax(np.abs(rates))], mech.v_names[np.argmax(np.abs(v))])
            entries.append(
                IdleMotion(link, mech.bodies[body].joint, _describe_motion(link, alone[:, 0] @ twists[:, body]), *names)
            )
    return entries


def hint(mech: Mechanism, q: np.ndarray, rates: bool = False, named: Any = (), null: np.ndarray | None = None) -> str:
    """A hint on idle motions for messages about too many degrees of freedom, at the first state of q (..., nq).
    Coordinates are named by velocity (``rates``) or position; those already ``named``, also by joint, are left out."""
    motions = idle_motions(mech, q.reshape(-1, mech.nq)[0], null) if q.size else []
    known = {name for name in names_of(named) if isinstance(name, str)} if isinstance(named, (str, Sequence)) else set()
    said = [
        (motion.words, f"name {motion.rate!r} too" if rates else f"{motion.position!r} holds it")
        for motion in motions
        if known.isdisjoint((motion.rate, motion.joint))
    ]
    return "".join(f"; one of the degrees of freedom is {words}: {remedy}" for words, remedy in said)


@contextlib.contextmanager
def explain_idle_motions(mech: Mechanism, q: np.ndarray, named: Any = ()) -> Iterator[None]:
    """Add idle motions to errors about unsuitable coordinates ``named``; raise if the mechanism cannot move at all."""
    try:
        yield
    except UnsuitableCoordinates as error:
        if not error.dofs:
            refuse_structure(mech)
        raise MechanismError(f"{error}{hint(mech, q, rates=True, named=named)}") from None


def _describe_motion(link: str, twist: np.ndarray) -> str:
    """Describe a twist [omega; v] of a link in its frame."""
    angular, linear = twist[:3], twist[3:]
    slides = np.linalg.norm(angular) < STILL
    axis = linear if slides else angular
    axis = (axis / np.linalg.norm(axis)).round(6)
    axis = axis * np.sign(axis[np.flatnonzero(axis)[0]])  # the sign is arbitrary: the first nonzero number is positive
    along = ", ".join(f"{x + 0.0:.3g}" for x in axis)
    phrase = "translation of link {} along ({})" if slides else "rotation of link {} about ({})"
    return f"the {phrase.format(repr(link), along)} of its frame, in which nothing else moves"


# -- motions in which no actuated joint moves ----------------------------------------------------------------------


def advice(mech: Mechanism, q: np.ndarray, null: np.ndarray, driven: np.ndarray) -> str:
    """Advice if forces of the ``driven`` coordinates cannot produce an acceleration at q (nq,): motors at other joints,
    if that helps.  ``null`` (nv, p) is a basis of unit motions.  Floating joints have no motors."""
    null = null[:, np.abs(null).any(axis=0)]
    floating = [body.joint for body in mech.bodies if body.kind.is_free]
    floats = np.isin(np.arange(mech.nv), [k for joint in floating for k in range(mech.nv)[mech.v_index(joint)]])
    columns = sizes(mech).columns
    undriven = _undriven_motions(null, driven, columns)
    left = _undriven_motions(
        null, np.union1d(driven, np.flatnonzero(~floats)), columns
    )  # with motors at all joints that may have one
    said = []
    if undriven.shape[1] > left.shape[1] or not left.size:
        said.append(MORE_MOTORS + hint(mech, q, rates=True, null=undriven))
    if left.size:
        moving = [joint for joint in floating if np.abs((left.T / columns).T[mech.v_index(joint)]).max() > STILL]
        names, count, dofs = " and ".join(map(repr, moving)), left.shape[1], null.shape[1]
        which = _line_of_rotation(mech, q, left[:, 0], moving[0]) if count == len(moving) == 1 else ""
        said.append(
            f"in {count} of the {dofs} degrees of freedom{which} no joint moves but {names}, which no motor drives: "
            f"leave that free, and give the accelerations of {dofs - count} independent joints or coordinates alone, "
            "a={name: number} or a with independent=...; the others follow"
        )
    return "; ".join(said)


def _undriven_motions(null: np.ndarray, driven: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(nv, k): a basis of the motions in ``null`` without motion of the driven coordinates, up to the error of closed
    loops."""
    rows = null[driven] / columns[driven, None]
    rows = rows[np.linalg.norm(rows, axis=-1) > LOOPS.closed]
    return null @ decompose(rows).null if len(rows) else null


def _line_of_rotation(mech: Mechanism, q: np.ndarray, v: np.ndarray, joint: str) -> str:
    """Text on the axis of rotation of a floating link, in a motion with all links that it carries; may be empty."""
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
