"""Sines and cosines of sums: c1 c2 - s1 s2 becomes c12, wherever two terms make one."""

from __future__ import annotations

from itertools import combinations

from .polynomial import Algebra, Angle, Monomial, Polynomial, drop_noise, multiplied, rounded

SAME = 1e-13  # relative difference below which two coefficients count as equal


def collected(value: Polynomial) -> Polynomial:
    """The polynomial with the fewest terms that sums of angles, and sin^2 in place of cos^2, can achieve."""
    value = _sums_of_angles(value)
    return min((value, *_square_variants(value)), key=len)


def _sums_of_angles(value: Polynomial) -> Polynomial:
    while True:
        shorter = _one_pass(value)
        if len(shorter) == len(value):
            return value
        value = shorter


def _one_pass(value: Polynomial) -> Polynomial:
    """One pass over all pairs of angles, in the order of saved terms."""
    algebra = value.algebra
    angles = {algebra.atoms[a].angle for a in value.atoms() if algebra.atoms[a].kind in ("sin", "cos")}
    candidates = [_joined_pair(value, a, b) for a, b in combinations(sorted(angles), 2)]
    return min((value, *candidates), key=len)


def _joined_pair(value: Polynomial, a: Angle, b: Angle) -> Polynomial:
    """Apply an addition theorem: x R c_a c_b - x R s_a s_b = x R c_(a+b), and three similar cases."""
    algebra = value.algebra
    (sa, ca), (sb, cb) = (_pair(algebra, angle) for angle in (a, b))
    terms = dict(value.terms)
    for first, second, kind in (((ca, cb), (sa, sb), "cos"), ((sa, cb), (ca, sb), "sin")):
        for m in list(terms):
            powers = dict(m)
            if m not in terms or any(powers.get(x, 0) < 1 for x in first):
                continue
            rest = multiplied([m, tuple(sorted((x, -1) for x in first))])
            other = multiplied([rest, tuple(sorted((x, 1) for x in second))])
            if other not in terms:
                continue
            x, y = terms[m], terms[other]
            sign = 1 if (kind == "sin") == (x * y > 0.0) else -1
            if abs(abs(x) - abs(y)) > SAME * abs(x):
                continue
            del terms[m], terms[other]
            for n, c in _sine_of_sum(algebra, kind, a, b, sign):
                product = multiplied([rest, n])
                terms[product] = drop_noise(terms.get(product, 0.0) + c * x, abs(x))
    return Polynomial(algebra, terms)


def _pair(algebra: Algebra, angle: Angle) -> tuple[int, int]:
    return algebra.trigonometric("sin", angle), algebra.trigonometric("cos", angle)


def _sine_of_sum(algebra: Algebra, kind: str, a: Angle, b: Angle, sign: int) -> list[tuple[Monomial, float]]:
    """The sine or cosine of a + sign b."""
    multiples = dict(a)
    for number, n in b:
        multiples[number] = rounded(multiples.get(number, 0) + sign * n)
    angle = tuple(sorted((number, n) for number, n in multiples.items() if n))
    if not angle:
        return [((), 1.0)] if kind == "cos" else []
    flipped = angle[0][1] < 0
    if flipped:
        angle = tuple((number, -n) for number, n in angle)
    return [(((algebra.trigonometric(kind, angle), 1),), -1.0 if flipped and kind == "sin" else 1.0)]


def _square_variants(value: Polynomial) -> list[Polynomial]:
    """Equal polynomials that use c^2 = 1 - s^2 for one angle each."""
    algebra, polynomials = value.algebra, []
    squared = {a for m in value.terms for a, p in m if p > 1 and algebra.atoms[a].kind == "cos"}
    for number in squared:
        sine = algebra.trigonometric("sin", algebra.atoms[number].angle)
        terms: dict[Monomial, float] = {}
        for m, c in value.terms.items():
            powers = dict(m)
            if powers.get(number, 0) > 1 and sine not in powers:
                rest = multiplied([m, ((number, -2),)])
                for n, sign in ((rest, 1.0), (multiplied([rest, ((sine, 2),)]), -1.0)):
                    terms[n] = drop_noise(terms.get(n, 0.0) + sign * c, abs(c))
            else:
                terms[m] = drop_noise(terms.get(m, 0.0) + c, abs(c))
        polynomials.append(Polynomial(algebra, terms))
    return polynomials
