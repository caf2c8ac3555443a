"""User registrations of this process, by kind and name: methods and targets.

Algorithms look these up by name, so the program cache depends on them.
"""

from __future__ import annotations

from typing import Any

REGISTERED: dict[tuple[str, str | None], Any] = {}
