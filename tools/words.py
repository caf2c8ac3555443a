"""How many words the documentation has, by part and by page.

python -m tools.words            the parts
python -m tools.words PART       the pages of one part: tutorial, howto, coming_from, theory, pages, generated
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 70_000
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


if __name__ == "__main__":
    if sys.argv[1:]:
        for page, count in words()[sys.argv[1]].items():
            print(f"{count:7,} {page}")
    else:
        for part, pages in words().items():
            print(f"{sum(pages.values()):7,} {part}")
        print(f"{written():7,} without what is generated; the limit is {LIMIT:,}")
