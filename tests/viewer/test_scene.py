"""What mechanisms look like: parts of files where Pinocchio and MuJoCo see them, skeletons where there is nothing."""

import dataclasses
import pickle
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import from_data, to_data
from linkwise.viewer.scene import scene
from linkwise.viewer.shapes import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere

BOX = """v 0 0 0
v 1 0 0
v 0 1 0
v 0 0 1
f 1 3 2
f 1 2 4
f 2 3 4
f 3 1 4"""
URDF = """<robot name="r"><material name="steel"><color rgba="0.1 0.2 0.3 1"/></material>
  <link name="base"><visual><geometry><box size="1 2 3"/></geometry><material name="steel"/></visual></link>
  <link name="arm"><visual name="tool"><origin xyz="1 2 3" rpy="0.3 0.2 0.1"/>
      <geometry><mesh filename="package://robot/meshes/part.obj" scale="2 2 -2"/></geometry></visual>
    <collision><geometry><cylinder radius="0.1" length="0.6"/></geometry></collision>
    <collision><geometry><mesh filename="package://robot/meshes/part.obj"/></geometry></collision></link>
  <link name="tip"><visual><geometry><mesh filename="package://robot/meshes/nothing.stl"/></geometry></visual></link>
  <joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1"/></joint>
  <joint name="wrist" type="prismatic"><parent link="arm"/><child link="tip"/><axis xyz="1 0 0"/>
    <origin xyz="0.5 0 0"/><limit lower="0" upper="2"/></joint></robot>"""


def test_floors_go_as_far_as_what_stands_on_them():
    """Planes push everywhere, whatever a file draws of them."""
    mech = lw.load("""<mujoco><worldbody><geom name="floor" type="plane" pos="4 0 0" size="5 1 .1"/>
      <geom name="poster" type="plane" pos="0 2 1" size="1 1 1" zaxis="0 -1 0" contype="0" conaffinity="0"/>
      <body name="ball" pos="0 0 .2"><freejoint/><geom size=".2"/></body></worldbody></mujoco>""")
    far = mech.initial.copy()
    far[4:6] = -7.0, 3.0
    assert lw.contact.contact_points(mech, far, np.zeros(6)).gap == pytest.approx([0.0], abs=1e-15)
    for moments, reached in ((None, (-1.0, 1.0)), (np.array([mech.initial, far]), (-7.0, 3.0))):
        planes = [part for part in scene(mech, moments=moments).parts if isinstance(part.shape, Plane)]
        corners = [part.shape.mesh().vertices @ part.pose[:3, :3].T + part.pose[:3, 3] for part in planes]
        boxes = {
            part.name.split("/")[-1]: (one.min(axis=0), one.max(axis=0))
            for part, one in zip(planes, corners, strict=True)
        }
        low, high = boxes["floor"]
        assert low[0] <= reached[0] and high[0] >= 9.0 and high[1] >= reached[1] and (low[2], high[2]) == (0.0, 0.0)
        np.testing.assert_allclose(boxes["poster"], [[-1, 2, 0], [1, 2, 2]], atol=1e-12)


@pytest.fixture
def robot(tmp_path):
    folder = tmp_path / "robot"
    (folder / "meshes").mkdir(parents=True)
    (folder / "urdf").mkdir()
    (folder / "meshes" / "part.obj").write_text(BOX)
    (folder / "urdf" / "robot.urdf").write_text(URDF)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(folder / "urdf" / "robot.urdf")


def volume(mesh):
    return np.linalg.det(mesh.vertices[mesh.faces].astype(float)).sum() / 6.0


def test_a_broken_mesh_is_told_as_a_missing_one_is(robot, tmp_path):
    (tmp_path / "robot" / "meshes" / "nothing.stl").write_text("solid x\nfacet")
    with pytest.warns(lw.MechanismWarning, match=r"1 mesh cannot be drawn.*nothing\.stl.*cut off") as told:
        seen = scene(robot)
    assert len(told) == 1 and seen.missing == ("package://robot/meshes/nothing.stl",)


def test_what_a_urdf_file_shows(robot):
    with pytest.warns(lw.MechanismWarning, match="1 mesh cannot be drawn.*nothing.stl") as told:
        seen = scene(robot)
    assert len(told) == 1 and seen.missing == ("package://robot/meshes/nothing.stl",)
    base, tool = seen.of_kind("visual")
    assert (base.link, base.shape, base.colour) == ("ground", Box((0.5, 1.0, 1.5)), (0.1, 0.2, 0.3, 1.0))
    assert tool.link == "arm" and len(tool.shape.faces) == 4
    np.testing.assert_allclose(volume(tool.shape), 8.0 / 6.0, rtol=1e-6)  # mirrored, and facing outwards
    mesh, cylinder = seen.of_kind("collision")
    assert cylinder.shape == Cylinder(0.1, 0.3) and mesh.link == "arm"
    assert {part.link for part in seen.shown if part.kind != "visual"} == {"tip"}, "for want of its mesh"
    world = seen.placed(lw.link_poses(robot, [0.4, 0.2]), [tool])[0]
    np.testing.assert_allclose(world, lw.frame_pose(robot, [0.4, 0.2], "arm") @ tool.pose)


def test_looks_stay_with_their_links_and_are_data(robot):
    with pytest.warns(lw.MechanismWarning):
        locked = scene(robot.with_locked(wrist=1.0))
    assert {part.link for part in locked.of_kind("visual")} == {"ground", "arm"}
    assert (
        from_data(to_data(robot)).metadata.looks
        == pickle.loads(pickle.dumps(robot)).metadata.looks
        == robot.metadata.looks
    )
    assert robot == dataclasses.replace(robot, annotations=dataclasses.replace(robot.annotations, looks=()))


@pytest.mark.parametrize("shape", [Box((1, 2, 3)), Sphere(2.0), Cylinder(1, 3), Capsule(1, 2), Ellipsoid((1, 2, 3))])
def test_shapes_are_closed_and_face_outwards(shape):
    mesh = shape.mesh()
    full = {Box: 48.0, Sphere: 33.51, Cylinder: 18.85, Capsule: 16.76, Ellipsoid: 25.13}[type(shape)]
    assert 0.95 * full < volume(mesh) <= full + 1e-9
    corners = mesh.vertices[mesh.faces]
    areas = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    np.testing.assert_allclose(areas.sum(axis=0), 0.0, atol=1e-9)  # of a closed surface
    assert np.isfinite(Plane().mesh().vertices).all()


@pytest.mark.parametrize("name", ["loader", "stewart_platform", "stanford_arm"])
def test_a_mechanism_without_looks_is_a_skeleton(name):
    mech = lw.mechanisms.maker(name)()
    seen = scene(mech)
    assert seen.shown == seen.parts and {part.kind for part in seen.parts} == {"skeleton", "symbol"}
    assert {part.link for part in seen.parts} >= set(mech.link_names)
    assert len({part.name for part in seen.parts}) == len(seen.parts)
    for part in seen.parts:
        mesh = part.shape.mesh()
        assert np.isfinite(mesh.vertices).all() and mesh.faces.max() < len(mesh.vertices)


MJCF = """<mujoco><compiler angle="radian"/><default><geom rgba="1 0 0 1"/>
  <default class="c"><geom group="3"/></default></default><asset><material name="blue" rgba="0 0 1 0.5"/>
  <mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" scale="2 2 2"
  refpos="1 0 0" refquat="0 1 0 0"/></asset><worldbody><geom name="floor" type="plane" size="5 5 0.1"/>
  <body name="a" pos="0 0 1" euler="0.1 0.2 0.3"><joint name="j" axis="1 1 0"/>
    <geom name="rod" type="capsule" fromto="0 0 0 0.3 0.4 1.2" size="0.05"/>
    <geom name="hit" class="c" size="0.1"/>
    <frame pos="0 1 0" euler="0 0.5 0"><geom name="block" type="box" size="0.1 0.2 0.3" pos="0 0 1" material="blue"
      rgba="0.2 0.2 0.2 1"/><geom name="solid" type="mesh" mesh="m"/></frame></body></worldbody></mujoco>"""


def test_what_an_mjcf_file_shows_is_where_mujoco_has_it():
    mujoco = pytest.importorskip("mujoco")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        mech = lw.load(MJCF)
    seen = scene(mech)
    by_name = {part.name.rpartition("/")[2]: part for part in seen.of_kind("visual")}
    assert set(by_name) == {"floor", "rod", "block", "solid"}
    assert by_name["rod"].colour == (1.0, 0.0, 0.0, 1.0) and by_name["block"].colour == (0.2, 0.2, 0.2, 1.0)
    assert by_name["floor"].shape == Plane((5.0, 5.0)) and by_name["floor"].link == "ground"
    assert [part.shape for part in seen.of_kind("collision") if part.name.endswith("hit")] == [Sphere(0.1)]
    model = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(model)
    data.qpos[:] = 0.7
    mujoco.mj_forward(model, data)
    poses = lw.link_poses(mech, [0.7])
    for name in ("rod", "block"):
        world = seen.placed(poses, [by_name[name]])[0]
        geom = model.geom(name).id
        np.testing.assert_allclose(world[:3, 3], data.geom_xpos[geom], atol=1e-9)
        np.testing.assert_allclose(world[:3, :3] @ (0, 0, 1), data.geom_xmat[geom].reshape(3, 3) @ (0, 0, 1), atol=1e-9)
    solid = seen.placed(poses, [by_name["solid"]])[0]
    ours = by_name["solid"].shape.vertices @ solid[:3, :3].T + solid[:3, 3]
    geom = model.geom("solid").id  # MuJoCo keeps vertices about the mass centre
    theirs = model.mesh_vert @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
    np.testing.assert_allclose(sorted(ours.tolist()), sorted(theirs.tolist()), atol=1e-5)


def test_visuals_of_a_urdf_file_are_where_pinocchio_has_them():
    pin = pytest.importorskip("pinocchio")
    from tests.peers import robots

    file = robots.robot("solo_description/robots/solo12.urdf")
    mech, model = robots.load(file), pin.buildModelFromUrdf(str(file))
    packages = [str(robots.ROBOTS.parents[1])]
    geometry = pin.buildGeomFromUrdf(model, str(file), pin.GeometryType.VISUAL, package_dirs=packages)
    data, placed = model.createData(), geometry.createData()
    pin.updateGeometryPlacements(model, data, geometry, placed, np.full(model.nq, 0.3))
    seen = scene(mech)
    ours = seen.placed(lw.link_poses(mech, np.full(mech.nq, 0.3)), seen.of_kind("visual"))
    theirs = np.array([pose.homogeneous for pose in placed.oMg])
    assert len(ours) == len(theirs) > 10
    apart = np.abs(ours[:, None] - theirs[None]).max(axis=(2, 3))
    assert apart.min(axis=0).max() < 1e-9 and apart.min(axis=1).max() < 1e-9


SDF = """<sdf version="1.9"><model name="m"><static>true</static><link name="l"><pose>1 0 0 0 0 0</pose>
  <visual name="v"><pose>0 0 1 0 0 1.5707963267948966</pose><geometry><box><size>1 2 3</size></box></geometry>
  <material><diffuse>0.5 0.6 0.7 1</diffuse></material></visual>
  <collision name="c"><geometry><sphere><radius>2</radius></sphere></geometry></collision></link></model></sdf>"""


def test_what_an_sdf_file_shows():
    with pytest.warns(lw.files.OmissionWarning):
        mech = lw.load(SDF)
    seen = scene(mech)
    (box,), (ball,) = seen.of_kind("visual"), seen.of_kind("collision")
    assert box.shape == Box((0.5, 1.0, 1.5)) and box.colour == (0.5, 0.6, 0.7, 1.0) and ball.shape == Sphere(2.0)
    expected = [[0, -1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]]
    np.testing.assert_allclose(box.pose, expected, atol=1e-12)


def test_a_visual_that_cannot_be_read_is_not_drawn_and_said():
    bad = URDF.replace('size="1 2 3"', 'size="1 2"').replace("<cylinder", "<cone")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mech = lw.load(bad)
    assert any("is not drawn" in str(one.message) for one in told)
    assert all(look.kind == "mesh" for look in mech.metadata.looks)


def test_slots_stay_with_the_link_that_has_them_as_far_as_pins_go():
    """A crank of 0.1 m and a rod of 0.3 m: the pin goes from 0.2 m to 0.4 m; in a lever alike."""
    build = lw.Builder().linkage(
        {"O": (0, 0), "A": (0.1, 0), "B": (0.4, 0)},
        {"ground": "O", "crank": "OA", "rod": "AB"},
        slots={"B": ("ground", (1, 0))},
    )
    levered = lw.Builder().linkage(
        {"O": (0, 0), "A": (0, 0.1), "C": (0, -0.3), "D": (0, 0.3)},
        {"ground": "OC", "crank": "OA", "lever": "CD"},
        slots={"A": ("lever", (0, 1))},
    )
    for mech, pin, owner, along in ((build.build("sc"), "B", "ground", 0), (levered.build("qr"), "A", "lever", 1)):
        motion = lw.linkages.range_of_motion(mech, "O").path.q
        for moments in (motion, None):
            seen = scene(mech, moments=moments)
            (slot,) = (part for part in seen.parts if part.name.endswith(f"/{pin}_way"))
            corners = slot.shape.mesh().vertices @ slot.pose[:3, :3].T + slot.pose[:3, 3]
            low, high = corners[:, along].min(), corners[:, along].max()
            assert slot.link == owner and low < 0.2 and high > 0.4
            if moments is not None:
                assert low > 0.2 - 6.0 * seen.pin and high < 0.4 + 6.0 * seen.pin


def robot_files():
    """All robots of example-robot-data, and the MJCF models of installed packages."""
    from importlib.util import find_spec
    from pathlib import Path

    from tests.peers import robots

    found = list(robots.READABLE)
    for package in ("gymnasium", "dm_control", "mujoco"):
        spec = find_spec(package)
        folder = Path(spec.origin).parent if spec is not None and spec.origin else None
        for file in sorted(folder.rglob("*.xml")) if folder else ():
            if (
                "<worldbody" in file.read_text(errors="replace")
                and "<mujoco" in file.read_text(errors="replace")[:3000]
            ):
                found.append(file)
    return found


@pytest.mark.slow
def test_all_robots_open():
    mujoco = pytest.importorskip("mujoco")
    opened, seen_something = 0, 0
    for file in robot_files():
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                mech = lw.load(file)
            except lw.MechanismError:
                with pytest.raises(ValueError):  # which MuJoCo refuses too
                    mujoco.MjModel.from_xml_path(str(file))
                continue
            del told[:]
            seen = scene(mech)
        opened += 1
        assert len([one for one in told if "cannot be drawn" in str(one.message)]) == bool(seen.missing), file
        assert seen.shown or not mech.n_links, file
        seen_something += bool(seen.of_kind("visual"))
        for part in seen.parts:
            assert np.isfinite(part.shape.mesh().vertices).all(), (file, part.name)
            assert np.isfinite(part.pose).all(), (file, part.name)
        if mech.n_links:
            assert np.isfinite(seen.placed(lw.link_poses(mech, mech.initial))).all()
    assert opened > 60 and seen_something > 50  # 69 files of example-robot-data, and those of other packages
