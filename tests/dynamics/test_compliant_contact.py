"""Compliant contact: forces against poses and NumPy, energies against forces, derivatives against differences."""

from __future__ import annotations

import ctypes
import json
import math
import pickle
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import from_data, to_data
from linkwise.mechanism.mobility_of_points import PointMobility
from tests.compiler.targets import cuda_on_host
from tests.compiler.targets.test_c_source import COMPILER, build
from tests.oracle.contact import Contacts, normal_force

KINDS = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
NUMBERS = {"stiffness": 50.0, "dissipation": 2.0, "damping": 40.0, "slip_speed": 0.3, "smoothing": 0.2, "margin": 0.05}


def random_pose(rng):
    return lw.pose(rng.normal(size=3), rpy=rng.uniform(-3, 3, 3))


def touching(rng: np.random.Generator, seed: int, **numbers: float) -> lw.Mechanism:
    """A random tree with shapes of every kind on its links, a plane of the ground and one on a link, and pairs of round
    shapes; soft and long-reaching, so that much touches."""
    mech = lw.mechanisms.random_tree(5, seed)
    for k, (kind, count) in enumerate(KINDS.items()):
        link = mech.link_names[1 + k % 4]
        mech = mech.with_shape(kind, link, kind, rng.uniform(0.5, 1.5, count), random_pose(rng), friction=0.3)
    first = mech.link_names[0]
    mech = mech.with_shape("plate", first, "plane", (), random_pose(rng)).with_shape("ball", first, "sphere", 2.0)
    mech = mech.with_shape("rod", first, "capsule", (1.0, 1.5), random_pose(rng))
    mech = mech.with_shape("stone", "ground", "sphere", 2.0, rng.normal(size=3))
    mech = mech.with_ground(0.5, rng.normal(size=3), **numbers)
    on_plate = [(kind, "plate") for kind in KINDS]
    mech = mech.with_contact(*on_plate, ("sphere", "ball"), ("capsule", "ball"), ("rod", "sphere"), **numbers)
    return mech.with_contact(("rod", "capsule"), ("capsule", "stone"), **numbers)


@pytest.mark.parametrize("seed", range(4))
def test_wrenches_follow_from_poses_and_velocities(seed):
    rng = np.random.default_rng(seed)
    mech = touching(rng, seed, **NUMBERS)
    q, v = lw.random_state(mech, rng, (6,))
    wrenches, points = (
        read(mech, q, v, explicit=True) for read in (lw.contact.contact_wrenches, lw.contact.contact_points)
    )
    pushing = 0
    for k in range(len(q)):
        expected = Contacts(mech, q[k], v[k])
        scale = 1.0 + np.abs(expected.wrenches()).max()
        np.testing.assert_allclose(wrenches[k], expected.wrenches(), atol=1e-10 * scale)
        pairs, _, _, depth, place, normal, force = zip(*expected.found, strict=True)
        assert pairs == mech.contact.parts
        np.testing.assert_allclose(points.gap[k], -np.array(depth), atol=1e-12)
        np.testing.assert_allclose(points.position[k], place, atol=1e-10)
        np.testing.assert_allclose(points.normal[k], normal, atol=1e-12)
        np.testing.assert_allclose(points.force[k], force, atol=1e-10 * scale)
        pushing += np.count_nonzero(np.linalg.norm(force, axis=-1))
    assert pushing > 20


def test_balls_and_capsules_touch_boxes():
    """Against the oracle outside; from inside the nearest face pushes, with the gradient of the energy everywhere."""
    rng = np.random.default_rng(7)
    mech = lw.mechanisms.random_tree(5, 2)
    first, *_, last = mech.link_names
    mech = mech.with_shape("ball", last, "sphere", 1.0, random_pose(rng))
    mech = mech.with_shape("rod", mech.link_names[2], "capsule", (0.8, 1.0), random_pose(rng))
    mech = mech.with_shape("step", "ground", "box", (0.5, 0.8, 1.1), random_pose(rng))
    mech = mech.with_shape("trunk", first, "box", (0.4, 0.3, 0.5), random_pose(rng))
    mech = mech.with_contact(("step", "ball"), ("rod", "step"), ("trunk", "ball"), ("rod", "trunk"), **NUMBERS)
    mech = mech.with_contact(("step", "trunk"), **(NUMBERS | {"margin": 0.5}))
    assert mech.contact_pairs[0].shapes == ("ball", "step") and len(mech.contact.parts) == 14
    assert mech.contact_pairs[-1].shapes == ("trunk", "step")  # by the corners of what moves
    mech = mech.with_shape("peg", "ground", "box", (0.2, 0.25, 0.3), random_pose(rng))
    mech = mech.with_contact(("peg", "trunk"), **(NUMBERS | {"margin": 0.5}))
    assert len(mech.contact.parts) == 30  # by the corners of both
    two = mech.with_shape("other", last, "box", (0.1, 0.1, 0.1))
    with pytest.raises(lw.MechanismError, match="a box and a box do not touch.*boxes with boxes.*fixed to the ground"):
        two.with_contact(("trunk", "other"))
    checked = pushing = 0
    q, v = lw.random_state(mech, rng, (40,))
    wrenches = lw.contact.contact_wrenches(mech, q, v, explicit=True)
    for k in range(len(q)):
        try:
            expected = Contacts(mech, q[k], v[k])
        except AssertionError:  # the middle of a ball is inside of a box
            continue
        checked, pushing = checked + 1, pushing + expected.wrenches().any()
        np.testing.assert_allclose(wrenches[k], expected.wrenches(), atol=1e-10 * (1.0 + np.abs(wrenches[k]).max()))
    assert checked > 10 and pushing > 5
    elastic = mech.with_contact(friction=0.0, dissipation=0.0).with_acting("contact")
    still = np.zeros(mech.nv)
    for k in range(12):
        steps = 1e-6 * np.eye(mech.nv)
        there = [
            [lw.contact.contact_energy(elastic, lw.integrate(mech, q[k], s * d, 1.0)) for s in (1, -1)] for d in steps
        ]
        slope = [(b - a) / 2e-6 for a, b in there]
        found = lw.forces.joint_forces(elastic, q[k], still)
        np.testing.assert_allclose(found, slope, atol=2e-5 * (1.0 + np.abs(found).max()))
    inside = lw.Builder().link("b", 1.0, inertia=(0.1, 0.1, 0.1)).joint("f", lw.Floating(), "ground", "b").build()
    inside = inside.with_shape("s", "b", "sphere", 0.1).with_shape("t", "ground", "box", (1, 1, 1))
    inside = inside.with_contact(("s", "t"))
    points = lw.contact.contact_points(inside, [1, 0, 0, 0, 0.2, 0.1, 0.9], np.zeros(6))
    np.testing.assert_allclose(points.normal, [[0, 0, 1]])
    np.testing.assert_allclose(points.gap, [-0.2])
    q, v = lw.rollout(inside, [1, 0, 0, 0, 0.2, 0.1, 1.3], None, None, 2e-3, 500, "semi_implicit", final_only=True)
    assert abs(q[6] - 1.1) < 1e-3 and np.abs(v).max() < 1e-6  # it comes to rest on the box, in implicit steps


@pytest.mark.parametrize(
    "kinds",
    [("ellipsoid", "sphere"), ("ellipsoid", "capsule"), ("ellipsoid", "ellipsoid"), ("ellipsoid", "cylinder")]
    + [("ellipsoid", "box"), ("sphere", "cylinder"), ("capsule", "cylinder")],
)
def test_ellipsoids_and_cylinders_touch_other_shapes(kinds):
    """Forces are the slopes of the energy and rates those of the gap, on the ground and between links; derivatives are
    those of differences."""
    sizes = {"sphere": 0.5, "capsule": (0.3, 0.4), "ellipsoid": (0.5, 0.4, 0.6), "cylinder": (0.5, 0.4)}
    sizes["box"] = (0.4, 0.3, 0.5)
    rng = np.random.default_rng(3)
    builder = lw.Builder()
    for name in "mn":
        builder = builder.link(name, 2.0, (0.1, 0, 0), (0.3, 0.2, 0.25)).joint(
            f"f{name}", lw.Floating(), "ground", name
        )
    mech = builder.build().with_shape("a", "m", kinds[0], sizes[kinds[0]], lw.pose((0.1, 0, 0), rpy=(1, 2, 3)))
    mech = mech.with_shape("b", "n", kinds[1], sizes[kinds[1]], lw.pose((0, 0.1, 0), rpy=(3, 2, 1)))
    mech = mech.with_shape("c", "ground", kinds[1], sizes[kinds[1]], lw.pose(rpy=(0.3, 0.2, 0.1)))
    mech = mech.with_contact(
        ("a", "b"), ("c", "a"), stiffness=1e3, damping=50.0, smoothing=0.2, margin=0.4, friction=0.5
    )
    assert [pair.shapes for pair in mech.contact_pairs] == [("a", "b"), ("a", "c")] and len(mech.contact.parts) == 2
    q, v = lw.random_state(mech, rng, (200,))
    apart = rng.normal(size=(2, 200, 3))
    apart *= 1.1 / np.linalg.norm(apart, axis=-1, keepdims=True)
    q[:, 4:7], q[:, 11:14] = apart[0], apart[0] + apart[1]
    near = (np.abs(lw.contact.contact_points(mech, q, v).gap) < 0.3).all(axis=1)
    q, v = q[near][:5], v[near][:5]
    assert len(q) == 5
    elastic = mech.with_contact(friction=0.0, dissipation=0.0).with_acting("contact")
    step = 1e-6
    for x, rate in zip(q, v, strict=True):
        ahead, behind = (lw.integrate(mech, x, sign * step * np.eye(mech.nv), 1.0) for sign in (1.0, -1.0))
        slopes = (lw.contact.contact_energy(elastic, behind) - lw.contact.contact_energy(elastic, ahead)) / (2.0 * step)
        force = lw.forces.joint_forces(elastic, x, 0.0 * rate)
        np.testing.assert_allclose(force, slopes, atol=1e-4 * (1.0 + np.abs(force).max()))


def ellipsoid_on_a_cylinder() -> tuple[lw.Mechanism, tuple[np.ndarray, np.ndarray]]:
    """A body that turns about a point, one that stands still, and states in which they are near each other."""
    mech = lw.Builder().link("b", 2.0, inertia=(0.3, 0.2, 0.25)).joint("f", lw.Spherical(), "ground", "b").build()
    mech = mech.with_shape("a", "b", "ellipsoid", (0.5, 0.4, 0.6), (0.8, 0.1, 0.2)).with_acting("contact")
    mech = mech.with_shape("c", "ground", "cylinder", (0.5, 0.4), lw.pose((0.2, 0.5, 0.1), rpy=(0.3, 0.2, 0.1)))
    mech = mech.with_contact(("a", "c"), stiffness=1e3, damping=50.0, smoothing=0.2, margin=0.4, friction=0.5)
    q, v = lw.random_state(mech, np.random.default_rng(6), (200,))
    near = (np.abs(lw.contact.contact_points(mech, q, v).gap) < 0.3).all(axis=1)
    assert near.sum() > 5
    return mech, (q[near], v[near])


def test_derivatives_of_ellipsoids_on_cylinders_are_differences():
    mech, (q, v) = ellipsoid_on_a_cylinder()
    step = 1e-6
    for x, rate in zip(q[:5], v[:5], strict=True):
        by_q = lw.derivatives.joint_force_derivatives(mech, x, rate).by_q
        forces = [
            lw.forces.joint_forces(mech, lw.integrate(mech, x, sign * step * np.eye(mech.nv), 1.0), rate)
            for sign in (1.0, -1.0)
        ]
        np.testing.assert_allclose(by_q, (forces[0] - forces[1]).T / (2.0 * step), atol=1e-4 * np.abs(by_q).max())


@pytest.mark.filterwarnings("ignore::linkwise.contact.PenetrationWarning")
@pytest.mark.parametrize("method", ["semi_implicit", "rk4"])
def test_derivatives_of_steps_of_ellipsoids_on_cylinders_are_differences(method):
    mech, (q, v) = ellipsoid_on_a_cylinder()
    n, dt, small = mech.nv, 2e-3, 1e-6
    path = lw.rollout(mech, q[:5], v[:5], None, dt, 1, method)
    by_state, _ = lw.derivatives.rollout_derivatives(mech, *path, None, dt, method)
    for k in range(5):
        changes = small * np.concatenate([np.eye(2 * n), -np.eye(2 * n)])
        starts = lw.integrate(mech, q[k], changes[:, :n], 1.0), v[k] + changes[:, n:]
        ends_q, ends_v = lw.rollout(mech, *starts, None, dt, 1, method, final_only=True)
        ends = np.concatenate([lw.difference(mech, path[0][k, -1], ends_q), ends_v], axis=-1)
        slopes = (ends[: 2 * n] - ends[2 * n :]).T / (2.0 * small)
        np.testing.assert_allclose(by_state[k, 0], slopes, atol=1e-4 * np.abs(slopes).max())


@pytest.mark.filterwarnings("ignore::linkwise.contact.PenetrationWarning")
def test_rollouts_of_ellipsoids_on_cylinders_in_single_precision():
    mech, (q, v) = ellipsoid_on_a_cylinder()
    expected = lw.rollout(mech, q, v, None, 2e-3, 50)
    computed = lw.rollout(mech, q.astype(np.float32), v.astype(np.float32), None, 2e-3, 50)
    for single, double in zip(computed, expected, strict=True):
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, double, atol=2e-3 * np.abs(double).max())


def test_a_body_comes_to_rest_on_a_cylinder():
    """An ellipsoid on the flat end of a cylinder of the ground, in implicit steps."""
    mech = lw.Builder().link("b", 1.0, inertia=(0.1, 0.1, 0.1)).joint("f", lw.Floating(), "ground", "b").build()
    mech = mech.with_shape("egg", "b", "ellipsoid", (0.3, 0.2, 0.1)).with_shape("post", "ground", "cylinder", (0.5, 1))
    mech = mech.with_contact(("post", "egg"))
    assert mech.contact_pairs[0].shapes == ("egg", "post")  # what is fixed comes second
    q, v = lw.rollout(mech, [1, 0, 0, 0, 0.1, 0.1, 1.15], None, None, 2e-3, 1000, final_only=True)
    assert abs(q[6] - 1.1) < 1e-3 and np.abs(v).max() < 1e-3


def test_many_pairs_move_as_each_does_alone():
    """The text of many pairs is a loop over them, in rollouts too."""
    free, post = lw.Floating(), ("post", "ground", "cylinder", (3.0, 0.5))
    sizes = [(0.1, 0.2, 0.15 + 0.001 * k) for k in range(11)]
    builder = lw.Builder()
    for k in range(len(sizes)):
        builder.link(f"b{k}", 1.0, inertia=(0.1, 0.1, 0.1)).joint(f"f{k}", free, "ground", f"b{k}")
    mech = builder.build().with_shape(*post)
    for k, size in enumerate(sizes):
        mech = mech.with_shape(f"s{k}", f"b{k}", "ellipsoid", size)
    mech = mech.with_contact(*((f"s{k}", "post") for k in range(len(sizes))))
    q = np.tile(np.array([0.9, 0.1, 0.2, 0.3, -0.3, 0.0, 0.7]), (len(sizes), 1))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    q[:, 4] += 0.2 * np.arange(len(sizes))
    together = lw.rollout(mech, q.ravel(), None, None, 2e-3, 200)[0][-1].reshape(q.shape)
    for k in (0, 7):
        alone = lw.Builder().link("b", 1.0, inertia=(0.1, 0.1, 0.1)).joint("f", free, "ground", "b").build()
        alone = alone.with_shape(*post).with_shape("s", "b", "ellipsoid", sizes[k]).with_contact(("s", "post"))
        np.testing.assert_allclose(lw.rollout(alone, q[k], None, None, 2e-3, 200)[0][-1], together[k], atol=1e-12)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("by_supports", [False, True])
def test_other_targets_compute_the_same(by_supports, monkeypatch, tmp_path):
    """The NumPy reference, CUDA C on the host's compiler, and C."""
    rng = np.random.default_rng(1)
    mech = touching(rng, 1, **NUMBERS)
    q, v = lw.random_state(mech, rng, (3,))
    if by_supports:
        mech, (q, v) = ellipsoid_on_a_cylinder()
    expected, same = lw.contact.contact_wrenches(mech, q, v), {"rtol": 1e-9, "atol": 1e-9}
    cuda_on_host.install(monkeypatch, tmp_path)
    for target in ("numpy", "cuda"):
        np.testing.assert_allclose(lw.compile("contact_wrenches", mech, target=target)(q, v), expected, **same)
    library = build(lw.compile("contact_wrenches", mech).source("c"), tmp_path, ["-O1"])
    found = np.empty_like(expected)
    pointers = [ctypes.c_void_p(np.ascontiguousarray(x).ctypes.data) for x in (q, v, found)]
    library.contact_wrenches_batch(ctypes.c_size_t(len(q)), *pointers)
    np.testing.assert_allclose(found, expected, **same)


@pytest.mark.parametrize("seed", range(3))
def test_elastic_forces_are_the_gradient_of_the_energy(seed):
    rng = np.random.default_rng(seed)
    mech = touching(rng, seed, **NUMBERS | {"dissipation": 0.0, "friction": 0.0})
    q, v = lw.random_state(mech, rng, (4,))
    slope = lw.jacobian_of(lw.compile("contact_energy", mech))(q)
    wrenches = lw.contact.contact_wrenches(mech, q, v)
    power = np.sum(wrenches * lw.link_velocities(mech, q, v), axis=(-2, -1))
    np.testing.assert_allclose(np.sum(slope * v, axis=-1), -power, rtol=1e-9, atol=1e-9)
    assert (lw.contact.contact_energy(mech, q) > 0.0).all()


@pytest.mark.parametrize("seed", range(3))
def test_energy_is_lost_in_every_state_and_friction_stays_in_its_cone(seed):
    rng = np.random.default_rng(seed)
    mech = touching(rng, seed, **NUMBERS)
    q, v = lw.random_state(mech, rng, (50,))
    slope = lw.jacobian_of(lw.compile("contact_energy", mech))(q)
    power = np.sum(lw.contact.contact_wrenches(mech, q, v) * lw.link_velocities(mech, q, v), axis=(-2, -1))
    gained = power + np.sum(slope * v, axis=-1)
    assert gained.max() < 1e-9 * np.abs(power).max() and gained.min() < -1e-3
    points = lw.contact.contact_points(mech, q, v)
    along = np.sum(points.force * points.normal, axis=-1)
    across = np.linalg.norm(points.force - along[..., None] * points.normal, axis=-1)
    friction = np.array([pair.law.friction for pair in mech.contact.parts])
    assert (along >= 0.0).all() and (across <= friction * along * (1.0 + 1e-12)).all()
    assert (across > 0.5 * friction * along)[along > 0.0].any()


def test_derivatives_are_those_of_differences():
    rng = np.random.default_rng(5)
    mech = touching(rng, 5, **NUMBERS)
    kernel = lw.compile("contact_wrenches", mech)
    by_q, by_v = lw.jacobian_of(kernel, ("q",)), lw.jacobian_of(kernel, ("v",))
    q, v = lw.random_state(mech, rng)
    step = 1e-5
    for k, unit in enumerate(np.eye(mech.nv)):
        ahead, behind = (kernel(lw.integrate(mech, q, unit, s * step), v) for s in (1.0, -1.0))
        scale = 1.0 + np.abs(by_q(q, v)).max()
        np.testing.assert_allclose((ahead - behind) / (2.0 * step), by_q(q, v)[..., k], atol=1e-7 * scale)
        ahead, behind = (kernel(q, v + s * step * unit) for s in (1.0, -1.0))
        np.testing.assert_allclose((ahead - behind) / (2.0 * step), by_v(q, v)[..., k], atol=1e-7 * scale)


def test_the_law_never_pulls_and_has_no_jumps():
    law = lw.contact.ContactLaw(1000.0, dissipation=5.0, damping=30.0, friction=0.5, smoothing=1e-3)
    depths, rates = np.linspace(-1e-3, 4e-3, 201), np.linspace(-1.0, 1.0, 201)
    forces = np.array([[normal_force(law, p, u) for u in rates] for p in depths])
    assert (forces >= 0.0).all() and (forces[depths <= 0.0] == 0.0).all()
    ball = lw.Builder().link("ball", 1.0, inertia=(0.1,) * 3).joint("free", lw.Floating(), "ground", "ball").build()
    ball = ball.with_shape("skin", "ball", "sphere", 0.1).with_ground()
    pair = ball.contact_pairs[0]
    ball = lw.Mechanism(*(getattr(ball, f) for f in ("name", "bodies", "frames", "gravity", "loops", "annotations")),
                        shapes=ball.shapes, contact_pairs=(lw.contact.ContactPair(*pair.shapes, law),))  # fmt: skip
    q, v = np.tile([1.0, 0, 0, 0, 0, 0, 0], (201, 201, 1)), np.zeros((201, 201, 6))
    q[..., 6], v[..., 5] = 0.1 - depths[:, None], -rates
    found = lw.contact.contact_points(ball, q, v)
    np.testing.assert_allclose(found.force[..., 0, 2], forces, atol=1e-10)
    slope = np.gradient(forces, depths, axis=0)
    assert np.abs(np.diff(slope, axis=0)).max() < 0.1 * slope.max()  # continuous slopes: no kink at the surface


def test_shapes_survive_everything_done_to_a_mechanism():
    mech = touching(np.random.default_rng(0), 0, **NUMBERS)
    assert pickle.loads(pickle.dumps(mech)) == mech
    assert from_data(json.loads(json.dumps(to_data(mech)))) == mech
    assert mech.with_contact(friction=0.1) != mech
    assert mech.with_payload(mech.link_names[0], 1.0).contact_pairs == mech.contact_pairs
    assert mech.with_gravity((0, 0, 0)).contact_pairs == mech.contact_pairs
    joint = next(body.joint for body in mech.bodies if body.parent >= 0 and body.nq == 1)
    locked = mech.with_locked({joint: 0.3})
    assert locked.shapes == mech.shapes and set(locked.contact_pairs) <= set(mech.contact_pairs)
    rng = np.random.default_rng(3)
    q, v = lw.random_state(locked, rng)
    found = lw.contact.contact_wrenches(locked, q, v, explicit=True)
    np.testing.assert_allclose(found, Contacts(locked, q, v).wrenches(), atol=1e-8)
    assert mech.contact.without().contact_pairs == ()
    assert all("sphere" not in pair.shapes for pair in mech.contact.without("sphere").contact_pairs)


BOX = ("s", "ball", "box", (1, 1, 1))
BALL = lw.Builder().link("ball", 1.0, inertia=(0.1,) * 3).joint("free", lw.Floating(), "ground", "ball").build()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda m: m.with_contact(friction=0.5), "nothing of mechanism .* touches yet.*with_ground"),
        (lambda m: m.with_ground(), "has no shapes on moving links.*with_shape"),
        (lambda m: m.with_shape("s", "bal", "sphere", 1), "no link or frame 'bal'.*ball"),
        (lambda m: m.with_shape("s", "ball", "sphre", 1), "kind of shape 'sphre'.*sphere"),
        (lambda m: m.with_shape("s", "ball", "capsule", 1), "the size of shape 's', a capsule, is radius, half length"),
        (lambda m: m.with_shape("s", "ball", "sphere", -1), "must be positive"),
        (lambda m: m.with_shape(*BOX).with_ground(friktion=1), "number of a contact 'friktion'"),
        (lambda m: m.with_shape(*BOX).with_ground(normal=(0, 0, 0)), "no direction"),
        (lambda m: m.with_shape(*BOX).with_ground().with_contact(("s", "t")), "no shape 't'"),
        (lambda m: m.with_shape(*BOX).with_ground(stiffness=-1.0), "must not be negative"),
        (lambda m: m.with_shape(*BOX).with_shape("s", "ball", "sphere", 1), "two shapes"),
        (
            lambda m: m.with_shape(*BOX).with_shape("b", "ground", "cylinder", (1, 1)).with_contact(("s", "b")),
            "a box and a cylinder do not touch",
        ),
        (
            lambda m: m.with_shape("a", "ball", "sphere", 1).with_shape("b", "ball", "sphere", 1).with_contact([*"ab"]),
            "parts of the same rigid body",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make(BALL)


def test_default_numbers_follow_weight_size_and_gravity():
    """A ball: a force at its surface feels m / (1 + m r^2 / I) sideways; it stands r / 1000 deep."""
    mech = BALL.with_shape("skin", "ball", "sphere", 0.2).with_ground(friction=0.5)
    (pair,) = mech.contact_pairs
    felt, weight, speed = 1.0 / (1.0 + 0.2**2 / 0.1), 9.81, math.sqrt(9.81 * 0.2)
    np.testing.assert_allclose((pair.mass, pair.carried, pair.load), (felt, 1.0, weight))
    np.testing.assert_allclose(pair.law.stiffness, weight / 0.2e-3)
    np.testing.assert_allclose(pair.law.damping, 2.0 * math.sqrt(felt * pair.law.stiffness))
    np.testing.assert_allclose(pair.law.smoothing, 0.25 * 0.2e-3)
    np.testing.assert_allclose((pair.law.dissipation, pair.law.slip_speed), (20.0 / speed, 5e-4 * speed))
    np.testing.assert_allclose(mech.contact.step, 0.5 * math.sqrt(felt / pair.law.stiffness))
    assert mech.with_contact(step=1e-3).contact_pairs == mech.contact_pairs
    (long,) = mech.with_contact(step=1e-2).contact_pairs  # softer, so that it settles
    np.testing.assert_allclose(long.law.stiffness, 1.0 / (1.5 * 1e-2**2))
    assert mech.contact.without().contact.step == np.inf


def test_bodies_that_may_rest_on_each_other_are_carried_together():
    builder = lw.Builder()
    for name, mass in (("a", 1.0), ("b", 100.0), ("c", 5.0)):
        builder.link(name, mass, inertia=(mass / 250.0,) * 3).joint(f"free_{name}", lw.Floating(), "ground", name)
        builder.shape(name, name, "sphere", 0.1)
    alone = builder.build().with_ground()
    assert [pair.carried for pair in alone.contact_pairs] == pytest.approx([1.0, 100.0, 5.0])
    stacked = alone.with_contact(("a", "b"))
    carried = {pair.name: pair.carried for pair in stacked.contact_pairs}
    assert carried == pytest.approx({"a/floor": 101.0, "b/floor": 101.0, "c/floor": 5.0, "a/b": 100.0})
    kept = alone.with_contact(("a", "floor"), stiffness=123.0, friction=0.1).with_contact(("a", "b"))
    law = next(pair.law for pair in kept.contact_pairs if pair.name == "a/floor")
    assert (law.stiffness, law.friction) == (123.0, 0.1)  # what is given stays


def test_the_mass_that_a_contact_feels_is_that_of_the_mass_matrix():
    """J M^-1 J* of points of all links of a tree, densely, at its initial configuration."""
    rng = np.random.default_rng(0)
    for mech in (lw.mechanisms.quadruped(held=()), lw.mechanisms.puma560()):
        q, _ = lw.random_state(mech, rng)
        mech = mech.metadata.with_initial(q)
        found, inverse = PointMobility(mech), np.linalg.inv(lw.mass_matrix(mech, q))
        for i, link in enumerate(mech.link_names):
            points = rng.normal(size=(3, 3))
            jacobian = lw.jacobian(mech, q, link)
            expected = 0.0
            for x, y, z in points:
                at_point = jacobian[3:] - np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ jacobian[:3]
                expected = max(expected, np.linalg.eigvalsh(at_point @ inverse @ at_point.T)[-1])
            assert found.mobility(i, points) == pytest.approx(expected, rel=1e-9)


def test_files_of_many_bodies_need_no_large_matrices(monkeypatch):
    sizes = []
    inverse = np.linalg.pinv
    monkeypatch.setattr(np.linalg, "pinv", lambda a, **more: sizes.append(np.shape(a)) or inverse(a, **more))
    bodies = "".join(f'<body pos="{k} 0 1"><freejoint/><geom size=".1"/></body>' for k in range(40))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.files.OmissionWarning)
        mech = lw.load(f'<mujoco><worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>')
    assert len(mech.contact_pairs) == 40 and max(map(max, sizes), default=0) <= 6
