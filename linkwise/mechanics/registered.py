"""What callers have registered in this process, by kind and name: methods and targets of their own.

Algorithms look these up by name, so that what is kept from one process to the next depends on them.
"""

from __future__ import annotations

from typing import Any

REGISTERED: dict[tuple[str, str | None], Any] = {}
