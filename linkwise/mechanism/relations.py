"""Relations of coordinates as text, for files: ``q["lift"] - 0.01*(1.0 - cos(q["cam"]))``.

A relation is a function of {joint name: coordinate}. Called with coordinates that record their operations, it yields
lines of text: each line but the last names a part that is used several times, the last line is the value. The reader
makes an equal function of these lines.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from linkwise.mechanics import scalar
from linkwise.mechanism.checks import MechanismError, did_you_mean

FUNCTIONS: dict[str, Callable[..., Any]] = {name: getattr(scalar, name) for name in scalar.__all__}
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {ast.Lt: operator.lt, ast.Gt: operator.gt}
COORDINATES = "q"
#: Text without brackets around it binds at least as strongly as this.
SUM, PRODUCT, SIGN, POWER, ATOM = range(5)


@dataclass(frozen=True)
class Formula:
    """A relation of coordinates as text: plain arithmetic, numbers, ``q["joint"]``, or the joint's name alone where
    that is a name of Python, and ``sin``, ``cos``, ``sqrt``, ``atan2``, ``select`` of ``linkwise.extend.scalar``.

    lines   the last one is the value, those before it name parts: ``x1 = cos(q["cam"])``
    """

    lines: Any

    def __post_init__(self) -> None:
        lines = (self.lines,) if isinstance(self.lines, str) else tuple(self.lines)
        object.__setattr__(self, "lines", lines)
        if not lines or not all(isinstance(line, str) for line in lines):
            raise MechanismError(f"a formula is a line of text, or several, not {self.lines!r}")
        for name, expression in self._parsed:
            _check(expression, name or lines[-1])

    @cached_property
    def _parsed(self) -> list[tuple[str, ast.expr]]:
        assignments: list[tuple[str, ast.expr]] = []
        for number, line in enumerate(self.lines, 1):
            try:
                (statement,) = ast.parse(line.strip()).body
            except (SyntaxError, ValueError) as error:
                raise MechanismError(f"the formula {line!r} cannot be read: {error}") from None
            if number == len(self.lines) and isinstance(statement, ast.Expr):
                assignments.append(("", statement.value))
            elif number < len(self.lines) and isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                (target,) = statement.targets
                assignments.append((getattr(target, "id", "?"), statement.value))
            else:
                raise MechanismError(
                    f"line {number} of a formula, {line!r}, is out of place: lines name parts, 'x1 = cos(q[\"cam\"])', "
                    "and the last one is the value"
                )
        return assignments

    def __call__(self, named: Mapping[str, Any]) -> Any:
        known, value = dict(named), None
        for name, expression in self._parsed:
            value = known[name] = _value(expression, known, named)
        return value


def _check(node: ast.expr, line: str) -> None:
    """Raise for anything but arithmetic in an expression."""
    for part in ast.walk(node):
        good = isinstance(
            part,
            (ast.BinOp, ast.UnaryOp, ast.Call, ast.Compare, ast.Name, ast.Constant, ast.Subscript, ast.expr_context),
        )
        good |= isinstance(part, (*OPERATORS, *COMPARISONS, ast.USub, ast.UAdd))
        if isinstance(part, ast.Call):
            good = isinstance(part.func, ast.Name) and not part.keywords
            if isinstance(part.func, ast.Name) and part.func.id not in FUNCTIONS:
                known = did_you_mean(part.func.id, list(FUNCTIONS))
                raise MechanismError(f"a formula has no function {part.func.id!r}: {known}")
        if isinstance(part, ast.Constant):
            good = isinstance(part.value, (int, float, str)) and not isinstance(part.value, bool)
        if not good:
            raise MechanismError(f"a formula is made of arithmetic and {', '.join(FUNCTIONS)}, not of {line!r}")


def _value(node: ast.expr, known: Mapping[str, Any], coordinates: Mapping[str, Any]) -> Any:
    def inner(part: ast.expr) -> Any:
        return _value(part, known, coordinates)

    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](inner(node.left), inner(node.right))
    if isinstance(node, ast.UnaryOp):
        return -inner(node.operand) if isinstance(node.op, ast.USub) else inner(node.operand)
    if isinstance(node, ast.Compare):
        return COMPARISONS[type(node.ops[0])](inner(node.left), inner(node.comparators[0]))
    if isinstance(node, ast.Call):
        return FUNCTIONS[getattr(node.func, "id", "")](*map(inner, node.args))
    if isinstance(node, ast.Subscript):
        return _coordinate(inner(node.slice), coordinates)
    name = getattr(node, "id", "")
    return known[name] if name in known else _coordinate(name, coordinates)


def _coordinate(name: Any, coordinates: Mapping[str, Any]) -> Any:
    if name not in coordinates:
        raise MechanismError(f"a formula has no joint or part {name!r}: {did_you_mean(name, list(coordinates))}")
    return coordinates[name]


# -- from functions to text ---------------------------------------------------------------------------


def formula_of(relation: Callable[[dict[str, Any]], Any], joints: Sequence[str]) -> Formula:
    """The formula of a relation of these joints."""
    if isinstance(relation, Formula):
        return relation
    value = relation({joint: _Written(f"{COORDINATES}[{joint!r}]") for joint in joints})
    lines: list[str] = []
    last = _text(value, _uses(value, {}), {}, lines, joints)[0]
    return Formula((*lines, last))


class _Written:
    """A number that records its operations as text, with places for its operands."""

    __array_ufunc__ = None  # NumPy is not to take it apart

    def __init__(self, pattern: str, parts: tuple[Any, ...] = (), binds: int = ATOM, needs: tuple[int, ...] = ()):
        self.pattern, self.parts, self.binds, self.needs = pattern, parts, binds, needs

    def __pos__(self) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("a coordinate is no condition while code is made: choose with linkwise.extend.scalar.select")


def _operation(pattern: str, binds: int, needs: tuple[int, ...], reflected: bool = False) -> Callable[..., _Written]:
    """A method of ``_Written`` that writes an operation of its operands."""

    def write(self: _Written, *others: Any) -> _Written:
        operands = (*others, self) if reflected else (self, *others)
        return _Written(pattern, operands, binds, needs)

    return write


for _names, _pattern, _binds, _needs in (
    ("__add__ __radd__", "{} + {}", SUM, (SUM, PRODUCT)),
    ("__sub__ __rsub__", "{} - {}", SUM, (SUM, PRODUCT)),
    ("__mul__ __rmul__", "{}*{}", PRODUCT, (PRODUCT, SIGN)),
    ("__truediv__ __rtruediv__", "{}/{}", PRODUCT, (PRODUCT, SIGN)),
    ("__neg__", "-{}", SIGN, (SIGN,)),
    ("__pow__", "{}**{}", POWER, (ATOM, ATOM)),
    ("__lt__", "{} < {}", SUM, (SUM, SUM)),
    ("__gt__", "{} > {}", SUM, (SUM, SUM)),
    ("sin", "sin({})", ATOM, (SUM,)),
    ("cos", "cos({})", ATOM, (SUM,)),
    ("sqrt", "sqrt({})", ATOM, (SUM,)),
    ("atan2 ratan2", "atan2({}, {})", ATOM, (SUM, SUM)),
    ("select", "select({}, {}, {})", ATOM, (SUM, SUM, SUM)),
):
    for _k, _name in enumerate(_names.split()):
        setattr(_Written, _name, _operation(_pattern, _binds, _needs, reflected=_k == 1))


def _uses(value: Any, counts: dict[int, int]) -> dict[int, int]:
    """How often each number is a part of others."""
    if isinstance(value, _Written):
        counts[id(value)] = counts.get(id(value), 0) + 1
        if counts[id(value)] == 1:
            for part in value.parts:
                _uses(part, counts)
    return counts


def _text(
    value: Any, uses: Mapping[int, int], named: dict[int, str], lines: list[str], joints: Sequence[str]
) -> tuple[str, int]:
    """The text of a number, and how strongly it binds; parts that are used several times become lines."""
    if not isinstance(value, _Written):
        return repr(value if type(value) is int else float(value)), ATOM if value >= 0 else SUM
    if id(value) in named:
        return named[id(value)], ATOM
    parts = []
    for part, need in zip(value.parts, value.needs, strict=True):
        text, binds = _text(part, uses, named, lines, joints)
        parts.append(f"({text})" if binds < need else text)
    text = value.pattern.format(*parts) if value.parts else value.pattern
    if uses[id(value)] == 1 or not value.parts or " < " in value.pattern or " > " in value.pattern:
        return text, value.binds
    taken = {*joints, COORDINATES, *FUNCTIONS}
    name = next(free_name for free_name in (f"x{k}" for k in range(len(lines) + 1, 1000)) if free_name not in taken)
    lines.append(f"{name} = {text}")
    named[id(value)] = name
    return name, ATOM
