"""The three DH conventions against products of 4x4 matrices and against each other."""

import numpy as np
import pytest

from linkwise.mechanics.joints import Prismatic
from linkwise.mechanism import from_dh, library


def along(axis, angle, distance):
    """Turn about and shift along a coordinate axis, as a 4x4 matrix."""
    c, s = np.cos(angle), np.sin(angle)
    matrix = {
        "x": [[1, 0, 0, distance], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]],
        "z": [[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, distance], [0, 0, 0, 1]],
    }
    return np.array(matrix[axis], dtype=float)


def inertial(rng):
    points, mass = rng.normal(size=(6, 3)), rng.uniform(0.5, 2.0)
    spread = mass * np.cov(points.T)
    return {"mass": mass, "com": rng.normal(size=3), "inertia": np.trace(spread) * np.eye(3) - spread}


def random_rows(n, seed):
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        row = dict(zip(("a", "alpha", "d", "theta", "offset"), rng.normal(size=5).tolist(), strict=True))
        row["kind"] = "prismatic" if i % 3 == 2 else "revolute"
        row["armature"] = float(rng.uniform())
        rows.append(row | inertial(rng))
    return rows


def variables(row, q):
    """theta and d of a row at the coordinate q."""
    if row["kind"] == "revolute":
        return row["theta"] + row["offset"] + q, row["d"]
    return row["theta"], row["d"] + row["offset"] + q


def table_frames(rows, q, convention):
    """World pose of the frame fixed to each link, from the definition of the convention."""
    pose, frames = np.eye(4), []
    for row, coordinate in zip(rows, q, strict=True):
        theta, d = variables(row, coordinate)
        if convention == "modified":
            pose = pose @ along("x", row["alpha"], row["a"]) @ along("z", theta, d)
        else:
            pose = pose @ along("z", theta, d) @ along("x", row["alpha"], row["a"])
        frames.append(pose)
    return frames


def pose_matrix(rotation, position):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, position
    return matrix


def link_frames(mechanism, q):
    """World pose of each link frame of a chain along z axes."""
    pose, frames = np.eye(4), []
    for body, coordinate in zip(mechanism.bodies, q, strict=True):
        turn, shift = (0.0, coordinate) if isinstance(body.kind, Prismatic) else (coordinate, 0.0)
        pose = pose @ pose_matrix(body.rotation, body.position) @ along("z", turn, shift)
        frames.append(pose)
    return frames


def as_saha(rows):
    """The same arm in the symbols of saha1999."""
    renamed = []
    for row in rows:
        row = dict(row)
        row["b"], row["r"] = row.pop("d"), -row.pop("com")
        renamed.append(row)
    return renamed


@pytest.mark.parametrize(
    "convention",
    ["standard", "modified", pytest.param("saha1999", marks=pytest.mark.seed("saha1999", "Appendix A", by="library"))],
)
@pytest.mark.parametrize("seed", range(5))
def test_frames_and_masses_are_where_the_table_puts_them(convention, seed):
    rows = random_rows(7, seed)
    mechanism = from_dh(as_saha(rows) if convention == "saha1999" else rows, convention)
    q = np.random.default_rng(seed + 100).normal(size=7)
    first = 2 if convention == "saha1999" else 1
    for i, (expected, link) in enumerate(
        zip(table_frames(rows, q, convention), link_frames(mechanism, q), strict=True)
    ):
        frame = mechanism.frame(f"frame{first + i}")
        assert frame.body == i
        np.testing.assert_allclose(link @ pose_matrix(frame.rotation, frame.position), expected, rtol=0, atol=1e-13)

        body, row = mechanism.bodies[i], rows[i]
        assert body.mass == row["mass"]
        np.testing.assert_allclose(
            (link @ [*body.com, 1.0])[:3], (expected @ [*row["com"], 1.0])[:3], rtol=0, atol=1e-13
        )
        np.testing.assert_allclose(
            link[:3, :3] @ body.inertia @ link[:3, :3].T,
            expected[:3, :3] @ row["inertia"] @ expected[:3, :3].T,
            rtol=0,
            atol=1e-12,
        )
        assert body.armature == (row["armature"],)


def test_saha1999_is_standard_with_other_symbols():
    rows = random_rows(6, 9)
    assert from_dh(as_saha(rows), "saha1999").bodies == from_dh(rows, "standard").bodies


@pytest.mark.parametrize("seed", range(3))
def test_standard_and_modified_describe_the_same_arm(seed):
    """Shifting a and alpha by one row turns one convention into the other; masses follow their frames."""
    rows = random_rows(6, seed)
    standard = from_dh(rows, "standard")
    modified_rows = []
    for i, row in enumerate(rows):
        before = rows[i - 1] if i else {"a": 0.0, "alpha": 0.0}
        to_far_end = along("x", row["alpha"], row["a"])  # from the link's modified frame to its standard one
        modified_rows.append(
            row
            | {"a": before["a"], "alpha": before["alpha"]}
            | {"com": (to_far_end @ [*row["com"], 1.0])[:3]}
            | {"inertia": to_far_end[:3, :3] @ row["inertia"] @ to_far_end[:3, :3].T}
        )
    modified = from_dh(modified_rows, "modified")
    q = np.random.default_rng(seed).normal(size=6)
    for a, b, frame_a, frame_b in zip(
        standard.bodies, modified.bodies, link_frames(standard, q), link_frames(modified, q), strict=True
    ):
        np.testing.assert_allclose(frame_a @ [*a.com, 1.0], frame_b @ [*b.com, 1.0], rtol=0, atol=1e-13)
        turn_a, turn_b = frame_a[:3, :3], frame_b[:3, :3]
        np.testing.assert_allclose(turn_a @ a.inertia @ turn_a.T, turn_b @ b.inertia @ turn_b.T, rtol=0, atol=1e-12)


def test_a_table_without_masses_gives_kinematics_if_asked():
    rows = [{"a": 0.5, "alpha": np.pi / 2, "d": 0.1}, {"a": 0.0, "alpha": 0.0, "theta": 0.0, "kind": "prismatic"}]
    with pytest.warns(UserWarning, match="nothing beyond these joints resists"):
        arm = from_dh(rows, strict=False)
    assert arm.parameters.singular_joints == ("joint1", "joint2")
    # the quarter turn is exact, so that it costs nothing
    np.testing.assert_array_equal(arm.bodies[1].rotation, [[1, 0, 0], [0, 0, -1], [0, 1, 0]])


def test_names_limits_and_gravity_are_passed_on():
    row = {"a": 0, "alpha": 0, "d": 0, "mass": 1, "inertia": (1, 1, 1), "link": "boom", "joint": "slew", "damping": 0.5}
    arm = from_dh([row], name="crane", gravity=(0, -9.81, 0))
    assert (arm.name, arm.link_names, arm.joint_names) == ("crane", ("boom",), ("slew",))
    assert arm.bodies[0].damping == (0.5,)
    assert arm.gravity.tolist() == [0, -9.81, 0]
    assert library.stanford_arm().name == "stanford_arm"
