"""Pictures of ranges and workspaces show the numbers of their results."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.constraints.parallel_robots import two_arms, two_arms_at

pytest.importorskip("matplotlib")


def words(legend) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def test_a_range_is_drawn_with_its_ends_and_singular_positions(tmp_path):
    mech = lw.mechanisms.slider_crank()
    found = lw.linkages.range_of_motion(mech, "slider_joint")
    singular = lw.linkages.singular_positions(mech, "slider_joint")
    figure = lw.viewer.plot_range(found, singular, path=tmp_path / "range.png")
    assert (tmp_path / "range.png").stat().st_size > 10_000
    (ax,) = figure.axes  # angles; the only distance is what they are drawn over
    assert ax.get_xlabel() == "slider_joint (m)" and ax.get_ylabel() == "angle (rad)"
    assert words(ax.get_legend()) == ["crank_joint", "rod_joint", "input singularity"]
    ends = [
        line.get_xdata()[0] for line in ax.get_lines() if line.get_linestyle() == "--" and len(line.get_xdata()) == 2
    ]
    np.testing.assert_allclose(ends, [found.lower, found.upper])
    marks = ax.collections[0].get_offsets()
    np.testing.assert_allclose(np.sort(marks[:, 0]), [found.lower, found.upper])
    np.testing.assert_allclose(np.cos(marks[:, 1]), 0.0, atol=1e-9)


def test_positions_of_another_round_are_drawn_on_the_curve():
    mech = lw.mechanisms.slider_crank()
    found = lw.linkages.range_of_motion(mech, "crank_joint")
    singular = lw.linkages.singular_positions(mech, "slider_joint")  # found while the crank turns the other way
    angles, distances = lw.viewer.plot_range(found, singular, joints=["rod_joint", "slider_joint"]).axes
    assert "nothing stops crank_joint" in angles.get_title(loc="left")
    assert distances.get_ylabel() == "length (m)"
    low, high = sorted((found.values[0], found.values[-1]))
    for mark in distances.collections:
        assert np.all((mark.get_offsets()[:, 0] > low - 1e-9) & (mark.get_offsets()[:, 0] < high + 1e-9))


def test_a_workspace_is_drawn_with_its_curves(tmp_path):
    mech, start = two_arms(), two_arms_at(np.array([0.4, 1.2]))
    inputs = ("left_joint", "right_joint")
    found = lw.linkages.workspace(
        mech, ("tip.x", "tip.y"), ((-1.2, 2.0), (-1.9, 1.9)), q=start, inputs=inputs, points=25
    )
    for shade, axes in ((None, 1), ("input", 2), ("constraint", 2)):
        figure = lw.viewer.plot_workspace(found, path=tmp_path / f"{shade}.png", shade=shade)
        assert len(figure.axes) == axes  # with a bar of colours
        ax = figure.axes[0]
        assert len(ax.get_lines()) == len(found.curves)
        for line, curve in zip(ax.get_lines(), found.curves, strict=True):
            np.testing.assert_allclose(line.get_xydata()[: len(curve.points)], curve.points)
        assert words(figure.legends[0]) == ["boundary", "input singularity"]
        assert ax.get_xlabel() == "tip.x (m)" and ax.get_aspect() == 1.0
    with pytest.raises(ValueError, match="no measure 'output': available: input, constraint"):
        lw.viewer.plot_workspace(found, shade="output")


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="a RangeOfMotion is needed, got Mechanism: make one with"):
        lw.viewer.plot_range(lw.mechanisms.four_bar())
    with pytest.raises(TypeError, match="a Workspace is needed, got dict: make one with"):
        lw.viewer.plot_workspace({})
    four_bar = lw.mechanisms.four_bar()
    with pytest.raises(ValueError, match="nothing to plot over 'rocker_joint'"):
        lw.viewer.plot_range(lw.linkages.range_of_motion(four_bar, "rocker_joint"), joints=[])


def drawn(ax) -> list[np.ndarray]:
    """Points (n, 2) of all curves and markers."""
    return [line.get_xydata() for line in ax.get_lines()] + [np.asarray(x.get_offsets()) for x in ax.collections]


@pytest.mark.parametrize("coordinate", ["crank_joint", "slider_joint", "rod.x", "rod.yaw"])
def test_ranges_in_degrees_are_those_in_radians_times_a_factor(coordinate):
    mech = lw.mechanisms.slider_crank()
    found, singular = (
        lw.linkages.range_of_motion(mech, coordinate),
        lw.linkages.singular_positions(mech, "slider_joint"),
    )
    radians, degrees = (lw.viewer.plot_range(found, singular, degrees=wanted) for wanted in (False, True))
    below = radians.axes[-1].get_xlabel()  # the panels above share it
    assert degrees.axes[-1].get_xlabel() == below.replace("(rad)", "(deg)")
    for before, after in zip(radians.axes, degrees.axes, strict=True):
        assert after.get_ylabel() == before.get_ylabel().replace("(rad)", "(deg)")
        scale = [180.0 / np.pi if label.endswith("(rad)") else 1.0 for label in (below, before.get_ylabel())]
        for points, same in zip(drawn(before), drawn(after), strict=True):
            ends = points.tolist() == [[points[0, 0], 0.0], [points[0, 0], 1.0]]  # upright lines, bottom to top
            np.testing.assert_allclose(same, points * ([scale[0], 1.0] if ends else scale))
    if np.isfinite(found.lower):
        assert f"{scale[0] * found.lower:.6g}" in degrees.axes[0].get_title(loc="left")


def test_workspaces_in_degrees_are_those_in_radians_times_a_factor():
    mech, start = two_arms(), two_arms_at(np.array([0.4, 1.2]))
    found = lw.linkages.workspace(mech, ("left_joint", "tip.y"), ((0.0, 2.0), (-1.9, 1.9)), q=start, points=9)
    before, after = (lw.viewer.plot_workspace(found, degrees=wanted).axes[0] for wanted in (False, True))
    assert (after.get_xlabel(), after.get_ylabel()) == ("left_joint (deg)", "tip.y (m)")
    np.testing.assert_allclose(after.get_xlim(), np.degrees(before.get_xlim()))
    for line, same in zip(before.get_lines(), after.get_lines(), strict=True):
        np.testing.assert_allclose(same.get_xydata(), line.get_xydata() * [180.0 / np.pi, 1.0])
    np.testing.assert_allclose(
        after.collections[0].get_coordinates()[..., 0], np.degrees(before.collections[0].get_coordinates()[..., 0])
    )
