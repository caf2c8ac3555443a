"""What the tests of the short cut for single states share: small compiled programs and states for them."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.ir.program import Array
from linkwise.compiler.runtime import cpu
from linkwise.compiler.runtime.single_call import layout_is_known, single_call
from linkwise.compiler.trace import trace
from linkwise.mechanics import scalar

MECHANISMS = {
    "arm": lw.mechanisms.puma560(),
    "tree": lw.mechanisms.random_tree(3, seed=0),
    "long": lw.mechanisms.chain(30),
    "loop": lw.mechanisms.four_bar(),
}
needs_short_cut = pytest.mark.skipif(not layout_is_known(), reason="this interpreter has no short cut")


class Loop:
    """A compiled program: its ufunc, and the short cut in front of any general function."""

    def __init__(self, program, dtype="float64"):
        self.program, self.dtype = program, dtype
        self.code, self.ufunc = cpu.code_and_ufunc(program, dtype)  # what other tests compiled is on disk

    def before(self, general):
        return single_call(self.code, self.program.inputs, self.program.outputs, self.dtype, general)


def refuse(*arrays, **keywords):
    raise AssertionError("the general function was called")


def sample(dtype="float64"):
    """Three outputs of ranks 2, 1 and 0 from inputs of ranks 1, 2 and 0."""

    def function(x, y, s):
        s = s[()]
        return [
            np.array([[a * b for b in x] for a in x], dtype=object),
            np.array([scalar.sin(a) / s for a in y[0]], dtype=object),
            np.array(x[0] + y[1, 2] * s, dtype=object),
        ]

    inputs = [Array("x", (4,)), Array("y", (2, 3)), Array("s", ())]
    return Loop(trace(function, inputs, ["outer", "ratios", "number"], "sample"), dtype)


def ratio(dtype="float64"):
    """x / y, elementwise on two numbers each."""
    inputs = [Array("x", (2,)), Array("y", (2,))]
    return Loop(trace(lambda x, y: [np.array([x[0] / y[0], x[1] / y[1]], dtype=object)], inputs, ["z"], "ratio"), dtype)


def sample_state(dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for shape in ((4,), (2, 3))] + [np.array(0.5 + rng.random(), dtype)]


def assert_same(one, other):
    """Equal to the last bit, and of the same types."""
    if isinstance(other, tuple):
        assert isinstance(one, tuple) and len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
        return
    assert type(one) is type(other)
    assert one.dtype == other.dtype and one.shape == other.shape
    np.testing.assert_array_equal(one, other)


def two(values=(3.0, 4.0), dtype="float64"):
    return np.array(values, dtype)
