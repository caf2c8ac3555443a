"""Derivatives of inverse and forward dynamics over random trees, against differences of order eight."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism.library import EVERY_KIND
from tests.physics.test_mimic import tied_and_free
from tests.physics.trees import CASES, Model, close, rate, tree_of, trees_of

STATES = 2
TOLERANCE = 1e-8
# The products with the inverse of a large mass matrix are long programs.
LARGE = [case for case in CASES if tree_of(*case).mech.nv > 25]


def directions(nv: int) -> np.ndarray:
    """(nv, m): all coordinates of a small mechanism, a few random directions of a large one."""
    return np.eye(nv) if nv <= 8 else np.random.default_rng(nv).normal(size=(nv, 3))


def differences(function, mech: lw.Mechanism, q, v, u) -> list[np.ndarray]:
    """Derivatives of ``function(q, v, u)`` (n, nv) along directions (nv, m) of q, v and u: three (n, nv, m)."""
    integrate = lw.compile("integrate", mech, target="numpy")
    units = directions(mech.nv).T[:, None]  # directions before states
    along = [
        lambda t: function(integrate(q, np.broadcast_to(units, (len(units), *v.shape)), t), v, u),
        lambda t: function(q, v + t * units, u),
        lambda t: function(q, v, u + t * units),
    ]
    return [np.moveaxis(rate(f), 0, -1) for f in along]


def check(model: Model, wrenches: bool, count: int = STATES) -> None:
    q, v, u, pushes = model.states(count, seed=5)
    extra = (pushes,) if wrenches else ()
    suffix = "_with_wrenches" if wrenches else ""
    for dynamics in ("inverse_dynamics", "forward_dynamics"):
        plain = getattr(model, dynamics + suffix)
        found = getattr(model, f"{dynamics}_derivatives{suffix}")(q, v, u, *extra)
        expected = differences(lambda q, v, u, plain=plain: plain(q, v, u, *extra), model.mech, q, v, u)
        for k in range(3):
            close(found[:, k] @ directions(model.mech.nv), expected[k], TOLERANCE, core=2)


@pytest.mark.quick_one_in(2)
@trees_of([case for case in CASES if case not in LARGE])
def test_random_trees(tree):
    model = tree()
    check(model, wrenches=model.mech.n_links % 2 == 1)


@pytest.mark.slow
@trees_of(LARGE)
def test_large_random_trees(tree):
    check(tree(), wrenches=True, count=1)


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("wrenches", [False, True])
def test_every_joint(kind, wrenches):
    check(Model(lw.mechanisms.random_tree(3, 17, joints=(kind, kind, "revolute"), floating_base=False)), wrenches)


@pytest.mark.parametrize("seed", range(4))
def test_followers(seed):
    tied, _, _, _ = tied_and_free(seed)
    check(Model(tied), wrenches=True)


def test_neither_weight_nor_speed_where_there_is_none():
    """At rest without gravity or wrenches nothing depends on q, and velocities enter in squares only."""
    mech = tree_of(5, 0, True).mech.with_gravity((0.0, 0.0, 0.0))
    q, _ = lw.random_state(mech, np.random.default_rng(1))
    zero = np.zeros(mech.nv)
    d_q, d_v, d_a = lw.inverse_dynamics_derivatives(mech, q, zero, zero)
    assert np.max(np.abs(d_q)) < 1e-13
    assert np.max(np.abs(d_v)) < 1e-13
    assert np.allclose(d_a, lw.mass_matrix(mech, q), rtol=1e-13, atol=1e-13)


def test_gravity_alone_has_a_symmetric_stiffness():
    """At rest the position derivative is the Hessian of the potential energy where coordinates commute."""
    mech = lw.mechanisms.random_tree(9, 2, joints=("revolute", "prismatic", "helical", "universal", "cylindrical"))
    q, _ = lw.random_state(mech, np.random.default_rng(2))
    zero = np.zeros(mech.nv)
    stiffness = lw.inverse_dynamics_derivatives(mech, q, zero, zero)[0]
    assert np.max(np.abs(stiffness)) > 1.0
    assert np.allclose(stiffness, stiffness.T, atol=1e-12 * np.max(np.abs(stiffness)))


def test_inverse_and_forward_belong_together():
    model = tree_of(3, 1, True)
    mech = model.mech
    q, v, tau, wrenches = model.states(5)
    a = model.forward_dynamics_with_wrenches(q, v, tau, wrenches)
    d_q, d_v, d_a = lw.inverse_dynamics_derivatives(mech, q, v, a, wrenches)
    f_q, f_v, f_tau = lw.forward_dynamics_derivatives(mech, q, v, tau, wrenches)
    close(-d_a @ f_q, d_q, 1e-9, core=2)
    close(-d_a @ f_v, d_v, 1e-9, core=2)
    close(d_a @ f_tau, np.broadcast_to(np.eye(mech.nv), d_a.shape), 1e-9, core=2)


def test_batches_broadcast_and_precisions():
    mech = lw.mechanisms.stanford_arm()
    rng = np.random.default_rng(3)
    q, v = lw.random_state(mech, rng, (4, 1))
    a = rng.normal(size=(3, mech.nv))
    d_q, d_v, d_a = lw.inverse_dynamics_derivatives(mech, q, v, a)
    assert d_q.shape == d_v.shape == d_a.shape == (4, 3, 6, 6)
    single = lw.inverse_dynamics_derivatives(mech, q[2, 0], v[2, 0], a[1])
    for whole, one in zip((d_q, d_v, d_a), single, strict=True):
        assert np.array_equal(whole[2, 1], one)
    coarse = lw.forward_dynamics_derivatives(mech, *(x.astype(np.float32) for x in (q, v, a)))
    fine = lw.forward_dynamics_derivatives(mech, q, v, a)
    for x, y in zip(coarse, fine, strict=True):
        assert x.dtype == np.float32 and np.allclose(x, y, rtol=2e-3, atol=2e-3 * np.max(np.abs(y)))


def test_parameters_are_inputs():
    mech = lw.mechanisms.puma560()
    kernel = lw.compile("inverse_dynamics_derivatives", mech, parameters=("mass", "com", "pose", "gravity"))
    q, v = lw.random_state(mech, np.random.default_rng(4), (3,))
    masses = np.array([body.mass for body in mech.bodies])
    coms = np.array([body.com for body in mech.bodies])
    poses = np.zeros((mech.n_links, 4, 4))
    for pose, body in zip(poses, mech.bodies, strict=True):
        pose[:3, :3], pose[:3, 3], pose[3, 3] = body.rotation, body.position, 1.0
    found = kernel(q, v, v, masses, coms, poses, np.array(mech.gravity))
    expected = lw.compile("inverse_dynamics_derivatives", mech)(q, v, v)
    close(found, expected, 1e-11, core=3)


@pytest.mark.parametrize("mech", [lw.mechanisms.puma560(), lw.mechanisms.chain(7)], ids=["puma", "chain of 7"])
def test_a_small_multiple_of_the_dynamics(mech):
    """Six times inverse dynamics at most, for six and seven joints."""
    counts = {
        name: sum(lw.compile(name, mech, target="numpy").op_counts.values())
        for name in ("inverse_dynamics", "inverse_dynamics_derivatives")
    }
    assert counts["inverse_dynamics_derivatives"] <= 6 * counts["inverse_dynamics"]


@pytest.mark.parametrize("function", [lw.inverse_dynamics_derivatives, lw.forward_dynamics_derivatives])
def test_what_they_refuse(function):
    arm = lw.mechanisms.stanford_arm()
    with pytest.raises(lw.KernelError, match=r"q has shape \(5,\), expected \(..., 6\)"):
        function(arm, np.zeros(5), np.zeros(6), np.zeros(6))
    with pytest.raises(lw.KernelError, match=r"wrenches has shape \(6, 5\)"):
        function(arm, np.zeros(6), np.zeros(6), np.zeros(6), np.zeros((6, 5)))
    loop = lw.mechanisms.four_bar()
    with pytest.raises(lw.MechanismError, match="loop 'pin' of mechanism 'four_bar' is open"):
        function(loop, 0.1 * np.ones(loop.nq), np.zeros(loop.nv), np.zeros(loop.nv))


def test_links_without_mass_do_not_move():
    builder = lw.Builder().link("free", 0.0, (0, 0, 0), np.zeros((3, 3)))
    builder.joint("hinge", lw.Revolute((0, 0, 1)), "ground", "free")
    with pytest.warns(lw.files.InertiaWarning, match="nothing beyond these joints resists"):
        mech = builder.build("massless", strict=False)
    with pytest.raises(lw.MechanismError, match="positive mass matrix"):
        lw.forward_dynamics_derivatives(mech, [0.0], [0.0], [0.0])
    assert np.all(np.array(lw.inverse_dynamics_derivatives(mech, [0.1], [0.2], [0.3])) == 0.0)
