"""MJCF, the model format of MuJoCo: the inverse of ``readers/mjcf``.

Bodies without mass that only stand between two joints become further joints of the body that they carry, since MuJoCo
moves nothing without mass.  Loops are equalities of sites: ``connect`` for balls, ``weld``, and for hinges two
``connect`` along the axis.
"""

from __future__ import annotations

import math

from linkwise.mechanics.joints import Joint
from linkwise.mechanism import Mechanism
from linkwise.mechanism.annotation import USUAL_INTEGRATOR
from linkwise.writers.composed_joints import with_joints_of
from linkwise.writers.mjcf.bodies import FORMAT, Bodies
from linkwise.writers.mjcf.constraints import write_equalities
from linkwise.writers.mjcf.contact import write_contacts
from linkwise.writers.mjcf.elements import SWITCHED_OFF, write_actuators, write_tendons
from linkwise.writers.mjcf.fluid import Fluid
from linkwise.writers.mjcf.keyframes import write_keyframes
from linkwise.writers.mjcf.looks import write_looks
from linkwise.writers.report import Report, listed
from linkwise.writers.xml import document, element


def written(mech: Mechanism, report: Report) -> str:
    """The mechanism as MJCF text."""
    mech = with_joints_of(mech, _has, report)
    root = element(None, "mujoco", model=mech.name)
    element(root, "compiler", angle="radian", autolimits="false", inertiafromgeom="false")
    fluid = Fluid(mech, report)
    option = element(
        root, "option", gravity=mech.gravity, timestep=mech.metadata.timestep, **_set(mech), **fluid.option
    )
    if mech.annotations.neighbours_touch:
        element(option, "flag", filterparent="disable")
    bodies = Bodies(mech, report, fluid.axes)
    bodies.write(element(root, "worldbody"))
    write_contacts(root, mech, bodies, report)
    write_looks(root, mech, bodies, report)
    fluid.write(root, bodies)
    write_tendons(root, mech)
    write_equalities(root, mech, bodies, report)
    write_actuators(root, mech, bodies, report)
    write_keyframes(root, mech, bodies.order)
    for body in mech.bodies:
        if min(body.limits.velocity) < math.inf:
            report.omit("velocity limit", body.joint)
    for group in mech.metadata.groups:
        report.omit("group of joints", group)
    idle = {kind: names for kind, names in mech.forces.idle.items() if kind != "actuators"}
    if idle:
        report.remark("switched off here, and acting when read again", listed(idle))
    if [mech.bodies[i].joint for i in bodies.order] != list(mech.joint_names):
        report.remark("joints are in depth-first order there (lw.interop.to_mechanism converts states)")
    return document(root)


def _set(mech: Mechanism) -> dict[str, object]:
    """Further options: the integrator, if it is not the usual one, and the group of what is switched off."""
    return {
        "integrator": None if mech.metadata.integrator == USUAL_INTEGRATOR else mech.metadata.integrator,
        "actuatorgroupdisable": SWITCHED_OFF if "actuators" in mech.forces.idle else None,
    }


def _has(kind: Joint) -> bool:
    return FORMAT in kind.formats and kind.formats[FORMAT].fits(kind)
