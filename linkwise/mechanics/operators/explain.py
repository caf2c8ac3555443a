"""Text of a plan: the seven levels of rodriguez1992 Section IX (Fig. 3), for one mechanism."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..recursions.loops import AROUND_THE_LOOPS
from ..recursions.tree import Tree
from ..scalar import is_constant
from ..spatial import Rotation, Transform, Translation
from .algebra import RECORDS
from .expression import Bias, Expression, Operator
from .plan import Plan
from .record import Step
from .steps import sweep_name
from .structure import written_out

WIDTH = 110


@dataclass(frozen=True)
class Computation:
    """An expression for one mechanism, the equal form that is evaluated, and its plan."""

    expression: Expression
    form: Expression
    plan: Plan


def explain(
    computed: Sequence[Computation],
    tree: Tree,
    operations: Mapping[str, int] | None = None,
    saved: str = "",
) -> str:
    """Expressions, their operators, sweeps, recursions, link transitions, joints and coordinate transforms.

    computed     expressions and their plans, in the order of execution
    tree         the tree of the computation
    operations   scalar operations of each sweep, by its label
    saved        savings by simplification, in words
    """
    sweeps = [sweep for computation in computed for sweep in computation.plan.sweeps]
    labels = [(sweep.direction.replace("_", " "), sweep_name(sweep)) for sweep in sweeps]
    tasks = [(number, step) for number, sweep in enumerate(sweeps, 1) for step in _unique(sweep.tasks)]
    walks = _unique(step for computation in computed for step in computation.plan.walks)
    actions = list(dict.fromkeys([*(step.action for _, step in tasks), *(step.action for step in walks)]))
    shown = [
        form
        for computation in computed
        for form in (computation.expression, written_out(computation.form), *_forms(computation.plan))
    ]
    levels = {
        "expression": [line for computation in computed for line in _written(computation, saved)],
        "operators": list(_meanings(shown)),
        "sweeps": [f"{number}. {line}" for number, line in enumerate(_priced(labels, operations or {}), 1)]
        + _loop_lines(walks, operations or {}),
        "recursions": [f"{number}. {step.action.shown}: {step.action.recursion}" for number, step in tasks]
        + [f"{AROUND_THE_LOOPS}, {step.action.shown}: {step.action.recursion}" for step in walks],
        "link transitions": [action.transition for action in actions if action.transition],
        "joint kinematics": list(_kinds_of_joints(tree)),
        "coordinate transforms (parent's internal frame to the link's)": [
            f"{link.name}: {describe(tree, i)}" for i, link in enumerate(tree.links)
        ],
    }
    text: list[str] = []
    for number, (title, lines) in enumerate(levels.items(), 1):
        text += [f"Level {number}, {title}", *(part for line in lines or ["none"] for part in _wrapped(line))]
    return "\n".join(text)


def _written(computation: Computation, saved: str) -> Iterable[str]:
    """The expression as given, simplified, expanded, and as computed, where these differ."""
    yield str(computation.expression)
    if saved:
        yield f"simplified to {computation.form}: {saved}"
    plan, plain = computation.plan, written_out(computation.form)
    if str(plain) not in (str(computation.expression), str(computation.form) if saved else ""):
        yield f"= {plain}"
    *inside, last = _computed(plan)
    yield from (f"inside the inverse, {line}, then eliminated" for line in inside)
    if plan.parts and not plan.own_sweeps or plan.computed != plain:
        yield last


def _computed(plan: Plan) -> list[str]:
    """One line for every plan with sweeps, in the order of execution, with the use of its result."""
    lines = [line for part in plan.parts for line in _computed(part)]
    if plan.own_sweeps or not plan.parts:
        return [*lines, ", ".join([f"computed as {plan.computed}", *plan.notes])]
    return [*lines[:-1], ", ".join([lines[-1], *plan.notes])]


def _forms(plan: Plan) -> Iterable[Expression]:
    yield plan.computed
    for part in plan.parts:
        yield from _forms(part)


def _wrapped(line: str) -> list[str]:
    """Lines of at most WIDTH columns, broken before an operator rather than after it."""
    joined = re.sub(r" ([-+@*]) (?=\S)", " \\1\N{NO-BREAK SPACE}", line)
    joined = joined.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    parts = textwrap.wrap(
        joined, WIDTH, initial_indent="  ", subsequent_indent="      ", break_long_words=False, break_on_hyphens=False
    )
    return [part.replace("\N{NO-BREAK SPACE}", " ") for part in parts]


def _priced(labels: Sequence[tuple[str, str]], operations: Mapping[str, int]) -> Iterable[str]:
    """Direction, tasks and operations of each sweep; sweeps with equal tasks share one count."""
    for direction, label in labels:
        cost = operations.get(f"{label}, {direction}")
        alike = labels.count((direction, label))
        shared = f" in the {alike} sweeps like it" if alike > 1 else ""
        yield f"{direction}: {label}" + (f" ({cost} operations{shared})" if cost else "")


def _loop_lines(walks: Sequence[Step], operations: Mapping[str, int]) -> list[str]:
    """Lines on the steps around loops and their operations."""
    cost = operations.get(AROUND_THE_LOOPS)
    label = ", ".join(step.action.shown for step in walks)
    return [f"{AROUND_THE_LOOPS}: {label}" + (f" ({cost} operations)" if cost else "")] if walks else []


def _meanings(expressions: Iterable[Expression]) -> Iterable[str]:
    """The displayed operators, each with its meaning and definition."""
    parts = [part for expression in expressions for part in expression.walk() if isinstance(part, (Operator, Bias))]
    names = {part.name.removesuffix("_inv") for part in parts}
    records = {part.name: part.record for part in parts}
    for name in sorted(names, key=_place):
        record = RECORDS.get(name) or records[name]
        defined = f" = {record.definition}, {record.source}" if record.definition is not None else ""
        yield f"{name:8} {record.meaning}{defined}"


def _place(name: str) -> int:
    return list(RECORDS).index(name) if name in RECORDS else len(RECORDS)


def _unique(steps: Iterable[Step]) -> list[Step]:
    return list({step.action: step for step in steps}.values())


def _kinds_of_joints(tree: Tree) -> Iterable[str]:
    """One line per kind of joint: number, and structure of H and D."""
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
    link, mimic = tree.links[i], tree.mechanism.bodies[i].mimic
    joint = type(link.joint).__name__.lower()
    coordinate = f"{mimic.ratio:g} q of {mimic.joint} {mimic.offset:+g}" if mimic else "q"
    offset = link.spin + link.quarter_turns * math.pi / 2
    rotated = f" + {math.degrees(offset):.6g} deg" if offset else ""
    return " ".join([*_factors(link.place), f"{joint}({coordinate}{rotated})"])


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
