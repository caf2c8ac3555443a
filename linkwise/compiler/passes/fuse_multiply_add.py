"""Pass: a product that is used once, by a sum or a difference, becomes part of one fused operation."""

from __future__ import annotations

from collections import Counter

from ..ir import ops
from ..ir.program import Node, Program, reachable


def fuse_multiply_add(program: Program) -> Program:
    """Replace ``a*b + c``, ``a*b - c`` and ``c - a*b`` by FMA, FMS and FNMA.

    Only products with a single use are fused, so no product is computed twice.  Where both operands
    are such products, the one whose factors are ready later is fused: the other is done meanwhile.
    """
    uses = Counter([arg for node in program.nodes for arg in node.args])
    uses.update(node for group in program.results for node in group)
    depth: dict[Node, int] = {}
    new: dict[Node, Node] = {}
    for index, node in enumerate(program.nodes):  # no builder: nodes stay distinct, nothing is folded or shared
        depth[node] = 1 + max([depth[arg] for arg in node.args], default=0)
        product = _product_to_fuse(node, uses, depth)
        if product is None:
            op, args = node.op, node.args
        else:
            first, second = node.args
            other = second if product is first else first
            op = ops.FMA if node.op is ops.ADD else ops.FMS if product is first else ops.FNMA
            args = (*product.args, other)
        new[node] = Node(op, tuple([new[arg] for arg in args]), node.value, node.section, index)
    results = tuple(tuple(new[node] for node in group) for group in program.results)
    return Program(program.inputs, program.outputs, reachable(results), results, program.name)


def _product_to_fuse(node: Node, uses: Counter, depth: dict[Node, int]) -> Node | None:
    """The operand of a sum or difference to be fused into it, or None."""
    if node.op is not ops.ADD and node.op is not ops.SUB:
        return None
    candidates = [arg for arg in node.args if arg.op is ops.MUL and uses[arg] == 1]
    return max(candidates, key=depth.__getitem__, default=None)
