"""Links, joints, loops and couplings put together by name, checked, and welded into a ``Mechanism``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.mechanics.contacts import Ball, Contact, Distance, KnifeEdge, Wheel
from linkwise.mechanics.joints import Joint, LoopKind
from linkwise.mechanism import checks
from linkwise.mechanism.annotation import Annotations
from linkwise.mechanism.checks import InertiaWarning, LimitWarning, MechanismError, MechanismWarning
from linkwise.mechanism.drives import Drive, drive_of
from linkwise.mechanism.linkage import Linkage
from linkwise.mechanism.model import GROUND, Mechanism
from linkwise.mechanism.parts import Body, Constraint, Coupling, Frame, Limits, Loop, Mimic, Pose
from linkwise.mechanism.poses import checked_pose
from linkwise.mechanism.resistance import idle_spin
from linkwise.mechanism.shapes import Shape
from linkwise.mechanism.welding import NOTHING, RigidMass, combined, composed

MOST_TOLD = 8  # defects of one kind that a warning names
STRICT = "; build(strict=False) keeps what is given"


@dataclass(frozen=True, eq=False)
class _Joint:
    """A declared joint, moving or fixed; ``numbers`` are armature, damping, friction, stiffness, rest and limits, as
    ``Body`` takes them.
    """

    name: str
    kind: Joint
    parent: str
    child: str
    pose: Pose
    mimic: Mimic | None
    numbers: dict[str, Any]


class Builder:
    """Collects links, joints, loops and couplings in any order; ``build`` checks them together.

    The fixed world is the link named "ground". ``source`` (such as a file name) begins every message, and is the name
    of the mechanism unless ``build`` has one.
    """

    def __init__(self, source: str | None = None) -> None:
        self._source = source
        self._prefix = f"{source}: " if source else ""
        self._links: dict[str, RigidMass] = {}
        self._joints: dict[str, _Joint] = {}
        self._loops: dict[str, Constraint] = {}
        self._frames: dict[str, tuple[str, Pose]] = {}  # the link each is fixed to, and its pose there
        self._shapes: dict[str, Shape] = {}
        self._reports: dict[type[MechanismWarning], list[str]] = {}

    # Declarations --------------------------------------------------------------------------------------------------

    def link(self, name: str, mass: float = 0.0, com: Any = (0.0, 0.0, 0.0), inertia: Any = None) -> Builder:
        """Declare a link.

        mass      kilograms, not negative
        com       (3,) centre of mass in the link's frame; or a pose, whose axes are then those of ``inertia``
        inertia   about the centre of mass, along the axes of the link's frame: (3, 3), or (3,) principal moments,
                  or None for a point mass
        """
        self._check_new("link", name, self._links)
        if name == GROUND:
            raise MechanismError(f'{self._prefix}"{GROUND}" is the fixed world and always there; rename the link')
        label = f"{self._prefix}link {name!r}"
        self._links[name] = RigidMass.checked(label, mass, com, inertia)
        return self

    def joint(
        self,
        name: str,
        kind: Joint,
        parent: str,
        child: str,
        pose: Any = None,
        armature: Any = 0.0,
        damping: Any = 0.0,
        friction: Any = 0.0,
        limits: Limits | None = None,
        mimic: Mimic | None = None,
        stiffness: Any = 0.0,
        rest: Any = None,
    ) -> Builder:
        """Hang the link ``child`` on the link ``parent`` at ``pose``.

        pose        where the child's frame is in the parent's at zero coordinates: ``(x, y, z)``, ``(rotation, (x, y,
                    z))`` with a 3x3 matrix or a SciPy ``Rotation``, a 4x4 matrix, ``lw.pose(...)``, or None for the
                    same place
        armature    reflected rotor inertia; like damping, friction, stiffness a number, or one per velocity coordinate
        limits      ``Limits``, none by default
        mimic       ``Mimic``: the joint mimics another one and has no coordinate of its own
        rest        coordinates at which a spring of ``stiffness`` is at rest; None: where the frames coincide

        Damping, friction and springs are kept for ``lw.forces.Passive.of``; the functions of dynamics do not look at
        them.
        """
        self._check_new("joint", name, self._joints)
        label = f"{self._prefix}joint {name!r}"
        checks.checked_kind(label, kind)
        if child == GROUND:
            raise MechanismError(f'{label}: "{GROUND}" cannot be a child; the ground is where the tree starts')
        if limits is not None and not isinstance(limits, Limits):
            raise MechanismError(f"{label}: limits must be Limits(lower, upper, velocity, effort), not {limits!r}")
        if mimic is not None and not isinstance(mimic, Mimic):
            raise MechanismError(f"{label}: mimic must be Mimic(joint, ratio, offset), not {mimic!r}")
        links = checks.checked_name("parent link", parent), checks.checked_name("child link", child)
        values = {"armature": armature, "damping": damping, "friction": friction, "stiffness": stiffness}
        numbers: dict[str, Any] = {
            quantity: checks.per_coordinate(f"the {quantity} of {label}", value, kind.nv)
            for quantity, value in values.items()
        }
        numbers["limits"] = (limits or Limits()).per_coordinate(label, kind.nq, kind.nv)
        numbers["rest"] = checks.rest_position(f"the rest of {label}", rest, kind)
        self._joints[name] = _Joint(name, kind, *links, checked_pose(f"the pose of {label}", pose), mimic, numbers)
        return self

    def linkage(
        self,
        points: Mapping[str, Any],
        links: Mapping[str, Sequence[str]],
        slots: Mapping[str, Any] | None = None,
        density: float = 1.0,
        slides: Mapping[str, Any] | None = None,
        masses: Mapping[str, float] | None = None,
    ) -> Builder:
        """A planar linkage from a drawing: points of the x-y plane, and links that join them with pins about z.

        points    name -> (x, y), metres
        links     name -> its points, "ABC" or ("A", "B", "C"), names of more than a letter as a tuple; "ground" has
                  those that are fixed
        slots     point -> (link, (x, y)): a point of one link slides along this direction in another, or in "ground"
        density   kilograms per metre: links are thin rods along the convex outline of their points, which has the same
                  corners in whichever order these are given and whatever points are inside, a single one where all
                  are on a line; ``mech.with_payload`` and ``with_inertial_parameters`` change that
        slides    link -> (other, (x, y)): a link that moves along this direction in another, or in "ground", without
                  turning, as pistons and Scotch yokes do; a list of them where it slides in several
        masses    link -> kilograms, in place of those by the density

        Pins, joints of the tree as well as loops, are called like their points (a second pin at C "C2"), slides like
        their links ("yoke_slide"), and points are frames: ``lw.frame_pose(mech, q, "C")``.  A point that several links
        share is a frame of each, "rod.B" and "piston.B"; "B" alone is that of the first of ``links`` that has it.  They
        are at one place, but loads, springs and payloads act on the link of the frame, and the pin carries what they
        do to that: load "piston.B" for the wrist pin of an engine.

        All coordinates are zero as drawn, frames of links along the world's axes there, each at the pin that its joint
        is, or at its first point.  Links, joints and loops may be added by hand.

        Gravity is that of ``build``: by default along -z, across the plane, so that nothing falls.  Of a drawing that
        stands upright it is ``build(gravity=(0, -9.81, 0))``.
        """
        Linkage(points, links, slots or {}, slides or {}, density, masses or {}).add_to(self)
        return self

    def frame(self, name: str, link: str, pose: Any = None) -> Builder:
        """A named frame fixed to a link or to a frame declared before, at ``pose`` in it: a tool, a sensor."""
        self._check_new("frame", name, self._frames)
        carrier = checks.checked_name(f"{self._prefix}link", link)
        self._frames[name] = (carrier, checked_pose(f"{self._prefix}the pose of frame {name!r}", pose))
        return self

    def shape(self, name: str, link: str, kind: str, size: Any = (), pose: Any = None, **more: Any) -> Builder:
        """A simple shape fixed to a link or frame, with the arguments of ``lw.contact.Shape``: ``.shape("sole",
        "foot", "sphere", 0.02, (0, 0, -0.1))``. It takes part in contact only after ``mech.with_ground`` or
        ``with_contact``.
        """
        return self._declare("shape", name, self._shapes, lambda: Shape(name, link, kind, size, pose, **more))

    def _declare(
        self, noun: str, name: str, known: dict[str, Any], make: Callable[[], Any], label: str = ""
    ) -> Builder:
        """Add a part under a name that is new among the known ones; its errors name the source and the label."""
        self._check_new(noun, name, known)
        try:
            known[name] = make()
        except ValueError as error:
            raise MechanismError(f"{self._prefix}{label}{error}") from error
        return self

    # Constraints ---------------------------------------------------------------------------------------------------

    def loop(
        self,
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
        return self._declare("loop", name, self._loops, lambda: Loop(name, kind, link_a, pose_a, link_b, pose_b))

    def wheel(
        self,
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
        return self.loop(name, self._contact(name, Wheel, radius, axis, crown, grip, contact), on, plane, link, pose)

    def ball(
        self,
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
        return self.loop(name, self._contact(name, Ball, radius, contact), on, plane, link, pose)

    def knife_edge(
        self,
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
        return self.loop(name, self._contact(name, KnifeEdge, direction, contact), on, plane, link, pose)

    def distance(
        self,
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
        label = f"distance {name!r}"
        sides: list[Any] = [
            (None, checks.checked_array(f"a point of {self._prefix}{label}", point, (3,)))
            for point in (point_a, point_b)
        ]

        def rod() -> Loop:
            is_driven = callable(length) or isinstance(length, Drive)
            kind = Distance(0.0 if is_driven else length)
            if not is_driven and kind.length == 0.0:
                raise MechanismError("points at no distance from each other are one: use a loop of kind Spherical()")
            drive = drive_of(length, velocity, acceleration) if is_driven else None
            return Loop(name, kind, link_a, sides[0], link_b, sides[1], drive)

        return self._declare("loop", name, self._loops, rod, f"{label}: ")

    def drive(
        self, name: str, joint: str, position: Any = None, velocity: Any = None, acceleration: Any = None
    ) -> Builder:
        """Let a joint follow a function of time: its coordinate ``position(t)``, or only its ``velocity``, a function
        or a number. Rates that are left out are derivatives of these (``lw.constraints.Drive``).

        Only joints of one coordinate have drives: connect several instead of a joint with several coordinates.
        """

        def driven_joint() -> Coupling:
            return Coupling(name, {joint: 1.0}, 0.0, drive_of(position, velocity, acceleration))

        return self._declare("loop", name, self._loops, driven_joint, f"drive {name!r}: ")

    def _contact(self, name: str, kind: Callable[..., Contact], *numbers: Any) -> Contact:
        try:
            return kind(*numbers)
        except ValueError as error:
            raise MechanismError(f"{self._prefix}contact {name!r}: {error}") from None

    def coupling(self, name: str, ratios: Any, offset: float = 0.0, velocity: Any = None) -> Builder:
        """Tie joints together as gears and belts do: the sum of ratio times coordinate over ``ratios``, {joint name:
        ratio}, equals ``offset``.  One joint that follows one other is said by ``mimic`` of ``joint``.

        It acts on joints, by moments about their axes, and has no place where teeth mesh: forces of teeth are not among
        the loads of bearings.  With pitch radii as ratios its multiplier is the tangential force of the teeth, which
        docs/constraint_forces.md, "Gears and bearings", adds to these.

        Of velocities alone, any row A(q) v = b(t): ratios that are functions of {joint name: coordinate}
        (``lw.constraints.Coupling``), and a ``velocity``, a number or a function of time, zero by default."""

        def sum_of_coordinates() -> Coupling:
            return Coupling(name, ratios, offset, None if velocity is None else Drive(velocity=velocity))

        return self._declare("loop", name, self._loops, sum_of_coordinates)

    def relation(
        self, name: str, joints: Any, function: Callable[[dict[str, Any]], Any] | str, offset: float = 0.0
    ) -> Builder:
        """Tie joints together by any relation of their positions, as cams and gears that are not round do: ``function``
        of {joint name: coordinate} equals ``offset``.  It is written with plain arithmetic and
        ``linkwise.extend.scalar``, so that it is compiled, and differentiated for velocities and accelerations; a row
        of velocities is ``coupling``.

        ``relation("cam", ("cam", "lift"), lambda q: q["lift"] - 0.01 * (1 - cos(q["cam"])))``

        Text, "lift - 0.01*(1 - cos(cam))", does as well, and is what files hold.
        """
        return self._declare("loop", name, self._loops, lambda: Coupling(name, joints, offset, relation=function))

    # Assembly ------------------------------------------------------------------------------------------------------

    def build(self, name: str | None = None, gravity: Any = (0.0, 0.0, -9.81), strict: bool = True) -> Mechanism:
        """Check everything, weld links joined by fixed joints, and number the moving bodies.

        With ``strict``, impossible moments of inertia, contradictory limits and joints that move nothing with inertia
        are errors; without it they are kept and reported as warnings.
        """
        self._reports.clear()
        if not self._links:
            raise MechanismError(f"{self._prefix}there are no links: add some with .link(name, mass, com, inertia)")
        joint_above = self._check_tree()
        self._report_defects(strict)
        order = self._moving_joints_parents_first(joint_above)
        placements = self._placements(joint_above, order)
        bodies = self._bodies(order, placements, self._mimic_rules(strict))
        frames = self._named_frames(placements)
        try:
            fixed = Annotations(
                fixed_joints=tuple(joint.name for joint in self._joints.values() if joint.kind.nv == 0),
                ground_mass=self._ground_mass(placements),
            )
            name = (self._source or "mechanism") if name is None else name
            mechanism = Mechanism(name, bodies, frames, gravity, tuple(self._loops.values()), fixed)
            mechanism = replace(mechanism, shapes=tuple(self._shapes.values())) if self._shapes else mechanism
        except MechanismError as error:
            raise MechanismError(f"{self._prefix}{error}") from error
        if mechanism.parameters.singular_joints and not mechanism._loops_resist:
            massless = [
                (joint, mechanism.bodies[mechanism.body_index(joint.joint)]) for joint in mechanism._massless_joints
            ]
            names = ", ".join(f"{joint}{'' if joint.undone_by else idle_spin(body)}" for joint, body in massless)
            self._report(
                strict,
                InertiaWarning,
                f"nothing beyond these joints resists their motion: {names}; give the links they move mass and "
                "inertia, give the joints armature, or make them fixed" + STRICT * strict,
            )
        self._warn()
        return mechanism

    def _check_new(self, noun: str, name: str, known: dict[str, Any]) -> None:
        if checks.checked_name(f"{self._prefix}{noun}", name) in known:
            raise MechanismError(f"{self._prefix}there are two {noun}s named {name!r}; names must be unique")

    def _report(self, strict: bool, category: type[MechanismWarning], message: str) -> None:
        if strict:
            raise MechanismError(self._prefix + message)
        self._reports.setdefault(category, []).append(message)

    def _warn(self) -> None:
        """One warning of each kind, however many links and joints it is about."""
        for category, messages in self._reports.items():
            more = f"; and {len(messages) - MOST_TOLD} more" if len(messages) > MOST_TOLD else ""
            checks.warn_caller(self._prefix + "; ".join(messages[:MOST_TOLD]) + more, category)

    def _report_defects(self, strict: bool) -> None:
        rotors = self._rotors()
        for link, body in self._links.items():
            for defect in checks.inertia_defects(body.mass, body.inertia, link in rotors, body.com.tolist()):
                self._report(strict, InertiaWarning, f"link {link!r}: {defect}" + STRICT * strict)
        for joint in self._joints.values():
            numbers, limits = joint.numbers, joint.numbers["limits"]
            at_least_zero = {name: numbers[name] for name in ("armature", "damping", "friction", "stiffness")}
            at_least_zero |= {"velocity limit": limits.velocity, "effort limit": limits.effort}
            for defect in checks.limit_defects(limits.lower, limits.upper, at_least_zero):
                self._report(strict, LimitWarning, f"joint {joint.name!r}: {defect}")

    def _rotors(self) -> set[str]:
        """Links whose joints are coupled by gears: they may have inertia without mass."""
        coupled = {
            name
            for constraint in self._loops.values()
            if isinstance(constraint, Coupling)
            for name, _ in constraint.ratios
        }
        for joint in self._joints.values():
            coupled |= {joint.name, joint.mimic.joint} if joint.mimic else set()
        return {joint.child for joint in self._joints.values() if joint.name in coupled}

    # The tree ------------------------------------------------------------------------------------------------------

    def _check_tree(self) -> dict[str, _Joint]:
        """The joint above each link, after making sure that every link hangs on the ground exactly once."""
        joint_above: dict[str, _Joint] = {}
        for joint in self._joints.values():
            for role, link in (("parent", joint.parent), ("child", joint.child)):
                if link != GROUND and link not in self._links:
                    raise MechanismError(
                        f"{self._prefix}joint {joint.name!r}: its {role} link {link!r} is not declared: "
                        + checks.did_you_mean(link, (*self._links, GROUND))
                        + f" (the fixed world is {GROUND!r})" * (role == "parent")
                    )
            if joint.child in joint_above:
                raise MechanismError(
                    f"{self._prefix}link {joint.child!r} hangs on two joints, {joint_above[joint.child].name!r} and "
                    f"{joint.name!r}; keep one of them and close the loop with .loop(...), or loops= of load"
                )
            joint_above[joint.child] = joint
        grounded = {GROUND}
        for link in self._links:
            chain: dict[str, None] = {}  # the way inwards, in order
            while link not in grounded:
                if link in chain:
                    way = list(chain)
                    cycle = " -> ".join(reversed([*way[way.index(link) :], link]))
                    raise MechanismError(
                        f"{self._prefix}the joints run in a circle: {cycle}; hang the first link on the ground and "
                        "close the loop with .loop(...), or loops= of load"
                    )
                chain[link] = None
                if link not in joint_above:
                    carried = ", ".join(map(repr, list(chain)[-2::-1]))
                    raise MechanismError(
                        f"{self._prefix}link {link!r} hangs on nothing"
                        + (f" (and carries {carried})" if carried else "")
                        + f'; add a joint with parent "{GROUND}" or another link and child {link!r}'
                    )
                link = joint_above[link].parent
            grounded.update(chain)
        return joint_above

    def _moving_joints_parents_first(self, joint_above: dict[str, _Joint]) -> list[_Joint]:
        """Moving joints in the order of declaration, but parents before children."""
        emitted: dict[str, _Joint] = {}
        for joint in self._joints.values():
            for ancestor in reversed(list(self._inwards(joint, joint_above, emitted))):
                emitted[ancestor.name] = ancestor
        return [joint for joint in emitted.values() if joint.kind.nv > 0]

    @staticmethod
    def _inwards(joint: _Joint | None, joint_above: dict[str, _Joint], stop: dict[str, _Joint]) -> Iterator[_Joint]:
        """``joint`` and the joints above it, up to the ground or to one of ``stop``."""
        while joint is not None and joint.name not in stop:
            yield joint
            joint = joint_above.get(joint.parent)

    def _placements(self, joint_above: dict[str, _Joint], order: list[_Joint]) -> dict[str, tuple[int, Pose]]:
        """For the ground and every link: the body that carries it and its pose in that body's frame."""
        here = (np.eye(3), np.zeros(3))
        placements: dict[str, tuple[int, Pose]] = {GROUND: (-1, here)}
        placements.update((joint.child, (index, here)) for index, joint in enumerate(order))
        for link in self._links:
            chain = []
            while link not in placements:
                chain.append(joint_above[link])
                link = joint_above[link].parent
            for joint in reversed(chain):
                body, pose = placements[joint.parent]
                placements[joint.child] = (body, composed(pose, joint.pose))
        return {link: placements[link] for link in (GROUND, *self._links)}

    def _named_frames(self, placements: dict[str, tuple[int, Pose]]) -> dict[str, Frame]:
        """Every link, the ground and all declared frames as frames."""
        frames = {link: Frame(link, body, *pose) for link, (body, pose) in placements.items()}
        for name, (link, pose) in self._frames.items():
            if name in frames:
                raise MechanismError(f"{self._prefix}a link is named {name!r} too; name the frame otherwise")
            if link not in frames:
                raise MechanismError(
                    f"{self._prefix}frame {name!r}: there is no link or frame {link!r} before it: "
                    + checks.did_you_mean(link, frames)
                )
            carrier = frames[link]
            frames[name] = Frame(name, carrier.body, *composed(carrier.pose, pose))
        return frames

    def _bodies(
        self, order: list[_Joint], placements: dict[str, tuple[int, Pose]], mimic_rules: dict[str, Mimic]
    ) -> tuple[Body, ...]:
        """The moving bodies in the given order, each with everything that is welded to it."""
        parts: list[list[RigidMass]] = [[] for _ in order]
        for link, mass in self._links.items():
            body, pose = placements[link]
            if body >= 0:
                parts[body].append(mass if link == order[body].child else mass.seen_from(*pose))
        bodies = []
        for joint, masses in zip(order, parts, strict=True):
            try:
                total = combined(masses)
            except MechanismError as error:
                raise MechanismError(f"{self._prefix}link {joint.child!r}: {error}") from error
            if total is NOTHING:
                total = RigidMass(0.0, self._links[joint.child].com, NOTHING.inertia)
            parent, pose = placements[joint.parent]
            rotation, position = composed(pose, joint.pose)
            bodies.append(
                Body(
                    link=joint.child,
                    joint=joint.name,
                    kind=joint.kind,
                    parent=parent,
                    rotation=rotation,
                    position=position,
                    mass=total.mass,
                    com=total.com,
                    inertia=total.inertia,
                    mimic=mimic_rules.get(joint.name),
                    **joint.numbers,
                )
            )
        return tuple(bodies)

    def _ground_mass(self, placements: dict[str, tuple[int, Pose]]) -> tuple[float, ...]:
        """Mass of all links welded to the ground."""
        grounded = ((mass, placements[link]) for link, mass in self._links.items())
        return combined(mass.seen_from(*pose) for mass, (body, pose) in grounded if body < 0).numbers

    def _mimic_rules(self, strict: bool) -> dict[str, Mimic]:
        """For each mimic joint, the rule by which it follows an independent one."""
        rules: dict[str, Mimic] = {}
        for joint in self._joints.values():
            if joint.mimic is not None and joint.mimic.joint in self._joints:
                rules[joint.name] = joint.mimic
            elif joint.mimic is not None:
                consequence = "" if strict else ", and is left free"
                others = [name for name in self._joints if name != joint.name]
                self._report(
                    strict,
                    MechanismWarning,
                    f"joint {joint.name!r} mimics {joint.mimic.joint!r}, which does not exist{consequence}: "
                    + checks.did_you_mean(joint.mimic.joint, others),
                )
        return {name: self._independent_joint(name, rules) for name in rules}

    def _independent_joint(self, mimic_joint: str, rules: dict[str, Mimic]) -> Mimic:
        """The rule of ``mimic_joint`` with chains of mimic joints composed down to a joint that has a coordinate."""
        rule, chain = rules[mimic_joint], [mimic_joint]
        while True:
            for name in (mimic_joint, rule.joint):
                if self._joints[name].kind.nv != 1:
                    raise MechanismError(
                        f"{self._prefix}joint {mimic_joint!r} mimics {rule.joint!r}, but {name!r} has "
                        f"{self._joints[name].kind.nv} degrees of freedom; both must have one"
                    )
            if rule.joint in chain:
                circle = " -> ".join([*chain, rule.joint])
                raise MechanismError(f"{self._prefix}joint {mimic_joint!r} mimics itself: {circle}; free one of them")
            if rule.joint not in rules:
                return rule
            chain.append(rule.joint)
            outer = rules[rule.joint]
            rule = Mimic(outer.joint, rule.ratio * outer.ratio, rule.ratio * outer.offset + rule.offset)
