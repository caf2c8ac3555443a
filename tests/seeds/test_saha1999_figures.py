"""saha1999, Section 6: the two arms, their trajectories (38), (39), and what the text says of Figures 5, 6, 8 and 9."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid

import linkwise as lw
from papers import saha1999
from tests.seeds.saha1999 import Arm
from tests.seeds.test_saha1999_algorithms import recursive_inverse_dynamics
from tests.seeds.tip_to_base import close, differ, results

T, G = saha1999.DURATION, 9.81


def paper(*ids, by):
    return results("saha1999", *ids, by=by)


@pytest.fixture(scope="module")
def planar_fall():
    return saha1999.planar_fall()


@pytest.fixture(scope="module")
def stanford_fall():
    return saha1999.stanford_fall()


# -- trajectories -------------------------------------------------------------------------------------


def printed_cycloid(t):
    """(38), (39a), (39b) as printed."""
    return 0.5 * (2 * np.pi / T * t - np.sin(2 * np.pi / T * t))


@paper("38", by="library")
def test_the_planar_arm_moves_along_the_printed_cycloid():
    """(38) has no end values but those it leads to: 180 degrees of each joint, at rest at both ends."""
    found = saha1999.planar_torques()
    close(found.q, np.tile(printed_cycloid(found.t)[:, None], 3))
    close(found.q[-1], np.full(3, np.pi))
    close([found.v[0], found.v[-1], found.a[0], found.a[-1]], np.zeros((4, 3)))
    close(np.gradient(found.q, found.t, axis=0)[1:-1], found.v[1:-1], 1e-4)
    close(np.gradient(found.v, found.t, axis=0)[1:-1], found.a[1:-1], 1e-4)


@paper("39a", "39b", by="library")
def test_cycloids_lead_to_the_end_values_of_the_text():
    """The 60 degrees and 0.1 m below (39) are of its joints; as printed, both formulas end at pi."""
    t = np.linspace(0.0, T, 2001)
    q, v, a = saha1999.cycloid(saha1999.STANFORD_START, saha1999.STANFORD_END, T, t)
    close(q[0], np.radians([0, 90, 0, 0, 0, 0]))
    close(np.degrees(np.delete(q[-1], 2)), [60] * 5)  # (39a)
    close(q[-1, 2], 0.1)  # (39b)
    close([v[0], v[-1], a[0], a[-1]], np.zeros((4, 6)))  # a "normal" trajectory begins and ends at rest
    close(np.gradient(q, t, axis=0)[1:-1], v[1:-1], 1e-5)
    close(np.gradient(v, t, axis=0)[1:-1], a[1:-1], 1e-5)
    close(np.delete(q, [1, 2], axis=1), np.tile(printed_cycloid(t)[:, None] / 3.0, 4))  # the printed curve, scaled
    for end in (np.pi / 3, 0.1):
        differ(printed_cycloid(T), end)
    close(printed_cycloid(T), np.pi)


# -- the planar arm -----------------------------------------------------------------------------------


@paper("Figure 5", by="library")
def test_figure_5_planar_torques():
    found = saha1999.planar_torques()
    close(np.degrees(found.q[-1]), [180] * 3)
    close(found.tau, saha1999.planar_closed_form(found.q, found.v, found.a))  # "verified with the explicit expressions"
    close(found.tau[0], G * np.array([4.5, 2.0, 0.5]))  # stretched out at rest, it holds the rods' weights
    close(found.tau[-1], G * np.array([-1.5, 1.0, -0.5]))  # folded back upon itself
    assert (np.diff(np.abs(found.tau[:150])) < 0.0).all()  # the inner joints hold more


@paper("Figure 6", by="library")
def test_figure_6_planar_free_fall(planar_fall):
    fall = planar_fall
    close(fall.q[0], np.zeros(3))
    close(fall.v[0], np.zeros(3))
    assert (fall.q[1:60, 0] < 0.0).all() and (
        np.diff(fall.q[:60, 0]) < 0.0
    ).all()  # "initially in the negative direction"
    close(saha1999.planar_closed_form(fall.q, fall.v, fall.a), np.zeros_like(fall.q), 1e-8)  # no torque anywhere
    close(fall.energy, np.full_like(fall.t, fall.energy[0]), 1e-8)
    assert (
        fall.potential_energy.max() <= fall.potential_energy[0] + 1e-8
    )  # a pendulum rises to the height it was released from
    rots = [np.count_nonzero(np.diff(np.sign(fall.v[1:, k]))) for k in range(3)]
    assert min(rots) >= 4  # every joint swings to and fro: "behaves as a triple pendulum"
    assert fall.kinetic_energy.max() > 20.0


# -- the Stanford arm ---------------------------------------------------------------------------------


@paper("Figure 8", by="library")
def test_figure_8_stanford_torques():
    found, arm = saha1999.stanford_torques(), saha1999.stanford_arm()
    close(np.degrees(np.delete(found.q[-1], 2)), [60] * 5)
    close(found.q[-1, 2], 0.1)
    for k in range(0, len(found.t), 50):  # against the recursions of Section 5.1 in world axes
        state = Arm(arm, found.q[k], found.v[k], found.a[k])
        close(found.tau[k], recursive_inverse_dynamics(state, found.a[k], arm.gravity)[0])
    # At rest at both ends: what is beyond joint 2 hangs on it, and what is beyond joint 3 slides along its axis.
    propagated, moment = 4.0 + 1.0 + 0.6 + 0.5, 1.0 * 0.7 + (0.6 + 0.5) * 0.6
    tilt, reach = np.cos(np.pi / 3), np.sin(np.pi / 3)
    close(found.tau[0], [0, -G * moment, 0, 0, 0, 0], 1e-9)
    close(found.tau[-1], [0, -G * (moment + 0.1 * propagated) * reach, G * propagated * tilt, 0, 0, 0], 1e-9)
    # Work of the joints is the gain of energy.
    work = trapezoid(np.sum(found.tau * found.v, axis=1), found.t)
    gain = lw.potential_energy(arm, found.q[-1]) - lw.potential_energy(arm, found.q[0])
    assert work == pytest.approx(gain, rel=1e-4)


@paper("Table 3", by="library")
def test_the_mass_centre_of_link_4_lies_beyond_its_far_end():
    """With the printed r; with the other sign it would lie on the link, from O_4 to O_5."""
    arm = Arm(saha1999.stanford_arm(), np.array(saha1999.STANFORD_START), np.zeros(6), np.zeros(6))
    link = arm.O[5] - arm.O[4]
    length = np.linalg.norm(link)
    close(length, 0.6)  # b_4
    close(arm.r[4], -0.1 * link / length)  # from C_4 to O_5: r_y in frame 5, against the link
    close(np.dot(arm.C[4] - arm.O[4], link) / length, 0.7)
    close(np.dot(arm.O[5] + arm.r[4] - arm.O[4], link) / length, 0.5)


@paper("Figure 9", by="library")
def test_figure_9_stanford_free_fall(stanford_fall):
    fall, level = stanford_fall, np.pi / 2
    close(fall.q[0], saha1999.STANFORD_START)
    close(fall.energy, np.full_like(fall.t, fall.energy[0]), 1e-8)
    joint_2, joint_3 = fall.q[:, 1], fall.q[:, 2]
    assert (joint_2[1:] > level).all() and (np.diff(joint_3) > 0.0).all()
    barely = joint_2 < np.radians(95.0)
    assert joint_3[barely].max() < 0.01 and joint_3[-1] > 5.0  # it "should sharply increase"
    # Far out, joint 3 falls freely.
    assert fall.a[-1, 2] == pytest.approx(G, rel=0.02)


@paper("Figure 9", by="library")
def test_joint_3_runs_away_once_joint_2_has_turned_beyond_90_degrees():
    """Released at 80 degrees, where its axis rises, joint 3 first slides back; beyond 90 degrees it runs away."""
    arm = saha1999.stanford_arm()
    start = np.array(saha1999.STANFORD_START)
    start[1] = np.radians(80.0)
    fall = lw.simulate(arm, start, np.zeros(6), 1.5, t_eval=np.linspace(0.0, 1.5, 301))
    passed = fall.q[:, 1] > np.pi / 2
    first = int(np.argmax(passed))
    assert 0 < first < 300 and passed[first:].all()
    assert (fall.v[1:first, 2] < 0.0).all() and fall.q[first, 2] < 0.0  # until then it slides back
    assert fall.q[-1, 2] > 3.0 and (np.diff(fall.v[first:, 2]) > 0.0).all()  # from then on faster and faster


@paper("Figure 9", by="library")
def test_gravity_the_other_way_mirrors_the_fall(stanford_fall):
    other = lw.simulate(lw.mechanisms.stanford_arm(), saha1999.STANFORD_START, np.zeros(6), 1.5, t_eval=stanford_fall.t)
    mirror = np.array([1.0, -1.0, 1.0, -1.0, -1.0, -1.0])
    close(other.q, np.pi * np.eye(6)[1] + mirror * stanford_fall.q, 1e-6)
