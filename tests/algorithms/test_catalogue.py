"""What the catalogue says about algorithms agrees with what their expressions say."""

from __future__ import annotations

import pytest

from linkwise.algorithms import dynamics
from linkwise.algorithms.catalogue import ALGORITHMS
from linkwise.operators.origins import origins_matter

WITH_EXPRESSION = [name for name, algorithm in ALGORITHMS.items() if algorithm.expression is not None]
OPTIONS = {
    "link": ("link2",),
    "frame": ("link",),
    "method": tuple(dynamics.ex.FORWARD_DYNAMICS),
    "normalized": (False, True),
}


@pytest.mark.parametrize("name", WITH_EXPRESSION)
def test_origins_matter_where_the_catalogue_says_so(name):
    """Hand-set in the catalogue, derived from the operators here: wrong either way, results or speed would suffer."""
    algorithm = ALGORITHMS[name]
    choices = [{}]
    for option in algorithm.options:
        choices = [{**chosen, option: value} for chosen in choices for value in OPTIONS[option]]
    expressions = [algorithm.expression(**chosen) for chosen in choices]
    found = {origins_matter(expression) for expression in expressions if expression is not None}
    assert found <= {algorithm.at_user_origins} and expressions


def test_there_are_algorithms_of_both_kinds():
    assert {ALGORITHMS[name].at_user_origins for name in WITH_EXPRESSION} == {False, True}
