"""Fluid forces in MJCF: one fluid for all bodies, acting on inertia boxes or on ellipsoids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from linkwise.mechanism import FluidForce, Mechanism, Pose
from linkwise.mechanism.elements import LEAST_MASS, box_of_inertia, ellipsoid_of_shape
from linkwise.mechanism.looks import MESH
from linkwise.mechanism.naming import unused_name
from linkwise.mechanism.shapes import PLANE
from linkwise.mechanism.welding import composed
from linkwise.writers.looks import pose_of
from linkwise.writers.mjcf.bodies import Bodies, pose_attributes
from linkwise.writers.report import Report
from linkwise.writers.xml import element

CLOSE = 1e-9  # relative: numbers that are the same but for rounding


class Fluid:
    """The fluid forces of a mechanism if MJCF can express all of them; otherwise none, with a report.

    option   attributes of ``<option>``
    axes     {body: (3, 3)}: principal axes of inertias to write, since drag depends on them even for equal moments
    """

    def __init__(self, mech: Mechanism, report: Report) -> None:
        self.option: dict[str, Any] = {}
        self.axes: dict[int, np.ndarray] = {}
        self._mech = mech
        self._ellipsoids: list[tuple[FluidForce, int, Pose]] = []
        parts = [element for element in mech.elements if isinstance(element, FluidForce)]
        if not parts:
            return
        why = self._sorted(parts)
        if why:
            self.axes, self._ellipsoids = {}, []
            for part in parts:
                report.omit(f"fluid {why}", part.link)
            return
        first = parts[0]
        wind = first.wind if any(first.wind) else None
        self.option = {"density": first.density, "viscosity": first.viscosity, "wind": wind}

    def _sorted(self, parts: list[FluidForce]) -> str:
        """Sort parts into boxes and ellipsoids; why it cannot be written, or nothing."""
        mech, around = self._mech, dict[int, list[FluidForce]]()
        if len({(part.density, part.viscosity, part.wind) for part in parts}) > 1:
            return "that differs from body to body"
        for part in parts:
            around.setdefault(mech.frame(part.link).body, []).append(part)
        if any(body.mass >= LEAST_MASS and index not in around for index, body in enumerate(mech.bodies)):
            return "that is not around all bodies"
        for index, here in around.items():
            placed = [(part, index, _placed(mech, part)) for part in here]
            if all(part.shape == "ellipsoid" for part in here):
                self._ellipsoids += placed
            elif len(here) == 1 and _is_box_of(mech.bodies[index], *placed[0][::2]):
                self.axes[index] = placed[0][2][0]
            else:
                return "on boxes that are not those of the inertias"
        return ""

    def write(self, root: Element, bodies: Bodies) -> None:
        """Write ellipsoids on matching geoms, or on additional ones."""
        geoms = {geom.get("name", ""): geom for geom in root.iter("geom")}
        taken = set(geoms)
        for part, index, pose in self._ellipsoids:
            name = self._geom_of(part, index, pose, taken)
            if name is None:
                parent, seen = bodies.inside(index, pose)
                name = unused_name(f"{part.link}_in_fluid", set(geoms))
                attributes: dict[str, Any] = {"contype": 0, "conaffinity": 0, "group": 3}
                geoms[name] = element(
                    parent, "geom", name=name, type="ellipsoid", size=part.size, **attributes, **pose_attributes(seen)
                )
            taken.discard(name)
            geoms[name].set("fluidshape", "ellipsoid")
            geoms[name].set("fluidcoef", " ".join(map(repr, part.coefficients)))

    def _geom_of(self, part: FluidForce, index: int, pose: Pose, free: set[str]) -> str | None:
        for name, kind, size, body, there in self._solids():
            if name in free and body == index and np.allclose(ellipsoid_of_shape(kind, size), part.size, CLOSE, 0.0):
                if all(np.allclose(a, b, rtol=0.0, atol=CLOSE) for a, b in zip(pose, there, strict=True)):
                    return name
        return None

    def _solids(self) -> Iterator[tuple[str, str, Any, int, Pose]]:
        """Shapes and looks that are written as geoms of their names."""
        mech = self._mech
        for shape in mech.shapes:
            if shape.kind != PLANE:
                yield shape.name, shape.kind, shape.size, *shape.placed(mech)
        for look in mech.metadata.looks:
            if look.kind not in (PLANE, MESH):
                frame = mech.frame(look.link)
                yield (
                    look.name,
                    look.kind,
                    look.size,
                    frame.body,
                    composed(frame.pose, pose_of(look)),
                )


def _placed(mech: Mechanism, part: FluidForce) -> Pose:
    """Axes and middle in the frame of the body's link."""
    frame = mech.frame(part.link)
    return composed(frame.pose, (np.array(part.axes), np.array(part.position)))


def _is_box_of(body: Any, part: FluidForce, pose: Pose) -> bool:
    """Whether a box is the inertia box of a body."""
    axes, middle = pose
    moments = axes.T @ body.inertia @ axes
    along = moments.diagonal()
    beside = np.abs(moments - np.diag(along)).max()
    sides = box_of_inertia(body.mass, along.tolist())
    extent = float(np.abs(middle).max() + max(sides))
    return bool(
        beside <= CLOSE * along.max()
        and np.allclose(sides, part.size, rtol=1e3 * CLOSE, atol=0.0)
        and np.allclose(middle, body.com, rtol=0.0, atol=CLOSE * extent)
    )
