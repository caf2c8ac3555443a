"""kernel.plan(): each level says what is true of the compiled program, and reads well."""

from __future__ import annotations

import re

import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.operators.algebra import RECORDS
from linkwise.mechanics.operators.explain import WIDTH

PUMA = lw.mechanisms.puma560()
WHITENING = op.I - op.H @ op.psi @ op.K
T = op.joint_vector("T")


def explain(expression: op.Expression, mech: lw.Mechanism) -> str:
    return lw.compile(expression, mech, target="numpy").plan()


def level(text: str, number: int) -> list[str]:
    """The lines of one level, continued ones joined."""
    body = re.search(rf"^Level {number}, .*?\n(.*?)(?=^Level|^\S|\Z)", text, re.MULTILINE | re.DOTALL)[1]
    return [line.strip() for line in re.sub(r"\n {6}", " ", body).splitlines()]


@pytest.mark.parametrize(
    "wanted, options",
    [
        ("forward_dynamics", {}),
        ("forward_dynamics", {"method": "bias_free"}),
        ("inverse_dynamics", {}),
        ("mass_matrix", {}),
        ((op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R).inv, {"simplify": False}),
        ("operational_inertia", {"link": "link6"}),
        (WHITENING.T @ op.D.inv @ WHITENING @ T, {}),
        (op.H @ op.phi @ op.M @ op.phi.T @ op.M.inv @ op.phi @ op.M @ op.phi.T @ op.H.T @ T, {}),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "mech", [lw.mechanisms.chain(6), lw.mechanisms.random_tree(6, 2, floating_base=True)], ids=lambda mech: mech.name
)
def test_operations_of_the_sweeps_add_up(wanted, options, mech):
    kernel = lw.compile(wanted, mech, target="numpy", **options)
    text = kernel.plan()
    lines = level(text, 3)
    planned = [re.match(r"\d+\. (.*?): (.*) \(", line).groups() for line in lines]
    assert set(planned) == {(direction.replace("_", " "), name) for direction, name in kernel.sweeps}
    priced = {
        line.split(". ", 1)[1]: int(re.search(r"\((\d+) operations", line)[1]) for line in lines
    }  # like ones once
    outside = int(re.search(r"outside the sweeps: (\d+) operations", text)[1])
    total = sum(kernel.op_counts.values())
    # The sine and the cosine of an angle are two steps of the program, and one in the counts.
    assert total <= sum(priced.values()) + outside <= total + kernel.op_counts.get("sincos", 0)


def test_every_operator_that_is_shown_is_explained():
    for expression in (
        WHITENING.T @ op.D.inv @ WHITENING @ T,
        op.H @ op.phi @ (op.M @ op.phi.T @ (op.gravity() + op.bias_acceleration(T)) + op.bias_force(T)),
        (op.B("link6").T @ op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi @ op.B("link6")).inv,
    ):
        text = explain(expression, PUMA)
        explained = {line.split()[0] for line in level(text, 2)}
        shown = set(
            re.findall(
                r"[A-Za-z]\w*",
                re.sub(r"'.*?'|\.(T|inv)\b|computed.*?as|on and.*|inside.*?,", "", " ".join(level(text, 1))),
            )
        )
        assert shown - {"I", "T"} <= explained
        assert all(len(line.split()) > 2 for line in level(text, 2))


def test_inverses_are_written_as_they_are_typed_and_repeated_only_if_they_differ():
    assert level(explain(op.D.inv @ T, PUMA), 1) == ["D.inv @ T"]
    assert level(explain(op.M.inv @ op.M, lw.mechanisms.chain(2)), 1) == ["M.inv @ M"]
    assert level(explain(op.phi.inv, PUMA), 1) == ["phi.inv", "= I - E_phi"]
    assert level(explain(op.K @ T, PUMA), 1) == ["K @ T", "= E_phi @ G @ T"]


def test_a_small_inverse_shows_the_sweeps_inside_it():
    operational = (op.B("link6").T @ op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi @ op.B("link6")).inv
    text = explain(operational, PUMA)
    assert level(text, 1)[-1].startswith("computed as B('link6').T @ Omega @ B('link6')")
    assert level(text, 1)[-1].endswith("inverted by elimination")
    assert [line.split(":")[0] for line in level(text, 3)] == ["1. tip to base", "2. base to tip"]


def test_long_expressions_are_broken_before_operators():
    long = op.phi
    for _ in range(60):
        long = op.phi @ (op.I + op.psi @ long)
    text = explain(long @ op.link_vector("f"), PUMA)
    lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH
    broken = lines[2 : lines.index("Level 2, operators")]
    assert len(broken) > 3 and not any(line.rstrip().endswith(("@", "+", "-")) for line in broken)
    assert op.parse(" ".join(broken), {"f": op.link_vector("f")}) == long @ op.link_vector("f")


def test_every_public_operator_has_a_meaning():
    public = [getattr(op, name) for name in op.__all__]
    parts = [part for value in public if isinstance(value, op.Expression) for part in value.walk()]
    names = {part.name for part in parts if hasattr(part, "name")}
    assert {"H", "phi", "psi", "D"} <= names <= set(RECORDS)


def test_transforms_are_those_of_the_compiled_program():
    """Poses that are inputs are shown as such, and frames stand at the user's origins where results depend on it."""
    constant, free = (
        level(lw.compile("inverse_dynamics", PUMA, target="numpy", parameters=names).plan(), 7)
        for names in ((), ("link3.pose",))
    )
    assert "..." not in " ".join(constant)
    assert [("Tx(...)" in line and "R(3x3)" in line) for line in free] == [i == 2 for i in range(6)]
    names = ("pose", "mass", "gravity")
    assert all("Tx(...)" in line for line in level(lw.compile("mass_matrix", PUMA, parameters=names[:1]).plan(), 7))
    assert "..." not in " ".join(level(lw.compile("mass_matrix", PUMA, parameters=names[1:2]).plan(), 7))

    slid = lw.Builder()
    for name in ("a", "b"):
        slid.link(name, 1.0, (0.1, 0.2, 0.3), (1, 1, 1))
    slid.joint("first", lw.Revolute((0, 0, 1)), "ground", "a").joint(
        "second", lw.Revolute((0, 0, 1)), "a", "b", (None, (0.4, 0.0, 0.7))
    )
    mech = slid.build()
    anywhere = level(lw.compile("forward_dynamics", mech, target="numpy").plan(), 7)
    at_origins = level(lw.compile("forward_link_accelerations", mech, target="numpy").plan(), 7)
    assert "Tz(0.7)" in at_origins[1] and "Tz" not in anywhere[1]
    assert level(explain(op.bias_acceleration(T), mech), 7) == at_origins
