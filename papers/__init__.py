"""The papers' figures, tables and algorithms, computed again from the library's own results."""

from __future__ import annotations

from linkwise.demo.exhibit import Entry, Exhibit, Made, Paper, made
from linkwise.demo.gallery import summary, write_gallery

from . import jain1995, rodriguez1986, rodriguez1992, saha1999, spencer2004

#: In the order in which they appeared.
PAPERS: dict[str, Paper] = {
    module.PAPER.key: module.PAPER for module in (rodriguez1986, rodriguez1992, jain1995, saha1999, spencer2004)
}

__all__ = ["PAPERS", "Entry", "Exhibit", "Made", "Paper", "made", "summary", "write_gallery"]
