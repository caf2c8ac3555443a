"""Pictures and videos, as a browser that shows the page draws them."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

VIDEOS = (".mp4", ".gif")
PATIENCE = 120.0  # seconds that a browser may take for a picture


def screenshot(server: Any, path: str | Path | None, width: int, height: int) -> np.ndarray:
    """(height, width, 3), written to ``path`` if there is one."""
    picture = rendered(_client(server), width, height)
    if path is not None:
        if Path(path).suffix.lower() != ".png":
            raise ValueError(f"screenshots are written as .png, not as {Path(path).name!r}")
        Path(path).write_bytes(as_png(picture))
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
    """A video of what ``show`` puts on the page at each of the times."""
    import imageio

    file = Path(path)
    if file.suffix.lower() not in VIDEOS:
        raise ValueError(f"videos are written as {' or '.join(VIDEOS)}, not as {file.name!r}")
    client = _client(server)
    options: dict[str, Any] = {"fps": fps} if file.suffix.lower() == ".mp4" else {"duration": 1000.0 / fps, "loop": 0}
    writer: Any
    with imageio.get_writer(file, **options) as writer:
        for t in times:
            show(float(t))
            server.flush()
            writer.append_data(rendered(client, width, height))


def best_format() -> str:
    """ ".mp4" where it can be written, ".gif" otherwise."""
    return ".mp4" if importlib.util.find_spec("imageio_ffmpeg") else ".gif"


def rendered(client: Any, width: int, height: int) -> np.ndarray:
    """(height, width, 3) of uint8: what a browser draws, on white."""
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


def as_png(picture: np.ndarray) -> bytes:
    """The bytes of a .png file."""
    import imageio

    file = io.BytesIO()
    imageio.imwrite(file, picture, format="png")
    return file.getvalue()
