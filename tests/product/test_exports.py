"""Kernels of constrained mechanisms in other hands: C, CasADi, JAX; the same numbers, and derivatives."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw

from .mechanisms import case
from .oracle import Terms

CASES = ["one loop", "rolling", "held feet", pytest.param("three loops", marks=pytest.mark.slow)]


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("name", ["one loop", "rolling"])
def test_exported_c(name, tmp_path):
    this = case(name)
    source, library = tmp_path / "kernel.c", tmp_path / "kernel.so"
    lw.export_c(lw.forward_dynamics, this.mech, path=source)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
    arrays = [np.ascontiguousarray(x) for x in (this.q, this.v, this.tau)]
    result = np.zeros(this.mech.nv)
    pointers = (x.ctypes.data_as(ctypes.c_void_p) for x in (*arrays, result))
    ctypes.CDLL(str(library)).forward_dynamics(*pointers)
    np.testing.assert_allclose(result, Terms(this).accelerations(this.tau), atol=1e-7 * np.abs(result).max())


@pytest.mark.parametrize("name", CASES)
def test_casadi(name):
    pytest.importorskip("casadi")
    import linkwise.casadi

    this = case(name)
    found = np.array(linkwise.casadi.function(lw.forward_dynamics, this.mech)(this.q, this.v, this.tau)).ravel()
    np.testing.assert_allclose(found, Terms(this).accelerations(this.tau), atol=1e-7 * np.abs(found).max())


@pytest.mark.parametrize("name", CASES)
def test_jax(name):
    """The gradient by joint forces is K (K* M K)^-1 K*."""
    jax = pytest.importorskip("jax")
    import linkwise.jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        this = case(name)
        terms = Terms(this)

        def accelerations(tau):
            return linkwise.jax.forward_dynamics(this.mech, this.q, this.v, tau)

        found = np.asarray(accelerations(jax.numpy.asarray(this.tau)))
        np.testing.assert_allclose(found, terms.accelerations(this.tau), atol=1e-7 * np.abs(found).max())
        by_tau = np.asarray(jax.jacobian(accelerations)(jax.numpy.asarray(this.tau)))
        np.testing.assert_allclose(by_tau, terms.response, atol=1e-7 * np.abs(terms.response).max())
    finally:
        jax.config.update("jax_enable_x64", before)
