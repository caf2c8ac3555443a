"""External wrenches during a motion: weights as wrenches, constant and as functions, in all coordinates."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError
from linkwise.motion.forces import Forces
from linkwise.motion.singular import SingularPositions
from linkwise.motion.system import FullState, Manifold
from tests.simulated import simulate


def weights(mech: lw.Mechanism, gravity):
    """A function of (t, q, v): the wrenches that pull at the mass centres as gravity does, at link origins."""

    def wrenches(t, q, v):
        down = np.swapaxes(lw.link_poses(mech, q)[..., :3, :3], -1, -2) @ np.asarray(gravity)
        force = mech.parameters.masses[:, None] * down
        return np.concatenate([np.cross(mech.parameters.coms, force), force], axis=-1)

    return wrenches


def tree() -> tuple[lw.Mechanism, np.ndarray, np.ndarray]:
    mech = lw.mechanisms.random_tree(4, 3, floating_base=True)
    return mech, *lw.random_state(mech, np.random.default_rng(1))


def four_bar() -> tuple[lw.Mechanism, np.ndarray, np.ndarray]:
    mech = lw.mechanisms.four_bar()
    return mech, np.zeros(3), 2.0 * lw.constraints.null_space(mech, np.zeros(3), independent=("crank_joint",))[:, 0]


CASES = {
    "tree": (tree, {"step": 1e-3, "method": "rk4"}),
    "tree, euler": (tree, {"step": 1e-3, "method": "semi_implicit"}),
    "tree, adaptive": (tree, {}),
    "tree, implicit": (tree, {"method": "radau", "rtol": 1e-7, "atol": 1e-7}),
    "tree, nu": (tree, {"coordinates": "nu"}),
    "tree, xi": (tree, {"coordinates": "xi", "method": "rk4"}),
    "loop": (four_bar, {}),
    "loop, fixed steps": (four_bar, {"method": "rk4", "step": 1e-3}),
    "loop, implicit": (four_bar, {"method": "radau", "rtol": 1e-7, "atol": 1e-7}),
    "loop, lagrange": (four_bar, {"formulation": "lagrange"}),
    "loop, independent": (four_bar, {"coordinates": "independent", "rtol": 1e-8, "atol": 1e-8}),
}


@pytest.mark.slow_cases("tree, xi")
@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("case", CASES)
def test_weights_as_wrenches_are_gravity(case):
    make, options = CASES[case]
    mech, q, v = make()
    gravity = np.array([1.0, -9.0, 2.0])
    found = simulate(mech.with_gravity((0, 0, 0)), q, v, 0.1, wrenches=weights(mech, gravity), **options)
    expected = simulate(mech.with_gravity(gravity), q, v, 0.1, **options)
    tolerance = 1e-10 if "step" in options or "adaptive" in case or options.get("method") == "rk4" else 1e-5
    np.testing.assert_allclose(found.q[-1], expected.q[-1], atol=tolerance)
    np.testing.assert_allclose(found.a[-1], expected.a[-1], atol=1e4 * tolerance)
    assert found.wrenches.shape == (len(found.t), mech.n_links, 6) and expected.wrenches is None
    still = simulate(mech.with_gravity((0, 0, 0)), q, v, 0.1, **options)
    assert np.abs(still.q[-1] - found.q[-1]).max() > 1e-3


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_constant_wrenches_are_those_of_a_rollout(method):
    mech, rng = lw.mechanisms.random_tree(4, 3, floating_base=True), np.random.default_rng(5)
    q, v = lw.random_state(mech, rng, (3,))
    wrenches = rng.normal(size=(3, mech.n_links, 6))
    found = lw.simulate(mech, q, v, 0.05, method=method, step=5e-3, wrenches=wrenches)
    expected = lw.rollout(mech, q, v, None, 5e-3, 10, method, wrenches=wrenches[:, None])
    np.testing.assert_allclose(found.q, np.swapaxes(expected[0], 0, 1), atol=1e-12)
    np.testing.assert_array_equal(found.wrenches, np.broadcast_to(wrenches, (11, 3, mech.n_links, 6)))
    np.testing.assert_allclose(
        found.a[0], lw.forward_dynamics(mech, q, v, np.zeros(mech.nv), wrenches), rtol=1e-12, atol=1e-9
    )
    one = found.member(1)
    np.testing.assert_array_equal(one.wrenches[0], wrenches[1])
    alone = lw.simulate(mech, q[1], v[1], 0.05, method=method, step=5e-3, wrenches=wrenches[1])
    np.testing.assert_allclose(one.resume(0.05).q, alone.resume(0.05).q, atol=1e-12)


def test_the_jacobian_knows_functions_of_the_state():
    mech, rng = lw.mechanisms.random_tree(3, 1, floating_base=True), np.random.default_rng(0)
    q, v = lw.random_state(mech, rng)

    def drag(t, q, v):
        return weights(mech, (1.0, 2.0, 3.0))(t, q, v) - 0.4 * lw.link_velocities(mech, q, v)

    system = FullState(mech, Forces(mech, None, None, (), drag), Manifold(SingularPositions(mech)))
    x, h = system.start(q, v), 1e-5

    def along(e):
        ends = [system.rates(0.0, x + k * h * e) for k in (-2, -1, 1, 2)]
        return (8.0 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12.0 * h)

    expected = np.array([along(e) for e in np.eye(len(x))]).T
    np.testing.assert_allclose(system.jacobian()(0.0, x), expected, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("constant", [True, False])
def test_wrenches_go_on_and_are_kept_in_files(constant, tmp_path):
    mech, q, v = tree()
    fixed = np.random.default_rng(2).normal(size=(mech.n_links, 6))
    wrenches = fixed if constant else weights(mech, (0.0, 3.0, 0.0))
    through = lw.simulate(mech, q, v, 0.05, method="rk4", wrenches=wrenches)
    lw.simulate(mech, q, v, 0.03, method="rk4", wrenches=wrenches).save(tmp_path / "first.npz")
    first = lw.files.load_trajectory(tmp_path / "first.npz")
    if not constant:
        with pytest.raises(MechanismError, match="wrenches was a function"):
            first.resume(0.02)
    again = first.resume(0.02) if constant else first.resume(0.02, wrenches=wrenches)
    np.testing.assert_array_equal(again.q, through.q)
    np.testing.assert_array_equal(again.wrenches, through.wrenches)
    let_go = first.resume(0.02, wrenches=None)
    assert not let_go.wrenches[-1].any() and let_go.wrenches[0].any() and not np.array_equal(let_go.q, through.q)


def test_wrenches_that_make_no_sense():
    mech, q, v = tree()
    for bad, message in (
        (np.zeros(6), "must be an array"),
        (np.full((mech.n_links, 6), np.nan), "not finite"),
        ("down", "must be an array"),
    ):
        with pytest.raises(MechanismError, match=message):
            lw.simulate(mech, q, v, 0.1, wrenches=bad)
    with pytest.raises(MechanismError, match="wrenches gives an array of shape"):
        lw.simulate(mech, q, v, 0.1, wrenches=lambda t, q, v: np.zeros((1, 6)))
    with pytest.raises(ValueError, match="keep_energy is for free motions"):
        lw.simulate(
            mech, q, v, 0.1, wrenches=np.zeros((mech.n_links, 6)), settings=lw.motion.Settings(keep_energy=True)
        )
