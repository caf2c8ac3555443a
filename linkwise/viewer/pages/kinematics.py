"""Forward kinematics of one mechanism in JavaScript: the program of ``link_poses``, written down once more."""

from __future__ import annotations

import linkwise as lw

FORMULAS = {
    "add": "{0}+{1}",
    "sub": "{0}-{1}",
    "mul": "{0}*{1}",
    "div": "{0}/{1}",
    "neg": "-{0}",
    "sqrt": "Math.sqrt({0})",
    "sin": "Math.sin({0})",
    "cos": "Math.cos({0})",
    "atan2": "Math.atan2({0},{1})",
    "less": "{0}<{1}",
    "select": "{0}?{1}:{2}",
}


def forward_kinematics(mech: lw.Mechanism) -> str:
    """``function link_poses(q, out)``: poses of the links (n_links, 4, 4), rows first, into ``out``."""
    program = lw.compile("link_poses", mech, target="numpy", loops=False).straight_line
    text: dict[object, str] = {}
    lines, section = ["function link_poses(q, out) {"], ""
    for node in program.nodes:
        if node.op.name == "const":
            text[node] = f"({node.value!r})" if node.value < 0.0 else repr(node.value)
        elif node.op.name == "input":
            text[node] = f"q[{node.value[1]}]"
        else:
            if node.section != section:
                section = node.section
                lines.append(f"  // {' '.join(section.split())}")
            name = f"t{len(text)}"
            lines.append(f"  const {name} = {FORMULAS[node.op.name].format(*(text[arg] for arg in node.args))};")
            text[node] = name
    lines += [f"  out[{index}] = {text[node]};" for index, node in enumerate(program.results[0])]
    return "\n".join([*lines, "}"]).replace("</", "<\\/")
