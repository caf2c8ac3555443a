import os
import threading

import numpy as np
import pytest

from linkwise.compiler.runtime import threads, workers
from linkwise.compiler.targets import numpy_reference
from tests.compiler.targets.compiled import compiled
from tests.compiler.targets.sample_programs import forward_dynamics, random_program

PROGRAM = forward_dynamics(3)


@pytest.fixture(scope="module")
def ufunc():
    return compiled(PROGRAM)


@pytest.fixture(autouse=True)
def four_threads():
    before = threads._num_threads
    threads.set_num_threads(4)
    yield
    threads._num_threads = before
    threads._drop_pool()


def test_number_of_threads():
    assert threads.get_num_threads() == 4
    for wrong in (0, -1, 1.5):
        with pytest.raises(ValueError, match="positive integer"):
            threads.set_num_threads(wrong)


def test_default_is_what_the_process_may_use(monkeypatch):
    monkeypatch.setattr(threads, "_num_threads", None)
    assert 1 <= threads.get_num_threads() <= os.cpu_count()


@pytest.mark.parametrize(
    "shapes", [((37,), (37,), (37,)), ((5, 1), (1, 9), ()), ((2, 3, 11), (3, 1), (11,)), ((3,),) * 3]
)
def test_same_results_as_one_thread(ufunc, shapes):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((*shape, 3)) for shape in shapes]
    got = threads.call_threaded(ufunc, arrays)
    np.testing.assert_array_equal(got, ufunc(*arrays))
    out = np.full(got.shape[::-1], np.nan).T
    assert threads.call_threaded(ufunc, arrays, out) is out
    np.testing.assert_array_equal(out, got)


def test_the_batch_is_really_split(ufunc):
    seen = []

    class Spy:
        nin, nout, nargs, signature, types = 1, 1, 2, "(3)->(3)", ["d->d"]

        def __call__(self, x, out):
            seen.append((threading.current_thread().name, len(x)))
            out[0][...] = 2 * x

    x = np.arange(30.0).reshape(10, 3)
    np.testing.assert_array_equal(threads.call_threaded(Spy(), [x]), 2 * x)
    assert sorted(count for _, count in seen) == [2, 2, 3, 3] and len({name for name, _ in seen}) > 1
    seen.clear()
    threads.call_threaded(Spy(), [x], (np.empty((10, 3)),), operations=threads._OPERATIONS_PER_TASK // 5)
    assert [count for _, count in seen] == [5, 5]


def test_several_outputs_and_float32():
    program = random_program(4)
    arrays = [np.random.default_rng(3).standard_normal((40, *a.shape)).astype("f4") for a in program.inputs]
    results = threads.call_threaded(compiled(program, "float32"), arrays)
    for got, want in zip(results, numpy_reference.evaluate(program, arrays, "float32"), strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def test_output_over_input(ufunc):
    q, v, tau = np.random.default_rng(0).standard_normal((3, 50, 3))
    want = ufunc(q, v, tau)
    memory = np.concatenate([tau, np.zeros((1, 3))])
    threads.call_threaded(ufunc, [q, v, memory[:-1]], memory[1:])
    np.testing.assert_array_equal(memory[1:], want)


def test_errors_come_from_numpy(ufunc):
    with pytest.raises(ValueError, match="broadcast"):
        threads.call_threaded(ufunc, [np.ones((4, 3)), np.ones((5, 3)), np.ones(3)])
    with pytest.raises(ValueError, match="core dimension"):
        threads.call_threaded(ufunc, [np.ones((40, 2))] * 3)
    with pytest.raises(TypeError):
        threads.call_threaded(ufunc, [np.ones((40, 3))] * 2)


def test_error_state_reaches_the_threads():
    ufunc = compiled(PROGRAM)
    bad = np.full((400, 3), 1e308)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        threads.call_threaded(ufunc, [bad, bad, bad])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_makes_its_own_threads(ufunc):
    arrays = np.random.default_rng(0).standard_normal((3, 64, 3))
    want = threads.call_threaded(ufunc, arrays)
    child = os.fork()
    if child == 0:
        same = np.array_equal(threads.call_threaded(ufunc, arrays), want)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_threaded_functions_take_single_states_and_batches(ufunc):
    function = threads.threaded(ufunc, operations=threads._OPERATIONS_PER_TASK // 8)
    q, v, tau = np.random.default_rng(0).standard_normal((3, 40, 3))
    np.testing.assert_array_equal(function(q, v, tau), ufunc(q, v, tau))
    np.testing.assert_array_equal(function(q[0], v[0], tau[0]), ufunc(q[0], v[0], tau[0]))
    np.testing.assert_array_equal(function(list(q[0]), v[0], tau[0]), ufunc(q[0], v[0], tau[0]))
    out = np.empty(3)
    assert function(q[0], v[0], tau[0], out=out) is out
    with pytest.raises(TypeError):
        function(q, v)


def test_a_failing_piece_does_not_leave_others_running(ufunc):
    q, v, tau = np.random.default_rng(0).standard_normal((3, 40, 3))
    q[0] = 1e308
    v[0] = 1e308
    out = np.full((40, 3), np.nan)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        threads.call_threaded(ufunc, [q, v, tau], out)
    np.testing.assert_array_equal(out[10:], ufunc(q[10:], v[10:], tau[10:]))


@pytest.mark.parametrize("count", [1, 2])
def test_long_work_can_be_interrupted_between_calls(count):
    """A share is done in calls of limited length; what stops one thread stops the others before their next call."""
    calls = []

    class Spy:
        nin, nout, nargs, signature, types = 1, 1, 2, "(3)->(3)", ["d->d"]

        def __call__(self, x, out):
            calls.append(len(x))
            if threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt

    threads.set_num_threads(count)
    x = np.zeros((1000, 3))
    with pytest.raises(KeyboardInterrupt):
        threads.call_threaded(Spy(), [x], operations=threads._OPERATIONS_PER_CALL // 10)
    assert sum(calls) < 1000 and max(calls) <= 10


def test_threads_without_python_do_whole_batches_in_tiles(ufunc):
    """Every tile is done once, whichever thread takes it, and the status of all threads is heard."""
    if workers.native() is None:
        pytest.skip("no semaphores here")
    pool = workers.Workers(3)
    q, v, tau = np.random.default_rng(0).standard_normal((3, 1000, 3))
    want, out = ufunc(q, v, tau), np.empty((1000, 3))
    job = threads._job(ufunc, (1000,), [q, v, tau, out])
    for tile, wanted in ((16, 3), (48, 1), (2000, 3), (16, 0)):
        out[...] = np.nan
        pool.run(job, 0, 500, tile, wanted)
        assert np.isnan(out[500:]).all()
        pool.run(job, 500, 1000, tile, wanted)
        np.testing.assert_array_equal(out, want)
    assert not job.raised
    q[700] = v[700] = 1e308
    pool.run(job, 0, 1000, 16, 3)
    with np.errstate(all="warn"):
        assert job.raised
    with np.errstate(all="ignore"):
        assert not job.raised
    pool.end()


def test_what_needs_numpy_is_left_to_it(ufunc):
    """Types to be cast, batches that are no rows, core dimensions that do not fit."""
    x = np.ones((40, 3))
    out = np.empty((40, 3))
    assert threads._job(ufunc, (40,), [x, x, x, out]) is not None
    assert threads._job(ufunc, (40,), [x, x[:1], np.ones(3), out[::-1]]) is not None
    for other in (x.astype("f4"), np.ones((40, 2)), np.ones((2, 20, 3)), np.ones((20, 3))):
        assert threads._job(ufunc, (40,), [other, x, x, out]) is None
    rows = np.ones((4, 20, 3))[:, :10]
    assert threads._job(ufunc, (4, 10), [rows, rows, rows, np.empty((4, 10, 3))]) is None


def test_calls_from_several_threads_at_once(ufunc):
    """Threads are lent to one call at a time; the others do their work alone."""
    arrays = np.random.default_rng(0).standard_normal((3, 400, 3))
    want, found = ufunc(*arrays), []
    callers = [
        threading.Thread(target=lambda: found.append([threads.call_threaded(ufunc, arrays) for _ in range(20)]))
        for _ in range(6)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 6 and all(np.array_equal(result, want) for results in found for result in results)


@pytest.mark.parametrize("count", [1, 4])
def test_memory_of_large_results_is_used_again(ufunc, count):
    """New memory costs more than the numbers that go there, with one thread as with several."""
    threads.set_num_threads(count)
    arrays = np.random.default_rng(0).standard_normal((3, 100_000, 3))
    first = threads.call_threaded(ufunc, arrays, operations=1000)
    place = first.ctypes.data
    del first
    assert threads.call_threaded(ufunc, arrays, operations=1000).ctypes.data == place
