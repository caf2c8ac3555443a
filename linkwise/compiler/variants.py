"""Code that variants of a mechanism share: the numbers in which they differ are inputs of it, bound to each variant's.

The first variant that asks for a function gets code with its numbers folded in, as every mechanism does.  From the
second on one kernel serves all: it takes those numbers as a further array.  A variant still gets code of its own where
mechanics looks at zeros before anything runs: if a body that varies has no mass, or if a moment of inertia or armature
is zero that was not in any variant compiled before, since compiling refuses to divide by it.  So it does where it asks
for a frame that the others do not have.  In families that are ``alike`` the first variant runs the shared code too.
And so it does where code has loops and would be too long without: such code has numbers as data (``is_data``).

Variants whose loops are elsewhere share code where these are eliminated in the same order, which is decided by where
they are (``mechanics/algorithms/decisions.py``).
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
Bind = Callable[[Mechanism, np.ndarray], Made]  # from a variant and its numbers to what it gets


class _SharedCode(Generic[Made]):
    """What is compiled for one request of a family."""

    def __init__(self, numbers: Numbers):
        self.numbers = numbers
        self.fresh = True  # no variant that it can serve has asked yet
        self.bind: Bind[Made] | None = None
        # Of numbers that something may be divided by: those that were zero, and were not, in variants that were
        # compiled for themselves; and which were zero at once in those that they allow, as bytes.
        self._zero, self._other = np.zeros((2, numbers.divisors), bool)
        self._allowed: set[bytes] = set()

    def allows(self, zeros: np.ndarray) -> bool:
        """Whether each of the numbers was compiled as zero, or not, as it is here."""
        pattern = zeros.tobytes()
        if pattern in self._allowed:
            return True
        allowed = bool(np.where(zeros, self._zero, self._other).all())
        if allowed:
            self._allowed.add(pattern)
        return allowed

    def learn(self, zeros: np.ndarray) -> None:
        """A variant with these zeros was compiled for itself."""
        self._zero |= zeros
        self._other |= ~zeros


def shared_by_variants(
    mech: Mechanism,
    request: Any,
    dtype: str,
    own: Callable[[], Made],
    shared: Callable[[Numbers], Bind[Made]],
    is_data: Callable[[Made], bool] = lambda _: False,
) -> Made:
    """What is compiled for ``request``: ``shared`` with other variants where it can be, the numbers in which they
    differ as inputs, else ``own``.  ``is_data`` says of what ``own`` has made that numbers are data of its code, and
    better stay so."""
    try:
        hash(request)
    except TypeError:  # an option that is no name: compiling says so
        return own()
    family = mech._family
    if mech.frames is not family.frames and not family.has_frames_of(mech, _names(request)):
        return own()
    with family.lock:
        if not mech._changed:
            return _unchanged(family, (request, dtype, "unchanged"), own)
        of_each = (request, dtype, "has numbers as data")
        if of_each in family.code:
            return own()
        code: _SharedCode[Made] = _code(mech, family, (request, dtype, _order_of_loops(mech, request)))
        vector = code.numbers.of(mech, dtype)
        zeros = code.numbers.zeros(vector)
        if code.fresh or not code.allows(zeros):
            alone = own()
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
    """What depends on none of the numbers in which variants differ, made once for all that have these frames."""
    if not mech._family.has_frames_of(mech, frames):
        return make()
    with mech._family.lock:
        return _unchanged(mech._family, key, make)


def _unchanged(family: Family, key: Any, make: Callable[[], Made]) -> Made:
    """Of variants that differ in nothing that code looks at: limits, damping, notes."""
    if key not in family.code:
        family.code[key] = make()
    return family.code[key]


def _code(mech: Mechanism, family: Family, key: Any) -> _SharedCode[Any]:
    """What is compiled for a request, computed again where this variant differs in numbers that were constants so
    far."""
    code = family.code.get(key)
    if code is None or not mech._changed <= code.numbers.changed:
        family.changed |= mech._changed
        code = family.code[key] = _SharedCode(Numbers(mech, family.changed))
    return code


def _order_of_loops(mech: Mechanism, request: Any) -> Any:
    """The order of elimination, where code goes by it and variants may differ in it; else nothing."""
    if not differs_in_poses(mech):
        return None
    from ..mechanics.algorithms.catalogue import ALGORITHMS  # here, so that importing the package stays quick
    from ..mechanics.algorithms.decisions import fronts

    known = None if callable(request) else ALGORITHMS.get(request if isinstance(request, str) else request[0])
    return fronts(mech) if known is None or "fronts" in known.of(mech).options else None


def _names(request: Any) -> list[Any]:
    """What may be names of frames among the options of a request; functions know theirs."""
    if callable(request):
        return list(getattr(request, "frames", ()))
    options = request[1:] if isinstance(request, tuple) else ()
    return [option[1] for option in options if isinstance(option, tuple) and len(option) == 2]


def bound_kernel(request: Any, kernel: Kernel) -> Bind[Callable[..., Any]]:
    """From a variant and its numbers, which ``kernel`` takes last, to the variant's function of arrays."""
    function, dtype, check = kernel.function, kernel.dtype.name, _check_of(request)
    whole = kernel.traced.signature
    visible = whole._replace(inputs=whole.inputs[:-1])  # to the caller, the numbers are no input

    def bind(mech: Mechanism, vector: np.ndarray) -> Callable[..., Any]:
        check(mech)

        def call(*arrays: Any, out: Any = None) -> Any:
            return function(*arrays, vector) if out is None else function(*arrays, vector, out=out)

        return explaining(call, visible, dtype)

    return bind


def _check_of(request: Any) -> Callable[[Mechanism], None]:
    """What refuses a mechanism for its numbers before it is compiled."""
    from ..mechanics.algorithms.catalogue import ALGORITHMS  # here, so that importing the package stays quick

    if callable(request):
        return lambda mech: None
    algorithm = ALGORITHMS[request if isinstance(request, str) else request[0]]
    return lambda mech: algorithm.of(mech).check(mech)
