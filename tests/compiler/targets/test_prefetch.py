"""Cache lines of large results are asked for while these are computed, each once, at equal distances."""

from __future__ import annotations

import re

import numpy as np
import pytest

from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable
from linkwise.compiler.runtime import llvm_loader
from linkwise.compiler.targets import llvm_simd, llvm_straight, x86_assembly
from linkwise.compiler.targets.llvm_vector import VectorType
from linkwise.compiler.targets.prefetch import add_prefetches
from linkwise.compiler.targets.protocol import Options
from linkwise.compiler.targets.register_assignment import AHEAD, COMPUTE, Action

from .compiled import compiled

VECTOR = VectorType("float64", 8)


def powers(count: int, *sizes: int) -> Program:
    """x, x^2, x^3, ...: ``count`` of them, the last ones in results of these sizes."""
    builder = Builder()
    found = [builder.input(0, 0)]
    while len(found) < count:
        found.append(builder.mul(found[-1], found[0]))
    results = tuple(tuple(found[-size:]) for size in sizes)
    arrays = tuple(Array(f"out{i}", (size,)) for i, size in enumerate(sizes))
    return Program((Array("x", (1,)),), arrays, reachable(results), results, "powers")


def test_every_line_of_large_results_once_and_at_equal_distances():
    program = powers(3000, 520, 10, 512)
    actions = [Action(COMPUTE, node) for node in program.nodes if node.args]
    pieces = add_prefetches([actions[:1000], actions[1000:]], program, VECTOR)
    assert [[a for a in piece if a.kind != AHEAD] for piece in pieces] == [actions[:1000], actions[1000:]]
    whole = [action for piece in pieces for action in piece]
    lines = [action.slot for action in whole if action.kind == AHEAD]
    first = [(lane, 64 * k) for lane in range(8) for k in range(65)]
    assert lines == first + [(8 + lane, 64 * k) for lane in range(8) for k in range(64)]
    gaps = np.diff([i for i, action in enumerate(whole) if action.kind == AHEAD])
    assert gaps.max() - gaps.min() <= 1


def test_few_operations_are_not_held_up():
    program = powers(600, 512)
    (piece,) = add_prefetches([[Action(COMPUTE, node) for node in program.nodes if node.args]], program, VECTOR)
    assert sum(action.kind == AHEAD for action in piece) == 599 // 2


def test_small_results_are_not_asked_for():
    assert "@llvm.prefetch.p0(ptr %state" not in llvm_simd.emit(powers(600, 511), Options(lanes=8))


@pytest.mark.parametrize("nodes", [0, 10**6])  # in assembly, where the machine has AVX-512, and in LLVM
def test_results_are_the_same(nodes, monkeypatch):
    monkeypatch.setattr(llvm_straight, "NODES_FOR_LLVM", nodes)
    program, here = powers(1500, 600), llvm_loader.host_options()
    by_hand = nodes == 0 and x86_assembly.available(here.features, VectorType("float64", here.lanes))
    asked = r"prefetcht1 (\d+)\(%rax\)" if by_hand else r"@llvm\.prefetch\.p0\(ptr %state\d+\.(\d+), i32 0"
    assert {int(k) for k in re.findall(asked, llvm_simd.emit(program, here))} == set(range(0, 4800, 64))
    x = np.linspace(0.999, 1.001, 11)
    np.testing.assert_allclose(compiled(program)(x[:, None]), x[:, None] ** np.arange(901, 1501), rtol=1e-11)
