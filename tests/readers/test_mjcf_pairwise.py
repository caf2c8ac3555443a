"""Actuators where a default class meets an element: every pair of (element, attributes) in a class and (element,
attributes) of the actuator, compared with the forces and activation rates that MuJoCo computes.

A pair is equal to MuJoCo, or its actuator is named in ``mech.notes``; none differs in silence.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import linkwise as lw
from tests.readers.mujoco_oracle import mujoco

#: Element -> attributes that a class or an actuator sets.
WRITTEN = {
    "general": (
        *("", 'gainprm="4"', 'gaintype="affine" gainprm="3 0.5 -0.7"', 'gainprm="2 0.3 -0.4 1 1 1 1 1 1 1"'),
        *('biastype="affine" biasprm="0.3 -2 -0.6"', 'biasprm="0.1 -5 0.8"', 'biastype="affine"', 'dynprm="0.3"'),
        *('dyntype="filter" dynprm="0.2"', 'dyntype="filterexact" dynprm="0.4 1"', 'dyntype="integrator"'),
        *('gaintype="affine" gainprm="3 1 -1" biastype="affine" biasprm="0 -3 0.5"',),
        *('ctrlrange="-0.4 0.5"', 'inheritrange="0.5"', 'forcerange="-0.2 0.3"', 'actearly="true" dyntype="filter"'),
    ),
    "motor": ("", 'gear="3"', 'ctrllimited="false" ctrlrange="-0.1 0.1"'),
    "position": (
        *("", 'kp="7"', 'kv="0.9"', 'kp="7" dampratio="0.7"', 'timeconst="0.5"', 'inheritrange="0.8"'),
        *('ctrlrange="-0.3 0.2"',),
    ),
    "velocity": ("", 'kv="6"'),
    "intvelocity": ('kp="5"', 'kv="0.4"', 'actrange="-0.7 0.6"', 'inheritrange="1"'),
    "damper": ('kv="3" ctrlrange="0 2"', 'ctrlrange="0 2"'),
    "cylinder": ("", 'area="2"', 'diameter="0.5"', 'timeconst="0.6"', 'bias="0.2 -0.3 -0.4"'),
    "muscle": ('force="30"',),
    "adhesion": ('gain="2" ctrlrange="0 1"',),
    "pid": ('kp="3" kv="0.2"', 'kp="2" ki="1" posrange="-1 1"'),
    "orientation": ('kp="2"',),
    "dcmotor": ('motorconst="1 1" resistance="2"', 'motorconst="1 1" resistance="2" saturation="0.3 0 0"'),
}
ALL = [(tag, attributes) for tag, sets in WRITTEN.items() for attributes in sets]
DRIVEN = [(tag, attributes) for tag, attributes in ALL if tag not in ("adhesion", "orientation")]
CHAINS = [  # classes within classes, outermost first, and the actuator
    ('<general gainprm="4"/>', '<position kp="6" kv="2"/>', "<velocity/>"),
    ('<position kp="6"/>', '<velocity kv="3"/>', "<position/>"),
    ('<position kp="6"/>', '<velocity kv="3"/>', "<general/>"),
    ('<position kp="6"/>', '<general gear="2"/>', "<velocity/>"),
    ('<position kp="6" kv="2"/>', '<velocity kv="3"/>', '<position kp="7"/>'),
    ('<general gainprm="4"/>', '<general gaintype="affine"/>', "<velocity/>"),
    ('<general gainprm="4"/><position kp="6"/>', "", "<velocity/>"),
    ('<position kp="6"/><velocity kv="3"/>', "", "<position/>"),
    ('<general gainprm="4"/>', '<position kp="6"/><velocity/>', "<position/>"),
    ('<cylinder area="3" timeconst="0.2" bias="1 2 -3"/>', '<general dyntype="filterexact"/>', "<position/>"),
    ('<position inheritrange="0.5"/>', '<intvelocity kp="2"/>', "<general/>"),
    ('<position inheritrange="0.5"/>', '<intvelocity kp="2"/>', "<position/>"),
    ('<general ctrlrange="-1 1"/>', '<position inheritrange="0.5"/>', "<motor/>"),
    ('<general inheritrange="0.7"/>', '<position inheritrange="0.5"/>', '<intvelocity kp="3"/>'),
    ('<damper kv="3" ctrlrange="0 1"/>', '<general gaintype="fixed"/>', "<damper/>"),
    ('<velocity kv="4"/>', "<muscle/>", "<velocity/>"),
    ('<muscle force="3"/>', '<general gear="2"/>', '<general gaintype="fixed" biastype="none" dyntype="none"/>'),
    ('<dcmotor motorconst="1 1" resistance="2" saturation="0 0.3 0"/>', "<position/>", '<position kp="9"/>'),
]


def _with(element: str, more: str) -> str:
    """An element with more attributes."""
    tag, rest = element[1:-2].partition(" ")[::2]
    return f"<{tag} {more} {rest}/>"


def nested(classes: tuple[str, ...], name: str) -> str:
    """Default classes, each within the one before; the innermost has the name."""
    text = ""
    for level, content in reversed(list(enumerate(classes))):
        own = name if level == len(classes) - 1 else f"{name}_{level}"
        text = f'<default class="{own}">{content}{text}</default>'
    return text


def document(cases: list[tuple[str, ...]]) -> str:
    """One arm for each case: (classes ..., actuator)."""
    defaults = "".join(nested(case[:-1], f"c{k}") for k, case in enumerate(cases))
    arms = "".join(
        f'<body><joint name="j{k}" axis="0 1 0" range="-0.6 1.1" limited="false"/>'
        f'<geom size="0.1" mass="{1 + 0.1 * k}" '
        'pos="0.3 0 0" contype="0" conaffinity="0"/></body>'
        for k in range(len(cases))
    )
    actuators = "".join(_with(case[-1], f'name="a{k}" class="c{k}" joint="j{k}"') for k, case in enumerate(cases))
    return (
        f'<mujoco><compiler angle="radian"/><default>{defaults}</default><worldbody>{arms}</worldbody>\n'
        f"<actuator>{actuators}</actuator></mujoco>"
    )


def compiles(case: tuple[str, ...]) -> bool:
    try:
        mujoco.MjModel.from_xml_string(document([case]))
    except ValueError:
        return False
    return True


def pairs(start: int = 0, step: int = 1) -> list[tuple[str, ...]]:
    """Pairs of classes and actuators that MuJoCo compiles."""
    every = [(f"<{a} {of_class}/>", f"<{b} {own}/>") for (a, of_class), (b, own) in itertools.product(ALL, DRIVEN)]
    return [case for case in every[start::step] if compiles(case)]


def assert_equal_or_named(cases: list[tuple[str, ...]]) -> None:
    text = document(cases)
    model = mujoco.MjModel.from_xml_string(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        mech = lw.load(text)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    driven = mech.with_acting("actuators")
    named = " ".join(place for note in mech.notes for place in note.where if "actuator" in note.what)
    for _ in range(4):
        q, v = rng.uniform(-0.6, 1.1, mech.nq), rng.normal(size=mech.nv)
        data.qpos[:], data.qvel[:] = q, v
        data.ctrl[:], data.act[:] = rng.normal(size=model.nu), rng.uniform(-0.1, 0.1, model.na)
        ctrl, activation, rates = [], [], []
        for one in mech.forces.actuators:
            i = model.actuator(one.name).id
            ctrl.append(data.ctrl[model.actuator_ctrladr[i]])
            if one.has_activation:
                activation.append(data.act[model.actuator_actadr[i]])
        mujoco.mj_forward(model, data)
        found = lw.forces.joint_forces(driven, q, v, ctrl=ctrl, activation=activation if activation else None)
        if activation:
            rates = lw.forces.activation_rates(driven, q, v, ctrl=ctrl, activation=activation).tolist()
        for k, case in enumerate(cases):
            if f'"a{k}"' in named:
                continue
            at = mech.v_index(f"j{k}")
            message = " ".join(case)
            np.testing.assert_allclose(found[at], data.qfrc_actuator[k : k + 1], rtol=1e-9, atol=1e-9, err_msg=message)
            assert f"a{k}" in mech.forces.actuator_names, message
        for one in (one for one in mech.forces.actuators if one.has_activation):
            i = model.actuator(one.name).id
            assert rates.pop(0) == pytest.approx(data.act_dot[model.actuator_actadr[i]], rel=1e-9, abs=1e-9), one


def test_classes_within_classes():
    assert_equal_or_named([case for case in CHAINS if compiles(case)])


def test_actuators_behind_those_of_several_inputs():
    """Electrical machines and drives of orientations have several control inputs, or forces."""
    others = ('<pid kp="3" kv="0.2"/>', '<dcmotor motorconst="1 1" resistance="2"/>')
    own = ('<motor ctrlrange="-0.1 0.2" gear="3"/>', '<position kp="5" ctrlrange="-0.3 0.2" forcerange="-1 2"/>')
    assert_equal_or_named([("<general/>", one) for pair in zip(others, own, strict=True) for one in pair])


def test_a_sample_of_pairs():
    assert_equal_or_named(pairs(3, 211))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(30))
def test_all_pairs(part):
    cases = pairs(part, 30)
    assert len(cases) > 55
    assert_equal_or_named(cases)
