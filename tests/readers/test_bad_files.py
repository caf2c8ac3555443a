"""Files that must be refused, and what the message must say."""

import os

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError
from linkwise.readers import load

LINK = '<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
TWO_LINKS = LINK.format("a") + LINK.format("b")


def robot(*parts):
    return "<robot name='r'>" + "\n".join(parts) + "</robot>"


def joint(inside="", type="revolute", name="j", parent="a", child="b"):
    return f'<joint name="{name}" type="{type}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def inertial(inside):
    return robot(f'<link name="a"/><link name="b"><inertial>{inside}</inertial></link>', joint())


BILLION_LAUGHS = '<!DOCTYPE robot [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><robot name="&b;"><link name="a"/></robot>'
EXTERNAL = '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/hostname">]><robot name="&x;"><link name="a"/></robot>'

TEXTS = {
    "empty": ("<", "malformed XML"),
    "not closed": ("<robot name='r'>\n<link name='a'>\n</robot>", "text:3: malformed XML: mismatched tag"),
    "two documents": (robot(LINK.format("a")) + "<robot/>", "malformed XML: junk after document element"),
    "billion laughs": (BILLION_LAUGHS, "document types and entities are refused"),
    "external entity": (EXTERNAL, "document types and entities are refused"),
    "undeclared entity": ("<robot name='&x;'/>", "malformed XML: undefined entity"),
    "too deep": ("<robot>" + "<a>" * 300 + "</a>" * 300 + "</robot>", "nested more than 200 deep"),
    "COLLADA": ("<COLLADA/>", "COLLADA files are not supported; supported: .*URDF"),
    "a part of a model": ("<mujocoinclude/>", "a part of an MJCF model; load the file that includes it"),
    "web page": ("<html><body/></html>", "<html> is no mechanism format"),
    "xacro macros": (
        "<robot name='r' xmlns:xacro='http://ros.org/wiki/xacro'>\n<xacro:include filename='x'/></robot>",
        "text:2: <xacro:include>: this is a xacro macro file",
    ),
    "xacro expression": (
        inertial('<mass value="${m}"/>'),
        "holds '\\${m}', which is not a number; this looks like xacro",
    ),
    "no links": (robot(), "the robot has no <link>"),
    "link without a name": (robot("<link/>"), '<link> needs the attribute name="..."'),
    "joint without a name": (robot(TWO_LINKS, joint(name=" ")), 'needs the attribute name="..."'),
    "joint without a type": (robot(TWO_LINKS, joint(type="")), '<joint name="j"> needs the attribute type="..."'),
    "link twice": (robot(LINK.format("a"), LINK.format("a")), "two links named 'a'"),
    "child link twice": (robot(TWO_LINKS, LINK.format("b"), joint()), "two links named 'b'"),
    "joint twice": (robot(TWO_LINKS, LINK.format("c"), joint(), joint(child="c")), "two joints named 'j'"),
    "two roots": (robot(TWO_LINKS), "the links 'a', 'b' are children of no joint"),
    "two parents": (
        robot(TWO_LINKS, LINK.format("c"), joint(), joint(name="k", parent="c")),
        "'a', 'c' are children of no",
    ),
    "two joints above one link": (
        robot(TWO_LINKS, joint(), joint(name="k")),
        "link 'b' hangs on two joints, 'j' and 'k'",
    ),
    "circle": (robot(TWO_LINKS, joint(), joint(name="k", parent="b", child="a")), "the joints run in a circle"),
    "circle beside the root": (
        robot(TWO_LINKS, LINK.format("c"), joint(parent="c"), joint(name="k", parent="b", child="c")),
        "the joints run in a circle: ",
    ),
    "unknown parent": (robot(TWO_LINKS, joint(parent="x")), "its parent link 'x' does not exist"),
    "unknown child": (robot(TWO_LINKS, joint(child="x")), "its child link 'x' does not exist"),
    "no parent": (robot(TWO_LINKS, '<joint name="j" type="fixed"><child link="b"/></joint>'), "has no <parent>"),
    "no child": (robot(TWO_LINKS, '<joint name="j" type="fixed"><parent link="a"/></joint>'), "has no <child>"),
    "unknown type": (robot(TWO_LINKS, joint(type="hinge")), "unknown type 'hinge'; known: revolute, continuous"),
    "zero axis": (robot(TWO_LINKS, joint('<axis xyz="0 0 0"/>')), r'<joint name="j">: its axis \(0.0, 0.0, 0.0\)'),
    "axis of two numbers": (robot(TWO_LINKS, joint('<axis xyz="0 1"/>')), 'xyz="0 1" must be three numbers'),
    "axis with commas": (robot(TWO_LINKS, joint('<axis xyz="0,0,1"/>')), "must be three numbers"),
    "origin is NaN": (robot(TWO_LINKS, joint('<origin xyz="0 nan 0"/>')), "xyz holds 'nan'; a finite number is needed"),
    "rpy is infinite": (robot(TWO_LINKS, joint('<origin rpy="inf 0 0"/>')), "rpy holds 'inf'; a finite number"),
    "mass is a word": (inertial('<mass value="1kg"/>'), "value holds '1kg', which is not a number"),
    "mass with underscores": (inertial('<mass value="1_0"/>'), "value holds '1_0'"),
    "negative mass": (inertial('<mass value="-1.5"/>'), "link 'b': its mass -1.5 is negative; fix the sign"),
    "no mass": (inertial('<inertia ixx="1" iyy="1" izz="1"/>'), '<inertial> of <link name="b"> has no <mass>'),
    "mass without value": (inertial("<mass/>"), '<mass> of <link name="b"> needs the attribute value="..."'),
    "no izz": (
        inertial('<mass value="1"/><inertia ixx="1" iyy="1"/>'),
        '<inertia> of <link name="b"> needs the attribute izz="..."',
    ),
    "commas": (robot(TWO_LINKS, joint('<origin xyz="1,2,3"/>')), 'of <joint name="j">: xyz="1,2,3" must be.*no commas'),
    "commas and blanks": (robot(TWO_LINKS, joint('<origin xyz="1, 2, 3"/>')), "holds '1,', which is not.*no commas"),
    "rotated twice": (
        robot(TWO_LINKS, joint('<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>')),
        "rpy and quat_xyzw both give",
    ),
    "zero quaternion": (
        robot(TWO_LINKS, joint('<origin quat_xyzw="0 0 0 0"/>')),
        "a quat_xyzw of zeros is no rotation",
    ),
    "limit is NaN": (robot(TWO_LINKS, joint('<limit lower="nan" upper="1"/>')), "lower holds 'nan'"),
    "mimic of itself": (robot(TWO_LINKS, joint('<mimic joint="j"/>')), "joint 'j' mimics itself"),
    "mimic without a joint": (
        robot(TWO_LINKS, joint("<mimic/>")),
        '<mimic> of <joint name="j"> needs the attribute joint="..."',
    ),
    "planar joint that mimics": (
        robot(TWO_LINKS, LINK.format("c"), joint(), joint('<mimic joint="j"/>', "planar", "k", child="c")),
        "'k' has 3 degrees of freedom; both must have one",
    ),
}


@pytest.mark.filterwarnings("ignore::linkwise.mechanism.MechanismWarning")
@pytest.mark.parametrize(("text", "message"), TEXTS.values(), ids=TEXTS.keys())
def test_refused(text, message):
    with pytest.raises(MechanismError, match=message):
        load(text)


def test_floating_base_of_a_robot_whose_joint_has_that_name():
    text = robot(TWO_LINKS, joint(name="floating_base"))
    with pytest.raises(MechanismError, match="two joints named 'floating_base'"):
        load(text, floating_base=True)


FILES = {
    "empty": (b"", "the file is empty"),
    "blank": (b"  \n\t ", "the file is empty"),
    "picture": (b"\x89PNG\r\n\x1a\n\0\0\0", "this is not an XML file"),
    "prose": (b"name: arm\nlinks: 3\n", "this is not an XML file"),
    "zeros": (b"\0" * 64, "this is not an XML file"),
    "wrong encoding": (b"<robot name='\xff\xfe'><link name='a'/></robot>", "neither UTF-8 nor.*save the file as UTF-8"),
    "unknown encoding": (
        b"<?xml version='1.0' encoding='klingon'?><robot/>",
        "unknown encoding: klingon; save the file",
    ),
    "encoding of many bytes": (b"<?xml version='1.0' encoding='gbk'?><robot/>", "multi-byte.*save the file as UTF-8"),
}


@pytest.mark.parametrize(("content", "message"), FILES.values(), ids=FILES.keys())
def test_refused_files(tmp_path, content, message):
    file = tmp_path / "arm.urdf"
    file.write_bytes(content)
    with pytest.raises(MechanismError, match=f"arm.urdf.*{message}"):
        load(file)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file .*nowhere.urdf"):
        load(tmp_path / "nowhere.urdf")
    with pytest.raises(FileNotFoundError, match="there is no file nowhere.urdf"):
        load("nowhere.urdf")


@pytest.mark.parametrize("name", ["arm.toml", "arm.csv", "ARM.TOML"])
def test_tables_are_read_by_another_function(name, tmp_path):
    (tmp_path / name).write_text('convention = "standard"')
    with pytest.raises(
        MechanismError, match="no URDF, MJCF or SDF file: lw.files.load_dh reads Denavit-Hartenberg tables"
    ):
        load(tmp_path / name)
    (tmp_path / name).write_text(" <robot/>")
    with pytest.raises(MechanismError, match="robot"):
        load(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_meshes_and_tables_are_plain_files(tmp_path):
    """A pipe or device would never end; a folder has no bytes.  All are there."""
    os.mkfifo(tmp_path / "pipe.stl")
    (tmp_path / "folder.stl").mkdir()
    (tmp_path / "device.stl").symlink_to("/dev/zero")
    for name, what in (("pipe", "pipe or device"), ("device", "pipe or device"), ("folder", "folder")):
        message = rf"{name}.stl is a {what}; only plain files are read"
        with pytest.raises(FileNotFoundError, match=message):
            lw.files.load_mesh(tmp_path / f"{name}.stl")
        asset = f"<asset><mesh name='m' file='{tmp_path}/{name}.stl'/></asset>"
        body = "<worldbody><body><joint/><geom type='mesh' mesh='m'/></body></worldbody>"
        with pytest.raises(MechanismError, match=message):
            load(f"<mujoco>{asset}{body}</mujoco>")
    with pytest.raises(FileNotFoundError, match="there is no file .*absent.stl"):
        lw.files.load_mesh(tmp_path / "absent.stl")


@pytest.mark.parametrize("thing", [None, 5, b"<robot/>"], ids=str)
def test_neither_a_path_nor_a_text(thing):
    with pytest.raises(TypeError, match="load takes the path of a URDF, MJCF or SDF file, or its text, not a"):
        load(thing)


def test_folder(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        load(tmp_path)


@pytest.mark.parametrize("text", ["", "   "])
def test_empty_string(text):
    with pytest.raises(MechanismError, match="empty string"):
        load(text)


def test_text_that_is_no_xml():
    with pytest.raises(MechanismError, match="XML starts with '<'"):
        load("links:\n  - a\n")


def test_something_that_is_no_path():
    with pytest.raises(TypeError):
        load(42)


def test_huge_file_is_not_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr("linkwise.readers.protocol.MAX_BYTES", 100)
    with pytest.raises(MechanismError, match="no more than 100 are read"):
        load(robot(TWO_LINKS, joint()))


@pytest.mark.filterwarnings("ignore::linkwise.mechanism.MechanismWarning")
def test_damaged_files_are_read_or_refused_but_never_break_the_reader(tmp_path):
    whole = robot(TWO_LINKS, joint('<origin rpy="1 2 3"/><axis xyz="0 0 1"/><limit lower="-1" upper="1"/>')).encode()
    rng, file, refused = np.random.default_rng(5), tmp_path / "damaged.urdf", 0
    for _ in range(400):
        damaged = bytearray(whole[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.3 else whole)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(len(damaged))] = rng.integers(256) if rng.random() < 0.3 else rng.choice(list(whole))
        file.write_bytes(damaged)
        try:
            load(file)
        except MechanismError as error:
            assert "damaged.urdf" in str(error)
            refused += 1
    assert 200 < refused < 400
