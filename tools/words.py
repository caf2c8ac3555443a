"""How many words the documentation has, by part and by page, and how many locals are named for no quantity.

python -m tools.words            the parts
python -m tools.words locals     names such as found, one, own, given, whole in the package: how often each is bound
python -m tools.words PART       the pages of one part: tutorial, howto, coming_from, theory, pages, generated
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 70_000
NAMES_OF_NOTHING = {"found", "one", "own", "given", "whole", "what", "place", "places", "ways"}
GENERATED = {"api.md", "counts.md", "ledger.md"}  # written by programs


def words() -> dict[str, dict[str, int]]:
    """Part of the site -> page -> words, code included; pages that the site writes when it is built are not counted.

    A word has a letter or a digit: bars of tables and operators of code are none.
    """
    parts: dict[str, dict[str, int]] = {"pages": {}, "generated": {}}
    docs = ROOT / "docs"
    for page in sorted(docs.rglob("*.md")):
        name = page.relative_to(docs)
        if name.parts[0] in ("_build", "generated"):
            continue
        folder = name.parts[0] if len(name.parts) > 1 else "generated" if name.name in GENERATED else "pages"
        parts.setdefault(folder, {})[name.as_posix()] = len(re.findall(r"\S*\w\S*", page.read_text(encoding="utf-8")))
    return parts


def written() -> int:
    """Words of all pages that people write."""
    return sum(sum(pages.values()) for part, pages in words().items() if part != "generated")


def vague_locals() -> Counter[str]:
    """Name -> how many variables and parameters of the package have it."""
    counts: Counter[str] = Counter()
    for path in (ROOT / "linkwise").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.arg):
                counts[node.arg] += node.arg in NAMES_OF_NOTHING
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                counts[node.id] += node.id in NAMES_OF_NOTHING
    return +counts


if __name__ == "__main__":
    if sys.argv[1:] == ["locals"]:
        for name, count in vague_locals().most_common():
            print(f"{count:7,} {name}")
    elif sys.argv[1:]:
        for page, count in words()[sys.argv[1]].items():
            print(f"{count:7,} {page}")
    else:
        for part, pages in words().items():
            print(f"{sum(pages.values()):7,} {part}")
        print(f"{written():7,} without what is generated; the limit is {LIMIT:,}")
