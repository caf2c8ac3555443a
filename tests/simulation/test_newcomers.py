"""What stopped new users of simulation: silent starts beyond limits, steps of files, gradients of other motions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw

HINGE = """<mujoco><option timestep="0.004"/><worldbody><body><joint name="hip" axis="0 1 0" range="-30 60"/>
  <geom size="0.1" pos="0.5 0 0"/></body></worldbody><actuator><motor name="m" joint="hip" ctrlrange="-1 1"/></actuator>
  </mujoco>"""


@pytest.fixture(scope="module")
def hinge():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.files.OmissionWarning)
        return lw.load(HINGE)


def test_starts_beyond_limits_are_told(hinge):
    told = "starts beyond limits that act, and is pushed back: 'hip' at 1.5, outside -0.5236 .. 1.047; np.clip"
    with pytest.warns(lw.motion.LimitWarning, match=told):
        lw.simulate(hinge, [1.5], None, 0.01)
    with pytest.warns(lw.motion.LimitWarning, match=told):
        lw.rollout(hinge.with_gravity((0, 0, -9.0)), [[0.0], [1.5]], [0.0], None, 1e-3, 2)
    with pytest.warns(lw.motion.LimitWarning, match=told):  # whatever was called before
        lw.rollout(hinge, [1.5], [0.0], None, 1e-3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.rollout(hinge.with_gravity((0, 0, -9.0)), [1.047 + 0.19], [0.0], None, 1e-3, 2)  # as stops give way
        lw.rollout(hinge, [1.0], [0.0], None, 1e-3, 2)
        lw.rollout(hinge.with_acting(limits=False), [1.5], [0.0], None, 1e-3, 2)


def test_the_pose_of_the_file_is_meant():
    """Joints that the file itself puts beyond their limits, as gymnasium's ant its ankles, and noise about the pose."""
    text = HINGE.replace('range="-30 60"', 'range="30 70"')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", lw.files.OmissionWarning)
        mech = lw.load(text)
        lw.rollout(mech, None, None, None, 1e-3, 2)
        lw.rollout(mech, [[-0.1], [0.1]], None, None, 1e-3, 2)
        lw.simulate(mech, None, None, 0.01)
    with pytest.warns(lw.motion.LimitWarning, match="'hip' at -0.5, outside 0.5236"):
        lw.rollout(mech, [-0.5], None, None, 1e-3, 2)


URDF = """<robot name="arm"><link name="base"/><link name="rod"><inertial><origin xyz="0.3 0 0"/><mass value="1"/>
  <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
  <limit lower="LOWER" upper="5.4" effort="9" velocity="5"/></joint></robot>"""


def test_neutral_of_a_urdf_is_nobodys_choice():
    """Nor is the other side of the limits, nor what is nearer to them than neutral."""
    text = URDF.replace("LOWER", "0.82")
    for q in (None, [0.0], [0.5], [-0.15], [6.0], [-0.3], [-2.0]):
        at = 0.0 if q is None else q[0]
        with pytest.warns(
            lw.motion.LimitWarning, match=rf"'hinge' at {at:g}, outside 0.82 .. 5.4; np.clip.*with_initial"
        ):
            lw.simulate(lw.load(text), q, None, 0.001)
    arm = lw.load(text)
    with pytest.warns(lw.motion.LimitWarning) as told:
        lw.rollout(arm, None, None, None, 1e-3, 2)
        lw.rollout(arm, [[0.0], [6.0]], None, None, 1e-3, 2)
    assert len(told) == 2  # one of each call
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        within = np.clip(arm.initial, arm.limits.lower, arm.limits.upper)
        for mech, q in (
            (arm, within),
            (arm, [0.7]),
            (arm.metadata.with_initial(within), None),
            (arm.metadata.with_initial([0.5]), None),
        ):
            lw.simulate(mech.with_gravity((0, 0, -9.0)), q, None, 0.001)
        lw.simulate(lw.load(URDF.replace("LOWER", "0.009")), None, None, 0.001)  # stops are pressed in as deep
    with pytest.warns(lw.motion.LimitWarning, match="'hinge' at 0, outside 0.07 .. 5.4"):
        lw.simulate(lw.load(URDF.replace("LOWER", "0.07")), None, None, 0.001)


def test_a_place_of_the_file_is_meant_for_its_joint_and_side_alone():
    """Two hinges beyond their limits by the file, one of them in a keyframe; what is as far outside elsewhere is not
    meant."""
    body = '<body><joint name="{}" axis="0 1 0" range="{}"/><geom size="0.1" pos="0.5 0 0" contype="0"/>{}</body>'
    tree = body.format("hip", "60 120", body.format("knee", "-30 30", ""))
    key = '<keyframe><key name="bent" qpos="1.5 2"/></keyframe>'
    mech = lw.load(f'<mujoco><compiler autolimits="true"/><worldbody>{tree}</worldbody>{key}</mujoco>')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.simulate(mech, None, None, 0.001)  # the hip at zero, where the file has it
        lw.simulate(mech, mech.postures["bent"], None, 0.001)
        lw.rollout(mech, [[0.0, 2.0], [0.1, 0.0]], None, None, 1e-3, 2)
    with pytest.warns(lw.motion.LimitWarning, match="'hip' at 3.1, outside 1.047 .. 2.094, 'knee' at -2, outside"):
        lw.rollout(mech, [[0.0, -2.0], [3.1, 2.0]], None, None, 1e-3, 2)


def test_springs_of_joints_leave_limits_as_they_are(hinge):
    still = hinge.with_gravity((0, 0, 0))
    springs = still.parameters.with_springs({"hip": 30.0}, rest={"hip": 0.4})
    np.testing.assert_allclose(lw.forces.joint_forces(springs, [0.1], [0.0]), [30.0 * 0.3], rtol=1e-12)
    np.testing.assert_allclose(
        lw.forces.joint_forces(springs.parameters.with_springs({"hip": 10.0}), [0.1], [0.0]), [10.0 * 0.3]
    )
    assert (
        lw.forces.joint_forces(springs, [1.2], [0.0])[0] < lw.forces.joint_forces(still, [1.2], [0.0])[0] - 20.0 < -20.0
    )
    with pytest.raises(lw.MechanismError, match="rest names joint 'hip', which is given no stiffness"):
        hinge.parameters.with_springs({}, rest={"hip": 0.4})
    with pytest.raises(lw.MechanismError, match="joint 'hip'.*stiffness"):
        hinge.parameters.with_springs({"hip": -1.0})


def test_limits_that_passive_leaves_out_are_reported(hinge):
    mech = hinge.with_gravity((0, 0, -8.0))
    passive = lw.forces.Passive.of(mech) + lw.forces.Passive.springs({"hip": 3.0})
    with pytest.warns(
        lw.motion.LimitWarning, match="passive takes the place of limits too: those of 'hip' of mechanism"
    ):
        lw.rollout(mech, [0.1], [0.0], None, 1e-3, 2, passive=passive)
    with pytest.warns(lw.motion.LimitWarning, match=r"lw.forces.Passive.of\(mech, limit_stiffness=...\) has stops"):
        lw.simulate(hinge.with_gravity((0, 0, -7.0)), [0.1], [0.0], 0.01, passive=passive)
    with pytest.warns(
        lw.motion.LimitWarning, match="passive takes the place of limits too"
    ):  # whatever was called before
        lw.rollout(mech, [0.1], [0.0], None, 1e-3, 2, passive=passive)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = hinge.with_gravity((0, 0, -6.0))
        for silent in (lw.forces.Passive(), passive + lw.forces.Passive.of(other, limit_stiffness=100.0)):
            lw.rollout(other, [0.1], [0.0], None, 1e-3, 2, passive=silent)
        lw.rollout(other.with_acting(limits=False), [0.1], [0.0], None, 1e-3, 2, passive=passive)


def test_tendons_take_dictionaries():
    assert lw.forces.Tendon("cable", {"shin": 0.1, "foot": -0.1}) == lw.forces.Tendon(
        "cable", (("shin", 0.1), ("foot", -0.1))
    )
    for wrong in ("shin", [1.0, 2.0], [("shin",)], 3.0):
        with pytest.raises(lw.MechanismError, match="the joints of tendon 'cable' must be {joint: coefficient}, got"):
            lw.forces.Tendon("cable", wrong)


def test_controls_that_are_functions_are_told_of_held(hinge):
    for given in ({"ctrl": lambda t, q, v: 0.0 * v}, {"tau": lambda t, q, v: 0.0 * v}):
        with pytest.raises(TypeError, match=r"=lw.motion.held\(control, period\)"):
            lw.rollout(hinge, None, None, given.get("tau"), 1e-3, 2, ctrl=given.get("ctrl"))


def test_contact_of_tied_joints_comes_to_rest_in_long_steps():
    builder = lw.Builder().link("cart", 1.0).link("other", 1.0)
    builder.joint("z", lw.Prismatic((0, 0, 1)), "ground", "cart")
    builder.joint("w", lw.Prismatic((0, 0, 1)), "ground", "other", mimic=lw.Mimic("z", 1.0, 0.0))
    mech = builder.shape("skin", "cart", "sphere", 0.1).build().with_ground()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q, v = lw.rollout(mech, [0.2], None, None, 0.01, 200, "semi_implicit")
    assert abs(q[-1, 0] - 0.1) < 0.002 and abs(v[-1, 0]) < 1e-6


def test_the_time_step_of_a_file(hinge):
    assert hinge.metadata.timestep == 0.004 and lw.mechanisms.double_pendulum().metadata.timestep is None
    found, expected = (lw.rollout(hinge, [0.1], [0.0], None, dt, 5) for dt in (None, 0.004))
    np.testing.assert_array_equal(found[0], expected[0])
    with pytest.raises(lw.KernelError, match="dt is missing, and mechanism 'double_pendulum' has no time step"):
        lw.rollout(lw.mechanisms.double_pendulum(), None, None, None, None, 5)
    assert hinge.with_gravity((0, 0, -1.6)).parameters.with_damping(hip=0.1).metadata.timestep == 0.004
    assert lw.load(lw.interop.mjcf_text(hinge)).metadata.timestep == 0.004
    silent = HINGE.replace('<option timestep="0.004"/>', "<option/>")
    for text in (silent, silent.replace("<option/>", "")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.files.OmissionWarning)
            assert lw.load(text).metadata.timestep == 0.002  # the format's default


def test_gradients_tell_that_the_motion_is_another(hinge):
    ctrl, options = np.full((20, 1), 0.5), {"wrt": "q0"}
    motion = lw.rollout(hinge, [0.1], [0.0], None, 1e-3, 20, ctrl=ctrl)
    weights = (np.ones(1), None)
    lw.derivatives.rollout_vjp(hinge, *motion, None, 1e-3, 20, weights, ctrl=ctrl, **options)
    for wrong in ({"method": "semi_implicit", "ctrl": ctrl}, {"ctrl": 0.8 * ctrl}, {}):
        with pytest.raises(lw.KernelError, match="are not the motion that rollout makes with these arguments"):
            lw.derivatives.rollout_vjp(hinge, *motion, None, 1e-3, 20, weights, **wrong, **options)
    kept = lw.rollout(hinge, [0.1], [0.0], None, 1e-3, 20, ctrl=ctrl, every=5)
    middle = ctrl.copy()
    middle[8] = 0.9
    with pytest.raises(lw.KernelError, match="at step 10 they are off by"):
        lw.derivatives.rollout_vjp(hinge, *kept, None, 1e-3, 20, weights, ctrl=middle, **options)


def test_gradients_by_control_inputs_at_their_bounds_are_zero(hinge):
    for u, moves in ((0.9, True), (1.0, False), (1.3, False)):
        ctrl = np.full((10, 1), u)
        motion = lw.rollout(hinge, [0.1], [0.0], None, 1e-3, 10, ctrl=ctrl)
        found = lw.derivatives.rollout_vjp(hinge, *motion, None, 1e-3, 10, (np.ones(1), None), wrt="ctrl", ctrl=ctrl)[
            "ctrl"
        ]
        assert bool(found[:-1].any()) == moves


def test_a_shape_that_comes_after_the_ground_is_on_it_too():
    ball = lw.Builder().link("ball", 1.0, inertia=(0.1, 0.1, 0.1)).joint("free", lw.Floating(), "ground", "ball")
    ball = ball.shape("skin", "ball", "sphere", 0.2).build()
    late = ball.with_ground(step=5e-4).with_shape("nose", "ball", "sphere", 0.1, (0.2, 0, 0))
    early = ball.with_shape("nose", "ball", "sphere", 0.1, (0.2, 0, 0)).with_ground(step=5e-4)
    assert set(late.contact_pairs) == set(early.contact_pairs)
    stone = ball.with_ground().with_shape("stone", "ground", "sphere", 0.1)
    assert len(stone.contact_pairs) == 1
    some = ball.with_shape("tail", "ball", "sphere", 0.1).with_ground(shapes=["skin"])
    with pytest.warns(
        lw.MechanismWarning, match=r"'nose' does not touch 'floor', as some others do: mech.with_contact"
    ):
        assert len(some.with_shape("nose", "ball", "sphere", 0.1).contact_pairs) == 1


def test_semi_implicit_steps_that_diverge_are_not_told_to_be_semi_implicit():
    arm = lw.mechanisms.planar_arm(2)
    for method, advised in (("rk4", True), ("semi_implicit", False)):
        with pytest.warns(UserWarning, match=f"steps of '{method}' are too long") as found:
            lw.rollout(arm, [1.0, 0.5], [1e60, -1e60], None, 0.5, 200, method)
        said = [str(one.message) for one in found if "are too long for the motion" in str(one.message)]
        assert len(said) == 1 and "smaller steps" in said[0] and "radau" in said[0]
        assert ("method='semi_implicit'" in said[0]) == advised


def test_when_motions_were_lost_is_said_as_far_as_it_is_known():
    """Of every state the step, of others the records that it lies between, whatever the direction of time."""
    arm, known = lw.mechanisms.planar_arm(2), {}
    kept = {"all": {}, "some": {"every": 4}, "last": {"final_only": True}}
    for dt in (0.01, -0.01):
        for name, options in kept.items():
            with pytest.warns(UserWarning, match="beyond all numbers") as found:
                lw.rollout(arm, [[0.0, 0.0], [1.0, 0.5]], [[0, 0], [1e60, -1e60]], None, dt, 8, **options)
            (said,) = (str(one.message) for one in found if "beyond all numbers" in str(one.message))
            known[name] = said.split("beyond all numbers, ")[1].split(" (1 of 2 states)")[0]
        sign = "-" * (dt < 0)
        assert known["all"] == f"first in state (1,), at t = {sign}0.01 s"
        assert known["some"] == f"in state (1,), between t = 0 s and {sign}0.04 s"
        assert known["last"] == f"in state (1,), between t = 0 s and {sign}0.08 s"
