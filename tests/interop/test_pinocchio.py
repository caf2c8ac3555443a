"""Coordinates of Pinocchio: what it computes from converted states, converted back, is what linkwise computes."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from tests.peers.robots import READABLE, load, pin, robot

QUICK = {"panda.urdf", "solo12.urdf", "romeo_small.urdf", "double_pendulum_continuous.urdf"}
FILES = [pytest.param(f, id=f.name, marks=() if f.name in QUICK else pytest.mark.slow) for f in READABLE]


def symmetric(upper: np.ndarray) -> np.ndarray:
    return np.triu(upper) + np.triu(upper, 1).T


def assert_converts(mech: lw.Mechanism, model, tolerance: float = 1e-12) -> None:
    """Inverse dynamics, mass matrix and Jacobians by way of Pinocchio; and everything there and back."""
    there, rng, data = lw.interop.to_pinocchio(mech, model), np.random.default_rng(0), model.createData()
    here = there.inverse
    q, v = lw.random_state(mech, rng, (4,))
    a = rng.normal(size=v.shape)
    q_there, v_there, a_there = there.q(q), there.v(q, v), there.a(q, v, a)
    assert q_there.shape == (4, model.nq) and v_there.shape == (4, model.nv)
    found = here.tau(
        q_there, np.array([pin.rnea(model, data, *x) for x in zip(q_there, v_there, a_there, strict=True)])
    )
    tree = mech.spanning_tree
    expected = lw.compile("inverse_dynamics", tree, target="numpy")(q, v, a)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)
    mass = np.array([symmetric(pin.crba(model, data, x)) for x in q_there])
    expected = lw.compile("mass_matrix", tree, target="numpy")(q)
    np.testing.assert_allclose(here.matrix(q_there, mass), expected, rtol=0, atol=tolerance * np.abs(expected).max())
    link = mech.link_names[-1]
    frame = model.getFrameId(link)
    jacobians = np.array([pin.computeFrameJacobian(model, data, x, frame, pin.ReferenceFrame.LOCAL) for x in q_there])
    expected = lw.compile("jacobian", tree, target="numpy", link=link)(q)
    np.testing.assert_allclose(here.jacobian(q_there, jacobians), expected, rtol=0, atol=1e-12)
    # There and back, one state or many.
    for ours, theirs, back in (
        (v, v_there, here.v(q_there, v_there)),
        (a, a_there, here.a(q_there, v_there, a_there)),
        (v, v, here.tau(q_there, there.tau(q, v))),
        (expected, expected, here.jacobian(q_there, there.jacobian(q, expected))),
    ):
        np.testing.assert_allclose(back, ours, rtol=0, atol=1e-12)
        assert theirs.shape[0] == 4
    again = lw.difference(tree, q, here.q(q_there))
    np.testing.assert_allclose(np.sin(again), 0.0, atol=1e-12)  # whole turns of endless joints are not kept
    np.testing.assert_array_equal(there.q(q[0]), q_there[0])


@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("file", FILES)
def test_robots(file, floating):
    mech = load(file, floating)
    if not mech.nv:
        pytest.skip("nothing moves")
    model = pin.buildModelFromUrdf(str(file), *([pin.JointModelFreeFlyer()] if floating else []))
    assert_converts(mech, model)


def test_mimic_joints_that_are_mimic_joints_there_too():
    file = robot("panda_description/urdf/panda.urdf")
    mech = load(file)
    model = pin.buildModelFromUrdf(str(file), True)
    assert model.nv == mech.nv == 8
    assert_converts(mech, model)


def test_mimic_joints_that_are_elsewhere_are_named():
    file = robot("panda_description/urdf/panda.urdf")
    mech, model = load(file), pin.buildModelFromUrdf(str(file))
    there = lw.interop.to_pinocchio(mech, model)
    q, v = lw.random_state(mech, np.random.default_rng(0))
    here, q_there, v_there = there.inverse, there.q(q), there.v(q, v)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(here.q(q_there), q, rtol=0, atol=1e-14)
        np.testing.assert_allclose(here.v(q_there, v_there), v, rtol=0, atol=1e-14)
    finger = model.joints[model.getJointId("panda_finger_joint2")]
    free = pin.aba(model, model.createData(), q_there, v_there, np.zeros(model.nv))
    with pytest.warns(lw.MechanismWarning, match="panda_finger_joint2 of .* Pinocchio, where their acceleration is"):
        here.a(q_there, v_there, free)
    q_there[finger.idx_q] += 0.01
    v_there[finger.idx_v] += 0.1
    with pytest.warns(lw.MechanismWarning, match="where their position is another"):
        here.q(q_there)
    with pytest.warns(lw.MechanismWarning, match="where their velocity is another"):
        here.v(q_there, v_there)


@pytest.mark.parametrize("seed, floating", [(0, False), (1, True), (2, False)])
def test_models_from_numbers(seed, floating):
    """All kinds of joints, in the order that Pinocchio wants; planar ones are composites there, and rates ours."""
    mech = lw.mechanisms.random_tree(9, seed, floating_base=floating)
    assert_converts(mech, lw.interop.pinocchio_model(mech))


def test_damping_is_in_models_and_not_in_their_dynamics():
    builder = lw.Builder().link("cart", 1.0).link("rod", 1.0, (0, 0, 0.5), (0.1, 0.1, 0.1))
    builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "cart", damping=0.7)
    mech = builder.joint("hinge", lw.Revolute((0, 1, 0)), "cart", "rod", damping=0.2).build()
    model = lw.interop.pinocchio_model(mech)
    there = lw.interop.to_pinocchio(mech, model)
    q, v = np.array([0.3, 0.4]), np.array([1.0, 2.0])
    np.testing.assert_array_equal(there.inverse.tau(q, model.damping), [0.7, 0.2])
    free = pin.aba(model, model.createData(), q, v, np.zeros(2))
    np.testing.assert_allclose(free, lw.forward_dynamics(mech, q, v, np.zeros(2)), rtol=1e-12)


def test_planar_joints_of_pinocchio():
    """q is x, y, cosine and sine, and velocities are along axes that turn."""
    text = """<robot name="r"><link name="ground"/><link name="a"><inertial><origin xyz="0.3 0.1 0.2"/><mass value="2"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1.2" iyz="0" izz="0.7"/></inertial></link><link name="b"><inertial>
      <origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
      </link><joint name="p" type="planar"><parent link="ground"/><child link="a"/><axis xyz="0 0 1"/></joint>
      <joint name="c" type="continuous"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/></joint></robot>"""
    assert_converts(lw.load(text), pin.buildModelFromXML(text))


def test_matrices_of_other_kinds():
    """The inverse of the mass matrix, and derivatives of accelerations where the other order is all that differs."""
    mech = lw.mechanisms.random_tree(6, 6, joints=("revolute", "prismatic"), floating_base=True)
    model = lw.interop.pinocchio_model(mech)
    there, data = lw.interop.to_pinocchio(mech, model), model.createData()
    assert tuple(model.names)[1:] != mech.joint_names
    q, v = lw.random_state(mech, np.random.default_rng(1))
    tau = np.linspace(-1.0, 1.0, mech.nv)
    pin.computeABADerivatives(model, data, there.q(q), there.v(q, v), there.tau(q, tau))
    d_q, d_v, d_tau = lw.forward_dynamics_derivatives(mech, q, v, tau)
    here, q_there = there.inverse, there.q(q)
    scale = np.abs(d_q).max()
    np.testing.assert_allclose(here.matrix(q_there, data.ddq_dq, gives="v"), d_q, rtol=0, atol=1e-11 * scale)
    np.testing.assert_allclose(here.matrix(q_there, data.ddq_dv, gives="v"), d_v, rtol=0, atol=1e-11 * scale)
    inverse = here.matrix(q_there, symmetric(data.Minv), takes="tau", gives="v")
    np.testing.assert_allclose(inverse, d_tau, rtol=0, atol=1e-11 * np.abs(d_tau).max())
    np.testing.assert_allclose(there.matrix(q, d_tau, takes="tau", gives="v"), symmetric(data.Minv), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(here.spatial(here.spatial(np.arange(6.0))), np.arange(6.0))


def with_planar_joints_of_pinocchio(mech: lw.Mechanism, monkeypatch):
    """A model of the mechanism whose planar joints are Pinocchio's own, with velocities along axes that turn."""
    from linkwise.interop import pinocchio as interop

    usual = interop._joint
    planar = pin.JointModelPlanar
    monkeypatch.setattr(interop, "_joint", lambda p, kind: planar() if type(kind) is lw.Planar else usual(p, kind))
    return interop.pinocchio_model(mech)


def analytic(model, q, v, a, tau):
    """Pinocchio's own derivatives of accelerations and of forces; they are right where motions are constant in the
    link's axes."""
    data = model.createData()
    pin.computeABADerivatives(model, data, q, v, tau)
    of_a = data.ddq_dq.copy(), data.ddq_dv.copy(), symmetric(data.Minv)
    pin.computeRNEADerivatives(model, data, q, v, a)
    return of_a, (data.dtau_dq.copy(), data.dtau_dv.copy(), symmetric(data.M))


def by_differences(model, q, v, a, tau):
    """Differences of Pinocchio's accelerations and forces along its own tangents, for all joints."""
    data, step = model.createData(), 1e-5

    def derivatives(function, *rest):
        def moved(which, d):
            x = [pin.integrate(model, q, d) if which == 0 else q, *rest]
            if which:
                x[which] = x[which] + d
            return function(model, data, *x).copy()

        columns = [[moved(k, d) - moved(k, -d) for d in step * np.eye(model.nv)] for k in range(3)]
        return tuple(np.array(x).T / (2.0 * step) for x in columns)

    return derivatives(pin.aba, v, tau), derivatives(pin.rnea, v, a)


@pytest.mark.parametrize(
    "kinds, expected, tolerance, seed, floating",
    [
        (("planar", "spherical", "revolute", "prismatic"), analytic, 1e-10, 0, False),
        (("planar", "spherical", "revolute", "prismatic"), analytic, 1e-10, 3, True),
        (("planar", "spherical", "universal", "cylindrical"), by_differences, 1e-6, 0, True),
    ],
)
def test_derivatives_where_the_change_of_coordinates_depends_on_q(
    kinds, expected, tolerance, seed, floating, monkeypatch
):
    """Derivatives of accelerations and of forces, in both directions and for batches."""
    rng = np.random.default_rng(seed)
    mech = lw.mechanisms.random_tree(8, seed, joints=kinds, floating_base=floating)
    # Pinocchio's planar joints have the normal z, and rotors along axes that turn.
    bodies = [
        replace(b, kind=lw.Planar(), armature=(0.0,) * 3) if isinstance(b.kind, lw.Planar) else b for b in mech.bodies
    ]
    mech = replace(mech, bodies=tuple(bodies))
    assert {type(body.kind).__name__.lower() for body in mech.bodies} >= set(kinds[:3])
    model = with_planar_joints_of_pinocchio(mech, monkeypatch)
    there = lw.interop.to_pinocchio(mech, model)
    q, v = lw.random_state(mech, rng, (3,))
    tau = rng.normal(size=v.shape)
    a = lw.forward_dynamics(mech, q, v, tau)
    state, state_there = (q, v, a, tau), (there.q(q), there.v(q, v), there.a(q, v, a), there.tau(q, tau))
    of_a = lw.forward_dynamics_derivatives(mech, q, v, tau)
    of_tau = lw.inverse_dynamics_derivatives(mech, q, v, a)
    both = [expected(model, *x) for x in zip(*state_there, strict=True)]
    of_a_there, of_tau_there = (np.moveaxis(np.array([one[k] for one in both]), 1, 0) for k in (0, 1))
    for converted, own in (
        (there.acceleration_derivatives(*state, of_a), of_a_there),
        (there.inverse.acceleration_derivatives(*state_there, of_a_there), of_a),
        (there.force_derivatives(*state, of_tau), of_tau_there),
        (there.inverse.force_derivatives(*state_there, of_tau_there), of_tau),
    ):
        for one, other in zip(converted, own, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1.0, np.abs(other).max()))
    # As a linear map, the derivative by q is another matrix.
    assert np.abs(there.matrix(q, of_a[0], gives="v") - of_a_there[0]).max() > 0.1


def test_derivatives_of_forces_with_mimic_joints_that_are_free_there():
    """Inverse dynamics agree where joints mimic others here and are free there; so do their derivatives."""
    file = robot("panda_description/urdf/panda.urdf")
    mech, model = load(file), pin.buildModelFromUrdf(str(file))
    there, data = lw.interop.to_pinocchio(mech, model), model.createData()
    q, v = lw.random_state(mech, np.random.default_rng(0))
    a = np.linspace(-1.0, 1.0, mech.nv)
    arrays = there.q(q), there.v(q, v), there.a(q, v, a)
    pin.computeRNEADerivatives(model, data, *arrays)
    found = there.inverse.force_derivatives(
        *arrays, pin.rnea(model, model.createData(), *arrays), (data.dtau_dq, data.dtau_dv, symmetric(data.M))
    )
    for one, other in zip(found, lw.inverse_dynamics_derivatives(mech, q, v, a), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


def test_derivatives_that_are_not_three_are_refused():
    mech = lw.mechanisms.chain(2)
    there = lw.interop.to_pinocchio(mech, lw.interop.pinocchio_model(mech))
    x = np.zeros(2)
    with pytest.raises(ValueError, match="derivatives must be three matrices: d_q, d_v and d_tau"):
        there.acceleration_derivatives(x, x, x, x, np.eye(2))
    with pytest.raises(ValueError, match=r"d_a of linkwise for mechanism 'chain_2' must have shape \(..., 2, 2\)"):
        there.force_derivatives(x, x, x, x, (np.eye(2), np.eye(2), np.eye(3)))


def test_what_does_not_fit_is_told():
    file = robot("panda_description/urdf/panda.urdf")
    mech, model = load(file), pin.buildModelFromUrdf(str(file))
    locked = mech.with_locked(panda_joint3=0.2)
    with pytest.raises(lw.MechanismError, match="has joints that mechanism 'panda' has not: panda_joint3"):
        lw.interop.to_pinocchio(locked, model)
    there = lw.interop.to_pinocchio(locked, model, others=["panda_joint3"])
    assert there.q(np.ones(locked.nq))[2] == 0.0 and there.v(np.ones(locked.nq), np.ones(locked.nv))[2] == 0.0
    with pytest.raises(lw.MechanismError, match="'joint1' of mechanism 'chain_2' is not in the model of Pinocchio"):
        lw.interop.to_pinocchio(lw.mechanisms.chain(2), model)
    with pytest.raises(ValueError, match=r"v of linkwise for mechanism 'panda' must have shape \(..., 8\), got \(9,\)"):
        lw.interop.to_pinocchio(mech, model).v(np.ones(8), np.ones(9))
    with pytest.raises(ValueError, match="takes and gives 'v' or 'tau', not 'a'"):
        there.matrix(np.ones(locked.nq), np.eye(locked.nv), gives="a")
    assert repr(there.inverse) == "<Conversion of 'panda' from Pinocchio to linkwise>"


ON_WHEELS = """<robot name="on_wheels"><link name="base"><inertial><origin xyz="0.1 0.2 0"/><mass value="5"/>
    <inertia ixx="0.4" iyy="0.5" izz="0.6" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="arm"><inertial><origin xyz="0.3 0 0.1"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 0.5"/><limit lower="-2" upper="2" effort="9" velocity="3"/></joint></robot>"""

ROOTS = {
    "JointModelPlanar": lw.Planar(),
    "JointModelSpherical": lw.Spherical(),
    "JointModelPX": lw.Prismatic((1, 0, 0)),
    "JointModelRZ": lw.Revolute((0, 0, 1)),
    "JointModelFreeFlyer": True,
}


@pytest.mark.parametrize("root", ROOTS)
def test_bases_that_move_by_any_joint(root):
    mech = lw.load(ON_WHEELS, floating_base=ROOTS[root])
    assert_converts(mech, pin.buildModelFromXML(ON_WHEELS, getattr(pin, root)()))


def test_a_base_of_another_kind_is_refused():
    with pytest.raises(lw.MechanismError, match="'floating_base' is Planar.* JointModelFreeFlyer"):
        lw.interop.to_pinocchio(
            lw.load(ON_WHEELS, floating_base=lw.Planar()), pin.buildModelFromXML(ON_WHEELS, pin.JointModelFreeFlyer())
        )
