"""Dynamics of trees: the public functions.  Each compiles its kernel on first use and keeps it with the mechanism.

q is (nq,), v, a and tau are (nv,), each with any leading batch shape; see docs/conventions.md for frames.
All-float32 arguments are computed in float32, everything else in float64.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from .compiler import compile
from .kernel import Kernel
from .mechanism import Mechanism, require_mechanism

_FLOAT32 = np.dtype("float32")
#: An algorithm, one with its options, ("frame_pose", ("link", "tool")), or a function of mechanism and dtype that makes
#: the kernel.
Request = str | tuple[Any, ...] | Callable[[Mechanism, str], Kernel]


def _function(mech: Mechanism, request: Request, first: Any) -> Callable[..., Any]:
    """The function for ``request`` that suits its first argument, from the mechanism's own store or compiled now."""
    key: Any = request if getattr(first, "dtype", None) is not _FLOAT32 else (request, "float32")
    try:
        return mech._kernels[key]
    except (KeyError, AttributeError, TypeError):  # not compiled yet, no mechanism, or an option that is no name
        pass
    return _made(mech, request, key)


def _made(mech: Mechanism, request: Request, key: Any) -> Callable[..., Any]:
    """The function compiled by the first thread that asks for it; others that need this mechanism wait for it."""
    require_mechanism(mech)
    # One lock per process: a forked child must not wait for a thread of its parent.
    with mech._locks.setdefault(os.getpid(), threading.RLock()):
        with suppress(KeyError, TypeError):
            return mech._kernels[key]
        function = mech._kernels[key] = _compiled(mech, request) if key is request else _choosing(mech, request)
        return function


def _compiled(mech: Mechanism, request: Request, dtype: str = "float64") -> Callable[..., Any]:
    if callable(request):
        return request(mech, dtype).function
    name, *options = (request,) if isinstance(request, str) else request
    return compile(name, mech, dtype=dtype, **dict(options)).function


def _choosing(mech: Mechanism, request: Request) -> Callable[..., Any]:
    """A function that computes in float32 if all arguments are float32 or Python's own numbers, else in float64."""
    in_float32 = _compiled(mech, request, "float32")

    def choose(*arrays):
        if all(getattr(x, "dtype", None) == _FLOAT32 or type(x) in (int, float) for x in arrays):
            return in_float32(*arrays)
        return _function(mech, request, None)(*arrays)

    return choose


def inverse_dynamics(mech: Mechanism, q, v, a, wrenches=None):
    """Joint forces (nv,) that give accelerations ``a``; ``wrenches`` (n_links, 6) act on the links, in link frames."""
    if wrenches is None:
        return _function(mech, "inverse_dynamics", q)(q, v, a)
    return _function(mech, "inverse_dynamics_with_wrenches", q)(q, v, a, wrenches)


def forward_dynamics(mech: Mechanism, q, v, tau, wrenches=None, method: str | None = None):
    """Accelerations (nv,) under joint forces ``tau`` and external ``wrenches`` (n_links, 6), in link frames.

    ``method`` picks one of the papers' algorithms, which differ in rounding and cost only: "biased", "bias_free",
    "without_dalembert_forces" (rodriguez1992 Algorithms 3, 1 and 4), "filter_and_smoother" (rodriguez1986 Result 8.1).
    By default "biased" where most joints are revolute about skew axes, else "filter_and_smoother".
    """
    name = "forward_dynamics" if wrenches is None else "forward_dynamics_with_wrenches"
    request = name if method is None else (name, ("method", method))
    return (
        _function(mech, request, q)(q, v, tau) if wrenches is None else _function(mech, request, q)(q, v, tau, wrenches)
    )


def forward_link_accelerations(mech: Mechanism, q, v, tau):
    """(n_links, 6): accelerations of the link origins under ``tau`` as an inertial observer sees them, in link axes
    (rodriguez1992 Algorithm 2)."""
    return _function(mech, "forward_link_accelerations", q)(q, v, tau)


def acceleration_parts(mech: Mechanism, q, v, tau):
    """(3, nv): accelerations due to joint forces, to gyroscopic forces, and to bias accelerations with gravity; their
    sum is forward dynamics (rodriguez1986 10.2).  The split belongs to the link origins."""
    return _function(mech, "acceleration_parts", q)(q, v, tau)


def mass_matrix(mech: Mechanism, q):
    """(nv, nv), symmetric, armature included."""
    return _function(mech, "mass_matrix", q)(q)


def mass_matrix_inverse(mech: Mechanism, q):
    """(nv, nv), from its closed-form factors, without forming or inverting the mass matrix."""
    return _function(mech, "mass_matrix_inverse", q)(q)


def mass_matrix_derivatives(mech: Mechanism, q):
    """(nv, nv, nv): [i, j, k] is dM_ij along tangent direction k, in closed form (jain1995 6.12)."""
    return _function(mech, "mass_matrix_derivatives", q)(q)


def bias_force(mech: Mechanism, q, v):
    """(nv,): Coriolis, centrifugal and gravity forces; inverse dynamics without acceleration."""
    return _function(mech, "bias_force", q)(q, v)


def gravity_force(mech: Mechanism, q):
    """(nv,): joint forces that hold the mechanism still; the gradient of the potential energy."""
    return _function(mech, "gravity_force", q)(q)


def coriolis_matrix(mech: Mechanism, q, v):
    """(nv, nv): C with C v = bias_force without gravity and dM/dt - 2 C skew."""
    return _function(mech, "coriolis_matrix", q)(q, v)


def link_poses(mech: Mechanism, q):
    """(n_links, 4, 4): every link frame in the world."""
    return _function(mech, "link_poses", q)(q)


def frame_pose(mech: Mechanism, q, name: str):
    """(4, 4): the named link or welded frame in the world."""
    return _function(mech, ("frame_pose", ("link", name)), q)(q)


def link_velocities(mech: Mechanism, q, v):
    """(n_links, 6): [omega; v] of every link frame, in its own axes at its origin."""
    return _function(mech, "link_velocities", q)(q, v)


def link_accelerations(mech: Mechanism, q, v, a):
    """(n_links, 6): time derivative of the components of ``link_velocities``; gravity does not enter."""
    return _function(mech, "link_accelerations", q)(q, v, a)


def jacobian(mech: Mechanism, q, link: str, frame: str = "link"):
    """(6, nv): J with [omega; v] = J v of a link or welded frame.

    frame="link": in its own axes at its origin; "world": in world axes at the world's origin;
    "world_aligned": in world axes at its own origin.
    """
    return _function(mech, ("jacobian", ("link", link), ("frame", frame)), q)(q)


def operational_inertia(mech: Mechanism, q, link: str):
    """(6, 6): the inverse of J M^-1 J*, in the link's axes at its origin; needs six freedoms on the way to it."""
    return _function(mech, ("operational_inertia", ("link", link)), q)(q)


def kinetic_energy(mech: Mechanism, q, v):
    """Scalar per state; rotors (armature) included."""
    return _function(mech, "kinetic_energy", q)(q, v)


def potential_energy(mech: Mechanism, q):
    """Scalar per state: of the moving links in the field of gravity, zero at the world's origin."""
    return _function(mech, "potential_energy", q)(q)


def center_of_mass(mech: Mechanism, q):
    """(3,): of the moving links, in the world."""
    return _function(mech, "center_of_mass", q)(q)


def momentum(mech: Mechanism, q, v):
    """(6,): [angular momentum about the world's origin; linear momentum], in world axes."""
    return _function(mech, "momentum", q)(q, v)


def coordinate_rates(mech: Mechanism, q, v):
    """(nq,): dq/dt = N(q) v."""
    return _function(mech, "coordinate_rates", q)(q, v)


def integrate(mech: Mechanism, q, v, dt):
    """(nq,): the configuration reached from q by moving with constant v for dt, exact on the manifold."""
    return _function(mech, "integrate", q)(q, v, dt)


def difference(mech: Mechanism, q0, q1):
    """(nv,): the constant v that leads from q0 to q1 in unit time."""
    return _function(mech, "difference", q0)(q0, q1)


def neutral(mech: Mechanism) -> np.ndarray:
    """(nq,): the configuration in which every joint's two sides coincide."""
    require_mechanism(mech)
    return np.array([x for body in mech.bodies if not body.mimic for x in body.kind.neutral()])


def random_state(
    mech: Mechanism, rng: np.random.Generator, shape: tuple[int, ...] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Random (q, v) of shape ``shape + (nq,)``, ``shape + (nv,)``; valid quaternions, normal velocities.

    Joint limits are not looked at.
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
    return q, rng.normal(size=(*shape, mech.nv))
