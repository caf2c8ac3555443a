"""Small pieces of HTML for light and dark pages: colours are inherited from the page."""

from __future__ import annotations

import base64
import html
import importlib.util
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

MANY = 16  # rows of a table beyond which the rest is folded away
LINE = "1px solid color-mix(in srgb, currentColor 25%, transparent)"
CELL = "padding:.1em .6em;border:0;white-space:nowrap;"
WIDE = 280  # pixels: of a picture beside a table


class Markup(str):
    """Text that is HTML already."""


def escaped(text: Any) -> Markup:
    return text if isinstance(text, Markup) else Markup(html.escape(str(text)))


def number(x: float) -> str:
    """A number with few digits; round-off is 0."""
    return "0" if abs(x) < 1e-12 else f"{x:.4g}"


def table(head: Sequence[Any], rows: Sequence[Sequence[Any]], numbers: Iterable[int] = (), many: int = MANY) -> Markup:
    """An HTML table with ``numbers`` aligned on the right. Empty columns are omitted; rows beyond ``many`` are folded
    away.
    """
    used = [k for k in range(len(head)) if any(row[k] != "" for row in rows)] if rows else list(range(len(head)))
    right = set(numbers)

    def line(cells: Sequence[Any], tag: str, style: str = "") -> str:
        def row(k: int) -> str:
            align = "right" if k in right else "left"
            return f'<{tag} style="{CELL}{style}text-align:{align}">{escaped(cells[k])}</{tag}>'

        return f"<tr>{''.join(row(k) for k in used)}</tr>"

    def body(part: Sequence[Sequence[Any]]) -> str:
        top = line(head, "th", f"font-weight:600;border-bottom:{LINE};")
        style = "border-collapse:collapse;border:0;margin:0 0 .6em;font-size:inherit;font-variant-numeric:tabular-nums"
        return (
            f'<table style="{style}"><thead>{top}</thead><tbody>{"".join(line(r, "td") for r in part)}</tbody></table>'
        )

    if len(rows) <= many + 4:
        return Markup(body(rows))
    return Markup(body(rows[:many]) + folded(f"{len(rows) - many} further rows", Markup(body(rows[many:]))))


def folded(title: str, content: Markup) -> Markup:
    """Content that opens when its title is clicked."""
    return Markup(f'<details><summary style="cursor:pointer">{escaped(title)}</summary>{content}</details>')


def preformatted(text: str) -> Markup:
    style = "background:none;color:inherit;margin:.3em 0;line-height:1.3;overflow-x:auto"
    return Markup(f'<pre style="{style}">{escaped(text)}</pre>')


def block(title: str, facts: str, *parts: Markup) -> dict[str, str]:
    """A title, a line of facts, and parts side by side as far as they fit."""
    inside = "".join(f"<div>{part}</div>" for part in parts if part)
    return {
        "text/html": f"<div><div><b>{escaped(title)}</b> {escaped(facts)}</div>"
        f'<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start;margin-top:.4em">{inside}</div></div>'
    }


def picture(draw: Callable[[], Any], words: str) -> Markup:
    """A figure of ``linkwise.viewer`` on white paper; empty without matplotlib or without anything to draw."""
    if importlib.util.find_spec("matplotlib") is None:
        return Markup()
    try:
        figure = draw()
    except ValueError:  # no moving links, loops that cannot be closed: the table says what there is
        return Markup()
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=2.0 * WIDE / figure.get_figwidth())
    data = base64.b64encode(stream.getvalue()).decode()
    style = f"max-width:{WIDE}px;max-height:{WIDE}px;background:white;border-radius:4px"
    return Markup(f'<img alt="{escaped(words)}" style="{style}" src="data:image/png;base64,{data}">')
