"""Pass: within each sweep, schedule the nodes limb by limb.

In an order by sweeps the values of the entire mechanism are alive between the outward and the inward sweep; limb by
limb, only the values of one limb.  Inverse dynamics of a humanoid has 130 live values instead of 426, its mass matrix
102 instead of 228.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..ir import ops
from ..ir.program import Node, Program, leaves_before_use


@dataclass(frozen=True)
class Rule:
    """Scheduling rule. ``last``: continue with the limb of the last or the first ready node. ``newest``: within a limb
    choose the node that uses the newest value, or the last user of most operands."""

    last: bool
    newest: bool


RULES = (Rule(last=False, newest=False), Rule(last=True, newest=False), Rule(last=True, newest=True))


def order_limb_by_limb(program: Program, rule: Rule) -> Program:
    """The program with nodes reordered limb by limb."""
    return _Schedule(program, rule).ordered()


class _Schedule:
    """List scheduling. A node that is the last user of two operands comes first; otherwise a limb continues until it
    has no ready node. Nodes of constants and inputs alone come right before their first use."""

    def __init__(self, program: Program, rule: Rule):
        self.program, self.rule = program, rule
        self.position = {node: i for i, node in enumerate(program.nodes)}
        self.operands = {n: tuple(dict.fromkeys(a for a in n.args if a.args)) for n in program.nodes if n.args}
        self.users: dict[Node, list[Node]] = {node: [] for node in self.operands}
        for node, args in self.operands.items():
            for arg in args:
                self.users[arg].append(node)
        self.limb = limbs(program, self.users)
        self.at_use = {n for n in self.operands if _is_computed_at_use(n)}
        self.waiting = {node: len(users) for node, users in self.users.items()}  # number of users still to be computed
        self.missing = {  # number of operands still to be computed
            node: sum(arg not in self.at_use for arg in args)
            for node, args in self.operands.items()
            if node not in self.at_use
        }
        self.order: dict[Node, int] = {}
        self.ready: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
        self.freeing: list[tuple[int, int, int]] = []  # ready nodes of all limbs that reduce the number of live values

    def ordered(self) -> Program:
        for node, count in self.missing.items():
            if count == 0:
                self._push(node)
        now = ""
        while True:
            entry = self._popped(self.freeing) or self._popped(self.ready[now])
            if entry is None:
                now = self._next_limb()
                entry = self._popped(self.ready[now])
            if entry is None:
                break
            self._compute(self.program.nodes[entry[2]])
        order = dict.fromkeys((*self.order, *self.operands))
        nodes = leaves_before_use(order, self.program.results)
        return Program(self.program.inputs, self.program.outputs, nodes, self.program.results, self.program.name)

    def _push(self, node: Node) -> None:
        args = self.operands[node]
        freed = sum(self.waiting[a] == 1 and a in self.order for a in args) - sum(a not in self.order for a in args)
        if self.rule.newest:
            entry = -(freed >= 1), -self._newest(node), self.position[node]
        else:
            entry = -freed, 0, self.position[node]
        heapq.heappush(self.ready[self.limb[node]], entry)
        if freed >= 2:
            heapq.heappush(self.freeing, entry)

    def _newest(self, node: Node) -> int:
        return max((self.order.get(arg, -1) for arg in self.operands[node]), default=-1)

    def _popped(self, heap: list[tuple[int, int, int]]) -> tuple[int, int, int] | None:
        while heap:
            entry = heapq.heappop(heap)
            if self.program.nodes[entry[2]] not in self.order:
                return entry
        return None

    def _next_limb(self) -> str:
        remaining = {limb: list(self._still(heap)) for limb, heap in self.ready.items()}
        ranks = {limb: max(left) if self.rule.last else -min(left) for limb, left in remaining.items() if left}
        return max(ranks, key=ranks.__getitem__, default="")

    def _still(self, heap: Iterable[tuple[int, int, int]]) -> Iterator[int]:
        return (entry[2] for entry in heap if self.program.nodes[entry[2]] not in self.order)

    def _compute(self, node: Node) -> None:
        args = self.operands[node]
        for arg in args:
            if arg not in self.order:
                for leaf in (*self.operands[arg], arg):
                    if leaf not in self.order:
                        self._done(leaf)
        self._done(node)
        for user in self.users[node]:
            if user in self.missing:
                self.missing[user] -= 1
                if self.missing[user] == 0:
                    self._push(user)
        for arg in args:
            if self.waiting[arg] == 1:
                last = next(user for user in self.users[arg] if user not in self.order)
                if self.missing.get(last) == 0:
                    self._push(last)

    def _done(self, node: Node) -> None:
        self.order[node] = len(self.order)
        for arg in self.operands[node]:
            self.waiting[arg] -= 1


def _is_computed_at_use(node: Node) -> bool:
    """Whether a node is an operation on constants and inputs, or the sine or cosine of one."""
    args = [arg for arg in node.args if arg.args]
    return not args or (node.op in (ops.SIN, ops.COS) and not any(arg.args for arg in args[0].args))


def limbs(program: Program, users: dict[Node, list[Node]]) -> dict[Node, str]:
    """The limb of each computed node, named by one of its links.

    A node belongs to the link at the end of its section.  The spanning tree of links is chosen by shared values; a limb
    ends at a link with more than two other neighbours.
    """
    link = {node: node.section.rpartition(": ")[2] if ": " in node.section else "" for node in users}
    for node in reversed(users):
        link[node] = link[node] or _most(link[user] for user in users[node])
    for node in users:
        link[node] = link[node] or _most(link[arg] for arg in node.args if arg.args)
    common: Counter[tuple[str, str]] = Counter()
    for node, used_by in users.items():
        for other in dict.fromkeys(link[user] for user in used_by):
            if other != link[node]:
                common[min(other, link[node]), max(other, link[node])] += 1
    tree = _spanning_tree(common)
    names: dict[str, str] = {}
    for start in dict.fromkeys(link.values()):
        stack = [start]
        while stack:
            name = stack.pop()
            if name not in names:
                names[name] = start
                if len(tree[name]) <= 2:
                    stack += [other for other in tree[name] if len(tree[other]) <= 2]
    return {node: names[link[node]] for node in users}


def _most(names: Iterable[str]) -> str:
    return max(Counter(names).items(), key=lambda item: item[1], default=("", 0))[0]


def _spanning_tree(weights: Counter[tuple[str, str]]) -> defaultdict[str, list[str]]:
    """Neighbours in the tree of the heaviest edges (Kruskal)."""
    root: dict[str, str] = {}

    def component(name: str) -> str:
        while root.setdefault(name, name) != name:
            root[name] = name = root[root[name]]
        return name

    tree: defaultdict[str, list[str]] = defaultdict(list)
    for (first, other), _ in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
        if component(first) != component(other):
            root[component(first)] = component(other)
            tree[first].append(other)
            tree[other].append(first)
    return tree
