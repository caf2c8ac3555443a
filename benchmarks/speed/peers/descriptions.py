"""A mechanism as URDF or SDF text, for libraries that read nothing else: revolute and prismatic joints, fixed base."""

from __future__ import annotations

import math
import warnings
from xml.etree import ElementTree

import numpy as np

import linkwise as lw

_MASS = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def urdf_of(mech: lw.Mechanism, massive_root: bool = False) -> str:
    """As ``mech.save`` writes it, with what some readers want: limits of every joint, origins also where they are
    zero, and a mass of its ground where it is wanted of every link."""
    bounded = mech.with_limits({name: lw.Limits(-1e3, 1e3, 1e9, 1e9) for name in mech.joint_names})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        robot = ElementTree.fromstring(lw.interop.urdf_text(bounded))
    for element in (*robot.iter("joint"), *robot.iter("inertial")):
        if element.find("origin") is None:
            element.insert(0, ElementTree.Element("origin", xyz="0 0 0", rpy="0 0 0"))
    text = ElementTree.tostring(robot, encoding="unicode")
    return text.replace('<link name="ground" />', f'<link name="ground">{_MASS}</link>') if massive_root else text


def sdf_of(mech: lw.Mechanism) -> str:
    """The same, with its ground as the link ``base`` that is fixed to the world."""
    unit = _sdf_inertial(1.0, np.zeros(3), np.eye(3))
    lines = [f'<sdf version="1.10"><model name="{mech.name}">', f'  <link name="base">{unit}</link>']
    lines.append('  <joint name="fixed_base" type="fixed"><parent>world</parent><child>base</child></joint>')
    for body in mech.bodies:
        parent = mech.bodies[body.parent].link if body.parent >= 0 else "base"
        kind = "revolute" if body.kind.hinge else "prismatic"
        axis = _numbers(body.kind.hinge or body.kind.slide)
        pose = f"{_numbers(body.position)} {_numbers(_roll_pitch_yaw(body.rotation))}"
        lines += [
            f'  <link name="{body.link}"><pose relative_to="{body.joint}">0 0 0 0 0 0</pose>',
            f"    {_sdf_inertial(body.mass, body.com, body.inertia)}</link>",
            f'  <joint name="{body.joint}" type="{kind}"><pose relative_to="{parent}">{pose}</pose>',
            f"    <parent>{parent}</parent><child>{body.link}</child>",
            f"    <axis><xyz>{axis}</xyz><limit><lower>-1e3</lower><upper>1e3</upper></limit></axis></joint>",
        ]
    return "\n".join([*lines, "</model></sdf>", ""])


def _sdf_inertial(mass: float, com: np.ndarray, inertia: np.ndarray) -> str:
    moments = "".join(f"<{name}>{value!r}</{name}>" for name, value in _moments(inertia).items())
    place = f"<pose>{_numbers(com)} 0 0 0</pose>"
    return f"<inertial>{place}<mass>{float(mass)!r}</mass><inertia>{moments}</inertia></inertial>"


def _moments(inertia: np.ndarray) -> dict[str, float]:
    places = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    return {f"i{'xyz'[a]}{'xyz'[b]}": float(inertia[a, b]) for a, b in places}


def _numbers(values: object) -> str:
    return " ".join(repr(float(x)) for x in np.asarray(values))


def _roll_pitch_yaw(r: np.ndarray) -> tuple[float, float, float]:
    """Angles with r = Rz(yaw) Ry(pitch) Rx(roll)."""
    pitch = math.atan2(-r[2, 0], math.hypot(r[0, 0], r[1, 0]))
    if abs(math.cos(pitch)) < 1e-9:  # straight up or down: one of the others is free
        return math.atan2(-r[1, 2], r[1, 1]), pitch, 0.0
    return math.atan2(r[2, 1], r[2, 2]), pitch, math.atan2(r[1, 0], r[0, 0])
