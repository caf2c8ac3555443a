"""Exact derivatives of any kernel, by differentiating its program: no step sizes, no second implementation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .algorithms.catalogue import ALGORITHMS
from .compiler import loaded, one_of, trace_algorithm
from .diagonal import _structure
from .ir.program import Program
from .kernel import Kernel
from .mechanism import Mechanism, require_mechanism
from .passes.differentiate import MODES, Directions, differentiate
from .trace import inline, trace
from .tree_dynamics import _function


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


def tangent_basis(mech: Mechanism) -> Program:
    """The program of N(q), (nq, nv): the coordinate rates dq/dt = N(q) v, linear in v, differentiated by v."""
    rates, _ = trace_algorithm(ALGORITHMS["coordinate_rates"], mech)
    return differentiate(rates, [Directions(1)], "forward")


# -- second derivatives of inverse dynamics -------------------------------------------------------------


def inverse_dynamics_second_derivatives(mech: Mechanism, q, v, a):
    """(d_qq, d_vv, d_qv, d_aq), each (nv, nv, nv): all second derivatives of joint forces that are not zero.

    d_qq[i, j, k]   along tangent direction k, of the derivative of tau_i along tangent direction j.  The two commute
                    unless j and k belong to one spherical or floating joint; there the order matters
    d_vv[i, j, k]   by v_j and v_k
    d_qv[i, j, k]   along tangent direction j of q and by v_k
    d_aq[i, j, k]   by a_j and along tangent direction k of q: the derivatives of the mass matrix

    The order of results and axes is that of Pinocchio's ComputeRNEASecondOrderDerivatives.
    """
    return _function(mech, second_derivatives_kernel, q)(q, v, a)


def second_derivatives_kernel(mech: Mechanism, dtype: str = "float64", target: str = "cpu") -> Kernel:
    """The kernel behind ``inverse_dynamics_second_derivatives``, with four results.

    The recursion for the first derivatives is differentiated along q; where directions commute half of d_qq is the
    other half.  d_vv follows from the derivatives of the mass matrix.
    """
    require_mechanism(mech)
    algorithm = ALGORITHMS["inverse_dynamics_derivatives"]
    algorithm.check(mech)
    first, log = trace_algorithm(algorithm, mech)
    second = differentiate(first, [Directions(0, basis=tangent_basis(mech))], "forward", value=True)
    structure = _structure(mech)
    rotors = [x for body in mech.bodies if not body.mimic for x in body.armature]

    def assembled(*state: np.ndarray) -> list[np.ndarray]:
        (_, _, mass_matrix), (d_qq, d_vq, d_aq) = inline(second, *state)
        for j, k in zip(*np.triu_indices(mech.nv, 1), strict=True):
            if not structure[j, k].any():
                d_qq[:, j, k] = d_qq[:, k, j]
        links_alone = mass_matrix - np.diag(rotors).astype(object)
        return [d_qq, _by_velocities(links_alone, d_aq, structure), np.swapaxes(d_vq, 1, 2), d_aq]

    name = "inverse_dynamics_second_derivatives"
    program = trace(assembled, first.inputs, ["d_qq", "d_vv", "d_qv", "d_aq"], name)
    return loaded(program, dtype, target, log.sweeps, dict.fromkeys(algorithm.configurations, mech))


def _by_velocities(mass_matrix: np.ndarray, slopes: np.ndarray, structure: np.ndarray) -> np.ndarray:
    """(nv, nv, nv): [i, j, k] is the second derivative of joint force i by velocities j and k.

    Twice the symmetric part of the connection of the mass matrix M, by Koszul's formula: M_ik,j + M_ij,k - M_jk,i
    - [E_j, E_i]_k - [E_k, E_i]_j, with indices lowered by M.  ``slopes`` are M_ij,k; ``structure`` holds the brackets
    of tangent directions.  M is that of the links alone: rotors resist acceleration only.
    """
    n = len(mass_matrix)
    brackets = np.zeros((n, n, n), dtype=object)
    for i, j, m in np.argwhere(structure):
        brackets[i, j] = brackets[i, j] + float(structure[i, j, m]) * mass_matrix[m]
    result = np.zeros((n, n, n), dtype=object)
    for i, j, k in np.ndindex(n, n, n):
        if k <= j:
            spread = slopes[k, i, j] - slopes[j, k, i] + slopes[j, i, k]
            result[i, j, k] = result[i, k, j] = spread - (brackets[j, i, k] + brackets[k, i, j])
    return result
