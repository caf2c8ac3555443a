"""MJCF, the model format of MuJoCo.

Read are bodies and their joints (several in one body too), masses given or computed from geoms and meshes, armature,
springs, damping, friction and limits, actuators, fixed tendons, fluids, sites and fixed bodies as frames, ``connect``
and ``weld`` as loops, linear ``joint`` equalities as mimic joints; the initial configuration and keyframes; settings
of the compiler, default classes, included files, attached models, frames and replicated subtrees; geoms as shapes, and
contact between those that move and the world, and as what is seen of bodies.  What acts or measures and is left out
(other contact, sensors, spatial tendons, ...) is in ``mech.notes``.

Coordinates are MuJoCo's, in the order of MuJoCo's joints: hinges and slides are zero where MuJoCo's are (``ref``
counts), a free body's position and orientation are those in the world.  Every body's name is that of a frame with
MuJoCo's ``xpos`` and ``xmat``; see docs/conventions.md.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from linkwise.mechanism import GROUND, Builder, Mechanism
from linkwise.readers.mjcf import equalities, keyframes, omissions, tendons
from linkwise.readers.mjcf.actuation import (
    Actuation,
    gravity_compensation,
    note_effort_ranges,
    with_damping_ratios,
    with_spring_dampers,
)
from linkwise.readers.mjcf.actuators import driven_joints, rotors_of
from linkwise.readers.mjcf.assembly import Assembly
from linkwise.readers.mjcf.attachments import with_attachments
from linkwise.readers.mjcf.contacts import with_contacts
from linkwise.readers.mjcf.defaults import Defaults
from linkwise.readers.mjcf.document import merged, settings_of, with_includes
from linkwise.readers.mjcf.fluid import fluid_forces
from linkwise.readers.mjcf.joints import joints_of
from linkwise.readers.mjcf.looks import looks_of
from linkwise.readers.mjcf.masses import masses_of
from linkwise.readers.mjcf.meshes import Meshes
from linkwise.readers.mjcf.poses import HERE
from linkwise.readers.mjcf.replication import with_replicas
from linkwise.readers.mjcf.tree import WORLD, Node, bodies_of
from linkwise.readers.protocol import FLOATING_BASE, Element, register_reader, warn


@register_reader("mujoco", "MJCF")
def from_xml(
    root: Element, floating_base: bool, gravity: Any, name: str | None, folder: Path | None, mimic: bool
) -> Mechanism:
    """The mechanism that a parsed ``<mujoco>`` describes.

    floating_base   let the one body that is fixed to the world move freely, by a joint named "floating_base"
    gravity         (3,); None for the file's
    folder          where included files and meshes are looked for
    mimic           whether ``<joint>`` equalities tie and hold joints
    """
    root = with_includes(root, folder)
    settings, defaults = settings_of(root, folder), Defaults(root)
    root = with_replicas(with_attachments(root, settings, folder), settings)
    bodies = bodies_of(root, settings, defaults)
    if len(bodies) == 1:
        warn(root, "has no <body>: nothing moves")
    omissions.note(root, bodies, settings, defaults)
    if floating_base:
        freejoint = replace(root, tag="freejoint", attributes={"name": FLOATING_BASE}, children=[])
        _base(root, bodies).joints.append((freejoint, HERE))
    joints = joints_of(bodies, settings)
    constraints = equalities.active(root, settings, defaults)
    all_joints = [joint for of_body in joints.values() for joint in of_body]
    scalar = (joint for joint in all_joints if joint.kind.only_step)
    references = {joint.name: joint.reference for joint in scalar}
    ties = equalities.ties_of(constraints, references, mimic)
    kinds = {joint.name: joint.kind for joint in all_joints}
    rotors = rotors_of(root, settings, defaults, kinds)
    meshes = Meshes(root, settings, defaults)
    masses = masses_of(bodies, settings, meshes)

    builder = Builder(source=root.source)
    assembly = Assembly(builder, bodies, joints, rotors, settings)
    assembly.add_frame(WORLD, GROUND)
    for body in bodies[1:]:
        assembly.add_body(body, masses[body.name], ties.mimic_joints)
    frames = {site: frame for body in bodies for site, frame in assembly.add_sites(body)}
    loops = equalities.LoopMaker(bodies, assembly.frame_of)
    for constraint in constraints:
        if constraint.tag in ("connect", "weld"):
            loops.add(builder, constraint)
    if mimic:
        tendons.add_couplings(builder, root, constraints, references)
    mechanism = builder.build(
        name or root.attributes.get("model", "").strip() or "model",
        settings.gravity if gravity is None else gravity,
        strict=False,
    )
    known = replace(
        mechanism.annotations,
        initial=keyframes.initial_of(bodies, joints),
        postures=keyframes.postures_of(root, all_joints),
        actuated=driven_joints(root, settings, defaults, kinds),
        timestep=settings.timestep,
        integrator=settings.integrator,
        looks=looks_of(root, bodies, settings, defaults, assembly.frame_of | {WORLD: GROUND}),
    )
    actuation = Actuation(root, settings, defaults, all_joints)
    elements = (*actuation.tendons(), *gravity_compensation(bodies, masses, assembly.frame_of, settings))
    elements += tuple(fluid_forces(merged(root, "option"), bodies, masses, assembly.frame_of, settings, meshes))
    mechanism = replace(mechanism, annotations=known, elements=(*elements, *actuation.effort_ranges()))
    mechanism = with_spring_dampers(mechanism, all_joints, settings, rotors)
    driven = list(actuation.actuators(frames))
    note_effort_ranges(mechanism, driven, all_joints)
    listed = [(one and one.record.name, one is not None and one.record.has_activation) for one in driven]
    known = replace(known, keyframes=keyframes.states_of(root, all_joints, known.postures, listed))
    elements = (*mechanism.elements, *with_damping_ratios(driven, mechanism))
    mechanism = replace(mechanism, annotations=known, elements=elements)
    if not all(one.acts for one in driven if one is not None):
        mechanism = mechanism.with_acting(actuators=[one.record.name for one in driven if one is not None and one.acts])
    mechanism = with_contacts(mechanism, root, bodies, settings, defaults, assembly.frame_of | {WORLD: GROUND})
    return mechanism.with_locked(ties.held) if ties.held else mechanism


def _base(root: Element, bodies: list[Node]) -> Node:
    """The one body that can be made to float."""
    fixed = [body for body in bodies if body.parent is bodies[0] and not body.joints]
    if len(fixed) == 1:
        return fixed[0]
    if not fixed:
        raise root.error("floating_base: no body is fixed to the world, so that none can be set free; leave it out")
    raise root.error(
        f"floating_base: the bodies {', '.join(repr(body.name) for body in fixed)} are fixed to the world; write "
        "<freejoint/> into the one that is to move"
    )
