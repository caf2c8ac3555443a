import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.ir.spec import check
from linkwise.compiler.passes.order_for_registers import order_for_registers
from linkwise.compiler.passes.order_limb_by_limb import RULES, order_limb_by_limb
from linkwise.compiler.targets import numpy_reference
from tests.compiler.passes.test_order_for_registers import values_alive
from tests.compiler.targets.every_operation import every_operation
from tests.compiler.targets.sample_programs import forward_dynamics, random_program
from tests.work import lines_run


def spider(legs: int, links: int) -> lw.Mechanism:
    """A free body with legs."""
    builder = (
        lw.Builder().link("trunk", mass=5.0, inertia=[0.1, 0.2, 0.3]).joint("base", lw.Floating(), "ground", "trunk")
    )
    for leg in range(legs):
        parent, offset = "trunk", [0.3 * np.cos(leg), 0.3 * np.sin(leg), 0.0]
        for k in range(links):
            name, axis = f"leg{leg}_{k}", (0, k % 2, 1 - k % 2)
            builder.link(name, mass=1.0, com=[0.05, 0.01 * leg, 0.02], inertia=[0.01, 0.02, 0.02])
            builder.joint(f"joint_{name}", lw.Revolute(axis), parent, name, offset)
            parent, offset = name, [0.2, 0.0, 0.1]
    return builder.build()


@pytest.mark.parametrize("rule", RULES)
def test_same_nodes_and_same_values(rule):
    for program in (forward_dynamics(4), every_operation(), *(random_program(seed) for seed in range(5))):
        ordered = check(order_limb_by_limb(program, rule))
        assert set(ordered.nodes) == set(program.nodes) and ordered.results == program.results
        arrays = [np.random.default_rng(0).standard_normal((5, *array.shape)) for array in program.inputs]
        for a, b in zip(*(numpy_reference.evaluate(p, arrays) for p in (program, ordered)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_values_of_one_limb_are_alive_at_a_time():
    """Inverse dynamics of more legs has as many values alive, but for the forces of the legs that are done."""

    def alive(legs: int) -> tuple[int, int]:
        program = lw.compile("inverse_dynamics", spider(legs, 5), target="numpy", loops=False).program
        orders = (order_for_registers(program), order_limb_by_limb(program, RULES[0]))
        given, by_limb = (max(values_alive(order)) for order in orders)
        return given, by_limb

    few, many = alive(3), alive(9)
    assert many[0] > 2 * few[0] and many[1] < few[1] + 6 * 10 and many[1] < many[0] / 3


def test_forward_dynamics_of_trees_has_fewer_values_alive():
    program = lw.compile("forward_dynamics", spider(5, 5), target="numpy", loops=False).program
    assert max(values_alive(order_limb_by_limb(program, RULES[-1]))) < 0.85 * max(values_alive(program))


def test_deterministic_and_in_time_proportional_to_the_length():
    def lines_per_node(legs: int) -> float:
        program = lw.compile("inverse_dynamics", spider(legs, 3), target="numpy", loops=False).program
        orders = [order_limb_by_limb(program, RULES[0]).nodes]
        lines = lines_run(lambda: orders.append(order_limb_by_limb(program, RULES[0]).nodes))
        assert orders[0] == orders[1]
        return lines / len(program.nodes)

    assert lines_per_node(16) < 1.7 * lines_per_node(4)
