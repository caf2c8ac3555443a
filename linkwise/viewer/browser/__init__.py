"""Mechanisms and motions in the browser; needs viser: pip install 'linkwise[view]'."""

from __future__ import annotations

import contextlib
import io
import os
import webbrowser
from typing import TYPE_CHECKING, Any

import numpy as np

import linkwise as lw

from ..style import MissingLibrary
from .dragging import Hand
from .player import clip_of
from .session import Session

if TYPE_CHECKING:
    from .viewer import Viewer

__all__ = ["Hand", "Session", "view"]

PORT = 8080


def view(
    what: Any,
    q: Any = None,
    t: Any = None,
    *,
    port: int = PORT,
    host: str = "127.0.0.1",
    open_browser: bool | None = None,
) -> Viewer:
    """A page in the browser that shows a mechanism or its motions, to rotate, drag and play.

    what   a mechanism; a trajectory, a batch of them too, or a list of trajectories of one mechanism, played beside
           each other; a range of motion; or a linear model (``lw.linearize``), whose modes are played
    q      of a mechanism: a configuration (nq,) or {joint: ...}; a motion (m, nq); or several (..., m, nq), as
           ``lw.rollout`` gives them
    t      (m,): times of the rows of a motion; one second apart without them
    port   of the page, or the next that is free; ``host`` "0.0.0.0" lets other computers in
    open_browser   whether to open it; by default where there is a screen, and not in a notebook

    It returns at once, and the page lives as long as the result does: ``viewer.wait()`` keeps a script alive until
    Ctrl-C, ``viewer.stop()`` ends it.  Files of meshes are read now; those that are missing are named in one warning.
    """
    try:
        import viser
    except ImportError:
        raise MissingLibrary("the viewer in the browser needs viser: pip install 'linkwise[view]'") from None
    if isinstance(what, (str, os.PathLike)):
        raise TypeError(f"a mechanism is shown, not the name of its file: lw.view(lw.load({str(what)!r}))")
    model, clip = None, None
    if isinstance(what, lw.Mechanism):
        mech = what
        if q is not None and not isinstance(q, dict) and np.ndim(q) > 1:
            clip = clip_of(what, q, t)
    elif hasattr(what, "modes") and isinstance(getattr(what, "mechanism", None), lw.Mechanism):
        mech, model, q = what.mechanism, what, what.q
    else:
        clip = clip_of(what)
        mech = clip.motions[0].mech
    from .viewer import Viewer

    with contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host=host, port=port, label=f"linkwise: {mech.name}", verbose=False)
    try:
        viewer = Viewer(server, mech, q, clip, model)
    except BaseException:
        server.stop()
        raise
    if open_browser is None:  # where a window can be opened, and no notebook shows the page itself
        in_notebook = "JPY_PARENT_PID" in os.environ or "IPYKERNEL_CELL_NAME" in os.environ
        open_browser = not in_notebook and (
            os.name == "nt" or not {"DISPLAY", "WAYLAND_DISPLAY"}.isdisjoint(os.environ)
        )
    if open_browser:
        webbrowser.open(viewer.url)
    return viewer
