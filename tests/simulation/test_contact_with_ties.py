"""Semi-implicit contact of mechanisms whose links loops, couplings or mimic joints tie together."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw

LAW = {"stiffness": 2e4, "dissipation": 1.0, "damping": 40.0, "friction": 0.6, "slip_speed": 1e-3, "smoothing": 1e-5}


def sled(wrist):
    """A sled with an arm, and a hand that is welded to it, held by a loop, or moved along by the shoulder."""
    build = (
        lw.Builder().link("sled", 3.0, (0.02, 0, 0), (0.02, 0.03, 0.04)).link("arm", 1.0, (0.1, 0, 0.05), (2e-3,) * 3)
    )
    build.link("hand", 0.4, (0.1, 0, 0), (1e-3,) * 3).joint("base", lw.Floating(), "ground", "sled")
    build.joint("shoulder", lw.Revolute((0, 1, 0)), "sled", "arm", (0.1, 0, 0.1))
    at, turning = (0.2, 0, 0), lw.Revolute((0, 1, 0))
    if wrist == "welded":
        build.joint("wrist", lw.Fixed(), "arm", "hand", at)
    elif wrist == "mimic":
        build.joint("wrist", turning, "arm", "hand", at, mimic=lw.Mimic("shoulder", 0.7, 0.1))
    else:
        build.joint("wrist", turning, "arm", "hand", at)
        if wrist == "loop":
            build.loop("held", lw.Fixed(), "arm", at, "hand", (0, 0, 0))
        else:
            build.coupling("gear", {"wrist": 1.0, "shoulder": -0.7}, 0.1)
    mech = build.build(wrist).with_shape("skids", "sled", "box", (0.15, 0.1, 0.02))
    mech = mech.with_shape("knob", "hand", "sphere", 0.03, (np.eye(3), (0.1, 0, 0))).with_ground(**LAW, margin=0.0)
    free = np.zeros(mech.nv)
    free[[1, 3]] = 0.3, 0.8
    return mech, lw.configuration(mech, {"base.z": 0.06, "shoulder": 0.0}), free


@pytest.mark.parametrize(("one", "other"), [("welded", "loop"), ("mimic", "coupling")])
def test_what_is_tied_moves_as_what_is_one_body(one, other):
    """The hand and the sled hit the ground and slide, in steps of which contacts are made for a quarter: by the
    recursion over links, and by clusters."""
    ends = []
    for wrist in (one, other):
        mech, q, v = sled(wrist)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            path, rates = lw.rollout(mech, q, v, None, 4e-3, 100, "semi_implicit")
        assert np.isfinite(path).all() and np.abs(rates[-1]).max() < 0.05
        ends.append(path[:, :8])
    np.testing.assert_allclose(*ends, rtol=0.0, atol=1e-12)


def test_gradients_of_tied_contact():
    mech, q, v = sled("loop")
    path = lw.rollout(mech, q, v, None, 1e-3, 60, "semi_implicit")
    weight = np.zeros(mech.nv), np.eye(mech.nv)[3]
    found = lw.derivatives.rollout_vjp(mech, *path, None, 1e-3, 60, weight, "semi_implicit", wrt="v0")["v0"]
    push, h = np.eye(mech.nv)[3], 1e-6
    ends = [lw.rollout(mech, q, v + s * h * push, None, 1e-3, 60, "semi_implicit")[1][-1, 3] for s in (1.0, -1.0)]
    assert found @ push == pytest.approx((ends[0] - ends[1]) / (2.0 * h), rel=1e-5)
