"""The one table of refusals: which law forbids a quantity of mechanisms with a property.  All else has a value.

A row (quantity, property) names the law and the words of it that the error must contain, and stands below a comment
with a derivation or a counterexample: a row without one is a missing feature, not a law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .mechanisms import Case
from .oracle import constraint_jacobian, null_space


@dataclass(frozen=True)
class Law:
    """Why there is no such quantity; the message of the error matches ``words``, a regular expression."""

    name: str
    words: str


def _rows(case: Case) -> np.ndarray:
    return constraint_jacobian(case.mech, case.q, case.active)


PROPERTIES: dict[str, Callable[[Case], bool]] = {
    "constrained": lambda case: not case.tree,
    "nonholonomic": lambda case: not case.holonomic,
    "rheonomic": lambda case: not case.scleronomic,
    "fewer than six motions": lambda case: null_space(case.mech, _rows(case)).shape[1] < 6,
    "mimic": lambda case: bool(case.mech.coordinates.mimic_joints),
    "rank drops": lambda case: case.name == "singular",
}

NOT_HAMILTONIAN = Law(
    "nonholonomic constraints leave no Hamiltonian system", "nonholonomic|constrains velocities alone"
)
EXPLICIT_TIME = Law("rheonomic constraints do work and depend on time explicitly", "drive|prescrib|rheonomic")
WORKLESS = Law("nu* C = 0 where kinetic energy changes by the work of given forces alone", "drive|prescrib|rheonomic")
NO_MANIFOLD = Law("no chart where the constraint Jacobian loses rank", "position is singular")
VELOCITIES_ALONE = Law("constraints of velocities alone leave all positions", "velocities alone")
TIME_IS_PRESCRIBED = Law("a prescribed motion fixes the time along its path", "drive|prescrib")
SIX_MOTIONS = Law("a matrix 6 x 6 of rank below 6 has no inverse", "degrees of freedom")
NO_REST = Law("what is driven does not stand still", "violate the constraints")
NOTHING_BEYOND = Law("in a loop no link lies beyond the others", "no link lies beyond|some mimic others")
INVERSE_OF_THE_TREE = Law("the inverse of an operator has no constraints in it", r"op\.L")
INVERSE_MASS_OF_THE_TREE = Law("the inverse of the mass matrix has no constraints in it", "spanning_tree")

REFUSALS: dict[tuple[str, str], Law] = {
    # Canonical momenta exist where the flow of (q, p) keeps dq ^ dp, and with it volume (Liouville).  The flow of a
    # Chaplygin sleigh with its mass ahead of the blade does not: du = a w^2, dw = -m a u w / (J + m a^2) goes to
    # straight motion from all states, so that volume in (u, w) shrinks.  Its momenta m u and J w belong to
    # quasi-velocities, dx = cos(h) u, dy = sin(h) u, dh = w, which are rates of no coordinates.
    ("canonical_momenta", "nonholonomic"): NOT_HAMILTONIAN,
    ("symplectic_methods", "nonholonomic"): NOT_HAMILTONIAN,
    # With G v = r(t) the multipliers work at the rate lambda* r, so that energy is no invariant, and the velocities
    # v = K y + k(t) are affine in the momenta K* M v: p = 0 is no rest.  A crank turned at a constant rate carries a
    # slider's energy up and down though no force but the motor's acts.
    ("canonical_momenta", "rheonomic"): EXPLICIT_TIME,
    ("symplectic_methods", "rheonomic"): EXPLICIT_TIME,
    # d/dt (nu* nu / 2) = nu* (force - C) is the power of the forces only if nu* C = 0; a drive adds lambda* r(t), and
    # v* M v has terms k* M K y and k* M k that nu* nu lacks.  At y = 0 the left side is zero, the drive's power is not.
    ("gyroscopic_forces_workless", "rheonomic"): WORKLESS,
    # g(q) = 0 is a manifold by the implicit function theorem where G has constant rank.  A flattened parallelogram lies
    # on two branches that cross: no map from an interval covers both one to one.
    ("local_parametrization", "rank drops"): NO_MANIFOLD,
    # A wheel can be at every place and heading: y = positions of fewer coordinates does not say where it is.
    ("local_parametrization", "nonholonomic"): VELOCITIES_ALONE,
    # With q = q(s) the driven coordinate gives s(t) by its own function of time: there is nothing to minimize.
    ("time_optimal", "rheonomic"): TIME_IS_PRESCRIBED,
    # J K has at most as many independent columns as K, and the mobility J K (K* M K)^-1 K* J* of a frame at most this
    # rank: with fewer than six motions some wrench moves the frame nowhere, and its acceleration per wrench is zero.
    ("operational_inertia", "fewer than six motions"): SIX_MOTIONS,
    # G v = r(t) has no solution v = 0 while r is not zero: no forces hold a crank still that a motor turns.
    ("static_forces", "rheonomic"): NO_REST,
    # The filter predicts the force onto a link from the links beyond it.  In a four-bar the force onto the coupler is
    # what its mass needs less the force of the rocker's pin, of which nothing is known before the crank's force is
    # measured too: its covariance is infinite, and the recursion of P has no start.  A joint force that two joints
    # share, as with mimic joints, is no measurement of the force onto one link.
    ("kalman_filter", "constrained"): NOTHING_BEYOND,
    ("kalman_filter", "mimic"): NOTHING_BEYOND,
    # (X^-1) X = 1 of an operator X of the tree.  What takes forces to accelerations of the constrained mechanism is
    # X^-1 - X^-1 L* (L X^-1 L*)^-1 L X^-1, which has the null space G* and so is the inverse of nothing; under the same
    # name it would make (X.inv) X = 1 wrong.
    ("operator_inverse", "constrained"): INVERSE_OF_THE_TREE,
    # The same of M: accelerations per force are K (K* M K)^-1 K*, d_tau of forward_dynamics_derivatives, whose rank is
    # that of K; M times it is no identity, and M^-1 gives the accelerations of no constrained mechanism.
    ("mass_matrix_inverse", "constrained"): INVERSE_MASS_OF_THE_TREE,
}


def law(quantity: str, case: Case) -> Law | None:
    """The law that forbids the quantity of this case, or None where it has a value."""
    for (name, kind), forbidding in REFUSALS.items():
        if name == quantity and PROPERTIES[kind](case):
            return forbidding
    return None
