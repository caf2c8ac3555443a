"""Motions that constraints allow to first order and block to second: no velocity and no acceleration has a part in
them, and what is left moves as if they were constrained."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.constraints.infinitesimal import has_infinitesimal_motions
from tests.oracle.random_closed import chain_in_line
from tests.units import SYSTEMS

TILT = Rotation.from_rotvec(0.9 * np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)).as_matrix()
AXIS = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
ALONG = np.array([2.0, -1.0, 0.0]) / np.sqrt(5.0)
EVERY_HOLD = pytest.mark.parametrize("hold", [4, 3, 2])


def arm(links: int = 2, kind: lw.extend.Joint | None = None, reach: float = 1.0) -> lw.Mechanism:
    """Links about (1, 2, 3), their tip pinned to the ground at this part of full reach."""
    builder = lw.Builder()
    for i in range(links):
        builder.link(f"link{i}", 1.0 + 0.3 * i, 0.5 * ALONG, 0.05 * np.eye(3))
        parent, place = (f"link{i - 1}", ALONG) if i else ("ground", np.zeros(3))
        builder.joint(f"joint{i}", lw.Revolute(tuple(AXIS)), parent, f"link{i}", (None, place))
    tip = f"link{links - 1}", (None, ALONG)
    builder.loop("tip", kind or lw.Spherical(), *tip, "ground", (None, reach * links * ALONG))
    return builder.build("arm", -9.81 * np.cross(AXIS, ALONG))


def quadruped(rotation: np.ndarray, planar: bool) -> lw.Mechanism:
    """Four legs of two parallel joints, under a trunk that floats, or moves in their plane."""

    def at(*place: float):
        return None, rotation @ np.array(place)

    def turned(*principal: float) -> np.ndarray:
        inertia = rotation @ np.diag(principal) @ rotation.T
        return (inertia + inertia.T) / 2.0

    across = tuple(rotation @ [0.0, 1.0, 0.0])
    builder = lw.Builder()
    builder.link("trunk", 10.0, (0.0, 0.0, 0.0), turned(0.1, 0.3, 0.35))
    builder.joint("base", lw.Planar(across) if planar else lw.Floating(), "ground", "trunk", at(0.0, 0.0, 0.0))
    for i, (side, front) in enumerate([(0.2, 0.3), (-0.2, 0.3), (0.2, -0.3), (-0.2, -0.3)]):
        for name, parent, place in (("thigh", "trunk", at(front, side, 0.0)), ("shin", f"thigh{i}", at(0, 0, -0.3))):
            builder.link(f"{name}{i}", 1.0, rotation @ [0.0, 0.0, -0.15], turned(0.01, 0.01, 0.002))
            builder.joint(f"{name}_joint{i}", lw.Revolute(across), parent, f"{name}{i}", place)
        builder.frame(f"foot{i}", f"shin{i}", at(0.0, 0.0, -0.3))
    return builder.build("quadruped", rotation @ [0.0, 0.0, -9.81])


def standing(rotation: np.ndarray, hold: int, planar: bool = False) -> lw.Mechanism:
    """Its knees bent, feet held as points."""
    mech = quadruped(rotation, planar)
    q = lw.neutral(mech)
    q[-8:] = np.tile([0.4, -0.8], 4)
    return lw.contact.hold_frames(mech, [f"foot{i}" for i in range(hold)], q, points=True)


def moving(hold: int, rotation: np.ndarray = TILT, seed: int = 0):
    """The quadruped, its state in motion and joint forces; and the same of the one in the plane."""
    rng, own, flat = np.random.default_rng(seed), standing(rotation, hold), standing(rotation, hold, planar=True)
    w = lw.constraints.project(flat, flat.initial, rng.normal(size=flat.nv))[1]
    v = np.concatenate([lw.link_velocities(flat, flat.initial, w)[0], w[3:]])
    tau = rng.normal(size=8)
    return (own, v, np.append(np.zeros(6), tau)), (flat, w, np.append(np.zeros(3), tau))


# -- an arm that cannot move --------------------------------------------------------------------------------------


@pytest.mark.parametrize("links", [2, 3])
@pytest.mark.parametrize("kind", [lw.Spherical(), lw.Revolute(tuple(AXIS))])
def test_an_arm_pinned_at_full_reach_stands_still(links, kind):
    mech = arm(links, kind)
    q, across = mech.initial, np.linalg.svd(lw.constraints.constraint_jacobian(mech, mech.initial))[2][1]
    assert (
        lw.constraints.degrees_of_freedom(mech) == lw.constraints.redundancy(mech).clusters[0].degrees_of_freedom == 0
    )
    assert f"{links - 1} more to first order, blocked to second" in str(lw.constraints.redundancy(mech))
    assert lw.constraints.null_space(mech, q).shape == (links, 0)
    assert not lw.constraints.project(mech, q, across)[1].any()
    assert not lw.forward_dynamics(mech, q, 0.0 * q, across).any()
    with pytest.warns(lw.MechanismWarning, match="v0 violates the constraints of loop 'tip' .* to second order"):
        motion = lw.simulate(mech, q, across, 0.1)
    with pytest.warns(lw.MechanismWarning, match="v0 violates the constraints of loop 'tip' .* to second order"):
        states = lw.rollout(mech, np.tile(q, (2, 1)), across, None, 1e-2, 10, return_status=True)
    assert np.abs(motion.q - q).max() == np.abs(motion.v).max() == 0.0
    assert np.abs(states[0] - q).max() == np.abs(states[1]).max() == 0.0


def spherical_linkage(arcs: tuple[float, ...], ground: float) -> lw.Mechanism:
    """Links whose joints' axes meet in one point, at these angles to each other; the ends of the chain are on the
    ground, at an angle to each other too."""

    def turned(angle: float):
        return Rotation.from_rotvec([0.0, angle, 0.0]).as_matrix(), np.zeros(3)

    builder, axis = lw.Builder(), lw.Revolute((0.0, 0.0, 1.0))
    for i in range(len(arcs)):
        builder.link(f"link{i}", 1.0 + 0.2 * i, (0.1, 0.0, 0.3), 0.05 * np.eye(3))
        builder.joint(f"joint{i}", axis, f"link{i - 1}" if i else "ground", f"link{i}", turned((0.0, *arcs)[i]))
    builder.loop("loop", axis, f"link{len(arcs) - 1}", turned(arcs[-1]), "ground", turned(ground))
    return builder.build("spherical linkage")


@pytest.mark.parametrize("arcs", [(0.5, 0.7, 0.4), (0.9, 0.8), (0.6, 0.9, 0.7), (0.3, 0.4, 0.5)], ids=str)
def test_spherical_linkages_at_full_reach_are_locked(arcs):
    """Points on the sphere whose distance is the sum of the arcs between them have one way between them.  With the
    closing axis reversed the ends would be nearer to each other by way of the antipode, where the linkage moves: that
    is another linkage."""
    mech = spherical_linkage(arcs, sum(arcs))
    known = lw.constraints.redundancy(mech)
    assert known.assembled and not known.around
    assert lw.constraints.degrees_of_freedom(mech) == known.clusters[0].degrees_of_freedom == 0
    assert known.clusters[0].infinitesimal == len(arcs) - 1
    assert not lw.forward_dynamics(mech, mech.initial, None, np.ones(mech.nv)).any()


@pytest.mark.parametrize(("arcs", "dofs"), [((0.5, 0.7, 0.4), 1), ((0.6, 0.9, 0.7), 1), ((0.9, 0.8), 0)], ids=str)
def test_spherical_linkages_within_reach_move(arcs, dofs):
    mech = spherical_linkage(arcs, 0.8 * sum(arcs))
    q = lw.constraints.assemble(mech, np.linspace(0.4, -0.9, mech.nv))
    assert lw.constraints.degrees_of_freedom(mech, q) == dofs and not has_infinitesimal_motions(mech)


def test_an_arm_that_is_not_stretched_moves():
    mech = arm(3, lw.Revolute(tuple(AXIS)), 0.9)
    assert not has_infinitesimal_motions(mech)
    assert lw.constraints.degrees_of_freedom(mech, lw.constraints.assemble(mech, [0.4, -0.5, -0.4])) == 1


@pytest.mark.parametrize("system", SYSTEMS, ids=str)
def test_units_do_not_decide_what_is_blocked(system):
    for mech, blocked in ((arm(3), 2), (standing(TILT, 4), 1), (standing(TILT, 2), 2), (arm(3, reach=0.9), 0)):
        other = system.mechanism(mech)
        q = system.q(mech, lw.constraints.assemble(mech, [0.4, -0.5, -0.4]) if not blocked else mech.initial)
        found = lw.constraints.redundancy(other, q)
        assert sum(one.infinitesimal for one in found.clusters) == blocked and not found.is_rounded


@pytest.mark.slow_cases(*(f"[{seed}]" for seed in range(4, 40)))
@pytest.mark.parametrize("seed", range(40))
def test_chains_in_line_are_locked_at_the_ends_of_their_reach(seed):
    """Folded over themselves here and there, of revolute and universal joints, on the ground or on a floating base."""
    rng = np.random.default_rng([9, seed])
    drawn, is_locked = chain_in_line(rng, seed)
    while seed % 2 and not is_locked:
        drawn, is_locked = chain_in_line(rng, seed)
    mech, (_, q, v, tau) = drawn.mech, drawn.states[0]
    assert has_infinitesimal_motions(mech) == is_locked
    if is_locked:  # then all moves as one body
        floats = 6 if isinstance(mech.bodies[0].kind, lw.Floating) else 0
        assert lw.constraints.degrees_of_freedom(mech, q) == floats
        a, tree = lw.forward_dynamics(mech, q, v, tau), mech.spanning_tree
        mass, weight = lw.mass_matrix(tree, q), lw.inverse_dynamics(tree, q, v, 0.0 * v)
        expected = np.append(
            np.linalg.solve(mass[:floats, :floats], (tau - weight)[:floats]), np.zeros(mech.nv - floats)
        )
        np.testing.assert_allclose(a, expected, atol=1e-9 * (1.0 + np.abs(expected).max()))


# -- what is left moves --------------------------------------------------------------------------------------------


@EVERY_HOLD
@pytest.mark.parametrize("rotation", [np.eye(3), TILT], ids=["upright", "tilted"])
def test_legs_in_planes_move_as_in_the_plane(hold, rotation):
    (mech, v, tau), (flat, w, forces) = moving(hold, rotation)
    q = mech.initial
    assert lw.constraints.degrees_of_freedom(mech, q) == lw.constraints.degrees_of_freedom(flat, flat.initial)
    np.testing.assert_allclose(lw.constraints.project(mech, q, v)[1], v, atol=1e-12)
    expected = lw.forward_dynamics(flat, flat.initial, w, forces)[3:]
    aside = np.concatenate([rotation @ [3.0, 0.0, 2.0], rotation @ [0.0, 5.0, 0.0], np.zeros(8)])
    for method in ("elimination", "svd", "partitioning", "tangent", "differentiable", "lagrange"):
        for pushed in (tau, tau + aside):  # what pushes along blocked motions has no effect
            a = lw.forward_dynamics(mech, q, v, pushed, method=method)
            np.testing.assert_allclose(a[6:], expected, atol=1e-9 * np.abs(expected).max())


@EVERY_HOLD
def test_rollouts_and_simulations_follow_what_is_left(hold):
    (mech, v, tau), (flat, w, forces) = moving(hold)
    tau[:3] += TILT @ [3.0, 0.0, 2.0]
    q, rates, status = lw.rollout(mech, mech.initial, v, tau, 2e-3, 20, return_status=True)
    expected, expected_rates = lw.rollout(flat, flat.initial, w, forces, 2e-3, 20)
    np.testing.assert_allclose(q[:, 7:], expected[:, 3:], atol=1e-9)
    np.testing.assert_allclose(rates[:, 6:], expected_rates[:, 3:], atol=1e-9 * np.abs(rates).max())
    assert status == 1  # no step is the compiled one
    motion = lw.simulate(mech, mech.initial, v, 0.04, tau)
    np.testing.assert_allclose(motion.q[-1, 7:], expected[-1, 3:], atol=1e-8)


def test_loops_that_are_pulled_closed_move_alike():
    (mech, v, tau), _ = moving(4)
    a = lw.forward_dynamics(mech, mech.initial, v, tau)
    pulled = lw.forward_dynamics(mech, mech.initial, v, tau, baumgarte=(10.0, 10.0))
    np.testing.assert_allclose(pulled, a, atol=1e-8 * np.abs(a).max())
    options = {"method": "rk4", "step": 1e-3}
    free = lw.simulate(
        mech,
        mech.initial,
        v,
        0.01,
        tau,
        settings=lw.motion.Settings(stabilization="baumgarte", baumgarte=(10.0, 10.0)),
        **options,
    )
    kept = lw.simulate(mech, mech.initial, v, 0.01, tau, **options)
    np.testing.assert_allclose(free.q[-1], kept.q[-1], atol=1e-8)


def test_a_push_along_a_blocked_motion_is_told():
    (mech, v, _), _ = moving(4)
    roll = np.append(TILT @ [1.0, 0.0, 0.0], np.zeros(11))
    rolling = lw.constraints.constraint_jacobian(mech, mech.initial)
    assert np.abs(rolling @ (v + roll - lw.constraints.project(mech, mech.initial, roll)[1])).max() < 2.0
    for motion in (lw.simulate, lw.rollout):
        with pytest.warns(lw.MechanismWarning, match="v0 violates"):
            more = (0.01,) if motion is lw.simulate else (None, 1e-2, 1)
            motion(mech, mech.initial, v + roll, *more)


def test_inverse_dynamics_and_impacts_know_the_motions_that_are_left():
    (mech, v, tau), _ = moving(4)
    q, legs = mech.initial, [name for name in mech.joint_names if name != "base"]
    a = lw.forward_dynamics(mech, q, v, tau)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        found = lw.inverse_dynamics(mech, q, v, a, actuated=legs)
    np.testing.assert_allclose(lw.forward_dynamics(mech, q, v, found), a, atol=1e-9 * np.abs(a).max())
    roll = np.append(TILT @ [1.0, 0.0, 0.0], np.zeros(11))
    np.testing.assert_allclose(lw.contact.impact(mech, q, v), v, atol=1e-12)
    after = lw.contact.impact(mech, q, v + roll)
    np.testing.assert_allclose(lw.constraints.project(mech, q, after)[1], after, atol=1e-12)


def test_reactions_have_no_bound_along_blocked_motions():
    (mech, v, tau), _ = moving(4)
    q, m = mech.initial, mech.n_constraints
    tau[8:10], tau[12:] = tau[6:8], tau[10:12]  # left as right: nothing pushes to the side
    multipliers = lw.constraints.multipliers(mech, q, v, tau)
    forces = lw.constraints.constraint_forces(mech, q, v, tau)
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    assert multipliers.shape == (m,)
    np.testing.assert_allclose(-jacobian.T @ multipliers, forces, atol=1e-8 * np.abs(forces).max())
    tau[:3] += TILT @ [3.0, 0.0, 0.0]
    for reactions in (lw.constraints.multipliers, lw.constraints.loop_reactions):
        with pytest.raises(
            lw.MechanismError, match="no answer to the reactions .* have no bound; leave out what follows"
        ):
            reactions(mech, q, v, tau)


@pytest.mark.parametrize(
    "quantity",
    [
        lambda mech, q, v: lw.compile("forward_dynamics", mech),
        lambda mech, q, v: lw.forward_dynamics_derivatives(mech, q, v, 0.0 * v),
        lambda mech, q, v: lw.linearize(mech, q),
        lambda mech, q, v: lw.derivatives.rollout_derivatives(mech, np.tile(q, (3, 1)), np.tile(v, (3, 1)), None, 1e-3),
        lambda mech, q, v: lw.motion.step_kernel(mech),
        lambda mech, q, v: lw.formulations.momenta.velocities(mech, q, v),
    ],
)
def test_what_takes_blocked_motions_for_motions_is_refused(quantity):
    (mech, v, _), _ = moving(4)
    with pytest.raises(lw.MechanismError, match="allow motions to first order that they block to second"):
        quantity(mech, mech.initial, v)


def test_loops_that_let_go_are_a_mechanism_of_their_own():
    (mech, v, tau), _ = moving(4)
    q, masks = mech.initial, np.array([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=bool)
    found = lw.forward_dynamics(mech, q, v, tau, active=masks)
    freedoms = lw.constraints.degrees_of_freedom(mech, q, active=masks)
    spaces = lw.constraints.null_space(mech, q, active=masks)
    for mask, a, freedom, space in zip(masks, found, freedoms, spaces, strict=True):
        held = mech.spanning_tree.with_loops(*(loop for loop, holds in zip(mech.loops, mask, strict=True) if holds))
        np.testing.assert_allclose(a, lw.forward_dynamics(held, q, v, tau), atol=1e-8 * np.abs(a).max())
        assert (
            freedom
            == np.linalg.matrix_rank(space)
            == (lw.constraints.degrees_of_freedom(held, q) if mask.any() else 14)
        )


def test_unknown_states_stay_unknown():
    (mech, v, tau), _ = moving(4)
    q = np.tile(mech.initial, (2, 1))
    q[1, 8] = np.nan
    a = lw.forward_dynamics(mech, q, v, tau)
    assert np.isfinite(a[0]).all() and np.isnan(a[1]).all()
    assert np.isnan(lw.forward_dynamics(mech, mech.initial, np.nan * v, tau)).all()
    assert lw.constraints.null_space(mech, q).shape == (2, 14, 3)
    states, rates, status = lw.rollout(mech, q, v, tau, 1e-3, 2, return_status=True)
    assert np.isfinite(states[0]).all() and np.isfinite(rates[0]).all() and (status == 1).all()
    assert np.isnan(states[1, 1:]).all() and np.isnan(rates[1, 1:]).all()


@pytest.mark.parametrize("name", ["parallel_four_bar_robot", "flyball_governor", "bricard"])
def test_redundant_constraints_of_moving_mechanisms_block_nothing(name):
    mech = getattr(lw.mechanisms, name)()
    assert lw.constraints.redundancy(mech).redundant and not has_infinitesimal_motions(mech)
