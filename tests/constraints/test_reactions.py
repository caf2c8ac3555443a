"""Reactions under force elements, and what is not among their options."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw

FUNCTIONS = (lw.constraints.multipliers, lw.constraints.constraint_forces, lw.constraints.loop_reactions)


@pytest.fixture
def sprung():
    """A four-bar with springs and dampers at its joints, and a motor."""
    mech = lw.mechanisms.four_bar()
    bodies = tuple(replace(body, stiffness=(2.0 + k,), damping=(0.3,)) for k, body in enumerate(mech.bodies))
    return replace(mech, bodies=bodies).with_elements(lw.forces.Actuator("motor", mech.joint_names[0], gear=3.0))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_force_elements_push_like_joint_forces(function, sprung):
    rng = np.random.default_rng(0)
    q = lw.constraints.assemble(sprung, sprung.initial)
    v = lw.constraints.project(sprung, q, rng.normal(size=sprung.nv))[1]
    tau, ctrl = rng.normal(size=(2, 0, 3, sprung.nv)), rng.normal(size=1)
    for forces, given in (("all", ctrl), (("springs", "damping"), None), ("actuators", ctrl)):
        pushes = lw.forces.joint_forces(sprung, q, v, forces=forces, ctrl=given)
        assert np.abs(pushes).max() > 0.01
        for taus in (tau, rng.normal(size=(4, sprung.nv)), None):
            expected = function(sprung, q, v, pushes if taus is None else taus + pushes)
            found = function(sprung, q, v, taus, forces=forces, ctrl=given)
            np.testing.assert_allclose(found, expected, atol=1e-12)


def test_unknown_options_are_named(sprung):
    with pytest.raises(ValueError, match="unknown option 'stiffness'"):
        lw.constraints.loop_reactions(sprung, sprung.initial, stiffness=1.0)


def test_controls_of_actuators_that_are_left_out_name_the_cure(sprung):
    q, v = sprung.initial, np.zeros(sprung.nv)
    for function in (lw.forward_dynamics, lw.inverse_dynamics, lw.constraints.loop_reactions):
        with pytest.raises(lw.MechanismError, match="no actuator .* acts under forces='none': forces=.all"):
            function(sprung, q, v, ctrl=[1.0])
