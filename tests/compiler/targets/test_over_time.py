"""Loops over time: machine code against the plain loop of the NumPy reference."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable
from linkwise.compiler.ir.spec import IllegalProgram, check
from linkwise.compiler.known_targets import load
from linkwise.compiler.passes.scan import scan
from linkwise.compiler.runtime import cache, gufunc, llvm_loader
from linkwise.compiler.targets import llvm_loop, llvm_simd, llvm_straight, numpy_reference
from tests.compiler.targets.sample_programs import random_program

SHAPES = ((4,), (2, 3), (), (2, 3, 2), (4,))  # two that are fed back, two that are new for each run, one that stays
CARRIED, PER_RUN = {"y0": "x0", "y1": "x1"}, ("x2", "x3")


def step_of(seed: int) -> Program:
    return random_program(seed, shapes=SHAPES, outputs=SHAPES[:2])


def program_of(seed: int, **how) -> Program:
    return check(scan(step_of(seed), CARRIED, PER_RUN, **how))


def compiled(program: Program, dtype: str = "float64", lanes: int | None = None) -> np.ufunc:
    options = llvm_loader.host_options(dtype)
    options = dataclasses.replace(options, lanes=lanes or options.lanes)
    code = llvm_loader.load(llvm_simd.emit(program, options), llvm_simd.symbol(program), options)
    return gufunc.make_gufunc(code, program.inputs, program.outputs, dtype, program.name)


def arrays_for(batch: tuple[int, ...], records: int, repeats: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    names = ("x0", "x1", "x2", "x3", "x4")
    extra = {"x2": (records, repeats), "x3": (records, repeats)}
    return [rng.normal(size=(*batch, *extra.get(name, ()), *shape)) for name, shape in zip(names, SHAPES, strict=True)]


def by_hand(program: Program, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """One state at a time, one run at a time."""
    x0, x1, x2, x3, x4 = arrays
    records = []
    for record in range(x2.shape[0]):
        for run in range(x2.shape[1]):
            x0, x1 = numpy_reference.evaluate(program, [x0, x1, x2[record, run], x3[record, run], x4])
        records.append((x0, x1))
    return [np.array(kept) for kept in zip(*records, strict=True)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_against_the_reference_for_all_lane_counts_and_tails(lanes, dtype):
    for seed in range(3):
        program = program_of(seed)
        ufunc = compiled(program, dtype, lanes)
        assert ufunc.signature.replace(" ", "").startswith("(4),(2,3),(records,repeats),(records,repeats,2,3,2),(4)->")
        for count in (0, 1, lanes - 1, lanes, lanes + 1, 2 * lanes + 3):
            arrays = [x.astype(dtype) for x in arrays_for((count,), 3, 2)]
            expected = numpy_reference.evaluate(program, arrays, dtype)
            for found, array in zip(ufunc(*arrays), expected, strict=True):
                np.testing.assert_allclose(found, array, rtol=0, atol=1e-9 if dtype == "float64" else 2e-3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("registers", [2, 4])
def test_values_that_take_several_registers(registers, dtype):
    """Their lanes are moved one register's after the other."""
    program = program_of(3, registers=registers)
    lanes = registers * llvm_loader.host_options(dtype).lanes
    ufunc = compiled(program, dtype, lanes)
    for count in (1, lanes - 1, lanes + 5):
        arrays = [x.astype(dtype) for x in arrays_for((count,), 2, 2)]
        expected = numpy_reference.evaluate(program, arrays, dtype)
        for found, array in zip(ufunc(*arrays), expected, strict=True):
            np.testing.assert_allclose(found, array, rtol=0, atol=1e-9 if dtype == "float64" else 2e-3)


def test_the_reference_is_the_loop_over_runs():
    program = program_of(1)
    arrays = arrays_for((5,), 4, 3)
    found = numpy_reference.evaluate(program, arrays)
    for i in range(5):
        for one, other in zip(found, by_hand(step_of(1), [x[i] for x in arrays]), strict=True):
            np.testing.assert_array_equal(one[i], other)


def test_no_records_no_repeats_and_broadcasting():
    program = program_of(2)
    ufunc = compiled(program)
    arrays = arrays_for((3,), 0, 2)
    assert [x.shape for x in ufunc(*arrays)] == [(3, 0, 4), (3, 0, 2, 3)]
    arrays = arrays_for((3,), 2, 0)  # nothing is run: the records are what was given
    for found in (ufunc(*arrays), numpy_reference.evaluate(program, arrays)):
        for kept, given in zip(found, arrays, strict=False):
            np.testing.assert_array_equal(kept, np.stack([given, given], axis=1))
    arrays = arrays_for((2, 3), 2, 2)
    arrays[0], arrays[2] = arrays[0][0, 0], np.broadcast_to(arrays[2][:, :1], arrays[2].shape)
    for found, expected in zip(ufunc(*arrays), numpy_reference.evaluate(program, arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_results_that_are_inputs_and_constants():
    """Outputs that swap two inputs, and one that is constant: all are read before any is written."""
    builder = Builder()
    inputs = (Array("a", (2,)), Array("b", (2,)), Array("c", (1,)), Array("u", ()))
    a, b = ([builder.input(i, k) for k in range(2)] for i in range(2))
    results = (tuple(b), tuple(a), (builder.const(7.0),))
    outputs = tuple(Array(f"{name}_next", inputs[i].shape) for i, name in enumerate("abc"))
    program = Program(inputs, outputs, reachable(results), results, "swap")
    assert any(node.op is ops.CONST for node in program.nodes)
    over_time = scan(program, {"a_next": "a", "b_next": "b", "c_next": "c"}, ("u",))
    found = compiled(over_time)([1.0, 2.0], [3.0, 4.0], [5.0], np.zeros((3, 1)))
    np.testing.assert_array_equal(found[0], [[3, 4], [1, 2], [3, 4]])
    np.testing.assert_array_equal(found[1], [[1, 2], [3, 4], [1, 2]])
    np.testing.assert_array_equal(found[2], [[7]] * 3)


def test_scratch_from_the_heap_and_long_programs(monkeypatch):
    monkeypatch.setattr(llvm_loop, "STACK_LIMIT", 64)
    monkeypatch.setattr(llvm_straight, "NODES_PER_PART", 7)
    program = program_of(4)
    assert "@PyMem_RawMalloc(i64 " in llvm_simd.emit(program, llvm_loader.host_options())
    arrays = arrays_for((21,), 2, 3)
    found, expected = compiled(program)(*arrays), numpy_reference.evaluate(program, arrays)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def test_the_key_of_the_cache_depends_on_the_loop_over_time():
    step, options = step_of(0), llvm_loader.host_options()
    others = [step, program_of(0), scan(step, CARRIED, ("x2",)), program_of(0, registers=2)]
    assert len({cache.program_key(one, options) for one in others}) == 4


def test_machine_code_comes_from_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKWISE_CACHE_DIR", str(tmp_path))
    program, arrays = program_of(3), arrays_for((4,), 2, 2)
    results = []
    for _ in range(2):
        out = tuple(np.empty((4, 2, *array.shape)) for array in program.outputs)
        load(program, "float64", "cpu")(*arrays, out=out)
        results.append(out)
        monkeypatch.setattr(llvm_loader, "_loaded", {})  # as in a new process
        monkeypatch.setattr(llvm_simd, "emit", lambda *_: pytest.fail("the object code is there"))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "carried, per_run, fragment",
    [
        ((("y0", "x0"),), ("x2",), "every output"),
        ((("y0", "x0"), ("z", "x1")), ("x2",), "every output"),
        ((("y0", "x0"), ("y1", "x0")), ("x2",), "each its own"),
        ((("y0", "x0"), ("y1", "z")), ("x2",), "each its own"),
        ((("y0", "x0"), ("y1", "x1")), ("x1",), "each its own"),
        ((("y0", "x0"), ("y1", "x1")), (), "given per run must be some of x0, x1"),
        ((("y0", "x0"), ("y1", "x1")), ("w",), "given per run must be some of x0, x1"),
        ((("y0", "x0"), ("y1", "x3")), ("x2",), "cannot become"),
    ],
)
def test_loops_over_time_that_make_no_sense_are_refused(carried, per_run, fragment):
    with pytest.raises(ValueError, match=fragment):
        scan(step_of(0), dict(carried), per_run)


def test_illegal_loops_over_time():
    program, step = program_of(0), step_of(0)
    for carried in (((0, 0),), ((0, 0), (1, 0)), ((0, 1), (1, 0)), ((0, 0), (1, 2))):
        with pytest.raises(IllegalProgram, match="carried"):
            check(dataclasses.replace(program, carried=carried))
    with pytest.raises(IllegalProgram, match="an element for every run"):
        check(dataclasses.replace(program, inputs=step.inputs))


def test_outputs_of_which_the_last_alone_is_kept():
    program = program_of(1)
    whole = numpy_reference.evaluate(program, arrays_for((9,), 4, 2))
    last = program_of(1, last=("y1",))
    assert [array.axes for array in last.outputs] == [("records",), ()]
    for found in (
        compiled(last)(*arrays_for((9,), 4, 2)),
        numpy_reference.evaluate(last, arrays_for((9,), 4, 2)),
    ):
        np.testing.assert_allclose(found[0], whole[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found[1], whole[1][:, -1], rtol=1e-9, atol=1e-9)
