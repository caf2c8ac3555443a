"""Formulas as MathML, which browsers draw by themselves: no scripts, no network."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

SCRIPT = re.compile(r'<mi mathvariant="script">([A-Z])</mi>')


def as_mathml(latex: str, display: str = "inline") -> str:
    """Script letters are characters of their own: browsers do not know the attribute that asks for them."""
    return SCRIPT.sub(lambda letter: f"<mi>{_script(letter[1])}</mi>", convert(latex, display=display))


def _script(letter: str) -> str:
    try:
        return unicodedata.lookup(f"MATHEMATICAL SCRIPT CAPITAL {letter}")
    except KeyError:
        return unicodedata.lookup(f"SCRIPT CAPITAL {letter}")


def inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(writer.starttag(node, "span", "", CLASS="math") + as_mathml(node.astext()) + "</span>")
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    if node["number"]:
        writer.body.append(f'<span class="eqno">({node["number"]})</span>')
    writer.body.append(as_mathml(node.astext(), "block") + "</div>\n")
    raise nodes.SkipNode
