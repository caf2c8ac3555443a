"""Compiled controllers: joint forces as a function of state and reference, written once on scalars.

A ``ControlLaw`` is a force element (``mechanics/elements/law.py``) whose control inputs are the reference. ``rollout``
has it inside its compiled steps; ``control(t, q, v)``, for ``simulate``, evaluates a kernel of the same code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..compiler.kernel import Kernel
from ..compiler.pipeline import compile
from ..compiler.store import float64_function
from ..dynamics.by_joint import configuration_by_joint, numbers_per_velocity
from ..dynamics.states import Float64Array, checked_arrays, in_brief, real_numbers
from ..mechanics.algorithms.algorithm import Algorithm
from ..mechanics.elements.law import ForceLaw, Situation
from ..mechanics.recursions.tree import Tree, build_tree
from ..mechanics.scalar import Scalar, select
from ..mechanism import Mechanism, MechanismError
from ..mechanism.quaternions import with_unit_quaternions

REASON = "a control law: errors of positions and rotations, and what a model makes of them"
Reference = Callable[[float], np.ndarray]
Numbers = tuple[float, ...]
Scalars = Sequence[Scalar]


@dataclass(frozen=True)
class ControlLaw(ForceLaw):
    """Joint forces of a controller; ``n_ctrl`` numbers of reference, constant during a step of a rollout."""

    n_ctrl: int = 0
    looks_at_gravity = True

    @abstractmethod
    def __str__(self) -> str:
        """Name and gains of the law."""

    @abstractmethod
    def torques(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> list[Scalar]:
        """(nv,)"""

    def damping(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> list[Scalar] | None:
        """(nv,): how much each force decreases per unit of its own velocity, not negative, for implicit steps; None if
        steps must treat the law explicitly.
        """
        return None

    def act(self, at: Situation, ctrl: Scalars, activation: Scalars) -> Scalars:
        state = at.tree, at.q, at.v, ctrl
        tau, damping, mech = self.torques(*state), self.damping(*state), at.tree.mechanism
        for body in mech.bodies:
            if not body.mimic:
                rates = mech.v_index(body.joint)
                at.push_joint(body.joint, tau[rates])
                if damping is not None:
                    at.resist_joint(body.joint, damping[rates])
        return ()


@dataclass(frozen=True)
class SaturatedLaw(ControlLaw):
    """Another law whose forces go no further than ``limit`` in either direction."""

    law: ControlLaw | None = None
    limit: Numbers = ()

    def __str__(self) -> str:
        return f"{self.law}{format_limit(self.limit)}"

    def torques(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> list[Scalar]:
        assert self.law is not None
        tau = self.law.torques(tree, q, v, reference)
        return [clipped(x, bound) for x, bound in zip(tau, self.limit, strict=True)]

    def damping(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> list[Scalar] | None:
        """None at a bound."""
        assert self.law is not None
        unbounded = self.law.damping(tree, q, v, reference)
        if unbounded is None:
            return None
        tau = self.law.torques(tree, q, v, reference)
        return [clipped_slope(d, x, bound) for d, x, bound in zip(unbounded, tau, self.limit, strict=True)]


@dataclass(frozen=True)
class LawOfItsModel(ControlLaw):
    """A law evaluated with the constant parameters of its own model, independent of the parameters of the driven
    mechanism.
    """

    law: ControlLaw | None = None
    model: Mechanism | None = None
    looks_at_gravity = False

    def __str__(self) -> str:
        return f"{self.law}, of {self.model!r}"

    def torques(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> list[Scalar]:
        assert self.law is not None and self.model is not None
        return self.law.torques(build_tree(self.model), q, v, reference)

    def damping(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> list[Scalar] | None:
        assert self.law is not None and self.model is not None
        return self.law.damping(build_tree(self.model), q, v, reference)


def format_limit(limit: Any) -> str:
    """Human-readable force limit; empty string if unlimited."""
    return f", forces up to {in_brief(limit)}" if np.isfinite(limit).any() else ""


def clipped(x: Scalar, bound: float) -> Scalar:
    """x, no further from zero than ``bound``."""
    return select(x > bound, bound, select(x < -bound, -bound, x)) if np.isfinite(bound) else x


def clipped_slope(slope: Scalar, x: Scalar, bound: float) -> Scalar:
    """A slope, zero where x is cut off."""
    return select(x > bound, 0.0, select(x < -bound, 0.0, slope)) if np.isfinite(bound) else slope


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant reference."""

    numbers: np.ndarray

    def __call__(self, t: float) -> np.ndarray:
        return self.numbers


@dataclass(frozen=True, eq=False)
class CompiledControl:
    """A controller ``control(t, q, v) -> tau``, for batches too: for ``simulate``, and for ``rollout(...,
    feedback=control)``.

    law         the compiled law
    reference   from a time to the numbers that the law follows; None without reference
    """

    mech: Mechanism
    law: ControlLaw
    reference: Reference | None

    def __repr__(self) -> str:
        return f"<controller of {self.mech.name!r}: {self.law}>"

    def __call__(self, t: float, q: Any, v: Any) -> Float64Array:
        q, v = checked_arrays(self.mech, q=q, v=v)
        return self._kernel(q, v, *(() if self.reference is None else (self.reference(t),)))

    def law_for(self, plant: Mechanism, varied: bool) -> ControlLaw:
        """The law as part of compiled steps of ``plant``. It uses the parameters of the controller's own model, or
        those of the plant if both are the same mechanism and no parameter is ``varied`` from state to state.
        """
        if plant is self.mech and not varied:
            return self.law
        return LawOfItsModel(self.law.n_ctrl, self.law, self.mech)

    def references(self, dt: Any, steps: int) -> np.ndarray:
        """(steps, n_ctrl), or (1, n_ctrl) if it stays: the reference in the middle of every step."""
        if self.reference is None:
            return np.zeros((1, 0))
        if isinstance(self.reference, Constant):
            return self.reference.numbers[None]
        if np.ndim(dt) != 0:
            raise MechanismError("rollout: a controller with a reference takes one dt for all states")
        return np.array([self.reference((k + 0.5) * float(dt)) for k in range(max(steps, 1))])

    def __getstate__(self) -> dict[str, Any]:
        """The fields without machine code, which is compiled or found again."""
        return {name: x for name, x in vars(self).items() if name != "_kernel"}

    @cached_property
    def _kernel(self) -> Callable[..., Any]:
        return float64_function(self.mech, _Torques(self.law))


@dataclass(frozen=True)
class _Torques:
    """Compiles a law for a mechanism, into code that variants with other payloads and numbers share."""

    law: ControlLaw

    @property
    def frames(self) -> list[str]:
        """Names that may refer to frames: models with these frames elsewhere cannot share compiled code."""
        laws, names = [self.law], list[str]()
        for law in laws:
            values = [getattr(law, field.name) for field in fields(law)]
            laws += [x for x in values if isinstance(x, ControlLaw)]
            names += [x for x in values if isinstance(x, str)]
        return names

    def __call__(self, mech: Mechanism, dtype: str, parameters: Sequence[Any]) -> Kernel:
        inputs, sizes = ("q", "v", "reference") if self.law.n_ctrl else ("q", "v"), {"reference": (self.law.n_ctrl,)}

        def run(tree: Tree, q: Any, v: Any, reference: Any = ()) -> list[Scalar]:
            return self.law.torques(tree, q, v, reference)

        algorithm = Algorithm("control", inputs, "tau", run, reason=REASON, sizes=sizes)
        return compile(algorithm, mech, dtype=dtype, parameters=parameters)


# -- what callers give --------------------------------------------------------------------------------------


def gains(mech: Mechanism, name: str, value: Any) -> Numbers:
    """nv numbers that are not negative: one for all, one each, or by joint, zero for the others."""
    return tuple(numbers_per_velocity(mech, name, value, 0.0, finite=True).tolist())


def joint_reference(mech: Mechanism, reference: Any) -> Reference:
    """A function from t to [q, v, a] (nq + 2 nv,). The reference is a motion (planned with ``lw.trajectories`` or
    simulated), a function of t that returns q, (q, v) or (q, v, a), or a configuration, (nq,) or {joint: ...}.
    """
    if not callable(reference):
        q = configuration_by_joint(mech, "reference", reference) if isinstance(reference, Mapping) else reference
        return Constant(_joint_numbers(mech, q))
    return partial(_asked, mech, reference)  # which can be pickled where the function can


def _asked(mech: Mechanism, function: Callable[[float], Any], t: float) -> np.ndarray:
    return _joint_numbers(mech, function(t))


def _joint_numbers(mech: Mechanism, value: Any) -> np.ndarray:
    q, *rates = value if isinstance(value, tuple) else (value,)
    parts = [with_unit_quaternions(mech, "reference", real_numbers("reference", q))]
    parts += [real_numbers("reference", x) for x in rates] + [np.zeros(mech.nv)] * (2 - len(rates))
    if [x.shape for x in parts] != [(mech.nq,), (mech.nv,), (mech.nv,)] or not all(np.isfinite(x).all() for x in parts):
        raise MechanismError(
            f"a reference is a configuration ({mech.nq},), or a function of t that gives it, with velocities and "
            f"accelerations ({mech.nv},), finite; got shapes {[x.shape for x in parts]}; samples are made a motion by "
            "linkwise.trajectories.sampled(mech, t, q, v, a)"
        )
    return np.concatenate(parts)
