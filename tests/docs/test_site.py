"""The documentation site: its own parts, and that all of it builds without warnings."""

from __future__ import annotations

import html
import operator
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import linkwise as lw
from tools.uses import public_names, uses

from .test_docs import ROOT

pytest.importorskip("sphinx", reason="needs the extra 'docs'")
pytest.importorskip("myst_nb")
pytest.importorskip("latex2mathml")
BUILD = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html"]


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*BUILD, str(source), str(target)], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path):
    """The folder of the build is used again: what did not change is not built again."""
    done = build(ROOT / "docs", ROOT / "docs" / "_build" / "html")
    assert done.returncode == 0, done.stderr
    pages = ROOT / "docs" / "_build" / "html"
    reference = "".join(page.read_text(encoding="utf-8") for page in (pages / "generated" / "reference").glob("*.html"))
    missing = [name for name in public_names() if f'id="linkwise.{name}"' not in reference]
    assert not [name for name in missing if f'id="module-linkwise.{name}"' not in reference]


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("[nowhere](nothing.md)", "nothing.md"),
        ("[no such heading](#nothing)", "nothing"),
        ("```{eval-rst}\n:py:func:`linkwise.nothing`\n```", "linkwise.nothing"),
        ("![](pictures/nothing.png)", "nothing.png"),
    ],
)
@pytest.mark.slow
def test_broken_links_fail_the_build(page, complaint, tmp_path):
    shutil.copy(ROOT / "docs" / "conf.py", tmp_path)
    settings = (tmp_path / "conf.py").read_text(encoding="utf-8").replace("parents[1]", f"parents[0] / {str(ROOT)!r}")
    (tmp_path / "conf.py").write_text(
        settings.replace('"tools.site"', "").replace('"mathml"', "None"), encoding="utf-8"
    )
    (tmp_path / "_static").mkdir()
    (tmp_path / "index.md").write_text(f"# Page\n\n{page}\n", encoding="utf-8")
    done = build(tmp_path, tmp_path / "out")
    assert done.returncode != 0 and complaint in done.stderr


# -- parts ------------------------------------------------------------------------------------------------


def test_docstrings_become_definition_lists_and_literal_blocks():
    from tools.site.docstrings import as_rst

    text = """What it is, ``code`` and H*.

q0, v0   the state; None.  At rest
         if left out
method   "rk4" or |v|

    indented = code()

A sentence.  Another one with `lw.load`.
"""
    assert as_rst(text) == (
        "What it is, ``code`` and H\\*.\n\n"
        '``q0, v0``\n    the state; None.  At rest\n    if left out\n``method``\n    "rk4" or \\|v\\|\n\n'
        "::\n\n    indented = code()\n\n"
        "A sentence.  Another one with ``lw.load``.\n"
    )


@pytest.mark.parametrize("name", [name for name in public_names() if not name.startswith("operators.")])
def test_docstrings_are_understood(name):
    import docutils.core
    import docutils.utils

    from tools.site.docstrings import as_rst

    value = operator.attrgetter(name)(lw)
    quiet = {"report_level": 5, "halt_level": 2}  # warnings stop
    docutils.core.publish_doctree(as_rst(getattr(value, "__doc__", "") or ""), settings_overrides=quiet)


def test_signatures_have_types_as_they_are_written():
    from tools.site.docstrings import signature

    text, result = signature(None, "function", "", lw.rollout, None, None, None)
    assert text.startswith("(mech: Mechanism, q0: ") and "ArrayLike" in text and "_Buffer" not in text
    assert (
        "Float64Array" in result
        and "self" not in signature(None, "method", "", lw.Mechanism.frame, None, None, None)[0]
    )


def test_formulas_are_drawn_without_scripts():
    from tools.site.mathematics import as_mathml

    text = html.unescape(as_mathml(r"\mathcal M^{-1} = \dot v, \mathcal{D}", "block"))
    assert text.startswith("<math") and "\u2133" in text and "\U0001d49f" in text and "mathvariant" not in text


def test_links_to_files_of_the_repository_lead_to_generated_pages():
    from tools.site.links import to_generated_pages

    source = ["[a](../CHANGELOG.md), [b](../examples/10_simulate.py), [c](files.md#sdf-files), [d](https://e.org)"]
    to_generated_pages(None, "index", source)
    assert source == [
        "[a](generated/changelog.md), [b](generated/examples.md#10_simulate), [c](files.md#sdf-files), [d](https://e.org)"
    ]
    source = ["[a](docs/stability.md)"]
    to_generated_pages(None, "generated/changelog", source)
    assert source == ["[a](../stability.md)"]


def test_new_pages_are_listed_by_themselves(tmp_path):
    from types import SimpleNamespace

    from tools.site.links import list_all_pages

    for name, text in {"index": "", "topics": "known\n", "project": "", "known": "", "fresh": ""}.items():
        (tmp_path / f"{name}.md").write_text(f"# Title\n\n{text}", encoding="utf-8")
    source = ["# Topics"]
    list_all_pages(SimpleNamespace(srcdir=tmp_path), "topics", source)
    assert "\nfresh\n" in source[0] and "known" not in source[0]


def test_every_example_is_on_its_page():
    from tools.site.reference import examples_page

    page = examples_page()
    assert all(f"({path.stem})=" in page for path in (ROOT / "examples").glob("[0-9]*.py"))
    assert len(re.findall(r"!\[\]\(", page)) >= 15


def test_uses_find_names_by_whatever_they_are_imported():
    assert "docs/closed.md" in uses()["constraints.assemble"]
    assert "examples/05_operators.py" in uses()["operators.psi"] and "README.md" in uses()["rollout"]
