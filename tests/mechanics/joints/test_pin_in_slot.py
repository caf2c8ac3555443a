"""A pin in a slot is a slide that carries a hinge; a crank whose pin runs in the slot of a rocker moves as drawn."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

MASS = (1.5, (0.1, -0.2, 0.15), (0.03, 0.02, 0.04))
POSE = lw.pose((0.3, 0.1, -0.2), rpy=(0.4, -0.3, 0.8))


@pytest.mark.parametrize("axes", [((1, 0, 0), (0, 0, 1)), ((1.0, 0.2, 0.0), (0.3, 1.0, 0.5))])
def test_it_is_a_slide_that_carries_a_hinge(axes):
    """The same forces, motions and poses as of a prismatic and a revolute joint with a massless link between them."""
    slide, pin = axes
    one = lw.Builder().link("base", *MASS).link("pin", *MASS).joint("root", lw.Revolute(), "ground", "base")
    one = one.joint("slot", lw.PinInSlot(slide, pin), "base", "pin", POSE).build()
    two = (
        lw.Builder()
        .link("base", *MASS)
        .link("slider")
        .link("pin", *MASS)
        .joint("root", lw.Revolute(), "ground", "base")
    )
    two = two.joint("slide", lw.Prismatic(slide), "base", "slider", POSE)
    two = two.joint("hinge", lw.Revolute(pin), "slider", "pin").build()
    rng = np.random.default_rng(2)
    q, v, a = rng.normal(size=(3, 20, 3))
    np.testing.assert_allclose(lw.frame_pose(one, q, "pin"), lw.frame_pose(two, q, "pin"), atol=1e-14)
    np.testing.assert_allclose(lw.inverse_dynamics(one, q, v, a), lw.inverse_dynamics(two, q, v, a), atol=1e-12)
    np.testing.assert_allclose(lw.forward_dynamics(one, q, v, a), lw.forward_dynamics(two, q, v, a), atol=1e-10)


def test_a_quick_return_mechanism():
    """Crank of radius r about the origin, rocker about (0, -d): the rocker points at the crank's pin."""
    r, d = 0.2, 0.5
    rod = (1.0, (0.1, 0.0, 0.0), (0.01, 0.02, 0.02))
    builder = lw.Builder().link("crank", *rod).link("rocker", *rod)
    builder.joint("motor", lw.Revolute(), "ground", "crank").joint(
        "pivot", lw.Revolute(), "ground", "rocker", (0, -d, 0)
    )
    builder.loop("slot", lw.PinInSlot((1, 0, 0), (0, 0, 1)), "rocker", None, "crank", (r, 0, 0))
    mech = builder.build(gravity=(0.0, -9.81, 0.0))
    for angle in (-2.0, 0.3, 1.2, 2.8):
        q = lw.constraints.assemble(mech, [angle, 1.0], hold=("motor",))
        pin = r * np.array([np.cos(angle), np.sin(angle)])
        np.testing.assert_allclose(np.tan(q[1]), (pin[1] + d) / pin[0], rtol=1e-9)
        assert lw.constraints.degrees_of_freedom(mech, q) == 1
        # d/dt of tan(rocker) pin_x = pin_y + d, by hand.
        rate = (pin[0] ** 2 + (pin[1] + d) * pin[1]) / (pin[0] ** 2 + (pin[1] + d) ** 2)
        motion = lw.constraints.null_space(mech, q)[:, 0]
        np.testing.assert_allclose(motion[1] / motion[0], rate, rtol=1e-9)
    motion = lw.simulate(mech, q, lw.constraints.project(mech, q, [3.0, 0.0])[1], 0.5)
    energy = motion.energy
    np.testing.assert_allclose(energy, energy[0], atol=1e-5)
