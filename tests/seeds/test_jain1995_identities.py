"""jain1995, Appendix B: operator identities, on serial chains as printed and on trees by linkwise's operators."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op

from .jain1995 import operators_of
from .library import LibraryChain, compiled
from .test_jain1995_factorization import TREES
from .tip_to_base import Chain, close, differ, random_chain, results, spatial_tilde

n = 5


@pytest.fixture(params=[Chain, LibraryChain], ids=["chain", "linkwise"])
def chain(request):
    mech = random_chain(n, 9)
    return request.param(mech, *lw.random_state(mech, np.random.default_rng(9)))


class FromLibrary:
    """The same names as ``Stacked``, from linkwise's compiled operators of any tree."""

    def __init__(self, mech, q):
        for name in ("H", "phi", "psi", "E_phi", "E_psi", "M", "P", "D", "G", "K", "tau", "tau_bar"):
            setattr(self, name, compiled(getattr(op, name), mech, q))
        self.I, self.I6 = np.eye(mech.nv), np.eye(6 * mech.n_links)


@pytest.fixture(params=["chain", *TREES], ids=lambda which: getattr(which, "name", which))
def operators(request, chain):
    if request.param == "chain":
        return operators_of(chain)
    return FromLibrary(request.param, lw.random_state(request.param, np.random.default_rng(2))[0])


@results("jain1995", "Lemma B.1", "B.1", "B.2", "B.3", "B.4", by="library")
def test_lemma_b_1(operators):
    x = operators
    close((x.I - x.H @ x.psi @ x.K) @ x.H @ x.phi, x.H @ x.psi)
    close(x.phi @ x.K @ (x.I - x.H @ x.psi @ x.K), x.psi @ x.K)
    close(x.phi @ x.M @ x.phi.T @ x.H.T, (x.I6 + x.phi @ x.K @ x.H) @ x.P @ x.phi.T @ x.H.T)
    close(x.H @ x.phi @ x.tau_bar, x.H @ x.phi @ x.E_psi)


@results("jain1995", "B.5", "B.6", by="library")
def test_proof_of_lemma_b_1(operators):
    """Each step; (B.6) has lost a bar: tau_bar P H* = P tau_bar* H* = 0, while P tau* H* = P H*."""
    x = operators
    phi_tilde = x.phi - x.I6
    close(np.linalg.inv(x.psi) - np.linalg.inv(x.phi), x.E_phi - x.E_psi)
    close(x.E_phi - x.E_psi, x.E_phi @ x.tau)
    close(x.E_phi @ x.tau, x.K @ x.H)
    close(x.phi - x.psi, x.psi @ x.K @ x.H @ x.phi)
    close(x.phi - x.psi, x.phi @ x.K @ x.H @ x.psi)
    left = x.phi @ x.M @ x.phi.T
    close(left, x.phi @ x.P @ x.phi.T - phi_tilde @ x.tau_bar @ x.P @ phi_tilde.T)
    close(left, phi_tilde @ x.P + x.P @ x.phi.T + x.phi @ x.K @ x.H @ x.P @ x.phi.T - x.phi @ x.K @ x.H @ x.P)
    close(left, phi_tilde @ x.tau_bar @ x.P + (x.I6 + x.phi @ x.K @ x.H) @ x.P @ x.phi.T)
    zero = np.zeros_like(x.H.T)
    close(x.tau_bar @ x.P @ x.H.T, x.P @ x.tau_bar.T @ x.H.T)
    close(x.tau_bar @ x.P @ x.H.T, zero)
    close(x.tau_bar.T @ x.H.T, zero)
    differ(x.P @ x.tau.T @ x.H.T, zero)  # the middle of (B.6) as printed
    close(x.H @ x.phi @ x.E_psi, x.H @ phi_tilde @ x.tau_bar)
    close(x.H @ phi_tilde @ x.tau_bar, x.H @ x.phi @ x.tau_bar - x.H @ x.tau_bar)
    close(x.H @ x.tau_bar, np.zeros_like(x.H))


@results("jain1995", "Lemma B.2", "B.7", "B.8", "B.9", "B.10", by="library")
def test_lemma_b_2(chain):
    """Velocities and translations commute up to the joints' own motion."""
    x = operators_of(chain)
    with pytest.raises(ValueError):  # (B.8) as printed, l without its tilde, is no matrix
        np.block([[np.eye(3), chain.l(2, 1)[:, None]], [np.zeros((3, 3)), np.eye(3)]])
    V_plus = [None, *(chain.phi(k + 1, k).T @ chain.V[k + 1] for k in range(1, n + 1))]
    for k in range(1, n + 1):
        phi = chain.phi(k + 1, k)
        X = chain.V[k + 1] + 1.0
        close(spatial_tilde(phi.T @ X), phi.T @ spatial_tilde(X) @ np.linalg.inv(phi).T)  # (B.8)
        close(spatial_tilde(V_plus[k]) @ phi.T, phi.T @ spatial_tilde(chain.V[k + 1]))  # (B.9)
        close(chain.V[k] - chain.H[k].T @ chain.rates[k], V_plus[k])
        differ(chain.V[k] - chain.H[k].T @ chain.rates[k], phi.T @ chain.V[k - 1])  # above (B.9): V(k-1) for V(k+1)
    V = chain.diagonal([None, *(spatial_tilde(chain.V[k]) for k in range(1, n + 1))])
    outer = chain.diagonal([None, *(spatial_tilde(V_plus[k]) for k in range(1, n + 1))])
    Omega = chain.diagonal([None, *(spatial_tilde(chain.H[k].T @ chain.rates[k]) for k in range(1, n + 1))])
    close(x.E_phi.T @ V, outer @ x.E_phi.T)  # (B.10)
    close(x.E_phi.T @ V, V @ x.E_phi.T - Omega @ x.E_phi.T)
    differ(x.E_phi.T @ V, outer @ x.E_phi.T - Omega @ x.E_phi.T)  # as printed, with V+ twice
    # The steps of the proof; the third is printed with + Omega at its end.
    phi_inverse = np.linalg.inv(x.phi)
    close(phi_inverse @ V.T, V.T @ phi_inverse + x.E_phi @ Omega)
    close(V.T, x.phi @ (V.T @ phi_inverse + Omega) - Omega)
    differ(V.T, x.phi @ (V.T @ phi_inverse + Omega) + Omega)
    close(x.H @ Omega, np.zeros_like(x.H))
    close(x.H @ V.T, x.H @ x.phi @ (V.T @ phi_inverse + Omega))
    close(x.H @ (V.T @ x.phi - x.phi @ V.T), x.H @ x.phi @ Omega @ x.phi)  # (B.7)
