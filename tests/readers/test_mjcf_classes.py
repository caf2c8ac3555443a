"""Attributes of default classes and of elements, pair by pair, and many features at once: mass matrix, bias forces,
passive forces, actuator forces, frames and limits are MuJoCo's, or a note names the difference."""

from __future__ import annotations

import itertools
import random
import warnings

import numpy as np
import pytest

import linkwise as lw
from tests.peers.mujoco_forces import without_constraints
from tests.readers.mujoco_oracle import Pair, mujoco

PASSIVE = ("springs", "damping", "tendons", "gravity_compensation", "fluid")
OFF = int(mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)


def compiled(text: str) -> mujoco.MjModel | None:
    """MuJoCo's model; None where it refuses the text, or its mass matrix is singular."""
    try:
        model = mujoco.MjModel.from_xml_string(text)
    except ValueError:
        return None
    return model if model.nv else None


def assert_equal_or_named(text: str, states: int = 2) -> None:
    """Compare all forces with MuJoCo's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        pair = Pair(text)
    mech, model, data = pair.mech, pair.model, pair.data
    mujoco.mj_forward(model, data)
    if mech.notes or np.linalg.cond(pair.mass_matrix()) > 1e9:
        return
    model.opt.disableflags |= OFF
    kernels = {name: lw.compile(name, pair.tree, target="numpy") for name in ("mass_matrix", "bias_force")}
    passive, driven = without_constraints(mech.with_acting(*PASSIVE)), mech.with_acting("actuators")
    rng = np.random.default_rng(0)
    for q, v in zip(*lw.random_state(pair.tree, rng, (states,)), strict=True):
        data.ctrl[:] = ctrl = rng.normal(size=model.nu)
        tie, drift = pair.set(q, v)
        full = pair.mass_matrix()
        forces = lw.forces.joint_forces(passive, q, v)
        if model.nu:
            forces = forces + lw.forces.joint_forces(driven, q, v, ctrl=ctrl)
        for name, found, expected, tolerance in (
            ("mass matrix", kernels["mass_matrix"](q), tie.T @ full @ tie, 1e-9),
            ("bias force", kernels["bias_force"](q, v), tie.T @ (full @ drift + data.qfrc_bias), 1e-9),
            # MuJoCo's principal axes, along which fluids act, are rounded.
            ("forces", forces, tie.T @ (data.qfrc_passive + data.qfrc_actuator), 1e-5 if model.opt.density else 1e-9),
        ):
            scale = tolerance * max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(found, expected, rtol=0, atol=scale, err_msg=f"{name} of {text}")
        pair.assert_same_frames(q)
    assert_same_limits(pair)


def assert_same_limits(pair: Pair) -> None:
    model = pair.model
    for j, body in enumerate(pair.mech.bodies):
        if body.nv == 1:
            bounds = model.jnt_range[j] if model.jnt_limited[j] else (-np.inf, np.inf)
            np.testing.assert_allclose([body.limits.lower[0], body.limits.upper[0]], bounds, rtol=1e-12)
            assert body.friction[0] == pytest.approx(model.dof_frictionloss[model.jnt_dofadr[j]])


BOX = '<geom type="box" size="0.1 0.2 0.3" pos="0.1 0.05 0" contype="0" conaffinity="0"/>'
#: What is crossed -> the model with a class and an element, and what both may set.
CROSSED = {
    "joint": (
        """<mujoco><default><joint {0}/></default><worldbody><body name="p" pos="0 0 1" euler="10 20 30" gravcomp="0.3">
        <joint name="j" {1}/>{box}</body></worldbody><actuator><motor joint="j" gear="2"/></actuator></mujoco>""",
        (
            *("", 'type="slide"', 'type="ball"', 'type="free"', 'pos="0.1 0.2 0.3"', 'axis="1 1 0"', 'range="0 0"'),
            *('springdamper="0.2 0.7"', 'springdamper="0 0"', 'limited="true" range="-20 30"', 'range="-20 30"'),
            *('limited="false"', 'ref="10"', 'stiffness="3"', 'stiffness="0"', 'stiffness="3 1 2"', 'springref="20"'),
            *('armature="0.2"', 'damping="0.3"', 'damping="0.3 0.1"', 'frictionloss="0.1"', 'springyield="0.1"'),
            *('actuatorfrcrange="-0.1 0.1"', 'actuatorgravcomp="true"', 'margin="0.1"', 'solreflimit="0.01 1"'),
        ),
    ),
    "geom": (
        """<mujoco><compiler inertiagrouprange="0 2"/><option density="2" viscosity="0.1" wind="1 0.2 0"/><asset>
        <mesh name="m" vertex="0 0 0 0.3 0 0 0 0.2 0 0 0 0.4"/></asset><default><geom {0}/></default><worldbody>
        <body name="p" pos="0 0 1"><joint name="j" axis="1 2 3"/><geom class="main" type="sphere" size="0.05"
        pos="0.3 0 0"/><geom {1}/></body></worldbody></mujoco>""",
        (
            *("", 'type="box" size="0.1 0.2 0.3"', 'type="capsule" size="0.1 0.2"', 'type="cylinder" size="0.1 0.3"'),
            *('type="ellipsoid" size="0.1 0.2 0.3"', 'type="sphere" size="0.2"', 'size="0.3"', 'size="0.1 0.2"'),
            *('type="mesh" mesh="m"', 'mesh="m"', 'type="box" mesh="m"', 'fromto="0 0 0 0.3 0.1 0.2"', 'mass="3"'),
            *('pos="0.1 0.2 0.3"', 'quat="1 0.2 0.3 0"', 'euler="10 20 30"', 'axisangle="1 1 0 30"', 'density="0"'),
            *('zaxis="1 1 1"', 'xyaxes="1 1 0 0 1 1"', 'density="100"', 'mass="0"', 'group="3"', 'fitscale="2"'),
            *('fluidshape="ellipsoid"', 'fluidcoef="1 2 3"', 'contype="0"', 'type="plane" size="1 1 1"'),
        ),
    ),
    "tendon": (
        """<mujoco><default><tendon {0}/></default><worldbody><body name="p" pos="0 0 1"><joint name="j" axis="0 1 0"
        springref="10"/>{box}<body name="b" pos="0.4 0 0"><joint name="k" type="slide" axis="1 0 0" ref="0.1"/>{box}
        </body></body></worldbody><tendon><fixed name="t" {1}><joint joint="j" coef="0.5"/><joint joint="k" coef="-2"/>
        </fixed></tendon><actuator><motor tendon="t" gear="2"/></actuator></mujoco>""",
        (
            *("", 'stiffness="3"', 'stiffness="3 1 1"', 'damping="0.4"', 'damping="0.4 0.1"', 'springlength="0.1"'),
            *('springlength="-0.1 0.2"', 'springlength="-1"', 'range="-0.1 0.2"', 'limited="true"', 'limited="false"'),
            *('frictionloss="0.2"', 'armature="0.1"', 'actuatorfrcrange="-0.1 0.1"', 'springyield="0.1"'),
        ),
    ),
    "site": (
        """<mujoco><default><site {0}/></default><worldbody><body name="p" pos="0 0 1"><joint name="j" axis="0 1 0"/>
        {box}<site name="s" {1}/></body></worldbody><actuator><motor site="s" gear="1 2 3 4 5 6"/></actuator>
        </mujoco>""",
        (
            *("", 'pos="0.1 0.2 0.3"', 'quat="1 0.2 0.3 0"', 'euler="10 20 30"', 'axisangle="1 1 0 30"'),
            *('zaxis="1 1 1"', 'xyaxes="1 1 0 0 1 1"', 'fromto="0 0 0 0.3 0.1 0.2"', 'type="box"'),
        ),
    ),
}


def crossed(kind: str) -> list[str]:
    text, attributes = CROSSED[kind]
    return [text.format(*pair, box=BOX) for pair in itertools.product(attributes, attributes)]


@pytest.mark.parametrize("kind", CROSSED)
def test_a_sample_of_classes_and_elements(kind):
    texts = [text for text in random.Random(0).sample(crossed(kind), 16) if compiled(text)]
    assert len(texts) > 4
    for text in texts[:6]:
        assert_equal_or_named(text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CROSSED)
def test_classes_and_elements(kind):
    texts = [text for text in crossed(kind) if compiled(text)]
    assert len(texts) > len(crossed(kind)) / 3
    for text in texts:
        assert_equal_or_named(text)


# -- many features at once ------------------------------------------------------------------------------


class Models:
    """Random models: nested classes and bodies, frames, several joints in a body, ties, tendons, actuators."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.joints: list[str] = []
        self.bodies = 0

    def some(self, share: float, **values: str) -> str:
        """Attributes, each with this probability: of words apart by "|", or random numbers "low:high" (times three)."""
        return "".join(f' {k}="{self.value(v)}" ' for k, v in values.items() if self.rng.random() < share)

    def value(self, words: str) -> str:
        if ":" not in words:
            return self.rng.choice(words.split("|"))
        low, high, *count = (float(x) for x in words.split(":"))
        return " ".join(f"{self.rng.uniform(low, high):.4g}" for _ in range(int(count[0]) if count else 1))

    def orientation(self, share: float) -> str:
        ways = {"quat": "-1:1:4", "euler": "-90:90:3", "axisangle": "0.1:1:4", "zaxis": "-1:1:3"}
        return self.some(share, **dict([self.rng.choice(list(ways.items()))]))

    def joint(self, share: float) -> str:
        numbers = {"axis": "-1:1:3", "pos": "-0.2:0.2:3", "stiffness": "0:5", "damping": "0:1", "armature": "0:0.1"}
        numbers |= {"springref": "-20:20", "ref": "-20:20", "frictionloss": "0:0.1", "springdamper": "0.3 0.7|0 0"}
        return self.some(share, **numbers, actuatorfrcrange="-1 1|-0.1 0.2", range="-30 40|0 0|-1 1")

    def geom(self, share: float) -> str:
        return self.some(
            share, type="box|sphere|capsule|cylinder|ellipsoid", density="100:2000", pos="-0.3:0.3:3", mass="0.1:2"
        ) + self.some(share, group="0|3")

    def actuator(self, of: str = "") -> str:
        tag = self.rng.choice(("general", "motor", "position", "velocity", "damper"))
        own = {
            "general": self.some(0.6, gainprm="3|2 1 -1", gaintype="fixed|affine", biastype="none|affine")
            + self.some(0.6, biasprm="0 -3 -1|1 2 3|0 -3 0.5"),
            "position": self.some(0.6, kp="1:20") + self.some(0.6, **{self.rng.choice(("kv", "dampratio")): "0:2"}),
            "velocity": self.some(0.6, kv="0:3"),
            "damper": self.some(0.6, kv="0:3") + 'ctrlrange="0 1"',
        }.get(tag, "")
        return f"<{tag} {of} {self.some(0.3, gear='2|-1.5|0.3', forcerange='-1 1')} {own}/>"

    def default(self, name: str) -> str:
        inside = "".join(map(self.default, {"": "ab", "a": "c"}.get(name, "")))
        own = f"<joint {self.joint(0.2)}/>" + (self.actuator() if self.rng.random() < 0.7 else "")
        own += f'<geom {self.geom(0.2)} contype="0" conaffinity="0" {self.orientation(0.15)}/>'
        own += f"<tendon {self.some(0.4, stiffness='0:2', damping='0:1')}/>"
        return f"<default{f' class={name!r}' if name else ''}>{own}{inside}</default>"

    def of_class(self, key: str = "class") -> str:
        return self.some(0.3, **{key: "a|b|c"})

    def body(self, depth: int) -> str:
        number, self.bodies = self.bodies, self.bodies + 1
        parts = f'<geom size="0.1 0.12 0.15" {self.of_class()} {self.geom(0.4)} {self.orientation(0.3)}/>{BOX}'
        kind = self.rng.random()
        if depth == 0 and kind < 0.2:
            parts += f'<freejoint name="free{number}"/>'
        elif kind < 0.3:
            parts += f'<joint type="ball" name="ball{number}" {self.of_class()} range="0 0"/>'
        else:
            for _ in range(self.rng.choice((0, 1, 1, 2))):
                self.joints.append(f"j{number}_{len(self.joints)}")
                kind_of = self.rng.choice(("hinge", "slide"))
                parts += f'<joint name="{self.joints[-1]}" {self.of_class()} type="{kind_of}" {self.joint(0.25)}/>'
        if self.rng.random() < 0.25:
            parts += f'<inertial pos="0.05 0 0" mass="1" diaginertia="0.05 0.06 0.07" {self.orientation(0.4)}/>'
        inner = "".join(self.body(depth + 1) for _ in range(self.rng.choice((0, 1, 1, 2)) if depth < 3 else 0))
        if self.rng.random() < 0.3:
            inner = f'<frame {self.of_class("childclass")} pos="0.1 0.2 0" {self.orientation(0.5)}>{inner}</frame>'
        place = f'pos="{self.value("-0.4:0.4:3")}" {self.orientation(0.5)} {self.some(0.2, gravcomp="0.4")}'
        return f'<body name="b{number}" {self.of_class("childclass")} {place}>{parts}{inner}</body>'

    def text(self) -> str:
        classes, bodies = self.default(""), self.body(0) + self.body(0)
        tail = ""
        if len(self.joints) > 3:
            a, b, c, d = self.rng.sample(self.joints, 4)
            tail += f'<tendon><fixed name="t" {self.of_class()} {self.some(0.5, stiffness="0:3", damping="0:1")}>'
            tail += f'<joint joint="{a}" coef="0.7"/><joint joint="{b}" coef="-1.2"/></fixed></tendon>'
            actuators = [self.actuator(f'{self.of_class()} joint="{x}"') for x in (a, b, c, d)]
            tail += f'<actuator>{"".join(actuators)}<position tendon="t" kp="3" dampratio="0.5"/></actuator>'
            if self.rng.random() < 0.5:
                tail += f'<equality><joint joint1="{c}" joint2="{d}" polycoef="0.1 1.5 0 0 0"/></equality>'
        words = ('angle="radian"', 'eulerseq="ZYX"', 'inertiafromgeom="true"', 'boundmass="0.4"', 'settotalmass="7"')
        head = f'<compiler {self.rng.choice(("", *words))} inertiagrouprange="0 2"/>'
        head += self.rng.choice(("", '<option density="1.2" viscosity="0.05" wind="1 0 0"/>'))
        return f"<mujoco>{head}{classes}<worldbody>{bodies}</worldbody>{tail}</mujoco>"


def assert_models(seeds: range) -> None:
    texts = [text for text in (Models(seed).text() for seed in seeds) if compiled(text)]
    assert len(texts) > len(seeds) / 2
    for text in texts:
        assert_equal_or_named(text)


def test_a_sample_of_random_models():
    assert_models(range(4))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_random_models(part):
    assert_models(range(20 * part, 20 * part + 20))
