"""A mechanism as URDF text, for libraries that read nothing else: revolute and prismatic joints on a fixed base."""

from __future__ import annotations

import math

import numpy as np

import linkwise as lw

ROOT = "world"


def text_of(mech: lw.Mechanism) -> str:
    """Links and joints by the mechanism's names, its ground as the link ``world``."""
    lines = [f'<robot name="{mech.name}">', f'  <link name="{ROOT}"/>']
    for body in mech.bodies:
        i = body.inertia
        moments = " ".join(
            f'i{"xyz"[a]}{"xyz"[b]}="{float(i[a, b])!r}"' for a, b in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
        )
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


def _numbers(values: object) -> str:
    return " ".join(repr(float(x)) for x in np.asarray(values))


def _roll_pitch_yaw(r: np.ndarray) -> tuple[float, float, float]:
    """Angles with r = Rz(yaw) Ry(pitch) Rx(roll)."""
    pitch = math.atan2(-r[2, 0], math.hypot(r[0, 0], r[1, 0]))
    if abs(math.cos(pitch)) < 1e-9:  # straight up or down: one of the others is free
        return math.atan2(-r[1, 2], r[1, 1]) if pitch > 0 else math.atan2(-r[1, 2], r[1, 1]), pitch, 0.0
    return math.atan2(r[2, 1], r[2, 2]), pitch, math.atan2(r[1, 0], r[0, 0])
