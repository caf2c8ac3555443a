"""Tendons and actuators."""

from __future__ import annotations

import math
from typing import Any
from xml.etree.ElementTree import Element

from linkwise.mechanism import Actuator, Mechanism
from linkwise.writers.mjcf.bodies import HERE, NO_LIMIT, Bodies
from linkwise.writers.report import Report
from linkwise.writers.xml import element

SWITCHED_OFF = 1  # group of actuators


def write_tendons(root: Element, mech: Mechanism) -> None:
    """Fixed tendons; the part of a length that is constant is taken from rest and limits instead."""
    if not mech.forces.tendons:
        return
    section = element(root, "tendon")
    for one in mech.forces.tendons:
        rest = [x - one.offset for x in one.rest]
        if rest == [-1.0, -1.0]:  # which stands for a length that is not given
            rest[0] = math.nextafter(-1.0, -2.0)
        limits = None if one.limits is None else [_finite(x - one.offset) for x in one.limits]
        made = element(
            section,
            "fixed",
            name=one.name,
            stiffness=one.stiffness or None,
            springlength=rest,
            damping=one.damping or None,
            frictionloss=one.friction or None,
            limited=True if limits else None,
            range=limits,
        )
        for joint, arm in one.joints:
            element(made, "joint", joint=joint, coef=arm)


def write_actuators(root: Element, mech: Mechanism, bodies: Bodies, report: Report) -> None:
    """Every actuator as ``<general>``."""
    actuators = [one for one in mech.elements if isinstance(one, Actuator)]
    section = element(root, "actuator") if actuators else None
    offsets = {one.name: one.offset for one in mech.forces.tendons}
    for one in actuators:
        offset = one.gear[0] * offsets[one.target] if one.transmission == "tendon" else 0.0
        gain, bias = ((p[0] + p[1] * offset, *p[1:]) for p in (one.gain, one.bias))
        if gain[0] == -bias[1] and bias[2] > 0.0 and not any(gain[1:]):
            report.omit("damping of a servo that drives motion", one.name)  # read as a damping ratio
        target = one.target
        if one.transmission == "site":
            target = bodies.site(one.target, HERE, one.target)
        ranges: dict[str, Any] = {}
        for word, bounds in (("ctrl", one.ctrl_range), ("force", one.force_range), ("act", one.activation_range)):
            if bounds is not None:
                ranges |= {f"{word}limited": True, f"{word}range": [_finite(x) for x in bounds]}
        element(
            section,
            "general",
            name=one.name,
            group=None if mech.forces.acts("actuators", one.name) else SWITCHED_OFF,
            gear=one.gear,
            gaintype="affine" if any(gain[1:]) else "fixed",
            gainprm=gain,
            biastype="affine" if any(bias) else "none",
            biasprm=bias,
            dyntype=one.dynamics if one.has_activation else None,
            dynprm=one.time_constant if one.has_activation else None,
            **{one.transmission: target},
            **ranges,
        )


def _finite(x: float) -> float:
    return min(max(x, -NO_LIMIT), NO_LIMIT)
