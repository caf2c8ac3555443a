"""What is written, in what words; what a format cannot say is told, or refused."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

import linkwise as lw
from tests.writers.round_trip import again, assert_same_dynamics, assert_same_numbers

mujoco = pytest.importorskip("mujoco")


def machine() -> lw.Builder:
    """A crank on a screw, a gear, a slider."""
    builder = lw.Builder()
    for name in ("crank", "nut", "wheel", "slide"):
        builder.link(name, 1.0, (0.1, 0.02, 0.03), (0.02, 0.03, 0.04))
    builder.joint("turn", lw.Revolute((0, 1, 0)), "ground", "crank", (0.1, 0.2, 0.3), stiffness=3.0, rest=0.4)
    builder.joint("screw", lw.Helical((1, 0, 0), 0.02), "crank", "nut", lw.pose((0.3, 0, 0), rpy=(0.1, 1.5, -2.0)))
    builder.joint("gear", lw.Revolute(), "ground", "wheel", damping=0.3, friction=0.1, armature=0.2)
    builder.joint("rail", lw.Prismatic((1, 1, 0)), "wheel", "slide", limits=lw.Limits(-1.0, np.inf, 2.0, 30.0))
    return builder.frame("tool", "slide", lw.pose((0, 0, 0.1), rpy=(0, np.pi / 2, 0.3)))


ELEMENTS = (
    lw.forces.Tendon("rope", (("turn", 0.3), ("rail", -0.5)), 20.0, (0.1, 0.3), 0.7, 0.2, (-1.0, 2.0), offset=0.25),
    lw.forces.Actuator("puller", "rope", "tendon", (2.0,), (3.0, 0.5, 0.0), (1.0, -4.0, -0.3), ctrl_range=(-1.0, 1.0)),
    lw.forces.Actuator("servo", "gear", gain=(30.0,), bias=(0.0, -30.0, -2.0), dynamics="filter", time_constant=0.1),
    lw.forces.Actuator("jet", "tool", "site", (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), force_range=(-2.0, 5.0)),
    lw.forces.GravityCompensation("slide", 0.4, (0.1, 0.02, 0.03)),
    lw.forces.EffortRange("turn", -3.0, 4.0),
)


@pytest.mark.smoke
def test_all_that_mjcf_can_say():
    """Springs, tendons with constant parts, actuators of all kinds, a coupling, a screw; forces at random states."""
    mech = machine().coupling("belt", {"turn": 2.0, "gear": -1.0, "rail": 0.5}, 0.3).build("machine")
    mech = mech.with_elements(*ELEMENTS).metadata.with_postures({"up": {"turn": 0.4, "rail": 0.2}})
    with pytest.warns(
        lw.files.OmissionWarning, match="MJCF cannot say, and leaves out: velocity limit of rail"
    ) as told:
        text = lw.interop.mjcf_text(mech)
    assert "joints composed of several: screw (screw, screw.advance)" in str(told[0].message) and len(told) == 1
    read = again(mech, "mjcf")
    assert_same_dynamics(mech, read)
    (coupling,) = read.loops
    assert dict(coupling.ratios) == {"turn": 2.0, "gear": -1.0, "rail": 0.5} and coupling.offset == pytest.approx(0.3)
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech.spanning_tree, rng)
    there, ctrl, activation = lw.interop.to_mechanism(mech, read), rng.normal(size=3), np.array([0.3])
    state = there.state(q, v)
    forces = there.inverse.tau(state[0], lw.forces.joint_forces(read, *state, ctrl=ctrl, activation=activation))
    np.testing.assert_allclose(forces, lw.forces.joint_forces(mech, q, v, ctrl=ctrl, activation=activation), atol=1e-12)
    np.testing.assert_allclose(read.postures["up"], there.q(mech.postures["up"]), atol=1e-15)
    # MuJoCo takes it, and has the same forces of springs, dampers, tendons and actuators.
    model = mujoco.MjModel.from_xml_string(text)
    data, there = mujoco.MjData(model), lw.interop.to_mujoco(mech, model)
    data.qpos[:], data.qvel[:], data.ctrl[:], data.act[:] = there.q(q), there.v(q, v), ctrl, activation
    mujoco.mj_forward(model, data)
    found = there.inverse.tau(data.qpos, data.qfrc_passive + data.qfrc_actuator)
    smooth = mech.with_acting("springs", "damping", "actuators", "gravity_compensation", "tendons")
    smooth = smooth.forces.without("rope", "puller").with_elements(  # friction and limits are constraints there
        lw.forces.Tendon("rope", (("turn", 0.3), ("rail", -0.5)), 20.0, (0.1, 0.3), 0.7, offset=0.25), ELEMENTS[1]
    )
    order = [smooth.forces.actuator_names.index(name) for name in mech.forces.actuator_names]
    np.testing.assert_allclose(
        found,
        lw.forces.joint_forces(smooth, q, v, ctrl=ctrl[np.argsort(order)], activation=activation),
        rtol=0,
        atol=1e-10,
    )


@pytest.mark.smoke
def test_all_that_urdf_can_say():
    mech = machine().joint("ball", lw.Spherical(), "slide", "hand").link("hand", 0.3, inertia=(0.1, 0.1, 0.1))
    mech = mech.shape("palm", "hand", "box", (0.1, 0.2, 0.3), (0, 0, 0.1)).build("machine", (0.0, 0.0, -1.62))
    mech = mech.with_elements(lw.forces.Actuator("motor", "rail", gear=(7.0,)))
    with pytest.warns(lw.MechanismWarning) as told:
        text = lw.interop.urdf_text(mech)
    (message,) = (str(one.message) for one in told)
    for part in (
        "spherical joints, which URDF proper does not have: ball",
        "gravity, which linkwise reads",
        "screw.advance",
    ):
        assert part in message
    assert "leaves out" not in message and "<transmission" in text
    with pytest.warns(lw.files.OmissionWarning):
        read = lw.load(text)
    assert_same_dynamics(mech, read)
    assert [one for one in read.elements if isinstance(one, lw.forces.Actuator)] == [
        lw.forces.Actuator("motor", "rail", gear=(7.0,))
    ]
    for name in ("armature", "damping", "friction", "stiffness", "limits"):
        assert getattr(read.bodies[read.body_index("rail")], name) == getattr(mech.bodies[3], name)
    assert read.bodies[0].stiffness == (3.0,) and read.bodies[0].rest == (0.4,)
    (shape,) = read.shapes
    assert (shape.name, shape.kind, shape.size) == ("palm", "box", (0.1, 0.2, 0.3))


def test_a_time_step_is_lost_where_the_file_gives_one_of_its_own():
    text = """<mujoco>{}<worldbody><body name="a"><joint name="a" axis="0 1 0"/><geom size=".1" mass="1"/>
      </body></worldbody></mujoco>"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.interop.urdf_text(lw.load(text.format("")))
    with pytest.warns(lw.files.OmissionWarning, match="leaves out: time step of 0.01 s$"):
        lw.interop.urdf_text(lw.load(text.format('<option timestep="0.01"/>')))


def test_on_the_ground():
    """Shapes and contacts; MuJoCo has the same pairs."""
    mech = lw.Builder().link("ball", 2.0, inertia=(0.1, 0.1, 0.1)).joint("free", lw.Floating(), "ground", "ball")
    mech = mech.shape("skin", "ball", "sphere", 0.2).shape("rod", "ball", "capsule", (0.05, 0.3), (0.1, 0, 0)).build()
    mech = mech.with_ground(0.1, friction=0.6, shapes=["skin"])
    text = lw.interop.mjcf_text(mech)
    read = again(mech, "mjcf")
    assert read.contact_pairs == mech.contact_pairs
    assert {shape.name for shape in read.shapes} == {"skin", "rod", "floor"}
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:3] = 0.0, 0.0, 0.25
    mujoco.mj_forward(model, data)
    touching = {frozenset(model.geom(g).name for g in contact.geom) for contact in data.contact}
    assert touching == {frozenset(("skin", "floor"))}
    with pytest.warns(
        lw.files.OmissionWarning, match=r"numbers of contact \(stiffness, dissipation, ...\) of skin/floor"
    ):
        lw.interop.mjcf_text(mech.with_contact(stiffness=123.0))


def test_loops_hold_in_mujoco():
    """A four-bar falls in MuJoCo as here, as well as its soft constraints let it."""
    mech = lw.mechanisms.four_bar()
    thick = [
        mass * np.eye(3) * 1e-3 + inertia
        for mass, inertia in zip(mech.parameters.masses, mech.parameters.inertias, strict=True)
    ]
    bodies = [
        replace(body, inertia=own) for body, own in zip(mech.bodies, thick, strict=True)
    ]  # MuJoCo has no thin rods
    mech = replace(mech, bodies=tuple(bodies))
    with pytest.warns(lw.MechanismWarning, match=r"as two points of their axes: pin \(pin, pin.2\)"):
        model = mujoco.MjModel.from_xml_string(lw.interop.mjcf_text(mech))
    model.opt.timestep = 1e-4
    model.eq_solref[:] = (2e-4, 1.0)
    there, data = lw.interop.to_mujoco(mech, model), mujoco.MjData(model)
    motion = lw.simulate(mech, None, None, 0.3)
    data.qpos[:] = there.q(motion.q[0])
    for _ in range(3000):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(there.inverse.q(data.qpos), motion.q[-1], atol=2e-3)


def test_what_cannot_be_said_is_refused(tmp_path):
    tree = lw.Builder().link("a", 1.0, inertia=(1, 1, 1)).link("b", 1.0, inertia=(1, 1, 1))
    tree.joint("hinge", lw.Revolute(), "ground", "a").joint("fly", lw.Floating(), "a", "b")
    mech = tree.build("pair")
    with pytest.raises(lw.MechanismError, match="'fly' floats on the moving link 'a', and MJCF has free joints"):
        mech.save(tmp_path / "pair.xml")
    sliding = tree.loop("slot", lw.Cylindrical(), "ground", None, "b").build("pair")
    with pytest.raises(
        lw.MechanismError, match="URDF has no loops that Cylindrical.*'slot'; mech.save.*companion file"
    ):
        lw.interop.urdf_text(sliding)
    coupled = machine().coupling("belt", {"turn": 1.0, "gear": 2.0}).build()
    with pytest.raises(lw.MechanismError, match="no couplings of joints, such as 'belt'; mech.save.*companion file"):
        lw.interop.urdf_text(coupled)
    driven = machine().drive("motor", "turn", lambda t: t).build()
    for ending in ("xml", "urdf"):
        with pytest.raises(
            lw.MechanismError, match="'motor' follows time .* files do not hold; save mech.spanning_tree"
        ):
            driven.save(tmp_path / f"machine.{ending}")
    with pytest.raises(lw.MechanismError, match="'a.step' has no ending of a format .* .urdf .URDF., .xml .MJCF."):
        mech.save(tmp_path / "a.step")
    with pytest.raises(lw.MechanismError, match="leaves out: velocity limit of rail"):
        machine().build().save(tmp_path / "machine.xml", strict=True)
    assert not list(tmp_path.iterdir())


def test_links_without_mass_are_joints_of_the_body_they_carry(tmp_path):
    """So that MuJoCo accepts them; the names of links are those that linkwise reads."""
    text = """<mujoco><compiler angle="radian"/><worldbody><body name="arm" pos="0 0 1" euler="0.1 0.2 0.3">
      <joint name="x" type="slide" axis="1 0 0" ref="0.2"/><joint name="y" axis="0 1 1" pos="0.1 0 0" ref="-0.3"/>
      <joint name="z" pos="0 0.3 0.1"/><inertial pos="0.1 0 0" mass="1" diaginertia="0.1 0.2 0.25"/>
      <site name="tip" pos="0 0 0.4" euler="0.4 0 0"/></body></worldbody></mujoco>"""
    mech = lw.load(text)
    mech.save(tmp_path / "arm.xml")
    assert (tmp_path / "arm.xml").read_text().count("<body") == 1
    read = lw.load(tmp_path / "arm.xml")
    assert read.link_names == mech.link_names == ("arm/x", "arm/y", "arm/z")
    np.testing.assert_allclose(read.initial, mech.initial, atol=1e-15)
    assert_same_dynamics(mech, read)
    assert_same_numbers(mech, read)
    mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))


def test_mujoco_takes_thin_rods_and_plates():
    """Their principal moments are A + B = C, which rounding breaks; equations of motion are the same."""
    rng = np.random.default_rng(3)
    links = {"ground": "AD", "crank": "AB", "coupler": "BC", "rocker": "DC"}
    drawn = np.array([(0, 0), (0.1, 0.17), (0.58, 0.45), (0.6, 0)])
    for _ in range(20):
        places = 10.0 ** rng.uniform(-1, 1) * (drawn + 0.1 * rng.normal(size=(4, 2)))
        rods = lw.Builder().linkage(dict(zip("ABCD", places, strict=True)), links, density=10.0 ** rng.uniform(-1, 1))
        mech = rods.build("rods")
        assert_same_masses(mech, lw.interop.mujoco_model(mech))
    builder, parent = lw.Builder(), "ground"
    for number in range(10):
        a, b = rng.uniform(0.01, 1.0, size=2)
        axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        builder.link(f"plate{number}", 1.0, rng.normal(size=3), axes @ np.diag((a, b, a + b)) @ axes.T)
        builder.joint(f"j{number}", lw.Revolute(axes[0] + axes[1]), parent, f"plate{number}", (0.1, 0, 0))
        parent = f"plate{number}"
    mech = builder.build("plates")
    assert_same_masses(mech, lw.interop.mujoco_model(mech))


def assert_same_masses(mech, model):
    """That MuJoCo has the same mass matrix in a random configuration."""
    q, v = lw.random_state(mech.spanning_tree, np.random.default_rng(0))
    data, there, expected = mujoco.MjData(model), lw.interop.to_mujoco(mech, model), np.zeros((model.nv, model.nv))
    data.qpos[:] = there.q(q)
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, expected)
    found = lw.mass_matrix(mech.spanning_tree, q)
    expected = there.inverse.matrix(data.qpos, expected)
    np.testing.assert_allclose(expected, found, rtol=1e-12, atol=1e-13 * np.abs(found).max())


def test_steps_that_lead_have_no_name(tmp_path):
    """A joint of one's own that names the step which is its coordinate."""

    @dataclass(frozen=True)
    class Named(lw.Helical):
        @property
        def steps(self):
            return tuple(step._replace(name=step.name or "turn") for step in lw.Helical.steps.fget(self))

    mech = lw.mechanisms.planar_arm(1)
    mech = replace(mech, bodies=(replace(mech.bodies[0], kind=Named((0.6, 0.0, 0.8), 0.1)),))
    for name in ("robot.urdf", "robot.xml"):
        with pytest.raises(lw.MechanismError, match="'turn' .* which no step without a name is"):
            mech.save(tmp_path / name)


BUILT_IN = [name for name in lw.mechanisms.__all__ if name not in ("maker", "random_tree")]
MOVING = ("revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "planar", "pin_in_slot")


def assert_mujoco_takes(mech: lw.Mechanism) -> None:
    """MuJoCo's compiler takes what is written, or a warning says that it does not."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        text = lw.interop.mjcf_text(mech)
    try:
        mujoco.MjSpec.from_string(text).compile()
    except ValueError as error:
        assert any("linkwise reads and MuJoCo refuses" in str(one.message) for one in told), error


@pytest.mark.parametrize("name", BUILT_IN)
def test_mujoco_takes_what_is_written_of_built_in_mechanisms(name):
    make = lw.mechanisms.maker(name)
    try:
        mech = make()
    except TypeError:  # it takes a number of links
        mech = make(3)
    try:
        assert_mujoco_takes(mech)
    except lw.MechanismError as error:
        assert "MJCF has no equality for the loop" in str(error)


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize("seed", range(40))
def test_mujoco_takes_what_is_written_of_random_trees(seed):
    """Free joints are on the world there: they are in the mechanisms above."""
    assert_mujoco_takes(lw.mechanisms.random_tree(1 + seed % 7, seed, MOVING))
