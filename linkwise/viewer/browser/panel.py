"""Controls beside the picture: sliders, buttons and boxes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.transform import Rotation

import linkwise as lw

from ..modes import mode_title
from . import recording
from .dragging import Hand
from .player import Player
from .session import Scale
from .stage import wxyz

if TYPE_CHECKING:
    from .viewer import Viewer

MANY = 14  # sliders from which on their folder is closed
OVERLAYS = {
    "trail": "way of the hand",
    "velocities": "velocities",
    "reactions": "reactions of joints",
    "wrenches": "forces from outside",
    "mass centres": "mass centres",
    "inertia": "inertia ellipsoids",
    "manipulability": "manipulability at the hand",
    "frames": "frames of links",
}
KINDS = {"visual": "what is seen", "collision": "what touches", "skeleton": "skeleton", "symbol": "joints"}


class Panel:
    """The controls of a page."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer, self._gui = viewer, viewer.server.gui
        self._sliders: dict[str, Any] = {}
        self._player: dict[str, Any] = {}
        self._gizmo: Any = None
        self._free = True  # whether the gizmo follows the hand: nobody holds it
        self._gui.configure_theme(control_width="medium", show_logo=False)
        self._gui.main_panel.dock_right()
        self._gui.set_panel_label(f"linkwise: {viewer.session.mech.name}")
        self._status = self._gui.add_markdown("")
        self._folder = self._gui.add_folder("Motion", visible=False)
        with self._gui.add_folder("Joints", expand_by_default=len(viewer.session.sliders) <= MANY):
            self._add_postures()
            self._add_sliders()
        self._add_hand()
        self._add_live()
        self._add_show()
        self._add_record()
        if viewer.model is not None:
            self._add_modes()

    # -- joints ---------------------------------------------------------------------------------------

    def _add_postures(self) -> None:
        viewer = self._viewer
        names = list(viewer.session.postures)
        choice = self._gui.add_button_group("Go to", (*names[:8], "random"))

        @choice.on_click
        def _(event: Any) -> None:
            name, seed = event.target.value, np.random.default_rng().integers(1 << 31)
            session = viewer.session
            self._do("go", lambda: session.random(int(seed)) if name == "random" else session.go_to(name))

        motors = [joint for joint in viewer.session.mech.metadata.actuated_joints or () if viewer.session.mech.loops]
        if motors:
            stay = self._gui.add_checkbox("Other motors stand still", False, hint="when a slider of a loop is moved")

            @stay.on_update
            def _(event: Any) -> None:
                fixed = tuple(motors) if event.target.value else ()
                self._do("hold", lambda: setattr(viewer.session, "held", fixed))

    def _do(self, key: Any, action: Callable[[], Any]) -> None:
        """Stop motions, then act."""

        def act() -> None:
            if self._viewer.player is not None:
                self._viewer.player.playing = False
            if self._viewer.live is not None:
                self._viewer.stop_live()
            action()

        self._viewer.ask(key, act)

    def _add_sliders(self) -> None:
        session = self._viewer.session
        for name, slider in session.sliders.items():
            label = f"{name} ({slider.unit})" if slider.unit else name
            handle = self._slider(label, Scale.covering(slider.low, slider.high), slider.value(session.q))
            self._sliders[name] = handle

            @handle.on_update
            async def _(event: Any, name: str = name, handle: Any = handle) -> None:
                if event.client is not None:  # not when the viewer itself moves it
                    value = float(handle.value)
                    self._do(("slider", name), lambda: self._viewer.session.move(name, value))

    def _slider(self, label: str, scale: Scale, value: float) -> Any:
        """A slider of the page; ``_set`` moves it."""
        return self._gui.add_slider(label, scale.low, scale.high, scale.step, scale.nearest(value))

    # -- the hand -------------------------------------------------------------------------------------

    def _add_hand(self) -> None:
        viewer = self._viewer
        if viewer.hand is None:
            return
        mech = viewer.session.mech
        moving = [name for name, frame in mech.frames.items() if frame.body >= 0]
        with self._gui.add_folder("Hand", expand_by_default=True):
            self._gui.add_markdown("Take any part with the mouse and pull, or:")
            link = self._gui.add_dropdown("Frame", tuple(moving), initial_value=viewer.hand.link)
            gizmo = self._gui.add_checkbox("Handles to pull", False)
            rotate = self._gui.add_checkbox("Rotate it too", False)
        self._link = link
        self._gizmo = viewer.server.scene.add_transform_controls(
            "/hand", scale=0.25 * viewer.session.scene.size, visible=False, depth_test=False
        )

        @link.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                viewer.ask("hand", lambda: viewer.take(Hand(link.value, np.zeros(3))))

        @gizmo.on_update
        @rotate.on_update
        def _(event: Any) -> None:
            def show() -> None:
                self._gizmo.visible, self._gizmo.disable_rotations = gizmo.value, not rotate.value

            viewer.ask("gizmo", show)

        @self._gizmo.on_update
        async def _(event: Any) -> None:
            self._free = event.phase == "end"
            position = np.array(self._gizmo.position)
            rotation = Rotation.from_quat(np.roll(self._gizmo.wxyz, -1)).as_matrix() if rotate.value else None
            if event.phase == "end":
                viewer.ask("let go", viewer.let_go)
            else:
                viewer.ask("pull", lambda: viewer.pull(position, rotation))

    def show_hand(self, hand: Hand) -> None:
        """Show the frame of the hand."""
        if self._gizmo is not None and hand.link != self._link.value:
            self._link.value = hand.link

    # -- motions --------------------------------------------------------------------------------------

    def show_player(self, player: Player) -> None:
        """Controls for a motion; they replace those of the last one."""
        for handle in self._player.values():
            handle.remove()
        viewer, clip = self._viewer, player.clip
        self._folder.visible = True
        with self._folder:
            play = self._gui.add_button("Pause" if player.playing else "Play")
            scrub = self._slider(clip.label, Scale.covering(clip.start, clip.end), player.time)
            speed = self._slider("Speed", Scale(0.05, 4.0, 0.01), 1.0)
            again = self._gui.add_checkbox("Again and again", player.repeats)
        self._player = {"play": play, "scrub": scrub, "speed": speed, "again": again}

        @play.on_click
        def _(event: Any) -> None:
            def toggle() -> None:
                if viewer.live is not None:
                    viewer.stop_live()
                if player.playing:
                    player.playing = False
                else:
                    player.play()

            viewer.ask("play", toggle)

        @scrub.on_update
        async def _(event: Any) -> None:
            if event.client is not None:
                t = float(scrub.value)

                def seek() -> None:
                    player.playing = False
                    viewer.seek(t, draw=False)

                viewer.ask("scrub", seek)

        @speed.on_update
        def _(event: Any) -> None:
            player.speed = float(speed.value)

        @again.on_update
        def _(event: Any) -> None:
            player.repeats = bool(again.value)

    def _add_modes(self) -> None:
        viewer = self._viewer
        modes = viewer.model.modes()
        names = tuple(f"{k + 1}: {mode_title(modes, k)}" for k in range(len(modes.eigenvalues)))
        choice = self._gui.add_dropdown("Mode", names, order=0.5)

        @choice.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                viewer.ask("mode", lambda: viewer.show_mode(names.index(choice.value)))

    def _add_live(self) -> None:
        viewer = self._viewer
        if viewer.hand is None:
            return
        with self._gui.add_folder("Live simulation", expand_by_default=False):
            self._live = self._gui.add_button("Let go", hint="gravity and all that acts; pull parts with the mouse")

        @self._live.on_click
        def _(event: Any) -> None:
            viewer.ask("live", viewer.start_live if viewer.live is None else viewer.stop_live)

    # -- overlays and files ---------------------------------------------------------------------------

    def _add_show(self) -> None:
        viewer, boxes = self._viewer, {}
        with self._gui.add_folder("Show", expand_by_default=False):
            for kind in viewer.stage.kinds:
                boxes[kind] = self._gui.add_checkbox(KINDS[kind], viewer.stage.is_shown(kind))
            for overlay, label in OVERLAYS.items():
                box = self._gui.add_checkbox(label, False)

                @box.on_update
                def _(event: Any, overlay: str = overlay, box: Any = box) -> None:
                    viewer.ask(("show", overlay), lambda: viewer.set_shown(overlay, bool(box.value)))

        def show(_: Any) -> None:
            kinds = [kind for kind, box in boxes.items() if box.value]
            viewer.ask("kinds", lambda: viewer.stage.show_kinds(kinds))

        for box in boxes.values():
            box.on_update(show)

    def _add_record(self) -> None:
        viewer = self._viewer
        with self._gui.add_folder("Keep", expand_by_default=False):
            picture = self._gui.add_button("Screenshot")

        @picture.on_click
        def _(event: Any) -> None:
            name = f"{viewer.session.mech.name}.png"
            event.client.send_file_download(name, recording.encode_png(recording.rendered(event.client, 1600, 900)))

        with self._folder:
            video = self._gui.add_button("Video", order=9.0, hint="of the motion, picture by picture; it takes a while")

        @video.on_click
        def _(event: Any) -> None:
            suffix = recording.best_format()
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / f"{viewer.session.mech.name}{suffix}"
                viewer.video(file)
                event.client.send_file_download(file.name, file.read_bytes())

    # -- status ---------------------------------------------------------------------------------------

    def show_status(self, text: str) -> None:
        """One line above all others."""
        if self._status.content != text:
            self._status.content = text

    def refresh(self, asked: set[Any]) -> None:
        """Update sliders and texts from the session, but for sliders in ``asked``, which are being moved."""
        viewer = self._viewer
        self.show_status(viewer.session.status)
        for name, value in viewer.session.values.items():
            handle = self._sliders[name]
            if ("slider", name) not in asked and abs(handle.value - value) > 0.5 * handle.step:
                _set(handle, value)
        if self._gizmo is not None and self._free and viewer.hand is not None:
            mech, q = viewer.session.mech, viewer.session.q
            self._gizmo.position = viewer.hand.position(mech, q)
            self._gizmo.wxyz = wxyz(lw.frame_pose(mech, q, viewer.hand.link)[:3, :3])
        if self._player and viewer.player is not None:
            if "scrub" not in asked:
                _set(self._player["scrub"], viewer.player.time)
            label = "Pause" if viewer.player.playing else "Play"
            if self._player["play"].label != label:
                self._player["play"].label = label
        if hasattr(self, "_live"):
            label = "Let go" if viewer.live is None else "Hold"
            if self._live.label != label:
                self._live.label = label


def _set(handle: Any, value: float) -> None:
    """Move a slider of the page to a value, or as near as its bounds allow."""
    handle.value = Scale(handle.min, handle.max, handle.step).nearest(value)
