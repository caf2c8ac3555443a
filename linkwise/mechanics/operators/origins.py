"""Decide by identities whether a result depends on the origins of link frames.

The biases a, b, c and gamma depend on the origins of the link frames.  Moving every origin by p_i adds k = [0; w x (w x
p)] to the links' accelerations: a becomes a + (I - E_phi*) k, b becomes b - M k, c becomes c + k, gamma becomes gamma -
L k.  An expression that is linear in them with coefficients A, B, C and Y changes by [A (I - E_phi*) - B M + C - Y L]
k.  If identities show that this operator is zero, internal frames may have any origin; otherwise the user's origins are
kept, which is always correct.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .algebra import CONVECTIVE, LOOP_BIAS, E_phi, I, L, M, bias_acceleration, bias_force
from .expression import Bias, Covector, Expression, Identity, Product, Sum, Vector, product, total
from .identities import expanded
from .laws import LAWS, make_laws
from .spaces import MOTION
from .words import TooManyTerms, multiplied_out


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
    """The operator that multiplies ``bias``: None if absent, NotImplemented if not of this form."""
    match expression:
        case Bias():
            return Identity(bias.codomain) if expression == bias else None
        case Sum(terms=terms):
            parts = [(weight, _coefficient(term, bias)) for weight, term in terms]
            if any(part is NotImplemented for _, part in parts):
                return NotImplemented
            present = tuple((weight, part) for weight, part in parts if part is not None)
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


def is_zero(expression: Expression) -> bool:
    """Whether the laws reduce the expression to zero; False is inconclusive."""
    try:
        return not make_laws(LAWS).normal_form(multiplied_out(expanded(expression)))
    except TooManyTerms:
        return False
