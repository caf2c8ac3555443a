"""Consistency check of a joint kind, for kinds that are written outside of linkwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .compiler.ir.program import Array
from .compiler.targets.numpy_reference import evaluate
from .compiler.trace import trace
from .dynamics.trees import integrate, inverse_dynamics, kinetic_energy
from .mechanics.jet import jet
from .mechanics.jet import parts as jet_parts
from .mechanics.joints import ANGLE, LENGTH, OTHER, QUATERNION, Joint, Revolute
from .mechanics.spatial import Matrix3, Motion, RigidInertia, Symmetric3, Transform, Vector3
from .mechanism import Builder

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # central differences of order eight
STEP = 4e-3
TOLERANCE = 1e-7  # of the largest number compared, or of 1

Numbers = Any  # an array, or nested sequences of numbers
Comparison = tuple[Numbers, Numbers]


class Part(NamedTuple):
    """One requirement: ``compare(kind, q, v)`` returns two arrays that are equal if the ``rule`` is kept."""

    name: str
    rule: str
    compare: Callable[[Joint, list[float], list[float]], Comparison]


def check_joint(kind: Joint, states: int = 6, seed: int = 0) -> dict[str, float]:
    """Check that the parts of a joint agree with each other at random coordinates; return the largest deviations.

    - Rates (``motion``, ``motion_rate``, ``q_rate``, ``step_rate``, ``drift``) are compared with central differences of
      order eight along ``integrate``.
    - ``closure``, ``steps``, ``alignment``, ``difference`` and the attributes that shorten code (``span``, ``slides``,
      ``rotation_coordinate``, ``canonical_numbers``, ``regroupable``) are compared with their definitions.
    - The traced program is compared with plain numbers.
    - The power of ``lw.inverse_dynamics`` is compared with the rate of ``lw.kinetic_energy`` in a mechanism with this
      joint.

    Coordinates are drawn by ``random`` of the kind; lengths should be of order 1.  A ValueError lists every part that
    deviates by more than 1e-7, with the rule that it breaks and a state where it does.

    >>> deviations = lw.extend.check_joint(lw.Helical((0.0, 0.0, 1.0), 0.1))
    >>> max(deviations.values()) < 1e-9
    True
    """
    if not isinstance(kind, Joint):
        raise TypeError(f"check_joint takes a joint such as lw.Revolute(), got {kind!r}")
    rng = np.random.default_rng(seed)
    problems = _wrong_sizes(kind, rng)
    deviations: dict[str, float] = {}
    samples = [] if problems else [_sample(kind, rng) for _ in range(states)]
    for part in PARTS if samples else ():
        try:
            compared = [(_deviation(*part.compare(kind, q, v)), q, v) for q, v in samples]
        except Exception as error:  # of code that is not ours
            problems.append(f"{part.name}: {part.rule}; computing it raised {type(error).__name__}: {error}")
            continue
        largest, q, v = max(compared, key=lambda sample: sample[0])
        deviations[part.name] = largest
        if not largest <= TOLERANCE:
            problems.append(f"{part.name}: {part.rule}; off by {largest:.1e} at q = {_text(q)}, v = {_text(v)}")
    if problems:
        raise ValueError("\n  ".join([f"{kind!r} contradicts itself; the first line may cause the others:", *problems]))
    return deviations


# -- sizes and samples ------------------------------------------------------------------------------------


def _wrong_sizes(kind: Joint, rng: np.random.Generator) -> list[str]:
    """Parts whose length contradicts ``nq`` and ``nv``, or that raise at the first state."""
    q, v = np.asarray(kind.random(rng, ()), dtype=float), rng.normal(size=kind.nv).tolist()
    problems = [] if q.shape == (kind.nq,) else [f"random: shape + (nq,) = ({kind.nq},) is asked for, got {q.shape}"]
    lengths: tuple[tuple[str, Callable[[], Sequence[Any]], int], ...] = (
        ("neutral", kind.neutral, kind.nq),
        ("motion", lambda: kind.motion(q.tolist()), kind.nv),
        ("motion_rate", lambda: kind.motion_rate(q.tolist(), v), kind.nv),
        ("q_rate", lambda: kind.q_rate(q.tolist(), v), kind.nq),
        ("integrate", lambda: kind.integrate(q.tolist(), v, 0.1), kind.nq),
        ("difference", lambda: kind.difference(q.tolist(), q.tolist()), kind.nv),
        ("closure", lambda: kind.closure(Matrix3.from_rows(np.eye(3).tolist()), Vector3(0.0, 0.0, 0.0)), 6 - kind.nv),
        ("position_measures", lambda: kind.position_measures or kind.measures("q"), kind.nq),
        ("velocity_measures", lambda: kind.velocity_measures or kind.measures("v"), kind.nv),
    )
    for name, function, expected in lengths if not problems else ():
        try:
            length = len(function())
        except Exception as error:  # of code that is not ours
            problems.append(f"{name}: raised {type(error).__name__}: {error}")
            continue
        if length != expected:
            problems.append(
                f"{name}: {expected} numbers or columns are needed (nq = {kind.nq}, nv = {kind.nv}), got {length}"
            )
    return problems


def _sample(kind: Joint, rng: np.random.Generator) -> tuple[list[float], list[float]]:
    return np.asarray(kind.random(rng, ()), dtype=float).tolist(), rng.normal(size=kind.nv).tolist()


def _deviation(computed: Numbers, expected: Numbers) -> float:
    """The largest difference, relative to the largest number expected or to 1."""
    a, b = np.asarray(computed, dtype=float).ravel(), np.asarray(expected, dtype=float).ravel()
    if a.size == 0:
        return 0.0
    largest = float(np.abs(a - b).max() / max(1.0, np.abs(b).max()))
    return largest if np.isfinite(largest) else np.inf


def _text(values: Sequence[float]) -> str:
    return "[" + ", ".join(f"{x:.3g}" for x in values) + "]"


# -- plain matrices ---------------------------------------------------------------------------------------


def _rate(function: Callable[[float], np.ndarray]) -> np.ndarray:
    """d/dt at 0 by central differences."""
    return sum(w * (function(k * STEP) - function(-k * STEP)) for k, w in enumerate(WEIGHTS, 1)) / STEP


def _skew(x: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def _turn(axis: Sequence[float], angle: float) -> np.ndarray:
    """The rotation matrix about a unit axis (Rodrigues' formula)."""
    k = _skew(np.asarray(axis, dtype=float))
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k


def _pose(transform: Transform) -> np.ndarray:
    """(4, 4)."""
    pose = np.eye(4)
    pose[:3, :3] = [list(row) for row in transform.rotation()]
    pose[:3, 3] = transform.position()
    return pose


def _columns(motions: Sequence[Motion]) -> np.ndarray:
    """(6, nv)."""
    return np.array([motion.flat() for motion in motions], dtype=float).reshape(-1, 6).T


def _frame(kind: Joint) -> np.ndarray:
    """(3, 3): the canonical axes as columns, in the link frame."""
    return np.array(kind.alignment, dtype=float)


# -- what is compared: the kind at one state --------------------------------------------------------------


def _rigid(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    rotation = _pose(kind.transform(q))[:3, :3]
    return [*(rotation.T @ rotation).ravel(), np.linalg.det(rotation)], [*np.eye(3).ravel(), 1.0]


def _neutral(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    return _pose(kind.transform(list(kind.neutral()))), np.eye(4)


def _aligned(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    axes = _frame(kind)
    return [*(axes.T @ axes).ravel(), np.linalg.det(axes)], [*np.eye(3).ravel(), 1.0]


def _motion(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    rotation = _pose(kind.transform(q))[:3, :3]
    rates = rotation.T @ _rate(lambda t: _pose(kind.transform(kind.integrate(q, v, t))))[:3]
    twist = [rates[2, 1], rates[0, 2], rates[1, 0], *rates[:, 3]]
    return _columns(kind.motion(q)) @ v, twist


def _motion_rate(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    return _columns(kind.motion_rate(q, v)), _rate(lambda t: _columns(kind.motion(kind.integrate(q, v, t))))


def _q_rate(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    return kind.q_rate(q, v), _rate(lambda t: np.array(kind.integrate(q, v, t), dtype=float))


def _constant_motions(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    """Of velocities that are not dq/dt: H* is constant, and its columns are closed under the cross product."""
    if kind.rates_are_velocities or not kind.nv:
        return [], []
    motions, other = kind.motion(q), kind.motion(list(kind.neutral()))
    basis = _columns(motions)
    brackets = np.array([a.cross(b).flat() for a in motions for b in motions], dtype=float).T
    within = basis @ np.linalg.lstsq(basis, brackets, rcond=None)[0]
    return np.hstack([basis, brackets]), np.hstack([_columns(other), within])


def _integrate(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    halfway = kind.integrate(q, v, 0.3)
    return _pose(kind.transform(kind.integrate(halfway, v, 0.4))), _pose(kind.transform(kind.integrate(q, v, 0.7)))


def _difference(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    small = [0.4 * x for x in v]
    back = kind.difference(q, kind.integrate(q, small, 1.0))
    return [*back, *kind.difference(q, q)], [*small, *[0.0] * kind.nv]


def _step_rate(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    step = [0.01 * x for x in reversed(v)]
    end = kind.integrate(q, step, 1.0)
    expected = _rate(lambda t: np.array(kind.difference(q, kind.integrate(end, v, t)), dtype=float))
    return kind.step_rate(step, v), expected


def _drift(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    position, velocity = (
        _rate(lambda t, k=k: np.array(kind.drift(q, v, t)[k], dtype=float))  # type: ignore[misc]
        for k in (0, 1)
    )
    return [*position, *velocity], [*kind.q_rate(q, v), *(-x for x in kind.kick_bias(v))]


def _closure_gradient(kind: Joint, q: list[float]) -> np.ndarray:
    """(6 - nv, 6), rows of unit length: rates of the closure per unit twist of the child side, in its frame."""
    pose = _pose(kind.transform(q))
    rotation, position = pose[:3, :3], pose[:3, 3]
    gradient = np.zeros((6 - kind.nv, 6))
    for k, twist in enumerate(np.eye(6)):
        turning, sliding = rotation @ _skew(twist[:3]), rotation @ twist[3:]
        rows = [Vector3(*map(jet, row, rate)) for row, rate in zip(rotation.tolist(), turning.tolist(), strict=True)]
        moved = kind.closure(Matrix3(*rows), Vector3(*map(jet, position.tolist(), sliding.tolist())))
        gradient[:, k] = [jet_parts(x)[1] for x in moved]
    sizes = np.linalg.norm(gradient, axis=1, keepdims=True)
    return gradient / np.where(sizes > 0.0, sizes, 1.0)


def _closure(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    pose = _pose(kind.transform(q))
    errors = kind.closure(Matrix3.from_rows(pose[:3, :3].tolist()), Vector3(*pose[:3, 3].tolist()))
    allowed = _closure_gradient(kind, q) @ _columns(kind.motion(q))
    return [*errors, *allowed.ravel()], np.zeros(len(errors) + allowed.size)


def _closure_rank(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    gradient = _closure_gradient(kind, q)
    return np.linalg.matrix_rank(gradient, 1e-6) if gradient.size else 0, 6 - kind.nv


def _loop_alignment(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    pose = _pose(kind.transform(q))
    alignment = kind.loop_alignment(Matrix3.from_rows(pose[:3, :3].tolist()), Vector3(*pose[:3, 3].tolist()))
    return float(alignment > 0.0), 1.0


def _steps(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    if not kind.steps:
        return [], []
    pose = np.eye(4)
    for step in kind.steps:
        moved, amount = np.eye(4), step.ratio * q[step.coordinate]
        if step.turns:
            moved[:3, :3] = _turn(step.axis, amount)
        else:
            moved[:3, 3] = amount * np.array(step.axis)
        pose = pose @ moved
    frame = np.eye(4)
    frame[:3, :3] = _frame(kind)
    leading = [
        sum(step.coordinate == k and step.name == "" and step.ratio == 1.0 for step in kind.steps)
        for k in range(kind.nq)
    ]
    return [*(frame.T @ pose @ frame).ravel(), *leading], [*_pose(kind.transform(q)).ravel(), *[1] * kind.nq]


def _span(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    if kind.span is None:
        return [], []
    columns = _columns(kind.motion(q))
    outside = np.delete(columns, kind.span, axis=0).ravel()
    return [*outside, np.linalg.matrix_rank(columns) if kind.nv else 0], [*np.zeros(len(outside)), len(kind.span)]


def _slides(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    if not kind.slides:
        return [], []
    pose, shift = _pose(kind.transform(q)), np.array([0.0, 0.0, 0.7])
    return pose[:3, :3] @ shift, shift


def _rotation_coordinate(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    if kind.rotation_coordinate is None:
        return [], []
    turned, about_z = list(q), np.eye(4)
    turned[kind.rotation_coordinate] += 0.4
    about_z[:3, :3] = _turn((0.0, 0.0, 1.0), 0.4)
    return _pose(kind.transform(turned)), _pose(kind.transform(q)) @ about_z


def _canonical_numbers(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    if kind.canonical_numbers is None:
        return [], []
    other = type(kind).drawn(np.random.default_rng(1))
    twin = kind.with_canonical_numbers([getattr(other, name) for name in kind.canonical_numbers])
    pairs = [
        (_pose(joint.transform(q)), _columns(joint.motion(q)), _columns(joint.motion_rate(q, v)))
        for joint in (twin, other)
    ]
    first, second = (np.concatenate([part.ravel() for part in numbers]) for numbers in pairs)
    return first, second


def _regroupable(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    inertia = RigidInertia.about_com(1.3, Vector3(0.2, -0.1, 0.3), Symmetric3(0.3, 0.4, 0.5, 0.02, -0.03, 0.04))
    part = kind.regroupable(inertia)
    momenta = [x for motion in kind.motion(q) for x in (part @ motion).flat()]
    here, there = (kind.transform(at).inertia_back(part).numbers for at in (q, kind.integrate(q, v, 0.5)))
    return [*momenta, *here], [*[0.0] * len(momenta), *there]


def _measures(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    known = (ANGLE, LENGTH, QUATERNION, OTHER)
    measures, columns = kind.measures("v"), _columns(kind.motion(q))
    turns = [bool(np.abs(column[:3]).max() > 1e-12) for column in columns.T]
    of = [measure.of for measure in measures]
    valid = [measure.of in known for measure in (*kind.measures("q"), *measures)]
    agrees = [unit == OTHER or (unit == LENGTH) != turning for unit, turning in zip(of, turns, strict=True)]
    return [*valid, *agrees], [True] * (len(valid) + len(agrees))


def _numbers_of(kind: Joint, q: Sequence[Any], v: Sequence[Any], pose: Sequence[Any]) -> np.ndarray:
    """Everything that is computed from coordinates, in a row."""
    rotation = Matrix3.from_rows([pose[0:3], pose[3:6], pose[6:9]])
    position = Vector3(*pose[9:])
    transform = kind.transform(q)
    values = [*(x for row in transform.rotation() for x in row), *transform.position()]
    values += [x for motion in (*kind.motion(q), *kind.motion_rate(q, v)) for x in motion.flat()]
    values += [*kind.q_rate(q, v), *kind.integrate(q, v, 0.3), *kind.difference(q, kind.integrate(q, v, 0.2))]
    values += [*kind.step_rate(v, v), *kind.closure(rotation, position), kind.loop_alignment(rotation, position)]
    values += [x for numbers in kind.drift(q, v, 0.3) for x in numbers]
    return np.array(values, dtype=object)


def _traced(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    shapes = (Array("q", (kind.nq,)), Array("v", (kind.nv,)), Array("pose", (12,)))
    program = trace(lambda q, v, pose: (_numbers_of(kind, list(q), list(v), list(pose)),), shapes, ("numbers",))
    at = _pose(kind.transform(q))
    pose = [*at[:3, :3].ravel().tolist(), *at[:3, 3].tolist()]
    return evaluate(program, [np.array(q), np.array(v), np.array(pose)]), _numbers_of(kind, q, v, pose)


def _power(kind: Joint, q: list[float], v: list[float]) -> Comparison:
    builder = Builder().link("body", 1.3, (0.1, 0.2, -0.1), (0.02, 0.03, 0.04))
    builder.link("rod", 0.5, (0.0, 0.3, 0.1), (0.02, 0.01, 0.02))
    builder.joint("tested", kind, "ground", "body", (_turn((0.6, 0.0, 0.8), 0.5), (0.1, 0.2, 0.3)))
    builder.joint("swing", Revolute((1.0, 0.0, 0.0)), "body", "rod", (None, (0.3, 0.0, 0.1)))
    mech = builder.build("pair", (0.0, 0.0, 0.0))
    position, velocity = np.array([*q, 0.3]), np.array([*v, 0.7])
    acceleration = np.linspace(0.5, -0.8, mech.nv)
    power = inverse_dynamics(mech, position, velocity, acceleration) @ velocity

    def energy(t: float) -> np.ndarray:
        return kinetic_energy(mech, integrate(mech, position, velocity, t), velocity + t * acceleration)

    return power, _rate(energy)


PARTS = (
    Part("alignment", "its columns are a right-handed frame of unit axes", _aligned),
    Part("transform", "its rotation is orthogonal", _rigid),
    Part("neutral", "the two sides coincide at neutral()", _neutral),
    Part("integrate", "moving with constant v for 0.3 and then 0.4 is moving for 0.7", _integrate),
    Part("motion", "H* v is the twist of the child along integrate(q, v, t), in the child frame", _motion),
    Part("motion_rate", "the rate of the columns of H* along integrate(q, v, t)", _motion_rate),
    Part("q_rate", "dq/dt along integrate(q, v, t)", _q_rate),
    Part(
        "velocities",
        "where v is not dq/dt, H* is constant and its columns closed under cross products",
        _constant_motions,
    ),
    Part("difference", "difference(q, integrate(q, v, 1)) is v, and difference(q, q) is zero", _difference),
    Part("step_rate", "the rate of u with integrate(q, u, 1) moving with v", _step_rate),
    Part("drift", "q moves with q_rate, and v with minus kick_bias", _drift),
    Part("closure", "zero at every pose of the joint, and unchanged by its motions", _closure),
    Part("closure rank", "6 - nv independent rows", _closure_rank),
    Part("loop_alignment", "positive at every pose of the joint", _loop_alignment),
    Part(
        "steps",
        "together they are the transform in the link frame; each coordinate leads one of ratio 1 without a name",
        _steps,
    ),
    Part("span", "the rows of H* that are not zero, as many as nv", _span),
    Part("slides", "the joint does not rotate or move the z axis", _slides),
    Part("rotation_coordinate", "an offset of it is a rotation of the child about its z axis", _rotation_coordinate),
    Part(
        "canonical_numbers",
        "joints of the kind that have these in common are alike in canonical frames",
        _canonical_numbers,
    ),
    Part("regroupable", "an inertia without momentum in H*, the same for the parent everywhere", _regroupable),
    Part("measures", 'known words; "length" exactly where a motion does not turn', _measures),
    Part("traced", "symbols give what numbers give: functions of lw.extend.scalar, no `if` on a coordinate", _traced),
    Part("power", "v times the forces of inverse dynamics is the rate of kinetic energy", _power),
)
