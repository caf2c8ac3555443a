"""Visuals of links as small records; mesh files are opened only when drawn."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from linkwise.mechanism.checks import snapped

MESH = "mesh"
_PACKAGES = ("package://", "model://")
_HERE = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)


@dataclass(frozen=True)
class Look:
    """A visible shape or mesh on a link.

    link       a link or frame, "ground" included
    kind       "box", "sphere", "cylinder", "capsule", "ellipsoid", "plane" or "mesh"
    size       as of ``lw.contact.Shape``; of a plane half its sides along x and y, zero for an endless plane
    pose       12 numbers, row by row: rotation and position in the frame of the link
    colour     red, green, blue, opacity, from 0 to 1; none if the file has none
    collision  whether it is collision geometry
    file       of a mesh, as written in the document; ``path`` is its location
    folders    where the file is searched
    shaping    12 numbers, row by row: the linear map and translation of the vertices of a mesh, such as its scale
    corners    of a mesh without file: its vertices, and the numbers of the corners of its triangles
    """

    name: str
    link: str
    kind: str
    size: tuple[float, ...] = ()
    pose: tuple[float, ...] = _HERE
    colour: tuple[float, ...] | None = None
    collision: bool = False
    file: str = ""
    folders: tuple[str, ...] = ()
    shaping: tuple[float, ...] = _HERE
    corners: tuple[tuple[float, ...], tuple[int, ...]] = ((), ())

    @property
    def path(self) -> Path | None:
        """Path of the mesh file; None if it is not found. Network locations are never opened."""
        return next((candidate for candidate in self._candidates() if candidate.is_file()), None)

    def _candidates(self) -> Iterator[Path]:
        file, folders = self.file.replace("\\", "/"), [Path(folder) for folder in self.folders]
        if file.startswith("file://"):
            yield Path("/" + file.removeprefix("file://").lstrip("/"))
        elif file.startswith(_PACKAGES):
            # The package is one of the folders around the file, as in a source tree, or where ROS knows it.
            inner = file.partition("://")[2]
            around = [ancestor for folder in folders for ancestor in (folder, *folder.parents)]
            yield from (folder / inner for folder in (*around, *_ros_places()))
            yield from (folder / inner.partition("/")[2] for folder in around)  # its folder may have another name
        elif "://" not in file and not file.startswith("//"):
            yield from (folder / file for folder in folders or [Path()])


def _ros_places() -> list[Path]:
    """Folders that hold packages of ROS 1 and ROS 2."""
    sources = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
    installed = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return [Path(folder) for folder in sources if folder] + [Path(folder) / "share" for folder in installed if folder]


def placed(rotation: np.ndarray, position: np.ndarray) -> tuple[float, ...]:
    """(12,): the pose of a visual, row by row."""
    numbers = tuple(np.column_stack([snapped(np.asarray(rotation)), position]).ravel().tolist())
    return _HERE if numbers == _HERE else numbers  # the one that most have is kept, and pickled, once


def scaled(scale: tuple[float, ...]) -> tuple[float, ...]:
    """(12,): scaling of a mesh along its axes as a shape matrix, row by row."""
    return placed(np.diag(scale), np.zeros(3))
