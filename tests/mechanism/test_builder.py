"""Tree order, welding, frames, mimic joints, loops, and what strictness changes."""

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.joints import Fixed, Floating, Planar, Prismatic, Revolute, Spherical
from linkwise.mechanism import Builder, InertiaWarning, Limits, LimitWarning, Mimic

Z = Revolute((0, 0, 1))
BALL = (1.0, (0, 0, 0), (0.4, 0.4, 0.4))
TURN_Z = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def random_rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.linalg.det(q)


def test_joints_keep_the_order_of_declaration_but_parents_come_first():
    builder = Builder()
    for link in "abcde":
        builder.link(link, *BALL)
    builder.joint("c on b", Z, "b", "c")
    builder.joint("d on ground", Z, "ground", "d")
    builder.joint("b on a", Z, "a", "b")
    builder.joint("e on d", Z, "d", "e")
    builder.joint("a on ground", Z, "ground", "a")
    mechanism = builder.build()
    assert mechanism.joint_names == ("a on ground", "b on a", "c on b", "d on ground", "e on d")
    assert mechanism.link_names == ("a", "b", "c", "d", "e")
    assert mechanism.tree.parents == (-1, 0, 1, -1, 3)
    assert mechanism.tree.children == ((1,), (2,), (), (4,), ())
    assert mechanism.tree.subtree(0) == (0, 1, 2)
    assert mechanism.tree.path(2) == (0, 1, 2)
    assert mechanism.tree.path(-1) == ()


def test_ancestors_behind_fixed_joints_come_first_as_well():
    mechanism = (
        Builder()
        .link("a", *BALL)
        .link("w")
        .link("b", *BALL)
        .joint("b on w", Z, "w", "b")
        .joint("weld", Fixed(), "a", "w")
        .joint("a on ground", Z, "ground", "a")
        .build()
    )
    assert mechanism.joint_names == ("a on ground", "b on w")
    assert mechanism.tree.parents == (-1, 0)


def test_coordinates_of_joints_with_several_freedoms():
    mechanism = (
        Builder()
        .link("base", *BALL)
        .link("ball", *BALL)
        .link("puck", *BALL)
        .joint("float", Floating(), "ground", "base")
        .joint("socket", Spherical(), "base", "ball")
        .joint("table", Planar((0, 0, 1)), "ground", "puck", limits=Limits(velocity=2.0))
        .build()
    )
    assert (mechanism.nq, mechanism.nv) == (7 + 4 + 3, 6 + 3 + 3)
    assert mechanism.q_index("socket") == slice(7, 11)
    assert mechanism.v_index("socket") == slice(6, 9)
    assert mechanism.v_index("table") == slice(9, 12)
    assert mechanism.bodies[2].limits.lower == (-np.inf,) * 3
    assert mechanism.bodies[2].limits.velocity == (2.0,) * 3
    assert mechanism.bodies[1].limits.upper == (np.inf,) * 4


def test_welded_links_make_one_body_with_the_masses_of_its_points():
    """A cloud of points split over welded links has the moments of the whole cloud."""
    rng = np.random.default_rng(3)
    builder = Builder()
    cloud, masses = [], []
    placement = np.eye(3), np.zeros(3)  # of the link at hand in the frame of the first one
    for i in range(4):
        pose = (np.eye(3), np.zeros(3)) if i == 0 else (random_rotation(rng), rng.normal(size=3))
        if i > 0:
            placement = placement[0] @ pose[0], placement[1] + placement[0] @ pose[1]
        points, weights = rng.normal(size=(5, 3)), rng.uniform(0.1, 1.0, 5)
        com = weights @ points / weights.sum()
        inertia = sum(
            w * ((p - com) @ (p - com) * np.eye(3) - np.outer(p - com, p - com))
            for p, w in zip(points, weights, strict=True)
        )
        builder.link(f"l{i}", weights.sum(), com, inertia)
        builder.joint(f"j{i}", Fixed() if i else Z, f"l{i - 1}" if i else "ground", f"l{i}", pose)
        cloud.append(points @ placement[0].T + placement[1])
        masses.append(weights)
    mechanism = builder.build()

    points, weights = np.concatenate(cloud), np.concatenate(masses)
    com = weights @ points / weights.sum()
    inertia = sum(
        w * ((p - com) @ (p - com) * np.eye(3) - np.outer(p - com, p - com))
        for p, w in zip(points, weights, strict=True)
    )
    (body,) = mechanism.bodies
    assert body.mass == pytest.approx(weights.sum(), rel=1e-15)
    np.testing.assert_allclose(body.com, com, rtol=0, atol=1e-14)
    np.testing.assert_allclose(body.inertia, inertia, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(mechanism.frame("l3").rotation, placement[0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(mechanism.frame("l3").position, placement[1], rtol=0, atol=1e-14)
    assert mechanism.frame("l3").body == 0


def test_massless_frames_leave_the_numbers_untouched():
    mass, com, inertia = 1.1, np.array([0.1, 0.2, 0.3]), np.diag([0.31, 0.37, 0.41])
    mechanism = (
        Builder()
        .link("a", mass, com, inertia)
        .link("tool")
        .joint("j", Z, "ground", "a")
        .joint("mount", Fixed(), "a", "tool", (TURN_Z, (1, 2, 3)))
        .build()
    )
    (body,) = mechanism.bodies
    assert body.mass == mass
    assert np.array_equal(body.com, com)
    assert np.array_equal(body.inertia, inertia)


def test_links_welded_to_the_ground_are_frames_of_the_ground():
    mechanism = (
        Builder()
        .link("pedestal", 50.0)
        .link("a", *BALL)
        .joint("bolts", Fixed(), "ground", "pedestal", (TURN_Z, (0, 0, 1)))
        .joint("j", Z, "pedestal", "a", (TURN_Z, (1, 0, 0)))
        .build()
    )
    assert mechanism.frame("pedestal").body == -1
    assert tuple(mechanism.frames) == ("ground", "pedestal", "a")
    np.testing.assert_array_equal(mechanism.bodies[0].rotation, TURN_Z @ TURN_Z)
    np.testing.assert_array_equal(mechanism.bodies[0].position, (0, 1, 1))
    assert mechanism.parameters.masses.tolist() == [1.0]


def test_poses_as_pair_matrix_and_none_are_the_same():
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = TURN_Z, (1, 2, 3)
    poses = [(TURN_Z, (1, 2, 3)), matrix, matrix.tolist()]
    built = [Builder().link("a", *BALL).joint("j", Z, "ground", "a", pose).build() for pose in poses]
    assert built[0] == built[1] == built[2]
    shifted = Builder().link("a", *BALL).joint("j", Z, "ground", "a", (None, (0, 0, 0))).build()
    assert shifted == Builder().link("a", *BALL).joint("j", Z, "ground", "a").build()


def test_rotations_written_with_seven_digits_are_made_orthonormal():
    rotation = random_rotation(np.random.default_rng(1))
    (body,) = Builder().link("a", *BALL).joint("j", Z, "ground", "a", (rotation.round(7), (0, 0, 0))).build().bodies
    np.testing.assert_allclose(body.rotation.T @ body.rotation, np.eye(3), rtol=0, atol=1e-15)
    np.testing.assert_allclose(body.rotation, rotation, rtol=0, atol=1e-7)


def test_quarter_turns_become_exact_but_small_angles_stay():
    def turn(angle):
        return np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])

    def built(angle):
        return (
            Builder().link("a", *BALL).joint("j", Z, "ground", "a", (turn(angle), (0, 0, 0))).build().bodies[0].rotation
        )

    assert np.array_equal(built(np.pi / 2), TURN_Z)
    assert built(np.pi / 2 + 1e-14)[0, 0] != 0.0
    assert built(1e-14)[1, 0] == pytest.approx(1e-14)


def test_chains_of_mimic_joints_follow_the_independent_one():
    builder = Builder()
    for i in range(4):
        builder.link(f"l{i}", *BALL)
    builder.joint("last", Z, "ground", "l0", mimic=Mimic("middle", 2.0, 0.5))
    builder.joint("middle", Prismatic((1, 0, 0)), "l0", "l1", mimic=Mimic("free", -3.0, 0.25))
    builder.joint("free", Z, "l1", "l2")
    builder.joint("other", Z, "l2", "l3")
    mechanism = builder.build()
    assert (mechanism.nq, mechanism.nv, mechanism.n_links) == (2, 2, 4)
    assert mechanism.bodies[0].mimic == Mimic("free", -6.0, 1.0)
    assert mechanism.bodies[1].mimic == Mimic("free", -3.0, 0.25)
    assert mechanism.q_index("last") == mechanism.q_index("middle") == mechanism.q_index("free") == slice(0, 1)
    assert mechanism.v_index("other") == slice(1, 2)


def test_loops_are_kept_and_left_out_of_the_spanning_tree():
    mechanism = (
        Builder()
        .link("a", *BALL)
        .link("b", *BALL)
        .joint("j1", Z, "ground", "a")
        .joint("j2", Z, "a", "b")
        .loop("pin", Z, "b", (None, (1, 0, 0)), "ground", (TURN_Z, (2, 0, 0)))
        .build()
    )
    (loop,) = mechanism.loops
    assert (loop.name, loop.link_a, loop.link_b) == ("pin", "b", "ground")
    np.testing.assert_array_equal(loop.pose_b[0], TURN_Z)
    tree = mechanism.spanning_tree
    assert tree.loops == () and tree.bodies == mechanism.bodies
    assert tree.spanning_tree is tree
    assert tree != mechanism


def test_lenient_building_keeps_the_values_and_says_so():
    builder = Builder(source="arm.urdf").link("a", 1.0, (0, 0, 0), (1, 1, 3)).link("b", 0.0, inertia=(1, 1, 1))
    builder.joint("j", Z, "ground", "a", limits=Limits(1, -1)).joint("k", Prismatic((1, 0, 0)), "a", "b")
    with pytest.warns() as caught:
        mechanism = builder.build(strict=False)
    messages = {(type(w.message), str(w.message)) for w in caught}
    assert any(c is InertiaWarning and m.startswith("arm.urdf: link 'a'") and "triangle" in m for c, m in messages)
    assert any(c is InertiaWarning and "link 'b': it has inertia but no mass" in m for c, m in messages)
    assert lw.motion.LimitWarning is LimitWarning
    assert any(c is LimitWarning and "joint 'j': its lower limit 1 exceeds" in m for c, m in messages)
    np.testing.assert_array_equal(mechanism.bodies[0].inertia, np.diag([1, 1, 3]))
    assert mechanism.parameters.masses.tolist() == [1.0, 0.0]


def test_singular_joints():
    def singular(kind, *mass, **joint):
        builder = Builder().link("a", *mass).joint("j", kind, "ground", "a", **joint)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InertiaWarning)
            return builder.build(strict=False).parameters.singular_joints == ("j",)

    tilted = Revolute((1, 2, 3))
    assert singular(Z)
    assert not singular(Z, 0.0, armature=1e-9)
    assert not singular(Prismatic((0, 1, 0)), 1e-9)
    assert not singular(Z, 1e-6, (1e-4, 0, 0))
    assert singular(tilted, 5.0, np.array([1, 2, 3]) / 7)
    assert not singular(tilted, 5.0, np.array([1, 2, 3.001]) / 7)
    assert singular(Floating(), 1.0)
    assert not singular(Floating(), 1.0, (0, 0, 0), (1, 1, 1))
    assert singular(Floating(), 1.0, (1, 0, 0))


def test_massless_links_between_joints_are_no_defect():
    mechanism = (
        Builder()
        .link("hub")
        .link("cross")
        .link("a", *BALL)
        .joint("j1", Z, "ground", "hub")
        .joint("j2", Revolute((0, 1, 0)), "hub", "cross")
        .joint("j3", Revolute((1, 0, 0)), "cross", "a")
        .build()
    )
    assert mechanism.parameters.singular_joints == ()


def test_a_massless_leader_is_no_defect_if_its_follower_has_mass():
    mechanism = (
        Builder()
        .link("knob")
        .link("a", *BALL)
        .joint("j1", Z, "ground", "knob")
        .joint("j2", Z, "ground", "a", mimic=Mimic("j1", 0.1))
        .build()
    )
    assert mechanism.parameters.singular_joints == ()


def test_a_massless_leader_of_massless_followers_is_a_defect():
    builder = Builder().link("knob").link("a").joint("j1", Z, "ground", "knob")
    builder.joint("j2", Z, "ground", "a", mimic=Mimic("j1", 0.1))
    with pytest.warns(InertiaWarning, match="resists their motion: 'j1';"):
        assert builder.build(strict=False).parameters.singular_joints == ("j1",)


def test_long_chains_are_built_without_recursion():
    builder = Builder()
    for i in reversed(range(3000)):
        builder.link(f"l{i}", *BALL)
        builder.joint(f"j{i}", Z, f"l{i - 1}" if i else "ground", f"l{i}")
    mechanism = builder.build()
    assert mechanism.tree.parents == tuple(range(-1, 2999))
    assert len(mechanism.tree.path(2999)) == 3000


def test_the_name_of_a_builder_is_that_of_its_mechanism():
    def built(*name, **options):
        builder = Builder(*name).link("a", 1.0, (0, 0, 0), (1, 1, 1))
        return builder.joint("j", Revolute((0, 0, 1)), "ground", "a").build(**options)

    assert built("swing").name == "swing"
    assert built("swing", name="pendulum").name == "pendulum"
    assert built().name == "mechanism"
