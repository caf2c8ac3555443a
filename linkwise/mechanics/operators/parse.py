"""Expressions from text: "(I - H @ psi @ K).T @ D.inv @ T", as on a command line or in a file.

The text is Python's own grammar, but none of it is run: it becomes a syntax tree, and of that tree only the algebra
is understood.  Everything else is an error that points at its column.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

from ...mechanism.checks import did_you_mean
from . import algebra
from .expression import Expression, Operator, Vector
from .spaces import COORDINATE, FORCE, JOINT, LOOP, MOTION, SCALAR

MAX_LENGTH = 10_000  # characters
MAX_DEPTH = 200  # maximum nesting of operations; a chain of n products or terms has depth n


class ParseError(ValueError):
    """Text that is not an operator expression; the message gives position and reason."""


def parse(text: str, vectors: Mapping[str, Vector] | None = None) -> Expression:
    """The expression that ``text`` describes.

    It may hold the operators' names, the names of ``vectors``, ``@ + - * /``, numbers, ``.T``, ``.inv``, ``B("link")``,
    ``A("link")``, ``joint_vector("T")``, ``coordinate_vector("v")``, ``link_vector("f")``, ``loop_vector("mu")``,
    ``bias_acceleration(v)``, ``bias_force(v)``, ``reference_acceleration(v)``, ``convective_acceleration(v)``,
    ``loop_bias(v)``, ``gravity()``, and ``identity(JOINT)``, ``(COORDINATE)``, ``(LOOP)``, ``(FORCE)`` or ``(MOTION)``
    if the space of I does not follow from the expression. Errors: ParseError; SpaceError and UnknownInverse as when the
    expression is built in Python.
    """
    if not isinstance(text, str):
        raise ParseError(f"an expression is text, got {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise ParseError(f"the expression has {len(text)} characters; no more than {MAX_LENGTH} are read")
    known = _Names(vectors or {})
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        at = f"column {error.offset}: " if error.offset else ""
        raise ParseError(f"{at}this is no expression: {error.msg}") from None
    except ValueError:
        raise ParseError("this is no expression: it holds a null byte or a number of thousands of digits") from None
    except (RecursionError, MemoryError):  # raised by Python's parser for nesting beyond its own limits
        raise ParseError(f"the expression is nested more than {MAX_DEPTH} deep") from None
    result = known.value(tree.body, 0)
    if not isinstance(result, Expression):
        raise ParseError("this is a number, not an expression of operators")
    return result


class _Names:
    """Interpretation of names and of syntax trees."""

    def __init__(self, vectors: Mapping[str, Vector]):
        self.operators: dict[str, Expression] = {"I": algebra.I, "Phi": algebra.Phi, "Psi": algebra.Psi}
        for name, record in algebra.RECORDS.items():
            if record.domain != SCALAR and not record.domain.at_link and not name.endswith("_inv"):
                self.operators[name] = Operator(record)
        taken = sorted(set(vectors) & {*self.operators, *_CALLS})
        if taken:
            raise ParseError(f"a vector must not be called {taken[0]!r}: that is an operator")
        self.vectors = {name: vector for name, vector in vectors.items() if _checked_name(name, None)}
        self.calls: dict[str, Callable[..., Expression]] = dict(zip(_CALLS, _FUNCTIONS, strict=True))

    def value(self, node: ast.expr, depth: int) -> Expression | float:
        """The value of a syntax tree: an expression or a number."""
        if depth > MAX_DEPTH:
            raise ParseError(f"the expression is nested more than {MAX_DEPTH} deep")
        match node:
            case ast.Constant(value=value):
                return _number(value, node)
            case ast.Name(id=name):
                return self._named(name, node)
            case ast.Attribute(value=inner, attr=attribute):
                return self._attribute(self.value(inner, depth + 1), attribute, node)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand, depth + 1)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand, depth + 1)
            case ast.BinOp(left=left, op=operator, right=right):
                return _combined(self.value(left, depth + 1), operator, self.value(right, depth + 1), node)
            case ast.Call():
                return self._call(node)
        label = type(node).__name__.lower()
        raise _error(node, f"{label} has no meaning here; there are operators, numbers, @ + - * /, .T and .inv")

    def _named(self, name: str, node: ast.expr) -> Expression:
        if name in self.vectors:
            return self.vectors[name]
        if name in self.operators:
            return self.operators[name]
        if name in self.calls:
            raise _error(node, f"{name} is called with {_CALLS[name]}")
        raise _error(
            node,
            f"{name!r} is no operator and no declared vector: "
            + did_you_mean(name, [*self.operators, *self.vectors, *self.calls])
            + f" Vectors are declared beforehand (command line: --joint {name} or --link {name})",
        )

    def _attribute(self, value: Expression | float, attribute: str, node: ast.expr) -> Expression:
        if not isinstance(value, Expression):
            raise _error(node, f"a number has no .{attribute}")
        if attribute == "T":
            return value.T
        if attribute == "inv":
            return value.inv
        raise _error(node, f".{attribute} is unknown; there are .T and .inv")

    def _call(self, node: ast.Call) -> Expression:
        if not isinstance(node.func, ast.Name) or node.func.id not in self.calls:
            raise _error(node, "only " + ", ".join(self.calls) + " are called")
        name = node.func.id
        wanted = [] if _CALLS[name] == "()" else [_CALLS[name]]
        if node.keywords or len(node.args) != len(wanted):
            raise _error(node, f"{name} is called with {_CALLS[name]}")
        return self.calls[name](*(self._argument(name, argument) for argument in node.args))

    def _argument(self, function: str, node: ast.expr) -> Any:
        if _CALLS[function] == "(v)":
            rates: Any = self.value(node, 0) if isinstance(node, (ast.Name, ast.Call, ast.BinOp)) else None
            try:
                self.calls[function](rates)
            except TypeError:
                raise _error(node, f"{function} takes the joint vector of velocities") from None
            return rates
        if function == "identity":
            if not isinstance(node, ast.Name) or node.id not in SPACES:
                raise _error(node, f"identity takes a space: {', '.join(SPACES)}")
            return SPACES[node.id]
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            raise _error(node, f"{function} takes a name in quotes")
        return _checked_name(node.value, node) if function.endswith("vector") else node.value


_CALLS = {
    "B": '("link")',
    "A": '("link")',
    "joint_vector": '("name")',
    "coordinate_vector": '("name")',
    "link_vector": '("name")',
    "loop_vector": '("name")',
    "bias_acceleration": "(v)",
    "bias_force": "(v)",
    "reference_acceleration": "(v)",
    "convective_acceleration": "(v)",
    "loop_bias": "(v)",
    "gravity": "()",
    "identity": "(JOINT), (COORDINATE), (LOOP), (FORCE) or (MOTION)",
}
_FUNCTIONS = (
    algebra.B,
    algebra.A,
    algebra.joint_vector,
    algebra.coordinate_vector,
    algebra.link_vector,
    algebra.loop_vector,
    algebra.bias_acceleration,
    algebra.bias_force,
    algebra.reference_acceleration,
    algebra.convective_acceleration,
    algebra.loop_bias,
    algebra.gravity,
    algebra.identity,
)
SPACES = {"JOINT": JOINT, "COORDINATE": COORDINATE, "LOOP": LOOP, "FORCE": FORCE, "MOTION": MOTION}


def _number(value: Any, node: ast.expr) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _error(node, f"{value!r} is no real number")
    try:
        return _finite(float(value), node)
    except OverflowError:
        raise _error(node, "a finite number is needed") from None


def _finite(value: float, node: ast.expr) -> float:
    if not math.isfinite(value):
        raise _error(node, "a finite number is needed")
    return value


def _combined(left: Expression | float, operator: ast.operator, right: Expression | float, node: ast.expr) -> Any:
    symbol = {ast.MatMult: "@", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}.get(type(operator))
    numbers = (isinstance(left, float), isinstance(right, float))
    match symbol, numbers:
        case "@", (False, False):
            return left @ right  # type: ignore[operator]
        case ("+", (False, False)) | ("+", (True, True)):
            return left + right  # type: ignore[operator]
        case ("-", (False, False)) | ("-", (True, True)):
            return left - right  # type: ignore[operator]
        case "*", (_, True) | (True, _):
            product = left * right  # type: ignore[operator]
            return _finite(product, node) if isinstance(product, float) else product
        case "/", (_, True):
            if right == 0.0:
                raise _error(node, "division by zero")
            if isinstance(left, float):
                return _finite(left / right, node)  # type: ignore[operator]
            return left * _finite(1.0 / right, node)  # type: ignore[operator]
        case "/", _:
            raise _error(node, "only numbers divide; write @ X.inv for an inverse")
        case "*", _:
            raise _error(node, "* multiplies by a number; products of operators are written with @")
        case None, _:
            name = type(operator).__name__.lower()
            raise _error(node, f"the operation {name} has no meaning here; there are @ + - * /")
    raise _error(node, f"a number and an operator cannot be joined by {symbol}; write 2 * I for twice the identity")


def _checked_name(name: Any, node: ast.expr | None) -> str:
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise _error(node, f"the name of a vector must be an identifier such as T or force_2, not {name!r}")
    return name


def _error(node: ast.expr | None, message: str) -> ParseError:
    return ParseError(message if node is None else f"column {node.col_offset + 1}: {message}")
