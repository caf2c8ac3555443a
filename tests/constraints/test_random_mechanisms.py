"""Forward dynamics of random closed mechanisms, by every method, against free bodies in extended precision.

1e-9 relative, at regular and at singular states.  Near a singular position the data of a mechanism, rounded to double
precision, determine its accelerations to about the condition of G times that rounding, and no better: there that is the
tolerance, relative to what the parts would do without loops.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.oracle import maximal_coordinates as oracle
from tests.oracle.random_closed import (
    FAMILIES,
    KINDS,
    NEARLY,
    PLANAR_LOOPS,
    REGULAR,
    SINGULAR,
    Case,
    State,
    case,
    held_body,
)

PER_FAMILY, SLOW_PER_FAMILY = 12, 200
TOLERANCE = 1e-9
ROUNDING = 16.0 * np.finfo(float).eps  # of the entries of G, made of the poses of a few links
TEST_IS_WRONG = "the state is not what its label says: the test itself is wrong"


class Check:
    """A state of a mechanism, the accelerations there, and how precisely they are determined."""

    def __init__(self, drawn: Case, state: State):
        self.mech, self.given = drawn.mech, state[1:]
        self.what = f"at a {state.label} state of {drawn.family}"
        n, both = self.mech.nv, lw.compile("constrained_terms", self.mech)(state.q, state.v)
        self.mass, force = both[:n, :n], state.tau - both[:n, n]
        self.jacobian, self.bias = both[n:, :n], both[n:, n]
        self.expected = oracle.forward_dynamics(self.mech, *self.given)
        assert self.expected.inconsistency < 1e-14, TEST_IS_WRONG
        self.allowed = TOLERANCE * np.linalg.norm(self.expected.accelerations)
        if state.label == NEARLY:
            values = np.linalg.svd(self.jacobian, compute_uv=False)
            counted = values[values > 1e-12 * values[0]]
            assert 1e7 < counted[0] / counted[-1] < 1e8, TEST_IS_WRONG
            self.allowed = ROUNDING * counted[0] / counted[-1] * np.linalg.norm(np.linalg.solve(self.mass, force))

    def methods(self) -> list[str]:
        """Those that can be used: Lagrange's needs a spanning tree all of which has inertia."""
        values = np.linalg.eigvalsh(self.mass)
        return [name for name in lw.constraints.ALL_METHODS if name != "lagrange" or values[0] > 1e-12 * values[-1]]

    def passes(self) -> None:
        results = {name: lw.forward_dynamics(self.mech, *self.given, method=name) for name in self.methods()}
        results["default"] = lw.forward_dynamics(self.mech, *self.given)
        for name, found in results.items():
            for reference, expected in (("free bodies", self.expected.accelerations), ("svd", results["svd"])):
                error = np.linalg.norm(found - expected)
                assert error < self.allowed, f"{name} {self.what}: {error:.1e} from {reference}, not {self.allowed:.1e}"
            opening = np.abs(self.jacobian @ found + self.bias).max()
            assert opening < TOLERANCE * (1.0 + np.abs(found).max()), f"{name} {self.what} opens loops"


@pytest.mark.smoke_cases("[general-0]", "[cranks-0]")
@pytest.mark.slow_cases(*(f"-{seed}]" for seed in range(3, 12)))
@pytest.mark.parametrize("seed", range(PER_FAMILY))
@pytest.mark.parametrize("family", FAMILIES)
def test_forward_dynamics_is_that_of_free_bodies(family, seed):
    drawn = case(family, seed)
    for state in drawn.states:
        Check(drawn, state).passes()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
@pytest.mark.parametrize("family", FAMILIES)
def test_forward_dynamics_of_many_is_that_of_free_bodies(family, part):
    for seed in range(PER_FAMILY + part, SLOW_PER_FAMILY, 20):
        drawn = case(family, seed)
        for state in drawn.states:
            Check(drawn, state).passes()


@pytest.mark.slow_cases("cylindrical", "prismatic", "universal")
@pytest.mark.parametrize("kind", list(KINDS))
def test_one_body_held_by_one_loop(kind):
    """The least that can be closed, the loop anywhere: every row of its closure may be the one that matters."""
    for seed in range(3):
        drawn = held_body(kind, seed)
        for state in drawn.states:
            Check(drawn, state).passes()


@pytest.mark.parametrize("family", ["general", "planar", "cranks"])
def test_a_batch_holds_what_single_calls_give(family):
    drawn = case(family, 1)
    batch = [np.stack([np.asarray(state[k]) for state in drawn.states] * 3) for k in (1, 2, 3)]
    found = lw.forward_dynamics(drawn.mech, *batch)
    assert found.shape == batch[1].shape
    for row, state in zip(found, drawn.states * 3, strict=True):
        single = Check(drawn, state)
        assert np.linalg.norm(row - single.expected.accelerations) < single.allowed


@pytest.mark.parametrize(
    "mech",
    [lw.mechanisms.four_bar_branches(2, 2), lw.mechanisms.quadruped(), lw.mechanisms.humanoid(["left"])],
    ids=lambda mech: mech.name,
)
def test_branches_and_legs_move_like_free_bodies(mech):
    rng = np.random.default_rng(3)
    q = lw.neutral(mech)
    v = oracle.free_velocities(mech, q) @ rng.normal(size=lw.constraints.degrees_of_freedom(mech, q))
    state = State(REGULAR, q, v, rng.normal(size=mech.nv))
    Check(Case(mech.name, mech, (state,)), state).passes()


def test_the_cases_are_as_varied_as_they_should_be():
    """Every kind of joint closes loops; states of all labels; bases that float; mimic joints; couplings; links without
    inertia; constraints that others imply; several loops."""
    drawn = [case(family, seed) for family in FAMILIES for seed in range(PER_FAMILY)]
    mechanisms = [each.mech for each in drawn]
    loops = [loop for mech in mechanisms for loop in mech.loops]
    kinds = {type(loop.kind) for loop in loops if isinstance(loop, lw.constraints.Loop)}
    assert sum(isinstance(loop, lw.constraints.Coupling) for loop in loops) >= 2
    assert kinds == {type(kind) for kind in (*(each for each, _ in PLANAR_LOOPS.values()), lw.Helical(), lw.Planar())}
    assert {state.label for each in drawn for state in each.states} == {REGULAR, SINGULAR, NEARLY}
    floating = [isinstance(mech.bodies[0].kind, lw.Floating) for mech in mechanisms]
    assert 20 < sum(floating) < 40
    assert sum(any(body.mimic for body in mech.bodies) for mech in mechanisms) >= 2
    assert sum(any(body.mass == 0.0 for body in mech.bodies) for mech in mechanisms) == PER_FAMILY
    assert sum(len(mech.loops) > 1 for mech in mechanisms) > 15
    freedoms = [oracle.free_velocities(each.mech, each.states[0].q).shape[1] for each in drawn]
    assert sum(mech.n_constraints > mech.nv - dofs for mech, dofs in zip(mechanisms, freedoms, strict=True)) > 25
