"""Many threads that call a function for the first time: it is compiled once, and other mechanisms are not held up."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler import pipeline as compiler
from linkwise.motion import step


def run_together(count: int, work) -> list:
    """Results of ``work(i)`` in threads that start at the same moment."""
    results, start = [None] * count, threading.Barrier(count)

    def run(i: int) -> None:
        start.wait()
        results[i] = work(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_concurrent_first_calls_compile_once(monkeypatch):
    compiled = []
    original = compiler.compile

    def counting(name, mech, **options):
        compiled.append(name)
        time.sleep(0.05)  # time enough for every thread to come and see that nothing is there yet
        return original(name, mech, **options)

    monkeypatch.setattr(compiler, "compile", counting)
    mech = lw.mechanisms.planar_arm(3)
    q = np.array([0.1, 0.2, 0.3])
    results = run_together(8, lambda i: lw.mass_matrix(mech, q))
    assert compiled == ["mass_matrix"]
    assert all(np.array_equal(result, results[0]) for result in results)
    floats = run_together(4, lambda i: lw.mass_matrix(mech, q.astype(np.float32)))
    assert compiled == ["mass_matrix"] * 2 and all(result.dtype == np.float32 for result in floats)


def test_concurrent_first_rollouts_compile_once(monkeypatch):
    traced = []
    original = step.trace_with_plan

    def counting(algorithm, *arguments, **options):
        traced.append(algorithm.name)
        time.sleep(0.05)
        return original(algorithm, *arguments, **options)

    monkeypatch.setattr(step, "trace_with_plan", counting)
    mech = lw.mechanisms.planar_arm(2)
    q, v, pushes = np.array([0.1, 0.2]), np.zeros(2), np.ones((mech.n_links, 6))
    results = run_together(6, lambda i: lw.rollout(mech, q, v, None, 0.01, 5, wrenches=pushes)[0])
    assert traced == ["rk4_step_with_wrenches"]
    assert all(np.array_equal(result, results[0]) for result in results)


def test_other_mechanisms_do_not_wait(monkeypatch):
    """While one mechanism is compiled, another's function is compiled and called to its end."""
    slow, quick = lw.mechanisms.planar_arm(2), lw.mechanisms.planar_arm(3)
    inside, finished = threading.Event(), threading.Event()
    original = compiler.compile

    def waiting(name, mech, **options):
        if mech is slow:
            inside.set()
            assert finished.wait(30.0)
        return original(name, mech, **options)

    monkeypatch.setattr(compiler, "compile", waiting)
    thread = threading.Thread(target=lw.mass_matrix, args=(slow, np.zeros(2)))
    thread.start()
    assert inside.wait(30.0)
    assert lw.mass_matrix(quick, np.zeros(3)).shape == (3, 3)
    finished.set()
    thread.join()


def test_a_failed_compilation_leaves_nothing_behind():
    mech = lw.mechanisms.four_bar()
    for _ in range(2):
        with pytest.raises(lw.MechanismError, match="would ignore the loops"):
            lw.kinematics.acceleration_parts(mech, np.zeros(3), np.zeros(3), np.zeros(3))
    assert lw.mass_matrix(mech, np.zeros(3)).shape == (3, 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_wait_for_a_thread_of_its_parent(monkeypatch):
    mech = lw.mechanisms.planar_arm(2)
    inside, finished = threading.Event(), threading.Event()
    original = compiler.compile

    def waiting(name, mech, **options):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            assert finished.wait(30.0)
        return original(name, mech, **options)

    monkeypatch.setattr(compiler, "compile", waiting)
    thread = threading.Thread(target=lw.mass_matrix, args=(mech, np.zeros(2)))
    thread.start()
    assert inside.wait(30.0)
    child = os.fork()
    if child == 0:  # the thread that holds the lock does not exist here
        try:
            os._exit(0 if lw.mass_matrix(mech, np.zeros(2)).shape == (2, 2) else 1)
        except BaseException:
            os._exit(2)
    deadline = time.monotonic() + 60.0
    ended, status = os.waitpid(child, os.WNOHANG)
    while not ended and time.monotonic() < deadline:
        time.sleep(0.02)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, 9)
        os.waitpid(child, 0)
    finished.set()
    thread.join()
    assert ended and os.waitstatus_to_exitcode(status) == 0
