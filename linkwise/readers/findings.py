"""What readers come across, told at the end in few words: one summary of what does not act, one of other remarks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from linkwise.mechanism import Mechanism, MechanismWarning, MissingConstraintWarning, Note, OmissionWarning, warn_caller
from linkwise.mechanism.elements import OF_JOINTS


class Findings:
    """Collects omissions and remarks of one document; those that differ in their place only are told once."""

    def __init__(self) -> None:
        self._omissions: dict[tuple[str, str, bool], list[str]] = {}
        self._remarks: dict[str, list[str]] = {}

    def omit(self, place: str, what: str, advice: str, constrains: bool = False) -> None:
        """Something does not act: see ``Note``."""
        self._omissions.setdefault((what, advice, constrains), []).append(place)

    def remark(self, place: str, message: str) -> None:
        """Something is read otherwise than it may have been meant; the message continues the place."""
        places = self._remarks.setdefault(message, [])
        if place not in places:  # copies of an element have the same
            places.append(place)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What does not act; first what holds parts together."""
        notes = (Note(what, tuple(where), advice, c) for (what, advice, c), where in self._omissions.items())
        return tuple(sorted(notes, key=lambda note: not note.constrains))

    def told(self, mechanism: Mechanism, source: str) -> Mechanism:
        """The mechanism with the notes; warns once of each kind of finding."""
        self.tell_remarks()
        known = dataclasses.replace(mechanism.annotations, notes=(*mechanism.annotations.notes, *self.notes))
        mechanism = dataclasses.replace(mechanism, annotations=known)
        if mechanism.notes:
            apart = any(note.constrains for note in mechanism.notes)
            category = MissingConstraintWarning if apart else OmissionWarning
            acting = acting_summary(mechanism)
            told = f"{acting}; {summary(mechanism.notes)}" if acting else summary(mechanism.notes)
            warn_caller(f"{source}: {told}; mech.notes says where and what to do", category)
        return mechanism

    def tell_remarks(self) -> None:
        """Warn of all remarks at once."""
        if self._remarks:
            warn_caller("\n".join(_in_places(*one) for one in self._remarks.items()), MechanismWarning)


OF_BODIES = {"gravity_compensation": "held up", "fluid": "in a fluid"}


def acting_summary(mechanism: Mechanism) -> str:
    """What acts, in one line with counts; nothing if nothing does."""
    counts = [_counted(kind, len(names)) for kind, names in mechanism.forces.active.items()]
    return f"acting: {', '.join(counts)}" if counts else ""


def _counted(kind: str, count: int) -> str:
    """ "8 joints with damping", "1 actuator"."""
    if kind in OF_JOINTS:
        return f"{count} joint{'s' * (count != 1)} with {kind}"
    if kind in OF_BODIES:
        return f"{count} {'body' if count == 1 else 'bodies'} {OF_BODIES[kind]}"
    word = kind.removesuffix("s")
    return f"{count} {word + 's' * (count != 1)}"


def summary(notes: Sequence[Note]) -> str:
    """All notes in one line, with counts."""
    holding, acting = (_all_counted([note for note in notes if note.constrains is held]) for held in (True, False))
    parts = [f"not read, so that what it holds together comes apart: {holding}"] if holding else []
    parts += [f"not acting: {acting}"] if acting else []
    return "; ".join(parts)


def _all_counted(notes: Sequence[Note]) -> str:
    """ "8 joints with damping, 2 plugins": those of one name together, whatever is advised about each."""
    where: dict[str, tuple[str, ...]] = {}
    for note in notes:
        where[note.what] = where.get(note.what, ()) + note.where
    return ", ".join(Note(what, places, "").counted for what, places in where.items())


def _in_places(message: str, places: list[str]) -> str:
    more = f" (and {len(places) - 1} more: {', '.join(places[1:])})" if len(places) > 1 else ""
    return f"{places[0]} {message}{more}"
