"""Rollouts whose steps are a loop over stages, as on GPUs where code is long: emitted CUDA C on the host's compiler
against straight-line steps on the CPU."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler import known_targets
from linkwise.compiler.targets import cuda_angles, cuda_spills
from linkwise.mechanics.algorithms.integration import METHODS, Tableau
from tests.compiler.targets import cuda_on_host


@pytest.fixture
def cupy_on_host(monkeypatch, tmp_path):
    """Where all code is long."""
    short = replace(known_targets._RUNNING["cuda"], most_operations=0)
    monkeypatch.setitem(known_targets._RUNNING, "cuda", short)
    return cuda_on_host.install(monkeypatch, tmp_path)


def agree(found, expected, tolerance):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("how", ["in registers", "waiting", "sines by a loop"])
def test_rotations_feedback_and_parameters(cupy_on_host, monkeypatch, how):
    """Joints whose steps do not commute, forces of the start of each step, masses that are inputs."""
    near = how != "in registers"
    if how == "sines by a loop":
        monkeypatch.setattr(cuda_spills, "CACHED", 0)
        monkeypatch.setattr(cuda_angles, "LEAST", 1)
    if near:
        budget = cuda_spills.Budget(cuda_spills.USUAL, {"double": 6, "float": 6}, 32 * 8 * 60, math.inf)
        monkeypatch.setattr(cuda_spills, "BUDGETS", (budget,))
        monkeypatch.setattr(cuda_spills, "IN_LOOPS", budget)
        monkeypatch.setattr(cuda_spills, "FEW_BYTES", 0)
    mech, rng = lw.mechanisms.random_tree(2, 3, ["spherical", "revolute"], floating_base=True), np.random.default_rng(3)
    q, v = lw.random_state(mech, rng, (37,))
    tau = rng.normal(size=(37, 6, mech.nv))
    feedback = {"target": q[:, None], "kp": 3.0, "kd": np.ones((37, mech.nv))}
    masses = {"mass": rng.uniform(1.0, 2.0, (37, mech.n_links))}
    options = {"feedback": feedback, "parameters": masses, "every": 2}
    found = lw.rollout(mech, q, v, tau, 0.01, 6, target="cuda", **options)
    code = cupy_on_host.modules[-1].code
    assert "_t < 4;" in code and all((place in code) == near for place in ("_near[", "_far["))
    assert ("double _sine, _cosine;" in code) == (how == "sines by a loop")
    agree(found, lw.rollout(mech, q, v, tau, 0.01, 6, **options), 1e-12)


def test_activations_and_the_last_state(cupy_on_host):
    """What changes in time beside q and v has slopes too."""
    drive = lw.forces.Actuator("drive", "joint1", dynamics="filter", time_constant=0.2)
    mech, rng = lw.mechanisms.planar_arm(2).with_elements(drive), np.random.default_rng(4)
    q, v = (x.astype("float32") for x in lw.random_state(mech, rng, (5,)))
    options = {"ctrl": np.float32([0.7]), "activation": np.float32([0.1]), "return_activation": True}
    options |= {"final_only": True, "wrenches": rng.normal(size=(mech.n_links, 6)).astype("float32")}
    found = lw.rollout(mech, q, v, None, np.float32(0.01), 6, target="cuda", **options)
    agree(found, lw.rollout(mech, q, v, None, np.float32(0.01), 6, **options), 2e-5)
    assert len(found) == 3 and "_t < 4;" in cupy_on_host.modules[-1].code


def test_methods_whose_stages_need_other_slopes_are_straight(cupy_on_host, monkeypatch):
    kutta = Tableau(stages=((), (0.5,), (-1.0, 2.0)), weights=(1 / 6, 2 / 3, 1 / 6))
    assert kutta.rows is None and METHODS["rk4"].rows.tolist() == [[0, 1 / 6], [0.5, 1 / 3], [0.5, 1 / 3], [1, 1 / 6]]
    mech = lw.mechanisms.planar_arm(2)
    q, v = lw.random_state(mech, np.random.default_rng(0), (3,))
    found = lw.rollout(mech, q, v, None, 0.01, 2, method="semi_implicit", target="cuda")
    assert "_t <" not in cupy_on_host.modules[-1].code
    agree(found, lw.rollout(mech, q, v, None, 0.01, 2, method="semi_implicit"), 1e-12)


@pytest.mark.filterwarnings("ignore:the motion of mechanism .* starts beyond limits")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_limits_and_friction_at_joints(cupy_on_host, dtype):
    """Choices that are one instruction each; states that are no numbers stay so."""
    mech = lw.mechanisms.planar_arm(2).with_limits(
        joint1=lw.Limits(-0.2, 0.3, velocity=2.0), joint2=lw.Limits(effort=1.0)
    )
    mech = replace(mech, bodies=tuple(replace(body, friction=(0.4,)) for body in mech.bodies))
    q, v = (x.astype(dtype) for x in lw.random_state(mech, np.random.default_rng(4), (40,)))
    v[3] = np.nan
    tau, dt = np.full((1, mech.nv), 2.0, dtype), np.asarray(0.002, dtype)
    found = lw.rollout(mech, q, v, tau, dt, 20, target="cuda", final_only=True)
    code = cupy_on_host.modules[-1].code
    assert all(name in code for name in ("_minimum(", "_maximum(", "rsqrt")) and "_t < 4;" in code
    agree(found, lw.rollout(mech, q, v, tau, dt, 20, final_only=True), {"float64": 1e-12, "float32": 2e-4}[dtype])
    assert np.isnan(found[1][3]).all() and np.isfinite(np.delete(found[1], 3, axis=0)).all()
