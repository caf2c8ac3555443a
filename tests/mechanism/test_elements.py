"""Elements as part of mechanisms: they survive edits and files, are switched, and lead somewhere."""

from __future__ import annotations

import dataclasses
import json
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import from_data, to_data


def arm() -> lw.Mechanism:
    mech = (
        lw.mechanisms.planar_arm(3)
        .parameters.with_damping(joint1=0.5)
        .with_limits(joint2=lw.Limits(-1.0, 2.0, stiffness=9.0))
    )
    return mech.with_elements(
        lw.forces.Actuator("motor", "joint1", gear=(2.0,), ctrl_range=(-1.0, np.inf)),
        lw.forces.Tendon("belt", (("joint2", 1.0), ("joint3", -0.5)), stiffness=3.0, limits=(-0.5, 0.5)),
        lw.forces.Actuator("pull", "belt", "tendon", dynamics="filter", time_constant=0.1),
        lw.forces.GravityCompensation("link3", 0.4, (0.1, 0.0, 0.0)),
        lw.forces.EffortRange("joint1", -3.0, 2.0),
    )


def test_they_are_part_of_the_mechanism():
    mech = arm()
    for again in (
        pickle.loads(pickle.dumps(mech)),
        from_data(json.loads(json.dumps(to_data(mech), allow_nan=False))),
        mech.with_acting(False).with_acting(True),
        mech.with_payload("link3", 0.0),
    ):
        assert again == mech and hash(again) == hash(mech) and again.forces.active == mech.forces.active
    off = mech.with_acting(actuators=("pull",))
    assert off != mech and from_data(to_data(off)) == off == pickle.loads(pickle.dumps(off))
    assert mech.forces.without("pull") == mech.forces.without("pull", "pull") != mech
    assert mech.with_gravity((0, 0, 0)).elements == mech.elements == mech.spanning_tree.elements


def test_switching_as_a_whole_by_kinds_and_one_by_one():
    mech, everything = arm(), arm().forces.active
    assert list(everything) == ["damping", "limits", "actuators", "tendons", "gravity_compensation"]
    assert not mech.with_acting(False).forces.active and mech.with_acting(False).forces.idle == everything
    assert mech.with_acting("damping", "tendons").forces.active == {"damping": ("joint1",), "tendons": ("belt",)}
    some = mech.with_acting(actuators=("pull",), limits=False)
    assert some.forces.actuator_names == ("pull",) and (some.n_ctrl, some.forces.n_activation) == (1, 1)
    assert some.forces.idle == {"limits": ("joint2",), "actuators": ("motor",)}
    assert some.with_acting(actuators=True).forces.actuator_names == ("motor", "pull")
    for wrong, message in (
        (lambda: mech.with_acting("dampers"), "unknown kind of element 'dampers'"),
        (lambda: mech.with_acting(motors=False), "unknown kind of element 'motors'"),
        (lambda: mech.with_acting(actuators=("pul",)), "no actuators of 'pul': did you mean 'pull'"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError, match="with_acting takes True, False or kinds"):
        mech.with_acting(3)


def test_effort_ranges_are_no_actuators_and_act_with_them():
    mech, still = arm(), np.zeros(3)
    assert mech.forces.active["actuators"] == ("motor", "pull")
    alone = mech.with_acting("actuators").with_acting(actuators=("motor",))
    for u, force in ((0.5, 1.0), (9.0, 2.0)):
        assert lw.forces.joint_forces(alone, still, still, ctrl=[u])[0] == force


def test_effort_limits_that_act_follow_those_of_the_joint():
    mech, still = arm().with_acting("actuators").with_acting(actuators=("motor",)), np.zeros(3)

    def most(limits: lw.Limits) -> float:
        changed = mech.with_limits(joint1=limits)
        assert changed.limits.effort[0] == limits.effort
        return lw.forces.joint_forces(changed, still, still, ctrl=[500.0])[0]

    assert most(lw.Limits(effort=7.0)) == 7.0 and most(lw.Limits(effort=0.0)) == 0.0
    assert most(lw.Limits(-1.0, 1.0)) == 2.0  # the joint had no limit and has none: the range of its motor stays
    bounded = mech.with_limits(joint1=lw.Limits(effort=7.0))
    assert lw.forces.joint_forces(bounded.with_limits(joint1=lw.Limits()), still, still, ctrl=[500.0])[0] == 1000.0
    assert mech.with_limits(joint3=lw.Limits(effort=1.0)).elements == mech.elements  # no actuator is at this joint


def test_motors_and_actuated_joints_agree():
    mech = arm().metadata.with_actuated("joint1", "joint2", "joint3")
    assert mech.forces.actuator_names == ("motor", "pull")
    assert mech.forces.without("motor").metadata.actuated_joints == ("joint2", "joint3")
    assert mech.forces.without("pull", "motor").metadata.actuated_joints == ()
    assert mech.metadata.with_actuated("joint1").forces.actuator_names == ("motor",)
    assert mech.metadata.with_actuated("joint2").forces.actuator_names == ()  # the tendon would drive joint3 too
    assert mech.metadata.with_actuated("joint3", "joint2").forces.actuator_names == ("pull",)
    second = lw.forces.Actuator("second", "joint2")
    assert mech.with_elements(second).forces.without("pull").metadata.actuated_joints == ("joint1", "joint2")
    assert mech.metadata.with_actuated("joint1").with_elements(second).metadata.actuated_joints == ("joint1", "joint2")
    assert arm().metadata.actuated_joints is None and arm().forces.without("motor").metadata.actuated_joints is None


def test_forces_when_joints_are_locked():
    """What is left of the forces is that of the whole mechanism with these joints at their places."""
    mech = arm()
    locked = mech.with_locked(joint2=0.7)
    assert locked.forces.actuator_names == ("motor", "pull") and locked.forces.tendons[0].offset == 0.7
    q, v = np.array([0.2, 0.7, 0.4]), np.array([0.3, 0.0, -0.5])
    whole = lw.forces.joint_forces(mech.with_acting(limits=False), q, v, ctrl=[0.5, 0.1], activation=[0.3])
    found = lw.forces.joint_forces(locked, q[[0, 2]], v[[0, 2]], ctrl=[0.5, 0.1], activation=[0.3])
    np.testing.assert_allclose(found, whole[[0, 2]], atol=1e-13)
    gone = mech.with_locked(joint2=0.2, joint3=0.0)
    assert gone.forces.actuator_names == ("motor",) and not gone.forces.tendons
    assert not mech.with_locked(joint1=0.0).forces.without("pull").forces.actuators


def test_gravity_compensation_is_mass_that_gravity_does_not_pull_at():
    mech = lw.mechanisms.random_tree(4, 2, floating_base=True)
    link, rng = mech.link_names[-1], np.random.default_rng(0)
    q, v = lw.random_state(mech, rng)
    point, mass = (0.1, -0.2, 0.3), 0.7
    held = mech.with_elements(lw.forces.GravityCompensation(link, mass, point))
    lighter = lw.gravity_force(mech.with_payload(link, mass, point), q) - lw.gravity_force(mech, q)
    np.testing.assert_allclose(lw.forces.joint_forces(held, q, v), lighter, atol=1e-12)
    moon = held.with_gravity((0.0, 0.0, -1.62))
    np.testing.assert_allclose(lw.forces.joint_forces(moon, q, v), lighter * 1.62 / 9.81, atol=1e-12)


def test_fluids_only_take_energy_away_and_survive_files():
    mech = lw.mechanisms.random_tree(4, 2, floating_base=True)
    parts = [
        lw.forces.FluidForce(mech.link_names[0], "box", (0.1, 0.2, 0.3), 1000.0, 0.5, position=(0.1, 0.0, 0.2)),
        lw.forces.FluidForce(mech.link_names[-1], "ellipsoid", (0.1, 0.2, 0.3), 900.0, 0.1),
    ]
    wet, rng = mech.with_elements(*parts), np.random.default_rng(0)
    assert wet.forces.active == {"fluid": (mech.link_names[0], mech.link_names[-1])}
    q, v = lw.random_state(wet, rng, (50,))
    assert (np.sum(lw.forces.joint_forces(wet, q, v) * v, axis=-1) < 0.0).all()
    again = from_data(json.loads(json.dumps(to_data(wet))))
    assert again == wet
    np.testing.assert_array_equal(lw.forces.joint_forces(again, q[0], v[0]), lw.forces.joint_forces(wet, q[0], v[0]))
    still = lw.forces.joint_forces(
        mech.with_elements(*(dataclasses.replace(x, wind=(1, 2, 3)) for x in parts)), q[0], 0 * v[0]
    )
    assert np.abs(still).max() > 1.0
    for change, message in (
        ({"shape": "ball"}, "shape in the fluid around"),
        ({"size": (1.0, 2.0)}, "must be 3 numbers"),
        ({"size": (1.0, 0.0, 2.0)}, "must be positive"),
        ({"density": -1.0}, "must not be negative"),
        ({"axes": np.ones((3, 3))}, "rotation|orthonormal"),
    ):
        with pytest.raises((lw.MechanismError, ValueError), match=message):
            dataclasses.replace(parts[0], **change)


@pytest.mark.parametrize(
    ("element", "message"),
    [
        (lw.forces.Actuator("a", "elbow"), "no moving joint 'elbow'"),
        (lw.forces.Actuator("a", "t", "tendon"), "drives tendon 't', which does not exist: did you mean|known: 'belt'"),
        (lw.forces.Actuator("motor", "joint1"), "two actuators are named 'motor'"),
        (lw.forces.Tendon("t", (("elbow", 1.0),)), "no moving joint 'elbow'"),
        (lw.forces.GravityCompensation("hand", 1.0, (0, 0, 0)), "no link or frame 'hand'"),
        (lw.forces.FluidForce("hand", "box", (1, 1, 1), 1.0), "no link or frame 'hand'"),
        (3, "an element of a mechanism is one of Actuator, Tendon"),
    ],
)
def test_what_leads_nowhere_is_refused(element, message):
    with pytest.raises(lw.MechanismError, match=message):
        arm().with_elements(element)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lw.forces.Actuator("a", "j", "rope"), "unknown transmission of actuator 'a' 'rope'"),
        (lambda: lw.forces.Actuator("a", "j", gear=()), "one to six numbers"),
        (lambda: lw.forces.Actuator("a", "j", ctrl_range=(1.0, -1.0)), "lower <= upper"),
        (lambda: lw.forces.Actuator("a", "j", dynamics="filter", time_constant=0.0), "must be positive"),
        (lambda: lw.forces.Tendon("t", (), stiffness=-1.0), "must not be negative"),
    ],
)
def test_numbers_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()
