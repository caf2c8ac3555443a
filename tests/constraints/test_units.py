"""The same constrained mechanism in other units, and in other sizes, has the same degrees of freedom, accelerations,
forces, configurations, derivatives and motions: no decision about constraints has a unit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import linkwise as lw
from tests.constraints.built_in import FREEDOMS, built, random_state
from tests.constraints.random_loops import CLOSING, closed_at, with_loops
from tests.oracle.random_closed import FAMILIES, KINDS, REGULAR, SINGULAR, case, held_body
from tests.units import SYSTEMS, Units

SI, *OTHERS = SYSTEMS
#: The same mechanism so many times as large, in metres, under the same gravity.
SIZES = [Units(f"size {size:g}", size, 1.0, size**0.5) for size in (1e-9, 1e-7, 1e6, 1e9)]
TOLERANCE = 1e-9
LITTLE = 1e-6  # in SI units: what should be zero is rounding of numbers of about 1
STEP, STEPS = 2e-3, 10


class State(NamedTuple):
    """A mechanism in SI units and a state whose loops are closed."""

    mech: lw.Mechanism
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    is_regular: bool = True


class In:
    """A state in other units.  What its methods return is in SI units again."""

    def __init__(self, state: State, units: Units):
        self.si, self.units, self.is_regular = state.mech, units, state.is_regular
        self.si_q = state.q
        self.mech = state.mech if units is SI else units.mechanism(state.mech)
        self.q, self.v = units.q(state.mech, state.q), units.v(state.mech, state.v)
        self.tau = units.tau(state.mech, state.tau)

    def state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.q, self.v, self.tau

    def changes(self, size: float, count: int = 1) -> np.ndarray:
        """(count, nv): random changes of coordinates."""
        return size * self.units.of_v(self.si) * np.random.default_rng(5).normal(size=(count, self.si.nv))

    def independent(self) -> lw.control.StateSpace:
        """The linear model in SI units, whose coordinates describe the motion well."""
        return lw.linearize(self.si, self.si_q)

    # -- results in SI units ------------------------------------------------------------------------------

    def positions(self, q: Any) -> np.ndarray:
        return q / self.units.q(self.si, np.ones(self.si.nq))

    def steps(self, step: Any) -> np.ndarray:
        return step / self.units.of_v(self.si)

    def velocities(self, v: Any) -> np.ndarray:
        return v / self.units.v(self.si, np.ones(self.si.nv))

    def accelerations(self, a: Any) -> np.ndarray:
        return a / self.units.a(self.si, np.ones(self.si.nv))

    def forces(self, tau: Any) -> np.ndarray:
        return tau / self.units.tau(self.si, np.ones(self.si.nv))

    def wrenches(self, wrenches: Any) -> np.ndarray:
        return wrenches / self.units.wrenches(np.ones(6))


Quantity = Callable[[In], Sequence[np.ndarray]]


def ranks(at: In) -> list[np.ndarray]:
    clusters = lw.constraints.redundancy(at.mech).clusters
    generic = [lw.constraints.generic_rank(at.mech, at.q)] * at.is_regular
    return [
        np.array([lw.constraints.degrees_of_freedom(at.mech, at.q), *generic]),
        np.array([[one.rank, one.constraints] for one in clusters]),
    ]


def forward_dynamics(at: In) -> list[np.ndarray]:
    """By all formulations; Lagrange's needs a tree all of which has inertia."""
    massless = any(body.mass == 0.0 for body in at.mech.bodies)
    methods = [method for method in lw.constraints.ALL_METHODS if not (massless and method == "lagrange")]
    by_method = [lw.forward_dynamics(at.mech, *at.state(), method=method) for method in methods]
    batch = [np.stack([x, x]) for x in at.state()]
    by_method += [*lw.forward_dynamics(at.mech, *batch)]
    return [at.accelerations(a) for a in by_method]


def stabilized(at: In) -> list[np.ndarray]:
    """Loops a little open."""
    q = lw.integrate(at.mech, at.q, at.changes(1e-10)[0], 1.0)
    rank = at.si.nv - lw.constraints.degrees_of_freedom(at.mech, at.q)
    gains = (3.0 / at.units.time, 2.0 / at.units.time)
    a = [
        lw.forward_dynamics(at.mech, q, at.v, at.tau, method=method, baumgarte=gains, rank=rank)
        for method in ("svd", "tangent")
    ]
    return [at.accelerations(one) for one in a]


def null_spaces(at: In) -> list[np.ndarray]:
    """The projections on the motions that loops allow, along metres and radians."""
    projections = []
    for method in ("svd", "elimination", "tangent", "differentiable", "partitioning"):
        basis = lw.constraints.null_space(at.mech, at.q, method)
        if method != "partitioning":
            np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=TOLERANCE)
        basis, _ = np.linalg.qr(at.steps(basis.T).T)
        projections.append(basis @ basis.T)
    return projections


def reactions(at: In) -> list[np.ndarray]:
    loops = lw.constraints.loop_reactions(at.mech, *at.state())
    q, v, tau = at.state()
    joints = lw.joint_wrenches(at.mech, q, v, tau=tau)
    by_svd = lw.constraints.loop_reactions(at.mech, *at.state(), method="svd")
    return [
        at.wrenches(loops),
        at.wrenches(by_svd),
        at.wrenches(joints),
        at.forces(lw.constraints.constraint_forces(at.mech, *at.state())),
    ]


def impacts(at: In) -> list[np.ndarray]:
    v = at.v + at.changes(1.0)[0] / at.units.time
    impulses = lw.contact.impact_impulses(at.mech, at.q, v) / at.units.time
    return [at.velocities(lw.contact.impact(at.mech, at.q, v)), at.wrenches(impulses)]


def inverse_dynamics(at: In) -> list[np.ndarray]:
    """Forces of all joints, as far as they drive the mechanism; and those of as many joints as there are degrees of
    freedom, which have one answer."""
    a = lw.forward_dynamics(at.mech, *at.state(), method="svd")
    found = [
        _along(at, lw.inverse_dynamics(at.mech, at.q, at.v, a)),
        _along(at, lw.static_forces(at.mech, at.q)),
    ]
    independent = at.independent().independent
    if set(independent) <= set(at.mech.joint_names):
        found.append(at.forces(lw.inverse_dynamics(at.mech, at.q, at.v, a, actuated=independent)))
        found.append(at.forces(lw.static_forces(at.mech, at.q, actuated=independent)))
    return found


def _along(at: In, tau: np.ndarray) -> np.ndarray:
    """Joint forces as far as they drive the mechanism."""
    basis, _ = np.linalg.qr(at.steps(lw.constraints.null_space(at.mech, at.q).T).T)
    return basis @ (basis.T @ at.forces(tau))


def projection(at: In) -> list[np.ndarray]:
    """Of states that are a little off, by compiled elimination and by singular values."""
    step, change = at.changes(1e-4, 2)
    found = []
    for size in (1.0, 10.0):
        q = lw.integrate(at.mech, at.q, size * step, 1.0)
        q, v = lw.constraints.project(at.mech, q, at.v + change / at.units.time)
        found += [at.positions(q), at.velocities(v)]
    return found


def assembly(at: In) -> list[np.ndarray]:
    """From a guess far away."""
    guess = lw.integrate(at.mech, at.q, at.changes(0.1)[0], 1.0)
    return [at.positions(lw.constraints.assemble(at.mech, guess))]


def charts(at: In) -> list[np.ndarray]:
    """The configuration a little along the chart, found by Newton's iteration, and its condition."""
    if at.mech.constraints.is_nonholonomic:
        return []
    rows = at.independent().rows
    chart = lw.kinematics.local_parametrization(at.mech, at.q, rows)
    units = np.abs(rows) @ at.units.of_v(at.si)
    y = 1e-2 * units
    a = chart.forward_dynamics(at.q, at.v, at.tau)
    return [at.positions(chart.configuration(y)), np.array([chart.condition(at.q)]), a / units * at.units.time**2]


def derivatives(at: In) -> list[np.ndarray]:
    """Of accelerations by steps of q, by v and by tau."""
    d_q, d_v, d_tau = lw.forward_dynamics_derivatives(at.mech, *at.state())
    steps, velocities = at.units.of_v(at.si), at.units.v(at.si, np.ones(at.si.nv))
    forces = at.units.tau(at.si, np.ones(at.si.nv))
    return [at.accelerations((d * by).T).T for d, by in ((d_q, steps), (d_v, velocities), (d_tau, forces))]


def linear_models(at: In) -> list[np.ndarray]:
    """In the same coordinates in all units; those of positions cannot be given beside constraints on velocities."""
    if at.mech.constraints.is_nonholonomic:
        return []
    model = lw.linearize(at.mech, *at.state(), independent=at.independent().rows)
    units = np.abs(model.rows) @ at.units.of_v(at.si)
    scale = np.concatenate([units, units / at.units.time])
    a = np.array(model.A) * scale / scale[:, None] * at.units.time
    b = np.array(model.B) * at.units.tau(at.si, np.ones(at.si.nv)) / scale[:, None] * at.units.time
    tangent = np.array(model.tangent) * scale
    tangent /= np.concatenate([at.units.of_v(at.si), at.units.v(at.si, np.ones(at.si.nv))])[:, None]
    return [a, b, tangent]


def rollouts(at: In) -> list[np.ndarray]:
    q, v = lw.rollout(at.mech, *at.state(), STEP * at.units.time, STEPS)
    return [at.positions(q), at.velocities(v)]


def simulations(at: In) -> list[np.ndarray]:
    """In steps that are given: tolerances are no matter of constraints."""
    duration, tau = STEPS * STEP * at.units.time, at.tau
    fixed = lw.simulate(at.mech, at.q, at.v, duration, lambda t, q, v: tau, method="rk4", step=STEP * at.units.time)
    return [at.positions(fixed.q[-1]), at.velocities(fixed.v[-1])]


ANYWHERE: tuple[Quantity, ...] = (ranks, forward_dynamics, null_spaces, reactions, impacts)
AT_REGULAR_POSITIONS: tuple[Quantity, ...] = (
    stabilized,
    inverse_dynamics,
    projection,
    assembly,
    charts,
    derivatives,
    linear_models,
    rollouts,
    simulations,
)


def check(state: State, systems: Sequence[Units], quantities: Sequence[Quantity] | None = None) -> None:
    """All quantities in all systems; relative to the largest number of each, in SI units."""
    if quantities is None:
        quantities = (*ANYWHERE, *AT_REGULAR_POSITIONS) if state.is_regular else ANYWHERE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        expected = {quantity: quantity(In(state, SI)) for quantity in quantities}
        for there in (In(state, units) for units in systems):
            for quantity in quantities:
                found = quantity(there)
                assert len(found) == len(expected[quantity])
                for k, (one, other) in enumerate(zip(found, expected[quantity], strict=True)):
                    allowed = TOLERANCE * max(float(np.abs(other).max(initial=0.0)), LITTLE)
                    message = f"{quantity.__name__} {k} in {there.units}"
                    np.testing.assert_allclose(one, other, rtol=0.0, atol=allowed, err_msg=message)


# -- mechanisms -----------------------------------------------------------------------------------------


def built_in(name: str) -> State:
    mech = built(name)
    return State(mech, *random_state(name), np.random.default_rng(1).normal(size=mech.nv))


def random_states(family: str, seed: int) -> list[State]:
    drawn = case(family, seed)
    labels = (REGULAR, SINGULAR)
    return [State(drawn.mech, *state[1:], state.label == REGULAR) for state in drawn.states if state.label in labels]


def closed_chain(number: int) -> State:
    """A random chain on a floating base or on the ground, its end held by a joint of this kind."""
    rng = np.random.default_rng(number)
    tree = lw.mechanisms.random_tree(5, number, ("revolute", "prismatic", "spherical", "helical"), bool(number % 2))
    q, v = lw.random_state(tree, rng)
    loop = closed_at(tree, q, CLOSING[number], "ground", tree.link_names[-1], number)
    return _moving(with_loops(tree, loop), q, v, rng)


def _moving(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, rng: np.random.Generator) -> State:
    return State(mech, *lw.constraints.project(mech, q, v), rng.normal(size=mech.nv))


@cache
def contacts() -> lw.Mechanism:
    """Wheels, a ball, a blade and a rod that hold a body to a plate and to the ground."""
    builder = lw.Builder().link("plate", 1.0, inertia=(1.0, 1.0, 1.0)).link("body", 2.0, (0, 0.1, 0), (0.5, 0.6, 0.7))
    builder.link("wheel", 1.0, (0, 0, 0), (0.05, 0.1, 0.05)).link("cart", 1.5, (0.1, 0, 0.2), (0.2, 0.3, 0.2))
    builder.joint("plate", lw.Universal((1, 0, 0), (0, 1, 0)), "ground", "plate", (0.1, 0.2, -0.3))
    builder.joint("body", lw.Floating(), "ground", "body").joint("axle", lw.Revolute((0, 1, 0)), "body", "wheel")
    builder.joint("cart", lw.Floating(), "ground", "cart")
    builder.wheel("tyre", "wheel", 0.3, (0, 1, 0), crown=0.1).ball("ball", "cart", 0.4, on="plate")
    builder.knife_edge("blade", "cart", (1.0, 0.0, 0.3), contact=False)
    builder.distance("rod", "body", (0.1, 0.0, 0.2), "cart", (0.0, 0.1, 0.0), length=0.7)
    return builder.build("contacts")


@cache
def gears() -> lw.Mechanism:
    """A rack and a pinion, and nothing else that has a length."""
    builder = lw.Builder()
    for link in ("pinion", "rack", "other"):
        builder.link(link, 1.0, (0.02, 0.01, 0), (1e-3, 1e-3, 1e-3))
        builder.joint(link, lw.Prismatic((1, 0, 0)) if link == "rack" else lw.Revolute(), "ground", link)
    builder.coupling("teeth", {"rack": 1.0, "pinion": -0.05}).coupling("mesh", {"pinion": 1.0, "other": 2.0})
    return builder.build("gears")


def assembled(mech: lw.Mechanism, seed: int = 0) -> State:
    rng = np.random.default_rng(seed)
    guess = lw.integrate(mech, lw.neutral(mech), 0.3 * rng.normal(size=mech.nv), 1.0)
    return _moving(mech, lw.constraints.assemble(mech, guess), rng.normal(size=mech.nv), rng)


def slider_crank() -> State:
    return built_in("slider_crank")


def spatial_loop() -> State:
    """A slider, a ball and a cylinder in one loop."""
    builder = lw.Builder()
    for name in ("slider", "rod", "lever"):
        builder.link(name, 1.0, (0.1, 0.05, 0.02), (0.02, 0.03, 0.04))
    builder.joint("slide", lw.Prismatic((1, 0.2, 0)), "ground", "slider", (0.0, 0.3, 0.1))
    builder.joint("ball", lw.Spherical(), "slider", "rod", (0.1, 0.0, 0.05))
    builder.joint("hinge", lw.Revolute((0, 1, 0.3)), "ground", "lever", (0.7, 0.0, 0.2))
    loop = lw.Cylindrical((0.2, 0.1, 1.0))
    mech = builder.build("spatial_loop")
    rng = np.random.default_rng(2)
    q, v = lw.random_state(mech, rng)
    q[mech.q_index("slide")] *= 0.3
    return _moving(with_loops(mech, closed_at(mech, q, loop, "lever", "rod", 3)), q, v, rng)


# -- tests ----------------------------------------------------------------------------------------------


def test_a_few_in_other_units():
    check(slider_crank(), OTHERS[1:2])
    check(random_states("cranks", 2)[1], OTHERS[1:2], (ranks, forward_dynamics))


@pytest.mark.parametrize("state", [slider_crank, spatial_loop])
def test_any_size_of_a_mechanism(state):
    check(state(), SIZES, (ranks, forward_dynamics, rollouts))


@pytest.mark.slow
@pytest.mark.parametrize("state", [slider_crank, spatial_loop])
def test_all_of_any_size(state):
    check(state(), SIZES)


@pytest.mark.slow
@pytest.mark.parametrize("name", FREEDOMS)
def test_built_in_mechanisms(name):
    check(built_in(name), OTHERS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("family", FAMILIES)
def test_random_mechanisms(family, seed):
    for state in random_states(family, seed):
        check(state, OTHERS)


@pytest.mark.parametrize("seed", [41, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(60, 90))])
def test_ranks_of_mechanisms_that_close_in_singular_positions_alone(seed):
    """Singular values there are the roots of rounding, about 1e-8: one system found another rank than the others."""
    check(random_states("stretched", seed)[0], OTHERS, (ranks,))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CLOSING)))
def test_every_kind_of_joint_that_closes_a_chain(number):
    check(closed_chain(number), OTHERS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_one_body_held_by_one_loop(kind):
    drawn = held_body(kind, 0)
    check(State(drawn.mech, *drawn.states[0][1:]), OTHERS)


@pytest.mark.slow
@pytest.mark.parametrize("mech", [contacts, gears, lw.mechanisms.bicycle])
def test_wheels_rods_and_gears(mech):
    check(assembled(mech()), OTHERS)
