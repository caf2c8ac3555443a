"""A small fixed program with every operation in it, two inputs, a matrix and a scalar as outputs."""

from __future__ import annotations

import numpy as np

from linkwise.compiler.ir import ops, spec
from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable


def every_operation() -> Program:
    """Names are chosen to be awkward: one is a C keyword, one looks like an emitted temporary."""
    b = Builder()
    q = [b.input(0, k) for k in range(3)]
    m = [b.input(1, k) for k in range(2)]
    b.section = "link 1, base_to_tip"
    sine, cosine = b.sin(q[0]), b.cos(q[0])
    lone_sine, lone_cosine = b.sin(q[1]), b.cos(q[2])
    b.section = "link 2, tip_to_base */"
    products = b.fused(ops.FMA, sine, m[0], cosine), b.fused(ops.FMS, sine, m[1], b.const(0.1))
    tail = b.fused(ops.FNMA, lone_sine, lone_cosine, b.const(-2.0 / 3.0))
    nearest = b.select(b.less(q[1], q[2]), b.sub(q[1], q[2]), b.const(1e-30))
    quotient = b.div(b.add(sine, b.const(3.0)), b.add(b.mul(m[0], m[0]), b.const(1.0)))
    root = b.neg(b.sqrt(b.add(b.mul(m[1], m[1]), b.const(1e22))))
    matrix = (*products, tail, nearest, quotient, root, q[2], b.const(-0.1))
    angle = (b.atan2(tail, cosine),)
    inputs, outputs = (Array("q", (3,)), Array("t1", (2,))), (Array("double", (2, 4)), Array("angle", ()))
    return spec.check(Program(inputs, outputs, reachable((matrix, angle)), (matrix, angle), "sample kernel"))


def random_inputs(batch: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    """States for the sample program."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(-3.0, 3.0, batch + array.shape) for array in every_operation().inputs]
