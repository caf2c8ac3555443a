"""Plausibility checks of states: lengths, orders, quaternions, units, limits, loops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..mechanics.joints import ANGLE, LENGTH, QUATERNION
from ..mechanism import Body, Mechanism, require_mechanism
from ..mechanism.quaternions import NOT_UNIT
from .states import ByJoint, Float64Array, about_length, common_batch, real_numbers

BEYOND = 1e-9  # of a limit: rounding
ROUND = 1e-6  # a quaternion this near to (0, 0, 0, 1) may be an identity in another order


def check_state(mech: Mechanism, q: ByJoint, v: ByJoint | None = None) -> tuple[str, ...]:
    """Sentences about what looks wrong in configurations q (..., nq) and velocities v (..., nv); empty if nothing
    does. For batches each gives the index of the first state and the number of further ones.

    Reported are arrays of the wrong length, numbers that are not finite, quaternions not of unit length or in the order
    of Pinocchio or MuJoCo, positions and velocities beyond limits, angles that look like degrees, lengths that look
    like millimetres, open loops, and velocities that open them.  A velocity with its linear part first cannot be
    detected.

    States are not changed; only arguments that are not real numbers raise.  Functions such as ``forward_dynamics`` do
    not make these checks, which take longer than they do.
    """
    require_mechanism(mech)
    from .by_joint import state_by_joint  # imported late: it closes loops

    named = {name: values for name, values in (("q", q), ("v", v)) if values is not None}
    if any(isinstance(values, Mapping) for values in named.values()):
        named = dict(state_by_joint(mech, named))
    arrays = {name: real_numbers(name, values) for name, values in named.items()}
    wrong = {name: sentence for name, array in arrays.items() if (sentence := _check_shape(mech, name, array))}
    sentences = list(wrong.values())
    if "q" not in wrong:
        sentences += _check_configurations(mech, arrays["q"])
    if "v" in arrays and "v" not in wrong:
        sentences += _check_velocities(mech, arrays["v"])
    if not wrong and mech.loops:
        common_batch({name: array.shape[:-1] for name, array in arrays.items()})
        sentences += _check_loops(mech, arrays["q"], arrays.get("v"))
    return tuple(sentences)


def _which(states: np.ndarray) -> str:
    """Text on the flagged states of a batch: the first index and the number of others; empty for a single state."""
    if not states.ndim:
        return ""
    index = tuple(map(int, np.argwhere(states)[0]))
    count = int(np.count_nonzero(states)) - 1
    return f" in state {index}" + (f" and {count} more" if count else "")


def _own(mech: Mechanism) -> list[Body]:
    return [body for body in mech.bodies if not body.mimic]


# -- lengths ----------------------------------------------------------------------------------------------------------


def _check_shape(mech: Mechanism, name: str, array: np.ndarray) -> str:
    """Problem of an array's last axis; empty if it is right."""
    expected = mech.nq if name == "q" else mech.nv
    length = array.shape[-1] if array.ndim else 0
    if array.ndim and length == expected:
        return ""
    return f"{name} has shape {array.shape}, not (..., {expected})" + about_length(mech, name, length)


# -- configurations ---------------------------------------------------------------------------------------------------


def _check_configurations(mech: Mechanism, q: Float64Array) -> Iterator[str]:
    yield from _not_finite("q", q, mech.q_names)
    for body in _own(mech):
        coordinates = q[..., mech.q_index(body.joint)]
        measures = [measure.of for measure in body.kind.measures("q")]
        quaternion = [k for k, of in enumerate(measures) if of == QUATERNION]
        if quaternion:
            yield from _check_quaternion(body, coordinates, quaternion)
        yield from _beyond_limits(mech, body, coordinates, measures)


def _not_finite(name: str, array: np.ndarray, names: Sequence[str]) -> Iterator[str]:
    bad = ~np.isfinite(array)
    if bad.any():
        columns = np.flatnonzero(bad.reshape(-1, array.shape[-1]).any(axis=0))
        listed = ", ".join(repr(names[k]) for k in columns.tolist())
        yield f"{name} is not finite at {listed}{_which(bad.any(axis=-1))}"


def _check_quaternion(body: Body, coordinates: np.ndarray, indices: list[int]) -> Iterator[str]:
    """Length and order of the quaternion of one joint, with ``coordinates`` (..., n)."""
    label = f"the quaternion of joint {body.joint!r} in q"
    lengths = np.linalg.norm(coordinates[..., indices], axis=-1)
    wrong = np.abs(lengths - 1.0) > NOT_UNIT
    if wrong.any():
        first = tuple(np.argwhere(wrong)[0])
        yield (
            f"{label} is {lengths[first]:.6g} long{_which(wrong)}, not 1: coordinates are [w, x, y, z]"
            + (", then the position" if body.kind.is_free else "")
            + _other_order(body, coordinates[first])
        )
    elif not body.kind.is_free:
        last = np.abs(np.abs(coordinates[..., indices[3]]) - 1.0) < ROUND
        if last.any():
            yield (
                f"{label} is [0, 0, 0, 1]{_which(last)}, half a turn about z: in the order [x, y, z, w] of Pinocchio "
                "it would be no rotation"
            )


def _other_order(body: Body, coordinates: np.ndarray) -> str:
    """Whether the coordinates of a floating joint look like another library's order."""
    if not body.kind.is_free or abs(np.linalg.norm(coordinates[3:]) - 1.0) > NOT_UNIT:
        return ""
    pinocchio = "Pinocchio's [x, y, z, qx, qy, qz, qw], which lw.interop.from_pinocchio converts"
    mujoco = "MuJoCo's [x, y, z, qw, qx, qy, qz], which lw.interop.from_mujoco converts"
    likely, other = (pinocchio, mujoco) if abs(coordinates[6]) >= abs(coordinates[3]) else (mujoco, pinocchio)
    return f"; the last four numbers are of unit length: this looks like {likely}, or {other}"


def _beyond_limits(mech: Mechanism, body: Body, coordinates: np.ndarray, measures: Sequence[str]) -> Iterator[str]:
    lower, upper = np.array(body.limits.lower), np.array(body.limits.upper)
    over = np.maximum(lower - coordinates, coordinates - upper)
    beyond = over > BEYOND * np.maximum(1.0, np.abs(np.where(coordinates > upper, upper, lower)))
    for k in np.flatnonzero(beyond.reshape(-1, coordinates.shape[-1]).any(axis=0)).tolist():
        states = beyond[..., k]
        value = float(coordinates[tuple(np.argwhere(states)[0])][k])
        name = mech.q_names[mech.q_index(body.joint).start + k]
        unit, factor = {ANGLE: ("degrees", math.pi / 180.0), LENGTH: ("millimetres", 1e-3)}.get(measures[k], ("", 1.0))
        inside = bool(unit) and lower[k] - BEYOND <= value * factor <= upper[k] + BEYOND and abs(value) > 2.0 * math.pi
        meant = f": it looks like {unit}, {value * factor:.6g} is within them" if inside else ""
        yield f"q of {name!r} is {value:.6g}{_which(states)}, beyond its limits {lower[k]:.6g} .. {upper[k]:.6g}{meant}"


# -- velocities and loops ---------------------------------------------------------------------------------------------


def _check_velocities(mech: Mechanism, v: Float64Array) -> Iterator[str]:
    yield from _not_finite("v", v, mech.v_names)
    fast = np.abs(v) > mech.limits.velocity * (1.0 + BEYOND)
    for k in np.flatnonzero(fast.reshape(-1, mech.nv).any(axis=0)).tolist():
        states = fast[..., k]
        value = float(v[tuple(np.argwhere(states)[0])][k])
        yield f"v of {mech.v_names[k]!r} is {value:.6g}{_which(states)}, beyond its limit {mech.limits.velocity[k]:.6g}"


def _check_loops(mech: Mechanism, q: Float64Array, v: Float64Array | None) -> Iterator[str]:
    from ..compiler.store import float64_function
    from ..constraints.equations import loop_of, opening_rates
    from ..constraints.redundancy import closable_error
    from ..constraints.sizes import sizes
    from ..constraints.tolerances import LOOPS

    rows = sizes(mech).rows
    gaps = np.abs(closable_error(mech, q)) * rows
    gapes = gaps > LOOPS.open_by_mistake
    if gapes.any():
        *state, row = np.argwhere(gapes)[0]
        worst = gaps[tuple(state)][row] / rows[row]
        yield (
            f"loop {loop_of(mech, int(row))!r} is open by {worst:.3g} (metres or radians){_which(gapes.any(axis=-1))}: "
            "lw.constraints.assemble(mech, q) closes loops"
        )
    elif v is not None and np.isfinite(v).all():
        opening, bound = opening_rates(mech, float64_function(mech, "constraint_jacobian")(q), v, v)
        if (opening > bound).any():
            row = int(np.argwhere(opening > bound)[0][-1])
            where = _which(np.asarray((opening > bound).any(axis=-1)))
            yield (
                f"v opens loop {loop_of(mech, row)!r}{where}: lw.constraints.project(mech, q, v) gives the nearest "
                "that do not"
            )
