"""What is known of a mechanism beyond how it moves: the part of ``Mechanism`` that is about its annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.mechanism import annotation, family
from linkwise.mechanism.acting import driven_only_at
from linkwise.mechanism.annotation import Annotations, Note
from linkwise.mechanism.looks import Look
from linkwise.mechanism.parts import Body

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism


class Annotated:
    """Notes, postures, groups and motors of a mechanism; ``Mechanism`` inherits it."""

    bodies: tuple[Body, ...]
    annotations: Annotations

    @property
    def notes(self: Any) -> tuple[Note, ...]:
        """What of the file, or of contact, does not act: how many, where, and what to do.  ``acting`` has what does."""
        return (*self.annotations.notes, *self._notes_of_contact)

    @property
    def looks(self) -> tuple[Look, ...]:
        """What is to be seen of its links, as its file says; ``lw.viewer.scene`` has all that is drawn."""
        return self.annotations.looks

    @cached_property
    def initial(self) -> NDArray[np.float64]:
        """(nq,) the configuration that the file starts from (``qpos0`` of MJCF); neutral where it says nothing."""
        return annotation.configuration(self.bodies, self.annotations.initial)

    @cached_property
    def postures(self) -> Mapping[str, NDArray[np.float64]]:
        """Named configurations (nq,): keyframes of MJCF, group states of SRDF; joints they leave out are as in
        ``initial``."""
        start, named = self.annotations.initial, self.annotations.postures
        return MappingProxyType({name: annotation.configuration(self.bodies, start, own) for name, own in named})

    @property
    def actuated_joints(self: Any) -> tuple[str, ...] | None:
        """The joints that have motors, as its file (MJCF actuators) or ``with_actuated`` says; None where nothing is
        said of motors.  In the order of the actuators, each once.  Controllers such as ``lw.control.joint_feedback``
        drive these."""
        said = self.annotations.actuated
        return None if said is None else tuple(joint for joint in said if joint in self._body_of_joint)

    @property
    def independent_joints(self: Any) -> tuple[str, ...] | None:
        """The joints whose coordinates its file (URDF+) means to be the independent ones, the others following by
        loops and couplings; None where nothing is said.  ``lw.linearize`` takes these where they can be."""
        said = self.annotations.independent
        moving = (body.joint for body in self.bodies if not body.mimic)
        return None if said is None else tuple(joint for joint in moving if joint in said)

    @cached_property
    def groups(self: Any) -> Mapping[str, tuple[str, ...]]:
        """Named groups of joints, those of SRDF among them; joints that no longer move are left out."""
        moving = self._body_of_joint
        return MappingProxyType(
            {name: tuple(joint for joint in joints if joint in moving) for name, joints in self.annotations.groups}
        )

    def with_postures(self: Any, postures: Mapping[str, Any]) -> Mechanism:
        """A copy with further postures: ``{name: q}``, or ``{name: {joint name: coordinates}}``.

        A mimic joint that is named brings the joint it mimics to where it has these coordinates.
        """
        return family.variant(self, (), annotations=annotation.with_postures(self, postures))

    def with_actuated(self: Any, *joints: str) -> Mechanism:
        """A copy whose motors are at these joints, ``with_actuated("a", "b")`` or a list of them, and nowhere else.

        Actuators that drive other joints are taken away, those of frames stay; joints that have none get none.
        """
        known = annotation.with_actuated(self, joints)
        return family.variant(self, (), annotations=known, elements=driven_only_at(self, known.actuated or ()))

    def with_groups(self: Any, groups: Mapping[str, Iterable[str]]) -> Mechanism:
        """A copy with further groups of joints: ``{name: joint names}``."""
        return family.variant(self, (), annotations=annotation.with_groups(self, groups))
