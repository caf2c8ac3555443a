"""The policy for singular positions, and the settings that a trajectory keeps of it."""

import dataclasses
import json
import math

import numpy as np
import pytest

import linkwise as lw
from linkwise.simulation.settings import Settings
from linkwise.simulation.singular_positions import NEAR, Ahead, Departure, SingularPositions

STRETCHED = np.array([np.pi, 0.0, np.pi, 0.0])


def bent(mech):
    return lw.closed.assemble(mech, [2.2, 1.8, 1.5, 1.9])


def test_states_near_a_singular_position():
    mech = lw.mechanisms.five_bar()
    positions = SingularPositions.around(mech, bent(mech))
    assert positions.rank == 2 and 0.1 < positions.usual_conditioning <= 1.0
    states = np.array([STRETCHED, bent(mech)])
    s = np.linalg.svd(lw.closed.constraint_jacobian(mech, states), compute_uv=False)
    np.testing.assert_array_equal(positions.is_near(states), s[:, 1] < NEAR * positions.usual_conditioning * s[:, 0])
    np.testing.assert_array_equal(positions.is_near(states), [True, False])


def test_a_tree_has_no_singular_positions():
    mech = lw.mechanisms.planar_arm(2)
    positions = SingularPositions.around(mech, np.zeros(2))
    assert not positions.is_near(np.zeros((3, 2))).any()
    assert positions.ahead(np.zeros(2), np.ones(2)) == Ahead(math.inf, 1.0)
    assert positions.longest_step(positions.ahead(np.zeros(2), np.ones(2))) == math.inf
    assert not Departure(positions, (3,)).left_alone(np.zeros((3, 2))).any()


def test_only_notes_change_what_is_left_alone():
    """Asking about other states, as interpolations and stages of steps do, changes nothing."""
    mech = lw.mechanisms.five_bar()
    states = np.array([STRETCHED, STRETCHED])
    departure = Departure(SingularPositions.around(mech, states), (2,))
    for _ in range(2):
        assert departure.left_alone(states).all()
        assert not departure.left_alone(np.array([bent(mech), bent(mech)])).any()
    departure.note(np.array([STRETCHED, bent(mech)]))
    np.testing.assert_array_equal(departure.left_alone(states), [True, False])  # the second came back: it is projected


def test_one_degree_of_freedom_is_closed_to_round_off():
    """A parallelogram goes right through its singular positions, a five-bar linkage beside them."""
    one, more = lw.mechanisms.n_four_bar(2), lw.mechanisms.five_bar()
    assert SingularPositions.around(one, np.zeros(one.nq)).aim(1e-11) < 1e-15
    assert SingularPositions.around(more, bent(more)).aim(1e-11) == 1e-11


def test_adaptive_methods_keep_the_energy_of_trees():
    mech = lw.mechanisms.double_pendulum()
    motion = lw.simulate(mech, [1.0, 0.5], [0.0, 0.0], 2.0, rtol=1e-5, atol=1e-5, keep_energy=True)
    free = lw.simulate(mech, [1.0, 0.5], [0.0, 0.0], 2.0, rtol=1e-5, atol=1e-5)
    drift, free_drift = (np.abs(one.energy - one.energy[0]).max() for one in (motion, free))
    assert drift < 1e-12 < free_drift


def test_settings_are_values():
    mech = lw.mechanisms.five_bar()
    batch = np.array([bent(mech), bent(mech)])
    settings = lw.simulate(mech, batch, np.zeros(4), 0.01, np.ones(4), "rk4").settings
    assert settings.rank == (2, 2) and settings.control == (1.0,) * 4 and hash(settings) == hash(settings)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.rank = None
    assert Settings.from_data(json.loads(json.dumps(settings.to_data()))) == settings


def test_files_written_under_former_names_are_read():
    data = lw.simulate(lw.mechanisms.four_bar(), np.zeros(3), np.zeros(3), 0.01).settings.to_data()
    former = {**data, "usual_nearness": data["usual_conditioning"]}
    del former["usual_conditioning"]
    assert Settings.from_data(former) == Settings.from_data(data)
