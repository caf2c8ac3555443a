"""One second of the usual models of learning beside MuJoCo: what acts is the same, and what gives way moves alike."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

mujoco = pytest.importorskip("mujoco")

GYMNASIUM, SUITE = ("gymnasium", "envs/mujoco/assets"), ("dm_control", "suite")
SMALL = [(GYMNASIUM, "inverted_double_pendulum"), (GYMNASIUM, "reacher"), (SUITE, "cartpole"), (GYMNASIUM, "swimmer")]
LARGE = [
    *((GYMNASIUM, name) for name in ("ant", "half_cheetah", "hopper", "walker2d", "humanoid", "pusher")),
    *((SUITE, name) for name in ("cheetah", "dog", "fish", "hopper", "walker")),
]
FILES = [*SMALL, *(pytest.param(*one, marks=pytest.mark.slow) for one in LARGE)]
OFF = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS


def both(package: tuple[str, str], name: str):
    """The model of MuJoCo, and the mechanism."""
    found = find_spec(package[0])
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{package[0]} is not installed")
    file = Path(found.submodule_search_locations[0]) / package[1] / f"{name}.xml"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mujoco.MjModel.from_xml_path(str(file)), lw.load(file)


def moved(model, q0, ctrl, steps: int) -> np.ndarray:
    """(steps + 1, nq) of MuJoCo."""
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = q0, ctrl
    found = [data.qpos.copy()]
    for _ in range(steps):
        mujoco.mj_step(model, data)
        found.append(data.qpos.copy())
    return np.array(found)


@pytest.mark.parametrize("package, name", FILES)
def test_what_acts_moves_them_as_in_mujoco(package, name):
    """Springs, dampers, actuators, tendons and fluids, in steps that take damping implicitly in both."""
    model, mech = both(package, name)
    model.opt.integrator, model.opt.disableflags = mujoco.mjtIntegrator.mjINT_EULER, model.opt.disableflags | int(OFF)
    off = {kind: False for kind in ("contact", "limits", "friction") if kind in mech.forces.active}
    there, steps = lw.interop.to_mujoco(mech, model), round(1.0 / model.opt.timestep)
    assert mech.metadata.timestep == model.opt.timestep and mech.n_ctrl == model.nu
    ctrl = np.random.default_rng(0).uniform(-0.3, 0.3, model.nu)
    found, _ = lw.rollout(mech.with_acting(**off), None, None, None, None, steps, "semi_implicit", ctrl=ctrl)
    expected = moved(model, there.q(mech.initial), ctrl, steps)
    assert np.ptp(expected, axis=0).max() > 0.1
    np.testing.assert_allclose(there.q(found), expected, atol=1e-8)


@pytest.mark.slow
def test_a_humanoid_falls_as_in_mujoco():
    """From its pose within the limits, on which the file puts its knees beyond: it lands on its feet and collapses."""
    model, mech = both(GYMNASIUM, "humanoid")
    start, steps = np.clip(mech.initial, mech.limits.lower, mech.limits.upper), round(0.6 / model.opt.timestep)
    expected = moved(model, lw.interop.to_mujoco(mech, model).q(start), np.zeros(model.nu), steps)[:, 2]
    found, _ = lw.rollout(mech, start, None, None, None, steps, "semi_implicit")
    np.testing.assert_allclose(found[:, 6], expected, atol=0.03)
    assert expected[-1] < 1.1
