"""Ctrl-C, wherever it strikes: what was computed is whole, and the motion can go on."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.motion import simulation as recording
from tests.simulated import simulate

ARM = lw.mechanisms.planar_arm(2)
START = np.array([0.4, 0.2]), np.array([1.0, -1.0])
EVENT = lw.motion.when(lambda t, q, v: np.sin(60.0 * t), "wave")


def damped(t, q, v):
    return -v


def pushed(t, q, v):
    return np.outer(v, np.eye(6)[5])


def is_whole(run: lw.Trajectory, through: lw.Trajectory) -> None:
    """The beginning of the whole motion, all of its arrays of one length, and events and steps of the same part."""
    m = len(run.t)
    for name in ("t", "q", "v", "a", "tau", "wrenches"):
        np.testing.assert_array_equal(getattr(run, name), getattr(through, name)[:m], err_msg=name)
    np.testing.assert_array_equal(run.step_sizes, through.step_sizes[: len(run.step_sizes)])
    assert run.step_sizes.sum() == pytest.approx(run.end.t, abs=1e-12)
    assert m == 0 or run.t[-1] <= run.end.t
    assert [e.t for e in run.events] == [e.t for e in through.events if e.t <= run.end.t]


@pytest.mark.parametrize("method", ["dop853", "rk4"])
@pytest.mark.parametrize("samples", [{}, {"t_eval": 0.013}], ids=["steps", "times"])
def test_interrupted_at_every_line_of_the_record(method, samples):
    """An interrupt at each line that is run in recording.py, which is where Python looks for signals."""
    options = {
        "method": method,
        "step": 0.02,
        "rtol": 1e-5,
        "atol": 1e-5,
        "wrenches": pushed,
        "events": EVENT,
        **samples,
    }
    through = simulate(ARM, *START, 0.1, damped, **options)
    strike, seen, struck = 0, 0, 0

    lines, first = inspect.getsourcelines(recording.run)
    begin, end = (first + lines.index(line) for line in ("    try:\n", "    except KeyboardInterrupt:\n"))

    def within_run(frame) -> bool:
        """Whether ``run`` is in its try; before and after, the interrupt is the caller's."""
        while frame is not None and frame.f_code is not recording.run.__code__:
            frame = frame.f_back
        return frame is not None and begin < frame.f_lineno < end

    def trace(frame, event, argument):
        nonlocal seen
        if frame.f_code.co_filename != recording.__file__ or "Progress" in frame.f_code.co_qualname:
            return None
        if event == "line" and within_run(frame):
            seen += 1
            if seen == strike:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    previous = sys.gettrace()
    while strike == struck:
        strike, seen = strike + 1, 0
        sys.settrace(trace)
        try:
            run = simulate(ARM, *START, 0.1, damped, **options)
        finally:
            sys.settrace(previous)
        is_whole(run, through)
        struck += run.interrupted
    assert struck > 50  # it stops at the first strike that comes after the end


@pytest.mark.parametrize("method", ["dop853", "radau", "rk4"])
def test_interrupted_in_every_call_of_the_controller(method):
    calls = limit = 0

    def control(t, q, v):
        nonlocal calls
        calls += 1
        if calls == limit:
            raise KeyboardInterrupt
        return -v

    options = {"method": method, "step": 0.02, "rtol": 1e-4, "atol": 1e-4, "wrenches": pushed}
    through = simulate(ARM, *START, 0.1, control, **options)
    for limit in range(1, calls + 1, 1 if method == "rk4" else 3):
        calls = 0
        run = simulate(ARM, *START, 0.1, control, **options)
        assert run.interrupted
        is_whole(run, through)
        limit = 0
        if method == "rk4" and run.end.t < 0.1 - 1e-9:
            again = run.resume(0.1 - run.end.t, control=control, wrenches=pushed)
            np.testing.assert_array_equal(again.q, through.q)
            assert (np.diff(again.t) > 0).all()
