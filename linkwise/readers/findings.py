"""Collects remarks of readers and reports them at the end: one summary of ignored elements, one of other remarks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from linkwise.mechanism import Mechanism, MechanismWarning, MissingConstraintWarning, Note, OmissionWarning, warn_caller
from linkwise.mechanism.elements import OF_JOINTS


class Findings:
    """Omissions and remarks of one document; equal ones at several locations are reported once."""

    def __init__(self) -> None:
        self._omissions: dict[tuple[str, str, bool], list[str]] = {}
        self._remarks: dict[str, list[str]] = {}

    def omit(self, location: str, feature: str, advice: str, constrains: bool = False) -> None:
        """Something does not act: see ``Note``."""
        self._omissions.setdefault((feature, advice, constrains), []).append(location)

    def remark(self, location: str, message: str) -> None:
        """Something is read otherwise than it may have been meant; the message continues the place."""
        locations = self._remarks.setdefault(message, [])
        if location not in locations:  # copies of an element have the same
            locations.append(location)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on ignored elements; those that constrain motion first."""
        notes = (Note(feature, tuple(where), advice, c) for (feature, advice, c), where in self._omissions.items())
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
            warn_caller("\n".join(_in_places(*remark) for remark in self._remarks.items()), MechanismWarning)


OF_BODIES = {"gravity_compensation": "held up", "fluid": "in a fluid"}


def acting_summary(mechanism: Mechanism) -> str:
    """The active force elements in one line with counts; empty if none."""
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
    """Text such as "8 joints with damping, 2 plugins", merging notes of one name."""
    where: dict[str, tuple[str, ...]] = {}
    for note in notes:
        where[note.what] = where.get(note.what, ()) + note.where
    return ", ".join(Note(feature, locations, "").counted for feature, locations in where.items())


def _in_places(message: str, locations: list[str]) -> str:
    more = f" (and {len(locations) - 1} more: {', '.join(locations[1:])})" if len(locations) > 1 else ""
    return f"{locations[0]} {message}{more}"
