"""Steps in time: order of the methods on every kind of joint, against SciPy's integrator on Pinocchio's dynamics."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.mechanics.algorithms.algorithm import SOLVES_TREE
from linkwise.mechanics.algorithms.catalogue import Algorithm, variants
from linkwise.mechanics.algorithms.integration import METHODS, Splitting, Tableau, step
from linkwise.mechanics.algorithms.steps_in_variables import VARIABLES, methods_in
from linkwise.mechanics.recursions.tree import build_tree
from linkwise.mechanism import MechanismError
from linkwise.mechanism.library import EVERY_KIND
from linkwise.motion import integrators
from linkwise.motion.forces import Forces
from linkwise.motion.singular import SingularPositions
from linkwise.motion.system import FullState, Manifold
from tests.mechanics.joints.test_joints import every_kind
from tests.physics.test_mimic import tied_and_free

ORDERS = {"rk4": 4, "semi_implicit": 1}
every_method = pytest.mark.parametrize("method", ORDERS)


def exact(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, tau: np.ndarray, duration: float) -> np.ndarray:
    """[q, v] after ``duration``: Pinocchio's accelerations, quaternion rates as in textbooks, SciPy's integrator."""
    pin = pytest.importorskip("pinocchio")
    from tests.peers.pinocchio_peer import mirrored

    peer = mirrored(mech)
    tie = peer.full_from_own

    def rate(_, state):
        q, v = state[: mech.nq], state[mech.nq :]
        moving = pin.aba(peer.model, peer.data, peer.configuration(unit(mech, q)), tie @ v, tie @ tau)
        return np.concatenate([coordinate_rates(mech, q, v), tie.T @ moving])

    found = solve_ivp(rate, (0.0, duration), np.concatenate([q, v]), method="DOP853", rtol=1e-12, atol=1e-12)
    assert found.success
    return np.concatenate([unit(mech, found.y[: mech.nq, -1]), found.y[mech.nq :, -1]])


def quaternions(mech: lw.Mechanism) -> list[slice]:
    """Where the quaternions are in q."""
    starts = (mech.q_index(b.joint).start for b in mech.bodies if isinstance(b.kind, lw.Spherical | lw.Floating))
    return [slice(start, start + 4) for start in starts]


def unit(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    q = q.copy()
    for at in quaternions(mech):
        q[at] /= np.linalg.norm(q[at])
    return q


def coordinate_rates(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    rates = []
    for body in mech.bodies:
        own, change = q[mech.q_index(body.joint)], v[mech.v_index(body.joint)]
        if isinstance(body.kind, lw.Spherical | lw.Floating):
            w, x, y, z = own[:4]
            turned = np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])  # q (x) [0, omega]
            rates.append(0.5 * turned @ change[:3])
            if isinstance(body.kind, lw.Floating):
                arm = np.cross([x, y, z], change[3:])  # R u = u + 2 w (p x u) + 2 p x (p x u)
                rates.append(change[3:] + 2.0 * (w * arm + np.cross([x, y, z], arm)))
        else:
            rates.append(change)
    return np.concatenate(rates)


def after(kernel: lw.Kernel, mech: lw.Mechanism, q, v, tau, duration: float, steps: int) -> np.ndarray:
    state = np.concatenate([q, v])
    for _ in range(steps):
        state = kernel(state[: mech.nq], state[mech.nq :], tau, duration / steps)
    return state


@pytest.mark.quick_one_in(2)
@every_method
@pytest.mark.parametrize("kind", (*EVERY_KIND, "all"))
def test_order_of_convergence(kind, method):
    """Halving the step divides the error by two to the order, towards a solution found without our code."""
    joints = EVERY_KIND if kind == "all" else (kind,)
    mech = lw.mechanisms.random_tree(7 if kind == "all" else 3, 4, joints=joints)
    rng = np.random.default_rng(8)
    q, v = lw.random_state(mech, rng)
    tau, duration = rng.normal(size=mech.nv), 0.3
    expected = exact(mech, q, v, tau, duration)
    kernel = lw.compile(f"{method}_step", mech)
    counts = np.array([20, 40, 80])
    errors = np.array([np.abs(after(kernel, mech, q, v, tau, duration, n) - expected).max() for n in counts])
    if kind == "prismatic" and method == "rk4":  # nothing turns: accelerations are constant, the method is exact
        assert errors.max() < 1e-12
        return
    observed = np.log2(errors[:-1] / errors[1:])
    assert errors[-1] > 5e-12, "rounding would hide the order"
    assert np.abs(observed - ORDERS[method]).max() < 0.15, (errors, observed)
    assert errors[-1] < {"rk4": 1e-7, "semi_implicit": 0.1}[method] * np.abs(expected).max()


def test_the_correction_for_turning_is_what_gives_the_order(monkeypatch):
    """Without it the method of Runge and Kutta is of second order only where joints turn freely."""
    mech = lw.mechanisms.random_tree(2, 4, joints=("spherical",))
    rng = np.random.default_rng(8)
    q, v = lw.random_state(mech, rng)
    tau = rng.normal(size=mech.nv)
    expected = exact(mech, q, v, tau, 0.1)
    monkeypatch.setattr(lw.Spherical, "step_rate", lambda self, step, v: list(v))
    kernel = lw.compile("rk4_step", mech)
    errors = [np.abs(after(kernel, mech, q, v, tau, 0.1, n) - expected).max() for n in (20, 40)]
    assert np.log2(errors[0] / errors[1]) < 3.0


def moved_with_turning_axes(mech, q, v, v_next, dt):
    """q and v after kicks to v_next: linear velocities of floating joints are vectors while their axes turn."""
    v_next, h = v_next.copy(), dt[:, None]
    for body in mech.bodies:
        if isinstance(body.kind, lw.Floating):
            at = mech.v_index(body.joint).start
            angular, linear = slice(at, at + 3), slice(at + 3, at + 6)
            v_next[:, linear] += h * np.cross(v[:, angular], v[:, linear])
    q_next = lw.integrate(mech, q, v_next, dt)
    for body in mech.bodies:
        if isinstance(body.kind, lw.Floating):
            at, to = mech.v_index(body.joint).start, mech.q_index(body.joint).start
            angular, linear, position = slice(at, at + 3), slice(at + 3, at + 6), slice(to + 4, to + 7)
            before = Rotation.from_quat(np.roll(q[:, to : to + 4], -1, axis=-1))
            q_next[:, position] = q[:, position] + h * before.apply(v_next[:, linear])
            v_next[:, linear] = Rotation.from_rotvec(h * v_next[:, angular]).inv().apply(v_next[:, linear])
    return np.concatenate([q_next, v_next], axis=-1)


@every_method
@pytest.mark.parametrize("seed", range(3))
def test_a_step_is_its_formula(seed, method):
    """The kernel against the method written with the public functions, joint forces and wrenches included."""
    mech = lw.mechanisms.random_tree(6, seed, floating_base=seed == 1)
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, (4,))
    tau, wrenches, dt = rng.normal(size=v.shape), rng.normal(size=(4, mech.n_links, 6)), np.full(4, 1e-4)
    found = lw.compile(f"{method}_step", mech, ports="wrenches", target="numpy")(q, v, tau, dt, wrenches)
    if method == "semi_implicit":
        v_next = v + dt[:, None] * lw.forward_dynamics(mech, q, v, tau, wrenches)
        expected, tolerance = moved_with_turning_axes(mech, q, v, v_next, dt), 1e-13
    else:  # the Taylor series: two terms of the coordinates, two of the velocities
        a = lw.forward_dynamics(mech, q, v, tau, wrenches)
        middle = lw.forward_dynamics(mech, lw.integrate(mech, q, v, dt / 2), v + dt[:, None] / 2 * a, tau, wrenches)
        v_next = v + dt[:, None] * middle
        expected = np.concatenate([lw.integrate(mech, q, v + dt[:, None] / 2 * a, dt), v_next], axis=-1)
        tolerance = 1e-6
    assert np.abs(found - expected).max() < tolerance * max(1.0, np.abs(expected).max())
    plain = lw.compile(f"{method}_step", mech, target="numpy")
    without = lw.compile(f"{method}_step", mech, ports="wrenches", target="numpy")(
        q, v, tau, dt, np.zeros_like(wrenches)
    )
    np.testing.assert_allclose(plain(q, v, tau, dt), without, rtol=0, atol=1e-13 * max(1.0, np.abs(without).max()))


@pytest.mark.parametrize("seed", range(3))
def test_mimic_joints_move_as_the_tied_mechanism(seed):
    """Compared with the free mechanism, on which the forces of the tie are applied at each stage: both keep q tied."""
    tied, free, tie, offset = tied_and_free(seed)
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(tied, rng)

    def rate(_, state):
        q, v = np.split(state, 2)
        mass = tie.T @ lw.mass_matrix(free, tie @ q + offset) @ tie
        return np.concatenate([v, np.linalg.solve(mass, -lw.bias_force(free, tie @ q + offset, tie @ v) @ tie)])

    expected = solve_ivp(rate, (0.0, 0.05), np.concatenate([q, v]), method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    found = after(lw.compile("rk4_step", tied), tied, q, v, np.zeros(tied.nv), 0.05, 200)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_the_tableau_meets_the_order_conditions():
    """Butcher's eight conditions for order four."""
    a = np.array([[*row, *[0.0] * (4 - len(row))] for row in METHODS["rk4"].stages])
    b, c = np.array(METHODS["rk4"].weights), a.sum(axis=1)
    conditions = {
        1.0: b.sum(), 1 / 2: b @ c, 1 / 3: b @ c**2, 1 / 6: b @ a @ c,
        1 / 4: b @ c**3, 1 / 8: (b * c) @ a @ c, 1 / 12: b @ a @ c**2, 1 / 24: b @ a @ a @ c,
    }  # fmt: skip
    np.testing.assert_allclose(list(conditions.values()), list(conditions), rtol=1e-15)


@every_kind
def test_step_rates_are_rates_of_steps(kind):
    """integrate(q0, u(t), 1) moves with v where du/dt = step_rate(u, v), up to terms of fourth order in u.

    The rate of u is that of difference(q0, q(t)) along q(t) = integrate(q, v, t).
    """
    rng = np.random.default_rng(2)
    q0, v = kind.random(rng, ()).tolist(), rng.normal(size=kind.nv).tolist()
    direction = rng.normal(size=kind.nv)
    errors = []
    for size in (0.2, 0.1):
        u = (size * direction).tolist()
        q = kind.integrate(q0, u, 1.0)
        h = 1e-3
        weights = ((1, 2 / 3), (-1, -2 / 3), (2, -1 / 12), (-2, 1 / 12))
        rate = sum(w / h * np.array(kind.difference(q0, kind.integrate(q, v, k * h))) for k, w in weights)
        errors.append(np.abs(rate - np.array(kind.step_rate(u, v))).max())
    assert errors[1] < 1e-4 and (errors[0] < 1e-10 or errors[0] / errors[1] > 12.0), errors  # fourth order
    assert errors[0] < 1e-10 or isinstance(kind, lw.Spherical | lw.Floating)


def test_one_table_of_methods():
    """Compiled steps, rollouts and simulations all offer what the table has, and nothing else."""
    steps = {
        algorithm.name for algorithm in variants() if "_step" in algorithm.name and "derivatives" not in algorithm.name
    }
    named = {f"{first}{name}" for first in ("", "closed_") for name in METHODS}
    named |= {f"{variables}_{name}" for variables in VARIABLES for name in methods_in(variables)}
    scheduled = {f"closed_{name}_step{rest}_with_active" for name in METHODS for rest in ("", "_with_wrenches")}
    assert steps == {f"{name}_step{rest}" for name in named for rest in ("", "_with_wrenches")} | scheduled
    assert methods_in("joint") == METHODS and set(METHODS) < set(methods_in("momentum"))


OTHERS = {
    "heun": (Tableau(stages=((), (1.0,)), weights=(0.5, 0.5)), 2),
    "kutta": (Tableau(stages=((), (0.5,), (-1.0, 2.0)), weights=(1 / 6, 2 / 3, 1 / 6)), 3),
    "leapfrog": (Splitting(kicks=(0.0, 1.0), drifts=(0.5, 0.5)), 1),
}
#: Dormand and Prince 1980, without its embedded method.
FIFTH = Tableau(
    stages=(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    weights=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
#: Butcher 1964.
SIXTH = Tableau(
    stages=(
        (),
        (1 / 3,),
        (0.0, 2 / 3),
        (1 / 12, 1 / 3, -1 / 12),
        (-1 / 16, 9 / 8, -3 / 16, -3 / 8),
        (0.0, 9 / 8, -3 / 8, -3 / 4, 1 / 2),
        (9 / 44, -9 / 11, 63 / 44, 18 / 11, 0.0, -16 / 11),
    ),
    weights=(11 / 120, 0.0, 27 / 40, 27 / 40, -4 / 15, -4 / 15, 11 / 120),
)


def test_a_tableau_knows_its_order():
    known = [(METHODS["rk4"], 4), (FIFTH, 5), (SIXTH, 6), (Tableau(((),), (1.0,)), 1)]
    known += [(method, order) for method, order in OTHERS.values() if isinstance(method, Tableau)]
    assert [method.order for method, _ in known] == [order for _, order in known]
    spoilt = Tableau((*SIXTH.stages[:-1], (*SIXTH.stages[-1][:-1], -1.45)), SIXTH.weights)
    assert spoilt.order < 4


@pytest.mark.parametrize(
    ("stages", "weights", "complaint"),
    [
        (((), ()), (0.5, 0.5), "as many coefficients at each stage"),
        (((), (0.5,)), (1.0,), "one weight per stage"),
        (((), (0.5,)), (0.5, 0.4), "add up to 1, not to 0.9"),
    ],
)
def test_what_is_no_explicit_method_is_refused(stages, weights, complaint):
    with pytest.raises(ValueError, match=complaint):
        Tableau(stages, weights)


def swinging(kind: lw.Spherical | lw.Universal) -> lw.Mechanism:
    top = lw.Builder("swinging").link("top", 1.0, (0.1, 0.05, 0.3), (0.3, 0.4, 0.2))
    return top.joint("ball", kind, "ground", "top").build()


@pytest.mark.parametrize(("kind", "method"), [(lw.Spherical(), FIFTH), (lw.Universal(), SIXTH)])
def test_orders_are_kept_as_far_as_step_rates_carry_them(kind, method):
    mech = swinging(kind)
    tree, v, zero = build_tree(mech), [1.0, 2.0, -1.5][: kind.nv], [0.0] * kind.nv

    def end(n: int) -> np.ndarray:
        state = [*kind.neutral(), *v]
        for _ in range(n):
            state = step(method, tree, state[: kind.nq], state[kind.nq :], zero, 0.5 / n)
        return np.array(state)

    expected = exact(mech, np.array(kind.neutral()), np.array(v), np.zeros(kind.nv), 0.5)
    errors = [np.abs(end(n) - expected).max() for n in (8, 16)]
    assert np.log2(errors[0] / errors[1]) > method.order - 0.3, errors


def test_orders_that_step_rates_do_not_carry_are_refused():
    mech = swinging(lw.Spherical())
    with pytest.raises(MechanismError, match="order 6 would only reach order 5 on joint 'ball'"):
        step(SIXTH, build_tree(mech), [1.0, 0.0, 0.0, 0.0], [0.0] * 3, [0.0] * 3, 0.1)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("coordinates", ["compiled", "joint", "nu"])
def test_a_further_method_is_a_line_of_the_table(name, coordinates, monkeypatch):
    """Steps on scalars and steps from rates both do what the table says, whatever it says."""
    method, order = OTHERS[name]
    mech = lw.mechanisms.random_tree(3, 2, joints=("revolute", "spherical"))
    q, v = lw.random_state(mech, np.random.default_rng(3))
    tau = np.linspace(-1.0, 1.0, mech.nv)
    expected = exact(mech, q, v, tau, 0.1)
    if coordinates == "compiled":
        inputs = ("q", "v", "tau", "dt")
        algorithm = Algorithm(f"{name}_step", inputs, "state", partial(step, method), requires=SOLVES_TREE)
        kernel = lw.compile(algorithm, mech)
        ends = [after(kernel, mech, q, v, tau, 0.1, n) for n in (40, 80)]
    else:
        monkeypatch.setitem(METHODS, name, method)
        monkeypatch.setattr(FullState, "compiled_step", lambda self, method: None)
        forces, manifold = Forces(mech, tau, None, ()), Manifold(SingularPositions(mech))
        of_rates = FullState(mech, forces, manifold, coordinates)
        ends = []
        for n in (40, 80):
            steps = integrators.Fixed(of_rates, name, 0.1 / n, 0.0, 0).steps(0.0, of_rates.start(q, v), 0.1)
            *_, last = steps
            ends.append(np.concatenate(of_rates.state(last.x)))
    errors = [np.abs(end - expected).max() for end in ends]
    assert order - 0.3 < np.log2(errors[0] / errors[1]) < order + 0.5, errors


def test_semi_implicit_euler_is_not_symplectic_in_general():
    """A step as a map of (q, M v) keeps the form dq d(M v) where the mass matrix is constant, and only there."""
    for mech, symplectic in ((lw.mechanisms.planar_arm(1), True), (lw.mechanisms.planar_arm(2), False)):
        n, h = mech.nv, 1e-5
        rng = np.random.default_rng(0)
        q, v = lw.random_state(mech, rng)

        def momentum_map(x, mech=mech, n=n):
            q, p = x[:n], x[n:]
            v = np.linalg.solve(lw.mass_matrix(mech, q), p)
            there, w = lw.rollout(mech, q, v, None, 0.05, 1, "semi_implicit", final_only=True)
            return np.concatenate([there, lw.mass_matrix(mech, there) @ w])

        x = np.concatenate([q, lw.mass_matrix(mech, q) @ v])
        slope = np.stack([(momentum_map(x + h * e) - momentum_map(x - h * e)) / (2 * h) for e in np.eye(2 * n)], axis=1)
        form = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
        defect = np.abs(slope.T @ form @ slope - form).max()
        assert (defect < 1e-6) == symplectic, defect
