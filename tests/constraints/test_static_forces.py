"""Forces that hold closed mechanisms still, by virtual work: what the weight and a load do along the motion."""

import numpy as np
import pytest

import linkwise as lw

STEP = 1e-5


@pytest.mark.parametrize("motor", ["crank_joint", "slider_joint"])
def test_weight_and_load_of_a_slider_crank(motor):
    mech, push = lw.mechanisms.slider_crank(), np.array([0.0, 0.0, 0.0, -30.0, 5.0, 0.0])
    angles = np.array([0.4, 0.9, 2.0])
    work = []
    for side in (-STEP, STEP):
        q = lw.linkages.follow_path(mech, lw.neutral(mech), {"crank_joint": angles + side})
        ends = lw.frame_pose(mech, q, "slider")[:, :3, 3]
        work.append((lw.potential_energy(mech, q) - ends @ push[3:], q[:, mech.q_index(motor)][:, 0]))
    (before, at), (after, there) = work
    q = lw.linkages.follow_path(mech, lw.neutral(mech), {"crank_joint": angles})
    load = lw.forces.wrenches_at(mech, {"slider": push}, q, frame="world_aligned")
    found = lw.static_forces(mech, q, actuated=motor, wrenches=load)
    own = mech.v_index(motor)
    np.testing.assert_allclose(found[:, own][:, 0], (after - before) / (there - at), rtol=1e-6)
    assert not np.delete(found, own, axis=1).any()
    passive = [joint for joint in mech.joint_names if joint != motor]
    np.testing.assert_allclose(lw.static_forces(mech, q, unactuated=passive, wrenches=load), found, atol=1e-12)
    a = lw.forward_dynamics(mech, q, np.zeros_like(q), found, wrenches=load)
    assert np.abs(a).max() < 1e-9


def test_effort_is_shared_by_weights():
    mech = lw.mechanisms.five_bar()
    q = lw.constraints.assemble(mech, [2.1, 1.9, 1.5, 1.9])
    even, uneven = (lw.static_forces(mech, q, weights=w) for w in (None, [100.0, 1.0, 1.0, 1.0]))
    for forces in (even, uneven):
        assert np.abs(lw.forward_dynamics(mech, q, np.zeros(4), forces)).max() < 1e-9
    assert abs(uneven[0]) < abs(even[0])


def test_pushes_by_link_are_named_by_wrenches_at():
    mech = lw.mechanisms.slider_crank()
    with pytest.raises(lw.MechanismError, match="wrenches is a dictionary.*linkwise.forces.wrenches_at makes one"):
        lw.static_forces(mech, lw.neutral(mech), wrenches={"slider": [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]})


def test_reactions_of_links_without_mass():
    """A four-bar of weightless bars whose rocker is turned: forces along the coupler, by the lever at the rocker."""
    z, builder = lw.Revolute((0, 0, 1)), lw.Builder().link("crank").link("coupler").link("rocker")
    builder.joint("A", z, "ground", "crank").joint("B", z, "crank", "coupler", (0.3, 0, 0))
    builder.joint("D", z, "ground", "rocker", (1.0, 0, 0)).loop("C", z, "coupler", (0.9, 0, 0), "rocker", (0.7, 0, 0))
    with pytest.warns(lw.MechanismWarning):
        mech = builder.build("weightless", strict=False)
    q = lw.constraints.assemble(mech, {"A": 1.0, "D": 1.6}, hold="A")
    pushes = lw.forces.wrenches_at(mech, {"rocker": [0, 0, 10.0, 0, 0, 0]})
    tau = lw.static_forces(mech, q, actuated="A", wrenches=pushes)
    (loop,) = lw.constraints.loop_reactions(mech, q, tau=tau, wrenches=pushes)
    joints = lw.joint_wrenches(mech, q, tau=tau, wrenches=pushes)
    angle = lw.linkages.transmission_angle(mech, q, "A", "D")
    size = 10.0 / (0.7 * np.sin(angle))
    np.testing.assert_allclose(np.linalg.norm(loop[3:]), size, rtol=1e-10)
    np.testing.assert_allclose(np.abs(joints[1]), [0, 0, 0, size, 0, 0], atol=1e-9)
    np.testing.assert_allclose(joints[0, 2], tau[0], rtol=1e-10)
    for call in (lw.constraints.loop_reactions, lw.joint_wrenches):
        with pytest.raises(lw.MechanismError, match="drives something that has no inertia.*static_forces"):
            call(mech, q, tau=0.5 * tau, wrenches=pushes)
    for more in ({}, {"wrenches": pushes}):
        with pytest.raises(lw.MechanismError, match="moves nothing with inertia: give the links it moves mass"):
            lw.forward_dynamics(mech, q, None, tau, **more)


def test_the_state_that_cannot_be_held_is_named():
    points = {"A": (0, 0), "B": (0.1, 0.17), "C": (0.58, 0.45), "D": (0.6, 0)}
    links = {"ground": "AD", "crank": "AB", "coupler": "BC", "rocker": "DC"}
    mech = lw.Builder().linkage(points, links).build("four_bar", (0, -9.81, 0))
    dead = lw.linkages.range_of_motion(mech, "D").ends[0].q
    good = [lw.configuration(mech, A=angle) for angle in (0.1, 0.2, 0.3)]
    for weights in (None, [1.0]):  # by kernels and by NumPy
        with pytest.raises(lw.MechanismError, match=r"this acceleration in state \(2,\): "):
            lw.static_forces(mech, np.array([*good[:2], dead, good[2]]), actuated="D", weights=weights)
        with pytest.raises(lw.MechanismError, match=r"in state \(0, 1\) and 1 more: "):
            lw.static_forces(mech, np.array([[good[0], dead], [dead, good[1]]]), actuated="D", weights=weights)
        with pytest.raises(lw.MechanismError, match="this acceleration: "):
            lw.static_forces(mech, dead, actuated="D", weights=weights)
