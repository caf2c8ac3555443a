"""Compile a program for the host and give a ufunc, for the tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwise.compiler.ir.program import Program
from linkwise.compiler.runtime import gufunc, llvm_loader
from linkwise.compiler.targets import llvm_simd


def compiled(program: Program, dtype: str = "float64", lanes: int | None = None) -> np.ufunc:
    options = llvm_loader.host_options(dtype)
    if lanes is not None:
        options = replace(options, lanes=lanes)
    code = llvm_loader.load(llvm_simd.emit(program, options), llvm_simd.symbol(program), options)
    return gufunc.make_gufunc(code, program.inputs, program.outputs, dtype, program.name)
