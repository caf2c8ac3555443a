"""Geometry of URDF links: collision shapes, which touch nothing before ``mech.with_ground``, and visuals, whose mesh
files are not opened here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from linkwise.mechanism import MechanismError, Shape
from linkwise.mechanism.contact import WITHOUT_GROUND
from linkwise.mechanism.looks import MESH, Look, placed, scaled
from linkwise.mechanism.naming import unused_name
from linkwise.readers.protocol import NO_GROUND, NO_SHAPE, Element, omit, warn
from linkwise.readers.urdf.parts import pose

#: Element of <geometry> -> its size as a shape has it.
SIZES: dict[str, Callable[[Element], tuple[float, ...]]] = {
    "sphere": lambda shape: (shape.number("radius"),),
    "box": lambda shape: tuple(size / 2.0 for size in (shape.text("size"), shape.numbers("size", 3))[1]),
    "cylinder": lambda shape: (shape.number("radius"), shape.number("length") / 2.0),
    "capsule": lambda shape: (shape.number("radius"), shape.number("length") / 2.0),
}


def shapes_of(links: Sequence[Element]) -> tuple[Shape, ...]:
    """Collision shapes of all links; geometry without a shape is noted."""
    taken: set[str] = set()
    return tuple(shape for link in links for shape in _shapes_of_link(link, taken))


def _shapes_of_link(link: Element, taken: set[str]) -> Iterator[Shape]:
    touches = False
    for number, collision in enumerate(link.all("collision")):
        geometry = collision.first("geometry")
        inner = geometry.children[0] if geometry is not None and geometry.children else None
        touches = touches or inner is None  # of something that is not said, and not to be passed over
        if inner is None:
            continue
        size = SIZES[inner.tag](inner) if inner.tag in SIZES else ()
        if not size or min(size) <= 0.0:
            omit(
                collision,
                f"collision {inner.tag if inner.tag not in SIZES else inner.tag + ' without size'}",
                NO_SHAPE,
            )
            continue
        name = collision.attributes.get("name", "").strip()
        if not name or name in taken:
            name = f"{link.text('name')}_collision{number or ''}"
        name = unused_name(name, taken)
        touches = True
        yield Shape(name, link.text("name"), inner.tag, size, pose(collision))
    if touches:
        omit(link, WITHOUT_GROUND, NO_GROUND)


def looks_of(root: Element, links: Sequence[Element], folder: Path | None) -> tuple[Look, ...]:
    """All visuals; unreadable ones are skipped with a remark."""
    colours = dict(_named(root.all("material")))
    visuals = [visual for link in links for visual in link.all("visual")]
    colours |= dict(_named(material for visual in visuals for material in visual.all("material")))
    folders = () if folder is None else (str(folder.absolute()),)
    return tuple(look for link in links for look in _visuals_of_link(link, colours, folders))


def _named(materials: Iterator[Element]) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Materials that have a colour."""
    for material in materials:
        colour = material.first("color")
        try:
            if colour is not None and "rgba" in colour.attributes:
                yield material.attributes.get("name", ""), colour.numbers("rgba", 4)
        except MechanismError:
            warn(material, "has a colour that is not four numbers")


def _visuals_of_link(link: Element, colours: dict[str, tuple[float, ...]], folders: tuple[str, ...]) -> Iterator[Look]:
    for tag in ("visual", "collision"):
        for number, element in enumerate(link.all(tag)):
            geometry = element.first("geometry")
            inner = geometry.children[0] if geometry is not None and geometry.children else None
            if inner is None or (tag == "collision" and inner.tag != MESH):  # simple ones are shapes of the mechanism
                continue
            name = element.attributes.get("name", "").strip() or f"{link.text('name')}_{tag}{number or ''}"
            try:
                mesh: dict[str, Any]
                if inner.tag == MESH:
                    scale = inner.vector("scale", (1.0, 1.0, 1.0))
                    mesh = {"file": inner.text("filename"), "folders": folders, "shaping": scaled(scale)}
                else:
                    mesh = {"size": SIZES[inner.tag](inner)}
                colour = _colour(element, colours) if tag == "visual" else None
                kind, at = inner.tag, placed(*pose(element))
                yield Look(name, link.text("name"), kind, pose=at, colour=colour, collision=tag == "collision", **mesh)
            except (MechanismError, KeyError) as error:
                told = f"geometry <{inner.tag}> is unknown" if isinstance(error, KeyError) else error
                warn(element, f"is not drawn: {told}")


def _colour(visual: Element, colours: dict[str, tuple[float, ...]]) -> tuple[float, ...] | None:
    """Colour of a visual's material, or of the named material that it refers to."""
    material = visual.first("material")
    if material is None:
        return None
    color = material.first("color")
    if color is not None and "rgba" in color.attributes:
        return color.numbers("rgba", 4)
    return colours.get(material.attributes.get("name", ""))
