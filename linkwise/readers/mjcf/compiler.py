"""MuJoCo's compiler: documents become a model of arrays, whose elements are known by file and line.

Only meshes that determine a mass are opened, and no height fields: other geoms with meshes and height fields are
compiled as spheres without mass, with their own data in ``Compiled.stand_ins``.
"""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.mechanics.spatial.quaternion import rotation_matrix
from linkwise.mechanism import MechanismError, Pose
from linkwise.readers.mjcf.documents import GIVE_INERTIAL, NO_SENSOR, Documents, documents_of
from linkwise.readers.protocol import Element, omit, warn

_OLDEST = 4  # version of MuJoCo whose arrays these are
_QUARTER_TURN = 1e-14  # entries of rotations as close to 0 and 1 are those
SMALLEST = 1e-15  # mass and moment of inertia that MuJoCo takes (its mjMINVAL)
_ROUNDING = 1e-9  # relative; moments that keep the triangle inequality by less may break it once decomposed
MOST_CORNERS = 100  # of polygons that MuJoCo reads
_ONE_AT_A_TIME = threading.Lock()  # who hears MuJoCo's remarks is the same for all threads
#: Lists of a specification, by what their elements are called here.
_LISTS = {
    **{"body": "bodies", "joint": "joints", "geom": "geoms", "site": "sites", "actuator": "actuators"},
    **{"tendon": "tendons", "equality": "equalities", "pair": "pairs", "mesh": "meshes"},
    **{"material": "materials", "key": "keys", "flex": "flexes"},
}


class MissingMujoco(ImportError, MechanismError):
    """MuJoCo is not installed."""


def mujoco_library(label: str) -> Any:
    """The module mujoco; raises with installation advice if it is missing or too old."""
    try:
        import mujoco
    except ImportError:
        raise MissingMujoco(f"{label}: MJCF is read by MuJoCo's compiler: pip install 'linkwise[mujoco]'") from None
    version = mujoco.__version__
    if int(version.partition(".")[0]) < _OLDEST:
        raise MissingMujoco(
            f"{label}: MJCF is read by the compiler of MuJoCo {_OLDEST} and later, and {version} is installed: "
            "pip install -U 'linkwise[mujoco]'"
        )
    return mujoco


@dataclass(frozen=True)
class Inertial:
    """A mass, and the inertia (3, 3) along the axes of an ``<inertial>``."""

    mass: float
    inertia: np.ndarray


@dataclass
class Compiled:
    """A model of MuJoCo's and the elements that it was made from.

    model       the ``mujoco.MjModel``
    root        the document's element, or one that stands for a model without document
    stand_ins   {geom: "mesh" or "hfield"} of geoms that are compiled as spheres without mass
    inertials   {body: ``<inertial>`` as it is written} of bodies that are compiled with another
    stopped     joints with limits at one position, which MuJoCo has without limits
    pairs       contact pairs in the order of the document, each with whether MuJoCo has exchanged its geoms
    coloured    geoms whose default class gives them a colour
    """

    library: Any
    model: Any
    root: Element
    name: str = ""
    elements: dict[tuple[str, int], Element] = field(default_factory=dict)
    stand_ins: dict[int, str] = field(default_factory=dict)
    meshes: dict[int, str] = field(default_factory=dict)  # of geoms, opened or not
    looks: dict[str, dict[str, Any]] = field(default_factory=dict)
    fluid_stand_ins: set[int] = field(default_factory=set)
    textures: list[Element] = field(default_factory=list)  # with colours
    inertials: dict[int, Inertial] = field(default_factory=dict)
    stopped: set[int] = field(default_factory=set)
    pairs: list[tuple[int, bool]] = field(default_factory=list)
    coloured: set[int] = field(default_factory=set)

    def names(self, kind: str, count: int) -> list[str]:
        """The names of all elements of a kind, stripped."""
        return [self._name(kind, index) for index in range(count)]

    def _name(self, kind: str, index: int) -> str:
        of = getattr(self.library.mjtObj, f"mjOBJ_{kind.upper()}")
        return (self.library.mj_id2name(self.model, of, index) or "").strip()

    def element(self, kind: str, index: int, tag: str = "") -> Element:
        """The element in the file; without a document, an element of the same name."""
        known = self.elements.get((kind, index))
        if known is not None:
            return known
        name, root = self._name(kind, index), self.root
        return Element(tag or kind, {"name": name} if name else {}, root.source, 0, findings=root.findings)

    def pose(self, kind: str, index: int) -> Pose:
        """Pose of a body in its parent, or of a geom or site in its body."""
        position, quaternion = (getattr(self.model, f"{kind}_{word}")[index] for word in ("pos", "quat"))
        return rotation_of(quaternion), tidy(position)

    def disables(self, *words: str) -> bool:
        """Whether the model's options disable one of these."""
        bits = self.library.mjtDisableBit
        return any(self.model.opt.disableflags & getattr(bits, f"mjDSBL_{word.upper()}") for word in words)

    @property
    def option(self) -> Element:
        """The document's ``<option>``, or the document."""
        return next(iter([*self.root.all("option")][::-1]), self.root)

    def texture_colour(self, material: int) -> tuple[float, ...] | None:
        """Colour of a material's texture, from the file."""
        name = self.element("material", material).attributes.get("texture")
        colours = (
            texture.vector("rgb1", (0.8, 0.8, 0.8))
            for texture in self.textures
            if texture.attributes.get("name") == name
        )
        plain = next(colours, None) if name else None
        return None if plain is None else (*plain, 1.0)

    @property
    def has_passive_forces(self) -> bool:
        """Whether fluid forces and gravity compensation are enabled: MuJoCo disables them with springs and dampers."""
        return not (self.disables("spring") and self.disables("damper"))


def rotation_of(quaternion: Any) -> np.ndarray:
    """(3, 3): rotation of a quaternion, with rounded quarter turns made exact."""
    return exact(np.array(rotation_matrix(np.asarray(quaternion, dtype=float).tolist()), dtype=float))


def exact(units: np.ndarray) -> np.ndarray:
    """Unit vectors with entries that are 0 or 1 up to rounding made exact."""
    near = np.round(units)
    return np.where(np.abs(units - near) < _QUARTER_TURN, near, units) + 0.0


def tidy(vector: Any, size: float = 0.0) -> np.ndarray:
    """A vector with entries set to zero that are rounding relative to its largest entry or to ``size``."""
    vector = np.array(vector, dtype=float)
    return np.where(np.abs(vector) <= 1e-15 * max(size, np.abs(vector).max(initial=0.0)), 0.0, vector)


def compile_document(root: Element, folder: Path | None, floats: bool) -> Compiled:
    """The compiled model of a parsed document; with ``floats``, the body fixed to the world is set free later."""
    mujoco = mujoco_library(root.source)
    documents = documents_of(root, folder)
    models = {name: text.encode() for name, text in documents.models.items()}
    with _quiet(mujoco):
        try:
            spec = mujoco.MjSpec.from_string(documents.text, include=models)
        except (ValueError, RuntimeError, TypeError, MemoryError) as error:
            raise documents.refusal(error) from None
        assets = _Assets(mujoco, spec, documents, floats)
        spec.compiler.LRopt.mode = mujoco.mjtLRMode.mjLRMODE_NONE  # of muscles: found by simulation
        assets.replace()
        inertials = dict(_refused_inertials(mujoco, spec, documents))
        stopped = set(_ranges_of_one_position(mujoco, spec, documents))
        model = _compile(spec, documents)
    compiled = Compiled(mujoco, model, documents.root, documents.root.attributes.get("model", "").strip())
    keys = [key for section in documents.root.all("keyframe") for key in section.all("key")]
    if len(keys) == model.nkey:
        compiled.elements.update({("key", index): key for index, key in enumerate(keys)})
    for kind, name in _LISTS.items():
        for index, item in enumerate(getattr(spec, name)):
            element = documents.at(item.info)
            if element is not None:
                compiled.elements[kind, index] = element
    _note_lost_equalities(compiled, documents)
    for document in (documents.root, *documents.attached):
        for sensor in (entry for section in document.all("sensor") for entry in section.children):
            omit(sensor, "sensor", NO_SENSOR)
    names = compiled.names("geom", model.ngeom)
    order = {pair.id: k for k, pair in enumerate(spec.pairs)}
    written = {pair.id: pair.geomname1 for pair in spec.pairs}
    for pair in sorted(range(model.npair), key=lambda i: order.get(i, i)):
        compiled.pairs.append((pair, names[model.pair_geom1[pair]] != written.get(pair, "").strip()))
    classes = documents.coloured_classes
    compiled.coloured = {i for i, geom in enumerate(spec.geoms) if geom.classname.name in classes}
    compiled.stand_ins, compiled.meshes, compiled.looks = assets.stand_ins, assets.meshes, assets.looks
    compiled.inertials, compiled.stopped = inertials, stopped
    compiled.fluid_stand_ins, compiled.textures = assets.in_fluid, documents.textures
    return compiled


def _refused_inertials(library: Any, spec: Any, documents: Documents) -> Iterator[tuple[int, Inertial]]:
    """Remove moments from a specification that MuJoCo would refuse (thin rods, points, impossible ones). They are read
    as written, unless the compiler corrects them or other numbers depend on them.
    """
    depends = any(actuator.biasprm[2] > 0.0 for actuator in spec.actuators)
    depends = depends or any(joint.springdamper[0] > 0.0 for joint in spec.joints)
    depends = depends or spec.compiler.settotalmass > 0.0
    for index, body in enumerate(spec.bodies):
        compiler = body.compiler
        if body.explicitinertial and body.mass < 0.0:
            element = documents.at(body.info) or documents.root
            raise element.error(f"{element.label}: mass={body.mass:g} is negative; fix the sign")
        mends = compiler.boundmass > 0.0 or compiler.boundinertia > 0.0 or compiler.balanceinertia
        if depends or mends or not body.explicitinertial:
            continue
        if compiler.inertiafromgeom == library.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE:
            continue
        xx, yy, zz, xy, xz, yz = numbers = np.array(body.fullinertia)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        inertia = np.diag(body.inertia) if np.isnan(numbers).any() else inertia
        if not (np.isfinite(inertia).all() and np.isfinite(body.mass) and body.mass >= 0.0):
            continue
        low, middle, high = np.linalg.eigvalsh(inertia)
        if min(low, body.mass) < SMALLEST or low + middle < (1.0 + _ROUNDING) * high:
            yield index, Inertial(float(body.mass), inertia)
            body.fullinertia, body.inertia, body.mass = [np.nan] * 6, [1.0, 1.0, 1.0], 1.0


def _ranges_of_one_position(library: Any, spec: Any, documents: Documents) -> Iterator[int]:
    """Remove limits that leave a joint one position, which MuJoCo refuses, from a specification; yields the joints."""
    for index, joint in enumerate(spec.joints):
        element = documents.at(joint.info)
        is_written = element is not None and "range" in element.attributes
        if is_written and joint.limited == library.mjtLimited.mjLIMITED_TRUE and joint.range[0] == joint.range[1]:
            yield index
            if joint.compiler.degree and joint.type == library.mjtJoint.mjJNT_HINGE:
                joint.range = np.radians(joint.range)
            joint.limited = library.mjtLimited.mjLIMITED_FALSE


def _note_lost_equalities(compiled: Compiled, documents: Documents) -> None:
    """Note equalities of copied or attached parts, which MuJoCo drops silently."""
    known = {id(element) for (kind, _), element in compiled.elements.items() if kind == "equality"}
    for document in (documents.root, *documents.attached):
        for element in (equality for section in document.all("equality") for equality in section.children):
            if element.tag.startswith("flex"):  # noted where it is left out
                continue
            if id(element) not in known and document is documents.root:
                omit(element, "equality", "it ties what is replicated to what is not: name one of the copies", True)
            elif id(element) not in known:
                warn(element, "is left out: it leads to what is not attached")


def compile_given(spec: Any, source: Element) -> Compiled:
    """The compiled model of an ``mujoco.MjModel`` or ``mujoco.MjSpec``; the latter is not changed."""
    mujoco = mujoco_library("a model of MuJoCo's")
    model = spec
    if isinstance(spec, mujoco.MjSpec):
        spec = spec.copy()
        try:
            with _quiet(mujoco):
                model = spec.compile()
        except (ValueError, RuntimeError) as error:
            raise Documents(source).refusal(error) from None
    pairs = [(pair, False) for pair in range(model.npair)]
    return Compiled(mujoco, model, source, model.names.split(b"\0")[0].decode(errors="replace").strip(), pairs=pairs)


def _compile(spec: Any, documents: Documents) -> Any:
    """The model of a specification.  Keyframes that do not fit the model are left out."""
    while True:
        try:
            return spec.compile()
        except (ValueError, RuntimeError, MemoryError) as error:
            key = _key_in(spec, str(error))
            if key is None:
                raise documents.refusal(error) from None
            words = str(error).removeprefix("Error: ").splitlines()[0]
            keys = [key for section in documents.root.all("keyframe") for key in section.all("key")]
            omit(keys[key] if key < len(keys) else documents.root, "keyframe", f"not read: {words}")
            spec.delete(spec.keys[key])


def _key_in(spec: Any, said: str) -> int | None:
    """The keyframe named by an error message."""
    if "key" not in said.partition("\n")[0]:
        return None
    named = [i for i, key in enumerate(spec.keys) if key.name and f"'{key.name}'" in said]
    by_number = [i for i, _ in enumerate(spec.keys) if f"key {i}" in said or f"id {i}" in said]
    return next(iter((*named, *by_number)), 0 if len(spec.keys) else None)


@contextmanager
def _quiet(library: Any) -> Iterator[None]:
    """Context without MuJoCo's remarks on numbers, which would also be written to MUJOCO_LOG.TXT in the working
    directory.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        handler = library.get_mju_user_warning()
        library.set_mju_user_warning(lambda message: None)
        try:
            yield
        finally:
            library.set_mju_user_warning(handler)


class _Assets:
    """Mesh files of a specification: loaded if masses depend on them, removed otherwise."""

    def __init__(self, library: Any, spec: Any, documents: Documents, floats: bool) -> None:
        self._library, self._spec, self._documents, self._floats = library, spec, documents, floats
        self.stand_ins: dict[int, str] = {}
        self.in_fluid: set[int] = set()
        self.meshes: dict[int, str] = {}
        self.looks: dict[str, dict[str, Any]] = {}

    def replace(self) -> None:
        """Put spheres in the place of geoms whose meshes or height fields are not needed."""
        kinds = self._library.mjtGeom
        needed = set()
        moving = self._moving()
        files = {mesh.name: mesh for mesh in self._spec.meshes}
        for index, geom in enumerate(self._spec.geoms):
            if geom.type == kinds.mjGEOM_HFIELD:
                self._stand_in(index, geom, "hfield")
            elif geom.meshname:
                self.meshes[index] = geom.meshname
                mesh = files.get(geom.meshname)
                shaped = geom.type != kinds.mjGEOM_MESH  # a shape that is fitted to it, or its distance field
                if mesh is not None and (self._weighs(geom, moving) or (shaped and self._is_there(mesh))):
                    needed.add(geom.meshname)
                elif mesh is not None and geom.type != kinds.mjGEOM_SDF:
                    self._stand_in(index, geom, "mesh")
        for site in self._spec.sites:  # nobody looks at them
            if site.meshname:
                site.type, site.meshname, site.size = kinds.mjGEOM_SPHERE, "", [1.0, 0.0, 0.0]
        for terrain in list(self._spec.hfields):
            self._spec.delete(terrain)
        for name, mesh in files.items():
            self.looks[name] = self._look(mesh)
            if name not in needed:
                self._spec.delete(mesh)
            elif mesh.file:
                self._give(mesh)

    def _moving(self) -> dict[Any, bool]:
        """Whether bodies move, by their own joints or those of their ancestors."""
        moving: dict[Any, bool] = {}
        for body in self._spec.bodies:  # parents first
            moving[body] = bool(body.joints) or moving.get(body.parent, False)
        return moving

    def _weighs(self, geom: Any, moving: dict[Any, bool]) -> bool:
        """Whether the mass of a moving body depends on a geom."""
        body, compiler = geom.parent, geom.compiler
        total = self._spec.compiler.settotalmass > 0.0
        if not (moving.get(body, True) or total or self._floats):
            return False
        inferred = self._library.mjtInertiaFromGeom
        if compiler.inertiafromgeom == inferred.mjINERTIAFROMGEOM_FALSE:
            return False
        if body.explicitinertial and compiler.inertiafromgeom != inferred.mjINERTIAFROMGEOM_TRUE:
            return False
        first, last = compiler.inertiagrouprange
        if not first <= geom.group <= last:
            return False
        return bool(geom.density != 0.0 if np.isnan(geom.mass) else geom.mass != 0.0)

    def _stand_in(self, index: int, geom: Any, kind: str) -> None:
        self.stand_ins[index] = kind
        if geom.fluid_ellipsoid:
            self.in_fluid.add(index)
        geom.type, geom.meshname, geom.hfieldname = self._library.mjtGeom.mjGEOM_SPHERE, "", ""
        geom.size, geom.mass, geom.fluid_ellipsoid = [1.0, 0.0, 0.0], 0.0, 0.0
        geom.typeinertia = self._library.mjtGeomInertia.mjINERTIA_VOLUME

    def _is_there(self, mesh: Any) -> bool:
        if not mesh.file:
            return True
        try:
            self._documents.meshes[mesh.file].path()
        except (MechanismError, KeyError):
            return False
        return True

    def _give(self, mesh: Any) -> None:
        """Add a file for MuJoCo under a name derived from its bytes, since MuJoCo caches meshes by name."""
        file = self._documents.meshes[mesh.file]
        try:
            path = file.path()
        except MechanismError as error:
            raise MechanismError(f"{error}; {GIVE_INERTIAL}") from None
        content = path.read_bytes()
        faces = (line for line in content.splitlines() if line.startswith(b"f "))
        if path.suffix.lower() == ".obj" and any(len(face.split()) > MOST_CORNERS + 1 for face in faces):
            warn(file.element, f"has polygons of more than {MOST_CORNERS} corners, which are left out as MuJoCo does")
        name = hashlib.sha256(content).hexdigest()[:24] + path.suffix.lower()
        mesh.file = name
        self._documents.files[name] = path.name
        self._spec.assets = {**self._spec.assets, name: content}

    def _look(self, mesh: Any) -> dict[str, Any]:
        """The visual of a mesh."""
        scale, rotation = np.array(mesh.scale), np.array(rotation_matrix(list(mesh.refquat)), dtype=float)
        linear = scale[:, None] * rotation.T
        shaping = (linear, -linear @ np.array(mesh.refpos))
        if mesh.file and mesh.file in self._documents.meshes:
            file = self._documents.meshes[mesh.file]
            folders = tuple(str(folder.absolute()) for folder in file.folders if folder is not None)
            return {"shaping": shaping, "file": file.name, "folders": folders}
        return {"shaping": shaping, "corners": (tuple(map(float, mesh.uservert)), tuple(map(int, mesh.userface)))}
