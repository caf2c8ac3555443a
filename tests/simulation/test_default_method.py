"""The method of rollouts where none is asked for: semi-implicit where contact acts, else "rk4"."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import studies

from .on_the_ground import free_body

Q, V, DT, STEPS = np.array([1.0, 0, 0, 0, 0, 0, 0.1003]), np.array([0.5, 0, 0, 0.2, 0, -0.3]), 2e-3, 4
CASES = {
    "semi_implicit": free_body("sphere", (0.1,)),
    "rk4": free_body("sphere", (0.1,)).with_acting(contact=False),
}


@pytest.mark.parametrize("method, mech", CASES.items(), ids=CASES)
def test_all_that_share_the_default_take_the_same_steps(method, mech):
    other = next(name for name in CASES if name != method)
    q, v = lw.rollout(mech, Q, V, None, DT, STEPS)
    expected = lw.rollout(mech, Q, V, None, DT, STEPS, method)
    np.testing.assert_array_equal(q, expected[0])
    assert np.abs(q - lw.rollout(mech, Q, V, None, DT, STEPS, other)[0]).max() > 1e-9
    step = lw.motion.step_kernel(mech, DT)(Q, V, np.zeros(6), DT)
    np.testing.assert_allclose(step, np.concatenate([q[1], v[1]]), atol=1e-14)
    weights = (np.ones(6), np.ones(6))
    gradients = [
        lw.derivatives.rollout_vjp(mech, q, v, None, DT, STEPS, weights, *more)["v0"] for more in ((), (method,))
    ]
    np.testing.assert_array_equal(*gradients)
    matrices = [lw.derivatives.rollout_derivatives(mech, q, v, None, DT, *more)[0] for more in ((), (method,))]
    np.testing.assert_array_equal(*matrices)
    study = studies.Study(mech.metadata.with_initial(Q), studies.Rollout(DT, STEPS), cases=1)
    np.testing.assert_array_equal(study.run()["positions"][0], lw.rollout(mech, Q, None, None, DT, STEPS, method)[0])
    held = lw.rollout(mech, Q, V, lw.motion.held(lambda t, q, v: np.zeros(6), 2 * DT), DT, STEPS)
    np.testing.assert_allclose(held[0], q, atol=1e-14)


@pytest.mark.parametrize("coordinates", ["momentum", "nu", "xi"])
def test_other_coordinates_take_everything_explicitly(coordinates):
    mech = CASES["semi_implicit"]
    by_default = lw.rollout(mech, Q, V, None, DT, STEPS, coordinates=coordinates)[0]
    np.testing.assert_array_equal(
        by_default, lw.rollout(mech, Q, V, None, DT, STEPS, "rk4", coordinates=coordinates)[0]
    )


def test_torch_takes_the_default_too():
    torch = pytest.importorskip("torch")
    import linkwise.torch as lwt

    for method, mech in CASES.items():
        q0 = torch.tensor(Q, requires_grad=True)
        q, _ = lwt.rollout(mech, q0, torch.tensor(V), None, DT, STEPS)
        np.testing.assert_array_equal(q.detach().numpy(), lw.rollout(mech, Q, V, None, DT, STEPS, method)[0])


def test_jax_takes_the_default_too():
    pytest.importorskip("jax")
    import linkwise.jax as lwj

    for method, mech in CASES.items():
        q, _ = lwj.rollout(mech, Q, V, None, DT, STEPS)
        np.testing.assert_allclose(np.asarray(q), lw.rollout(mech, Q, V, None, DT, STEPS, method)[0], atol=1e-6)
