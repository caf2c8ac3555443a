"""Layout of formulas: factors taken out of brackets, and the order of terms and factors."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .polynomial import Algebra, Atom, Monomial, Polynomial, multiplied
from .sums import factor_sums

#: Common factors of these kinds are taken out of brackets, in this order; all other factors stay, as in textbooks.
TAKEN_OUT = ("acceleration", "force", "gravity", "named", "mass", "inertia", "sin", "cos")
#: Sort order of terms by the kind of their first factor; terms without any of these kinds come before masses.
TERMS = ("acceleration", "force", "gravity", "velocity", "named", "mass")
PLACES = {"acceleration": 0, "force": 1, "named": 2, "": 3, "mass": 4, "velocity": 5, "gravity": 6}
#: Sort order of factors in a product.
FACTORS = (
    "mass",
    "inertia",
    "gravity",
    "named",
    "length",
    "other",
    "coordinate",
    "sin",
    "cos",
    "velocity",
    "force",
    "acceleration",
)


@dataclass(frozen=True)
class Term:
    """coefficient * factors * (bracket)**power."""

    coefficient: float
    factors: Monomial
    bracket: Sum | None = None
    power: int = 1


@dataclass(frozen=True)
class Sum:
    """Terms in order, and the polynomial that is their sum."""

    terms: tuple[Term, ...]
    value: Polynomial

    @property
    def key(self) -> tuple:
        return self.value.key


def arranged(value: Polynomial) -> Sum:
    """The polynomial as an ordered sum with common factors taken out of brackets."""
    terms = sorted(_terms(value), key=lambda term: _place(value.algebra, term))
    return Sum(tuple(terms), value)


def _terms(value: Polynomial) -> list[Term]:
    if len(value) < 2:
        return [Term(c, m) for m, c in value.terms.items()]
    common, scale = _common(value), _common_coefficient(value)
    if common:
        rest = Polynomial(value.algebra, {multiplied([m, _inverse(common)]): c / scale for m, c in value.terms.items()})
        inner = arranged(rest)
        if len(inner.terms) == 1:
            (only,) = inner.terms
            return [Term(scale * only.coefficient, multiplied([common, only.factors]), only.bracket, only.power)]
        if 2 * sum(t.coefficient < 0.0 for t in inner.terms) > len(inner.terms):
            inner, scale = arranged(-rest), -scale
        return [Term(scale, common, inner)]
    shared = _shared(value)
    if shared is None:
        shorter = factor_sums(value)
        return [Term(c, m) for m, c in value.terms.items()] if shorter is None else _terms(shorter)
    sharing = {m: c for m, c in value.terms.items() if dict(m).get(shared, 0) != 0}
    others = {m: c for m, c in value.terms.items() if m not in sharing}
    return _terms(Polynomial(value.algebra, sharing)) + _terms(Polynomial(value.algebra, others))


def _inverse(m: Monomial) -> Monomial:
    return tuple((a, -p) for a, p in m)


def _common(value: Polynomial) -> Monomial:
    """Factors common to all terms; lengths and velocities only with equal powers in all terms."""
    first, *others = (dict(m) for m in value.terms)
    powers_of_atoms = []
    for atom, power in first.items():
        powers = [power, *(m.get(atom, 0) for m in others)]
        if len(set(powers)) > 1 and not _is_taken_out(value.algebra.atoms[atom]):
            continue
        if min(powers) > 0:
            powers_of_atoms.append((atom, min(powers)))
        elif max(powers) < 0:
            powers_of_atoms.append((atom, max(powers)))
    return tuple(sorted(powers_of_atoms))


def _common_coefficient(value: Polynomial) -> float:
    """The number that all coefficients are multiples of."""
    coefficients = [abs(c) for c in value.terms.values()]
    least = min(coefficients)
    return least if all(abs(c / least - round(c / least)) < 1e-9 for c in coefficients) else 1.0


def _is_taken_out(atom: Atom) -> bool:
    return atom.kind in TAKEN_OUT or atom.bracket


def _shared(value: Polynomial) -> int | None:
    """The factor to take out first, among factors of several terms."""
    counts: dict[int, int] = {}
    for m in value.terms:
        for atom, _ in m:
            counts[atom] = counts.get(atom, 0) + 1
    atoms = value.algebra.atoms
    several = [a for a, n in counts.items() if n > 1 and _is_taken_out(atoms[a])]
    order = {kind: k for k, kind in enumerate(TAKEN_OUT)}
    return min(several, key=lambda a: (order.get(atoms[a].kind, len(order)), -counts[a], atoms[a].name), default=None)


def _place(algebra: Algebra, term: Term) -> tuple:
    """Sort key of a term: by the kind of its first factor, then alphabetically."""
    every = {a for a, _ in term.factors} | (term.bracket.value.atoms() if term.bracket else set())
    kinds = {algebra.atoms[a].kind for a in every}
    kind = next((kind for kind in TERMS if kind in kinds), "")
    names = sorted(_natural(algebra.atoms[a].name) for a in every if algebra.atoms[a].kind == kind)
    plain = [(a, p) for a, p in term.factors if algebra.atoms[a].kind not in ("sin", "cos")]
    letters = sorted(_natural(algebra.atoms[a].name) for a, p in plain for _ in range(abs(p)))
    return PLACES[kind], names[:1], letters, term.factors


def _natural(name: str) -> tuple[str, int]:
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0)


def sort_factors(algebra: Algebra, factors: Monomial) -> Monomial:
    """The factors of a product in the order of writing."""

    def place(factor: tuple[int, int]) -> tuple:
        atom = algebra.atoms[factor[0]]
        return atom.bracket, FACTORS.index(atom.kind), _natural(atom.name)

    return tuple(sorted(factors, key=place))


def brackets(total: Sum) -> list[Sum]:
    """All brackets of a sum, outer ones first."""
    nested = []
    for term in total.terms:
        if term.bracket is not None:
            nested += [term.bracket, *brackets(term.bracket)]
    return nested


def size(total: Sum) -> int:
    """Number of factors to write."""
    return sum(
        len(t.factors) + (size(t.bracket) if t.bracket else 0) + (not math.isclose(abs(t.coefficient), 1.0))
        for t in total.terms
    )
