"""Every robot of example-robot-data, read here and by Pinocchio: degrees of freedom, inertias and frames must agree."""

import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from linkwise.control import joint_feedback
from linkwise.mechanics.joints import Floating, Prismatic, Revolute
from linkwise.mechanism import MechanismError, MechanismWarning
from linkwise.readers import load

pin = pytest.importorskip("pinocchio")

ROBOTS = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
FILES = sorted(ROBOTS.rglob("*.urdf"))

# Pinocchio refuses these as well.
BROKEN = {
    "falcon.urdf": "child link 'Z_propeller' does not exist",
    "ur3.urdf": "the robot has no <link>",
}
RENAMED = {"ground": "ground_link"}  # a link called like the fixed world is read under another name
READABLE = [file for file in FILES if file.name not in BROKEN]


def test_the_robots_are_there():
    assert len(FILES) > 60, f"example-robot-data should be installed in {ROBOTS}"


def load_quietly(file, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MechanismWarning)
        return load(file, **options)


def turned(axis, angle):
    """Rodrigues' formula."""
    x, y, z = axis
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * skew + (1 - np.cos(angle)) * skew @ skew


def pose(rotation, position):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, position
    return matrix


def quaternion_matrix(w, x, y, z):
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def across_joint(kind, q):
    if isinstance(kind, Revolute):
        return pose(turned(kind.axis, q[0]), np.zeros(3))
    if isinstance(kind, Prismatic):
        return pose(np.eye(3), q[0] * np.array(kind.axis))
    if isinstance(kind, Floating):
        return pose(quaternion_matrix(*q[:4]), q[4:])
    raise AssertionError(f"no robot here has a joint {kind}")


def joint_coordinates(mechanism, q, body):
    """The coordinates of the body's own joint, also where it mimics another."""
    own = q[mechanism.q_index(body.joint)]
    return body.mimic.ratio * own + body.mimic.offset if body.mimic else own


def frame_poses(mechanism, q):
    """World pose of every named frame, straight from the definitions."""
    bodies = []
    for body in mechanism.bodies:
        parent = np.eye(4) if body.parent < 0 else bodies[body.parent]
        joint = across_joint(body.kind, joint_coordinates(mechanism, q, body))
        bodies.append(parent @ pose(body.rotation, body.position) @ joint)
    return {
        name: (np.eye(4) if frame.body < 0 else bodies[frame.body]) @ pose(frame.rotation, frame.position)
        for name, frame in mechanism.frames.items()
    }


def pinocchio_configuration(model, mechanism, q):
    """The same configuration in Pinocchio's order and coordinates (angles of endless joints as cosine and sine)."""
    result = pin.neutral(model)
    for body in mechanism.bodies:
        joint = model.joints[model.getJointId(body.joint)]
        own = joint_coordinates(mechanism, q, body)
        if isinstance(body.kind, Floating):
            own = np.concatenate([own[4:], own[1:4], own[:1]])
        elif joint.nq == 2:
            own = np.array([np.cos(own[0]), np.sin(own[0])])
        result[joint.idx_q : joint.idx_q + joint.nq] = own
    return result


def random_configuration(mechanism, rng):
    parts = [body.kind.random(rng, ()) for body in mechanism.bodies if body.mimic is None]
    return np.concatenate(parts) if parts else np.zeros(0)


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("file", READABLE, ids=lambda file: file.stem)
def test_agrees_with_pinocchio(file, floating_base):
    mechanism = load_quietly(file, floating_base=floating_base)
    if floating_base:
        model = pin.buildModelFromUrdf(str(file), pin.JointModelFreeFlyer(), "floating_base")
    else:
        model = pin.buildModelFromUrdf(str(file))

    mimic_joints = sum(body.mimic is not None for body in mechanism.bodies)
    assert mechanism.nv + mimic_joints == model.nv
    assert set(mechanism.joint_names) == set(model.names) - {"universe"}

    for body in mechanism.bodies:
        peer = model.inertias[model.getJointId(body.joint)]
        assert body.mass == pytest.approx(peer.mass, rel=1e-13)
        if body.mass > 0.0:
            np.testing.assert_allclose(body.com, peer.lever, rtol=0, atol=1e-13 * (1 + np.abs(peer.lever).max()))
            np.testing.assert_allclose(
                body.inertia, peer.inertia, rtol=0, atol=1e-12 * (1 + np.abs(peer.inertia).max())
            )

    q = random_configuration(mechanism, np.random.default_rng(len(file.name)))
    data = model.createData()
    pin.framesForwardKinematics(model, data, pinocchio_configuration(model, mechanism, q))
    ours = frame_poses(mechanism, q)
    compared = 0
    for frame, placement in zip(model.frames, data.oMf, strict=True):
        if frame.type == pin.FrameType.BODY:
            name = RENAMED.get(frame.name, frame.name)
            np.testing.assert_allclose(ours[name], placement.homogeneous, rtol=0, atol=1e-13)
            compared += 1
    assert compared == len(mechanism.frames) - 1, "every link, and the ground besides"


# Pinocchio cannot eliminate a joint that mimics one which comes later in its order, or one which does not exist.
BEYOND_PINOCCHIO = {"alex_psyonic_hands", "romeo", "talos_full_v2", "talos_full_v2_box"}
WITH_MIMIC = [file for file in READABLE if "<mimic " in file.read_text()]


@pytest.mark.parametrize("file", WITH_MIMIC, ids=lambda file: file.stem)
def test_mimic_joints_have_no_coordinates(file):
    mechanism = load_quietly(file)
    joints = {joint.get("name"): joint for joint in ElementTree.parse(file).getroot().findall("joint")}
    moving = {name for name, joint in joints.items() if joint.get("type") != "fixed"}
    rules = {name: joints[name].find("mimic") for name in moving if joints[name].find("mimic") is not None}
    rules = {name: rule for name, rule in rules.items() if rule.get("joint") in moving}

    assert mechanism.nv == mechanism.nq == len(moving) - len(rules)
    for body in mechanism.bodies:
        assert (body.mimic is not None) == (body.joint in rules)
        if body.mimic is not None:
            rule = rules[body.joint]
            assert body.mimic.joint == rule.get("joint")
            assert body.mimic.ratio == float(rule.get("multiplier", 1.0))
            assert body.mimic.offset == float(rule.get("offset", 0.0))
            assert mechanism.v_index(body.joint) == mechanism.v_index(body.mimic.joint)
    if file.stem not in BEYOND_PINOCCHIO:
        assert mechanism.nv == pin.buildModelFromUrdf(str(file), mimic=True).nv


def test_joints_that_follow_nothing_are_left_free():
    file = next(file for file in READABLE if file.stem == "alex_psyonic_hands")
    with pytest.warns(MechanismWarning, match="'index_q1', which does not exist, and is left free: did you mean"):
        mechanism = load(file)
    assert mechanism.nv == pin.buildModelFromUrdf(str(file)).nv


@pytest.mark.parametrize("file", [f for f in FILES if f.name in BROKEN], ids=lambda file: file.stem)
def test_broken_files_are_named(file):
    with pytest.raises(MechanismError, match=BROKEN[file.name]):
        load(file)
    with pytest.raises(ValueError):
        pin.buildModelFromUrdf(str(file))


@pytest.mark.filterwarnings("ignore::linkwise.MechanismWarning")
def test_baxters_two_transmissions_do_not_take_the_motors_of_its_arms():
    mech = load(ROBOTS / "baxter_description/urdf/baxter.urdf")
    assert mech.metadata.actuated_joints is None
    assert len(joint_feedback(mech, mech.initial).actuated_joints) == mech.nv
