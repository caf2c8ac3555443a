"""Dynamics of trees: the public functions.  Each compiles its kernel on first use and keeps it with the mechanism.

q is (nq,), v, a and tau are (nv,), each with any leading batch shape; see docs/conventions.md for frames.
All-float32 arguments are computed in float32, everything else in float64.
"""

from __future__ import annotations

import operator

import numpy as np

from ..compiler.store import kernel_function
from ..mechanism import Mechanism, require_mechanism
from ..mechanism.sampling import within_range_of


def inverse_dynamics(mech: Mechanism, q, v, a, wrenches=None):
    """Joint forces (nv,) that give accelerations ``a``; ``wrenches`` (n_links, 6) act on the links, in link frames."""
    if wrenches is None:
        return kernel_function(mech, "inverse_dynamics", q)(q, v, a)
    return kernel_function(mech, "inverse_dynamics_with_wrenches", q)(q, v, a, wrenches)


def joint_wrenches(mech: Mechanism, q, v, a, wrenches=None):
    """(n_links, 6): [moment; force] that each moving joint transmits onto its link (the reaction forces, together with
    the joint's own), at the link's origin, in link axes; ``wrenches`` as in inverse dynamics.

    Along the freedoms of a joint it is the joint force without the part of the rotor: H f = tau - armature * a.
    """
    name = "joint_wrenches" if wrenches is None else "joint_wrenches_with_wrenches"
    function = kernel_function(mech, name, q)
    return function(q, v, a) if wrenches is None else function(q, v, a, wrenches)


def forward_dynamics(mech: Mechanism, q, v, tau, wrenches=None, method: str | None = None):
    """Accelerations (nv,) under joint forces ``tau`` and external ``wrenches`` (n_links, 6), in link frames.

    ``method`` picks one of the papers' algorithms, which differ in rounding and cost only: "biased", "bias_free",
    "without_dalembert_forces" (rodriguez1992 Algorithms 3, 1 and 4), "filter_and_smoother" (rodriguez1986 Result 8.1).
    By default "biased" where most joints are revolute about skew axes, else "filter_and_smoother".
    """
    name = "forward_dynamics" if wrenches is None else "forward_dynamics_with_wrenches"
    function = kernel_function(mech, name if method is None else (name, ("method", method)), q)
    return function(q, v, tau) if wrenches is None else function(q, v, tau, wrenches)


def forward_link_accelerations(mech: Mechanism, q, v, tau):
    """(n_links, 6): accelerations of the link origins under ``tau`` as an inertial observer sees them, in link axes
    (rodriguez1992 Algorithm 2)."""
    return kernel_function(mech, "forward_link_accelerations", q)(q, v, tau)


def acceleration_parts(mech: Mechanism, q, v, tau):
    """(3, nv): accelerations due to joint forces, to gyroscopic forces, and to bias accelerations with gravity; their
    sum is forward dynamics (rodriguez1986 10.2).  The split belongs to the link origins."""
    return kernel_function(mech, "acceleration_parts", q)(q, v, tau)


def mass_matrix(mech: Mechanism, q):
    """(nv, nv), symmetric, armature included."""
    return kernel_function(mech, "mass_matrix", q)(q)


def mass_matrix_inverse(mech: Mechanism, q):
    """(nv, nv), from its closed-form factors, without forming or inverting the mass matrix."""
    return kernel_function(mech, "mass_matrix_inverse", q)(q)


def mass_matrix_derivatives(mech: Mechanism, q):
    """(nv, nv, nv): [i, j, k] is dM_ij along tangent direction k, in closed form (jain1995 6.12)."""
    return kernel_function(mech, "mass_matrix_derivatives", q)(q)


def bias_force(mech: Mechanism, q, v):
    """(nv,): Coriolis, centrifugal and gravity forces; inverse dynamics without acceleration."""
    return kernel_function(mech, "bias_force", q)(q, v)


def gravity_force(mech: Mechanism, q):
    """(nv,): joint forces that hold the mechanism still; the gradient of the potential energy."""
    return kernel_function(mech, "gravity_force", q)(q)


def coriolis_matrix(mech: Mechanism, q, v):
    """(nv, nv): C with C v = bias_force without gravity and dM/dt - 2 C skew."""
    return kernel_function(mech, "coriolis_matrix", q)(q, v)


def link_poses(mech: Mechanism, q):
    """(n_links, 4, 4): every link frame in the world."""
    return kernel_function(mech, "link_poses", q)(q)


def frame_pose(mech: Mechanism, q, name: str):
    """(4, 4): the named link or welded frame in the world."""
    return kernel_function(mech, ("frame_pose", ("link", name)), q)(q)


def link_velocities(mech: Mechanism, q, v):
    """(n_links, 6): [omega; v] of every link frame, in its own axes at its origin."""
    return kernel_function(mech, "link_velocities", q)(q, v)


def link_accelerations(mech: Mechanism, q, v, a):
    """(n_links, 6): time derivative of the components of ``link_velocities``; gravity does not enter."""
    return kernel_function(mech, "link_accelerations", q)(q, v, a)


def jacobian(mech: Mechanism, q, link: str, frame: str = "link"):
    """(6, nv): J with [omega; v] = J v of a link or welded frame.

    frame="link": in its own axes at its origin; "world": in world axes at the world's origin;
    "world_aligned": in world axes at its own origin.
    """
    return kernel_function(mech, ("jacobian", ("link", link), ("frame", frame)), q)(q)


def operational_inertia(mech: Mechanism, q, link: str):
    """(6, 6): the inverse of J M^-1 J*, in the link's axes at its origin; needs six freedoms on the way to it."""
    return kernel_function(mech, ("operational_inertia", ("link", link)), q)(q)


def kinetic_energy(mech: Mechanism, q, v):
    """Scalar per state; rotors (armature) included."""
    return kernel_function(mech, "kinetic_energy", q)(q, v)


def potential_energy(mech: Mechanism, q):
    """Scalar per state: of the moving links in the field of gravity, zero at the world's origin."""
    return kernel_function(mech, "potential_energy", q)(q)


def center_of_mass(mech: Mechanism, q):
    """(3,): of the moving links, in the world."""
    return kernel_function(mech, "center_of_mass", q)(q)


def momentum(mech: Mechanism, q, v):
    """(6,): [angular momentum about the world's origin; linear momentum], in world axes."""
    return kernel_function(mech, "momentum", q)(q, v)


def coordinate_rates(mech: Mechanism, q, v):
    """(nq,): dq/dt = N(q) v."""
    return kernel_function(mech, "coordinate_rates", q)(q, v)


def integrate(mech: Mechanism, q, v, dt):
    """(nq,): the configuration reached from q by moving with constant v for dt, exact on the manifold."""
    return kernel_function(mech, "integrate", q)(q, v, dt)


def difference(mech: Mechanism, q0, q1):
    """(nv,): the constant v that leads from q0 to q1 in unit time."""
    return kernel_function(mech, "difference", q0)(q0, q1)


def neutral(mech: Mechanism) -> np.ndarray:
    """(nq,): the configuration in which every joint's two sides coincide."""
    require_mechanism(mech)
    return np.array([x for body in mech.bodies if not body.mimic for x in body.kind.neutral()])


def random_state(
    mech: Mechanism, rng: np.random.Generator, shape: tuple[int, ...] = (), within_limits: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Random (q, v) of shape ``shape + (nq,)``, ``shape + (nv,)``; valid quaternions, normal velocities.

    within_limits   keep to ``mech.q_lower``, ``mech.q_upper`` and ``mech.v_limit``: uniform where a range is finite
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
