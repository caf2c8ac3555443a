"""Report of a writer: what a format cannot express and what is renamed, in one warning."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from linkwise.mechanism import MechanismError, MechanismWarning, OmissionWarning, warn_caller

MOST_NAMES = 4  # that a line names


class Report:
    """The report of one document.

    format_name   such as "URDF"
    location      name of the document in messages
    strict        whether an omission is an error
    remarks       whether the warning lists the parts that are written in another form
    file          that the document becomes; None for text, which has no companions
    companions    {name: text} of files beside it
    """

    def __init__(
        self, format_name: str, location: str, strict: bool = False, remarks: bool = True, file: Path | None = None
    ) -> None:
        self.file, self.companions = file, dict[str, str]()
        self.format_name, self._place, self._strict, self._tells_remarks = format_name, location, strict, remarks
        self._omitted: dict[str, list[str]] = {}
        self._remarks: dict[str, list[str]] = {}

    def omit(self, feature: str, name: str = "") -> None:
        """Record a part that the format cannot express, of the named joint, link, ..."""
        self._omitted.setdefault(feature, []).extend([name] if name else [])

    def remark(self, message: str, name: str = "") -> None:
        """Record a part that is written in another form; names follow the message."""
        self._remarks.setdefault(message, []).extend([name] if name else [])

    def refuse(self, message: str) -> MechanismError:
        """The error to raise for a joint or constraint that the format cannot express."""
        return MechanismError(f"{self._place}: {message}")

    def tell(self) -> None:
        """Issue one warning, or raise with ``strict``."""
        omitted = self._omitted.items()
        left_out = "; ".join(f"{feature} of {listed(names)}" if names else feature for feature, names in omitted)
        messages = [f"{self.format_name} cannot say, and leaves out: {left_out}"] if left_out else []
        remarks = self._remarks if self._tells_remarks else {}
        messages += [f"{remark}: {listed(names)}" if names else remark for remark, names in remarks.items()]
        if not messages:
            return
        told = f"{self._place}: " + "; ".join(messages)
        if left_out and self._strict:
            raise MechanismError(told)
        warn_caller(told, OmissionWarning if left_out else MechanismWarning)


def listed(names: Iterable[str]) -> str:
    """ "a, b and 3 more"."""
    all_names = list(dict.fromkeys(names))
    more = f" and {len(all_names) - MOST_NAMES} more" if len(all_names) > MOST_NAMES else ""
    return ", ".join(all_names[:MOST_NAMES]) + more
