"""Well-typed random operator expressions, and their values from stacked matrices alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.operators.dense import StackedOperators, cross_matrix
from linkwise.mechanics.operators.expression import Bias, Expression, Inverse, Product, Sum
from linkwise.mechanics.operators.spaces import Space, force_at

MASS_MATRIX = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R
WHITENING = op.I - op.H @ op.psi @ op.K
OPERATORS = (
    op.H,
    op.phi,
    op.psi,
    op.E_phi,
    op.E_psi,
    op.Phi,
    op.Psi,
    op.M,
    op.P,
    op.P_plus,
    op.D,
    op.D_half,
    op.R,
    op.G,
    op.K,
)
INVERTIBLE = (
    op.phi,
    op.psi,
    op.D,
    op.D_half,
    op.M,
    op.P,
    op.I - op.E_phi,
    op.I - op.E_phi @ op.tau_bar,
    op.I + op.H @ op.phi @ op.K,
    WHITENING,
    MASS_MATRIX,
    op.I + op.phi @ op.K @ op.H,
    op.I - op.K @ op.H @ op.psi,
    op.phi @ op.M @ op.phi.T,
)
LINK_SPACES = (op.FORCE, op.MOTION)


class Generator:
    """Draws expressions for one mechanism.

    ``movable``: links and frames that six or more degrees of freedom move, where operational inertias exist.
    """

    def __init__(self, rng: np.random.Generator, mech: lw.Mechanism) -> None:
        self.rng = rng
        self.frames = tuple(mech.frames)[1:]
        self.movable = [f for f in self.frames if _moves_freely(mech, f)]
        self.vectors = 0
        self.rates = op.joint_vector("rates")

    def _pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def weight(self) -> float:
        return float(self._pick((-1.0, 2.0, -0.5, 0.3, 3.0)))

    # -- operators ------------------------------------------------------------------------------------

    def operator(self, domain: Space, codomain: Space, depth: int) -> Expression:
        """A map from one space to another, at most ``depth`` sums and products deep (but for reaching the spaces)."""
        leaves = self._leaves(domain, codomain)
        if depth <= 0:
            return self._pick(leaves) if leaves else self._through(domain, codomain, 0)
        match self.rng.integers(17):
            case 0 | 1 | 2 | 3 | 4 | 5:
                return self._through(domain, codomain, depth - 1)
            case 6 | 7 | 8 | 9:
                return self.operator(domain, codomain, depth - 1) + self.operator(domain, codomain, depth - 1)
            case 10 | 11:
                return self.weight() * self.operator(domain, codomain, depth - 1)
            case 12 | 13:
                return self.operator(codomain.dual, domain.dual, depth - 1).T
            case 14:
                return self._given(codomain, plain=True) @ self._given(domain.dual, plain=True).T
            case _:
                inverses = self._inverses(domain, codomain)
                return self._pick(inverses) if inverses else self._through(domain, codomain, depth - 1)

    def _through(self, domain: Space, codomain: Space, depth: int) -> Expression:
        """A product; what is at one link is entered and left through its own pick-offs."""
        if domain.link:
            entry = op.A(domain.link) if domain == force_at(domain.link).dual else op.B(domain.link)
            return self.operator(entry.codomain, codomain, depth) @ entry
        if codomain.link:
            leave = op.A(codomain.link).T if codomain == force_at(codomain.link) else op.B(codomain.link).T
            return leave @ self.operator(domain, leave.domain, depth)
        between = self._pick((op.JOINT, op.FORCE, op.MOTION, self.task()))
        return self.operator(between, codomain, depth) @ self.operator(domain, between, depth)

    def task(self) -> Space:
        at = force_at(self._pick(self.frames))
        return self._pick((at, at.dual))

    def _leaves(self, domain: Space, codomain: Space) -> list[Expression]:
        if domain.link or codomain.link:
            link = domain.link or codomain.link
            known = (op.A(link), op.B(link), op.A(link).T, op.B(link).T)
        else:
            known = (*OPERATORS, *(x.T for x in OPERATORS), op.tau, op.tau_bar, op.tau.T, op.tau_bar.T)
        leaves = [x for x in known if (x.domain, x.codomain) == (domain, codomain)]
        return [*leaves, op.identity(domain)] if domain == codomain else leaves

    def _inverses(self, domain: Space, codomain: Space) -> list[Expression]:
        """Known inverses: single ones, of multiples, of adjoints and of products."""
        if domain.link:
            if domain != codomain.dual or domain.link not in self.movable:
                return []
            at = op.B(domain.link)
            mobility = at.T @ op.phi.T @ op.H.T @ MASS_MATRIX.inv @ op.H @ op.phi @ at
            return [mobility.inv if domain == mobility.codomain else mobility.inv.inv]
        found = [x for y in INVERTIBLE for x in (y, y.T) if (x.domain, x.codomain) == (codomain, domain)]
        inverses = [x.inv for x in found]
        if found and domain == codomain:
            first, second = self._pick(found), self._pick(found)
            inverses += [(first @ second).inv, (self.weight() * first).inv, first.T.inv.T]
        return inverses

    # -- vectors --------------------------------------------------------------------------------------

    def vector(self, space: Space, depth: int) -> Expression:
        """Given vectors and biases under operators; sums; multiples by numbers that are themselves inner products."""
        if depth <= 0:
            return self._given(space)
        match self.rng.integers(6):
            case 0:
                return self.vector(space, depth - 1) + self.weight() * self.vector(space, depth - 1)
            case 1:
                return self._given(space) @ self.number(depth - 1)
            case _:
                source = self._pick((op.JOINT, op.FORCE, op.MOTION))
                return self.operator(source, space, depth - 1) @ self.vector(source, int(self.rng.integers(2)))

    def number(self, depth: int) -> Expression:
        """x* y."""
        space = self._pick((op.JOINT, op.FORCE, op.MOTION))
        return self._given(space.dual, plain=True).T @ self.vector(space, depth)

    def _given(self, space: Space, plain: bool = False) -> Expression:
        if space.link:
            leave = op.A(space.link).T if space == force_at(space.link) else op.B(space.link).T
            return leave @ self._given(leave.domain, plain)
        biases = {op.MOTION: (op.bias_acceleration(self.rates), op.gravity()), op.FORCE: (op.bias_force(self.rates),)}
        if not plain and space in biases and self.rng.random() < 0.3:
            return self._pick(biases[space])
        self.vectors += 1
        return op.joint_vector(f"x{self.vectors}") if space == op.JOINT else _link_vector(f"y{self.vectors}", space)


def _link_vector(name: str, space: Space) -> Expression:
    return op.link_vector(name).placed(None, space)


def _moves_freely(mech: lw.Mechanism, frame: str) -> bool:
    """Whether the Jacobian of a frame has six rows that are far from dependent."""
    q, _ = lw.random_state(mech, np.random.default_rng(7))
    jacobian = op.dense(op.B(frame).T @ op.phi.T @ op.H.T, mech, q)
    return bool(min(np.linalg.svd(jacobian)[1], default=0.0) > 1e-2) and jacobian.shape[1] >= 6


@cache
def link_accelerations(mech: lw.Mechanism) -> lw.Kernel:
    """Rates of the velocities' components, from kinematics that no operator takes part in."""
    return lw.compile("link_accelerations", mech, target="numpy")


# -- the oracle ---------------------------------------------------------------------------------------


class StackedVectors(StackedOperators):
    """Stacked operators that also know the biases."""

    def __init__(self, mech: lw.Mechanism, q: np.ndarray, vectors: Mapping[str, np.ndarray]) -> None:
        super().__init__(mech, q, vectors)
        self.q = q
        self.accelerations = link_accelerations(mech)

    def matrix(self, expression: Expression) -> np.ndarray:
        match expression:
            case Bias():
                rates = None if expression.of is None else self.matrix(expression.of).ravel()
                return getattr(self, f"bias_{expression.name}")(rates).reshape(-1, 1)
        return super().matrix(expression)

    def bias_a(self, rates: np.ndarray) -> np.ndarray:
        """What the links' accelerations are without joint accelerations, less what they get from their parents.

        The acceleration of an origin is the rate of its velocity's components plus omega x velocity.
        """
        velocities = (self.phi.T @ self.H.T @ rates).reshape(-1, 6)
        accelerations = self.accelerations(self.q, rates, np.zeros_like(rates))
        accelerations[:, 3:] += np.cross(velocities[:, :3], velocities[:, 3:])
        return accelerations.ravel() - self.E_phi.T @ accelerations.ravel()

    def bias_b(self, rates: np.ndarray) -> np.ndarray:
        forces = []
        for body, omega in zip(self.mech.bodies, (self.phi.T @ self.H.T @ rates).reshape(-1, 6)[:, :3], strict=True):
            com, turn = cross_matrix(body.com), cross_matrix(omega)
            moment = np.array(body.inertia) - body.mass * com @ com
            forces += [turn @ moment @ omega, turn @ turn @ (body.mass * np.array(body.com))]
        return np.concatenate(forces)

    def bias_g(self, rates: None) -> np.ndarray:
        up = np.array([0.0, 0.0, 0.0, *(-np.array(self.mech.gravity))])
        parts = [
            t.T @ up if p < 0 else np.zeros(6) for t, p in zip(self.transfers, self.mech.tree.parents, strict=True)
        ]
        return np.concatenate(parts)

    def size_of_terms(self, expression: Expression) -> float:
        """How large the numbers on the way to the value are: rounding errors are in proportion to it."""
        match expression:
            case Product():
                return float(np.prod([self.size_of_terms(f) for f in expression.factors]))
            case Sum():
                return sum(abs(w) * self.size_of_terms(t) for w, t in expression.terms)
            case Inverse():
                inner = self.matrix(expression.of)
                return float(np.linalg.norm(self.matrix(expression), 2) * np.linalg.cond(inner))
            case Bias(of=rates) if rates is not None:  # it may vanish as the difference of large terms
                return float(1.0 + np.sum(np.square(self.matrix(rates))))
        return float(np.linalg.norm(self.matrix(expression)))
