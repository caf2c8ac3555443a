"""Rollouts: {coordinates} x {method} x {mechanism} x {value, vjp, matrices of steps, float32, parameters, kernel}.

The oracle integrates dq/dt = N(q) v, dv/dt = forward dynamics adaptively, which knows nothing of steps; derivatives are
compared with differences of rollouts.  Springs and dampers act on both sides.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwise as lw

from .mechanisms import MOMENT, NAMES, case, driven_five_bar

DT, STEPS = 1e-3, 6
MOVING = driven_five_bar()
METHODS = {
    "joint": ("rk4", "semi_implicit"),
    "momentum": ("rk4", "stormer_verlet"),
    "nu": ("rk4",),
    "xi": ("semi_implicit",),
}
CELLS = [
    pytest.param(name, coordinates, method, id=f"{name}-{coordinates}-{method}", marks=marks)
    for name in NAMES
    for coordinates, methods in METHODS.items()
    for method in methods
    for marks in (() if coordinates == "joint" and name in ("tree", "one loop", "masked feet") else pytest.mark.slow,)
]


def scheduled(name: str) -> dict[str, np.ndarray]:
    active = case(name).active
    return {} if active is None else {"active": active}


def driven(name: str, method: str, dt: float = DT, steps: int = STEPS) -> dict[str, np.ndarray]:
    """What the drives ask for, from the moment of the case on."""
    if case(name).scleronomic:
        return {}
    return {"drive": lw.motion.drive_values(MOVING, dt, steps, method, start=MOMENT)}


def rollout(name: str, coordinates: str = "joint", method: str = "rk4", **options):
    own, given = case(name), {"q0": case(name).q, "v0": case(name).v, "tau": case(name).tau, "dt": DT, "steps": STEPS}
    if coordinates == "joint":
        given |= driven(name, method, options.get("dt", DT), options.get("steps", STEPS))
    given |= options
    return lw.rollout(own.mech, method=method, coordinates=coordinates, **given, **scheduled(name))


def refused(name: str, coordinates: str, method: str) -> str:
    """The words of the law that forbids a cell; "" where none does."""
    own = case(name)
    if coordinates != "joint" and not own.tree:
        return "has loops"
    rotating = any(not body.kind.rates_are_velocities for body in own.mech.bodies)
    return "canonical coordinates" if method == "stormer_verlet" and rotating else ""


@cache
def reference(name: str) -> tuple[np.ndarray, np.ndarray]:
    """q and v after all steps, by an adaptive method from accelerations."""
    own = case(name)
    nq, tau = own.mech.nq, own.tau

    def rates(t: float, x: np.ndarray) -> np.ndarray:
        q, v = x[:nq], x[nq:]
        mech = own.mech if own.scleronomic else MOVING.constraints.at_time(MOMENT + t)
        a = lw.forward_dynamics(mech, q, v, tau, forces="all", **scheduled(name))
        return np.concatenate([lw.kinematics.coordinate_rates(own.mech, q, v), a])

    x = solve_ivp(rates, (0.0, STEPS * DT), np.concatenate([own.q, own.v]), "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    return x[:nq], x[nq:]


def error(name: str, states: tuple[np.ndarray, np.ndarray]) -> float:
    q, v = reference(name)
    apart = lw.difference(case(name).mech, states[0][-1], q)
    return float(max(np.abs(apart).max(), np.abs(states[1][-1] - v).max() * DT))


@pytest.mark.parametrize(("name", "coordinates", "method"), CELLS)
def test_value(name, coordinates, method):
    law = refused(name, coordinates, method)
    if law:
        with pytest.raises((lw.MechanismError, ValueError), match=law):
            rollout(name, coordinates, method)
        return
    states = rollout(name, coordinates, method)
    if method == "rk4":
        assert error(name, states) < 1e-9
        return
    halved = rollout(name, coordinates, method, dt=DT / 2, steps=2 * STEPS)
    order = 2 if method == "stormer_verlet" else 1
    assert error(name, halved) < 0.65**order * error(name, states) + 1e-12 and error(name, states) < 1e-2


def allowed(name: str) -> np.ndarray:
    """(nv,): a change of velocities that the constraints allow."""
    own, rng = case(name), np.random.default_rng(11)
    if own.tree:
        return rng.normal(size=own.mech.nv)
    basis = lw.constraints.null_space(own.mech, own.q, **scheduled(name))
    return basis @ rng.normal(size=basis.shape[-1])


@pytest.mark.parametrize(("name", "coordinates", "method"), CELLS)
def test_derivatives(name, coordinates, method):
    """One sweep backwards against differences, and against the product of matrices of the steps."""
    if refused(name, coordinates, method):
        return
    own, rng = case(name), np.random.default_rng(12)
    q, v = rollout(name, coordinates, method)
    weights = rng.normal(size=(2, own.mech.nv))
    found = lw.derivatives.rollout_vjp(
        own.mech, q, v, own.tau, DT, STEPS, tuple(weights), method, coordinates=coordinates,
        **scheduled(name), **driven(name, method),
    )  # fmt: skip
    force = rng.normal(size=own.mech.nv)

    def value(step: float, **given) -> float:
        ends = rollout(name, coordinates, method, **given)
        return lw.difference(own.mech, q[-1], ends[0][-1]) @ weights[0] + ends[1][-1] @ weights[1]

    for along, gradient, given in (
        (allowed(name), found["v0"], lambda step: {"v0": own.v + step * allowed(name)}),
        (force, found["tau"].sum(axis=0), lambda step: {"tau": own.tau + step * force}),
    ):
        step = 1e-5
        expected = (value(step, **given(step)) - value(-step, **given(-step))) / (2 * step)
        assert gradient @ along == pytest.approx(expected, rel=1e-5, abs=1e-7)
    if coordinates == "joint":
        A, B = lw.derivatives.rollout_derivatives(
            own.mech, q, v, own.tau, DT, method, **scheduled(name), **driven(name, method)
        )
        adjoint = np.concatenate(weights)
        for k in reversed(range(STEPS)):
            np.testing.assert_allclose(adjoint @ B[k], found["tau"][k], rtol=1e-7, atol=1e-9)
            adjoint = adjoint @ A[k]
        np.testing.assert_allclose(adjoint, np.concatenate([found["q0"], found["v0"]]), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(("name", "coordinates", "method"), CELLS)
def test_forms(name, coordinates, method):
    """In single precision, with numbers of the mechanism as inputs, by the interpreter, and as a kernel."""
    if refused(name, coordinates, method):
        return
    own = case(name)
    q, v, status = rollout(name, coordinates, method, return_status=True)
    assert status == 0
    single = rollout(
        name,
        coordinates,
        method,
        q0=own.q.astype(np.float32),
        v0=own.v.astype(np.float32),
        tau=own.tau.astype(np.float32),
    )
    assert single[0].dtype == np.float32 and np.abs(single[0] - q).max() < 1e-3
    same = rollout(name, coordinates, method, parameters={"mass": own.mech.parameters.masses})
    np.testing.assert_allclose(same[0], q, atol=1e-10)
    interpreted = rollout(name, coordinates, method, target="numpy")
    np.testing.assert_allclose(interpreted[0], q, atol=1e-10)
    step = lw.motion.step_kernel(own.mech, DT, method, tuple(scheduled(name)), coordinates=coordinates)
    inputs = [q[:-1], v[:-1], own.tau, DT, *driven(name, method).values(), *scheduled(name).values()]
    state = step(*inputs)
    state = state if own.tree else state[0]
    np.testing.assert_allclose(state[:, : own.mech.nq], q[1:], atol=1e-9)


@pytest.mark.parametrize("method", METHODS["joint"])
def test_derivatives_by_what_drives_ask_for(method):
    """One sweep backwards against differences, by the values of all moments but the first, which the start keeps."""
    own, rng, table = case("driven"), np.random.default_rng(13), driven("driven", method)["drive"]
    q, v = rollout("driven", method=method)
    weights, along = rng.normal(size=(2, own.mech.nv)), rng.normal(size=table.shape)
    along[0, 0] = 0.0
    found = lw.derivatives.rollout_vjp(
        own.mech, q, v, own.tau, DT, STEPS, tuple(weights), method, wrt="drive", drive=table
    )["drive"]

    def value(step: float) -> float:
        ends = rollout("driven", method=method, drive=table + step * along)
        return lw.difference(own.mech, q[-1], ends[0][-1]) @ weights[0] + ends[1][-1] @ weights[1]

    expected = (value(1e-6) - value(-1e-6)) / 2e-6
    assert found.shape == table.shape and np.sum(found * along) == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_drives_at_one_moment_alone_are_refused():
    own = case("driven")
    with pytest.raises(lw.MechanismError, match="is what drives make of it at one time"):
        lw.rollout(own.mech, own.q, own.v, None, DT, STEPS)
    with pytest.raises(lw.MechanismError, match="has no drives"):
        lw.rollout(case("one loop").mech, case("one loop").q, None, None, DT, STEPS, drive=np.zeros((STEPS, 3, 1, 3)))
