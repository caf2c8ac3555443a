"""Dynamics of trees: the public functions.  Each compiles its kernel on first use and keeps it with the mechanism.

q is (nq,), v, a and tau are (nv,), each with any leading batch shape; see docs/conventions.md for frames.
All-float32 arguments are computed in float32, everything else in float64.
"""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.store import of_algorithm
from ..mechanism import Mechanism, require_mechanism
from ..mechanism.sampling import within_range_of
from .states import Float64Array


@of_algorithm("inverse_dynamics")
def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: ArrayLike | None = None
) -> Float64Array:
    """Joint forces (nv,) that give accelerations ``a``; ``wrenches`` (n_links, 6) act on the links, in link frames."""
    ...


@of_algorithm("joint_wrenches")
def joint_wrenches(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: ArrayLike | None = None
) -> Float64Array:
    """(n_links, 6): [moment; force] that each moving joint transmits onto its link (the reaction forces, together with
    the joint's own), at the link's origin, in link axes; ``wrenches`` as in inverse dynamics.

    Along the degrees of freedom of a joint it is the joint force but for the rotor's part: H f = tau - armature * a.
    """
    ...


@of_algorithm("forward_dynamics")
def forward_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    method: str | None = None,
) -> Float64Array:
    """Accelerations (nv,) under joint forces ``tau`` and external ``wrenches`` (n_links, 6), in link frames.

    ``method`` picks one of the papers' algorithms, which differ in rounding and cost only: "biased", "bias_free",
    "without_dalembert_forces" (rodriguez1992 Algorithms 3, 1 and 4), "filter_and_smoother" (rodriguez1986 Result 8.1,
    known as the articulated-body algorithm), "two_sweeps" (inwards and outwards, none for velocities before;
    rodriguez1992, end of VII-D), "composite_bodies" (the mass matrix, factored; Walker and Orin 1982).  By default
    "composite_bodies" for arms of up to seven revolute joints, "biased" where most joints are revolute about skew axes,
    "bias_free" where joints mimic others (the only one that takes coupled joints), else "filter_and_smoother".
    """
    ...


@of_algorithm("forward_link_accelerations")
def forward_link_accelerations(mech: Mechanism, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Float64Array:
    """(n_links, 6): accelerations of the link origins under ``tau`` as an inertial observer sees them, in link axes
    (rodriguez1992 Algorithm 2)."""
    ...


@of_algorithm("acceleration_parts")
def acceleration_parts(mech: Mechanism, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Float64Array:
    """(3, nv): accelerations due to joint forces, to gyroscopic forces, and to bias accelerations with gravity; their
    sum is forward dynamics (rodriguez1986 10.2).  The split belongs to the link origins."""
    ...


@of_algorithm("mass_matrix")
def mass_matrix(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(nv, nv), symmetric, armature included."""
    ...


@of_algorithm("mass_matrix_inverse")
def mass_matrix_inverse(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(nv, nv), from its closed-form factors, without forming or inverting the mass matrix; where joints mimic others,
    by elimination of it."""
    ...


@of_algorithm("mass_matrix_derivatives")
def mass_matrix_derivatives(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(nv, nv, nv): [i, j, k] is dM_ij along tangent direction k, in closed form (jain1995 6.12)."""
    ...


@of_algorithm("bias_force")
def bias_force(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(nv,): Coriolis, centrifugal and gravity forces; inverse dynamics without acceleration.

    Like the mass matrix M it is a term of the equations of motion, M a + bias_force = tau - G* lambda, and the same
    with loops (whose forces are -G* lambda) and without; the forces that a closed mechanism needs are
    ``closed.inverse_dynamics``.
    """
    ...


@of_algorithm("gravity_force")
def gravity_force(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(nv,): the gradient of the potential energy; joint forces that hold a mechanism without loops still.

    With loops it is the same term of the equations of motion (see ``bias_force``), but holds the spanning tree: what
    holds the closed mechanism, with fewer motors, is ``closed.static_forces``.
    """
    ...


@of_algorithm("static_forces")
def static_forces(mech: Mechanism, q: ArrayLike, wrenches: ArrayLike | None = None) -> Float64Array:
    """(nv,): joint forces that hold the mechanism still against gravity and ``wrenches`` (n_links, 6) on the links, in
    link frames; ``gravity_force`` without them.  Of loops, see ``closed.static_forces``."""
    ...


@of_algorithm("coriolis_matrix")
def coriolis_matrix(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(nv, nv): C with C v = bias_force without gravity and dM/dt - 2 C skew."""
    ...


@of_algorithm("link_poses")
def link_poses(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(n_links, 4, 4): every link frame in the world."""
    ...


@of_algorithm("frame_pose")
def frame_pose(mech: Mechanism, q: ArrayLike, link: str | None = None, *, name: str | None = None) -> Float64Array:
    """(4, 4): the named link or welded frame in the world (``name`` is another word for ``link``)."""
    ...


@of_algorithm("link_velocities")
def link_velocities(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(n_links, 6): [omega; v] of every link frame, in its own axes at its origin."""
    ...


@of_algorithm("link_accelerations")
def link_accelerations(mech: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Float64Array:
    """(n_links, 6): time derivative of the components of ``link_velocities``; gravity does not enter."""
    ...


@of_algorithm("jacobian")
def jacobian(mech: Mechanism, q: ArrayLike, link: str, frame: str = "link") -> Float64Array:
    """(6, nv): J with [omega; v] = J v of a link or welded frame.

    frame="link": in its own axes at its origin; "world": in world axes at the world's origin;
    "world_aligned": in world axes at its own origin.
    """
    ...


@of_algorithm("kinetic_energy")
def kinetic_energy(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """Scalar per state; rotors (armature) included."""
    ...


@of_algorithm("potential_energy")
def potential_energy(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """Scalar per state: of the moving links in the field of gravity, zero at the world's origin."""
    ...


@of_algorithm("center_of_mass")
def center_of_mass(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(3,): of the moving links, in the world."""
    ...


@of_algorithm("momentum")
def momentum(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(6,): [angular momentum about the world's origin; linear momentum], in world axes."""
    ...


@of_algorithm("coordinate_rates")
def coordinate_rates(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(nq,): dq/dt = N(q) v."""
    ...


@of_algorithm("integrate")
def integrate(mech: Mechanism, q: ArrayLike, v: ArrayLike, dt: ArrayLike) -> Float64Array:
    """(nq,): the configuration reached from q by moving with constant v for dt, exact on the manifold."""
    ...


@of_algorithm("difference")
def difference(mech: Mechanism, q0: ArrayLike, q1: ArrayLike) -> Float64Array:
    """(nv,): the constant v that leads from q0 to q1 in unit time."""
    ...


def interpolate(mech: Mechanism, q0: ArrayLike, q1: ArrayLike, s: ArrayLike) -> Float64Array:
    """(nq,): between q0, where s = 0, and q1, where s = 1, along the motion with constant v that leads from the one to
    the other; beyond them too.  All broadcast: s of shape (100, 1) gives a path of 100 configurations or more."""
    return integrate(mech, q0, difference(mech, q0, q1), s)


def neutral(mech: Mechanism) -> Float64Array:
    """(nq,): the configuration in which every joint's two sides coincide."""
    require_mechanism(mech)
    return np.array([x for body in mech.bodies if not body.mimic for x in body.kind.neutral()])


def random_state(
    mech: Mechanism, rng: np.random.Generator, shape: tuple[int, ...] = (), within_limits: bool = False
) -> tuple[Float64Array, Float64Array]:
    """Random (q, v) of shape ``shape + (nq,)``, ``shape + (nv,)``; valid quaternions, normal velocities.  Loops are not
    looked at and are open there: ``closed.assemble`` closes them, and ``closed.project`` then makes velocities fit.

    within_limits   keep to ``mech.q_lower``, ``mech.q_upper``, ``mech.v_limit`` and the limits of mimic joints: uniform
                    where a range is finite
    """
    require_mechanism(mech)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator such as np.random.default_rng(0), got {rng!r}")
    try:
        shape = tuple(operator.index(n) for n in ((shape,) if isinstance(shape, int) else shape))
    except TypeError:
        raise TypeError(f"shape must be a tuple of integers, got {shape!r}") from None
    parts = [body.kind.random(rng, shape) for body in mech.bodies if not body.mimic]
    q = np.concatenate(parts, axis=-1) if parts else np.zeros((*shape, 0))
    v = rng.normal(size=(*shape, mech.nv))
    return within_range_of(mech, rng, q, v) if within_limits else (q, v)
