"""Pictures and videos, as a browser that shows the page draws them."""

from __future__ import annotations

import importlib.util
import io
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...display import amount
from ..style import MissingLibrary

VIDEOS = (".mp4", ".gif")
PATIENCE = 120.0  # seconds that a browser may take for a picture
TIMED = 3  # pictures from which the time of the others is estimated; the first, which loads the page, is left out
LONG = 30.0  # seconds of a video's drawing that are announced


def screenshot(server: Any, path: str | Path | None, width: int, height: int) -> np.ndarray:
    """(height, width, 3), written to ``path`` if there is one."""
    picture = rendered(_client(server), width, height)
    if path is not None:
        if Path(path).suffix.lower() != ".png":
            raise ValueError(f"screenshots are written as .png, not as {Path(path).name!r}")
        Path(path).write_bytes(encode_png(picture))
    return picture


def video(
    server: Any,
    path: str | Path,
    times: np.ndarray,
    show: Callable[[float], None],
    fps: int,
    width: int,
    height: int,
) -> None:
    """A video of the page after ``show(t)`` for each of the times; warns if drawing takes long."""
    import imageio

    file = Path(path)
    if file.suffix.lower() not in VIDEOS:
        raise ValueError(f"videos are written as {' or '.join(VIDEOS)}, not as {file.name!r}")
    if file.suffix.lower() == ".mp4" and best_format() != ".mp4":
        raise MissingLibrary(
            "an .mp4 needs the package imageio-ffmpeg, which is not installed: pip install 'linkwise[video]', or write "
            "a .gif"
        )
    client = _client(server)
    options: dict[str, Any] = {"fps": fps} if file.suffix.lower() == ".mp4" else {"duration": 1000.0 / fps, "loop": 0}
    writer: Any
    with imageio.get_writer(file, **options) as writer, amount("video", len(times), "pictures", digits=0) as bar:
        for k, t in enumerate(times, 1):
            show(float(t))
            server.flush()
            writer.append_data(rendered(client, width, height))
            if k == 1:
                began = time.monotonic()
            elif k == TIMED:
                left, seconds = len(times) - k, (time.monotonic() - began) / (k - 1)
                if left * seconds > LONG:
                    warnings.warn(
                        f"{file.name} takes about {left * seconds:.0f} s more: the browser draws each of {left} "
                        f"pictures in {seconds:.2g} s, as one without a graphics card does. "
                        f"motion.animate({file.name!r}) draws without a browser, motion.save('motion.html') writes a "
                        "page that plays by itself; fewer fps, width and height take less",
                        stacklevel=3,
                    )
            bar.reach(k)


def best_format() -> str:
    """The suffix ".mp4" if its library is installed, otherwise ".gif"."""
    return ".mp4" if importlib.util.find_spec("imageio_ffmpeg") else ".gif"


def rendered(client: Any, width: int, height: int) -> np.ndarray:
    """(height, width, 3) of uint8: the picture of a browser, on white."""
    drawn = np.asarray(client.get_render(height=height, width=width, transport_format="png", timeout=PATIENCE))
    if drawn.shape[-1] == 3:
        return drawn
    opacity = drawn[..., 3:] / 255.0
    return np.rint(opacity * drawn[..., :3] + 255.0 * (1.0 - opacity)).astype(np.uint8)


def _client(server: Any) -> Any:
    clients = list(server.get_clients().values())
    if not clients:
        raise ValueError("pictures are drawn by a browser, and none shows the page: open the viewer's url first")
    return clients[-1]


def encode_png(picture: np.ndarray) -> bytes:
    """The bytes of a .png file."""
    import imageio

    file = io.BytesIO()
    imageio.imwrite(file, picture, format="png")
    return file.getvalue()
