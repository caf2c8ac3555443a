"""Jets against the Taylor coefficients that mpmath finds, plain and traced."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from linkwise.compiler.ir.program import Array
from linkwise.compiler.targets import numpy_reference
from linkwise.compiler.trace import trace
from linkwise.mechanics import scalar
from linkwise.mechanics.jet import Dual, Jet, jet, parts, slopes_of

# Each twice: on scalars of linkwise, and in mpmath.
FUNCTIONS = {
    "sum": (lambda x, y: 2.0 - (x + 3.0 - y) - (1.0 - x) + -y * 0.5, lambda x, y: 2 - (x + 3 - y) - (1 - x) - y / 2),
    "product": (lambda x, y: x * y * x * 0.3, lambda x, y: x * y * x * mpmath.mpf("0.3")),
    "quotient": (lambda x, y: x / y + 2.0 / y + y / 4.0, lambda x, y: x / y + 2 / y + y / 4),
    "sine": (lambda x, y: scalar.sin(x * y), lambda x, y: mpmath.sin(x * y)),
    "cosine": (lambda x, y: scalar.cos(x - y), lambda x, y: mpmath.cos(x - y)),
    "root": (lambda x, y: scalar.sqrt(x * x + y * y), lambda x, y: mpmath.sqrt(x * x + y * y)),
    "angle": (lambda x, y: scalar.atan2(x, -y), lambda x, y: mpmath.atan2(x, -y)),
    "angle of one": (lambda x, y: scalar.atan2(0.7, x) + y, lambda x, y: mpmath.atan2(mpmath.mpf("0.7"), x) + y),
    "choice": (lambda x, y: scalar.select(x < y, x * x, y * y), lambda x, y: x * x if x < y else y * y),
    "other choice": (lambda x, y: scalar.select(x > y, x * x, y * y), lambda x, y: x * x if x > y else y * y),
}
X, Y = (0.8, -0.4, 1.1), (1.7, 0.3, -0.6)  # value, first and second derivative along the path


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_along_a_path(name):
    ours, exact = FUNCTIONS[name]

    def along(t):
        return exact(*(a + b * t + c * t * t / 2 for a, b, c in (X, Y)))

    with mpmath.workdps(40):
        expected = [float(mpmath.diff(along, 0, k)) for k in range(3)]
    np.testing.assert_allclose(parts(ours(Jet(*X), Jet(*Y))), expected, rtol=1e-13, atol=1e-13)
    program = trace(
        lambda x, y: [np.array(parts(ours(Jet(*x), Jet(*y))), dtype=object)],
        [Array("x", (3,)), Array("y", (3,))],
        ["parts"],
    )
    (traced,) = numpy_reference.evaluate(program, [np.array(X), np.array(Y)], "float64")
    np.testing.assert_allclose(traced, expected, rtol=1e-13, atol=1e-13)


def test_symbols_on_the_left_leave_the_work_to_jets():
    def run(x):
        moving = Jet(x[1], 1.0)
        return [np.array([parts(f)[1] for f in (x[0] * moving, x[0] + moving, x[0] - moving, x[0] / moving)])]

    program = trace(run, [Array("x", (2,))], ["rates"])
    (rates,) = numpy_reference.evaluate(program, [np.array([3.0, 2.0])], "float64")
    np.testing.assert_allclose(rates, [3.0, 1.0, -1.0, -0.75])


def test_what_does_not_move_is_a_plain_number():
    assert jet(2.0, 0.0) == 2.0 and Jet(2.0, 1.0) - Jet(3.0, 1.0) == -1.0 and Jet(2.0, 1.0) * 0.0 == 0.0


def test_jets_do_not_nest():
    with pytest.raises(TypeError, match="do not nest"):
        Jet(Jet(1.0, 2.0), 1.0)


def test_integer_powers():
    """Of jets of floats and of traced values: derivatives as by the rule, exact for every whole exponent."""
    x, dx, ddx = 1.3, 0.7, -0.4
    for n in (-3, -1, 0, 1, 2, 5):
        value, first, second = parts(Jet(x, dx, ddx) ** n)
        expected = (x**n, n * x ** (n - 1) * dx, n * x ** (n - 1) * ddx + n * (n - 1) * x ** (n - 2) * dx**2)
        np.testing.assert_allclose((value, first, second), expected, rtol=1e-14, atol=1e-15)
        program = trace(lambda y, n=n: [np.array(y[0] ** n, dtype=object)], [Array("y", (1,))], ["z"])
        np.testing.assert_allclose(numpy_reference.evaluate(program, [np.array([x])], "float64")[0], x**n, rtol=1e-14)
    with pytest.raises(TypeError):
        Jet(x, dx) ** 0.5


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_along_directions(name):
    """Duals, plain and as parts of jets, whose derivatives along the path then have slopes of their own."""
    ours, exact = FUNCTIONS[name]
    directions = ((0.5, -1.2), (0.0, 0.7))  # of x and of y, two each: (x slopes), (y slopes)

    def moved(t, s, k):
        path = (a + b * t + c * t * t / 2 for a, b, c in (X, Y))
        return exact(*(x + s * slopes[k] for x, slopes in zip(path, directions, strict=True)))

    with mpmath.workdps(40):
        value = float(moved(0, 0, 0))
        slopes = [float(mpmath.diff(lambda s, k=k: moved(0, s, k), 0)) for k in range(2)]
        mixed = [float(mpmath.diff(lambda t, s, k=k: moved(t, s, k), (0, 0), (2, 1))) for k in range(2)]
    found = ours(*(Dual(x[0], list(own)) for x, own in zip((X, Y), directions, strict=True)))
    np.testing.assert_allclose([found.value, *found.slopes], [value, *slopes], rtol=1e-13, atol=1e-13)
    jets = (Jet(Dual(x[0], list(own)), x[1], x[2]) for x, own in zip((X, Y), directions, strict=True))
    second = parts(ours(*jets))[2]
    np.testing.assert_allclose(slopes_of(second, 2), mixed, rtol=1e-9, atol=1e-9)
