"""Public functions made from algorithms, and the kernels that they keep with a mechanism: made on first use, found
again by what was asked for.

The store is a dictionary of the mechanism itself.  What is in it stays; what is not is made by the first thread that
asks for it, while others that need something new of the same mechanism wait.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..mechanism import Mechanism, require_mechanism
from .kernel import Kernel
from .registry import OPTION_ALIASES, ArrayFunction, Function, register
from .runtime.arrays import NoDeviceError, UnreadableArrayError, all_plain, is_foreign, on_device
from .variants import bound_kernel, shared_by_variants

_ARRAY, _FLOAT32 = np.ndarray, np.dtype("float32")
#: An algorithm, one with its options, ("frame_pose", ("link", "tool")), or a function of mechanism, dtype and the
#: parameters that become inputs, which makes the kernel.
Request = str | tuple[Any, ...] | Callable[[Mechanism, str, Sequence[Any]], Kernel]
Made = TypeVar("Made")
WRENCHES = ("ports", ("wrenches",))  # of requests for algorithms under wrenches on the links
SHARED_UP_TO = 300_000  # operations: without loops, as code that variants share is, more take minutes to compile
Loader = Callable[[], Callable[..., Any]]  # gives a function when that is needed first: its module is imported then
#: Algorithm -> what makes the function of arrays that answers for a mechanism with constraints.
_WITH_CONSTRAINTS: dict[str, Loader] = {}


# Functions are kept under their request alone, or with how they go about their arguments: _choosing or _converting.


def kernel_function(mech: Mechanism, request: Request, first: Any) -> Callable[..., Any]:
    """The function of arrays for ``request`` that suits its first argument: all-float32 arguments are computed in
    float32, everything else in float64."""
    key: Any = request
    if type(first) is _ARRAY:  # by far the most calls are float64, and short
        if first.dtype is _FLOAT32:
            key = (request, _choosing)
    elif first is not None:
        key = _key(request, first)
    try:
        return mech._kernels[key]
    except (KeyError, AttributeError, TypeError):  # not compiled yet, no mechanism, or an option that is no name
        pass
    return _made(mech, request, key)  # elsewhere, as a function that holds another is slower to call


def float64_function(mech: Mechanism, request: Request) -> Callable[..., Any]:
    """The function of arrays for ``request`` that computes in float64 whatever it is given."""
    try:
        return mech._kernels[request]
    except (KeyError, AttributeError, TypeError):
        return _made(mech, request, request)


def _key(request: Request, first: Any) -> Any:
    """The same of a first argument that is no such NumPy array."""
    if is_foreign(first):
        return request, _converting
    return (request, _choosing) if getattr(first, "dtype", None) is _FLOAT32 else request


def _made(mech: Mechanism, request: Request, key: Any) -> Callable[..., Any]:
    def make() -> Callable[..., Any]:
        return _with_constraints(mech, request) or (_compiled if key is request else key[1])(mech, request)

    return stored(mech, key, make)


def _with_constraints(mech: Mechanism, request: Request) -> Callable[..., Any] | None:
    """The function of arrays that solves for the constraints of a mechanism too; None if it has none, or the algorithm
    does not solve."""
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
    """What the mechanism keeps under ``key``, made by the first thread that asks for it."""
    require_mechanism(mech)
    try:
        return mech._kernels[key]  # without the lock, which costs as much as all else: what is there stays
    except (KeyError, TypeError):
        pass
    # One lock per process: a forked child must not wait for a thread of its parent.
    with mech._locks.setdefault(os.getpid(), threading.RLock()):
        try:
            return mech._kernels[key]
        except (KeyError, TypeError):  # not made yet, or an option that is no name, which making it says
            pass
        made = mech._kernels[key] = make()
        return made


def _compiled(mech: Mechanism, request: Request, dtype: str = "float64") -> Callable[..., Any]:
    if "_family" not in mech.__dict__:  # it has no variants
        return _kernel(mech, request, dtype).function

    kernels: list[Kernel] = []

    def own() -> Callable[..., Any]:
        kernels.append(_kernel(mech, request, dtype))
        return kernels[-1].function

    def is_data(_: Callable[..., Any]) -> bool:
        program = kernels[-1].traced
        return not program.constants_in_code and program.size > SHARED_UP_TO

    def shared(numbers: Any) -> Any:
        return bound_kernel(request, _kernel(mech, request, dtype, (numbers,)))

    return shared_by_variants(mech, request, dtype, own, shared, is_data)


def _kernel(
    mech: Mechanism, request: Request, dtype: str, parameters: Sequence[Any] = (), target: str = "cpu"
) -> Kernel:
    if callable(request):
        return request(mech, dtype, parameters)
    from .pipeline import compile  # here, so that importing the package stays quick

    name, *options = (request,) if isinstance(request, str) else request
    return compile(name, mech, dtype=dtype, target=target, parameters=parameters, **dict(options))


def is_single(x: Any) -> bool:
    """Whether an argument lets a result be computed in float32: a float32 array, or one of Python's own numbers."""
    return getattr(x, "dtype", None) == _FLOAT32 or type(x) in (int, float)


def _choosing(mech: Mechanism, request: Request) -> Callable[..., Any]:
    """A function that computes in float32 if all arguments allow that (``is_single``), else in float64."""
    in_float32 = _compiled(mech, request, "float32")

    def choose(*arrays: Any) -> Any:
        if all(map(is_single, arrays)):
            return in_float32(*arrays)
        if any(map(is_foreign, arrays)):
            return _converting(mech, request)(*arrays)
        return kernel_function(mech, request, None)(*arrays)

    return choose


def _converting(mech: Mechanism, request: Request) -> Callable[..., Any]:
    """A function that takes arrays of other libraries for the NumPy arrays that they are."""
    by_kind: dict[Any, Callable[..., Any]] = {}  # of CuPy's arrays, which are always on the device

    def convert(*given: Any) -> Any:
        kinds = tuple([(type(x), getattr(x, "dtype", None)) for x in given])
        if kinds in by_kind:
            return by_kind[kinds](*given)
        if not callable(request) and any(is_foreign(x) and on_device(x) for x in given):
            try:
                function = _on_device(mech, request, given)
                if all(kind.__module__.partition(".")[0] == "cupy" for kind, _ in kinds):
                    by_kind[kinds] = function
                return function(*given)
            except (ImportError, NoDeviceError):
                pass  # what follows says what to do about such arrays
        try:
            arrays = all_plain(given)
        except UnreadableArrayError:  # kernels know the name of the array
            return kernel_function(mech, request, None)(*given)
        return kernel_function(mech, request, arrays[0])(*arrays)

    return convert


def _is_single_on_device(x: Any) -> bool:
    """``is_single``, of arrays of any library."""
    precision = getattr(x, "dtype", None)
    if isinstance(precision, np.dtype) or precision is None:
        return is_single(x)
    return str(precision).endswith("float32")


def _on_device(mech: Mechanism, request: Request, given: Sequence[Any]) -> Callable[..., Any]:
    """The function that computes where arrays on a GPU lie; in float32 if all of them are, whatever their library."""
    dtype = "float32" if all(map(_is_single_on_device, given)) else "float64"
    key = (request, _on_device, dtype)
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
) -> Callable[[Function], Function]:
    """Makes a public function of an algorithm; ``gives`` turns what the kernel returns into the function's result.

    The signature that is decorated says all: its arguments that are array-like are the kernel's inputs, in its order;
    ``wrenches`` is an optional one (a port of the algorithm); other arguments are options of the algorithm, left out
    where they are None.  The body is the docstring alone.  As these functions are as quick as one call can be, their
    text is written out, as that of dataclasses is, instead of being interpreted argument by argument.

    general            the function with the same arguments for all that one kernel does not answer: arguments that can
                       be given by keyword only, arrays given by joint or left out, and mechanisms with constraints
    with_constraints   what makes the function of arrays and ports that answers for these sooner, from a mechanism and
                       options
    """

    def make(stub: Function) -> Function:
        parameters = list(inspect.signature(stub).parameters.values())[1:]  # after the mechanism
        text = _text(stub.__name__, name, parameters, "gives" if gives else "", general is not None)
        space: dict[str, Any] = {
            "__name__": stub.__module__,
            "kernel_function": kernel_function,
            "gives": gives,
            "general": general,
            "defaults": {p.name: p.default for p in parameters},
            "by_name_or_left_out": _by_name_or_left_out,
            "ARRAY": _ARRAY,
            "FLOAT32": _FLOAT32,
        }
        exec(compile(text, f"<{stub.__module__}.{stub.__name__}>", "exec"), space)
        made: Any = functools.update_wrapper(space[stub.__name__], stub)
        del made.__wrapped__  # its signature is its own
        made.__signature__ = inspect.signature(stub)
        if general is not None:
            _WITH_CONSTRAINTS[name] = with_constraints or (lambda: functools.partial(functools.partial, general()))
        return register(made, ArrayFunction(name, gives=gives))

    return make


def _by_name_or_left_out(*arrays: Any) -> bool:
    return any(array is None or isinstance(array, Mapping) for array in arrays)


def _text(function: str, algorithm: str, parameters: list[inspect.Parameter], gives: str, general: bool) -> str:
    """The source of a public function with these parameters after the mechanism."""
    settings = [p for p in parameters if general and p.kind is p.KEYWORD_ONLY]  # of the general function
    own = [p for p in parameters if p not in settings]
    ports = [p.name for p in own if p.name == "wrenches" and p.default is None]
    arrays = [p.name for p in own if _is_array(p) and p.name not in ports]
    options = [p for p in own if not _is_array(p)]
    arguments, keywords_only = ["mech"], False
    for p in own:
        if p.kind is p.KEYWORD_ONLY and not keywords_only:
            arguments, keywords_only = [*arguments, "*"], True
        arguments.append(p.name if p.default is p.empty else f"{p.name}=defaults[{p.name!r}]")
    if settings:
        arguments.append("**settings")  # quicker than keywords with defaults, which are looked up one by one

    def call(*given: str) -> list[str]:
        request, inputs = _request(algorithm, options, given), ", ".join([*arrays, *given])
        kernel = f"kernel_function(mech, {request}, {arrays[0]})"
        found = [f"return {gives}({kernel}({inputs}))"]
        if any(p.default is not None for p in options):
            return found
        key = repr((algorithm, ("ports", given)) if given else algorithm)
        # ``kernel_function`` of float64 arrays, without a call of its own.
        plain = " and ".join(
            [
                *(f"{p.name} is None" for p in options),
                f"type({arrays[0]}) is ARRAY and {arrays[0]}.dtype is not FLOAT32",
            ]
        )
        return [
            f"if {plain}:",
            "    try:",
            f"        function = mech._kernels[{key}]",
            "    except (KeyError, AttributeError):",
            "        pass",
            "    else:",
            f"        return {gives}(function({inputs}))",
            *found,
        ]

    lines = [f"def {function}({', '.join(arguments)}):"]
    for other, word in OPTION_ALIASES.items():
        if {other, word} <= {p.name for p in options}:
            fault = f"{function} takes {word} or {other}, both words for the name of a link or frame: give one of them"
            lines += [f"    if ({word} is None) == ({other} is None):", f"        raise TypeError({fault!r})"]
    body = call()
    if ports:
        body = ["if wrenches is not None:", *(f"    {line}" for line in call("wrenches")), *body]
    if not general:
        return "\n".join([*lines, *(f"    {line}" for line in body)])
    others = "".join(f" and {p.name} is None" for p in options)
    passed = ", ".join(["mech", *(f"{p.name}={p.name}" for p in own), "**settings"])
    return "\n".join(
        [
            *lines,
            "    if not settings:",
            "        try:",
            *(f"            {line}" for line in body),
            "        except ValueError:",  # of the kernel, or an option that is none of the kernel's
            f"            if not by_name_or_left_out({', '.join(arrays)}){others}:",
            "                raise",
            f"    return general()({passed})",
        ]
    )


def _is_array(parameter: inspect.Parameter) -> bool:
    return any(kind in str(parameter.annotation) for kind in ("ArrayLike", "ByJoint"))


def _request(algorithm: str, options: list[inspect.Parameter], ports: Sequence[str]) -> str:
    """What is asked of ``kernel_function``: the name, or a tuple of it, the ports and the options that are not None."""
    head = repr((algorithm, ("ports", tuple(ports))) if ports else (algorithm,))
    if not options:
        return head if ports else repr(algorithm)
    pairs = [f"(({OPTION_ALIASES.get(p.name, p.name)!r}, {p.name}),)" for p in options]
    given = [
        f"({pair} if {p.name} is not None else ())" if p.default is None else pair
        for p, pair in zip(options, pairs, strict=True)
    ]
    whole = " + ".join([head, *given])
    if all(p.default is None for p in options):
        plain = head if ports else repr(algorithm)
        return f"({plain} if {' is '.join([*(p.name for p in options), 'None'])} else {whole})"
    return whole
