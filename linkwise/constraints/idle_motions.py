"""Motions of one link alone, such as the rotation of a rod between two balls: found, and named in messages."""

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
from .sizes import units

STILL = 1e-7  # of unit motions, lengths in units of the mechanism: links that are slower stand still


class IdleMotion(NamedTuple):
    """What a link can do while all others stand still.

    link       its name
    joint      that carries it
    words      what the motion is, for messages
    position   the name in ``q_names`` of the coordinate that moves most, which can be held
    rate       the same in ``v_names``
    """

    link: str
    joint: str
    words: str
    position: str
    rate: str


def idle_motions(mech: Mechanism, q: np.ndarray, null: np.ndarray | None = None) -> list[IdleMotion]:
    """Of all links that have just one at q (nq,), of all motions that loops allow or those of which ``null`` (nv, p) is
    a basis."""
    null = decomposed(mech, q).null if null is None else null
    twists = tree.link_velocities(mech, q, null.T) / np.repeat([1.0, units(mech).length], 3)
    found = []
    for body, link in enumerate(mech.link_names):
        others = np.delete(twists, body, axis=1).reshape(len(twists), -1)
        motions = decompose(others.T, 0.0)
        alone = motions.v[:, int(np.count_nonzero(motions.s > STILL)) :]
        if alone.shape[1] == 1 and len(mech.bodies) > 1:
            v = null @ alone[:, 0]
            rates = tree.coordinate_rates(mech, q, v)
            names = (mech.q_names[np.argmax(np.abs(rates))], mech.v_names[np.argmax(np.abs(v))])
            found.append(IdleMotion(link, mech.bodies[body].joint, _words(link, alone[:, 0] @ twists[:, body]), *names))
    return found


def hint(mech: Mechanism, q: np.ndarray, rates: bool = False, named: Any = (), null: np.ndarray | None = None) -> str:
    """What to say of them where there are more degrees of freedom than expected; q (..., nq), of which the first state
    is looked at.  The coordinate to name is one of velocities, or of positions; those that are ``named`` already, by
    their joint or by themselves, are no news."""
    motions = idle_motions(mech, q.reshape(-1, mech.nq)[0], null) if q.size else []
    known = {name for name in names_of(named) if isinstance(name, str)} if isinstance(named, (str, Sequence)) else set()
    said = [
        (one.words, f"name {one.rate!r} too" if rates else f"{one.position!r} holds it")
        for one in motions
        if known.isdisjoint((one.rate, one.joint))
    ]
    return "".join(f"; one of the degrees of freedom is {words}: {remedy}" for words, remedy in said)


@contextlib.contextmanager
def told_of_idle_motions(mech: Mechanism, q: np.ndarray, named: Any = ()) -> Iterator[None]:
    """Name them where coordinates, those that are ``named``, do not suffice; say so where nothing moves at all."""
    try:
        yield
    except UnsuitableCoordinates as error:
        if not error.dofs:
            refuse_structure(mech)
        raise MechanismError(f"{error}{hint(mech, q, rates=True, named=named)}") from None


def _words(link: str, twist: np.ndarray) -> str:
    """A twist [omega; v] of a link, in its frame."""
    angular, linear = twist[:3], twist[3:]
    slides = np.linalg.norm(angular) < STILL
    axis = linear if slides else angular
    axis = (axis / np.linalg.norm(axis)).round(6)
    axis = axis * np.sign(axis[np.flatnonzero(axis)[0]])  # either sense is meant: the first number is positive
    along = ", ".join(f"{x + 0.0:.3g}" for x in axis)
    way = "translation of link {} along ({})" if slides else "rotation of link {} about ({})"
    return f"the {way.format(repr(link), along)} of its frame, in which nothing else moves"
