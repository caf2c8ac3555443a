"""Motions as moving pictures: GIF with Pillow, which comes with matplotlib, or MP4 with the program ffmpeg."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw

from . import style
from .canvas import SpaceCanvas
from .configurations import Motion, several_configurations
from .drawing import Drawing, Look, Trail, trail_points
from .skeleton import Skeleton

TICK = 0.01  # seconds: GIF files count time in hundredths
MOST_FRAMES = 3000
FINER = 4  # points of a trail per frame
MOST_PER_SECOND = 50.0
MOST_ATTEMPTS = 8  # at arranging a picture


@style.styled
def animate(
    mech: lw.Mechanism | lw.Trajectory,
    q: Any = None,
    t: Any = None,
    path: str | Path = "motion.gif",
    fps: float = 30.0,
    speed: float = 1.0,
    view: str = "auto",
    trail: Trail = None,
    axes: bool = False,
    masses: bool = True,
    ticks: bool = True,
    symbols: float = 1.0,
    clock: bool = True,
    dpi: float = 90.0,
    elevation: float = 20.0,
    azimuth: float = -60.0,
    passive: lw.forces.Passive | None = None,
    shapes: bool = True,
) -> Path:
    """A moving picture of configurations ``q`` (m, nq) at times ``t`` (m,), written to a .gif or .mp4; its path.

    mech     the mechanism; or a trajectory with ``t``, ``q`` and its mechanism, then without ``q`` and ``t``
    t        seconds; without them every configuration is one frame
    fps      frames per second; between the given times joints move at constant velocity
    speed    of the picture against the motion: 0.5 for slow motion
    trail    a link or frame, or (link, (x, y, z)), a point in its coordinates, whose path is drawn as it goes
    clock    show the time of the motion; configurations without ``t``, paths and ranges have none
    passive  force elements to draw, as of ``draw``; those of a trajectory by default
    shapes   the floor and shapes that touch, as of ``draw``

    Limits are those of the whole motion.  MP4 needs the program ffmpeg: that of the system, or the one that comes with
    the package imageio-ffmpeg (``pip install 'linkwise[video]'``).
    """
    file = Path(path)
    require(file)
    if file.suffix.lower() not in (".gif", ".mp4"):
        raise ValueError(f"moving pictures are .gif or .mp4 files, not {file.name!r}")
    for name, value in (("fps", fps), ("speed", speed)):
        if not (np.isfinite(value) and value > 0.0):
            raise ValueError(f"{name} must be positive, got {value!r}")
    if file.suffix.lower() == ".gif" and fps > MOST_PER_SECOND:
        raise ValueError(f"programs show GIFs at no more than {MOST_PER_SECOND:g} frames per second, got fps = {fps:g}")
    motion = several_configurations(mech, q, t)
    if t is None and isinstance(mech, lw.Mechanism) and not hasattr(q, "t") and not hasattr(q, "path"):
        motion = Motion(motion.mech, speed / fps * np.arange(len(motion.q)), motion.q, timed=False)
    clock = clock and motion.timed
    times = _frame_times(motion.t, speed / fps)
    chosen = motion.at(times)
    skeleton = Skeleton(motion.mech, passive or getattr(mech, "passive", None))
    sketches = [skeleton.at(configuration) for configuration in chosen]
    finer = times[0] + speed / fps / FINER * np.arange(FINER * (len(times) - 1) + 1)
    trace = trail_points(motion.mech, motion.at(finer), trail)
    look = Look(view, elevation, azimuth, symbols, shapes)
    drawing = Drawing.fit(motion.mech, chosen[0], sketches, None, trace, look)
    painted = drawing.canvas
    if isinstance(painted, SpaceCanvas):  # its figure is given the shape of all that will be painted
        painted.reserve(np.concatenate([drawing.points, trace]), 3.0 * drawing.size)
    # The title keeps its place from frame to frame, since the picture is arranged once.
    drawing.finish(ticks, _clock(times[-1], times) if clock else None)
    drawing.paint(sketches[0], axes, masses=masses)
    drawing.explain_masses()
    painted.clear()
    _freeze_axes(painted.ax, dpi)
    writer = _writer(file, fps)
    with writer.saving(painted.ax.figure, str(file), dpi):
        for moment, sketch in enumerate(sketches):
            painted.clear()
            drawing.paint(sketch, axes, masses=masses)
            drawing.paint_trail(trace[: FINER * moment + 1])
            if clock:
                painted.ax.set_title(_clock(times[moment], times))
            writer.grab_frame()
    return file


def require(path: str | Path) -> None:
    """Raise if a library for pictures of this kind is missing, before a long motion is computed."""
    style.matplotlib()
    if Path(path).suffix.lower() == ".mp4" and _ffmpeg() is None:
        raise style.MissingLibrary(
            "an .mp4 needs the program ffmpeg, which is not installed: pip install 'linkwise[video]', or write a .gif"
        )


def _frame_times(t: np.ndarray, step: float) -> np.ndarray:
    """Times of the frames: even, from the first time to the last or just before it."""
    count = int(np.floor((t[-1] - t[0]) / step * (1.0 + 1e-9))) + 1
    if count > MOST_FRAMES:
        raise ValueError(
            f"{t[-1] - t[0]:g} s of motion would be {count} frames, more than {MOST_FRAMES}: choose a smaller fps or a "
            "larger speed"
        )
    return t[0] + step * np.arange(count)


def _freeze_axes(ax: Any, dpi: float) -> None:
    """Arrange the picture for good and replace axes, ticks and grid by an image of them.

    They do not change, and drawing them takes longer than all the rest of a frame.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = ax.figure
    title = ax.get_title()
    figure.set_dpi(dpi)
    before = None
    # The layout sizes the title before equal scales change the height of the axes: repeat until nothing moves.
    for _ in range(MOST_ATTEMPTS):
        figure.draw_without_rendering()
        bounds = ax.get_position(original=True).bounds
        if before is not None and np.allclose(bounds, before, rtol=0.0, atol=1e-6):
            break
        before = bounds
    figure.set_layout_engine("none")
    ax.set_title("")
    screen = FigureCanvasAgg(figure)
    screen.draw()
    figure.figimage(np.array(screen.buffer_rgba()), zorder=-1.0)
    ax.set_title(title)
    ax.set_axis_off()
    ax.patch.set_visible(False)


def _clock(time: float, times: np.ndarray) -> str:
    return f"t = {time:.2f} s" if times[-1] < 1000.0 else f"t = {time:.0f} s"


def _writer(file: Path, fps: float) -> Any:
    if file.suffix.lower() == ".gif":
        return GifWriter(fps)
    import matplotlib
    from matplotlib.animation import FFMpegWriter

    matplotlib.rcParams["animation.ffmpeg_path"] = _ffmpeg()  # until the style is given back
    return FFMpegWriter(fps=fps, codec="h264")  # type: ignore[arg-type]


def _ffmpeg() -> str | None:
    """The program: the one matplotlib is set to, by default any on the path, or else that of imageio-ffmpeg."""
    import matplotlib

    path = shutil.which(matplotlib.rcParams["animation.ffmpeg_path"])
    if path is not None:
        return path
    try:
        import imageio_ffmpeg

        return imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError):  # not installed, or without a program for this machine
        return None


class GifWriter:
    """Frames of a figure as a GIF, with the calls of matplotlib's writers.

    Unlike its PillowWriter it draws each frame once, not twice, and rounds the ends of frames to hundredths of a
    second, not their lengths: the whole lasts as long as it should.
    """

    def __init__(self, fps: float):
        self.fps = fps
        self.frames: list[Any] = []

    @contextlib.contextmanager
    def saving(self, figure: Any, path: str, dpi: float) -> Iterator[None]:
        """Grab frames of ``figure`` inside; the file is written at the end."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure.set_dpi(dpi)
        self.screen = FigureCanvasAgg(figure)
        yield
        ends = np.round(np.arange(1, len(self.frames) + 1) / (self.fps * TICK))
        lengths = (1000.0 * TICK * np.diff(ends, prepend=0.0)).round().astype(int).tolist()
        first, *rest = self.frames
        first.save(path, save_all=True, append_images=rest, duration=lengths, loop=0)

    def grab_frame(self) -> None:
        """Append the figure as a frame."""
        from PIL import Image

        self.screen.draw()
        self.frames.append(Image.fromarray(np.array(self.screen.buffer_rgba())[..., :3]))
