"""Declarations of constraints to a builder: loops, contacts, couplings, prescribed motion."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from linkwise.mechanics.contacts import Ball, Contact, Distance, KnifeEdge, Wheel
from linkwise.mechanics.joints import LoopKind
from linkwise.mechanism import checks
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.drives import Drive, drive_of
from linkwise.mechanism.model import GROUND
from linkwise.mechanism.parts import Constraint, Coupling, Loop

if TYPE_CHECKING:
    from linkwise.mechanism.builder import Builder


class LoopDeclarations:
    """Declarations of constraints; ``Builder`` inherits it."""

    _prefix: str
    _loops: dict[str, Constraint]
    _check_new: Callable[[str, str, dict[str, Any]], None]

    def loop(
        self: Any,
        name: str,
        kind: LoopKind,
        link_a: str,
        pose_a: Any = None,
        link_b: str = GROUND,
        pose_b: Any = None,
    ) -> Builder:
        """Close a loop: frame ``pose_a`` on ``link_a`` and frame ``pose_b`` on ``link_b`` become the two sides of a
        joint of this kind (``link_b``'s side is the one that moves), or touch as a contact such as
        ``lw.contact.Wheel``."""
        self._check_new("loop", name, self._loops)
        try:
            self._loops[name] = Loop(name, kind, link_a, pose_a, link_b, pose_b)
        except MechanismError as error:
            raise MechanismError(f"{self._prefix}{error}") from error
        return self

    def wheel(
        self: Any,
        name: str,
        link: str,
        radius: float,
        axis: Any = (0.0, 1.0, 0.0),
        pose: Any = None,
        crown: float = 0.0,
        grip: str = "full",
        contact: bool = True,
        on: str = GROUND,
        plane: Any = None,
    ) -> Builder:
        """A wheel that rolls without slip (``lw.contact.Wheel``): its centre and ``axis`` are at ``pose`` of ``link``,
        the plane is z = 0 of the pose ``plane`` on the link ``on``."""
        return self._contact(name, lambda: Wheel(radius, axis, crown, grip, contact), link, pose, on, plane)

    def ball(
        self: Any,
        name: str,
        link: str,
        radius: float,
        pose: Any = None,
        contact: bool = True,
        on: str = GROUND,
        plane: Any = None,
    ) -> Builder:
        """A ball that rolls without slip (``lw.contact.Ball``): its centre is at ``pose`` of ``link``, the plane is z =
        0 of the pose ``plane`` on the link ``on``."""
        return self._contact(name, lambda: Ball(radius, contact), link, pose, on, plane)

    def knife_edge(
        self: Any,
        name: str,
        link: str,
        direction: Any = (1.0, 0.0, 0.0),
        pose: Any = None,
        contact: bool = False,
        on: str = GROUND,
        plane: Any = None,
    ) -> Builder:
        """A blade that moves along its own direction only (``lw.contact.KnifeEdge``), at ``pose`` of ``link``; the
        plane is z = 0 of the pose ``plane`` on the link ``on``."""
        return self._contact(name, lambda: KnifeEdge(direction, contact), link, pose, on, plane)

    def distance(
        self: Any,
        name: str,
        link_a: str,
        point_a: Any,
        link_b: str,
        point_b: Any,
        length: Any,
        velocity: Any = None,
        acceleration: Any = None,
    ) -> Builder:
        """Two points of links (positions in their frames) stay ``length`` apart, as a rod without mass keeps them
        (``lw.contact.Distance``); a ``length(t)`` is a cylinder that is driven, its rates as of ``drive``."""
        label = f"{self._prefix}distance {name!r}"
        points: list[Any] = [
            (None, checks.checked_array(f"a point of {label}", point, (3,))) for point in (point_a, point_b)
        ]
        self._check_new("loop", name, self._loops)
        follows = callable(length) or isinstance(length, Drive)
        try:
            kind, driven = Distance(0.0 if follows else length), None
            if follows:
                driven = drive_of(length, velocity, acceleration)
            elif kind.length == 0.0:
                raise MechanismError("points at no distance from each other are one: use a loop of kind Spherical()")
            self._loops[name] = Loop(name, kind, link_a, points[0], link_b, points[1], driven)
        except ValueError as error:
            raise MechanismError(f"{label}: {error}") from None
        return self

    def drive(
        self: Any, name: str, joint: str, position: Any = None, velocity: Any = None, acceleration: Any = None
    ) -> Builder:
        """Let a joint follow a function of time: its coordinate ``position(t)``, or its ``velocity`` alone, a function
        or a number.  Rates that are left out are found by differentiating (``lw.constraints.Drive``).

        A joint of several coordinates is driven where it has one of its own: hang several joints on each other.
        """
        try:
            driven = drive_of(position, velocity, acceleration)
            self._check_new("loop", name, self._loops)
            self._loops[name] = Coupling(name, {joint: 1.0}, 0.0, driven)
        except MechanismError as error:
            raise MechanismError(f"{self._prefix}drive {name!r}: {error}") from None
        return self

    def _contact(self, name: str, kind: Callable[[], Contact], link: str, pose: Any, on: str, plane: Any) -> Builder:
        try:
            made = kind()
        except ValueError as error:
            raise MechanismError(f"{self._prefix}contact {name!r}: {error}") from None
        return self.loop(name, made, on, plane, link, pose)

    def coupling(self: Any, name: str, ratios: Any, offset: float = 0.0, velocity: Any = None) -> Builder:
        """Tie joints together as gears and belts do: the sum of ratio times coordinate over ``ratios``, {joint name:
        ratio}, equals ``offset``.  One joint that follows one other is said by ``mimic`` of ``joint``.

        It acts on joints, by moments about their axes, and has no place where teeth mesh: forces of teeth are not among
        the loads of bearings.  With pitch radii as ratios its multiplier is the tangential force of the teeth, which
        docs/constraint_forces.md, "Gears and bearings", adds to these.

        Of velocities alone, any row A(q) v = b(t): ratios that are functions of {joint name: coordinate}
        (``lw.constraints.Coupling``), and a ``velocity``, a number or a function of time, zero by default."""
        self._check_new("loop", name, self._loops)
        try:
            self._loops[name] = Coupling(name, ratios, offset, None if velocity is None else Drive(velocity=velocity))
        except MechanismError as error:
            raise MechanismError(f"{self._prefix}{error}") from error
        return self

    def relation(
        self: Any, name: str, joints: Any, function: Callable[[dict[str, Any]], Any] | str, offset: float = 0.0
    ) -> Builder:
        """Tie joints together by any relation of their positions, as cams and gears that are not round do: ``function``
        of {joint name: coordinate} equals ``offset``.  It is written with plain arithmetic and
        ``linkwise.extend.scalar``, so that it is compiled, and differentiated for velocities and accelerations; a row
        of velocities is ``coupling``.

        ``relation("cam", ("cam", "lift"), lambda q: q["lift"] - 0.01 * (1 - cos(q["cam"])))``

        Text, "lift - 0.01*(1 - cos(cam))", does as well, and is what files hold.
        """
        self._check_new("loop", name, self._loops)
        try:
            self._loops[name] = Coupling(name, joints, offset, relation=function)
        except MechanismError as error:
            raise MechanismError(f"{self._prefix}{error}") from error
        return self
