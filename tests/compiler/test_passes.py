"""Programs of every form stay legal after every pass, mean the same, and are printed."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler import pipeline
from linkwise.compiler.ir.printer import text
from linkwise.compiler.ir.spec import check
from linkwise.compiler.passes import run_passes
from linkwise.compiler.passes.scan import scan
from linkwise.compiler.passes.unroll import unroll
from linkwise.compiler.targets import cuda_c, numpy_reference
from linkwise.compiler.targets.protocol import Options
from linkwise.motion.arguments import acting_laws
from linkwise.motion.step import Step
from tests.algorithms import VARIANTS

LINE = r"  for records, repeats: q_next -> q, v_next -> v"


def of(name, mech, loops):
    return pipeline.trace_with_plan(VARIANTS[name], mech, loops=loops).program


def over_time(mech, **how):
    program = Step("rk4", acting_laws(mech, None, Step("rk4"), 1e-3)).program(mech, "float64", **how)
    return scan(program, {array.name: array.name.removesuffix("_next") for array in program.outputs}, ("tau",))


PROGRAMS = {
    "straight-line code": lambda: of("forward_dynamics", lw.mechanisms.planar_arm(3), False),
    "loops over links": lambda: of("forward_dynamics", lw.mechanisms.chain(9), True),
    "nested loops": lambda: of("mass_matrix", lw.mechanisms.random_tree(9, 8), True),
    "over time": lambda: over_time(lw.mechanisms.planar_arm(2)),
    "stages over time": lambda: over_time(lw.mechanisms.planar_arm(2), stages=True),
    "links over time": lambda: over_time(lw.mechanisms.chain(9), loops=True),
}


@pytest.mark.parametrize("form", PROGRAMS)
def test_passes_keep_programs_legal_and_their_meaning(form):
    program, rng = check(PROGRAMS[form]()), np.random.default_rng(0)
    times = {"records": 2, "repeats": 3}
    shapes = [(4, *(times[axis] for axis in array.axes), *array.shape) for array in program.inputs]
    arrays = [rng.normal(size=shape) * (1e-2 if len(shape) == 1 else 1.0) for shape in shapes]
    expected = numpy_reference.evaluate(program, arrays)
    after = [*run_passes(program), ("unroll", unroll(program))]
    after.append(("instructions of GPUs", cuda_c.ordered(after[-2][1], Options())))
    for _, result in after:
        for found, array in zip(numpy_reference.evaluate(check(result), arrays), expected, strict=True):
            np.testing.assert_allclose(found, array, rtol=1e-9, atol=1e-9)
        assert (LINE in text(result)) == ("time" in form)
        assert bool(result.carried) == ("time" in form)


def test_stages_that_are_alike_have_the_code_of_one():
    staged, straight = (over_time(lw.mechanisms.planar_arm(2), stages=stages) for stages in (True, False))
    assert [len(loop.which) for loop in staged.loops] == [1, 4, 1] and not straight.loops
    code = sum(block.size for block, _ in staged.blocks)
    assert code < 0.5 * straight.size


def test_the_program_after_every_pass():
    for loops in (False, True):
        kernel = lw.compile("forward_dynamics", lw.mechanisms.chain(9), target="numpy", loops=loops)
        parts = str(kernel.passes()).split("== ")[1:]
        assert [part.partition("\n")[0] for part in parts] == ["trace", "fuse_multiply_add", "order_for_registers"]
        assert parts[0].partition("\n")[2].strip() == kernel.ir("traced").strip()
        assert parts[2].partition("\n")[2].strip() == kernel.ir().strip()
        assert "fma" in parts[1] and "fma" not in parts[0]
