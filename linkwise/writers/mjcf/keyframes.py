"""Postures as keyframes, in MuJoCo's order and conventions."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

import numpy as np

from linkwise.mechanics.spatial.quaternion import rotation_matrix
from linkwise.mechanism import Actuator, Mechanism
from linkwise.mechanism.welding import composed
from linkwise.writers.mjcf.bodies import quaternion
from linkwise.writers.xml import element


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
                rotation, position = composed((body.rotation, body.position), (axes, coordinates[4:]))
                coordinates = np.array([*position, *quaternion(rotation)])
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
