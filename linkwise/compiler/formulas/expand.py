"""From a program to polynomials: every operation carried out on symbols."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..ir import ops
from ..ir.program import Node, Program
from .polynomial import Algebra, Angle, Polynomial, rounded

MOST_TERMS, MOST_PRODUCTS = 3_000, 100_000  # number of terms of a formula, and of two factors of a product


class FormulaError(ValueError):
    """The result has no readable closed formula."""


def expanded(program: Program, algebra: Algebra, symbol_of: Callable[[int, int], Polynomial]) -> list[list[Polynomial]]:
    """Polynomials of each output's elements; ``symbol_of(array, element)`` is the polynomial of an input element."""
    values: dict[Node, Polynomial] = {}
    for node in program.nodes:
        if node.op is ops.CONST:
            values[node] = algebra.constant(node.value)
        elif node.op is ops.INPUT:
            values[node] = symbol_of(*node.value)
        else:
            args = [values[arg] for arg in node.args]
            if node.op is ops.MUL and len(args[0]) * len(args[1]) > MOST_PRODUCTS:
                raise _too_long(program.name)
            values[node] = _operation(node, args, algebra, program.name)
        if len(values[node]) > MOST_TERMS:
            raise _too_long(program.name)
    return [[values[node] for node in nodes] for nodes in program.results]


def _too_long(name: str) -> FormulaError:
    return FormulaError(
        f"a formula of {name} has more than {MOST_TERMS} terms: formulas are for small mechanisms; lock joints "
        "(mech.with_locked), or keep numbers as they are (parameters=())"
    )


def _operation(node: Node, args: list[Polynomial], algebra: Algebra, name: str) -> Polynomial:
    if node.op is ops.ADD:
        return args[0] + args[1]
    if node.op is ops.SUB:
        return args[0] - args[1]
    if node.op is ops.MUL:
        return args[0] * args[1]
    if node.op is ops.NEG:
        return -args[0]
    if node.op is ops.DIV:
        return args[0] * inverse(args[1])
    if node.op in (ops.SIN, ops.COS):
        return expand_angle(node.op.name, args[0])
    if node.op is ops.SQRT:
        return _root(args[0])
    raise FormulaError(
        f"{name} has no closed formula: it depends on a comparison or an angle of two numbers ({node.op})"
    )


def inverse(value: Polynomial) -> Polynomial:
    """1 / value: a product if value is a single term, otherwise an abbreviation for the divisor."""
    if not value.terms:
        raise FormulaError("a formula divides by zero: a block that is inverted is singular")
    if len(value) == 1:
        return value.power(-1)
    number, lead = value.algebra.named("D", "D", value)
    return Polynomial(value.algebra, {((number, -1),): 1.0 / lead})


def _root(value: Polynomial) -> Polynomial:
    if value.is_constant:
        return value.algebra.constant(math.sqrt(value.constant))
    number, lead = value.algebra.named("R", "R", value, root=True)
    return Polynomial(value.algebra, {((number, 1),): math.sqrt(lead)})


def expand_angle(kind: str, angle: Polynomial) -> Polynomial:
    """The sine or cosine of a sum of multiples of coordinates and a constant, by the addition theorems."""
    algebra, sine, cosine = angle.algebra, math.sin(angle.constant), math.cos(angle.constant)
    s, c = algebra.constant(_exact(sine)), algebra.constant(_exact(cosine))
    for m, multiple in angle.terms.items():
        if not m:
            continue
        if len(m) != 1 or m[0][1] != 1:
            raise FormulaError("a formula has the sine of an angle that is no sum of multiples of coordinates")
        times = round(multiple)
        base: Angle = ((m[0][0], 1),)
        if abs(multiple - times) > 1e-12:  # the ratio of a mimic joint: a multiple with a sine of its own
            times, base = int(math.copysign(1.0, multiple)), ((m[0][0], rounded(abs(multiple))),)
        own_s = Polynomial(algebra, {((algebra.trigonometric("sin", base), 1),): math.copysign(1.0, times)})
        own_c = Polynomial(algebra, {((algebra.trigonometric("cos", base), 1),): 1.0})
        for _ in range(abs(times)):
            s, c = s * own_c + c * own_s, c * own_c - s * own_s
    return s if kind == "sin" else c


def _exact(x: float) -> float:
    """x with quarter turns made exact."""
    return float(round(x)) if abs(x - round(x)) < 1e-15 else x
