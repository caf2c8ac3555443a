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
    expected = lw.closed.range_of_motion(mech, "slider_joint", q)
    assert [end["value"] for end in found["ends"]] == pytest.approx([expected.lower, expected.upper])
    assert all(end["cause"] == "dead centre" for end in found["ends"]) and picture.stat().st_size > 1000
    assert {one["kind"] for one in found["singular_positions"]} == {"input"}
    slides = sorted(one["q"][mech.q_index("slider_joint").start] for one in found["singular_positions"])
    np.testing.assert_allclose(slides, sorted({expected.lower, expected.upper}), atol=1e-6)


def test_degrees_and_what_is_wrong(run, capsys):
    text = run("range", "builtin:four_bar", "rocker_joint", "--degrees")
    reach = lw.closed.range_of_motion(lw.mechanisms.four_bar(), "rocker_joint")
    assert f"{math.degrees(reach.lower):.6g}" in text and "range" in text
    (singular, *_) = lw.closed.singular_positions(lw.mechanisms.four_bar(), "rocker_joint")
    assert all(f"{x:.6g}" in text for x in np.degrees(singular.q)) and "singular positions (degrees)" in text
    assert "singular positions (rad)" in run("range", "builtin:four_bar", "rocker_joint")
    assert main(["range", "builtin:four_bar", "rocker"]) == 2
    assert "rocker" in capsys.readouterr().err
