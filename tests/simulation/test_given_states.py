"""States as callers give them, in one way for all: left out, at rest, with quaternions that are none."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError

BALL = (
    lw.Builder()
    .link("bob", 1.0, (0, 0, -0.5), (0.1, 0.1, 0.1))
    .joint("ball", lw.Spherical(), "ground", "bob")
    .link("tip", 0.5, (0, 0, -0.2), (0.1, 0.1, 0.1))
    .joint("hinge", lw.Revolute((1, 0, 0)), "bob", "tip", pose=(0, 0, -1))
    .build()
)
TILTED = np.array([np.cos(0.2), np.sin(0.2), 0.0, 0.0, 0.3])


def scaled(length: float) -> np.ndarray:
    q = TILTED.copy()
    q[:4] *= length
    return q


TAKERS = {
    "simulate": lambda q: lw.simulate(BALL, q, None, 0.1).q,
    "rollout": lambda q: lw.rollout(BALL, q, None, None, 0.01, 10)[0],
    "rollout with feedback": lambda q: lw.rollout(
        BALL, None, None, None, 0.01, 10, feedback={"target": q, "kp": 5.0, "kd": 1.0}
    )[0],
    "linearize": lambda q: lw.linearize(BALL, q).A,
    "find_equilibrium": lambda q: lw.find_equilibrium(BALL, q, solve_for="tau").tau,
    "joint_feedback": lambda q: lw.control.joint_feedback(BALL, q, kp=1.0)(0.0, lw.neutral(BALL), np.zeros(4)),
    "posture": lambda q: BALL.metadata.with_postures({"up": q}).postures["up"],
    "posture by joint": lambda q: BALL.metadata.with_postures({"up": {"ball": q[:4]}}).postures["up"],
    "target by joint": lambda q: lw.control.joint_feedback(BALL, {"ball": q[:4]}, kp=1.0).target,
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
def test_quaternions_have_one_rule(take):
    """Rounding is taken out; what is no unit quaternion is refused by the name of its joint, zero too."""
    expected = take(TILTED)
    for length in (1.0 + 5e-4, 1.0 - 5e-4):
        np.testing.assert_allclose(take(scaled(length)), expected, rtol=1e-9, atol=1e-10)
    for length in (2.0, 0.5, -3.0):
        with pytest.raises(MechanismError, match=f"joint 'ball' in .* not of unit length but {abs(length):g} long"):
            take(scaled(length))
    with pytest.raises(MechanismError, match="quaternion of joint 'ball' in .* is zero, which is no rotation"):
        take(scaled(0.0))


def test_batches_say_which_joint_and_keep_what_is_unit():
    q = np.stack([TILTED, scaled(1.0 + 1e-4), TILTED])
    paths, _ = lw.rollout(BALL, q.astype(np.float32), np.zeros((3, 4), np.float32), None, 0.01, 2)
    assert paths.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(paths[:, 0, :4], axis=-1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(lw.rollout(BALL, q, None, None, 0.01, 2)[0][0, 0], TILTED)
    with pytest.raises(MechanismError, match="'ball' in q0 is not of unit length but 1.5 long"):
        lw.rollout(BALL, np.stack([TILTED, scaled(1.5)]), None, None, 0.01, 2)
    with np.errstate(invalid="ignore"):
        paths, _ = lw.rollout(BALL, np.stack([TILTED, np.nan * TILTED]), None, None, 0.01, 2)
    assert np.isfinite(paths[0]).all() and np.isnan(paths[1]).any()


def test_guesses_may_have_quaternions_of_any_length_but_zero():
    np.testing.assert_allclose(lw.find_equilibrium(BALL, scaled(3.0)).q, lw.find_equilibrium(BALL, TILTED).q, atol=1e-6)
    with pytest.raises(MechanismError, match="quaternion of joint 'ball' in q_guess is zero"):
        lw.find_equilibrium(BALL, scaled(0.0))


MJCF = """
<mujoco><worldbody><body name="box" pos="0 0 0.75"><freejoint name="free"/><geom type="box" size="1 1 1" mass="1"/>
</body></worldbody></mujoco>
"""


def test_what_is_left_out_is_the_initial_state():
    """The box starts where its file has it, at rest, and falls as everything does; with all three functions."""
    box = lw.load(MJCF)
    motion = lw.simulate(box, None, None, 0.5)
    np.testing.assert_allclose(motion.q[-1], [1, 0, 0, 0, 0, 0, 0.75 - 0.5 * 9.81 * 0.25], atol=1e-8)
    paths, rates = lw.rollout(box, None, None, None, 0.05, 10)
    np.testing.assert_allclose(paths[0], box.initial)
    np.testing.assert_allclose(paths[-1, 6], 0.75 - 0.5 * 9.81 * 0.25, atol=1e-12)
    np.testing.assert_allclose(rates[-1, 5], -9.81 * 0.5)
    np.testing.assert_array_equal(lw.linearize(box).q, box.initial)
    arm = lw.mechanisms.planar_arm(2)
    np.testing.assert_array_equal(lw.simulate(arm, None, None, 0.1).q[0], lw.neutral(arm))
    np.testing.assert_array_equal(lw.find_equilibrium(arm, solve_for="tau").q, lw.neutral(arm))
    single = np.zeros(2, np.float32)
    assert lw.rollout(arm, None, single, None, 0.01, 3)[0].dtype == np.float32


def test_an_open_start_is_told_how_to_be_closed():
    five = lw.mechanisms.five_bar()
    with pytest.raises(lw.constraints.AssemblyError, match=r"close loops first, q = constraints\.assemble\(mech, q\)"):
        lw.simulate(five, [0.3, 0.2, 0.1, 0.4], None, 1.0)
    with pytest.raises(MechanismError, match=r"constraints\.assemble"):
        lw.linearize(five, [0.3, 0.2, 0.1, 0.4])
    with pytest.warns(lw.MechanismWarning, match=r"is open by .*constraints\.assemble"):
        lw.simulate(five, [0.3, 0.2, 0.1, 0.4], None, 0.01, settings=lw.motion.Settings(stabilization=None))
    closed = lw.constraints.assemble(five, [0.3, 0.2, 0.1, 0.4])
    assert lw.simulate(five, closed, None, 0.01).stopped == "duration"


def test_feedback_of_rollouts_by_joint():
    """What ``joint_feedback`` takes by the names of joints, rollouts take too: the same motion as with arrays."""
    target = np.array([*lw.neutral(BALL)[:4], 0.4])
    arrays = {"target": target, "kp": [2.0, 2.0, 2.0, 30.0], "kd": [0.1, 0.2, 0.3, 0.0]}
    named = {"target": {"hinge": 0.4}, "kp": {"ball": 2.0, "hinge": 30.0}, "kd": {"ball": (0.1, 0.2, 0.3)}}
    expected = lw.rollout(BALL, TILTED, None, None, 0.01, 20, feedback=arrays)
    for found, one in zip(lw.rollout(BALL, TILTED, None, None, 0.01, 20, feedback=named), expected, strict=True):
        np.testing.assert_array_equal(found, one)
    single = lw.rollout(BALL, TILTED.astype(np.float32), None, None, 0.01, 20, feedback=named)
    assert single[0].dtype == np.float32
    with pytest.raises(MechanismError, match="no moving joint 'hing': did you mean 'hinge'"):
        lw.rollout(BALL, TILTED, None, None, 0.01, 20, feedback={"kd": {"hing": 1.0}})


def test_forces_of_rollouts_by_joint():
    arm = lw.mechanisms.planar_arm(2)
    named, plain = {"joint2": 1.5}, np.array([0.0, 1.5])
    motion = lw.rollout(arm, None, None, named, 0.01, 3)
    np.testing.assert_array_equal(motion[0], lw.rollout(arm, None, None, plain, 0.01, 3)[0])
    weights = np.ones(2), np.ones(2)
    gradients = (lw.derivatives.rollout_vjp(arm, *motion, tau, 0.01, 3, weights) for tau in (named, plain))
    np.testing.assert_array_equal(*(one["tau"] for one in gradients))
    assert lw.rollout(arm, np.zeros(2, np.float32), None, named, 0.01, 3)[0].dtype == np.float32
    with pytest.raises(lw.MechanismError, match="no moving joint 'elbow'"):
        lw.rollout(arm, None, None, {"elbow": 1.0}, 0.01, 3)


def test_states_by_joint():
    """The others are as in the file; where there are loops, closed with the named joints held."""
    full = np.array([*lw.neutral(BALL)[:4], 0.3])
    rates = np.array([0.0, 0.0, 0.0, 2.0])
    motion = lw.simulate(BALL, {"hinge": 0.3}, {"hinge": 2.0}, 0.1)
    np.testing.assert_array_equal(motion.q[0], full)
    np.testing.assert_array_equal(motion.v[0], rates)
    for found, expected in zip(
        lw.rollout(BALL, {"hinge": 0.3}, {"hinge": 2.0}, None, 0.01, 5),
        lw.rollout(BALL, full, rates, None, 0.01, 5),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(lw.linearize(BALL, {"hinge": 0.3}).q, full)
    single = lw.rollout(BALL, {"hinge": 0.3}, np.zeros(4, np.float32), None, 0.01, 5)
    assert single[0].dtype == np.float32
    four_bar = lw.mechanisms.four_bar()
    name = four_bar.joint_names[0]
    motion = lw.simulate(four_bar, {name: 0.4}, None, 0.01)
    np.testing.assert_allclose(motion.q[0][four_bar.q_index(name)], 0.4)
    with pytest.raises(MechanismError, match="no moving joint 'hing': did you mean 'hinge'"):
        lw.simulate(BALL, {"hing": 0.3}, None, 0.1)


def test_springs_and_damping_of_a_file_act_as_feedback_of_rollouts():
    mech = lw.load(
        """<mujoco><worldbody><body name="a">
        <joint name="hinge" axis="0 1 0" damping="0.5" stiffness="4" springref="30"/>
        <geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05" mass="1"/></body></worldbody></mujoco>"""
    )
    feedback = {"target": mech.parameters.spring_rest, "kp": mech.parameters.stiffness, "kd": mech.parameters.damping}
    bare = mech.with_acting(False)
    paths, _ = lw.rollout(bare, None, None, None, 1e-4, 10_000, feedback=feedback, every=10_000)
    exact = lw.simulate(mech, None, None, 1.0).q[-1]
    np.testing.assert_allclose(paths[-1], exact, atol=2e-4)
    assert abs(exact[0]) > 0.1


def test_a_start_that_cannot_be_closed_names_assemble():
    pin = lw.Revolute((0, 0, 1))
    builder = lw.Builder("bars")
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        builder.link(name, 1.0, (length / 2, 0, 0), (1e-3, 1e-3, 1e-3))
    builder.joint("a", pin, "ground", "crank").joint("b", pin, "crank", "coupler", pose=(0.2, 0, 0))
    builder.joint("d", pin, "ground", "rocker", pose=(0.5, 0, 0))
    mech = builder.loop("c", pin, "coupler", (0.5, 0, 0), "rocker", (0.4, 0, 0)).build(gravity=(0, -9.81, 0))
    with pytest.raises(lw.constraints.AssemblyError, match=r"q0 = constraints\.assemble\(mech, guess\)") as refused:
        lw.simulate(mech, [0.0, 0.0, 0.0], None, 1.0)
    assert "pose_a" not in str(refused.value)  # its geometry is right: it closes from further away
    assert np.abs(lw.constraints.position_error(mech, lw.constraints.assemble(mech, [0.0, 0.0, 0.0]))).max() < 1e-9


def test_a_closed_mechanism_left_out_starts_assembled():
    """The neutral configuration of these bars is open; all three functions close it in the same way."""
    pin = lw.Revolute((0, 0, 1))
    builder = lw.Builder("bars")
    for name, length in (("crank", 0.3), ("coupler", 0.6), ("rocker", 0.5)):
        builder.link(name, 1.0, (length / 2, 0, 0), (1e-3, 1e-3, 1e-3))
    builder.joint("a", pin, "ground", "crank").joint("b", pin, "crank", "coupler", pose=(0.3, 0, 0))
    builder.joint("d", pin, "ground", "rocker", pose=(0.7, 0.1, 0))
    mech = builder.loop("c", pin, "coupler", (0.6, 0, 0), "rocker", (0.5, 0, 0)).build(gravity=(0, -9.81, 0))
    assert np.abs(lw.constraints.position_error(mech, mech.initial)).max() > 0.1
    expected = lw.constraints.assemble(mech, mech.initial)
    np.testing.assert_allclose(lw.simulate(mech, None, None, 0.01).q[0], expected, atol=1e-12)
    np.testing.assert_allclose(lw.rollout(mech, None, None, None, 1e-3, 2)[0][0], expected, atol=1e-12)
    np.testing.assert_allclose(lw.linearize(mech).q, expected, atol=1e-12)
    assert lw.rollout(mech, None, np.zeros(3, np.float32), None, 1e-3, 2)[0].dtype == np.float32


def crank_and_slider():
    """A crank of 0.3 m and a rod of 1 m that drive a slider along x."""
    pin = lw.Revolute((0, 0, 1))
    builder = lw.Builder("slider-crank")
    for name, length in (("arm", 0.3), ("rod", 1.0), ("block", 0.1)):
        builder.link(name, 1.0, (length / 2, 0, 0), (1e-3, 1e-3, 1e-3))
    builder.joint("crank", pin, "ground", "arm").joint("knee", pin, "arm", "rod", pose=(0.3, 0, 0))
    builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "block")
    return builder.loop("pin", pin, "rod", (1.0, 0, 0), "block", (0, 0, 0)).build(gravity=(0, -9.81, 0))


def textbook_slider(angle, speed):
    """dx/dt of the slider, from x = r cos a + sqrt(l^2 - r^2 sin^2 a)."""
    r, length = 0.3, 1.0
    return -r * np.sin(angle) * (1.0 + r * np.cos(angle) / np.sqrt(length**2 - (r * np.sin(angle)) ** 2)) * speed


def test_named_joints_of_loops_keep_their_velocities(recwarn):
    mech = crank_and_slider()
    start = {"crank": 1.0, "slide": 0.3 * np.cos(1.0) + np.sqrt(1.0 - (0.3 * np.sin(1.0)) ** 2)}
    found = [
        lw.simulate(mech, start, {"crank": 10.0}, 0.01).v[0],
        lw.rollout(mech, start, {"crank": 10.0}, None, 1e-3, 2)[1][0],
        lw.linearize(mech, start, {"crank": 10.0}).v,
    ]
    for v in found:
        np.testing.assert_allclose(v[mech.v_index("crank")], 10.0, rtol=1e-9)
        np.testing.assert_allclose(v[mech.v_index("slide")], textbook_slider(1.0, 10.0), rtol=1e-8)
    angles = np.array([0.4, 1.0, 2.0])
    q = np.stack([lw.constraints.assemble(mech, [a, -a, 1.0], hold=["crank"]) for a in angles])
    v = lw.rollout(mech, q, {"crank": 2.0}, None, 1e-3, 2)[1][:, 0]
    np.testing.assert_allclose(v[:, mech.v_index("slide")][:, 0], textbook_slider(angles, 2.0), rtol=1e-8)
    consistent = {"crank": 10.0, "slide": textbook_slider(1.0, 10.0)}
    np.testing.assert_allclose(lw.simulate(mech, start, consistent, 0.01).v[0], found[0], rtol=1e-8)
    assert not recwarn.list


def test_velocities_that_loops_do_not_allow_are_refused_by_name():
    mech = crank_and_slider()
    takers = [
        lambda q, v: lw.simulate(mech, q, v, 0.01),
        lambda q, v: lw.rollout(mech, q, v, None, 1e-3, 2),
        lambda q, v: lw.linearize(mech, q, v),
    ]
    dead_centre = {"crank": 0.0, "knee": 0.0, "slide": 1.3}
    for take in takers:
        with pytest.raises(MechanismError, match="loop 'pin' .* does not let 'crank', 'slide' move with these"):
            take({"crank": 1.0}, {"crank": 10.0, "slide": 1.0})
        with pytest.raises(MechanismError, match="does not let 'slide' move .* where the position is singular"):
            take(dead_centre, {"slide": 1.0})


def test_one_gain_drives_no_floating_base():
    """As with ``joint_feedback``: the mass centre of a free robot falls, whatever its motors do."""
    robot = lw.mechanisms.random_tree(4, seed=2, joints=("revolute",), floating_base=True)
    q, v = lw.neutral(robot), np.zeros(robot.nv)
    motors = lw.control.joint_feedback(robot, q, kp=1.0).actuated
    assert motors.any() and not motors.all()
    target = lw.integrate(robot, q, 0.3 * np.ones(robot.nv), 1.0)
    one, each = (
        lw.rollout(robot, q, v, None, 1e-3, 200, feedback={"target": target, "kp": 3.0 * x, "kd": 0.1 * x})
        for x in (1.0, motors.astype(float))
    )
    np.testing.assert_array_equal(one[0], each[0])
    fall = 0.5 * robot.gravity * 0.2**2
    start, end = lw.center_of_mass(robot, one[0][[0, -1]])
    np.testing.assert_allclose(end - start, fall, atol=1e-6)
    some = robot.metadata.with_actuated(robot.joint_names[-1])
    driven = lw.rollout(some, q, v, None, 1e-3, 200, feedback={"target": target, "kp": 3.0})
    named = lw.rollout(some, q, v, None, 1e-3, 200, feedback={"target": target, "kp": {robot.joint_names[-1]: 3.0}})
    np.testing.assert_array_equal(driven[0], named[0])


def test_configurations_by_joint():
    """As the functions of arrays take them."""
    arm = lw.mechanisms.puma560()
    np.testing.assert_array_equal(lw.configuration(arm, joint2=0.3), [0, 0.3, 0, 0, 0, 0])
    np.testing.assert_array_equal(lw.configuration(arm, {"joint6": 0.1}, joint2=0.3), [0, 0.3, 0, 0, 0, 0.1])
    np.testing.assert_array_equal(lw.configuration(arm), arm.initial)
    linkage = lw.mechanisms.four_bar()
    q = lw.configuration(linkage, crank_joint=0.9)
    assert np.abs(lw.constraints.position_error(linkage, q)).max() < 1e-9 and abs(q[0] - 0.9) < 1e-9
    with pytest.raises(lw.MechanismError, match="joint22"):
        lw.configuration(arm, joint22=1.0)
