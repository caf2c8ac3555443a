"""Rollouts: what is refused, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.dynamics.test_bad_input import massless
from tests.simulation.test_rollout import ARM

Q, V = np.zeros(6), np.zeros(6)


REFUSED = {
    "no mechanism": (lambda: lw.rollout("arm", Q, V, None, 0.1, 3), TypeError, "a Mechanism is needed"),
    "open loops": (
        lambda: lw.rollout(lw.mechanisms.four_bar(), Q[:3] + 1.0, V[:3], None, 0.1, 3),
        lw.MechanismError,
        "close it first, q0 = constraints.assemble(mech, q0)",
    ),
    "no mass": (lambda: lw.rollout(massless(), Q[:2], V[:2], None, 0.1, 3), lw.MechanismError, "'hinge'"),
    "method": (lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, "rk45"), ValueError, "unknown method 'rk45': did you mean"),
    "target": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, target="metal"),
        ValueError,
        "known: 'cpu', 'cuda', 'numpy'",
    ),
    "negative steps": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, -1),
        ValueError,
        "steps must be an integer, at least 0",
    ),
    "half a step": (lambda: lw.rollout(ARM, Q, V, None, 0.1, 2.5), ValueError, "steps must be an integer"),
    "a truth for steps": (lambda: lw.rollout(ARM, Q, V, None, 0.1, True), ValueError, "steps must be an integer"),
    "every 0": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 4, every=0),
        ValueError,
        "every must be an integer, at least 1",
    ),
    "every 3 of 4": (lambda: lw.rollout(ARM, Q, V, None, 0.1, 4, every=3), ValueError, "4 steps are no multiple of 3"),
    "every and final_only": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 4, every=2, final_only=True),
        ValueError,
        "give every or final_only, not both",
    ),
    "q0": (lambda: lw.rollout(ARM, Q[:5], V, None, 0.1, 3), lw.KernelError, r"q has shape (5,), expected (..., 6)"),
    "a number for v0": (lambda: lw.rollout(ARM, Q, 0.0, None, 0.1, 3), lw.KernelError, r"v has shape (), expected"),
    "tau": (
        lambda: lw.rollout(ARM, Q, V, np.zeros((4, 6)), 0.1, 3),
        lw.KernelError,
        "tau has shape (4, 6), expected (6,), (3, 6) or (..., 3, 6); for values that stay",
    ),
    "wrenches": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, wrenches=np.zeros(6)),
        lw.KernelError,
        "wrenches has shape (6,), expected (6, 6), (3, 6, 6) or",
    ),
    "batches": (
        lambda: lw.rollout(ARM, np.zeros((2, 6)), np.zeros((3, 6)), None, 0.1, 3),
        lw.KernelError,
        "do not broadcast: q (2,), v (3,)",
    ),
    "dt missing": (lambda: lw.rollout(ARM, Q, V, None, None, 3), lw.KernelError, "dt is missing"),
    "complex": (lambda: lw.rollout(ARM, Q + 1j, V, None, 0.1, 3), lw.KernelError, "q has dtype complex128"),
    "ragged": (lambda: lw.rollout(ARM, [[0], [1, 2]], V, None, 0.1, 3), lw.KernelError, "q is no array"),
    "out": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, out=(np.zeros((4, 6)), np.zeros((3, 6)))),
        lw.KernelError,
        "two writable arrays of dtype float64, shapes (4, 6) and (4, 6)",
    ),
    "shared out": (
        lambda: (lambda x: lw.rollout(ARM, Q, V, None, 0.1, 3, out=(x, x)))(np.zeros((4, 6))),
        lw.KernelError,
        "must not share memory",
    ),
    "a step that is no number": (
        lambda: lw.rollout(ARM, Q, None, None, np.nan, 3),
        lw.MechanismError,
        "rollout: dt must be finite, the length of a step in seconds, not nan",
    ),
    "a step without end in a batch": (
        lambda: lw.rollout(ARM, Q, V, None, np.array([0.1, np.inf]), 3),
        lw.MechanismError,
        "rollout: dt must be finite",
    ),
    "parameter": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, parameters={"weight": 1.0}),
        ValueError,
        "unknown parameter 'weight'",
    ),
    "parameters without values": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, parameters=("mass",)),
        TypeError,
        "parameters must map names to values",
    ),
    "parameter's shape": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, parameters={"mass": np.zeros(5)}),
        lw.KernelError,
        "mass has shape (5,), expected (..., 6)",
    ),
    "negative masses": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, parameters={"mass": ARM.parameters.masses * [[1.0], [-0.1]]}),
        lw.MechanismError,
        "the mass of link 'link2' in state (1,) must be positive, not -1.74",
    ),
    "a mass of zero": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, parameters={"link3.mass": 0.0}),
        lw.MechanismError,
        "the mass of link 'link3' must be positive, not 0.0",
    ),
    "no number for a mass": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, parameters={"link3.mass": [1.0, np.nan]}),
        lw.MechanismError,
        "the mass of link 'link3' in state (1,) must be positive, not nan",
    ),
    "negative moments": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, parameters={"link4.inertia": np.diag([1.0, 1.0, -0.1])}),
        lw.MechanismError,
        "the inertia of link 'link4' must be a matrix without negative principal moments",
    ),
    "no moments of a body": (
        lambda: lw.rollout(
            ARM, Q, V, None, 0.1, 3, parameters={"inertia": ARM.parameters.inertias + 5.0 * (1.0 - np.eye(3))}
        ),
        lw.MechanismError,
        "the inertia of link 'link1' must be a matrix without",
    ),
    "feedback without a target": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, feedback={"kp": 1.0}),
        ValueError,
        "needs a target",
    ),
    "feedback of another name": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, feedback={"targets": Q, "kp": 1.0}),
        ValueError,
        "unknown part of feedback 'targets': did you mean 'target'",
    ),
    "feedback that is no mapping": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, feedback=Q),
        TypeError,
        "feedback must map names to values",
    ),
    "feedback that is not compiled": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, feedback=lambda t, q, v: -q),
        TypeError,
        "feedback takes controllers that are compiled",
    ),
    "target's shape": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, feedback={"target": Q[:5], "kp": 1.0}),
        lw.KernelError,
        "target has shape (5,), expected (6,), (3, 6) or",
    ),
    "a function for a target": (
        lambda: lw.rollout(ARM, Q, V, None, 0.1, 3, feedback={"target": lambda t: Q, "kp": 1.0}),
        TypeError,
        "target must be an array, given before the motion",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what):
    call, error, fragment = REFUSED[what]
    with pytest.raises(error) as caught:
        call()
    assert fragment in str(caught.value)
