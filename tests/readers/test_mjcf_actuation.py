"""Numbers of actuators from their own words and from default classes, against the model that MuJoCo compiles; forces
and rates against its."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from tests.peers.mujoco_forces import Beside
from tests.readers.mujoco_oracle import mujoco

BODIES = """<body name="a"><joint name="j" axis="0 1 0" range="-0.5 1" damping="0.3" springref="0.2"/>
  <geom size="0.1" pos="0.2 0 0" contype="0"/>
  <body name="b" pos="0.4 0 0"><joint name="s" type="slide" axis="1 0 0.2" ref="0.1"/><geom size="0.08" contype="0"/>
  <site name="site" pos="0.1 0 0.1" euler="0.3 0.2 0.1"/>
  <body name="c" pos="0.3 0 0" gravcomp="0.7"><joint name="ball" type="ball" stiffness="0.4"/>
  <geom size="0.06" pos="0 0.1 0" contype="0"/></body></body></body>
  <body name="f" pos="0 0 1"><freejoint name="free"/><geom size="0.1" contype="0"/></body>"""
TENDON = """<tendon><fixed name="t" stiffness="3" damping="0.2">
  <joint joint="j" coef="0.5"/><joint joint="s" coef="-2"/></fixed>
  <fixed name="slack" stiffness="5" springlength="-0.1 0.05"><joint joint="j" coef="1"/></fixed></tendon>"""


def model(actuators: str, default: str = "") -> str:
    return f"""<mujoco><compiler angle="radian"/><default>{default}</default><worldbody>{BODIES}</worldbody>{TENDON}
      <actuator>{actuators}</actuator></mujoco>"""


ACTUATORS = {
    "motor": '<motor joint="j" gear="3" ctrlrange="-1 1"/>',
    "general": '<general joint="j" gainprm="2 0.5 -1" gaintype="affine" biastype="affine" biasprm="1 -2 -3"/>',
    "fixed gain ignores the rest": '<general joint="j" gainprm="2 5 5"/>',
    "position": '<position joint="j" kp="5" kv="0.5" gear="2"/>',
    "damping ratio": '<position joint="j" kp="5" dampratio="1"/>',
    "damping ratio of a tendon": '<position tendon="t" kp="5" dampratio="0.7" gear="2"/>',
    "damping ratio in other words": '<general joint="s" gainprm="5" biastype="affine" biasprm="0 -5 0.3"/>',
    "slow position": '<position joint="j" kp="5" timeconst="0.2"/>',
    "inherited range": '<position joint="j" kp="5" inheritrange="0.5"/>',
    "velocity": '<velocity joint="s" kv="7" forcerange="-2 2"/>',
    "intvelocity": '<intvelocity joint="j" kp="9" kv="0.1" actrange="-0.4 0.4"/>',
    "intvelocity with inherited range": '<intvelocity joint="j" kp="9" inheritrange="1"/>',
    "damper": '<damper joint="j" kv="2" ctrlrange="0 3"/>',
    "cylinder": '<cylinder joint="s" timeconst="0.3" area="2" bias="1 -2 -0.5"/>',
    "cylinder by its diameter": '<cylinder joint="s" diameter="0.5"/>',
    "integrator": '<general joint="s" dyntype="integrator" gainprm="2" actlimited="true" actrange="-1 1"/>',
    "filter": '<general joint="s" dyntype="filter" dynprm="0.2" biastype="affine" biasprm="0 -1"/>',
    "exact filter": '<general joint="s" dyntype="filterexact" dynprm="0.2"/>',
    "tendon": '<motor tendon="t" gear="4"/>',
    "ball": '<motor joint="ball" gear="1 2 3"/><position joint="ball" gear="0 1 0" kp="3" ctrlrange="-0.1 0.1"/>',
    "ball in its parent": '<motor jointinparent="ball" gear="1 2 3"/><velocity jointinparent="ball" gear="1 0 1"/>',
    "free": '<motor joint="free" gear="1 2 3 4 5 6"/><velocity joint="free" gear="0 1 0 0 0 1" kv="2"/>',
    "free in its parent": '<motor jointinparent="free" gear="1 2 3 4 5 6"/>',
    "site": '<motor site="site" gear="1 2 3 0.1 0.2 0.3"/><velocity site="site" gear="0 0 1 0 1 0" kv="3"/>',
    "range without switch": '<motor joint="j" ctrllimited="false" ctrlrange="-1 1"/>',
}
DEFAULTS = {
    "position's gain for a general": ('<position kp="3"/>', '<general joint="j"/>'),
    "general's gain for a position": ('<general gainprm="7"/>', '<position joint="j"/>'),
    "motor forgets": ('<position kp="3"/>', '<motor joint="j"/>'),
    "position keeps a filter": ('<general dyntype="filter" dynprm="0.3"/>', '<position joint="j" kp="2"/>'),
    "position keeps a damping": ('<position kp="2" kv="0.5"/>', '<position joint="j" kp="4"/>'),
    "classes within classes": (
        '<motor gear="2"/><default class="inner"><position kp="6"/>'
        '<default class="last"><general ctrlrange="-1 1"/></default></default>',
        '<general class="last" joint="j"/><velocity class="inner" joint="s"/>',
    ),
    "another kind begins anew": ('<position kp="6"/>', '<velocity joint="j"/><intvelocity joint="s" actrange="-1 1"/>'),
    "the same kind goes on": ('<damper kv="2" ctrlrange="0 1"/>', '<damper joint="j"/>'),
    "a filter of a servo": ('<position kp="6" timeconst="0.2"/>', '<position joint="j" kp="4"/>'),
    "velocity's gain": ('<velocity kv="5"/>', '<velocity joint="j"/><damper joint="s" ctrlrange="0 1"/>'),
    "cylinder of a class": ('<cylinder timeconst="0.4" area="3"/>', '<cylinder joint="s"/><general joint="j"/>'),
}
CASES = {**{name: ("", text) for name, text in ACTUATORS.items()}, **DEFAULTS}


@pytest.mark.parametrize(("default", "actuators"), CASES.values(), ids=CASES)
def test_numbers_forces_and_rates_are_those_of_mujoco(default, actuators, tmp_path):
    file = tmp_path / "model.xml"
    file.write_text(model(actuators, default))
    pair = Beside(file)
    m, mech = pair.model, pair.mech
    assert m.nu == mech.n_ctrl and m.na == mech.forces.n_activation
    kinds = (mujoco.mjtDyn, "none integrator filter filterexact")
    for i, one in enumerate(mech.forces.actuators):
        assert one.dynamics == dict(zip(range(4), kinds[1].split(), strict=True))[m.actuator_dyntype[i]]
        if one.dynamics.startswith("filter"):
            assert one.time_constant == m.actuator_dynprm[i, 0]
        np.testing.assert_allclose(one.gear, m.actuator_gear[i])
        affine = m.actuator_gaintype[i] == mujoco.mjtGain.mjGAIN_AFFINE
        np.testing.assert_allclose(one.gain, m.actuator_gainprm[i, :3] * (1, affine, affine), rtol=1e-12)
        if m.actuator_biastype[i] == mujoco.mjtBias.mjBIAS_AFFINE:
            np.testing.assert_allclose(one.bias, m.actuator_biasprm[i, :3], rtol=1e-9)
        for bounds, limited, expected in (
            (one.ctrl_range, m.actuator_ctrllimited, m.actuator_ctrlrange),
            (one.force_range, m.actuator_forcelimited, m.actuator_forcerange),
            (one.activation_range, m.actuator_actlimited, m.actuator_actrange),
        ):
            assert (bounds is not None) == bool(limited[i])
            if bounds is not None:
                np.testing.assert_allclose(bounds, expected[i], rtol=1e-12)
    assert max(pair.differences().values()) < 1e-11


def test_effort_ranges_bound_the_sum_of_actuators(tmp_path):
    text = model('<motor joint="j" gear="3"/><motor joint="j" gear="2"/><motor tendon="t"/>').replace(
        'damping="0.3"', 'damping="0.3" actuatorfrcrange="-2 1"'
    )
    (tmp_path / "model.xml").write_text(text)
    pair = Beside(tmp_path / "model.xml")
    assert pair.differences(states=8)["actuators"] < 1e-12
    still = np.zeros(pair.mech.nv)
    for ctrl, force in ((9.0, 1.0), (-9.0, -2.0), (0.1, 0.5)):
        found = lw.forces.joint_forces(
            pair.mech.with_acting("actuators"), pair.mech.initial, still, ctrl=[ctrl, ctrl, 0.0]
        )
        assert found[pair.mech.v_index("j")] == pytest.approx(force)


def test_a_position_servo_holds_at_zero_control_as_in_mujoco(tmp_path):
    """An arm falls without its servos; with them it hangs near zero, where MuJoCo has it."""
    text = """<mujoco><option timestep="0.0005" integrator="RK4"/><worldbody>
      <body name="a"><joint name="j" axis="0 1 0" damping="2"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.04" contype="0"/></body></worldbody>
      <actuator><position joint="j" kp="80"/></actuator></mujoco>"""
    (tmp_path / "arm.xml").write_text(text)
    mech = lw.load(tmp_path / "arm.xml")
    m = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(m)
    mujoco.mj_step(m, data, 2000)
    q, v = lw.rollout(mech, None, None, None, 0.0005, 2000, final_only=True)
    np.testing.assert_allclose([*q, *v], [*data.qpos, *data.qvel], atol=1e-9)
    bare, _ = lw.rollout(mech.with_acting(False), None, None, None, 0.0005, 2000, final_only=True)
    assert 0.0 < q[0] < 0.3 < abs(bare[0])


def test_one_warning_says_what_acts_and_what_does_not():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        lw.load(model('<motor joint="j"/><muscle joint="s"/>'))
    (warning,) = (one for one in told if issubclass(one.category, lw.files.OmissionWarning))
    assert str(warning.message) == (
        "text: acting: 1 joint with springs, 1 joint with damping, 1 joint with limits, 1 actuator, 2 tendons, "
        "1 body held up; not acting: 1 muscle actuator; mech.notes says where and what to do"
    )
