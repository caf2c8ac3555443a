"""Expressions and proofs of the operator algebra, and results that are best read as a few lines."""

from __future__ import annotations

from typing import Any

import linkwise as lw

from .html import block, number, picture, preformatted, table

ENDS = ("lowest", "highest")
VERDICTS = {True: "proven", False: "does not hold", None: "not settled"}


def expression(formula: Any) -> dict[str, str]:
    """The formula in the notation of the papers."""
    return {"text/latex": rf"$\displaystyle {formula.latex()}$"}


def proof(shown: Any) -> dict[str, str]:
    """The chain of equal forms, each with its reason."""
    if shown.holds is not True:
        return block("Proof", VERDICTS[shown.holds], preformatted(str(shown)))
    claim = str(shown).partition("\n")[0]
    lemmas = [("lemma", *str(lemma).partition("\n")[::2]) for lemma in shown.lemmas]
    steps = [("", claim.partition(" = ")[0], ""), *(("=", step.form, step.reason) for step in shown.steps)]
    rows = [*((kind, form, "") for kind, form, _ in lemmas), *steps]
    return block(claim, VERDICTS[True], table(("", "form", "because"), rows, many=len(rows)))


def inverse_kinematics(result: Any) -> dict[str, str]:
    """The configuration that was found, by joint; of many the largest errors."""
    mech, words = result.mechanism, str(result).partition(": ")[2]
    title = f"Inverse kinematics of {mech.name}"
    if result.q.ndim > 1:
        return block(title, words)
    names = mech.coordinates.names("q")
    rows = [(name, number(x)) for name, x in zip(names, result.q, strict=True)]
    return block(title, words, table(("q", "found"), rows, numbers=(1,)))


def range_of_motion(motion_range: Any) -> dict[str, str]:
    """The limits of a range, their causes, and the other coordinates over this one."""
    rows = [(name, number(end.value), end.cause, end.joint) for name, end in zip(ENDS, motion_range.ends, strict=True)]
    rows += [("dead centre", number(end.value), "", "") for end in motion_range.dead_centres]
    ends = table(("", motion_range.coordinate, "what stops it", "joint"), rows, numbers=(1,))
    curves = picture(lambda: lw.viewer.plot_range(motion_range), f"other coordinates over {motion_range.coordinate}")
    return block(f"Range of {motion_range.coordinate}", f"of {motion_range.mechanism.name}", curves, ends)


def text(value: Any) -> dict[str, str]:
    """Its own lines."""
    return {"text/html": preformatted(str(value))}
