"""Friction, margins and filters of contact in MJCF, against the contacts that MuJoCo makes of the same text."""

import itertools
import warnings

import pytest

import linkwise as lw
from tests.readers.mujoco_oracle import mujoco

OVERRIDE = '<flag override="enable"/>'


def loaded(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(text)


def box_on_a_floor(floor="", box="", contact="", head="", options="", flags=""):
    return f"""<mujoco><option {options}>{flags}</option>{head}<worldbody>
      <geom name="floor" type="plane" size="1 1 1" {floor}/>
      <body name="crate" pos="0 0 .1"><freejoint/><geom name="box" type="box" size=".1 .1 .1" {box}/></body>
      </worldbody><contact>{contact}</contact></mujoco>"""


def pair(attributes=""):
    return f'<pair geom1="box" geom2="floor" {attributes}/>'


CLASSES = """<default><geom margin=".01" friction=".3 .2 .1"/><pair friction=".6 .6" margin=".04"/>
  <default class="ice"><geom friction=".05"/><pair friction=".1 .1"/></default></default>"""
MODELS = {
    "nothing said": box_on_a_floor(),
    "gap": box_on_a_floor(box='margin=".03" gap=".01"'),
    "two margins": box_on_a_floor(floor='margin=".02"', box='margin=".03" gap=".05"'),
    "margins and priority": box_on_a_floor(floor='margin=".02" priority="1" friction=".4"', box='margin=".03"'),
    "gap of a pair": box_on_a_floor(contact=pair('margin=".03" gap=".02"')),
    "a pair of other geoms": box_on_a_floor('friction=".3" condim="1" margin=".02"', 'friction=".4"', pair()),
    "a pair with friction": box_on_a_floor(box='friction="2"', contact=pair('friction=".7 .7"')),
    "a frictionless pair": box_on_a_floor(contact=pair('condim="1" friction=".7"')),
    "classes": box_on_a_floor(box='class="ice"', head=CLASSES),
    "class of a pair": box_on_a_floor(contact=pair('class="ice"'), head=CLASSES),
    "override": box_on_a_floor(
        'margin=".02"', 'friction=".2" gap=".01"', "", "", 'o_margin=".04" o_friction=".7 .7"', OVERRIDE
    ),
    "override of a pair": box_on_a_floor(
        contact=pair('margin=".01" friction=".1 .1"'), options='o_margin=".04" o_friction=".7 .7"', flags=OVERRIDE
    ),
    "override of nothing": box_on_a_floor(box='margin=".03" friction=".2"', flags=OVERRIDE),
    "override without friction": box_on_a_floor(
        'condim="1"', 'condim="1"', "", "", 'o_friction=".7"', OVERRIDE
    ),
    "numbers of an override that is off": box_on_a_floor(options='o_margin=".04" o_friction=".7"'),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_friction_and_margin_are_those_of_mujoco(name):
    text = MODELS[name]
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[2] -= 0.001
    mujoco.mj_forward(model, data)
    (found,) = loaded(text).contact_pairs
    contact = data.contact[0]
    assert found.law.margin == pytest.approx(contact.includemargin, abs=1e-15)
    assert found.law.friction == (contact.friction[0] if contact.dim > 1 else 0.0)


def test_a_box_rests_where_mujoco_has_it():
    text = box_on_a_floor(floor='margin=".01"', box='margin=".03" gap=".02"')
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for _ in range(500):
        mujoco.mj_step(model, data)
    q, _ = lw.rollout(loaded(text), None, None, None, None, 500, "semi_implicit", final_only=True)
    assert q[6] == pytest.approx(data.qpos[2], abs=1e-3) and q[6] > 0.135


def test_an_override_holds_for_contacts_that_are_added_too():
    mech = loaded(box_on_a_floor(box='friction=".2"', options='o_friction=".7"', flags=OVERRIDE))
    assert {shape.friction for shape in mech.shapes} == {0.7}


# -- between links ------------------------------------------------------------------------------------


def chain(flags="", contact="", kinds=("capsule", "capsule", "capsule", "capsule"), masks=("", "", "", "")):
    """Links one after the other, all within reach of each other, each with a geom of its name."""
    inside = ""
    for number in reversed(range(len(kinds))):
        size = {"capsule": ".05 .1", "cylinder": ".05 .1", "box": ".05 .05 .1", "sphere": ".05"}[kinds[number]]
        inside = f"""<body name="l{number}" pos=".1 0 0"><joint name="j{number}" axis="0 1 0"/>
          <geom name="g{number}" type="{kinds[number]}" size="{size}" {masks[number]}/>{inside}</body>"""
    return f"<mujoco><option>{flags}</option><worldbody>{inside}</worldbody><contact>{contact}</contact></mujoco>"


def pairs_of_mujoco(text):
    """Names of all geoms that MuJoCo lets touch, found by margins that reach everywhere."""
    model = mujoco.MjModel.from_xml_string(text)
    model.geom_margin[:] = 100.0
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_collision(model, data)
    return {frozenset(model.geom(int(g)).name for g in one.geom) for one in data.contact[: data.ncon]}


@pytest.mark.parametrize(
    "text",
    [
        chain(),
        chain('<flag filterparent="disable"/>'),
        chain(contact='<exclude body1="l0" body2="l2"/>'),
        chain('<flag filterparent="disable"/>', '<exclude body1="l0" body2="l1"/><exclude body1="l3" body2="l1"/>'),
        chain(masks=("", "", 'contype="2" conaffinity="2"', 'contype="2"')),
        chain(kinds=("capsule", "sphere", "box", "sphere")),
    ],
)
def test_pairs_between_links_are_those_of_mujoco(text):
    mech, expected = loaded(text), pairs_of_mujoco(text)
    assert {frozenset(names) for names in mech.contact.pairs_between_links} == expected and expected
    assert len(mech.with_contact(*mech.contact.pairs_between_links).contact_pairs) == len(expected)


def test_filters_of_links_are_written_again(tmp_path):
    text = chain('<flag filterparent="disable"/>', '<exclude body1="l0" body2="l2"/>')
    mech = loaded(text)
    mech.save(tmp_path / "again.xml")
    again = loaded(tmp_path / "again.xml")
    assert again.contact.pairs_between_links == mech.contact.pairs_between_links
    assert pairs_of_mujoco((tmp_path / "again.xml").read_text()) == pairs_of_mujoco(text)
    arm = lw.mechanisms.planar_arm(2)
    both = arm.with_mechanism(mech, arm.link_names[-1], prefix="b_")
    assert ("b_g0", "b_g2") not in both.contact.pairs_between_links and (
        "b_g0",
        "b_g1",
    ) in both.contact.pairs_between_links


@pytest.mark.parametrize("kinds", [*itertools.product(["capsule", "cylinder", "box"], repeat=2)])
def test_what_is_advised_about_contact_between_links_can_be_done(kinds):
    mech = loaded(chain('<flag filterparent="disable"/>', kinds=kinds))
    notes = [note for note in mech.notes if note.what.endswith("with contact between links")]
    assert sum(note.count for note in notes) == 2
    for note in notes:
        assert ("pairs_between_links" in note.advice) == bool(mech.contact.pairs_between_links)
        if not mech.contact.pairs_between_links:
            kind = note.what.split()[0]
            (other,) = {*kinds} - {kind} or {kind}
            assert f"it passes through what it meets on other moving links ({other})" in note.advice
    if mech.contact.pairs_between_links:
        assert mech.with_contact(*mech.contact.pairs_between_links).contact_pairs


def test_parents_and_children_are_noted_where_they_touch():
    assert "between links" in str(loaded(chain('<flag filterparent="disable"/>', kinds=("capsule", "sphere"))).notes)
    assert not loaded(chain(kinds=("capsule", "sphere"))).notes


# -- what does not act --------------------------------------------------------------------------------

SURFACE = 'surfacevel="1 0 0 0 0 0"'
NOTED = {
    "conveyor": (box_on_a_floor(SURFACE), "1 geom with surfacevel", "wrenches"),
    "conveyors of a class": (
        box_on_a_floor(head=f"<default><geom {SURFACE}/></default>"),
        "2 geoms with surfacevel",
        "wrenches",
    ),
    "glue": (box_on_a_floor(box='adhesion="3"'), "1 geom with adhesion", "never pull"),
    "glue of a pair": (box_on_a_floor(contact=pair('adhesion="3"')), "1 contact pair with adhesion", "never pull"),
    "bouncy": (box_on_a_floor(box='solref="-1000 -1"'), "1 geom with solref", "dissipation=0 for what bounces"),
    "soft class": (
        box_on_a_floor(head='<default><geom solref=".5" solimp=".1"/></default>'),
        "2 geoms with solref and solimp",
        "stiffness",
    ),
    "soft pair": (box_on_a_floor(contact=pair('solref=".5 1"')), "1 contact pair with solref", "stiffness"),
    "pair with friction of its own": (
        box_on_a_floor(contact=pair('solreffriction=".5 1"')),
        "1 contact pair with solreffriction",
        "stiffness",
    ),
    "skate": (
        box_on_a_floor(contact=pair('friction="1 .1"')),
        "1 contact pair with anisotropic friction",
        "all directions",
    ),
    "half a friction": (
        box_on_a_floor(contact=pair('friction=".2"')),
        "1 contact pair with anisotropic friction",
        "is 1 in the format",
    ),
    "pair that spins": (box_on_a_floor(contact=pair('condim="4"')), "1 contact pair with torsional friction", "alone"),
    "override": (
        box_on_a_floor(box='solref=".1 1"', options='o_solref=".5 1" o_friction=".7"', flags=OVERRIDE),
        "1 override of contacts with o_solref, 1 override of contacts with anisotropic friction",
        "stiffness",
    ),
    "deep": (box_on_a_floor(box='margin="-.01"'), "1 geom with a negative margin", "as soon as they touch"),
}


@pytest.mark.parametrize("name", NOTED)
def test_what_of_contact_does_not_act_is_named(name):
    text, counted, advice = NOTED[name]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mech = lw.load(text)
    (warning,) = told
    assert f"not acting: {counted};" in str(warning.message)
    assert any(advice in note.advice for note in mech.notes)
    mujoco.MjModel.from_xml_string(text)


@pytest.mark.parametrize(
    "text",
    [
        box_on_a_floor(box='solref=".02 1" solimp=".9 .95 .001 .5 2" surfacevel="0 0 0 0 0 0" adhesion="0"'),
        box_on_a_floor(box='solref=".1 1"', flags=OVERRIDE),
        box_on_a_floor(contact=pair('solref="0.02" friction=".3 .3 .1" solreffriction="0 0"')),
        box_on_a_floor(box='solref=".1 1" contype="0" conaffinity="0"'),
    ],
)
def test_what_is_as_by_default_or_touches_nothing_is_not_named(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not lw.load(text).notes
