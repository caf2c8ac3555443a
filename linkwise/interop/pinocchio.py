"""Pinocchio: models made from a mechanism's numbers, and coordinates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import linkwise as lw

from .conversion import Conversion
from .joints import BALL, FREE_FLYER, Endless, PlanarInChildAxes, Same
from .pairing import Foreign, paired

LIBRARY = "Pinocchio"


def to_pinocchio(mech: lw.Mechanism, model: Any, others: Iterable[str] = ()) -> Conversion:
    """Conversion of states, forces, matrices and Jacobians from linkwise's to Pinocchio's coordinates.

    model    a ``pinocchio.Model`` of the same mechanism: from the same URDF file, or ``pinocchio_model(mech)``; joints
             are matched by name, in any order, a free-flyer with a free joint, and the joint of
             ``lw.load(..., floating_base=lw.Planar())`` with the root joint
    others   names of Pinocchio's joints that are locked in the mechanism: they stay neutral

    Joints that mimic others may do so in Pinocchio too, or be free; unlimited revolute joints may be angles or cosine
    and sine.
    """
    import pinocchio as pin

    there = {}
    for name, joint, parent in list(zip(model.names, model.joints, model.parents, strict=True))[1:]:
        if joint.nq:  # joints that mimic others have none
            q, v = range(joint.idx_q, joint.idx_q + joint.nq), range(joint.idx_v, joint.idx_v + joint.nv)
            there[name] = Foreign(list(q), list(v), joint.nv == 6, joint.shortname(), parent == 0)
    pairing = paired(mech, LIBRARY, there, _chart, pin.neutral(model), model.nv, others)
    return Conversion(pairing, forth=True)


def from_pinocchio(mech: lw.Mechanism, model: Any, others: Iterable[str] = ()) -> Conversion:
    """Conversion from Pinocchio's to linkwise's coordinates; arguments as ``to_pinocchio``."""
    return to_pinocchio(mech, model, others).inverse


def _chart(body: Any, joint: Foreign) -> Same:
    kind: lw.extend.Joint = body.kind
    if kind.is_free:
        return FREE_FLYER
    if kind.is_ball:
        return BALL
    if joint.kind == "JointModelPlanar" and [step.turns for step in kind.steps] == [False, False, True]:
        if not np.array_equal(kind.alignment, np.eye(3)):
            raise lw.MechanismError(
                f"joint {body.joint!r} is planar with the normal {kind.steps[-1].axis}: Pinocchio's planar joints have "
                "z, whatever the file says"
            )
        return PlanarInChildAxes()
    return Endless() if (len(joint.q), len(joint.v)) == (2, 1) else Same()


def pinocchio_model(mech: lw.Mechanism) -> Any:
    """A ``pinocchio.Model`` with the mechanism's joints (rotor inertias, damping), bodies, frames and gravity, by name.

    Pinocchio's dynamics leave ``model.damping`` out.  Springs, dry friction and limits of joints are not in the model.
    Joints that mimic others are free in it, loops are left out: ``to_pinocchio`` moves the former along.  Its joints
    are in depth-first order, since its sparse factorizations suppose that subtrees are contiguous.
    """
    import pinocchio as pin

    model, ids = pin.Model(), {-1: 0}
    model.name = mech.name
    for i in _depth_first(mech):
        body = mech.bodies[i]
        pose = pin.SE3(np.array(body.rotation), np.array(body.position))
        ids[i] = model.addJoint(ids[body.parent], _joint(pin, body.kind), pose, body.joint)
        inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
        model.appendBodyToJoint(ids[i], inertia, pin.SE3.Identity())
    for frame in mech.frames.values():
        frame_pose = pin.SE3(np.array(frame.rotation), np.array(frame.position))
        model.addFrame(pin.Frame(frame.name, ids[frame.body], frame_pose, pin.FrameType.OP_FRAME))
    model.gravity.linear = np.array(mech.gravity)
    for of_joints in ("armature", "damping"):
        values = np.array(getattr(model, of_joints))
        for i, body in enumerate(mech.bodies):
            joint, numbers = model.joints[ids[i]], getattr(body, of_joints)
            values[joint.idx_v : joint.idx_v + joint.nv] = np.roll(numbers, 3) if joint.nv == 6 else numbers
        setattr(model, of_joints, values)
    return model


def _depth_first(mech: lw.Mechanism) -> list[int]:
    """All bodies in depth-first order."""
    order, waiting = [], [i for i in reversed(range(mech.n_links)) if mech.bodies[i].parent < 0]
    while waiting:
        order.append(waiting.pop())
        waiting.extend(reversed(mech.tree.children[order[-1]]))
    return order


def _joint(pin: Any, kind: lw.extend.Joint) -> Any:
    entry = kind.formats.get("pinocchio")
    if entry is not None and entry.fits(kind):
        numbers = [getattr(kind, field) * unit for field, _, unit in entry.numbers]
        return getattr(pin, entry.type)(*map(np.array, entry.directions(kind)), *numbers)
    if kind.only_step:
        axis = tuple(kind.only_step.axis)
        if axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)):  # its joints for these cost less
            return getattr(pin, f"JointModel{'R' if kind.hinge else 'P'}{'XYZ'[axis.index(1.0)]}")()
        return _step(pin, kind.only_step)
    if [step.coordinate for step in kind.steps] == list(range(kind.nq)):  # no step goes along with another
        return _composite(pin, *(_step(pin, step) for step in kind.steps))
    raise lw.MechanismError(f"Pinocchio has no joint that moves as {kind!r} does")


def _step(pin: Any, step: Any) -> Any:
    made = pin.JointModelRevoluteUnaligned if step.turns else pin.JointModelPrismaticUnaligned
    return made(np.array(step.axis))


def _composite(pin: Any, *joints: Any) -> Any:
    composite = pin.JointModelComposite()
    for joint in joints:
        composite.addJoint(joint, pin.SE3.Identity())
    return composite
