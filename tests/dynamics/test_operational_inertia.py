"""The operational inertia as three observers see it, and in singular positions, where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

ARM = lw.mechanisms.puma560()
TIP = ARM.link_names[-1]
REGULAR = np.array([0.3, -0.4, 0.5, 0.2, 0.7, -0.6])
FLOATING = lw.mechanisms.random_tree(9, 4, floating_base=True)


def by_inversion(mech, q, link, frame):
    jacobian = lw.jacobian(mech, q, link, frame=frame)
    return np.linalg.inv(jacobian @ np.linalg.inv(lw.mass_matrix(mech, q)) @ np.swapaxes(jacobian, -1, -2))


@pytest.mark.parametrize("frame", ["link", "world", "world_aligned"])
@pytest.mark.parametrize("mech", [ARM, FLOATING], ids=["arm", "floating"])
def test_frames_are_those_of_the_jacobian(mech, frame):
    q = REGULAR if mech is ARM else lw.random_state(mech, np.random.default_rng(3))[0]
    link = mech.link_names[-1]
    expected = by_inversion(mech, q, link, frame)
    found = lw.control.operational_inertia(mech, q, link, frame=frame)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_array_equal(found, found.T)
    kernel = lw.compile("operational_inertia", mech, link=link, frame=frame)
    np.testing.assert_array_equal(kernel(q), found)


def test_other_words_for_frames_are_refused():
    with pytest.raises(ValueError, match="frame must be 'link', 'world' or 'world_aligned', got 'LOCAL'.*'link'"):
        lw.control.operational_inertia(ARM, REGULAR, TIP, frame="LOCAL")


@pytest.mark.parametrize("frame", ["link", "world_aligned"])
def test_singular_positions_have_no_operational_inertia(frame):
    """Wrist axes in one line, at exactly zero and by round-off; the states around them in a batch are as they are
    alone."""
    states = np.tile(REGULAR, (7, 1))
    states[:, 0] += np.arange(7)
    states[2, 4], states[5, 4] = 0.0, np.pi
    with np.errstate(invalid="ignore"):
        found = lw.control.operational_inertia(ARM, states, TIP, frame=frame)
        for q, of_batch in zip(states, found, strict=True):
            np.testing.assert_allclose(lw.control.operational_inertia(ARM, q, TIP, frame=frame), of_batch, rtol=1e-9)
    assert np.isnan(found[[2, 5]]).all()
    regular = [0, 1, 3, 4, 6]
    expected = by_inversion(ARM, states[regular], TIP, frame)
    np.testing.assert_allclose(found[regular], expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())
    with pytest.warns(RuntimeWarning, match="invalid value encountered in operational_inertia"):
        lw.control.operational_inertia(ARM, states[2], TIP, frame=frame)


def test_nearly_singular_positions_keep_theirs():
    """It grows with the square of the way to the singular position, as long as numbers can say so."""
    near = [REGULAR.copy() for _ in range(2)]
    near[0][4], near[1][4] = 1e-3, 1e-4
    large, larger = (np.abs(lw.control.operational_inertia(ARM, q, TIP)).max() for q in near)
    np.testing.assert_allclose(larger / large, 100.0, rtol=1e-2)
