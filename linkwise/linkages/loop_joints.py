"""Move joints that close loops into the tree, where they have coordinates."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..constraints.assembly import AssemblyError, assemble
from ..mechanics.joints import Fixed, Joint
from ..mechanism import Body, Frame, Limits, Loop, Mechanism, MechanismError
from ..mechanism.checks import did_you_mean
from ..mechanism.welding import composed

WELDED = "_side"  # behind the name of a loop: the link that its joint moves


def with_joint_of_loop(mech: Mechanism, loop: str) -> Mechanism:
    """A copy in which the joint that closes a loop is a joint of the tree, behind all others, with coordinates,
    springs, dampers, friction, motors, gears and limits like any joint.

    The joint moves a massless link ``loop + "_side"`` at ``pose_b``, from ``pose_a`` on ``link_a``; the loop keeps its
    name and welds this link to ``link_b``. Motions do not change; the initial coordinates of the joint close the loops.
    """
    named = {closure.name: closure for closure in mech.loops}
    if loop not in named:
        raise MechanismError(f"mechanism {mech.name!r} has no loop {loop!r}: {did_you_mean(loop, named)}")
    closed_loop = named[loop]
    if not isinstance(closed_loop, Loop) or not isinstance(closed_loop.kind, Joint) or not closed_loop.kind.nv:
        raise MechanismError(
            f"{loop!r} of mechanism {mech.name!r} closes its loop with no joint that moves: {closed_loop!r}"
        )
    link = f"{loop}{WELDED}"
    for name, known in ((link, mech.frames), (loop, mech.joint_names)):
        if name in known:
            raise MechanismError(f"mechanism {mech.name!r} has {name!r} already: give loop {loop!r} another name")
    side = mech.frame(closed_loop.link_a)
    rotation, position = composed((side.rotation, side.position), closed_loop.pose_a)
    still, nothing = (0.0,) * closed_loop.kind.nv, (0.0, np.zeros(3), np.zeros((3, 3)))
    body = Body(link, loop, closed_loop.kind, side.body, rotation, position, *nothing, still, still, still, Limits())
    weld = Loop(loop, Fixed(), link, None, closed_loop.link_b, closed_loop.pose_b)  # type: ignore[arg-type]
    frame = Frame(link, len(mech.bodies), np.eye(3), np.zeros(3))
    opened = dataclasses.replace(
        mech,
        bodies=(*mech.bodies, body),
        frames={**mech.frames, link: frame},
        loops=tuple(weld if other is closed_loop else other for other in mech.loops),
    )
    return _close_initially(mech, opened, loop)


def _close_initially(mech: Mechanism, opened: Mechanism, joint: str) -> Mechanism:
    """``opened`` with initial coordinates of its last joint that close the loops at or near the initial configuration
    of ``mech``.
    """
    now = opened.constraints.at_time(0.0)
    try:
        q = assemble(mech.constraints.at_time(0.0), mech.initial)
        guess = np.concatenate([q, opened.initial[len(q) :]])
        values = assemble(now, guess, hold=mech.joint_names)[now.q_index(joint)]
    except AssemblyError:  # there is no such place to be found, as for ``mech`` itself
        return opened
    notes = opened.annotations
    return dataclasses.replace(
        opened, annotations=dataclasses.replace(notes, initial=(*notes.initial, (joint, tuple(values.tolist()))))
    )
