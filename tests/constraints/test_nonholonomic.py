"""Constraints on velocities alone: their rows, dynamics, reactions, linear models, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.mechanics.scalar import cos, sin
from linkwise.mechanism.plain_data import from_data, to_data

# Of the benchmark bicycle: Meijaard, Papadopoulos, Ruina and Schwab (2007), Table 2.
AT_REST = [-5.530943717653660, -3.131643247906656, 3.131643247906656, 5.530943717653660]
AT_5_METRES_PER_SECOND = [
    -14.07838969279822,
    -0.775341882195845 - 4.464867713788230j,
    -0.775341882195845 + 4.464867713788230j,
    -0.322866429004087,
]


@pytest.fixture(scope="module")
def bicycle():
    return lw.mechanisms.bicycle()


@pytest.fixture(scope="module")
def touching():
    """All kinds of contacts, with and without what they leave out, on planes that move."""
    builder = (
        lw.Builder().link("plate", 1.0, inertia=(1.0, 1.0, 1.0)).link("arm", 1.0, (0.1, 0.2, 0.3), (1.0, 1.0, 1.0))
    )
    builder.link("body", 2.0, (0.0, 0.1, 0.0), (0.5, 0.6, 0.7))
    builder.joint("plate", lw.Universal((1, 0, 0), (0, 1, 0)), "ground", "plate", (0.1, 0.2, 0.3))
    builder.joint("arm", lw.Planar((0, 1, 1)), "ground", "arm").joint("body", lw.Floating(), "arm", "body")
    turned = lw.pose((0.05, -0.1, 0.2), rpy=(0.2, -0.4, 0.3))
    builder.wheel("thin", "body", 0.3, (0.1, 1.0, 0.2), turned, on="plate", plane=turned)
    builder.wheel("tyre", "body", 0.3, crown=0.1, grip="forward", on="plate")
    builder.wheel("skate", "body", 0.3, (1.0, 0.0, 0.0), grip="lateral", contact=False)
    builder.wheel("smooth", "body", 0.2, grip="none", on="arm", plane=(1.0, 0.0, 0.0))
    builder.ball("ball", "body", 0.4, on="plate").ball("point", "body", 0.2, turned, contact=False)
    builder.knife_edge("blade", "body", (1.0, 0.0, 0.3), turned, on="plate").knife_edge("runner", "arm", contact=True)
    return builder.build("touching")


def test_rows_of_all_contacts(touching):
    """Against the dense operators, whose geometry is written from vectors; and dG/dt v against differences of G."""
    rng = np.random.default_rng(0)
    q, v = lw.random_state(touching, rng, (3,))
    jacobian = lw.constraints.constraint_jacobian(touching, q)
    expected = [op.dense(op.L @ op.phi.T @ op.H.T, touching, one) for one in q]
    assert jacobian.shape == (3, 15, 11)
    assert jacobian == pytest.approx(np.array(expected), abs=1e-12)
    h = 1e-5
    later, earlier = (lw.constraints.constraint_jacobian(touching, lw.integrate(touching, q, v, s)) for s in (h, -h))
    bias = lw.constraints.constraint_bias(touching, q, v)
    assert bias == pytest.approx(np.einsum("kij,kj->ki", (later - earlier) / (2 * h), v), abs=1e-6)
    holonomic = touching.constraints.holonomic_rows
    assert holonomic.tolist() == [1, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0]
    error = lw.constraints.position_error(touching, q)
    assert not error[:, ~holonomic].any() and error[:, holonomic].all()
    later, earlier = (lw.constraints.position_error(touching, lw.integrate(touching, q, v, s)) for s in (h, -h))
    rates = (jacobian @ v[..., None])[..., 0][:, holonomic]
    assert rates == pytest.approx(((later - earlier) / (2 * h))[:, holonomic], abs=1e-7)


def test_files_keep_contacts(touching):
    assert from_data(to_data(touching)) == touching
    assert "8 contacts" in repr(touching)


def test_benchmark_bicycle(bicycle):
    """The published eigenvalues, to all digits but the last two; every other one is zero."""
    q = lw.neutral(bicycle)
    assert lw.constraints.degrees_of_freedom(bicycle, q) == 3
    for speed, expected in ((0.0, AT_REST), (5.0, AT_5_METRES_PER_SECOND)):
        v = np.zeros(9)
        v[[3, 6, 8]] = speed, speed / 0.3, speed / 0.35
        model = lw.linearize(bicycle, q, v)
        found = model.eigenvalues()
        assert len(found) == 10
        assert found[np.abs(found) > 1e-3] == pytest.approx(expected, rel=1e-12)
        assert model.is_equilibrium == (speed == 0.0)
    modes = model.modes()
    weave = int(np.argmax(modes.eigenvalues.imag))
    assert modes.eigenvalues[weave] == pytest.approx(AT_5_METRES_PER_SECOND[2])
    named = dict(zip(modes.coordinates, np.abs(modes.shapes[:, weave]), strict=True))
    assert named["steering"] > 0.1 and named["base[0]"] > 0.1 and named["base[1]"] < 1e-9  # it leans, and pitches not


def test_linear_models_against_differences(bicycle):
    """At a state that is no equilibrium, under forces, all of A, B, drift and the derivatives of accelerations."""
    rng = np.random.default_rng(1)
    guess = lw.integrate(bicycle, lw.neutral(bicycle), 0.1 * rng.normal(size=9), 1.0)
    q, v = lw.constraints.project(bicycle, lw.constraints.assemble(bicycle, guess), rng.normal(size=9))
    tau = rng.normal(size=9)
    model = lw.linearize(bicycle, q, v, tau)
    n, h = len(model.state_names), 1e-4

    def rates(x, tau=tau):
        there, velocity = lw.constraints.project(bicycle, *model.joint_motion(x))
        a = lw.forward_dynamics(bicycle, there, velocity, tau)
        moved = [model.state_at(lw.integrate(bicycle, there, velocity, s), velocity + s * a) for s in (h, -h)]
        return (moved[0] - moved[1]) / (2 * h), model.state_at(there, velocity)

    columns = [(rates(h * unit), rates(-h * unit)) for unit in np.eye(n)]
    found, x = (np.array([(a[k] - b[k]) / (2 * h) for a, b in columns]).T for k in (0, 1))
    assert x == pytest.approx(np.eye(n), abs=1e-6)
    assert found == pytest.approx(model.A @ x, abs=3e-6 * np.abs(model.A).max())
    assert rates(np.zeros(n))[0] == pytest.approx(model.drift, abs=1e-6)
    pushed = [
        (rates(np.zeros(n), tau + h * one)[0] - rates(np.zeros(n), tau - h * one)[0]) / (2 * h) for one in np.eye(9)
    ]
    assert np.array(pushed).T == pytest.approx(model.B, abs=1e-6)
    d_q, d_v, d_tau = lw.forward_dynamics_derivatives(bicycle, q, v, tau)
    assert model.rate_rows @ d_tau == pytest.approx(model.B[7:], abs=1e-10)
    assert model.rate_rows @ np.hstack([d_q, d_v]) @ model.tangent == pytest.approx(model.A[7:], abs=1e-8)


def test_all_formulations_and_kernels_agree(bicycle):
    rng = np.random.default_rng(2)
    q = lw.neutral(bicycle)
    q, v = lw.constraints.project(bicycle, q, rng.normal(size=(4, 9)))
    tau = rng.normal(size=(4, 9))
    a = lw.forward_dynamics(bicycle, q, v, tau)
    for method in ("svd", "lagrange", "partitioning", "tangent", "differentiable"):
        assert lw.forward_dynamics(bicycle, q, v, tau, method=method) == pytest.approx(a, abs=1e-9)
    kernel = lw.compile("closed_forward_dynamics", bicycle)
    assert kernel(q, v, tau) == pytest.approx(a, abs=1e-9)
    assert "elimination of loops" in kernel.plan()
    violation = lw.constraints.constraint_jacobian(bicycle, q) @ a[..., None]
    assert violation[..., 0] == pytest.approx(-lw.constraints.constraint_bias(bicycle, q, v), abs=1e-10)


def test_reactions_are_what_newton_asks_for():
    """The force of the ground on a disk is its mass times acceleration less gravity; it does no work."""
    mech = lw.mechanisms.rolling_disk()
    q = lw.integrate(mech, lw.neutral(mech), [0.3, 0.2, 0.5, 0.0, 0.0, 0.0], 1.0)
    q, v = lw.constraints.project(mech, lw.constraints.assemble(mech, q), [0.2, 3.0, 0.4, 0.0, 0.0, 0.0])
    tau = np.array([0.1, -0.2, 0.3, 0.4, 0.5, -0.6])
    a = lw.forward_dynamics(mech, q, v, tau)
    (wrench,) = lw.constraints.loop_reactions(mech, q, v, tau)
    rotation = lw.link_poses(mech, q)[0, :3, :3]
    acceleration = a[3:] + np.cross(v[:3], v[3:])
    assert wrench[3:] == pytest.approx(acceleration - rotation.T @ mech.gravity - tau[3:])
    assert wrench @ v == pytest.approx(0.0, abs=1e-12)
    assert lw.constraints.constraint_forces(mech, q, v, tau) == pytest.approx(wrench)
    # The least forces that give this acceleration: the same along what the disk can do.
    least = lw.inverse_dynamics(mech, q, v, a)
    assert lw.constraints.null_space(mech, q).T @ (least - tau) == pytest.approx(np.zeros(3), abs=1e-12)
    assert lw.forward_dynamics(mech, q, v, least) == pytest.approx(a)
    # A disk that slips and then grips: the velocities that are left roll.
    after = lw.contact.impact(mech, q, v + [1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
    assert lw.constraints.constraint_jacobian(mech, q) @ after == pytest.approx(np.zeros(3), abs=1e-12)


def test_a_round_tyre_is_a_ball_and_wheels_drive_a_cart():
    """A torus without a ring rolls as a sphere does; torques of two wheels are found again from what they do."""

    def rolling(kind):
        builder = lw.Builder().link("body", 2.0, (0.02, 0.01, 0.0), (0.1, 0.12, 0.15))
        builder.joint("base", lw.Floating(), "ground", "body", (0.0, 0.0, 0.2))
        return builder.loop("contact", kind, "ground", None, "body", None).build()

    tyre, ball = rolling(lw.contact.Wheel(0.2, crown=0.2)), rolling(lw.contact.Ball(0.2))
    q = lw.constraints.assemble(tyre, lw.integrate(tyre, lw.neutral(tyre), [0.3, 0.2, 0.5, 1.0, 2.0, 0.1], 1.0))
    _, v = lw.constraints.project(tyre, q, np.arange(6.0))
    a = lw.forward_dynamics(tyre, q, v, np.ones(6))
    assert lw.forward_dynamics(ball, q, v, np.ones(6)) == pytest.approx(a)
    cart, q = lw.mechanisms.differential_drive(), np.array([0.0, 0.0, 0.3, 0.0, 0.0])
    _, v = lw.constraints.project(cart, q, np.arange(5.0))
    torque = [0.0, 0.0, 0.0, 0.3, -0.2]
    a = lw.forward_dynamics(cart, q, v, torque)
    assert lw.inverse_dynamics(cart, q, v, a, actuated=("left", "right")) == pytest.approx(torque, abs=1e-9)
    free = lw.forward_dynamics(cart, q, v, torque, active=[False, False])
    assert free == pytest.approx(lw.forward_dynamics(cart.spanning_tree, q, v, torque))


def test_rows_of_ones_own():
    """A(q) v = b, written out: a knife edge on three joints of one coordinate each, and one that drifts sideways."""
    across = {"x": lambda q: -sin(q["angle"]), "y": lambda q: cos(q["angle"]), "angle": 0.0}

    def sleigh():
        builder = lw.Builder().link("x", 0.1, inertia=(1e-3,) * 3).link("y", 0.1, inertia=(1e-3,) * 3)
        builder.link("sleigh", 2.0, (0.4, 0.0, 0.0), (0.1, 0.25, 0.3)).joint(
            "x", lw.Prismatic((1, 0, 0)), "ground", "x"
        )
        builder.joint("y", lw.Prismatic((0, 1, 0)), "x", "y").joint("angle", lw.Revolute((0, 0, 1)), "y", "sleigh")
        return builder

    own, known = sleigh().coupling("blade", across).build(), sleigh().knife_edge("blade", "sleigh").build()
    rng = np.random.default_rng(3)
    q, v, tau = rng.normal(size=(3, 4, 3))
    assert lw.constraints.constraint_jacobian(own, q) == pytest.approx(
        lw.constraints.constraint_jacobian(known, q), abs=1e-14
    )
    assert lw.constraints.constraint_bias(own, q, v) == pytest.approx(
        lw.constraints.constraint_bias(known, q, v), abs=1e-14
    )
    _, v = lw.constraints.project(own, q, v)
    a = lw.forward_dynamics(own, q, v, tau)
    assert a == pytest.approx(lw.forward_dynamics(known, q, v, tau))
    assert lw.linearize(own, q[0], v[0]).A == pytest.approx(lw.linearize(known, q[0], v[0]).A)
    with pytest.raises(lw.MechanismError, match="none of them can be locked"):
        own.with_locked(angle=0.3)
    with pytest.raises(lw.MechanismError, match="ratios that change"):
        lw.constraints.Coupling("c", {"x": lambda q: 1.0}, drive=lambda t: t)
    drifting = sleigh().coupling("blade", across, velocity=lambda t: 0.3 * t).build()
    motion = lw.simulate(drifting, None, None, 1.0, t_eval=0.25)
    sideways = -np.sin(motion.q[:, 2]) * motion.v[:, 0] + np.cos(motion.q[:, 2]) * motion.v[:, 1]
    assert sideways == pytest.approx(0.3 * motion.t, abs=1e-12)


def test_assembly_moves_wheels_sideways_too():
    """A search for closed loops is no motion: positions alone count."""
    mech = lw.mechanisms.bicycle()
    guess = lw.neutral(mech)
    guess[4:7] += 0.3, 0.2, 0.25
    guess[8] = 0.4
    q = lw.constraints.assemble(mech, guess, hold=("steering",))
    assert np.abs(lw.constraints.position_error(mech, q)).max() < 1e-12
    assert q[8] == 0.4


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda b: b.wheel("w", "body", -1.0), "contact 'w': the radius of a wheel must be positive"),
        (lambda b: b.wheel("w", "body", 0.2, crown=0.3), "crown of a wheel is from 0 to its radius"),
        (lambda b: b.wheel("w", "body", 0.2, grip="some"), "unknown grip 'some'.*available: full, forward"),
        (lambda b: b.wheel("w", "body", 0.2, grip="none", contact=False), "constrains nothing"),
        (lambda b: b.ball("w", "body", "large"), "the radius of a ball must be a number"),
        (lambda b: b.knife_edge("w", "body", (0, 0, 0)), "the direction of a knife edge must be finite and not zero"),
        (lambda b: b.wheel("w", "bodi", 0.2).build(), "no link or frame 'bodi'"),
        (lambda b: b.link("c", 1.0).joint("j", lw.contact.Wheel(0.2), "body", "c"), "hang the link on a joint"),
        (lambda b: b.loop("w", lw.contact.Wheel, "body"), "make a joint of it: Wheel"),
    ],
)
def test_what_is_wrong_is_said(make, said):
    builder = lw.Builder().link("body", 1.0, inertia=(1.0, 1.0, 1.0)).joint("base", lw.Floating(), "ground", "body")
    with pytest.raises(lw.MechanismError, match=said):
        make(builder)


def test_questions_about_positions_are_refused():
    mech = lw.mechanisms.snakeboard()
    for ask in (
        lambda: lw.kinematics.local_parametrization(mech, np.zeros(6)),
        lambda: lw.linkages.range_of_motion(mech, "rotor"),
        lambda: lw.simulate(mech, None, None, 1.0, settings=lw.motion.Settings(coordinates="independent")),
    ):
        with pytest.raises(lw.MechanismError, match="'front' of mechanism 'snakeboard' constrains velocities alone"):
            ask()
