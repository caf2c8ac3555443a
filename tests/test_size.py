"""The tool that says how large the project is."""

from __future__ import annotations

import subprocess

import pytest

from tools import size


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Two commits: a module of the package with two statements, then one more and a page."""

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=tmp_path, check=True)

    (tmp_path / "linkwise" / "cli").mkdir(parents=True)
    module = tmp_path / "linkwise" / "cli" / "main.py"
    module.write_text('"""Says hello."""\n\nprint(\n    "hello"\n)\n')
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "Say hello")
    module.write_text(module.read_text() + "x = 1\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("# A page\n")
    (tmp_path / "docs" / "picture.png").write_bytes(b"\x89PNG\xff\n")
    git("add", ".")
    git("commit", "-qm", "Count")
    monkeypatch.setattr(size, "ROOT", tmp_path)
    return tmp_path


def test_statements_do_not_depend_on_line_breaks(repository):
    assert size.sizes("HEAD~1") == {"linkwise/cli": (2, 5)}
    assert size.sizes("HEAD") == size.sizes() == {"linkwise/cli": (3, 6), "docs": (0, 1)}


def test_two_commits_and_their_difference(repository):
    rows = {line[:24].strip(): line[24:].split() for line in size.table("HEAD~1", "HEAD").splitlines()[1:]}
    assert rows["linkwise/cli"] == ["2", "5", "3", "6", "1", "1"]
    assert rows["docs"] == ["0", "0", "0", "1", "0", "1"]
    assert rows["the package"] == rows["linkwise/cli"]
    assert rows["everything"] == ["2", "5", "3", "7", "1", "2"]
