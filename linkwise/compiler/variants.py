"""Code shared by variants of a mechanism: the numbers in which they differ are inputs, bound to each variant's values.

The first variant that requests a function gets code with its numbers folded in, like every mechanism.  From the second
on, one kernel serves all: it takes those numbers as a further array.  A variant still gets separate code where
mechanics tests for zeros during tracing: if a varying body has no mass, or if a moment of inertia or armature is zero
that was nonzero in all variants compiled before, since compiled code would divide by it.  It also does if it requests a
frame that the others do not have.  In families that are ``alike`` the first variant already runs the shared code.  It
also does if code without loops would be too long: code with loops has numbers as data (``is_data``).

Variants with different loop closures share code if these are eliminated in the same order, which depends on the
positions of the loops (``mechanics/algorithms/decisions.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ..mechanism import Mechanism
from ..mechanism.family import Family, Numbers, differs_in_poses
from .kernel import Kernel
from .runtime.explanations import explaining

Made = TypeVar("Made")
Bind = Callable[[Mechanism, np.ndarray], Made]  # from a variant and its numbers to its function


class _SharedCode(Generic[Made]):
    """Compiled code for one request of a family."""

    def __init__(self, numbers: Numbers):
        self.numbers = numbers
        self.fresh = True  # no variant that it can serve has asked yet
        self.bind: Bind[Made] | None = None
        # Numbers that may be divisors: which were zero, and which were nonzero, in variants compiled separately;
        # and combinations of zeros that these permit, as bytes.
        self._zero, self._other = np.zeros((2, numbers.divisors), bool)
        self._allowed: set[bytes] = set()

    def allows(self, zeros: np.ndarray) -> bool:
        """Whether separately compiled variants cover each of these zeros and nonzeros."""
        pattern = zeros.tobytes()
        if pattern in self._allowed:
            return True
        allowed = bool(np.where(zeros, self._zero, self._other).all())
        if allowed:
            self._allowed.add(pattern)
        return allowed

    def learn(self, zeros: np.ndarray) -> None:
        """Record the zeros of a variant that was compiled separately."""
        self._zero |= zeros
        self._other |= ~zeros


def shared_by_variants(
    mech: Mechanism,
    request: Any,
    dtype: str,
    separate: Callable[[], Made],
    shared: Callable[[Numbers], Bind[Made]],
    is_data: Callable[[Made], bool] = lambda _: False,
) -> Made:
    """The compiled function for ``request``: ``shared`` by variants if possible, with their numbers as inputs, else
    ``separate``. ``is_data(code)`` returns whether the numbers are already data of this code, which is then kept."""
    try:
        hash(request)
    except TypeError:  # an unhashable option, which compiling reports
        return separate()
    family = mech._family
    if mech.frames is not family.frames and not family.has_frames_of(mech, _names(request)):
        return separate()
    with family.lock:
        if not mech._changed:
            return _unchanged(family, (request, dtype, "unchanged"), separate)
        of_each = (request, dtype, "has numbers as data")
        if of_each in family.code:
            return separate()
        code: _SharedCode[Made] = _code(mech, family, (request, dtype, _order_of_loops(mech, request)))
        vector = code.numbers.of(mech, dtype)
        zeros = code.numbers.zeros(vector)
        if code.fresh or not code.allows(zeros):
            alone = separate()
            code.fresh = False
            if is_data(alone):
                family.code[of_each] = True
                return alone
            massless = code.numbers.massless(mech)
            if not massless:
                code.learn(zeros)
            if massless or not family.alike:
                return alone
        if code.bind is None:
            code.bind = shared(code.numbers)
        return code.bind(mech, vector)


def kept_by_family(mech: Mechanism, key: Any, frames: Sequence[str], make: Callable[[], Made]) -> Made:
    """A value that depends on no varying numbers, made once for all variants with these frames."""
    if not mech._family.has_frames_of(mech, frames):
        return make()
    with mech._family.lock:
        return _unchanged(mech._family, key, make)


def _unchanged(family: Family, key: Any, make: Callable[[], Made]) -> Made:
    """Make a value once for variants that differ only in data without effect on code: limits, damping, notes."""
    if key not in family.code:
        family.code[key] = make()
    return family.code[key]


def _code(mech: Mechanism, family: Family, key: Any) -> _SharedCode[Any]:
    """The compiled code of a request, recompiled if this variant changes numbers that were constant so far."""
    code = family.code.get(key)
    if code is None or not mech._changed <= code.numbers.changed:
        family.changed |= mech._changed
        code = family.code[key] = _SharedCode(Numbers(mech, family.changed))
    return code


def _order_of_loops(mech: Mechanism, request: Any) -> Any:
    """The order of elimination, if code depends on it and variants may differ in it; otherwise ()."""
    if not differs_in_poses(mech):
        return None
    from ..mechanics.algorithms.catalogue import ALGORITHMS  # imported here to keep ``import linkwise`` quick
    from ..mechanics.algorithms.decisions import fronts

    known = None if callable(request) else ALGORITHMS.get(request if isinstance(request, str) else request[0])
    return fronts(mech) if known is None or "fronts" in known.of(mech).options else None


def _names(request: Any) -> list[Any]:
    """Options of a request that may name frames; functions resolve names themselves."""
    if callable(request):
        return list(getattr(request, "frames", ()))
    options = request[1:] if isinstance(request, tuple) else ()
    return [option[1] for option in options if isinstance(option, tuple) and len(option) == 2]


def bound_kernel(request: Any, kernel: Kernel) -> Bind[Callable[..., Any]]:
    """From a variant and its numbers, the last input of ``kernel``, to the variant's function of arrays."""
    function, dtype, check = kernel.function, kernel.dtype.name, _find_check(request)
    signature = kernel.traced.signature
    visible = signature._replace(inputs=signature.inputs[:-1])  # callers do not see the numbers as an input

    def bind(mech: Mechanism, vector: np.ndarray) -> Callable[..., Any]:
        check(mech)

        def call(*arrays: Any, out: Any = None) -> Any:
            return function(*arrays, vector) if out is None else function(*arrays, vector, out=out)

        return explaining(call, visible, dtype)

    return bind


def _find_check(request: Any) -> Callable[[Mechanism], None]:
    """The check that refuses a mechanism for its numbers before compilation."""
    from ..mechanics.algorithms.catalogue import ALGORITHMS  # imported here to keep ``import linkwise`` quick

    if callable(request):
        return lambda mech: None
    algorithm = ALGORITHMS[request if isinstance(request, str) else request[0]]
    return lambda mech: algorithm.of(mech).check(mech)
