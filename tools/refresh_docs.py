"""Write what the Python blocks of a page print into its output blocks, where the two differ.

python -m tools.refresh_docs docs/operators.md

Run it after a change that is meant to alter what pages show (operation counts, plans, messages), and read the diff.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

from tools.pages import blocks, matches


def refreshed(text: str, name: str) -> str:
    """The page with its output blocks as the code prints them now; blocks that match, with their ``...``, stay."""
    namespace: dict = {"__name__": name}
    place = 0
    for block in blocks(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, name, "exec", dont_inherit=True), namespace)
        if block.output is None:
            continue
        old = f"```output\n{block.output}```"
        place = text.index(old, text.index(block.code, place))
        if not matches(block.output, printed.getvalue()):
            text = text[:place] + text[place:].replace(old, f"```output\n{printed.getvalue()}```", 1)
    return text


if __name__ == "__main__":
    for page in [Path(name).resolve() for name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as folder:  # where pages leave the files that they write
            os.chdir(folder)
            page.write_text(refreshed(page.read_text(), page.name))
            os.chdir(page.parent)
