"""Rows of the table of refusals are about mechanisms that exist, and are quantities of some group."""

import numpy as np
import pytest

import linkwise as lw

from .mechanisms import NAMES, SINGULAR, case
from .product import Quantity, cells, check
from .refusals import PROPERTIES, REFUSALS

QUANTITIES = [
    Quantity(
        "local_parametrization",
        lambda c: lw.kinematics.local_parametrization(c.mech, c.q).configuration(
            np.zeros(lw.constraints.degrees_of_freedom(c.mech, c.q))
        ),
        lambda t: t.q,
        1e-7,
        (*NAMES[3:10], "springs", SINGULAR),
    )
]


@cells(QUANTITIES)
def test_charts(quantity, case_name):
    check(quantity, case(case_name))


@pytest.mark.parametrize("row", REFUSALS, ids="-".join)
def test_some_mechanism_has_the_property(row):
    assert any(PROPERTIES[row[1]](case(name)) for name in (*NAMES, SINGULAR))
