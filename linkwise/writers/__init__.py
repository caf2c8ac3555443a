"""Mechanisms written to files: ``mech.save`` and ``linkwise convert``.

A writer warns once of parts that its format cannot express, and raises for joints and loops that cannot be composed of
those of the format.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from linkwise.mechanism import Mechanism, MechanismError
from linkwise.writers import mjcf, urdf
from linkwise.writers.report import Report

__all__ = ["FORMATS", "save", "text_of"]

#: Ending of a file name -> its format, and who writes it.
FORMATS: dict[str, tuple[str, Callable[[Mechanism, Report], str]]] = {
    ".urdf": ("URDF", urdf.written),
    ".xml": ("MJCF", mjcf.written),
    ".mjcf": ("MJCF", mjcf.written),
}
PAGE = ".html"


def save(mech: Mechanism, path: str | os.PathLike[str], strict: bool = False, meshes: bool = False) -> None:
    """Write a mechanism to a file in the format of its suffix; see ``Mechanism.save``."""
    target = Path(path)
    ending = target.suffix.lower()
    if ending == PAGE:
        mech.show(meshes=meshes).save(target)
        return
    if ending not in FORMATS:
        known = ", ".join(f"{suffix} ({name})" for suffix, (name, _) in FORMATS.items()) + f", {PAGE} (to look at)"
        raise MechanismError(f"{target.name!r} has no ending of a format that mechanisms are saved in: {known}")
    text, report = _written(mech, ending, str(target), strict, file=target)  # before the file is touched
    for name, companion in report.companions.items():
        target.with_name(name).write_text(companion, encoding="utf-8")
    target.write_text(text, encoding="utf-8")


def text_of(mech: Mechanism, ending: str, location: Any = None, strict: bool = False, remarks: bool = True) -> str:
    """The document that ``save`` writes; messages call it ``location``.

    With ``remarks``, the warning also lists parts that are written in another form.
    """
    return _written(mech, ending, location, strict, remarks)[0]


def _written(
    mech: Mechanism, ending: str, location: Any, strict: bool, remarks: bool = True, file: Path | None = None
) -> tuple[str, Report]:
    name, written = FORMATS[ending]
    report = Report(name, location or f"{name} of {mech.name}", strict, remarks, file)
    text = written(mech, report)
    report.tell()
    return text, report
