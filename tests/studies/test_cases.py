"""What was drawn, as kernels and mechanisms take it: against ``with_payload`` and other edits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise import studies as st


def made(mech, vary, cases=7, compute=None):
    return st.Study(mech, compute or st.Function(lambda case: 0.0), vary, cases=cases)


def test_payloads_are_those_of_with_payload():
    """On a welded frame that is rotated and away from its link, with masses that vary besides."""
    arm = lw.mechanisms.puma560()
    rotation = np.array([[0.0, -1.0, 0.0], [0.6, 0.0, -0.8], [0.8, 0.0, 0.6]])
    arm = arm.with_frame("tool", "link6", (rotation, (0.1, -0.2, 0.3)))
    vary = {
        "payload.tool.mass": st.distributions.Uniform(0.5, 2.0),
        "payload.tool.com": st.distributions.Normal(0.0, 0.1),
        "payload.tool.inertia": np.diag([0.01, 0.02, 0.025]),
        "mass": st.distributions.Relative(st.distributions.Uniform(0.9, 1.1)),
        "link2.com": st.distributions.Offset(st.distributions.Normal(0.0, 0.01)),
    }
    cases = made(arm, vary).sample()
    parameters = cases.parameters
    assert set(parameters) == {"mass", "link2.com", "link6.com", "link6.inertia"}
    for k, case in enumerate(cases):
        numbers = lw.estimation.inertial_parameters(arm).reshape(6, 10).copy()
        for i in range(6):
            mass, com = cases["mass"][k, i], cases["link2.com"][k] if i == 1 else arm.parameters.coms[i]
            about = arm.parameters.inertias[i] + mass * (com @ com * np.eye(3) - np.outer(com, com))
            numbers[i] = [mass, *(mass * com), *about[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]
        inertia = np.diag([0.01, 0.02, 0.025])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.files.InertiaWarning)  # the published inertia of its third link
            expected = arm.parameters.with_inertial(numbers.ravel(), strict=False)
        expected = expected.with_payload("tool", cases["payload.tool.mass"][k], cases["payload.tool.com"][k], inertia)
        assert np.allclose(case.mechanism.parameters.masses, expected.parameters.masses, rtol=1e-13)
        assert np.allclose(case.mechanism.parameters.coms, expected.parameters.coms, rtol=0, atol=1e-13)
        assert np.allclose(case.mechanism.parameters.inertias, expected.parameters.inertias, rtol=0, atol=1e-13)
        assert np.allclose(parameters["link6.inertia"][k], expected.parameters.inertias[5], rtol=0, atol=1e-13)
        assert np.allclose(parameters["link6.com"][k], expected.parameters.coms[5], rtol=0, atol=1e-13)
        assert np.allclose(parameters["mass"][k], expected.parameters.masses, rtol=1e-13)


def test_other_numbers_of_mechanisms():
    arm = lw.mechanisms.planar_arm(2)
    vary = {
        "gravity": st.distributions.Offset(st.distributions.Normal(0.0, 1.0)),
        "damping.joint1": st.distributions.Uniform(0.1, 0.2),
        "armature": st.distributions.Uniform(0.01, 0.02),
        "tau.joint2": st.distributions.Uniform(1.0, 2.0),
        "my.gain": st.distributions.Uniform([0.0, 10.0], [1.0, 11.0]),
    }
    for k, case in enumerate(made(arm, vary).sample()):
        assert np.array_equal(case.mechanism.gravity, case["gravity"])
        assert case.mechanism.parameters.damping.tolist() == [case["damping.joint1"], 0.0]
        assert np.array_equal(case.mechanism.parameters.armature, case["armature"])
        assert case.tau.tolist() == [0.0, case["tau.joint2"]]
        assert case["my.gain"].shape == (2,) and case.number == k


def test_closed_mechanisms_start_closed():
    mech = lw.mechanisms.four_bar()
    joint = mech.joint_names[0]
    study = made(mech, {f"q0.{joint}": st.distributions.Uniform(0.9, 1.2), f"v0.{joint}": 1.0}, cases=3)
    cases = study.sample()
    assert np.abs(lw.constraints.position_error(mech, cases.q)).max() < 1e-9
    assert np.allclose(cases.q[:, 0], cases[f"q0.{joint}"])
    rates = lw.constraints.constraint_jacobian(mech, cases.q) @ cases.v[..., None]
    assert np.abs(rates).max() < 1e-9 and np.allclose(cases.v[:, 0], 1.0, rtol=0, atol=1e-12)


def test_named_joints_of_closed_mechanisms_have_their_speeds():
    mech = lw.mechanisms.four_bar()
    vary = {"q0.crank_joint": 0.9, "v0.crank_joint": st.distributions.Uniform(1, 2)}
    found = made(mech, vary, cases=3, compute=st.Rollout(0.001, 1)).run()
    assert np.allclose(found["velocities"][:, 0, 0], found["v0.crank_joint"], rtol=0, atol=1e-12)
    for k, speed in enumerate(found["v0.crank_joint"]):
        _, v = lw.rollout(mech, {"crank_joint": 0.9}, {"crank_joint": speed}, None, 0.001, 1)
        assert np.allclose(found["velocities"][k], v, rtol=0, atol=1e-12)
    with pytest.raises(st.StudyError, match="does not let 'crank_joint', 'coupler_joint' move"):
        made(mech, {"v0.crank_joint": 1.0, "v0.coupler_joint": 9.0}, cases=1).run()
    with pytest.raises(st.StudyError, match=r"v0 and v0\.crank_joint: .* name joints, or give all"):
        made(mech, {"v0": 1.0, "v0.crank_joint": 9.0}, cases=1).run()


@pytest.mark.parametrize(
    "vary, message",
    [
        ({"q0.elbow": 1.0}, "q0.elbow: .*no moving joint 'elbow'"),
        ({"payload.hand.mass": 1.0}, "no link 'hand'; available"),
        ({"payload.ground.mass": 1.0}, "fixed to the ground"),
        ({"payload.link1.colour": 1.0}, "a payload has"),
        ({"link9.mass": 1.0}, "link9.mass: unknown moving link"),
        ({"gravty": 1.0}, "did you mean 'gravity'"),
        ({"ctrl.motor": 1.0}, "no actuator 'motor'"),
        ({"gravity": st.distributions.Normal([0.0, 1.0], 1.0)}, r"gravity has shape \(3,\)"),
        ({"mass": st.distributions.Grid([[1.0, 2.0, 3.0]])}, r"Grid has values of shape \(1, 3\)"),
        ({"mass": st.distributions.Given([1.0, 2.0])}, "2 given values for 7 cases"),
        ({"mass": "heavy"}, "no distribution"),
        ({"v0": st.distributions.WithinLimits()}, "WithinLimits is for q0"),
        ({"mass": st.distributions.Relative(st.distributions.Grid([1, 2]))}, "take distributions"),
    ],
)
def test_what_cannot_vary(vary, message):
    with pytest.raises(st.StudyError, match=message):
        made(lw.mechanisms.planar_arm(2), vary)


def test_what_a_computation_cannot_take():
    arm = lw.mechanisms.planar_arm(2)
    with pytest.raises(st.StudyError, match="cannot vary here"):
        made(
            arm,
            {"link1.pose": st.distributions.Relative(st.distributions.Uniform(0.9, 1.1))},
            compute=st.LinearModels(),
        )


def test_rollouts_with_damping_and_armature_of_each_case():
    arm = lw.mechanisms.planar_arm(2)
    vary = {
        "damping.joint1": st.distributions.Uniform(0.1, 2.0),
        "armature": st.distributions.Uniform(0.01, 0.2),
        "q0": st.distributions.Uniform(-1.0, 1.0),
    }
    study = made(arm, vary, compute=st.Rollout(0.01, 20))
    found = study.run()
    for k, case in enumerate(study.sample()):
        q, _ = lw.rollout(case.mechanism, case.q, case.v, None, 0.01, 20)
        np.testing.assert_allclose(found["positions"][k], q, rtol=0, atol=1e-12)


def test_rollouts_with_friction_and_springs_of_each_case():
    arm = lw.mechanisms.planar_arm(2)
    vary = {
        "friction": st.distributions.Uniform(0.1, 2.0),
        "stiffness.joint2": st.distributions.Uniform(1.0, 20.0),
        "q0": st.distributions.Uniform(-1.0, 1.0),
    }
    study = made(arm, vary, cases=3, compute=st.Rollout(0.01, 20))
    found, cases = study.run(), study.sample()
    for k, spring in enumerate(found["stiffness.joint2"]):
        own = {"friction": found["friction"][k], "stiffness": np.array([0.0, spring])}
        q, _ = lw.rollout(arm, cases.q[k], cases.v[k], None, 0.01, 20, parameters=own)
        np.testing.assert_allclose(found["positions"][k], q, rtol=0, atol=1e-12)
    sprung = made(arm, {"stiffness.joint2": 3.0}, cases=1).sample().case(0).mechanism
    assert sprung.parameters.stiffness.tolist() == [0.0, 3.0]
    with pytest.raises(st.StudyError, match="friction of joints varies in rollouts alone"):
        made(arm, {"friction": 1.0}, compute=st.Equilibria())


def test_rollouts_with_contact_friction_of_each_case():
    """A sled that is pushed comes to rest after v^2 / (2 mu g)."""
    built = lw.Builder().link("sled", 2.0, (0, 0, 0), (0.02, 0.02, 0.02)).joint("root", lw.Floating(), "ground", "sled")
    sled = built.build("sled").with_shape("skids", "sled", "box", (0.2, 0.2, 0.01)).with_ground()
    start = {"q0.root": [1, 0, 0, 0, 0, 0, 0.01], "v0.root": [0, 0, 0, 1.0, 0, 0]}
    roll = st.Rollout(1e-3, 1500, "semi_implicit", final_only=True)
    vary = start | {"floor.contact_friction": st.distributions.Uniform(0.1, 1.2)}
    found = made(sled, vary, cases=20, compute=roll).run()
    way = 1.0 / (2.0 * 9.81 * found["floor.contact_friction"])
    np.testing.assert_allclose(found["positions"][:, 4], way, atol=0.01)
    half = made(
        sled,
        start | {"contact_friction": st.distributions.Relative(st.distributions.Uniform(0.5, 0.5))},
        cases=1,
        compute=roll,
    )
    assert half.sample()["contact_friction"] == [0.5 * sled.contact_pairs[0].law.friction]
    for name, message in (
        ("foot.contact_friction", "'foot' of mechanism 'sled' touches nothing; available: floor, skids"),
        ("contact_friction.floor", r"did you mean 'floor\.contact_friction'"),
        ("root.damping", r"did you mean 'damping\.root'"),
    ):
        with pytest.raises(st.StudyError, match=message):
            made(sled, {name: 1.0}, compute=roll)
    with pytest.raises(st.StudyError, match="friction of contacts varies in rollouts alone"):
        made(sled, {"contact_friction": 1.0}, compute=st.Equilibria())


def test_variants_with_shared_code_do_not_depend_on_those_before():
    """The first of a family runs the code that all share."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arm = lw.mechanisms.planar_arm(2).parameters.with_shared_code()
        q = np.array([0.3, -0.4])
        masses = (1.0, 2.0, 1.0)
        first, _, again = (lw.gravity_force(arm.with_payload("link2", m, com=(0.1, 0.2, 0.0)), q) for m in masses)
    assert np.array_equal(first, again)
    assert arm == lw.mechanisms.planar_arm(2)
