"""Second derivatives of inverse dynamics: differences of Pinocchio's first derivatives, along its own integration.

The Python module of Pinocchio 4.1 does not have ComputeRNEASecondOrderDerivatives; order and axes of the results are
those of its documentation.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import linkwise as lw
from tests.peers.pinocchio_peer import Peer, from_file, mirrored
from tests.peers.robots import ROBOTS
from tests.physics.trees import close, rate

FILES = [
    ("ur_description/urdf/ur5_robot.urdf", False),
    ("z1_description/urdf/z1.urdf", False),
    ("double_pendulum_description/urdf/double_pendulum.urdf", True),
]


def theirs(peer: Peer, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
    """(d_qq, d_vv, d_qv, d_aq) of one state; first the derivative on the second axis, then the one on the third."""
    model, data, tie = peer.model, peer.data, peer.full_from_own
    at, v_full, a_full = peer.configuration(q), tie @ v, tie @ a

    def first(at: np.ndarray, v_full: np.ndarray) -> np.ndarray:
        pin.computeRNEADerivatives(model, data, at, v_full, a_full)
        upper = np.triu(data.M)
        by_a = upper + np.triu(upper, 1).T
        return np.array([tie.T @ x @ tie for x in (data.dtau_dq, data.dtau_dv, by_a)])

    units = tie.T  # rows: unit velocities of ours
    along_q = np.stack(
        [rate(lambda t, unit=unit: first(pin.integrate(model, at, t * unit), v_full), 2e-2) for unit in units], axis=-1
    )
    by_v = np.stack([rate(lambda t, unit=unit: first(at, v_full + t * unit), 2e-2) for unit in units], axis=-1)
    return along_q[0], by_v[1], by_v[0], along_q[2]


def compare(peer: Peer) -> None:
    mech = peer.mech
    rng = np.random.default_rng(7)
    q, v = lw.random_state(mech, rng, (2,))
    a = rng.normal(size=v.shape)
    ours = lw.compile("inverse_dynamics_second_derivatives", mech, target="numpy")(q, v, a)
    expected = [np.array(x) for x in zip(*(theirs(peer, *state) for state in zip(q, v, a, strict=True)), strict=True)]
    for found, other in zip(ours, expected, strict=True):  # d_qq, d_vv, d_qv, d_aq
        close(found, other, 1e-9, core=3)


@pytest.mark.parametrize(("path", "floating_base"), FILES)
def test_robots(path, floating_base):
    file = ROBOTS / path
    compare(from_file(file, lw.load(file, floating_base=floating_base), floating_base))


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("seed", range(4))
def test_random_trees(seed):
    """Without universal joints: they are built of two others there, and the first derivatives of such a joint take its
    motions as constant in its own frame."""
    joints = ("revolute", "prismatic", "helical", "spherical", "cylindrical", "floating")
    compare(mirrored(lw.mechanisms.random_tree(3, 60 + seed, joints=joints)))
