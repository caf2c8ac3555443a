"""Sine, cosine and division of CUDA kernels, compiled by the host, against mpmath."""

import mpmath
import numpy as np
import pytest

from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable
from linkwise.compiler.runtime import gpu
from linkwise.compiler.targets.protocol import Options
from tests.compiler.targets import cuda_on_host

DTYPES = ["float64", "float32"]


@pytest.fixture
def cupy_on_host(monkeypatch, tmp_path):
    return cuda_on_host.install(monkeypatch, tmp_path)


def program(inputs, function):
    """``function(builder, *x)`` gives the elements of y."""
    builder = Builder()
    results = (tuple(function(builder, *(builder.input(0, k) for k in range(inputs)))),)
    return Program((Array("x", (inputs,)),), (Array("y", (len(results[0]),)),), reachable(results), results)


SINE_AND_COSINE = program(1, lambda b, x: (b.sin(x), b.cos(x)))


def angles(dtype):
    """Small and large ones, and those next to multiples of pi/2."""
    rng = np.random.default_rng(0)
    largest = 14 if dtype == "float64" else 6.4
    wide = 10 ** rng.uniform(-8, largest, 500) * rng.choice([-1, 1], 500)
    turns = np.concatenate([np.arange(-40, 40), rng.integers(0, 10**6, 100)])
    return np.concatenate([rng.uniform(-10, 10, 500), wide, turns * (np.pi / 2), [0.0]]).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sine_and_cosine(cupy_on_host, dtype):
    given = angles(dtype)
    found = np.asarray(gpu.load(SINE_AND_COSINE, Options(dtype=dtype))(given[:, None]))
    with mpmath.workprec(200):
        for k, value in enumerate(given):
            x = mpmath.mpf(float(value))
            for got, exact in zip(found[k], (mpmath.sin(x), mpmath.cos(x)), strict=True):
                unit = float(np.spacing(np.abs(np.array(float(exact), dtype)))) or np.finfo(dtype).tiny
                assert abs(mpmath.mpf(float(got)) - exact) <= 2 * unit, (value, got, float(exact))


@pytest.mark.parametrize("dtype", DTYPES)
def test_angles_that_no_turn_is_known_of(cupy_on_host, dtype):
    """Neighbours of such numbers are further apart than a quarter of a radian."""
    far = [4e6, -1e20] if dtype == "float32" else [2e15, -1e200]
    given = np.array([*far, np.inf, np.nan], dtype)
    assert np.isnan(np.asarray(gpu.load(SINE_AND_COSINE, Options(dtype=dtype))(given[:, None]))).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_division(cupy_on_host, dtype):
    quotient = program(2, lambda builder, a, b: (builder.div(a, b),))
    rng = np.random.default_rng(1)
    given = (10 ** rng.uniform(-15, 15, (500, 2)) * rng.choice([-1, 1], (500, 2))).astype(dtype)
    special = np.array([[1, 0], [-2, 0], [0, 0], [3, np.inf], [np.inf, 2], [np.nan, 1], [0, 5]], dtype)
    given = np.concatenate([given, special])
    found = np.asarray(gpu.load(quotient, Options(dtype=dtype))(given))[:, 0]
    with np.errstate(all="ignore"):
        expected = given[:, 0] / given[:, 1]
    np.testing.assert_allclose(found, expected, rtol=2 * np.finfo(dtype).eps)
