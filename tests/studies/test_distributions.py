"""Distributions against those of SciPy, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import linkwise as lw
from linkwise import studies as st
from linkwise.studies.quantities import Quantity

U = np.linspace(0.001, 0.999, 57)
ONE = Quantity("my.x", (), np.zeros(()))


@pytest.mark.parametrize(
    "ours, peer",
    [
        (st.distributions.Uniform(-1.0, 3.0), scipy.stats.uniform(-1.0, 4.0)),
        (st.distributions.Normal(2.0, 0.5), scipy.stats.norm(2.0, 0.5)),
        (st.distributions.Normal(2.0, 0.5, 1.5, 3.5), scipy.stats.truncnorm(-1.0, 3.0, 2.0, 0.5)),
        (st.distributions.LogNormal(3.0, 0.4), scipy.stats.lognorm(0.4, scale=3.0)),
        (st.distributions.Triangular(1.0, 2.0, 5.0), scipy.stats.triang(0.25, 1.0, 4.0)),
        (st.distributions.FromScipy(scipy.stats.gamma(2.0)), scipy.stats.gamma(2.0)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_against_scipy(ours, peer):
    assert np.allclose(ours.values(U[:, None], ONE), peer.ppf(U), rtol=1e-12, atol=1e-12)


def test_choices_and_correlated_numbers():
    chosen = st.distributions.Choice([1.0, 2.0, 5.0], [1, 0, 3]).values(U[:, None], ONE)
    assert set(chosen) == {1.0, 5.0} and abs((chosen == 5.0).mean() - 0.75) < 0.02
    rows = st.distributions.Choice([[1, 2, 3], [4, 5, 6]]).values(U[:, None], Quantity("gravity", (3,), np.zeros(3)))
    assert rows.shape == (57, 3) and set(map(tuple, rows)) == {(1, 2, 3), (4, 5, 6)}
    covariance = np.array([[2.0, 0.6], [0.6, 0.5]])
    u = st.sampling.sobol(0, ["a", "b"], 4096, 0, 4096)
    found = st.distributions.MultivariateNormal([1.0, -1.0], covariance).values(u, Quantity("my.x", (2,), np.zeros(2)))
    assert np.abs(found.mean(axis=0) - [1.0, -1.0]).max() < 0.01 and np.abs(np.cov(found.T) - covariance).max() < 0.02


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: st.distributions.Uniform(1.0, 0.0), "low must not be above high"),
        (lambda: st.distributions.Normal(0.0, -1.0), "std must not be negative"),
        (lambda: st.distributions.LogNormal(0.0, 1.0), "median must be positive"),
        (lambda: st.distributions.Triangular(0.0, 2.0, 1.0), "low <= mode <= high"),
        (lambda: st.distributions.Choice([]), "something to choose from"),
        (lambda: st.distributions.Choice([1, 2], [1]), "one weight per option"),
        (lambda: st.distributions.MultivariateNormal([0, 0], [[1, 2], [2, 1]]), "positive eigenvalues"),
    ],
)
def test_what_is_no_distribution(make, message):
    with pytest.raises(st.StudyError, match=message):
        make()


def test_factors_offsets_and_limits():
    arm = lw.mechanisms.puma560()
    vary = {
        "mass": st.distributions.Relative(st.distributions.Uniform(0.9, 1.1)),
        "link3.inertia": st.distributions.Relative(st.distributions.Uniform(0.9, 1.1)),
        "gravity": st.distributions.Offset(st.distributions.Normal(0.0, 0.1)),
        "q0": st.distributions.WithinLimits(),
        "v0.joint2": st.distributions.Offset(st.distributions.Uniform(1.0, 2.0)),
    }
    study = st.Study(arm, st.Function(lambda case: 0.0), vary, cases=50)
    cases = study.sample()
    ratio = cases["mass"][:, 1:] / arm.parameters.masses[1:]
    assert (ratio >= 0.9).all() and (ratio <= 1.1).all() and np.ptp(ratio) > 0.1
    factors = cases["link3.inertia"][:, [0, 1, 2], [0, 1, 2]] / np.diag(arm.parameters.inertias[2])
    assert np.allclose(factors, factors[:, :1]) and np.ptp(factors) > 0.05  # one factor for the whole matrix
    assert abs(cases["gravity"].mean(axis=0)[2] + 9.81) < 0.1
    assert (cases.q >= arm.limits.lower).all() and (cases.q <= arm.limits.upper).all() and np.ptp(cases.q[:, 5]) > 4.0
    assert (cases.v[:, 1] >= 1.0).all() and not cases.v[:, 0].any()
    assert len(study.factors) == 6 + 1 + 3 + 6 + 1 and "mass[link2]" in study.factors and "v0.joint2" in study.factors


def test_steps_of_rotations_go_along_tangents():
    body = lw.mechanisms.random_tree(2, 1, joints=("revolute",), floating_base=True)
    study = st.Study(
        body,
        st.Function(lambda case: 0.0),
        {"q0": st.distributions.Offset(st.distributions.Normal(0.0, 0.2))},
        cases=20,
    )
    q = study.sample().q
    steps = lw.difference(body, np.array(body.initial), q)
    assert np.allclose(np.linalg.norm(q[:, :4], axis=1), 1.0) and 0.1 < steps.std() < 0.3
