"""L, which takes motions of the links to rates of the loops: its meaning, its recursions, what follows of it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.algorithms import expressions as ex
from linkwise.mechanics.operators.origins import depends_on_origins
from linkwise.mechanism import Loop, Mechanism

from ...constraints import built_in
from ...constraints.random_loops import CLOSING, closed_at, with_loops

G = op.L @ op.phi.T @ op.H.T @ op.S
M_INV = ex.MASS_MATRIX_INVERSE
v, mu, f = op.coordinate_vector("v"), op.loop_vector("mu"), op.link_vector("f")
RATES = op.S @ v
BIAS = op.L @ op.phi.T @ op.bias_acceleration(RATES) + op.loop_bias(RATES)


def two_loops(seed: int, kind: int, floating: bool = False, mimic: bool = False) -> tuple[Mechanism, np.ndarray]:
    """A random tree with a loop of the given kind and one of the next, closed at the configuration returned; one pair
    of sides is a welded frame and the ground."""
    tree = lw.mechanisms.random_tree(7, seed, floating_base=floating)
    if mimic:
        tree = _with_mimic_joint(tree)
    q, _ = lw.random_state(tree, np.random.default_rng(seed))
    rng = np.random.default_rng(seed + 50)
    a, b, c = rng.choice(tree.n_links, 3, replace=False)
    names, kinds = tree.link_names, (CLOSING[kind], CLOSING[(kind + 1) % len(CLOSING)])
    first = closed_at(tree, q, kinds[0], names[a], names[b], seed)
    second = closed_at(tree, q, kinds[1], "ground", names[c], seed + 1)
    return with_loops(tree, first, dataclasses.replace(second, name="to the ground")), q


def _with_mimic_joint(tree: Mechanism) -> Mechanism:
    single = [body.joint for body in tree.bodies if body.nv == 1]
    bodies = [
        dataclasses.replace(body, mimic=lw.Mimic(single[0], -0.7, 0.2)) if body.joint == single[-1] else body
        for body in tree.bodies
    ]
    return dataclasses.replace(tree, bodies=tuple(bodies))


def geared(seed: int, floating: bool = False) -> tuple[Mechanism, np.ndarray]:
    """Couplings of joints that rotate, slide and screw, one of them a mimic joint, beside a loop."""
    kinds = ("revolute", "prismatic", "helical")
    tree = _with_mimic_joint(lw.mechanisms.random_tree(8, seed, joints=kinds, floating_base=floating))
    q, _ = lw.random_state(tree, np.random.default_rng(seed))
    joints = [body.joint for body in tree.bodies if body.nv == 1]
    coordinates = {joint: _coordinate(tree, q, joint) for joint in joints}
    couplings = []
    for number, tied in enumerate((joints[1:4], joints[-3:])):
        ratios = {joint: 0.5 - 0.8 * k for k, joint in enumerate(tied)}
        offset = sum(ratio * coordinates[joint] for joint, ratio in ratios.items())
        couplings.append(lw.constraints.Coupling(f"gear{number}", ratios, offset))
    loop = closed_at(tree, q, lw.Spherical(), tree.link_names[1], tree.link_names[-1], seed)
    return with_loops(tree, couplings[0], loop, couplings[1]), q


def _coordinate(mech: Mechanism, q: np.ndarray, joint: str) -> float:
    mimic = mech.bodies[mech.body_index(joint)].mimic
    own = q[mech.q_index(joint)][0]
    return own * mimic.ratio + mimic.offset if mimic else own


MECHANISMS = {
    **{f"{type(kind).__name__}{k}": two_loops(k, k) for k, kind in enumerate(CLOSING)},
    "floating": two_loops(21, 3, floating=True),
    "mimic": two_loops(22, 0, mimic=True),
    "floating and mimic": two_loops(24, 8, floating=True, mimic=True),
    "geared": geared(31),
    "geared and floating": geared(33, floating=True),
    "tree": (lw.mechanisms.random_tree(5, 3), lw.neutral(lw.mechanisms.random_tree(5, 3))),
}
every_mechanism = pytest.mark.parametrize("name", MECHANISMS)
EXPRESSIONS = [
    op.L,
    op.L.T,
    G,
    G.T,
    op.L @ op.psi.T @ op.H.T,
    op.H @ op.psi @ op.L.T,
    op.L @ op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi @ op.L.T,
    op.L @ (op.phi.T - op.I) @ op.A("link2"),
    op.L @ op.phi.T @ op.E_phi.T - 2.0 * op.L @ op.phi.T @ op.phi.T,
    op.L @ op.M.inv @ op.phi,
    G @ v,
    G.T @ mu,
    op.phi @ op.L.T @ mu,
    op.phi @ (op.L.T @ mu - 2.0 * f),
    op.W @ op.phi @ op.L.T @ mu,
    op.L @ f,
    mu.T @ op.L @ op.phi.T @ f,
    G @ G.T + 0.5 * op.identity(op.LOOP),
]


def state(name: str) -> tuple[Mechanism, np.ndarray]:
    """Somewhere: loops are torn open, all terms count."""
    mech, _ = MECHANISMS[name]
    return mech, lw.random_state(mech.spanning_tree, np.random.default_rng(5))[0]


def given(kernel: lw.Kernel, seed: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=kernel.input_shapes[name]) for name in kernel.inputs[1:]}


def close(found, expected, tolerance=1e-11):
    expected = np.asarray(expected)
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(np.reshape(found, expected.shape), expected, rtol=0.0, atol=tolerance * scale)


@pytest.mark.quick_one_in(3)
@every_mechanism
@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_compiled_expressions_against_stacked_matrices(name, expression):
    mech, q = state(name)
    kernel = lw.compile(expression, mech, target="numpy")
    vectors = given(kernel)
    expected = op.dense(expression, mech, q, vectors)
    found = np.asarray(kernel(q, *vectors.values()))
    assert found.size == expected.size
    close(found, expected, 1e-10)


# -- what it means --------------------------------------------------------------------------------------


@every_mechanism
def test_it_gives_the_rates_at_which_loops_open(name):
    """L V against differences of the loops' errors along the motion."""
    mech, q = state(name)
    rates = np.random.default_rng(8).normal(size=mech.nv)
    step, weights = 4e-3, (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # central differences of order eight

    def error(t):
        return lw.constraints.position_error(mech, lw.integrate(mech, q, rates, t))

    differences = sum(w * (error(k * step) - error(-k * step)) for k, w in enumerate(weights, 1)) / step
    close(op.dense(G, mech, q) @ rates, differences, 1e-8)


@every_mechanism
@pytest.mark.seed("spencer2004", "2.2", by="library")
def test_the_jacobian_of_the_constraints(name):
    mech, q = state(name)
    close(lw.constraints.constraint_jacobian(mech, q), op.dense(G, mech, q))


@every_mechanism
def test_forces_of_multipliers_do_as_much_work_as_the_loops(name):
    mech, q = state(name)
    kernel = lw.compile(op.L.T @ mu, mech, target="numpy")
    multipliers, motions = np.ones(mech.n_constraints), np.random.default_rng(0).normal(size=(mech.n_links, 6))
    rates = lw.compile(op.L @ f, mech, target="numpy")(q, motions)
    close(np.sum(kernel(q, multipliers) * motions), multipliers @ rates)


def test_a_joint_that_carries_both_sides_is_left_out():
    """Its column is zero as a number, and costs nothing as code."""
    mech, q = two_loops(21, 3, floating=True)
    first = with_loops(mech, mech.loops[0])
    one, other = (mech.tree.path(mech.frame(side).body) for side in (first.loops[0].link_a, first.loops[0].link_b))
    shared = set(one) & set(other)
    assert shared
    kernel = lw.compile(G, first, target="numpy")
    for i in shared:
        np.testing.assert_array_equal(kernel(q)[:, mech.v_index(mech.bodies[i].joint)], 0.0)


def test_trees_have_no_loops():
    mech, q = MECHANISMS["tree"]
    assert lw.compile(op.L, mech)(q).shape == (0, 6 * mech.n_links)
    assert lw.compile(G, mech)(q).shape == (0, mech.nv)
    assert lw.compile(G.T, mech)(q).shape == (mech.nv, 0)
    assert lw.compile(ex.DELASSUS_MATRIX, mech)(q).shape == (0, 0)
    np.testing.assert_array_equal(lw.compile(G.T @ mu, mech)(q, np.zeros(0)), np.zeros(mech.nv))
    assert lw.compile(BIAS, mech)(q, np.zeros(mech.nv)).shape == (0,)
    assert op.dense(op.L, mech, q).shape == (0, 6 * mech.n_links)


# -- velocities -----------------------------------------------------------------------------------------


@every_mechanism
@pytest.mark.seed("spencer2004", "2.3", by="library")
def test_accelerations_of_the_loops(name):
    """L alpha + gamma against second differences along a motion with constant velocities: dG/dt v."""
    mech, q = state(name)
    rates = 0.5 * np.random.default_rng(9).normal(size=mech.nv)
    step, weights = 1e-2, (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)

    def error(t):
        return lw.constraints.position_error(mech, lw.integrate(mech, q, rates, t))

    both = (w * (error(k * step) + error(-k * step)) for k, w in enumerate(weights) if k)
    differences = (weights[0] * error(0.0) + sum(both)) / step**2
    found = lw.compile(BIAS, mech, target="numpy")(q, rates)
    close(found, differences, 1e-7)
    close(found, lw.constraints.constraint_bias(mech, q, rates))


def test_the_bias_of_a_loop_belongs_to_the_origins_of_its_links():
    """With the accelerations it does not: then internal frames may stand anywhere."""
    assert depends_on_origins(op.loop_bias(RATES))
    assert not depends_on_origins(BIAS)
    assert not depends_on_origins(ex.MULTIPLIERS)
    for name in ("Helical2", "floating", "geared"):
        mech, q = state(name)
        rates = np.random.default_rng(2).normal(size=mech.nv)
        accelerations, velocities = (
            lw.link_accelerations(mech, q, rates, np.zeros(mech.nv)),
            lw.link_velocities(mech, q, rates),
        )
        accelerations[:, 3:] += np.cross(velocities[:, :3], velocities[:, 3:])
        inertial = accelerations.ravel()
        expected = lw.constraints.constraint_bias(mech, q, rates) - op.dense(op.L, mech, q) @ inertial
        close(lw.compile(op.loop_bias(RATES), mech, target="numpy")(q, rates), expected)


# -- dynamics -------------------------------------------------------------------------------------------


@built_in.every_mechanism
def test_the_delassus_matrix(name):
    mech, (q, _) = built_in.built(name), built_in.random_state(name)
    jacobian, mass = op.dense(G, mech, q), op.dense(ex.MASS_MATRIX, mech, q)
    kernel = lw.compile("delassus_matrix", mech, target="numpy")
    close(kernel(q), jacobian @ np.linalg.solve(mass, jacobian.T), 1e-9)
    assert "= L @ psi.T @ H.T @ D.inv @ H @ psi @ L.T" in kernel.plan()


@pytest.mark.parametrize("name", ["mimic", "floating and mimic", "geared"])
def test_the_delassus_matrix_with_mimic_joints(name):
    mech, q = state(name)
    jacobian, mass = op.dense(G, mech, q), op.dense(ex.MASS_MATRIX, mech, q)
    expected = jacobian @ np.linalg.solve(mass, jacobian.T)
    close(lw.compile(ex.DELASSUS_MATRIX, mech, target="numpy")(q), expected, 1e-9)


@built_in.every_mechanism
@pytest.mark.seed("spencer2004", "2.1b", by="library")
@pytest.mark.seed("spencer2004", "2.4", by="library")
def test_multipliers_and_accelerations(name):
    """M a + h = tau - G* lambda with G a + dG/dt v = 0, as Lagrange writes it: redundant constraints included."""
    mech, (q, rates) = built_in.built(name), built_in.random_state(name)
    tau = np.random.default_rng(3).normal(size=mech.nv)
    values = {"q": q, "v": rates, "tau": tau}
    accelerations = lw.compile(ex.ACCELERATIONS_WITHIN_LOOPS, mech, target="numpy")
    expected = lw.forward_dynamics(mech, q, rates, tau)
    close(accelerations(*(values[x] for x in accelerations.inputs)), expected, 1e-8)
    kernel = lw.compile(ex.MULTIPLIERS, mech, target="numpy")
    multipliers = kernel(*(values[x] for x in kernel.inputs))
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    close(jacobian.T @ multipliers, jacobian.T @ lw.constraints.multipliers(mech, q, rates, tau), 1e-8)
    left = lw.mass_matrix(mech, q) @ expected + lw.bias_force(mech, q, rates)
    close(left, tau - jacobian.T @ multipliers, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "tree"])
def test_accelerations_of_random_closed_mechanisms(name):
    mech, q = MECHANISMS[name]
    rng = np.random.default_rng(6)
    q, rates = lw.constraints.project(mech, q, rng.normal(size=mech.nv))
    values = {"q": q, "v": rates, "tau": rng.normal(size=mech.nv)}
    kernel = lw.compile(ex.ACCELERATIONS_WITHIN_LOOPS, mech, target="numpy")
    expected = lw.forward_dynamics(mech, q, rates, values["tau"])
    close(kernel(*(values[x] for x in kernel.inputs)), expected, 1e-8)


def test_the_cost_of_a_loop_grows_with_its_length():
    """G, G v, G* mu, G M^-1 G* of a loop from the ground to the tip of a chain: operations per joint stay the same."""
    for expression in (G, G @ v, G.T @ mu, BIAS, op.L @ op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi @ op.L.T):
        costs = []
        for n in (6, 9, 12):
            chain = lw.mechanisms.chain(n)
            loop = Loop("tip", lw.Spherical(), "ground", (np.eye(3), np.ones(3)), f"link{n}", (np.eye(3), np.ones(3)))
            costs.append(sum(lw.compile(expression, with_loops(chain, loop), target="numpy").op_counts.values()))
        assert abs((costs[2] - costs[1]) - (costs[1] - costs[0])) <= 3, expression


# -- as text --------------------------------------------------------------------------------------------


def test_spaces_names_and_plans():
    assert (op.L.domain, op.L.codomain) == (op.MOTION, op.LOOP)
    assert (op.L.T.domain, op.L.T.codomain) == (op.LOOP, op.FORCE)
    assert op.parse('L @ phi.T @ H.T @ S @ coordinate_vector("v")') == G @ v
    assert op.parse('phi @ L.T @ loop_vector("mu")') == op.phi @ op.L.T @ mu
    assert op.parse("loop_bias(v) + 2 * identity(LOOP) @ mu", {"v": op.joint_vector("v"), "mu": mu}) == (
        op.loop_bias(op.joint_vector("v")) + 2 * mu
    )
    with pytest.raises(op.SpaceError):
        op.L @ op.phi
    with pytest.raises(op.SpaceError):
        op.L.T @ op.joint_vector("x")
    with pytest.raises(TypeError, match="loop_bias takes a joint vector"):
        op.loop_bias(mu)
    plan = lw.compile(G.T @ mu, built_in.built("four_bar"), target="numpy").plan()
    assert "around the loops: phi L*" in plan and "L        motions of the links" in plan


def test_expressions_without_loops_are_still_refused():
    mech = built_in.built("four_bar")
    for expression in (ex.MASS_MATRIX_INVERSE, op.H @ op.psi):
        with pytest.raises(lw.MechanismError, match="would ignore the loops 'pin'"):
            lw.compile(expression, mech)
    with pytest.raises(ValueError, match="L @ psi.T @ H.T @ D.inv @ H @ psi @ L.T is singular"):
        op.dense((op.L @ op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi @ op.L.T).inv, mech, lw.neutral(mech))
