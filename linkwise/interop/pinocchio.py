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
             are found by their names, wherever they are, a free-flyer by being one, and the joint of
             ``lw.load(..., floating_base=lw.Planar())`` as the root joint
    others   names of joints there that are locked in the mechanism: they stay neutral

    Joints that mimic others may do so there, or be free; unlimited revolute joints may be angles or cosine and sine.
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
    if isinstance(body.kind, lw.Floating):
        return FREE_FLYER
    if isinstance(body.kind, lw.Spherical):
        return BALL
    if isinstance(body.kind, lw.Planar) and joint.kind == "JointModelPlanar":
        if not np.array_equal(body.kind.alignment, np.eye(3)):
            raise lw.MechanismError(
                f"joint {body.joint!r} is planar with the normal {body.kind.normal}: Pinocchio's planar joints have z, "
                "whatever the file says"
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
        place = pin.SE3(np.array(frame.rotation), np.array(frame.position))
        model.addFrame(pin.Frame(frame.name, ids[frame.body], place, pin.FrameType.OP_FRAME))
    model.gravity.linear = np.array(mech.gravity)
    for of_joints in ("armature", "damping"):
        values = np.array(getattr(model, of_joints))
        for i, body in enumerate(mech.bodies):
            joint, own = model.joints[ids[i]], getattr(body, of_joints)
            values[joint.idx_v : joint.idx_v + joint.nv] = np.roll(own, 3) if joint.nv == 6 else own
        setattr(model, of_joints, values)
    return model


def _depth_first(mech: lw.Mechanism) -> list[int]:
    """All bodies, each followed by those that it carries."""
    order, waiting = [], [i for i in reversed(range(mech.n_links)) if mech.bodies[i].parent < 0]
    while waiting:
        order.append(waiting.pop())
        waiting.extend(reversed(mech.children[order[-1]]))
    return order


def _joint(pin: Any, kind: lw.Joint) -> Any:
    if isinstance(kind, lw.Revolute | lw.Prismatic):
        rotates, axis = isinstance(kind, lw.Revolute), tuple(kind.axis)
        if axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)):  # its joints for these cost less
            return getattr(pin, f"JointModel{'R' if rotates else 'P'}{'XYZ'[axis.index(1.0)]}")()
        return _revolute(pin, axis) if rotates else _prismatic(pin, axis)
    if isinstance(kind, lw.Helical):
        return pin.JointModelHelicalUnaligned(np.array(kind.axis), kind.pitch)
    if isinstance(kind, lw.Universal):
        perpendicular = abs(np.dot(kind.axis1, kind.axis2)) < 1e-15  # as its own joint supposes
        if perpendicular:
            return pin.JointModelUniversal(np.array(kind.axis1), np.array(kind.axis2))
        return _composite(pin, _revolute(pin, kind.axis1), _revolute(pin, kind.axis2))
    if isinstance(kind, lw.Cylindrical):
        return _composite(pin, _revolute(pin, kind.axis), _prismatic(pin, kind.axis))
    if isinstance(kind, lw.PinInSlot):
        return _composite(pin, _prismatic(pin, kind.slide_axis), _revolute(pin, kind.pin_axis))
    if isinstance(kind, lw.Planar):
        x, y, z = np.array(kind.alignment).T
        return _composite(pin, _prismatic(pin, x), _prismatic(pin, y), _revolute(pin, z))
    if isinstance(kind, lw.Spherical):
        return pin.JointModelSpherical()
    if isinstance(kind, lw.Floating):
        return pin.JointModelFreeFlyer()
    raise lw.MechanismError(f"Pinocchio has no joint that moves as {kind!r} does")


def _revolute(pin: Any, axis: Any) -> Any:
    return pin.JointModelRevoluteUnaligned(np.array(axis))


def _prismatic(pin: Any, axis: Any) -> Any:
    return pin.JointModelPrismaticUnaligned(np.array(axis))


def _composite(pin: Any, *joints: Any) -> Any:
    whole = pin.JointModelComposite()
    for joint in joints:
        whole.addJoint(joint, pin.SE3.Identity())
    return whole
