"""What every kind of joint supplies, against finite differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.joints import ANGLE, LENGTH, OTHER, QUATERNION, Fixed, Joint

from ..spatial.dense import pose

KINDS: list[Joint] = [
    lw.Revolute((0.0, 0.0, 1.0)),
    lw.Revolute((0.3, -1.0, 0.4)),
    lw.Prismatic((0.0, -1.0, 0.0)),
    lw.Prismatic((1.0, 2.0, 2.0)),
    lw.Helical((0.2, 0.1, 1.0), 0.3),
    lw.Cylindrical((1.0, 0.0, 0.0)),
    lw.Cylindrical((1.0, -1.0, 0.5)),
    lw.Universal((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
    lw.Universal((1.0, 0.2, 0.0), (0.3, 1.0, 0.5)),
    lw.PinInSlot((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    lw.PinInSlot((1.0, 0.2, 0.0), (0.3, 1.0, 0.5)),
    lw.Planar((0.0, 0.0, 1.0)),
    lw.Planar((0.5, 0.5, 1.0)),
    lw.Spherical(),
    lw.Floating(),
]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{type(kind).__name__}{KINDS.index(kind)}")
STEP = 4e-3


def rate(function) -> np.ndarray:
    """d/dt at 0 by central differences of order eight."""
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    return sum(w * (function(k * STEP) - function(-k * STEP)) for k, w in enumerate(weights, 1)) / STEP


def numbers(values) -> np.ndarray:
    return np.array(list(values), dtype=float)


def draw(kind: Joint, seed: int = 3) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    return kind.random(rng, ()).tolist(), rng.normal(size=kind.nv).tolist()


def columns(motions) -> np.ndarray:
    """(6, nv)."""
    return np.array([m.flat() for m in motions], dtype=float).T


@every_kind
def test_sizes(kind):
    q, _ = draw(kind)
    assert len(q) == kind.nq == len(kind.neutral())
    assert columns(kind.motion(q)).shape == (6, kind.nv)
    assert kind.random(np.random.default_rng(0), (4, 2)).shape == (4, 2, kind.nq)
    if kind.span is not None:
        reached = columns(kind.motion(q))
        assert len(kind.span) == kind.nv == np.linalg.matrix_rank(reached)
        assert not np.delete(reached, kind.span, axis=0).any()


@every_kind
def test_the_sides_coincide_at_neutral(kind):
    rotation, position = pose(kind.transform(kind.neutral()))
    np.testing.assert_allclose(rotation, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(position, 0.0, atol=1e-15)


@every_kind
def test_the_alignment_is_a_right_handed_frame(kind):
    axes = np.array(kind.alignment)
    np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-15)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    along = {"Planar": "normal", "PinInSlot": "pin_axis", "Universal": "axis2"}.get(type(kind).__name__, "axis")
    if hasattr(kind, along):
        np.testing.assert_allclose(axes[:, 2], getattr(kind, along), atol=1e-15)


@every_kind
def test_motion_is_the_rate_of_the_transform(kind):
    """H* v is the child's twist, in the child frame, along the path that integrate follows."""
    q, v = draw(kind)

    def at(t: float) -> np.ndarray:
        return np.column_stack(pose(kind.transform(kind.integrate(q, v, t))))

    rotation, _ = pose(kind.transform(q))
    moving = rotation.T @ rate(at)
    omega = np.array([moving[2, 1], moving[0, 2], moving[1, 0]])
    np.testing.assert_allclose(moving[:, :3] + moving[:, :3].T, 0.0, atol=1e-9)
    np.testing.assert_allclose(columns(kind.motion(q)) @ v, [*omega, *moving[:, 3]], atol=1e-9)


@every_kind
def test_motion_rate(kind):
    q, v = draw(kind, 5)
    found = columns(kind.motion_rate(q, v))
    expected = rate(lambda t: columns(kind.motion(kind.integrate(q, v, t))))
    np.testing.assert_allclose(found, expected, atol=1e-9)


@every_kind
def test_q_rate(kind):
    q, v = draw(kind, 6)
    np.testing.assert_allclose(numbers(kind.q_rate(q, v)), rate(lambda t: numbers(kind.integrate(q, v, t))), atol=1e-9)


@every_kind
def test_difference_undoes_integrate(kind):
    q, v = draw(kind, 7)
    v = (0.4 * np.array(v)).tolist()  # less than half a turn
    reached = kind.integrate(q, v, 1.0)
    np.testing.assert_allclose(numbers(kind.difference(q, reached)), v, atol=1e-12)
    np.testing.assert_allclose(numbers(kind.difference(q, q)), 0.0, atol=1e-12)
    other, _ = draw(kind, 8)
    arrived = kind.integrate(q, kind.difference(q, other), 1.0)
    for found, expected in zip(pose(kind.transform(arrived)), pose(kind.transform(other)), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@every_kind
def test_half_a_step_twice_is_a_step(kind):
    q, v = draw(kind, 9)
    twice = kind.integrate(kind.integrate(q, v, 0.3), v, 0.3)
    if isinstance(kind, lw.Spherical | lw.Floating):  # v is constant in the child frame: the path is one screw
        np.testing.assert_allclose(numbers(twice), numbers(kind.integrate(q, v, 0.6)), atol=1e-12)
    np.testing.assert_allclose(
        pose(kind.transform(twice))[0], pose(kind.transform(kind.integrate(q, v, 0.6)))[0], atol=1e-12
    )


def test_what_slides_commutes_with_shifts_along_its_axis():
    shift = np.array([0.0, 0.0, 0.7])
    for kind in KINDS:
        if kind.slides:
            rotation, position = pose(kind.transform(draw(kind)[0]))
            np.testing.assert_allclose(rotation @ shift + position, position + shift, atol=1e-15)


def test_spin_coordinates_are_angles_about_z_taken_last():
    for kind in KINDS:
        if kind.rotation_coordinate is None:
            continue
        q, _ = draw(kind)
        turned = list(q)
        turned[kind.rotation_coordinate] += 0.4
        about_z = np.array([[np.cos(0.4), -np.sin(0.4), 0.0], [np.sin(0.4), np.cos(0.4), 0.0], [0.0, 0.0, 1.0]])
        rotation, position = pose(kind.transform(q))
        found = pose(kind.transform(turned))
        np.testing.assert_allclose(found[0], rotation @ about_z, atol=1e-14)
        np.testing.assert_allclose(found[1], position, atol=1e-14)


def test_a_fixed_joint_has_no_freedom():
    kind = Fixed()
    assert (kind.nq, kind.nv) == (0, 0) and kind.motion(()) == ()
    assert kind.transform(()).factors == ()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lw.Revolute((0.0, 0.0, 0.0)), "axis of a revolute joint must be finite and not zero"),
        (lambda: lw.Prismatic((1.0, 0.0)), "axis of a prismatic joint must be 3 numbers"),
        (lambda: lw.Universal((1, 0, 0), (2, 0, 0)), "must not be parallel"),
        (lambda: lw.PinInSlot((1, 0, 0), (2, 0, 0)), "must not be parallel; use a cylindrical"),
        (lambda: lw.Helical((0, 0, 1), float("nan")), "pitch of a helical joint must be finite"),
        (lambda: lw.Planar((np.inf, 0, 0)), "normal of a planar joint"),
    ],
)
def test_bad_axes(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@every_kind
def test_every_number_is_named_and_measured(kind):
    """What units, tables and plots read: an entry for each number of q and v."""
    for quantity, count in (("q", kind.nq), ("v", kind.nv)):
        measures = kind.measures(quantity)
        assert len(measures) == count and len({one.name for one in measures}) == count
        assert all(one.of in (ANGLE, LENGTH, QUATERNION) for one in measures)
        assert all(one.of != QUATERNION for one in kind.measures("v"))
    # What a motion without a turn changes is a length.
    q = kind.random(np.random.default_rng(0), ()).tolist()
    for k, one in enumerate(kind.measures("v")):
        column = kind.motion(q)[k]
        assert (one.of == LENGTH) == (np.abs(numbers(column.angular)).max() == 0.0)


def test_a_joint_that_says_nothing_measures_something_else():
    @dataclass(frozen=True)
    class Silent(lw.Universal):
        position_measures = ()

    assert [one.of for one in Silent().measures("q")] == [OTHER, OTHER]
    assert [one.name for one in Silent().measures("v")] == ["1", "2"]


@every_kind
def test_a_joint_that_only_slides_keeps_its_frames_parallel(kind):
    """Told by its motions at random positions: shifts along z and nothing else."""
    rng = np.random.default_rng(0)
    columns = [m.flat() for _ in range(3) for m in kind.motion(kind.random(rng, ()).tolist())]
    assert kind.only_slides == (kind.nv == 1 and all(np.flatnonzero(column).tolist() == [5] for column in columns))
