"""Regressors and rates of Jacobians against Pinocchio: robots from files, and random trees built in both."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from tests.peers.robots import load, pin, robot

from tests.peers.pinocchio_peer import ANGULAR_FIRST, Peer, from_file, mirrored  # isort: skip (needs pinocchio)

ROBOTS = [
    ("ur_description/urdf/ur5_robot.urdf", False),
    ("panda_description/urdf/panda.urdf", False),  # one finger mimics the other
    ("go2_description/urdf/go2.urdf", True),
    ("talos_data/robots/talos_reduced.urdf", True),
]
COUNTED = ("ur5_robot.urdf", "panda.urdf", "talos_reduced.urdf")  # the columns of the table in docs/identification.md
PAGE = Path(__file__).parents[2] / "docs" / "identification.md"
BOTH_HAVE = ("revolute", "prismatic", "spherical", "floating")
REFERENCE = {
    "link": pin.ReferenceFrame.LOCAL,
    "world": pin.ReferenceFrame.WORLD,
    "world_aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


def peers() -> list:
    files = [
        pytest.param(lambda path=path, base=base: _of_file(path, base), id=path.rpartition("/")[2])
        for path, base in ROBOTS
    ]
    trees = [
        pytest.param(
            lambda seed=seed: mirrored(lw.mechanisms.random_tree(7, seed, joints=BOTH_HAVE)), id=f"random tree {seed}"
        )
        for seed in range(4)
    ]
    return files + trees


def _of_file(path: str, floating_base: bool) -> Peer:
    return from_file(robot(path), load(robot(path), floating_base), floating_base)


@pytest.fixture(params=peers())
def peer(request) -> Peer:
    return request.param()


def test_regressor(peer):
    """Pinocchio's columns in the order of our links, its rows collected on our coordinates."""
    mech, model, data = peer.mech, peer.model, peer.data
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (5,))
    a = rng.normal(size=v.shape)
    columns = np.concatenate([np.arange(10) + 10 * (joint - 1) for joint in peer.joints])
    tie = peer.full_from_own
    found = lw.compile("regressor", mech, target="numpy")(q, v, a)
    for k in range(5):
        full = pin.computeJointTorqueRegressor(model, data, peer.configuration(q[k]), tie @ v[k], tie @ a[k])
        expected = (tie.T @ full)[:, columns]
        np.testing.assert_allclose(found[k], expected, atol=1e-12 * np.abs(expected).max())


def test_inertial_parameters(peer):
    expected = np.concatenate([peer.model.inertias[joint].toDynamicParameters() for joint in peer.joints])
    np.testing.assert_allclose(
        lw.estimation.inertial_parameters(peer.mech), expected, atol=1e-13 * np.abs(expected).max()
    )


@pytest.mark.parametrize("frame", REFERENCE)
def test_jacobian_rates(peer, frame):
    mech, model, data = peer.mech, peer.model, peer.data
    q, v = lw.random_state(mech, np.random.default_rng(1), (3,))
    for link in {mech.link_names[0], mech.link_names[-1], mech.link_names[mech.n_links // 2]}:
        found = lw.compile("jacobian_rate", mech, target="numpy", link=link, frame=frame)(q, v)
        joint = peer.joints[mech.link_names.index(link)]
        for k in range(3):
            pin.computeJointJacobiansTimeVariation(model, data, peer.configuration(q[k]), peer.full_from_own @ v[k])
            full = pin.getJointJacobianTimeVariation(model, data, joint, REFERENCE[frame])
            expected = full[ANGULAR_FIRST] @ peer.full_from_own
            np.testing.assert_allclose(found[k], expected, atol=1e-12 * max(np.abs(expected).max(), 1.0))


def test_operation_counts_on_the_page():
    rows = re.findall(r"^\| `(\w+)`, frame \"(\w+)\" \| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 4
    robots = {path.rpartition("/")[2]: load(robot(path), base) for path, base in ROBOTS}
    for algorithm, frame, *printed in rows:
        for name, count in zip(COUNTED, printed, strict=True):
            mech = robots[name]
            deepest = max(range(mech.n_links), key=lambda i, mech=mech: len(mech.tree.path(i)))
            options = {"link": mech.link_names[deepest], "frame": frame}
            counts = lw.compile(algorithm, mech, target="numpy", **options).op_counts
            assert counts["add"] + counts["mul"] == int(count), (algorithm, frame, name)
