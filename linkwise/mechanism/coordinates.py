"""The view ``mech.coordinates``: names, indices and measures of the entries of q and v."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from linkwise.mechanics.joints import ANGLE, QUATERNION
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.parts import Body, Place
from linkwise.mechanism.view import View, kept, read_only

ANGLES = ("roll", "pitch", "yaw")  # by which orientations can be given: rotations about fixed axes x, y, z


class CoordinatesView(View):
    """Names, indices and measures of joint coordinates."""

    __slots__ = ()

    def names(self, quantity: str) -> tuple[str, ...]:
        """One name per number of "q" or "v": the joint's, or ``joint[k]`` where it has several."""
        if quantity not in ("q", "v"):
            raise MechanismError(f"coordinates are those of 'q' or 'v', not {quantity!r}")
        return self._numbered[quantity]

    def index(self, quantity: str, name: str) -> int | None:
        """Index of a single coordinate in "q" or "v", by either of its names; None if unknown."""
        return self._indices[quantity].get(name)

    def measures(self, quantity: str) -> tuple[str, ...]:
        """The measure of every entry of q: "angle", "length", "quaternion" or "other". Any quantity but "q" gives the
        measures of v.
        """
        of = "q" if quantity == "q" else "v"
        return tuple(x.of for body in self._mech.bodies if not body.mimic for x in body.kind.measures(of))

    def joint_of(self, name: str) -> str:
        """The joint that a name of a coordinate begins with."""
        return re.sub(r"\[\d+\]$", "", name) if name.endswith("]") else name.rpartition(".")[0]

    def place(self, joint: str) -> Place:
        """Slices of a joint's coordinates in q and v, with ratio and offset of a mimic joint. A single coordinate is
        named "joint.x" if its rate is its velocity.
        """
        mech = self._mech
        if joint not in mech.joint_names and (single := self.single_place(joint)) is not None:
            return single
        body = mech.bodies[mech.body_index(joint)]
        ratio, offset = (body.mimic.ratio, body.mimic.offset) if body.mimic else (1.0, 0.0)
        return Place(joint, mech.q_index(joint), mech.v_index(joint), ratio, offset)

    def single_place(self, name: str) -> Place | None:
        """Slices of one coordinate of a joint with several, if its rate is its velocity; else None."""
        index = self.index("q", name)
        if index is None:
            return None
        mech = self._mech
        body = mech.bodies[mech.body_index(self.joint_of(name))]
        if not body.kind.rates_are_velocities:
            raise MechanismError(
                f"{name!r} is one number of an orientation or position whose rate is no velocity of its own: name the "
                f"whole joint {body.joint!r}"
            )
        velocity = mech.v_index(body.joint).start + index - mech.q_index(body.joint).start
        return Place(name, slice(index, index + 1), slice(velocity, velocity + 1), 1.0, 0.0)

    @kept
    def mimic_joints(self) -> tuple[str, ...]:
        """Joints that move with others, by name."""
        return tuple(body.joint for body in self._mech.bodies if body.mimic)

    @kept
    def rates_are_velocities(self) -> bool:
        """Whether dq/dt = v for all joints."""
        return all(body.kind.rates_are_velocities for body in self._mech.bodies)

    @kept
    def steps_commute(self) -> bool:
        """Whether steps along tangent vectors commute."""
        return all(body.kind.steps_commute for body in self._mech.bodies)

    @kept
    def structure_constants(self) -> NDArray[np.float64]:
        """(nv, nv, nv): c with [E_i, E_j] = sum over k of c[i, j, k] E_k for the tangent directions E of v. Zero
        except for joints whose steps do not commute, such as free rotations.
        """
        constants = np.zeros((self._mech.nv,) * 3)
        for body in self._mech.bodies:
            if not body.mimic:
                rows = self._mech.v_index(body.joint)
                constants[rows, rows, rows] = body.kind.structure_constants
        return read_only(constants)

    @kept
    def _numbered(self) -> dict[str, tuple[str, ...]]:
        names: dict[str, list[str]] = {"q": [], "v": []}
        for body in self._mech.bodies:
            for quantity, count in (("q", body.nq), ("v", body.nv)):
                names[quantity] += [body.joint] if count == 1 else [f"{body.joint}[{k}]" for k in range(count)]
        return {quantity: tuple(of_quantity) for quantity, of_quantity in names.items()}

    @kept
    def _indices(self) -> dict[str, dict[str, int]]:
        indices: dict[str, dict[str, int]] = {}
        for quantity, named in (("q", self._mech.q_names), ("v", self._mech.v_names)):
            pairs = zip(self.names(quantity), named, strict=True)
            indices[quantity] = {name: k for k, names in enumerate(pairs) for name in names}
        return indices


def q_names(bodies: tuple[Body, ...]) -> tuple[str, ...]:
    """One name per number of q: the joint's, or "joint.x" of joints with several; "joint.qw", ... of quaternions."""
    independent = (body for body in bodies if not body.mimic)
    return tuple(_named(body, measure.name) for body in independent for measure in body.kind.measures("q"))


def v_names(bodies: tuple[Body, ...]) -> tuple[str, ...]:
    """One name per number of v: the joint's, or "joint.x" of joints with several; of joints with quaternions
    "joint.wx", ..., "joint.vx", ..."""
    names = []
    for body in bodies:
        if body.mimic:
            continue
        has_quaternion = any(measure.of == QUATERNION for measure in body.kind.measures("q"))
        for measure in body.kind.measures("v"):
            letter = "w" if measure.of == ANGLE else "v"
            names.append(_named(body, letter + measure.name[-1:] if has_quaternion else measure.name))
    return tuple(names)


def _named(body: Body, measure: str) -> str:
    return f"{body.joint}.{measure}" if measure else body.joint
