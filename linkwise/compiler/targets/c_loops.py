"""Programs with counted loops as C statements: tables of constants, and a ``for`` with a ``switch`` for each loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..ir import ops
from ..ir.program import CELL, NUMBER, OUTPUT, For, Place, Program
from ..ir.program import Body as LoopBody
from .c_expressions import RESERVED, Body, Functions, Real, identifier

PER_LINE = 8  # numbers of a table


class LoopedBody:
    """One program with loops as C statements over named arrays, as ``Body`` is of straight-line code.

    ``address(array, element, base)`` writes the place of an element after the one whose number is the text ``base``.
    ``table`` stands before the constant tables: they are no part of the function.  ``cell(k)`` is the place of a cell,
    where all of them are fixed and declared elsewhere.  ``straight(loop, k, address)`` is the straight-line code of a
    body.
    """

    def __init__(
        self,
        program: Program,
        real: Real,
        address: Callable[[str, int, str], str],
        functions: Functions,
        named: Callable[[list[str], list[str]], None] | None = None,
        table: str = "static const",
        cell: Callable[[int], str] | None = None,
        straight: Callable[[For, int, Callable[[str, int], str]], Body] | None = None,
    ):
        self.real, self.program = real, program
        self.is_fused = any(node.op in ops.FUSED for code, _ in program.blocks for node in code.nodes)
        taken = set(RESERVED)
        self.function = identifier(program.name, taken)
        self.inputs = [identifier(array.name, taken) for array in program.inputs]
        self.outputs = [identifier(array.name, taken) for array in program.outputs]
        if named is not None:
            named(self.inputs, self.outputs)
        self._address, self._functions, self._straight = address, functions, straight or self._at_once
        self._cell = cell
        self.declarations = tuple(self._tables(table))
        self.statements = [] if cell else [f"{real.name} _cells[{max(program.cells, 1)}];"]
        self.statements += self._zeros() if program.sparse else ()
        for number, loop in enumerate(program.loops):
            self.statements += self._loop(number, loop)
        self.statements += self._from_cells()

    def _tables(self, table: str) -> Iterable[str]:
        program = self.program
        if len(program.numbers):
            yield from _table(f"{table} {self.real.name} _numbers", map(self.real.literal, program.numbers.tolist()))
        for number, places in enumerate(program.results):
            yield from _table(f"{table} int _results{number}", map(str, places.tolist()))
        for number, loop in enumerate(program.loops):
            tables = {"bases": loop.bases, "bodies": loop.which}
            if not _has_positions(loop):
                del tables["bases"]
            if (rows := loop.inner) is not None:
                tables |= {"row_bases": rows.bases, "row_bodies": rows.which}
                tables |= {"first": rows.first, "following": rows.following}
            for name, values in tables.items():
                yield from _table(f"{table} int _{name}{number}", map(str, values.ravel().tolist()))

    def _from_cells(self) -> Iterable[str]:
        """Results that are in cells at the end."""
        for number, places in enumerate(self.program.results):
            cell = f"_results{number}[_t] < 0 ? {self.real.literal(0.0)} : _cells[_results{number}[_t]]"
            place = self._address(self.outputs[number], 0, "_t")
            yield f"for (int _t = 0; _t < {len(places)}; ++_t) {place} = {cell};"

    def _zeros(self) -> Iterable[str]:
        for name, array in zip(self.outputs, self.program.outputs, strict=True):
            zero = f"{self._address(name, 0, '_t')} = {self.real.literal(0.0)};"
            yield f"for (int _t = 0; _t < {array.size}; ++_t) {zero}"

    def _loop(self, number: int, loop: For) -> list[str]:
        lines = [f"/* {loop.label} */", f"for (int _t = 0; _t < {len(loop.which)}; ++_t) {{"]
        if _has_positions(loop):
            lines += [f"    const int *const _at = _bases{number} + _t * {loop.bases.shape[1]};"]
        lines += [f"    {line}" for line in self._choice(loop, f"_bodies{number}[_t]")]
        if loop.inner is not None:
            rows = loop.inner
            lines += [
                "    const int *const _around = _at;",
                f"    for (int _r = _first{number}[_t]; _r >= 0; _r = _following{number}[_r]) {{",
                f"        const int *const _at = _row_bases{number} + _r * {rows.bases.shape[1]};",
                *(f"        {line}" for line in self._choice(rows, f"_row_bodies{number}[_r]")),
                "    }",
            ]
        return [*lines, "}"]

    def _choice(self, loop: For, which: str) -> list[str]:
        """The bodies of a loop, of which one runs."""
        lines = [f"switch ({which}) {{"]
        for k, body in enumerate(loop.bodies):
            statements = self._straight(loop, k, self._place_in(body)).statements
            lines += [f"case {k}: {{", *(f"    {line}".rstrip() for line in statements), "    break;", "}"]
        return [*lines, "}"]

    def _at_once(self, loop: For, k: int, address: Callable[[str, int], str]) -> Body:
        return Body(loop.bodies[k].program, self.real, address, self._functions, eager=True)

    def _place_in(self, body: LoopBody) -> Callable[[str, int], str]:
        def place(side: str, element: int) -> str:
            return self._place((body.reads if side == "reads" else body.writes)[element])

        return place

    def _place(self, place: Place) -> str:
        if place.space == CELL and self._cell:
            return self._cell(place.offset)
        base = "0" if place.base is None else f"_at[{place.base}]"
        base += "" if place.outer is None else f" + _around[{place.outer}]"
        if place.space in (CELL, NUMBER):
            return f"{'_cells' if place.space == CELL else '_numbers'}[{base} + {place.offset}]"
        names = self.outputs if place.space == OUTPUT else self.inputs
        return self._address(names[place.array], place.offset, base)


def _has_positions(loop: For) -> bool:
    """Whether iterations differ in where they read and write."""
    places = (place for body in loop.bodies for place in (*body.reads, *body.writes))
    return loop.inner is not None or any(place.base is not None for place in places)


def _table(name: str, values: Iterable[str]) -> list[str]:
    texts = list(values)
    rows = [", ".join(texts[k : k + PER_LINE]) for k in range(0, len(texts), PER_LINE)]
    return [f"{name}[{len(texts)}] = {{", *(f"    {row}," for row in rows), "};"]
