"""Closed formulas of a kernel, as returned by ``Kernel.formulas`` and ``linkwise.codegen.symbolic``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from .arrange import Sum, arranged, brackets, size
from .collect import collected
from .expand import FormulaError
from .polynomial import Algebra, Polynomial
from .writing import Latex, Sympy, Text

COMMANDS = re.compile(r"\\[a-z]+|[{}_^ ]")  # factors that are not written
ABBREVIATED = 5  # minimum number of factors of a repeated bracket that gets a name
#: Results as textbooks call them: text, LaTeX.
RESULTS = {
    "mass_matrix": ("M", "M"),
    "mass_matrix_inverse": ("W", "(M^{-1})"),
    "tau": ("tau", r"\tau"),
    "a": ("a", r"\ddot{q}"),
    "coriolis_matrix": ("C", "C"),
    "energy": ("E", "E"),
    "jacobian": ("J", "J"),
}


@dataclass(frozen=True, eq=False)
class Formulas:
    """Closed formulas of the results of a kernel.

    name        of the algorithm
    algebra     the symbols
    inputs      per array: name, shape, and polynomial of each element
    outputs     per array: name, shape, and formula of each element
    values      numbers for symbols that are not elements of arrays, used by calls
    """

    name: str
    algebra: Algebra
    inputs: Sequence[tuple[str, tuple[int, ...], Sequence[Polynomial]]]
    outputs: Sequence[tuple[str, tuple[int, ...], Sequence[Polynomial]]]
    values: Mapping[str, float]

    # -- as text --------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self.text()

    def text(self) -> str:
        """One line per element, in Python's syntax; sines, cosines and abbreviations precede the lines that
        use them."""
        text = Text(self.algebra, {key: name for key, (name, _) in self._abbreviations.items()})
        lines = [f"{atom.name} = {kind}({_angle(self.algebra, atom.angle)})" for kind, atom in self._angles()]
        lines += [
            f"{definition.name} = {_rooted(text.sum(definition.total), definition.root)}"
            for definition in self._definitions
        ]
        lines += [
            f"{name} = {text.sum(value) if isinstance(value, Sum) else value}" for name, _, value in self._entries
        ]
        return "\n".join(lines)

    def __getitem__(self, index: Any) -> str:
        """The text of one element of the only result: ``formulas[0, 1]``."""
        ((_, shape, values),) = self.outputs
        elements_of_output = np.empty(len(values), dtype=object)
        elements_of_output[:] = values
        element = elements_of_output.reshape(shape)[index]
        if not isinstance(element, Polynomial):
            raise IndexError(f"formulas of {self.name} have {len(shape)} indices, got {index!r}")
        return Text(self.algebra, {}).sum(self._arranged(element))

    def latex(self, align: bool = True, width: int = 110) -> str:
        """LaTeX: an ``align*`` environment, or a formula per line.  s and c with indices are sines and cosines of joint
        angles, or of sums of joint angles.

        width   approximate number of characters after which a formula continues on the next line
        """
        latex = Latex(self.algebra, {key: name for key, (_, name) in self._abbreviations.items()})
        pairs: list[tuple[str, list[str]]] = []
        for definition in self._definitions:
            inside = latex.parts(definition.total)
            pairs.append((definition.latex, [rf"\sqrt{{{' '.join(inside)}}}"] if definition.root else inside))
        by_name = {name: shown for name, shown, _ in self._entries}
        for _, shown, entry in self._entries:
            pairs.append((shown, latex.parts(entry) if isinstance(entry, Sum) else [by_name[entry]]))
        if not align:
            return "\n".join(f"{left} = {' '.join(parts)}" for left, parts in pairs)
        lines = [line for left, parts in pairs for line in _lines(left, parts, width)]
        return "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}"

    def _repr_latex_(self) -> str:
        return self.latex()

    def sympy(self) -> Any:
        """The result as a SymPy matrix, column or expression; a tuple if there are several."""
        writer = Sympy(self.algebra, self._arranged)
        matrices = []
        for _, shape, values in self.outputs:
            entries = [writer.sum(self._arranged(value)) for value in values]
            if not shape:
                matrices.append(entries[0])
            elif len(shape) <= 2:
                matrices.append(writer.library.Matrix(*(shape if len(shape) == 2 else (*shape, 1)), entries))
            else:
                matrices.append(writer.library.Array(entries, shape))
        return matrices[0] if len(matrices) == 1 else tuple(matrices)

    # -- as numbers -----------------------------------------------------------------------------------

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of all symbols in the formulas, except for sines, cosines and abbreviations."""
        used = self._used()
        return tuple(
            atom.name
            for number, atom in enumerate(self.algebra.atoms)
            if number in used and not atom.angle and atom.value is None
        )

    def __call__(self, *arrays: Any, **values: float) -> Any:
        """Evaluate the formulas for arrays as the kernel takes them. Other symbols have the mechanism's numbers unless
        given by name."""
        if len(arrays) != len(self.inputs):
            names = ", ".join(name for name, _, _ in self.inputs)
            raise TypeError(
                f"formulas of {self.name} take {len(self.inputs)} arrays ({names}), {len(arrays)} were given"
            )
        unknown = [name for name in values if name not in self.symbols]
        if unknown:
            raise TypeError(f"formulas of {self.name} have no symbol {unknown[0]!r}: {', '.join(self.symbols)}")
        numbers: dict[str, Any] = {**self.values, **values}
        for (_, shape, elements), array in zip(self.inputs, arrays, strict=True):
            input_values = np.asarray(array, dtype=float)
            input_values = input_values.reshape(*input_values.shape[: input_values.ndim - len(shape)], -1)
            for k, element in enumerate(elements):
                if len(element) == 1 and not element.is_constant:
                    ((m, _),) = element.terms.items()
                    numbers[self.algebra.atoms[m[0][0]].name] = input_values[..., k]
        missing = [name for name in self.symbols if name not in numbers]
        if missing:
            raise TypeError(f"formulas of {self.name} need numbers for {', '.join(missing)}: give them by name")
        evaluate = _Evaluation(self.algebra, numbers)
        results = []
        for _, shape, entries in self.outputs:
            columns = np.broadcast_arrays(*(evaluate(value) for value in entries))
            stacked = np.stack(columns, axis=-1)
            results.append(stacked.reshape((*stacked.shape[:-1], *shape)))
        return results[0] if len(results) == 1 else tuple(results)

    # -- how it is written ----------------------------------------------------------------------------

    @cached_property
    def _kept(self) -> dict[int, Sum]:
        return {}

    def _arranged(self, value: Polynomial) -> Sum:
        if id(value) not in self._kept:
            self._kept[id(value)] = arranged(collected(value))
        return self._kept[id(value)]

    @cached_property
    def _entries(self) -> list[tuple[str, str, Sum | str]]:
        """Name, LaTeX and expression of each element; repeated ones refer to the first."""
        entries: list[tuple[str, str, Sum | str]] = []
        first: dict[tuple, str] = {}
        for output, shape, values in self.outputs:
            text, shown = RESULTS.get(output, (output, rf"\mathrm{{{output.replace('_', ' ')}}}"))
            separator = "_" if any(n > 9 for n in shape) else ""
            for subscript, value in zip(product(*map(range, shape)), values, strict=True):
                index = separator.join(str(k + 1) for k in subscript)
                name, latex = f"{text}{index}", f"{shown}_{{{index}}}" if index else shown
                arranged = self._arranged(value)
                same = first.setdefault(arranged.key, name) if arranged.terms else name
                entries.append((name, latex, arranged if same == name else same))
        return entries

    @cached_property
    def _named(self) -> list[tuple[int, Sum]]:
        """Divisors and roots with a name, in the order of use."""
        return [
            (n, self._arranged(atom.value))
            for n, atom in enumerate(self.algebra.atoms)
            if atom.value is not None and not atom.bracket and n in self._used()
        ]

    @cached_property
    def _repeated(self) -> list[tuple[tuple, str, Sum]]:
        """Long brackets that appear more than once, inner ones first."""
        wholes = [value for _, _, value in self._entries if isinstance(value, Sum)] + [
            value for _, value in self._named
        ]
        counts: dict[tuple, int] = {}
        inner: dict[tuple, Sum] = {}

        def count(value: Sum) -> None:
            for bracket in (term.bracket for term in value.terms if term.bracket is not None):
                known = bracket.key in counts
                counts[bracket.key] = counts.get(bracket.key, 0) + 1
                inner[bracket.key] = bracket
                if not known or size(bracket) < ABBREVIATED:  # count a named subexpression only once
                    count(bracket)

        for total in wholes:
            count(total)
        long = [key for key, n in counts.items() if n > 1 and size(inner[key]) >= ABBREVIATED]
        long.sort(key=lambda key: size(inner[key]))
        return [(key, f"k{n}", inner[key]) for n, key in enumerate(long, 1)]

    @cached_property
    def _definitions(self) -> list[_Definition]:
        """All abbreviations, each after the abbreviations that it uses."""
        waiting = [
            _Definition(atom.name, atom.latex, value, atom.root)
            for n, value in self._named
            for atom in (self.algebra.atoms[n],)
        ]
        waiting += [_Definition(name, f"k_{{{name[1:]}}}", value, False) for _, name, value in self._repeated]
        ordered: list[_Definition] = []
        while waiting:
            open_names = {definition.name for definition in waiting}
            ready = [definition for definition in waiting if not (self._used_names(definition.total) & open_names)]
            ordered += ready
            waiting = [definition for definition in waiting if definition not in ready]
        return ordered

    def _used_names(self, value: Sum) -> set[str]:
        """The abbreviations in a formula."""
        names = {self.algebra.atoms[a].name for a in value.value.atoms() if self.algebra.atoms[a].value is not None}
        return names | {self._abbreviations[b.key][0] for b in brackets(value) if b.key in self._abbreviations}

    @property
    def _abbreviations(self) -> dict[tuple, tuple[str, str]]:
        return {key: (name, f"k_{{{name[1:]}}}") for key, name, _ in self._repeated}

    def _used(self) -> set[int]:
        """All atoms in the formulas and in their abbreviations."""
        used: set[int] = set()
        waiting = [self._arranged(value).value for _, _, values in self.outputs for value in values]
        while waiting:
            for number in waiting.pop().atoms() - used:
                used.add(number)
                atom = self.algebra.atoms[number]
                used.update(a for a, _ in atom.angle)
                if atom.value is not None:
                    waiting.append(self._arranged(atom.value).value)
        return used

    def _angles(self) -> list[tuple[str, Any]]:
        angles = [
            (atom.kind, atom)
            for n, atom in enumerate(self.algebra.atoms)
            if n in self._used() and atom.angle and "(" not in atom.name
        ]
        return sorted(angles, key=lambda pair: (pair[0], len(pair[1].angle), pair[1].name))


@dataclass(frozen=True, eq=False)
class _Definition:
    """An abbreviation: its name, its LaTeX, and the expression or the root that it abbreviates."""

    name: str
    latex: str
    total: Sum
    root: bool


def _lines(left: str, parts: Sequence[str], width: int) -> list[str]:
    """Break a formula into lines of at most ``width`` characters."""
    lines, room = [f"{left} &="], width
    for part in parts:
        length = len(COMMANDS.sub("", part))
        if room < length and not lines[-1].endswith("&="):
            lines.append(r"&\quad")
            room = width
        lines[-1] += f" {part}"
        room -= length
    return lines


def _angle(algebra: Algebra, angle: Any) -> str:
    return " + ".join(algebra.atoms[a].name for a, _ in angle)


def _rooted(text: str, root: bool) -> str:
    return f"sqrt({text})" if root else text


class _Evaluation:
    """Evaluates polynomials for numbers of the symbols."""

    def __init__(self, algebra: Algebra, numbers: Mapping[str, Any]):
        self.algebra, self.numbers = algebra, numbers
        self._atoms: dict[int, Any] = {}

    def __call__(self, value: Polynomial) -> Any:
        total: Any = np.zeros(())
        for m, c in value.terms.items():
            term: Any = c
            for a, p in m:
                term = term * self.atom(a) ** float(p)
            total = total + term
        return total

    def atom(self, number: int) -> Any:
        if number not in self._atoms:
            atom = self.algebra.atoms[number]
            if atom.angle:
                angle = sum(n * self.atom(a) for a, n in atom.angle)
                self._atoms[number] = np.sin(angle) if atom.kind == "sin" else np.cos(angle)
            elif atom.value is not None:
                self._atoms[number] = np.sqrt(self(atom.value)) if atom.root else self(atom.value)
            else:
                self._atoms[number] = np.asarray(self.numbers[atom.name], dtype=float)
        return self._atoms[number]


# -- symbols of arrays ----------------------------------------------------------------------------------

#: Elements of arrays by name of the array: text, LaTeX, kind.
ELEMENTS = {
    "q": ("q", "q", "coordinate"),
    "v": ("v", r"\dot{q}", "velocity"),
    "a": ("a", r"\ddot{q}", "acceleration"),
    "tau": ("tau", r"\tau", "force"),
    "mass": ("m", "m", "mass"),
}
AXES = "xyz"


def elements(name: str, shape: tuple[int, ...], algebra: Algebra, holonomic: bool = True) -> list[Polynomial]:
    """A symbol for each element of an array; with ``holonomic``, velocities are the rates of coordinates."""
    stem, latex, kind = ELEMENTS.get(name, (name.replace(".", "_"), rf"\mathrm{{{name.replace('_', ' ')}}}", "other"))
    if not holonomic:
        latex = {"v": "v", "a": r"\dot{v}"}.get(name, latex)
    symbols = []
    for subscript in product(*map(range, shape)):
        index = "_".join(str(k + 1) for k in subscript)
        symbols.append(
            algebra.symbol(f"{stem}{index}", f"{latex}_{{{index.replace('_', ',')}}}" if index else latex, kind)
        )
    return symbols


def make_formulas(
    name: str,
    inputs: Sequence[tuple[str, tuple[int, ...]]],
    outputs: Sequence[tuple[str, tuple[int, ...]]],
    expand: Callable[[Algebra, Callable[[int, int], Polynomial]], list[list[Polynomial]]],
    holonomic: bool,
) -> Formulas:
    """Formulas in symbols for all elements of the inputs."""
    algebra = Algebra()
    symbols_of_inputs = [elements(array, shape, algebra, holonomic) for array, shape in inputs]
    results = expand(algebra, lambda array, element: symbols_of_inputs[array][element])
    return Formulas(
        name,
        algebra,
        [(array, shape, symbols) for (array, shape), symbols in zip(inputs, symbols_of_inputs, strict=True)],
        [(array, shape, values) for (array, shape), values in zip(outputs, results, strict=True)],
        {},
    )


__all__ = ["ELEMENTS", "FormulaError", "Formulas", "elements", "make_formulas"]
