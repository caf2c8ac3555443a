import numpy as np

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.program import Array, Program
from linkwise.compiler.ir.spec import check
from linkwise.compiler.passes.fuse_multiply_add import fuse_multiply_add
from linkwise.compiler.passes.order_for_registers import order_for_registers
from linkwise.compiler.targets import numpy_reference
from linkwise.compiler.targets.llvm_scratch import Scratch
from linkwise.compiler.targets.llvm_vector import VectorType
from linkwise.compiler.targets.register_assignment import STORE, assigned
from linkwise.compiler.trace import trace
from linkwise.mechanics.links.factor import Factor
from tests.compiler.targets.sample_programs import forward_dynamics, inverse_dynamics, random_program
from tests.work import lines_run


def values_alive(program: Program) -> list[int]:
    """How many computed values are alive after each node."""
    last_use = {arg: i for i, node in enumerate(program.nodes) for arg in node.args if arg.args}
    ends = np.bincount(list(last_use.values()), minlength=len(program.nodes))
    starts = np.array([node in last_use for node in program.nodes])
    return list(np.cumsum(starts.astype(int) - ends))


def test_same_nodes_and_same_values():
    for program in (forward_dynamics(4), *(random_program(seed) for seed in range(5))):
        ordered = check(order_for_registers(program))
        assert set(ordered.nodes) == set(program.nodes) and ordered.results == program.results
        arrays = [np.random.default_rng(0).standard_normal((5, *array.shape)) for array in program.inputs]
        for a, b in zip(*(numpy_reference.evaluate(p, arrays) for p in (program, ordered)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_no_more_values_alive_than_in_trace_order():
    for program in (forward_dynamics(6), inverse_dynamics(6), forward_dynamics(15)):
        fused = fuse_multiply_add(program)
        assert max(values_alive(order_for_registers(fused))) <= max(values_alive(fused))


def test_a_bad_order_is_fixed():
    program = fuse_multiply_add(forward_dynamics(6))
    depth = {}
    for node in program.nodes:
        depth[node] = 1 + max((depth[arg] for arg in node.args), default=0)
    by_depth = tuple(sorted(program.nodes, key=lambda node: (depth[node], node.index)))
    worse = check(Program(program.inputs, program.outputs, by_depth, program.results))
    assert max(values_alive(order_for_registers(worse))) < max(values_alive(worse))


def test_sums_are_not_put_away_for_each_of_their_terms():
    """Of an elimination, a term of each entry may be subtracted as soon as a row is there; entries that wait in memory
    are then loaded and stored for every term."""

    def factor(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        return [np.array(Factor.of(x * y).lower, dtype=object)]

    program = fuse_multiply_add(trace(factor, [Array("x", (16, 16)), Array("y", (16, 16))], ["lower"], "factor"))
    nodes = [node for node in order_for_registers(program).nodes if node.args]
    actions = list(assigned(nodes, Scratch(program, VectorType("float64", 8)), 28))
    entries = 16 * 15 // 2  # of the matrix, of L d and of L: each is stored at most once
    assert sum(action.kind == STORE for action in actions) < 3 * entries


def test_constants_and_inputs_stand_right_before_their_first_use():
    nodes = order_for_registers(forward_dynamics(3)).nodes
    for i, node in enumerate(nodes):
        if node.op in (ops.CONST, ops.INPUT):
            following = next(later for later in nodes[i:] if later.args)
            assert node in following.args


def test_deterministic_and_in_time_proportional_to_the_length():
    def lines_per_node(links: int) -> float:
        program = fuse_multiply_add(forward_dynamics(links))
        orders = [order_for_registers(program).nodes]
        lines = lines_run(lambda: orders.append(order_for_registers(program).nodes))
        assert orders[0] == orders[1]
        return lines / len(program.nodes)

    assert lines_per_node(60) < 1.5 * lines_per_node(6)
