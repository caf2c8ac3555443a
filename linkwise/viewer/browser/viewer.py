"""A mechanism on its own page.  One thread does what the page asks for, and draws."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw

from ..elements import Fixture, Strut, elements_between, placed_together
from ..framing import FIELD, MOMENTS, floor_height, frame, points_of, viewpoint
from ..modes import mode_title
from ..scene import VISUAL, scene
from ..shapes import Mesh, join
from ..skeleton import Skeleton
from . import overlays, recording
from .dragging import Hand, Live
from .panel import Panel
from .player import Clip, Player, clip_of_mode
from .session import Session
from .stage import Stage

PICTURES = 40.0  # per second at most
IDLE = 0.25  # seconds between looks at what is asked
TRAIL = 600  # points of the way of a hand
BLUE, VERMILLION, GREEN, PURPLE = (0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167)
BLACK = (30, 30, 30)


class Viewer:
    """A page that shows a mechanism, at ``url``.

    session   the configuration and its changes
    player    clock of the shown motions, or None
    live      the running simulation, or None
    """

    def __init__(self, server: Any, mech: lw.Mechanism, q: Any = None, clip: Clip | None = None, model: Any = None):
        self._server = server
        seen = None if clip is None else scene(mech, moments=clip.moments(MOMENTS))
        self.session = Session(mech, q if clip is None else clip.at(clip.start)[0], seen)
        mech = self.session.mech
        self.player: Player | None = None
        self.live: Live | None = None
        self.hand = Hand(mech.link_names[-1], np.array(mech.parameters.coms[-1])) if mech.n_links else None
        self.model = model
        self._asked: dict[Any, Callable[[], None]] = {}
        self._lock, self._wake, self._ended = threading.RLock(), threading.Event(), threading.Event()
        self._asking = threading.Lock()
        self._pulled: tuple[Hand, np.ndarray] | None = None
        self._elements: tuple[Fixture | Strut, ...] = ()
        self._toward = np.zeros(3)
        self._trail: list[np.ndarray] = []
        self._longest: dict[str, float] = {}
        self.shows: set[str] = set()
        up = -mech.gravity / np.linalg.norm(mech.gravity) if mech.gravity.any() else np.array([0.0, 0.0, 1.0])
        self.stage = Stage(server, self.session.scene, up)
        self.stage.on_drag = self._dragged
        self.panel = Panel(self)
        if clip is not None:
            self.play(clip, start=False)
        elif model is not None:
            self.show_mode(0)
        else:
            self._arrange()
        self._draw()
        self._thread = threading.Thread(target=self._run, name="linkwise viewer", daemon=True)
        self._thread.start()

    # -- public ---------------------------------------------------------------------------------------

    @property
    def server(self) -> Any:
        """The server of viser, to put other things on the page."""
        return self._server

    @property
    def url(self) -> str:
        """Where the page is."""
        host = self._server.get_host()
        return f"http://{'localhost' if host in ('0.0.0.0', '127.0.0.1') else host}:{self._server.get_port()}"

    @property
    def q(self) -> np.ndarray:
        """(nq,): the configuration that is shown; set it to show another."""
        return self.session.q.copy()

    @q.setter
    def q(self, q: Any) -> None:
        with self._lock:
            self.session.show(q)
            self._draw()

    def play(self, clip: Clip, start: bool = True) -> None:
        """Show motions in place of the configuration."""
        with self._lock:
            self.live = None
            self.player = Player(clip)
            self.player.playing = start
            self._arrange(clip)
            self._longest = {}
            self.panel.show_player(self.player)
            self.mark_motion()
            self.seek(self.player.time)
        self._wake.set()

    def show_mode(self, number: int) -> None:
        """Show a mode of the linear model as a motion."""
        modes = self.model.modes()
        self.play(clip_of_mode(self.model, number))
        self.session.status = f"mode {number + 1}: {mode_title(modes, number)}"

    def start_live(self) -> None:
        """Start a simulation, in which a spring pulls the dragged part."""
        with self._lock:
            if self.player is not None:
                self.player.playing = False
            self.live = Live(self.session.mech, self.session.q, self.session.v)
            self.panel.show_status("the simulation is compiled, one moment")
        self._wake.set()

    def stop_live(self) -> None:
        """Stop the simulation in its present configuration."""
        with self._lock:
            self.live, self._pulled = None, None
            self.session.show(self.session.q)

    def screenshot(self, path: str | Path | None = None, width: int = 1280, height: int = 720) -> np.ndarray:
        """(height, width, 3): the picture of a browser that shows the page; written to ``path`` if there is one."""
        return recording.screenshot(self._server, path, width, height)

    def video(
        self, path: str | Path, duration: float | None = None, fps: int = 25, width: int = 960, height: int = 540
    ) -> None:
        """Write the motion that is shown to an .mp4 or .gif file, picture by picture as a browser draws them."""
        player = self.player
        if player is None:
            raise ValueError("there is no motion to record: view one, or start with motion.view()")
        length = player.clip.duration if duration is None else duration
        times = player.clip.start + np.arange(max(int(round(length * fps)), 1)) / fps

        def show(t: float) -> None:
            with self._lock:
                player.playing = False
                self.seek(player.clip.start + (t - player.clip.start) % max(player.clip.duration, 1e-9))

        recording.video(self._server, path, times, show, fps, width, height)

    def wait(self) -> None:
        """Block until Ctrl-C or ``stop``."""
        with contextlib.suppress(KeyboardInterrupt):
            while not self._ended.wait(0.2):
                pass
        self.stop()

    def stop(self) -> None:
        """Close the page."""
        if not self._ended.is_set():
            self._ended.set()
            self._wake.set()
            if threading.current_thread() is not self._thread:
                self._thread.join(timeout=2.0)
            with contextlib.redirect_stdout(io.StringIO()):  # it says so
                self._server.stop()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Viewer of {self.session.mech.name!r} at {self.url}>"

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.url}" style="width: 100%; height: 560px; border: 0"></iframe>'

    # -- actions of the page --------------------------------------------------------------------------

    def ask(self, key: Any, action: Callable[[], None]) -> None:
        """Queue an action for the drawing thread; a later action of the same key replaces it."""
        with self._asking:
            self._asked[key] = action
        self._wake.set()

    def _dragged(self, number: int, link: str, event: Any) -> None:
        """Drag a part with the mouse."""
        start, end = np.array(event.start_position), np.array(event.end_position)
        offset = self.stage.offset(number)

        def grasp() -> None:
            pose = lw.frame_pose(self.session.mech, self.session.q, link)
            self.hand = Hand(link, pose[:3, :3].T @ (start - offset - pose[:3, 3]))
            self._trail = []
            self.panel.show_hand(self.hand)

        if event.phase == "start":
            self.ask("take", grasp)
        elif event.phase == "update":
            self.ask("pull", lambda: self.pull(end - offset))
        else:
            self.ask("let go", self.let_go)

    def take(self, hand: Hand) -> None:
        """Hold the mechanism by another hand."""
        self.hand = hand
        self.mark_motion()

    def pull(self, position: np.ndarray, rotation: np.ndarray | None = None) -> None:
        """Pull the hand to a position."""
        if self.hand is None:
            return
        if self.live is not None:
            self._pulled = (self.hand, position)
            return
        if self.player is not None:
            self.player.playing = False
        self.session.drag(self.hand, position, rotation)

    def let_go(self) -> None:
        """End the pull of the hand."""
        self._pulled, self.session.target = None, None

    # -- drawing --------------------------------------------------------------------------------------

    def _arrange(self, clip: Clip | None = None) -> None:
        """Place one mechanism for each motion, a floor, and a camera that sees them all."""
        mech, up, q = self.session.mech, self.stage.up, self.session.q
        points = points_of(self.session.scene, mech, q if clip is None else clip.moments(MOMENTS))
        aside, lift = viewpoint(mech, q, points, up)
        framing = frame(1 if clip is None else len(clip.motions), points, aside, up, lift)
        self.stage.set_actors(framing.offsets)
        # Visuals of the file hide springs, dampers, gears and rods, except those of a motion.
        passive = getattr(getattr(clip, "source", None), "passive", None)
        self._elements = ()
        if mech.n_links and (passive is not None or not self.session.scene.of_kind(VISUAL)):
            sketch = Skeleton(mech, passive).at(q)
            fixtures, struts = elements_between(sketch.elements, sketch.poses, self.session.scene.pin)
            self._elements = (*fixtures, *struts)
        self._toward = framing.position - framing.look_at
        start = self._server.initial_camera
        start.position, start.look_at, start.up, start.fov = framing.position, framing.look_at, up, FIELD
        self.stage.ground(floor_height(points, up), framing.reach)

    def _run(self) -> None:
        last = time.monotonic()
        while not self._ended.is_set():
            moving = self.live is not None or (self.player is not None and self.player.playing)
            self._wake.wait(1.0 / PICTURES if moving else IDLE)
            self._wake.clear()
            now = time.monotonic()
            passed, last = now - last, now
            try:
                with self._lock:
                    self._round(passed, moving)
            except Exception as error:  # the page lives on, and says what went wrong
                traceback.print_exc(file=sys.stderr)
                self.panel.show_status(f"{type(error).__name__}: {error}")
            time.sleep(max(0.0, 1.0 / PICTURES - (time.monotonic() - now)))

    def _round(self, passed: float, moving: bool) -> None:
        """Do queued actions, advance time, and draw if anything changed."""
        with self._asking:
            asked, self._asked = self._asked, {}
        for action in asked.values():
            action()
        new = bool(asked)
        if self.live is not None and moving:
            self.live.pull = self._pulled
            self.live.advance(passed)
            self.session.show(self.live.q, self.live.v)
            self.session.status = self.live.failed
            new = True
        elif self.player is not None and moving and self.player.advance(passed):
            self.seek(self.player.time, draw=False)
            new = True
        if new:
            self._draw(set(asked))

    def seek(self, t: float, draw: bool = True) -> None:
        """Show the motion at a time."""
        assert self.player is not None
        self.player.seek(t)
        t, clip, status = self.player.time, self.player.clip, self.session.status
        self.session.show(clip.at(t)[0], clip.velocities(t)[0])
        self.session.status = status if self.model is not None else ""
        if draw:
            self._draw()

    def _draw(self, asked: set[Any] = frozenset()) -> None:  # type: ignore[assignment]
        """Draw the present state; sliders in ``asked`` are left alone."""
        session = self.session
        with self._server.atomic():
            many = self.player is not None and self.stage.n_actors > 1
            configurations = self.player.clip.at(self.player.time) if many else session.q[None]  # type: ignore[union-attr]
            if many:
                configurations[0] = session.q
            for number, q in enumerate(configurations):
                self.stage.place(number, lw.link_poses(session.mech, q))
            meshes = []
            for number, q in enumerate(configurations if self._elements else ()):
                mesh = placed_together(self._elements, lw.link_poses(session.mech, q), self._toward)
                meshes.append(Mesh(mesh.vertices + self.stage.offset(number), mesh.faces))
            self.stage.surface("elements", join(meshes), BLACK)
            self._draw_overlays()
        self.panel.refresh(asked)

    def _draw_overlays(self) -> None:
        session, stage, mech = self.session, self.stage, self.session.mech
        if self.hand is not None:
            self._draw_hand()
        shown = "velocities" in self.shows and session.v.any()
        arrows = overlays.velocity_arrows(mech, session.q, session.v) if shown else None
        stage.arrows("velocities", self._scale_arrows("velocities", arrows), GREEN)
        for kind, colour in (("reactions", PURPLE), ("wrenches", VERMILLION)):
            stage.arrows(kind, self._forces(kind), colour)
        if self.hand is not None and "manipulability" in self.shows:
            size = session.scene.size
            shape = overlays.manipulability_ellipsoid(mech, session.q, self.hand.link, self.hand.point, size)
            stage.ellipsoid("manipulability", shape, BLUE, 0.35)
        else:
            stage.remove("manipulability")

    def _draw_hand(self) -> None:
        assert self.hand is not None
        session, stage = self.session, self.stage
        here = self.hand.position(session.mech, session.q)
        goal = session.target if self._pulled is None else self._pulled[1]
        stage.lines("missing", None if goal is None else np.array([[here, goal]]), VERMILLION, 0.006)
        apart = 1e-3 * session.scene.size
        if "trail" in self.shows and (not self._trail or np.linalg.norm(self._trail[-1] - here) > apart):
            self._trail = [*self._trail[-TRAIL:], here]
        moved = np.array(self._trail)
        drawn = "trail" in self.shows and len(moved) > 1 and self.player is None
        stage.lines("trail", np.stack([moved[:-1], moved[1:]], axis=1) if drawn else None, BLUE)

    def _forces(self, kind: str) -> np.ndarray | None:
        if kind not in self.shows:
            return None
        mech, q = self.session.mech, self.session.q
        if self.player is None:  # the pull in a live simulation
            if kind != "wrenches" or self.live is None or self.live.pull is None:
                return None
            return self._scale_arrows("hand", overlays.force_arrows(mech, q, self.live.wrenches()))
        known = self.player.clip.forces.get(kind)
        if known is None:
            return None
        self._longest.setdefault(kind, float(np.linalg.norm(known[..., 3:], axis=-1).max(initial=0.0)))
        now = known[self.player.clip.sample(self.player.time)]
        return self._scale_arrows(kind, overlays.force_arrows(mech, q, now))

    def _scale_arrows(self, kind: str, arrows: np.ndarray | None) -> np.ndarray | None:
        """Arrows scaled so that the longest of all pictures is a share of the mechanism's size."""
        if arrows is None:
            return None
        longest = float(np.linalg.norm(arrows[:, 1] - arrows[:, 0], axis=-1).max(initial=0.0))
        self._longest[kind] = max(self._longest.get(kind, 0.0), longest)
        return overlays.scaled(arrows, self._longest[kind], self.session.scene.size)

    def set_shown(self, overlay: str, shown: bool) -> None:
        """Switch an overlay."""
        self.shows = (self.shows | {overlay}) if shown else (self.shows - {overlay})
        mech, size = self.session.mech, self.session.scene.size
        if overlay == "mass centres":
            for link, (centre, radius) in zip(mech.link_names, overlays.mass_centres(mech, size), strict=True):
                ball = overlays.Ellipsoid(np.asarray(centre), np.eye(3), np.full(3, radius))
                self.stage.ellipsoid(f"com/{link}", ball if shown and radius else None, (60, 60, 60), 1.0, link)
        elif overlay == "inertia":
            for link, shape in zip(mech.link_names, overlays.inertia_ellipsoids(mech), strict=True):
                self.stage.ellipsoid(f"inertia/{link}", shape if shown else None, (230, 159, 0), 0.35, link)
        elif overlay == "frames":
            self.stage.show_axes(shown)
        elif overlay == "trail":
            self._trail = []
            self.mark_motion()

    def mark_motion(self) -> None:
        """Draw the path of the hand in a motion, and the singular positions on it."""
        self.stage.remove_all("singular")
        self.stage.remove_all("path")
        if self.player is None or self.hand is None:
            return
        clip, size = self.player.clip, self.session.scene.size
        for number, motion in enumerate(clip.motions if "trail" in self.shows else ()):
            offset = self.stage.offset(number)
            way = clip.path(self.hand.link, self.hand.point, number) + offset
            self.stage.lines(f"path{number}", np.stack([way[:-1], way[1:]], axis=1), BLUE)
            for k in overlays.singular_moments(motion.mech, motion.q):
                at = self.hand.position(motion.mech, motion.q[k]) + offset
                mark = overlays.Ellipsoid(at, np.eye(3), np.full(3, 0.02 * size))
                self.stage.ellipsoid(f"singular{number}/{k}", mark, VERMILLION, 1.0)
