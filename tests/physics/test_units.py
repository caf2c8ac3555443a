"""The same mechanism in metres, millimetres, micrometres and megametres, with other masses and times: one answer."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism.scales import scales
from tests.simulated import simulate
from tests.units import SI, SYSTEMS, Units, lengths

OTHERS = SYSTEMS[1:]
SIZES = (1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9)
KINDS = ("revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "universal", "pin_in_slot")
EXPLICIT = ("dop853", "rk45", "rk23")


def close(found, expected, tolerance=1e-9, scale=None):
    """Equal up to a part of the largest number."""
    found, expected = np.asarray(found), np.asarray(expected)
    scale = np.abs(expected).max(initial=0.0) if scale is None else scale
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * (scale or 1.0))


def tree(seed: int, floating: bool = False) -> lw.Mechanism:
    """A random tree of all joint kinds with springs, damping, dry friction, limits and a joint that mimics another."""
    rng = np.random.default_rng(seed)
    mech = lw.mechanisms.random_tree(7, seed, joints=KINDS, floating_base=floating)
    bodies = []
    for body in mech.bodies:
        moves = 0.0 if isinstance(body.kind, lw.Floating) else 1.0
        n = body.kind.nv
        of = np.where([m.of == "length" for m in body.kind.measures("v")], 0.3, 1.0)
        bodies.append(
            replace(
                body,
                stiffness=tuple(moves * rng.uniform(2.0, 5.0, n) / of**2),
                damping=tuple(moves * rng.uniform(0.1, 0.5, n) / of**2),
                friction=tuple(moves * rng.uniform(0.0, 0.2, n) / of),
                armature=tuple(moves * rng.uniform(0.01, 0.1, n) / of**2),
            )
        )
    single = [i for i, body in enumerate(bodies) if body.kind.nv == 1 and body.kind.measures("q")[0].of != "length"]
    bounded = single[:1]
    for i in bounded:
        bodies[i] = replace(bodies[i], limits=lw.Limits(-1.0, 1.0, effort=20.0))
    if len(single) > 2:
        leader, follower = single[1], single[-1]
        bodies[follower] = replace(bodies[follower], mimic=lw.Mimic(bodies[leader].joint, -0.7, 0.2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return replace(mech, bodies=tuple(bodies))


def state(mech: lw.Mechanism, seed: int, speed: float = 1.0):
    rng = np.random.default_rng(seed)
    q = lw.integrate(
        mech, lw.neutral(mech), 0.5 * np.where(lengths(mech, "v"), 0.3, 1.0) * rng.normal(size=mech.nv), 1.0
    )
    v = speed * np.where(lengths(mech, "v"), 0.3, 1.0) * rng.normal(size=mech.nv)
    return q, v, rng.normal(size=mech.nv)


def converted(units: Units, mech: lw.Mechanism, q, v, tau):
    return units.mechanism(mech), units.q(mech, q), units.v(mech, v), units.tau(mech, tau)


# -- scales -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_scales_are_those_of_the_mechanism_in_its_own_units(units):
    for mech in (tree(1), lw.mechanisms.puma560(), lw.mechanisms.four_bar(), lw.mechanisms.cart_pole()):
        here, there = scales(mech), scales(units.mechanism(mech))
        close(there.length, here.length * units.length, 1e-14)
        close(there.mass, here.mass * units.mass, 1e-14)
        close(there.time, here.time * units.time, 1e-14)
        close(there.step, here.step * units.time, 1e-14)
        close(there.of_v, np.where(lengths(mech, "v"), there.length, 1.0), 1e-15)


def test_scales_without_offsets_gravity_or_springs():
    def slide(**options):
        builder = lw.Builder().link("block", 2.0, inertia=options.pop("inertia", None))
        builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "block", **options)
        return builder.build("slide", (0, 0, 0))

    assert scales(slide()).length == 1.0 and scales(slide()).time == np.inf
    assert scales(slide(inertia=(2.0, 2.0, 2.0))).length == pytest.approx(np.sqrt(1.5))
    assert scales(slide(limits=lw.Limits(-3.0, 5.0))).length == 5.0
    assert scales(slide(stiffness=8.0)).time == pytest.approx(0.5)
    spun = slide(inertia=(2.0, 2.0, 2.0))
    assert scales(spun).time_of([3.0]) == pytest.approx(np.sqrt(1.5) / 3.0)
    assert scales(spun).time_of([0.0], 7.0) == 7.0
    heavier = spun.with_payload("block", 5.0, com=(9.0, 0.0, 0.0))
    assert scales(heavier).length == scales(spun).length  # variants are judged alike


# -- dynamics ---------------------------------------------------------------------------------------------------------


def check_dynamics(units: Units, seed: int, floating: bool) -> None:
    mech = tree(seed, floating)
    q, v, tau = state(mech, seed)
    other, q2, v2, tau2 = converted(units, mech, q, v, tau)
    of_v = units.of_v(mech)
    close(units.a(mech, lw.forward_dynamics(mech, q, v, tau)) / of_v, lw.forward_dynamics(other, q2, v2, tau2) / of_v)
    close(
        units.tau(mech, lw.inverse_dynamics(mech, q, v, tau)) * of_v,
        lw.inverse_dynamics(other, q2, v2, units.a(mech, tau)) * of_v,
    )
    weights = np.multiply.outer(of_v, of_v)
    close(units.mass_matrix(mech, lw.mass_matrix(mech, q)) * weights, lw.mass_matrix(other, q2) * weights)
    close(lw.kinetic_energy(mech, q, v) * units.energy, lw.kinetic_energy(other, q2, v2))
    for mine, theirs, times in zip(
        lw.forward_dynamics_derivatives(mech, q, v, tau),
        lw.forward_dynamics_derivatives(other, q2, v2, tau2),
        (units.time**-2, units.time**-1, 1.0 / units.energy * units.time**-2),
        strict=True,
    ):
        columns = of_v if times != 1.0 / units.energy * units.time**-2 else 1.0 / of_v
        close(mine * times, theirs * columns / of_v[:, None])


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_dynamics_of_a_tree_are_the_same_in_all_units(units):
    check_dynamics(units, 1, floating=False)


@pytest.mark.slow
@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("seed", range(2, 7))
@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_dynamics_of_many_trees_are_the_same_in_all_units(units, seed, floating):
    check_dynamics(units, seed, floating)


@pytest.mark.parametrize("units", [Units("small", 2.0**-40, 2.0**9, 2.0**5), Units("large", 2.0**50)], ids=str)
def test_emitted_code_is_the_same_in_all_units(units):
    """Zeros of frames are zeros whatever the units are, here ones that round nothing: the same operations."""
    for mech in (lw.mechanisms.puma560(), lw.mechanisms.chain(6), lw.mechanisms.random_tree(6, 3, joints=KINDS)):
        counts = [
            lw.compile("forward_dynamics", one, target="numpy").op_counts for one in (mech, units.mechanism(mech))
        ]
        assert counts[0] == counts[1]


@pytest.mark.parametrize("size", SIZES)
def test_offsets_of_small_mechanisms_are_kept(size):
    """A pendulum on a slider of any size: its acceleration is known in closed form."""
    mech = hanging(size)
    angle, rate = 0.7, 2.0
    a = lw.forward_dynamics(mech, [0.3 * size, angle], [0.0, rate], [0.0, 0.0])
    # (M + m) x'' + m L (c f'' - s f'^2) = 0, x'' c + L f'' + g s = 0
    c, s, ratio = np.cos(angle), np.sin(angle), 0.5
    matrix = np.array([[1.0 + ratio, ratio * c], [c, 1.0]])
    expected = np.linalg.solve(matrix, [ratio * s * rate**2, -9.81 / size * s])
    close(a / [size, 1.0], expected, 1e-12)


def hanging(size: float, stiffness: float = 0.0) -> lw.Mechanism:
    """A point mass of 0.5 on a rod of length ``size`` below a slider of mass 1, along x."""
    builder = lw.Builder().link("slider", 1.0).link("bob", 0.5, (0.0, 0.0, -size))
    builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "slider", stiffness=stiffness / size)
    builder.joint("swing", lw.Revolute((0, -1, 0)), "slider", "bob")
    return builder.build("hanging", (0.0, 0.0, -9.81))


# -- equilibria and linear models -------------------------------------------------------------------------------------


def check_equilibrium(units: Units, mech: lw.Mechanism, guess=None, independent=None) -> None:
    other = units.mechanism(mech)
    here = lw.find_equilibrium(mech, guess)
    there = lw.find_equilibrium(other, None if guess is None else units.q(mech, guess))
    step = lw.difference(mech, here.q, there.q / np.where(lengths(mech, "q"), units.length, 1.0))
    close(step / np.where(lengths(mech, "v"), scales(mech).length, 1.0), np.zeros(mech.nv), 1e-9)
    assert here.stable is there.stable
    close(units.tau(mech, here.tau), there.tau)
    first = lw.linearize(mech, here.q, tau=here.tau, independent=independent)
    second = lw.linearize(other, there.q, tau=there.tau, independent=independent)
    assert first.is_equilibrium and second.is_equilibrium
    assert first.independent == second.independent
    close(first.dimensionless().A, second.dimensionless().A)
    one, two = first.modes(), second.modes()
    # Frequencies come in the same order; those of equal size may change places.
    close(np.sort(one.frequencies) / units.time, np.sort(two.frequencies))


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_equilibria_and_linear_models_are_the_same_in_all_units(units):
    check_equilibrium(units, tree(1))
    check_equilibrium(units, sprung_four_bar())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_equilibria_of_many_trees_are_the_same_in_all_units(units, seed):
    check_equilibrium(units, tree(seed))


def sprung_four_bar() -> lw.Mechanism:
    mech = lw.mechanisms.four_bar()
    return mech.parameters.with_springs({mech.joint_names[0]: 30.0})


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_equilibria_of_a_slider_crank_on_a_spring(units):
    mech = lw.mechanisms.slider_crank()
    slide = next(body.joint for body in mech.bodies if isinstance(body.kind, lw.Prismatic))
    check_equilibrium(units, mech.parameters.with_springs({slide: 400.0}), independent=[slide])


@pytest.mark.parametrize("size", [*SIZES, 10.0 ** np.random.default_rng(3).uniform(-9, 9)])
def test_equilibria_of_mechanisms_of_any_size(size):
    """A sprung slider that a force pushes, with a pendulum that a torque lifts: x = F / k, sin = T / (m g L)."""
    mech = hanging(size, stiffness=4.0)
    force, torque = 3.0, 0.5 * 9.81 * size * np.sin(0.6)
    found = lw.find_equilibrium(mech, [0.0, 0.2], [force, torque])
    close(found.q / [size, 1.0], [0.75, 0.6], 1e-9)
    assert found.stable
    assert lw.linearize(mech, found.q, tau=found.tau).is_equilibrium
    loose = lw.linearize(mech, found.q + [0.0, 1e-3], tau=found.tau)
    assert not loose.is_equilibrium
    with pytest.raises(lw.MechanismError):
        lw.find_equilibrium(mech, None, [0.0, 1.5 * 0.5 * 9.81 * size])
    hanging_down = lw.find_equilibrium(mech, [0.0, 3.0], stable=True)
    assert np.cos(hanging_down.q[1]) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_holding_forces_are_the_same_in_all_units(units):
    mech = tree(1)
    q, _, _ = state(mech, 5)
    here = lw.find_equilibrium(mech, q, solve_for="tau")
    there = lw.find_equilibrium(units.mechanism(mech), units.q(mech, q), solve_for="tau")
    close(units.tau(mech, here.tau) * units.of_v(mech), there.tau * units.of_v(mech))


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_regulators_see_the_same_motions_in_all_units(units):
    """Gains are the same, and what inputs reach: a cart's force its pole, and no other cart."""
    mech = lw.mechanisms.cart_pole()
    gains = []
    for one in (SI, units):
        model = lw.linearize(one.mechanism(mech), inputs=mech.joint_names[:1])
        own = model.dimensionless()
        regulator = lw.control.lqr(model, 1.0 / own.states**2, 1.0 / own.inputs**2)
        gains.append(regulator.gain * own.states / own.inputs[:, None])
        assert (regulator.eigenvalues().real < 0.0).all()
    close(gains[1], gains[0])
    builder = lw.Builder().link("near", 1.0, (0.1, 0, 0)).link("far", 1.0)
    builder.joint("a", lw.Prismatic((1, 0, 0)), "ground", "near").joint("b", lw.Prismatic((1, 0, 0)), "ground", "far")
    apart = units.mechanism(builder.build("apart", (0.0, 0.0, -9.81)))
    with pytest.raises(lw.MechanismError, match="do not reach"):
        lw.control.lqr(lw.linearize(apart, inputs=["a"]))


# -- motions ----------------------------------------------------------------------------------------------------------


def check_motion(units: Units, mech: lw.Mechanism, seed: int, duration: float, tolerance=1e-9, **options) -> None:
    q, v, tau = state(mech, seed, 0.5)
    other, q2, v2, tau2 = converted(units, mech, q, v, tau)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        here = simulate(mech, q, v, duration, tau, **options)
        there = simulate(other, q2, v2, duration * units.time, tau2, **options)
    assert abs(len(here.t) - len(there.t)) <= (0 if len(here.t) < 500 else 2)
    assert abs(here.evaluations - there.evaluations) <= 0.01 * here.evaluations
    step = lw.difference(mech, here.q[-1], there.q[-1] / np.where(lengths(mech, "q"), units.length, 1.0))
    close(step / scales(mech).of_v, np.zeros(mech.nv), tolerance)
    close(there.v[-1] / units.of_v(mech) * units.time, here.v[-1], tolerance)


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_motions_take_the_same_steps_in_all_units(units):
    check_motion(units, tree(1), 1, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        *({"method": method} for method in (*EXPLICIT, "radau", "bdf", "lsoda", "rk4", "semi_implicit")),
        *({"coordinates": coordinates} for coordinates in ("momentum", "nu", "xi")),
    ],
    ids=str,
)
@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_all_methods_take_the_same_steps_in_all_units(units, options):
    check_motion(units, tree(3), 2, 0.05, **options)


@pytest.mark.slow
@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_motions_of_floating_trees_and_without_gravity(units):
    # Without dry friction and a stop that is left: at kinks rounding decides how steps approach them.
    check_motion(units, tree(4, floating=True).with_acting(friction=False, limits=False), 3, 0.05)
    free = lw.mechanisms.random_tree(5, 2, joints=KINDS, floating_base=True).with_gravity((0, 0, 0))
    check_motion(units, free, 4, 0.1)


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_motions_of_loops_in_independent_coordinates(units):
    """From rest the first steps are so accurate that rounding decides by how much the next is longer: another choice of
    steps in every system, and motions that differ by errors of integration (3e-10 by default)."""
    mech = lw.mechanisms.four_bar()
    q = lw.constraints.assemble(mech, mech.initial)
    other = units.mechanism(mech)
    here = lw.simulate(mech, q, None, 0.2, settings=lw.motion.Settings(coordinates="independent", rtol=1e-11))
    there = lw.simulate(
        other,
        units.q(mech, q),
        None,
        0.2 * units.time,
        settings=lw.motion.Settings(coordinates="independent", rtol=1e-11),
    )
    close(here.q[-1], there.q[-1])


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_events_are_found_at_the_same_time_in_all_units(units):
    mech = lw.mechanisms.cart_pole()
    times = []
    for one in (SI, units):
        same = one.mechanism(mech)
        events = [lw.motion.velocity_zero(same, same.joint_names[1])]
        motion = lw.simulate(same, one.q(mech, [0.1, 2.5]), None, 1.5 * one.time, events=events)
        times.append([event.t / one.time for event in motion.events])
    assert times[0]
    close(times[1], times[0], 1e-9)


def check_rollout(units: Units, mech: lw.Mechanism, method: str, tolerance=1e-9) -> None:
    q, v, tau = state(mech, 7, 0.5)
    other, q2, v2, tau2 = converted(units, mech, q, v, tau)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        here = lw.rollout(mech, q, v, tau, 1e-3, 20, method)
        there = lw.rollout(other, q2, v2, tau2, 1e-3 * units.time, 20, method)
    close(there[1][-1] / units.of_v(mech) * units.time, here[1][-1], tolerance)
    step = lw.difference(mech, here[0][-1], there[0][-1] / np.where(lengths(mech, "q"), units.length, 1.0))
    close(step / scales(mech).of_v, np.zeros(mech.nv), tolerance)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_rollouts_are_the_same_in_all_units(units, method):
    check_rollout(units, tree(1), method)


# -- friction and stops -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", OTHERS, ids=str)
@pytest.mark.parametrize("kind", [lw.Revolute((0, 0, 1)), lw.Prismatic((1, 0, 0))], ids=("turn", "slide"))
@pytest.mark.parametrize("method", ["semi_implicit", "rk4"])
def test_stops_and_dry_friction_are_the_same_in_all_units(units, kind, method):
    builder = lw.Builder().link("block", 2.0, (0.2, 0.0, 0.0), (0.02, 0.02, 0.02))
    builder.joint("move", kind, "ground", "block", friction=0.5, limits=lw.Limits(-0.1, 0.1, effort=30.0))
    mech = builder.build("block", (0.0, 0.0, -9.81))
    other, found = units.mechanism(mech), []
    for one, by in ((mech, SI), (other, units)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.MechanismWarning)
            q, v = lw.rollout(
                one, by.q(mech, [0.05]), by.v(mech, [1.0]), by.tau(mech, [3.0]), 1e-3 * by.time, 200, method
            )
        found.append((q / by.q(mech, [1.0]), v / by.v(mech, [1.0])))
    assert found[0][0].max() > 0.1
    close(found[1][0], found[0][0])
    close(found[1][1], found[0][1])


# -- inverse kinematics -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_inverse_kinematics_takes_the_same_way_in_all_units(units):
    """By formulas, and by iterations of an arm with a sliding joint, from the same guesses."""
    rng = np.random.default_rng(2)
    for mech in (lw.mechanisms.puma560(), lw.mechanisms.stanford_arm()):
        other, frame = units.mechanism(mech), mech.link_names[-1]
        q = lw.random_state(mech, rng, (5,))[0] * np.where(lengths(mech, "q"), 0.2, 0.5)
        poses = lw.frame_pose(mech, q, frame)
        here = lw.inverse_kinematics(mech, {frame: poses}, limits=False)
        scaled = poses.copy()
        scaled[..., :3, 3] *= units.length
        there = lw.inverse_kinematics(other, {frame: scaled}, limits=False)
        assert here.converged.all() and there.converged.all()
        assert (here.attempts == there.attempts).all() and (here.iterations == there.iterations).all()
        close(there.q / np.where(lengths(mech, "q"), units.length, 1.0), here.q)
        scaled[..., 0, 3] += 50.0 * units.length
        assert not lw.inverse_kinematics(other, {frame: scaled}, limits=False, attempts=3).converged.any()


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_branches_are_the_same_in_all_units(units):
    mech = lw.mechanisms.puma560()
    pose = lw.frame_pose(mech, [0.3, -0.5, 0.4, 0.2, 0.7, -0.3], mech.link_names[-1])
    scaled = pose.copy()
    scaled[:3, 3] *= units.length
    here = lw.kinematics.inverse_kinematics_branches(mech, {mech.link_names[-1]: pose})
    there = lw.kinematics.inverse_kinematics_branches(units.mechanism(mech), {mech.link_names[-1]: scaled})
    np.testing.assert_allclose(there, here, atol=1e-9)


# -- identification ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_base_parameters_are_the_same_in_all_units(units):
    for mech in (lw.mechanisms.stanford_arm(), tree(1)):
        here, there = lw.estimation.base_parameters(mech), lw.estimation.base_parameters(units.mechanism(mech))
        assert here.names == there.names
        assert (here.grouping != 0.0).tolist() == (there.grouping != 0.0).tolist()


# -- thresholds of descriptions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_bodies_that_cannot_be_are_refused_in_all_units(units):
    """Moments that break the triangle inequality, also where they are tiny; and a point far from its link's origin is
    one though rounding leaves something of its moments."""
    for size in (1.0, 1e-6):
        moments = np.array([1.0, 1.0, 3.0]) * size**2 * units.mass * units.length**2
        with pytest.raises(lw.MechanismError, match="triangle"):
            lw.Builder().link("a", units.mass, inertia=moments).joint("j", lw.Revolute((0, 0, 1)), "ground", "a").build(
                "a"
            )
    mech = lw.mechanisms.planar_arm(3)
    other = units.mechanism(mech).with_payload("link3", 7.0 * units.mass, (0.3 * units.length, 0.0, 0.0))
    assert other.parameters.with_inertial(lw.estimation.inertial_parameters(other)).n_links == 3


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_the_fastest_motion_takes_the_same_time_in_all_units(units):
    mech = lw.mechanisms.stanford_arm()
    ends, durations = np.array([[0.2, 0.4, 0.3, 0.0, 0.3, 0.0], [0.8, 0.9, 0.5, 0.4, -0.2, 0.5]]), []
    for one in (SI, units):
        same = one.mechanism(mech)
        path = lw.trajectories.line(same, *one.q(mech, ends))
        effort, velocity = one.tau(mech, np.full(6, 200.0)), one.v(mech, np.full(6, 3.0))
        durations.append(lw.trajectories.time_optimal(path, effort, velocity, points=60).duration / one.time)
    close(durations[1], durations[0])


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_tables_of_arms_are_the_same_in_all_units(units):
    mech = lw.mechanisms.puma560()
    here, there = lw.files.dh_table(mech), lw.files.dh_table(units.mechanism(mech))
    for one, other in zip(here.rows, there.rows, strict=True):
        close([other[key] for key in ("theta", "alpha")], [one[key] for key in ("theta", "alpha")], 1e-12, 1.0)
        close([other[key] / units.length for key in ("d", "a")], [one[key] for key in ("d", "a")], 1e-12, 1.0)
