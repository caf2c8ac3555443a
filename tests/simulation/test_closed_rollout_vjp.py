"""Gradients through rollouts of closed mechanisms, against differences of rollouts."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

DT, STEPS = 2e-3, 40


def geared() -> lw.Mechanism:
    """A sun and a planet on a carrier, tied by two couplings, and gravity that turns the carrier."""
    builder = lw.Builder()
    for name, mass in (("carrier", 1.0), ("sun", 1.0), ("planet", 0.5)):
        builder.link(name, mass, (0.1, 0.0, 0.0), (0.05, 0.05, 0.05))
    builder.joint("carrier", lw.Revolute(), "ground", "carrier", damping=0.2)
    builder.joint("sun", lw.Revolute(), "ground", "sun").joint(
        "planet", lw.Revolute(), "carrier", "planet", (0.3, 0, 0)
    )
    builder.coupling("ring", {"planet": 20, "carrier": 60}).coupling("mesh", {"sun": 20, "carrier": -20, "planet": 20})
    return builder.build("geared", (0.0, -9.81, 0.0))


MECHANISMS = {
    "four-bar": (lw.mechanisms.four_bar, {"crank_joint": 0.9}, "rk4"),
    "gears": (geared, {"carrier": 0.4}, "semi_implicit"),
}


@pytest.mark.parametrize("case", MECHANISMS)
def test_gradients_are_those_of_differences(case):
    make, named, method = MECHANISMS[case]
    mech = make()
    rng, n = np.random.default_rng(0), mech.nv
    q0, tau = lw.configuration(mech, named), 0.3 * rng.normal(size=(2, STEPS, n))
    moving = lw.constraints.null_space(mech, q0)[:, 0]
    masses, w, u = mech.parameters.masses.copy(), rng.normal(size=n), rng.normal(size=n)

    def value(q0=q0, v0=None, tau=tau, masses=masses):
        q, v = lw.rollout(mech, q0, v0, tau, DT, STEPS, method, parameters={"mass": masses}, every=10)
        return (q, v), q[:, -1] @ w + v[:, -1] @ u

    path, _ = value()
    found = lw.derivatives.rollout_vjp(mech, *path, tau, DT, STEPS, (w, u), method, parameters={"mass": masses})
    step, push, heavier = 1e-6, rng.normal(size=tau.shape), rng.normal(size=mech.n_links)
    near = [lw.constraints.project(mech, q0 + side * step * moving, np.zeros(n))[0] for side in (1, -1)]
    for got, ends in (
        (np.sum(found["tau"] * push, axis=(1, 2)), [{"tau": tau + side * step * push} for side in (1, -1)]),
        (found["v0"] @ moving, [{"v0": side * step * moving} for side in (1, -1)]),
        (found["q0"] @ moving, [{"q0": there} for there in near]),
        (found["mass"] @ heavier, [{"masses": masses + side * step * heavier} for side in (1, -1)]),
    ):
        up, down = (value(**end)[1] for end in ends)
        np.testing.assert_allclose(got, (up - down) / (2 * step), rtol=1e-4, atol=1e-7)


def test_motions_that_pass_singular_positions_are_flagged():
    """A parallelogram, which can go two ways where all its links are in one line; one that hangs does not."""
    mech = lw.mechanisms.n_four_bar(1)
    q0 = lw.constraints.assemble(mech, [[1.3, 1.3, -1.3], [2.9, 2.9, -2.9]])
    v0 = lw.constraints.project(mech, q0, [[5.0, 5.0, -5.0], [0.0, 0.0, 0.0]])[1]
    with pytest.warns(lw.MechanismWarning):
        q, v, status = lw.rollout(mech, q0, v0, None, 0.02, 30, return_status=True)
    assert 0 < status[0] < 30 and status[1] == 0
    with pytest.warns(lw.MechanismWarning, match=r"of state \(0,\) .*takes other ways") as told:
        found = lw.derivatives.rollout_vjp(mech, q, v, None, 0.02, 30, (np.ones(3), None))
    step = int(str(told[0].message).split("step ")[1].split()[0])
    assert status[0] <= step <= 30
    assert np.isnan(found["q0"][0]).all() and np.isnan(found["tau"][0, :step]).all()
    alone = lw.derivatives.rollout_vjp(mech, q[1], v[1], None, 0.02, 30, (np.ones(3), None))
    for name, gradient in alone.items():
        np.testing.assert_allclose(found[name][1], gradient, rtol=1e-9, atol=1e-12)
    with pytest.warns(lw.MechanismWarning, match=rf"step {step} of state \(0,\)"):
        A, B = lw.derivatives.rollout_derivatives(mech, q, v, None, 0.02)
    taken = np.isfinite(A).all(axis=(-2, -1))
    assert taken[1].all() and not taken[0, step - 1] and (np.isfinite(B).all(axis=(-2, -1)) == taken).all()
    assert taken[0, : step - 1].all()
    with pytest.raises(lw.KernelError, match="not the motion that rollout makes"):  # arguments that are wrong
        lw.derivatives.rollout_vjp(mech, q, v, np.ones(3), 0.02, 30, (np.ones(3), None))
