"""Overconstrained mechanisms with rounded numbers move as the exact ones do, and no exact one is taken for rounded."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise import constraints, linkages
from linkwise.mechanism import MechanismWarning
from linkwise.mechanism.clusters import clusters
from tests.constraints.built_in import FREEDOMS, assembled, built
from tests.constraints.rounded import neck, three_cranks, written
from tests.oracle.random_closed import FAMILIES, case

OVERCONSTRAINED = [name for name in FREEDOMS if name not in ("stewart_platform", "delta_robot")]
CASES = [*OVERCONSTRAINED, "three_cranks", "neck"]
SHORTLY = dict.fromkeys(
    ("parallel_four_bar_robot", "flyball_governor", "three_cranks"), 0.2
)  # singular positions come soon: seconds until then
every_case = pytest.mark.parametrize("name", CASES)
every_precision = pytest.mark.parametrize("digits", [4, 6, 8])


def exact(name: str) -> tuple[lw.Mechanism, np.ndarray, int]:
    """A mechanism, an assembled configuration, and its degrees of freedom."""
    if name in FREEDOMS:
        return built(name), assembled(name), FREEDOMS[name]
    mech, q, dofs = {
        "three_cranks": (three_cranks(), [0.3, 0.3, 0.3, -0.3], 1),
        "neck": (neck(), [0.0] * 5, 2),
    }[name]
    return mech, np.array(q), dofs


def moving(name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A state of the exact mechanism, its velocities consistent with loops, and joint forces."""
    mech, q, dofs = exact(name)
    rng = np.random.default_rng(seed)
    return q, constraints.null_space(mech, q) @ rng.normal(size=dofs), rng.normal(size=mech.nv)


@pytest.fixture(scope="module")
def rounded_mechanisms():
    """Made once, without their warnings."""
    made: dict[tuple[str, int | None], lw.Mechanism] = {}

    def of(name: str, digits: int | None) -> lw.Mechanism:
        if (name, digits) not in made:
            made[name, digits] = written(exact(name)[0], digits)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MechanismWarning)
                constraints.redundancy(made[name, digits])
        return made[name, digits]

    return of


def assert_equal_to_rounding(found, expected, digits):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=100.0 * 10.0**-digits * scale)


def test_one_hole_off_by_a_nanometre():
    """Three cranks under one bar are one pendulum: (3 I + m l^2) a = (3 m_c l_c + m l) g sin(angle)."""
    angle = -0.6
    expected = 9.81 * (3 * 0.25 + 2 * 0.5) * np.sin(angle) / (3 * (0.02 + 0.25**2) + 2 * 0.5**2)
    assert expected == pytest.approx(-12.968, abs=1e-3)
    mech = three_cranks(off=1e-9)
    with pytest.warns(MechanismWarning, match="overconstrained, and its numbers are rounded.*of loop 'hole1'"):
        q = constraints.assemble(mech, [angle, angle, angle, -angle])
    assert constraints.degrees_of_freedom(mech, q) == 1
    for method in constraints.ALL_METHODS:
        a = lw.forward_dynamics(mech, q, np.zeros(4), np.zeros(4), method=method)
        np.testing.assert_allclose(a, np.array([1, 1, 1, -1]) * expected, rtol=1e-7)
    # A tolerance of one's own decides about all of G.
    locked = lw.forward_dynamics(mech, q, np.zeros(4), np.zeros(4), tolerance=1e-12)
    np.testing.assert_allclose(locked, 0.0, atol=1e-6)
    assert constraints.degrees_of_freedom(mech, q, tolerance=1e-12) == 0


@pytest.mark.slow_cases("[4-", "[8-")
@every_case
@every_precision
def test_degrees_of_freedom_and_accelerations_of_the_exact_one(name, digits, rounded_mechanisms):
    mech, rounded = exact(name)[0], rounded_mechanisms(name, digits)
    q, v, tau = moving(name)
    there = constraints.assemble(rounded, q)
    assert np.abs(lw.difference(mech, q, there)).max() < 100.0 * 10.0**-digits
    assert (
        constraints.degrees_of_freedom(rounded, there)
        == exact(name)[2]
        == rounded.nv - constraints.redundancy(rounded).rank
    )
    _, speed = constraints.project(rounded, there, v)
    assert_equal_to_rounding(speed, v, digits)
    expected = lw.forward_dynamics(mech, q, v, tau)
    for method in constraints.ALL_METHODS:
        assert_equal_to_rounding(lw.forward_dynamics(rounded, there, speed, tau, method=method), expected, digits)
    forces = lw.inverse_dynamics(rounded, there, speed, lw.forward_dynamics(rounded, there, speed, tau))
    assert_equal_to_rounding(lw.forward_dynamics(rounded, there, speed, forces), expected, digits)
    basis, multipliers = constraints.null_space(rounded, there), constraints.multipliers(rounded, there, speed, tau)
    assert basis.shape == (mech.nv, exact(name)[2])
    assert_equal_to_rounding(
        np.linalg.norm(multipliers), np.linalg.norm(constraints.multipliers(mech, q, v, tau)), digits
    )


@pytest.mark.slow_cases("[4-", "[6-")
@every_case
@every_precision
def test_linear_models_of_the_exact_one(name, digits, rounded_mechanisms):
    mech, rounded = exact(name)[0], rounded_mechanisms(name, digits)
    q, v, tau = moving(name)
    there, speed = constraints.project(rounded, constraints.assemble(rounded, q), v)
    expected = lw.linearize(mech, q, v, tau)
    found = lw.linearize(rounded, there, speed, tau, independent=expected.independent)
    assert_equal_to_rounding(found.A, expected.A, digits)
    assert_equal_to_rounding(found.B, expected.B, digits)


@pytest.mark.slow_cases("8-", "4-five_bar", "4-loader")
@every_case
@pytest.mark.parametrize("digits", [4, 8])
def test_motions_keep_loops_closed_and_energy(name, digits, rounded_mechanisms):
    mech, rounded = exact(name)[0], rounded_mechanisms(name, digits)
    q, v, _ = moving(name)
    duration = SHORTLY.get(name, 1.0)
    motion = lw.simulate(rounded, constraints.assemble(rounded, q), v, duration, t_eval=0.1 * duration)
    expected = lw.simulate(mech, q, v, duration, t_eval=0.1 * duration)
    energy = lw.kinetic_energy(rounded, motion.q, motion.v) + lw.potential_energy(rounded, motion.q)
    scale = np.abs(energy).max() + lw.kinetic_energy(rounded, motion.q, motion.v).max()
    assert np.ptp(energy) < (1e-8 + 10.0 * 10.0**-digits) * scale
    assert np.abs(constraints.position_error(rounded, motion.q)).max() < 10.0 * constraints.redundancy(rounded).closure
    away = lw.difference(mech, expected.q, motion.q)
    assert np.abs(away).max() < 200.0 * 10.0**-digits * max(1.0, np.abs(expected.v).max())


@every_precision
def test_driving_a_rounded_linkage(digits, rounded_mechanisms):
    rounded = rounded_mechanisms("four_bar", digits)
    q = constraints.assemble(rounded, np.zeros(3))
    around = linkages.follow(rounded, q, {"crank_joint": q[0] + 2 * np.pi})
    np.testing.assert_allclose(around - q, [2 * np.pi, -2 * np.pi, 0.0], atol=1e-9)
    chart = lw.kinematics.local_parametrization(rounded, q, ("crank_joint",))
    y, _ = chart.independent_state(q, np.zeros(3))
    np.testing.assert_allclose(chart.configuration(y), q, atol=1e-9)


@every_case
def test_exact_mechanisms_in_general_position_are_not_rounded(name, rounded_mechanisms):
    found = constraints.redundancy(rounded_mechanisms(name, None))
    assert found.assembled and not found.is_rounded and found.closure < 1e-13
    assert found.rank == exact(name)[0].nv - exact(name)[2]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_exact_mechanism_is_taken_for_a_rounded_one(family):
    """Random ones, many of which are singular where they are assembled; the rank is that of regular states."""
    for seed in range(8):
        drawn = case(family, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MechanismWarning)  # some are locked
            found = constraints.redundancy(drawn.mech)
        assert found.assembled and not found.is_rounded
        for state in drawn.states:
            jacobian = constraints.constraint_jacobian(drawn.mech, state.q)
            rank = np.linalg.matrix_rank(jacobian, tol=1e-9 * np.linalg.norm(jacobian, 2))
            assert rank == found.rank if state.label == "regular" else rank <= found.rank


def test_the_redundant_constraints_in_words():
    found = constraints.redundancy(built("four_bar"))
    assert set(found.redundant) == {
        "translation along z of loop 'pin'",
        "rotation about x of loop 'pin'",
        "rotation about y of loop 'pin'",
    }
    assert "2 of 5 constraints are independent, 1 degree of freedom" in str(found)
    assert constraints.redundancy(built("stewart_platform")).redundant == ()
    assert constraints.redundancy(lw.mechanisms.planar_arm(2)).rank == 0
    assert str(constraints.redundancy(lw.mechanisms.planar_arm(2))) == "no loops"


@pytest.mark.parametrize("name", FREEDOMS)
def test_ranks_by_cluster(name):
    mech = built(name)
    found = constraints.redundancy(mech)
    assert len(found.cluster_ranks) == len(clusters(mech))
    assert sum(found.cluster_ranks) == found.rank == mech.nv - FREEDOMS[name]
    around = constraints.redundancy(mech, assembled(name))
    assert around.cluster_ranks == found.cluster_ranks


def test_variants_are_told_of_once():
    mech = three_cranks(off=1e-9)
    with pytest.warns(MechanismWarning, match="rounded") as told:
        constraints.redundancy(mech.with_gravity((0.0, 0.0, 0.0)))
        constraints.redundancy(mech.with_gravity((1.0, 0.0, 0.0)))
        constraints.redundancy(mech)
    assert len(told) == 1


def test_what_is_off_by_more_than_rounding_is_locked_with_a_word():
    mech = three_cranks(off=0.02)
    with pytest.warns(MechanismWarning, match="locked: loops 'hole1', 'hole2'.*0 degrees of freedom"):
        found = constraints.redundancy(mech)
    assert found.clusters[0].degrees_of_freedom == 0


def test_a_frame_that_is_meant_to_be_stiff_is_locked_without_one():
    """A triangle of rods."""
    builder = lw.Builder()
    for name, foot in (("left", 0.0), ("right", 1.0)):
        builder.link(name, 1.0, (0.0, 0.4, 0.0), (0.1, 0.0, 0.1))
        builder.joint(f"{name}_foot", lw.Revolute(), "ground", name, (None, (foot, 0.0, 0.0)))
    builder.loop("top", lw.Revolute(), "left", (None, (0.5, 0.8, 0.0)), "right", (None, (-0.5, 0.8, 0.0)))
    mech = builder.build("triangle")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert constraints.redundancy(mech).clusters[0].degrees_of_freedom == 0


def test_files_are_judged_when_they_are_loaded():
    cranks = "".join(
        f"<body name='crank{i}' pos='{i} 0 0'><joint name='joint{i}' axis='0 0 1'/>"
        f"<inertial pos='0 0.25 0' mass='1' diaginertia='0.02 0.01 0.02'/>{{}}</body>"
        for i in range(3)
    )
    bar = (
        "<body name='bar' pos='0 0.5 0'><joint name='bar_joint' axis='0 0 1'/>"
        "<inertial pos='1 0 0' mass='2' diaginertia='0.1 0.7 0.7'/></body>"
    )
    text = f"<mujoco><worldbody>{cranks.format(bar, '', '')}</worldbody></mujoco>"
    loops = [
        dict(
            name=f"hole{i}",
            kind="revolute",
            axis=[0.0, 0.0, 1.0],
            link_a="bar",
            pose_a={"xyz": [hole, 0.0, 0.0]},
            link_b=f"crank{i}",
            pose_b={"xyz": [0.0, 0.5, 0.0]},
        )
        for i, hole in ((1, 1.0), (2, 2.0 + 1e-9))
    ]
    with pytest.warns(MechanismWarning, match="rounded: loops 'hole1', 'hole2'") as told:
        mech = lw.load(text, loops=loops)
    assert len([one for one in told if "rounded" in str(one.message)]) == 1
    assert constraints.degrees_of_freedom(mech, constraints.assemble(mech, np.zeros(4))) == 1


def test_an_assembled_guess_decides_where_nothing_else_was_found(monkeypatch):
    """A linkage that is found from few guesses only: the first that is assembled says how it moves."""
    mech = written(built("four_bar"), 6)
    with monkeypatch.context() as blind:
        module = importlib.import_module("linkwise.constraints.redundancy")  # the package has a function so named
        blind.setattr(module, "_assemble_roughly", lambda *_: None)
        assert not constraints.redundancy(mech).assembled
        with pytest.raises(constraints.AssemblyError):
            constraints.assemble(mech, np.zeros(3))
    with pytest.warns(MechanismWarning, match="rounded"):
        q = constraints.assemble(mech, np.zeros(3))
    assert constraints.redundancy(mech).assembled and constraints.degrees_of_freedom(mech, q) == 1
