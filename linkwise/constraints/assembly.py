"""Closing loops from a rough guess, and keeping them closed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compiler.registry import compile_instead
from ..compiler.store import float64_function
from ..dynamics import trees as tree
from ..dynamics.by_joint import coordinates_by_joint, split_joints_and_links
from ..dynamics.states import ByJoint, Float64Array, checked_arrays, common_batch, real_numbers
from ..mechanism import Mechanism, MechanismError, MechanismWarning, warn_caller
from ..mechanism.checks import names_of
from ..mechanism.model import NO_JOINTS
from .decomposition import times, transposed_times
from .driving import drive_to_goal
from .equations import decomposed, decomposed_motions, position_error, require_finite
from .infinitesimal import has_infinitesimal_motions
from .locked import Held, hold_coordinates
from .loop_closure import Goal, LoopEquations, close_loops
from .masks import loop_mask, map_over_masks
from .redundancy import decide_around, loop_equations, redundancy
from .sizes import random_configurations, sizes, units
from .solver import WELL_CONDITIONED, has_generic_rank, is_reliable
from .tolerances import LOOPS

ROUND_OFF = 4.0 * np.finfo(float).eps  # of quaternions: smaller deviations from unit length are rounding
TRIES = 40  # guesses of ``assemble``, each further from the given one
FURTHER = 0.1  # dimensionless, root mean square: distance of each guess beyond the last
CLOSED = Goal(300)
ENERGY_STEPS = 30  # of Newton's method, to meet an energy
AROUND = 10  # number of guesses around the given one; later ones are anywhere


class AssemblyError(MechanismError):
    """Loops cannot be closed.  ``loop`` names the worst one, ``residual`` is its error, ``q`` the last
    configuration."""

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
    """(nq,): a configuration near ``q_guess`` with all loops closed.

    The joints named in ``hold`` keep their coordinates; quaternions get unit length.  Single coordinates can be held
    too: "base.x", with "base.yaw" a whole orientation, and those of links, "platform.x" (as in ``range_of_motion``). A
    guess by joint, {"crank": 0.5}, has ``mech.initial`` for other joints.  The named joints are driven along a branch
    to their coordinates; if loops cannot be closed there, they move too.  Without a guess all are as in
    ``mech.initial``.

    Levenberg-Marquardt on the configuration manifold: every step reduces the error, and moves no coordinate by more
    than half a radian or half the size of the loops.  At a stationary point of the error (all links in one line, or a
    symmetric guess) it starts again from up to ``tries`` guesses, each a little further away, then anywhere; guesses
    are deterministic.  An ``AssemblyError`` names the loop that stays open and its residual.

    Loops are closed if ``position_error``, lengths in units of the sizes of the loops, is below ``tolerance``, or below
    the rounding of the data for redundant constraints (``redundancy``).
    """
    hold, wanted = names_of(hold), dict[str, float]()
    if isinstance(q_guess, Mapping):
        named, (joints, wanted) = tuple(q_guess), split_joints_and_links(mech, "q_guess", q_guess)
        q_guess = coordinates_by_joint(mech, "q_guess", joints)
        if set(hold) <= set(named) and hold_coordinates(mech, named).free.any():
            if tries > 1 and (on_branch := _drive_on_branch(mech, mech.initial, q_guess, named, wanted)) is not None:
                return on_branch
            if not hold:
                with contextlib.suppress(AssemblyError):
                    return assembled(mech, q_guess, named, wanted, Goal(max_steps, tolerance), min(tries, 2))
    (guess,) = checked_arrays(mech, q=q_guess)
    return assembled(mech, guess, hold, wanted, Goal(max_steps, tolerance), tries)


def placed(
    mech: Mechanism,
    label: str,
    guess: Float64Array,
    named: Sequence[str],
    wanted: Mapping[str, float],
    start: ArrayLike,
) -> Float64Array:
    """(nq,): ``guess`` (nq,) with loops closed, the named joints held, and coordinates of links as ``wanted``.  It is
    on the branch of ``start`` if these can be driven straight to their values; else a warning is given."""
    q = _drive_on_branch(mech, start, guess, named, wanted)
    if q is not None:
        return q
    q, held = assembled(mech, guess, named, wanted), hold_coordinates(mech, named)
    count = int((~held.free).sum()) + len(held.links)
    determined = loop_equations(mech).is_closed(guess, LOOPS.closed) or count > mech.nv - decomposed(mech, q).rank
    if count and not held.kept and not determined:
        warn_caller(
            f"{label}: loops of mechanism {mech.name!r} lock where {', '.join(map(repr, named))} are driven as given "
            "straight from its initial configuration, so they are closed in another assembly mode, the first that is "
            "found: give more joints, or a way around it (linkages.follow_path)",
            MechanismWarning,
        )
    return q


def _drive_on_branch(
    mech: Mechanism, start: ArrayLike, guess: Float64Array, named: Sequence[str], wanted: Mapping[str, float]
) -> Float64Array | None:
    """(nq,): a configuration on the branch of ``start`` with the named joints as in ``guess``.  None if it is not
    reached, or if the guess is closed already."""
    held = hold_coordinates(mech, named, {name: value for name, value in wanted.items() if name in named})
    if not named or held.kept or (not held.links and loop_equations(mech).is_closed(guess, LOOPS.closed)):
        return None
    with contextlib.suppress(AssemblyError):
        (start,) = checked_arrays(mech, q=start)
        return drive_to_goal(mech, assembled(mech, start, (), {}), guess, held)
    return None


def assembled(
    mech: Mechanism,
    guess: Float64Array,
    hold: Sequence[str],
    wanted: Mapping[str, float],
    goal: Goal = CLOSED,
    tries: int = TRIES,
) -> Float64Array:
    """(nq,): ``assemble`` of a checked guess (nq,); held coordinates of links get their ``wanted`` values."""
    held = hold_coordinates(mech, hold, {name: value for name, value in wanted.items() if name in hold})
    if not mech.loops and not held.links:
        return np.array(_with_unit_quaternions(mech, guess, "the guess"))
    return _close_or_raise(mech, guess, held, goal, hold, "the guess", tries)


def _close_or_raise(
    mech: Mechanism,
    q: np.ndarray,
    held: Held,
    goal: Goal,
    hold: Sequence[str],
    name: str,
    tries: int = 1,
) -> np.ndarray:
    """q with loops closed and unit quaternions; raises an error about ``name`` if they cannot be closed."""
    start = _with_unit_quaternions(mech, q, name)
    if tries > 1 and q.size:
        decide_around(mech, start.reshape(-1, mech.nq)[0])
    equations, free, kept = held.equations(mech, start), held.free, held.kept
    q = close_loops(equations, start, goal, free, kept)
    if tries > 1 and free.any():
        q = _search_guesses(equations, start, q, goal, tries, free, kept)
    if np.any(~equations.is_closed(q, goal.tolerance)):
        _refuse_open(mech, q, hold, tries)
    _refuse_mirrored(equations, q)
    return q


def _with_unit_quaternions(mech: Mechanism, q: np.ndarray, name: str) -> np.ndarray:
    """q with unit quaternions, checked to be finite; unit quaternions stay unchanged to the last digit."""
    if mech.coordinates.rates_are_velocities:
        require_finite(mech, q, f"{name} is not finite")
        return q
    with np.errstate(divide="ignore", invalid="ignore"):  # a quaternion of zeros is reported below
        unit = tree.integrate(mech, q, np.zeros(mech.nv), 0.0)
    require_finite(mech, q, f"{name} is not finite")
    require_finite(mech, unit, f"{name} has a quaternion of zeros")
    return np.where(np.abs(unit - q) > ROUND_OFF, unit, q)


def _search_guesses(
    equations: LoopEquations,
    start: np.ndarray,
    q: np.ndarray,
    goal: Goal,
    tries: int,
    free: np.ndarray,
    kept: Sequence[int],
) -> np.ndarray:
    """q, with loops that are open or back to back closed from other guesses, if one succeeds.  Guesses are first around
    ``start``, then anywhere; parts that share no coordinate are searched separately."""
    mech, columns, parts = equations.mech, equations.sizes.columns, equations.parts
    starts, placed_q = np.array(start).reshape(-1, mech.nq), np.array(q).reshape(-1, mech.nq)
    rng = np.random.default_rng(0)
    for further in range(1, tries):
        is_open = ~_are_assembled(equations, placed_q, goal.tolerance)  # (states, parts)
        failed = np.flatnonzero(is_open.any(axis=-1))
        if not len(failed):
            break
        if further <= AROUND:
            change = FURTHER * further * rng.normal(size=mech.nv) * columns
        else:
            change = tree.difference(mech, starts[failed], random_configurations(mech, rng, 1)[0])
        guess = tree.integrate(mech, starts[failed], free * change, 1.0)
        guess[..., kept] = starts[failed][..., kept]
        is_open = is_open[failed]
        guess = np.where(parts.spread_to_positions(is_open), guess, placed_q[failed])  # the others stay where they are
        there = close_loops(equations, guess, goal, free, kept)
        placed_q[failed] = np.where(
            parts.spread_to_positions(is_open & _are_assembled(equations, there, goal.tolerance)),
            there,
            placed_q[failed],
        )
    return placed_q.reshape(q.shape)


def _are_assembled(equations: LoopEquations, q: np.ndarray, tolerance: float) -> np.ndarray:
    """(..., parts): whether all loops of each part are closed, and none back to back."""
    return equations.are_closed(q, tolerance) & equations.are_aligned(q)


@compile_instead("'closed_projection', for loops that are nearly closed, which also says how far it can be relied on")
def project(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None,
    energy: ArrayLike | None = None,
    tolerance: float = LOOPS.closed,
    largest: float = 0.125,
    rank: Any = None,
    aim: float | None = None,
    active: ArrayLike | None = None,
) -> tuple[Float64Array, Float64Array]:
    """(q, v) projected onto the constraints, or the ``active`` ones: the nearest state (3.10, 3.11), by G^+.

    Lengths are in units of the sizes of loops, so that the result does not depend on units.

    energy    if given, kinetic plus potential energy afterwards: the state is moved along the gradient of the energy
              on the constraint manifold
    largest   largest move of a coordinate (lengths in units of the sizes of loops): beyond it, ``AssemblyError`` is
              raised, because projection might jump silently to another branch
    rank      (...): no more than this many constraints are independent (see ``generic_rank``)
    aim       an error below ``tolerance`` to which loops are closed if they can be, about round-off by default
    active    (..., len(mech.loops)) booleans: active loops, state by state; sizes are those of the mechanism with
              these loops only
    """
    start, v = checked_arrays(mech, q=q, v=v)
    if active is not None:
        if rank is not None:
            raise MechanismError("rank is that of all constraints, and active lets some go: give one of them")
        mask: Any = loop_mask(mech, active, q=start, v=v)
        energies = () if energy is None else (real_numbers("energy", energy)[..., None],)
        how: dict[str, Any] = {"tolerance": tolerance, "largest": largest, "aim": aim}

        def held(part: Mechanism, q: Any, v: Any, *energies: Any) -> Float64Array:
            return np.concatenate(project(part, q, v, *(x[..., 0] for x in energies), **how), axis=-1)

        state = map_over_masks(held, mech, mask, start, v, *energies)
        return state[..., : mech.nq], state[..., mech.nq :]
    goal = Goal(60, tolerance, aim)
    unit = _with_unit_quaternions(mech, start, "the configuration")
    quick = project_by_elimination(loop_equations(mech), unit, v, goal, rank)
    if quick is None:
        q = _reclosed(mech, unit, goal)
    else:
        q = quick[0]
        _refuse_mirrored(loop_equations(mech), q)
    moved = _largest_move(mech, start, q)
    if np.any(moved > largest):
        loop, residual = worst_loop(mech, start.reshape(-1, mech.nq)[np.argmax(np.ravel(moved))])
        raise AssemblyError(
            f"closing loop {loop!r} of mechanism {mech.name!r}, open by {residual:.3g}, would move a coordinate by "
            f"{np.max(moved):.3g}, more than {largest:g}: close loops first, q = constraints.assemble(mech, q)",
            loop,
            residual,
            q,
        )
    v = _consistent_velocities(mech, q, v, rank) if quick is None else quick[1]
    if energy is not None:
        q, v = _restore_energy(mech, start, (q, v), energy, goal, largest, rank)
    return np.array(np.broadcast_to(q, (*v.shape[:-1], mech.nq))), v  # v may have a larger batch than q


def _reclosed(mech: Mechanism, q: np.ndarray, goal: Goal) -> np.ndarray:
    """q with its nearly closed loops closed."""
    return _close_or_raise(mech, q, Held(np.ones(mech.nv, dtype=bool)), goal, (), "the configuration")


def _largest_move(mech: Mechanism, start: np.ndarray, q: np.ndarray) -> np.ndarray:
    """(...): the largest change of a coordinate, lengths in units of the sizes of loops."""
    return np.abs(tree.difference(mech, start, q) / loop_equations(mech).sizes.columns).max(axis=-1, initial=0.0)


def _consistent_velocities(mech: Mechanism, q: np.ndarray, v: np.ndarray, rank: Any) -> np.ndarray:
    """v - G^+ G v, the nearest allowed velocity, plus prescribed rates of drives."""
    parts = decomposed_motions(mech, q, rank)
    consistent = times(parts.null, times(parts.null_rows, v))
    return consistent + parts.solve(mech.constraints.drive_rates) if mech.constraints.driven else consistent


def _restore_energy(
    mech: Mechanism,
    start: np.ndarray,
    state: tuple[np.ndarray, np.ndarray],
    energy: ArrayLike,
    goal: Goal,
    largest: float,
    rank: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """The state moved along the gradient of the energy on the constraint manifold, by Newton's iteration.  Velocities
    alone are moved if their energy suffices, because moving positions is ill-conditioned near singular positions, or if
    positions would leave the neighbourhood of the start."""
    (q, v), energy = state, real_numbers("energy", energy)
    common_batch({"q": q.shape[:-1], "v": v.shape[:-1], "energy": energy.shape})
    # Potential energies cancel to less than weight times size.
    weight = mech.parameters.masses.sum() * np.linalg.norm(mech.gravity) * units(mech).length
    rate = sizes(mech).rate or 1.0
    near: Any = True
    for _ in range(ENERGY_STEPS):
        kinetic, potential = tree.kinetic_energy(mech, q, v), tree.potential_energy(mech, q)
        excess = kinetic + potential - energy
        scale = np.maximum(np.abs(kinetic) + np.abs(potential), np.abs(energy)) + weight
        if np.all(np.abs(excess) <= 1e-14 * scale):
            return q, v
        null = decomposed_motions(mech, q, rank).null
        momentum = times(tree.mass_matrix(mech, q), v)
        slow = (near & (kinetic < 4.0 * np.abs(excess)))[..., None]
        # Unit steps along the degrees of freedom; velocities are unit steps in the time of a fall.
        rises = [transposed_times(null, x) for x in (slow * tree.gravity_force(mech, q), rate * momentum)]
        square = sum((rise**2).sum(axis=-1) for rise in rises)
        slopes = [times(null, rises[0]), rate * times(null, rises[1])]
        factor = -np.divide(excess, square, out=np.zeros_like(excess), where=square > 0.0)[..., None]
        if np.any(slow):
            moved = tree.integrate(mech, q, factor * slopes[0], 1.0)
            stays = _largest_move(mech, start, moved) <= largest
            near = near & stays
            if not np.all(stays):
                continue
            q = _reclosed(mech, moved, goal)
        v = _consistent_velocities(mech, q, v + factor * slopes[1], rank)
    if np.all(
        np.abs(excess) <= 1e-6 * scale
    ):  # at singular positions loops, and so energies, are known to this precision only
        return q, v
    worst = int(np.argmax(np.ravel(np.abs(excess) / scale)))
    wanted, surplus = np.ravel(np.broadcast_to(energy, excess.shape))[worst], np.ravel(excess)[worst]
    raise MechanismError(
        f"mechanism {mech.name!r} cannot have the energy {wanted:.6g} near "
        + (f"state {worst}" if excess.ndim else "this state")
        + f": {abs(surplus):.3g} {'are too much' if surplus > 0.0 else 'are missing'}"
    )


def generic_rank(
    mech: Mechanism, q: ArrayLike, tolerance: float | None = None, seed: int = 0
) -> int | NDArray[np.intp]:
    """The largest rank of G among assembled configurations near the assembled ``q``: an integer, or one per state.

    At a singular position G has a lower rank; with loops that are not exactly closed, redundant constraints raise it.
    Pass the result as ``rank=`` to other functions, as an upper bound.
    """
    (q,) = checked_arrays(mech, q=q)
    require_finite(mech, q)
    # An error e of closed loops allows displacements sqrt(e) along infinitesimal motions, which change ranks.
    most = redundancy(mech).rank if mech.loops and has_infinitesimal_motions(mech) else None
    largest = decomposed(mech, q, tolerance, most).rank
    rng = np.random.default_rng(seed)
    equations = loop_equations(mech)
    columns = equations.sizes.columns
    for size in (1e-2, 3e-2):
        near = tree.integrate(mech, q, size * columns * rng.normal(size=mech.nv), 1.0)
        near = close_loops(equations, near, Goal(100))
        closed = equations.is_closed(near, LOOPS.closed)
        largest = np.where(closed, np.maximum(largest, decomposed(mech, near, tolerance, most).rank), largest)
    return int(largest) if q.ndim == 1 else largest


# -- what went wrong ----------------------------------------------------------------------------------


def worst_loop(mech: Mechanism, q: np.ndarray) -> tuple[str, float]:
    """The loop with the largest error at q (nq,), and its error."""
    error = position_error(mech, q)
    at = {loop.name: mech.constraints.rows(loop.name) for loop in mech.loops}
    gaps = {name: float(np.linalg.norm((sizes(mech).rows * error)[rows])) for name, rows in at.items()}
    name = max(gaps, key=lambda loop: (gaps[loop], loop))
    return name, float(np.linalg.norm(error[at[name]]))


def _refuse_open(mech: Mechanism, q: np.ndarray, hold: Sequence[str], tries: int) -> None:
    states = q.reshape(-1, mech.nq)
    gaps = np.linalg.norm(sizes(mech).rows * position_error(mech, states), axis=-1)
    worst = int(np.argmax(np.nan_to_num(gaps, nan=np.inf)))
    loop, residual = worst_loop(mech, states[worst])
    which = f" of state {worst}" if q.ndim > 1 else ""
    around = f", nor from {tries - 1} others around it" if tries > 1 else ""
    held = f" while {', '.join(map(repr, hold))} stay as they are" if len(hold) else ""
    fewer = (
        "name fewer joints, or close loops first with constraints.assemble(mech, {joint: ...}), in which they may "
        "move; "
    )
    raise AssemblyError(
        f"loop {loop!r} of mechanism {mech.name!r}{which} cannot be closed from this guess{around}{held}: an error of "
        f"{residual:.3g} remains (metres, sines of angles); {fewer * (len(hold) > 1)}"
        + (
            "check the frames pose_a and pose_b, the lengths of the links, or start nearer to a closed configuration"
            if tries > 1
            else "start nearer to a closed configuration, or search further: q = constraints.assemble(mech, q)"
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


# -- small gaps, by compiled elimination ---------------------------------------------------------------------------


def project_by_elimination(
    equations: LoopEquations, q: np.ndarray, v: np.ndarray, goal: Goal, rank: Any
) -> tuple[Float64Array, Float64Array] | None:
    """(q, v) projected onto the constraints by compiled elimination; configurations with errors below the aim stay.

    None if elimination is unreliable for some state, or does not close loops to the tolerance.  None also if closing
    needs a search: loops open by more than a milliradian or a thousandth of their size, or closed to rounding only.
    """
    mech = equations.mech
    if (
        not mech.loops
        or equations.blocks
        or not q.size
        or not v.size
        or not has_generic_rank(mech, rank, np.shape(rank))
    ):
        return None
    if has_infinitesimal_motions(mech):
        return None
    size = equations.open_by(q)
    if not (size < LOOPS.open_by_mistake).all():
        return None
    kernel, to = float64_function(mech, "closed_projection"), q
    if (size > goal.finest).any():
        to = np.where((size > goal.finest)[..., None], kernel(q, np.zeros(mech.nv))[0][..., : mech.nq], q)
    state, reliability = kernel(
        to, v
    )  # a second call: velocities belong to the configuration before the last correction
    if not (np.all(is_reliable(reliability, WELL_CONDITIONED)) and np.all(equations.is_closed(to, goal.tolerance))):
        return None
    return to, state[..., mech.nq :]
