"""The most that one core can do: fused multiply-adds on full vector registers, and nothing else."""

from __future__ import annotations

import ctypes

import numpy as np

from linkwise.compiler.runtime import llvm_loader
from linkwise.demo.timing import best

CHAINS, ROUNDS = 12, 1_000_000  # independent chains of additions, as many as hide the latency of one


def fma_peak(dtype: str = "float64") -> float:
    """Operations per second of one core, a fused one counted as two."""
    options = llvm_loader.host_options(dtype)
    scalar, suffix = {"float64": ("double", "f64"), "float32": ("float", "f32")}[dtype]
    vector = f"<{options.lanes} x {scalar}>"

    def constant(value: float) -> str:
        # LLVM takes the bits of a float as those of the double of the same value
        bits = np.float64(np.dtype(dtype).type(value)).view(np.uint64)
        return f"<{', '.join([f'{scalar} 0x{int(bits):016X}'] * options.lanes)}>"

    fma = f"@llvm.fma.v{options.lanes}{suffix}"
    factor = constant(0.999)
    lines = [
        f"declare {vector} {fma}({vector}, {vector}, {vector})",
        f"define void @fma_peak(ptr %out) {{\nentry:\n  %start = load {vector}, ptr %out, align 4\n  br label %loop",
        "loop:\n  %i = phi i64 [0, %entry], [%next, %loop]",
        *(f"  %x{k} = phi {vector} [%start, %entry], [%y{k}, %loop]" for k in range(CHAINS)),
        *(
            f"  %y{k} = call {vector} {fma}({vector} %x{k}, {vector} {factor}, {vector} {constant((k + 1) / 1000)})"
            for k in range(CHAINS)
        ),
        f"  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, {ROUNDS}",
        "  br i1 %more, label %loop, label %done\ndone:",
        *(f"  %s{k + 1} = fadd {vector} {f'%s{k}' if k else '%start'}, %y{k}" for k in range(CHAINS)),
        f"  store {vector} %s{CHAINS}, ptr %out, align 4\n  ret void\n}}",
    ]
    code = llvm_loader.load("\n".join(lines), "fma_peak", options)
    out = np.zeros(options.lanes, dtype)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address)
    (seconds,) = best(lambda: function(out.ctypes.data), rounds=3)
    return 2.0 * ROUNDS * CHAINS * options.lanes / seconds
