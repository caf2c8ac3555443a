"""Force laws as functions of arrays: joint forces, their derivatives, and energy.

Forces are those on the coordinates of v, like ``tau``, also for laws between links (``mechanics/elements/law.py``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..compiler.kernel import Kernel
from ..compiler.pipeline import compile
from ..compiler.store import float64_function, stored
from ..compiler.variants import kept_by_family
from ..mechanics.algorithms.algorithm import Algorithm
from ..mechanics.elements.law import Acting
from ..mechanics.elements.of_mechanism import acting_on, record_laws
from ..mechanics.elements.struts import Strut
from ..mechanics.recursions.tree import Tree
from ..mechanics.scalar import Scalar
from ..mechanism import Mechanism, MechanismError, require_mechanism
from .derivatives import jacobian_of

INPUTS = ("q", "v", "ctrl", "activation")
NUMBERS = "element_numbers"
LAW = "it is written element by element, as a law (mechanics/elements)"


class ForceDerivatives(NamedTuple):
    """Derivatives of stacked joint forces (nv) and activation rates (n_activation): (nv + n_activation, ...) along
    tangent directions of q, by v, by ctrl and by activations.
    """

    by_q: np.ndarray
    by_v: np.ndarray
    by_ctrl: np.ndarray
    by_activation: np.ndarray


class _Laws(NamedTuple):
    """Force laws, their concatenated parameters, and their structure on a mechanism."""

    acting: Acting
    numbers: np.ndarray
    structure: tuple[Hashable, ...]

    @classmethod
    def on(cls, mech: Mechanism, acting: Acting) -> _Laws:
        numbers = np.array([x for law in acting.laws for x in law.numbers(mech)])
        return cls(acting, numbers, tuple(law.structure(mech) for law in acting.laws))


def resolved(
    mech: Mechanism, passive: Any = None, explicit_step: float | None = None, implicit_step: float | None = None
) -> Resolved | None:
    """The mechanism's force laws, None if there are none. ``passive`` replaces springs, damping, friction and limits
    of its joints; ``explicit_step`` and ``implicit_step`` as in ``acting_on``.
    """
    require_mechanism(mech)
    if passive is not None:
        acting = Acting((*passive.elements, *record_laws(mech, explicit_step, implicit_step)))
        return Resolved(mech, acting) if acting.laws else None
    # Stored without the mechanism, which would otherwise be referenced by its own store.
    key = (_Laws, explicit_step, implicit_step)
    laws = mech._kernels.get(key) or stored(
        mech, key, lambda: _Laws.on(mech, acting_on(mech, explicit_step, implicit_step))
    )
    return Resolved(mech, laws.acting, laws) if laws.acting.laws else None


def no_controls(mech: Mechanism, name: str) -> str:
    """Message for control inputs or activations that no actuator takes."""
    if name == "ctrl":
        return (
            f"ctrl is given, but no actuator of mechanism {mech.name!r} acts: give joint forces as tau, or add "
            "actuators with mech.with_elements(lw.forces.Actuator(...))"
        )
    return f"activation is given, but no actuator of mechanism {mech.name!r} has dynamics: leave it out"


class Resolved:
    """Force laws on one mechanism, with checked joints and numbers.  Batches in front."""

    def __init__(self, mech: Mechanism, acting: Acting, laws: _Laws | None = None) -> None:
        require_mechanism(mech)
        self.mech, self.acting = mech, acting
        self.n_ctrl, self.n_activation = acting.n_ctrl, acting.n_activation
        _, self._numbers, self._structure = laws or _Laws.on(mech, acting)
        self._kernels: dict[str, Any] = {}

    @classmethod
    def nothing(cls, mech: Mechanism) -> Resolved:
        """An instance without laws."""
        return cls(mech, Acting())

    def forces(self, q: np.ndarray, v: np.ndarray, ctrl: Any = None, activation: Any = None) -> np.ndarray:
        """(..., nv): joint forces."""
        return self.forces_and_rates(q, v, ctrl, activation)[0]

    def forces_and_rates(
        self, q: np.ndarray, v: np.ndarray, ctrl: Any = None, activation: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(..., nv) and (..., n_activation): joint forces and activation rates."""
        values, n = self._evaluated("forces", (q, v, ctrl, activation)), self.mech.nv
        return values[..., :n], values[..., n:]

    def wrenches(self, q: np.ndarray, v: np.ndarray, ctrl: Any = None, activation: Any = None) -> np.ndarray:
        """(..., n_links, 6): wrenches of laws that act on links, in link frames; ``forces`` includes them."""
        if not self.acting.laws:
            return np.zeros((*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), self.mech.n_links, 6))
        return self._evaluated("wrenches", (q, v, ctrl, activation))

    def derivatives(
        self, q: np.ndarray, v: np.ndarray, ctrl: Any = None, activation: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(..., nv, nv) each: derivatives of the forces along tangent directions of q, and by v."""
        slopes, n = self.all_derivatives(q, v, ctrl, activation), self.mech.nv
        return slopes.by_q[..., :n, :], slopes.by_v[..., :n, :]

    def wrench_derivatives(self, q: np.ndarray, v: np.ndarray, ctrl: Any = None, activation: Any = None) -> np.ndarray:
        """(..., n_links, 6, 2 nv): derivatives of the wrenches along tangent directions of q, and by v."""
        batch, n = np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), self.mech.nv
        if not self.acting.laws:
            return np.zeros((*batch, self.mech.n_links, 6, 2 * n))
        return self._evaluated("wrench_derivatives", (q, v, ctrl, activation))[..., : 2 * n]

    def second_derivatives(self, q: np.ndarray, v: np.ndarray, ctrl: Any = None, activation: Any = None) -> np.ndarray:
        """(..., nv, 2 nv, 2 nv): second derivatives of the forces along tangent directions of q, and by v; [i, j, k] is
        the derivative along k of that along j."""
        batch, n = np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), self.mech.nv
        if not self.acting.laws:
            return np.zeros((*batch, n, 2 * n, 2 * n))
        return self._evaluated("second_derivatives", (q, v, ctrl, activation))[..., :n, :, :]

    def all_derivatives(
        self, q: np.ndarray, v: np.ndarray, ctrl: Any = None, activation: Any = None
    ) -> ForceDerivatives:
        """Derivatives of forces and activation rates by all their arguments."""
        slopes, n = self._evaluated("derivatives", (q, v, ctrl, activation)), self.mech.nv
        ends = np.cumsum([n, n, self.n_ctrl])
        return ForceDerivatives(*np.split(slopes, ends, axis=-1))

    def energy(self, q: np.ndarray) -> np.ndarray:
        """(...): potential energy of the laws that have one."""
        if not self.acting.laws:
            return np.zeros(q.shape[:-1])
        return self._kernel("energy")(q, *([self._numbers] if self._numbers.size else []))

    # -- kernels ------------------------------------------------------------------------------------------------

    def _evaluated(self, label: str, inputs: tuple[Any, ...]) -> np.ndarray:
        sizes = {"ctrl": self.n_ctrl, "activation": self.n_activation}
        arrays = [
            np.zeros(sizes[name]) if x is None else x
            for name, x in zip(INPUTS, inputs, strict=True)
            if sizes.get(name, 1)
        ]
        if not self.acting.laws:
            shape = (*np.broadcast_shapes(*(x.shape[:-1] for x in arrays)), self.mech.nv)
            return np.zeros(shape if label == "forces" else (*shape, 2 * self.mech.nv))
        numbers = [self._numbers] if self._numbers.size else []
        with np.errstate(divide="ignore", invalid="ignore"):  # coinciding points are refused below
            values = self._kernel(label)(*arrays, *numbers)
        if self._struts and not np.isfinite(values).all():
            self._refuse_coinciding(arrays[0])
        return values

    def _kernel(self, label: str) -> Any:
        """The kernel shared by variants with this structure of laws; parameters of elements are inputs."""
        if label not in self._kernels:
            self._kernels[label] = self._found_kernel(_Request(label, self._structure, self.acting))
        return self._kernels[label]

    def _found_kernel(self, request: _Request) -> Any:
        if any(law.looks_at_gravity for law in self.acting.laws):
            return float64_function(self.mech, request)
        frames = [name for law in self.acting.laws for name in law.frames()]
        return stored(
            self.mech, request, lambda: kept_by_family(self.mech, request, frames, lambda: request(self.mech).function)
        )

    @cached_property
    def _struts(self) -> list[Strut]:
        return [law for law in self.acting.laws if isinstance(law, Strut) and not law.is_linear]

    def _refuse_coinciding(self, q: np.ndarray) -> None:
        """Raise for struts between coinciding points, whose direction is undefined."""
        for strut in self._struts:
            algorithm = Algorithm("strut_length", ("q",), "length", strut.length, reason=LAW, sizes={"length": ()})
            if (np.asarray(compile(algorithm, self.mech, target="numpy")(q)) == 0.0).any():
                raise MechanismError(
                    f"the points of {strut} coincide, so that its force has no direction: move one of them, or, for a "
                    "spring alone, leave out free_length"
                )


@dataclass(frozen=True)
class _Request:
    """A kernel of laws, looked up by their structure."""

    what: str
    structure: Hashable
    acting: Acting = field(compare=False)

    def __call__(self, mech: Mechanism, dtype: str = "float64", parameters: Sequence[Any] = ()) -> Kernel:
        kernel = compile(self._algorithm(mech), mech, dtype, parameters=parameters)
        if self.what == "second_derivatives":
            return jacobian_of(jacobian_of(kernel, ("q", "v")), ("q", "v"))
        if "derivatives" not in self.what:
            return kernel
        wrt = tuple(name for name in INPUTS if name in kernel.inputs)
        return jacobian_of(kernel, wrt)

    def _algorithm(self, mech: Mechanism) -> Algorithm:
        acting = self.acting
        n_numbers = sum(len(law.numbers(mech)) for law in acting.laws)
        sizes = {"ctrl": (acting.n_ctrl,), "activation": (acting.n_activation,), NUMBERS: (n_numbers,)}
        results = {"energy": (), "wrenches": (mech.n_links, 6)}
        name = {"energy": "energy", "wrenches": "wrenches", "wrench_derivatives": "wrenches"}.get(self.what, "forces")
        names = ("q", NUMBERS) if self.what == "energy" else (*INPUTS, NUMBERS)
        inputs = tuple(name for name in names if name not in sizes or sizes[name][0])

        def run(tree: Tree, *arrays: Any) -> Any:
            named: dict[str, Sequence[Scalar]] = dict(zip(inputs, arrays, strict=True))
            numbers = named.get(NUMBERS)
            if self.what == "energy":
                return acting.energy(tree, named["q"], numbers)
            state = named["q"], named["v"], named.get("ctrl", ()), named.get("activation", ()), numbers
            if name == "wrenches":
                return acting.forces(tree, *state).wrenches or [[0.0] * 6] * mech.n_links
            return acting.joint_forces(tree, *state)

        result = results.get(name, (mech.nv + acting.n_activation,))
        return Algorithm(f"acting_{name}", inputs, "result", run, reason=LAW, sizes={**sizes, "result": result})
