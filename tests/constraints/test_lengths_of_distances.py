"""Lengths of rods without mass: parameters of kernels, symbols of formulas, numbers in which variants differ."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

CRANK, ROCKER, BASE = 0.3, 0.7, 1.0


def four_bar(rod: float) -> lw.Mechanism:
    axis, inertia = lw.Revolute((0, 0, 1)), (1e-3,) * 3
    builder = lw.Builder().link("crank", 1.0, (0.15, 0, 0), inertia).link("rocker", 1.0, (0.35, 0, 0), inertia)
    builder.joint("A", axis, "ground", "crank").joint("D", axis, "ground", "rocker", (None, (BASE, 0, 0)))
    builder.distance("rod", "crank", (CRANK, 0, 0), "rocker", (ROCKER, 0, 0), rod)
    return builder.build("four_bar", (0, -9.81, 0))


@pytest.fixture(scope="module")
def mech() -> lw.Mechanism:
    return four_bar(0.9)


def state(mech: lw.Mechanism) -> tuple[np.ndarray, np.ndarray]:
    q = lw.constraints.assemble(mech, {"A": 1.0, "D": 1.6}, hold="A")
    return q, lw.linkages.driven_motion(mech, q, {"A": 3.0}).v


def test_it_is_a_parameter_of_kernels(mech: lw.Mechanism):
    q = np.array([1.0, 1.7])
    gap = lw.compile("position_error", mech, parameters=("rod.length",), target="numpy")
    ends = [CRANK * np.array([np.cos(q[0]), np.sin(q[0])]), [BASE, 0] + ROCKER * np.array([np.cos(q[1]), np.sin(q[1])])]
    apart = np.linalg.norm(np.subtract(*ends))
    for length in (0.8, 0.95):
        np.testing.assert_allclose(gap(q, length), [apart - length], atol=1e-14)
    np.testing.assert_allclose(lw.jacobian_of(gap, wrt=("rod.length",))(q, 0.8), [[-1.0]])
    with pytest.raises(lw.MechanismError, match="has no loop 'bar'"):
        lw.compile("position_error", mech, parameters=("bar.length",))
    with pytest.raises(lw.MechanismError, match="only distances have a length"):
        lw.compile("position_error", lw.mechanisms.four_bar(), parameters=("pin.length",))


def test_it_is_a_symbol_of_formulas(mech: lw.Mechanism):
    formulas = lw.codegen.symbolic(mech, "position_error")
    assert "d1" in formulas.symbols and formulas.values["d1"] == 0.9


def test_variants_are_those_that_are_built_so(mech: lw.Mechanism):
    for length in (0.85, 0.95, 0.97):
        other, built = mech.constraints.with_distances({"rod": length}), four_bar(length)
        q, v = state(built)
        assert np.abs(lw.constraints.position_error(other, q)).max() < 1e-12
        found = lw.forward_dynamics(other, q, v, None)
        np.testing.assert_allclose(found, lw.forward_dynamics(built, q, v, None), rtol=1e-9)
        assert other.loops[0].kind.length == length and other == built
    found = lw.linkages.range_of_motion(mech.constraints.with_distances({"rod": 0.75}), "A", state(four_bar(0.75))[0])
    assert found.upper == pytest.approx(
        lw.linkages.range_of_motion(four_bar(0.75), "A", state(four_bar(0.75))[0]).upper
    )
    with pytest.raises(lw.MechanismError, match="has no distance 'bar'"):
        mech.constraints.with_distances({"bar": 1.0})
    with pytest.raises((lw.MechanismError, ValueError), match="positive"):
        mech.constraints.with_distances({"rod": -1.0})
