"""Actuators, fixed tendons, gravity compensation and fluids of a compiled model as force elements."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from linkwise.mechanism import Actuator, EffortRange, FluidForce, GravityCompensation, Mechanism, Tendon
from linkwise.mechanism.elements import LEAST_MASS, box_of_inertia, ellipsoid_of_shape
from linkwise.mechanism.naming import unused_name
from linkwise.readers.mjcf.compiler import Compiled, rotation_of
from linkwise.readers.mjcf.geometry import SHAPES
from linkwise.readers.mjcf.omissions import is_fixed_tendon, note_softness
from linkwise.readers.mjcf.tree import BodyJoint, Rotor, Tree
from linkwise.readers.protocol import Element, omit

#: Gain types of actuators that are no force law of their length, its rate, a control input and one activation.
_OTHER_LAWS = {
    "muscle": "its force is that of a muscle",
    "so3": "it drives orientations",
    "pid": "it has an integral term",
    "dcmotor": "it is an electrical machine",
    "user": "its force is computed by a program",
}
_ELSEWHERE = {
    "slidercrank": "it is a slider-crank",
    "body": "it acts through contacts",
    "so3": "it drives orientations",
}
_NOT_ACTING = "does not act: {why}; give its force as tau"
_EVERYTHING = (-math.inf, math.inf)
_KINDS = {"muscle": "muscle", "so3": "orientation", "pid": "pid", "dcmotor": "dcmotor"}  # gain types -> elements
Interval = tuple[float, float]


@dataclass(frozen=True)
class Driven:
    """An actuator of the model.

    record   None if the actuator is ignored
    arms     derivatives of its length by hinges and slides by name, and 1 for a joint of another kind
    acts     whether it is switched on
    """

    element: Element
    record: Actuator | None
    arms: dict[str, float] = field(default_factory=dict)
    acts: bool = True
    controls: tuple[int, ...] = ()
    activations: tuple[int, ...] = ()


class Forces:
    """Tendons and actuators."""

    def __init__(self, tree: Tree) -> None:
        self._tree, self._compiled, self._model = tree, tree.compiled, tree.compiled.model
        self._by_index = {joint.index: joint for joint in tree.all_joints}
        names = self._compiled.names("tendon", self._model.ntendon)
        taken = set(names)
        self._tendon_names = [
            name or (unused_name("tendon", taken) if is_fixed_tendon(self._compiled, i) else "")
            for i, name in enumerate(names)
        ]

    def _enum(self, prefix: str, value: int) -> str:
        """The word for one of MuJoCo's numbers."""
        return getattr(self._compiled.library, f"mjt{prefix}")(int(value)).name.split("_")[-1].lower()

    # -- tendons ------------------------------------------------------------------------------------------------

    def lever_arms(self, tendon: int) -> dict[str, float]:
        """Derivatives of a fixed tendon's length by joint."""
        model, arms = self._model, dict[str, float]()
        start = int(model.tendon_adr[tendon])
        for wrap in range(start, start + int(model.tendon_num[tendon])):
            name = self._by_index[int(model.wrap_objid[wrap])].name
            arms[name] = arms.get(name, 0.0) + float(model.wrap_prm[wrap])
        return arms

    def fixed_tendon(self, tendon: int) -> dict[str, float] | None:
        """Lever arms of a fixed tendon; None of others."""
        return self.lever_arms(tendon) if is_fixed_tendon(self._compiled, tendon) else None

    def tendons(self) -> Iterator[Tendon]:
        """Fixed tendons along which something acts, or that actuators pull."""
        model = self._model
        pulled = {
            actuator.record.target
            for actuator in self.actuators
            if actuator.record and actuator.record.transmission == "tendon"
        }
        for tendon in range(model.ntendon):
            if not is_fixed_tendon(self._compiled, tendon):
                continue
            record = self._tendon(tendon)
            acts = record.stiffness or record.damping or record.friction or record.limits
            if record.joints and (acts or record.name in pulled):
                yield record

    def _tendon(self, tendon: int) -> Tendon:
        model, compiled, element = self._model, self._compiled, self._compiled.element("tendon", tendon)
        limited = bool(model.tendon_limited[tendon]) and not compiled.disables("constraint", "limit")
        friction = float(model.tendon_frictionloss[tendon])
        advice = "not read: stops and friction of tendons are those of joints"
        if limited:
            numbers = model.tendon_solref_lim[tendon], model.tendon_solimp_lim[tendon], model.tendon_margin[tendon]
            note_softness(element, "tendon", "limit", advice, *numbers)
        if friction:
            solref, solimp = model.tendon_solref_fri[tendon], model.tendon_solimp_fri[tendon]
            note_softness(element, "tendon", "friction", advice, solref, solimp)
        for word in ("stiffness", "damping"):
            if any(getattr(model, f"tendon_{word}poly")[tendon]):
                omit(element, f"tendon with nonlinear {word}", "only the first coefficient is read")
        low, high = map(float, model.tendon_range[tendon])
        return Tendon(
            self._tendon_names[tendon],
            tuple((joint, arm) for joint, arm in self.lever_arms(tendon).items() if arm),
            stiffness=0.0 if compiled.disables("spring") else float(model.tendon_stiffness[tendon]),
            rest=tuple(map(float, model.tendon_lengthspring[tendon])),  # type: ignore[arg-type]
            damping=0.0 if compiled.disables("damper") else float(model.tendon_damping[tendon]),
            friction=0.0 if compiled.disables("constraint", "frictionloss") else friction,
            limits=(low, high) if limited else None,
        )

    # -- actuators ----------------------------------------------------------------------------------------------

    @cached_property
    def actuators(self) -> list[Driven]:
        """All actuators in order; ignored ones are noted."""
        names = self._compiled.names("actuator", self._model.nactuator)
        taken = set(names)
        return [self._actuator(i, name, taken) for i, name in enumerate(names)]

    def _actuator(self, i: int, name: str, taken: set[str]) -> Driven:
        model, off = self._model, self._compiled.disables("actuation")
        law = self._enum("Gain", model.actuator_gaintype[i])
        element = self._compiled.element("actuator", i, _KINDS.get(law, "general"))
        transmission, target, arms, why = self._transmission(i)
        why = self._unknown_law(i, law) or why
        controls = tuple(
            range(int(model.actuator_ctrladr[i]), int(model.actuator_ctrladr[i] + model.actuator_ctrlnum[i]))
        )
        first = int(model.actuator_actadr[i])
        activations = tuple(range(first, first + int(model.actuator_actnum[i]))) if first >= 0 else ()
        acts = not off and not model.opt.disableactuator & (1 << int(model.actuator_group[i]))
        if off or why:
            if why and not off:
                omit(element, f"{element.tag} actuator", _NOT_ACTING.format(why=why))
            return Driven(element, None, arms, acts, controls, activations)
        name = name or unused_name(f"{element.tag}_{target}", taken)
        if model.actuator_actearly[i] and activations:
            omit(element, "actuator with actearly", "the force is that of the activation now, not one step later")
        if model.actuator_delay[i]:
            omit(element, "actuator with delay", "its control input acts at once")
        affine, has_bias = law == "affine", self._enum("Bias", model.actuator_biastype[i]) == "affine"
        dynamics = self._enum("Dyn", model.actuator_dyntype[i])
        record = Actuator(
            name,
            target,
            transmission,
            gear=tuple(self._gear(i)),
            gain=tuple(map(float, model.actuator_gainprm[i, : 3 if affine else 1])),  # type: ignore[arg-type]
            bias=tuple(map(float, model.actuator_biasprm[i, : 3 if has_bias else 0])),  # type: ignore[arg-type]
            dynamics=dynamics,
            time_constant=float(model.actuator_dynprm[i, 0]) if dynamics in ("filter", "filterexact") else 1.0,
            ctrl_range=None if self._compiled.disables("clampctrl") else self._range(i, "ctrl"),
            force_range=self._range(i, "force"),
            activation_range=self._range(i, "act") if dynamics != "none" else None,
        )
        return Driven(element, record, arms, acts, controls, activations)

    def _gear(self, i: int) -> list[float]:
        """The six gear numbers of an actuator."""
        return self._model.actuator_gear[self._model.actuator_outadr[i]].tolist()

    def _range(self, i: int, quantity: str) -> Interval | None:
        """Bounds of the control input ("ctrl"), the force or the activation of an actuator."""
        i = int(self._model.actuator_ctrladr[i]) if quantity == "ctrl" else i
        if not getattr(self._model, f"actuator_{quantity}limited")[i]:
            return None
        low, high = map(float, getattr(self._model, f"actuator_{quantity}range")[i])
        return low, high

    def _transmission(self, i: int) -> tuple[str, str, dict[str, float], str]:
        """Transmission and target of an actuator, its lever arms by joint, and the reason if it is ignored."""
        model, word = self._model, self._enum("Trn", self._model.actuator_trntype[i])
        target, other = map(int, model.actuator_trnid[i])
        if word in ("joint", "jointinparent"):
            name = self._by_index[target].name
            return word, name, {name: 1.0}, ""
        if word == "tendon":
            if not is_fixed_tendon(self._compiled, target):
                return word, "", {}, "only fixed tendons are read"
            arms = {name: arm for name, arm in self.lever_arms(target).items() if arm}
            return word, self._tendon_names[target], arms, "" if arms else "its tendon moves no joint"
        if word == "site":
            if other >= 0:
                return word, "", {}, "it acts between two sites"
            name = self._compiled.names("site", model.nsite)[target]
            return word, name, {}, "" if name else "its site has no name"
        return word, "", {}, _ELSEWHERE.get(word, "it drives nothing that is read")

    def _unknown_law(self, i: int, law: str) -> str:
        """Why the force law of an actuator is not read, or an empty string."""
        model = self._model
        if model.actuator_plugin[i] >= 0:
            return "its force is computed by a plugin"
        if law in _OTHER_LAWS:
            return _OTHER_LAWS[law]
        words = (
            ("biastype", "Bias", ("none", "affine")),
            ("dyntype", "Dyn", ("none", "integrator", "filter", "filterexact")),
        )
        for name, prefix, known in words:
            word = self._enum(prefix, getattr(model, f"actuator_{name}")[i])
            if word not in known:
                return f'{name}="{word}" is not known'
        return "" if model.actuator_ctrlnum[i] == 1 else f"it has {model.actuator_ctrlnum[i]} control inputs"

    # -- what they add to joints --------------------------------------------------------------------------------

    @cached_property
    def rotors(self) -> dict[str, Rotor]:
        """Inertia and damping added by actuators to hinges and slides, and the largest force of the active ones."""
        model, scalar = self._model, {joint.name for joint in self._tree.all_joints if joint.kind.only_step}
        rotors: dict[str, Rotor] = defaultdict(Rotor)
        forces: dict[str, Interval] = {}
        for i, actuator in enumerate(self.actuators):
            word = self._enum("Trn", model.actuator_trntype[i])
            joint_name = next(iter(actuator.arms), "") if word in ("joint", "jointinparent") else ""
            self._add_rotor(i, actuator.element, rotors[joint_name] if joint_name in scalar else None)
            for joint, arm in actuator.arms.items():
                if joint in scalar and actuator.acts:
                    low, high = forces.get(joint, (0.0, 0.0))
                    force = _clipped(self._driving_force(i), self._range(i, "force"))
                    least, most = _scaled(_scaled(force, self._gear(i)[0]), arm)
                    forces[joint] = low + least, high + most
        for joint, bounds in forces.items():
            rotors[joint].largest_force = max(map(abs, bounds))
        return rotors

    def _add_rotor(self, i: int, element: Element, rotor: Rotor | None) -> None:
        model = self._model
        adds = [word for word in ("armature", "damping") if getattr(model, f"actuator_{word}")[i]]
        adds += ["damping"] * (not model.actuator_damping[i] and any(model.actuator_dampingpoly[i]))
        if adds and rotor is None:
            advice = "driving no hinge or slide, so that this is not read: write it at the joints"
            omit(element, f"actuator with {' and '.join(adds)}", advice)
        for word in adds if rotor is not None else ():
            added = float(self._gear(i)[0] ** 2 * getattr(model, f"actuator_{word}")[i])
            setattr(rotor, word, getattr(rotor, word) + added)
        if any(model.actuator_dampingpoly[i]) and rotor is not None:
            omit(element, "actuator with nonlinear damping", "only the first coefficient is read")

    @property
    def driven_joints(self) -> tuple[str, ...] | None:
        """Joints driven by actuators, directly or by fixed tendons, each once. None without actuators, or with only
        actuators that may move any joint (sites, spatial tendons).
        """
        return (
            tuple(dict.fromkeys(joint for actuator in self.actuators if actuator.acts for joint in actuator.arms))
            or None
        )

    def _driving_force(self, i: int) -> Interval:
        """Bounds of gain times control or activation, if that is the whole force; unlimited for servos."""
        model = self._model
        bias = self._enum("Bias", model.actuator_biastype[i])
        if self._enum("Gain", model.actuator_gaintype[i]) != "fixed":
            return _EVERYTHING
        if bias != "none" and any(model.actuator_biasprm[i, :3]):
            return _EVERYTHING
        driven, dynamics = _EVERYTHING, self._enum("Dyn", model.actuator_dyntype[i])
        if dynamics in ("none", "filter", "filterexact") and not self._compiled.disables("clampctrl"):
            driven = _clipped(driven, self._range(i, "ctrl"))
        if dynamics != "none":
            driven = _clipped(driven, self._range(i, "act"))
        return _scaled(driven, float(model.actuator_gainprm[i, 0]))

    def effort_ranges(self) -> Iterator[EffortRange]:
        """Bounds of the total actuator force of joints."""
        model, off = self._model, self._compiled.disables("actuation")
        for joint in (joint for joint in self._tree.all_joints if joint.kind.only_step):
            limited = bool(model.jnt_actfrclimited[joint.index])
            if model.jnt_actgravcomp[joint.index] and (limited or off):
                advice = "gravity compensation acts beside actuators, on or off"
                omit(joint.element, "joint with actuatorgravcomp", advice)
            if limited:
                yield EffortRange(joint.name, *map(float, model.jnt_actfrcrange[joint.index]))

    def records(self, site_frames: dict[int, str]) -> tuple[Actuator, ...]:
        """The actuators that are read; those at sites get frames as targets."""
        names = self._compiled.names("site", self._model.nsite)
        frames = {names[site]: frame for site, frame in site_frames.items()}
        records = []
        for record in (driven.record for driven in self.actuators):
            if record is not None and record.transmission == "site":
                record = replace(record, target=frames[record.target])
            if record is not None:
                records.append(record)
        return tuple(records)


def _clipped(bounds: Interval, limits: Interval | None) -> Interval:
    """Bounds after clipping to limits."""
    if limits is None:
        return bounds
    low, high = limits
    return min(max(bounds[0], low), high), min(max(bounds[1], low), high)


def _scaled(bounds: Interval, factor: float) -> Interval:
    if factor == 0.0:
        return 0.0, 0.0
    low, high = sorted(factor * bound for bound in bounds)
    return low, high


def note_effort_ranges(mechanism: Mechanism, records: tuple[Actuator, ...], joints: list[BodyJoint]) -> None:
    """Note joints whose force bounds ignore actuators at sites, which MuJoCo counts."""
    elements = {joint.name: joint.element for joint in joints}
    bounded = {element.joint for element in mechanism.elements if isinstance(element, EffortRange)}
    moved = (mechanism.frame(record.target).body for record in records if record.transmission == "site")
    carried = {mechanism.bodies[i].joint for body in moved if body >= 0 for i in mechanism.tree.path(body)}
    for joint in (joint for joint in elements if joint in bounded & carried):
        advice = "forces of actuators at sites act beyond its bounds"
        omit(elements[joint], "joint with actuatorfrcrange and actuators at sites", advice)


# -- bodies ---------------------------------------------------------------------------------------------


def gravity_compensation(tree: Tree) -> Iterator[GravityCompensation]:
    """Bodies with ``gravcomp``."""
    model = tree.compiled.model
    for body in tree.bodies if tree.compiled.has_passive_forces else ():
        share, mass = float(model.body_gravcomp[body]), tree.mass(body)
        if share and tree.mover(body) and mass.mass:
            yield GravityCompensation(tree.frame_of[body], share * mass.mass, tuple(mass.com.tolist()))


def fluid_forces(tree: Tree) -> Iterator[FluidForce]:
    """Fluid forces of ``density``, ``viscosity`` and ``wind`` on every moving body: on its ellipsoids
    (``fluidshape``), else on its inertia box.
    """
    compiled, model = tree.compiled, tree.compiled.model
    fluid: dict[str, Any] = {name: float(getattr(model.opt, name)) for name in ("density", "viscosity")}
    if not any(fluid.values()) or not compiled.has_passive_forces:
        return
    fluid["wind"] = tuple(map(float, model.opt.wind))
    for body in tree.bodies:
        mass = float(model.body_mass[body])
        if not tree.mover(body) or mass < LEAST_MASS:
            continue
        first = int(model.body_geomadr[body])
        geoms = range(first, first + int(model.body_geomnum[body])) if first >= 0 else ()
        around = [geom for geom in geoms if model.geom_fluid[geom, 0] > 0.0]
        if not around and not any(_has_fluid_stand_in(compiled, geom) for geom in geoms):
            axes, moments = rotation_of(model.body_iquat[body]), model.body_inertia[body].tolist()
            placement: dict[str, Any] = {"axes": axes.tolist(), "position": model.body_ipos[body].tolist()}
            yield FluidForce(tree.frame_of[body], "box", box_of_inertia(mass, moments), **placement, **fluid)
        for geom in geoms:
            kind = SHAPES.get(int(model.geom_type[geom]), "")
            if geom in compiled.meshes and (geom in around or _has_fluid_stand_in(compiled, geom)):
                mesh = compiled.element("geom", geom)
                omit(mesh, "mesh in a fluid", "does not act: its half axes are not read")
            elif geom in around and kind:
                rotation, position = compiled.pose("geom", geom)
                yield FluidForce(
                    tree.frame_of[body],
                    "ellipsoid",
                    ellipsoid_of_shape(kind, model.geom_size[geom].tolist()),
                    axes=rotation.tolist(),
                    position=position.tolist(),
                    coefficients=tuple(map(float, model.geom_fluid[geom, 1:6])),
                    **fluid,
                )


def _has_fluid_stand_in(compiled: Compiled, geom: int) -> bool:
    """Whether a geom approximated by a sphere has fluid coefficients."""
    return geom in compiled.fluid_stand_ins
