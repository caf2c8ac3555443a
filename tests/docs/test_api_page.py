"""docs/api.md is what the docstrings say now, and leaves no public name out."""

from __future__ import annotations

import re

import linkwise as lw
from tools.api_page import PAGE, page


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.api_page"


def test_every_public_name_is_on_it():
    shown = set(re.findall(r"(?:^\s*- `|^## (?:lw\.)?|: `|^`)(\w+)", page(), re.MULTILINE))
    modules = (
        lw,
        lw.mechanisms,
        lw.operators,
        lw.constraints,
        lw.linkages,
        lw.formulations.denoc,
        lw.formulations.diagonal,
        lw.viewer,
    )
    public = {name for module in modules for name in module.__all__} - {"__version__"}
    members = {name for one in (lw.Mechanism, lw.Kernel, lw.Builder) for name in dir(one) if name[0] != "_"}
    assert not (public | members - set(lw.Mechanism.__dataclass_fields__)) - shown
