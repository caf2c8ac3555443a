"""Centroidal momentum, centre of mass, frames' velocities and accelerations, static forces of every robot of
example-robot-data against Pinocchio, fixed and floating, to 1e-10."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

import linkwise as lw
from tests.peers.robots import large_robots_are_slow, load, pin, robot
from tests.peers.test_pinocchio import CASES, COMPILED_SAMPLE, TOLERANCE

from tests.peers.pinocchio_peer import ANGULAR_FIRST, Peer, from_file  # isort: skip (needs pinocchio)
from tests.algorithms import VARIANTS

STATES = 10
SMALL = 1e-3  # what is smaller is compared with this: dJ/dt v of a floating base is zero but for rounding
OBSERVERS = {
    "link": pin.ReferenceFrame.LOCAL,
    "world": pin.ReferenceFrame.WORLD,
    "world_aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


class Quantities(Peer):
    """What Pinocchio says of whole robots and of frames, one state at a time."""

    def of_the_whole(self, q, v, a, wrenches) -> dict[str, np.ndarray]:
        model, data, tie = self.model, self.data, self.full_from_own
        q, v_full, a_full = self.configuration(q), tie @ v, tie @ a
        external = pin.StdVec_Force()
        external.extend([pin.Force(np.zeros(6))] * model.njoints)
        for joint, wrench in zip(self.joints, wrenches, strict=True):
            external[joint] = pin.Force(wrench[ANGULAR_FIRST])
        found = {
            "static_forces": tie.T @ pin.computeGeneralizedGravity(model, data, q),
            "static_forces_with_wrenches": tie.T @ pin.computeStaticTorque(model, data, q, external),
        }
        if self.mech.parameters.masses.any():
            pin.dccrba(model, data, q, v_full)
            found["centroidal_momentum_matrix"] = data.Ag[ANGULAR_FIRST] @ tie
            momentum = pin.computeCentroidalMomentum(model, data, q, v_full)
            found["centroidal_momentum"] = momentum.vector[ANGULAR_FIRST]
            found["centroidal_momentum_matrix_rate"] = data.dAg[ANGULAR_FIRST] @ tie
            found["center_of_mass_jacobian"] = pin.jacobianCenterOfMass(model, data, q) @ tie
            pin.centerOfMass(model, data, q, v_full, a_full)
            found["center_of_mass_velocity"] = data.vcom[0].copy()
            found["center_of_mass_acceleration"] = data.acom[0].copy()
        return found

    def mass_matrix(self, q) -> np.ndarray:
        upper = np.triu(pin.crba(self.model, self.data, self.configuration(q)))
        return self.full_from_own.T @ (upper + np.triu(upper, 1).T) @ self.full_from_own

    def of_a_frame(self, name: str, frame: str, q, v, a) -> dict[str, np.ndarray]:
        model, data, tie, observer = self.model, self.data, self.full_from_own, OBSERVERS[frame]
        q, v_full, a_full, number = self.configuration(q), tie @ v, tie @ a, model.getFrameId(name, pin.FrameType.BODY)
        pin.computeJointJacobiansTimeVariation(model, data, q, v_full)
        change = pin.getFrameJacobianTimeVariation(model, data, number, observer)
        jacobian = pin.computeFrameJacobian(model, data, q, number, observer)
        pin.forwardKinematics(model, data, q, v_full, a_full)
        pin.updateFramePlacements(model, data)
        found = {
            "jacobian": jacobian @ tie,
            "jacobian_rate_times_velocity": change @ v_full,
            "frame_velocity": pin.getFrameVelocity(model, data, number, observer).vector,
            "frame_acceleration": pin.getFrameAcceleration(model, data, number, observer).vector,
            "classical": pin.getFrameClassicalAcceleration(model, data, number, observer).vector,
        }
        return {what: array[ANGULAR_FIRST] for what, array in found.items()}


def a_frame(mech: lw.Mechanism, model: pin.Model) -> str | None:
    """One that is welded to a link away from its origin, else the last link; None where nothing moves."""
    moving = [name for name, frame in mech.frames.items() if frame.body >= 0]
    known = [name for name in moving if model.existFrame(name, pin.FrameType.BODY)]
    away = [name for name in known if np.any(mech.frame(name).position)]
    return next(iter([*away[-1:], *known[-1:]]), None)


def gathered(answers: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.array([one[name] for one in answers]) for name in answers[0]}


def compare(file, floating_base: bool, target: str) -> None:
    mech = load(file, floating_base)
    made = from_file(file, mech, floating_base)
    peer = Quantities(mech, made.model)
    rng = np.random.default_rng(crc32(file.name.encode()) + floating_base)
    q, v = lw.random_state(mech, rng, (STATES,))
    a, wrenches = rng.normal(size=v.shape), rng.normal(size=(STATES, mech.n_links, 6))
    given = {"q": q, "v": v, "a": a, "wrenches": wrenches}
    failures = []

    def check(what: str, expected: np.ndarray, **options) -> None:
        kernel = lw.compile(VARIANTS.get(what, what), mech, target=target, **options)
        found = kernel(*(given[name] for name in kernel.inputs))
        assert found.shape == expected.shape, f"{what}: shape {found.shape} instead of {expected.shape}"
        size = np.maximum(np.linalg.norm(expected.reshape(STATES, -1), axis=1), SMALL)
        worst = np.max(np.linalg.norm((found - expected).reshape(STATES, -1), axis=1) / size)
        if not worst <= TOLERANCE:
            failures.append(f"{what} {options}: relative error {worst:.2e}")

    whole = gathered([peer.of_the_whole(*state) for state in zip(q, v, a, wrenches, strict=True)])
    for name, expected in whole.items():
        check(name, expected)
    name = a_frame(mech, made.model)
    for frame in OBSERVERS if name is not None else ():
        of = {"link": name, "frame": frame}
        expected = gathered([peer.of_a_frame(name, frame, *state) for state in zip(q, v, a, strict=True)])
        classical = expected.pop("classical")
        for what, values in expected.items():
            check(what, values, **of)
        check("frame_acceleration", classical, **of, classical=True)
    assert not failures, "\n".join(failures)


@large_robots_are_slow
@pytest.mark.quick_one_in(3)
@pytest.mark.parametrize(("file", "floating_base"), CASES)
def test_every_robot(file, floating_base):
    compare(file, floating_base, target="numpy")


@pytest.mark.slow_cases("talos")
@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize(("path", "floating_base"), COMPILED_SAMPLE)
def test_some_robots_as_machine_code(path, floating_base):
    compare(robot(path), floating_base, target="cpu")


def test_frames_away_from_their_links_are_among_them():
    mech = load(robot("panda_description/urdf/panda.urdf"))
    model = from_file(robot("panda_description/urdf/panda.urdf"), mech, False).model
    assert np.any(mech.frame(a_frame(mech, model)).position)


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize(("path", "floating_base"), COMPILED_SAMPLE)
def test_effective_inertia_and_manipulability(path, floating_base):
    """From Pinocchio's Jacobian and mass matrix."""
    mech = load(robot(path), floating_base)
    peer = Quantities(mech, from_file(robot(path), mech, floating_base).model)
    rng = np.random.default_rng(1)
    q, v = lw.random_state(mech, rng, (STATES,))
    name, direction = a_frame(mech, peer.model), rng.normal(size=3)
    mass = np.array([peer.mass_matrix(one) for one in q])
    dofs = len({mech.v_index(mech.bodies[i].joint).start for i in mech.tree.path(mech.frame(name).body)})
    rows = (3, 4, 5)[:dofs]
    for frame in OBSERVERS:
        jacobian = gathered([peer.of_a_frame(name, frame, *state) for state in zip(q, v, v, strict=True)])["jacobian"]
        mobility = jacobian @ np.linalg.solve(mass, np.swapaxes(jacobian, -1, -2))
        expected = 1.0 / np.einsum("i,sij,j->s", direction, mobility[:, 3:, 3:], direction)
        rounding = np.finfo(float).eps * np.linalg.cond(mass)
        found = lw.control.effective_inertia(mech, q, direction, name, frame)
        assert (np.abs(found / expected - 1.0) < np.maximum(TOLERANCE, rounding)).all()
        volume = np.prod(np.linalg.svd(jacobian[:, rows], compute_uv=False), axis=-1)
        np.testing.assert_allclose(
            lw.kinematics.manipulability(mech, q, name, rows, frame), volume, rtol=1e-10, atol=1e-14
        )
