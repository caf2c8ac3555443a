"""The policy for singular positions, and the settings that a trajectory keeps of it."""

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwise as lw
from linkwise.mechanism import MechanismWarning
from linkwise.motion.settings import Setup
from linkwise.motion.singular import (
    GAP,
    NEAR,
    Measure,
    Nodes,
    SingularPositions,
    collocated,
    gauss_pairs,
    outer_pairs,
)
from linkwise.motion.system import Manifold

STRETCHED = np.array([np.pi, 0.0, np.pi, 0.0])
FLAT = -0.5 * np.pi * np.array([1.0, 1.0, -1.0])  # of one parallelogram
ALIKE = np.array([1.0, 1.0, -1.0])  # velocities of a parallelogram
CROSSED = np.array([0.0, 0.0, 1.0])  # those by which it leaves its flat position as another linkage, less a multiple


def bent(mech):
    return lw.constraints.assemble(mech, [2.2, 1.8, 1.5, 1.9])


class Pendulum:
    """A motion without constraints: x = [angle, rate]."""

    def rates(self, t, x):
        return np.array([x[1], -np.sin(x[0])])

    def rates_along(self, times, x):
        return np.array([self.rates(t, one) for t, one in zip(times, x, strict=True)])

    def closed(self, x):
        return x


@pytest.mark.parametrize("pairs", [gauss_pairs, outer_pairs])
@pytest.mark.parametrize("both_ways", [False, True])
def test_an_arc_is_the_motion_at_all_its_times(pairs, both_ways):
    start, length = np.array([0.7, 0.3]), 0.6
    exact = solve_ivp(Pendulum().rates, (0.0, length), start, "DOP853", rtol=1e-13, atol=1e-13, dense_output=True)
    arc = collocated(
        Pendulum(),
        2.0,
        start,
        Nodes(length, pairs(8), both_ways),
        lambda times: np.tile(start, (16, 1)),
        Measure(1),
    )
    assert arc.error < 1e-10 and (arc.t_old, arc.t) == (2.0, 2.6)
    for time in np.linspace(0.0, length, 13):
        np.testing.assert_allclose(arc.between(2.0 + time), exact.sol(time), atol=1e-11)


def test_an_arc_tells_its_error():
    """With few nodes over a long time it is wrong, and says so."""
    start, length = np.array([0.7, 0.3]), 3.0
    exact = solve_ivp(Pendulum().rates, (0.0, length), start, "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    for pairs in (2, 3, 4):
        arc = collocated(
            Pendulum(),
            0.0,
            start,
            Nodes(length, outer_pairs(pairs)),
            lambda t, n=pairs: np.tile(start, (2 * n, 1)),
            Measure(1),
        )
        wrong = np.abs(arc.between(length) - exact).max()
        assert 1e-7 < wrong < 10.0 * arc.error


def test_nodes_keep_away_from_the_middle():
    for pairs in (5, 8):
        nodes = outer_pairs(pairs)
        np.testing.assert_allclose(nodes, -nodes[::-1])
        assert len(nodes) == 2 * pairs and np.abs(nodes).min() > GAP and np.abs(nodes).max() < 1.0


def test_how_near_states_are_to_a_singular_position():
    mech = lw.mechanisms.five_bar()
    positions = SingularPositions.around(mech, bent(mech))
    assert positions.rank == 2 and 0.1 < positions.usual_conditioning <= 1.0
    states = np.array([STRETCHED, bent(mech)])
    s = np.linalg.svd(lw.constraints.constraint_jacobian(mech, states), compute_uv=False)
    np.testing.assert_allclose(
        positions.conditioning(states) * positions.usual_conditioning, s[:, 1] / s[:, 0], atol=1e-14
    )
    np.testing.assert_array_equal(positions.is_singular(states), [True, False])
    np.testing.assert_array_equal(positions.may_be_ahead(states, np.zeros((2, 4)), 1e-3), [True, False])
    assert not positions.is_singular(np.array([STRETCHED + 0.01]))  # open by too much to be one


def test_a_tree_has_no_singular_positions():
    mech = lw.mechanisms.planar_arm(2)
    positions = SingularPositions.around(mech, np.zeros(2))
    assert not positions.is_singular(np.zeros((3, 2))).any()
    assert not positions.may_be_ahead(np.zeros((3, 2)), np.ones((3, 2)), 1.0).any()
    assert positions.arc(None, 0.0, np.zeros(4), np.zeros(4), 1.0) == (None, math.inf)


def test_a_step_past_a_singular_position_is_noticed():
    """However long the step is, as long as it does not pass two of them."""
    mech = lw.mechanisms.n_four_bar(1)
    positions = SingularPositions.around(mech, np.zeros(3))
    towards = -(0.5 * np.pi - 0.3) * ALIKE
    for step in (0.2, 0.3, 0.45, 0.6, 1.2):
        assert positions.may_be_ahead(towards, -ALIKE, step)
    assert not positions.may_be_ahead(np.array([-0.5 * ALIKE, -0.3 * ALIKE]), np.array([ALIKE, -ALIKE]), 0.05).any()
    assert positions.may_be_ahead(-(0.5 * np.pi - 0.5 * NEAR) * ALIKE, 0.0 * ALIKE, 1e-3)


def test_states_in_singular_positions_are_not_projected():
    mech = lw.mechanisms.five_bar()
    states = np.array([STRETCHED, bent(mech) + 1e-4])
    manifold = Manifold(SingularPositions.around(mech, np.array([bent(mech)] * 2)), projects=True)
    q, v = manifold.settled(states, np.ones((2, 4)))
    np.testing.assert_array_equal(q[0], STRETCHED)
    np.testing.assert_array_equal(v[0], np.ones(4))
    assert np.abs(lw.constraints.position_error(mech, q[1])).max() < 1e-14
    np.testing.assert_allclose(lw.constraints.constraint_jacobian(mech, q[1]) @ v[1], 0.0, atol=1e-14)


def test_at_rest_in_a_singular_position_a_choice_is_made_and_told():
    mech = lw.mechanisms.five_bar()
    with pytest.warns(MechanismWarning, match=r"at t = 0 s mechanism 'five_bar' is at rest in a singular position"):
        motion = lw.simulate(mech, STRETCHED, np.zeros(4), 0.5)
    np.testing.assert_allclose(motion.q[:, 1], motion.q[:, 3], atol=1e-8)
    assert np.abs(motion.energy - motion.energy[0]).max() < 1e-6


def test_a_motion_out_of_a_flat_position_is_the_one_its_velocities_belong_to():
    mech = lw.mechanisms.n_four_bar(1)
    motion = lw.simulate(mech, FLAT, -3.0 * ALIKE, 0.5)
    np.testing.assert_allclose(motion.q[:, 0], motion.q[:, 1], atol=1e-9)
    np.testing.assert_allclose(motion.q[0], FLAT)
    later = lw.simulate(mech, FLAT, 3.0 * ALIKE, 0.2)  # back the way it came
    assert later.q[-1, 0] > FLAT[0] + 0.1


def test_velocities_of_no_branch_are_changed_and_it_is_told():
    mech = lw.mechanisms.n_four_bar(1)
    with pytest.warns(MechanismWarning, match="velocities that belong to no branch: they were changed by"):
        motion = lw.simulate(mech, FLAT, -3.0 * ALIKE + 0.1 * CROSSED, 0.3)
    np.testing.assert_allclose(motion.q[-1, 0], motion.q[-1, 1], atol=1e-9)


def test_adaptive_methods_keep_the_energy_of_trees():
    mech = lw.mechanisms.double_pendulum()
    motion = lw.simulate(
        mech, [1.0, 0.5], [0.0, 0.0], 2.0, settings=lw.motion.Settings(rtol=1e-5, atol=1e-5, keep_energy=True)
    )
    free = lw.simulate(mech, [1.0, 0.5], [0.0, 0.0], 2.0, settings=lw.motion.Settings(rtol=1e-5, atol=1e-5))
    drift, free_drift = (np.abs(one.energy - one.energy[0]).max() for one in (motion, free))
    assert drift < 1e-12 < free_drift


def test_settings_are_values():
    mech = lw.mechanisms.five_bar()
    batch = np.array([bent(mech), bent(mech)])
    settings = lw.simulate(mech, batch, np.zeros(4), 0.01, np.ones(4), "rk4").settings
    assert settings.rank == (2, 2) and settings.control == (1.0,) * 4 and hash(settings) == hash(settings)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.rank = None
    assert Setup.from_data(json.loads(json.dumps(settings.to_data()))) == settings


def test_files_written_under_former_names_are_read():
    data = lw.simulate(lw.mechanisms.four_bar(), np.zeros(3), np.zeros(3), 0.01).settings.to_data()
    former = {**data, "usual_nearness": data["usual_conditioning"]}
    del former["usual_conditioning"]
    assert Setup.from_data(former) == Setup.from_data(data)
