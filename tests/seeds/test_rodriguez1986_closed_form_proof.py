"""rodriguez1986, (10.4)-(10.28): the state and co-state equations solved by their kernels, step by step.

Accelerations are body-fixed and gravity is an external force, as in ``tests/seeds/rodriguez1986.py``.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from tests.seeds.rodriguez1986 import (
    ARMS,
    Case,
    ClosedForm,
    biases,
    force_at_held_base,
    inward_filter,
    moving_arm,
    rows,
)
from tests.seeds.tip_to_base import close, differ, to_base

I6, O6 = np.eye(6), np.zeros(6)


def quantities(case: Case) -> SimpleNamespace:
    """What the equations below are made of: the kernels, and xi~ (10.7), e+ (10.5) and eta~ (10.15) of every joint."""
    arm, form = case.arm, ClosedForm.of(case.arm)
    xi, eta = biases(case)
    s = SimpleNamespace(
        form=form, xi=xi, eta=eta, xi_tilde=rows(arm.n, 6), eta_tilde=rows(arm.n, 6), e_plus=rows(arm.n)
    )
    for k in case.links:
        s.xi_tilde[k] = form.rest(k) @ xi[k] + form.G[k] * case.tau[k] + form.P_plus[k] @ eta[k]  # (10.7)
    for k in case.links:
        propagated = sum((form.psi(k, i) @ s.xi_tilde[i] for i in range(1, k)), O6)
        H = form.H[k]
        s.e_plus[k] = form.D_inverse[k] * (case.tau[k] - H @ xi[k] - H @ propagated)  # (10.5)
        s.eta_tilde[k] = form.rest(k).T @ eta[k] + H * s.e_plus[k]  # (10.15)
    return s


def exact_accelerations(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """lambda- and lambda+ by linkwise."""
    minus = case.arm.from_links(
        lw.link_accelerations(case.mech, case.q, to_base(case.u_dot), to_base(case.u_ddot)),
    )
    plus = rows(case.arm.n, 6)
    plus[case.arm.n] = 0.0
    for k in case.links:
        plus[k - 1] = case.arm.phi(k, k - 1).T @ minus[k]
    return minus, plus


@ARMS
@pytest.mark.seed("rodriguez1986", "10.6", by="library")
@pytest.mark.seed("rodriguez1986", "10.11", by="library")
@pytest.mark.seed("rodriguez1986", "10.13", by="library")
@pytest.mark.seed("rodriguez1986", "10.19", by="library")
@pytest.mark.seed("rodriguez1986", "10.21", by="library")
def test_kernels_are_the_filters_response(which):
    """psi(k-, i+) is what a change of z+(i) makes of z-(k), by running the filter; psi(k+, i+) of z+(k), psi(k-, i-)
    that of a change of z-(i). The products (10.13) and (10.21), and dense inverses, agree."""
    case = moving_arm(*which)
    arm, n, form = case.arm, case.arm.n, ClosedForm.of(case.arm)
    xi, eta = biases(case)
    before = inward_filter(arm, case.tau, xi, eta)
    for i in case.links:
        bump = np.random.default_rng(i).normal(size=6)
        at_minus, at_plus = xi.copy(), xi.copy()
        at_minus[i] += bump  # changes z-(i) by the bump
        after_minus = inward_filter(arm, case.tau, at_minus, eta)
        if i < n:
            at_plus[i + 1] += arm.phi(i + 1, i) @ bump  # what z+(i) changed by the bump would propagate
        after_plus = inward_filter(arm, case.tau, at_plus, eta)
        product_minus, product_plus = I6, I6
        for k in range(i + 1, n + 1):
            step_plus = form.rest(k) @ arm.phi(k, k - 1)  # (10.11)
            step_minus = arm.phi(k, k - 1) @ form.rest(k - 1)  # (10.19)
            product_plus, product_minus = step_plus @ product_plus, step_minus @ product_minus
            close(after_plus.z_minus[k] - before.z_minus[k], form.psi(k, i) @ bump)  # (10.6)
            close(after_plus.z_plus[k] - before.z_plus[k], product_plus @ bump)  # (10.13)
            close(after_minus.z_minus[k] - before.z_minus[k], product_minus @ bump)  # (10.21)
            close(form.psi_plus_plus(k, i), product_plus)
            close(form.psi_minus_minus(k, i), product_minus)
    translation = np.zeros((6 * n, 6 * n))
    for k in range(2, n + 1):
        translation[6 * k - 6 : 6 * k, 6 * k - 12 : 6 * k - 6] = arm.phi(k, k - 1) @ form.rest(k - 1)
    resolvent = np.linalg.inv(np.eye(6 * n) - translation)
    for k in case.links:
        for i in range(1, k + 1):
            close(resolvent[6 * k - 6 : 6 * k, 6 * i - 6 : 6 * i], form.psi_minus_minus(k, i))


@ARMS
@pytest.mark.seed("rodriguez1986", "10.4", by="library")
@pytest.mark.seed("rodriguez1986", "10.5", by="library")
@pytest.mark.seed("rodriguez1986", "10.7", by="library")
@pytest.mark.seed("rodriguez1986", "10.8", by="library")
@pytest.mark.seed("rodriguez1986", "10.9", by="library")
@pytest.mark.seed("rodriguez1986", "10.10", by="library")
@pytest.mark.seed("rodriguez1986", "10.12", by="library")
def test_solution_of_the_state_equation(which):
    """Predicted and updated states against dense solutions for links 1..k with link k+1 held."""
    case = moving_arm(*which)
    arm, s = case.arm, quantities(case)
    form, psi = s.form, s.form.psi
    z_plus = rows(arm.n, 6)
    z_plus[0] = 0.0
    for k in case.links:
        z_plus[k] = force_at_held_base(case, k, s.xi, s.eta)
    for k in case.links:
        phi, outer = arm.phi(k, k - 1), range(1, k)
        z_minus = s.xi[k] + phi @ z_plus[k - 1]  # (10.8)
        close(s.xi[k] + sum((psi(k, i) @ s.xi_tilde[i] for i in outer), O6), z_minus)  # (10.4)
        close(s.e_plus[k], (case.tau[k] - form.H[k] @ z_minus) * form.D_inverse[k])  # (10.5)
        updated = form.rest(k) @ z_minus + form.G[k] * case.tau[k] + form.P_plus[k] @ s.eta[k]
        close(updated, z_plus[k])  # (10.9)
        close(form.rest(k) @ phi @ z_plus[k - 1] + s.xi_tilde[k], z_plus[k])  # (10.10) with (10.7)
        solution = sum((form.psi_plus_plus(k - 1, i) @ s.xi_tilde[i] for i in outer), O6)
        close(solution, z_plus[k - 1])  # (10.12)


@ARMS
@pytest.mark.seed("rodriguez1986", "10.14", by="library")
@pytest.mark.seed("rodriguez1986", "10.15", by="library")
@pytest.mark.seed("rodriguez1986", "10.16", by="library")
@pytest.mark.seed("rodriguez1986", "10.17", by="library")
@pytest.mark.seed("rodriguez1986", "10.18", by="library")
@pytest.mark.seed("rodriguez1986", "10.20", by="library")
@pytest.mark.seed("rodriguez1986", "10.22", by="library")
def test_solution_of_the_co_state_equation(which):
    """Against linkwise's accelerations."""
    case = moving_arm(*which)
    arm, N, s = case.arm, case.arm.n, quantities(case)
    form, psi = s.form, s.form.psi
    minus, plus = exact_accelerations(case)
    for k in case.links:
        inner = range(k + 1, N + 1)
        propagated = sum((psi(i, k).T @ s.eta_tilde[i] for i in inner), O6)
        close(propagated, plus[k])  # (10.14) with (10.15)
        close(form.rest(k).T @ (plus[k] + s.eta[k]) + form.H[k] * s.e_plus[k], minus[k])  # (10.16)
        if k < N:
            close(arm.phi(k + 1, k).T @ minus[k + 1], plus[k])  # (10.17)
            close(form.psi_minus_minus(k + 1, k).T @ minus[k + 1] + s.eta_tilde[k], minus[k])  # (10.18)
            total = sum(form.psi_minus_minus(i, k + 1).T @ s.eta_tilde[i] for i in inner)
            close(total, minus[k + 1])  # (10.20)
        close(s.e_plus[k] - form.G[k] @ s.eta[k] - form.G[k] @ propagated, case.u_ddot[k])  # (10.22)


@ARMS
@pytest.mark.seed("rodriguez1986", "10.23", by="library")
@pytest.mark.seed("rodriguez1986", "10.24", by="library")
@pytest.mark.seed("rodriguez1986", "10.25", by="library")
@pytest.mark.seed("rodriguez1986", "10.26", by="library")
@pytest.mark.seed("rodriguez1986", "10.28", by="library")
def test_substitution_of_the_state_into_the_co_state(which):
    """The lower limits in (10.28) are printed in each other's place: j runs from 1 under Lambda+(k), from k+1 under
    psi^T. (10.23) prints j for the index i of its last sum."""
    case = moving_arm(*which)
    N, s = case.arm.n, quantities(case)
    form, psi = s.form, s.form.psi
    P_minus = inward_filter(case.arm, case.tau, s.xi, s.eta).P_minus
    _, plus = exact_accelerations(case)
    H, D_inverse, Lambda = form.H, form.D_inverse, form.Lambda_plus
    for k in case.links:
        outer, inner = range(1, k), range(k + 1, N + 1)
        state = sum((psi(k, i) @ s.xi_tilde[i] for i in outer), O6)
        co_state = sum((psi(i, k).T @ s.eta_tilde[i] for i in inner), O6)
        tau_tilde = case.tau[k] - H[k] @ s.xi[k] - H[k] @ P_minus[k] @ s.eta[k]  # (10.24)
        close(D_inverse[k] * (tau_tilde - H[k] @ state - H[k] @ P_minus[k] @ co_state), case.u_ddot[k])  # (10.23)

        from_eta = sum((form.psi_plus_plus(i, k).T @ s.eta[i] for i in inner), O6)
        from_residuals = sum((psi(i, k).T @ H[i] * s.e_plus[i] for i in inner), O6)
        close(from_eta + from_residuals, plus[k])  # (10.25)

        once = sum((psi(i, k).T @ H[i] * D_inverse[i] * (case.tau[i] - H[i] @ s.xi[i]) for i in inner), O6)
        pairs = [(i, j) for i in inner for j in range(1, i)]
        twice = sum((psi(i, k).T @ H[i] * (D_inverse[i] * H[i] @ psi(i, j) @ s.xi_tilde[j]) for i, j in pairs), O6)
        close(once - twice, from_residuals)  # (10.26)

        def solved(under_lambda, under_psi, k=k):
            first = sum((Lambda[k] @ form.psi_plus_plus(k, j) @ s.xi_tilde[j] for j in under_lambda), O6)
            second = sum((form.psi_plus_plus(j, k).T @ Lambda[j] @ s.xi_tilde[j] for j in under_psi if j >= k), O6)
            return Lambda[k] @ s.xi_tilde[k] + first + second

        close(solved(outer, inner), twice)  # (10.28)
        if k < N:  # as printed, psi(j+, k+) taken as zero for j < k, where it is not defined
            differ(solved(range(k + 1, k), range(1, N + 1)), twice)


@pytest.mark.seed("rodriguez1986", "10.27", by="model")
def test_order_of_the_double_sum():
    """The inner sum on the right ends at N; with the printed N-1 the terms i = N are lost."""
    for N in range(2, 7):
        for k in range(1, N):
            left = [(i, j) for i in range(k + 1, N + 1) for j in range(1, i)]
            right = [(i, j) for j in range(1, N) for i in range(max(k + 1, j + 1), N + 1)]
            printed = [(i, j) for j in range(1, N) for i in range(max(k + 1, j + 1), N)]
            assert sorted(left) == sorted(right) and len(set(left)) == len(left)
            assert sorted(left) != sorted(printed)
