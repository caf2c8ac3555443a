"""Write public_api.txt, the public names with their signatures, so that every change of them is seen in review.

python -m tools.public_api           write the file
python -m tools.public_api --check   compare: print what differs and exit with 1

One line per name: functions and classes with their parameters, public attributes of classes below them, those of the
views of a mechanism (``mech.limits``) below these, submodules of ``linkwise`` after its own names.  The first lines
count them; ``--check`` also fails where there are more than ``MOST`` allows.
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import linkwise as lw
from linkwise.mechanism.tree import Tree
from linkwise.mechanism.view import View

FILE = Path(__file__).parents[1] / "public_api.txt"
#: How many names one can look through: at the top, in each submodule, attributes of a mechanism.
MOST = {
    "names": 62,
    "submodules": 20,
    "names in a submodule": 20,
    "attributes of Mechanism": 50,
    "attributes of a view": 20,
}
CATALOGUES = ("mechanisms", "operators")  # lists of what there is; one looks things up in them


def text() -> str:
    """The whole file."""
    public = {name: getattr(lw, name) for name in lw.__all__ if name != "__version__"}
    modules = {name: value for name, value in public.items() if isinstance(value, ModuleType)}
    names = {name: value for name, value in public.items() if name not in modules}
    inside = {name: _members(module) for name, module in public_modules().items()}
    attributes = sum(1 for _ in _attributes(lw.Mechanism))
    lines = [
        "# Public names and signatures, written by `python -m tools.public_api`.",
        f"# linkwise: {len(names)} names, {len(modules)} submodules with {sum(map(len, inside.values()))} names; "
        f"Mechanism: {attributes} attributes",
        "# names in submodules: " + ", ".join(f"{name} {len(members)}" for name, members in inside.items()),
        "",
    ]
    for name, value in names.items():
        lines += _entry(f"linkwise.{name}", value)
    for module, members in inside.items():
        lines.append("")
        for name, value in members.items():
            lines += _entry(f"linkwise.{module}.{name}", value)
    return "\n".join(lines) + "\n"


def public_modules() -> dict[str, ModuleType]:
    """Public submodules by their names after ``linkwise.``, each followed by its own submodules."""
    found: dict[str, ModuleType] = {}
    for name in lw.__all__:
        value = getattr(lw, name)
        if isinstance(value, ModuleType):
            found |= {name: value, **{f"{name}.{key}": inner for key, inner in _submodules(value)}}
    return found


def too_many() -> list[str]:
    """What there is more of than ``MOST``, one sentence each."""
    modules = {name: value for name, value in public_modules().items() if "." not in name}
    counts = {
        "names": len(lw.__all__) - len(modules) - 1,  # without __version__
        "submodules": len(modules),
        "attributes of Mechanism": sum(1 for _ in _attributes(lw.Mechanism)),
    }
    sentences = [f"{kind}: {count}, and at most {MOST[kind]} are meant" for kind, count in counts.items()]
    sentences = [said for (kind, count), said in zip(counts.items(), sentences, strict=True) if count > MOST[kind]]
    most = MOST["names in a submodule"]
    sentences += [
        f"mech.{name}: {count} attributes, and at most {MOST['attributes of a view']} are meant"
        for name, view in views().items()
        if (count := sum(1 for _ in _attributes(view))) > MOST["attributes of a view"]
    ]
    return sentences + [
        f"linkwise.{name}: {len(module.__all__)} names, and at most {most} are meant"
        for name, module in public_modules().items()
        if len(module.__all__) > most and name not in CATALOGUES
    ]


def _members(module: ModuleType) -> dict[str, Any]:
    """The public names of a submodule, without its own submodules."""
    return {name: getattr(module, name) for name in sorted(module.__all__) if not is_module(module, name)}


def _submodules(module: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    return ((name, getattr(module, name)) for name in sorted(module.__all__) if is_module(module, name))


def is_module(module: ModuleType, name: str) -> bool:
    """Whether a public name of a module is a submodule of it."""
    return isinstance(getattr(module, name), ModuleType)


def _entry(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield f"class {name}{_parameters(value)}"
        if not issubclass(value, (Exception, Warning)):
            for attribute in _attributes(value):
                yield f"    {attribute}"
                if value is lw.Mechanism and attribute in views():
                    yield from (f"        {inner}" for inner in _attributes(views()[attribute]))
    elif callable(value):
        yield f"{name}{_parameters(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


@cache
def views() -> dict[str, type]:
    """The views of a mechanism: name of the attribute -> its class."""
    found = {}
    for name, value in vars(lw.Mechanism).items():
        getter = getattr(value, "fget", None) or getattr(value, "func", None)
        kind = getter.__globals__.get(getter.__annotations__.get("return")) if getter else None
        if inspect.isclass(kind) and (issubclass(kind, View) or kind is Tree):
            found[name] = kind
    return found


def _attributes(kind: type) -> Iterator[str]:
    """Public attributes of a class of ours, those of its bases included, with the parameters of methods."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("linkwise")]
    fields = getattr(kind, "__dataclass_fields__", {})
    names = {name for base in ours for name in (*vars(base), *getattr(base, "__annotations__", {}))} | set(fields)
    for name in sorted(name for name in names if not name.startswith("_")):
        value = inspect.getattr_static(kind, name, None)
        value = getattr(value, "__func__", value)  # static and class methods
        yield f"{name}{_parameters(value)}" if inspect.isfunction(value) else name


def _parameters(value: Any) -> str:
    """Names, kinds and defaults of parameters: no annotations, which no caller has to change for."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    bare = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def main(arguments: list[str]) -> int:
    """Write the file, or compare it with what it should be."""
    if arguments != ["--check"]:
        FILE.write_text(text(), encoding="utf-8")
        return 0
    written = FILE.read_text(encoding="utf-8") if FILE.exists() else ""
    changes = list(
        difflib.unified_diff(written.splitlines(), text().splitlines(), FILE.name, "linkwise", "", "", 0, "")
    )
    if changes:
        print("\n".join(changes))
        print("The public names have changed: if that is meant, run `python -m tools.public_api` and commit the file.")
    print("\n".join(text().splitlines()[1:3] + too_many()))
    return 1 if changes or too_many() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
