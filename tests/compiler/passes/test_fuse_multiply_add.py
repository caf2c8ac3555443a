from collections import Counter

import numpy as np
import pytest

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable
from linkwise.compiler.ir.spec import check
from linkwise.compiler.passes.fuse_multiply_add import fuse_multiply_add
from linkwise.compiler.targets import numpy_reference
from tests.compiler.targets.sample_programs import forward_dynamics, random_program


def program_of(*results, inputs=6) -> Program:
    groups = (tuple(results),)
    return Program((Array("x", (inputs,)),), (Array("y", (len(results),)),), reachable(groups), groups)


@pytest.fixture
def x():
    builder = Builder()
    return builder, [builder.input(0, i) for i in range(6)]


def operations(program: Program) -> Counter:
    return Counter(node.op for node in program.nodes if node.args)


def test_sum_and_both_differences(x):
    b, (a0, a1, a2, a3, a4, a5) = x
    fused = fuse_multiply_add(program_of(b.add(a2, b.mul(a0, a1)), b.sub(b.mul(a3, a4), a5), b.sub(a0, b.mul(a1, a5))))
    assert operations(fused) == {ops.FMA: 1, ops.FMS: 1, ops.FNMA: 1}
    values = np.arange(1.0, 7.0)
    (y,) = numpy_reference.evaluate(fused, [values])
    np.testing.assert_array_equal(y, [3 + 1 * 2, 4 * 5 - 6, 1 - 2 * 6])


def test_a_product_with_two_uses_stays(x):
    b, (a0, a1, a2, a3, *_) = x
    product = b.mul(a0, a1)
    assert operations(fuse_multiply_add(program_of(b.add(product, a2), b.add(product, a3)))) == {ops.MUL: 1, ops.ADD: 2}
    assert operations(fuse_multiply_add(program_of(b.add(product, a2), product))) == {ops.MUL: 1, ops.ADD: 1}


def test_of_two_products_the_later_one_is_fused(x):
    b, (a0, a1, a2, a3, *_) = x
    late = b.mul(a3, b.sqrt(a2))
    for total in (b.add(b.mul(a0, a1), late), b.add(late, b.mul(a0, a1))):
        fused = fuse_multiply_add(program_of(total))
        assert operations(fused) == {ops.SQRT: 1, ops.MUL: 1, ops.FMA: 1}
        (node,) = fused.results[0]
        assert ops.SQRT in [arg.op for arg in node.args[:2]] and node.args[2].op is ops.MUL


def test_counts_and_values_are_kept():
    for program in (forward_dynamics(4), *(random_program(seed) for seed in range(5))):
        fused = check(fuse_multiply_add(program))
        assert fused.op_counts == program.op_counts
        arrays = [np.random.default_rng(0).standard_normal((5, *array.shape)) for array in program.inputs]
        for a, b in zip(*(numpy_reference.evaluate(p, arrays) for p in (program, fused)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_it_pays_on_recursions():
    program = forward_dynamics(6)
    assert sum(operations(fuse_multiply_add(program)).values()) < 0.7 * sum(operations(program).values())
