"""Joint momenta: their equation of motion on trees of all joints, what it costs, total rates, steps."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.algorithms.momenta import FORMS
from linkwise.mechanics.algorithms.steps_in_variables import SYMPLECTIC, Partitioned
from papers.operation_counts import general_arm
from tests.physics.test_mimic import tied_and_free
from tests.physics.trees import CASES, Model, close, rate, tree_of, trees_of

SMALL = [case for case in CASES if case[0] <= 3]
LARGE = [case for case in CASES if case not in SMALL]


def momentum_rates(model: Model, q, v, a):
    """p = M v and dp/dt while v changes with the acceleration a, by differences of the mass matrix along the motion."""

    def momenta(t: float) -> np.ndarray:
        moved = lw.integrate(model.mech, q, v + 0.5 * t * a, t)
        return np.einsum("...ij,...j->...i", model.mass_matrix(moved), v + t * a)

    return momenta(0.0), rate(momenta, 1e-3)


def check_motion(model: Model) -> None:
    """A straight line in q and v is no motion of joints that do not commute, but to first order, which is all that a
    derivative at its start looks at."""
    q, v, tau, wrenches = model.states(3)
    p, expected = momentum_rates(model, q, v, model.forward_dynamics_with_wrenches(q, v, tau, wrenches))
    changes, velocities = model.momentum_motion_with_wrenches(q, p, tau, wrenches)
    close(velocities, v, 1e-9)
    close(changes, expected, 2e-7)
    close(model.joint_momenta(q, v), p, 1e-12)
    close(model.momentum_velocities(q, p), v, 1e-9)


@trees_of(SMALL)
def test_equation_of_motion(tree):
    check_motion(tree())


@pytest.mark.slow
@trees_of(LARGE)
def test_equation_of_motion_of_large_trees(tree):
    check_motion(tree())


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_are_one_equation(form):
    model = tree_of(3, 1, True)
    q, v, tau, wrenches = model.states(3)
    p = model.joint_momenta(q, v)
    expected = model.momentum_motion_with_wrenches(q, p, tau, wrenches)
    found = model.momentum_motion_with_wrenches(q, p, tau, wrenches, form=form)
    for one, other in zip(found, expected, strict=True):
        close(one, other, 1e-11)


def test_a_form_that_is_unknown():
    with pytest.raises(
        ValueError, match="unknown form 'sweep': known: filter, filter_and_sweep, elimination, fixed_axes, pairs"
    ):
        lw.compile("momentum_motion", lw.mechanisms.double_pendulum(), target="numpy", form="sweep")


def test_mimic_joints_and_rotors():
    tied, *_ = tied_and_free(3)
    tied = tied.parameters.with_armature(
        {joint: 0.3 for joint in tied.joint_names if joint not in tied.coordinates.mimic_joints}
    )
    check_motion(Model(tied))


def operations(kernel: lw.Kernel) -> int:
    return sum(kernel.op_counts.get(kind, 0) for kind in ("add", "mul", "div", "sqrt"))


AT_MOST = {"stanford_arm": 0.77, "puma560": 0.85, "general_arm_6": 0.93, "chain_20": 0.95}


@pytest.mark.parametrize("name", AT_MOST)
def test_cost_beside_forward_dynamics(name):
    """Total rates included, which makes diagonalized simulation no dearer than the plain one (jain1995 8.1)."""
    mech = {"general_arm_6": lambda: general_arm(6), "chain_20": lambda: lw.mechanisms.chain(20)}.get(
        name, lambda: getattr(lw.mechanisms, name)()
    )()
    plain = operations(lw.compile("forward_dynamics", mech, target="numpy"))
    own = operations(lw.compile("momentum_motion", mech, target="numpy"))
    with_rates = [
        operations(lw.compile("momentum_motion_and_total_rates", mech, target="numpy", normalized=normalized))
        for normalized in (True, False)
    ]
    assert own <= AT_MOST[name] * plain
    assert max(with_rates) < 0.93 * plain


@pytest.mark.seed("jain1995", "5.1", by="library")
@pytest.mark.parametrize("case", [(3, 0, True), (5, 0, False)])
@pytest.mark.parametrize("normalized", [True, False])
def test_total_rates_on_the_way(case, normalized):
    model = tree_of(*case)
    q, v, tau, _ = model.states(3)
    p = model.joint_momenta(q, v)
    changes, velocities, total = model.momentum_motion_and_total_rates(q, p, tau, normalized=normalized)
    factor = lw.formulations.diagonal.factor(model.mech, q, normalized)
    close(total, np.einsum("...ji,...j->...i", factor, v), 1e-10)
    close(changes, model.momentum_motion(q, p, tau)[0], 1e-11)
    close(velocities, v, 1e-10)


def test_total_rates_where_joints_mimic_others():
    mech, *_ = tied_and_free(3)
    q, v = lw.random_state(mech, np.random.default_rng(0))
    p = lw.formulations.momenta.momenta(mech, q, v)
    for normalized in (True, False):
        found = lw.formulations.momenta.motion_and_total_rates(mech, q, p, v, normalized=normalized)[2]
        np.testing.assert_allclose(found, lw.formulations.diagonal.rates(mech, q, v, normalized), rtol=1e-10)


@pytest.mark.parametrize("made", [lw.mechanisms.chain, lw.mechanisms.planar_arm])
def test_loops_over_links(made):
    """A long chain as loops gives the numbers of straight lines."""
    mech = made(26)
    q, v = lw.random_state(mech, np.random.default_rng(2))
    found, expected = (
        lw.compile("momentum_motion", mech, target="numpy", loops=loops)(q, v, v) for loops in (True, False)
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


# -- symplectic steps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", SYMPLECTIC)
def test_steps_are_symplectic(method):
    """The derivative J of a step in (q, p) keeps the symplectic form: J* W J = W, but for iterations and rounding."""
    mech, h = lw.mechanisms.planar_arm(3), 2e-3
    n, step = mech.nv, lw.compile(f"momentum_{method}_step", mech, target="numpy")
    rng = np.random.default_rng(4)
    x = np.concatenate(
        [rng.normal(size=n), lw.formulations.momenta.momenta(mech, rng.normal(size=n), rng.normal(size=n))]
    )

    def moved(x: np.ndarray) -> np.ndarray:
        q, p = x[..., :n], x[..., n:]
        state = step(q, lw.formulations.momenta.velocities(mech, q, p), np.zeros(n), h)
        return np.concatenate(
            [state[..., :n], lw.formulations.momenta.momenta(mech, state[..., :n], state[..., n:])], axis=-1
        )

    units = np.eye(2 * n)
    derivative = rate(lambda t: moved(x + t * units), 1e-2).T
    form = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    assert np.abs(derivative.T @ form @ derivative - form).max() < 1e-8
    assert np.abs(derivative - np.eye(2 * n)).max() > 1e-3


def test_only_symplectic_tables_are_taken():
    with pytest.raises(ValueError, match="not symplectic"):
        Partitioned(((0.0,),), ((0.5,),), (1.0,))
    with pytest.raises(ValueError, match="s x s coefficients"):
        Partitioned(((0.0,),), ((0.0,),), (0.5, 0.5))


def test_symplectic_steps_keep_the_energy_where_others_lose_it():
    """Over 50,000 steps the energy of a double pendulum goes up and down; in joint velocities, by a method of the same
    order, it leaves for good."""
    mech, h, steps = lw.mechanisms.planar_arm(2), 2e-3, 50_000
    start = np.array([-1.0, 0.5]), np.zeros(2)

    def errors(method: str, coordinates: str) -> np.ndarray:
        path = lw.rollout(mech, *start, None, h, steps, method, every=50, coordinates=coordinates)
        energy = lw.kinetic_energy(mech, *path) + lw.potential_energy(mech, path[0])
        return np.abs(energy - energy[0]).reshape(-1)[1:].reshape(10, -1).max(axis=1)

    for method, bound in (("symplectic_euler", 0.02), ("stormer_verlet", 1e-4), ("implicit_midpoint", 1e-4)):
        found = errors(method, "momentum")
        assert found.max() < bound and found.max() < 1.5 * found[0], (method, found)
    growing = errors("semi_implicit", "joint")
    assert growing[-1] > 3.0 * growing[0], growing
