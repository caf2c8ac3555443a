"""What is seen of links is in the files that mechanisms are saved to."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw

PYRAMID = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
CRANE = """<robot name="crane">
<link name="world_base"><visual><geometry><box size="0.6 0.6 0.1"/></geometry></visual></link>
<link name="mast"><inertial><mass value="10"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
 <visual><origin xyz="0 0 0.5" rpy="0.1 0.2 0.3"/><geometry><cylinder radius="0.08" length="1.0"/></geometry>
 <material name="red"><color rgba="0.9 0.2 0.1 1"/></material></visual>
 <collision><origin xyz="0 0 0.5"/><geometry><cylinder radius="0.08" length="1.0"/></geometry></collision></link>
<link name="boom"><inertial><mass value="4"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
 <visual><origin xyz="0.5 0 0"/><geometry><mesh filename="meshes/pyramid.obj" scale="1 1 1.5"/></geometry></visual>
 <collision name="hull"><geometry><mesh filename="meshes/pyramid.obj"/></geometry></collision></link>
<joint name="slew" type="continuous"><parent link="world_base"/><child link="mast"/><axis xyz="0 0 1"/></joint>
<joint name="luff" type="continuous"><parent link="mast"/><child link="boom"/><origin xyz="0 0 1" rpy="0 0.4 0"/>
 <axis xyz="0 -1 0"/></joint>
</robot>"""


@pytest.fixture
def crane(tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "pyramid.obj").write_text(PYRAMID)
    (tmp_path / "crane.urdf").write_text(CRANE)
    with pytest.warns(lw.files.OmissionWarning, match="collision mesh"):
        return lw.load(tmp_path / "crane.urdf")


def told(look: lw.mechanism.Look) -> tuple:
    rounded = tuple(np.round((*look.pose, *look.shaping), 12) + 0.0)
    return look.name, look.kind, look.size, look.colour, look.collision, look.path and look.path.resolve(), rounded


@pytest.mark.parametrize("name", ["again.urdf", "elsewhere/again.urdf", "again.xml", "elsewhere/again.xml"])
def test_looks_are_saved(crane, tmp_path, name):
    (tmp_path / "elsewhere").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        crane.save(tmp_path / name, strict=True)
        read = lw.load(tmp_path / name)
    assert len(crane.metadata.looks) == 4
    assert sorted(map(told, read.metadata.looks), key=str) == sorted(map(told, crane.metadata.looks), key=str)
    assert [shape.name for shape in read.shapes] == [shape.name for shape in crane.shapes] == ["mast_collision"]


def test_mujoco_has_looks_where_they_are(crane, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        crane.save(tmp_path / "crane.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "crane.xml"))
    mast, touching = model.geom("mast_visual"), model.geom("mast_collision")
    np.testing.assert_allclose(mast.pos, (0.0, 0.0, 0.5), atol=1e-15)
    np.testing.assert_allclose(mast.rgba, (0.9, 0.2, 0.1, 1.0), atol=1e-7)
    assert (mast.contype, mast.conaffinity, mast.group) == (0, 0, 2) and touching.group == 3
    # Vertices of the scaled mesh, which MuJoCo centres, in the frame of the boom.
    boom, mesh = model.geom("boom_visual"), model.mesh(model.geom("boom_visual").dataid[0])
    vertices = model.mesh_vert[mesh.vertadr[0] : mesh.vertadr[0] + mesh.vertnum[0]]
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, boom.quat)
    placed = vertices @ rotation.reshape(3, 3).T + boom.pos
    np.testing.assert_allclose(placed.max(axis=0), (1.5, 1.0, 1.5), atol=1e-6)
    np.testing.assert_allclose(placed.min(axis=0), (0.5, 0.0, 0.0), atol=1e-6)


def test_what_mjcf_turns_before_it_scales_and_what_is_seen_and_touches(tmp_path):
    text = """<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 2 1 0 1 3 1 2 3 2 0 3"
      scale="1 2 3" refpos="0.1 0.2 0.3" refquat="0.8 0.6 0 0"/></asset><worldbody>
      <body name="b"><joint name="j"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <geom name="ball" size="0.1" rgba="1 0 0 1"/><geom name="part" type="mesh" mesh="m" contype="0" conaffinity="0"/>
      <geom name="egg" type="ellipsoid" size=".1 .2 .3" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
    mech = lw.load(text)
    mech.save(tmp_path / "again.xml", strict=True)
    read = lw.load(tmp_path / "again.xml")
    assert (
        sorted(map(told, read.metadata.looks), key=str) == sorted(map(told, mech.metadata.looks), key=str)
        and len(mech.metadata.looks) == 3
    )
    assert [shape.name for shape in read.shapes] == [shape.name for shape in mech.shapes] == ["ball"]
    with pytest.raises(lw.MechanismError, match="mesh without file.* of part; ellipsoid to be seen of egg"):
        mech.save(tmp_path / "again.urdf", strict=True)


def test_a_mesh_that_mujoco_would_miss_is_left_out_and_named(crane, tmp_path):
    (tmp_path / "meshes" / "pyramid.obj").unlink()
    with pytest.raises(lw.MechanismError, match="mesh whose file 'meshes/pyramid.obj' is not found of boom_visual"):
        crane.save(tmp_path / "again.xml", strict=True)
    assert not (tmp_path / "again.xml").exists()
