"""linkwise range: ranges of motion and singular positions from the command line."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main


def test_a_slider_crank(tmp_path, run):
    """The slider goes from the difference to the sum of the lengths, and is singular for its own drive there."""
    mech = lw.mechanisms.slider_crank()
    picture = tmp_path / "range.png"
    given = (
        "range",
        "builtin:slider_crank",
        "slider_joint",
        "--q",
        "crank_joint=0.5",
        "--plot",
        str(picture),
        "--json",
    )
    found = json.loads(run(*given))
    q = lw.configuration(mech, crank_joint=0.5)
    expected = lw.linkages.range_of_motion(mech, "slider_joint", q)
    assert [end["value"] for end in found["ends"]] == pytest.approx([expected.lower, expected.upper])
    assert all(end["cause"] == "dead centre" for end in found["ends"]) and picture.stat().st_size > 1000
    assert {one["kind"] for one in found["singular_positions"]} == {"input"}
    slides = sorted(one["q"][mech.q_index("slider_joint").start] for one in found["singular_positions"])
    np.testing.assert_allclose(slides, sorted({expected.lower, expected.upper}), atol=1e-6)


def test_degrees_and_what_is_wrong(run, capsys):
    text = run("range", "builtin:four_bar", "rocker_joint", "--degrees")
    reach = lw.linkages.range_of_motion(lw.mechanisms.four_bar(), "rocker_joint")
    assert f"{math.degrees(reach.lower):.6g}" in text and "range" in text
    (singular, *_) = lw.linkages.singular_positions(lw.mechanisms.four_bar(), "rocker_joint")
    assert all(f"{x:.6g}" in text for x in np.degrees(singular.q)) and "singular positions (degrees)" in text
    assert "singular positions (rad)" in run("range", "builtin:four_bar", "rocker_joint")
    assert main(["range", "builtin:four_bar", "rocker"]) == 2
    assert "rocker" in capsys.readouterr().err


def test_commands_draw_in_the_unit_of_their_tables(run, monkeypatch):
    """Every command that has --degrees and --plot hands the one to the other."""
    drawn = []
    for name in ("plot_range", "plot_trajectory"):
        plot = getattr(lw.viewer, name)
        monkeypatch.setattr(
            lw.viewer, name, lambda *given, plot=plot, **options: drawn.append(plot(*given, **options)) or drawn[-1]
        )
    text = run("range", "builtin:four_bar", "rocker_joint", "--degrees", "--plot", "range.png")
    (axes,) = drawn[0].axes
    assert axes.get_xlabel() == "rocker_joint (deg)" and axes.get_ylabel() == "angle (deg)"
    reach = lw.linkages.range_of_motion(lw.mechanisms.four_bar(), "rocker_joint")
    low = f"{math.degrees(reach.lower):.6g}"
    assert low in text and f"rocker_joint from {low} " in axes.get_title(loc="left")
    run("simulate", "builtin:planar_arm:2", "--q", "joint1=30", "--duration", 0.1, "--degrees", "--plot", "motion.png")
    angles = drawn[1].axes[0]
    assert angles.get_ylabel() == "angle (deg)" and angles.get_lines()[0].get_ydata()[0] == pytest.approx(30.0)


def test_linear_models_show_their_state_in_degrees(run):
    text = run("linearize", "builtin:planar_arm:2", "--q", "joint1=30", "--v", "joint2=10", "--degrees")
    assert "q (degrees)" in text and "v (degrees/s)" in text
    rows = [line.split() for line in text.splitlines() if line.strip().startswith("joint")]
    assert ["joint1", "30", "0"] == rows[1][:3] and ["joint2", "0", "10"] == rows[2][:3]
