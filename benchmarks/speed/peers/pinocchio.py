"""Pinocchio: its model from a mechanism's numbers, and its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import linkwise as lw

from .protocol import CLOSED, MATRICES, ROLLOUT, STEP, STEPS, Calls, Peer, is_plain, is_plain_tree, one_by_one

HOW = {
    "inverse_dynamics": "rnea; batches by rneaInParallel with one thread",
    "forward_dynamics": "aba; batches by abaInParallel with one thread",
    "mass_matrix": "crba, upper triangle; batches in a loop from Python",
    "mass_matrix_inverse": "computeMinverse, upper triangle; batches in a loop from Python",
    "inverse_dynamics_derivatives": "computeRNEADerivatives; batches in a loop from Python",
    "forward_dynamics_derivatives": "computeABADerivatives; batches in a loop from Python",
    ROLLOUT: "aba and integrate, step by step in a loop from Python",
    CLOSED: "constraintDynamics, pins and balls as CONTACT_3D, proximal settings; batches in a loop from Python",
}

OF_DATA, MOST_DATA = 104, 8e9  # bytes for each of n^3 numbers (2.8 GB at 300 joints), and in all


class Model:
    """A model, and how its coordinates follow from linkwise's."""

    def __init__(self, pin: Any, mech: lw.Mechanism):
        self.pin, self.model = pin, lw.interop.pinocchio_model(mech)
        self.there = lw.interop.to_pinocchio(mech, self.model)
        self.here = self.there.inverse
        self.data = self.model.createData()
        self._neutral = self.there.q(lw.neutral(mech))  # its velocities are ours in another order at any q

    def ordered(self, q: np.ndarray, *others: np.ndarray) -> list[np.ndarray]:
        return [np.ascontiguousarray(x) for x in (self.there.q(q), *(self.there.v(q, x) for x in others))]

    def vectors(self, x: np.ndarray) -> np.ndarray:
        """Velocities or forces as linkwise has them."""
        return self.here.v(self._neutral, x)

    def block(self, matrix: np.ndarray) -> np.ndarray:
        """A matrix over its velocities as linkwise has it."""
        return self.here.matrix(self._neutral, np.array(matrix))

    def symmetric(self, upper: np.ndarray) -> np.ndarray:
        return self.block(np.triu(upper) + np.triu(upper, 1).T)


def peer(mech: lw.Mechanism, task: str) -> Peer | None:
    fits = _has_joints_of(mech) if task == CLOSED else is_plain_tree(mech, "ball", "free")
    if task not in HOW or not fits:
        return None
    if OF_DATA * mech.nv**3 > MOST_DATA:
        raise MemoryError(f"its Data would take {OF_DATA * mech.nv**3 / 1e9:.0f} GB, tensors of n^3 numbers")
    import pinocchio as pin

    own = Model(pin, mech)
    single = _closed(own, mech) if task == CLOSED else {ROLLOUT: _rollout}.get(task, _single)(own, task)
    parallel = task in ("inverse_dynamics", "forward_dynamics") and hasattr(pin, "rneaInParallel")
    batch = _parallel(own, task) if parallel else one_by_one(single)
    return Peer(f"Pinocchio {pin.__version__}", single, batch, HOW[task], 1_000_000 if parallel else 256)


def _has_joints_of(mech: lw.Mechanism) -> bool:
    """Those above, and pairs of hinges at one point."""

    def fits(body: Any) -> bool:
        pair = [step.turns for step in body.kind.steps] == [True, True]
        return is_plain(body, "ball", "free") or (pair and body.mimic is None)

    return all(isinstance(loop, lw.constraints.Loop) for loop in mech.loops) and all(map(fits, mech.bodies))


def _single(own: Model, task: str) -> Callable[..., Calls]:
    pin, model, data = own.pin, own.model, own.data
    function = {
        "inverse_dynamics": pin.rnea,
        "forward_dynamics": pin.aba,
        "mass_matrix": pin.crba,
        "mass_matrix_inverse": pin.computeMinverse,
        "inverse_dynamics_derivatives": pin.computeRNEADerivatives,
        "forward_dynamics_derivatives": pin.computeABADerivatives,
    }[task]

    def read(found: Any) -> np.ndarray:
        if task in MATRICES:
            return own.symmetric(found)
        if task == "inverse_dynamics_derivatives":
            return np.stack([own.block(data.dtau_dq), own.block(data.dtau_dv), own.symmetric(data.M)])
        if task == "forward_dynamics_derivatives":
            return np.stack([own.block(data.ddq_dq), own.block(data.ddq_dv), own.symmetric(data.Minv)])
        return own.vectors(np.array(found))

    def single(*state: np.ndarray) -> Calls:
        arrays = own.ordered(*state)
        return (lambda: function(model, data, *arrays)), (lambda: read(function(model, data, *arrays)))

    return single


def _rollout(own: Model, task: str) -> Callable[..., Calls]:
    pin, model, data = own.pin, own.model, own.data

    def single(*state: np.ndarray) -> Calls:
        start, speed, tau = own.ordered(*state)

        def run() -> tuple[np.ndarray, np.ndarray]:
            q, v = start, speed
            for _ in range(STEPS):
                v = v + STEP * pin.aba(model, data, q, v, tau)
                q = pin.integrate(model, q, STEP * v)
            return q, v

        def result() -> np.ndarray:
            q, v = run()
            return np.concatenate(own.here.state(q, v))

        return run, result

    return single


def _closed(own: Model, mech: lw.Mechanism) -> Callable[..., Calls]:
    """Loops as constraints: welds of six rows, everything else of three, which close planar loops and balls too."""
    pin, model, data = own.pin, own.model, own.data
    loops, of_loops = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in mech.loops:
        assert isinstance(loop, lw.constraints.Loop)
        sides: list[Any] = []
        for link, pose in ((loop.link_a, loop.pose_a), (loop.link_b, loop.pose_b)):
            frame = mech.frame(link)
            place = pin.SE3(frame.rotation @ pose[0], frame.rotation @ pose[1] + frame.position)
            joint = model.getJointId(mech.joint_names[frame.body]) if frame.body >= 0 else 0
            sides += [joint, place]
        kind = pin.ContactType.CONTACT_6D if loop.kind.n_constraints == 6 else pin.ContactType.CONTACT_3D
        loops.append(pin.RigidConstraintModel(kind, model, *sides, pin.ReferenceFrame.LOCAL))
    of_loops.extend([loop.createData() for loop in loops])
    settings = pin.ProximalSettings(1e-12, 1e-12, 1e-9, 20)
    pin.initConstraintDynamics(model, data, loops, of_loops)

    def single(*state: np.ndarray) -> Calls:
        given = own.ordered(*state)

        def call() -> Any:
            return pin.constraintDynamics(model, data, *given, loops, of_loops, settings)

        return call, lambda: own.vectors(np.array(call()))

    return single


def _parallel(own: Model, task: str) -> Callable[..., Calls]:
    pin, model = own.pin, own.model
    function = pin.rneaInParallel if task == "inverse_dynamics" else pin.abaInParallel

    def batch(*states: np.ndarray) -> Calls:
        pool, out = pin.ModelPool(model, 1), np.zeros((model.nv, len(states[0])), order="F")
        arrays = [np.asfortranarray(x.T) for x in own.ordered(*states)]

        def result() -> np.ndarray:
            function(1, pool, *arrays, out)
            return own.vectors(out.T)

        return (lambda: function(1, pool, *arrays, out)), result

    return batch
