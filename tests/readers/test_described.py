"""Macros of xacro and robots of robot_descriptions: loaded with the real packages where they are installed, with
stand-ins of the same interface elsewhere, and messages where they are missing."""

from __future__ import annotations

import subprocess
import sys
import types
from xml.dom import minidom

import pytest

import linkwise as lw

MACROS = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="mass" default="2"/>
  <xacro:property name="reach" value="0.4"/>
  <xacro:macro name="segment" params="name length">
    <link name="${name}"><inertial><origin xyz="${length / 2} 0 0"/><mass value="$(arg mass)"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  </xacro:macro>
  <link name="base"/>
  <xacro:segment name="upper" length="${reach}"/>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/></joint>
</robot>"""
PLAIN = """<robot name="arm"><link name="base"/><link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/></joint>
</robot>"""


# -- xacro --------------------------------------------------------------------------------------------


def test_macros(tmp_path):
    pytest.importorskip("xacro")
    (tmp_path / "arm.urdf.xacro").write_text(MACROS)
    assert lw.load(tmp_path / "arm.urdf.xacro") == lw.load(PLAIN)
    assert lw.load(str(tmp_path / "arm.urdf.xacro"), name="other").name == "other"
    (tmp_path / "part.xacro").write_text(MACROS.replace('default="2"', 'default="$(arg other)"'))
    with pytest.raises(lw.MechanismError, match=r"part\.xacro: xacro cannot expand it: .*other.*name:=value"):
        lw.load(tmp_path / "part.xacro")


@pytest.fixture
def stand_in(monkeypatch):
    """A module ``xacro`` that puts 2 in place of an argument; the calls that it gets."""
    calls = []

    def process_file(path, mappings):
        calls.append((path, mappings))
        with open(path) as file:
            text = file.read()
        if "FAIL" in text:
            raise RuntimeError("no package\nanywhere")
        return minidom.parseString(text.replace("$(arg mass)", mappings.get("mass", "2")))

    monkeypatch.setitem(sys.modules, "xacro", types.SimpleNamespace(process_file=process_file))
    return calls


def test_what_is_expanded_and_how(stand_in, tmp_path):
    text = PLAIN.replace('mass value="2"', 'mass value="$(arg mass)"')
    (tmp_path / "arm.XACRO").write_text(text)
    (tmp_path / "arm.urdf").write_text(PLAIN)
    assert lw.load(tmp_path / "arm.XACRO") == lw.load(tmp_path / "arm.urdf")
    assert stand_in == [(str(tmp_path / "arm.XACRO"), {})]
    (tmp_path / "fail.xacro").write_text("<robot>FAIL</robot>")
    with pytest.raises(lw.MechanismError, match=r"fail\.xacro: xacro cannot expand it: no package anywhere; "):
        lw.load(tmp_path / "fail.xacro")
    for text, message in (("<robot>", r"bad\.xacro:1: malformed"), ("<!DOCTYPE x><robot/>", "document types")):
        (tmp_path / "bad.xacro").write_text(text)
        with pytest.raises(lw.MechanismError, match=message):
            lw.load(tmp_path / "bad.xacro")
    assert len(stand_in) == 2  # nothing of these is evaluated
    with pytest.raises(FileNotFoundError):
        lw.load(tmp_path / "none.xacro")
    with pytest.raises(lw.MechanismError, match="load it as a file named .xacro"):
        lw.load('<robot name="x"><xacro:macro/></robot>')


# -- robot_descriptions -------------------------------------------------------------------------------


@pytest.fixture
def package(monkeypatch, tmp_path):
    """A package of the same interface with four robots."""
    folder = tmp_path / "robot_descriptions"
    folder.mkdir()
    (tmp_path / "arm.urdf").write_text(PLAIN)
    (tmp_path / "arm.xacro").write_text(PLAIN.replace('mass value="2"', 'mass value="$(arg mass)"'))
    modules = {
        "__init__": "",
        "arm_description": f"URDF_PATH = {str(tmp_path / 'arm.urdf')!r}\nMJCF_PATH = 'other'",
        "heavy_description": f"XACRO_PATH = {str(tmp_path / 'arm.xacro')!r}\nXACRO_ARGS = {{'mass': '5'}}",
        "empty_description": "",
        "far_description": "raise OSError('no\\n network')",
        "_cache": "",
    }
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        del sys.modules[name]


def test_robot_descriptions(package, stand_in):
    assert lw.load("robot_descriptions:arm_description") == lw.load(PLAIN)
    assert lw.load("robot_descriptions:heavy_description").parameters.masses.sum() == 5.0
    assert lw.load("robot_descriptions:arm_description", name="x").name == "x"
    for name, message in (
        ("arm_descriptio", "has no 'arm_descriptio': did you mean 'arm_description'"),
        ("_cache", "has no '_cache'"),
        ("empty_description", "neither a URDF file nor an MJCF file"),
        ("far_description", "cannot be fetched: no network; .*ROBOT_DESCRIPTIONS_CACHE"),
    ):
        with pytest.raises(lw.MechanismError, match=message):
            lw.load(f"robot_descriptions:{name}")


def test_the_real_package_without_network(tmp_path):
    """A process of its own, whose cache is empty and whose git reaches nobody."""
    pytest.importorskip("robot_descriptions")
    pytest.importorskip("git")
    script = """
import os, sys
os.environ |= {"ROBOT_DESCRIPTIONS_CACHE": sys.argv[1], "HTTPS_PROXY": "http://127.0.0.1:9", "GIT_TERMINAL_PROMPT": "0"}
import linkwise as lw
for name, words in (("panda_description", "cannot be fetched"), ("panda_descriptio", "did you mean")):
    try:
        lw.load("robot_descriptions:" + name)
    except lw.MechanismError as error:
        assert words in str(error), error
    else:
        raise AssertionError(name)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("module", "extra"), [("xacro", "xacro"), ("robot_descriptions", "descriptions")])
def test_packages_that_are_missing(tmp_path, monkeypatch, module, extra):
    (tmp_path / "arm.xacro").write_text(MACROS)
    source = tmp_path / "arm.xacro" if module == "xacro" else "robot_descriptions:panda_description"
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install 'linkwise\[{extra}\]'"):
        lw.load(source)
