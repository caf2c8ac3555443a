"""A step in time: a system (a mechanism in some coordinates, and what acts on it) advanced by a method.

``Step`` is the record of it: an algorithm with ports for all that drives it.  ``rollout`` is a compiled scan over it,
``step_kernel`` is one of it, and gradients are its derivatives.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..compiler.ir.program import Array
from ..compiler.kernel import Kernel
from ..compiler.pipeline import compile, trace_with_plan
from ..compiler.requests import parameter_arrays
from ..compiler.store import float64_function, stored
from ..constraints.elimination_orders import fronts
from ..dynamics.trees import difference, integrate
from ..mechanics.algorithms import configuration
from ..mechanics.algorithms.algorithm import Algorithm
from ..mechanics.algorithms.catalogue import ALGORITHMS
from ..mechanics.algorithms.closed_projection import RELIABLE
from ..mechanics.algorithms.closed_projection import SETTLED as SETTLED_BY_DEFAULT
from ..mechanics.algorithms.constrained_steps import ConstrainedStep
from ..mechanics.algorithms.integration import METHODS, Method, Splitting, Tableau, fed_back
from ..mechanics.algorithms.steps_in_variables import SYMPLECTIC, VARIABLES, Partitioned, methods_in
from ..mechanics.elements.contact import CompliantContact
from ..mechanics.elements.law import Acting
from ..mechanics.elements.stability import SmallMotions
from ..mechanics.elements.steps import ActingStep, Start, implicit_share
from ..mechanics.recursions.tree import Tree
from ..mechanics.scalar import Scalar, select
from ..mechanism import Mechanism, MechanismError, MechanismWarning, one_of, require_mechanism, warn_caller

FEEDBACK = ("target", "kp", "kd")
GAIN = "gain"  # of all states at once, besides
ACTIVATION = "activation"
DRIVE = "drive"  # what drives ask for at the moments of a step: position, velocity, acceleration
ACTIVE = "active"  # a schedule: 1 for constraints that hold, 0 for those that do not
STATE = ("q", "v", ACTIVATION)  # the last where actuators have states of their own
#: Inputs of rollouts that may change from step to step, and how many axes one value of each has.
PER_STEP = {"tau": 1, "wrenches": 2, "target": 1, "ctrl": 1, DRIVE: 3, ACTIVE: 1}
MOMENTA = "p"  # what steps in momenta hand on
TRUSTED = "trusted"  # how far steps within constraints could be relied on
NONE_YET = np.zeros(3)  # what ``TRUSTED`` starts with
SETTLED = {"float64": 1e-6, "float32": 1e-3}  # rad, sizes of loops: the last correction of positions
RESOLVED = 3.0  # steps to a singular position: with fewer, energies are off by a millionth and more
WATCHED = 12.0  # the same: with more, arcs keep energies no better than steps do
USUAL_STEP = 1e-3  # s, where neither the mechanism nor its contacts say anything of time
SOFTER = 10.0  # by how much the springs of contacts are softer in steps that are too long for them
IMPLICIT = ("radau", "bdf", "lsoda")  # of the adaptive methods


MOVING = "one configuration after the other"
DRIFT = Algorithm("drift", ("q", "v", "dt"), "state", configuration.drift, reason=MOVING)
KICK_BIAS = Algorithm("kick_bias", ("q", "v"), "a", lambda tree, q, v: configuration.kick_bias(tree, v), reason=MOVING)


# -- the step -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A step of a method in some coordinates, under force elements: from q, v, tau, dt and further inputs to the state
    after dt.  tau, wrenches, ctrl and the forces of feedback are constant during the step, what elements do is not.

    method        its name
    acting        force elements
    inputs        further ones: of "wrenches", "target", "kp", "kd", "gain", "ctrl", "activation", "drive",
                  "active"
    coordinates   what the method is applied to beside q: "joint" (v), "momentum", "nu" or "xi"
    parameters    names of numbers of the mechanism that are inputs too

    It depends on no mechanism, and stands in what these keep for the kernels that are made of it.
    """

    method: str
    acting: Acting = Acting()
    inputs: tuple[str, ...] = ()
    coordinates: str = "joint"
    parameters: tuple[str, ...] = ()

    def given(self, parameters: tuple[str, ...], acting: Acting | None = None, inputs: tuple[str, ...] = ()) -> Step:
        """The step of this method with these parameters, and all else that callers give."""
        return Step(self.method, acting or self.acting, inputs or self.inputs, self.coordinates, parameters)

    @property
    def rule(self) -> Method | Partitioned:
        """The method itself."""
        return methods_in(self.coordinates)[self.method]

    @property
    def name(self) -> str:
        """Of the method in its coordinates."""
        return self.method if self.coordinates == "joint" else f"{self.coordinates}_{self.method}"

    @property
    def is_implicit(self) -> bool:
        """Whether it takes forces of some laws implicitly."""
        return self.coordinates == "joint" and implicit_share(self.rule) is not None

    def plain(self, mech: Mechanism) -> Algorithm:
        """The registered algorithm, on which nothing acts."""
        return ALGORITHMS[f"closed_{self.name}_step" if mech.loops else f"{self.name}_step"]

    def has_status(self, mech: Mechanism) -> bool:
        """Whether steps say how far they can be relied on, as those within constraints do."""
        return self.plain(mech).output != "state"

    def algorithm(self, mech: Mechanism) -> Algorithm:
        """From q, v, tau, dt and ``inputs`` to the state; within constraints with how far it can be relied on."""
        plain = self.plain(mech)
        if not self.acting.laws and not {*self.inputs} & {*FEEDBACK, DRIVE}:
            return plain.with_ports(*(name for name in self.inputs if name in plain.ports))
        names = (*plain.inputs, *self.inputs)
        if self.coordinates != "joint":
            return dataclasses.replace(self._extended(mech, names, self._in_variables(mech, names)), options=())

        def step(tree: Tree, *arrays: Any, **options: Any) -> Any:
            given = dict(zip(names, arrays, strict=True))
            if not self.acting.laws and DRIVE not in given:
                ports = [name for name in plain.ports if name in given]
                state = (given["q"], given["v"], _with_feedback(tree, given), given["dt"])
                return plain.with_ports(*ports).function(tree, *state, *(given[name] for name in ports), **options)
            start, rule = _start(tree, given), ActingStep(self.rule, self.acting)
            if not options:
                return rule.of_tree(tree, start)
            drives = dict(zip(self.rule.moments, given[DRIVE], strict=True)) if DRIVE in given else None
            constraints = ConstrainedStep(tree, start.q, start.v, given.get(ACTIVE), drives=drives, **options)
            return rule.within(constraints, start)

        return self._extended(mech, names, step)

    def _in_variables(self, mech: Mechanism, names: tuple[str, ...]) -> Callable[..., Any]:
        variables, rule = self._variables(mech), ActingStep(self.rule, self.acting)

        def step(tree: Tree, *arrays: Any) -> Any:
            return rule.in_variables(variables, tree, _start(tree, dict(zip(names, arrays, strict=True))))

        return step

    def _variables(self, mech: Mechanism) -> Any:
        plain = self.plain(mech)
        return VARIABLES[self.coordinates](**plain.with_defaults(mech, {}))

    def from_momenta(self, mech: Mechanism, with_velocities: bool) -> Algorithm:
        """From momenta p, the last input, to momenta: q, p and activations after dt; or q, the velocities of the start,
        activations and p.  v is an input that is not looked at."""
        names = (*self.plain(mech).inputs, *self.inputs, MOMENTA)
        variables, rule = self._variables(mech), ActingStep(self.rule, self.acting)

        def step(tree: Tree, *arrays: Any) -> Any:
            given = dict(zip(names, arrays, strict=True))
            flow = variables.flow(tree, given["q"], list(given[MOMENTA]))
            start = _start(tree, {**given, "v": flow.velocities})
            q, p, activation = rule.from_flow(flow, variables, tree, start)
            return [*q, *flow.velocities, *activation, *p] if with_velocities else [*q, *p, *activation]

        found = dataclasses.replace(self._extended(mech, names, step), options=())
        size = mech.nq + (1 + with_velocities) * mech.nv + self.acting.n_activation
        rolls = not self.acting.laws and not {*self.inputs} & {*FEEDBACK}
        return dataclasses.replace(found, sizes={**found.sizes, "state": (size,)}, sweeps=rolls)

    def _extended(self, mech: Mechanism, names: tuple[str, ...], step: Callable[..., Any]) -> Algorithm:
        """The plain step with more inputs and another recursion."""
        plain = self.plain(mech)
        sizes: dict[str, tuple[int, ...]] = {"target": (mech.nq,), "kp": (mech.nv,), "kd": (mech.nv,)}
        sizes[GAIN] = (mech.nv, 2 * mech.nv)
        if DRIVE in names:
            sizes[DRIVE] = (len(self.rule.moments), len(mech.constraints.driven), 3)
        sizes |= {"ctrl": (self.acting.n_ctrl,), ACTIVATION: (self.acting.n_activation,)}
        if self.acting.n_activation:
            sizes["state"] = (mech.nq + mech.nv + self.acting.n_activation,)
        return dataclasses.replace(
            plain,
            inputs=names,
            expression=None,
            recursion=step,
            ports=(),
            sweeps=False,  # elements may act between links
            sizes={**plain.sizes, **sizes},
            options={name: decide or OTHERWISE[name] for name, decide in plain.decisions.items()},
        )

    # -- compiled ---------------------------------------------------------------------------------------

    def __call__(self, mech: Mechanism, dtype: str = "float64", parameters: Sequence[Any] = ()) -> Kernel:
        """The kernel of one step; as a request for ``kernel_function``."""
        return compile(self.algorithm(mech), mech, dtype, parameters=(*parameters, *self.parameters))

    def decisions(self, mech: Mechanism) -> dict[str, Any]:
        """What the mechanism decides of its steps: orders of elimination, units."""
        return self.plain(mech).with_defaults(mech, {})

    def shapes(self, mech: Mechanism) -> list[tuple[str, tuple[int, ...]]]:
        """Name and core shape of every input of a step."""
        arrays, _ = parameter_arrays(mech, self.parameters)
        own = self.algorithm(mech).shapes(mech, self.decisions(mech))
        return [*own, *((array.name, array.shape) for array in arrays)]

    def program(
        self,
        mech: Mechanism,
        dtype: str,
        numbers: Sequence[Any] = (),
        *,
        counts: bool = True,
        with_velocities: bool | None = None,
        **form: Any,
    ) -> Any:
        """The program of one step, its result divided into what is handed on to the next one: q, v, activations and, of
        closed mechanisms, how far steps can be relied on.

        numbers           of the mechanism, inputs besides ``parameters``
        counts            whether steps within constraints count how far they can be relied on
        with_velocities   steps from momenta to momenta, with or without v of the start, if it is not None
        form              ``loops`` and ``stages`` of ``trace_with_plan``
        """
        handed_on, options = self._handed_on(mech), {}
        if with_velocities is None:
            algorithm = self.algorithm(mech)
        else:
            algorithm, momenta = self.from_momenta(mech, with_velocities), (MOMENTA, mech.nv)
            handed_on = [*handed_on, momenta] if with_velocities else [handed_on[0], momenta, *handed_on[2:]]
        if self.has_status(mech):
            options = {"fronts": fronts(mech), "settled": SETTLED[dtype]}
            algorithm = _counting(algorithm) if counts else _state_alone(algorithm)
            handed_on += [(TRUSTED, len(NONE_YET))] * counts
        numbers = (*numbers, *self.parameters)
        program = trace_with_plan(algorithm, mech, numbers, options, **{"loops": False, **form}).program
        parts = tuple(Array(name + NEXT, (size,)) for name, size in handed_on)
        return dataclasses.replace(program.with_divided_output(parts), name=f"{self.name}_rollout")

    def _handed_on(self, mech: Mechanism) -> list[tuple[str, int]]:
        """What a step gives the next one."""
        more = [(ACTIVATION, self.acting.n_activation)] if self.acting.n_activation else []
        return [("q", mech.nq), ("v", mech.nv), *more]


#: Options of steps that neither a mechanism nor a caller chooses.
OTHERWISE: dict[str, Any] = {"settled": lambda _: SETTLED_BY_DEFAULT}
NEXT = "_next"  # how names of outputs end that are inputs of the next step


def _start(tree: Tree, given: Mapping[str, Any]) -> Start:
    driven = given.get("wrenches"), given.get("ctrl", ()), given.get(ACTIVATION, ())
    return Start(given["q"], given["v"], _with_feedback(tree, given), given["dt"], *driven)


def _with_feedback(tree: Tree, given: Mapping[str, Any]) -> Any:
    """tau, and what feedback adds to it where there is some."""
    if "target" not in given:
        return given["tau"]
    target, kp, kd = (given[name] for name in FEEDBACK)
    return fed_back(tree, given["q"], given["v"], given["tau"], target, kp, kd, given.get(GAIN))


def _state_alone(algorithm: Algorithm) -> Algorithm:
    """A step within constraints without how far it can be relied on."""
    state = algorithm.function
    first: Any = {"output": "state", "recursion": lambda *x, **more: state(*x, **more)[0], "ports": ()}
    return dataclasses.replace(algorithm, **first)


def _counting(algorithm: Algorithm) -> Algorithm:
    """A step within constraints with one more input, which comes back at the end of the state: ``TRUSTED``, how many
    steps were made that can be relied on, how many that resolve the motion, and after how many of them a singular
    position came near, to which the next ones lead.  With the first step that does not, each of the first two ends, and
    is -1 minus the number."""
    step = algorithm.function

    def counted(*given: Any, **options: Any) -> list[Scalar]:
        *others, (relied, resolved, near) = given
        state, reliability, ahead = step(*others, **options)
        poor, rough = select(RELIABLE < reliability, 0.0, 1.0), select(ahead < RESOLVED**2, 1.0, 0.0)
        away = select(ahead < WATCHED**2, near, relied + select(0.5 < poor + rough, 0.0, 1.0))
        near = select(relied < 0.0, near, select(resolved < 0.0, near, away))
        ends = ((relied, poor), (resolved, rough))
        counts = [select(count < 0.0, count, select(0.5 < end, -1.0 - count, count + 1.0)) for count, end in ends]
        return [*state, *counts, near]

    return dataclasses.replace(
        algorithm,
        inputs=(*algorithm.inputs, TRUSTED),
        output="result",
        recursion=counted,
        ports=(),
        sizes={**algorithm.sizes, TRUSTED: NONE_YET.shape},
    )


class Reached(NamedTuple):
    """Where one compiled step leads, in float64.

    state    (..., nq + nv + n_activation)
    relied   (...): whether it can be relied on; True of trees
    ahead    (...): the square of about the fewest such steps to a singular position; infinite of trees
    """

    state: np.ndarray
    relied: Any
    ahead: Any


def reached(mech: Mechanism, step: Step, *inputs: Any) -> Reached:
    """One step from what it takes, in the order of its inputs."""
    results = float64_function(mech, step)(*inputs)
    if not isinstance(results, tuple):
        return Reached(results, True, np.inf)
    state, reliability, ahead = results
    return Reached(state, relied_on(reliability), ahead)


def relied_on(reliability: Any) -> Any:
    """Whether compiled code says that its result can be relied on."""
    return reliability > RELIABLE


def step_of(
    mech: Mechanism, method: str | None, coordinates: str, inputs: tuple[str, ...] = (), parameters: Sequence[str] = ()
) -> Step:
    """The step that a caller asks for, nothing acting on it; refused where no mechanism has it, or this one."""
    require_mechanism(mech)
    method = default_method(mech, coordinates) if method is None else method
    check_method(method, one_of("coordinates", coordinates, ("joint", *VARIABLES)))
    if coordinates != "joint":
        refuse_loops(mech, coordinates)
    step = Step(method, inputs=inputs, coordinates=coordinates, parameters=tuple(parameters))
    step.plain(mech).check(mech, infinitesimal=True)  # rollouts take such steps by NumPy
    return step


# -- moving without acceleration ----------------------------------------------------------------------


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


def default_method(mech: Mechanism, coordinates: str = "joint") -> str:
    """The method of rollouts where none is asked for: "semi_implicit" where contact acts, which explicit steps follow
    badly, else "rk4"; in other coordinates than "joint", which take everything explicitly, "rk4"."""
    touching = any(mech.forces.acts("contact", pair.name) for pair in mech.contact_pairs)
    return "semi_implicit" if touching and coordinates == "joint" else "rk4"


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


def feedback_forces(mech: Mechanism, given: Any, which: Any, target: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(..., nv): what feedback with the gains of the states ``which`` adds to joint forces."""
    way = difference(mech, q, target)
    forces = given["kp"][which] * way - given["kd"][which] * v
    if GAIN not in given:
        return forces
    return forces + (given[GAIN][which] @ np.concatenate([way, -v], axis=-1)[..., None])[..., 0]


def usual_step(mech: Mechanism) -> float:
    """The length of steps where that is not known while they are compiled."""
    usual = mech.metadata.timestep or mech.contact.step
    return usual if math.isfinite(usual) else USUAL_STEP


def fixed_steps(
    method: str, dt: Any, usual: float = USUAL_STEP, coordinates: str = "joint"
) -> tuple[float | None, float | None]:
    """The length of steps that do not become shorter by themselves, of the longest, for which laws must be made: of a
    method that evaluates forces explicitly, or else of one that takes some of them implicitly; None for the other, and
    both of adaptive methods.  Those of them that are implicit follow forces of any steepness: 0 for the second.
    ``usual`` is the length where ``dt`` is no number."""
    if method in IMPLICIT:
        return None, 0.0
    in_variables = coordinates in VARIABLES
    if method not in methods_in(coordinates if in_variables else "joint"):
        return None, None
    try:
        longest = float(np.abs(np.asarray(dt, float)).max(initial=0.0))
    except (TypeError, ValueError):  # on a GPU, or no number, which others complain of
        longest = usual
    length = longest if 0.0 < longest < math.inf else usual
    implicit = not in_variables and implicit_share(METHODS[method]) is not None
    return (None, length) if implicit else (length, None)


def warn_of_long_steps(mech: Mechanism, step: Step, dt: Any) -> None:
    """Where steps are longer than springs, dampers, servos or contacts allow, which a method then feeds energy."""
    longest = float(np.abs(dt).max(initial=0.0))
    if not step.acting.laws or not math.isfinite(longest):
        return
    key = ("long steps", step.name, step.acting, longest)
    for complaint in stored(mech, key, lambda: tuple(_complaints(mech, step, longest))):
        warn_caller(complaint, MechanismWarning)


def _complaints(mech: Mechanism, step: Step, length: float) -> Iterator[str]:
    implicit, rule = step.is_implicit, step.rule
    alike = isinstance(rule, Tableau) or (isinstance(rule, Splitting) and step.coordinates == "joint")
    if not mech.loops and alike:  # in all variables
        assert not isinstance(rule, Partitioned)
        stable = SmallMotions.of(mech, step.acting).longest_step(rule, length)
        if stable < length:
            what = "springs or servos" if implicit else "damping, springs or servos"
            other = "" if implicit else ", or method='semi_implicit', which takes damping of joints implicitly"
            yield (
                f"steps of {length:g} s are too long for {what} of mechanism {mech.name!r}, whose motion grows without "
                f"bound in steps of {step.name!r}: take steps of {float(f'{stable:.1g}'):g} s{other}"
            )
    if any(isinstance(law, CompliantContact) for law in step.acting.laws):
        yield from _complaints_of_contact(mech, step.name, length, implicit)


def _complaints_of_contact(mech: Mechanism, method: str, step: float, implicit: bool) -> Iterator[str]:
    """Steps that take contacts explicitly and are so long that these must be much softer: with the ground in explicit
    methods, between bodies that may rest on each other in all."""
    softest: tuple[float, Any] = (SOFTER, None)
    for pair in mech.contact_pairs:
        roots = {_root(mech, mech.contact.shape(name).placed(mech)[0]) for name in pair.shapes}
        stacked = mech.gravity.any() and -1 not in roots and len(roots) > 1  # one free body rests on another
        if mech.forces.acts("contact", pair.name) and (stacked or not implicit):
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
