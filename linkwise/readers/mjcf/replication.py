"""``<replicate>``: copies of subtrees, and of the equalities that tie their parts together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from linkwise.readers.mjcf.document import EQUALITY_ENDS, Settings, check_attributes
from linkwise.readers.mjcf.poses import rotation_from_euler
from linkwise.readers.protocol import Element, omit

MAX_COPIES = 50_000  # of elements


def with_replicas(root: Element, settings: Settings) -> Element:
    """The document with frames, one for each copy, in the place of every ``<replicate>``; inner ones come first."""
    return _Replicas(root, settings).expanded()


class _Replicas:
    def __init__(self, root: Element, settings: Settings) -> None:
        self._root, self._settings = root, settings
        self._ties = [section for section in root.children if section.tag == "equality"]
        self._size = 0

    def expanded(self) -> Element:
        others = [
            self._inside(section) if section.tag == "worldbody" else section
            for section in self._root.children
            if section.tag != "equality"
        ]
        return replace(self._root, children=others + self._ties)

    def _inside(self, element: Element) -> Element:
        children: list[Element] = []
        for child in map(self._inside, element.children):
            children += self._copies(child) if child.tag == "replicate" else [child]
        return replace(element, children=children)

    def _copies(self, replicate: Element) -> Iterator[Element]:
        """Frames with the content, each translated along the axes of the one before, at multiples of the angles."""
        check_attributes(replicate)
        count = int(replicate.number("count"))
        if count < 1 or count != replicate.number("count"):
            raise replicate.error(f"{replicate.label}: count must be a whole number from 1 on")
        if count > MAX_COPIES:  # before anything of that length is made
            raise replicate.error(f"{replicate.label}: replication makes more than {MAX_COPIES} copies of elements")
        suffixes = [f"{replicate.attributes.get('sep', '')}{number:0{len(str(count))}d}" for number in range(count)]
        self._copy_ties(replicate, suffixes)
        angles = [self._settings.radians(angle) for angle in replicate.vector("euler", (0.0, 0.0, 0.0))]
        offset, position = np.array(replicate.vector("offset", (0.0, 0.0, 0.0))), np.zeros(3)
        for number, suffix in enumerate(suffixes):
            rotation = rotation_from_euler([number * angle for angle in angles], self._settings.euler)
            x, y, _ = rotation.T.tolist()
            attributes = {"pos": " ".join(map(repr, position.tolist())), "xyaxes": " ".join(map(repr, x + y))}
            if "childclass" in replicate.attributes:
                attributes["childclass"] = replicate.attributes["childclass"]
            children = [self._suffixed(child, suffix) for child in replicate.children]
            yield replace(replicate, tag="frame", attributes=attributes, children=children)
            position = position + rotation @ offset

    def _suffixed(self, element: Element, suffix: str) -> Element:
        """A copy in which every name is longer by a suffix."""
        self._size += 1
        if self._size > MAX_COPIES:
            raise element.error(f"{element.label}: replication makes more than {MAX_COPIES} copies of elements")
        children = [self._suffixed(child, suffix) for child in element.children]
        return replace(_lengthened(element, suffix, "name"), children=children)

    def _copy_ties(self, replicate: Element, suffixes: list[str]) -> None:
        """An equality for each copy, of those whose ends are all inside; none for one that leads outside."""
        names = set(_names(replicate))

        def copies(tie: Element) -> list[Element]:
            named = [(kind, tie.attributes[key]) for key, kind in EQUALITY_ENDS.items() if key in tie.attributes]
            ends = [end in names for end in named]
            if not any(ends):
                return [tie]
            if not all(ends):
                advice = "it ties what is replicated to what is not: name one of the copies"
                omit(tie, "equality", advice, constrains=True)
                return []
            return [_lengthened(tie, suffix, "name", *EQUALITY_ENDS) for suffix in suffixes]

        self._ties = [replace(one, children=[c for tie in one.children for c in copies(tie)]) for one in self._ties]


def _names(element: Element) -> Iterator[tuple[str, str]]:
    """Kind and name of every body, joint and site inside."""
    for child in element.children:
        kind = "joint" if child.tag == "freejoint" else child.tag
        if kind in EQUALITY_ENDS.values() and "name" in child.attributes:
            yield kind, child.attributes["name"]
        yield from _names(child)


def _lengthened(element: Element, suffix: str, *keys: str) -> Element:
    longer = {key: element.attributes[key] + suffix for key in keys if key in element.attributes}
    return replace(element, attributes={**element.attributes, **longer})
