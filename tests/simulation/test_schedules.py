"""Rollouts in which constraints engage and let go: against dense solutions, events of ``simulate``, and differences."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwise as lw

FEET = ("left_foot", "right_foot")
DT, STEPS = 1e-3, 24
STRIDE = np.repeat([[True, False], [False, True], [True, True]], [8, 8, 8], axis=0)


@cache
def walker(damping: float = 0.0) -> lw.Mechanism:
    """A trunk that moves in a plane on two legs, in the air: nv = 7."""
    builder, plane = lw.Builder(), lw.Revolute((0, 1, 0))
    builder.link("sled", 0.0).joint("x", lw.Prismatic((1, 0, 0)), "ground", "sled")
    builder.link("lift", 0.0).joint("z", lw.Prismatic((0, 0, 1)), "sled", "lift", (None, (0.0, 0.0, 0.75)))
    builder.link("trunk", 6.0, (0.0, 0.0, 0.1), (0.1, 0.12, 0.05)).joint("pitch", plane, "lift", "trunk")
    for side in ("left", "right"):
        builder.link(f"{side}_thigh", 1.2, (0.0, 0.0, -0.2), (0.02, 0.02, 0.002))
        builder.joint(f"{side}_hip", plane, "trunk", f"{side}_thigh", armature=0.01, damping=damping)
        builder.link(f"{side}_shank", 0.7, (0.0, 0.0, -0.2), (0.01, 0.01, 0.001))
        builder.joint(f"{side}_knee", plane, f"{side}_thigh", f"{side}_shank", (None, (0.0, 0.0, -0.4)))
        builder.frame(f"{side}_foot", f"{side}_shank", (None, (0.0, 0.0, -0.4)))
    return builder.build("walker")


POSTURE = {"left_hip": -0.5, "left_knee": 0.8, "right_hip": 0.1, "right_knee": 0.5, "pitch": 0.1}


@cache
def held() -> lw.Mechanism:
    q = np.zeros(walker().nq)
    for joint, angle in POSTURE.items():
        q[walker().q_index(joint)] = angle
    return lw.contact.hold_frames(walker(), FEET, q, points=True)


def start() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return np.array(held().initial), 0.3 * rng.normal(size=held().nv)


def torques(steps: int = STEPS) -> np.ndarray:
    return 3.0 * np.random.default_rng(5).normal(size=(steps, held().nv)) * np.array([0, 0, 0, 1, 1, 1, 1])


def places(q: np.ndarray) -> np.ndarray:
    """(..., 2, 2): where the feet are in the plane."""
    return np.stack([lw.frame_pose(walker(), q, foot)[..., :3, 3][..., [0, 2]] for foot in FEET], axis=-2)


# -- a dense oracle: M, h and numerical Jacobians of where the feet are ------------------------------------------------


def jacobian(q: np.ndarray, on: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """(2 feet that hold, nv): joint velocities are the rates of coordinates."""
    columns = [(places(q + step * e) - places(q - step * e))[on].ravel() / (2 * step) for e in np.eye(len(q))]
    return np.stack(columns, axis=-1)


def landed(q: np.ndarray, v: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Velocities after the impact: M (v+ - v) = -J* impulse, J v+ = 0."""
    J, M = jacobian(q, on), lw.mass_matrix(walker(), q)
    return v - np.linalg.solve(M, J.T @ np.linalg.solve(J @ np.linalg.solve(M, J.T), J @ v))


def accelerations(q: np.ndarray, v: np.ndarray, tau: np.ndarray, on: np.ndarray) -> np.ndarray:
    J, M, h, m = jacobian(q, on), lw.mass_matrix(walker(), q), lw.bias_force(walker(), q, v), 2 * int(on.sum())
    step = 1e-4
    bias = (places(q + step * v) - 2 * places(q) + places(q - step * v))[on].ravel() / step**2
    system = np.block([[M, J.T], [J, np.zeros((m, m))]])
    return np.linalg.solve(system, np.concatenate([tau - h, -bias]))[: len(q)]


def dense_motion(q: np.ndarray, v: np.ndarray, tau: np.ndarray, schedule: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The state at the end: impacts where feet engage, and adaptive steps between."""
    before = np.zeros(2, bool)
    for on, force in zip(schedule, tau, strict=True):
        if (on & ~before).any():
            v = landed(q, v, on)
        before = on

        def rates(_: float, x: np.ndarray, force: np.ndarray = force, on: np.ndarray = on) -> np.ndarray:
            return np.concatenate([x[7:], accelerations(x[:7], x[7:], force, on)])

        x = solve_ivp(rates, (0.0, DT), np.concatenate([q, v]), rtol=1e-9, atol=1e-11).y[:, -1]
        q, v = x[:7], x[7:]
    return q, v


def test_feet_that_engage_and_let_go_against_dense_solutions():
    q0, v0 = start()
    q, v, status = lw.rollout(held(), q0, v0, torques(), DT, STEPS, active=STRIDE, return_status=True)
    assert status == 0
    expected = dense_motion(q0, v0, torques(), STRIDE)
    assert np.abs(q[-1] - expected[0]).max() < 1e-7 and np.abs(v[-1] - expected[1]).max() < 1e-5
    moved = np.linalg.norm(np.diff(places(q), axis=0), axis=-1)
    assert moved[STRIDE].max() < 1e-13 < 1e-5 < moved[~STRIDE].min()  # those that stand stay, and stand elsewhere
    assert np.linalg.norm(places(q)[8, 1] - places(q)[0, 1]) > 1e-4


def test_momentum_of_engaging_and_of_letting_go():
    """Where feet engage velocities are those of the impact at once; where they let go nothing jumps."""
    q0, v0 = start()
    q, v = lw.rollout(held(), q0, v0, None, 1e-9, STEPS, active=STRIDE)
    hold = v0
    for k, on in ((1, STRIDE[0]), (9, STRIDE[8]), (17, STRIDE[16])):
        hold = landed(q0, hold, on)
        np.testing.assert_allclose(v[k], hold, atol=1e-5)  # Jacobians by differences
        M = lw.mass_matrix(walker(), q0)
        lost = v[k - 1] @ M @ v[k - 1] - v[k] @ M @ v[k]
        jump = v[k] - v[k - 1]
        assert lost > 0.0 and lost == pytest.approx(jump @ M @ jump, rel=1e-4)  # the energy of the jump
    free = lw.rollout(held(), q0, v0, None, 1e-9, 2, active=np.array([[True, True], [False, False]]))[1]
    np.testing.assert_allclose(free[2], free[1], atol=1e-6)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_one_phase_after_the_other_is_what_simulate_gives(method):
    """Each phase a mechanism of its own, whose feet are held where they are then, started by its impact."""
    q, v = start()
    tau = np.repeat(torques(3), 8, axis=0)
    found = lw.rollout(held(), q, v, tau, DT, STEPS, method, active=STRIDE)
    for k in range(0, STEPS, 8):
        feet = [foot for foot, on in zip(FEET, STRIDE[k], strict=True) if on]
        phase = lw.contact.hold_frames(walker(), feet, q, points=True)
        motion = lw.simulate(phase, q, lw.contact.impact(phase, q, v), 8 * DT, control=tau[k], method=method, step=DT)
        q, v = motion.q[-1], motion.v[-1]
        # What is projected is measured in each mechanism's units.
        near, of_v = {"rk4": (1e-11, 1e-10), "semi_implicit": (1e-6, 1e-4)}[method]
        np.testing.assert_allclose(found[0][k + 8], q, atol=near)
        np.testing.assert_allclose(found[1][k + 8], v, atol=of_v)


def test_energy_between_events():
    q0, v0 = start()
    q, v = lw.rollout(held(), q0, v0, None, DT, STEPS, active=STRIDE)
    energy = lw.kinetic_energy(walker(), q, v) + lw.potential_energy(walker(), q)
    for k in range(0, STEPS, 8):
        assert np.ptp(energy[k + 1 : k + 9]) < 1e-9 * abs(energy[0])
    assert energy[9] < energy[8] and energy[17] < energy[16]


def test_schedules_of_all_and_of_none():
    """All hold from the start: the rollout without a schedule; none: the tree."""
    q0, v0 = start()
    v0 = lw.constraints.project(held(), q0, v0)[1]
    for method in ("rk4", "semi_implicit"):
        given = q0, v0, torques(), DT, STEPS, method
        for found, expected in (
            (lw.rollout(held(), *given, active=np.ones(2, bool)), lw.rollout(held(), *given)),
            (lw.rollout(held(), *given, active=np.zeros(2, bool)), lw.rollout(walker(), *given)),
        ):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-11)


def test_shapes_of_schedules():
    q0, v0 = start()
    others = np.stack([STRIDE, STRIDE[::-1], np.ones_like(STRIDE)])
    together = lw.rollout(held(), q0, v0, torques(), DT, STEPS, active=others, return_status=True)
    assert together[0].shape == (3, STEPS + 1, 7) and together[2].shape == (3,)
    for k, own in enumerate(others):
        alone = lw.rollout(held(), q0, v0, torques(), DT, STEPS, active=own.astype(int))
        np.testing.assert_allclose(together[0][k], alone[0], atol=1e-14)
    same = lw.rollout(held(), q0, v0, torques(), DT, STEPS, active=np.array([[[True, False]], [[True, True]]]))
    assert same[0].shape == (2, STEPS + 1, 7)
    some = lw.rollout(held(), q0, v0, torques(), DT, STEPS, active=others, every=6)
    np.testing.assert_array_equal(some[0], together[0][:, ::6])
    single = lw.rollout(held(), *(x.astype(np.float32) for x in (q0, v0, torques())), DT, STEPS, active=STRIDE)
    assert single[0].dtype == np.float32 and np.abs(single[0] - together[0][0]).max() < 1e-4
    half = STEPS // 2
    first = lw.rollout(held(), q0, v0, torques()[:half], DT, half, active=STRIDE[:half])
    rest = lw.rollout(held(), first[0][-1], first[1][-1], torques()[half:], DT, half, active=STRIDE[half:])
    np.testing.assert_allclose(rest[0][-1], together[0][0, -1], atol=1e-11)


def test_controllers_that_are_held_follow_schedules():
    q0, v0 = start()
    control = lw.motion.held(lambda t, q, v: -2.0 * v * np.array([0, 0, 0, 1, 1, 1, 1]), 4 * DT)
    q, v, status = lw.rollout(held(), q0, v0, control, DT, STEPS, active=STRIDE, return_status=True)
    assert q.shape == (STEPS + 1, 7) and status == 0
    tau = np.repeat(-2.0 * v[:-1:4] * np.array([0, 0, 0, 1, 1, 1, 1]), 4, axis=0)
    np.testing.assert_allclose(lw.rollout(held(), q0, v0, tau, DT, STEPS, active=STRIDE)[0], q, atol=1e-12)


def test_gradients_through_a_schedule():
    q0, v0 = start()
    tau = torques()
    q, v = lw.rollout(held(), q0, v0, tau, DT, STEPS, active=STRIDE)
    rng = np.random.default_rng(6)
    w_q, w_v = rng.normal(size=(2, 7))
    found = lw.derivatives.rollout_vjp(held(), q, v, tau, DT, STEPS, (w_q, w_v), active=STRIDE)
    for every in (4,):
        some = lw.derivatives.rollout_vjp(held(), q[::every], v[::every], tau, DT, STEPS, (w_q, w_v), active=STRIDE)
        for name, gradient in some.items():
            np.testing.assert_allclose(gradient, found[name], rtol=1e-9, atol=1e-12)

    def value(q0: np.ndarray, v0: np.ndarray, tau: np.ndarray) -> float:
        ends = lw.rollout(held(), q0, v0, tau, DT, STEPS, active=STRIDE, final_only=True)
        return float(ends[0] @ w_q + ends[1] @ w_v)

    for name, at in (("q0", 0), ("v0", 1), ("tau", 2)):
        direction, step = rng.normal(size=found[name].shape), 1e-6
        ends = [
            value(*(x + s * direction if k == at else x for k, x in enumerate((q0, v0, tau)))) for s in (step, -step)
        ]
        assert np.sum(found[name] * direction) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6, abs=1e-8)
    A, B = lw.derivatives.rollout_derivatives(held(), q, v, tau, DT, active=STRIDE)
    adjoint = np.concatenate([w_q, w_v])
    for k in reversed(range(STEPS)):
        np.testing.assert_allclose(adjoint @ B[k], found["tau"][k], rtol=1e-8, atol=1e-11)
        adjoint = adjoint @ A[k]
    np.testing.assert_allclose(adjoint, np.concatenate([found["q0"], found["v0"]]), rtol=1e-8, atol=1e-10)


def test_the_step_as_a_kernel():
    q0, v0 = start()
    step = lw.motion.step_kernel(held(), DT, inputs=("active",))
    assert step.inputs == ("q", "v", "tau", "dt", "active")
    q, v = lw.rollout(held(), q0, v0, torques(), DT, STEPS, active=STRIDE)
    state, reliability, _ = step(q[:-1], v[:-1], torques(), DT, STRIDE)
    assert (reliability > 1.0).all()
    np.testing.assert_allclose(state, np.concatenate([q, v], axis=-1)[1:], atol=1e-13)
    named = lw.compile("closed_rk4_step", held(), ports="active")
    np.testing.assert_allclose(named(q[:-1], v[:-1], torques(), DT, STRIDE)[0], state, atol=1e-12)
    assert lw.compile("closed_rk4_step", held(), target="numpy", ports="active")(q0, v0, torques()[0], DT, STRIDE[0])


def test_force_elements_act_under_schedules():
    """Damping, explicitly and implicitly: as where the feet are those of a mechanism of its own."""
    mech = lw.contact.hold_frames(walker(40.0), FEET, held().initial, points=True)
    q0, v0 = start()
    v0 = lw.constraints.project(mech, q0, v0)[1]
    for method in ("rk4", "semi_implicit"):
        given = q0, v0, torques(), DT, STEPS, method
        found = lw.rollout(mech, *given, active=np.ones(2, bool))
        for one, other in zip(found, lw.rollout(mech, *given), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-11)
        assert np.abs(found[1][-1] - lw.rollout(held(), *given)[1][-1]).max() > 1e-2
        for one, other in zip(
            lw.rollout(mech, *given, active=np.zeros(2, bool)), lw.rollout(walker(40.0), *given), strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-11)


def test_a_trot_of_a_quadruped():
    """Two seconds of it in one call; its gradients by what servos aim at, against differences."""
    mech = lw.mechanisms.quadruped()
    stand, steps, period = mech.initial, 2000, 125
    phase, turn = np.arange(steps) % period / (0.6 * period), np.arange(steps) // period % 2
    pairs = np.array([[True, False, False, True], [False, True, True, False]])
    active, target = pairs[turn] | (phase >= 1.0)[:, None], np.tile(stand, (steps, 1))
    for k, leg in enumerate(("front_left", "front_right", "rear_left", "rear_right")):
        swing = np.where(pairs[turn, k] | (phase >= 1.0), 0.0, np.sin(np.pi * phase) ** 2)[:, None]
        target[:, mech.q_index(f"{leg}_pitch_joint")] += 0.2 * swing
        target[:, mech.q_index(f"{leg}_knee_joint")] -= 0.4 * swing
    motors, rest = mech.joint_names[1:], np.zeros(mech.nv)
    hold = lw.inverse_dynamics(mech, stand, rest, rest, actuated=motors)
    servos = {"kp": dict.fromkeys(motors, 150.0), "kd": dict.fromkeys(motors, 2.0)}

    def motion(target: np.ndarray, **options) -> tuple[np.ndarray, ...]:
        feedback = {"target": target, **servos}
        return lw.rollout(
            mech, stand, rest, hold, 1e-3, steps, "semi_implicit", feedback=feedback, active=active, **options
        )

    q, v, status = motion(target, return_status=True)
    assert status == 0 and np.abs(q[-1, 4:7] - stand[4:7]).max() > 0.3
    for k, loop in enumerate(mech.loops):
        pose = lw.frame_pose(mech.spanning_tree, q, loop.link_b)
        moved = np.linalg.norm(np.diff(pose[:, :3, :3] @ loop.pose_b[1] + pose[:, :3, 3], axis=0), axis=-1)
        assert moved[active[:, k]].max() < 1e-12 and moved[~active[:, k]].max() > 1e-4
    weights = np.random.default_rng(7).normal(size=(2, mech.nv))
    found = lw.derivatives.rollout_vjp(
        mech, q, v, hold, 1e-3, steps, tuple(weights), "semi_implicit", wrt="target", active=active,
        feedback={"target": target, **servos},
    )["target"]  # fmt: skip
    along = np.random.default_rng(8).normal(size=found.shape)

    def value(step: float) -> float:
        ends = motion(lw.integrate(mech, target, along, step), final_only=True)
        return lw.difference(mech, q[-1], ends[0]) @ weights[0] + ends[1] @ weights[1]

    step = 1e-7
    assert np.sum(found * along) == pytest.approx((value(step) - value(-step)) / (2 * step), rel=1e-4)


# -- constraints that are no feet -------------------------------------------------------------------------------------


@cache
def clutched() -> lw.Mechanism:
    """Two flywheels on a beam, coupled while a clutch holds; angles that differ are no contradiction before."""
    builder = lw.Builder()
    for name, at in (("a", 0.0), ("b", 1.0)):
        builder.link(name, 1.0, inertia=(0.1, 0.1, 0.2)).joint(
            f"{name}_joint", lw.Revolute(), "ground", name, (at, 0, 0)
        )
    return builder.build("flywheels").with_loops(lw.constraints.Coupling("clutch", {"a_joint": 1.0, "b_joint": -1.0}))


def test_constraints_that_close_as_they_are():
    mech, v0 = clutched(), np.array([3.0, 0.0])
    on = np.repeat([[False], [True]], 10, axis=0)
    status = lw.rollout(mech, [0.0, 0.03], v0, None, 1e-3, 20, active=on, return_status=True)
    assert status[2] == 0  # closed as it engages
    np.testing.assert_allclose(status[1][-1], 1.5, atol=1e-9)
    with pytest.warns(lw.MechanismWarning, match="cannot be relied on"):
        *_, flagged = lw.rollout(mech, [0.0, 0.5], v0, None, 1e-3, 20, active=on, return_status=True)
    assert flagged == 11
    with pytest.raises(lw.constraints.AssemblyError, match="clutch"):
        lw.rollout(mech, [0.0, 0.5], v0, None, 1e-3, 20, active=on[10:].repeat(2, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        q, v = lw.rollout(mech, [0.0, 0.5], v0, None, 1e-3, 20, active=on)
        with pytest.warns(lw.MechanismWarning, match="step 11"):
            found = lw.derivatives.rollout_vjp(mech, q, v, None, 1e-3, 20, ([1.0, 0.0], None), active=on)
    assert np.isnan(found["v0"]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"active": np.full(2, 0.5)}, "booleans"),
        ({"active": np.array([True, False, True])}, "active has shape"),
        ({"active": np.ones((STEPS + 1, 2), bool)}, "active has shape"),
    ],
)
def test_what_is_no_schedule(options, message):
    with pytest.raises((lw.MechanismError, lw.KernelError), match=message):
        lw.rollout(held(), *start(), None, DT, STEPS, **options)


def test_trees_have_no_schedule():
    with pytest.raises(lw.MechanismError, match="no constraints"):
        lw.rollout(walker(), *start(), None, DT, STEPS, active=np.ones(2, bool))
    with pytest.raises(lw.MechanismError, match="no constraints"):
        lw.motion.step_kernel(walker(), DT, inputs=("active",))


# -- frameworks -------------------------------------------------------------------------------------------------------


def test_in_torch():
    torch = pytest.importorskip("torch")
    import linkwise.torch as lt

    q0, v0 = start()
    tensors = [torch.tensor(x, requires_grad=True) for x in (q0, v0, torques())]
    q, v = lt.rollout(held(), *tensors, DT, STEPS, active=STRIDE)
    own = lw.rollout(held(), q0, v0, torques(), DT, STEPS, active=STRIDE)
    np.testing.assert_allclose(q.detach().numpy(), own[0], atol=1e-12)
    (q[-1].sum() + v[-1].sum()).backward()
    found = lw.derivatives.rollout_vjp(held(), *own, torques(), DT, STEPS, (np.ones(7), np.ones(7)), active=STRIDE)
    for tensor, name in zip(tensors, ("q0", "v0", "tau"), strict=True):
        np.testing.assert_allclose(tensor.grad.numpy(), found[name], rtol=1e-8, atol=1e-10)


def test_in_jax():
    jax = pytest.importorskip("jax")
    import linkwise.jax as lj

    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        q0, v0 = start()

        def value(v0):
            q, v = lj.rollout(held(), q0, v0, torques(), DT, STEPS, active=STRIDE)
            return q[-1].sum() + v[-1].sum()

        own = lw.rollout(held(), q0, v0, torques(), DT, STEPS, active=STRIDE)
        assert float(value(v0)) == pytest.approx(own[0][-1].sum() + own[1][-1].sum(), rel=1e-10)
        found = lw.derivatives.rollout_vjp(held(), *own, torques(), DT, STEPS, (np.ones(7), np.ones(7)), active=STRIDE)
        np.testing.assert_allclose(np.asarray(jax.grad(value)(v0)), found["v0"], rtol=1e-8, atol=1e-10)
