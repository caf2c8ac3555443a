"""How well a linkage passes motion and force on, from an input to an output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...mechanism import Loop, Mechanism, MechanismError
from ...mechanism.checks import names_of
from .. import trees as tree
from ..states import ByJoint, Float64Array, checked_arrays
from .constraints import counted_jacobian, require_finite, velocity_rows, warn_if_open
from .decomposition import decompose, times
from .families import family
from .named_coordinates import NamedCoordinate, named_coordinate
from .reactions import wrenches_of_joints, wrenches_of_loops
from .redundancy import closable_error

STILL = 1e-12  # of the other rate, lengths in units of the mechanism: what is slower stands still
TOGETHER = 1e-7  # singular values: two rates of which one follows from the other
NOTHING = 1e-9  # of the largest force


def mechanical_advantage(
    mech: Mechanism, q: ByJoint, input: str, output: str, hold: Sequence[str] = ()
) -> Float64Array | float:
    """(...): the force that the output exerts per unit of force at the input, without friction, weight and inertia: the
    rate of the input over that of the output.

    input, output   coordinates as ``range_of_motion`` takes them: joints, ``joint[k]``, or ``link.x``, ``.y``, ``.z``;
                    forces are those along them, moments at revolute joints
    hold            joints that stand still, if the output does not follow from the input otherwise

    Infinite where the output stands still while the input moves (a toggle, or dead centre), zero where the input
    does.  Its inverse is the ratio of the velocities.
    """
    (q,) = checked_arrays(mech, q=q)
    given, found, _ = _rates(mech, q, (named_coordinate(mech, input), named_coordinate(mech, output)), hold)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = given / found
    return ratio if q.ndim > 1 else float(ratio)


def transmission_angle(
    mech: Mechanism,
    q: ByJoint,
    input: str,
    output: str,
    at: str | None = None,
    hold: Sequence[str] = (),
) -> Float64Array | float:
    """(...): in radians, from 0 to pi / 2: 90 degrees less the angle between the force that moves the output link and
    the direction in which that moves where the force acts.  Of a four-bar it is the angle between coupler and rocker,
    or what that lacks of 180 degrees; of a slider-crank the angle between the rod and the normal of the slide.

    input, output   joints of one degree of freedom, or one coordinate of others (``joint[k]``, ``joint.x``); the output
                    link is the one that the output joint moves
    at              the joint or loop by which the output link is moved, where it has several that carry forces
    hold            joints that stand still, if the output does not follow from the input otherwise

    Links have neither weight nor inertia.  At 90 degrees all of the force moves the output; at 0 none of it does.
    """
    driver, driven = (_of_a_joint(mech, name) for name in (input, output))
    for name in names_of(hold):
        mech.place(name)
    if input == output:
        raise MechanismError(f"input and output are the same joint, {input!r}: nothing is transmitted")
    (q,) = checked_arrays(mech, q=q)
    given, found, motion = _rates(mech, q, (driver, driven), hold)
    # Forces at input and output that balance each other, in every position: neither is zero in the other's dead centre.
    forces = found[..., None] * driver.rows(q) - given[..., None] * driven.rows(q)
    joint = _joint_of(mech, output)
    pushes = _pushes(mech, q, forces, hold, joint)
    one = _chosen(mech, pushes, joint, at)
    moving = _velocity_at(mech, q, joint, one.place, motion)
    sizes = np.linalg.norm(one.force, axis=-1) * np.linalg.norm(moving, axis=-1)
    useful = np.abs(np.einsum("...i,...i->...", one.force, moving))
    angle = np.arcsin(np.minimum(np.divide(useful, sizes, out=np.full(sizes.shape, np.nan), where=sizes > 0.0), 1.0))
    return angle if q.ndim > 1 else float(angle)


def _of_a_joint(mech: Mechanism, name: str) -> NamedCoordinate:
    """The coordinate of that name, which must be one of a joint: only joints move links by forces of their own."""
    place = mech.coordinate_place("q", name)
    if name not in mech.joint_names and place is not None:  # a link may have the name of its joint
        joint = mech.joint_of_coordinate(name)
        return named_coordinate(mech, f"{joint}[{place - mech.q_index(joint).start}]")
    link = name.rpartition(".")[0]
    if link not in mech.frames:
        mech.body_index(name)  # what is no joint is refused
        return named_coordinate(mech, name)
    body = mech.frame(link).body
    joint = mech.bodies[body].joint if body >= 0 else ""
    own = [one for one in mech.q_names if joint in (one, mech.joint_of_coordinate(one))] if joint else []
    raise MechanismError(
        f"transmission_angle is about forces on the link that a joint moves, and {name!r} is the place of a link: name "
        "a coordinate of a joint" + (f"; that of this link has {', '.join(map(repr, own))}" if own else "")
    )


def _joint_of(mech: Mechanism, name: str) -> str:
    return name if name in mech.joint_names else mech.joint_of_coordinate(name)


# -- motion -------------------------------------------------------------------------------------------


def _rates(
    mech: Mechanism, q: Float64Array, ends: tuple[NamedCoordinate, NamedCoordinate], hold: Sequence[str]
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """(...), (...), (..., nv): the rates of both as the mechanism moves, their scale open; zero but for rounding is
    zero; and the velocities of that motion.

    There may be more degrees of freedom, such as a rod's own rotation between two balls, as long as one goes with the
    other.
    """
    require_finite(mech, q)
    warn_if_open(mech, closable_error(mech, q))
    if not q.size:
        return np.zeros(q.shape[:-1]), np.zeros(q.shape[:-1]), np.zeros((*q.shape[:-1], mech.nv))
    made = family(mech, q.reshape(-1, mech.nq)[0], hold)
    rows = np.stack([one.dimensionless(made.units).rows(q) for one in ends], axis=-2)
    basis = made.basis(q)
    u, s, turned = np.linalg.svd(rows @ basis)
    if not made.dof or (made.dof > 1 and np.any(s[..., 1] > TOGETHER * s[..., 0])):
        held = f" while {', '.join(map(repr, names_of(hold)))} stand still" if len(hold) else ""
        freely = "independently of each other: hold other joints (hold=...)" if made.dof else "not at all: hold fewer"
        raise MechanismError(
            f"{ends[0].name!r} and {ends[1].name!r} of mechanism {mech.name!r} move {freely}; it has {made.dof} "
            f"degrees of freedom{held}"
        )
    rates = np.where(np.abs(u[..., 0]) > STILL, u[..., 0], 0.0)
    given, found = (rates[..., k] * one.unit(made.units) for k, one in enumerate(ends))
    return given, found, made.units.velocities * times(basis, turned[..., 0, :])


def _velocity_at(
    mech: Mechanism, q: Float64Array, joint: str, place: Float64Array, motion: Float64Array
) -> Float64Array:
    """(..., 3): velocity in the world of a point of the link that a joint moves, by that joint alone; of one with
    several degrees of freedom, as these move in the motion (..., nv)."""
    link, own = mech.link_names[mech.body_index(joint)], mech.v_index(joint)
    share = motion[..., own] if own.stop - own.start > 1 else np.ones(1)
    column = times(tree.jacobian(mech, q, link, "world_aligned")[..., own], share)
    return column[..., 3:] + np.cross(column[..., :3], place - tree.frame_pose(mech, q, link)[..., :3, 3])


# -- forces -------------------------------------------------------------------------------------------


class _Push(NamedTuple):
    """A joint or loop that acts on a link: the force (..., 3) and its place (..., 3), in the world; signs are open."""

    name: str
    force: Float64Array
    place: Float64Array


def _pushes(mech: Mechanism, q: Float64Array, forces: Float64Array, hold: Sequence[str], output: str) -> list[_Push]:
    """All that act on the output link but for its own joint, under joint forces (..., nv) in balance."""
    loops = counted_jacobian(mech, q)
    held = np.broadcast_to(rows := velocity_rows(mech, hold, "hold"), (*q.shape[:-1], *rows.shape))
    balance = decompose(np.concatenate([loops, held], axis=-2)).solve_transposed(forces)
    multipliers = balance[..., : mech.n_constraints]
    weightless, still = mech.with_gravity((0.0, 0.0, 0.0)), np.zeros(mech.nv)
    inside = wrenches_of_joints(weightless, q, still, still, multipliers)
    between = wrenches_of_loops(mech, q, multipliers)
    body, found = mech.body_index(output), []
    for k, child in enumerate(mech.bodies):
        if child.parent == body:
            pose = tree.frame_pose(mech, q, mech.link_names[k])
            found.append(_Push(child.joint, times(pose[..., :3, :3], inside[..., k, 3:]), pose[..., :3, 3]))
    for k, loop in enumerate(mech.loops):
        if isinstance(loop, Loop) and body in (mech.frame(loop.link_a).body, mech.frame(loop.link_b).body):
            rotation, position = (np.asarray(part, float) for part in loop.pose_b)
            pose = tree.frame_pose(mech, q, loop.link_b)
            force = times(pose[..., :3, :3] @ rotation, between[..., k, 3:])
            found.append(_Push(loop.name, force, times(pose[..., :3, :3], position) + pose[..., :3, 3]))
    return found


def _chosen(mech: Mechanism, pushes: list[_Push], output: str, at: Any) -> _Push:
    """The one by which the output link is moved."""
    names = [one.name for one in pushes]
    if at is not None:
        if at not in names:
            raise MechanismError(
                f"nothing called {at!r} acts on the link that joint {output!r} of mechanism {mech.name!r} moves; "
                f"available: {', '.join(names) or '(none)'}"
            )
        return pushes[names.index(at)]
    sizes = [float(np.abs(one.force).max(initial=0.0)) for one in pushes]
    strong = [one for one, size in zip(pushes, sizes, strict=True) if size > NOTHING * max(sizes, default=0.0)]
    if len(strong) == 1:
        return strong[0]
    raise MechanismError(
        f"the link that joint {output!r} of mechanism {mech.name!r} moves is pushed by "
        + (f"{', '.join(one.name for one in strong)}: say which with at=" if strong else "nothing: name another output")
    )
