"""Registers assigned before LLVM does it: every action is possible, the registers suffice, and few loads are made."""

from __future__ import annotations

import pytest

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable
from linkwise.compiler.passes.fuse_multiply_add import fuse_multiply_add
from linkwise.compiler.targets.llvm_scratch import Scratch
from linkwise.compiler.targets.llvm_vector import VectorType
from linkwise.compiler.targets.register_assignment import COMPUTE, CUT, FORGET, LOAD, STORE, assigned, registers
from tests.compiler.targets.sample_programs import forward_dynamics, random_program


def followed(program: Program, count: int, cuts=()):
    """The actions, each checked to be possible; the most values in registers at a time, and what was done how often."""
    scratch = Scratch(program, VectorType("float64", 8))
    nodes = [node for node in program.nodes if node.args and node not in scratch.slots]
    nodes += [node for node in scratch.destinations if node not in set(nodes)]
    held, memory, most, done = set(), {slot: node for node, slot in scratch.slots.items()}, 0, {}
    for kind, node, slot in assigned(nodes, scratch, count, cuts):
        done[kind] = done.get(kind, 0) + 1
        if kind == LOAD:
            assert memory[slot] is node and node not in held
            held.add(node)
        elif kind == COMPUTE:
            assert all(arg in held or arg.op is ops.CONST for arg in node.args) and node not in held
            held.add(node)
        elif kind == STORE:
            assert node in held
            memory[slot] = node
        elif kind == FORGET:
            held.remove(node)
        else:
            assert not held
        most = max(most, len(held))
    for node, slots in scratch.destinations.items():
        assert all(memory[slot] is node for slot in slots)
    assert not held and done[COMPUTE] == sum(bool(node.args) and node not in scratch.slots for node in program.nodes)
    return most, done


@pytest.mark.parametrize("count", (4, 12, 28))
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed, count):
    most, _ = followed(random_program(seed), count, cuts=(5, 17))
    assert most <= count + 1  # what is computed may take the place of an operand


@pytest.mark.parametrize("count", (12, 28))
def test_a_recursion_with_cuts(count):
    program = fuse_multiply_add(forward_dynamics(8))
    most, done = followed(program, count, cuts=range(500, len(program.nodes), 500))
    assert most <= count + 1 and done[CUT] == len(range(500, done[COMPUTE], 500))


def test_what_is_in_memory_is_not_stored_again():
    """A product of matrices whose factors are inputs: sums stay in registers, and results are stored once."""
    builder, n = Builder(), 6
    results = []
    for i in range(n):
        for j in range(n):
            terms = [builder.mul(builder.input(0, n * i + k), builder.input(1, n * k + j)) for k in range(n)]
            total = terms[0]
            for term in terms[1:]:
                total = builder.add(total, term)
            results.append(total)
    arrays = Array("a", (n, n)), Array("b", (n, n))
    program = fuse_multiply_add(Program(arrays, (Array("c", (n, n)),), reachable([results]), (tuple(results),)))
    _, done = followed(program, 12)
    assert done[STORE] == n * n
    assert 2 * n * n <= done[LOAD] < 2 * n**3
    assert followed(program, 2 * n * n + 4)[1][LOAD] == 2 * n * n


def test_nothing_is_in_registers_across_calls():
    builder = Builder()
    x, y = builder.input(0, 0), builder.input(0, 1)
    product = builder.mul(x, y)
    sine, cosine = builder.sin(product), builder.cos(product)
    total = builder.add(builder.add(sine, cosine), builder.add(product, x))
    program = Program((Array("x", (2,)),), (Array("f", (1,)),), reachable([[total]]), ((total,),))
    scratch = Scratch(program, VectorType("float64", 8))
    actions = list(assigned([node for node in program.nodes if node.args], scratch, 28))
    call = next(i for i, action in enumerate(actions) if action.node is sine and action.kind == COMPUTE)
    assert [(a.kind, a.node) for a in actions[call - 3 : call]][-1] == (LOAD, product)
    assert sum(a.kind == STORE and a.node is product for a in actions[:call]) == 1


def test_registers_of_machines():
    assert registers("+avx,+avx2") == 12 and registers("+avx512f,+avx512vl") == registers("+neon") == 28
