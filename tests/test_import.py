"""What ``import linkwise`` loads: little, so that it is quick, and everything else by name when it is asked for."""

from __future__ import annotations

import inspect
import operator
import re
import subprocess
import sys

import pytest

import linkwise as lw
from linkwise.compiler.registry import OTHER_LIBRARIES
from tools.public_api import public_modules
from tools.uses import public_names


def test_the_compiler_and_other_libraries_are_loaded_later():
    """By a list of modules, since no test looks at a clock."""
    code = (
        "import sys, linkwise as lw\n"
        "late = {'llvmlite', 'scipy', 'matplotlib', 'linkwise.compiler.pipeline'}\n"
        "late |= {'linkwise.mechanics.operators', 'linkwise.constraints'}\n"
        "assert not late & set(sys.modules), late & set(sys.modules)\n"
        "arm = lw.mechanisms.planar_arm(1)\n"
        "assert not late & set(sys.modules), late & set(sys.modules)\n"
        "assert lw.compile.__module__ == 'linkwise.compiler.pipeline' and lw.operators.H @ lw.operators.phi\n"
        "assert 'scipy' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_every_module_can_be_the_first_that_is_asked_for(every):
    """Imports in a circle work or not by which module of it comes first."""
    code = (
        "import sys, linkwise\n"
        f"for name in [*(names[0] for names in linkwise._LATER.values()), *linkwise._MODULES][::{every}]:\n"
        "    for module in [one for one in sys.modules if one.partition('.')[0] == 'linkwise']:\n"
        "        del sys.modules[module]\n"
        "    import linkwise\n"
        "    assert getattr(linkwise, name) is not None\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_there_once():
    assert len(set(lw.__all__)) == len(lw.__all__)
    assert all(getattr(lw, name) is not None for name in lw.__all__)
    assert set(dir(lw)) == set(lw.__all__)


@pytest.mark.parametrize("name", public_modules())
def test_submodules_list_their_public_names_only(name):
    module = public_modules()[name]
    assert dir(module) == sorted(set(module.__all__)) == list(module.__all__)
    assert all(inspect.getdoc(getattr(module, inner)) is not None for inner in module.__all__)


def test_every_symbol_is_public_in_one_place():
    """Functions and classes by identity; data and expressions may be equal."""
    places = {}
    for name in public_names():
        value = operator.attrgetter(name)(lw)
        if inspect.isroutine(value) or inspect.isclass(value):
            places.setdefault(value, []).append(name)
    assert not [names for names in places.values() if len(names) > 1]


def test_public_modules_are_imported_as_modules():
    code = (
        "import linkwise as lw, linkwise.operators, linkwise.constraints\n"
        "from linkwise.mechanisms import puma560\n"
        "from linkwise.operators.identities import INVERSES\n"
        "from linkwise.mechanics.operators import identities\n"
        "assert linkwise.operators is lw.operators and INVERSES is identities.INVERSES\n"
        "assert puma560 is lw.mechanisms.puma560\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", OTHER_LIBRARIES)
def test_names_of_other_libraries_lead_to_ours(name):
    with pytest.raises(AttributeError, match=f"{name!r}: it is linkwise"):
        getattr(lw, name)
    with pytest.raises(ValueError, match=f"unknown algorithm {name!r}: it is linkwise"):
        lw.compile(name, lw.mechanisms.cart_pole())
    ours = re.match(r"[\w.]+", OTHER_LIBRARIES[name])[0]
    of_mechanisms = ours.removeprefix("Mechanism.")  # attributes of views, which a mechanism has
    owner = lw if ours == of_mechanisms else lw.mechanisms.cart_pole()
    assert operator.attrgetter(of_mechanisms)(owner) is not None


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("assemble", "constraints.assemble"),
        ("four_bar", "mechanisms.four_bar"),
        ("draw", "viewer.draw"),
        ("range_of_motion", "linkages.range_of_motion"),
    ],
)
def test_names_that_are_in_a_module_are_told_there(name, ours):
    with pytest.raises(AttributeError, match=f"{name!r}: it is linkwise.{ours} here"):
        getattr(lw, name)
    with pytest.raises(AttributeError, match="'nothing_like_it'$"):
        lw.nothing_like_it  # noqa: B018


def test_built_in_mechanisms_are_suggested():
    with pytest.raises(AttributeError, match="no built-in mechanism 'fourbar': did you mean 'four_bar'"):
        lw.mechanisms.fourbar  # noqa: B018
