"""What torch, JAX and CasADi share: which kernel is behind a function's name, and which ones are its derivatives."""

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
from .dynamics.force_elements import ALL, algorithm_of, chosen_forces, with_forces
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
    """What is asked of a mechanism, hashable: what ``compile`` takes.

    parameters   names of numbers of the mechanism that are inputs after the algorithm's own
    options      of the algorithm, such as ("link", "tool")
    result       which one is asked for, where there are several
    """

    algorithm: str
    parameters: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    result: str | None = None

    def compiled(self, mech: Mechanism, dtype: str = "float64", target: str = "cpu") -> Kernel:
        kernel = compile(self.algorithm, mech, dtype, target, self.parameters, **dict(self.options))
        return kernel if self.result is None else only_result(kernel, self.result)


def kept(mech: Mechanism, key: Any, make: Callable[[], Made]) -> Made:
    """What the mechanism keeps under ``key``, made when it is first asked for."""
    try:
        return mech._kernels[key]
    except (KeyError, AttributeError, TypeError):  # not made yet, no mechanism, or an option that is no name
        return stored(mech, key, make)


def algorithm_named(name: str, whose: str, of_loops: bool = False) -> str:
    """The algorithm behind a public function, ``linkwise.NAME`` or, ``of_loops``, the one under constraints, or of this
    name, as "rk4_step"; an AttributeError in the words of module ``whose`` if it is none."""
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
    """What turns the result of the kernel behind a public function into that of the function, if they differ."""
    known = _known(name, of_loops)
    return None if known is None else known.gives


def _known(name: str, of_loops: bool) -> ArrayFunction | None:
    """What is known of a public function of this name."""
    import linkwise

    if of_loops:
        function = function_named(name)
    else:
        place = name if name in linkwise.__all__ else linkwise._within(name)
        function = attrgetter(place)(linkwise) if place else None
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
    """What is asked of all that acts on a mechanism: "forces" or "actuator_forces" of
    ``dynamics.force_elements.algorithm_of``."""

    what: str
    passive: Passive | None = None

    @property
    def algorithm(self) -> str:
        """By which messages name it."""
        return f"acting.{self.what}"

    def compiled(self, mech: Mechanism, dtype: str = "float64", target: str = "cpu") -> Kernel:
        return compile(algorithm_of(self.what, mech, self.acting_on(mech)), mech, dtype, target)

    def acting_on(self, mech: Mechanism) -> Acting:
        """What acts on the mechanism; ``passive`` in place of the springs, damping, friction and limits of joints."""
        return (resolved(mech, self.passive, implicit_step=0.0) or Resolved.nothing(mech)).acting


def _zeros(size: int, beside: Any) -> Any:
    """What is left out: a tensor beside tensors, which ``torch.compile`` follows; else an array that is exact, and
    decides on no precision."""
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
        self._evaluated = evaluated
        self._accelerations = named("forward_dynamics", False)
        self._missing = named("inverse_dynamics", False)
        self._calls = {what: ActingCall(what) for what in ("forces", "actuator_forces")}

    def forces(self, mech: Mechanism, q: Any, v: Any = None, ctrl: Any = None, activation: Any = None) -> Any:
        """(nv,): the joint forces of all that acts, as tau."""
        return self._of("forces", mech, q, v, ctrl, activation)[..., : mech.nv]

    def activation_rates(self, mech: Mechanism, q: Any, v: Any = None, ctrl: Any = None, activation: Any = None) -> Any:
        """(n_activation,): the rates of the activations."""
        return self._of("forces", mech, q, v, ctrl, activation)[..., mech.nv :]

    def actuator_forces(self, mech: Mechanism, q: Any, v: Any = None, ctrl: Any = None, activation: Any = None) -> Any:
        """(n_ctrl,): the force of each actuator that acts."""
        if not mech.n_ctrl:
            raise MechanismError(f"actuator_forces: no actuator of mechanism {mech.name!r} acts")
        return self._of("actuator_forces", mech, q, v, ctrl, activation)

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
        """(nv,): accelerations under joint forces ``tau`` and all that acts; constraints are kept."""
        v = _zeros(mech.nv, q) if v is None else v
        total = self.forces(mech, q, v, ctrl, activation)
        total = total if tau is None else total + tau
        return self._accelerations(mech, q, v, total, wrenches=wrenches)

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
        """(nv,): the joint forces that are missing, besides all that acts, for the accelerations ``a``."""
        v, a = (_zeros(mech.nv, q) if x is None else x for x in (v, a))
        needed = self._missing(mech, q, v, a, wrenches=wrenches)
        return needed - self.forces(mech, q, v, ctrl, activation)

    def _of(self, what: str, mech: Mechanism, q: Any, v: Any, ctrl: Any, activation: Any) -> Any:
        arrays = driving_arrays(self._calls[what], mech, q, _zeros(mech.nv, q) if v is None else v, ctrl, activation)
        return self._evaluated(mech, self._calls[what], arrays)


def driving_arrays(
    call: ActingCall, mech: Mechanism, q: Any, v: Any, ctrl: Any, activation: Any, zeros: Zeros = _zeros
) -> tuple[Any, ...]:
    """What the kernel of force elements takes: q, v and, where there are any, control inputs and activations."""
    acting, arrays = call.acting_on(mech), [q, v]
    for name, given, size in (
        ("ctrl", unless_empty(mech, ctrl), acting.n_ctrl),
        ("activation", activation, acting.n_activation),
    ):
        if isinstance(given, Mapping):
            raise TypeError(
                f"{call.algorithm}: {name} must be an array here: {size} numbers, in the order of actuators"
            )
        if given is not None and not size:
            raise MechanismError(no_controls(mech, name))
        if size:
            arrays.append(zeros(size, q) if given is None else given)
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
        """What ``function``, of the algorithm ``name``, gives for ``arguments`` and ``more`` by name, with the force
        elements that ``acts["forces"]`` names, under ``acts["ctrl"]`` and ``acts["activation"]``."""
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
        given = {**dict(zip(inputs, arguments, strict=False)), **{x: more[x] for x in inputs if x in more}}
        rest = {key: x for key, x in more.items() if key not in inputs}
        q = given["q"]
        state = {key: self.zeros(mech.nv, q) if given.get(key) is None else given[key] for key in inputs}
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
    """What a call of the function behind ``algorithm`` asks for, and all arrays that its kernel takes: ``arguments``
    without the names of link and frame, which follow the arrays as in linkwise, and inputs by name among ``options``;
    wrenches; the values of parameters."""
    arrays = tuple(x for x in arguments if not isinstance(x, str))
    by_name = ALGORITHMS[algorithm].inputs[len(arrays) :]
    arrays += tuple(options[name] for name in by_name if options and name in options)
    words = zip(("link", "frame"), (x for x in arguments if isinstance(x, str)), strict=False)
    given = dict(parameters or {})
    if wrenches is not None:
        arrays = (*arrays, wrenches)
    more = {**dict(words), **{name: x for name, x in (options or {}).items() if name not in by_name}}
    if wrenches is not None:
        more |= dict([WRENCHES])
    result = more.pop("result", None)
    return Call(algorithm, tuple(given), tuple(sorted(more.items())), result), (*arrays, *given.values())


@lru_cache(maxsize=256)
def only_result(kernel: Kernel, name: str | None) -> Kernel:
    """The kernel of one of several results, which alone can be differentiated."""
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
    """The weight of each element of the result times its derivatives by these inputs, one after the other: what
    ``backward`` needs.  Its last input is the weight, ``COTANGENT``; derivatives are plain ones, by each coordinate."""
    return vjp_of(kernel, wrt, tangent=False)


@lru_cache(maxsize=256)
def derivative_of(kernel: Kernel, wrt: tuple[str, ...]) -> Kernel:
    """The derivatives of the result by these inputs, one after the other in the last axis; plain ones."""
    return jacobian_of(kernel, wrt, tangent=False)


def spacing(steps: int) -> int:
    """The number of steps between states that are kept for gradients of the last one: that divisor of all steps with
    which the fewest are in memory at a time, kept ones and those between two of them."""
    return min((k for k in range(1, steps + 1) if steps % k == 0), key=lambda k: steps // k + k, default=1)
