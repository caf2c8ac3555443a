"""Sums of products of atoms: symbols, sines and cosines of angles, divisors and named abbreviations.

Sines and cosines of single angles are kept in normal form (a sine to the first power at most), so that terms cancel by
s^2 + c^2 = 1.  Roots have a normal form, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

LARGEST_DENOMINATOR = 24
NOISE = 1e-13  # relative size of a remainder that counts as round-off
Monomial = tuple[tuple[int, int], ...]  # atoms by number, with their powers
Angle = tuple[tuple[int, float], ...]  # multiples of atoms by number: integers, or ratios of mimic joints


@dataclass(frozen=True, eq=False)
class Atom:
    """A named factor.

    kind     "acceleration", "force", "gravity", "mass", "inertia", "length", "coordinate", "velocity", "other"; "sin"
             and "cos"; "named" for an abbreviation
    angle    of a sine or cosine
    value    of an abbreviation; ``root``: the abbreviation is its square root; ``bracket``: written out in brackets
    """

    name: str
    latex: str
    kind: str
    angle: Angle = ()
    value: Polynomial | None = None
    root: bool = False
    bracket: bool = False


@dataclass
class Algebra:
    """The atoms that polynomials are made of."""

    atoms: list[Atom] = field(default_factory=list)
    _by_key: dict[Any, int] = field(default_factory=dict)

    def _atom(self, key: Any, make: Any) -> int:
        if key not in self._by_key:
            self._by_key[key] = len(self.atoms)
            self.atoms.append(make())
        return self._by_key[key]

    def symbol(self, name: str, latex: str = "", kind: str = "other") -> Polynomial:
        number = self._atom(("symbol", name), lambda: Atom(name, latex or latex_name(name), kind))
        return Polynomial(self, {((number, 1),): 1.0})

    def constant(self, value: float) -> Polynomial:
        return Polynomial(self, {(): float(value)} if value else {})

    def trigonometric(self, kind: str, angle: Angle) -> int:
        """The number of the sine or cosine of a sum of angles; the first multiple is positive."""

        def make() -> Atom:
            if all(n == 1 for _, n in angle):
                separator = "_" if any(len(self._index(a)) > 1 for a, _ in angle) else ""
                plus = separator.join(self._index(a) for a, _ in angle)
                text, shown = f"{kind[0]}{plus}", plus.replace("_", ",")
            else:
                inner = " ".join(
                    f"{'+' if n > 0 else '-'} {'' if abs(n) == 1 else f'{abs(n):.12g}*'}{self.atoms[a].name}"
                    for a, n in angle
                )
                text = f"{kind}({inner.removeprefix('+ ')})"
                shown = "".join(
                    f"{'+' if n > 0 else '-'}{_multiple_text(n)}{self._index(a)}" for a, n in angle
                ).removeprefix("+")
            return Atom(text, f"{kind[0]}_{{{shown}}}", kind, angle)

        return self._atom((kind, angle), make)

    def _index(self, atom: int) -> str:
        """The number behind the name of a coordinate: q12 is 12."""
        name = self.atoms[atom].name
        return name.lstrip("q") or name

    def named(self, stem: str, latex: str, value: Polynomial, root: bool = False) -> tuple[int, float]:
        """An abbreviation for a polynomial scaled to leading coefficient one, and the removed coefficient."""
        lead = value.terms[value.leading]
        value = value * (1.0 / lead)
        key = ("named", root, value.key)

        def make() -> Atom:
            count = 1 + sum(atom.kind == "named" and atom.name.startswith(stem) for atom in self.atoms)
            return Atom(f"{stem}{count}", f"{latex}_{{{count}}}", "named", value=value, root=root)

        return self._atom(key, make), lead

    def bracketed(self, kind: str, value: Polynomial) -> int:
        """The number of a bracketed sum of symbols, used as a factor of this kind."""

        def make() -> Atom:
            parts = [("-" if c < 0.0 else "+", self.atoms[m[0][0]]) for m, c in value.terms.items()]
            text, shown = (
                " ".join(f"{sign} {written(atom)}" for sign, atom in parts).removeprefix("+ ")
                for written in (lambda atom: atom.name, lambda atom: atom.latex)
            )
            return Atom(f"({text})", rf"\left({shown}\right)", kind, value=value, bracket=True)

        return self._atom(("bracket", value.key), make)

    def abbreviation(self, name: str, latex: str, value: Polynomial) -> Polynomial:
        """A symbol that stands for a polynomial."""
        number = self._atom(("abbreviation", name), lambda: Atom(name, latex, "named", value=value))
        return Polynomial(self, {((number, 1),): 1.0})


class Polynomial:
    """Coefficients by monomial; powers may be negative."""

    __slots__ = ("algebra", "terms")

    def __init__(self, algebra: Algebra, terms: Mapping[Monomial, float]):
        self.algebra = algebra
        self.terms = {m: c for m, c in terms.items() if c}

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def is_constant(self) -> bool:
        return all(m == () for m in self.terms)

    @property
    def constant(self) -> float:
        return self.terms.get((), 0.0)

    @property
    def leading(self) -> Monomial:
        """The first monomial, in a fixed order."""
        return min(self.terms)

    @property
    def key(self) -> tuple:
        """A hashable key; equal for polynomials that agree up to round-off."""
        return tuple(sorted((m, float(f"{c:.12g}")) for m, c in self.terms.items()))

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for m, c in other.terms.items():
            terms[m] = drop_noise(terms.get(m, 0.0) + c, abs(c))
        return Polynomial(self.algebra, terms)

    def __neg__(self) -> Polynomial:
        return self * -1.0

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial | float) -> Polynomial:
        if not isinstance(other, Polynomial):
            return Polynomial(self.algebra, {m: c * other for m, c in self.terms.items()} if other else {})
        terms: dict[Monomial, float] = {}
        sizes: dict[Monomial, float] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                for product, sign in self._reduced(_joined(m, n)):
                    terms[product] = terms.get(product, 0.0) + sign * c * d
                    sizes[product] = max(sizes.get(product, 0.0), abs(c * d))
        return Polynomial(self.algebra, {m: drop_noise(c, sizes[m]) for m, c in terms.items()})

    def _reduced(self, m: Monomial) -> Iterator[tuple[Monomial, float]]:
        """A product in normal form: s^2 = 1 - c^2, and squares of roots replaced by their radicands."""
        for number, power in m:
            atom = self.algebra.atoms[number]
            if atom.root and atom.value is not None and (power > 1 or power < 0 and len(atom.value) == 1):
                square = atom.value if power > 1 else atom.value.power(-1)
                rest = _joined(m, ((number, -2 if power > 1 else 2),))
                for term, factor in square.terms.items():
                    yield from ((product, sign * factor) for product, sign in self._reduced(_joined(rest, term)))
                return
            if atom.kind == "sin" and power > 1:
                cosine = self.algebra.trigonometric("cos", atom.angle)
                yield from self._reduced(_joined(m, ((number, -2),)))
                for product, sign in self._reduced(_joined(m, ((number, -2), (cosine, 2)))):
                    yield product, -sign
                return
        yield m, 1.0

    def power(self, exponent: int) -> Polynomial:
        """A power; negative exponents are allowed for single products only."""
        if exponent < 0:
            ((m, c),) = self.terms.items()
            inverse = Polynomial(self.algebra, {tuple((a, -p) for a, p in m): 1.0 / c})
            return inverse.power(-exponent)
        result = self.algebra.constant(1.0)
        for _ in range(exponent):
            result = result * self
        return result

    def derivative(self, atom: int) -> Polynomial:
        """Derivative with respect to a symbol; sines and cosines count as constants."""
        terms = {_joined(m, ((atom, -1),)): p * c for m, c in self.terms.items() for a, p in m if a == atom}
        return Polynomial(self.algebra, terms)

    def atoms(self) -> set[int]:
        return {number for m in self.terms for number, _ in m}

    def substituted(self, values: Mapping[int, Polynomial]) -> Polynomial:
        """Atoms replaced by polynomials."""
        if not self.atoms() & set(values):
            return self
        total = self.algebra.constant(0.0)
        for m, c in self.terms.items():
            kept = tuple((a, p) for a, p in m if a not in values)
            product = Polynomial(self.algebra, {kept: c})
            for a, p in m:
                if a in values:
                    product = product * values[a].power(p)
            total = total + product
        return total


def rounded(multiple: float) -> float:
    """The multiple of an angle, rounded so that nearly equal multiples compare equal; integers as integers."""
    near = float(f"{multiple:.12g}")
    return int(near) if near == int(near) else near


def _multiple_text(multiple: float) -> str:
    size = abs(multiple)
    return "" if size == 1 else f"{size}" if isinstance(size, int) else rf"{size:.12g}\cdot "


def drop_noise(total: float, size: float) -> float:
    """The sum, or zero if it is only round-off of terms of this size."""
    return total if abs(total) > NOISE * size else 0.0


def _joined(m: Monomial, n: Monomial) -> Monomial:
    if not m or not n:
        return m or n
    powers = dict(m)
    for number, power in n:
        powers[number] = powers.get(number, 0) + power
    return tuple(sorted((a, p) for a, p in powers.items() if p))


def multiplied(monomials: Iterable[Monomial]) -> Monomial:
    total: Monomial = ()
    for m in monomials:
        total = _joined(total, m)
    return total


def latex_name(name: str) -> str:
    """m2 as m_{2}, Ixx1 as I_{xx,1}."""
    head, tail = name[:1], name[1:]
    letters = tail.rstrip("0123456789")
    number = tail[len(letters) :]
    return f"{head}_{{{','.join(part for part in (letters, number) if part)}}}" if tail else head


def fraction(value: float) -> Fraction | None:
    """The simple fraction equal to a number, if there is one; decimals have none."""
    simple = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    return simple if abs(float(simple) - value) <= 1e-13 * max(1.0, abs(value)) else None
