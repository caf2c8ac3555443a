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
            target = bodies.site(actuator.target, HERE, actuator.target)
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
