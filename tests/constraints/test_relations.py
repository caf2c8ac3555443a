"""Relations of positions as constraints: a cam whose follower's motion is known by formulas."""

from __future__ import annotations

import numpy as np
import pytest
from linkwise.extend.scalar import cos

import linkwise as lw
from linkwise import constraints, linkages

HEIGHT, DISK, MASS, GRAVITY = 0.02, 1.1e-3, 0.5, 9.81


def lift(q):
    return q["lift"] - HEIGHT * (1.0 - cos(2.0 * q["cam"]))


def built(relation=lift) -> lw.Builder:
    builder = lw.Builder().link("disk", 1.0, (0, 0, 0), (1e-3, 1e-3, DISK)).link("rod", MASS, (0, 0.1, 0), (1e-4,) * 3)
    builder.joint("cam", lw.Revolute((0, 0, 1)), "ground", "disk")
    builder.joint("lift", lw.Prismatic((0, 1, 0)), "ground", "rod", (0, 0.05, 0))
    return builder.relation("profile", ("cam", "lift"), relation)


@pytest.fixture(scope="module")
def cam() -> lw.Mechanism:
    return built().build("cam", gravity=(0, -GRAVITY, 0))


def acceleration(x: float, w: float, torque: float = 0.0) -> float:
    """Of the cam: Lagrange's equation with y = h (1 - cos 2x)."""
    slope, curvature = 2 * HEIGHT * np.sin(2 * x), 4 * HEIGHT * np.cos(2 * x)
    return (torque - MASS * slope * (curvature * w**2 + GRAVITY)) / (DISK + MASS * slope**2)


def test_positions_ranges_and_dead_centres(cam):
    assert cam.constraints.holonomic_rows.tolist() == [True] and not cam.constraints.is_nonholonomic
    q = constraints.assemble(cam, {"cam": 0.4}, hold="cam")
    np.testing.assert_allclose(q, [0.4, HEIGHT * (1 - np.cos(0.8))], atol=1e-12)
    reach = linkages.range_of_motion(cam, "lift", q)
    assert (reach.lower, reach.upper) == pytest.approx((0.0, 2 * HEIGHT), abs=1e-12)
    assert linkages.range_of_motion(cam, "cam", q).ends[1].cause == "full rotation"
    dead = linkages.singular_positions(cam, "lift", q)
    np.testing.assert_allclose([one.q[0] for one in dead], np.arange(1, 5) * np.pi / 2, atol=1e-8)
    advantage = linkages.mechanical_advantage(cam, q, "cam", "lift")
    assert advantage == pytest.approx(1.0 / (2 * HEIGHT * np.sin(0.8)), rel=1e-10)


def test_dynamics_and_derivatives(cam):
    x, w, torque = 0.4, 3.0, 0.07
    q = constraints.assemble(cam, {"cam": x}, hold="cam")
    slope, curvature = 2 * HEIGHT * np.sin(2 * x), 4 * HEIGHT * np.cos(2 * x)
    v, a = np.array([w, slope * w]), acceleration(x, w, torque)
    both = np.array([a, slope * a + curvature * w**2])
    np.testing.assert_allclose(constraints.constraint_bias(cam, q, v), [-curvature * w**2], rtol=1e-12)
    for method in ("elimination", "svd", "lagrange"):
        np.testing.assert_allclose(lw.forward_dynamics(cam, q, v, [torque, 0.0], method=method), both, rtol=1e-10)
    np.testing.assert_allclose(lw.inverse_dynamics(cam, q, v, both, actuated="cam"), [torque, 0.0], atol=1e-11)
    np.testing.assert_allclose(
        constraints.multipliers(cam, q, v, [torque, 0.0]), [-MASS * (both[1] + GRAVITY)], rtol=1e-10
    )
    step = 1e-5
    expected = [
        (acceleration(x + step, w) - acceleration(x - step, w)) / (2 * step),
        (acceleration(x, w + step) - acceleration(x, w - step)) / (2 * step),
    ]
    model = lw.linearize(cam, q, v, independent="cam")
    np.testing.assert_allclose(model.A[1], expected, rtol=1e-7)


def test_motions_stay_on_the_cam(cam):
    motion = lw.simulate(cam, {"cam": 0.4}, {"cam": 3.0}, 0.5)
    assert np.ptp(motion.energy) < 1e-8
    np.testing.assert_allclose(motion.q[:, 1], HEIGHT * (1 - np.cos(2 * motion.q[:, 0])), atol=1e-11)
    q, _ = lw.rollout(cam, {"cam": 0.4}, {"cam": 3.0}, None, 0.005, 100)
    np.testing.assert_allclose(q[-1], motion.q[-1], atol=1e-5)


def test_drives_and_locked_joints(cam):
    """A relation may follow time, and a joint of it may be locked."""
    shifted = cam.spanning_tree.with_loops(
        lw.constraints.Coupling("profile", ("cam", "lift"), 0.0, lw.constraints.Drive(lambda t: 0.1 * t), relation=lift)
    ).constraints.at_time(0.2)
    q = constraints.assemble(shifted, {"cam": 0.4}, hold="cam")
    assert q[1] == pytest.approx(HEIGHT * (1 - np.cos(0.8)) + 0.02)
    held = cam.with_locked(cam=0.4)
    assert constraints.assemble(held, held.initial) == pytest.approx([HEIGHT * (1 - np.cos(0.8))])


def test_what_is_refused(cam, tmp_path):
    broken = built(lambda q: np.interp(q["cam"], [0.0, 1.0], [0.0, 1.0])).build("broken")
    with pytest.raises(lw.MechanismError, match="could not be evaluated .*linkwise.extend.scalar"):
        constraints.position_error(broken, [0.0, 0.0])
    with pytest.raises(lw.MechanismError, match="a relation is a function"):
        lw.constraints.Coupling("profile", ("cam",), relation=3.0)
    with pytest.raises(lw.MechanismError, match="no moving joint 'lifter'"):
        built().relation("other", ("cam", "lifter"), lift).build("x")
    with pytest.raises(lw.MechanismError, match="could not be evaluated .*linkwise.extend.scalar"):
        broken.save(tmp_path / "cam.urdf")
    with pytest.raises(lw.MechanismError, match="MJCF has no equality for the relation 'profile'"):
        cam.save(tmp_path / "cam.xml")
