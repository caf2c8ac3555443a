"""Factor powers of sums: l**2 + 2*l*q + q**2 becomes (l + q)**2.

A polynomial depends on the sum of some symbols alone if its derivatives by each of them are equal; on a difference, if
the derivatives are opposite.
"""

from __future__ import annotations

from .polynomial import Algebra, Monomial, Polynomial

#: Kinds of symbols that may be added to each other, and the kind of their sum.
ADDED = {"length": "length", "coordinate": "length", "velocity": "velocity"}


def factor_sums(value: Polynomial) -> Polynomial | None:
    """The polynomial with sums of lengths and coordinates, or of velocities, as factors; None if that is not
    shorter."""
    shorter = _shortened(value)
    if shorter is value:  # or only of the terms that differ in their velocities
        alike: dict[Monomial, dict[Monomial, float]] = {}
        for m, c in value.terms.items():
            rest = tuple((a, p) for a, p in m if value.algebra.atoms[a].kind != "velocity")
            alike.setdefault(rest, {})[m] = c
        parts = [_shortened(Polynomial(value.algebra, terms)).terms for terms in alike.values()]
        shorter = Polynomial(value.algebra, {m: c for part in parts for m, c in part.items()})
    return shorter if len(shorter) < len(value) else None


def _shortened(value: Polynomial) -> Polynomial:
    shorter = value
    for group in _groups(value):
        shorter = min(shorter, _replace_by_group(shorter, group), key=len)
    return shorter


def _groups(value: Polynomial) -> list[dict[int, float]]:
    """Groups of atoms that occur only as a sum, with their signs."""
    algebra = value.algebra
    groups: dict[tuple, dict[int, float]] = {}
    for atom in sorted(value.atoms(), key=lambda a: _place(algebra, a)):
        kind = ADDED.get(algebra.atoms[atom].kind)
        if kind is None or algebra.atoms[atom].bracket or any(a == atom and p < 0 for m in value.terms for a, p in m):
            continue
        slope = value.derivative(atom)
        sign = 1.0 if slope.terms[slope.leading] > 0.0 else -1.0
        groups.setdefault((kind, (slope * sign).key), {})[atom] = sign
    return [group for group in groups.values() if len(group) > 1]


def _place(algebra: Algebra, atom: int) -> tuple[str, int]:
    name = algebra.atoms[atom].name
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0)


def _replace_by_group(value: Polynomial, group: dict[int, float]) -> Polynomial:
    """Replace the first atom of a group by the whole group, unless the sum is a single term."""
    algebra = value.algebra
    first, *others = group
    group_sum = Polynomial(algebra, {((atom, 1),): sign * group[first] for atom, sign in group.items()})
    kept = {m: c for m, c in value.terms.items() if not any(a in others for a, _ in m)}
    if ((first, 1),) in kept:
        return value
    number = algebra.bracketed(ADDED[algebra.atoms[first].kind], group_sum)
    terms = {tuple(sorted((number if a == first else a, p) for a, p in m)): c for m, c in kept.items()}
    return Polynomial(algebra, terms)
