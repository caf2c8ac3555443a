"""CUDA C for values that exceed a thread's registers: values with the latest next use are spilled to shared memory.

The CUDA compiler would spill to local memory, whose writes go through to the second-level cache.  Spills are chosen as
for processors (``register_assignment``), for the node order with the fewest of them.  Measured on an H200: a warp alone
on its scheduler fetches an instruction in 2.9 cycles at best, and in 6.1 beyond 8,192 instructions (the cache has 128
kB).  Warps that run the same code at the same time share fetches.  Therefore code should be short, and many warps
should run with little memory each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..ir import ops
from ..ir.program import Node, Program, reachable
from ..passes.order_limb_by_limb import RULES, order_limb_by_limb
from . import c_parts, cuda_angles
from .c_expressions import Functions, Real
from .c_parts import Lengths, PartedBody
from .register_assignment import LOAD, STORE, assigned

#: The CUDA compiler takes ten seconds at most for the longest function; shorter parts take no less time.  Of CUDA 13.0
#: a humanoid's derivatives in float64, 85,000 statements, took 161 s, and take 19 s in parts.
LENGTHS = Lengths(16_000, 2_000)
WARP = 32
ITEM_BYTES = {"double": 8, "float": 4}


@dataclass(frozen=True)
class Budget:
    """Resources of a warp, for a multiprocessor with 64k registers and 227 kB of shared memory.

    registers   values of a thread in registers, with some registers left for addresses
    near        bytes of shared memory for spilled values; the rest stays in local memory
    most_far    acceptable moves to and from local memory, per operation, in exchange for more warps
    """

    warps: int
    registers: Mapping[str, int]
    near: int
    most_far: float


BUDGETS = (
    Budget(12, {"double": 54, "float": 130}, 18_200, 0.015),
    Budget(8, {"double": 110, "float": 215}, 27 * 1024, 0.08),
    Budget(4, {"double": 110, "float": 215}, 56 * 1024, math.inf),
)
#: For loops whose values and cells exceed the usual budget: on an H200 a humanoid's rollout is a sixth faster with it,
#: as less local memory traffic goes through the second-level cache.
IN_LOOPS = Budget(6, {"double": 110, "float": 215}, 37 * 1024, math.inf)
USUAL = 8  # warps with all registers of a thread
FEW_BYTES = 64  # spilled values per thread that are left to the compiler
LONGEST = 20_000  # maximum number of nodes for trying other orders: a tenth of a second for each 5,000
#: Instructions that fit into the cache, with a margin, and instructions per operation: sine and cosine, division,
#: access to an element; all others one, with constants counted as part of them.
CACHED = 7_800
PER_ANGLE, PER_DIVISION, PER_ELEMENT = {"double": 40, "float": 26}, {"double": 19, "float": 5}, 2.5
PER_OPERATION = {"double": 1.16, "float": 1.0}


class Waiting(c_parts.Waiting):
    """Storage of spilled values: shared memory, contiguous for the threads of a warp, then local memory.

    warps    intended number of concurrent warps
    kept     slots of the state that a program over time carries, starting with the first; zero if it does not fit
    angles   angles with sines and cosines in the following slots; None if these are computed one by one
    """

    def __init__(self, real: Real, budget: Budget, kept: int = 0, angles: cuda_angles.Angles | None = None):
        super().__init__()
        self.warps, self.registers = budget.warps, budget.registers[real.name]
        self.limit = budget.near // (WARP * ITEM_BYTES[real.name])
        self.kept = kept if kept <= self.limit else 0
        self.angles = angles if angles and self.kept + angles.places <= self.limit else None
        self.count = self.kept + (self.angles.places if self.angles else 0)
        turned = self.angles.turned if self.angles else {}
        self.slots = {node: near(self.kept + 2 * k + cosine) for node, (k, cosine) in turned.items()}

    def _place(self, number: int) -> str:
        return near(number) if number < self.limit else f"_far[{number - self.limit}]"

    @property
    def near(self) -> int:
        """Number of a thread's slots in shared memory."""
        return min(self.count, self.limit)

    @property
    def far(self) -> int:
        """Number of a thread's slots in local memory."""
        return self.count - self.near


def near(slot: int) -> str:
    return f"_near[{WARP * slot}]"


def are_needed(program: Program, real: Real) -> bool:
    """Whether more than a few values of a program must be spilled."""
    return _moves(program, Waiting(real, usual()))[2] > FEW_BYTES // ITEM_BYTES[real.name]


def ordered(program: Program, real: Real) -> Program:
    """The order with the fewest spill moves: the given one or limb by limb."""
    if program.size > LONGEST or not are_needed(program, real):
        return program
    best, moves = program, _moves(program, Waiting(real, usual()))[0]
    for rule in RULES:
        other = order_limb_by_limb(program, rule)
        fewer = _moves(other, Waiting(real, usual()))[0]
        if fewer < moves:
            best, moves = other, fewer
    return best


def allocate_slots(program: Program, real: Real, most_warps: int, kept: int = 0) -> Waiting:
    """The spill slots of a program, for as many warps as registers and shared memory allow."""
    angles_read = angles(program, real)
    operations = sum(len(node.args) > 0 for node in program.nodes)
    for budget in BUDGETS:
        if budget.warps <= most_warps and not (budget.warps < USUAL and program.size > LONGEST):
            _, far, _ = _moves(program, Waiting(real, budget, kept, angles_read))
            if far <= budget.most_far * operations:
                break
    return Waiting(real, budget, kept, angles_read)


def loop_budget(bodies: Sequence[Program], cells: int, real: Real) -> Budget:
    """The budget of loop bodies, for this many cells between runs."""
    waiting = [Waiting(real, usual(), angles=body_angles(body, real)) for body in bodies]
    most = max(_moves(body, waiting_here)[2] for body, waiting_here in zip(bodies, waiting, strict=True))
    return usual() if cells + most <= waiting[0].limit else IN_LOOPS


def usual() -> Budget:
    """The budget of the largest number of warps with full registers."""
    return next(budget for budget in BUDGETS if budget.warps == USUAL)


def _moves(program: Program, waiting: Waiting) -> tuple[int, int, int]:
    """Number of spill stores and loads, number of those in local memory, and maximum number of simultaneous spills."""
    waiting.slots |= {node: "" for node in program.nodes if node.op is ops.INPUT}
    moves = far = 0
    for kind, node, slot in assigned(_computed(program, waiting.angles), waiting, waiting.registers, calls=()):
        if kind == STORE or (kind == LOAD and node is not None and node.op is not ops.INPUT):
            moves += 1
            far += slot.startswith("_far")
    return moves, far, waiting.count


def angles(
    program: Program, real: Real, find: Callable[[Program], cuda_angles.Angles | None] = cuda_angles.frequent_angles
) -> cuda_angles.Angles | None:
    """Angles whose sines and cosines a loop computes to shorten the code; None if the code is short enough."""
    counts, name = program.op_counts, real.name
    elements = sum(array.size for array in (*program.inputs, *program.outputs))
    instructions = (
        PER_OPERATION[name] * sum(len(node.args) > 0 for node in program.nodes)
        + PER_ANGLE[name] * counts.get("sincos", 0)
        + PER_DIVISION[name] * counts.get("div", 0)
        + PER_ELEMENT * elements
        + _moves(program, Waiting(real, usual()))[0]
    )
    return find(program) if instructions > CACHED else None


def body_angles(program: Program, real: Real) -> cuda_angles.Angles | None:
    """Like ``angles``, for a loop body, whose angles are not elements of one array."""
    return angles(program, real, cuda_angles.computed_angles)


def _computed(program: Program, angles: cuda_angles.Angles | None = None) -> list[Node]:
    """The nodes of straight-line code, operands of angles first; sine and cosine of an angle are adjacent."""
    there = angles.turned if angles else ()
    twins, nodes = program.sine_cosine_pairs, dict[Node, None]()
    needed = {node for group in program.results for node in group}
    needed.update(arg for node in program.nodes if node not in there for arg in node.args)
    before = angles.angles if angles and angles.array is None else ()
    needed.update(before)
    first = reachable([before])
    for node in (*first, *program.nodes):
        if node.args and node in needed and node not in there:
            nodes[node] = None
            if node in twins:
                nodes[twins[node]] = None
    return list(nodes)


class SpilledBody(PartedBody):
    """One program as C statements that keep few values in registers."""

    waiting: Waiting
    lengths = LENGTHS

    def __init__(
        self,
        program: Program,
        real: Real,
        address: Callable[..., str],
        functions: Functions,
        named: Callable[[list[str], list[str]], None] | None,
        waiting: Waiting,
    ):
        self._pending = dict[Node, str]()  # places of angles that have to be computed before a loop turns them
        super().__init__(program, real, address, functions, named, waiting)
        if waiting.angles:
            self.declarations = tuple(waiting.angles.tables(real))

    @property
    def _turning(self) -> str:
        """Location of angle ``_k``, then of its sine."""
        return f"(_near + {WARP} * ({self.waiting.kept} + 2 * _k))"

    def _reads(self, taken: set[str]) -> list[str]:
        lines = super()._reads(taken)
        angles = self.waiting.angles
        if angles is None or angles.array is None:
            return lines
        element = self._address(self.inputs[angles.array], 0, "_angles[_k]")
        return [*lines, *angles.copied(element, self._turning), *self._turned_angles()]

    def _in_order(self) -> Sequence[Node]:
        return _computed(self.program, self.waiting.angles)

    def _performed(self, nodes: Sequence[Node]) -> list[str]:
        return [*self._copied_angles(), *super()._performed(nodes)]

    def _copied_angles(self) -> list[str]:
        """Lines that store the angles that are inputs for the loop; computed ones follow."""
        angles = self.waiting.angles
        if angles is None or angles.array is not None:
            return []
        self._pending = {angle: near(self.waiting.kept + 2 * k) for k, angle in enumerate(angles.angles)}
        read = [angle for angle in angles.angles if angle.op is ops.INPUT]
        lines = [f"{self._pending.pop(angle)} = {self.waiting.slots[angle]};" for angle in read]
        return lines + ([] if self._pending else self._turned_angles())

    def _after(self, node: Node) -> Sequence[str]:
        if node not in self._pending:
            return ()
        copy = f"{self._pending.pop(node)} = {self._text[node]};"
        return [copy, *([] if self._pending else self._turned_angles())]

    def _turned_angles(self) -> list[str]:
        assert self.waiting.angles is not None
        return self.waiting.angles.loop(self.real, self._turning, WARP)

    def _loads(self, node: Node, place: str) -> list[str]:
        self._name(node)  # anew: values leave registers and come back
        return [self._declaration(node, place)]
