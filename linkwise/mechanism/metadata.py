"""The view ``mech.metadata``: what is known of a mechanism beyond how it moves, and copies that know more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from linkwise.mechanism import annotation, family
from linkwise.mechanism.annotation import Keyframe
from linkwise.mechanism.forces import driven_only_at
from linkwise.mechanism.looks import Look
from linkwise.mechanism.view import View, kept

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism


class MetadataView(View):
    """What files say that changes no result of dynamics; ``mech.initial``, ``mech.postures`` and ``mech.notes`` too."""

    __slots__ = ()

    @property
    def keyframes(self) -> dict[str, Keyframe]:
        """Named states: postures with velocities, control inputs and activations (keyframes of MJCF)."""
        return annotation.keyframes(self._mech)

    @property
    def timestep(self) -> float | None:
        """The time step that its file (``<option timestep>`` of MJCF, 0.002 by default) means simulations to take, s;
        None for other formats.  ``lw.rollout`` takes it where dt is None."""
        return self._mech.annotations.timestep

    @property
    def integrator(self) -> str | None:
        """The integrator that its file (``<option integrator>`` of MJCF, "Euler" by default) means simulations in
        MuJoCo to take; None for other formats.  It is written again, and chooses nothing here: ``method`` of
        ``lw.rollout`` does, "semi_implicit" for "Euler", "implicit" and "implicitfast", "rk4" for "RK4"."""
        return self._mech.annotations.integrator

    @property
    def looks(self) -> tuple[Look, ...]:
        """What is to be seen of its links, as its file says; ``lw.viewer.scene`` has all that is drawn."""
        return self._mech.annotations.looks

    @property
    def actuated_joints(self) -> tuple[str, ...] | None:
        """The joints that have motors, as its file (MJCF actuators) or ``with_actuated`` says; None where nothing is
        said of motors.  In the order of the actuators, each once.  Controllers such as ``lw.control.joint_feedback``
        drive these."""
        said = self._mech.annotations.actuated
        return None if said is None else tuple(joint for joint in said if joint in self._mech.joint_names)

    @property
    def independent_joints(self) -> tuple[str, ...] | None:
        """The joints whose coordinates its file (URDF+) means to be the independent ones, the others following by
        loops and couplings; None where nothing is said.  ``lw.linearize`` takes these where they can be."""
        said = self._mech.annotations.independent
        moving = (body.joint for body in self._mech.bodies if not body.mimic)
        return None if said is None else tuple(joint for joint in moving if joint in said)

    @kept
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Named groups of joints, those of SRDF among them; joints that no longer move are left out."""
        moving, groups = set(self._mech.joint_names), self._mech.annotations.groups
        return MappingProxyType({name: tuple(joint for joint in joints if joint in moving) for name, joints in groups})

    def with_initial(self, q: Any) -> Mechanism:
        """A copy with another initial configuration, where pictures, pages, assembly and ranges of motion start by
        default: q (nq,), ``lw.configuration(mech, crank=0.4)`` for one with closed loops, or by joint,
        {"crank": 0.4}, of which the others stay as they are."""
        return family.variant(self._mech, (), annotations=annotation.with_initial(self._mech, q))

    def with_postures(self, postures: Mapping[str, Any]) -> Mechanism:
        """A copy with further postures: ``{name: q}``, or ``{name: {joint name: coordinates}}``.

        A mimic joint that is named brings the joint it mimics to where it has these coordinates.
        """
        return family.variant(self._mech, (), annotations=annotation.with_postures(self._mech, postures))

    def with_groups(self, groups: Mapping[str, Iterable[str]]) -> Mechanism:
        """A copy with further groups of joints: ``{name: joint names}``."""
        return family.variant(self._mech, (), annotations=annotation.with_groups(self._mech, groups))

    def with_actuated(self, *joints: str) -> Mechanism:
        """A copy whose motors are at these joints, ``with_actuated("a", "b")`` or a list of them, and nowhere else.

        Actuators that drive other joints are taken away, those of frames stay; joints that have none get none.
        """
        mech = self._mech
        known = annotation.with_actuated(mech, joints)
        return family.variant(mech, (), annotations=known, elements=driven_only_at(mech, known.actuated or ()))
