"""The two sweeps over a tree.  Everything the algorithms do along the links goes through here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from ..links.link import Link

Value = TypeVar("Value")
Message = TypeVar("Message")


@dataclass
class SweepLog:
    """The sweeps made so far, and a listener for "which link is under way" (it labels emitted code)."""

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
    """Say that what is computed inside the ``with`` block belongs to a sweep that has been made; blocks nest."""
    log = _log.get()
    if log is None:
        yield
        return
    before = log.section
    log.say(label)
    yield
    log.say(before)


def sweep_over(direction: str, name: str) -> Callable[[str], AbstractContextManager[None]]:
    """A sweep over groups of links: it is recorded, and what comes back labels what is computed at a group."""
    log = _log.get()
    if log:
        log.start(direction, name)
    return lambda where: within(label_of(direction, name, where))


def label_of(direction: str, name: str, where: str) -> str:
    """What emitted code is labelled with."""
    return f"{name}, {direction.replace('_', ' ')}: {where}"


def base_to_tip(links: tuple[Link, ...], name: str, step: Callable[[int, Value | None], Value]) -> list[Value]:
    """``step(i, value of the parent)`` for every link, parents first; the parent's value is None at the ground."""
    log = _log.get()
    if log:
        log.start("base_to_tip", name)
    values: list[Value] = []
    for i, link in enumerate(links):
        if log:
            log.say(label_of("base_to_tip", name, link.name))
        values.append(step(i, values[link.parent] if link.parent >= 0 else None))
    if log:
        log.say("")
    return values


def tip_to_base(
    links: tuple[Link, ...], name: str, step: Callable[[int, list[Message]], tuple[Value, Message]]
) -> tuple[list[Value], list[Message]]:
    """``step(i, messages of the children)`` for every link, children first; it returns the link's value and the
    message to its parent.  The second result is the messages that reach the ground."""
    log = _log.get()
    if log:
        log.start("tip_to_base", name)
    values: list[Value | None] = [None] * len(links)
    inbox: list[list[Message]] = [[] for _ in links]
    ground: list[Message] = []
    for i in reversed(range(len(links))):
        if log:
            log.say(label_of("tip_to_base", name, links[i].name))
        values[i], message = step(i, inbox[i])
        (inbox[links[i].parent] if links[i].parent >= 0 else ground).append(message)
    if log:
        log.say("")
    return values, ground  # type: ignore[return-value]
