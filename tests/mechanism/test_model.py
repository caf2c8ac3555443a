"""Mechanisms are values: immutable, comparable, hashable, picklable."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import Frame, MechanismError, library


@pytest.fixture
def mechanism():
    return library.random_tree(8, seed=11)


def test_equal_content_is_equal(mechanism):
    again = library.random_tree(8, seed=11)
    assert again == mechanism and hash(again) == hash(mechanism)
    assert library.random_tree(8, seed=12) != mechanism
    assert mechanism.with_gravity((0, 0, 0)) != mechanism
    assert mechanism != "a mechanism"


def test_compiled_kernels_are_no_part_of_the_value(mechanism):
    mechanism._kernels["inverse_dynamics"] = object()
    assert mechanism == library.random_tree(8, seed=11)
    assert mechanism.with_gravity(mechanism.gravity)._kernels == {}


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_equal_and_read_only(mechanism, duplicate):
    mechanism._kernels["unpicklable"] = lambda: None
    other = duplicate(mechanism)
    assert other == mechanism and other is not mechanism
    assert other._kernels == {}
    assert not other.bodies[0].com.flags.writeable


def test_nothing_can_be_changed(mechanism):
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.name = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.bodies[0].mass = 2.0
    with pytest.raises(TypeError):
        mechanism.frames["x"] = mechanism.frame("ground")
    arrays = [mechanism.gravity, mechanism.parameters.masses, mechanism.parameters.coms, mechanism.parameters.inertias]
    arrays += [mechanism.bodies[0].rotation, mechanism.bodies[0].inertia, mechanism.frame("ground").position]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1.0


def test_input_arrays_are_copied():
    gravity = np.array([0.0, 0.0, -1.0])
    mechanism = library.chain(2).with_gravity(gravity)
    gravity[:] = 5.0
    assert mechanism.gravity.tolist() == [0.0, 0.0, -1.0]


def test_with_gravity_changes_gravity_alone(mechanism):
    other = mechanism.with_gravity((0, 0, -1.62))
    assert other.gravity.tolist() == [0, 0, -1.62]
    assert other.with_gravity(mechanism.gravity) == mechanism
    assert mechanism.gravity.tolist() == [0, 0, -9.81]


def test_parameter_arrays(mechanism):
    assert mechanism.parameters.masses.shape == (8,)
    assert mechanism.parameters.coms.shape == (8, 3)
    assert mechanism.parameters.inertias.shape == (8, 3, 3)
    assert mechanism.parameters.inertias[3].tolist() == mechanism.bodies[3].inertia.tolist()


def test_subtree_and_path_agree_with_the_parents(mechanism):
    for i in range(mechanism.n_links):
        assert {j for j in range(mechanism.n_links) if i in mechanism.tree.path(j)} == set(mechanism.tree.subtree(i))


def test_repr_tells_the_sizes():
    assert repr(library.planar_arm(2)) == (
        "<Mechanism 'planar_arm_2': 2 moving links, nq=2, nv=2, 4 frames, gravity=(0.0, -9.81, 0.0)>"
    )
    assert "'planar_arm_1': 1 moving link, nq=1" in repr(library.planar_arm(1))


def test_bodies_out_of_order_are_refused(mechanism):
    with pytest.raises(MechanismError, match="must come after its parent"):
        dataclasses.replace(mechanism, bodies=tuple(reversed(mechanism.bodies)))


def test_frames_of_bodies_that_do_not_exist_are_refused(mechanism):
    frames = [*mechanism.frames.values(), Frame("lost", 99, np.eye(3), np.zeros(3))]
    with pytest.raises(MechanismError, match="'lost' is fixed to body 99, which does not exist"):
        dataclasses.replace(mechanism, frames=frames)


def test_links_without_a_frame_are_refused(mechanism):
    frames = {name: frame for name, frame in mechanism.frames.items() if name != "link3"}
    with pytest.raises(MechanismError, match="no link or frame 'link3'"):
        dataclasses.replace(mechanism, frames=frames)


def test_numbers_of_joints_as_arrays():
    """What a file says of its joints, without a walk over bodies; mimic joints are not among the coordinates."""
    mech = lw.load(
        """<mujoco><worldbody><body name="a"><joint name="ball" type="ball" damping="0.2" stiffness="3"/>
        <geom type="sphere" size="0.1" mass="1"/><body name="b" pos="1 0 0">
        <joint name="hinge" axis="0 1 0" damping="0.5" frictionloss="0.7" stiffness="4" springref="30" armature="0.3"/>
        <geom type="sphere" size="0.1" mass="1"/></body></body></worldbody></mujoco>"""
    )
    np.testing.assert_array_equal(mech.parameters.damping, [0.2, 0.2, 0.2, 0.5])
    np.testing.assert_array_equal(mech.parameters.friction, [0.0, 0.0, 0.0, 0.7])
    np.testing.assert_array_equal(mech.parameters.stiffness, [3.0, 3.0, 3.0, 4.0])
    np.testing.assert_array_equal(mech.parameters.armature, [0.0, 0.0, 0.0, 0.3])
    np.testing.assert_allclose(mech.parameters.spring_rest, [1.0, 0.0, 0.0, 0.0, np.pi / 6])
    assert not mech.parameters.damping.flags.writeable
    np.testing.assert_array_equal(mech.parameters.with_damping(hinge=1.0).parameters.damping, [0.2, 0.2, 0.2, 1.0])


def test_what_ties_links_is_counted_once():
    def bars(length):
        builder = lw.Builder()
        for name, place in (("crank", (0, 0, 0)), ("rocker", (1, 0, 0))):
            builder.link(name, 1.0, (0.2, 0, 0), (0.01, 0.02, 0.02))
            builder.joint(name, lw.Revolute((0, 0, 1)), "ground", name, place)
        return builder.distance("rod", "crank", (0.3, 0, 0), "rocker", (0.3, 0, 0), length)

    assert ", 1 distance rod, 3 frames," in repr(bars(1.0).build("bars"))
    assert ", 1 drive, 3 frames," in repr(bars(lambda t: 1.0 + 0.1 * t).build("bars"))
    both = bars(1.0).coupling("gear", {"crank": 1.0, "rocker": 1.0}).loop("pin", lw.Revolute(), "crank", None, "rocker")
    assert ", 1 loop, 1 distance rod, 1 coupling, 3 frames," in repr(both.build("both"))
