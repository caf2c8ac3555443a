"""Types as users' tools see them: a script is checked as mypy and pyright check it, and names are complete."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import linkwise as lw
from tools.stub import STUB, text

ROOT = Path(lw.__file__).parents[1]
ARRAY = "ndarray"
SCRIPT = """
import numpy as np
import linkwise as lw
from linkwise import operators as op

arm = lw.mechanisms.puma560()
five = lw.mechanisms.five_bar()
q, v = lw.random_state(arm, np.random.default_rng(0), (3,))
tau = lw.inverse_dynamics(arm, q, v, v)
kernel = lw.compile("mass_matrix", arm)
motion = lw.simulate(arm, q[0], v[0], 0.1)
model = lw.linearize(arm, q[0])
"""
#: Expressions of a user's, each with what its inferred type must contain.
EXPECTED = {
    "q": ARRAY,
    "tau": ARRAY,
    "lw.forward_dynamics(arm, q, v, tau)": ARRAY,
    "lw.mass_matrix(arm, q)": ARRAY,
    "lw.mass_matrix_inverse(arm, q)": ARRAY,
    "lw.bias_force(arm, q, v)": ARRAY,
    "lw.gravity_force(arm, q)": ARRAY,
    "lw.coriolis_matrix(arm, q, v)": ARRAY,
    "lw.link_poses(arm, q)": ARRAY,
    "lw.link_velocities(arm, q, v)": ARRAY,
    "lw.frame_pose(arm, q, 'link6')": ARRAY,
    "lw.jacobian(arm, q, 'link6')": ARRAY,
    "lw.control.operational_inertia(arm, q, 'link6')": ARRAY,
    "lw.kinetic_energy(arm, q, v)": ARRAY,
    "lw.potential_energy(arm, q)": ARRAY,
    "lw.center_of_mass(arm, q)": ARRAY,
    "lw.momentum(arm, q, v)": ARRAY,
    "lw.integrate(arm, q, v, 0.1)": ARRAY,
    "lw.difference(arm, q, q)": ARRAY,
    "lw.neutral(arm)": ARRAY,
    "lw.joint_wrenches(arm, q, v, v)": ARRAY,
    "lw.estimation.regressor(arm, q, v, v)": ARRAY,
    "lw.inverse_dynamics_derivatives(arm, q, v, v)[0]": ARRAY,
    "lw.rollout(arm, q, v, tau, 0.001, 5)[0]": ARRAY,
    "lw.constraints.assemble(five, [2.1, 1.9, 1.5, 1.9])": ARRAY,
    "lw.constraints.constraint_jacobian(five, q)": ARRAY,
    "lw.forward_dynamics(five, q, v, tau)": ARRAY,
    "lw.joint_wrenches(five, q, v, tau, active=[True])": ARRAY,
    "lw.contact.impact(five, q, v)": ARRAY,
    "lw.formulations.diagonal.rates(arm, q, v)": ARRAY,
    "lw.formulations.denoc.udu(arm, q)[0]": ARRAY,
    "op.dense(op.H, arm, q)": ARRAY,
    "kernel(q)": ARRAY,
    "motion.q": ARRAY,
    "model.A": ARRAY,
    "arm.gravity": ARRAY,
    "arm.limits.lower": ARRAY,
    "arm": "Mechanism",
    "kernel": "Kernel",
    "motion": "Trajectory",
    "model": "StateSpace",
    "op.H @ op.phi": "Expression",
    "lw.Builder()": "Builder",
}


@pytest.fixture(scope="module")
def script(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("user") / "script.py"
    path.write_text(SCRIPT + "".join(f"reveal_type({expression})\n" for expression in EXPECTED), encoding="utf-8")
    return path


def revealed(command: list[str], script: Path, pattern: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", *command, str(script)],
        capture_output=True,
        text=True,
        cwd=script.parent,
        env={**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)},
    )
    errors = [line for line in done.stdout.splitlines() if " error: " in line]
    assert not errors, done.stdout
    return re.findall(pattern, done.stdout)


def check(types: list[str]) -> None:
    assert len(types) == len(EXPECTED)
    for (expression, wanted), found in zip(EXPECTED.items(), types, strict=True):
        assert wanted in found and found != "Any" and "dtype[Any]" not in found and "Unknown" not in found, expression


def test_mypy_infers_arrays(script):
    pytest.importorskip("mypy")
    check(revealed(["mypy", "--no-incremental"], script, r'Revealed type is "(.*)"'))


@pytest.mark.slow
def test_pyright_infers_arrays(script):
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    check(revealed(["pyright"], script, r'Type of ".*?" is "(.*)"'))


def test_the_stub_is_current_and_complete():
    """Completion in editors, and type checkers, see every public name."""
    assert STUB.read_text(encoding="utf-8") == text(), "run python -m tools.stub"
    assert (STUB.parent / "py.typed").exists()
    named = set(re.findall(r" as (\w+)$", text(), re.MULTILINE))
    assert named | {"__version__"} == set(lw.__all__)
