"""Derivatives: of dynamics by recursion, and of any kernel by differentiating its program.

Derivatives in q are along tangent directions (see docs/conventions.md); everything is exact, without step sizes, and
batched like the functions themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.ir.program import Array as InputArray
from ..compiler.ir.program import Program
from ..compiler.kernel import Kernel
from ..compiler.passes.differentiate import MODES, Directions, differentiate, push_forward
from ..compiler.passes.drop_unread import drop_unread
from ..compiler.passes.unroll import unroll
from ..compiler.pipeline import compile, loaded, tangent_basis, trace_algorithm
from ..compiler.recipes import remembered_program
from ..compiler.registry import compile_instead
from ..compiler.rolling.choice import may_pay
from ..compiler.store import WRENCHES, kernel_function, of_algorithm, stored
from ..compiler.trace import inline, trace
from ..mechanics.algorithms.catalogue import ALGORITHMS, CONFIGURATION_FIRST
from ..mechanics.algorithms.dynamics_derivatives import derive_second
from ..mechanics.algorithms.integration import METHODS
from ..mechanism import Mechanism, one_of
from .settings import ForwardDerivativesSettings, InverseDerivativesSettings
from .states import ByJoint, Float64Array

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _three(partials: Any) -> tuple[Float64Array, Float64Array, Float64Array]:
    if type(partials) is tuple:  # of mechanisms with constraints
        return partials
    return partials[..., 0, :, :], partials[..., 1, :, :], partials[..., 2, :, :]


def _solving() -> ModuleType:
    from . import motion_and_forces  # here, so that importing the package stays quick

    return motion_and_forces


@of_algorithm(
    "inverse_dynamics_derivatives",
    gives=_three,
    general=lambda: _solving().inverse_dynamics_derivatives,
    settings=InverseDerivativesSettings,
)
def inverse_dynamics_derivatives(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    a: ByJoint | None = None,
    wrenches: ArrayLike | None = None,
    **settings: Unpack[InverseDerivativesSettings],
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """(d_q, d_v, d_a), each (nv, nv): row i has the derivatives of joint force i of ``lw.inverse_dynamics``, without
    springs and other force elements (``forces="none"``); d_a is the mass matrix without constraints.

    With constraints these are derivatives of the least forces of the ``actuated`` joints (default: all), which must
    drive all degrees of freedom.  q and v are projected by ``lw.constraints.project``, and a onto the nearest possible
    accelerations.  The external ``wrenches`` (n_links, 6) are constant in their link
    frames; ``active``, ``forces``, ``ctrl`` and ``activation`` are those of ``lw.inverse_dynamics``.
    """
    if not settings:
        if wrenches is not None:
            return _three(
                kernel_function(mech, ("inverse_dynamics_derivatives", ("ports", ("wrenches",))))(q, v, a, wrenches)
            )
        return _three(kernel_function(mech, "inverse_dynamics_derivatives")(q, v, a))
    return _solving().inverse_dynamics_derivatives(mech, q, v, a, wrenches, **settings)


@of_algorithm(
    "forward_dynamics_derivatives",
    gives=_three,
    general=lambda: _solving().forward_dynamics_derivatives,
    settings=ForwardDerivativesSettings,
)
def forward_dynamics_derivatives(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    wrenches: ArrayLike | None = None,
    **settings: Unpack[ForwardDerivativesSettings],
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """(d_q, d_v, d_tau), each (nv, nv): row i has the derivatives of acceleration i of ``lw.forward_dynamics``, without
    springs and other force elements (``forces="none"``); d_tau is the inverse mass matrix without constraints.

    With constraints, changes of q and v are projected onto allowed ones by ``lw.constraints.project``, q first: these
    are derivatives of ``forward_dynamics(mech, *project(mech, q, v), tau)``, the lower half of [Df] P (spencer2004
    4.4), and depend on no unit.  d_tau is K (K* M K)^-1 K*.  A ``MechanismError`` reports open loops, inconsistent
    velocities and singular positions.  The external ``wrenches`` (n_links, 6) are constant in their link frames;
    ``active``, ``forces``, ``ctrl`` and ``activation`` are those of ``lw.forward_dynamics``.  With ``active`` changes
    are projected onto what those constraints allow, by the sizes of the whole mechanism.
    """
    if not settings:
        if wrenches is not None:
            return _three(
                kernel_function(mech, ("forward_dynamics_derivatives", ("ports", ("wrenches",))))(q, v, tau, wrenches)
            )
        return _three(kernel_function(mech, "forward_dynamics_derivatives")(q, v, tau))
    return _solving().forward_dynamics_derivatives(mech, q, v, tau, wrenches, **settings)


def _two(partials: Float64Array) -> tuple[Float64Array, Float64Array]:
    return partials[..., 0, :, :], partials[..., 1, :, :]


@of_algorithm("difference_derivatives", gives=_two)
def difference_derivatives(mech: Mechanism, q0: ArrayLike, q1: ArrayLike) -> tuple[Float64Array, Float64Array]:
    """(d_q0, d_q1), each (nv, nv): derivatives of ``lw.difference`` along tangent directions of q0 and of q1."""
    return _two(kernel_function(mech, "difference_derivatives")(q0, q1))


@of_algorithm("integrate_derivatives", gives=_two)
def integrate_derivatives(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, dt: ArrayLike
) -> tuple[Float64Array, Float64Array]:
    """(d_q, d_v), each (nv, nv): tangent motion of the result of ``lw.integrate``, per unit tangent motion of q and per
    v."""
    return _two(kernel_function(mech, "integrate_derivatives")(q, v, dt))


@of_algorithm("jacobian_derivatives")
def jacobian_derivatives(mech: Mechanism, q: ArrayLike, link: str, frame: str = "link") -> Float64Array:
    """(6, nv, nv): [:, j, k] is the change of column j of ``lw.jacobian`` along tangent direction k, for the same
    ``link`` and ``frame`` (spencer2004 Section 4.4.1)."""
    return kernel_function(mech, ("jacobian_derivatives", ("link", link), ("frame", frame)))(q)


@of_algorithm("jacobian_rate")
def jacobian_rate(mech: Mechanism, q: ArrayLike, v: ArrayLike, link: str, frame: str = "link") -> Float64Array:
    """(6, nv): dJ/dt of ``lw.jacobian`` while the mechanism moves with v (spencer2004 Section 4.4.1)."""
    return kernel_function(mech, ("jacobian_rate", ("link", link), ("frame", frame)))(q, v)


@of_algorithm("jacobian_second_rate")
def jacobian_second_rate(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike, link: str, frame: str = "link"
) -> Float64Array:
    """(6, nv): d2J/dt2 of ``lw.jacobian`` while the mechanism moves with v and v changes by a (spencer2004 Section
    4.4.1)."""
    return kernel_function(mech, ("jacobian_second_rate", ("link", link), ("frame", frame)))(q, v, a)


@of_algorithm("inverse_dynamics_second_derivatives")
def inverse_dynamics_second_derivatives(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    forces: Any = "none",
    ctrl: ArrayLike | Mapping[str, Any] | None = None,
    activation: ArrayLike | None = None,
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """(d_qq, d_vv, d_qv, d_aq), each (nv, nv, nv): all second derivatives of joint forces that are not zero.

    d_qq[i, j, k]   along tangent direction k, of the derivative of tau_i along tangent direction j.  The two commute
                    unless j and k belong to one spherical or floating joint; there the order matters
    d_vv[i, j, k]   by v_j and v_k
    d_qv[i, j, k]   along tangent direction j of q and by v_k
    d_aq[i, j, k]   by a_j and along tangent direction k of q: the derivatives of the mass matrix
    forces, ctrl, activation   active force elements, as for ``lw.inverse_dynamics``: their forces are subtracted from
                    the joint forces

    The recursion for the first derivatives is differentiated along q; d_vv follows from d_aq.  With loops it
    runs once for each direction.  The order of results and axes is that of Pinocchio's
    ComputeRNEASecondOrderDerivatives.
    """
    if stored(mech, _needs_directions, lambda: _needs_directions(mech)):
        second = _second_by_directions(mech, q, v, a)
    else:
        second = kernel_function(mech, "inverse_dynamics_second_derivatives")(q, v, a)
    if forces == "none" and ctrl is activation is None:
        return second
    return _solving().subtract_force_second_derivatives(mech, q, v, second, forces, ctrl, activation)


def _needs_directions(mech: Mechanism) -> bool:
    """Whether all columns of the second derivatives in one program would take too long to compile."""
    return not mech.loops and may_pay(mech.n_links, None) and _first(mech, "float64", ()).traced.has_loops


def _first(mech: Mechanism, dtype: str, parameters: Sequence[Any]) -> Kernel:
    return compile("inverse_dynamics_derivatives", mech, dtype, parameters=parameters)


def _change_of_first(mech: Mechanism, dtype: str, parameters: Sequence[Any]) -> Kernel:
    return jvp_of(_first(mech, dtype, parameters), "q")


def _second_by_directions(
    mech: Mechanism, *state: ArrayLike
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """The second derivatives of inverse dynamics, by differentiating the first derivatives along one direction at a
    time."""
    q, v, a = (np.asarray(x)[..., None, :] for x in state)
    changes = kernel_function(mech, _change_of_first)(q, v, a, np.eye(mech.nv, dtype=q.dtype))
    mass = kernel_function(mech, "inverse_dynamics_derivatives")(*state)[..., 2, :, :]
    rotors = [body.armature for body in mech.bodies if not body.mimic]
    links_alone = mass - np.diag(np.concatenate(rotors))
    along_last = np.moveaxis(changes, (-4, -3), (-1, 0))
    d_qq, d_vv, d_qv, d_aq = derive_second(along_last, links_alone, mech.coordinates.structure_constants)
    return d_qq, d_vv, d_qv, d_aq


@compile_instead("'rk4_step_derivatives', 'semi_implicit_step_derivatives' or that of another method")
def step_derivatives(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    dt: ArrayLike,
    method: str = "rk4",
    wrenches: ArrayLike | None = None,
) -> tuple[Float64Array, Float64Array]:
    """(A, B), (2 nv, 2 nv) and (2 nv, nv): derivatives of the state after a step of dt by the state before it and by
    tau.

    The step is that of ``rollout`` by ``method`` without force elements (``mech.with_acting(False)``), under constant
    joint forces and ``wrenches`` (n_links, 6).  Rows and columns are (q, v), those of q along
    tangent directions: dx_next = A dx + B dtau, where small changes of configurations are steps ``difference`` from one
    to the other.
    """
    name = f"{one_of('method', method, METHODS)}_step_derivatives"
    if wrenches is not None:
        return kernel_function(mech, (name, WRENCHES))(q, v, tau, dt, wrenches)
    return kernel_function(mech, name)(q, v, tau, dt)


# -- of any kernel ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Derivative:
    """A request (``compiler.store``) for the derivative of a named algorithm, with some ports, by inputs ``wrt``.  The
    mode is one of ``jacobian_of``, or "products" for the products with directions of ``jvp_of``."""

    algorithm: str
    wrt: str | tuple[str, ...]
    ports: tuple[str, ...] = ()
    mode: str = "auto"

    def __call__(self, mech: Mechanism, dtype: str, parameters: Sequence[Any]) -> Kernel:
        kernel = compile(self.algorithm, mech, dtype, parameters=parameters, ports=self.ports)
        return jvp_of(kernel, self.wrt) if self.mode == "products" else jacobian_of(kernel, self.wrt, self.mode)


COTANGENT, TANGENT = "cotangent", "tangent"  # names of the additional inputs of ``vjp_of`` and ``jvp_of``


def jacobian_of(
    kernel: Kernel,
    wrt: str | Sequence[str] = "q",
    mode: str = "auto",
    tangent: bool = True,
    value: bool = False,
    tangent_result: bool = False,
) -> Kernel:
    """A kernel with the same inputs whose result is the derivative of ``kernel``'s: ``batch + core + (n,)``.

    wrt       the input to differentiate by (``kernel.inputs`` names them), or several of them: their columns follow
              each other in the last axis, in the order given; an input of several axes has its elements in C order
    mode      "forward" (cheap for few columns), "reverse" (cheap for few rows), or "auto": the one with fewer
              operations
    tangent   configurations (q, q0, q1) move along tangent directions, dq = N(q) e_k: nv columns, one for each joint
              velocity.  False: plain partial derivatives by the nq coordinates, each while the others stand still
              (a quaternion then leaves unit length, which the kernels allow)
    value     the result is a pair: the result of ``kernel`` itself, and its derivative
    tangent_result   for results that are a configuration ("integrate") or begin with one ("rk4_step"): derivatives in
              tangent coordinates too, nv rows instead of nq, so that the matrix of a step is square

    ``sparsity`` of the new kernel shows the entries that are zero for every input.  Derivatives of derivatives are
    taken the same way; along tangent directions [..., j, k] is then the derivative along k of the derivative along j,
    which differs from [..., k, j] where j and k belong to one freely turning joint.  If ``kernel`` itself has several
    results, the last one is differentiated.

    At kinks the derivative is that of the branch taken; without a derivative (the root of 0), it is infinite or NaN.
    """
    names = _checked_names(kernel, wrt, "jacobian_of")
    one_of("mode", mode, MODES)
    rows_of = _mechanism_of_result(kernel) if tangent_result else None
    made = _derived(kernel, _jacobian, names, tangent, mode, value, rows_of)
    return made.made_by(jacobian_of, kernel, wrt, mode, tangent, value, tangent_result)


def _jacobian(
    traced: Program,
    configurations: Mapping[str, Mechanism],
    names: tuple[str, ...],
    tangent: bool,
    mode: str,
    value: bool,
    rows_of: Mechanism | None,
) -> Program:
    """The program of ``jacobian_of``; ``rows_of``: the mechanism whose configuration the result begins with, for
    tangent rows."""
    last = len(traced.outputs) - 1
    by = _join_names(names)
    called = f"{traced.name}_by_{by}", f"{traced.outputs[last].name}_by_{by}"
    directions = _directions(traced, configurations, names, tangent)
    program = differentiate(unroll(traced), directions, mode, last, value or rows_of is not None, called)
    return program if rows_of is None else _map_to_tangent_rows(program, rows_of, value)


def vjp_of(
    kernel: Kernel, wrt: str | Sequence[str] = "q", tangent: bool = True, of: Sequence[str] | None = None
) -> Kernel:
    """A kernel for w* times the derivative of ``kernel``'s result f by ``wrt``, ``batch + (n,)``: the gradient of w f.

    Its inputs are those of ``kernel``, then the weights w in the shape of f, named "cotangent" ("cotangent2" if
    ``kernel`` is such a product itself).  With several results there is one weight each, "a_cotangent" for the result
    a, and the gradient is that of the sum.

    wrt, tangent   as for ``jacobian_of``, whose columns these products have
    of             names of the weighted results, if there are several

    One pass backwards through the program, whatever the size of f: a few times the operations of ``kernel``.  The full
    derivative takes as many times more as f (or ``wrt``) has elements.
    """
    names = _checked_names(kernel, wrt, "vjp_of")
    return _derived(kernel, _vjp, names, tangent, tuple(_result_indices(kernel, of))).made_by(
        vjp_of, kernel, wrt, tangent, of
    )


def _vjp(
    traced: Program,
    configurations: Mapping[str, Mechanism],
    names: tuple[str, ...],
    tangent: bool,
    indices: tuple[int, ...],
) -> Program:
    """The program of ``vjp_of``, for the results with these indices."""
    inputs, straight_line = traced.inputs, unroll(traced)
    results = [traced.outputs[index] for index in indices]
    alone = len(traced.outputs) == 1
    weights = [
        InputArray(_new_name(inputs, COTANGENT if alone else f"{result.name}_{COTANGENT}"), result.shape)
        for result in results
    ]

    def weighed(*arrays: np.ndarray) -> list[np.ndarray]:
        results_here = inline(straight_line, *arrays[: len(inputs)])
        pairs = zip(_flat(arrays[len(inputs) :]), _flat([results_here[index] for index in indices]), strict=True)
        return [np.asarray(sum((w * f for w, f in pairs), 0.0), dtype=object)]

    name, by = "_and_".join(result.name for result in results), _join_names(names)
    product = trace(weighed, [*inputs, *weights], [name], traced.name)
    called = f"{traced.name}_vjp_by_{by}", f"{name}_vjp_by_{by}"
    return differentiate(product, _directions(traced, configurations, names, tangent), "reverse", names=called)


def jvp_of(kernel: Kernel, wrt: str | Sequence[str] = "q", tangent: bool = True) -> Kernel:
    """A kernel for the derivative of ``kernel``'s result f by ``wrt`` times a direction, in the shape of f; with
    several results, of each.  Its inputs are those of ``kernel``, then the direction: one array for each input in
    ``wrt``, in its shape, or (nv,) of configurations along ``tangent`` directions, named "q_tangent" and so on
    ("q_tangent2" if ``kernel`` is such a product itself).

    wrt, tangent   as for ``jacobian_of``

    One pass forwards through the program, two to three times the operations of ``kernel``, however many inputs there
    are.
    """
    names = _checked_names(kernel, wrt, "jvp_of")
    return _derived(kernel, _jvp, names, tangent).made_by(jvp_of, kernel, wrt, tangent)


def _jvp(traced: Program, configurations: Mapping[str, Mechanism], names: tuple[str, ...], tangent: bool) -> Program:
    """The program of ``jvp_of``."""
    directions, weights = _directions(traced, configurations, names, tangent), []
    for moved in directions:
        array = traced.inputs[moved.array]
        shape = array.shape if moved.basis is None else (moved.count(traced),)
        weights.append(InputArray(_new_name(traced.inputs, f"{array.name}_{TANGENT}"), shape))
    by = _join_names(names)
    called = f"{traced.name}_jvp_by_{by}", [f"{array.name}_jvp_by_{by}" for array in traced.outputs]
    return drop_unread(push_forward(traced, directions, weights, called))


def _derived(kernel: Kernel, derive: Callable[..., Program], *arguments: Any) -> Kernel:
    """The kernel of the program that ``derive`` makes from the program of ``kernel``."""
    program = remembered_program(derive, kernel.traced, kernel.configurations, *arguments)
    origin = (
        f"the program of {kernel.name}, differentiated: no sweeps of its own, but operations in the sections of that"
    )
    return loaded(program, kernel.dtype.name, kernel.target, (), kernel.configurations, origin=origin)


def _result_indices(kernel: Kernel, of: Sequence[str] | None) -> list[int]:
    """Indices of the results named by ``of``; None for all."""
    names = [array.name for array in kernel.traced.outputs]
    if of is None:
        return [*range(len(names))]
    if not of:
        raise ValueError(f"of names no result of {kernel.name}: there is {', '.join(names)}")
    return [names.index(one_of(f"result of {kernel.name}", name, names)) for name in of]


def _flat(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The elements of all arrays, one after the other."""
    return np.concatenate([np.asarray(array, dtype=object).ravel() for array in arrays])


def _new_name(inputs: Sequence[InputArray], name: str) -> str:
    """A name for one more input, numbered if it is taken."""
    taken = [array.name for array in inputs]
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}{number}", number + 1
    return candidate


def _checked_names(kernel: Any, wrt: str | Sequence[str], function: str) -> tuple[str, ...]:
    """The names of inputs to differentiate by, checked."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"{function} takes a kernel such as linkwise.compile('mass_matrix', mech), got {kernel!r}")
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    if not names:
        raise ValueError(f"wrt names no input of {kernel.name}: there is {', '.join(kernel.inputs) or 'none'}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"wrt is the name of an input or several names, got {name!r}")
        one_of(f"input of {kernel.name}", name, kernel.inputs, f"there is {', '.join(kernel.inputs) or 'none'}")
        if names.count(name) > 1:
            raise ValueError(f"wrt names {name!r} twice")
    return names


def _join_names(names: Sequence[str]) -> str:
    """Names of inputs as part of the name of a kernel."""
    return "_and_".join(re.sub(r"\W", "_", name) for name in names)


def _directions(
    program: Program, configurations: Mapping[str, Mechanism], names: Sequence[str], tangent: bool
) -> list[Directions]:
    """Directions of differentiation for the inputs of these names."""
    numbers = {array.name: k for k, array in enumerate(program.inputs)}
    bases = {name: tangent_basis(configurations[name]) for name in names if tangent and name in configurations}
    return [Directions(numbers[name], basis=bases.get(name)) for name in names]


# -- results that are configurations ------------------------------------------------------------------------


def _mechanism_of_result(kernel: Kernel) -> Mechanism:
    """The mechanism whose configuration the result of the kernel begins with."""
    output = kernel.traced.outputs[-1].name
    if output not in CONFIGURATION_FIRST:
        raise ValueError(
            f"tangent_result is for results that are configurations ({', '.join(CONFIGURATION_FIRST)}); "
            f"{output} of {kernel.name} is none"
        )
    return next(iter(kernel.configurations.values()))


def _map_to_tangent_rows(program: Program, mech: Mechanism, value: bool) -> Program:
    """A program for a result that begins with a configuration, and its derivative: the nq rows of the configuration are
    mapped to nv tangent rows."""
    steps = tangent_rows(mech)

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        result, changes = inline(program, *arrays)
        tangent_rows_here = inline(steps, result[: mech.nq], result[: mech.nq])[0] @ changes[: mech.nq]
        rows = np.concatenate([tangent_rows_here, changes[mech.nq :]])
        return [result, rows] if value else [rows]

    outputs = [array.name for array in program.outputs][0 if value else 1 :]
    return trace(run, program.inputs, outputs, program.name)


def tangent_rows(mech: Mechanism) -> Program:
    """The program of (nv, nq), from q0 and q1: the derivative of the step from q0 to q1 by the coordinates of q1.  At
    q0 = q1 it maps changes of coordinates to tangent directions."""
    difference, _ = trace_algorithm(ALGORITHMS["difference"], mech)
    return differentiate(difference, [Directions(1)], "forward")
