"""Proofs of operator identities: the chain of laws that leads from one side to the other, or a counterexample.

    op.prove((op.I - op.H @ op.psi @ op.K) @ op.H @ op.phi, op.H @ op.psi)

Both sides are written out and rewritten by the laws of the algebra (``laws.py``) until none applies.  Equal normal
forms are a proof.  If they differ, the oracle looks for a mechanism and a state at which the sides differ; where it
finds none, nothing is settled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from .algebra import COMPOSITE, identity
from .counterexample import Counterexample, search
from .expression import Expression, Factored, Inverse, Operator
from .identities import Rule, UnknownInverse, has_adjoint, inverse_of, rebuilt
from .laws import COMPOSITES, LAWS, WITHOUT_ROTORS, Laws
from .spaces import LOOP, SCALAR, SpaceError
from .words import (
    ONE,
    Polynomial,
    TooManyTerms,
    Weight,
    Word,
    add,
    adjoint,
    as_expression,
    multiplied_out,
    notation,
    times,
)


@dataclass(frozen=True)
class ProofStep:
    """One form in a chain of equal ones, in the papers' notation; ``reason`` says why it equals the one before."""

    form: str
    reason: str

    def __str__(self) -> str:
        return f"= {self.form}" + (f"\n      [{self.reason}]" if self.reason else "")


@dataclass(frozen=True, eq=False)
class Proof:
    """What ``prove`` found about ``left`` and ``right``.

    holds           True: proven; False: there is a counterexample; None: neither was found
    steps           from the left side to the right side, each with the identity used and its source
    lemmas          inverses that were used, with their proofs
    counterexample  a mechanism and a state at which the sides differ
    armature        whether joints may have rotors
    """

    left: Expression
    right: Expression
    holds: bool | None
    steps: tuple[ProofStep, ...] = ()
    lemmas: tuple[Proof, ...] = ()
    counterexample: Counterexample | None = None
    armature: bool = True
    reason: str = ""

    def __bool__(self) -> bool:
        raise TypeError(
            "a proof is no truth value: ask .holds, which is True, False, or None where nothing was settled"
        )

    def __str__(self) -> str:
        claim = f"{notation(self.left)} = {notation(self.right)}"
        where = "" if self.armature else ", where no joint has a rotor"
        if self.holds is None:
            return f"{claim}{where}\n  not settled: {self.reason}"
        if self.holds is False:
            return f"{claim}{where}\n  does not hold: {self.counterexample}"
        lines = [f"{claim}{where}", *(f"  lemma: {_indented(str(lemma))}" for lemma in self.lemmas)]
        return "\n".join([*lines, f"    {notation(self.left)}", *(f"  {step}" for step in self.steps), "  proven"])

    def __repr__(self) -> str:
        verdict = {True: "proven", False: "does not hold", None: "not settled"}[self.holds]
        return f"<Proof {notation(self.left)} = {notation(self.right)}: {verdict}>"


def prove(left: Expression, right: Expression, armature: bool = True) -> Proof:
    """Whether two expressions are equal for every mechanism in every state.

    armature   False: for mechanisms whose joints have no rotor inertias, of which the papers speak; R is zero
    """
    _check(left, right)
    left, right = left.placed(right.domain, right.codomain), right.placed(left.domain, left.codomain)
    if (left.domain, left.codomain) != (right.domain, right.codomain):
        raise SpaceError(
            f"{left} maps {left.domain} to {left.codomain}, {right} maps {right.domain} to {right.codomain}: "
            "they cannot be equal"
        )
    try:
        writing = _Writing(armature, any(part == COMPOSITE for side in (left, right) for part in side.walk()))
        chains = [writing.chain(left), writing.chain(right)]
    except (TooManyTerms, RecursionError) as error:
        return _by_numbers(left, right, armature, str(error) or "the sides are too deep to be written out")
    if chains[0].end == chains[1].end:
        return Proof(left, right, True, _joined(*chains), tuple(writing.lemmas), armature=armature)
    return _by_numbers(left, right, armature, "the laws lead to different normal forms")


def _check(left: Expression, right: Expression) -> None:
    for side in (left, right):
        if isinstance(side, bool):
            raise TypeError(
                "prove takes two expressions, prove(left, right): left == right compares how they are written"
            )
        if not isinstance(side, Expression):
            raise TypeError(f"prove takes two operator expressions such as op.H @ op.phi, got {side!r}")


def _by_numbers(left: Expression, right: Expression, armature: bool, why: str) -> Proof:
    found, compared = search(left, right, armature)
    if found is not None:
        return Proof(left, right, False, counterexample=found, armature=armature)
    tried = (
        "the numbers agree on every mechanism that was tried" if compared else "no mechanism was found to compare on"
    )
    return Proof(left, right, None, armature=armature, reason=f"{why}, and {tried}")


# -- writing out ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Chain:
    """One side on its way to its normal form."""

    start: str
    steps: tuple[ProofStep, ...]
    end: Polynomial


class _Writing:
    """Writes expressions out and reduces them; inverses become lemmas, or letters with what their definition says."""

    def __init__(self, armature: bool, composites: bool) -> None:
        self.armature = armature
        self.lemmas: list[Proof] = []
        self._rules = LAWS if armature else (*WITHOUT_ROTORS, *LAWS)
        if composites:
            self._rules = (*self._rules, *COMPOSITES)
        self._inverses: dict[Expression, Polynomial] = {}
        self._definitions: dict[str, None] = {}
        self._letters: list[tuple[Word, Polynomial, Rule]] = []
        self.laws = Laws(self._rules)

    def chain(self, side: Expression) -> _Chain:
        self._definitions.clear()
        words = self._words(side)
        steps, end = self._reduced(words, side)
        return _Chain(notation(side), steps, _ordered(end, side))

    def _reduced(self, words: Polynomial, side: Expression) -> tuple[tuple[ProofStep, ...], Polynomial]:
        """The way of words to their normal form."""
        steps = [ProofStep(_printed(words, side), "; ".join(self._definitions) or "multiplied out")]
        for rule, after in self.laws.reduction(words):
            reason = f"{notation(rule.left)} = {notation(rule.right)}, {rule.source}"
            steps.append(ProofStep(_printed(after, side), reason))
            words = after
        return tuple(steps), words

    def _words(self, expression: Expression) -> Polynomial:
        return multiplied_out(rebuilt(expression, self._written), self._inverted)

    def _written(self, part: Expression) -> Expression | None:
        """Abbreviations written out, inverses marked."""
        match part:
            case Operator(record=record, adjoint=is_adjoint) if record.definition is not None:
                self._definitions[f"{record.name} = {notation(record.definition)}, {record.source}"] = None
                return rebuilt(record.definition.T if is_adjoint else record.definition, self._written)
            case Inverse(of=inner):
                return Factored(inner)
            case Factored():
                return part
        return None

    def _inverted(self, inverse: Factored) -> Polynomial:
        """The words of an inverse: what is known of it, once it is proven, else a letter of its own."""
        if inverse.of not in self._inverses:
            outer, self._definitions = self._definitions, {}
            known = self._known_inverse(inverse.of)
            self._inverses[inverse.of] = self._letter(inverse.of) if known is None else known
            self._definitions = outer
            if known is not None:
                self._definitions[f"{notation(inverse)} = {_printed(known, inverse)}"] = None
        return self._inverses[inverse.of]

    def _known_inverse(self, inner: Expression) -> Polynomial | None:
        """The inverse that the identities name, proven by multiplying it."""
        try:
            known = inverse_of(inner)
        except UnknownInverse:
            return None
        if isinstance(known, Factored):
            return None
        inside, words = self._words(inner), self._words(known)
        unit = _identity(inner)
        steps, end = self._reduced(times(inside, words), unit)
        if end != {ONE: 1}:
            return None
        if len(inside) > 1 or len(next(iter(inside))) > 1:  # of single letters it is what the inverse letter means
            shown = _distinct(notation(inner @ known), steps)
            self.lemmas.append(Proof(inner @ known, unit, True, shown, armature=self.armature))
        return words

    def _letter(self, inner: Expression) -> Polynomial:
        """A letter for an inverse, and the two rules that define it."""
        inside = self.laws.normal_form(self._words(inner))
        if not inside:
            raise TooManyTerms(f"{notation(inner)} is zero and has no inverse")
        lead = max(inside, key=lambda word: (len(word), str(word)))
        monic = {word: weight / Fraction(inside[lead]) for word, weight in inside.items()}
        letter = Factored(as_expression(dict(sorted(monic.items(), key=str)), inner.domain, inner.codomain))
        if inner.domain != LOOP:  # redundant constraints have a generalized inverse only
            rest = {word: -weight for word, weight in monic.items() if word != lead}
            rule = Rule(letter @ inner, _identity(inner), "by definition of the inverse")
            own: Polynomial = {(letter,): 1}
            for left, others in (((letter, *lead), times(own, rest)), ((*lead, letter), times(rest, own))):
                add(others, {ONE: 1})
                self._letters.append((left, others, rule))
            self.laws = Laws(self._rules, self._letters)
        return {(letter,): 1 / Fraction(inside[lead])}


def _printed(words: Polynomial, side: Expression) -> str:
    return notation(as_expression(words, side.domain, side.codomain))


def _identity(inner: Expression) -> Expression:
    assert inner.codomain is not None
    return identity(inner.codomain)


def _ordered(words: Mapping[Word, Weight], side: Expression) -> Polynomial:
    """The sum itself; of numbers, x* A y and y* A* x are one word."""
    if (side.domain, side.codomain) != (SCALAR, SCALAR) or not has_adjoint(side):
        return dict(words)
    result: Polynomial = {}
    for word, weight in words.items():
        add(result, {min(word, adjoint(word), key=str): weight})
    return result


def _joined(left: _Chain, right: _Chain) -> tuple[ProofStep, ...]:
    """From the left side down to the normal form, and from there up to the right side."""
    steps = list(left.steps)
    forms = [right.start, *(step.form for step in right.steps)]
    for place in range(len(right.steps) - 1, -1, -1):
        steps.append(ProofStep(forms[place], right.steps[place].reason))
    return _distinct(left.start, steps)


def _distinct(start: str, steps: Sequence[ProofStep]) -> tuple[ProofStep, ...]:
    """Without steps that print the form before them again."""
    before = (start, *(step.form for step in steps))
    return tuple(step for step, last in zip(steps, before, strict=False) if step.form != last)


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
