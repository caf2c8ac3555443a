"""The recipes of docs/extending.md: every name in them exists, their examples run, each works in the files it names."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import click
import pytest

import linkwise as lw
from linkwise import cli
from linkwise.mechanics import joints
from linkwise.mechanics.algorithms import catalogue
from linkwise.mechanics.operators import RECORDS, Record, dense
from linkwise.readers import protocol

from .test_docs import FENCE, ROOT, blocks, run_page

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BOTH = PAGE + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
KINDS = ("joint", "operator", "algorithm", "target", "reader", "integrator", "command")
PLACEHOLDERS = {"NAME", "PATH", "FILE", "OTHER"}
SPAN = re.compile(r"`([^`\n]+)`")
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
ONE_LINK = "<robot name='one'><link name='base'/></robot>"


def recipe(kind: str) -> str:
    """The text of one recipe."""
    return re.split(r"^## ", PAGE.split(f"## Add a{'n' * (kind[0] in 'aeio')} {kind}\n", 1)[1], flags=re.MULTILINE)[0]


# -- names ------------------------------------------------------------------------------------------------


def defined_names() -> set[str]:
    """Every module, class, function, argument, field and constant of the repository, and what is imported there."""
    names = {*dir(builtins), *keyword.kwlist, "lw", "op", "linkwise", "click"}
    markers = re.search(r"^markers = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M | re.S)
    names |= set(re.findall(r'^ *"(\w+)', markers[1], re.M)) if markers else set()
    for folder in ("linkwise", "tools"):
        for path in (ROOT / folder).rglob("*.py"):
            names |= {path.stem, *path.relative_to(ROOT).parts[:-1]}
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                match node:
                    case ast.FunctionDef() | ast.ClassDef():
                        names.add(node.name)
                    case ast.arg():
                        names.add(node.arg)
                    case ast.Name(ctx=ast.Store()):
                        names.add(node.id)
                    case ast.Attribute(ctx=ast.Store()):
                        names.add(node.attr)
                    case ast.alias():
                        names |= {node.name.rpartition(".")[2], node.asname or ""}
    return names


def shown(command: click.Command) -> list[click.Parameter]:
    """What the help of a command lists, --help among it."""
    return command.get_params(click.Context(command))


def is_known(span: str, names: set[str]) -> bool:
    """Whether what stands in backticks exists: a path, a command, a public name, or identifiers of the repository."""
    if span.startswith("--"):
        options = (option for command in cli.commands.commands.values() for option in shown(command))
        return any(span in option.opts for option in options)
    if span.startswith("make "):
        return f"\n{span.split()[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    if span.startswith("python -m "):
        return (ROOT / f"{span.split()[2].replace('.', '/')}.py").exists()
    if "/" in span or re.fullmatch(r"[\w.]+\.(py|md|toml|csv|pyi)", span):
        pattern = span.rstrip("/").replace("NAME", "*")
        return any(ROOT.glob(pattern)) or ("/" not in span and any((ROOT / "linkwise").rglob(span)))
    public = re.fullmatch(r"(lw|op|click|commands)\.([\w.]+)", span)
    if public:
        value = {"lw": lw, "op": lw.operators, "click": click, "commands": cli.commands}[public[1]]
        for part in public[2].split("."):
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    words = re.findall(r"[A-Za-z_]\w*", QUOTED.sub("", span))
    return all(word in names or word in PLACEHOLDERS for word in words)


def test_every_name_exists():
    names = defined_names()
    spans = SPAN.findall(FENCE.sub("", BOTH))
    assert len(spans) > 80
    assert not [span for span in spans if not is_known(span, names)]


def test_names_that_are_gone_are_noticed():
    names = defined_names()
    gone = (
        "_KNOWN" + "_READERS",
        "_NOT" + "_YET",
        "passes.proto" + "cols",
        "linkwise/tree_dynamics.py",
        "followers" + "_.py",
    )
    for span in (*gone, "lw.front_doors", "op.local.no", "make nothing", "python -m tools.nothing", "--nowhere"):
        assert not is_known(span, names), span
    for span in (
        "linkwise/readers/NAME.py",
        "lw.extend.register_target",
        "op.define",
        "make test",
        "METHODS",
        "--json",
    ):
        assert is_known(span, names), span


# -- examples ---------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
def test_the_examples_run(restored_tables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert all(len(blocks(recipe(kind))) >= 2 for kind in KINDS)
    run_page(PAGE, "extending.md")
    assert "python" in lw.codegen.TARGETS and "Drag" in RECORDS and "heun_step" in catalogue.ALGORITHMS


def test_nothing_of_the_examples_is_left():
    assert "python" not in lw.codegen.TARGETS and "Drag" not in RECORDS and "heun_step" not in catalogue.ALGORITHMS


# -- in the package ---------------------------------------------------------------------------------------


def example(kind: str) -> str:
    """What an example defines."""
    return blocks(recipe(kind))[0].code


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def followed(package: Path) -> dict[str, set[str]]:
    """Put each example into the package; the files that were touched, by kind."""
    mechanics, compiler = package / "mechanics", package / "compiler"

    def contents() -> dict[str, str]:
        return {str(path.relative_to(package)): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}

    touched, before = {}, contents()

    def note(kind: str) -> None:
        nonlocal before
        after = contents()
        touched[kind] = {name for name, text in after.items() if before.get(name) != text}
        before = after

    homes = {  # the page says from where the package imports what lw.extend offers to others
        "from linkwise.extend import Joint, Measure, Motion, Step, Transform,": (
            "from .protocol import Joint, Measure, Step\nfrom ..spatial import Motion, Transform,"
        ),
        "linkwise.extend.scalar": "..scalar",
    }
    text = example("joint")
    for public, home in homes.items():
        assert public in text
        text = text.replace(public, home)
    (mechanics / "joints" / "rolling.py").write_text(text)
    edit(mechanics / "joints" / "__init__.py", "from .spherical", "from .rolling import Rolling\nfrom .spherical")
    edit(mechanics / "joints" / "__init__.py", '    "Spherical",', '    "Rolling",\n    "Spherical",')
    note("joint")

    algebra = mechanics / "operators" / "algebra.py"
    own = example("operator").replace("op.local", "act.local").replace("op.", "")
    own = own.replace("from linkwise import operators as op\n", "import numpy as np\n")
    own = own.replace("from linkwise.extend import", "from ..spatial import")
    edit(algebra, "\ndef _checked_name", f"\n{own}\n\ndef _checked_name")
    edit(algebra, "__all__ = [\n", '__all__ = [\n    "Drag",\n')
    note("operator")

    drag = 'op.S.T @ op.H @ op.phi @ op.Drag @ op.phi.T @ op.H.T @ op.S @ op.coordinate_vector("v")'
    own = [
        "from .. import operators as op",
        "from .algorithm import expressed",
        '@expressed("drag_force", ("q", "v"), "tau")',
        "def drag_force(mech):",
        '    """(nv,): what couples on the links do at the joints."""',
        f"    return {drag}",
    ]
    (mechanics / "algorithms" / "drag.py").write_text("\n".join(own) + "\n")
    note("algorithm")

    (compiler / "targets" / "plain.py").write_text(example("target"))
    edit(compiler / "known_targets.py", "import c_source, ", "import plain, c_source, ")
    line = 'Target("python", plain.emit, name="python", load=plain.load),'
    edit(
        compiler / "known_targets.py",
        '    Target("c", c_source.emit, loops=True),\n',
        f'    Target("c", c_source.emit, loops=True),\n    {line}\n',
    )
    note("target")

    (package / "readers" / "pendulums.py").write_text(example("reader"))
    note("reader")

    tableau = '"heun": Tableau(stages=((), (1.0,)), weights=(0.5, 0.5)),'
    edit(mechanics / "algorithms" / "integration.py", '    "semi_implicit": ', f'    {tableau}\n    "semi_implicit": ')
    note("integrator")

    (package / "cli" / "weigh.py").write_text(example("command"))
    note("command")
    return touched


USES = """
import numpy as np, linkwise as lw
from linkwise import operators as op
arm, q = lw.mechanisms.chain(3), np.array([0.1, 0.2, 0.3])
assert "rolling" in lw.mechanisms.EVERY_KIND
assert lw.mechanisms.random_tree(4, 0, ("rolling",)).bodies[0].kind == lw.Rolling()
cart = lw.Builder().link("wheel", 1.0, inertia=(1, 1, 1)).joint("roll", lw.Rolling(0.2), "ground", "wheel").build()
cart.save("cart.urdf")
there = lw.load("cart.urdf")
convert = lw.interop.to_mechanism(cart, there)
roll, turning = np.array([0.4]), np.array([2.0])
np.testing.assert_allclose(
    lw.frame_pose(there, convert.q(roll), "wheel"), lw.frame_pose(cart, roll, "wheel"), atol=1e-14
)
energies = lw.kinetic_energy(there, *convert.state(roll, turning)), lw.kinetic_energy(cart, roll, turning)
np.testing.assert_allclose(*energies)
from linkwise.viewer import scene
assert any("roll" in part.name for part in scene(cart).parts)
damping = op.H @ op.phi @ op.Drag @ op.phi.T @ op.H.T
np.testing.assert_allclose(lw.compile(damping, arm, target="numpy")(q), op.dense(damping, arm, q))
np.testing.assert_allclose(lw.compile("drag_force", arm, target="numpy")(q, q), op.dense(damping, arm, q) @ q)
np.testing.assert_allclose(lw.compile("bias_force", arm, target="python")(q, q), lw.bias_force(arm, q, q))
assert any(line.startswith("drag_force(q, v) -> tau: (nv,)") for line in lw.algorithms())
assert lw.load("<pendulums><rod mass='1' length='0.5'/></pendulums>").nv == 1
assert lw.rollout(arm, q, q, None, 0.1, 2, "heun", target="numpy")[0].shape == (3, 3)
from linkwise.cli import main
assert main(["weigh", "builtin:chain:2"]) == 0
"""


def test_recipes_touch_no_more_files_than_they_say(tmp_path):
    package = tmp_path / "linkwise"
    shutil.copytree(ROOT / "linkwise", package, ignore=shutil.ignore_patterns("__pycache__"))
    touched = followed(package)
    assert {kind: len(files) for kind, files in touched.items()} == {**dict.fromkeys(KINDS, 1), "joint": 2, "target": 2}
    for kind, files in touched.items():
        row = next(line for line in PAGE.splitlines() if line.startswith("|") and f" {kind} |" in line)
        patterns = [span for span in SPAN.findall(row) if "/" in span]
        assert len(patterns) == len(files), (kind, files)
        for name in files:
            assert any(Path("linkwise", name).match(pattern.replace("NAME", "*")) for pattern in patterns), (kind, name)
    done = subprocess.run([sys.executable, "-c", USES], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_package_follows_its_recipes():
    """What is in a folder of one kind is known, without a list beside it."""
    folder = ROOT / "linkwise"
    own = {kind for name, kind in joints.KINDS.items() if "." not in name}
    assert own == {getattr(lw, name) for name in joints.__all__}
    assert {path.stem for path in (folder / "mechanics" / "joints").glob("[!_]*.py")} == {
        *(kind.__module__.rpartition(".")[2] for kind in own),
        "protocol",
        "drawing",
    }
    assert own - {lw.Fixed} <= set(dense_kinds())
    lw.load(ONE_LINK)
    modules = (import_module(f"linkwise.readers.{module.name}") for module in iter_modules([str(folder / "readers")]))
    readers = {module.__name__ for module in modules if hasattr(module, "from_xml")}
    assert readers == {known.read.__module__ for known in protocol.FORMATS.values() if known.read} and len(readers) >= 2
    packages = {command.callback.__module__.rpartition(".")[0] for command in cli.commands.commands.values()}
    assert packages <= {"linkwise.cli", "benchmarks.speed", "papers"} and len(cli.commands.commands) >= 10
    assert all(isinstance(record, Record) and record.meaning for record in RECORDS.values())


def dense_kinds() -> list[type]:
    """The joints whose kinematics the oracle has."""
    return list(sys.modules[dense.__module__].kinematics.registry)
