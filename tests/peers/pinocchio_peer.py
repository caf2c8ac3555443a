"""Pinocchio's answers in linkwise's coordinates, frames and order.

Pinocchio's model has one independent joint for every moving joint of the mechanism, those that mimic others
included.  With ``v_full = T v`` (T holds the order of the joints, of the six freedoms of a floating base and the
ratios of mimic joints) its results become ours: ``tau = T^T tau_full``, ``M = T^T M_full T``, ``J = J_full T``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

import linkwise as lw

ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]  # Pinocchio's spatial vectors have the linear part first


class Peer:
    """``answers(q, v, a, wrenches)`` of a Pinocchio model that has a joint of each moving joint's name."""

    def __init__(self, mech: lw.Mechanism, model: pin.Model):
        self.mech = mech
        self.model = model
        self.data = model.createData()
        self.joints = [model.getJointId(name) for name in mech.joint_names]
        assert sorted(self.joints) == list(range(1, model.njoints)), "the joints of the two models differ"
        self.full_from_own = np.zeros((model.nv, mech.nv))
        for body, joint in zip(mech.bodies, self.joints, strict=True):
            rows = range(model.joints[joint].idx_v, model.joints[joint].idx_v + model.joints[joint].nv)
            columns = range(mech.nv)[mech.v_index(body.joint)]
            order = ANGULAR_FIRST if len(rows) == 6 else range(len(rows))
            for row, k in zip(rows, order, strict=True):
                self.full_from_own[row, columns[k]] = body.mimic.ratio if body.mimic else 1.0

    @property
    def has_mimic(self) -> bool:
        return any(body.mimic for body in self.mech.bodies)

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """q in Pinocchio's coordinates: position before quaternion x, y, z, w; endless angles as cosine and sine."""
        result = pin.neutral(self.model)
        for body, number in zip(self.mech.bodies, self.joints, strict=True):
            joint = self.model.joints[number]
            own = q[self.mech.q_index(body.joint)]
            if body.mimic:
                own = body.mimic.ratio * own + body.mimic.offset
            if isinstance(body.kind, lw.Floating):
                own = np.concatenate([own[4:], own[1:4], own[:1]])
            elif isinstance(body.kind, lw.Spherical):
                own = np.concatenate([own[1:], own[:1]])
            elif joint.nq == 2 and joint.nv == 1:
                own = np.array([np.cos(own[0]), np.sin(own[0])])
            result[joint.idx_q : joint.idx_q + joint.nq] = own
        return result

    def answers(self, q, v, a, wrenches) -> dict[str, np.ndarray]:
        """Every quantity for states (n, nq), (n, nv), (n, nv), (n, n_links, 6); ``a`` doubles as joint forces."""
        states = [self._one_state(*state) for state in zip(q, v, a, wrenches, strict=True)]
        return {name: np.array([state[name] for state in states]) for name in states[0]}

    def jacobians(self, q, link: str, world: bool) -> np.ndarray:
        """(n, 6, nv) of the named moving link, in its own axes or as the world sees it from its origin."""
        joint = self.joints[self.mech.link_names.index(link)]
        frame = pin.ReferenceFrame.WORLD if world else pin.ReferenceFrame.LOCAL
        result = []
        for one in q:
            pin.computeJointJacobians(self.model, self.data, self.configuration(one))
            full = pin.getJointJacobian(self.model, self.data, joint, frame)
            result.append(full[ANGULAR_FIRST] @ self.full_from_own)
        return np.array(result)

    def _one_state(self, q, v, a, wrenches) -> dict[str, np.ndarray]:
        model, data, tie = self.model, self.data, self.full_from_own
        q, v_full, a_full = self.configuration(q), tie @ v, tie @ a
        external = pin.StdVec_Force()
        external.extend([pin.Force(np.zeros(6))] * model.njoints)
        for joint, wrench in zip(self.joints, wrenches, strict=True):
            external[joint] = pin.Force(wrench[ANGULAR_FIRST])
        found = {
            "inverse_dynamics": tie.T @ pin.rnea(model, data, q, v_full, a_full),
            "inverse_dynamics_with_wrenches": tie.T @ pin.rnea(model, data, q, v_full, a_full, external),
            "bias_force": tie.T @ pin.nonLinearEffects(model, data, q, v_full),
            "gravity_force": tie.T @ pin.computeGeneralizedGravity(model, data, q),
            "kinetic_energy": pin.computeKineticEnergy(model, data, q, v_full),
            "potential_energy": pin.computePotentialEnergy(model, data, q),
            "center_of_mass": pin.centerOfMass(model, data, q).copy(),
        }
        upper = np.triu(pin.crba(model, data, q))
        found["mass_matrix"] = tie.T @ (upper + np.triu(upper, 1).T) @ tie
        if not self.mech.parameters.singular_joints:
            found |= self._motion(q, v_full, tie @ a, external, a, found)
        pin.forwardKinematics(model, data, q, v_full, a_full)
        found["link_poses"] = np.array([data.oMi[j].homogeneous for j in self.joints]).reshape(-1, 4, 4)
        found["link_velocities"] = np.array([data.v[j].vector for j in self.joints]).reshape(-1, 6)[:, ANGULAR_FIRST]
        found["link_accelerations"] = np.array([data.a[j].vector for j in self.joints]).reshape(-1, 6)[:, ANGULAR_FIRST]
        return found

    def _motion(self, q, v_full, tau_full, external, tau, found) -> dict[str, np.ndarray]:
        """Forward dynamics and the inverse of the mass matrix; where joints are tied, by solving the tied system."""
        model, data, tie = self.model, self.data, self.full_from_own
        if self.has_mimic:
            mass, bias = found["mass_matrix"], found["bias_force"]
            pushed = found["inverse_dynamics"] - found["inverse_dynamics_with_wrenches"]
            return {
                "forward_dynamics": np.linalg.solve(mass, tau - bias),
                "forward_dynamics_with_wrenches": np.linalg.solve(mass, tau - bias + pushed),
                "mass_matrix_inverse": np.linalg.inv(mass),
            }
        upper = np.triu(pin.computeMinverse(model, data, q))
        return {
            "forward_dynamics": tie.T @ pin.aba(model, data, q, v_full, tau_full),
            "forward_dynamics_with_wrenches": tie.T @ pin.aba(model, data, q, v_full, tau_full, external),
            "mass_matrix_inverse": tie.T @ (upper + np.triu(upper, 1).T) @ tie,
        }


def from_file(file: Path, mech: lw.Mechanism, floating_base: bool) -> Peer:
    """Pinocchio's reading of the same URDF file, with joints that mimic others left independent."""
    if floating_base:
        return Peer(mech, pin.buildModelFromUrdf(str(file), pin.JointModelFreeFlyer(), "floating_base"))
    return Peer(mech, pin.buildModelFromUrdf(str(file)))


def mirrored(mech: lw.Mechanism) -> Peer:
    """The mechanism built in Pinocchio from the same numbers, body by body, without a file in between."""
    model = pin.Model()
    model.gravity.linear = np.array(mech.gravity)
    for body in mech.bodies:
        assert body.mimic is None, "build the mechanism without mimic joints"
        parent = 0 if body.parent < 0 else model.getJointId(mech.bodies[body.parent].joint)
        joint = model.addJoint(parent, _joint(body.kind), pin.SE3(body.rotation, body.position), body.joint)
        inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    armature = np.array(model.armature)
    for body in mech.bodies:
        joint = model.joints[model.getJointId(body.joint)]
        if any(body.armature):
            armature[joint.idx_v : joint.idx_v + joint.nv] = body.armature
    model.armature = armature
    return Peer(mech, model)


def _joint(kind):
    if isinstance(kind, lw.Revolute | lw.Prismatic):
        turns = isinstance(kind, lw.Revolute)
        aligned = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)
        if not turns:
            aligned = (pin.JointModelPX, pin.JointModelPY, pin.JointModelPZ)
        if max(kind.axis) == 1.0:
            return aligned[kind.axis.index(1.0)]()
        return (pin.JointModelRevoluteUnaligned if turns else pin.JointModelPrismaticUnaligned)(np.array(kind.axis))
    if isinstance(kind, lw.Helical):
        return pin.JointModelHelicalUnaligned(np.array(kind.axis), kind.pitch)
    if isinstance(kind, lw.Cylindrical):
        return _one_after_another(_turn(kind.axis), _shift(kind.axis))
    if isinstance(kind, lw.Universal):
        return _one_after_another(_turn(kind.axis1), _turn(kind.axis2))
    if isinstance(kind, lw.PinInSlot):
        return _one_after_another(_shift(kind.slide_axis), _turn(kind.pin_axis))
    if isinstance(kind, lw.Planar):
        x, y, z = np.array(kind.alignment).T
        return _one_after_another(_shift(x), _shift(y), _turn(z))
    return {lw.Spherical: pin.JointModelSpherical, lw.Floating: pin.JointModelFreeFlyer}[type(kind)]()


def _turn(axis):
    return pin.JointModelRevoluteUnaligned(np.array(axis))


def _shift(axis):
    return pin.JointModelPrismaticUnaligned(np.array(axis))


def _one_after_another(*joints):
    whole = pin.JointModelComposite()
    for joint in joints:
        whole.addJoint(joint, pin.SE3.Identity())
    return whole
