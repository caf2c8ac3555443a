"""MJCF documents made safe for MuJoCo's parser: one text for each, with the files that they name looked up here.

Every document is parsed by ``parse_xml``, which refuses entities and bounds size and depth, and written again with each
element on a line of its own.  Lines are numbered through all documents, so that a line in a message of MuJoCo's, or in
its record of an element, leads to the element in the file that holds it.  Nothing is left in the text that MuJoCo would
open itself; what only pictures need is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import quoteattr

from linkwise.mechanism import MechanismError
from linkwise.mechanism.checks import did_you_mean, shortened
from linkwise.readers.protocol import MAX_BYTES, MAX_DEPTH, Element, omit, parse_xml, warn, why_unread

MOST_COPIES = 50_000  # elements that repetitions make
_MOST_BYTES_OF_TEXT = 1000  # of a message of MuJoCo's
#: Pictures, measurements, names and sizes of memory: nothing that moves, and a way to open files or fill the memory.
_LEFT_OUT = ("texture", "layer", "skin", "size", "statistic", "visual", "custom", "sensor")
_NOT_PASSED = {
    "compiler": ("meshdir", "texturedir", "assetdir", "strippath", "fusestatic", "discardvisual", "usethread"),
    "material": ("texture",),
    "light": ("texture",),
}
_POSE = ("pos", "quat", "axisangle", "xyaxes", "zaxis", "euler")
#: Elements whose attributes MuJoCo does not check.
_UNCHECKED = {
    "frame": ("name", "childclass", "scale", "scaling", "massscale", *_POSE),
    "replicate": ("name", "childclass", "count", "offset", "euler", "sep"),
}
_NO_NUMBERS = ("nan", "inf", "infinity")
#: Attributes that hold names, and so any word.
_WORDS = frozenset(
    f"{word}{end}"
    for word in ("name", "class", "childclass", "prefix", "model", "file", "material", "mesh", "body", "geom", "joint")
    + ("site", "tendon", "actuator", "target", "objname", "refname", "key", "value", "plugin", "instance", "flex")
    + ("cranksite", "slidersite", "sidesite", "refsite", "jointinparent", "sep", "hfield", "node", "sensor", "camera")
    for end in ("", "1", "2")
)
NO_SENSOR = "not read: lw.frame_pose, lw.frame_velocity, lw.frame_acceleration compute such"
NO_FLEX = "deformable bodies are not read"
GIVE_INERTIAL = "give the bodies that use it an <inertial>"
_LINE = re.compile(r"line (\d+)")
_CURES = {
    "mass and inertia of moving bodies": "give it a geom, or an <inertial>: nothing without mass moves in MuJoCo",
    "inertia must satisfy A + B >= C": '<compiler balanceinertia="true"/> replaces such moments by their mean',
}


@dataclass
class MeshFile:
    """Search path of a ``<mesh>`` file."""

    element: Element
    name: str
    folders: list[Path | None]

    def path(self) -> Path:
        """Path of the file; raises if it is missing or too large."""
        path = local_file(self.element, self.name, self.folders)
        if path.stat().st_size > MAX_BYTES:
            raise self.element.error(f"{self.element.label}: {path} has more than {MAX_BYTES} bytes")
        return path


@dataclass
class Documents:
    """Texts for MuJoCo's parser.

    text     of the document itself
    models   {name: text} of the documents that it attaches
    lines    elements by the lines of all texts, from line 1 on
    meshes   {name in the texts: MeshFile}
    textures   those with plain colours, which are left out
    attached   the documents in ``models``, with all that they include
    files      {name under which MuJoCo has the bytes of a mesh: name of its file}
    """

    root: Element
    text: str = ""
    models: dict[str, str] = field(default_factory=dict)
    lines: list[Element] = field(default_factory=list)
    meshes: dict[str, MeshFile] = field(default_factory=dict)
    textures: list[Element] = field(default_factory=list)
    attached: list[Element] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    @property
    def coloured_classes(self) -> set[str]:
        """Default classes that set a colour of geoms, themselves or by inheritance."""
        names: set[str] = set()

        def visit(default: Element, name: str, around: bool) -> None:
            gives = around or any("rgba" in geom.attributes for geom in default.all("geom"))
            names.update([name] if gives else [])
            for inner in default.all("default"):
                visit(inner, inner.attributes.get("class", ""), gives)

        for default in self.root.all("default"):
            visit(default, "main", False)
        return names

    def at(self, where: str) -> Element | None:
        """The element at the first line number in a text of MuJoCo's."""
        line = _LINE.search(where)
        return self.lines[int(line[1]) - 1] if line and 0 < int(line[1]) <= len(self.lines) else None

    def refusal(self, error: Exception) -> MechanismError:
        """An error of MuJoCo's, located at its element."""
        said = " ".join(line for line in str(error).splitlines() if not line.startswith("Element "))
        said = said.replace("could not parse model file with error: ", "")
        said = re.sub(r"^((XML )?Error: |Schema violation: )+", "", said).strip() or "an error without a message"
        element = self.at(str(error)) or self.root
        for name, file in self.files.items():
            said = said.replace(name, file)
        cure = next((cure for words, cure in _CURES.items() if words in said), "")
        if element.tag == "mesh" and "XML Error" not in str(error):  # then it is one of shape, not of syntax
            cure = GIVE_INERTIAL
        cure = f"; {cure}" if cure else ""
        return element.error(f"{element.label}: MuJoCo refuses it: {shortened(said, _MOST_BYTES_OF_TEXT)}{cure}")


def documents_of(root: Element, folder: Path | None) -> Documents:
    """The document and its attached documents; ``folder`` is the search folder of files, None for text."""
    documents = Documents(root)
    writer = _Writer(documents)
    documents.root, documents.text = writer.written(root, folder, ())
    return documents


class _Writer:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._names: dict[Path, str] = {}  # of attached documents

    def written(self, root: Element, folder: Path | None, opened: tuple[Path, ...]) -> tuple[Element, str]:
        """A document with its includes, and its text; ``opened`` lists the files being included."""
        root = expand_includes(root, folder)
        _copies(root)
        assets = (texture for asset in root.all("asset") for texture in asset.all("texture"))
        self._documents.textures += [texture for texture in assets if "rgb1" in texture.attributes]
        compiler = {
            key: value
            for compiler_element in root.all("compiler")
            for key, value in compiler_element.attributes.items()
        }
        models = {
            id(model): self._model(model, folder, opened) for asset in root.all("asset") for model in asset.all("model")
        }
        start, lines = len(self._documents.lines), []
        for text, element in self._tags(root, _Places(folder, compiler), models):
            lines.append(text)
            self._documents.lines.append(element)
        return root, "\n" * start + "\n".join(lines)

    def _model(self, model: Element, folder: Path | None, opened: tuple[Path, ...]) -> str:
        """The name of an attached document in the texts."""
        path = local_file(model, model.text("file"), [folder]).resolve()
        if path in opened:
            raise model.error(f"{model.label}: {path} is attached to itself; leave one of both out")
        if path not in self._names:
            name = f"model{len(self._names)}.xml"
            root = parse_xml(path.read_bytes(), str(path), model.findings)
            if root.tag != "mujoco":
                raise model.error(
                    f"{model.label}: {path} starts with <{root.tag}>; only MJCF (<mujoco>) can be attached"
                )
            root, text = self.written(root, path.parent, (*opened, path))
            self._documents.attached.append(root)
            self._documents.models[name] = text
            self._names[path] = name
        return self._names[path]

    def _tags(self, element: Element, folders_of: _Places, models: dict[int, str]) -> Iterator[tuple[str, Element]]:
        attributes = {
            key: value for key, value in element.attributes.items() if key not in _NOT_PASSED.get(element.tag, ())
        }
        if id(element) in models:
            attributes["file"] = models[id(element)]
        elif element.tag == "mesh" and "file" in attributes:
            file = attributes["file"].replace("\\", "/")
            attributes.setdefault("name", PurePosixPath(file).stem)
            attributes["file"] = f"mesh{len(self._documents.meshes)}{PurePosixPath(file).suffix.lower()}"
            self._documents.meshes[attributes["file"]] = folders_of.mesh(element, file)
        _check(element)
        tag = " ".join([element.tag, *(f"{key}={quoteattr(value)}" for key, value in attributes.items())])
        children = [
            child for child in element.children if child.tag not in _LEFT_OUT and not _is_deformable(element, child)
        ]
        yield f"<{tag}{'' if children else '/'}>", element
        for child in children:
            yield from self._tags(child, folders_of, models)
        if children:
            yield f"</{element.tag}>", element


@dataclass
class _Places:
    """Search folders of a document, from its location and ``<compiler>``."""

    folder: Path | None
    compiler: dict[str, str]

    def mesh(self, element: Element, name: str) -> MeshFile:
        meshes = self.compiler.get("meshdir", self.compiler.get("assetdir", ""))
        if self.compiler.get("strippath") == "true":
            name = PurePosixPath(name).name
        if self.folder is None:
            return MeshFile(element, name, [Path(meshes)] if Path(meshes).is_absolute() else [])
        return MeshFile(element, name, [self.folder / meshes, self.folder, Path(element.source).parent])


def _is_deformable(around: Element, element: Element) -> bool:
    """Whether an element is (part of) a deformable body; if so, it is noted."""
    if element.tag == "flexcomp":
        omit(element, "deformable body", NO_FLEX)
    elif around.tag == "equality" and element.tag.startswith("flex"):
        omit(element, "equality of deformable bodies", "equalities of this kind are not read")
    else:
        return False
    return True


def _check(element: Element) -> None:
    """Raise for malformed numbers, and warn of unknown attributes, which MuJoCo accepts silently."""
    for key, value in element.attributes.items():
        known = _UNCHECKED.get(element.tag)
        if known is not None and key not in known:
            warn(element, f"has the unknown attribute {key!r}, which is left out: {did_you_mean(key, known)}")
        words = value.split()
        if key not in _WORDS and (
            bad := next((word for word in words if word.lower().lstrip("+-") in _NO_NUMBERS), None)
        ):
            raise element.error(f"{element.label}: {key} holds {bad!r}; a finite number is needed")


def _copies(element: Element) -> int:
    """Number of elements after expanding repetitions; more than ``MOST_COPIES`` are refused."""
    inside = sum(_copies(child) for child in element.children)
    if "builtin" in element.attributes and "params" in element.attributes:
        numbers = element.numbers("params", 1, 16)
        if element.attributes["builtin"] == "wedge":  # the others are angles
            numbers = numbers[:2]
        if element.tag == "mesh" and math.prod(max(1.0, number) for number in numbers) > 10.0 * MOST_COPIES:
            raise element.error(f"{element.label}: its params make a mesh of more than {10 * MOST_COPIES} parts")
    if element.tag == "replicate" and "count" in element.attributes:
        times = element.number("count")
        if times < 1.0 or times % 1.0:
            raise element.error(f"{element.label}: count must be a whole number from 1 on")
        inside = int(min(times * max(1, inside), 10.0 * MOST_COPIES))
        if inside > MOST_COPIES:
            raise element.error(f"{element.label} makes more than {MOST_COPIES} copies")
    return 1 + inside


# -- files ----------------------------------------------------------------------------------------------


def expand_includes(root: Element, folder: Path | None) -> Element:
    """The document with the content of included files in the place of every ``<include>``."""
    return _Includes(folder).expanded(root, folder, 0)


class _Includes:
    """Included files of one document, found in the main file's folder or that of the including file."""

    def __init__(self, folder: Path | None) -> None:
        self._main_folder = folder
        self._opened: set[Path] = set()

    def expanded(self, element: Element, folder: Path | None, depth: int) -> Element:
        if depth > MAX_DEPTH:
            raise element.error(f"elements of this and the including files are nested more than {MAX_DEPTH} deep")
        children: list[Element] = []
        for child in element.children:
            if child.tag == "include":
                path = self._path(child, folder)
                root = parse_xml(path.read_bytes(), str(path), element.findings)
                children += self.expanded(root, path.parent, depth + 1).children
            else:
                children.append(self.expanded(child, folder, depth + 1))
        return replace(element, children=children)

    def _path(self, include: Element, folder: Path | None) -> Path:
        path = local_file(include, include.text("file"), [self._main_folder, folder])
        if path.resolve() in self._opened:
            raise include.error(
                f"{path} is included twice, or includes itself; each file can be included once (repeat bodies with "
                "<replicate>)"
            )
        self._opened.add(path.resolve())
        return path


def local_file(element: Element, name: str, folders: Iterable[Path | None]) -> Path:
    """The file of this name in the first of the folders that has it; never anything on a network."""
    if "://" in name or name.startswith(("\\\\", "//")):
        raise element.error(f"{element.label}: {name!r} is not a local file; only local files are opened")
    name = name.replace("\\", "/")
    known_folders = [folder for folder in folders if folder is not None]
    if not known_folders and not Path(name).is_absolute():
        raise element.error(
            f"{element.label}: {name!r} cannot be found, since a text has no folder; load the model from its file"
        )
    candidates = [folder / name for folder in known_folders] or [Path(name)]
    for path in candidates:
        if path.is_file():
            return path
    unread = next((path for path in candidates if path.exists()), None)
    if unread is not None:
        raise element.error(f"{element.label}: {why_unread(unread)}")
    raise element.error(f"{element.label}: there is no file {' or '.join(map(str, dict.fromkeys(candidates)))}")
