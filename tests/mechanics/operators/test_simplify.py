"""Simplified expressions: equal, never dearer, and as cheap as the best form that the papers know."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.algorithms import expressions as ex
from linkwise.mechanics.operators.simplify import equal_forms, promising_forms
from linkwise.mechanics.operators.vectors import input_vectors, space_size

from .random_expressions import Generator, StackedVectors
from .test_identities import TREES

WHITENING = op.I - op.H @ op.psi @ op.K
v, T = op.joint_vector("v"), op.joint_vector("T")
a, b, g = op.bias_acceleration(v), op.bias_force(v), op.gravity()
MECHANISMS = {
    "puma560": lw.mechanisms.puma560(),
    "stanford_arm": lw.mechanisms.stanford_arm(),
    "planar_arm": lw.mechanisms.planar_arm(6),
    "chain": lw.mechanisms.chain(8),
    "tree": lw.mechanisms.random_tree(7, 3, floating_base=True),
    "sliding tree": lw.mechanisms.random_tree(9, 1, joints=("prismatic", "spherical")),
}
FORMS = {
    "bias_free": ex.MASS_MATRIX_INVERSE @ ex.bias_free_moments(ex.b),
    "biased": ex.biased(ex.b),
    "filter_and_smoother": ex.filter_and_smoother(ex.b),
    "without_dalembert_forces": ex.without_dalembert_forces(ex.b),
}


def operations(expression, mech, **options) -> int:
    return sum(lw.compile(expression, mech, target="numpy", **options).op_counts.values())


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_form_of_forward_dynamics_reaches_the_cheapest(name):
    """The articulated-body form, and with it every other: each is found from each."""
    mech = MECHANISMS[name]
    written = {form: operations(FORMS[form], mech, simplify=False) for form in FORMS}
    for form, expression in FORMS.items():
        assert operations(expression, mech) <= min(written.values()), form
        simple = expression.simplify(mech)
        assert operations(simple, mech, simplify=False) == operations(expression, mech), form
    if name == "puma560":
        assert written["bias_free"] > operations(FORMS["bias_free"], mech) == written["biased"] == 690


def test_the_filter_of_a_force():
    """(I - H psi K) H phi x is H psi x (jain1995 B.1): 308 operations on the Puma where what is written takes 350."""
    x, puma = op.link_vector("x"), lw.mechanisms.puma560()
    written = WHITENING @ op.H @ op.phi @ x
    assert written.simplify() == written.simplify(puma) == op.H @ op.psi @ x.placed(None, op.FORCE)
    assert operations(written, puma, simplify=False) == 350
    assert operations(written, puma) == operations(op.H @ op.psi @ x, puma) == 308
    plan = lw.compile(written, puma, target="numpy").plan()
    assert "(I - H @ psi @ K) @ H @ phi @ x\n  simplified to H @ psi @ x: 308 operations instead of 350\n" in plan
    kept = lw.compile(written, puma, target="numpy", simplify=False).plan()
    assert "simplified" not in kept and "phi" in kept.split("Level 2")[1]


@pytest.mark.parametrize("seed", range(40))
def test_forms_are_equal_and_none_is_chosen_that_costs_more(seed):
    rng = np.random.default_rng(seed)
    mech = TREES[seed % 3]
    generator = Generator(rng, mech)
    space = (op.JOINT, op.FORCE, op.MOTION)[seed % 3]
    expression = generator.vector(space, 3) if seed % 2 else generator.operator(op.JOINT, space, 3)
    vectors = {name: rng.normal(size=space_size(own, mech)) for name, own in input_vectors(expression).items()}
    at = StackedVectors(mech, lw.random_state(mech, rng)[0], vectors)
    for form in equal_forms(expression):
        size = at.size_of_terms(expression) + at.size_of_terms(form)
        np.testing.assert_allclose(at.matrix(form), at.matrix(expression), rtol=0.0, atol=1e-11 * size)
    assert promising_forms(expression, mech)[0] == expression
    assert operations(expression, mech) <= operations(expression, mech, simplify=False)


def test_what_is_simple_stays_as_it_is():
    x = op.joint_vector("x")
    for expression in (
        op.H @ op.phi @ op.M @ op.phi.T @ op.H.T @ x,
        WHITENING.T @ op.D.inv @ WHITENING @ x,
        op.B("link3").T @ op.phi.T @ op.H.T,
        op.D - op.D,
    ):
        assert promising_forms(expression, lw.mechanisms.puma560()) == (expression,)
        assert expression.simplify(lw.mechanisms.puma560()) == expression


def test_what_is_known_without_rotors_only():
    """Another form would be accepted where this is refused, and be wrong there."""
    forgetful = (op.H @ op.phi @ op.M @ op.phi.T @ op.H.T).inv @ op.H @ op.phi @ op.link_vector("x")
    assert forgetful.simplify() == forgetful
    with pytest.raises(lw.MechanismError, match="known only without rotor inertias"):
        forgetful.simplify(lw.mechanisms.puma560())
    light = lw.mechanisms.stanford_arm()
    assert not light.parameters.armature.any() and operations(forgetful, light) < operations(
        forgetful, light, simplify=False
    )
    assert forgetful.simplify(light) != forgetful


def test_a_mechanism_is_asked_for():
    with pytest.raises(TypeError, match="a Mechanism is needed"):
        (op.H @ op.phi).simplify("puma560")


def test_inputs_stay_those_of_the_expression_as_written():
    """In their order, whether they matter or not."""
    x, y = op.joint_vector("x"), op.joint_vector("y")
    mech = lw.mechanisms.chain(3)
    expression = WHITENING @ (op.I + op.H @ op.phi @ op.K) @ (y + x) - y
    kernel = lw.compile(expression, mech, target="numpy")
    assert kernel.inputs == ("q", "y", "x") and sum(kernel.op_counts.values()) == 0
    q, values = np.zeros(3), np.random.default_rng(0).normal(size=(2, 3))
    np.testing.assert_array_equal(kernel(q, *values), values[1])


def test_with_parameters_the_cheapest_is_counted_with_them():
    puma = lw.mechanisms.puma560()
    for parameters in ((), ("mass", "com", "inertia")):
        counts = {
            choice: operations(FORMS["bias_free"], puma, parameters=parameters, simplify=choice)
            for choice in (True, False)
        }
        assert counts[True] < counts[False]


def test_mimic_joints_and_loops():
    builder = lw.Builder()
    for name, parent in (("a", "ground"), ("b", "a")):
        builder.link(name, 1.0, (0.5, 0.1, 0.2), np.diag((0.1, 0.2, 0.3)))
        mimic = lw.Mimic("to_a", -0.5) if name == "b" else None
        builder.joint(f"to_{name}", lw.Revolute((0, 1, 1)), parent, name, (None, (0.3, 0.2, 0.1)), mimic=mimic)
    mech = builder.build("coupled")
    q = np.array([0.4])
    expression = op.S.T @ WHITENING @ op.H @ op.phi @ op.link_vector("x")
    x = np.random.default_rng(0).normal(size=(2, 6))
    found = lw.compile(expression, mech, target="numpy")(q, x)
    np.testing.assert_allclose(found, op.dense(expression, mech, q, {"x": x})[:, 0], rtol=1e-12)
    assert "simplified to S.T @ H @ psi @ x" in lw.compile(expression, mech, target="numpy").plan()
    five_bar = lw.mechanisms.five_bar()
    assert operations(ex.DELASSUS_MATRIX, five_bar) < operations(ex.DELASSUS_MATRIX, five_bar, simplify=False)


def test_named_algorithms_are_what_they_are_called():
    with pytest.raises(ValueError, match="unknown option of forward_dynamics 'simplify'"):
        lw.compile("forward_dynamics", lw.mechanisms.puma560(), simplify=False)
