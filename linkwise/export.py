"""Kernels as files: source code that is compiled and used without linkwise."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .compiler import compile
from .mechanism import Mechanism


def export_c(algorithm: Any, mech: Mechanism, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write one self-contained C99 file and return its path; nothing else is written.

    algorithm, options   as for ``compile``: ``dtype``, ``parameters``, what the algorithm needs fixed (``link``, ...)

    The file holds ``void NAME(inputs, outputs)`` for one state and ``void NAME_batch(size_t n, inputs, outputs)`` for
    n states in contiguous rows, arrays in C order.  It needs the C library's mathematics only (link with ``-lm``).
    """
    if "target" in options:
        raise TypeError("export_c writes C for any machine and takes no target")
    target = Path(path)
    # The interpreter as target: tracing is all that is needed, no machine code is made.
    target.write_text(compile(algorithm, mech, target="numpy", **options).source("c"), encoding="utf-8")
    return target
