"""Springs, dampers, cylinders and gears are drawn, where they are."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.elements import element_lines, elements_between, placed_together
from linkwise.viewer.skeleton import Skeleton

pytest.importorskip("matplotlib")
Z = (0.0, 0.0, 1.0)


def machine() -> lw.Mechanism:
    builder = lw.Builder().link("bar", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
    builder.joint("hinge", lw.Revolute(Z), "ground", "bar", stiffness=3.0)
    for name, at, mimic in (
        ("drive", (-0.8, 0.6, 0), None),
        ("gear", (-0.3, 0.6, 0), lw.Mimic("drive", -2.0)),
        ("belt", (-0.8, -0.4, 0), lw.Mimic("drive", 0.5)),
    ):
        builder.link(f"{name}_wheel", 1.0, inertia=(0.1, 0.1, 0.1))
        builder.joint(name, lw.Revolute(Z), "ground", f"{name}_wheel", at, mimic=mimic)
    return builder.build("machine", (0.0, -9.81, 0.0))


STRUTS = (
    lw.forces.Passive.spring_between("ground", (0.6, -0.6, 0), "bar", (0.6, 0, 0), 100.0, 0.5, damping=2.0)
    + lw.forces.Passive.damper_between("ground", (1.6, -0.6, 0), "bar", (0.9, 0, 0), 3.0)
    + lw.forces.Passive.cylinder_between("ground", (0, 0.9, 0), "bar", (0.9, 0, 0), force=10.0)
)


def test_struts_end_at_their_points():
    mech, q = machine(), np.array([0.3, 0.0])
    marks = Skeleton(mech, STRUTS).at(q).elements
    kinds = [mark.kinds for mark in marks]
    assert kinds == [("spring", "damper"), ("damper",), ("cylinder",), ("gear",), ("belt",)]
    pose = lw.frame_pose(mech, q, "bar")
    np.testing.assert_allclose(marks[0].b, pose[:3, :3] @ (0.6, 0.0, 0.0), atol=1e-15)
    lines = element_lines(marks[:1], 0.02, np.array(Z))["solid"]
    ends = np.array([point for line in lines for point in (line[0], line[-1])])
    for point in (marks[0].a, marks[0].b):
        assert (np.linalg.norm(ends - point, axis=1) < 1e-12).sum() == 2  # of the spring and of the damper
    assert all(abs(line[:, 2]).max() < 1e-12 for line in lines)  # in the plane of the picture


def test_wheels_turn_as_their_joints_do():
    *_, gear, belt = Skeleton(machine(), STRUTS).at(np.zeros(2)).elements
    assert sum(gear.radii) == pytest.approx(0.5) and gear.radii[0] == pytest.approx(2.0 * gear.radii[1])
    assert belt.radii[1] == pytest.approx(2.0 * belt.radii[0])
    lines = element_lines([belt], 0.02, np.array(Z))["dashed"]
    assert len(lines) == 4
    for line in lines[2:]:  # the belt is tangent to both wheels
        way = (line[1] - line[0]) / np.linalg.norm(line[1] - line[0])
        for centre, radius in zip((belt.a, belt.b), belt.radii, strict=True):
            assert np.linalg.norm(np.cross(centre - line[0], way)) == pytest.approx(radius)


def test_springs_of_joints_are_drawn_without_being_asked_for():
    assert [mark.kinds[0] for mark in Skeleton(machine()).at(np.zeros(2)).elements] == ["coil", "gear", "belt"]
    finger = lw.Builder().link("a", 1.0, inertia=(1, 1, 1)).link("b", 1.0, inertia=(1, 1, 1))
    finger.joint("one", lw.Revolute(Z), "ground", "a")
    finger.joint("two", lw.Revolute(Z), "a", "b", (1, 0, 0), mimic=lw.Mimic("one"))
    assert not Skeleton(finger.build()).at(np.zeros(1)).elements  # a tendon inside, nothing to see


def test_pictures(tmp_path):
    mech = machine()
    figure = lw.viewer.draw(mech, [0.1, 0.0], path=tmp_path / "machine.png", passive=STRUTS)
    assert {artist.get_gid() for artist in figure.axes[0].collections} >= {"elements solid", "elements dashed"}
    motion = lw.simulate(mech, [0.1, 0.0], None, 0.02, passive=STRUTS)
    shown = lw.viewer.snapshots(motion, count=2)
    assert sum(artist.get_gid() == "elements solid" for artist in shown.axes[0].collections) == 2


def test_springs_of_joints_that_slide_are_on_their_guides():
    mech = lw.mechanisms.cart_pole()
    (spring,) = Skeleton(mech, lw.forces.Passive.springs({"rail": 10.0})).at(np.array([0.1, 0.0])).elements
    assert spring.kinds == ("spring",)
    np.testing.assert_allclose([spring.a, spring.b], [(-0.25, 0.0, 0.0), (0.1, 0.0, 0.0)])


@pytest.mark.parametrize("travelled", [1.0, 10.0, 100.0])
def test_springs_of_what_goes_far_are_no_larger_than_its_links(travelled):
    """A walker on slides, links of 0.4 m, springs at its joints."""
    builder = lw.Builder().link("along").joint("x", lw.Prismatic((1, 0, 0)), "ground", "along")
    before = "along"
    for k in range(3):
        builder.link(f"link{k}", 1.0, (0.2, 0.0, 0.0), (0.01,) * 3)
        hinge = lw.Revolute((0, 1, 0))
        builder.joint(f"hinge{k}", hinge, before, f"link{k}", (0.4 * (k > 0), 0.0, 0.0), stiffness=1.0)
        before = f"link{k}"
    mech = builder.build()
    q = np.zeros((5, 4))
    q[:, 0] = np.linspace(0.0, travelled, 5)
    (ax, *_) = lw.viewer.snapshots(mech, q, np.arange(5.0), count=5).axes
    coils = [one for one in ax.collections if one.get_gid() == "elements solid"]
    spirals = [path.vertices for one in coils for path in one.get_paths() if len(path.vertices) > 40]
    assert len(spirals) == 15 and max(np.ptp(line, axis=0).max() for line in spirals) < 0.4
    assert travelled < 10.0 or coils[0].get_linewidths()[0] < 0.8


def test_rods_without_mass_are_drawn_between_their_points():
    """Links go as far as what they hold, and the rod, with its name, from one to the other."""
    z, inertia = lw.Revolute((0, 0, 1)), (1e-3,) * 3
    builder = lw.Builder().link("crank", 1.0, (0.15, 0, 0), inertia).link("rocker", 1.0, (0.35, 0, 0), inertia)
    builder.joint("A", z, "ground", "crank").joint("D", z, "ground", "rocker", (1, 0, 0))
    mech = builder.distance("rod", "crank", (0.3, 0, 0), "rocker", (0.7, 0, 0), 0.9).build("bars")
    q = lw.constraints.assemble(mech, {"A": 1.0, "D": 1.6}, hold="A")
    sketch = Skeleton(mech).at(q)
    lengths = [np.linalg.norm(np.ptp(bar, axis=0)) for link in sketch.links for bar in link.bars]
    np.testing.assert_allclose(lengths, [0.3, 0.7])
    (rod,) = sketch.elements
    np.testing.assert_allclose(rod.a, 0.3 * np.array([np.cos(1.0), np.sin(1.0), 0.0]), atol=1e-9)
    assert rod.kinds == ("rod",) and np.linalg.norm(rod.b - rod.a) == pytest.approx(0.9)
    figure = lw.viewer.draw(mech, q, labels=True).figure
    assert "rod" in {text.get_text() for text in figure.findobj(lambda one: hasattr(one, "get_text"))}


@pytest.mark.parametrize("name", ["machine", "cart_pole", "rods"])
def test_shapes_of_elements_move_as_their_drawings_do(name):
    """What browsers and pages move with links, made in one position, is where drawings have it in another."""
    passive = {"machine": STRUTS, "cart_pole": lw.forces.Passive.springs({"rail": 10.0, "hinge": 2.0})}.get(name)
    mech = machine() if name == "machine" else lw.mechanisms.cart_pole()
    if name == "rods":
        bars = lw.Builder().link("crank", 1.0, (0.15, 0, 0), (1e-3,) * 3).link("rocker", 1.0, (0.35, 0, 0), (1e-3,) * 3)
        bars.joint("A", lw.Revolute(Z), "ground", "crank").joint("D", lw.Revolute(Z), "ground", "rocker", (1, 0, 0))
        mech = bars.distance("rod", "crank", (0.3, 0, 0), "rocker", (0.7, 0, 0), 0.9).build("bars")
    skeleton, toward = Skeleton(mech, passive), np.array(Z)
    first, other = skeleton.at(np.zeros(2)), skeleton.at(np.array([0.2, 0.4]))
    fixtures, struts = elements_between(first.elements, first.poses, 0.02)
    assert len(fixtures) + len(struts) == len(other.elements)
    moving = [mark for mark in other.elements if mark.links[0] != mark.links[1]]
    for strut, mark in zip(struts, moving, strict=True):
        ends = strut.placed(other.poses, toward) @ np.array([[0, 0, 0, 1], [0, 0, strut.length, 1]]).T
        np.testing.assert_allclose(ends[:3].T, [mark.a, mark.b], atol=1e-12)
    fixed = [mark for mark in other.elements if mark.links[0] == mark.links[1]]
    for fixture, mark in zip(fixtures, fixed, strict=True):
        pose = fixture.placed(other.poses, toward)
        rings = (fixture.shape.vertices @ pose[:3, :3].T + pose[:3, 3]).reshape(-1, 6, 3).mean(axis=1)
        drawn = element_lines([mark], 0.02, toward)
        line = np.concatenate([point for some in drawn.values() for point in some])
        span = np.ptp(line, axis=0)
        np.testing.assert_allclose(np.ptp(rings, axis=0), span, atol=0.05 * span.max())  # spirals begin elsewhere
    whole = placed_together((*fixtures, *struts), other.poses, toward)
    assert len(whole.vertices) == sum(len(one.shape.vertices) for one in (*fixtures, *struts)) > 0


def test_gears_and_springs_on_guides_are_in_pages():
    plain, seen = (lw.viewer.scene(machine(), springs=springs) for springs in (False, True))
    assert {part.name for part in seen.parts} - {part.name for part in plain.parts} == {
        "symbol/bar/hinge_coil", "symbol/ground/drive_gear", "symbol/ground/drive_belt"}  # fmt: skip
    cart = lw.viewer.scene(lw.mechanisms.cart_pole(), passive=lw.forces.Passive.springs({"rail": 10.0}), springs=True)
    (spring,) = cart.struts
    assert [link for link, _ in spring.ends] == [-1, 0]
