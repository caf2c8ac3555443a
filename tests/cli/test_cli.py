"""The commands as a shell sees them: exit codes, stdout, stderr, pipes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main

FORWARD = "(I - H @ psi @ K).T @ D.inv @ (I - H @ psi @ K) @ T"
URDF = """<robot name="gripper">
  <link name="base"/>
  <link name="arm"><inertial><origin xyz="0 0 0.2"/><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="slide"><inertial><mass value="0.5"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tool"/>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="2.5" velocity="3" effort="40"/></joint>
  <joint name="reach" type="prismatic"><parent link="arm"/><child link="slide"/><axis xyz="0 0 -1"/>
    <limit lower="0" upper="0.3" velocity="1" effort="9"/></joint>
  <joint name="flange" type="fixed"><parent link="slide"/><child link="tool"/></joint>
</robot>"""


def linkwise(*arguments: str, **options) -> subprocess.CompletedProcess:
    """Run a command: in this process, which is quicker, or with ``options`` of a process in one of its own."""
    if options:
        command = [sys.executable, "-m", "linkwise", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@pytest.fixture
def urdf(tmp_path) -> str:
    path = tmp_path / "gripper.urdf"
    path.write_text(URDF)
    return str(path)


# -- good input ---------------------------------------------------------------------------------------


def test_info_shows_the_file(urdf):
    run = linkwise("info", urdf)
    assert (run.returncode, run.stderr) == (0, "")
    assert "gripper: 2 moving links, nq = 2, nv = 2, 2.5 kg" in run.stdout
    assert "  `- arm  (turn, revolute)\n     `- slide  (reach, prismatic)\n" in run.stdout
    assert re.search(r"turn +revolute +y +-1.5 .. 2.5 +3 +40\n", run.stdout)
    assert re.search(r"reach +prismatic +-z +0 .. 0.3 +1 +9\n", run.stdout)
    assert re.search(r"arm +2 +\(0, 0, 0.2\) +\(0.1, 0.1, 0.02, 0, 0, 0\)\n", run.stdout)
    assert re.search(r"tool +on slide\n", run.stdout)
    assert "\x1b" not in run.stdout and "warnings" not in run.stdout


def test_info_as_json_holds_the_mechanism():
    run = linkwise("info", "builtin:random_tree:7:4", "--json")
    mech = lw.mechanisms.random_tree(7, 4)
    facts = json.loads(run.stdout, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert (facts["nq"], facts["nv"]) == (mech.nq, mech.nv)
    assert [joint["name"] for joint in facts["joints"]] == list(mech.joint_names)
    np.testing.assert_array_equal([link["inertia"] for link in facts["links"]], mech.parameters.inertias)
    parents = ["ground" if i < 0 else mech.link_names[i] for i in mech.tree.parents]
    assert [joint["parent"] for joint in facts["joints"]] == parents
    assert [joint["q"][0] for joint in facts["joints"]] == [mech.q_index(name).start for name in mech.joint_names]


def test_info_tells_what_is_wrong_with_a_mechanism_but_shows_it(tmp_path):
    path = tmp_path / "massless.urdf"
    path.write_text(URDF.replace('<mass value="0.5"/>', '<mass value="0"/>').replace("0.01", "0"))
    run = linkwise("info", str(path))
    assert run.returncode == 0
    assert "nothing with inertia moves with joint 'reach'" in run.stdout


def test_columns_stand_under_each_other_in_all_scripts_and_have_units(tmp_path, capsys):
    file = tmp_path / "arm.urdf"
    names = ("工具", "hand", "e\u0301")  # two cells a letter, one, and an accent of its own
    links = "".join(
        f'<link name="{name}"/><joint name="j{k}" type="fixed"><parent link="base"/><child link="{name}"/></joint>'
        for k, name in enumerate(names)
    )
    file.write_text(f"""<robot name="r"><link name="base"/>{links}<link name="arm"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="slide" type="prismatic"><parent link="base"/><child link="arm"/><axis xyz="1 0 0"/>
        <limit lower="-1" upper="1" effort="9" velocity="2"/></joint></robot>""")
    assert main(["info", str(file)]) == 0
    text = capsys.readouterr().out
    assert "range (m)  velocity (m/s)  effort (N)" in text and "mass (kg)" in text and "m/s^2" in text
    welded = text.partition("welded frames\n")[2].splitlines()
    cells = {line.split(" on ")[0].strip(): line.partition("on ground")[0] for line in welded}
    assert cells["工具"].count(" ") == cells["hand"].count(" ") == cells["e\u0301"].count(" ") - 3


def test_info_of_a_floating_base(urdf):
    run = linkwise("info", urdf, "--floating-base", "--json")
    assert json.loads(run.stdout)["nv"] == 8


def test_operators_prints_the_plan_and_checks_it():
    run = linkwise("operators", FORWARD, "builtin:stanford_arm", "--joint", "T", "--dense-check")
    assert (run.returncode, run.stderr) == (0, "")
    levels = re.findall(r"^Level (\d), (\w+)", run.stdout, re.MULTILINE)
    assert [int(number) for number, _ in levels] == [1, 2, 3, 4, 5, 6, 7]
    assert re.search(r"1. tip to base: articulated inertias, psi \(\d+ operations\)", run.stdout)
    difference = float(re.search(r"agrees with .* difference (\S+) over", run.stdout)[1])
    assert difference < 1e-12
    assert max(map(len, run.stdout.splitlines())) <= 110


@pytest.mark.parametrize(
    "expression, options",
    [
        ("B('link4').T @ phi.T @ H.T", ["--dtype", "float32"]),
        ("H @ phi @ f + R @ x", ["--link", "f", "--joint", "x", "--target", "numpy"]),
        ("(A('link2').T @ P @ A('link2')).inv", []),
    ],
)
def test_dense_check_of_matrices_vectors_and_inverses(expression, options):
    run = linkwise("operators", expression, "builtin:random_tree:4:0", "--dense-check", *options)
    assert run.returncode == 0, run.stderr
    assert "agrees with the stacked matrices" in run.stdout


def test_time_says_how_it_was_measured():
    run = linkwise("operators", "D", "builtin:planar_arm:2", "--time", "--batch", "500", "--dtype", "float32")
    found = re.search(
        r"time, float32, target cpu, (\d+) threads?: (\S+) ns per state in batches of 500, (\S+) ns", run.stdout
    )
    assert int(found[1]) == lw.codegen.get_num_threads()
    assert 0.0 < float(found[2]) < float(found[3])


def test_source_is_alone_on_stdout_even_with_remarks():
    run = linkwise("operators", "H @ phi @ f", "builtin:chain:2", "--link", "f", "--source", "c", "--dense-check")
    kernel = lw.compile(lw.operators.parse("H @ phi @ f", {"f": lw.operators.link_vector("f")}), lw.mechanisms.chain(2))
    assert run.stdout == kernel.source("c")
    assert run.stderr.startswith("agrees with")
    assert "define void" in linkwise("operators", "D", "builtin:chain:2", "--source", "llvm").stdout
    assert "__global__" in linkwise("operators", "D", "builtin:chain:2", "--source", "cuda").stdout


def test_help_and_version():
    assert "operators" in linkwise().stdout
    assert "--dense-check" in linkwise("operators", "--help").stdout
    assert linkwise("--version").stdout == f"linkwise {lw.__version__}\n"


def test_the_installed_command_is_the_module():
    command = Path(sys.executable).with_name("linkwise")
    if not command.exists():
        pytest.skip("the package is not installed in this environment")
    run = subprocess.run([command, "--version"], capture_output=True, text=True)
    assert run.stdout == f"linkwise {lw.__version__}\n"


# -- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["info"], "Missing argument 'FILE'"),
        (["inof", "x"], "No such command 'inof'"),
        (["info", "nowhere.urdf"], "there is no file nowhere.urdf"),
        (["info", "."], "is a folder"),
        (["info", "<robot/>"], "not its text"),
        (["info", "builtin:pumba560"], "did you mean 'puma560'"),
        (["info", "builtin:chain:x"], "takes numbers, not 'x'"),
        (["info", "builtin:chain:1:2"], "the form is builtin:chain:n"),
        (["info", "builtin:chain:0"], "at least one link"),
        (["info", "builtin:chain:2", "--floating-base"], "--floating-base is for mechanism files"),
        (["operators", "D", "builtin:chain:2", "--dtype", "half"], "'half' is not one of"),
        (["operators", "D", "builtin:chain:2", "--batch", "0"], "--batch"),
        (["operators", "H @ x", "builtin:chain:2"], "--joint x or --link x"),
        (["operators", "H @", "builtin:chain:2"], "no expression"),
        (["operators", "H @ H", "builtin:chain:2"], "link force space"),
        (["operators", "I", "builtin:chain:2"], "on which space I acts: write identity(JOINT), identity(FORCE)"),
        (
            ["operators", "identity(D)", "builtin:chain:2"],
            "takes a space: JOINT, COORDINATE, LOOP, FORCE, MOTION",
        ),
        (["operators", "E_phi.inv", "builtin:chain:2"], "no identity gives the inverse"),
        (["operators", "B('link9').T @ phi.T", "builtin:chain:2"], "did you mean 'link2' or 'link1'"),
        (["operators", "D @ q", "builtin:chain:2", "--joint", "q"], "must not be called 'q'"),
        (["operators", "D @ x", "builtin:chain:2", "--joint", "x", "--link", "x"], "both as"),
        (["operators", "D @ H", "builtin:chain:2", "--joint", "H"], "'H': that is an operator"),
        (
            ["operators", "(H @ phi @ M @ phi.T @ H.T).inv", "builtin:puma560"],
            "write (H @ phi @ M @ phi.T @ H.T + R).inv",
        ),
        (["operators", "phi.T @ gravity()", "builtin:chain:2", "--dense-check"], "biases are beyond it"),
        (["operators", "__import__('os').abort()", "builtin:chain:2"], "only B, A"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, capsys):
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("linkwise: ") and printed.err.count("\n") == 1
    assert message in printed.err


@pytest.mark.parametrize("arguments", [["info", "nowhere.urdf"], ["operators", "H @ H", "builtin:chain:2"]])
def test_the_shell_sees_exit_code_2_and_the_line(arguments, capsys):
    run = linkwise(*arguments)
    main(arguments)
    assert (run.returncode, run.stdout, run.stderr) == (2, "", capsys.readouterr().err)


def test_malformed_files_are_one_line_with_the_place(tmp_path, capsys):
    path = tmp_path / "broken.urdf"
    for text, message in (
        (URDF[:400], "malformed XML"),
        ("", "empty"),
        ("\x00\x01", "not an XML file"),
        ("<a/>", "<a>"),
    ):
        path.write_text(text)
        assert main(["info", str(path)]) == 2
        printed = capsys.readouterr().err
        assert printed.count("\n") == 1 and "broken.urdf" in printed and message in printed


def test_cuda_without_a_gpu_is_one_line():
    run = linkwise("operators", "D", "builtin:chain:2", "--target", "cuda")
    if run.returncode == 0:
        pytest.skip("there is a GPU")
    assert run.returncode == 2 and "target 'cuda' needs" in run.stderr and run.stderr.count("\n") == 1


def test_a_difference_is_exit_code_1(monkeypatch, capsys):
    right = lw.operators.dense
    monkeypatch.setattr(lw.operators, "dense", lambda *arguments: right(*arguments) * (1.0 + 1e-6))
    assert main(["operators", "D", "builtin:chain:2", "--dense-check"]) == 1
    assert "DIFFERS from the stacked matrices" in capsys.readouterr().out


# -- pipes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", "builtin:chain:3"],
        ["operators", "P", "builtin:chain:9", "--source", "c"],
        ["simulate", "builtin:planar_arm:2", "--duration", "1", "-o", "-"],
        ["--help"],
    ],
    ids=" ".join,
)
def test_a_closed_pipe_ends_it_quietly(arguments):
    """Exit code and silence of a tool that the signal SIGPIPE ended."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "linkwise", *arguments]
    run = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(writing)
    assert (run.returncode, run.stderr) == (141, "")


def test_names_that_the_terminal_cannot_show_are_no_error(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(URDF.replace('"arm"', '"arm_φ"'), encoding="utf-8")
    run = linkwise("info", str(path), env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert run.returncode == 0, run.stderr
    assert "arm_? " in run.stdout


# -- proofs -------------------------------------------------------------------------------------------


def test_prove_prints_the_chain_or_a_counterexample():
    run = linkwise("prove", "(I - H@psi@K) @ H @ phi @ f", "H @ psi @ f", "--link", "f")
    assert run.returncode == 0 and run.stdout.endswith("proven\n") and "jain1995 (4.10)" in run.stdout
    light = linkwise("prove", "H @ phi @ G", "I + H @ phi @ K")
    assert light.returncode == 0 and light.stdout.endswith("with rotors: H phi G = I + H phi K - R D^-1\n")
    wrong = linkwise("prove", "H @ phi @ G", "I + H @ phi @ K", "--armature")
    assert wrong.returncode == 1 and "does not hold: mechanism 'random_tree" in wrong.stdout
    assert linkwise("prove", "H @ phi @ G", "I + H @ phi @ K", "--no-armature").returncode == 0
    assert linkwise("prove", "H", "phi").returncode == 2


def test_operators_as_written():
    arguments = ("operators", "(I - H@psi@K) @ H @ phi @ f", "builtin:puma560", "--link", "f", "--target", "numpy")
    assert "simplified to H @ psi @ f: 308 operations instead of 350" in linkwise(*arguments).stdout
    assert "simplified" not in linkwise(*arguments, "--as-written").stdout
