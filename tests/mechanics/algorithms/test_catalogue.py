"""What the catalogue says about algorithms agrees with what their expressions say."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.algorithms import expressions as ex
from linkwise.mechanics.algorithms.catalogue import Algorithm
from linkwise.mechanics.algorithms.momenta import FORMS
from linkwise.mechanics.links.constraint_units import ConstraintUnits
from linkwise.mechanics.links.loop_elimination import Fronts
from tests.algorithms import VARIANTS

OPTIONS = {
    "form": FORMS,
    "link": ("link6",),
    "frame": ("link", "world"),
    "method": tuple(ex.FORWARD_DYNAMICS),
    "normalized": (False, True),
    "units": (ConstraintUnits(),),
    "fronts": (Fronts(()),),
    "independent_velocities": (None,),
    "classical": (False, True),
}
AT_USER_ORIGINS = {"forward_link_accelerations", "acceleration_parts"}


def test_an_algorithm_is_an_expression_or_says_why_not():
    for algorithm in VARIANTS.values():
        assert algorithm.expression is not None or algorithm.recursion is not None
        if algorithm.recursion is not None:
            assert len(algorithm.reason.split()) > 4, algorithm.name
    with pytest.raises(ValueError, match="neither an expression nor a recursion"):
        Algorithm("nothing", ("q",), "result")


@pytest.mark.parametrize("name", [name for name, algorithm in VARIANTS.items() if algorithm.expression is not None])
def test_identities_tell_where_origins_matter(name):
    """Of all named expressions only those that are meant to depend on the user's origins cost what that costs."""
    algorithm, mech = VARIANTS[name], lw.mechanisms.puma560()
    choices = [{}]
    for option in algorithm.options:
        choices = [{**chosen, option: value} for chosen in choices for value in OPTIONS[option]]
    for chosen in choices:
        computed = algorithm.computations(mech, **chosen)
        assert algorithm.needs_user_origins(computed) == (name in AT_USER_ORIGINS)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("rk4_step_with_wrenches", "use closed_rk4_step, linkwise.rollout or linkwise.simulate, or mech.spanning_tree"),
        ("rk4_step_derivatives", "use linkwise.linearize or .*rate_jacobian, or mech.spanning_tree"),
        ("mass_matrix_inverse", "or mech.spanning_tree"),
        ("inverse_dynamics_derivatives", "use linkwise.inverse_dynamics_derivatives .*, or mech.spanning_tree"),
    ],
)
def test_what_heeds_loops_is_named(name, instead):
    with pytest.raises(lw.MechanismError, match=instead):
        VARIANTS[name].check(lw.mechanisms.four_bar())


@pytest.mark.parametrize(
    "name", ["forward_dynamics", "inverse_dynamics", "static_forces", "joint_wrenches", "forward_dynamics_derivatives"]
)
def test_what_is_solved_for_is_compiled_with_constraints(name):
    assert VARIANTS[name].constrained in VARIANTS
    kernel = lw.compile(name, lw.mechanisms.four_bar(), target="numpy")
    assert kernel.name == name


def test_what_the_mechanism_decides_fills_silent_options():
    algorithm, mech = VARIANTS["forward_dynamics_with_wrenches"], lw.mechanisms.puma560()
    fastest = {"method": ex.fastest_method(mech)}
    assert algorithm.with_defaults(mech, {}) == algorithm.with_defaults(mech, {"method": None}) == fastest
    assert algorithm.with_defaults(mech, {"method": "bias_free"}) == {"method": "bias_free"}
    assert VARIANTS["jacobian"].with_defaults(mech, {"link": "link2"}) == {"link": "link2"}


def test_methods_that_take_one_joint_at_a_time_are_not_ignored():
    builder = lw.Builder().link("a", 1.0, (0.1, 0, 0), (1, 1, 1)).link("b", 1.0, (0.1, 0, 0), (1, 1, 1))
    builder.joint("lead", lw.Revolute((0, 0, 1)), "ground", "a")
    mech = builder.joint("{tail}", lw.Revolute((0, 1, 0)), "a", "b", mimic=lw.Mimic("lead")).build("pair")
    zero = np.zeros(1)
    with pytest.raises(lw.MechanismError, match="'biased' takes one joint at a time, .* 'pair' some .* .{tail}"):
        lw.forward_dynamics(mech, zero, zero, zero, method="biased")
    same = [lw.forward_dynamics(mech, zero, zero, zero, method=method) for method in (None, "bias_free")]
    np.testing.assert_array_equal(*same)
