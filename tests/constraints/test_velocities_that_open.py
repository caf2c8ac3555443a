"""Velocities that violate loops are noticed wherever dynamics of closed mechanisms is asked for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise import constraints

from .built_in import built

VIOLATED = r"velocities violate the constraints of loop 'pin' of mechanism 'four_bar'.*\{joint: speed\}"


def calls(mech, q, v, tau):
    """Everything that supposes velocities to keep loops closed."""
    a = lw.forward_dynamics(mech, q, v, tau, baumgarte=(0.0, 0.0))  # any, consistent with the bias of loops
    wrenches = np.zeros((mech.n_links, 6))
    return (
        lambda: lw.forward_dynamics(mech, q, v, tau),
        lambda: lw.forward_dynamics(mech, q, np.stack([0.0 * v, v]), tau),
        lambda: lw.forward_dynamics(mech, q, v, tau, wrenches=wrenches),
        lambda: lw.forward_dynamics(mech, q, v, tau, method="lagrange"),
        lambda: lw.inverse_dynamics(mech, q, v, a),
        lambda: constraints.loop_reactions(mech, q, v, tau),
        lambda: lw.joint_wrenches(mech, q, v, tau=tau),
        lambda: lw.forward_dynamics(mech, q, v, tau, forces="all"),
        lambda: lw.inverse_dynamics(mech, q, v, a, forces="all"),
        lambda: lw.inverse_dynamics(mech, q, v, a, actuated="crank_joint", forces="all"),
    )


def test_velocities_that_violate_loops_are_noticed():
    mech = built("four_bar")
    q, tau = constraints.assemble(mech, {"crank_joint": 0.7}, hold="crank_joint"), np.zeros(3)
    for call in calls(mech, q, np.array([10.0, 0.0, 0.0]), tau):
        with pytest.warns(lw.MechanismWarning, match=VIOLATED):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for v in (constraints.project(mech, q, [10.0, 0.0, 0.0])[1], np.zeros(3)):
            few_digits = np.array([float(f"{x:.5g}") for x in v])
            for call in (*calls(mech, q, v, tau), *calls(mech, q, few_digits, tau)[:4]):
                call()
        lw.forward_dynamics(mech, q, np.array([10.0, 0.0, 0.0]), tau, baumgarte=(5.0, 5.0))  # closes them itself
        open_one = np.array([False] * len(mech.loops))
        lw.forward_dynamics(mech, q, np.array([10.0, 0.0, 0.0]), tau, active=open_one)  # nothing to violate


def test_the_units_of_a_mechanism_do_not_matter():
    """A four-bar of a fifth of a millimetre, and a gear train with ratios of thousandths."""
    z, size, v = lw.Revolute((0, 0, 1)), 2e-4, np.array([10.0, 0.0, 0.0])
    builder = lw.Builder()
    for name in ("crank", "coupler", "rocker"):
        builder.link(name, 1.0, (size / 2, 0, 0), (size**2,) * 3)
    builder.joint("A", z, "ground", "crank").joint("B", z, "crank", "coupler", (None, (size, 0, 0)))
    builder.joint("D", z, "ground", "rocker", (None, (0, size, 0)))
    tiny = builder.loop("C", z, "coupler", (None, (0, size, 0)), "rocker", (None, (size, 0, 0))).build("tiny")
    gears = lw.Builder().link("wheel", 1.0, (0, 0, 0), (0.1,) * 3).link("pinion", 1.0, (0, 0, 0), (0.1,) * 3)
    gears.joint("W", z, "ground", "wheel").joint("P", z, "ground", "pinion").coupling("mesh", {"W": 2e-3, "P": 1e-3})
    for mech, moving in ((tiny, v), (gears.build("gears"), v[:2])):
        q = constraints.assemble(mech, mech.initial)
        with pytest.warns(lw.MechanismWarning, match="velocities violate"):
            lw.forward_dynamics(mech, q, moving, np.zeros(mech.nv))


def test_a_driven_joint_that_stands_still():
    z = lw.Revolute((0, 0, 1))
    builder = lw.Builder().link("arm", 1.0, (0.5, 0, 0), (0.1,) * 3).joint("A", z, "ground", "arm")
    driven = builder.drive("motor", "A", lambda t: 2.0 * t).build("driven").constraints.at_time(0.0)
    with pytest.warns(lw.MechanismWarning, match="loop 'motor'"):
        lw.forward_dynamics(driven, [0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.forward_dynamics(driven, [0.0], [2.0])


def test_what_holds_a_closed_mechanism_at_rest():
    """Without velocity and acceleration, as messages say: by the principle of virtual work, -dV/d(crank)."""
    mech, step = built("four_bar").with_gravity((0.0, -9.81, 0.0)), 1e-5
    angle = {"crank_joint": 0.7}
    energies = [lw.potential_energy(mech, lw.configuration(mech, crank_joint=0.7 + x)) for x in (step, -step)]
    expected = (energies[0] - energies[1]) / (2 * step)
    for tau in (
        lw.inverse_dynamics(mech, angle, actuated="crank_joint"),
        lw.inverse_dynamics(mech, angle, actuated="crank_joint", independent="crank_joint"),
        lw.inverse_dynamics(mech, angle, actuated="crank_joint", forces="all"),
    ):
        np.testing.assert_allclose(tau, [expected, 0.0, 0.0], rtol=1e-7)
    np.testing.assert_allclose(lw.forward_dynamics(mech, angle, tau=tau), np.zeros(3), atol=1e-9)
    assert (
        constraints.loop_reactions(mech, angle, tau=tau).shape
        == constraints.loop_reactions(mech, angle).shape
        == (1, 6)
    )
