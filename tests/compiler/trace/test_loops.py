"""Functions of many lists as loops: the same numbers as list by list, on every target."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.ir.program import CELL, NUMBER, Array, Program
from linkwise.compiler.ir.spec import check
from linkwise.compiler.passes.unroll import unroll
from linkwise.compiler.rolling import choice
from linkwise.compiler.runtime import cpu
from linkwise.compiler.runtime.cache import program_key
from linkwise.compiler.targets import llvm_looped, llvm_scratch, llvm_straight, numpy_reference
from linkwise.compiler.targets.protocol import Options
from linkwise.compiler.trace import trace
from linkwise.mechanics.scalar import dot, each, select, sin
from tests.algorithms import VARIANTS
from tests.compiler.targets import cuda_on_host
from tests.compiler.test_export import needs_compiler, run
from tests.compiler.test_loops import largest_error, states

INPUTS = (Array("x", (4, 5)), Array("y", (5,)))


def traced(function, pay=lambda saved: True, inputs=INPUTS, outputs=("f",)):
    """With loops, and without."""
    looped = trace(function, inputs, outputs, "kernel", None, pay)
    return looped, trace(function, inputs, outputs, "kernel")


def assert_same(function, **how) -> Program:
    looped, straight = traced(function, **how)
    assert looped.loops
    check(looped)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(3, *array.shape)) for array in looped.inputs]
    for program in (looped, check(unroll(looped))):
        both = zip(numpy_reference.evaluate(program, arrays), numpy_reference.evaluate(straight, arrays), strict=True)
        for found, expected in both:
            np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)
    return looped


def rows_by_norm(rows, y):
    norm = dot(y, y)
    return each(rows, lambda row: [a * norm + sin(b) * row[-1] for a, b in zip(row, y, strict=True)])


def test_one_loop_for_lists_with_the_same_constants():
    """Of eight lists four have a zero first, three a two in the second place; one has neither."""

    def function(x, y):
        rows = x.tolist()
        lists = [[0.0, *row[1:]] for row in rows] + [[row[1], 2.0, *row[2:]] for row in rows[:3]] + [rows[0]]
        return [np.array(rows_by_norm(lists, y))]

    looped = assert_same(function)
    assert [len(loop.which) for loop in looped.loops] == [1, 4, 3]
    assert [loop.bodies[0].program.op_counts for loop in looped.loops[1:]] == [
        {"add": 4, "mul": 9},
        {"add": 5, "mul": 9},
    ]


def test_one_loop_for_all_lists_that_are_alike():
    """Unit vectors: constants that differ from list to list are numbers of the table."""

    def function(x, y):
        scaled = [[*row, y[0]] for row in np.eye(5).tolist()]
        return [np.array(each(scaled, lambda row: [dot(row[:5], column) * row[5] for column in x], alike=True))]

    looped = assert_same(function)
    assert [len(loop.which) for loop in looped.loops] == [5]
    assert looped.numbers.tolist() == np.eye(5).ravel().tolist()
    assert {place.space for place in looped.loops[0].bodies[0].reads} == {NUMBER, "input"}  # y[0] is of all lists
    apart = assert_same(lambda x, y: [np.array(each(x.tolist(), lambda row: [a * y[0] for a in row]))])
    assert apart.numbers.size == 0


def test_zeros_of_lists_that_are_alike_stay_zeros():
    """Of unit vectors times a matrix of which two columns are apart from the others."""
    apart = np.kron(np.eye(2), np.ones((2, 2)))

    def function(x, y):
        matrix = [[x[i, j] if apart[i, j] else 0.0 for j in range(4)] for i in range(4)]
        rows = [[*row, y[0]] for row in np.eye(4).tolist()]
        found = each(rows, lambda row: [dot(row[:4], c) * row[4] for c in zip(*matrix, strict=True)], alike=True)
        return [np.array(found)]

    looped = assert_same(function)
    assert (looped.sparsity[0] == apart.astype(bool)).all()


def test_programs_that_differ_in_places_alone_are_told_apart():
    """Straight-line code keeps values where later loops write: where that is, is a part of what is compiled."""

    def function(x, y, order=1):
        lists = [[[a * y[k] for a in row] for row in x.tolist()] for k in range(2)][::order]
        found = [each(rows, lambda row: [dot(row, y)]) for rows in lists][::order]
        return [np.array(found)]

    options = Options("float64")
    keys = {
        program_key(trace(lambda x, y, o=o: function(x, y, o), INPUTS, ("f",), "kernel", None, bool), options)
        for o in (1, -1)
    }
    assert len(keys) == 2


def test_functions_in_turn_hand_on_what_they_leave():
    """Results of one loop are read by the next where they are, and what a function does not change by those after."""

    def function(x, y):
        def first(row):
            return [row[0] * y[0] + row[1], row[1] - row[2] * y[1], *row[2:]]

        def second(row):
            return [row[0] * row[1], row[1] + row[3], *row[2:]]

        return [np.array(each(x.tolist(), first, second))]

    looped = assert_same(function)
    copied, one, other = looped.loops
    assert len(one.which) == len(other.which) == 4
    assert looped.cells == 4 * (4 + 2 + 2 + 1)  # what is copied (one as it is a result too), and results of both
    assert all(place.space == CELL for place in copied.bodies[0].writes)
    assert [len(loop.bodies[0].writes) for loop in (one, other)] == [2, 2]


def test_conditions_constants_and_lists_within_lists():
    def function(x, y):
        positive = y[0] < y[1]

        def inner(row):
            nested = each([[row[0], a] for a in y], lambda pair: [pair[0] * pair[1]])
            return [select(positive, row[0], row[1] * y[2]), 3.0, row[1], sum(one for (one,) in nested), y[3] * y[3]]

        after = each(x.tolist(), inner)
        return [np.array(after), sum(row[0] * row[3] for row in after)]

    looped = assert_same(function, outputs=("f", "g"))
    assert [len(loop.which) for loop in looped.loops] == [1, 4, 1]  # before, for each, and after


def test_few_lists_or_little_to_save_are_no_loops():
    for rows, pay in ((2, True), (4, False)):

        def function(x, y, rows=rows):
            return [np.array(rows_by_norm(x.tolist()[:rows], y))]

        looped, straight = traced(function, lambda saved, pay=pay: pay)
        assert not looped.loops and looped.op_counts == straight.op_counts
    asked = []
    traced(lambda x, y: [np.array(rows_by_norm(x.tolist(), y))], lambda saved: bool(asked.append(saved)))
    assert asked == [
        3 * (5 + 5 + 5 + 5)
    ]  # of three more rows: elements, and three operations for each, two of them own


@pytest.fixture
def always_loops(monkeypatch):
    monkeypatch.setattr(choice, "SAVED_BY_LOOPS", 0)


TREES = {
    "floating tree": lambda: lw.mechanisms.random_tree(9, 4, floating_base=True),
    "balls": lambda: lw.mechanisms.random_tree(6, 2, ["spherical", "revolute", "planar"]),
    "chain": lambda: lw.mechanisms.chain(7),
}
NAMES = ("forward_dynamics_derivatives", "rk4_step_derivatives", "forward_dynamics_derivatives_with_wrenches")


@pytest.mark.parametrize("mechanism", TREES)
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_by_loops_are_those_without(name, mechanism, always_loops):
    mech = TREES[mechanism]()
    looped = lw.compile(VARIANTS[name], mech)
    straight = lw.compile(VARIANTS[name], mech, target="numpy", loops=False)
    assert looped.traced.loops and not straight.traced.loops
    for batch in ((), (11,), (2, 0, 3)):
        arrays = states(mech, straight, batch)
        for found, expected in zip(in_parts(looped(*arrays)), in_parts(straight(*arrays)), strict=True):
            assert found.shape == expected.shape
            assert not found.size or largest_error(found, expected) < 1e-11
    for found, expected in zip(in_parts(looped.sparsity), in_parts(straight.sparsity), strict=True):
        assert (found == expected).all()
    assert "straight-line code" in looped.plan() and "Loops, and code between them" in looped.plan()


def in_parts(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("long, assembly", [(0, 0), (0, 10**9), (10**9, 10**9)])
def test_machine_code_of_code_between_loops(long, assembly, dtype, always_loops, monkeypatch):
    """As bodies of loops, as parts of straight-line code, and as assembly where the machine has AVX-512."""
    monkeypatch.setattr(llvm_scratch, "LONG_BODY", long)
    monkeypatch.setattr(llvm_straight, "NODES_FOR_LLVM", assembly)
    monkeypatch.setattr(cpu, "program_key", lambda *_: None)  # not from the cache
    mech = TREES["floating tree"]()
    looped, reference = (lw.compile(NAMES[0], mech, dtype, target) for target in ("cpu", "numpy"))
    arrays = [x.astype(dtype) for x in states(mech, looped, (19,))]
    assert largest_error(looped(*arrays), reference(*arrays)) < (1e-12 if dtype == "float64" else 1e-3)


def test_long_bodies_are_cut_into_parts(always_loops, monkeypatch):
    """What parts hand on lies in memory, as do sines that are needed in several of them."""
    monkeypatch.setattr(llvm_scratch, "LONG_BODY", 10**9)
    monkeypatch.setattr(llvm_looped, "NODES_FOR_LLVM", 100)
    monkeypatch.setattr(llvm_looped, "NODES_PER_PART", 50)
    monkeypatch.setattr(cpu, "program_key", lambda *_: None)  # not from the cache
    mech = TREES["floating tree"]()
    looped, reference = (lw.compile(NAMES[0], mech, target=target) for target in ("cpu", "numpy"))
    assert looped.source().count("call void @body") > 10
    arrays = states(mech, looped, (19,))
    assert largest_error(looped(*arrays), reference(*arrays)) < 1e-12


@needs_compiler
def test_exported_c(always_loops, tmp_path):
    mech = TREES["balls"]()
    kernel = lw.compile(NAMES[0], mech, target="numpy")
    assert kernel.traced.loops
    arrays = states(mech, kernel, (3,))
    expected = kernel(*arrays)
    path = lw.export_c(kernel, mech, tmp_path / "kernel.c")
    assert largest_error(run(path, f"{NAMES[0]}_batch", 3, arrays, np.full_like(expected, np.nan)), expected) < 1e-12


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler on this machine")
def test_cuda_text_on_the_host(always_loops, monkeypatch, tmp_path):
    cuda_on_host.install(monkeypatch, tmp_path)
    mech = TREES["chain"]()
    own, reference = (lw.compile(NAMES[0], mech, target=target) for target in ("cuda", "numpy"))
    arrays = states(mech, reference, (40,))
    assert largest_error(own(*arrays), reference(*arrays)) < 1e-12


def test_numbers_are_in_the_code_so_that_variants_share_it_otherwise(always_loops):
    """Code with loops over links shares numbers as data; this has them as constants, as straight-line code has."""
    mech = TREES["chain"]()
    assert lw.compile(NAMES[0], mech, target="numpy").traced.constants_in_code
    heavier = mech.with_payload(mech.link_names[-1], 2.0)
    q, v = lw.random_state(mech, np.random.default_rng(1))
    for variant in (mech, heavier):
        found = lw.forward_dynamics_derivatives(variant, q, v, v)
        expected = lw.compile(NAMES[0], variant, target="numpy", loops=False)(q, v, v)
        for one, other in zip(found, expected, strict=True):
            assert largest_error(one, other) < 1e-11
