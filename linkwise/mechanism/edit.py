"""Variants of a mechanism: joints locked, their numbers changed, payloads and frames attached.  Each gives a copy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np

from linkwise.mechanics.joints import Joint
from linkwise.mechanism import checks
from linkwise.mechanism.annotation import Annotations, Coordinates
from linkwise.mechanism.checks import MechanismError, OmissionWarning, warn_caller
from linkwise.mechanism.elements import Switches
from linkwise.mechanism.family import variant, with_numbers
from linkwise.mechanism.forces import known_elements, locked, with_efforts
from linkwise.mechanism.model import GROUND, Mechanism, require_mechanism
from linkwise.mechanism.naming import unused_name
from linkwise.mechanism.parameters import NO_JOINTS
from linkwise.mechanism.parts import Body, Constraint, Coupling, Frame, Limits, Loop, Pose, RelationWithLocked
from linkwise.mechanism.poses import checked_pose
from linkwise.mechanism.shapes import PLANE, ContactPair, Shape
from linkwise.mechanism.welding import RigidMass, combined, composed, joint_pose


def lock(mech: Mechanism, joints: Mapping[str, Any] | Iterable[str], named: Mapping[str, Any]) -> Mechanism:
    """Lock joints at coordinates, or at ``mech.initial`` if only names are known. Each moved link is welded to its
    parent and stays as a named frame.

    Joints that mimic a locked joint are locked too. Mass that becomes part of the ground no longer counts (except after
    the mechanism is attached to another); the armature of a locked joint is dropped, since it only resists rotation in
    that joint.
    """
    values = _locked_coordinates(mech, joints, named)
    # Where each body of the old mechanism went: a body of the new one, and the pose in its link frame.
    poses: list[tuple[int, Pose]] = []
    kept: list[Body] = []
    masses: list[list[RigidMass]] = []
    grounded = [RigidMass.from_numbers(mech.annotations.ground_mass)]
    for body in mech.bodies:
        carrier, pose = poses[body.parent] if body.parent >= 0 else (-1, (np.eye(3), np.zeros(3)))
        pose = composed(pose, body.pose)
        if body.joint in values:
            placement = carrier, composed(pose, _joint_pose(body, values[body.joint]))
            heavy = masses[carrier] if carrier >= 0 else grounded
            heavy.append(RigidMass(body.mass, body.com, body.inertia).seen_from(*placement[1]))
        else:
            placement = len(kept), (np.eye(3), np.zeros(3))
            kept.append(dataclasses.replace(body, parent=carrier, rotation=pose[0], position=pose[1]))
            masses.append([RigidMass(body.mass, body.com, body.inertia)])
        poses.append(placement)
    bodies = tuple(_set_mass(body, combined(parts)) for body, parts in zip(kept, masses, strict=True))
    frames = []
    for frame in mech.frames.values():
        if frame.body >= 0:
            carrier, pose = poses[frame.body]
            frame = Frame(frame.name, carrier, *composed(pose, frame.pose))
        frames.append(frame)
    loops = tuple(_lock_constraint(mech, loop, values) for loop in mech.loops)
    return dataclasses.replace(
        mech,
        bodies=bodies,
        frames={frame.name: frame for frame in frames},
        loops=loops,
        annotations=dataclasses.replace(mech.annotations.with_fixed(values), ground_mass=combined(grounded).numbers),
        elements=locked(mech.elements, values),
        contact_pairs=tuple(pair for pair in mech.contact_pairs if not _share_body(mech, pair, poses)),
    )


def _share_body(mech: Mechanism, pair: ContactPair, poses: Sequence[tuple[int, Pose]]) -> bool:
    """Whether two shapes belong to one rigid body after bodies are merged to ``poses``."""
    bodies = (mech.contact.shape(name).placed(mech)[0] for name in pair.shapes)
    return len({poses[body][0] if body >= 0 else -1 for body in bodies}) == 1


def _lock_constraint(mech: Mechanism, loop: Constraint, values: Mapping[str, list[float]]) -> Constraint:
    """A loop or coupling after joints are locked: their terms of a coupling become a constant."""
    if all(mech.joint_names[body] in values for body in loop.bodies_within(mech)):
        parts = "all joints of coupling" if isinstance(loop, Coupling) else "both sides of loop"
        raise MechanismError(
            f"locking {', '.join(map(repr, values))} of mechanism {mech.name!r} makes {parts} {loop.name!r} parts of "
            "one rigid body: leave a joint of it free, or start from mech.spanning_tree"
        )
    if not isinstance(loop, Coupling):
        return loop
    free = tuple((joint, ratio) for joint, ratio in loop.ratios if joint not in values)
    if loop.relation is not None:
        locked = tuple((joint, values[joint][0]) for joint, _ in loop.ratios if joint in values)
        relation = RelationWithLocked(loop.relation, locked) if locked else loop.relation
        return dataclasses.replace(loop, ratios=free, relation=relation)
    if loop.ratios_change and any(joint in values for joint, _ in loop.ratios):
        raise MechanismError(
            f"coupling {loop.name!r} of mechanism {mech.name!r} has ratios that are functions of its joints: none of "
            "them can be locked"
        )
    offset = loop.offset - sum(r * values[j][0] for j, r in loop.ratios if j in values)
    return Coupling(loop.name, free, offset, loop.drive, loop.keeps_position)


def _locked_coordinates(mech: Mechanism, joints: Any, named: Mapping[str, Any]) -> dict[str, list[float]]:
    """Coordinates of every joint that is locked, mimic joints of the named ones included."""
    if isinstance(joints, Iterable) and not isinstance(joints, Mapping):
        names = [_independent_body(mech, name).joint for name in checks.names_of(joints)]
        joints = {name: mech.initial[mech.q_index(name)] for name in names}
    values: dict[str, list[float]] = {}
    for name, value in _joint_values("coordinates", joints, named).items():
        body = _independent_body(mech, name)
        at = np.atleast_1d(np.asarray(value, dtype=object))  # a number stands for one coordinate
        values[name] = checks.checked_array(f"the coordinates of joint {name!r}", at, (body.kind.nq,)).tolist()
    for body in mech.bodies:
        if body.mimic and body.mimic.joint in values:
            values[body.joint] = [body.mimic.ratio * values[body.mimic.joint][0] + body.mimic.offset]
    return values


def _independent_body(mech: Mechanism, joint: str) -> Body:
    body = mech.bodies[mech.body_index(joint)]
    if body.mimic:
        raise MechanismError(
            f"joint {joint!r} of mechanism {mech.name!r} mimics {body.mimic.joint!r}: lock that one instead"
        )
    return body


def _joint_pose(body: Body, q: list[float]) -> Pose:
    try:
        return joint_pose(body.kind, q)
    except ZeroDivisionError:
        raise MechanismError(f"joint {body.joint!r} cannot be locked at {q}: the quaternion is zero") from None


def _set_mass(body: Body, total: RigidMass) -> Body:
    if total.is_nothing:
        return body
    if not math.isfinite(total.inertia.sum()):  # too large for floats: the body says what is wrong
        return dataclasses.replace(body, mass=total.mass, com=total.com, inertia=total.inertia)
    total.com.setflags(write=False)
    total.inertia.setflags(write=False)
    return with_numbers(body, mass=total.mass, com=total.com, inertia=total.inertia)


def moved_by(mech: Mechanism, joint: str, kind: Joint) -> Mechanism:
    """A joint replaced by a joint of another kind at its initial pose; without springs, damping and limits."""
    index = mech.body_index(joint)
    body = mech.bodies[index]
    at = _joint_pose(body, mech.initial[mech.q_index(joint)].tolist())
    rotation, position = composed(body.pose, at)
    without_forces: dict[str, Any] = {
        "armature": 0.0,
        "damping": 0.0,
        "friction": 0.0,
        "stiffness": 0.0,
        "rest": None,
        "limits": Limits(),
    }
    moved = dataclasses.replace(body, kind=kind, rotation=rotation, position=position, **without_forces)
    known = mech.annotations
    return dataclasses.replace(
        mech,
        bodies=(*mech.bodies[:index], moved, *mech.bodies[index + 1 :]),
        annotations=dataclasses.replace(
            known,
            actuated=None if known.actuated is None else (joint, *known.actuated),  # a base that drives has motors
            initial=_without(joint, known.initial),
            postures=tuple((name, _without(joint, values)) for name, values in known.postures),
            keyframes=tuple((name, _without(joint, rates), u, x) for name, rates, u, x in known.keyframes),
        ),
    )


def _without(joint: str, values: Coordinates) -> Coordinates:
    return tuple(item for item in values if item[0] != joint)


def _joint_values(label: str, values: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """Values by joint name, from a dictionary and from keywords."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{label} of joints: give {{joint name: value}} or joint=value, got {values!r}")
    for name in named:
        if name in values:
            raise TypeError(f"{label} of joint {name!r} are given twice: in the dictionary and as a keyword")
    return {**values, **named}


def set_joint_numbers(
    mech: Mechanism,
    quantity: str,
    values: Mapping[str, Any] | float,
    named: Mapping[str, Any] = NO_JOINTS,
    rest: Mapping[str, Any] = NO_JOINTS,
) -> Mechanism:
    """``quantity`` (a field of ``Body``) of the named joints set; the others keep theirs.

    values, named   {joint: value}, from an argument and from keywords; or one number, of quantities other than limits,
                    for all joints but floating ones
    rest            {joint: coordinates} at which springs of these joints are at rest
    """
    if isinstance(values, Real) and quantity != "limits":
        values = {body.joint: values for body in mech.bodies if not body.kind.is_free}
    numbers, bodies = _joint_values(quantity, values, named), list(mech.bodies)
    for name in rest:
        if name not in numbers:
            raise MechanismError(f"rest names joint {name!r}, which is given no stiffness")
    for name, value in numbers.items():
        index = mech.body_index(name)
        body = with_numbers(bodies[index], **{quantity: _check_value(bodies[index], quantity, value)})
        if name in rest:
            body = with_numbers(body, rest=checks.rest_position(f"the rest of joint {name!r}", rest[name], body.kind))
        bodies[index] = body
    changes = [("armature", mech.body_index(name)) for name in numbers] if quantity == "armature" else []
    others: dict[str, Any] = {"bodies": tuple(bodies)}
    if quantity == "limits":
        pairs = zip(mech.bodies, bodies, strict=True)
        efforts = {after.joint: after.limits.effort[0] for before, after in pairs if _another_effort(before, after)}
        others["elements"] = with_efforts(mech, efforts)
    return variant(mech, changes, **others)


def _another_effort(before: Body, after: Body) -> bool:
    """Whether the effort limit of a joint with one coordinate changed; others have no effect."""
    return before.kind.nv == 1 and before.kind.rates_are_velocities and before.limits.effort != after.limits.effort


def _check_value(body: Body, quantity: str, value: Any) -> Any:
    """One number per coordinate, or limits; defects are errors."""
    joint = f"joint {body.joint!r}"
    if quantity != "limits":
        value = checks.per_coordinate(f"the {quantity} of {joint}", value, body.kind.nv)
        defects = checks.limit_defects((), (), {quantity: value})
    elif not isinstance(value, Limits):
        raise MechanismError(f"{joint}: limits are Limits(lower, upper, velocity, effort), not {value!r}")
    else:
        value = value.per_coordinate(joint, body.kind.nq, body.kind.nv)
        at_least_zero = {"velocity limit": value.velocity, "effort limit": value.effort}
        defects = checks.limit_defects(value.lower, value.upper, at_least_zero)
    for defect in defects:
        raise MechanismError(f"{joint}: {defect}")
    return value


def attach(mech: Mechanism, link: str, mass: float, com: Any, inertia: Any) -> Mechanism:
    """A rigid body fixed to a link or welded frame; ``com`` and ``inertia`` (about com) are in that frame."""
    frame = mech.frame(link)
    label = f"the payload of {link!r}"
    part = RigidMass.checked(label, mass, com, inertia)
    for defect in checks.inertia_defects(part.mass, part.inertia, com=part.com.tolist()):
        raise MechanismError(f"{label}: {defect}")
    if frame.body < 0:
        raise MechanismError(f"{link!r} of mechanism {mech.name!r} is fixed to the ground: a payload changes nothing")
    bodies = list(mech.bodies)
    body = bodies[frame.body]
    carried = RigidMass(body.mass, body.com, body.inertia), part.seen_from(*frame.pose)
    bodies[frame.body] = _set_mass(body, combined(carried))
    return variant(mech, [("inertial", frame.body)], bodies=tuple(bodies))


def add_frame(mech: Mechanism, name: str, link: str, pose: Any) -> Mechanism:
    """A named frame fixed to a link or frame, at ``pose`` in it."""
    if checks.checked_name("frame", name) in mech.frames:
        raise MechanismError(f"mechanism {mech.name!r} has a link or frame {name!r} already; names must be unique")
    carrier = mech.frame(link)
    inner = checked_pose(f"the pose of frame {name!r}", pose)
    frame = Frame(name, carrier.body, *composed(carrier.pose, inner), carrier.link)
    return variant(mech, (), frames=MappingProxyType({**mech.frames, name: frame}))


# -- one mechanism on another; its ground becomes the frame PREFIXmount ----------------------------------


MOUNT = "mount"


@dataclass(frozen=True)
class _Names:
    """Renames parts of the attached mechanism; ``link`` renames links and frames."""

    prefix: str
    mount: str

    def __call__(self, name: str) -> str:
        return self.prefix + name

    def link(self, name: str) -> str:
        return self.mount if name == GROUND else self.prefix + name

    def coordinates(self, values: Coordinates) -> Coordinates:
        return tuple((self(name), numbers) for name, numbers in values)

    def renamed(self, record: Any, *fields: str, links: Iterable[str] = ()) -> Any:
        """A record with renamed fields; fields in ``links`` name links."""
        renamed = {field: self(getattr(record, field)) for field in fields if hasattr(record, field)}
        renamed |= {field: self.link(getattr(record, field)) for field in links if hasattr(record, field)}
        return dataclasses.replace(record, **renamed)


@dataclass(frozen=True)
class _RenamedFunction:
    """A function of {joint name: coordinate} whose joints have got a prefix."""

    function: Callable[[dict[str, Any]], Any]
    prefix: str

    def __call__(self, named: Mapping[str, Any]) -> Any:
        return self.function({name.removeprefix(self.prefix): x for name, x in named.items()})


def attached(mech: Mechanism, other: Mechanism, frame: str, pose: Any, prefix: str) -> Mechanism:
    """``mech`` with ``other`` on one of its frames."""
    _require(other, prefix)
    carrier = mech.frame(frame)
    at = composed(carrier.pose, checked_pose(f"the pose of {other.name!r}", pose))
    mount = unused_name(prefix + MOUNT, {*mech.frames, *(prefix + name for name in other.frames)})
    names = _Names(prefix, mount)
    other = other if carrier.body < 0 else _drop_floors(other)
    _refuse_common_names(mech, other, names)
    count = len(mech.bodies)

    def placed(frame: Frame) -> Frame:
        if frame.body >= 0:
            return Frame(names(frame.name), frame.body + count, frame.rotation, frame.position)
        return Frame(names.link(frame.name), carrier.body, *composed(at, frame.pose))

    frames = [*mech.frames.values(), *map(placed, other.frames.values())]
    fixed = [RigidMass.from_numbers(other.annotations.ground_mass).seen_from(*at)]
    return dataclasses.replace(
        mech,
        bodies=(
            *_loaded(mech.bodies, carrier.body, fixed),
            *(_body(body, names, count, carrier.body, at) for body in other.bodies),
        ),
        frames={frame.name: frame for frame in frames},
        loops=(*mech.loops, *(_constraint(loop, names) for loop in other.loops)),
        annotations=_annotations(mech, other, names, fixed if carrier.body < 0 else []),
        elements=(*mech.elements, *(_element(element, names) for element in other.elements)),
        switched_off=_switched_off(mech, other, names),
        shapes=(*mech.shapes, *(names.renamed(shape, "name", links=("link",)) for shape in other.shapes)),
        contact_pairs=(*mech.contact_pairs, *(names.renamed(x, "shape_a", "shape_b") for x in other.contact_pairs)),
    )


def _require(other: Any, prefix: Any) -> None:
    if isinstance(other, str) or hasattr(other, "__fspath__"):
        raise TypeError(f"with_mechanism takes a mechanism: with_mechanism(linkwise.load({str(other)[:60]!r}), ...)")
    require_mechanism(other)
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be a string such as 'hand_', got {prefix!r}")


def _drop_floors(other: Mechanism) -> Mechanism:
    """The mechanism without planes fixed to its ground, which would move with the link it is attached to."""
    floors = {shape.name for shape in other.shapes if shape.kind == PLANE and shape.placed(other)[0] < 0}
    if not floors:
        return other
    warn_caller(
        f"the planes {', '.join(map(repr, sorted(floors)))} of the ground of mechanism {other.name!r} are left out "
        "where it is attached to what moves; mech.with_ground() makes a floor",
        OmissionWarning,
    )
    kept: tuple[Shape, ...] = tuple(shape for shape in other.shapes if shape.name not in floors)
    pairs: tuple[ContactPair, ...] = tuple(pair for pair in other.contact_pairs if not floors & set(pair.shapes))
    return dataclasses.replace(other, shapes=kept, contact_pairs=pairs)


def _refuse_common_names(mech: Mechanism, other: Mechanism, names: _Names) -> None:
    def of(mechanism: Mechanism) -> dict[str, list[str]]:
        return {
            "joint": list(mechanism.joint_names),
            "link or frame": [name for name in mechanism.frames if name != GROUND],
            "loop": [loop.name for loop in mechanism.loops],
            "shape": [shape.name for shape in mechanism.shapes],
            "actuator": [record.name for record in mechanism.elements if hasattr(record, "transmission")],
            "tendon": [tendon.name for tendon in mechanism.forces.tendons],
        }

    mine, theirs = of(mech), of(other)
    for noun, names_of_kind in mine.items():
        common = [name for name in theirs[noun] if names(name) in names_of_kind]
        if common:
            raise MechanismError(
                f"mechanism {mech.name!r} has a {noun} {names(common[0])!r} already, as {other.name!r} would: give its "
                f"names a prefix of their own, prefix={other.name + '_'!r}"
            )


def _loaded(bodies: tuple[Body, ...], index: int, fixed: list[RigidMass]) -> tuple[Body, ...]:
    """The bodies, with fixed masses added to the one at ``index``."""
    if index < 0:
        return bodies
    body = bodies[index]
    total = combined([RigidMass(body.mass, body.com, body.inertia), *fixed])
    loaded = dataclasses.replace(body, mass=total.mass, com=total.com, inertia=total.inertia)
    return (*bodies[:index], body if total.is_nothing else loaded, *bodies[index + 1 :])


def _body(body: Body, names: _Names, count: int, carrier: int, at: Pose) -> Body:
    parent, pose = body.parent + count, body.pose
    if body.parent < 0:
        parent, pose = carrier, composed(at, pose)
    return dataclasses.replace(
        body,
        link=names(body.link),
        joint=names(body.joint),
        parent=parent,
        rotation=pose[0],
        position=pose[1],
        mimic=None if body.mimic is None else names.renamed(body.mimic, "joint"),
    )


def _constraint(loop: Constraint, names: _Names) -> Constraint:
    if isinstance(loop, Loop):
        return names.renamed(loop, "name", links=("link_a", "link_b"))

    def renamed(function: Any) -> Any:
        return _RenamedFunction(function, names.prefix) if callable(function) else function

    ratios = tuple((names(joint), renamed(ratio)) for joint, ratio in loop.ratios)
    return Coupling(names(loop.name), ratios, loop.offset, loop.drive, loop.keeps_position, renamed(loop.relation))


def _element(record: Any, names: _Names) -> Any:
    """An actuator, a tendon or another record."""
    if getattr(record, "transmission", "") == "site":
        return names.renamed(record, "name", links=("target",))
    made = names.renamed(record, "name", "target", "joint", links=("link",))
    if hasattr(record, "joints"):
        made = dataclasses.replace(made, joints=names.coordinates(record.joints))
    return made


def _switched_off(mech: Mechanism, other: Mechanism, names: _Names) -> Switches:
    """Switches of both: a kind that is off in both stays off as a whole, otherwise the names are listed."""
    off: dict[tuple[str, str], None] = {}
    known, others = known_elements(mech), known_elements(other)
    for kind in known:
        all_off = [(kind, "") in either.switched_off for either in (mech, other)]
        if all(all_off):
            off[kind, ""] = None
            continue
        off |= {(kind, name): None for name in known[kind] if not mech.forces.acts(kind, name)}
        for name in others[kind]:
            if not other.forces.acts(kind, name):
                off[kind, "/".join(map(names, name.split("/"))) if kind == "contact" else names(name)] = None
    return tuple(off)


def _annotations(mech: Mechanism, other: Mechanism, names: _Names, fixed: list[RigidMass]) -> Annotations:
    mine, theirs = mech.annotations, other.annotations
    grounded = combined([RigidMass.from_numbers(mine.ground_mass), *fixed])
    return Annotations(
        notes=mine.notes + theirs.notes,
        initial=mine.initial + names.coordinates(theirs.initial),
        postures=(*mine.postures, *((names(name), names.coordinates(q)) for name, q in theirs.postures)),
        groups=(*mine.groups, *((names(name), tuple(map(names, members))) for name, members in theirs.groups)),
        fixed_joints=(*mine.fixed_joints, *map(names, theirs.fixed_joints)),
        actuated=_joints_of_both(mech, other, names, "actuated"),
        independent=_joints_of_both(mech, other, names, "independent"),
        keyframes=(
            *mine.keyframes,
            *(
                (names(name), names.coordinates(v), names.coordinates(u), names.coordinates(x))
                for name, v, u, x in theirs.keyframes
            ),
        ),
        timestep=theirs.timestep if mine.timestep is None else mine.timestep,
        integrator=theirs.integrator if mine.integrator is None else mine.integrator,
        looks=(*mine.looks, *(names.renamed(look, "name", links=("link",)) for look in theirs.looks)),
        ground_mass=grounded.numbers,
        neighbours_touch=mine.neighbours_touch or theirs.neighbours_touch,
        kept_apart=(*mine.kept_apart, *((names.link(a), names.link(b)) for a, b in theirs.kept_apart)),
    )


def _joints_of_both(mech: Mechanism, other: Mechanism, names: _Names, field: str) -> tuple[str, ...] | None:
    """Joints listed by the files of both mechanisms; a mechanism without a list contributes all joints that can have a
    motor.
    """
    said = [getattr(either.annotations, field) for either in (mech, other)]
    if said == [None, None]:
        return None
    for k, either in enumerate((mech, other)):
        if said[k] is None:
            said[k] = tuple(b.joint for b in either.bodies if not (b.mimic or b.kind.is_free))
    return (*said[0], *map(names, said[1]))
