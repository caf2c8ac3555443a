"""Closed mechanisms: reactions of loops under all forces, and starts that violate their constraints."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from tests.simulated import simulate

FOUR_BAR = lw.mechanisms.four_bar()
CRANK = lw.constraints.null_space(FOUR_BAR, np.zeros(3), independent=("crank_joint",))[:, 0]
SPRING = lw.forces.Passive.springs({"crank_joint": 40.0}, rest={"crank_joint": 0.7}) + lw.forces.Passive.dampers(
    {"crank_joint": 3.0}
)


def push(t, q, v):
    return np.concatenate([np.zeros((3, 3)), np.cos(t) * np.ones((3, 3))], axis=1)


@pytest.mark.parametrize("stabilization", ["projection", "baumgarte"])
def test_reactions_are_those_of_all_that_acted(stabilization):
    """The recorded accelerations need exactly the joint forces that the reactions leave: an oracle without loops."""
    run = lw.simulate(
        FOUR_BAR,
        np.zeros(3),
        2.0 * CRANK,
        0.3,
        [1.0, 0.0, 0.0],
        passive=SPRING,
        wrenches=push,
        settings=lw.motion.Settings(stabilization=stabilization),
    )
    assert run.loop_reactions.shape == (len(run.t), 1, 6)
    np.testing.assert_allclose(run.passive_forces, SPRING.forces(FOUR_BAR, run.q, run.v))
    assert np.abs(run.passive_forces[:, 0]).max() > 1.0
    tree = FOUR_BAR.spanning_tree
    needed = lw.inverse_dynamics(tree, run.q, run.v, run.a, run.wrenches)
    missing = needed - run.tau - run.passive_forces  # what the loop does, as joint forces
    lambdas = np.linalg.lstsq(
        np.concatenate([np.swapaxes(lw.constraints.constraint_jacobian(FOUR_BAR, q), -1, -2) for q in run.q[:1]]),
        -missing[0],
        rcond=None,
    )[0]
    np.testing.assert_allclose(np.linalg.norm(run.loop_reactions[0, 0]), np.linalg.norm(lambdas), rtol=1e-9)
    alone = lw.constraints.loop_reactions(FOUR_BAR, run.q, run.v, run.tau)
    assert np.abs(alone - run.loop_reactions).max() > 0.1


def test_reactions_without_loops_and_passive_elements_are_none():
    run = lw.simulate(lw.mechanisms.planar_arm(2), np.zeros(2), np.ones(2), 0.1)
    assert run.loop_reactions.shape == (len(run.t), 0, 6)
    np.testing.assert_array_equal(run.passive_forces, np.zeros_like(run.v))


@pytest.mark.parametrize(
    "options",
    [{}, {"method": "rk4"}, {"settings": lw.motion.Settings(coordinates="independent")}],
    ids=str,
)
def test_velocities_that_violate_loops_are_not_changed_in_silence(options):
    with pytest.warns(
        lw.MechanismWarning, match=r"constraints of loop 'pin'.*by up to 0\.569.*v0 = \{joint: speed\}"
    ) as caught:
        run = lw.simulate(FOUR_BAR, np.zeros(3), [1.0, 0.0, 0.0], 0.01, **options)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert run.v[0, 0] == pytest.approx(0.4315, abs=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lw.simulate(FOUR_BAR, np.zeros(3), CRANK, 0.01, **options).v[0, 0] == pytest.approx(1.0)
        lw.simulate(FOUR_BAR, np.zeros(3), CRANK * (1.0 + 1e-4 * np.arange(3)), 0.01, **options)
        lw.simulate(FOUR_BAR, np.zeros(3), np.zeros(3), 0.01, **options)


def test_independent_coordinates_have_no_velocities_that_tear_loops_open():
    """Without projection as well: of what is given only the independent rates count."""
    options = {"coordinates": "independent", "independent": ("crank_joint",), "stabilization": None}
    with pytest.warns(lw.MechanismWarning, match="violates? the constraints of loop 'pin'"):
        run = simulate(FOUR_BAR, np.zeros(3), [1.0, 0.0, 0.0], 0.01, **options)
    np.testing.assert_allclose(run.v[0], CRANK, atol=1e-12)
    assert run.velocity_error.max() < 1e-9


def test_velocities_of_one_state_of_a_batch_that_tear_loops_open():
    v = np.stack([CRANK, [1.0, 0.0, 0.0]])
    with pytest.warns(lw.MechanismWarning, match="violates? the constraints of loop 'pin'"):
        lw.simulate(FOUR_BAR, np.zeros((2, 3)), v, 0.01, method="rk4")


def test_dynamics_of_open_loops_are_not_given_in_silence():
    opened, still = np.array([0.1, 0.0, 0.0]), np.zeros(3)
    calls = {
        "forward": lambda q: lw.forward_dynamics(FOUR_BAR, q, still, still),
        "inverse": lambda q: lw.inverse_dynamics(FOUR_BAR, q, still, still),
        "reactions": lambda q: lw.constraints.loop_reactions(FOUR_BAR, q, still, still),
        "batch": lambda q: lw.forward_dynamics(FOUR_BAR, np.stack([still, q, still * np.nan]), still, still),
    }
    for call in calls.values():
        with pytest.warns(lw.MechanismWarning, match="loop 'pin' of mechanism 'four_bar' is open by 0.08") as caught:
            call(opened)
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(opened * 1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.forward_dynamics(FOUR_BAR, opened, still, still, baumgarte=(1.0, 1.0))
        lw.simulate(
            FOUR_BAR,
            np.zeros(3),
            2.0 * CRANK,
            0.5,
            settings=lw.motion.Settings(stabilization=None),
            method="semi_implicit",
            step=0.02,
        )
