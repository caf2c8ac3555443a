"""Changes along a direction, through loops: against the same program without them."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.ir.program import Array
from linkwise.compiler.ir.spec import check
from linkwise.compiler.passes.differentiate import Directions, push_forward
from linkwise.compiler.passes.drop_unread import drop_unread
from linkwise.compiler.passes.unroll import unroll
from linkwise.compiler.pipeline import tangent_basis
from linkwise.compiler.targets import numpy_reference

CHAIN = lw.mechanisms.chain(4)
TREE = lw.mechanisms.random_tree(5, seed=3, floating_base=True)


@pytest.mark.parametrize(
    "name, mech, results",
    [
        ("inverse_dynamics", TREE, "written"),
        ("inverse_dynamics_derivatives", TREE, "in cells"),
        ("mass_matrix_inverse", CHAIN, "written"),
        ("forward_dynamics_derivatives", CHAIN, "read"),
        ("forward_dynamics_derivatives", lw.mechanisms.random_tree(4, seed=1), "read before they are written"),
    ],
    ids=str,
)
def test_through_loops(name, mech, results):
    program = lw.compile(name, mech, target="numpy", loops=True).traced
    assert program.loops
    directions = [Directions(k) for k in range(len(program.inputs))]
    directions[0] = Directions(0, basis=tangent_basis(mech))
    weights = [Array(f"weight_{k}", (moved.count(program),)) for k, moved in enumerate(directions)]
    names = "pushed", [f"{array.name}_changed" for array in program.outputs]
    looped = check(push_forward(program, directions, weights, names))
    least = check(drop_unread(looped))
    assert least.size < looped.size and [len(x.levels) for x in least.loops] == [len(x.levels) for x in looped.loops]
    straight = push_forward(unroll(program), directions, weights, names)
    rng = np.random.default_rng(0)
    q, _ = lw.random_state(mech, rng, (2,))
    arrays = [q, *(rng.normal(size=(2, array.size)) for array in (*program.inputs[1:], *weights))]
    expected, *others = (numpy_reference.evaluate(x, arrays) for x in (straight, looped, least))
    for other in others:
        for found, right in zip(other, expected, strict=True):
            np.testing.assert_allclose(found, right, atol=1e-12 * max(1.0, np.abs(right).max()))


def test_inputs_that_stay():
    """Along a alone, what depends on q and v only has no changes."""
    program = lw.compile("inverse_dynamics", TREE, target="numpy", loops=True).traced
    by_a, joint_derivatives = (
        drop_unread(
            push_forward(
                program,
                [Directions(k) for k in moved],
                [Array(f"weight_{k}", program.inputs[k].shape) for k in moved],
                ("pushed", ["changed"]),
            )
        )
        for moved in ((2,), (0, 1, 2))
    )
    assert by_a.size < joint_derivatives.size
    rng = np.random.default_rng(1)
    q, v = lw.random_state(TREE, rng)
    a, direction = rng.normal(size=(2, TREE.nv))
    (found,) = numpy_reference.evaluate(by_a, [q, v, a, direction])
    np.testing.assert_allclose(found, lw.mass_matrix(TREE, q) @ direction, atol=1e-10)
