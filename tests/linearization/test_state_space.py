"""What a linear model offers: modes, discrete time, SciPy, states for feedback, tables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import scipy.signal

import linkwise as lw
from linkwise.mechanism import MechanismError

from ..constraints.built_in import built, random_state
from .differences import close, matched


@pytest.fixture(scope="module")
def model() -> lw.control.StateSpace:
    mech = built("loader")
    passive = lw.forces.Passive.dampers({"boom_joint": 500.0})
    pistons = ("lift_piston_joint", "tilt_piston_joint")
    held = lw.find_equilibrium(mech, lw.neutral(mech), solve_for="tau", actuated=pistons)
    return lw.linearize(mech, held.q, None, held.tau, pistons, pistons, passive=passive)


def test_modes_are_those_of_a_and_keep_loops_closed(model):
    modes = model.modes()
    values = model.eigenvalues()
    kept = values[values.imag >= 0.0]
    matched(modes.eigenvalues, kept, 1e-12)
    np.testing.assert_allclose(modes.frequencies, np.abs(modes.eigenvalues))
    np.testing.assert_allclose(modes.damping_ratios * modes.frequencies, -modes.eigenvalues.real, atol=1e-12)
    assert np.all(np.diff(modes.frequencies) >= 0.0)
    np.testing.assert_allclose(2.0 * np.pi * modes.frequencies_hz, modes.frequencies)
    first_column = [float(line.split()[0]) for line in str(modes).splitlines()[1:]]
    np.testing.assert_allclose(first_column, modes.frequencies_hz, rtol=1e-3, atol=1e-12)  # the table is in Hz
    jacobian = lw.constraints.constraint_jacobian(model.mechanism, model.q)
    np.testing.assert_allclose(jacobian @ modes.shapes, 0.0, atol=1e-12)
    np.testing.assert_allclose(np.abs(modes.shapes).max(axis=0), 1.0)
    # A mode solves the model: eigenvalue times the coordinates of its shape.
    x = np.concatenate([model.rows @ modes.shapes, model.rows @ modes.shapes * modes.eigenvalues])
    np.testing.assert_allclose(model.A @ x, x * modes.eigenvalues, atol=1e-9)
    assert "frequency (Hz)" in str(modes) and "boom_joint" in str(modes)


def test_modes_of_the_underlying_form_have_rigid_zeros(model):
    whole = lw.linearize(model.mechanism, model.q, None, model.tau, form="underlying")
    modes = whole.modes()
    vanishing = modes.frequencies < 1e-6 * modes.frequencies.max()
    assert np.sum(vanishing) == 12 and modes.shapes.shape[0] == 8
    assert whole.independent == whole.mechanism.joint_names


def test_discrete_time_is_the_exact_solution_of_the_linear_model():
    mech = built("five_bar")
    q, v = random_state("five_bar", 1)
    model = lw.linearize(mech, q, v, inputs=("joint1",))  # no equilibrium: the drift counts
    dt, x, u = 0.05, np.array([0.01, -0.02, 0.1, 0.0]), np.array([2.0])
    discrete = model.discretize(dt)
    exact = scipy.integrate.solve_ivp(
        lambda t, x: model.drift + model.A @ x + model.B @ u, (0.0, dt), x, rtol=1e-11, atol=1e-12
    ).y[:, -1]
    np.testing.assert_allclose(discrete.A @ x + discrete.B @ u + discrete.drift, exact, atol=1e-9)
    assert discrete.dt == dt
    with pytest.raises(ValueError, match="dt must be positive"):
        model.discretize(0.0)


def test_scipy_has_the_same_response(model):
    first = lw.linearize(model.mechanism, model.q, None, model.tau, model.independent, model.input_names[:1])
    system = first.to_scipy()
    assert (system.inputs, system.outputs) == (1, 2)
    t = np.linspace(0.0, 0.5, 6)
    _, y, _ = scipy.signal.lsim(system, np.ones(6), t)
    discrete, x = first.discretize(0.1), np.zeros(4)
    for row in y:
        np.testing.assert_allclose(row, first.C @ x, atol=1e-12)
        x = discrete.A @ x + discrete.B[:, 0]


def test_states_for_feedback(model):
    mech = model.mechanism
    x = np.array([1e-4, -2e-4, 3e-4, 1e-4])
    q, v = model.joint_motion(x)
    np.testing.assert_allclose(model.state_at(q, v), x, atol=1e-15)
    assert np.abs(lw.constraints.position_error(mech, q)).max() < 1e-6  # of second order
    assert np.abs(lw.constraints.constraint_jacobian(mech, q) @ v).max() < 1e-6
    batch = model.state_at(np.stack([q, model.q]), np.stack([v, model.v]))
    np.testing.assert_allclose(batch, [x, np.zeros(4)], atol=1e-15)


def test_the_model_predicts_the_motion():
    """A falling arm for a few hundredths of a second: the drift is kept, so the error is of third order in the time."""
    mech = lw.mechanisms.planar_arm(2)
    q, v, tau = np.array([0.3, 0.4]), np.array([0.5, -0.2]), np.array([10.0, 2.0])
    model = lw.linearize(mech, q, v, tau)
    errors = []
    for dt in (0.04, 0.02):
        end = scipy.integrate.solve_ivp(
            lambda t, x: np.concatenate([x[2:], lw.forward_dynamics(mech, x[:2], x[2:], tau)]),
            (0.0, dt),
            np.concatenate([q, v]),
            rtol=1e-11,
            atol=1e-12,
        ).y[:, -1]
        errors.append(np.abs(model.discretize(dt).drift - model.state_at(end[:2], end[2:])).max())
    assert errors[0] < 1e-2 and errors[0] / errors[1] > 6.0


def test_tables_and_text(model):
    text = model.table(width=200)
    assert text.splitlines()[0].split()[:3] == ["d/dt", "of", "lift_piston_joint"]
    assert len(text.splitlines()) == 5 and "drift" in text and "-0 " not in text
    assert "4 states in lift_piston_joint, tilt_piston_joint, 2 inputs, 2 outputs; an equilibrium" in repr(model)
    falling = lw.linearize(model.mechanism, model.q)
    assert "no equilibrium (rates up to" in repr(falling) and falling.residual > 1.0
    states = lw.linearize(model.mechanism, np.stack([model.q] * 3))
    assert "batch (3,)" in repr(states)
    for what in ("modes", "to_scipy", "table"):
        with pytest.raises(MechanismError, match=f"{what} takes one state"):
            getattr(states, what)()
    close(states.discretize(0.1).A[2], falling.discretize(0.1).A, 1e-10)


def test_tables_of_many_states_are_split():
    arm = lw.mechanisms.puma560()
    model = lw.linearize(arm, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    text = model.table()
    blocks = [block.splitlines() for block in text.split("\n\n")]
    assert len(blocks) > 1 and max(map(len, text.splitlines())) <= 110
    for block in blocks:
        assert [line.split("  ")[0].strip() for line in block] == ["d/dt of", *model.state_names]
    # Side by side again they are the whole: every number is there once.
    rows = [[cell for block in blocks for cell in block[1 + i].split()[1:]] for i in range(12)]
    numbers = np.array(rows, dtype=float)
    expected = np.concatenate([model.A, model.B, model.drift[:, None]], axis=1)
    np.testing.assert_allclose(numbers, expected, rtol=1e-4, atol=1e-9 * np.abs(expected).max())
    assert len(model.table(width=10**6).splitlines()) == 13
    assert len(model.table(width=1).split("\n\n")) == 19  # a column each


def test_pictures(model, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("plot_eigenvalues", "plot_bode", "plot_step"):
        getattr(model, name)(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 1000


def test_discrete_models_say_what_they_are_in_a_line():
    arm = lw.mechanisms.planar_arm(2)
    assert repr(lw.linearize(arm).discretize(0.01)) == "<Discrete: 4 states, 2 inputs, steps of 0.01 s>"
    models = lw.linearize(arm, np.zeros((3, 2)))
    assert repr(models.discretize(0.01)) == "<Discrete: 4 states, 2 inputs, steps of 0.01 s, batch (3,)>"
