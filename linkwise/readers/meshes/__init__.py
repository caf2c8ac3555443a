"""Meshes as triangles with colours: STL (binary and ASCII), OBJ with its materials, COLLADA, MSH of MuJoCo."""

from __future__ import annotations

import os
from pathlib import Path

from linkwise.mechanism import MechanismError
from linkwise.readers.meshes.collada import from_collada
from linkwise.readers.meshes.files import obj_surfaces, one_surface
from linkwise.readers.meshes.surface import Surface
from linkwise.readers.protocol import MAX_BYTES, why_unread

__all__ = ["Surface", "load_mesh"]

_READERS = {".stl": one_surface, ".msh": one_surface, ".obj": obj_surfaces, ".dae": from_collada}


def load_mesh(path: str | os.PathLike[str]) -> tuple[Surface, ...]:
    """The triangles of a mesh file, .stl, .obj, .dae or .msh, as surfaces of one colour each.

    Lengths are metres where the file says its unit (COLLADA), and as they are written otherwise; the vertical axis that
    COLLADA files name is not looked at, as in ROS.
    """
    file = Path(path)
    if file.suffix.lower() not in _READERS:
        raise MechanismError(f"{file}: meshes are read from {', '.join(_READERS)} files")
    if not file.is_file():
        raise FileNotFoundError(why_unread(file))
    if file.stat().st_size > MAX_BYTES:
        raise MechanismError(f"{file} has more than {MAX_BYTES} bytes; reduce the number of its triangles")
    try:
        found = tuple(surface for surface in _READERS[file.suffix.lower()](file) if len(surface.faces))
    except MechanismError:
        raise
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        raise MechanismError(f"{file} cannot be read as a mesh: {error}") from None
    if not found:
        raise MechanismError(f"{file} cannot be read as a mesh: it has no triangles")
    return found
