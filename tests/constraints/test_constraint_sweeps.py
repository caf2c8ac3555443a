"""Sweeps over links and multipliers against the dense equations of motion, in all kinds of closed mechanisms."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.constraints.elimination_orders import fronts
from linkwise.constraints.redundancy import redundancy
from linkwise.constraints.sizes import sizes, units_of_pivots
from linkwise.constraints.sweep_orders import CANDIDATES, cheapest_order
from linkwise.mechanics.links.loop_elimination import Fronts
from linkwise.mechanism.clusters import clusters

from ..oracle import random_closed
from ..product.mechanisms import Case, case, scissor_lift, scissor_lift_at
from ..product.oracle import Terms

Z = (0.0, 0.0, 1.0)
BUILT_IN = ("loader", "n_four_bar", "stewart_platform", "delta_robot", "four_bar_branches", "five_bar")
PRODUCT = ("one loop", "three loops", "ladder", "rolling", "driven", "held feet", "springs")
DRAWN = [("general", seed) for seed in (4, 5, 7, 11)] + [("planar", seed) for seed in (1, 2, 3)]


def swept(mech, q) -> Fronts:
    """Sweeps for every cluster, whatever they cost."""
    orders = []
    for cluster, rank in zip(clusters(mech), redundancy(mech).cluster_ranks, strict=True):
        if len(cluster.bodies) == 1 and not cluster.loops:
            orders.append(None)
            continue
        rows = [r for r in cluster.rows if sizes(mech).structural[r]]
        assert rank == len(rows), "constraints that others imply are not swept"
        orders.append(cheapest_order(mech, cluster, np.asarray(q)[None], rows, units_of_pivots(mech))[0])
    return Fronts(((),) * len(orders), units_of_pivots(mech), tuple(orders))


def at_a_state(name):
    if name in PRODUCT:
        return case(name)
    mech = getattr(lw.mechanisms, name)()
    q, v = lw.constraints.project(
        mech, lw.constraints.assemble(mech, mech.initial), np.random.default_rng(0).normal(size=mech.nv)
    )
    return Case(name, mech, q, v, np.random.default_rng(1).normal(size=mech.nv))


def assert_as_dense(this, tolerance=1e-10):
    kernel = lw.compile("closed_motion", this.mech, fronts=swept(this.mech, this.q), target="numpy")
    found, status, consistency = kernel(this.q, this.v, this.tau)
    expected = Terms(this).accelerations(this.tau)
    np.testing.assert_allclose(found, expected, atol=tolerance * max(1.0, np.abs(expected).max()))
    assert status > 1.0
    assert consistency > 1.0


@pytest.mark.parametrize("name", PRODUCT + BUILT_IN)
def test_accelerations(name):
    assert_as_dense(at_a_state(name))


@pytest.mark.parametrize(("family", "seed"), DRAWN)
def test_accelerations_of_random_mechanisms(family, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        drawn = random_closed.case(family, seed)
        state = drawn.states[0]
        assert_as_dense(Case(family, drawn.mech, state.q, state.v, state.tau))


def test_mimic_joints_and_couplings_around_a_loop():
    mech = lw.mechanisms.random_tree(8, 4, ("revolute", "prismatic", "helical"))
    bodies = list(mech.bodies)
    bodies[5] = replace(bodies[5], mimic=lw.Mimic(bodies[1].joint, -0.7, 0.1))
    mech = replace(mech, bodies=tuple(bodies))
    rng = np.random.default_rng(3)
    q = lw.random_state(mech, rng)[0]
    gears = {mech.bodies[0].joint: 1.0, mech.bodies[2].joint: -1.5}
    turned = sum(ratio * float(mech.coordinates.place(joint).positions(q)[0]) for joint, ratio in gears.items())
    pose = random_closed.oracle.Pose(np.eye(3), np.array([0.1, 0.2, 0.3]))
    kind = lw.Spherical()
    loop = random_closed.closing(mech, q, "loop", kind, kind.random(rng, ()), -1, pose, mech.n_links - 1)
    mech = mech.with_loops(loop, lw.constraints.Coupling("gears", gears, turned))
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    v = rng.normal(size=mech.nv)
    v -= np.linalg.pinv(jacobian) @ jacobian @ v
    assert_as_dense(Case("gears", mech, q, v, rng.normal(size=mech.nv)))


def chain(count, length=1.0):
    """A polygon of bars of which one is fixed."""
    builder, hinge = lw.Builder(), lw.Revolute(Z)
    inertia = tuple(length**2 * x for x in (0.02, 0.08, 0.08))
    for k in range(count):
        builder.link(f"bar{k}", 1.0, (0.5 * length, 0, 0), inertia)
        place = (0, 0, 0) if k == 0 else (length, 0, 0)
        builder.joint(f"hinge{k}", hinge, "ground" if k == 0 else f"bar{k - 1}", f"bar{k}", place)
    builder.loop("last", hinge, "ground", (-length, 0, 0), f"bar{count - 1}", (length, 0, 0))
    return builder.build(f"polygon_{count}", (0, -9.81 * length, 0)), np.full(count, -2 * np.pi / (count + 1))


def cost(mech):
    return sum(lw.compile("closed_motion", mech, target="numpy").op_counts.values())


@pytest.mark.slow
def test_operations_of_long_chains_and_ladders_grow_linearly():
    chains = [cost(chain(count)[0]) for count in (12, 18, 24)]
    assert chains[2] - chains[1] <= 1.05 * (chains[1] - chains[0])
    tree = lw.compile("forward_dynamics", chain(24)[0].spanning_tree, target="numpy")
    assert chains[2] < 3 * sum(tree.op_counts.values())
    lifts = [cost(scissor_lift(stages)) for stages in (8, 11, 14)]
    assert lifts[2] - lifts[1] <= 1.1 * (lifts[1] - lifts[0])


def moving(mech, q, rng):
    """(nv,): velocities that keep constraints."""
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    v = rng.normal(size=mech.nv)
    return v - np.linalg.pinv(jacobian) @ jacobian @ v


@pytest.mark.parametrize("count", [12, 40])
def test_a_closed_chain_in_motion(count):
    mech, q = chain(count)
    assert fronts(mech).sweeps[0] is not None
    rng = np.random.default_rng(0)
    this = Case("chain", mech, q, moving(mech, q, rng), rng.normal(size=mech.nv))
    v = this.v
    expected = Terms(this).accelerations(this.tau)
    found = lw.forward_dynamics(mech, q, v, this.tau)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.slow
def test_a_closed_chain_of_many_bars_obeys_its_equations_of_motion():
    mech, q = chain(200)
    rng = np.random.default_rng(0)
    tau, v = rng.normal(size=mech.nv), np.zeros(mech.nv)
    a = lw.forward_dynamics(mech, q, v, tau)
    jacobian = lw.constraints.constraint_jacobian(mech, q)[:2]
    assert np.abs(jacobian @ a).max() < 1e-9 * (np.abs(jacobian) @ np.abs(a)).max()
    forces = lw.inverse_dynamics(mech.spanning_tree, q, v, a)
    multipliers = np.linalg.lstsq(jacobian.T, tau - forces, rcond=None)[0]
    left = tau - forces - jacobian.T @ multipliers
    assert np.abs(left).max() < 1e-9 * np.abs(lw.inverse_dynamics(mech.spanning_tree, q, v, np.abs(a))).max()


def test_a_scissor_lift_works_though_it_is_built_folded():
    """In ``mech.initial`` all bars coincide, and move as if every second one were not there."""
    mech = scissor_lift(6)
    assert redundancy(mech).rank == 12
    this = Case("lift", mech, scissor_lift_at(mech, 0.6), np.zeros(mech.nv), np.arange(mech.nv) * 0.1)
    found, status, _ = lw.compile("closed_motion", mech)(this.q, this.v, this.tau)
    assert status > 1.0
    np.testing.assert_allclose(found, Terms(this).accelerations(this.tau), atol=1e-9 * np.abs(found).max())


def test_singular_states_are_not_trusted_and_left_to_singular_values():
    mech = scissor_lift(6)
    q = np.stack([scissor_lift_at(mech, angle) for angle in (0.0, 0.7, np.pi / 2)])
    v, tau = np.zeros((3, mech.nv)), np.ones((3, mech.nv))
    status = lw.compile("closed_motion", mech)(q, v, tau)[1]
    assert (status > 1.0).tolist() == [False, True, False]
    found = lw.forward_dynamics(mech, q, v, tau)
    np.testing.assert_allclose(found, lw.forward_dynamics(mech, q, v, tau, method="svd"), rtol=1e-6, atol=1e-8)
    with np.errstate(invalid="ignore"):
        through_compile = lw.compile(lw.forward_dynamics, mech)(q, v, tau)
    assert np.isnan(through_compile).any(axis=-1).tolist() == [True, False, True]
    np.testing.assert_allclose(through_compile[1], found[1], rtol=1e-9)


@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 3), (2, 1, 3)])
def test_batches(shape):
    mech, q = chain(12)
    rng = np.random.default_rng(1)
    tau = rng.normal(size=(*shape, mech.nv))
    q, v = np.broadcast_to(q, tau.shape), np.zeros(tau.shape)
    found = lw.forward_dynamics(mech, q, v, tau)
    assert found.shape == tau.shape
    states = zip(*(x.reshape(-1, mech.nv) for x in (q, v, tau)), strict=True)
    one_by_one = [lw.forward_dynamics(mech, *state) for state in states]
    np.testing.assert_allclose(found.reshape(-1, mech.nv), np.reshape(one_by_one, (-1, mech.nv)), rtol=1e-12)


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
def test_units_of_length_change_nothing(length):
    mech, q = chain(12, length)
    rng = np.random.default_rng(1)
    v = moving(chain(12)[0], q, rng)
    tau = rng.normal(size=mech.nv)
    found, status, consistency = lw.compile("closed_motion", mech)(q, v, length**2 * tau)
    expected = lw.compile("closed_motion", chain(12)[0])(q, v, tau)
    np.testing.assert_allclose(found, expected[0], rtol=1e-8)
    np.testing.assert_allclose([status, consistency], expected[1:], rtol=1e-6)


def test_wrenches_on_links_and_a_moving_base():
    """A chain closed on a floating base, pushed at its links."""
    builder, hinge = lw.Builder(), lw.Revolute(Z)
    builder.link("base", 5.0, (0.1, 0.2, 0), (1.0, 1.2, 1.5)).joint("free", lw.Floating(), "ground", "base")
    for k in range(10):
        builder.link(f"bar{k}", 1.0, (0.5, 0.1, 0.05), (0.02, 0.08, 0.08))
        place = (0, 0, 0) if k == 0 else (1, 0, 0)
        builder.joint(f"hinge{k}", hinge, "base" if k == 0 else f"bar{k - 1}", f"bar{k}", place)
    builder.loop("last", hinge, "base", (-1, 0, 0), "bar9", (1, 0, 0))
    mech = builder.build("ring", (0, -9.81, 0))
    rng = np.random.default_rng(2)
    q = mech.initial.copy()
    q[mech.q_index("hinge0").start :] = -2 * np.pi / 11
    v = moving(mech, q, rng)
    tau, wrenches = rng.normal(size=mech.nv), rng.normal(size=(mech.n_links, 6))
    assert any(fronts(mech).sweeps)
    assert_as_dense(Case("ring", mech, q, v, tau))
    found = lw.forward_dynamics(mech, q, v, tau, wrenches=wrenches)
    expected = lw.forward_dynamics(mech, q, v, tau, wrenches=wrenches, method="svd")
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_every_candidate_of_orders_gives_the_same_accelerations():
    from linkwise.constraints.sweep_orders import _Trial
    from linkwise.mechanics.samples import Tally

    mech = scissor_lift(4)
    this = Case("lift", mech, scissor_lift_at(mech, 0.6), np.zeros(mech.nv), np.ones(mech.nv))
    expected = Terms(this).accelerations(this.tau)
    (cluster,) = clusters(mech)
    units, rows = units_of_pivots(mech), [r for r in cluster.rows if sizes(mech).structural[r]]
    different = set()
    for deepest, width in CANDIDATES:
        order = _Trial(mech, cluster, this.q[None], rows, units, Tally()).order(width, deepest)
        different.add(order)
        kernel = lw.compile("closed_motion", mech, fronts=Fronts(((),), units, (order,)), target="numpy")
        np.testing.assert_allclose(
            kernel(this.q, this.v, this.tau)[0], expected, atol=1e-10 * max(1.0, np.abs(expected).max())
        )
    assert len(different) > 1


@pytest.mark.parametrize("name", [name for name in PRODUCT + BUILT_IN if name not in ("driven", "rolling")])
def test_least_changes_that_close_loops_are_those_of_elimination(name):
    this = at_a_state(name)
    rng = np.random.default_rng(5)
    q = lw.integrate(this.mech, this.q, 1e-4 * rng.normal(size=this.mech.nv) * sizes(this.mech).columns, 1.0)
    v = this.v + 0.1 * rng.normal(size=this.mech.nv)
    found, reliability = lw.compile("closed_projection", this.mech, fronts=swept(this.mech, this.q), target="numpy")(
        q, v
    )
    expected, _ = lw.compile("closed_projection", this.mech, target="numpy")(q, v)
    assert reliability > 1.0
    np.testing.assert_allclose(found, expected, atol=1e-9)
    there, moving = found[: this.mech.nq], found[this.mech.nq :]
    assert np.abs(lw.constraints.position_error(this.mech, there)).max() < 1e-9
    assert np.abs(lw.constraints.constraint_jacobian(this.mech, there) @ moving).max() < 1e-6


@pytest.mark.slow
def test_steps_of_a_ladder_keep_it_closed():
    mech = scissor_lift(6)
    q, v = scissor_lift_at(mech, 0.6), np.zeros(mech.nv)
    stepped = lw.rollout(mech, q, v, None, 0.005, 20, "rk4")[0]
    followed = lw.simulate(mech, q, v, 0.1)
    np.testing.assert_allclose(stepped[-1], followed.q[-1], atol=1e-6)
    assert np.abs(lw.constraints.position_error(mech, stepped[-1])).max() < 1e-10


@pytest.mark.parametrize("which", ["chain", "lift", "ring with gears"])
def test_multipliers_and_reactions(which):
    rng = np.random.default_rng(4)
    if which == "lift":
        mech = scissor_lift(12)
        q = scissor_lift_at(mech, 0.6)
    else:
        mech, q = chain(14)
        if which != "chain":
            gears = {"hinge2": 1.0, "hinge9": 1.0}
            mech = mech.with_loops(lw.constraints.Coupling("gears", gears, float(q[2] + q[9])))
    assert any(fronts(mech).sweeps)
    v, tau, wrenches = moving(mech, q, rng), rng.normal(size=mech.nv), rng.normal(size=(mech.n_links, 6))
    for name in ("multipliers", "constraint_forces", "loop_reactions", "joint_wrenches"):
        kernel = lw.compile(f"closed_{name}", mech, ports=("wrenches",), target="numpy")
        found = kernel(q, v, tau, wrenches)
        orthogonalized = lw.compile(f"closed_{name}", mech, ports=("wrenches",), sweeps=(), target="numpy")
        assert sum(kernel.op_counts.values()) < sum(orthogonalized.op_counts.values())
        reference = orthogonalized(q, v, tau, wrenches)
        if name != "joint_wrenches":
            reference = getattr(lw.constraints, name)(mech, q, v, tau, wrenches=wrenches, method="svd")
        np.testing.assert_allclose(found, reference, atol=1e-8 * np.abs(reference).max())


def test_constraint_forces_of_a_long_ladder_need_no_singular_values(monkeypatch):
    mech = scissor_lift(21)
    q, v, tau = scissor_lift_at(mech, 0.6), np.zeros(mech.nv), np.arange(mech.nv) * 0.1
    expected = lw.constraints.constraint_forces(mech, q, v, tau, method="svd")
    lw.compile("closed_constraint_forces", mech)
    monkeypatch.setattr(np.linalg, "svd", None)
    found = lw.constraints.constraint_forces(mech, q, v, tau)
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def hanging_chain(n: int) -> tuple[lw.Mechanism, np.ndarray]:
    """Links of one metre between two pins, and the half circle in which they hang; the chain starts stretched."""
    builder, parent = lw.Builder(), "ground"
    for k in range(n):
        builder.link(f"l{k}", 1.0, (0.5, 0, 0), (0.01, 0.08, 0.08))
        builder.joint(f"j{k}", lw.Revolute((0, 0, 1)), parent, f"l{k}", (1.0 if k else 0.0, 0, 0))
        parent = f"l{k}"
    q = np.full(n, np.pi / n)
    q[0] = 0.5 * (q[0] - np.pi)
    angles = np.cumsum(q)
    builder.loop(
        "pin", lw.Revolute((0, 0, 1)), parent, (1, 0, 0), "ground", (np.cos(angles).sum(), np.sin(angles).sum(), 0)
    )
    return builder.build(f"hanging_{n}", (0, -9.81, 0)), q


@pytest.mark.parametrize(
    "n", [60, pytest.param(100, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.slow)]
)
def test_chains_that_start_far_from_closed(n):
    """Ranks are decided and an order is found although no loop closes near the start: operations are linear."""
    mech, q = hanging_chain(n)
    assert redundancy(mech).assembled and redundancy(mech).cluster_ranks == (2,)
    assert fronts(mech).sweep(0) is not None
    tau = np.random.default_rng(0).normal(size=n)
    a = lw.forward_dynamics(mech, q, np.zeros(n), tau)
    free = mech.spanning_tree
    mass, rows = lw.mass_matrix(free, q), lw.constraints.constraint_jacobian(mech, q)
    rows = rows[np.abs(rows).max(axis=1) > 1e-9]
    force = tau - lw.bias_force(free, q, np.zeros(n))
    # M is so badly conditioned here that dense solutions have errors of 1e-8: the equations themselves are looked at
    reaction = mass @ a - force
    multipliers = np.linalg.lstsq(rows.T, reaction, rcond=None)[0]
    np.testing.assert_allclose(rows.T @ multipliers, reaction, atol=1e-12 * np.abs(mass).max() * np.abs(a).max())
    np.testing.assert_allclose(rows @ a, 0.0, atol=1e-12 * np.abs(rows).max() * np.abs(a).max())
    operations = sum(lw.compile("closed_motion", mech, target="numpy").op_counts.values())
    assert operations < 130 * n
