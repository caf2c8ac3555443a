"""One step in time as an algorithm: of a method, on trees and loops, under all that acts during it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..compiler.kernel import Kernel
from ..compiler.pipeline import compile
from ..compiler.store import float64_function, stored
from ..dynamics.trees import difference, integrate
from ..mechanics.algorithms import configuration
from ..mechanics.algorithms.algorithm import Algorithm
from ..mechanics.algorithms.catalogue import ALGORITHMS
from ..mechanics.algorithms.closed_projection import SETTLED
from ..mechanics.algorithms.integration import METHODS, Tableau, fed_back
from ..mechanics.algorithms.steps_in_variables import SYMPLECTIC, VARIABLES, methods_in
from ..mechanics.elements.contact import CompliantContact
from ..mechanics.elements.law import Acting
from ..mechanics.elements.stability import SmallMotions
from ..mechanics.elements.steps import acting_step, acting_step_from, acting_step_in, closed_acting_step, implicit_share
from ..mechanics.recursions.tree import Tree
from ..mechanism import Mechanism, MechanismError, MechanismWarning, one_of, require_mechanism, warn_caller

FEEDBACK = ("target", "kp", "kd")
GAIN = "gain"  # of all states at once, besides
ACTIVATION = "activation"
PER_STEP = ("tau", "wrenches", "target", "ctrl")  # inputs of rollouts that may change from step to step
MOMENTA = "p"  # what steps in momenta hand on
USUAL_STEP = 1e-3  # s, where neither the mechanism nor its contacts say anything of time
SOFTER = 10.0  # by how much the springs of contacts are softer in steps that are too long for them
IMPLICIT = ("radau", "bdf", "lsoda")  # of the adaptive methods


MOVING = "one configuration after the other"
DRIFT = Algorithm("drift", ("q", "v", "dt"), "state", configuration.drift, reason=MOVING)
KICK_BIAS = Algorithm("kick_bias", ("q", "v"), "a", lambda tree, q, v: configuration.kick_bias(tree, v), reason=MOVING)


def drifted(mech: Mechanism, q: np.ndarray, v: np.ndarray, h: Any) -> tuple[np.ndarray, np.ndarray]:
    """q and v after moving without acceleration for h."""
    if not _transports(mech):
        return integrate(mech, q, v, h), v
    found = float64_function(mech, _drift_kernel)(q, v, h)
    return found[..., : mech.nq], found[..., mech.nq :]


def kick_bias(mech: Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray | float:
    """What accelerations lack of the changes of velocities that ``drifted`` transports."""
    return float64_function(mech, _kick_bias_kernel)(q, v) if _transports(mech) else 0.0


def _drift_kernel(mech: Mechanism, dtype: str = "float64", parameters: Sequence[Any] = ()) -> Kernel:
    return compile(DRIFT, mech, dtype, parameters=parameters)


def _kick_bias_kernel(mech: Mechanism, dtype: str = "float64", parameters: Sequence[Any] = ()) -> Kernel:
    return compile(KICK_BIAS, mech, dtype, parameters=parameters)


def _transports(mech: Mechanism) -> bool:
    return any(body.kind.transported for body in mech.bodies)


def require_without_drives(mech: Mechanism) -> None:
    """Refuse what is no mechanism, and those that follow functions of time, which are no part of a kernel."""
    require_mechanism(mech)
    if mech.driven:
        raise MechanismError(
            f"rollout: drives of mechanism {mech.name!r} follow functions of time, which kernels do not know: use "
            "lw.simulate, or joint forces and feedback that lead it there"
        )


def default_method(mech: Mechanism, coordinates: str = "joint") -> str:
    """The method of rollouts where none is asked for: "semi_implicit" where contact acts, which explicit steps follow
    badly, else "rk4"; in other coordinates than "joint", which take everything explicitly, "rk4"."""
    touching = any(mech.acts("contact", pair.name) for pair in mech.contact_pairs)
    return "semi_implicit" if touching and coordinates == "joint" else "rk4"


def method_in(mech: Mechanism, coordinates: str, method: str | None) -> str:
    """The name of a method in these coordinates, as steps have it: "rk4", "momentum_rk4"; that by default for None."""
    method = default_method(mech, coordinates) if method is None else method
    check_method(method, one_of("coordinates", coordinates, ("joint", *VARIABLES)))
    if coordinates == "joint":
        return method
    refuse_loops(mech, coordinates)
    return f"{coordinates}_{method}"


def check_method(method: str, coordinates: str, more: Sequence[str] = ()) -> None:
    """Refuse methods that these coordinates do not take, besides ``more``."""
    if method in SYMPLECTIC and coordinates != "momentum":
        raise ValueError(
            f"method {method!r} is symplectic in canonical coordinates: give coordinates='momentum' with it, or take "
            f"one of {', '.join((*more, *methods_in(coordinates)))}"
        )
    one_of("method", method, (*more, *methods_in(coordinates)))


def rollout_methods(coordinates: str = "joint") -> tuple[str, ...]:
    """Names of the methods that ``rollout`` has in these coordinates ("joint", "momentum", "nu" or "xi"), those that
    were registered by ``register_integrator`` included."""
    return tuple(methods_in(one_of("coordinates", coordinates, ("joint", *VARIABLES))))


def refuse_loops(mech: Mechanism, coordinates: str) -> None:
    """Compiled steps in momenta and total rates keep no constraints."""
    if mech.loops:
        raise MechanismError(
            f"coordinates={coordinates!r}: mechanism {mech.name!r} has loops, and compiled steps in these coordinates "
            "do not keep them: use coordinates='joint', linkwise.simulate, which takes all coordinates, or "
            "mech.spanning_tree if the loops are meant to be open"
        )


def _parts(name: str) -> tuple[str, Any]:
    """The coordinates and the method of a name that ``method_in`` gives."""
    if name in METHODS:
        return "joint", METHODS[name]
    coordinates, _, method = name.partition("_")
    return coordinates, methods_in(coordinates)[method]


def step_name(mech: Mechanism, method: str) -> str:
    """The algorithm of a step on which nothing acts."""
    return f"closed_{method}_step" if mech.loops else f"{method}_step"


def step_algorithm(mech: Mechanism, method: str, acting: Acting, more: tuple[str, ...] = ()) -> Algorithm:
    """q, v, tau, dt, and ``more`` of wrenches, target, kp, kd, ctrl and activation, to the state after dt.

    tau, wrenches, ctrl and the forces of feedback are constant during the step, what elements do is not.
    """
    plain = ALGORITHMS[step_name(mech, method)]
    if not acting.laws and not set(more) & {*FEEDBACK}:
        return plain.with_ports(*(name for name in more if name in plain.ports))
    inputs = (*plain.inputs, *more)
    coordinates, chosen = _parts(method)
    if coordinates != "joint":
        return _step_in(mech, plain, coordinates, chosen, acting, inputs)
    whole: Any = partial(closed_acting_step if mech.loops else acting_step, chosen, acting)

    def step(tree: Tree, *arrays: Any, **options: Any) -> Any:
        given = dict(zip(inputs, arrays, strict=True))
        q, v, dt, wrenches = (given.get(name) for name in ("q", "v", "dt", "wrenches"))
        tau = _with_feedback(tree, given)
        if not acting.laws:
            ports, pushes = ((), ()) if wrenches is None else (("wrenches",), (wrenches,))
            return plain.with_ports(*ports).function(tree, q, v, tau, dt, *pushes, **options)
        return whole(tree, q, v, tau, dt, wrenches, given.get("ctrl", ()), given.get(ACTIVATION, ()), **options)

    return _with_inputs(mech, plain, inputs, step, acting)


def _with_feedback(tree: Tree, given: Mapping[str, Any]) -> Any:
    """tau, and what feedback adds to it where there is some."""
    if "target" not in given:
        return given["tau"]
    target, kp, kd = (given[name] for name in FEEDBACK)
    return fed_back(tree, given["q"], given["v"], given["tau"], target, kp, kd, given.get(GAIN))


def momentum_step(
    mech: Mechanism, method: str, acting: Acting, more: tuple[str, ...] = (), with_velocities: bool = True
) -> Algorithm:
    """The same from momenta p to momenta: q, p and activations after dt; or q, the velocities of the start, activations
    and p.  v is an input that is not looked at."""
    plain, (coordinates, chosen) = ALGORITHMS[step_name(mech, method)], _parts(method)
    inputs = (*plain.inputs, *more, MOMENTA)
    decided = plain.with_defaults(mech, {})
    variables = VARIABLES[coordinates](**decided)

    def step(tree: Tree, *arrays: Any) -> Any:
        given = dict(zip(inputs, arrays, strict=True))
        start = variables.flow(tree, given["q"], list(given[MOMENTA]))
        tau = _with_feedback(tree, {**given, "v": start.velocities})
        driven = given["dt"], given.get("wrenches"), given.get("ctrl", ()), given.get(ACTIVATION, ())
        q, p, activation = acting_step_from(start, variables, chosen, acting, tree, given["q"], tau, *driven)
        return [*q, *start.velocities, *activation, *p] if with_velocities else [*q, *p, *activation]

    found = dataclasses.replace(_with_inputs(mech, plain, inputs, step, acting), options=())
    size = mech.nq + (1 + with_velocities) * mech.nv + acting.n_activation
    rolls = not acting.laws and not set(more) & {*FEEDBACK}
    return dataclasses.replace(found, sizes={**found.sizes, "state": (size,)}, sweeps=rolls)


def _step_in(
    mech: Mechanism, plain: Algorithm, coordinates: str, method: Any, acting: Acting, inputs: tuple[str, ...]
) -> Algorithm:
    """In other variables than joint velocities."""
    decided = plain.with_defaults(mech, {})
    variables = VARIABLES[coordinates](**decided)

    def step(tree: Tree, *arrays: Any) -> Any:
        given = dict(zip(inputs, arrays, strict=True))
        q, v, dt = (given[name] for name in ("q", "v", "dt"))
        driven = given.get("wrenches"), given.get("ctrl", ()), given.get(ACTIVATION, ())
        return acting_step_in(variables, method, acting, tree, q, v, _with_feedback(tree, given), dt, *driven)

    return dataclasses.replace(_with_inputs(mech, plain, inputs, step, acting), options=())


def _with_inputs(
    mech: Mechanism, plain: Algorithm, inputs: tuple[str, ...], step: Callable[..., Any], acting: Acting
) -> Algorithm:
    """A step with more inputs than the plain one."""
    sizes: dict[str, tuple[int, ...]] = {"target": (mech.nq,), "kp": (mech.nv,), "kd": (mech.nv,)}
    sizes[GAIN] = (mech.nv, 2 * mech.nv)
    sizes |= {"ctrl": (acting.n_ctrl,), ACTIVATION: (acting.n_activation,)}
    if acting.n_activation:
        sizes["state"] = (mech.nq + mech.nv + acting.n_activation,)
    return dataclasses.replace(
        plain,
        inputs=inputs,
        expression=None,
        recursion=step,
        ports=(),
        sweeps=False,  # elements may act between links
        sizes={**plain.sizes, **sizes},
        options={**plain.decisions, **({"settled": lambda _: SETTLED} if mech.loops else {})},
    )


def feedback_forces(mech: Mechanism, given: Any, which: Any, target: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(..., nv): what feedback with the gains of the states ``which`` adds to joint forces."""
    way = difference(mech, q, target)
    forces = given["kp"][which] * way - given["kd"][which] * v
    if GAIN not in given:
        return forces
    return forces + (given[GAIN][which] @ np.concatenate([way, -v], axis=-1)[..., None])[..., 0]


def usual_step(mech: Mechanism) -> float:
    """The length of steps where that is not known while they are compiled."""
    usual = mech.timestep or mech.contact_step
    return usual if math.isfinite(usual) else USUAL_STEP


def fixed_steps(method: str, dt: Any, usual: float = USUAL_STEP) -> tuple[float | None, float | None]:
    """The length of steps that do not become shorter by themselves, of the longest, for which laws must be made: of a
    method that evaluates forces explicitly, or else of one that takes some of them implicitly; None for the other, and
    both of adaptive methods.  Those of them that are implicit follow forces of any steepness: 0 for the second.
    ``usual`` is the length where ``dt`` is no number."""
    if method in IMPLICIT:
        return None, 0.0
    coordinates, _, rest = method.partition("_")
    in_variables = coordinates in VARIABLES and rest in methods_in(coordinates)
    if not in_variables and method not in METHODS:
        return None, None
    try:
        longest = float(np.abs(np.asarray(dt, float)).max(initial=0.0))
    except (TypeError, ValueError):  # on a GPU, or no number, which others complain of
        longest = usual
    length = longest if 0.0 < longest < math.inf else usual
    implicit = not in_variables and implicit_share(METHODS[method]) is not None
    return (None, length) if implicit else (length, None)


def warn_of_long_steps(mech: Mechanism, method: str, acting: Acting, dt: Any) -> None:
    """Where steps are longer than springs, dampers, servos or contacts allow, which a method then feeds energy."""
    longest = float(np.abs(dt).max(initial=0.0))
    if not acting.laws or not math.isfinite(longest):
        return
    key = ("long steps", method, acting, longest)
    for complaint in stored(mech, key, lambda: tuple(_complaints(mech, method, acting, longest))):
        warn_caller(complaint, MechanismWarning)


def _complaints(mech: Mechanism, method: str, acting: Acting, step: float) -> Iterator[str]:
    coordinates, chosen = _parts(method)
    implicit = coordinates == "joint" and implicit_share(chosen) is not None
    if not mech.loops and (coordinates == "joint" or isinstance(chosen, Tableau)):  # which all variables take alike
        stable = SmallMotions.of(mech, acting).longest_step(chosen, step)
        if stable < step:
            what = "springs or servos" if implicit else "damping, springs or servos"
            other = "" if implicit else ", or method='semi_implicit', which takes damping of joints implicitly"
            yield (
                f"steps of {step:g} s are too long for {what} of mechanism {mech.name!r}, whose motion grows without "
                f"bound in steps of {method!r}: take steps of {float(f'{stable:.1g}'):g} s{other}"
            )
    if any(isinstance(law, CompliantContact) for law in acting.laws):
        yield from _complaints_of_contact(mech, method, step, implicit)


def _complaints_of_contact(mech: Mechanism, method: str, step: float, implicit: bool) -> Iterator[str]:
    """Steps that take contacts explicitly and are so long that these must be much softer: with the ground in explicit
    methods, between bodies that may rest on each other in all."""
    softest: tuple[float, Any] = (SOFTER, None)
    for pair in mech.contact_pairs:
        roots = {_root(mech, mech.shape(name).placed(mech)[0]) for name in pair.shapes}
        stacked = mech.gravity.any() and -1 not in roots and len(roots) > 1  # one free body rests on another
        if mech.acts("contact", pair.name) and (stacked or not implicit):
            ratio = pair.law.stiffness / pair.softened(step).law.stiffness
            softest = max(softest, (ratio, pair), key=lambda one: one[0])
    ratio, pair = softest
    if pair is None:
        return
    depth, follows = pair.load * ratio / pair.law.stiffness, pair.step * math.sqrt(SOFTER)
    other = "contacts between moving links are explicit in it" if implicit else "method='semi_implicit' follows it"
    yield (
        f"steps of {step:g} s are too long for contact {pair.name!r} of mechanism {mech.name!r}, which {method!r} "
        f"takes explicitly: it is {ratio:.2g} times softer in them, and gives way by {depth:.2g} under the weight that "
        f"may rest on it; steps of {float(f'{follows:.1g}'):g} s follow it; {other}"
    )


def _root(mech: Mechanism, body: int) -> int:
    """The root of the tree of a body; -1 for the ground."""
    while body >= 0 and mech.bodies[body].parent >= 0:
        body = mech.bodies[body].parent
    return body


@dataclass(frozen=True)
class OneStep:
    """The kernel of one compiled step: see ``step_algorithm``."""

    method: str
    acting: Acting
    more: tuple[str, ...]

    def __call__(self, mech: Mechanism, dtype: str = "float64", parameters: Sequence[Any] = ()) -> Kernel:
        algorithm = step_algorithm(mech, self.method, self.acting, self.more)
        return compile(algorithm, mech, dtype, parameters=parameters)
