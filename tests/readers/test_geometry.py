"""Shapes and contacts of files: against MuJoCo's geoms and the distances of its collision detection."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

mujoco = pytest.importorskip("mujoco")

FAR = 100.0  # m: a margin within which MuJoCo reports every distance


def load(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(text)


def gymnasium_files() -> list[Path]:
    gymnasium = pytest.importorskip("gymnasium")
    return sorted(Path(gymnasium.__file__).parent.glob("envs/mujoco/assets/*.xml"))


@pytest.mark.parametrize("name", ["ant", "half_cheetah", "humanoid", "hopper", "walker2d", "pusher", "swimmer"])
def test_shapes_are_where_mujoco_has_them(name):
    (file,) = (file for file in gymnasium_files() if file.stem == name)
    mech, model = load(file), mujoco.MjModel.from_xml_path(str(file))
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    q, _ = lw.random_state(mech, rng)
    data.qpos[:] = _as_mujoco(mech, q)
    mujoco.mj_kinematics(model, data)
    touching = [k for k in range(model.ngeom) if model.geom_contype[k] or model.geom_conaffinity[k]]
    assert len(mech.shapes) == len(touching)
    for shape, k in zip(mech.shapes, touching, strict=True):
        pose = lw.frame_pose(mech, q, shape.link) @ np.block([[shape.pose[0], shape.pose[1][:, None]], [0, 0, 0, 1]])
        np.testing.assert_allclose(pose[:3, 3], data.geom_xpos[k], atol=1e-9)
        # Shapes that are round about z may be rotated about it.
        np.testing.assert_allclose(np.abs(pose[:3, 2] @ data.geom_xmat[k].reshape(3, 3)[:, 2]), 1.0, atol=1e-9)
        np.testing.assert_allclose(shape.size, model.geom_size[k][: len(shape.size)], atol=1e-9)
        assert (shape.category, shape.collides_with) == (model.geom_contype[k], model.geom_conaffinity[k])
        assert shape.friction == model.geom_friction[k][0]


@pytest.mark.parametrize("name", ["humanoid", "hopper"])
def test_pairs_between_links_are_those_that_mujoco_looks_at(name):
    (file,) = (file for file in gymnasium_files() if file.stem == name)
    mech, model = load(file), mujoco.MjModel.from_xml_path(str(file))
    round_shapes = {int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CAPSULE)}
    expected = set()
    for a in range(model.ngeom):
        for b in range(a):
            masks = model.geom_contype[[a, b]] & model.geom_conaffinity[[b, a]]
            welds = model.body_weldid[model.geom_bodyid[[a, b]]]
            around = model.body_weldid[model.body_parentid[welds]]
            related = welds[0] == welds[1] or welds[0] == around[1] or welds[1] == around[0]
            if masks.any() and welds.all() and not related and set(model.geom_type[[a, b]].tolist()) <= round_shapes:
                expected.add(frozenset((model.geom(a).name, model.geom(b).name)))
    names = {frozenset(pair) for pair in mech.contact.pairs_between_links}
    assert names == expected and len(names) == len(mech.contact.pairs_between_links) > 2
    touching = mech.with_contact(*mech.contact.pairs_between_links)
    assert len(touching.contact_pairs) == len(mech.contact_pairs) + len(names)


def _as_mujoco(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """Free bodies have their position first."""
    parts = [q[mech.q_index(joint)] for joint in mech.joint_names]
    return np.concatenate([np.roll(part, 3) if len(part) == 7 else part for part in parts])


def shapes_model(shapes: str, tail: str = "") -> str:
    return f"""<mujoco><option gravity="0 0 0"/><worldbody>
      <geom name="floor" type="plane" size="1 1 1" pos="0.1 -0.2 0.3" euler="10 20 30" contype="1" conaffinity="2"/>
      <geom name="stone" size="0.4" pos="0.5 0 0" contype="4" conaffinity="0"/>
      <geom name="beam" type="capsule" size="0.3" fromto="-1 0 0 1 1 1" contype="4" conaffinity="0"/>
      <body name="body"><freejoint/>{shapes}</body></worldbody>{tail}</mujoco>"""


SHAPES = {
    "sphere": '<geom name="s" size="0.3" contype="2" conaffinity="5"/>',
    "capsule": '<geom name="s" type="capsule" size="0.2 0.5" pos="0.1 0.2 0.3" euler="9 8 7" contype="2" '
    'conaffinity="5"/>',
    "box": '<geom name="s" type="box" size="0.2 0.5 0.3" pos="0.1 0.2 0.3" euler="9 8 7" contype="2" conaffinity="1"/>',
    "ellipsoid": '<geom name="s" type="ellipsoid" size="0.2 0.5 0.3" euler="9 8 7" contype="2" conaffinity="1"/>',
    "cylinder": '<geom name="s" type="cylinder" size="0.2 0.5" euler="9 8 7" contype="2" conaffinity="1"/>',
}


@pytest.mark.parametrize("kind", SHAPES)
def test_distances_are_those_of_mujoco(kind):
    text = shapes_model(SHAPES[kind])
    mech, model = load(text), mujoco.MjModel.from_xml_string(text)
    model.geom_margin[:] = FAR
    data, rng = mujoco.MjData(model), np.random.default_rng(2)
    compared = 0
    for _ in range(20):
        q, v = lw.random_state(mech, rng)
        q[4:] = rng.normal(size=3) + [0, 0, 2]
        data.qpos[:] = _as_mujoco(mech, q)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        theirs: dict[str, float] = {}
        for contact in data.contact[: data.ncon]:
            name = min((model.geom(int(g)).name for g in contact.geom), key=lambda n: n == "s")
            theirs[name] = min(theirs.get(name, np.inf), contact.dist)
        gaps = lw.contact.contact_points(mech, q, v).gap
        ours: dict[str, float] = {}
        for pair, gap in zip(mech.contact.parts, gaps, strict=True):
            ours[pair.shape_b] = min(ours.get(pair.shape_b, np.inf), gap)
        assert set(theirs) <= set(ours)
        for name, distance in theirs.items():
            # The edges of cylinders are rounded, by less than a twentieth of the radius.
            rounding = 0.05 * 0.2 if kind == "cylinder" else 0.0
            assert -1e-9 <= ours[name] - distance <= rounding + 1e-9
            compared += 1
    assert compared >= 20


BALL = '<body name="{0}" pos="0 0 {1}"><freejoint name="{0}_free"/><geom name="{0}" size="0.1"{2}/></body>'


def two_balls(one: str = "", other: str = "", floor: str = "", tail: str = "", head: str = "") -> lw.Mechanism:
    return load(
        f'<mujoco>{head}<worldbody><geom name="floor" type="plane" size="1 1 1"{floor}/>'
        + BALL.format("a", 1, one)
        + BALL.format("b", 2, other)
        + f"</worldbody>{tail}</mujoco>"
    )


PAIR = '<contact><pair geom1="a" geom2="floor" friction="0.4 0.4"/></contact>'


@pytest.mark.parametrize(
    "mech, expected",
    [
        (two_balls(), {"a": 1.0, "b": 1.0}),
        (two_balls(' friction="0.3"', floor=' friction="0.2 0 0"'), {"a": 0.3, "b": 1.0}),
        (two_balls(' friction="0.3" priority="1"', floor=' friction="0.7"'), {"a": 0.3, "b": 1.0}),
        (two_balls(' condim="1"', floor=' condim="1"'), {"a": 0.0, "b": 1.0}),
        (two_balls(' contype="0" conaffinity="0"'), {"b": 1.0}),
        (two_balls(tail='<contact><exclude body1="world" body2="a"/></contact>'), {"b": 1.0}),
        (
            two_balls(' contype="0" conaffinity="0"', tail=PAIR),
            {"a": 0.4, "b": 1.0},
        ),
        (two_balls(head='<option><flag contact="disable"/></option>'), {}),
    ],
)  # fmt: skip
def test_masks_pairs_and_friction_decide_as_in_mujoco(mech, expected):
    assert {pair.shape_a: pair.law.friction for pair in mech.contact_pairs} == expected
    assert all(pair.shape_b == "floor" for pair in mech.contact_pairs)


def test_pairs_of_a_file_act_between_links_too():
    mech = two_balls(tail='<contact><pair geom1="a" geom2="b" margin="0.02" gap="0.005"/></contact>')
    pair = next(pair for pair in mech.contact_pairs if pair.shapes == ("a", "b"))
    assert pair.law.margin == 0.02  # how far apart MuJoCo begins to look, gap, adds no force


def test_what_touches_nothing_is_named():
    world = '<geom name="wall" type="cylinder" size="1 1"/><geom type="plane" size="1 1 1"/>'
    drum = BALL.format("c", 9, "").replace('size="', 'type="cylinder" size="0.1 ')
    bodies = BALL.format("a", 1, "") + BALL.format("b", 1, "") + drum
    with pytest.warns(lw.files.OmissionWarning, match="3 geoms with contact between links, 1 cylinder with no"):
        mech = lw.load(f"<mujoco><worldbody>{world}{bodies}</worldbody></mujoco>")
    assert len(mech.contact_pairs) == 5  # each with the plane, balls with the wall too
    assert any("with_contact" in note.advice for note in mech.notes)


URDF = """<robot name="r"><link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
  <collision><origin xyz="0 0 1" rpy="0.1 0.2 0.3"/><geometry><box size="1 2 3"/></geometry></collision>
  <collision name="tip"><geometry><sphere radius="0.5"/></geometry></collision>
  <collision><geometry><cylinder radius="0.5" length="2"/></geometry></collision>
  <collision><geometry><mesh filename="x.stl"/></geometry></collision></link></robot>"""


def test_collision_geometry_of_urdf():
    with pytest.warns(lw.files.OmissionWarning, match="1 collision mesh, 1 link with collision geometry"):
        mech = lw.load(URDF, floating_base=True)
    box, ball, cylinder = mech.shapes
    assert (box.kind, box.size, ball.name, ball.size) == ("box", (0.5, 1.0, 1.5), "tip", (0.5,))
    assert cylinder.size == (0.5, 1.0)
    np.testing.assert_allclose(box.pose[1], [0, 0, 1])
    assert len(mech.with_ground().contact.parts) == 8 + 1 + 2 * (1 + 3)  # corners, a ball, ends with three points
