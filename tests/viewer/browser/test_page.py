"""The page in a real browser without a screen: it loads, sliders and the mouse move the mechanism, motions play."""

import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.browser import view

CHROMIUM = next((path for path in map(Path, ("/usr/bin/chromium", "/usr/bin/chromium-browser")) if path.exists()), None)
SOFTWARE = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
HIDDEN = ".mantine-Notifications-root {display: none}"  # says that there is no graphics card, where the mouse should go
PATIENCE = 180_000  # milliseconds: a browser without a graphics card is slow

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("viser")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=str(CHROMIUM), args=SOFTWARE)
        yield launched
        launched.close()


def _is_error(said):
    """Chromium complains of how viser's page listens to the mouse while something is dragged: nothing is wrong then."""
    return said.type == "error" and "preventDefault inside passive event listener" not in said.text


class Page:
    """A page in the browser, and what its console says."""

    def __init__(self, browser, viewer):
        self.viewer, self.errors = viewer, []
        self.page = browser.new_page(viewport={"width": 800, "height": 420})
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda said: self.errors.append(said.text) if _is_error(said) else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("requestfailed", lambda request: self.errors.append(f"{request.url} failed"))
        self.page.goto(viewer.url)
        self.page.wait_for_selector("canvas")
        self.page.add_style_tag(content=HIDDEN)
        self.until(lambda: viewer.server.get_clients())
        self.client = next(iter(viewer.server.get_clients().values()))
        self.until(lambda: len(set(self.picture()[:, :, 0].ravel().tolist())) > 20)

    def until(self, is_true):
        """Let the browser work until something is true."""
        for _ in range(PATIENCE // 100):
            if is_true():
                return
            self.page.wait_for_timeout(100)
        raise AssertionError("it did not happen")

    def in_background(self, function):
        """What a function gives that waits for the browser, which works meanwhile."""
        found = []
        thread = threading.Thread(target=lambda: found.append(function()))
        thread.start()
        self.until(lambda: not thread.is_alive())
        return found[0]

    def picture(self):
        return self.in_background(lambda: self.viewer.screenshot(width=320, height=240)).astype(int)

    def type(self, label, value):
        """Type a number beside a slider."""
        row = self.page.get_by_text(label, exact=True).locator(
            "xpath=ancestor::*[.//input[@type='text' or not(@type)]][1]"
        )
        box = row.locator("input").last
        box.fill(str(value))
        box.press("Enter")

    def seen_at(self, point):
        """Where a point of the world is on the page."""
        camera = self.client.camera
        w, x, y, z = camera.wxyz
        rotation = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
        seen = rotation.T @ (np.asarray(point) - camera.position)
        canvas = self.page.locator("canvas").first.bounding_box()
        focal = 0.5 * canvas["height"] / np.tan(0.5 * camera.fov)
        middle = np.array([canvas["x"] + 0.5 * canvas["width"], canvas["y"] + 0.5 * canvas["height"]])
        return middle + focal * seen[:2] / seen[2]

    def drag(self, start, end, steps=8):
        """With the mouse, from a point of the world to another."""
        (x, y), (to_x, to_y) = self.seen_at(start), self.seen_at(end)
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        for share in np.linspace(0.0, 1.0, steps):
            self.page.mouse.move(x + share * (to_x - x), y + share * (to_y - y))
            self.page.wait_for_timeout(150)
        return lambda: self.page.mouse.up()


@pytest.fixture
def opened(browser):
    viewers = []

    def open_page(*what, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.MechanismWarning)
            viewers.append(view(*what, port=8900, open_browser=False, **options))
        page = Page(browser, viewers[-1])
        viewers[-1].page = page.page
        return page

    yield open_page
    for viewer in viewers:
        viewer.page.close()
        viewer.stop()


def test_a_slider_moves_the_loader_and_its_loops_stay_closed(opened):
    page = opened(lw.mechanisms.loader())
    viewer, before, q = page.viewer, page.picture(), page.viewer.q
    page.type("boom_joint (°)", 20)
    page.until(lambda: abs(viewer.q[0] - np.radians(20.0)) < 1e-9)
    assert np.abs(viewer.q - q)[1:].max() > 0.05 and viewer.session.gap < 1e-6
    page.until(lambda: (np.abs(page.picture() - before).max(axis=-1) > 60).mean() > 0.005)  # pixels change with poses
    assert not page.errors


def test_a_loop_is_dragged_with_the_mouse_and_stays_closed(opened):
    page = opened(lw.mechanisms.stewart_platform())
    viewer = page.viewer
    q, mech = viewer.q, viewer.session.mech
    (plate,) = [part for part in viewer.session.scene.parts if part.name.endswith("platform/plate")]
    edges = 0.5 * (plate.shape.vertices + np.roll(plate.shape.vertices, 1, axis=0))
    middles = edges @ lw.frame_pose(mech, q, "platform")[:3, :3].T + lw.frame_pose(mech, q, "platform")[:3, 3]
    near = middles[np.argmin(np.linalg.norm(middles - page.client.camera.position, axis=1))]
    gaps, release = [], page.drag(near, near + [0.0, 0.0, -0.15])
    gaps.append(viewer.session.gap)
    page.until(lambda: np.abs(viewer.q - q).max() > 0.02)
    release()
    page.until(lambda: viewer.session.target is None)
    gaps.append(viewer.session.gap)
    assert max(gaps) < 1e-6 and viewer.hand.link == "platform"
    assert not page.errors


def test_a_hanging_arm_is_pulled_with_the_mouse(opened):
    page = opened(lw.mechanisms.planar_arm(2), [-np.pi / 2.0, 0.0])
    viewer = page.viewer
    viewer.ask("live", viewer.start_live)
    page.until(lambda: viewer.live is not None and viewer.live.time > 0.0)
    tip = viewer.hand.position(viewer.session.mech, viewer.q)  # the middle of its last link, which hangs still
    release = page.drag(tip, tip + [0.5, 0.3, 0.0])
    page.until(lambda: viewer.live.pull is not None and np.abs(viewer.q - [-np.pi / 2.0, 0.0]).max() > 0.05)
    release()
    page.until(lambda: viewer.live.pull is None)
    assert viewer.hand.link == "link2" and not viewer.live.failed
    assert not page.errors


def test_a_motion_plays_and_is_kept(opened, tmp_path):
    arm = lw.mechanisms.puma560()
    motion = lw.simulate(arm, lw.neutral(arm), np.zeros(6), 1.0, t_eval=0.02)
    page = opened(motion)
    viewer, before = page.viewer, page.picture()
    page.page.get_by_role("button", name="Play", exact=True).click()
    page.until(lambda: viewer.player.playing)
    seen = set()
    page.until(lambda: seen.add(round(viewer.player.time, 2)) or len(seen) > 5)
    page.page.get_by_role("button", name="Pause", exact=True).click()
    page.until(lambda: not viewer.player.playing)
    np.testing.assert_allclose(viewer.q, motion.at(viewer.player.time)[0], atol=1e-12)
    page.type("t (s)", 0.7)
    page.until(lambda: abs(viewer.player.time - 0.7) < 2e-3)
    np.testing.assert_allclose(viewer.q, motion.at(viewer.player.time)[0], atol=1e-12)
    assert (np.abs(page.picture() - before).max(axis=-1) > 60).mean() > 0.005
    page.in_background(lambda: viewer.video(tmp_path / "fall.gif", duration=0.2, fps=10, width=160, height=120))
    assert (tmp_path / "fall.gif").read_bytes().startswith(b"GIF8")
    assert not page.errors


def test_everything_that_can_be_shown_is(opened):
    loader = lw.mechanisms.loader()
    motion = lw.simulate(loader, lw.constraints.assemble(loader, loader.initial), np.zeros(loader.nv), 0.5, t_eval=0.02)
    page = opened(motion)
    viewer, before = page.viewer, page.picture()
    viewer.ask("seek", lambda: viewer.seek(0.3))
    for what in ("trail", "velocities", "reactions", "mass centres", "inertia", "manipulability", "frames"):
        viewer.ask(("show", what), lambda what=what: viewer.set_shown(what, True))
    page.until(lambda: len(viewer.shows) == 7)
    assert (np.abs(page.picture() - before).max(axis=-1) > 60).mean() > 0.02
    viewer.ask("live", viewer.start_live)
    page.until(lambda: viewer.live is not None and viewer.live.time > 0.3)
    assert viewer.session.gap < 1e-6 and not viewer.live.failed
    assert not page.errors


def test_several_motions_stand_beside_each_other(opened):
    arm = lw.mechanisms.planar_arm(2)
    q, _ = lw.rollout(arm, np.linspace([0.0, 0.0], [1.0, 1.0], 4), np.zeros(2), None, 0.01, 50)
    page = opened(arm, q, 0.01 * np.arange(51))
    assert page.viewer.stage.n_actors == 4
    page.picture()
    assert not page.errors


def test_meshes_of_a_robot_are_seen(opened):
    robots = pytest.importorskip("tests.peers.robots")
    page = opened(robots.load(robots.robot("solo_description/robots/solo12.urdf")))
    assert {part.kind for part in page.viewer.session.scene.shown} == {"visual"}
    assert len(set(map(tuple, page.picture().reshape(-1, 3).tolist()))) > 100
    assert not page.errors
