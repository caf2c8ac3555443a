"""Moving on the configuration manifold: coordinate rates, steps along tangent vectors and their inverse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..jet import jet, parts
from ..recursions.tree import Tree
from ..scalar import Scalar
from .algorithm import algorithm

MANIFOLD = "steps on the configuration manifold are the joints' own, link by link"


@algorithm(("q", "v"), "q_rate", reason=MANIFOLD, sweeps=True)
def coordinate_rates(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """(nq,): dq/dt = N(q) v."""
    return [x for kind, (at, rates) in _independent(tree, q, v) for x in kind.q_rate(at, rates)]


@algorithm(("q", "v", "dt"), "q_next", reason=MANIFOLD, sweeps=True)
def integrate(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], dt: Scalar) -> list[Scalar]:
    """(nq,): the configuration after moving with constant v for dt."""
    dt = dt.item() if hasattr(dt, "item") else dt
    return [x for kind, (at, rates) in _independent(tree, q, v) for x in kind.integrate(at, rates, dt)]


def drift(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], dt: Scalar) -> list[Scalar]:
    """(nq + nv,): q and v after moving without acceleration for dt (``Joint.drift``)."""
    dt = dt.item() if hasattr(dt, "item") else dt
    ends = [kind.drift(at, rates, dt) for kind, (at, rates) in _independent(tree, q, v)]
    return [x for which in range(2) for end in ends for x in end[which]]


def kick_bias(tree: Tree, v: Sequence[Scalar]) -> list[Scalar]:
    """(nv,): changes of velocities that ``drift`` transports, less accelerations (``Joint.kick_bias``)."""
    m = tree.mechanism
    return [x for b in m.bodies if not b.mimic for x in b.kind.kick_bias(list(v[m.v_index(b.joint)]))]


@algorithm(("q0", "q1"), "v", reason=MANIFOLD, sweeps=True)
def difference(tree: Tree, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
    """(nv,): the constant v that leads from q0 to q1 in unit time."""
    pairs = ((b.kind, tree.mechanism.q_index(b.joint)) for b in tree.mechanism.bodies if not b.mimic)
    return [x for kind, at in pairs for x in kind.difference(list(q0[at]), list(q1[at]))]


def moving(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """q as jets along the motion with constant v: first derivative N(q) v, second derivative d(N(q) v)/dt."""
    first = coordinate_rates(tree, q, v)
    second = coordinate_rates(tree, [jet(x, d) for x, d in zip(q, first, strict=True)], v)
    return [jet(x, d, parts(dd)[1]) for x, d, dd in zip(q, first, second, strict=True)]


@algorithm(("q0", "q1"), reason=MANIFOLD)
def difference_jacobian(tree: Tree, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[list[Scalar]]:
    """(nv, nv): how ``difference(q0, q1)`` changes per unit tangent motion of q1; the identity but for rotations."""
    return _slopes(tree, lambda unit: difference(tree, q0, moving(tree, q1, unit)))


@algorithm(("q0", "q1"), "tangent_partials", reason=MANIFOLD)
def difference_derivatives(tree: Tree, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[list[list[Scalar]]]:
    """(2, nv, nv): how ``difference(q0, q1)`` changes per unit tangent motion of q0, and of q1."""
    by_q0 = _slopes(tree, lambda unit: difference(tree, moving(tree, q0, unit), q1))
    return [by_q0, difference_jacobian(tree, q0, q1)]


@algorithm(("q", "v", "dt"), "tangent_partials", reason=MANIFOLD)
def integrate_derivatives(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], dt: Scalar) -> list[list[list[Scalar]]]:
    """(2, nv, nv): along which tangents ``integrate(q, v, dt)`` moves per unit tangent motion of q, and per v."""
    end = integrate(tree, q, v, dt)  # the difference from a nearby q is the tangent vector towards it

    def by_q(unit: list[float]) -> list[Scalar]:
        return difference(tree, end, integrate(tree, moving(tree, q, unit), v, dt))

    def by_v(unit: list[float]) -> list[Scalar]:
        rates = [jet(x, d) for x, d in zip(v, unit, strict=True)]
        return difference(tree, end, integrate(tree, q, rates, dt))

    return [_slopes(tree, by_q), _slopes(tree, by_v)]


def _slopes(tree: Tree, along: Callable[[list[float]], list[Scalar]]) -> list[list[Scalar]]:
    """(nv, nv): column k holds the first derivatives of ``along(unit k)``."""
    n = tree.mechanism.nv
    columns = ([parts(x)[1] for x in along([1.0 if i == k else 0.0 for i in range(n)])] for k in range(n))
    return [list(row) for row in zip(*columns, strict=True)]


@algorithm(("q0", "q1", "v"), "v", reason=MANIFOLD)
def difference_bias(tree: Tree, q0: Sequence[Scalar], q1: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """(nv,): second derivative of ``difference(q0, q1)`` while q1 moves with constant v."""
    return [parts(x)[2] for x in difference(tree, q0, moving(tree, q1, v))]


def _independent(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]):
    """Joint kind with its slices of q and v, for every joint with coordinates."""
    m = tree.mechanism
    for body in m.bodies:
        if not body.mimic:
            yield body.kind, (list(q[m.q_index(body.joint)]), list(v[m.v_index(body.joint)]))
