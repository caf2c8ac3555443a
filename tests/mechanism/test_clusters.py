"""Which links loops and mimic joints tie together."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism.clusters import clusters


def test_links_of_a_tree_are_clusters_of_their_own():
    mech = lw.mechanisms.random_tree(9, seed=3)
    found = clusters(mech)
    assert [c.bodies for c in found] == [(i,) for i in range(mech.n_links)]
    assert [c.parent for c in found] == list(mech.tree.parents)
    assert not any(c.loops or c.rows for c in found)


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "loader", "delta_robot", "stewart_platform", "n_four_bar"])
def test_constraints_move_only_joints_of_their_cluster(name):
    mech = getattr(lw.mechanisms, name)()
    jacobian = lw.constraints.constraint_jacobian(mech, lw.random_state(mech, np.random.default_rng(1))[0])
    rows = []
    for cluster in clusters(mech):
        others = np.setdiff1d(np.arange(mech.nv), cluster.coordinates)
        assert not jacobian[np.ix_(cluster.rows, others)].any()
        assert {mech.tree.parents[i] for i in cluster.bodies} <= {cluster.parent, *cluster.bodies}
        rows += cluster.rows
    assert rows == list(range(mech.n_constraints))


def test_a_mimic_joint_ties_all_between_it_and_the_one_it_mimics():
    builder = lw.Builder("hand")
    for i in range(4):
        builder.link(f"link{i}", mass=1.0, inertia=np.eye(3))
        mimic = lw.Mimic("joint1", 0.5) if i == 3 else None
        parent = f"link{i - 1}" if i else "ground"
        builder.joint(f"joint{i}", lw.Revolute((0, 0, 1)), parent, f"link{i}", (0.2, 0.0, 0.0), mimic=mimic)
    assert [c.bodies for c in clusters(builder.build())] == [(0,), (1, 2, 3)]
