"""Constants for sine and cosine: pi/2 in parts, and polynomials of a reduced angle.

sin r = r + r^3 SINE(r^2) and cos r = 1 - r^2 / 2 + r^4 COSINE(r^2) for |r| <= pi/4.  Coefficients for float64 are from
FreeBSD's msun (k_sin.c, k_cos.c); for float32 they are minimax fits by Remez' algorithm.
"""

from __future__ import annotations

import math

MANTISSA_BITS = {"float64": 53, "float32": 24}
# pi/2 as an integer times 2**-HALF_PI_BITS: the hexadecimal digits of pi, 47 of them after the point.
HALF_PI = 0x3243F6A8885A308D313198A2E03707344A4093822299F31D
HALF_PI_BITS = 4 * 47 + 1

SINE = {
    "float64": (
        -1.66666666666666324348e-01,
        8.33333333332248946124e-03,
        -1.98412698298579493134e-04,
        2.75573137070700676789e-06,
        -2.50507602534068634195e-08,
        1.58969099521155010221e-10,
    ),
    "float32": (-0.16666654998182653, 0.008332180612853499, -0.00019517559007434875),
}
COSINE = {
    "float64": (
        4.16666666666666019037e-02,
        -1.38888888888741095749e-03,
        2.48015872894767294178e-05,
        -2.75573143513906633035e-07,
        2.08757232129817482790e-09,
        -1.13596475577881948265e-11,
    ),
    "float32": (0.041666647114490876, -0.0013887377618602135, 2.4439448080780526e-05),
}


def parts_of_half_pi(dtype: str, zeros: int) -> tuple[float, float, float]:
    """pi/2 as a sum of three numbers. The first two have ``zeros`` trailing zero bits: their products with integers of
    this many bits are exact."""
    mantissa = MANTISSA_BITS[dtype]
    kept = mantissa - zeros
    rest, parts = HALF_PI, []
    for bits in (kept, kept):
        shift = rest.bit_length() - bits
        part = rest >> shift << shift
        parts.append(math.ldexp(part >> shift, shift - HALF_PI_BITS))
        rest -= part
    shift = rest.bit_length() - mantissa
    last = (rest + (1 << (shift - 1))) >> shift
    return parts[0], parts[1], math.ldexp(last, shift - HALF_PI_BITS)
