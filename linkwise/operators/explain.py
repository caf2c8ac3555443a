"""The seven levels of an expression on a mechanism (rodriguez1992 Section IX, Fig. 3), as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ..mechanism import Mechanism
from ..recursions.tree import Tree, plant
from ..scalar import is_constant
from ..spatial import Rotation, Transform, Translation
from .evaluate import sweeps_of
from .expression import SCALAR, Expression, Operator, Vector, product
from .identities import DEFINITIONS, expanded, is_symmetric
from .matrices import COLUMN, depth_of, structured
from .to_recursions import RECURSIONS, Recursions, Step

MEANING = {
    "H": "link forces to joint forces",
    "phi": "forces of all outer links, carried rigidly to each link",
    "psi": "the same across joints that give way (Kalman transition)",
    "E_phi": "forces of each link to its parent",
    "E_psi": "the same across the joint that gives way",
    "M": "inertia of each link",
    "P": "articulated inertia of each link",
    "P_plus": "articulated inertia seen from behind the joint",
    "D": "articulated inertia along the joint",
    "D_inv": "its inverse",
    "R": "rotor inertia of each joint",
    "G": "Kalman gain",
    "K": "gain carried to the parent",
    "tau": "projection onto the joint",
    "tau_bar": "what passes a joint that gives way",
    "A": "a motion of one link",
    "B": "a force on one link",
}

_TRANSITIONS = {
    "phi": "phi(parent, i): the link's force, moved to the parent's origin and axes",
    "phi.T": "phi*(parent, i): the parent's motion, moved to the link's origin and axes",
    "psi": "psi(parent, i) = phi(parent, i) tau_bar(i): cross the joint, then move",
    "psi.T": "psi*(parent, i) = tau_bar*(i) phi*(parent, i): move, then cross the joint",
    "riccati": "P+ moved to the parent: phi(parent, i) P+(i) phi*(parent, i)",
    "composite": "C moved to the parent: phi(parent, i) C(i) phi*(parent, i)",
    "mobility": "Y moved to the link: phi*(parent, i) Y(parent) phi(parent, i)",
    "spin": "omega turned into the link's axes",
}


def explain(expression: Expression, mech: Mechanism, operations: Mapping[str, int] | None = None) -> str:
    """The expression, its operators, sweeps, recursions, link transitions, joint crossings and coordinate transforms.

    ``operations`` gives the scalar operations of each sweep, by its label.
    """
    steps = _steps(expression, depth_of(mech))
    sweeps = sweeps_of(steps)
    lines = ["Level 1, expression", f"  {expression}"]
    plain = expanded(expression, keep=("tau_bar",))
    if str(plain) != str(expression):
        lines.append(f"  = {plain}")
    lines.append("Level 2, operators")
    lines += [f"  {name:8} {MEANING.get(name, '')}{_defined(name)}" for name in _operators(plain, expression)]
    lines.append("Level 3, sweeps")
    for number, sweep in enumerate(sweeps, 1):
        label = ", ".join(dict.fromkeys(step.label for step in sweep.tasks))
        cost = (operations or {}).get(f"{label}, {sweep.direction.replace('_', ' ')}")
        lines.append(
            f"  {number}. {sweep.direction.replace('_', ' ')}: {label}" + (f" ({cost} operations)" if cost else "")
        )
    lines.append("Level 4, recursions")
    for number, sweep in enumerate(sweeps, 1):
        lines += [f"  {number}. {step.label}: {RECURSIONS[step.op][1]}" for step in _unique(sweep.tasks)]
    lines.append("Level 5, link transitions")
    lines += [
        f"  {_TRANSITIONS[op]}" for op in dict.fromkeys(s.op for w in sweeps for s in w.tasks) if op in _TRANSITIONS
    ]
    tree = plant(mech)
    lines.append("Level 6, joint crossings")
    lines += [f"  {line}" for line in _crossings(tree)]
    lines.append("Level 7, coordinate transforms (parent's internal frame to the link's)")
    lines += [f"  {link.name}: {describe(tree, i)}" for i, link in enumerate(tree.links)]
    return "\n".join(lines)


def _steps(expression: Expression, depth: int) -> list[Step]:
    recursions = Recursions()
    if expression.domain == SCALAR:
        value = recursions.of(expression)
    else:
        plain = structured(expression, is_symmetric(expression), depth)
        value = recursions.of(product(plain, Vector(COLUMN, expression.domain)))
    return recursions.steps_for(value)


def _operators(*expressions: Expression) -> list[str]:
    names = dict.fromkeys(p.name for e in expressions for p in e.walk() if isinstance(p, Operator))
    return sorted(names, key=lambda name: list(MEANING).index(name) if name in MEANING else len(MEANING))


def _defined(name: str) -> str:
    return f" = {DEFINITIONS[name][0]}, {DEFINITIONS[name][1]}" if name in DEFINITIONS else ""


def _unique(steps: Iterable[Step]) -> list[Step]:
    return list({step.op: step for step in steps}.values())


def _crossings(tree: Tree) -> Iterable[str]:
    """One line per kind of joint: how many, and what H and D look like."""
    kinds: dict[str, list[str]] = {}
    for body in tree.mechanism.bodies:
        kinds.setdefault(type(body.kind).__name__.lower(), []).append(body.joint)
    for kind, names in kinds.items():
        joint = tree.mechanism.bodies[tree.mechanism.body_index(names[0])].kind
        rows = "" if joint.span is None else f", H* picks components {list(joint.span)} of [omega; v]"
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        yield f"{kind} ({len(names)}: {shown}): D is {joint.nv} x {joint.nv}{rows}"


def describe(tree: Tree, i: int) -> str:
    """The steps across joint i with its coordinates left open: Tx(0.3) Rx(90 deg) Rz(q)."""
    link = tree.links[i]
    joint = type(link.joint).__name__.lower()
    offset = link.spin + link.quarters * math.pi / 2
    turned = f" + {math.degrees(offset):.6g} deg" if offset else ""
    return " ".join([*_factors(link.place), f"{joint}(q{turned})"])


def _factors(transform: Transform) -> Iterable[str]:
    for factor in transform.factors:
        if isinstance(factor, Translation):
            for axis, value in zip("xyz", factor.shift, strict=True):
                if not is_constant(value) or value != 0.0:
                    yield f"T{axis}({value:.6g})" if is_constant(value) else f"T{axis}(...)"
        elif isinstance(factor, Rotation):
            yield f"R{'xyz'[factor.axis]}({math.degrees(math.atan2(factor.s, factor.c)):.6g} deg)"
        else:
            yield "R(3x3)"
