"""A mechanism as constant data: bodies in tree order, named frames, loops, gravity.

A *body* is a moving link together with all links welded to it; it moves by one joint. Bodies are numbered parents
before children. The ground is body -1. Everything here is immutable: arrays are read-only, changes give copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.display import mimebundle
from linkwise.mechanism import annotation, checks, family, resistance, scales
from linkwise.mechanism import elements as records
from linkwise.mechanism.annotation import Annotations, Note
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.constraints import ConstraintsView, with_loops
from linkwise.mechanism.contact import (
    ContactView,
    contact_notes,
    ground_plane,
    with_contact,
    with_ground,
    with_shape,
)
from linkwise.mechanism.coordinates import CoordinatesView, q_names, v_names
from linkwise.mechanism.forces import ForcesView, check_elements, with_records, with_switched
from linkwise.mechanism.metadata import MetadataView
from linkwise.mechanism.naming import FORMER, OF_OTHER_LIBRARIES, former_attribute
from linkwise.mechanism.parameters import NO_JOINTS, LimitsView, ParametersView
from linkwise.mechanism.parts import Body, Constant, Constraint, Frame, counted_parts
from linkwise.mechanism.shapes import ContactPair, Shape, check_shapes
from linkwise.mechanism.tree import Tree

GROUND = "ground"


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Constant):
    """A tree of bodies with optional loops. Build one with ``Builder``, a reader or ``linkwise.mechanisms``.

    name      for messages and generated code
    bodies    moving bodies, parents before children
    frames    name -> Frame: every link name and "ground"
    gravity   (3,) in the ground frame
    loops     joints that close loops of the tree, and couplings of joints
    annotations   what is known beyond how it moves: see ``notes``, ``initial``, ``postures``, ``metadata``
    elements      actuators, tendons and other records (``elements.py``) of what acts on it
    switched_off  (kind, name), ...: what of the elements and of the joints does not act (``with_acting``)
    shapes, contact_pairs   simple shapes fixed to links, and which of them push each other apart

    All else that belongs together is a view: ``tree``, ``coordinates``, ``parameters``, ``limits``, ``forces``,
    ``contact``, ``constraints``, ``metadata``.
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
        object.__setattr__(self, "elements", records.checked(self.elements))
        object.__setattr__(self, "switched_off", tuple((kind, name) for kind, name in self.switched_off))
        check_elements(self)

    def _carried(self, frame: Frame) -> Frame:
        """The frame completed with the link that carries it."""
        if not -1 <= frame.body < len(self.bodies):
            raise MechanismError(f"frame {frame.name!r} is fixed to body {frame.body}, which does not exist")
        link = GROUND if frame.body < 0 else self.bodies[frame.body].link
        return frame if frame.link == link else replace(frame, link=link)

    def _check_references(self) -> None:
        """Check that every index and name used by one part refers to another."""
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

    @cached_property
    def n_constraints(self) -> int:
        """Number of scalar constraints: 6 minus the degrees of freedom of the joint for every loop, 1 for couplings."""
        return sum(loop.n_constraints for loop in self.loops)

    @property
    def n_ctrl(self) -> int:
        """Number of control inputs: one per active actuator."""
        return len(self.forces.actuators)

    @property
    def n_links(self) -> int:
        """Number of moving links, one per moving joint."""
        return len(self.bodies)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Moving joints in body order, mimic joints included."""
        return tuple(body.joint for body in self.bodies)

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """Moving links, one per moving joint, in body order."""
        return tuple(body.link for body in self.bodies)

    @cached_property
    def q_names(self) -> tuple[str, ...]:
        """One name per number of q: the joint's, or "joint.x" of joints with several; quaternions are "joint.qw",
        "joint.qx", ...  States by joint take these too, and "joint.roll", ".pitch", ".yaw" of orientations."""
        return q_names(self.bodies)

    @cached_property
    def v_names(self) -> tuple[str, ...]:
        """One name per number of v: the joint's, or "joint.x" of joints with several; of joints with quaternions
        "joint.wx", ..., the angular velocity, and "joint.vx", ..., both along the axes of the child."""
        return v_names(self.bodies)

    # Views ---------------------------------------------------------------------------------------------------------

    @cached_property
    def tree(self) -> Tree:
        """Topology of the tree: parents, children, paths."""
        return Tree(tuple(body.parent for body in self.bodies))

    @property
    def coordinates(self) -> CoordinatesView:
        """Names, indices and measures of coordinates by joint."""
        return CoordinatesView(self)

    @property
    def parameters(self) -> ParametersView:
        """Masses, inertias, armature, damping, friction and springs as arrays."""
        return ParametersView(self)

    @property
    def limits(self) -> LimitsView:
        """Limits of q, v and joint forces as arrays."""
        return LimitsView(self)

    @property
    def forces(self) -> ForcesView:
        """Force elements: which act, actuators and their ranges, tendons."""
        return ForcesView(self)

    @property
    def contact(self) -> ContactView:
        """Shapes by name, elementary contacts, pairs that could touch."""
        return ContactView(self)

    @property
    def constraints(self) -> ConstraintsView:
        """Rows of constraints, drives, the mechanism at a time."""
        return ConstraintsView(self)

    @property
    def metadata(self) -> MetadataView:
        """Keyframes, groups, motors, time step and visuals from the file."""
        return MetadataView(self)

    # Lookup by name ------------------------------------------------------------------------------------------------

    @cached_property
    def _body_of_joint(self) -> dict[str, int]:
        return {body.joint: index for index, body in enumerate(self.bodies)}

    @cached_property
    def _slices(self) -> tuple[tuple[slice, slice], ...]:
        """Slices of each body's joint in q and in v; mimic joints have those of their leaders."""
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

    def _joint_hint(self, name: str) -> str:
        """Suggestion for an unknown joint name."""
        if any(self.coordinates.index(quantity, name) is not None for quantity in "qv"):
            joint = self.coordinates.joint_of(name)
            return f"that is one coordinate of joint {joint!r}; name the joint here, with a number for each coordinate"
        hint = self.constraints.hint(name)
        if hint or name not in self.frames:  # pins of linkages are called like their frames
            return hint or checks.did_you_mean(name, self._body_of_joint)
        body = self.frames[name].body
        mover = "which no joint moves" if body < 0 else f"which joint {self.bodies[body].joint!r} moves"
        return f"that is a link, {mover}; give the name of a joint"

    def q_index(self, joint: str) -> slice:
        """Slice of the named joint in q; mimic joints have that of their leader."""
        return self._slices[self.body_index(joint)][0]

    def v_index(self, joint: str) -> slice:
        """Slice of the named joint in v; mimic joints have that of their leader."""
        return self._slices[self.body_index(joint)][1]

    def frame(self, name: str) -> Frame:
        """The named frame: a link, a welded link, an added frame or "ground". Its ``link`` is the moving link that
        carries it.
        """
        if not isinstance(name, str):
            raise TypeError(f"a link is named by a string, got {name!r}")
        if name not in self.frames:
            raise MechanismError(
                f"mechanism {self.name!r} has no link or frame {name!r}: " + checks.did_you_mean(name, self.frames)
            )
        return self.frames[name]

    # Scales and knowledge --------------------------------------------------------------------------------------------

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on ignored parts of the file or of contact: count, location and advice. ``forces.active`` lists the
        rest.
        """
        return (*self.annotations.notes, *contact_notes(self))

    @cached_property
    def initial(self) -> NDArray[np.float64]:
        """(nq,): the initial configuration of the file (``qpos0`` of MJCF); neutral by default."""
        return annotation.configuration(self.bodies, self.annotations.initial)

    @cached_property
    def postures(self) -> Mapping[str, NDArray[np.float64]]:
        """Named configurations (nq,): keyframes of MJCF, group states of SRDF; joints they leave out are as in
        ``initial``."""
        start, named = self.annotations.initial, self.annotations.postures
        return MappingProxyType(
            {name: annotation.configuration(self.bodies, start, coordinates) for name, coordinates in named}
        )

    @cached_property
    def _size(self) -> tuple[float, float]:
        """Characteristic length and mass, from the first member of the family."""
        return scales.size(self)

    @cached_property
    def _scales(self) -> scales.Scales:
        """Characteristic length, mass and time: ``linkwise.mechanism.scales``."""
        return scales.measure(self)

    @cached_property
    def _massless_joints(self) -> tuple[resistance.MasslessJoint, ...]:
        return resistance.massless_joints(self)

    @cached_property
    def _loops_resist(self) -> bool | None:
        return resistance.loops_resist(self)

    # Variants ------------------------------------------------------------------------------------------------------

    @cached_property
    def _family(self) -> family.Family:
        """Data shared with variants that differ in numbers only."""
        return family.Family(self.frames)

    def with_gravity(self, gravity: Any) -> Mechanism:
        """A copy in another field of gravity, (3,) in the ground frame."""
        return family.variant(self, [family.GRAVITY], gravity=checks.checked_array("gravity", gravity, (3,)))

    def with_locked(self, joints: Mapping[str, Any] | Iterable[str] = NO_JOINTS, /, **named: Any) -> Mechanism:
        """A copy with joints frozen: ``with_locked(elbow=0.3)`` or ``with_locked({"elbow": 0.3})``; or
        ``with_locked(["elbow"])``, at the initial coordinates (``mech.initial``).

        The links are welded to their parents and stay as named frames; joints that mimic a locked joint are locked too.
        """
        return _edit().lock(self, joints, named)

    def with_limits(self, limits: Mapping[str, Any] = NO_JOINTS, /, **named: Any) -> Mechanism:
        """A copy with new limits, ``{joint name: Limits(...)}`` or joint=Limits(...). They replace all limits of the
        joint, including the total effort limit of its actuators.
        """
        return _edit().set_joint_numbers(self, "limits", limits, named)

    def with_frame(self, name: str, link: str, pose: Any = None) -> Mechanism:
        """A copy with a further frame, fixed to a link or frame at ``pose``. Arguments named ``link`` accept
        its name.
        """
        return _edit().add_frame(self, name, link, pose)

    def with_payload(self, link: str, mass: float, com: Any = (0.0, 0.0, 0.0), inertia: Any = None) -> Mechanism:
        """A copy that carries a further rigid body, fixed to a link or welded frame.

        com, inertia   in the frame of ``link``, the inertia about com: (3, 3), (3,) or None for a point mass; com may
                       be a pose, whose axes are then those of the inertia
        """
        return _edit().attach(self, link, mass, com, inertia)

    def with_mechanism(self, other: Mechanism, frame: str, pose: Any = None, prefix: str = "") -> Mechanism:
        """A copy with another mechanism on a link or frame: a hand on an arm, a second robot on the "ground".

        other    keeps everything except its gravity: loops, actuators, shapes, postures, ...; parts that are fixed to
                 its ground are welded to ``frame``, with their mass (planes are left out on a moving frame).  Its
                 coordinates follow those of this mechanism
        pose     of its ground in the frame; that place becomes the frame "PREFIXmount"
        prefix   of all its names, which must differ from the names of this mechanism
        """
        from linkwise.mechanism.edit import attached

        return attached(self, other, frame, pose, prefix)

    def with_loops(self, *loops: Constraint) -> Mechanism:
        """A copy with loops and couplings added, ``with_loops(first, second)``."""
        return with_loops(self, loops)

    def with_acting(self, *only: Any, **kinds: Any) -> Mechanism:
        """A copy in which other elements act: ``with_acting(False)`` nothing, ``with_acting(True)`` everything,
        ``with_acting("damping", "actuators")`` only these kinds; ``with_acting(limits=False)`` switches one kind,
        ``with_acting(actuators=("hip", "knee"))`` only these actuators, the other kinds as before.

        Kinds are springs, damping, friction, limits, actuators, tendons, gravity_compensation, fluid and contact.
        """
        return with_switched(self, only, kinds)

    def with_elements(self, *elements: Any) -> Mechanism:
        """A copy with further actuators, tendons and the like (``lw.forces.Actuator``, ``lw.forces.Tendon``, ...).

        Joints of new actuators join ``metadata.actuated_joints`` if these are known.
        """
        return with_records(self, (*self.elements, *elements))

    def with_shape(self, name: str, link: str, kind: str, size: Any = (), pose: Any = None, **more: Any) -> Mechanism:
        """A copy with a further shape (``lw.contact.Shape``) fixed to a link.

        It touches the ground planes that all other shapes on moving links touch, such as a floor from ``with_ground``;
        other contacts are added by ``with_ground`` and ``with_contact``.
        """
        return with_shape(self, Shape(name, link, kind, size, pose, **more))

    def with_ground(
        self,
        height: float = 0.0,
        normal: Any = (0.0, 0.0, 1.0),
        *,
        friction: float | None = None,
        shapes: Iterable[str] | None = None,
        step: float | None = None,
        name: str = "floor",
        **numbers: float,
    ) -> Mechanism:
        """A copy with a ground plane ``height`` above the origin along ``normal``.

        friction   coefficient of all these contacts; None: the coefficient of the other shape, but at least 1
        shapes     names of the shapes that touch it; None: all that are fixed to moving links
        step       step of the motions to compute; long steps need softer contacts.  None: the step of the file, if it
                   has one
        numbers    other numbers of ``lw.contact.ContactLaw`` for all these contacts, such as ``stiffness=1e5``
        """
        numbers |= {} if friction is None else {"friction": friction}
        return with_ground(self, ground_plane(name, height, normal), shapes, step, numbers)

    def with_contact(self, *pairs: tuple[str, str], step: float | None = None, **numbers: float) -> Mechanism:
        """A copy in which these pairs of shapes push each other apart, ``with_contact(("foot", "floor"),
        friction=0.5)``; without pairs the numbers of all contacts change.

        step      step of the motions to compute: numbers left out are chosen for it, as ``lw.rollout`` does by itself;
                  long steps need softer contacts, or a standing robot rattles
        numbers   of ``lw.contact.ContactLaw``
        """
        return with_contact(self, pairs, step, numbers)

    def save(self, path: Any, strict: bool = False, meshes: bool = False) -> None:
        """Write the mechanism to a file, ``"robot.urdf"`` or ``"robot.xml"`` (MJCF); ``lw.load`` of the file has the
        same dynamics. ``"robot.html"`` is the page of ``show``.

        One ``lw.files.OmissionWarning`` lists the parts that the format cannot express; with ``strict`` it is an error.
        Joints and loops that cannot be composed of joints of the format are an error. Loops that URDF cannot express go
        to a companion file, ``"robot.loops.toml"``, which ``lw.load`` reads too; drives, which follow functions of
        time, go to no file.
        """
        from linkwise import writers  # when asked to

        writers.save(self, path, strict, meshes)

    def show(self, **options: Any) -> Any:
        """An interactive page with sliders, for a notebook or ``.save("robot.html")``; self-contained. Options as in
        ``lw.viewer.page``: ``meshes=True`` draws the meshes of the file.
        """
        from linkwise import viewer  # when asked to

        return viewer.page(self, **options)

    @cached_property
    def spanning_tree(self) -> Mechanism:
        """The mechanism without its loops."""
        return family.without_loops(self) if self.loops else self

    if not TYPE_CHECKING:  # for which all names would be there

        def __getattr__(self, name: str) -> Any:
            """Moved attributes, with a warning; for other unknown names, the name in this library if it is known."""
            if name in FORMER:
                return former_attribute(self, name)
            meant = OF_OTHER_LIBRARIES.get(name)
            hint = f"; here: {meant}" if meant else ""
            raise AttributeError(f"'Mechanism' object has no attribute {name!r}{hint}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"<Mechanism {self.name!r}: {counted_parts(self)}, gravity={tuple(self.gravity.tolist())}>"

    _repr_mimebundle_ = mimebundle


def _edit() -> Any:
    """The module of variants, which imports this one and is imported when needed."""
    from linkwise.mechanism import edit

    return edit


def require_mechanism(mech: Any) -> None:
    if not isinstance(mech, Mechanism):
        advice = "make one with linkwise.load or Builder, and give it first"
        raise TypeError(f"a Mechanism is needed, got {type(mech).__name__}: {advice}")
