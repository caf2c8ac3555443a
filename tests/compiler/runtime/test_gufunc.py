import itertools
import threading

import numpy as np
import pytest

from linkwise.compiler.ir.program import Array
from linkwise.compiler.runtime import gufunc
from linkwise.compiler.targets import numpy_reference
from tests.compiler.targets.compiled import compiled
from tests.compiler.targets.sample_programs import forward_dynamics, random_program

PROGRAM = forward_dynamics(6)


@pytest.fixture(scope="module")
def ufunc():
    return compiled(PROGRAM)


@pytest.fixture
def arrays():
    return list(np.random.default_rng(0).standard_normal((3, 21, 6)))


def reference(arrays):
    return numpy_reference.evaluate(PROGRAM, arrays)[0]


def test_it_is_a_ufunc_with_fixed_core_dimensions(ufunc):
    assert isinstance(ufunc, np.ufunc)
    assert ufunc.signature == "(6),(6),(6)->(6)" and ufunc.__name__ == "forward_dynamics"
    with pytest.raises(ValueError, match="core dimension"):
        ufunc(np.ones(5), np.ones(6), np.ones(6))


def test_broadcasting(ufunc, arrays):
    q, v, tau = arrays
    got = ufunc(q[:, None], v[:4], tau[0])
    assert got.shape == (21, 4, 6)
    np.testing.assert_allclose(got, reference([q[:, None], v[:4], tau[0]]), rtol=1e-10)
    assert ufunc(q[:0], v[:0], tau[0]).shape == (0, 6)


def test_unusual_memory(ufunc, arrays):
    q, v, tau = arrays
    want = reference(arrays)
    read_only = q.copy()
    read_only.flags.writeable = False
    misaligned = np.frombuffer(b"x" + v.tobytes(), np.uint8)[1:].view("f8").reshape(v.shape)
    assert not misaligned.flags.aligned
    swapped = tau.astype(tau.dtype.newbyteorder())
    np.testing.assert_allclose(ufunc(read_only, misaligned, swapped), want, rtol=1e-10)
    np.testing.assert_allclose(ufunc(np.asfortranarray(q), v, tau), want, rtol=1e-10)
    misaligned_out = np.zeros(want.nbytes + 1, np.uint8)[1:].view("f8").reshape(want.shape)
    ufunc(q, v, tau, out=misaligned_out)
    np.testing.assert_allclose(misaligned_out, want, rtol=1e-10)
    out = np.full((21, 12), np.nan)[:, ::-2]
    assert ufunc(q, v, tau, out=out) is out
    np.testing.assert_allclose(out, want, rtol=1e-10)


def test_other_types_are_cast(ufunc, arrays):
    q, v, tau = arrays
    whole = np.arange(6)
    np.testing.assert_allclose(ufunc(q.astype("f4"), whole, tau), reference([q.astype("f4"), whole, tau]), rtol=1e-10)
    with pytest.raises(TypeError):
        ufunc(q.astype(complex), v, tau)


def test_outputs_over_inputs(ufunc, arrays):
    want = reference(arrays)
    q, v, tau = arrays
    assert ufunc(q, v, tau, out=tau) is tau
    np.testing.assert_allclose(tau, want, rtol=1e-10)


def test_partial_overlap(ufunc, arrays):
    memory = np.concatenate([arrays[2].ravel(), np.zeros(6)])
    tau, out = memory[:-6].reshape(21, 6), memory[6:].reshape(21, 6)
    want = reference(arrays)
    ufunc(arrays[0], arrays[1], tau, out=out)
    np.testing.assert_allclose(out, want, rtol=1e-10)


def test_several_outputs():
    program = random_program(4)
    arrays = [np.random.default_rng(3).standard_normal((9, *array.shape)) for array in program.inputs]
    for got, want in zip(compiled(program)(*arrays), numpy_reference.evaluate(program, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)


def test_the_interpreter_runs_on_while_a_kernel_runs(ufunc):
    """Seen by the results: this thread finds the first state written and the last one not yet."""
    arrays = np.random.default_rng(0).standard_normal((3, 400_000, 6))

    def seen_half_done() -> bool:
        out = np.full((400_000, 6), np.nan)
        worker = threading.Thread(target=lambda: ufunc(*arrays, out=out))
        worker.start()
        half_done = False
        while worker.is_alive():
            first_written = not np.isnan(out[0, 0])
            half_done |= first_written and bool(np.isnan(out[-1, -1]))
        return half_done

    assert any(seen_half_done() for _ in range(100)), "no Python ran while the kernel ran"


def test_results_are_delivered_as_by_a_ufunc():
    """``delivered`` against NumPy's own ufuncs with one and two outputs."""
    x = np.random.default_rng(2).normal(size=(5, 3))
    makers = (lambda: None, lambda: np.empty((5, 3)), lambda: np.empty((5, 3), "float32"), lambda: np.empty((3, 5)).T)
    for first, second in itertools.product(makers, makers):
        out, given = (first(), second()), (first(), second())
        found, expected = gufunc.delivered(np.modf(x), out), np.modf(x, out=given)
        for array, own, other in zip(out, found, expected, strict=True):
            assert array is None or own is array
            np.testing.assert_array_equal(own, other, strict=True)
    for out in (np.empty(3), np.empty((5, 3), int), (np.empty((5, 3)),) * 2):
        for call in (lambda out=out: gufunc.delivered([np.exp(x)], out), lambda out=out: np.exp(x, out=out)):
            with pytest.raises((TypeError, ValueError)):
                call()
    bare, larger = np.empty((5, 3)), np.empty((2, 5, 3))
    assert gufunc.delivered([x], bare) is bare and gufunc.delivered([x], (bare,)) is bare
    np.testing.assert_array_equal(gufunc.delivered([np.exp(x)], larger), np.exp(x, out=np.empty((2, 5, 3))))


def test_what_numpy_cannot_do_is_refused():
    with pytest.raises(ValueError, match="no inputs"):
        gufunc.make_gufunc(0, [], [Array("y", (3,))], "float64", "f")
    with pytest.raises(ValueError, match="empty core dimension"):
        gufunc.make_gufunc(0, [Array("x", (0,))], [Array("y", (3,))], "float64", "f")
