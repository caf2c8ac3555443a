"""Operators as matrices: unit columns through the recursions, with the block structure that the papers give.

phi M phi* becomes composite bodies (rodriguez1992 Identity 1), psi* H* D^-1 H psi mobilities (rodriguez1986 Section
10), and of a symmetric matrix one half is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from itertools import product as every
from typing import Any

from ...mechanism import Mechanism
from ..recursions.schedule import BASE_TO_TIP
from ..recursions.sweep import working_on
from ..recursions.tree import Configuration
from ..scalar import Scalar
from ..spatial import Force, Motion
from .evaluate import Evaluation, SmallFactors, name_of, run_sweeps, sweeps_of
from .expression import FORCE, JOINT, MOTION, Expression, Operator, Product, Space, Sum, Vector, product, total
from .identities import COMPOSITE, KT_OMEGA, OMEGA, STRUCTURES, Rule, expanded, has_adjoint, is_symmetric
from .to_recursions import Recursions, regroupable_steps

Place = tuple[int, int]  # link and component

COLUMN = "column"
_LOCAL = {"H", "G", "D", "D_inv", "D_half", "D_half_inv", "R", "tau_bar", "M", "P", "A", "B"}
MANY_TERMS = 64
ROWS_PAY = 1.5  # columns per row from which a matrix costs less row by row
DEEP = 100  # joints in a row beyond which columns are swept rather than computed by recursion, which Python limits
MOBILITIES_PAY = 20  # joints in a row from which the inverse mass matrix costs less with mobilities than by columns


def matrix_of(
    expression: Expression, at: Configuration, vectors: Mapping[str, Sequence[Any]] | None = None
) -> list[list[Scalar]]:
    """The matrix of an expression that is no vector; link spaces in the user's link frames.

    ``vectors``: values of those inside, as in ``x @ y.T``, per link in internal frames.
    """
    domain, codomain = expression.domain, expression.codomain
    assert domain is not None and codomain is not None
    rows, columns = places(at, codomain), places(at, domain)
    if len(columns) > ROWS_PAY * len(rows) and has_adjoint(expression):
        return [list(row) for row in zip(*matrix_of(expression.T, at, vectors), strict=True)]
    symmetric = is_symmetric(expression) and domain.link == codomain.link
    recursions = Recursions()
    plain = structured(expression, symmetric, depth_of(at.tree.mechanism))
    value = recursions.of(product(plain, Vector(COLUMN, domain)))
    steps = recursions.steps_for(value)
    regrouped = regroupable_steps(steps, value)
    run_sweeps(at, steps, lambda step, i: None, regrouped)
    sweeps = sweeps_of(steps)
    for sweep in sweeps[-1:]:
        working_on(sweep.direction, name_of(sweep), "columns")
    # Rows run outwards: what a last sweep outwards adds is there when it is asked for, one link at a time.
    swept = sweeps[:-1] if symmetric and sweeps and sweeps[-1].direction == BASE_TO_TIP else sweeps
    deep = depth_of(at.tree.mechanism) > DEEP
    factors: SmallFactors = {}
    result: list[list[Scalar]] = [[0.0] * len(columns) for _ in rows]
    for c, (j, k) in enumerate(columns):
        evaluation = Evaluation(at, {**(vectors or {}), COLUMN: unit_vector(at, domain, j, k)}, regrouped, factors)
        if deep:
            evaluation.prepare(swept)
        for r, (i, m) in enumerate(rows):
            if symmetric and r > c:
                break
            entry = component(at, codomain, i, evaluation.total(value, i), m)
            result[r][c] = entry
            if symmetric:
                result[c][r] = entry
    working_on("", "", "")
    return result


def depth_of(mechanism: Mechanism) -> int:
    """The number of joints on the longest way out."""
    return max((len(mechanism.path(i)) for i in range(mechanism.n_links)), default=0)


def structured(expression: Expression, symmetric: bool, depth: int) -> Expression:
    """The expression with its structured products replaced; products of sums are multiplied out for that.

    Mobilities cost a recursion of 6x6 matrices: for a matrix over many links they pay on long chains only.
    """
    plain = expanded(expression, keep=("tau_bar",))
    one_link = bool(expression.domain and expression.domain.link)
    rules = tuple(r for r in STRUCTURES if r.right not in (OMEGA, KT_OMEGA) or one_link or depth >= MOBILITIES_PAY)
    terms = list(_multiplied_out(plain, MANY_TERMS))
    if len(terms) > MANY_TERMS:
        return plain
    structured_terms = tuple((weight, _with_structure(term, symmetric, rules)) for weight, term in terms)
    changed = any(new is not old for (_, new), (_, old) in zip(structured_terms, terms, strict=True))
    return total(structured_terms) if changed else plain


def _with_structure(term: Expression, symmetric: bool, rules: tuple[Rule, ...]) -> Expression:
    factors = term.factors if isinstance(term, Product) else (term,)
    for rule in rules:
        pattern = rule.left.factors if isinstance(rule.left, Product) else (rule.left,)
        for start in range(len(factors) - len(pattern) + 1):
            if factors[start : start + len(pattern)] != pattern:
                continue
            before, after = factors[:start], factors[start + len(pattern) :]
            right = rule.right
            mirrored = after == tuple(f.T for f in reversed(before))
            if isinstance(right, Sum) and symmetric and mirrored and all(_is_local(f) for f in before):
                right = product(pattern[0], COMPOSITE)  # what is on and above the diagonal
            return _with_structure(_chain((*before, right, *after)), symmetric, rules)
    return term


def _is_local(factor: Expression) -> bool:
    return isinstance(factor, Operator) and factor.name in _LOCAL


def _chain(factors: tuple[Expression, ...]) -> Expression:
    result = factors[-1]
    for factor in reversed(factors[:-1]):
        result = product(factor, result)
    return result


def _multiplied_out(expression: Expression, limit: int) -> Iterator[tuple[float, Expression]]:
    """Weighted products without sums inside; not many more than ``limit`` of them."""
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


# -- spaces and numbers -------------------------------------------------------------------------------


def places(at: Configuration, space: Space) -> list[Place]:
    """Link and component of every number of a vector, in the order of the flattened array."""
    links = range(len(at.tree.links))
    if space == JOINT:
        return [(i, k) for i in links for k in range(at.tree.links[i].joint.nv)]
    if space in (FORCE, MOTION):
        return [(i, k) for i in links for k in range(6)]
    return [(-1, k) for k in range(6 if space.link else 1)]


def unit_vector(at: Configuration, space: Space, j: int, k: int) -> list:
    """The vector with a one at link j, component k (in the user's frame), as values per link."""
    values: list = [None] * max(len(at.tree.links), 1)
    size = at.tree.links[j].joint.nv if space == JOINT else 6
    numbers = [1.0 if m == k else 0.0 for m in range(size)]
    values[max(j, 0)] = numbers if space == JOINT else from_user(at, space, j, numbers)
    return values


def from_user(at: Configuration, space: Space, i: int, six) -> Force | Motion:
    """Six numbers in the user's frame of link i as a force or motion in its internal frame."""
    value = Force.of(list(six)) if space.holds_forces else Motion.of(list(six))
    if space.link:
        return value
    user = at.tree.links[i].user
    return user.force_back(value) if space.holds_forces else user.motion_back(value)  # type: ignore[arg-type]


def to_user(at: Configuration, space: Space, i: int, value) -> list[Scalar]:
    """A value at link i as numbers in the user's frame."""
    if space == JOINT:
        return [0.0] * at.tree.links[i].joint.nv if value is None else list(value)
    if value is None:
        return [0.0] * (6 if space.link or space in (FORCE, MOTION) else 1)
    if space in (FORCE, MOTION):
        user = at.tree.links[i].user
        value = user.force_into(value) if space == FORCE else user.motion_into(value)
    return list(value.flat()) if isinstance(value, (Force, Motion)) else [value]


def component(at: Configuration, space: Space, i: int, value, m: int) -> Scalar:
    return to_user(at, space, i, value)[m]
