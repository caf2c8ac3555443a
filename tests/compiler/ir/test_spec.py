"""What is no legal program is refused, by the rule that it breaks: one program for every rule of the IR."""

from __future__ import annotations

import dataclasses

import pytest

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.program import Array, Node, Program
from linkwise.compiler.ir.spec import IllegalProgram, check
from tests.compiler.targets.every_operation import every_operation

X = Node(ops.INPUT, (), (0, 0), "", 0)
Y = Node(ops.INPUT, (), (0, 1), "", 1)
SUM = Node(ops.ADD, (X, Y), None, "", 2)
LESS = Node(ops.LESS, (X, Y), None, "", 3)
LEGAL = Program((Array("x", (2,)),), (Array("z", ()),), (X, Y, SUM), ((SUM,),))


def with_node(op: ops.Op, args: tuple[Node, ...] = (), value: object = None) -> Program:
    """The legal program with one node more."""
    return dataclasses.replace(LEGAL, nodes=(X, Y, SUM, LESS, Node(op, args, value, "", 4)))


def changed(**fields: object) -> Program:
    return dataclasses.replace(LEGAL, **fields)


ILLEGAL = {
    "an operation that does not exist": (with_node(ops.Op("power", 2), (X, Y)), "unknown operation power"),
    "an operand too few": (with_node(ops.MUL, (X,)), "%4=mul: mul takes 2 operands"),
    "an operand too many": (with_node(ops.SQRT, (X, Y)), "sqrt takes 1 operands"),
    "operands of a constant": (with_node(ops.CONST, (X,), 1.0), "const takes 0 operands"),
    "used before it is computed": (changed(nodes=(X, SUM, Y)), "%2=add: operand %1 is not computed before it is used"),
    "used, never computed": (changed(nodes=(X, SUM)), "operand %1 is not computed"),
    "arithmetic with a truth value": (with_node(ops.ADD, (X, LESS)), "operand 1 must be real"),
    "a choice by a number": (with_node(ops.SELECT, (X, X, Y)), "operand 0 must be bool"),
    "a choice between truth values": (with_node(ops.SELECT, (LESS, X, LESS)), "operand 2 must be real"),
    "a constant without value": (with_node(ops.CONST), "a constant is a finite float"),
    "a constant that is an integer": (with_node(ops.CONST, (), 3), "a constant is a finite float"),
    "an infinite constant": (with_node(ops.CONST, (), float("inf")), "a constant is a finite float"),
    "a constant that is no number": (with_node(ops.CONST, (), float("nan")), "a constant is a finite float"),
    "an element beyond the array": (with_node(ops.INPUT, (), (0, 2)), "element 2 of input 0 does not exist"),
    "an element before the array": (with_node(ops.INPUT, (), (0, -1)), "element -1 of input 0 does not exist"),
    "an array beyond the inputs": (with_node(ops.INPUT, (), (1, 0)), "element 0 of input 1 does not exist"),
    "an array before the inputs": (with_node(ops.INPUT, (), (-1, 0)), "element 0 of input -1 does not exist"),
    "an operation with a value": (with_node(ops.NEG, (X,), 1.0), "only constants and inputs have a value"),
    "computed twice": (changed(nodes=(X, Y, SUM, SUM)), "%2=add: a node is evaluated twice"),
    "an output without results": (changed(results=()), "1 outputs are declared, 0 given"),
    "results without an output": (changed(outputs=()), "0 outputs are declared, 1 given"),
    "an element without a result": (changed(outputs=(Array("z", (2,)),)), "output z has 2 elements, 1 given"),
    "a result without an element": (changed(results=((SUM, X),)), "output z has 1 elements, 2 given"),
    "a result that is not computed": (changed(nodes=(X, Y)), "%2=add: output z needs a computed real"),
    "a truth value as result": (
        changed(nodes=(X, Y, LESS), results=((LESS,),)),
        "%3=less: output z needs a computed real",
    ),
}


@pytest.mark.parametrize("what", ILLEGAL)
def test_illegal_programs_are_refused_by_the_rule_they_break(what):
    program, rule = ILLEGAL[what]
    with pytest.raises(IllegalProgram) as refused:
        check(program)
    assert rule in str(refused.value)


def test_legal_programs_come_back_as_they_are():
    for program in (LEGAL, every_operation(), with_node(ops.SELECT, (LESS, X, Y)), Program((), (), (), ())):
        assert check(program) is program


def test_every_operation_is_known():
    """In its place it is legal, so that a new one in ``ops`` is no illegal one."""
    for op in ops.ALL:
        args = ((LESS if op.operands == "select" else X), X, Y)[: op.arity]
        value = {ops.CONST: 1.5, ops.INPUT: (0, 1)}.get(op)
        check(with_node(op, args, value))
