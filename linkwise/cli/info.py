"""linkwise info: what is in a mechanism file."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import click
import numpy as np

import linkwise as lw

from .acting import acting_section
from .contact import contact_facts, contact_lines
from .files import Picture
from .mechanism import Source
from .screen import Answer, section, table
from .signatures import command
from .tables import Units

BOUNDS = ("lower", "upper", "velocity", "effort")


@command("What is in a mechanism.")
def info(source: Source, answer: Answer, plot: Picture | None = None) -> None:
    """Tree, joints, limits, masses, frames, loops and warnings of a mechanism.

    plot   a drawing at the initial configuration: .png, .svg or .pdf

    \b
    linkwise info robot.urdf
    linkwise info builtin:loader --plot loader.png --json
    """
    mechanism, warnings = source.loaded
    facts = facts_of(mechanism, [*warnings, *_remarks(mechanism)])
    if plot:
        lw.viewer.draw(mechanism, path=plot, labels=True)
    answer.show(facts, _text(mechanism, facts))


# -- facts --------------------------------------------------------------------------------------------


def facts_of(mech: lw.Mechanism, warnings: Sequence[str]) -> dict[str, Any]:
    """Everything that is shown, as plain values; a bound that is not there is None."""
    return {
        "name": mech.name,
        "nq": mech.nq,
        "nv": mech.nv,
        "gravity": mech.gravity.tolist(),
        "mass": float(mech.parameters.masses.sum()),
        "joints": [_joint(mech, index) for index in range(mech.n_links)],
        "links": [
            {"name": body.link, "mass": body.mass, "com": body.com.tolist(), "inertia": body.inertia.tolist()}
            for body in mech.bodies
        ],
        "frames": [{"name": frame.name, "link": frame.link} for frame in mech.frames.values()],
        "loops": [_loop(loop) for loop in mech.loops if isinstance(loop, lw.constraints.Loop)],
        "couplings": [
            {"name": coupling.name, "ratios": dict(coupling.ratios), "offset": coupling.offset}
            for coupling in mech.loops
            if isinstance(coupling, lw.constraints.Coupling) and coupling.drive is None and not coupling.ratios_change
        ],
        "contacts": contact_facts(mech),
        "independent": mech.metadata.independent_joints,
        "timestep": mech.metadata.timestep,
        "integrator": mech.metadata.integrator,
        "acting": mech.forces.active,
        "actuators": [_actuator(actuator) for actuator in mech.forces.actuators],
        "not_acting": [dataclasses.asdict(note) | {"count": note.count} for note in mech.notes],
        "postures": {name: q.tolist() for name, q in mech.postures.items()},
        "groups": {name: list(joints) for name, joints in mech.metadata.groups.items()},
        "warnings": list(warnings),
    }


def _actuator(actuator: lw.forces.Actuator) -> dict[str, Any]:
    """What it drives, and its force as a formula in u, or its activation w, the length l and its rate."""
    terms = ("", " l", " dl/dt")
    gain = " + ".join(f"{x:g}{t}" for x, t in zip(actuator.gain, terms, strict=True) if x)
    bias = "".join(f" {'-' if x < 0 else '+'} {abs(x):g}{t}" for x, t in zip(actuator.bias, terms, strict=True) if x)
    several = " + " in gain
    law = f"{'(' + gain + ')' if several else gain or '0'} {'w' if actuator.has_activation else 'u'}{bias}"
    dynamics = {"integrator": "; dw/dt = u", "none": ""}.get(
        actuator.dynamics, f"; dw/dt = (u - w) / {actuator.time_constant:g}"
    )
    gear = [x for x in actuator.gear if x] or [0.0]
    bounds = "" if actuator.ctrl_range is None else f"{actuator.ctrl_range[0]:g} .. {actuator.ctrl_range[1]:g}"
    return {
        "name": actuator.name,
        "drives": f"{actuator.transmission} {actuator.target}" + ("" if gear == [1.0] else f", gear {_vector(gear)}"),
        "law": law + dynamics,
        "range": bounds or "free",
    }


def _loop(loop: lw.constraints.Loop) -> dict[str, Any]:
    kind = type(loop.kind).__name__.lower()
    return {"name": loop.name, "kind": kind, "link_a": loop.link_a, "link_b": loop.link_b}


def _joint(mech: lw.Mechanism, index: int) -> dict[str, Any]:
    body = mech.bodies[index]
    q, v = mech.q_index(body.joint), mech.v_index(body.joint)
    return {
        "name": body.joint,
        "kind": type(body.kind).__name__.lower(),
        **dataclasses.asdict(body.kind),  # axis, pitch, ...
        "parent": _carrier(mech, body.parent),
        "child": body.link,
        "q": [q.start, q.stop],
        "v": [v.start, v.stop],
        **{bound: [x if math.isfinite(x) else None for x in getattr(body.limits, bound)] for bound in BOUNDS},
        "armature": list(body.armature),
        "damping": list(body.damping),
        "friction": list(body.friction),
        "stiffness": list(body.stiffness),
        "rest": list(body.rest),
        "mimic": dataclasses.asdict(body.mimic) if body.mimic else None,
    }


def _carrier(mech: lw.Mechanism, body: int) -> str:
    return "ground" if body < 0 else mech.link_names[body]


def _remarks(mech: lw.Mechanism) -> Iterable[str]:
    """What will stand in the way later."""
    for joint in () if mech.loops else mech.parameters.singular_joints:
        yield f"nothing with inertia moves with joint {joint!r}: forward dynamics is refused"


# -- text ---------------------------------------------------------------------------------------------


def _text(mech: lw.Mechanism, facts: dict[str, Any]) -> Iterable[str]:
    counts = ((len(facts["loops"]), "loop"), (len(facts["couplings"]), "coupling"))
    loops = "".join(f", {count} {noun}" + "s" * (count > 1) for count, noun in counts if count)
    yield click.style(mech.name, bold=True) + (
        f": {mech.n_links} moving link{'s' * (mech.n_links != 1)}, nq = {mech.nq}, nv = {mech.nv}{loops}, "
        f"{facts['mass']:.6g} kg moving, gravity {_vector(mech.gravity)} m/s^2"
    )
    yield from section("tree", _tree(mech))
    rows = [(j["name"], j["kind"], _direction(j), *_bounds(j), _extras(j)) for j in facts["joints"]]
    unit = Units().names(mech)
    bounds = (f"range ({unit['q']})", f"velocity ({unit['v']})", f"effort ({unit['tau']})")
    yield from section("joints", table(("joint", "kind", "axis", *bounds, "others (SI units)"), rows))
    masses = [
        (b.link, f"{b.mass:.6g}", _vector(b.com), _vector(b.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]))
        for b in mech.bodies
    ]
    yield from section(
        "links, with what is welded to them",
        table(("link", "mass (kg)", "centre of mass (m)", "inertia about it (kg m^2): xx yy zz xy xz yz"), masses),
    )
    welded = [(f["name"], "on " + f["link"]) for f in facts["frames"] if f["name"] not in ("ground", *mech.link_names)]
    if welded:
        yield from section("welded frames", table(None, welded))
    if facts["loops"]:
        closing = [(x["name"], x["kind"], f"{x['link_a']} to {x['link_b']}") for x in facts["loops"]]
        yield from section("loops", table(("joint", "kind", "closes"), closing))
    if facts["couplings"]:
        tied = [(x["name"], f"{_sum(x['ratios'])} = {x['offset']:g}") for x in facts["couplings"]]
        yield from section("couplings", table(None, tied))
    if mech.contact_pairs:
        yield from section("contact", contact_lines(mech))
    if facts["independent"] is not None:
        yield from section("meant to be independent", [", ".join(facts["independent"]) or "no joint"])
    if mech.postures:
        yield from section("postures", table(None, [(name, _vector(q)) for name, q in mech.postures.items()]))
    if mech.metadata.groups:
        yield from section(
            "groups", table(None, [(name, ", ".join(members)) for name, members in mech.metadata.groups.items()])
        )
    if mech.forces.actuators:
        driven = [(x["name"], x["drives"], x["law"], x["range"]) for x in facts["actuators"]]
        yield from section("actuators", table(("actuator", "drives", "force, with u the control input", "u"), driven))
    yield from acting_section(mech, mech.notes, "acting in simulate, rollout and linearize")
    if facts["warnings"]:
        yield from section("warnings", facts["warnings"])


def _tree(mech: lw.Mechanism) -> Iterable[str]:
    """The links as an indented tree, each with the joint that moves it."""
    yield "ground"
    roots = [index for index, parent in enumerate(mech.tree.parents) if parent < 0]
    waiting = [(index, "", index == roots[-1]) for index in reversed(roots)]
    while waiting:
        index, indent, last = waiting.pop()
        body, children = mech.bodies[index], mech.tree.children[index]
        yield f"{indent}{'`-' if last else '|-'} {body.link}  ({body.joint}, {type(body.kind).__name__.lower()})"
        below = indent + ("   " if last else "|  ")
        waiting += [(child, below, child == children[-1]) for child in reversed(children)]


def _direction(joint: dict[str, Any]) -> str:
    """Axes as letters where they are coordinate axes; the pitch of a screw."""
    axes = [_axis(joint[name]) for name in ("axis", "axis1", "axis2", "normal") if name in joint]
    return ", ".join(axes) + (f", pitch {joint['pitch']:g}" if "pitch" in joint else "")


def _axis(axis: Sequence[float]) -> str:
    for letter, unit in zip("xyz", np.eye(3), strict=True):
        if np.array_equal(np.abs(axis), unit):
            return letter if np.sum(axis) > 0 else f"-{letter}"
    return _vector(axis)


def _bounds(joint: dict[str, Any]) -> tuple[str, str, str]:
    ranges = [
        "free" if low is None and high is None else f"{_number(low, '-inf')} .. {_number(high, 'inf')}"
        for low, high in zip(joint["lower"], joint["upper"], strict=True)
    ]
    velocity, effort = (
        " ".join(dict.fromkeys(_number(x, "-") for x in joint[name])) for name in ("velocity", "effort")
    )
    return ", ".join(dict.fromkeys(ranges)), velocity, effort


def _extras(joint: dict[str, Any]) -> str:
    words = [
        f"{name} {_vector(joint[name])}"
        for name in ("armature", "damping", "friction", "stiffness")
        if any(joint[name])
    ]
    if joint["mimic"]:
        words.append("= {ratio:g} * {joint} + {offset:g}".format(**joint["mimic"]))
    return ", ".join(words)


def _sum(ratios: dict[str, float]) -> str:
    """ "6 hip - knee"."""
    terms = [f"{'-' if r < 0 else '+'} {'' if abs(r) == 1.0 else f'{abs(r):g} '}{joint}" for joint, r in ratios.items()]
    return " ".join(terms).removeprefix("+ ")


def _number(value: float | None, missing: str) -> str:
    return missing if value is None else f"{value:.4g}"


def _vector(values: Any) -> str:
    numbers = [f"{value + 0.0:.4g}" for value in values]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"
