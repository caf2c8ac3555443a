"""Springs, dampers and cylinders between two points: an own computation from poses and Jacobians, differences,
conservation laws, closed forms."""

from __future__ import annotations

import json

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.passive import Strut
from linkwise.mechanism import MechanismError

ENDS = ("ground", (0.3, -1.2, 0.8))


def struts(mech: lw.Mechanism, rng: np.random.Generator) -> list[Strut]:
    """Of every kind: between links, to the ground, to a link and back to the same one."""
    names = mech.link_names
    pairs = [(names[0], names[-1]), ("ground", names[-1]), (names[len(names) // 2], "ground")]
    found = [Strut(a, rng.normal(size=3), b, 2.0 + rng.normal(size=3), 30.0, 0.7, 2.0, 5.0) for a, b in pairs]
    return [*found, Strut(names[-1], rng.normal(size=3), "ground", rng.normal(size=3), stiffness=9.0)]


def point_and_jacobian(mech, q, link, point):
    """A point of a link in the world, and its derivative by v, from poses and spatial Jacobians."""
    if link == "ground":
        return np.array(point, dtype=float), np.zeros((3, mech.nv))
    pose, jacobian = lw.frame_pose(mech, q, link), lw.jacobian(mech, q, link)
    x, y, z = point
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return pose[:3, :3] @ point + pose[:3, 3], pose[:3, :3] @ (jacobian[3:] - cross @ jacobian[:3])


def by_hand(mech, q, v, strut) -> np.ndarray:
    """(nv,): the force at both points as joint forces."""
    (a, by_a), (b, by_b) = (
        point_and_jacobian(mech, q, *end) for end in ((strut.link_a, strut.point_a), (strut.link_b, strut.point_b))
    )
    length = np.linalg.norm(b - a)
    direction = (b - a) / length
    rate = direction @ (by_b - by_a) @ v
    tension = strut.stiffness * (length - strut.free_length) + strut.damping * rate - strut.push
    return tension * direction @ by_a - tension * direction @ by_b


def central(function, h: float = 1e-4) -> np.ndarray:
    return (8.0 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12.0 * h)


@pytest.mark.parametrize("seed", range(4))
def test_forces_against_poses_and_jacobians(seed):
    mech = lw.mechanisms.random_tree(5, seed, floating_base=seed % 2 == 1)
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng)
    for strut in struts(mech, rng):
        expected = by_hand(mech, q, v, strut)
        found = lw.forces.Passive((strut,)).forces(mech, q, v)
        np.testing.assert_allclose(found, expected, atol=1e-11 * (1.0 + np.abs(expected).max()))


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_and_potential(seed):
    mech = lw.mechanisms.random_tree(4, seed, floating_base=seed == 1)
    rng = np.random.default_rng(seed)
    passive = lw.forces.Passive(tuple(struts(mech, rng)))
    q, v = lw.random_state(mech, rng, (3,))
    d_q, d_v = passive.derivatives(mech, q, v)
    still = passive.forces(mech, q, 0.0 * v)
    scale = np.abs(d_q).max()
    for k, e in enumerate(np.eye(mech.nv)):
        by_q = central(lambda s, e=e: passive.forces(mech, lw.integrate(mech, q, e, s), v))
        by_v = central(lambda s, e=e: passive.forces(mech, q, v + s * e))
        slope = central(lambda s, e=e: passive.energy(mech, lw.integrate(mech, q, e, s)))
        np.testing.assert_allclose(d_q[..., k], by_q, atol=1e-9 * scale)
        np.testing.assert_allclose(d_v[..., k], by_v, atol=1e-9 * scale)
        np.testing.assert_allclose(still[..., k], -slope, atol=1e-9 * scale)


def test_energy_is_conserved_on_a_loop():
    mech = lw.mechanisms.five_bar()
    q = lw.constraints.assemble(mech, [2.2, 1.8, 1.5, 1.9])
    first, last = mech.link_names[0], mech.link_names[-1]
    passive = lw.forces.Passive.spring_between(first, (0.2, 0.1, 0.0), last, (0.1, 0.3, 0.0), 40.0, 0.5)
    passive += lw.forces.Passive.cylinder_between("ground", (0.0, 2.0, 0.0), first, (0.4, 0.0, 0.0), force=3.0)
    motion = lw.simulate(
        mech, q, np.zeros(4), 1.0, passive=passive, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11)
    )
    assert np.ptp(motion.passive_energy) > 1.0
    assert np.abs(motion.energy - motion.energy[0]).max() < 1e-8 * np.ptp(motion.passive_energy)


def test_inner_struts_conserve_energy_and_momentum_of_a_floating_base():
    mech = lw.mechanisms.random_tree(4, 1, floating_base=True).with_gravity((0, 0, 0))
    q, v = lw.random_state(mech, np.random.default_rng(3))
    base, tip = mech.link_names[0], mech.link_names[-1]
    ends = (base, (0.3, 0.2, 0.1), tip, (1.0, 0.0, 0.5))
    motion = lw.simulate(
        mech,
        q,
        v,
        0.5,
        passive=lw.forces.Passive.spring_between(*ends, 50.0, 0.2),
        settings=lw.motion.Settings(rtol=1e-11, atol=1e-11),
    )
    assert np.ptp(motion.passive_energy) > 0.1
    assert np.abs(motion.energy - motion.energy[0]).max() < 1e-8 * np.abs(motion.energy).max()
    damped = lw.simulate(
        mech,
        q,
        v,
        0.5,
        passive=lw.forces.Passive.damper_between(*ends, 5.0),
        settings=lw.motion.Settings(rtol=1e-11, atol=1e-11),
    )
    assert damped.energy[-1] < damped.energy[0] - 1e-2 and (np.diff(damped.energy) < 1e-9).all()
    for one in (motion, damped):
        momentum = lw.momentum(mech, one.q, one.v)
        np.testing.assert_allclose(momentum[-1], momentum[0], atol=1e-8 * np.abs(momentum[0]).max())


@pytest.mark.parametrize("pushed", [{"force": 12.0}, {"pressure": 6e3, "area": 2e-3}])
def test_a_cylinder_lifts_a_mass(pushed):
    """Upwards it is a mass under a constant force and a damper: the speed approaches (F - m g) / d."""
    builder = lw.Builder().link("mass", 0.5, (0, 0, 0), (1, 1, 1))
    mech = builder.joint("slide", lw.Prismatic((0, 0, 1)), "ground", "mass").build("lift")
    passive = lw.forces.Passive.cylinder_between("ground", (0, 0, -1), "mass", (0, 0, 0), **pushed, damping=2.0)
    motion = lw.simulate(mech, [0.0], [0.0], 1.0, passive=passive, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11))
    limit = (12.0 - 0.5 * 9.81) / 2.0
    np.testing.assert_allclose(motion.v[:, 0], limit * (1.0 - np.exp(-2.0 / 0.5 * motion.t)), atol=1e-9)


def test_linear_models_and_equilibria_of_loops():
    """A four-bar linkage held by a spring: its slow swing has the frequency that the model says."""
    mech = lw.mechanisms.four_bar()
    passive = lw.forces.Passive.spring_between(
        "ground", (0.2, 1.5, 0.0), mech.link_names[1], (0.1, 0.2, 0.0), 80.0, 0.3
    )
    found = lw.find_equilibrium(mech, np.zeros(mech.nq), passive=passive, stable=True)
    model = lw.linearize(mech, found.q, passive=passive)
    assert model.is_equilibrium and found.stable
    (pace,) = model.modes().frequencies
    start, _ = model.joint_motion(np.array([1e-5, 0.0]))
    start = lw.constraints.assemble(mech, start)
    motion = lw.simulate(
        mech,
        start,
        np.zeros(mech.nv),
        2.0 * np.pi / pace,
        passive=passive,
        settings=lw.motion.Settings(rtol=1e-12, atol=1e-14),
    )
    np.testing.assert_allclose(motion.q[-1], motion.q[0], atol=2e-9)  # back after one period, but for second order
    half = motion.at(np.pi / pace)[0]
    np.testing.assert_allclose(half - found.q, found.q - motion.q[0], atol=2e-9)


def test_linear_models_of_trees_by_differences():
    mech = lw.mechanisms.random_tree(3, 5, joints=("revolute", "prismatic"))
    rng = np.random.default_rng(2)
    q, v = lw.random_state(mech, rng)
    passive = lw.forces.Passive(tuple(struts(mech, rng)))
    model, n = lw.linearize(mech, q, v, passive=passive), mech.nv

    def acceleration(q, v):
        return lw.forward_dynamics(mech, q, v, passive.forces(mech, q, v))

    scale = np.abs(model.A).max()
    for k, e in enumerate(np.eye(n)):
        np.testing.assert_allclose(
            model.A[n:, k], central(lambda s, e=e: acceleration(q + s * e, v)), atol=1e-8 * scale
        )
        np.testing.assert_allclose(
            model.A[n:, n + k], central(lambda s, e=e: acceleration(q, v + s * e)), atol=1e-8 * scale
        )


def test_springs_without_free_length_are_smooth_where_their_points_meet():
    builder = lw.Builder().link("body", 2.0, (0, 0, 0), (1, 1, 1))
    mech = builder.joint("base", lw.Floating(), "ground", "body").build("body", (0, 0, 0))
    passive = lw.forces.Passive.spring_between("ground", (0, 0, 0), "body", (0, 0, 0), 8.0)
    q = lw.neutral(mech)
    np.testing.assert_array_equal(passive.forces(mech, q, np.ones(6)), np.zeros(6))
    np.testing.assert_allclose(passive.derivatives(mech, q, np.ones(6))[0][3:, 3:], -8.0 * np.eye(3), atol=1e-15)
    motion = lw.simulate(
        mech,
        [1, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 0],
        1.0,
        passive=passive,
        settings=lw.motion.Settings(rtol=1e-11, atol=1e-11),
    )
    np.testing.assert_allclose(motion.q[:, 4], 0.5 * np.sin(2.0 * motion.t), atol=1e-9)


def test_mimic_joints():
    """A spring to a link behind a mimic joint acts on the joint that is mimicked, through both."""
    builder = lw.Builder()
    for name, parent in (("near", "ground"), ("far", "near")):
        builder.link(name, 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
        pose = (np.eye(3), (float(parent != "ground"), 0, 0))
        mimic = {} if name == "near" else {"mimic": lw.Mimic("near_joint", 2.0, 0.1)}
        builder.joint(f"{name}_joint", lw.Revolute((0, 0, 1)), parent, name, pose, **mimic)
    mech = builder.build("folding")
    passive = lw.forces.Passive.spring_between("far", (0.7, 0.1, 0.0), *ENDS, 10.0, 0.4)
    q = np.array([0.3])
    slope = central(lambda s: passive.energy(mech, q + s))
    np.testing.assert_allclose(passive.forces(mech, q, np.zeros(1)), [-slope], atol=1e-9)


def test_struts_come_back_from_files(tmp_path):
    mech = lw.mechanisms.planar_arm(2)
    tip = mech.link_names[-1]
    passive = lw.forces.Passive.spring_between(
        tip, np.array([0.5, 0, 0]), *ENDS, 10, 0.4, 0.1
    ) + lw.forces.Passive.dampers({mech.joint_names[0]: 0.2})
    again = lw.forces.Passive.from_data(json.loads(json.dumps(passive.to_data(), allow_nan=False)))
    assert again == passive and hash(again) == hash(passive)
    motion = lw.simulate(mech, [0.3, 0.4], [0.0, 0.0], 0.1, method="rk4", passive=passive)
    motion.save(tmp_path / "motion.npz")
    loaded = lw.files.load_trajectory(tmp_path / "motion.npz")
    assert loaded.passive == passive
    np.testing.assert_array_equal(loaded.resume(0.1).q, motion.resume(0.1).q)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: lw.forces.Passive.spring_between("a", (0, 0), "b", (0, 0, 0), 1.0),
            "point a of a strut between 'a' and 'b'",
        ),
        (lambda: lw.forces.Passive.spring_between("a", (0, 0, np.nan), "b", (0, 0, 0), 1.0), "three finite numbers"),
        (
            lambda: lw.forces.Passive.spring_between("a", (0, 0, 0), "b", (0, 0, 0), -1.0),
            "stiffness .* must not be negative",
        ),
        (
            lambda: lw.forces.Passive.spring_between("a", (0, 0, 0), "b", (0, 0, 0), "1"),
            "stiffness .* must be a finite number",
        ),
        (
            lambda: lw.forces.Passive.cylinder_between("a", (0, 0, 0), "b", (0, 0, 0)),
            "by force, or by pressure and area",
        ),
        (
            lambda: lw.forces.Passive.cylinder_between("a", (0, 0, 0), "b", (0, 0, 0), 1.0, 2.0, 3.0),
            "by force, or by pressure",
        ),
        (
            lambda: lw.forces.Passive.cylinder_between("a", (0, 0, 0), "b", (0, 0, 0), 1.0, 2.0),
            "by force, or by pressure",
        ),
    ],
)
def test_what_makes_no_strut(ask, message):
    with pytest.raises(MechanismError, match=message):
        ask()


def test_struts_that_do_not_fit_the_mechanism():
    mech = lw.mechanisms.planar_arm(2)
    tip = mech.link_names[-1]
    with pytest.raises(MechanismError, match="has no link or frame"):
        lw.forces.Passive.damper_between("nowhere", (0, 0, 0), tip, (0, 0, 0), 1.0).forces(mech, [0, 0], [0, 0])
    together = lw.forces.Passive.damper_between("ground", (1, 0, 0), tip, (0, 0, 0), 1.0)
    with pytest.raises(MechanismError, match="coincide, so that its force has no direction"):
        together.forces(mech, [0, 0], [0, 0])
    hinge = lw.forces.Passive.damper_between(mech.link_names[0], (1, 0, 0), tip, (0, 0, 0), 1.0)
    for ask in (
        lambda: hinge.forces(mech, [0.1, 0.2], [1.0, 0.5]),
        lambda: lw.rollout(mech, [0.1, 0.2], None, None, 0.01, 1, passive=hinge),
    ):
        with pytest.raises(MechanismError, match="coincide at every configuration .*Passive.dampers"):
            ask()
    with pytest.raises(TypeError, match="named by strings"):
        Strut(1, (0, 0, 0), "ground", (0, 0, 0))
