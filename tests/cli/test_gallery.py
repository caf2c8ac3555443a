"""linkwise reproduce and linkwise demo: pages with everything that they promise beside them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.demo.exhibit import Comparison, Entry
from linkwise.demo.tour import NEXT
from papers import PAPERS, Exhibit
from papers.reproduce import KEYS


class Page(HTMLParser):
    """Images and anchors of a page; every tag that opens must close."""

    def __init__(self, text: str):
        super().__init__()
        self.images: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "img":
            self.images.append(found["src"])
        if "id" in found:
            self.ids.append(found["id"])
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_one_paper_in_a_new_folder(run, here):
    pytest.importorskip("matplotlib")
    printed = run("reproduce", "saha1999", "--only", "figure", "--output", "a gallery/saha")
    folder = here / "a gallery" / "saha"
    page = Page((folder / "index.html").read_text(encoding="utf-8"))
    numbers = [entry.number for entry in PAPERS["saha1999"].entries if entry.number.startswith("Figure")]
    assert numbers == ["Figure 4", "Figure 5", "Figure 6", "Figure 7", "Figure 8", "Figure 9"]
    assert page.images == [f"saha1999/figure_{n}.png" for n in (4, 5, 6, 7, 8, "8_2", 9)]
    for image in page.images:
        picture = (folder / image).read_bytes()
        assert picture.startswith(b"\x89PNG") and len(picture) > 15_000
    assert [f"saha1999-figure-{n}" for n in (4, 5, 6, 7, 8, 9)] == [i for i in page.ids if "figure" in i]
    twin = (folder / "gallery.md").read_text(encoding="utf-8")
    assert all(f"]({image})" in twin for image in page.images) and twin.count("agrees: ") >= 10
    assert printed.count("Figure") == 6 and "all " in printed and "page: a gallery/saha/index.html" in printed


def test_tables_and_single_numbers(run, here):
    assert run("reproduce", "all", "--list").count("\n") == sum(len(paper.entries) for paper in PAPERS.values())
    run("reproduce", "jain1995", "--only", "table 2", "--only", "lemma 2.2", "-o", "g")
    text = (here / "g" / "index.html").read_text(encoding="utf-8")
    assert "Working" not in text and text.count("<article") == 2 and "independent symbols" in text


def test_the_papers_are_those_offered():
    assert tuple(PAPERS) == KEYS


def test_bad_wishes(run):
    assert "'jain'" in run("reproduce", "jain", fails=True)
    message = run("reproduce", "saha1999", "--only", "figure 12", fails=True)
    assert "nothing called 'figure 12'; available: Table 1, Table 2, Figure 4" in message


def test_a_deviation_is_exit_code_1_and_shown(monkeypatch, here, capsys):
    def wrong() -> Exhibit:
        return Exhibit(
            "Nothing.", compared=(Comparison("two and two less five", 1.0, 0.0), Comparison("nan", float("nan"), 1.0))
        )

    monkeypatch.setattr(PAPERS["saha1999"], "entries", [Entry("Figure 0", 'a < b & "c"', wrong)])
    assert main(["reproduce", "saha1999", "-o", "g"]) == 1
    out = capsys.readouterr().out
    assert "DEVIATES" in out and "2 of 2 comparisons DEVIATE" in out
    page = (here / "g" / "index.html").read_text()
    assert page.count('class="deviates"') == 2 and "a &lt; b &amp; &quot;c&quot;" in page
    Page(page)


def test_demo(run, here, quick):
    pytest.importorskip("matplotlib")
    printed = run("demo")
    page = Page((here / "demo" / "index.html").read_text(encoding="utf-8"))
    assert page.images and all((here / "demo" / image).stat().st_size > 10_000 for image in page.images)
    assert [image for image in page.images if image.endswith(".gif")] == ["tour/2.gif", "tour/3.gif"]
    assert "mass matrix" in printed and "times faster than NumPy" in printed and "linkwise --help" in printed
    assert re.search(r"all \d+ agree; 5 pictures", printed)


def test_demo_of_an_installed_package_names_no_examples(here):
    """The examples are in a checkout only; ``here`` has the package and nothing beside it."""
    (here / "linkwise").symlink_to(Path(lw.__file__).parent, target_is_directory=True)
    script = "from linkwise.demo.tour import NEXT, TOUR; print(*NEXT, TOUR.about, sep='\\n')"
    installed = subprocess.run(
        [sys.executable, "-c", script],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(here)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "linkwise info robot.urdf" in installed and "examples" not in installed
    if (Path(lw.__file__).parents[1] / "examples").is_dir():
        assert NEXT[0].startswith("python examples/01_load_and_compute.py ")


def test_demo_without_matplotlib_says_so_and_goes_on(run, here, quick, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    printed = run("demo", "-o", "plain")
    assert "there are no pictures: pip install 'linkwise[plot]'" in printed and "0 pictures" in printed
    assert Page((here / "plain" / "index.html").read_text()).images == []


def test_figures_without_matplotlib_are_one_line(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "drawing needs matplotlib: pip install 'linkwise[plot]'" in run(
        "reproduce", "saha1999", "--only", "figure 5", fails=True
    )


# -- installed, without a checkout --------------------------------------------------------------------


def test_commands_of_a_checkout_say_how_to_get_it(tmp_path, run):
    """``tmp_path`` has the package and nothing beside it, as an installed one."""
    (tmp_path / "linkwise").symlink_to(Path(lw.__file__).parent, target_is_directory=True)
    commands = {"benchmarks/": ["bench", "builtin:chain:2", "--peers"], "papers/": ["reproduce", "all"]}
    for folder, arguments in commands.items():
        done = subprocess.run(
            [sys.executable, "-m", "linkwise", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert f"linkwise {arguments[0]} is not in the installed package" in done.stderr and folder in done.stderr
        assert "pip install --editable ." in done.stderr


def test_the_wheel_has_neither_papers_nor_benchmarks():
    """Their modules are not below the package; what the wheel has is the package alone (pyproject.toml)."""
    package = Path(lw.__file__).parent
    names = {path.stem for path in package.rglob("*.py")}
    assert not {"saha1999", "comparison_report", "reproduce", "bench"} & names and {"tour", "demo"} <= names
