"""Motions whose settings are drawn by name, beside the other arguments of ``simulate``."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import linkwise as lw

NAMES = {field.name for field in fields(lw.motion.Settings)}


def simulate(*given: Any, settings: lw.motion.Settings | None = None, **options: Any) -> lw.Trajectory:
    """``lw.simulate`` with fields of its settings among the options."""
    chosen = {name: options.pop(name) for name in tuple(options) if name in NAMES}
    return lw.simulate(*given, **options, settings=replace(settings or lw.motion.Settings(), **chosen))
