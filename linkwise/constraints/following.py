"""Continuation of assembled configurations along a branch, with coordinates driven straight to targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..dynamics.by_joint import one_number
from ..dynamics.states import ByJoint, Float64Array, in_brief, real_numbers
from ..mechanism import Mechanism, MechanismError
from ..mechanism.parts import Place
from .assembly import AssemblyError, worst_loop
from .driving import Course, Drive
from .equations import one_state, position_error
from .named_coordinates import is_beside_velocities, named_coordinate
from .sizes import sizes
from .tolerances import LOOPS


def follow(mech: Mechanism, q: ByJoint | None, targets: Mapping[str, Any], largest: float = 0.05) -> Float64Array:
    """(nq,): the configuration reached from the assembled ``q`` as joints move to ``targets`` (name -> coordinates).

    Without q the motion starts at the initial configuration.  All targets move in a straight line at the same pace.
    Targets of mimic joints are their own coordinates.  Names may also be single coordinates, "slide.x"
    (``mech.q_names``), and positions and orientations of links, "platform.x" (as in ``range_of_motion``).

    Steps are at most ``largest`` (lengths in units of the sizes of loops).  If loops lock before the targets (a toggle
    position), an ``AssemblyError`` reports how far they came.  The motion stays on its branch, and goes straight on
    where branches meet (a parallelogram in one line).  One state at a time; ``follow_path`` takes several targets.
    """
    q = _assembled(mech, q, "follow")
    return _follow_targets(
        mech, q, {name: real_numbers(f"the target of {name!r}", x) for name, x in targets.items()}, largest, Course()
    )


def follow_path(mech: Mechanism, q: ByJoint | None, targets: Mapping[str, Any], largest: float = 0.05) -> Float64Array:
    """(n, nq): the configurations that ``follow`` reaches as joints go from one target to the next, a row for each:
    ``follow_path(mech, q, {"crank": np.linspace(0, 2 * np.pi, 73)})`` is a turn of the crank in steps of 5 degrees.

    targets   name -> (n,) numbers, or (n, k) coordinates of a joint that has k; the same n for all
    """
    q = _assembled(mech, q, "follow_path")
    rows = {name: np.atleast_1d(real_numbers(f"the targets of {name!r}", x)) for name, x in targets.items()}
    counts = {name: len(x) for name, x in rows.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} of {name!r}" for name, count in counts.items())
        raise MechanismError(f"follow_path takes as many targets of each joint, not {told}")
    reached, course = [], Course()
    for k in range(max(counts.values(), default=0)):
        q = _follow_targets(mech, q, {name: x[k] for name, x in rows.items()}, largest, course)
        reached.append(q)
    return np.reshape(reached, (-1, mech.nq))


def _assembled(mech: Mechanism, q: ByJoint | None, who: str) -> Float64Array:
    """(nq,): one configuration with closed loops, by default the one near ``mech.initial``."""
    (q,) = one_state(who, mech, q={} if q is None else q)
    loop, residual = worst_loop(mech, q) if mech.loops else ("", 0.0)
    if np.abs(sizes(mech).rows * position_error(mech, q)).max(initial=0.0) > LOOPS.open_by_mistake:
        raise AssemblyError(
            f"loop {loop!r} of mechanism {mech.name!r} is open by {residual:.3g} at the start: there is no branch to "
            "follow; assemble it first",
            loop,
            residual,
            q,
        )
    return q


def _place(mech: Mechanism, name: str) -> Place:
    """The coordinates of a joint, or a single one of them, in q and v."""
    return (None if name in mech.joint_names else mech.coordinates.single_place(name)) or mech.coordinates.place(name)


def _follow_targets(
    mech: Mechanism, q: Float64Array, targets: Mapping[str, Float64Array], largest: float, course: Course
) -> Float64Array:
    """(nq,): the configuration reached from the assembled q, for one value of each target."""
    goal, driven_q = q.copy(), np.zeros(mech.nq, dtype=bool)
    joints, links = dict(targets), [name for name in targets if is_beside_velocities(mech, name)]
    ends = np.array([float(one_number("the target", name, joints.pop(name))) for name in links])
    free = np.ones(mech.nv, dtype=bool)
    for name, values in joints.items():
        entry = _place(mech, name)
        if driven_q[entry.q_index].any():
            raise MechanismError(f"targets has two values for the coordinate that {name!r} moves with: give one")
        reached, size = entry.q_at(values), entry.q_index.stop - entry.q_index.start
        if np.size(reached) not in (1, size):
            raise MechanismError(
                f"the target of {name!r} must be {size} number{'s' * (size > 1)}, one position, not shape "
                f"{np.shape(reached)}: follow leads to one position at a time, follow_path from one to the next"
            )
        goal[entry.q_index], driven_q[entry.q_index], free[entry.v_index] = reached, True, False
    drive = Drive(mech, q, goal, free, tuple(named_coordinate(mech, name) for name in links), ends)
    q, done = drive.run(q, course, largest)
    if done == 1.0:
        return q
    loop, residual = worst_loop(mech, drive.closed_at_goal(q, done))
    at = {name: np.ravel(_place(mech, name).positions(q)) for name in joints}
    told = ", ".join(f"{name!r} is at {in_brief(values)}" for name, values in at.items() if len(values) == 1)
    raise AssemblyError(
        f"loop {loop!r} of mechanism {mech.name!r} locks after {done:.4%} of the way (it would open by "
        f"{residual:.3g}): {', '.join(map(repr, (*joints, *links)))} cannot be driven further on this branch"
        + f"; {told}"
        * bool(told),
        loop,
        residual,
        q,
    )
