"""Graphs copied from one builder into another."""

from __future__ import annotations

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program
from linkwise.compiler.ir.spec import check


def test_a_copy_takes_fused_operations_apart_and_computes_the_same():
    """By hand: a b + c, a b - c and c - a b at inputs exchanged for others."""
    b = Builder()
    x, y, z = (b.input(0, k) for k in range(3))
    results = tuple(b.fused(op, x, y, z) for op in ops.FUSED)
    program = check(Program((Array("x", (3,)),), (Array("f", (3,)),), (x, y, z, *results), (results,)))
    other = Builder()
    other.section = "under way"
    new = other.copy(program, lambda array, element: other.input(array + 1, 2 - element))
    u, v, w = (other.input(1, 2 - k) for k in range(3))
    product = other.mul(u, v)
    assert [new[node] for node in results] == [other.add(product, w), other.sub(product, w), other.sub(w, product)]
    assert other.section == "under way"
    assert [new[node] for node in (x, y, z)] == [u, v, w]
