"""A tree as classes of its links: recursions run once per class, on symbols for the numbers of its links.

Inputs from neighbours are symbols too, except for constants that are the same at every possible neighbour.  These are
known only after all classes have run: a run assumes constants, checks them, and is repeated with fewer constants until
the assumptions hold (``Rolling.confirmed``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..links.link import Link
from ..scalar import Scalar, is_constant
from .link_classes import Form, LinkClass, assembled, inward, outward, taken_apart
from .neighbours import plus
from .pairs import Dof, OfColumns
from .schedule import BASE_TO_TIP, TIP_TO_BASE
from .sweep_log import format_label, within

PARENT, CHILDREN = "parent", "children"  # source of a link's input
AFTER_SWEEPS = 1 << 30  # the sweep of values that go inwards along paths
ALONG_PATHS = "inwards from every degree of freedom"  # its direction
ANY: Dof = (-1, 0)  # any degree of freedom further out than the links of a class


class NotRolled(Exception):
    """Raised if a computation does not go from link to link alone."""


@dataclass(frozen=True, eq=False)
class Passed:
    """A quantity that passes between neighbours in one sweep, or after all of them inwards along the path of each
    degree of freedom. ``value(class)`` is the output of links of a class, or ``handed[class]`` by degree of freedom."""

    number: int
    sweep: int
    source: str
    value: Callable[[int], Any]
    handed: dict[int, dict[Dof, Any]] = field(default_factory=dict)

    def sources(self, link_classes: Iterable[int]) -> list[tuple[int, Dof | None]]:
        """Outputs of links of these classes: the class, and the degree of freedom if there are several."""
        if self.sweep != AFTER_SWEEPS:
            return [(j, None) for j in sorted(link_classes)]
        return [(j, dof) for j in sorted(link_classes) for dof in self.handed.get(j, ())]


Pattern = tuple[Form, tuple[float | None, ...]]  # pattern of inputs: form, and known numbers


@dataclass
class Assumed:
    """Assumptions of a run.

    patterns   of link inputs, by number of the quantity and class
    alike      (class, number of the quantity, number in it) -> an earlier number that always equals it
    refused    such pairs that were assumed and found to differ
    """

    patterns: dict[tuple[int, int], Pattern] = field(default_factory=dict)
    alike: dict[tuple[int, int, int], tuple[int, int]] = field(default_factory=dict)
    refused: set[tuple[tuple[int, int, int], tuple[int, int]]] = field(default_factory=set)


class Rolling:
    """The neighbours of links of each class.

    symbol(class, passed, k)   the symbol of input number k of links of the class
    identity(number)          a key, equal for equal numbers, symbols included; None if not a number
    column(dof, matrix)       the symbol of a class's degree of freedom in an arbitrary column of a matrix; matrix None:
                              of the identity
    """

    def __init__(
        self,
        link_classes: Sequence[LinkClass],
        parents: Sequence[int],
        symbol: Callable[[int, Passed, int], Scalar],
        identity: Callable[[Any], Hashable],
        assumed: Assumed,
        column: Callable[[Dof, int | None], Scalar],
    ):
        self.link_classes = link_classes
        self.columns_from: int | None = None  # the first sweep that runs for every column of matrices
        self._column = column
        self.passed: list[Passed] = []
        self._symbol, self._identity, self._assumed = symbol, identity, assumed
        self._used: dict[tuple[int, int], Pattern] = {}
        self._by_key: dict[Hashable, Passed] = {}
        self._orders = {
            BASE_TO_TIP: list(outward(link_classes, parents)),
            TIP_TO_BASE: list(inward(link_classes, parents)),
        }
        class_of = {i: k for k, link_class in enumerate(link_classes) for i in link_class.links}
        self._near: dict[str, list[set[int]]] = {
            PARENT: [set() for _ in link_classes],
            CHILDREN: [set() for _ in link_classes],
        }
        for i, parent in enumerate(parents):
            if parent >= 0:
                self._near[PARENT][class_of[i]].add(class_of[parent])
                self._near[CHILDREN][class_of[parent]].add(class_of[i])
        self.sweeps: list[str] = []  # their directions
        self._names: list[str] = []
        self._given: dict[tuple[int, int, Dof | None], tuple[Form, list[Scalar]]] = {}
        self._visited: set[int] = set()

    # -- sweeps -----------------------------------------------------------------------------------------

    def start(self, direction: str, name: str) -> Iterator[int]:
        """Start a sweep: returns the classes in an order in which each follows one of its neighbours."""
        self.sweeps.append(direction)
        self._names.append(name)
        self._visited = set()
        for k in self._orders[direction]:
            yield k
            self._visited.add(k)

    @property
    def directions(self) -> list[str]:
        """Directions of all sweeps: sweeps that run once; the paths from degrees of freedom to the root, if used; then
        sweeps that run for every column."""
        sweeps = self.sweeps or [BASE_TO_TIP]
        return [*sweeps[: self.paths], *[ALONG_PATHS] * self._has_paths, *sweeps[self.paths :]]

    @property
    def paths(self) -> int:
        """The index of the paths among all sweeps."""
        return len(self.sweeps or [BASE_TO_TIP]) if self.columns_from is None else self.columns_from

    @property
    def columns(self) -> int:
        """The first sweep that runs for every column."""
        return self.paths + self._has_paths

    @property
    def _has_paths(self) -> bool:
        return any(passed.sweep == AFTER_SWEEPS for passed in self.passed)

    def sweep_index(self, passed: Passed) -> int:
        """The index, among all sweeps, of the one in which a quantity passes."""
        if passed.sweep == AFTER_SWEEPS:
            return self.paths
        return passed.sweep + (self._has_paths and passed.sweep >= self.paths)

    def first_repetition(self, sweep: int) -> int:
        """For a sweep or paths that run many times, the first sweep that does so; -1: it runs once."""
        if sweep >= self.columns:
            return self.columns
        return sweep if self._has_paths and sweep == self.paths else -1

    # -- neighbours -------------------------------------------------------------------------------------

    def has_parent(self, i: int) -> bool:
        return not self.link_classes[i].grounded

    def from_parent(self, i: int, key: Hashable, value: Callable[[int], Any]) -> Any:
        return self._taken(i, key, PARENT, value) if self.has_parent(i) else None

    def from_children(self, i: int, key: Hashable, message: Callable[[int], Any], start: Any) -> Any:
        return plus(start, self._taken(i, key, CHILDREN, message)) if self.link_classes[i].carries else start

    def _taken(self, i: int, key: Hashable, source: str, value: Callable[[int], Any]) -> Any:
        now = len(self.sweeps) - 1
        passed = self._by_key.get(key)
        if passed is None:
            passed = self._by_key[key] = Passed(len(self.passed), now, source, value)
            self.passed.append(passed)
        if now < 0 or passed.sweep != now or (self.sweeps[now] == BASE_TO_TIP) != (source == PARENT):
            raise NotRolled("a link takes from its neighbours outside a sweep in this direction")
        return self._input_numbers(passed, i)

    def _input_numbers(self, passed: Passed, i: int) -> Any:
        """The inputs of links of class i as symbols and constants."""
        source = passed.source
        index = (passed.number, i)
        pattern = self._assumed.patterns.get(index)
        if pattern is None:
            pattern = self._joined(passed, self._near[source][i] & self._visited)
        self._used[index] = pattern
        form, known = pattern
        numbers = [self._symbol(i, *self._first_alike(i, passed, k)) if x is None else x for k, x in enumerate(known)]
        return assembled(form, numbers)

    def _first_alike(self, i: int, passed: Passed, k: int) -> tuple[Passed, int]:
        number, k = self._assumed.alike.get((i, passed.number, k), (passed.number, k))
        return self.passed[number], k

    def _joined(self, passed: Passed, sources: Iterable[int]) -> Pattern:
        """The pattern common to the values of all these classes."""
        parts = [self.given(passed, j, dof) for j, dof in passed.sources(sources)]
        forms = {form for form, _ in parts if form is not None}
        if not forms:
            return None, ()
        if len(forms) > 1:
            raise NotRolled("neighbours pass on values of different forms")
        (form,) = forms
        count = max(len(numbers) for _, numbers in parts)
        columns = zip(*(numbers or [0.0] * count for _, numbers in parts), strict=True)
        return form, tuple(self._known(column) for column in columns)

    def _known(self, numbers: Sequence[Scalar]) -> float | None:
        """The constant that all numbers equal, or None."""
        for number in numbers:
            if self._identity(number) is None:
                raise NotRolled(f"{type(number).__name__} passes between links")
        first = numbers[0]
        return float(first) if is_constant(first) and all(is_constant(x) and x == first for x in numbers) else None

    def confirmed(self) -> bool:
        """Whether the assumptions hold for all neighbours; otherwise updates them for the next run."""
        patterns: dict[tuple[int, int], Pattern] = {}
        for (number, i), used in self._used.items():
            passed = self.passed[number]
            pattern = self._joined(passed, self._near[passed.source][i])
            patterns[number, i] = pattern if pattern == used else _weaker(used, pattern)
        seen = self._alike()
        self._assumed.refused |= self._assumed.alike.items() - seen.items()  # never assumed again, for termination
        alike = dict(seen.items() - self._assumed.refused)
        holds = patterns == self._used and alike == self._assumed.alike
        self._assumed.patterns, self._assumed.alike = patterns, alike
        return holds

    def _alike(self) -> dict[tuple[int, int, int], tuple[int, int]]:
        """Inputs of a link class that equal other inputs of it at every neighbour."""
        first: dict[Hashable, tuple[int, int]] = {}
        alike: dict[tuple[int, int, int], tuple[int, int]] = {}
        for (number, i), (_, known) in self._used.items():
            passed = self.passed[number]
            passing = [self.given(passed, j, dof)[1] for j, dof in passed.sources(self._near[passed.source][i])]
            for k, constant in enumerate(known):
                if constant is None:
                    values = tuple(self._identity(numbers[k]) if numbers else 0.0 for numbers in passing)
                    index = first.setdefault((i, passed.sweep, values), (number, k))
                    if index != (number, k):
                        alike[i, number, k] = index
        return alike

    def given(self, passed: Passed, j: int, dof: Dof | None = None) -> tuple[Form, list[Scalar]]:
        """The output of links of class j: its form and its numbers."""
        key = (passed.number, j, dof)
        if key not in self._given:
            if dof is not None:
                self._given[key] = taken_apart(passed.handed[j][dof])
            else:
                direction, name = self.sweeps[passed.sweep], self._names[passed.sweep]
                with within(format_label(direction, name, self.link_classes[j].example.name)):
                    self._given[key] = taken_apart(passed.value(j))
        return self._given[key]

    def gives(self, passed: Passed) -> list[tuple[int, Dof | None]]:
        """The classes, with degrees of freedom, whose output of a quantity is used."""
        takers = [i for number, i in self._used if number == passed.number]
        return passed.sources(set().union(*(self._near[passed.source][i] for i in takers)))

    # -- paths inwards -----------------------------------------------------------------------------------

    def inwards(self) -> RolledInwards:
        if self._has_paths:
            raise NotRolled("several quantities go inwards along each path")
        passed = Passed(len(self.passed), AFTER_SWEEPS, CHILDREN, lambda _: None)
        self.passed.append(passed)
        return RolledInwards(self, passed)

    # -- columns ----------------------------------------------------------------------------------------

    def each_column(
        self, matrices: Sequence[RolledMatrixOfDofs | None], sizes: Sequence[int], function: OfColumns
    ) -> list[RolledMatrixOfDofs]:
        """Columns of matrices by ``function`` of an arbitrary column; joints of the classes have ``sizes`` degrees of
        freedom. Later sweeps run for every column."""
        if self.columns_from is not None:
            raise NotRolled("columns of matrices are gone through twice")
        self.columns_from = len(self.sweeps)
        dofs = [(i, k) for i, size in enumerate(sizes) for k in range(size)]
        numbers = [None if matrix is None else number for number, matrix in enumerate(matrices)]
        results = function([[self._column(dof, number) for dof in dofs] for number in numbers])
        return [
            RolledMatrixOfDofs({(dof, ANY): values[dof[0]][dof[1]] for dof in dofs}, matrix)
            for matrix, values in zip(matrices, results, strict=True)
        ]


class RolledInwards:
    """Values from degrees of freedom propagated inwards, at links of each class: of an arbitrary outer one."""

    def __init__(self, rolling: Rolling, passed: Passed):
        self._rolling, self._passed = rolling, passed

    def arriving(self, i: int) -> Sequence[tuple[Dof, Any]]:
        return [(ANY, self._rolling._input_numbers(self._passed, i))] if self._rolling.link_classes[i].carries else []

    def hand_on(self, i: int, values: Mapping[Dof, Any]) -> None:
        self._passed.handed[i] = dict(values)


class RolledMatrixOfDofs:
    """Matrix entries by class: between degrees of freedom of one link, or with any one further out (ANY).

    before   for a matrix made column by column, the matrix that it was made from; ANY is then each column in turn
    """

    def __init__(
        self, by_column: Mapping[tuple[Dof, Dof], Scalar] | None = None, before: RolledMatrixOfDofs | None = None
    ) -> None:
        self.entries: dict[tuple[Dof, Dof], Scalar] = dict(by_column or {})
        self.by_column, self.before = by_column is not None, before

    def __setitem__(self, pair: tuple[Dof, Dof], value: Scalar) -> None:
        self.entries[pair] = value

    @property
    def T(self) -> RolledMatrixOfDofs:
        """The transpose of a matrix made column by column."""
        return RolledMatrixOfDofs({(inner, outer): value for (outer, inner), value in self.entries.items()})


def _weaker(a: Pattern, b: Pattern) -> Pattern:
    if a[0] is None or b[0] is None:
        form, known = b if a[0] is None else a
        return form, tuple(x if x == 0.0 else None for x in known)
    return b[0], tuple(x if x == y else None for x, y in zip(a[1], b[1], strict=True))


class LinksOfClasses(tuple[Link, ...]):
    """One link for each link class, with symbols as numbers; ``rolling`` has their neighbours."""

    rolling: Rolling

    @staticmethod
    def of(links: Iterable[Link], rolling: Rolling) -> LinksOfClasses:
        rolled_links = LinksOfClasses(links)
        rolled_links.rolling = rolling
        return rolled_links

    def start(self, direction: str, name: str) -> Iterator[int]:
        return self.rolling.start(direction, name)

    def parent_value(self, i: int, values: Sequence[Any]) -> Any:
        """The result of a sweep's step at the parent of link i."""
        return self.rolling.from_parent(i, ("sweep", len(self.rolling.sweeps)), values.__getitem__)
