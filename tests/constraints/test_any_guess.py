"""Mechanisms of any size are assembled from any guess."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise import constraints
from linkwise.constraints.assembly import AssemblyError
from linkwise.constraints.sizes import sizes
from linkwise.mechanics.joints import LENGTH
from linkwise.mechanism import Mechanism
from tests.constraints.built_in import FREEDOMS, assembled, built, every_mechanism

GUESSES = 100


def scaled(mech: Mechanism, factor: float) -> Mechanism:
    """All lengths times the factor, gravity too: angles then move as before."""
    bodies = [
        dataclasses.replace(
            body, position=factor * body.position, com=factor * body.com, inertia=factor**2 * body.inertia
        )
        for body in mech.bodies
    ]
    frames = {name: dataclasses.replace(frame, position=factor * frame.position) for name, frame in mech.frames.items()}
    loops = [
        dataclasses.replace(
            loop,
            pose_a=(loop.pose_a[0], factor * loop.pose_a[1]),
            pose_b=(loop.pose_b[0], factor * loop.pose_b[1]),
        )
        for loop in mech.loops
    ]
    return Mechanism(mech.name, tuple(bodies), frames, factor * mech.gravity, tuple(loops))


def units(mech: Mechanism, quantity: str, factor: float) -> np.ndarray:
    """(nq,) or (nv,): the factor for lengths, 1 for the others."""
    measures = [one.of for body in mech.bodies for one in body.kind.measures(quantity)]
    return np.where([of == LENGTH for of in measures], factor, 1.0)


def guesses(mech: Mechanism, size: float, count: int) -> np.ndarray:
    """(count, nq): uniform angles, random rotations, positions over the size of the mechanism."""
    rng = np.random.default_rng(11)
    q, _ = lw.random_state(mech, rng, (count,))
    positions = lw.neutral(mech) + size * rng.uniform(-1.0, 1.0, q.shape)
    return np.where(units(mech, "q", 0.0) == 0.0, positions, q)


def failures(mech: Mechanism, tried: np.ndarray) -> list[str]:
    found = []
    for guess in tried:
        try:
            q = constraints.assemble(mech, guess)
        except AssemblyError as error:
            found.append(str(error))
        else:
            size = sizes(mech).loops.max()
            assert np.abs(constraints.position_error(mech, q)).max() < 1e-11 * max(1.0, size)
    return found


@every_mechanism
def test_any_guess_leads_to_an_assembled_configuration(name):
    mech = built(name)
    failed = failures(mech, guesses(mech, sizes(mech).loops.max(), GUESSES))
    assert len(failed) <= 0.01 * GUESSES, failed


@pytest.mark.slow_cases("delta_robot", "stewart_platform", "loader", "1000.0-")
@every_mechanism
@pytest.mark.parametrize("factor", [1e-3, 1e3, 1e6])
def test_size_does_not_matter(name, factor):
    """Assembly, degrees of freedom, accelerations, motion and linear models of the same mechanism in other units."""
    mech, other = built(name), scaled(built(name), factor)
    of_q, of_v = units(mech, "q", factor), units(mech, "v", factor)
    assert not failures(other, of_q * guesses(mech, sizes(mech).loops.max(), 10))
    assert other.nv - constraints.redundancy(other).rank == FREEDOMS[name]
    q = assembled(name)
    there = constraints.assemble(other, of_q * q)
    np.testing.assert_allclose(there / of_q, q, atol=1e-11)
    assert constraints.degrees_of_freedom(other, there) == FREEDOMS[name]
    v = constraints.null_space(mech, q) @ np.linspace(0.5, 1.0, FREEDOMS[name])
    _, speed = constraints.project(other, there, of_v * v)
    np.testing.assert_allclose(speed / of_v, v, atol=1e-9)
    tau = np.random.default_rng(1).normal(size=mech.nv)
    a = lw.forward_dynamics(mech, q, v, tau)
    found = lw.forward_dynamics(other, there, speed, factor**2 / of_v * tau)
    np.testing.assert_allclose(found / of_v, a, rtol=1e-8, atol=1e-8 * np.abs(a).max())
    motion, same = (lw.simulate(*start, 0.1, t_eval=0.1) for start in ((mech, q, v), (other, there, speed)))
    np.testing.assert_allclose(same.q / of_q, motion.q, atol=1e-6)
    assert lw.linearize(other, there, speed).A.shape == lw.linearize(mech, q, v).A.shape


@pytest.mark.parametrize("degrees", [0, 90, 100, 135, 179, 180])
@pytest.mark.parametrize("kind", [lw.Fixed(), lw.Prismatic((0.0, 0.0, 1.0)), lw.Revolute(), lw.Helical(pitch=0.3)])
def test_a_free_body_finds_its_place_from_any_side(kind, degrees):
    """Closures are sines of angles, zero at half a turn as well."""
    builder = lw.Builder()
    builder.link("body", 1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    builder.joint("free", lw.Floating(), "ground", "body")
    pose_a = Rotation.from_rotvec([0.3, 0.2, -0.5]).as_matrix(), (0.3, 0.2, 0.1)
    builder.loop("place", kind, "ground", pose_a, "body", (None, (0.1, 0.0, 0.2)))
    mech = builder.build("free_body")
    home = Rotation.from_matrix(pose_a[0])
    axes = np.random.default_rng(2).normal(size=(10, 3))
    for axis in axes / np.linalg.norm(axes, axis=1)[:, None]:
        x, y, z, w = (home * Rotation.from_rotvec(np.radians(degrees) * axis)).as_quat()
        q = constraints.assemble(mech, [w, x, y, z, 0.5, -0.3, 0.2])
        if isinstance(kind, lw.Fixed):
            found = lw.frame_pose(mech, q, "body") @ [0.1, 0.0, 0.2, 1.0]
            np.testing.assert_allclose(found[:3], pose_a[1], atol=1e-11)
            np.testing.assert_allclose(lw.frame_pose(mech, q, "body")[:3, :3], pose_a[0], atol=1e-11)
        else:
            aligned = (pose_a[0].T @ lw.frame_pose(mech, q, "body")[:3, :3])[2, 2]
            assert aligned == pytest.approx(1.0)


def test_far_from_the_origin_loops_close_to_what_positions_have():
    """A four-bar a thousand kilometres from the origin of its coordinates."""
    builder, linkage = lw.Builder(), lw.mechanisms.four_bar()
    away = np.array([1e6, 2e5, 0.0])
    for body in linkage.bodies:
        parent = linkage.bodies[body.parent].link if body.parent >= 0 else "ground"
        position = body.position + (away if body.parent < 0 else 0.0)
        builder.link(body.link, body.mass, body.com, body.inertia)
        builder.joint(body.joint, body.kind, parent, body.link, (body.rotation, position))
    (loop,) = linkage.loops
    builder.loop(loop.name, loop.kind, loop.link_a, loop.pose_a, loop.link_b, loop.pose_b)
    mech = builder.build("far_away")
    q = constraints.assemble(mech, [0.4, -0.3, 0.2])
    assert np.abs(constraints.position_error(mech, q)).max() < 1e-8
    assert constraints.degrees_of_freedom(mech, q) == 1 and not constraints.redundancy(mech).is_rounded
