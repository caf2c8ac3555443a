import mpmath
import numpy as np
import pytest

from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable
from linkwise.compiler.targets import llvm_math

from .compiled import compiled


@pytest.fixture(scope="module", params=["float64", "float32"])
def functions(request):
    """``(sin x, cos x, atan2(y, x))`` of ``(y, x)`` in one dtype."""
    builder = Builder()
    y, x = builder.input(0, 0), builder.input(1, 0)
    results = ((builder.sin(x),), (builder.cos(x),), (builder.atan2(y, x),))
    outputs = tuple(Array(name, ()) for name in ("sin", "cos", "atan2"))
    program = Program((Array("y", ()), Array("x", ())), outputs, reachable(results), results, "functions")
    ufunc = compiled(program, request.param)
    return np.dtype(request.param), ufunc


def worst_error(got: np.ndarray, function, *arguments) -> float:
    """Largest distance from ``function``, computed to 1200 bits, in units of the last place."""
    worst = 0.0
    with mpmath.workprec(1200):
        for values in zip(got, *arguments, strict=True):
            exact = function(*(mpmath.mpf(float(a)) for a in values[1:]))
            size = max(abs(got.dtype.type(exact)), np.finfo(got.dtype).tiny)
            worst = max(worst, float(abs(mpmath.mpf(float(values[0])) - exact) / mpmath.mpf(float(np.spacing(size)))))
    return worst


def angles(dtype: np.dtype, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    limit = llvm_math.reduction_limit(dtype.name)
    turns = rng.integers(1, int(limit / (np.pi / 2)), count)
    exponent = np.finfo(dtype).maxexp * np.log10(2.0)
    near = np.array([float(int(n) * mpmath.pi / 2) for n in turns]).astype(dtype)
    return {
        "usual": rng.uniform(-7.0, 7.0, count).astype(dtype),
        "within the limit": rng.uniform(-limit, limit, count).astype(dtype),
        "all sizes": (rng.choice([-1, 1], count) * 10.0 ** rng.uniform(-exponent, exponent, count)).astype(dtype),
        "near multiples of pi/2": near + np.spacing(near) * rng.integers(-1, 2, count).astype(dtype),
        "near odd multiples of pi/4": ((turns - 0.5) * (np.pi / 2)).astype(dtype),
        "at the limit": (dtype.type(limit) + np.spacing(dtype.type(limit)) * np.arange(-4, 5)).astype(dtype),
        "denormal": np.finfo(dtype).smallest_subnormal * rng.integers(-1000, 1000, 50).astype(dtype),
    }


def test_sine_and_cosine_within_two_units(functions):
    dtype, ufunc = functions
    for name, x in angles(dtype, 1500).items():
        sine, cosine, _ = ufunc(x, x)
        assert worst_error(sine, mpmath.sin, x) < 2.0, name
        assert worst_error(cosine, mpmath.cos, x) < 2.0, name


def test_many_sines_and_cosines_against_higher_precision(functions):
    dtype, ufunc = functions
    wide = np.dtype(np.longdouble if dtype == np.float64 else np.float64)
    if np.finfo(wide).eps > np.finfo(dtype).eps / 1000:
        pytest.skip("no wider type on this machine")
    for name, x in angles(dtype, 200_000).items():
        for got, exact in zip(ufunc(x, x)[:2], (np.sin(x.astype(wide)), np.cos(x.astype(wide))), strict=True):
            unit = np.spacing(np.maximum(abs(exact.astype(dtype)), np.finfo(dtype).tiny))
            assert (abs(got.astype(wide) - exact) / unit).max() < 2.0, name


def test_a_lane_does_not_depend_on_its_neighbours(functions):
    dtype, ufunc = functions
    x = np.linspace(-3, 3, 32).astype(dtype)
    mixed = x.copy()
    mixed[::3] = 1e30
    for alone, among in zip(ufunc(x, x)[:2], ufunc(mixed, mixed)[:2], strict=True):
        np.testing.assert_array_equal(np.delete(alone, np.s_[::3]), np.delete(among, np.s_[::3]))


def test_special_angles(functions):
    dtype, ufunc = functions
    x = np.array([0.0, -0.0, np.nan, np.inf, -np.inf], dtype)
    with np.errstate(invalid="ignore"):
        sine, cosine, _ = ufunc(x, x)
    np.testing.assert_array_equal(sine, np.array([0.0, -0.0, np.nan, np.nan, np.nan], dtype))
    assert list(np.signbit(sine[:2])) == [False, True]
    np.testing.assert_array_equal(cosine, np.array([1.0, 1.0, np.nan, np.nan, np.nan], dtype))


def test_large_and_nan_angles_raise_no_floating_point_errors(functions):
    dtype, ufunc = functions
    x = np.array([np.nan, 1e30, 1e38, 3.0] * 8, dtype)
    with np.errstate(all="raise", under="ignore"):
        ufunc(x, x)


def test_atan2_within_three_units(functions):
    dtype, ufunc = functions
    rng = np.random.default_rng(1)
    exponent = np.finfo(dtype).maxexp * np.log10(2.0) - 1
    for spread in (1.0, exponent):
        sizes = 10.0 ** rng.uniform(-spread, spread, (2, 1500))
        y, x = (rng.choice([-1, 1], (2, 1500)) * sizes).astype(dtype)
        assert worst_error(ufunc(y, x)[2], mpmath.atan2, y, x) < 3.0
    huge = np.finfo(dtype).max * rng.uniform(0.1, 1.0, (2, 300)).astype(dtype)
    assert worst_error(ufunc(*huge)[2], mpmath.atan2, *huge) < 3.0


def test_atan2_of_special_values(functions):
    dtype, ufunc = functions
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    values = np.array([0.0, -0.0, 1.0, -1.0, tiny, -tiny, huge, -huge, np.inf, -np.inf, np.nan], dtype)
    y, x = (grid.ravel() for grid in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        got, want = ufunc(y, x)[2], np.arctan2(y, x)
    np.testing.assert_allclose(got, want, rtol=3 * np.finfo(dtype).eps)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


def test_parts_of_half_pi_add_up():
    for dtype, bits in (("float64", 120), ("float32", 55)):
        with mpmath.workprec(300):
            error = sum(mpmath.mpf(part) for part in llvm_math.parts_of_half_pi(dtype)) - mpmath.pi / 2
            assert abs(error) < mpmath.mpf(2) ** -bits
