"""Progress bars in terminals and notebooks, and rich representations in notebooks.

Bars are shown on request, and need tqdm: ``pip install 'linkwise[progress]'``.  ``linkwise.notebook`` writes the
representations, and is loaded when a notebook asks for one.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

SLOW = 0.5  # seconds after which compiling is worth a bar
OFTEN, RARELY = 0.1, 5.0  # seconds between two states of a bar on a screen, and in a file
NO_TQDM = "bars of progress are those of tqdm: pip install 'linkwise[progress]'"

_wanted = False


# -- representations --------------------------------------------------------------------------------------


def mimebundle(self: Any, include: Any = None, exclude: Any = None) -> dict[str, Any]:
    """``_repr_mimebundle_`` of whatever has a rich representation: its text, and what ``linkwise.notebook`` makes of
    it."""
    from . import notebook  # when a notebook asks

    bundle = {"text/plain": repr(self), **notebook.bundle(self)}
    kinds = set(include or bundle) - set(exclude or ())
    return {kind: data for kind, data in bundle.items() if kind in kinds}


class Text(str):
    """Text in lines, which notebooks show as such."""

    _repr_mimebundle_ = mimebundle


# -- progress ---------------------------------------------------------------------------------------------


class progress:
    """``lw.codegen.progress()``: bars tell how far compiling and simulating are, from now on, in terminals (on stderr)
    and notebooks; ``lw.codegen.progress(False)``: none, as at first.  As a context it holds for a block::

        with lw.codegen.progress():
            motion = lw.simulate(robot, None, None, 60.0)
    """

    def __init__(self, on: bool = True):
        global _wanted
        if on:
            _tqdm()  # which may be missing
        self._before, _wanted = _wanted, bool(on)

    def __enter__(self) -> progress:
        return self

    def __exit__(self, *_: object) -> None:
        global _wanted
        _wanted = self._before


class Bar:
    """Progress of some work; invisible by default."""

    def stage(self, name: str) -> None:
        """Begin a further stage."""

    def reach(self, amount: float) -> None:
        """Set the amount done."""

    def close(self) -> None:
        """End the bar."""

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


NO_BAR = Bar()


def stages(label: str, count: int) -> Bar:
    """A bar for work in stages, shown after a delay and removed at the end."""
    if not _wanted:
        return NO_BAR
    return _Shown(total=count, desc=label, leave=False, delay=SLOW, bar_format="{desc}|{bar:12}| {elapsed}")


def amount(label: str, total: float, unit: str, wanted: bool | None = None, start: float = 0, digits: int = 3) -> Bar:
    """A bar for so much of something, of which ``start`` is done; ``wanted``: the caller's own choice against that of
    ``lw.codegen.progress``."""
    if not (_wanted if wanted is None else wanted):
        return NO_BAR
    done = f"{{n:.{digits}f}} of {{total:g}} {unit}"
    shape = f"{{desc}} {{percentage:3.0f}}%|{{bar}}| {done} [{{elapsed}}, {{remaining}} left]"
    return _Shown(total=total, initial=start, desc=label, bar_format=shape)


class _Shown(Bar):
    """A bar of tqdm."""

    def __init__(self, **options: Any):
        tqdm = _tqdm()
        on_screen = sys.stderr.isatty() or "ipykernel" in sys.modules
        self._bar = tqdm(mininterval=OFTEN if on_screen else RARELY, **options)
        self._what = options["desc"]
        self._stages, self._began = 0, time.monotonic()

    def stage(self, name: str) -> None:
        self._bar.set_description_str(f"{self._what}: {name} ", refresh=False)
        if time.monotonic() - self._began >= self._bar.delay:
            self._bar.n = self._stages
            self._bar.refresh()
        self._stages += 1

    def reach(self, amount: float) -> None:
        self._bar.update(amount - self._bar.n)

    def close(self) -> None:
        self._bar.close()


def _tqdm() -> Any:
    """The class of bars that suits the terminal or the notebook."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without widgets has bars of letters
            from tqdm.auto import tqdm
    except ImportError:
        raise ImportError(NO_TQDM) from None
    return tqdm
