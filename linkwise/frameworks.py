"""Shared by torch, JAX and CasADi: the kernel behind a function name, and the kernels of its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .compiler.ir.program import Program, reachable
from .compiler.kernel import Kernel
from .compiler.passes.unroll import unroll
from .compiler.pipeline import compile, loaded
from .compiler.recipes import remembered_program
from .compiler.registry import ArrayFunction, array_function
from .compiler.store import WRENCHES, stored
from .dynamics.by_actuator import unless_empty
from .dynamics.derivatives import COTANGENT, jacobian_of, vjp_of
from .dynamics.force_elements import ALL, chosen_forces, find_algorithm, with_forces
from .dynamics.former.closed import function_named
from .dynamics.passive import Passive
from .dynamics.resolved import Resolved, no_controls, resolved
from .mechanics.algorithms.catalogue import ALGORITHMS
from .mechanics.elements.law import Acting
from .mechanism import Mechanism, MechanismError, one_of, warn_caller

__all__ = [
    "ALL",
    "COTANGENT",
    "ActingCall",
    "ActingFunctions",
    "Call",
    "Namespace",
    "algorithm_named",
    "asked",
    "chosen_forces",
    "derivative_of",
    "former_closed",
    "kept",
    "only_result",
    "product_of",
    "result_named",
    "spacing",
    "unless_empty",
]

Made = TypeVar("Made")


class Call(NamedTuple):
    """Arguments of ``compile`` for a mechanism, hashable.

    parameters   names of numbers of the mechanism that are inputs after the algorithm's own
    options      of the algorithm, such as ("link", "tool")
    result       the requested one of several results
    """

    algorithm: str
    parameters: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    result: str | None = None

    def compiled(self, mech: Mechanism, dtype: str = "float64", target: str = "cpu") -> Kernel:
        kernel = compile(self.algorithm, mech, dtype, target, self.parameters, **dict(self.options))
        return kernel if self.result is None else only_result(kernel, self.result)


def kept(mech: Mechanism, key: Any, make: Callable[[], Made]) -> Made:
    """The object stored with the mechanism under ``key``, made on first use."""
    try:
        return mech._kernels[key]
    except (KeyError, AttributeError, TypeError):  # not made yet, no mechanism, or an option that is no name
        return stored(mech, key, make)


def algorithm_named(name: str, whose: str, of_loops: bool = False) -> str:
    """The algorithm behind a public function, ``linkwise.NAME`` or, with ``of_loops``, of ``linkwise.constraints``; or
    an internal one, such as "rk4_step"; an AttributeError in the words of module ``whose`` for other names.
    """
    if name in ALGORITHMS and not of_loops:
        return name
    known = _known(name, of_loops)
    if known is None or known.algorithm is None:
        where = "linkwise.constraints" if of_loops else "linkwise"
        advice = f" ({known.advice} and use the kernel)" if known is not None and known.advice else ""
        raise AttributeError(
            f"{whose} has no {name!r}: beside what is its own it has the array functions of {where} that are "
            f"algorithms, such as forward_dynamics{advice}"
        )
    return known.algorithm


def result_named(name: str, of_loops: bool = False) -> Callable[[Any], Any] | None:
    """A conversion of the kernel's result into that of the public function; None if they are equal."""
    known = _known(name, of_loops)
    return None if known is None else known.gives


def _known(name: str, of_loops: bool) -> ArrayFunction | None:
    """The registration of a public function of this name; None for other names."""
    import linkwise

    if of_loops:
        function = function_named(name)
    else:
        address = name if name in linkwise.__all__ else linkwise._within(name)
        function = attrgetter(address)(linkwise) if address else None
    return None if function is None else array_function(function)


class Namespace:
    """``closed`` of a module: functions of constraints and of dynamics under them, each made by ``named(name, True)``
    when it is first asked for."""

    def __init__(self, named: Callable[[str, bool], Callable[..., Any]]):
        self._named = named

    def __getattr__(self, name: str) -> Callable[..., Any]:
        made = self._named(name, True)
        setattr(self, name, made)
        return made


def former_closed(whose: str, named: Callable[[str, bool], Callable[..., Any]]) -> Namespace:
    """``closed`` of module ``whose``, with a warning: one name per quantity serves all mechanisms."""
    advice = f"functions of {whose} itself heed constraints; the old name goes with version 0.3"
    warn_caller(f"{whose}.closed is deprecated: {advice}", DeprecationWarning)
    return Namespace(named)


class ActingCall(NamedTuple):
    """A request for force elements: "forces" or "actuator_forces" of ``dynamics.force_elements.find_algorithm``."""

    quantity: str
    passive: Passive | None = None

    @property
    def algorithm(self) -> str:
        """By which messages name it."""
        return f"acting.{self.quantity}"

    def compiled(self, mech: Mechanism, dtype: str = "float64", target: str = "cpu") -> Kernel:
        return compile(find_algorithm(self.quantity, mech, self.acting_on(mech)), mech, dtype, target)

    def acting_on(self, mech: Mechanism) -> Acting:
        """Force elements of the mechanism; ``passive`` replaces springs, damping, friction and limits of joints."""
        return (resolved(mech, self.passive, implicit_step=0.0) or Resolved.nothing(mech)).acting


def _zeros(size: int, beside: Any) -> Any:
    """Zeros for omitted arrays: a tensor beside tensors, so that ``torch.compile`` follows; else an array whose dtype
    does not affect the precision.
    """
    return beside.new_zeros(size) if hasattr(beside, "new_zeros") else np.zeros(size, np.float32)


Zeros = Callable[[int, Any], Any]
Evaluated = Callable[[Mechanism, "ActingCall", tuple[Any, ...]], Any]
UNDER_FORCES = ("forward_dynamics", "inverse_dynamics", "static_forces")


class ActingFunctions:
    """``acting`` of a module: dynamics under force elements, of its arrays, with derivatives by all of them.

    evaluated   runs the kernel of a call on arrays: ``evaluated(mech, call, arrays)``
    named       makes the array function of a name, of loops or not
    """

    def __init__(
        self,
        evaluated: Callable[[Mechanism, ActingCall, tuple[Any, ...]], Any],
        named: Callable[[str, bool], Callable[..., Any]],
    ):
        self._evaluated, self._dynamics = evaluated, UnderForces(evaluated)
        self._functions = {name: named(name, False) for name in ("forward_dynamics", "inverse_dynamics")}
        self._calls = {quantity: ActingCall(quantity) for quantity in ("forces", "actuator_forces")}

    def forces(self, mech: Mechanism, q: Any, v: Any = None, ctrl: Any = None, activation: Any = None) -> Any:
        """(nv,): the joint forces of all that acts, as tau."""
        return self._evaluate("forces", mech, q, v, ctrl, activation)[..., : mech.nv]

    def activation_rates(self, mech: Mechanism, q: Any, v: Any = None, ctrl: Any = None, activation: Any = None) -> Any:
        """(n_activation,): the rates of the activations."""
        return self._evaluate("forces", mech, q, v, ctrl, activation)[..., mech.nv :]

    def actuator_forces(self, mech: Mechanism, q: Any, v: Any = None, ctrl: Any = None, activation: Any = None) -> Any:
        """(n_ctrl,): the force of each actuator that acts."""
        if not mech.n_ctrl:
            raise MechanismError(f"actuator_forces: no actuator of mechanism {mech.name!r} acts")
        return self._evaluate("actuator_forces", mech, q, v, ctrl, activation)

    def forward_dynamics(
        self,
        mech: Mechanism,
        q: Any,
        v: Any = None,
        tau: Any = None,
        ctrl: Any = None,
        activation: Any = None,
        wrenches: Any = None,
    ) -> Any:
        """(nv,): accelerations under joint forces ``tau`` and all force elements; constraints are kept."""
        return self._under_all("forward_dynamics", mech, (q, v, tau), (ctrl, activation, wrenches))

    def inverse_dynamics(
        self,
        mech: Mechanism,
        q: Any,
        v: Any = None,
        a: Any = None,
        ctrl: Any = None,
        activation: Any = None,
        wrenches: Any = None,
    ) -> Any:
        """(nv,): the joint forces that the accelerations ``a`` need besides all force elements."""
        return self._under_all("inverse_dynamics", mech, (q, v, a), (ctrl, activation, wrenches))

    def _under_all(self, name: str, mech: Mechanism, state: tuple[Any, ...], drive: tuple[Any, Any, Any]) -> Any:
        ctrl, activation, wrenches = drive
        acts = {"forces": ALL, "ctrl": ctrl, "activation": activation}
        return self._dynamics(name, self._functions[name], mech, state, acts, {"wrenches": wrenches})

    def _evaluate(self, quantity: str, mech: Mechanism, q: Any, v: Any, ctrl: Any, activation: Any) -> Any:
        arrays = driving_arrays(
            self._calls[quantity], mech, q, _zeros(mech.nv, q) if v is None else v, ctrl, activation
        )
        return self._evaluated(mech, self._calls[quantity], arrays)


def driving_arrays(
    call: ActingCall, mech: Mechanism, q: Any, v: Any, ctrl: Any, activation: Any, zeros: Zeros = _zeros
) -> tuple[Any, ...]:
    """Inputs of the kernel of force elements: q, v and, if any, control inputs and activations."""
    acting, arrays = call.acting_on(mech), [q, v]
    for name, values, size in (
        ("ctrl", unless_empty(mech, ctrl), acting.n_ctrl),
        ("activation", activation, acting.n_activation),
    ):
        if isinstance(values, Mapping):
            raise TypeError(
                f"{call.algorithm}: {name} must be an array here: {size} numbers, in the order of actuators"
            )
        if values is not None and not size:
            raise MechanismError(no_controls(mech, name))
        if size:
            arrays.append(zeros(size, q) if values is None else values)
    return tuple(arrays)


@dataclass(frozen=True)
class UnderForces:
    """Functions of a framework's arrays with force elements that act.

    evaluated   runs the kernel of a call on arrays: ``evaluated(mech, call, arrays)``
    zeros       so many zeros, beside an array
    """

    evaluated: Evaluated
    zeros: Zeros = _zeros

    def __call__(
        self,
        name: str,
        function: Callable[..., Any],
        mech: Mechanism,
        arguments: tuple[Any, ...],
        acts: Mapping[str, Any],
        more: Mapping[str, Any],
    ) -> Any:
        """The result of ``function``, of the algorithm ``name``, for ``arguments`` and ``more`` by name, with the force
        elements ``acts["forces"]`` under ``acts["ctrl"]`` and ``acts["activation"]``.
        """
        if name not in UNDER_FORCES:
            raise MechanismError(f"{name} takes no forces here: {', '.join(UNDER_FORCES)} do")
        if more.get("parameters"):
            raise MechanismError(
                f"{name}: force elements have the numbers of the mechanism itself: leave out parameters or forces"
            )
        acts = {**acts, "ctrl": unless_empty(mech, acts["ctrl"]), "forces": acts["forces"] or "none"}
        if acts["forces"] == "none" and (driving := [key for key in ("ctrl", "activation") if acts[key] is not None]):
            raise MechanismError(f'{name}: {driving[0]} is given, but no force elements act: forces="all" has them act')
        inputs = ALGORITHMS[name].inputs
        if len(arguments) > len(inputs):
            raise TypeError(f"{name} takes {', '.join(inputs)}, and {len(arguments)} arrays are given")
        named = {**dict(zip(inputs, arguments, strict=False)), **{x: more[x] for x in inputs if x in more}}
        rest = {key: x for key, x in more.items() if key not in inputs}
        q = named["q"]
        state = {key: self.zeros(mech.nv, q) if named.get(key) is None else named[key] for key in inputs}
        acting, passive = with_forces(mech, acts["forces"])
        call = ActingCall("forces", passive)
        v = state.get("v", self.zeros(mech.nv, q))
        pushes = self.evaluated(
            acting, call, driving_arrays(call, acting, q, v, acts["ctrl"], acts["activation"], self.zeros)
        )
        if call.acting_on(acting).n_activation:  # whose rates follow
            pushes = pushes[..., : mech.nv] if hasattr(pushes, "ndim") else pushes[: mech.nv]
        if "tau" not in state:
            return function(mech, *state.values(), **rest) - pushes
        state["tau"] = state["tau"] + pushes
        return function(mech, *state.values(), **rest)


def asked(
    algorithm: str,
    arguments: tuple[Any, ...],
    wrenches: Any = None,
    parameters: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[Call, tuple[Any, ...]]:
    """The kernel request and all its arrays for a call of the function behind ``algorithm``. ``arguments`` may contain
    the names of link and frame after the arrays; ``options`` may contain inputs by name.
    """
    arrays = tuple(x for x in arguments if not isinstance(x, str))
    check_mapping = ALGORITHMS[algorithm].inputs[len(arrays) :]
    arrays += tuple(options[name] for name in check_mapping if options and name in options)
    words = zip(("link", "frame"), (x for x in arguments if isinstance(x, str)), strict=False)
    values = dict(parameters or {})
    if wrenches is not None:
        arrays = (*arrays, wrenches)
    more = {**dict(words), **{name: x for name, x in (options or {}).items() if name not in check_mapping}}
    if wrenches is not None:
        more |= dict([WRENCHES])
    result = more.pop("result", None)
    return Call(algorithm, tuple(values), tuple(sorted(more.items())), result), (*arrays, *values.values())


@lru_cache(maxsize=256)
def only_result(kernel: Kernel, name: str | None) -> Kernel:
    """The kernel of one result of an algorithm with several; only such kernels have derivatives."""
    names = tuple(kernel.output_shapes)
    if name is None and len(names) > 1:
        raise ValueError(
            f"{kernel.name} has several results ({', '.join(names)}), and one is differentiated: result={names[0]!r}"
        )
    if len(names) == 1 and name in (None, *names):
        return kernel
    k = names.index(one_of(f"result of {kernel.name}", name, names))
    program = remembered_program(_only_result, kernel.traced, k)
    return loaded(program, kernel.dtype.name, kernel.target, kernel.sweeps, kernel.configurations).made_by(
        only_result, kernel, name
    )


def _only_result(traced: Program, k: int) -> Program:
    program = unroll(traced)
    results = (program.results[k],)
    return replace(program, outputs=(program.outputs[k],), results=results, nodes=reachable(results))


@lru_cache(maxsize=256)
def product_of(kernel: Kernel, wrt: tuple[str, ...]) -> Kernel:
    """The kernel of ``backward``: a cotangent, the last input ``COTANGENT``, times the derivatives by these inputs, one
    after the other. Derivatives are plain ones, by each coordinate.
    """
    return vjp_of(kernel, wrt, tangent=False)


@lru_cache(maxsize=256)
def derivative_of(kernel: Kernel, wrt: tuple[str, ...]) -> Kernel:
    """The derivatives of the result by these inputs, one after the other in the last axis; plain ones."""
    return jacobian_of(kernel, wrt, tangent=False)


def spacing(steps: int) -> int:
    """The number of steps between stored states for gradients of the last one: the divisor of all steps that minimizes
    the states in memory.
    """
    return min((k for k in range(1, steps + 1) if steps % k == 0), key=lambda k: steps // k + k, default=1)
