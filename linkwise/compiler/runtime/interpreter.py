"""Programs interpreted by NumPy, operation by operation: slow, and nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.program import Program
from ..targets import numpy_reference
from .arrays import all_plain
from .explanations import explaining
from .gufunc import delivered


def load(program: Program, dtype: str) -> Callable[..., Any]:
    """The NumPy reference as a function of arrays, with the calling convention of all targets."""

    def run(*arrays: Any, out: Any = None) -> Any:
        values = all_plain(arrays)
        results = numpy_reference.evaluate(program, values, dtype)
        numpy_reference.heed_unread(program, values, results)
        return delivered(results, out)

    return run if program.carried else explaining(run, program.signature, dtype)
