"""What of a file does not act, as the command line tells it."""

import json

import pytest

from linkwise.cli import main

CART = """<mujoco model="cart"><worldbody><geom type="plane" size="1 1 1"/>
  <body name="a" pos="0 0 1"><freejoint name="f"/><geom size="0.1"/>
  <body name="b"><joint name="j" damping="1"/><geom size="0.1" pos="0.3 0 0"/></body></body></worldbody>
  <actuator><position joint="j" kp="5"/></actuator>
  <keyframe><key name="up" qpos="0 0 3 1 0 0 0 0.5"/></keyframe></mujoco>"""


@pytest.fixture
def cart(here):
    (here / "cart.xml").write_text(CART)
    return "cart.xml"


def test_info_lists_actuators(run, cart):
    text = run("info", cart)
    section = text[text.index("of the file, not acting") :]
    assert "1 position servo (cart.xml:4 <position>): acting in MuJoCo even where ctrl is 0" in section
    assert "1 joint with damping (j): passive=lw.Passive.of(mech)" in section and "warnings" not in section
    facts = json.loads(run("info", cart, "--json"))
    assert [(note["what"], note["count"]) for note in facts["not_acting"]] == [
        ("position servo", 1),
        ("joint with damping", 1),
    ]


@pytest.mark.parametrize(
    "command", [("simulate", "--duration", "0.01"), ("linearize", "--gravity", "0", "0", "0")], ids=lambda c: c[0]
)
def test_results_list_them_too(cart, command, capsys):
    assert main([command[0], cart, *command[1:]]) == 0
    out, err = capsys.readouterr()
    section = out[out.index("of the file, not acting") :]
    assert "1 position servo" in section and "damping of j" in section
    assert "not acting" not in err


def test_other_commands_warn_in_one_line(cart, capsys):
    assert main(["export", cart, "mass_matrix", "-o", "m.c"]) == 0
    assert capsys.readouterr().err == (
        "linkwise: warning: not acting: 1 position servo (linkwise info says where and what to do)\n"
    )


@pytest.mark.parametrize(("start", "height", "angle"), [((), 1.0, 0.0), (("--start", "up"), 3.0, 0.5)])
def test_motions_start_where_the_file_does_or_from_a_posture(run, cart, start, height, angle):
    facts = json.loads(run("simulate", cart, "--duration", "0.01", "--json", *start))
    assert facts["start"]["q"] == [1, 0, 0, 0, 0, 0, height, angle]
    assert json.loads(run("info", cart, "--json"))["postures"] == {"up": [1, 0, 0, 0, 0, 0, 3, 0.5]}
