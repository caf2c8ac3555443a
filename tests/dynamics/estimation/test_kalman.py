"""The filter and the smoother of rodriguez1986, Section 9, against conditioning of one large Gaussian; gains by square
roots against both."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.dynamics.estimation.noise import certainty_and_spread
from tests.physics.trees import close, trees_of

TREES = trees_of([(3, 0, True), (5, 0, False), (5, 1, True)])


class Gaussian:
    """Forces x = phi w onto all links with w of covariance M, and joint forces H x + noise of variance R."""

    def __init__(self, mech: lw.Mechanism, q, R: np.ndarray):
        self.mech, self.R = mech, np.diag(R)
        phi, self.H = op.dense(op.phi, mech, q), op.dense(op.H, mech, q)
        self.covariance = phi @ op.dense(op.M, mech, q) @ phi.T

    def joints(self, links) -> list[int]:
        return [k for i in links for k in range(self.mech.nv)[self.mech.v_index(self.mech.bodies[i].joint)]]

    def beyond(self, i: int) -> list[int]:
        """All links that link i carries."""
        return [j for j in range(self.mech.n_links) if j != i and i in self.mech.tree.path(j)]

    def given(self, rows: list[int], measured: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n_links, 6) and covariance of all forces, given some joint forces, of zero mean before."""
        cross = self.covariance @ self.H[rows].T
        gain = np.linalg.solve(self.H[rows] @ cross + self.R[np.ix_(rows, rows)], cross.T).T
        return (gain @ measured[rows]).reshape(-1, 6), self.covariance - gain @ cross.T


@TREES
@pytest.mark.seed("rodriguez1986", "9.4", by="library")
@pytest.mark.seed("rodriguez1986", "9.6", by="library")
@pytest.mark.seed("rodriguez1986", "9.7", by="library")
@pytest.mark.seed("rodriguez1986", "9.8", by="library")
@pytest.mark.seed("rodriguez1986", "9.10", by="library")
@pytest.mark.seed("rodriguez1986", "9.13", by="library")
@pytest.mark.seed("rodriguez1986", "9.17", by="library")
@pytest.mark.seed("rodriguez1986", "9.18", by="library")
@pytest.mark.parametrize("noisy", [False, True])
def test_covariances_are_those_of_the_conditioned_gaussian(tree, noisy):
    """Trees of all joints, with measurement noise R as after (9.7); rotor inertias are part of R."""
    model = tree()
    mech, rng = model.mech, np.random.default_rng(3)
    q = model.states(1)[0][0]
    R = lw.estimation.rotor_inertias(mech) + (rng.uniform(0.1, 1.0, mech.nv) if noisy else 0.0)
    measured = rng.normal(size=mech.nv)
    noise = certainty_and_spread(np.sqrt(R))
    matrices, joints, vectors = model.kalman_filter(q, measured, noise)
    (P, P_plus, Lambda, S), (z, co_states) = np.moveaxis(matrices, 1, 0), np.moveaxis(vectors, 1, 0)
    G, (innovations, determinants, rates) = joints[:, :6], joints[:, 6:].T
    gaussian = Gaussian(mech, q, R)
    mean, covariance = gaussian.given(list(range(mech.nv)), measured)
    by_roots = model.filter_gains(q, np.sqrt(R))
    close(G, by_roots[:, :6], 1e-9, core=2)
    close(determinants / noise[:, 0], by_roots[:, 6], 1e-9)
    for i in range(mech.n_links):
        block = slice(6 * i, 6 * i + 6)
        outer, own = gaussian.joints(gaussian.beyond(i)), gaussian.joints([i])
        before, P_before = gaussian.given(outer, measured)
        close(z[i], before[i], 1e-9)
        close(P[i], P_before[block, block], 1e-9, core=2)
        upto = gaussian.given(outer + own, measured)[1]
        close(P_plus[i], upto[block, block], 1e-9, core=2)
        close(S[i], covariance[block, block], 1e-9, core=2)
        close(z[i] + P[i] @ co_states[i], mean[i], 1e-9)
        close(P[i] - P[i] @ Lambda[i] @ P[i], covariance[block, block], 1e-9, core=2)
        if len(own) == 1:  # of several degrees of freedom each has what the others before it leave
            k = own[0]
            expected = gaussian.H[[k], block] @ P_before[block, block]
            close(determinants[k] / noise[k, 0], (expected @ gaussian.H[k, block] + R[k]).item(), 1e-9, core=0)
            close(G[k], expected[0] * noise[k, 0] / determinants[k], 1e-9)
            close(innovations[k], measured[k] - gaussian.H[k, block] @ before[i], 1e-9, core=0)
    close(np.linalg.solve(gaussian.H @ gaussian.covariance @ gaussian.H.T + np.diag(R), measured), rates, 1e-9)


def test_filtered_joint_forces_are_forward_dynamics():
    """A batch of moving states under wrenches; the likelihood is that of the mass matrix as a covariance."""
    mech, rng = lw.mechanisms.chain(3), np.random.default_rng(1)
    q, v = lw.random_state(mech, rng, (3,))
    tau, wrenches = rng.normal(size=v.shape), rng.normal(size=(3, mech.n_links, 6))
    found = lw.estimation.kalman(mech, q, v, tau, wrenches=wrenches)
    a = lw.forward_dynamics(mech, q, v, tau, wrenches)
    close(found.accelerations, a, 1e-9)
    rest = lw.link_accelerations(mech, q, v, np.zeros(mech.nv))
    close(found.co_states, lw.link_accelerations(mech, q, v, a) - rest, 1e-9, core=2)
    close(found.smoothed, lw.joint_wrenches(mech, q, v, a, wrenches), 1e-9, core=2)
    M, e = lw.mass_matrix(mech, q), tau - lw.inverse_dynamics(mech, q, v, 0 * v, wrenches)
    squares = np.einsum("bi,bi->b", e, np.linalg.solve(M, e[..., None])[..., 0])
    close(found.log_likelihood, -0.5 * (squares + np.linalg.slogdet(2 * np.pi * M)[1]), 1e-9)
    close(lw.estimation.gains(mech, q)[0], found.G, 1e-9, core=2)
    with pytest.raises(lw.MechanismError, match="torque_noise must be finite"):
        lw.estimation.kalman(mech, q, v, tau, torque_noise=np.inf)


def test_square_roots_keep_digits_where_covariances_lose_them():
    """A heavy tip on light links, in single precision: the small innovation variance of a link before it is the
    difference of large numbers, which square roots never subtract."""
    builder, parent = lw.Builder(), "ground"
    for k, mass in enumerate((1e-3, 1e-3, 1e-3, 1e3)):
        builder.link(f"l{k}", mass, (0.5, 0.1, 0.0), 1e-3 * mass * np.eye(3))
        builder.joint(f"j{k}", lw.Revolute((0, 0, 1)), parent, f"l{k}", (None, (1.0 if k else 0.0, 0.0, 0.0)))
        parent = f"l{k}"
    mech = builder.build("heavy_tip")
    q = np.array([0.3, -0.4, 0.5, 0.7])
    exact = lw.compile("filter_gains", mech, target="numpy")(q, np.zeros(4))[:, 6]
    by_roots = lw.compile("filter_gains", mech, "float32", target="numpy")(q.astype("f"), np.zeros(4, "f"))[:, 6]
    noise = certainty_and_spread(np.zeros(4)).astype("f")
    by_covariances = lw.compile("kalman_filter", mech, "float32", target="numpy")(
        q.astype("f"), np.zeros(4, "f"), noise
    )
    lost = np.abs(by_covariances[1][:, 7] / exact - 1.0).max()
    kept = np.abs(by_roots / exact - 1.0).max()
    assert kept < 1e-3 < 1e-2 < lost
