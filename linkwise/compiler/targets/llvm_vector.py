"""Spelling of vector types and constants in LLVM text."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass


@dataclass(frozen=True)
class VectorType:
    """LLVM types and constants of ``lanes`` numbers of one dtype; ``share``: number of such vectors that are adjacent
    in memory as one value."""

    dtype: str
    lanes: int
    share: int = 1

    @property
    def scalar(self) -> str:
        return "double" if self.dtype == "float64" else "float"

    @property
    def bits(self) -> int:
        return 64 if self.dtype == "float64" else 32

    @property
    def bytes(self) -> int:
        return self.bits // 8 * self.lanes

    @property
    def real(self) -> str:
        return f"<{self.lanes} x {self.scalar}>"

    @property
    def stored(self) -> str:
        """The type in memory, all ``share`` vectors together."""
        return self.real if self.share == 1 else f"[{self.share} x {self.real}]"

    @property
    def integer(self) -> str:
        return f"<{self.lanes} x i{self.bits}>"

    @property
    def boolean(self) -> str:
        return f"<{self.lanes} x i1>"

    @property
    def suffix(self) -> str:
        """Suffix of intrinsics on this vector type."""
        return f"v{self.lanes}f{self.bits}"

    def round(self, value: float) -> float:
        """``value`` as a number of this dtype; infinite if too large for float32."""
        if self.dtype == "float64":
            return value
        try:
            return struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)

    def number(self, value: float) -> str:
        """Exact spelling of a scalar constant: LLVM writes the bits of a double for both types."""
        return f"{self.scalar} 0x{struct.unpack('<Q', struct.pack('<d', self.round(value)))[0]:016X}"

    def splat(self, value: float) -> str:
        return f"splat ({self.number(value)})"

    def integer_splat(self, value: int) -> str:
        return f"splat (i{self.bits} {value})"

    def integer_mask(self, lane: int) -> str:
        """The mask of a shuffle that puts one lane into all."""
        return f"<{self.lanes} x i32> splat (i32 {lane})"

    @property
    def counting(self) -> str:
        """The numbers of the lanes."""
        return f"<{', '.join(f'i{self.bits} {i}' for i in range(self.lanes))}>"

    def bit_pattern(self, value: float) -> int:
        formats = ("<d", "<Q") if self.bits == 64 else ("<f", "<I")
        return struct.unpack(formats[1], struct.pack(formats[0], value))[0]
