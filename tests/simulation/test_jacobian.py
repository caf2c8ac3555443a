"""Jacobians of the raw state [q, v], quaternions and all, against differences of the rates."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.motion.forces import Forces
from linkwise.motion.singular import SingularPositions
from linkwise.motion.system import FullState, Manifold


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("floating_base", [False, True])
def test_jacobian_of_the_rates(seed, floating_base):
    mech = lw.mechanisms.random_tree(3, seed, floating_base=floating_base)
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng)
    target, _ = lw.random_state(mech, rng)
    passive = lw.forces.Passive.springs({j: 2.0 for j in mech.joint_names}) + lw.forces.Passive.dampers(
        {mech.joint_names[0]: 0.3}
    )

    def control(t, q, v):  # like every sensible controller, indifferent to the length of a quaternion
        return 3.0 * lw.difference(mech, q, target) - 0.5 * v * np.abs(v) + np.sin(t)

    system = FullState(mech, Forces(mech, control, passive.on(mech), ()), Manifold(SingularPositions(mech)))
    x, h = system.start(q, v), 1e-5
    found = system.jacobian()(0.3, x)

    def along(e: np.ndarray) -> np.ndarray:
        ends = [system.rates(0.3, x + k * h * e) for k in (-2, -1, 1, 2)]
        return (8.0 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12.0 * h)

    expected = np.array([along(e) for e in np.eye(len(x))]).T
    np.testing.assert_allclose(found, expected, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    "name", ["four_bar", pytest.param("stewart_platform", marks=pytest.mark.slow), "five_bar", "flyball_governor"]
)
def test_jacobian_of_closed_mechanisms_along_their_manifold(name):
    """Across it the Jacobian is a choice; implicit methods only meet states near it."""
    mech, rng = getattr(lw.mechanisms, name)(), np.random.default_rng(1)
    guess = lw.integrate(mech, lw.neutral(mech), 0.1 * rng.normal(size=mech.nv), 1.0)
    if name == "five_bar":
        guess = np.array([2.2, 1.8, 1.5, 1.9])
    q, v = lw.constraints.project(mech, lw.constraints.assemble(mech, guess), rng.normal(size=mech.nv))
    rank = lw.constraints.generic_rank(mech, q)
    control = np.linspace(-1.0, 1.0, mech.nv)
    system = FullState(
        mech,
        Forces(mech, lambda t, q, v: control - 0.5 * v, None, ()),
        Manifold(SingularPositions(mech, np.asarray(rank)), projects=True),
    )
    found = system.jacobian()(0.0, system.start(q, v))
    basis = lw.constraints.null_space(mech, q)
    for _ in range(4):
        step, push = basis @ rng.normal(size=basis.shape[1]), rng.normal(size=mech.nv)

        def state(s: float, step=step, push=push) -> np.ndarray:
            return system.corrected(system.start(lw.integrate(mech, q, step, s), v + s * push))

        h = 1e-3
        ends = [state(k * h) for k in (-2, -1, 1, 2)]
        along, change = (
            (8.0 * (y[2] - y[1]) - (y[3] - y[0])) / (12.0 * h) for y in (ends, [system.rates(0.0, x) for x in ends])
        )
        np.testing.assert_allclose(found @ along, change, atol=1e-6 * np.abs(change).max())
