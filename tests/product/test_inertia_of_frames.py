"""Inertia and mobility of frames, and the Delassus matrix of constraints, contacts and frames."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op

from .mechanisms import NAMES, SINGULAR, case
from .oracle import Terms, differentiate
from .product import Quantity, cells, check, given

DIRECTION = np.array([0.3, -0.5, 0.2, 0.6, -0.4, 0.8])
FREE = tuple(name for name in NAMES if name in ("tree", "floating", "three loops", "held feet", "masked feet"))
TREE_MASS = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R


def _link(case):
    """A link that moves freely: the base of what floats, else the last, or the coupler."""
    if case.name == "springs":
        return case.mech.link_names[1]
    return case.mech.link_names[0 if case.mech.nq != case.mech.nv and case.name != "tree" else -1]


def _jacobian(terms, links, frame="link"):
    return np.concatenate([lw.jacobian(terms.mech, terms.q, link, frame) for link in links])


def _mobility(terms, frame="link"):
    own = _jacobian(terms, [_link(terms.case)], frame)
    return own @ terms.response @ own.T


def _inertia(terms):
    """Not numbers where the constraints hold the frame in some direction: legs of two joints hold the trunk."""
    own = _mobility(terms, "world_aligned")
    values = np.linalg.eigvalsh(own)
    return np.linalg.inv(own) if values[0] > 1e-9 * values[-1] else np.full((6, 6), np.nan)


def _volume(terms):
    values = np.linalg.svd(_jacobian(terms, [_link(terms.case)])[3:5] @ terms.basis, compute_uv=False)
    return np.prod(values) if len(values) == 2 else np.array(0.0)


def _ends(case):
    return (case.mech.link_names[0], case.mech.link_names[-1])


def _delassus_of_constraints(terms):
    case, mech = terms.case, terms.mech
    rows = op.dense(op.L @ op.phi.T @ op.H.T @ op.S, mech, terms.q)
    if case.active is not None:
        rows = rows * np.repeat(case.active, [loop.n_constraints for loop in mech.loops])[:, None]
    return rows @ np.linalg.solve(terms.mass, rows.T)


QUANTITIES = [
    Quantity(
        "effective_inertia",
        lambda c: 1.0 / lw.control.effective_inertia(c.mech, c.q, DIRECTION, _link(c), "world", **given(c)),
        lambda t: DIRECTION @ _mobility(t, "world") @ DIRECTION,
    ),
    Quantity(
        "manipulability", lambda c: lw.kinematics.manipulability(c.mech, c.q, _link(c), (3, 4), **given(c)), _volume
    ),
    Quantity(
        "operational_inertia",
        lambda c: lw.control.operational_inertia(c.mech, c.q, _link(c), "world_aligned", **given(c)),
        _inertia,
        1e-8,
    ),
    Quantity(
        "delassus_of_frames",
        lambda c: lw.contact.delassus_matrix(c.mech, c.q, _ends(c), **given(c)),
        lambda t: _jacobian(t, _ends(t.case)) @ t.response @ _jacobian(t, _ends(t.case)).T,
    ),
    Quantity(
        "delassus_of_constraints",
        lambda c: lw.contact.delassus_matrix(c.mech, c.q, **given(c)),
        _delassus_of_constraints,
        cases=NAMES[3:],
    ),
    Quantity(
        "operator_inverse",
        lambda c: lw.compile(TREE_MASS.inv @ op.joint_vector("T"), c.mech)(c.q, c.tau),
        lambda t: np.linalg.solve(t.mass, t.case.tau),
        cases=[name for name in NAMES if name != "mimic"],
    ),
]


@cells(QUANTITIES)
def test_product(quantity, case_name):
    check(quantity, case(case_name))


@pytest.mark.parametrize("name", ["one loop", "overconstrained", "rolling", "held feet", "masked feet", "three loops"])
def test_states_that_are_left_to_singular_values(name, monkeypatch):
    from linkwise.constraints import solver

    monkeypatch.setattr(solver, "serves", lambda mech, name, all_hold=True: False)
    for quantity in QUANTITIES[:4]:
        check(quantity, case(name))


def test_singular_positions():
    this = case(SINGULAR)
    terms = Terms(this)
    found = lw.contact.delassus_matrix(this.mech, this.q, this.mech.link_names)
    moved = _jacobian(terms, this.mech.link_names)
    np.testing.assert_allclose(found, moved @ terms.response @ moved.T, atol=1e-9)


def test_what_nothing_moves():
    """The crank of a four-bar does not give way along its own bar; the foot that is held does not at all."""
    this = case("springs")
    assert np.isposinf(lw.control.effective_inertia(this.mech, this.q, [0.0, 0.0, 1.0], this.mech.link_names[0]))
    feet = case("held feet")
    foot = feet.mech.loops[0].name.removeprefix("held:")
    inertias = lw.control.effective_inertia(feet.mech, feet.q, np.eye(3), foot)
    assert np.isposinf(inertias).all()
    active = np.array([[True, True, True, True], [False, True, True, True]])
    both = lw.control.effective_inertia(feet.mech, feet.q, [1.0, 0, 0], foot, active=active)
    assert np.isposinf(both[0])
    assert 0.0 < both[1] < 1e3
    assert np.isnan(lw.control.operational_inertia(feet.mech, feet.q, foot)).all()
    free = lw.control.operational_inertia(feet.mech, feet.q, foot, active=[False] * 4)
    tree = lw.control.operational_inertia(feet.mech.spanning_tree, feet.q, foot)
    np.testing.assert_allclose(free, tree, atol=1e-9 * np.abs(tree).max())


def test_batches():
    this = case("held feet")
    q = np.broadcast_to(this.q, (2, 3, this.mech.nq))
    link = this.mech.link_names[0]
    assert lw.control.operational_inertia(this.mech, q, link).shape == (2, 3, 6, 6)
    assert lw.control.operational_inertia(this.mech, q[:, :0], link).shape == (2, 0, 6, 6)
    assert lw.control.effective_inertia(this.mech, q, np.ones((3, 6)), link).shape == (2, 3)
    assert lw.kinematics.manipulability(this.mech, q[:, :0], link).shape == (2, 0)
    assert lw.contact.delassus_matrix(this.mech, q, [link]).shape == (2, 3, 6, 6)
    assert lw.contact.delassus_matrix(this.mech, q).shape == (2, 3, this.mech.n_constraints, this.mech.n_constraints)


@pytest.mark.parametrize("frames", [None, ("crank", "rocker")])
def test_derivatives(frames):
    mech = lw.mechanisms.five_bar()
    frames = None if frames is None else mech.link_names[:2]
    name, options = ("delassus_matrix", {}) if frames is None else ("frame_mobilities", {"frames": frames})
    q = case("driven").q
    v = case("driven").v
    slope = lw.jacobian_of(lw.compile(name, mech, **options), "q")(q) @ v
    expected = differentiate(lambda s: lw.contact.delassus_matrix(mech, q + s * v, frames))
    np.testing.assert_allclose(slope, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["one loop", "ladder", "rolling", "held feet"])
def test_operator_expressions(name):
    """The Delassus operator in O(N), and what forces accelerate under constraints."""
    this, terms = case(name), Terms(case(name))
    G, inverse = op.L @ op.phi.T @ op.H.T, TREE_MASS.inv
    delassus = lw.compile(G @ inverse @ G.T, this.mech)(this.q)
    np.testing.assert_allclose(
        delassus, lw.contact.delassus_matrix(this.mech, this.q), atol=1e-9 * np.abs(delassus).max()
    )
    given_way = inverse - inverse @ G.T @ (G @ inverse @ G.T).inv @ G @ inverse
    tau = lw.compile(given_way @ op.joint_vector("T"), this.mech)(this.q, this.tau)
    np.testing.assert_allclose(tau, terms.response @ this.tau, atol=1e-7 * np.abs(tau).max())


def test_states_that_are_no_numbers_give_nan_with_and_without_a_batch():
    mech = lw.mechanisms.four_bar()
    q = mech.initial * np.nan
    assert np.isnan(lw.control.effective_inertia(mech, q, (0, 0, 1), "crank"))
    assert np.isnan(lw.control.effective_inertia(mech, q, (0, 0, 1), "crank", active=[True]))
    assert np.isnan(lw.kinematics.manipulability(mech, q, "rocker", rows=[2]))
    assert np.isnan(lw.kinematics.manipulability(mech, np.tile(q, (2, 3, 1)), "rocker", rows=[2])).all()
    platform = lw.mechanisms.stewart_platform()
    assert np.isnan(lw.control.operational_inertia(platform, platform.initial * np.nan, "platform")).all()


def test_what_cannot_move_has_no_quasi_velocities():
    mech = lw.mechanisms.four_bar()
    held = lw.contact.hold_frames(mech, ["crank"])
    with pytest.raises(lw.MechanismError, match="leave no degree of freedom"):
        lw.formulations.diagonal.rates(held, mech.initial, np.zeros(3))
