"""Closed formulas: equal to the kernels' numbers as they are printed, and as textbooks print them."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from tests.physics.trees import close

RODS = {k: text for i in (1, 2, 3) for k, text in ((f"r{i}", f"l{i}/2"), (f"I{i}", f"m{i}*l{i}**2/12"))}


def double_pendulum() -> lw.Mechanism:
    """Two links with mass centres on their axes, hanging at q = 0; z up."""
    builder = lw.Builder()
    builder.link("upper", 1.3, (0, 0, -0.4), (0.02, 0.03, 0.02)).link("lower", 0.7, (0, 0, -0.25), (0.01, 0.02, 0.015))
    builder.joint("shoulder", lw.Revolute((0, 1, 0)), "ground", "upper")
    builder.joint("elbow", lw.Revolute((0, 1, 0)), "upper", "lower", (None, (0, 0, -0.9)))
    return builder.build("double_pendulum")


def cart_pole() -> lw.Mechanism:
    builder = lw.Builder().link("cart", 2.0, (0, 0, 0), np.eye(3)).link("pole", 0.3, (0, 0, 0.4), (0.01, 0.012, 0.005))
    builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "cart")
    builder.joint("hinge", lw.Revolute((0, 1, 0)), "cart", "pole")
    return builder.build("cart_pole")


def branching() -> lw.Mechanism:
    """All that has no textbook: branches, oblique mass centres, a rotor, a helical joint."""
    builder = lw.Builder().link("trunk", 2.0, (0.1, 0.2, 0), np.diag([0.1, 0.2, 0.3]))
    builder.link("left", 0.5, (0, 0.3, 0), (0.01, 0.02, 0.03)).link("right", 0.4, (0.2, 0, 0.1), (0.03, 0.02, 0.01))
    builder.joint("turn", lw.Revolute((0, 0, 1)), "ground", "trunk", armature=0.05)
    builder.joint("swing", lw.Revolute((1, 0, 0)), "trunk", "left", (None, (0.5, 0, 0)))
    builder.joint("screw", lw.Helical((0, 0, 1), 0.1), "trunk", "right", (None, (0, 0.4, 0.2)))
    return builder.build("branching")


def geared() -> lw.Mechanism:
    """The branching one with a joint that turns by a ratio of another's angle."""
    mech = branching()
    mimic = replace(mech.bodies[1], mimic=lw.Mimic("turn", -1.3, 0.2))
    return replace(mech, bodies=(mech.bodies[0], mimic, mech.bodies[2]))


def as_printed(formulas: lw.codegen.Formulas, numbers: dict[str, float]) -> dict[str, float]:
    """What Python makes of the printed lines."""
    names = {"sin": math.sin, "cos": math.cos, "sqrt": math.sqrt, **numbers}
    exec(formulas.text(), names)
    return names


CASES = [
    (make, algorithm, options)
    for make in (double_pendulum, lambda: lw.mechanisms.planar_arm(3), cart_pole, branching, geared)
    for algorithm, options in (
        ("mass_matrix", {}),
        ("inverse_dynamics", {}),
        ("mass_matrix_inverse", {}),
        ("forward_dynamics", {}),
        ("gravity_force", {}),
        ("coriolis_matrix", {}),
        ("kinetic_energy", {}),
    )
]


@pytest.mark.parametrize(("make", "algorithm", "options"), CASES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_formulas_are_the_kernels_numbers(make, algorithm, options):
    """Called, and as the printed text is read by Python; at the mechanism's own numbers, and at others."""
    mech, rng = make(), np.random.default_rng(0)
    formulas = lw.codegen.symbolic(mech, algorithm, **options)
    kernel = lw.compile(algorithm, mech, target="numpy", **options)
    arrays = [rng.normal(size=(3, *shape)) for shape in kernel.input_shapes.values()]
    expected = kernel(*arrays)
    core = expected.ndim - 1
    close(formulas(*arrays), expected, 1e-12, core)
    numbers = dict(formulas.values)
    for name, array in zip(kernel.inputs, arrays, strict=True):
        numbers |= {f"{name}{k + 1}": x for k, x in enumerate(array[1])}
    printed = as_printed(formulas, numbers)
    stem = {"mass_matrix": "M", "mass_matrix_inverse": "W", "forward_dynamics": "a", "coriolis_matrix": "C"}
    stem = stem.get(algorithm, "E" if algorithm == "kinetic_energy" else "tau")
    for place in np.ndindex(expected.shape[1:]):
        name = stem + "".join(str(k + 1) for k in place)
        assert printed[name] == pytest.approx(expected[1][place], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
def test_accelerations_of_linkages(name):
    """As many constraints as are independent, and the equation of motion of the independent coordinates."""
    mech = getattr(lw.mechanisms, name)().with_gravity((1.0, -9.81, 0.0))
    rng = np.random.default_rng(3)
    formulas = lw.codegen.symbolic(mech, "forward_dynamics")
    q = lw.constraints.assemble(mech, {mech.joint_names[0]: 0.9})
    v = lw.constraints.project(mech, q, rng.normal(size=mech.nv))[1]
    tau = rng.normal(size=mech.nv)
    expected = lw.forward_dynamics(mech, q, v, tau)
    np.testing.assert_allclose(formulas(q, v, tau), expected, atol=1e-9 * np.abs(expected).max())
    given = {f"{letter}{k + 1}": x for letter, xs in (("q", q), ("v", v), ("tau", tau)) for k, x in enumerate(xs)}
    printed = as_printed(formulas, {**formulas.values, **given})
    for k, x in enumerate(expected, 1):
        assert printed[f"a{k}"] == pytest.approx(x, rel=1e-8, abs=1e-8)


def test_accelerations_of_large_linkages_have_no_formula():
    with pytest.raises(lw.codegen.FormulaError, match="formulas are made of up to 4"):
        lw.codegen.symbolic(lw.mechanisms.loader(), "forward_dynamics")


def test_symbols_take_other_numbers():
    """Formulas in masses and lengths hold for all of them."""
    mech = double_pendulum()
    formulas = lw.codegen.symbolic(mech, "inverse_dynamics")
    heavier = mech.with_payload("lower", 0.5, (0, 0, -0.25))
    x = np.random.default_rng(1).normal(size=(3, 2))
    close(formulas(*x, m2=1.2), lw.inverse_dynamics(heavier, *x), 1e-12)
    with pytest.raises(TypeError, match="no symbol 'm7'"):
        formulas(*x, m7=1.0)
    with pytest.raises(TypeError, match="take 3 arrays"):
        formulas(x[0])


def test_kernels_have_formulas_in_their_inputs():
    """Numbers of the mechanism as numbers, simple fractions exact; parameters that are inputs as symbols."""
    kernel = lw.compile("mass_matrix", lw.mechanisms.planar_arm(2), target="numpy")
    assert str(kernel.formulas()).splitlines()[1:] == ["M11 = 5/3 + c2", "M12 = 1/3 + c2/2", "M21 = M12", "M22 = 1/3"]
    kernel = lw.compile("gravity_force", lw.mechanisms.planar_arm(1), target="numpy", parameters=("mass",))
    assert kernel.formulas()[0] == "4.905*m1*c1"
    inverse = lw.compile("mass_matrix_inverse", lw.mechanisms.planar_arm(3), target="numpy")
    q = np.random.default_rng(2).normal(size=(4, 3))
    close(inverse.formulas()(q), inverse(q), 1e-11, 2)  # by what each joint divides by
    assert re.search(r"^D1 = ", str(inverse.formulas()), re.M)


# -- as textbooks print them ----------------------------------------------------------------------------


def test_double_pendulum_as_in_textbooks():
    """Spong, Hutchinson and Vidyasagar, Robot Modeling and Control (2006), 7.4: the planar elbow manipulator."""
    formulas = lw.codegen.symbolic(lw.mechanisms.planar_arm(2), "mass_matrix")
    assert repr(formulas) == str(formulas) == formulas.text()
    assert str(formulas).splitlines() == [
        "c2 = cos(q2)",
        "M11 = I1 + I2 + m1*r1**2 + m2*(l1**2 + 2*l1*r2*c2 + r2**2)",
        "M12 = I2 + m2*(l1*r2*c2 + r2**2)",
        "M21 = M12",
        "M22 = I2 + m2*r2**2",
    ]
    gravity = lw.codegen.symbolic(lw.mechanisms.planar_arm(2), "gravity_force")
    assert gravity[0] == "g*(m1*r1*c1 + m2*(l1*c1 + r2*c12))"
    assert gravity[1] == "m2*g*r2*c12"
    bias = lw.codegen.symbolic(lw.mechanisms.planar_arm(2).with_gravity((0, 0, 0)), "bias_force")
    assert bias[0] == "-m2*l1*r2*s2*(2*v1*v2 + v2**2)"
    assert bias[1] == "m2*l1*r2*s2*v1**2"
    hanging = lw.codegen.symbolic(double_pendulum(), "gravity_force")
    assert hanging[1] == "m2*g*r2*s12"
    assert bias.latex(align=False).splitlines()[0] == (
        r"\tau_{1} = -m_{2} l_{1} r_{2} s_{2} \left(2 \dot{q}_{1} \dot{q}_{2} + \dot{q}_{2}^{2}\right)"
    )


@pytest.mark.seed("saha1999", "Figure 5", by="library")
def test_a_revolute_and_a_prismatic_joint_as_in_textbooks():
    """A radial arm: the reach counts as a whole, and nothing of it is expanded."""
    build = lw.Builder().link("arm", 2.0, (0.3, 0, 0), (0.1, 0.2, 0.3)).link("slide", 1.0, (0.2, 0, 0), (0.1, 0.1, 0.1))
    build.joint("turn", lw.Revolute((0, 0, 1)), "ground", "arm")
    build.joint("reach", lw.Prismatic((1, 0, 0)), "arm", "slide", (0.5, 0, 0))
    arm = build.build("radial").with_gravity((0, -9.81, 0))
    mass = lw.codegen.symbolic(arm, "mass_matrix")
    assert mass[0, 0] == "I1 + I2 + m1*r1**2 + m2*(l1 + q2 + r2)**2"
    bias = lw.codegen.symbolic(arm, "bias_force")
    assert bias[0] == "2*m2*v1*v2*(l1 + q2 + r2) + g*c1*(m1*r1 + m2*(l1 + q2 + r2))"
    assert bias[1] == "m2*(-v1**2*(l1 + q2 + r2) + g*s1)"
    energy = lw.codegen.symbolic(arm, "kinetic_energy")
    assert "m2*(v1**2*(l1 + q2 + r2)**2 + v2**2)/2" in str(energy)
    q, v = np.array([0.4, 0.3]), np.array([1.0, -0.7])
    close(mass(q), lw.mass_matrix(arm, q), 1e-13)
    close(energy(q, v), lw.kinetic_energy(arm, q, v), 1e-13, 0)
    as_sympy = mass.sympy()[0, 0].subs({"m1": 2.0, "m2": 1.0})
    assert {str(one) for one in as_sympy.free_symbols} >= {"l1", "q2", "r2"}
    with pytest.raises(TypeError, match=r"the mechanism first: symbolic\(mech, 'mass_matrix'\)"):
        lw.codegen.symbolic("mass_matrix", arm)


def test_planar_arm_of_saha1999_as_its_explicit_expressions():
    """Section 6.1 evaluates the torques explicitly and compares them with the recursive ones along (38): elements of
    the inertia matrix and gravity terms of three uniform rods, known from their kinetic and potential energy."""
    arm = lw.mechanisms.planar_arm(3)
    matrix = lw.codegen.symbolic(arm, "mass_matrix", RODS)
    assert matrix[2, 2] == "m3*l3**2/3"
    assert matrix[1, 2] == "m3*(l2*l3*c3/2 + l3**2/3)"
    assert matrix[0, 2] == "m3*(l1*l3*c23/2 + l2*l3*c3/2 + l3**2/3)"
    gravity = lw.codegen.symbolic(arm, "gravity_force", RODS)
    assert gravity[2] == "m3*g*l3*c123/2"
    t = np.linspace(0.0, 10.0, 50)[:, None] * np.ones(3)
    rate = 2.0 * np.pi / 10.0
    q, v = 0.5 * (rate * t - np.sin(rate * t)), 0.5 * rate * (1.0 - np.cos(rate * t))  # (38)
    a = 0.5 * rate**2 * np.sin(rate * t)
    close(lw.codegen.symbolic(arm, "inverse_dynamics", RODS)(q, v, a), lw.inverse_dynamics(arm, q, v, a), 1e-12)


@pytest.mark.seed("rodriguez1986", "Section 11", by="library")
def test_two_link_inverse_of_rodriguez1986():
    """Symbols for the scalar elements of the inverse, by (10.1) with a division per joint, and by cofactors."""
    arm = lw.mechanisms.planar_arm(2)
    inverse = lw.codegen.symbolic(arm, "mass_matrix_inverse")
    assert str(inverse).splitlines()[2:] == [
        "Delta = I2*(I1 + m1*r1**2) + m2*(I1*r2**2 + I2*l1**2 + m1*r1**2*r2**2 + m2*l1**2*r2**2*s2**2)",
        "W11 = (I2 + m2*r2**2)/Delta",
        "W12 = -(I2 + m2*(l1*r2*c2 + r2**2))/Delta",
        "W21 = W12",
        "W22 = (I1 + I2 + m1*r1**2 + m2*(l1**2 + 2*l1*r2*c2 + r2**2))/Delta",
    ]
    expression = (op.H @ op.phi @ op.M @ op.phi.T @ op.H.T).inv
    recursive = lw.compile(expression, arm, target="numpy", parameters=("mass", "com")).formulas()
    q = np.random.default_rng(3).normal(size=(5, 2))
    found = recursive(q, arm.parameters.masses, arm.parameters.coms)
    close(found, inverse(q), 1e-12, 2)
    assert len(re.findall(r"^D\d+ = ", str(recursive), re.M)) == 2  # one division per joint
    close(found, lw.mass_matrix_inverse(arm, q), 1e-12, 2)


def test_sympy_gets_the_same():
    sympy = pytest.importorskip("sympy")
    arm = lw.mechanisms.planar_arm(2)
    torques, matrix, energy = (
        lw.codegen.symbolic(arm, name) for name in ("inverse_dynamics", "mass_matrix", "kinetic_energy")
    )
    assert torques.sympy().shape == (2, 1)
    v, a = (sympy.Matrix(sympy.symbols(names, real=True)) for names in ("v1 v2", "a1 a2"))
    assert sympy.expand((v.T * matrix.sympy() * v)[0] / 2 - energy.sympy()) == 0
    assert sympy.expand(torques.sympy().jacobian(a) - matrix.sympy()) == sympy.zeros(2, 2)
    x = np.random.default_rng(4).normal(size=(3, 2))
    numbers = torques.values | {f"{letter}{k + 1}": x[i, k] for i, letter in enumerate("qva") for k in range(2)}
    inserted = lw.codegen.symbolic(arm, "mass_matrix_inverse").sympy() * torques.sympy()
    found = inserted.subs({symbol: numbers[symbol.name] for symbol in inserted.free_symbols})
    close([float(y) for y in found], np.linalg.solve(matrix(x[0]), torques(*x)), 1e-12)


def test_numerators_have_no_brackets_around_them():
    halves = {"r1": "l1/2", "r2": "l2/2"}
    latex = lw.codegen.symbolic(lw.mechanisms.planar_arm(2), "mass-matrix-inverse", halves).latex()
    assert r"\frac{4 I_{2} + m_{2} l_{2}^{2}}{4 \Delta}" in latex and r"\frac{\left(" not in latex


def test_all_lengths_of_a_linkage_are_symbols_and_parameters():
    """The closure of a four-bar, by complex numbers along its bars; loops of other lengths by numbers."""
    z, lengths = lw.Revolute((0, 0, 1)), {"l1": 0.3, "l2": 0.9, "l3": 0.7, "p3": 1.0}
    builder = lw.Builder()
    for name, length in zip(("crank", "coupler", "rocker"), lengths.values(), strict=False):
        builder.link(name, 1.0, (length / 2, 0, 0), (1e-3, length**2 / 12, length**2 / 12))
    builder.joint("A", z, "ground", "crank").joint("B", z, "crank", "coupler", (0.3, 0, 0))
    builder.joint("D", z, "ground", "rocker", (1.0, 0, 0))
    mech = builder.loop("C", z, "coupler", (0.9, 0, 0), "rocker", (0.7, 0, 0)).build("bars")
    closure = lw.codegen.symbolic(mech, "position_error")
    assert set(closure.symbols) == {"q1", "q2", "q3", *lengths}
    assert {name: closure.values[name] for name in lengths} == lengths
    q = np.random.default_rng(2).normal(size=(5, 3))
    changed = {name: 2.0 * x + 0.1 for name, x in lengths.items()}
    for given in (lengths, changed):
        bars = given["l1"] * np.exp(1j * q[:, 0]) + given["l2"] * np.exp(1j * (q[:, 0] + q[:, 1]))
        gap = (given["p3"] + given["l3"] * np.exp(1j * q[:, 2]) - bars) * np.exp(-1j * (q[:, 0] + q[:, 1]))
        close(closure(q, **given)[:, :2], np.stack([gap.real, gap.imag], axis=-1), 1e-14)
    close(closure(q), lw.constraints.position_error(mech, q), 1e-14)
    sides = lw.pose((0.8, 0.1, 0.0), rpy=(0.0, 0.0, 0.3)), lw.pose((0.6, -0.2, 0.0))
    other = mech.spanning_tree.with_loops(lw.constraints.Loop("C", z, "coupler", sides[0], "rocker", sides[1]))
    kernel = lw.compile("position_error", mech, parameters=("C.pose_a", "C.pose_b"))
    close(kernel(q, *sides), lw.constraints.position_error(other, q), 1e-14)
    at, still = lw.constraints.assemble(other, {"A": 0.4}, hold="A"), np.zeros(3)
    moving = lw.compile("closed_forward_dynamics", mech, parameters=("C.pose_a", "C.pose_b"))
    close(moving(at, still, still, *sides), lw.forward_dynamics(other, at), 1e-9)
    for name, says in (
        ("C.pose", "unknown parameter of loop 'C' 'pose'.*'pose_a'"),
        ("D.pose_a", "no loop 'D': known: 'C'"),
        ("pose_b", "that of one loop, 'LOOP.pose_b'"),
    ):
        with pytest.raises(ValueError, match=says):
            lw.compile("position_error", mech, parameters=(name,))


# -- what is refused ------------------------------------------------------------------------------------


def test_formulas_that_make_no_sense_are_refused():
    arm = lw.mechanisms.planar_arm(2)
    for symbols, says in (
        ({"r7": "l1"}, "has no symbol 'r7': available: I1, I2, "),
        ({"r1": "l1/3"}, "r1 = l1/3 does not hold for mechanism 'planar_arm_2': 0.5 is not 0.333333"),
        ({"r1": "a1/2"}, "a1 is a coordinate"),
        ({"r1": "sin(l1)"}, "no sum of products"),
        ({"r1": "l1/"}, "is no formula"),
        ({"r1": "L + h"}, "nothing tells the number of"),
    ):
        with pytest.raises(ValueError, match=re.escape(says).replace("available:", "available:")):
            lw.codegen.symbolic(arm, "mass_matrix", symbols)
    with pytest.raises(ValueError, match="unknown parameter 'masses'"):
        lw.codegen.symbolic(arm, "mass_matrix", parameters=("masses",))
    with pytest.raises(ValueError, match="unknown algorithm"):
        lw.codegen.symbolic(arm, "torque")
    with pytest.raises(lw.codegen.FormulaError, match="terms: formulas are for small mechanisms"):
        lw.codegen.symbolic(lw.mechanisms.chain(4), "inverse_dynamics")
    with pytest.raises(lw.codegen.FormulaError, match="depends on a comparison"):
        lw.codegen.symbolic(lw.mechanisms.random_tree(1, 0, ["spherical"]), "integrate")
    with pytest.raises(IndexError, match="2 indices"):
        lw.codegen.symbolic(arm, "mass_matrix")[0]


def test_squares_of_roots_are_reduced_so_that_what_cancels_is_gone():
    arm = lw.mechanisms.planar_arm(2)
    formulas = lw.codegen.symbolic(arm, "diagonal_coriolis")
    text = formulas.text()
    assert "R1**" not in text and "R2**" not in text
    first, second = text.splitlines()[-2:]
    assert first.count("nu") == second.count("nu") == 3 and "k1" not in text  # a product and a square of rates each
    rng = np.random.default_rng(2)
    for _ in range(3):
        q, nu = rng.normal(size=2), rng.normal(size=2)
        force = formulas(q, nu)
        np.testing.assert_allclose(force, lw.formulations.diagonal.coriolis(arm, q, nu), atol=1e-12)
        assert abs(force @ nu) < 1e-12  # it does no work
