"""Poses in all their forms, against SciPy; and what is no pose."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import transform
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.mechanism import MechanismError

ANGLES = np.array([0.3, -0.7, 2.1])
QUATERNION = Rotation.from_euler("xyz", ANGLES).as_quat(scalar_first=True)
AXIS = np.array([1.0, 2.0, -2.0])
HALF = np.sqrt(0.5)


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ({}, Rotation.identity()),
        ({"rpy": ANGLES}, Rotation.from_euler("xyz", ANGLES)),
        ({"quaternion": QUATERNION}, Rotation.from_euler("xyz", ANGLES)),
        ({"quaternion": -QUATERNION}, Rotation.from_euler("xyz", ANGLES)),
        ({"axis_angle": (AXIS, 0.8)}, Rotation.from_rotvec(0.8 * AXIS / 3.0)),
        ({"axis_angle": (AXIS, -2.8)}, Rotation.from_rotvec(-2.8 * AXIS / 3.0)),
        ({"matrix": Rotation.from_quat([1, 2, 3, 4]).as_matrix()}, Rotation.from_quat([1, 2, 3, 4])),
        ({"rotation": Rotation.from_quat([1, 2, 3, 4])}, Rotation.from_quat([1, 2, 3, 4])),
    ],
    ids=lambda x: "-".join(x) if isinstance(x, dict) else "",
)
def test_every_description_of_a_rotation(described, expected):
    pose = lw.pose((1.0, 2.0, 3.0), **described)
    np.testing.assert_allclose(pose[:3, :3], expected.as_matrix(), atol=1e-15)
    np.testing.assert_array_equal(pose[:, 3], [1.0, 2.0, 3.0, 1.0])
    np.testing.assert_array_equal(pose[3], [0.0, 0.0, 0.0, 1.0])


@pytest.mark.parametrize(
    "described",
    [
        {"rpy": (0.0, 0.0, np.pi / 2)},
        {"quaternion": (HALF, 0.0, 0.0, HALF)},
        {"axis_angle": ((0.0, 0.0, 5.0), np.pi / 2)},
        {"rotation": Rotation.from_euler("z", 90, degrees=True)},
    ],
    ids=lambda x: next(iter(x)),
)
def test_quarter_turns_are_exact(described):
    """So that they cost nothing in compiled code."""
    np.testing.assert_array_equal(lw.pose(**described)[:3, :3], [[0, -1, 0], [1, 0, 0], [0, 0, 1]])


def hinged(pose: object, loop_pose: object = None, com: object = (0.1, 0.0, 0.0)) -> lw.Mechanism:
    builder = lw.Builder().link("a", 1.0, com, (0.1, 0.2, 0.25)).joint("one", lw.Revolute(), "ground", "a", pose)
    builder.frame("tool", "a", pose).frame("nail", "tool", pose)
    return builder.loop("held", lw.Spherical(), "a", loop_pose, "ground", pose).build()


def test_poses_are_taken_in_every_form():
    turned = Rotation.from_euler("xyz", ANGLES)
    position = (0.3, -0.2, 0.5)
    whole = lw.pose(position, rotation=turned)
    mech = hinged(whole, whole)
    for pose in (
        (turned, position),
        (turned.as_matrix(), position),
        whole.tolist(),
        [turned.as_matrix().tolist(), position],
    ):
        same = hinged(pose, pose)
        assert same.frames.keys() == mech.frames.keys()
        for name, frame in mech.frames.items():
            np.testing.assert_allclose(same.frame(name).rotation, frame.rotation, atol=1e-15)
            np.testing.assert_allclose(same.frame(name).position, frame.position, atol=1e-15)
        np.testing.assert_allclose(same.bodies[0].rotation, whole[:3, :3], atol=1e-15)
        np.testing.assert_allclose(same.loops[0].pose_a[0], whole[:3, :3], atol=1e-15)
    assert hinged(position) == hinged((None, position)) == hinged(lw.pose(position))
    assert hinged((turned, None)) == hinged(lw.pose(rotation=turned))
    assert hinged(None) == hinged((0, 0, 0))
    # Frames on frames, and frames added later.
    tree = mech.spanning_tree
    q = [0.4]
    np.testing.assert_allclose(lw.frame_pose(tree, q, "nail"), lw.frame_pose(tree, q, "a") @ whole @ whole, atol=1e-14)
    later = tree.with_frame("again", "tool", (turned, position))
    np.testing.assert_allclose(lw.frame_pose(later, q, "again"), lw.frame_pose(tree, q, "nail"), atol=1e-14)


def test_a_rigid_transform_of_scipy():
    rigid_transform = getattr(transform, "RigidTransform", None)
    if rigid_transform is None:
        pytest.skip("SciPy 1.16 has RigidTransform")
    whole = lw.pose((1, 2, 3), rpy=ANGLES)
    np.testing.assert_allclose(hinged(rigid_transform.from_matrix(whole)).bodies[0].rotation, whole[:3, :3])


def test_axes_of_inertia_other_than_those_of_the_link():
    turned = Rotation.from_euler("xyz", ANGLES)
    axes = turned.as_matrix()
    position, moments = (0.1, 0.2, -0.3), (0.1, 0.2, 0.25)
    mech = hinged(None, com=(turned, position))
    np.testing.assert_allclose(mech.parameters.inertias[0], axes @ np.diag(moments) @ axes.T, atol=1e-15)
    np.testing.assert_array_equal(mech.parameters.coms[0], position)
    bare = lw.Builder().link("a", 1.0).joint("one", lw.Revolute(), "ground", "a", None, armature=1.0).build()
    carrying = bare.with_payload("a", 2.0, (turned, position), moments).with_payload("a", 0.0)
    separate = lw.Builder().link("a", 1.0).link("load", 2.0, (0, 0, 0), moments)
    separate.joint("one", lw.Revolute(), "ground", "a", armature=1.0).joint(
        "weld", lw.Fixed(), "a", "load", (turned, position)
    )
    np.testing.assert_allclose(carrying.parameters.inertias, separate.build().parameters.inertias, atol=1e-15)


@pytest.mark.parametrize("digits", [5, 6, 7])
def test_rounded_matrices_are_replaced_by_the_nearest_rotation(digits):
    for exact in Rotation.random(200, random_state=0).as_matrix():
        rounded = exact.round(digits)
        found = lw.pose(matrix=rounded)[:3, :3]
        np.testing.assert_allclose(found.T @ found, np.eye(3), rtol=0, atol=1e-14)
        np.testing.assert_allclose(found, exact, rtol=0, atol=10.0**-digits)
        stretch = found.T @ rounded  # symmetric for the nearest rotation alone: the polar decomposition
        np.testing.assert_allclose(stretch, stretch.T, rtol=0, atol=4e-14)  # rounding of a singular value decomposition


def test_the_advice_for_what_is_no_rotation_gives_one():
    sheared = np.eye(3) + 0.01 * np.arange(9).reshape(3, 3)
    with pytest.raises(MechanismError, match=r"Rotation.from_matrix\(R\).as_matrix\(\)"):
        lw.pose(matrix=sheared)
    lw.pose(matrix=Rotation.from_matrix(sheared).as_matrix())


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ({"rpy": ANGLES, "quaternion": QUATERNION}, "rpy and quaternion both say"),
        ({"quaternion": (1.0, 0.0, 0.0, 1.0)}, "quaternion must be .w, x, y, z. of length 1, not 1.414"),
        ({"quaternion": (1.0, 0.0, 0.0)}, r"quaternion must have shape \(4,\)"),
        ({"rpy": 0.3}, r"rpy must have shape \(3,\)"),
        ({"axis_angle": (1.0, 0.0, 0.0, 0.3)}, "axis_angle must be"),
        ({"axis_angle": ((0.0, 0.0, 0.0), 0.3)}, "axis of axis_angle must not be zero"),
        ({"matrix": np.diag([1.0, 1.0, -1.0])}, "matrix is a reflection"),
        ({"matrix": np.diag([1.0, 1.0, 2.0])}, "matrix is not a rotation"),
        ({"matrix": np.eye(3) * 1.0001}, r"by 2.0e-04, and only up to 1e-04 .*Rotation.from_matrix\(R\).as_matrix\(\)"),
        ({"matrix": np.eye(4)}, r"matrix must have shape \(3, 3\)"),
        ({"rotation": Rotation.random(2, random_state=0)}, r"rotation must have shape \(3, 3\), not \(2, 3, 3\)"),
        ({"position": (1.0, 2.0)}, r"position must have shape \(3,\)"),
        ({"position": (1.0, 2.0, np.nan)}, "position must be finite"),
    ],
)
def test_what_is_no_pose(described, message):
    with pytest.raises(MechanismError, match=message):
        lw.pose(**described)
