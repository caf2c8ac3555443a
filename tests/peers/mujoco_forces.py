"""What acts on a mechanism, beside MuJoCo's forces at the same states and controls."""

from __future__ import annotations

import dataclasses
import warnings
from functools import cached_property
from pathlib import Path

import mujoco
import numpy as np

import linkwise as lw


class Beside:
    """A model of MuJoCo and the mechanism that linkwise reads from the same file, and how their coordinates go
    together: ``v_mujoco = to_mujoco(q) v``, joint forces by its transpose."""

    def __init__(self, path: Path):
        self.model = mujoco.MjModel.from_xml_path(str(path))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.mech = lw.load(path)
        self.data = mujoco.MjData(self.model)

    @classmethod
    def of(cls, model, mech: lw.Mechanism) -> Beside:
        """The two that were read already."""
        made = cls.__new__(cls)
        made.model, made.mech, made.data = model, mech, mujoco.MjData(model)
        return made

    def joint_name(self, j: int) -> str:
        """The name that linkwise gives to a joint of MuJoCo's."""
        name = self.model.joint(j).name
        if name:
            return name.strip()
        body = int(self.model.jnt_bodyid[j])
        return f"{self.model.body(body).name or f'body{body}'}_joint"

    def set_state(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Puts MuJoCo's data into a state of the mechanism; the matrix that makes its velocities of ours."""
        m, mech = self.model, self.mech
        matrix = np.zeros((m.nv, mech.nv))
        self.data.qpos[:] = m.qpos0
        for j in range(m.njnt):
            name, at_q, at_v = self.joint_name(j), m.jnt_qposadr[j], m.jnt_dofadr[j]
            if name not in mech.joint_names:  # held by an equality, and locked
                continue
            place = mech.coordinates.place(name)
            own, columns = place.positions(q), np.arange(mech.nv)[place.v_index]
            kind = m.jnt_type[j]
            if kind == mujoco.mjtJoint.mjJNT_FREE:
                self.data.qpos[at_q : at_q + 7] = [*own[4:], *own[:4]]
                rotation = np.zeros(9)
                mujoco.mju_quat2Mat(rotation, own[:4])
                matrix[at_v : at_v + 3, columns[3:]] = rotation.reshape(3, 3)
                matrix[at_v + 3 : at_v + 6, columns[:3]] = np.eye(3)
            else:
                size = 3 if kind == mujoco.mjtJoint.mjJNT_BALL else 1
                self.data.qpos[at_q : at_q + len(own)] = own
                matrix[at_v : at_v + size, columns] = place.ratio * np.eye(size)
        self.data.qvel[:] = matrix @ v
        return matrix

    def controls(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Random control inputs, beyond their ranges too, and activations within theirs; both put into MuJoCo's data.
        Inputs of actuators that linkwise does not read are zero."""
        m, names = self.model, self.mech.forces.actuator_names
        ctrl, activation = 2.0 * rng.normal(size=self.mech.n_ctrl), []
        self.data.ctrl[:], self.data.act[:] = 0.0, 0.0
        for i in range(m.nu):
            if self.name_of_actuator(i) not in names:
                continue
            self.data.ctrl[i] = ctrl[names.index(self.name_of_actuator(i))]
            if m.actuator_actadr[i] >= 0:
                low, high = m.actuator_actrange[i] if m.actuator_actlimited[i] else (-1.0, 1.0)
                self.data.act[m.actuator_actadr[i]] = rng.uniform(0.9 * low + 0.1 * high, 0.1 * low + 0.9 * high)
        for name in names:
            i = self.actuator_names.index(name)
            if m.actuator_actadr[i] >= 0:
                activation.append(self.data.act[m.actuator_actadr[i]])
        return ctrl, np.array(activation)

    def name_of_actuator(self, i: int) -> str:
        return self.actuator_names[i]

    @cached_property
    def actuator_names(self) -> list[str]:
        """Our names of MuJoCo's actuators; those without name are matched by what they drive, in their order."""
        m, kinds = self.model, mujoco.mjtObj
        named = {m.actuator(i).name for i in range(m.nu)}
        unnamed = [one for one in self.mech.forces.actuators if one.name not in named]
        found = []
        for i in range(m.nu):
            kind = kinds.mjOBJ_TENDON if m.actuator_trntype[i] == mujoco.mjtTrn.mjTRN_TENDON else kinds.mjOBJ_JOINT
            if m.actuator_trntype[i] == mujoco.mjtTrn.mjTRN_SITE:
                kind = kinds.mjOBJ_SITE
            target = mujoco.mj_id2name(m, kind, m.actuator_trnid[i, 0])
            own = next((one for one in unnamed if one.target == target), None) if not m.actuator(i).name else None
            if own is not None:
                unnamed.remove(own)
            found.append(m.actuator(i).name or (own.name if own is not None else f"(not read {i})"))
        return found

    def differences(self, seed: int = 0, states: int = 3) -> dict[str, float]:
        """The largest relative differences of passive forces, forces of actuators and rates of activations."""
        rng, largest = np.random.default_rng(seed), {"passive": 0.0, "actuators": 0.0, "activations": 0.0}
        passive = without_constraints(
            self.mech.with_acting("springs", "damping", "tendons", "gravity_compensation", "fluid")
        )
        driven = self.mech.with_acting("actuators")
        for _ in range(states):
            q, v = lw.random_state(self.mech, rng)
            matrix = self.set_state(q, v)
            ctrl, activation = self.controls(rng)
            mujoco.mj_forward(self.model, self.data)
            ours = {
                "passive": lw.forces.joint_forces(passive, q, v),
                "actuators": lw.forces.joint_forces(
                    driven, q, v, ctrl=ctrl if ctrl.size else None, activation=activation if activation.size else None
                ),
            }
            theirs = {"passive": self.data.qfrc_passive, "actuators": self.data.qfrc_actuator}
            for name, found in ours.items():
                expected = matrix.T @ theirs[name]
                size = max(1.0, np.abs(expected).max(initial=0.0))
                largest[name] = max(largest[name], np.abs(found - expected).max(initial=0.0) / size)
            if activation.size:
                rates = lw.forces.activation_rates(driven, q, v, ctrl=ctrl, activation=activation)
                adr = [
                    self.model.actuator_actadr[self.actuator_names.index(n)] for n in self.mech.forces.actuator_names
                ]
                expected = self.data.act_dot[[a for a in adr if a >= 0]]
                largest["activations"] = max(largest["activations"], np.abs(rates - expected).max())
        return largest


def without_constraints(mech: lw.Mechanism) -> lw.Mechanism:
    """Friction and limits of tendons are constraints in MuJoCo, and no part of its passive forces."""
    kept = [
        dataclasses.replace(one, friction=0.0, limits=None) if isinstance(one, lw.forces.Tendon) else one
        for one in mech.elements
    ]
    return dataclasses.replace(mech, elements=tuple(kept))
