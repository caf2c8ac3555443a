"""MJCF, the model format of MuJoCo: the inverse of ``readers/mjcf``.

Bodies without mass that only stand between two joints become further joints of the body that they carry, since MuJoCo
moves nothing without mass.  Loops are equalities of sites: ``connect`` for balls, ``weld``, and for hinges two
``connect`` along the axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from linkwise.mechanics.spatial.quaternion import rotation_matrix
from linkwise.mechanism import Actuator, Coupling, Loop, Mechanism
from linkwise.mechanism.annotation import USUAL_INTEGRATOR
from linkwise.mechanism.contact import contact_defaults
from linkwise.mechanism.naming import unused_name
from linkwise.mechanism.poses import quaternion_from_rotation
from linkwise.mechanism.shapes import can_touch, in_order
from linkwise.mechanism.welding import ORIGIN, composed
from linkwise.writers.composed_joints import compose_joints
from linkwise.writers.loops import refuse_functions
from linkwise.writers.mjcf.bodies import FORMAT, NO_LIMIT, TOUCHES_NOTHING, Bodies
from linkwise.writers.mjcf.fluid import Fluid
from linkwise.writers.mjcf.looks import write_looks
from linkwise.writers.report import Report, listed
from linkwise.writers.xml import document, element


def written(mech: Mechanism, report: Report) -> str:
    """The mechanism as MJCF text."""
    mech = compose_joints(mech, FORMAT, report)
    root = element(None, "mujoco", model=mech.name)
    element(root, "compiler", angle="radian", autolimits="false", inertiafromgeom="false")
    fluid = Fluid(mech, report)
    option = element(
        root, "option", gravity=mech.gravity, timestep=mech.metadata.timestep, **_set(mech), **fluid.option
    )
    if mech.annotations.neighbours_touch:
        element(option, "flag", filterparent="disable")
    bodies = Bodies(mech, report, fluid.axes)
    bodies.write(element(root, "worldbody"))
    write_contacts(root, mech, bodies, report)
    write_looks(root, mech, bodies, report)
    fluid.write(root, bodies)
    write_tendons(root, mech)
    write_equalities(root, mech, bodies, report)
    write_actuators(root, mech, bodies, report)
    write_keyframes(root, mech, bodies.order)
    for body in mech.bodies:
        if min(body.limits.velocity) < math.inf:
            report.omit("velocity limit", body.joint)
    for group in mech.metadata.groups:
        report.omit("group of joints", group)
    idle = {kind: names for kind, names in mech.forces.idle.items() if kind != "actuators"}
    if idle:
        report.remark("switched off here, and acting when read again", listed(idle))
    if [mech.bodies[i].joint for i in bodies.order] != list(mech.joint_names):
        report.remark("joints are in depth-first order there (lw.interop.to_mechanism converts states)")
    return document(root)


def _set(mech: Mechanism) -> dict[str, object]:
    """Set further options: an unusual integrator, and the group of elements that are switched off."""
    return {
        "integrator": None if mech.metadata.integrator == USUAL_INTEGRATOR else mech.metadata.integrator,
        "actuatorgroupdisable": SWITCHED_OFF if "actuators" in mech.forces.idle else None,
    }


# -- tendons and actuators -------------------------------------------------------------------------------


SWITCHED_OFF = 1  # group of actuators


def write_tendons(root: Element, mech: Mechanism) -> None:
    """Fixed tendons; the part of a length that is constant is taken from rest and limits instead."""
    if not mech.forces.tendons:
        return
    section = element(root, "tendon")
    for tendon in mech.forces.tendons:
        rest = [x - tendon.offset for x in tendon.rest]
        if rest == [-1.0, -1.0]:  # which stands for a length that is not given
            rest[0] = math.nextafter(-1.0, -2.0)
        limits = None if tendon.limits is None else [_finite(x - tendon.offset) for x in tendon.limits]
        made = element(
            section,
            "fixed",
            name=tendon.name,
            stiffness=tendon.stiffness or None,
            springlength=rest,
            damping=tendon.damping or None,
            frictionloss=tendon.friction or None,
            limited=True if limits else None,
            range=limits,
        )
        for joint, arm in tendon.joints:
            element(made, "joint", joint=joint, coef=arm)


def write_actuators(root: Element, mech: Mechanism, bodies: Bodies, report: Report) -> None:
    """Every actuator as ``<general>``."""
    actuators = [element for element in mech.elements if isinstance(element, Actuator)]
    section = element(root, "actuator") if actuators else None
    offsets = {tendon.name: tendon.offset for tendon in mech.forces.tendons}
    for actuator in actuators:
        offset = actuator.gear[0] * offsets[actuator.target] if actuator.transmission == "tendon" else 0.0
        gain, bias = ((p[0] + p[1] * offset, *p[1:]) for p in (actuator.gain, actuator.bias))
        if gain[0] == -bias[1] and bias[2] > 0.0 and not any(gain[1:]):
            report.omit("damping of a servo that drives motion", actuator.name)  # read as a damping ratio
        target = actuator.target
        if actuator.transmission == "site":
            target = bodies.site(actuator.target, ORIGIN, actuator.target)
        ranges: dict[str, Any] = {}
        for word, bounds in (
            ("ctrl", actuator.ctrl_range),
            ("force", actuator.force_range),
            ("act", actuator.activation_range),
        ):
            if bounds is not None:
                ranges |= {f"{word}limited": True, f"{word}range": [_finite(x) for x in bounds]}
        element(
            section,
            "general",
            name=actuator.name,
            group=None if mech.forces.acts("actuators", actuator.name) else SWITCHED_OFF,
            gear=actuator.gear,
            gaintype="affine" if any(gain[1:]) else "fixed",
            gainprm=gain,
            biastype="affine" if any(bias) else "none",
            biasprm=bias,
            dyntype=actuator.dynamics if actuator.has_activation else None,
            dynprm=actuator.time_constant if actuator.has_activation else None,
            **{actuator.transmission: target},
            **ranges,
        )


def _finite(x: float) -> float:
    return min(max(x, -NO_LIMIT), NO_LIMIT)


# -- keyframes, in MuJoCo's order and conventions --------------------------------------------------------


def write_keyframes(root: Element, mech: Mechanism, order: Sequence[int]) -> None:
    """Write one key per posture; ``order`` is the joint order of the file."""
    if not mech.postures:
        return
    section = element(root, "keyframe")
    actuators = [element for element in mech.elements if isinstance(element, Actuator)]
    known = {name: tuple(map(dict, more)) for name, *more in mech.annotations.keyframes}
    for name, q in mech.postures.items():
        velocities, inputs, activations = known.get(name, ({}, {}, {}))
        qpos: list[float] = []
        qvel: list[float] = []
        for index in order:
            body, entry = mech.bodies[index], mech.coordinates.place(mech.bodies[index].joint)
            coordinates, rates = entry.positions(q), np.array(velocities.get(body.joint, (0.0,) * body.kind.nv))
            if body.mimic:
                rates = entry.ratio * np.array(velocities.get(body.mimic.joint, (0.0,)))
            if body.kind.is_free:
                axes = np.array(rotation_matrix(coordinates[:4].tolist()), dtype=float)
                rotation, position = composed(body.pose, (axes, coordinates[4:]))
                coordinates = np.array([*position, *quaternion_from_rotation(rotation)])
                rates = np.array([*(rotation @ rates[3:]), *rates[:3]])
            qpos += coordinates.tolist()
            qvel += rates.tolist()
        ctrl = [inputs.get(actuator.name, (0.0,))[0] for actuator in actuators]
        act = [activations.get(actuator.name, (0.0,))[0] for actuator in actuators if actuator.has_activation]
        element(
            section,
            "key",
            name=name,
            qpos=qpos,
            qvel=qvel if any(qvel) else None,
            ctrl=ctrl if any(ctrl) else None,
            act=act if any(act) else None,
        )


# -- <equality>, of loops, mimic joints and couplings ----------------------------------------------------


def write_equalities(root: Element, mech: Mechanism, bodies: Bodies, report: Report) -> None:
    """All constraints, exactly: MuJoCo's solver keeps them as well as its settings let it."""
    refuse_functions(mech, report)
    section = element(root, "equality")
    for body in mech.bodies:
        if body.mimic:
            value, mimicked = (float(bodies.initial[name][0]) for name in (body.joint, body.mimic.joint))
            offset = body.mimic.offset + body.mimic.ratio * mimicked - value
            rule = (offset, body.mimic.ratio, 0.0, 0.0, 0.0)
            element(section, "joint", joint1=body.joint, joint2=body.mimic.joint, polycoef=rule)
    for loop in mech.loops:
        if isinstance(loop, Coupling) and loop.relation is not None:
            raise report.refuse(
                f"MJCF has no equality for the relation {loop.name!r} of {', '.join(repr(x) for x, _ in loop.ratios)}; "
                "save it as URDF, whose companion file holds it"
            )
        if isinstance(loop, Coupling):
            _coupling(root, section, bodies, loop)
        else:
            _loop(section, mech, bodies, loop, report)
    if not len(section):
        root.remove(section)


def _loop(section: Element, mech: Mechanism, bodies: Bodies, loop: Loop, report: Report) -> None:
    entry = loop.kind.formats.get(FORMAT)
    if entry is None or not entry.loop:
        raise report.refuse(
            f"MJCF has no equality for the loop {loop.name!r}, which {loop.kind!r} closes; save it as URDF, which can "
            "say it, or save mech.spanning_tree, which is without loops"
        )
    axes = entry.directions(loop.kind)
    if not axes:
        _meet(section, bodies, entry.loop, loop, loop.name, np.zeros(3))
    for axis in axes:
        # A hinge holds two points of its axis together; as far from each other as the hinge is from its links.
        reach = max(float(np.linalg.norm(position)) for _, position in (loop.pose_a, loop.pose_b)) or 1.0
        names = loop.name, f"{loop.name}.2"
        _meet(section, bodies, entry.loop, loop, names[0], np.zeros(3))
        _meet(section, bodies, entry.loop, loop, names[1], reach * np.array(axis))
        report.remark("hinges that close loops, as two points of their axes", f"{names[0]} ({', '.join(names)})")


def _meet(section: Element, bodies: Bodies, tag: str, loop: Loop, name: str, at: np.ndarray) -> None:
    """Two sites that coincide, at a point in the frames of the loop."""
    sites = []
    for side, link, (rotation, position) in (("a", loop.link_a, loop.pose_a), ("b", loop.link_b, loop.pose_b)):
        sites.append(bodies.site(link, (rotation, position + rotation @ at), f"{name}.{side}"))
    element(section, tag, name=name, site1=sites[0], site2=sites[1])


def _coupling(root: Element, section: Element, bodies: Bodies, coupling: Coupling) -> None:
    """A fixed tendon, the weighted sum of coordinates, with an equality for its value."""
    tendons = root.find("tendon")
    tendons = element(root, "tendon") if tendons is None else tendons
    name = unused_name(coupling.name, {tendon.get("name", "") for tendon in tendons})
    tendon = element(tendons, "fixed", name=name)
    for joint, ratio in coupling.ratios:
        element(tendon, "joint", joint=joint, coef=ratio)
    length = sum(ratio * float(bodies.initial[joint][0]) for joint, ratio in coupling.ratios)
    element(
        section, "tendon", name=coupling.name, tendon1=name, polycoef=(coupling.offset - length, 0.0, 0.0, 0.0, 0.0)
    )


# -- <contact>, and masks that let nothing else touch ----------------------------------------------------


def write_contacts(root: Element, mech: Mechanism, bodies: Bodies, report: Report) -> None:
    """Write ``<pair>`` for each contact and ``<exclude>`` for links kept apart. Masks are kept if they lead to exactly
    these contacts.
    """
    if not mech.shapes:
        return
    acting = {frozenset(pair.shapes) for pair in mech.contact_pairs}
    if not _mask_pairs(mech) <= acting:
        for geom in root.iter("geom"):
            for word, mask in zip(("contype", "conaffinity"), TOUCHES_NOTHING, strict=True):
                geom.set(word, str(mask))
        if any((shape.category, shape.collides_with) != (1, 1) for shape in mech.shapes):
            report.omit("masks of shapes that are not to touch what they could")
    section = element(root, "contact") if mech.contact_pairs or mech.annotations.kept_apart else None
    for names in _kept_apart(mech, bodies, report):
        element(section, "exclude", body1=names[0], body2=names[1])
    defaults = contact_defaults(mech)
    for pair in mech.contact_pairs:
        law = pair.law
        sliding = law.friction
        element(
            section,
            "pair",
            geom1=pair.shape_a,
            geom2=pair.shape_b,
            condim=3 if sliding else 1,
            friction=(sliding, sliding, 0.005, 0.0001, 0.0001) if sliding else None,
            margin=law.margin,
        )
        again = defaults.pair(*pair.shapes, sliding).law
        if replace(again, margin=law.margin) != law:
            report.omit("numbers of contact (stiffness, dissipation, ...)", pair.name)


def _kept_apart(mech: Mechanism, bodies: Bodies, report: Report) -> list[tuple[str, ...]]:
    """Names of moving bodies without contact between any of their shapes."""
    apart = {frozenset(pair) for pair in mech.annotations.kept_apart}
    groups: dict[frozenset[int], tuple[str, ...]] = {}
    for pair in mech.annotations.kept_apart:
        moving = [mech.frame(name).body for name in pair if name in mech.frames]
        sides = [[shape.link for shape in mech.shapes if shape.placed(mech)[0] == body] for body in moving]
        if len(set(moving)) < 2 or min(moving) < 0 or not all(sides):
            continue
        if all(frozenset((a, b)) in apart for a in sides[0] for b in sides[1]):
            groups[frozenset(moving)] = tuple(bodies.inside(body, ORIGIN)[0].get("name", "") for body in moving)
        else:
            report.omit("parts of links that are kept apart", " and ".join(pair))
    return list(groups.values())


def _mask_pairs(mech: Mechanism) -> set[frozenset[str]]:
    """Pairs of moving and fixed shapes that masks let touch."""
    placed = [(shape, shape.placed(mech)[0]) for shape in mech.shapes]
    moving = [shape for shape, body in placed if body >= 0]
    fixed = [shape for shape, body in placed if body < 0]
    pairs = set()
    for first in moving:
        for other in fixed:
            a, b = in_order(mech, first, other)
            if first.may_touch(other) and can_touch(mech, a, b):
                pairs.add(frozenset((first.name, other.name)))
    return pairs
