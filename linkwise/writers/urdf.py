"""URDF, with loops of URDF+: the inverse of ``readers/urdf``."""

from __future__ import annotations

import math
import sys
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from linkwise.mechanism import GROUND, Actuator, Body, Coupling, EffortRange, Look, Loop, Mechanism, Pose, Shape
from linkwise.mechanism.annotation import USUAL_INTEGRATOR, USUAL_TIMESTEP, configuration
from linkwise.mechanism.elements import RECORDS, name_of
from linkwise.mechanism.looks import MESH
from linkwise.mechanism.naming import unused_name
from linkwise.mechanism.welding import composed
from linkwise.writers.composed_joints import compose_joints
from linkwise.writers.looks import mesh_path, pose_of, scale_of
from linkwise.writers.loops import refuse_functions, toml_of
from linkwise.writers.report import Report, listed
from linkwise.writers.xml import document, element, text

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
NO_LIMIT = sys.float_info.max  # the format has no infinite numbers
_MOMENTS = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
FORMAT = "urdf"


def written(mech: Mechanism, report: Report) -> str:
    """The mechanism as URDF text: its ground is the root link "ground", frames are links without mass."""
    mech = compose_joints(mech, FORMAT, report)
    root = element(None, "robot", name=mech.name)
    if tuple(mech.gravity.tolist()) != STANDARD_GRAVITY:
        element(root, "gravity", xyz=mech.gravity)
        report.remark("gravity, which linkwise reads and others skip")
    shapes = _shapes_by_link(mech, report)
    moving = {body.link: body for body in mech.bodies}
    for frame in mech.frames:
        link = element(root, "link", name=frame)
        if frame in moving:
            _inertial(link, moving[frame])
        for look in (visual for visual in mech.metadata.looks if visual.link == frame):
            _look(link, look, report)
        for shape in shapes.get(frame, ()):
            _collision(link, shape)
    for body in mech.bodies:
        _joint(root, mech, body, report)
    _welds(root, mech)
    _loops(root, mech, report)
    _motors(root, mech, report)
    _note_the_rest(mech, report)
    return document(root)


def _origin(parent: Element, pose: Pose) -> None:
    rotation, position = pose
    if not (np.array_equal(rotation, np.eye(3)) and not np.any(position)):
        element(parent, "origin", xyz=position, rpy=roll_pitch_yaw(rotation))


def roll_pitch_yaw(r: np.ndarray) -> tuple[float, float, float]:
    """Angles with r = Rz(yaw) Ry(pitch) Rx(roll), exact for vertical pitch too."""
    flat = math.hypot(r[0, 0], r[1, 0])
    yaw = math.atan2(r[1, 0], r[0, 0]) if flat > 1e-12 else 0.0
    pitch = math.atan2(-r[2, 0], flat)
    # What is left of the rotation is about x, however well yaw and pitch are determined.
    across = np.array([-math.sin(yaw), math.cos(yaw), 0.0])
    return math.atan2(-float(across @ r[:, 2]), float(across @ r[:, 1])), pitch, yaw


def _inertial(link: Element, body: Body) -> None:
    if body.mass == 0.0 and not body.inertia.any():
        return
    inertial = element(link, "inertial")
    _origin(inertial, (np.eye(3), body.com))
    element(inertial, "mass", value=body.mass)
    element(inertial, "inertia", **{name: body.inertia[index] for name, index in _MOMENTS.items()})


# -- joints -----------------------------------------------------------------------------------------------------


def _joint(root: Element, mech: Mechanism, body: Body, report: Report) -> None:
    independent = mech.annotations.independent
    free = None if independent is None or body.mimic or body.joint in independent else "false"
    entry, limits = body.kind.formats[FORMAT], (*body.limits.lower, *body.limits.upper)
    kind = entry.unlimited if entry.unlimited and not any(map(math.isfinite, limits)) else entry.type
    joint = element(root, "joint", name=body.joint, type=kind, independent=free)
    element(joint, "parent", link=mech.bodies[body.parent].link if body.parent >= 0 else GROUND)
    element(joint, "child", link=body.link)
    _origin(joint, body.pose)
    for axis in entry.directions(body.kind):
        element(joint, "axis", xyz=axis)
    _limit(joint, body, report)
    uniform = {name: _one_number(getattr(body, name)) for name in ("damping", "friction")}
    for name, value in uniform.items():
        if value is None:
            report.omit(f"{name} that differs between coordinates", body.joint)
    more = _extension(body)
    for name in more:
        report.remark(f"{name}, which linkwise reads and others skip", body.joint)
    if any(uniform.values()) or more:
        element(joint, "dynamics", damping=uniform["damping"] or 0.0, friction=uniform["friction"] or 0.0, **more)
    if body.mimic:
        element(joint, "mimic", joint=body.mimic.joint, multiplier=body.mimic.ratio, offset=body.mimic.offset)
    if entry.extension:
        report.remark(f"{entry.extension}, which URDF proper does not have", body.joint)
    if any(x is not None for x in (body.limits.stiffness, body.limits.damping)):
        report.omit("stiffness and damping of limits", body.joint)


def _extension(body: Body) -> dict[str, Any]:
    """Extensions of the format: rotor inertias, and springs as in SDF."""
    attributes: dict[str, Any] = {"armature": body.armature} if any(body.armature) else {}
    if any(body.stiffness):
        attributes |= {"spring_stiffness": body.stiffness, "spring_reference": body.rest}
    return attributes


def _limit(joint: Element, body: Body, report: Report) -> None:
    limits = body.limits
    most = {name: _one_number(getattr(limits, name)) for name in ("velocity", "effort")}
    for name, value in most.items():
        if value is None:
            report.omit(f"{name} limit that differs between coordinates", body.joint)
    numbers: dict[str, Any] = {name: _finite(math.inf if x is None else x) for name, x in most.items()}
    kind = joint.get("type")
    if kind in ("revolute", "prismatic"):
        numbers |= {"lower": _finite(limits.lower[0]), "upper": _finite(limits.upper[0])}
    elif np.isfinite([*limits.lower, *limits.upper]).any():
        report.omit("limits of position", body.joint)
    if kind in ("revolute", "prismatic") or min(numbers["velocity"], numbers["effort"]) < NO_LIMIT:
        element(joint, "limit", **numbers)


def _finite(x: float) -> float:
    return min(max(x, -NO_LIMIT), NO_LIMIT)


def _one_number(values: tuple[float, ...]) -> float | None:
    """The common number of all coordinates; None if they differ."""
    return values[0] if len(set(values)) == 1 else None


def _welds(root: Element, mech: Mechanism) -> None:
    """Frames that are fixed to moving links or the ground."""
    taken = {GROUND, *mech.joint_names}
    for frame in mech.frames.values():
        if frame.name in (GROUND, *mech.link_names):
            continue
        name = unused_name(f"{frame.name}_fixed", taken)
        joint = element(root, "joint", name=name, type="fixed")
        element(joint, "parent", link=mech.bodies[frame.body].link if frame.body >= 0 else GROUND)
        element(joint, "child", link=frame.name)
        _origin(joint, frame.pose)


# -- what is more than a tree -----------------------------------------------------------------------------------


def _loops(root: Element, mech: Mechanism, report: Report) -> None:
    """Write loops that URDF+ can express as <loop>, and the others to a companion file named by <loops file="..."/>."""
    refuse_functions(mech, report)
    known = [loop for loop in mech.loops if isinstance(loop, Loop) and _closes(loop)]
    others = [loop for loop in mech.loops if not isinstance(loop, Loop) or not _closes(loop)]
    for loop in known:
        _loop(root, loop)
    if known:
        report.remark("loops as <loop> of URDF+, which others skip", listed([loop.name for loop in known]))
    if not others:
        return
    if report.file is None:
        other = others[0]
        noun = "couplings of joints" if isinstance(other, Coupling) else f"loops that {other.kind!r} closes"
        raise report.refuse(
            f'URDF has no {noun}, such as {other.name!r}; mech.save("robot.urdf") writes them to a companion file '
            "beside it; or save mech.spanning_tree, which is without loops"
        )
    name = f"{report.file.stem}.loops.toml"
    element(root, "loops", file=name)
    report.companions[name] = toml_of(others)
    report.remark(f"loops in {name} beside it, which linkwise reads and others skip", listed([x.name for x in others]))


def _closes(loop: Loop) -> bool:
    """Whether the format can express the joint that closes the loop."""
    return FORMAT in loop.kind.formats and bool(loop.kind.formats[FORMAT].loop)


def _loop(root: Element, loop: Loop) -> None:
    entry = loop.kind.formats[FORMAT]
    made = element(root, "loop", name=loop.name, type=entry.loop)
    for tag, link, pose in (("predecessor", loop.link_a, loop.pose_a), ("successor", loop.link_b, loop.pose_b)):
        _origin(element(made, tag, link=link), pose)
    for axis in entry.directions(loop.kind):
        element(made, "axis", xyz=axis)


def _motors(root: Element, mech: Mechanism, report: Report) -> None:
    """Actuators whose input is a torque: transmissions; their bounds are the effort limits of the joints."""
    motors: dict[str, Actuator] = {}
    for actuator in (actuator for actuator in mech.elements if isinstance(actuator, Actuator)):
        plain = Actuator(actuator.name, actuator.target, gear=actuator.gear[:1])
        if actuator == plain and actuator.target not in motors:
            motors[actuator.target] = actuator
        else:
            report.omit("actuator that is more than a torque at a joint", actuator.name)
    for target, actuator in motors.items():
        made = element(root, "transmission", name=actuator.name)
        element(made, "type").text = "transmission_interface/SimpleTransmission"
        joint = element(made, "joint", name=target)
        element(joint, "hardwareInterface").text = "hardware_interface/EffortJointInterface"
        motor = element(made, "actuator", name=actuator.name)
        element(motor, "mechanicalReduction").text = repr(actuator.gear[0])
    for bounds in (actuator for actuator in mech.elements if isinstance(actuator, EffortRange)):
        effort = mech.bodies[mech.body_index(bounds.joint)].limits.effort[0]
        if bounds.joint not in motors or (bounds.lower, bounds.upper) != (-effort, effort):
            report.omit("range of what actuators give together", bounds.joint)


def _shapes_by_link(mech: Mechanism, report: Report) -> dict[str, list[Shape]]:
    shapes: dict[str, list[Shape]] = {}
    for shape in mech.shapes:
        if shape.kind in ("plane", "ellipsoid"):
            report.omit(f"{shape.kind} to touch", shape.name)
        else:
            shapes.setdefault(shape.link, []).append(shape)
    for shape in mech.shapes:
        if (shape.friction, shape.category, shape.collides_with) != (1.0, 1, 1):
            report.omit("friction or masks", shape.name)
    return shapes


def _collision(link: Element, shape: Shape) -> None:
    collision = element(link, "collision", name=shape.name)
    _origin(collision, shape.pose)
    _geometry(element(collision, "geometry"), shape.kind, shape.size)


def _geometry(geometry: Element, kind: str, size: tuple[float, ...]) -> None:
    double = [2.0 * x for x in size]
    if kind == "box":
        element(geometry, "box", size=double)
    elif kind == "sphere":
        element(geometry, "sphere", radius=size[0])
    else:
        element(geometry, kind, radius=size[0], length=double[1])


def _look(link: Element, look: Look, report: Report) -> None:
    """Write a visual, and collision meshes."""
    if look.kind in ("plane", "ellipsoid"):
        report.omit(f"{look.kind} to be seen", look.name)
        return
    if look.collision and look.kind != MESH:
        report.omit("shape that neither touches nor is seen", look.name)
        return
    shaping = scale_of(look) if look.kind == MESH else None
    if look.kind == MESH and (shaping is None or not look.file or not np.array_equal(shaping[1], np.eye(3))):
        report.omit("mesh without file, or rotated before it is scaled", look.name)
        return
    made = element(link, "collision" if look.collision else "visual", name=look.name)
    pose = pose_of(look)
    if shaping is None:
        _origin(made, pose)
        _geometry(element(made, "geometry"), look.kind, look.size)
    else:
        scale, _, point = shaping
        _origin(made, composed(pose, (np.eye(3), -scale * point)))
        # Packages stay what they are: who uses them knows where they lie.
        file = look.file if "://" in look.file else mesh_path(look, report.file) or look.file
        element(element(made, "geometry"), MESH, filename=file, scale=None if (scale == 1.0).all() else scale)
    if look.colour is not None:
        material = element(made, "material", name=f"rgba {text(look.colour)}")
        element(material, "color", rgba=look.colour)


def _note_the_rest(mech: Mechanism, report: Report) -> None:
    """Report every part that the format has no element for."""
    for record in mech.elements:
        if not isinstance(record, (Actuator, EffortRange)):
            report.omit(RECORDS[type(record)].replace("_", " ").removesuffix("s"), name_of(record))
    for pair in mech.contact_pairs:
        report.omit("contact", pair.name)
    for noun, names in (("posture", mech.postures), ("group of joints", mech.metadata.groups)):
        for name in names:
            report.omit(noun, name)
    if not np.array_equal(mech.initial, configuration(mech.bodies)):
        report.omit("initial configuration")
    if mech.metadata.timestep not in (None, USUAL_TIMESTEP):
        report.omit(f"time step of {mech.metadata.timestep:g} s")
    if mech.metadata.integrator not in (None, USUAL_INTEGRATOR):
        report.omit(f"integrator {mech.metadata.integrator}")
    if mech.forces.idle:
        report.remark("switched off here, and acting when read again", listed(mech.forces.idle))
