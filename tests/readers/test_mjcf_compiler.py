"""MJCF through MuJoCo's compiler: models given as such, what of files is opened, and what messages say."""

from __future__ import annotations

import os
import sys
import threading
import warnings

import numpy as np
import pytest

import linkwise as lw
from tests.readers.mujoco_oracle import Pair, mujoco

TEXT = """<mujoco model="arm">
  <default><joint damping="0.3"/><default class="servo"><position kp="20"/></default></default>
  <asset><mesh name="tetra" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
  <worldbody><geom name="floor" type="plane" size="5 5 1"/>
  <body name="base" pos="0 0 1" euler="90 0 0"><freejoint name="free"/><geom type="box" size=".2 .1 .3" pos=".1 0 0"/>
    <body name="arm" pos=".2 0 0" euler="0 90 0"><joint name="j" range="-60 60" ref="10"/>
      <geom type="mesh" mesh="tetra" rgba="1 0 0 1"/><site name="tip" pos="0 0 1"/>
      <body name="fore"><joint name="k" type="ball"/><geom size=".1" contype="0"/></body></body></body></worldbody>
  <equality><connect name="pin" body1="fore" anchor="0 0 1"/></equality>
  <actuator><position class="servo" joint="j"/><muscle name="m" joint="j"/></actuator>
  <sensor><jointpos name="angle" joint="j"/></sensor>
  <keyframe><key name="home" qpos="0 0 2 1 0 0 0 .1 1 0 0 0" ctrl=".2 0"/></keyframe></mujoco>"""


def loaded(given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(given, **options)


@pytest.mark.parametrize("make", [mujoco.MjModel.from_xml_string, mujoco.MjSpec.from_string], ids=["MjModel", "MjSpec"])
def test_models_of_mujoco_are_read_as_their_text(make):
    given = make(TEXT)
    found, expected = loaded(given), loaded(TEXT)
    for name in ("name", "joint_names", "link_names", "frame_names", "initial"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(found.limits.lower, expected.limits.lower)
    assert found.metadata.timestep == expected.metadata.timestep == 0.002 and found.metadata.integrator == "Euler"
    assert found.forces.active.keys() == expected.forces.active.keys()
    assert found.forces.actuators[0].gain == (20.0, 0.0, 0.0)
    assert [loop.name for loop in found.loops] == ["pin"] and found.postures.keys() == {"home"}
    assert [pair.shapes for pair in found.contact_pairs] == [pair.shapes for pair in expected.contact_pairs]
    rng = np.random.default_rng(0)
    q, v = lw.random_state(expected.spanning_tree, rng)
    args = q, v, rng.normal(size=expected.nv)
    ours = lw.forward_dynamics(found.spanning_tree, *args)
    np.testing.assert_array_equal(ours, lw.forward_dynamics(expected.spanning_tree, *args))
    assert [note.what for note in found.notes] == [note.what for note in expected.notes]
    assert any("angle" in place for note in found.notes for place in note.where)
    assert [look.kind for look in found.metadata.looks] == [look.kind for look in expected.metadata.looks]
    (mesh,) = (look for look in found.metadata.looks if look.kind == "mesh")
    assert mesh.colour == (1.0, 0.0, 0.0, 1.0) and len(mesh.corners[0]) == 12


def test_a_specification_stays_as_it_is():
    spec = mujoco.MjSpec.from_string(TEXT)
    before = spec.to_xml()
    loaded(spec)
    assert spec.to_xml() == before
    spec.worldbody.add_body(name="other", pos=[0, 0, 9]).add_joint(name="more")
    with pytest.raises(lw.MechanismError, match="MuJoCo refuses it: mass and inertia of moving bodies"):
        loaded(spec)


def test_options_of_load_hold_for_models():
    text = '<mujoco><worldbody><body name="a"><geom size=".1"/></body></worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(text)
    mech = loaded(model, floating_base=True, gravity=(0, 0, -1.6), name="moon")
    assert (mech.nv, mech.name, mech.gravity.tolist()) == (6, "moon", [0, 0, -1.6])
    assert loaded(model, floating_base=lw.Planar()).nv == 3
    tied = (
        TEXT.replace("</equality>", "</equality>").replace('type="ball"', 'axis="0 1 0"').replace(".1 1 0 0 0", ".1 0")
    )
    tied = tied.replace("</equality>", '<joint joint1="k" joint2="j"/></equality>')
    model = mujoco.MjModel.from_xml_string(tied)
    assert (loaded(model).nv, loaded(model, mimic=False).nv) == (7, 8)


def test_without_mujoco_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"text: MJCF is read by MuJoCo.*pip install 'linkwise\[mujoco\]'") as raised:
        lw.load("<mujoco/>")
    assert isinstance(raised.value, lw.MechanismError)
    robot = (
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/>'
    )
    robot += '</inertial></link><joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    assert lw.load(robot).nv == 1


# -- files ----------------------------------------------------------------------------------------------


def test_nothing_is_written_and_remarks_of_mujoco_are_left_to_their_handlers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    heard = []
    handler = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(heard.append)
    try:
        noisy = TEXT.replace("<default>", '<compiler settotalmass="3"/><default>', 1)
        threads = [threading.Thread(target=loaded, args=(noisy,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not heard and not list(tmp_path.iterdir())
        mujoco.MjModel.from_xml_string(noisy)
        assert heard
    finally:
        mujoco.set_mju_user_warning(handler)


PICTURED = """<mujoco><size nuser_body="100000000"/><custom><numeric name="n" size="1000000000" data="1"/></custom>
  <visual><map znear="1"/></visual><asset><texture name="t" type="2d" file="{file}" rgb1="0.1 0.2 0.3"/>
  <texture name="huge" type="2d" builtin="flat" width="100000" height="100000"/><material name="m" texture="t"/>
  <hfield name="h" file="{file}" size="1 1 1 1"/><mesh name="s" file="{file}.stl"/></asset>
  <sensor><user dim="2000000000" needstage="pos" datatype="real"/></sensor>
  <worldbody><geom type="hfield" hfield="h"/><body name="b"><joint/>
  <geom size=".1" material="m" contype="0" conaffinity="0"/>
  <geom type="mesh" mesh="s" mass="0"/></body></worldbody></mujoco>"""


HUGE = {
    "mesh": '<asset><mesh name="m" builtin="cone" params="100000000 0.5"/></asset>',
    "activation": '<actuator><general joint="j" dyntype="user" actdim="2000000000"/></actuator>',
    "history": '<actuator><motor joint="j" nsample="2000000000" delay="1"/></actuator>',
}


@pytest.mark.parametrize("part", HUGE.values(), ids=HUGE)
def test_memory_without_bounds_is_refused(part):
    body = '<worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>'
    with pytest.raises(lw.MechanismError, match="^text:1: "):
        loaded(f"<mujoco>{body}{part}</mujoco>")


def test_meshes_that_mujoco_makes_are_not_taken_for_large_ones():
    """Of a wedge two parameters are a resolution, the others angles."""
    text = """<mujoco><asset><mesh name="m" builtin="wedge" params="37 37 45 45 0"/></asset><worldbody><body name="b">
      <freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    assert loaded(text).bodies[0].mass == pytest.approx(mujoco.MjModel.from_xml_string(text).body_mass[1], rel=1e-12)


def test_distance_fields_of_what_stands_still():
    """Shapes that plugins of MuJoCo make, on a body without joints: there is no file, and the field has no stand-in."""
    text = """<mujoco><extension><plugin plugin="mujoco.sdf.bolt"><instance name="bolt"/></plugin></extension>
      <asset><mesh name="m"><plugin instance="bolt"/></mesh></asset><worldbody>
      <body><geom type="sdf" mesh="m"><plugin instance="bolt"/></geom></body>
      <body name="b" pos="0 0 1"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""
    try:
        model = mujoco.MjModel.from_xml_string(text)
    except ValueError as error:
        pytest.skip(f"MuJoCo has no such plugin here: {error}")
    mech = loaded(text)
    assert mech.nv == model.nv == 6 and "sdf with contact" in [note.what for note in mech.notes]


def test_deformable_bodies_are_left_out_before_they_are_made():
    flex = '<flexcomp name="f" type="grid" dim="3" count="3000 3000 3000" spacing=".1 .1 .1"/>'
    text = f"""<mujoco><worldbody><body><joint/><geom size=".1"/></body>{flex}</worldbody>
      <equality><flex flex="f"/></equality></mujoco>"""
    mech = loaded(text)
    assert mech.nv == 1 and [note.counted for note in mech.notes] == [
        "1 deformable body",
        "1 equality of deformable bodies",
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("file", ["nowhere.png", "pipe", "http://host/x.png"])
def test_what_only_pictures_need_is_not_opened(tmp_path, file):
    """Files that are not there, that would never end or are on a network; and memory without bounds."""
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.stl")
    (tmp_path / "model.xml").write_text(PICTURED.format(file=file))
    mech = loaded(tmp_path / "model.xml")
    assert mech.nv == 1 and mech.metadata.looks[0].colour == (0.1, 0.2, 0.3, 1.0)
    assert [note.counted for note in mech.notes] == ["1 sensor", "1 hfield with contact", "1 mesh with contact"]


@pytest.mark.parametrize(
    ("element", "message"),
    [
        (
            '<asset><mesh name="m" file="{}"/></asset><worldbody><body><joint/><geom type="mesh" mesh="m"/></body>',
            "mesh",
        ),
        ('<include file="{}"/><worldbody><body/>', "include"),
        ('<asset><model name="m" file="{}"/></asset><worldbody><body/>', "model"),
    ],
)
@pytest.mark.parametrize("file", ["http://h/x.stl", "//h/x.stl", "\\\\h\\x.stl", "folder.stl", "pipe.stl", "gone.stl"])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_files_that_are_no_plain_files_are_refused(tmp_path, element, message, file):
    os.mkfifo(tmp_path / "pipe.stl")
    (tmp_path / "folder.stl").mkdir()
    (tmp_path / "model.xml").write_text(f"<mujoco>\n{element.format(file)}</worldbody></mujoco>")
    with pytest.raises(lw.MechanismError, match=f"model.xml:2: <{message}.*(local file|folder|pipe|there is no file)"):
        lw.load(tmp_path / "model.xml")


def test_meshes_are_read_anew_when_their_files_change(tmp_path):
    """MuJoCo keeps meshes by the names of their files."""
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 {0}\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "model.xml").write_text(
        '<mujoco><asset><mesh name="m" file="m.obj"/></asset><worldbody><body><joint/>'
        '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    masses = []
    for height in (1, 3):
        (tmp_path / "m.obj").write_text(corners.format(height))
        masses.append(loaded(tmp_path / "model.xml").bodies[0].mass)
    assert masses[1] == pytest.approx(3.0 * masses[0], rel=1e-6)


GUEST = """<mujoco model="g">
<worldbody><body name="a"><joint name="ja"/>

<geom name="bad" size="{size}"/></body></worldbody></mujoco>"""


def test_errors_and_notes_name_the_file_and_the_line(tmp_path):
    (tmp_path / "host.xml").write_text(
        '<mujoco>\n<asset><model name="g" file="parts/guest.xml"/></asset>\n<worldbody><attach model="g" prefix="p_"/>'
        '<include file="parts/part.xml"/></worldbody></mujoco>'
    )
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part.xml").write_text(
        '<mujocoinclude>\n\n<body name="c"><joint name="jc"\nstiffness="1 2"/><geom size=".1"/></body></mujocoinclude>'
    )
    guest = tmp_path / "parts" / "guest.xml"
    guest.write_text(GUEST.format(size="-1"))
    with pytest.raises(lw.MechanismError, match=r'guest.xml:4: <geom name="bad">: MuJoCo refuses it: size 0 must be'):
        lw.load(tmp_path / "host.xml")
    guest.write_text(GUEST.format(size=".1"))
    (note,) = (one for one in loaded(tmp_path / "host.xml").notes if "nonlinear" in one.what)
    assert note.where == ('part.xml:3 <joint name="jc">',)
    guest.write_text(GUEST.format(size=".1").replace("<joint", "<jiont"))
    with pytest.raises(lw.MechanismError, match=r'guest.xml:2: <jiont name="ja">: MuJoCo refuses it: unrecognized'):
        lw.load(tmp_path / "host.xml")


# -- numbers --------------------------------------------------------------------------------------------


def test_quarter_turns_and_inertias_are_free_of_rounding():
    turns = ("90 0 0", "0 90 0", "0 0 90", "90 90 0", "180 0 90", "0 -90 180")
    inside = ""
    for number, euler in enumerate(turns):
        inside = f"""<frame euler="{euler}"><body name="b{number}" pos=".1 0 0" euler="{turns[-number]}"><joint/>
          <geom type="box" size=".1 .2 .3" euler="{euler}"/><geom type="capsule" size=".05 .1" pos="0 .1 0"/>{inside}
          </body></frame>"""
    mech = loaded(f"<mujoco><worldbody>{inside}</worldbody></mujoco>")
    for body in mech.bodies:
        assert set(np.abs(body.rotation).ravel()) == {0.0, 1.0}
        assert np.count_nonzero(body.inertia) == 3 and np.count_nonzero(body.com) <= 1


REFUSED = {
    "a rod": '<inertial pos="0 0 .5" mass="1" diaginertia=".1 .1 0" quat="1 2 3 4"/>',
    "a point": '<inertial pos=".1 .2 .5" mass="2" diaginertia="0 0 0"/>',
    "a plate": '<inertial pos="0 0 .5" mass="1" fullinertia=".1 .2 .3 .01 .02 .03"/>',
    "no body": '<inertial pos="0 0 .5" mass="1" diaginertia=".1 .1 .9"/>',
    "framed": '<frame euler="1 2 3" pos="1 0 0"><inertial pos="0 0 1" mass="1" fullinertia=".1 .1 0 0 0 0"/></frame>',
}


@pytest.mark.parametrize("inertial", REFUSED.values(), ids=REFUSED)
@pytest.mark.filterwarnings("ignore::linkwise.mechanism.MechanismWarning")
def test_inertias_that_mujoco_refuses_are_read_as_they_are_written(inertial):
    """A body of the sum with another inertia is what MuJoCo has of that sum."""
    text = '<mujoco><worldbody><body name="b"><freejoint/>{}</body></worldbody></mujoco>'
    (body,) = lw.load(text.format(inertial)).bodies
    larger = inertial.replace('fullinertia="', 'fullinertia="1').replace('diaginertia="', 'diaginertia="1')
    numbers = {"diaginertia": 3, "fullinertia": 3}
    for word, count in numbers.items():
        if word in inertial:
            old = inertial.split(f'{word}="')[1].split('"')[0]
            values = [float(x) + (2.0 if k < count else 0.0) for k, x in enumerate(old.split())]
            larger = inertial.replace(old, " ".join(map(repr, values)))
    pair = Pair(text.format(larger))
    np.testing.assert_allclose(body.inertia + 2.0 * np.eye(3), pair.body_inertia(1), atol=1e-12)
    np.testing.assert_allclose(body.com, pair.model.body_ipos[1], atol=1e-14)
    assert body.mass == pair.model.body_mass[1]


@pytest.mark.parametrize("angle", ["degree", "radian"])
def test_limits_at_one_position_are_read(angle):
    text = f"""<mujoco><compiler angle="{angle}"/><worldbody><body><joint limited="true" range="0.5 0.5"/>
      <geom size=".1"/></body></worldbody></mujoco>"""
    value = np.radians(0.5) if angle == "degree" else 0.5
    (limits,) = (body.limits for body in lw.load(text).bodies)
    assert limits.lower == limits.upper == pytest.approx((value,))
