"""Linear models and regulators of what stands on compliant ground."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.linearization.actuated import away_from_contact

WALKER = """<mujoco model="walker"><option gravity="0 0 -9.81"/><default><geom friction="0.9"/></default><worldbody>
  <geom name="floor" type="plane" size="1 1 1"/>
  <body name="trunk" pos="0 0 0.6">
    <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
    <joint name="pitch" axis="0 1 0"/>
    <geom name="trunk" type="box" size=".2 .1 .05" mass="8" contype="0" conaffinity="0"/>
    <body name="front" pos="0.15 0 0"><joint name="front_hip" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="0.5" contype="0" conaffinity="0"/>
      <body name="front_shin" pos="0 0 -0.3"><joint name="front_knee" axis="0 1 0"/>
        <geom name="front_foot" type="sphere" pos="0 0 -0.28" size="0.02" mass="0.3"/></body></body>
    <body name="rear" pos="-0.15 0 0"><joint name="rear_hip" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="0.5" contype="0" conaffinity="0"/>
      <body name="rear_shin" pos="0 0 -0.3"><joint name="rear_knee" axis="0 1 0"/>
        <geom name="rear_foot" type="sphere" pos="0 0 -0.28" size="0.02" mass="0.3"/></body></body>
  </body></worldbody></mujoco>"""
MOTORS = ("front_hip", "front_knee", "rear_hip", "rear_knee")
BENT = {"front_hip": 0.5, "front_knee": -1.0, "rear_hip": 0.5, "rear_knee": -1.0}


def standing():
    """The walker with bent legs, its feet on the floor."""
    mech = lw.load(WALKER)
    q = mech.initial.copy()
    for joint, angle in BENT.items():
        q[mech.q_index(joint)] = angle
    q[mech.q_index("z")] -= lw.contact.contact_points(mech, q, np.zeros(mech.nv)).gap.min()
    return mech, q


def test_a_walker_is_brought_back_on_compliant_ground():
    mech, q = standing()
    held = lw.contact.hold_contacts(mech, q)
    assert lw.constraints.degrees_of_freedom(held, q) == mech.nv - 4
    assert not held.contact_pairs
    balance = lw.find_equilibrium(held, q, solve_for="tau", actuated=MOTORS)
    model = lw.linearize(held, balance.q, None, balance.tau, independent=("x", "z", "pitch"), inputs=MOTORS)
    regulator = lw.control.lqr(model, Q=100.0, R=0.3)
    assert regulator.eigenvalues().real.max() < -0.5
    pushed = np.zeros((3, mech.nv))
    pushed[:, :3] = [[0.2, 0.0, 0.0], [0.0, 0.0, 0.5], [-0.2, -0.2, 0.2]]
    path, rates = lw.rollout(mech, q, pushed, None, 5e-4, 6000, "semi_implicit", feedback=regulator, every=100)
    assert np.abs(path[:, :, :3] - q[:3]).max() > 0.01  # it has moved
    assert np.abs(path[:, -1, :3] - q[:3]).max() < 0.01
    assert np.abs(rates[:, -1]).max() < 0.02


def test_without_holding_the_message_says_what_to_do():
    mech, q = standing()
    servos = [lw.forces.Actuator(j, j, gain=(200.0, 0, 0), bias=(0, -200.0, -5.0)) for j in MOTORS]
    servoed = mech.with_elements(*servos)
    found = lw.find_equilibrium(servoed, q, ctrl=q[3:])
    model = lw.linearize(servoed, found.q, ctrl=q[3:], inputs=MOTORS)
    with pytest.raises(lw.MechanismError, match=r"creep.*lw\.contact\.hold_contacts"):
        lw.control.lqr(model)


def quadruped(gain):
    """With balls for feet, on the ground, a servo at each joint; and its configuration with all feet touching."""
    mech = lw.mechanisms.quadruped(held=())
    legs = [name.removesuffix("_toe") for name in mech.frames if name.endswith("_toe")]
    for leg in legs:
        mech = mech.with_shape(f"{leg}_ball", f"{leg}_toe", "sphere", 0.02)
    servos = [lw.forces.Actuator(j, j, gain=(gain,), bias=(0.0, -gain, -5.0)) for j in mech.joint_names[1:]]
    q = lw.neutral(mech)
    q[6] += 0.02
    return mech.with_ground().with_elements(*servos), q


def test_a_quadruped_on_servos_comes_to_rest_where_it_stands():
    mech, q = quadruped(300.0)
    above = q.copy()
    above[6] += 0.01
    found = lw.find_equilibrium(mech, q)
    dropped = lw.find_equilibrium(mech, above)
    for one in (found, dropped, lw.find_equilibrium(mech, q, stable=True)):
        assert one.distance < 0.05 and one.stable is not False
        forces = lw.inverse_dynamics(mech, one.q, np.zeros(mech.nv), np.zeros(mech.nv), forces="all")
        assert np.abs(forces).max() < 1e-7
        load = lw.contact.contact_points(mech, one.q, np.zeros(mech.nv)).force
        assert load[..., 2].sum() == pytest.approx(9.81 * mech.parameters.masses.sum(), rel=1e-9)
    np.testing.assert_allclose(dropped.q[6], found.q[6], atol=1e-6)
    held = lw.contact.hold_contacts(mech, q)
    standing = lw.find_equilibrium(held, q, stable=True)
    assert standing.stable and standing.distance < 0.05


def test_frames_are_held_where_they_are():
    robot = lw.mechanisms.quadruped(held=())
    toes = [name for name in robot.frames if name.endswith("_toe")]
    built_in, held = lw.mechanisms.quadruped(), lw.contact.hold_frames(robot, toes, points=True)
    assert [loop.name for loop in held.loops] == [f"held:{toe}" for toe in toes]
    stand, rest, motors = robot.initial, np.zeros(robot.nv), robot.joint_names[1:]
    torques = [lw.inverse_dynamics(one, stand, rest, rest, actuated=motors) for one in (held, built_in)]
    np.testing.assert_allclose(*torques, atol=1e-9)
    flat = lw.contact.hold_frames(lw.mechanisms.humanoid(held=()), ("left_sole", "right_sole"))
    assert lw.constraints.degrees_of_freedom(flat, flat.initial) == flat.nv - 12
    bent = {"front_left_knee_joint": 0.3}
    leg = lw.contact.hold_frames(robot, "front_left_toe", bent, points=True)
    assert np.abs(lw.constraints.position_error(leg, lw.configuration(robot, bent))).max() < 1e-12
    with pytest.raises(lw.MechanismError, match=r"has no contacts: lw\.contact\.hold_frames"):
        lw.contact.hold_contacts(robot)
    with pytest.raises(lw.MechanismError, match="no link or frame 'toe'"):
        lw.contact.hold_frames(robot, "toe")
    with pytest.raises(lw.MechanismError, match="'ground' is fixed to the ground already"):
        lw.contact.hold_frames(robot, "ground")


def test_what_nothing_holds_has_no_equilibrium_nearby_and_that_is_said():
    mech, q = quadruped(300.0)
    limp = lw.contact.hold_contacts(mech, q).with_acting(actuators=False)
    with pytest.raises(lw.control.EquilibriumError, match=r"is near this guess.*within=0\.5.*solve_for='tau'"):
        lw.find_equilibrium(limp, q)
    with pytest.raises(ValueError, match="within must be a positive number"):
        lw.find_equilibrium(limp, q, within=-1)
    with pytest.raises(lw.MechanismError, match="within is for solve_for='q'"):
        lw.find_equilibrium(limp, q, solve_for="tau", within=1.0)
    far = lw.find_equilibrium(limp, q, within=4.0)
    assert 0.5 < far.distance < 4.0


def test_a_pendulum_on_a_flat_foot():
    """The foot is a fixed joint, and the rod a pendulum about the ankle: s = sqrt(m g l / (I + m l^2))."""
    builder = lw.Builder().link("foot", 2.0, (0, 0, 0), (0.01, 0.01, 0.01))
    builder.link("rod", 3.0, (0, 0, 0.4), (0.02, 0.02, 0.001))
    builder.joint("root", lw.Floating(), "ground", "foot").joint("ankle", lw.Revolute((0, 1, 0)), "foot", "rod")
    mech = builder.build("stander").with_shape("sole", "foot", "box", (0.1, 0.05, 0.02)).with_ground()
    q = mech.initial.copy()
    q[6] = 0.02
    held = lw.contact.hold_contacts(mech, q)
    assert [loop.n_constraints for loop in held.loops] == [6]
    model = lw.linearize(held, q)
    rate = np.sqrt(3.0 * 9.81 * 0.4 / (0.02 + 3.0 * 0.4**2))
    np.testing.assert_allclose(model.eigenvalues(), [-rate, rate], rtol=1e-9)

    tilted = q.copy()
    tilted[:4] = np.cos(0.1), 0.0, np.sin(0.1), 0.0  # on two of its corners
    tilted[6] -= lw.contact.contact_points(mech, tilted, np.zeros(7)).gap.min()
    assert [loop.n_constraints for loop in lw.contact.hold_contacts(mech, tilted).loops] == [3, 3]
    tilted[6] += 0.1
    with pytest.raises(lw.MechanismError, match="nothing of mechanism 'stander' touches.* smallest gap is 0.1 m"):
        lw.contact.hold_contacts(mech, tilted)


def balancer(shape, size):
    """A body on two wheels, upright on the floor."""
    builder = lw.Builder().link("body", 5.0, (0, 0, 0.3), (0.1, 0.1, 0.05))
    builder.joint("base", lw.Floating(), "ground", "body", (0, 0, 0.1))
    for name, y in (("left", 0.2), ("right", -0.2)):
        builder.link(name, 0.5, inertia=(0.001, 0.002, 0.001))
        builder.joint(f"{name}_axle", lw.Revolute((0, 1, 0)), "body", name, (0, y, 0))
    mech = builder.build("balancer")
    turned = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # z of the shape along the axle
    for name in ("left", "right"):
        mech = mech.with_shape(f"{name}_tyre", name, shape, size, (turned, np.zeros(3)))
    return mech.with_ground()


@pytest.mark.parametrize(("shape", "size"), [("sphere", 0.1), ("cylinder", (0.1, 0.02)), ("capsule", (0.1, 0.02))])
def test_wheels_are_not_held(shape, size):
    """They would not roll: a pendulum about the point that touches is not a balancer."""
    mech = balancer(shape, size)
    match = r"shape 'left_tyre' is round.* joint 'left_axle'.*Builder\.wheel.*docs/rolling\.md"
    with pytest.raises(lw.MechanismError, match=match):
        lw.contact.hold_contacts(mech, lw.configuration(mech, {"base.z": 0.0}))


def test_balls_are_not_held_and_what_stands_on_an_end_is():
    body = lw.Builder().link("one", 1.0, inertia=(0.01, 0.01, 0.01)).joint("base", lw.Floating(), "ground", "one")
    mech, at = body.build("thing"), np.array([1.0, 0, 0, 0, 0, 0, 0.1])
    with pytest.raises(lw.MechanismError, match=r"shape 'ball' is round.* joint 'base'.*Builder\.ball"):
        lw.contact.hold_contacts(mech.with_shape("ball", "one", "sphere", 0.1).with_ground(), at)
    puck = mech.with_shape("puck", "one", "cylinder", (0.3, 0.1)).with_ground()
    assert [loop.n_constraints for loop in lw.contact.hold_contacts(puck, at).loops] == [6]
    below = (np.eye(3), np.array([0, 0, -0.05]))
    foot = mech.with_shape("foot", "one", "sphere", 0.05, below).with_ground()
    assert [loop.n_constraints for loop in lw.contact.hold_contacts(foot, at).loops] == [3]


def test_a_balancer_that_rolls_is_regulated_without_its_place():
    builder = lw.Builder().link("body", 5.0, (0, 0, 0.3), (0.1, 0.1, 0.05))
    builder.joint("base", lw.Floating(), "ground", "body", (0, 0, 0.1))
    for name, y in (("left", 0.2), ("right", -0.2)):
        builder.link(name, 0.5, inertia=(0.001, 0.002, 0.001))
        builder.joint(f"{name}_axle", lw.Revolute((0, 1, 0)), "body", name, (0, y, 0)).wheel(f"{name}_rim", name, 0.1)
    mech = builder.build("balancer")
    model = lw.linearize(mech, lw.neutral(mech), inputs=("left_axle", "right_axle"))
    place = ("base[2]", "base[3]", "base[4]")
    with pytest.raises(lw.MechanismError, match=r"do not reach.*'base\[4\]'.*leave_out=") as refused:
        lw.control.lqr(model)
    assert f"leave_out={place!r}" in str(refused.value)
    with pytest.raises(lw.MechanismError, match=r"leave_out.* depends on 'base\[1\]'"):
        lw.control.lqr(model, leave_out=("base[1]",))
    with pytest.raises(lw.MechanismError, match="no state 'heading'"):
        lw.control.lqr(model, leave_out=("heading",))
    regulator = lw.control.lqr(model, leave_out=place)
    values = np.sort(regulator.eigenvalues().real)
    np.testing.assert_allclose(values[6:], 0.0, atol=1e-9)
    assert values[:6].max() < -0.1
    np.testing.assert_array_equal(regulator.gain[:, [model.state_names.index(name) for name in place]], 0.0)


def test_contacts_that_touch_nothing_are_left_out_of_models():
    """They do nothing near there, and derivatives of many shapes take long to compile; where one touches, all count."""
    builder = (
        lw.Builder().link("body", 2.0, inertia=(0.1, 0.1, 0.1)).joint("z", lw.Prismatic((0, 0, 1)), "ground", "body")
    )
    for k in range(3):
        builder.shape(f"ball{k}", "body", "sphere", 0.1, (0.0, 0.0, 0.3 * k))
    mech = builder.build("balls").with_ground(dissipation=0.0)
    assert away_from_contact(mech, [0.1 - 1e-4]) is None
    assert away_from_contact(mech, [[0.2], [0.05]]) is None
    assert away_from_contact(mech.with_contact(margin=0.02), [0.11]) is None
    above = lw.linearize(mech, {"z": 0.11})
    assert above.mechanism is mech and away_from_contact(mech, [0.11]).contact_pairs == mech.contact_pairs
    np.testing.assert_array_equal(above.A, [[0.0, 1.0], [0.0, 0.0]])
    depth, law = 0.02, mech.contact_pairs[0].law
    assert depth > law.smoothing
    below = lw.linearize(mech, {"z": 0.1 - depth})
    assert below.A[1, 0] == pytest.approx(-law.stiffness / 2.0)
