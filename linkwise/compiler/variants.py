"""Code that variants of a mechanism share: the numbers in which they differ are inputs of it, bound to each variant's.

The first variant that asks for a function gets code with its numbers folded in, as every mechanism does.  From the
second on one kernel serves all: it takes those numbers as a last array.  A variant still gets code of its own where
mechanics looks at zeros before anything runs: if a body that varies has no mass, or if a moment of inertia or armature
is zero that was not in any variant compiled before, since compiling refuses to divide by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..mechanism import Mechanism
from ..mechanism.family import Family, Numbers
from .kernel import Kernel, explaining

Make = Callable[[Sequence[Any]], Kernel]


class _SharedCode:
    """What is compiled for one request of a family."""

    def __init__(self, request: Any, numbers: Numbers):
        self.check = _check_of(request)
        self.numbers = numbers
        self.fresh = True  # no variant that it can serve has asked yet
        self.zeros: set[tuple[int, bool]] = set()  # met in variants that were compiled for themselves
        self.bind: Callable[[np.ndarray], Callable[..., Any]] | None = None


def variant_function(mech: Mechanism, request: Any, dtype: str, make: Make) -> Callable[..., Any]:
    """The function of arrays for ``request``: shared with other variants where it can be, else its own.  ``make`` takes
    the parameters that become inputs."""
    try:
        hash(request)
    except TypeError:  # an option that is no name: compiling says so
        return make(()).function
    family = mech._family
    with family.lock:
        if not mech._changed:
            return _unchanged(family, request, dtype, make)
        code = _code(mech, family, request, dtype)
        vector = code.numbers.of(mech, dtype)
        zeros = code.numbers.zeros(vector)
        if code.fresh or not zeros <= code.zeros:
            own = make(()).function
            code.fresh = False
            if not code.numbers.massless(mech):
                code.zeros |= zeros
            return own
        code.check(mech)
        if code.bind is None:
            code.bind = _binding(make((code.numbers,)))
        return code.bind(vector)


def _unchanged(family: Family, request: Any, dtype: str, make: Make) -> Callable[..., Any]:
    """Of variants that differ in nothing that code looks at: limits, damping, notes."""
    key = request, dtype, "unchanged"
    if key not in family.code:
        family.code[key] = make(()).function
    return family.code[key]


def _code(mech: Mechanism, family: Family, request: Any, dtype: str) -> _SharedCode:
    """What is compiled for a request, anew where this variant differs in numbers that were constants so far."""
    code = family.code.get((request, dtype))
    if code is None or not mech._changed <= code.numbers.changed:
        family.changed |= mech._changed
        code = family.code[request, dtype] = _SharedCode(request, Numbers(mech, family.changed))
    return code


def _check_of(request: Any) -> Callable[[Mechanism], None]:
    """What refuses a mechanism for its numbers before it is compiled."""
    from ..mechanics.algorithms.catalogue import ALGORITHMS  # here, so that importing the package stays quick

    if callable(request):
        return lambda mech: None
    return ALGORITHMS[request if isinstance(request, str) else request[0]].check


def _binding(kernel: Kernel) -> Callable[[np.ndarray], Callable[..., Any]]:
    """From a variant's numbers to its function."""
    function, dtype = kernel.function, kernel.dtype.name
    visible = replace(kernel.traced, inputs=kernel.traced.inputs[:-1])  # to the caller, the numbers are no input

    def bind(vector: np.ndarray) -> Callable[..., Any]:
        def call(*arrays: Any, out: Any = None) -> Any:
            return function(*arrays, vector) if out is None else function(*arrays, vector, out=out)

        return explaining(call, visible, dtype)

    return bind
