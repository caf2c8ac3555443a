"""Total rates of mechanisms with constraints: quasi-velocities of K* M K.

    v = K y + k,    K* M K = m m*,    nu = m* y = m^-1 K* M (v - k),    v* M v = nu* nu  where k = 0

K are motions that the constraints allow and k the velocities prescribed by drives.  m is eliminated from the last
column of K to the first, and columns go cluster by cluster: its blocks are the innovations factors D^(1/2) of the
clusters. Without normalization xi = d^(-1/2) nu and U unit triangular in place of m = U d^(1/2).

nu are quasi-velocities, not rates of coordinates, so nonholonomic constraints need no special treatment.  Their rates
are derivatives of nu along the motion: q moves with v, and v with the constrained accelerations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from ...mechanism import MechanismError
from ..jet import dual, slopes_of
from ..links.loop_elimination import RELIABLE, Fronts, Row
from ..operators.plan import apply
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, select, transposed
from ..spatial.motion import NO_MOTION
from . import diagonal, inertia_derivatives
from . import diagonal_by_elimination as by_elimination
from . import expressions as ex
from .algorithm import SOLVES_CONSTRAINED, SOLVES_TREE, Algorithm, register, skip_mimic_joints
from .closed_dynamics import ClosedMotion, known
from .configuration import coordinate_rates
from .diagonal_by_elimination import Factors, apply_columnwise
from .dynamics import mass_matrix
from .independent_coordinates import Tangents, Vector, times
from .loop_constraints import constraints, driven_accelerations, driven_rates
from .momentum_flows import FromLastToFirst

Names = Sequence[str | int] | None
Ways = Callable[..., Any]


class AllowedMotions:
    """v = K y + k at a configuration, and K* M K; values are NaN where the elimination is unreliable.

    independent   joints whose velocities are y, or their indices in v; by default the elimination chooses by the state
    rates         (m,): of the drives
    """

    def __init__(self, tree: Tree, q: Vector, fronts: Fronts, independent: Names, rates: Vector | None = None):
        self.tree, self.q = tree, q
        at = Configuration(tree, q)
        rows = constraints(at, [0.0] * tree.mechanism.nv)[0]
        asked = driven_rates(at) if rates is None else rates
        cluster_rows = [
            Row({c: x for c, x in row.numbers.items() if c >= 0}, -rate) for row, rate in zip(rows, asked, strict=True)
        ]
        if fronts.pivots == tree.mechanism.nv:
            raise MechanismError(
                f"the constraints of mechanism {tree.mechanism.name!r} leave no degree of freedom: it has no "
                "quasi-velocities and no total rates"
            )
        along = Tangents(tree, cluster_rows, fronts, independent, orthonormal=False)
        self.basis, self.offset = along.basis, along.offset
        self.doubt = select(along.reliability > RELIABLE, 0.0, 1.0)

    @cached_property
    def columns(self) -> Matrix:
        """(p, nv): K*."""
        return transposed(self.basis)

    @cached_property
    def mass(self) -> Matrix:
        return mass_matrix(self.tree, self.q)

    @cached_property
    def reduced(self) -> Matrix:
        """(p, p): K* M K."""
        moved = [times(self.mass, column) for column in self.columns]
        return [times(self.columns, vector) for vector in moved]

    def factors(self, normalized: bool) -> Factors:
        return Factors(self.reduced, normalized)

    def velocities(self, y: Vector) -> Vector:
        """(nv,): K y + k."""
        return [x + k for x, k in zip(times(self.basis, y), self.offset, strict=True)]

    def total_rates(self, v: Vector, normalized: bool) -> Vector:
        """(p,): nu, or xi, from K* M (v - k)."""
        moving = [x - k for x, k in zip(v, self.offset, strict=True)]
        momenta = times(self.columns, times(self.mass, moving))
        return FromLastToFirst(self.reduced, momenta).total_rates(normalized)

    def known(self, values: Vector) -> Vector:
        return known(self.doubt, values)

    def known_matrix(self, rows: Matrix) -> Matrix:
        return [self.known(row) for row in rows]


# -- transforms -------------------------------------------------------------------------------------------


def rates(
    tree: Tree, q: Vector, v: Vector, normalized: bool = True, *, fronts: Fronts, independent_velocities: Names = None
) -> Vector:
    """(p,): nu = m* y, or xi."""
    motions = AllowedMotions(tree, q, fronts, independent_velocities)
    return motions.known(motions.total_rates(v, normalized))


def velocities(
    tree: Tree, q: Vector, nu: Vector, normalized: bool = True, *, fronts: Fronts, independent_velocities: Names = None
) -> Vector:
    """(nv,): v = K m^-* nu + k."""
    motions = AllowedMotions(tree, q, fronts, independent_velocities)
    return motions.known(motions.velocities(motions.factors(normalized).solve_adjoint(nu)))


def forces(
    tree: Tree, q: Vector, tau: Vector, normalized: bool = True, *, fronts: Fronts, independent_velocities: Names = None
) -> Vector:
    """(p,): epsilon = m^-1 K* tau, or kappa."""
    motions = AllowedMotions(tree, q, fronts, independent_velocities)
    return motions.known(motions.factors(normalized).solve(times(motions.columns, tau)))


def forces_of_all(
    tree: Tree,
    q: Vector,
    tau: Vector,
    wrenches: Any,
    normalized: bool = True,
    *,
    fronts: Fronts,
    independent_velocities: Names = None,
) -> Vector:
    """(p,): epsilon of joint forces, gravity and wrenches on the links together."""
    applied = apply(ex.COORDINATE_FORCES, tree, q, tau=tau, wrenches=wrenches)
    return forces(tree, q, applied, normalized, fronts=fronts, independent_velocities=independent_velocities)


def torques(
    tree: Tree, q: Vector, eps: Vector, normalized: bool = True, *, fronts: Fronts, independent_velocities: Names = None
) -> Vector:
    """(nv,): among joint forces with K* tau = m epsilon, those that produce no constraint forces from rest, tau = M K
    (K* M K)^-1 m epsilon."""
    motions = AllowedMotions(tree, q, fronts, independent_velocities)
    factors = motions.factors(normalized)
    accelerations = factors.solve_adjoint(
        eps if normalized else [x / d for x, d in zip(eps, factors.pivots, strict=True)]
    )
    return motions.known(times(motions.mass, times(motions.basis, accelerations)))


def factor(
    tree: Tree, q: Vector, normalized: bool = True, *, fronts: Fronts, independent_velocities: Names = None
) -> Matrix:
    """(p, p): m, or U."""
    motions = AllowedMotions(tree, q, fronts, independent_velocities)
    return motions.known_matrix(apply_columnwise(motions.factors(normalized).times, len(motions.columns)))


def factor_inverse(
    tree: Tree, q: Vector, normalized: bool = True, *, fronts: Fronts, independent_velocities: Names = None
) -> Matrix:
    """(p, p): m^-1, or U^-1."""
    motions = AllowedMotions(tree, q, fronts, independent_velocities)
    return motions.known_matrix(apply_columnwise(motions.factors(normalized).solve, len(motions.columns)))


# -- along motions ----------------------------------------------------------------------------------------


def factor_derivatives(
    tree: Tree, q: Vector, normalized: bool = True, *, fronts: Fronts, independent_velocities: Names = None
) -> list[Matrix]:
    """(p, p, p): [i, j, k] is dm_ij along column k of K."""
    along = AllowedMotions(tree, q, fronts, independent_velocities).columns
    matrix = factor(
        tree, _moving(tree, q, along), normalized, fronts=fronts, independent_velocities=independent_velocities
    )
    return [[list(slopes_of(x, len(along))) for x in row] for row in matrix]


def factor_rate(
    tree: Tree, q: Vector, v: Vector, normalized: bool = True, *, fronts: Fronts, independent_velocities: Names = None
) -> Matrix:
    """(p, p): dm/dt along the velocities v."""
    matrix = factor(
        tree, _moving(tree, q, [v]), normalized, fronts=fronts, independent_velocities=independent_velocities
    )
    return [[slopes_of(x, 1)[0] for x in row] for row in matrix]


def motion(
    tree: Tree,
    q: Vector,
    nu: Vector,
    tau: Vector,
    wrenches: Any = None,
    normalized: bool = True,
    *,
    fronts: Fronts,
    independent_velocities: Names = None,
) -> tuple[Vector, Vector]:
    """(p,) and (nv,): dnu/dt and v."""
    v = velocities(tree, q, nu, normalized, fronts=fronts, independent_velocities=independent_velocities)
    a = ClosedMotion(tree, q, v, wrenches, fronts).under(tau)
    return _rates_of_total_rates(tree, q, v, a, normalized, fronts, independent_velocities), v


def coriolis(
    tree: Tree, q: Vector, nu: Vector, normalized: bool = True, *, fronts: Fronts, independent_velocities: Names = None
) -> Vector:
    """(p,): C(q, nu) with dnu/dt + C = epsilon, or C(q, xi) with d dxi/dt + C = kappa."""
    if tree.mechanism.constraints.driven:
        raise MechanismError(
            f"diagonal_coriolis: drives ({', '.join(map(repr, tree.mechanism.constraints.driven))}) do work on "
            f"mechanism {tree.mechanism.name!r}, so that no C has nu* C = 0 (rheonomic constraints): use "
            "diagonal.motion, or mech.constraints.without_drives()"
        )
    v = velocities(tree, q, nu, normalized, fronts=fronts, independent_velocities=independent_velocities)
    free = ClosedMotion(tree, q, v, None, fronts)
    free.ground = NO_MOTION
    a = free.under([0.0] * len(v))
    changes = _rates_of_total_rates(tree, q, v, a, normalized, fronts, independent_velocities)
    if normalized:
        return [-x for x in changes]
    pivots = AllowedMotions(tree, q, fronts, independent_velocities).factors(normalized).pivots
    return [-x * d for x, d in zip(changes, pivots, strict=True)]


def _rates_of_total_rates(
    tree: Tree, q: Vector, v: Vector, a: Vector, normalized: bool, fronts: Fronts, independent_velocities: Names
) -> Vector:
    """(p,): dnu/dt, or dxi/dt, of a motion with velocities v and accelerations a."""
    at = Configuration(tree, q)
    asked = [dual(x, [dx]) for x, dx in zip(driven_rates(at), driven_accelerations(at), strict=True)]
    motions = AllowedMotions(tree, _moving(tree, q, [v]), fronts, independent_velocities, asked)
    moving = [dual(x, [dx]) for x, dx in zip(v, a, strict=True)]
    return [slopes_of(x, 1)[0] for x in motions.total_rates(moving, normalized)]


def _moving(tree: Tree, q: Vector, along: Matrix) -> Vector:
    """q with slopes along motions."""
    rates = zip(*(coordinate_rates(tree, q, v) for v in along), strict=True)
    return [dual(x, slopes) for x, slopes in zip(q, rates, strict=True)]


# -- registration: of trees, of trees whose joints mimic others, of mechanisms with constraints -----------------------

COUPLED = "factors of coordinates that depend on each other, by elimination: operators take one joint at a time"
RATES = "rates of articulated inertias: a second recursion beside that of P, which shares its velocities"


REDUCED = "quasi-velocities of the motions that constraints allow, which are eliminated cluster by cluster"


def _recursion(coupled: Ways, independent: Ways) -> Ways:
    """The recursion for a tree: coordinates are coupled if joints mimic others."""

    def chosen(tree: Tree, *arrays: Any, normalized: bool = True, **ports: Any) -> Any:
        serving = coupled if tree.mechanism.coordinates.mimic_joints else independent
        return serving(tree, *arrays, normalized=normalized, **ports)

    chosen.__doc__ = coupled.__doc__
    return chosen


def _register(
    name: str, inputs: tuple[str, ...], output: str, recursion: Ways, within: Ways, allowed: Any = "", **more: Any
) -> None:
    """Register for trees, and for mechanisms with constraints, whose result is named ``allowed`` if it differs."""
    called, ports = f"diagonal_{name}", more.get("ports", ())
    register(Algorithm(called, inputs, output, recursion, ("normalized",), requires=SOLVES_TREE, **more))
    options = ("normalized", "fronts", "independent_velocities")
    output = allowed or output
    register(
        Algorithm(called, inputs, output, within, options, reason=REDUCED, ports=ports, requires=SOLVES_CONSTRAINED),
        within_constraints=True,
    )


_coupled: Ways
_within: Ways
_independent: Ways
_inputs: tuple[str, ...]
_ports: tuple[str, ...]
for _name, _inputs, _output, _coupled, _within in (
    ("rates", ("q", "v"), "nu", by_elimination.rates, rates),
    ("velocities", ("q", "nu"), "v", by_elimination.velocities, velocities),
    ("forces", ("q", "tau"), "eps", by_elimination.forces, forces),
    ("forces_of_all", ("q", "tau", "wrenches"), "eps", by_elimination.forces_of_all, forces_of_all),
    ("torques", ("q", "eps"), "tau", by_elimination.torques, torques),
    ("factor", ("q",), "factor", by_elimination.factor, factor),
    ("factor_inverse", ("q",), "factor_inverse", by_elimination.factor_inverse, factor_inverse),
):
    _register(
        _name,
        _inputs,
        _output,
        _coupled,
        _within,
        expression=skip_mimic_joints(ex.DIAGONALIZING[_name]),
        reason=COUPLED,
        on_tree=lambda tree: tree.regrouped,
    )
for _name, _inputs, _output, _coupled, _within, _independent, _ports in (
    (
        "factor_derivatives",
        ("q",),
        "derivatives",
        by_elimination.factor_derivatives,
        factor_derivatives,
        inertia_derivatives.factor_derivatives,
        (),
    ),
    ("factor_rate", ("q", "v"), "factor", by_elimination.factor_rate, factor_rate, inertia_derivatives.factor_rate, ()),
    ("coriolis", ("q", "nu"), "coriolis", by_elimination.coriolis, coriolis, diagonal.coriolis, ()),
    ("motion", ("q", "nu", "tau"), "motion", by_elimination.motion, motion, diagonal.motion, ("wrenches",)),
):
    _allowed = ("nu_rate", "v") if _name == "motion" else ""
    _recursions = _recursion(_coupled, _independent), _within
    _register(_name, _inputs, _output, *_recursions, _allowed, reason=RATES, ports=_ports)
