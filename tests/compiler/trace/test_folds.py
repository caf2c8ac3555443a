"""Functions of their own results as a loop: against the same loop written in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.compiler.ir.program import Array
from linkwise.compiler.ir.spec import check
from linkwise.compiler.known_targets import load
from linkwise.compiler.passes.unroll import unroll
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


def folded(start, rows, step):
    """``scalar.folded``, or run after run where there is no loop."""
    end = scalar.folded(start, rows, step)
    if end is None:
        end = list(start)
        for row in rows.tolist():
            end = step(end, row)
    return end


def looped(**how):
    def whole(a, b):
        b = b.item()
        x = folded(first(a, b), TABLE, lambda x, row: following(a, b, x, row, scalar.sin))
        return [np.array(result(a, b, x), dtype=object)]

    return check(trace(whole, [Array("a", (2,)), Array("b", ())], ("y",), "kernel", None, **how))


def test_loops_where_they_are_wanted_alone():
    assert not looped().loops and looped(folds=True).loops


@pytest.mark.parametrize("target", ["numpy", "cpu"])
def test_against_the_loop_in_numpy(target):
    program = looped(folds=True)
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
    program = looped(folds=True)
    assert program.op_counts["sincos"] == 1 and [len(loop.which) for loop in program.loops] == [1, 3, 1]
    assert program.cells == 3 + 2  # the state, a sine and a product


def test_conditions_that_stay_the_same_are_computed_again():
    """Cells have numbers, no conditions."""

    table = np.array([[2.0], [-1.0]])

    def whole(a):
        def step(x, row):
            return [scalar.select(a[0] < 0.5, x[0], row[0] * x[0]) + a[1]]

        return [np.array(folded([a[0] + a[1]], table, step), dtype=object)]

    program = check(trace(whole, [Array("a", (2,))], ("y",), "kernel", None, folds=True))
    for body, _ in program.bodies:
        check(body.program)
    a = np.random.default_rng(0).uniform(size=(9, 2))
    x = a.sum(-1)
    for (row,) in table:
        x = np.where(a[:, 0] < 0.5, x, row * x) + a[:, 1]
    np.testing.assert_allclose(load(program, "float64", "cpu")(a)[:, 0], x, rtol=1e-14)
    assert program.cells == 1
