"""Expansion of expressions to sums of words, products of letters, and back to expressions.

A letter is a factor of a product: an operator, a vector, a bias, or the inverse of a small matrix.  The empty word is
the identity.  Weights are exact: integers or fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from .algebra import E_phi, G, K
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
from .spaces import Space

Letter = Expression
Word = tuple[Letter, ...]
Weight = int | Fraction
Polynomial = dict[Word, Weight]

ONE: Word = ()
MANY = 4096  # maximum number of terms for multiplying out
SHORT = 10_000  # largest denominator of a fraction recognized in a rounded weight
ROUNDING = 1e-15  # relative


class TooManyTerms(ValueError):
    """An expression that is too large to be multiplied out."""


# -- arithmetic -------------------------------------------------------------------------------------------


def exact(weight: float) -> Weight:
    """The exact number of a rounded weight: 0.1 is a tenth, and 3 * 0.3 are nine tenths."""
    fraction = Fraction(weight)
    short = fraction.limit_denominator(SHORT)
    if abs(short - fraction) > ROUNDING * abs(fraction):
        return fraction
    return short.numerator if short.denominator == 1 else short


def add(total: Polynomial, words: Mapping[Word, Weight], weight: Weight = 1) -> None:
    """Add a multiple of ``words`` to ``total``, in place."""
    for word, summand in words.items():
        new = total.get(word, 0) + weight * summand
        if new:
            total[word] = new
        else:
            total.pop(word, None)


def times(left: Mapping[Word, Weight], right: Mapping[Word, Weight]) -> Polynomial:
    if len(left) * len(right) > MANY:
        raise TooManyTerms(f"a product of {len(left)} and {len(right)} terms is too large to be multiplied out")
    result: Polynomial = {}
    for word, weight in left.items():
        add(result, {word + other: factor for other, factor in right.items()}, weight)
    return result


def difference(left: Mapping[Word, Weight], right: Mapping[Word, Weight]) -> Polynomial:
    result = dict(left)
    add(result, right, -1)
    return result


def adjoint(word: Word) -> Word:
    return tuple(letter.T for letter in reversed(word))


# -- from expressions -------------------------------------------------------------------------------------


def multiplied_out(
    expression: Expression, inverse: Callable[[Factored], Polynomial] = lambda letter: {(letter,): 1}
) -> Polynomial:
    """The words of an expression with expanded abbreviations and inverses.

    ``inverse`` returns the words of the inverse of a small matrix.
    """
    match expression:
        case Identity():
            return {ONE: 1}
        case Sum(terms=terms):
            result: Polynomial = {}
            for weight, term in terms:
                add(result, multiplied_out(term, inverse), exact(weight))
            return result
        case Product(factors=factors):
            result = {ONE: 1}
            for factor in factors:
                result = times(result, multiplied_out(factor, inverse))
            return result
        case Factored():
            return inverse(expression)
        case Operator() | Vector() | Covector() | Bias():
            return {(expression,): 1}
    raise TypeError(f"{expression} is not written out")


# -- back to expressions ----------------------------------------------------------------------------------

Term = tuple[Weight, tuple[Expression, ...]]  # a weight and factors


def as_expression(words: Mapping[Word, Weight], domain: Space | None, codomain: Space | None) -> Expression:
    """The words as an expression with common factors extracted, first from the left, then from the right, so that equal
    subexpressions are computed once and operators are applied to sums."""
    if not words:
        return Sum((), domain, codomain)
    return _sum(_terms(words, domain), domain, codomain)


def _terms(words: Mapping[Word, Weight], domain: Space | None) -> list[Term]:
    """One term per first letter of the words; words that begin with a vector get a term each."""
    groups: dict[Word, Polynomial] = {}
    for word, weight in words.items():
        head = 1 if word and not word[0].is_vector else len(word)
        groups.setdefault(word[:head], {})[word[head:]] = weight
    return [_term(first, rests, domain) for first, rests in groups.items()]


def _term(first: Word, rests: Polynomial, domain: Space | None) -> Term:
    if rests.keys() == {ONE}:
        return rests[ONE], first
    scale = next(iter(rests.values()))
    inner = _terms({word: _divided(weight, scale) for word, weight in rests.items()}, domain)
    if len(inner) == 1:
        return scale * inner[0][0], (*first, *inner[0][1])
    joined = _sum(inner, domain, first[0].domain)
    return scale, (*first, *(joined.factors if isinstance(joined, Product) else (joined,)))


def _divided(weight: Weight, divisor: Weight) -> Weight:
    if divisor in (1, -1):
        return weight * divisor
    quotient = Fraction(weight) / divisor
    return quotient.numerator if quotient.denominator == 1 else quotient


def _sum(terms: Sequence[Term], domain: Space | None, codomain: Space | None) -> Expression:
    """The sum of terms; terms with a common end share it."""
    ends: dict[tuple[Expression, ...], list[Term]] = {}
    for term in terms:
        ends.setdefault(term[1][-1:], []).append(term)
    parts: list[tuple[float, Expression]] = []
    for alike in ends.values():
        if len(alike) == 1 or alike[0][1] == ONE:
            parts += [(float(weight), _chain(factors, domain)) for weight, factors in alike]
            continue
        shared = _common_end([factors for _, factors in alike])
        before = [(weight, factors[: len(factors) - len(shared)]) for weight, factors in alike]
        inside = shared[0].codomain
        parts.append((1.0, product(_sum(before, inside, codomain), _chain(shared, domain))))
    return total(tuple(parts))


def _common_end(words: Sequence[tuple[Expression, ...]]) -> tuple[Expression, ...]:
    shortest = min(words, key=len)
    for length in range(len(shortest), 0, -1):
        if all(word[len(word) - length :] == shortest[len(shortest) - length :] for word in words):
            return shortest[len(shortest) - length :]
    return ()


def _chain(factors: Sequence[Expression], space: Space | None) -> Expression:
    """The product of factors, with K in place of E_phi G."""
    factors = folded(tuple(factors))
    if not factors:
        return Identity(space)
    result = factors[-1]
    for factor in reversed(factors[:-1]):
        result = product(factor, result)
    return result


def folded(factors: Word) -> Word:
    """The factors with K in place of E_phi G, as in the papers."""
    for pair, gain in (((E_phi, G), K), ((G.T, E_phi.T), K.T)):
        i = 0
        while i + 1 < len(factors):
            if factors[i : i + 2] == pair:
                factors = (*factors[:i], gain, *factors[i + 2 :])
            i += 1
    return factors


# -- as the papers print ----------------------------------------------------------------------------------


def notation(expression: Expression) -> str:
    """An expression in the papers' notation."""
    match expression:
        case Operator(record=record, adjoint=adjoint):
            name, _, inverted = record.name.partition("_inv")
            name = name + (f"({expression.link})" if expression.link else "")
            name += "^-1" if record.name.endswith("_inv") and not inverted else ""
            return name + ("*" if adjoint else "")
        case Covector(vector=vector):
            return f"{vector}*"
        case Product(factors=factors):
            return " ".join(f"({notation(f)})" if isinstance(f, Sum) else notation(f) for f in factors)
        case Sum(terms=terms) if terms:
            text = ""
            for weight, term in terms:
                sign = ("- " if weight < 0 else "+ ") if text else ("-" if weight < 0 else "")
                size = "" if abs(weight) == 1.0 else f"{exact(abs(weight))} "
                single = isinstance(term, Product) and size and isinstance(term.factors[0], Sum)
                text += f"{' ' if text else ''}{sign}{size}{f'({notation(term)})' if single else notation(term)}"
            return text
        case Sum():
            return "0"
        case Inverse(of=inner) | Factored(of=inner):
            return f"({notation(inner)})^-1" if isinstance(inner, (Sum, Product)) else f"{notation(inner)}^-1"
        case _:
            return str(expression)
