"""What files of others hold, each as the smallest file that holds it, with MuJoCo as the judge."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.readers import load
from tests.readers.mujoco_oracle import Pair, mujoco

pytestmark = pytest.mark.filterwarnings("ignore::linkwise.files.OmissionWarning")

BALL = '<geom size="0.1" pos="0.1 0.2 0.3"/>'
GUEST = f"""<mujoco model="guest"><compiler angle="radian"/><default><default class="x"><geom size="0.2"/></default>
  </default><worldbody><geom name="floor" size="0.3"/>
  <frame name="f" pos="1 0 0" euler="0 0 1" childclass="x"><body name="a" pos="0 1 0"><joint name="ja"/><geom/></body>
    <geom name="fg" size="0.2" mass="3"/>
    <frame name="g" pos="0 0 1"><body name="c"><joint name="jc" axis="1 0 0"/><geom/></body></frame></frame>
  <body name="b" pos="0 0 2"><joint name="jb"/>{BALL}
    <frame name="h" pos="0 2 0"><body name="d"><joint name="jd"/>{BALL}</body></frame></body></worldbody>
  <actuator><motor name="ma" joint="ja" armature="2"/><motor name="mb" joint="jb" armature="3"/></actuator>
  <equality><joint joint1="jc" joint2="ja" polycoef="0 2"/></equality></mujoco>"""


@pytest.mark.parametrize("frame", ["f", "g", "h"])
def test_a_frame_of_another_model_is_attached_alone(tmp_path, frame):
    (tmp_path / "guest.xml").write_text(GUEST)
    file = tmp_path / "host.xml"
    file.write_text(
        f"""<mujoco><asset><model name="guest" file="guest.xml"/></asset><worldbody><body name="base" pos="0 0 5">
        <joint name="j" axis="0 1 0"/>{BALL}<attach model="guest" frame="{frame}" prefix="p_"/></body></worldbody>
        </mujoco>"""
    )
    pair = Pair(file)
    assert pair.mech.n_links == pair.model.njnt == {"f": 3, "g": 2, "h": 2}[frame]
    pair.assert_same_dynamics()


COPIED = f"""<mujoco><default><default class="x"><geom size="0.2"/></default></default><worldbody>
  <body name="base" childclass="x" euler="10 20 30"><joint name="j"/><geom mass="1"/>
    <frame name="arm" pos="1 0 0" euler="0 90 0"><body name="a"><joint name="ja" axis="0 1 0"/><geom pos="0 1 0"/>
      <replicate count="2" euler="0 0 90" offset="1 0 0"><body name="r" pos="1 0 0"><joint axis="1 0 0"/><geom/></body>
      </replicate></body></frame></body>
  <body name="other" pos="0 0 9"><joint name="jo"/>{BALL}<attach SELECTED prefix="copy_"/></body></worldbody>
  <actuator><motor joint="ja" armature="2"/><motor joint="j" armature="3"/></actuator>
  <equality><joint joint1="ja" joint2="j"/></equality></mujoco>"""


@pytest.mark.parametrize("selected", ['frame="arm"', 'body="a"'])
def test_a_part_of_the_same_model_is_attached_once_more(selected):
    pair = Pair(COPIED.replace("SELECTED", selected))
    assert "copy_a" in pair.mech.link_names and "copy_r1" in pair.mech.link_names
    pair.assert_same_dynamics()


@pytest.mark.parametrize(
    ("attach", "message"),
    [
        ('<attach frame="amr" prefix="p"/>', "could not find frame 'amr' in the current model"),
        ('<attach prefix="p"/>', "either 'body' or 'frame' attribute must be specified"),
        ('<attach frame="arm" body="a" prefix="p"/>', "at most one of 'body', 'frame' can be specified"),
    ],
)
def test_what_cannot_be_attached_is_refused(attach, message):
    with pytest.raises(lw.MechanismError, match=message):
        load(COPIED.replace('<attach SELECTED prefix="copy_"/>', attach))


def test_a_frame_is_attached_inside_of_itself():
    """MuJoCo copies what was there before."""
    attach = f'<frame name="me"><body><joint/>{BALL}</body><attach frame="me" prefix="p"/></frame>'
    pair = Pair(COPIED.replace('<attach SELECTED prefix="copy_"/>', attach))
    pair.assert_same_dynamics()
    assert pair.mech.nv > Pair(COPIED.replace('<attach SELECTED prefix="copy_"/>', "")).mech.nv


# -- meshes -------------------------------------------------------------------------------------------


def prism(polygon):
    """An OBJ file of the prism on a polygon, its two ends as one face each."""
    n = len(polygon)
    lines = [f"v {x} {y} {z}" for z in (0, 1) for x, y in polygon]
    ends = [range(n, 0, -1), range(n + 1, 2 * n + 1)]
    sides = [(i + 1, j + 1, n + j + 1, n + i + 1) for i, j in ((i, (i + 1) % n) for i in range(n))]
    return "\n".join(lines + [f"f {' '.join(map(str, face))}" for face in (*ends, *sides)])


def with_mesh(tmp_path, content, how="legacy"):
    (tmp_path / "m.obj").write_text(content)
    file = tmp_path / "model.xml"
    file.write_text(
        f"""<mujoco><asset><mesh name="m" file="m.obj" inertia="{how}"/></asset><worldbody>
        <body name="b"><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    )
    return file


def assert_same_mass(file):
    pair = Pair(file)
    (body,) = pair.mech.bodies
    assert body.mass == pytest.approx(pair.model.body_mass[1], rel=1e-6)
    np.testing.assert_allclose(body.com, pair.model.body_ipos[1], atol=1e-6)
    expected = pair.body_inertia(1)
    np.testing.assert_allclose(body.inertia, expected, atol=1e-5 * np.abs(expected).max())
    return body


ANGLES = np.linspace(0.0, 2.0 * np.pi, 11)[:-1]
POLYGONS = {
    "L": [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)],
    "L with corners on its sides": [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2), (0, 1)],
    "star": [((1 - 0.6 * (i % 2)) * np.cos(a), (1 - 0.6 * (i % 2)) * np.sin(a)) for i, a in enumerate(ANGLES)],
    "arrow": [(0, 0), (2, -1), (0.5, 0), (2, 1)],
    "arrow whose shorter diagonal is outside": [(0, 0), (3, -0.4), (2, 0), (3, 0.4)],
}


@pytest.mark.parametrize("how", ["legacy", "exact", "shell"])
@pytest.mark.parametrize("polygon", POLYGONS.values(), ids=POLYGONS)
def test_concave_polygons(tmp_path, polygon, how):
    body = assert_same_mass(with_mesh(tmp_path, prism(polygon), how))
    if how == "exact":  # Gauss: the area of a polygon
        x, y = np.array(polygon).T
        assert body.mass == pytest.approx(500.0 * abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)), rel=1e-6)


SOLID = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
SECOND = "v 5 5 5\nv 7 5 5\nv 5 7 5\nv 5 5 7\nf 5 7 6\nf -4 -3 -1\nf 5 8 7\nf 6 7 8\n"


@pytest.mark.parametrize("how", ["exact", "convex", "shell"])
@pytest.mark.parametrize("between", ["o two", "g two", "g", "usemtl red", "s 1"])
def test_the_first_object_of_a_file_counts(tmp_path, between, how):
    assert_same_mass(with_mesh(tmp_path, f"o one\n{SOLID}{between}\n{SECOND}", how))


@pytest.mark.parametrize(
    ("place", "head"),
    [("parts", ""), ("parts", '<compiler meshdir="meshes"/>'), ("meshes", '<compiler meshdir="meshes"/>')],
)
def test_a_mesh_beside_an_included_file(tmp_path, place, head):
    for folder in ("parts", "meshes"):
        (tmp_path / folder).mkdir()
    (tmp_path / "parts" / "part.xml").write_text(
        '<mujocoinclude><asset><mesh name="m" file="m.obj"/></asset></mujocoinclude>'
    )
    (tmp_path / place / "m.obj").write_text(SOLID)
    file = tmp_path / "model.xml"
    file.write_text(
        f"""<mujoco>{head}<include file="parts/part.xml"/><worldbody>
        <body name="b"><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    )
    assert_same_mass(file)


# -- joints and actuators -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("defaults", "actuators"),
    [
        ('<general armature="3"/>', '<motor joint="j"/>'),
        ('<general armature="3"/>', '<position joint="j" kp="1"/>'),
        ('<position armature="2"/><motor armature="1"/>', '<velocity joint="j"/>'),
        ('<motor armature="1"/><default class="c"><position gear="3"/></default>', '<motor joint="j" class="c"/>'),
        ("", '<motor joint="j" armature="2" gear="3"/><motor jointinparent="j" armature="1"/>'),
        ("", '<motor joint="s" armature="2" gear="-3"/>'),
    ],
)
def test_what_actuators_add_to_the_mass_matrix(defaults, actuators):
    pair = Pair(
        f"""<mujoco><default>{defaults}</default><worldbody><body name="a"><joint name="j"/>{BALL}
        <body name="b"><joint name="s" type="slide" axis="1 0 0"/>{BALL}</body></body></worldbody>
        <actuator>{actuators}</actuator></mujoco>"""
    )
    assert max(max(body.armature) for body in pair.mech.bodies) >= 1.0
    pair.assert_same_dynamics()


def test_damping_of_actuators():
    text = f"""<mujoco><worldbody><body name="a"><joint name="j" damping="0.5"/>{BALL}</body></worldbody>
      <actuator><motor joint="j" damping="2" gear="3"/></actuator></mujoco>"""
    pair = Pair(text)
    pair.set(np.array([0.3]), np.array([2.0]))
    found = lw.forces.Passive.of(pair.mech).forces(pair.mech, [0.3], [2.0])
    np.testing.assert_allclose(found, pair.data.qfrc_passive, rtol=1e-14)
    assert found[0] == -2.0 * 18.5


def test_a_limited_ball_without_a_range():
    pair = Pair(
        f'<mujoco><worldbody><body name="a"><joint type="ball" limited="true"/>{BALL}</body></worldbody></mujoco>'
    )
    pair.assert_same_dynamics()
    assert pair.mech.notes[0].counted == "1 ball joint with limits"


CHAIN = "".join(f'<body name="{name}"><joint name="{name}" axis="0 1 0" ref="0.2"/>{BALL}' for name in "xyz")


@pytest.mark.parametrize("order", [1, -1])
def test_a_joint_that_is_held_and_mimics_another(order):
    ties = ['<joint joint1="y" polycoef="0.3"/>', '<joint joint1="y" joint2="x" polycoef="0.1 2"/>'][::order]
    text = f"""<mujoco><compiler angle="radian"/><worldbody>{CHAIN}</body></body></body></worldbody>
      <equality>{"".join(ties)}</equality></mujoco>"""
    mech = load(text)
    assert mech.joint_names == ("z",)
    compiled = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(compiled)
    data.qpos[:] = [0.3, 0.5, 0.7]  # y is 0.3 from its reference, which leaves 0.1 for x
    mujoco.mj_forward(compiled, data)
    np.testing.assert_allclose(data.efc_pos, 0.0, atol=1e-15)
    for name in "xyz":
        pose = lw.frame_pose(mech, [0.7], name)
        np.testing.assert_allclose(pose[:3, :3].ravel(), data.body(name).xmat, atol=1e-15)


# -- mimic joints set free ----------------------------------------------------------------------------


def test_mimic_joints_are_free_on_request():
    text = f"""<mujoco><worldbody>{CHAIN}</body></body></body></worldbody><equality><joint joint1="y" joint2="x"/>
      <joint joint1="z" polycoef="0.3"/></equality></mujoco>"""
    assert (load(text).nq, load(text, mimic=False).nq) == (1, 3)
    free = load(text.partition("<equality>")[0] + "</mujoco>")
    assert load(text, mimic=False) == free
    urdf = """<robot name="r"><link name="base"/><link name="a"/><link name="b"/>
      <joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint>
      <joint name="k" type="continuous"><parent link="a"/><child link="b"/><mimic joint="j"/></joint></robot>"""
    with pytest.warns(lw.files.InertiaWarning):
        assert (load(urdf).nq, load(urdf, mimic=False).nq) == (1, 2)
