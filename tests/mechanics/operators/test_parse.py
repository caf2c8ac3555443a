"""Expressions from text: what is understood, and that nothing else is ever run."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.algorithms import expressions as named
from tests.work import lines_run

T, v, f = op.joint_vector("T"), op.joint_vector("v"), op.link_vector("f")
VECTORS = {"T": T, "v": v, "f": f}


MASS_MATRIX = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R
BIAS_FORCE = (
    op.H
    @ op.phi
    @ (
        op.M @ op.phi.T @ (op.bias_acceleration(op.joint_vector("v")) + op.gravity())
        + op.bias_force(op.joint_vector("v"))
    )
)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("(I - H @ psi @ K).T @ D.inv @ (I - H@psi@K) @ T", named.WHITENING.T @ op.D.inv @ named.WHITENING @ T),
        ("H @ phi @ M @ phi.T @ H.T + R", MASS_MATRIX),
        (" (H @ phi @ M @ phi.T @ H.T + R).inv\n", MASS_MATRIX.inv),
        ("-H @ phi @ f", -(op.H @ op.phi @ f)),
        ("2 * H - H / 4 + (1 + 2) * H * 0.5", 3.25 * op.H),
        ("+phi - -phi", 2 * op.phi),
        ("2 * identity(JOINT)", 2 * op.identity(op.JOINT)),
        ("identity(MOTION) @ phi.T", op.phi.T),
        ('B("tool").T @ phi.T @ H.T', op.B("tool").T @ op.phi.T @ op.H.T),
        ("A('a b-c').T @ P @ A('a b-c')", op.A("a b-c").T @ op.P @ op.A("a b-c")),
        ('D @ joint_vector("T")', op.D @ T),
        ('phi @ link_vector("f")', op.phi @ f),
        ("T.T @ D @ T", T.T @ op.D @ T),
        ("H @ phi @ (M @ phi.T @ (bias_acceleration(v) + gravity()) + bias_force(v))", BIAS_FORCE),
        ('bias_force(joint_vector("v"))', op.bias_force(op.joint_vector("v"))),
        ("Phi - Psi", op.Phi - op.Psi),
    ],
)
def test_text_means_what_python_means(text, expected):
    assert op.parse(text, VECTORS) == expected


LEAVES = (
    "phi",
    "psi",
    "E_phi",
    "E_psi",
    "tau",
    "tau_bar",
    "G @ H",
    "phi.inv",
    "M @ M.inv",
    "I + phi",
    "P @ H.T @ D.inv @ H",
)
FORMS = ("({}) @ ({})", "({}) + ({})", "({}) - ({})", "({}) - 0.5 * ({})", "-({}) @ (2 * ({}))")
TEXTS = st.recursive(  # operators from link forces to link forces
    st.sampled_from(LEAVES),
    lambda inner: st.builds(str.format, st.sampled_from(FORMS), inner, inner),
    max_leaves=8,
)


@given(TEXTS)
def test_printed_expressions_are_read_back(text):
    expression = op.parse(text)
    assume(all(str(part) != "0" for part in expression.walk()))
    again = op.parse(str(expression))
    assume(again.domain is not None)  # zero and a lone identity are printed without their spaces
    assert again == expression


def test_what_is_parsed_can_be_compiled():
    mech = lw.mechanisms.stanford_arm()
    q, tau = np.random.default_rng(1).normal(size=(2, 6))
    text = "(I - H @ psi @ K).T @ D.inv @ (I - H @ psi @ K) @ T"
    kernel = lw.compile(op.parse(text, {"T": T}), mech, target="numpy")
    np.testing.assert_allclose(kernel(q, tau), np.linalg.solve(lw.mass_matrix(mech, q), tau), rtol=1e-9)


@pytest.mark.parametrize(
    "text, message",
    [
        ("psy @ f", "column 1: 'psy' is no operator and no declared vector: did you mean 'psi'"),
        ("H @ x", "--joint x or --link x"),
        ("", "no expression"),
        ("H @", "no expression"),
        ("2", "a number, not an expression"),
        ("2 + 3 * 4", "a number, not an expression"),
        ("H * M", "column 1: [*] multiplies by a number"),
        ("H / M", "only numbers divide"),
        ("1 / 0 * H", "division by zero"),
        ("H / 0", "division by zero"),
        ("H + 1", "cannot be joined by [+]"),
        ("2 @ H", "cannot be joined by @"),
        ("2 .T @ H", "a number has no .T"),
        ("H.t", ".t is unknown; there are .T and .inv"),
        ("B", "B is called with"),
        ("B()", "B is called with"),
        ("B(link='a')", "B is called with"),
        ("B(H)", "B takes a name in quotes"),
        ("H(1)", "only B, A"),
        ("gravity(1)", "gravity is called with"),
        ("bias_force(f)", "takes the joint vector of velocities"),
        ("bias_force(D @ v)", "takes the joint vector of velocities"),
        ("joint_vector('a b')", "must be an identifier"),
        ("1e999 * H", "finite number"),
        ("1e308 * 10 * H", "finite number"),
        ("H / 1e-320", "finite number"),
        ("True * H", "no real number"),
        ("1j * H", "no real number"),
        ("'H'", "no real number"),
        ("... @ H", "no real number"),
    ],
)
def test_errors_say_where_and_why(text, message):
    with pytest.raises(op.ParseError, match=message):
        op.parse(text, VECTORS)


def longest_allowed() -> None:
    op.parse("phi" + " @ phi" * 150)
    op.parse("(I + phi @ " * 40 + "phi" + ")" * 40)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('echo')",
        "H.__class__.__mro__[1].__subclasses__()",
        "().__class__.__base__",
        "B.__globals__",
        "B('a').__init__.__globals__",
        "H.placed(None, None)",
        "H.T.__reduce__()",
        "B(*['a'])",
        "B(__import__('os').name)",
        "bias_force(v.__class__)",
        "joint_vector('T; system()')",
        "joint_vector('__class__' + 'x')",
        "lambda: H",
        "(lambda x: x)(H)",
        "[x for x in (H,)]",
        "{H: H}",
        "(H for _ in iter(int, 1))",
        "(x := H)",
        "H if H else M",
        "H and M",
        "not H",
        "~H",
        "H[0]",
        "H < M",
        "f'{H}'",
        "B(f'{H}')",
        "await H",
        "(yield)",
        "H; M",
        "import os",
        "H\x00",
        "H # \n + M",
        "H ** 2",
        "9 ** 9 ** 9 * H",
        "9 ** 999999999 * H",
        "1 << 999999999",
        "9" * 5000 + " * H",
        "0x" + "f" * 5000 + " * H",
        "-" * 5000 + "H",
        "(" * 5000 + "H" + ")" * 5000,
        "H" + ".T" * 4000,
        "phi" + " @ phi" * 1500,
        "H + " * 100_000 + "H",
        "ⅿ @ H",
    ],
    ids=lambda text: text[:24],
)
def test_hostile_text_is_refused_quickly(text):
    def refused():
        nonlocal caught
        with pytest.raises(op.ParseError) as caught:
            op.parse(text, VECTORS)

    caught = None
    assert lines_run(refused) < 2 * lines_run(longest_allowed)
    assert len(str(caught.value)) < 400 and "\n" not in str(caught.value)


def test_long_chains_within_the_limits_are_fine():
    assert len(op.parse("phi" + " @ phi" * 150).parts()) == 151
    nested = op.parse("(I + phi @ " * 40 + "phi" + ")" * 40)
    assert nested.domain == op.FORCE


def test_an_inverse_that_nobody_knows_is_found_out_in_polynomial_time():
    def refused():
        with pytest.raises(op.UnknownInverse):
            op.parse("(" + "phi @ " * 32 + "E_phi).inv")

    assert lines_run(refused) < 50 * 32**3  # every way to split it would be more than 2**31


def test_errors_of_the_algebra_pass_through():
    with pytest.raises(op.SpaceError, match="joint space"):
        op.parse("H @ H")
    with pytest.raises(op.SpaceError, match="joint space"):
        op.parse("K @ f", VECTORS)
    with pytest.raises(op.UnknownInverse, match="E_phi"):
        op.parse("E_phi.inv")


def test_vectors_must_not_hide_operators():
    with pytest.raises(op.ParseError, match="'H'"):
        op.parse("H", {"H": T})
    with pytest.raises(op.ParseError, match="'gravity'"):
        op.parse("gravity()", {"gravity": T})
    with pytest.raises(op.ParseError, match="identifier"):
        op.parse("H", {"a b": T})
    with pytest.raises(op.ParseError, match="text"):
        op.parse(op.H)


def test_a_force_at_one_link_is_six_numbers():
    mech, rng = lw.mechanisms.puma560(), np.random.default_rng(5)
    expression = op.parse("H @ phi @ B('link6') @ f", VECTORS)
    kernel = lw.compile(expression, mech, target="numpy")
    assert kernel.input_shapes["f"] == (6,)
    q, force = rng.normal(size=(2, 6))
    np.testing.assert_allclose(kernel(q, force), lw.jacobian(mech, q, "link6").T @ force, atol=1e-14)
    np.testing.assert_allclose(op.dense(expression, mech, q, {"f": force})[:, 0], kernel(q, force), atol=1e-14)
