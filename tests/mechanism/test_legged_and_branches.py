"""Built-in robots on legs and branches of four-bars: assembled where they say, with the DoF that they claim."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

QUADRUPED_FEET = ("front_left", "front_right", "rear_left", "rear_right")


def opening(mech: lw.Mechanism) -> float:
    return float(np.abs(lw.constraints.position_error(mech, lw.neutral(mech))).max())


@pytest.mark.parametrize("branches, loops", [(1, 1), (1, 4), (3, 2)])
@pytest.mark.parametrize("floating", [True, False])
def test_each_four_bar_of_a_branch_has_one_degree_of_freedom(branches, loops, floating):
    mech = lw.mechanisms.four_bar_branches(branches, loops, floating)
    assert len(mech.loops) == branches * loops
    assert mech.n_links == 3 * branches * loops + floating
    assert lw.constraints.degrees_of_freedom(mech, lw.neutral(mech)) == branches * loops + 6 * floating
    assert opening(mech) < 1e-15


def test_four_bars_of_a_branch_stand_on_one_another_at_right_angles():
    mech = lw.mechanisms.four_bar_branches(1, 3)
    assert mech.bodies[mech.body_index("b1_crank2_joint")].parent == mech.body_index("b1_coupler1_joint")
    axes = [np.array(mech.bodies[mech.body_index(f"b1_crank{i}_joint")].kind.axis) for i in (1, 2, 3)]
    np.testing.assert_allclose([axes[0] @ axes[1], axes[1] @ axes[2], abs(axes[0] @ axes[2])], [0, 0, 1], atol=1e-12)


@pytest.mark.parametrize("held", [QUADRUPED_FEET, ("front_left", "rear_right"), "rear_left", ()])
def test_feet_of_the_quadruped_are_held_like_balls(held):
    mech = lw.mechanisms.quadruped(held)
    names = (held,) if isinstance(held, str) else held
    assert [loop.name for loop in mech.loops] == [f"{foot}_foot" for foot in names]
    assert mech.nv == 18
    assert lw.constraints.degrees_of_freedom(mech, lw.neutral(mech)) == 18 - 3 * len(names)
    assert opening(mech) < 1e-15 if names else mech.loops == ()
    for foot in QUADRUPED_FEET:
        assert abs(lw.frame_pose(mech, lw.neutral(mech), f"{foot}_toe")[2, 3]) < 1e-15


@pytest.mark.parametrize("held", [("left", "right"), ("right",)])
def test_feet_of_the_humanoid_are_welded(held):
    mech = lw.mechanisms.humanoid(held)
    assert mech.nv == 27
    assert lw.constraints.degrees_of_freedom(mech, lw.neutral(mech)) == 27 - 6 * len(held)
    assert opening(mech) < 1e-15
    sole = lw.frame_pose(mech, lw.neutral(mech), "left_sole")
    np.testing.assert_allclose(sole[:3, 3], (0.0, 0.1, 0.0), atol=1e-15)
    np.testing.assert_allclose(sole[:3, :3], np.eye(3), atol=1e-15)


def test_legs_of_both_sides_are_mirror_images():
    """Standing, the mass centre is in the middle, above the feet."""
    for mech in (lw.mechanisms.quadruped(), lw.mechanisms.humanoid()):
        centre = lw.center_of_mass(mech, lw.neutral(mech))
        assert abs(centre[1]) < 1e-15
        assert 0.2 < centre[2] < 1.0


def test_what_is_not_there_is_named():
    with pytest.raises(lw.MechanismError, match="no foot 'front_lef': did you mean 'front_left'"):
        lw.mechanisms.quadruped(["front_lef"])
    with pytest.raises(lw.MechanismError, match="branches must be a whole number, at least 1, not 0"):
        lw.mechanisms.four_bar_branches(0)
    with pytest.raises(lw.MechanismError, match="loops must be a whole number, at least 1, not 1.5"):
        lw.mechanisms.four_bar_branches(1, 1.5)
    with pytest.raises(lw.MechanismError, match="floating must be True or False, not 'no'"):
        lw.mechanisms.four_bar_branches(1, 1, "no")
