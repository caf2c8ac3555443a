"""What people look for in a project: one version, a changelog, files of services that these services understand."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

import linkwise as lw
from tools.words import LIMIT, words, written

from .test_docs import LINK, ROOT
from .test_source_distribution import SETTINGS

FORMS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "custom.github-workflows-require-timeout": ".github/workflows/*.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "vendor.github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "vendor.citation-file-format": "CITATION.cff",
}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_said_once():
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+|\.dev\d+)?", lw.__version__)
    assert "version" not in SETTINGS["project"] and "version" in SETTINGS["project"]["dynamic"]
    assert SETTINGS["tool"]["hatch"]["version"]["path"] == "linkwise/__init__.py"
    assert len(re.findall(r'^__version__ = "', text("linkwise/__init__.py"), re.MULTILINE)) == 1


def test_changelog_and_citation_know_this_version():
    versions = re.findall(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)
    assert versions[0] == "Unreleased" and versions[1] == lw.__version__
    assert f"\nversion: {lw.__version__}\n" in text("CITATION.cff")


@pytest.mark.parametrize("name", ["CHANGELOG.md", "SECURITY.md"])
def test_links_lead_somewhere(name):
    assert not [path for path, _ in LINK.findall(text(name)) if not (ROOT / path).exists()]


@pytest.mark.parametrize("schema", FORMS)
def test_files_of_services_are_what_the_services_expect(schema):
    cli = pytest.importorskip("check_jsonschema.cli")
    files = sorted(ROOT.glob(FORMS[schema]))
    if not (ROOT / ".github").exists():
        pytest.skip("no repository: this is a source distribution")
    assert files
    options = ["--builtin-schema", schema, "--default-filetype", "yaml"]
    done = CliRunner().invoke(cli.main, [*options, *map(str, files)])
    assert done.exit_code == 0, done.output


def test_workflows_test_every_python_of_the_metadata():
    if not (ROOT / ".github").exists():
        pytest.skip("no repository: this is a source distribution")
    kinds = " ".join(SETTINGS["project"]["classifiers"])
    (tested,) = re.findall(r"python: \[(.*)\]", text(".github/workflows/tests.yml"))
    assert re.findall(r"3\.\d+", tested) == re.findall(r"Python :: (3\.\d+)", kinds)
    for target in re.findall(r"run: make (\w+)", "".join(map(text, map(str, ROOT.glob(".github/workflows/*.yml"))))):
        assert f"\n{target}:" in text("Makefile")


def test_pages_are_short_enough_to_be_read():
    assert written() <= LIMIT
    assert len(text("README.md").split()) <= 900 and text("CONTRIBUTING.md").count("\n") <= 150
    assert {"howto", "tutorial", "theory", "coming_from", "pages", "generated"} <= {*words()}
