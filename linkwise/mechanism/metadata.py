"""The view ``mech.metadata``: data of a file that changes no result of dynamics, and edits."""

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
    """Data of a file without effect on dynamics; see also ``mech.initial``, ``mech.postures``, ``mech.notes``."""

    __slots__ = ()

    @property
    def keyframes(self) -> dict[str, Keyframe]:
        """Named states: postures with velocities, control inputs and activations (keyframes of MJCF)."""
        return annotation.keyframes(self._mech)

    @property
    def timestep(self) -> float | None:
        """The time step, s, that the file intends for simulation (``<option timestep>`` of MJCF, default 0.002); None
        for other formats. ``lw.rollout`` uses it if dt is None.
        """
        return self._mech.annotations.timestep

    @property
    def integrator(self) -> str | None:
        """The integrator that the file intends for MuJoCo (``<option integrator>``, default "Euler"); None for other
        formats. It is saved again but selects nothing: use ``method`` of ``lw.rollout``, "semi_implicit" for "Euler",
        "implicit" and "implicitfast", "rk4" for "RK4".
        """
        return self._mech.annotations.integrator

    @property
    def looks(self) -> tuple[Look, ...]:
        """Visuals of links from the file; ``lw.viewer.scene`` has everything that is drawn."""
        return self._mech.annotations.looks

    @property
    def actuated_joints(self) -> tuple[str, ...] | None:
        """Joints with motors, from the file (MJCF actuators) or ``with_actuated``, in the order of the actuators; None
        if unspecified. Controllers such as ``lw.control.joint_feedback`` drive these.
        """
        said = self._mech.annotations.actuated
        return None if said is None else tuple(joint for joint in said if joint in self._mech.joint_names)

    @property
    def independent_joints(self) -> tuple[str, ...] | None:
        """Joints that the file (URDF+) declares independent; the others follow by loops and couplings. None if
        unspecified. ``lw.linearize`` uses these where possible.
        """
        said = self._mech.annotations.independent
        moving = (body.joint for body in self._mech.bodies if not body.mimic)
        return None if said is None else tuple(joint for joint in moving if joint in said)

    @kept
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Named groups of joints, from SRDF and others; fixed joints are left out."""
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
        """A copy with motors at exactly these joints: ``with_actuated("a", "b")`` or a list.

        Actuators that drive other joints are taken away, those of frames stay; joints that have none get none.
        """
        mech = self._mech
        known = annotation.with_actuated(mech, joints)
        return family.variant(mech, (), annotations=known, elements=driven_only_at(mech, known.actuated or ()))
