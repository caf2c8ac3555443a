"""The laws of the algebra, as rewrite rules that bring every product to a normal form.

The first law of every group is a definition of the papers; the others follow from definitions in one line, named in
their source.  The rules are confluent: if two laws apply to one product, both lead to the same sum (the tests try every
overlap).  Expressions that are equal by these laws therefore have the same normal form, and the reduction is a proof.
Each law is accompanied by its adjoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from .algebra import (
    COMPOSITE,
    D_INV,
    KT_OMEGA,
    OMEGA,
    D,
    D_half,
    E_phi,
    G,
    H,
    I,
    K,
    M,
    P,
    P_plus,
    R,
    W,
    gravity,
    phi,
    psi,
)
from .expression import Expression, Operator, Sum
from .identities import Rule, expanded, inverse_of
from .spaces import FORCE, JOINT, MOTION
from .words import Polynomial, Weight, Word, add, multiplied_out

C, P_INV, M_INV, D_HALF_INV = COMPOSITE, inverse_of(P), inverse_of(M), inverse_of(D_half)
_NO_ROTORS: Expression = Sum((), JOINT, JOINT)

#: phi, psi and block-diagonal operators: laws without inertias.
TRANSFER = (
    Rule(phi @ E_phi, phi - I, "jain1995 (4.6)"),
    Rule(E_phi @ phi, phi - I, "jain1995 (4.6)"),
    Rule(psi @ K @ H, psi @ E_phi - psi + I, "jain1995 (4.10): psi (I - E_phi + K H) = I"),
    Rule(K @ H @ psi, E_phi @ psi - psi + I, "jain1995 (4.10): (I - E_phi + K H) psi = I"),
    Rule(phi @ G @ H @ psi, phi - psi + G @ H @ psi, "jain1995 (B.5), multiplied by phi and psi"),
    Rule(D @ D_INV, I, "by definition"),
    Rule(D_INV @ D, I, "by definition"),
    Rule(D_half @ D_half.T, D, "jain1995 (5.1): the square root of D"),
    Rule(D_half @ D_HALF_INV, I, "by definition"),
    Rule(D_HALF_INV @ D_half, I, "by definition"),
    Rule(D_HALF_INV.T @ D_HALF_INV, D_INV, "jain1995 (5.1), inverted"),
    Rule(D_HALF_INV @ D, D_half.T, "jain1995 (5.1), multiplied by the inverse of a root"),
    Rule(D_half.T @ D_INV, D_HALF_INV, "jain1995 (5.1), multiplied by the inverse of D"),
    Rule(M @ M_INV, I, "by definition"),
    Rule(M_INV @ M, I, "by definition"),
    Rule(P @ P_INV, I, "by definition"),
    Rule(P_INV @ P, I, "by definition"),
    Rule(OMEGA, psi.T @ H.T @ D_INV @ H @ psi, "rodriguez1986 Section 10, by definition"),
    Rule(KT_OMEGA, K.T @ psi.T @ H.T @ D_INV @ H @ psi, "rodriguez1986 Section 10, by definition"),
)
#: Gains and articulated inertias, link by link.
GAINS = (
    Rule(H @ P, D @ G.T, "jain1995 (4.8): G = P H* D^-1"),
    Rule(H @ G, I - R @ D_INV, "jain1995 (4.8): D = H P H* + R, R rotor inertias"),
    Rule(G.T @ P_INV, D_INV @ H, "jain1995 (4.8), multiplied by the inverse of P"),
    Rule(psi @ K @ R, psi @ G @ D - G @ D, "jain1995 (4.10), multiplied by G D, with D = H P H* + R"),
    Rule(P_plus, P - G @ D @ G.T, "jain1995 (4.8)"),
)
#: The Riccati equation.
RICCATI = (
    Rule(K @ D @ K.T, M - P + E_phi @ P @ E_phi.T, "jain1995 (4.9): M = P - E_psi P E_phi*"),
    Rule(psi @ K @ D @ G.T, psi @ E_phi @ P - psi @ P + P, "jain1995 (4.10), multiplied by P"),
    Rule(psi @ M @ phi.T, psi @ P + P @ phi.T - P, "jain1995 (4.9), multiplied by psi and phi*"),
    Rule(psi @ P @ E_phi.T, psi @ P + P @ E_phi.T - psi @ M, "jain1995 (4.9), multiplied by psi"),
    Rule(
        phi @ G @ D @ K.T,
        G @ D @ K.T + phi @ M - phi @ P + phi @ P @ E_phi.T - P @ E_phi.T,
        "jain1995 (4.9), multiplied by phi",
    ),
    Rule(
        phi @ G @ D @ G.T @ phi.T,
        phi @ G @ D @ G.T + G @ D @ G.T @ phi.T - G @ D @ G.T + phi @ M @ phi.T - phi @ P - P @ phi.T + P,
        "rodriguez1992 Identity 2 (42)",
    ),
)
#: Composite bodies; used only if they occur.
COMPOSITES = (
    Rule(E_phi @ C @ E_phi.T, C - M, "rodriguez1992 (31)"),
    Rule(phi @ C @ E_phi.T, phi @ C + C @ E_phi.T - phi @ M, "rodriguez1992 (31), multiplied by phi"),
    Rule(phi @ M @ phi.T, phi @ C + C @ phi.T - C, "rodriguez1992 Identity 1 (28)"),
)
#: Laws that hold only without rotors.
WITHOUT_ROTORS = (
    Rule(R, _NO_ROTORS, "no joint has a rotor"),
    Rule(psi @ G, G, "jain1995 (4.10) with H G = I: tau_bar G = 0"),
    Rule(psi @ M @ psi.T, psi @ P + P @ psi.T - P, "jain1995 (4.9) with tau_bar P tau_bar* = tau_bar P"),
)
LAWS = (*TRANSFER, *GAINS, *RICCATI)

#: For every block-diagonal X: forces of links next to the ground pass no further.  Represents infinitely many rules.
AT_THE_GROUND = Rule(E_phi @ M @ W.T, Sum((), W.T.domain, FORCE), "W X E_phi* = 0: nothing is inside the first links")

MANY_TERMS = 48  # maximum length of a sum for the search of a shortest reduction
_FROM_THE_GROUND = (W.T, gravity())
_INWARD, _OUTWARD = (E_phi, phi, psi), (E_phi.T, phi.T, psi.T)


class Laws:
    """Rewriting by a list of laws.

    more            equalities of words with sums, used as they stand, without adjoints
    at_the_ground   whether the laws at the ground apply
    """

    def __init__(
        self,
        laws: Iterable[Rule],
        more: Sequence[tuple[Word, Polynomial, Rule]] = (),
        at_the_ground: bool = True,
    ) -> None:
        self._ground = at_the_ground
        self.patterns: dict[Expression, list[tuple[Word, Polynomial, Rule]]] = {}
        for rule in laws:
            for law in (rule, Rule(rule.left.T, rule.right.T, f"{rule.source}, adjoint")):
                (left,), right = multiplied_out(expanded(law.left)), multiplied_out(expanded(law.right))
                self._insert(left, right, law)
        for left, right, rule in more:
            self._insert(left, right, rule)

    def _insert(self, left: Word, right: Polynomial, rule: Rule) -> None:
        laws = self.patterns.setdefault(left[0], [])
        if all(known != left for known, _, _ in laws):
            laws.append((left, right, rule))

    def rewritten(self, word: Word, only: Rule | None = None) -> tuple[Rule, Polynomial] | None:
        """The word after one use of the first law that applies (or of the given law); None if none applies."""
        for start, letter in enumerate(word):
            for left, right, rule in self.patterns.get(letter, ()):
                if (only is None or rule is only) and word[start : start + len(left)] == left:
                    after = word[start + len(left) :]
                    return rule, {word[:start] + middle + after: weight for middle, weight in right.items()}
        return _ground_laws(word) if self._ground and (only is None or only is AT_THE_GROUND) else None

    def normal_form(self, words: Mapping[Word, Weight]) -> Polynomial:
        """The sum rewritten until no law applies."""
        known: dict[Word, Polynomial] = {}
        result: Polynomial = {}
        for word, weight in words.items():
            add(result, self._normal_word(word, known), weight)
        return result

    def _normal_word(self, word: Word, known: dict[Word, Polynomial]) -> Polynomial:
        if word not in known:
            rewriting = self.rewritten(word)
            result: Polynomial = {word: 1} if rewriting is None else {}
            for part, weight in rewriting[1].items() if rewriting else ():
                add(result, self._normal_word(part, known), weight)
            known[word] = result
        return known[word]

    def reduction(self, words: Mapping[Word, Weight]) -> list[tuple[Rule, Polynomial]]:
        """A short reduction to normal form: each law with the sum after its use. Among applicable laws the one with
        the smallest result is used; for long sums the first.
        """
        steps: list[tuple[Rule, Polynomial]] = []
        now = dict(words)
        while True:
            applying = self._applying(now)
            if not applying:
                return steps
            tried = applying if len(now) <= MANY_TERMS else applying[:1]
            choices = [(rule, self._everywhere(now, rule)) for rule in tried]
            steps.append(min(choices, key=lambda choice: sum(len(word) + 1 for word in choice[1])))
            now = steps[-1][1]

    def _applying(self, words: Polynomial) -> list[Rule]:
        laws = {
            id(rule): rule
            for word in words
            for start, letter in enumerate(word)
            for left, _, rule in self.patterns.get(letter, ())
            if word[start : start + len(left)] == left
        }
        at_ground = self._ground and any(_ground_laws(word) is not None for word in words)
        return [*laws.values(), *((AT_THE_GROUND,) if at_ground else ())]

    def _everywhere(self, words: Polynomial, rule: Rule) -> Polynomial:
        """One law used until it applies nowhere."""
        result: Polynomial = {}
        todo = list(words.items())
        while todo:
            word, weight = todo.pop(0)
            rewriting = self.rewritten(word, only=rule)
            if rewriting is None:
                add(result, {word: weight})
            else:
                todo[:0] = [(part, weight * factor) for part, factor in rewriting[1].items()]
        return result


@lru_cache(maxsize=16)
def make_laws(rules: tuple[Rule, ...], at_the_ground: bool = True) -> Laws:
    return Laws(rules, at_the_ground=at_the_ground)


def _ground_laws(word: Word) -> tuple[Rule, Polynomial] | None:
    """W X E_phi* = 0, hence W X phi* = W X psi* = W X, and the adjoints; likewise for the ground's acceleration in
    place of gravity, as for W*."""
    for position, letter in enumerate(word):
        if letter == W:
            outward = position + 1
            while outward < len(word) and _is_local(word[outward]):
                outward += 1
            if outward < len(word) and word[outward] in _OUTWARD:
                return AT_THE_GROUND, _drop_transfer(word, outward)
        elif letter in _FROM_THE_GROUND:
            inward = position - 1
            while inward >= 0 and _is_local(word[inward]):
                inward -= 1
            if inward >= 0 and word[inward] in _INWARD:
                return AT_THE_GROUND, _drop_transfer(word, inward)
    return None


def _drop_transfer(word: Word, position: int) -> Polynomial:
    """The word without a transfer that has no effect there; empty if that is E_phi."""
    return {} if word[position] in (E_phi, E_phi.T) else {word[:position] + word[position + 1 :]: 1}


def _is_local(letter: Expression) -> bool:
    """Whether the operator is block diagonal, one block per link."""
    blocks = (FORCE, MOTION, JOINT)
    return (
        isinstance(letter, Operator)
        and letter.record.is_local
        and letter.record.domain in blocks
        and letter.record.codomain in blocks
    )
