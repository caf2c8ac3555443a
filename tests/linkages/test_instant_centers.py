"""Instant centres against intersections of lines, and the theorem of Aronhold and Kennedy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import linkwise as lw

from ..constraints.built_in import built

POINTS = {"A": (0.0, 0.0), "B": (0.05, 0.08), "C": (0.35, 0.3), "D": (0.4, 0.0), "E": (0.48, 0.22)}
POINTS |= {"F": (0.8, 0.3), "G": (0.75, 0.0)}
LINKS = {"ground": "ADG", "crank": "AB", "coupler": "BC", "rocker": "DCE", "link": "EF", "output": "GF"}


@pytest.fixture(scope="module")
def watt() -> lw.Mechanism:
    return lw.Builder().linkage(POINTS, LINKS).build("watt")


def crossing(a, b, c, d) -> np.ndarray:
    """(2,): where the lines a b and c d meet."""
    a, b, c, d = (np.array(POINTS[name]) for name in (a, b, c, d))
    share = np.linalg.solve(np.stack([b - a, c - d], axis=1), c - a)[0]
    return a + share * (b - a)


def test_a_four_bar_within_a_six_bar(watt: lw.Mechanism):
    found = lw.linkages.instant_centers(watt)
    np.testing.assert_allclose(found.between("coupler")[:2], crossing("A", "B", "D", "C"), atol=1e-12)
    np.testing.assert_allclose(found.between("crank", "rocker")[:2], crossing("A", "D", "B", "C"), atol=1e-12)
    np.testing.assert_allclose(found.between("link")[:2], crossing("D", "E", "G", "F"), atol=1e-12)
    for point, pair in {"A": ("crank", "ground"), "C": ("coupler", "rocker"), "F": ("output", "link")}.items():
        np.testing.assert_allclose(found.between(*pair)[:2], POINTS[point], atol=1e-12)


def test_poles_of_three_links_are_on_a_line(watt: lw.Mechanism):
    turn = lw.linkages.follow_path(watt, lw.neutral(watt), {"A": np.linspace(0.1, 6.0, 4)})
    found = lw.linkages.instant_centers(watt, turn)
    assert found.centers.shape == (4, 6, 6, 3)
    for i, j, k in itertools.combinations(range(6), 3):
        a, b, c = found.centers[:, i, j], found.centers[:, j, k], found.centers[:, i, k]
        doubled_area = np.cross(b - a, c - a)[:, 2]
        size = np.linalg.norm(b - a, axis=-1) * np.linalg.norm(c - a, axis=-1) + 1e-6
        np.testing.assert_allclose(doubled_area / size, 0.0, atol=1e-6)


def test_sliders_rotate_about_infinity():
    mech = built("slider_crank")
    found = lw.linkages.instant_centers(mech, {"crank_joint": 0.7})
    assert np.isinf(found.between("slider")).all() and np.isnan(found.centers[0, 0]).all()
    # That of the rod is above the slider, on the line of the crank.
    pin, slider = (lw.frame_pose(mech, found.q, name)[:3, 3] for name in ("rod", "slider"))
    x, y, _ = found.between("rod")
    assert x == pytest.approx(slider[0]) and x * pin[1] == pytest.approx(y * pin[0])


def test_more_degrees_of_freedom_need_velocities():
    five_bar = built("five_bar")
    q = lw.constraints.assemble(five_bar, [2.1, 1.9, 1.5, 1.9])
    with pytest.raises(lw.MechanismError, match="has 2 degrees of freedom, and poles depend on how it moves: hold"):
        lw.linkages.instant_centers(five_bar, q)
    held = lw.linkages.instant_centers(five_bar, q, hold="joint4")
    v = lw.linkages.driven_motion(five_bar, q, {"joint1": 2.0, "joint4": 0.0}).v
    np.testing.assert_allclose(lw.linkages.instant_centers(five_bar, q, v).centers, held.centers, atol=1e-12)
    with pytest.raises(lw.MechanismError, match="there is no link 'joint1': known: 'ground', 'link1'"):
        held.between("joint1")


def test_mechanisms_in_space_have_none():
    with pytest.raises(lw.MechanismError, match="moves in space, where links have no instant centres but screw axes"):
        lw.linkages.instant_centers(lw.mechanisms.bricard())


def test_their_picture_has_their_numbers(watt: lw.Mechanism, tmp_path):
    pytest.importorskip("matplotlib")
    figure = lw.viewer.plot_instant_centers(watt, path=tmp_path / "poles.png")
    words = {text.get_text() for text in figure.axes[0].texts}
    assert {"12", "34"} <= words and (tmp_path / "poles.png").stat().st_size > 10_000
    assert any(text.get_text().startswith("1  ground\n2  crank") for text in figure.texts)
