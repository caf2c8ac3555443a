"""Some cases of a study: drawn values as states, parameters and mechanisms."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import linkwise as lw

from .errors import StudyError
from .quantities import CONTACT_FRICTION, CTRL, GRAVITY, OF_LINKS, OF_MECHANISM, OF_POSITIONS, PAYLOAD

SIX = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # moments, as ``lw.estimation.inertial_parameters`` has them


@dataclass(frozen=True, eq=False)
class Case:
    """One case: its number, the mechanism with its numbers, its state, and all that varies by name."""

    number: int
    mechanism: lw.Mechanism
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


@dataclass(frozen=True, eq=False)
class Cases:
    """Cases ``first`` to ``first + len``: ``values`` maps what varies to (cases, ...); iterating gives ``Case`` after
    ``Case``.

    mechanism    the one of the study
    parameters   numbers of the mechanism as ``lw.rollout`` and ``lw.compile`` take them, payloads included
    q, v, tau    (cases, nq), (cases, nv), (cases, nv): initial states, loops closed, and joint forces
    """

    mechanism: lw.Mechanism
    first: int
    count: int
    values: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values[name]

    @property
    def numbers(self) -> np.ndarray:
        return np.arange(self.first, self.first + self.count)

    def __iter__(self) -> Iterator[Case]:
        return map(self.case, range(self.count))

    def case(self, k: int) -> Case:
        """The k-th of these cases."""
        drawn = {name: values[k] for name, values in self.values.items()}
        return Case(self.first + k, self.mechanism_of(k), self.q[k], self.v[k], self.tau[k], drawn)

    # States ----------------------------------------------------------------------------------------------------------

    @cached_property
    def q(self) -> np.ndarray:
        q = self.placed("q0", np.array(self.mechanism.initial))
        guesses = q if any(name.startswith("q0") for name in self.values) else q[:1]
        return np.broadcast_to(lw.constraints.assemble(self.mechanism, guesses, hold=self._named("q0")), q.shape)

    @cached_property
    def v(self) -> np.ndarray:
        v = self.placed("v0", np.zeros(self.mechanism.nv))
        if not v.any():
            return v
        joints = self._named("v0")
        if joints and "v0" in self.values:
            raise StudyError(
                f"v0 and v0.{joints[0]}: loops are closed with the velocities of named joints, or with those nearest "
                "to given ones of all; name joints, or give all"
            )
        by_joint: Any = v
        if joints:  # these keep their velocities, the others follow
            rates = {joint: v[:, self.mechanism.v_index(joint)] for joint in joints}
            by_joint = {joint: x[:, 0] if x.shape[1] == 1 else x for joint, x in rates.items()}
        return lw.constraints.project(self.mechanism, self.q, by_joint)[1]

    @cached_property
    def tau(self) -> np.ndarray:
        return self.placed("tau", np.zeros(self.mechanism.nv))

    def _named(self, head: str) -> list[str]:
        """Joints of which the quantity varies by name."""
        return [name.partition(".")[2] for name in self.values if name.startswith(f"{head}.")]

    def varies(self, head: str) -> bool:
        """Whether the quantity varies, of all joints or of one."""
        return any(name.partition(".")[0] == head for name in self.values)

    def placed(self, head: str, otherwise: np.ndarray) -> np.ndarray:
        """(cases, ..., n): ``otherwise``, (..., n) or (cases, ..., n), with varied values in place: those of all joints
        or actuators first, then those of single ones."""
        lead = otherwise.ndim - 1
        rows = otherwise if lead > 1 else otherwise[None]
        arrays = np.array(np.broadcast_to(rows, (self.count, *rows.shape[1:])), float)
        among = (slice(None), *[None] * (arrays.ndim - 2))
        if head in self.values:
            arrays[:] = self.values[head][among]
        for name, values in self.values.items():
            if name.startswith(f"{head}."):
                owner = name.partition(".")[2]
                if head == CTRL:
                    index = self.mechanism.forces.actuator_names.index(owner)
                    numbers = slice(index, index + 1)
                else:
                    numbers = self.mechanism.q_index(owner) if head in OF_POSITIONS else self.mechanism.v_index(owner)
                arrays[..., numbers] = values.reshape(self.count, -1)[among]
        return arrays

    # Numbers of the mechanism ----------------------------------------------------------------------------------------

    @cached_property
    def parameters(self) -> dict[str, np.ndarray]:
        arrays = {}
        for kind, of_links in self._bodies.items():
            if len(of_links) == self.mechanism.n_links:
                arrays[kind] = np.stack([of_links[i] for i in range(self.mechanism.n_links)], axis=1)
            else:
                arrays |= {f"{self.mechanism.link_names[i]}.{kind}": of_links[i] for i in sorted(of_links)}
        return arrays | ({GRAVITY: self.values[GRAVITY]} if GRAVITY in self.values else {})

    @cached_property
    def of_joints(self) -> dict[str, np.ndarray]:
        """(cases, nv): damping, armature, dry friction and stiffness of springs, where they vary."""
        return {
            head: self.placed(head, np.array(getattr(self.mechanism.parameters, head)))
            for head in OF_MECHANISM
            if self.varies(head)
        }

    @property
    def of_contacts(self) -> dict[str, np.ndarray]:
        """(cases,): coefficients of friction of contacts, where they vary."""
        return {name: x for name, x in self.values.items() if name.rpartition(".")[2] == CONTACT_FRICTION}

    @cached_property
    def _bodies(self) -> dict[str, dict[int, np.ndarray]]:
        """Kind of number -> link -> (cases, ...), of the links that have such numbers that vary."""
        bodies: dict[str, dict[int, np.ndarray]] = {kind: {} for kind in OF_LINKS}
        mech = self.mechanism
        for kind, array in ((k, self.values[k]) for k in OF_LINKS if k in self.values):
            bodies[kind] = {i: array[:, i] for i in range(mech.n_links)}
        payloads: dict[str, dict[str, np.ndarray]] = {}
        for name, values in self.values.items():
            link, _, kind = name.rpartition(".")
            if name.startswith(PAYLOAD):
                payloads.setdefault(link.removeprefix(PAYLOAD), {})[kind] = values
            elif kind in OF_LINKS and link in mech.link_names:
                bodies[kind][mech.link_names.index(link)] = values
        for frame, payload in payloads.items():
            self._attach(bodies, frame, payload)
        return bodies

    def _attach(self, bodies: dict[str, dict[int, np.ndarray]], frame: str, payload: Mapping[str, np.ndarray]) -> None:
        """Add a payload in a frame to the body that has it: masses added, parallel axes.  Sums are written out, in one
        order however many cases there are."""
        mech, at = self.mechanism, self.mechanism.frames[frame]
        i, n = at.body, self.count
        nominal = {
            "mass": mech.parameters.masses[i],
            "com": mech.parameters.coms[i],
            "inertia": mech.parameters.inertias[i],
        }
        mass, com, inertia = (
            bodies[kind].get(i, np.broadcast_to(of_link, (n, *of_link.shape))) for kind, of_link in nominal.items()
        )
        added = payload.get("mass", np.zeros(n))
        point = at.position + _rotated(at.rotation, payload.get("com", np.zeros((n, 3))))
        total = mass + added
        centre = np.where(total[:, None] > 0.0, mass[:, None] * com + added[:, None] * point, com)
        centre = centre / np.where(total > 0.0, total, 1.0)[:, None]
        moments = inertia + _point_inertias(mass, com - centre) + _point_inertias(added, point - centre)
        if "inertia" in payload:
            once = np.moveaxis(_rotated(at.rotation, np.moveaxis(payload["inertia"], 1, 2)), 1, 2)
            moments = moments + _rotated(at.rotation, once)
        bodies["mass"][i], bodies["com"][i], bodies["inertia"][i] = total, centre, moments

    @cached_property
    def _strict(self) -> bool:
        """Whether all bodies must be rigid: unless the mechanism's own are not, as published ones may be."""
        try:
            self.mechanism.parameters.with_inertial(lw.estimation.inertial_parameters(self.mechanism))
        except lw.MechanismError:
            return False
        return True

    def mechanism_of(self, k: int) -> lw.Mechanism:
        """The mechanism with the numbers of the k-th of these cases."""
        mech, names = self.mechanism, self.mechanism.link_names
        if self._bodies["pose"]:
            raise lw.MechanismError(
                "poses of joints vary in rollouts and singularities alone, not mechanism by mechanism"
            )
        if "friction" in self.of_joints:
            raise lw.MechanismError("friction of joints varies in rollouts alone, not mechanism by mechanism")
        if self.of_contacts:
            raise lw.MechanismError("friction of contacts varies in rollouts alone, not mechanism by mechanism")
        of_bodies = {kind: self._bodies[kind] for kind in ("mass", "com", "inertia")}
        if any(of_bodies.values()):
            rows = []
            for i in range(len(names)):
                of_link = mech.parameters.masses[i], mech.parameters.coms[i], mech.parameters.inertias[i]
                mass, com, inertia = (
                    of_bodies[kind][i][k] if i in of_bodies[kind] else x
                    for kind, x in zip(of_bodies, of_link, strict=True)
                )
                moments = inertia + _point_inertias(np.asarray(mass)[None], com[None])[0]  # about the link's origin
                rows.append([mass, *(mass * com), *(moments[index] for index in SIX)])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", lw.files.InertiaWarning)
                mech = mech.parameters.with_inertial(np.concatenate(rows), self._strict)
        if GRAVITY in self.values:
            mech = mech.with_gravity(self.values[GRAVITY][k])
        edits = {"damping": "with_damping", "armature": "with_armature", "stiffness": "with_springs"}
        for head, edit in edits.items():
            if head in self.of_joints:
                row = self.of_joints[head][k]
                numbers = {body.joint: row[mech.v_index(body.joint)] for body in mech.bodies if not body.mimic}
                by_joint = {joint: float(x[0]) if len(x) == 1 else x for joint, x in numbers.items()}
                mech = getattr(mech.parameters, edit)(by_joint)
        return mech


def _rotated(rotation: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Rotation times vectors (cases, 3) or the columns of (cases, 3, m)."""
    rows = [
        rotation[i, 0] * vectors[:, 0] + rotation[i, 1] * vectors[:, 1] + rotation[i, 2] * vectors[:, 2]
        for i in range(3)
    ]
    return np.stack(rows, axis=1)


def _point_inertias(mass: np.ndarray, at: np.ndarray) -> np.ndarray:
    """(cases, 3, 3): the inertia about the origin of masses (cases,) at points (cases, 3)."""
    x, y, z = at[:, 0], at[:, 1], at[:, 2]
    rows = [
        [y * y + z * z, -x * y, -x * z],
        [-x * y, x * x + z * z, -y * z],
        [-x * z, -y * z, x * x + y * y],
    ]
    return mass[:, None, None] * np.stack([np.stack(row, axis=-1) for row in rows], axis=1)
