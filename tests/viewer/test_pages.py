"""Pages to send: what is in them, how large they are, and that their numbers are those of the mechanism."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.pages import motions
from linkwise.viewer.pages.contents import simplified
from linkwise.viewer.shapes import Sphere

ARM = lw.mechanisms.planar_arm(2)


def data_of(page) -> dict:
    return json.loads(re.search(r'id="linkwise-data">(.*?)</script>', page.html, re.S).group(1))


def unpacked(data: dict) -> np.ndarray:
    """(members, frames, nq): the motion in a page, by the recipe of its script."""
    about, numbers = data["motion"], zlib.decompress(base64.b64decode(data["bytes"]))
    total = about["frames"] * about["columns"] * about["members"]
    planes = np.frombuffer(numbers, np.uint8, 4 * total, about["offset"]).reshape(4, total)
    bends = np.ascontiguousarray(planes.T).view("<i4").reshape(-1, about["frames"]).astype(float)
    values = np.cumsum(np.cumsum(bends, axis=1), axis=1) * np.array(about["steps"])[:, None]
    return values.reshape(about["members"], about["columns"], about["frames"]).swapaxes(1, 2)


def test_a_page_needs_nothing_from_elsewhere(tmp_path):
    page = ARM.show()
    assert not re.search(r"https?://|<link|src=|@import|fetch\(|import\(", page.html)
    ARM.save(tmp_path / "robot.html")
    assert (tmp_path / "robot.html").read_text(encoding="utf-8") == page.html
    assert re.fullmatch(r"<Page 'planar_arm_2': \d\d kB>", repr(page))


def test_a_page_inside_another_one_is_the_same_page():
    page = ARM.show(height=300, title="<arm> & co")
    inner = re.fullmatch(r'<iframe title="(.*?)" srcdoc="(.*)" style="width:100%;height:300px;border:0"></iframe>',
                         page._repr_html_(), re.S)  # fmt: skip
    assert html.unescape(inner.group(1)) == "<arm> & co" and html.unescape(inner.group(2)) == page.html
    assert "<title>&lt;arm&gt; &amp; co</title>" in page.html


def test_names_cannot_end_a_script():
    build = lw.Builder()
    build.link("</script><script>alert(1)", 1.0, com=(0.5, 0.0, 0.0))
    build.joint("</script>", lw.Revolute((0.0, 0.0, 1.0)), "ground", "</script><script>alert(1)")
    page = build.build("</title>").show()
    assert page.html.count("</script>") == 2 and page.html.count("</title>") == 1
    assert data_of(page)["links"] == ["</script><script>alert(1)"]


def test_motions_are_kept_to_a_ten_millionth():
    motion = lw.simulate(ARM, [0.5, 0.2], [0.0, 4.0], 1.0)
    data = data_of(motion.show())
    times = np.linspace(0.0, 1.0, 61)
    np.testing.assert_allclose(unpacked(data)[0], motion.at(times)[0], atol=0.6e-7)
    assert data["motion"]["frames"] == 61 and (data["motion"]["start"], data["motion"]["end"]) == (0.0, 1.0)
    assert data_of(motion.show(rate=10.0))["motion"]["frames"] == 11
    assert data["coordinates"] == ["joint1", "joint2"] and data["sliders"] == []
    assert data["units"] == ["rad", "rad"]


def test_large_coordinates_and_jumps_fit():
    q = np.array([[0.0, 0.0], [3e5, -1e-3], [-3e5, 1e-3], [0.0, 7.0]])
    found = unpacked(data_of(lw.viewer.page(ARM, q, np.arange(4.0), rate=1.0)))[0]
    assert (np.abs(found - q).max(axis=0) < [3e-3, 1e-7]).all()


def test_members_of_a_batch_stand_beside_each_other(tmp_path):
    q, v = lw.rollout(ARM, np.linspace([0.0, 0.1], [1.0, 0.3], 20), np.zeros((20, 2)), None, 0.01, 20)
    data = data_of(lw.viewer.page(ARM, q, np.arange(21) * 0.01))
    assert data["motion"]["members"] == len(data["places"]) == motions.MOST_MEMBERS
    assert data["note"] == "the first 16 of 20 motions"
    assert len({tuple(place) for place in data["places"]}) == motions.MOST_MEMBERS
    np.testing.assert_allclose(unpacked(data)[3, [0, -1]], q[3, [0, -1]], atol=1e-7)
    batch = lw.simulate(ARM, [[0.3, 0.2], [0.5, 0.1]], np.zeros((2, 2)), 0.1, method="rk4")
    batch.save(tmp_path / "batch.html", rate=20.0)
    np.testing.assert_allclose(unpacked(data_of(batch.show()))[:, -1], batch.q[-1], atol=1e-7)


def test_quaternions_of_a_motion_do_not_jump_to_their_opposites():
    ball = lw.Builder()
    ball.link("ball", 1.0, inertia=np.eye(3))
    ball.joint("free", lw.Floating(), "ground", "ball")
    mech = ball.build()
    angles = np.linspace(0.0, 9.0, 40)
    q = np.zeros((40, 7))
    q[:, 0], q[:, 3], q[:, 4] = np.cos(angles / 2), np.sin(angles / 2), angles
    flipped = q * np.where(np.arange(40) % 3 == 1, -1.0, 1.0)[:, None] ** (np.arange(7) < 4)
    data = data_of(lw.viewer.page(mech, flipped, angles, rate=39 / 9.0))
    np.testing.assert_allclose(unpacked(data)[0], q, atol=1e-7)
    assert data["quaternions"] == [0] and data["follow"]
    assert [one["name"] for one in data_of(mech.show())["sliders"]][:4] == [
        "free about x", "free about y", "free about z", "free x"
    ]  # fmt: skip


@pytest.mark.parametrize("base", ["slides and a hinge", "free"])
def test_walkers_that_go_far_are_followed_whatever_their_base_is_made_of(base):
    """A torso with a leg that goes 20 m: on slides along x and z and a hinge, as planar walkers of MJCF, or free."""
    builder = lw.Builder().link("torso", 5.0, inertia=np.eye(3)).link("leg", 1.0, inertia=np.eye(3))
    if base == "free":
        builder.joint("root", lw.Floating(), "ground", "torso")
    else:
        builder.link("along").link("upwards").joint("x", lw.Prismatic((1, 0, 0)), "ground", "along")
        builder.joint("z", lw.Prismatic((0, 0, 1)), "along", "upwards")
        builder.joint("root", lw.Revolute((0, 1, 0)), "upwards", "torso")
    builder.joint("hip", lw.Revolute((0, 1, 0)), "torso", "leg", (0.5, 0, 0))
    builder.shape("body", "torso", "sphere", 0.3).shape("shank", "leg", "capsule", (0.05, 0.3))
    mech = builder.build()
    q = np.tile(mech.initial, (21, 1))
    q[:, mech.q_index("root").start + 4 if base == "free" else 0] = np.linspace(0.0, 20.0, 21)
    data = data_of(lw.viewer.page(mech, q, 0.1 * np.arange(21)))
    assert data["follow"] and data["links"][data["base"]] == "torso"
    assert not data_of(lw.viewer.page(mech, q[:2], [0.0, 0.1]))["follow"]


def test_what_moves_in_a_plane_above_a_floor_is_seen_from_above_it(tmp_path):
    hopper = """<mujoco model="hopper"><worldbody>{}<body name="leg" pos="0 0 1"><joint type="slide" axis="1 0 0"/>
      <joint type="slide" axis="0 0 1"/><joint type="hinge" axis="0 1 0"/>
      <geom type="capsule" size="0.1" fromto="0 0 -0.5 0 0 0.5"/></body></worldbody></mujoco>"""
    for floor, above in (('<geom type="plane" size="5 5 1"/>', True), ("", False)):
        (tmp_path / "hopper.xml").write_text(hopper.format(floor))
        data = data_of(lw.load(tmp_path / "hopper.xml").show())
        assert (data["toward"][2] > 0.1) == above
        normal = np.cross(*data["grid"]["ways"])
        assert abs(normal[2 if above else 1]) > 0.99 * np.linalg.norm(normal)  # the grid is the ground, or the plane


def test_carriages_between_ends_are_not_followed():
    builder = lw.Builder().link("cart", 1.0, inertia=np.eye(3))
    builder.joint("x", lw.Prismatic((1, 0, 0)), "ground", "cart", limits=lw.Limits(-20.0, 20.0))
    mech = builder.shape("box", "cart", "box", (0.1, 0.1, 0.1)).build()
    q = np.linspace(0.0, 20.0, 21)[:, None]
    assert not data_of(lw.viewer.page(mech, q, 0.1 * np.arange(21)))["follow"]


def test_sliders_have_the_limits_of_joints():
    build = lw.Builder()
    for name, kind, limits in (
        ("lift", lw.Prismatic((0.0, 0.0, 1.0)), lw.Limits(lower=-0.2, upper=0.7)),
        ("swing", lw.Revolute((1.0, 0.0, 0.0)), None),
    ):
        build.link(name, 1.0, com=(0.0, 0.4, 0.0), inertia=np.eye(3))
        build.joint(f"{name}_joint", kind, "ground", name, limits=limits)
    lift, swing = data_of(build.build().show())["sliders"]
    assert (lift["name"], lift["unit"], lift["lower"], lift["upper"]) == ("lift_joint", "m", -0.2, 0.7)
    assert (swing["unit"], swing["lower"], swing["upper"], swing["value"]) == ("rad", -np.pi, np.pi, 0.0)


def test_loops_have_no_sliders_but_one_degree_of_freedom_a_path():
    four_bar = lw.mechanisms.four_bar()
    data = data_of(four_bar.show())
    path = unpacked(data)[0]
    assert data["sliders"] == [] and data["note"] == "along its range of motion"
    assert np.abs(lw.constraints.position_error(four_bar, path)).max() < 1e-4
    assert np.ptp(path[:, 0]) > 6.0


def spatial_four_bar() -> lw.Mechanism:
    """A crank and a rocker with a bar between two balls, which may rotate about itself: two degrees of freedom."""
    build = lw.Builder()
    for name, length in (("crank", 0.1), ("bar", 0.3), ("rocker", 0.2)):
        build.link(name, 1.0, com=(0.5 * length, 0.0, 0.0), inertia=(1e-4, 1e-3, 1e-3))
    build.joint("crank_joint", lw.Revolute((0.0, 0.0, 1.0)), "ground", "crank")
    build.joint("ball_a", lw.Spherical(), "crank", "bar", (0.1, 0.0, 0.0))
    build.joint("rocker_joint", lw.Revolute((1.0, 0.0, 0.0)), "ground", "rocker", (0.0, 0.3, 0.0))
    build.loop("ball_b", lw.Spherical(), "bar", (0.3, 0.0, 0.0), "rocker", (0.0, 0.0, 0.2))
    return build.build("spatial_four_bar")


def test_loops_with_several_degrees_of_freedom_have_one_joint_that_runs():
    mech = spatial_four_bar()
    data = data_of(mech.show())
    path = unpacked(data)[0]
    assert data["note"] == "crank_joint moves, the others follow; 2 degrees of freedom"
    assert np.ptp(path[:, mech.q_index("crank_joint")]) == pytest.approx(2.0 * np.pi, abs=1e-6)
    assert np.ptp(path[:, mech.q_index("rocker_joint")]) > 0.3
    closed = [lw.constraints.assemble(mech, q) for q in path[::40]]
    assert np.abs(np.array(closed) - path[::40]).max() < 1e-2  # frames are at even paces, between those of the path


def test_a_start_beyond_limits_and_a_range_of_motion():
    mech = lw.mechanisms.four_bar().with_limits({"crank_joint": lw.Limits(0.2, 0.6)})  # it is at zero
    assert np.ptp(unpacked(data_of(mech.show()))[0][:, 0]) > 6.0
    found = lw.linkages.range_of_motion(mech, "crank_joint", lw.configuration(mech, crank_joint=0.3), limits=True)
    for page in (lw.viewer.page(found), lw.viewer.page(mech, found)):
        data = data_of(page)
        path = unpacked(data)[0][:, 0]
        assert (path.min(), path.max()) == pytest.approx((0.2, 0.6), abs=1e-6)
        assert data["note"] == (
            "crank_joint from 11.46\N{DEGREE SIGN} (joint limit of crank_joint) to 34.38\N{DEGREE SIGN} "
            "(joint limit of crank_joint)"
        )
    slider = lw.linkages.range_of_motion(lw.mechanisms.slider_crank(), "slider.x")
    assert data_of(lw.viewer.page(slider))["note"] == "slider.x from 0.15 m (dead centre) to 0.45 m (dead centre)"


@pytest.mark.slow
def test_what_moves_without_limits_goes_some_way_and_what_cannot_be_shown_says_why():
    stewart = lw.mechanisms.stewart_platform()
    data = data_of(stewart.show())
    path = unpacked(data)[0]
    leg = path[:, stewart.q_index("leg1_rod_joint")]
    assert 0.05 < np.ptp(leg) < 1.0 and np.abs(lw.constraints.position_error(stewart, path)).max() < 1e-3
    bicycle = data_of(lw.mechanisms.bicycle().show())
    assert bicycle["motion"] is None and "depends on the way it takes" in bicycle["note"]
    snakeboard = data_of(lw.mechanisms.snakeboard().show())  # no position is excluded by its blades
    assert len(snakeboard["sliders"]) == 6 and not snakeboard["note"]


def test_a_minute_of_a_humanoid_is_small():
    mech = lw.mechanisms.random_tree(36, seed=2, joints=(lw.Revolute,))
    times = np.linspace(0.0, 60.0, 3601)
    rng = np.random.default_rng(0)
    rates, phases = rng.uniform(1.0, 12.0, (2, mech.nq, 1))
    page = lw.viewer.page(mech, np.sin(rates * times + phases).T, times)
    assert len(page.html) < 1_000_000
    assert data_of(page)["motion"]["frames"] == 3601


def test_large_meshes_get_fewer_triangles_and_keep_their_shape():
    ball = Sphere(2.0).mesh()
    assert simplified(ball) is ball
    coarse = simplified(ball, most=200)
    assert 60 < len(coarse.faces) <= 200
    assert np.abs(np.linalg.norm(coarse.vertices, axis=1) - 2.0).max() < 0.35


WITH_A_MESH = """<robot name="wedge"><link name="base"/>
<link name="arm"><visual><geometry><mesh filename="wedge.obj"/></geometry></visual>
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""
WEDGE = "v 0 0 0\nv 2 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def test_meshes_are_in_the_page_where_they_are_asked_for(tmp_path, recwarn):
    (tmp_path / "robot.urdf").write_text(WITH_A_MESH)
    mech = lw.load(tmp_path / "robot.urdf")
    recwarn.clear()
    plain = data_of(mech.show())  # nothing is read: that the file is missing does not matter
    assert not [one for one in recwarn if issubclass(one.category, lw.MechanismWarning)]
    (tmp_path / "wedge.obj").write_text(WEDGE)
    data = data_of(mech.show(meshes=True))
    (part,), (mesh,) = data["parts"], data["meshes"]
    assert (mesh["count"], mesh["triangles"], part["link"]) == (4, 4, 0)
    assert [one["triangles"] > 4 for one in plain["meshes"]] == [True]  # the symbol of the joint
    numbers = zlib.decompress(base64.b64decode(data["bytes"]))
    corners = np.frombuffer(numbers, "<u2", 12, mesh["vertices"]).reshape(4, 3) * mesh["step"] + mesh["low"]
    faces = np.round(corners, 6)[np.frombuffer(numbers, "<u2", 12, mesh["faces"]).reshape(4, 3)]
    normals = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
    assert sorted(map(tuple, normals.tolist())) == [
        (-1.0, 0.0, 0.0),
        (0.0, -2.0, 0.0),
        (0.0, 0.0, -2.0),
        (1.0, 2.0, 2.0),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": np.zeros((3, 3))}, "nq = 2, but q has shape"),
        ({"q": np.full((3, 2), np.nan)}, "must be finite"),
        ({"q": np.zeros((3, 2)), "t": [0.0, 1.0]}, "need 3 times"),
        ({"rate": 0.0}, "rate must be a positive number"),
    ],
)
def test_what_cannot_be_shown_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        lw.viewer.page(ARM, **arguments)


def test_springs_rods_and_paths_of_points_are_in_pages():
    """Between the points that they hold, stretched as these move; the path where the motion goes."""
    mech = lw.mechanisms.four_bar()
    passive = lw.forces.Passive.springs({"crank_joint": 3.0}) + lw.forces.Passive.spring_between(
        "coupler", (0.1, 0, 0), "ground", (0, 0.5, 0), 50.0
    )
    motion = lw.simulate(mech, {"crank_joint": 0.5}, None, 0.2, passive=passive)
    plain, drawn = data_of(lw.viewer.page(mech)), data_of(lw.viewer.page(motion, trail="coupler"))
    (spring,) = drawn["struts"]
    assert spring["name"] == "spring" and [end["point"] for end in spring["ends"]] == [[0.1, 0.0, 0.0], [0.0, 0.5, 0.0]]
    assert len(drawn["parts"]) == len(plain["parts"]) + 1 and not plain["struts"]  # the coil of the crank
    assert len(drawn["trails"]) == 1 and not plain["trails"]
    seen = lw.viewer.scene(mech, passive=passive)
    poses = lw.link_poses(mech, motion.q[-1])
    (strut,) = seen.struts
    ends = strut.placed(poses, np.array([0.0, 0.0, 1.0])) @ [[0.0, 0.0], [0.0, 0.0], [0.0, strut.length], [1.0, 1.0]]
    held = lw.frame_pose(mech, motion.q[-1], "coupler") @ [0.1, 0.0, 0.0, 1.0]
    np.testing.assert_allclose(ends.T, [held, [0.0, 0.5, 0.0, 1.0]], atol=1e-12)
    with pytest.raises(ValueError, match="trail is the path of a point in a motion"):
        lw.viewer.page(ARM, trail="link2")


def test_joints_and_points_of_linkages_have_their_names():
    points = {"A": (0, 0), "B": (0.05, 0.08), "C": (0.35, 0.3), "D": (0.4, 0), "P": (0.25, 0.45)}
    links = {"ground": "AD", "crank": "AB", "coupler": "BCP", "rocker": "DC"}
    mech = lw.Builder().linkage(points, links).build("four_bar")
    q = lw.configuration(mech, A=0.7)
    labels = data_of(lw.viewer.page(mech))["labels"]
    assert sorted(one["name"] for one in labels) == list("ABCDP")
    poses = lw.link_poses(mech, q)
    for one in labels:  # they go with their links
        there = poses[one["link"]] @ [*one["point"], 1.0]
        np.testing.assert_allclose(there[:3], lw.frame_pose(mech, q, one["name"])[:3, 3], atol=1e-8)
    assert data_of(lw.viewer.page(mech, labels=False))["labels"] == []
    robot = lw.mechanisms.stanford_arm()  # in space they are not in the way unless they are asked for
    assert data_of(lw.viewer.page(robot))["labels"] == []
    assert len(data_of(lw.viewer.page(robot, labels=True))["labels"]) == 4  # two pairs are at one place
    assert data_of(lw.viewer.page(lw.mechanisms.planar_arm(20)))["labels"] == []


def test_paths_have_no_time():
    arm, path = lw.mechanisms.planar_arm(2), np.linspace([0.0, 0.0], [1.0, 0.5], 5)
    shown = motions.motions_of(arm, path, None, 30.0).motion
    assert (shown.label, shown.unit) == ("along the path", "")
    assert motions.motions_of(arm, path, np.arange(5.0), 30.0).motion.unit == "s"
