"""Random closed mechanisms with states at which they are closed by construction: coordinates are drawn first, loops are
then put where the bodies are.

general     trees of mixed joints, loops of every kind, some said twice, clusters that share links, mimic
            joints, couplings of joints
planar      linkages in tilted planes, every link's frame at an angle of its own, so that most loops are redundant
massless    planar, with a link that has no inertia
cranks      parallel cranks under a bar, one or two stages in series: singular where they lie flat
stretched   chains in line, singular

Every second one has a floating base.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import linkwise as lw

from . import maximal_coordinates as oracle

REGULAR, SINGULAR, NEARLY = "regular", "singular", "nearly singular"
KINDS = ("revolute", "prismatic", "helical", "cylindrical", "universal", "pin_in_slot", "planar", "spherical")
Z = np.array([0.0, 0.0, 1.0])
NEARLY_FLAT = 1e-7  # radians: the condition of G is its inverse, times about 3
WORST_REGULAR = 1e-3  # what every row of a regular state adds to the others, at least


class State(NamedTuple):
    label: str
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


class Case(NamedTuple):
    family: str
    mech: lw.Mechanism
    states: tuple[State, ...]


def case(family: str, seed: int) -> Case:
    """The first of those that this seed draws which moves and whose regular states are well conditioned."""
    rng = np.random.default_rng([list(FAMILIES).index(family), seed])
    while True:
        drawn = FAMILIES[family](rng, seed)
        if drawn is not None and all(_sound(drawn.mech, state) for state in drawn.states):
            return drawn


def _sound(mech: lw.Mechanism, state: State) -> bool:
    try:
        motion = oracle.forward_dynamics(mech, state.q, state.v, state.tau)
    except ArithmeticError:  # something moves without inertia
        return False
    regular = state.label != REGULAR or motion.conditioning > WORST_REGULAR
    return motion.degrees_of_freedom > 0 and motion.redundancy < 1e-14 and regular


def _moving(mech: lw.Mechanism, q: np.ndarray, rng: np.random.Generator) -> State | None:
    """A regular state with a velocity that keeps the loops closed."""
    free = oracle.free_velocities(mech, q)
    if not free.size:
        return None
    v = free @ rng.normal(size=free.shape[1])
    return State(REGULAR, q, v / max(1.0, float(np.abs(v).max())), rng.normal(size=mech.nv))


# -- loops where the bodies are -------------------------------------------------------------------------


def closing(
    mech: lw.Mechanism, q, name: str, kind: lw.extend.Joint, own, a: int, pose_a: oracle.Pose, b: int
) -> lw.constraints.Loop:
    """A loop of this kind at ``pose_a`` in body a, closed at q with its own coordinates ``own``."""
    poses = oracle.place(mech, q)
    far, near = oracle.moved(kind, poses[a].then(*pose_a), own), poses[b]
    pose_b = (near.rotation.T @ far.rotation, near.rotation.T @ (far.position - near.position))
    links = ["ground" if body < 0 else mech.bodies[body].link for body in (a, b)]
    first, second = (tuple(np.array(x, dtype=float) for x in pose) for pose in (pose_a, pose_b))
    return lw.constraints.Loop(name, kind, links[0], first, links[1], second)


def _between(mech: lw.Mechanism, a: int, b: int) -> int:
    """How many velocities move body a against body b."""
    ways = [set(mech.tree.path(body)) if body >= 0 else set() for body in (a, b)]
    places = {mech.v_index(mech.bodies[i].joint).start: mech.bodies[i].kind.nv for i in ways[0] ^ ways[1]}
    return sum(places.values())


def _rotation(rng: np.random.Generator) -> np.ndarray:
    return np.array(oracle.of_quaternion(rng.normal(size=4)), dtype=float)


# -- general --------------------------------------------------------------------------------------------


def _kind(which: str, rng: np.random.Generator) -> lw.extend.Joint:
    axis, other = rng.normal(size=(2, 3))
    makers: dict[str, Callable[[], lw.extend.Joint]] = {
        "revolute": lambda: lw.Revolute(tuple(axis)),
        "prismatic": lambda: lw.Prismatic(tuple(axis)),
        "helical": lambda: lw.Helical(tuple(axis), 0.3),
        "cylindrical": lambda: lw.Cylindrical(tuple(axis)),
        "universal": lambda: lw.Universal(tuple(axis), tuple(other)),
        "pin_in_slot": lambda: lw.PinInSlot(tuple(axis), tuple(other)),
        "planar": lambda: lw.Planar(tuple(axis)),
        "spherical": lw.Spherical,
        "fixed": lw.Fixed,
    }
    return makers[which]()


def general(rng: np.random.Generator, seed: int) -> Case | None:
    floating = seed % 2 == 0
    mech = lw.mechanisms.random_tree(int(rng.integers(3, 6)), int(rng.integers(2**31)), KINDS, floating)
    if rng.random() < 0.4:
        mech = _with_mimic(mech, rng)
    q = lw.random_state(mech, rng)[0]
    names = (*KINDS, "fixed")
    loops: list[lw.constraints.Loop | lw.constraints.Coupling] = []
    for k in range(int(rng.integers(1, 4))):
        kind = _kind(names[(seed // 2 + k) % len(names)], rng)
        pairs = [(a, b) for b in range(mech.n_links) for a in range(-1, b)]
        pairs = [(a, b) for a, b in pairs if _between(mech, a, b) > 6 - kind.nv]
        if pairs:
            a, b = pairs[int(rng.integers(len(pairs)))]
            pose = oracle.Pose(_rotation(rng), 0.3 * rng.normal(size=3))
            own = kind.random(rng, ()) if kind.nq else ()
            loops.append(closing(mech, q, f"loop{len(loops) + 1}", kind, own, a, pose, b))
    if not loops:
        return None
    if rng.random() < 0.3:
        loops.append(dataclasses.replace(loops[0], name="said_twice"))
    single = [body.joint for body in mech.bodies if body.kind.nv == 1]
    if len(single) > 1 and rng.random() < 0.5:
        ratios = {str(joint): float(rng.uniform(0.5, 2.0)) for joint in rng.permutation(single)[:3]}
        turned = sum(ratio * float(mech.coordinates.place(joint).positions(q)[0]) for joint, ratio in ratios.items())
        loops.append(lw.constraints.Coupling("gears", ratios, turned))
    closed = mech.with_loops(*loops)
    state = _moving(closed, q, rng)
    return None if state is None else Case("general", closed, (state,))


def held_body(which: str, seed: int) -> Case:
    """One floating body, held to the ground by one loop of this kind."""
    rng = np.random.default_rng(seed)
    builder = lw.Builder().link("body", 1.0, (0.1, 0.2, 0.3), (0.1, 0.12, 0.15))
    mech = builder.joint("float", lw.Floating(), "ground", "body").build("held_body")
    q, kind = lw.random_state(mech, rng)[0], _kind(which, rng)
    pose = oracle.Pose(_rotation(rng), rng.normal(size=3))
    closed = mech.with_loops(closing(mech, q, "loop", kind, kind.random(rng, ()), -1, pose, 0))
    state = _moving(closed, q, rng)
    assert state is not None
    return Case("held body", closed, (state,))


def _with_mimic(mech: lw.Mechanism, rng: np.random.Generator) -> lw.Mechanism:
    """One of the joints mimics another one, if there are two that can."""
    single = [i for i, body in enumerate(mech.bodies) if body.kind.nv == 1]
    if len(single) < 2:
        return mech
    mimicked, mimic = rng.permutation(single)[:2]
    rule = lw.Mimic(mech.bodies[mimicked].joint, float(rng.uniform(-1.5, 1.5)), float(rng.normal()))
    bodies = list(mech.bodies)
    bodies[mimic] = dataclasses.replace(bodies[mimic], mimic=rule)
    return dataclasses.replace(mech, bodies=tuple(bodies))


# -- in tilted planes -----------------------------------------------------------------------------------


class Sheet:
    """A mechanism in the x-y plane of its base, which lies anywhere; the frame of each link is rotated by its own
    ``frames[link]``, so that no number shows the plane."""

    def __init__(self, rng: np.random.Generator, floating: bool):
        self.rng, self.builder = rng, lw.Builder()
        self.base = "base" if floating else "ground"
        self.frames: dict[str, np.ndarray] = {self.base: _rotation(rng)}
        if floating:
            self.builder.link("base", 3.0, 0.1 * rng.normal(size=3), (0.2, 0.3, 0.25))
            self.builder.joint("float", lw.Floating(), "ground", "base", (_rotation(rng), rng.normal(size=3)))

    def in_link(self, link: str, vector) -> tuple[float, ...]:
        """A vector of the plane along the axes of the link's frame."""
        return tuple(self.frames[link].T @ np.asarray(vector, dtype=float))

    def add(self, link: str, parent: str, at, slides: bool = False, angle: float = 0.0, mass: float = 1.0) -> None:
        """A link hinged to its parent, or sliding on it, at a point of the parent's sheet."""
        rng, self.frames[link] = self.rng, _rotation(self.rng)
        kind = lw.Prismatic(self.in_link(link, (1, 0, 0))) if slides else lw.Revolute(self.in_link(link, Z))
        inertia = mass * rng.uniform(0.5, 1.0, size=3) * 0.1
        self.builder.link(link, mass, 0.2 * rng.normal(size=3) if mass else (0.0, 0.0, 0.0), inertia)
        turned = np.array(oracle.about(Z, angle), dtype=float)
        pose = (self.frames[parent].T @ turned @ self.frames[link], self.in_link(parent, at))
        self.builder.joint(link, kind, parent, link, pose)

    def pose(self, link: str, at, angle: float = 0.0) -> oracle.Pose:
        turned = np.array(oracle.about(Z, angle), dtype=float)
        return oracle.Pose(self.frames[link].T @ turned, np.array(self.in_link(link, at)))

    def build(self, name: str) -> lw.Mechanism:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.MechanismWarning)  # links without inertia
            return self.builder.build(name, strict=False)


PLANAR_LOOPS: dict[
    str, tuple[lw.extend.Joint, int]
] = {  # the joint in the plane's axes, and what it takes from a planar motion
    "revolute": (lw.Revolute((0, 0, 1)), 2),
    "cylindrical": (lw.Cylindrical((0, 0, 1)), 2),
    "spherical": (lw.Spherical(), 2),
    "universal": (lw.Universal((0, 0, 1), (1, 0, 0)), 2),
    "pin_in_slot": (lw.PinInSlot((1, 0, 0), (0, 0, 1)), 1),
    "prismatic": (lw.Prismatic((1, 0, 0)), 2),
    "fixed": (lw.Fixed(), 3),
}


def planar(rng: np.random.Generator, seed: int, massless: bool = False) -> Case | None:
    sheet = Sheet(rng, floating=seed % 2 == 0)
    count = int(rng.integers(4, 7))
    links = [f"link{i + 1}" for i in range(count)]
    without = int(rng.integers(1, count)) if massless else -1
    parents: list[int] = []
    for i, link in enumerate(links):
        parents.append(i - 1 if rng.random() < 0.7 else int(rng.integers(-1, i)) if i else -1)
        parent = sheet.base if parents[i] < 0 else links[parents[i]]
        at = (*rng.uniform(-0.6, 0.6, size=2), rng.uniform(-0.1, 0.1))
        sheet.add(
            link, parent, at, rng.random() < 0.2, rng.uniform(-3, 3), 0.0 if i == without else rng.uniform(0.5, 2)
        )
    mech = sheet.build("planar")
    q, first = lw.random_state(mech, rng)[0], mech.n_links - count
    loops: list[lw.constraints.Loop] = []
    freedoms, names = count, list(PLANAR_LOOPS)
    for k in range(3):
        kind, takes = PLANAR_LOOPS[names[(seed // 2 + k) % len(names)]]
        a, b = sorted(rng.choice(np.arange(-1, count), size=2, replace=False))
        away = _between(mech, int(a) + first, int(b) + first)
        if takes >= min(freedoms, away):
            continue
        freedoms -= takes
        link = sheet.base if a < 0 else links[a]
        pose = sheet.pose(link, (*rng.uniform(-0.5, 0.5, size=2), rng.uniform(-0.1, 0.1)), rng.uniform(-3, 3))
        own = _coordinates_in_plane(kind, rng)
        loops.append(closing(mech, q, f"loop{k + 1}", kind, own, int(a) + first, pose, int(b) + first))
    if not loops:
        return None
    closed = mech.with_loops(*loops)
    state = _moving(closed, q, rng)
    return None if state is None else Case("massless" if massless else "planar", closed, (state,))


def _coordinates_in_plane(kind: lw.extend.Joint, rng: np.random.Generator) -> np.ndarray:
    """Random coordinates that rotate about the normal alone."""
    angle = rng.uniform(-3.0, 3.0)
    if isinstance(kind, lw.Spherical):
        return np.array([np.cos(angle / 2.0), 0.0, 0.0, np.sin(angle / 2.0)])
    if isinstance(kind, lw.Universal):
        return np.array([angle, 0.0])
    return kind.random(rng, ()) if kind.nq else np.zeros(0)


def massless(rng: np.random.Generator, seed: int) -> Case | None:
    return planar(rng, seed, massless=True)


# -- singular by construction ---------------------------------------------------------------------------


def cranks(rng: np.random.Generator, seed: int) -> Case | None:
    """One or two stages of equal cranks, hinged in line, under a bar; where a stage is flat its bar may rotate."""
    sheet = Sheet(rng, floating=seed % 2 == 0)
    stages, count = int(rng.integers(1, 3)), int(rng.integers(2, 4))
    joint = (lw.Revolute((0, 0, 1)), lw.Cylindrical((0, 0, 1)), lw.Universal((0, 0, 1), (1, 0, 0)))[seed // 2 % 3]
    carrier, loops = sheet.base, []
    for stage in range(stages):
        length, places = rng.uniform(0.3, 0.8), np.cumsum(rng.uniform(0.3, 1.0, size=count))
        bar, names = f"bar{stage}", [f"crank{stage}{i}" for i in range(count)]
        for name, place in zip(names, places, strict=True):
            sheet.add(name, carrier, (place, 0.0, 0.1 * stage), mass=rng.uniform(0.5, 2.0))
        sheet.add(bar, names[0], (length, 0.0, 0.0), mass=rng.uniform(0.5, 2.0))
        for name, place in zip(names[1:], places[1:], strict=True):
            ends = (sheet.pose(name, (length, 0.0, 0.0)), sheet.pose(bar, (place - places[0], 0.0, 0.0)))
            loops.append(lw.constraints.Loop(f"{name}_pin", joint, name, tuple(ends[0]), bar, tuple(ends[1])))
        carrier = bar
    closed = sheet.build("cranks").with_loops(*loops)
    angles, flat = rng.uniform(0.6, 1.2, size=stages), int(rng.integers(stages))
    drawn = {REGULAR: angles, SINGULAR: angles.copy(), NEARLY: angles.copy()}
    drawn[SINGULAR][flat], drawn[NEARLY][flat] = 0.0, NEARLY_FLAT
    return Case("cranks", closed, tuple(_with_cranks_at(closed, rng, label, at) for label, at in drawn.items()))


def _with_cranks_at(mech: lw.Mechanism, rng: np.random.Generator, label: str, angles: np.ndarray) -> State:
    """All cranks of a stage at one angle, bars level: closed whatever the angle, and moving so."""
    q, v = lw.random_state(mech, rng)
    rates = rng.normal(size=len(angles))
    for body in mech.bodies:
        if not isinstance(body.kind, lw.Floating):
            stage, sign = int(body.link.lstrip("crankb")[0]), -1.0 if body.link.startswith("bar") else 1.0
            q[mech.q_index(body.joint)], v[mech.v_index(body.joint)] = sign * angles[stage], sign * rates[stage]
    return State(label, q, v, rng.normal(size=mech.nv))


def stretched(rng: np.random.Generator, seed: int) -> Case | None:
    """A chain in line, folded over itself here and there, its end held by a ball joint; at rest.  Not those at the ends
    of their reach, which are locked."""
    drawn, is_locked = chain_in_line(rng, seed)
    return None if is_locked else drawn


def chain_in_line(rng: np.random.Generator, seed: int) -> tuple[Case, bool]:
    """A chain in line, its end held by a ball joint; at rest.  And whether it is at one end of its reach: its links all
    point the same way, or one is longer than all others, which point against it."""
    builder, count, root = lw.Builder(), int(rng.integers(3, 6)), "ground"
    if seed % 2 == 0:
        root = "base"
        builder.link("base", 3.0, 0.1 * rng.normal(size=3), (0.2, 0.3, 0.25))
        builder.joint("float", lw.Floating(), "ground", "base", (_rotation(rng), rng.normal(size=3)))
    parent, frame, at = root, np.eye(3), np.zeros(3)  # the line is along x of frame
    steps = []
    for i in range(count):
        own = _rotation(rng)
        axes = tuple(own[1]), tuple(own[2])  # y and z of the line, in the link's frame
        kind = lw.Universal(*axes) if seed % 4 < 2 and i % 2 else lw.Revolute(axes[1])
        builder.link(f"link{i}", rng.uniform(0.5, 2.0), 0.2 * rng.normal(size=3), rng.uniform(0.05, 0.1, size=3))
        builder.joint(f"joint{i}", kind, parent, f"link{i}", (frame.T @ own, frame.T @ at))
        parent, frame, at = f"link{i}", own, np.array([rng.choice([-1.0, 1.0]) * rng.uniform(0.3, 1.0), 0.0, 0.0])
        steps.append(at[0])
    mech = builder.build("stretched")
    q = lw.neutral(mech)
    if root == "base":
        q[:7] = lw.random_state(mech, rng)[0][:7]
    end = oracle.Pose(np.eye(3), frame.T @ at)
    loop = closing(mech, q, "end", lw.Spherical(), (1, 0, 0, 0), mech.n_links - 1, end, 0 if root == "base" else -1)
    state = State(SINGULAR, q, np.zeros(mech.nv), rng.normal(size=mech.nv))
    reach, most = sum(steps), max(map(abs, steps))
    shortest = 2.0 * most - sum(map(abs, steps))
    is_locked = np.isclose(abs(reach), sum(map(abs, steps))) or (shortest > 0.0 and np.isclose(abs(reach), shortest))
    return Case("stretched", mech.with_loops(loop), (state,)), bool(is_locked)


FAMILIES: dict[str, Callable[[np.random.Generator, int], Case | None]] = {
    "general": general,
    "planar": planar,
    "massless": massless,
    "cranks": cranks,
    "stretched": stretched,
}
