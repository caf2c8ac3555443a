"""spencer2004 Section 4.4.1: the printed recursions for the body-fixed Jacobians and their derivatives, as dense 6 x n
matrices, against the closed forms of ``algorithms/jacobians.py``."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.constraints.test_spencer2004_appendix_a import Joints, bracket

ONE_DOF = ("revolute", "prismatic", "helical")


class Recursions:
    """J, dJ/dq_j, dJ/dt and d2J/dt2 of every link, one degree of freedom per joint, as Section 4.4.1 prints them."""

    def __init__(self, mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray):
        self.mech, joints = mech, Joints(mech, q, v)
        self.into, self.screws, self.v, self.a = joints.into, [s[:, 0] for s in joints.s], v, a
        self.n = mech.nv
        self.jacobians = self._sweep(lambda i, propagated: propagated + self._own(i))
        self.rates = self._sweep(lambda i, propagated: propagated - bracket(self.screws[i] * v[i]) @ self.jacobians[i])

    def _sweep(self, step) -> list[np.ndarray]:
        """From each parent's matrix, propagated by Ad of f^-1, to the link's own."""
        found: list[np.ndarray] = []
        for i, parent in enumerate(self.mech.tree.parents):
            outer = found[parent] if parent >= 0 else np.zeros((6, self.n))
            found.append(step(i, self.into[i] @ outer))
        return found

    def _own(self, i: int) -> np.ndarray:
        return np.outer(self.screws[i], np.eye(self.n)[i])

    def derivative(self, j: int) -> list[np.ndarray]:
        """dJ_i/dq_j: -ad_S J at joint j, propagated outward from there, zero elsewhere."""
        here = -bracket(self.screws[j]) @ self.jacobians[j]
        return self._sweep(lambda i, propagated: here if i == j else propagated)

    def second_rates(self, speed: list[float], acceleration: list[float]) -> list[np.ndarray]:
        """Ad J'' - ad_{S v} J' - ad_{S x} Ad J'_parent - ad_{S y} J, for the x and y that the last two terms have."""

        def step(i: int, propagated: np.ndarray) -> np.ndarray:
            inner = self.rates[self.mech.tree.parents[i]] if self.mech.tree.parents[i] >= 0 else np.zeros((6, self.n))
            return (
                propagated
                - bracket(self.screws[i] * self.v[i]) @ self.rates[i]
                - bracket(self.screws[i] * speed[i]) @ self.into[i] @ inner
                - bracket(self.screws[i] * acceleration[i]) @ self.jacobians[i]
            )

        return self._sweep(step)


@pytest.fixture(params=range(4))
def recursions(request) -> tuple[Recursions, np.ndarray, np.ndarray, np.ndarray]:
    mech = lw.mechanisms.random_tree(7, request.param, joints=ONE_DOF)
    rng = np.random.default_rng(request.param)
    q, v = lw.random_state(mech, rng)
    a = rng.normal(size=mech.nv)
    return Recursions(mech, q, v, a), q, v, a


@pytest.mark.seed("spencer2004", "Section 4.4.1", by="library")
def test_jacobians_and_their_first_derivatives_as_printed(recursions):
    printed, q, v, _ = recursions
    for i, link in enumerate(printed.mech.link_names):
        np.testing.assert_allclose(lw.jacobian(printed.mech, q, link), printed.jacobians[i], atol=1e-13)
        np.testing.assert_allclose(lw.derivatives.jacobian_rate(printed.mech, q, v, link), printed.rates[i], atol=1e-12)
        along = [printed.derivative(j)[i] for j in range(printed.n)]
        np.testing.assert_allclose(
            lw.derivatives.jacobian_derivatives(printed.mech, q, link), np.stack(along, -1), atol=1e-12
        )


@pytest.mark.seed("spencer2004", "Section 4.4.1", by="library")
def test_second_rates_with_the_dots_where_they_belong(recursions):
    """The printed v_dot and v_ddot of the last terms are v and v_dot."""
    printed, q, v, a = recursions
    meant = printed.second_rates(speed=v, acceleration=a)
    copied = printed.second_rates(speed=a, acceleration=np.ones_like(a))  # whatever v_ddot is, v_dot is too much
    for i, link in enumerate(printed.mech.link_names):
        found = lw.derivatives.jacobian_second_rate(printed.mech, q, v, a, link)
        np.testing.assert_allclose(found, meant[i], atol=1e-11)
    assert max(np.abs(x - y).max() for x, y in zip(meant, copied, strict=True)) > 1e-2


@pytest.mark.seed("spencer2004", "Section 4.4.1", by="library")
def test_the_printed_dots_are_wrong_even_at_constant_velocity():
    """With v_dot = v_ddot = 0 the printed form loses the term in v: d2J/dt2 is then not that of the motion."""
    mech = lw.mechanisms.chain(4)
    q, v = lw.random_state(mech, np.random.default_rng(0))
    nothing = np.zeros(mech.nv)
    printed = Recursions(mech, q, v, nothing).second_rates(speed=nothing, acceleration=nothing)
    step, link = 1e-5, mech.link_names[-1]
    rates = [lw.derivatives.jacobian_rate(mech, q + t * v, v, link) for t in (step, -step)]
    moving = (rates[0] - rates[1]) / (2 * step)
    np.testing.assert_allclose(lw.derivatives.jacobian_second_rate(mech, q, v, nothing, link), moving, atol=1e-8)
    assert np.abs(printed[-1] - moving).max() > 1e-2
