"""Second derivatives and derivatives of reactions under force elements, against differences at states that constraints
allow: springs, dampers, stops and servos at joints, fluid and contact, which push on links."""

import warnings

import numpy as np
import pytest

import linkwise as lw
from tests import acting_arm
from tests.product.oracle import differentiate

REACTIONS = (
    (lw.derivatives.multipliers_derivatives, lw.constraints.multipliers),
    (lw.derivatives.constraint_forces_derivatives, lw.constraints.constraint_forces),
    (lw.derivatives.loop_reactions_derivatives, lw.constraints.loop_reactions),
    (
        lw.derivatives.joint_wrenches_derivatives,
        lambda mech, q, v, tau, **on: lw.joint_wrenches(mech, q, v, tau=tau, **on),
    ),
)
SWIMMER = """<mujoco model="swimmer"><compiler angle="radian"/><option density="300" viscosity="0.3" wind="1 0.5 0"/>
<worldbody><body name="a"><joint name="j" axis="0 1 0.3" stiffness="4" damping="0.4"/>
  <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.04"/><body name="b" pos="0.4 0 0"><joint name="k" axis="0 0.3 1"/>
  <geom type="ellipsoid" size="0.2 0.05 0.08" pos="0.2 0 0"/><body name="c" pos="0.4 0 0"><joint name="l" axis="1 1 0"/>
  <geom type="box" size="0.1 0.05 0.03" pos="0.1 0 0"/></body></body></body></worldbody>
<actuator><position name="servo" joint="k" kp="8" kv="0.6"/></actuator></mujoco>"""


def swimmer() -> lw.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(SWIMMER)


def held_swimmer() -> lw.Mechanism:
    """A point of its last link stands."""
    mech = swimmer()
    return lw.contact.hold_frames(mech, ["c"], np.array([0.3, -0.4, 0.5]), points=True)


def state(mech: lw.Mechanism):
    rng = np.random.default_rng(3)
    q, v = lw.random_state(mech, rng)
    if mech.loops:
        q = lw.constraints.assemble(mech, np.array([0.3, -0.4, 0.5]))
        v = lw.constraints.project(mech, q, v)[1]
    return q, v, rng.normal(size=mech.nv), np.array([0.3])


def along(mech, q, v, tau, directions, s):
    step, change, push = directions
    q, v = lw.integrate(mech, q, step, s), v + s * change
    if mech.loops:
        q, v = lw.constraints.project(mech, q, v, aim=1e-16)
    return q, v, tau + s * push


def check(found, right, tolerance):
    np.testing.assert_allclose(found, right, rtol=0.0, atol=tolerance * max(1.0, np.abs(right).max(initial=0.0)))


@pytest.mark.parametrize("make", [swimmer, held_swimmer], ids=["tree", "held"])
def test_reactions_in_a_fluid(make):
    mech = make()
    q, v, tau, ctrl = state(mech)
    directions = np.random.default_rng(1).normal(size=(3, mech.nv))
    on = {"forces": "all", "ctrl": ctrl}
    assert np.abs(lw.forces.joint_forces(mech, q, v, ctrl=ctrl)).max() > 0.1
    for derivative, function in REACTIONS:
        parts = derivative(mech, q, v, tau, **on)
        found = sum(part @ direction for part, direction in zip(parts, directions, strict=True))
        assert np.shape(function(mech, q, v, tau, **on)) == found.shape
        check(
            found,
            differentiate(lambda s, f=function: f(mech, *along(mech, q, v, tau, directions, s), **on), 1e-4),
            1e-7,
        )


@pytest.mark.parametrize("make", [swimmer, held_swimmer], ids=["tree", "held"])
def test_second_derivatives_in_a_fluid(make):
    mech = make()
    q, v, tau, ctrl = state(mech)
    directions = np.random.default_rng(1).normal(size=(3, mech.nv))
    on = {"forces": "all", "ctrl": ctrl}
    first = lw.forward_dynamics_derivatives

    def differences(sizes):
        moves = directions * np.array(sizes)[:, None]
        return differentiate(lambda s: np.stack(first(mech, *along(mech, q, v, tau, moves, s), **on)), 1e-4)

    products = lw.derivatives.forward_dynamics_second_derivatives(mech, q, v, tau, along=tuple(directions), **on)
    for found, right in zip(products, differences((1, 1, 1)), strict=True):
        check(found, right, 1e-6)
    d_qq, d_vv, d_qv, d_tauq = lw.derivatives.forward_dynamics_second_derivatives(mech, q, v, tau, **on)
    split_into_records, by_change = differences((1, 0, 0)), differences((0, 1, 0))
    check(d_qq @ directions[0], split_into_records[0], 1e-6)
    check(d_tauq @ directions[0], split_into_records[2], 1e-6)
    check(d_qv @ directions[1], by_change[0], 1e-6)
    check(d_vv @ directions[1], by_change[1], 1e-6)


def test_second_derivatives_of_inverse_dynamics():
    mech = swimmer()
    q, v, tau, ctrl = state(mech)
    n = mech.nv
    a = lw.forward_dynamics(mech, q, v, tau, forces="all", ctrl=ctrl)
    inverse = lw.derivatives.inverse_dynamics_second_derivatives(mech, q, v, a, forces="all", ctrl=ctrl)

    def first(q, v):
        return np.stack(lw.inverse_dynamics_derivatives(mech, q, v, a, forces="all", ctrl=ctrl)[:2])

    for k in range(n):
        unit = np.eye(n)[k]
        by_q = differentiate(lambda s, unit=unit: first(lw.integrate(mech, q, unit, s), v), 1e-4)
        by_v = differentiate(lambda s, unit=unit: first(q, v + s * unit), 1e-4)
        check(inverse[0][..., k], by_q[0], 1e-8)
        check(inverse[1][..., k], by_v[1], 1e-8)
        check(inverse[2][..., k], by_v[0], 1e-8)


@pytest.mark.parametrize("row", range(3))
def test_an_arm_in_contact(row):
    """Where it stands on the ground, and beyond a stop."""
    arm = acting_arm.ARM
    q, v, tau = acting_arm.Q[row], acting_arm.V, acting_arm.TAU
    on = {"forces": "all", "ctrl": acting_arm.CTRL, "activation": acting_arm.ACTIVATION}
    directions = np.random.default_rng(row).normal(size=(3, 2))
    parts = lw.derivatives.joint_wrenches_derivatives(arm, q, v, tau, **on)
    found = sum(part @ direction for part, direction in zip(parts, directions, strict=True))
    right = differentiate(
        lambda s: lw.joint_wrenches(arm, *(x := along(arm, q, v, tau, directions, s))[:2], tau=x[2], **on), 1e-5
    )
    check(found, right, 1e-6)


def test_batches_of_states_controls_and_masks():
    mech = held_swimmer()
    q, v, tau, _ = state(mech)
    rng = np.random.default_rng(0)
    ctrl = rng.normal(size=(2, 1, 1))
    state_of_all = [np.tile(x, (3, 1)) for x in (q, v, tau)]
    mask = np.array([[True], [False], [True]])
    masked = {"active": mask}
    functions = [derivative for derivative, _ in REACTIONS]
    functions.append(lw.derivatives.forward_dynamics_second_derivatives)
    functions.append(lw.forward_dynamics_derivatives)
    for function in functions:
        for options in ({}, masked):
            whole = function(mech, *state_of_all, forces="all", ctrl=ctrl, **options)
            for i, k in ((0, 0), (1, 1), (1, 2)):
                mine = {"active": mask[k]} if options else {}
                single = function(mech, q, v, tau, forces="all", ctrl=ctrl[i, 0], **mine)
                for part, expected in zip(whole, single, strict=True):
                    assert part.shape == (2, 3, *expected.shape)
                    check(part[i, k], expected, 1e-9)


def test_masks_and_controls_of_inverse_dynamics():
    mech = held_swimmer()
    q, v, tau, _ = state(mech)
    ctrl, mask = np.array([[[0.2]], [[-0.5]]]), np.array([[True], [False], [True]])
    a = np.stack([lw.forward_dynamics(mech, q, v, tau, active=held) for held in mask])
    parts = lw.inverse_dynamics_derivatives(mech, q, v, a, active=mask, forces="all", ctrl=ctrl)
    for i, k in ((0, 0), (1, 1), (1, 2)):
        single = lw.inverse_dynamics_derivatives(mech, q, v, a[k], active=mask[k], forces="all", ctrl=ctrl[i, 0])
        for part, expected in zip(parts, single, strict=True):
            assert part.shape == (2, 3, *expected.shape)
            check(part[i, k], expected, 1e-9)


def test_rate_jacobian_of_linear_models():
    mech = swimmer()
    q, v, tau, ctrl = state(mech)
    whole = lw.control.rate_jacobian(mech, q, v, tau, forces="all", ctrl=ctrl)
    model = lw.linearize(mech, q, v, tau, form="underlying", ctrl=ctrl)
    check(whole, model.A, 1e-9)
    springs = lw.forces.Passive.of(mech)
    check(
        lw.control.rate_jacobian(mech, q, v, tau, springs),
        lw.control.rate_jacobian(mech, q, v, tau, forces=springs),
        0.0,
    )
    with pytest.raises(lw.MechanismError, match="forces and passive"):
        lw.control.rate_jacobian(mech, q, v, tau, springs, forces="all")
