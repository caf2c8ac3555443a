"""How large the project is: statements and lines per folder, of any commit.

python -m tools.size                 the working tree
python -m tools.size COMMIT          a commit
python -m tools.size COMMIT COMMIT   both, and what the second has more

Statements are those of the syntax tree, so that they do not depend on how text is broken into lines. Lines are counted
with comments, docstrings and blank lines; files that are no Python (pages, scripts of pages, data) count as lines only.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
TREE = ""  # stands for the working tree where a commit is named
PARTS = ("linkwise", "papers", "benchmarks", "tools", "examples", "tests", "docs")
SUMS = ("the package", "everything")


def sizes(commit: str = TREE) -> dict[str, tuple[int, int]]:
    """Folder -> (statements, lines): folders of the package, and the other parts as a whole."""
    statements: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in _git("ls-files" if commit == TREE else "ls-tree -r --name-only", commit).decode().splitlines():
        part = _part(PurePosixPath(path))
        if part is None or (commit == TREE and not (ROOT / path).is_file()):
            continue
        try:
            text = ((ROOT / path).read_bytes() if commit == TREE else _git("show", f"{commit}:{path}")).decode()
        except UnicodeDecodeError:
            continue  # a picture
        lines[part] += text.count("\n")
        if path.endswith(".py"):
            statements[part] += sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(text)))
    return {part: (statements[part], lines[part]) for part in sorted(lines, key=_order)}


def table(*commits: str) -> str:
    """The sizes of some commits beside each other; of two, the difference too."""
    columns = [sizes(commit) for commit in commits]
    for column in columns:
        package = [size for part, size in column.items() if part.startswith("linkwise")]
        for name, summands in zip(SUMS, (package, list(column.values())), strict=True):
            column[name] = (sum(size[0] for size in summands), sum(size[1] for size in summands))
    parts = sorted({part for column in columns for part in column}, key=_order)
    heads = [commit or "working tree" for commit in commits]
    if len(columns) == 2:
        heads.append("difference")
        columns.append({part: _minus(columns[1].get(part, (0, 0)), columns[0].get(part, (0, 0))) for part in parts})
    rows = [f"{'statements, lines':24}" + "".join(f"{head:>22}" for head in heads)]
    for part in parts:
        cells = (number for column in columns for number in column.get(part, (0, 0)))
        rows.append(f"{part:24}" + "".join(f"{number:11,}" for number in cells))
    return "\n".join(rows)


def _part(path: PurePosixPath) -> str | None:
    if path.parts[0] not in PARTS:
        return None
    if path.parts[0] != "linkwise":
        return path.parts[0]
    return f"linkwise/{path.parts[1]}" if len(path.parts) > 2 else "linkwise"


def _order(part: str) -> tuple[int, str]:
    return (*PARTS, *SUMS).index(part.split("/")[0]), part


def _minus(after: tuple[int, int], before: tuple[int, int]) -> tuple[int, int]:
    return after[0] - before[0], after[1] - before[1]


def _git(command: str, what: str) -> bytes:
    return subprocess.run(
        ["git", *command.split(), *([what] if what else [])], cwd=ROOT, check=True, capture_output=True
    ).stdout


if __name__ == "__main__":
    print(table(*(sys.argv[1:3] or [TREE])))
