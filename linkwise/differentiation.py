"""Exact derivatives of any kernel, by differentiating its program: no step sizes, no second implementation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .compiler import loaded, tangent_basis
from .kernel import Kernel
from .kernel_store import kernel_function
from .mechanism import Mechanism, one_of
from .passes.differentiate import MODES, Directions, differentiate


def jacobian_of(
    kernel: Kernel,
    wrt: str | Sequence[str] = "q",
    mode: str = "auto",
    tangent: bool = True,
    value: bool = False,
) -> Kernel:
    """A kernel with the same inputs whose result is the derivative of ``kernel``'s: ``batch + core + (n,)``.

    wrt       the input to differentiate by (``kernel.inputs`` names them), or several of them: their columns follow
              each other in the last axis, in the order given; an input of several axes has its elements in C order
    mode      "forward" (cheap for few columns), "reverse" (cheap for few rows), or "auto": the one with fewer
              operations
    tangent   configurations (q, q0, q1) move along tangent directions, dq = N(q) e_k: nv columns, one for each joint
              velocity.  False: plain partial derivatives by the nq coordinates, each while the others stand still
              (a quaternion then leaves unit length, which the kernels allow)
    value     the result is a pair: what ``kernel`` itself gives, and its derivative

    ``sparsity`` of the new kernel tells which entries are zero for every input.  Derivatives of derivatives are taken
    the same way; along tangent directions [..., j, k] is then the derivative along k of the derivative along j, which
    differs from [..., k, j] where j and k belong to one freely turning joint.  If ``kernel`` itself has several
    results, the last one is differentiated.

    At kinks the derivative is that of the branch taken; where the kernel has none (the root of 0), it is infinite or
    not a number.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"jacobian_of takes a kernel such as linkwise.compile('mass_matrix', mech), got {kernel!r}")
    names = _inputs(kernel, (wrt,) if isinstance(wrt, str) else tuple(wrt))
    one_of("mode", mode, MODES)
    directions = [_directions(kernel, name, tangent) for name in names]
    last = len(kernel.traced.outputs) - 1
    by = "_and_".join(re.sub(r"\W", "_", name) for name in names)
    called = tuple(f"{name}_by_{by}" for name in (kernel.name, kernel.traced.outputs[last].name))
    program = differentiate(kernel.traced, directions, mode, last, value, (called[0], called[1]))
    return loaded(program, kernel.dtype.name, kernel.target, kernel.sweeps, kernel.configurations)


def _inputs(kernel: Kernel, names: Sequence[Any]) -> tuple[str, ...]:
    """The names, checked."""
    if not names:
        raise ValueError(f"wrt names no input of {kernel.name}: there is {', '.join(kernel.inputs) or 'none'}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"wrt is the name of an input or several names, got {name!r}")
        one_of(f"input of {kernel.name}", name, kernel.inputs, f"there is {', '.join(kernel.inputs) or 'none'}")
        if names.count(name) > 1:
            raise ValueError(f"wrt names {name!r} twice")
    return tuple(names)


def _directions(kernel: Kernel, name: str, tangent: bool) -> Directions:
    """How an input moves."""
    array = kernel.inputs.index(name)
    basis = tangent_basis(kernel.configurations[name]) if tangent and name in kernel.configurations else None
    return Directions(array, basis=basis)


# -- second derivatives of inverse dynamics -------------------------------------------------------------


def inverse_dynamics_second_derivatives(mech: Mechanism, q, v, a):
    """(d_qq, d_vv, d_qv, d_aq), each (nv, nv, nv): all second derivatives of joint forces that are not zero.

    d_qq[i, j, k]   along tangent direction k, of the derivative of tau_i along tangent direction j.  The two commute
                    unless j and k belong to one spherical or floating joint; there the order matters
    d_vv[i, j, k]   by v_j and v_k
    d_qv[i, j, k]   along tangent direction j of q and by v_k
    d_aq[i, j, k]   by a_j and along tangent direction k of q: the derivatives of the mass matrix

    The recursion for the first derivatives is differentiated along q; d_vv follows from d_aq.  The order of results and
    axes is that of Pinocchio's ComputeRNEASecondOrderDerivatives.
    """
    return kernel_function(mech, "inverse_dynamics_second_derivatives", q)(q, v, a)
