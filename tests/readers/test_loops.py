"""Companion files of loops: what they say, in every way of saying it, and what they must not say."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError

FOUR_BAR = """<robot name="four_bar">
  <link name="base"/>
  <link name="crank"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="coupler"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="rocker"><inertial><origin xyz="0.15 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="crank_joint" type="continuous"><parent link="base"/><child link="crank"/><axis xyz="0 0 1"/></joint>
  <joint name="coupler_joint" type="continuous"><parent link="crank"/><child link="coupler"/>
    <origin xyz="0.2 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="rocker_joint" type="continuous"><parent link="base"/><child link="rocker"/>
    <origin xyz="0.5 0 0"/><axis xyz="0 0 1"/></joint>
</robot>
"""

LOOP = """
[[loop]]
name = "tip_pin"
kind = "revolute"
axis = [0.0, 0.0, 1.0]
link_a = "coupler"
pose_a = {xyz = [0.4, 0.0, 0.0]}
link_b = "rocker"
pose_b = {xyz = [0.3, 0.0, 0.0], rpy = [0.0, 0.0, 0.0]}
"""
TABLE = {
    "name": "tip_pin",
    "kind": "revolute",
    "axis": [0.0, 0.0, 1.0],
    "link_a": "coupler",
    "pose_a": {"xyz": [0.4, 0.0, 0.0]},
    "link_b": "rocker",
    "pose_b": {"xyz": [0.3, 0.0, 0.0]},
}
QUARTER = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


def test_a_file_text_dicts_and_loops_say_the_same(tmp_path):
    urdf, file = tmp_path / "robot.urdf", tmp_path / "robot.loops.toml"
    urdf.write_text(FOUR_BAR)
    file.write_text(LOOP, encoding="utf-8-sig")
    made = [
        lw.load(urdf, loops=file),
        lw.load(str(urdf), loops=str(file)),
        lw.load(FOUR_BAR, loops=LOOP),
        lw.load(FOUR_BAR, loops=[TABLE]),
        lw.load(FOUR_BAR, loops=(table for table in [TABLE])),
        lw.load(FOUR_BAR, loops=list(lw.load(FOUR_BAR, loops=[TABLE]).loops)),
        lw.load(FOUR_BAR).with_loops(
            lw.constraints.Loop(
                "tip_pin", lw.Revolute((0, 0, 1)), "coupler", (None, (0.4, 0, 0)), "rocker", (None, (0.3, 0, 0))
            )
        ),
    ]
    assert all(mech == made[0] for mech in made)
    assert not lw.load(urdf).loops  # nothing is read that was not asked for
    assert lw.load(FOUR_BAR, loops=[]) == lw.load(FOUR_BAR)


def test_the_loop_closes_the_four_bar():
    """Assembled against the law of cosines: the distance from the crank's end to the rocker's pivot."""
    mech = lw.load(FOUR_BAR, loops=LOOP)
    q = lw.constraints.assemble(mech, [0.6, 0.4, 2.0], hold=("crank_joint",))
    tip = np.array([0.2 * np.cos(q[0]) + 0.4 * np.cos(q[0] + q[1]), 0.2 * np.sin(q[0]) + 0.4 * np.sin(q[0] + q[1])])
    np.testing.assert_allclose(tip, [0.5 + 0.3 * np.cos(q[2]), 0.3 * np.sin(q[2])], atol=1e-11)
    reach = np.hypot(0.5 - 0.2 * np.cos(q[0]), 0.2 * np.sin(q[0]))
    at_tip = np.arccos((0.4**2 + 0.3**2 - reach**2) / (2 * 0.4 * 0.3))
    assert np.isclose(abs(np.sin(q[2] - q[0] - q[1])), np.sin(at_tip), atol=1e-10)
    assert lw.constraints.degrees_of_freedom(mech, q) == 1


@pytest.mark.parametrize(
    "pose",
    [
        {"xyz": [0.1, 0.2, 0.3], "rpy": [0.0, 0.0, np.pi / 2]},
        {"xyz": [0.1, 0.2, 0.3], "quaternion": [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]},
        {"xyz": [0.1, 0.2, 0.3], "rotation": QUARTER},
        [[0, -1, 0, 0.1], [1, 0, 0, 0.2], [0, 0, 1, 0.3], [0, 0, 0, 1]],
    ],
    ids=["rpy", "quaternion", "rotation", "matrix"],
)
def test_ways_to_write_a_pose(pose):
    (loop,) = lw.load(FOUR_BAR, loops=[{**TABLE, "pose_a": pose}]).loops
    np.testing.assert_allclose(loop.pose_a[0], QUARTER, atol=1e-15)
    np.testing.assert_allclose(loop.pose_a[1], [0.1, 0.2, 0.3], atol=0)


def test_poses_left_out_are_the_links_own():
    table = {key: value for key, value in TABLE.items() if not key.startswith("pose")}
    (loop,) = lw.load(FOUR_BAR, loops=[table]).loops
    np.testing.assert_array_equal(loop.pose_b[0], np.eye(3))


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ({"kind": "prismatic", "axis": [0, 2, 0]}, lw.Prismatic((0, 1, 0))),
        ({"kind": "cylindrical", "axis": [1, 0, 0]}, lw.Cylindrical((1, 0, 0))),
        ({"kind": "planar", "axis": [0, 0, 1]}, lw.Planar((0, 0, 1))),
        ({"kind": "helical", "axis": [0, 0, 1], "pitch": 0.01}, lw.Helical((0, 0, 1), 0.01)),
        ({"kind": "universal", "axis1": [1, 0, 0], "axis2": [0, 1, 0]}, lw.Universal((1, 0, 0), (0, 1, 0))),
        ({"kind": "pin_in_slot", "slide_axis": [1, 0, 0], "pin_axis": [0, 1, 0]}, lw.PinInSlot((1, 0, 0), (0, 1, 0))),
        ({"kind": "spherical"}, lw.Spherical()),
        ({"kind": "Fixed"}, lw.Fixed()),
        ({"kind": "wheel", "radius": 0.3, "axis": [1, 0, 0]}, lw.contact.Wheel(0.3, (1, 0, 0))),
        (
            {"kind": "wheel", "radius": 0.3, "grip": "lateral", "contact": False},
            lw.contact.Wheel(0.3, (0, 1, 0), 0.0, "lateral", False),
        ),
        ({"kind": "ball", "radius": 0.3}, lw.contact.Ball(0.3)),
        ({"kind": "knife_edge"}, lw.contact.KnifeEdge()),
        ({"kind": "distance", "length": 0.7}, lw.contact.Distance(0.7)),
    ],
)
def test_every_kind(keys, kind):
    table = {key: value for key, value in TABLE.items() if key not in ("kind", "axis")}
    (loop,) = lw.load(FOUR_BAR, loops=[{**table, **keys}]).loops
    assert loop.kind == kind


def test_all_kinds_are_listed_where_one_is_unknown():
    """In a process of its own: other tests make further kinds of joints."""
    script = "import linkwise as lw, sys; lw.load(sys.argv[1], loops=[{**eval(sys.argv[2]), 'kind': 'xyzzy'}])"
    told = subprocess.run([sys.executable, "-c", script, FOUR_BAR, repr(TABLE)], capture_output=True, text=True)
    assert told.stderr.strip().endswith(
        "unknown kind 'xyzzy': known: 'cylindrical', 'fixed', 'helical', 'pin_in_slot', 'planar', 'prismatic', "
        "'revolute', 'spherical', 'universal', 'ball', 'distance', 'knife_edge', ..."
    )


def test_wheels_that_are_not_understood_are_refused():
    table = {"name": "w", "kind": "wheel", "link_a": "base", "link_b": "coupler"}
    for keys, message in (
        ({}, "a wheel loop needs radius"),
        ({"radius": 0.3, "grip": "some"}, "unknown grip 'some'"),
        ({"radius": 0.3, "contact": "yes"}, "contact"),
        ({"radius": -0.3}, "radius of a wheel must be positive"),
    ):
        with pytest.raises(MechanismError, match=message):
            lw.load(FOUR_BAR, loops=[{**table, **keys}])


@dataclass(frozen=True)
class Slotted(lw.Planar):
    """A user's own kind, with a number that has no default."""

    width: float = field(kw_only=True)


def test_a_kind_of_ones_own():
    keys = {"kind": f"{__name__}.Slotted", "axis": [0, 1, 0], "width": 0.2}
    (loop,) = lw.load(FOUR_BAR, loops=[{**TABLE, **keys}]).loops
    assert loop.kind == Slotted((0, 1, 0), width=0.2)
    with pytest.raises(MechanismError, match=r"Slotted loop needs width = \.\.\."):
        lw.load(FOUR_BAR, loops=[{**TABLE, "kind": keys["kind"]}])


BAD = {
    "unknown link": (
        {"link_a": "couplr"},
        r"loop 1 \('tip_pin'\).*no link 'couplr' for link_a: did you mean 'coupler'",
    ),
    "unknown kind": ({"kind": "revolut"}, "unknown kind 'revolut': did you mean 'revolute'"),
    "key of a pin in a slot": ({"kind": "PinInSlot"}, "unknown key 'axis' of a pin_in_slot loop"),
    "six degrees of freedom": ({"kind": "floating"}, "unknown kind 'floating'"),
    "missing axis": ({"axis": None}, r"a revolute loop needs axis = \[x, y, z\]"),
    "axis too long": ({"axis": [1.0, 0.0]}, "axis of loop 1.*shape"),
    "axis without direction": ({"axis": [0.0, 0.0, 0.0]}, "finite and not zero"),
    "axis of words": ({"axis": "z"}, "axis of loop 1.*must be numbers"),
    "axis of quoted numbers": ({"axis": ["0", "0", "1"]}, "axis of loop 1.*must be numbers"),
    "axis of truth values": ({"axis": [False, 0.0, True]}, "axis of loop 1.*must be numbers"),
    "quoted pitch": ({"kind": "helical", "pitch": "0.4"}, "pitch of loop 1.*must be numbers"),
    "true pitch": ({"kind": "helical", "pitch": True}, "pitch of loop 1.*must be numbers"),
    "missing pitch": ({"kind": "helical"}, r"a helical loop needs pitch = \.\.\."),
    "quoted position": ({"pose_a": {"xyz": [0, "0.4", 0]}}, "xyz of pose_a.*must be numbers"),
    "quoted matrix": ({"pose_a": np.eye(4).astype(str).tolist()}, "pose_a of loop 'tip_pin' must be numbers"),
    "no name": ({"name": None}, "loop 1: name is missing"),
    "name is no string": ({"name": 3}, "loop 1: name is 3; a string is needed"),
    "kind is no string": ({"kind": ["revolute"]}, "kind is .'revolute'.; a string"),
    "link left out": ({"link_b": None}, "link_b is missing"),
    "unknown key": ({"axes": [0, 0, 1]}, "unknown key 'axes' of a revolute loop: did you mean 'axis'"),
    "key of another kind": ({"pitch": 0.1}, "unknown key 'pitch' of a revolute loop"),
    "pose of words": ({"pose_a": "here"}, "pose_a of loop 'tip_pin'"),
    "pose of five": ({"pose_a": [[1.0]] * 5}, "pose_a of loop 'tip_pin' must be"),
    "position too short": ({"pose_a": {"xyz": [1.0]}}, r"xyz of pose_a of loop 1 \('tip_pin'\) must have shape"),
    "unknown key of a pose": ({"pose_a": {"xyzz": [0, 0, 0]}}, "unknown key 'xyzz': did you mean 'xyz'"),
    "rotated twice": ({"pose_a": {"rpy": [0, 0, 0], "quaternion": [1, 0, 0, 0]}}, "rpy and quaternion both"),
    "no quaternion": ({"pose_a": {"quaternion": [1, 1, 0, 0]}}, "of length 1, not 1.41"),
    "no rotation": ({"pose_a": {"rotation": np.ones((3, 3)).tolist()}}, "is not a rotation"),
    "not finite": ({"pose_a": {"xyz": [0.0, np.nan, 0.0]}}, "must be finite"),
    "one body": ({"link_b": "coupler"}, "same rigid body"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables(case):
    changes, message = BAD[case]
    table = {key: value for key, value in {**TABLE, **changes}.items() if value is not None}
    with pytest.raises(MechanismError, match=message):
        lw.load(FOUR_BAR, loops=[table])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LOOP + LOOP, "two loops are named 'tip_pin'"),
        ("[loop]\nname = 'x'\n", r"written as \[\[loop\]\]"),
        ("\n", "there is none"),
        ("links = 3\n" + LOOP, "unknown key 'links'"),
        ("[[loop]\n", "this is not TOML"),
        ("loop = [3]\n", "loop 1 must be a table"),
    ],
)
def test_bad_files(tmp_path, text, message):
    file = tmp_path / "x.loops.toml"
    file.write_text(text)
    for source in (file, text):
        with pytest.raises(MechanismError, match=message) as caught:
            lw.load(FOUR_BAR, loops=source)
        assert str(caught.value).startswith(str(file) if source is file else "loops")


def test_bad_sources(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*missing\.toml of loops"):
        lw.load(FOUR_BAR, loops=tmp_path / "missing.toml")
    with pytest.raises(MechanismError, match="not a dict"):
        lw.load(FOUR_BAR, loops=TABLE)
    with pytest.raises(MechanismError, match="not a int"):
        lw.load(FOUR_BAR, loops=3)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00\xd8")
    with pytest.raises(MechanismError, match="is no text file"):
        lw.load(FOUR_BAR, loops=binary)


# -- couplings ----------------------------------------------------------------------------------------

COUPLING = """
[[coupling]]
name = "gear"
ratios = {crank_joint = 2.0, rocker_joint = -1.0}
offset = 0.3
"""
GEAR = lw.constraints.Coupling("gear", {"crank_joint": 2.0, "rocker_joint": -1.0}, 0.3)


def test_couplings_stand_beside_loops():
    table = {"name": "gear", "ratios": {"crank_joint": 2.0, "rocker_joint": -1.0}, "offset": 0.3}
    both = lw.load(FOUR_BAR, loops=LOOP + COUPLING)
    assert both == lw.load(FOUR_BAR, loops=[TABLE, table]) == lw.load(FOUR_BAR, loops=[TABLE, GEAR])
    assert both.loops[1] == GEAR and lw.load(FOUR_BAR, loops=COUPLING).loops == (GEAR,)
    assert lw.load(FOUR_BAR, loops=COUPLING.replace("offset = 0.3", "")).loops[0].offset == 0.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            COUPLING.replace("ratios", "ratio"),
            r"loop 1 \('gear'\): unknown key 'ratio' of a coupling: did you mean 'ratios'",
        ),
        (COUPLING.replace("ratios = {crank_joint = 2.0, rocker_joint = -1.0}", ""), "a coupling needs ratios = {joint"),
        (COUPLING.replace("crank_joint", "crank"), "coupling 'gear': .* has no moving joint 'crank'.*that is a link"),
        (COUPLING.replace('name = "gear"', ""), "the name of a coupling must be a non-empty string"),
        (COUPLING.replace("2.0", "'two'"), "a ratio of coupling 'gear'"),
        (COUPLING.replace("[[coupling]]", "[coupling]"), "written as"),
    ],
)
def test_couplings_that_are_not_understood_are_refused(text, message):
    with pytest.raises(MechanismError, match=message):
        lw.load(FOUR_BAR, loops=text)
