"""Quantities of one frame that would leave loops out refuse them."""

from __future__ import annotations

import pytest

import linkwise as lw


def test_manipulability_of_a_closed_mechanism_is_refused():
    mech = lw.mechanisms.four_bar()
    with pytest.raises(lw.MechanismError, match="would ignore the loops .*null_space"):
        lw.manipulability(mech, lw.neutral(mech), mech.link_names[0], rows=[3, 4])
