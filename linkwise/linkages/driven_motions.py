"""Kinematics of a linkage with driven joints: velocities and accelerations of joints, links and points."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..constraints.accelerations import curvature_of, independent_at, terms
from ..constraints.decomposition import decompose, row_sizes, times
from ..constraints.equations import decomposed_jacobian, require_finite, velocity_rows, warn_if_open
from ..constraints.formulations import UnsuitableCoordinates, acceleration_basis
from ..constraints.idle_motions import explain_idle_motions, hint
from ..constraints.named_coordinates import is_beside_velocities, named_coordinate, rates_of_inputs
from ..constraints.redundancy import closable_error
from ..constraints.singular import are_singular
from ..constraints.sizes import sizes
from ..dynamics import centroidal, frames
from ..dynamics import trees as tree
from ..dynamics.by_joint import velocities_of
from ..dynamics.states import Argument, ByJoint, Float64Array, checked_arrays, common_batch, in_brief, real_numbers
from ..dynamics.tables import Tabular
from ..mechanism import Mechanism, MechanismError, require_mechanism
from ..mechanism.checks import checked_array

STILL = 1e-9  # of an input's positions: those that vary less stand still
Point = str | tuple[str, Sequence[float]]  # the origin of a link or frame, or a point in its coordinates


@dataclass(frozen=True, eq=False, repr=False)
class DrivenMotion(Tabular):
    """Positions, velocities and accelerations of a mechanism, one state or a batch, from ``driven_motion``.

    q    (..., nq)
    v    (..., nv): of all joints
    a    (..., nv): of all joints
    inputs   names of the driven joints and coordinates

    Quantities of links and points are (..., 3), in axes of the world. A point is the name of a link or frame, for its
    origin, as named points of ``Builder.linkage`` are; or (link, (x, y, z)), in coordinates of the link.
    """

    mech: Mechanism
    q: Float64Array
    v: Float64Array
    a: Float64Array
    inputs: tuple[str, ...] = ()

    def __repr__(self) -> str:
        count = int(np.prod(self.q.shape[:-1]))
        many = f"{count} positions" if self.q.ndim > 1 else "one position"
        return f"<DrivenMotion of {self.mech.name!r}: {many}, q, v and a>"

    @property
    def over(self) -> tuple[str, Float64Array]:
        """The input that moves, and its positions (n,): the abscissa of tables and plots."""
        if self.q.ndim == 2 and len(self.q) > 1:
            singles = [single for name in self.inputs for single in _single_coordinates(self.mech, name)]
            for name in singles:
                values = named_coordinate(self.mech, name).along(self.q)
                if np.ptp(values) > STILL * max(1.0, np.abs(values).max()):
                    return name, values
        raise MechanismError(
            f"a table or picture of a driven motion is over positions of an input, {{joint: np.linspace(...)}}, and "
            f"{self!r} has no path of one"
        )

    def table(self) -> tuple[list[str], Float64Array]:
        """Names (the input, q.crank, ..., v.crank, ..., a.crank, ...) and values (n, columns) for ``to_csv``:
        coordinates, velocities and accelerations over positions of the input.
        """
        name, values = self.over
        of_q, of_v = self.mech.coordinates.names("q"), self.mech.coordinates.names("v")
        parts = {"q": of_q, "v": of_v, "a": of_v}
        names = [
            name,
            *(f"{quantity}.{coordinate}" for quantity, coordinates in parts.items() for coordinate in coordinates),
        ]
        return names, np.concatenate([values[:, None], self.q, self.v, self.a], axis=1)

    def save(self, path: str | Path) -> None:
        """Write the ``table`` to a file, ``.csv`` or ``.parquet``."""
        writers = {".csv": self.to_csv, ".parquet": self.to_parquet}
        ending = Path(path).suffix.lower()
        if ending not in writers:
            raise MechanismError(f"{Path(path).name!r}: driven motions are saved as tables, .csv or .parquet")
        writers[ending](path)

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """Plot positions, velocities and accelerations over the input, and save to ``path`` if given; options as in
        ``lw.viewer.plot_trajectory``.
        """
        from ..viewer import plot_trajectory

        return plot_trajectory(self, path, **options)

    def of_joint(self, joint: str) -> tuple[Float64Array, Float64Array, Float64Array]:
        """(...) each: position, velocity and acceleration of a joint of one coordinate, mimic joints included; (..., k)
        of joints with several."""
        entry, rows = self.mech.coordinates.place(joint), velocity_rows(self.mech, (joint,), "joint")
        columns = entry.positions(self.q), self.v @ rows.T, self.a @ rows.T
        single = self.mech.bodies[self.mech.body_index(joint)].kind.nq == 1
        position, velocity, acceleration = (x[..., 0][()] if single else x for x in columns)
        return position, velocity, acceleration

    def position(self, point: Point) -> Float64Array:
        """(..., 3): position of a point in the world."""
        link, _, arm = self._point(point)
        return tree.frame_pose(self.mech, self.q, link)[..., :3, 3] + arm

    def velocity(self, point: Point) -> Float64Array:
        """(..., 3): velocity of a point in the world."""
        link, twist, arm = self._point(point)
        return twist[..., 3:] + np.cross(twist[..., :3], arm)

    def acceleration(self, point: Point) -> Float64Array:
        """(..., 3): acceleration of a point in the world, the second derivative of its position; gravity does not
        enter.
        """
        link, twist, arm = self._point(point)
        seen = frames.frame_acceleration(self.mech, self.q, self.v, self.a, link, "world_aligned", classical=True)
        inward = np.cross(twist[..., :3], np.cross(twist[..., :3], arm))
        return seen[..., 3:] + np.cross(seen[..., :3], arm) + inward

    def angular_velocity(self, link: str) -> Float64Array:
        """(..., 3): angular velocity of a link in the world; planar linkages rotate about z, the last component."""
        return frames.frame_velocity(self.mech, self.q, self.v, link, "world_aligned")[..., :3]

    def angular_acceleration(self, link: str) -> Float64Array:
        """(..., 3): angular acceleration of a link in the world."""
        return frames.frame_acceleration(self.mech, self.q, self.v, self.a, link, "world_aligned")[..., :3]

    def _point(self, point: Point) -> tuple[str, Float64Array, Float64Array]:
        """The link of a point, the spatial velocity of the link at its origin, and the vector from the origin to the
        point, in the world.
        """
        link, position = (point, (0.0, 0.0, 0.0)) if isinstance(point, str) else point
        local = checked_array(f"the place of a point of {link!r}", position, (3,))
        twist = frames.frame_velocity(self.mech, self.q, self.v, link, "world_aligned")
        return link, twist, tree.frame_pose(self.mech, self.q, link)[..., :3, :3] @ local

    @property
    def shaking_force(self) -> Float64Array:
        """(..., 3): the resultant of all inertia forces on the machine's frame: minus total mass times the
        acceleration of the centre of mass.
        """
        return -self._momentum_rate[..., 3:]

    @property
    def shaking_moment(self) -> Float64Array:
        """(..., 3): the moment of all inertia forces about the world's origin."""
        return -self._momentum_rate[..., :3]

    @cached_property
    def _momentum_rate(self) -> Float64Array:
        return centroidal.momentum_rate(self.mech, self.q, self.v, self.a)


def driven_motion(
    mech: Mechanism, q: ByJoint | None = None, v: Mapping[str, Any] | None = None, a: Mapping[str, Any] | None = None
) -> DrivenMotion:
    """The motion of a mechanism whose driven joints have the velocities ``v`` and accelerations ``a``, by joint; the
    loops determine all others: ``driven_motion(four_bar, {"crank_joint": 0.3}, {"crank_joint": 20.0})``.

    q      (..., nq), loops closed; or by joint, {joint: position}, and the loops are closed; many positions, {joint:
           (n,)}, are followed from the initial configuration without changing the branch (``follow_path``); None is the
           initial configuration
    v      {joint: number or (...)}, the inputs; as many as there are degrees of freedom.  Other joints outside of all
           loops stand still.  Positions and orientations of links are inputs too, {"platform.x": 0.1}, as are
           coordinates of joints with several (``mech.q_names``)
    a      {joint: number or (...)}; joints of ``v`` that are left out have none: they run at constant speed

    The inputs must determine the motion: dead centres are an error, as are singular positions, where branches of the
    motion meet (a parallelogram in one line).
    """
    require_mechanism(mech)
    for name, named_values in (("v", v), ("a", a)):
        if named_values is not None and not isinstance(named_values, Mapping):
            raise MechanismError(
                f"driven_motion takes {name} of the driven joints by name, {{joint: number}}, as the others follow; "
                "for velocities and accelerations of all joints take frame_velocity and frame_acceleration"
            )
    q = _configurations(mech, q)
    rates, changes = dict(v or {}), dict(a or {})
    inputs = tuple(dict.fromkeys((*rates, *changes, *_joints_outside_loops(mech, (*rates, *changes)))))
    rate, change = (_inputs(mech, name, values, inputs, q) for name, values in (("v", rates), ("a", changes)))
    q = np.broadcast_to(q, (*common_batch({"v": rate.shape[:-1], "a": change.shape[:-1]}), mech.nq))
    _require_regular(mech, q, inputs)
    jacobian = terms(mech, q, np.zeros(mech.nv)).jacobian
    with explain_idle_motions(mech, q, inputs), _explain_inputs(mech, q, tuple(rates), tuple(changes)):
        chosen = independent_at(mech, q, inputs)
        aims = np.broadcast_to(mech.constraints.drive_rates, jacobian.shape[:-1])
        basis, offset = acceleration_basis("partitioning", jacobian, -aims, decomposed_jacobian(mech, jacobian), chosen)
        velocities = times(basis[..., : rate.shape[-1]], rate) + offset
        at = terms(mech, q, velocities)
        svd = decomposed_jacobian(mech, at.jacobian)
        basis, offset = acceleration_basis("partitioning", at.jacobian, at.bias, svd, chosen)
        change = change - curvature_of(mech, q, velocities, inputs)
    return DrivenMotion(mech, q, velocities, times(basis[..., : change.shape[-1]], change) + offset, inputs)


def _single_coordinates(mech: Mechanism, name: str) -> list[str]:
    """Names of the coordinates of an input."""
    if is_beside_velocities(mech, name):
        return [name]
    joint = name if name in mech.joint_names else mech.coordinates.joint_of(name)
    count = mech.bodies[mech.body_index(joint)].kind.nq
    return [joint] if count == 1 else [f"{joint}[{k}]" for k in range(count)]


def _configurations(mech: Mechanism, q: ByJoint | None) -> Float64Array:
    """(..., nq): q as an array, with loops closed where only driven joints are given."""
    (q,) = checked_arrays(mech, q={} if q is None else q)
    require_finite(mech, q)
    warn_if_open(mech, closable_error(mech, q))
    return q


def _require_regular(mech: Mechanism, q: np.ndarray, inputs: Sequence[str]) -> None:
    """Refuse singular positions, where velocities do not follow from inputs."""
    if not np.any(singular := are_singular(mech, q)):
        return
    which = np.flatnonzero(singular.ravel())
    states = q.reshape(-1, mech.nq)
    singles = [single for name in inputs for single in _single_coordinates(mech, name)]
    at = ", ".join(f"{name!r} at {float(named_coordinate(mech, name).value(states[which[0]])):.6g}" for name in singles)
    where = f"position {which[0]} of {len(states)} ({at})" if q.ndim > 1 else f"this position ({at})"
    raise MechanismError(
        f"{where} of mechanism {mech.name!r} is singular: branches of its motion meet there, and velocities do not "
        "follow from the inputs" + f", as at {in_brief(which[1:])}" * (len(which) > 1) + ": leave it out, or move it a "
        "little, by 1e-3 of a radian or of the mechanism's size"
    )


def _joints_outside_loops(mech: Mechanism, named: tuple[str, ...]) -> list[str]:
    """Joints that no loop moves, except those that are named or have a named coordinate."""
    within = {body for loop in mech.loops for body in loop.bodies_within(mech)}
    known = {name if name in mech.joint_names else mech.coordinates.joint_of(name) for name in named}
    return [
        body.joint
        for k, body in enumerate(mech.bodies)
        if k not in within and body.nv and not body.mimic and body.joint not in known
    ]


@contextlib.contextmanager
def _explain_inputs(mech: Mechanism, q: np.ndarray, rates: Sequence[str], changes: Sequence[str]) -> Iterator[None]:
    """Context that adds the number of needed inputs, and a valid choice, to the error for too many or too few."""
    try:
        yield
    except UnsuitableCoordinates as error:
        if not error.dofs or error.count == error.dofs:
            raise
        named = tuple(dict.fromkeys((*rates, *changes)))
        count = sum(_width(mech, name) for name in named)
        needed = error.dofs - (error.count - count)
        names = "v names" if set(changes) <= set(rates) else "v and a name"
        joints = "the speed of one joint" if needed == 1 else f"the speeds of {needed} joints"
        example = ", ".join(map(repr, _suggest_inputs(mech, q.reshape(-1, mech.nq)[0], named)))
        raise MechanismError(
            f"{names} {count} input{'s' * (count != 1)}, the mechanism needs {needed}: give {joints}, such as {example}"
            + hint(mech, q, rates=True, named=named) * (count < needed)
        ) from None


def _suggest_inputs(mech: Mechanism, q: np.ndarray, named: Sequence[str]) -> list[str]:
    """Inputs that determine the motion at q (nq,): as many of the named ones as possible, then other
    joints in order.
    """
    units, candidates = sizes(mech), []
    loops = units.rows[:, None] * terms(mech, q, np.zeros(mech.nv)).jacobian * units.columns
    beside = _unit_rows(velocity_rows(mech, _joints_outside_loops(mech, ()), "joint") * units.columns)
    rows = np.concatenate([loops, beside])
    rank = int(decompose(rows).rank)
    for name in (*named, *mech.v_names):
        wider = np.concatenate([rows, _unit_rows(rates_of_inputs(mech, q, (name,), "inputs") * units.columns)])
        if int(decompose(wider).rank) == rank + len(wider) - len(rows):
            rows, rank = wider, rank + len(wider) - len(rows)
            candidates.append(name)
    return candidates


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    return rows / row_sizes(rows)


def _width(mech: Mechanism, name: str) -> int:
    """Number of coordinates of an input."""
    if is_beside_velocities(mech, name):
        return 1
    columns = velocities_of(mech, name)
    return columns.stop - columns.start


def _inputs(
    mech: Mechanism, quantity: str, named: Mapping[str, Any], inputs: tuple[str, ...], q: np.ndarray
) -> np.ndarray:
    """(..., p): numbers of the driven joints in a row, zero for joints that are left out."""
    columns = []
    for joint in inputs:
        count = _width(mech, joint)
        numbers = real_numbers(f"the {quantity} of {joint!r}", named.get(joint, np.zeros(count)))
        numbers = numbers[..., None] if count == 1 and numbers.shape[-1:] != (1,) else numbers
        columns.append(Argument(f"{quantity} of {joint!r}", (count,)).array(mech, numbers))
    shapes = {f"{quantity} of {joint!r}": x.shape[:-1] for joint, x in zip(inputs, columns, strict=True)}
    batch = common_batch({"q": q.shape[:-1], **shapes})
    filled = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in columns]
    return np.concatenate([np.zeros((*batch, 0)), *filled], axis=-1)
