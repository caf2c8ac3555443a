"""``<attach>``: subtrees of other models, or of the same one, put in place as plain elements in the units of the model
around them.

A model that is attached keeps its own default classes, units and folders: defaults are applied, angles converted, names
given the prefix, before its elements join the others.  Meshes, tendons, equalities, pairs and
exclusions of contact, and actuators come along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from linkwise.mechanism.checks import did_you_mean
from linkwise.readers.mjcf.defaults import NO_CLASS, Defaults
from linkwise.readers.mjcf.document import (
    EQUALITY_ENDS,
    ORIENTATIONS,
    Settings,
    is_limited,
    local_file,
    settings_of,
    with_includes,
)
from linkwise.readers.mjcf.meshes import mesh_folders
from linkwise.readers.mjcf.poses import orientation_of
from linkwise.readers.mjcf.replication import with_replicas
from linkwise.readers.protocol import Element, parse_xml, warn

_ALIKE = {  # settings that hold for all bodies here, for those of one model in MuJoCo
    "inertia_from_geoms": "inertiafromgeom",
    "inertia_groups": "inertiagrouprange",
    "least_mass": "boundmass",
    "least_inertia": "boundinertia",
    "balance_inertia": "balanceinertia",
    "align_free": "alignfree",
    "fit_boxes": "fitaabb",
    "strip_path": "strippath",
}
_ANGLES = {"hinge": ("ref", "springref", "range"), "ball": ("range",)}
_SWITCHES = (
    *(("limited", "range"), ("actuatorfrclimited", "actuatorfrcrange"), ("ctrllimited", "ctrlrange")),
    *(("forcelimited", "forcerange"), ("actlimited", "actrange")),
)
# Sections that come along, in this order, and the attributes of their elements and of parts of these that name others.
_NAMED = {
    "tendon": {"joint": "joint", "site": "site", "geom": "geom", "sidesite": "site"},
    "equality": EQUALITY_ENDS,
    "contact": {"geom1": "geom", "geom2": "geom", "body1": "body", "body2": "body"},
    "actuator": {
        **{"joint": "joint", "jointinparent": "joint", "tendon": "tendon", "site": "site", "body": "body"},
        **{"refsite": "site", "cranksite": "site", "slidersite": "site"},
    },
}
_WITH_CLASS = ("joint", "geom", "site")


def with_attachments(root: Element, settings: Settings, folder: Path | None, opened: tuple[Path, ...] = ()) -> Element:
    """The document with the bodies of other models in the place of every ``<attach>``."""
    return _Host(root, settings, folder, opened).expanded()


class _Host:
    """A model that others are attached to; ``opened`` are the files on the way to it."""

    def __init__(self, root: Element, settings: Settings, folder: Path | None, opened: tuple[Path, ...]) -> None:
        self._root, self._settings, self._folder, self._opened = root, settings, folder, opened
        self._sections: list[Element] = []

    def expanded(self) -> Element:
        children = [self._inside(child) if child.tag == "worldbody" else child for child in self._root.children]
        return replace(self._root, children=children + self._sections)

    def _inside(self, element: Element) -> Element:
        children = [self._attached(c) if c.tag == "attach" else self._inside(c) for c in element.children]
        return replace(element, children=children)

    def _attached(self, attach: Element) -> Element:
        prefix = attach.attributes.get("prefix", "")
        if "model" not in attach.attributes:
            return self._copied(attach, _Guest(self._root, self._settings, self._settings, prefix))
        guest = _Guest(*self._loaded(attach), self._settings, prefix)
        for name, attribute in _ALIKE.items():
            if getattr(guest.settings, name) != getattr(self._settings, name):
                raise attach.error(
                    f"{attach.label}: <compiler> of {attach.text('model')!r} has another {attribute} than that of the "
                    "model around it; write both alike"
                )
        return self._placed(attach, guest)

    def _copied(self, attach: Element, guest: _Guest) -> Element:
        """A subtree of this very model once more."""
        if not ("body" in attach.attributes or "frame" in attach.attributes):
            raise attach.error(
                f'{attach.label} needs the attribute model="...", or body="..." or frame="..." of the same model'
            )
        return self._placed(attach, guest)

    def _placed(self, attach: Element, guest: _Guest) -> Element:
        children = guest.subtree(attach)
        self._sections += guest.sections()
        return replace(attach, tag="frame", attributes={}, children=children)

    @cached_property
    def _files(self) -> dict[str, Path]:
        """The files of models by their names, which are those in the files where the asset gives none."""
        files = {}
        for model in (one for asset in self._root.all("asset") for one in asset.all("model")):
            path = local_file(model, model.text("file"), [self._folder])
            files[model.attributes.get("name") or _document(path, model).attributes.get("model", "")] = path
        return files

    def _loaded(self, attach: Element) -> tuple[Element, Settings]:
        name = attach.text("model")
        if name not in self._files:
            raise attach.error(
                f"{attach.label}: there is no <model> {name!r} in <asset>: {did_you_mean(name, self._files)}"
            )
        path = self._files[name]
        if path.resolve() in self._opened:
            raise attach.error(f"{attach.label}: {path} is attached to itself; leave one of both out")
        root = _document(path, attach)
        if root.tag != "mujoco":
            raise attach.error(f"{attach.label}: {path} starts with <{root.tag}>; only MJCF (<mujoco>) can be attached")
        root = with_includes(root, path.parent)
        settings = settings_of(root, path.parent)
        root = with_attachments(root, settings, path.parent, (*self._opened, path.resolve()))
        return with_replicas(root, settings), settings


@dataclass
class _Guest:
    """A model that is attached to another, whose settings are ``around``."""

    root: Element
    settings: Settings
    around: Settings
    prefix: str
    names: dict[str, set[str]] = field(default_factory=lambda: {"body": set(), "joint": set(), "site": set()})

    def __post_init__(self) -> None:
        self.defaults = Defaults(self.root)

    def subtree(self, attach: Element) -> list[Element]:
        """The body or frame that is asked for, or all that the world of the model holds."""
        worlds = list(self.root.all("worldbody"))
        kinds = [kind for kind in ("body", "frame") if kind in attach.attributes]
        if not kinds:
            return [self._part(child, w.attributes.get("childclass")) for w in worlds for child in w.children]
        if len(kinds) > 1:
            raise attach.error(f"{attach.label}: body and frame both say what is attached; keep one of them")
        kind, wanted = kinds[0], attach.text(kinds[0])
        around = ((world, world.attributes.get("childclass")) for world in worlds)
        found = {name: at for place in around for name, at in _named(kind, *place)}
        if wanted not in found:
            model = f"model {attach.attributes['model']!r}" if "model" in attach.attributes else "this model"
            raise attach.error(f"{attach.label}: {model} has no {kind} {wanted!r}: {did_you_mean(wanted, found)}")
        return [self._part(*found[wanted])]

    def _part(self, element: Element, around: str | None) -> Element:
        """An element of the tree, as it would be written in the model around."""
        if element.tag == "attach":
            raise element.error(f"{element.label} is inside of what is attached once more, which is not read")
        inner = self.defaults.checked(element, element.attributes.get("childclass", around))
        full = self.defaults.applied(element, around) if element.tag in _WITH_CLASS else element
        own = {k: v for k, v in full.attributes.items() if k not in ("class", "childclass", *ORIENTATIONS)}
        if element.tag == "replicate":  # of the same model, whose angles are in the same units
            own |= {key: full.attributes[key] for key in ORIENTATIONS if key in full.attributes}
        elif "fromto" not in own and any(key in full.attributes for key in ORIENTATIONS):
            x, y, _ = orientation_of(full, self.settings).T.tolist()
            own["xyaxes"] = _text(x + y)
        if element.tag in _WITH_CLASS:
            own["class"] = NO_CLASS
        if element.tag == "joint":
            own = self._switched(replace(full, attributes=own)).attributes
            self._convert(full, own)
        kind = "joint" if element.tag == "freejoint" else element.tag
        self.names.setdefault(kind, set()).add(own.get("name", ""))
        children = [self._part(child, inner) for child in element.children]
        return self._prefixed(replace(full, attributes=own, children=children), "name", "mesh")

    def _convert(self, joint: Element, own: dict[str, str]) -> None:
        """Angles in the units of the model around."""
        factor = self.settings.radians(1.0) / self.around.radians(1.0)
        for key in _ANGLES.get(joint.attributes.get("type", "hinge"), ()):
            if key in own and factor != 1.0:
                own[key] = _text(factor * number for number in joint.numbers(key, 1, 2))

    def _switched(self, element: Element) -> Element:
        """The element, which says whether its ranges are in force."""
        given = dict(element.attributes)
        for switch, bounds in _SWITCHES:
            if bounds in given and given.get(switch, "auto") == "auto":
                given[switch] = "true" if is_limited(element, switch, bounds, self.settings) else "false"
        return replace(element, attributes=given)

    def sections(self) -> Iterator[Element]:
        """Meshes, and what ties or acts on the subtree."""
        for asset in self.root.all("asset"):
            yield replace(asset, children=[self._mesh(mesh) for mesh in asset.all("mesh")])
        for tag, keys in _NAMED.items():
            for section in self.root.all(tag):
                inside = [one for one in section.children if self._is_inside(one, keys)]
                self.names.setdefault(tag, set()).update(one.attributes.get("name", "") for one in inside)
                yield replace(section, children=[self._acting(one, tag, keys) for one in inside])

    def _acting(self, element: Element, section: str, keys: Mapping[str, str]) -> Element:
        """An element of a section, as it would be written in the model around."""
        full = self._switched(self.defaults.applied(element, tag=None if section == "contact" else section))
        full = self._prefixed(self._plain(full), "name", *keys)
        parts = [self._prefixed(part, *keys) for part in full.children]
        in_full = "gaintype" in full.attributes  # an actuator, whose numbers are all written
        return replace(full, tag="general" if in_full else full.tag, children=parts)

    def _mesh(self, mesh: Element) -> Element:
        full = self._plain(self.defaults.applied(mesh))
        if "file" in full.attributes:
            file = full.text("file").replace("\\", "/")
            full.attributes.setdefault("name", PurePosixPath(file).stem)
            places = [place / file for place in mesh_folders(mesh, self.settings) if place]
            full.attributes["file"] = str(next((path for path in places if path.is_file()), file))
        return self._prefixed(full, "name")

    def _is_inside(self, element: Element, keys: Mapping[str, str]) -> bool:
        """Whether all that an element names is attached; the worlds of both models are the same."""
        named = [
            (kind, one.attributes[key])
            for one in (element, *element.children)
            for key, kind in keys.items()
            if one.attributes.get(key)
        ]
        inside = all(name in self.names.get(kind, ()) for kind, name in named)
        # What is copied in the same model has its own.
        if not inside and keys is EQUALITY_ENDS and self.settings is not self.around:
            warn(element, "is left out: it leads to what is not attached")
        return inside

    @staticmethod
    def _plain(element: Element) -> Element:
        return replace(element, attributes={**element.attributes, "class": NO_CLASS})

    def _prefixed(self, element: Element, *keys: str) -> Element:
        given = {key: self.prefix + element.attributes[key] for key in keys if element.attributes.get(key)}
        return replace(element, attributes={**element.attributes, **given})


def _document(path: Path, named_by: Element) -> Element:
    return parse_xml(path.read_bytes(), str(path), named_by.findings)


def _named(kind: str, element: Element, around: str | None) -> Iterator[tuple[str, tuple[Element, str | None]]]:
    """Name of every body or frame inside, with its element and the class around it."""
    for child in element.children:
        if child.tag == kind:
            yield child.attributes.get("name", ""), (child, around)
        if child.tag in ("body", "frame"):
            yield from _named(kind, child, child.attributes.get("childclass", around))


def _text(numbers: Iterable[float]) -> str:
    return " ".join(map(repr, numbers))
