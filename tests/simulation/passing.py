"""Motions through singular positions, each with what an exact motion keeps: how far it is from its branch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import linkwise as lw

Z, TURN = (0.0, 0.0, 1.0), lw.Revolute((0, 0, 1))
DOWN = (0.0, -9.81, 0.0)


@dataclass(frozen=True)
class Passing:
    """A mechanism, its start (q, v), how long it moves, and ``off(q)`` (samples,): zero on its branch."""

    mech: lw.Mechanism
    q: np.ndarray
    v: np.ndarray
    duration: float
    off: Callable[[np.ndarray], np.ndarray]


def _rod(builder: lw.Builder, name: str, parent: str, at, length: float, mass: float = 1.0) -> None:
    inertia = mass * length**2 / 12.0
    builder.link(name, mass, (length / 2.0, 0.0, 0.0), (0.01 * mass, inertia, inertia))
    builder.joint(name, TURN, parent, name, at if isinstance(at, tuple) and len(at) == 2 else (None, at))


def _spread(mech: lw.Mechanism, names) -> Callable[[np.ndarray], np.ndarray]:
    places = [mech.q_index(name).start for name in names]
    return lambda q: np.ptp(q[..., places], axis=-1)


def _moving(mech: lw.Mechanism, q, speeds: dict[str, float]) -> np.ndarray:
    basis = lw.constraints.null_space(mech, q, independent=tuple(speeds))
    return basis @ np.array(list(speeds.values()))


def parallelograms(count: int, speed: float, duration: float = 1.5) -> Passing:
    """The N-four-bar, in which all posts turn alike."""
    mech = lw.mechanisms.n_four_bar(count)
    q = np.zeros(mech.nq)
    off = _spread(mech, [name for name in mech.joint_names if name.startswith("post")])
    return Passing(mech, q, _moving(mech, q, {"post0_joint": speed}), duration, off)


def five_bar(duration: float = 2.0) -> Passing:
    """The symmetric five-bar of spencer2004's second example, released at rest."""
    mech = lw.mechanisms.five_bar()
    elbow = np.pi / 3 + np.arccos(2 / 3)
    q = np.array([2 * np.pi / 3, elbow, 2 * np.arcsin(2 / 3), elbow])
    return Passing(mech, q, np.zeros(4), duration, lambda q: q[..., 1] - q[..., 3])


def two_drives(first: float, second: float, duration: float = 1.5) -> Passing:
    """The parallel four-bar robot: two degrees of freedom, flat whenever its two drives are in line."""
    mech = lw.mechanisms.parallel_four_bar_robot()
    q = np.array([1.9, 0.5, 1.4, -1.4 - np.pi])
    v = _moving(mech, q, {"joint1": first, "joint2": second})
    return Passing(mech, q, v, duration, lambda q: q[..., 2] - (q[..., 0] - q[..., 1]))


def two_loops(first: float, second: float, duration: float = 1.5) -> Passing:
    """Two separate parallelograms in one mechanism, each at its own pace."""
    builder = lw.Builder()
    for k, side in enumerate(("a", "b")):
        _rod(builder, f"{side}0", "ground", (0.0, 5.0 * k, 0.0), 1.0 + 0.2 * k)
        _rod(builder, f"{side}1", "ground", (1.5, 5.0 * k, 0.0), 1.0 + 0.2 * k)
        _rod(builder, f"{side}2", f"{side}0", (1.0 + 0.2 * k, 0.0, 0.0), 1.5)
        tip = (None, (1.0 + 0.2 * k, 0.0, 0.0))
        builder.loop(side, TURN, f"{side}2", (None, (1.5, 0.0, 0.0)), f"{side}1", tip)
    mech = builder.build("two_loops", DOWN)
    q = np.array([1.0, 1.0, -1.0, 1.4, 1.4, -1.4])[np.argsort(np.argsort(mech.joint_names))]
    v = _moving(mech, q, {"a0": first, "b0": second})
    parts = [_spread(mech, (f"{side}0", f"{side}1")) for side in "ab"]
    return Passing(mech, q, v, duration, lambda q: np.maximum(*(part(q) for part in parts)))


def in_series(first: float, second: float, duration: float = 1.2) -> Passing:
    """A parallelogram on the bar of another."""
    builder = lw.Builder()
    _rod(builder, "a0", "ground", (0.0, 0.0, 0.0), 1.0)
    _rod(builder, "a1", "ground", (1.5, 0.0, 0.0), 1.0)
    _rod(builder, "a2", "a0", (1.0, 0.0, 0.0), 1.5)
    _rod(builder, "b0", "a2", (0.3, 0.0, 0.0), 0.8)
    _rod(builder, "b1", "a2", (1.3, 0.0, 0.0), 0.8)
    _rod(builder, "b2", "b0", (0.8, 0.0, 0.0), 1.0)
    builder.loop("a", TURN, "a2", (None, (1.5, 0.0, 0.0)), "a1", (None, (1.0, 0.0, 0.0)))
    builder.loop("b", TURN, "b2", (None, (1.0, 0.0, 0.0)), "b1", (None, (0.8, 0.0, 0.0)))
    mech = builder.build("in_series", DOWN)
    q = np.zeros(mech.nq)
    for name, value in {"a0": 1.1, "a1": 1.1, "a2": -1.1, "b0": 0.9, "b1": 0.9, "b2": -0.9}.items():
        q[mech.q_index(name)] = value
    v = _moving(mech, q, {"a0": first, "b0": second})
    parts = [_spread(mech, (f"{side}0", f"{side}1")) for side in "ab"]
    return Passing(mech, q, v, duration, lambda q: np.maximum(*(part(q) for part in parts)))


def three_cranks(speed: float, duration: float = 1.2) -> Passing:
    """Three parallel cranks under one bar, in a tilted plane: overconstrained."""
    tilt = np.array([[1.0, 0.0, 0.0], [0.0, 0.8, -0.6], [0.0, 0.6, 0.8]])
    builder = lw.Builder()
    for k, x in enumerate((0.0, 0.7, 1.6)):
        _rod(builder, f"crank{k}", "ground", (tilt, tilt @ np.array([x, 0.0, 0.0])), 0.6)
    _rod(builder, "bar", "crank0", (0.6, 0.0, 0.0), 1.6, 2.0)
    for k, x in ((1, 0.7), (2, 1.6)):
        builder.loop(f"pin{k}", TURN, "bar", (None, (x, 0.0, 0.0)), f"crank{k}", (None, (0.6, 0.0, 0.0)))
    mech = builder.build("three_cranks", DOWN)
    q = np.where([name == "bar" for name in mech.joint_names], -1.2, 1.2)
    off = _spread(mech, ("crank0", "crank1", "crank2"))
    return Passing(mech, q, _moving(mech, q, {"crank0": speed}), duration, off)


def spherical(speed: float, duration: float = 1.5) -> Passing:
    """Four revolutes with axes through one point, opposite links alike: a parallelogram on a sphere."""
    crank, coupler = 0.7, 1.1  # rad: angles between neighbouring axes

    def about_y(angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])

    builder, origin = lw.Builder(), np.zeros(3)
    for name, parent, angle, length in (
        ("left", "ground", 0.0, crank),
        ("right", "ground", coupler, crank),
        ("coupler", "left", crank, coupler),
    ):
        builder.link(name, 1.0, (0.5 * np.sin(length / 2), 0.02, 0.5 * np.cos(length / 2)), 0.05 * np.eye(3))
        builder.joint(name, TURN, parent, name, (about_y(angle), origin))
    builder.loop("pin", TURN, "coupler", (about_y(coupler), origin), "right", (about_y(crank), origin))
    mech = builder.build("spherical", DOWN)
    guess = np.zeros(3)
    for name, value in (("left", 1.3), ("right", 1.3), ("coupler", -1.3)):
        guess[mech.q_index(name)] = value
    q = lw.constraints.assemble(mech, guess, hold=("left",))
    right, middle = (mech.q_index(name).start for name in ("right", "coupler"))
    v = _moving(mech, q, {"left": speed})
    return Passing(mech, q, v, duration, lambda q: q[..., right] + q[..., middle])


def tumbling(duration: float = 2.0) -> Passing:
    """A parallelogram about the axis (1, 2, 3) of a free body, a ball joint on its bar: ten degrees of freedom."""
    axis = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
    across = np.cross(axis, Z) / np.linalg.norm(axis[:2])
    tilted = np.stack([across, np.cross(axis, across), axis], axis=1)
    builder = lw.Builder().link("base", 4.0, (0.1, 0.0, 0.0), 0.5 * np.eye(3))
    builder.joint("free", lw.Floating(), "ground", "base")
    places = {"left": ("base", (tilted, np.zeros(3))), "right": ("base", (tilted, 2.0 * across))}
    for name, (parent, pose) in {**places, "bar": ("left", (np.eye(3), (1.0, 0.0, 0.0)))}.items():
        builder.link(name, 1.0, (0.5, 0.02, 0.01), np.diag([0.01, 0.09, 0.1]))
        builder.joint(name, TURN, parent, name, pose)
    builder.link("ball", 0.3, (0.0, 0.1, 0.2), 0.02 * np.eye(3))
    builder.joint("ball", lw.Spherical(), "bar", "ball", (np.eye(3), (0.7, 0.0, 0.0)))
    builder.loop("pin", TURN, "bar", (np.eye(3), (2.0, 0, 0)), "right", (np.eye(3), (1.0, 0, 0)))
    mech = builder.build("tumbling", (0.0, 0.0, 0.0))
    q, v = lw.neutral(mech), 0.3 * np.random.default_rng(0).normal(size=mech.nv)
    v = lw.constraints.project(mech, q, v)[1]
    for name, sense in (("left", 1.0), ("right", 1.0), ("bar", -1.0)):
        q[mech.q_index(name)] = 1.2 * sense
        v[mech.v_index(name)] = -4.0 * sense
    q, v = lw.constraints.project(mech, lw.constraints.assemble(mech, q), v)
    return Passing(mech, q, v, duration, _spread(mech, ("left", "right")))


def isosceles(speed: float, duration: float = 0.8) -> Passing:
    """A slider-crank with a rod as long as its crank: where both are upright the slider is over the bearing."""
    builder = lw.Builder()
    _rod(builder, "crank", "ground", (0.0, 0.0, 0.0), 0.3)
    _rod(builder, "rod", "crank", (0.3, 0.0, 0.0), 0.3)
    builder.link("slider", 0.5, (0.0, 0.0, 0.0), (0.01, 0.01, 0.01))
    builder.joint("slider", lw.Prismatic((1, 0, 0)), "ground", "slider")
    builder.loop("pin", TURN, "rod", (None, (0.3, 0.0, 0.0)), "slider", None)
    mech = builder.build("isosceles", DOWN)
    q = np.zeros(3)
    for name, value in (("crank", 0.4), ("rod", -0.8), ("slider", 0.6 * np.cos(0.4))):
        q[mech.q_index(name)] = value
    crank, rod = (mech.q_index(name).start for name in ("crank", "rod"))
    v = _moving(mech, q, {"crank": speed})
    return Passing(mech, q, v, duration, lambda q: q[..., rod] + 2.0 * q[..., crank])


def bricard(speed: float, duration: float = 0.8) -> Passing:
    """Six revolutes on links of one length, axes twisted by 60 degrees to either side in turn: with angles that are
    theta, phi, theta, ... it moves though it should not, and where all are 180 degrees two such motions cross."""
    twist = np.pi / 3.0
    cosine, sine = np.cos(twist), np.sin(twist)
    left, along = np.array([[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]]), np.array([1.0, 0.0, 0.0])
    builder, parent, pose = lw.Builder(), "ground", (np.eye(3), np.zeros(3))
    for k in range(5):
        builder.link(f"link{k}", 1.0, (0.5, 0.0, 0.0), np.diag([0.02, 0.09, 0.09]))
        builder.joint(f"joint{k}", TURN, parent, f"link{k}", pose)
        parent, pose = f"link{k}", (left.T if k % 2 else left, along)
    builder.loop("pin", TURN, parent, pose, "ground", (left, -(left @ along)))
    mech = builder.build("bricard", (0.0, 0.0, -9.81))

    def phi(theta: np.ndarray) -> np.ndarray:
        """By the closure equation of Chen, You and Tarnai (2005), on the branch that crosses 180 degrees slowly."""
        a, b = sine**2 + (1.0 + cosine**2) * np.cos(theta), -2.0 * cosine * np.sin(theta)
        ratio = -(cosine**2 + sine**2 * np.cos(theta)) / np.hypot(a, b)
        return np.arctan2(b, a) + np.sign(theta - np.pi) * np.arccos(np.clip(ratio, -1.0, 1.0))

    def off(q: np.ndarray) -> np.ndarray:
        errors = q - np.stack([q[..., 0], phi(q[..., 0])] * 2 + [q[..., 0]], axis=-1)
        return np.abs((errors + np.pi) % (2.0 * np.pi) - np.pi).max(axis=-1)

    theta = np.pi - 0.8
    q = np.array([theta, phi(theta) + 2.0 * np.pi, theta, phi(theta) + 2.0 * np.pi, theta])
    return Passing(mech, q, _moving(mech, q, {"joint0": speed}), duration, off)


def _four_bar(name: str, crank: float, coupler: float, rocker: float, ground: float, guess: dict) -> tuple:
    """A four-bar with links of these lengths, and its configuration near these angles, with that of "crank"."""
    builder = lw.Builder()
    _rod(builder, "crank", "ground", (0.0, 0.0, 0.0), crank)
    _rod(builder, "coupler", "crank", (crank, 0.0, 0.0), coupler)
    _rod(builder, "rocker", "ground", (ground, 0.0, 0.0), rocker)
    builder.loop("pin", TURN, "coupler", (None, (coupler, 0.0, 0.0)), "rocker", (None, (rocker, 0.0, 0.0)))
    mech = builder.build(name, DOWN)
    q = np.zeros(mech.nq)
    for joint, value in guess.items():
        q[mech.q_index(joint)] = value
    return mech, lw.constraints.assemble(mech, q, hold=("crank",)), [mech.q_index(x).start for x in ("crank", "rocker")]


def antiparallelogram(speed: float, duration: float = 1.2) -> Passing:
    """A parallelogram turned inside out, which it stays in flat positions: the tangents of half the angles of crank and
    rocker have a constant ratio."""
    short, long = 0.5, 0.8
    mech, q, (crank, rocker) = _four_bar(
        "antiparallelogram", short, long, short, long, {"crank": 1.0, "coupler": -2.0, "rocker": -2.3}
    )

    def off(q: np.ndarray) -> np.ndarray:
        first, second = 0.5 * q[..., crank], 0.5 * q[..., rocker]
        return (long - short) * np.sin(second) * np.cos(first) + (long + short) * np.cos(second) * np.sin(first)

    return Passing(mech, q, _moving(mech, q, {"crank": speed}), duration, off)


def kite(speed: float, duration: float = 1.0) -> Passing:
    """A crank as long as the ground, a coupler as long as the rocker: symmetric about the line from the foot of the
    crank to the pin, also where the crank lies on the ground and the others could turn by themselves."""
    mech, q, (crank, rocker) = _four_bar("kite", 0.5, 0.8, 0.8, 0.5, {"crank": 1.0, "coupler": -0.4, "rocker": 1.0})

    def off(q: np.ndarray) -> np.ndarray:
        half = 0.5 * q[..., crank]
        x, y = 0.5 + 0.8 * np.cos(q[..., rocker]), 0.8 * np.sin(q[..., rocker])
        return y * np.cos(half) - x * np.sin(half)

    return Passing(mech, q, _moving(mech, q, {"crank": speed}), duration, off)
