"""Fluids, written as MJCF and read again, act the same."""

import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

WET = """<mujoco><option density="100" viscosity="3" wind="1 2 3"/><worldbody><body name="b"><freejoint/>
  <geom type="ellipsoid" size=".1 .2 .3" pos=".1 0 .2" euler="20 30 40" density="10" {fluid}/>
  <body name="c" pos=".3 0 0"><joint name="j" axis="0 1 0" pos=".1 0 0"/>
  <geom type="capsule" size=".1 .3" euler="10 0 0" density="9" {fluid}/></body></body></worldbody></mujoco>"""
ELLIPSOIDS = 'fluidshape="ellipsoid" fluidcoef="0.6 0.3 1.2 0.9 0.8"'


def saved_again(mech, file) -> lw.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.files.OmissionWarning)
        mech.save(file)
        return lw.load(file)


def parts(mech):
    return [one for one in mech.elements if isinstance(one, lw.forces.FluidForce)]


@pytest.mark.skipif(find_spec("gymnasium") is None, reason="a file of gymnasium")
def test_the_swimmer_saved_and_loaded_swims_the_same(tmp_path):
    home = Path(find_spec("gymnasium").origin).parent
    mech = lw.load(home / "envs/mujoco/assets/swimmer.xml")
    read = saved_again(mech, tmp_path / "swimmer.xml")
    assert read.forces.active["fluid"] == mech.forces.active["fluid"] == ("torso", "mid", "back")
    rng = np.random.default_rng(0)
    v, ctrl = rng.normal(size=mech.nv), rng.uniform(-1, 1, mech.n_ctrl)
    swum = [lw.rollout(one, mech.initial, v, None, 0.005, 100, ctrl=ctrl, final_only=True) for one in (mech, read)]
    np.testing.assert_allclose(np.hstack(swum[1]), np.hstack(swum[0]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("fluid", ["", ELLIPSOIDS], ids=["boxes", "ellipsoids"])
def test_fluid_forces_are_those_that_mujoco_has_of_the_written_file(fluid, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    mech, file = lw.load(WET.format(fluid=fluid)), tmp_path / "wet.xml"
    read = saved_again(mech, file)
    models = [mujoco.MjModel.from_xml_string(WET.format(fluid=fluid)), mujoco.MjModel.from_xml_path(str(file))]
    rng, found = np.random.default_rng(1), []
    q, v = rng.normal(size=models[0].nq), rng.normal(size=models[0].nv)
    for model in models:
        data = mujoco.MjData(model)
        data.qpos, data.qvel = q, v
        mujoco.mj_forward(model, data)
        found.append(data.qfrc_passive.copy())
    assert np.abs(found[0]).max() > 1.0
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
    for one, other in zip(parts(mech), parts(read), strict=True):
        assert (one.shape, one.wind, one.coefficients) == (other.shape, other.wind, other.coefficients)
        for name in ("size", "axes"):
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda first, second: (first,), "fluid that is not around all bodies of b"),
        (lambda first, second: (first, replace(second, density=7.0)), "fluid that differs from body to body of b, c"),
        (lambda first, second: (first, replace(second, size=(1.0, 1.0, 1.0))), "boxes that are not those"),
    ],
)
def test_fluids_that_mjcf_has_no_words_for_are_told(change, why):
    mech = lw.load(WET.format(fluid=""))
    others = tuple(one for one in mech.elements if not isinstance(one, lw.forces.FluidForce))
    with pytest.warns(lw.files.OmissionWarning, match=why):
        text = lw.interop.mjcf_text(replace(mech, elements=(*others, *change(*parts(mech)))))
    assert "density" not in text


def test_ellipsoids_without_a_shape_become_geoms_of_their_own():
    mech = lw.mechanisms.chain(1)
    fluid = lw.forces.FluidForce(mech.bodies[0].link, "ellipsoid", (0.1, 0.2, 0.3), 1000.0, position=(0.0, 0.1, 0.2))
    read = lw.load(lw.interop.mjcf_text(replace(mech, elements=(*mech.elements, fluid))))
    assert parts(read) == [fluid]
