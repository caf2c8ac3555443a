"""The plan that is printed is the plan that ran: for every algorithm, on every kind of mechanism."""

from __future__ import annotations

import re
from functools import cache

import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.algorithms.algorithm import WITHIN_CONSTRAINTS
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS, Algorithm
from linkwise.mechanics.algorithms.expressions import FORWARD_DYNAMICS
from tests.algorithms import VARIANTS
from tests.physics.test_mimic import tied_and_free

KINDS = (*lw.mechanisms.MOVING_KINDS, "fixed")
MECHANISMS = {
    "plain chain": lambda: lw.mechanisms.chain(4),
    "branching tree": lambda: lw.mechanisms.random_tree(6, 2),
    "more than nine velocities": lambda: lw.mechanisms.chain(12),
    "mimic joints": lambda: tied_and_free(3)[0],
    "loops": lw.mechanisms.loader,
    "floating base": lambda: lw.mechanisms.random_tree(4, 5, joints=KINDS, floating_base=True),
}
ESTIMATION = ("estimat", "weighted_residuals", "kalman_filter", "filter_gains")  # refuse mimic joints
LONG = ("second_derivatives", *ESTIMATION)  # nothing new to see in them on large mechanisms


@cache
def mechanism(name: str) -> lw.Mechanism:
    return MECHANISMS[name]()


def printed(text: str) -> list[tuple[str, str]]:
    """The sweeps that a plan names, in its order."""
    if "Level 3" in text:
        body = re.search(r"^Level 3, sweeps\n(.*?)^Level 4", text, re.MULTILINE | re.DOTALL)[1]
        lines = re.sub(r"\n {6}", " ", body).splitlines()
        return [
            (m[1].replace(" ", "_"), m[2]) for m in (re.match(r"  \d+\. (.*?): (.*?)( \(|$)", x) for x in lines) if m
        ]
    numbered = {}
    for numbers, name, direction in re.findall(
        r"^  sweeps? ([\d, ]+?)(?: together)?: (.*), (\w+ to \w+) \(", text, re.M
    ):
        numbered.update({int(number): (direction.replace(" ", "_"), name) for number in numbers.split(", ")})
    return [numbered[number] for number in sorted(numbered)]


def one_line(text: str) -> str:
    return " ".join(text.split())


def reasons(algorithm: Algorithm) -> list[str]:
    """Why there is no expression: of programs without and with loops, and of mechanisms with constraints."""
    of_constrained = ALGORITHMS.get(algorithm.requires.constrained), WITHIN_CONSTRAINTS.get(algorithm.name)
    serving = [algorithm, algorithm.for_loops, *filter(None, of_constrained)]
    return [f"a recursion written by hand: {one.reason}" for one in serving if one.reason]


def variants(name: str, mech: lw.Mechanism) -> list[dict]:
    options = () if name.startswith("forward_dynamics") and mech.loops else VARIANTS[name].options
    link = mech.link_names[-1]
    choices = [{}]
    for option, values in {
        "link": (link,),
        "frames": ((link,),),
        "frame": ("link", "world", "world_aligned"),
        "normalized": (True, False),
        "method": (None, *FORWARD_DYNAMICS),
        "classical": (True, False),
        "rows": ((5,), (4, 3)),
    }.items():
        if option in options:
            choices = [{**chosen, option: value} for chosen in choices for value in values]
    return choices


SYMPLECTIC = ("symplectic_euler", "stormer_verlet", "implicit_midpoint")  # not for joints that rotate freely


@pytest.mark.slow_cases("[rk4_step_derivatives", "_with_wrenches-", "[momentum_", "[nu_", "[xi_")
@pytest.mark.quick_one_in(4)
@pytest.mark.parametrize("where", MECHANISMS)
@pytest.mark.parametrize("name", VARIANTS)
def test_what_is_printed_is_what_ran(name, where):
    mech = mechanism(where)
    if any(part in name for part in LONG) and mech.nv > 6:
        mech = mechanism("plain chain")
    ran = 0
    for options in variants(name, mech):
        try:
            kernel = lw.compile(VARIANTS[name], mech, target="numpy", **options)
        except lw.MechanismError:  # loops, or a link with fewer than six degrees of freedom
            continue
        assert printed(kernel.plan()) == list(kernel.sweeps)
        plan = one_line(kernel.plan())
        assert "Level 3" in plan or any(reason in plan for reason in reasons(VARIANTS[name]))
        ran += 1
    algorithm = VARIANTS[name]
    refused = mech.coordinates.mimic_joints and any(part in name for part in ESTIMATION)
    refused = (
        refused
        or (mech.loops and not algorithm.requires.constraints)
        or name.startswith("operational_inertia")
        or any(part in name for part in SYMPLECTIC)
    )
    assert ran or refused


WHITENING = op.I - op.H @ op.psi @ op.K
MASS_MATRIX = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R


@pytest.mark.quick_one_in(3)
@pytest.mark.parametrize("where", [name for name in MECHANISMS if name != "loops"])
@pytest.mark.parametrize(
    "expression",
    [
        WHITENING.T @ op.D.inv @ WHITENING @ op.joint_vector("T"),
        MASS_MATRIX.inv,
        op.S.T @ MASS_MATRIX @ op.S,
        (op.S.T @ MASS_MATRIX @ op.S).inv @ op.coordinate_vector("T"),
        op.H @ op.psi @ op.M @ op.psi.T @ op.H.T,
        op.phi.T @ op.H.T,
    ],
    ids=str,
)
def test_expressions(expression, where):
    kernel = lw.compile(expression, mechanism(where), target="numpy")
    assert printed(kernel.plan()) == list(kernel.sweeps) and kernel.sweeps


@pytest.mark.parametrize("mech", [lw.mechanisms.chain(12), lw.mechanisms.chain(24), lw.mechanisms.random_tree(8, 3)])
def test_wide_jacobians_run_tip_to_base_and_say_so(mech):
    """More columns than rows: rows are cheaper, and they come from the adjoint, whose recursion runs inward."""
    kernel = lw.compile("jacobian", mech, target="numpy", link=mech.link_names[-1])
    assert {direction for direction, _ in kernel.sweeps} == {"tip_to_base"}
    assert "1. tip to base: phi" in kernel.plan() and "row by row" in kernel.plan()


def test_mimic_joints_show_composite_inertias_and_elimination():
    kernel = lw.compile("forward_dynamics", mechanism("mimic joints"), target="numpy")
    assert "composite inertias" in kernel.plan() and "articulated inertias" not in kernel.plan()
    inverse = lw.compile("mass_matrix_inverse", mechanism("mimic joints"), target="numpy")
    assert "inverted by elimination" in inverse.plan().replace("\n      ", " ")


BY_HAND = [name for name, one in VARIANTS.items() if one.expression is None and not any(x in name for x in LONG)]


@pytest.mark.parametrize("name", BY_HAND)
def test_recursions_say_why_and_where_their_operations_are(name):
    """The reason why it is no expression, and every operation of the program in a section or outside the sweeps."""
    mech = mechanism("loops" if "constrain" in name or "loop" in name else "plain chain")
    kernel = lw.compile(VARIANTS[name], mech, target="numpy", **variants(name, mech)[0])
    plan = kernel.plan()
    assert VARIANTS[name].reason in re.sub(r"\s+", " ", plan)
    counted = sum(int(n) for n in re.findall(r"\((\d+) operations\)", plan))
    outside = int(re.search(r"outside the sweeps: (\d+) operations", plan)[1])
    assert counted + outside == sum(len(node.op.counts) for node in kernel.program.nodes)


def test_the_inverse_of_the_mass_matrix_lists_its_elimination():
    """Nothing of it is outside the sweeps: composite inertias, elimination of the elements, and back."""
    kernel = lw.compile("mass_matrix_inverse", lw.mechanisms.puma560(), target="numpy")
    assert [direction for direction, _ in kernel.sweeps] == ["tip_to_base", "tip_to_base", "base_to_tip"]
    plan = kernel.plan()
    assert re.search(r"sweep 2: elimination, M = U D U\*, tip to base \(\d+ operations\)", plan)
    assert re.search(r"sweep 3: inverse of U D U\*, base to tip \(\d+ operations\)", plan)
    outside = int(re.search(r"outside the sweeps: (\d+) operations", plan)[1])
    assert outside < 0.1 * sum(kernel.op_counts.values())


def test_kernels_of_loops_list_their_loops():
    mech = lw.mechanisms.five_bar()
    plan = lw.compile("constrained_terms", mech, target="numpy").plan()
    assert re.search(r"^  around the loops \(\d+ operations\)\n      support \d+$", plan, re.M)


def test_derivatives_keep_the_sections_of_what_they_come_from():
    arm = lw.mechanisms.planar_arm(3)
    plan = lw.jacobian_of(lw.compile("kinetic_energy", arm, target="numpy"), "q").plan()
    assert "the program of kinetic_energy, differentiated" in plan and "  phi*, base to tip (" in plan
