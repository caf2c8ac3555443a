"""Motions under constraints on velocities alone, against equations that textbooks derive by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw
from tests.oracle import rolling

MASS, RADIUS = 1.0, 0.5
DISK = (MASS, RADIUS, MASS * RADIUS**2 / 4.0, MASS * RADIUS**2 / 2.0)


@pytest.fixture(scope="module")
def disk():
    return lw.mechanisms.rolling_disk(MASS, RADIUS)


def disk_state(mech, lean, w, yaw=0.0):
    """A disk that touches the origin, with angular velocity w along the direction of rolling, its axis and upwards."""
    turn = Rotation.from_euler("ZX", [yaw, lean])
    centre = turn.apply([0.0, 0.0, RADIUS])
    x, y, z, real = turn.as_quat()
    q = np.array([real, x, y, z, *(centre - [0.0, 0.0, RADIUS])])
    v = np.array([*w, *np.cross(w, [0.0, 0.0, RADIUS])])
    assert np.abs(lw.constraints.position_error(mech, q)).max() < 1e-15
    assert np.abs(lw.constraints.constraint_jacobian(mech, q) @ v).max() < 1e-14
    return q, v


def seen(q, v):
    """(n, 7): lean, yaw, w1, w2, w3 and where it touches, of states of a disk."""
    turn = Rotation.from_quat(q[:, [1, 2, 3, 0]])
    axis = turn.apply([0.0, 1.0, 0.0])
    lean = np.arcsin(axis[:, 2])
    forward = np.cross(axis, [0.0, 0.0, 1.0]) / np.cos(lean)[:, None]
    up = np.cross(forward, axis)
    spin = turn.apply(v[:, :3])
    touches = q[:, 4:] + [0.0, 0.0, RADIUS] - RADIUS * up
    assert np.abs(touches[:, 2]).max() < 1e-12
    yaw = np.unwrap(np.arctan2(forward[:, 1], forward[:, 0]))
    along = [np.einsum("ij,ij->i", spin, one) for one in (forward, axis, up)]
    return np.stack([lean, yaw, *along, *touches[:, :2].T], axis=-1)


def test_disk_for_20_seconds(disk):
    """Energy and constraints drift by less than 1e-8, and the motion is that of Routh's equations."""
    w = (0.2, 4.0, 0.5)
    q, v = disk_state(disk, 0.3, w, yaw=0.2)
    times = np.linspace(0.0, 20.0, 41)
    motion = lw.simulate(disk, q, v, 20.0, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11), t_eval=times)
    assert np.abs(motion.energy / motion.energy[0] - 1.0).max() < 1e-9
    assert motion.constraint_error.max() < 1e-12
    slip = np.einsum("tij,tj->ti", lw.constraints.constraint_jacobian(disk, motion.q), motion.v)
    assert np.abs(slip).max() < 1e-12
    expected = rolling.integrated(rolling.disk_rates(*DISK), [0.3, 0.2, *w, 0.0, 0.0], times)
    assert np.ptp(expected[:, 0]) > 0.2
    assert np.abs(seen(motion.q, motion.v) - expected).max() < 1e-7


def test_disk_in_steady_motion(disk):
    """Leaning by a constant angle it rolls in a circle."""
    lean, w3 = -0.4, 1.5
    w2 = rolling.steady_spin(*DISK, lean, w3)
    motion = lw.simulate(
        disk, *disk_state(disk, lean, (0.0, w2, w3)), 2.0, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11)
    )
    found = seen(motion.q, motion.v)
    assert np.abs(found[:, 0] - lean).max() < 1e-9
    turning = w3 / np.cos(lean)
    radius = RADIUS * (w2 / turning - np.sin(lean))
    assert np.abs(np.hypot(found[:, 5], found[:, 6] - radius) - abs(radius)).max() < 1e-9


def test_rollouts_roll_too(disk):
    q, v = disk_state(disk, 0.3, (0.1, 5.0, 0.4))
    exact = lw.simulate(disk, q, v, 0.4, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11))
    many = lw.rollout(disk, np.array([q, q]), np.array([v, v]), np.zeros(6), 1e-3, 400)
    assert np.abs(many[0][:, -1] - exact.q[-1]).max() < 1e-9
    assert np.abs(many[1][:, -1] - exact.v[-1]).max() < 1e-8


@pytest.mark.slow
def test_other_methods_roll_too(disk):
    q, v = disk_state(disk, 0.3, (0.1, 5.0, 0.4))
    exact = lw.simulate(disk, q, v, 0.4, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11))
    fixed = lw.simulate(disk, q, v, 0.4, method="rk4", step=1e-3)
    assert np.abs(fixed.v[-1] - exact.v[-1]).max() < 1e-8
    implicit = lw.simulate(disk, q, v, 0.4, method="radau", settings=lw.motion.Settings(rtol=1e-9, atol=1e-9))
    assert np.abs(implicit.v[-1] - exact.v[-1]).max() < 1e-6
    pulled = lw.simulate(
        disk, q, v, 0.4, settings=lw.motion.Settings(stabilization="baumgarte", rtol=1e-10, atol=1e-10)
    )
    assert np.abs(pulled.v[-1] - exact.v[-1]).max() < 1e-6


def test_sleigh():
    """Chaplygin's: it ends up going straight, the mass centre ahead."""
    mass, inertia, ahead = 2.0, 0.3, 0.4
    mech = (
        lw.Builder()
        .link("sleigh", mass, (ahead, 0.0, 0.0), (0.1, 0.25, inertia))
        .joint("base", lw.Planar(), "ground", "sleigh")
        .knife_edge("blade", "sleigh")
        .build("sleigh")
    )
    times = np.linspace(0.0, 8.0, 17)
    motion = lw.simulate(
        mech, np.zeros(3), [0.1, 0.0, 3.0], 8.0, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11), t_eval=times
    )
    expected = rolling.integrated(rolling.sleigh_rates(mass, inertia, ahead), [0.0, 0.0, 0.0, 0.1, 3.0], times)
    assert np.abs(motion.q - expected[:, :3]).max() < 1e-8
    assert abs(motion.v[-1, 2]) < 0.05 and np.ptp(motion.energy) < 1e-9


def test_snakeboard_is_driven_by_its_rotor():
    """Under torques on rotor and axles, against Lagrange's equations with multipliers."""
    mech = lw.mechanisms.snakeboard()

    def forces(t):
        turning = 0.02 * np.sin(6.0 * t)
        return np.array([0.0, 0.0, 0.0, 2.0 * np.cos(6.0 * t), turning, -turning])

    board = 0.016 + 2 * 0.1 * 0.2**2
    rates = rolling.snakeboard_rates(6.0, board, 0.072, 0.0013, 0.2, forces)
    q = np.array([0.0, 0.0, 0.3, 0.0, 0.5, -0.4])
    _, v = lw.constraints.project(mech, q, [0.2, 0.1, 0.0, 1.0, 0.0, 0.0])
    times = np.linspace(0.0, 2.0, 11)
    motion = lw.simulate(
        mech, q, v, 2.0, lambda t, q, v: forces(t), settings=lw.motion.Settings(rtol=1e-11, atol=1e-11), t_eval=times
    )
    expected = rolling.integrated(rates, [*q, *v], times)
    assert np.abs(np.hstack([motion.q, motion.v]) - expected).max() < 1e-8


def test_cart_goes_as_its_wheels_turn():
    """Of four constraints three are independent: the wheels are on one axle."""
    mech = lw.mechanisms.differential_drive()
    assert lw.constraints.degrees_of_freedom(mech, np.zeros(5)) == 2
    left, right, angle = 3.0, 5.0, 0.7
    speed, turning = 0.1 * (left + right) / 2.0, 0.1 * (right - left) / 0.5
    basis = lw.constraints.null_space(mech, [0.0, 0.0, angle, 0.1, 0.2], independent=("left", "right"))
    expected = [speed * np.cos(angle), speed * np.sin(angle), turning, left, right]
    assert basis @ [left, right] == pytest.approx(expected)
    motion = lw.simulate(mech, None, {"left": left, "right": right}, 1.0, [0.0, 0.0, 0.0, 0.4, -0.1])
    work = (motion.q[:, 3:] - motion.q[0, 3:]) @ [0.4, -0.1]
    assert np.abs(motion.energy - motion.energy[0] - work).max() < 1e-8


BALL = (0.4 * 2.0 * 0.1**2,) * 3


def test_ball_rolls_down_a_slope():
    """With 5/7 g sin(slope)."""
    slope = Rotation.from_euler("y", 0.3)
    down = (
        lw.Builder()
        .link("ball", 2.0, inertia=BALL)
        .joint("base", lw.Floating(), "ground", "ball", slope.apply([0.0, 0.0, 0.1]))
        .ball("on_slope", "ball", 0.1, plane=(slope.as_matrix(), (0.0, 0.0, 0.0)))
        .build("slope")
    )
    a = lw.forward_dynamics(down, lw.neutral(down), np.zeros(6), np.zeros(6))
    assert a[3:] == pytest.approx(5.0 / 7.0 * 9.81 * np.sin(0.3) * slope.apply([1.0, 0.0, 0.0]))


@pytest.mark.slow
def test_ball_rolls_round_a_turntable():
    """On a plane that turns, circles with 2/7 of its angular velocity."""
    table = (
        lw.Builder()
        .link("table", 1e9, inertia=(1e9, 1e9, 1e9))  # nothing that a ball does slows it down
        .joint("axle", lw.Revolute((0.0, 0.0, 1.0)), "ground", "table")
        .link("ball", 2.0, inertia=BALL)
        .joint("base", lw.Floating(), "ground", "ball", (0.3, 0.0, 0.1))
        .ball("on_table", "ball", 0.1, on="table")
        .build("turntable")
    )
    turning = 2.0 * np.pi
    spin = [-(0.1 - 0.3 * turning) / 0.1, 0.2 / 0.1, 0.0]  # the point that touches goes with the table
    motion = lw.simulate(
        table,
        None,
        [turning, *spin, 0.2, 0.1, 0.0],
        3.5,
        settings=lw.motion.Settings(rtol=1e-10, atol=1e-10),
        t_eval=0.5,
    )
    speed = np.linalg.norm(lw.frame_velocity(table, motion.q, motion.v, "ball", frame="world_aligned")[:, 3:], axis=-1)
    assert speed == pytest.approx(speed[0])
    assert motion.q[-1, 5:] == pytest.approx(motion.q[0, 5:], abs=1e-7)  # once round, in 7/2 turns of the table
    assert np.ptp(motion.q[:, 5]) > 0.05
