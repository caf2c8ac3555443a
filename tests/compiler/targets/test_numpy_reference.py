import numpy as np
import pytest

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable
from linkwise.compiler.targets import numpy_reference
from linkwise.compiler.targets.protocol import Options

from .sample_programs import forward_dynamics, inverse_dynamics, random_program


@pytest.mark.smoke
def test_forward_dynamics_undoes_inverse_dynamics():
    q, v, a = np.random.default_rng(0).standard_normal((3, 4, 5))
    (tau,) = numpy_reference.evaluate(inverse_dynamics(5), [q, v, a])
    (again,) = numpy_reference.evaluate(forward_dynamics(5), [q, v, tau])
    np.testing.assert_allclose(again, a, rtol=1e-10)


def test_each_operation_means_what_numpy_means():
    builder = Builder()
    a, b, c = (builder.input(0, i) for i in range(3))
    binary = [ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.ATAN2]
    unary = [ops.NEG, ops.SQRT, ops.SIN, ops.COS]
    nodes = [getattr(builder, op.name)(a, b) for op in binary] + [getattr(builder, op.name)(a) for op in unary]
    nodes += [builder.fused(op, a, b, c) for op in ops.FUSED] + [builder.select(builder.less(a, b), a, c)]
    results = (tuple(nodes),)
    program = Program((Array("x", (3,)),), (Array("y", (len(nodes),)),), reachable(results), results)
    x, y, z = values = np.array([0.7, 1.9, -0.4])
    (got,) = numpy_reference.evaluate(program, [values])
    want = [x + y, x - y, x * y, x / y, np.arctan2(x, y), -x, np.sqrt(x), np.sin(x), np.cos(x)]
    want += [x * y + z, x * y - z, z - x * y, x]
    np.testing.assert_allclose(got, want, rtol=1e-15)


def test_batches_broadcast_and_may_be_empty():
    program = random_program(3)
    x0, x1, x2 = (np.random.default_rng(1).standard_normal(s) for s in ((5, 1, 4), (7, 2, 3), ()))
    for output, array in zip(numpy_reference.evaluate(program, [x0, x1, x2]), program.outputs, strict=True):
        assert output.shape == (5, 7, *array.shape)
    for output, array in zip(numpy_reference.evaluate(program, [x0[:0], x1, x2]), program.outputs, strict=True):
        assert output.shape == (0, 7, *array.shape)


def test_constants_empty_cores_and_float32():
    builder = Builder()
    results = ((builder.const(2.5), builder.input(0, 1)), ())
    program = Program((Array("x", (2,)), Array("e", (0,))), (Array("y", (2,)), Array("z", (0,))),
                      reachable(results), results)  # fmt: skip
    y, z = numpy_reference.evaluate(program, [np.ones((3, 2)), np.ones((3, 0))], "float32")
    assert y.dtype == np.float32 and z.shape == (3, 0)
    np.testing.assert_array_equal(y, np.array([[2.5, 1.0]] * 3))


def test_wrong_trailing_dimensions_are_named():
    with pytest.raises(ValueError, match=r"input q must have trailing dimensions \(5,\)"):
        numpy_reference.evaluate(inverse_dynamics(5), np.ones((3, 4)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_emitted_python_computes_the_same(dtype):
    program = random_program(11)
    arrays = [np.random.default_rng(2).standard_normal((6, *array.shape)) for array in program.inputs]
    namespace = {}
    exec(numpy_reference.emit(program, Options(dtype)), namespace)
    got = namespace[program.name](*arrays)
    for a, b in zip(got, numpy_reference.evaluate(program, arrays, dtype), strict=True):
        assert a.dtype == dtype
        np.testing.assert_array_equal(a, b)
