"""Errors of studies, and imports of optional libraries."""

from __future__ import annotations

import importlib
from typing import Any


class StudyError(ValueError):
    """A study that cannot be computed, stored or resumed; the message names what is wrong and how to fix it."""


class MissingLibrary(ImportError, StudyError):
    """An optional library is not installed."""


def library(name: str, purpose: str, extra: str = "cluster") -> Any:
    """An optional library, imported now."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingLibrary(f"{purpose} needs {name.partition('.')[0]}: pip install 'linkwise[{extra}]'") from None
