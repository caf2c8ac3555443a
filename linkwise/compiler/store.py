"""Public functions made from algorithms, and their kernels: compiled on first use and kept with a mechanism by request.

The store is a dictionary of the mechanism.  Lookups take no lock.  A missing entry is made by the first thread that
requests it; other threads that need new entries of the same mechanism wait.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..mechanism import Mechanism, require_mechanism
from .ir.program import Program
from .kernel import Kernel
from .registry import ArrayFunction, Function, register
from .runtime.arrays import NoDeviceError, UnreadableArrayError, all_plain, is_foreign, on_device
from .variants import bound_kernel, shared_by_variants

_ARRAY, _FLOAT32 = np.ndarray, np.dtype("float32")
#: An algorithm; an algorithm with options, ("frame_pose", ("link", "tool")); or a function of mechanism, dtype and
#: input parameters that makes the kernel.
Request = str | tuple[Any, ...] | Callable[[Mechanism, str, Sequence[Any]], Kernel]
Made = TypeVar("Made")
WRENCHES = ("ports", ("wrenches",))  # requests for algorithms under wrenches on the links
SHARED_UP_TO = 300_000  # operations above which shared code without loops would take minutes to compile
Loader = Callable[[], Callable[..., Any]]  # returns a function when first needed, to import its module late
#: Algorithm -> factory of the function of arrays for a mechanism with constraints.
_WITH_CONSTRAINTS: dict[str, Loader] = {}
#: Algorithm -> function of a mechanism and arrays that may be omitted or given by joint.
_GENERAL: dict[str, Loader] = {}


def kernel_function(mech: Mechanism, request: Request) -> Callable[..., Any]:
    """The function of arrays for ``request``, kept with the mechanism. It computes in float32 if all arguments are
    float32, otherwise in float64. Arrays of other libraries are read, or computed on their device."""
    try:
        return mech._kernels[request]
    except (KeyError, AttributeError, TypeError):  # not compiled yet, no mechanism, or an unhashable option
        pass
    return _made(mech, request, request, _chosen_by_first)  # a separate function: closures slow down each call


def float64_function(mech: Mechanism, request: Request) -> Callable[..., Any]:
    """The function of arrays for ``request`` that always computes in float64."""
    key = (request, _compiled)
    try:
        return mech._kernels[key]
    except (KeyError, AttributeError, TypeError):
        pass
    return _made(mech, request, key, _compiled)


def _made(
    mech: Mechanism, request: Request, key: Any, make: Callable[[Mechanism, Request], Callable[..., Any]]
) -> Callable[..., Any]:
    return stored(mech, key, lambda: _constrained_function(mech, request) or make(mech, request))


def _chosen_by_first(mech: Mechanism, request: Request) -> Callable[..., Any]:
    """The float64 function with fallbacks. A float32 or foreign first argument selects another function; arrays omitted
    or given by joint select the general function, if there is one."""
    from .runtime.single_call import with_general  # imported here to keep ``import linkwise`` quick

    function = float64_function(mech, request)
    name, *settings = request if isinstance(request, tuple) else (request,)
    general, options = _GENERAL.get(name), dict(settings)
    ports = options.pop("ports", ())
    owner = weakref.ref(mech)  # owns the function: garbage collection ignores native functions

    def other(make: Callable[[Mechanism, Request], Callable[..., Any]]) -> Callable[..., Any]:
        mech: Any = owner()
        try:
            return mech._kernels[request, make]
        except KeyError:
            return stored(mech, (request, make), lambda: make(mech, request))

    def instead(in_float64: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arrays: Any, out: Any = None) -> Any:
            chosen, first = in_float64, arrays[0] if arrays else None
            try:
                if type(first) is not _ARRAY and is_foreign(first):
                    chosen = other(_converting)
                elif getattr(first, "dtype", None) is _FLOAT32:
                    if all(map(is_single, arrays)):
                        chosen = other(_float32_function)
                    elif any(map(is_foreign, arrays)):
                        chosen = other(_converting)
                return chosen(*arrays) if out is None else chosen(*arrays, out=out)
            except ValueError:
                state = arrays[: len(arrays) - len(ports)]
                if general is None or not any(x is None or isinstance(x, Mapping) for x in state):
                    raise
            return general()(owner(), *arrays, **options)

        return call

    return with_general(function, instead)


def _constrained_function(mech: Mechanism, request: Request) -> Callable[..., Any] | None:
    """The function of arrays that also solves for a mechanism's constraints; None without constraints, or if the
    algorithm does not solve."""
    name, *settings = request if isinstance(request, tuple) else (request,)
    if not mech.loops or name not in _WITH_CONSTRAINTS:
        return None
    options = dict(settings)
    ports = options.pop("ports", ())
    general = _WITH_CONSTRAINTS[name]()(mech, **options)
    if not ports:
        return general
    count = len(ports)
    return lambda *arrays: general(*arrays[:-count], **dict(zip(ports, arrays[-count:], strict=True)))


def stored(mech: Mechanism, key: Any, make: Callable[[], Made]) -> Made:
    """The mechanism's entry under ``key``, made by the first thread that requests it."""
    require_mechanism(mech)
    try:
        return mech._kernels[key]  # without the lock, which costs as much as the rest: existing entries never change
    except (KeyError, TypeError):
        pass
    # One lock per process: a forked child must not wait for a thread of its parent.
    with mech._locks.setdefault(os.getpid(), threading.RLock()):
        try:
            return mech._kernels[key]
        except (KeyError, TypeError):  # not made yet, or an unhashable option, which ``make`` reports
            pass
        made = mech._kernels[key] = make()
        return made


def _compiled(mech: Mechanism, request: Request, dtype: str = "float64") -> Callable[..., Any]:
    if "_family" not in mech.__dict__:  # the mechanism has no variants
        return _kernel(mech, request, dtype).function

    kernels: list[Kernel] = []

    def make() -> Callable[..., Any]:
        kernels.append(_kernel(mech, request, dtype))
        return kernels[-1].function

    def is_data(_: Callable[..., Any]) -> bool:
        program = kernels[-1].traced
        return not program.constants_in_code and program.size > SHARED_UP_TO

    def shared(numbers: Any) -> Any:
        return bound_kernel(request, _kernel(mech, request, dtype, (numbers,)))

    return shared_by_variants(mech, request, dtype, make, shared, is_data)


def _kernel(
    mech: Mechanism, request: Request, dtype: str, parameters: Sequence[Any] = (), target: str = "cpu"
) -> Kernel:
    if callable(request):
        return request(mech, dtype, parameters)
    name, *options = (request,) if isinstance(request, str) else request
    asked = name, mech, dtype, target, tuple(parameters), dict(options)
    if target != "cpu" or mech.loops:  # decisions, which may warn, come before tracing
        return _MadeKernel.of(*asked).kernel
    from .recipes import Outlined, remembered  # imported here to keep ``import linkwise`` quick
    from .runtime import cpu

    entry = remembered(_MadeKernel.of, *asked)
    if not isinstance(entry.program, Outlined):
        made: _MadeKernel = entry.again()
        return made.kernel

    return Kernel(entry.program, dtype, target, (), cpu.load(entry.program, dtype))


@dataclass(frozen=True)
class _MadeKernel:
    """A kernel whose program another process may have made."""

    kernel: Kernel

    @classmethod
    def of(
        cls, name: str, mech: Mechanism, dtype: str, target: str, parameters: tuple[Any, ...], options: dict[str, Any]
    ) -> _MadeKernel:
        from .pipeline import compile  # imported here: a program restored by its recipe needs none of this

        return cls(compile(name, mech, dtype=dtype, target=target, parameters=parameters, **options))

    @property
    def program(self) -> Program:
        return self.kernel.traced


def match_precision(function: Function) -> Function:
    """A function of a mechanism and arrays that computes in float64, with float32 results if all arrays are float32.

    Functions with constraints do so: ranks, pivots and loop assembly need double precision.
    """

    @functools.wraps(function)
    def rounded(mech: Mechanism, *arrays: Any, **settings: Any) -> Any:
        result = function(mech, *arrays, **settings)
        first = arrays[0] if arrays else settings.get("q")
        if getattr(first, "dtype", None) is not _FLOAT32:  # by far the most calls
            return result
        values = (*arrays, settings.get("v"), settings.get("tau"), settings.get("wrenches"))
        if not all(_is_choice(x) or is_single(x) for x in values):
            return result
        if isinstance(result, tuple):
            return tuple(np.asarray(x, dtype=_FLOAT32)[()] for x in result)
        return np.asarray(result, dtype=_FLOAT32)[()]

    return rounded  # type: ignore[return-value]


def _is_choice(x: Any) -> bool:
    """Whether an argument is not an array: omitted, a name, several names, or rows."""
    return x is None or isinstance(x, (str, tuple)) or (isinstance(x, list) and all(isinstance(y, str) for y in x))


def is_single(x: Any) -> bool:
    """Whether an argument permits a float32 result: a float32 array or a Python number."""
    return getattr(x, "dtype", None) == _FLOAT32 or type(x) in (int, float)


def _float32_function(mech: Mechanism, request: Request) -> Callable[..., Any]:
    return _compiled(mech, request, "float32")


def _converting(mech: Mechanism, request: Request) -> Callable[..., Any]:
    """A function that converts arrays of other libraries to NumPy arrays in the same memory."""
    by_kind: dict[Any, Callable[..., Any]] = {}  # CuPy arrays are always on the device

    def convert(*inputs: Any) -> Any:
        kinds = tuple([(type(x), getattr(x, "dtype", None)) for x in inputs])
        if kinds in by_kind:
            return by_kind[kinds](*inputs)
        if not callable(request) and any(is_foreign(x) and on_device(x) for x in inputs):
            try:
                function = _device_function(mech, request, inputs)
                if all(kind.__module__.partition(".")[0] == "cupy" for kind, _ in kinds):
                    by_kind[kinds] = function
                return function(*inputs)
            except (ImportError, NoDeviceError):
                pass  # the error raised below has advice for such arrays
        try:
            arrays = all_plain(inputs)
        except UnreadableArrayError:  # kernels report the array's name
            return float64_function(mech, request)(*inputs)
        return kernel_function(mech, request)(*arrays)

    return convert


def _is_single_on_device(x: Any) -> bool:
    """``is_single`` for arrays of any library."""
    precision = getattr(x, "dtype", None)
    if isinstance(precision, np.dtype) or precision is None:
        return is_single(x)
    return str(precision).endswith("float32")


def _device_function(mech: Mechanism, request: Request, inputs: Sequence[Any]) -> Callable[..., Any]:
    """The function for arrays on a GPU, computed there; in float32 if all arrays are float32."""
    dtype = "float32" if all(map(_is_single_on_device, inputs)) else "float64"
    key = (request, _device_function, dtype)
    try:
        return mech._kernels[key]
    except (KeyError, AttributeError, TypeError):
        return stored(mech, key, lambda: _kernel(mech, request, dtype, target="cuda").function)


# -- functions made from algorithms -----------------------------------------------------------------------


def of_algorithm(
    name: str,
    gives: Callable[[Any], Any] | None = None,
    general: Loader | None = None,
    with_constraints: Loader | None = None,
    settings: Any = None,
) -> Callable[[Function], Function]:
    """Register the algorithm of a public function, so that ``compile`` accepts the function, which is returned
    unchanged. ``gives`` converts the kernel's result to the function's result.

    general            a function with the same arguments for cases beyond one kernel: solver settings, arrays omitted
                       or given by joint, and mechanisms with constraints
    with_constraints   from a mechanism and options, makes a faster function of arrays and ports for mechanisms with
                       constraints
    settings           a ``TypedDict`` of the function's ``**settings``: quicker than keywords with defaults, which are
                       looked up one by one; its signature lists them
    """

    def note(function: Function) -> Function:
        if general is not None:
            _GENERAL[name] = general
            _WITH_CONSTRAINTS[name] = with_constraints or (lambda: functools.partial(functools.partial, general()))
        if settings is not None:
            _list_settings(function, settings)
        return register(function, ArrayFunction(name, gives=gives))

    return note


def _list_settings(function: Any, settings: Any) -> None:
    """Put the keywords of a ``TypedDict`` in place of ``**settings`` in the signature of a function."""
    signature = inspect.signature(function)
    *parameters, _ = signature.parameters.values()
    for name, kind in settings.__annotations__.items():
        default = "none" if name == "forces" else None
        annotation = getattr(kind, "__forward_arg__", kind)
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    function.__signature__ = signature.replace(parameters=parameters)


def either(function: str, link: str | None, name: str | None) -> str | None:
    """The link of functions that accept ``name`` as a synonym of ``link``."""
    if (link is None) == (name is None):
        raise TypeError(f"{function} takes link or name, both words for the name of a link or frame: give one of them")
    return name if link is None else link
