"""LLVM text of the sine, cosine and arctangent of a whole vector of lanes, for float64 and float32.

Sources: the reduction is Cody and Waite's (Software Manual for the Elementary Functions, 1980) with pi/2 in
three parts; the polynomials of the arctangent are minimax fits made with Remez' algorithm.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from . import trigonometry
from .llvm_vector import VectorType
from .trigonometry import COSINE, HALF_PI, HALF_PI_BITS, MANTISSA_BITS, SINE

# The reduction is valid up to this many quarter turns (the parts of pi/2 have that many trailing zero bits, so that
# turns * part is exact); larger arguments go to the C library.
_MAX_QUARTER_TURNS_LOG2 = {"float64": 16, "float32": 7}
# atan(z) = z + z**3 * p(z**2) for |z| <= tan(pi/8)
_ATAN = {
    "float64": (
        -0.3333333333333323,
        0.1999999999996163,
        -0.14285714280877865,
        0.11111110813227017,
        -0.0909089852429306,
        0.076920726359351,
        -0.06663234274771339,
        0.05848771613679912,
        -0.05043034410948485,
        0.038154006255720886,
        -0.01800013720402169,
    ),
    "float32": (
        -0.3333331643611924,
        0.19998533406905356,
        -0.14244537353721326,
        0.10600399702493823,
        -0.06093337725899025,
    ),
}


class _Lines:
    """LLVM instructions on one vector type, written line by line."""

    def __init__(self, vector: VectorType):
        self.vector = vector
        self.lines: list[str] = []

    def __call__(self, name: str, instruction: str, *operands: str) -> str:
        """Append ``%name = instruction real operands`` and return ``%name``."""
        self.lines.append(f"  %{name} = {instruction} {self.vector.real} {', '.join(operands)}")
        return f"%{name}"

    def on_integers(self, name: str, instruction: str, *operands: str) -> str:
        self.lines.append(f"  %{name} = {instruction} {self.vector.integer} {', '.join(operands)}")
        return f"%{name}"

    def to_integer(self, name: str, value: str) -> str:
        self.lines.append(f"  %{name} = bitcast {self.vector.real} {value} to {self.vector.integer}")
        return f"%{name}"

    def to_real(self, name: str, value: str) -> str:
        self.lines.append(f"  %{name} = bitcast {self.vector.integer} {value} to {self.vector.real}")
        return f"%{name}"

    def select(self, name: str, condition: str, then: str, otherwise: str) -> str:
        v = self.vector
        self.lines.append(f"  %{name} = select {v.boolean} {condition}, {v.real} {then}, {v.real} {otherwise}")
        return f"%{name}"

    def muladd(self, name: str, a: str, b: str, c: str) -> str:
        real = self.vector.real
        self.lines.append(
            f"  %{name} = call {real} @llvm.fmuladd.{self.vector.suffix}({real} {a}, {real} {b}, {real} {c})"
        )
        return f"%{name}"

    def polynomial(self, name: str, coefficients: tuple[float, ...], x: str) -> str:
        """Horner's rule, constant coefficient first."""
        splat = self.vector.splat
        value = splat(coefficients[-1])
        for power in range(len(coefficients) - 2, -1, -1):
            value = self.muladd(f"{name}{power}", value, x, splat(coefficients[power]))
        return value


def parts_of_half_pi(dtype: str) -> tuple[float, float, float]:
    """pi/2 as a sum of three numbers; the first two have as many trailing zero bits as the largest number of quarter
    turns has bits."""
    return trigonometry.parts_of_half_pi(dtype, _MAX_QUARTER_TURNS_LOG2[dtype])


def reduction_limit(dtype: str) -> float:
    """The largest absolute argument that sincos reduces itself."""
    vector = VectorType(dtype, 1)
    return vector.round(math.pi / 2 * (2 ** _MAX_QUARTER_TURNS_LOG2[dtype] - 1))


@cache
def sincos(vector: VectorType, attributes: str) -> str:
    """``{real, real} @sincos(real)``: sine and cosine of every lane, within 2 units in the last place.

    x = turns * pi/2 + r.  Both polynomials in r are computed; the quadrant chooses between them by integer operations.
    The sign of x is removed first and restored last, so that sin(-0.0) is -0.0.  Lanes beyond the limit of the
    reduction (also infinite and NaN) are computed out of line by the C library.
    """
    real, integer, boolean = vector.real, vector.integer, vector.boolean
    splat, integers = vector.splat, vector.integer_splat
    first, second, third = parts_of_half_pi(vector.dtype)
    to_whole = splat(1.5 * 2.0 ** (MANTISSA_BITS[vector.dtype] - 1))  # adding it rounds to a whole number
    sign_bit = 1 << (vector.bits - 1)

    do = _Lines(vector)
    bits = do.to_integer("bits", "%x")
    size_bits = do.on_integers("size_bits", "and", bits, integers(sign_bit - 1))
    sign = do.on_integers("sign", "xor", bits, size_bits)
    far = do.on_integers("far", "icmp sgt", size_bits, integers(vector.bit_pattern(reduction_limit(vector.dtype))))
    size = do.select("size", far, splat(0.0), do.to_real("any_size", size_bits))  # large ones would raise flags below
    # Reduction to |r| <= pi/4: turns * first and turns * second are exact, and so is the first difference.
    shifted = do.muladd("shifted", size, splat(2.0 / math.pi), to_whole)
    turns = do("turns", "fsub", shifted, to_whole)
    r1 = do.muladd("r1", turns, splat(-first), size)
    r2 = do.muladd("r2", turns, splat(-second), r1)
    if vector.dtype == "float64":
        r = do.muladd("r", turns, splat(-third), r2)
    else:  # the third part is not small against the rounding error of r2, which is therefore added to it
        error = do.muladd("error", turns, splat(-second), do("r1_less_r2", "fsub", r1, r2))
        r = do("r", "fadd", r2, do.muladd("rest", turns, splat(-third), error))
    z = do("z", "fmul", r, r)
    # sin r = r + r z S(z)
    cube = do("cube", "fmul", r, z)
    sine = do.muladd("sine", cube, do.polynomial("s", SINE[vector.dtype], z), r)
    # cos r = 1 - z/2 + z z C(z), with the rounding error of 1 - z/2 added back
    half = do("half", "fmul", z, splat(0.5))
    high = do("high", "fsub", splat(1.0), half)
    lost = do("lost", "fsub", do("back", "fsub", splat(1.0), high), half)
    square = do("square", "fmul", z, z)
    low = do.muladd("low", square, do.polynomial("c", COSINE[vector.dtype], z), lost)
    cosine = do("cosine", "fadd", high, low)
    # Quadrant: an odd one swaps the two; the second bit is the sign.
    quadrant = do.to_integer("quadrant", shifted)
    odd = do.on_integers("odd", "icmp ne", do.on_integers("odd_bit", "and", quadrant, integers(1)), integers(0))
    s_size = do.select("s_size", odd, cosine, sine)
    c_size = do.select("c_size", odd, sine, cosine)
    up = integers(vector.bits - 2)
    s_turn = do.on_integers("s_turn", "and", do.on_integers("s_up", "shl", quadrant, up), integers(sign_bit))
    next_quadrant = do.on_integers("next_quadrant", "add", quadrant, integers(1))
    c_turn = do.on_integers("c_turn", "and", do.on_integers("c_up", "shl", next_quadrant, up), integers(sign_bit))
    s_sign = do.on_integers("s_sign", "xor", s_turn, sign)
    s_bits = do.on_integers("s_bits", "xor", do.to_integer("s_size_bits", s_size), s_sign)
    c_bits = do.on_integers("c_bits", "xor", do.to_integer("c_size_bits", c_size), c_turn)
    s, c = do.to_real("s", s_bits), do.to_real("c", c_bits)
    pair = f"{{ {real}, {real} }}"
    lines = [
        f"define internal {pair} @sincos({real} %x) noinline nounwind {attributes} {{",
        *do.lines,
        f"  %any_far = call i1 @llvm.vector.reduce.or.v{vector.lanes}i1({boolean} {far})",
        "  br i1 %any_far, label %beyond, label %done, !prof !0",
        "done:",
        f"  %pair1 = insertvalue {pair} poison, {real} {s}, 0",
        f"  %pair2 = insertvalue {pair} %pair1, {real} {c}, 1",
        f"  ret {pair} %pair2",
        "beyond:",
        f"  %corrected = call {pair} @sincos_beyond({real} %x, {integer} %size_bits, {real} {s}, {real} {c})",
        f"  ret {pair} %corrected",
        "}",
        _sincos_beyond(vector, attributes),
        f"declare i1 @llvm.vector.reduce.or.v{vector.lanes}i1({boolean})",
    ]
    return "\n".join(lines) + "\n"


def _sincos_beyond(vector: VectorType, attributes: str) -> str:
    """Replace lanes beyond the reduction's limit by results of the C library in double precision."""
    real, integer, scalar, bits = vector.real, vector.integer, vector.scalar, vector.bits
    limit = vector.bit_pattern(reduction_limit(vector.dtype))
    pair = f"{{ {real}, {real} }}"
    if scalar == "double":
        widen, narrow = "%wide = bitcast double %lane to double", "bitcast double {} to double"
    else:
        widen, narrow = "%wide = fpext float %lane to double", "fptrunc double {} to float"
    return f"""
define internal {pair} @sincos_beyond({real} %x, {integer} %size_bits, {real} %s0, {real} %c0) noinline cold \
nounwind {attributes} {{
entry:
  br label %next
next:
  %i = phi i32 [ 0, %entry ], [ %i1, %kept ]
  %s = phi {real} [ %s0, %entry ], [ %s2, %kept ]
  %c = phi {real} [ %c0, %entry ], [ %c2, %kept ]
  %lane = extractelement {real} %x, i32 %i
  %lane_bits = extractelement {integer} %size_bits, i32 %i
  %far = icmp sgt i{bits} %lane_bits, {limit}
  br i1 %far, label %library, label %kept
library:
  {widen}
  %sin = call double @linkwise_libm_sin(double %wide)
  %cos = call double @linkwise_libm_cos(double %wide)
  %sin_lane = {narrow.format("%sin")}
  %cos_lane = {narrow.format("%cos")}
  %s1 = insertelement {real} %s, {scalar} %sin_lane, i32 %i
  %c1 = insertelement {real} %c, {scalar} %cos_lane, i32 %i
  br label %kept
kept:
  %s2 = phi {real} [ %s, %next ], [ %s1, %library ]
  %c2 = phi {real} [ %c, %next ], [ %c1, %library ]
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, {vector.lanes}
  br i1 %more, label %next, label %done
done:
  %pair1 = insertvalue {pair} poison, {real} %s2, 0
  %pair2 = insertvalue {pair} %pair1, {real} %c2, 1
  ret {pair} %pair2
}}
declare double @linkwise_libm_sin(double)
declare double @linkwise_libm_cos(double)
!0 = !{{!"branch_weights", i32 1, i32 100000}}"""


@cache
def atan2(vector: VectorType, attributes: str) -> str:
    """``real @atan2(real y, real x)``: the angle of (x, y) in every lane, within 3 units in the last place.

    The smaller of |x|, |y| is divided by the larger; beyond tan(pi/8) the angle is measured from pi/4.  The
    octant is undone by additions of pi/4, pi/2 and pi with their rounding errors.  Signed zeros, infinities
    and NaN behave as in C and NumPy.
    """
    real = vector.real
    splat, integer = vector.splat, vector.integer_splat
    sign_bit = 1 << (vector.bits - 1)
    infinity = integer(vector.bit_pattern(math.inf))
    high_pi = {n: vector.round(math.pi / n) for n in (1, 2, 4)}
    low_half_pi = float(Fraction(HALF_PI, 2**HALF_PI_BITS) - Fraction(high_pi[2]))
    low_pi = {1: 2 * low_half_pi, 2: low_half_pi, 4: low_half_pi / 2}
    huge = 2.0**1000 if vector.bits == 64 else 2.0**120

    do = _Lines(vector)
    x_bits, y_bits = do.to_integer("x_bits", "%x"), do.to_integer("y_bits", "%y")
    x_size = do.on_integers("x_size", "and", x_bits, integer(sign_bit - 1))
    y_size = do.on_integers("y_size", "and", y_bits, integer(sign_bit - 1))
    y_sign = do.on_integers("y_sign", "and", y_bits, integer(sign_bit))
    x_negative = do.on_integers("x_negative", "icmp slt", x_bits, integer(0))
    x_nan = do.on_integers("x_nan", "icmp sgt", x_size, infinity)
    y_nan = do.on_integers("y_nan", "icmp sgt", y_size, infinity)
    # Sizes of positive numbers compare like their bits, and NaN raises no flag that way.
    steep = do.on_integers("steep", "icmp sgt", y_size, x_size)
    ax, ay = do.to_real("ax", x_size), do.to_real("ay", y_size)
    small, large = do.select("small", steep, ax, ay), do.select("large", steep, ay, ax)
    large_bits = do.to_integer("large_bits", large)
    small_bits = do.to_integer("small_bits", small)
    # Infinities: the ratio is 1 for two of them, else 0.  Zeros: the ratio is 0.  Huge numbers are scaled.
    endless = do.on_integers("endless", "icmp sge", large_bits, infinity)
    both = do.on_integers("both", "icmp eq", small_bits, infinity)
    nothing = do.on_integers("nothing", "icmp eq", large_bits, integer(0))
    is_huge = do.on_integers("is_huge", "icmp sgt", large_bits, integer(vector.bit_pattern(huge)))
    scale = do.select("scale", is_huge, splat(0.25), splat(1.0))
    ratio_at_infinity = do.select("ratio_at_infinity", both, splat(1.0), splat(0.0))
    small = do.select("small_finite", endless, ratio_at_infinity, small)
    large = do.select("large_finite", endless, splat(1.0), large)
    small = do("small_scaled", "fmul", small, scale)
    large = do.select("large_scaled", nothing, splat(1.0), do("large_times_scale", "fmul", large, scale))
    # From the axis or from the diagonal, whichever is nearer.
    wide = do("wide", "fcmp ogt", small, do("edge", "fmul", large, splat(math.sqrt(2.0) - 1.0)))
    above = do.select("above", wide, do("difference", "fsub", small, large), small)
    below = do.select("below", wide, do("sum", "fadd", small, large), large)
    z = do("z", "fdiv", above, below)
    w = do("w", "fmul", z, z)
    tail = do("tail", "fmul", do("zw", "fmul", z, w), do.polynomial("p", _ATAN[vector.dtype], w))
    low = do.select("low4", wide, splat(low_pi[4]), splat(0.0))
    base = do.select("base4", wide, splat(high_pi[4]), splat(0.0))
    angle = do("octant", "fadd", base, do("octant_tail", "fadd", z, do("tail4", "fadd", tail, low)))
    for n, condition, name in ((2, steep, "quadrant"), (1, x_negative, "half")):
        reduced = do(f"{name}_reduced", "fsub", angle, splat(low_pi[n]))
        mirrored = do(f"{name}_mirrored", "fsub", splat(high_pi[n]), reduced)
        angle = do.select(name, condition, mirrored, angle)
    signed_bits = do.on_integers("signed_bits", "xor", do.to_integer("angle_bits", angle), y_sign)
    signed = do.to_real("signed", signed_bits)
    bad = f"  %bad = or {vector.boolean} {x_nan}, {y_nan}"
    return "\n".join(
        [
            f"define internal {real} @atan2({real} %y, {real} %x) noinline nounwind {attributes} {{",
            *do.lines,
            bad,
            f"  %result = select {vector.boolean} %bad, {real} {splat(math.nan)}, {real} {signed}",
            f"  ret {real} %result",
            "}",
            "",
        ]
    )
