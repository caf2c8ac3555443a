"""Counterexamples to identities: a mechanism and a state at which two expressions differ, found with
the dense oracle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...mechanism import Builder, Mechanism, Mimic
from ...mechanism import library as mechanisms
from ..joints import Prismatic, Revolute
from ..recursions.tree import build_tree
from .algebra import L, S
from .dense import StackedOperators
from .expression import Bias, Expression, Factored, Inverse, Operator, Product, Sum, Vector
from .identities import rebuilt
from .plan import apply
from .vectors import input_vectors, space_size

SEEDS = 6  # number of random trees
STATES = 2  # states per tree
DIFFERENT = 1e-9  # relative to the largest magnitude affected by rounding; equal matrices differ by 1e-13 of it


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A mechanism and a state at which two expressions differ.

    mechanism, q   where
    vectors        values of the vectors in the expressions, by name
    left, right    the matrices of both sides there; for vectors, one column
    links          the links substituted for links named in the expressions, where they differ
    """

    mechanism: Mechanism
    q: np.ndarray
    vectors: Mapping[str, np.ndarray]
    left: np.ndarray
    right: np.ndarray
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def difference(self) -> float:
        """The largest difference, relative to the largest number of both sides."""
        return float(np.abs(self.left - self.right).max() / max(np.abs(self.left).max(), np.abs(self.right).max()))

    def __str__(self) -> str:
        row, column = np.unravel_index(np.abs(self.left - self.right).argmax(), self.left.shape)
        named = "".join(f", {link} for {name}" for name, link in self.links.items())
        entry = f"entry [{row}, {column}]" if self.left.shape[1] > 1 else f"entry [{row}]"
        state = np.array2string(self.q, precision=3, separator=", ", max_line_width=10_000)
        return (
            f"mechanism {self.mechanism.name!r}{named} at q = {state}: "
            f"{entry} is {self.left[row, column]:.6g} on the left and {self.right[row, column]:.6g} on the right"
        )


def search(left: Expression, right: Expression, armature: bool) -> tuple[Counterexample | None, bool]:
    """A counterexample, or None; and whether the sides were compared anywhere."""
    compared = False
    names = sorted({p.link for side in (left, right) for p in side.walk() if isinstance(p, Operator) and p.link})
    for seed, mech in enumerate(_mechanisms(left, right, armature)):
        links = {name: mech.link_names[(seed + k) % mech.n_links] for k, name in enumerate(names)}
        here = [_renamed(side, links) for side in (left, right)]
        rng = np.random.default_rng(seed)
        for _ in range(STATES):
            q = np.concatenate([body.kind.random(rng, ()) for body in mech.bodies if not body.mimic])
            try:
                vectors, sides, size = _compared(here, mech, q, rng)
            except ValueError:  # an inverse that does not exist here
                continue
            compared = True
            if np.abs(sides[0] - sides[1]).max(initial=0.0) > DIFFERENT * size:
                renamed = {name: link for name, link in links.items() if name != link}
                return Counterexample(mech, q, vectors, sides[0], sides[1], renamed), True
    return None, compared


def _mechanisms(left: Expression, right: Expression, armature: bool) -> Iterator[Mechanism]:
    """Trees with joints of all kinds; mechanisms with loops or mimic joints if relevant."""
    parts = [part for side in (left, right) for part in side.walk()]
    if L in parts or L.T in parts:
        candidates = [
            mechanisms.four_bar(),
            mechanisms.five_bar(),
            mechanisms.slider_crank(),
            mechanisms.stewart_platform(),
        ]
    elif S in parts or S.T in parts:
        candidates = [_arm_with_mimic_joint(), mechanisms.chain(4)]
    else:
        candidates = [mechanisms.random_tree(4 + seed % 3, seed) for seed in range(SEEDS)]
    for mech in candidates:
        yield (
            mech
            if armature
            else mech.parameters.with_armature({body.joint: [0.0] * body.kind.nv for body in mech.bodies})
        )


def _arm_with_mimic_joint() -> Mechanism:
    builder = Builder()
    for number, (axis, parent) in enumerate((((0, 0, 1), "ground"), ((0, 1, 0), "link1"), ((1, 0, 0), "link2")), 1):
        builder.link(f"link{number}", 1.0 + number, (0.1, 0.2, 0.05 * number), np.diag((0.3, 0.2, 0.25)))
        kind = Prismatic(axis) if number == 2 else Revolute(axis)
        mimic = Mimic("joint1", -0.7) if number == 3 else None
        builder.joint(f"joint{number}", kind, parent, f"link{number}", (None, (0.3, 0.1, 0.2)), 0.1, mimic=mimic)
    return builder.build("arm_with_mimic_joint")


def _renamed(expression: Expression, links: Mapping[str, str]) -> Expression:
    """The expression with links of the mechanism in place of the named links."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Operator(record=record, link=link, adjoint=adjoint) if link:
                return Operator(record, links[link], adjoint)
        return None

    return rebuilt(expression, change)


def _compared(
    sides: list[Expression], mech: Mechanism, q: np.ndarray, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], list[np.ndarray], float]:
    """Values of the vectors, the matrices of both sides, and a bound of magnitudes affected by rounding."""
    values: dict[str, np.ndarray] = {}
    for name, space in (item for side in sides for item in input_vectors(side).items()):
        values.setdefault(name, rng.normal(size=space_size(space, mech)))
    biases = {part for side in sides for part in side.walk() if isinstance(part, Bias)}
    known = dict(values)
    for bias in biases:
        vectors = {name: values[name] for name in input_vectors(bias)}
        at_user_origins = build_tree(mech, {}, True)
        known[str(bias)] = np.asarray(apply(bias, at_user_origins, list(q), **vectors), np.float64).reshape(-1)
    at = StackedOperators(mech, q, known)
    plain = [rebuilt(side, _bias_as_vector) for side in sides]
    return values, [at.matrix(side) for side in plain], max(_bound(side, at) for side in plain)


def _bias_as_vector(part: Expression) -> Expression | None:
    return Vector(str(part), part.codomain) if isinstance(part, Bias) else None


def _bound(expression: Expression, at: StackedOperators) -> float:
    """The norm that an expression could have without cancellation; rounding errors are small against it."""
    match expression:
        case Product(factors=factors):
            return float(np.prod([_bound(factor, at) for factor in factors]))
        case Sum(terms=terms):
            return sum(abs(weight) * _bound(term, at) for weight, term in terms)
        case Inverse(of=inner) | Factored(of=inner):
            inside = at.matrix(inner)
            size = np.linalg.norm(inside, 2) if inside.size else 0.0
            lost = _bound(inner, at) / size if size else 1.0
            return float(np.linalg.cond(inside) ** 2 / size * lost) if size else 1.0
        case _:
            matrix: Any = at.matrix(expression)
            return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0
