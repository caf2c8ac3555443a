"""Closing loops from a rough guess, keeping them closed, and following them as chosen joints are driven."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...compiler.registry import compile_instead
from ...mechanism import Mechanism, MechanismError
from ...mechanism.checks import names_of
from ...mechanism.model import NO_JOINTS
from ...mechanism.parts import Place
from .. import trees as tree
from ..by_joint import coordinates_by_joint, of_joints_and_links, one_number
from ..states import ByJoint, Float64Array, checked_arrays, common_batch, in_brief, real_numbers
from .closing import LoopEquations, closed_by
from .constraints import decomposed, one_state, position_error, require_finite
from .decomposition import decompose
from .held import Held, HeldEquations, held_by
from .named_coordinates import is_beside_velocities, named_coordinate
from .projection import projected_by_elimination
from .redundancy import decide_around, loop_equations
from .sizes import random_configurations, sizes, units
from .tolerances import LOOPS

ROUND_OFF = 4.0 * np.finfo(float).eps  # of quaternions: they have unit length as well as numbers can say
TRIES = 40  # guesses of ``assemble``, each further from the given one than those before
FURTHER = 0.1  # dimensionless, in root mean square: by how much
AROUND = 10  # guesses that are around the given one; later ones are anywhere


class AssemblyError(MechanismError):
    """Loops that cannot be closed.  ``loop`` names the worst, ``residual`` is its error, ``q`` where it was left."""

    def __init__(self, message: str, loop: str, residual: float, q: Float64Array):
        super().__init__(message)
        self.loop = loop
        self.residual = residual
        self.q = q


@compile_instead("'closed_assembly_iteration', one iteration, which also says how far it can be relied on")
def assemble(
    mech: Mechanism,
    q_guess: ArrayLike | Mapping[str, Any] = NO_JOINTS,
    hold: Sequence[str] = (),
    tolerance: float = LOOPS.closed,
    max_steps: int = 300,
    tries: int = TRIES,
) -> Float64Array:
    """(nq,): a configuration near ``q_guess`` in which all loops are closed, the coordinates of the joints named in
    ``hold`` unchanged but for quaternions, which get unit length; single coordinates can be held too, "base.x", or with
    "base.yaw" a whole orientation, and those of links, "platform.x" (as in ``range_of_motion``).  A guess by joint,
    {"crank": 0.5}, is for the other joints that of ``mech.initial``; the named ones keep their coordinates if loops can
    be closed so from there, and move too where they cannot; without a guess all are as in ``mech.initial``.

    Levenberg-Marquardt on the configuration manifold: every step makes the error smaller, none moves a coordinate by
    more than half a radian or half the size of the loops.  Where that ends with a loop open, as it does at a stationary
    point of the error (all links in one line, or a symmetric guess), it begins again from up to ``tries`` guesses in
    all, each a little further away, then anywhere, and always the same ones; tries=1 takes only what the given guess
    leads to.  An ``AssemblyError`` names the loop that stays open and its residual.

    Loops are closed where ``position_error``, its lengths in units of the sizes of the loops, is below ``tolerance``,
    and to what the data allow where constraints are redundant but for rounding (``redundancy``).
    """
    hold, wanted = names_of(hold), dict[str, float]()
    if isinstance(q_guess, Mapping):
        named, (joints, wanted) = tuple(q_guess), of_joints_and_links(mech, "q_guess", q_guess)
        q_guess = coordinates_by_joint(mech, "q_guess", joints)
        if not hold and held_by(mech, named).free.any():
            with contextlib.suppress(AssemblyError):
                return assembled(mech, q_guess, named, wanted, tolerance, max_steps, min(tries, 2))
    (guess,) = checked_arrays(mech, q=q_guess)
    return assembled(mech, guess, hold, wanted, tolerance, max_steps, tries)


def assembled(
    mech: Mechanism,
    guess: Float64Array,
    hold: Sequence[str],
    wanted: Mapping[str, float],
    tolerance: float = LOOPS.closed,
    max_steps: int = 300,
    tries: int = TRIES,
) -> Float64Array:
    """(nq,): ``assemble`` of a guess (nq,); held coordinates of links that are ``wanted`` elsewhere go there."""
    held = held_by(mech, hold, {name: value for name, value in wanted.items() if name in hold})
    aim = LOOPS.aim * tolerance
    return _closed_or_refused(mech, guess, held, aim, tolerance, max_steps, hold, "the guess", tries)


def _closed_or_refused(
    mech: Mechanism,
    q: np.ndarray,
    held: Held,
    aim: float,
    tolerance: float,
    max_steps: int,
    hold: Sequence[str],
    name: str,
    tries: int = 1,
) -> np.ndarray:
    """q with its loops closed and its quaternions of unit length, or an error about ``name``."""
    start = _with_unit_quaternions(mech, q, name)
    if tries > 1 and q.size:
        decide_around(mech, start.reshape(-1, mech.nq)[0])
    equations, free, kept = held.equations(mech, start), held.free, held.kept
    metric = equations.sizes.columns if tries > 1 else 1.0  # near closed loops, (3.10) is the shortest way as it is
    q = closed_by(equations, start, free, aim, tolerance, max_steps, metric, kept)
    if tries > 1 and free.any():
        q = _searched(equations, start, q, free, aim, tolerance, max_steps, tries, kept)
    if np.any(~equations.is_closed(q, tolerance)):
        _refuse_open(mech, q, hold, tries)
    _refuse_mirrored(equations, q)
    return q


def _with_unit_quaternions(mech: Mechanism, q: np.ndarray, name: str) -> np.ndarray:
    """q, finite, with its quaternions of unit length; what has that stays as it is, to the last digit."""
    if mech.rates_are_velocities:
        require_finite(mech, q, f"{name} is not finite")
        return q
    with np.errstate(divide="ignore", invalid="ignore"):  # a quaternion of zeros is reported below
        unit = tree.integrate(mech, q, np.zeros(mech.nv), 0.0)
    require_finite(mech, q, f"{name} is not finite")
    require_finite(mech, unit, f"{name} has a quaternion of zeros")
    return np.where(np.abs(unit - q) > ROUND_OFF, unit, q)


def _searched(
    equations: LoopEquations,
    start: np.ndarray,
    q: np.ndarray,
    free: np.ndarray,
    aim: float,
    tolerance: float,
    max_steps: int,
    tries: int,
    kept: Sequence[int],
) -> np.ndarray:
    """q, and where its loops are open or back to back what other guesses lead to, if any of them does: first some
    around ``start``, then any."""
    mech, columns = equations.mech, equations.sizes.columns
    starts, found = np.array(start).reshape(-1, mech.nq), np.array(q).reshape(-1, mech.nq)
    rng = np.random.default_rng(0)
    for further in range(1, tries):
        failed = np.flatnonzero(~_is_assembled(equations, found, tolerance))
        if not len(failed):
            break
        if further <= AROUND:
            change = FURTHER * further * rng.normal(size=mech.nv) * columns
        else:
            change = tree.difference(mech, starts[failed], random_configurations(mech, rng, 1)[0])
        guess = tree.integrate(mech, starts[failed], free * change, 1.0)
        guess[..., kept] = starts[failed][..., kept]
        there = closed_by(equations, guess, free, aim, tolerance, max_steps, columns, kept)
        assembled = _is_assembled(equations, there, tolerance)
        found[failed[assembled]] = there[assembled]
    return found.reshape(q.shape)


def _is_assembled(equations: LoopEquations, q: np.ndarray, tolerance: float) -> np.ndarray:
    """(...): whether all loops are closed and none back to back."""
    return equations.is_closed(q, tolerance) & equations.is_aligned(q)


@compile_instead("'closed_projection', for loops that are nearly closed, which also says how far it can be relied on")
def project(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None,
    energy: ArrayLike | None = None,
    tolerance: float = LOOPS.closed,
    largest: float = 0.1,
    rank: Any = None,
    aim: float | None = None,
) -> tuple[Float64Array, Float64Array]:
    """(q, v) moved the least that closes all loops and satisfies their velocity constraints (3.10, 3.11), by G^+.

    energy    if given, kinetic plus potential energy afterwards: the state is moved along the gradient of the energy
              on the constraint manifold
    largest   an ``AssemblyError`` says so if a coordinate would have to move further (lengths in units of the sizes of
              loops): the state was not near the mechanism's branch, and jumping to another would be silent
    rank      (...): no more than this many constraints are independent (see ``generic_rank``)
    aim       an error below ``tolerance`` to which loops are closed if they can be, about round-off by default
    """
    start, v = checked_arrays(mech, q=q, v=v)
    aim = LOOPS.aim * tolerance if aim is None else aim
    unit = _with_unit_quaternions(mech, start, "the configuration")
    quick = projected_by_elimination(loop_equations(mech), unit, v, tolerance, aim, rank)
    if quick is None:
        q = _reclosed(mech, unit, tolerance, aim)
    else:
        q = quick[0]
        _refuse_mirrored(loop_equations(mech), q)
    moved = _largest_move(mech, start, q)
    if np.any(moved > largest):
        loop, residual = _worst_loop(mech, start.reshape(-1, mech.nq)[np.argmax(np.ravel(moved))])
        raise AssemblyError(
            f"closing loop {loop!r} of mechanism {mech.name!r}, open by {residual:.3g}, would move a coordinate by "
            f"{np.max(moved):.3g}, more than {largest:g}: close loops first, q = closed.assemble(mech, q)",
            loop,
            residual,
            q,
        )
    v = _consistent_velocities(mech, q, v, rank) if quick is None else quick[1]
    if energy is not None:
        q, v = _at_energy(mech, start, q, v, energy, tolerance, aim, largest, rank)
    return np.array(np.broadcast_to(q, (*v.shape[:-1], mech.nq))), v  # velocities may be more than configurations


def _reclosed(mech: Mechanism, q: np.ndarray, tolerance: float, aim: float) -> np.ndarray:
    """q, nearly closed, with its loops closed."""
    return _closed_or_refused(mech, q, Held(np.ones(mech.nv, dtype=bool)), aim, tolerance, 60, (), "the configuration")


def _largest_move(mech: Mechanism, start: np.ndarray, q: np.ndarray) -> np.ndarray:
    """(...): the largest change of a coordinate, lengths in units of the sizes of loops."""
    return np.abs(tree.difference(mech, start, q) / loop_equations(mech).sizes.columns).max(axis=-1, initial=0.0)


def _consistent_velocities(mech: Mechanism, q: np.ndarray, v: np.ndarray, rank: Any) -> np.ndarray:
    """V2 V2* v = v - G^+ G v, and what drives ask for."""
    found = decomposed(mech, q, rank=rank)
    consistent = np.einsum("...ij,...kj,...k->...i", found.null, found.null, v)
    return consistent + found.solve(mech.drive_rates) if mech.driven else consistent


def _at_energy(
    mech: Mechanism,
    start: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    energy: ArrayLike,
    tolerance: float,
    aim: float,
    largest: float,
    rank: Any,
    iterations: int = 30,
) -> tuple[np.ndarray, np.ndarray]:
    """Newton's iteration along the gradient of the energy on the constraint manifold: that of velocities alone where
    they have energy enough, since moving positions near a singular position is ill-conditioned, or where positions
    would leave the neighbourhood of the start."""
    energy = real_numbers("energy", energy)
    common_batch({"q": q.shape[:-1], "v": v.shape[:-1], "energy": energy.shape})
    weight = mech.masses.sum() * np.linalg.norm(mech.gravity)  # times a metre: potential energies cancel to less
    near: Any = True
    for _ in range(iterations):
        kinetic, potential = tree.kinetic_energy(mech, q, v), tree.potential_energy(mech, q)
        excess = kinetic + potential - energy
        scale = np.maximum(np.abs(kinetic) + np.abs(potential), np.abs(energy)) + weight
        if np.all(np.abs(excess) <= 1e-14 * scale):
            return q, v
        null = decomposed(mech, q, rank=rank).null
        momentum = (tree.mass_matrix(mech, q) @ v[..., None])[..., 0]
        slow = (near & (kinetic < 4.0 * np.abs(excess)))[..., None]
        slopes = [
            np.einsum("...ij,...kj,...k->...i", null, null, x) for x in (slow * tree.gravity_force(mech, q), momentum)
        ]
        square = sum((slope**2).sum(axis=-1) for slope in slopes)
        way = -np.divide(excess, square, out=np.zeros_like(excess), where=square > 0.0)[..., None]
        if np.any(slow):
            moved = tree.integrate(mech, q, way * slopes[0], 1.0)
            stays = _largest_move(mech, start, moved) <= largest
            near = near & stays
            if not np.all(stays):
                continue
            q = _reclosed(mech, moved, tolerance, aim)
        v = _consistent_velocities(mech, q, v + way * slopes[1], rank)
    if np.all(np.abs(excess) <= 1e-6 * scale):  # at singular positions loops, and so energies, are known no better
        return q, v
    worst = int(np.argmax(np.ravel(np.abs(excess) / scale)))
    wanted, surplus = np.ravel(np.broadcast_to(energy, excess.shape))[worst], np.ravel(excess)[worst]
    raise MechanismError(
        f"mechanism {mech.name!r} cannot have the energy {wanted:.6g} near "
        + (f"state {worst}" if excess.ndim else "this state")
        + f": {abs(surplus):.3g} {'are too much' if surplus > 0.0 else 'are missing'}"
    )


def _place(mech: Mechanism, name: str) -> Place:
    """Where the coordinates of a joint are, or a single one of several."""
    return (None if name in mech.joint_names else mech.single_place(name)) or mech.place(name)


def follow(mech: Mechanism, q: ByJoint | None, targets: Mapping[str, Any], largest: float = 0.05) -> Float64Array:
    """(nq,): the configuration reached from the assembled ``q`` (None: the initial one) as joints move to ``targets``
    (name -> coordinates), in a straight line and all at the same pace; targets of mimic joints are for their own
    coordinates.  Single coordinates of joints with several are targets too, "slide.x" (``mech.q_names``), and
    places and orientations of links, "platform.x" (as in ``range_of_motion``).

    The loops are followed in steps of at most ``largest`` (lengths in units of the sizes of loops); where they lock
    before the targets are reached (a toggle point), an ``AssemblyError`` says how far they came.  There is no jump to
    another branch.  One state at a time; ``follow_path`` goes on from target to target.
    """
    q = _assembled(mech, q, "follow")
    return _followed(
        mech, q, {name: real_numbers(f"the target of {name!r}", x) for name, x in targets.items()}, largest
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
    reached = []
    for k in range(max(counts.values(), default=0)):
        q = _followed(mech, q, {name: x[k] for name, x in rows.items()}, largest)
        reached.append(q)
    return np.reshape(reached, (-1, mech.nq))


def _assembled(mech: Mechanism, q: ByJoint | None, who: str) -> Float64Array:
    """(nq,): one configuration, whose loops must be closed; without one, that near ``mech.initial``."""
    (q,) = one_state(who, mech, q={} if q is None else q)
    loop, residual = _worst_loop(mech, q) if mech.loops else ("", 0.0)
    if np.abs(sizes(mech).rows * position_error(mech, q)).max(initial=0.0) > LOOPS.open_by_mistake:
        raise AssemblyError(
            f"loop {loop!r} of mechanism {mech.name!r} is open by {residual:.3g} at the start: there is no branch to "
            "follow; assemble it first",
            loop,
            residual,
            q,
        )
    return q


def _followed(mech: Mechanism, q: Float64Array, targets: Mapping[str, Float64Array], largest: float) -> Float64Array:
    """(nq,): the configuration reached from the assembled q, one position of each target."""
    goal, driven_q = q.copy(), np.zeros(mech.nq, dtype=bool)
    targets, links = dict(targets), [name for name in targets if is_beside_velocities(mech, name)]
    ends = np.array([float(one_number("the target", name, targets.pop(name))) for name in links])
    for name, values in targets.items():
        own = _place(mech, name)
        if driven_q[own.q_index].any():
            raise MechanismError(f"targets has two values for the coordinate that {name!r} moves with: give one")
        reached, size = own.q_at(values), own.q_index.stop - own.q_index.start
        if np.size(reached) not in (1, size):
            raise MechanismError(
                f"the target of {name!r} must be {size} number{'s' * (size > 1)}, one position, not shape "
                f"{np.shape(reached)}: follow leads to one position at a time, follow_path from one to the next"
            )
        goal[own.q_index], driven_q[own.q_index] = reached, True
    free = np.ones(mech.nv, dtype=bool)
    for name in targets:
        free[_place(mech, name).v_index] = False
    whole, done, pace = tree.difference(mech, q, goal), 0.0, 1.0
    moving = tuple(named_coordinate(mech, name) for name in links)
    ways = np.array([-float(one.change(q, end)) for one, end in zip(moving, ends, strict=True)])
    columns, equations = sizes(mech).columns, Held(free, (), moving).equations(mech, q)
    while done < 1.0:
        pace = min(pace, 1.0 - done)
        if isinstance(equations, HeldEquations):
            equations = replace(equations, values=ends - (1.0 - done - pace) * ways)
        jacobian = equations.at(q)[1]
        asked = np.zeros(len(jacobian))
        asked[len(asked) - len(moving) :] = ways / [one.unit(units(mech)) for one in moving]
        change = np.where(free, 0.0, whole / columns)
        change -= decompose(jacobian * free).solve(jacobian @ change - asked)
        change *= pace
        there = tree.integrate(mech, q, columns * change, 1.0)
        if np.abs(change).max() <= largest:
            closed = closed_by(equations, there, free, LOOPS.aim * LOOPS.closed, LOOPS.closed, 15, columns)
            corrected = np.abs(tree.difference(mech, there, closed) / columns).max()
            # On the same branch the correction is of second order in the step, but for what was open at its start.
            if equations.is_closed(closed, LOOPS.closed) and corrected <= 0.5 * np.abs(change).max() + LOOPS.closed:
                q, done, pace = closed, done + pace, 1.5 * pace
                continue
        pace *= 0.5
        if pace < 1e-9:
            loop, residual = _worst_loop(mech, there)
            at = {name: np.ravel(_place(mech, name).positions(q)) for name in targets}
            reached = ", ".join(f"{name!r} is at {in_brief(values)}" for name, values in at.items() if len(values) == 1)
            raise AssemblyError(
                f"loop {loop!r} of mechanism {mech.name!r} locks after {done:.4%} of the way (it would open by "
                f"{residual:.3g}): {', '.join(map(repr, (*targets, *links)))} cannot be driven further on this branch"
                + f"; {reached}"
                * bool(reached),
                loop,
                residual,
                q,
            )
    return np.where(driven_q, goal, q)


def generic_rank(
    mech: Mechanism, q: ArrayLike, tolerance: float | None = None, seed: int = 0
) -> int | NDArray[np.intp]:
    """The largest rank of G among assembled configurations near the assembled ``q``: an integer, or one per state.

    At a singular position G has less than this rank, and where loops are not exactly closed redundant constraints make
    it seem more; ``rank=`` of the other functions takes this number as a bound.
    """
    (q,) = checked_arrays(mech, q=q)
    require_finite(mech, q)
    largest = decomposed(mech, q, tolerance).rank
    rng = np.random.default_rng(seed)
    equations, everything = loop_equations(mech), np.ones(mech.nv, dtype=bool)
    columns = equations.sizes.columns
    for size in (1e-2, 3e-2):
        near = tree.integrate(mech, q, size * columns * rng.normal(size=mech.nv), 1.0)
        near = closed_by(equations, near, everything, LOOPS.aim * LOOPS.closed, LOOPS.closed, 100, columns)
        closed = equations.is_closed(near, LOOPS.closed)
        largest = np.where(closed, np.maximum(largest, decomposed(mech, near, tolerance).rank), largest)
    return int(largest) if q.ndim == 1 else largest


# -- what went wrong ----------------------------------------------------------------------------------


def _worst_loop(mech: Mechanism, q: np.ndarray) -> tuple[str, float]:
    error = position_error(mech, q)
    sizes = {loop.name: float(np.linalg.norm(error[mech.constraint_index(loop.name)])) for loop in mech.loops}
    name = max(sizes, key=lambda loop: (sizes[loop], loop))
    return name, sizes[name]


def _refuse_open(mech: Mechanism, q: np.ndarray, hold: Sequence[str], tries: int) -> None:
    states = q.reshape(-1, mech.nq)
    worst = int(np.argmax(np.nan_to_num(np.linalg.norm(position_error(mech, states), axis=-1), nan=np.inf)))
    loop, residual = _worst_loop(mech, states[worst])
    which = f" of state {worst}" if q.ndim > 1 else ""
    around = f", nor from {tries - 1} others around it" if tries > 1 else ""
    held = f" while {', '.join(map(repr, hold))} stay as they are" if len(hold) else ""
    fewer = "name fewer joints, or close loops first with closed.assemble(mech, {joint: ...}), in which they may move; "
    raise AssemblyError(
        f"loop {loop!r} of mechanism {mech.name!r}{which} cannot be closed from this guess{around}{held}: an error of "
        f"{residual:.3g} remains (metres, sines of angles); {fewer * (len(hold) > 1)}"
        + (
            "check the frames pose_a and pose_b, the lengths of the links, or start nearer to a closed configuration"
            if tries > 1
            else "start nearer to a closed configuration, or search further: q = closed.assemble(mech, q)"
        ),
        loop,
        residual,
        states[worst],
    )


def _refuse_mirrored(equations: LoopEquations, q: np.ndarray) -> None:
    mech = equations.mech
    if not mech.loops:
        return
    alignment = equations.alignments(q).reshape(-1, len(mech.loops))
    if np.all(alignment > 0.0):
        return
    state, index = (int(i) for i in np.argwhere(~(alignment > 0.0))[0])
    loop = mech.loops[index]
    which = f" of state {state}" if q.ndim > 1 else ""
    raise AssemblyError(
        f"loop {loop.name!r} of mechanism {mech.name!r}{which} closes back to back: its two sides are rotated against "
        f"each other by 180 degrees (cosine {alignment[state, index]:.3g}); reverse an axis of pose_a or pose_b, or "
        "start nearer to a closed configuration",
        loop.name,
        1.0 - float(alignment[state, index]),
        q.reshape(-1, mech.nq)[state],
    )
