"""Functions and constants of CUDA kernels, optimized for short code.

Straight-line kernels of humanoids have thousands of instructions; beyond the instruction cache (128 kB on an H200)
fetching them takes most of the time.  Every use of CUDA's own sine and cosine includes the reduction of any argument,
every division a slow path, and a double that does not fit into an instruction takes two more instructions.  Here sine
and cosine take some 25 instructions, a division six (for doubles eleven), a constant none or one: forward dynamics of a
humanoid becomes three times as fast in float32.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Sequence

from ..ir import ops
from .c_expressions import Functions, Real
from .trigonometry import COSINE, MANTISSA_BITS, SINE, parts_of_half_pi

DTYPES = {"double": "float64", "float": "float32"}
MOST_CONSTANTS = 7_000  # of the 8,192 in constant memory


class Constants:
    """Constants that do not fit into instructions, in constant memory, where they are operands like registers.

    A double fits into an instruction if its last 32 bits are zero; a float always does.
    """

    def __init__(self, real: Real):
        self.real = real
        self._places: dict[float, int] = {}

    def written(self, value: float) -> str:
        """A number as text in a statement."""
        size = abs(value)
        if self.real.name == "double" and _last_bits(size) and self._has_room_for(size):
            text = f"_constants[{self._places.setdefault(size, len(self._places))}]"
            return f"(-{text})" if value < 0 else text
        literal = self.real.literal(value)
        return f"({literal})" if literal.startswith("-") else literal

    def _has_room_for(self, size: float) -> bool:
        return size in self._places or len(self._places) < MOST_CONSTANTS

    @property
    def declaration(self) -> list[str]:
        if not self._places:
            return []
        numbers = [self.real.literal(size) for size in self._places]
        rows = [", ".join(numbers[k : k + 8]) for k in range(0, len(numbers), 8)]
        head = f"__constant__ {self.real.name} _constants[{len(numbers)}] = {{"
        return [head, *(f"    {row}," for row in rows), "};"]


def _last_bits(value: float) -> int:
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return int(bits & 0xFFFFFFFF)


def functions(constants: Constants, values_wait: bool) -> Functions:
    """Spellings of operations in kernels. If values are spilled, doubles use CUDA's division: code with calls needs
    fewer registers."""
    divide = "" if values_wait and constants.real.name == "double" else "_over"
    return Functions("_sincos", divide, constants.written)


def definitions(constants: Constants, functions: Functions, used: Collection[ops.Op]) -> list[str]:
    """The functions that a kernel with these operations needs."""
    real = constants.real
    lines = _sincos(real, constants.written) if ops.SIN in used or ops.COS in used else []
    lines += _OVER[real.name] if ops.DIV in used and functions.divide else []
    return [*lines, *(line for op, sign in _EXTREMES if op in used for line in _extreme(real, op, sign))]


def _sincos(real: Real, number: Callable[[float], str]) -> list[str]:
    """Sine and cosine within 2 units in the last place.

    x = turns * pi/2 + r, with pi/2 in three parts of full precision.  Each step has a single rounding, because
    multiplications and additions are fused; the first step is exact.  Adding 1.5 * 2^52 (2^23) rounds to an integer
    whose last bits are the quadrant; its second bit becomes the sign.  Beyond 2^50 (2^21) quarter turns, neighbouring
    numbers are a quarter of a radian apart and the sine is undefined: the result is NaN.
    """
    name, suffix, dtype = real.name, real.suffix, DTYPES[real.name]
    first, second, third = (number(-part) for part in parts_of_half_pi(dtype, 0))
    shift = number(1.5 * 2.0 ** (MANTISSA_BITS[dtype] - 1))
    limit = number(1.5 * 2.0 ** (50 if name == "double" else 21))
    if name == "double":
        quadrant = "__double2loint(shifted)"
        signed = "__hiloint2double(__double2hiint({0}) ^ ({1} << 30 & 0x80000000), __double2loint({0}))"
    else:
        quadrant = "__float_as_int(shifted)"
        signed = "__int_as_float(__float_as_int({0}) ^ ({1} << 30 & 0x80000000))"
    return [
        f"__device__ __forceinline__ void _sincos({name} x, {name} *sine, {name} *cosine)",
        "{",
        f'    if (!(fabs{suffix}(x) < {limit})) x = nan{suffix}("");',
        f"    const {name} shifted = fma{suffix}(x, {number(0.6366197723675814)}, {shift}), turns = shifted - {shift};",
        f"    const int quadrant = {quadrant};",
        f"    {name} r = fma{suffix}(turns, {first}, x);",
        f"    r = fma{suffix}(turns, {second}, r);",
        f"    r = fma{suffix}(turns, {third}, r);",
        f"    const {name} z = r * r;",
        f"    const {name} s = fma{suffix}(r * z, {_polynomial(SINE[dtype], suffix, number)}, r);",
        f"    const {name} half = fma{suffix}({number(-0.5)}, z, {number(1.0)});",
        f"    const {name} c = fma{suffix}(z * z, {_polynomial(COSINE[dtype], suffix, number)}, half);",
        f"    const {name} a = quadrant & 1 ? c : s, b = quadrant & 1 ? s : c;",
        f"    *sine = {signed.format('a', 'quadrant')};",
        f"    *cosine = {signed.format('b', '(quadrant + 1)')};",
        "}",
        "",
    ]


_EXTREMES = ((ops.MINIMUM, "<"), (ops.MAXIMUM, ">"))


def _extreme(real: Real, op: ops.Op, sign: str) -> list[str]:
    """Minimum or maximum, returning a if it is NaN. Doubles, and floats before Ampere, have no instruction for it."""
    instruction = {"<": "min", ">": "max"}[sign]
    body = [f"    return b {sign} a ? b : a;"]
    if real.name == "float":
        asm = f'asm("{instruction}.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(a), "f"(b));'
        body = [
            "#if __CUDA_ARCH__ >= 800",
            "    float found;",
            f"    {asm}",
            "    return found;",
            "#else",
            *body,
            "#endif",
        ]
    head = f"__device__ __forceinline__ {real.name} _{op.name}({real.name} a, {real.name} b)"
    return [head, "{", *body, "}", ""]


def _polynomial(coefficients: Sequence[float], suffix: str, number: Callable[[float], str]) -> str:
    """Horner's rule in z, constant coefficient first."""
    text = number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        text = f"fma{suffix}({text}, z, {number(coefficient)})"
    return text


_OVER = {  # within one unit in the last place
    "float": [
        "__device__ __forceinline__ float _over(float a, float b)",
        "{",
        "    const float r = __fdividef(1.0f, b), q = a * r, better = fmaf(fmaf(-b, q, a), r, q);",
        "    return better == better ? better : q;  // b is zero or infinite, or a infinite",
        "}",
        "",
    ],
    "double": [
        "__device__ __forceinline__ double _over(double a, double b)",
        "{",
        "    double guess;  // 20 bits of 1 / b",
        '    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(b));',
        "    const double e = fma(-b, guess, 1.0), s = fma(guess, fma(e, e, e), guess);",
        "    const double r = fma(s, fma(-b, s, 1.0), s), q = a * r, better = fma(fma(-b, q, a), r, q);",
        "    return better == better ? better : a * guess;  // b is zero or infinite, or a infinite",
        "}",
        "",
    ],
}
