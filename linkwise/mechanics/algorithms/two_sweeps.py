"""Forward dynamics in two sweeps, without a separate sweep for velocities (promised at the end of rodriguez1992 VII-D).

The velocity of a link, which determines its gyroscopic forces, is unknown until the base is reached; but the forces are
quadratic in the link's angular velocity w: z(w) = z0 + z1 w + z2 (w, w).  The filter carries these coefficients
inwards, ten for every component of a force, and the smoother evaluates them with known velocities.  The three-sweep
algorithm takes a third of the operations; this one has a critical path of two thirds as many links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

from ...mechanism import MechanismError
from ..links.articulation import force_to_parent
from ..links.forces import gyroscopic_force
from ..links.kinematics import angular_velocity_base_to_tip, propagate_acceleration
from ..operators.spaces import FORCE
from ..operators.vectors import from_user
from ..recursions.sweep import base_to_tip, tip_to_base
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar, is_zero
from ..spatial import Force, Motion, Vector3
from ..spatial.three import ZERO
from . import expressions as ex
from .algorithm import SOLVES_TREE, algorithm

NAME = "two_sweeps"
REASON = "forces are functions of velocities that are not known yet: no operator gives functions"

Monomial = tuple[int, ...]  # axes, in order: () is 1, (0, 2) is x z


class Quadratic:
    """A polynomial of degree two at most in the components of a vector; usable as a scalar in the mechanics."""

    def __init__(self, coefficients: Mapping[Monomial, Scalar]):
        self.coefficients = {m: c for m, c in coefficients.items() if not is_zero(c)}

    def __add__(self, other: Any) -> Quadratic:
        result = dict(self.coefficients)
        for monomial, c in _coefficients(other).items():
            result[monomial] = result[monomial] + c if monomial in result else c
        return Quadratic(result)

    def __neg__(self) -> Quadratic:
        return Quadratic({m: -c for m, c in self.coefficients.items()})

    def __sub__(self, other: Any) -> Quadratic:
        return self + (-Quadratic(_coefficients(other)))

    def __mul__(self, other: Any) -> Quadratic:
        result = Quadratic({})
        for left, c in self.coefficients.items():
            result = result + Quadratic({tuple(sorted(left + m)): c * d for m, d in _coefficients(other).items()})
        return result

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Quadratic:
        return -self + other


def _coefficients(x: Any) -> Mapping[Monomial, Scalar]:
    return x.coefficients if isinstance(x, Quadratic) else {(): x}


def _monomials(w: Vector3) -> dict[Monomial, Scalar]:
    """The products of the components of a vector, up to degree two."""
    products: dict[Monomial, Scalar] = {(): 1.0, **{(i,): w[i] for i in range(3)}}
    return products | {(i, j): w[i] * w[j] for i, j in combinations_with_replacement(range(3), 2)}


def _evaluate(x: Any, monomials: Mapping[Monomial, Scalar]) -> Any:
    """A polynomial evaluated for a vector, or composed with polynomials of another vector."""
    total: Any = 0.0
    for monomial, c in _coefficients(x).items():
        total = total + monomials[monomial] * c
    return total


@algorithm(
    ("q", "v", "tau"),
    "a",
    options={"method": ex.fastest_method},
    expression=lambda mech, method, wrenches=False: (
        None if method == NAME else ex.forward_dynamics(mech, method, wrenches)
    ),
    reason=REASON,
    ports=("wrenches",),
    requires=SOLVES_TREE.or_algorithm("closed_forward_dynamics"),
    on_tree=ex.tree_of_forward_dynamics,
)
def forward_dynamics(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    wrenches: Sequence[Any] | None = None,
    method: str = NAME,
) -> list[Scalar]:
    """(nv,): tip to base and base to tip."""
    if tree.mechanism.coordinates.mimic_joints:
        raise MechanismError(
            f"method {method!r} takes one joint at a time, and in mechanism {tree.mechanism.name!r} some mimic others "
            f"({', '.join(tree.mechanism.coordinates.mimic_joints)}): leave method out, or take 'bias_free'"
        )
    at = Configuration(tree, q)
    links, rates, moments = tree.links, tree.per_joint(v), tree.per_joint(tau)
    unknown = Vector3(*(Quadratic({(axis,): 1.0}) for axis in range(3)))
    pushed = [None if wrenches is None else from_user(at, FORCE, i, wrenches[i]) for i in range(len(links))]

    def filtered(i: int, outer: list[Force]) -> tuple[list[Any], Force]:
        """The innovations of joint i and the force on its parent, as functions of the parent's angular velocity."""
        total = gyroscopic_force(links[i].inertia, unknown)
        for force in outer:
            total = total + force
        if pushed[i] is not None:
            total = total - pushed[i]  # type: ignore[operator]
        joint, crossed = at.articulation(i), at.joint_kinematics[i]
        parent = unknown if links[i].parent >= 0 else ZERO
        spin = angular_velocity_base_to_tip(crossed, parent, at.coordinates[i], rates[i])
        monomials = _monomials(spin.omega)
        force = Force.of([_evaluate(x, monomials) for x in total.flat()])
        innovation = joint.innovation(moments[i], force)
        return innovation, force_to_parent(crossed, spin, joint.remaining, joint.absorb(force, innovation))

    innovations, _ = tip_to_base(links, "articulated inertias, forces as functions of velocities", filtered)

    def smoothed(i: int, parent: tuple[Vector3, Motion, Any] | None) -> tuple[Vector3, Motion, list[Scalar]]:
        omega, alpha, _ = parent or (ZERO, Motion(ZERO, -tree.gravity), None)
        joint, crossed = at.articulation(i), at.joint_kinematics[i]
        spin = angular_velocity_base_to_tip(crossed, omega, at.coordinates[i], rates[i])
        monomials = _monomials(omega)
        nu = joint.factor.solve([_evaluate(x, monomials) for x in innovations[i]])
        before = propagate_acceleration(crossed, spin, alpha)
        accelerations = joint.rates(nu, before)
        return spin.omega, before + crossed.relative_motion(accelerations), accelerations

    return [x for *_, rates in base_to_tip(links, "velocities and accelerations", smoothed) for x in rates]
