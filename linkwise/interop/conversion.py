"""States, forces and matrices of a mechanism in the coordinates of another library, and back.

For velocities, v_there = T(q) v.  Where joints mimic others here and are free there, T has more rows than columns, and
the L with L T = 1 that leads back looks at the mimicked joints alone.  Everything else follows from T and L: forces are
T* tau_there here and L* tau there, mass matrices T* M_there T here, Jacobians J_there T.
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
    """A joint's place here and there.

    chart              how its coordinates go together
    place              where its coordinates are here (``mech.place``), with ratio and offset of a joint that mimics
                       another here and is free there
    q_there, v_there   lists of indices
    """

    chart: Same
    place: Any
    q_there: list[int]
    v_there: list[int]
    mimics: bool = False
    joint: str = ""


class SameNumbers(NamedTuple):
    """Where velocities are that are the same numbers here and there, but for ratios."""

    here: list[int]
    there: list[int]
    ratio: list[float]


@dataclass(frozen=True, eq=False)
class Pairing:
    """A mechanism and a model of it in another library, joint by joint.

    q_start   (nq there,): coordinates of what the mechanism does not have
    """

    mech: lw.Mechanism
    library: str
    ties: tuple[Tie, ...]
    q_start: np.ndarray
    nv_there: int

    @cached_property
    def _turned(self) -> list[Tie]:
        """Joints whose velocities are other numbers; none of them mimics another."""
        return [tie for tie in self.ties if type(tie.chart).forth is not Same.forth]

    def _same(self, mimics: bool) -> SameNumbers:
        ties = [tie for tie in self.ties if type(tie.chart).forth is Same.forth and tie.mimics == mimics]
        here = [k for tie in ties for k in range(self.mech.nv)[tie.place.v_index]]
        ratios = [tie.place.ratio for tie in ties for _ in tie.v_there]
        return SameNumbers(here, [k for tie in ties for k in tie.v_there], ratios)

    @cached_property
    def _own(self) -> SameNumbers:
        return self._same(mimics=False)

    @cached_property
    def _following(self) -> SameNumbers:
        return self._same(mimics=True)

    def q_forth(self, q: np.ndarray) -> np.ndarray:
        """Configurations to theirs."""
        found = np.broadcast_to(self.q_start, (*q.shape[:-1], len(self.q_start))).astype(q.dtype)
        for tie in self.ties:
            found[..., tie.q_there] = tie.chart.q_there(tie.place.positions(q))
        return found

    def q_back(self, q: np.ndarray) -> np.ndarray:
        """Configurations to ours."""
        found = np.empty((*q.shape[:-1], self.mech.nq), dtype=q.dtype)
        for tie in self.ties:
            if not tie.mimics:
                found[..., tie.place.q_index] = tie.chart.q_here(q[..., tie.q_there])
        return found

    def astray(self, q: np.ndarray) -> list[str]:
        """Joints that mimic others here, and are elsewhere in their configurations."""
        expected = self.q_forth(self.q_back(q))
        return [tie.joint for tie in self.ties if tie.mimics and _apart(q, expected, tie.q_there)]

    def drifting(self, rates: np.ndarray) -> list[str]:
        """Joints that mimic others here, and have other velocities or accelerations there."""
        expected = np.zeros(rates.shape)
        own, following = self._own, self._following
        of_own = dict(zip(own.here, own.there, strict=True))
        for here, there, ratio in zip(*following, strict=True):
            expected[..., there] = ratio * rates[..., of_own[here]]
        return [tie.joint for tie in self.ties if tie.mimics and _apart(rates, expected, tie.v_there)]

    def forth(self, q: np.ndarray, x: np.ndarray, what: str) -> np.ndarray:
        """T x of velocities, L* x of forces, at our q."""
        found = np.zeros((*np.broadcast_shapes(q.shape[:-1], x.shape[:-1]), self.nv_there), dtype=x.dtype)
        for same in (self._own, self._following) if what == VELOCITY else (self._own,):
            found[..., same.there] = np.array(same.ratio, dtype=x.dtype) * x[..., same.here]
        for tie in self._turned:
            found[..., tie.v_there] = tie.chart.forth(q[..., tie.place.q_index], x[..., tie.place.v_index])
        return found

    def back(self, q: np.ndarray, x: np.ndarray, what: str) -> np.ndarray:
        """L x of velocities, T* x of forces, at our q."""
        found = np.zeros((*np.broadcast_shapes(q.shape[:-1], x.shape[:-1]), self.mech.nv), dtype=x.dtype)
        found[..., self._own.here] = x[..., self._own.there]
        for here, there, ratio in zip(*self._following, strict=True) if what == FORCE else ():
            found[..., here] += ratio * x[..., there]
        for tie in self._turned:
            found[..., tie.place.v_index] = tie.chart.back(q[..., tie.place.q_index], x[..., tie.v_there])
        return found

    def drift(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """dT/dt v, at our state."""
        found = np.zeros((*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), self.nv_there), dtype=v.dtype)
        for tie in self._turned:
            found[..., tie.v_there] = tie.chart.drift(q[..., tie.place.q_index], v[..., tie.place.v_index])
        return found


def _apart(found: np.ndarray, expected: np.ndarray, entries: list[int]) -> bool:
    near = expected[..., entries]
    return bool((np.abs(found[..., entries] - near) > APART * (1.0 + np.abs(near))).any())


@dataclass(frozen=True, eq=False)
class Conversion:
    """Arrays in the coordinates of one side made arrays in those of the other; batches as NumPy has them.

    All that a method is given is in the coordinates of the side it comes from, all that it returns in those of the
    other.  ``inverse`` is the other direction.

    pairing   the joints of both sides
    forth     from linkwise to the other library, or back
    """

    pairing: Pairing
    forth: bool

    @property
    def inverse(self) -> Conversion:
        """The same in the other direction."""
        return replace(self, forth=not self.forth)

    def q(self, q: Any) -> np.ndarray:
        """(..., nq): configurations.  From a library where joints are free that mimic others here, the mimicked ones
        alone are looked at; a warning names those that are not where these lead to."""
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
            return self._vectors(q, a, VELOCITY) + self.pairing.drift(self._here(q), v)
        self._warn_of("acceleration", self.pairing.drifting(a))
        drift = self.pairing.drift(self._here(q), self._vectors(q, v, VELOCITY))
        return self._vectors(q, a - drift, VELOCITY)

    def tau(self, q: Any, tau: Any) -> np.ndarray:
        """(..., nv): joint forces at q.  To a library where joints are free that mimic others here, these get none."""
        return self._vectors(q, self._array("tau", tau, self._nv), FORCE)

    def state(self, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
        """Both q and v."""
        return self.q(q), self.v(q, v)

    def matrix(self, q: Any, matrix: Any, takes: str = VELOCITY, gives: str = FORCE) -> np.ndarray:
        """(..., nv, nv): a matrix that makes of velocities ("v", accelerations and tangents too) or forces ("tau") one
        of these: mass matrices as they stand, their inverses with ``takes="tau", gives="v"``, derivatives of
        accelerations by tangents with ``gives="v"``."""
        for kind in (takes, gives):
            if kind not in (VELOCITY, FORCE):
                raise ValueError(f"a matrix takes and gives {VELOCITY!r} or {FORCE!r}, not {kind!r}")
        found = self._array("matrix", matrix, self._nv, rows=self._nv)
        # Rows change as what it gives does, columns as what is dual to what it takes.
        found = self._vectors(q, np.swapaxes(found, -1, -2), gives, of_matrix=True)
        return self._vectors(q, np.swapaxes(found, -1, -2), FORCE if takes == VELOCITY else VELOCITY, of_matrix=True)

    def jacobian(self, q: Any, jacobian: Any) -> np.ndarray:
        """(..., 6, nv): the Jacobian of a frame, in the same axes at the same point.  Rows are [angular; linear] here
        and [linear; angular] there: ``getFrameJacobian`` of Pinocchio, ``jacp`` above ``jacr`` of MuJoCo."""
        found = self._array("jacobian", jacobian, self._nv, rows=6)
        return self._vectors(q, found[..., LINEAR_FIRST, :], FORCE, of_matrix=True)

    def spatial(self, vector: Any) -> np.ndarray:
        """(..., 6): spatial motions and forces: [angular; linear] here, [linear; angular] there."""
        return self._array("spatial vector", vector, 6)[..., LINEAR_FIRST]

    def _warn_of(self, what: str, joints: list[str]) -> None:
        """That what the mimicked joints say is not what these do."""
        if joints:
            warnings.warn(
                f"{', '.join(joints)} of mechanism {self.pairing.mech.name!r} mimic others and are free in "
                f"{self.pairing.library}, where their {what} is another: it is left out, and the mimicked joints alone "
                "are looked at",
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

    def _vectors(self, q: Any, x: np.ndarray, what: str, of_matrix: bool = False) -> np.ndarray:
        """Vectors along the last axis."""
        q = self._here(q)
        q = q[..., None, :] if of_matrix else q
        return self.pairing.forth(q, x, what) if self.forth else self.pairing.back(q, x, what)

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
