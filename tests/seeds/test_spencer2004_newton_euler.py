"""spencer2004 Section 4.3: the printed recursions for derivatives of the Newton-Euler algorithm, as dense 6-vectors,
against ``lw.inverse_dynamics_derivatives``."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from tests.constraints.test_spencer2004_appendix_a import Joints, bracket, newton_euler

ONE_DOF = ("revolute", "prismatic", "helical")


class Recursions:
    """V, dV/dt and F of every link, and their partial derivatives, one degree of freedom per joint, as printed.

    Two corrections: F has ad* of V, and children's wrenches come through Ad* of f^-1.
    """

    def __init__(self, mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray):
        self.mech, joints = mech, Joints(mech, q, v)
        self.into, self.inertia, self.v = joints.into, joints.inertia, v
        self.screws = [s[:, 0] for s in joints.s]
        self.velocities, propagated = joints.velocities()
        ground = np.concatenate([np.zeros(3), -mech.gravity])
        self.rates = self._outward(lambda i, parent: parent + self.screws[i] * a[i] + propagated[i], ground)
        self.forces = self._inward(lambda i: self._inertial(i))

    def _outward(self, step, ground=0.0) -> list[np.ndarray]:
        found: list[np.ndarray] = []
        for i, parent in enumerate(self.mech.tree.parents):
            found.append(step(i, self.into[i] @ (found[parent] if parent >= 0 else ground + np.zeros(6))))
        return found

    def _inward(self, own, of_child=lambda k: 0.0) -> list[np.ndarray]:
        """Sums of what children hand on, ``of_child`` added where they do, and a link's own."""
        found = [np.array(own(i), dtype=float) for i in range(self.mech.n_links)]
        for k in reversed(range(self.mech.n_links)):
            if self.mech.tree.parents[k] >= 0:
                found[self.mech.tree.parents[k]] += self.into[k].T @ (found[k] + of_child(k))
        return found

    def _inertial(self, i: int) -> np.ndarray:
        momentum = self.inertia[i] @ self.velocities[i]
        return self.inertia[i] @ self.rates[i] - bracket(self.velocities[i]).T @ momentum

    def by_position(self, j: int) -> np.ndarray:
        """d tau / dq_j."""
        s, beyond = self.screws[j], self.mech.tree.subtree(j)
        of_v = self._outward(lambda i, up: -bracket(s) @ self.velocities[i] if i == j else up)
        of_rate = self._outward(lambda i, up: -bracket(s) @ self.rates[i] if i == j else up - self._turn(i) @ of_v[i])
        forces = self._inward(
            lambda i: self._changed(i, of_v[i], of_rate[i]) if i in beyond else np.zeros(6),
            lambda k: -bracket(s).T @ self.forces[j] if k == j else 0.0,  # the term in angle brackets
        )
        return self._felt(forces)

    def by_velocity(self, j: int) -> np.ndarray:
        """d tau / dv_j."""
        s, beyond = self.screws[j], self.mech.tree.subtree(j)
        of_v = self._outward(lambda i, up: s if i == j else up)
        of_rate = self._outward(
            lambda i, up: (bracket(self.velocities[i]) @ s if i == j else up) - self._turn(i) @ of_v[i]
        )
        return self._felt(self._inward(lambda i: self._changed(i, of_v[i], of_rate[i]) if i in beyond else np.zeros(6)))

    def _turn(self, i: int) -> np.ndarray:
        return bracket(self.screws[i] * self.v[i])

    def _changed(self, i: int, of_v: np.ndarray, of_rate: np.ndarray) -> np.ndarray:
        inertia, moving = self.inertia[i], self.velocities[i]
        return inertia @ of_rate - bracket(of_v).T @ inertia @ moving - bracket(moving).T @ inertia @ of_v

    def _felt(self, forces: list[np.ndarray]) -> np.ndarray:
        return np.array([s @ force for s, force in zip(self.screws, forces, strict=True)])


@pytest.mark.seed("spencer2004", "Section 4.3", by="library")
@pytest.mark.parametrize("seed", range(4))
def test_derivatives_of_the_newton_euler_algorithm_as_printed(seed):
    mech = lw.mechanisms.random_tree(7, seed, joints=ONE_DOF)
    mech = dataclasses.replace(mech, bodies=tuple(dataclasses.replace(b, armature=(0.0,)) for b in mech.bodies))
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng)
    a = rng.normal(size=mech.nv)
    printed = Recursions(mech, q, v, a)
    joints, forces = Joints(mech, q, v), printed._felt(printed.forces)
    np.testing.assert_allclose(forces, newton_euler(joints, a), atol=1e-10)
    misprint = newton_euler(joints, a, printed=True)  # ad* of dV/dt
    assert np.abs(misprint - forces).max() > 1e-2 * np.abs(forces).max()
    by_q, by_v, by_a = lw.inverse_dynamics_derivatives(mech, q, v, a)
    for found, column in ((by_q, printed.by_position), (by_v, printed.by_velocity)):
        expected = np.stack([column(j) for j in range(mech.nv)], axis=1)
        np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(by_a, lw.mass_matrix(mech, q), atol=1e-11 * np.abs(by_a).max())


@pytest.mark.seed("spencer2004", "Section 4.3", by="model")
def test_identities_behind_the_recursions():
    """d Ad(f^-1) = -ad_S Ad(f^-1), its dual for Ad* of f^-1 (printed: of f), and no effect of what is further out."""
    mech = lw.mechanisms.random_tree(6, 1, joints=ONE_DOF)
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng)
    here = Joints(mech, q, v)
    step, misprint, moved = 1e-5, 0.0, 0.0
    for i in range(mech.n_links):
        there = [Joints(mech, q + s * np.eye(mech.nv)[i], v) for s in (step, -step)]
        rotating = (there[0].into[i] - there[1].into[i]) / (2 * step)
        np.testing.assert_allclose(rotating, -bracket(here.s[i][:, 0]) @ here.into[i], atol=1e-9)
        np.testing.assert_allclose(rotating.T, -here.into[i].T @ bracket(here.s[i][:, 0]).T, atol=1e-9)
        onto = np.linalg.inv(here.into[i])  # Ad of f itself: the identity holds for its inverse only
        rotating_back = (np.linalg.inv(there[0].into[i]) - np.linalg.inv(there[1].into[i])) / (2 * step)
        misprint = max(misprint, np.abs(rotating_back.T + onto.T @ bracket(here.s[i][:, 0]).T).max())
        np.testing.assert_allclose(bracket(here.s[i][:, 0]) @ here.s[i][:, 0], 0.0, atol=1e-15)
        changed = (np.array(there[0].velocities()[0]) - np.array(there[1].velocities()[0])) / (2 * step)
        outside = [k for k in range(mech.n_links) if k not in mech.tree.subtree(i)]
        np.testing.assert_allclose(changed[outside], 0.0, atol=1e-12)
        moved = max(moved, np.abs(changed[i]).max())
    assert misprint > 1e-3
    assert moved > 1e-3  # a link's own position does matter: "j in T_i" is meant without i
