"""What must be refused, and what the message must say."""

import math
import re

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.joints import Fixed, Floating, Prismatic, Revolute, Spherical
from linkwise.mechanism import Builder, InertiaWarning, Limits, MechanismError, Mimic, checks, from_dh, library

Z = Revolute((0, 0, 1))
BALL = (1.0, (0, 0, 0), (0.4, 0.4, 0.4))
NAN, INF = math.nan, math.inf


def arm():
    """Two links in a row: 'a' on 'j1', 'b' on 'j2'."""
    return Builder().link("a", *BALL).link("b", *BALL).joint("j1", Z, "ground", "a").joint("j2", Z, "a", "b")


def one_link(*values, **joint):
    return Builder().link("a", *values).joint("j", joint.pop("kind", Z), "ground", "a", **joint)


def mimic_arm(*rules):
    """Links on the ground, one per rule; joint i follows the joint its rule names."""
    builder = Builder()
    for i, rule in enumerate(rules):
        builder.link(f"l{i}", *BALL).joint(f"j{i}", Z, "ground", f"l{i}", mimic=rule and Mimic(rule))
    return builder


REFLECTION = np.diag([1.0, 1.0, -1.0])
SHEAR = np.array([[1.0, 1e-3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
BENT_LAST_ROW = np.eye(4) + np.outer([0, 0, 0, 1], [0, 0, 1, 0])

BUILDER_CASES = {
    "no links": (lambda: Builder(), "there are no links"),
    "empty link name": (lambda: Builder().link(""), "name of a link must be a non-empty string"),
    "blank joint name": (lambda: arm().joint("  ", Z, "a", "b"), "name of a joint must be a non-empty string"),
    "quoted mass": (lambda: one_link("1.0"), "mass must be numbers"),
    "mass that is true": (lambda: one_link(True), "mass must be numbers"),
    "quoted centre": (lambda: one_link(1.0, (0, "0.1", 0)), "must be numbers of shape"),
    "quoted armature": (lambda: one_link(*BALL, armature="0.1"), "armature of .* must be a number"),
    "name that is no string": (lambda: Builder().link(3), "non-empty string, not 3"),
    "link twice": (lambda: arm().link("a"), "two links named 'a'"),
    "joint twice": (lambda: arm().joint("j1", Z, "a", "b"), "two joints named 'j1'"),
    "loop twice": (lambda: arm().loop("c", Z, "a").loop("c", Z, "b"), "two loops named 'c'"),
    "link named ground": (lambda: Builder().link("ground"), '"ground" is the fixed world'),
    "ground as child": (lambda: arm().joint("j3", Z, "b", "ground"), '"ground" cannot be a child'),
    "undeclared child": (lambda: arm().joint("j3", Z, "b", "c"), "child link 'c' is not declared"),
    "misspelt parent": (
        lambda: Builder().link("forearm", *BALL).link("hand", *BALL).joint("j", Z, "foream", "hand"),
        "parent link 'foream' is not declared: did you mean 'forearm'",
    ),
    "orphan": (lambda: arm().link("c", *BALL), "link 'c' hangs on nothing"),
    "orphan with a child": (
        lambda: arm().link("c", *BALL).link("d", *BALL).joint("j3", Z, "c", "d"),
        "link 'c' hangs on nothing",
    ),
    "two parents": (lambda: arm().joint("j3", Z, "ground", "b"), "link 'b' hangs on two joints, 'j2' and 'j3'.*loop"),
    "circle": (
        lambda: Builder().link("a", *BALL).link("b", *BALL).joint("j1", Z, "a", "b").joint("j2", Z, "b", "a"),
        r"joints run in a circle: .*\.loop",
    ),
    "joint to itself": (lambda: Builder().link("a", *BALL).joint("j", Z, "a", "a"), "circle: a -> a"),
    "kind is a class": (lambda: one_link(*BALL, kind=Spherical), r"kind is the class Spherical; make a joint"),
    "kind is a string": (lambda: one_link(*BALL, kind="revolute"), "kind must be a joint such as"),
    "mass is NaN": (lambda: one_link(NAN), "link 'a': mass must be finite"),
    "mass is a word": (lambda: one_link("heavy"), "link 'a': mass must be numbers"),
    "com of two numbers": (lambda: one_link(1.0, (0, 0)), r"link 'a': com must have shape \(3,\), not \(2,\)"),
    "com infinite": (lambda: one_link(1.0, (0, INF, 0)), "link 'a': com must be finite"),
    "inertia of wrong shape": (lambda: one_link(1.0, (0, 0, 0), np.eye(2)), r"inertia must have shape \(3, 3\)"),
    "inertia of six numbers": (
        lambda: one_link(1.0, (0, 0, 0), (1, 1, 1, 0, 0, 0)),
        r"inertia must have shape \(3, 3\), or be 3 principal moments, not have shape \(6,\)",
    ),
    "inertia with uneven rows": (lambda: one_link(1.0, (0, 0, 0), ([1], [1, 2], [3])), "inertia must be numbers"),
    "inertia not symmetric": (
        lambda: one_link(1.0, (0, 0, 0), np.eye(3) + np.outer([1, 0, 0], [0, 0.1, 0])),
        "inertia must be symmetric",
    ),
    "negative mass": (lambda: one_link(-1.0), "link 'a': its mass -1 is negative"),
    "negative moment": (lambda: one_link(1.0, (0, 0, 0), (-0.1, 1, 1)), "negative principal moment"),
    "triangle inequality": (lambda: one_link(1.0, (0, 0, 0), (1, 1, 2.1)), "triangle inequality"),
    "inertia without mass": (lambda: one_link(0.0, (0, 0, 0), (1, 1, 1)), "inertia but no mass"),
    "shear for a rotation": (lambda: one_link(*BALL, pose=(SHEAR, (0, 0, 0))), "joint 'j' is not a rotation"),
    "reflection": (lambda: one_link(*BALL, pose=(REFLECTION, (0, 0, 0))), "is a reflection"),
    "pose of two numbers": (lambda: one_link(*BALL, pose=(1, 2)), r"the pose of joint 'j' must have shape \(3,\)"),
    "pose is a number": (lambda: one_link(*BALL, pose=7), "must be None, .x, y, z., .rotation, position., a 4x4"),
    "pose is a rotation": (lambda: one_link(*BALL, pose=np.eye(3)), "is a rotation alone: write .rotation, .0, 0, 0"),
    "pose is a quaternion": (lambda: one_link(*BALL, pose=(1, 0, 0, 0)), r"must have shape \(3,\), not \(4,\)"),
    "pose of text": (lambda: one_link(*BALL, pose="abc"), "must be numbers of shape"),
    "frame on nothing": (
        lambda: one_link(*BALL).frame("tool", "b"),
        "frame 'tool': there is no link or frame 'b' before it: known: 'ground', 'a'",
    ),
    "frame named like a link": (
        lambda: one_link(*BALL).frame("a", "ground"),
        "a link is named 'a' too; name the frame otherwise",
    ),
    "two frames of one name": (
        lambda: one_link(*BALL).frame("tool", "a").frame("tool", "ground"),
        "two frames named 'tool'",
    ),
    "last row of a pose": (lambda: one_link(*BALL, pose=BENT_LAST_ROW), "last row of .* must be 0 0 0 1"),
    "position is NaN": (lambda: one_link(*BALL, pose=(None, (0, 0, NAN))), "position of .* must be finite"),
    "armature too long": (lambda: one_link(*BALL, armature=(1, 2)), "armature of joint 'j' must be a number or 1"),
    "armature infinite": (lambda: one_link(*BALL, armature=INF), "armature of joint 'j' must be finite"),
    "armature negative": (lambda: one_link(*BALL, armature=-1), "joint 'j': its armature -1 is negative"),
    "damping negative": (lambda: one_link(*BALL, damping=-1), "joint 'j': its damping -1 is negative"),
    "limits the wrong way round": (lambda: one_link(*BALL, limits=Limits(1, -1)), "lower limit 1 exceeds .* -1"),
    "limits as a tuple": (lambda: one_link(*BALL, limits=(-1, 1)), "limits must be Limits"),
    "limit is NaN": (lambda: one_link(*BALL, limits=Limits(NAN, 1)), "lower limit of .* must be numbers"),
    "mimic as a name": (lambda: one_link(*BALL, mimic="j"), "mimic must be Mimic"),
    "mimic of nothing": (lambda: mimic_arm("j7"), "joint 'j0' mimics 'j7', which does not exist: known: none$"),
    "mimic of a misspelt joint": (
        lambda: mimic_arm(None, "j", None),
        "joint 'j1' mimics 'j', which does not exist: did you mean 'j2' or 'j0'",
    ),
    "mimic of itself": (lambda: mimic_arm("j0"), "joint 'j0' mimics itself: j0 -> j0"),
    "mimic in a circle": (lambda: mimic_arm("j1", "j2", "j0"), "mimics itself: j0 -> j1 -> j2 -> j0"),
    "mimic of a ball joint": (
        lambda: mimic_arm("ball").link("b", *BALL).joint("ball", Spherical(), "ground", "b"),
        "'ball' has 3 degrees of freedom; both must have one",
    ),
    "mimic of a fixed joint": (
        lambda: mimic_arm("weld").link("b", *BALL).joint("weld", Fixed(), "ground", "b"),
        "'weld' has 0 degrees of freedom",
    ),
    "ratio is NaN": (lambda: Mimic("j", NAN), "ratio of a mimic joint must be finite"),
    "massless leaf": (lambda: one_link(), "nothing beyond these joints resists their motion: 'j'"),
    "point mass on the axis": (lambda: one_link(1.0, (0, 0, 0.5)), "nothing beyond these joints resists"),
    "ball joint of a thin rod": (lambda: one_link(1.0, (0, 0, 0), (1, 1, 0), kind=Spherical()), "nothing beyond"),
    "massless subtree": (
        lambda: Builder().link("a").link("b").joint("j1", Z, "ground", "a").joint("j2", Z, "a", "b"),
        "nothing beyond these joints resists their motion: 'j1', 'j2'",
    ),
    "loop on an unknown link": (lambda: arm().loop("c", Z, "a", None, "d"), "loop 'c': there is no link or frame 'd'"),
    "loop within one body": (
        lambda: arm().link("w").joint("weld", Fixed(), "b", "w").loop("c", Z, "b", None, "w"),
        "'b' and 'w' are parts of the same rigid body",
    ),
    "loop that closes nothing": (lambda: arm().loop("c", Floating(), "a"), "six degrees of freedom closes nothing"),
    "loop with a bad pose": (
        lambda: arm().loop("c", Z, "b", (REFLECTION, (0, 0, 0))),
        "pose_a of loop 'c'.*reflection",
    ),
}


@pytest.mark.parametrize(("make", "message"), BUILDER_CASES.values(), ids=BUILDER_CASES.keys())
def test_refused_by_the_builder(make, message):
    with pytest.raises(MechanismError, match=message):
        make().build()


ROW = {"a": 0.1, "alpha": 0.0, "d": 0.2, "mass": 1.0, "com": (0.1, 0, 0), "inertia": (1, 1, 1)}


def without(key):
    return {k: v for k, v in ROW.items() if k != key}


DH_CASES = {
    "unknown convention": (lambda: from_dh([ROW], "craig"), "unknown DH convention 'craig'; known: standard, modified"),
    "no rows": (lambda: from_dh([]), "has no rows"),
    "row is a tuple": (lambda: from_dh([(0, 0, 0)]), "row 1 of the DH table must be a mapping"),
    "missing a": (lambda: from_dh([ROW, without("a")]), "row 2 of the DH table: a revolute joint needs 'a'"),
    "missing alpha": (lambda: from_dh([without("alpha")]), "a revolute joint needs 'alpha'"),
    "missing d": (lambda: from_dh([without("d")]), "a revolute joint needs 'd'"),
    "prismatic without theta": (lambda: from_dh([ROW | {"kind": "prismatic"}]), "a prismatic joint needs 'theta'"),
    "unknown key": (lambda: from_dh([ROW | {"alfa": 1}]), "unknown key 'alfa' .* did you mean 'alpha'"),
    "b in standard": (lambda: from_dh([without("d") | {"b": 1}]), "unknown key 'b' in the convention 'standard'"),
    "com in saha1999": (lambda: from_dh([{"a": 0, "alpha": 0, "b": 0, "com": 0}], "saha1999"), "unknown key 'com'"),
    "unknown kind": (lambda: from_dh([ROW | {"kind": "ball"}]), "kind 'ball'; known: revolute, prismatic"),
    "angle is NaN": (lambda: from_dh([ROW | {"alpha": NAN}]), "row 1 of the DH table: alpha must be finite"),
    "length is a word": (lambda: from_dh([ROW | {"a": "long"}]), "row 1 of the DH table: a must be numbers"),
    "com too short": (lambda: from_dh([ROW | {"com": (1, 2)}]), r"com must have shape \(3,\)"),
    "negative mass": (lambda: from_dh([ROW | {"mass": -1}]), "link 'link1': its mass -1 is negative"),
    "no masses at all": (lambda: from_dh([{"a": 0, "alpha": 0, "d": 0}]), "nothing beyond these joints resists"),
    "same name twice": (lambda: from_dh([ROW | {"link": "x"}, ROW | {"link": "x"}]), "two links named 'x'"),
}


@pytest.mark.parametrize(("make", "message"), DH_CASES.values(), ids=DH_CASES.keys())
def test_refused_dh_tables(make, message):
    with pytest.raises(MechanismError, match=message):
        make()


LOOKUP_CASES = {
    "unknown joint": (lambda: library.planar_arm(2).q_index("joint3"), "no moving joint 'joint3': did you mean 'joint"),
    "unknown velocity": (lambda: library.planar_arm(2).v_index("x"), "known: 'joint1', 'joint2'"),
    "unknown frame": (lambda: library.planar_arm(2).frame("link9"), "no link or frame 'link9': did you mean 'link"),
    "gravity of two numbers": (lambda: library.planar_arm(2).with_gravity((0, 1)), r"gravity must have shape \(3,\)"),
    "gravity infinite": (lambda: library.planar_arm(2).with_gravity((0, 0, INF)), "gravity must be finite"),
    "no links": (lambda: library.chain(0), "at least one link, not n = 0"),
    "half a link": (lambda: library.planar_arm(1.5), "at least one link, not n = 1.5"),
    "unknown kinds": (lambda: library.random_tree(3, 0, joints=("revolut",)), "unknown joint kinds"),
    "no kinds": (lambda: library.random_tree(3, 0, joints=()), "unknown joint kinds"),
}


@pytest.mark.parametrize(("make", "message"), LOOKUP_CASES.values(), ids=LOOKUP_CASES.keys())
def test_refused_requests(make, message):
    with pytest.raises(MechanismError, match=message):
        make()


def test_warnings_point_at_the_line_that_asked():
    inside = Builder().link("a", 1.0, (0, 0, 0), (1, 1, 9)).joint("j", Z, "ground", "a")
    with pytest.warns(InertiaWarning, match="triangle inequality") as caught:
        inside.build(strict=False)
    row = {"a": 0.1, "alpha": 0.0, "d": 0.2, "mass": 1.0, "inertia": (1, 1, 9)}
    with pytest.warns(InertiaWarning, match="triangle inequality") as deeper:
        from_dh([row], strict=False)
    assert {warning.filename for warning in (*caught, *deeper)} == {__file__}


def test_messages_name_their_source():
    with pytest.raises(MechanismError, match="^robot.urdf: link 'a': its mass -1 is negative"):
        Builder(source="robot.urdf").link("a", -1.0).joint("j", Z, "ground", "a").build()


def test_the_quick_look_at_moments_says_what_principal_moments_say():
    """Never that all is well where principal moments break a rule; always for bodies that are clearly rigid."""
    rng = np.random.default_rng(0)
    agreed = 0
    for _ in range(2000):
        principal = rng.choice([0.0, 1e-12, 1e-3, 1.0, 1.0, 2.0 + 1e-8, 2.0 + 1e-5, -1e-8, -1e-3], size=3)
        axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        inertia = axes @ np.diag(principal) @ axes.T
        xx, xy, xz, yy, yz, zz = (0.5 * (inertia + inertia.T))[np.triu_indices(3)]
        low, middle, high = np.sort(principal)
        slack = checks.INERTIA_TOLERANCE * max(-low, high)
        if checks.clearly_rigid(2.0, (xx, xy, xz, yy, yz, zz)):
            assert low >= -slack - 1e-15 and high <= low + middle + slack + 1e-15
            agreed += 1
        else:
            assert low < 0.1 * slack or high > low + middle - 0.1 * slack
        assert not checks.clearly_rigid(0.0, (xx, xy, xz, yy, yz, zz))
    assert 200 < agreed < 1800


def test_words_that_others_use_are_understood_in_messages():
    ball = Builder().link("a", *BALL)
    with pytest.raises(MechanismError, match=r"parent link 'world' is not declared: .*the fixed world is 'ground'"):
        ball.joint("j", Z, "world", "a").build()
    with pytest.raises(ValueError, match=r"must be 3 numbers such as \(0, 0, 1\), got 'z'"):
        Revolute("z")
    assert checks.close_names("RK4", ("rk45", "rk4", "dop853"))[0] == "rk4"
    assert checks.close_names("Tool0", ("tool0", "base")) == ["tool0"]
    for other, ours in (("LOCAL", "link"), ("LOCAL_WORLD_ALIGNED", "world_aligned"), ("WORLD", "world")):
        with pytest.raises(ValueError, match=f"did you mean {ours!r}"):
            lw.jacobian(library.planar_arm(2), [0.0, 0.0], "link2", frame=other)


def slider_crank_without_mass(piston: float, rod: float = 1.0):
    builder = Builder().link("crank", 1.0, (0.1, 0, 0), (0, 0.01, 0.01)).link("rod", rod, (0.2, 0, 0), (0, rod, rod))
    builder.link("piston", piston).joint("turn", Revolute((0, 0, 1)), "ground", "crank")
    builder.joint("knee", Revolute((0, 0, 1)), "crank", "rod", (None, (0.2, 0, 0)))
    builder.joint("slide", Prismatic((1, 0, 0)), "ground", "piston", (None, (0.6, 0, 0)))
    return builder.loop("pin", Revolute((0, 0, 1)), "piston", None, "rod", (None, (0.4, 0, 0)))


def test_links_without_mass_that_loops_carry():
    """They are accepted, and move as links of next to no mass do."""
    bare, light = (slider_crank_without_mass(mass).build() for mass in (0.0, 1e-9))
    q, v = lw.constraints.project(bare, lw.constraints.assemble(bare, {"turn": 0.4}), [1.0, 0.0, 0.0])
    found, expected = (lw.forward_dynamics(mech, q, v, np.zeros(3)) for mech in (bare, light))
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_links_without_mass_that_loops_leave_free():
    """A rod between two balls rotates about itself."""
    builder = Builder().link("rod", 0.0)
    for name, at in (("a", 0.0), ("b", 0.5)):
        builder.link(name, 1.0, (0.1, 0, 0), (0.01, 0.01, 0.01))
        builder.joint(f"{name}_turn", Revolute((0, 0, 1)), "ground", name, (None, (at, at / 5.0, 0)))
    builder.joint("ball", Spherical(), "a", "rod", (None, (0.2, 0, 0)))
    builder.loop("other_ball", Spherical(), "b", (None, (0.2, 0, 0)), "rod", (None, (0.55, 0, 0)))
    with pytest.raises(MechanismError, match=r"resists their motion: 'ball'; .*; build\(strict=False\) keeps"):
        builder.build()


def test_one_moment_alone_is_answered_with_those_of_a_bar():
    with pytest.raises(
        MechanismError, match=r"a thin bar along x has the moments \(0, 0.1, 0.1\); build\(strict=False"
    ):
        one_link(1.0, (0.1, 0, 0), (0, 0, 0.1)).build()


@pytest.mark.parametrize("kind", [lw.Floating(), lw.Revolute((1, 2, 3)), lw.Spherical()], ids=("free", "hinge", "ball"))
@pytest.mark.parametrize(
    "mass, com, inertia, offset",
    [
        *((1e308, 1.0, 1.0, 1.0), (1e160, 1e160, 1.0, 1.0), (1.0, 1e200, 1.0, 1.0), (1.0, 0.0, 6e307, 1.0)),
        *((1e-320, 0.0, 1e-320, 1.0), (1e200, 0.0, 1e200, 1.0), (1e-200, 0.0, 1e-200, 1.0), (1.0, 0.0, 1.0, 1e180)),
    ],
)
def test_numbers_close_to_the_ends_of_their_range_are_computed_with_or_named(mass, com, inertia, offset, kind):
    """No error of another library, and no finite number where the range is exceeded."""
    try:
        builder = lw.Builder().link("a", mass, (com, 0, 0), (inertia,) * 3).link("b", 1.0, (0, 0, 0.1), (1, 1, 1))
        builder.joint("j", kind, "ground", "a").joint("k", lw.Revolute((1, 0, 0)), "a", "b", (0, offset, 0))
        mech = builder.build()
    except lw.MechanismError as error:
        assert re.search(r"link 'a': its moments of inertia .* are beyond 1e308", str(error))
        return
    zeros = np.zeros(mech.nv)
    for call in (
        lambda: lw.mass_matrix(mech, lw.neutral(mech)),
        lambda: lw.forward_dynamics(mech, lw.neutral(mech), zeros, zeros),
        lambda: lw.simulate(mech, None, None, 0.01),
        lambda: lw.linearize(mech),
    ):
        try:
            call()
        except lw.MechanismError as error:
            assert re.search("beyond 1e308|not finite", str(error))


def test_inertias_of_all_sizes_resist_all_motions():
    for size in (1e-320, 1e-200, 1e-110, 1e110, 1e300):
        builder = (
            lw.Builder().link("a", size, inertia=(size, 2 * size, 2 * size)).joint("j", lw.Spherical(), "ground", "a")
        )
        assert builder.build().parameters.singular_joints == ()
