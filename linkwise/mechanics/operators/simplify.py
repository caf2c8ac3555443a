"""Equal forms of an expression, and the cheapest one.

The laws of the algebra (``laws.py``) bring an expression to normal forms; with common factors extracted, each is a form
for computation.  The cheapest depends on the mechanism: operations of each form are counted on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ...mechanism import Mechanism, require_mechanism
from .algebra import (
    E_phi,
    G,
    H,
    M,
    P,
    P_plus,
    R,
    bias_acceleration,
    gravity,
    phi,
    psi,
    reference_acceleration,
    tau_bar,
)
from .expression import Bias, Expression, Vector, product
from .identities import Rule, UnknownInverse, canonical, expanded, needs_no_armature
from .laws import GAINS, RICCATI, TRANSFER, make_laws
from .plan import COLUMN, specialized
from .record import Combination, Step
from .spaces import JOINT
from .steps import StepBuilder
from .structure import written_out
from .words import Polynomial, TooManyTerms, add, as_expression, difference, multiplied_out

MORE_STEPS = 5  # length relative to the form with the fewest steps, above which forms are not tried
MANY_WORDS = 256  # expressions with more terms after expansion are left as written

#: Articulated inertias in the parents' frames: the articulated-body algorithm (ABA).
_AS_PARENTS_FEEL = (
    *TRANSFER,
    *(rule for rule in GAINS if rule.left != P_plus),
    Rule(psi @ P, P + psi @ E_phi @ P_plus, "jain1995 (4.8), (4.10): psi = I + psi E_psi, tau_bar P = P+"),
)
#: Link inertias instead of articulated ones: rodriguez1992 (60-62).
_BY_LINKS = (
    *TRANSFER,
    *GAINS,
    Rule(psi @ P, psi @ M @ phi.T - P @ phi.T + P, "jain1995 (4.9), multiplied by psi and phi*"),
)
_ARTICULATED = (*TRANSFER, *GAINS, *RICCATI)


def simplified(expression: Expression, mech: Mechanism | None) -> Expression:
    """The cheapest equal form: by counted operations on a mechanism, or by the number of steps."""
    if mech is None:
        return min(equal_forms(expression), key=lambda form: (extent(form)[:2], len(list(form.walk()))))
    require_mechanism(mech)
    from ...compiler.pipeline import operations  # imported here: that module counts operations

    forms = promising_forms(expression, mech)
    return min(forms, key=lambda form: (operations(form, mech), len(list(form.walk()))))


def promising_forms(expression: Expression, mech: Mechanism) -> tuple[Expression, ...]:
    """For a mechanism, the expression as written and equal forms with different computations. Among forms with equally
    many recursions only the one with the fewest steps is kept, if it is not much longer than others."""
    rotors = any(any(body.armature) for body in mech.bodies)
    written, *others = equal_forms(specialized(expression, mech), rotors)
    if not others:
        return (written,)
    done = {form: extent(form) for form in (written, *others)}
    most = min(cost.steps for cost in done.values()) + MORE_STEPS
    best: dict[int, Expression] = {}
    for form in others:
        cost = done[form]
        if cost.steps < done[best.setdefault(cost.recursions, form)].steps:
            best[cost.recursions] = form
    different = (form for form in best.values() if done[form].work != done[written].work)
    return (written, *(form for form in different if done[form].steps <= most))


class Extent(NamedTuple):
    """Size of a computation: recursions over all links and total steps; ``work`` is equal for equal computations."""

    recursions: int
    steps: int
    work: int


def extent(expression: Expression) -> Extent:
    vector = expression if expression.is_vector else product(expression, Vector(COLUMN, expression.domain))
    build = StepBuilder()
    value = build.of(written_out(vector))
    steps = build.steps_for(value)
    known: dict[Step, int] = {}
    for step in steps:  # inputs first
        inputs = frozenset((role, _sum_of(terms, known)) for role, terms in step.inputs.items())
        uses = tuple(known[used] for used in step.uses)
        known[step] = hash((step.action, step.space, inputs, uses, step.name, step.absorbed, step.factored))
    return Extent(sum(step.direction is not None for step in steps), len(steps), _sum_of(value, known))


def _sum_of(terms: Combination, known: dict[Step, int]) -> int:
    return hash(frozenset((known[step], weight) for step, weight in terms))


@lru_cache(maxsize=1024)
def equal_forms(expression: Expression, rotors: bool = True) -> tuple[Expression, ...]:
    """The expression as written, and equal forms with different expansions.

    rotors   whether joints may have them: excludes other forms of inverses that are known only without rotors
    """
    if rotors and needs_no_armature(expression) is not None:
        return (expression,)
    try:
        words = multiplied_out(expanded(expression))
    except (TooManyTerms, UnknownInverse, RecursionError):
        return (expression,)
    if not words or len(words) > MANY_WORDS:
        return (expression,)
    forms = {canonical(written_out(expression)): expression}
    for rewritten in _normal_forms(words):
        form = as_expression(rewritten, expression.domain, expression.codomain)
        forms.setdefault(canonical(written_out(form)), form)
    return tuple(forms.values())


def _normal_forms(words: Polynomial) -> Iterator[Polynomial]:
    """Normal forms by the laws of transfer alone, and with the laws of inertias in three directions."""
    transferred = make_laws(TRANSFER).normal_form(words)
    articulated = make_laws(_ARTICULATED).normal_form(words)
    by_links = make_laws(_BY_LINKS, at_the_ground=False).normal_form(_merge_gravity_into_biases(articulated))
    yield from (
        transferred,
        articulated,
        _introduce_tau_bar(make_laws(_AS_PARENTS_FEEL).normal_form(articulated)),
        by_links,
    )
    yield from (_rebase_on_reference(form) for form in (transferred, by_links))


def _introduce_tau_bar(words: Polynomial) -> Polynomial:
    """Replace I - G H by tau_bar."""
    result = dict(words)
    for inside, closed in (((G, H), tau_bar), ((H.T, G.T), tau_bar.T)):
        for word in list(result):
            for start in range(len(word) - 1):
                without = word[:start] + word[start + 2 :]
                if word[start : start + 2] == inside and word in result and result.get(without) == -result[word]:
                    del result[word]
                    add(result, {(*word[:start], closed, *word[start + 2 :]): result.pop(without)})
    return result


def _merge_gravity_into_biases(words: Polynomial) -> Polynomial:
    """Replace words of gravity by words of bias accelerations if the ground's acceleration acts like a bias: more
    words, but one vector less to propagate."""
    pulled = {word: weight for word, weight in words.items() if word[-1:] == (gravity(),)}
    for a in {word[-1] for word in words if word and isinstance(word[-1], Bias) and _is_acceleration(word[-1])}:
        like = {(*word[:-1], gravity()): weight for word, weight in words.items() if word[-1] == a}
        if pulled and make_laws(_ARTICULATED).normal_form(like) == pulled:
            return {word: weight for word, weight in words.items() if word not in pulled} | like
    return words


def _rebase_on_reference(words: Polynomial) -> Polynomial:
    """Accelerations as differences from the reference accelerations r, for which bias forces cost less: H* r joins the
    bias accelerations a, and R r is subtracted from the joint forces. Only for expressions in which these additions
    cancel; others are unchanged."""
    for a in {word[-1] for word in words if word and isinstance(word[-1], Bias) and _is_acceleration(word[-1])}:
        assert isinstance(a, Bias) and a.of is not None
        reference = reference_acceleration(a.of)
        result: Polynomial = {}
        for word, weight in words.items():  # each addition stands beside its term, so that the sum is shared
            add(result, {word: weight})
            if word[-1:] == (a,):
                add(result, {(*word[:-1], H.T, reference): weight})
            elif word and isinstance(word[-1], Vector) and word[-1].codomain == JOINT:
                add(result, {(*word[:-1], R, reference): -weight})
        add(result, {(reference,): 1})
        if not make_laws(_ARTICULATED).normal_form(difference(result, words)):
            return result
    return words


def _is_acceleration(bias: Bias) -> bool:
    return bias.of is not None and bias == bias_acceleration(bias.of)
