"""A kind of joint that is defined here alone is simulated, written, read, drawn and converted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics import joints
from linkwise.mechanics.joints import ANGLE, LENGTH, FormatEntry, Joint, Measure, Step
from linkwise.mechanics.joints.protocol import align_z, unit_axis
from linkwise.mechanics.spatial import ZERO, Motion, Transform, Translation, Vector3, rotation_about
from linkwise.viewer.skeleton import Skeleton
from linkwise.viewer.symbols import symbol


@dataclass(frozen=True)
class Cam(Joint):
    """q = [lift, angle] of a link that is lifted by ``ratio`` for every radian besides, along and about ``axis``; SDF
    has it as the type "cam", with its lead for every turn."""

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    ratio: float = 0.1
    nq = nv = 2
    position_measures = (Measure("lift", LENGTH), Measure("angle", ANGLE))
    formats = {"sdf": FormatEntry("cam", ("axis",), (("ratio", "lead", 2.0 * np.pi),))}

    def __post_init__(self):
        object.__setattr__(self, "axis", unit_axis(self.axis, "the axis of a cam"))

    @property
    def alignment(self):
        return align_z(self.axis)

    def transform(self, q):
        return Transform((Translation(Vector3(0.0, 0.0, q[0] + self.ratio * q[1])), rotation_about(2, q[1])))

    def motion(self, q):
        along = Vector3(0.0, 0.0, 1.0)
        return Motion(ZERO, along), Motion(along, along * self.ratio)

    def closure(self, rotation, position):
        return [position.x, position.y, rotation.x.z, rotation.y.z]

    @property
    def steps(self):
        return (
            Step(LENGTH, self.axis, 0),
            Step(LENGTH, self.axis, 1, self.ratio, "lead"),
            Step(ANGLE, self.axis, 1),
        )


@dataclass(frozen=True)
class Pivot(Joint):
    """A hinge that formats have under words of their own."""

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    nq = nv = 1
    position_measures = (Measure("", ANGLE),)
    span = (2,)
    formats = {"urdf": FormatEntry("pivot", ("axis",), loop="pivot", extension="pivots")}

    def __post_init__(self):
        object.__setattr__(self, "axis", unit_axis(self.axis, "the axis of a pivot"))

    @property
    def alignment(self):
        return align_z(self.axis)

    def transform(self, q):
        return Transform((rotation_about(2, q[0]),))

    def motion(self, q):
        return (Motion(Vector3(0.0, 0.0, 1.0), ZERO),)

    def closure(self, rotation, position):
        return [*position, rotation.x.z, rotation.y.z]

    @property
    def steps(self):
        return (Step(ANGLE, self.axis),)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    for kind in (Cam, Pivot):
        joints.KINDS[kind.kind_name()] = kind
    yield
    for kind in (Cam, Pivot):
        del joints.KINDS[kind.kind_name()]


for _kind in (Cam, Pivot):  # other tests count the kinds
    del joints.KINDS[_kind.kind_name()]


def arm(kind: Joint) -> lw.Mechanism:
    builder = lw.Builder().link("shaft", 1.3, (0.1, 0.02, 0.05), (0.02, 0.03, 0.04))
    builder.link("rod", 0.5, (0.0, 0.2, 0.0), (0.02, 0.005, 0.02))
    builder.joint(
        "drive", kind, "ground", "shaft", (lw.kinematics.so3.exp((0.2, 0.3, 0.1)), (0.1, 0.2, 0.3)), damping=0.1
    )
    builder.joint("swing", lw.Revolute((1.0, 0.0, 0.0)), "shaft", "rod", (None, (0.3, 0.0, 0.1)))
    return builder.build("machine")


KINDS = [Cam((1.0, 2.0, 0.5), 0.07), Pivot((0.3, 0.0, 1.0))]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_simulated(kind):
    mech = arm(kind).parameters.with_damping(drive=[0.0] * kind.nv)
    motion = lw.simulate(mech, [0.1] * mech.nq, [0.3] * mech.nv, 0.2)
    assert np.ptp(motion.energy) < 1e-6


@pytest.mark.filterwarnings("ignore::linkwise.MechanismWarning")
@pytest.mark.parametrize("suffix", ["urdf", "xml"])
@pytest.mark.parametrize("kind", KINDS)
def test_files_move_as_it_does(kind, suffix, tmp_path):
    """Formats that have it hold the kind itself, others what it is composed of; energies and poses are the same."""
    mech = arm(kind)
    mech.save(tmp_path / f"machine.{suffix}")
    there = lw.load(tmp_path / f"machine.{suffix}")
    expected = isinstance(kind, Pivot) and suffix == "urdf"
    assert (there.bodies[0].kind == kind) == expected
    convert = lw.interop.to_mechanism(mech, there)
    q, v = np.random.default_rng(0).normal(size=(2, 5, mech.nv))
    moved = convert.state(q, v)
    np.testing.assert_allclose(lw.frame_pose(there, moved[0], "rod"), lw.frame_pose(mech, q, "rod"), atol=1e-12)
    np.testing.assert_allclose(lw.kinetic_energy(there, *moved), lw.kinetic_energy(mech, q, v), rtol=1e-12)
    np.testing.assert_allclose(convert.inverse.state(*moved)[0], q, atol=1e-13)


def test_words_of_a_kind_are_read():
    """A format whose word the kind says is read as the kind, with numbers in the format's units."""
    text = """<sdf version="1.9"><model name="m"><link name="a"/><joint name="j" type="cam"><parent>world</parent>
    <child>a</child><lead>0.5</lead><axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"""
    assert lw.load(text).bodies[0].kind == Cam((0.0, 1.0, 0.0), 0.5 / (2.0 * np.pi))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_drawn_where_it_is(kind):
    """A pin about its axis, and a rail along it where it slides."""
    mark = Skeleton(arm(kind)).at(np.full(kind.nq + 1, 0.1)).joints[0]
    drawn = symbol(mark, 0.01)
    axis = mark.end[:3, :3] @ kind.axis
    assert len(drawn.axes) == 1 and len(drawn.rails) == 2 * isinstance(kind, Cam)
    for line in (*drawn.axes, *drawn.rails):
        np.testing.assert_allclose(np.cross(line[1] - line[0], axis), 0.0, atol=1e-12)
    np.testing.assert_allclose(drawn.solids[0].points.mean(axis=0), mark.origin, atol=1e-12)


def test_other_libraries_have_what_it_is_composed_of():
    pin = pytest.importorskip("pinocchio")
    mech = arm(KINDS[1])
    model = lw.interop.pinocchio_model(mech)
    q, v = np.random.default_rng(0).normal(size=(2, mech.nv))
    there = lw.interop.to_pinocchio(mech, model)
    expected = pin.crba(model, model.createData(), there.q(q))
    np.testing.assert_allclose(there.matrix(q, lw.mass_matrix(mech, q)), np.triu(expected) + np.triu(expected, 1).T)
    with pytest.raises(lw.MechanismError, match="Pinocchio has no joint that moves as Cam"):
        lw.interop.pinocchio_model(arm(KINDS[0]))
