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
        contacts, links = Contacts(at.tree, at.q, at.v, self.pairs), at.tree.links
        for i, wrench in contacts.wrenches(0.0 if at.step is None else at.step).items():
            at.push_frame(links[i].name, wrench)
        if at.step is not None:
            for i, inertia in contacts.resistances(at.step).items():
                at.resist(i, inertia)
        return ()

    def energy(self, at: Situation) -> Scalar:
        return Contacts(at.tree, at.q, None, self.pairs).energy()
