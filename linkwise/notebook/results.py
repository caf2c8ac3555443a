"""Expressions and proofs of the operator algebra, and results that are best read as a few lines."""

from __future__ import annotations

from typing import Any

import linkwise as lw

from .html import block, number, picture, preformatted, table

ENDS = ("lowest", "highest")
VERDICTS = {True: "proven", False: "does not hold", None: "not settled"}


def expression(one: Any) -> dict[str, str]:
    """As the papers write it."""
    return {"text/latex": rf"$\displaystyle {one.latex()}$"}


def proof(one: Any) -> dict[str, str]:
    """The chain of equal forms, each with its reason."""
    if one.holds is not True:
        return block("Proof", VERDICTS[one.holds], preformatted(str(one)))
    claim = str(one).partition("\n")[0]
    lemmas = [("lemma", *str(lemma).partition("\n")[::2]) for lemma in one.lemmas]
    steps = [("", claim.partition(" = ")[0], ""), *(("=", step.form, step.reason) for step in one.steps)]
    rows = [*((kind, form, "") for kind, form, _ in lemmas), *steps]
    return block(claim, VERDICTS[True], table(("", "form", "because"), rows, many=len(rows)))


def inverse_kinematics(found: Any) -> dict[str, str]:
    """The configuration that was found, by joint; of many the largest errors."""
    mech, words = found.mechanism, str(found).partition(": ")[2]
    title = f"Inverse kinematics of {mech.name}"
    if found.q.ndim > 1:
        return block(title, words)
    names = mech.coordinates.names("q")
    rows = [(name, number(x)) for name, x in zip(names, found.q, strict=True)]
    return block(title, words, table(("q", "found"), rows, numbers=(1,)))


def range_of_motion(found: Any) -> dict[str, str]:
    """Its ends and what stops it there, and the other coordinates over this one."""
    rows = [(name, number(end.value), end.cause, end.joint) for name, end in zip(ENDS, found.ends, strict=True)]
    rows += [("dead centre", number(end.value), "", "") for end in found.dead_centres]
    ends = table(("", found.coordinate, "what stops it", "joint"), rows, numbers=(1,))
    curves = picture(lambda: lw.viewer.plot_range(found), f"other coordinates over {found.coordinate}")
    return block(f"Range of {found.coordinate}", f"of {found.mechanism.name}", curves, ends)


def text(one: Any) -> dict[str, str]:
    """Its own lines."""
    return {"text/html": preformatted(str(one))}
