"""Rollouts whose steps are a loop over stages, as on GPUs where code is long: emitted CUDA C on the host's compiler
against straight-line steps on the CPU."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler import pipeline
from linkwise.compiler.targets import cuda_spills
from linkwise.mechanics.algorithms.integration import METHODS, Tableau
from tests.compiler.targets import cuda_on_host


@pytest.fixture
def cupy_on_host(monkeypatch, tmp_path):
    """Where all code is long."""
    short = dataclasses.replace(pipeline._RUNNING["cuda"], most_operations=0)
    monkeypatch.setitem(pipeline._RUNNING, "cuda", short)
    return cuda_on_host.install(monkeypatch, tmp_path)


def agree(found, expected, tolerance):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("near", [False, True], ids=["in registers", "waiting"])
def test_rotations_feedback_and_parameters(cupy_on_host, monkeypatch, near):
    """Joints whose steps do not commute, forces of the start of each step, masses that are inputs."""
    if near:
        budget = cuda_spills.Budget(cuda_spills.USUAL, {"double": 6, "float": 6}, 32 * 8 * 60, math.inf)
        monkeypatch.setattr(cuda_spills, "BUDGETS", (budget,))
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
    agree(found, lw.rollout(mech, q, v, tau, 0.01, 6, **options), 1e-12)


def test_activations_and_the_last_state(cupy_on_host):
    """What changes in time beside q and v has slopes too."""
    drive = lw.Actuator("drive", "joint1", dynamics="filter", time_constant=0.2)
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
