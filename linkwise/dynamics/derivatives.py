"""Derivatives of tree dynamics: the public functions.  Derivatives in q are along tangent directions (see
docs/conventions.md); everything is exact, by recursion, and batched like the functions themselves."""

from __future__ import annotations

from typing import Any

from ..compiler.store import kernel_function
from ..mechanics.algorithms.catalogue import WITH_WRENCHES
from ..mechanism import Mechanism


def inverse_dynamics_derivatives(mech: Mechanism, q, v, a, wrenches=None):
    """(d_q, d_v, d_a), each (nv, nv): row i has the derivatives of joint force i; d_a is the mass matrix.

    The external ``wrenches`` (n_links, 6) stay as they are in their link frames.
    """
    return _three(mech, "inverse_dynamics_derivatives", q, v, a, wrenches)


def forward_dynamics_derivatives(mech: Mechanism, q, v, tau, wrenches=None):
    """(d_q, d_v, d_tau), each (nv, nv): row i has the derivatives of acceleration i; d_tau is the inverse mass matrix.

    The external ``wrenches`` (n_links, 6) stay as they are in their link frames.
    """
    return _three(mech, "forward_dynamics_derivatives", q, v, tau, wrenches)


def jacobian_derivatives(mech: Mechanism, q, link: str, frame: str = "link"):
    """(6, nv, nv): [:, j, k] is the change of column j of ``lw.jacobian`` along tangent direction k, for the same
    ``link`` and ``frame`` (spencer2004 Section 4.4.1)."""
    return kernel_function(mech, ("jacobian_derivatives", ("link", link), ("frame", frame)), q)(q)


def jacobian_rate(mech: Mechanism, q, v, link: str, frame: str = "link"):
    """(6, nv): dJ/dt of ``lw.jacobian`` while the mechanism moves with v (spencer2004 Section 4.4.1)."""
    return kernel_function(mech, ("jacobian_rate", ("link", link), ("frame", frame)), q)(q, v)


def jacobian_second_rate(mech: Mechanism, q, v, a, link: str, frame: str = "link"):
    """(6, nv): d2J/dt2 of ``lw.jacobian`` while the mechanism moves with v and v changes by a (spencer2004 Section
    4.4.1)."""
    return kernel_function(mech, ("jacobian_second_rate", ("link", link), ("frame", frame)), q)(q, v, a)


def _three(mech: Mechanism, name: str, q: Any, v: Any, u: Any, wrenches: Any):
    if wrenches is None:
        partials = kernel_function(mech, name, q)(q, v, u)
    else:
        partials = kernel_function(mech, WITH_WRENCHES[name], q)(q, v, u, wrenches)
    return partials[..., 0, :, :], partials[..., 1, :, :], partials[..., 2, :, :]
