"""A mechanism as URDF or SDF text, for libraries that read nothing else: revolute and prismatic joints, fixed base."""

from __future__ import annotations

import math

import numpy as np

import linkwise as lw

ROOT = "world"


def urdf_of(mech: lw.Mechanism, massive_root: bool = False) -> str:
    """Links and joints by the mechanism's names, its ground as the link ``world``, with a mass where readers want one
    of every link."""
    mass = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    lines = [f'<robot name="{mech.name}">', f'  <link name="{ROOT}">{mass if massive_root else ""}</link>']
    for body in mech.bodies:
        moments = " ".join(f'{name}="{value!r}"' for name, value in _moments(body.inertia).items())
        lines += [
            f'  <link name="{body.link}"><inertial><origin xyz="{_numbers(body.com)}" rpy="0 0 0"/>',
            f'    <mass value="{float(body.mass)!r}"/><inertia {moments}/></inertial></link>',
        ]
    for body in mech.bodies:
        kind = "revolute" if isinstance(body.kind, lw.Revolute) else "prismatic"
        parent = mech.bodies[body.parent].link if body.parent >= 0 else ROOT
        axis = _numbers(body.kind.axis)  # type: ignore[attr-defined]
        lines += [
            f'  <joint name="{body.joint}" type="{kind}"><parent link="{parent}"/><child link="{body.link}"/>',
            f'    <origin xyz="{_numbers(body.position)}" rpy="{_numbers(_roll_pitch_yaw(body.rotation))}"/>',
            f'    <axis xyz="{axis}"/><limit lower="-1e3" upper="1e3" effort="1e9" velocity="1e9"/></joint>',
        ]
    return "\n".join([*lines, "</robot>", ""])


def sdf_of(mech: lw.Mechanism) -> str:
    """The same, with its ground as the link ``base`` that is fixed to the world."""
    unit = _sdf_inertial(1.0, np.zeros(3), np.eye(3))
    lines = [f'<sdf version="1.10"><model name="{mech.name}">', f'  <link name="base">{unit}</link>']
    lines.append('  <joint name="fixed_base" type="fixed"><parent>world</parent><child>base</child></joint>')
    for body in mech.bodies:
        parent = mech.bodies[body.parent].link if body.parent >= 0 else "base"
        kind = "revolute" if isinstance(body.kind, lw.Revolute) else "prismatic"
        axis = _numbers(body.kind.axis)  # type: ignore[attr-defined]
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
