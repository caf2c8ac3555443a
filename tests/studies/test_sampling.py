"""Numbers of cases are pure functions of seed, case and column; designs are what they are said to be."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from linkwise.studies import StudyError, sampling

NAMES = ["a", "b", "c"]


@pytest.mark.parametrize("design", sampling.DESIGNS)
def test_parts_are_those_of_the_whole(design):
    make = sampling.DESIGNS[design]
    whole = make(7, NAMES, 101, 0, 101)
    assert whole.shape == (101, 3) and (whole > 0.0).all() and (whole < 1.0).all()
    for size in (1, 3, 4, 40):
        parts = [make(7, NAMES, 101, start, min(size, 101 - start)) for start in range(0, 101, size)]
        assert np.array_equal(np.concatenate(parts), whole)
    assert not np.array_equal(make(8, NAMES, 101, 0, 101), whole)


def test_random_columns_are_uniform_independent_and_their_own():
    u = sampling.random(1, NAMES, 4000, 0, 4000)
    assert all(scipy.stats.kstest(column, "uniform").pvalue > 1e-3 for column in u.T)
    assert np.abs(np.corrcoef(u.T) - np.eye(3)).max() < 0.06
    assert np.array_equal(sampling.random(1, ["b"], 4000, 0, 4000)[:, 0], u[:, 1])


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 1000])
def test_permutations(count):
    rows = np.arange(count, dtype=np.uint64)
    found = [sampling.permuted(rows, count, key) for key in (1, 2)]
    assert all(sorted(one.tolist()) == list(range(count)) for one in found)
    assert count < 16 or (found[0] != found[1]).mean() > 0.5


def test_latin_hypercubes_have_one_number_in_each_part():
    u = sampling.latin_hypercube(3, NAMES, 500, 0, 500)
    assert all(sorted((500 * column).astype(int)) == list(range(500)) for column in u.T)
    assert np.abs(np.corrcoef(u.T) - np.eye(3)).max() < 0.15


def test_sobols_sequence_is_spread_more_evenly_than_chance():
    spread = {
        name: scipy.stats.qmc.discrepancy(sampling.DESIGNS[name](0, NAMES, 256, 0, 256)) for name in ("sobol", "random")
    }
    assert spread["sobol"] < 0.2 * spread["random"]
    assert sampling.sobol(0, [], 8, 0, 8).shape == (8, 0)
    with pytest.raises(StudyError, match="at most 21201 columns"):
        sampling.sobol(0, ["x"] * 30000, 8, 0, 8)


def test_saltellis_rows_differ_in_one_column():
    u = sampling.saltelli(0, NAMES, 4, 0, 20).reshape(4, 5, 3)
    a, b = u[:, 0], u[:, 1]
    assert (a != b).all()
    for k in range(3):
        expected = a.copy()
        expected[:, k] = b[:, k]
        assert np.array_equal(u[:, 2 + k], expected)
