"""The short cut for single states owns what it should and lets go of the rest; threads, copies and pickles of it."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime.single_call import layout_is_known

from .short_cut import MECHANISMS, assert_same, ratio, sample, sample_state, two


def call_of(what):
    """A function without arguments that makes one call of the kind ``what``."""
    arm = MECHANISMS["arm"]
    q, v = lw.random_state(arm, np.random.default_rng(0))
    if what == "scalar result":
        kernel = lw.compile("kinetic_energy", arm)
        return lambda: kernel(q, v)
    if what == "public function":
        return lambda: lw.inverse_dynamics(arm, q, v, v)
    if what == "flags":
        loop, x, y = ratio(), two(), two((1.0, 0.0))
        divide = loop.before(loop.ufunc)
        return lambda: divide(x, y)
    loop, (x, y, s) = sample(), sample_state()
    function = loop.before(loop.ufunc)
    return {
        "several results": lambda: function(x, y, s),
        "batch": lambda: function(x[None], y, s),
        "keywords": lambda: function(x, y, s, out=(None, None, None)),
    }[what]


@pytest.mark.parametrize("what", ["scalar result", "public function", "flags", "several results", "batch", "keywords"])
def test_nothing_leaks(what):
    call, dtype = call_of(what), np.dtype("float64")

    def run(count):
        with np.errstate(all="ignore"):
            for _ in range(count):
                call()
        gc.collect()

    run(100)
    references = sys.getrefcount(dtype)
    tracemalloc.start()
    try:
        run(100)
        before, objects = tracemalloc.get_traced_memory()[0], len(gc.get_objects())
        run(3000)
        grown = tracemalloc.get_traced_memory()[0] - before
        assert len(gc.get_objects()) - objects < 20
    finally:
        tracemalloc.stop()
    assert grown < 3000  # less than a byte per call
    assert abs(sys.getrefcount(dtype) - references) < 20


def test_references_to_arguments_and_results():
    loop = sample()
    function = loop.before(loop.ufunc)
    state = sample_state()
    before = [sys.getrefcount(array) for array in state]
    results = [function(*state) for _ in range(100)]
    assert [sys.getrefcount(array) for array in state] == before
    outer, ratios, number = results.pop()
    fresh = np.empty(2)
    assert sys.getrefcount(outer) == sys.getrefcount(ratios) == sys.getrefcount(number) == sys.getrefcount(fresh)


def test_the_function_owns_the_general_one_and_lets_it_go():
    loop = ratio()

    def general(*arrays):
        return "general"

    alive = weakref.ref(general)
    function = loop.before(general)
    del general
    gc.collect()
    junk = [bytearray(64) for _ in range(1000)]
    assert function([1, 2], [3, 4]) == "general"
    np.testing.assert_array_equal(function(two(), two()), [1.0, 1.0])
    del function, junk
    gc.collect()
    assert alive() is None


def test_mechanisms_with_kernels_are_collected():
    mech = lw.mechanisms.planar_arm(3)
    for dtype in ("float64", "float32"):
        q = np.zeros(3, dtype)
        lw.gravity_force(mech, q)
    alive = weakref.ref(mech)
    del mech
    gc.collect()
    assert alive() is None


def test_threads_do_not_disturb_each_other():
    loop = sample()
    function = loop.before(loop.ufunc)
    states = [sample_state(seed=i) for i in range(8)]
    expected = [loop.ufunc(*state) for state in states]

    def work(number):
        for _ in range(2000):
            result = function(*states[number])
            if not all(np.array_equal(a, b) for a, b in zip(result, expected[number], strict=True)):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_kernels_are_copied_and_their_machine_code_is_not_pickled():
    mech = MECHANISMS["arm"]
    kernel = lw.compile("mass_matrix", mech)
    q = lw.random_state(mech, np.random.default_rng(4))[0]
    assert copy.copy(kernel) is kernel and copy.deepcopy([kernel]) == [kernel]
    assert_same(pickle.loads(pickle.dumps(kernel))(q), kernel(q))
    if layout_is_known():
        with pytest.raises(TypeError, match="cannot be pickled: pickle the mechanism"):
            pickle.dumps(kernel.function)
    lw.mass_matrix(mech, q)
    assert_same(lw.mass_matrix(pickle.loads(pickle.dumps(mech)), q), kernel(q))
