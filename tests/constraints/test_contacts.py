"""Loops that hold or let go, state by state: against mechanisms built with just those loops, against maximal
coordinates, and against the laws of impacts."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise import constraints
from linkwise.mechanism import Mechanism
from linkwise.mechanism.library import HUMANOID_FEET, QUADRUPED_FEET
from tests.oracle import maximal_coordinates as oracle
from tests.oracle import random_closed

LEGGED = {
    "quadruped": (lw.mechanisms.quadruped, QUADRUPED_FEET, [0b0000, 0b1111, 0b0110, 0b1001, 0b0111, 0b0100]),
    "humanoid": (lw.mechanisms.humanoid, HUMANOID_FEET, [0b00, 0b01, 0b10, 0b11]),
}
PER_MASK = 3


def close(found, expected, tolerance: float = 1e-9) -> None:
    """To a part of the largest number of each state; of one state where it has one number after the other."""
    if np.size(expected) == 0:
        assert np.size(found) == 0
        return
    found, expected = np.atleast_2d(found), np.atleast_2d(expected)
    axes = tuple(range(1, np.ndim(expected)))
    scale = np.maximum(np.abs(expected).max(axis=axes, keepdims=True), 1e-3)
    assert np.abs((found - expected) / scale).max() < tolerance


def standing(mech: Mechanism, feet, masks: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray]:
    """Configurations with held feet where they stand and the legs of the others anywhere, and any velocities."""
    neutral, found = lw.neutral(mech), []
    moves = constraints.null_space(mech, neutral)
    for mask in masks:
        q = lw.integrate(mech, neutral, 0.1 * moves @ rng.normal(size=moves.shape[1]), 1.0)
        q = constraints.assemble(mech, q)
        for foot, held in zip(feet, mask, strict=True):
            for joint in mech.joint_names:
                if joint.startswith(foot) and not held and "shoulder" not in joint:
                    q[mech.q_index(joint)] += rng.normal(size=1)
        found.append(q)
    return np.array(found), rng.normal(size=(len(masks), mech.nv))


@pytest.mark.slow_cases("humanoid")
@pytest.mark.parametrize("name", LEGGED)
def test_a_mask_is_the_mechanism_with_just_those_loops(name):
    build, feet, chosen = LEGGED[name]
    mech, rng = build(), np.random.default_rng(0)
    masks = np.array([[bool(bits >> k & 1) for k in range(len(feet))] for bits in chosen for _ in range(PER_MASK)])
    masks = masks[rng.permutation(len(masks))]
    q, before = standing(mech, feet, masks, rng)
    tau, wrenches = rng.normal(size=before.shape), rng.normal(size=(len(masks), mech.n_links, 6))
    v = lw.contact.impact(mech, q, before, masks)
    found = {
        "accelerations": lw.forward_dynamics(mech, q, v, tau, active=masks),
        "pushed": lw.forward_dynamics(mech, q, v, tau, wrenches=wrenches, active=masks),
        "reactions": constraints.loop_reactions(mech, q, v, tau, active=masks),
        "joints": lw.joint_wrenches(mech, q, v, tau=tau, wrenches=wrenches, active=masks),
        "impulses": lw.contact.impact_impulses(mech, q, before, masks),
    }
    for bits in chosen:
        mask = np.array([bool(bits >> k & 1) for k in range(len(feet))])
        own = (masks == mask).all(axis=-1)
        alone = build([foot for foot, held in zip(feet, mask, strict=True) if held])
        state, pushes = (q[own], v[own], tau[own]), wrenches[own]
        close(found["accelerations"][own], lw.forward_dynamics(alone, *state, method="svd"))
        close(found["pushed"][own], lw.forward_dynamics(alone, *state, method="svd", wrenches=pushes))
        assert (
            constraints.degrees_of_freedom(mech, q[own], active=mask) == constraints.degrees_of_freedom(alone, q[own])
        ).all()
        if mask.any():
            close(found["reactions"][own][:, mask], constraints.loop_reactions(alone, *state, method="svd"))
            close(found["impulses"][own][:, mask], impulses_by_matrices(alone, q[own], before[own]))
        assert not found["reactions"][own][:, ~mask].any()
        assert not found["impulses"][own][:, ~mask].any()
        close(v[own], impact_by_matrices(alone, q[own], before[own]))
        at = np.flatnonzero(own)[0]
        one = q[at], v[at], tau[at]
        close(found["accelerations"][at], oracle.forward_dynamics(alone, *one).accelerations)
        reactions = constraints.loop_reactions(mech, *one, active=mask, wrenches=wrenches[at])
        balance(mech, *one, found["pushed"][at], found["joints"][at], reactions, wrenches[at])


def impact_by_matrices(mech: Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v - M^-1 G* (G M^-1 G*)^-1 G v, of loops that are independent."""
    return np.array([x - np.linalg.solve(m, g.T @ _impulses(m, g, x)) for x, m, g in _matrices(mech, q, v)])


def impulses_by_matrices(mech: Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The same as wrenches on side B: ball joints and welds, in which the closure is B's place and attitude in A."""
    found = []
    for state, x, m, g in ((at, *rest) for at, rest in zip(q, _matrices(mech, q, v), strict=True)):
        impulses, wrenches = _impulses(m, g, x), []
        for loop in mech.loops:
            far = lw.frame_pose(mech, state, loop.link_b)[:3, :3] @ loop.pose_b[0]
            own = impulses[mech.constraints.rows(loop.name)]
            moment = own[3:] if len(own) > 3 else np.zeros(3)
            wrenches.append(-np.concatenate([far.T @ moment, far.T @ own[:3]]))
        found.append(wrenches)
    return np.array(found)


def _matrices(mech: Mechanism, q: np.ndarray, v: np.ndarray):
    return zip(v, lw.mass_matrix(mech, q), constraints.constraint_jacobian(mech, q), strict=True)


def _impulses(m: np.ndarray, g: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.linalg.solve(g @ np.linalg.solve(m, g.T), g @ v)


def balance(mech: Mechanism, q, v, tau, a, joints, reactions, wrenches=None) -> None:
    """Newton's and Euler's laws for every link, and the forces along the degrees of freedom of all joints."""
    poses, scale = oracle.place(mech, q), max(1.0, np.abs(joints).max())
    total = np.zeros((mech.n_links, 6))
    for i, body in enumerate(mech.bodies):
        onto = oracle.in_world(poses[i], joints[i])
        total[i] += onto
        if wrenches is not None:
            total[i] += oracle.in_world(poses[i], wrenches[i])
        if body.parent >= 0:
            total[body.parent] -= onto
        side = poses[body.parent].then(body.rotation, body.position)
        felt = [float(screw.twist @ onto) for screw in oracle.screws(body.kind, side, poses[i])]
        own = mech.v_index(body.joint)
        if not mech.coordinates.mimic_joints:
            np.testing.assert_allclose(felt, tau[own] - body.armature * a[own], atol=1e-9 * scale)
    for loop, reaction in zip(mech.loops, reactions, strict=True):
        frames = [mech.frame(link) for link in (loop.link_a, loop.link_b)]
        sides = [
            poses[frame.body].then(frame.rotation, frame.position).then(*pose)
            for frame, pose in zip(frames, (loop.pose_a, loop.pose_b), strict=True)
        ]
        onto = oracle.in_world(sides[1], reaction)
        for frame, sign in zip(frames, (-1.0, 1.0), strict=True):
            if frame.body >= 0:
                total[frame.body] += sign * onto
        for screw in oracle.screws(loop.kind, *sides):
            assert abs(float(screw.twist @ onto)) < 1e-9 * scale
    np.testing.assert_allclose(total, oracle.wrenches_needed(mech, q, v, a), atol=1e-9 * scale)


# -- any mechanism ------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("[2-", "[3-")
@pytest.mark.filterwarnings("ignore:.*is locked")
@pytest.mark.parametrize("family", ["general", "planar"])
@pytest.mark.parametrize("seed", range(4))
def test_random_mechanisms_with_some_of_their_loops(family, seed):
    """Clusters on floating bases, loops of all kinds that share links, repeated loops."""
    case = random_closed.case(family, seed)
    mech, state = case.mech, case.states[0]
    count = len(mech.loops)
    masks = np.array(list(itertools.product([False, True], repeat=count)))
    a = lw.forward_dynamics(mech, state.q, state.v, state.tau, active=masks)
    reactions = constraints.loop_reactions(mech, state.q, state.v, state.tau, active=masks)
    joints = lw.joint_wrenches(mech, state.q, state.v, tau=state.tau, active=masks)
    for k, mask in enumerate(masks):
        held = [loop for loop, on in zip(mech.loops, mask, strict=True) if on]
        alone = mech.spanning_tree.with_loops(*held)
        close(a[k], oracle.forward_dynamics(alone, state.q, state.v, state.tau).accelerations)
        if all(isinstance(loop, lw.constraints.Loop) for loop in mech.loops):
            balance(mech, state.q, state.v, state.tau, a[k], joints[k], reactions[k])
        if mask.all():
            expected = constraints.loop_reactions(mech, state.q, state.v, state.tau, method="svd")
            close(reactions[k].ravel(), expected.ravel())


def corners(held=((1, 1), (1, -1), (-1, 1), (-1, -1))) -> Mechanism:
    """A foot at the end of a leg of six joints on a floating body, its four corners each held like a ball joint: twelve
    constraints, of which six are independent."""
    mech = lw.mechanisms.humanoid(())
    sole = mech.frame("left_sole")
    place = lw.frame_pose(mech, lw.neutral(mech), "left_sole")[:3, 3]
    loops = []
    for x, y in held:
        corner = np.array([0.1 * x, 0.05 * y, 0.0])
        ends = (np.eye(3), place + corner), (sole.rotation.T, sole.position + corner)
        loops.append(lw.constraints.Loop(f"corner{x}{y}", lw.Spherical(), "ground", ends[0], "left_sole_link", ends[1]))
    return mech.with_loops(*loops)


def test_redundant_contacts():
    mech, rng = corners(), np.random.default_rng(3)
    q = lw.neutral(mech)
    assert np.abs(constraints.position_error(mech, q)).max() < 1e-12
    masks = np.array(list(itertools.product([False, True], repeat=4)))
    freedoms = mech.nv - np.array([0, 3, 5, 6, 6])[masks.sum(axis=-1)]
    np.testing.assert_array_equal(constraints.degrees_of_freedom(mech, q, active=masks), freedoms)
    tau = rng.normal(size=(16, mech.nv))
    v = lw.contact.impact(mech, q, rng.normal(size=(16, mech.nv)), masks)
    found = lw.compile("closed_multipliers", mech, ports="active")(q, v, tau, masks.astype(float))
    assert np.isfinite(found).all()
    for k, mask in enumerate(masks):
        jacobian = constraints.constraint_jacobian(mech, q)[np.repeat(mask, 3)]
        np.testing.assert_allclose(jacobian @ v[k], 0.0, atol=1e-11)
        a = lw.forward_dynamics(mech, q, v[k], tau[k], active=mask)
        forces = tau[k] - lw.mass_matrix(mech, q) @ a - lw.bias_force(mech, q, v[k])
        close(found[k, np.repeat(mask, 3)], np.linalg.pinv(jacobian.T, 1e-8) @ forces)
        assert not found[k, np.repeat(~mask, 3)].any()


def test_doubtful_states_are_left_to_the_svd():
    """Four-bars laid flat, where they have a degree of freedom more each, and nearly so."""
    mech = lw.mechanisms.n_four_bar(2)
    angles = np.pi / 2 + np.array([0.0, 1e-9, 1e-7, 1e-6, 0.3])
    q = angles[:, None] * np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    assert np.abs(constraints.position_error(mech, q)).max() < 1e-15
    v, tau = np.zeros_like(q), np.random.default_rng(0).normal(size=q.shape)
    with np.errstate(invalid="ignore"):
        known = np.isfinite(lw.compile("closed_forward_dynamics", mech, ports="active")(q, v, tau, np.ones(2)))
    np.testing.assert_array_equal(known.all(axis=-1), [True, False, False, False, True])
    found = lw.forward_dynamics(mech, q, v, tau, active=np.ones(2, dtype=bool))
    close(found, lw.forward_dynamics(mech, q, v, tau, method="svd"))
    forces = constraints.constraint_forces(mech, q, v, tau, active=np.ones(2, dtype=bool))
    close(forces, constraints.constraint_forces(mech, q, v, tau))


def test_rounded_mechanisms_with_some_of_their_loops():
    """Three cranks under one bar with a hole that is off by 1e-9 m, and a weld of the bar to the ground that comes and
    goes."""
    builder = lw.Builder()
    for k, x in enumerate((0.0, 0.4, 1.0)):
        builder.link(f"crank{k}", 1.0, (0.25, 0, 0), (0.01, 0.02, 0.02))
        builder.joint(f"crank{k}", lw.Revolute((0, 0, 1)), "ground", f"crank{k}", (None, (x, 0, 0)))
    builder.link("bar", 2.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
    builder.joint("bar", lw.Revolute((0, 0, 1)), "crank0", "bar", (None, (0.5, 0, 0)))
    for k, x in ((1, 0.4), (2, 1.0 + 1e-9)):
        builder.loop(f"hole{k}", lw.Revolute((0, 0, 1)), f"crank{k}", (None, (0.5, 0, 0)), "bar", (None, (x, 0, 0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        mech = builder.build("cranks").with_gravity((0.0, -9.81, 0.0))
        q = constraints.assemble(mech, [0.5, 0.5, 0.5, -0.5])
        zero, masks = np.zeros(4), np.array(list(itertools.product([False, True], repeat=2)))
        found = lw.forward_dynamics(mech, q, zero, zero, active=masks)
        for a, mask in zip(found, masks, strict=True):
            alone = mech.spanning_tree.with_loops(*(x for x, on in zip(mech.loops, mask, strict=True) if on))
            close(a, lw.forward_dynamics(alone, q, zero, zero, method="svd"))
    assert constraints.redundancy(mech).is_rounded and np.abs(found[-1]).max() > 1.0


# -- impacts ------------------------------------------------------------------------------------------------


def test_impacts_obey_the_laws():
    mech, rng = lw.mechanisms.quadruped(), np.random.default_rng(5)
    masks = rng.random((20, 4)) < 0.6
    q, v = standing(mech, QUADRUPED_FEET, masks, rng)
    after, impulses = lw.contact.impact(mech, q, v, masks), lw.contact.impact_impulses(mech, q, v, masks)
    lost = lw.kinetic_energy(mech, q, v) - lw.kinetic_energy(mech, q, after)
    np.testing.assert_allclose(lost, lw.kinetic_energy(mech, q, v - after), rtol=1e-9, atol=1e-12)  # so it never grows
    assert (lost[masks.any(axis=-1)] > 0.0).all()
    slipping = np.einsum("...ij,...j->...i", constraints.constraint_jacobian(mech, q), after)
    np.testing.assert_allclose(slipping[np.repeat(masks, 3, axis=-1)], 0.0, atol=1e-11)
    np.testing.assert_allclose(lw.contact.impact(mech, q, after, masks), after, atol=1e-11)
    np.testing.assert_array_equal(after[~masks.any(axis=-1)], v[~masks.any(axis=-1)])
    for k in range(len(q)):  # the ground gives the momentum
        given = np.zeros(6)
        for loop, impulse in zip(mech.loops, impulses[k], strict=True):
            frame = mech.frame(loop.link_b)
            side = oracle.place(mech, q[k])[frame.body].then(frame.rotation, frame.position).then(*loop.pose_b)
            given += oracle.in_world(side, impulse)
        gained = lw.momentum(mech, q[k], after[k]) - lw.momentum(mech, q[k], v[k])
        np.testing.assert_allclose(gained, given, atol=1e-9)


def test_all_loops_close_by_default():
    mech = lw.mechanisms.quadruped()
    q, v = lw.neutral(mech), np.random.default_rng(1).normal(size=mech.nv)
    every = np.ones(4, dtype=bool)
    np.testing.assert_allclose(lw.contact.impact(mech, q, v), lw.contact.impact(mech, q, v, every), atol=1e-12)
    np.testing.assert_allclose(
        lw.contact.impact_impulses(mech, q, v), lw.contact.impact_impulses(mech, q, v, every), atol=1e-11
    )


# -- forces -------------------------------------------------------------------------------------------------


def test_inverse_dynamics_of_a_standing_robot():
    """Forces of the motors alone; where the feet leave a choice, the least."""
    mech, rng = lw.mechanisms.quadruped(), np.random.default_rng(2)
    motors = mech.joint_names[1:]
    masks = np.array([[True] * 4, [True, True, True, False], [True, False, True, True]])
    q, v = standing(mech, QUADRUPED_FEET, masks, rng)
    v = lw.contact.impact(mech, q, v, masks)
    driven = np.concatenate([np.zeros((3, 6)), rng.normal(size=(3, 12))], axis=-1)
    a = lw.forward_dynamics(mech, q, v, driven, active=masks)
    tau = lw.inverse_dynamics(mech, q, v, a, actuated=motors, active=masks)
    assert not tau[:, :6].any()
    close(lw.forward_dynamics(mech, q, v, tau, active=masks), a)
    least = lw.inverse_dynamics(mech, q, v, a, actuated=motors, active=masks, weights=np.ones(12))
    close(tau, least)
    kernel = lw.compile(lw.inverse_dynamics, mech, actuated=motors)
    close(kernel(q[0], v[0], a[0]), tau[0])


def test_couplings_act_in_the_joints():
    """Two wheels geared to each other: along its axis each joint has its motor's force and the gear's."""
    builder = lw.Builder()
    for name, x in (("small", 0.0), ("large", 0.3)):
        builder.link(name, 1.0, (0.02, 0.0, 0.0), (0.01, 0.01, 0.02))
        builder.joint(name, lw.Revolute((0, 0, 1)), "ground", name, (None, (x, 0, 0)))
    mech = (
        builder.coupling("gears", {"small": 1.0, "large": 2.0}).build("gears").parameters.with_armature({"small": 0.1})
    )
    q, v, tau = np.array([1.0, -0.5]), np.array([2.0, -1.0]), np.array([0.3, 0.2])
    a = lw.forward_dynamics(mech, q, v, tau)
    (multiplier,) = constraints.multipliers(mech, q, v, tau)
    along = lw.joint_wrenches(mech, q, v, tau=tau)[:, 2]
    np.testing.assert_allclose(along, tau - multiplier * np.array([1.0, 2.0]) - np.array([0.1, 0.0]) * a, rtol=1e-12)
    assert abs(multiplier) > 1e-3 and not constraints.loop_reactions(mech, q, v, tau).any()


@pytest.mark.parametrize("name", ["four_bar", "delta_robot", "loader", "chain"])
def test_wrenches_of_all_joints(name):
    mech = lw.mechanisms.chain(3) if name == "chain" else getattr(lw.mechanisms, name)()
    rng = np.random.default_rng(7)
    q = constraints.assemble(mech, mech.initial) if mech.loops else lw.random_state(mech, rng)[0]
    v = constraints.null_space(mech, q) @ rng.normal(size=constraints.degrees_of_freedom(mech, q))
    tau, wrenches = rng.normal(size=mech.nv), rng.normal(size=(mech.n_links, 6))
    a = lw.forward_dynamics(mech, q, v, tau, wrenches=wrenches)
    joints = lw.joint_wrenches(mech, q, v, tau=tau, wrenches=wrenches)
    balance(mech, q, v, tau, a, joints, constraints.loop_reactions(mech, q, v, tau, wrenches=wrenches), wrenches)


def test_kernels_by_their_names():
    mech = lw.mechanisms.four_bar()
    q, zero, on = constraints.assemble(mech, [0.3, -0.2, 0.4]), np.zeros(3), np.ones(1)
    tau = np.array([1.0, -2.0, 0.5])
    for function in (constraints.multipliers, constraints.loop_reactions, lw.joint_wrenches):
        expected = function(mech, q, zero, tau=tau)
        np.testing.assert_allclose(lw.compile(function, mech)(q, zero, tau), expected, atol=1e-12)
        masked = lw.compile(f"closed_{function.__name__}", mech, ports="active", target="numpy")(q, zero, tau, on)
        np.testing.assert_allclose(masked, expected, atol=1e-12)
    kernel = lw.compile("closed_impact", mech, ports="active")
    np.testing.assert_allclose(kernel(q, tau, on), lw.contact.impact(mech, q, tau), atol=1e-12)
    np.testing.assert_array_equal(kernel(q, tau, 0.0 * on), tau)


# -- bad input ----------------------------------------------------------------------------------------------

BAD = {
    "numbers": ([1, 0, 1, 1], r"active has dtype int64, but booleans are needed, one for each of the 4 loops"),
    "names": (["front_left_foot"], "active has dtype <U15, but booleans"),
    "too few": ([True, False], r"active has shape \(2,\), expected \(..., 4\): one for each of the 4 loops"),
    "one": (True, r"active has shape \(\), expected \(..., 4\)"),
    "other batch": (np.ones((3, 4), dtype=bool), r"batch shapes do not broadcast: .*active \(3,\)"),
    "ragged": ([[True], [True, False]], "active is no array of booleans"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_masks_are_named(case):
    mech = lw.mechanisms.quadruped()
    q, v = np.tile(lw.neutral(mech), (2, 1)), np.zeros((2, mech.nv))
    active, message = BAD[case]
    for function in (lw.forward_dynamics, constraints.multipliers, constraints.loop_reactions, lw.joint_wrenches):
        with pytest.raises(lw.MechanismError, match=message):
            function(mech, q, v, v, active=active)
    for function in (lw.contact.impact, lw.contact.impact_impulses):
        with pytest.raises(lw.MechanismError, match=message):
            function(mech, q, v, active)
    for function in (constraints.null_space, constraints.degrees_of_freedom):
        with pytest.raises(lw.MechanismError, match=message):
            function(mech, q, active=active)


def test_only_loops_that_hold_must_be_closed():
    mech = lw.mechanisms.quadruped()
    q, zero = lw.neutral(mech), np.zeros(mech.nv)
    q[mech.q_index("front_left_knee_joint")] += 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.forward_dynamics(mech, q, zero, zero, active=[False, True, True, True])
    with pytest.warns(lw.MechanismWarning, match="loop 'front_left_foot' of mechanism 'quadruped' is open"):
        lw.forward_dynamics(mech, q, zero, zero, active=[True, True, True, False])


def test_states_that_are_unknown_stay_so():
    mech = lw.mechanisms.quadruped()
    q, v = np.tile(lw.neutral(mech), (2, 1)), np.zeros((2, mech.nv))
    v[1, 3] = np.nan
    active = np.ones(4, dtype=bool)
    found = lw.forward_dynamics(mech, q, v, v[0], active=active)
    assert np.isfinite(found[0]).all() and np.isnan(found[1]).any()


def test_variants_have_masks_too():
    """Numbers that variants of a mechanism differ in are inputs of the kernel, beside the mask."""
    mech = lw.mechanisms.quadruped()
    q, v, tau = lw.neutral(mech), np.zeros(mech.nv), np.ones(mech.nv)
    mask = np.array([True, False, True, True])
    for mass in (1.0, 2.0, 3.0):
        heavy = mech.with_payload("trunk", mass, (0.1, 0.0, 0.1))
        found = lw.forward_dynamics(heavy, q, v, tau, active=mask)
        close(found, lw.forward_dynamics(heavy, q, v, tau, active=mask, method="svd"))
