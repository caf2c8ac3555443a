"""The seven levels of an expression on a mechanism (rodriguez1992 Section IX, Fig. 3), as text."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping

from ...mechanism import Mechanism
from ..recursions.schedule import Sweep
from ..recursions.tree import Tree, build_tree
from ..scalar import is_constant
from ..spatial import Rotation, Transform, Translation
from .evaluate import sweeps_of
from .expression import Bias, Expression, Operator, Vector, product
from .identities import DEFINITIONS, SmallInverse, expanded, is_symmetric
from .matrices import COLUMN, depth_of, structured
from .origins import origins_matter
from .to_recursions import RECURSIONS, Recursions, Step

MEANING = {
    "H": "link forces to joint forces",
    "phi": "forces on each link and on everything it carries, moved rigidly to the link",
    "psi": "phi with joints that give way: what passes them of each force (Kalman transition)",
    "E_phi": "forces of each link, moved to its parent",
    "E_psi": "forces of each link that pass its joint, moved to its parent",
    "M": "inertia of each link",
    "P": "articulated inertia: of each link and all it carries, its outer joints giving way",
    "P_plus": "articulated inertia as the parent feels it, the link's own joint giving way",
    "D": "articulated inertia about each joint's own axes, with its rotor",
    "D_half": "lower triangular square root of D, joint by joint: D = D_half @ D_half.T",
    "R": "rotor inertia of each joint",
    "G": "Kalman gain: link forces per joint force",
    "K": "Kalman gain moved to the parent",
    "tau": "the part of a link force that its joint takes up",
    "tau_bar": "the part of a link force that passes a joint that gives way",
    "C": "composite inertia: of each link and all it carries, joints locked",
    "Omega": "motions of the links per force on them = psi.T @ H.T @ D.inv @ H @ psi; diagonal blocks Y",
    "Kt_Omega": "motions of the parents, as the gains see them = K.T @ Omega",
    "A": "a motion of one link; A.T the force on that link",
    "B": "a force on one link; B.T the motion of that link",
    "a": "bias acceleration of each link",
    "b": "bias (gyroscopic) force of each link",
    "g": "acceleration of the ground that stands for gravity",
}
WIDTH = 110

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


def explain(
    expression: Expression,
    mech: Mechanism,
    operations: Mapping[str, int] | None = None,
    tree: Tree | None = None,
) -> str:
    """The expression, its operators, sweeps, recursions, link transitions, joint crossings and coordinate transforms.

    operations   the scalar operations of each sweep, by its label
    tree         the tree as it was traced, its frames and inputs; by default one of the mechanism's own numbers
    """
    depth = depth_of(mech)
    inverted = [part.of for part in expanded(expression).walk() if isinstance(part, SmallInverse)]
    wholes = (*inverted, expression)  # the small matrices that are inverted are computed first
    sweeps = [sweep for whole in wholes for sweep in _sweeps(whole, depth)]
    named = [form for whole in wholes for form in (whole, _plain(whole), _computed(whole, depth))]
    tasks = [(number, step) for number, sweep in enumerate(sweeps, 1) for step in _unique(sweep.tasks)]
    tree = tree or build_tree(mech, at_user_origins=origins_matter(expression))
    levels = {
        "expression": list(_forms(expression, inverted, depth)),
        "operators": [f"{name:8} {MEANING[name]}{_defined(name)}" for name in _names(named)],
        "sweeps": [f"{number}. {line}" for number, line in enumerate(_priced(sweeps, operations or {}), 1)],
        "recursions": [f"{number}. {step.label}: {RECURSIONS[step.op][1]}" for number, step in tasks],
        "link transitions": [_TRANSITIONS[op] for op in dict.fromkeys(s.op for _, s in tasks) if op in _TRANSITIONS],
        "joint crossings": list(_kinds_of_joints(tree)),
        "coordinate transforms (parent's internal frame to the link's)": [
            f"{link.name}: {describe(tree, i)}" for i, link in enumerate(tree.links)
        ],
    }
    text: list[str] = []
    for number, (title, lines) in enumerate(levels.items(), 1):
        text += [f"Level {number}, {title}", *(part for line in lines or ["none"] for part in _wrapped(line))]
    return "\n".join(text)


def _forms(expression: Expression, inverted: Iterable[Expression], depth: int) -> Iterable[str]:
    """The expression as given, written out, and as it is computed, where these differ."""
    yield str(expression)
    if str(_plain(expression)) != str(expression):
        yield f"= {_plain(expression)}"
    yield from _structure("", expression, depth)
    for small in inverted:
        yield from _structure("inside the inverse, ", small, depth)


def _structure(where: str, expression: Expression, depth: int) -> Iterable[str]:
    computed = _computed(expression, depth)
    if computed != _plain(expression):
        yield f"{where}computed as {computed}" + (", on and above the diagonal" if is_symmetric(expression) else "")


def _plain(expression: Expression) -> Expression:
    return expanded(expression, keep=("tau_bar",))


def _computed(expression: Expression, depth: int) -> Expression:
    """What the recursions are made of: for a matrix, with composite bodies and mobilities where they pay."""
    if expression.is_vector:
        return _plain(expression)
    return structured(expression, is_symmetric(expression), depth)


def _sweeps(expression: Expression, depth: int) -> list[Sweep[Step]]:
    computed, recursions = _computed(expression, depth), Recursions()
    column = computed if expression.is_vector else product(computed, Vector(COLUMN, expression.domain))
    return sweeps_of(recursions.steps_for(recursions.of(column)))


def _wrapped(line: str) -> list[str]:
    """Lines of at most WIDTH columns, broken before an operator rather than after it."""
    joined = re.sub(r" ([-+@*]) (?=\S)", " \\1\N{NO-BREAK SPACE}", line)
    joined = joined.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    parts = textwrap.wrap(
        joined, WIDTH, initial_indent="  ", subsequent_indent="      ", break_long_words=False, break_on_hyphens=False
    )
    return [part.replace("\N{NO-BREAK SPACE}", " ") for part in parts]


def _priced(sweeps: Iterable[Sweep], operations: Mapping[str, int]) -> Iterable[str]:
    """Direction, tasks and operations of each sweep; sweeps that do the same share one count."""
    labels = [
        (", ".join(dict.fromkeys(step.label for step in sweep.tasks)), sweep.direction.replace("_", " "))
        for sweep in sweeps
    ]
    for what, direction in labels:
        cost = operations.get(f"{what}, {direction}")
        alike = labels.count((what, direction))
        shared = f" in the {alike} sweeps like it" if alike > 1 else ""
        yield f"{direction}: {what}" + (f" ({cost} operations{shared})" if cost else "")


def _names(expressions: Iterable[Expression]) -> list[str]:
    parts = [part for expression in expressions for part in expression.walk()]
    names = {part.name.removesuffix("_inv") for part in parts if isinstance(part, (Operator, Bias))}
    return [name for name in MEANING if name in names]


def _defined(name: str) -> str:
    return f" = {DEFINITIONS[name][0]}, {DEFINITIONS[name][1]}" if name in DEFINITIONS else ""


def _unique(steps: Iterable[Step]) -> list[Step]:
    return list({step.op: step for step in steps}.values())


def _kinds_of_joints(tree: Tree) -> Iterable[str]:
    """One line per kind of joint: how many, and what H and D look like."""
    kinds: dict[str, list[str]] = {}
    for body in tree.mechanism.bodies:
        kinds.setdefault(type(body.kind).__name__.lower(), []).append(body.joint)
    for kind, names in kinds.items():
        joint = tree.mechanism.bodies[tree.mechanism.body_index(names[0])].kind
        rows = "" if joint.span is None else f", H* picks components {list(joint.span)} of [omega; v]"
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        yield f"{kind} ({len(names)}: {shown}): D is {joint.nv} x {joint.nv}{rows}"


def describe(tree: Tree, i: int) -> str:
    """The steps across joint i with its coordinates left open: Tx(0.3) Rx(90 deg) Rz(q)."""
    link = tree.links[i]
    joint = type(link.joint).__name__.lower()
    offset = link.spin + link.quarter_turns * math.pi / 2
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
