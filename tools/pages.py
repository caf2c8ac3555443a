"""Pages of documentation as text: their blocks of Python, and what these should print."""

from __future__ import annotations

import doctest
import re
from dataclasses import dataclass

FENCE = re.compile(r"^```(?P<kind>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
NEGATIVE_ZERO = re.compile(r"-0\.(?=[\s\]])")
PADDING = re.compile(r"(?<=\[)\s+|\s+(?=\])")


@dataclass
class Block:
    """A Python block, the line it starts on, and what it should print if the page says so."""

    code: str
    line: int
    output: str | None = None


def blocks(text: str) -> list[Block]:
    """The Python blocks of a page that run, each with the output block right after it."""
    found: list[Block] = []
    previous_end = None
    for match in FENCE.finditer(text):
        kind = match["kind"].strip()
        if kind == "python":
            found.append(Block(match["text"], text.count("\n", 0, match.start()) + 2))
            previous_end = match.end()
        elif kind == "output":
            if previous_end is None or text[previous_end : match.start()].strip():
                raise ValueError(f"an output block follows no Python block:\n{match['text']}")
            found[-1].output = match["text"]
            previous_end = None
        else:
            previous_end = None
    return found


def matches(expected: str, printed: str) -> bool:
    """Equal but for white space and the sign of zeros: round-off too small to be printed may have either sign."""
    expected, printed = (PADDING.sub("", NEGATIVE_ZERO.sub("0.", text)) for text in (expected, printed))
    return doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
