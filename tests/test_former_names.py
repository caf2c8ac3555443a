"""Names that have moved work as they did, and say where they are."""

import importlib
import inspect
import operator
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.former import MOVED
from linkwise.mechanism.naming import FORMER

FOUR_BAR = lw.mechanisms.four_bar()
Q, V, TAU = lw.neutral(FOUR_BAR), np.zeros(3), np.array([0.4, 0.1, -0.2])
ADAPTED = ("forward_dynamics", "forward_dynamics_derivatives", "inverse_dynamics", "joint_wrenches", "static_forces")


@pytest.mark.parametrize("name", sorted(MOVED))
def test_former_names_say_where_they_went(name):
    now = MOVED[name]
    assert "." in now or now in lw.__all__
    with pytest.warns(DeprecationWarning, match=rf"linkwise\.{re.escape(name)} is linkwise\.{re.escape(now)} now"):
        former = operator.attrgetter(name)(lw)
    if name.startswith("acting.") or name in [f"closed.{adapted}" for adapted in ADAPTED]:
        assert inspect.isfunction(former)  # which takes its former arguments
    else:
        value = operator.attrgetter(now)(lw)
        assert former is value or former == value  # tuples are made when asked for


@pytest.mark.parametrize("name", sorted(MOVED))
def test_former_names_are_not_listed(name):
    module, _, last = name.rpartition(".")
    assert last not in dir(operator.attrgetter(module)(lw) if module else lw)


def test_former_modules_are_imported_by_name():
    code = (
        "import warnings\n"
        "warnings.simplefilter('error')\n"
        "import linkwise as lw\n"
        "def warned(statement):\n"
        "    with warnings.catch_warnings(record=True) as notes:\n"
        "        warnings.simplefilter('always')\n"
        "        exec(statement, globals())\n"
        "    return [str(note.message) for note in notes if note.category is DeprecationWarning]\n"
        "assert 'linkwise.so3 is linkwise.kinematics.so3 now' in warned('from linkwise.so3 import skew')[0]\n"
        "assert skew is lw.kinematics.so3.skew\n"
        "assert 'linkwise.diagonal is linkwise.formulations.diagonal' in warned('from linkwise import diagonal')[0]\n"
        "assert diagonal is lw.formulations.diagonal\n"
        "assert 'linkwise.cache is linkwise.codegen.cache now' in warned('import linkwise.cache')[0]\n"
        "assert 'linkwise.Loop is linkwise.constraints.Loop now' in warned('from linkwise import Loop')[0]\n"
        "from linkwise.formulations.diagonal import factor\n"
        "from linkwise.extend.scalar import sin\n"
        "assert factor is lw.formulations.diagonal.factor and sin is lw.extend.scalar.sin\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_dynamics_of_closed():
    given = FOUR_BAR, Q, V
    springs = lw.forces.Passive.springs({"crank_joint": 2.0})
    with pytest.warns(DeprecationWarning, match="is linkwise.forward_dynamics now"):
        found = lw.closed.forward_dynamics(*given, TAU, "svd", (1.0, 1.0))
    expected = lw.forward_dynamics(*given, TAU, method="svd", baumgarte=(1.0, 1.0))
    np.testing.assert_array_equal(found, expected)
    a = lw.forward_dynamics(*given, TAU)
    with pytest.warns(DeprecationWarning, match="is linkwise.inverse_dynamics now"):
        found = lw.closed.inverse_dynamics(*given, a, "crank_joint", passive=springs)
    np.testing.assert_array_equal(found, lw.inverse_dynamics(*given, a, actuated="crank_joint", forces=springs))
    with pytest.warns(DeprecationWarning, match="is linkwise.static_forces now"):
        found = lw.closed.static_forces(FOUR_BAR, Q, "crank_joint")
    np.testing.assert_array_equal(found, lw.static_forces(FOUR_BAR, Q, actuated="crank_joint"))
    with pytest.warns(DeprecationWarning, match="is linkwise.joint_wrenches now"):
        found = lw.closed.joint_wrenches(*given, TAU)
    np.testing.assert_array_equal(found, lw.joint_wrenches(*given, tau=TAU))


@pytest.mark.parametrize(
    ("name", "now", "arguments", "expected"),
    [
        ("forces", "forces.joint_forces", (Q, V), lambda: lw.forces.joint_forces(FOUR_BAR, Q, V)),
        ("forward_dynamics", "forward_dynamics", (Q, V, TAU), lambda: lw.forward_dynamics(FOUR_BAR, Q, V, TAU)),
        ("inverse_dynamics", "inverse_dynamics", (Q, V, V), lambda: lw.inverse_dynamics(FOUR_BAR, Q, V, V)),
    ],
)
@pytest.mark.filterwarnings("ignore::linkwise.MechanismWarning")
def test_names_of_acting(name, now, arguments, expected):
    with pytest.warns(DeprecationWarning, match=f"linkwise.acting.{name} is linkwise.{now}"):
        function = getattr(lw.acting, name)
    if name != "inverse_dynamics":  # accelerations that loops allow are another matter
        np.testing.assert_array_equal(function(FOUR_BAR, *arguments), expected())


def test_former_modules_are_imported_and_not_listed():
    assert not {"closed", "acting"} & {*dir(lw)}
    assert dir(lw.closed) == []
    module = importlib.import_module("linkwise.closed")
    with pytest.warns(DeprecationWarning, match="linkwise.constraints.assemble"):
        assert module.assemble is lw.constraints.assemble
    with pytest.raises(AttributeError, match="no attribute 'assembl'"):
        lw.closed.assembl  # noqa: B018
    with pytest.raises(AttributeError, match="it is linkwise.linkages.workspace here"):
        lw.workspace  # noqa: B018


def test_former_attributes_of_mechanisms_say_where_they_went():
    mech = lw.mechanisms.four_bar()
    assert not {*FORMER} & {*dir(mech)}
    for name, now in FORMER.items():
        with pytest.warns(DeprecationWarning, match=rf"Mechanism\.{name} is Mechanism\.{re.escape(now)} now"):
            former = getattr(mech, name)
        value = operator.attrgetter(now)(mech)
        if callable(value):
            assert former.__func__ is value.__func__ and former.__self__ == value.__self__  # of equal views
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(former, value)
        else:
            assert former == (tuple(value) if name == "frame_names" else value)


@pytest.mark.parametrize(
    ("former", "now"),
    [("linkwise.simulation.step_kernels", "linkwise.motion"), ("linkwise.dynamics.closed", "linkwise.constraints")],
)
def test_what_an_earlier_version_pickled_names_where_its_module_went(former, now):
    with pytest.raises(ModuleNotFoundError, match=f"is {re.escape(now)} now: kernels, motions and studies"):
        pickle.loads(f"c{former}\nstep_kernel\n.".encode())
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'linkwise\.simulations'"):
        importlib.import_module("linkwise.simulations")
