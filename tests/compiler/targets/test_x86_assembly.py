"""Straight-line code as assembly: equal to the NumPy reference, one instruction for an operation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable
from linkwise.compiler.passes.fuse_multiply_add import fuse_multiply_add
from linkwise.compiler.runtime import llvm_loader
from linkwise.compiler.targets import llvm_simd, llvm_straight, numpy_reference, x86_assembly
from linkwise.compiler.targets.llvm_vector import VectorType

from .compiled import compiled
from .sample_programs import forward_dynamics, random_program

HERE = llvm_loader.host_options()
pytestmark = pytest.mark.skipif(
    not x86_assembly.available(HERE.features, VectorType("float64", HERE.lanes)), reason="needs AVX-512 and Linux"
)


@pytest.fixture(autouse=True)
def all_in_assembly(monkeypatch):
    monkeypatch.setattr(llvm_straight, "NODES_FOR_LLVM", 0)


def assert_same(program: Program, dtype: str = "float64") -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 1.5, (11, *array.shape)).astype(dtype) for array in program.inputs]
    found = compiled(program, dtype)(*arrays)
    expected = numpy_reference.evaluate(program, arrays, dtype)
    tolerance = 1e-12 if dtype == "float64" else 1e-3
    for one, other in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def in_assembly(program: Program) -> list[str]:
    text = llvm_simd.emit(program, HERE)
    return [line for line in text.split("\n") if line.startswith("module asm")]


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", ("float64", "float32"))
def test_a_recursion(dtype):
    program = fuse_multiply_add(forward_dynamics(6))
    assert in_assembly(program)
    assert_same(program, dtype)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_with_parts_that_are_llvm_s(seed):
    assert_same(fuse_multiply_add(random_program(seed)))


@pytest.mark.parametrize("stretch, near", [(1, 4), (3, 4), (7, 32), (512, 128)])
@pytest.mark.parametrize("dtype", ("float64", "float32"))
def test_registers_that_point_to_what_is_used_next(stretch, near, dtype, monkeypatch):
    """Set often, at narrow parts of the scratch area: between a load and its use, too."""
    monkeypatch.setattr(x86_assembly, "STRETCH", stretch)
    monkeypatch.setattr(x86_assembly, "NEAR", near)
    monkeypatch.setattr(x86_assembly, "WORTH", 1)
    program = fuse_multiply_add(forward_dynamics(12))
    set_to = [line for line in in_assembly(program) if line.startswith('module asm "leaq') and "(%rdi)" in line]
    assert len(set_to) >= {1: 300, 3: 150, 7: 4, 512: 1}[stretch]
    assert_same(program, dtype)


def test_operands_are_short():
    """Within 128 vectors of a register: the displacement takes one byte."""
    lines = in_assembly(fuse_multiply_add(forward_dynamics(20)))
    far = [line for line in lines if "(%rdi)" in line and "leaq" not in line]
    near = [line for line in lines if any(f"({register})" in line for register in x86_assembly.WINDOWS)]
    assert len(near) > 20 * len(far) and len(near) > 1000


@pytest.mark.parametrize("op", (ops.FMA, ops.FMS, ops.FNMA), ids=lambda op: op.name)
def test_fused_operations_whatever_their_operands_are(op):
    """Inputs, constants and values, each for the last time or not, the same one twice or three times."""
    builder = Builder()
    x, y = builder.input(0, 0), builder.input(0, 1)
    kept, once = builder.add(x, y), builder.mul(x, y)
    results = []
    for number, choice in enumerate(itertools.product(range(4), repeat=3)):
        last = builder.add(once, builder.const(float(number)))  # of no other use
        operands = [(x, kept, builder.const(0.75), last)[k] for k in choice]
        results.append(builder.fused(op, *operands))
    results.append(kept)
    program = Program((Array("x", (2,)),), (Array("f", (65,)),), reachable([results]), (tuple(results),))
    assert in_assembly(program)
    assert_same(program)


def test_each_other_operation():
    builder = Builder()
    x, y = builder.input(0, 0), builder.input(0, 1)
    two = builder.const(2.0)
    results = [builder.neg(x), builder.sqrt(builder.add(x, y)), builder.neg(builder.mul(x, y))]
    results += [
        function(a, b) for function in (builder.sub, builder.div) for a, b in ((x, y), (y, x), (two, y), (x, x))
    ]
    results += [builder.sub(x, two), builder.add(two, y), builder.mul(two, builder.sqrt(y))]
    program = Program((Array("x", (2,)),), (Array("f", (14,)),), reachable([results]), (tuple(results),))
    assert len(in_assembly(program)) > 14
    assert_same(program)


def test_one_instruction_for_an_operation():
    program = fuse_multiply_add(forward_dynamics(12))
    lines = in_assembly(program)
    arithmetic = [
        x for x in lines if any(x.startswith(f'module asm "v{op}') for op in ("fm", "fn", "add", "sub", "mul"))
    ]
    operations = [x for x in program.nodes if x.op in (ops.ADD, ops.SUB, ops.MUL, ops.FMA, ops.FMS, ops.FNMA)]
    assert len(arithmetic) == len(operations)


def test_only_for_machines_that_have_it():
    vector = VectorType("float64", 8)
    assert not x86_assembly.available("+avx2,+fma", vector)
    assert not x86_assembly.available(HERE.features, VectorType("float64", 4))


def test_operations_without_an_instruction_are_among_themselves():
    """Sines of computed angles are LLVM's; what comes before, between and after them is assembly."""
    builder = Builder()
    x = builder.input(0, 0)
    chain, sines = [x], []
    for i in range(400):
        chain.append(builder.add(builder.mul(chain[-1], x), x))
        if i in (150, 160, 300):
            sines.append(builder.sin(chain[-1]))
            chain.append(builder.add(chain[-1], sines[-1]))
    results = ((chain[-1],),)
    program = fuse_multiply_add(Program((Array("x", (1,)),), (Array("y", (1,)),), reachable(results), results, "sines"))
    nodes = [node for node in program.nodes if node.args]
    places = [i for i, node in enumerate(nodes) if node.op is ops.SIN]
    assert x86_assembly.cuts_around_others(nodes) == {places[0], places[1] + 1, places[2], places[2] + 1}
    assert x86_assembly.cuts_around_others(nodes[: places[0]]) == set()
    text = llvm_simd.emit(program, HERE)
    assert [text.count("define internal void @part"), text.count("declare void @part")] == [2, 3]
    x = np.linspace(-0.3, 0.3, 11)
    expected = numpy_reference.evaluate(program, [x[:, None]], "float64")[0]
    np.testing.assert_allclose(compiled(program)(x[:, None]), expected, rtol=1e-12)


def test_operations_do_not_wait_for_each_other_where_others_can_be_done():
    """Two sums of six products each, one after the other: their terms are added in turn."""
    builder = Builder()
    a, b = ([builder.input(array, i) for i in range(12)] for array in range(2))
    sums = []
    for start in (0, 6):
        total = builder.mul(a[start], b[start])
        for i in range(start + 1, start + 6):
            total = builder.add(total, builder.mul(a[i], b[i]))
        sums.append(total)
    program = Program(
        (Array("a", (12,)), Array("b", (12,))), (Array("sums", (2,)),), reachable((sums,)), (tuple(sums),)
    )
    fused = fuse_multiply_add(program)
    nodes = [node for node in fused.nodes if node.args]
    order = x86_assembly.interleave(nodes)
    assert sorted(order, key=nodes.index) == nodes
    place = {node: i for i, node in enumerate(order)}
    assert all(place[arg] < place[node] for node in nodes for arg in node.args if arg in place)
    waits = [place[node] - place[arg] for node in nodes for arg in node.args if arg in place]
    assert min(waits) == 2 and all(
        nodes.index(node) - nodes.index(node.args[2]) == 1 for node in nodes if node.args[2:]
    )
    assert_same(fused)


@pytest.mark.parametrize("seed", range(4))
def test_operands_stay_before_their_uses(seed):
    nodes = [node for node in fuse_multiply_add(random_program(seed)).nodes if node.args]
    order = x86_assembly.interleave(nodes)
    place = {node: i for i, node in enumerate(order)}
    assert set(order) == set(nodes) and len(order) == len(nodes)
    assert all(place[arg] < place[node] for node in nodes for arg in node.args if arg in place)
    others = [node for node in nodes if node.op not in x86_assembly.KNOWN]
    assert all(place[node] == nodes.index(node) for node in others)
