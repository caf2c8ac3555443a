"""The array functions of linkwise by their names, as functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

import linkwise as lw

from ..frameworks import ActingCall, Call, UnderForces, algorithm_named, asked, kept, result_named
from .kernels import DTYPES, PLAIN, differentiable
from .operators import call_operator
from .signatures import DEVICES


def named_function(name: str, of_loops: bool = False) -> Callable[..., Any]:
    """The function of tensors that belongs to an algorithm of linkwise."""
    algorithm = algorithm_named(name, "linkwise.torch.closed" if of_loops else "linkwise.torch", of_loops)
    plain, gives = Call(algorithm), result_named(name, of_loops)

    def function(
        mech: lw.Mechanism,
        *arguments: Any,
        wrenches: Any = None,
        parameters: Mapping[str, Any] | None = None,
        forces: Any = None,
        ctrl: Any = None,
        activation: Any = None,
        **options: Any,
    ) -> Any:
        if forces is not None or ctrl is not None or activation is not None:
            acts = {"forces": forces, "ctrl": ctrl, "activation": activation}
            more = {"wrenches": wrenches, "parameters": parameters, **options}
            return _UNDER_FORCES(algorithm, function, mech, arguments, acts, more)
        call, tensors = plain, arguments
        usual = arguments and wrenches is None and not parameters and not options
        if not (usual and type(arguments[0]) in PLAIN and type(arguments[-1]) in PLAIN):  # names follow the arrays
            call, tensors = asked(algorithm, arguments, wrenches, parameters, options)
        results = evaluated(mech, call, tensors)
        return results if gives is None else gives(results)

    function.__name__ = name
    function.__doc__ = (
        f"``linkwise.{'closed.' * of_loops}{name}`` of tensors, with gradients; ``parameters`` by name, such as "
        "masses, too."
    )
    return function


def evaluated(mech: lw.Mechanism, call: Call | ActingCall, tensors: tuple[Any, ...]) -> Any:
    """The result of a call with tensors; the first tensor decides on precision and device."""
    first = tensors[0] if tensors and type(tensors[0]) in PLAIN else _first(tensors)
    if torch.compiler.is_compiling():
        return call_operator(_handle(mech, call, first.dtype, first.device.type), list(tensors))
    try:
        made = mech._kernels[call, first.dtype, first.is_cpu]
    except (KeyError, AttributeError, TypeError):
        made = _function(mech, call, first.dtype, first.device.type)
    return made(*tensors)


_UNDER_FORCES = UnderForces(evaluated)


def _function(mech: lw.Mechanism, call: Call | ActingCall, dtype: torch.dtype, device: str) -> Callable[..., Tensor]:
    return kept(mech, (call, dtype, device == "cpu"), lambda: _made(mech, call, dtype, device))


@torch.compiler.assume_constant_result
def _handle(mech: lw.Mechanism, call: Call | ActingCall, dtype: torch.dtype, device: str) -> str:
    """The registered name by which torch operators find the kernel while a graph is traced."""
    return vars(_function(mech, call, dtype, device))["handle"]


def _made(mech: lw.Mechanism, call: Call | ActingCall, dtype: torch.dtype, device: str) -> Callable[..., Tensor]:
    if dtype not in DTYPES:
        raise TypeError(f"{call.algorithm}: tensors of {dtype}: all must be torch.float64, or all torch.float32")
    if device not in DEVICES:
        raise ValueError(f"{call.algorithm}: tensors on {device}: all must lie on the CPU, or all on one CUDA device")
    return differentiable(call.compiled(mech, DTYPES[dtype], DEVICES[device]))


def _first(values: Sequence[Any]) -> Tensor:
    """The first tensor: numbers and NumPy arrays are converted to its precision and device."""
    return next((x for x in values if isinstance(x, Tensor)), torch.zeros((), dtype=torch.float64))
