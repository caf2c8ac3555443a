"""What the elements of an MJCF file mean, with MuJoCo as the judge."""

import itertools
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismWarning
from linkwise.readers import load
from tests.readers.mujoco_oracle import Pair

BALL = '<geom size="0.1"/>'
UNEVEN = '<inertial pos="0.1 -0.2 0.05" mass="1.5" diaginertia="0.03 0.02 0.04" euler="10 20 30"/>'


def model(bodies, head="", tail=""):
    return f"<mujoco>{head}<worldbody>{bodies}</worldbody>{tail}</mujoco>"


def numbers(values):
    return " ".join(repr(float(x)) for x in np.ravel(values))


# -- random models ------------------------------------------------------------------------------------


class RandomModel:
    """Bodies with up to three joints, anchors, references, frames, classes, orientations and masses of all kinds."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.count = itertools.count(1)

    def text(self):
        angle, sequence = self.rng.choice(["degree", "radian"]), "".join(self.rng.choice(list("xyzXYZ"), 3))
        head = (
            f'<compiler angle="{angle}" eulerseq="{sequence}"/><option gravity="{self.vector()}"/>'
            f'<default><joint armature="0.01"/><geom density="700"/><default class="light"><geom density="300"/>'
            f'<joint armature="0.02" pos="{self.vector()}"/><default class="lighter"><geom mass="0.4"/></default>'
            f"</default></default>"
        )
        return model("".join(self.body(depth=0) for _ in range(3)), head)

    def vector(self, count=3):
        return numbers(self.rng.normal(size=count))

    def orientation(self):
        kind = self.rng.choice(["quat", "axisangle", "xyaxes", "zaxis", "euler", "none"])
        counts = {"quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "euler": 3}
        return "" if kind == "none" else f'{kind}="{self.vector(counts[kind])}"'

    def pose(self):
        return f'pos="{self.vector()}" {self.orientation()}'

    def child_class(self, key):
        name = self.rng.choice(["", "", "light", "lighter", "main"])
        return f'{key}="{name}"' if name else ""

    def joints(self, name, depth):
        kinds = [["hinge"], ["slide"], ["ball"], ["hinge", "hinge"], ["slide", "hinge", "slide"], ["hinge", "ball"], []]
        if depth == 0:
            kinds.append(["free"])
        found = []
        for number, kind in enumerate(kinds[self.rng.integers(len(kinds))]):
            place = f'pos="{self.vector()}"' if self.rng.random() < 0.6 else ""
            ref = f'ref="{self.rng.normal()!r}"' if kind in ("hinge", "slide") else 'armature="0"'
            axis = f'axis="{self.vector()}"' if self.rng.random() < 0.8 else ""
            joint = f'<joint name="{name}_{number}" type="{kind}" {place} {ref} {axis} {self.child_class("class")}/>'
            inside = kind != "free" and self.rng.random() < 0.3
            found.append(f"<frame {self.pose()}>{joint}</frame>" if inside else joint)
        return "".join(found)

    def geom(self):
        kind = self.rng.choice(["sphere", "capsule", "cylinder", "ellipsoid", "box"])
        size = numbers(self.rng.uniform(0.05, 0.3, 3))
        where = self.pose()
        if kind != "sphere" and self.rng.random() < 0.3:
            where = f'fromto="{self.vector(6)}"'
        extra = self.rng.choice(["", 'mass="0.7"', 'density="150"', 'shellinertia="true"'])
        shell = kind == "ellipsoid" and "shell" in extra  # which MuJoCo computes by a difference
        return f'<geom type="{kind}" size="{size}" {where} {"" if shell else extra} {self.child_class("class")}/>'

    def mass(self):
        kind = self.rng.integers(3)
        if kind == 0:
            return f'<inertial mass="1.2" pos="{self.vector()}" {self.orientation()} diaginertia="0.3 0.4 0.5"/>'
        if kind == 1:
            return f'<inertial mass="0.8" pos="{self.vector()}" fullinertia="0.3 0.4 0.5 0.02 -0.03 0.04"/>'
        return "".join(self.geom() for _ in range(self.rng.integers(1, 4)))

    def body(self, depth):
        name = f"b{next(self.count)}"
        inside = self.joints(name, depth) + self.mass() + f'<site name="s_{name}" {self.pose()}/>'
        if depth < 3:
            inside += "".join(self.body(depth + 1) for _ in range(self.rng.integers(0, 3)))
        text = f'<body name="{name}" {self.pose()} {self.child_class("childclass")}>{inside}</body>'
        return f"<frame {self.pose()} {self.child_class('childclass')}>{text}</frame>" if depth % 2 else text


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("seed", range(12))
def test_random_models(seed):
    pair = Pair(RandomModel(seed).text())
    assert pair.mech.nv > 3
    pair.assert_same_dynamics(seed)


# -- joints and frames --------------------------------------------------------------------------------


def test_link_and_frame_names():
    one = f'<body name="arm" pos="1 0 0"><joint name="hinge"/>{BALL}<body name="hand"/></body>'
    mech = load(model(one))
    assert mech.link_names == ("arm",) and mech.joint_names == ("hinge",)
    assert tuple(mech.frames) == ("ground", "world", "arm", "hand")
    several = f'<body name="arm"><joint name="x"/><joint name="y" axis="0 1 0"/>{BALL}</body>'
    assert load(model(several)).link_names == ("arm/x", "arm")
    apart = f'<body name="arm"><joint name="x" pos="0 0 1"/>{BALL}</body>'
    assert load(model(apart)).link_names == ("arm/x",)
    assert load(model(apart)).frame("arm").position.tolist() == [0, 0, -1]


def test_bodies_and_joints_without_names():
    mech = load(model(f"<body><joint/><joint axis='1 0 0'/>{BALL}<body name='body1'><joint/>{BALL}</body></body>"))
    assert mech.joint_names == ("body1__joint", "body1__joint_", "body1_joint")
    assert "body1_" in mech.frames and "body1" in mech.frames


def test_names_that_bodies_and_sites_share_and_that_of_the_ground():
    text = model(f'<body name="ground"><joint/>{BALL}<site name="tip"/></body><body name="tip"/>')
    with pytest.warns(MechanismWarning) as caught:
        mech = load(text)
    assert tuple(mech.frames) == ("ground", "world", "ground_body", "tip", "tip_site")
    messages = " ".join(str(one.message) for one in caught)
    assert "'ground_body'" in messages and '<site name="tip"> is the frame of this name with "_site"' in messages


def test_the_first_numbers_of_a_size_replace_those_of_the_class():
    head = """<default><geom type="box" size="0.1 0.2 0.3"/><default class="flat"><geom size="0.4 0.5"/></default>
      </default>"""
    geoms = '<geom size="0.15"/><geom class="flat" pos="1 0 0"/><geom class="flat" size="0.6" pos="0 1 0"/>'
    Pair(model(f"<body><joint/>{geoms}</body>", head)).assert_same_dynamics()


def test_a_free_body_that_carries_others_is_not_aligned():
    head = '<compiler alignfree="true"/>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inner = f'<body pos="1 0 0"><joint name="j"/>{UNEVEN}</body>'
        Pair(model(f"<body><freejoint/>{UNEVEN}{inner}</body>", head)).assert_same_dynamics()


def test_a_free_body_has_the_coordinates_of_the_world():
    pair = Pair(model(f'<body name="box" pos="1 2 3" euler="30 40 50"><freejoint name="free"/>{UNEVEN}</body>'))
    pair.assert_same_dynamics()
    position, quaternion = pair.model.qpos0[:3], pair.model.qpos0[3:]
    pose = lw.frame_pose(pair.mech, [*quaternion, *position], "box")
    np.testing.assert_allclose(pose[:3, 3], [1, 2, 3], atol=1e-15)


def test_a_base_set_free():
    text = model(f'<body name="base" pos="1 2 3">{UNEVEN}<body name="arm"><joint name="j"/>{UNEVEN}</body></body>')
    assert load(text).nv == 1
    mech = load(text, floating_base=True)
    assert mech.joint_names == ("floating_base", "j") and mech.q_index("floating_base") == slice(0, 7)
    assert sum(body.mass for body in mech.bodies) == 3.0


def test_replicated_subtrees():
    inner = f'<replicate count="2" offset="0 0.3 0"><body name="leaf"><joint axis="1 0 0"/>{UNEVEN}</body></replicate>'
    text = model(
        '<replicate count="10" offset="0.2 0 0.1" euler="0 10 20" sep="-">'
        f'<body name="a" pos="0 2 0"><joint name="j"/>{UNEVEN}<site name="s"/>{inner}</body></replicate>'
        f'<body name="last"><joint name="end"/>{UNEVEN}</body>'
    )
    pair = Pair(text)
    assert pair.mech.joint_names[0] == "j-00" and pair.mech.joint_names[-1] == "end" and pair.mech.nv == 31
    assert {"a-09", "leaf1-09", "s-03"} <= set(pair.mech.frames)
    pair.assert_same_dynamics(states=1)


def test_included_files(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.xml").write_text(
        f'<mujocoinclude><body name="arm"><joint name="j"/>{UNEVEN}<include file="hand.xml"/></body></mujocoinclude>'
    )
    (tmp_path / "parts" / "hand.xml").write_text(
        f'<mujoco><body name="hand" pos="1 0 0"><joint name="k" axis="0 1 0"/>{UNEVEN}</body></mujoco>'
    )
    (tmp_path / "settings.xml").write_text('<mujocoinclude><compiler angle="radian"/></mujocoinclude>')
    main = tmp_path / "main.xml"
    main.write_text(model('<include file="parts/arm.xml"/>', '<include file="settings.xml"/>'))
    mech = load(main)
    assert mech.joint_names == ("j", "k")
    assert mech == load(str(main))


def test_settings_of_the_joints():
    head = '<compiler autolimits="false"/><default><joint damping="0.3" stiffness="2" springref="20"/></default>'
    text = model(
        '<body name="a"><joint name="j" range="-30 60" limited="true" frictionloss="0.2" armature="0.1" '
        f'actuatorfrcrange="-3 4" actuatorfrclimited="true"/>{BALL}'
        f'<body><joint type="slide" name="k" damping="0"/>{BALL}</body></body>',
        head,
    )
    pair = Pair(text)
    j, k = pair.mech.bodies
    np.testing.assert_allclose([j.limits.lower[0], j.limits.upper[0]], pair.model.jnt_range[0], rtol=1e-15)
    assert k.limits.lower == (-np.inf,) and j.limits.effort == (4.0,)
    assert (j.friction, j.armature, j.damping, j.stiffness) == ((0.2,), (0.1,), (0.3,), (2.0,))
    np.testing.assert_allclose([j.rest[0], k.rest[0]], pair.model.qpos_spring, rtol=1e-15)
    assert k.damping == (0.0,)


def test_flags_take_forces_away():
    flags = '<option><flag spring="disable" damper="disable" limit="disable" frictionloss="disable"/></option>'
    joint = '<joint range="0 1" stiffness="1" damping="1" frictionloss="1"/>'
    body = load(model(f"<body>{joint}{BALL}</body>", flags)).bodies[0]
    assert (body.stiffness, body.damping, body.friction, body.limits.upper) == ((0,), (0,), (0,), (np.inf,))
    body = load(model(f"<body>{joint}{BALL}</body>", '<option><flag constraint="disable"/></option>')).bodies[0]
    assert (body.stiffness, body.friction, body.limits.upper) == ((1,), (0,), (np.inf,))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:.*free joint with stiffness")
def test_springs_and_dampers(seed):
    head = '<default><joint damping="0.3" stiffness="2"/></default>'
    pair = Pair(
        model(
            f'<body pos="1 2 3" euler="10 20 30"><joint type="free" name="f"/>{UNEVEN}'
            f'<body><joint type="ball" name="b" pos="0 0 1"/>{UNEVEN}'
            f'<body><joint name="h" ref="10" springref="40"/><joint type="slide" springref="0.3"/>{UNEVEN}</body>'
            "</body></body>",
            head,
        )
    )
    q, v = lw.random_state(pair.mech, np.random.default_rng(seed))
    tie, _ = pair.set(q, v)
    free_v = pair.mech.v_index("f")
    found = lw.forces.Passive.of(pair.mech).forces(pair.mech, q, v)
    expected = tie.T @ pair.data.qfrc_passive
    # A free body's springs: MuJoCo's pull position and orientation apart, ours along the screw that joins the poses.
    others = np.setdiff1d(np.arange(pair.mech.nv), np.arange(pair.mech.nv)[free_v])
    np.testing.assert_allclose(found[others], expected[others], rtol=0, atol=1e-12)
    at_rest = np.array(q)
    at_rest[pair.mech.q_index("f")] = [*pair.model.qpos0[3:7], *pair.model.qpos0[:3]]
    tie, _ = pair.set(at_rest, 0 * v)
    np.testing.assert_allclose((tie.T @ pair.data.qfrc_passive)[free_v], 0, atol=1e-12)
    found = lw.forces.Passive.of(pair.mech).forces(pair.mech, at_rest, 0 * v)
    np.testing.assert_allclose(found[free_v], 0, atol=1e-12)


def test_gravity():
    body = f"<body><joint axis='0 1 0' pos='1 0 0'/>{BALL}</body>"
    assert load(model(body)).gravity.tolist() == [0, 0, -9.81]
    own = model(body, '<option gravity="1 2 3"/>')
    assert load(own).gravity.tolist() == [1, 2, 3]
    assert load(own, gravity=(0, 0, -1.6)).gravity.tolist() == [0, 0, -1.6]
    assert not load(model(body, '<option><flag gravity="disable"/></option>')).gravity.any()
    assert load(model(body), name="moon").name == "moon"
    assert load(f'<mujoco model="mine"><worldbody>{body}</worldbody></mujoco>').name == "mine"
