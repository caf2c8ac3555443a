"""Numbers in (0, 1) for numbered cases: each a pure function of seed, case and column, so that no splitting matters.

A study has ``cases`` rows and a column for every drawn number.  A design computes rows ``first`` to before
``first + count`` without those before them: random numbers come from the counter-based generator Philox
(Salmon et al. 2011), whose counter is the number of the case and whose key is made of seed and name of the column.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from .errors import StudyError

Design = Callable[[int, Sequence[str], int, int, int], np.ndarray]

WORDS = 4  # numbers that Philox makes per count
MOST_BITS = 52  # of a number in (0, 1) with half a step added, which float64 holds exactly
SOBOL_BITS = 30  # what SciPy can go forward in
ROUNDS = 8  # of a Feistel network; four suffice to be indistinguishable from a random permutation


def random(seed: int, columns: Sequence[str], cases: int, first: int, count: int) -> np.ndarray:
    """(count, columns): independent numbers.  A column does not depend on the other columns."""
    numbers = [uniform(seed, name, first, count) for name in columns]
    return np.ascontiguousarray(np.reshape(numbers, (len(columns), count)).T)


def latin_hypercube(seed: int, columns: Sequence[str], cases: int, first: int, count: int) -> np.ndarray:
    """Columns with one number in each of ``cases`` equal parts of (0, 1), in random order."""
    rows = np.arange(first, first + count, dtype=np.uint64)
    designs = []
    for name in columns:
        cells = permuted(rows, cases, _key(seed, f"order of {name}"))
        designs.append((cells + uniform(seed, name, first, count)) / cases)
    numbers = np.ascontiguousarray(np.reshape(designs, (len(columns), count)).T)
    return np.clip(numbers, 2.0**-53, 1.0 - 2.0**-53)


def sobol(seed: int, columns: Sequence[str], cases: int, first: int, count: int) -> np.ndarray:
    """Sobol's sequence with Owen's scrambling: evenly spread over all columns at once, best for powers of two."""
    if not columns:
        return np.empty((count, 0))
    from scipy.stats import qmc

    scrambled = np.random.default_rng(_key(seed, "scrambling"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a part of the sequence is no power of two
        try:
            sequence = qmc.Sobol(len(columns), scramble=True, bits=SOBOL_BITS, seed=scrambled)
        except ValueError:
            raise StudyError(
                f"Sobol's sequence has at most {qmc.Sobol.MAXDIM} columns, not {len(columns)}: take sampling='random'"
            ) from None
        if first:
            sequence.fast_forward(first)
        return sequence.random(count) + 0.5**SOBOL_BITS / 2.0  # the middle of each step: never 0


def saltelli(seed: int, columns: Sequence[str], cases: int, first: int, count: int) -> np.ndarray:
    """For Sobol's sensitivity indices, ``len(columns) + 2`` cases per row of Sobol's sequence: row A, row B, and row A
    with one column after the other taken from B (Saltelli et al. 2010)."""
    block = len(columns) + 2
    numbers = np.arange(first, first + count)
    rows, positions = numbers // block, numbers % block
    start = first // block
    both = sobol(seed, [*columns, *columns], cases, start, int(rows[-1]) - start + 1 if count else 0)[rows - start]
    a, b = both[:, : len(columns)], both[:, len(columns) :]
    from_b = (positions[:, None] == 1) | (positions[:, None] - 2 == np.arange(len(columns)))
    return np.where(from_b, b, a)


DESIGNS: dict[str, Design] = {
    "random": random,
    "latin_hypercube": latin_hypercube,
    "sobol": sobol,
    "saltelli": saltelli,
}


def cases_per_row(sampling: str, columns: int) -> int:
    """Number of cases per row of a design."""
    return columns + 2 if sampling == "saltelli" else 1


def uniform(seed: int, name: str, first: int, count: int) -> np.ndarray:
    """(count,): random numbers in (0, 1), never 0 or 1, of the cases from ``first`` on."""
    skipped = first % WORDS
    stream = np.random.Philox(key=_key(seed, name), counter=first // WORDS)
    words = stream.random_raw(skipped + count)[skipped:]
    return ((words >> np.uint64(64 - MOST_BITS)) + 0.5) * 2.0**-MOST_BITS


def permuted(rows: np.ndarray, count: int, key: int) -> np.ndarray:
    """Images of rows under a random permutation of 0 ... count - 1: a Feistel network on as many bits as needed,
    applied again to images beyond the last row."""
    half = max(1, (max(1, count - 1).bit_length() + 1) // 2)
    shift, low = np.uint64(half), np.uint64(2**half - 1)
    mixers = [int.from_bytes(hashlib.sha256(f"{key}:{k}".encode()).digest()[:8], "little") | 1 for k in range(ROUNDS)]
    numbers = rows.astype(np.uint64)
    outside = np.ones(numbers.shape, bool)
    while outside.any():
        left, right = numbers[outside] >> shift, numbers[outside] & low
        for mixer in mixers:
            x = right + np.uint64(mixer)  # through the finalizer of SplitMix64: every bit depends on all others
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            left, right = right, left ^ ((x ^ (x >> np.uint64(31))) & low)
        numbers[outside] = left << shift | right
        outside = numbers >= count
    return numbers.astype(np.int64)


def _key(seed: int, name: str) -> int:
    """128 bits of seed and name."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:16], "little")
