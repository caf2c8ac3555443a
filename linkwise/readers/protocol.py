"""Shared by all readers: the reader protocol, and safe XML parsing with line numbers."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Protocol, TypeVar
from xml.parsers import expat

from linkwise.mechanism import (
    Mechanism,
    MechanismError,
    MechanismWarning,
    MissingConstraintWarning,
    Note,
    OmissionWarning,
    warn_caller,
)
from linkwise.mechanism.checks import close_names, shortened
from linkwise.mechanism.elements import OF_JOINTS


class Findings:
    """Omissions and remarks of one document; equal ones at several locations are reported once."""

    def __init__(self) -> None:
        self._omissions: dict[tuple[str, str, bool], list[str]] = {}
        self._remarks: dict[str, list[str]] = {}

    def omit(self, location: str, feature: str, advice: str, constrains: bool = False) -> None:
        """Record an ignored element: see ``Note``."""
        self._omissions.setdefault((feature, advice, constrains), []).append(location)

    def remark(self, location: str, message: str) -> None:
        """Record an element that is read otherwise than it may have been meant; the message follows its location."""
        locations = self._remarks.setdefault(message, [])
        if location not in locations:  # copies of an element have the same
            locations.append(location)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on ignored elements; those that constrain motion first."""
        notes = (Note(feature, tuple(where), advice, c) for (feature, advice, c), where in self._omissions.items())
        return tuple(sorted(notes, key=lambda note: not note.constrains))

    def report(self, mechanism: Mechanism, source: str) -> Mechanism:
        """The mechanism with the notes; warns once per kind of finding."""
        self.warn_of_remarks()
        known = dataclasses.replace(mechanism.annotations, notes=(*mechanism.annotations.notes, *self.notes))
        mechanism = dataclasses.replace(mechanism, annotations=known)
        if mechanism.notes:
            apart = any(note.constrains for note in mechanism.notes)
            category = MissingConstraintWarning if apart else OmissionWarning
            acting = acting_summary(mechanism)
            text = f"{acting}; {summary(mechanism.notes)}" if acting else summary(mechanism.notes)
            warn_caller(f"{source}: {text}; mech.notes says where and what to do", category)
        return mechanism

    def warn_of_remarks(self) -> None:
        """Warn of all remarks at once."""
        if self._remarks:
            lines = []
            for message, (first, *others) in self._remarks.items():
                more = f" (and {len(others)} more: {', '.join(others)})" if others else ""
                lines.append(f"{first} {message}{more}")
            warn_caller("\n".join(lines), MechanismWarning)


OF_BODIES = {"gravity_compensation": "held up", "fluid": "in a fluid"}


def acting_summary(mechanism: Mechanism) -> str:
    """The active force elements in one line with counts; empty if none."""
    counts = [_counted(kind, len(names)) for kind, names in mechanism.forces.active.items()]
    return f"acting: {', '.join(counts)}" if counts else ""


def _counted(kind: str, count: int) -> str:
    """ "8 joints with damping", "1 actuator"."""
    if kind in OF_JOINTS:
        return f"{count} joint{'s' * (count != 1)} with {kind}"
    if kind in OF_BODIES:
        return f"{count} {'body' if count == 1 else 'bodies'} {OF_BODIES[kind]}"
    word = kind.removesuffix("s")
    return f"{count} {word + 's' * (count != 1)}"


def summary(notes: Sequence[Note]) -> str:
    """All notes in one line, with counts."""
    holding, acting = (_merge_counts([note for note in notes if note.constrains is held]) for held in (True, False))
    parts = [f"not read, so that what it holds together comes apart: {holding}"] if holding else []
    parts += [f"not acting: {acting}"] if acting else []
    return "; ".join(parts)


def _merge_counts(notes: Sequence[Note]) -> str:
    """Text such as "8 joints with damping, 2 plugins", merging notes of one name."""
    where: dict[str, tuple[str, ...]] = {}
    for note in notes:
        where[note.what] = where.get(note.what, ()) + note.where
    return ", ".join(Note(feature, locations, "").counted for feature, locations in where.items())


FLOATING_BASE = "floating_base"  # the joint by which a root link moves freely
STANDARD_GRAVITY = (0.0, 0.0, -9.81)
#: Of collision geometry in formats that have no ground, and of that which is no simple shape.
NO_GROUND = "it touches nothing before mech.with_ground() gives it a floor; links pass through each other"
NO_SHAPE = "it passes through everything: mech.with_shape puts a sphere, capsule, cylinder or box in its place"
MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 200
NO_LIMIT = 1e300  # limits from here on are none
_INVALID_TOKEN = expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]
_LONGEST_NAME = 200  # of an element, in messages and notes
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven")


class Reader(Protocol):
    """Reads documents of one format."""

    def __call__(
        self, root: Element, floating_base: bool, gravity: Any, name: str | None, folder: Path | None, mimic: bool
    ) -> Mechanism:
        """The mechanism of the parsed document; warnings and notes are collected in ``root.findings``.

        gravity   (3,) in the ground frame; None for the document's, or the format's
        folder    searched for files that the document names; None for text
        mimic     whether mimic joints follow their leaders; otherwise they are free
        """


AnyReader = TypeVar("AnyReader", bound=Reader)


@dataclass(frozen=True)
class Format:
    """A kind of document: its name, its reader, and advice if it has none."""

    name: str
    read: Reader | None = None
    advice: str = "{name} files are not supported; supported: {supported}"


#: Root element of a document -> its format.
FORMATS = {
    "mujocoinclude": Format("MJCF", advice="this is a part of an MJCF model; load the file that includes it"),
    "COLLADA": Format("COLLADA"),
}


def register_reader(root_element: str, format_name: str) -> Callable[[AnyReader], AnyReader]:
    """Decorates the function that reads XML documents with this root element."""
    for value in (root_element, format_name):
        if not isinstance(value, str) or not value.strip() or "<" in value:
            raise ValueError(
                f"register_reader takes the root element of documents, without brackets, and a name: got {value!r}"
            )
    known = FORMATS.get(root_element)
    if known is not None and known.read is not None:
        raise ValueError(
            f"documents that start with <{root_element}> are read as {known.name} already: let yours start with "
            "another element, or call your function instead of linkwise.load"
        )

    def note(reader: AnyReader) -> AnyReader:
        if not callable(reader):
            raise TypeError(f"a reader is a function of the parsed document, not {reader!r}")
        FORMATS[root_element] = Format(format_name, reader)
        return reader

    return note


def unbounded(limit: float) -> float:
    """A limit; numbers that stand for infinity in formats become infinite."""
    return math.copysign(math.inf, limit) if abs(limit) >= NO_LIMIT else limit


@dataclass
class Element:
    """An XML element with its line number, for messages.

    Namespace prefixes are kept as part of the tag, so that extensions differ from the format's own elements. ``owner``
    is the label of the nearest named element around it, other than the root. ``content`` is the text between its tags
    without children and surrounding blanks. ``findings`` collects the findings of the document; all its elements share
    it.
    """

    tag: str
    attributes: dict[str, str]
    source: str
    line: int
    children: list[Element] = field(default_factory=list)
    owner: str = ""
    content: str = ""
    findings: Findings = field(default_factory=Findings, repr=False, compare=False)

    def all(self, tag: str) -> Iterator[Element]:
        """Children with this tag, in order."""
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> Element | None:
        """The first child with this tag, or None."""
        return next(self.all(tag), None)

    def required(self, tag: str) -> Element:
        """The first child with this tag; raises if it is missing."""
        child = self.first(tag)
        if child is None:
            raise self.error(f"{self.label} has no <{tag}>")
        return child

    def text(self, attribute: str) -> str:
        """A required attribute that is not blank."""
        value = self.attributes.get(attribute, "").strip()
        if not value:
            raise self.error(f'{self.label} needs the attribute {attribute}="..."')
        return value

    def number(self, attribute: str, default: float | None = None, finite: bool = True) -> float:
        """A numeric attribute; required without a default."""
        if default is not None and attribute not in self.attributes:
            return default
        return self._parsed(attribute, self.text(attribute), finite)

    def vector(self, attribute: str, default: tuple[float, float, float]) -> tuple[float, ...]:
        """Three numbers separated by white space."""
        return self.numbers(attribute, 3) if attribute in self.attributes else default

    def numbers(self, attribute: str, fewest: int = 1, most: int | None = None) -> tuple[float, ...]:
        """Numbers separated by white space: ``fewest`` of them, or up to ``most``."""
        text = self.attributes[attribute]
        return self._numbers(attribute, f'{attribute}="{text}"', text, fewest, most)

    def content_numbers(self, fewest: int = 1, most: int | None = None) -> tuple[float, ...]:
        """Numbers in the element's content: ``fewest`` of them, or up to ``most``."""
        return self._numbers("its content", f'its content "{self.content}"', self.content, fewest, most)

    def _numbers(self, name: str, shown: str, text: str, fewest: int, most: int | None) -> tuple[float, ...]:
        words = text.split()
        most = fewest if most is None else most
        if not fewest <= len(words) <= most:
            count = f"{fewest} to {most}" if fewest != most else _COUNTS[most] if most < len(_COUNTS) else str(most)
            raise self.error(f"{self.label}: {shown} must be {count} number{'s' * (most != 1)}{_hint(text)}")
        return tuple(self._parsed(name, word, finite=True) for word in words)

    def _parsed(self, name: str, word: str, finite: bool) -> float:
        try:
            value = float(word) if "_" not in word else math.nan
        except ValueError:
            raise self.error(f"{self.label}: {name} holds {word!r}, which is not a number{_hint(word)}") from None
        if math.isnan(value) or (finite and math.isinf(value)):
            raise self.error(f"{self.label}: {name} holds {word!r}; a finite number is needed")
        return value

    @property
    def label(self) -> str:
        """The element's name in messages: by its name, or by its owner."""
        name = self.attributes.get("name")
        if name is None:
            tag = f"<{shortened(self.tag, _LONGEST_NAME)}>"
            return tag + (f" of {self.owner}" if self.owner else "")
        return f'<{shortened(self.tag, _LONGEST_NAME)} name="{shortened(name, _LONGEST_NAME)}">'

    def error(self, message: str) -> MechanismError:
        """An error that points at this element."""
        return MechanismError(f"{self.source}:{self.line}: {message}")


def warn(element: Element, message: str) -> None:
    """Remark that an element is read otherwise than it may have been meant."""
    element.findings.remark(f"{element.source}:{element.line}: {element.label}", message)


def omit(element: Element, feature: str, advice: str, constrains: bool = False, detail: str = "") -> None:
    """Note that an element is ignored; ``detail`` is added to its location."""
    line = f":{element.line}" if element.line else ""  # a model without a document has no lines
    location = f"{PurePath(element.source).name}{line} {element.label}" + (f" ({detail})" if detail else "")
    element.findings.omit(location, feature, advice, constrains)


def warn_of_slips(
    element: Element, attributes: Mapping[str, tuple[str, ...]], children: Mapping[str, tuple[str, ...]]
) -> None:
    """Warn of attributes and children that look misspelt, and of a second child where only the first counts.

    The tables list names that elements may have. Elements without a table belong to other programs and are not checked.
    """

    def report(noun: str, word: str, known: tuple[str, ...], present: list[str]) -> None:
        meant = close_names(word.lower(), [name for name in known if name not in present])
        if word not in known and meant:
            warn(element, f"has the unknown {noun} {word!r}, which is left out: did you mean {meant[0]!r}?")

    for key in element.attributes:
        report("attribute", key, attributes[element.tag], list(element.attributes))
    tags = [child.tag for child in element.children]
    for tag in dict.fromkeys(tags):
        report("element", tag, children.get(element.tag, ()), tags)
        if tag in attributes and tags.count(tag) > 1:
            warn(element, f"has {tags.count(tag)} <{tag}>, of which the first is read; keep one of them")
    for child in element.children:
        if child.tag in attributes:
            warn_of_slips(child, attributes, children)


def _hint(text: str) -> str:
    """Advice for text that looks like numbers of another format."""
    if "$" in text:
        return "; this looks like xacro: expand it first with `xacro in.xacro > out.urdf`"
    return "; numbers have a decimal point and blanks between them, no commas" if "," in text else ""


def document_of(path_or_text: str | os.PathLike[str], kind: str) -> tuple[str | bytes, str, Path | None]:
    """The document given by a caller, a file or text; its name in messages, and its folder."""
    if not isinstance(path_or_text, (str, os.PathLike)):
        raise TypeError(f"load takes the path of a {kind} file, or its text, not a {type(path_or_text).__name__}")
    if isinstance(path_or_text, str):
        if path_or_text.lstrip("\ufeff \t\r\n").startswith("<"):
            return path_or_text, "text", None
        if not path_or_text.strip():
            raise MechanismError("an empty string is neither the path of a file nor the text of one")
        if "\n" in path_or_text or "\0" in path_or_text:
            raise MechanismError("this text is no mechanism file: XML starts with '<'")
    path = Path(path_or_text)
    try:
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; give the path of a file in it")
        missing = not path.exists()
    except IsADirectoryError:
        raise
    except (OSError, ValueError):  # a name that is too long, or that no file can have
        missing = True
    if missing:
        raise FileNotFoundError(f"there is no file {shortened(str(path))}")
    content = path.read_bytes()
    if path.suffix.lower() in (".toml", ".csv") and not content.lstrip().startswith(b"<"):
        raise MechanismError(f"{path} is no {kind} file: lw.files.load_dh reads Denavit-Hartenberg tables")
    return content, str(path), path.parent


def why_unread(path: Path) -> str:
    """The reason why a path cannot be read: missing, or not a plain file."""
    if not path.exists():
        return f"there is no file {path}"
    return f"{path} is a {'folder' if path.is_dir() else 'pipe or device'}; only plain files are read"


def parse_xml(document: str | bytes, source: str, findings: Findings | None = None) -> Element:
    """The root element of a document; ``findings`` are shared with the document that includes it.

    Nothing outside the document is ever opened: document types and entities, the way to exponential or external
    expansion, are refused, and size and depth are bounded.
    """
    if isinstance(document, str):
        document, encoding = document.lstrip("\ufeff \t\r\n").encode("utf-8", errors="surrogatepass"), "utf-8"
    else:
        document, encoding = document.lstrip(b" \t\r\n"), None
    if not document:
        raise MechanismError(f"{source}: the file is empty")
    if len(document) > MAX_BYTES:
        raise MechanismError(f"{source}: {len(document)} bytes; no more than {MAX_BYTES} are read")
    if not document.startswith((b"<", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise MechanismError(f"{source}: this is not an XML file (it does not start with '<')")

    findings = Findings() if findings is None else findings
    parser = expat.ParserCreate(encoding)
    open_elements: list[Element] = []
    texts: list[list[str]] = []  # of the open elements
    roots: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        around = open_elements[-1] if len(open_elements) > 1 else None
        owner = "" if around is None else around.label if "name" in around.attributes else around.owner
        element = Element(tag, attributes, source, parser.CurrentLineNumber, owner=owner, findings=findings)
        if len(open_elements) >= MAX_DEPTH:
            raise element.error(f"elements are nested more than {MAX_DEPTH} deep")
        (open_elements[-1].children if open_elements else roots).append(element)
        open_elements.append(element)
        texts.append([])

    def end(_: str) -> None:
        open_elements.pop().content = "".join(texts.pop()).strip()

    def refuse(*_: Any) -> None:
        line = parser.CurrentLineNumber
        raise MechanismError(f"{source}:{line}: document types and entities are refused; remove the <!DOCTYPE ...>")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda text: texts[-1].append(text)
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        if error.code == _INVALID_TOKEN and not _is_utf8(document):
            reason = "neither UTF-8 nor in the encoding that its first line names; save the file as UTF-8"
        raise MechanismError(f"{source}:{error.lineno}: malformed XML: {reason} (column {error.offset})") from None
    except MechanismError:
        raise
    except (LookupError, ValueError) as error:  # an encoding that nobody knows
        raise MechanismError(f"{source}: malformed XML: {error}; save the file as UTF-8") from None
    return roots[0]


def _is_utf8(document: bytes) -> bool:
    try:
        document.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
