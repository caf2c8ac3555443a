"""Mechanisms as data: joints of a user's own come back as well, or are refused when they are written."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

import linkwise as lw
from linkwise.mechanics.joints import KINDS
from linkwise.mechanism import MechanismError, from_data, to_data


@dataclass(frozen=True)
class Named(lw.Revolute):
    """A hinge with numbers of its own."""

    ratio: float = 2.0
    teeth: tuple[tuple[int, ...], ...] = ((12, 24), (7, 9))
    maker: str = "inf"


class Undecorated(lw.Spherical):
    """The same fields as its parent."""


class HandMade(lw.Revolute):
    """Keeps a number where no field is."""

    def __init__(self, ratio: float = 1.0):
        super().__init__((0.0, 0.0, 1.0))
        object.__setattr__(self, "ratio", ratio)


def hinged(kind) -> lw.Mechanism:
    builder = lw.Builder().link("a", 1.0, (0.1, 0.0, 0.0), (1.0, 1.0, 1.0))
    return builder.joint("one", kind, "ground", "a").build()


def again(mech: lw.Mechanism) -> lw.Mechanism:
    return from_data(json.loads(json.dumps(to_data(mech), allow_nan=False)))


@pytest.mark.parametrize("kind", [Named(), Named((1, 0, 0), 0.5, ((1, 2, 3),), "me"), Undecorated()], ids=str)
def test_joints_of_ones_own_come_back(kind):
    mech = hinged(kind)
    assert again(mech) == mech and type(again(mech).bodies[0].kind) is type(kind)


def test_files_name_joints_by_their_module_unless_they_are_linkwise_s():
    assert to_data(hinged(lw.Helical((0, 0, 1), 0.1)))["bodies"][0]["kind"]["type"] == "Helical"
    assert to_data(hinged(Named()))["bodies"][0]["kind"]["type"] == f"{__name__}.Named"
    own = {name: kind for name, kind in KINDS.items() if "." not in name}
    assert own == {kind.__name__: kind for kind in own.values()} and set(own) < set(lw.__all__)


@pytest.mark.parametrize("kind", [HandMade(3.0), Named(ratio=float("inf"))], ids=["hand made", "not finite"])
def test_joints_that_data_do_not_make_again_are_refused(kind):
    with pytest.raises(MechanismError, match="cannot be saved: its fields do not make it again"):
        to_data(hinged(kind))


def test_a_class_that_lost_its_name_is_refused():
    def defined():
        @dataclass(frozen=True)
        class Twice(lw.Revolute):
            pass

        return Twice

    first, second = defined(), defined()
    with pytest.raises(MechanismError, match="Twice' cannot be saved: another class has been defined by this name"):
        to_data(hinged(first()))
    assert again(hinged(second())) == hinged(second())


def test_a_kind_that_is_not_there_is_asked_for_by_its_module():
    data = to_data(hinged(Named()))
    data["bodies"][0]["kind"]["type"] = "their.joints.Geared"
    with pytest.raises(MechanismError, match="'their.joints.Geared'.*import their.joints, where it is defined, first"):
        from_data(data)
