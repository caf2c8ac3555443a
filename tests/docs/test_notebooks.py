"""The tutorial: each notebook runs in a fresh kernel, and shows a picture where one should be."""

from __future__ import annotations

import os

import pytest

from tools.uses import CELL

from .test_docs import LINK, ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")
NOTEBOOKS = sorted((ROOT / "docs" / "tutorial").glob("[0-9]*.md"))
SHOWN = {"image/png", "image/svg+xml"}


def notebook(text: str) -> nbformat.NotebookNode:
    """The code cells of a MyST notebook; those that should show a picture are tagged."""
    cells = []
    for match in CELL.finditer(text):
        tags = ["picture"] if "picture" in match["options"] else []
        cells.append(nbformat.v4.new_code_cell(match["code"], metadata={"tags": tags}))
    return nbformat.v4.new_notebook(cells=cells)


def pictures(cell: nbformat.NotebookNode) -> bool:
    """Whether one is among the outputs of a cell, by itself or in a table."""
    data = [output.get("data", {}) for output in cell.outputs]
    return any(
        SHOWN & one.keys() or "<svg" in one.get("text/html", "") or "data:image" in str(one) or "<iframe" in str(one)
        for one in data
    )


def executed(text: str, folder) -> nbformat.NotebookNode:
    os.environ["PYTHONPATH"] = str(ROOT)
    client = nbclient.NotebookClient(notebook(text), timeout=300, resources={"metadata": {"path": str(folder)}})
    return client.execute()


def test_there_are_ten_and_each_has_pictures():
    assert len(NOTEBOOKS) == 10
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        assert len(notebook(text).cells) >= 4 and text.count("tags: [picture]") >= 1, path.name
        assert text.count("```{code-cell}") == len(notebook(text).cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    assert not [link for link, _ in LINK.findall(CELL.sub("", text)) if not (path.parent / link).exists()]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_shows_its_pictures(path, tmp_path):
    result = executed(path.read_text(encoding="utf-8"), tmp_path)
    without = [cell.source for cell in result.cells if "picture" in cell.metadata.tags and not pictures(cell)]
    assert not without, f"no picture below\n{without[0]}"
    assert not [p for p in tmp_path.iterdir()], "a notebook leaves files behind"


@pytest.mark.slow
def test_a_missing_picture_and_an_error_are_noticed(tmp_path):
    result = executed("```{code-cell}\n:tags: [picture]\n1 + 1\n```\n", tmp_path)
    assert "picture" in result.cells[0].metadata.tags and not pictures(result.cells[0])
    with pytest.raises(nbclient.exceptions.CellExecutionError):
        executed("```{code-cell}\n1 / 0\n```\n", tmp_path)
