"""A study as plain data, stored beside its results and compared before it is resumed.

Functions of the user are described by their code and all values that it reads: those of enclosing functions, defaults,
global variables, attributes of modules.  Functions of libraries are described by their names.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import math
import pickle
import sys
import sysconfig
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

LONG = 64  # numbers; longer arrays are described by their digest
INCOMPARABLE = "cannot be compared"  # in place of a digest
LIBRARIES = tuple(Path(path) for path in {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
PACKAGE = __name__.partition(".")[0]


def described(value: Any, within: tuple[int, ...] = ()) -> Any:
    """A value as JSON; equal for values that compute the same, in every process.  ``within`` are the identities of the
    values that contain it."""
    if id(value) in within:
        return {"type": "what it is a part of", "levels": len(within) - within.index(id(value))}
    plain = _plain(value)
    if plain is not None or value is None:
        return plain
    within = (*within, id(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init and f.compare}
        return _kind(value, within) | _all(fields, within)
    if isinstance(value, Mapping):
        return _all(value, within)
    if isinstance(value, (list, tuple)):
        return [described(item, within) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((described(item, within) for item in value), key=repr)
    if isinstance(value, functools.partial):
        parts = {"of": value.func, "args": value.args, "keywords": value.keywords}
        return {"type": "partial"} | _all(parts, within)
    if isinstance(value, types.MethodType):
        return {"type": "method"} | _all({"function": value.__func__, "of": value.__self__}, within)
    if isinstance(value, types.FunctionType) and not _is_library_code(value):
        return _function(value, within)
    if isinstance(value, types.ModuleType):
        return value.__name__
    if isinstance(value, type) and not _is_library_code(value):
        return {"type": "class", "name": value.__qualname__} | _methods(value, within)
    if isinstance(value, type) or callable(value) and hasattr(value, "__qualname__"):
        return f"{getattr(value, '__module__', None)}.{value.__qualname__}"
    return _object(value, within)


def _all(values: Mapping[Any, Any], within: tuple[int, ...]) -> dict[str, Any]:
    return {str(name): described(item, within) for name, item in values.items()}


def _plain(value: Any) -> Any:
    """Numbers, strings and arrays, also of other libraries; None for other values."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _array(np.asarray(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return {"type": "bytes", "digest": _digest(bytes(value))}
    if hasattr(value, "__array__") and not isinstance(value, type):
        tensor = value.detach().cpu() if hasattr(value, "detach") else value  # tensors that have gradients
        return _array(np.asarray(tensor))
    return None


def _function(function: types.FunctionType, within: tuple[int, ...]) -> dict[str, Any]:
    code, defaults = function.__code__, function.__kwdefaults__ or {}
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    looked_at = {name: cell.cell_contents for name, cell in cells if cell != types.CellType()}
    looked_at |= _globals_of(code, function.__globals__)
    first = code.co_argcount - len(function.__defaults__ or ())
    defaults = dict(zip(code.co_varnames[first:], function.__defaults__ or (), strict=False)) | defaults
    record = {"type": "function", "name": function.__qualname__, "code": _digest(_code(code))}
    parts = {"defaults": defaults, "captured": looked_at}
    return record | {name: _all(values, within) for name, values in parts.items() if values}


def _globals_of(code: types.CodeType, known: Mapping[str, Any]) -> dict[str, Any]:
    """Global values that code reads, by name, inner functions included; of modules of the user the attributes."""
    values: dict[str, Any] = {}
    for inner in _codes(code):
        read: dict[str, set[str]] = {}
        for instruction in dis.get_instructions(inner):
            read.setdefault(instruction.opname, set()).add(str(instruction.argval))
        names = read.get("LOAD_GLOBAL", set()) | read.get("LOAD_NAME", set())
        attributes = sorted(read.get("LOAD_ATTR", set()) | read.get("LOAD_METHOD", set()))
        for name in sorted(names & {*known}):
            value = values[name] = known[name]
            if isinstance(value, types.ModuleType) and not _is_library(value):
                values |= {f"{name}.{each}": getattr(value, each) for each in attributes if hasattr(value, each)}
    return values


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _is_library_code(function: types.FunctionType | type) -> bool:
    module = sys.modules.get(function.__module__ or "")
    return module is not None and _is_library(module)


def _is_library(module: types.ModuleType) -> bool:
    """Whether a module is installed, and changes with versions alone."""
    file = getattr(module, "__file__", None)
    if module.__name__.partition(".")[0] == PACKAGE or module.__name__ in sys.builtin_module_names:
        return True
    return file is not None and any(folder in Path(file).parents for folder in LIBRARIES)


def _object(value: Any, within: tuple[int, ...]) -> dict[str, Any]:
    """An object by its parts, or by its pickle where these are not accessible."""
    state = _state(value)
    if state is not None:
        return _kind(value, within) | {name: described(item, within) for name, item in sorted(state.items())}
    try:
        digest = _digest(pickle.dumps(value))
    except Exception:  # whatever an object of another library raises
        digest = INCOMPARABLE
    return {"type": type(value).__name__, "digest": digest}


def _kind(value: Any, within: tuple[int, ...]) -> dict[str, Any]:
    """The name of an object's class, and the methods of a class of the user."""
    return {"type": type(value).__name__} | _methods(type(value), within)


def _methods(kind: type, within: tuple[int, ...]) -> dict[str, Any]:
    """Methods of a class of the user, those of its bases included."""
    methods: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base is not object and not _is_library_code(base):
            for name, member in vars(base).items():
                function = getattr(member, "__func__", getattr(member, "fget", member))
                if isinstance(function, types.FunctionType):
                    methods[name] = function
    return {"methods": _all(methods, (*within, id(kind)))} if methods else {}


def differences(before: Any, now: Any, at: str = "") -> Iterator[str]:
    """Differences of two descriptions, key by key."""
    if isinstance(before, dict) and isinstance(now, dict) and before.get("type") == now.get("type"):
        for name in dict.fromkeys((*before, *now)):
            yield from differences(before.get(name), now.get(name), f"{at}.{name}".lstrip("."))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for k, pair in enumerate(zip(before, now, strict=True)):
            yield from differences(*pair, f"{at}[{k}]")
    elif before != now:
        yield f"{at} was {_short(before)}, is {_short(now)}"


def _short(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, dict) and "type" in value:
        inside = ", ".join(f"{name}={_short(item)}" for name, item in value.items() if name != "type")
        value = f"{value['type']}({inside})"
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def incomparable(record: Any, at: str = "") -> Iterator[str]:
    """Keys in a description whose values may change without notice."""
    if isinstance(record, dict):
        if record.get("digest") == INCOMPARABLE:
            yield f"{at} ({record['type']})"
        for name, item in record.items():
            yield from incomparable(item, f"{at}.{name}".lstrip("."))
    elif isinstance(record, list):
        for k, item in enumerate(record):
            yield from incomparable(item, f"{at}[{k}]")


def _array(value: np.ndarray) -> Any:
    if value.size <= LONG or value.dtype.hasobject:
        return described(value.tolist())
    return {"type": "array", "shape": list(value.shape), "dtype": str(value.dtype), "digest": _digest(value.tobytes())}


def _code(code: types.CodeType) -> bytes:
    """The code of a function, without its location."""
    parts = [code.co_code, repr((code.co_names, code.co_varnames)).encode()]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            parts.append(_code(constant))
        else:
            parts.append(repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant).encode())
    return b"|".join(parts)


def _state(value: Any) -> dict[str, Any] | None:
    """Parts of an object by name: of frozen distributions of SciPy their name and numbers, of modules of torch
    all that they learn; None if they are not accessible."""
    if hasattr(value, "dist") and hasattr(value, "kwds"):
        return {"name": value.dist.name, "args": value.args, "kwds": value.kwds}
    if hasattr(value, "state_dict"):
        return {"structure": repr(value), **value.state_dict()}
    if not hasattr(value, "__dict__"):
        return None
    if type(value).__module__.partition(".")[0] == PACKAGE:
        return {name: item for name, item in vars(value).items() if not name.startswith("_")}
    return None if _is_library_code(type(value)) else dict(vars(value))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
