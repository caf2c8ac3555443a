"""Output languages of formulas: Python text, LaTeX and SymPy expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .arrange import Sum, Term, sort_factors
from .polynomial import Algebra, Monomial, Polynomial, fraction


class Text:
    """Sums as text; a named bracket is written by its name."""

    def __init__(self, algebra: Algebra, names: Mapping[tuple, str]):
        self.algebra, self.names = algebra, names

    def sum(self, total: Sum) -> str:
        return " ".join(self.parts(total))

    def parts(self, total: Sum) -> list[str]:
        """The terms, with their signs."""
        parts: list[str] = []
        for term in total.terms:
            sign, text = self.term(term)
            parts.append(f"{sign} {text}" if parts else f"{sign.strip('+')}{text}")
        return parts or ["0"]

    def term(self, term: Term) -> tuple[str, str]:
        """Sign and unsigned text of a term."""
        ordered = sort_factors(self.algebra, term.factors)
        over, under = [f for f in ordered if f[1] > 0], [(a, -p) for a, p in ordered if p < 0]
        numbers = self.number(abs(term.coefficient))
        alone = bool(under) and not over and not numbers[0] and term.power == 1
        bracket = [self.raised(self.bracket(term.bracket, alone), term.power)] if term.bracket is not None else []
        return "-" if term.coefficient < 0.0 else "+", self.quotient(numbers, over, bracket, under)

    def bracket(self, inner: Sum, alone: bool) -> str:
        """The text of a bracket; ``alone``: it is the entire numerator of a fraction."""
        return self.names.get(inner.key) or f"({self.sum(inner)})"

    def number(self, value: float) -> tuple[str, str]:
        """Numerator and denominator as text; empty for one."""
        simple = fraction(value)
        if simple is None:
            return f"{value:.12g}" if float(f"{value:.12g}") == value else repr(value), ""
        return (
            "" if simple.numerator == 1 else str(simple.numerator),
            "" if simple.denominator == 1 else str(simple.denominator),
        )

    def power(self, atom: int, power: int) -> str:
        return self.raised(self.algebra.atoms[atom].name, power)

    def raised(self, text: str, power: int) -> str:
        return text if power == 1 else f"{text}**{power}"

    def quotient(self, numbers: tuple[str, str], over: Any, bracket: list[str], under: Any) -> str:
        factors = [*filter(None, numbers[:1]), *(self.power(*f) for f in over), *bracket]
        below = [*filter(None, numbers[1:]), *(self.power(*f) for f in under)]
        text = "*".join(factors) or "1"
        if not below:
            return text
        return f"{text}/{below[0]}" if len(below) == 1 else f"{text}/({'*'.join(below)})"


class Latex(Text):
    """Formulas in LaTeX."""

    def bracket(self, inner: Sum, alone: bool) -> str:
        inside = self.sum(inner)
        return self.names.get(inner.key) or (inside if alone else rf"\left({inside}\right)")

    def power(self, atom: int, power: int) -> str:
        factor = self.algebra.atoms[atom]
        if power == 1:
            return factor.latex
        if factor.kind in ("sin", "cos"):
            return f"{factor.latex[0]}^{{{power}}}{factor.latex[1:]}"
        return self.raised(factor.latex, power)

    def raised(self, text: str, power: int) -> str:
        return text if power == 1 else f"{text}^{{{power}}}"

    def quotient(self, numbers: tuple[str, str], over: Any, bracket: list[str], under: Any) -> str:
        factors = [*(self.power(*f) for f in over), *bracket]
        below = " ".join(self.power(*f) for f in under)
        if numbers[1] and not below:
            return rf"\frac{{{numbers[0] or 1}}}{{{numbers[1]}}}" + " ".join(["", *factors])
        text = " ".join([*filter(None, numbers[:1]), *factors]) or "1"
        below = " ".join(filter(None, (numbers[1], below)))
        return rf"\frac{{{text}}}{{{below}}}" if below else text


class Sympy:
    """SymPy expressions, with abbreviations expanded."""

    def __init__(self, algebra: Algebra, arranged: Callable[[Polynomial], Sum]):
        try:
            import sympy  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            raise ImportError("formulas as expressions of SymPy need it: pip install linkwise[symbols]") from None
        self.algebra, self.library, self.arranged = algebra, sympy, arranged
        self._atoms: dict[int, Any] = {}

    def sum(self, total: Sum) -> Any:
        return self.library.Add(*(self._term(term) for term in total.terms))

    def _term(self, term: Term) -> Any:
        inner = [self.sum(term.bracket) ** term.power] if term.bracket is not None else []
        return self.library.Mul(self._number(term.coefficient), *self.factors(term.factors), *inner)

    def factors(self, monomial: Monomial) -> list[Any]:
        return [self.atom(a) ** p for a, p in monomial]

    def _number(self, value: float) -> Any:
        simple = fraction(value)
        return (
            self.library.Float(value) if simple is None else self.library.Rational(simple.numerator, simple.denominator)
        )

    def atom(self, number: int) -> Any:
        if number not in self._atoms:
            self._atoms[number] = self._made(number)
        return self._atoms[number]

    def _made(self, number: int) -> Any:
        atom, sp = self.algebra.atoms[number], self.library
        if atom.angle:
            angle = sp.Add(*(n * self.atom(a) for a, n in atom.angle))
            return sp.sin(angle) if atom.kind == "sin" else sp.cos(angle)
        if atom.value is not None:
            value = self.sum(self.arranged(atom.value))
            return sp.sqrt(value) if atom.root else value
        return sp.Symbol(atom.name, real=True)
