"""Ranges, singular positions and workspaces in kilometres, metres, millimetres and micrometres: the same mechanism,
against the triangles it is made of."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw

FACTORS = (1e-3, 1.0, 1e3, 1e6)  # lengths are metres times these
CRANK, ROD, OFFSET = 0.05, 0.2, 0.01
INERTIA = np.full(3, 1e-3)


@pytest.fixture(autouse=True)
def nothing_is_left_unknown():
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.MechanismWarning)
        yield


def slider_crank(unit: float) -> tuple[lw.Mechanism, np.ndarray]:
    builder = lw.Builder()
    for name, length in (("crank", CRANK), ("rod", ROD), ("piston", 0.0)):
        builder.link(name, 1.0, (0.5 * length * unit, 0, 0), INERTIA * unit**2)
    builder.joint("crank", lw.Revolute(), "ground", "crank")
    builder.joint("wrist", lw.Revolute(), "crank", "rod", (CRANK * unit, 0, 0))
    builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "piston", (0, OFFSET * unit, 0))
    mech = builder.loop("pin", lw.Revolute(), "rod", (ROD * unit, 0, 0), "piston").build("slider_crank")
    return mech, lw.constraints.assemble(mech, [1.0, -1.0, 0.2 * unit], hold="crank")


def lift(unit: float) -> tuple[lw.Mechanism, np.ndarray]:
    """An arm of 0.4 that a ram lifts, whose foot is 0.3 below the hinge."""
    builder = lw.Builder()
    for name in ("arm", "cylinder", "rod"):
        builder.link(name, 1.0, (0.1 * unit, 0, 0), INERTIA * unit**2)
    builder.joint("hinge", lw.Revolute(), "ground", "arm")
    builder.joint("foot", lw.Revolute(), "ground", "cylinder", (0, -0.3 * unit, 0))
    builder.joint("ram", lw.Prismatic((1, 0, 0)), "cylinder", "rod", limits=lw.Limits(0.2 * unit, 0.6 * unit))
    mech = builder.loop("eye", lw.Revolute(), "arm", (0.4 * unit, 0, 0), "rod").build("lift")
    return mech, lw.constraints.assemble(mech, [0.0, 0.6, 0.5 * unit], hold="hinge")


def two_rams(unit: float) -> tuple[lw.Mechanism, np.ndarray]:
    """Two rams, their feet 1 apart, that hold a point."""
    builder = lw.Builder()
    for side, foot in (("left", -0.5), ("right", 0.5)):
        for part in ("cylinder", "rod"):
            builder.link(f"{side}_{part}", 1.0, (0, 0, 0), INERTIA * unit**2)
        builder.joint(f"{side}_foot", lw.Revolute(), "ground", f"{side}_cylinder", (foot * unit, 0, 0))
        limits = lw.Limits(0.2 * unit, 0.6 * unit) if side == "right" else None
        builder.joint(
            f"{side}_ram", lw.Prismatic((1, 0, 0)), f"{side}_cylinder", f"{side}_rod", limits=limits or lw.Limits()
        )
    mech = builder.loop("pin", lw.Revolute(), "left_rod", None, "right_rod").build("two_rams")
    return mech, lw.constraints.assemble(mech, [0.4, 0.8 * unit, 2.4, 0.5 * unit])


def four_bar(unit: float) -> tuple[lw.Mechanism, np.ndarray]:
    mech = lw.mechanisms.four_bar(0.8 * unit, 0.7 * unit, 0.6 * unit, 1.0 * unit)
    return mech, lw.constraints.assemble(mech, np.zeros(mech.nq))


def described(found: lw.linkages.RangeOfMotion) -> list[str]:
    return [end.cause + end.joint for end in (*found.ends, *found.driven, *found.dead_centres)]


@pytest.mark.parametrize("unit", FACTORS)
def test_slider_cranks(unit):
    mech, q = slider_crank(unit)
    stroke = [np.sqrt((ROD - CRANK) ** 2 - OFFSET**2), np.sqrt((ROD + CRANK) ** 2 - OFFSET**2)]
    slide = lw.linkages.range_of_motion(mech, "slide", q)
    np.testing.assert_allclose([slide.lower / unit, slide.upper / unit], stroke, rtol=1e-12)
    assert described(slide) == ["dead centre"] * 6
    assert "driven" not in repr(slide)
    crank = lw.linkages.range_of_motion(mech, "crank", q)
    assert described(crank) == ["full rotation"] * 4
    across = lw.linkages.range_of_motion(mech, "rod.y", q)
    np.testing.assert_allclose([across.lower / unit, across.upper / unit], [-CRANK, CRANK], rtol=1e-12)
    singular = lw.linkages.singular_positions(mech, "slide", q, outputs="crank")
    assert [one.kind for one in singular] == ["input", "input"]
    np.testing.assert_allclose(sorted(one.q[2] / unit for one in singular), stroke, rtol=1e-9)
    for one in singular:  # crank and rod turn, the slide stands still
        np.testing.assert_allclose(np.linalg.norm(one.motions, axis=0), 1.0, rtol=1e-12)
        np.testing.assert_allclose(one.motions[2] / unit, 0.0, atol=1e-8)


@pytest.mark.parametrize("unit", FACTORS)
def test_lifts(unit):
    mech, q = lift(unit)
    ram = lw.linkages.range_of_motion(mech, "ram", q)
    np.testing.assert_allclose([ram.lower / unit, ram.upper / unit], [0.1, 0.7], rtol=1e-12)
    assert described(ram) == ["dead centre"] * 6
    hinge = lw.linkages.range_of_motion(mech, "hinge", q, limits=True)
    lengths = np.array([0.2, 0.6])
    expected = np.arcsin((lengths**2 - 0.4**2 - 0.3**2) / (2.0 * 0.4 * 0.3))
    np.testing.assert_allclose([hinge.lower, hinge.upper], expected, rtol=1e-12)
    assert described(hinge) == ["joint limitram"] * 4
    singular = lw.linkages.singular_positions(mech, "ram", q)
    assert [one.kind for one in singular] == ["input", "input"]
    np.testing.assert_allclose(sorted(one.q[2] / unit for one in singular), [0.1, 0.7], rtol=1e-9)


@pytest.mark.parametrize("unit", FACTORS)
def test_four_bars(unit):
    mech, q = four_bar(unit)
    crank = lw.linkages.range_of_motion(mech, "crank_joint", q)
    cosine = (0.8**2 + 1.0**2 - (0.7 + 0.6) ** 2) / (2 * 0.8 * 1.0)
    assert abs(crank.upper - (np.arccos(cosine) - np.pi / 2)) < 1e-12
    assert described(crank) == ["dead centre"] * 6
    pin = lw.linkages.range_of_motion(mech, "coupler.x", q)  # on the tip of the crank
    np.testing.assert_allclose([pin.lower / unit, pin.upper / unit], [0.8 * cosine, 0.8], atol=1e-12)
    singular = lw.linkages.singular_positions(mech, "crank_joint", q, outputs="rocker_joint")
    assert [one.kind for one in singular] == ["input", "output", "input", "output"]


@pytest.mark.parametrize("unit", FACTORS)
def test_several_degrees_of_freedom(unit):
    mech, q = two_rams(unit)
    left = lw.linkages.range_of_motion(mech, "left_ram", q, limits=True)
    np.testing.assert_allclose([left.lower / unit, left.upper / unit], [0.4, 1.6], rtol=1e-9)
    assert [(end.cause, end.joint) for end in left.ends] == [("joint limit", "right_ram")] * 2


@pytest.mark.parametrize("unit", FACTORS)
def test_workspaces(unit):
    mech, q = two_rams(unit)
    rams = ("left_ram", "right_ram")
    found = lw.linkages.workspace(mech, rams, np.array([[0.17, 1.51], [0.11, 1.53]]) * unit, q, points=12)
    left, right = np.meshgrid(found.first / unit, found.second / unit, indexing="ij")
    np.testing.assert_array_equal(found.is_reached, (np.abs(left - right) < 1.0) & (left + right > 1.0))
    (left, right) = np.concatenate([curve.points for curve in found.curves_of("boundary")]).T / unit
    gaps = np.minimum(np.abs(np.abs(left - right) - 1.0), np.abs(left + right - 1.0))
    assert len(gaps) > 10
    np.testing.assert_allclose(gaps, 0.0, atol=1e-9)


@pytest.mark.parametrize("unit", FACTORS)
def test_a_slide_alone_ends_at_its_limits(unit):
    builder = lw.Builder().link("cart", 1.0, (0, 0, 0), INERTIA * unit**2)
    builder.joint("track", lw.Prismatic((1, 0, 0)), "ground", "cart", limits=lw.Limits(-0.3 * unit, 0.5 * unit))
    found = lw.linkages.range_of_motion(builder.build("cart"), "track", limits=True)
    np.testing.assert_allclose([found.lower / unit, found.upper / unit], [-0.3, 0.5], rtol=1e-12)
    assert described(found) == ["joint limittrack"] * 4


@pytest.mark.parametrize("unit", FACTORS)
def test_what_is_open_is_said_by_the_size_of_loops(unit):
    """A hundredth of the crank is a mistake, a millionth is none, whatever the unit."""
    mech, q = slider_crank(unit)
    still, slide = np.zeros(mech.nv), mech.q_index("slide")
    for part, is_open in ((1e-2, True), (1e-6, False)):
        apart = q.copy()
        apart[slide] += part * ROD * unit
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", lw.MechanismWarning)
            assert lw.constraints.degrees_of_freedom(mech, apart) in (0, 1)
            lw.forward_dynamics(mech, apart, still, still)
            lw.joint_wrenches(mech, apart, still, tau=still)
        assert ["loop 'pin' of" in str(one.message) for one in told] == [True] * 3 * is_open
        if is_open:
            with pytest.raises(lw.constraints.AssemblyError, match="is open by .* at the start"):
                lw.linkages.follow(mech, apart, {"crank": 1.1})
            with pytest.raises(lw.constraints.AssemblyError, match="rollout: loop 'pin'"):
                lw.rollout(mech, apart, None, None, 1e-3, 1)
            with pytest.raises(lw.MechanismError, match="before linearizing"):
                lw.linearize(mech, apart)
        else:
            lw.linkages.follow(mech, apart, {"crank": 1.1})
            lw.rollout(mech, apart, None, None, 1e-3, 1)
