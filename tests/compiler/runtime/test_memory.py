"""Memory of large results comes back, but never while anybody looks at it."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import memory


@pytest.fixture(autouse=True)
def nothing_waits():
    memory._waiting.clear()
    yield
    memory._waiting.clear()


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_is_used_again_when_the_last_view_is_gone():
    first = memory.empty((1024, 257), "float64")
    first[...] = 1.0
    place, view = address(first), first[5:].T
    del first
    gc.collect()
    other = memory.empty((1024, 257), "float64")
    assert address(other) != place and np.all(view == 1.0)
    del view
    gc.collect()
    assert address(memory.empty((257, 1024), "float64")) == place
    assert other.flags.writeable and other.flags.c_contiguous and other.flags.aligned


def test_other_sizes_and_small_arrays_get_their_own():
    size = 1 << 18
    place = address(memory.empty((size,), "float64"))
    gc.collect()
    assert len(memory._waiting) == 1
    assert address(memory.empty((size + 1,), "float64")) != place
    small = memory.empty((10,), "float32")
    assert small.base is None and small.dtype == np.float32


def test_what_waits_is_bounded(monkeypatch):
    monkeypatch.setattr(memory, "KEPT", 5 << 20)
    for extra in range(8):
        memory.empty(((1 << 18) + extra,), "float64")  # two megabytes each
    memory.empty((1 << 20,), "float64")  # more than may wait at all
    gc.collect()
    assert sum(one.size for one in memory._waiting) <= 5 << 20
    assert len(memory._waiting) == 2


def test_results_of_large_batches():
    """Results that are kept stay as they are while others of the same size are computed."""
    mech = lw.mechanisms.chain(12)
    q, v = lw.random_state(mech, np.random.default_rng(0), (3000,))
    first = lw.inverse_dynamics_derivatives(mech, q, v, v)[0]
    kept = first.copy()
    places = set()
    for _ in range(3):
        again = lw.inverse_dynamics_derivatives(mech, 2.0 * q, v, v)[0]
        places.add(address(again))
        assert not np.may_share_memory(again, first)
        del again
        gc.collect()
    assert len(places) == 1
    assert np.array_equal(first, kept)
