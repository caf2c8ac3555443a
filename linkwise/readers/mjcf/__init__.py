"""MJCF, the model format of MuJoCo, read through MuJoCo's own compiler.

MuJoCo resolves default classes, frames, replicated and attached parts, infers masses from geoms and meshes and computes
what depends on a model as a whole; linkwise reads the arrays of the compiled model.  Read are bodies and their joints
(several in one body too), masses, armature, springs, damping, friction and limits, actuators, fixed tendons, fluids,
sites and fixed bodies as frames, ``connect`` and ``weld`` as loops, linear ``joint`` equalities as mimic joints; the
initial configuration and keyframes; geoms as shapes, and contact between those that move and the world, and as what is
seen of bodies.  What acts or measures and is left out (other contact, sensors, spatial tendons, ...) is in
``mech.notes``.

Coordinates are MuJoCo's, in the order of MuJoCo's joints: hinges and slides are zero where MuJoCo's are (``ref``
counts), a free body's position and orientation are those in the world.  Every body's name is that of a frame with
MuJoCo's ``xpos`` and ``xmat``; see docs/conventions.md.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from linkwise.mechanism import Builder, Mechanism
from linkwise.mechanism.annotation import USUAL_TIMESTEP
from linkwise.readers.mjcf import keyframes, omissions
from linkwise.readers.mjcf.compiler import Compiled, compile_document, compile_given
from linkwise.readers.mjcf.constraints import Equalities
from linkwise.readers.mjcf.contacts import with_contacts
from linkwise.readers.mjcf.forces import Forces, fluid_forces, gravity_compensation, note_effort_ranges
from linkwise.readers.mjcf.looks import looks_of
from linkwise.readers.mjcf.tree import Assembly, Tree
from linkwise.readers.protocol import Element, register_reader, warn

_INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")  # in the order of MuJoCo's numbers


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
    postures, states = keyframes.keyframes_of(tree, forces.actuators)
    known = replace(
        mechanism.annotations,
        initial=keyframes.initial_of(tree),
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
    mechanism = with_contacts(mechanism, tree)
    return mechanism.with_locked(ties.held) if ties.held else mechanism


def _timestep(compiled: Compiled) -> float:
    step = float(compiled.model.opt.timestep)
    if step > 0.0:
        return step
    warn(compiled.option, f"has timestep={step:g}, which is not positive: {USUAL_TIMESTEP} s are taken")
    return USUAL_TIMESTEP
