"""A figure of matplotlib that notebooks show by themselves."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """A ``matplotlib.figure.Figure`` that notebooks show.

    Figures of matplotlib have a representation only after pyplot has chosen a backend, which ``linkwise`` leaves to the
    user.
    """

    def _repr_png_(self) -> bytes:
        """The figure as IPython shows it by default."""
        stream = io.BytesIO()
        self.savefig(stream, format="png")
        return stream.getvalue()
