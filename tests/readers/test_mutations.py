"""Files damaged at random: each is read, or refused by an error of this library that says where and why.

No exception of another library and no warning of numpy reaches the caller; messages stay short whatever a file holds.
"""

from __future__ import annotations

import copy
import random
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

import linkwise as lw

MJCF = """<mujoco model="arm"><compiler angle="degree" autolimits="true" eulerseq="xyz"/>
<option timestep="0.002" gravity="0 0 -9.81" density="1.2" viscosity="0.01" wind="1 0 0"><flag limit="enable"/></option>
<default><joint damping="0.1" armature="0.01"/><geom density="900" friction="0.8 0.1 0.1"/>
  <default class="servo"><position kp="20" kv="1" ctrlrange="-1 1"/><general gear="2"/>
  <default class="slow"><position timeconst="0.1"/></default></default></default>
<asset><mesh name="tetra" vertex="0 0 0 1 0 0 0 1 0 0 0 1" inertia="convex"/></asset>
<worldbody><geom name="floor" type="plane" size="5 5 0.1"/>
  <body name="base" pos="0 0 1" euler="0 10 20"><freejoint name="free"/>
    <geom name="hull" type="box" size="0.2 0.1 0.05"/><inertial pos="0 0 0" mass="2" diaginertia="0.1 0.2 0.15"/>
    <body name="upper" pos="0.2 0 0" quat="1 0.1 0 0" gravcomp="0.5"><joint name="shoulder" axis="0 1 0" range="-90 90"
      stiffness="2" springref="10" frictionloss="0.1" ref="5"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04"/>
      <frame pos="0.3 0 0" axisangle="0 0 1 30"><body name="lower" zaxis="0 0.2 1"><joint name="elbow" type="hinge"
        axis="0 1 0" springdamper="0.2 0.7"/><geom type="cylinder" size="0.03 0.2" mass="0.4" fluidshape="ellipsoid"/>
        <site name="tip" pos="0.2 0 0"/><body name="hand" xyaxes="1 0 0 0 1 0" pos="0.3 0 0"><joint name="wrist"
          type="ball" damping="0.2"/><geom type="mesh" mesh="tetra" density="100"/>
          <geom type="ellipsoid" size="0.1 0.05 0.02"/></body></body></frame></body></body>
  <body name="cart" pos="0 2 0"><joint name="rail" type="slide" axis="1 0 0" limited="true" range="-1 1"/>
    <geom type="sphere" size="0.1"/><body name="pole"><joint name="hinge" axis="0 1 0"/>
    <geom type="capsule" size="0.02 0.4" pos="0 0 0.4" shellinertia="true"/></body></body>
  <replicate count="2" offset="0 0.5 0" euler="0 0 15"><body name="link" pos="3 0 0"><joint name="link_joint"/>
    <geom size="0.1" contype="0"/></body></replicate></worldbody>
<tendon><fixed name="cable" stiffness="3" damping="0.1" range="-1 1" springlength="0.1"><joint joint="shoulder"
  coef="0.5"/><joint joint="elbow" coef="-1"/></fixed></tendon>
<equality><joint joint1="hinge" joint2="rail" polycoef="0 2 0 0 0"/><connect body1="lower" body2="upper"
  anchor="0 0 0"/><weld name="w" body1="cart" body2="base" active="false"/></equality>
<contact><exclude body1="base" body2="upper"/><pair geom1="hull" geom2="floor" friction="1 1 0.1 0.1 0.1"/></contact>
<actuator><position class="slow" joint="shoulder"/><motor joint="elbow" gear="5" forcerange="-2 2"/>
  <general tendon="cable" gainprm="3" biastype="affine" biasprm="0 -3 0.4"/><velocity class="servo" joint="rail"/>
  <motor site="tip" gear="1 0 0 0 0.1 0"/><cylinder joint="rail" timeconst="0.3" area="2" bias="1 2 3"/></actuator>
<keyframe><key name="home" qpos="0 0 1 1 0 0 0 0.1 0.2 1 0 0 0 0 0 0 0" ctrl="0 0 0 0 0 0"/></keyframe></mujoco>"""
URDF = """<?xml version="1.0"?>
<robot name="arm"><material name="red"><color rgba="1 0 0 1"/></material>
<link name="base"><inertial><mass value="3"/><origin xyz="0 0 0.1" rpy="0.1 0 0"/><inertia ixx="0.1" ixy="0" ixz="0"
  iyy="0.1" iyz="0" izz="0.05"/></inertial><visual><origin xyz="0 0 0"/><geometry><box size="0.1 0.2 0.3"/></geometry>
  <material name="red"/></visual><collision><geometry><sphere radius="0.2"/></geometry></collision></link>
<link name="upper"><inertial><mass value="1.5"/><origin xyz="0.2 0 0"/><inertia ixx="0.01" ixy="0.001" ixz="0"
  iyy="0.02" iyz="0" izz="0.02"/></inertial><collision><geometry><cylinder radius="0.05" length="0.4"/></geometry>
  </collision></link>
<link name="lower"><inertial><mass value="0.7"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/>
  </inertial></link>
<link name="slider"><inertial><mass value="0.2"/><inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/>
  </inertial></link><link name="tip"/>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.2" rpy="0 0.1 0"/>
  <axis xyz="0 1 0"/><limit lower="-1.5" upper="1.5" effort="20" velocity="3"/><dynamics damping="0.2" friction="0.1"/>
  <safety_controller soft_lower_limit="-1" soft_upper_limit="1" k_position="10" k_velocity="5"/></joint>
<joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0"/>
  <axis xyz="0 1 0"/></joint>
<joint name="slide" type="prismatic"><parent link="lower"/><child link="slider"/><axis xyz="1 0 0"/>
  <limit lower="0" upper="0.1" effort="5" velocity="1"/><mimic joint="elbow" multiplier="0.5" offset="0.01"/></joint>
<joint name="flange" type="fixed"><parent link="slider"/><child link="tip"/><origin xyz="0.1 0 0" rpy="0 0 1"/></joint>
<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="shoulder">
  <hardwareInterface>EffortJointInterface</hardwareInterface></joint><actuator name="m"><mechanicalReduction>50
  </mechanicalReduction></actuator></transmission></robot>"""
SDF = """<sdf version="1.9"><world name="w"><gravity>0 0 -9.8</gravity><model name="arm"><pose>0 0 1 0.1 0 0</pose>
<frame name="f" attached_to="base"><pose>0.1 0 0 0 0 0.2</pose></frame>
<link name="base"><inertial><mass>3</mass><pose>0 0 0.1 0 0 0</pose><inertia><ixx>0.1</ixx><ixy>0</ixy><ixz>0</ixz>
  <iyy>0.1</iyy><iyz>0</iyz><izz>0.05</izz></inertia></inertial><collision name="c"><geometry><box><size>0.1 0.2 0.3
  </size></box></geometry></collision><visual name="v"><geometry><sphere><radius>0.2</radius></sphere></geometry>
  </visual></link>
<link name="upper"><pose relative_to="shoulder">0.2 0 0 0 0 0</pose><inertial><mass>1</mass></inertial></link>
<link name="lower"><pose relative_to="upper">0.4 0 0 0 0.1 0</pose></link>
<link name="nut"><pose degrees="true">0.4 0.3 0 0 10 0</pose></link>
<joint name="shoulder" type="revolute"><pose relative_to="f">0 0 0.1 0 0 0</pose><parent>base</parent>
  <child>upper</child><axis><xyz expressed_in="__model__">0 1 0</xyz><limit><lower>-1</lower><upper>1</upper>
  <effort>10</effort><velocity>2</velocity></limit><dynamics><damping>0.1</damping><friction>0.2</friction>
  <spring_stiffness>3</spring_stiffness><spring_reference>0.1</spring_reference></dynamics></axis></joint>
<joint name="elbow" type="universal"><parent>upper</parent><child>lower</child><axis><xyz>0 1 0</xyz></axis>
  <axis2><xyz>1 0 0</xyz></axis2></joint>
<joint name="thread" type="screw"><parent>lower</parent><child>nut</child><screw_thread_pitch>0.1</screw_thread_pitch>
  <axis><xyz>0 0 1</xyz></axis></joint>
<joint name="loop" type="ball"><parent>base</parent><child>nut</child></joint></model></world></sdf>"""
TEXTS = {"mjcf": MJCF, "urdf": URDF, "sdf": SDF}

VALUES = (
    *("1e200", "-1e200", "1e308", "1e-300", "1e-160", "-1", "0", "nan", "inf", "-inf", "1e400", "", " ", "word", "1,5"),
    *(
        "0 0 0",
        "1 2",
        "1 2 3",
        "-1 -2 -3",
        "1e150 1e150 1e150",
        "1e-200 0 0",
        "true",
        "1_000",
        "0x10",
        "\u0663",
        "${x}",
    ),
    *(
        "9" * 5000,
        "1 " * 5000,
        "a" * 200_000,
        "\u00e4\u4e2d" * 3000,
        "world",
        "base",
        "1e9",
        "1e17",
        "../../etc",
        "'\"<",
    ),
)
Mutation = Callable[[random.Random, ET.Element], None]


def _elements(root: ET.Element) -> list[tuple[ET.Element, ET.Element]]:
    """(parent, child), ..."""
    return [(parent, child) for parent in root.iter() for child in parent]


def _with_attributes(rng: random.Random, root: ET.Element) -> ET.Element:
    return rng.choice([one for one in root.iter() if one.attrib])


def _value(rng: random.Random, root: ET.Element) -> None:
    contents = [one for one in root.iter() if (one.text or "").strip()]
    if contents and rng.random() < 0.5:
        rng.choice(contents).text = rng.choice(VALUES)
        return
    one = _with_attributes(rng, root)
    one.attrib[rng.choice(list(one.attrib))] = rng.choice(VALUES)


def _number(rng: random.Random, root: ET.Element) -> None:
    """One number of a list."""
    one = _with_attributes(rng, root)
    key = rng.choice(list(one.attrib))
    words = one.attrib[key].split() or [""]
    words[rng.randrange(len(words))] = rng.choice(VALUES[:15])
    one.attrib[key] = " ".join(words)


def _removed(rng: random.Random, root: ET.Element) -> None:
    one = _with_attributes(rng, root)
    del one.attrib[rng.choice(list(one.attrib))]


def _renamed(rng: random.Random, root: ET.Element) -> None:
    one = _with_attributes(rng, root)
    key = rng.choice(list(one.attrib))
    others = [name for other in root.iter() for name in other.attrib]
    one.attrib[rng.choice([key[:-1] or "x", key + "s", rng.choice(others)])] = one.attrib.pop(key)


def _swapped(rng: random.Random, root: ET.Element) -> None:
    """The value of another attribute of the same name."""
    one = _with_attributes(rng, root)
    key = rng.choice(list(one.attrib))
    one.attrib[key] = rng.choice([other.attrib[key] for other in root.iter() if key in other.attrib])


def _deleted(rng: random.Random, root: ET.Element) -> None:
    parent, child = rng.choice(_elements(root))
    parent.remove(child)


def _duplicated(rng: random.Random, root: ET.Element) -> None:
    parent, child = rng.choice(_elements(root))
    parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(child))


def _moved(rng: random.Random, root: ET.Element) -> None:
    parent, child = rng.choice(_elements(root))
    parent.remove(child)
    other = rng.choice(list(root.iter()))
    other.insert(rng.randrange(len(other) + 1), child)


def _nested(rng: random.Random, root: ET.Element) -> None:
    """A copy of an element in itself, several times."""
    _, child = rng.choice(_elements(root))
    for _ in range(rng.choice((1, 3, 100))):
        inner = copy.deepcopy(child) if len(list(child.iter())) < 4 else ET.Element(child.tag, dict(child.attrib))
        child.append(inner)
        child = inner


def _retagged(rng: random.Random, root: ET.Element) -> None:
    _, child = rng.choice(_elements(root))
    child.tag = rng.choice([rng.choice([one.tag for one in root.iter()]), "x" * rng.choice((3, 5000))])


MUTATIONS: tuple[Mutation, ...] = (
    *(_value, _value, _number, _number, _removed, _renamed, _swapped),
    *(_deleted, _duplicated, _moved, _nested, _retagged),
)


def _damaged_bytes(rng: random.Random, text: str) -> str | bytes:
    """Text cut off, with an attribute twice, with foreign characters, or in another encoding."""
    at = rng.randrange(1, len(text))
    kind = rng.randrange(8)
    if kind == 0:
        return text[:at]
    if kind == 1:
        return re.sub(r' (\w+)="', r' \1="1" \1="', text, count=1)
    if kind == 2:
        return text[:at] + rng.choice(("\0", "&", "<", "]]>", "<!-- ", "<!DOCTYPE x>", "\ud800", "&#0;")) + text[at:]
    if kind == 3:
        return text[:at].encode() + bytes([rng.randrange(128, 256)]) + text[at:].encode()
    if kind == 4:
        return text.encode(rng.choice(("utf-16", "utf-16-le", "latin-1", "utf-32", "cp037")))
    if kind == 5:
        return f'<?xml version="1.0" encoding="{rng.choice(("ascii", "klingon", "utf-16", ""))}"?>' + text
    if kind == 6:
        return text[at:]
    return text[:at] + text[rng.randrange(len(text)) :]


def mutated(seed: int) -> str | bytes:
    rng = random.Random(seed)
    text = TEXTS[("mjcf", "urdf", "sdf")[seed % 3]]
    if seed % 10 == 9:
        return _damaged_bytes(rng, text)
    root = ET.fromstring(text)
    for _ in range(rng.choice((1, 1, 2, 5))):
        if len(root) and any(one.attrib for one in root.iter()):
            rng.choice(MUTATIONS)(rng, root)
    return ET.tostring(root, encoding="unicode")


def assert_read_or_refused(document: str | bytes, tmp_path, seed: int) -> None:
    given = document
    if isinstance(document, bytes):
        given = tmp_path / f"{seed}.xml"
        given.write_bytes(document)
    with warnings.catch_warnings(record=True) as reports:
        warnings.simplefilter("always")
        try:
            mech = lw.load(given)
        except lw.MechanismError as error:
            assert len(str(error)) < 2000
            assert "text" in str(error) or f"{seed}.xml" in str(error)
        except FileNotFoundError as error:
            assert not str(document).lstrip().startswith("<") and len(str(error)) < 2000
        else:
            assert isinstance(mech, lw.Mechanism)
    for report in reports:
        assert issubclass(report.category, lw.MechanismWarning), report.message
        assert max(map(len, str(report.message).splitlines())) < 5000


@pytest.mark.parametrize("kind", TEXTS)
def test_files_are_read_undamaged(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        assert lw.load(TEXTS[kind]).nv >= 2


def test_a_sample_of_damaged_files(tmp_path):
    for seed in range(0, 1000, 10):
        assert_read_or_refused(mutated(seed + seed // 10 % 10), tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_damaged_files(part, tmp_path):
    for seed in range(100 * part, 100 * part + 100):
        assert_read_or_refused(mutated(seed), tmp_path, seed)


def test_numbers_that_are_too_large_name_the_body():
    text = '<mujoco><worldbody>\n<body name="a"><joint/><geom size="1e200"/></body></worldbody></mujoco>'
    with pytest.raises(lw.MechanismError, match=r'^text:2: <body name="a">: its mass or inertia is too large'):
        lw.load(text)


#: MuJoCo looks at errno, which what ran before may have left set: it then calls the same error an unknown one.
TOO_MUCH = "attribute 'size' has too much data|unknown error in attribute 'size'"
LONG = {
    "a value": ('<body><joint/><geom size="{}"/></body>', "1 " * 2_000_000, TOO_MUCH),
    "a word": ('<body><joint/><geom size="{}"/></body>', "a" * 4_000_000, "bad format in attribute 'size'"),
    "a name": ('<body name="{}"><joint axis="0 0 0"/></body>', "a" * 4_000_000, "axis too small"),
    "a class": ('<body childclass="{}"/>', "a" * 4_000_000, "unknown default childclass"),
}


@pytest.mark.parametrize(("text", "value", "message"), LONG.values(), ids=LONG)
def test_messages_are_short_whatever_a_file_holds(text, value, message):
    with pytest.raises(lw.MechanismError, match=message) as caught:
        lw.load(f"<mujoco><worldbody>{text.format(value)}</worldbody></mujoco>")
    assert str(caught.value).startswith("text:1: ") and len(str(caught.value)) < 2000


def test_paths_that_no_file_can_have():
    with pytest.raises(FileNotFoundError, match="there is no file a") as caught:
        lw.load("a" * 100_000)
    assert len(str(caught.value)) < 2000
