"""Dense equations of motion of a constrained mechanism, M a + h = tau - G* lambda and G a + bias = 0, from definitions.

M and G are the stacked operators of ``op.dense``, h comes from wrenches of all bodies in maximal coordinates by virtual
work, and the bias of the constraints from differences of G along the motion.  Nothing is shared with the recursions,
the elimination of constraints or their tolerances.
"""

from __future__ import annotations

import numpy as np

import linkwise as lw
from linkwise import operators as op

from ..oracle import maximal_coordinates as maximal
from .mechanisms import Case

RANK = 1e-9
MASS_MATRIX = op.S.T @ (op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R) @ op.S
JACOBIAN = op.L @ op.phi.T @ op.H.T @ op.S
# Central differences of order eight.
OFFSETS = np.array([1, 2, 3, 4])
WEIGHTS = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])


def mass_matrix(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    return op.dense(MASS_MATRIX, mech, q)


def constraint_jacobian(mech: lw.Mechanism, q: np.ndarray, active: np.ndarray | None = None) -> np.ndarray:
    """(m, nv), without the rows of constraints that do not hold."""
    if not mech.loops:
        return np.zeros((0, mech.nv))
    rows = op.dense(JACOBIAN, mech, q)
    if active is None:
        return rows
    return np.concatenate(
        [rows[mech.constraints.rows(loop.name)] for loop, holds in zip(mech.loops, active, strict=True) if holds]
    )


def null_space(mech: lw.Mechanism, rows: np.ndarray) -> np.ndarray:
    """(nv, p): an orthonormal basis of the velocities that keep the constraints."""
    if not len(rows):
        return np.eye(mech.nv)
    _, values, right = np.linalg.svd(rows)
    rank = int(np.sum(values > RANK * values[0]))
    return right[rank:].T


def differentiate(function, step: float = 1e-3):
    """d/ds of an array-valued function at s = 0."""
    pairs = zip(WEIGHTS, OFFSETS, strict=True)
    return sum(w * (function(k * step) - function(-k * step)) for w, k in pairs) / step


def inverse_dynamics(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """(nv,): M a + h of the spanning tree, by virtual work of the wrenches that all bodies need."""
    mech = mech.spanning_tree
    poses = maximal.place(mech, q)
    wrenches = maximal.wrenches_needed(mech, q, v, a)
    tau = np.zeros(mech.nv)
    carried = wrenches.copy()  # what a joint and all beyond it need
    for i in reversed(range(mech.n_links)):
        body = mech.bodies[i]
        if body.parent >= 0:
            carried[body.parent] += carried[i]
        columns = np.arange(mech.nv)[mech.v_index(body.joint)]
        ratio = body.mimic.ratio if body.mimic else 1.0
        side = poses[body.parent].then(body.rotation, body.position)
        for column, screw in zip(columns, maximal.screws(body.kind, side, poses[i]), strict=True):
            tau[column] += ratio * float(screw.twist @ carried[i])
        tau[columns] += ratio**2 * np.broadcast_to(body.armature, columns.shape) * np.asarray(a)[columns]
    return tau


class Terms:
    """All terms at the state of a case."""

    def __init__(self, case: Case, q: np.ndarray | None = None, v: np.ndarray | None = None):
        self.case = case
        mech = self.mech = case.mech
        self.q, self.v = case.q if q is None else q, case.v if v is None else v
        self.active = case.active
        self.mass = mass_matrix(mech, self.q)
        self.bias_force = inverse_dynamics(mech, self.q, self.v, np.zeros(mech.nv))
        self.jacobian = constraint_jacobian(mech, self.q, case.active)
        self.basis = null_space(mech, self.jacobian)
        self.bias = self._jacobian_rate() @ self.v - self._prescribed_accelerations()

    def _jacobian_rate(self) -> np.ndarray:
        return differentiate(
            lambda s: constraint_jacobian(self.mech, lw.integrate(self.mech, self.q, self.v, s), self.active)
        )

    def _prescribed_accelerations(self) -> np.ndarray:
        rows = []
        for k, loop in enumerate(self.mech.loops):
            if self.active is None or self.active[k]:
                place = self.mech.constraints.rows(loop.name)
                values = np.zeros(place.stop - place.start)
                if loop.drive is not None:
                    values[:] = loop.drive[2]
                rows.append(values)
        return np.concatenate(rows) if rows else np.zeros(0)

    @property
    def reduced_mass(self) -> np.ndarray:
        return self.basis.T @ self.mass @ self.basis

    @property
    def response(self) -> np.ndarray:
        """(nv, nv): K (K* M K)^-1 K*, accelerations per joint force."""
        return self.basis @ np.linalg.solve(self.reduced_mass, self.basis.T)

    @property
    def offset(self) -> np.ndarray:
        """(nv,): the least a with G a + bias = 0."""
        return -np.linalg.pinv(self.jacobian, rcond=RANK) @ self.bias if len(self.bias) else np.zeros(self.mech.nv)

    def accelerations(self, tau: np.ndarray) -> np.ndarray:
        """(nv,): the a with G a + bias = 0 and K* (M a + h - tau) = 0."""
        return self.offset + self.response @ (tau - self.bias_force - self.mass @ self.offset)

    def constraint_forces(self, tau: np.ndarray) -> np.ndarray:
        """(nv,): -G* lambda, unique also where lambda is not."""
        return self.mass @ self.accelerations(tau) + self.bias_force - tau
