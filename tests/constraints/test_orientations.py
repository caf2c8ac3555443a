"""Orientations of links as coordinates: ranges, singular positions and workspaces of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.constraints.named_coordinates import named_coordinate

from .built_in import built

LEGS = [f"leg{i}_rod_joint" for i in range(1, 7)]
ANGLES = ("roll", "pitch", "yaw")


def coupler_angles(mech: lw.Mechanism) -> np.ndarray:
    """(n,): of the coupler in the world, all around, from its axes."""
    turn = lw.linkages.follow_path(mech, None, {"crank_joint": np.linspace(0.0, 2.0 * np.pi, 721)})
    axis = lw.frame_pose(mech, turn, "coupler")[:, :2, 0]
    return np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))


def test_the_coupler_of_a_four_bar_against_dense_search():
    mech = built("four_bar")
    angles = coupler_angles(mech)
    found = lw.linkages.range_of_motion(mech, "coupler.yaw")
    assert found.lower == pytest.approx(angles.min(), abs=1e-4) and found.upper == pytest.approx(angles.max(), abs=1e-4)
    assert {end.cause for end in found.ends} == {"dead centre"}
    # There it moves by translation alone, and the coupler does not drive the mechanism.
    singular = lw.linkages.singular_positions(mech, "coupler.yaw")
    assert [one.kind for one in singular] == ["input", "input"]
    values = sorted(float(named_coordinate(mech, "coupler.yaw").value(one.q)) for one in singular)
    np.testing.assert_allclose(values, [found.lower, found.upper], atol=1e-9)
    crank = lw.linkages.range_of_motion(mech, "crank.yaw")
    assert {end.cause for end in crank.ends} == {"full rotation"}


def test_planar_angles_count_turns_about_any_axis_of_the_world():
    turned = Rotation.from_euler("x", 90, degrees=True).as_matrix()
    builder = lw.Builder().link("arm", 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1)).link("hand", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    builder.joint("shoulder", lw.Revolute((0, 1, 0)), "ground", "arm")
    builder.joint("wrist", lw.Revolute((0, 0, -1)), "arm", "hand", (turned, (0.3, 0.0, 0.0)))
    mech = builder.build("arm")
    assert named_coordinate(mech, "arm.pitch").value(np.array([7.0, 0.0])) == pytest.approx(7.0)
    pitch = named_coordinate(mech, "hand.pitch")  # its frame is turned otherwise: within a quarter of a turn
    assert abs(float(pitch.value(np.array([7.0, 0.0])))) <= np.pi / 2


@pytest.mark.parametrize("angle", ANGLES)
def test_angles_in_space_and_their_rates(angle: str):
    mech = lw.mechanisms.stanford_arm()
    rng = np.random.default_rng(3)
    q, v, step = rng.uniform(-1.0, 1.0, mech.nq), rng.normal(size=mech.nv), 1e-6
    one = named_coordinate(mech, f"link6.{angle}")
    expected = Rotation.from_matrix(lw.frame_pose(mech, q, "link6")[:3, :3]).as_euler("xyz")[ANGLES.index(angle)]
    assert float(one.value(q)) == pytest.approx(expected)
    change = one.value(lw.integrate(mech, q, v, step)) - one.value(lw.integrate(mech, q, v, -step))
    assert float(one.rows(q) @ v) == pytest.approx(float(change) / (2 * step), rel=1e-6)
    assert one.centred(expected + 2 * np.pi).value(q) == pytest.approx(expected + 2 * np.pi)


def test_how_far_a_stewart_platform_turns_against_dense_search():
    mech = lw.mechanisms.stewart_platform()
    mech = mech.with_limits({leg: lw.Limits(-0.2, 0.3) for leg in LEGS})
    still = ("platform.x", "platform.y", "platform.z", "platform.roll", "platform.pitch")
    found = lw.linkages.range_of_motion(mech, "platform.yaw", hold=still, limits=True)
    assert {end.cause for end in found.ends} == {"joint limit"}
    # Lengths of the legs from their ends, the platform turned by hand.
    q = lw.constraints.assemble(mech)
    start = lw.frame_pose(mech, q, "platform")
    feet = np.array([lw.frame_pose(mech, q, f"leg{i}")[:3, 3] for i in range(1, 7)])
    sides = [loop.pose_a if loop.link_a == "platform" else loop.pose_b for loop in mech.loops]
    ends = np.array([np.asarray(pose[1]) for pose in sides])
    turns = np.linspace(-1.2, 1.2, 4801)
    rotations = Rotation.from_euler("z", turns[:, None]).as_matrix() @ start[:3, :3]
    lengths = np.linalg.norm(np.einsum("nij,kj->nki", rotations, ends) + start[:3, 3] - feet, axis=-1)
    rest = np.linalg.norm(ends @ start[:3, :3].T + start[:3, 3] - feet, axis=-1)
    within = ((lengths - rest > -0.2) & (lengths - rest < 0.3)).all(axis=-1)
    assert found.upper == pytest.approx(turns[within].max(), abs=1e-3)
    assert found.lower == pytest.approx(turns[within].min(), abs=1e-3)
    assert found.values[0] == pytest.approx(found.lower) and found.values[-1] == pytest.approx(found.upper)


def test_a_workspace_of_two_angles():
    mech = lw.mechanisms.stewart_platform()
    mech = mech.with_limits({leg: lw.Limits(-0.2, 0.3) for leg in LEGS})
    still = ("platform.x", "platform.y", "platform.z", "platform.yaw")
    bounds = ((-0.3, 0.3), (-0.3, 0.3))
    plane = lw.linkages.workspace(mech, ("platform.roll", "platform.pitch"), bounds, hold=still, limits=True, points=5)
    assert plane.is_reached.all()
    poses = lw.frame_pose(mech, plane.q[4, 0], "platform")[:3, :3]
    np.testing.assert_allclose(Rotation.from_matrix(poses).as_euler("xyz"), [0.3, -0.3, 0.0], atol=1e-9)


def test_unknown_angles_are_told_of():
    with pytest.raises(lw.MechanismError, match="or its orientation \\('link.yaw', '.pitch', '.roll'\\)"):
        lw.linkages.range_of_motion(built("four_bar"), "coupler.heading")
