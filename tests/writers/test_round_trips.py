"""Mechanisms, written as URDF and MJCF and read again, have the same dynamics."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from tests.writers.round_trip import TEXTS, again, assert_same_dynamics, assert_same_numbers

SIZES = {"chain": (4,), "planar_arm": (3,), "random_tree": (7, 3)}
SLOW = (
    "humanoid",
    "quadruped",
    "stewart_platform",
    "delta_robot",
    "four_bar_branches",
    "bricard",
    "n_four_bar",
    "loader",
    "five_bar",
    "parallel_four_bar_robot",
)
BUILT_IN = [
    pytest.param(name, id=name, marks=pytest.mark.slow if name in SLOW else ()) for name in lw.mechanisms.__all__
]
KINDS = ("revolute", "prismatic", "helical", "spherical", "universal", "cylindrical", "planar", "pin_in_slot")


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_mechanisms(name, form):
    if name == "random_tree":  # joints that float on moving links are not in MJCF
        mech = lw.mechanisms.random_tree(7, 3, joints=KINDS)
    else:
        mech = lw.mechanisms.maker(name)(*SIZES.get(name, ()))
    if mech.constraints.is_nonholonomic:
        with pytest.raises(lw.MechanismError, match="save mech.spanning_tree"):
            again(mech, form)
        mech = mech.spanning_tree
    read = again(mech, form)
    assert_same_dynamics(mech, read)
    np.testing.assert_array_equal(read.gravity, mech.gravity)
    if mech.loops:
        rng = np.random.default_rng(0)
        q = lw.constraints.assemble(mech, mech.initial)
        q, v = lw.constraints.project(mech, q, rng.normal(size=mech.nv))
        tau = rng.normal(size=mech.nv)
        there = lw.interop.to_mechanism(mech, read)
        expected = lw.forward_dynamics(mech, q, v, tau)
        found = lw.forward_dynamics(read, *there.state(q, v), there.tau(q, tau))
        found = there.inverse.a(*there.state(q, v), found)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_all_kinds_of_joints_on_a_floating_base(seed, form):
    mech = lw.mechanisms.random_tree(8, seed, joints=KINDS, floating_base=True)
    assert_same_dynamics(mech, again(mech, form))


def mjcf_files() -> list:
    found = []
    for package, within in (("gymnasium", "envs/mujoco/assets"), ("dm_control", "."), ("mujoco", "testdata")):
        spec = find_spec(package)
        home = Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None
        for file in sorted((home / within).rglob("*.xml")) if home else ():
            quick = str(file).endswith(("assets/ant.xml", "suite/manipulator.xml", "suite/cheetah.xml"))
            found.append(pytest.param(file, id=f"{package}/{file.name}", marks=() if quick else pytest.mark.slow))
    return found


def loaded(file: Path, **options) -> lw.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            mech = lw.load(file, **options)
        except lw.MechanismError as error:
            pytest.skip(f"not read: {error}")
    if mech.nv == 0 or mech.nv > 60:
        pytest.skip(f"nv = {mech.nv}")
    return mech


@pytest.mark.parametrize("file", mjcf_files())
def test_mjcf_files(file):
    """Files in the wild keep all that is read of them: actuators, tendons, contacts, keyframes, where they start."""
    mech = loaded(file)
    read = again(mech, "mjcf")
    assert_same_dynamics(mech, read)
    assert_same_numbers(mech, read)
    assert set(read.link_names) == set(mech.link_names)
    assert {shape.name for shape in read.shapes} == {shape.name for shape in mech.shapes}
    laws, expected = ({pair.name: pair.law for pair in m.contact_pairs} for m in (read, mech))
    assert laws.keys() == expected.keys()
    for name, law in expected.items():
        np.testing.assert_allclose(list(vars(laws[name]).values()), list(vars(law).values()), rtol=1e-9, err_msg=name)
    there = lw.interop.to_mechanism(mech, read)
    np.testing.assert_allclose(there.q(mech.initial), read.initial, atol=1e-12)
    for name, key in mech.metadata.keyframes.items():
        found = read.metadata.keyframes[name]
        np.testing.assert_allclose(found.q, there.q(key.q), atol=1e-12)
        np.testing.assert_allclose(found.v, there.v(key.q, key.v), atol=1e-12)
        np.testing.assert_array_equal(found.ctrl, key.ctrl)


def urdf_files() -> list:
    pytest.importorskip("pinocchio")
    from tests.peers.robots import READABLE

    quick = ("panda.urdf", "solo12.urdf")
    return [pytest.param(f, id=f.name, marks=() if f.name in quick else pytest.mark.slow) for f in READABLE]


@pytest.mark.parametrize("file", urdf_files())
def test_urdf_files(file):
    """Both formats; MJCF says all but velocity limits of them; Pinocchio reads what was written as we do."""
    import pinocchio as pin

    mech = loaded(file)
    for form in TEXTS:
        read = again(mech, form)
        assert_same_dynamics(mech, read)
        if form == "urdf":
            assert read.joint_names == mech.joint_names and tuple(read.frames) == tuple(mech.frames)
            assert_same_numbers(mech, read)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        model = pin.buildModelFromXML(lw.interop.urdf_text(mech))
    there, data = lw.interop.to_pinocchio(mech, model), model.createData()
    q, v = lw.random_state(mech, np.random.default_rng(0))
    found = there.inverse.tau(there.q(q), pin.rnea(model, data, there.q(q), there.v(q, v), there.v(q, v)))
    expected = lw.compile("inverse_dynamics", mech, target="numpy")(q, v, v)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max()))
