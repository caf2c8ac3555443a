"""Whether a result depends on where the links' origins are.

The biases a and b belong to the origins of the link frames.  Moving every origin by p_i adds k = [0; w x (w x p)] to
the links' accelerations, so a becomes a + (I - E_phi*) k and b becomes b - M k.  An expression that is linear in them
with coefficients A and B changes by [A (I - E_phi*) - B M] k: if that operator is zero, internal frames may stand
anywhere.  It is evaluated densely on one small mechanism that has no special geometry.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...mechanism import Mechanism, library
from .dense import dense
from .expression import (
    FORCE,
    MOTION,
    Bias,
    Covector,
    Expression,
    Identity,
    Inverse,
    Operator,
    Product,
    Space,
    Sum,
    Vector,
    product,
    total,
)


def origins_matter(expression: Expression) -> bool:
    """True if the expression must be evaluated at the origins of the user's link frames."""
    biases = {part for part in expression.walk() if isinstance(part, Bias) and part.of is not None}
    return any(_changes(expression, velocity) for velocity in {bias.of for bias in biases})


def _changes(expression: Expression, velocity) -> bool:
    acceleration = _coefficient(expression, Bias("a", MOTION, velocity))
    force = _coefficient(expression, Bias("b", FORCE, velocity))
    if acceleration is NotImplemented or force is NotImplemented:
        return True
    still = Identity(MOTION) - Operator("E_phi", FORCE, FORCE).T
    inertia = Operator("M", MOTION, FORCE, self_adjoint=True)
    terms = []
    if acceleration is not None:
        terms.append((1.0, product(acceleration, still)))
    if force is not None:
        terms.append((-1.0, product(force, inertia)))
    return any(_is_not_zero(terms, link) for link in _sample()[0].link_names)


def _is_not_zero(terms: list[tuple[float, Expression]], link: str) -> bool:
    """Whether the sum is seen to differ from zero, or nothing is seen at all, with pick-offs at ``link``."""
    sample, q = _sample()
    parts = [weight * dense(_on_sample(term, link), sample, q) for weight, term in terms]
    size = max(np.abs(part).max() for part in parts)
    return bool(size == 0.0 or np.abs(sum(parts)).max() > 1e-9 * size)


def _coefficient(expression: Expression, bias: Bias):
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
            if any(isinstance(p, (Vector, Covector, Bias)) or _at_one_link(p) for f in factors[:-1] for p in f.walk()):
                return NotImplemented
            last = _coefficient(factors[-1], bias)
            if last is None or last is NotImplemented:
                return last
            for factor in reversed(factors[:-1]):
                last = product(factor, last)
            return last
        case _:
            return None


def _at_one_link(part: Expression) -> bool:
    """An inverse that needs six freedoms on the way to a link, which the sample's links may not have."""
    return isinstance(part, Inverse) and part.domain is not None and bool(part.domain.link)


@cache
def _sample() -> tuple[Mechanism, np.ndarray]:
    """A branching mechanism of mixed joints at a configuration of no special position."""
    kinds = ("revolute", "prismatic", "spherical", "universal")
    mechanism = library.random_tree(5, 11, joints=kinds)
    rng = np.random.default_rng(0)
    parts = [body.kind.random(rng, ()) for body in mechanism.bodies]
    return mechanism, np.concatenate(parts)


def _on_sample(expression: Expression, link: str) -> Expression:
    """Pick-offs name links of the user's mechanism: put one of the sample's in their place."""
    match expression:
        case Operator(domain=domain, codomain=codomain) if expression.link:
            taken, given = (Space(s.name, link if s.link else "") for s in (domain, codomain))
            return Operator(expression.name, taken, given, expression.adjoint, expression.self_adjoint)
        case Sum(terms=terms) if terms:
            return total(tuple((w, _on_sample(t, link)) for w, t in terms))
        case Product(factors=factors):
            result = _on_sample(factors[-1], link)
            for factor in reversed(factors[:-1]):
                result = product(_on_sample(factor, link), result)
            return result
        case _:
            return expression
