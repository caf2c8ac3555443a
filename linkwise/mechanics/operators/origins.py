"""Whether a result depends on where the links' origins are, decided by identities.

The biases a, b, c and gamma belong to the origins of the link frames.  Moving every origin by p_i adds k = [0; w x (w x
p)] to the links' accelerations: a becomes a + (I - E_phi*) k, b becomes b - M k, c becomes c + k, gamma becomes gamma
- L k.  An expression that is linear in them with coefficients A, B, C and Y changes by [A (I - E_phi*) - B M + C - Y L]
k.  Where identities show that this
operator is zero, internal frames may stand anywhere; where they do not, the user's origins are kept, which is always
right.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .algebra import (
    CONVECTIVE,
    D_INV,
    LOOP_BIAS,
    D,
    E_phi,
    G,
    H,
    I,
    L,
    M,
    P,
    P_plus,
    bias_acceleration,
    bias_force,
    phi,
    psi,
)
from .expression import Bias, Covector, Expression, Factored, Identity, Operator, Product, Sum, Vector, product, total
from .identities import Rule, expanded
from .spaces import JOINT, MOTION

Word = tuple[str, ...]  # a product of operators, as they are printed; the empty one is the identity
Polynomial = dict[Word, float]

#: Equalities used from left to right; with each goes its adjoint.  All are definitions of the articulated operators or
#: follow from them in one line, and none makes a product longer for ever.
REDUCTIONS = (
    Rule(phi @ E_phi, phi - I, "jain1995 (4.6)"),
    Rule(E_phi @ phi, phi - I, "jain1995 (4.6)"),
    Rule(psi @ E_phi @ G @ H, psi @ E_phi - psi + I, "jain1995 (4.10): psi (I - E_phi (I - G H)) = I"),
    Rule(E_phi @ G @ H @ psi, E_phi @ psi - psi + I, "jain1995 (4.10)"),
    Rule(P_plus, P - G @ H @ P, "jain1995 (4.8)"),
    Rule(E_phi @ G @ H @ P @ E_phi.T, E_phi @ P @ E_phi.T - P + M, "jain1995 (4.8): the Riccati equation"),
    Rule(psi @ M, psi @ P - psi @ P @ E_phi.T + P @ E_phi.T, "the Riccati equation, multiplied by psi"),
    Rule(D @ G.T, H @ P, "jain1995 (4.8): G = P H* D^-1"),
    Rule(D_INV @ H @ P, G.T, "jain1995 (4.8)"),
    Rule(D_INV @ D, Identity(JOINT), "by definition"),
    Rule(D @ D_INV, Identity(JOINT), "by definition"),
)
MANY = 4096  # terms; beyond, nothing is decided


@lru_cache(maxsize=1024)
def depends_on_origins(expression: Expression) -> bool:
    """True if the expression must be evaluated at the origins of the user's link frames."""
    velocities = {part.of for part in expression.walk() if isinstance(part, Bias) and part.of is not None}
    return any(_changes(expanded(expression), rates) for rates in velocities)


def _changes(expression: Expression, rates: Expression) -> bool:
    moved = {
        bias_acceleration(rates): I - E_phi.T,
        bias_force(rates): -M,
        Bias(CONVECTIVE, rates): Identity(MOTION),
        Bias(LOOP_BIAS, rates): -L,
    }
    terms = []
    for bias, change in moved.items():
        coefficient = _coefficient(expression, bias)
        if coefficient is NotImplemented:
            return True
        if coefficient is not None:
            terms.append((1.0, product(coefficient, change)))
    return not is_zero(total(tuple(terms)))


def _coefficient(expression: Expression, bias: Bias) -> Any:
    """The operator that ``bias`` is multiplied by: None if it is absent, NotImplemented if it is not so simple."""
    match expression:
        case Bias():
            return Identity(bias.codomain) if expression == bias else None
        case Sum(terms=terms):
            found = [(weight, _coefficient(term, bias)) for weight, term in terms]
            if any(part is NotImplemented for _, part in found):
                return NotImplemented
            present = tuple((weight, part) for weight, part in found if part is not None)
            return total(present) if present else None
        case Product(factors=factors):
            if any(isinstance(part, (Vector, Covector, Bias)) for factor in factors[:-1] for part in factor.walk()):
                return NotImplemented
            last = _coefficient(factors[-1], bias)
            if last is None or last is NotImplemented:
                return last
            for factor in reversed(factors[:-1]):
                last = product(factor, last)
            return last
        case _:
            return None


# -- normal forms -----------------------------------------------------------------------------------------


def is_zero(expression: Expression) -> bool:
    """Whether the identities reduce the expression to zero; False also where they do not suffice."""
    words = _multiplied_out(expanded(expression))
    if words is None:
        return False
    known: dict[Word, Polynomial] = {}
    total: Polynomial = {}
    for word, weight in words.items():
        _add(total, _normal_form(word, known), weight)
        if len(known) > MANY:
            return False
    return not any(abs(weight) > 1e-12 for weight in total.values())


def _normal_form(word: Word, known: dict[Word, Polynomial]) -> Polynomial:
    """A product rewritten until no equality applies."""
    if word not in known:
        replaced = _rewritten(word)
        result: Polynomial = {word: 1.0} if replaced is None else {}
        for part, weight in (replaced or {}).items():
            _add(result, _normal_form(part, known), weight)
        known[word] = {part: weight for part, weight in result.items() if abs(weight) > 1e-12}
    return known[word]


def _rewritten(word: Word) -> Polynomial | None:
    """The product with the first equality that applies used once."""
    for start in range(len(word)):
        for pattern, replacement in _PATTERNS.get(word[start], ()):
            if word[start : start + len(pattern)] == pattern:
                after = word[start + len(pattern) :]
                return {word[:start] + middle + after: weight for middle, weight in replacement.items()}
    return None


def _multiplied_out(expression: Expression) -> Polynomial | None:
    match expression:
        case Identity():
            return {(): 1.0}
        case Sum(terms=terms):
            result: Polynomial = {}
            for weight, term in terms:
                words = _multiplied_out(term)
                if words is None:
                    return None
                _add(result, words, weight)
            return result
        case Product(factors=factors):
            product_so_far: Polynomial = {(): 1.0}
            for factor in factors:
                more = _multiplied_out(factor)
                if more is None or len(product_so_far) * len(more) > MANY:
                    return None
                longer: Polynomial = {}
                for word, weight in product_so_far.items():
                    _add(longer, {word + other: factor_weight for other, factor_weight in more.items()}, weight)
                product_so_far = longer
            return product_so_far
        case Operator() | Factored():
            return {(str(expression),): 1.0}
    return None


def _add(total: Polynomial, words: Polynomial, weight: float) -> None:
    for word, inner in words.items():
        total[word] = total.get(word, 0.0) + weight * inner


def _patterns() -> dict[str, list[tuple[Word, Polynomial]]]:
    """The equalities and their adjoints, by the first operator of their left side."""
    found: dict[str, list[tuple[Word, Polynomial]]] = {}
    for rule in REDUCTIONS:
        for left, right in ((rule.left, rule.right), (rule.left.T, rule.right.T)):
            (pattern,), replacement = _multiplied_out(left) or {}, _multiplied_out(right)
            assert replacement is not None
            own = found.setdefault(pattern[0], [])
            if all(known != pattern for known, _ in own):
                own.append((pattern, replacement))
    return found


_PATTERNS = _patterns()
