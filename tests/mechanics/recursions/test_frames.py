"""Internal frames are ours to choose: no result may depend on the choice."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS
from linkwise.mechanics.recursions import tree as trees
from linkwise.mechanics.recursions.frames import FrameChoice, choose_frames, chosen_and_placed, place
from linkwise.mechanics.recursions.tree import build_tree

KINDS = lw.mechanisms.EVERY_KIND
MECHANISMS = [
    *(lw.mechanisms.random_tree(5, seed, joints=(kind,)) for seed, kind in enumerate(KINDS)),
    *(lw.mechanisms.random_tree(7, seed, joints=(*KINDS, "fixed")) for seed in range(20, 24)),
    lw.mechanisms.random_tree(6, 3, floating_base=True),
    lw.mechanisms.chain(5),
    lw.mechanisms.puma560(),
    lw.mechanisms.stanford_arm(),
]
every_mechanism = pytest.mark.parametrize("mech", MECHANISMS, ids=lambda mech: mech.name)
RESULTS = {
    "forward_dynamics": ("v", "a"),
    "inverse_dynamics": ("v", "a"),
    "mass_matrix": (),
    "mass_matrix_inverse": (),
    "coriolis_matrix": ("v",),
    "link_poses": (),
    "link_velocities": ("v",),
    "link_accelerations": ("v", "a"),
    "kinetic_energy": ("v",),
    "momentum": ("v",),
    "momentum_rate": ("v", "a"),
    "centroidal_momentum": ("v",),
    "centroidal_momentum_matrix": (),
    "centroidal_momentum_matrix_rate": ("v",),
}


def unmoved(mechanism: lw.Mechanism) -> trees.Tree:
    """The tree whose internal frames stand where the joints' canonical frames are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "chosen_and_placed", lambda mech, movable, steps: chosen_and_placed(mech, set(), steps))
        return build_tree(mechanism)


@every_mechanism
def test_results_do_not_depend_on_the_frames(mech):
    rng = np.random.default_rng(1)
    q, v = lw.random_state(mech, rng)
    given = {"v": v.tolist(), "a": rng.normal(size=mech.nv).tolist()}
    chosen, plain = build_tree(mech), unmoved(mech)
    for name, inputs in RESULTS.items():
        arrays = [q.tolist(), *(given[x] for x in inputs)]
        found, expected = (np.array(ALGORITHMS[name].function(tree, *arrays), dtype=float) for tree in (chosen, plain))
        np.testing.assert_allclose(
            found, expected, rtol=0.0, atol=1e-9 * max(1.0, np.abs(expected).max()), err_msg=name
        )


def test_frames_are_moved_where_they_may_be():
    """The comparison above compares different trees."""
    mech = lw.mechanisms.chain(5)
    moved = choose_frames(mech, set(range(5)))
    assert all(choice != FrameChoice() for choice in moved[:-1])
    assert choose_frames(mech, set()) == [FrameChoice()] * 5
    assert choose_frames(mech, {1, 2})[3] == FrameChoice()


def test_steps_between_skew_axes_are_three_numbers():
    """Modified Denavit-Hartenberg frames: a, alpha, d; the angle is an offset of the joint's."""
    mech = lw.mechanisms.chain(6)
    choices = choose_frames(mech, set(range(6)))
    for i in range(1, 6):
        step = place(mech, i, choices)
        numbers = np.count_nonzero(step.first_shift) + np.count_nonzero(step.second_shift)
        assert numbers == 2
        assert step.rotation[0] == pytest.approx([1.0, 0.0, 0.0]) and step.rotation[:, 0] == pytest.approx([1.0, 0, 0])


@every_mechanism
def test_the_way_to_the_users_frame(mech):
    """Internal frames lead back to the user's link frames: crossings and ``user`` together give the links' poses."""
    q, _ = lw.random_state(mech, np.random.default_rng(2))
    for tree in (build_tree(mech), unmoved(mech), build_tree(mech, at_user_origins=True)):
        poses = []
        for i, kinematics in enumerate(tree.joint_kinematics(q.tolist())):
            pose = homogeneous(kinematics.transform)
            parent = tree.links[i].parent
            poses.append(poses[parent] @ pose if parent >= 0 else pose)
        users = np.array([pose @ homogeneous(link.user) for pose, link in zip(poses, tree.links, strict=True)])
        np.testing.assert_allclose(users, lw.compile("link_poses", mech, target="numpy")(q), rtol=0.0, atol=1e-12)
    assert all(np.allclose(link.user.position(), 0.0) for link in build_tree(mech, at_user_origins=True).links)


def homogeneous(transform) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = np.array(transform.rotation(), dtype=float), np.array(transform.position(), dtype=float)
    return pose
