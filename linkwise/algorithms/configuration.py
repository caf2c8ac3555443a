"""Moving on the configuration manifold: coordinate rates, steps along tangent vectors and their inverse."""

from __future__ import annotations

from collections.abc import Sequence

from ..recursions.tree import Tree
from ..scalar import Scalar


def coordinate_rates(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """(nq,): dq/dt = N(q) v."""
    return [x for kind, (at, rates) in _independent(tree, q, v) for x in kind.q_rate(at, rates)]


def integrate(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], dt: Scalar) -> list[Scalar]:
    """(nq,): the configuration after moving with constant v for dt."""
    dt = dt.item() if hasattr(dt, "item") else dt
    return [x for kind, (at, rates) in _independent(tree, q, v) for x in kind.integrate(at, rates, dt)]


def difference(tree: Tree, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
    """(nv,): the constant v that leads from q0 to q1 in unit time."""
    pairs = ((b.kind, tree.mechanism.q_index(b.joint)) for b in tree.mechanism.bodies if not b.mimic)
    return [x for kind, at in pairs for x in kind.difference(list(q0[at]), list(q1[at]))]


def _independent(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]):
    """Kind and own parts of q and v of every joint that has coordinates."""
    m = tree.mechanism
    for body in m.bodies:
        if not body.mimic:
            yield body.kind, (list(q[m.q_index(body.joint)]), list(v[m.v_index(body.joint)]))
