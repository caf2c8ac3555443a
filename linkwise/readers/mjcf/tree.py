"""The bodies of a document as a flat list: frames resolved, subtrees replicated, default classes applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from linkwise.mechanism import Pose
from linkwise.mechanism.checks import did_you_mean
from linkwise.mechanism.welding import composed
from linkwise.readers.mjcf.document import Defaults, Settings, check_attributes, warn
from linkwise.readers.mjcf.poses import HERE, between, pose_of, rotation_from_euler
from linkwise.readers.protocol import Element

WORLD = "world"
MAX_COPIES = 50_000  # of elements by replication
_SILENT = ("camera", "light")
_LEFT_OUT = {
    "composite": "is left out, with the bodies it makes; save the model from MuJoCo, which writes them out",
    "flexcomp": "is left out: deformable bodies are not read",
    "plugin": "is left out: what a plugin does is not in the file",
}
_KNOWN = ("body", "frame", "replicate", "inertial", "joint", "freejoint", "geom", "site", *_SILENT, *_LEFT_OUT)


@dataclass
class Node:
    """A body of the file.

    name         its own, or one that was made up
    parent       the body around it; None for the world
    pose         in the parent's frame as the file has it, before its joints move it
    world_pose   the same in the world
    joints, inertial   each with the pose of the frame it is written in
    geoms, sites   each with its pose in the body's frame
    """

    element: Element
    name: str
    parent: Node | None
    pose: Pose
    world_pose: Pose
    joints: list[tuple[Element, Pose]] = field(default_factory=list)
    geoms: list[tuple[Element, Pose]] = field(default_factory=list)
    sites: list[tuple[Element, Pose]] = field(default_factory=list)
    inertial: tuple[Element, Pose] | None = None

    @property
    def moves(self) -> bool:
        """Whether this body or one that carries it has a joint."""
        return bool(self.joints) or (self.parent is not None and self.parent.moves)


def bodies_of(root: Element, settings: Settings, defaults: Defaults) -> list[Node]:
    """The world and all bodies, depth first: the order of MuJoCo's own numbers."""
    tree = _Tree(settings, defaults)
    for worldbody in root.all("worldbody"):
        around = defaults.checked(worldbody, worldbody.attributes.get("childclass"))
        tree.visit(_Replicas(settings).expanded(worldbody), tree.nodes[0], HERE, around)
    _settle_names(tree.nodes)
    return tree.nodes


def _settle_names(bodies: list[Node]) -> None:
    """Every body has a name of its own; those without one are called by their number."""
    taken: set[str] = set()
    for body in bodies:
        if body.name in taken - {""}:
            what = f'"{WORLD}" is the fixed world' if body.name == WORLD else "another body has this name"
            raise body.element.error(f"{body.element.label}: {what}; rename the body")
        taken.add(body.name)
    for number, body in enumerate(bodies):
        body.name = body.name or unused(f"body{number}", taken)


def unused(name: str, taken: set[str]) -> str:
    """The name, made longer until nobody has it; it is taken then."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


class _Tree:
    def __init__(self, settings: Settings, defaults: Defaults) -> None:
        self.settings, self.defaults = settings, defaults
        self.nodes = [Node(Element("worldbody", {}, "", 0), WORLD, None, HERE, HERE)]

    def visit(self, element: Element, node: Node, frame: Pose, around: str | None) -> None:
        """Collect what is inside an element: ``frame`` is its pose in the body, ``around`` the class that holds."""
        for child in element.children:
            check_attributes(child)
            if child.tag == "body":
                self._body(child, node, frame, around)
            elif child.tag == "frame":
                inner = self.defaults.checked(child, child.attributes.get("childclass", around))
                self.visit(child, node, composed(frame, pose_of(child, self.settings)), inner)
            elif child.tag == "attach":
                raise child.error(f"{child.label}: attached models are not read; save the whole model from MuJoCo")
            elif child.tag in _LEFT_OUT:
                warn(child, _LEFT_OUT[child.tag])
            elif child.tag not in _SILENT:
                self._part(child, node, frame, around)

    def _body(self, element: Element, node: Node, frame: Pose, around: str | None) -> None:
        pose = composed(frame, pose_of(element, self.settings))
        body = Node(element, element.attributes.get("name", "").strip(), node, pose, composed(node.world_pose, pose))
        self.nodes.append(body)
        self.visit(element, body, HERE, self.defaults.checked(element, element.attributes.get("childclass", around)))

    def _part(self, element: Element, node: Node, frame: Pose, around: str | None) -> None:
        if element.tag not in _KNOWN:
            raise element.error(
                f"<{element.tag}> is unknown inside {node.element.label}: {did_you_mean(element.tag, _KNOWN)}"
            )
        if element.tag == "inertial":
            if node.inertial is not None:
                raise element.error(f"{node.element.label} has two <inertial>; keep one of them")
            node.inertial = element, frame
        elif element.tag == "freejoint":
            node.joints.append((element, frame))
        elif element.tag == "joint":
            node.joints.append((self.defaults.applied(element, around), frame))
        else:
            element = self.defaults.applied(element, around)
            own = between(element)[0] if "fromto" in element.attributes else pose_of(element, self.settings)
            (node.geoms if element.tag == "geom" else node.sites).append((element, composed(frame, own)))


# -- replication ----------------------------------------------------------------------------------------


class _Replicas:
    """Puts frames, one for each copy, in the place of every ``<replicate>``; inner ones first."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._size = 0

    def expanded(self, element: Element) -> Element:
        children: list[Element] = []
        for child in map(self.expanded, element.children):
            children += self._copies(child) if child.tag == "replicate" else [child]
        return replace(element, children=children)

    def _copies(self, replicate: Element) -> Iterator[Element]:
        """Frames with the content, each shifted in the axes of the one before, at multiples of the angles."""
        check_attributes(replicate)
        count = int(replicate.number("count"))
        if count < 1 or count != replicate.number("count"):
            raise replicate.error(f"{replicate.label}: count must be a whole number from 1 on")
        angles = [self._settings.radians(angle) for angle in replicate.vector("euler", (0.0, 0.0, 0.0))]
        offset, position = np.array(replicate.vector("offset", (0.0, 0.0, 0.0))), np.zeros(3)
        for number in range(count):
            suffix = f"{replicate.attributes.get('sep', '')}{number:0{len(str(count))}d}"
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
        attributes = dict(element.attributes)
        if "name" in attributes:
            attributes["name"] += suffix
        children = [self._suffixed(child, suffix) for child in element.children]
        return replace(element, attributes=attributes, children=children)
