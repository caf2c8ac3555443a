"""Mechanisms from files and tables."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, NamedTuple, cast

from linkwise.mechanism import Mechanism, MechanismError, from_dh
from linkwise.readers.dh_table import load_dh
from linkwise.readers.loops import Source, with_loops_of
from linkwise.readers.protocol import Reader, document_of, parse_xml
from linkwise.readers.srdf import load_srdf

__all__ = ["from_dh", "load", "load_dh", "load_srdf"]


class Format(NamedTuple):
    """A kind of document: what it is called, the module that reads it, and what to say of it where none does."""

    name: str
    module: str = ""
    advice: str = "{name} files are not supported; supported: {supported}"


#: Root element of a document -> its format.
FORMATS = {
    "robot": Format("URDF", "urdf"),
    "mujoco": Format("MJCF", "mjcf"),
    "mujocoinclude": Format("MJCF", advice="this is a part of an MJCF model; load the file that includes it"),
    "sdf": Format("SDF"),
    "COLLADA": Format("COLLADA"),
}


def load(
    path_or_text: str | os.PathLike[str],
    floating_base: bool = False,
    gravity: Any = None,
    name: str | None = None,
    loops: Source | None = None,
    mimic: bool = True,
) -> Mechanism:
    """Read a mechanism from a URDF or MJCF file, or from text that starts with '<'. The format is told by the content.

    What of the file does not act (contact, actuators, damping, ...) is told by one ``lw.OmissionWarning`` with counts,
    by a ``lw.MissingConstraintWarning`` where parts that are held together come apart; ``mech.notes`` has the details.

    floating_base   let the root link move freely, by a joint named "floating_base", instead of welding it to the ground
    gravity         (3,) in the ground frame; by default what the file says (MJCF), or (0, 0, -9.81)
    name            of the mechanism; by default the one in the file
    loops           joints that close loops, which a URDF file cannot write: the path of a TOML file, its text, or a
                    list of dicts (see ``linkwise.readers.loops``)
    mimic           whether joints that mimic others (URDF) or are tied to others (MJCF ``<equality><joint>``) do; with
                    False they are free, each with a coordinate of its own
    """
    document, source, folder = document_of(path_or_text, "URDF or MJCF")
    root = parse_xml(document, source)
    supported = ", ".join(f"{known.name} (<{tag}>)" for tag, known in FORMATS.items() if known.module)
    if root.tag not in FORMATS:
        raise MechanismError(f"{source}: <{root.tag}> is no mechanism format that is known; supported: {supported}")
    found = FORMATS[root.tag]
    if not found.module:
        raise MechanismError(f"{source}: {found.advice.format(name=found.name, supported=supported)}")
    reader = cast(Reader, import_module(f"{__name__}.{found.module}"))
    mechanism = reader.from_xml(root, floating_base, gravity, name, folder, mimic)
    mechanism = root.findings.told(mechanism, source)
    return mechanism if loops is None else with_loops_of(mechanism, loops)
