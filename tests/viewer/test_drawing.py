"""Drawings: all of the mechanism is in them, nothing is left behind, mistakes are named."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.configurations import several_configurations
from linkwise.viewer.skeleton import Skeleton
from linkwise.viewer.symbols import symbol
from linkwise.viewer.views import view_of
from tests.viewer.to_draw import BUILT_IN, FLAT, built, gids

mpl = pytest.importorskip("matplotlib")


def pixels(figure) -> np.ndarray:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    screen = FigureCanvasAgg(figure)
    screen.draw()
    return np.array(screen.buffer_rgba())[..., :3]


def expected(mech: lw.Mechanism, q) -> dict[str, int]:
    """How many of each thing a drawing must contain."""
    sketch = Skeleton(mech).at(np.asarray(q))
    flat = view_of(mech, np.asarray(q), "auto", sketch.points).flat
    solids = [solid for mark in sketch.marks for solid in symbol(mark, 0.1).solids]
    counts = {
        "bars": sum(len(link.bars) for link in sketch.links),
        "thin": sum(len(link.thin) for link in sketch.links),
        "plates": 2 * sum(len(link.plate) > 0 for link in sketch.links),  # filled, and outlined
        "joints": len(solids) if flat else sum(len(solid.faces) for solid in solids),
        "masses": mech.n_links,
    }
    return {gid: count for gid, count in counts.items() if count}


@pytest.mark.quick_one_in(3)
@pytest.mark.parametrize("name", BUILT_IN)
def test_all_of_a_mechanism_is_drawn_inside_the_limits(name):
    mech, q = built(name)
    figure = lw.viewer.draw(mech, q)
    (ax,) = figure.axes
    assert (ax.name == "rectilinear") == (name in FLAT)
    found = gids(figure)
    assert {gid: found.get(gid, 0) for gid in expected(mech, q)} == expected(mech, q)
    points = Skeleton(mech).at(np.array(q)).points
    if ax.name == "3d":
        limits = np.array([ax.get_xlim(), ax.get_ylim(), ax.get_zlim()])
    else:
        limits = np.array([ax.get_xlim(), ax.get_ylim()])
        points = view_of(mech, np.array(q), "auto", points).project(points)
        assert ax.get_aspect() == 1.0
    assert np.all(points > limits[:, 0]) and np.all(points < limits[:, 1])
    painted = pixels(figure)
    assert np.mean(painted.min(axis=-1) < 200) > 0.003  # not blank
    assert len(np.unique(painted.astype(int) @ (1, 256, 65536))) > 20
    for edge in (painted[0], painted[-1], painted[:, 0], painted[:, -1]):
        assert edge.min() == 255, "something is cut off at the edge of the picture"


@pytest.mark.parametrize("seed", range(4))
def test_random_trees_of_all_joints(seed):
    mech = lw.mechanisms.random_tree(9, seed, joints=(*lw.mechanisms.EVERY_KIND, "fixed"))
    q = lw.random_state(mech, np.random.default_rng(seed))[0]
    found = gids(lw.viewer.draw(mech, q, frames=True, labels=True))
    assert {gid: found[gid] for gid in expected(mech, q)} == expected(mech, q)
    assert found["frames"] == 3 * len(mech.frames)


def test_a_humanoid_from_a_file():
    robots = pytest.importorskip("tests.peers.robots")
    mech = robots.load(robots.robot("talos_data/robots/talos_reduced.urdf"), floating_base=True)
    figure = lw.viewer.draw(mech)
    found = gids(figure)
    q = lw.neutral(mech)
    assert {gid: found[gid] for gid in expected(mech, q)} == expected(mech, q)
    assert "ground" not in found  # it stands on nothing
    width, height = figure.get_size_inches()
    assert height > width  # a figure of the shape of the robot


def test_where_it_stands_is_hatched_once_per_place():
    assert gids(lw.viewer.draw(built("five_bar")[0]))["ground"] == 2  # a joint and a side of the loop
    assert gids(lw.viewer.draw(lw.mechanisms.n_four_bar(3)))["ground"] == 4


def test_a_slider_on_the_ground_stands_on_its_guide():
    """Strokes under both ends of the rail, and no pedestal at the joint's origin."""
    for axis, up in (((1, 0, 0), 1), ((0, 1, 0), 0)):
        mech = lw.Builder().link("block", 1.0).joint("slide", lw.Prismatic(axis), "ground", "block").build("slider")
        figure = lw.viewer.draw(mech, [0.4], view="xy")
        found = gids(figure)
        assert "ground" not in found and found["rails"] == 1
        (hatching,) = [one for one in figure.axes[0].collections if one.get_gid() == "hatching"]
        strokes = np.array([path.vertices for path in hatching.get_paths()])
        assert len(strokes) == found["hatching"] > 0
        np.testing.assert_allclose(strokes[:, 0, up], 0.0, atol=1e-12)  # on the rail
        assert (np.abs(strokes[:, 1, up]) > 1e-3).all()
        along = strokes[:, 0, 1 - up]
        assert along.min() < 0.0 and along.max() > 0.4 and not ((along > 0.0) & (along < 0.4)).any()


def test_guides_on_the_ground_are_as_long_as_limits_say_or_as_can_be_seen():
    limited = lw.Builder().link("block", 1.0).link("rod", 1.0, (0.0, 0.25, 0.0), (0.1, 0.1, 0.1))
    limited.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "block", limits=lw.Limits(-0.1, 0.3))
    limited.joint("hinge", lw.Revolute((0, 0, 1)), "block", "rod")
    for mech, ends in ((limited.build("limited"), (-0.1, 0.3)), (lw.mechanisms.cart_pole(), (-0.25, 0.25))):
        sketch = Skeleton(mech).at(np.zeros(2))
        np.testing.assert_allclose(sketch.joints[0].guide[:, 0], ends)
        (rail,) = symbol(sketch.joints[0], 0.01).rails
        np.testing.assert_allclose(rail[:, 0], np.array(ends) + [-0.034, 0.034])
        left, right = lw.viewer.draw(mech, np.zeros(2)).axes[0].get_xlim()
        assert left < rail[0, 0] and rail[1, 0] < right
    moved = Skeleton(lw.mechanisms.cart_pole()).at(np.array([0.7, 0.0])).joints[0]
    assert symbol(moved, 0.01).rails[0][:, 0].max() > 0.7


def test_pins_in_slots_of_the_ground_stand_on_them():
    points = {"O": (0, 0), "A": (0.1, 0.1), "B": (0.4, 0)}
    build = lw.Builder().linkage(points, {"ground": "O", "crank": "OA", "rod": "AB"}, {"B": ("ground", (1, 0))})
    found = gids(lw.viewer.draw(build.build("engine", (0, -9.81, 0))))
    assert found["ground"] == 1 and found["rails"] == 4  # of both sides of the loop


def test_ranges_of_motion_are_drawn_as_motions_are():
    mech = lw.mechanisms.four_bar()
    found = lw.linkages.range_of_motion(mech, "crank_joint")
    for given in ((found,), (mech, found)):
        figure = lw.viewer.snapshots(*given, count=3, trail="coupler")
        (trail,) = (artist for artist in figure.axes[0].collections if artist.get_gid() == "trail")
        way = trail.get_paths()[0].vertices
        np.testing.assert_allclose(np.linalg.norm(way, axis=1), 0.3, atol=1e-9)  # the coupler's joint, on the crank


def test_motions_by_joint_have_their_loops_closed():
    mech = lw.mechanisms.four_bar()
    figure = lw.viewer.snapshots(mech, [{"crank_joint": 0.2}, {"crank_joint": 0.9}], count=2, trail="rocker")
    assert "gaps" not in gids(figure)


def test_what_glides_on_a_plane_stands_on_no_pedestal_and_has_its_blades():
    mech = lw.mechanisms.snakeboard()
    assert "ground" not in gids(lw.viewer.draw(mech))
    q = np.array([0.0, 0.0, 0.0, 0.0, 0.5, 0.0])
    (blade,) = Skeleton(mech).at(q).links[mech.body_index("front_axle")].bars
    np.testing.assert_allclose(blade.mean(axis=0), lw.frame_pose(mech, q, "front_axle")[:3, 3], atol=1e-12)
    np.testing.assert_allclose(np.cross(blade[1] - blade[0], [np.cos(0.5), np.sin(0.5), 0.0]), 0.0, atol=1e-12)


def test_closed_mechanisms_are_assembled_where_no_configuration_is_given():
    assert "gaps" not in gids(lw.viewer.draw(lw.mechanisms.five_bar()))
    assert gids(lw.viewer.draw(lw.mechanisms.five_bar(), np.zeros(4)))["gaps"] == 1


def test_what_is_drawn_can_be_chosen():
    mech, q = built("planar_arm")
    plain = gids(lw.viewer.draw(mech, q, axes=False, masses=False))
    full = gids(lw.viewer.draw(mech, q, frames=True))
    assert not {"axes", "masses", "frames"} & set(plain) and {"axes", "masses", "frames"} <= set(full)
    figure = lw.viewer.draw(mech, q, labels=True, title="an arm", ticks=False)
    words = [text.get_text() for text in figure.axes[0].texts]
    assert words == [*mech.joint_names, "tip"] and figure.axes[0].get_title() == "an arm"
    assert not figure.axes[0].axison


@pytest.mark.parametrize("name", ["planar_arm", "puma560"])
def test_dots_at_mass_centres_are_explained(name):
    mech, q = built(name)
    figure = lw.viewer.draw(mech, q)
    (key,) = figure.legends
    assert [text.get_text() for text in key.get_texts()] == ["centre of mass"]
    figure.draw_without_rendering()
    ax = figure.axes[0]
    below = key.get_window_extent()
    assert below.y0 >= 0.0 and not any(below.overlaps(axis.get_tightbbox()) for axis in (ax.xaxis, ax.yaxis))
    assert not lw.viewer.draw(mech, q, masses=False).legends
    assert len(lw.viewer.snapshots(mech, np.stack([q, q]), [0.0, 1.0]).legends) == 1
    own = mpl.figure.Figure().add_subplot(projection=None if name == "planar_arm" else "3d")
    lw.viewer.draw(mech, q, ax=own)
    assert not own.figure.legends and own.get_legend_handles_labels()[1] == ["centre of mass"]


@pytest.mark.parametrize("name", ["stanford_arm", "puma560"])
def test_names_of_axes_in_space_do_not_touch_their_numbers(name):
    (ax,) = lw.viewer.draw(getattr(lw.mechanisms, name)()).axes
    ax.figure.draw_without_rendering()
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        low, high = axis.get_view_interval()
        numbers = [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        assert len(numbers) > 1
        assert not any(axis.label.get_window_extent().overlaps(number.get_window_extent()) for number in numbers)


def test_all_frames_are_inside_the_limits():
    tower = lw.Builder().link("arm", 1.0, (0.1, 0, 0), (0.1,) * 3)
    tower.joint("hinge", lw.Revolute((0, 0, 1)), "ground", "arm", (None, (0.0, 3.0, 0.0)))
    (ax,) = lw.viewer.draw(tower.build("tower", (0, -9.81, 0)), frames=True).axes
    (lines,) = [artist for artist in ax.collections if artist.get_gid() == "frames"]
    points = np.concatenate(lines.get_segments())
    limits = np.array([ax.get_xlim(), ax.get_ylim()])
    assert np.abs(points).min(axis=0).max() == 0.0  # the ground is among them
    assert np.all(points >= limits[:, 0]) and np.all(points <= limits[:, 1])


def test_joints_at_one_place_share_a_label():
    stanford = lw.mechanisms.stanford_arm()
    words = [text.get_text() for text in lw.viewer.draw(stanford, labels=True).axes[0].texts]
    assert sum(word.count("joint") for word in words) == 6 and len(words) < 6


def test_a_pin_in_a_slot_that_closes_a_loop_is_drawn_and_named_where_it_is():
    """The slot of a quick-return mechanism begins at the pivot of its lever, the pin is at the end of the crank."""
    builder = lw.Builder()
    for name in ("crank", "lever"):
        builder.link(name, 1.0, (0.1, 0.0, 0.0), (0.01, 0.01, 0.01))
    builder.joint("A", lw.Revolute(), "ground", "crank").joint("O", lw.Revolute(), "ground", "lever", (-0.5, 0, 0))
    builder.loop("slot", lw.PinInSlot((1, 0, 0), (0, 0, 1)), "lever", (0, 0, 0), "crank", (0.2, 0, 0))
    mech = builder.build("quick_return", gravity=(0.0, -9.81, 0.0))
    q = lw.constraints.assemble(mech, [0.7, 0.1], hold="A")
    pin = [0.2 * np.cos(0.7), 0.2 * np.sin(0.7)]
    figure = lw.viewer.draw(mech, q, labels=True)
    notes = {text.get_text(): text.xy for text in figure.axes[0].texts}
    assert set(notes) == {"A", "O", "slot"}
    np.testing.assert_allclose(notes["slot"], pin, atol=1e-12)
    sides = Skeleton(mech).at(q).loops[0]
    drawn = [solid.points.mean(axis=0)[:2] for side in sides for solid in symbol(side, 0.01).solids]
    np.testing.assert_allclose(drawn, [pin], atol=1e-12)  # one pin
    assert all(len(symbol(side, 0.01).rails) == 2 for side in sides)


def boxes_of_words(figure) -> dict[str, np.ndarray]:
    """Words -> lower left and upper right of the words alone, in pixels."""
    from matplotlib.text import Text

    pixels(figure)
    return {text.get_text(): Text.get_window_extent(text).get_points() for text in figure.axes[0].texts}


def touching(boxes) -> list[tuple[str, str]]:
    """Pairs of boxes that overlap."""
    names = list(boxes)
    return [
        (a, b)
        for i, a in enumerate(names)
        for b in names[:i]
        if np.all(boxes[a][0] < boxes[b][1]) and np.all(boxes[b][0] < boxes[a][1])
    ]


@pytest.mark.parametrize("name", ["puma560", "stanford_arm", "loader", "five_bar", "stewart_platform"])
def test_labels_touch_neither_each_other_nor_the_edge(name):
    mech, q = built(name)
    figure = lw.viewer.draw(mech, q, labels=True)
    boxes = boxes_of_words(figure)
    assert boxes and not touching(boxes)
    assert all(np.all(box >= 0) and np.all(box[1] <= figure.bbox.size) for box in boxes.values())


def test_labels_of_robots_from_files_can_be_read():
    robots = pytest.importorskip("tests.peers.robots")
    ur5 = robots.load(robots.robot("ur_description/urdf/ur5_robot.urdf"))
    figure = lw.viewer.draw(ur5, labels=True)
    boxes = boxes_of_words(figure)
    assert list(boxes) == list(ur5.joint_names) and not touching(boxes)
    numbers = {
        f"tick {tick.label1.get_text()} {axis.axis_name}": tick.label1.get_window_extent().get_points()
        for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis, figure.axes[0].zaxis)
        for tick in axis.get_major_ticks()
    }
    assert not [pair for pair in touching(boxes | numbers) if not all(word.startswith("tick") for word in pair)]

    talos = robots.load(robots.robot("talos_data/robots/talos_reduced.urdf"))
    figure, plain = lw.viewer.draw(talos, labels=True), lw.viewer.draw(talos)
    boxes = boxes_of_words(figure)
    shown = sorted(int(number) for words in boxes for number in words.split(", "))
    assert shown == list(range(1, talos.n_links + 1)) and not touching(boxes)
    key = [line for text in figure.texts if text.get_gid() == "key" for line in text.get_text().splitlines()]
    assert key == [f"{k + 1}  {joint}" for k, joint in enumerate(talos.joint_names)]
    assert figure.get_size_inches()[0] > plain.get_size_inches()[0]  # the key is beside the picture, not on it
    picture = figure.axes[0].get_tightbbox()
    assert all(text.get_window_extent().x0 > picture.x0 + 0.5 * picture.width for text in figure.texts)


def test_a_key_in_axes_of_the_users_own():
    from matplotlib.figure import Figure

    mine = Figure(layout="constrained")
    ax = mine.add_subplot(111, projection="3d")
    mech = lw.mechanisms.chain(20)
    lw.viewer.draw(mech, ax=ax, labels=True)
    (key,) = (text for text in ax.texts if text.get_gid() == "key")
    assert key.get_text().splitlines()[-1] == "20  joint20" and mine.get_size_inches()[0] == 6.4
    # Labels stay at their joints when the picture is turned.
    (label,) = (text for text in ax.texts if text.get_text() == "7")
    before = pixels(mine) is not None and label.get_window_extent().get_points()
    ax.view_init(20.0, 60.0)
    pixels(mine)
    assert np.abs(label.get_window_extent().get_points() - before).max() > 5.0


def test_trails_of_points():
    mech, q = lw.mechanisms.planar_arm(2), np.linspace([0.0, 0.0], [2.0, 1.0], 9)

    def trail(which):
        figure = lw.viewer.snapshots(mech, q, count=2, trail=which)
        (line,) = (artist for artist in figure.axes[0].collections if artist.get_gid() == "trail")
        return line.get_paths()[0].vertices

    last = mech.link_names[-1]
    first, both = q[:, 0], q.sum(axis=1)
    elbow = np.stack([np.cos(first), np.sin(first)], axis=1)  # links of 1 m
    np.testing.assert_allclose(trail(last), elbow, atol=1e-12)
    ahead, aside = np.stack([np.cos(both), np.sin(both)], axis=1), np.stack([-np.sin(both), np.cos(both)], axis=1)
    np.testing.assert_allclose(trail((last, (0.5, 0.2, 0.0))), elbow + 0.5 * ahead + 0.2 * aside, atol=1e-12)
    for bad in (3, ("tip",), ("tip", 1.0), ("tip", (1, 2)), (1, (0, 0, 0)), ("tip", (0, 0, np.nan))):
        with pytest.raises(ValueError, match="trail must be the name of a link or frame"):
            lw.viewer.snapshots(mech, q, trail=bad)
    with pytest.raises(lw.MechanismError, match="no link or frame 'tool'"):
        lw.viewer.snapshots(mech, q, trail=("tool", (0, 0, 0)))


@pytest.mark.parametrize("suffix, start", [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_files(tmp_path, suffix, start):
    path = tmp_path / f"picture.{suffix}"
    figure = lw.viewer.draw(*built("four_bar"), path=path)
    first = path.read_bytes()
    assert first.startswith(start)
    if suffix == "svg":
        assert b"<image" not in first  # lines, not dots
    if suffix == "png":
        from PIL import Image

        assert Image.open(path).size == tuple((figure.get_size_inches() * 150).astype(int))


def test_a_picture_is_the_same_every_time(tmp_path):
    for name in "ab":
        lw.viewer.draw(*built("puma560"), path=tmp_path / f"{name}.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_axes_of_the_users_own():
    from matplotlib.figure import Figure

    mine = Figure()
    left, right = mine.add_subplot(121), mine.add_subplot(122, projection="3d")
    mech, q = built("five_bar")
    assert lw.viewer.draw(mech, q, ax=left) is mine and lw.viewer.draw(mech, q, ax=right) is mine
    assert gids(mine, 0)["bars"] == gids(mine, 1)["bars"] == 4
    with pytest.raises(ValueError, match="not a flat view"):
        lw.viewer.draw(mech, q, ax=right, view="xy")
    with pytest.raises(ValueError, match="projection='3d'"):
        lw.viewer.draw(*built("puma560"), ax=left)
    lw.viewer.draw(*built("puma560"), ax=left, view="xz")


def test_snapshots_of_a_full_turn_are_all_different():
    mech = lw.mechanisms.four_bar()
    turn = lw.linkages.range_of_motion(mech, "crank_joint")
    figure = lw.viewer.snapshots(turn, count=4)
    cranks = [line.get_segments()[0] for line in figure.axes[0].collections if line.get_gid() == "bars"]
    ends = {tuple(np.round(bar[-1], 6)) for bar in cranks}
    assert len(cranks) == len(ends) == 4


def test_snapshots_fade_and_share_their_limits():
    mech = lw.mechanisms.planar_arm(2)
    q = np.linspace([0.0, 0.0], [2.0, 1.0], 9)
    figure = lw.viewer.snapshots(mech, q, count=5, trail="tip")
    assert gids(figure)["bars"] == 10 and gids(figure)["masses"] == 2
    bars = [artist for artist in figure.axes[0].collections if artist.get_gid() == "bars"]
    lightness = [artist.get_colors()[0][:3].sum() for artist in bars]
    assert np.all(np.diff(lightness) < 0.0)
    (trail,) = (artist for artist in figure.axes[0].collections if artist.get_gid() == "trail")
    np.testing.assert_allclose(trail.get_paths()[0].vertices, lw.frame_pose(mech, q, "tip")[:, :2, 3], atol=1e-12)
    assert gids(lw.viewer.snapshots(mech, q, count=1))["bars"] == 2


def test_mistakes_are_named(tmp_path):
    mech, q = built("four_bar")
    with pytest.raises(ValueError, match="nq = 3, but q has shape"):
        lw.viewer.draw(mech, np.zeros(4))
    with pytest.raises(ValueError, match="draw them one by one"):
        lw.viewer.draw(mech, np.zeros((5, 3)))
    with pytest.raises(ValueError, match="must be finite"):
        lw.viewer.draw(mech, [0.0, np.nan, 0.0])
    with pytest.raises(TypeError, match="a Mechanism is needed, got str"):
        lw.viewer.draw("four_bar")
    with pytest.raises(ValueError, match=r"\.png, \.svg or \.pdf, not as 'picture.docx'"):
        lw.viewer.draw(mech, q, path=tmp_path / "picture.docx")
    with pytest.raises(ValueError, match="at least one position"):
        lw.viewer.snapshots(mech, np.zeros((2, 3)), count=0)
    welded = lw.Builder().link("a", 1.0).joint("weld", lw.Fixed(), "ground", "a").build("welded")
    with pytest.raises(ValueError, match="'welded' has no moving links"):
        lw.viewer.draw(welded)
    with pytest.raises(ValueError, match="size of symbols must be positive"):
        lw.viewer.draw(mech, q, symbols=0.0)
    never = mech.with_loops(
        lw.constraints.Loop("far", lw.Spherical(), "ground", (None, (50, 0, 0)), "crank", (None, (0, 0, 0)))
    )
    with pytest.raises(ValueError, match="no configuration was found in which the loops"):
        lw.viewer.draw(never)


def test_no_pyplot_no_backend_no_settings_are_touched(tmp_path):
    code = (
        "import sys, matplotlib, linkwise as lw\n"
        "assert 'linkwise.viewer' not in sys.modules\n"
        "before = matplotlib.rcParams.copy()\n"
        "lw.viewer.draw(lw.mechanisms.double_pendulum(), path='a.png')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert before == matplotlib.rcParams.copy()\n"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr


def test_importing_linkwise_does_not_import_matplotlib_and_its_absence_is_named():
    code = (
        "import sys\n"
        "sys.modules['matplotlib'] = None\n"
        "import linkwise as lw\n"
        "lw.viewer\n"
        "try: lw.viewer.draw(lw.mechanisms.double_pendulum())\n"
        "except ImportError as error: assert isinstance(error, ValueError); print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "drawing needs matplotlib: pip install 'linkwise[plot]'\n"


def test_the_path_of_a_point_as_far_as_it_goes():
    mech = lw.mechanisms.four_bar().with_frame("P", "coupler", (0.2, 0.3, 0.0))
    figure = lw.viewer.draw(mech, trail="P")
    (path,) = (one.get_segments()[0] for one in figure.axes[0].collections if one.get_gid() == "trail")
    turn = lw.configuration(mech, crank_joint=np.linspace(0.0, 2.0 * np.pi, 25))
    for place in lw.frame_pose(mech, turn, "P")[:, :2, 3]:
        assert np.linalg.norm(path - place, axis=-1).min() < 0.05  # between two points of the path
    with pytest.raises(ValueError, match="has 2 degrees of freedom, and no single path is that of 'tip'"):
        lw.viewer.draw(lw.mechanisms.planar_arm(2), trail="tip")
    figure = lw.viewer.snapshots(mech, {"crank_joint": np.linspace(0.0, 1.0, 5)}, count=2)
    assert sum(one.get_gid() == "bars" for one in figure.axes[0].collections) == 2


def test_snapshots_of_few_configurations_are_these_and_loops_stay_closed_between():
    points = {"A": (0, 0), "B": (0, 0.1), "C": (0.4, 0.25), "D": (0.4, 0)}
    links = {"ground": "AD", "crank": "AB", "coupler": "BC", "rocker": "DC"}
    mech = lw.Builder().linkage(points, links, density=1.0).build("four")
    q = lw.linkages.follow_path(mech, None, {"A": np.array([0.0, 1.0, 2.0, 3.0])})
    apart = several_configurations(mech, q[[0, 3]]).at(np.linspace(0.0, 1.0, 7))
    assert np.abs(lw.constraints.position_error(mech, apart)).max() < 1e-9
    few = lw.viewer.snapshots(mech, q).axes[0]
    as_many = lw.viewer.snapshots(mech, q, count=4).axes[0]
    many = lw.viewer.snapshots(mech, q, count=6).axes[0]
    assert len(few.get_children()) == len(as_many.get_children()) < len(many.get_children())
