"""What looks wrong about a state: in other libraries' orders and units, beyond limits, with open loops."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw

ROBOT = """<robot name="robot"><link name="base"><inertial><mass value="5"/><inertia ixx="1" iyy="1" izz="1" ixy="0"
  ixz="0" iyz="0"/></inertial></link><link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"
  ixy="0" ixz="0" iyz="0"/></inertial></link><link name="rod"><inertial><mass value="1"/><inertia ixx="1" iyy="1"
  izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="hip" type="revolute"><parent link="base"/>
  <child link="arm"/><axis xyz="0 1 0"/><limit lower="-1.5" upper="1.5" effort="9" velocity="3"/></joint>
  <joint name="reach" type="prismatic"><parent link="arm"/><child link="rod"/><axis xyz="0 1 0"/>
  <limit lower="0" upper="0.2" effort="9" velocity="3"/></joint></robot>"""
MECH = lw.load(ROBOT, floating_base=True)
GOOD = np.array([0.5, 0.5, -0.5, 0.5, 1.0, 2.0, 3.0, 0.3, 0.1])


def only(*found: str) -> str:
    """The one sentence."""
    (sentence,) = found
    return sentence


def test_good_states_are_not_talked_about():
    assert lw.motion.check_state(MECH, GOOD) == ()
    assert lw.motion.check_state(MECH, GOOD, np.ones(8)) == ()
    assert lw.motion.check_state(MECH, np.tile(GOOD, (3, 2, 1)), np.ones(8)) == ()
    assert lw.motion.check_state(MECH, {"hip": 0.2}) == ()
    for mech in (lw.mechanisms.puma560(), lw.mechanisms.random_tree(9, 1, floating_base=True)):
        q, v = lw.random_state(mech, np.random.default_rng(0), (20,))
        assert [x for x in lw.motion.check_state(mech, q, v) if "limit" not in x] == []


@pytest.mark.parametrize("library, order", [("pinocchio", "qx, qy, qz, qw"), ("mujoco", "qw, qx, qy, qz")])
def test_orders_of_other_libraries(library, order):
    pytest.importorskip(library)
    tilted = GOOD.copy()
    tilted[:4] = np.array([0.9, 0.1, -0.2, 0.3]) / np.linalg.norm([0.9, 0.1, -0.2, 0.3])
    model = getattr(lw.interop, f"{library}_model")(MECH)
    there = getattr(lw.interop, f"to_{library}")(MECH, model)
    told = only(*lw.motion.check_state(MECH, there.q(tilted)))
    assert told.startswith("the quaternion of joint 'floating_base' in q is ")
    assert f"looks like {library.capitalize().replace('joco', 'JoCo')}'s [x, y, z, {order}]" in told
    assert f"lw.interop.from_{library} converts" in told
    assert lw.motion.check_state(MECH, there.inverse.q(there.q(tilted))) == ()


def test_the_identity_in_the_order_of_pinocchio():
    told = only(*lw.motion.check_state(MECH, [0, 0, 0, 0, 0, 0, 1, 0, 0]))
    assert "is 0 long, not 1" in told and "looks like Pinocchio's" in told
    builder = lw.Builder().link("ball", 1.0, (0, 0, 1), (1, 1, 1)).joint("b", lw.Spherical(), "ground", "ball")
    told = only(*lw.motion.check_state(builder.build(), [0, 0, 0, 1]))
    assert "half a turn about z" in told and "[x, y, z, w] of Pinocchio" in told


def test_states_of_a_batch_are_named():
    q = np.tile(GOOD, (4, 1))
    q[1:3, 0] = 3.0
    q[2, 7] = np.nan
    not_finite, length = lw.motion.check_state(MECH, q)
    assert not_finite == "q is not finite at 'hip' in state (2,)"
    assert "in state (1,) and 1 more" in length
    grid = np.tile(GOOD, (2, 3, 1))
    grid[1, 2, 8] = 0.5
    assert only(*lw.motion.check_state(MECH, grid)) == "q of 'reach' is 0.5 in state (1, 2), beyond its limits 0 .. 0.2"


def test_limits_and_units():
    q = GOOD.copy()
    q[7:] = 30.0, 100.0
    degrees, millimetres = lw.motion.check_state(MECH, q)
    assert degrees == "q of 'hip' is 30, beyond its limits -1.5 .. 1.5: it looks like degrees, 0.523599 is within them"
    assert millimetres.endswith("it looks like millimetres, 0.1 is within them")
    q[7:] = 1.6, 0.1
    assert only(*lw.motion.check_state(MECH, q)) == "q of 'hip' is 1.6, beyond its limits -1.5 .. 1.5"
    v = np.zeros(8)
    v[6] = -4.0
    assert only(*lw.motion.check_state(MECH, GOOD, v)) == "v of 'hip' is -4, beyond its limit 3"


def test_wrong_lengths_say_what_they_may_be():
    told = only(*lw.motion.check_state(MECH, np.zeros(8)))
    assert told.startswith("q has shape (8,), not (..., 9): that is the length of v")
    both = lw.motion.check_state(MECH, np.zeros(3), np.zeros(9))
    assert both[0] == "q has shape (3,), not (..., 9)" and "that is the length of q" in both[1]
    builder = lw.Builder().link("a", 1.0, (1, 0, 0), (1, 1, 1)).link("b", 1.0, (1, 0, 0), (1, 1, 1))
    builder.joint("turn", lw.Revolute((0, 0, 1)), "ground", "a")
    hand = builder.joint("copy", lw.Revolute((0, 0, 1)), "a", "b", mimic=lw.Mimic("turn")).build()
    assert "joints that mimic others are not part of it ('copy')" in only(
        *lw.motion.check_state(hand, np.zeros((5, 2)))
    )
    spinning = lw.mechanisms.planar_arm(2)
    assert "Pinocchio has cosine and sine of unlimited joints" in only(*lw.motion.check_state(spinning, np.zeros(4)))
    with pytest.raises(lw.MechanismError, match="expected .* that is the length of v; q has four numbers"):
        lw.forward_dynamics(MECH, np.zeros((2, 8)), np.zeros(8), np.zeros(8), method="svd")


def test_loops():
    mech = lw.mechanisms.four_bar()
    q = lw.constraints.assemble(mech, mech.initial)
    v = lw.constraints.null_space(mech, q)[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lw.motion.check_state(mech, q, v) == ()
        assert "is open by" in only(*lw.motion.check_state(mech, q + 0.1, v))
        assert only(*lw.motion.check_state(mech, np.stack([q, q]), np.stack([v, v + 1.0]))).startswith("v opens loop")
        assert "in state (1,)" in only(*lw.motion.check_state(mech, np.stack([q, q]), np.stack([v, v + 1.0])))


def test_errors_name_it():
    with pytest.raises(
        lw.MechanismError, match=r"is zero, which is no rotation.*linkwise\.motion\.check_state\(mech, q\)"
    ):
        lw.rollout(MECH, np.zeros(9), np.zeros(8), None, 0.01, 2)
    with pytest.raises(
        lw.MechanismError, match=r"not of unit length but 2 long.*linkwise\.motion\.check_state\(mech, q\)"
    ):
        lw.linearize(MECH, [2.0, 0, 0, 0, 0, 0, 0, 0, 0])
    with pytest.raises(
        lw.KernelError, match=r"q has shape \(8,\), expected \(\.\.\., 9\); linkwise\.motion\.check_state"
    ):
        lw.mass_matrix(MECH, np.zeros(8))
    with pytest.raises(lw.MechanismError, match="q has dtype"):
        lw.motion.check_state(MECH, np.array(["a"] * 9))


# -- numbers that are none ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["cpu", "numpy"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_nan_does_not_vanish_where_a_coordinate_folds_away(target, dtype):
    """The first joint of an upright arm is along gravity: nothing is computed from it."""
    mech = lw.mechanisms.puma560()
    rng = np.random.default_rng(0)
    q, v = (x.astype(dtype) for x in lw.random_state(mech, rng, (23,)))
    kernel = lw.compile("forward_dynamics", mech, dtype=dtype, target=target)
    assert [x.tolist() for x in kernel.program.unread] == [[0], [], []]
    expected = kernel(q, v, v)
    bad = q.copy()
    bad[5, 0] = bad[21, 0] = np.nan
    found = kernel(bad, v, v)
    unknown = np.zeros(23, bool)
    unknown[[5, 21]] = True
    assert np.isnan(found[unknown]).all()
    np.testing.assert_array_equal(found[~unknown], expected[~unknown])
    assert np.isnan(kernel(bad[5], v[5], v[5])).all()  # one state
    bad[5, 0] = np.inf
    assert np.isfinite(kernel(bad[5], v[5], v[5])).all()


def test_a_nan_shows_up_whichever_number_of_the_state_it_is():
    """Dynamics, kinematics of one link and constants among results; programs with loops over links too."""
    chain = lw.mechanisms.chain(60)
    for mech in (lw.mechanisms.planar_arm(3), MECH, chain):
        q, v = lw.random_state(mech, np.random.default_rng(1))
        for name in ("forward_dynamics", "inverse_dynamics", "mass_matrix", "gravity_force", "kinetic_energy"):
            kernel = lw.compile(name, mech)
            arrays = dict(zip(kernel.inputs, (q, v, v), strict=False))
            assert all(np.isfinite(x).all() for x in np.atleast_1d(kernel(*arrays.values())))
            for which in arrays:
                for k in (0, len(arrays[which]) // 2, len(arrays[which]) - 1):
                    bad = {**arrays, which: arrays[which].copy()}
                    bad[which][k] = np.nan
                    assert np.isnan(kernel(*bad.values())).any(), (mech.name, name, which, k)
                    assert np.isfinite(kernel(*arrays.values())).all()  # nothing is left behind
    pose = lw.frame_pose(chain, np.where(np.arange(60) == 50, np.nan, 0.1), "link3")
    assert np.isnan(pose).any() and pose[3, 3] == 1.0


@pytest.mark.parametrize("target", ["cpu", "numpy"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("count", [1, 23])
def test_a_nan_shows_up_where_results_are_constants_or_inputs(target, dtype, count):
    """Of a gantry, whose mass matrix is constant; of a slider of mass 1, whose acceleration is its force."""
    gantry = lw.Builder()
    for parent, link, axis in (("ground", "x", (1, 0, 0)), ("x", "y", (0, 1, 0)), ("y", "z", (0, 0, 1))):
        gantry.link(link, 2.0).joint(link, lw.Prismatic(axis), parent, link)
    slider = lw.Builder().link("slider", 1.0).joint("slide", lw.Prismatic((1, 0, 0)), "ground", "slider")
    for mech in (gantry.build(), slider.build()):
        for name in ("mass_matrix", "gravity_force", "forward_dynamics", "bias_force", "mass_matrix_inverse"):
            kernel = lw.compile(name, mech, target=target, dtype=dtype)
            arrays = {name: np.ones((count, mech.nv), dtype) for name in kernel.inputs}
            expected = kernel(*arrays.values())
            assert np.isfinite(expected).all()
            for which in arrays:
                bad = {**arrays, which: arrays[which].copy()}
                bad[which][-1, 0] = np.nan
                found = kernel(*bad.values())
                assert np.isnan(found[-1]).any(), (mech.name, name, which)
                np.testing.assert_array_equal(found[:-1], expected[:-1])
                np.testing.assert_array_equal(kernel(*arrays.values()), expected)  # nothing is left behind
                bad[which] = bad[which][-1]  # one for all states
                found = kernel(*bad.values())
                assert np.isnan(found.reshape(-1, *expected.shape[1:])).any(axis=tuple(range(1, expected.ndim))).all()
                np.testing.assert_array_equal(kernel(*arrays.values()), expected)
