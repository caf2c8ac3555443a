"""Mechanism files that other packages provide: macros expanded by xacro, robots of robot_descriptions.

    lw.load("arm.urdf.xacro")                           pip install 'linkwise[xacro]'
    lw.load("robot_descriptions:panda_description")     pip install 'linkwise[descriptions]'

Macros are programs: they evaluate expressions and include files, so expand only those that you trust.
robot_descriptions downloads a robot when it is first used and keeps it, so that later it needs no network.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from linkwise.mechanism import MechanismError
from linkwise.mechanism.checks import did_you_mean
from linkwise.readers.protocol import document_of, parse_xml

DESCRIPTIONS = "robot_descriptions:"
XACRO = ".xacro"


def document(path_or_text: str | os.PathLike[str], kind: str) -> tuple[str | bytes, str, Path | None]:
    """The document of a file, a text or a robot description, with macros expanded; its name in messages, and its
    folder.
    """
    arguments: Mapping[str, str] = {}
    if isinstance(path_or_text, str) and path_or_text.startswith(DESCRIPTIONS):
        path_or_text, arguments = _described(path_or_text.removeprefix(DESCRIPTIONS))
    content, source, folder = document_of(path_or_text, kind)
    if folder is not None and source.lower().endswith(XACRO):
        parse_xml(content, source)  # refuses what no document may have, before anything is evaluated
        content = _expanded(source, arguments)
    return content, source, folder


def _expanded(path: str, arguments: Mapping[str, str]) -> str:
    try:
        import xacro
    except ImportError:
        raise ImportError(
            f"{path}: macros need xacro: pip install 'linkwise[xacro]', or expand them first: xacro in.xacro > out.urdf"
        ) from None
    try:
        return xacro.process_file(path, mappings=dict(arguments)).toxml()
    except Exception as error:  # of the macros' own expressions, too
        reason = " ".join(str(error).split()) or type(error).__name__
        raise MechanismError(
            f"{path}: xacro cannot expand it: {reason}; arguments without default, and packages of ROS, are given on "
            "the command line: xacro in.xacro name:=value > out.urdf"
        ) from None


def _described(name: str) -> tuple[str, Mapping[str, str]]:
    """The file of a robot description, and its macro arguments."""
    try:
        package = import_module("robot_descriptions")
    except ImportError:
        advice = "pip install 'linkwise[descriptions]'"
        raise ImportError(f"{DESCRIPTIONS}{name} needs robot_descriptions: {advice}") from None
    known = [module.name for module in iter_modules(package.__path__) if module.name.endswith("_description")]
    if name not in known:
        raise MechanismError(f"robot_descriptions has no {name!r}: {did_you_mean(name, known)}")
    try:
        module: Any = import_module(f"robot_descriptions.{name}")
    except ImportError as error:
        raise ImportError(f"{DESCRIPTIONS}{name}: {error}") from None
    except Exception as error:  # of git, of the network, of the disk
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise MechanismError(
            f"{DESCRIPTIONS}{name} cannot be fetched: {reason}; a description is downloaded when it is first used, and "
            "then found in the folder ROBOT_DESCRIPTIONS_CACHE"
        ) from None
    for attribute in ("URDF_PATH", "MJCF_PATH", "XACRO_PATH"):
        if hasattr(module, attribute):
            return getattr(module, attribute), getattr(module, "XACRO_ARGS", {})
    raise MechanismError(f"{DESCRIPTIONS}{name} has neither a URDF file nor an MJCF file")
