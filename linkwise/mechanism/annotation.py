"""Data of a mechanism that no equation of motion uses: notes on ignored parts of its file, named postures and groups.

None of it changes a result of dynamics, so that mechanisms which differ in nothing else are equal.  Everything is kept
by the names of joints: it stays true when joints are locked or loops added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.mechanism.looks import Look
from linkwise.mechanism.parts import Body

USUAL_TIMESTEP = 0.002  # s, of files that say nothing in a format that has one
USUAL_INTEGRATOR = "Euler"  # likewise
Coordinates = tuple[tuple[str, tuple[float, ...]], ...]  # (joint, its coordinates), ...

MOST_PLACES = 4  # that a line names


@dataclass(frozen=True)
class Note:
    """A part of a description that the reader ignores.

    what         the part in the singular: "motor", "joint with damping"
    where        the elements with their lines, or the joints
    advice       the consequence, and a remedy
    constrains   whether the part would hold other parts together, which come apart without it
    """

    what: str
    where: tuple[str, ...]
    advice: str
    constrains: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", tuple(self.where))

    @property
    def count(self) -> int:
        """Number of occurrences."""
        return len(self.where)

    @property
    def counted(self) -> str:
        """ "8 joints with damping"."""
        if self.count == 1:
            return f"1 {self.what}"
        head, *tail = re.split("(?= with | of )", self.what, maxsplit=1)
        return f"{self.count} {_plural(head)}{''.join(tail)}"

    def __str__(self) -> str:
        more = f" and {self.count - MOST_PLACES} more" if self.count > MOST_PLACES else ""
        return f"{self.counted} ({', '.join(self.where[:MOST_PLACES])}{more}): {self.advice}"


def _plural(words: str) -> str:
    """ "bodies", "meshes", "boxes", "joints"."""
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return words + ("es" if words.endswith(("sh", "ch", "x", "s")) else "s")


@dataclass(frozen=True)
class Annotations:
    """Knowledge about a mechanism beyond its dynamics.

    notes          ignored parts of the file
    initial        coordinates of joints in the configuration that the file starts from; joints that it leaves out are
                   neutral, which nobody has chosen
    postures       (name, coordinates of joints), ...: the other joints are as in ``initial``
    keyframes      (name, velocities of joints, inputs of actuators, activations of actuators), ...: the further numbers
                   of states with the posture of this name; numbers left out are zero
    groups         (name, joints), ...
    fixed_joints   names of joints that do not move, which no body has
    actuated       names of the joints that have motors; None if unknown
    independent    names of the joints whose coordinates are meant to be independent; None if unknown
    timestep       s, of simulations of the file; None if unknown
    integrator     of simulations of the file in MuJoCo; None for other formats
    looks          visible shapes and meshes of links
    ground_mass    mass, centre of mass and inertia (13 numbers) of links that are fixed to the ground; they count after
                   the mechanism is attached to a moving link
    neighbours_touch   whether shapes of links that a joint connects may touch
    kept_apart     pairs of links or frames whose shapes must not touch
    """

    notes: tuple[Note, ...] = ()
    initial: Coordinates = ()
    postures: tuple[tuple[str, Coordinates], ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    fixed_joints: tuple[str, ...] = ()
    actuated: tuple[str, ...] | None = None
    independent: tuple[str, ...] | None = None
    keyframes: tuple[tuple[str, Coordinates, Coordinates, Coordinates], ...] = ()
    timestep: float | None = None
    integrator: str | None = None
    looks: tuple[Look, ...] = ()
    ground_mass: tuple[float, ...] = ()
    neighbours_touch: bool = False
    kept_apart: tuple[tuple[str, str], ...] = ()

    def with_fixed(self, joints: Iterable[str]) -> Annotations:
        """A copy in which further joints are fixed."""
        return replace(self, fixed_joints=(*self.fixed_joints, *joints))


def configuration(bodies: Sequence[Body], *parts: Coordinates) -> np.ndarray:
    """(nq,), read-only: the neutral configuration with the coordinates of ``parts``, later parts over earlier ones.

    Joints that no longer exist and mimic joints are skipped.
    """
    values_of = {joint: values for part in parts for joint, values in part}
    independent = (body for body in bodies if not body.mimic)
    q = np.array([x for body in independent for x in values_of.get(body.joint, body.kind.neutral())], dtype=float)
    q.flags.writeable = False
    return q
