"""Machine code is unloaded when nothing refers to it any more, and not before."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import llvm_loader
from linkwise.compiler.runtime.gufunc import owners_are_known

pytestmark = pytest.mark.skipif(not owners_are_known(), reason="ufuncs of this interpreter cannot own machine code")


@pytest.fixture(autouse=True)
def only_what_the_test_loads(monkeypatch):
    """A table of loaded code that starts empty: kernels of other tests come and go as they like."""
    monkeypatch.setattr(llvm_loader, "_loaded", weakref.WeakValueDictionary())


@pytest.fixture
def unloaded(monkeypatch):
    """Libraries that have been unloaded, by name."""
    names = []
    dispose = llvm_loader.llvm.ResourceTracker._dispose

    def counted(library):
        names.append(library.name)
        dispose(library)

    monkeypatch.setattr(llvm_loader.llvm.ResourceTracker, "_dispose", counted)
    return names


def arms(count):
    """Mechanisms that need different machine code each."""
    return [lw.mechanisms.planar_arm(2, mass=1.0 + 0.1 * i) for i in range(count)]


def live() -> int:
    gc.collect()
    return len(llvm_loader._loaded)


def test_kernels_that_are_dropped_are_unloaded(unloaded):
    kernels = [lw.compile("mass_matrix", mech) for mech in arms(40)]
    count = live()
    assert count >= 40
    codes = [weakref.ref(code) for code in llvm_loader._loaded.values()]
    q, kept = np.array([0.3, -0.8]), kernels[7]
    expected = kept(q).copy()
    del kernels
    assert live() == count - 39 == sum(code() is not None for code in codes)
    assert len(unloaded) == 39
    np.testing.assert_array_equal(kept(q), expected)


def test_engines_go_with_their_last_library():
    engines = set()
    for mech in arms(3 * llvm_loader._LIBRARIES_PER_ENGINE):
        kernel = lw.compile("mass_matrix", mech)
        engines.add(weakref.ref(llvm_loader._engine))
        del kernel
    gc.collect()
    alive = [engine() for engine in engines if engine() is not None]
    assert len(engines) >= 3
    # The one in use, and one that may hold the short cut or kernels of other tests.
    assert llvm_loader._engine in alive and len(alive) <= 2


@pytest.mark.parametrize("batch", [(), (3,), (4000,)])
def test_the_function_alone_keeps_the_code(batch, unloaded):
    (mech,) = arms(1)
    q = np.random.default_rng(0).normal(size=(*batch, 2))
    expected = lw.mass_matrix(mech, q)
    function = lw.compile("mass_matrix", mech).function
    del mech
    count = live()
    np.testing.assert_array_equal(function(q), expected)
    result = function(q)
    del function
    assert live() == count - 1
    np.testing.assert_array_equal(result[..., :1], expected[..., :1])  # results do not depend on the code


def test_kernels_kept_by_a_mechanism_go_with_it(unloaded):
    (mech,) = arms(1)
    q = np.zeros(2)
    lw.mass_matrix(mech, q), lw.mass_matrix(mech, q.astype(np.float32)), lw.forward_dynamics(mech, q, q, q)
    lw.rollout(mech, q, q, None, 0.05, 2)
    count, before = live(), len(unloaded)
    lw.mass_matrix(mech, q)
    assert live() == count
    del mech
    gone = count - live()
    assert gone >= 4 and len(unloaded) - before == gone


def test_equal_programs_share_their_code_until_both_are_gone():
    one, other = (lw.compile("mass_matrix", lw.mechanisms.planar_arm(2, mass=1.5)) for _ in range(2))
    count, q = live(), np.zeros(2)
    expected = one(q)
    del one
    assert live() == count
    np.testing.assert_array_equal(other(q), expected)
    del other
    assert live() == count - 1


def test_threads_keep_what_they_run(unloaded):
    """Threads hold nothing but the function they call; each drops its own when it is done."""
    functions = [lw.compile("mass_matrix", mech).function for mech in arms(4)]
    q, wrong = np.random.default_rng(1).normal(size=(50, 2)), []
    expected = [function(q) for function in functions]
    count = live()

    def work(function, wanted):
        for i in range(200):
            if not np.array_equal(function(q[i % 50]), wanted[i % 50]) or not np.array_equal(function(q), wanted):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(functions, expected, strict=True)]
    del functions
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del threads, thread
    assert not wrong and live() == count - 4


def test_what_is_dropped_during_a_compilation_waits_for_its_end(unloaded):
    kernel = lw.compile("mass_matrix", arms(1)[0])
    holding, done = threading.Event(), threading.Event()

    def hold():
        with llvm_loader._lock:
            holding.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(30)
    del kernel  # returns although the lock is taken
    gc.collect()
    assert not unloaded and len(llvm_loader._unused) == 1
    done.set()
    thread.join()
    lw.compile("gravity_force", arms(1)[0])
    assert len(unloaded) >= 1 and not llvm_loader._unused


def test_the_interpreter_ends_with_kernels_alive():
    """Kernels in globals, in cycles, in exit functions and in a thread that still runs."""
    script = """
import atexit, threading, numpy as np, linkwise as lw
arm = lw.mechanisms.planar_arm(2)
q = np.zeros((2000, 2))
kernel = lw.compile("mass_matrix", arm)
lw.forward_dynamics(arm, q, q, q)
cycle = [lw.compile("bias_force", arm)]; cycle.append(cycle)
atexit.register(lambda: kernel(q))
class Late:
    def __init__(self, kernel): self.kernel = kernel
    def __del__(self): self.kernel(np.zeros(2))
late = Late(lw.compile("gravity_force", arm))
def forever(function=lw.compile("inverse_dynamics", arm).function):
    while True: function(q, q, q)
threading.Thread(target=forever, daemon=True).start()
print("done")
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")
