"""What files, pictures and libraries ask of joints, the kinds say themselves."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics import joints
from linkwise.mechanics.joints import KINDS, Joint
from linkwise.mechanics.operators.dense import kinematics

PACKAGE = Path(lw.__file__).parent
NAMES = set(joints.__all__)
KIND_NAMES = list(joints.__all__)


def _kinds_in(node: ast.AST) -> set[str]:
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return (found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}) & NAMES


def _questions(tree: ast.AST) -> list[int]:
    """Lines that ask of which kind a joint is: isinstance, type(x) is, match, tables from kinds to something else,
    names of classes."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and "joints" not in (node.module or "") and node.module != "linkwise"
        for alias in node.names
    } | {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    lines = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, classes]):
                asked = _kinds_in(classes) - imported
            case ast.Compare(left=left, comparators=comparators):
                asked = set().union(*map(_kinds_in, [left, *comparators])) - imported
                words = {one.value for part in comparators for one in ast.walk(part) if isinstance(one, ast.Constant)}
                asked |= {word for word in words if isinstance(word, str)} & NAMES
            case ast.MatchClass(cls=cls):
                asked = _kinds_in(cls) - imported
            case ast.Dict(keys=keys):
                asked = set().union(*(_kinds_in(key) for key in keys if key is not None)) - imported
            case _:
                continue
        lines += [node.lineno] if asked else []
    return lines


def test_nobody_asks_of_which_kind_a_joint_is():
    asked = []
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("mechanics/joints/"):
            asked += [f"{name}:{line}" for line in _questions(ast.parse(path.read_text(encoding="utf-8")))]
    assert not asked


@pytest.mark.parametrize(
    "text",
    [
        "import linkwise as lw\nisinstance(x, lw.Revolute)",
        "from linkwise.mechanics.joints import Prismatic\nisinstance(x, (int, Prismatic | str))",
        "type(x) is lw.Floating",
        "type(x) in (lw.Floating, int)",
        "kind.kind_name() == 'Planar'",
        "match x:\n    case lw.Fixed():\n        pass",
        "TABLE = {lw.Revolute: 'hinge'}",
    ],
)
def test_such_questions_are_noticed(text):
    assert len(_questions(ast.parse(text))) == 1


def _random(name: str, seed: int) -> Joint:
    words = {"PinInSlot": "pin_in_slot"}
    return lw.mechanisms.random_tree(1, seed, [words.get(name, name.lower())]).bodies[0].kind


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [name for name in KIND_NAMES if name != "Fixed"])
def test_steps_make_up_the_transform(name, seed):
    """Against the dense oracle, which shares nothing with the kinds."""
    kind = _random(name, seed)
    assert bool(kind.steps) == (name not in ("Spherical", "Floating"))
    if not kind.steps:
        return
    q = np.random.default_rng(seed).normal(size=kind.nq)
    expected = kinematics(kind, q)
    pose = np.eye(4)
    for step in kind.steps:
        moved, amount = np.eye(4), step.ratio * q[step.coordinate]
        if step.turns:
            moved[:3, :3] = lw.kinematics.so3.exp(amount * np.array(step.axis))
        else:
            moved[:3, 3] = amount * np.array(step.axis)
        pose = pose @ moved
    np.testing.assert_allclose(pose[:3, :3], expected.rotation, atol=1e-13)
    np.testing.assert_allclose(pose[:3, 3], expected.position, atol=1e-13)


@pytest.mark.parametrize("name", KIND_NAMES)
def test_answers_follow_from_the_motion(name):
    """Hinge, slide, ball and free joint, against rank and span of the motions at random coordinates."""
    kind = KINDS[name]() if name == "Fixed" else _random(name, 5)
    q = kind.random(np.random.default_rng(0), ())
    columns = np.array([motion.flat() for motion in kind.motion(q)], dtype=float).reshape(-1, 6)
    angular, linear = (
        np.linalg.matrix_rank(columns[:, part]) if len(columns) else 0 for part in (slice(3), slice(3, 6))
    )
    assert (kind.hinge is not None) == ((kind.nv, angular, linear) == (1, 1, 0))
    assert (kind.slide is not None) == ((kind.nv, angular, linear) == (1, 0, 1))
    assert kind.is_ball == ((kind.nv, angular, linear) == (3, 3, 0))
    assert kind.is_free == ((kind.nv, angular, linear) == (6, 3, 3))
    assert kind.only_rotates == (kind.hinge is not None) and kind.only_slides == (kind.slide is not None)
    if kind.hinge or kind.slide:
        np.testing.assert_allclose(kind.only_step.axis, np.array(kind.alignment)[:, 2], atol=1e-15)
