"""The papers' figures, drawn anew from the library's own results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from . import saha1999, spencer2004

#: Paper -> function that draws its figures into a folder and yields one line of findings at a time.
PAPERS: dict[str, Callable[[Path], Iterator[str]]] = {
    "saha1999": saha1999.reproduce,
    "spencer2004": spencer2004.reproduce,
}
