"""Exact differentiation of programs: against differences at 50 digits, which know nothing of its rules."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable
from linkwise.compiler.ir.spec import check
from linkwise.compiler.passes.differentiate import Directions, differentiate
from linkwise.compiler.passes.fuse_multiply_add import fuse_multiply_add
from linkwise.compiler.targets import numpy_reference
from tests.compiler.targets.sample_programs import forward_dynamics, inverse_dynamics, random_program
from tests.oracle.exact_differences import partials

BOTH = ("forward", "reverse")


def program_of(make, inputs=3) -> Program:
    """The program of ``make(builder, *inputs)``, one value or several, of one array of inputs."""
    builder = Builder()
    made = make(builder, *(builder.input(0, i) for i in range(inputs)))
    groups = (tuple(made) if isinstance(made, (list, tuple)) else (made,),)
    return Program((Array("x", (inputs,)),), (Array("y", (len(groups[0]),)),), reachable(groups), groups)


def derivative(program: Program, x, mode: str, **options) -> np.ndarray:
    found = check(differentiate(program, [Directions(0)], mode, **options))
    return numpy_reference.evaluate(found, [np.asarray(x, dtype=float)])[-1]


def operations(program: Program) -> int:
    return sum(len(node.op.counts) for node in program.nodes)


OPERATIONS = {
    "add": lambda b, x, y, z: b.add(x, y),
    "sub": lambda b, x, y, z: b.sub(x, y),
    "mul": lambda b, x, y, z: b.mul(x, y),
    "square": lambda b, x, y, z: b.mul(x, x),
    "div": lambda b, x, y, z: b.div(x, y),
    "reciprocal": lambda b, x, y, z: b.div(b.const(3.0), y),
    "scaled": lambda b, x, y, z: b.div(b.neg(x), b.const(7.0)),
    "neg": lambda b, x, y, z: b.neg(x),
    "sqrt": lambda b, x, y, z: b.sqrt(x),
    "sin": lambda b, x, y, z: b.sin(x),
    "cos": lambda b, x, y, z: b.cos(x),
    "atan2": lambda b, x, y, z: b.atan2(x, y),
    "atan2 of a constant": lambda b, x, y, z: b.atan2(b.const(0.3), y),
    "atan2 by a constant": lambda b, x, y, z: b.atan2(x, b.const(-0.3)),
    "select the first": lambda b, x, y, z: b.select(b.less(x, y), b.mul(x, z), b.sin(z)),
    "select the second": lambda b, x, y, z: b.select(b.less(y, x), b.mul(x, z), b.mul(x, b.sin(y))),
    "fma": lambda b, x, y, z: b.fused(ops.FMA, x, y, z),
    "fms": lambda b, x, y, z: b.fused(ops.FMS, x, y, z),
    "fnma": lambda b, x, y, z: b.fused(ops.FNMA, x, y, z),
    "constant": lambda b, x, y, z: b.const(2.0),
    "input": lambda b, x, y, z: z,
}


def test_every_operation_is_among_them():
    tried = {node.op for make in OPERATIONS.values() for node in program_of(make).nodes}
    assert tried == set(ops.ALL) - set(ops.SHORT)  # which are made for GPUs alone, of programs that are complete


@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation(name, mode):
    program = program_of(OPERATIONS[name])
    for x in ([0.7, 1.9, -1.3], [0.2, 0.4, 2.2]):
        np.testing.assert_allclose(derivative(program, x, mode), partials(program, [x], 0), rtol=1e-15, atol=1e-16)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), output=st.integers(0, 2), array=st.integers(0, 2))
def test_random_graphs(seed, output, array):
    program = random_program(seed, size=40)
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=a.shape) for a in program.inputs]
    expected = partials(program, arrays, array, output)
    size = max(1.0, np.abs(expected).max(initial=0.0))
    for mode in (*BOTH, "auto"):
        found = check(differentiate(program, [Directions(array)], mode, output, value=True))
        value, slopes = numpy_reference.evaluate(found, arrays)
        np.testing.assert_array_equal(value, numpy_reference.evaluate(program, arrays)[output])
        np.testing.assert_allclose(slopes, expected, rtol=1e-9, atol=1e-11 * size)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_derivatives_of_derivatives(seed):
    program = random_program(seed, size=25, shapes=((3,),), outputs=((2,),))
    x = np.random.default_rng(seed).normal(size=3)
    for first in BOTH:
        once = differentiate(program, [Directions(0)], first)
        expected = partials(once, [x], 0)
        for second in BOTH:
            twice = differentiate(once, [Directions(0)], second)
            found = numpy_reference.evaluate(twice, [x])[0]
            size = max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * size)
            np.testing.assert_allclose(found, np.swapaxes(found, -1, -2), rtol=1e-9, atol=1e-11 * size)


def test_fused_programs_have_the_same_derivatives():
    program = forward_dynamics(3)
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(4, 3)) for _ in range(3)]
    for mode in BOTH:
        plain, fused = (differentiate(p, [Directions(0)], mode) for p in (program, fuse_multiply_add(program)))
        np.testing.assert_allclose(*(numpy_reference.evaluate(p, arrays)[0] for p in (plain, fused)), rtol=1e-10)


# -- directions ---------------------------------------------------------------------------------------------


def test_chosen_elements_of_several_inputs_stand_side_by_side():
    program, rng = random_program(11), np.random.default_rng(0)
    arrays = [rng.normal(size=a.shape) for a in program.inputs]
    chosen = [Directions(1, elements=(4, 0)), Directions(0), Directions(2)]
    expected = [partials(program, arrays, 1)[..., [4, 0]], partials(program, arrays, 0), partials(program, arrays, 2)]
    for mode in BOTH:
        found = differentiate(program, chosen, mode)
        assert found.outputs[0].shape == (3, 2, 7)
        result = numpy_reference.evaluate(found, arrays)[0]
        np.testing.assert_allclose(result, np.concatenate(expected, axis=-1), rtol=1e-10, atol=1e-13)


def test_directions_may_depend_on_the_place():
    """Of f(x, y) along the rotation (-y, x) and along (1, 0) with an array before the one that moves."""
    builder = Builder()
    other, x, y = builder.input(0, 0), builder.input(1, 0), builder.input(1, 1)
    result = builder.mul(other, builder.mul(x, builder.mul(x, y)))
    inputs = (Array("other", ()), Array("place", (2,)))
    program = Program(inputs, (Array("f", ()),), reachable([[result]]), ((result,),))
    along = Builder()
    rows = (along.neg(along.input(0, 1)), along.const(1.0), along.input(0, 0), along.const(0.0))
    basis = Program((Array("place", (2,)),), (Array("basis", (2, 2)),), reachable([rows]), (rows,))
    for mode in BOTH:
        found = differentiate(program, [Directions(1, basis=basis)], mode)
        (slopes,) = numpy_reference.evaluate(found, [2.0, [3.0, 5.0]])
        np.testing.assert_allclose(slopes, 2.0 * np.array([-2 * 3 * 5 * 5 + 3**3, 2 * 3 * 5]))


# -- sparsity, sharing and cost -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", BOTH)
def test_what_does_not_depend_is_a_constant_zero(mode):
    program = program_of(lambda b, x, y, z: [b.mul(x, y), b.sin(z), b.const(4.0), b.sub(b.add(x, z), x)])
    (entries,) = differentiate(program, [Directions(0)], mode).results
    pattern = [node.op is not ops.CONST or node.value != 0.0 for node in entries]
    assert np.array_equal(np.reshape(pattern, (4, 3)), [[1, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("mode", BOTH)
def test_value_and_derivative_share_what_they_have_in_common(mode):
    program = program_of(lambda b, x, y, z: b.div(b.sin(x), b.sqrt(y)))
    both = differentiate(program, [Directions(0)], mode, value=True)
    # The value: sin, sqrt, div.  Its slopes: cos and one reciprocal root, then 1 / (2 root) and four products.
    assert both.op_counts["sincos"] == 1 and both.op_counts["sqrt"] == 1 and both.op_counts["div"] == 3
    alone = differentiate(program, [Directions(0)], mode)
    assert operations(both) <= operations(alone) + operations(program)


def test_sections_are_kept():
    program = random_program(5)
    known = {node.section for node in program.nodes if node.args}
    for mode in BOTH:
        found = differentiate(program, [Directions(0)], mode)
        assert {node.section for node in found.nodes if node.args} <= known


def test_auto_takes_the_cheaper_way():
    many_to_one = program_of(lambda b, *x: [_chained(b, x)], inputs=12)
    one_to_many = program_of(lambda b, x: [b.mul(b.const(k + 1.5), b.sin(_chained(b, [x] * 6))) for k in range(12)], 1)
    counts = {}
    for name, program in (("many to one", many_to_one), ("one to many", one_to_many)):
        counts[name] = {m: operations(differentiate(program, [Directions(0)], m)) for m in (*BOTH, "auto")}
    assert counts["many to one"]["reverse"] < 0.6 * counts["many to one"]["forward"]
    assert counts["one to many"]["forward"] <= counts["one to many"]["reverse"]
    for program in (inverse_dynamics(4), forward_dynamics(4)):
        wrt = [Directions(0), Directions(1)]
        found = {m: operations(differentiate(program, wrt, m)) for m in (*BOTH, "auto")}
        counts[program.name] = found
    for found in counts.values():
        assert found["auto"] == min(found.values())


def _chained(b: Builder, values):
    total = values[0]
    for x in values[1:]:
        total = b.sin(b.mul(b.add(total, b.const(0.5)), x))
    return total


def test_unknown_mode():
    with pytest.raises(ValueError, match="mode must be one of"):
        differentiate(random_program(0), [Directions(0)], "backward")


# -- where values are not smooth ----------------------------------------------------------------------------


def _guarded(b: Builder, x, y, z):
    """sin(r) / r, r = sqrt(x^2 + y^2 + z^2), by its series near 0: what is not chosen there is 0 / 0."""
    square = b.add(b.add(b.mul(x, x), b.mul(y, y)), b.mul(z, z))
    root = b.sqrt(square)
    near = b.less(square, b.const(1e-4))
    series = b.sub(b.const(1.0), b.mul(b.const(1 / 6), square))
    return b.select(near, series, b.div(b.sin(root), root))


@pytest.mark.parametrize("mode", BOTH)
def test_nothing_leaks_from_the_branch_not_taken(mode):
    program = program_of(_guarded)
    np.testing.assert_array_equal(derivative(program, [0.0, 0.0, 0.0], mode), [[0.0, 0.0, 0.0]])
    x = np.array([0.003, -0.004, 0.0])
    np.testing.assert_allclose(derivative(program, x, mode)[0], -x / 3, rtol=1e-12)
    x = np.array([0.3, -0.4, 1.2])
    r = math.sqrt(x @ x)
    np.testing.assert_allclose(derivative(program, x, mode)[0], (math.cos(r) - math.sin(r) / r) / r**2 * x, rtol=1e-14)


@pytest.mark.parametrize("first", BOTH)
@pytest.mark.parametrize("second", BOTH)
def test_nor_from_its_second_derivatives(first, second):
    hessian = differentiate(differentiate(program_of(_guarded), [Directions(0)], first), [Directions(0)], second)
    (found,) = numpy_reference.evaluate(hessian, [np.zeros(3)])
    np.testing.assert_allclose(found[0], -np.eye(3) / 3, rtol=1e-15)


@pytest.mark.parametrize("mode", BOTH)
def test_nested_conditions(mode):
    """A quotient that exists in one of four cases only, inside two conditions, one of them met twice."""

    def make(b, x, y, z):
        low, safe = b.less(x, b.const(0.0)), b.less(b.const(0.0), y)
        inner = b.select(safe, b.div(z, y), b.select(low, b.mul(x, z), b.sqrt(y)))
        return b.mul(b.select(low, b.mul(z, z), inner), b.select(safe, b.sin(y), b.const(2.0)))

    program = program_of(make)
    np.testing.assert_array_equal(derivative(program, [-1.0, 0.0, 3.0], mode), [[0.0, 0.0, 2.0 * 2.0 * 3.0]])
    for x in ([-1.0, 2.0, 3.0], [1.0, 2.0, 3.0]):
        np.testing.assert_allclose(derivative(program, x, mode), partials(program, [x], 0), rtol=1e-14)


def test_a_condition_ends_where_its_branches_meet_what_is_needed_anyway():
    """Along a chain of quotients, each with a branch that hangs from it: what flows back through the branches holds in
    some cases, what flows back along the chain in all of them, and so does their sum."""
    builder = Builder()
    x = link = builder.input(0, 0)
    total = builder.const(0.0)
    for _ in range(8):
        link = builder.div(link, builder.add(builder.const(1.0), builder.mul(x, x)))
        branch = builder.select(builder.less(x, builder.const(2.0)), builder.mul(link, link), builder.const(0.0))
        total = builder.add(total, builder.add(link, branch))
    program = Program((Array("x", (1,)),), (Array("f", (1,)),), reachable([[total]]), ((total,),))
    gradient = differentiate(program, [Directions(0)], "reverse")
    selects = [sum(node.op is ops.SELECT for node in each.nodes) for each in (program, gradient)]
    assert selects == [8, 8]
    expected = partials(program, [np.array([0.7])], 0)
    np.testing.assert_allclose(numpy_reference.evaluate(gradient, [np.array([0.7])])[0], expected, rtol=1e-12)


def test_many_conditions_stay_cheap():
    """Cases that meet are joined, however many conditions there are on the way."""
    sizes = [len(differentiate(random_program(2, size=n), [Directions(0)], "reverse").nodes) for n in (200, 400, 800)]
    assert sizes[2] < 20 * sizes[0]


@pytest.mark.parametrize("mode", BOTH)
def test_where_there_is_no_derivative(mode):
    root = program_of(lambda b, x, y, z: b.sqrt(x))
    assert derivative(root, [0.0, 0.0, 0.0], mode)[0, 0] == math.inf
    angle = program_of(lambda b, x, y, z: b.atan2(x, y))
    assert np.isnan(derivative(angle, [0.0, 0.0, 0.0], mode)[0, :2]).all()
    corner = program_of(lambda b, x, y, z: b.select(b.less(x, b.const(0.0)), b.neg(x), x))  # |x|
    assert [derivative(corner, [x, 0.0, 0.0], mode)[0, 0] for x in (-1e-300, 0.0, 1.0)] == [-1.0, 1.0, 1.0]
