"""Closing loops, keeping them closed, and saying which loop stays open by how much."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.constraints import AssemblyError
from linkwise.constraints.sizes import sizes
from linkwise.mechanism import MechanismError

from .built_in import FREEDOMS, STRETCHED, SYMMETRIC, assembled, built, every_mechanism, random_state
from .random_loops import CLOSING, closed_at, with_loops


@every_mechanism
def test_assembly_from_a_rough_guess(name):
    mech = built(name)
    rng = np.random.default_rng(1)
    guess = lw.integrate(mech, assembled(name), 0.1 * rng.normal(size=(5, mech.nv)), 1.0)
    q = lw.constraints.assemble(mech, guess)
    assert np.linalg.norm(lw.constraints.position_error(mech, q), axis=-1).max() < 2e-14  # all but rounding
    assert (lw.constraints.degrees_of_freedom(mech, q) == FREEDOMS[name]).all()
    again = lw.constraints.assemble(mech, q)  # what is closed stays where it is
    np.testing.assert_allclose(again, q, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", CLOSING, ids=lambda kind: type(kind).__name__)
def test_every_kind_of_joint_closes_a_chain(kind):
    chain = lw.mechanisms.chain(7)
    q, _ = lw.random_state(chain, np.random.default_rng(3))
    mech = with_loops(chain, closed_at(chain, q, kind, "ground", "link7"))
    found = lw.constraints.assemble(mech, q + 0.05)
    assert np.linalg.norm(lw.constraints.position_error(mech, found)) <= 1e-11
    assert lw.constraints.degrees_of_freedom(mech, found) == 7 - (6 - kind.nv)


def test_held_joints_stay():
    mech = built("loader")
    q = lw.constraints.assemble(mech, np.full(8, 0.05), hold=("lift_piston_joint", "tilt_piston_joint"))
    for joint in ("lift_piston_joint", "tilt_piston_joint"):
        assert q[mech.q_index(joint)] == 0.05
    with pytest.raises(MechanismError, match="no moving joint 'lift'"):
        lw.constraints.assemble(mech, q, hold=("lift",))
    one = lw.constraints.assemble(mech, np.full(8, 0.05), hold="lift_piston_joint")  # a single name stands for itself
    np.testing.assert_array_equal(one, lw.constraints.assemble(mech, np.full(8, 0.05), hold=("lift_piston_joint",)))
    with pytest.raises(MechanismError, match="no moving joint 'lift'"):
        lw.constraints.assemble(mech, q, hold="lift")


def in_line():
    """A crank-rocker whose links all lie on one line where its coordinates are zero: the error is stationary there."""
    builder = lw.Builder()
    for link, length in (("crank", 0.3), ("coupler", 0.9), ("rocker", 0.8)):
        builder.link(link, length, (0.5 * length, 0.0, 0.0))
    builder.joint("A", lw.Revolute(), "ground", "crank").joint("B", lw.Revolute(), "crank", "coupler", (0.3, 0, 0))
    builder.joint("D", lw.Revolute(), "ground", "rocker", (1.0, 0.0, 0.0))
    return builder.loop("C", lw.Revolute(), "coupler", (0.9, 0, 0), "rocker", (0.8, 0, 0)).build()


def pins_meet(q):
    """The same closure, by plane trigonometry."""
    a, b, d = q
    coupler = [0.3 * np.cos(a) + 0.9 * np.cos(a + b), 0.3 * np.sin(a) + 0.9 * np.sin(a + b)]
    np.testing.assert_allclose(coupler, [1.0 + 0.8 * np.cos(d), 0.8 * np.sin(d)], atol=1e-11)


def test_links_in_one_line_are_assembled():
    mech = in_line()
    with pytest.raises(AssemblyError, match="cannot be closed from this guess: an error of 0.6 remains"):
        lw.constraints.assemble(mech, lw.neutral(mech), tries=1)
    q = lw.constraints.assemble(mech, lw.neutral(mech))
    pins_meet(q)
    np.testing.assert_array_equal(lw.constraints.assemble(mech, lw.neutral(mech)), q)  # the same guesses every time
    held = lw.constraints.assemble(mech, np.zeros((2, 3)) + [[0.0], [0.2]], hold="A")
    assert held[:, 0].tolist() == [0.0, 0.2]
    for one in held:
        pins_meet(one)
    assert lw.linkages.range_of_motion(mech, "A").upper == np.inf  # Grashof: 0.3 + 1.0 < 0.9 + 0.8
    with pytest.raises(AssemblyError, match="nor from 39 others around it while 'A', 'D' stay as they are"):
        lw.constraints.assemble(mech, lw.neutral(mech), hold=("A", "D"))


@pytest.mark.parametrize("seed", range(5))
def test_random_states_are_assembled_and_projected(seed):
    """As ``random_state`` says: it leaves loops open."""
    mech = in_line()
    q, v = lw.random_state(mech, np.random.default_rng(seed))
    assert np.linalg.norm(lw.constraints.position_error(mech, q)) > 1e-3
    q, v = lw.constraints.project(mech, lw.constraints.assemble(mech, q), v)
    pins_meet(q)
    moved = lw.integrate(mech, q, v, 1e-6)
    assert np.linalg.norm(lw.constraints.position_error(mech, moved)) < 1e-10  # of second order


def test_one_name_stands_for_itself_wherever_joints_are_named():
    mech = in_line()
    q = lw.constraints.assemble(mech, lw.neutral(mech))
    still, one = np.zeros(3), ("A",)
    np.testing.assert_array_equal(
        lw.constraints.null_space(mech, q, independent="A"), lw.constraints.null_space(mech, q, independent=one)
    )
    np.testing.assert_array_equal(
        lw.inverse_dynamics(mech, q, still, [0.5], independent="A", actuated="A"),
        lw.inverse_dynamics(mech, q, still, [0.5], independent=one, actuated=one),
    )
    for ask in (
        lambda: lw.constraints.null_space(mech, q, independent="Zed"),
        lambda: lw.inverse_dynamics(mech, q, still, still, actuated="Zed"),
    ):
        with pytest.raises(MechanismError, match="no moving joint 'Zed'"):
            ask()


def test_unknown_names_are_reported_before_loops_that_stay_open():
    builder = lw.Builder().link("rod", 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1)).joint("hinge", lw.Revolute(), "ground", "rod")
    mech = builder.loop("too_far", lw.Spherical(), "ground", (2.0, 0.0, 0.0), "rod", (1.0, 0.0, 0.0)).build()
    for ask in (
        lambda: lw.linkages.range_of_motion(mech, "Z"),
        lambda: lw.linkages.range_of_motion(mech, "hinge", hold="Z"),
        lambda: lw.linkages.singular_positions(mech, "Z"),
        lambda: lw.linkages.singular_positions(mech, "hinge", outputs="Z"),
        lambda: lw.linkages.workspace(mech, ("hinge", "Z")),
        lambda: lw.linkages.workspace(mech, ("rod.x", "rod.y"), inputs=("hinge", "Z")),
    ):
        with pytest.raises(MechanismError, match="has no coordinate 'Z'"):
            ask()


def test_unreachable_assemblies_name_loop_and_residual():
    mech = built("four_bar")
    with pytest.raises(AssemblyError, match="loop 'pin' .* while 'rocker_joint' stay .*: an error of") as caught:
        lw.constraints.assemble(mech, [0.0, 0.0, -2.0], hold=("rocker_joint",))
    assert caught.value.loop == "pin"
    # The rocker's end is out of reach of the stretched or folded crank and coupler: what remains is that distance.
    end = lw.frame_pose(mech, caught.value.q, "rocker") @ [*mech.loops[0].pose_b[1], 1.0]
    reach = np.linalg.norm(end[:3])
    assert caught.value.residual == pytest.approx(max(reach - 1.2, 0.6 - reach), rel=1e-6)


def test_impossible_and_contradictory_loops():
    builder = lw.Builder().link("rod", 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1)).joint("hinge", lw.Revolute(), "ground", "rod")
    builder.loop("too_far", lw.Spherical(), "ground", (None, (2.0, 0.0, 0.0)), "rod", (None, (1.0, 0.0, 0.0)))
    with pytest.raises(AssemblyError, match="loop 'too_far' .* error of 1 remains"):
        lw.constraints.assemble(builder.build(), [0.3])
    builder.loop("elsewhere", lw.Spherical(), "ground", (None, (0.0, 1.4, 0.0)), "rod", (None, (1.0, 0.0, 0.0)))
    with pytest.raises(AssemblyError, match="loop 'too_far'"):  # either could be met halfway, not both
        lw.constraints.assemble(builder.build(), [0.3])


def test_wrong_frames_close_back_to_back():
    """A revolute loop whose axis points the other way on one side closes only as a mirror image."""
    good = built("four_bar")
    flipped = np.diag((1.0, -1.0, -1.0))
    loop = good.loops[0]
    mech = with_loops(
        good, type(loop)(loop.name, loop.kind, loop.link_a, loop.pose_a, loop.link_b, (flipped, loop.pose_b[1]))
    )
    with pytest.raises(AssemblyError, match="loop 'pin' .* closes back to back") as caught:
        lw.constraints.assemble(mech, np.zeros(3))
    assert caught.value.loop == "pin" and caught.value.residual == pytest.approx(2.0)


def test_axes_that_no_configuration_aligns():
    good = built("four_bar")
    tilted = np.array([[1.0, 0.0, 0.0], [0.0, 0.8, -0.6], [0.0, 0.6, 0.8]])
    loop = good.loops[0]
    mech = with_loops(
        good, type(loop)(loop.name, loop.kind, loop.link_a, (tilted, loop.pose_a[1]), loop.link_b, loop.pose_b)
    )
    with pytest.raises(AssemblyError, match="loop 'pin' .* error of 0.6 remains"):
        lw.constraints.assemble(mech, np.zeros(3))


def test_a_batch_names_the_state():
    with pytest.raises(AssemblyError, match="of state 1 cannot be closed"):
        lw.constraints.assemble(built("four_bar"), [[0.0, 0.0, 0.0], [0.0, 0.0, -2.0]], hold=("rocker_joint",))


@pytest.mark.seed("spencer2004", "3.10", by="library")
@pytest.mark.seed("spencer2004", "3.11", by="library")
@every_mechanism
def test_projection_moves_the_least(name):
    """The change is square to all motions that keep the loops closed, to first order in its size, with lengths in units
    of the loops' sizes."""
    mech = built(name)
    q, v = random_state(name, 1)
    rng = np.random.default_rng(2)
    size = 1e-4
    off = lw.integrate(mech, q, size * rng.normal(size=mech.nv), 1.0)
    inconsistent = v + size * rng.normal(size=mech.nv)
    on, consistent = lw.constraints.project(mech, off, inconsistent)
    assert np.linalg.norm(lw.constraints.position_error(mech, on)) <= 1e-11
    np.testing.assert_allclose(lw.constraints.constraint_jacobian(mech, on) @ consistent, 0.0, atol=1e-11)
    free = (lw.constraints.null_space(mech, on).T / sizes(mech).columns ** 2).T
    np.testing.assert_allclose(free.T @ lw.difference(mech, off, on), 0.0, atol=100.0 * size**2)
    np.testing.assert_allclose(free.T @ (consistent - inconsistent), 0.0, atol=1e-11)


@pytest.mark.seed("spencer2004", "Projection, energy included", by="library")
def test_projection_onto_an_energy():
    for name in ("five_bar", "bricard", "stewart_platform"):
        mech = built(name)
        q, v = random_state(name, 1)
        energy = lw.kinetic_energy(mech, q, v) + lw.potential_energy(mech, q)
        for wanted, speed in ((energy + 0.01, v), (lw.potential_energy(mech, q) - 1e-3, 0.0 * v)):
            on, moving = lw.constraints.project(mech, q, speed, energy=wanted)
            found = lw.kinetic_energy(mech, on, moving) + lw.potential_energy(mech, on)
            assert found == pytest.approx(wanted, abs=1e-10)
            assert np.linalg.norm(lw.constraints.position_error(mech, on)) <= 1e-11
            np.testing.assert_allclose(lw.constraints.constraint_jacobian(mech, on) @ moving, 0.0, atol=1e-10)
    # Hanging down at rest there is no way to less energy.
    with pytest.raises(MechanismError, match="cannot have the energy -10 near"):
        lw.constraints.project(lw.mechanisms.planar_arm(1), [-np.pi / 2], [0.0], energy=-10.0)


def test_an_energy_that_positions_alone_cannot_reach():
    """Velocities make up for it where positions would go too far; a batch says which of its states cannot."""
    mech = built("five_bar")
    q, v = random_state("five_bar", 1)
    slow = np.array([0.1, 0.2, 1.0])[:, None] * v
    wanted = lw.potential_energy(mech, q) + 50.0
    on, moving = lw.constraints.project(mech, q, slow, energy=wanted)
    assert on.shape == moving.shape == (3, 4)
    np.testing.assert_allclose(lw.kinetic_energy(mech, on, moving) + lw.potential_energy(mech, on), wanted, rtol=1e-12)
    assert np.abs(on - q).max() <= 0.1
    assert [x.shape for x in lw.constraints.project(mech, q, slow)] == [(3, 4), (3, 4)]
    with pytest.raises(MechanismError, match=r"cannot have the energy \S+ near state 1: 50 are missing"):
        lw.constraints.project(mech, q, [v, 0.0 * v], energy=[wanted, wanted])
    with pytest.raises(MechanismError, match=r"v has shape \(3,\), expected \(..., 4\)"):
        lw.constraints.project(mech, q, v[:3])


def test_projection_refuses_to_jump():
    mech = built("five_bar")
    with pytest.raises(AssemblyError, match="closing loop 'support' .* would move a coordinate by"):
        lw.constraints.project(mech, SYMMETRIC + [0.5, 0.0, 0.0, 0.0], np.zeros(4))


def test_following_a_crank_keeps_the_branch():
    mech = built("four_bar")
    q = np.zeros(3)
    for turn in range(1, 3):  # the crank of a crank-rocker goes round, the rocker comes back
        q = lw.linkages.follow(mech, q, {"crank_joint": 2.0 * np.pi * turn})
        np.testing.assert_allclose(q, [2 * np.pi * turn, -2 * np.pi * turn, 0.0], atol=1e-10)
    with pytest.raises(
        AssemblyError, match="loop 'pin' .* locks after .* 'rocker_joint' cannot be driven further"
    ) as caught:
        lw.linkages.follow(mech, np.zeros(3), {"rocker_joint": -2.0})
    with pytest.raises(AssemblyError, match="loop 'pin' .* is open by .* at the start"):
        lw.linkages.follow(mech, np.array([0.5, 0.0, 0.0]), {"crank_joint": 1.0})
    # It locks where crank and coupler are in line.
    crank, coupler = np.pi / 2, np.arctan2(*mech.bodies[1].com[[1, 0]])  # directions at q = 0
    assert np.sin(caught.value.q[1] + coupler - crank) == pytest.approx(0.0, abs=1e-3)


def test_generic_rank_sees_past_singular_positions():
    mech = built("five_bar")
    assert lw.constraints.degrees_of_freedom(mech, STRETCHED) == 3 and lw.constraints.generic_rank(mech, STRETCHED) == 2
    assert lw.constraints.generic_rank(built("bricard"), np.zeros(5)) == 4


def test_follow_to_where_it_is_and_one_position_at_a_time():
    mech = lw.mechanisms.four_bar()
    q = lw.constraints.assemble(mech, np.zeros(3)) + [0.0, 1e-14, -1e-13]  # closed, but not to the last bit
    np.testing.assert_allclose(lw.linkages.follow(mech, q, {"crank_joint": q[0]}), q, atol=1e-11)
    with pytest.raises(lw.MechanismError, match="'crank_joint' must be 1 number, one position"):
        lw.linkages.follow(mech, q, {"crank_joint": np.linspace(0.0, 1.0, 30)})


def test_a_path_goes_from_target_to_target():
    mech = lw.mechanisms.four_bar()
    angles = np.linspace(0.0, 2.0 * np.pi, 25)
    path = lw.linkages.follow_path(mech, np.zeros(3), {"crank_joint": angles})
    np.testing.assert_array_equal(path[:, 0], angles)
    assert np.abs(lw.constraints.position_error(mech, path)).max() < 1e-12
    assert np.abs(np.diff(path[:, 2])).max() < 0.3  # on one branch
    np.testing.assert_allclose(path[-1], [2.0 * np.pi, -2.0 * np.pi, 0.0], atol=1e-9)
    with pytest.raises(lw.MechanismError, match="as many targets of each joint, not 2 of 'crank_joint', 1 of 'rocker"):
        lw.linkages.follow_path(mech, np.zeros(3), {"crank_joint": [0.0, 0.1], "rocker_joint": [0.0]})
    locks = lw.mechanisms.four_bar(0.8, 0.7, 0.6, 1.0)
    with pytest.raises(lw.constraints.AssemblyError, match="'crank_joint' is at 0.0312551"):  # where its range ends
        lw.linkages.follow_path(locks, lw.constraints.assemble(locks), {"crank_joint": [0.0, 0.02, 0.1]})


def test_without_a_guess_it_starts_from_the_initial_configuration():
    mech = lw.mechanisms.four_bar()
    turned = mech.metadata.with_initial(lw.configuration(mech, crank_joint=0.4))
    assert turned == mech and turned.initial[0] == 0.4  # nothing of its dynamics has changed
    np.testing.assert_allclose(lw.constraints.assemble(turned), turned.initial, atol=1e-12)
    np.testing.assert_allclose(lw.constraints.assemble(mech), np.zeros(3), atol=1e-12)
    assert (
        lw.constraints.degrees_of_freedom(mech) == 1
        and lw.constraints.degrees_of_freedom(lw.mechanisms.five_bar()) == 2
    )
    found = lw.linkages.range_of_motion(
        turned.with_limits({"crank_joint": lw.Limits(0.3, 0.5)}), "crank_joint", limits=True
    )
    assert (found.lower, found.upper) == pytest.approx((0.3, 0.5))
    again = turned.metadata.with_initial({"crank_joint": 0.5})
    np.testing.assert_array_equal(again.initial, [0.5, *turned.initial[1:]])
    with pytest.raises(lw.MechanismError, match="the initial configuration of mechanism 'four_bar' must have shape"):
        mech.metadata.with_initial([0.1])


def test_a_guess_by_joint_keeps_what_it_names_where_it_can():
    mech = lw.mechanisms.four_bar()
    q = lw.constraints.assemble(mech, {"crank_joint": 0.9})
    assert q[0] == 0.9 and np.abs(lw.constraints.position_error(mech, q)).max() < 1e-9
    both = lw.constraints.assemble(
        mech, {"crank_joint": 0.9, mech.joint_names[1]: 0.1}
    )  # one too many: a guess for both
    assert np.abs(lw.constraints.position_error(mech, both)).max() < 1e-9 and both[0] != 0.9


def test_a_straight_line_by_seven_bars():
    """Peaucellier's linkage, whose links are in one line at zero: the tip goes straight, by dynamics too."""
    c, long, side = 0.3, 1.0, 0.5
    builder = lw.Builder()
    bars = {"crank": c, "a": long, "c": long, "ab": side, "cb": side, "ad": side, "cd": side}
    for name, length in bars.items():
        builder.link(name, 1.0, (length / 2, 0, 0), (1e-4, length**2 / 12, length**2 / 12))
    places = {"crank": ("ground", (c, 0, 0)), "a": ("ground", None), "c": ("ground", None)}
    places |= {name: (name[0], (long, 0, 0)) for name in ("ab", "cb", "ad", "cd")}
    for name, (parent, at) in places.items():
        builder.joint(f"{name}_joint", lw.Revolute(), parent, name, at)
    for one, other in (("crank", "ab"), ("crank", "cb"), ("ad", "cd")):
        builder.loop(f"{one}_{other}", lw.Revolute(), one, (bars[one], 0, 0), other, (side, 0, 0))
    mech = builder.frame("tip", "ad", (side, 0, 0)).build("peaucellier", (0.0, -9.81, 0.0))
    guess = dict(zip(mech.joint_names, (0.3, 0.6, -0.6, -2.6, 2.6, -1.0, 1.0), strict=True))
    start = lw.constraints.assemble(mech, guess)
    assert lw.constraints.degrees_of_freedom(mech, start) == 1
    v = lw.constraints.null_space(mech, start)[:, 0]
    found = lw.forward_dynamics(mech, start, v, np.ones(7))
    np.testing.assert_allclose(found, lw.forward_dynamics(mech, start, v, np.ones(7), method="svd"), atol=1e-9)
    q, v = lw.rollout(mech, start, None, None, 1e-3, 200)
    tips = lw.frame_pose(mech, q, "tip")[:, :2, 3]
    np.testing.assert_allclose(tips[:, 0], (long**2 - side**2) / (2 * c), atol=1e-9)
    assert np.ptp(tips[:, 1]) > 0.01
    energy = lw.kinetic_energy(mech, q, v) + lw.potential_energy(mech, q)
    assert np.ptp(energy) < 1e-6
