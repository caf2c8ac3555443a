"""Saved pages in a real browser, without a network: they open, move, and are where linkwise says that links are."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import linkwise as lw

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
ARM = lw.mechanisms.planar_arm(2)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as library:
        running = library.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def tab(browser):
    """A tab without a network; what its console says is in ``said`` and must not be there at the end."""
    context = browser.new_context(viewport={"width": 640, "height": 420}, offline=True)
    tab = context.new_page()
    tab.said = []
    tab.on("console", lambda message: tab.said.append(message.text))
    tab.on("pageerror", lambda error: tab.said.append(str(error)))
    yield tab
    context.close()
    assert tab.said == []


def opened(tab, path):
    tab.goto(path.as_uri())
    tab.wait_for_function("window.player && !player.waiting")
    return tab


def settled(tab) -> bytes:
    """The picture of the tab once everything is drawn."""
    tab.wait_for_function("!player.waiting")
    return tab.screenshot()


def poses(tab, mech) -> np.ndarray:
    tab.wait_for_function("!player.waiting")
    return np.array(tab.evaluate("Array.from(player.poses)")).reshape(mech.n_links, 4, 4)


def test_a_motion_plays_from_the_disk_without_a_network(tab, tmp_path):
    motion = lw.simulate(ARM, [0.5, 0.2], [0.0, 3.0], 2.0)
    motion.save(tmp_path / "motion.html")
    opened(tab, tmp_path / "motion.html")
    before = settled(tab)
    np.testing.assert_allclose(poses(tab, ARM), lw.link_poses(ARM, motion.q[0]), atol=1e-6)
    tab.click("button")
    tab.wait_for_function("player.time > 0.1")
    tab.click("button")
    assert settled(tab) != before
    for time in (0.6, 1.234, 2.0):  # at a frame, between two, at the end
        tab.evaluate(f"player.seek({time})")
        exact = time in (0.6, 2.0)
        expected = lw.link_poses(ARM, motion.at(time)[0])
        np.testing.assert_allclose(poses(tab, ARM), expected, atol=1e-6 if exact else 1e-3)
    tab.select_option("select[title='curve of a coordinate']", label="joint2")
    q = motion.at(2.0)[0][1]
    told = tab.wait_for_selector(".curve[aria-label]").get_attribute("aria-label")
    assert told.startswith(f"joint2 = {np.degrees(q):.1f}\N{DEGREE SIGN} ({q:.3f} rad), from ")
    tab.locator(".scrubber").fill("0.6")
    np.testing.assert_allclose(poses(tab, ARM), lw.link_poses(ARM, motion.at(0.6)[0]), atol=1e-3)
    assert tab.locator(".clock").text_content() == "0.60 s"


def every_joint() -> lw.Mechanism:
    """A chain with a joint of each kind, the last of which mimics the first."""
    kinds = [
        lw.Revolute((0.0, 0.6, 0.8)),
        lw.Prismatic((1.0, 0.0, 0.0)),
        lw.Helical((0.0, 0.0, 1.0), 0.3),
        lw.Cylindrical((0.0, 1.0, 0.0)),
        lw.Universal((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        lw.PinInSlot((0.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
        lw.Planar((0.0, 0.0, 1.0)),
        lw.Spherical(),
        lw.Floating(),
        lw.Revolute((1.0, 0.0, 0.0)),
    ]
    build, parent = lw.Builder(), "ground"
    for number, kind in enumerate(kinds):
        rotation = lw.kinematics.so3.exp([0.3 * number, -0.2, 0.5])
        build.link(f"link{number}", 1.0, com=(0.1, 0.2, 0.0), inertia=0.1 * np.eye(3))
        mimic = lw.Mimic("joint0", -0.5, 0.2) if number == len(kinds) - 1 else None
        build.joint(f"joint{number}", kind, parent, f"link{number}", (rotation, (0.3, 0.1, -0.2)), mimic=mimic)
        parent = f"link{number}"
    return build.build("every_joint")


@pytest.mark.slow
def test_sliders_move_joints_of_all_kinds_as_linkwise_does(tab, tmp_path):
    mech = every_joint()
    mech.save(tmp_path / "robot.html")
    opened(tab, tmp_path / "robot.html")
    before = settled(tab)
    rng = np.random.default_rng(5)
    for _ in range(5):
        q, _ = lw.random_state(mech, rng)
        tab.evaluate(f"player.setConfiguration({q.tolist()})")
        np.testing.assert_allclose(poses(tab, mech), lw.link_poses(mech, q), atol=1e-12)
    assert settled(tab) != before
    tab.evaluate(f"player.setConfiguration({lw.neutral(mech).tolist()})")
    sliders = {one.get_attribute("aria-label"): one for one in tab.locator(".sliders input").all()}
    assert len(sliders) == mech.nv
    q, still = lw.neutral(mech), settled(tab)
    for name, value in (("joint0", 0.7), ("joint1", -0.3), ("joint8 x", 0.25)):
        sliders[name].fill(str(value))
    told = [one.text_content() for one in tab.locator(".sliders output").all()]
    assert told[:2] == ["40.1\N{DEGREE SIGN} (0.700 rad)", "-0.300 m"]
    q[mech.q_index("joint0")], q[mech.q_index("joint1")] = 0.7, -0.3
    q[mech.q_index("joint8").start + 4] = 0.25
    for axis, angle in zip("xyz", (0.3, -0.4, 1.2), strict=True):
        sliders[f"joint7 about {axis}"].fill(str(angle))
    turn = np.zeros(mech.nv)
    turn[mech.v_index("joint7")] = (0.3, -0.4, 1.2)
    q = lw.integrate(mech, q, turn, 1.0)
    np.testing.assert_allclose(poses(tab, mech), lw.link_poses(mech, q), atol=1e-9)
    assert settled(tab) != still


@pytest.mark.slow
def test_it_is_turned_zoomed_and_moved_aside(tab, tmp_path):
    lw.mechanisms.stanford_arm().save(tmp_path / "robot.html")
    opened(tab, tmp_path / "robot.html")
    pictures = [settled(tab)]
    tab.mouse.move(200, 300)
    tab.mouse.down()
    tab.mouse.move(260, 330)
    tab.mouse.up()
    pictures.append(settled(tab))
    tab.mouse.wheel(0, -400)
    pictures.append(settled(tab))
    tab.mouse.down(button="right")
    tab.mouse.move(290, 300)
    tab.mouse.up(button="right")
    pictures.append(settled(tab))
    assert len(set(pictures)) == 4


@pytest.mark.slow
def test_fingers_turn_and_zoom(browser, tmp_path):
    ARM.save(tmp_path / "robot.html")
    context = browser.new_context(viewport={"width": 640, "height": 420}, offline=True, has_touch=True)
    tab = opened(context.new_page(), tmp_path / "robot.html")
    fingers = context.new_cdp_session(tab)

    def touch(kind, *points):
        places = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    def camera():
        return np.array(tab.evaluate("[player.camera.azimuth, player.camera.distance, ...player.camera.target]"))

    start = camera()
    touch("touchStart", (200, 200))
    touch("touchMove", (240, 200))
    touch("touchEnd")
    turned = camera()
    assert turned[0] == pytest.approx(start[0] - 0.32) and (turned[1:] == start[1:]).all()
    touch("touchStart", (200, 200), (300, 200))
    touch("touchMove", (150, 230), (350, 230))
    touch("touchEnd")
    moved = camera()
    assert moved[0] == turned[0] and moved[1] == pytest.approx(0.5 * turned[1], rel=0.1)
    assert np.linalg.norm(moved[2:] - turned[2:]) > 0.01
    context.close()


MIDDLES = """player.items.map((item) => {
    const at = Array.from(item.world.slice(12, 15)), view = player.camera.seen;
    const seen = [0, 1, 2, 3].map((row) => at.reduce((sum, x, k) => sum + view[4 * k + row] * x, view[12 + row]));
    return [player.data.links[item.link] ?? "ground", (seen[0] / seen[3] + 1) * 320, (1 - seen[1] / seen[3]) * 210];
})"""


@pytest.mark.slow
def test_links_under_the_pointer_are_named(tab, tmp_path):
    ARM.save(tmp_path / "robot.html")
    opened(tab, tmp_path / "robot.html")
    settled(tab)
    named = set()
    for name, x, y in tab.evaluate(MIDDLES):
        tab.mouse.move(x, y)
        if tab.locator(".tip").text_content() == name:
            named.add(name)
    assert {"link1", "link2"} <= named
    tab.mouse.move(20, 400)
    assert tab.locator(".tip").text_content() == ""


@pytest.mark.slow
def test_batches_loops_and_pages_within_pages(tab, tmp_path):
    batch = lw.simulate(ARM, [[0.3, 0.2], [0.5, 0.1]], np.zeros((2, 2)), 0.5, method="rk4")
    batch.save(tmp_path / "batch.html")
    opened(tab, tmp_path / "batch.html")
    tab.select_option("select[title='curve of a coordinate']", label="joint2")
    assert tab.locator(".curve").is_visible() and tab.evaluate("player.items.length") % 2 == 0
    np.testing.assert_allclose(poses(tab, ARM), lw.link_poses(ARM, batch.q[0, 0]), atol=1e-6)
    four_bar = lw.mechanisms.four_bar()
    (tmp_path / "notebook.html").write_text(f"<p>before</p>{four_bar.show()._repr_html_()}<p>after</p>")
    tab.goto((tmp_path / "notebook.html").as_uri())
    inner = tab.frames[1]
    inner.wait_for_function("window.player && !player.waiting")
    inner.evaluate("player.seek(2.0)")
    inner.wait_for_function("!player.waiting")
    q = np.array(inner.evaluate("Array.from(player.q)"))
    assert np.abs(lw.constraints.position_error(four_bar, q)).max() < 1e-3
    found = np.array(inner.evaluate("Array.from(player.poses)")).reshape(-1, 4, 4)
    np.testing.assert_allclose(found, lw.link_poses(four_bar, q), atol=1e-12)


def test_what_is_between_links_is_stretched_as_they_move(tab, tmp_path):
    z, inertia = lw.Revolute((0, 0, 1)), (1e-3,) * 3
    builder = lw.Builder().link("crank", 1.0, (0.15, 0, 0), inertia).link("rocker", 1.0, (0.35, 0, 0), inertia)
    builder.joint("A", z, "ground", "crank").joint("D", z, "ground", "rocker", (1, 0, 0))
    mech = builder.distance("rod", "crank", (0.3, 0, 0), "rocker", (0.7, 0, 0), 0.9).build("bars")
    lw.viewer.page(lw.linkages.range_of_motion(mech, "A"), trail=("rocker", (0.7, 0, 0))).save(tmp_path / "bars.html")
    opened(tab, tmp_path / "bars.html")
    (strut,) = lw.viewer.scene(mech).struts
    toward = np.array(tab.evaluate("player.data.toward"))
    for time in (0.0, 1.3):
        tab.evaluate(f"player.seek({time})")
        links = poses(tab, mech)
        found = tab.evaluate("Array.from(player.items.find((item) => item.ends).world)")
        np.testing.assert_allclose(np.reshape(found, (4, 4)).T, strut.placed(links, toward), atol=1e-9)
    assert tab.evaluate("player.items.filter((item) => item.name === 'trail').length") == 1


def test_names_stand_beside_joints_and_can_be_hidden(tab, tmp_path):
    lw.viewer.page(ARM).save(tmp_path / "arm.html")
    opened(tab, tmp_path / "arm.html")
    first = tab.locator(".label", has_text="joint2")
    before = first.bounding_box()
    tab.evaluate("player.setConfiguration([1.0, 0.0])")
    settled(tab)
    assert first.bounding_box()["y"] < before["y"] - 20  # upwards, with the arm
    tab.locator(".naming input").click()
    settled(tab)
    assert not first.is_visible()
