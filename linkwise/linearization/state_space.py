"""Linear state-space models of mechanisms, the results of ``linearize``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..display import Text, mimebundle
from ..dynamics.states import Float64Array
from ..mechanism import Mechanism, MechanismError
from ..mechanism.scales import scales
from .coordinates import coordinate_names, counted
from .modes import Modes, modes_of

AT_REST = 1e-8  # dimensionless: rates below this are round-off at an equilibrium
SHOWN = 1e-12  # dimensionless: numbers below this are round-off
WIDTH = 110  # characters of a table; columns beyond follow below


class Discrete(NamedTuple):
    """x[k+1] = A x[k] + B u[k] + drift, u held for ``dt``: exact for the linear model."""

    A: Float64Array
    B: Float64Array
    drift: Float64Array
    dt: float

    def __repr__(self) -> str:
        states, inputs = self.B.shape[-2:]
        batch = f", batch {self.A.shape[:-2]}" if self.A.ndim > 2 else ""
        return f"<Discrete: {counted(states, 'state')}, {counted(inputs, 'input')}, steps of {self.dt:g} s{batch}>"


class Dimensionless(NamedTuple):
    """A linear model in its own units, for thresholds without units.

    A (..., n, n), B (..., n, k), drift (..., n)
    states   (..., n): units of the states: radians or the mechanism's length, for velocities times ``rate``
    rate     (..., 1): the largest of the rates in A and of that of falling through the mechanism's length; 1 / unit of
             time
    inputs   (..., k): units of the inputs, in which the largest number of each column of B is 1
    """

    A: Float64Array
    B: Float64Array
    drift: Float64Array
    states: Float64Array
    rate: Float64Array
    inputs: Float64Array


@dataclass(frozen=True, eq=False, repr=False)
class StateSpace:
    """dx/dt = drift + A x + B u, y = C x + D u: a mechanism near the state (q, v) under joint forces tau.

    x contains steps of the coordinates from q (``difference(q, there)``) and changes of their velocities; u changes of
    joint forces. At an equilibrium drift is zero. Arrays have the batch shape of the states in front.

    A (n, n), B (n, k), C (l, n), D (l, k), drift (n,)   the model; drift is dx/dt at (q, v)
    independent           names of the coordinates: joints (``joint[i]`` where one has several), or y1, y2, ... for
                          linear combinations of them
    state_names, input_names, output_names   ".rate" marks velocities, ".activation" states of actuators
    rows                  (p, nv): R, coordinates are R times steps of q
    tangent               (2 nv, n): steps of q and changes of v of all joints per unit of x (K and its derivative)
    form                  "local": the local state-space form (spencer2004 4.8); "underlying": all coordinates (4.2)
    rate_rows             (p', nv): R of velocities, where constraints on velocities alone make it differ from R of q:
                          velocities in x are R times changes of v
    mechanism, q, v, tau  the mechanism and the state of the model
    acceleration          (nv,): of all joints at this state
    """

    mechanism: Mechanism
    q: Float64Array
    v: Float64Array
    tau: Float64Array
    acceleration: Float64Array
    A: Float64Array
    B: Float64Array
    C: Float64Array
    D: Float64Array
    drift: Float64Array
    independent: tuple[str, ...]
    state_names: tuple[str, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    rows: Float64Array
    tangent: Float64Array
    form: str
    rate_rows: Float64Array | None = None

    @property
    def residual(self) -> float:
        """The largest rate at the point, zero at an equilibrium."""
        return float(np.abs(self.drift).max(initial=0.0))

    @property
    def is_equilibrium(self) -> bool:
        """Whether the mechanism stays at rest at (q, v), up to round-off, in every state of a batch."""
        return float(np.abs(self.dimensionless().drift).max(initial=0.0)) <= AT_REST

    def dimensionless(self) -> Dimensionless:
        """The model in its own units: its numbers do not depend on metres, kilograms and seconds."""
        states, rate = self._units()
        a = self.A * states[..., None, :] / (states * rate)[..., None]
        b, drift = self.B / (states * rate)[..., None], self.drift / (states * rate)
        largest = np.abs(b).max(axis=-2, initial=0.0)
        inputs = 1.0 / np.where(largest > 0.0, largest, 1.0)
        return Dimensionless(a, b * inputs[..., None, :], drift, states, rate, inputs)

    def _units(self) -> tuple[Float64Array, Float64Array]:
        """(..., n), (..., 1): units of the states, and of rates."""
        units = scales(self.mechanism)
        rows = (self.rows, self.rows if self.rate_rows is None else self.rate_rows)
        of_positions, of_velocities = ((np.abs(x) * units.of_v).max(axis=-1, initial=0.0) for x in rows)
        moving = of_positions.shape[-1] + of_velocities.shape[-1]
        others = np.ones((*self.drift.shape[:-1], self.drift.shape[-1] - moving))  # activations
        sizes = np.concatenate([of_positions, of_velocities, others], axis=-1)
        order = np.repeat([0, 1, 0], [of_positions.shape[-1], of_velocities.shape[-1], others.shape[-1]])
        entries = np.abs(self.A * sizes[..., None, :] / sizes[..., None])[..., :moving]
        powers = np.maximum(1 + order[:, None] - order[None, :moving], 1)  # of a rate that an entry is
        powered = np.where(1 + order[:, None] == order[None, :moving], 0.0, entries ** (1.0 / powers))
        rate = np.maximum(powered.max(axis=(-2, -1), initial=0.0), 1.0 / units.time)
        pushed = (np.abs(self.drift / sizes) ** (1.0 / (1 + order))).max(axis=-1, initial=0.0)
        rate = np.where(rate > 0.0, rate, np.where(pushed > 0.0, pushed, 1.0))[..., None]
        return sizes * rate**order, rate

    def shown(self) -> Float64Array:
        """(n, n + k + 1): A, B and drift side by side, without numbers that are only round-off.  One state."""
        self._require_one("shown")
        plain, scaled = ((x.A, x.B, x.drift[:, None]) for x in (self, self.dimensionless()))
        return np.where(np.abs(np.concatenate(scaled, axis=1)) < SHOWN, 0.0, np.concatenate(plain, axis=1))

    def eigenvalues(self) -> NDArray[np.complex128]:
        """(n,) complex, ordered by real part, then by imaginary part; (..., n) for a batch.

        At an equilibrium they do not depend on the choice of coordinates (Theorems 4.1.1, 4.1.2).
        """
        values = np.linalg.eigvals(self.A).astype(complex)
        size = np.abs(values).max(axis=-1, initial=0.0, keepdims=True)
        real = np.round(np.divide(values.real, size, out=np.zeros(values.shape), where=size > 0.0), 9)
        return np.take_along_axis(values, np.lexsort((values.imag, real)), axis=-1)

    def modes(self) -> Modes:
        """Natural frequencies, damping ratios and shapes over all joints; one state."""
        from ..dynamics.trees import mass_matrix

        self._require_one("modes")
        moved = self.tangent[: self.mechanism.nv]
        k = moved[:, : self.rows.shape[-2]]
        mass = k.T @ mass_matrix(self.mechanism, self.q) @ k
        scaled_model, units = self.dimensionless(), scales(self.mechanism).of_v
        return modes_of(
            self.A,
            mass,
            moved,
            coordinate_names(self.mechanism),
            scaled_model.states,
            float(scaled_model.rate[0]),
            units,
        )

    def joint_motion(self, x: ArrayLike) -> tuple[Float64Array, Float64Array]:
        """(q, v) of all joints at the state ``x`` (..., n) of the model, to first order: loops open by second order."""
        from ..dynamics.trees import integrate

        moved = (self.tangent @ np.asarray(x, dtype=float)[..., None])[..., 0]
        nv = self.mechanism.nv
        return integrate(self.mechanism, self.q, moved[..., :nv], 1.0), self.v + moved[..., nv:]

    def state_at(self, q: ArrayLike, v: ArrayLike) -> Float64Array:
        """(..., n): x of a state of the mechanism, for feedback: the inverse of ``joint_motion``."""
        from ..dynamics.trees import difference

        step = difference(self.mechanism, self.q, np.asarray(q, dtype=float))
        change = np.asarray(v, dtype=float) - self.v
        both = zip((self.rows, self.rows if self.rate_rows is None else self.rate_rows), (step, change), strict=True)
        moved = [(rows @ x[..., None])[..., 0] for rows, x in both]
        batch, known = np.broadcast_shapes(*(x.shape[:-1] for x in moved)), sum(x.shape[-1] for x in moved)
        moved = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in moved]
        steady = np.zeros((*batch, len(self.state_names) - known))  # of activations
        return np.concatenate([*moved, steady], axis=-1)

    def discretize(self, dt: float) -> Discrete:
        """The model with forces held for ``dt``, from one matrix exponential."""
        from scipy.linalg import expm

        if not dt > 0.0:
            raise ValueError(f"dt must be positive, got {dt!r}")
        n, k = self.B.shape[-2:]
        batch = self.A.shape[:-2]
        matrix = np.zeros((*batch, n + k + 1, n + k + 1))
        matrix[..., :n, :] = np.concatenate([self.A, self.B, self.drift[..., None]], axis=-1) * dt
        held = expm(matrix)[..., :n, :]
        return Discrete(held[..., :n], held[..., n : n + k], held[..., n + k], float(dt))

    def to_scipy(self) -> Any:
        """A ``scipy.signal.StateSpace``.  It has no drift: away from equilibria it describes how motions differ."""
        from scipy.signal import StateSpace as Scipy

        self._require_one("to_scipy")
        return Scipy(self.A, self.B, self.C, self.D)

    def plot_eigenvalues(self, path: Any = None, **options: Any) -> Any:
        """A picture of the eigenvalues (``linkwise.viewer.plot_eigenvalues``)."""
        from ..viewer import plot_eigenvalues

        return plot_eigenvalues(self, path=path, **options)

    def plot_bode(self, path: Any = None, **options: Any) -> Any:
        """Gain and phase over frequency (``linkwise.viewer.plot_bode``)."""
        from ..viewer import plot_bode

        return plot_bode(self, path=path, **options)

    def plot_step(self, path: Any = None, **options: Any) -> Any:
        """Responses to steps of the inputs (``linkwise.viewer.plot_step``)."""
        from ..viewer import plot_step

        return plot_step(self, path=path, **options)

    def table(self, digits: int = 5, width: int = WIDTH) -> str:
        """A, B and drift with the names of states and inputs; numbers that are only round-off show as 0.  One state.

        Columns that do not fit ``width`` characters follow in further blocks below, each with the names of its rows.
        """
        self._require_one("table")
        heads = [*self.state_names, *(f"u: {name}" for name in self.input_names), "drift"]
        columns = [_column(head, [f"{x:.{digits}g}" for x in x]) for head, x in zip(heads, self.shown().T, strict=True)]
        names = [text.ljust(max(map(len, ("d/dt of", *self.state_names)))) for text in ("d/dt of", *self.state_names)]
        blocks: list[list[list[str]]] = [[names]]
        for column in columns:
            if (
                len(blocks[-1]) > 1
                and sum(len(column_shown[0]) + 2 for column_shown in (*blocks[-1], column)) - 2 > width
            ):
                blocks.append([names])
            blocks[-1].append(column)
        return Text(
            "\n\n".join("\n".join("  ".join(row).rstrip() for row in zip(*block, strict=True)) for block in blocks)
        )

    def __repr__(self) -> str:
        batch = self.A.shape[:-2]
        where = "an equilibrium" if self.is_equilibrium else f"no equilibrium (rates up to {self.residual:.3g})"
        return (
            f"<StateSpace of {self.mechanism.name!r}, {self.form} form: {len(self.state_names)} states"
            f"{_listed(self.independent)}, {counted(len(self.input_names), 'input')}, "
            f"{counted(len(self.output_names), 'output')}" + (f", batch {batch}" if batch else "") + f"; {where}>"
        )

    _repr_mimebundle_ = mimebundle

    def _require_one(self, request: str) -> None:
        if self.A.ndim > 2:
            raise MechanismError(f"{request} takes one state; this model has the batch shape {self.A.shape[:-2]}")


def _column(head: str, cells: list[str]) -> list[str]:
    """Texts of one width, aligned on the right."""
    width = max(map(len, (head, *cells)))
    return [text.rjust(width) for text in (head, *cells)]


def _listed(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    return " in " + (", ".join(names) if len(names) <= 6 else f"{', '.join(names[:5])}, ... ({len(names)} coordinates)")
