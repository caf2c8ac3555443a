"""Payload and friction of constrained mechanisms from noisy torques of their motors."""

import numpy as np
import pytest

import linkwise as lw

DRIVES = {
    "delta_robot": ("arm1_joint", "arm2_joint", "arm3_joint"),
    "loader": ("lift_piston_joint", "tilt_piston_joint"),
}
AMPLITUDES = {"delta_robot": 0.5, "loader": 0.15}
CARRIER = {"delta_robot": "platform", "loader": "bucket"}
VISCOUS, DRY = np.array([0.8, 0.5, 0.6]), np.array([0.3, 0.4, 0.2])


def excited(mech: lw.Mechanism, drives: tuple[str, ...], size: float, count: int, rng: np.random.Generator):
    """q, v, a of all joints along slow and fast sines of the driven ones."""
    t = np.linspace(0.0, 10.0, count)
    values = {name: np.zeros((3, count)) for name in drives}
    for motion in values.values():
        for k in range(1, 5):
            rate, phase = 2 * np.pi * k * 0.13 * rng.uniform(0.8, 1.2), rng.uniform(0, 2 * np.pi)
            share = size / 4
            motion += share * np.array(
                [np.sin(rate * t + phase), rate * np.cos(rate * t + phase), -(rate**2) * np.sin(rate * t + phase)]
            )
    q = lw.linkages.follow_path(mech, None, {name: motion[0] for name, motion in values.items()})
    driven = lw.linkages.driven_motion(
        mech, q, {name: motion[1] for name, motion in values.items()}, {name: x[2] for name, x in values.items()}
    )
    return driven.q, driven.v, driven.a


@pytest.mark.parametrize("name", DRIVES)
def test_payload_and_friction_from_torques_of_motors(name):
    """Weighted least squares; the truth is within its intervals, and torques of other motions are predicted."""
    rng = np.random.default_rng(4)
    empty, drives = getattr(lw.mechanisms, name)(), DRIVES[name]
    mech = empty.with_payload(CARRIER[name], 0.2 * empty.parameters.masses.max(), com=(0.02, 0.03, 0.0))
    viscous, dry = VISCOUS[: len(drives)], DRY[: len(drives)]
    forces = 1.0 if name == "delta_robot" else 300.0  # of friction, in units of these joints
    places = np.concatenate([np.arange(mech.nv)[mech.v_index(joint)] for joint in drives])

    def measured(count):
        q, v, a = excited(mech, drives, AMPLITUDES[name], count, rng)
        moved = v[:, places]
        friction = forces * (viscous * moved + dry * np.sign(moved))
        return q, v, a, lw.inverse_dynamics(mech, q, v, a, actuated=drives)[:, places] + friction

    def columns(q, v, a):
        """(k, p, parameters): of inertias and friction; K* is one at the driven joints."""
        links = lw.estimation.regressor(mech, q, v, a, independent=drives)[..., base.columns]
        moved = v[:, places, None] * np.eye(len(drives))
        return np.concatenate([links, moved, np.sign(moved)], axis=-1)

    base = lw.estimation.base_parameters(mech)
    truth = np.concatenate([base.grouping @ lw.estimation.inertial_parameters(mech), forces * viscous, forces * dry])
    q, v, a, tau = measured(120)
    matrix = columns(q, v, a)
    np.testing.assert_allclose(matrix @ truth, tau, atol=1e-8 * np.abs(tau).max())
    noise = 0.01 * np.sqrt(np.mean(tau**2, axis=0))
    rows = (matrix / noise[:, None]).reshape(-1, len(truth))
    noisy = tau / noise + rng.normal(size=tau.shape)
    size = np.linalg.norm(rows, axis=0)
    found = np.linalg.lstsq(rows / size, noisy.reshape(-1), rcond=None)[0] / size
    covariance = np.linalg.pinv((rows / size).T @ (rows / size), rcond=1e-14) / np.outer(size, size)
    assert np.all(np.abs(found - truth) < 4.0 * np.sqrt(np.diag(covariance)))
    free = len(rows) - len(truth)
    assert abs(np.sum((noisy.reshape(-1) - rows @ found) ** 2) / free - 1.0) < 4.0 * np.sqrt(2.0 / free)
    q, v, a, tau = measured(40)
    assert np.all(np.sqrt(np.mean((columns(q, v, a) @ found - tau) ** 2, axis=0)) < 2.0 * noise)

    # The mass of the payload alone, with all else known.
    q, v, a, tau = measured(40)
    known = np.concatenate([base.grouping @ lw.estimation.inertial_parameters(empty), forces * viscous, forces * dry])
    misses = (tau + noise * rng.normal(size=tau.shape) - columns(q, v, a) @ known) / noise
    first = 10 * mech.link_names.index(CARRIER[name])
    links = lw.estimation.regressor(mech, q, v, a, independent=drives)
    payload = lw.estimation.inertial_parameters(mech) - lw.estimation.inertial_parameters(empty)
    alone = (links[..., first : first + 10] @ payload[first : first + 10] / payload[first] / noise).reshape(-1)
    mass = alone @ misses.reshape(-1) / (alone @ alone)
    assert abs(mass - payload[first]) < 4.0 / np.sqrt(alone @ alone) < 0.1 * payload[first]


def test_base_parameters_depend_on_the_branch():
    """A parallelogram does not turn its coupler; the same bars crossed do."""
    robot = lw.mechanisms.parallel_four_bar_robot()
    parallel = lw.estimation.base_parameters(robot)
    assert len(parallel) == 8
    again = lw.estimation.base_parameters(robot, seed=3)
    np.testing.assert_array_equal(again.columns, parallel.columns)
    np.testing.assert_allclose(again.grouping, parallel.grouping, atol=1e-10)


def test_a_four_bar_in_closed_form():
    """With gravity along its axes two inertias about pivots and the coupler's m, mx, my and Izz matter, less two masses
    at the pins, which count with crank or coupler, and with coupler or rocker."""
    linkage = lw.mechanisms.four_bar().with_gravity((0.0, 0.0, -9.81))
    base = lw.estimation.base_parameters(linkage)
    assert len(base) == 2 + 4 - 2
    crank, coupler, rocker = linkage.link_names
    (pin,) = linkage.loops
    pins = [(crank, linkage.bodies[1].position, coupler, np.zeros(3))]
    pins.append((pin.link_a, np.array(pin.pose_a[1]), pin.link_b, np.array(pin.pose_b[1])))
    for link_a, at_a, link_b, at_b in pins:
        values = [
            base.grouping @ lw.estimation.inertial_parameters(linkage.with_payload(link, 0.7, com=at))
            for link, at in ((link_a, at_a), (link_b, at_b))
        ]
        np.testing.assert_allclose(values[0], values[1], atol=1e-9)
        assert np.abs(values[0] - base.grouping @ lw.estimation.inertial_parameters(linkage)).max() > 1e-2


def test_coordinates_that_do_not_describe_the_motion_are_refused():
    with pytest.raises(lw.MechanismError, match="degrees of freedom"):
        linkage = lw.mechanisms.five_bar()
        q = lw.constraints.assemble(linkage)
        lw.estimation.regressor(linkage, q, np.zeros(4), np.zeros(4), independent=("joint1",))
