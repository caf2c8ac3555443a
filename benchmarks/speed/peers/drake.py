"""Drake: a continuous MultibodyPlant from a mechanism's numbers, and its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import linkwise as lw

from .protocol import Calls, Peer, is_fixed_arm, one_by_one

HOW = {
    "inverse_dynamics": "MultibodyPlant.CalcInverseDynamics; batches in a loop from Python",
    "forward_dynamics": "MultibodyPlant.EvalTimeDerivatives, continuous; batches in a loop from Python",
    "mass_matrix": "MultibodyPlant.CalcMassMatrix; batches in a loop from Python",
}
LEAST_MASS = 1e-12  # kg: inertia is mass times unit inertia there, and links of tables may have inertia alone


def peer(mech: lw.Mechanism, task: str) -> Peer | None:
    if task not in HOW or not is_fixed_arm(mech):
        return None
    import importlib.metadata

    plant, context, orders = _plant(mech)
    single = _single(plant, context, orders, task)
    return Peer(f"Drake {importlib.metadata.version('drake')}", single, one_by_one(single), HOW[task], 256)


def _plant(mech: lw.Mechanism) -> tuple[Any, Any, tuple[list[int], list[int]]]:
    from pydrake.math import RigidTransform, RotationMatrix
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import FixedOffsetFrame, PrismaticJoint, RevoluteJoint, SpatialInertia, UnitInertia

    plant = MultibodyPlant(0.0)
    bodies: list[Any] = []
    for body in mech.bodies:
        com = np.array(body.com)
        mass = body.mass or LEAST_MASS
        unit = body.inertia / mass + com @ com * np.eye(3) - np.outer(com, com)
        inertia = UnitInertia(unit[0, 0], unit[1, 1], unit[2, 2], unit[0, 1], unit[0, 2], unit[1, 2])
        bodies.append(
            plant.AddRigidBody(body.link, SpatialInertia(mass, com, inertia, True))
        )  # True: unchecked, as tables of arms are
    joints = []
    for body, own in zip(mech.bodies, bodies, strict=True):
        parent = bodies[body.parent] if body.parent >= 0 else plant.world_body()
        pose = RigidTransform(RotationMatrix(np.array(body.rotation)), np.array(body.position))
        kind = RevoluteJoint if body.kind.hinge else PrismaticJoint
        place = plant.AddFrame(FixedOffsetFrame(f"{body.joint}_parent", parent.body_frame(), pose))
        axis = np.array(body.kind.hinge or body.kind.slide)
        joints.append(plant.AddJoint(kind(body.joint, place, own.body_frame(), axis)))
    plant.mutable_gravity_field().set_gravity_vector(np.array(mech.gravity))
    plant.Finalize()
    order = [joint.position_start() for joint in joints], [joint.velocity_start() for joint in joints]
    return plant, plant.CreateDefaultContext(), order


def _single(plant: Any, context: Any, orders: tuple[list[int], list[int]], task: str) -> Callable[..., Calls]:
    from pydrake.multibody.tree import MultibodyForces

    at_q, at_v = orders

    def placed(values: np.ndarray, order: list[int]) -> np.ndarray:
        found = np.zeros(len(order))
        found[order] = values
        return found

    def single(q: np.ndarray, *others: np.ndarray) -> Calls:
        positions, rest = placed(q, at_q), [placed(x, at_v) for x in others]
        state = np.concatenate([positions, rest[0] if rest else np.zeros(len(at_v))])
        none = MultibodyForces(plant)

        def inverse() -> np.ndarray:
            plant.SetPositionsAndVelocities(context, state)
            plant.CalcForceElementsContribution(context, none)
            return plant.CalcInverseDynamics(context, rest[1], none)

        def forward() -> np.ndarray:
            plant.SetPositionsAndVelocities(context, state)
            plant.get_applied_generalized_force_input_port().FixValue(context, rest[1])
            return plant.EvalTimeDerivatives(context).CopyToVector()[len(at_q) :]

        def mass() -> np.ndarray:
            plant.SetPositionsAndVelocities(context, state)
            return plant.CalcMassMatrix(context)

        call = {"inverse_dynamics": inverse, "forward_dynamics": forward, "mass_matrix": mass}[task]

        def result() -> np.ndarray:
            found = np.array(call())
            return found[np.ix_(at_v, at_v)] if task == "mass_matrix" else found[at_v]

        return call, result

    return single
