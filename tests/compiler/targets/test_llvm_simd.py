import ctypes
import math
import re

import numpy as np
import pytest

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable
from linkwise.compiler.passes.fuse_multiply_add import fuse_multiply_add
from linkwise.compiler.runtime import llvm_loader
from linkwise.compiler.targets import llvm_loop, llvm_operations, llvm_simd, llvm_straight, numpy_reference
from linkwise.compiler.targets.protocol import Options
from tests.work import lines_run

from .compiled import compiled
from .sample_programs import forward_dynamics, random_program


def arrays_for(program: Program, batch=(), seed=0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((*batch, *array.shape)) for array in program.inputs]


def assert_same(program: Program, ufunc: np.ufunc, arrays, dtype="float64", **kwargs):
    got = ufunc(*(np.asarray(a, dtype) for a in arrays), **kwargs)
    got = got if isinstance(got, tuple) else (got,)
    tolerance = 1e-11 if dtype == "float64" else 2e-3
    for g, want in zip(got, numpy_reference.evaluate(program, arrays, dtype), strict=True):
        assert g.dtype == dtype
        np.testing.assert_allclose(g, want, rtol=tolerance, atol=tolerance)


@pytest.mark.smoke_cases("float64")
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_random_programs_for_all_lane_counts_and_tails(lanes, dtype):
    for seed in range(4):
        program = fuse_multiply_add(random_program(seed))
        ufunc = compiled(program, dtype, lanes)
        for count in (0, 1, lanes - 1, lanes, lanes + 1, 2 * lanes + 3):
            assert_same(program, ufunc, arrays_for(program, (count,)), dtype)


def test_long_programs_are_cut_into_parts(monkeypatch):
    monkeypatch.setattr(llvm_straight, "NODES_PER_PART", 7)
    for seed in range(8):
        program = random_program(seed, size=120)
        assert llvm_simd.emit(program, Options(lanes=4)).count("define internal void @part") > 3
        assert_same(program, compiled(program), arrays_for(program, (11,)))


def test_scratch_beyond_the_stack_limit_comes_from_the_heap(monkeypatch):
    monkeypatch.setattr(llvm_loop, "STACK_LIMIT", 64)
    program = random_program(5)
    assert "@PyMem_RawMalloc(i64 " in llvm_simd.emit(program, Options(lanes=4)).split("define internal")[0]
    assert_same(program, compiled(program), arrays_for(program, (50,)))


def test_failing_to_get_scratch_is_an_error(monkeypatch):
    monkeypatch.setattr(llvm_loop, "STACK_LIMIT", 64)
    nothing = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(lambda size: None)
    symbols = llvm_loader._host_symbols() | {"PyMem_RawMalloc": ctypes.cast(nothing, ctypes.c_void_p).value}
    monkeypatch.setattr(llvm_loader, "_host_symbols", lambda: symbols)
    program = random_program(5)
    ufunc = compiled(program)
    with pytest.raises((MemoryError, SystemError)):
        ufunc(*arrays_for(program, (50,)))


def test_nothing_outside_the_arrays_is_written():
    program = forward_dynamics(3)
    ufunc = compiled(program)
    frame = np.full((30, 9), 7.25)
    inside = frame[5:18, 2:5]
    ufunc(*arrays_for(program, (13,)), out=inside)
    changed = frame != 7.25
    assert changed[5:18, 2:5].all() and changed.sum() == 13 * 3


def test_all_kinds_of_strides():
    program = random_program(8)
    ufunc = compiled(program)
    x0, x1, x2 = arrays_for(program, (19,))
    layouts = [
        (x0[::-1, ::-1], x1[::-1, :, ::-1], x2[::-1]),
        (np.asfortranarray(x0), np.asfortranarray(x1), x2),
        (np.broadcast_to(x0[3], x0.shape), x1, np.broadcast_to(x2[0], x2.shape)),
        (np.repeat(x0, 3, axis=1)[:, ::3], np.swapaxes(np.swapaxes(x1, 1, 2).copy(), 1, 2), np.repeat(x2, 2)[::2]),
    ]
    for arrays in layouts:
        assert_same(program, ufunc, arrays)


def test_arrays_of_rank_three_and_more():
    builder = Builder()
    results = (tuple(builder.mul(builder.const(2.0), builder.input(0, e)) for e in reversed(range(48))),)
    program = Program((Array("x", (2, 3, 4, 2)),), (Array("y", (4, 3, 4)),), reachable(results), results)
    x = np.random.default_rng(0).standard_normal((10, 2, 3, 4, 2))
    ufunc = compiled(program)
    np.testing.assert_array_equal(ufunc(x), 2.0 * x.reshape(10, 48)[:, ::-1].reshape(10, 4, 3, 4))
    view = np.moveaxis(np.moveaxis(x, 1, 4).copy(), 4, 1)
    np.testing.assert_array_equal(ufunc(view), ufunc(x))


def test_outputs_over_inputs():
    program = forward_dynamics(4)
    ufunc = compiled(program)
    q, v, tau = arrays_for(program, (37,))
    (want,) = numpy_reference.evaluate(program, [q, v, tau])
    for number in range(3):
        arrays = [q.copy(), v.copy(), tau.copy()]
        ufunc(*arrays, out=arrays[number])
        np.testing.assert_allclose(arrays[number], want, rtol=1e-11)


def test_scalar_programs_in_place():
    builder = Builder()
    x, y = builder.input(0, 0), builder.input(1, 0)
    results = ((builder.add(builder.mul(x, x), y),), (builder.sub(x, y),))
    program = Program((Array("x", ()), Array("y", ())), (Array("a", ()), Array("b", ())), reachable(results), results)
    ufunc = compiled(program)
    x, y = np.random.default_rng(0).standard_normal((2, 29))
    a, b = x.copy(), y.copy()
    ufunc(a, b, out=(b, a))
    np.testing.assert_allclose(b, x * x + y, rtol=1e-14)
    np.testing.assert_array_equal(a, x - y)


def test_constants_and_inputs_as_outputs():
    builder = Builder()
    sine = builder.sin(builder.input(0, 0))
    results = ((builder.const(1.5), builder.input(0, 1), sine, sine),)
    program = Program((Array("x", (2,)),), (Array("y", (4,)),), reachable(results), results)
    assert_same(program, compiled(program), arrays_for(program, (5,)))


@pytest.mark.parametrize("lanes", [1, 4, 8])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_constants_stay_between_computed_results(lanes, dtype, monkeypatch):
    """Constants are written once, before all groups; parts that hand on values must not touch them."""
    monkeypatch.setattr(llvm_straight, "NODES_PER_PART", 7)
    given = random_program(3, size=120)
    builder = Builder()
    new = {}
    for node in given.nodes:
        new[node] = builder.rebuild(node, tuple(new[arg] for arg in node.args))
    rng = np.random.default_rng(0)
    results = tuple(
        tuple(new[node] if rng.random() < 0.5 else builder.const(rng.standard_normal()) for node in group)
        for group in given.results
    )
    program = Program(given.inputs, given.outputs, reachable(results), results)
    assert "call void @fill(" in llvm_simd.emit(program, Options(lanes=lanes))
    assert_same(program, compiled(program, dtype, lanes), arrays_for(program, (2 * lanes + 3,)), dtype)


@pytest.mark.parametrize(
    ("dtype", "lanes"), [("float64", 2), ("float64", 4), ("float64", 8), ("float32", 4), ("float32", 16)]
)
def test_results_with_and_without_gaps_are_the_same(dtype, lanes):
    """Matrices without gaps in memory are stored by cache lines, the last of which may overlap the one before."""
    shapes = (7,), (8,), (9,), (3, 5), (4, 4), (17,), (2, 3, 11), (33, 16)
    builder = Builder()
    x = builder.input(0, 0)
    results = tuple(tuple(builder.mul(x, builder.const(1.0 + i)) for i in range(math.prod(shape))) for shape in shapes)
    arrays = tuple(Array(f"out{i}", shape) for i, shape in enumerate(shapes))
    program = Program((Array("x", (1,)),), arrays, reachable(results), results, "numbers")
    function, states = compiled(program, dtype, lanes), np.arange(1.0, lanes + 4.0, dtype=dtype)
    expected = [np.multiply.outer(states, 1.0 + np.arange(math.prod(s), dtype=dtype)).reshape(-1, *s) for s in shapes]
    room = [np.zeros((len(states), *shape[:-1], shape[-1] + 1), dtype) for shape in shapes]
    apart = tuple(array[..., :-1] for array in room)
    for found in (function(states[:, None]), function(states[:, None], out=apart)):
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert not any(array[..., -1].any() for array in room)


@pytest.mark.parametrize("size", [64, 67, 81, 100])
def test_large_results_at_any_place_of_a_cache_line(size):
    """They are stored by whole lines of memory, which begin elsewhere in each state; nothing beside them changes."""
    builder = Builder()
    x = builder.input(0, 0)
    results = (tuple(builder.add(x, builder.const(1.0 + i)) for i in range(size)),)
    program = Program((Array("x", (1,)),), (Array("out", (size,)),), reachable(results), results, "numbers")
    function, states = compiled(program), np.arange(1.0, 12.0)
    expected = np.add.outer(states, 1.0 + np.arange(size))
    for start in (*range(0, 80, 8), 3, 13):  # bytes
        memory = np.full(expected.nbytes + 128, 77, np.uint8)
        out = memory[start : start + expected.nbytes].view(float).reshape(expected.shape)
        function(states[:, None], out=(out,))
        np.testing.assert_array_equal(out, expected)
        assert (memory[:start] == 77).all() and (memory[start + expected.nbytes :] == 77).all()


def constant_matrix(size: int) -> Program:
    builder = Builder()
    values = [builder.const(1.0 + row if row == column else 0.0) for row in range(size) for column in range(size)]
    results = (tuple(values),)
    return Program((Array("q", (size,)),), (Array("m", (size, size)),), reachable(results), results, "constant")


def test_text_of_a_constant_matrix_does_not_grow_with_it():
    small, large = (llvm_simd.emit(constant_matrix(size), Options(lanes=8)) for size in (100, 200))
    assert small.count("\n") == large.count("\n") < 700
    program = constant_matrix(200)
    assert_same(program, compiled(program), arrays_for(program, (9,)))


def test_results_that_are_stored_in_many_places_are_cut_into_parts():
    """LLVM's time per store grows with the number of stores in a part."""
    builder = Builder()
    products = [builder.mul(builder.input(0, i), builder.input(1, j)) for i in range(40) for j in range(40)]
    results = (tuple(products), tuple(builder.input(0, e % 40) for e in range(1600)))
    arrays = Array("outer", (40, 40)), Array("copies", (40, 40))
    program = Program((Array("x", (40,)), Array("y", (40,))), arrays, reachable(results), results)
    parts = llvm_simd.emit(program, Options(lanes=8)).split("define internal void @part")[1:]
    limit = llvm_straight.NODES_PER_PART / llvm_straight.NODES_PER_RESULT
    assert max(part.split("ret void")[0].count("  store ") for part in parts) <= limit
    assert_same(program, compiled(program), arrays_for(program, (9,)))


def test_the_accesses_of_a_part_are_fenced_off_from_each_other():
    """LLVM's scheduler compares every store with all accesses back to the last fence."""
    builder = Builder()
    products = [builder.mul(builder.input(0, i), builder.input(1, j)) for i in range(30) for j in range(30)]
    program = Program(
        (Array("x", (30,)), Array("y", (30,))), (Array("outer", (30, 30)),), reachable([products]), (tuple(products),)
    )
    parts = llvm_simd.emit(program, Options(lanes=8)).split("define internal void @part")[1:]
    stretches = [stretch for part in parts for stretch in part.split("ret void")[0].split(llvm_operations.FENCE)]
    accesses = [stretch.count("  store ") + stretch.count(" load ") for stretch in stretches]
    assert sum(accesses) >= 960 and max(accesses) <= llvm_operations.ACCESSES_PER_FENCE
    again = [len(places) - len(set(places)) for places in (re.findall(r"%(\w+)\.\d+ = load", x) for x in stretches)]
    assert (
        max(again) == 0
    )  # and whatever is loaded a second time from its first load: LLVM makes one of two that are not
    assert_same(program, compiled(program), arrays_for(program, (9,)))


def test_text_is_deterministic_and_names_its_sections():
    first, again = (llvm_simd.emit(random_program(2), Options(lanes=8)) for _ in range(2))
    assert first == again
    assert "; part 3" in first and re.search(r"%x1_\d\.\d+ = load <8 x double>", first)


def test_emission_takes_time_in_proportion_to_the_length():
    def lines_per_node(links: int) -> float:
        program = fuse_multiply_add(forward_dynamics(links))
        return lines_run(lambda: llvm_simd.emit(program, Options(lanes=8))) / len(program.nodes)

    assert lines_per_node(32) < 1.5 * lines_per_node(4)


def test_values_that_are_many_results_lie_in_memory_once():
    """A symmetric matrix with zeros, inputs among its entries: stored once each, and delivered by a table; whatever
    the strides of the result."""
    builder, n = Builder(), 7
    x = [builder.input(0, i) for i in range(n)]
    zero = builder.const(0.0)
    entries = {(i, j): builder.mul(x[i], x[j]) if (i + j) % 2 else zero for i in range(n) for j in range(i)}
    results = tuple(x[i] if i == j else entries[max(i, j), min(i, j)] for i in range(n) for j in range(n))
    program = Program((Array("x", (n,)),), (Array("m", (n, n)),), reachable([results]), (results,))
    text = llvm_simd.emit(program, Options(lanes=8))
    products = len({node for node in results if node.op is ops.MUL})
    assert sum(part.split("ret void")[0].count("  store ") for part in text.split("void @part")[1:]) == products
    ufunc = compiled(program)
    arrays = arrays_for(program, (11,))
    assert_same(program, ufunc, arrays)
    straight = ufunc(*arrays)
    for out in (
        np.empty((11, n, 2 * n))[..., ::2],
        np.empty((n, 11, n)).swapaxes(0, 1),
        np.empty((11, n, n)).swapaxes(1, 2),
    ):
        np.testing.assert_array_equal(ufunc(*arrays, out=out), straight)
