"""Transmission of motion and force by a linkage, from an input to an output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compiler.store import float64_function
from ..constraints.decomposition import decompose, row_sizes, times
from ..constraints.equations import counted_jacobian, require_finite, velocity_rows, warn_if_open
from ..constraints.named_coordinates import NamedCoordinate, named_coordinate
from ..constraints.reactions import wrenches_of_joints, wrenches_of_loops
from ..constraints.redundancy import closable_error
from ..constraints.singular import AT_SINGULAR
from ..constraints.sizes import sizes, units
from ..dynamics import trees as tree
from ..dynamics.states import ByJoint, Float64Array, checked_arrays
from ..mechanism import Loop, Mechanism, MechanismError
from ..mechanism.checks import names_of
from .manifolds import constraint_manifold, describe_hold

STILL = 1e-12  # of the other rate, lengths in units of the mechanism: what is slower stands still
TOGETHER = 1e-7  # singular values: two rates of which one follows from the other
NOTHING = 1e-9  # of the largest force


def mechanical_advantage(
    mech: Mechanism, q: ByJoint, input: str, output: str, hold: Sequence[str] = ()
) -> Float64Array | float:
    """(...): output force per unit of input force, without friction, weight and inertia: the ratio of the rates of
    input and output.

    input, output   coordinates as ``range_of_motion`` takes them: joints, ``joint[k]``, ``link.x``, ``.y``, ``.z``,
                    or ``link.yaw``, ...; forces are those along them, moments at revolute joints and of angles
    hold            joints that stand still, if the output does not follow from the input otherwise

    Infinite where the output stands still while the input moves (a toggle, or dead centre), zero where the input
    does; nan in singular positions, where branches of the motion meet (a parallelogram in one line) and no ratio
    follows from the position.  Its inverse is the ratio of the velocities.
    """
    (q,) = checked_arrays(mech, q=q)
    driver_rate, driven_rate, _, known = _rates(
        mech, q, (named_coordinate(mech, input), named_coordinate(mech, output)), hold
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(known, driver_rate / driven_rate, np.nan)
    return ratio if q.ndim > 1 else float(ratio)


def transmission_angle(
    mech: Mechanism,
    q: ByJoint,
    input: str,
    output: str,
    at: str | None = None,
    hold: Sequence[str] = (),
) -> Float64Array | float:
    """(...): in radians, from 0 to pi / 2: 90 degrees minus the angle between the force on the output link and the
    velocity of its point of attack. Of a four-bar it is the acute angle between coupler and rocker; of a slider-crank
    the angle between the rod and the normal of the slide.

    input, output   joints of one degree of freedom, or one coordinate of others (``joint[k]``, ``joint.x``); the output
                    link is the link that the output joint moves
    at              the joint or loop with the force on the output link, if several transmit forces
    hold            joints that stand still, if the input does not determine the output otherwise

    Links have neither weight nor inertia. At 90 degrees all of the force moves the output; at 0 none of it does; nan in
    singular positions, where branches of the motion meet. Where only a moment moves the output link, as in Cardan
    joints and in spherical linkages whose joints are all at the centre, the angle is between the moment and the angular
    velocity of the link, without the free directions of the joint: of a spherical four-bar it is the angle between the
    planes of coupler and rocker.
    """
    driver, driven = (_joint_coordinate(mech, name) for name in (input, output))
    for name in names_of(hold):
        mech.coordinates.place(name)
    if input == output:
        raise MechanismError(f"input and output are the same joint, {input!r}: nothing is transmitted")
    (q,) = checked_arrays(mech, q=q)
    driver_rate, driven_rate, motion, known = _rates(mech, q, (driver, driven), hold)
    if not q.size:
        return np.zeros(q.shape[:-1])
    # Forces at input and output that balance each other, in every position: neither is zero in the other's dead centre.
    forces = driven_rate[..., None] * driver.rows(q) - driver_rate[..., None] * driven.rows(q)
    joint = output if output in mech.joint_names else mech.coordinates.joint_of(output)
    pushes = _pushes(mech, q, forces, hold, joint)
    push = _choose_push(mech, pushes, joint, at)
    linear, angular = _velocity_at(mech, q, joint, push.point, motion)
    length = units(mech).length
    work = [np.linalg.norm(x, axis=-1) for x in (push.force, linear, push.moment, angular)]
    scale = (work[0] + work[2] / length) * (work[1] + work[3] * length)
    angle = np.where(
        work[0] * work[1] > NOTHING * scale,
        _share(push.force, linear),
        _share(push.moment, times(push.transmitted, angular)),
    )
    angle = np.where(known, angle, np.nan)
    return angle if q.ndim > 1 else float(angle)


def _share(force: Float64Array, motion: Float64Array) -> Float64Array:
    """(...): 90 degrees minus the angle between two vectors; NaN if one is zero."""
    most = np.linalg.norm(force, axis=-1) * np.linalg.norm(motion, axis=-1)
    useful = np.abs(np.einsum("...i,...i->...", force, motion))
    return np.arcsin(np.minimum(np.divide(useful, most, out=np.full(most.shape, np.nan), where=most > 0.0), 1.0))


def _joint_coordinate(mech: Mechanism, name: str) -> NamedCoordinate:
    """The named coordinate, which must belong to a joint: only joints exert forces on links."""
    index = mech.coordinates.index("q", name)
    if name not in mech.joint_names and index is not None:  # a link may have the name of its joint
        joint = mech.coordinates.joint_of(name)
        return named_coordinate(mech, f"{joint}[{index - mech.q_index(joint).start}]")
    link = name.rpartition(".")[0]
    if link not in mech.frames:
        mech.body_index(name)  # what is no joint is refused
        return named_coordinate(mech, name)
    body = mech.frame(link).body
    joint = mech.bodies[body].joint if body >= 0 else ""
    coordinates = (
        [candidate for candidate in mech.q_names if joint in (candidate, mech.coordinates.joint_of(candidate))]
        if joint
        else []
    )
    raise MechanismError(
        f"transmission_angle is about forces on the link that a joint moves, and {name!r} is the place of a link: name "
        "a coordinate of a joint"
        + (f"; that of this link has {', '.join(map(repr, coordinates))}" if coordinates else "")
    )


# -- motion -------------------------------------------------------------------------------------------


def _rates(
    mech: Mechanism, q: Float64Array, ends: tuple[NamedCoordinate, NamedCoordinate], hold: Sequence[str]
) -> tuple[Float64Array, Float64Array, Float64Array, np.ndarray]:
    """(...), (...), (..., nv): rates of both coordinates up to a common scale, zero within rounding, and the velocities
    of that motion; (...): whether the motion is unique.

    Further degrees of freedom, such as a rod's own rotation between two balls, are allowed if both rates stay
    proportional.
    """
    require_finite(mech, q)
    warn_if_open(mech, closable_error(mech, q))
    if not q.size:
        nothing = np.zeros(q.shape[:-1])
        return nothing, nothing, np.zeros((*q.shape[:-1], mech.nv)), nothing > 0.0
    manifold = constraint_manifold(mech, q.reshape(-1, mech.nq)[0], hold)
    rows = np.stack([end.dimensionless(manifold.units).rows(q) for end in ends], axis=-2)
    basis = manifold.basis(q)
    u, s, turned = np.linalg.svd(rows @ basis)
    if not manifold.dof or (manifold.dof > 1 and np.any(s[..., 1] > TOGETHER * s[..., 0])):
        freely = (
            "independently of each other: hold other joints (hold=...)" if manifold.dof else "not at all: hold fewer"
        )
        raise MechanismError(
            f"{ends[0].name!r} and {ends[1].name!r} of mechanism {mech.name!r} move {freely}; it has {manifold.dof} "
            f"degrees of freedom{describe_hold(hold)}"
        )
    rates = np.where(np.abs(u[..., 0]) > STILL, u[..., 0], 0.0)
    first_rate, second_rate = (rates[..., k] * end.unit(manifold.units) for k, end in enumerate(ends))
    motion = manifold.units.velocities * times(basis, turned[..., 0, :])
    return (
        first_rate,
        second_rate,
        motion,
        manifold.conditioning(q) > AT_SINGULAR,
    )


def _velocity_at(
    mech: Mechanism, q: Float64Array, joint: str, point: Float64Array, motion: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """(..., 3) each: the velocity of a point and the angular velocity, in the world, of the link that a joint moves,
    due to that joint alone. A joint with several degrees of freedom moves as in the motion (..., nv).
    """
    link, columns = mech.link_names[mech.body_index(joint)], mech.v_index(joint)
    share = motion[..., columns] if columns.stop - columns.start > 1 else np.ones(1)
    column = times(tree.jacobian(mech, q, link, "world_aligned")[..., columns], share)
    arm = point - tree.frame_pose(mech, q, link)[..., :3, 3]
    return column[..., 3:] + np.cross(column[..., :3], arm), column[..., :3]


# -- forces -------------------------------------------------------------------------------------------


class _Push(NamedTuple):
    """A joint or loop that acts on a link, in the world; signs are arbitrary.

    force, moment   (..., 3) each
    point           (..., 3): where they act
    transmitted     (..., 3, 3): removes the rotation that the joint leaves free from rotations, if there is just one
    """

    name: str
    force: Float64Array
    moment: Float64Array
    point: Float64Array
    transmitted: Float64Array


def _pushes(mech: Mechanism, q: Float64Array, forces: Float64Array, hold: Sequence[str], output: str) -> list[_Push]:
    """All forces on the output link except that of its own joint, for joint forces (..., nv) in balance."""
    loops, scale = counted_jacobian(mech, q), sizes(mech)
    rows = velocity_rows(mech, hold, "hold")
    held = np.broadcast_to(rows, (*q.shape[:-1], *rows.shape))
    row_scales = np.concatenate([scale.rows, 1.0 / row_sizes(rows * scale.columns)[:, 0]])
    stacked = np.concatenate([loops, held], axis=-2)
    balance = decompose(stacked, rows=row_scales, columns=scale.columns).solve_transposed(forces)
    multipliers = balance[..., : mech.n_constraints]
    weightless, still = mech.with_gravity((0.0, 0.0, 0.0)), np.zeros(mech.nv)
    inside = wrenches_of_joints(weightless, q, still, still, multipliers)
    between, maps = wrenches_of_loops(mech, q, multipliers), float64_function(mech, "loop_motion_maps")(q)
    body, pushes = mech.body_index(output), []
    for k, child in enumerate(mech.bodies):
        if child.parent == body:
            pose = tree.frame_pose(mech, q, child.link)
            moment, force = (times(pose[..., :3, :3], inside[..., k, part]) for part in (slice(3), slice(3, 6)))
            columns = mech.v_index(child.joint)
            free = np.swapaxes(tree.jacobian(mech, q, child.link, "world_aligned")[..., :3, columns], -1, -2)
            transmitted = np.eye(3) - _projection_on_one(free)
            pushes.append(_Push(child.joint, force, moment, pose[..., :3, 3], transmitted))
    for k, loop in enumerate(mech.loops):
        if isinstance(loop, Loop) and body in (mech.frame(loop.link_a).body, mech.frame(loop.link_b).body):
            rotation, position = (np.asarray(part, float) for part in loop.pose_b)
            pose = tree.frame_pose(mech, q, loop.link_b)
            axes = pose[..., :3, :3] @ rotation
            moment, force = (times(axes, between[..., k, part]) for part in (slice(3), slice(3, 6)))
            held = maps[..., mech.constraints.rows(loop.name), :3] @ np.swapaxes(axes, -1, -2)
            transmitted = np.eye(3) - _projection_on_one(decompose(held, TOGETHER).null.swapaxes(-1, -2))
            point = times(pose[..., :3, :3], position) + pose[..., :3, 3]
            pushes.append(_Push(loop.name, force, moment, point, transmitted))
    return pushes


def _projection_on_one(axes: Float64Array) -> Float64Array:
    """(..., 3, 3): the projection on the direction of rows (..., k, 3); zero if they span several."""
    svd = decompose(axes, TOGETHER)
    return np.where(np.asarray(svd.rank)[..., None, None] == 1, svd.pseudo_inverse @ axes, 0.0)


def _choose_push(mech: Mechanism, pushes: list[_Push], output: str, at: Any) -> _Push:
    """The joint or loop that moves the output link: ``at``, or the only one with a force."""
    names = [push.name for push in pushes]
    if at is not None:
        if at not in names:
            raise MechanismError(
                f"nothing called {at!r} acts on the link that joint {output!r} of mechanism {mech.name!r} moves; "
                f"available: {', '.join(names) or '(none)'}"
            )
        return pushes[names.index(at)]
    forces = [float(np.abs(push.force).max(initial=0.0)) for push in pushes]
    moments = [float(np.abs(push.moment).max(initial=0.0)) / units(mech).length for push in pushes]
    none = NOTHING * max((*forces, *moments), default=0.0)
    strengths = forces if max(forces, default=0.0) > none else moments
    strong = [push for push, strength in zip(pushes, strengths, strict=True) if strength > none]
    if len(strong) == 1:
        return strong[0]
    raise MechanismError(
        f"the link that joint {output!r} of mechanism {mech.name!r} moves is pushed by "
        + (
            f"{', '.join(push.name for push in strong)}: say which with at="
            if strong
            else "nothing: name another output"
        )
    )
