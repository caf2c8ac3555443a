"""Operator expressions, independent of any mechanism.

Spaces are checked as an expression is built.  An operator maps one space to another; a vector is an operator from the
scalars.  The adjoint of A: X -> Y maps the dual of Y to the dual of X (forces are dual to motions, joint space to
itself).  Expressions are immutable and compare by structure.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from ...display import mimebundle
from .record import Record
from .spaces import COORDINATE, JOINT, LOOP, SCALAR, Space, SpaceError

if TYPE_CHECKING:
    from ...mechanism import Mechanism

# -- expressions --------------------------------------------------------------------------------------


class Expression:
    """An expression that can be multiplied, added, transposed and inverted.

    ``domain`` and ``codomain`` are spaces; for an identity and an unplaced link vector they are None until a product or
    a sum determines them.
    """

    domain: Space | None
    codomain: Space | None
    __array_ufunc__ = None  # a NumPy array on the left is an error, not an array of expressions

    def __matmul__(self, other: Expression) -> Expression:
        return product(self, other) if isinstance(other, Expression) else NotImplemented

    def __add__(self, other: Expression) -> Expression:
        return total(((1.0, self), (1.0, other))) if isinstance(other, Expression) else NotImplemented

    def __sub__(self, other: Expression) -> Expression:
        return total(((1.0, self), (-1.0, other))) if isinstance(other, Expression) else NotImplemented

    def __neg__(self) -> Expression:
        return total(((-1.0, self),))

    def __mul__(self, factor: float) -> Expression:
        return total(((float(factor), self),)) if isinstance(factor, numbers.Real) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Expression:
        return self * (1.0 / divisor) if isinstance(divisor, numbers.Real) else NotImplemented

    @property
    def T(self) -> Expression:
        """The adjoint."""
        raise NotImplementedError

    @property
    def inv(self) -> Expression:
        """The inverse, if an identity provides one (``identities.py``); raises otherwise."""
        return Inverse(self)

    @property
    def is_vector(self) -> bool:
        return self.domain == SCALAR

    def simplify(self, mech: Mechanism | None = None) -> Expression:
        """An equal expression, rewritten by the papers' identities.  With a mechanism the form with the fewest counted
        operations, otherwise the form with the fewest recursions and steps.

        For a mechanism without mimic joints S is the identity and is left out, as ``compile`` does.
        """
        from .simplify import simplified  # imported here: that module builds expressions

        return simplified(self, mech)

    def placed(self, domain: Space | None, codomain: Space | None) -> Expression:
        """The expression with open spaces filled in."""
        return self

    def parts(self) -> tuple[Expression, ...]:
        """Direct sub-expressions."""
        return ()

    def walk(self) -> Iterator[Expression]:
        """This expression and everything in it, outermost first."""
        yield self
        for part in self.parts():
            yield from part.walk()

    def latex(self) -> str:
        """LaTeX in the papers' notation; displayed by notebooks."""
        from .latex import latex  # imported here: that module builds expressions

        return latex(self)

    def __repr__(self) -> str:
        return str(self)

    _repr_mimebundle_ = mimebundle

    def __getstate__(self) -> dict[str, Any]:
        # Hashes are valid in this process only.
        return {name: value for name, value in vars(self).items() if name != "_hash"}


@dataclass(frozen=True, repr=False)
class Operator(Expression):
    """A named operator or its adjoint; ``link`` is the link of a pick-off operator."""

    record: Record
    link: str = ""
    adjoint: bool = False

    @cached_property
    def _hash(self) -> int:
        return hash((self.record, self.link, self.adjoint))

    def __hash__(self) -> int:
        return self._hash

    @property
    def name(self) -> str:
        return self.record.name

    @cached_property
    def domain(self) -> Space:  # type: ignore[override]
        return (self.record.codomain.dual if self.adjoint else self.record.domain).at(self.link)

    @cached_property
    def codomain(self) -> Space:  # type: ignore[override]
        return (self.record.domain.dual if self.adjoint else self.record.codomain).at(self.link)

    @property
    def T(self) -> Expression:
        return self if self.record.self_adjoint else Operator(self.record, self.link, not self.adjoint)

    def __str__(self) -> str:
        name = self.name.replace("_inv", ".inv")  # D_inv is printed as it is written
        label = f"{name}({self.link!r})" if self.link else name
        return label + (".T" if self.adjoint else "")


@dataclass(frozen=True, repr=False)
class Identity(Expression):
    """The identity on one space, or on the space required by its neighbours."""

    domain: Space | None = None

    @property
    def codomain(self) -> Space | None:  # type: ignore[override]
        return self.domain

    @property
    def T(self) -> Expression:
        return Identity(self.domain.dual if self.domain else None)

    def placed(self, domain: Space | None, codomain: Space | None) -> Expression:
        return self if self.domain else Identity(domain or codomain)

    def __str__(self) -> str:
        return "I"


@dataclass(frozen=True, repr=False)
class Vector(Expression):
    """A vector that is an argument of the kernel."""

    name: str
    codomain: Space | None

    @property
    def domain(self) -> Space | None:  # type: ignore[override]
        return SCALAR

    @property
    def T(self) -> Expression:
        return Covector(self)

    def placed(self, domain: Space | None, codomain: Space | None) -> Expression:
        # A link vector holds no joint forces and no rates of loops.
        is_open = self.codomain is None and codomain not in (JOINT, COORDINATE, LOOP, SCALAR)
        return Vector(self.name, codomain) if is_open else self

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, repr=False)
class Covector(Expression):
    """The adjoint of a vector: ``x.T @ y`` is a number."""

    vector: Vector

    @property
    def domain(self) -> Space | None:  # type: ignore[override]
        return self.vector.codomain.dual if self.vector.codomain else None

    @property
    def codomain(self) -> Space | None:  # type: ignore[override]
        return SCALAR

    @property
    def T(self) -> Expression:
        return self.vector

    def placed(self, domain: Space | None, codomain: Space | None) -> Expression:
        return Covector(self.vector.placed(None, domain.dual if domain else None))  # type: ignore[arg-type]

    def parts(self) -> tuple[Expression, ...]:
        return (self.vector,)

    def __str__(self) -> str:
        return f"{self.vector}.T"


@dataclass(frozen=True, repr=False)
class Bias(Expression):
    """A vector of the links caused by joint velocities, such as ``a`` (acceleration) or ``b`` (force), or by gravity at
    the base.

    ``of`` is the joint vector of velocities, or S times the velocities of the coordinates; None for gravity.
    """

    record: Record
    of: Expression | None = None

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def codomain(self) -> Space:  # type: ignore[override]
        return self.record.codomain

    @property
    def domain(self) -> Space | None:  # type: ignore[override]
        return SCALAR

    def parts(self) -> tuple[Expression, ...]:
        return (self.of,) if self.of else ()

    @property
    def T(self) -> Expression:
        raise SpaceError(f"the adjoint of the bias {self} is not used in the algebra")

    def __str__(self) -> str:
        return f"{self.name}({self.of})" if self.of else self.name


@dataclass(frozen=True, repr=False)
class Product(Expression):
    """Two or more factors from left to right; no factor is a product or an identity."""

    factors: tuple[Expression, ...]

    @property
    def domain(self) -> Space | None:  # type: ignore[override]
        return self.factors[-1].domain

    @property
    def codomain(self) -> Space | None:  # type: ignore[override]
        return self.factors[0].codomain

    @cached_property
    def _hash(self) -> int:
        return hash(self.factors)

    def __hash__(self) -> int:
        return self._hash

    @property
    def T(self) -> Expression:
        result = self.factors[-1].T
        for factor in reversed(self.factors[:-1]):
            result = product(result, factor.T)
        return result

    def parts(self) -> tuple[Expression, ...]:
        return self.factors

    def __str__(self) -> str:
        return " @ ".join(f"({f})" if isinstance(f, Sum) else str(f) for f in self.factors)


@dataclass(frozen=True, repr=False)
class Sum(Expression):
    """Weighted terms; no term is a sum."""

    terms: tuple[tuple[float, Expression], ...]
    domain: Space | None
    codomain: Space | None

    @property
    def T(self) -> Expression:
        if not self.terms:
            return Sum((), self.codomain and self.codomain.dual, self.domain and self.domain.dual)
        return total(tuple((weight, term.T) for weight, term in self.terms))

    def parts(self) -> tuple[Expression, ...]:
        return tuple(term for _, term in self.terms)

    def placed(self, domain: Space | None, codomain: Space | None) -> Expression:
        if (self.domain is not None and self.codomain is not None) or not self.terms:
            return self
        return total(tuple((w, t.placed(domain, codomain)) for w, t in self.terms))

    def __str__(self) -> str:
        text = ""
        for weight, term in self.terms:
            sign = ("- " if weight < 0 else "+ ") if text else ("-" if weight < 0 else "")
            size = "" if abs(weight) == 1.0 else f"{_digits(abs(weight))} * "
            # A minus in front binds tighter than @: before a sum it would be taken into the sum.
            reaches_in = bool(size) or (sign == "-" and isinstance(term, Product) and isinstance(term.factors[0], Sum))
            body = f"({term})" if reaches_in and isinstance(term, Product) else str(term)
            text += f"{' ' if text else ''}{sign}{size}{body}"
        return text or "0"


def _digits(number: float) -> str:
    """The number with the fewest digits that read back exactly."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)


@dataclass(frozen=True, repr=False)
class Inverse(Expression):
    """The inverse of an expression; ``identities.py`` expresses it by known operators."""

    of: Expression

    #: Computes the inverse in known operators, or raises; set by ``identities.py``.
    known: ClassVar[Callable[[Expression], Expression]]

    def __post_init__(self) -> None:
        type(self).known(self.of)

    @property
    def domain(self) -> Space | None:  # type: ignore[override]
        return self.of.codomain

    @property
    def codomain(self) -> Space | None:  # type: ignore[override]
        return self.of.domain

    @property
    def T(self) -> Expression:
        return Inverse(self.of.T)

    @property
    def inv(self) -> Expression:
        return self.of

    def parts(self) -> tuple[Expression, ...]:
        return (self.of,)

    def __str__(self) -> str:
        return f"({self.of}).inv" if isinstance(self.of, (Sum, Product)) else f"{self.of}.inv"


@dataclass(frozen=True, repr=False)
class Factored(Expression):
    """The inverse of a small symmetric expression by factorization: 6x6 at one link, or over the coordinates."""

    of: Expression

    @property
    def domain(self) -> Space | None:  # type: ignore[override]
        return self.of.codomain

    @property
    def codomain(self) -> Space | None:  # type: ignore[override]
        return self.of.domain

    @property
    def T(self) -> Expression:
        return self

    def parts(self) -> tuple[Expression, ...]:
        return (self.of,)

    def __str__(self) -> str:
        return f"({self.of}).inv"


# -- construction -------------------------------------------------------------------------------------


def product(left: Expression, right: Expression) -> Expression:
    """left @ right, with their spaces matched and identities dropped."""
    left = left.placed(right.codomain, None)
    right = right.placed(None, left.domain)
    if left.domain != right.codomain:
        raise SpaceError(
            f"({left}) @ ({right}): the left side takes vectors of {left.domain or 'an open space'}, "
            f"the right side gives vectors of {right.codomain or 'an open space'}"
        )
    if isinstance(left, Identity):
        return right
    if isinstance(right, Identity):
        return left
    scale = 1.0
    factors: list[Expression] = []
    for side in (left, right):
        if isinstance(side, Sum) and len(side.terms) == 1:
            scale, side = scale * side.terms[0][0], side.terms[0][1]
        if not isinstance(side, Identity):
            factors.extend(side.factors if isinstance(side, Product) else (side,))
    result: Expression = (
        Product(tuple(factors)) if len(factors) > 1 else factors[0] if factors else Identity(left.domain)
    )
    return result if scale == 1.0 else total(((scale, result),))


def total(weighted: tuple[tuple[float, Expression], ...]) -> Expression:
    """A weighted sum with nested sums flattened, like terms collected, and spaces matched."""
    collected: dict[Expression, float] = {}
    domain = next((t.domain for _, t in weighted if t.domain is not None), None)
    codomain = next((t.codomain for _, t in weighted if t.codomain is not None), None)
    for weight, term in weighted:
        term = term.placed(domain, codomain)
        if (term.domain, term.codomain) != (domain, codomain):
            raise _different_spaces(weighted, domain, codomain)
        for inner_weight, inner in term.terms if isinstance(term, Sum) else ((1.0, term),):
            collected[inner] = collected.get(inner, 0.0) + weight * inner_weight
    terms = tuple((weight, term) for term, weight in collected.items() if weight != 0.0)
    if len(terms) == 1 and terms[0][0] == 1.0:
        return terms[0][1]
    return Sum(terms, domain, codomain)


def _different_spaces(weighted: tuple[tuple[float, Expression], ...], domain: Any, codomain: Any) -> SpaceError:
    """The error for a sum of terms in different spaces; names the first two that differ."""
    placed = [(weight, term.placed(domain, codomain)) for weight, term in weighted]
    _, left = placed[0]
    weight, right = next((w, t) for w, t in placed if (t.domain, t.codomain) != (left.domain, left.codomain))
    return SpaceError(
        f"({left}) {'-' if weight < 0.0 else '+'} ({right}): "
        f"the left side maps {left.domain or 'an open space'} to {left.codomain or 'an open space'}, "
        f"the right side {right.domain or 'an open space'} to {right.codomain or 'an open space'}"
    )
