"""linkwise cache tells what is kept on disk, and deletes it when asked to."""

from __future__ import annotations

import io
import json
import sys

import pytest

import linkwise as lw
from linkwise.cli.cache import size_text


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "objects"
    monkeypatch.setenv("LINKWISE_CACHE_DIR", str(folder))
    folder.mkdir()
    for name, size in (("a", 1000), ("b", 2500)):
        (folder / f"{name}.object").write_bytes(bytes(size))
    return folder


def answer(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_place_number_size_and_limit(run, folder):
    out = run("cache")
    assert [line.split(None, 1)[1] for line in out.splitlines()][1:] == ["2", "3.5 kB", "512 MB"]
    assert "objects" in out.splitlines()[0]
    found = json.loads(run("cache", "--json"))
    assert found == {"directory": str(folder), "files": 2, "size": 3500, "limit": 512_000_000}


def test_clearing_asks_first(run, folder, monkeypatch):
    answer(monkeypatch, "n\n")
    assert "nothing deleted" in run("cache", "clear")
    assert lw.codegen.cache.info().files == 2
    answer(monkeypatch, "y\n")
    assert "deleted 2 programs, 3.5 kB" in run("cache", "clear")
    assert lw.codegen.cache.info().files == 0 and not list(folder.iterdir())


def test_clearing_without_a_question(run):
    assert run("cache", "clear", "--yes") == "deleted 2 programs, 3.5 kB\n"
    assert run("cache", "clear", "--yes") == "deleted 0 programs, 0 bytes\n"


def test_clearing_where_nobody_answers(monkeypatch, capsys, folder):
    from linkwise.cli import main

    answer(monkeypatch, "")
    assert main(["cache", "clear"]) == 2
    assert "linkwise: nobody answers whether to delete the compiled code: add --yes" in capsys.readouterr().err
    assert lw.codegen.cache.info().files == 2


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (512_000_000, "512 MB"), (3.21e12, "3.21 TB")],
)
def test_sizes(size, text):
    assert size_text(size) == text
