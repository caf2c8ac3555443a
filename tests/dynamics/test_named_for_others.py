"""What users of other libraries look for: rates of the centroidal momentum, configurations between two, pushes at
frames, names that are others here."""

from __future__ import annotations

import re

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.registry import OTHER_LIBRARIES


@pytest.fixture(scope="module")
def tree() -> lw.Mechanism:
    return lw.mechanisms.random_tree(4, 5, ("revolute", "spherical", "prismatic"), floating_base=True)


def test_rate_of_the_centroidal_momentum(tree):
    """It is dA/dt v + A a, and by Newton and Euler gravity alone where no forces act."""
    rng = np.random.default_rng(0)
    q, v = lw.random_state(tree, rng, (5,))
    a = rng.normal(size=v.shape)
    expected = lw.centroidal.centroidal_momentum_matrix_rate(tree, q, v) @ v[..., None]
    expected = expected + lw.centroidal.centroidal_momentum_matrix(tree, q) @ a[..., None]
    np.testing.assert_allclose(lw.centroidal.centroidal_momentum_rate(tree, q, v, a), expected[..., 0], atol=1e-9)
    falling = lw.forward_dynamics(tree, q, v, np.zeros(tree.nv))
    weight = np.r_[0, 0, 0, tree.parameters.masses.sum() * tree.gravity]
    np.testing.assert_allclose(
        lw.centroidal.centroidal_momentum_rate(tree, q, v, falling),
        np.tile(weight, (5, 1)),
        atol=1e-7 * np.abs(weight).max(),
    )


def test_between_two_configurations(tree):
    rng = np.random.default_rng(1)
    q0, q1 = lw.random_state(tree, rng)[0], lw.random_state(tree, rng)[0]
    path = lw.kinematics.interpolate(tree, q0, q1, np.linspace(0.0, 1.0, 5))
    way = lw.difference(tree, q0, q1)
    np.testing.assert_allclose(lw.difference(tree, q0, path), np.linspace(0, 1, 5)[:, None] * way, atol=1e-9)


def test_pushes_at_frames(tree):
    """Joint forces of a push are those by the Jacobian of its frame."""
    rng = np.random.default_rng(2)
    link = tree.link_names[2]
    mech = tree.with_frame("tool", link, lw.pose((0.1, -0.2, 0.3), rpy=(0.5, 0.4, -0.3)))
    q, v = lw.random_state(mech, rng, (3,))
    a, push = rng.normal(size=v.shape), rng.normal(size=(3, 6))
    without = lw.inverse_dynamics(mech, q, v, a)
    for frame in ("link", "world_aligned"):
        wrenches = lw.forces.wrenches_at(mech, {"tool": push}, q, frame)
        assert wrenches.shape == (3, mech.n_links, 6)
        expected = (np.swapaxes(lw.jacobian(mech, q, "tool", frame=frame), -1, -2) @ push[..., None])[..., 0]
        np.testing.assert_allclose(without - lw.inverse_dynamics(mech, q, v, a, wrenches), expected, atol=1e-9)
    both = lw.forces.wrenches_at(mech, {"tool": push[0], link: push[1]})
    np.testing.assert_allclose(
        both, lw.forces.wrenches_at(mech, {"tool": push[0]}) + lw.forces.wrenches_at(mech, {link: push[1]}), atol=1e-12
    )
    with pytest.raises(lw.MechanismError, match="need q"):
        lw.forces.wrenches_at(mech, {"tool": push[0]}, frame="world_aligned")
    with pytest.raises(lw.MechanismError, match="fixed to the ground"):
        lw.forces.wrenches_at(mech, {"ground": push[0]})
    with pytest.raises(lw.MechanismError, match=r"\[moment; force\]"):
        lw.forces.wrenches_at(mech, {"tool": push[0, :3]})


def test_hints(tree):
    with pytest.raises(AttributeError, match="it is linkwise.frame_pose or linkwise.link_poses here"):
        lw.forward_kinematics  # noqa: B018
    with pytest.raises(ValueError, match=r"q is a dictionary, .* lw.configuration\(mech, q\) makes one"):
        lw.mass_matrix(tree, {tree.joint_names[1]: 0.1})
    with pytest.raises(lw.MechanismError, match=r"write lw.pose\(position, rpy"):
        tree.with_frame("tool", tree.link_names[1], ((0, 0, 0.1), (0.2, 0, 0)))
    with pytest.raises(lw.MechanismError, match=r"comes before q, range_of_motion\(mech, 'crank_joint', q\)"):
        mech = lw.mechanisms.four_bar()
        lw.linkages.range_of_motion(mech, mech.initial, "crank_joint")


def test_modules_of_other_libraries_are_attributes():
    pytest.importorskip("torch")
    assert lw.torch.rollout is not None


def test_hints_name_what_there_is():
    """Of names of other libraries: what is said to be here is, and none of them is here itself."""
    for theirs, ours in OTHER_LIBRARIES.items():
        assert theirs not in lw.__all__
        for path in re.findall(r"(?:^|linkwise\.)([A-Za-z_][\w.]*)", ours):
            of_mechanisms = path.removeprefix("Mechanism.")  # attributes of views, which a mechanism has
            found = lw if of_mechanisms == path else lw.mechanisms.planar_arm(1)
            for name in of_mechanisms.rstrip(".").split("."):
                found = getattr(found, name, None)
            assert found is not None, f"{theirs}: {path}"
