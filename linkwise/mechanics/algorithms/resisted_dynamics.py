"""Forward dynamics of links that resist their own acceleration beyond their inertia: one implicit step in velocities.

A force f(V) on a link that falls off quickly with its velocity V is taken at the end of a step h, to first order:
f(V + h dV/dt) = f(V) - h C phi* H* dv/dt with C = -df/dV.  That h C adds to the link's inertia wherever accelerations
are solved for, and nowhere else:

    [H phi (M + h C) phi* H*] dv/dt = T - H phi [M phi* (a + g) + b - f(V)]

so that the articulated-body recursion with P of M + h C solves it, at the cost of the recursion itself (the biased
form, rodriguez1992 Algorithm 3, whose bias forces are those of M).  Where velocities change by dv/dt + k in a step
(``Joint.kick_bias``), V changes with that sum, which takes the place of dv/dt above once the mass matrix times k is
added to T.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..operators.plan import applied, apply, plan_for, specialized
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar
from ..spatial import ArticulatedInertia
from . import expressions as ex
from .configuration import kick_bias

Resistances = Mapping[int, ArticulatedInertia]


class Resisted(Configuration):
    """A tree whose links have ``resistances`` added to their inertia where it is articulated: in internal frames."""

    def __init__(self, tree: Tree, q: Sequence[Scalar], resistances: Resistances):
        super().__init__(tree, q)
        self._resistances = resistances

    def articulated(self, i: int) -> ArticulatedInertia:
        """P of link i, its resistance and those beyond it included."""
        if i not in self._inertias:
            own = super().articulated(i)
            self._inertias[i] = own + self._resistances[i] if i in self._resistances else own
        return self._inertias[i]


def takes_resistances(tree: Tree) -> bool:
    """Whether joints can be taken one at a time, as the recursion does."""
    return not tree.mechanism.mimic_joints


def resisted_forward_dynamics(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar], wrenches: Any, resistances: Resistances
) -> list[Scalar]:
    """(nv,): accelerations; ``resistances`` h C are at links' origins in their user frames."""
    mechanism = tree.mechanism
    expression = specialized(ex.forward_dynamics(mechanism, "biased", wrenches is not None), mechanism)
    internal = {i: tree.links[i].user.inertia_back(own) for i, own in resistances.items()}
    bias = kick_bias(tree, v)
    if any(body.kind.transported for body in mechanism.bodies):
        kicked = apply(ex.MASS_MATRIX @ ex.v, tree, q, v=bias)
        tau = [x + y for x, y in zip(tau, kicked, strict=True)]
    vectors = {"v": v, "tau": tau, "wrenches": wrenches}
    found = applied(plan_for(expression, mechanism), expression, Resisted(tree, q, internal), vectors)
    return [x - k for x, k in zip(found, bias, strict=True)]
