"""Wrenches in the joints of simulated motions: with them the centre of mass of every link moves as Newton says, by
differences of its positions, which share nothing with the computation of forces."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

STEP = 1e-3
STRUT = (("crank", (0.1, 0.05, 0.0)), ("slider", (0.0, 0.1, 0.0)))
STIFFNESS, FREE, DAMPING = 40.0, 0.2, 3.0


def in_world(mech, q, link, point):
    """(m, 3)."""
    return np.array([lw.frame_pose(mech, one, link) @ [*point, 1.0] for one in q])[:, :3]


def accelerations(mech, motion, link) -> np.ndarray:
    """(m - 4, 3): of a link's centre of mass, by differences of fourth order."""
    centre = in_world(mech, motion.q, link, mech.bodies[mech.link_names.index(link)].com)
    weights = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / (12.0 * STEP**2)
    return sum(w * centre[k : len(centre) - 4 + k] for k, w in enumerate(weights))


def forces_on(mech, motion, link) -> np.ndarray:
    """(m, 3): those of joints and loops, in the world, and weight."""
    body = mech.link_names.index(link)
    total = np.tile(mech.bodies[body].mass * np.asarray(mech.gravity), (len(motion.t), 1))
    for k, other in enumerate(mech.bodies):
        sign = (k == body) - (other.parent == body)
        if sign:
            rotation = np.array([lw.frame_pose(mech, one, mech.link_names[k])[:3, :3] for one in motion.q])
            total += sign * np.einsum("mij,mj->mi", rotation, motion.reactions[other.joint][:, 3:])
    for loop in mech.loops:
        sign = (loop.link_b == link) - (loop.link_a == link)
        if sign:
            rotation = np.array([lw.frame_pose(mech, one, loop.link_b)[:3, :3] for one in motion.q])
            total += sign * np.einsum("mij,mj->mi", rotation @ loop.pose_b[0], motion.reactions[loop.name][:, 3:])
    return total


def check(mech, motion, others) -> None:
    """``others`` (m, 3) by link: forces that are neither weight nor in joints."""
    for link in mech.link_names:
        body = mech.bodies[mech.link_names.index(link)]
        total = forces_on(mech, motion, link) + others.get(link, 0.0)
        expected = body.mass * accelerations(mech, motion, link)
        np.testing.assert_allclose(total[2:-2], expected, atol=2e-5 * max(1.0, np.abs(expected).max()))


def strut_forces(mech, motion) -> dict[str, np.ndarray]:
    """By hand: along the line between the two points."""
    ends = [in_world(mech, motion.q, *end) for end in STRUT]
    way = ends[1] - ends[0]
    length = np.linalg.norm(way, axis=-1)
    rate = np.zeros_like(length)
    rate[2:-2] = (length[:-4] - 8.0 * length[1:-3] + 8.0 * length[3:-1] - length[4:]) / (12.0 * STEP)
    pull = (STIFFNESS * (length - FREE) + DAMPING * rate)[:, None] * way / length[:, None]
    return {STRUT[0][0]: pull, STRUT[1][0]: -pull}


def test_a_closed_motion_with_a_strut_and_a_motor():
    mech = lw.mechanisms.slider_crank()
    (a, point_a), (b, point_b) = STRUT
    strut = lw.forces.Passive.spring_between(a, point_a, b, point_b, STIFFNESS, FREE, DAMPING)
    start = {"crank_joint": 0.3}, {"crank_joint": 4.0}
    motion = lw.simulate(mech, *start, 0.25, method="rk4", step=STEP, passive=strut, control=[1.5, 0.0, 0.0])
    pulls = strut_forces(mech, motion)
    check(mech, motion, pulls)
    assert max(np.abs(pull).max() for pull in pulls.values()) > 5.0
    assert motion.joint_wrenches.shape == (len(motion.t), 3, 6)
    # Along the axis of the crank's joint it is the motor's moment.
    np.testing.assert_allclose(motion.reactions["crank_joint"][:, 2], 1.5, atol=1e-9)
    bare = lw.simulate(mech, *start, 0.1, method="rk4", step=STEP)
    expected = lw.joint_wrenches(mech, bare.q, bare.v, tau=bare.tau)
    np.testing.assert_allclose(bare.joint_wrenches, expected, atol=1e-9)


def test_an_open_motion_under_wrenches():
    mech = lw.mechanisms.planar_arm(3)
    pushes = np.random.default_rng(0).normal(size=(3, 6))
    motion = lw.simulate(mech, [0.3, -0.2, 0.5], [1.0, 2.0, -1.0], 0.3, method="rk4", step=STEP, wrenches=pushes)
    rotations = {link: np.array([lw.frame_pose(mech, q, link)[:3, :3] for q in motion.q]) for link in mech.link_names}
    check(mech, motion, {link: rotations[link] @ pushes[k, 3:] for k, link in enumerate(mech.link_names)})
    assert set(motion.reactions) == set(mech.joint_names)


def test_batches_and_stabilization():
    mech = lw.mechanisms.four_bar()
    q = lw.constraints.assemble(mech, lw.neutral(mech))
    v = lw.constraints.null_space(mech, q, independent="crank_joint")[:, 0]
    both = lw.simulate(mech, [q, q], [v, 2.0 * v], 0.02, method="rk4", step=STEP)
    assert both.joint_wrenches.shape == (len(both.t), 2, 3, 6)
    np.testing.assert_allclose(both.member(1).joint_wrenches, both.joint_wrenches[:, 1], atol=1e-9)
    pulled = lw.simulate(
        mech, q, v, 0.02, method="rk4", step=STEP, settings=lw.motion.Settings(stabilization="baumgarte")
    )
    np.testing.assert_allclose(pulled.joint_wrenches, both.member(0).joint_wrenches, rtol=1e-6, atol=1e-6)
    with pytest.raises(KeyError):
        both.reactions["bearing"]


def test_a_driven_motion():
    """A slide that a drive moves: its joint carries the weight."""
    builder = lw.Builder().link("cart", 2.0, (0, 0, 0), (0.1, 0.1, 0.1))
    mech = builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "cart").build("driven", (0.0, -9.81, 0.0))
    mech = mech.with_loops(lw.constraints.Coupling("motor", {"slide": 1.0}, 0.0, lambda t: 0.1 * np.sin(2.0 * t)))
    motion = lw.simulate(mech, None, None, 0.5, method="rk4", step=0.01)
    np.testing.assert_allclose(motion.joint_wrenches[:, 0, 4], 2.0 * 9.81, rtol=1e-9)
    assert set(motion.reactions) == {"slide"} and set(motion.drive_forces) == {"motor"}
