"""MJCF, the model format of MuJoCo, read through MuJoCo's own compiler.

MuJoCo resolves default classes, frames, replicated and attached parts, infers masses from geoms and meshes and computes
numbers that depend on the whole model; linkwise reads the arrays of the compiled model. Bodies and their joints
(several in one body too), masses, armature, springs, damping, friction and limits, actuators, fixed tendons, fluids,
the initial configuration and keyframes are read; sites and fixed bodies are frames, ``connect`` and ``weld`` are loops,
linear ``joint`` equalities are mimic joints, geoms are shapes and looks, with contact between moving geoms and the
world. ``mech.notes`` lists omitted parts that act or measure (other contact, sensors, spatial tendons, ...).

Coordinates are MuJoCo's, in the order of MuJoCo's joints: hinges and slides are zero where MuJoCo's are (``ref``
counts), the position and orientation of a free body are in world axes. Each body name is the name of a frame with
MuJoCo's ``xpos`` and ``xmat``; see docs/conventions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.mechanics.spatial.quaternion import rotation_matrix
from linkwise.mechanism import Builder, Mechanism
from linkwise.mechanism.annotation import USUAL_TIMESTEP
from linkwise.readers.mjcf import omissions
from linkwise.readers.mjcf.compiler import Compiled, compile_document, compile_given
from linkwise.readers.mjcf.constraints import Equalities
from linkwise.readers.mjcf.contacts import add_contacts
from linkwise.readers.mjcf.forces import Driven, Forces, fluid_forces, gravity_compensation, note_effort_ranges
from linkwise.readers.mjcf.geometry import looks_of
from linkwise.readers.mjcf.tree import Assembly, BodyJoint, Tree
from linkwise.readers.protocol import FLOATING_BASE, Element, omit, register_reader, warn

_INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")  # in the order of MuJoCo's numbers


@register_reader("mujoco", "MJCF")
def from_xml(
    root: Element, floating_base: bool, gravity: Any, name: str | None, folder: Path | None, mimic: bool
) -> Mechanism:
    """The mechanism of a parsed ``<mujoco>``.

    floating_base   connect the only body that is fixed to the world by a free joint named "floating_base"
    gravity         (3,); None for the file's
    folder          of included files and meshes
    mimic           whether ``<joint>`` equalities tie and hold joints
    """
    return _mechanism(compile_document(root, folder, floating_base), floating_base, gravity, name, mimic)


def from_model(
    model_given: Any, source: Element, floating_base: bool, gravity: Any, name: str | None, mimic: bool
) -> Mechanism:
    """The mechanism of an ``mujoco.MjModel`` or ``mujoco.MjSpec``; ``source`` stands for it in messages."""
    return _mechanism(compile_given(model_given, source), floating_base, gravity, name, mimic)


def _mechanism(compiled: Compiled, floating_base: bool, gravity: Any, name: str | None, mimic: bool) -> Mechanism:
    model, root = compiled.model, compiled.root
    tree = Tree(compiled, floating_base)
    if not tree.bodies:
        warn(root, "has no <body>: nothing moves")
    omissions.note(compiled)
    forces = Forces(tree)
    equalities = Equalities(tree, forces)
    ties = equalities.ties(mimic)
    builder = Builder(source=root.source)
    assembly = Assembly(builder, tree, forces.rotors)
    assembly.add_all(ties.mimic_joints)
    equalities.add_loops(builder)
    if mimic:
        equalities.add_couplings(builder)
    own_gravity = (0.0, 0.0, 0.0) if compiled.disables("gravity") else tuple(map(float, model.opt.gravity))
    mechanism = builder.build(
        name or compiled.name or "model", own_gravity if gravity is None else gravity, strict=False
    )
    postures, states = keyframes_of(tree, forces.actuators)
    known = replace(
        mechanism.annotations,
        initial=initial_of(tree),
        postures=postures,
        keyframes=states,
        actuated=forces.driven_joints,
        timestep=_timestep(compiled),
        integrator=_INTEGRATORS[int(model.opt.integrator)],
        looks=tuple(looks_of(tree)),
    )
    elements = (*forces.tendons(), *gravity_compensation(tree), *fluid_forces(tree), *forces.effort_ranges())
    mechanism = replace(mechanism, annotations=known, elements=elements)
    records = forces.records(assembly.site_frames)
    note_effort_ranges(mechanism, records, tree.all_joints)
    mechanism = replace(mechanism, elements=(*elements, *records))
    read = [actuator for actuator in forces.actuators if actuator.record is not None]
    if not all(actuator.acts for actuator in read):
        mechanism = mechanism.with_acting(
            actuators=[actuator.record.name for actuator in read if actuator.record and actuator.acts]
        )
    mechanism = add_contacts(mechanism, tree)
    return mechanism.with_locked(ties.held) if ties.held else mechanism


def _timestep(compiled: Compiled) -> float:
    step = float(compiled.model.opt.timestep)
    if step > 0.0:
        return step
    warn(compiled.option, f"has timestep={step:g}, which is not positive: {USUAL_TIMESTEP} s are taken")
    return USUAL_TIMESTEP


# -- initial configuration and keyframes -----------------------------------------------------------------


Coordinates = tuple[tuple[str, tuple[float, ...]], ...]


def initial_of(tree: Tree) -> Coordinates:
    """MuJoCo's ``qpos0``: hinges and slides at their references (zero included), free bodies at their pose in the
    file.
    """
    values, model = list[tuple[str, tuple[float, ...]]](), tree.compiled.model
    for body in tree.bodies:
        for joint in tree.joints.get(body, []):
            if joint.kind.only_step:
                values.append((joint.name, (joint.reference,)))
            elif joint.kind.is_free:
                if joint.index < 0:  # not in the model: the base that is set free
                    coordinates = (*model.body_quat[body].tolist(), *model.body_pos[body].tolist())
                else:
                    coordinates = _split(model.qpos0, joint, model.jnt_qposadr[joint.index])
                values.append((joint.name, coordinates))
    return tuple(values)


def _split(numbers: np.ndarray, joint: BodyJoint, start: int) -> tuple[float, ...]:
    """Coordinates of a joint; of free bodies the position comes first in MuJoCo, last here."""
    coordinates = numbers[start : start + joint.kind.nq]
    coordinates = np.concatenate([coordinates[3:], coordinates[:3]]) if joint.kind.is_free else np.array(coordinates)
    if joint.kind.nq >= 4:
        length = float(np.linalg.norm(coordinates[:4]))
        coordinates[:4] = coordinates[:4] / length if length else (1.0, 0.0, 0.0, 0.0)
    return tuple(coordinates.tolist())


def keyframes_of(tree: Tree, driven: Sequence[Driven]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Postures ((name, configuration), ...) and the rest of the keyframes ((name, velocities, control inputs,
    activations), ...). Unnamed ones are ``key0``, ``key1``, ...
    """
    model, postures, states = tree.compiled.model, dict[str, Coordinates](), list[tuple[Any, ...]]()
    joints = [joint for joint in tree.all_joints if joint.name != FLOATING_BASE]
    for key, name in enumerate(tree.compiled.names("key", model.nkey)):
        name = name or f"key{key}"
        element = tree.compiled.element("key", key)
        also = [word for word in ("mpos", "mquat") if element.attributes.get(word, "").strip()]
        if also:
            omit(element, f"keyframe with {', '.join(also)}", "poses of mocap bodies are not read")
        postures[name] = tuple(
            (joint.name, _split(model.key_qpos[key], joint, int(model.jnt_qposadr[joint.index]))) for joint in joints
        )
        velocities = _velocities(tree, joints, model.key_qvel[key], dict(postures[name]))
        inputs = _named(driven, model.key_ctrl[key], "controls")
        activations = _named(driven, model.key_act[key], "activations")
        if velocities or inputs or activations:
            states.append((name, velocities, inputs, activations))
    return tuple(postures.items()), tuple(states)


def _named(driven: Sequence[Driven], numbers: np.ndarray, quantity: str) -> Coordinates:
    """Numbers of actuators that are read, but for zeros."""
    pairs = (
        (actuator.record.name, float(numbers[i]))
        for actuator in driven
        if actuator.record
        for i in getattr(actuator, quantity)
    )
    return tuple((name, (number,)) for name, number in pairs if number)


def _velocities(
    tree: Tree, joints: list[BodyJoint], numbers: np.ndarray, posture: dict[str, tuple[float, ...]]
) -> Coordinates:
    """Velocities by joint; those of free bodies are converted from world axes to body axes."""
    velocities, model = [], tree.compiled.model
    for joint in joints if numbers.any() else ():
        start = int(model.jnt_dofadr[joint.index])
        rates = numbers[start : start + joint.kind.nv].tolist()
        if joint.kind.is_free:
            rotation = np.array(rotation_matrix(posture[joint.name][:4]), dtype=float)
            rates = [*rates[3:], *(rotation.T @ rates[:3]).tolist()]
        if any(rates):
            velocities.append((joint.name, tuple(rates)))
    return tuple(velocities)
