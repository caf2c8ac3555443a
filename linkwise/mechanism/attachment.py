"""One mechanism attached to another: a hand to an arm, a leg to a trunk, two robots in one world.

All names of the attached mechanism get a prefix. Its ground becomes the frame ``PREFIXmount`` of the carrier, and parts
fixed to its ground are welded there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.mechanism.annotation import Annotations, Coordinates
from linkwise.mechanism.checks import MechanismError, OmissionWarning, warn_caller
from linkwise.mechanism.elements import Switches
from linkwise.mechanism.forces import known_elements
from linkwise.mechanism.model import GROUND, Mechanism, require_mechanism
from linkwise.mechanism.naming import unused_name
from linkwise.mechanism.parts import Body, Constraint, Coupling, Frame, Loop
from linkwise.mechanism.poses import checked_pose
from linkwise.mechanism.shapes import PLANE, ContactPair, Shape
from linkwise.mechanism.welding import RigidMass, combined, composed

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
    at = composed((carrier.rotation, carrier.position), checked_pose(f"the pose of {other.name!r}", pose))
    mount = unused_name(prefix + MOUNT, {*mech.frames, *(prefix + name for name in other.frames)})
    names = _Names(prefix, mount)
    other = other if carrier.body < 0 else _drop_floors(other)
    _refuse_common_names(mech, other, names)
    count = len(mech.bodies)

    def placed(frame: Frame) -> Frame:
        if frame.body >= 0:
            return Frame(names(frame.name), frame.body + count, frame.rotation, frame.position)
        return Frame(names.link(frame.name), carrier.body, *composed(at, (frame.rotation, frame.position)))

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


def _body(body: Body, names: _Names, count: int, carrier: int, at: tuple[np.ndarray, np.ndarray]) -> Body:
    parent, pose = body.parent + count, (body.rotation, body.position)
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
