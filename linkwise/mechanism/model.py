"""A mechanism as constant data: bodies in tree order, named frames, loops, gravity.

A *body* is a moving link together with all links welded to it; it moves by one joint. Bodies are numbered parents
before children. The ground is body -1. Everything here is immutable: arrays are read-only, changes give copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.display import mimebundle
from linkwise.mechanism import checks, family, resistance, scales
from linkwise.mechanism.acting import ActingElements
from linkwise.mechanism.annotated import Annotated
from linkwise.mechanism.annotation import Annotations
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.constrained import Constrained
from linkwise.mechanism.contact import Touching
from linkwise.mechanism.naming import OF_OTHER_LIBRARIES, NamedCoordinates
from linkwise.mechanism.parts import Body, Constant, Constraint, Frame, Place, counted_parts
from linkwise.mechanism.shapes import ContactPair, Shape, check_shapes

GROUND = "ground"
NO_JOINTS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Constant, Constrained, ActingElements, Touching, NamedCoordinates, Annotated):
    """A tree of bodies with optional loops. Build one with ``Builder``, a reader or ``linkwise.mechanisms``.

    name      for messages and generated code
    bodies    moving bodies, parents before children
    frames    name -> Frame: every link name and "ground"
    gravity   (3,) in the ground frame
    loops     joints that close loops of the tree, and couplings of joints
    annotations   what is known beyond how it moves: see ``notes``, ``initial``, ``postures``, ``groups``
    elements      actuators, tendons and other records (``elements.py``) of what acts on it
    switched_off  (kind, name), ...: what of the elements and of the joints does not act (``with_acting``)
    shapes, contact_pairs   simple shapes fixed to links, and which of them push each other apart
    """

    name: str
    bodies: tuple[Body, ...]
    frames: Mapping[str, Frame]
    gravity: NDArray[np.float64]
    loops: tuple[Constraint, ...] = ()
    annotations: Annotations = field(default=Annotations(), compare=False)
    elements: tuple[Any, ...] = ()
    switched_off: tuple[tuple[str, str], ...] = ()
    shapes: tuple[Shape, ...] = ()
    contact_pairs: tuple[ContactPair, ...] = ()
    _kernels: dict[Any, Any] = field(default_factory=dict, init=False, compare=False)
    _locks: dict[int, Any] = field(default_factory=dict, init=False, compare=False)  # of processes that compile
    _changed: frozenset[family.Change] = field(default=frozenset(), init=False, compare=False)  # against its family

    def __post_init__(self) -> None:
        frames = self.frames.values() if isinstance(self.frames, Mapping) else self.frames
        object.__setattr__(self, "name", checks.checked_name("mechanism", self.name))
        object.__setattr__(self, "bodies", tuple(self.bodies))
        object.__setattr__(self, "frames", MappingProxyType({frame.name: self._carried(frame) for frame in frames}))
        object.__setattr__(self, "gravity", checks.checked_array("gravity", self.gravity, (3,)))
        for name in ("loops", "shapes", "contact_pairs"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        self._check_references()
        self._check_elements()

    def _carried(self, frame: Frame) -> Frame:
        """The frame, which knows the link that carries it."""
        if not -1 <= frame.body < len(self.bodies):
            raise MechanismError(f"frame {frame.name!r} is fixed to body {frame.body}, which does not exist")
        link = GROUND if frame.body < 0 else self.bodies[frame.body].link
        return frame if frame.link == link else replace(frame, link=link)

    def _check_references(self) -> None:
        """Every index and name that one part uses for another leads somewhere sensible."""
        if len(self._body_of_joint) != len(self.bodies):
            raise MechanismError("two moving joints have the same name")
        for index, body in enumerate(self.bodies):
            if not -1 <= body.parent < index:
                raise MechanismError(f"body {body.link!r} must come after its parent (index {body.parent})")
            if body.mimic:
                mimicked = self.bodies[self.body_index(body.mimic.joint)]
                single = all(b.kind.nv == 1 and b.kind.rates_are_velocities for b in (mimicked, body))
                if mimicked.mimic or not single:
                    raise MechanismError(
                        f"joint {body.joint!r} cannot mimic {mimicked.joint!r}: each needs one coordinate whose rate "
                        "is its velocity, and the mimicked one must be independent"
                    )
        for name in (GROUND, *self.link_names):
            self.frame(name)
        self._check_loops()
        check_shapes(self)

    def _check_loops(self) -> None:
        names: set[str] = set()
        for loop in self.loops:
            if loop.name in names:
                raise MechanismError(f"two loops are named {loop.name!r}; names must be unique")
            names.add(loop.name)
            loop.check(self)

    # Sizes and names -----------------------------------------------------------------------------------------------

    @cached_property
    def nq(self) -> int:
        """Number of position coordinates."""
        return sum(body.nq for body in self.bodies)

    @cached_property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return sum(body.nv for body in self.bodies)

    @property
    def n_links(self) -> int:
        """Number of moving links, one per moving joint."""
        return len(self.bodies)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Moving joints in body order, those that mimic others included."""
        return tuple(body.joint for body in self.bodies)

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """Moving links, one per moving joint, in body order."""
        return tuple(body.link for body in self.bodies)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Every name that a ``link`` argument accepts: the ground, moving links and links welded to either."""
        return tuple(self.frames)

    # Tree ----------------------------------------------------------------------------------------------------------

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Index of each body's parent, -1 for the ground."""
        return tuple(body.parent for body in self.bodies)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Indices of each body's children."""
        children: list[list[int]] = [[] for _ in self.bodies]
        for index, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(index)
        return tuple(map(tuple, children))

    def subtree(self, index: int) -> tuple[int, ...]:
        """Body ``index`` and everything it carries, ascending."""
        inside = {index}
        for i in range(index + 1, len(self.bodies)):
            if self.parents[i] in inside:
                inside.add(i)
        return tuple(sorted(inside))

    def path(self, index: int) -> tuple[int, ...]:
        """Bodies from the one next to the ground out to ``index``, both included; empty for the ground (-1)."""
        path = []
        while index >= 0:
            path.append(index)
            index = self.parents[index]
        return tuple(reversed(path))

    # Lookup by name ------------------------------------------------------------------------------------------------

    @cached_property
    def _body_of_joint(self) -> dict[str, int]:
        return {body.joint: index for index, body in enumerate(self.bodies)}

    @cached_property
    def _slices(self) -> tuple[tuple[slice, slice], ...]:
        """Each body's place in q and in v; that of the mimicked joint for one that mimics another."""
        slices, q, v = [], 0, 0
        for body in self.bodies:
            slices.append((slice(q, q + body.nq), slice(v, v + body.nv)))
            q, v = q + body.nq, v + body.nv
        mimicked_joints = (self._body_of_joint[b.mimic.joint] if b.mimic else i for i, b in enumerate(self.bodies))
        return tuple(slices[mimicked] for mimicked in mimicked_joints)

    def body_index(self, joint: str) -> int:
        """Index of the body that the named joint moves."""
        if joint not in self._body_of_joint:
            raise MechanismError(f"mechanism {self.name!r} has no moving joint {joint!r}: {self._joint_hint(joint)}")
        return self._body_of_joint[joint]

    def moving_link_index(self, link: str) -> int:
        """Index of the body whose own frame is the named link: one that a joint moves, no frame welded to it."""
        if link in self.link_names:
            return self.link_names.index(link)
        if link not in self.frames:
            return self.link_names.index(checks.one_of("moving link", link, self.link_names))
        body = self.frames[link].body
        welded = f"welded to {self.link_names[body]!r}: name that moving link" if body >= 0 else "fixed to the ground"
        raise ValueError(f"{link!r} of mechanism {self.name!r} is {welded}")

    def _joint_hint(self, name: str) -> str:
        """What may have been meant where a joint was asked for."""
        if any(self.coordinate_place(quantity, name) is not None for quantity in "qv"):
            joint = self.joint_of_coordinate(name)
            return f"that is one coordinate of joint {joint!r}; name the joint here, with a number for each coordinate"
        if (told := self.loop_hint(name)) or name not in self.frames:  # pins of linkages are called like their frames
            return told or checks.did_you_mean(name, self._body_of_joint)
        body = self.frames[name].body
        mover = "which no joint moves" if body < 0 else f"which joint {self.bodies[body].joint!r} moves"
        return f"that is a link, {mover}; give the name of a joint"

    def q_index(self, joint: str) -> slice:
        """Where the named joint's position coordinates are in q; for a mimic joint those of the joint it follows."""
        return self._slices[self.body_index(joint)][0]

    def v_index(self, joint: str) -> slice:
        """Where the named joint's velocity coordinates are in v; for a mimic joint those of the joint it follows."""
        return self._slices[self.body_index(joint)][1]

    def place(self, joint: str) -> Place:
        """Where the named joint's own coordinates are, with the ratio and offset of a joint that mimics another; or one
        of its coordinates, "joint.x", where rates are velocities."""
        if joint not in self._body_of_joint and (one := self.single_place(joint)) is not None:
            return one
        body = self.bodies[self.body_index(joint)]
        ratio, offset = (body.mimic.ratio, body.mimic.offset) if body.mimic else (1.0, 0.0)
        return Place(joint, self.q_index(joint), self.v_index(joint), ratio, offset)

    # The configuration manifold --------------------------------------------------------------------------------------

    @cached_property
    def rates_are_velocities(self) -> bool:
        """Whether dq/dt = v for all joints: then q is a set of ordinary coordinates."""
        return all(body.kind.rates_are_velocities for body in self.bodies)

    @cached_property
    def structure_constants(self) -> NDArray[np.float64]:
        """(nv, nv, nv): c with [E_i, E_j] = sum over k of c[i, j, k] E_k, E the tangent directions of v: zero but for
        joints whose steps do not commute, such as those that rotate freely."""
        constants = np.zeros((self.nv,) * 3)
        for body in self.bodies:
            if not body.mimic:
                own = self.v_index(body.joint)
                constants[own, own, own] = body.kind.structure_constants
        return _read_only(constants)

    @cached_property
    def steps_commute(self) -> bool:
        """Whether two steps along tangent vectors may be taken in either order."""
        return all(body.kind.steps_commute for body in self.bodies)

    def frame(self, name: str) -> Frame:
        """The named frame: a link, moving or welded, or "ground"; its ``link`` is the moving one that carries it."""
        if not isinstance(name, str):
            raise TypeError(f"a link is named by a string, got {name!r}")
        if name not in self.frames:
            raise MechanismError(
                f"mechanism {self.name!r} has no link or frame {name!r}: " + checks.did_you_mean(name, self.frames)
            )
        return self.frames[name]

    # Parameters ----------------------------------------------------------------------------------------------------

    @cached_property
    def masses(self) -> NDArray[np.float64]:
        """(n_links,) mass of each body."""
        return _read_only(np.array([body.mass for body in self.bodies], dtype=float))

    @cached_property
    def coms(self) -> NDArray[np.float64]:
        """(n_links, 3) centre of mass of each body in its link frame."""
        return _read_only(np.array([body.com for body in self.bodies], dtype=float).reshape(-1, 3))

    @cached_property
    def inertias(self) -> NDArray[np.float64]:
        """(n_links, 3, 3) inertia of each body about its centre of mass, along the axes of its link frame."""
        return _read_only(np.array([body.inertia for body in self.bodies], dtype=float).reshape(-1, 3, 3))

    @cached_property
    def q_lower(self) -> NDArray[np.float64]:
        """(nq,) lower limits of q, -inf where there is none; those of joints that mimic others are not among them."""
        return self._of_joints("limits.lower")

    @cached_property
    def q_upper(self) -> NDArray[np.float64]:
        """(nq,) upper limits of q, inf where there is none; those of joints that mimic others are not among them."""
        return self._of_joints("limits.upper")

    @cached_property
    def v_limit(self) -> NDArray[np.float64]:
        """(nv,) the largest ``|v|``, inf where there is no limit."""
        return self._of_joints("limits.velocity")

    @cached_property
    def effort_limit(self) -> NDArray[np.float64]:
        """(nv,) the largest joint forces and torques, inf where there is no limit."""
        return self._of_joints("limits.effort")

    @cached_property
    def armature(self) -> NDArray[np.float64]:
        """(nv,) reflected rotor inertias; those of joints that mimic others are not among them, here and below."""
        return self._of_joints("armature")

    def _of_joints(self, which: str) -> NDArray[np.float64]:
        values = map(attrgetter(which), (body for body in self.bodies if not body.mimic))
        return _read_only(np.array([x for of_joint in values for x in of_joint], dtype=float))

    @cached_property
    def mimic_joints(self) -> tuple[str, ...]:
        """Joints that move with others, by name."""
        return tuple(body.joint for body in self.bodies if body.mimic)

    @cached_property
    def _size(self) -> tuple[float, float]:
        """Characteristic length and mass; those of the first of its family."""
        return scales.size(self)

    @cached_property
    def _scales(self) -> scales.Scales:
        """Characteristic length, mass and time: ``linkwise.mechanism.scales``."""
        return scales.measure(self)

    @cached_property
    def singular_joints(self) -> tuple[str, ...]:
        """Independent joints that can move while nothing with inertia does: the mass matrix of the tree is singular at
        every configuration, and no force law gives them an acceleration."""
        return tuple(one.joint for one in self._massless_joints)

    @cached_property
    def _massless_joints(self) -> tuple[resistance.MasslessJoint, ...]:
        return resistance.massless_joints(self)

    @cached_property
    def _loops_resist(self) -> bool | None:
        return resistance.loops_resist(self)

    # Variants ------------------------------------------------------------------------------------------------------

    @cached_property
    def _family(self) -> family.Family:
        """What it shares with variants that differ in numbers only; there from the first of them on."""
        return family.Family(self.frames)

    def with_shared_code(self) -> Mechanism:
        """A copy whose variants (``with_payload``, ``with_gravity``, ...) all run the same code, the first too: results
        of one are the same to the last bit, whichever others were computed before it."""
        return family.alike(self)

    def with_gravity(self, gravity: Any) -> Mechanism:
        """A copy in another field of gravity, (3,) in the ground frame."""
        return family.variant(self, [family.GRAVITY], gravity=checks.checked_array("gravity", gravity, (3,)))

    def with_locked(self, joints: Mapping[str, Any] | Iterable[str] = NO_JOINTS, /, **named: Any) -> Mechanism:
        """A copy with joints frozen: ``with_locked(elbow=0.3)`` or ``with_locked({"elbow": 0.3})``; or
        ``with_locked(["elbow"])``, where they are initially (``mech.initial``).

        Each value is the joint's coordinates.  The links they move are welded to their parents and stay as named
        frames; joints that mimic a locked one are locked with it.
        """
        return _edit().lock(self, _edit().by_joint("coordinates", _edit().initially(self, joints), named))

    def with_armature(self, armature: Mapping[str, Any] | float = NO_JOINTS, /, **named: Any) -> Mechanism:
        """A copy with these reflected rotor inertias: ``{joint name: a number, or one per velocity coordinate}``, or
        joints as keywords; or a number for all joints but floating ones."""
        return _edit().set_of_joints(self, "armature", _edit().by_joint("armature", armature, named, self))

    def with_damping(self, damping: Mapping[str, Any] | float = NO_JOINTS, /, **named: Any) -> Mechanism:
        """A copy with this viscous damping in the joints, given as for ``with_armature``.

        Like the damping of a file it acts in ``lw.simulate``, ``lw.rollout`` and whatever else looks at ``acting``; the
        functions of plain dynamics do not.
        """
        return _edit().set_of_joints(self, "damping", _edit().by_joint("damping", damping, named, self))

    def with_springs(self, stiffness: Mapping[str, Any], /, rest: Mapping[str, Any] = NO_JOINTS) -> Mechanism:
        """A copy with springs of this stiffness in the joints, given as for ``with_armature``, that are at rest at the
        coordinates ``rest``; where that says nothing, where springs of the joint were at rest before, at first zero."""
        return _edit().set_springs(self, stiffness, rest)

    def with_limits(self, limits: Mapping[str, Any] = NO_JOINTS, /, **named: Any) -> Mechanism:
        """A copy with these limits: ``{joint name: Limits(...)}``, or joints as keywords.  They replace all limits of
        the joint, that of what its actuators give it together included."""
        return _edit().set_of_joints(self, "limits", _edit().by_joint("limits", limits, named))

    def with_frame(self, name: str, link: str, pose: Any = None) -> Mechanism:
        """A copy with a further frame, fixed to a link or frame at ``pose``: ``link`` arguments accept its name."""
        return _edit().add_frame(self, name, link, pose)

    def with_payload(self, link: str, mass: float, com: Any = (0.0, 0.0, 0.0), inertia: Any = None) -> Mechanism:
        """A copy that carries a further rigid body, fixed to a link or welded frame.

        com, inertia   in the frame of ``link``, the inertia about com: (3, 3), (3,) or None for a point mass; com may
                       be a pose, whose axes are then those of the inertia
        """
        return _edit().attach(self, link, mass, com, inertia)

    def with_mechanism(self, other: Mechanism, frame: str, pose: Any = None, prefix: str = "") -> Mechanism:
        """A copy with another mechanism on a link or frame: a hand on an arm, a second robot on the "ground".

        other    with all that it has but gravity: loops, actuators, shapes, postures, ...; what is fixed to its ground
                 is welded to ``frame``, with its mass (planes are left out where that moves).  Its coordinates are last
        pose     of its ground in the frame; that place is the frame "PREFIXmount"
        prefix   of all its names, none of which may be there already
        """
        from linkwise.mechanism.attachment import attached

        return attached(self, other, frame, pose, prefix)

    def with_inertial_parameters(self, parameters: Any, strict: bool = True) -> Mechanism:
        """A copy with these numbers, (10 n_links,) in the order of ``lw.estimation.inertial_parameters``.

        With ``strict``, numbers that no rigid body has are an error; without it they are kept and reported as warnings.
        Numbers identified from torques often are such, as torques see some combinations only:
        ``lw.estimation.physical_parameters`` gives the nearest that are not.
        """
        from linkwise.mechanism.inertial_parameters import with_inertial_parameters

        return with_inertial_parameters(self, parameters, strict)

    def save(self, path: Any, strict: bool = False, meshes: bool = False) -> None:
        """Write it to a file, ``"robot.urdf"`` or ``"robot.xml"`` (MJCF); ``lw.load`` of it has the same dynamics.
        Or as ``show`` does to ``"robot.html"``, for people to look at.

        What the format cannot say is told in one ``lw.files.OmissionWarning``, with ``strict`` as an error; joints and
        loops that cannot be composed of what it has are an error.  Loops that URDF has no words for go to a companion
        file, ``"robot.loops.toml"``, which ``lw.load`` reads along; drives, which follow functions of time, to none.
        """
        from linkwise import writers  # when asked to

        writers.save(self, path, strict, meshes)

    def show(self, **options: Any) -> Any:
        """A page in which it is turned around and moved by sliders, for a notebook or ``.save("robot.html")``: complete
        in itself.  Options as of ``lw.viewer.page``: ``meshes=True`` for those of its file."""
        from linkwise import viewer  # when asked to

        return viewer.page(self, **options)

    @cached_property
    def spanning_tree(self) -> Mechanism:
        """The same mechanism without its loops."""
        return family.without_loops(self) if self.loops else self

    if not TYPE_CHECKING:  # for which all names would be there

        def __getattr__(self, name: str) -> Any:
            """Names what is called otherwise here."""
            meant = OF_OTHER_LIBRARIES.get(name)
            hint = f"; here: {meant}" if meant else ""
            raise AttributeError(f"'Mechanism' object has no attribute {name!r}{hint}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"<Mechanism {self.name!r}: {counted_parts(self)}, gravity={tuple(self.gravity.tolist())}>"

    _repr_mimebundle_ = mimebundle


def _edit() -> Any:
    """What makes variants: it builds on this module, so it is looked up when needed."""
    from linkwise.mechanism import edit

    return edit


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    array.flags.writeable = False
    return array


def require_mechanism(mech: Any) -> None:
    if not isinstance(mech, Mechanism):
        advice = "make one with linkwise.load or Builder, and give it first"
        raise TypeError(f"a Mechanism is needed, got {type(mech).__name__}: {advice}")
