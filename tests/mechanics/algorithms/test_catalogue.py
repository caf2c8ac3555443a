"""What the catalogue says about algorithms agrees with what their expressions say."""

from __future__ import annotations

import ast
import dataclasses
from inspect import Parameter, signature
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.algorithms import algorithm as algorithm_module
from linkwise.mechanics.algorithms import expressions as ex
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS, Algorithm
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
        ("forward_dynamics_derivatives", "use closed_forward_dynamics_derivatives, or mech.spanning_tree"),
        ("forward_dynamics", "use closed_forward_dynamics, or mech.spanning_tree"),
        ("joint_wrenches_with_wrenches", "use closed_joint_wrenches, or mech.spanning_tree"),
        ("rk4_step_derivatives", "use linkwise.linearize or .*rate_jacobian, or mech.spanning_tree"),
        ("mass_matrix_inverse", "or mech.spanning_tree"),
        ("inverse_dynamics_derivatives", "use linkwise.inverse_dynamics_derivatives .*, or mech.spanning_tree"),
    ],
)
def test_what_heeds_loops_is_named(name, instead):
    with pytest.raises(lw.MechanismError, match=instead):
        VARIANTS[name].check(lw.mechanisms.four_bar())


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


# -- registration -----------------------------------------------------------------------------------------

FOLDER = Path(algorithm_module.__file__).parent


def calls(tree: ast.AST, *names: str) -> list[ast.Call]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [node for node in found if getattr(node.func, "id", getattr(node.func, "attr", "")) in names]


def test_an_algorithm_has_few_fields():
    assert len(dataclasses.fields(Algorithm)) <= 12


def test_algorithms_are_registered_where_they_are_written():
    """No list of entries beside the code: what is made in the folder is registered at once, in the module that has its
    recursion or expression, and nothing else puts entries into the table."""
    registering = 0
    for path in FOLDER.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        made = calls(tree, "Algorithm")
        registered = [call.args[0] for call in calls(tree, "register") if call.args]
        registering += len(calls(tree, "register", "algorithm", "expressed"))
        if path.stem != "algorithm":
            assert all(any(call is one for one in registered) for call in made), path.stem
            stored = [node for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
            stored = [node for node in stored if isinstance(node.ctx, ast.Store)]
            assert not [node for node in stored if getattr(node.value, "id", "") == "ALGORITHMS"], path.stem
    assert registering > 60
    assert not {path.stem for path in FOLDER.glob("catalogue_*.py")}
    catalogue = ast.parse((FOLDER / "catalogue.py").read_text(encoding="utf-8"))
    assert not calls(catalogue, "Algorithm", "register", "expressed", "algorithm")


def test_names_are_given_once():
    with pytest.raises(ValueError, match="there is an algorithm 'mass_matrix' already"):
        algorithm_module.register(Algorithm("mass_matrix", ("q",), "mass_matrix", lambda tree, q: q, reason="a test"))


def test_every_algorithm_is_listed_with_what_it_gives():
    listed = lw.algorithms()
    assert len(listed) == len(ALGORITHMS) > 100 and list(listed) == sorted(listed, key=lambda line: line.split("(")[0])
    for name, algorithm in ALGORITHMS.items():
        (line,) = (line for line in listed if line.startswith(f"{name}("))
        assert len(line.split(": ", 1)[1].split()) > 2 and "\n" not in line, line
        assert all(word in line for word in (*algorithm.inputs, *algorithm.ports, *algorithm.outputs))
    assert repr(listed).splitlines() == list(listed)


def test_ports_are_what_recursions_and_expressions_take():
    """Declared optional inputs are parameters that may be left out, of every function that serves the algorithm."""
    for algorithm in ALGORITHMS.values():
        for function in (algorithm.recursion, algorithm.expression):
            if function is None or (function is algorithm.expression and algorithm.recursion is not None):
                continue
            parameters = signature(function).parameters
            if any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values()):
                continue  # it hands them on
            for port in algorithm.ports:
                assert parameters[port].default is not Parameter.empty, (algorithm.name, port)
