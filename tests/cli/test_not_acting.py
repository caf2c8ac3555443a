"""What of a file does not act, as the command line tells it."""

import json

import pytest

from linkwise.cli import main

CART = """<mujoco model="cart"><worldbody><geom type="plane" size="1 1 1"/>
  <body name="a" pos="0 0 1"><freejoint name="f"/><geom size="0.1"/>
  <body name="b"><joint name="j" damping="1"/><geom size="0.1" pos="0.3 0 0"/></body></body></worldbody>
  <actuator><position joint="j" kp="5"/><muscle joint="j"/></actuator>
  <keyframe><key name="up" qpos="0 0 3 1 0 0 0 0.5"/></keyframe></mujoco>"""


@pytest.fixture
def cart(here):
    (here / "cart.xml").write_text(CART)
    return "cart.xml"


def test_info_lists_what_acts_and_what_does_not(run, cart):
    text = run("info", cart)
    assert "position_j  joint j  5 u - 5 l                        free" in text
    section = text[text.index("acting in simulate, rollout and linearize") :]
    assert "damping: j" in section and "actuators: position_j" in section and "warnings" not in section
    assert "1 muscle actuator (cart.xml:4 <muscle>): does not act" in section[section.index("not acting") :]
    facts = json.loads(run("info", cart, "--json"))
    assert [(note["what"], note["count"]) for note in facts["not_acting"]] == [("muscle actuator", 1)]
    assert facts["acting"]["damping"] == ["j"] and facts["actuators"][0]["name"] == "position_j"


@pytest.mark.parametrize(
    "command", [("simulate", "--duration", "0.01"), ("linearize", "--gravity", "0", "0", "0")], ids=lambda c: c[0]
)
def test_results_list_them_too(cart, command, capsys):
    assert main([command[0], cart, *command[1:]]) == 0
    out, err = capsys.readouterr()
    assert "actuators: position_j" in out[out.index("\nacting") :]
    assert "1 muscle actuator" in out[out.index("of the file, not acting") :]
    assert "not acting" not in err


def test_other_commands_warn_in_one_line(cart, capsys):
    assert main(["export", cart, "mass_matrix", "-o", "m.c"]) == 0
    assert capsys.readouterr().err == (
        "linkwise: warning: not acting: 1 muscle actuator (linkwise info says where and what to do)\n"
    )


def test_control_inputs(run, cart):
    """A servo at j; one number for all actuators, or by name."""
    ends = [
        json.loads(run("simulate", cart, "--duration", "0.5", "--json", *given))["end"]["q"][-1]
        for given in ((), ("--ctrl", "0.4"), ("--ctrl", "position_j=0.4"), ("--ctrl", "0.4", "--acting", "damping"))
        if given[-1:] != ("damping",)
    ]
    assert abs(ends[0]) < 0.05 and ends[1] == ends[2] > 0.2
    for given, message in (
        ("position_k=1", "has no actuator 'position_k': its actuators are position_j"),
        ("1,2", "has 1 actuators: position_j"),
        ("x", "'x' is no number"),
    ):
        assert message in run("simulate", cart, "--duration", "0.1", "--ctrl", given, fails=True)


@pytest.mark.parametrize(("start", "height", "angle"), [((), 1.0, 0.0), (("--start", "up"), 3.0, 0.5)])
def test_motions_start_where_the_file_does_or_from_a_posture(run, cart, start, height, angle):
    facts = json.loads(run("simulate", cart, "--duration", "0.01", "--json", *start))
    assert facts["start"]["q"] == [1, 0, 0, 0, 0, 0, height, angle]
    assert json.loads(run("info", cart, "--json"))["postures"] == {"up": [1, 0, 0, 0, 0, 0, 3, 0.5]}


def test_contact_is_told_and_a_floor_can_be_put_under_a_robot(run, cart, here):
    text = run("info", cart)
    assert "world_geom0 (plane on ground): 2 shapes in 2 points, friction 1" in text
    facts = json.loads(run("info", cart, "--json"))["contacts"]
    assert [one["shapes"] for one in facts] == [["a_geom0", "world_geom0"], ["b_geom0", "world_geom0"]]
    assert all(one["acts"] and one["stiffness"] > 0.0 for one in facts)
    (here / "ball.urdf").write_text(
        '<robot name="ball"><link name="ball"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/>'
        '</inertial><collision><geometry><sphere radius="0.1"/></geometry></collision></link></robot>'
    )
    options = ("--floating-base", "--ground", "-1")
    assert "floor (plane on ground): 1 shape in 1 point" in run("info", "ball.urdf", *options)
    facts = json.loads(run("simulate", "ball.urdf", *options, "--duration", "2", "--json"))
    assert facts["end"]["q"][6] == pytest.approx(-0.9, abs=1e-3)
