"""Equality constraints of MJCF: loops, mimic joints and couplings."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismWarning, MissingConstraintWarning
from linkwise.readers import load
from tests.readers.mujoco_oracle import Pair, mujoco

BODY = '<geom type="capsule" size="0.05 0.2" pos="0.2 0 0"/>'
# Two arms whose ends meet in the file's pose, and a free plate.
ARMS = f"""
  <body name="left" pos="0 0 1"><joint name="l1" axis="0 1 0"/>{BODY}
    <body name="left2" pos="0.5 0 0" euler="0 20 10"><joint name="l2" axis="0 1 0" ref="15"/>
      <joint name="l3" type="ball" pos="0.1 0 0"/>{BODY}<site name="left_end" pos="0.5 0 0" euler="10 20 30"/></body>
  </body>
  <body name="right" pos="1.2 0.3 1"><joint name="r1" pos="0 0 0.1"/>{BODY}
    <site name="right_end" pos="-0.3 0.1 0"/></body>
  <body name="plate" pos="0.3 0.2 2" euler="30 0 0"><freejoint name="f"/>{BODY}</body>
"""


def model(equality, bodies=ARMS, head=""):
    return f"<mujoco>{head}<worldbody>{bodies}</worldbody><equality>{equality}</equality></mujoco>"


def reference(pair):
    """Our coordinates in the pose of the file."""
    q = lw.neutral(pair.tree)
    for index, body in enumerate(pair.tree.bodies):
        own = pair.model.qpos0[pair.model.jnt_qposadr[index] :][: body.kind.nq]
        q[pair.tree.q_index(body.joint)] = [*own[3:], *own[:3]] if isinstance(body.kind, lw.Floating) else own
    return q


def row_space(matrix):
    _, values, right = np.linalg.svd(matrix)
    kept = right[: (values > 1e-9 * values[0]).sum()]
    return kept.T @ kept


LOOPS = {
    "point to the world": ('<connect body1="left2" anchor="0.5 0 0"/>', "Spherical"),
    "point to point": ('<connect body1="left2" body2="right" anchor="0.5 0 0.1"/>', "Spherical"),
    "point of a free body": ('<connect body1="plate" body2="left" anchor="0.1 0 0.1"/>', "Spherical"),
    "weld to the world": ('<weld body1="plate"/>', "Fixed"),
    "weld of two": ('<weld body1="left2" body2="plate"/>', "Fixed"),
    "weld of two, at a point": ('<weld body1="left2" body2="plate" anchor="0.1 0.2 0.3"/>', "Fixed"),
    "weld in a pose that is left open": ('<weld body1="left2" body2="plate" relpose="0 0 0 0 0 0 0"/>', "Fixed"),
    "point, as a weld": ('<weld body1="left2" body2="right" anchor="0.1 0 0" torquescale="0"/>', "Spherical"),
}


@pytest.mark.parametrize(("equality", "kind"), LOOPS.values(), ids=LOOPS.keys())
def test_loops_hold_what_mujoco_holds(equality, kind):
    pair = Pair(model(equality))
    (loop,) = pair.mech.loops
    assert type(loop.kind).__name__ == kind
    q = reference(pair)
    tie, _ = pair.set(q, np.zeros(pair.mech.nv))
    np.testing.assert_allclose(lw.constraints.position_error(pair.mech, q), 0, atol=1e-12)
    ours = lw.constraints.constraint_jacobian(pair.mech, q)
    theirs = pair.data.efc_J.reshape(-1, pair.model.nv) @ tie
    np.testing.assert_allclose(row_space(ours), row_space(theirs), rtol=0, atol=1e-9)


POSED = {
    "weld": '<weld body1="left2" body2="plate" relpose="0.1 0.2 0.3 0.9 0.1 0.2 -0.3"/>',
    "weld, at a point": '<weld body1="left2" body2="plate" relpose="0.1 0.2 0.3 0.9 0.1 0.2 -0.3" anchor="1 2 3"/>',
    "sites, weld": '<weld site1="left_end" site2="right_end"/>',
    "sites, point": '<connect site1="left_end" site2="right_end"/>',
}


@pytest.mark.parametrize("equality", POSED.values(), ids=POSED.keys())
def test_loops_that_are_open_in_the_pose_of_the_file(equality):
    """What we assemble, MuJoCo sees assembled."""
    pair = Pair(model(equality))
    assert np.abs(lw.constraints.position_error(pair.mech, reference(pair))).max() > 0.1
    free = f"<body name='left2'><freejoint/>{BODY}<site name='left_end' pos='0.5 0 0' euler='10 20 30'/></body>"
    others = f"<body name='plate'><freejoint/>{BODY}<site name='right_end' pos='-0.3 0.1 0'/></body>"
    pair = Pair(model(equality, free + others))
    q = lw.constraints.assemble(pair.mech, lw.neutral(pair.mech))
    pair.set(q, np.zeros(12))
    np.testing.assert_allclose(pair.data.efc_pos, 0, atol=1e-8)


def test_names_of_loops_and_loops_that_are_off():
    equality = (
        '<connect name="pin" body1="left2" anchor="0 0 0"/><connect body1="left2" anchor="0 0 1"/>'
        '<connect body1="left2" anchor="1 0 1"/><weld body1="plate" active="false"/><weld class="off" body1="plate"/>'
    )
    head = '<default><default class="off"><equality active="false"/></default></default>'
    mech = load(model(equality, head=head))
    assert [loop.name for loop in mech.loops] == ["pin", "connect_left2_world", "connect_left2_world_"]
    assert load(model(equality, head=head + '<option><flag equality="disable"/></option>')).loops == ()


def test_a_weld_within_one_body_is_left_out():
    bodies = f'<body name="a"><joint/>{BODY}<body name="b"/></body>'
    with pytest.warns(MechanismWarning, match="<weld> is left out: 'a' and 'b' are parts of the same rigid body"):
        assert load(model('<weld body1="a" body2="b"/>', bodies)).loops == ()


def test_a_four_bar_moves():
    bar = '<geom type="capsule" size="0.02" fromto="0 0 0 {0} 0 0"/>'
    bodies = (
        f'<body name="crank" euler="0 -60 0"><joint axis="0 1 0"/>{bar.format(1)}'
        f'<body name="coupler" pos="1 0 0" euler="0 60 0"><joint axis="0 1 0"/>{bar.format(2)}</body></body>'
        f'<body name="rocker" pos="2 0 0" euler="0 -60 0"><joint axis="0 1 0"/>{bar.format(1)}</body>'
    )
    pair = Pair(model('<connect body1="coupler" body2="rocker" anchor="2 0 0"/>', bodies))
    q = reference(pair)
    np.testing.assert_allclose(lw.constraints.position_error(pair.mech, q), 0, atol=1e-12)
    assert lw.constraints.degrees_of_freedom(pair.mech, q) == 1


# -- joints -------------------------------------------------------------------------------------------

CHAIN = f"""<body name="a"><joint name="x" ref="20" armature="0.1"/>{BODY}
  <body name="b" pos="0.4 0 0"><joint name="y" axis="0 1 0" ref="-30"/>{BODY}
    <body name="c" pos="0.4 0 0"><joint name="z" type="slide" ref="0.3" pos="0 1 0" axis="1 1 0"/>{BODY}
    </body></body></body>"""


def test_mimic_joints():
    tie = '<joint joint1="y" joint2="x" polycoef="0.1 2"/><joint joint1="z" joint2="y" polycoef="0 -0.5 0 0 0"/>'
    pair = Pair(model(tie, CHAIN))
    assert (pair.mech.nq, pair.mech.n_links) == (1, 3)
    q = np.array([0.7])
    pair.set(q, np.zeros(1))
    np.testing.assert_allclose(pair.data.efc_pos, 0, atol=1e-14)  # MuJoCo sees both ties kept
    pair.assert_same_dynamics()


def test_a_tie_is_reversed_where_the_first_joint_mimics_another_already():
    tie = '<joint joint1="y" joint2="x"/><joint joint1="y" joint2="z" polycoef="0.2 3"/>'
    pair = Pair(model(tie, CHAIN))
    assert pair.mech.nq == 1
    pair.set(np.array([0.4]), np.zeros(1))
    np.testing.assert_allclose(pair.data.efc_pos, 0, atol=1e-14)
    pair.assert_same_dynamics()


def test_a_joint_that_is_held():
    pair = Pair(model('<joint joint1="y" polycoef="0.25"/>', CHAIN))
    assert pair.mech.joint_names == ("x", "z")
    held = pair.model.qpos0[1] + 0.25
    whole = load(model("", CHAIN))
    q = np.array([0.3, 0.2])
    for name in ("b", "c"):
        expected = lw.frame_pose(whole, [q[0], held, q[1]], name)
        np.testing.assert_allclose(lw.frame_pose(pair.mech, q, name), expected, atol=1e-14)
    pair.data.qpos[:] = [q[0], held, q[1]]
    mujoco.mj_forward(pair.model, pair.data)
    np.testing.assert_allclose(pair.data.efc_pos, 0, atol=1e-14)


def test_what_is_no_linear_tie_is_reported():
    with pytest.warns(MissingConstraintWarning, match="not read, .* comes apart: 1 nonlinear joint equality"):
        assert load(model('<joint joint1="y" joint2="x" polycoef="0 1 0.5"/>', CHAIN)).nq == 3


# -- tendons ------------------------------------------------------------------------------------------

FINGERS = """<tendon><fixed name="t"><joint joint="x" coef="0.5"/><joint joint="y" coef="-2"/></fixed>
  <fixed name="u"><joint joint="z" coef="3"/><joint joint="y" coef="1"/></fixed>
  <spatial name="s"><site site="e"/><site site="f"/></spatial></tendon>"""
SITES = CHAIN.replace('<body name="c"', '<site name="e"/><body name="c"').replace(
    "</body></body>", '<site name="f"/></body></body>', 1
)
TENDONS = {
    "one": '<tendon tendon1="t"/>',
    "one, longer": '<tendon tendon1="t" polycoef="0.3"/>',
    "two": '<tendon tendon1="t" tendon2="u" polycoef="0.2 1.5"/>',
    "both": '<tendon name="a" tendon1="t"/><tendon name="b" tendon1="u" tendon2="t"/>',
}


@pytest.mark.parametrize("equality", TENDONS.values(), ids=TENDONS)
def test_fixed_tendons_couple_joints_as_in_mujoco(equality):
    pair = Pair(model(equality, SITES).replace("</mujoco>", f"{FINGERS}</mujoco>"))
    assert pair.mech.n_constraints == equality.count("<tendon") and pair.mech.nv == 3
    q = np.array([0.7, -0.4, 0.2])
    tie, _ = pair.set(q, np.zeros(3))
    np.testing.assert_allclose(lw.constraints.position_error(pair.mech, q), pair.data.efc_pos, atol=1e-14)
    ours = lw.constraints.constraint_jacobian(pair.mech, q)
    np.testing.assert_allclose(ours, pair.data.efc_J.reshape(-1, 3) @ tie, atol=1e-14)
    assert not load(model(equality, SITES).replace("</mujoco>", f"{FINGERS}</mujoco>"), mimic=False).loops


@pytest.mark.parametrize(
    ("equality", "note"),
    [
        ('<tendon tendon1="s"/>', "1 equality of spatial tendons"),
        ('<tendon tendon1="t" tendon2="u" polycoef="0 1 2"/>', "1 nonlinear tendon equality"),
    ],
)
def test_equalities_of_tendons_that_are_not_linear_are_noted(equality, note):
    with pytest.warns(MissingConstraintWarning, match=f"not read, .* comes apart: {note}"):
        assert not load(model(equality, SITES).replace("</mujoco>", f"{FINGERS}</mujoco>")).loops


def test_equalities_of_tendons_that_are_not_there_are_refused():
    with pytest.raises(lw.MechanismError, match="<tendon>: MuJoCo refuses it: unknown element 'v' in equality"):
        load(model('<tendon tendon1="v"/>', SITES).replace("</mujoco>", f"{FINGERS}</mujoco>"))
    wrong = FINGERS.replace('joint="z"', 'joint="w"')
    with pytest.raises(lw.MechanismError, match="MuJoCo refuses it: joint 'w' not found in tendon 1"):
        load(model('<tendon tendon1="u"/>', SITES).replace("</mujoco>", f"{wrong}</mujoco>"))
