"""Rounding errors against 50 digits: no more than three times Pinocchio's, on well and on badly scaled mechanisms.

Both sides get the same doubles, which the reference takes as exact.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.oracle import newton_euler
from tests.peers.robots import load, pin, robot

from tests.peers.pinocchio_peer import mirrored  # isort: skip (needs pinocchio, which robots may skip for)

ROUNDING = np.finfo(float).eps


def scaled_chain(n: int, masses: np.ndarray, lengths: np.ndarray) -> lw.Mechanism:
    """``chain(n)`` with other masses and with links that are shorter and longer, of the same shapes."""
    builder, parent, parent_length = lw.Builder(), "ground", 1.0
    for body, mass, length in zip(lw.mechanisms.chain(n).bodies, masses, lengths, strict=True):
        builder.link(body.link, mass, body.com * length, body.inertia * (mass / body.mass * length**2))
        builder.joint(body.joint, body.kind, parent, body.link, (body.rotation, body.position * parent_length))
        parent, parent_length = body.link, length
    return builder.build(f"scaled_chain_{n}")


def spread(n: int, decades: float, seed: int) -> np.ndarray:
    return 10.0 ** np.random.default_rng(seed).uniform(-decades / 2.0, decades / 2.0, n)


# Mechanism, number of states.
CASES = {
    "chain of 6": (lambda: lw.mechanisms.chain(6), 20),
    "UR5": (lambda: load(robot("ur_description/urdf/ur5_robot.urdf")), 20),
    "floating tree": (
        lambda: lw.mechanisms.random_tree(8, 3, joints=("revolute", "prismatic", "spherical"), floating_base=True),
        10,
    ),
    "go2, floating": (lambda: load(robot("go2_description/urdf/go2.urdf"), floating_base=True), 5),
    "100 links, masses over 8 decades": (lambda: scaled_chain(100, spread(100, 8.0, 1), np.ones(100)), 12),
    "30 links, lengths over 4 decades": (lambda: scaled_chain(30, np.ones(30), spread(30, 4.0, 2)), 8),
    "40 links, both": (lambda: scaled_chain(40, spread(40, 8.0, 3), spread(40, 2.0, 4)), 6),
    "heavy tip": (lambda: scaled_chain(20, np.logspace(-4.0, 4.0, 20), np.ones(20)), 8),
    "light tip": (lambda: scaled_chain(20, np.logspace(4.0, -4.0, 20), np.logspace(0.5, -0.5, 20)), 8),
}


def pinocchio_results(mech: lw.Mechanism, q, v, u) -> dict[str, list[np.ndarray]]:
    peer = mirrored(mech)
    model, data, tie = peer.model, peer.data, peer.full_from_own  # tie only reorders here: exact
    states = [(peer.configuration(one), tie @ two, tie @ three) for one, two, three in zip(q, v, u, strict=True)]
    return {
        "inverse_dynamics": [tie.T @ pin.rnea(model, data, *state) for state in states],
        "forward_dynamics": [tie.T @ pin.aba(model, data, *state) for state in states],
    }


@pytest.mark.slow_cases("100 links")
@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("case", CASES)
def test_errors_are_like_pinocchios(case):
    make, count = CASES[case]
    mech = make()
    rng = np.random.default_rng(len(case))
    q, v = lw.random_state(mech, rng, (count,))
    u = rng.normal(size=v.shape)  # accelerations or joint forces
    theirs = pinocchio_results(mech, q, v, u)
    for algorithm in ("inverse_dynamics", "forward_dynamics"):
        oracle = getattr(newton_euler, algorithm)
        references = [oracle(mech, *state) for state in zip(q, v, u, strict=True)]
        peer = errors(theirs[algorithm], references)
        for target in ("numpy", "cpu"):
            own = errors(lw.compile(algorithm, mech, target=target)(q, v, u), references)
            message = (
                f"{case}, {algorithm}, target {target}: typical error {typical(own):.1e}, worst {own.max():.1e}; "
                f"Pinocchio's typical {typical(peer):.1e}, worst {peer.max():.1e}"
            )
            assert typical(own) <= 3.0 * max(typical(peer), ROUNDING), message
            assert own.max() <= 3.0 * max(peer.max(), ROUNDING), message


def errors(found, references) -> np.ndarray:
    return np.array([newton_euler.relative_error(x, y) for x, y in zip(found, references, strict=True)])


def typical(errors: np.ndarray) -> float:
    """Geometric mean: the errors of different states differ by orders of magnitude."""
    return float(np.exp(np.mean(np.log(np.maximum(errors, 1e-20)))))


def test_the_reference_keeps_its_digits():
    """Forward and inverse dynamics of the reference, two different ways through it, agree to 40 digits."""
    mech = CASES["floating tree"][0]()
    q, v = lw.random_state(mech, np.random.default_rng(0))
    a = np.random.default_rng(1).normal(size=mech.nv)
    tau = newton_euler.inverse_dynamics(mech, q, v, a)
    assert newton_euler.relative_error(a, newton_euler.forward_dynamics(mech, q, v, tau)) < 1e-40


def test_the_reference_alone_on_a_pendulum():
    """A point mass m on a rod of length l: m l^2 a + m g l sin q, in closed form."""
    mech = (
        lw.Builder()
        .link("bob", 2.0, (0.0, 0.0, -0.5))
        .joint("pivot", lw.Revolute((0.0, 1.0, 0.0)), "ground", "bob")
        .build(gravity=(0.0, 0.0, -8.0))
    )
    (tau,) = newton_euler.inverse_dynamics(mech, np.array([0.7]), np.array([3.0]), np.array([1.5]))
    assert float(tau) == pytest.approx(2.0 * 0.25 * 1.5 + 2.0 * 8.0 * 0.5 * np.sin(0.7), rel=1e-15)
