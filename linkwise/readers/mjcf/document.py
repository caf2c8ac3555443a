"""An MJCF document made plain: included files put in place, settings and default classes read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from linkwise.mechanism.annotation import USUAL_INTEGRATOR, USUAL_TIMESTEP
from linkwise.mechanism.checks import did_you_mean
from linkwise.readers.protocol import MAX_DEPTH, STANDARD_GRAVITY, Element, parse_xml, warn, why_unread

ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
# Switches of <option><flag> whose "disable" takes something of mechanics away; "constraint" is all of its kind.
_FLAGS = (
    *("gravity", "spring", "damper", "passive", "limit", "frictionloss", "equality", "constraint", "contact"),
    *("actuation", "clampctrl", "filterparent"),
)
_FURTHER_FLAGS = ("override", "sleep")  # whose "enable" adds something
_SWITCH = ("enable", "disable")
_INTEGRATORS = (USUAL_INTEGRATOR, "RK4", "implicit", "implicitfast", "discrete")

_POSE = ("pos", *ORIENTATIONS)
SOLVER = ("margin", "solmix", "solref", "solimp", "solreflimit", "solimplimit", "solreffriction", "solimpfriction")
_EQUALITY = ("name", "class", "active", *SOLVER)
# What the two ends of an equality are, by the attributes that name them.
EQUALITY_ENDS = {f"{kind}{end}": kind for kind in ("body", "joint", "site", "tendon") for end in (1, 2)}
_ACTUATOR = (
    *("name", "class", "group", "joint", "jointinparent", "tendon", "site", "refsite", "slidersite", "cranksite"),
    *("cranklength", "gear", "ctrllimited", "ctrlrange", "forcelimited", "forcerange", "lengthrange", "armature"),
    *("damping", "delay", "interp", "nsample", "user"),
)
_ACTIVATION = ("actdim", "actearly", "actlimited", "actrange")
_LAW = ("biasprm", "biastype", "dynprm", "dyntype", "gainprm", "gaintype")
_SERVO = ("kp", "kv", "dampratio", "inheritrange")
# What kinds of actuators have besides.
_OF_ACTUATORS = {
    "general": (*_ACTIVATION, *_LAW, "body", "inheritrange", "input", "ffrange", "velrange"),
    "motor": (),
    "position": (*_SERVO, "timeconst"),
    "velocity": ("kv",),
    "intvelocity": (*_SERVO, "actlimited", "actrange"),
    "orientation": (*_SERVO, "input"),
    "pid": (*_SERVO, "ki", "imax", "slewmax", "input", "ffrange", "posrange", "velrange"),
    "damper": ("kv",),
    "cylinder": ("timeconst", "area", "diameter", "bias"),
    "muscle": ("timeconst", "tausmooth", "range", "force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax"),
    "adhesion": ("body", "gain"),
    "dcmotor": (
        *("cogging", "controller", "inductance", "input", "lugre", "motorconst", "nominal", "resistance", "saturation"),
        "thermal",
    ),
}
_TENDON = (
    *("name", "class", "group", "limited", "range", "actuatorfrclimited", "actuatorfrcrange", "springlength"),
    *("springyield", "stiffness", "damping", "frictionloss", "armature", "margin", "user", *SOLVER),
)
# How MuJoCo's own solver and collision detection compute; of earlier versions too.
_NUMERICAL = (
    *("impratio", "cone", "jacobian", "solver", "iterations", "tolerance", "ls_iterations", "ls_tolerance"),
    *("noslip_iterations", "noslip_tolerance", "ccd_iterations", "ccd_tolerance", "mpr_iterations", "mpr_tolerance"),
    *("sleep_tolerance", "sdf_iterations", "sdf_initpoints", "apirate"),
)
# Attributes by element, those that do not matter here included; "equality joint" is the <joint> of an <equality>.
_ATTRIBUTES = {
    "body": ("name", "childclass", "mocap", "gravcomp", "sleep", "simple", "fuse", "user", *_POSE),
    "frame": ("name", "childclass", "scale", "scaling", "massscale", *_POSE),
    "replicate": ("name", "childclass", "count", "offset", "euler", "sep"),
    "inertial": ("mass", "diaginertia", "fullinertia", *_POSE),
    "freejoint": ("name", "group", "align"),
    "joint": (
        *("name", "class", "type", "group", "pos", "axis", "springdamper", "springyield", "limited", "range", "ref"),
        *("actuatorfrclimited", "actuatorfrcrange", "actuatorgravcomp", "stiffness", "springref", "armature"),
        *("damping", "frictionloss", "user", *SOLVER),
    ),
    "geom": (
        *("name", "class", "type", "contype", "conaffinity", "condim", "group", "priority", "size", "material"),
        *("friction", "mass", "density", "shellinertia", "gap", "surfacevel", "adhesion", "fromto", "hfield", "mesh"),
        *("fitscale", "rgba", "fluidshape", "fluidcoef", "castshadow", "user", *_POSE, *SOLVER),
    ),
    "compiler": (
        *("alignfree", "angle", "assetdir", "autolimits", "balanceinertia", "boundinertia", "boundmass", "conflict"),
        *("convexhull", "coordinate", "discardvisual", "eulerseq", "exactmeshinertia", "fitaabb", "fusestatic"),
        *("inertiafromgeom", "inertiagrouprange", "meshdir", "passthrough", "savecanonical", "savecompiled"),
        *("saveinertial", "settotalmass", "strippath", "texturedir", "usethread"),
    ),
    "option": (
        *("timestep", "integrator", "gravity", "wind", "density", "viscosity", "magnetic", "actuatorgroupdisable"),
        *("o_margin", "o_friction", "o_solref", "o_solimp", *_NUMERICAL),
    ),
    "flag": (
        *(*_FLAGS, *_FURTHER_FLAGS, "warmstart", "refsafe", "sensor", "midphase", "nativeccd", "island", "eulerdamp"),
        *("autoreset", "energy", "fwdinv", "invdiscrete", "multiccd", "diagexact", "ipc", "speculative"),
    ),
    "pair": ("name", "class", "geom1", "geom2", "condim", "friction", "gap", "adhesion", *SOLVER),
    "exclude": ("name", "body1", "body2"),
    "connect": ("body1", "body2", "anchor", "site1", "site2", *_EQUALITY),
    "weld": ("body1", "body2", "relpose", "anchor", "site1", "site2", "torquescale", *_EQUALITY),
    "equality joint": ("joint1", "joint2", "polycoef", *_EQUALITY),
    "equality tendon": ("tendon1", "tendon2", "polycoef", *_EQUALITY),
    "fixed": _TENDON,
    "spatial": (*_TENDON, "width", "material", "rgba"),
    "tendon": (*_TENDON, "width", "material", "rgba"),  # of default classes
    "tendon joint": ("joint", "coef"),
    **{tag: (*_ACTUATOR, *more) for tag, more in _OF_ACTUATORS.items()},
}


def has_attribute(kind: str, attribute: str) -> bool:
    """Whether elements of a kind have an attribute; those of kinds that are not known have any."""
    return kind not in _ATTRIBUTES or attribute in _ATTRIBUTES[kind]


def check_attributes(element: Element, kind: str | None = None) -> None:
    """Warn of attributes that no element of this kind has: misspelt ones would be left out in silence."""
    for key in element.attributes:
        known = _ATTRIBUTES.get(kind or element.tag)
        if known is not None and key not in known:
            warn(element, f"has the unknown attribute {key!r}, which is left out: {did_you_mean(key, known)}")


def choice(element: Element, attribute: str, known: Collection[str], default: str) -> str:
    """The value of an attribute that is one of some words."""
    value = element.attributes.get(attribute, default).strip()
    if value not in known:
        raise element.error(f'{element.label}: {attribute}="{value}" is unknown: {did_you_mean(value, known)}')
    return value


def flag(element: Element, attribute: str, default: bool = False) -> bool:
    """The value of a "true" or "false" attribute."""
    return choice(element, attribute, ("true", "false"), "true" if default else "false") == "true"


# -- files ----------------------------------------------------------------------------------------------


def with_includes(root: Element, folder: Path | None) -> Element:
    """The document with the content of included files in the place of every ``<include>``."""
    return _Includes(folder).expanded(root, folder, 0)


class _Includes:
    """Included files of one document: looked for beside the main file, then beside the file that names them."""

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


def local_file(element: Element, name: str, folders: list[Path | None]) -> Path:
    """The file of this name in the first of the folders that has it; never anything on a network."""
    if "://" in name or name.startswith(("\\\\", "//")):
        raise element.error(f"{element.label}: {name!r} is not a local file; only local files are opened")
    name = name.replace("\\", "/")
    places = [folder for folder in folders if folder is not None]
    if not places and not Path(name).is_absolute():
        raise element.error(
            f"{element.label}: {name!r} cannot be found, since a text has no folder; load the model from its file"
        )
    candidates = [place / name for place in places] or [Path(name)]
    for path in candidates:
        if path.is_file():
            return path
    unread = next((path for path in candidates if path.exists()), None)
    if unread is not None:
        raise element.error(f"{element.label}: {why_unread(unread)}")
    raise element.error(f"{element.label}: there is no file {' or '.join(map(str, dict.fromkeys(candidates)))}")


# -- settings -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What ``<compiler>`` and ``<option>`` say.

    degrees               angles are in degrees (radians otherwise)
    euler                 axes of Euler angles: lower case for intrinsic rotations, upper case for extrinsic ones
    autolimits            a joint with a range is limited even where it does not say so
    inertia_from_geoms    "auto" (of bodies without <inertial>), "true" (of all) or "false"
    inertia_groups        first and last group of geoms that have mass
    least_mass, least_inertia   lower bounds of mass and principal moments of every body
    total_mass            to which all masses are scaled, or None
    balance_inertia       moments that break the triangle inequality are replaced by their mean
    align_free            frames of free bodies that carry no others are moved to their inertia (not read)
    fit_boxes, strip_path   of primitive geoms fitted to meshes, and of the names of mesh files
    folder, mesh_folder   where files are looked for; None for a text
    gravity               (3,)
    timestep, integrator   of simulations; the format's own where the document says nothing
    disabled, enabled     words of <flag> that are not as they are by default
    disabled_groups       of actuators, which give no force
    override              the <option> whose o_friction, o_margin, ... take the place of those of all contacts, or None
    """

    degrees: bool
    euler: str
    autolimits: bool
    inertia_from_geoms: str
    inertia_groups: tuple[float, float]
    least_mass: float
    least_inertia: float
    total_mass: float | None
    balance_inertia: bool
    align_free: bool
    fit_boxes: bool
    strip_path: bool
    folder: Path | None
    mesh_folder: Path | None
    gravity: tuple[float, ...]
    timestep: float
    integrator: str
    disabled: frozenset[str]
    enabled: frozenset[str]
    disabled_groups: frozenset[float]
    override: Element | None

    def radians(self, angle: float) -> float:
        """An angle of the file in radians."""
        return float(np.radians(angle)) if self.degrees else angle

    def has(self, what: str) -> bool:
        """Whether limits, springs, ... of the file are in force."""
        parents = {"spring": "passive", "damper": "passive", "actuation": "actuation", "clampctrl": "clampctrl"}
        return not self.disabled & {what, parents.get(what, "constraint")}

    @property
    def has_passive_forces(self) -> bool:
        """Whether fluids and gravity compensation act: they stop where neither springs nor dampers do."""
        return self.has("spring") or self.has("damper")

    def drives(self, actuator: Element) -> bool:
        """Whether an actuator, with its defaults, gives a force."""
        return self.has("actuation") and actuator.number("group", 0.0) not in self.disabled_groups


def settings_of(root: Element, folder: Path | None) -> Settings:
    """The settings of a document; where several elements set the same thing, the last one counts."""
    compiler, option = merged(root, "compiler"), merged(root, "option")
    flags = merged(replace(root, children=[child for one in root.all("option") for child in one.all("flag")]), "flag")
    for element in (compiler, option, flags):
        check_attributes(element)
    if choice(compiler, "coordinate", ("local", "global"), "local") == "global":
        raise compiler.error('coordinate="global" is no longer part of MJCF; save the model with coordinate="local"')
    euler = compiler.attributes.get("eulerseq", "xyz")
    if len(euler) != 3 or set(euler.lower()) - set("xyz"):
        raise compiler.error(f'eulerseq="{euler}" must be three letters of x, y, z, X, Y, Z')
    groups = compiler.numbers("inertiagrouprange", 2) if "inertiagrouprange" in compiler.attributes else (0.0, 5.0)
    total_mass = compiler.number("settotalmass", -1.0)
    mesh_folder = compiler.attributes.get("meshdir", compiler.attributes.get("assetdir", ""))
    disabled = {word for word in _FLAGS if choice(flags, word, _SWITCH, "enable") == "disable"}
    enabled = {word for word in _FURTHER_FLAGS if choice(flags, word, _SWITCH, "disable") == "enable"}
    gravity = option.vector("gravity", STANDARD_GRAVITY)
    timestep = option.number("timestep", USUAL_TIMESTEP)
    if timestep <= 0.0:
        warn(option, f"has timestep={timestep:g}, which is not positive: {USUAL_TIMESTEP} s are taken")
        timestep = USUAL_TIMESTEP
    return Settings(
        degrees=choice(compiler, "angle", ("degree", "radian"), "degree") == "degree",
        euler=euler,
        autolimits=flag(compiler, "autolimits", True),
        inertia_from_geoms=choice(compiler, "inertiafromgeom", ("auto", "true", "false"), "auto"),
        inertia_groups=(groups[0], groups[1]),
        least_mass=compiler.number("boundmass", 0.0),
        least_inertia=compiler.number("boundinertia", 0.0),
        total_mass=total_mass if total_mass > 0.0 else None,
        balance_inertia=flag(compiler, "balanceinertia"),
        align_free=flag(compiler, "alignfree"),
        fit_boxes=flag(compiler, "fitaabb"),
        strip_path=flag(compiler, "strippath"),
        folder=folder,
        mesh_folder=folder / mesh_folder
        if folder
        else (Path(mesh_folder) if Path(mesh_folder).is_absolute() else None),
        gravity=(0.0, 0.0, 0.0) if "gravity" in disabled else gravity,
        timestep=timestep,
        integrator=choice(option, "integrator", _INTEGRATORS, USUAL_INTEGRATOR),
        disabled=frozenset(disabled),
        enabled=frozenset(enabled),
        disabled_groups=frozenset(_numbers_or_none(option, "actuatorgroupdisable", 31)),
        override=option if "override" in enabled else None,
    )


def _numbers_or_none(element: Element, attribute: str, most: int) -> tuple[float, ...]:
    """Up to so many numbers; none where the attribute is not there, or empty."""
    return element.numbers(attribute, 1, most) if element.attributes.get(attribute, "").strip() else ()


def merged(root: Element, tag: str) -> Element:
    """All elements of one tag as a single one."""
    found = list(root.all(tag))
    attributes = {key: value for one in found for key, value in one.attributes.items()}
    return replace(found[-1] if found else root, tag=tag, attributes=attributes, children=[])


def is_limited(element: Element, switch: str, attribute: str, settings: Settings, needed: bool = True) -> bool:
    """Whether a range is in force: the switch says so, or leaves it to whether there is one."""
    limited = choice(element, switch, ("true", "false", "auto"), "auto")
    if limited == "true" and needed and attribute not in element.attributes:
        raise element.error(f'{element.label}: {switch}="true" needs {attribute}="lower upper"')
    if limited == "auto" and settings.autolimits and attribute in element.attributes:
        low, high = element.numbers(attribute, 2)
        if low > high:
            written = element.attributes[attribute]
            warn(element, f'{attribute}="{written}" limits nothing: its lower end, the first, is above its upper one')
        return low < high  # "0 0" is how files write that there is no range
    return limited == "true"
