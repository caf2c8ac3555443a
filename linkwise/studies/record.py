"""A study as plain data: what is stored beside its results, and compared before it is resumed."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

LONG = 64  # numbers; longer arrays are told by their digest


def described(value: Any) -> Any:
    """A value as JSON has it; two that compute the same are described alike, in every process."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init and f.compare}
        return {"type": type(value).__name__} | {name: described(one) for name, one in fields.items()}
    if isinstance(value, Mapping):
        return {str(key): described(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [described(one) for one in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, np.generic):
        return described(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, functools.partial):
        return {"type": "partial", "of": described(value.func), "with": described([value.args, value.keywords])}
    if isinstance(value, (types.FunctionType, types.MethodType)):
        return {"type": "function", "name": value.__qualname__, "code": _digest(_code(value.__code__))}
    if isinstance(value, type) or callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return {"type": type(value).__name__} | {name: described(one) for name, one in sorted(_state(value).items())}


def differences(before: Any, now: Any, at: str = "") -> Iterator[str]:
    """What two descriptions differ in, place by place."""
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
        inside = ", ".join(f"{name}={_short(one)}" for name, one in value.items() if name != "type")
        value = f"{value['type']}({inside})"
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _array(value: np.ndarray) -> Any:
    if value.size <= LONG:
        return described(value.tolist())
    return {"type": "array", "shape": list(value.shape), "dtype": str(value.dtype), "digest": _digest(value.tobytes())}


def _code(code: types.CodeType) -> bytes:
    """What a function does, without where it is written."""
    constants = [_code(one) if isinstance(one, types.CodeType) else repr(one).encode() for one in code.co_consts]
    return b"|".join([code.co_code, repr((code.co_names, code.co_varnames)).encode(), *constants])


def _state(value: Any) -> dict[str, Any]:
    """What an object of another library is made of: of frozen distributions of SciPy, their name and numbers."""
    if hasattr(value, "dist") and hasattr(value, "kwds"):
        return {"name": value.dist.name, "args": value.args, "kwds": value.kwds}
    return {name: one for name, one in getattr(value, "__dict__", {}).items() if not name.startswith("_")}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
