"""Notes, postures and groups: kept through edits, pickling and data; no part of what makes mechanisms equal."""

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import Annotations, from_data, to_data

NOTE = lw.files.Note("motor", ("arm.xml:3: <motor>", "arm.xml:4: <motor>"), "give tau")


def arm() -> lw.Mechanism:
    builder = lw.Builder()
    for index, parent in enumerate(("ground", "a", "b")):
        builder.link("abc"[index], 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
        kind = lw.Spherical() if index == 1 else lw.Revolute((0, 1, 0))
        builder.joint(f"j{index}", kind, parent, "abc"[index], damping=0.5 * index)
    mech = builder.link("tool").joint("weld", lw.Fixed(), "c", "tool").build()
    known = dataclasses.replace(mech.annotations, notes=(NOTE,), initial=(("j2", (0.3,)),))
    mech = dataclasses.replace(mech, annotations=known)
    return mech.metadata.with_postures(
        {"home": {"j0": 1.0, "j1": [0, 1, 0, 0]}, "all": [1, 1, 0, 0, 0, 2]}
    ).metadata.with_groups({"wrist": ("j1", "j2")})


COPIES = {
    "pickle": lambda mech: pickle.loads(pickle.dumps(mech)),
    "deepcopy": copy.deepcopy,
    "data": lambda mech: from_data(json.loads(json.dumps(to_data(mech)))),
    "gravity": lambda mech: mech.with_gravity((0, 0, 0)),
    "payload": lambda mech: mech.with_payload("tool", 1.0),
    "armature": lambda mech: mech.parameters.with_armature(j0=1.0),
    "frame": lambda mech: mech.with_frame("f", "tool"),
    "loops": lambda mech: (
        mech.with_loops(lw.constraints.Loop("l", lw.Spherical(), "tool", None, "ground", None)).spanning_tree
    ),
    "parameters": lambda mech: mech.parameters.with_inertial(lw.estimation.inertial_parameters(mech)),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_annotations_survive(copied):
    mech = arm()
    found = copied(mech)
    assert (
        found.annotations == mech.annotations
        and found.notes == mech.notes
        and found.metadata.groups == mech.metadata.groups
    )
    assert {name: q.tolist() for name, q in found.postures.items()} == {
        "home": [1.0, 0.0, 1.0, 0.0, 0.0, 0.3],
        "all": [1.0, 1.0, 0.0, 0.0, 0.0, 2.0],
    }
    assert found.initial.tolist() == [0.0, 1.0, 0.0, 0.0, 0.0, 0.3]


def test_locked_joints_leave_postures_and_groups():
    mech = arm().with_locked(j1=[1, 0, 0, 0])
    assert mech.postures["home"].tolist() == [1.0, 0.3] and mech.metadata.groups["wrist"] == ("j2",)
    assert mech.annotations.fixed_joints == ("weld", "j1")


def test_annotations_do_not_make_mechanisms_different():
    mech = arm()
    bare = dataclasses.replace(mech, annotations=Annotations())
    assert bare == mech and hash(bare) == hash(mech)
    assert bare.initial.tolist() == lw.neutral(bare).tolist() and not bare.postures and not bare.metadata.groups


def test_files_of_earlier_versions_have_none():
    data = to_data(arm())
    del data["annotations"]
    assert from_data(data) == arm() and from_data(data).annotations == Annotations()


def test_notes_say_how_many_where_and_what_to_do():
    mech = arm()
    assert mech.notes[0].count == 2
    assert str(mech.notes[0]) == "2 motors (arm.xml:3: <motor>, arm.xml:4: <motor>): give tau"
    assert mech.forces.active == {"damping": ("j1", "j2")}, "what acts is no note"
    assert not mech.parameters.with_damping(j1=0.0, j2=0.0).forces.active, (
        "what acts follows from the numbers of joints"
    )
    many = lw.files.Note("equality", tuple("abcdef"), "x")
    assert str(many) == "6 equalities (a, b, c, d and 2 more): x"
    assert lw.files.Note("joint with limits", ("a",), "x").counted == "1 joint with limits"


def test_arrays_are_read_only():
    with pytest.raises(ValueError):
        arm().postures["home"][0] = 2.0
    assert isinstance(arm().initial, np.ndarray) and not arm().initial.flags.writeable


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.metadata.with_postures({"x": {"j9": 1.0}}), "no moving joint 'j9': known: 'j0'"),
        (
            lambda m: m.metadata.with_postures({"x": {"j1": 1.0}}),
            "posture 'x' of mechanism 'mechanism': joint 'j1' has 4",
        ),
        (lambda m: m.metadata.with_postures({"x": {"j0": float("nan")}}), "must be finite"),
        (lambda m: m.metadata.with_postures({"x": [1.0]}), "must have shape \\(6,\\)"),
        (lambda m: m.metadata.with_postures({"": {}}), "non-empty string"),
        (
            lambda m: m.metadata.with_groups({"g": ("j0", "weld")}),
            "group 'g': mechanism 'mechanism' has no moving joint 'weld'",
        ),
        (lambda m: m.metadata.with_groups({"g": "weld"}), "has no moving joint 'weld'"),
        (lambda m: m.metadata.with_actuated("weld"), "has no moving joint 'weld'"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    with pytest.raises(lw.MechanismError, match=message):
        change(arm())


def test_one_joint_may_be_named_alone():
    assert arm().metadata.with_groups({"g": "j0"}).metadata.groups["g"] == ("j0",)
    assert arm().metadata.with_actuated("j0").metadata.actuated_joints == ("j0",)


def test_damping_and_springs_act_as_feedback_does():
    mech = lw.Builder().link("a", 1.0, (0.3, 0.0, 0.0), (0.1, 0.1, 0.1))
    mech = mech.joint("j", lw.Revolute((0, 1, 0)), "ground", "a", damping=0.5, stiffness=8.0, rest=0.2).build()
    start = np.array([0.4]), np.array([1.0])
    feedback = {"target": [0.2], "kp": mech.bodies[0].stiffness, "kd": mech.bodies[0].damping}
    q, v = lw.rollout(mech.with_acting(False), *start, None, 1e-4, 3000, feedback=feedback, final_only=True)
    passive = lw.simulate(mech, *start, 0.3)
    np.testing.assert_allclose([*q, *v], [*passive.q[-1], *passive.v[-1]], atol=1e-3)
    free = lw.simulate(mech.with_acting(False), *start, 0.3)
    assert abs(free.v[-1] - passive.v[-1]) > 0.1


def test_motors_are_named_one_by_one_or_in_a_list():
    arm = lw.mechanisms.planar_arm(3)
    for actuated in (
        arm.metadata.with_actuated("joint3", "joint1"),
        arm.metadata.with_actuated(["joint3", "joint1"]),
        arm.metadata.with_actuated(("joint3", "joint1")),
    ):
        assert actuated.metadata.actuated_joints == ("joint3", "joint1")
    assert (
        arm.metadata.with_actuated().metadata.actuated_joints
        == arm.metadata.with_actuated([]).metadata.actuated_joints
        == ()
    )
    with pytest.raises(lw.MechanismError, match="no moving joint 'jiont1': did you mean 'joint1'"):
        arm.metadata.with_actuated(["jiont1"])
    for wrong in (1, ["joint1", 2], [["joint1"]]):
        with pytest.raises(TypeError, match="with_actuated takes names of joints"):
            arm.metadata.with_actuated(wrong)


def test_counts_are_in_the_plural():
    kinds = ("mesh with contact", "box", "ball joint with limits", "body", "equality of spatial tendons", "sensor")
    found = [lw.mechanism.Note(kind, ("here", "there"), "").counted for kind in kinds]
    assert found == [
        *("2 meshes with contact", "2 boxes", "2 ball joints with limits", "2 bodies"),
        *("2 equalities of spatial tendons", "2 sensors"),
    ]
    assert lw.mechanism.Note("mesh", ("here",), "").counted == "1 mesh"
