"""Every identity, proved with stacked matrices; what has no inverse; spaces; how expressions are built and printed."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.operators import identities
from linkwise.mechanics.operators.algebra import RECORDS
from linkwise.mechanics.operators.dense import StackedOperators
from linkwise.mechanics.operators.expression import Operator, Sum
from linkwise.mechanics.operators.identities import UnknownInverse
from linkwise.mechanics.operators.spaces import SpaceError
from linkwise.mechanics.operators.vectors import input_vectors

from .random_expressions import Generator

MASS_MATRIX = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T
WHITENING = op.I - op.H @ op.psi @ op.K


def without_armature(mech: lw.Mechanism) -> lw.Mechanism:
    bodies = tuple(dataclasses.replace(body, armature=(0.0,) * body.kind.nv) for body in mech.bodies)
    return dataclasses.replace(mech, bodies=bodies)


TREES = [
    *(lw.mechanisms.random_tree(6, seed) for seed in range(3)),
    lw.mechanisms.random_tree(7, 3, floating_base=True),
    lw.mechanisms.chain(8),
]
LIGHT_TREES = [without_armature(mech) for mech in TREES]


def stacked(mech: lw.Mechanism) -> StackedOperators:
    return StackedOperators(mech, lw.random_state(mech, np.random.default_rng(5))[0])


def close(found: np.ndarray, expected: np.ndarray, size: float = 1.0) -> None:
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-10 * max(size, np.abs(expected).max()))


# -- the rules ----------------------------------------------------------------------------------------


def test_the_trees_can_tell():
    """Some joints have rotors, some links carry two others."""
    assert any(any(body.armature) for mech in TREES for body in mech.bodies)
    assert not any(any(body.armature) for mech in LIGHT_TREES for body in mech.bodies)
    assert any(len(children) > 1 for mech in TREES for children in mech.tree.children)


@pytest.mark.parametrize("rule", identities.INVERSES, ids=lambda rule: str(rule.left))
def test_inverses(rule):
    assert rule.source
    for mech in LIGHT_TREES if rule.without_armature else TREES:
        at = stacked(mech)
        left, right = at.matrix(rule.left), at.matrix(rule.right)
        size = np.linalg.norm(left) * np.linalg.norm(right)
        close(left @ right, np.eye(len(left)), 1e-3 * size)
        close(right @ left, np.eye(len(left)), 1e-3 * size)


@pytest.mark.parametrize("rule", [r for r in identities.INVERSES if r.without_armature], ids=lambda r: str(r.left))
def test_rules_marked_so_fail_with_armature(rule):
    mech = next(mech for mech in TREES if any(any(body.armature) for body in mech.bodies))
    at = stacked(mech)
    assert np.abs(at.matrix(rule.left) @ at.matrix(rule.right) - np.eye(mech.nv)).max() > 1e-3


@pytest.mark.parametrize("rule", (*identities.STRUCTURES, *identities.SIMPLER), ids=lambda rule: str(rule.right))
def test_structures(rule):
    assert rule.source
    for mech in TREES:
        at = stacked(mech)
        left = at.matrix(rule.left)
        close(at.matrix(rule.right), left, float(np.linalg.norm(left)))


@pytest.mark.parametrize("name", [r.name for r in RECORDS.values() if r.definition is not None])
def test_definitions(name):
    assert RECORDS[name].source
    for mech in TREES:
        at = stacked(mech)
        close(at.matrix(RECORDS[name].definition), getattr(at, name))


@pytest.mark.parametrize("name", ["D", "D_half", "M", "P"])
def test_local_inverses(name):
    inverse = RECORDS[name].inverse
    for mech in TREES:
        at = stacked(mech)
        product = getattr(at, name) @ at.matrix(inverse)
        close(product, np.eye(len(product)), 1e-3 * np.linalg.cond(getattr(at, name)))
        reached = np.abs(at.matrix(inverse)) > 1e-12
        owner = mech.v_index if inverse.domain == op.JOINT else None
        blocks = [owner(b.joint) if owner else slice(6 * i, 6 * i + 6) for i, b in enumerate(mech.bodies)]
        for block in blocks:
            reached[block, block] = False
        assert not reached.any(), "the inverse is block diagonal"


def test_every_record_tells_what_its_operator_is():
    for name, record in RECORDS.items():
        assert record.name == name and len(record.meaning.split()) > 2
        applied = [action for action in (record.apply, record.adjoint) if action is not None]
        assert applied or record.definition is not None
        assert all(action.recursion for action in applied if action.direction is not None)


def test_the_mobilities_are_the_diagonal_blocks():
    """Y_i of the recursion (rodriguez1986 Section 10) is the block [i, i] of psi* H* D^-1 H psi."""
    for mech in TREES:
        at = stacked(mech)
        for i, link in enumerate(mech.link_names):
            expression = op.B(link).T @ op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi @ op.B(link)
            found = lw.compile(expression, mech, target="numpy")(lw.random_state(mech, np.random.default_rng(5))[0])
            block = at.Omega[6 * i : 6 * i + 6, 6 * i : 6 * i + 6]
            close(found, block, float(np.linalg.norm(block)))


# -- which inverses are found -------------------------------------------------------------------------

KNOWN = [
    op.phi,
    op.psi.T,
    op.D,
    op.P,
    op.M,
    2.0 * op.phi,
    -(op.I - op.E_phi),
    -0.3 * (MASS_MATRIX + op.R),
    op.R + MASS_MATRIX,
    WHITENING,
    3.0 * WHITENING.T,
    op.I - op.E_psi.T,
    op.I - op.H @ op.psi @ op.E_phi @ op.G,
    op.phi @ op.M @ op.phi.T,
    op.D @ WHITENING @ op.D.inv,
    op.identity(op.JOINT),
    -2.0 * op.identity(op.FORCE),
    op.I + op.phi @ op.K @ op.H,
]


@pytest.mark.parametrize("expression", KNOWN, ids=str)
def test_known_inverses(expression):
    mech = TREES[1]
    q, _ = lw.random_state(mech, np.random.default_rng(5))
    inverse = expression.inv
    assert (inverse.domain, inverse.codomain) == (expression.codomain, expression.domain)
    assert inverse.inv == expression
    matrix = op.dense(expression, mech, q)
    size = np.linalg.cond(matrix)
    close(lw.compile(inverse, mech, target="numpy")(q) @ matrix, np.eye(len(matrix)), size)
    close(lw.compile(inverse.T, mech, target="numpy")(q).T @ matrix, np.eye(len(matrix)), size)


UNKNOWN = [
    op.E_phi,
    op.E_psi.T,
    op.H,
    op.G,
    op.tau,
    op.tau_bar,
    op.P_plus,
    op.R,
    op.I + op.phi,
    op.I - op.H @ op.phi @ op.K,
    2.0 * MASS_MATRIX + op.R,
    op.B("link1"),
    op.joint_vector("x"),
    op.D - op.D,
    op.D @ op.H @ op.G,
]


@pytest.mark.parametrize("expression", UNKNOWN, ids=str)
def test_unknown_inverses_say_so(expression):
    with pytest.raises(UnknownInverse) as error:
        _ = expression.inv
    message = str(error.value)
    assert str(expression) in message
    assert "no identity gives the inverse" in message or "it has no inverse" in message


# -- what compiling refuses ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [MASS_MATRIX.inv, (2.0 * MASS_MATRIX).inv, (op.D @ MASS_MATRIX).inv, MASS_MATRIX.inv @ op.joint_vector("x")],
    ids=str,
)
def test_a_mass_matrix_without_rotors_is_refused_where_there_are_rotors(expression):
    with pytest.raises(
        lw.MechanismError, match=r"'puma560' have armature: write \(H @ phi @ M @ phi.T @ H.T \+ R\).inv"
    ):
        lw.compile(expression, lw.mechanisms.puma560(), target="numpy")
    lw.compile(expression, lw.mechanisms.chain(3), target="numpy")


def test_loops_are_refused():
    builder = lw.Builder()
    for name, parent in (("a", "ground"), ("b", "a")):
        builder.link(name, 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1))
        builder.joint(f"to_{name}", lw.Revolute((0, 0, 1)), parent, name, (None, (0.0 if name == "a" else 1.0, 0, 0)))
    builder.loop("closing", lw.Revolute((0, 0, 1)), "b", (None, (1.0, 0, 0)), "ground", (None, (1.5, 0, 0)))
    mech = builder.build("ring")
    with pytest.raises(lw.MechanismError, match="ignore the loops 'closing' of mechanism 'ring'"):
        lw.compile(op.D, mech, target="numpy")
    lw.compile(op.D, mech.spanning_tree, target="numpy")


def test_massless_links_have_no_inverse_inertia():
    with pytest.raises(lw.MechanismError, match="singular, such as the inertia of a link without mass"):
        lw.compile(op.M.inv, lw.mechanisms.puma560(), target="numpy")


def test_a_link_that_is_not_there():
    with pytest.raises(lw.MechanismError, match="no link or frame 'hand'"):
        lw.compile(op.B("hand").T @ op.phi.T @ op.H.T, lw.mechanisms.chain(3), target="numpy")


# -- spaces -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "sides"),
    [
        (lambda: op.H @ op.H, ("link force space", "joint space")),
        (lambda: op.H @ op.joint_vector("x"), ("link force space", "joint space")),
        (lambda: op.phi.T @ op.phi, ("link motion space", "link force space")),
        (lambda: op.phi + op.phi.T, ("link force space", "link motion space")),
        (lambda: op.joint_vector("x") + op.H, ("scalars", "link force space")),
        (lambda: op.B("arm").T @ op.B("arm"), ("link motion space", "link force space")),
        (lambda: op.phi.T @ op.A("arm") @ op.A("hand").T, ("motion at link 'arm'", "force at link 'hand'")),
        (lambda: op.D @ op.link_vector("f"), ("joint space", "open space")),
        (lambda: op.joint_vector("x") + op.link_vector("f"), ("joint space", "open space")),
        (lambda: op.joint_vector("x").T @ op.H.T, ("joint space", "link motion space")),
    ],
)
def test_space_errors_name_both_sides(build, sides):
    with pytest.raises(SpaceError) as error:
        build()
    for side in sides:
        assert side in str(error.value)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: op.link_vector("F") + op.joint_vector("T"),
            "(F) + (T): the left side maps scalars to an open space, the right side scalars to joint space",
        ),
        (
            lambda: op.joint_vector("T") - op.link_vector("F"),
            "(T) - (F): the left side maps scalars to joint space, the right side scalars to an open space",
        ),
        (
            lambda: op.D + op.R + op.phi,
            "(D + R) + (phi): the left side maps joint space to joint space, "
            "the right side link force space to link force space",
        ),
    ],
)
def test_sums_name_the_terms_that_differ(build, message):
    with pytest.raises(SpaceError) as error:
        build()
    assert str(error.value) == message


@pytest.mark.parametrize("bias", [op.bias_force, op.bias_acceleration], ids=lambda bias: bias.__name__)
@pytest.mark.parametrize("wrong", ["v", 3, None, op.D, op.link_vector("v"), op.H @ op.link_vector("f")], ids=str)
def test_biases_take_joint_vectors(bias, wrong):
    with pytest.raises(TypeError, match=f'{bias.__name__} takes a joint vector of velocities such as joint_vector."v"'):
        bias(wrong)


@pytest.mark.parametrize("vector", [op.joint_vector, op.link_vector], ids=lambda vector: vector.__name__)
@pytest.mark.parametrize("name", ["", " ", 3, None])
def test_vectors_have_names(vector, name):
    with pytest.raises(ValueError, match="name of a vector must be a non-empty string, not"):
        vector(name)


def test_a_link_vector_takes_its_space_from_its_use():
    f = op.link_vector("f")
    assert input_vectors(op.H @ f) == {"f": op.FORCE}
    assert input_vectors(op.M @ f) == {"f": op.MOTION}
    assert input_vectors(f + op.phi @ f) == {"f": op.FORCE}
    assert input_vectors(op.H @ (f + op.link_vector("h"))) == {"f": op.FORCE, "h": op.FORCE}
    assert input_vectors(f.T @ op.phi @ op.link_vector("h")) == {"f": op.MOTION, "h": op.FORCE}


def test_a_link_vector_in_two_spaces_is_refused():
    f = op.link_vector("f")
    with pytest.raises(SpaceError, match="f is used both in link force space and in link motion space"):
        lw.compile(op.H @ f + op.G.T @ f, lw.mechanisms.chain(2), target="numpy")
    with pytest.raises(SpaceError, match="f is used both in joint space and in link force space"):
        lw.compile(op.joint_vector("f") + op.H @ f, lw.mechanisms.chain(2), target="numpy")


@pytest.mark.parametrize(
    ("expression", "message"),
    [(op.link_vector("f"), "nothing in f says which"), (op.I, "op.identity"), (2.0 * op.I, "op.identity")],
    ids=str,
)
def test_open_spaces_are_refused(expression, message):
    with pytest.raises(SpaceError, match=message):
        lw.compile(expression, lw.mechanisms.chain(2), target="numpy")


def test_an_identity_takes_its_space_from_its_use():
    assert (op.I - op.H @ op.psi @ op.K).domain == op.JOINT
    assert (op.I + op.phi.T).domain == op.MOTION
    assert op.I @ op.phi == op.phi @ op.I == op.phi
    assert (op.I @ op.I).domain is None
    assert op.B("arm").T @ (op.I + op.phi.T) == op.B("arm").T @ (op.identity(op.MOTION) + op.phi.T)


# -- laws of adjoints, sums and products --------------------------------------------------------------


def test_adjoints():
    a, b, x = op.H @ op.phi, op.K @ op.D, op.joint_vector("x")
    assert (a @ b).T == b.T @ a.T
    assert (a - 3.0 * (op.K.T @ op.M.inv)).T == a.T - 3.0 * (op.M.inv @ op.K)
    assert a.T.T == a and x.T.T == x
    assert op.M.T == op.M and op.D.T == op.D and op.R.T == op.R
    assert (op.H.domain, op.H.codomain) == (op.H.T.codomain.dual, op.H.T.domain.dual)
    assert (x.T @ op.D @ x).T == x.T @ op.D @ x
    assert op.phi.inv.T == op.phi.T.inv
    assert (op.B("arm").T).T == op.B("arm")
    zero = op.H @ op.phi - op.H @ op.phi
    assert isinstance(zero, Sum) and (zero.T.domain, zero.T.codomain) == (op.JOINT, op.MOTION)


@pytest.mark.parametrize("seed", range(40))
def test_adjoints_of_random_products(seed):
    generator = Generator(np.random.default_rng(seed), TREES[0])
    left, right = generator.operator(op.FORCE, op.JOINT, 3), generator.operator(op.MOTION, op.FORCE, 3)
    assert (left @ right).T == right.T @ left.T
    assert left.T.T == left and right.T.T == right


def test_expressions_compare_by_structure():
    assert op.H @ op.phi == Operator(RECORDS["H"]) @ Operator(RECORDS["phi"])
    assert hash(op.H @ (op.phi @ op.M)) == hash((op.H @ op.phi) @ op.M)
    assert op.H @ (op.phi @ op.M) == (op.H @ op.phi) @ op.M
    assert op.D + op.D == 2.0 * op.D
    assert op.D + op.R - op.D == op.R
    assert (2.0 * op.H) @ (3.0 * op.phi) == 6.0 * (op.H @ op.phi)
    assert op.D @ (2.0 * op.I) == (2.0 * op.I) @ op.D == 2.0 * op.D
    assert (2.0 * op.identity(op.JOINT)) @ (3.0 * op.I) == 6.0 * op.identity(op.JOINT)
    assert op.D / 4.0 == 0.25 * op.D == op.D * 0.25
    assert op.B("arm") != op.B("hand") and op.phi != op.psi and op.phi != op.phi.T
    assert op.joint_vector("x") != op.joint_vector("y")
    assert identities.canonical(op.D + op.R) == identities.canonical(op.R + op.D)


def test_arrays_are_no_operators():
    with pytest.raises(TypeError):
        _ = np.eye(3) @ op.D
    with pytest.raises(TypeError):
        _ = op.D @ np.eye(3)
    with pytest.raises(TypeError):
        _ = op.D + 1.0
    assert np.float64(2.0) * op.D == 2.0 * op.D


# -- printing -----------------------------------------------------------------------------------------

NAMES = {
    **vars(op),
    "a": op.bias_acceleration,
    "b": op.bias_force,
    "g": op.gravity(),
    "rates": op.joint_vector("rates"),
}


@pytest.mark.parametrize("seed", range(150))
def test_what_is_printed_evaluates_to_the_same(seed):
    generator = Generator(np.random.default_rng(seed), TREES[3])
    expression = generator.vector(op.JOINT, 4) if seed % 2 else generator.operator(op.JOINT, op.MOTION, 4)
    vectors = {
        name: op.joint_vector(name) if space == op.JOINT else op.link_vector(name).placed(None, space)
        for name, space in input_vectors(expression).items()
    }
    assert eval(str(expression), NAMES | vectors) == expression
    assert repr(expression) == str(expression)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (WHITENING.T @ op.D.inv @ WHITENING, "(I - K.T @ psi.T @ H.T) @ D.inv @ (I - H @ psi @ K)"),
        (MASS_MATRIX + op.R, "H @ phi @ M @ phi.T @ H.T + R"),
        (-2.5 * (op.H @ op.phi) / 3.0, "-0.8333333333333333 * (H @ phi)"),
        ((op.I + op.H @ op.phi @ op.K).inv, "(I + H @ phi @ K).inv"),
        (op.B("left hand").T, "B('left hand').T"),
        (op.D - op.D, "0"),
        (op.joint_vector("x").T @ op.D @ op.joint_vector("x"), "x.T @ D @ x"),
        (op.M @ op.bias_acceleration(op.joint_vector("v")) + op.bias_force(op.joint_vector("v")), "M @ a(v) + b(v)"),
    ],
)
def test_how_expressions_are_printed(expression, text):
    assert str(expression) == text


# -- inverses over the coordinates, copies --------------------------------------------------------------

COUPLED = op.S.T @ (MASS_MATRIX + op.R) @ op.S


@pytest.mark.parametrize(
    "inside",
    [
        COUPLED + op.S.T @ op.S,
        COUPLED + op.identity(op.COORDINATE),
        op.S.T @ op.H @ op.phi @ op.P @ op.phi.T @ op.H.T @ op.S,
    ],
    ids=str,
)
def test_symmetric_matrices_over_the_coordinates_are_inverted_with_or_without_mimic_joints(inside):
    tau = op.coordinate_vector("tau")
    for mech in (*TREES[:2], lw.mechanisms.puma560()):
        q, rng = lw.random_state(mech, np.random.default_rng(5))[0], np.random.default_rng(6)
        expected = np.linalg.inv(op.dense(inside, mech, q))
        scale = np.linalg.norm(expected) * np.linalg.cond(expected)
        x = rng.normal(size=mech.nv)
        close(lw.compile(inside.inv, mech, target="numpy")(q), expected, 1e-2 * scale)
        close(lw.compile(inside.inv @ tau, mech, target="numpy")(q, x), expected @ x, 1e-2 * scale)


def test_expressions_are_copied_and_pickled():
    v = op.joint_vector("v")
    for expression in (op.H @ op.phi, op.B("link6"), op.bias_force(v), op.gravity(), COUPLED.inv @ op.S.T @ op.R @ v):
        for copied in (copy.deepcopy(expression), pickle.loads(pickle.dumps(expression))):
            assert copied == expression and hash(copied) == hash(expression)
        assert b"_hash" not in pickle.dumps(expression), "hashes are those of one process"
