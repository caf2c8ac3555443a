"""The same mechanism in other libraries, where they are installed: Pinocchio and MuJoCo.

A peer is made from the mechanism's own numbers, so that every file that linkwise reads can be compared.  Mechanisms
that a library cannot hold as they are (loops, mimic joints, some kinds of joints) have no peer there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import linkwise as lw

#: A call of a library, and what it returns as linkwise has it.
Calls = tuple[Callable[[], Any], Callable[[], np.ndarray]]
LINEAR_FIRST = [3, 4, 5, 0, 1, 2]


class Peer(NamedTuple):
    """One algorithm in another library.

    single   (q, v, u) of one state, as linkwise has them -> its ``Calls``
    batch    the same for arrays of states, one thread; None where the library has no such call
    """

    library: str
    single: Callable[..., Calls]
    batch: Callable[..., Calls] | None = None


def peers(mech: lw.Mechanism, algorithm: str) -> list[Peer]:
    """What there is to compare ``algorithm`` with."""
    if mech.loops or any(body.mimic for body in mech.bodies):
        return []
    found = [make(mech, algorithm) for make in (_pinocchio, _mujoco)]
    return [peer for peer in found if peer is not None]


# -- Pinocchio ----------------------------------------------------------------------------------------


def _pinocchio(mech: lw.Mechanism, algorithm: str) -> Peer | None:
    try:
        import pinocchio as pin
    except ImportError:
        return None
    joints: dict[type, Callable[[Any], Any]] = {
        lw.Revolute: lambda kind: pin.JointModelRevoluteUnaligned(np.array(kind.axis)),
        lw.Prismatic: lambda kind: pin.JointModelPrismaticUnaligned(np.array(kind.axis)),
        lw.Spherical: lambda kind: pin.JointModelSpherical(),
        lw.Floating: lambda kind: pin.JointModelFreeFlyer(),
    }
    if any(type(body.kind) not in joints for body in mech.bodies):
        return None
    model = pin.Model()
    ids: list[int] = []
    q_order: list[int] = []
    v_order: list[int] = []
    for body in mech.bodies:
        parent = ids[body.parent] if body.parent >= 0 else 0
        pose = pin.SE3(np.array(body.rotation), np.array(body.position))
        ids.append(model.addJoint(parent, joints[type(body.kind)](body.kind), pose, body.joint))
        inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
        model.appendBodyToJoint(ids[-1], inertia, pin.SE3.Identity())
        q, v = np.arange(mech.nq)[mech.q_index(body.joint)], np.arange(mech.nv)[mech.v_index(body.joint)]
        if isinstance(body.kind, lw.Floating):
            q, v = q[[4, 5, 6, 1, 2, 3, 0]], v[LINEAR_FIRST]
        elif isinstance(body.kind, lw.Spherical):
            q = q[[1, 2, 3, 0]]
        q_order.extend(q)
        v_order.extend(v)
    model.gravity.linear = np.array(mech.gravity)
    if any(any(body.armature) for body in mech.bodies):
        model.armature = np.concatenate([body.armature for body in mech.bodies])[v_order]
    return _pinocchio_calls(pin, mech, model, q_order, v_order, algorithm)


def _pinocchio_calls(
    pin: Any, mech: lw.Mechanism, model: Any, q_order: list[int], v_order: list[int], algorithm: str
) -> Peer:
    data = model.createData()
    back = np.argsort(v_order)
    functions = {"inverse_dynamics": pin.rnea, "forward_dynamics": pin.aba, "mass_matrix": pin.crba}

    def single(q: np.ndarray, *others: np.ndarray) -> Calls:
        arrays = [np.ascontiguousarray(q[q_order]), *(np.ascontiguousarray(x[v_order]) for x in others)]
        function = functions[algorithm]

        def result() -> np.ndarray:
            found = np.array(function(model, data, *arrays))
            if algorithm != "mass_matrix":
                return found[back]
            full = np.triu(found) + np.triu(found, 1).T
            return full[np.ix_(back, back)]

        return (lambda: function(model, data, *arrays)), result

    def batch(q: np.ndarray, *others: np.ndarray) -> Calls:
        pool, out = pin.ModelPool(model, 1), np.zeros((model.nv, len(q)), order="F")
        arrays = [np.asfortranarray(q[:, q_order].T), *(np.asfortranarray(x[:, v_order].T) for x in others)]
        function = pin.rneaInParallel if algorithm == "inverse_dynamics" else pin.abaInParallel

        def call() -> None:
            function(1, pool, *arrays, out)

        def result() -> np.ndarray:
            call()
            return out.T[:, back]

        return call, result

    has_batch = algorithm != "mass_matrix" and hasattr(pin, "rneaInParallel")
    return Peer(f"Pinocchio {pin.__version__}", single, batch if has_batch else None)


# -- MuJoCo -------------------------------------------------------------------------------------------


def _mujoco(mech: lw.Mechanism, algorithm: str) -> Peer | None:
    """Hinges and slides; what MuJoCo does at each call is its whole pipeline up to joint forces or accelerations."""
    if algorithm == "mass_matrix":  # it is never formed
        return None
    try:
        import mujoco
    except ImportError:
        return None
    kinds = {lw.Revolute: mujoco.mjtJoint.mjJNT_HINGE, lw.Prismatic: mujoco.mjtJoint.mjJNT_SLIDE}
    if any(type(body.kind) not in kinds or body.mass <= 0.0 for body in mech.bodies):
        return None
    spec = mujoco.MjSpec()
    spec.option.gravity = np.array(mech.gravity)
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    spec.compiler.degree = False
    made: list[Any] = []
    for body in mech.bodies:
        parent = made[body.parent] if body.parent >= 0 else spec.worldbody
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(body.rotation).ravel())
        child = parent.add_body(name=body.link, pos=np.array(body.position), quat=quaternion)
        child.add_joint(
            name=body.joint, type=kinds[type(body.kind)], axis=np.array(_axis(body.kind)), armature=body.armature[0]
        )
        child.mass, child.ipos, child.explicitinertial = body.mass, np.array(body.com), True
        child.fullinertia = body.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        made.append(child)
    try:
        model = spec.compile()
    except ValueError:  # inertias that MuJoCo does not accept
        return None
    order = [model.joint(name).qposadr[0] for name in mech.joint_names]
    return Peer(f"MuJoCo {mujoco.__version__}", _mujoco_calls(mujoco, model, order, algorithm))


def _axis(kind: Any) -> Any:
    return kind.axis


def _mujoco_calls(mujoco: Any, model: Any, order: list[int], algorithm: str) -> Callable[..., Any]:
    data = mujoco.MjData(model)

    def single(q: np.ndarray, *others: np.ndarray) -> Calls:
        fields = {"inverse_dynamics": ("qvel", "qacc"), "forward_dynamics": ("qvel", "qfrc_applied")}
        for name, values in zip(("qpos", *fields[algorithm]), (q, *others), strict=True):
            getattr(data, name)[order] = values
        calls = {
            "inverse_dynamics": lambda: mujoco.mj_inverse(model, data),
            "forward_dynamics": lambda: mujoco.mj_forward(model, data),
        }
        results = {
            "inverse_dynamics": lambda: data.qfrc_inverse[order],
            "forward_dynamics": lambda: data.qacc[order],
        }

        def result() -> np.ndarray:
            calls[algorithm]()
            return np.array(results[algorithm]())

        return calls[algorithm], result

    return single
