"""Tables of calls side by side: our column runs, and that of other libraries where they are here; numbers agree."""

from __future__ import annotations

import re

import numpy as np
import pytest

from .test_docs import ROOT, run_page

FOLDER = ROOT / "docs" / "coming_from"
HERE = {"pinocchio": "pinocchio", "mujoco": "mujoco"}  # page -> library that runs
ROW = re.compile(r"^\| (?P<what>[^|]*) \| (?P<theirs>[^|]*) \| (?P<ours>[^|]*) \|$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")
FILES = ("path", '"robot.', "data.npz")  # calls that need a file


def rows(page: str) -> list[tuple[str, str, str]]:
    """What a row is about, their code and ours; rows of words alone are left out."""
    found = []
    for match in ROW.finditer(page):
        theirs, ours = CODE.fullmatch(match["theirs"]), CODE.fullmatch(match["ours"])
        if ours and not any(word in ours[1] for word in FILES):
            found.append((match["what"], theirs[1] if theirs else "", ours[1]))
    return found


def value(code: str, names: dict):
    """Of the last expression of some statements."""
    *before, last = code.split("; ")
    exec("; ".join(before), names)
    return eval(last, names)


def agree(theirs, ours) -> bool:
    """Equal numbers, or the same with the halves of spatial vectors exchanged; models and lists by their sizes."""
    if not isinstance(ours, np.ndarray | np.floating | float | int | list):
        return True
    if isinstance(ours, list):
        return list(theirs) == ours
    theirs, ours = np.asarray(theirs, float), np.asarray(ours, float)
    if theirs.size != ours.size:
        return False
    theirs = theirs.reshape(ours.shape)
    swapped = np.roll(theirs, 3, axis=0) if theirs.shape[:1] == (6,) else theirs
    matrix = np.roll(swapped, 3, axis=1) if theirs.shape == (6, 6) else swapped  # from twists to twists
    return any(np.allclose(x, ours, atol=1e-9) for x in (theirs, swapped, matrix))


@pytest.mark.parametrize("page", sorted(FOLDER.glob("[!i]*.md")), ids=lambda page: page.stem)
def test_rows_run_and_agree(page):
    if page.stem in HERE:
        pytest.importorskip(HERE[page.stem])
    text = page.read_text(encoding="utf-8")
    names = run_page(text, page.name)
    table = rows(text)
    assert len(table) >= 20
    wrong = {}
    for what, theirs, ours in table:
        try:
            found = value(ours, names)
            if page.stem in HERE and theirs and not agree(value(theirs, names), found):
                wrong[what] = (value(theirs, names), found)
        except Exception as error:
            wrong[what] = error
    assert not wrong, "\n".join(f"{what}: {found}" for what, found in wrong.items())


def test_what_differs_is_noticed():
    assert not agree(np.ones(6), np.zeros(6)) and not agree(1.0, 2.0) and not agree(["a"], ["b"])
    assert agree(np.arange(6.0), np.array([3.0, 4, 5, 0, 1, 2])) and not agree(np.ones(5), np.ones(6))
