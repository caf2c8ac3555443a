"""A rod between two balls rotates about itself: what follows without it, and messages that name it."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import constraints, linkages

CRANK, ROCKER, ROD = 0.2, 0.5, 0.9
ALONE = r"rotation of link 'rod' about \(1, 0, 0\) of its frame, in which nothing else moves"


@pytest.fixture(scope="module")
def rssr() -> lw.Mechanism:
    """A crank about z and a rocker about y, joined by a rod between ball joints."""
    builder = lw.Builder().link("crank", 1.0, (CRANK / 2, 0, 0), (1e-3, 4e-3, 4e-3))
    builder.link("rocker", 1.5, (0, 0, ROCKER / 2), (0.03, 0.03, 1e-3)).link(
        "rod", 0.8, (ROD / 2, 0, 0), (1e-3, 0.05, 0.05)
    )
    builder.joint("A", lw.Revolute((0, 0, 1)), "ground", "crank")
    builder.joint("D", lw.Revolute((0, 1, 0)), "ground", "rocker", (None, (0.7, 0.3, 0.1)))
    builder.joint("B", lw.Spherical(), "crank", "rod", (None, (CRANK, 0, 0)))
    builder.loop("C", lw.Spherical(), "rod", (None, (ROD, 0, 0)), "rocker", (None, (0, 0, ROCKER)))
    return builder.build("rssr")


def test_a_motor_at_the_crank_suffices(rssr):
    """The rod's own rotation follows freely: the torques produce the acceleration of the crank that was asked for."""
    q = np.array([constraints.assemble(rssr, {"A": x}, hold="A") for x in (0.3, 1.0, 2.0)])
    v = np.array([lw.constraints.project(rssr, one, [5.0, 0.0, 0.3, 0.0, 0.0])[1] for one in q])
    tau = lw.inverse_dynamics(rssr, q, v, [7.0], actuated="A", independent="A")
    assert not tau[:, 1:].any()
    np.testing.assert_allclose(lw.forward_dynamics(rssr, q, v, tau)[:, 0], 7.0, rtol=1e-9)
    by_joint = lw.inverse_dynamics(rssr, q[0], v[0], {"A": 7.0}, actuated="A")
    np.testing.assert_allclose(by_joint, tau[0], rtol=1e-9)
    np.testing.assert_allclose(
        lw.inverse_dynamics(rssr, q[0], v[0], {"A": 7.0}, actuated="A", forces="all"), tau[0], rtol=1e-9
    )
    with pytest.raises(lw.MechanismError, match=f"there are 2 degrees of freedom, 1 .* {ALONE}: name 'B.wx' too"):
        lw.inverse_dynamics(rssr, q[0], v[0], {"A": 7.0})  # with motors everywhere, it would rotate at will


def test_what_is_held_counts_as_given(rssr):
    q = constraints.assemble(rssr, {"A": 0.3}, hold="A")
    with pytest.raises(lw.MechanismError, match=f"has 2: hold 1 more .*{ALONE}: 'B.qx' holds it"):
        linkages.singular_positions(rssr, "D", q)
    found = linkages.singular_positions(rssr, "D", q, outputs="A", hold="B.qx")
    twice = linkages.singular_positions(rssr, ("D", "B.qx"), q, outputs=("A", "B.qx"), hold="B.qx")
    reach = linkages.range_of_motion(rssr, "D", q)
    assert len(found) == len(twice) == 2 and {one.kind for one in found} == {"input"}
    for one, other in zip(found, twice, strict=True):
        np.testing.assert_allclose(one.q, other.q, atol=1e-9)
    np.testing.assert_allclose(sorted(one.q[1] for one in found), [reach.lower, reach.upper], atol=1e-9)


def test_coordinates_that_do_not_suffice(rssr):
    q = constraints.assemble(rssr, {"A": 0.3}, hold="A")
    with pytest.raises(lw.MechanismError, match=f"{ALONE}: name 'B.wx' too"):
        constraints.null_space(rssr, q, independent="A")
    assert constraints.null_space(rssr, q, independent=("A", "B.wx")).shape == (5, 2)
