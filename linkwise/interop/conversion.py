"""States, forces and matrices of a mechanism in the coordinates of another library, and back.

For velocities, v_there = T(q) v.  Where joints mimic others here and are free there, T has more rows than columns, and
the L with L T = 1 that leads back looks at the mimicked joints alone.  Everything else follows from T and L: forces are
T* tau_there here and L* tau there, mass matrices T* M_there T here, Jacobians J_there T.

T changes along a tangent u by T W(u), with W(u) skew-symmetric and linear in u (``joints.py``).  Accelerations there
are therefore T (a + W(v) v), and derivatives by q, with the other coordinates of their own side fixed, get terms of W.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

import linkwise as lw

from .joints import LINEAR_FIRST, Same

APART = 1e-3  # rad, m and per second, and relative: more is no softness of constraints there
VELOCITY, FORCE = "v", "tau"  # what the rows or columns of a matrix belong to


class Tie(NamedTuple):
    """A joint's coordinates in both libraries.

    chart              conversion of its coordinates
    entry              its coordinates here (``mech.coordinates.place``), with ratio and offset of a joint that mimics
                       another here and is free in the other library
    q_there, v_there   lists of indices in the other library
    """

    chart: Same
    entry: Any
    q_there: list[int]
    v_there: list[int]
    mimics: bool = False
    joint: str = ""


class SameNumbers(NamedTuple):
    """Indices of velocities that are equal in both libraries up to a ratio."""

    here: list[int]
    there: list[int]
    ratio: list[float]


@dataclass(frozen=True, eq=False)
class Pairing:
    """A mechanism and its model in another library, matched joint by joint.

    q_start   (nq there,): coordinates of joints that the mechanism does not have
    """

    mech: lw.Mechanism
    library: str
    ties: tuple[Tie, ...]
    q_start: np.ndarray
    nv_there: int

    @cached_property
    def _turned(self) -> list[Tie]:
        """Joints whose velocities are defined differently in the two libraries; mimic joints are not among them."""
        return [tie for tie in self.ties if type(tie.chart).forth is not Same.forth]

    def _same(self, mimics: bool) -> SameNumbers:
        ties = [tie for tie in self.ties if type(tie.chart).forth is Same.forth and tie.mimics == mimics]
        here = [k for tie in ties for k in range(self.mech.nv)[tie.entry.v_index]]
        ratios = [tie.entry.ratio for tie in ties for _ in tie.v_there]
        return SameNumbers(here, [k for tie in ties for k in tie.v_there], ratios)

    @cached_property
    def _own(self) -> SameNumbers:
        return self._same(mimics=False)

    @cached_property
    def _following(self) -> SameNumbers:
        return self._same(mimics=True)

    def q_forth(self, q: np.ndarray) -> np.ndarray:
        """Configurations converted to the other library."""
        q_there = np.broadcast_to(self.q_start, (*q.shape[:-1], len(self.q_start))).astype(q.dtype)
        for tie in self.ties:
            q_there[..., tie.q_there] = tie.chart.q_there(tie.entry.positions(q))
        return q_there

    def q_back(self, q: np.ndarray) -> np.ndarray:
        """Configurations converted to linkwise."""
        q_here = np.empty((*q.shape[:-1], self.mech.nq), dtype=q.dtype)
        for tie in self.ties:
            if not tie.mimics:
                q_here[..., tie.entry.q_index] = tie.chart.q_here(q[..., tie.q_there])
        return q_here

    def astray(self, q: np.ndarray) -> list[str]:
        """Mimic joints whose positions in the other library contradict their leader."""
        expected = self.q_forth(self.q_back(q))
        return [tie.joint for tie in self.ties if tie.mimics and _apart(q, expected, tie.q_there)]

    def drifting(self, rates: np.ndarray) -> list[str]:
        """Mimic joints whose velocities or accelerations in the other library contradict their leader."""
        expected = np.zeros(rates.shape)
        independent, following = self._own, self._following
        of_own = dict(zip(independent.here, independent.there, strict=True))
        for here, there, ratio in zip(*following, strict=True):
            expected[..., there] = ratio * rates[..., of_own[here]]
        return [tie.joint for tie in self.ties if tie.mimics and _apart(rates, expected, tie.v_there)]

    def forth(self, q: np.ndarray, x: np.ndarray, quantity: str) -> np.ndarray:
        """T x of velocities, L* x of forces, at our q."""
        there = np.zeros((*np.broadcast_shapes(q.shape[:-1], x.shape[:-1]), self.nv_there), dtype=x.dtype)
        for same in (self._own, self._following) if quantity == VELOCITY else (self._own,):
            there[..., same.there] = np.array(same.ratio, dtype=x.dtype) * x[..., same.here]
        for tie in self._turned:
            there[..., tie.v_there] = tie.chart.forth(q[..., tie.entry.q_index], x[..., tie.entry.v_index])
        return there

    def back(self, q: np.ndarray, x: np.ndarray, quantity: str) -> np.ndarray:
        """L x of velocities, T* x of forces, at our q."""
        here_x = np.zeros((*np.broadcast_shapes(q.shape[:-1], x.shape[:-1]), self.mech.nv), dtype=x.dtype)
        here_x[..., self._own.here] = x[..., self._own.there]
        for here, there, ratio in zip(*self._following, strict=True) if quantity == FORCE else ():
            here_x[..., here] += ratio * x[..., there]
        for tie in self._turned:
            here_x[..., tie.entry.v_index] = tie.chart.back(q[..., tie.entry.q_index], x[..., tie.v_there])
        return here_x

    def turning(self, tangent: np.ndarray, x: np.ndarray) -> np.ndarray:
        """W(tangent) x, (..., nv): T changes by T W(tangent) per unit of motion along the tangent."""
        result = np.zeros(np.broadcast_shapes(tangent.shape, x.shape), dtype=x.dtype)
        for tie in self._turned:
            here = tie.entry.v_index
            result[..., here] = tie.chart.turning(tangent[..., here], x[..., here])
        return result

    def turning_matrix(self, x: np.ndarray) -> np.ndarray:
        """(..., nv, nv): the matrix that maps a tangent u to W(u) x."""
        columns = self.turning(np.eye(self.mech.nv, dtype=x.dtype), x[..., None, :])
        return np.swapaxes(columns, -1, -2)

    def axes_terms(self, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The terms that the change of velocity coordinates W adds to derivatives, for a change u of q at fixed
        v_there and a_there.

        Returns X, Y, Z, each (..., nv, nv): our v changes by -X u, our a by -(Z - Y X) u; a change w of our v at fixed
        q and a_there changes our a by -Y w.
        """
        nv = self.mech.nv
        by_v = self.turning_matrix(v)
        rates = np.swapaxes(self.turning(v[..., None, :], np.eye(nv, dtype=v.dtype)), -1, -2)  # w to W(v) w
        return by_v, by_v + rates, self.turning_matrix(a + self.turning(v, v))


def _named(third: str, derivatives: Any) -> list[tuple[str, Any]]:
    """The three derivatives with their names."""
    try:
        d_q, d_v, d_third = derivatives
    except (TypeError, ValueError):
        raise ValueError(f"derivatives must be three matrices: d_q, d_v and d_{third}") from None
    return [("d_q", d_q), ("d_v", d_v), (f"d_{third}", d_third)]


def _apart(values: np.ndarray, expected: np.ndarray, entries: list[int]) -> bool:
    near = expected[..., entries]
    return bool((np.abs(values[..., entries] - near) > APART * (1.0 + np.abs(near))).any())


@dataclass(frozen=True, eq=False)
class Conversion:
    """Converts arrays from the coordinates of one library to those of the other; batches as in NumPy.

    Arguments of methods are in the coordinates of the first library, results in those of the second. ``inverse``
    converts back.

    pairing   the joints of both sides
    forth     from linkwise to the other library, or back
    """

    pairing: Pairing
    forth: bool

    @property
    def inverse(self) -> Conversion:
        """The conversion in the other direction."""
        return replace(self, forth=not self.forth)

    def q(self, q: Any) -> np.ndarray:
        """(..., nq): configurations. Where the other library leaves mimic joints free, their leaders decide; a warning
        names mimic joints that contradict them.
        """
        q = self._array("q", q, self._nq)
        if self.forth:
            return self.pairing.q_forth(q)
        self._warn_of("position", self.pairing.astray(q))
        return self.pairing.q_back(q)

    def v(self, q: Any, v: Any) -> np.ndarray:
        """(..., nv): velocities at q."""
        v = self._array("v", v, self._nv)
        if not self.forth:
            self._warn_of("velocity", self.pairing.drifting(v))
        return self._vectors(q, v, VELOCITY)

    def a(self, q: Any, v: Any, a: Any) -> np.ndarray:
        """(..., nv): accelerations, the rates of the velocities of either side, at q and v."""
        v, a = self._array("v", v, self._nv), self._array("a", a, self._nv)
        if self.forth:
            return self._vectors(q, a + self.pairing.turning(v, v), VELOCITY)
        self._warn_of("acceleration", self.pairing.drifting(a))
        v = self._vectors(q, v, VELOCITY)
        return self._vectors(q, a, VELOCITY) - self.pairing.turning(v, v)

    def tau(self, q: Any, tau: Any) -> np.ndarray:
        """(..., nv): joint forces at q. They are zero for mimic joints that are free in the other library."""
        return self._vectors(q, self._array("tau", tau, self._nv), FORCE)

    def state(self, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
        """Both q and v."""
        return self.q(q), self.v(q, v)

    def matrix(self, q: Any, matrix: Any, takes: str = VELOCITY, gives: str = FORCE) -> np.ndarray:
        """(..., nv, nv): a linear map of velocities ("v") or forces ("tau") to velocities or forces at q: mass matrices
        as they stand, their inverses with ``takes="tau", gives="v"``.  Derivatives are no such maps, as the change of
        coordinates may depend on q: see ``acceleration_derivatives`` and ``force_derivatives``."""
        for kind in (takes, gives):
            if kind not in (VELOCITY, FORCE):
                raise ValueError(f"a matrix takes and gives {VELOCITY!r} or {FORCE!r}, not {kind!r}")
        return self._map(self._here(q), self._array("matrix", matrix, self._nv, rows=self._nv), takes, gives)

    def acceleration_derivatives(
        self, q: Any, v: Any, a: Any, tau: Any, derivatives: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(d_q, d_v, d_tau), each (..., nv, nv): derivatives of the accelerations of forward dynamics by tangents of q,
        by v and by tau, while the other two stay the same in the coordinates of their side.

        derivatives   the three of the side that is converted: ``lw.forward_dynamics_derivatives(mech, q, v, tau)``, or
                      ``ddq_dq``, ``ddq_dv`` and ``Minv`` (both triangles) of Pinocchio's ``computeABADerivatives``
        q, v, a, tau  where they were taken: a is the acceleration that q, v and tau lead to

        Where joints mimic others here and are free there, forward dynamics differ, and so do their derivatives.
        """
        q, v, a, tau = self._state_here(q, v, a, tau)
        d_q, d_v, d_tau = (self._array(name, x, self._nv, rows=self._nv) for name, x in _named("tau", derivatives))
        by_v, rates, by_a = self.pairing.axes_terms(v, a)
        by_tau = self.pairing.turning_matrix(tau)
        if self.forth:
            d_q = d_q + by_a - (d_v + rates) @ by_v - d_tau @ by_tau
            return (
                self._map(q, d_q, VELOCITY, VELOCITY),
                self._map(q, d_v + rates, VELOCITY, VELOCITY),
                self._map(q, d_tau, FORCE, VELOCITY),
            )
        d_q, d_v = self._map(q, d_q, VELOCITY, VELOCITY), self._map(q, d_v, VELOCITY, VELOCITY)
        d_tau = self._map(q, d_tau, FORCE, VELOCITY)
        return d_q - by_a + d_v @ by_v + d_tau @ by_tau, d_v - rates, d_tau

    def force_derivatives(
        self, q: Any, v: Any, a: Any, tau: Any, derivatives: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(d_q, d_v, d_a), each (..., nv, nv): derivatives of the joint forces of inverse dynamics by tangents of q, by
        v and by a, while the other two stay the same in the coordinates of their side.

        derivatives   the three of the side that is converted: ``lw.inverse_dynamics_derivatives(mech, q, v, a)``, or
                      ``dtau_dq``, ``dtau_dv`` and ``M`` (both triangles) of Pinocchio's ``computeRNEADerivatives``
        q, v, a, tau  where they were taken: tau are the joint forces that q, v and a need
        """
        q, v, a, tau = self._state_here(q, v, a, tau)
        d_q, d_v, d_a = (self._array(name, x, self._nv, rows=self._nv) for name, x in _named("a", derivatives))
        by_v, rates, by_a = self.pairing.axes_terms(v, a)
        by_tau = self.pairing.turning_matrix(tau)
        if self.forth:
            d_v = d_v - d_a @ rates
            d_q = d_q + by_tau - d_v @ by_v - d_a @ by_a
            return tuple(self._map(q, x, VELOCITY, FORCE) for x in (d_q, d_v, d_a))  # type: ignore[return-value]
        d_q, d_v, d_a = (self._map(q, x, VELOCITY, FORCE) for x in (d_q, d_v, d_a))
        return d_q - by_tau + d_v @ by_v + d_a @ by_a, d_v + d_a @ rates, d_a

    def jacobian(self, q: Any, jacobian: Any) -> np.ndarray:
        """(..., 6, nv): the Jacobian of a frame, in the same axes at the same point. Rows are [angular; linear] in
        linkwise and [linear; angular] in Pinocchio's ``getFrameJacobian`` and MuJoCo's ``jacp`` above ``jacr``.
        """
        matrix = self._array("jacobian", jacobian, self._nv, rows=6)
        return self._convert_vectors(self._here(q)[..., None, :], matrix[..., LINEAR_FIRST, :], FORCE)

    def spatial(self, vector: Any) -> np.ndarray:
        """(..., 6): spatial motions and forces, [angular; linear] in linkwise and [linear; angular] in the other
        library.
        """
        return self._array("spatial vector", vector, 6)[..., LINEAR_FIRST]

    def _warn_of(self, quantity: str, joints: list[str]) -> None:
        """Warn that mimic joints contradict their leaders."""
        if joints:
            warnings.warn(
                f"{', '.join(joints)} of mechanism {self.pairing.mech.name!r} mimic others and are free in "
                f"{self.pairing.library}, where their {quantity} is another: it is left out, and the mimicked joints "
                "alone are looked at",
                lw.MechanismWarning,
                stacklevel=3,
            )

    @property
    def _nq(self) -> int:
        return self.pairing.mech.nq if self.forth else len(self.pairing.q_start)

    @property
    def _nv(self) -> int:
        return self.pairing.mech.nv if self.forth else self.pairing.nv_there

    def _here(self, q: Any) -> np.ndarray:
        """Our configuration."""
        q = self._array("q", q, self._nq)
        return q if self.forth else self.pairing.q_back(q)

    def _vectors(self, q: Any, x: np.ndarray, quantity: str) -> np.ndarray:
        """Vectors along the last axis, at a configuration of the side that is converted."""
        return self._convert_vectors(self._here(q), x, quantity)

    def _convert_vectors(self, q: np.ndarray, x: np.ndarray, quantity: str) -> np.ndarray:
        """Vectors along the last axis, at our configuration."""
        return self.pairing.forth(q, x, quantity) if self.forth else self.pairing.back(q, x, quantity)

    def _map(self, q: np.ndarray, matrix: np.ndarray, takes: str, gives: str) -> np.ndarray:
        """A linear map at our configuration: rows transform like its results, columns like the dual of its
        arguments.
        """
        q = q[..., None, :]
        rows_changed = np.swapaxes(self._convert_vectors(q, np.swapaxes(matrix, -1, -2), gives), -1, -2)
        return self._convert_vectors(q, rows_changed, FORCE if takes == VELOCITY else VELOCITY)

    def _state_here(self, q: Any, v: Any, a: Any, tau: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Our q, v, a and tau."""
        if self.forth:
            v, a, tau = (self._array(name, x, self._nv) for name, x in (("v", v), ("a", a), ("tau", tau)))
            return self._here(q), v, a, tau
        return self._here(q), self.v(q, v), self.a(q, v, a), self.tau(q, tau)

    def _array(self, name: str, value: Any, size: int, rows: int | None = None) -> np.ndarray:
        array = np.asarray(value)
        array = array if array.dtype.kind == "f" else array.astype(float)
        core = (size,) if rows is None else (rows, size)
        if array.shape[array.ndim - len(core) :] != core or array.ndim < len(core):
            where = "linkwise" if self.forth else self.pairing.library
            raise ValueError(
                f"{name} of {where} for mechanism {self.pairing.mech.name!r} must have shape (..., "
                f"{', '.join(map(str, core))}), got {array.shape}"
            )
        return array

    def __repr__(self) -> str:
        sides = "linkwise", self.pairing.library
        source, target = sides if self.forth else sides[::-1]
        return f"<Conversion of {self.pairing.mech.name!r} from {source} to {target}>"
