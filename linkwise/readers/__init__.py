"""Mechanisms from files and tables."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np

from linkwise.mechanics.joints import Floating, Joint
from linkwise.mechanism import Mechanism, MechanismError, from_dh
from linkwise.mechanism.checks import did_you_mean
from linkwise.mechanism.edit import moved_by
from linkwise.readers import protocol
from linkwise.readers.dh_table import load_dh
from linkwise.readers.loops import Source, add_loops_of, companion, companion_of
from linkwise.readers.protocol import FORMATS, AnyReader, document_of, parse_xml
from linkwise.readers.srdf import load_srdf

__all__ = ["from_dh", "load", "load_dh", "load_srdf", "register_reader"]

_PLACE = re.compile(r".+?:\d+: ")  # file and line, which may be those of a file that the document names


@cache
def _import_readers() -> None:
    """Every module of this package, so that all readers have registered themselves."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


def register_reader(root_element: str, format_name: str) -> Callable[[AnyReader], AnyReader]:
    """Register the decorated function as the reader of XML documents with this root element, for ``linkwise.load``.

    The function is called as ``read(root, floating_base, gravity, name, folder, mimic)`` with types of
    ``linkwise.readers.protocol``. A root element that has a reader already, such as <robot> or <mujoco>, is an error.
    """
    _import_readers()  # those of the package come first, so that none is taken over
    return protocol.register_reader(root_element, format_name)


def load(
    path_or_text: str | os.PathLike[str] | Any,
    floating_base: bool | Joint = False,
    gravity: Any = None,
    name: str | None = None,
    loops: Source | None = None,
    mimic: bool = True,
) -> Mechanism:
    """Read a mechanism from a URDF (URDF+ too), MJCF or SDF file, or from text that starts with '<'. The root element
    determines the format. Models of MuJoCo, ``mujoco.MjModel`` and ``mujoco.MjSpec``, are read too. MJCF needs MuJoCo:
    ``pip install 'linkwise[mujoco]'``. Macros in ".xacro" files are expanded by xacro;
    "robot_descriptions:panda_description" is a robot of the package robot_descriptions.

    One ``lw.files.OmissionWarning`` counts the parts of the file that do not act (contact, actuators, damping, ...); it
    is a ``lw.files.MissingConstraintWarning`` if parts come apart that the file holds together; ``mech.notes`` has the
    details. A ``lw.MechanismWarning`` names loop constraints that are redundant only to the rounding of the file
    (``constraints.redundancy``).

    floating_base   connect the root link to the ground by a free joint named "floating_base" instead of welding it; or
                    by another joint, such as ``lw.Planar()`` for a robot on a floor, with origin and axes at the root
                    link's pose in the file
    gravity         (3,) in the ground frame; by default that of the file (MJCF), or (0, 0, -9.81)
    name            of the mechanism; by default the one in the file
    loops           loops and couplings of joints, which plain URDF cannot express: the path of a TOML file, its text,
                    or a list of dicts; or the path of a YAML file of Gepetto's extended URDF or of
                    solidworks_urdf_exporter2 (``linkwise.readers.loops`` describes both); by default the companion file
                    that ``mech.save`` wrote beside a URDF file
    mimic           whether joints that mimic others or are coupled with others (URDF+ ``<coupling>``, MJCF
                    ``<equality>`` of joints and tendons) do; with False they are free
    """
    base = _base_joint(floating_base)
    folder, read, arguments = None, _mujoco_reader(path_or_text), (base is not None, gravity, name)
    if read is not None:
        source = type(path_or_text).__name__
        root = protocol.Element("mujoco", {}, source, 0)
        read = partial(read, path_or_text, root, *arguments, mimic)
    else:
        document, source, folder = _document(path_or_text, "URDF, MJCF or SDF")
        root = parse_xml(document, source)
        read = partial(_reader_of(root), root, *arguments, folder, mimic)
    beside = companion(loops, root)
    with _name_document(source):
        mechanism = read()
        if base is not None and not base.is_free:
            mechanism = moved_by(mechanism, protocol.FLOATING_BASE, base)
    mechanism = root.findings.report(mechanism, source)
    loops = companion_of(root, folder) if loops is None else loops
    if beside is not None:
        mechanism = beside.close(mechanism)
    elif loops is not None:
        mechanism = add_loops_of(mechanism, loops)
    if mechanism.loops:
        from linkwise.constraints import redundancy  # here, as few files have loops

        with _name_document(source):
            redundancy(mechanism)  # warns of constraints that are redundant only to rounding
    return mechanism


def _reader_of(root: protocol.Element) -> protocol.Reader:
    """The reader of a document with this root element."""
    _import_readers()
    supported = ", ".join(f"{known.name} (<{tag}>)" for tag, known in FORMATS.items() if known.read is not None)
    if root.tag not in FORMATS:
        raise MechanismError(
            f"{root.source}: <{root.tag}> is no mechanism format that is known; supported: {supported}"
        )
    reader = FORMATS[root.tag]
    if reader.read is None:
        raise MechanismError(f"{root.source}: {reader.advice.format(name=reader.name, supported=supported)}")
    return reader.read


def _mujoco_reader(value: Any) -> Callable[..., Mechanism] | None:
    """The reader of an ``mujoco.MjModel`` or ``mujoco.MjSpec``; None of other values, which need no MuJoCo."""
    kind = type(value)
    if kind.__module__.partition(".")[0] != "mujoco" or kind.__name__ not in ("MjModel", "MjSpec"):
        return None
    from linkwise.readers import mjcf  # here, as mujoco is an extra

    return mjcf.from_model


@contextmanager
def _name_document(source: str) -> Iterator[None]:
    """Context in which errors name the document; overflow in computations from its numbers is an error."""
    with np.errstate(all="ignore"):
        try:
            yield
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            raise MechanismError(
                f"{source}: some numbers are too large or too small to compute with ({error}); use other units"
            ) from None
        except MechanismError as error:
            if type(error) is not MechanismError or source in str(error) or _PLACE.match(str(error)):
                raise
            raise MechanismError(f"{source}: {error}") from error


def _base_joint(joint: Any) -> Joint | None:
    """The joint that moves the root link; None where it does not move."""
    if isinstance(joint, bool | np.bool_):
        return Floating() if joint else None
    if not isinstance(joint, Joint):
        raise MechanismError(
            f"floating_base is True, False or a joint such as linkwise.Planar() or linkwise.Floating(), not {joint!r}"
        )
    return joint if joint.nv else None


# -- files of other packages: macros, robot descriptions -------------------------------------------------


DESCRIPTIONS = "robot_descriptions:"
XACRO = ".xacro"


def _document(path_or_text: str | os.PathLike[str], kind: str) -> tuple[str | bytes, str, Path | None]:
    """The document of a file, text or robot description, with macros expanded; its name in messages, and its folder.

    Macros are programs that evaluate expressions and include files: expand only those that you trust.
    robot_descriptions downloads a robot when it is first used and keeps it, so that later it needs no network.
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
