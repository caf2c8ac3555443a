"""What the catalogue says about algorithms agrees with what their expressions say."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.algorithms import dynamics
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS
from linkwise.mechanics.operators.origins import origins_matter

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


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("rk4_step_with_wrenches", "use linkwise.simulate, or mech.spanning_tree"),
        ("forward_dynamics_derivatives", "use linkwise.linearize or .*rate_jacobian, or mech.spanning_tree"),
        ("forward_dynamics", "use linkwise.closed, or mech.spanning_tree"),
        ("joint_wrenches_with_wrenches", "use mech.spanning_tree with .*loop_reactions among the wrenches, or mech"),
        ("regressor", "use mech.spanning_tree if the loops are meant to be open"),
    ],
)
def test_what_heeds_loops_is_named(name, instead):
    with pytest.raises(lw.MechanismError, match=instead):
        ALGORITHMS[name].check(lw.mechanisms.four_bar())


def test_what_the_mechanism_decides_fills_silent_options():
    algorithm, mech = ALGORITHMS["forward_dynamics_with_wrenches"], lw.mechanisms.puma560()
    fastest = {"method": dynamics.fastest_method(mech)}
    assert algorithm.with_defaults(mech, {}) == algorithm.with_defaults(mech, {"method": None}) == fastest
    assert algorithm.with_defaults(mech, {"method": "bias_free"}) == {"method": "bias_free"}
    assert ALGORITHMS["jacobian"].with_defaults(mech, {"link": "link2"}) == {"link": "link2"}


def test_followers_are_named_where_they_are_refused():
    builder = lw.Builder().link("a", 1.0, (0.1, 0, 0), (1, 1, 1)).link("b", 1.0, (0.1, 0, 0), (1, 1, 1))
    builder.joint("lead", lw.Revolute((0, 0, 1)), "ground", "a")
    mech = builder.joint("{tail}", lw.Revolute((0, 1, 0)), "a", "b", mimic=lw.Mimic("lead")).build("pair")
    with pytest.raises(lw.MechanismError, match="'{tail}' of mechanism 'pair' mimic others: use lw.link_acc"):
        lw.forward_link_accelerations(mech, np.zeros(1), np.zeros(1), np.zeros(1))
