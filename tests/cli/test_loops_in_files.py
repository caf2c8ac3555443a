"""What ``linkwise info`` tells of loops, couplings and independent coordinates of a file."""

import json

import pytest

from linkwise.cli import main

BELT = """<robot name="belt"><link name="base"/>
  <link name="thigh"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <link name="shank"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <link name="rotor"><inertial><mass value="0"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <joint name="hip" type="continuous"><parent link="base"/><child link="thigh"/></joint>
  <joint name="knee" type="continuous"><parent link="thigh"/><child link="shank"/></joint>
  <joint name="motor" type="continuous" independent="false"><parent link="base"/><child link="rotor"/></joint>
  <coupling name="drive" type="rolling"><predecessor link="shank"/><successor link="rotor"/>
    <ratio value="9"/></coupling>
</robot>"""


@pytest.fixture
def belt(tmp_path):
    path = tmp_path / "belt.urdf"
    path.write_text(BELT)
    return str(path)


def test_as_text(belt, capsys):
    assert main(["info", belt]) == 0
    text = capsys.readouterr().out
    assert "nq = 3, nv = 3, 1 coupling, 2 kg moving" in text
    assert "couplings\n  drive  9 hip + 9 knee - motor = 0" in text
    assert "meant to be independent\n  hip, knee" in text and "\nloops" not in text


def test_as_json(belt, capsys):
    assert main(["info", belt, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    ratios = {"hip": 9.0, "knee": 9.0, "motor": -1.0}
    assert facts["couplings"] == [{"name": "drive", "ratios": ratios, "offset": 0.0}] and facts["loops"] == []
    assert facts["independent"] == ["hip", "knee"]
