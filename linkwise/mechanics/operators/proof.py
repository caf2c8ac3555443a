"""Proofs of operator identities: the chain of laws that leads from one side to the other, or a counterexample.

    op.prove((op.I - op.H @ op.psi @ op.K) @ op.H @ op.phi, op.H @ op.psi)

Both sides are expanded and rewritten by the laws of the algebra (``laws.py``) until none applies.  Equal normal forms
are a proof.  If they differ, the oracle searches for a mechanism and a state at which the sides differ; without one,
the question is open.

The papers' joints have no rotors.  Identities without R are understood in this way: they are valid if they hold without
rotors, and a proof states whether it also covers joints with rotors.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ...display import mimebundle
from .algebra import COMPOSITE, R, identity
from .counterexample import Counterexample, search
from .expression import Expression, Factored, Inverse, Operator
from .identities import Rule, UnknownInverse, has_adjoint, inverse_of, rebuilt, with_rotor_inertias
from .laws import COMPOSITES, LAWS, WITHOUT_ROTORS, Laws
from .spaces import LOOP, SCALAR, SpaceError
from .words import (
    ONE,
    Polynomial,
    TooManyTerms,
    Word,
    add,
    adjoint,
    as_expression,
    difference,
    multiplied_out,
    notation,
    times,
)

FEW_TERMS = 6  # a correction for rotors with more terms explains nothing


@dataclass(frozen=True)
class ProofStep:
    """One form in a chain of equal forms, in the papers' notation; ``reason`` justifies the step."""

    form: str
    reason: str

    def __str__(self) -> str:
        return f"= {self.form}" + (f"\n      [{self.reason}]" if self.reason else "")


@dataclass(frozen=True, eq=False)
class Proof:
    """Result of ``prove`` for ``left`` and ``right``.

    holds           True: proven; False: there is a counterexample; None: neither was found
    armature        whether the mechanisms in question may have rotors at their joints
    ways            reductions of both sides to one normal form
    lemmas          inverses that were used, with their proofs
    counterexample  a mechanism and a state at which the sides differ
    reason          why the question is open
    """

    left: Expression
    right: Expression
    holds: bool | None
    ways: tuple[Way, ...] = ()
    lemmas: tuple[Proof, ...] = ()
    counterexample: Counterexample | None = None
    armature: bool = True
    reason: str = ""

    @cached_property
    def steps(self) -> tuple[ProofStep, ...]:
        """The steps from the left side to the right side, each with its identity and source."""
        return _chain(*self.ways) if self.ways else ()

    @cached_property
    def holds_without_rotors(self) -> bool:
        """Whether the identity is proven for mechanisms without rotor inertias, as in the papers."""
        if self.holds is None or not self.armature:
            return bool(self.holds)
        return self.holds or isinstance(_prove_by_laws(self.left, self.right, armature=False), Proof)

    @cached_property
    def with_rotors(self) -> Proof | None:
        """The proof of the corresponding identity with rotor inertias: the identity itself if it holds, else with
        terms of R added; None if unknown.
        """
        if self.holds and self.armature:
            return self
        return _corrected(self.left, self.right) if self.holds_without_rotors else None

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
            light = "\n  holds where no joint has a rotor (armature=False)" if self.holds_without_rotors else ""
            return f"{claim}{where}\n  does not hold: {self.counterexample}{light}{self._rotor_line()}"
        lines = [f"{claim}{where}", *(f"  lemma: {_indented(str(lemma))}" for lemma in self.lemmas)]
        steps = [f"    {notation(self.left)}", *(f"  {step}" for step in self.steps)]
        return "\n".join([*lines, *steps, "  proven"]) + self._rotor_line()

    def _rotor_line(self) -> str:
        """A line with the identity that holds with rotors, if it differs."""
        other = self.with_rotors
        if other is None or (other.left, other.right) == (self.left, self.right):
            return ""
        return f"\n  with rotors: {notation(other.left)} = {notation(other.right)}"

    def __repr__(self) -> str:
        verdict = {True: "proven", False: "does not hold", None: "not settled"}[self.holds]
        return f"<Proof {notation(self.left)} = {notation(self.right)}: {verdict}>"

    _repr_mimebundle_ = mimebundle


def prove(left: Expression, right: Expression, armature: bool | None = None) -> Proof:
    """Whether two expressions are equal for every mechanism in every state.

    armature   False: for mechanisms whose joints have no rotor inertias, as in the papers; R is zero.  True: joints may
               have rotors.  None: as in the papers, unless R occurs in the expressions; ``armature`` of the proof is
               True if it covers rotors

    For an identity that requires joints without rotors, the text of the proof and ``with_rotors`` give the
    corresponding one with rotors.
    """
    _check(left, right)
    left, right = left.placed(right.domain, right.codomain), right.placed(left.domain, left.codomain)
    if (left.domain, left.codomain) != (right.domain, right.codomain):
        raise SpaceError(
            f"{left} maps {left.domain} to {left.codomain}, {right} maps {right.domain} to {right.codomain}: "
            "they cannot be equal"
        )
    if armature is None:
        general = _prove_by_laws(left, right, armature=True)
        if isinstance(general, Proof):
            return general
        armature = any(part == R for side in (left, right) for part in side.walk())
    proof = _prove_by_laws(left, right, armature)
    return proof if isinstance(proof, Proof) else _refute_by_numbers(left, right, armature, proof)


def _corrected(left: Expression, right: Expression) -> Proof | None:
    """The proof of an identity with rotor inertias, derived from one without: H phi M phi* H* becomes H phi M phi* H*
    + R, or the missing terms are added to the right side.
    """
    heavy = with_rotor_inertias(left), with_rotor_inertias(right)
    for sides in ((left, right), (left, heavy[1]), (heavy[0], right), heavy):
        if isinstance(proof := _prove_by_laws(*sides, armature=True), Proof):
            return proof
    try:
        writing = _Writing(True, any(part == COMPOSITE for side in (left, right) for part in side.walk()))
        ends = [Way(side, *writing.words(side), writing.laws).end for side in (left, right)]
    except (TooManyTerms, RecursionError):
        return None
    missing = difference(*ends)
    if len(missing) > FEW_TERMS or any(isinstance(letter, Factored) for word in missing for letter in word):
        return None
    complete = right + as_expression(missing, left.domain, left.codomain)
    corrected = _prove_by_laws(left, complete, armature=True) if complete != left else None
    return corrected if isinstance(corrected, Proof) else None


def _prove_by_laws(left: Expression, right: Expression, armature: bool) -> Proof | str:
    """The proof that both sides have the same normal form, or the reason for failure."""
    try:
        writing = _Writing(armature, any(part == COMPOSITE for side in (left, right) for part in side.walk()))
        words = [writing.words(side) for side in (left, right)]
    except (TooManyTerms, RecursionError) as error:
        return str(error) or "the sides are too deep to be written out"
    chains = tuple(
        Way(side, *words_of_side, writing.laws) for side, words_of_side in zip((left, right), words, strict=True)
    )
    if chains[0].end == chains[1].end:
        return Proof(left, right, True, chains, tuple(writing.lemmas), armature=armature)
    return "the laws lead to different normal forms"


def _check(left: Expression, right: Expression) -> None:
    for side in (left, right):
        if isinstance(side, bool):
            raise TypeError(
                "prove takes two expressions, prove(left, right): left == right compares how they are written"
            )
        if not isinstance(side, Expression):
            raise TypeError(f"prove takes two operator expressions such as op.H @ op.phi, got {side!r}")


def _refute_by_numbers(left: Expression, right: Expression, armature: bool, why: str) -> Proof:
    counterexample, compared = search(left, right, armature)
    if counterexample is not None:
        return Proof(left, right, False, counterexample=counterexample, armature=armature)
    tried = (
        "the numbers agree on every mechanism that was tried" if compared else "no mechanism was found to compare on"
    )
    return Proof(left, right, None, armature=armature, reason=f"{why}, and {tried}")


# -- writing out ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Way:
    """One side of a proof: its expansion in words, and the definitions used."""

    side: Expression
    words: Polynomial
    definitions: tuple[str, ...]
    laws: Laws

    @cached_property
    def end(self) -> Polynomial:
        """The normal form; for numbers, x* A y and y* A* x are the same word."""
        words = self.laws.normal_form(self.words)
        if (self.side.domain, self.side.codomain) != (SCALAR, SCALAR) or not has_adjoint(self.side):
            return words
        result: Polynomial = {}
        for word, weight in words.items():
            add(result, {min(word, adjoint(word), key=str): weight})
        return result

    def steps(self) -> list[ProofStep]:
        """The successive forms, each with the reason why it equals the previous one."""
        steps = [ProofStep(_printed(self.words, self.side), "; ".join(self.definitions) or "multiplied out")]
        last = self.words
        for rule, last in self.laws.reduction(self.words):
            reason = f"{notation(rule.left)} = {notation(rule.right)}, {rule.source}"
            steps.append(ProofStep(_printed(last, self.side), reason))
        if last != self.end:
            steps.append(ProofStep(_printed(self.end, self.side), "a number is its own adjoint"))
        return steps


class _Writing:
    """Expands and reduces expressions; inverses become lemmas, or letters with their definition."""

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

    def words(self, side: Expression) -> tuple[Polynomial, tuple[str, ...]]:
        """A side multiplied out, and the definitions used."""
        self._definitions = {}
        return self._words(side), tuple(self._definitions)

    def _words(self, expression: Expression) -> Polynomial:
        return multiplied_out(rebuilt(expression, self._written), self._inverted)

    def _written(self, part: Expression) -> Expression | None:
        """The part with abbreviations expanded and inverses marked."""
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
        """The words of an inverse: a proven identity, otherwise a letter."""
        if inverse.of not in self._inverses:
            outer, self._definitions = self._definitions, {}
            known = self._known_inverse(inverse.of)
            self._inverses[inverse.of] = self._letter(inverse.of) if known is None else known
            self._definitions = outer
            if known is not None:
                self._definitions[f"{notation(inverse)} = {_printed(known, inverse)}"] = None
        return self._inverses[inverse.of]

    def _known_inverse(self, inner: Expression) -> Polynomial | None:
        """The inverse by the identities, proven by multiplication."""
        try:
            known = inverse_of(inner)
        except UnknownInverse:
            return None
        if isinstance(known, Factored):
            return None
        inside, words = self._words(inner), self._words(known)
        unit = _identity(inner)
        chains = (
            Way(inner @ known, times(inside, words), tuple(self._definitions), self.laws),
            Way(unit, {ONE: 1}, (), self.laws),
        )
        if chains[0].end != chains[1].end:
            return None
        if len(inside) > 1 or len(next(iter(inside))) > 1:  # for a single letter this defines its inverse
            self.lemmas.append(Proof(inner @ known, unit, True, chains, armature=self.armature))
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
            single: Polynomial = {(letter,): 1}
            for left, others in (((letter, *lead), times(single, rest)), ((*lead, letter), times(rest, single))):
                add(others, {ONE: 1})
                self._letters.append((left, others, rule))
            self.laws = Laws(self._rules, self._letters)
        return {(letter,): 1 / Fraction(inside[lead])}


def _printed(words: Polynomial, side: Expression) -> str:
    return notation(as_expression(words, side.domain, side.codomain))


def _identity(inner: Expression) -> Expression:
    assert inner.codomain is not None
    return identity(inner.codomain)


def _chain(left: Way, right: Way) -> tuple[ProofStep, ...]:
    """The chain of forms from the left side to the normal form, and from there to the right side."""
    steps, backwards = left.steps(), right.steps()
    forms = [notation(right.side), *(step.form for step in backwards)]
    steps += [ProofStep(forms[k], backwards[k].reason) for k in reversed(range(len(backwards)))]
    before = (notation(left.side), *(step.form for step in steps))
    return tuple(step for step, last in zip(steps, before, strict=False) if step.form != last)


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
