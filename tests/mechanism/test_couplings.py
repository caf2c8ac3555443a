"""Couplings: linear constraints among the loops of a mechanism, everywhere that loops are known."""

import json
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import Mimic, from_data, to_data
from linkwise.mechanism.clusters import clusters

INERTIA = (0.02, 0.03, 0.04)


def builder(elbow=None):
    """Two links in a row, a slide beside them, and a ball."""
    made = lw.Builder()
    for name in ("upper", "fore", "cart", "wheel", "head"):
        made.link(name, 1.0, (0.1, 0.02, 0.03), INERTIA)
    made.joint("shoulder", lw.Revolute((0, 1, 0)), "ground", "upper")
    made.joint("elbow", lw.Revolute((0, 1, 0)), "upper", "fore", (0.4, 0, 0), mimic=elbow)
    made.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "cart")
    made.joint("roll", lw.Revolute((0, 1, 0)), "cart", "wheel", mimic=Mimic("slide", -10.0, 0.5))
    made.joint("neck", lw.Spherical(), "fore", "head", (0.4, 0, 0))
    return made


def winch():
    """A belt over the shoulder pulls the cart."""
    return builder().coupling("belt", {"shoulder": 0.1, "elbow": 0.1, "slide": -1.0}, 0.05).build()


def test_it_is_one_constraint_among_those_of_loops():
    mech = winch()
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech.spanning_tree, rng, (7,))
    at = [mech.q_index(name).start for name in ("shoulder", "elbow", "slide")]
    expected = q[:, at] @ [0.1, 0.1, -1.0] - 0.05
    assert mech.n_constraints == 1 and mech.constraints.rows("belt") == slice(0, 1)
    assert np.allclose(lw.constraints.position_error(mech, q)[:, 0], expected, atol=1e-15)
    row = np.zeros(mech.nv)
    row[[mech.v_index(name).start for name in ("shoulder", "elbow", "slide")]] = 0.1, 0.1, -1.0
    assert np.array_equal(lw.constraints.constraint_jacobian(mech, q), np.broadcast_to(row, (7, 1, mech.nv)))
    assert not lw.constraints.constraint_bias(mech, q, v).any()
    assert mech.spanning_tree.n_constraints == 0 and mech.spanning_tree == builder().build()


def test_own_coordinates_of_mimic_joints_count():
    mech = builder().coupling("gear", {"elbow": 2.0, "roll": 1.0}, 0.2).build()
    q = np.zeros(mech.nq)
    q[mech.q_index("elbow")], q[mech.q_index("slide")] = 0.3, 0.7
    assert lw.constraints.position_error(mech, q) == pytest.approx([2.0 * 0.3 + (-10.0 * 0.7 + 0.5) - 0.2])
    row = lw.constraints.constraint_jacobian(mech, q)[0]
    assert row[mech.v_index("elbow")] == 2.0 and row[mech.v_index("slide")] == -10.0


def test_a_coupling_of_two_joints_moves_as_a_mimic_joint():
    """Two descriptions of one mechanism: constraint and coordinate of its own, or none."""
    free = builder().coupling("gear", {"elbow": 1.0, "shoulder": -3.0}, 0.4).build()
    tied = builder(Mimic("shoulder", 3.0, 0.4)).build()
    rng = np.random.default_rng(1)
    q, v = lw.random_state(tied, rng)
    tau = rng.normal(size=free.nv)
    elbow, shoulder = free.v_index("elbow").start, free.v_index("shoulder").start
    whole_q, whole_v = np.insert(q, elbow, 3.0 * q[0] + 0.4), np.insert(v, elbow, 3.0 * v[0])
    of_tied = np.delete(tau, elbow)
    of_tied[shoulder] += 3.0 * tau[elbow]
    expected = lw.forward_dynamics(tied, q, v, of_tied)
    for method in ("svd", "lagrange", "tangent"):
        found = lw.forward_dynamics(free, whole_q, whole_v, tau, method=method)
        assert np.allclose(found, np.insert(expected, elbow, 3.0 * expected[0]), rtol=1e-9, atol=1e-9)


def test_beside_a_loop():
    mech = lw.mechanisms.five_bar()
    first, *_, last = mech.joint_names
    geared = mech.with_loops(lw.constraints.Coupling("gear", {first: 1.0, last: 1.0}, 0.3))
    assert geared.n_constraints == mech.n_constraints + 1 and "1 loop, 1 coupling" in repr(geared)
    q = lw.constraints.assemble(geared, [2.0, 2.0, 1.4, 2.0])
    assert abs(q[0] + q[-1] - 0.3) < 1e-9 and lw.constraints.degrees_of_freedom(geared, q) == 1
    reactions = lw.constraints.loop_reactions(geared, q, np.zeros(4), np.zeros(4))
    assert reactions.shape == (2, 6) and reactions[0].any() and not reactions[1].any()
    motion = lw.simulate(geared, q, np.zeros(4), 0.2)
    assert motion.constraint_error.max() < 1e-8 and np.ptp(motion.energy) < 1e-6
    assert np.abs(motion.q[:, 0] + motion.q[:, -1] - 0.3).max() < 1e-8


def test_files_and_pickles_keep_it():
    mech = winch()
    for again in (from_data(json.loads(json.dumps(to_data(mech)))), pickle.loads(pickle.dumps(mech))):
        assert again == mech and hash(again) == hash(mech) and again.loops == mech.loops
    assert mech != builder().coupling("belt", {"shoulder": 0.1, "elbow": 0.1, "slide": -1.0}, 0.06).build()


def test_locked_joints_become_a_constant():
    mech = winch().with_locked(elbow=0.5)
    assert mech.loops == (lw.constraints.Coupling("belt", {"shoulder": 0.1, "slide": -1.0}, 0.05 - 0.1 * 0.5),)
    with pytest.raises(lw.MechanismError, match="makes all joints of coupling 'belt' parts of one rigid body"):
        mech.with_locked(shoulder=0.0, slide=0.0)


def test_dynamics_keeps_it_and_the_inverse_of_the_mass_matrix_refuses_it():
    q = lw.constraints.assemble(winch(), lw.neutral(winch()))
    a = lw.forward_dynamics(winch(), q)
    assert np.abs(lw.constraints.constraint_jacobian(winch(), q) @ a).max() < 1e-9 < np.abs(a).max()
    with pytest.raises(lw.MechanismError, match="would ignore the loops .belt.*spanning_tree"):
        lw.mass_matrix_inverse(winch(), q)


def test_motors_stay_away_from_what_others_determine():
    """By default as many joints of a coupling have motors as it has degrees of freedom."""
    chosen = lw.control.joint_feedback(winch(), lw.neutral(winch()), 1.0, 0.1).actuated_joints
    assert set(chosen) >= {"neck"} and len(set(chosen) & {"shoulder", "elbow", "slide"}) == 2


@pytest.mark.parametrize(
    ("ratios", "message"),
    [
        ({"shoulder": 1.0, "elbov": 1.0}, "coupling 'x': .* has no moving joint 'elbov': did you mean 'elbow'"),
        ({"shoulder": 1.0, "neck": 1.0}, "joint 'neck' needs one coordinate whose rate is its velocity"),
        ({"slide": 10.0, "roll": 1.0}, "coupling 'x' of 'slide', 'roll' constrains nothing"),
        ({}, "needs a ratio for each of its joints, one of them not zero"),
        ({"shoulder": 0.0}, "needs a ratio for each of its joints, one of them not zero"),
        ((("elbow", 1.0), ("elbow", 2.0)), "needs a ratio for each of its joints"),
        ({"shoulder": float("nan")}, "a ratio of coupling 'x'"),
        ("shoulder", "ratios are {joint name: ratio}, not 'shoulder'"),
        (3.0, "ratios are {joint name: ratio}, not 3.0"),
    ],
)
def test_what_cannot_be_coupled_is_refused(ratios, message):
    with pytest.raises(lw.MechanismError, match=message):
        builder().coupling("x", ratios).build()


def test_names_are_those_of_loops():
    made = builder().coupling("x", {"elbow": 1.0})
    with pytest.raises(lw.MechanismError, match="two loops named 'x'"):
        made.loop("x", lw.Fixed(), "fore")
    with pytest.raises(
        lw.MechanismError, match="linkwise.constraints.Loop and Coupling objects one by one, got a dict"
    ):
        winch().with_loops({"elbow": 1.0})


def test_a_cluster_has_what_is_between_its_joints():
    """The belt ties both links of the arm and the cart, and by its mimic joint the wheel; the head moves by itself."""
    tied, head = clusters(winch())
    names = winch().link_names
    assert [names[i] for i in tied.bodies] == ["upper", "fore", "cart", "wheel"] and tied.parent == -1
    assert tied.rows == (0,) and [names[i] for i in head.bodies] == ["head"]
    apart = builder().coupling("belt", {"shoulder": 1.0, "slide": 1.0}).build()
    assert [[names[i] for i in one.bodies] for one in clusters(apart)][0] == ["upper", "cart", "wheel"]


def gears(mimic):
    builder = lw.Builder()
    for name, place in (("pinion", (0.0, 0.0, 0.0)), ("wheel", (0.3, 0.0, 0.0))):
        rule = lw.Mimic("pinion", -0.5) if mimic and name == "wheel" else None
        builder.link(name, 1.0, inertia=(0.01, 0.01, 0.02))
        builder.joint(name, lw.Revolute((0.0, 0.0, 1.0)), "ground", name, place, mimic=rule)
    builder = builder if mimic else builder.coupling("mesh", {"pinion": 0.1, "wheel": 0.2})
    return builder.build("gears", gravity=(0.0, 0.0, 0.0))


@pytest.mark.parametrize("mimic", [False, True])
def test_forces_of_teeth_are_added_to_bearings(mimic):
    """As docs/closed.md has it: with radii as ratios the multiplier is the force of the teeth, and as wrenches on both
    gears it takes the coupling's place.  By hand: I a = torque + radius * force, 0.1 a1 + 0.2 a2 = 0."""
    mech, torques, angle = gears(mimic), np.array([5.0, 3.0]), np.radians(20.0)
    rates = np.linalg.solve(
        [[0.02, 0.0, -0.1], [0.0, 0.02, -0.2], [0.1, 0.2, 0.0]], [torques[0], torques[1], 0.0]
    )  # accelerations of the gears, and the force of the teeth on the pinion along y
    load = lw.forces.wrenches_at(mech, {"wheel": [0.0, 0.0, torques[1], 0.0, 0.0, 0.0]})
    if mimic:
        q, v = np.array([0.7]), np.array([4.0])
        a = lw.forward_dynamics(mech, q, v, torques[:1], load)
        across = (lw.joint_wrenches(mech, q, v, a, load)[1, 2]) / 0.2
    else:
        q, v, tau = np.array([0.7, -0.35]), np.array([4.0, -2.0]), np.array([5.0, 0.0])
        across = -lw.constraints.multipliers(mech, q, v, tau, wrenches=load)[0]
    assert across == pytest.approx(rates[2])
    apart = abs(across) * np.tan(angle)
    on = {"pinion": [0, 0, 0.1 * across, -apart, across, 0], "wheel": [0, 0, 0.2 * across, apart, -across, 0]}
    both = load + lw.forces.wrenches_at(mech, on, q, frame="world_aligned")
    if mimic:
        np.testing.assert_allclose(lw.forward_dynamics(mech, q, v, torques[:1], both), a, rtol=1e-12)
        found = lw.joint_wrenches(mech, q, v, a, both)
    else:
        assert lw.constraints.multipliers(mech, q, v, tau, wrenches=both)[0] == pytest.approx(0.0, abs=1e-9)
        a = lw.forward_dynamics(mech, q, v, tau, wrenches=both)
        np.testing.assert_allclose(a, rates[:2], rtol=1e-9)
        found = lw.joint_wrenches(mech, q, v, tau=tau, wrenches=both)
    np.testing.assert_allclose(np.linalg.norm(found[:, 3:], axis=1), abs(rates[2]) / np.cos(angle), rtol=1e-9)
