"""The short cut for one state: what it gives, what it leaves to the general function, and what it owns."""

from __future__ import annotations

import ctypes
import gc
import inspect
import sys
import sysconfig
import types
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler import pipeline as compiler
from linkwise.compiler.ir.program import Array
from linkwise.compiler.runtime import cpu, llvm_loader
from linkwise.compiler.runtime import single_call as module
from linkwise.compiler.runtime.single_call import layout_is_known, single_call
from linkwise.mechanics.algorithms.estimation import INPUTS
from tests.algorithms import VARIANTS, needed_options

from .short_cut import MECHANISMS, Loop, assert_same, needs_short_cut, ratio, refuse, sample, sample_state, two

NOTHING = types.SimpleNamespace(address=0)  # machine code that must not be run

# -- results ------------------------------------------------------------------------------------------


def has_elements(algorithm: str, mechanism: str) -> bool:
    """Whether no array of the algorithm is empty: without loops there are no constraints, and so no ufunc of them."""
    asked, mech = VARIANTS[algorithm], MECHANISMS[mechanism]
    shapes = [shape for _, shape in asked.shapes(mech)] + [asked.result_shape(name, mech) for name in asked.outputs]
    return all(0 not in (shape or ()) for shape in shapes)


SIX = ("operational_inertia", "manipulability")  # links of a linkage do not move in six directions
ON_LOOPS = [algorithm for algorithm in VARIANTS if not has_elements(algorithm, "arm")]
LONG = [
    *(
        name
        for name, one in VARIANTS.items()
        if one.inputs[: len(INPUTS)] == INPUTS and name != "estimation_innovations"
    ),
    *("kalman_filter", "filter_gains"),
]
SYMPLECTIC = ("symplectic_euler", "stormer_verlet", "implicit_midpoint")  # not for joints that rotate freely
LEFT_OUT = {*ON_LOOPS, *LONG}  # one stands for those of its kind


@pytest.mark.slow_cases("derivatives", "-tree]")
@needs_short_cut
@pytest.mark.parametrize(
    ("algorithm", "mechanism"),
    [
        (algorithm, mechanism)
        for algorithm in VARIANTS
        for mechanism in ("arm", "tree")
        if algorithm not in LEFT_OUT and not (mechanism == "tree" and any(word in algorithm for word in SYMPLECTIC))
    ]
    + [(algorithm, "long") for algorithm in ("inverse_dynamics", "kinetic_energy", "link_poses")]
    + [(a, "loop") for a in (*ON_LOOPS, "constrained_terms") if has_elements(a, "loop") and not a.startswith(SIX)],
)
def test_every_algorithm_gives_what_its_ufunc_gives(algorithm, mechanism):
    mech = MECHANISMS[mechanism]
    options = needed_options(VARIANTS[algorithm], mech)
    program, _ = compiler.trace_algorithm(VARIANTS[algorithm], mech, options=options)
    loop = Loop(program)
    rng = np.random.default_rng(5)
    arrays = [rng.normal(size=array.shape) for array in program.inputs]
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = loop.ufunc(*arrays)
        known = all(np.isfinite(x).all() for x in (expected if isinstance(expected, tuple) else (expected,)))
        # Results that are no numbers are left to the general function, which warns.
        assert_same(loop.before(refuse if known else loop.ufunc)(*arrays), expected)


@needs_short_cut
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_several_outputs_of_different_ranks(dtype):
    loop = sample(dtype)
    state = sample_state(dtype)
    assert_same(loop.before(refuse)(*state), loop.ufunc(*state))


@needs_short_cut
@pytest.mark.parametrize("count", [1, 2, 7, 64])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_few_states_in_rows(dtype, count):
    loop, rng = sample(dtype), np.random.default_rng(count)
    rows = [rng.uniform(0.5, 1.0, (count, *array.shape)).astype(dtype) for array in loop.program.inputs]
    assert_same(loop.before(refuse)(*rows), loop.ufunc(*rows))


@needs_short_cut
def test_rows_that_differ_and_many_rows_are_left_to_the_general_function():
    loop, rng = sample("float64"), np.random.default_rng(0)
    shapes = [array.shape for array in loop.program.inputs]
    function = loop.before(lambda *arrays: len(arrays))
    assert function(*(rng.uniform(0.5, 1.0, (65, *shape)) for shape in shapes)) == len(shapes)
    assert function(*(np.ones((0, *shape)) for shape in shapes)) == len(shapes)
    assert function(*(np.ones((1 + (k == 0), *shape)) for k, shape in enumerate(shapes))) == len(shapes)
    assert function(np.ones((1, *shapes[0])), *map(np.ones, shapes[1:])) == len(shapes)
    assert function(*(np.ones((1, 1, *shape)) for shape in shapes)) == len(shapes)
    arrays = loop.program.inputs, loop.program.outputs
    long = single_call(loop.code, *arrays, "float64", lambda *arrays: len(arrays), operations=100_000)
    assert_same(
        long(*(np.ones((2, *shape)) for shape in shapes)), loop.ufunc(*(np.ones((2, *shape)) for shape in shapes))
    )
    assert long(*(np.ones((3, *shape)) for shape in shapes)) == len(shapes)


@needs_short_cut
def test_results_are_new_arrays_that_can_be_written_to():
    x, y = np.array([1.0, 2.0]), np.array([2.0, 4.0])
    function = ratio().before(refuse)
    first, second = function(x, y), function(x, y)
    assert first.flags.owndata and first.flags.writeable and first.flags.c_contiguous and first.base is None
    first[:] = 7.0
    np.testing.assert_array_equal(second, [0.5, 0.5])


@needs_short_cut
def test_read_only_inputs_and_views_with_the_right_layout_are_single_states():
    loop = ratio()
    rows = np.arange(1.0, 9.0).reshape(4, 2)
    rows.flags.writeable = False
    assert_same(loop.before(refuse)(rows[1], rows[2]), loop.ufunc(rows[1], rows[2]))


def test_public_kernels_take_the_short_cut():
    kernel = lw.compile("mass_matrix", MECHANISMS["arm"])
    assert isinstance(kernel.function, types.BuiltinFunctionType) == layout_is_known()


def test_long_programs_do_not(monkeypatch):
    monkeypatch.setattr(cpu, "LONG", 10)
    assert isinstance(lw.compile("mass_matrix", MECHANISMS["arm"]).function, types.FunctionType)


def test_scalar_results_are_numpy_scalars():
    mech = MECHANISMS["arm"]
    q, v = lw.random_state(mech, np.random.default_rng(1))
    energy = lw.kinetic_energy(mech, q, v)
    assert type(energy) is np.float64
    assert energy == lw.kinetic_energy(mech, q[None], v[None])[0]
    assert type(lw.kinetic_energy(mech, q.astype("float32"), v.astype("float32"))) is np.float32


# -- everything else goes to the general function -----------------------------------------------------


class Subclass(np.ndarray):
    pass


LEFT_TO_THE_UFUNC = {
    "list": [3.0, 4.0],
    "tuple": (3, 4),
    "integers": two(dtype="int64"),
    "booleans": np.array([True, True]),
    "float32": two(dtype="float32"),
    "float16": two(dtype="float16"),
    "byte-swapped": two(dtype=np.dtype("float64").newbyteorder()),
    "dtype with metadata": two(dtype=np.dtype("float64", metadata={"unit": "m"})),
    "strided": np.array([3.0, 0.0, 4.0, 0.0])[::2],
    "reversed": np.array([4.0, 3.0])[::-1],
    "broadcast": np.broadcast_to(3.0, (2,)),
    "unaligned": np.frombuffer(b"\0" + two().tobytes(), np.uint8)[1:].view("float64"),
    "subclass": two().view(Subclass),
    "masked": np.ma.array([3.0, 4.0], mask=[False, True]),
    "batch": np.arange(1.0, 7.0).reshape(3, 2),
    "batch of one": two()[None],
    "empty batch": np.empty((0, 2)),
}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("what", LEFT_TO_THE_UFUNC)
def test_other_arguments_give_what_the_ufunc_gives(what, place):
    loop = ratio()
    seen = []

    def general(*arrays):
        seen.append(arrays)
        return loop.ufunc(*arrays)

    arrays = [two((1.0, 2.0)), two((1.0, 2.0))]
    arrays[place] = LEFT_TO_THE_UFUNC[what]
    function = loop.before(general)
    assert_same(function(*arrays), loop.ufunc(*arrays))
    assert len(seen) == 1
    assert all(a is b for a, b in zip(seen[0], arrays, strict=True))


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1), (1, 2), (2, 2), (0,)])
def test_other_shapes_reach_the_general_function(shape, place):
    arrays = [two(), two()]
    arrays[place] = np.ones(shape)
    assert ratio().before(lambda *given: "general")(*arrays) == "general"


def test_fortran_order_is_not_mistaken():
    state = sample_state()
    state[1] = np.asfortranarray(state[1])
    loop = sample()
    assert_same(loop.before(loop.ufunc)(*state), loop.ufunc(*state))
    transposed = [state[0], np.ascontiguousarray(state[1].T).T, state[2]]
    assert_same(loop.before(loop.ufunc)(*transposed), loop.ufunc(*state))


def test_scalars_for_arrays_without_axes():
    loop = sample()
    x, y, s = sample_state()
    for value in (float(s), np.float64(s), np.float32(0.5), 2, s[None]):
        assert_same(loop.before(loop.ufunc)(x, y, value), loop.ufunc(x, y, value))


def test_keywords_reach_the_general_function():
    loop = ratio()
    function = loop.before(loop.ufunc)
    x, y, out = two((1.0, 2.0)), two(), np.empty(2)
    assert function(x, y, out=out) is out
    np.testing.assert_array_equal(out, x / y)
    np.testing.assert_array_equal(function(x[None], y, out=(np.empty((1, 2)),), casting="no"), [x / y])
    with pytest.raises(TypeError, match="nonsense"):
        function(x, y, nonsense=1)
    assert loop.before(lambda *arrays, **keywords: (arrays, keywords))(x, a=1, b=2) == ((x,), {"a": 1, "b": 2})


@pytest.mark.parametrize("count", [0, 1, 3, 40])
def test_wrong_numbers_of_arguments_reach_the_general_function(count):
    arrays = (two(),) * count
    assert ratio().before(lambda *given: given)(*arrays) == arrays


def test_errors_of_the_general_function_come_through():
    def fail(*arrays):
        raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        ratio().before(fail)([1, 2], [3, 4])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((np.zeros(5), np.zeros(6)), r"bias_force: q has shape \(5,\), expected \(..., 6\)"),
        ((np.zeros(6), np.zeros((6, 1))), r"bias_force: v has shape \(6, 1\), expected \(..., 6\)"),
        ((np.zeros(6), 1.0), r"bias_force: v has shape \(\)"),
        ((np.zeros(6),), "bias_force takes 2 arrays"),
        ((np.zeros(6), np.zeros(6, complex)), "bias_force: v has dtype complex128"),
        ((np.zeros((2, 6)), np.zeros((3, 6))), "the batch shapes do not broadcast"),
    ],
)
def test_misfits_are_explained(arrays, message):
    mech = MECHANISMS["arm"]
    with pytest.raises(lw.KernelError, match=message):
        lw.compile("bias_force", mech)(*arrays)
    if len(arrays) == 2:
        with pytest.raises(lw.KernelError, match=message):
            lw.bias_force(mech, *arrays)


def test_kernels_take_out():
    mech = MECHANISMS["arm"]
    kernel = lw.compile("mass_matrix", mech)
    q = lw.random_state(mech, np.random.default_rng(2))[0]
    out = np.empty((mech.nv, mech.nv))
    assert kernel(q, out=out) is out
    assert_same(kernel(q), out)
    assert_same(kernel(q, out=None), out)


def test_calls_of_kernels_are_those_of_their_functions():
    kernel = lw.compile("mass_matrix", MECHANISMS["arm"])
    assert kernel.__call__ is kernel.function and callable(kernel)
    assert str(inspect.signature(kernel)).startswith("(*arrays: 'Any', out: 'Any' = None)")
    assert list(inspect.signature(lw.Kernel).parameters)[:2] == ["program", "dtype"]
    with pytest.raises(TypeError, match=r"mass_matrix\(\) got an unexpected keyword argument 'output'"):
        kernel(np.zeros(6), output=None)


def test_public_functions_choose_the_dtype():
    mech = MECHANISMS["arm"]
    q, v = lw.random_state(mech, np.random.default_rng(3))
    q32, v32 = q.astype("float32"), v.astype("float32")
    exact = lw.bias_force(mech, q, v)
    assert lw.bias_force(mech, q32, v32).dtype == np.float32
    np.testing.assert_allclose(lw.bias_force(mech, q32, v32), exact, rtol=2e-5, atol=2e-5)
    for mixed in ((q32, v), (q, v32), (q32, v.tolist()), (q.tolist(), v32), (q.tolist(), v.tolist())):
        result = lw.bias_force(mech, *mixed)
        assert result.dtype == np.float64
        np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)
    assert lw.integrate(mech, q32, v32, 0.1).dtype == np.float32
    assert lw.integrate(mech, q32, v32, np.float64(0.1)).dtype == np.float64
    assert lw.jacobian(mech, q32, mech.link_names[-1], frame="world").dtype == np.float32


def test_failed_compilations_leave_no_trace_of_the_lookup():
    with pytest.raises(lw.MechanismError) as caught:
        lw.control.operational_inertia(lw.mechanisms.planar_arm(2), np.zeros(2), "ground")
    assert caught.value.__context__ is None


# -- floating-point flags, errors ---------------------------------------------------------------------


def test_floating_point_flags_are_reported_as_by_the_ufunc():
    loop = ratio()
    function = loop.before(loop.ufunc)
    fine, zeros, huge = two(), two((1.0, 0.0)), two((1e300, 1.0))
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in ratio"):
        np.testing.assert_array_equal(function(fine, zeros), [3.0, np.inf])
    with pytest.warns(RuntimeWarning, match="overflow encountered in ratio"):
        function(huge, two((1e-300, 1.0)))
    with pytest.warns(RuntimeWarning, match="invalid value encountered in ratio"):
        function(zeros, zeros)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="ratio"):
        function(fine, zeros)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(function(fine, zeros), [3.0, np.inf])
        np.testing.assert_array_equal(function(fine, fine), [1.0, 1.0])  # no flag is left over
        np.testing.assert_array_equal(function(two((np.nan, 1.0)), fine), [np.nan, 0.25])


@needs_short_cut
def test_old_flags_do_not_matter():
    libm = ctypes.CDLL(None)
    function = ratio().before(refuse)
    libm.feraiseexcept(1)  # FE_INVALID
    np.testing.assert_array_equal(function(two(), two()), [1.0, 1.0])


@needs_short_cut
@pytest.mark.parametrize("outputs", [[(2**50,)], [(2,), (), (2**50,)]])
def test_no_memory_for_results(outputs):
    function = single_call(NOTHING, [Array("x", (2,))], [Array("y", shape) for shape in outputs], "float64", refuse)
    x = two()
    gc.collect()
    references = sys.getrefcount(x), sys.getrefcount(x.dtype)
    for _ in range(50):
        with pytest.raises(MemoryError):
            function(x)
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(x.dtype)) == references


@needs_short_cut
@pytest.mark.parametrize("outputs", [[(3,)], [(3,), ()]])
def test_errors_of_the_loop_come_through(outputs):
    text = """
define void @fails(ptr %args, ptr %dimensions, ptr %steps, ptr %data) {
  %nothing = call ptr @PyErr_NoMemory()
  ret void
}
declare ptr @PyErr_NoMemory()
"""
    code = llvm_loader.load(text, "fails", llvm_loader.host_options())
    function = single_call(code, [Array("x", (2,))], [Array("y", shape) for shape in outputs], "float64", refuse)
    dtype = np.dtype("float64")
    gc.collect()
    references, returned = sys.getrefcount(dtype), []
    for _ in range(50):
        with pytest.raises(MemoryError):
            returned.append(function(two()))
    gc.collect()
    assert not returned
    assert sys.getrefcount(dtype) == references


# -- the switch ---------------------------------------------------------------------------------------


@needs_short_cut
def test_the_short_cut_can_be_switched_off_and_on():
    loop, seen = ratio(), []

    def general(*arrays):
        seen.append(arrays)
        return loop.ufunc(*arrays)

    function, state = loop.before(general), (two(), two((1.0, 8.0)))
    by_short_cut = function(*state)
    assert not seen and lw.codegen.get_single_call_shortcut()
    lw.codegen.set_single_call_shortcut(False)
    try:
        assert not lw.codegen.get_single_call_shortcut()
        assert_same(function(*state), by_short_cut)
        assert len(seen) == 1
    finally:
        lw.codegen.set_single_call_shortcut(True)
    function(*state)
    assert len(seen) == 1 and lw.codegen.get_single_call_shortcut()
    with pytest.raises(ValueError, match="enabled must be True or False, not 'off'"):
        lw.codegen.set_single_call_shortcut("off")


# -- where there is no short cut ----------------------------------------------------------------------


def test_unknown_layouts_get_the_general_function(monkeypatch):
    loop = ratio()
    monkeypatch.setattr(module, "layout_is_known", lambda: False)
    assert loop.before(refuse) is refuse


def test_too_many_arrays_get_the_general_function():
    inputs = [Array(f"x{i}", ()) for i in range(32)]
    assert single_call(NOTHING, inputs, [Array("y", ())], "float64", refuse) is refuse


def test_layouts_are_checked(monkeypatch):
    check = layout_is_known.__wrapped__
    if sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert check()
    for i, j in ((2, 6), (4, 5), (1, 7), (3, 8)):  # fields that have changed places
        fields = list(module._ArrayObject._fields_)
        fields[i], fields[j] = fields[j], fields[i]
        swapped = type("Swapped", (ctypes.Structure,), {"_fields_": fields})
        with monkeypatch.context() as patch:
            patch.setattr(module, "_ArrayObject", swapped)
            assert not check()
    with monkeypatch.context() as patch:
        patch.setattr(sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else None)
        assert not check()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "implementation", types.SimpleNamespace(name="pypy"))
        assert not check()


# -- arrays given for results -------------------------------------------------------------------------


@needs_short_cut
@pytest.mark.parametrize("shape", [(), (1,), (5,)])
def test_a_result_is_written_to_the_array_that_is_given(shape):
    loop = ratio()
    rng = np.random.default_rng(3)
    arrays = [rng.uniform(1.0, 2.0, (*shape, *array.shape)) for array in loop.program.inputs]
    expected = loop.ufunc(*arrays)
    out = np.full_like(expected, np.nan)
    assert loop.before(refuse)(*arrays, out=out) is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(loop.before(refuse)(*arrays, out=None), expected)  # as if it were not given
    references = sys.getrefcount(out)
    loop.before(refuse)(*arrays, out=out)
    assert sys.getrefcount(out) == references


@needs_short_cut
def test_arrays_that_are_not_as_a_new_one_would_be_are_left_to_the_general_function():
    kernel = lw.compile("forward_dynamics", lw.mechanisms.planar_arm(3))
    state = [np.random.default_rng(k).normal(size=3) for k in range(3)]
    expected = kernel(*state)
    wide, single = np.zeros(6), np.zeros(3, np.float32)
    assert kernel(*state, out=wide[::2]).base is wide
    np.testing.assert_array_equal(wide[::2], expected)
    with pytest.raises(lw.KernelError, match="out"):
        kernel(*state, out=np.zeros(4))
    with pytest.raises((lw.KernelError, ValueError), match="read-only|writ"):
        fixed = np.zeros(3)
        fixed.flags.writeable = False
        kernel(*state, out=fixed)
    np.testing.assert_allclose(kernel(*state, out=single), expected, rtol=1e-6)
    with pytest.raises(TypeError):
        kernel.function(*state, into=np.zeros(3))


@needs_short_cut
def test_a_result_may_take_the_place_of_an_input():
    """As in NumPy: what is read is what was there before."""
    kernel = lw.compile("forward_dynamics", lw.mechanisms.chain(4))
    memory = np.random.default_rng(0).normal(size=20)
    q, v, tau = (memory[k : k + 4] for k in (0, 4, 8))
    expected = kernel(q, v, tau)
    for k in (0, 2, 4, 7, 8, 11):
        there = memory.copy()
        parts = [there[i : i + 4] for i in (0, 4, 8)]
        np.testing.assert_array_equal(kernel(*parts, out=there[k : k + 4]), expected)


@needs_short_cut
def test_flags_are_reported_where_an_array_is_given_too():
    loop, out = ratio(), np.zeros(2)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        loop.before(loop.ufunc)(two(), two((0.0, 1.0)), out=out)
    with np.errstate(all="ignore"):
        assert loop.before(loop.ufunc)(two(), two((0.0, 1.0)), out=out) is out
    np.testing.assert_array_equal(out, [np.inf, 4.0])
