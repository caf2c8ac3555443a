"""Checks of motions before they start and after they end: limits, penetration, prescribed motion, friction, parameters.

Before: starts beyond limits that act or deep inside of the ground, prescribed motions that contradict themselves,
velocities that violate constraints, impossible masses and inertias.  After: friction that a method cannot follow, so
that joints creep (dry friction) or contacts slip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .. import constraints
from ..compiler.requests import OF_JOINTS, parameter_arrays
from ..compiler.store import stored
from ..constraints.infinitesimal import has_infinitesimal_motions
from ..constraints.sizes import sizes
from ..constraints.tolerances import LOOPS
from ..dynamics.compliant_contact import contact_points
from ..dynamics.passive import Passive
from ..mechanics.elements.at_joints import Element, Friction, Stop
from ..mechanics.elements.law import Acting, ForceLaw
from ..mechanics.elements.of_mechanism import LIMIT_DEPTH, limit_depths
from ..mechanism import (
    ContactPair,
    Limits,
    LimitWarning,
    Mechanism,
    MechanismError,
    MechanismWarning,
    PenetrationWarning,
    checks,
    warn_caller,
)
from ..mechanism.drives import Drive
from ..mechanism.elements import CONTACT_FRICTION
from ..mechanism.scales import scales

# -- where motions start ------------------------------------------------------------------------------------------

# Depth that stops give way under falling and running robots, in units of their design depth: 0.2 rad, or 2 percent of
# the mechanism's length.  Motions made of many short rollouts start there.
GIVE = 20.0
# Largest penetration of falling and running robots, relative to the size of the shapes in contact.
DEEP = 0.1
MOST_NAMES = 4


def warn_of_starts_beyond_limits(mech: Mechanism, q: np.ndarray) -> None:
    """Warn once of joints that start beyond active limits by more than stops give way; q is (..., nq).  Stops push such
    joints back from the first moment on.  A configuration set in the file is intended and not reported.  Neutral
    coordinates by default are reported if the stops would not let the joint rest there."""
    if not isinstance(q, np.ndarray) or not mech.forces.active.get("limits"):
        return  # reading an array on a GPU would wait for the kernels that run there
    least = GIVE * min(LIMIT_DEPTH.values()) * scales(mech).of_q
    inside = (q >= mech.limits.lower - least) & (q <= mech.limits.upper + least)
    by_default = stored(mech, ("starts beyond limits by default",), lambda: _beyond_by_default(mech))
    if inside.all() and not mech.coordinates.mimic_joints and not by_default:  # the usual case, quickly
        return
    beyond = []
    for joint in mech.forces.active.get("limits", ()):
        limits, positions = mech.bodies[mech.body_index(joint)].limits, mech.coordinates.place(joint).positions(q)
        over, depths = _beyond(limits, positions), _depths(mech, joint)
        far = (over > GIVE * depths) & ~_is_intended(mech, joint, positions, GIVE * depths)
        if joint in by_default:
            far |= (over > depths) & (positions == mech.coordinates.place(joint).positions(mech.initial))
        if far.any():
            state = np.unravel_index(int(np.argmax(np.where(far, over, -np.inf))), over.shape)
            at, bounds = positions[state], (limits.lower[state[-1]], limits.upper[state[-1]])
            beyond.append(f"{joint!r} at {at:.4g}, outside {bounds[0]:.4g} .. {bounds[1]:.4g}")
    if beyond:
        more = f" and {len(beyond) - MOST_NAMES} more" if len(beyond) > MOST_NAMES else ""
        clipped = "np.clip(mech.initial, mech.limits.lower, mech.limits.upper)"
        always = f"; mech.metadata.with_initial({clipped}) starts so by default" if by_default else ""
        warn_caller(
            f"the motion of mechanism {mech.name!r} starts beyond limits that act, and is pushed back: "
            f"{', '.join(beyond[:MOST_NAMES])}{more}; np.clip(q, mech.limits.lower, mech.limits.upper) is "
            f"within them{always}",
            LimitWarning,
        )


def warn_of_starts_in_penetration(mech: Mechanism, q: np.ndarray) -> None:
    """Warn of deep penetration between shapes of active contacts in initial configurations q (..., nq).  The warning
    lists the pairs, their depths and the cure."""
    if not isinstance(q, np.ndarray) or not q.size or not mech.contact_pairs:
        return
    margins, deep = stored(mech, ("depths of penetration",), lambda: _depths_of_penetration(mech))
    with np.errstate(all="ignore"):  # configurations that are not finite
        gaps = contact_points(mech, q.astype(float, copy=False), np.zeros(mech.nv)).gap
        depths = margins - gaps
        if not (depths > deep).any():  # the usual case, quickly
            return
    depths = np.nan_to_num(np.max(depths.reshape(-1, len(deep)), axis=0, initial=0.0))
    deepest: dict[str, float] = {}
    for pair, depth, least in zip(mech.contact.parts, depths.tolist(), deep.tolist(), strict=True):
        if depth > least:
            deepest[pair.name] = max(depth, deepest.get(pair.name, 0.0))
    named = [f"{name!r} by {depth:.3g}" for name, depth in sorted(deepest.items(), key=lambda entry: -entry[1])]
    more = f" and {len(named) - MOST_NAMES} more" if len(named) > MOST_NAMES else ""
    placed = {shape: mech.contact.shape(shape).placed(mech)[0] for pair in mech.contact_pairs for shape in pair.shapes}
    moving = {pair.name for pair in mech.contact_pairs if min(placed[shape] for shape in pair.shapes) >= 0}
    apart = "" if moving.isdisjoint(deepest) else "; mech.contact.without(shape) lets shapes of links overlap"
    warn_caller(
        f"the motion of mechanism {mech.name!r} starts with shapes inside of each other, and they are pushed apart: "
        f"{', '.join(named[:MOST_NAMES])}{more}; lw.contact.place_on_ground(mech, q) lifts a free base until it just "
        "touches"
        f"{apart}",
        PenetrationWarning,
    )


def _depths_of_penetration(mech: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """(n,) each: margins of elementary contacts, and the depths that are reported; infinite for inactive contacts."""
    parts = mech.contact.parts
    deep = [
        DEEP * mech.contact.scales[pair.name][0] if mech.forces.acts("contact", pair.name) else np.inf for pair in parts
    ]
    return np.array([pair.law.margin for pair in parts]), np.array(deep)


def _beyond_by_default(mech: Mechanism) -> frozenset[str]:
    """Joints with active limits that are beyond them in the default (neutral) configuration, set by no file."""
    joints = []
    for joint in mech.forces.active.get("limits", ()):
        start = mech.coordinates.place(joint).positions(mech.initial)
        over = _beyond(mech.bodies[mech.body_index(joint)].limits, start)
        if _leader(mech, joint) not in dict(mech.annotations.initial) and (over > _depths(mech, joint)).any():
            joints.append(joint)
    return frozenset(joints)


def _is_intended(mech: Mechanism, joint: str, positions: np.ndarray, give: np.ndarray) -> np.ndarray:
    """Which coordinates of a joint match the file's configuration or a posture, up to the tolerance ``give``."""
    leader, known = _leader(mech, joint), mech.annotations
    configurations = [mech.initial] if leader in dict(known.initial) else []
    configurations += [mech.postures[name] for name, posture in known.postures if leader in dict(posture)]
    meant = np.zeros(positions.shape, dtype=bool)
    for configuration in configurations:
        meant |= np.abs(positions - mech.coordinates.place(joint).positions(configuration)) <= give
    return meant


def _leader(mech: Mechanism, joint: str) -> str:
    """The independent joint: the one that this joint mimics, else the joint itself."""
    mimic = mech.bodies[mech.body_index(joint)].mimic
    return mimic.joint if mimic else joint


def _depths(mech: Mechanism, joint: str) -> np.ndarray:
    """Largest depth to which motors press a joint into its stops, per coordinate."""
    return limit_depths(mech, mech.bodies[mech.body_index(joint)])


def _beyond(limits: Limits, q: np.ndarray) -> np.ndarray:
    """Distance of joint coordinates beyond their limits; negative within them."""
    return np.maximum(np.asarray(limits.lower) - q, q - np.asarray(limits.upper))


def warn_of_limits_left_out(mech: Mechanism, passive: Passive | None) -> None:
    """Warn once of joints that lose their limits because ``passive`` has no stops for them.  ``passive`` replaces
    limits too, which may surprise a caller who only adds a spring.  An empty ``passive`` is taken as intended."""
    if passive is None or not passive.elements:
        return
    stopped = {element.joint for element in passive.elements if isinstance(element, Stop)}
    free = [repr(joint) for joint in mech.forces.active.get("limits", ()) if joint not in stopped]
    if free:
        more = f" and {len(free) - MOST_NAMES} more" if len(free) > MOST_NAMES else ""
        warn_caller(
            f"passive takes the place of limits too: those of {', '.join(free[:MOST_NAMES])}{more} of mechanism "
            f"{mech.name!r} do not act. lw.forces.Passive.of(mech, limit_stiffness=...) has stops, "
            "mech.parameters.with_springs(...) and mech.parameters.with_damping(...) change joints and keep limits, "
            "mech.with_acting(limits=False) says that none act",
            LimitWarning,
        )


def warn_of_inconsistent_velocities(
    mech: Mechanism, state: tuple[np.ndarray, np.ndarray], given_v: np.ndarray, rates: np.ndarray | None = None
) -> None:
    """Warn of initial velocities that violate constraints and were projected.  ``rates`` (n_constraints,) are the
    prescribed rates of drives; None: those at the mechanism's own time."""
    q, v = state
    if not mech.loops:
        return
    size = sizes(mech)
    change, speed = (np.abs(x / size.columns).max(axis=-1, initial=0.0) for x in (v - given_v, given_v))
    if not (change > LOOPS.velocity_by_mistake * speed).any():
        return
    violations = (constraints.constraint_jacobian(mech, q) @ given_v[..., None])[..., 0]
    violations = violations - (mech.constraints.drive_rates if rates is None else rates)
    violations = np.abs(size.rows * violations).reshape(-1, violations.shape[-1]).max(axis=0, initial=0.0)
    shown = "" if v.ndim > 1 else f", {_few(given_v)} to {_few(v)}"
    changed = f"and was changed to velocities that do not, by up to {np.abs(v - given_v).max():.3g}{shown}"
    speeds = (np.abs(constraints.constraint_jacobian(mech, q)) @ np.abs(given_v)[..., None])[..., 0] * size.rows
    if has_infinitesimal_motions(mech) and violations.max() <= LOOPS.velocity_by_mistake * speeds.max():
        blocked = next(candidate for candidate in constraints.redundancy(mech).clusters if candidate.infinitesimal)
        warn_caller(
            f"v0 violates the constraints of loop {blocked.loops[0]!r} of mechanism {mech.name!r} to second order "
            f"{changed}: they allow it to first order only, as those of an arm pinned at full reach, and the mechanism "
            "cannot move so (constraints.degrees_of_freedom)",
            MechanismWarning,
        )
        return
    loop = max(mech.loops, key=lambda candidate: violations[mech.constraints.rows(candidate.name)].max(initial=0.0))
    warn_caller(
        f"v0 violates the constraints of loop {loop.name!r} of mechanism {mech.name!r} {changed}: to give the speed of "
        "some joints, use v0 = {joint: speed}, the others follow",
        MechanismWarning,
    )


def _few(values: np.ndarray) -> str:
    return np.array2string(values, precision=4, threshold=8, edgeitems=3)


# -- prescribed motion -----------------------------------------------------------------------------------------------

PLACES = 16  # number of times at which rates are compared, away from the ends
CONTRADICTION = (
    0.05  # of the largest rate: a larger difference, at two times at least (one may be a corner), is reported
)
STEP = 1e-6  # step of differences, relative to the duration or the mechanism's time unit, whichever is shorter
SAMPLES, SUSPECTS, HALVINGS = 256, 3, 30  # search for jumps: number of times, of intervals refined, of bisections
JUMP = 1e-4  # of the range of a position: a larger change within a tiny interval is a jump


def warn_of_drives(mech: Mechanism, start: float, duration: float) -> None:
    """One warning for each drive that contradicts itself within the motion."""
    for loop in mech.loops:
        drive = loop.drive
        if isinstance(drive, Drive) and duration > 0.0:
            try:
                contradiction = _contradiction(drive, start, duration, STEP * min(duration, scales(mech).time))
            except Exception:  # errors of the function are raised when the motion gets there
                continue
            if contradiction:
                warn_caller(f"drive {loop.name!r} of mechanism {mech.name!r}: {contradiction}", MechanismWarning)


def _contradiction(drive: Drive, start: float, duration: float, step: float) -> str | None:
    position, velocity, acceleration = drive.position, drive.velocity, drive.acceleration
    if callable(position) and velocity is not None:
        if message := _differing("velocity", "position", position, velocity, start, duration, step):
            return message
    if callable(velocity) and acceleration is not None:
        if message := _differing("acceleration", "velocity", velocity, acceleration, start, duration, step):
            return message
    return _jump(position, start, duration) if callable(position) else None


def _differing(
    name: str, of: str, function: Callable[[float], Any], rate: Any, start: float, duration: float, h: float
) -> str | None:
    """Message if a stated rate is not the derivative of the function, by central differences with step ``h``."""
    times = start + duration * (np.arange(PLACES) + 0.4142) / PLACES
    rates = np.array([float(rate(t) if callable(rate) else rate) for t in times.tolist()])
    values = np.array([(float(function(t - h)), float(function(t + h))) for t in times.tolist()])
    true = (values[:, 1] - values[:, 0]) / (2.0 * h)
    rounding = 4.0 * np.finfo(float).eps * np.abs(values).max() / h
    scale = max(np.abs(rates).max(), np.abs(true).max())
    wrong = np.flatnonzero(np.abs(rates - true) > CONTRADICTION * scale + rounding)
    if len(wrong) < 2:
        return None
    k = wrong[0]
    return (
        f"its {name} at t = {times[k]:.4g} s is {rates[k]:.4g}, and its {of} changes at a rate of {true[k]:.4g} there: "
        f"give the derivative, or leave the {name} out where the {of} is made of plain arithmetic, which is "
        "differentiated exactly"
    )


def _jump(position: Callable[[float], Any], start: float, duration: float) -> str | None:
    """Message if a position jumps: bisection finds an interval whose change does not shrink with its length."""
    times = start + np.linspace(0.0, duration, SAMPLES)
    values = np.array([float(position(t)) for t in times.tolist()])
    changes = np.diff(values)
    size = JUMP * np.ptp(values)
    around = np.pad(changes, 1, mode="edge")
    for k in np.argsort(-np.abs(changes - 0.5 * (around[:-2] + around[2:])))[:SUSPECTS]:
        (a, b), (low, high) = times[k : k + 2].tolist(), values[k : k + 2].tolist()
        for _ in range(HALVINGS):
            middle = 0.5 * (a + b)
            value = float(position(middle))
            if abs(value - low) > abs(high - value):
                b, high = middle, value
            else:
                a, low = middle, value
        if abs(high - low) > size:
            return (
                f"its position jumps from {low:.4g} to {high:.4g} at t = {b:.4g} s, which no velocity leads to: give a "
                "function without jumps, such as a ramp"
            )
    return None


# -- dry friction of joints ------------------------------------------------------------------------------------------

LEAST_CREEP = 0.05  # of the friction: a larger mean deficit over the records is reported
STEPS_APART = 0.5**0.5  # the slope of friction that steps can follow is rounded down by up to this factor
MOST_STATES = 512  # that are checked


def warn_of_creep(mech: Mechanism, method: str, acting: Acting, step: float, v: np.ndarray) -> None:
    """Warn of slow joints whose dry friction is too low in an explicit motion with velocities v (..., nv).  Explicit
    steps of this length bound the slope of the friction law at low speed (``Friction.steepest``)."""
    bounded = [law for law in acting.laws if isinstance(law, Friction) and law.steepest is not None]
    if not bounded:
        return
    states = v.reshape(-1, v.shape[-1])
    states = states[np.linspace(len(states) - 1, 0, min(len(states), MOST_STATES)).astype(int)]
    missing = [(float(_missing(mech, law, states).mean(axis=0).max()), law) for law in bounded]
    most, law = max(missing, key=lambda entry: entry[0])
    if not most > LEAST_CREEP:
        return
    assert law.steepest is not None
    kept = _friction(mech, law) / law.steepest  # lowest speeds at which the friction law holds
    slowest, shorter = float(kept.max()), float((_speeds(mech, law) / kept)[kept > 0.0].min())
    warn_caller(
        f"dry friction of joint {law.joint!r} of mechanism {mech.name!r} was on average {100.0 * most:.0f} % of its "
        f"size less than its law says, and the joint moved too easily: steps of {method!r} of {step:g} s cannot follow "
        f"it at speeds below {slowest:.2g}; method='semi_implicit' follows it in steps of any length, {method!r} in "
        f"steps of {_round_down_to_digit(STEPS_APART * step * shorter):g} s",
        MechanismWarning,
    )


def _missing(mech: Mechanism, law: Friction, v: np.ndarray) -> np.ndarray:
    """(n, nv of the joint): friction deficit of a joint, as a share of the friction that the law demands."""
    entry = mech.coordinates.place(law.joint)
    friction = _friction(mech, law)
    rates = np.nan_to_num(np.abs(v[:, entry.v_index] * entry.ratio))
    full = rates / np.hypot(rates, _speeds(mech, law))
    followed = rates * np.array(law.steepest) / np.where(friction > 0.0, friction, np.inf)
    return np.where(friction > 0.0, np.maximum(full - followed, 0.0), 0.0)


def _friction(mech: Mechanism, law: Friction) -> np.ndarray:
    return np.array(law.at(mech)["friction"])


def _speeds(mech: Mechanism, law: Friction) -> np.ndarray:
    return np.array(law.at(mech)["speed"])


def _round_down_to_digit(x: float) -> float:
    """x rounded down to one significant digit."""
    digit = math.floor(math.log10(x))
    return float(f"{math.floor(x / 10.0**digit)}e{digit}")


# -- friction of contacts --------------------------------------------------------------------------------------------

INSIDE = 0.9  # of the friction limit: below it dry friction would hold
LEAST_SLIP = 10.0  # in slip speeds of the law: a faster mean speed inside the cone is reported as slip
MOST_COPIES, MOST_RECORDS = 8, 64  # of a rollout that are checked
LONG_ENOUGH = 0.4  # in units of sqrt(L / g): shortest time inside the cone for a rollout to be judged


def rubs(mech: Mechanism) -> bool:
    """Whether some active contact has friction."""
    return any(pair.law.friction > 0.0 and mech.forces.acts("contact", pair.name) for pair in mech.contact_pairs)


def slips(mech: Mechanism, step: float | None, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(..., n) each: slip speed of contacts whose friction is inside its cone, and whether it is inside.  Explicit
    methods bound the slope of friction (``ContactLaw.damping``), so contacts creep inside the cone."""
    pairs = _contact_parts(mech, step)
    friction, damping, slow = (
        np.array([getattr(pair.law, name) for pair in pairs]) for name in ("friction", "damping", "slip_speed")
    )
    acts = np.array([mech.forces.acts("contact", pair.name) for pair in pairs])
    with np.errstate(all="ignore"):  # states that are not finite count as no slip; they are reported elsewhere
        points = contact_points(mech, q, v, explicit=step or True)
        pressed = np.sum(points.force * points.normal, axis=-1)
        most = friction * pressed
        used = np.linalg.norm(points.force - pressed[..., None] * points.normal, axis=-1) / most
        inside = acts & (most > 0.0) & (used < INSIDE)
        return np.where(inside, used / np.sqrt(1.0 - used**2) * np.hypot(slow, most / damping), 0.0), inside


def _contact_parts(mech: Mechanism, step: float | None) -> tuple[ContactPair, ...]:
    """Elementary contacts as softened for explicit steps of this length; None: adaptive steps, not softened."""
    return tuple(pair.softened(step) if step else pair for pair in mech.contact.parts)


def warn_of_slip(mech: Mechanism, method: str, step: float | None, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
    """Warn once of contacts that slip in an explicit motion although dry friction would hold. t is (m,), q (m, ...,
    nq), v (m, ..., nv); ``step`` is the length of fixed steps, None for adaptive ones."""
    if len(t) < 2 or not rubs(mech):
        return
    slip, inside = slips(mech, step, q, v)
    slow = np.array([pair.law.slip_speed for pair in mech.contact.parts])
    weights = _weights(t).reshape(-1, *[1] * (slip.ndim - 1))
    distance, time = (np.sum(weights * x, axis=0) for x in (slip, inside))
    too_fast = distance > LEAST_SLIP * slow * time
    if not too_fast.any():
        return
    at = np.unravel_index(int(np.argmax(np.where(too_fast, distance, 0.0))), distance.shape)
    how = f"slipped by {distance[at]:.2g} m in {time[at]:.2g} s, at up to {slip.max(axis=0)[at]:.2g} m/s"
    _warn_of_pair(mech, method, _contact_parts(mech, step)[at[-1]], how)


def _warn_of_pair(mech: Mechanism, method: str, pair: ContactPair, how: str) -> None:
    warn_caller(
        f"contact {pair.name!r} of mechanism {mech.name!r} {how}, although its friction is inside its cone: method "
        f"{method!r} takes contact explicitly, with friction of no more than {pair.law.damping:.3g} N s/m, and what it "
        "should hold creeps; implicit methods let it hold: method='semi_implicit', or 'radau' of lw.simulate",
        MechanismWarning,
    )


def warn_of_slip_in_rollout(
    mech: Mechanism, method: str, step: float, lasting: np.ndarray, q: np.ndarray, v: np.ndarray
) -> None:
    """Warn of contacts that slip in an explicit rollout, q (..., records, nq) and v (..., records, nv).  ``lasting``
    (...) is the duration in seconds, ``step`` the length of a step.  Slip is the mean over some motions and records,
    over the time inside the friction cone.  Rollouts too short to be past their transient are not judged."""
    if not rubs(mech):
        return
    pairs = _contact_parts(mech, step)
    units = np.array([mech.contact.scales[pair.name][1] for pair in pairs])
    copies = _some(q[..., 0, 0].size, MOST_COPIES)
    durations = np.abs(np.broadcast_to(lasting, q.shape[:-2])).reshape(-1)[copies]
    if not durations.sum() > LONG_ENOUGH * units.min(initial=np.inf):
        return
    times = _some(q.shape[-2], MOST_RECORDS)
    slip, inside = slips(mech, step, *(x.reshape(-1, *x.shape[-2:])[copies][:, times] for x in (q, v)))
    weights = durations[:, None, None] / len(times)
    distance, time = (np.sum(weights * x, axis=(0, 1)) for x in (slip, inside))
    slow = np.array([pair.law.slip_speed for pair in pairs])
    too_fast = (time > LONG_ENOUGH * units) & (distance > LEAST_SLIP * slow * time)
    if too_fast.any():
        worst = int(np.argmax(np.where(too_fast, distance, 0.0)))
        mean, fastest = distance[worst] / time[worst], slip[..., worst].max()
        _warn_of_pair(mech, method, pairs[worst], f"slipped at {mean:.2g} m/s, up to {fastest:.2g} m/s")


def _some(n: int, most: int) -> np.ndarray:
    """Up to ``most`` of n indices, evenly spaced, the last included."""
    return np.linspace(n - 1, 0, min(n, most)).astype(int)


def _weights(t: np.ndarray) -> Any:
    """(m,): weights of the trapezoidal rule."""
    steps = np.diff(t)
    return 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))


# -- parameters that differ from state to state ----------------------------------------------------------------------


def check_bodies(mech: Mechanism, name: str, values: np.ndarray) -> None:
    """Refuse impossible masses and inertias; those of the mechanism's own bodies are accepted."""
    if not isinstance(values, np.ndarray):
        return  # on a GPU, not checked
    link, _, kind = name.rpartition(".")
    if kind in (*OF_JOINTS, CONTACT_FRICTION):
        return _check_not_negative(name, values)
    bodies = [mech.link_names.index(link)] if link else list(range(mech.n_links))
    if kind == "mass":
        values, present, needed = values[..., None] if link else values, mech.parameters.masses[bodies], "positive"
        wrong = ~(values > 0.0) & ((present > 0.0) | (values != 0.0))
    elif kind == "inertia":
        values, present = values[..., None, :, :] if link else values, mech.parameters.inertias[bodies]
        wrong, needed = ~_positive(values) & _positive(present), "a matrix without negative principal moments"
    else:
        return
    if wrong.any():
        index = tuple(np.argwhere(wrong)[0].tolist())
        whose, value = mech.link_names[bodies[index[-1]]], values[index].tolist()
        state = f" in state {index[:-1]}" if index[:-1] else ""
        raise MechanismError(f"rollout: the {kind} of link {whose!r}{state} must be {needed}, not {value}")


def _check_not_negative(name: str, values: np.ndarray) -> None:
    wrong = ~((values >= 0.0) & (values < np.inf))
    if wrong.any():
        worst = values[wrong][0].item()
        raise MechanismError(f"rollout: numbers of {name!r} must be finite and not negative, not {worst}")


def largest_parameters(mech: Mechanism, acting: Acting, varied: Mapping[str, np.ndarray]) -> Acting:
    """Force laws with the largest of the parameters that vary from state to state, for checks of the step length.
    Parameters are rounded down to powers of two, so that cached checks apply to similar values."""
    largest: dict[tuple[str, str], tuple[float, ...]] = {}
    for values, entries in zip(varied.values(), parameter_arrays(mech, tuple(varied))[1], strict=True):
        for (kind, i), at in entries:
            if kind not in OF_JOINTS or not values.size:
                continue
            numbers = np.atleast_1d(values[..., at] if at is not ... else values).reshape(-1, mech.bodies[i].kind.nv)
            largest[kind, mech.bodies[i].joint] = tuple(map(_rounded_down, numbers.max(axis=0).tolist()))
    return Acting(tuple(_replace_parameter(law, largest) for law in acting.laws))


def _replace_parameter(law: ForceLaw, largest: Mapping[tuple[str, str], tuple[float, ...]]) -> ForceLaw:
    number = largest.get((law.varies, law.joint)) if isinstance(law, Element) else None
    return law if number is None else replace(law, **{law.varies: number})  # type: ignore[attr-defined, type-var]


def _rounded_down(x: float) -> float:
    return 2.0 ** math.floor(math.log2(x)) if x > 0.0 else 0.0


def _positive(inertias: np.ndarray) -> np.ndarray:
    """Whether the symmetric parts of (..., 3, 3) have no negative eigenvalue but for round-off: Sylvester's minors."""
    inertias = inertias.astype(np.float64, copy=False)  # products of three must not underflow
    scale = np.abs(inertias).max(axis=(-2, -1), initial=0.0)
    xx, yy, zz = (inertias[..., i, i] + checks.INERTIA_TOLERANCE * scale for i in range(3))
    xy, xz, yz = (0.5 * (inertias[..., i, j] + inertias[..., j, i]) for i, j in ((0, 1), (0, 2), (1, 2)))
    pair = xx * yy - xy**2
    determinant = zz * pair - xx * yz**2 - yy * xz**2 + 2.0 * xy * xz * yz
    return ((xx > 0.0) & (pair > 0.0) & (determinant > 0.0)) | (scale == 0.0)


# -- rollouts at their end -------------------------------------------------------------------------------------------


def finite_states(batch: tuple[int, ...], *arrays: np.ndarray) -> np.ndarray:
    """(...): whether all numbers of a state are finite."""
    return np.logical_and.reduce([np.isfinite(x).all(axis=tuple(range(len(batch), x.ndim))) for x in arrays])


def warn_first(ended: np.ndarray, dt: np.ndarray, problem: str, advice: str, within: int = 1) -> None:
    """Warn of the state of a batch that meets a problem first.  ``ended`` (...) is the number of steps until then, -1
    for never; it is known up to the last ``within`` steps."""
    if not (ended >= 0).any():
        return
    times = np.where(ended >= 0, ended * np.abs(dt), np.inf)
    state = tuple(map(int, np.unravel_index(np.argmin(times), times.shape)))
    whose = f"in state {state}, " if state else ""
    others = f" ({int((ended >= 0).sum())} of {times.size} states)" if state else ""
    before, time = (float(((ended - steps) * dt)[state]) + 0.0 for steps in (within, 0))  # no negative zero
    when = f"first {whose}at t = {time:.6g} s"
    if within > 1:
        when = f"{whose}between t = {before:.6g} s and {time:.6g} s"
    warn_caller(f"rollout: {problem}, {when}{others}: {advice}", MechanismWarning)
