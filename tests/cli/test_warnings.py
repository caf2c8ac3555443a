"""What commands warn of: one line each on stderr, whatever its category, once."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.cli import main

ARM = """<robot name="arm"><link name="base"/><link name="tip"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/>
<limit lower="1" upper="2" effort="9" velocity="9"/></joint></robot>"""


def lines(capsys) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_a_start_beyond_limits(here, capsys):
    (here / "arm.urdf").write_text(ARM)
    assert main(["simulate", "arm.urdf", "--q", "hinge=0.1", "--duration", "0.1"]) == 0
    (line,) = lines(capsys)
    assert line.startswith("linkwise: warning: ") and "limit" in line and "click" not in line


def test_every_category_is_one_line_and_comes_once(here, capsys, monkeypatch):
    simulate = lw.simulate

    def warning(*arguments, **options):
        for _ in range(3):
            for category in (UserWarning, RuntimeWarning, FutureWarning, lw.motion.LimitWarning, lw.MechanismWarning):
                warnings.warn(f"of {category.__name__},\n   in two lines", category, stacklevel=2)
        return simulate(*arguments, **options)

    monkeypatch.setattr(lw, "simulate", warning)
    command = ["simulate", "builtin:planar_arm:1", "--duration", "0.1"]
    for _ in range(2):  # a second command warns again
        assert main(command) == 0
        names = ("UserWarning", "RuntimeWarning", "FutureWarning", "LimitWarning", "MechanismWarning")
        assert lines(capsys) == [f"linkwise: warning: of {name}, in two lines" for name in names]
    warnings.simplefilter("ignore", FutureWarning)  # as -W ignore::FutureWarning does
    assert main(command) == 0 and not any("FutureWarning" in line for line in lines(capsys))


def test_warnings_are_as_before_after_a_command(here, capsys):
    shown = warnings.showwarning
    main(["info", "builtin:planar_arm:1"])
    assert warnings.showwarning is shown
    with pytest.warns(UserWarning, match="mine"):
        warnings.warn("mine", stacklevel=1)


def test_what_is_warned_of_while_loading_is_told_once(here, capsys):
    """By the reader, and by what is done then."""
    (here / "arm.urdf").write_text(ARM)
    assert (
        main(["trajectory", "arm.urdf", "--q", "hinge=1.5", "--to", "hinge=0.5", "--duration", "1", "-o", "m.csv"]) == 0
    )
    told = [line for line in lines(capsys) if line.startswith("linkwise: warning")]
    assert len(told) == len(set(told)) == 1 and "limit" in told[0]


@pytest.mark.slow
def test_as_a_program(here):
    (here / "arm.urdf").write_text(ARM)
    command = [sys.executable, "-m", "linkwise", "simulate", "arm.urdf", "--q", "hinge=0.1", "--duration", "0.1"]
    here_first = {**os.environ, "PYTHONPATH": str(Path(lw.__file__).parents[1])}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=here_first)
    assert ran.stderr.count("\n") == 1 and ran.stderr.startswith("linkwise: warning: ")


@pytest.mark.parametrize("option", ["--q", "--to", "--target"])
def test_degrees_are_noticed_in_every_option_that_takes_positions(option, run):
    command = ["simulate", "builtin:planar_arm:2", "--duration", "0.1", "--kp", "10", option, "joint1=99"]
    if option == "--to":
        command = ["trajectory", "builtin:planar_arm:2", option, "joint1=99", "--duration", "1"]
    message = run(*command, fails=True)
    assert f"{option}: q.joint1 reaches 99, which looks like degrees; radians are expected: use --degrees" in message
    run(*command, "--trust-units", *(["-o", "m.csv"] if option == "--to" else []))
    run(*command, "--degrees", *(["-o", "m.csv"] if option == "--to" else []))


def test_the_help_names_all_formats(run):
    assert "URDF, SDF, MJCF" in " ".join(run("--help").split())
