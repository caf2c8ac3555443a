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
    springs and other force elements (``forces="none"``); d_a is the mass matrix where no constraints hold.

    Where they do, these are derivatives of the least forces of the joints that are ``actuated`` (default: all), which
    must drive all degrees of freedom; q and v are moved as ``lw.constraints.project`` does it, and a to the nearest
    accelerations that are possible there.  The external ``wrenches`` (n_links, 6) stay as they are in their link
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
    springs and other force elements (``forces="none"``); d_tau is the inverse mass matrix where no constraints hold.

    Where they do, changes of q and v that they do not allow are projected onto those that they do as
    ``lw.constraints.project`` does it, q first: these are derivatives of ``forward_dynamics(mech, *project(mech, q, v),
    tau)``, the lower half of [Df] P (spencer2004 4.4), and depend on no unit.  d_tau is K (K* M K)^-1 K*.  A
    ``MechanismError`` says where loops are open, velocities inconsistent with them or positions singular.  The external
    ``wrenches`` (n_links, 6) stay as they are in their link frames; ``active``, ``forces``, ``ctrl`` and ``activation``
    are those of ``lw.forward_dynamics``.  With ``active`` changes are projected onto what those constraints allow, by
    the sizes of the whole mechanism.
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
    """(d_q0, d_q1), each (nv, nv): how ``lw.difference`` changes along tangent directions of q0, and of q1."""
    return _two(kernel_function(mech, "difference_derivatives")(q0, q1))


@of_algorithm("integrate_derivatives", gives=_two)
def integrate_derivatives(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, dt: ArrayLike
) -> tuple[Float64Array, Float64Array]:
    """(d_q, d_v), each (nv, nv): along which tangent the configuration that ``lw.integrate`` reaches moves, per unit
    tangent motion of q, and per v."""
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
    forces, ctrl, activation   force elements that act too, as for ``lw.inverse_dynamics``: the joint forces are then
                    those that are missing beside them

    The recursion for the first derivatives is differentiated along q; d_vv follows from d_aq.  Where that has loops, it
    runs once for each direction.  The order of results and axes is that of Pinocchio's
    ComputeRNEASecondOrderDerivatives.
    """
    if stored(mech, _by_directions, lambda: _by_directions(mech)):
        second = _second_by_directions(mech, q, v, a)
    else:
        second = kernel_function(mech, "inverse_dynamics_second_derivatives")(q, v, a)
    if forces == "none" and ctrl is activation is None:
        return second
    return _solving().with_second_derivatives_of_forces(mech, q, v, second, forces, ctrl, activation)


def _by_directions(mech: Mechanism) -> bool:
    """Whether all columns of the second derivatives together would be a program that nobody waits for."""
    return not mech.loops and may_pay(mech.n_links, None) and _first(mech, "float64", ()).traced.has_loops


def _first(mech: Mechanism, dtype: str, parameters: Sequence[Any]) -> Kernel:
    return compile("inverse_dynamics_derivatives", mech, dtype, parameters=parameters)


def _change_of_first(mech: Mechanism, dtype: str, parameters: Sequence[Any]) -> Kernel:
    return jvp_of(_first(mech, dtype, parameters), "q")


def _second_by_directions(
    mech: Mechanism, *state: ArrayLike
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """The second derivatives of inverse dynamics, from the changes of the first along each direction."""
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
    """(A, B), (2 nv, 2 nv) and (2 nv, nv): how the state after a step of dt changes with that before it, and with tau.

    The step is that of ``rollout`` by ``method`` where nothing else acts (``mech.with_acting(False)``), under joint
    forces and ``wrenches`` (n_links, 6) that stay the same during it.  Rows and columns are (q, v), those of q along
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
    """A request (``compiler.store``) for the derivative of a named algorithm, with some ports, by inputs ``wrt``: as
    ``jacobian_of`` has it in this mode, or the products with directions of ``jvp_of`` in the mode "products"."""

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
    value     the result is a pair: what ``kernel`` itself gives, and its derivative
    tangent_result   where the result of ``kernel`` is a configuration (of "integrate") or begins with one (the state of
              "rk4_step"), its change comes in tangent coordinates as well: nv rows instead of nq, which make the matrix
              of a step square, the one that carries small steps of (q, v) on

    ``sparsity`` of the new kernel tells which entries are zero for every input.  Derivatives of derivatives are taken
    the same way; along tangent directions [..., j, k] is then the derivative along k of the derivative along j, which
    differs from [..., k, j] where j and k belong to one freely turning joint.  If ``kernel`` itself has several
    results, the last one is differentiated.

    At kinks the derivative is that of the branch taken; where the kernel has none (the root of 0), it is infinite or
    not a number.
    """
    names = _asked(kernel, wrt, "jacobian_of")
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
    """The program of ``jacobian_of``; ``rows_of``: the mechanism whose configuration the result begins with, where its
    changes come in tangent coordinates."""
    last = len(traced.outputs) - 1
    by = _words(names)
    called = f"{traced.name}_by_{by}", f"{traced.outputs[last].name}_by_{by}"
    directions = _directions(traced, configurations, names, tangent)
    program = differentiate(unroll(traced), directions, mode, last, value or rows_of is not None, called)
    return program if rows_of is None else _with_tangent_rows(program, rows_of, value)


def vjp_of(
    kernel: Kernel, wrt: str | Sequence[str] = "q", tangent: bool = True, of: Sequence[str] | None = None
) -> Kernel:
    """A kernel that gives w* times the derivative of ``kernel``'s result f by ``wrt``, ``batch + (n,)``: the gradient
    of w f, for a weight w of every element of f.  It takes what ``kernel`` takes and then w, in the shape of f, as an
    input named "cotangent" ("cotangent2" if ``kernel`` is such a product itself).  If ``kernel`` has several results,
    it takes a weight of each, "a_cotangent" of the result a, and gives the gradient of the sum.

    wrt, tangent   as for ``jacobian_of``, whose columns these products have
    of             names of the results that count, where there are several

    One pass backwards through the program, whatever the size of f: a few times the operations of ``kernel``, where all
    of the derivative takes as many times more as f has elements (or ``wrt`` has).
    """
    names = _asked(kernel, wrt, "vjp_of")
    return _derived(kernel, _vjp, names, tangent, tuple(_places(kernel, of))).made_by(vjp_of, kernel, wrt, tangent, of)


def _vjp(
    traced: Program,
    configurations: Mapping[str, Mechanism],
    names: tuple[str, ...],
    tangent: bool,
    places: tuple[int, ...],
) -> Program:
    """The program of ``vjp_of``, of the results at some places."""
    inputs, straight_line = traced.inputs, unroll(traced)
    results = [traced.outputs[place] for place in places]
    alone = len(traced.outputs) == 1
    weights = [
        InputArray(_new_name(inputs, COTANGENT if alone else f"{one.name}_{COTANGENT}"), one.shape) for one in results
    ]

    def weighed(*arrays: np.ndarray) -> list[np.ndarray]:
        found = inline(straight_line, *arrays[: len(inputs)])
        pairs = zip(_flat(arrays[len(inputs) :]), _flat([found[place] for place in places]), strict=True)
        return [np.asarray(sum((w * f for w, f in pairs), 0.0), dtype=object)]

    name, by = "_and_".join(one.name for one in results), _words(names)
    product = trace(weighed, [*inputs, *weights], [name], traced.name)
    called = f"{traced.name}_vjp_by_{by}", f"{name}_vjp_by_{by}"
    return differentiate(product, _directions(traced, configurations, names, tangent), "reverse", names=called)


def jvp_of(kernel: Kernel, wrt: str | Sequence[str] = "q", tangent: bool = True) -> Kernel:
    """A kernel that gives the derivative of ``kernel``'s result f by ``wrt`` times a direction, in the shape of f: how
    f changes if these inputs do so; of several results, how each does.  It takes what ``kernel`` takes and then the
    direction: one array for each input in ``wrt``, in its shape, or (nv,) of configurations along ``tangent``
    directions, named "q_tangent" and so on ("q_tangent2" if ``kernel`` is such a product itself).

    wrt, tangent   as for ``jacobian_of``

    One pass forwards through the program, two to three times the operations of ``kernel``, however many inputs there
    are.
    """
    names = _asked(kernel, wrt, "jvp_of")
    return _derived(kernel, _jvp, names, tangent).made_by(jvp_of, kernel, wrt, tangent)


def _jvp(traced: Program, configurations: Mapping[str, Mechanism], names: tuple[str, ...], tangent: bool) -> Program:
    """The program of ``jvp_of``."""
    directions, weights = _directions(traced, configurations, names, tangent), []
    for moved in directions:
        array = traced.inputs[moved.array]
        shape = array.shape if moved.basis is None else (moved.count(traced),)
        weights.append(InputArray(_new_name(traced.inputs, f"{array.name}_{TANGENT}"), shape))
    by = _words(names)
    called = f"{traced.name}_jvp_by_{by}", [f"{array.name}_jvp_by_{by}" for array in traced.outputs]
    return drop_unread(push_forward(traced, directions, weights, called))


def _derived(kernel: Kernel, derive: Callable[..., Program], *arguments: Any) -> Kernel:
    """The kernel of what ``derive`` makes of the program of another."""
    program = remembered_program(derive, kernel.traced, kernel.configurations, *arguments)
    origin = (
        f"the program of {kernel.name}, differentiated: no sweeps of its own, but operations in the sections of that"
    )
    return loaded(program, kernel.dtype.name, kernel.target, (), kernel.configurations, origin=origin)


def _places(kernel: Kernel, of: Sequence[str] | None) -> list[int]:
    """Where the results are that count."""
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
    """The name for one more input, numbered if there is one like it."""
    taken = [array.name for array in inputs]
    found, number = name, 2
    while found in taken:
        found, number = f"{name}{number}", number + 1
    return found


def _asked(kernel: Any, wrt: str | Sequence[str], function: str) -> tuple[str, ...]:
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


def _words(names: Sequence[str]) -> str:
    """Names of inputs as part of that of a kernel."""
    return "_and_".join(re.sub(r"\W", "_", name) for name in names)


def _directions(
    program: Program, configurations: Mapping[str, Mechanism], names: Sequence[str], tangent: bool
) -> list[Directions]:
    """How the inputs of these names move."""
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


def _with_tangent_rows(program: Program, mech: Mechanism, value: bool) -> Program:
    """A program that gives a configuration, or what begins with one, and its changes: the nq rows of those that are
    changes of the configuration made nv rows, as steps from it."""
    steps = tangent_rows(mech)

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        found, changes = inline(program, *arrays)
        own = inline(steps, found[: mech.nq], found[: mech.nq])[0] @ changes[: mech.nq]
        rows = np.concatenate([own, changes[mech.nq :]])
        return [found, rows] if value else [rows]

    outputs = [array.name for array in program.outputs][0 if value else 1 :]
    return trace(run, program.inputs, outputs, program.name)


def tangent_rows(mech: Mechanism) -> Program:
    """The program of (nv, nq), taking q0 and q1: how the step from q0 to q1 changes by the coordinates of q1.  At
    q0 = q1 it takes a change of the coordinates there to tangent directions."""
    difference, _ = trace_algorithm(ALGORITHMS["difference"], mech)
    return differentiate(difference, [Directions(1)], "forward")
