"""A figure of matplotlib that notebooks show by themselves."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """A ``matplotlib.figure.Figure`` in every respect.

    Notebooks ask the last value of a cell for a picture of itself.  Figures of matplotlib have one only after pyplot
    has chosen a backend, which ``linkwise`` leaves to the user; this one has it from the start.
    """

    def _repr_png_(self) -> bytes:
        """What IPython shows where matplotlib has told it nothing better."""
        stream = io.BytesIO()
        self.savefig(stream, format="png")
        return stream.getvalue()
