"""What compiled expressions cost, against recursions written by hand and against the textbook's."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.compiler.ir.program import Program
from linkwise.compiler.pipeline import trace_algorithm
from linkwise.compiler.targets import numpy_reference
from linkwise.mechanics.algorithms import expressions as ex
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS, Algorithm, from_expression

from ...peers import robots
from . import handwritten

KINDS = lw.mechanisms.MOVING_KINDS
MECHANISMS = {
    "ur5": lambda: robots.load(robots.robot("ur_description/urdf/ur5_robot.urdf")),
    "z1": lambda: robots.load(robots.robot("z1_description/urdf/z1.urdf")),
    "talos": lambda: robots.load(robots.robot("talos_data/robots/talos_reduced.urdf"), floating_base=True),
    "puma560": lw.mechanisms.puma560,
    "planar_arm": lambda: lw.mechanisms.planar_arm(6),
    "chain_20": lambda: lw.mechanisms.chain(20),
    **{kind: lambda kind=kind: lw.mechanisms.random_tree(5, 3, joints=(kind,)) for kind in KINDS},
    **{f"tree_{seed}": lambda seed=seed: lw.mechanisms.random_tree(12, seed) for seed in range(4)},
    "floating_tree": lambda: lw.mechanisms.random_tree(10, 4, joints=(*KINDS, "fixed"), floating_base=True),
}
RESULTS = {
    "forward_dynamics": (("v", "tau"), ex.FORWARD_DYNAMICS["filter_and_smoother"](ex.b), 3),
    "inverse_dynamics": (("v", "a"), ex.inverse_dynamics(ex.b), 2),
    "mass_matrix": ((), ex.MASS_MATRIX, 1),
}
every_mechanism = pytest.mark.parametrize("name", MECHANISMS)
every_result = pytest.mark.parametrize("result", RESULTS)


@cache
def mechanism(name: str) -> lw.Mechanism:
    return MECHANISMS[name]()


@cache
def traced(function: str, name: str) -> tuple[Program, list[tuple[str, str]]]:
    """The program of a function of ``handwritten`` and its sweeps."""
    inputs, _, _ = RESULTS[function.removeprefix("textbook_")]
    algorithm = Algorithm(function, ("q", *inputs), "result", getattr(handwritten, function))
    program, log = trace_algorithm(algorithm, mechanism(name))
    return program, log.sweeps


def operations(program: Program) -> int:
    return sum(program.op_counts.get(kind, 0) for kind in ("add", "mul", "div"))


@every_result
@every_mechanism
def test_as_cheap_as_by_hand(name, result):
    mech, (_, expression, sweeps) = mechanism(name), RESULTS[result]
    by_hand, sweeps_by_hand = traced(result, name)
    programs = [trace_algorithm(algorithm, mech) for algorithm in (ALGORITHMS[result], from_expression(expression))]
    for program, log in programs:  # the first by the method that costs least, the second by that of the hand
        assert operations(program) <= 1.02 * operations(by_hand)
        assert len(log.sweeps) == sweeps
    assert [direction for direction, _ in log.sweeps] == [direction for direction, _ in sweeps_by_hand]


@pytest.mark.parametrize("result", ["forward_dynamics", "inverse_dynamics"])
@every_mechanism
def test_cheaper_than_the_textbook(name, result):
    """But for helical joints and pins in slots: no zeros of P+ make it cheaper there to meet biases one by one."""
    program, _ = trace_algorithm(ALGORITHMS[result], mechanism(name))
    has_dense = any(isinstance(body.kind, lw.Helical | lw.PinInSlot) for body in mechanism(name).bodies)
    textbook = operations(traced(f"textbook_{result}", name)[0])
    assert operations(program) <= (1.05 if has_dense and result == "forward_dynamics" else 1.0) * textbook


@pytest.mark.parametrize("function", [*RESULTS, "textbook_forward_dynamics", "textbook_inverse_dynamics"])
@pytest.mark.parametrize("name", ["ur5", "talos", "tree_0", "floating_tree"])
def test_what_was_written_by_hand_is_right(name, function):
    """Cheap and wrong would be no measure."""
    mech, result = mechanism(name), function.removeprefix("textbook_")
    rng = np.random.default_rng(3)
    q, v = lw.random_state(mech, rng)
    given = {"v": v, "a": rng.normal(size=mech.nv), "tau": rng.normal(size=mech.nv)}
    arrays = [q, *(given[x] for x in RESULTS[result][0])]
    found = numpy_reference.evaluate(traced(function, name)[0], arrays, "float64")[0]
    mass = op.dense(ex.MASS_MATRIX, mech, q)
    if result == "mass_matrix":
        expected = mass
    elif result == "inverse_dynamics":
        expected = mass @ given["a"] + lw.bias_force(mech, q, v)
    else:
        expected = np.linalg.solve(mass, given["tau"] - lw.bias_force(mech, q, v))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())
