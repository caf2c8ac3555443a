"""A program inside a trace is the same computation as running it first and going on with its results."""

import numpy as np

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.program import Array
from linkwise.compiler.ir.spec import check
from linkwise.compiler.targets import numpy_reference
from linkwise.compiler.trace import inline, trace
from tests.compiler.targets.sample_programs import random_program


def test_results_go_on_as_symbols():
    inner = random_program(4)

    def run(a, b, c):
        first, second, third = inline(inner, a, b, c)
        return [first * 2.0 + second, third]

    outer = check(trace(run, inner.inputs, ["twice", "third"]))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(5, *array.shape)) for array in inner.inputs]
    first, second, third = numpy_reference.evaluate(inner, arrays)
    found = numpy_reference.evaluate(outer, arrays)
    np.testing.assert_array_equal(found[0], first * 2.0 + second[:, None, None])
    np.testing.assert_array_equal(found[1], third)
    assert {n.section for n in inner.nodes if n.args} <= {n.section for n in outer.nodes}


def test_what_is_known_folds():
    """Numbers in place of symbols: what depends on them alone is computed while tracing."""
    inner = trace(lambda x, y: [np.array([x * y, x * x])], [Array("x", ()), Array("y", ())], ["z"])
    outer = trace(lambda y: inline(inner, np.array(3.0), y), [Array("y", ())], ["z"])
    product, square = outer.results[0]
    assert square.op is ops.CONST and square.value == 9.0
    assert product.op is ops.MUL and outer.op_counts == {"mul": 1}
    (known,) = inline(inner, np.array(3.0), np.array(2.0))
    assert known.tolist() == [6.0, 9.0]
