"""The two sweeps over a tree, used by all recursions along the links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TypeVar

from ..links.link import Link
from .rolled import LinksOfClasses, NotRolled
from .schedule import BASE_TO_TIP, TIP_TO_BASE
from .sweep_log import current, format_label, within

Value = TypeVar("Value")
Message = TypeVar("Message")


def sweep_over(direction: str, name: str) -> Callable[[str], AbstractContextManager[None]]:
    """Record a sweep over groups of links; the returned function labels computations at a group."""
    log = current()
    if log:
        log.start(direction, name)
    return lambda where: within(format_label(direction, name, where))


def base_to_tip(links: tuple[Link, ...], name: str, step: Callable[[int, Value | None], Value]) -> list[Value]:
    """``step(i, value of the parent)`` for every link, parents first; the parent's value is None at the ground."""
    values: list[Value | None] = [None] * len(links)
    if isinstance(links, LinksOfClasses):
        for i in _labelled(links.start(BASE_TO_TIP, name), links, BASE_TO_TIP, name):
            values[i] = step(i, links.parent_value(i, values))
    else:
        for i in _labelled(range(len(links)), links, BASE_TO_TIP, name):
            values[i] = step(i, values[links[i].parent] if links[i].parent >= 0 else None)
    return values  # type: ignore[return-value]


def tip_to_base(
    links: tuple[Link, ...], name: str, step: Callable[[int, list[Message]], tuple[Value, Message]]
) -> tuple[list[Value], list[Message]]:
    """``step(i, messages of the children)`` for every link, children first; it returns the link's value and the
    message to its parent.  The second result is the messages that reach the ground."""
    values: list[Value | None] = [None] * len(links)
    ground: list[Message] = []
    if isinstance(links, LinksOfClasses):
        for i in _labelled(links.start(TIP_TO_BASE, name), links, TIP_TO_BASE, name):
            values[i], message = step(i, [])
            if message is not None:
                raise NotRolled(f"{name} passes messages of its own from tip to base")
        return values, ground  # type: ignore[return-value]
    inbox: list[list[Message]] = [[] for _ in links]
    for i in _labelled(reversed(range(len(links))), links, TIP_TO_BASE, name):
        values[i], message = step(i, inbox[i])
        (inbox[links[i].parent] if links[i].parent >= 0 else ground).append(message)
    return values, ground  # type: ignore[return-value]


def _labelled(order: Iterable[int], links: tuple[Link, ...], direction: str, name: str) -> Iterator[int]:
    """The links in order; records the sweep and labels computations at each link."""
    log = current()
    if log is None:
        yield from order
        return
    log.start(direction, name)
    for i in order:
        log.say(format_label(direction, name, links[i].name))
        yield i
    log.say("")
