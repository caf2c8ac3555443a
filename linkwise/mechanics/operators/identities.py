"""What is known about inverses, and the block structure of symmetric products: rewrite rules with their sources.

A rule is an equality of expressions.  ``INVERSES`` pairs an expression with its inverse; each pair is used in
both directions and for the adjoints.  Tests prove every rule numerically with ``dense.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from .expression import (
    FORCE,
    JOINT,
    MOTION,
    Bias,
    Expression,
    Identity,
    Inverse,
    Operator,
    Product,
    Space,
    Sum,
    product,
    total,
)


class UnknownInverse(ValueError):
    """Nobody has given an inverse for this expression."""


@dataclass(frozen=True)
class Rule:
    """``left`` equals ``right`` (or: is its inverse), for every mechanism; ``source`` says where it is from."""

    left: Expression
    right: Expression
    source: str
    without_armature: bool = False  # holds only where no joint has rotor inertia


_I = Identity()
_H = Operator("H", FORCE, JOINT)
_PHI = Operator("phi", FORCE, FORCE)
_PSI = Operator("psi", FORCE, FORCE)
_E_PHI = Operator("E_phi", FORCE, FORCE)
_M = Operator("M", MOTION, FORCE, self_adjoint=True)
_D = Operator("D", JOINT, JOINT, self_adjoint=True)
_R = Operator("R", JOINT, JOINT, self_adjoint=True)
_G = Operator("G", JOINT, FORCE)
_K = Operator("K", JOINT, FORCE)
_TAU_BAR = Operator("tau_bar", FORCE, FORCE)
_E_PSI = Operator("E_psi", FORCE, FORCE)
D_INV = Operator("D_inv", JOINT, JOINT, self_adjoint=True)
_MASS_MATRIX = _H @ _PHI @ _M @ _PHI.T @ _H.T
_WHITENING = _I - _H @ _PSI @ _K

#: Operators that others abbreviate.
DEFINITIONS = {
    "K": (_E_PHI @ _G, "jain1995 (4.10)"),
    "E_psi": (_E_PHI @ _TAU_BAR, "jain1995 (4.10)"),
    "tau": (_G @ _H, "jain1995 (4.8)"),
    "tau_bar": (_I - _G @ _H, "jain1995 (4.10)"),
}

#: Block-diagonal operators, inverted link by link.
LOCAL_INVERSES = {"D": D_INV}
for _name in ("M", "P"):
    LOCAL_INVERSES[_name] = Operator(f"{_name}_inv", FORCE, MOTION, self_adjoint=True)
LOCAL_INVERSES["D_half"] = Operator("D_half_inv", JOINT, JOINT)

INVERSES = (
    Rule(_PHI, _I - _E_PHI, "jain1995 (4.6)"),
    Rule(_PSI, _I - _E_PSI, "jain1995 (4.10)"),
    Rule(_I + _H @ _PHI @ _K, _WHITENING, "jain1995 (4.1c); rodriguez1992 (45)"),
    Rule(_MASS_MATRIX + _R, _WHITENING.T @ D_INV @ _WHITENING, "jain1995 (4.1d); rodriguez1992 (46)"),
    Rule(_MASS_MATRIX, _WHITENING.T @ D_INV @ _WHITENING, "jain1995 (4.1d); rodriguez1992 (46)", without_armature=True),
    Rule(_I + _PHI @ _K @ _H, _I - _PSI @ _K @ _H, "jain1995 (B.5), multiplied by phi from the left"),
    Rule(_I + _K @ _H @ _PHI, _I - _K @ _H @ _PSI, "jain1995 (B.5), multiplied by phi from the right"),
)

#: Composite bodies, C = M + E_phi C E_phi* block by block (rodriguez1992 29).
COMPOSITE = Operator("C", MOTION, FORCE, self_adjoint=True)
#: psi* H* D^-1 H psi; its diagonal blocks are the links' mobilities Y (rodriguez1986 Section 10).
OMEGA = Operator("Omega", FORCE, MOTION, self_adjoint=True)
KT_OMEGA = Operator("Kt_Omega", FORCE, JOINT)

#: Products that have a structure of their own when they are wanted as a matrix.
STRUCTURES = (
    Rule(
        _PHI @ _M @ _PHI.T,
        COMPOSITE + _PHI @ _E_PHI @ COMPOSITE + COMPOSITE @ _E_PHI.T @ _PHI.T,
        "rodriguez1992 Identity 1 (28)",
    ),
    Rule(_G.T @ _E_PHI.T @ _PSI.T @ _H.T @ D_INV @ _H @ _PSI, KT_OMEGA, "rodriguez1986 Section 10"),
    Rule(_PSI.T @ _H.T @ D_INV @ _H @ _PSI, OMEGA, "rodriguez1986 Section 10"),
)


def expanded(expression: Expression, keep: tuple[str, ...] = ()) -> Expression:
    """Abbreviations (but those to ``keep``) and inverses written out: H, phi, psi, E_phi, M, P, G, D, R remain."""
    match expression:
        case Operator(name=name, adjoint=adjoint) if name in DEFINITIONS and name not in keep:
            definition = expanded(DEFINITIONS[name][0], keep)
            return definition.T if adjoint else definition
        case Product(factors=factors):
            result = expanded(factors[0], keep)
            for factor in factors[1:]:
                result = product(result, expanded(factor, keep))
            return result
        case Sum(terms=terms) if terms:
            return total(tuple((weight, expanded(term, keep)) for weight, term in terms))
        case Inverse(of=inner):
            return expanded(inverse_of(inner), keep)
        case _:
            return expression


def inverse_of(expression: Expression) -> Expression:
    """The inverse in terms of known operators, or UnknownInverse."""
    if expression.domain != _dual_of_inverse(expression):
        raise UnknownInverse(f"{expression} maps {expression.domain} to {expression.codomain}: it has no inverse")
    found = _known_inverse(expression)
    if found is None:
        raise UnknownInverse(
            f"no identity gives the inverse of {expression}; known are those of phi, psi, D, M, P, I + H phi K, "
            "H phi M phi* H* + R, their adjoints, products and multiples, and of symmetric 6x6 expressions at one link"
        )
    return found


@lru_cache(maxsize=4096)  # products are split at every place: without it, the time doubles with each factor
def _known_inverse(expression: Expression) -> Expression | None:
    wanted, scale = _monic(canonical(expanded(expression)))
    if isinstance(wanted, Identity):
        return wanted * (1.0 / scale)
    for one, other, _ in _both_ways():
        for left, right in ((one, other), (one.T, other.T)):
            pattern, own_scale = _monic(canonical(expanded(left)))
            if wanted == pattern:
                return right * (own_scale / scale)
    return _structural_inverse(expanded(expression))


def _monic(expression: Expression) -> tuple[Expression, float]:
    """A multiple with weight one in its first term, and what it was divided by."""
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
    for rule in INVERSES:
        yield rule.left, rule.right, rule
        if not rule.without_armature:  # the other direction leads to the general form
            yield rule.right, rule.left, rule


def needs_no_armature(expression: Expression) -> Expression | None:
    """A part whose inverse is known only without rotor inertias: H phi M phi* H* where R was left out."""
    patterns = [canonical(expanded(rule.left)) for rule in INVERSES if rule.without_armature]
    for part in expression.walk():
        if isinstance(part, Inverse):
            inside, _ = _monic(expanded(part.of))
            found = [p for p in (inside, *_runs(inside)) if canonical(p) in patterns]
            if found:
                return part
    return None


def _runs(expression: Expression) -> Iterator[Expression]:
    """Consecutive factors of a product."""
    if isinstance(expression, Product):
        n = len(expression.factors)
        for start in range(n):
            for stop in range(start + 2, n + 1):
                yield Product(expression.factors[start:stop])


def _structural_inverse(expression: Expression) -> Expression | None:
    """Inverses of single blocks, of multiples and of products of invertible factors."""
    if isinstance(expression, Operator):
        for name, inverse in LOCAL_INVERSES.items():
            original = Operator(name, inverse.codomain, inverse.domain, self_adjoint=inverse.self_adjoint)
            for one, other in ((original, inverse), (inverse, original)):
                if expression.name == one.name:
                    return other.T if expression.adjoint else other
    if isinstance(expression, Sum) and len(expression.terms) == 1:
        weight, term = expression.terms[0]
        return inverse_of(term) * (1.0 / weight)
    if _is_small(expression):
        return SmallInverse(expression)
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
    """Six by six at one link, and symmetric."""
    if not (expression.domain and expression.codomain and expression.domain.link):
        return False
    return expression.domain.dual == expression.codomain and canonical(expression) == canonical(expression.T)


@dataclass(frozen=True, repr=False)
class SmallInverse(Expression):
    """The inverse of a symmetric 6x6 expression at one link, by factoring it."""

    of: Expression

    @property
    def domain(self):  # type: ignore[override]
        return self.of.codomain

    @property
    def codomain(self):  # type: ignore[override]
        return self.of.domain

    @property
    def T(self) -> Expression:
        return self

    def parts(self) -> tuple[Expression, ...]:
        return (self.of,)

    def __str__(self) -> str:
        return f"({self.of}).inv"


def canonical(expression: Expression) -> Expression:
    """Sums in a fixed order, so that structure can be compared."""
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
    """Whether no bias is in it."""
    return not any(isinstance(part, Bias) for part in expression.walk())
