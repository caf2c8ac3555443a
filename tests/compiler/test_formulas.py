"""The algebra behind formulas: normal forms, sums of angles, brackets, numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from linkwise.compiler.formulas import Algebra, FormulaError, Polynomial
from linkwise.compiler.formulas.arrange import arranged
from linkwise.compiler.formulas.collect import collected
from linkwise.compiler.formulas.expand import expand_angle, inverse
from linkwise.compiler.formulas.writing import Latex, Text


@pytest.fixture
def algebra() -> Algebra:
    return Algebra()


def angles(algebra: Algebra, *names: str) -> list[tuple[Polynomial, Polynomial]]:
    """Sine and cosine of each."""
    symbols = [algebra.symbol(name, kind="coordinate") for name in names]
    return [(expand_angle("sin", q), expand_angle("cos", q)) for q in symbols]


def text(value: Polynomial) -> str:
    return Text(value.algebra, {}).sum(arranged(collected(value)))


def number(value: Polynomial, numbers: dict[str, float]) -> float:
    return eval(text(value), {"sin": math.sin, "cos": math.cos}, numbers | sums_of(numbers))


def sums_of(numbers: dict[str, float]) -> dict[str, float]:
    """c1, s12, ... of all coordinates q1, q2, q3."""
    found = {}
    for some in ("1", "2", "3", "12", "13", "23", "123"):
        angle = sum(numbers[f"q{k}"] for k in some)
        found |= {f"s{some}": math.sin(angle), f"c{some}": math.cos(angle)}
    return found


def test_squares_of_sines_and_cosines_cancel(algebra):
    ((s, c),) = angles(algebra, "q1")
    assert text(s * s + c * c) == "1"
    assert not (s * s * s - s + s * c * c).terms
    assert text(s * s * 3.0) == "3*s1**2"


def test_sums_of_angles_are_collected(algebra):
    (s1, c1), (s2, c2), (s3, c3) = angles(algebra, "q1", "q2", "q3")
    assert text(c1 * c2 - s1 * s2) == "c12"
    assert text(s1 * c2 - c1 * s2) == "sin(q1 - q2)"
    assert text((c1 * c2 - s1 * s2) * c3 - (s1 * c2 + c1 * s2) * s3) == "c123"
    m, length = algebra.symbol("m1", kind="mass"), algebra.symbol("l1", kind="length")
    assert text((c1 * c2 - s1 * s2) * m * length + c1 * m) == "m1*(c1 + l1*c12)"
    assert text(c1 * c2 - s1 * s2 * 0.5) == "-s1*s2/2 + c1*c2"  # two terms stay two


def test_what_is_written_is_what_was_meant(algebra):
    """Random sums of products of sines, cosines and symbols, before and after all that makes them readable."""
    rng = np.random.default_rng(0)
    pairs = angles(algebra, "q1", "q2", "q3")
    symbols = [
        algebra.symbol(n, kind=k) for n, k in (("m1", "mass"), ("l1", "length"), ("v1", "velocity"), ("v2", "velocity"))
    ]
    symbols += [symbols[1] + symbols[1] * symbols[1], symbols[2] + symbols[3], symbols[2] - symbols[3]]
    atoms = [x for pair in pairs for x in pair] + symbols
    numbers = dict(zip(("q1", "q2", "q3", "m1", "l1", "v1", "v2"), rng.uniform(0.5, 2.0, 7).tolist(), strict=True))
    values = [f(numbers[f"q{k}"]) for k in (1, 2, 3) for f in (math.sin, math.cos)] + [
        numbers[n] for n in ("m1", "l1", "v1", "v2")
    ]
    values += [values[7] + values[7] ** 2, values[8] + values[9], values[8] - values[9]]
    for _ in range(60):
        total, expected = algebra.constant(0.0), 0.0
        for _ in range(rng.integers(1, 12)):
            coefficient = float(rng.choice([1.0, -1.0, 0.5, 2.0, 0.3]))
            chosen = rng.integers(0, len(atoms), rng.integers(0, 5))
            term = algebra.constant(coefficient)
            for k in chosen:
                term = term * atoms[k]
            total = total + term
            expected += coefficient * math.prod(values[k] for k in chosen)
        assert number(total, numbers) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_squares_of_sums_of_velocities_are_written_as_such(algebra):
    v1, v2, m = (algebra.symbol(n, kind=k) for n, k in (("v1", "velocity"), ("v2", "velocity"), ("m1", "mass")))
    whole = m * (v1 * v1 + v1 * v2 * 2.0 + v2 * v2)
    assert text(whole) == "m1*(v1 + v2)**2"
    assert Latex(algebra, {}).sum(arranged(whole)) == r"m_{1} \left(v_{1} + v_{2}\right)^{2}"


def test_sums_that_count_as_a_whole_are_written_as_such(algebra):
    names = {"l1": "length", "q2": "coordinate", "r2": "length", "v1": "velocity", "v2": "velocity", "g": "gravity"}
    l1, q2, r2, v1, v2, g = (algebra.symbol(name, kind=kind) for name, kind in names.items())
    reach = l1 + q2 + r2
    assert text(reach * reach) == "(l1 + q2 + r2)**2"
    assert text(reach * v1 * v1 - g) == "v1**2*(l1 + q2 + r2) - g"
    assert text(reach * (v1 + v2) * 2.0) == "2*(l1 + q2 + r2)*(v1 + v2)"
    assert text((l1 - q2) * (l1 - q2)) == "(l1 - q2)**2"
    assert text(reach + v1) == "l1 + q2 + r2 + v1"  # no brackets around terms
    assert text(l1 * l1 + l1 * q2 + q2 * q2) == "l1**2 + l1*q2 + q2**2"  # which is no square
    assert text(r2 * r2 * (v1 + v2) * (v1 + v2) + l1 * v1) == "r2**2*(v1 + v2)**2 + l1*v1"
    assert Latex(algebra, {}).sum(arranged(reach * reach)) == r"\left(l_{1} + q_{2} + r_{2}\right)^{2}"


def test_small_numbers_count(algebra):
    """Numbers of very different sizes are all there; only what cancels goes."""
    x, y = algebra.symbol("x"), algebra.symbol("y")
    assert text(x * 1e9 + y * 1e-9) == "1000000000*x + 1e-09*y"
    assert text(x * 0.1 + x * 0.2 - x * 0.3 + y) == "y"


def test_divisions_have_names(algebra):
    x, y = algebra.symbol("x"), algebra.symbol("y")
    assert text(x * inverse(y)) == "x/y"
    assert text(x * inverse((x + y) * 2.0) + inverse(x + y)) == "(2 + x)/(2*D1)"
    with pytest.raises(FormulaError, match="divides by zero"):
        inverse(x - x)
    with pytest.raises(FormulaError, match="no sum of multiples of coordinates"):
        expand_angle("sin", x * y)


def test_multiples_of_angles_that_are_not_whole(algebra):
    """As joints have that mimic others by a ratio."""
    x, y = algebra.symbol("x"), algebra.symbol("y")
    assert text(expand_angle("sin", x * -0.5)) == "-sin(0.5*x)"
    assert text(expand_angle("cos", x * 0.25 + y)) == "cos(0.25*x + y)"
    assert text(expand_angle("cos", x * 0.1 + y).substituted({}) - expand_angle("cos", y + x * 0.1)) == "0"
