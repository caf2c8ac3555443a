"""The bodies of a document as a flat list: frames resolved, default classes applied."""

from __future__ import annotations

from dataclasses import dataclass, field

from linkwise.mechanism import Pose
from linkwise.mechanism.checks import did_you_mean
from linkwise.mechanism.welding import composed
from linkwise.readers.mjcf.defaults import Defaults
from linkwise.readers.mjcf.document import Settings, check_attributes
from linkwise.readers.mjcf.poses import HERE, between, pose_of
from linkwise.readers.protocol import Element, omit

WORLD = "world"
_SILENT = ("camera", "light")
_LEFT_OUT = {
    "composite": ("composite", "the bodies it makes are left out; save the model from MuJoCo, which writes them out"),
    "flexcomp": ("deformable body", "deformable bodies are not read"),
    "plugin": ("plugin", "what a plugin does is not in the file"),
}
_NOT_SCALED = "what is inside keeps its size and mass; save the model from MuJoCo, which writes it out"
_PARTS = ("inertial", "joint", "freejoint", "geom", "site")
_KNOWN = ("body", "frame", "replicate", "attach", *_PARTS, *_SILENT, *_LEFT_OUT)


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


def carrier(body: Node) -> Node:
    """The body with the joints that move this one; the world if there are none."""
    while not body.joints and body.parent is not None:
        body = body.parent
    return body


def bodies_of(root: Element, settings: Settings, defaults: Defaults) -> list[Node]:
    """The world and all bodies, depth first: the order of MuJoCo's own numbers."""
    tree = _Tree(settings, defaults)
    for worldbody in root.all("worldbody"):
        around = defaults.checked(worldbody, worldbody.attributes.get("childclass"))
        tree.visit(worldbody, tree.nodes[0], HERE, around)
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
                scaled = [key for key in ("scale", "massscale") if key in child.attributes]
                if scaled:
                    omit(child, f"frame with {' and '.join(scaled)}", _NOT_SCALED)
                inner = self.defaults.checked(child, child.attributes.get("childclass", around))
                self.visit(child, node, composed(frame, pose_of(child, self.settings)), inner)
            elif child.tag in _LEFT_OUT:
                omit(child, *_LEFT_OUT[child.tag])
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
