"""Equal parts as a loop: against the same loop written in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.compiler.ir.program import Array
from linkwise.compiler.ir.spec import check
from linkwise.compiler.passes.iterate import iterate
from linkwise.compiler.passes.unroll import unroll
from linkwise.compiler.pipeline import load
from linkwise.compiler.targets import numpy_reference
from linkwise.compiler.trace import trace
from linkwise.mechanics import scalar

TABLE = np.array([(0.5, 1.0), (-1.5, 0.25), (0.0, 2.0)])


def first(a, b):
    return [a[0] + b, a[1], 3.0]


def following(a, b, x, row, sin):
    """Two numbers change places, one takes what stays the same; one more is used that stays the same."""
    return [x[1], x[0] + row[0] * sin(a[1]), row[1] * x[2] + a[0] * b]


def result(a, b, x):
    return [x[0] - x[1], x[2] * b, a[0] * b, 7.0]


def looped():
    inputs = [Array("x", (3,)), Array("a", (2,)), Array("row", (2,)), Array("b", ())]  # in any order

    def whole(x, a, row, b):
        b = b.item()
        return result(a, b, x), first(a, b), following(a, b, x, row, scalar.sin)

    return check(iterate(trace(whole, inputs, ("y", "first", "next")), "x", "row", TABLE))


@pytest.mark.parametrize("target", ["numpy", "cpu"])
def test_against_the_loop_in_numpy(target):
    program = looped()
    assert [array.name for array in (*program.inputs, *program.outputs)] == ["a", "b", "y"]
    a, b = np.random.default_rng(0).normal(size=(2, 9)), np.random.default_rng(1).normal(size=9)
    x = first(a, b)
    for row in TABLE:
        x = following(a, b, x, row, np.sin)
    expected = np.stack(np.broadcast_arrays(*result(a, b, x)), axis=-1)
    np.testing.assert_allclose(load(program, "float64", target)(a.T, b), expected, rtol=1e-14, atol=1e-14)
    (straight,) = numpy_reference.evaluate(unroll(program), [a.T, b])
    np.testing.assert_allclose(straight, expected, rtol=1e-14, atol=1e-14)


def test_what_stays_the_same_is_computed_once():
    program = looped()
    assert program.op_counts["sincos"] == 1 and [len(loop.which) for loop in program.loops] == [1, 3, 1]
    assert program.cells == 3 + 2  # the state, a sine and a product


def test_conditions_that_stay_the_same_are_computed_again():
    """Cells have numbers, no conditions."""

    def whole(x, row, a):
        chosen = scalar.select(a[0] < 0.5, x[0], row[0] * x[0])
        return [x[0]], [a[0] + a[1]], [chosen + a[1]]

    inputs = [Array("x", (1,)), Array("row", (1,)), Array("a", (2,))]
    table = np.array([[2.0], [-1.0]])
    program = check(iterate(trace(whole, inputs, ("y", "first", "next")), "x", "row", table))
    for body, _ in program.bodies:
        check(body.program)
    a = np.random.default_rng(0).uniform(size=(9, 2))
    x = a.sum(-1)
    for (row,) in table:
        x = np.where(a[:, 0] < 0.5, x, row * x) + a[:, 1]
    np.testing.assert_allclose(load(program, "float64", "cpu")(a)[:, 0], x, rtol=1e-14)
    assert program.cells == 1
