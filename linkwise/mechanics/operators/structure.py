"""Structure of matrices: products with a cheaper form if they are needed as a matrix.

phi M phi* becomes composite bodies (rodriguez1992 Identity 1), psi* H* D^-1 H psi mobilities (rodriguez1986 Section
10), and for a symmetric matrix only one half is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from itertools import product as every

from .algebra import COMPOSITE, KT_OMEGA, OMEGA, tau_bar
from .expression import Expression, Operator, Product, Sum, product, total
from .identities import SIMPLER, STRUCTURES, Rule, expanded, rebuilt

MANY_TERMS = 64
MOBILITIES_PAY = 20  # joints in a row above which the inverse mass matrix costs less with mobilities than by columns


def written_out(expression: Expression) -> Expression:
    """The expression in applied operators: abbreviations and inverses replaced."""
    return expanded(expression, keep=(tau_bar.record,))


def simpler(expression: Expression) -> Expression:
    """The expression with products replaced by single operators (``SIMPLER``)."""
    return rebuilt(expression, _simpler)


def _simpler(part: Expression) -> Expression | None:
    """A product with one of the ``SIMPLER`` rules applied; None if none applies."""
    if not isinstance(part, Product):
        return None
    factors = _list_factors(written_out(part))
    for rule in SIMPLER:
        pattern = _list_factors(expanded(rule.left))
        for start in range(len(factors) - len(pattern) + 1):
            if factors[start : start + len(pattern)] == pattern:
                after = factors[start + len(pattern) :]
                return simpler(_chain((*factors[:start], rule.right, *after)))
    return None


def _list_factors(expression: Expression) -> tuple[Expression, ...]:
    return expression.factors if isinstance(expression, Product) else (expression,)


def structured(expression: Expression, symmetric: bool, depth: int) -> Expression:
    """The expression with structured products replaced; products of sums are expanded for that.

    Mobilities cost a recursion of 6x6 matrices: for a matrix over many links they pay on long chains only.
    """
    plain = written_out(expression)
    one_link = bool(expression.domain and expression.domain.link)
    rules = tuple(r for r in STRUCTURES if r.right not in (OMEGA, KT_OMEGA) or one_link or depth >= MOBILITIES_PAY)
    terms = list(_multiplied_out(plain, MANY_TERMS))
    if len(terms) > MANY_TERMS:
        return plain
    structured_terms = tuple((weight, _apply_structure(term, symmetric, rules)) for weight, term in terms)
    changed = any(new is not old for (_, new), (_, old) in zip(structured_terms, terms, strict=True))
    return total(structured_terms) if changed else plain


def _apply_structure(term: Expression, symmetric: bool, rules: tuple[Rule, ...]) -> Expression:
    factors = _list_factors(term)
    for rule in rules:
        pattern = _list_factors(rule.left)
        for start in range(len(factors) - len(pattern) + 1):
            if factors[start : start + len(pattern)] != pattern:
                continue
            before, after = factors[:start], factors[start + len(pattern) :]
            right = rule.right
            mirrored = after == tuple(f.T for f in reversed(before))
            if isinstance(right, Sum) and symmetric and mirrored and all(_is_local(f) for f in before):
                right = product(pattern[0], COMPOSITE)  # upper triangle
            return _apply_structure(_chain((*before, right, *after)), symmetric, rules)
    return term


def _is_local(factor: Expression) -> bool:
    return isinstance(factor, Operator) and factor.record.is_local


def _chain(factors: tuple[Expression, ...]) -> Expression:
    result = factors[-1]
    for factor in reversed(factors[:-1]):
        result = product(factor, result)
    return result


def _multiplied_out(expression: Expression, limit: int) -> Iterator[tuple[float, Expression]]:
    """Weighted products without sums inside; at most about ``limit`` of them."""
    if isinstance(expression, Sum):
        for weight, term in expression.terms:
            for inner, plain in _multiplied_out(term, limit):
                yield weight * inner, plain
    elif isinstance(expression, Product) and any(isinstance(f, Sum) for f in expression.factors):
        choices = every(*(list(islice(_multiplied_out(f, limit), limit + 1)) for f in expression.factors))
        for choice in islice(choices, limit + 1):
            weight = 1.0
            for w, _ in choice:
                weight *= w
            yield weight, _chain(tuple(f for _, f in choice))
    else:
        yield 1.0, expression
