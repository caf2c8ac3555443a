"""Pictures of ranges and workspaces show the numbers of their results."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.dynamics.closed.parallel_robots import two_arms, two_arms_at

pytest.importorskip("matplotlib")


def words(legend) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def test_a_range_is_drawn_with_its_ends_and_singular_positions(tmp_path):
    mech = lw.mechanisms.slider_crank()
    found = lw.closed.range_of_motion(mech, "slider_joint")
    singular = lw.closed.singular_positions(mech, "slider_joint")
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
    found = lw.closed.range_of_motion(mech, "crank_joint")
    singular = lw.closed.singular_positions(mech, "slider_joint")  # found while the crank turns the other way
    angles, distances = lw.viewer.plot_range(found, singular, joints=["rod_joint", "slider_joint"]).axes
    assert "nothing stops crank_joint" in angles.get_title(loc="left")
    assert distances.get_ylabel() == "length (m)"
    low, high = sorted((found.values[0], found.values[-1]))
    for mark in distances.collections:
        assert np.all((mark.get_offsets()[:, 0] > low - 1e-9) & (mark.get_offsets()[:, 0] < high + 1e-9))


def test_a_workspace_is_drawn_with_its_curves(tmp_path):
    mech, start = two_arms(), two_arms_at(np.array([0.4, 1.2]))
    inputs = ("left_joint", "right_joint")
    found = lw.closed.workspace(mech, ("tip.x", "tip.y"), ((-1.2, 2.0), (-1.9, 1.9)), q=start, inputs=inputs, points=25)
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
        lw.viewer.plot_range(lw.closed.range_of_motion(four_bar, "rocker_joint"), joints=[])
