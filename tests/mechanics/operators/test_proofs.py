"""Proofs: verdicts on true and false identities, chains of laws, counterexamples, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.operators.expression import Expression, Identity, Operator, product, total
from linkwise.mechanics.operators.identities import expanded, rebuilt
from linkwise.mechanics.operators.laws import LAWS, Laws, make_laws
from linkwise.mechanics.operators.spaces import SpaceError
from linkwise.mechanics.operators.words import Polynomial, TooManyTerms, add, multiplied_out

from .random_expressions import OPERATORS, Generator, StackedVectors
from .test_identities import TREES

MASS_MATRIX = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R
WHITENING = op.I - op.H @ op.psi @ op.K
JACOBIAN = op.B("hand").T @ op.phi.T @ op.H.T
x, y, T = op.joint_vector("x"), op.joint_vector("y"), op.joint_vector("T")
a, b, g = op.bias_acceleration(op.joint_vector("v")), op.bias_force(op.joint_vector("v")), op.gravity()


# -- random identities --------------------------------------------------------------------------------------


def random_words(rng: np.random.Generator) -> tuple[Expression, Polynomial]:
    """An expression of few words."""
    while True:
        generator = Generator(rng, TREES[int(rng.integers(3))])
        spaces = (op.JOINT, op.FORCE, op.MOTION)
        domain, codomain = spaces[int(rng.integers(3))], spaces[int(rng.integers(3))]
        expression = generator.operator(domain, codomain, int(rng.integers(1, 4)))
        if any(part.is_vector for part in expression.walk()) or not any(
            isinstance(p, Operator) for p in expression.walk()
        ):
            continue
        try:
            words = multiplied_out(expanded(expression))
        except TooManyTerms:
            continue
        if 0 < len(words) < 12 and max(map(len, words)) < 9:
            return expression, words


def spaces_in(word, expression):
    """The spaces between the letters of a word."""
    return [expression.codomain, *(letter.domain for letter in word)]


def used_in_reverse(words: Polynomial, expression: Expression, rules: Laws, rng: np.random.Generator) -> Polynomial:
    """One law used at random: a term of its right side, somewhere in a word, replaced by the left side and the other
    terms; or the left side by the right one."""
    patterns = [
        p for own in rules.patterns.values() for p in own if not p[0][0].record.name.startswith(("Omega", "Kt"))
    ]
    word = list(words)[int(rng.integers(len(words)))]
    spaces = spaces_in(word, expression)
    choices = []
    for left, right, _ in patterns:
        sides = {left: -1, **right}
        for term, weight in sides.items():
            others = {other: own for other, own in sides.items() if other != term}
            for start in range(len(word) - len(term) + 1):
                fits = word[start : start + len(term)] == term and spaces[start] == left[0].codomain
                if fits and spaces[start + len(term)] == left[-1].domain:
                    choices.append((start, term, weight, others))
    start, term, weight, others = choices[int(rng.integers(len(choices)))]
    result = dict(words)
    scale = result.pop(word)
    for other, own in others.items():
        add(result, {word[:start] + other + word[start + len(term) :]: -scale * own}, 1 if weight == 1 else -1)
    return result


def as_sum(words: Polynomial, expression: Expression) -> Expression:
    """The words as they are, nothing taken out."""
    terms = [(0.0, Identity(expression.domain))] if expression.domain == expression.codomain else []
    for word, weight in words.items():
        chain: Expression = Identity(expression.domain)
        for letter in reversed(word):
            chain = product(letter, chain)
        terms.append((float(weight), chain))
    return total(tuple(terms))


@pytest.mark.slow_cases(*(f"[{seed}]" for seed in range(10, 30)))
@pytest.mark.parametrize("seed", range(30))
def test_true_identities_are_proven(seed):
    """Ten a seed, 300 in all: laws used in reverse, up to six times."""
    rng, rules = np.random.default_rng(seed), make_laws(LAWS)
    found = 0
    while found < 10:
        left, words = random_words(rng)
        before = words
        for _ in range(int(rng.integers(2, 7))):
            if words:
                words = used_in_reverse(words, left, rules, rng)
        if not words or words == before or max(map(len, words)) > 16:
            continue
        right = as_sum(words, left)
        proof = op.prove(left, right)
        assert proof.holds is True, f"{left} = {right}"
        found += 1


def other_operators(part: Operator) -> list[Operator]:
    """Operators between the same spaces."""
    known = [one for own in OPERATORS for one in (own, own.T) if isinstance(one, Operator)]
    return [one for one in known if (one.domain, one.codomain) == (part.domain, part.codomain) and one != part]


def with_one_factor_changed(expression: Expression, rng: np.random.Generator) -> Expression | None:
    """The expression with one operator, somewhere, replaced by another."""
    places = [p for p in expression.walk() if isinstance(p, Operator) and not p.link and other_operators(p)]
    if not places:
        return None
    which = int(rng.integers(len(places)))
    met = -1

    def change(part: Expression) -> Expression | None:
        nonlocal met
        if isinstance(part, Operator) and not part.link and other_operators(part):
            met += 1
            if met == which:
                others = other_operators(part)
                return others[int(rng.integers(len(others)))]
        return None

    try:
        return rebuilt(expression, change)
    except op.UnknownInverse:
        return None


def differ(left: Expression, right: Expression) -> bool:
    """Whether numbers tell the two sides apart, on other mechanisms than ``prove`` tries."""
    for mech in TREES[:3]:
        at = StackedVectors(mech, lw.random_state(mech, np.random.default_rng(11))[0], {})
        size = at.size_of_terms(left) + at.size_of_terms(right)
        if np.abs(at.matrix(left) - at.matrix(right)).max() > 1e-9 * size:
            return True
    return False


@pytest.mark.slow_cases(*(f"[{seed}]" for seed in range(10, 30)))
@pytest.mark.parametrize("seed", range(30))
def test_false_identities_get_a_counterexample(seed):
    """Ten a seed, 300 in all: one factor changed."""
    rng = np.random.default_rng(100 + seed)
    found = 0
    while found < 10:
        left, _ = random_words(rng)
        right = with_one_factor_changed(left, rng)
        if right is None or right == left:
            continue
        proof = op.prove(left, right, armature=True)  # the mechanisms below have rotors
        if not proof.counterexample:  # changed, but equal all the same
            assert proof.holds is not False and not differ(left, right), f"{left} = {right}"
            continue
        assert proof.holds is False
        at = proof.counterexample
        shown = [op.dense(rebuilt(side, renaming(at.links)), at.mechanism, at.q, at.vectors) for side in (left, right)]
        np.testing.assert_array_equal(shown[0], at.left)
        np.testing.assert_array_equal(shown[1], at.right)
        assert at.difference > 1e-6 and at.mechanism.name in str(proof)
        found += 1


def renaming(links):
    def change(part):
        return (
            Operator(part.record, links.get(part.link, part.link), part.adjoint) if getattr(part, "link", "") else None
        )

    return change


# -- chains -------------------------------------------------------------------------------------------------


def test_a_proof_is_a_chain_of_identities():
    proof = op.prove(WHITENING @ op.H @ op.phi, op.H @ op.psi)
    assert proof.holds is True and proof.counterexample is None
    assert [step.form for step in proof.steps][-1] == "H psi"
    assert all(step.reason for step in proof.steps)
    assert any("jain1995 (4.10)" in step.reason for step in proof.steps)
    text = str(proof)
    assert text.startswith("(I - H psi K) H phi = H psi") and text.endswith("proven")
    assert repr(proof) == "<Proof (I - H psi K) H phi = H psi: proven>"


@pytest.mark.parametrize("seed", range(20))
def test_every_step_of_a_reduction_is_true(seed):
    rng = np.random.default_rng(seed)
    expression, words = random_words(rng)
    mech = TREES[0]
    at = StackedVectors(mech, lw.random_state(mech, rng)[0], {})
    if any(isinstance(part, Operator) and part.link not in ("", *mech.frames) for part in expression.walk()):
        return
    expected = at.matrix(expression)
    for rule, after in make_laws(LAWS).reduction(words):
        form = as_sum(after, expression)
        size = at.size_of_terms(expression) + at.size_of_terms(form)
        close = np.abs(at.matrix(form) - expected).max() <= 1e-11 * size
        assert close, rule


def test_inverses_are_proven_not_looked_up():
    for left, right in (
        ((op.I + op.H @ op.phi @ op.K).inv, WHITENING),
        (MASS_MATRIX.inv, WHITENING.T @ op.D.inv @ WHITENING),
    ):
        proof = op.prove(left, right)
        assert proof.holds is True
        (lemma,) = proof.lemmas
        assert lemma.holds is True and lemma.steps[-1].form == "I"
        assert "lemma: " in str(proof)


FACTOR = op.I + op.H @ op.phi @ op.K
FACTORIZATION = FACTOR @ op.D @ FACTOR.T
OF_LINKS = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T


@pytest.mark.parametrize(
    ("left", "right", "with_rotors"),
    [
        (FACTORIZATION, OF_LINKS, (FACTORIZATION, MASS_MATRIX)),
        (OF_LINKS @ x, FACTORIZATION @ x, (MASS_MATRIX @ x, FACTORIZATION @ x)),
        (OF_LINKS.inv, WHITENING.T @ op.D.inv @ WHITENING, (MASS_MATRIX.inv, WHITENING.T @ op.D.inv @ WHITENING)),
        (op.D, op.H @ op.P @ op.H.T, (op.D, op.H @ op.P @ op.H.T + op.R)),
        (op.H @ op.phi @ op.G, FACTOR, (op.H @ op.phi @ op.G, FACTOR - op.R @ op.D.inv)),
        (
            op.M,
            op.P - op.E_psi @ op.P @ op.E_psi.T,
            (op.M, op.P - op.E_psi @ op.P @ op.E_psi.T - op.K @ op.R @ op.K.T),
        ),
    ],
    ids=lambda side: str(side)[:40],
)
def test_the_papers_joints_have_no_rotors(left, right, with_rotors):
    """Identities of the papers hold as they are printed; the text gives the one that holds with rotors, which numbers
    of a mechanism with rotors confirm."""
    proof = op.prove(left, right)
    assert proof.holds is True and proof.armature is False and "where no joint has a rotor" in str(proof)
    general = proof.with_rotors
    assert general.holds is True and general.armature is True
    assert f"\n  with rotors: {op.prove(*with_rotors)}".startswith(str(proof)[str(proof).index("\n  with rotors: ") :])
    mech = TREES[0].parameters.with_armature({body.joint: [0.3] * body.kind.nv for body in TREES[0].bodies})
    q = lw.random_state(mech, np.random.default_rng(3))[0]
    at = {"x": np.linspace(1.0, 2.0, mech.nv)}
    sides = [op.dense(side, mech, q, at) for side in (general.left, general.right)]
    np.testing.assert_allclose(*sides, rtol=0, atol=1e-9 * np.abs(sides[0]).max())
    refuted = op.prove(left, right, armature=True)
    assert refuted.holds is False and refuted.counterexample.mechanism.parameters.armature.any()
    assert refuted.holds_without_rotors
    assert "\n  holds where no joint has a rotor (armature=False)\n  with rotors: " in str(refuted)


def test_what_names_rotors_is_about_mechanisms_with_rotors():
    for left, right in ((MASS_MATRIX, FACTORIZATION), (op.R, op.D - op.H @ op.P @ op.H.T)):
        proof = op.prove(left, right)
        assert proof.holds is True and proof.armature is True and "rotor" not in str(proof).partition("\n")[0]
        assert proof.with_rotors is proof
    nothing = op.prove(op.R, 0.0 * op.R)
    assert nothing.holds is False and nothing.holds_without_rotors and nothing.with_rotors is None
    wrong = op.prove(op.H @ op.phi @ op.G, WHITENING)
    assert wrong.holds is False and not wrong.counterexample.mechanism.parameters.armature.any()
    assert wrong.with_rotors is None and "with rotors" not in str(wrong)
    everywhere = op.prove(WHITENING @ op.H @ op.phi, op.H @ op.psi, armature=False)
    assert everywhere.holds is True and everywhere.with_rotors.armature and "with rotors" not in str(everywhere)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # inverses that no identity gives are letters: equal insides, and what their definition says
        (
            (JACOBIAN @ MASS_MATRIX.inv @ JACOBIAN.T).inv,
            (op.B("hand").T @ op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi @ op.B("hand")).inv,
        ),
        ((2.0 * (JACOBIAN @ MASS_MATRIX.inv @ JACOBIAN.T)).inv, 0.5 * (JACOBIAN @ MASS_MATRIX.inv @ JACOBIAN.T).inv),
        (
            (JACOBIAN @ MASS_MATRIX.inv @ JACOBIAN.T).inv @ JACOBIAN @ MASS_MATRIX.inv @ JACOBIAN.T @ op.A("hand").T,
            op.A("hand").T,
        ),
        # coordinates and loops
        (op.S.T @ MASS_MATRIX @ op.S @ (op.S.T @ MASS_MATRIX @ op.S).inv, op.identity(op.COORDINATE)),
        (op.L @ op.phi.T @ op.H.T @ MASS_MATRIX.inv, op.L @ op.psi.T @ op.H.T @ op.D.inv @ WHITENING),
        # numbers: x* A y = y* A* x
        (x.T @ WHITENING @ y, y.T @ WHITENING.T @ x),
        (x.T @ MASS_MATRIX.inv @ x, (WHITENING @ x).T @ op.D.inv @ WHITENING @ x),
        # biases
        (
            MASS_MATRIX.inv @ (T - op.H @ op.phi @ (op.M @ op.phi.T @ (a + g) + b)),
            WHITENING.T @ op.D.inv @ (T - op.H @ op.psi @ (op.M @ op.phi.T @ (a + g) + b + op.K @ T)),
        ),
        (op.psi @ op.M @ op.phi.T @ g, op.P @ op.phi.T @ g),
        # the ground
        (op.W @ op.phi @ op.M @ op.phi.T, op.W @ op.phi @ op.algebra.COMPOSITE),
        # weights
        (op.D / 3.0 + 0.1 * op.R + op.D / 6.0, (5.0 * op.D + op.R) / 10.0),
    ],
    ids=lambda side: str(side)[:40],
)
def test_more_that_holds(left, right):
    assert op.prove(left, right).holds is True
    assert op.prove(right, left).holds is True


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (op.S.T @ MASS_MATRIX @ op.S, op.S.T @ op.D @ op.S),
        (op.L @ op.phi.T @ op.H.T, op.L @ op.psi.T @ op.H.T),
        (x.T @ op.D @ y, x.T @ op.R @ y),
        (op.phi.T @ a, op.psi.T @ a),
        (op.M @ op.phi.T @ a, b),
        (op.phi @ op.B("hand"), op.psi @ op.B("hand")),
        (1.000001 * op.D, op.D),
        (op.M.inv, op.P.inv),
    ],
    ids=str,
)
def test_more_that_does_not_hold(left, right):
    proof = op.prove(left, right)
    assert proof.holds is False and proof.counterexample.difference > 1e-8
    assert "does not hold" in str(proof)


def test_symbols_stand_for_anything():
    """d(A^-1) = -A^-1 dA A^-1 whatever dA is, and what it is not."""
    change = op.symbol("dD", op.JOINT, op.JOINT, self_adjoint=True)
    assert change is op.symbol("dD", op.JOINT, op.JOINT, self_adjoint=True) and change.T == change
    other = op.symbol("X", op.FORCE, op.FORCE)
    assert op.prove(op.D @ (op.D.inv @ change @ op.D.inv) @ op.D, change).holds is True
    commutator = op.phi @ (other @ op.E_phi - op.E_phi @ other) @ op.phi
    assert op.prove(commutator, other @ op.phi - op.phi @ other).holds is True
    assert op.prove(commutator, op.phi @ other - other @ op.phi).holds is False
    # a symbol may reach from link to link: it does not stop at the ground
    assert op.prove(op.E_phi @ other @ op.M @ op.W.T, 0.0 * (op.M @ op.W.T)).holds is False
    with pytest.raises(ValueError, match="a symbol must not be called 'phi': that is an operator"):
        op.symbol("phi", op.FORCE, op.FORCE)
    with pytest.raises(TypeError, match="nothing says how the symbol X is applied"):
        lw.compile(op.H @ other, lw.mechanisms.chain(2), target="numpy")


def test_what_is_not_settled():
    """What A and B of one link do to each other is nothing that the laws know."""
    proof = op.prove(op.A("hand").T @ op.B("hand"), op.identity(op.B("hand").domain))
    assert proof.holds is None and proof.counterexample is None and not proof.steps
    assert "not settled: the laws lead to different normal forms, and the numbers agree" in str(proof)


# -- what is refused ----------------------------------------------------------------------------------------


def test_errors():
    with pytest.raises(TypeError, match="left == right compares how they are written"):
        op.prove(op.H == op.H, True)
    with pytest.raises(TypeError, match="two operator expressions such as op.H @ op.phi, got 3"):
        op.prove(op.H, 3)
    with pytest.raises(SpaceError, match="they cannot be equal"):
        op.prove(op.H, op.phi)
    with pytest.raises(TypeError, match="ask .holds"):
        bool(op.prove(op.H, op.H))
    assert op.prove(op.I, op.I).holds is True
    assert op.prove(op.D @ op.D.inv, op.I).holds is True
