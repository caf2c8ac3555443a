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


def test_urdf_files_are_read_and_written_without_any_extra(tmp_path):
    """With visuals, meshes, a motor, a mimic joint and a loop; then computed with, simulated and drawn on a page."""
    names = ("crank", "coupler", "rocker", "wheel")
    masses = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    looks = '<visual><geometry><mesh filename="a.stl"/></geometry></visual><collision><geometry><box size="1 1 1"/>'
    links = "".join(f'<link name="{name}">{masses}{looks}</geometry></collision></link>' for name in names)
    joint = '<joint name="{0}_joint" type="continuous"><parent link="{1}"/><child link="{0}"/><origin xyz="{2} 0 0"/>'
    joint += '<axis xyz="0 0 1"/>{3}</joint>'
    tree = [("crank", "base", 0, ""), ("coupler", "crank", 1, ""), ("rocker", "base", 3, "")]
    tree += [("wheel", "base", 5, '<mimic joint="crank_joint" multiplier="2"/>')]
    motor = '<transmission name="t"><type>SimpleTransmission</type><joint name="crank_joint"/></transmission>'
    loop = '<loop name="pin" type="revolute"><predecessor link="coupler"><origin xyz="3 0 0"/></predecessor>'
    loop += '<successor link="rocker"><origin xyz="2 0 0"/></successor><axis xyz="0 0 1"/></loop>'
    joints = "".join(joint.format(*one) for one in tree)
    file = tmp_path / "bars.urdf"
    file.write_text(f'<robot name="bars"><link name="base"/>{links}{joints}{motor}{loop}</robot>')
    code = (
        "import importlib.metadata as metadata, re, sys, warnings\n"
        "core = {'numpy', 'scipy', 'llvmlite', 'click', 'tomli'}\n"
        "owners = metadata.packages_distributions()\n"
        "needs = [re.match(r'[\\w.-]+', one)[0].lower() for one in metadata.requires('linkwise') or ()]\n"
        "extras = {m for m, whose in owners.items() if {w.lower() for w in whose} & (set(needs) - core)}\n"
        "extras |= {'mujoco', 'trimesh', 'yaml', 'matplotlib', 'viser', 'sympy'}\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.partition('.')[0] in extras:\n"
        "            raise ImportError(f'{name} was asked for')\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import linkwise as lw\n"
        "warnings.simplefilter('ignore')\n"
        f"mech = lw.load({str(file)!r})\n"
        "assert mech.loops and mech.forces.actuators and mech.n_links == 4\n"
        "q = lw.constraints.assemble(mech, mech.initial)\n"
        "lw.simulate(mech, q, None, 0.01)\n"
        f"mech.save({str(tmp_path / 'again.urdf')!r}); mech.save({str(tmp_path / 'page.html')!r})\n"
        "assert lw.forward_dynamics(mech, q).shape == (mech.nv,)\n"
        "assert not extras & set(sys.modules), extras & set(sys.modules)\n"
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
