"""A step in time: a mechanism in some coordinates, under force elements, advanced by a method.

``Step`` describes it as an algorithm with ports for its inputs.  ``rollout`` is a compiled scan over steps,
``step_kernel`` a single one, and gradients are derivatives of steps.
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
GAIN = "gain"  # full gain matrix of feedback
ACTIVATION = "activation"
DRIVE = "drive"  # prescribed position, velocity and acceleration of drives at the moments of a step
ACTIVE = "active"  # a schedule: 1 for active constraints, 0 for inactive ones
STATE = ("q", "v", ACTIVATION)  # activations of actuators with dynamics
#: Inputs of rollouts that may change from step to step, and how many axes one value of each has.
PER_STEP = {"tau": 1, "wrenches": 2, "target": 1, "ctrl": 1, DRIVE: 3, ACTIVE: 1}
MOMENTA = "p"  # state of steps in momenta
TRUSTED = "trusted"  # status counts of steps within constraints, see ``_count_status``
NONE_YET = np.zeros(3)  # initial value of ``TRUSTED``
SETTLED = {"float64": 1e-6, "float32": 1e-3}  # rad, sizes of loops: the last correction of positions
RESOLVED = 3.0  # steps to a singular position: with fewer, energies are off by a millionth and more
WATCHED = 12.0  # steps to a singular position: with more, arcs keep energies no better than steps do
USUAL_STEP = 1e-3  # s, if neither the mechanism nor its contacts set a time scale
SOFTER = 10.0  # ratio of contact stiffness to its softened value from which on steps are too long
IMPLICIT = ("radau", "bdf", "lsoda")  # implicit adaptive methods


MOVING = "one configuration after the other"
DRIFT = Algorithm("drift", ("q", "v", "dt"), "state", configuration.drift, reason=MOVING)
KICK_BIAS = Algorithm("kick_bias", ("q", "v"), "a", lambda tree, q, v: configuration.kick_bias(tree, v), reason=MOVING)


# -- the step -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A step of a method in some coordinates, under force elements.

    From q, v, tau, dt and further inputs to the state after dt; tau, wrenches, ctrl and feedback forces are constant
    during the step, forces of elements are not.

    method        name of the method
    acting        force elements
    inputs        further inputs, of "wrenches", "target", "kp", "kd", "gain", "ctrl", "activation", "drive",
                  "active"
    coordinates   velocity variables of the method: "joint" (v), "momentum", "nu" or "xi"
    parameters    names of parameters of the mechanism that are inputs

    It depends on no mechanism, and is part of the keys of stored kernels.
    """

    method: str
    acting: Acting = Acting()
    inputs: tuple[str, ...] = ()
    coordinates: str = "joint"
    parameters: tuple[str, ...] = ()

    def given(self, parameters: tuple[str, ...], acting: Acting | None = None, inputs: tuple[str, ...] = ()) -> Step:
        """The step with these parameters, force elements and further inputs."""
        return Step(self.method, acting or self.acting, inputs or self.inputs, self.coordinates, parameters)

    @property
    def rule(self) -> Method | Partitioned:
        """The method itself."""
        return methods_in(self.coordinates)[self.method]

    @property
    def name(self) -> str:
        """Name of the method, with its coordinates as a prefix unless they are "joint"."""
        return self.method if self.coordinates == "joint" else f"{self.coordinates}_{self.method}"

    @property
    def is_implicit(self) -> bool:
        """Whether the method treats some force laws implicitly."""
        return self.coordinates == "joint" and implicit_share(self.rule) is not None

    def plain(self, mech: Mechanism) -> Algorithm:
        """The registered algorithm of the step without force elements."""
        return ALGORITHMS[f"closed_{self.name}_step" if mech.loops else f"{self.name}_step"]

    def has_status(self, mech: Mechanism) -> bool:
        """Whether the step also returns its reliability: within constraints."""
        return self.plain(mech).output != "state"

    def algorithm(self, mech: Mechanism) -> Algorithm:
        """The algorithm from q, v, tau, dt and ``inputs`` to the state, within constraints with its reliability."""
        plain = self.plain(mech)
        if not self.acting.laws and not {*self.inputs} & {*FEEDBACK, DRIVE}:
            return plain.with_ports(*(name for name in self.inputs if name in plain.ports))
        names = (*plain.inputs, *self.inputs)
        if self.coordinates != "joint":
            return dataclasses.replace(self._extended(mech, names, self._variables_step(mech, names)), options=())

        def step(tree: Tree, *arrays: Any, **options: Any) -> Any:
            inputs = dict(zip(names, arrays, strict=True))
            if not self.acting.laws and DRIVE not in inputs:
                ports = [name for name in plain.ports if name in inputs]
                state = (inputs["q"], inputs["v"], _add_feedback(tree, inputs), inputs["dt"])
                return plain.with_ports(*ports).function(tree, *state, *(inputs[name] for name in ports), **options)
            start, rule = _start(tree, inputs), ActingStep(self.rule, self.acting)
            if not options:
                return rule.of_tree(tree, start)
            drives = dict(zip(self.rule.moments, inputs[DRIVE], strict=True)) if DRIVE in inputs else None
            constraints = ConstrainedStep(tree, start.q, start.v, inputs.get(ACTIVE), drives=drives, **options)
            return rule.within(constraints, start)

        return self._extended(mech, names, step)

    def _variables_step(self, mech: Mechanism, names: tuple[str, ...]) -> Callable[..., Any]:
        variables, rule = self._variables(mech), ActingStep(self.rule, self.acting)

        def step(tree: Tree, *arrays: Any) -> Any:
            return rule.in_variables(variables, tree, _start(tree, dict(zip(names, arrays, strict=True))))

        return step

    def _variables(self, mech: Mechanism) -> Any:
        plain = self.plain(mech)
        return VARIABLES[self.coordinates](**plain.with_defaults(mech, {}))

    def momentum_step(self, mech: Mechanism, with_velocities: bool) -> Algorithm:
        """The step as an algorithm from momenta p, the last input, to [q, p, activations] after dt.  With velocities
        the result is [q, v at the start, activations, p].  The input v is ignored."""
        names = (*self.plain(mech).inputs, *self.inputs, MOMENTA)
        variables, rule = self._variables(mech), ActingStep(self.rule, self.acting)

        def step(tree: Tree, *arrays: Any) -> Any:
            inputs = dict(zip(names, arrays, strict=True))
            flow = variables.flow(tree, inputs["q"], list(inputs[MOMENTA]))
            start = _start(tree, {**inputs, "v": flow.velocities})
            q, p, activation = rule.from_flow(flow, variables, tree, start)
            return [*q, *flow.velocities, *activation, *p] if with_velocities else [*q, *p, *activation]

        algorithm = dataclasses.replace(self._extended(mech, names, step), options=())
        size = mech.nq + (1 + with_velocities) * mech.nv + self.acting.n_activation
        rolls = not self.acting.laws and not {*self.inputs} & {*FEEDBACK}
        return dataclasses.replace(algorithm, sizes={**algorithm.sizes, "state": (size,)}, sweeps=rolls)

    def _extended(self, mech: Mechanism, names: tuple[str, ...], step: Callable[..., Any]) -> Algorithm:
        """The plain step with further inputs and another recursion."""
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
            sweeps=False,  # force elements may connect links
            sizes={**plain.sizes, **sizes},
            options={name: decide or OTHERWISE[name] for name, decide in plain.decisions.items()},
        )

    # -- compiled ---------------------------------------------------------------------------------------

    def __call__(self, mech: Mechanism, dtype: str = "float64", parameters: Sequence[Any] = ()) -> Kernel:
        """The kernel of one step, so that a ``Step`` may be passed to ``kernel_function``."""
        return compile(self.algorithm(mech), mech, dtype, parameters=(*parameters, *self.parameters))

    def decisions(self, mech: Mechanism) -> dict[str, Any]:
        """Decisions that depend on the mechanism: elimination orders, units."""
        return self.plain(mech).with_defaults(mech, {})

    def shapes(self, mech: Mechanism) -> list[tuple[str, tuple[int, ...]]]:
        """Name and core shape of every input of a step."""
        arrays, _ = parameter_arrays(mech, self.parameters)
        shapes = self.algorithm(mech).shapes(mech, self.decisions(mech))
        return [*shapes, *((array.name, array.shape) for array in arrays)]

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
        """The program of one step, with its result split into the arrays carried to the next step.

        These are q, v, activations and, within constraints, the status counts.

        numbers           parameters that are inputs besides ``parameters``
        counts            whether steps within constraints have status counts
        with_velocities   None, or for steps from momenta to momenta: whether v of the start is an output
        form              ``loops`` and ``stages`` of ``trace_with_plan``
        """
        handed_on, options = self._handed_on(mech), {}
        if with_velocities is None:
            algorithm = self.algorithm(mech)
        else:
            algorithm, momenta = self.momentum_step(mech, with_velocities), (MOMENTA, mech.nv)
            handed_on = [*handed_on, momenta] if with_velocities else [handed_on[0], momenta, *handed_on[2:]]
        if self.has_status(mech):
            options = {"fronts": fronts(mech), "settled": SETTLED[dtype]}
            algorithm = _count_status(algorithm) if counts else _drop_status(algorithm)
            handed_on += [(TRUSTED, len(NONE_YET))] * counts
        numbers = (*numbers, *self.parameters)
        program = trace_with_plan(algorithm, mech, numbers, options, **{"loops": False, **form}).program
        parts = tuple(Array(name + NEXT, (size,)) for name, size in handed_on)
        return dataclasses.replace(program.with_divided_output(parts), name=f"{self.name}_rollout")

    def _handed_on(self, mech: Mechanism) -> list[tuple[str, int]]:
        """Names and sizes of the arrays carried from step to step."""
        more = [(ACTIVATION, self.acting.n_activation)] if self.acting.n_activation else []
        return [("q", mech.nq), ("v", mech.nv), *more]


#: Default options of steps.
OTHERWISE: dict[str, Any] = {"settled": lambda _: SETTLED_BY_DEFAULT}
NEXT = "_next"  # suffix of outputs that are inputs of the next step


def _start(tree: Tree, inputs: Mapping[str, Any]) -> Start:
    driven = inputs.get("wrenches"), inputs.get("ctrl", ()), inputs.get(ACTIVATION, ())
    return Start(inputs["q"], inputs["v"], _add_feedback(tree, inputs), inputs["dt"], *driven)


def _add_feedback(tree: Tree, inputs: Mapping[str, Any]) -> Any:
    """tau plus the forces of feedback, if any."""
    if "target" not in inputs:
        return inputs["tau"]
    target, kp, kd = (inputs[name] for name in FEEDBACK)
    return fed_back(tree, inputs["q"], inputs["v"], inputs["tau"], target, kp, kd, inputs.get(GAIN))


def _drop_status(algorithm: Algorithm) -> Algorithm:
    """A step within constraints without its reliability."""
    state = algorithm.function
    first: Any = {"output": "state", "recursion": lambda *x, **more: state(*x, **more)[0], "ports": ()}
    return dataclasses.replace(algorithm, **first)


def _count_status(algorithm: Algorithm) -> Algorithm:
    """A step within constraints with status counts ``TRUSTED`` as one more input, and at the end of its state.  The
    counts are the number of reliable steps, the number of steps that resolve the motion, and the number of steps before
    a singular position came near.  The first step that fails turns a count n of the first two into -1 - n, which then
    stays."""
    step = algorithm.function

    def counted(*inputs: Any, **options: Any) -> list[Scalar]:
        *others, (relied, resolved, near) = inputs
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


class StepResult(NamedTuple):
    """The result of one compiled step, in float64.

    state    (..., nq + nv + n_activation)
    relied   (...): whether the state is reliable; True for trees
    ahead    (...): square of the number of such steps to a singular position, a lower bound; infinite for trees
    """

    state: np.ndarray
    relied: Any
    ahead: Any


def reached(mech: Mechanism, step: Step, *inputs: Any) -> StepResult:
    """The result of one compiled step from its inputs, in their order."""
    results = float64_function(mech, step)(*inputs)
    if not isinstance(results, tuple):
        return StepResult(results, True, np.inf)
    state, reliability, ahead = results
    return StepResult(state, is_reliable(reliability), ahead)


def is_reliable(reliability: Any) -> Any:
    """Whether a result of compiled code with this reliability can be used."""
    return reliability > RELIABLE


def step_of(
    mech: Mechanism, method: str | None, coordinates: str, inputs: tuple[str, ...] = (), parameters: Sequence[str] = ()
) -> Step:
    """The step for a method by name, without force elements; raises if the mechanism does not support it."""
    require_mechanism(mech)
    method = default_method(mech, coordinates) if method is None else method
    check_method(method, one_of("coordinates", coordinates, ("joint", *VARIABLES)))
    if coordinates != "joint":
        refuse_loops(mech, coordinates)
    step = Step(method, inputs=inputs, coordinates=coordinates, parameters=tuple(parameters))
    step.plain(mech).check(mech, infinitesimal=True)  # rollouts take such steps with NumPy
    return step


# -- moving without acceleration ----------------------------------------------------------------------


def drifted(mech: Mechanism, q: np.ndarray, v: np.ndarray, h: Any) -> tuple[np.ndarray, np.ndarray]:
    """q and v after moving without acceleration for h."""
    if not _transports(mech):
        return integrate(mech, q, v, h), v
    moved = float64_function(mech, _drift_kernel)(q, v, h)
    return moved[..., : mech.nq], moved[..., mech.nq :]


def kick_bias(mech: Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray | float:
    """Bias to add to accelerations because ``drifted`` transports velocities between configurations."""
    return float64_function(mech, _kick_bias_kernel)(q, v) if _transports(mech) else 0.0


def _drift_kernel(mech: Mechanism, dtype: str = "float64", parameters: Sequence[Any] = ()) -> Kernel:
    return compile(DRIFT, mech, dtype, parameters=parameters)


def _kick_bias_kernel(mech: Mechanism, dtype: str = "float64", parameters: Sequence[Any] = ()) -> Kernel:
    return compile(KICK_BIAS, mech, dtype, parameters=parameters)


def _transports(mech: Mechanism) -> bool:
    return any(body.kind.transported for body in mech.bodies)


def default_method(mech: Mechanism, coordinates: str = "joint") -> str:
    """The default method of rollouts: "semi_implicit" with active contact, which explicit steps resolve badly, else
    "rk4".  Coordinates other than "joint" are always explicit: "rk4"."""
    touching = any(mech.forces.acts("contact", pair.name) for pair in mech.contact_pairs)
    return "semi_implicit" if touching and coordinates == "joint" else "rk4"


def check_method(method: str, coordinates: str, more: Sequence[str] = ()) -> None:
    """Raise unless these coordinates support the method, or it is one of ``more``."""
    if method in SYMPLECTIC and coordinates != "momentum":
        raise ValueError(
            f"method {method!r} is symplectic in canonical coordinates: give coordinates='momentum' with it, or take "
            f"one of {', '.join((*more, *methods_in(coordinates)))}"
        )
    one_of("method", method, (*more, *methods_in(coordinates)))


def rollout_methods(coordinates: str = "joint") -> tuple[str, ...]:
    """Names of the methods of ``rollout`` in these coordinates: "joint", "momentum", "nu" or "xi".  Methods registered
    by ``register_integrator`` are included."""
    return tuple(methods_in(one_of("coordinates", coordinates, ("joint", *VARIABLES))))


def refuse_loops(mech: Mechanism, coordinates: str) -> None:
    """Raise for mechanisms with loops: compiled steps in momenta and total rates keep no constraints."""
    if mech.loops:
        raise MechanismError(
            f"coordinates={coordinates!r}: mechanism {mech.name!r} has loops, and compiled steps in these coordinates "
            "do not keep them: use coordinates='joint', linkwise.simulate, which takes all coordinates, or "
            "mech.spanning_tree if the loops are meant to be open"
        )


def feedback_forces(mech: Mechanism, inputs: Any, which: Any, target: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(..., nv): feedback forces with the gains of the states ``which``."""
    gap = difference(mech, q, target)
    forces = inputs["kp"][which] * gap - inputs["kd"][which] * v
    if GAIN not in inputs:
        return forces
    return forces + (inputs[GAIN][which] @ np.concatenate([gap, -v], axis=-1)[..., None])[..., 0]


def usual_step(mech: Mechanism) -> float:
    """The assumed length of steps if it is unknown at compile time."""
    usual = mech.metadata.timestep or mech.contact.step
    return usual if math.isfinite(usual) else USUAL_STEP


def fixed_steps(
    method: str, dt: Any, usual: float = USUAL_STEP, coordinates: str = "joint"
) -> tuple[float | None, float | None]:
    """(explicit_step, implicit_step) for the softening of force laws.  Fixed steps of length h give (h, None) if all
    forces are explicit, else (None, h).  Adaptive methods give (None, None) if explicit, (None, 0) if implicit.
    h is ``usual`` if ``dt`` is not a number."""
    if method in IMPLICIT:
        return None, 0.0
    in_variables = coordinates in VARIABLES
    if method not in methods_in(coordinates if in_variables else "joint"):
        return None, None
    try:
        longest = float(np.abs(np.asarray(dt, float)).max(initial=0.0))
    except (TypeError, ValueError):  # on a GPU, or not a number, which is refused elsewhere
        longest = usual
    length = longest if 0.0 < longest < math.inf else usual
    implicit = not in_variables and implicit_share(METHODS[method]) is not None
    return (None, length) if implicit else (length, None)


def warn_of_long_steps(mech: Mechanism, step: Step, dt: Any) -> None:
    """Warn of steps too long for springs, dampers, servos or contacts: the method would feed energy into the motion."""
    longest = float(np.abs(dt).max(initial=0.0))
    if not step.acting.laws or not math.isfinite(longest):
        return
    key = ("long steps", step.name, step.acting, longest)
    for complaint in stored(mech, key, lambda: tuple(_complaints(mech, step, longest))):
        warn_caller(complaint, MechanismWarning)


def _complaints(mech: Mechanism, step: Step, length: float) -> Iterator[str]:
    implicit, rule = step.is_implicit, step.rule
    alike = isinstance(rule, Tableau) or (isinstance(rule, Splitting) and step.coordinates == "joint")
    if not mech.loops and alike:
        assert not isinstance(rule, Partitioned)
        stable = SmallMotions.of(mech, step.acting).longest_step(rule, length)
        if stable < length:
            laws = "springs or servos" if implicit else "damping, springs or servos"
            other = "" if implicit else ", or method='semi_implicit', which takes damping of joints implicitly"
            yield (
                f"steps of {length:g} s are too long for {laws} of mechanism {mech.name!r}, whose motion grows without "
                f"bound in steps of {step.name!r}: take steps of {float(f'{stable:.1g}'):g} s{other}"
            )
    if any(isinstance(law, CompliantContact) for law in step.acting.laws):
        yield from _complaints_of_contact(mech, step.name, length, implicit)


def _complaints_of_contact(mech: Mechanism, method: str, step: float, implicit: bool) -> Iterator[str]:
    """Warnings for steps so long that explicit contacts must be made much softer.  Explicit methods
    are checked for all contacts, others only for contacts between bodies that may rest on each other."""
    softest: tuple[float, Any] = (SOFTER, None)
    for pair in mech.contact_pairs:
        roots = {_root(mech, mech.contact.shape(name).placed(mech)[0]) for name in pair.shapes}
        stacked = mech.gravity.any() and -1 not in roots and len(roots) > 1  # one free body may rest on another
        if mech.forces.acts("contact", pair.name) and (stacked or not implicit):
            ratio = pair.law.stiffness / pair.softened(step).law.stiffness
            softest = max(softest, (ratio, pair), key=lambda entry: entry[0])
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
