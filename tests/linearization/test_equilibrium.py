"""Equilibria: that forces balance there, which ones are found, and what is said where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import EquilibriumError
from linkwise.mechanism import MechanismError

from ..constraints.built_in import FREEDOMS, built, random_state


def at_rest(mech, found, passive=None, wrenches=None) -> None:
    """Accelerations, from the dynamics of closed mechanisms, vanish."""
    still = np.zeros(mech.nv)
    tau = found.tau if passive is None else found.tau + passive.forces(mech, found.q, still)
    if mech.loops:
        assert np.abs(lw.constraints.position_error(mech, found.q)).max() < 1e-9
        a = lw.forward_dynamics(mech, found.q, still, tau, wrenches=wrenches, tolerance=1e-7)
    else:
        a = lw.forward_dynamics(mech, found.q, still, tau, *(() if wrenches is None else (wrenches,)))
    np.testing.assert_allclose(a, 0.0, atol=1e-6)


@pytest.mark.parametrize("name", [name for name, count in FREEDOMS.items() if count <= 2])
def test_springs_and_gravity_balance(name):
    mech = built(name)
    q = random_state(name, 2)[0]
    one_number = [joint for joint in mech.joint_names if mech.bodies[mech.body_index(joint)].nq == 1]
    rest = {joint: q[mech.q_index(joint)] for joint in one_number}
    passive = lw.forces.Passive.springs(dict.fromkeys(one_number, 200.0), rest)
    found = lw.find_equilibrium(mech, q, passive=passive)
    at_rest(mech, found, passive)
    assert found.stiffness.shape == (FREEDOMS[name],) * 2
    np.testing.assert_allclose(found.stiffness, found.stiffness.T, atol=1e-7 * np.abs(found.stiffness).max())
    model = lw.linearize(mech, found.q, passive=passive)
    grows = model.eigenvalues().real.max() > 1e-4
    assert found.stable is not None and found.stable != grows


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_trees_with_springs_everywhere(seed):
    """Joints of every kind, among them quaternions; stiff springs, so that there is an equilibrium near their rest."""
    mech = lw.mechanisms.random_tree(3, seed)
    rng = np.random.default_rng(seed)
    q, _ = lw.random_state(mech, rng)
    rest = {body.joint: q[mech.q_index(body.joint)] for body in mech.bodies}
    passive = lw.forces.Passive.springs(dict.fromkeys(mech.joint_names, 500.0), rest=rest)
    wrenches, tau = rng.normal(size=(mech.n_links, 6)), rng.normal(size=mech.nv)
    found = lw.find_equilibrium(mech, q, tau=tau, passive=passive, wrenches=wrenches)
    at_rest(mech, found, passive, wrenches)
    np.testing.assert_array_equal(found.tau, tau)
    assert found.stable


def test_hanging_standing_and_stuck():
    arm = lw.mechanisms.planar_arm(2)
    hanging, standing = lw.find_equilibrium(arm, [-1.2, 0.3]), lw.find_equilibrium(arm, [1.3, 0.3])
    np.testing.assert_allclose(hanging.q, [-np.pi / 2, 0.0], atol=1e-9)
    np.testing.assert_allclose(standing.q, [np.pi / 2, 0.0], atol=1e-9)
    assert hanging.stable is True and standing.stable is False
    assert "stable" in repr(hanging) and "unstable" in repr(standing)
    level = lw.find_equilibrium(arm, [0.0, 0.0])  # where Newton's method knows no way
    at_rest(arm, level)
    assert level.stable


def test_floating_body_on_springs_and_a_ball():
    mech = lw.Builder().link("body", 2.0, (0.05, 0.0, 0.1), (0.1, 0.2, 0.3))
    mech = mech.joint("base", lw.Floating(), "ground", "body").build()
    passive = lw.forces.Passive.springs({"base": (5.0, 5.0, 5.0, 100.0, 100.0, 100.0)})
    found = lw.find_equilibrium(mech, [1.0, 0.1, 0.0, 0.2, 0.0, 0.1, 0.0], passive=passive)
    at_rest(mech, found, passive)
    assert found.stable and -0.25 < found.q[6] < -0.15  # 2 kg on 100 N/m
    neutral = lw.find_equilibrium(mech.with_gravity((0, 0, 0)), lw.neutral(mech))
    assert neutral.stable is None and neutral.residual == 0.0


def test_held_joints_and_their_forces():
    mech = built("loader")
    found = lw.find_equilibrium(mech, lw.neutral(mech), hold=("lift_piston_joint",))
    assert found.q[mech.q_index("lift_piston_joint")] == 0.0
    at_rest(mech, found)
    others = np.setdiff1d(np.arange(8), mech.v_index("lift_piston_joint").start)
    np.testing.assert_array_equal(found.tau[others], 0.0)
    assert abs(found.tau[2]) > 100.0 and found.stiffness.shape == (1, 1)
    both = ("lift_piston_joint", "tilt_piston_joint")
    held = lw.find_equilibrium(mech, lw.neutral(mech), hold=both)
    given = lw.find_equilibrium(mech, lw.neutral(mech), solve_for="tau", actuated=both)
    np.testing.assert_allclose(held.tau, given.tau, rtol=1e-9, atol=1e-6)
    assert held.stiffness.shape == (0, 0) and held.stable
    assert lw.linearize(mech, held.q, tau=held.tau).is_equilibrium


def test_forces_that_hold_a_configuration():
    mech = built("five_bar")
    q = random_state("five_bar", 1)[0]
    every = lw.find_equilibrium(mech, q, solve_for="tau")
    two = lw.find_equilibrium(mech, q, solve_for="tau", actuated=("joint1", "joint4"))
    for found in (every, two):
        at_rest(mech, found)
        np.testing.assert_array_equal(found.q, q)
    still = np.zeros(4)
    expected = lw.inverse_dynamics(mech, q, still, still, actuated=("joint1", "joint4"))
    np.testing.assert_allclose(two.tau, expected, atol=1e-9)
    assert np.linalg.norm(every.tau) < np.linalg.norm(two.tau)
    # Forces given at other joints stay, and springs help.
    passive = lw.forces.Passive.springs({"joint1": 10.0})
    mixed = lw.find_equilibrium(
        mech, q, tau=[0.0, 2.0, 0.0, 0.0], solve_for="tau", actuated=("joint1", "joint4"), passive=passive
    )
    assert mixed.tau[1] == 2.0
    at_rest(mech, mixed, passive)


def test_multipliers_are_the_loop_forces():
    mech = built("five_bar")
    found = lw.find_equilibrium(mech, random_state("five_bar", 1)[0], solve_for="tau")
    expected = lw.constraints.constraint_forces(mech, found.q, np.zeros(4), found.tau)
    reaction = -lw.constraints.constraint_jacobian(mech, found.q).T @ found.multipliers
    np.testing.assert_allclose(reaction, expected, atol=1e-8)


def test_where_there_is_none():
    with pytest.raises(EquilibriumError, match="'slide' keeps an unbalanced force of 29.4") as caught:
        slide = lw.Builder().link("block", 3.0).joint("slide", lw.Prismatic((0, 0, 1)), "ground", "block").build()
        lw.find_equilibrium(slide, [0.0])
    assert caught.value.joint == "slide" and caught.value.residual == pytest.approx(29.43)
    arm = lw.mechanisms.planar_arm(2)
    with pytest.raises(EquilibriumError, match="'joint1' cannot hold mechanism 'planar_arm_2' here"):
        lw.find_equilibrium(arm, [0.3, 0.4], solve_for="tau", actuated=("joint1",))
    with pytest.raises(MechanismError, match="takes one state"):
        lw.find_equilibrium(arm, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="unknown solve_for 'v'"):
        lw.find_equilibrium(arm, [0.0, 0.0], solve_for="v")
    with pytest.raises(MechanismError, match="actuated is for solve_for='tau'"):
        lw.find_equilibrium(arm, [0.0, 0.0], actuated=("joint1",))
    with pytest.raises(MechanismError, match="hold is for solve_for='q'"):
        lw.find_equilibrium(arm, [0.0, 0.0], hold=("joint1",), solve_for="tau")
    with pytest.raises(MechanismError, match="are open by"):
        lw.find_equilibrium(built("five_bar"), np.zeros(4), solve_for="tau")
