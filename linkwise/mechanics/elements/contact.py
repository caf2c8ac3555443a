"""Compliant contact of a mechanism's shapes as a law like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...mechanism import ContactPair, Mechanism
from ...mechanism.shapes import is_implicit
from ..algorithms.compliant_contact import Contacts
from ..scalar import Scalar
from .law import ForceLaw, Situation


@dataclass(frozen=True)
class CompliantContact(ForceLaw):
    """All compliant contacts between the mechanism's shapes. ``explicit_step``: as for ``of_mechanism.acting_on``;
    pairs are softened to it (``ContactPair.softened``).
    """

    pairs: tuple[ContactPair, ...]
    explicit_step: float | None = None

    def act(self, at: Situation, ctrl: Sequence[Scalar], activation: Sequence[Scalar]) -> Sequence[Scalar]:
        contacts = Contacts(at.tree, at.q, at.v, self.pairs, self.explicit_step, at.reached)
        links = at.tree.links
        for i, wrench in contacts.wrenches(0.0 if at.step is None else at.step).items():
            at.push_frame(links[i].name, wrench)
        if at.step is not None:
            for i, inertia in contacts.resistances(at.step).items():
                at.resist(i, inertia)
        return ()

    def corrects_steps(self, mech: Mechanism) -> bool:
        """Whether contacts with the ground exist: their normal and friction forces depend on the end of a step."""
        return any(is_implicit(mech, pair) for pair in self.pairs)

    def energy(self, at: Situation) -> Scalar:
        return Contacts(at.tree, at.q, None, self.pairs, self.explicit_step).energy()
