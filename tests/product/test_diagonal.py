"""Diagonalized dynamics: total rates of trees, quasi-velocities of K* M K of mechanisms with constraints."""

import numpy as np
import pytest

import linkwise as lw

from .mechanisms import NAMES, SINGULAR, case
from .oracle import Terms, differentiate
from .product import Quantity, cells, check

CASES = tuple(name for name in NAMES if name != "masked feet")  # numbers of quasi-velocities are those of no mask
WITHOUT_DRIVES = tuple(name for name in CASES if name != "driven")  # tested with them below


def _rates(case):
    return lw.formulations.diagonal.rates(case.mech, case.q, case.v)


def _at(case, q, v):

    return lw.formulations.diagonal.rates(case.mech, q, v)


def _slope(terms, tau):
    """dnu/dt by differences along the motion that the dense equations give."""
    this, a = terms.case, terms.accelerations(tau)
    return differentiate(
        lambda s: lw.formulations.diagonal.rates(
            this.mech, lw.integrate(this.mech, this.q, s * this.v + 0.5 * s**2 * a, 1.0), this.v + s * a
        )
    )


def _covariance(case):
    """(nv, nv): K m^-* m^-1 K*, accelerations per joint force: independent of the choice of coordinates."""
    columns = [
        lw.formulations.diagonal.velocities(
            case.mech, case.q, lw.formulations.diagonal.forces(case.mech, case.q, force)
        )
        for force in np.eye(case.mech.nv)
    ]
    return np.array(columns).T


QUANTITIES = [
    Quantity(
        "energy_of_total_rates",
        lambda c: 0.5 * np.sum(_rates(c) ** 2),
        lambda t: 0.5 * t.v @ t.mass @ t.v,
        cases=WITHOUT_DRIVES,
    ),
    Quantity(
        "velocities_of_total_rates",
        lambda c: lw.formulations.diagonal.velocities(c.mech, c.q, _rates(c)),
        lambda t: t.v,
        cases=CASES,
    ),
    Quantity("accelerations_of_working_moments", _covariance, lambda t: t.response, cases=WITHOUT_DRIVES),
    Quantity(
        "torques_of_working_moments",
        lambda c: lw.formulations.diagonal.forces(
            c.mech, c.q, lw.formulations.diagonal.torques(c.mech, c.q, _rates(c))
        ),
        lambda t: _rates(t.case),
        cases=CASES,
    ),
    Quantity(
        "factor",
        lambda c: lw.formulations.diagonal.factor(c.mech, c.q) @ lw.formulations.diagonal.factor_inverse(c.mech, c.q),
        lambda t: np.eye(t.basis.shape[1]),
        cases=CASES,
    ),
    Quantity(
        "diagonal_motion",
        lambda c: lw.formulations.diagonal.motion(c.mech, c.q, _rates(c), c.tau),
        lambda t: (_slope(t, t.case.tau), t.v),
        1e-7,
        cases=WITHOUT_DRIVES,
    ),
    Quantity(
        "gyroscopic_forces_workless",
        lambda c: _rates(c) @ lw.formulations.diagonal.coriolis(c.mech, c.q, _rates(c)),
        lambda t: np.array(0.0),
        cases=CASES,
    ),
    Quantity(
        "equation_of_motion",
        lambda c: (
            lw.formulations.diagonal.all_forces(c.mech, c.q, c.tau)
            - lw.formulations.diagonal.coriolis(c.mech, c.q, _rates(c))
        ),
        lambda t: _slope(t, t.case.tau),
        1e-7,
        cases=WITHOUT_DRIVES,
    ),
]


@cells(QUANTITIES)
def test_product(quantity, case_name):
    check(quantity, case(case_name))


@pytest.mark.parametrize("name", ["one loop", "driven", pytest.param("ladder", marks=pytest.mark.slow)])
def test_without_normalization(name):
    this = case(name)
    nu, xi = _rates(this), lw.formulations.diagonal.rates(this.mech, this.q, this.v, normalized=False)
    m, u = (lw.formulations.diagonal.factor(this.mech, this.q, normalized=n) for n in (True, False))
    d = np.diag(np.linalg.solve(u, m)) ** 2
    np.testing.assert_allclose(u @ np.diag(d) @ u.T, m @ m.T, atol=1e-9)
    np.testing.assert_allclose(xi * np.sqrt(d), nu, atol=1e-9)
    changes, v = lw.formulations.diagonal.motion(this.mech, this.q, xi, this.tau, normalized=False)
    np.testing.assert_allclose(v, this.v, atol=1e-9)
    if name != "driven":
        along = lw.formulations.diagonal.coriolis(this.mech, this.q, xi, normalized=False)
        kappa = lw.formulations.diagonal.all_forces(this.mech, this.q, this.tau, normalized=False)
        np.testing.assert_allclose(d * changes + along, kappa, atol=1e-8 * np.abs(kappa).max())
    torques = lw.formulations.diagonal.torques(this.mech, this.q, xi, normalized=False)
    np.testing.assert_allclose(
        lw.formulations.diagonal.forces(this.mech, this.q, torques, normalized=False), xi, atol=1e-9
    )


def test_motion_under_drives():
    """At instants of a motion with a drive: nu is differentiated with the mechanism of each instant."""
    drive = lw.constraints.Drive(lambda t: 2.0 + 0.3 * np.sin(4.0 * t))
    five_bar = lw.mechanisms.five_bar()
    moving = five_bar.with_loops(lw.constraints.Coupling("motor", {five_bar.joint_names[0]: 1.0}, drive=drive))
    this = case("driven")
    terms = Terms(this)
    a = terms.accelerations(this.tau)

    def nu(s):
        q = lw.integrate(this.mech, this.q, s * this.v + 0.5 * s**2 * a, 1.0)
        return lw.formulations.diagonal.rates(moving.constraints.at_time(0.1 + s), q, this.v + s * a)

    found = lw.formulations.diagonal.forward_dynamics(this.mech, this.q, _rates(this), this.tau)
    np.testing.assert_allclose(found, differentiate(nu), atol=1e-7 * np.abs(found).max())


@pytest.mark.parametrize("name", ["one loop", "rolling", pytest.param("held feet", marks=pytest.mark.slow)])
def test_derivatives_of_the_factor(name):
    this = case(name)

    def factor(v):
        return differentiate(
            lambda s: lw.formulations.diagonal.factor(this.mech, lw.integrate(this.mech, this.q, v, s))
        )

    rate = lw.formulations.diagonal.factor_rate(this.mech, this.q, this.v)
    np.testing.assert_allclose(rate, factor(this.v), atol=1e-8)
    cube = lw.formulations.diagonal.factor_derivatives(this.mech, this.q)
    m = lw.formulations.diagonal.factor(this.mech, this.q)
    y = np.linalg.solve(m.T, _rates(this))
    np.testing.assert_allclose(cube @ y, rate, atol=1e-8)


def test_chosen_coordinates():
    this = case("springs")
    joints = this.mech.joint_names
    for joint in joints:
        k = this.mech.v_index(joint).start
        energy = lw.kinetic_energy(this.mech, this.q, this.v)
        nu = lw.formulations.diagonal.rates(this.mech, this.q, this.v, independent=joint)
        m = lw.formulations.diagonal.factor(this.mech, this.q, independent=[joint])
        np.testing.assert_allclose(0.5 * nu @ nu, energy)
        np.testing.assert_allclose(m[0, 0] * this.v[k], nu[0])
    with pytest.raises(lw.MechanismError, match="1 degrees of freedom"):
        lw.formulations.diagonal.rates(this.mech, this.q, this.v, independent=joints[:2])
    with pytest.raises(lw.MechanismError, match="independent= chooses among"):
        lw.formulations.diagonal.rates(case("tree").mech, case("tree").q, case("tree").v, independent=["joint1"])


def test_batches_and_what_is_refused():
    this, rng = case("one loop"), np.random.default_rng(0)
    nu = rng.normal(size=(2, 3, 5))
    changes, v = lw.formulations.diagonal.motion(this.mech, this.q, nu, this.tau)
    assert changes.shape == (2, 3, 5)
    assert v.shape == (2, 3, this.mech.nv)
    one = lw.formulations.diagonal.motion(this.mech, this.q, nu[1, 2], this.tau)
    np.testing.assert_allclose((*changes[1, 2], *v[1, 2]), np.concatenate(one), atol=1e-9)
    assert lw.formulations.diagonal.rates(this.mech, np.zeros((2, 0, 3, this.mech.nq)), this.v).shape == (2, 0, 3, 5)
    unknown = lw.formulations.diagonal.rates(this.mech, this.q * np.nan, this.v)
    assert np.isnan(unknown).all()
    with pytest.raises(lw.KernelError, match="nu"):
        lw.formulations.diagonal.velocities(this.mech, this.q, np.ones(4))
    with pytest.raises(lw.MechanismError, match="a position is singular"):
        lw.formulations.diagonal.rates(case(SINGULAR).mech, case(SINGULAR).q, case(SINGULAR).v)


@pytest.mark.parametrize("name", ["one loop", "rolling", "springs"])
def test_controllers_in_total_rates(name):
    """Kinetic energy falls as fast as the law promises: at -nu* c nu with gravity compensated."""
    this = case(name)
    control = lw.formulations.diagonal.rate_feedback(this.mech, 3.0)
    tau = control(0.0, this.q, this.v)
    power = this.v @ (tau - lw.gravity_force(this.mech, this.q))
    np.testing.assert_allclose(power, control.lyapunov_rate(this.q, this.v), rtol=1e-9)
    np.testing.assert_allclose(control.lyapunov_rate(this.q, this.v), -6.0 * control.lyapunov(this.q, this.v))
    link = this.mech.link_names[-1]
    pull = lw.formulations.diagonal.end_effector_regulation(this.mech, link, lw.frame_pose(this.mech, this.q, link))
    np.testing.assert_allclose(pull.pull(this.q), 0.0, atol=1e-9)
