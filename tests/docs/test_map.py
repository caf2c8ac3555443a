"""docs/architecture.md names every part of the package, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "linkwise"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MAP = PAGE[PAGE.index("## The map") : PAGE.index("## Who may import whom")]
CODE = re.compile(r"`([\w./]+)`")


def packages() -> list[Path]:
    return sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)


def test_every_package_and_top_level_module_is_on_the_map():
    named = set(CODE.findall(MAP))
    missing = [str(p.relative_to(PACKAGE)) for p in packages() if not {f"{p.name}/", f"linkwise/{p.name}/"} & named]
    missing += [
        path.name for path in PACKAGE.glob("*.py") if path.name not in named and f"linkwise/{path.name}" not in named
    ]
    assert not missing


def test_every_file_that_is_not_one_of_a_kind_is_on_the_map():
    """Files that are one of a kind (joints, readers, commands, papers, ...) are named by their kind."""
    by_kind = {
        "joints",
        "spatial",
        "mechanism",
        "ir",
        "trace",
        "passes",
        "targets",
        "mjcf",
        "urdf",
        "cli",
    }
    rows = {row.split("|")[1]: row for row in MAP.splitlines() if row.startswith(("| `", "| **`"))}
    missing = []
    for package in packages():
        if package.name in by_kind | {"readers", "viewer", "mechanics", "compiler"}:
            continue
        row = next(text for head, text in rows.items() if f"`{package.name}/`" in head)
        missing += [
            f"{package.name}/{path.name}"
            for path in package.glob("*.py")
            if path.name != "__init__.py" and f"`{path.name}`" not in row
        ]
    assert not missing


def test_what_is_on_the_map_is_there():
    files = {path.name for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    gone = [name for name in CODE.findall(MAP) if name.endswith(".py") and name.rpartition("/")[2] not in files]
    folders = {f"{path.name}/" for path in ROOT.rglob("*") if path.is_dir() and ".venv" not in path.parts}
    gone += [name for name in CODE.findall(MAP) if name.endswith("/") and name.rpartition("/")[0] + "/" not in folders]
    assert not gone
