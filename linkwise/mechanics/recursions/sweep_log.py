"""Record of the sweeps and of the current position in them, for labels in emitted code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class SweepLog:
    """The sweeps made so far, and a listener for the current link (it labels emitted code)."""

    on_section: Callable[[str], None] = lambda label: None
    sweeps: list[tuple[str, str]] = field(default_factory=list)
    section: str = ""

    def start(self, direction: str, name: str) -> None:
        self.sweeps.append((direction, name))

    def say(self, label: str) -> None:
        self.section = label
        self.on_section(label)


_log: ContextVar[SweepLog | None] = ContextVar("sweep_log", default=None)


@contextmanager
def logged(log: SweepLog) -> Iterator[SweepLog]:
    """Record the sweeps made inside the ``with`` block."""
    token = _log.set(log)
    try:
        yield log
    finally:
        _log.reset(token)


@contextmanager
def within(label: str) -> Iterator[None]:
    """Attribute computations inside the ``with`` block to a recorded sweep; blocks nest."""
    log = _log.get()
    if log is None:
        yield
        return
    before = log.section
    log.say(label)
    yield
    log.say(before)


def current() -> SweepLog | None:
    """The log of the current ``with`` block."""
    return _log.get()


def format_label(direction: str, name: str, where: str) -> str:
    """The label of emitted code."""
    return f"{name}, {direction.replace('_', ' ')}: {where}"
