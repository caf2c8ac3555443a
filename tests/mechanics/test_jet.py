"""Jets against the Taylor coefficients that mpmath finds, plain and traced."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from linkwise.compiler.ir.program import Array
from linkwise.compiler.targets import numpy_reference
from linkwise.compiler.trace import trace
from linkwise.mechanics import scalar
from linkwise.mechanics.jet import Jet, jet, parts

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
