"""Operations: in proportion to the links for transforms, the Coriolis term and motion; what motion costs next to
articulated-body forward dynamics; by the result's size for derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.pipeline import trace_algorithm
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS

LINEAR = ("rates", "velocities", "forces", "torques", "coriolis", "motion")


def operations(name: str, mech: lw.Mechanism, **options) -> int:
    counts = trace_algorithm(ALGORITHMS[name], mech, options=options)[0].op_counts
    return sum(counts.get(kind, 0) for kind in ("add", "mul", "div", "sqrt"))


@pytest.mark.parametrize("normalized", [True, False], ids=["nu", "xi"])
@pytest.mark.parametrize("name", LINEAR)
def test_operations_are_proportional_to_the_links(name, normalized):
    sizes = np.array([8, 16, 32, 64])
    counts = np.array([operations(f"diagonal_{name}", lw.mechanisms.chain(n), normalized=normalized) for n in sizes])
    per_link = np.diff(counts) / np.diff(sizes)
    assert np.ptp(per_link) < 0.02 * per_link.mean()
    exponent = np.polyfit(np.log(sizes), np.log(counts - counts[0] + per_link[0] * sizes[0]), 1)[0]
    assert exponent == pytest.approx(1.0, abs=0.02)


def test_motion_costs_more_than_forward_dynamics_by_the_rate_of_one_symmetric_matrix():
    """The rates of the articulated inertias take the place of the sweep of accelerations, and cost more than that."""
    for mech in (
        lw.mechanisms.stanford_arm(),
        lw.mechanisms.puma560(),
        lw.mechanisms.chain(20),
        lw.mechanisms.random_tree(8, 3, floating_base=True),
    ):
        standard = operations("forward_dynamics", mech, method="filter_and_smoother")
        assert operations("diagonal_motion", mech, normalized=False) / standard < 1.65, mech.name
        assert operations("diagonal_motion", mech) / standard < 1.8, mech.name


def test_motion_of_the_stanford_arm_is_within_15_percent_of_forward_dynamics():
    mech = lw.mechanisms.stanford_arm()
    standard = operations("forward_dynamics", mech, method="filter_and_smoother")
    assert operations("diagonal_motion", mech, normalized=False) < 1.15 * standard


@pytest.mark.parametrize(
    ("name", "order"), [("mass_matrix_derivatives", 3), ("diagonal_factor_derivatives", 3), ("diagonal_factor_rate", 2)]
)
def test_derivatives_grow_with_their_result(name, order):
    sizes = (6, 12, 24)
    counts = [operations(name, lw.mechanisms.chain(n)) for n in sizes]
    exponents = np.diff(np.log(counts)) / np.diff(np.log(sizes))
    assert exponents[-1] < order + 0.05, (counts, exponents)


def test_sweeps_of_motion():
    """Inertias, velocities, rates: as a function of (q, nu).  Where V is carried over from the step before, as in
    jain1995, the first and the last are one."""
    kernel = lw.compile("diagonal_motion", lw.mechanisms.stanford_arm(), target="numpy")
    assert [direction for direction, _ in kernel.sweeps] == ["tip_to_base", "base_to_tip", "tip_to_base"]
