"""How a group of quantities is tested over all mechanisms: a value equal to the oracle's, or the error of a law.

``test_<group>.py`` lists its quantities, and ends with

    @cells(QUANTITIES)
    def test_product(quantity, case_name):
        check(quantity, case(case_name))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw

from .mechanisms import NAMES, Case, case
from .oracle import Terms
from .refusals import law

REFUSED = (lw.MechanismError, lw.KernelError)


@dataclass(frozen=True)
class Quantity:
    """value    of a case, as a user calls it: an array or a tuple of arrays
    oracle   the same of the dense terms of the case
    tolerance   of the difference, relative to the largest element of each array, or to one
    cases    names of the cases that it is tried on: all, unless the others have nothing of the kind
    """

    name: str
    value: Callable[[Case], Any]
    oracle: Callable[[Terms], Any]
    tolerance: float = 1e-9
    cases: Sequence[str] = NAMES

    def __str__(self) -> str:
        return self.name


@cache
def terms(case_name: str) -> Terms:
    """The dense terms of a case, made once."""
    return Terms(case(case_name))


def cells(quantities: Sequence[Quantity], long: Sequence[str] = ()) -> Any:
    """All (quantity, case_name).  Quick are those of a Latin sample, in which each quantity meets some cases and each
    case some quantities; the others are slow, and so are those of ``long`` cases."""
    rows = []
    for i, quantity in enumerate(quantities):
        for j, name in enumerate(quantity.cases):
            marks = [] if (i - j) % 4 == 0 and name not in long else [pytest.mark.slow]
            rows.append(pytest.param(quantity, name, marks=marks, id=f"{quantity}-{name}"))
    return pytest.mark.parametrize(("quantity", "case_name"), rows)


def check(quantity: Quantity, this: Case) -> None:
    """The quantity of this case is the oracle's, or is refused by the law of the table."""
    forbidding = law(quantity.name, this)
    if forbidding:
        with pytest.raises(REFUSED, match=forbidding.words):
            quantity.value(this)
        return
    values, expected = quantity.value(this), quantity.oracle(terms(this.name))
    pairs = zip(values, expected, strict=True) if isinstance(expected, tuple) else [(values, expected)]
    for value, right in pairs:
        scale = max(1.0, np.abs(right).max(initial=0.0))
        assert np.shape(value) == np.shape(right)
        np.testing.assert_allclose(value, right, rtol=0.0, atol=quantity.tolerance * scale)


def given(case: Case) -> dict[str, Any]:
    """The mask of a case as a keyword, where it has one."""
    return {} if case.active is None else {"active": case.active}
