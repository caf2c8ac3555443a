"""Forward dynamics with velocity-dependent resistance of links and joints: one implicit step in velocities.

A force f(V) on a link that falls off quickly with its velocity V is taken at the end of a step h, to first order: f(V +
h dV/dt) = f(V) - h C phi* H* dv/dt with C = -df/dV; a force at joints likewise, with a diagonal B = -df/dv. h C then
adds to the link's inertia, and h B to rotor inertias R, in the solution for accelerations only:

    [H phi (M + h C) phi* H* + R + h B] dv/dt = T - H phi [M phi* (a + g) + b - f(V)]

so that the articulated-body recursion with P of M + h C and D of R + h B solves it, at the cost of the recursion itself
(the biased form, rodriguez1992 Algorithm 3, with bias forces of M alone; any form if C is zero).  If velocities change
by dv/dt + k in a step (``Joint.kick_bias``), V changes with that sum, which takes the place of dv/dt above once the
mass matrix times k is added to T.  Loops and mimic joints couple links into clusters, in which h C is an ordinary load
on links (``ClosedMotion``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...mechanism.clusters import clusters
from ..links.loop_elimination import Fronts
from ..operators.plan import applied, apply, plan_for, specialized
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar
from ..spatial import ArticulatedInertia
from . import expressions as ex
from .closed_dynamics import ClosedMotion
from .configuration import kick_bias
from .dynamics import forward_dynamics


class Resistances(NamedTuple):
    """h C by link, at origins in user frames, and the diagonal of h B by the link of the joint."""

    links: dict[int, ArticulatedInertia]
    joints: dict[int, list[Scalar]]


class Resisted(Configuration):
    """A tree with ``resistances`` added to articulated inertias, in internal frames."""

    def __init__(self, tree: Tree, q: Sequence[Scalar], resistances: Mapping[int, ArticulatedInertia]):
        super().__init__(tree, q)
        self._resistances = resistances

    def articulated(self, i: int) -> ArticulatedInertia:
        """Articulated inertia P of link i, including resistances."""
        if i not in self._inertias:
            inertia = super().articulated(i)
            self._inertias[i] = inertia + self._resistances[i] if i in self._resistances else inertia
        return self._inertias[i]


def with_resisting_joints(tree: Tree, resistances: Resistances) -> Tree:
    """The tree with h B added to its rotor inertias."""
    if not resistances.joints:
        return tree
    links = list(tree.links)
    for i, resistance in resistances.joints.items():
        armature = tuple(x + y for x, y in zip(links[i].armature, resistance, strict=True))
        links[i] = dataclasses.replace(links[i], armature=armature)
    return dataclasses.replace(tree, links=tuple(links))


def resisted_forward_dynamics(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar], wrenches: Any, resistances: Resistances
) -> list[Scalar]:
    """(nv,): accelerations."""
    mechanism, resisting = tree.mechanism, with_resisting_joints(tree, resistances)
    transported = [i for i, body in enumerate(mechanism.bodies) if body.kind.transported]
    if not resistances.links and not any(i in resistances.joints for i in transported):
        return forward_dynamics(resisting, q, v, tau, wrenches)
    if mechanism.coordinates.mimic_joints and resistances.links:
        untied = Fronts(((),) * len(clusters(mechanism)))
        return ClosedMotion(resisting, q, v, wrenches, untied, resistances.links).under(tau)
    bias = kick_bias(tree, v)
    if transported:
        kicked = apply(ex.MASS_MATRIX @ ex.v, tree, q, v=bias)
        tau = [x + y for x, y in zip(tau, kicked, strict=True)]
    if resistances.links:
        expression = specialized(ex.forward_dynamics(mechanism, "biased", wrenches is not None), mechanism)
        internal = {i: tree.links[i].user.inertia_back(resistance) for i, resistance in resistances.links.items()}
        vectors = {"v": v, "tau": tau, "wrenches": wrenches}
        accelerations = applied(plan_for(expression, mechanism), expression, Resisted(resisting, q, internal), vectors)
    else:
        accelerations = forward_dynamics(resisting, q, v, tau, wrenches)
    return [x - k for x, k in zip(accelerations, bias, strict=True)]
