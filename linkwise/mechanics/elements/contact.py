"""Compliant contact of a mechanism's shapes as a law like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...mechanism import ContactPair
from ..algorithms.compliant_contact import Contacts
from ..scalar import Scalar
from .law import ForceLaw, Situation


@dataclass(frozen=True)
class CompliantContact(ForceLaw):
    """All contacts together; shapes are those of the mechanism."""

    pairs: tuple[ContactPair, ...]

    def act(self, at: Situation, ctrl: Sequence[Scalar], activation: Sequence[Scalar]) -> Sequence[Scalar]:
        wrenches = Contacts(at.tree, at.q, at.v, self.pairs).wrenches()
        for link, wrench in zip(at.tree.links, wrenches, strict=True):
            if any(not isinstance(x, float) or x for x in wrench.flat()):
                at.push_frame(link.name, wrench)
        return ()

    def energy(self, at: Situation) -> Scalar:
        return Contacts(at.tree, at.q, None, self.pairs).energy()
