"""What acts, file by file: forces of springs, damping, tendons, gravity compensation and actuators, and rates of
activations, against MuJoCo's; damping and motors of URDF files against what their XML says."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ElementTree
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.elements.fluid import added_mass

mujoco = pytest.importorskip("mujoco")
from tests.peers.mujoco_forces import Beside  # noqa: E402

TOLERANCE = 1e-9  # of the largest force
#: Files that differ from MuJoCo, by which of their numbers, and what is named at load.  Of a mesh whose moments are all
#: equal, a cube, the axes are anyone's choice, and the drag of a fluid along them with it.
CAUSES = {"testdata/model.xml": {"actuators": "actearly", "passive": ""}}
QUICK = ("ant.xml", "half_cheetah.xml", "suite/cheetah.xml", "suite/manipulator.xml", "testdata/model.xml", "fish.xml")


def folder(package: str) -> Path | None:
    spec = find_spec(package)
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def mjcf_files() -> list:
    """Every XML file of the packages, those of few degrees of freedom quick."""
    found = []
    for package, within in (("gymnasium", "envs/mujoco/assets"), ("dm_control", "."), ("mujoco", "testdata")):
        home = folder(package)
        for file in sorted((home / within).rglob("*.xml")) if home else ():
            quick = str(file).endswith(QUICK)
            label = f"{package}/{file.relative_to(home)}"
            found.append(pytest.param(file, id=label, marks=() if quick else pytest.mark.slow))
    return found


def beside(file: Path) -> Beside:
    try:
        mujoco.MjModel.from_xml_path(str(file))
    except ValueError as error:
        pytest.skip(f"MuJoCo refuses it: {str(error).splitlines()[0]}")
    return Beside(file)


def with_exact_added_masses(model) -> None:
    """MuJoCo computes those of ellipsoids in a fluid by a quadrature of eight digits, 1e-8 to 4e-4 off."""
    for size, numbers in zip(model.geom_size, model.geom_fluid, strict=True):
        if numbers[0] > 0.0:
            numbers[6:9], numbers[9:12] = added_mass(size.tolist())


def test_added_masses_of_ellipsoids():
    """That of a sphere is half of what it displaces; others within what MuJoCo's quadrature is off."""
    mass, inertia = added_mass([0.1, 0.1, 0.1])
    np.testing.assert_allclose(mass, 0.5 * 4.0 / 3.0 * np.pi * 0.1**3, rtol=1e-12)
    assert max(inertia) < 1e-18
    text = '<mujoco><worldbody><geom type="ellipsoid" size=".1 .2 .3" fluidshape="ellipsoid"/></worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(text)
    np.testing.assert_allclose(np.ravel(added_mass([0.1, 0.2, 0.3])), model.geom_fluid.ravel()[6:], rtol=1e-5)


WET = """<mujoco><option density="100" viscosity="3" wind="1 2 3"/><worldbody><body name="b"><freejoint/>
  <geom type="ellipsoid" size=".1 .2 .3" pos=".1 0 .2" euler="20 30 40" density="10" {fluid}/>
  <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="capsule" size=".1 .3" euler="10 0 0" density="9" {fluid}/>
  </body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("fluid", ["", 'fluidshape="ellipsoid" fluidcoef="0.6 0.3 1.2 0.9 0.8"'])
def test_bodies_in_a_fluid(fluid, tmp_path):
    file = tmp_path / "wet.xml"
    file.write_text(WET.format(fluid=fluid))
    pair = Beside(file)
    # of a capsule MuJoCo's numbers are those of an ellipsoid with its radius and half its length
    for size, numbers in zip(([0.1, 0.2, 0.3], [0.1, 0.1, 0.4]), pair.model.geom_fluid, strict=True):
        if numbers[0] > 0.0:
            numbers[6:9], numbers[9:12] = added_mass(size)
    assert pair.differences()["passive"] < TOLERANCE and len(pair.mech.forces.active["fluid"]) == 2
    mech, rng = pair.mech.with_acting("fluid"), np.random.default_rng(1)
    q, v = lw.random_state(mech, rng)
    for speed in (v, 0.0 * v):
        found = lw.derivatives.joint_force_derivatives(mech, q, speed).by_v
        steps = 1e-6 * np.eye(mech.nv)
        expected = [
            (lw.forces.joint_forces(mech, q, speed + s) - lw.forces.joint_forces(mech, q, speed - s)) / 2e-6
            for s in steps
        ]
        np.testing.assert_allclose(found, np.transpose(expected), atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("file", mjcf_files())
def test_forces_and_rates_are_those_of_mujoco(file):
    pair = beside(file)
    with_exact_added_masses(pair.model)
    known = next((causes for end, causes in CAUSES.items() if str(file).endswith(end)), {})
    for name, difference in pair.differences().items():
        assert (difference < TOLERANCE) == (name not in known), (name, difference)
    notes = " ".join(note.what for note in pair.mech.notes)
    assert all(cause in notes for cause in known.values()), "what differs is named at load"
    missing = pair.model.nu - pair.mech.n_ctrl
    idle = [note for note in pair.mech.notes if note.what.endswith(" actuator")]
    assert missing == sum(note.count for note in idle) and all(note.advice.startswith("does not act") for note in idle)


def urdf_files() -> list:
    home = folder("pinocchio")
    found = sorted((home.parents[3] / "share" / "example-robot-data" / "robots").rglob("*.urdf")) if home else []
    return [
        pytest.param(
            file, id=file.stem, marks=() if file.stem in ("panda", "anymal", "ur5_robot") else pytest.mark.slow
        )
        for file in found
    ]


@pytest.mark.parametrize("file", urdf_files())
def test_damping_friction_and_motors_of_urdf_files(file):
    """Forces by the numbers of the XML itself: damping and friction times velocities, reductions times inputs."""
    root = ElementTree.parse(file).getroot()
    if root.find("link") is None:
        pytest.skip("no robot: xacro has left nothing of it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        mech = lw.load(file)
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng)
    expected = np.zeros(mech.nv)
    for joint in root.findall("joint"):
        dynamics = joint.find("dynamics")
        if dynamics is not None and joint.get("name") in mech.joint_names:
            place = mech.coordinates.place(joint.get("name"))
            own = place.velocities(v)
            damped = -float(dynamics.get("damping", 0)) * own
            rubbed = -float(dynamics.get("friction", 0)) * own / np.sqrt(own**2 + 1e-4)
            expected[place.v_index] += place.ratio * (damped + rubbed)
    found = lw.forces.joint_forces(mech.with_acting("damping", "friction"), q, v)
    np.testing.assert_allclose(found, expected, atol=TOLERANCE * max(1.0, np.abs(expected).max(initial=0.0)))
    ctrl, driven = 1e-3 * rng.normal(size=mech.n_ctrl), np.zeros(mech.nv)
    for u, motor in zip(ctrl, mech.forces.actuators, strict=True):
        driven[mech.v_index(motor.target)] += mech.coordinates.place(motor.target).ratio * motor.gear[0] * u
    if mech.n_ctrl:
        found = lw.forces.joint_forces(mech.with_acting("actuators"), q, 1e-6 * v, ctrl=ctrl)
        np.testing.assert_allclose(found, driven, atol=1e-12)


SERVOED = """<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="{integrator}"/><worldbody>
  <body name="a"><joint name="ja" axis="0 1 0" damping="3" armature="0.001"/>
    <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" contype="0"/>
    <body name="b" pos="0.4 0 0"><joint name="jb" axis="0 1 1" damping="0.05"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" contype="0"/>
      <body name="c" pos="0.3 0 0"><joint name="jc" axis="1 0 0" stiffness="2"/>
        <joint name="jd" type="slide" axis="1 0 0" damping="200" stiffness="100"/>
        <geom type="sphere" size="0.03" pos="0.1 .05 0" contype="0"/></body></body></body>
</worldbody><actuator>{actuators}</actuator></mujoco>"""


@pytest.mark.parametrize(
    ("integrator", "actuators"),
    [
        ("Euler", '<motor joint="ja" gear="3"/><motor joint="jc" gear="0.1"/>'),
        ("implicitfast", '<position joint="ja" kp="80" kv="20"/><velocity joint="jc" kv="3"/>'),
    ],
)
def test_semi_implicit_steps_are_those_of_mujoco(integrator, actuators):
    """Its Euler steps take the damping of joints implicitly, those of "implicitfast" that of servos too; dampings of
    which explicit steps of this length would not be stable."""
    text, ctrl = SERVOED.format(integrator=integrator, actuators=actuators), np.array([-0.5, 0.7])
    model, mech = mujoco.MjModel.from_xml_string(text), lw.load(text)
    data = mujoco.MjData(model)
    data.qvel[:], data.ctrl[:] = [0.3, -1.0, 2.0, 0.1], ctrl
    start = np.zeros(4)
    names = ["ja", "jb", "jc", "jd"]
    order = [mech.v_index(name).start for name in names]
    start[order] = data.qvel
    q, _ = lw.rollout(mech, None, start, None, 0.002, 100, "semi_implicit", ctrl=ctrl)
    theirs = []
    for _ in range(100):
        mujoco.mj_step(model, data)
        theirs.append(data.qpos.copy())
    assert np.ptp(theirs, axis=0).min() > 1e-4
    np.testing.assert_allclose(q[1:, order], theirs, atol=1e-11)


@pytest.mark.parametrize("servo", ['<velocity joint="j" kv="5"/>', '<position joint="j" kp="20" kv="5"/>'])
@pytest.mark.parametrize("damping", [0.0, 2.0])
def test_velocity_gains_are_explicit_in_euler_steps_of_mujoco(servo, damping):
    """One wheel, I dv/dt = kp (u - x) + kv (.. - v) - d v: its "Euler" takes d alone implicitly, "implicitfast" and
    steps here d + kv."""
    text = f"""<mujoco><option timestep="0.01" integrator="{{}}"/><worldbody><body>
      <joint name="j" axis="0 0 1" damping="{damping}"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 0.1"/></body>
      </worldbody><actuator>{servo}</actuator></mujoco>"""
    h, inertia, ctrl, kv = 0.01, 0.1, 0.3, 5.0
    ahead, start = (5.0 * ctrl if "velocity" in servo else 20.0 * ctrl), 2.0
    kp = 0.0 if "velocity" in servo else 20.0

    def by_hand(implicit):
        x, v = 0.0, start
        for _ in range(20):
            v += h * (ahead - kp * x - (kv + damping) * v) / (inertia + h * implicit)
            x += h * v
        return x

    found = {}
    for integrator in ("Euler", "implicitfast"):
        model = mujoco.MjModel.from_xml_string(text.format(integrator))
        data = mujoco.MjData(model)
        data.qvel[:], data.ctrl[:] = start, ctrl
        mujoco.mj_step(model, data, nstep=20)
        found[integrator] = data.qpos[0]
    mech = lw.load(text.format("Euler"))
    here = lw.rollout(mech, None, [start], None, None, 20, "semi_implicit", ctrl=[ctrl], final_only=True)[0][0]
    np.testing.assert_allclose(found["Euler"], by_hand(damping), rtol=1e-12)
    np.testing.assert_allclose([here, found["implicitfast"]], by_hand(kv + damping), rtol=1e-12)
    assert abs(found["Euler"] - here) > 1e-3
