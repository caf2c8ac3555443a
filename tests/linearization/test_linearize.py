"""A, B and drift against central differences of forward dynamics on the manifold, for every kind of joint and loop."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import rate_jacobian
from linkwise.dynamics.derivatives import jacobian_of
from linkwise.mechanism import MechanismError

from ..constraints.built_in import STRETCHED, assembled, built, every_mechanism, random_state
from ..constraints.random_loops import CLOSING, closed_at, with_loops
from .differences import Neighbourhood, close, matched


def check(mech, q, v, tau, choice=None, passive=None, wrenches=None, tolerance=1e-8) -> lw.control.StateSpace:
    """The model, compared with the oracle."""
    model = lw.linearize(mech, q, v, tau, choice, passive=passive, wrenches=wrenches)
    a, b, drift = Neighbourhood(mech, q, v, tau, model.rows, passive, wrenches).model()
    close(model.A, a, tolerance)
    close(model.B, b, tolerance)
    close(model.drift, drift, tolerance)
    return model


@pytest.mark.slow_cases("stewart_platform", "delta_robot")
@every_mechanism
def test_closed_mechanisms(name):
    mech = built(name)
    q, v = random_state(name, 1)
    tau = np.random.default_rng(5).normal(size=mech.nv)
    check(mech, q, v, tau)
    check(mech, q, v, tau, "null_space")


def test_closed_mechanism_with_springs_dampers_and_wrenches():
    mech, rng = built("five_bar"), np.random.default_rng(0)
    q, v = random_state("five_bar", 2)
    passive = lw.forces.Passive.springs({"joint2": 30.0}, rest={"joint2": 1.0}) + lw.forces.Passive.dampers(
        {"joint1": 2.0, "joint4": 0.5}
    )
    wrenches = rng.normal(size=(4, 6))
    rows = np.eye(4)[[0, 3]] + 0.1 * rng.normal(size=(2, 4))
    plain = check(mech, q, v, rng.normal(size=4), rows)
    loaded = check(mech, q, v, plain.tau, rows, passive, wrenches)
    assert np.abs(loaded.A - plain.A).max() > 0.1


@pytest.mark.parametrize("case", [(1, 0, True), (2, 1, False), (3, 3, True), (4, 7, False)], ids=str)
def test_trees_of_all_joints_at_speed(case):
    n, seed, floating = case
    mech = lw.mechanisms.random_tree(n, seed, floating_base=floating)
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng)
    model = check(mech, q, v, rng.normal(size=mech.nv), wrenches=rng.normal(size=(mech.n_links, 6)))
    assert model.form == "local" and len(model.state_names) == 2 * mech.nv
    by_q, by_v, by_tau = lw.forward_dynamics_derivatives(mech, q, v, model.tau)
    plain = lw.linearize(mech, q, v, model.tau)
    close(plain.A[mech.nv :], np.hstack([by_q, by_v]), 1e-9)
    close(plain.B[mech.nv :], by_tau, 1e-9)
    close(rate_jacobian(mech, q, v, model.tau), plain.A, 1e-12)


def test_linear_combinations_as_coordinates_of_a_tree():
    mech, rng = lw.mechanisms.random_tree(3, 2, floating_base=True), np.random.default_rng(1)
    q, v = lw.random_state(mech, rng)
    tau, rows = rng.normal(size=mech.nv), rng.normal(size=(mech.nv, mech.nv))
    model = check(mech, q, v, tau, rows)
    whole = lw.linearize(mech, q, v, tau, rows, form="underlying")
    close(whole.A, lw.linearize(mech, q, v, tau).A, 1e-9)
    assert model.independent[0] == "y1"


@pytest.mark.slow_cases("PinInSlot", "Prismatic", "Cylindrical", "Planar", "Revolute")
@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("kind", CLOSING, ids=lambda kind: type(kind).__name__)
def test_loops_of_every_kind_with_joints_that_turn_freely(kind):
    """A ball and joints of several degrees of freedom on the way around the loop, all moving."""
    tree = _chain_of((lw.Spherical(), lw.Universal((1.0, 0.0, 0.0), (0.0, 1.0, 0.3)), lw.Planar((0.3, 0.0, 1.0))))
    rng = np.random.default_rng(4)
    q, _ = lw.random_state(tree, rng)
    mech = with_loops(tree, closed_at(tree, q, kind, "ground", tree.link_names[-1], seed=3))
    q, v = lw.constraints.project(mech, q, 0.5 * rng.normal(size=mech.nv))
    check(mech, q, v, rng.normal(size=mech.nv), tolerance=1e-7)


def _chain_of(kinds) -> lw.Mechanism:
    builder, parent = lw.Builder(), "ground"
    for i, kind in enumerate(kinds):
        builder.link(f"link{i}", 1.0 + 0.3 * i, (0.1, 0.2 - 0.1 * i, 0.05), (0.1, 0.15, 0.12))
        builder.joint(f"joint{i}", kind, parent, f"link{i}", (None, (0.3, 0.1, -0.2)))
        parent = f"link{i}"
    return builder.build("mixed_chain")


def test_mimic_joints_and_armature():
    mech = lw.Builder()
    mech.link("a", 1.0, (0.3, 0, 0), (0.1, 0.1, 0.1)).joint("a", lw.Revolute((0, 1, 0)), "ground", "a", armature=0.4)
    mech.link("b", 0.5, (0.2, 0, 0), (0.1, 0.1, 0.1))
    mech.joint("b", lw.Revolute((0, 1, 0)), "a", "b", (None, (0.6, 0, 0)), mimic=lw.Mimic("a", -2.0, 0.3))
    mech.link("c", 0.7, (0.2, 0.1, 0), (0.1, 0.1, 0.1)).joint("c", lw.Spherical(), "b", "c", (None, (0.4, 0, 0)))
    mech = mech.build("follower")
    q, v = lw.random_state(mech, np.random.default_rng(0))
    model = check(mech, q, v, np.ones(4))
    assert model.input_names == ("a", "c[0]", "c[1]", "c[2]")
    assert model.state_names[4:] == ("a.rate", "c[0].rate", "c[1].rate", "c[2].rate")


def test_batches_are_their_states():
    mech = built("loader")
    states = [random_state("loader", seed) for seed in range(4)]
    q, v = (np.stack(x).reshape(2, 2, -1) for x in zip(*states, strict=True))
    tau = np.random.default_rng(0).normal(size=(2, 1, mech.nv))
    for choice in (("boom_joint", "bucket_joint"), "null_space"):
        batch = lw.linearize(mech, q, v, tau, choice, outputs=("boom_joint", "link_joint.rate"))
        assert batch.A.shape == (2, 2, 4, 4) and batch.B.shape == (2, 2, 4, 8) and batch.C.shape == (2, 2, 2, 4)
        for i, j in np.ndindex(2, 2):
            one = lw.linearize(mech, q[i, j], v[i, j], tau[i, 0], choice, outputs=("boom_joint", "link_joint.rate"))
            if choice != "null_space":  # whose signs are not determined
                close(batch.A[i, j], one.A, 1e-10)
                close(batch.B[i, j], one.B, 1e-10)
                close(batch.C[i, j], one.C, 1e-10)
                close(batch.drift[i, j], one.drift, 1e-10)
            matched(batch.eigenvalues()[i, j], one.eigenvalues(), 1e-8)
    whole = lw.linearize(mech, q, v, tau, form="underlying")
    assert whole.A.shape == (2, 2, 16, 16) and whole.C.shape == (2, 2, 8, 16) and whole.tangent.shape == (2, 2, 16, 16)
    jacobians = rate_jacobian(mech, q, v, tau)
    close(jacobians[1, 0], rate_jacobian(mech, q[1, 0], v[1, 0], tau[1, 0]), 1e-9)
    tree = lw.mechanisms.planar_arm(3)
    q, v = lw.random_state(tree, np.random.default_rng(0), (5,))
    assert lw.linearize(tree, q, v).A.shape == (5, 6, 6)
    assert lw.linearize(tree, q[0], v).A.shape == (5, 6, 6)


@pytest.mark.parametrize("batch", [(0,), (2, 0, 3)])
@pytest.mark.parametrize("name", ["five_bar", "loader", "tree"])
def test_without_states_arrays_are_empty_and_shaped_as_those_of_one_state(name, batch):
    tree = lw.mechanisms.random_tree(2, 0, floating_base=True)
    mech = tree if name == "tree" else built(name)
    q, v = lw.random_state(tree, np.random.default_rng(0)) if name == "tree" else random_state(name, 1)
    rows = lw.linearize(mech, q, v).rows
    nothing = np.zeros((*batch, 1))
    for choice in ({}, {"independent": "null_space"}, {"independent": rows}, {"form": "underlying"}):
        one, none = lw.linearize(mech, q, v, **choice), lw.linearize(mech, nothing + q, v, **choice)
        for array, empty in ((getattr(x, field.name) for x in (one, none)) for field in dataclasses.fields(one)):
            if isinstance(array, np.ndarray):
                assert empty.shape == (*batch, *array.shape)
        assert len(none.state_names) == len(one.state_names) and none.input_names == one.input_names
        assert none.eigenvalues().shape == (*batch, len(one.state_names)) == none.drift.shape
        assert none.discretize(0.1).A.shape == none.A.shape
    by_state = lw.linearize(mech, nothing + q, v, independent=nothing[..., None] + rows)
    assert by_state.A.shape == (*batch, 2 * len(rows), 2 * len(rows))
    assert rate_jacobian(mech, nothing + q, v).shape == (*batch, 2 * mech.nv, 2 * mech.nv)


def test_freedoms_of_no_states_need_a_configuration_with_closed_loops():
    builder = lw.Builder().link("a", 1.0, inertia=(1, 1, 1)).joint("a", lw.Revolute((0, 0, 1)), "ground", "a")
    builder.loop("far", lw.Spherical(), "a", (None, (1, 0, 0)), "ground", (None, (3, 0, 0)))
    with pytest.raises(MechanismError, match="without states, the degrees of freedom of mechanism 'never' are"):
        lw.linearize(builder.build("never"), np.zeros((0, 1)))


def test_a_coordinate_at_its_dead_centre_is_refused():
    """The slider of a stretched crank and rod: with one freedom too, where R N is a number without a condition."""
    builder = lw.Builder()
    for name, length in (("crank", 0.3), ("rod", 0.7), ("slider", 0.0)):
        builder.link(name, 1.0, (length / 2, 0, 0), (0.1, 0.1, 0.1))
    builder.joint("crank", lw.Revolute((0, 0, 1)), "ground", "crank")
    builder.joint("rod", lw.Revolute((0, 0, 1)), "crank", "rod", (None, (0.3, 0, 0)))
    builder.joint("slider", lw.Prismatic((1, 0, 0)), "ground", "slider")
    builder.loop("pin", lw.Revolute((0, 0, 1)), "rod", (None, (0.7, 0, 0)), "slider", (None, (0, 0, 0)))
    mech = builder.build("slider_crank", gravity=(0.0, -9.81, 0.0))
    for angle in (0.0, 1e-10):
        q = lw.constraints.assemble(mech, [angle, -angle * 0.3 / 0.7, 1.0], hold=("crank",))
        with pytest.raises(MechanismError, match="'slider' do not describe the motion.*2.28.*'rod' would do"):
            lw.linearize(mech, q, independent=("slider",))
        lw.linearize(mech, q, independent=("crank",))
    q = lw.constraints.assemble(mech, [0.4, -0.2, 0.9], hold=("crank",))
    v = lw.constraints.null_space(mech, q)[:, 0]
    model = check(mech, q, v, np.zeros(3), ("slider",), tolerance=1e-6)
    for unit in (1e-12, 1e12):  # of a coordinate: no reason to refuse it
        close(lw.linearize(mech, q, v, independent=unit * model.rows).A, model.A, 1e-9)


def test_inputs_and_outputs_by_name():
    mech = built("stewart_platform")
    q, v = random_state("stewart_platform", 0)
    legs = tuple(f"leg{i}_rod_joint" for i in range(1, 7))
    model = lw.linearize(mech, q, v, None, legs, inputs=legs, outputs=("platform_joint", "leg1_rod_joint.rate"))
    everything = lw.linearize(mech, q, v, None, legs)
    places = [mech.v_index(name).start for name in legs]
    np.testing.assert_array_equal(model.B, everything.B[:, places])
    assert model.input_names == legs and model.independent == legs
    assert model.output_names == (*(f"platform_joint[{k}]" for k in range(6)), "leg1_rod_joint.rate")
    platform = range(mech.nv)[mech.v_index("platform_joint")]
    np.testing.assert_array_equal(model.C, model.tangent[[*platform, mech.nv + places[0]]])
    rows = np.zeros((1, 48))
    rows[0, 3] = 2.0
    scaled = lw.linearize(mech, q, v, None, legs, outputs=rows)
    np.testing.assert_allclose(scaled.C[0], 2.0 * model.tangent[3])
    half = lw.linearize(mech, q, v, None, ("platform_joint[0]", *legs[1:]))
    assert half.independent[0] == "platform_joint[0]"


def test_one_name_stands_for_itself():
    mech = built("four_bar")
    q = assembled("four_bar")
    alone = lw.linearize(mech, q, independent="crank_joint", inputs="crank_joint", outputs="rocker_joint.rate")
    listed = lw.linearize(
        mech, q, independent=("crank_joint",), inputs=("crank_joint",), outputs=("rocker_joint.rate",)
    )
    assert (alone.independent, alone.input_names) == (("crank_joint",), ("crank_joint",))
    assert alone.output_names == listed.output_names == ("rocker_joint.rate",)
    for matrix in "ABCD":
        np.testing.assert_array_equal(getattr(alone, matrix), getattr(listed, matrix))
    found = lw.find_equilibrium(mech, q, hold="crank_joint")
    np.testing.assert_array_equal(found.q, lw.find_equilibrium(mech, q, hold=("crank_joint",)).q)
    held = lw.find_equilibrium(mech, q, solve_for="tau", actuated="crank_joint")
    assert held.tau[1:].tolist() == [0.0, 0.0]
    with pytest.raises(MechanismError, match="unknown choice of independent coordinates 'crank'.*'crank_joint'"):
        lw.linearize(mech, q, independent="crank")
    with pytest.raises(MechanismError, match="no moving joint 'crank'"):
        lw.linearize(mech, q, inputs="crank")


def test_what_cannot_be_linearized_says_why():
    five, loader = built("five_bar"), built("loader")
    q, v = random_state("five_bar", 1)
    with pytest.raises(MechanismError, match="singular position.*2.28"):
        lw.linearize(five, STRETCHED)
    with pytest.raises(MechanismError, match="'support' of mechanism 'five_bar' is open by"):
        lw.linearize(five, q + 0.01)
    with pytest.raises(MechanismError, match="velocities violate the constraints of loop 'support'.*project"):
        lw.linearize(five, q, np.ones(4))
    with pytest.raises(MechanismError, match="3 independent coordinates.*2 degrees of freedom here: give 2, such as"):
        lw.linearize(five, q, v, None, ("joint1", "joint2", "joint3"))
    with pytest.raises(MechanismError, match="'lift_piston_joint' do not describe.*2.28.*would do"):
        lw.linearize(loader, lw.neutral(loader), None, None, ("lift_barrel_joint", "lift_piston_joint"))
    with pytest.raises(MechanismError, match="1 independent coordinate chosen .* give 2"):
        lw.linearize(five, q, v, None, "joint1")
    with pytest.raises(MechanismError, match="did you mean 'partitioning'"):
        lw.linearize(five, q, v, None, "partition")
    with pytest.raises(MechanismError, match="names a coordinate twice"):
        lw.linearize(five, q, v, None, ("joint1", "joint1"))
    with pytest.raises(MechanismError, match="rows \\(p, 4\\)"):
        lw.linearize(five, q, v, None, np.ones((2, 3)))
    with pytest.raises(MechanismError, match="no moving joint 'jont1'"):
        lw.linearize(five, q, v, inputs=("jont1",))
    with pytest.raises(MechanismError, match="tau has shape"):
        lw.linearize(five, q, v, np.ones(3))
    with pytest.raises(MechanismError, match="q has entries that are not finite"):
        lw.linearize(five, q * np.nan, v)
    with pytest.raises(MechanismError, match="no moving joint 'jont1'"):
        lw.linearize(five, np.zeros((0, 4)), v, independent=("jont1", "joint2"))
    with pytest.raises(ValueError, match="did you mean 'underlying'"):
        lw.linearize(five, q, v, form="underlaying")
    with pytest.raises(TypeError, match="linkwise.forces.Passive"):
        lw.linearize(five, q, v, passive=3.0)
    with pytest.raises(MechanismError, match="from 2 to 3 degrees of freedom"):
        lw.linearize(five, np.stack([q, STRETCHED]))
    with pytest.raises(MechanismError, match="linear in q"):
        lw.linearize(five, q, v, None, lw.kinematics.Coordinates(None, None, None))
    weightless = dataclasses.replace(
        lw.mechanisms.planar_arm(1),
        bodies=tuple(
            dataclasses.replace(b, mass=0.0, inertia=np.zeros((3, 3))) for b in lw.mechanisms.planar_arm(1).bodies
        ),
    )
    with pytest.raises(MechanismError, match="nothing with inertia moves with joint 'joint1'"):
        lw.linearize(weightless, [0.0])


def test_bad_states_and_names_are_explained():
    floating = lw.mechanisms.random_tree(2, seed=2, floating_base=True)
    for function in (lw.linearize, lw.find_equilibrium):
        with pytest.raises(MechanismError, match="quaternion of joint .* is zero, which is no rotation"):
            function(floating, np.zeros(floating.nq))
    with pytest.raises(MechanismError, match="quaternion of joint .* in q is not of unit length but 2 long"):
        lw.linearize(floating, 2.0 * lw.neutral(floating))
    arm = lw.mechanisms.planar_arm(2)
    with pytest.raises(MechanismError, match="'joint1.rat': did you mean 'joint1.rate', or 'joint1' for its position"):
        lw.linearize(arm, [0.0, 0.0], outputs=("joint1.rat",))
    with pytest.raises(MechanismError, match="no moving joint 'jont1'.*did you mean 'joint1'"):
        lw.linearize(arm, [0.0, 0.0], outputs=("jont1.rate",))


def test_derivatives_of_open_loops_are_refused():
    five, z = built("five_bar"), np.zeros(4)
    with pytest.raises(MechanismError, match="loop .* of mechanism 'five_bar' is open by .*constraints.assemble"):
        lw.forward_dynamics_derivatives(five, z, z, z)


@pytest.mark.parametrize("name", ["five_bar", "loader", "delta_robot"])
def test_one_state_has_the_model_that_it_has_in_a_batch(name):
    """One state is one kernel, coordinates and all; of a batch the first state chooses the coordinates."""
    mech, rng = built(name), np.random.default_rng(4)
    for seed in range(6):
        q, v = random_state(name, seed)
        tau = rng.normal(size=mech.nv)
        one, batch = lw.linearize(mech, q, v, tau), lw.linearize(mech, q[None], v[None], tau[None])
        assert one.independent == batch.independent and one.state_names == batch.state_names
        assert [mech.coordinates.names("v").index(x) for x in one.independent] == sorted(one.rows.argmax(axis=1))
        for field in ("A", "B", "C", "D", "drift", "rows", "tangent", "acceleration", "q", "v", "tau"):
            close(getattr(one, field), getattr(batch, field)[0], 1e-11)


def test_elements_of_a_closed_mechanism_are_in_its_model_of_one_state():
    mech, (q, v), tau = built("five_bar"), random_state("five_bar", 2), np.ones(4)
    joint = mech.joint_names[0]
    damped = mech.with_elements(lw.forces.Actuator("damper", joint, bias=(0.0, 0.0, -2.0)))
    expected = lw.linearize(mech, q, v, tau, passive=lw.forces.Passive.dampers({joint: 2.0}))
    close(lw.linearize(damped, q, v, tau).A, expected.A, 1e-11)
    assert np.abs(expected.A - lw.linearize(mech, q, v, tau).A).max() > 1e-3


@pytest.mark.filterwarnings("error")
def test_states_that_kernels_cannot_be_relied_on_for_are_told_without_warnings_of_arithmetic():
    five = built("five_bar")
    for q in (np.asarray(STRETCHED, float), np.full(4, np.nan)):
        for shape in (4,), (2, 4):
            with pytest.raises(MechanismError):
                lw.linearize(five, np.broadcast_to(q, shape).copy(), np.zeros(shape), np.zeros(shape))
    lying = 0.5 * np.pi * np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    for shape in (5,), (2, 5):
        q = np.broadcast_to(lying, shape).copy()
        assert np.isfinite(lw.forward_dynamics(lw.mechanisms.n_four_bar(2), q, 0 * q, 0 * q + 1)).all()


def test_redundant_constraints_are_told_from_singular_positions():
    """Three parallelograms: nine of fifteen constraints are redundant where the posts stand, more where they lie."""
    mech = lw.mechanisms.n_four_bar(3)
    q = lw.linkages.follow(mech, lw.neutral(mech), {"post0_joint": 1.2})
    check(mech, q, np.zeros(7), np.zeros(7), ("post0_joint",))
    lying = lw.neutral(mech)
    lying[:4], lying[4:] = np.pi / 2, -np.pi / 2
    np.testing.assert_allclose(lw.constraints.position_error(mech, lying), 0.0, atol=1e-12)
    for choice in (None, ("post0_joint",), ("post0_joint", "post1_joint")):  # however many: no number would do
        with pytest.raises(MechanismError, match="is at a singular position"):
            lw.linearize(mech, lying, independent=choice)


def test_rate_jacobian_of_states_with_loops_a_little_open():
    """For implicit integration: given the rank, states between the steps need not be on the manifold."""
    mech = built("loader")
    q, v = random_state("loader", 1)
    rank = lw.constraints.generic_rank(mech, q)
    exact = rate_jacobian(mech, q, v)
    close(rate_jacobian(mech, q, v, rank=rank), exact, 1e-9)
    rng = np.random.default_rng(0)
    off = rate_jacobian(mech, q + 1e-6 * rng.normal(size=8), v + 1e-6 * rng.normal(size=8), rank=rank)
    close(off, exact, 1e-3)
    with pytest.raises(MechanismError, match="open"):
        rate_jacobian(mech, q + 1e-6, v)


def test_structures_that_cannot_move():
    builder = lw.Builder()
    for name, at in (("a", (0, 0, 0)), ("b", (1, 0, 0))):
        builder.link(name, 1.0, (0.2, 0.1, 0.0), (0.1, 0.1, 0.1))
        builder.joint(name, lw.Revolute((0, 0, 1)), "ground", name, (None, at))
    builder.loop("tip", lw.Revolute((0, 0, 1)), "a", (None, (0.5, 1, 0)), "b", (None, (-0.5, 1, 0)))
    truss = builder.build("truss")
    model = lw.linearize(truss, np.zeros(2))
    assert model.A.shape == (0, 0) and model.B.shape == (0, 2) and model.is_equilibrium
    assert len(model.eigenvalues()) == len(model.modes().frequencies) == 0 and "0 states, 2 inputs" in repr(model)
    np.testing.assert_array_equal(lw.linearize(truss, np.zeros(2), form="underlying").A, np.zeros((4, 4)))
    assert lw.find_equilibrium(truss, np.zeros(2)).stable


def test_the_derivatives_of_loops_cost_the_same_for_every_loop():
    """Parallelograms in a row: paths do not get longer, so operations grow with the number of loops."""

    def operations(n: int) -> int:
        kernel = lw.compile("constraint_motion", lw.mechanisms.n_four_bar(n), target="numpy")
        return sum(jacobian_of(kernel, "q", mode="forward").op_counts.values())

    two, four, six = (operations(n) for n in (2, 4, 6))
    assert six - four == four - two


def test_inputs_are_single_coordinates_by_either_name():
    mech = lw.Builder().link("block", 1.0, inertia=(0.1, 0.1, 0.1)).joint("j", lw.Planar(), "ground", "block").build()
    q = lw.neutral(mech)
    named, numbered = (lw.linearize(mech, q, inputs=one).B for one in ("j.x", "j[0]"))
    np.testing.assert_array_equal(named, numbered)
    assert lw.find_equilibrium(mech, q, solve_for="tau", actuated="j.x").tau.shape == (3,)
    for wrong in (
        lambda: lw.forces.Passive.springs({"j.x": 5.0}).forces(mech, q, np.zeros(3)),
        lambda: mech.parameters.with_damping({"j.x": 1.0}),
        lambda: lw.control.joint_feedback(mech, q, kp=1.0, kd=1.0, actuated=("j[0]",)),
    ):
        with pytest.raises(lw.MechanismError, match="one coordinate of joint 'j'; name the joint here"):
            wrong()
