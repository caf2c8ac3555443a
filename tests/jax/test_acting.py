"""Force elements, as functions of JAX: numbers of ``lw.forces.joint_forces`` and the like, derivatives against
differences and their own."""

from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from tests.acting_arm import ACTIVATION, ARM, CTRL, TAU, Q, V

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import linkwise.jax as lwj  # noqa: E402


def _dynamics(function):
    """With arguments in the order of JAX's functions."""

    def call(mech, q, v=None, third=None, ctrl=None, activation=None, wrenches=None):
        return function(mech, q, v, third, wrenches, ctrl=ctrl, activation=activation, forces="all")

    return call


def _elements(function):
    return lambda mech, q, v=None, ctrl=None, activation=None: function(mech, q, v, ctrl=ctrl, activation=activation)


IN_NUMPY = SimpleNamespace(
    acting=SimpleNamespace(
        forward_dynamics=_dynamics(lw.forward_dynamics),
        inverse_dynamics=_dynamics(lw.inverse_dynamics),
        forces=_elements(lw.forces.joint_forces),
        activation_rates=_elements(lw.forces.activation_rates),
        actuator_forces=_elements(lw.forces.actuator_forces),
    )
)


def test_numbers_are_those_of_linkwise():
    assert (lw.contact.contact_points(ARM, Q, V).gap.min(axis=-1) < 0).tolist() == [False, True, True]
    driving = CTRL, ACTIVATION
    for name in ("forces", "activation_rates", "actuator_forces"):
        found, expected = (getattr(where.acting, name)(ARM, Q, V, *driving) for where in (lwj, IN_NUMPY))
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    for name in ("forward_dynamics", "inverse_dynamics"):
        for given in ((Q, V, TAU, *driving), (Q,)):
            found, expected = (getattr(where.acting, name)(ARM, *given) for where in (lwj, IN_NUMPY))
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    mapped = jax.jit(jax.vmap(lambda q: lwj.acting.forward_dynamics(ARM, q, V, TAU, *driving)))(Q)
    np.testing.assert_allclose(
        mapped, lw.forward_dynamics(ARM, Q, V, TAU, ctrl=CTRL, activation=ACTIVATION, forces="all"), rtol=1e-12
    )
    assert lwj.acting.forward_dynamics(ARM, Q.astype(np.float32)).dtype == np.float32
    push = np.random.default_rng(0).normal(size=(2, 6))
    found, expected = (where.acting.forward_dynamics(ARM, Q, V, TAU, *driving, push) for where in (lwj, IN_NUMPY))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_derivatives():
    for q in Q:
        check_grads(lambda *x: lwj.acting.forward_dynamics(ARM, *x), (q, V, TAU, CTRL, ACTIVATION), 1, rtol=1e-4)
        by_q, by_v, by_ctrl, by_activation = jax.jacfwd(lambda *x: lwj.acting.forces(ARM, *x), (0, 1, 2, 3))(
            q, V, CTRL, ACTIVATION
        )
        known = lw.derivatives.joint_force_derivatives(ARM, q, V, ctrl=CTRL, activation=ACTIVATION)
        for found, expected in zip((by_q, by_v, by_ctrl, by_activation), known, strict=True):
            np.testing.assert_allclose(found, expected[:2], rtol=1e-10, atol=1e-10)
    check_grads(lambda *x: lwj.acting.inverse_dynamics(ARM, *x), (Q[0], V, TAU, CTRL, ACTIVATION), 2, rtol=1e-3)


def test_variants_have_their_own_numbers():
    for variant in (
        ARM.parameters.with_damping(shoulder=3.0),
        ARM.with_payload("fore", 2.0),
        ARM.with_acting("actuators"),
    ):
        found, expected = (where.acting.forward_dynamics(variant, Q, V, ctrl=CTRL) for where in (lwj, IN_NUMPY))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


SPRING = lw.forces.Passive.springs({ARM.joint_names[0]: 3.0}, rest={ARM.joint_names[0]: 0.2})


@pytest.mark.parametrize("forces", ["all", "springs", ("damping", "actuators"), SPRING], ids=str)
def test_forces_of_functions_by_their_names(forces):
    driving = {"ctrl": CTRL} if forces == "all" or (isinstance(forces, tuple) and "actuators" in forces) else {}
    push = np.random.default_rng(0).normal(size=(2, 6))
    for name, state in (("forward_dynamics", (Q, V, TAU)), ("inverse_dynamics", (Q, V, TAU)), ("static_forces", (Q,))):
        for more in ({}, {"wrenches": push}):
            found, expected = (getattr(x, name)(ARM, *state, forces=forces, **driving, **more) for x in (lwj, lw))
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_forces_under_constraints_and_what_is_refused():
    bars = lw.mechanisms.four_bar()
    bars = bars.parameters.with_damping(0.4).with_gravity((0, -9.81, 0))
    q = lw.constraints.assemble(bars, {bars.joint_names[0]: 0.4})
    v = lw.constraints.project(bars, q, np.ones(3))[1]
    a = lw.forward_dynamics(bars, q, v, forces="all")
    np.testing.assert_allclose(lwj.forward_dynamics(bars, q, v, None, forces="all"), a, rtol=1e-10)
    needed = lw.inverse_dynamics(bars, q, v, a, forces="all")
    np.testing.assert_allclose(lwj.inverse_dynamics(bars, q, v, a, forces="all"), needed, atol=1e-10)
    masses = {"mass": jnp.asarray(ARM.parameters.masses)}
    for refused, message in (
        (lambda: lwj.mass_matrix(ARM, Q, forces="all"), "takes no forces here"),
        (lambda: lwj.forward_dynamics(ARM, Q, V, TAU, forces="all", parameters=masses), "leave out parameters"),
        (lambda: lwj.forward_dynamics(ARM, Q, V, TAU, ctrl=CTRL), 'forces="all"'),
        (lambda: lwj.forward_dynamics(ARM, Q, V, TAU, forces="spring"), "springs"),
        (lambda: lwj.forward_dynamics(ARM, Q, V, TAU, TAU, forces="all"), "4 arrays are given"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            refused()


def test_mechanisms_on_which_nothing_acts_and_closed_ones():
    bare, bars = lw.mechanisms.planar_arm(2), lw.mechanisms.four_bar()
    np.testing.assert_array_equal(lwj.acting.forces(bare, Q, V, jnp.zeros(0)), 0.0 * Q)
    assert lwj.acting.activation_rates(bare, Q).shape == (3, 0)
    q = lw.constraints.assemble(bars, {bars.joint_names[0]: 0.4})
    np.testing.assert_allclose(
        lwj.acting.forward_dynamics(bars, q), lw.forward_dynamics(bars, q, forces="all"), rtol=1e-9, atol=1e-9
    )
    needed = lw.inverse_dynamics(bars, q, forces="all")
    np.testing.assert_allclose(lwj.acting.inverse_dynamics(bars, q), needed, rtol=1e-9, atol=1e-9)
    for refused, message in (
        (lambda: lwj.acting.forces(bare, Q, V, CTRL), "no actuator of mechanism 'planar_arm_2' acts"),
        (lambda: lwj.acting.forces(bare, Q, V, None, ACTIVATION), "has dynamics: leave it out"),
        (lambda: lwj.acting.actuator_forces(bare, Q, V), "no actuator of mechanism 'planar_arm_2' acts"),
        (lambda: lwj.acting.forces(ARM, Q, V, {"servo": 1.0}), "ctrl must be an array here: 2 numbers"),
        (lambda: lwj.acting.forces(ARM, Q, V, np.zeros(3)), "ctrl"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            refused()
