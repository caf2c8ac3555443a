"""The laws of the algebra: each against stacked matrices, and all together complete."""

from __future__ import annotations

from itertools import product as every

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.operators import laws
from linkwise.mechanics.operators.expression import Sum, product, total
from linkwise.mechanics.operators.identities import Rule, expanded
from linkwise.mechanics.operators.laws import COMPOSITES, LAWS, WITHOUT_ROTORS, Laws
from linkwise.mechanics.operators.vectors import input_vectors, space_size
from linkwise.mechanics.operators.words import (
    Polynomial,
    TooManyTerms,
    add,
    adjoint,
    as_expression,
    exact,
    multiplied_out,
    notation,
    times,
)

from .random_expressions import Generator, StackedVectors
from .test_identities import LIGHT_TREES, TREES, close, stacked

SYSTEMS = {
    "laws": LAWS,
    "composites": (*LAWS, *COMPOSITES),
    "without rotors": (*WITHOUT_ROTORS, *LAWS),
    "composites without rotors": (*WITHOUT_ROTORS, *LAWS, *COMPOSITES),
}


@pytest.mark.parametrize("rule", (*LAWS, *COMPOSITES, *WITHOUT_ROTORS), ids=lambda rule: str(rule.left))
def test_laws_hold(rule):
    assert rule.source
    for mech in LIGHT_TREES if rule in WITHOUT_ROTORS else TREES:
        at = stacked(mech)
        left = at.matrix(rule.left)
        right = at.matrix(rule.right.placed(rule.left.domain, rule.left.codomain))
        close(right, left, float(1.0 + np.linalg.norm(left)) * 10.0)


@pytest.mark.parametrize("rule", WITHOUT_ROTORS, ids=lambda rule: str(rule.left))
def test_what_holds_without_rotors_fails_with_them(rule):
    at = stacked(next(mech for mech in TREES if any(any(body.armature) for body in mech.bodies)))
    assert np.abs(at.matrix(rule.left) - at.matrix(rule.right)).max() > 1e-3


@pytest.mark.parametrize("inner", [op.M, op.P @ op.P.inv @ op.M, op.G @ op.D @ op.G.T, op.P @ op.H.T @ op.G.T], ids=str)
def test_nothing_is_inside_the_first_links(inner):
    rules = laws.make_laws(LAWS)
    for transfer, left in ((op.E_phi, 0), (op.phi, 1), (op.psi, 1)):
        claimed = left * (inner @ op.W.T)
        for mech in TREES:
            at = stacked(mech)
            close(at.matrix(transfer @ inner @ op.W.T), at.matrix(claimed))
        for side in (transfer @ inner @ op.W.T, transfer @ inner @ op.gravity()):
            words = rules.normal_form(multiplied_out(expanded(side)))
            shorter = product(inner, side.factors[-1])
            assert words == rules.normal_form(multiplied_out(expanded(left * shorter)))


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_laws_are_complete(name):
    """Where two laws meet in a word, both ways end in the same sum: normal forms do not depend on the order."""
    rules = Laws(SYSTEMS[name])
    patterns = [pattern for own in rules.patterns.values() for pattern in own]
    assert len(patterns) > 40
    met = 0
    for (one, right, _), (other, instead, _) in every(patterns, patterns):
        for shared in range(1, min(len(one), len(other))):
            if one[len(one) - shared :] == other[:shared]:
                after, before = other[shared:], one[: len(one) - shared]
                met += 1
                assert rules.normal_form(times(right, {after: 1})) == rules.normal_form(times({before: 1}, instead))
        for start in range(len(one) - len(other) + 1):
            if one != other and one[start : start + len(other)] == other:
                within = times(times({one[:start]: 1}, instead), {one[start + len(other) :]: 1})
                assert rules.normal_form(right) == rules.normal_form(within)
    assert met > 40


def test_laws_come_with_their_adjoints():
    for name, system in SYSTEMS.items():
        rules = Laws(system)
        for own in rules.patterns.values():
            for left, right, _ in own:
                mirrored = rules.normal_form({adjoint(left): 1})
                assert mirrored == rules.normal_form({adjoint(word): w for word, w in right.items()}), name


# -- words ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_factors_taken_out_change_nothing(seed):
    """Multiplied out and put together again, an expression has the same value; so has its normal form."""
    mech, rng = TREES[seed % 3], np.random.default_rng(seed)
    generator = Generator(rng, mech)
    space = (op.JOINT, op.FORCE, op.MOTION)[seed % 3]
    expression = generator.vector(space, 3) if seed % 2 else generator.operator(op.MOTION, space, 3)
    sizes = {name: space_size(own, mech) for name, own in input_vectors(expression).items()}
    vectors = {name: rng.normal(size=size) for name, size in sizes.items()}
    at = StackedVectors(mech, lw.random_state(mech, rng)[0], vectors)
    words = multiplied_out(expanded(expression))
    for form in (words, laws.make_laws(LAWS).normal_form(words)):
        rebuilt = as_expression(form, expression.domain, expression.codomain)
        assert (rebuilt.domain, rebuilt.codomain) == (expression.domain, expression.codomain)
        size = at.size_of_terms(expression) + at.size_of_terms(rebuilt)
        np.testing.assert_allclose(at.matrix(rebuilt), at.matrix(expression), rtol=0.0, atol=1e-11 * size)


def test_weights_are_what_was_meant():
    assert exact(2.0) == 2 and isinstance(exact(2.0), int)
    assert exact(0.1) * 10 == 1 and exact(-1.0 / 3.0) * 3 == -1
    assert exact(3 * 0.3) * 10 == 9 and exact(0.1 + 0.2) * 10 == 3
    assert float(exact(np.pi)) == np.pi and exact(1.000001) != 1 and exact(1.0 + 1e-14) != 1


def test_sums_cancel():
    words: Polynomial = {(op.H,): 1}
    add(words, {(op.H,): 1, (op.H, op.phi): 2}, -1)
    assert words == {(op.H, op.phi): -2}
    assert isinstance(as_expression({}, op.FORCE, op.JOINT), Sum)


def test_what_is_too_large_is_not_multiplied_out():
    wide = total(tuple((1.0, op.D if i % 2 else op.R) for i in range(2))) @ (op.D + op.R)
    for _ in range(12):
        wide = wide @ (op.D + op.R)
    with pytest.raises(TooManyTerms, match="too large to be multiplied out"):
        multiplied_out(wide)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ((op.I - op.H @ op.psi @ op.K).T @ op.D.inv, "(I - K* psi* H*) D^-1"),
        (op.D_half.inv.T @ op.D_half, "D_half^-1* D_half"),
        (2.0 * (op.P @ op.A("hand")) - op.P @ op.A("hand") / 3.0, "5/3 P A(hand)"),
        ((op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R).inv, "(H phi M phi* H* + R)^-1"),
        (op.joint_vector("x").T @ op.D @ op.joint_vector("x"), "x* D x"),
        (op.D - op.D, "0"),
    ],
)
def test_the_papers_notation(expression, text):
    expression = expanded(expression) if "half" in text else expression
    assert notation(expression) == text


def test_rules_are_kept_by_their_first_letter():
    rules = Laws((Rule(op.phi @ op.E_phi, op.phi - op.I, "here"),))
    assert set(rules.patterns) == {op.phi, op.E_phi.T}
    assert rules.rewritten((op.H, op.phi)) is None
