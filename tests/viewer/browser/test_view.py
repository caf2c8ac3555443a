"""The viewer as callers meet it: what it takes, what it answers, without a browser."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.viewer.browser import Hand

viser = pytest.importorskip("viser")


@pytest.fixture
def opened():
    viewers = []

    def open_page(*what):
        viewers.append(lw.view(*what, port=8800, open_browser=False))
        return viewers[-1]

    yield open_page
    for viewer in viewers:
        viewer.stop()


def settle(viewer):
    """Let the viewer do what was asked."""
    done = []
    viewer.ask("last", lambda: done.append(True))
    for _ in range(500):
        if done:
            return
        viewer._ended.wait(0.01)
    raise AssertionError("the viewer did not answer")


def test_a_mechanism_is_shown_moved_and_dragged(opened):
    mech = lw.mechanisms.five_bar()
    viewer = opened(mech)
    assert viewer.url in repr(viewer) and viewer.url in viewer._repr_html_()
    before = viewer.q
    viewer.ask("slide", lambda: viewer.session.move("joint1", 10.0))
    settle(viewer)
    assert viewer.q[0] == pytest.approx(np.radians(10.0)) and np.abs(viewer.q - before)[1:].max() > 0.0
    hand = Hand(mech.link_names[1], np.array([0.3, 0.0, 0.0]))
    viewer.hand = hand
    goal = hand.position(mech, viewer.q) + [0.02, 0.01, 0.0]
    viewer.ask("pull", lambda: viewer.pull(goal))
    settle(viewer)
    np.testing.assert_allclose(hand.position(mech, viewer.q), goal, atol=1e-4)
    assert viewer.session.gap < 1e-9
    viewer.q = before
    np.testing.assert_array_equal(viewer.q, before)
    for what in ("trail", "velocities", "mass centres", "inertia", "manipulability", "frames"):
        viewer.ask(what, lambda what=what: viewer.set_shown(what, True))
    viewer.ask("kinds", lambda: viewer.stage.show_kinds(("skeleton",)))
    settle(viewer)
    with pytest.raises(ValueError, match="none shows the page"):
        viewer.screenshot()
    with pytest.raises(ValueError, match="no motion to record"):
        viewer.video("x.gif")
    viewer.start_live()
    for _ in range(500):
        if viewer.live.time > 0.05:
            break
        viewer._ended.wait(0.01)
    viewer.stop_live()
    assert viewer.session.gap < 1e-9 and np.abs(viewer.q - before).max() > 0.0


def test_a_planar_mechanism_is_seen_square_to_its_plane(opened):
    hanging = opened(lw.mechanisms.planar_arm(2), [-np.pi / 2.0, 0.0])  # in a line, which does not tell the plane
    start = hanging.server.initial_camera
    towards = start.position - start.look_at
    assert towards[2] > 0.9 * np.linalg.norm(towards)


def test_motions_batches_and_modes_are_played(opened):
    arm = lw.mechanisms.planar_arm(2)
    motion = lw.simulate(arm, [0.5, 0.2], [0.0, 0.0], 0.2)
    viewer = opened(motion)
    assert viewer.player.clip.duration == pytest.approx(0.2) and not viewer.player.playing
    viewer.ask("seek", lambda: viewer.seek(0.1))
    settle(viewer)
    np.testing.assert_allclose(viewer.q, motion.at(0.1)[0])
    several = opened(arm, np.zeros((3, 5, 2)), np.arange(5))
    assert several.stage.n_actors == 3
    modes = opened(lw.linearize(arm, [-np.pi / 2, 0.0]))
    assert "Hz" in modes.session.status and modes.player.playing
    with pytest.raises(TypeError, match=r"lw.view\(lw.load\('robot.urdf'\)\)"):
        lw.view("robot.urdf")


def test_the_command_opens_a_page_until_it_is_interrupted(monkeypatch, capsys, tmp_path):
    from linkwise.viewer.browser.viewer import Viewer

    seen = []
    monkeypatch.setattr(Viewer, "wait", lambda viewer: seen.append(viewer.q))
    here = ["builtin:planar_arm:2", "--no-browser", "--port", "8810"]
    assert main(["view", *here, "--q", "joint2=90", "--degrees"]) == 0
    np.testing.assert_allclose(seen[0], [0.0, np.pi / 2])
    assert "planar_arm_2 is at http://localhost:88" in capsys.readouterr().out
    table = tmp_path / "motion.csv"
    table.write_text("t,q1,q2\n0,0.1,0.2\n1,0.3,0.4\n")
    assert main(["view", *here, "--motion", str(table)]) == 0
    np.testing.assert_allclose(seen[1], [0.1, 0.2])
    assert main(["view", "builtin:planar_arm:2", "--motion", str(table), "--q", "joint1=1"]) == 2


def test_nothing_of_it_is_imported_before_it_is_asked_for():
    script = (
        "import sys, linkwise as lw; lw.mechanisms.loader(); "
        "print(sorted({'viser', 'trimesh', 'linkwise.viewer'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_without_viser_it_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ImportError, match=r"pip install 'linkwise\[view\]'"):
        lw.view(lw.mechanisms.five_bar())


def test_springs_of_a_motion_are_drawn_with_it(opened):
    mech = lw.mechanisms.cart_pole()
    passive = lw.forces.Passive.springs({"rail": 20.0}) + lw.forces.Passive.spring_between(
        "ground", (0.5, 0.0, 0.0), "pole", (0.0, 0.0, 0.5), 30.0
    )
    motion = lw.simulate(mech, [0.1, 0.3], [0.0, 0.0], 0.5, passive=passive)
    viewer = opened(motion)
    for t in (0.0, 0.3):
        viewer.seek(t)
        rings = np.reshape(viewer.stage._overlays["elements"].vertices, (-1, 6, 3))  # around the ends of thin tubes
        lines = rings.mean(axis=1)
        q = motion.at(t)[0]
        for point in ((0.5, 0.0, 0.0), lw.frame_pose(mech, q, "pole")[:3] @ (0.0, 0.0, 0.5, 1.0), (q[0], 0.0, 0.0)):
            assert np.linalg.norm(lines - point, axis=1).min() < 1e-6
    assert "elements" not in opened(mech).stage._overlays


def hinges(*limits):
    """One hinge for each pair of limits, in degrees."""
    builder = lw.Builder()
    for k, (low, high) in enumerate(limits):
        builder.link(f"link{k}", 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
        bounds = lw.Limits([np.radians(low)], [np.radians(high)])
        builder.joint(f"joint{k}", lw.Revolute((0, 0, 1)), "ground", f"link{k}", limits=bounds)
    return builder.build("hinges")


def test_sliders_of_mechanisms_at_and_beyond_their_limits(opened):
    """Limits whose degrees are no round numbers; the start is at one of them, or beyond."""
    rng = np.random.default_rng(1)
    limits = [(-154.50001, -52.4386), (29.96, 70.0), (0.3, 0.3), (-52.43, 1e9)]
    limits += [tuple(np.sort(rng.uniform(-200.0, 200.0, 2))) for _ in range(60)]
    mech = hinges(*limits)
    lower, upper = np.radians(np.array(limits)).T
    viewer = opened(mech, lower)
    for q in (upper, lower - 0.1, upper + 0.1, 0.5 * (lower + upper)):
        viewer.q = q
        for name, handle in viewer.panel._sliders.items():
            assert handle.min <= handle.value <= handle.max
            here = np.clip(np.degrees(q[mech.q_index(name)][0]), handle.min, handle.max)
            assert abs(handle.value - here) <= 0.51 * handle.step


def test_the_time_slider_stays_within_its_motion(opened):
    """Ends that no thousandth of a second hits, and motions of microseconds."""
    arm = lw.mechanisms.planar_arm(2)
    for times in (np.linspace(0.0, 0.12366, 7), np.linspace(1.00049, 1.0005, 3), np.zeros(1)):
        viewer = opened(arm, np.zeros((len(times), 2)), times)
        slider = viewer.panel._player["scrub"]
        for t in (times[-1], times[0], times.mean()):
            viewer.seek(float(t))
            assert slider.min <= slider.value <= slider.max and abs(slider.value - t) <= 0.51 * slider.step


def test_the_slider_of_a_path_is_none_of_time(opened):
    arm, path = lw.mechanisms.planar_arm(2), np.linspace([0.0, 0.0], [1.0, 0.5], 5)
    assert opened(arm, path).panel._player["scrub"].label == "along the path"
    assert opened(arm, path, np.arange(5.0)).panel._player["scrub"].label == "t (s)"


class Browser:
    """A browser that takes ``seconds`` for a picture, by a clock of its own."""

    def __init__(self, seconds, monkeypatch):
        self.seconds, self.now = seconds, 0.0
        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr("linkwise.viewer.browser.recording.time", clock)

    def get_clients(self):
        return {0: self}

    def flush(self):
        pass

    def get_render(self, height, width, **_):
        self.now += self.seconds
        return np.zeros((height, width, 3), dtype=np.uint8)


def test_videos_that_take_long_are_announced(tmp_path, monkeypatch, recwarn):
    from linkwise.viewer.browser import recording

    shown, times = [], np.arange(101) / 25.0
    recording.video(Browser(0.1, monkeypatch), tmp_path / "a.gif", times, shown.append, 25, 16, 16)
    assert not recwarn and shown == times.tolist() and (tmp_path / "a.gif").stat().st_size
    advice = r"a.gif takes about 196 s more: .* 98 pictures in 2 s.*motion.animate\('a.gif'\).*motion.html"
    with pytest.warns(UserWarning, match=advice) as caught:
        recording.video(Browser(2.0, monkeypatch), tmp_path / "a.gif", times, shown.append, 25, 16, 16)
    assert len(caught) == 1


def test_a_video_without_its_library_names_the_extra(tmp_path, monkeypatch):
    from linkwise.viewer.browser import recording

    monkeypatch.setattr(recording, "best_format", lambda: ".gif")
    with pytest.raises(ImportError, match=r"imageio-ffmpeg.*pip install 'linkwise\[video\]', or write a .gif"):
        recording.video(Browser(0.1, monkeypatch), tmp_path / "a.mp4", np.arange(2), print, 25, 16, 16)
    assert not (tmp_path / "a.mp4").exists()
