"""Links of pages: to files that are pages of the site only when it is built, and from code to the reference."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

from .reference import PROJECT, ROOT, relative

LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)]*)?(\))")
CALL = re.compile(r"(?:lw|linkwise)\.(\w+(?:\.\w+)*)(?:\(.*\))?")
IN_REFERENCE = re.compile(r"([A-Z]\w+(?:\.\w+)?|[a-z]+_\w+)(?:\(.*\))?")  # words that can hardly mean anything else


def to_generated_pages(app: Any, page: str, source: list[str]) -> None:
    """Links out of docs/ lead to the generated pages that show these files."""
    file = ROOT / PROJECT[page.removeprefix("generated/")] if page.removeprefix("generated/") in PROJECT else None
    folder = (file or ROOT / "docs" / page).parent

    def target(match: re.Match[str]) -> str:
        path = (folder / match[2]).resolve()
        inside = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else match[2]
        found = _page_of(inside)
        return match[0] if found is None else f"{match[1]}{relative(found[0], page)}{found[1] or match[3] or ''})"

    if page.startswith("generated/reference"):
        return
    source[0] = LINK.sub(target, source[0])


def list_all_pages(app: Any, page: str, source: list[str]) -> None:
    """Pages of docs/ that no list names are listed under the topics: a new page is on the site without further ado."""
    if page != "topics":
        return
    folder = Path(app.srcdir)
    lists = "".join((folder / f"{name}.md").read_text(encoding="utf-8") for name in ("index", "topics", "project"))
    named = set(re.findall(r"^[\w/]+$", lists, re.MULTILINE))
    others = sorted(path.stem for path in folder.glob("*.md") if path.stem not in named | {"index"})
    if others:
        source[0] += "\n```{toctree}\n:maxdepth: 1\n:caption: More\n\n" + "\n".join(others) + "\n```\n"


def _page_of(path: str) -> tuple[str, str] | None:
    """Where the site has a file of the repository: page and place on it."""
    pages = {file: f"generated/{name}.md" for name, file in PROJECT.items()}
    if path in pages:
        return pages[path], ""
    if path.startswith("examples"):
        return "generated/examples.md", f"#{Path(path).stem}" if path.endswith(".py") else ""
    if path.startswith("benchmarks/results/") and path.endswith(".png"):
        return f"generated/benchmarks/{Path(path).name}", ""
    if path.startswith("docs/"):
        return path.removeprefix("docs/"), ""
    return ("index.md", "") if path == "README.md" else None


def type_in_signature(app: Any, env: Any, node: nodes.Element, contnode: nodes.Node) -> nodes.Node | None:
    """Types in signatures are named by their homes, or by aliases that exist for readers: lead to public names, else
    leave them as text.  Only types: links that people write must exist."""
    if node.get("refdomain") != "py" or node.get("reftype") not in ("class", "obj", "exc", "data"):
        return None
    name = node["reftarget"].rpartition(".")[2]
    return _link_to(env, app.builder, node.get("refdoc", env.docname), name, contnode) or contnode


def _link_to(env: Any, builder: Any, page: str, name: str, content: nodes.Node) -> nodes.Node | None:
    entry = env.domains["py"].objects.get(f"linkwise.{name}")
    return None if entry is None else make_refnode(builder, page, entry.docname, entry.node_id, content, name)


class NamesInCode(SphinxPostTransform):
    """Code in running text that is a public name, such as ``lw.simulate``, leads to its entry in the reference."""

    default_priority = 400

    def run(self, **kwargs: Any) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            match = CALL.fullmatch(literal.astext())
            if match is None and self.env.docname.startswith("generated/reference"):
                match = IN_REFERENCE.fullmatch(literal.astext())
            if match is None or isinstance(literal.parent, nodes.reference | nodes.term):
                continue
            link = _link_to(self.env, self.app.builder, self.env.docname, match[1], literal.deepcopy())
            if link is not None:
                literal.replace_self(link)
