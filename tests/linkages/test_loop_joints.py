"""Joints that close loops as joints of the tree: coordinates, springs, dampers, motors, gears."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import constraints, linkages

from ..constraints.built_in import built

ASKED = {
    "springs": lambda mech, q: mech.parameters.with_springs({"pin": 10.0}),
    "damping": lambda mech, q: mech.parameters.with_damping(pin=1.0),
    "friction": lambda mech, q: lw.forces.Passive.friction({"pin": 0.1}).forces(mech, q, np.zeros(3)),
    "actuator": lambda mech, q: mech.with_elements(lw.forces.Actuator("motor", "pin")),
    "coupling": lambda mech, q: mech.with_loops(lw.constraints.Coupling("gear", {"pin": 1.0, "crank_joint": 1.0})),
    "motor": lambda mech, q: lw.inverse_dynamics(mech, q, actuated="pin"),
    "range": lambda mech, q: linkages.range_of_motion(mech, "pin"),
    "linear": lambda mech, q: lw.linearize(mech, q, independent="pin"),
}


@pytest.mark.parametrize("what", ASKED)
def test_what_asks_for_a_joint_of_the_tree_says_how(what):
    mech = built("slider_crank")
    with pytest.raises(lw.MechanismError, match=r"closes a loop.*linkages\.with_joint_of_loop\(mech, 'pin'\)"):
        ASKED[what](mech, constraints.assemble(mech, mech.initial))


def test_the_same_mechanism_with_one_coordinate_more():
    """By the angle between rod and slider, which is that of the spanning tree too; forces by virtual work."""
    mech = built("slider_crank")
    other = lw.linkages.with_joint_of_loop(mech, "pin")
    assert other.joint_names == (*mech.joint_names, "pin") and other.loops[0].name == "pin"
    q = constraints.assemble(other, {"crank_joint": 0.7}, hold="crank_joint")
    np.testing.assert_allclose(q[:3], constraints.assemble(mech, {"crank_joint": 0.7}, hold="crank_joint"), atol=1e-10)
    angle = -(q[0] + q[1])  # the slider does not rotate
    assert q[3] == pytest.approx(angle, abs=1e-10)
    v = 3.0 * constraints.null_space(other, q, independent="crank_joint")[:, 0]
    tau = np.array([0.3, 0.0, 0.0, 0.0])
    a = lw.forward_dynamics(other, q, v, tau)
    np.testing.assert_allclose(a[:3], lw.forward_dynamics(mech, q[:3], v[:3], tau[:3]), rtol=1e-10)
    loops = [constraints.loop_reactions(*given)[0] for given in ((other, q, v, tau), (mech, q[:3], v[:3], tau[:3]))]
    np.testing.assert_allclose(loops[0], loops[1], atol=1e-10)
    np.testing.assert_allclose(lw.joint_wrenches(other, q, v, tau=tau)[3], loops[1], atol=1e-10)
    # A motor at the pin does the work of one at the crank.
    held = lw.inverse_dynamics(mech, q[:3], actuated="crank_joint")[0]
    at_pin = lw.inverse_dynamics(other, q, actuated="pin")
    np.testing.assert_allclose(at_pin[3] * v[3], held * v[0], rtol=1e-10)
    np.testing.assert_allclose(at_pin[:3], 0.0)


def test_springs_dampers_gears_and_ranges_at_the_joint_of_a_loop():
    mech = built("slider_crank")
    other = lw.linkages.with_joint_of_loop(mech, "pin")
    reach = linkages.range_of_motion(other, "pin")
    assert reach.upper - reach.lower == pytest.approx(2.0 * np.arcsin(0.15 / 0.3), abs=1e-7)
    sprung = other.parameters.with_springs({"pin": 10.0})
    motion = lw.simulate(sprung, {"crank_joint": 0.5}, {"crank_joint": 1.0}, 0.5)
    assert np.ptp(motion.energy) < 1e-5 * np.abs(motion.energy).max()  # with 5 a^2 of the spring, or it is not constant
    spring = 5.0 * motion.q[:, 3] ** 2
    without = lw.kinetic_energy(mech, motion.q[:, :3], motion.v[:, :3]) + lw.potential_energy(mech, motion.q[:, :3])
    np.testing.assert_allclose(without + spring, motion.energy, rtol=1e-9)
    damped = lw.simulate(sprung.parameters.with_damping(pin=0.5), {"crank_joint": 0.5}, {"crank_joint": 1.0}, 0.5)
    assert damped.energy[-1] < damped.energy[0] - 1e-3
    geared = other.with_loops(lw.constraints.Coupling("gear", {"pin": 1.0, "crank_joint": 1.0}, 1.0))
    assert constraints.degrees_of_freedom(geared, constraints.assemble(geared, geared.initial)) == 0


def test_what_has_no_joint():
    mech = built("four_bar")
    with pytest.raises(lw.MechanismError, match="has no loop 'pi': did you mean 'pin'"):
        lw.linkages.with_joint_of_loop(mech, "pi")
    tied = mech.with_loops(lw.constraints.Coupling("gear", {"crank_joint": 1.0, "rocker_joint": 1.0}))
    with pytest.raises(lw.MechanismError, match="no joint that moves"):
        lw.linkages.with_joint_of_loop(tied, "gear")
    with pytest.raises(lw.MechanismError, match="'gear' is a Coupling, no joint"):
        tied.parameters.with_damping(gear=1.0)
