"""Operations that are one instruction of a GPU: the same results, also of what is no number."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable
from linkwise.compiler.ir.spec import check
from linkwise.compiler.passes.shorten import shorten
from linkwise.compiler.targets import numpy_reference

X = np.array([-math.inf, -3.0, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 1.5, 2.0, 7.0, math.inf, math.nan])


def at_most(b, x, high, inner):
    return b.select(b.less(x, b.const(high)), x, b.select(b.less(b.const(inner), x), b.const(high), x))


def at_least(b, x, low, inner):
    return b.select(b.less(b.const(low), x), x, b.select(b.less(x, b.const(inner)), b.const(low), x))


def within(b, x, high):
    return b.select(b.less(b.const(high), x), b.const(high), x)


def nearest(b, x, low, high):
    return b.select(b.less(x, b.const(low)), b.const(low), within(b, x, high))


MINIMUM, MAXIMUM = {"minimum": 1}, {"maximum": 1}
CASES = {
    "smaller": (lambda b, x: within(b, x, 1.0), MINIMUM),
    "greater": (lambda b, x: b.select(b.less(x, b.const(1.0)), b.const(1.0), x), MAXIMUM),
    "smaller, the bound beyond": (lambda b, x: at_most(b, x, 1.0, 0.0), MINIMUM),
    "greater, the bound beyond": (lambda b, x: at_least(b, x, -1.0, 0.0), MAXIMUM),
    "between": (lambda b, x: nearest(b, x, -1.0, 1.5), {"minimum": 1, "maximum": 1}),
    "size": (lambda b, x: b.select(b.less(b.const(0.0), x), x, b.neg(x)), {"maximum": 1, "neg": 1}),
    "inverse root": (lambda b, x: b.div(b.const(1.0), b.sqrt(x)), {"rsqrt": 1}),
    "twice an inverse root": (lambda b, x: b.div(b.const(2.0), b.sqrt(x)), {"rsqrt": 1, "mul": 1}),
    # what has other results
    "smaller, or a number": (lambda b, x: b.select(b.less(x, b.const(1.0)), x, b.const(1.0)), {"select": 1, "less": 1}),
    "greater, or a number": (lambda b, x: b.select(b.less(b.const(1.0), x), x, b.const(1.0)), {"select": 1, "less": 1}),
    "gap below": (lambda b, x: at_most(b, x, 1.0, 1.5), {"select": 2, "less": 2}),
    "gap above": (lambda b, x: at_least(b, x, -1.0, -2.0), {"select": 2, "less": 2}),
    "bounds the other way round": (lambda b, x: nearest(b, x, 1.5, -1.0), {"select": 1, "less": 1, "minimum": 1}),
    "product with an inverse root": (lambda b, x: b.mul(b.div(x, b.sqrt(x)), x), {"div": 1, "sqrt": 1, "mul": 1}),
    "root and inverse": (
        lambda b, x: b.add(b.div(b.const(1.0), b.sqrt(x)), b.sqrt(x)),
        {"div": 1, "sqrt": 1, "add": 1},
    ),
    "choice of another": (
        lambda b, x: b.select(b.less(b.const(1.0), b.input(0, 1)), b.const(1.0), x),
        {"select": 1, "less": 1},
    ),
}


def program_of(write, more=()):
    b = Builder()
    x = b.input(0, 0)
    results = ((write(b, x), *(one(b, x) for one in more)),)
    return Program((Array("x", (2,)),), (Array("y", (1 + len(more),)),), reachable(results), results, "sample")


@pytest.mark.parametrize("case", CASES)
def test_results_are_the_same(case):
    write, expected = CASES[case]
    program = program_of(write)
    short = shorten(program)
    check(short)
    given = [np.stack([X, X[::-1]], axis=-1)]
    (wanted,), (found,) = (numpy_reference.evaluate(one, given) for one in (program, short))
    np.testing.assert_array_equal(found, wanted)
    assert Counter(node.op.name for node in short.nodes if node.args) == expected


def test_roots_that_are_results_stay():
    program = program_of(CASES["inverse root"][0], more=(lambda b, x: b.sqrt(x),))
    assert {node.op for node in shorten(program).nodes} >= {ops.SQRT, ops.DIV}
