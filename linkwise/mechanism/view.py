"""Views: attributes of a mechanism that group one subject, as ``mech.limits.lower`` or ``mech.contact.parts``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import NDArray

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class View:
    """One view of a mechanism. It is made on access and holds only the mechanism, which stores its computed values
    (``kept``), without a reference cycle.
    """

    _mech: Mechanism

    def __repr__(self) -> str:
        names = ", ".join(name for name in dir(self) if not name.startswith("_"))
        return f"<{_subject(type(self))} of mechanism {self._mech.name!r}: {names}>"


class kept(cached_property[T]):
    """A property of a view that is computed once per mechanism and stored there."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        super().__init__(compute)
        self._compute = compute
        self._key = compute.__name__

    def __set_name__(self, owner: type[View], name: str) -> None:
        self._key = f"{_subject(owner)}.{name}"

    if not TYPE_CHECKING:  # which knows that a cached property has the type of its function

        def __get__(self, view: Any, owner: Any = None) -> Any:
            if view is None:
                return self
            values = view._mech.__dict__
            if self._key not in values:
                values[self._key] = self._compute(view)
            return values[self._key]


def _subject(view: type[View]) -> str:
    """The attribute of a mechanism that is this view: "limits" of ``LimitsView``."""
    return view.__name__.removesuffix("View").lower()


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The array, made read-only."""
    array.flags.writeable = False
    return array
