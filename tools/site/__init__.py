"""The documentation site: what Sphinx needs beside the pages in docs/.  An extension, named in docs/conf.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from . import docstrings, links, mathematics, reference


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", lambda app: reference.write(Path(app.srcdir) / "generated"))
    app.connect("autodoc-process-docstring", docstrings.process)
    app.connect("autodoc-process-signature", docstrings.signature)
    app.connect("autodoc-skip-member", reference.skip)
    app.connect("source-read", links.list_all_pages)
    app.connect("source-read", links.to_generated_pages)
    app.connect("missing-reference", links.type_in_signature)
    app.add_lexer("output", TextLexer)  # what the block before prints
    app.add_html_math_renderer(
        "mathml", inline_renderers=(mathematics.inline, None), block_renderers=(mathematics.block, None)
    )
    app.add_post_transform(links.NamesInCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
