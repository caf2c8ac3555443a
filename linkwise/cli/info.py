"""linkwise info: the content of a mechanism file."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click
import numpy as np

import linkwise as lw

from .acting import acting_section
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
    singular = () if mechanism.loops else mechanism.parameters.singular_joints
    remarks = [f"nothing with inertia moves with joint {joint!r}: forward dynamics is refused" for joint in singular]
    facts = _facts(mechanism, [*warnings, *remarks])
    if plot:
        lw.viewer.draw(mechanism, path=plot, labels=True)
    answer.show(facts, _text(mechanism, facts))


# -- facts --------------------------------------------------------------------------------------------


def _facts(mech: lw.Mechanism, warnings: Sequence[str]) -> dict[str, Any]:
    """The content of a mechanism as plain values; a missing bound is None."""
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
        "loops": [
            {"name": x.name, "kind": type(x.kind).__name__.lower(), "link_a": x.link_a, "link_b": x.link_b}
            for x in mech.loops
            if isinstance(x, lw.constraints.Loop)
        ],
        "couplings": [
            {"name": coupling.name, "ratios": dict(coupling.ratios), "offset": coupling.offset}
            for coupling in mech.loops
            if isinstance(coupling, lw.constraints.Coupling) and coupling.drive is None and not coupling.ratios_change
        ],
        "contacts": _contact_facts(mech),
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
    """Its target, and its force as a formula in u (or its activation w), the length l and its rate."""
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


def _joint(mech: lw.Mechanism, index: int) -> dict[str, Any]:
    """Kind, indices, limits and passive forces of a joint."""
    body = mech.bodies[index]
    q, v = mech.q_index(body.joint), mech.v_index(body.joint)
    return {
        "name": body.joint,
        "kind": type(body.kind).__name__.lower(),
        **dataclasses.asdict(body.kind),  # axis, pitch, ...
        "parent": "ground" if body.parent < 0 else mech.link_names[body.parent],
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


# -- text ---------------------------------------------------------------------------------------------


def _text(mech: lw.Mechanism, facts: dict[str, Any]) -> Iterable[str]:
    counts = ((len(facts["loops"]), "loop"), (len(facts["couplings"]), "coupling"))
    loops = "".join(f", {count} {noun}" + "s" * (count > 1) for count, noun in counts if count)
    yield click.style(mech.name, bold=True) + (
        f": {mech.n_links} moving link{'s' * (mech.n_links != 1)}, nq = {mech.nq}, nv = {mech.nv}{loops}, "
        f"{facts['mass']:.6g} kg moving, gravity {_vector(mech.gravity)} m/s^2"
    )
    yield from section("tree", _tree(mech))
    rows = [_joint_row(joint) for joint in facts["joints"]]
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
        tied = []
        for coupling in facts["couplings"]:  # "6 hip - knee = 0"
            terms = [
                f"{'-' if r < 0 else '+'} {'' if abs(r) == 1.0 else f'{abs(r):g} '}{joint}"
                for joint, r in coupling["ratios"].items()
            ]
            tied.append((coupling["name"], f"{' '.join(terms).removeprefix('+ ')} = {coupling['offset']:g}"))
        yield from section("couplings", table(None, tied))
    if mech.contact_pairs:
        yield from section("contact", _contact_lines(mech))
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


def _joint_row(joint: dict[str, Any]) -> tuple[str, ...]:
    """Name, kind, axes, bounds and passive forces, as text."""
    axes = [_axis(joint[name]) for name in ("axis", "axis1", "axis2", "normal") if name in joint]
    pitch = f", pitch {joint['pitch']:g}" if "pitch" in joint else ""
    ranges = [
        "free" if low is None and high is None else f"{_number(low, '-inf')} .. {_number(high, 'inf')}"
        for low, high in zip(joint["lower"], joint["upper"], strict=True)
    ]
    velocity, effort = (
        " ".join(dict.fromkeys(_number(x, "-") for x in joint[name])) for name in ("velocity", "effort")
    )
    passive = ("armature", "damping", "friction", "stiffness")
    extras = [f"{name} {_vector(joint[name])}" for name in passive if any(joint[name])]
    if joint["mimic"]:
        extras.append("= {ratio:g} * {joint} + {offset:g}".format(**joint["mimic"]))
    bounds = ", ".join(dict.fromkeys(ranges)), velocity, effort
    return joint["name"], joint["kind"], ", ".join(axes) + pitch, *bounds, ", ".join(extras)


def _axis(axis: Sequence[float]) -> str:
    """A letter for a coordinate axis, otherwise numbers."""
    for letter, unit in zip("xyz", np.eye(3), strict=True):
        if np.array_equal(np.abs(axis), unit):
            return letter if np.sum(axis) > 0 else f"-{letter}"
    return _vector(axis)


def _number(value: float | None, missing: str) -> str:
    return missing if value is None else f"{value:.4g}"


def _vector(values: Any) -> str:
    numbers = [f"{value + 0.0:.4g}" for value in values]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"


def _contact_facts(mech: lw.Mechanism) -> list[dict[str, Any]]:
    """Every pair of shapes that touch, with its law; infinite numbers are None."""
    return [
        {
            "shapes": list(pair.shapes),
            "acts": mech.forces.acts("contact", pair.name),
            "step": pair.step if math.isfinite(pair.step) else None,
            **{name: x if math.isfinite(x) else None for name, x in dataclasses.asdict(pair.law).items()},
        }
        for pair in mech.contact_pairs
    ]


def _contact_lines(mech: lw.Mechanism) -> Iterator[str]:
    """One line for each shape that others touch."""

    def extremes(ordered: list[float]) -> str:
        return " to ".join(dict.fromkeys(f"{x:.3g}" for x in (ordered[0], ordered[-1])))

    for touched in dict.fromkeys(pair.shape_b for pair in mech.contact_pairs):
        pairs = [pair for pair in mech.contact_pairs if pair.shape_b == touched]
        idle = sum(not mech.forces.acts("contact", pair.name) for pair in pairs)
        shape, parts = mech.contact.shape(touched), sum(pair.shape_b == touched for pair in mech.contact.parts)
        counts = f"{len(pairs)} shape{'s' * (len(pairs) != 1)} in {parts} point{'s' * (parts != 1)}"
        friction, stiffness = (sorted(getattr(pair.law, name) for pair in pairs) for name in ("friction", "stiffness"))
        line = f"{touched} ({shape.kind} on {shape.link}): {counts}, friction {extremes(friction)}"
        line += f", stiffness {extremes(stiffness)} N/m"
        line += f", explicit steps up to {min(pair.step for pair in pairs):g} s"
        yield line + (f"; {idle} switched off" if idle else "")
