"""Identities as rewrite rules with their sources: inverses, and the block structure of symmetric products.

A rule is an equality of expressions.  ``INVERSES`` pairs an expression with its inverse; each pair is used in both
directions and for the adjoints.  Tests prove every rule numerically with ``dense.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from .algebra import COMPOSITE, D_INV, KT_OMEGA, OMEGA, RECORDS, E_phi, G, H, I, K, M, R, S, W, phi, psi
from .expression import (
    Bias,
    Covector,
    Expression,
    Factored,
    Identity,
    Inverse,
    Operator,
    Product,
    Sum,
    Vector,
    product,
    total,
)
from .record import Record
from .spaces import COORDINATE, FORCE, JOINT, LOOP, MOTION, Space


class UnknownInverse(ValueError):
    """Nobody has given an inverse for this expression."""


@dataclass(frozen=True)
class Rule:
    """``left`` equals ``right`` (or is its inverse) for every mechanism; ``source`` cites the paper."""

    left: Expression
    right: Expression
    source: str
    without_armature: bool = False  # valid only without rotor inertias


_MASS_MATRIX = H @ phi @ M @ phi.T @ H.T
_WHITENING = I - H @ psi @ K

#: Inverses of sums and products; inverses of single operators are in their records.
INVERSES = (
    *(Rule(Operator(r), r.inverse, r.source) for r in RECORDS.values() if r.inverse is not None),
    Rule(I + H @ phi @ K, _WHITENING, "jain1995 (4.1c); rodriguez1992 (45)"),
    Rule(_MASS_MATRIX + R, _WHITENING.T @ D_INV @ _WHITENING, "jain1995 (4.1d); rodriguez1992 (46)"),
    Rule(_MASS_MATRIX, _WHITENING.T @ D_INV @ _WHITENING, "jain1995 (4.1d); rodriguez1992 (46)", without_armature=True),
    Rule(I + phi @ K @ H, I - psi @ K @ H, "jain1995 (B.5), multiplied by phi from the left"),
    Rule(I + K @ H @ phi, I - K @ H @ psi, "jain1995 (B.5), multiplied by phi from the right"),
)

#: Products that a single operator replaces; applied to every computed expression.
SIMPLER = (
    Rule(_WHITENING @ H @ phi, H @ psi, "jain1995 (B.1): psi^-1 = phi^-1 + K H"),
    Rule(phi.T @ H.T @ _WHITENING.T, psi.T @ H.T, "jain1995 (B.1), the adjoint"),
)

_AT_THE_GROUND = "rodriguez1992 Identity 1 (28); W C E_phi* = 0, as nothing is inside the links next to the ground"
#: Products with additional structure if they are needed as matrices.
STRUCTURES = (
    Rule(W @ phi @ M @ phi.T, W @ phi @ COMPOSITE, _AT_THE_GROUND),
    Rule(phi @ M @ phi.T @ W.T, COMPOSITE @ phi.T @ W.T, _AT_THE_GROUND),
    Rule(
        phi @ M @ phi.T,
        COMPOSITE + phi @ E_phi @ COMPOSITE + COMPOSITE @ E_phi.T @ phi.T,
        "rodriguez1992 Identity 1 (28)",
    ),
    Rule(G.T @ E_phi.T @ psi.T @ H.T @ D_INV @ H @ psi, KT_OMEGA, "rodriguez1986 Section 10"),
    Rule(psi.T @ H.T @ D_INV @ H @ psi, OMEGA, "rodriguez1986 Section 10"),
)


def rebuilt(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with parts replaced by ``change(part)``, unless this is None, outermost first."""
    new = change(expression)
    if new is not None:
        return new
    match expression:
        case Product(factors=factors):
            result = rebuilt(factors[-1], change)
            for factor in reversed(factors[:-1]):
                result = product(rebuilt(factor, change), result)
            return result
        case Sum(terms=terms) if terms:
            return total(tuple((weight, rebuilt(term, change)) for weight, term in terms))
        case Inverse(of=inner):
            return Inverse(rebuilt(inner, change))
        case Factored(of=inner):
            return Factored(rebuilt(inner, change))
        case Covector(vector=vector):
            return rebuilt(vector, change).T
        case Bias(record=record, of=rates) if rates is not None:
            return Bias(record, rebuilt(rates, change))
        case _:
            return expression


def without_mimic_joints(expression: Expression) -> Expression:
    """The expression for mechanisms in which no joint mimics another: S is the identity."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Operator(record=record) if record is S.record:
                return Identity(JOINT)
            case Vector(name=name) if part.codomain == COORDINATE:
                return Vector(name, JOINT)
            case Identity() if part.domain == COORDINATE:
                return Identity(JOINT)
            case Inverse(of=inner) if inner.domain == COORDINATE:
                over_joints = without_mimic_joints(inner)
                try:
                    return Inverse(over_joints)
                except UnknownInverse:  # not an identity, but a small matrix nevertheless
                    return Factored(expanded(over_joints))
        return None

    return rebuilt(expression, change)


def expanded(expression: Expression, keep: tuple[Record, ...] = ()) -> Expression:
    """Expression with abbreviations (except those to ``keep``) and inverses expanded: H, phi, psi, E_phi, M, P, G, D,
    R, S remain."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Operator(record=record, adjoint=adjoint) if record.definition is not None and record not in keep:
                definition = expanded(record.definition, keep)
                return definition.T if adjoint else definition
            case Inverse(of=inner):
                return expanded(inverse_of(inner), keep)
            case Factored() | Bias():
                return part
        return None

    return rebuilt(expression, change)


def inverse_of(expression: Expression) -> Expression:
    """The inverse in terms of known operators, or UnknownInverse."""
    if expression.domain != _dual_of_inverse(expression):
        raise UnknownInverse(f"{expression} maps {expression.domain} to {expression.codomain}: it has no inverse")
    inverse = _known_inverse(expression)
    if inverse is None:
        raise UnknownInverse(
            f"no identity gives the inverse of {expression}; known are those of phi, psi, D, M, P, I + H phi K, "
            "H phi M phi* H* + R, their adjoints, products and multiples, and of symmetric expressions at one link, "
            "over the coordinates or over the loops"
        )
    return inverse


Inverse.known = staticmethod(inverse_of)


@lru_cache(maxsize=4096)  # products are split at every position: without a cache, the time doubles with each factor
def _known_inverse(expression: Expression) -> Expression | None:
    wanted, scale = _monic(canonical(expanded(expression)))
    if isinstance(wanted, Identity):
        return wanted * (1.0 / scale)
    for first, other, _ in _both_ways():
        for left, right in ((first, other), (first.T, other.T)):
            pattern, own_scale = _monic(canonical(expanded(left)))
            if wanted == pattern:
                return right * (own_scale / scale)
    return _structural_inverse(expanded(expression))


def _monic(expression: Expression) -> tuple[Expression, float]:
    """A multiple of the expression whose first term has weight one, and the divisor."""
    if not isinstance(expression, Sum) or not expression.terms:
        return expression, 1.0
    scale = expression.terms[0][0]
    terms = tuple((weight / scale, term) for weight, term in expression.terms)
    return (terms[0][1] if len(terms) == 1 else Sum(terms, expression.domain, expression.codomain)), scale


def _dual_of_inverse(expression: Expression) -> Space | None:
    """The domain that an invertible expression must have, given its codomain."""
    same_size = {FORCE, MOTION}
    if expression.domain in same_size and expression.codomain in same_size:
        return expression.domain
    if expression.domain and expression.codomain and expression.domain.link and expression.codomain.link:
        return expression.domain
    return expression.codomain


def _both_ways() -> Iterator[tuple[Expression, Expression, Rule]]:
    known = {rule.left for rule in INVERSES}
    added = (Rule(Operator(r), r.inverse, r.source) for r in RECORDS.values() if r.inverse is not None)
    for rule in (*INVERSES, *(rule for rule in added if rule.left not in known)):
        yield rule.left, rule.right, rule
        if not rule.without_armature:  # the other direction leads to the general form
            yield rule.right, rule.left, rule


def needs_no_armature(expression: Expression) -> Expression | None:
    """A part whose inverse is known only without rotor inertias: H phi M phi* H* without R."""
    patterns = [canonical(expanded(rule.left)) for rule in INVERSES if rule.without_armature]
    for part in expression.walk():
        if isinstance(part, Inverse):
            inside, _ = _monic(expanded(part.of))
            matches = [p for p in (inside, *_runs(inside)) if canonical(p) in patterns]
            if matches:
                return part
    return None


def with_rotor_inertias(expression: Expression) -> Expression:
    """The expression with H phi M phi* H* replaced by H phi M phi* H* + R, except where R is added already."""
    pattern = _MASS_MATRIX.factors if isinstance(_MASS_MATRIX, Product) else ()
    size = len(pattern)

    def change(part: Expression) -> Expression | None:
        if isinstance(part, Sum) and any(term == R for _, term in part.terms):
            return part
        if not isinstance(part, Product):
            return None
        for start in range(len(part.factors) - size + 1):
            if part.factors[start : start + size] == pattern:
                rest = part.factors[start + size :]
                result = product(_MASS_MATRIX + R, rebuilt(_joined(rest), change)) if rest else _MASS_MATRIX + R
                return product(_joined(part.factors[:start]), result) if start else result
        return None

    return rebuilt(expression, change)


def _runs(expression: Expression) -> Iterator[Expression]:
    """Consecutive factors of a product."""
    if isinstance(expression, Product):
        n = len(expression.factors)
        for start in range(n):
            for stop in range(start + 2, n + 1):
                yield Product(expression.factors[start:stop])


def _structural_inverse(expression: Expression) -> Expression | None:
    """Inverses of multiples, of small matrices and of products of invertible factors."""
    if isinstance(expression, Sum) and len(expression.terms) == 1:
        weight, term = expression.terms[0]
        return inverse_of(term) * (1.0 / weight)
    if _is_small(expression):
        return Factored(expression)
    if isinstance(expression, Product):
        return _inverse_of_product(expression)
    return None


def _inverse_of_product(expression: Product) -> Expression | None:
    """Split off the shortest invertible head, then invert the rest."""
    for cut in range(1, len(expression.factors)):
        head, tail = _joined(expression.factors[:cut]), _joined(expression.factors[cut:])
        try:
            return product(inverse_of(tail), inverse_of(head))
        except UnknownInverse:
            continue
    return None


def _joined(factors: tuple[Expression, ...]) -> Expression:
    return factors[0] if len(factors) == 1 else Product(factors)


def _is_small(expression: Expression) -> bool:
    """Whether an expression is symmetric and small: six by six at one link, or over the coordinates or the loops."""
    if expression.domain is None or not (expression.domain.link or expression.domain in (COORDINATE, LOOP)):
        return False
    return expression.domain.dual == expression.codomain and canonical(expression) == canonical(expression.T)


def canonical(expression: Expression) -> Expression:
    """The expression with sums in a fixed order, for structural comparison."""
    match expression:
        case Sum(terms=terms, domain=domain, codomain=codomain):
            ordered = sorted(((w, canonical(t)) for w, t in terms), key=lambda pair: str(pair[1]))
            return Sum(tuple(ordered), domain, codomain)
        case Product(factors=factors):
            return Product(tuple(canonical(f) for f in factors))
        case _:
            return expression


def is_symmetric(expression: Expression) -> bool:
    if expression.domain is None or expression.domain.dual != expression.codomain:
        return False
    return has_adjoint(expression) and canonical(expanded(expression)) == canonical(expanded(expression).T)


def has_adjoint(expression: Expression) -> bool:
    """Whether the expression contains no bias."""
    return not any(isinstance(part, Bias) for part in expression.walk())
