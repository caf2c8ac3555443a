"""States by the names of joints in functions of closed mechanisms: what they are as arrays."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import linkwise as lw

from .built_in import built

ANGLE, SPEED, FORCE = {"crank_joint": 0.7}, {"crank_joint": 1.5}, {"crank_joint": 0.3}


def arrays() -> tuple[lw.Mechanism, np.ndarray, np.ndarray, np.ndarray]:
    """The same state of the four-bar as arrays."""
    mech = built("four_bar")
    guess = mech.initial.copy()
    guess[mech.q_index("crank_joint")] = 0.7
    q = lw.constraints.assemble(mech, guess, hold="crank_joint")
    v = lw.constraints.null_space(mech, q, independent="crank_joint")[:, 0] * 1.5
    tau = np.zeros(mech.nv)
    tau[mech.v_index("crank_joint")] = 0.3
    return mech, q, v, tau


def test_states_by_joint_are_the_same_everywhere():
    mech, q, v, tau = arrays()
    near = {"rtol": 1e-10, "atol": 1e-10}
    pairs = [
        (lw.forward_dynamics(mech, ANGLE, SPEED, FORCE), lw.forward_dynamics(mech, q, v, tau)),
        (lw.forward_dynamics(mech, q, SPEED, FORCE), lw.forward_dynamics(mech, q, v, tau)),
        (lw.constraints.multipliers(mech, ANGLE, SPEED, FORCE), lw.constraints.multipliers(mech, q, v, tau)),
        (lw.joint_wrenches(mech, ANGLE, SPEED, tau=FORCE), lw.joint_wrenches(mech, q, v, tau=tau)),
        (lw.contact.impact(mech, ANGLE, SPEED), v),
        (lw.constraints.project(mech, ANGLE, SPEED)[1], v),
        (lw.constraints.constraint_jacobian(mech, ANGLE), lw.constraints.constraint_jacobian(mech, q)),
        (lw.constraints.constraint_bias(mech, ANGLE, v=SPEED), lw.constraints.constraint_bias(mech, q, v)),
        (lw.constraints.position_error(mech, q=ANGLE), np.zeros(mech.n_constraints)),
        (np.abs(lw.constraints.null_space(mech, ANGLE)), np.abs(lw.constraints.null_space(mech, q))),
        (lw.linkages.follow(mech, ANGLE, {"crank_joint": 0.9}), lw.linkages.follow(mech, q, {"crank_joint": 0.9})),
        (lw.constraints.conditioning(mech, ANGLE, 2), lw.constraints.conditioning(mech, q, 2)),
        (lw.kinematics.local_parametrization(mech, ANGLE).origin, q),
        (lw.forward_dynamics_derivatives(mech, ANGLE, SPEED, FORCE)[0], None),
        (lw.forward_dynamics(mech, ANGLE, SPEED, FORCE, forces="all"), lw.forward_dynamics(mech, q, v, tau)),
    ]
    # Where a position becomes singular, times are known to the root of rounding.
    times = lw.kinematics.time_to_singular(mech, ANGLE, SPEED), lw.kinematics.time_to_singular(mech, q, v)
    np.testing.assert_allclose(*times, rtol=1e-7)
    expected = lw.forward_dynamics_derivatives(mech, q, v, tau)[0]
    for found, other in pairs:
        np.testing.assert_allclose(found, expected if other is None else other, **near)
    assert lw.constraints.degrees_of_freedom(mech, ANGLE) == lw.constraints.generic_rank(mech, ANGLE) - 1 == 1
    around = [lw.linkages.range_of_motion(mech, "rocker_joint", start).ends[0].value for start in (ANGLE, q)]
    assert around[0] == pytest.approx(around[1], abs=1e-10)


def test_a_guess_by_joint():
    mech, q, *_ = arrays()
    np.testing.assert_allclose(lw.constraints.assemble(mech, ANGLE, hold="crank_joint"), q, atol=1e-10)
    near = lw.constraints.assemble(mech, {"crank_joint": 0.7, "rocker_joint": 0.9})
    assert np.abs(lw.constraints.position_error(mech, near)).max() < 1e-12
    with pytest.raises(lw.MechanismError, match="no moving joint 'crankjoint'.*crank_joint"):
        lw.constraints.assemble(mech, {"crankjoint": 0.7})


def test_none_is_at_rest():
    mech, q, *_ = arrays()
    still = np.zeros(mech.nv)
    everything = functools.partial(lw.forward_dynamics, forces="all")
    for function in (lw.forward_dynamics, lw.constraints.loop_reactions, everything):
        np.testing.assert_array_equal(function(mech, q, None, None), function(mech, q, still, still))
    np.testing.assert_array_equal(lw.joint_wrenches(mech, q, tau=still), lw.joint_wrenches(mech, q, still, tau=still))
    np.testing.assert_array_equal(
        lw.constraints.constraint_bias(mech, q, None), lw.constraints.constraint_bias(mech, q, still)
    )
    expected = lw.inverse_dynamics(mech, q, still, still, actuated="crank_joint")
    np.testing.assert_array_equal(lw.inverse_dynamics(mech, q, None, None, actuated="crank_joint"), expected)
    np.testing.assert_allclose(lw.constraints.project(mech, q, None)[0], q, atol=1e-12)


def test_parts_of_a_floating_joint_stay_where_they_are_while_loops_close():
    mech = built("quadruped")
    place = {name: k for k, name in enumerate(mech.q_names)}
    half = 0.5 * 0.05
    given = {"trunk_joint.pitch": 0.05, "trunk_joint.x": 0.02, "front_left_knee_joint": -0.1}
    motion = lw.simulate(mech, given, None, 0.001)
    q = motion.q[0]
    np.testing.assert_allclose(q[:4], [np.cos(half), 0.0, np.sin(half), 0.0], atol=1e-12)
    assert q[place["trunk_joint.x"]] == pytest.approx(0.02, abs=1e-12)
    assert q[place["front_left_knee_joint"]] == pytest.approx(-0.1, abs=1e-12)
    assert np.abs(q[[place["trunk_joint.y"], place["trunk_joint.z"]]]).min() > 1e-6  # these were free
    assert np.abs(lw.constraints.position_error(mech, q)).max() < 1e-11
    np.testing.assert_allclose(lw.constraints.assemble(mech, given, hold=tuple(given)), q, atol=1e-9)
    with pytest.raises(lw.MechanismError, match=r"hold: joint 'trunk_joint' of .* has no coordinate 'trunk_joint.up'"):
        lw.constraints.assemble(mech, q, hold="trunk_joint.up")


def test_accelerations_by_joint_are_those_of_independent_joints():
    mech, q, v, _ = arrays()
    alone = lw.inverse_dynamics(mech, q, v, [2.0], independent="crank_joint", actuated="crank_joint")
    found = lw.inverse_dynamics(mech, ANGLE, SPEED, {"crank_joint": 2.0}, actuated="crank_joint")
    np.testing.assert_allclose(found, alone, atol=1e-10)
    a = lw.forward_dynamics(mech, q, v, found)
    assert a[mech.v_index("crank_joint")] == pytest.approx(2.0)
    with pytest.raises(lw.MechanismError, match="leave out independent"):
        lw.inverse_dynamics(mech, q, v, {"crank_joint": 2.0}, independent="rocker_joint")


# -- which joints drive -------------------------------------------------------------------------------


def test_unactuated_joints_are_those_that_are_not_actuated():
    mech, q, v, _ = arrays()
    wanted = {"independent": "crank_joint"}
    others = [name for name in mech.joint_names if name != "crank_joint"]
    expected = lw.inverse_dynamics(mech, q, v, [2.0], actuated="crank_joint", **wanted)
    np.testing.assert_allclose(lw.inverse_dynamics(mech, q, v, [2.0], unactuated=others, **wanted), expected)
    one = lw.inverse_dynamics(mech, q, v, [2.0], unactuated="rocker_joint", **wanted)
    assert one[mech.v_index("rocker_joint")] == 0.0
    with pytest.raises(lw.MechanismError, match="give one of them"):
        lw.inverse_dynamics(mech, q, v, [2.0], actuated="crank_joint", unactuated=others, **wanted)
    with pytest.raises(lw.MechanismError, match="no moving joint 'rocker'"):
        lw.inverse_dynamics(mech, q, v, [2.0], unactuated="rocker", **wanted)


def test_passive_are_springs_and_joint_names_as_passive_are_told():
    mech, q, v, _ = arrays()
    springs = lw.forces.Passive.springs({"rocker_joint": 30.0}) + lw.forces.Passive.dampers({"crank_joint": 2.0})
    wanted = {"independent": "crank_joint", "actuated": "crank_joint"}
    beside = lw.inverse_dynamics(mech, q, v, [2.0], forces=springs, **wanted)
    assert abs(beside[0] - lw.inverse_dynamics(mech, q, v, [2.0], **wanted)[0]) > 0.1
    a = lw.forward_dynamics(mech, q, v, beside + springs.forces(mech, q, v))
    np.testing.assert_allclose(a[mech.v_index("crank_joint")], 2.0, rtol=1e-9)
    held = lw.static_forces(mech, q, actuated="crank_joint", forces=springs)
    at_rest = held + springs.forces(mech, q, np.zeros(mech.nv))
    np.testing.assert_allclose(lw.forward_dynamics(mech, q, None, at_rest), 0.0, atol=1e-9)
    others = [name for name in mech.joint_names if name != "crank_joint"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        old = lw.closed.static_forces(mech, q, passive=others)
    told = [str(one.message) for one in caught if one.category is DeprecationWarning]
    assert any("joints without motors are named by unactuated=" in one for one in told)
    np.testing.assert_allclose(old, lw.static_forces(mech, q, unactuated=others))


def test_inverse_dynamics_beside_elements():
    mech, q, v, _ = arrays()
    mech = mech.parameters.with_damping({"rocker_joint": 2.0})
    with pytest.raises(lw.MechanismError, match="with independent=") as caught:
        lw.inverse_dynamics(mech, q, v, np.ones(mech.nv), forces="all")
    assert "loop" in str(caught.value)
    for given in ({"a": [2.0], "independent": "crank_joint"}, {"a": {"crank_joint": 2.0}}):
        tau = lw.inverse_dynamics(mech, q, v, actuated="crank_joint", **given, forces="all")
        assert np.flatnonzero(tau).tolist() == [mech.v_index("crank_joint").start]
        a = lw.forward_dynamics(mech, q, v, tau, forces="all")
        assert a[mech.v_index("crank_joint")] == pytest.approx(2.0)
    still = lw.inverse_dynamics(mech, q, v, [2.0], independent="crank_joint", actuated="crank_joint")
    assert np.abs(still - tau).max() > 0.1  # what the damper takes


def test_following_single_coordinates():
    """A slider whose joint has two coordinates, tied to the ground by a rod: x^2 + y^2 stays 1."""
    builder = lw.Builder().link("slider", 1.0, inertia=(0.1, 0.1, 0.1))
    builder.joint("plane", lw.Planar(), "ground", "slider").distance("rod", "ground", (0, 0, 0), "slider", (0, 0, 0), 1)
    mech = builder.build("tied")
    names = dict(zip(mech.q_names, (0.8, 0.6, 0.0), strict=True))
    start = lw.constraints.assemble(mech, np.array([names[name] for name in mech.q_names]))
    places = [k for k, name in enumerate(mech.q_names) if name.endswith((".x", ".y"))]
    target = mech.q_names[places[0]]
    found = lw.linkages.follow(mech, start, {target: 0.28})
    np.testing.assert_allclose(np.abs(found[places]), [0.28, 0.96], atol=1e-9)
    with pytest.raises(lw.MechanismError, match="plane"):
        lw.linkages.follow(mech, start, {"plane.w": 0.1})


def test_many_positions_of_a_joint_are_a_path_and_numbers_of_each_state_go_with_it():
    mech, angles = lw.mechanisms.four_bar(), np.linspace(0.0, 2.0 * np.pi, 7)
    path = lw.configuration(mech, crank_joint=angles)
    np.testing.assert_allclose(
        path, lw.linkages.follow_path(mech, lw.neutral(mech), {"crank_joint": angles}), atol=1e-14
    )
    torque = lw.inverse_dynamics(
        mech, {"crank_joint": angles}, {"crank_joint": 2.0 * angles}, {"crank_joint": angles}, actuated="crank_joint"
    )
    for k, angle in enumerate(angles):
        v, a = {"crank_joint": 2.0 * angle}, {"crank_joint": angle}
        one = lw.inverse_dynamics(mech, path[k], v, a, actuated="crank_joint")
        np.testing.assert_allclose(torque[k], one, atol=1e-9)
    arm = lw.mechanisms.planar_arm(2)
    np.testing.assert_allclose(lw.configuration(arm, joint1=[0.1, 0.2], joint2=0.3), [[0.1, 0.3], [0.2, 0.3]])
    with pytest.raises(lw.MechanismError, match="as many positions of each joint are needed, not 2 of 'joint1', 3 of"):
        lw.configuration(arm, joint1=[0.1, 0.2], joint2=[0.1, 0.2, 0.3])
    with pytest.raises(lw.MechanismError, match="batch shapes do not broadcast"):
        lw.forward_dynamics(mech, path, {"crank_joint": [1.0, 2.0]})
