"""Moving pictures last as long as the motion, show it at even times, and keep their frame."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.configurations import several_configurations
from tests.viewer.to_draw import hinged

pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")
ARM = lw.mechanisms.planar_arm(2)
TURN = np.linspace([0.0, 0.0], [2.0, 1.0], 21)


def frames(path) -> tuple[list[np.ndarray], list[int]]:
    """Pictures and their durations in milliseconds."""
    movie = Image.open(path)
    pictures, durations = [], []
    for k in range(movie.n_frames):
        movie.seek(k)
        pictures.append(np.array(movie.convert("RGB")))
        durations.append(movie.info["duration"])
    return pictures, durations


@pytest.mark.parametrize("fps, speed, count", [(30.0, 1.0, 31), (10.0, 1.0, 11), (10.0, 0.5, 21), (24.0, 2.0, 13)])
def test_frames_and_duration(tmp_path, fps, speed, count):
    path = lw.viewer.animate(
        ARM, TURN, np.linspace(0.0, 1.0, 21), path=tmp_path / "a.gif", fps=fps, speed=speed, dpi=40
    )
    pictures, durations = frames(path)
    assert len(pictures) == count
    assert abs(sum(durations) / 1000.0 - count / fps) <= 0.005
    assert len({picture.shape for picture in pictures}) == 1
    assert all(np.any(a != b) for a, b in zip(pictures, pictures[1:], strict=False))


def test_axes_stay_in_place_and_the_mechanism_moves(tmp_path):
    for name, mech in (("flat", ARM), ("space", hinged("universal"))):
        q = np.linspace(0.0, 1.0, 4)[:, None] * np.ones(mech.nq)
        pictures, _ = frames(lw.viewer.animate(mech, q, path=tmp_path / f"{name}.gif", fps=5.0, clock=False, dpi=60))
        changed = np.any(np.array(pictures) != pictures[0], axis=(0, 3))
        assert 0.005 < changed.mean() < 0.6
        dark = np.array(pictures)[:, ~changed].min(axis=-1) < 128  # ticks and their numbers, in every frame
        assert np.all(dark == dark[0]) and dark[0].sum() > 50


def test_an_mp4_shows_what_the_gif_shows(tmp_path):
    import matplotlib

    from linkwise.viewer.animation import _ffmpeg

    program, before = _ffmpeg(), matplotlib.rcParams["animation.ffmpeg_path"]
    if program is None:
        pytest.skip("no program ffmpeg, neither of the system nor of imageio-ffmpeg")
    video = lw.viewer.animate(ARM, TURN[::9], path=tmp_path / "a.mp4", fps=12.5, dpi=41)
    assert matplotlib.rcParams["animation.ffmpeg_path"] == before
    decoded = [program, "-loglevel", "error", "-i", str(video), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    data = subprocess.run(decoded, capture_output=True, check=True, timeout=60).stdout
    expected, _ = frames(lw.viewer.animate(ARM, TURN[::9], path=tmp_path / "a.gif", fps=12.5, dpi=41))
    height, width = (size - size % 2 for size in expected[0].shape[:2])  # h264 takes even sizes alone
    found = np.frombuffer(data, dtype=np.uint8).reshape(3, height, width, 3)
    for k, picture in enumerate(found):
        distances = [np.abs(picture.astype(float) - other[:height, :width]).mean() for other in expected]
        assert np.argmin(distances) == k and distances[k] < 6.0


def test_without_times_every_configuration_is_a_frame(tmp_path):
    pictures, durations = frames(lw.viewer.animate(ARM, TURN[:7], path=tmp_path / "a.gif", fps=20.0, dpi=40))
    assert len(pictures) == 7 and sum(durations) == 350


def test_a_trajectory_brings_its_mechanism_and_times(tmp_path):
    t = np.array([0.0, 0.1, 0.4, 1.0])
    motion = SimpleNamespace(mech=ARM, t=t, q=np.outer(t, [2.0, 1.0]), v=np.ones((4, 2)))
    for arguments in ((motion,), (ARM, motion)):
        path = lw.viewer.animate(*arguments, path=tmp_path / "a.gif", fps=10.0, trail="tip", dpi=40)
        assert len(frames(path)[0]) == 11


def test_a_simulated_motion(tmp_path):
    pendulum = lw.mechanisms.double_pendulum()
    motion = lw.simulate(pendulum, [1.0, 0.5], [0.0, 0.0], 0.5)
    seen = several_configurations(motion)
    times = np.linspace(0.0, 0.5, 7)
    np.testing.assert_allclose(seen.at(times), motion.at(times)[0])
    assert len(frames(lw.viewer.animate(motion, path=tmp_path / "a.gif", fps=10.0, dpi=40))[0]) == 6


def test_between_the_times_joints_move_evenly_on_their_manifold():
    mech = hinged("spherical")
    half = np.array([np.cos(0.6), 0.0, np.sin(0.6), 0.0])  # 1.2 rad about y
    q = np.array([[0.0, 1.0, 0.0, 0.0, 0.0], [0.4, *half], [0.4, *half], [0.0, *half]])
    motion = several_configurations(mech, q, [0.0, 1.0, 1.0, 2.0])  # the joint stops for no time
    middle, end, after = motion.at(np.array([0.5, 1.0, 1.5]))
    np.testing.assert_allclose(middle, [0.2, np.cos(0.3), 0.0, np.sin(0.3), 0.0], atol=1e-12)
    np.testing.assert_allclose(end, q[1], atol=1e-12)
    np.testing.assert_allclose(after, [0.2, *half], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(motion.at(np.linspace(0, 2, 50))[:, 1:], axis=1), 1.0, atol=1e-12)


def test_limits_hold_the_whole_motion(tmp_path, monkeypatch):
    from linkwise.viewer import animation
    from linkwise.viewer.skeleton import Skeleton

    limits = []

    class Spy(animation.GifWriter):
        def grab_frame(self):
            (ax,) = self.screen.figure.axes
            limits.append((*ax.get_xlim(), *ax.get_ylim()))
            super().grab_frame()

    monkeypatch.setattr(animation, "GifWriter", Spy)
    lw.viewer.animate(ARM, TURN, path=tmp_path / "a.gif", fps=10.0, dpi=40, trail="tip")
    assert len(set(limits)) == 1 and len(limits) == 21
    low_x, high_x, low_y, high_y = limits[0]
    for q in TURN:
        x, y, _ = Skeleton(ARM).at(q).points.T
        assert low_x < x.min() and x.max() < high_x and low_y < y.min() and y.max() < high_y


SLED = """<mujoco><worldbody><geom type="plane" size="9 9 1"/><body name="sled" pos="0 0 .7">
  <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/><joint name="y" axis="0 1 0"/>
  <geom type="capsule" size=".05 .5" euler="0 90 0"/></body></worldbody></mujoco>"""


def test_the_clock_is_whole_above_motions_of_every_aspect(tmp_path, monkeypatch):
    from linkwise.viewer import animation

    seen = []

    class Spy(animation.GifWriter):
        def grab_frame(self):
            super().grab_frame()
            figure = self.screen.figure
            seen.append((figure.axes[0].title.get_window_extent(), figure.bbox))

    monkeypatch.setattr(animation, "GifWriter", Spy)
    mech = lw.load(SLED)
    for joint, way in ((0, 0.0), (0, 0.5), (0, 0.8), (0, 4.0), (1, 1.0)):
        q = np.tile(mech.initial, (2, 1))
        q[1, joint] += way
        lw.viewer.animate(mech, q, np.array([0.0, 0.2]), path=tmp_path / "a.gif", fps=5.0, dpi=60)
    assert len(seen) == 10
    for words, figure in seen:
        assert words.height > 5.0 and words.y1 < figure.y1 and 0.0 < words.x0 < words.x1 < figure.x1


def test_only_motions_with_times_have_a_clock(tmp_path, monkeypatch):
    """Paths and configurations without times are shown at a pace that says nothing."""
    from linkwise.viewer import animation

    titles = []

    class Spy(animation.GifWriter):
        def grab_frame(self):
            titles.append(self.screen.figure.axes[0].get_title())

        @contextlib.contextmanager
        def saving(self, figure, path, dpi):
            self.screen = SimpleNamespace(figure=figure)
            yield

    monkeypatch.setattr(animation, "GifWriter", Spy)
    bars = lw.mechanisms.four_bar()
    path = lw.linkages.follow_path(bars, None, {"crank_joint": np.linspace(0.0, 1.0, 4)})
    reach = lw.linkages.range_of_motion(bars, "rocker_joint")
    driven = lw.linkages.driven_motion(bars, {"crank_joint": np.linspace(0.0, 1.0, 4)}, {"crank_joint": 2.0})
    options = {"path": tmp_path / "a.gif", "fps": 2.0}
    for shown in ((bars, path), (reach,), (driven,), (ARM, TURN)):
        lw.viewer.animate(*shown, **options)
    assert titles and set(titles) == {""}
    titles.clear()
    lw.viewer.animate(bars, path, np.arange(4.0), **options)
    lw.viewer.animate(lw.simulate(ARM, TURN[0], None, 1.0), **options)
    assert titles[0] == "t = 0.00 s" and set(titles) > {"t = 0.50 s", "t = 3.00 s"}


def test_mistakes_are_named(tmp_path, monkeypatch):
    gif = tmp_path / "a.gif"
    with pytest.raises(ValueError, match=r"\.gif or \.mp4 files, not 'a.avi'"):
        lw.viewer.animate(ARM, TURN, path="a.avi")
    with pytest.raises(
        ValueError, match=r"one row per moment, shape \(m, 2\), got \(21, 3, 2\); choose one of a batch"
    ):
        lw.viewer.animate(ARM, np.zeros((21, 3, 2)), path=gif)
    with pytest.raises(ValueError, match="21 configurations need 21 times"):
        lw.viewer.animate(ARM, TURN, np.arange(20.0), path=gif)
    with pytest.raises(ValueError, match="must not go back"):
        lw.viewer.animate(ARM, TURN, -np.arange(21.0), path=gif)
    with pytest.raises(ValueError, match="fps must be positive"):
        lw.viewer.animate(ARM, TURN, path=gif, fps=0.0)
    with pytest.raises(ValueError, match="no more than 50 frames per second"):
        lw.viewer.animate(ARM, TURN, path=gif, fps=120.0)
    with pytest.raises(ValueError, match="30001 frames"):
        lw.viewer.animate(ARM, TURN, np.linspace(0.0, 1000.0, 21), path=gif)
    with pytest.raises(lw.MechanismError, match="no link or frame 'tool'"):
        lw.viewer.animate(ARM, TURN, path=gif, trail="tool")
    with pytest.raises(TypeError, match="a Mechanism or a trajectory"):
        lw.viewer.animate(TURN, path=gif)
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ImportError, match=r"needs the program ffmpeg.*linkwise\[video\]"):
        lw.viewer.animate(ARM, TURN, path=tmp_path / "a.mp4")
    assert not list(tmp_path.iterdir())
