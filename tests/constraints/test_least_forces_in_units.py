"""Forces that mechanics leaves open are the same in metres and millimetres, and those of mixed units are reported."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import linkwise as lw


def in_units(mech: lw.Mechanism, length: float) -> lw.Mechanism:
    """The mechanism in units of so many metres; kilograms and seconds stay."""

    def moved(pose):
        return pose[0], pose[1] / length

    bodies = [
        dataclasses.replace(b, position=b.position / length, com=b.com / length, inertia=b.inertia / length**2)
        for b in mech.bodies
    ]
    frames = [dataclasses.replace(f, position=f.position / length) for f in mech.frames.values()]
    loops = [dataclasses.replace(x, pose_a=moved(x.pose_a), pose_b=moved(x.pose_b)) for x in mech.loops]
    return lw.Mechanism(mech.name, tuple(bodies), tuple(frames), mech.gravity / length, tuple(loops))


def lengths(mech: lw.Mechanism, quantity: str) -> np.ndarray:
    kinds = [body.kind for body in mech.bodies if not body.mimic]
    return np.array([m.of == "length" for kind in kinds for m in kind.measures(quantity)])


def scissors() -> lw.Mechanism:
    """Two crossed bars with a pin in a slot, which is a joint of the tree: a distance and an angle."""
    builder = lw.Builder()
    for name in ("one", "two", "plate"):
        builder.link(name, 3.0, (0.5, 0.3, 0) if name == "one" else (-0.5, 0.3, 0), (0.1, 0.1, 0.2))
    z = lw.Revolute((0, 0, 1))
    builder.joint("A", z, "ground", "one").joint("slot", lw.PinInSlot((1, 0, 0), (0, 0, 1)), "ground", "two", (1, 0, 0))
    builder.joint("D", z, "two", "plate", (-1, 0.6, 0))
    builder.loop("M", z, "one", (0.5, 0.3, 0), "two", (-0.5, 0.3, 0))
    builder.loop("E", lw.PinInSlot((1, 0, 0), (0, 0, 1)), "plate", (1.0, 0, 0), "one", (1.0, 0.6, 0))
    return builder.build("scissors", (0, -9.81, 0))


def state(mech: lw.Mechanism, unit: float) -> tuple[lw.Mechanism, np.ndarray]:
    other = in_units(mech, unit)
    q = lw.constraints.assemble(mech, mech.initial)
    return other, np.where(lengths(mech, "q"), q / unit, q)


def quiet(function, *args, **named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return function(*args, **named)


def in_newtons(mech: lw.Mechanism, forces: np.ndarray, unit: float) -> np.ndarray:
    """Joint forces in N and N m; they came in kg (unit) / s^2 and kg (unit)^2 / s^2."""
    return np.where(lengths(mech, "v"), forces * unit, forces * unit**2)


@pytest.mark.parametrize("actuated", ["slot", ("A", "slot"), None])
@pytest.mark.parametrize("unit", [1e-3, 1e2])
def test_static_forces_do_not_depend_on_the_unit_of_length(actuated, unit):
    mech = scissors()
    other, q_there = state(mech, unit)
    q = lw.constraints.assemble(mech, mech.initial)
    for more in ({}, {"forces": lw.forces.Passive()}):  # by kernels and by NumPy
        expected = quiet(lw.static_forces, mech, q, actuated=actuated, **more)
        found = quiet(lw.static_forces, other, q_there, actuated=actuated, **more)
        np.testing.assert_allclose(in_newtons(mech, found, unit), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("actuated", ["slot", "slot.angle", "A", ("A",)])
def test_compiled_forces_take_one_name_as_calls_do(actuated):
    mech = scissors()
    q = lw.constraints.assemble(mech, mech.initial)
    expected = quiet(lw.static_forces, mech, q, actuated=actuated)
    found = lw.compile(lw.static_forces, mech, actuated=actuated)(q)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_shared_loads_are_least_and_reported():
    """The least sum of (force times length)^2 and torque^2 of all that hold it, and a warning with names and cure."""
    mech = scissors()
    q = lw.constraints.assemble(mech, mech.initial)
    with pytest.warns(
        lw.MechanismWarning, match=r"not unique.*'slot\.\w+', 'slot\.\w+' share the load.*actuated='slot"
    ):
        tau = lw.static_forces(mech, q, actuated="slot")
    place = mech.v_index("slot")
    names = mech.v_names[place]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = [lw.static_forces(mech, q, actuated=name)[place][k] for k, name in enumerate(names)]
        lw.static_forces(mech, q, actuated="slot", weights=[1.0, 1.0])
        lw.static_forces(mech, q, actuated="A")
    # One degree of freedom: forces along a line from one coordinate alone to the other alone; the nearest point to 0.
    from linkwise.constraints.sizes import units

    x, y = alone[0] * units(mech).length, alone[1]
    nearest = np.array([x * y**2, x**2 * y]) / (x**2 + y**2)
    np.testing.assert_allclose(tau[place], nearest / [units(mech).length, 1.0], rtol=1e-9)


def test_forces_of_one_unit_are_shared_as_before_without_a_word():
    mech = lw.mechanisms.four_bar()
    q = lw.constraints.assemble(mech, mech.initial)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tau = lw.static_forces(mech, q)
    motion = lw.constraints.null_space(mech, q)[:, 0]
    load = lw.gravity_force(mech.spanning_tree, q)
    np.testing.assert_allclose(tau, motion * (motion @ load), atol=1e-12)


@pytest.mark.parametrize("unit", [1e-3, 1e2])
def test_holding_forces_of_equilibria_do_not_depend_on_the_unit_of_length(unit):
    mech = scissors()
    other, q_there = state(mech, unit)
    q = lw.constraints.assemble(mech, mech.initial)
    expected = quiet(lw.find_equilibrium, mech, q, solve_for="tau", actuated=["slot"]).tau
    found = quiet(lw.find_equilibrium, other, q_there, solve_for="tau", actuated=["slot"]).tau
    np.testing.assert_allclose(in_newtons(mech, found, unit), expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    with pytest.warns(lw.MechanismWarning, match="share the load"):
        lw.find_equilibrium(mech, q, solve_for="tau", actuated=["slot"])
    np.testing.assert_allclose(expected, quiet(lw.static_forces, mech, q, actuated="slot"), atol=1e-9)


@pytest.mark.parametrize("unit", [1e-3, 1e2])
def test_inputs_of_motors_do_not_depend_on_the_unit_of_length(unit):
    """Motors of force and of torque that hold one degree of freedom together."""

    def slider_crank(scale):
        z, builder = lw.Revolute((0, 0, 1)), lw.Builder()
        for name in ("crank", "rod", "slider"):
            builder.link(name, 2.0, (0.2 / scale, 0.1 / scale, 0), np.array((0.1, 0.1, 0.2)) / scale**2)
        builder.joint("A", z, "ground", "crank").joint("B", z, "crank", "rod", (0.3 / scale, 0, 0))
        builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "slider", (0.5 / scale, 0, 0))
        builder.loop("C", z, "rod", (0.7 / scale, 0, 0), "slider", None)
        mech = builder.build("slider_crank", (-3.0 / scale, -9.81 / scale, 0))
        return mech.with_elements(lw.forces.Actuator("crank", "A"), lw.forces.Actuator("ram", "slide"))

    mech, other = slider_crank(1.0), slider_crank(unit)
    q = lw.constraints.assemble(mech, {"A": 0.8, "B": -1.2}, hold="A")
    q_there = np.where(lengths(mech, "q"), q / unit, q)
    expected, found = (lw.find_equilibrium(m, x, solve_for="ctrl").ctrl for m, x in ((mech, q), (other, q_there)))
    assert np.abs(expected).min() > 1e-3
    np.testing.assert_allclose(found * [unit**2, unit], expected, rtol=1e-9)


def bennett(length: float = 1.0) -> lw.Mechanism:
    """An overconstrained spatial four-bar: its redundant constraints are metres and radians."""
    alpha = 0.6
    sides = 2 * [(0.7, alpha), (0.4, np.arcsin(0.4 * np.sin(alpha) / 0.7))]  # sin(twist) / length is the same
    z, builder = lw.Revolute((0, 0, 1)), lw.Builder()

    def pose(side):
        size, twist = side
        c, s = np.cos(twist), np.sin(twist)
        return np.array([[1, 0, 0], [0, c, -s], [0, s, c]]), np.array([size / length, 0, 0])

    for k in range(3):
        builder.link(f"l{k}", 1.0, (0.1 / length, 0.02 / length, 0), np.diag((1.0, 1.2, 1.4)) * 0.01 / length**2)
    builder.joint("j0", z, "ground", "l0", pose(sides[0])).joint("j1", z, "l0", "l1", pose(sides[1]))
    builder.joint("j2", z, "l1", "l2", pose(sides[2])).loop("end", z, "l2", pose(sides[3]), "ground", None)
    return builder.build("bennett", (0, -9.81 / length, 0.3 * 9.81 / length))


@pytest.mark.parametrize("unit", [1e-3, 1e2])
def test_reactions_of_redundant_constraints_do_not_depend_on_the_unit_of_length(unit):
    mech, other = bennett(), bennett(unit)
    q = lw.constraints.assemble(mech, {"j0": 1.0}, hold="j0")
    zero = np.zeros(3)
    for function in (lw.constraints.loop_reactions, lw.joint_wrenches):
        expected, found = function(mech, q, zero, zero), function(other, q, zero, zero)
        found = np.concatenate([found[..., :3] * unit**2, found[..., 3:] * unit], axis=-1)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_velocities_by_joint_do_not_depend_on_the_unit_of_length():
    """The least velocities of joints that are not named: metres count in units of the mechanism."""
    z, builder = lw.Revolute((0, 0, 1)), lw.Builder()
    for name in ("one", "rail", "two"):
        builder.link(name, 3.0, (0.3, 0.1, 0), (0.1, 0.1, 0.2))
    builder.joint("A", z, "ground", "one").joint("rail", lw.Prismatic((0, 1, 0)), "ground", "rail", (1, 0, 0))
    builder.joint("slot", lw.PinInSlot((1, 0, 0), (0, 0, 1)), "rail", "two")
    builder.loop("M", z, "one", (0.5, 0.3, 0), "two", (-0.5, 0.3, 0))
    mech = builder.build("rails", (0, -9.81, 0))
    other, q_there = state(mech, 1e-3)
    q, still = lw.constraints.assemble(mech, mech.initial), np.zeros(mech.nv)
    a, a_there = (lw.forward_dynamics(m, x, {"A": 2.0}, still) for m, x in ((mech, q), (other, q_there)))
    assert np.abs(a - lw.forward_dynamics(mech, q, still, still)).max() > 1e-3  # velocities matter
    a_there = np.where(lengths(mech, "v"), a_there * 1e-3, a_there)
    np.testing.assert_allclose(a_there, a, rtol=0, atol=1e-9 * np.abs(a).max())
