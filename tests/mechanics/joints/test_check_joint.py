"""``lw.extend.check_joint``: right kinds pass, and for every rule there is a kind that breaks it and is named."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

import linkwise as lw
from linkwise.joint_check import PARTS
from linkwise.mechanics.joints import KINDS as REGISTERED
from linkwise.mechanics.joints import Fixed
from linkwise.mechanics.spatial import Matrix3, Orientation

from .test_joints import KINDS

check_joint = lw.extend.check_joint


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Kinds that are defined here are forgotten: other tests count them."""
    before = dict(REGISTERED)
    yield
    REGISTERED.clear()
    REGISTERED.update(before)


@pytest.mark.parametrize("kind", [*KINDS, Fixed()], ids=repr)
def test_built_in_kinds_pass(kind):
    deviations = check_joint(kind)
    assert set(deviations) == {part.name for part in PARTS}
    assert max(deviations.values()) < 1e-9


def test_velocities_along_moving_axes_pass():
    from .body_planar import BodyPlanar

    assert max(check_joint(BodyPlanar()).values()) < 1e-9


def body_planar(**methods):
    from .body_planar import BodyPlanar

    return type("Wrong", (BodyPlanar,), methods)()


def wrong(base: type, **methods):
    """A joint of a kind that is another but for these methods and attributes."""
    return dataclass(frozen=True)(type("Wrong", (base,), methods))()


def doubled_column(self, q):
    return tuple(motion * 2.0 for motion in type(self).__mro__[1].motion(self, q))


def wavy_turn(self, q):
    return lw.extend.Transform((lw.extend.rotation_about(2, math.sin(q[0])),))


def one_sided(self, q):
    return lw.extend.Transform((lw.extend.rotation_about(2, q[0] if q[0] > 0.0 else q[0] * 1.0),))


WRONG = {
    "alignment": lambda: wrong(lw.Revolute, alignment=((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0))),
    "transform": lambda: wrong(
        lw.Spherical,
        transform=lambda self, q: lw.extend.Transform(
            (Orientation(Matrix3.from_rows((2.0 * np.eye(3)).tolist())),),
        ),
    ),
    "neutral": lambda: wrong(lw.Prismatic, neutral=lambda self: (0.5,)),
    "integrate": lambda: wrong(lw.Revolute, integrate=lambda self, q, v, dt: [q[0] + v[0] * dt * (1.0 + dt * dt)]),
    "motion": lambda: wrong(lw.Revolute, motion=doubled_column),
    "motion_rate": lambda: wrong(lw.Planar, motion_rate=lw.extend.Joint.motion_rate),
    "q_rate": lambda: wrong(lw.Revolute, q_rate=lambda self, q, v: [2.0 * v[0]]),
    "velocities": lambda: wrong(lw.Universal, q_rate=lambda self, q, v: list(v)),
    "difference": lambda: wrong(lw.Revolute, difference=lambda self, q0, q1: [q0[0] - q1[0]]),
    "step_rate": lambda: body_planar(step_rate=lambda self, step, v: list(v)),
    "drift": lambda: wrong(lw.Floating, kick_bias=lambda self, v: [0.0] * 6),
    "closure": lambda: wrong(
        lw.Prismatic, closure=lambda self, rotation, position: [position.z, position.y, rotation.x.z, rotation.y.z, 0.0]
    ),
    "closure rank": lambda: wrong(
        lw.Revolute, closure=lambda self, rotation, position: [*position, rotation.x.z, rotation.x.z]
    ),
    "loop_alignment": lambda: wrong(lw.Revolute, loop_alignment=lambda self, rotation, position: -rotation.z.z),
    "steps": lambda: wrong(lw.Revolute, steps=(lw.extend.Step("angle", (1.0, 0.0, 0.0)),)),
    "span": lambda: wrong(lw.Revolute, span=(2, 5)),
    "slides": lambda: wrong(lw.Universal, slides=True),
    "rotation_coordinate": lambda: wrong(lw.Prismatic, rotation_coordinate=0),
    "canonical_numbers": lambda: wrong(
        lw.Helical,
        canonical_numbers=(),
        drawn=classmethod(lambda cls, rng: cls(pitch=0.3)),
    ),
    "regroupable": lambda: wrong(lw.Revolute, regroupable=lambda self, inertia: inertia),
    "measures": lambda: wrong(lw.Revolute, position_measures=(lw.extend.Measure("", "length"),)),
    "traced": lambda: wrong(lw.Revolute, transform=one_sided),
    "power": lambda: wrong(lw.Planar, motion_rate=lambda self, q, v: self.motion(q)),
}


def test_every_rule_can_be_broken():
    assert set(WRONG) == {part.name for part in PARTS}


@pytest.mark.parametrize("part", WRONG)
def test_what_is_wrong_is_named(part):
    with pytest.raises(ValueError, match="contradicts itself") as error:
        check_joint(WRONG[part]())
    assert re.search(rf"^  {re.escape(part)}: ", str(error.value), re.MULTILINE), str(error.value)


def test_functions_of_math_are_named_with_the_cure():
    with pytest.raises(ValueError, match="traced: .*functions of lw.extend.scalar.*raised TypeError"):
        check_joint(wrong(lw.Revolute, transform=wavy_turn))


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"nq": 2}, "q_rate: 2 numbers or columns are needed .nq = 2, nv = 1., got 1"),
        ({"motion": lambda self, q: ()}, "motion: 1 numbers or columns are needed .nq = 1, nv = 1., got 0"),
        ({"closure": lambda self, rotation, position: [position.x]}, "closure: 5 numbers or columns"),
        ({"position_measures": ()}, None),
        ({"velocity_measures": (lw.extend.Measure("a", "angle"),) * 2}, "velocity_measures: 1 numbers"),
        ({"q_rate": lambda self, q, v: 1 / 0}, "q_rate: raised ZeroDivisionError"),
    ],
)
def test_sizes(methods, message):
    kind = wrong(lw.Revolute, **methods)
    if message is None:
        check_joint(kind)
        return
    with pytest.raises(ValueError, match=message):
        check_joint(kind)


def test_a_class_is_no_joint():
    with pytest.raises(TypeError, match="takes a joint such as"):
        check_joint(lw.Revolute)
