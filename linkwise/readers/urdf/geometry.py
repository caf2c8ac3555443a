"""Collision geometry of URDF as shapes.  The format has no ground: they touch nothing before ``mech.with_ground``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from linkwise.mechanism import Shape
from linkwise.mechanism.contact import WITHOUT_GROUND
from linkwise.mechanism.naming import unused_name
from linkwise.readers.protocol import NO_GROUND, NO_SHAPE, Element, omit
from linkwise.readers.urdf.parts import pose

#: Element of <geometry> -> its size as a shape has it.
SIZES: dict[str, Callable[[Element], tuple[float, ...]]] = {
    "sphere": lambda shape: (shape.number("radius"),),
    "box": lambda shape: tuple(size / 2.0 for size in _three(shape)),
    "cylinder": lambda shape: (shape.number("radius"), shape.number("length") / 2.0),
    "capsule": lambda shape: (shape.number("radius"), shape.number("length") / 2.0),
}


def _three(box: Element) -> tuple[float, ...]:
    box.text("size")  # which must be there
    return box.numbers("size", 3)


def shapes_of(links: Sequence[Element]) -> tuple[Shape, ...]:
    """The shapes of all links; what has none that acts is noted."""
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
