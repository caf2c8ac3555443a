"""Passive joint forces: closed forms, derivatives against differences, potentials, mimic joints, files."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError


def oscillator(mass: float = 2.0, **joint) -> lw.Mechanism:
    """A mass on a slide, without gravity."""
    builder = lw.Builder().link("mass", mass, (0, 0, 0), (1, 1, 1))
    return builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "mass", **joint).build("oscillator", (0, 0, 0))


def everything(mech: lw.Mechanism, rng: np.random.Generator) -> lw.forces.Passive:
    """Elements of every kind at every joint that can have them."""
    kinds = {body.joint: body.kind for body in mech.bodies}
    straight = {joint: (-0.5, 0.6) for joint, kind in kinds.items() if kind.nq == kind.nv}
    return (
        lw.forces.Passive.springs(
            {joint: rng.uniform(1, 3, kind.nv) for joint, kind in kinds.items()},
            {joint: kind.random(rng, ()) for joint, kind in kinds.items()},
        )
        + lw.forces.Passive.springs({joint: 0.7 for joint in kinds})
        + lw.forces.Passive.dampers({joint: rng.uniform(0, 1, kind.nv) for joint, kind in kinds.items()})
        + lw.forces.Passive.friction(dict.fromkeys(kinds, 0.5), 0.7)
        + lw.forces.Passive.stops(straight, 10.0, 0.4)
    )


def central(function, h: float = 1e-4) -> np.ndarray:
    return (8.0 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12.0 * h)


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_and_potential_for_all_joints(seed):
    mech = lw.mechanisms.random_tree(8, seed, floating_base=seed == 1)
    rng = np.random.default_rng(seed)
    passive = everything(mech, rng)
    q, v = lw.random_state(mech, rng, (4,))
    d_q, d_v = passive.derivatives(mech, q, v)
    still = passive.forces(mech, q, 0.0 * v)
    assert d_q.shape == d_v.shape == (4, mech.nv, mech.nv)
    for k, e in enumerate(np.eye(mech.nv)):
        by_q = central(lambda s, e=e: passive.forces(mech, lw.integrate(mech, q, e, s), v))
        by_v = central(lambda s, e=e: passive.forces(mech, q, v + s * e))
        slope = central(lambda s, e=e: passive.energy(mech, lw.integrate(mech, q, e, s)))
        np.testing.assert_allclose(d_q[..., k], by_q, atol=1e-8)
        np.testing.assert_allclose(d_v[..., k], by_v, atol=1e-8)
        np.testing.assert_allclose(still[..., k], -slope, atol=1e-8)


def test_one_state_and_batches_agree():
    mech = lw.mechanisms.random_tree(5, 4)
    rng = np.random.default_rng(0)
    passive = everything(mech, rng)
    q, v = lw.random_state(mech, rng, (2, 3))
    for found, one in (
        (passive.forces(mech, q, v), passive.forces(mech, q[1, 2], v[1, 2])),
        (passive.energy(mech, q), passive.energy(mech, q[1, 2])),
        (passive.derivatives(mech, q, v)[0], passive.derivatives(mech, q[1, 2], v[1, 2])[0]),
    ):
        np.testing.assert_allclose(found[1, 2], one, atol=1e-13)


def test_damped_oscillator_against_its_closed_form():
    mech, stiffness, damping, mass = oscillator(), 50.0, 1.2, 2.0
    passive = lw.forces.Passive.springs({"slide": stiffness}, {"slide": 0.3}) + lw.forces.Passive.dampers(
        {"slide": damping}
    )
    trajectory = lw.simulate(
        mech, [0.8], [0.0], 3.0, passive=passive, settings=lw.motion.Settings(rtol=1e-12, atol=1e-12)
    )
    decay = damping / (2 * mass)
    pace = np.sqrt(stiffness / mass - decay**2)
    t = trajectory.t
    exact = 0.3 + 0.5 * np.exp(-decay * t) * (np.cos(pace * t) + decay / pace * np.sin(pace * t))
    np.testing.assert_allclose(trajectory.q[:, 0], exact, atol=1e-11)
    np.testing.assert_allclose(trajectory.passive_energy, 0.5 * stiffness * (exact - 0.3) ** 2, atol=1e-9)


def test_torsion_of_a_ball_swings_like_a_rotor():
    """A body turned about a principal axis against a spring of its ball joint: a harmonic oscillator of the angle."""
    builder = lw.Builder().link("body", 1.0, (0, 0, 0), (0.2, 0.3, 0.4))
    mech = builder.joint("ball", lw.Spherical(), "ground", "body").build("ball", (0, 0, 0))
    passive = lw.forces.Passive.springs({"ball": 5.0})
    start = np.array([np.cos(0.4), 0.0, 0.0, np.sin(0.4)])
    trajectory = lw.simulate(
        mech, start, np.zeros(3), 2.0, passive=passive, settings=lw.motion.Settings(rtol=1e-12, atol=1e-12)
    )
    angle = lw.difference(mech, lw.neutral(mech), trajectory.q)[:, 2]
    np.testing.assert_allclose(angle, 0.8 * np.cos(np.sqrt(5.0 / 0.4) * trajectory.t), atol=1e-10)


def test_dry_friction_stops_a_sliding_mass():
    """Far above the regularised speed the mass loses speed evenly, and it does not turn back."""
    passive = lw.forces.Passive.friction({"slide": 3.0}, speed=1e-4)
    trajectory = lw.simulate(
        oscillator(),
        [0.0],
        [1.2],
        2.0,
        passive=passive,
        method="radau",
        settings=lw.motion.Settings(rtol=1e-8, atol=1e-8),
    )
    early = trajectory.t < 0.7
    np.testing.assert_allclose(trajectory.v[early, 0], 1.2 - 1.5 * trajectory.t[early], atol=1e-6)
    assert abs(trajectory.v[-1, 0]) < 1e-6 and trajectory.v.min() > -1e-6
    assert trajectory.q[-1, 0] == pytest.approx(1.2**2 / 3.0, abs=1e-3)


def test_stops_bounce_and_lose_what_their_damping_says():
    """Without damping a bounce gives back the energy; with it the speeds before and after obey Hunt and Crossley's law,
    in which (1 + d v) - log(1 + d v) is the same before (v) and after (-v')."""
    mech, stiffness = oscillator(), 1e5
    for damping in (0.0, 0.8):
        passive = lw.forces.Passive.stops({"slide": (-1.0, 0.5)}, stiffness, damping)
        trajectory = lw.simulate(
            mech, [0.0], [2.0], 0.5, passive=passive, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11), step=1e-3
        )
        after = -trajectory.v[-1, 0]
        assert trajectory.q.max() > 0.5 and 0.0 < after

        def invariant(speed: float, d: float = damping) -> float:
            return 1.0 + d * speed - np.log(1.0 + d * speed)

        if damping:
            assert after < 1.5
            assert invariant(2.0) == pytest.approx(invariant(-after), rel=1e-6)
        else:
            assert after == pytest.approx(2.0, abs=1e-7)
    assert passive.energy(mech, [0.6]) == pytest.approx(0.5 * stiffness * 0.1**2)
    assert passive.forces(mech, [0.6], [-10.0]) == 0.0  # a stop does not pull


def geared(**joint) -> lw.Mechanism:
    builder = lw.Builder()
    for name in ("leader", "follower"):
        builder.link(name, 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
    builder.joint("leader", lw.Revolute(), "ground", "leader")
    builder.joint("follower", lw.Revolute(), "ground", "follower", mimic=lw.Mimic("leader", -2.0, 0.3), **joint)
    return builder.build("geared")


def test_elements_at_a_mimic_joint_act_on_its_leader():
    """Forces, energies and slopes are those of the follower's own angle -2 q + 0.3 and of its rate -2 v."""
    mech = geared()
    passive = (
        lw.forces.Passive.springs({"follower": 4.0}, {"follower": 0.1})
        + lw.forces.Passive.dampers({"follower": 0.5})
        + lw.forces.Passive.stops({"follower": (-0.2, 0.2)}, 7.0)
    )
    q, v = np.array([0.5]), np.array([0.6])
    angle, rate = -2.0 * 0.5 + 0.3, -2.0 * 0.6
    own = -4.0 * (angle - 0.1) - 0.5 * rate + 7.0 * (-0.2 - angle)
    np.testing.assert_allclose(passive.forces(mech, q, v), [-2.0 * own])
    np.testing.assert_allclose(passive.energy(mech, q), 2.0 * (angle - 0.1) ** 2 + 3.5 * (-0.2 - angle) ** 2)
    d_q, d_v = passive.derivatives(mech, q, v)
    np.testing.assert_allclose([d_q[0, 0], d_v[0, 0]], [-4.0 * 11.0, -4.0 * 0.5])


def test_what_files_and_builders_say_is_kept_and_used():
    mech = oscillator(damping=1.5, friction=0.2, stiffness=30.0, rest=0.1, limits=lw.Limits(-1.0, 0.4))
    expected = (
        lw.forces.Passive.springs({"slide": (30.0,)}, {"slide": (0.1,)})
        + lw.forces.Passive.dampers({"slide": (1.5,)})
        + lw.forces.Passive.friction({"slide": (0.2,)})
    )
    assert lw.forces.Passive.of(mech) == expected
    with_stops = lw.forces.Passive.of(mech, limit_stiffness=1e4)
    assert with_stops == expected + lw.forces.Passive.stops({"slide": ((-1.0,), (0.4,))}, 1e4)
    assert with_stops.forces(mech, [0.5], [0.0])[0] == pytest.approx(-30.0 * 0.4 - 1e4 * 0.1)
    urdf = """<robot name="r"><link name="a"/>
        <link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
        <joint name="j" type="revolute"><parent link="a"/><child link="b"/><dynamics damping="0.5" friction="0.25"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
    passive = lw.forces.Passive.of(lw.load(urdf))
    expected = -0.5 - 0.25 / np.sqrt(1.0 + 0.01**2)
    np.testing.assert_allclose(passive.forces(lw.load(urdf), [2.0], [1.0]), [expected])
    assert lw.forces.Passive.of(lw.mechanisms.puma560().with_gravity((0, 0, 0))).forces(
        lw.mechanisms.puma560(), np.ones(6), np.zeros(6)
    ).shape == (6,)
    assert lw.forces.Passive.of(geared(damping=0.5)) == lw.forces.Passive.dampers({"follower": (0.5,)})


def test_values_are_compared_and_written_as_data():
    mech = lw.mechanisms.random_tree(5, 4)
    passive = everything(mech, np.random.default_rng(0))
    assert lw.forces.Passive.from_data(passive.to_data()) == passive
    assert hash(lw.forces.Passive.from_data(passive.to_data())) == hash(passive)
    assert lw.forces.Passive() + passive == passive != lw.forces.Passive()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lw.forces.Passive.springs({"slid": 1.0}), "did you mean 'slide'"),
        (lambda: lw.forces.Passive.springs({"slide": 1.0}, {"slid": 1.0}), "which has no spring"),
        (
            lambda: lw.forces.Passive.springs({"slide": -1.0}),
            "stiffness of a spring at joint 'slide' must not be negative",
        ),
        (lambda: lw.forces.Passive.springs({"slide": (1.0, 2.0)}), "must be a number or 1 of them"),
        (lambda: lw.forces.Passive.dampers({"slide": np.nan}), "must be finite"),
        (lambda: lw.forces.Passive.friction({"slide": 1.0}, 0.0), "must be positive"),
        (lambda: lw.forces.Passive.from_data([{"kind": "Sprin", "joint": "slide"}]), "did you mean 'Spring'"),
    ],
)
def test_elements_that_make_no_sense(make, message):
    with pytest.raises(MechanismError, match=message):
        make().forces(oscillator(), [0.0], [0.0])


def test_other_requests_that_make_no_sense():
    builder = lw.Builder().link("body", 1.0, (0, 0, 0), (0.2, 0.3, 0.4))
    ball = builder.joint("ball", lw.Spherical(), "ground", "body").build("ball")
    with pytest.raises(MechanismError, match="Spherical joint, whose coordinates have no bounds"):
        lw.forces.Passive.stops({"ball": (-1.0, 1.0)}, 10.0).energy(ball, lw.neutral(ball))
    with pytest.raises(MechanismError, match=r"q has shape \(2,\)"):
        lw.forces.Passive().forces(oscillator(), [0.0, 1.0], [0.0])
    with pytest.raises(MechanismError, match="its stiffness -1 is negative"):
        oscillator(stiffness=-1.0)
    with pytest.raises(TypeError, match="springs, dampers, frictions, stops and struts"):
        lw.forces.Passive(("spring",))


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (
            lambda: lw.forces.Passive.springs({"joint1": float("nan")}),
            "stiffness of a spring at joint 'joint1' must be finite",
        ),
        (lambda: lw.forces.Passive.springs({"joint1": "5"}), "must be a number or several, not '5'"),
        (lambda: lw.forces.Passive.springs({"joint1": None}), "must be a number or several, not None"),
        (lambda: lw.forces.Passive.springs({"joint1": 1.0}, rest={"joint1": float("inf")}), "rest of a spring"),
        (
            lambda: lw.forces.Passive.dampers({"joint1": -1.0}),
            "damping of a damper at joint 'joint1' must not be negative",
        ),
        (lambda: lw.forces.Passive.friction({"joint1": 1.0}, speed="slow"), "speed of a friction"),
        (lambda: lw.forces.Passive.stops({"joint1": (float("nan"), 1.0)}, 10.0), "lower of a stop"),
    ],
)
def test_bad_numbers_are_refused_where_they_are_given(make, complaint):
    with pytest.raises(lw.MechanismError, match=complaint):
        make()


def test_bounds_may_be_infinite():
    assert lw.forces.Passive.stops({"joint1": (-np.inf, 1.0)}, 10.0).elements[0].lower == -np.inf
