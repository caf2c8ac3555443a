"""Names that have moved work as they did, and say where they are."""

import importlib

import numpy as np
import pytest

import linkwise as lw

FOUR_BAR = lw.mechanisms.four_bar()
Q, V, TAU = lw.neutral(FOUR_BAR), np.zeros(3), np.array([0.4, 0.1, -0.2])


@pytest.mark.parametrize("name", sorted({*lw.constraints.__all__, *lw.linkages.__all__}))
def test_names_of_closed_say_where_they_went(name):
    home = "constraints" if name in lw.constraints.__all__ else "linkages"
    with pytest.warns(DeprecationWarning, match=f"linkwise.closed.{name} is linkwise.{home}.{name} now"):
        former = getattr(lw.closed, name)
    assert former is getattr(getattr(lw, home), name)


def test_dynamics_of_closed():
    given = FOUR_BAR, Q, V
    springs = lw.Passive.springs({"crank_joint": 2.0})
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
        ("forces", "joint_forces", (Q, V), lambda: lw.joint_forces(FOUR_BAR, Q, V)),
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
