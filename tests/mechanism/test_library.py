"""The built-in mechanisms: valid, reproducible, and what their documentation says."""

import numpy as np
import pytest

from linkwise.mechanics import joints
from linkwise.mechanism import library


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("floating_base", [False, True])
def test_random_trees_are_physical_and_reproducible(seed, floating_base):
    tree = library.random_tree(12, seed, floating_base=floating_base)
    assert tree == library.random_tree(12, seed, floating_base=floating_base)
    assert tree.n_links == 12
    for body in tree.bodies:
        low, middle, high = np.linalg.eigvalsh(body.inertia)
        assert body.mass > 0 and 0 < low and high < low + middle
        assert np.abs(body.rotation.T @ body.rotation - np.eye(3)).max() < 1e-15
        assert np.linalg.det(body.rotation) > 0
    if floating_base:
        assert tree.bodies[0].kind == joints.Floating()
        assert tree.tree.parents.count(-1) == 1


def test_random_trees_cover_what_they_promise():
    bodies = [body for seed in range(40) for body in library.random_tree(12, seed).bodies]
    kinds = {type(body.kind).__name__.lower() for body in bodies}
    assert kinds == {kind.replace("_", "") for kind in library.MOVING_KINDS}
    axes = [tuple(body.kind.axis) for body in bodies if isinstance(body.kind, joints.Revolute)]
    assert any(sorted(map(abs, axis)) == [0.0, 0.0, 1.0] for axis in axes)
    assert any(np.allclose(sorted(np.abs(axis) * np.sqrt(14)), [1, 2, 3]) for axis in axes)
    square = [abs(np.dot(b.kind.axis1, b.kind.axis2)) < 1e-15 for b in bodies if isinstance(b.kind, joints.Universal)]
    assert any(square) and not all(square)
    with_armature = sum(any(body.armature) for body in bodies) / len(bodies)
    assert 0.2 < with_armature < 0.4
    trees = [library.random_tree(12, seed) for seed in range(40)]
    assert any(max(map(len, tree.tree.children)) >= 3 for tree in trees), "some trees branch"
    assert any(max(len(tree.tree.path(i)) for i in range(12)) >= 6 for tree in trees), "some trees are deep"


def test_random_trees_of_chosen_joints():
    tree = library.random_tree(30, 1, joints=("prismatic", "fixed"))
    assert {type(body.kind) for body in tree.bodies} == {joints.Prismatic}
    assert 0 < tree.n_links < 30
    assert len(tree.frames) == 31


def test_a_chain_is_general_and_grows_at_its_end():
    chain = library.chain(7)
    assert chain.tree.parents == (-1, 0, 1, 2, 3, 4, 5)
    assert library.chain(4).bodies == chain.bodies[:4]
    for body in chain.bodies:
        numbers = [*body.rotation.ravel(), *body.position, *body.com, *body.inertia.ravel(), *body.kind.axis]
        assert min(map(abs, numbers)) > 1e-6, "no zeros that a compiler could fold away"


def test_planar_arm():
    arm = library.planar_arm(3, length=2.0, mass=1.5)
    np.testing.assert_allclose(arm.parameters.masses, 1.5)
    np.testing.assert_allclose(arm.parameters.coms, [[1, 0, 0]] * 3)
    np.testing.assert_allclose(arm.parameters.inertias, [np.diag([0, 0.5, 0.5])] * 3)
    assert arm.frame("tip").body == 2
    assert arm.frame("tip").position.tolist() == [2, 0, 0]


@pytest.mark.seed("saha1999", "Table 3", by="library")
def test_stanford_arm_has_the_numbers_of_the_table():
    arm = library.stanford_arm()
    assert [type(body.kind).__name__ for body in arm.bodies] == ["Revolute"] * 2 + ["Prismatic"] + ["Revolute"] * 3
    assert arm.parameters.masses.tolist() == [9, 6, 4, 1, 0.6, 0.5]
    # Link 1 stands upright: its far end is 0.2 up and its centre of mass half way, 0.1 below the far end.
    np.testing.assert_allclose(arm.frame("frame2").position, (0, 0, 0.2))
    np.testing.assert_allclose(arm.bodies[0].com, (0, 0, 0.1), atol=1e-16)
    # About the joint axis, z of the link frame, it has the moment about y of frame 2.
    np.testing.assert_allclose(arm.bodies[0].inertia, np.diag([0.01, 0.01, 0.02]), atol=1e-17)
    np.testing.assert_allclose(arm.bodies[3].com, (0, 0, 0.7), atol=1e-15)
    assert tuple(arm.frames)[-1] == "frame7"


def test_puma_has_the_published_reach_and_motors():
    arm = library.puma560()
    np.testing.assert_allclose(arm.parameters.masses, [0, 17.4, 4.8, 0.82, 0.34, 0.09])
    assert arm.bodies[1].armature == (pytest.approx(107.815**2 * 200e-6),)
    # In the position of the table, arm stretched along x, the wrist is at (0.4318 + 0.0203, -0.15005, 0.4318).
    wrist = np.eye(4)
    for body in arm.bodies[:5]:
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = body.rotation, body.position
        wrist = wrist @ step
    np.testing.assert_allclose(wrist[:3, 3], (0.4521, -0.15005, 0.4318), atol=1e-15)
    assert arm.parameters.singular_joints == ()
    assert arm.bodies[1].limits.upper == (pytest.approx(np.radians(225)),)


def test_classics():
    pendulum, cart = library.double_pendulum(), library.cart_pole()
    assert pendulum.joint_names == ("shoulder", "elbow")
    assert pendulum.bodies[1].position.tolist() == [0, 0, -1]
    assert cart.joint_names == ("rail", "hinge")
    assert cart.bodies[1].com.tolist() == [0, 0, 0.5]
