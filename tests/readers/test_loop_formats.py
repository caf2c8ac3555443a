"""Loops in the words of other tools: Gepetto's YAML, loop_closures.yaml, Drake's tags, against the same by hand."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from tests.readers.test_urdf_plus import joint, link, robot

pytest.importorskip("yaml")
EYE = np.eye(3)
INERTIA = np.array([[0.02, 0.001, -0.001], [0.001, 0.03, 0.001], [-0.001, 0.001, 0.04]])
COM = (0.1, 0.02, 0.03)
TURNED = 0.5  # of the coupler's frame against the crank's, about z
TIP = (0.6, 0.0, 0.0)  # of the coupler
HINGE = np.array([0.3 + 0.6 * np.cos(TURNED), 0.6 * np.sin(TURNED), 0.0])  # the tip while no joint has moved
ROCKER = (0.7, 0.1, 0.0)
TREE = (
    *(link("crank"), link("coupler"), link("rocker")),
    joint("drive", "base", "crank"),
    f"""<joint name="elbow" type="continuous"><parent link="crank"/><child link="coupler"/>
      <origin xyz="0.3 0 0" rpy="0 0 {TURNED}"/><axis xyz="0 0 1"/>MIMIC</joint>""",
    joint("swing", "base", "rocker", "0.7 0.1 0"),
)


def turned(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def by_hand(loop=None, elbow=None):
    builder = lw.Builder()
    for name in ("crank", "coupler", "rocker"):
        builder.link(name, 1.0, COM, INERTIA)
    builder.joint("drive", lw.Revolute((0.0, 0.0, 1.0)), "ground", "crank")
    pose = (turned(TURNED), (0.3, 0.0, 0.0))
    builder.joint("elbow", elbow or lw.Revolute((0.0, 0.0, 1.0)), "crank", "coupler", pose)
    builder.joint("swing", lw.Revolute((0.0, 0.0, 1.0)), "ground", "rocker", (None, ROCKER))
    if loop:
        builder.loop("pin", *loop)
    return builder.build("r")


def write(here, yaml, text, mimic=""):
    (here / "robot.urdf").write_text(text.replace("MIMIC", mimic))
    (here / "loops.yaml").write_text(yaml)
    return here / "robot.urdf", here / "loops.yaml"


def assert_equal_motions(read, made):
    """Closures, degrees of freedom and accelerations; joints are matched by name."""
    assert set(read.joint_names) == set(made.joint_names)
    q = lw.constraints.assemble(read)
    assert lw.constraints.degrees_of_freedom(read, q) == lw.constraints.degrees_of_freedom(
        made, matched(read, made, q, "q")
    )
    rng = np.random.default_rng(0)
    for _ in range(3):
        v = rng.normal(size=read.nv)
        v = lw.constraints.project(read, q, v)[1]
        q, v = lw.constraints.project(read, lw.integrate(read, q, v, 0.02), v)
        tau = rng.normal(size=read.nv)
        there = [matched(read, made, x, of) for x, of in ((q, "q"), (v, "v"), (tau, "v"))]
        assert np.abs(lw.constraints.position_error(made, there[0])).max() < 1e-8
        expected = lw.forward_dynamics(made, *there)
        found = matched(read, made, lw.forward_dynamics(read, q, v, tau), "v")
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def matched(read, made, values, of):
    """Numbers of one mechanism in the order of the other."""
    index, there = (read.q_index, made.q_index) if of == "q" else (read.v_index, made.v_index)
    result = np.zeros(made.nq if of == "q" else made.nv)
    for name in read.joint_names:
        result[there(name)] = values[index(name)]
    return result


# -- Gepetto ------------------------------------------------------------------------------------------

TIPS = (
    *('<link name="tip_a"/>', '<link name="tip_b"/>'),
    joint("tip_a_frame", "coupler", "tip_a", "0.6 0 0", kind="fixed"),
    joint("tip_b_frame", "rocker", "tip_b", "0.5 0 0", kind="fixed"),
)


@pytest.mark.parametrize("names", ["tip_a, tip_b", "tip_a_frame, tip_b_frame"])  # of links, of joints
def test_points_of_gepetto(tmp_path, names):
    text = f"closed_loop: [[{names}]]\ntype: ['3d']\nname_mot: [drive]\n"
    file, loops = write(tmp_path, text, robot(*TREE, *TIPS))
    read = lw.load(file, loops=loops)
    assert_equal_motions(read, by_hand((lw.Spherical(), "coupler", (EYE, TIP), "rocker", (EYE, (0.5, 0.0, 0.0)))))
    assert read.metadata.actuated_joints == ("drive",)
    assert_equal_motions(lw.load(str(file), loops=str(loops)), read)


def test_frames_and_joint_types_of_gepetto(tmp_path):
    """6d on a link that a joint moves: a hinge; a ball in place of a hinge, and joints about two axes."""
    hinged = (link("knuckle"), joint("closing", "coupler", "knuckle", "0.6 0 0"), TIPS[1], TIPS[3])
    text = (
        "closed_loop: [[closing, tip_b]]\ntype: [6d]\nname_mot: [drive]\n"
        "joint_name: [elbow, swing]\njoint_type: [SPHERICAL, {}]\n"
    )
    file, loops = write(tmp_path, text.format("UJOINT_ZX"), robot(*TREE, *hinged))
    builder = lw.Builder()
    for name in ("crank", "coupler", "rocker", "knuckle"):
        builder.link(name, 1.0, COM, INERTIA)
    builder.joint("drive", lw.Revolute((0.0, 0.0, 1.0)), "ground", "crank")
    builder.joint("elbow", lw.Spherical(), "crank", "coupler", (turned(TURNED), (0.3, 0.0, 0.0)))
    builder.joint("swing", lw.Universal((0.0, 0.0, 1.0), (1.0, 0.0, 0.0)), "ground", "rocker", (None, ROCKER))
    builder.joint("closing", lw.Revolute((0.0, 0.0, 1.0)), "coupler", "knuckle", (None, TIP))
    builder.loop("pin", lw.Fixed(), "knuckle", None, "rocker", (EYE, (0.5, 0.0, 0.0)))
    assert_equal_motions(lw.load(file, loops=loops), builder.build("r"))
    for word, kind in (("CARDAN", lw.Universal()), ("spherical", lw.Spherical())):
        loops.write_text(text.format(word))
        read = lw.load(file, loops=loops)
        assert read.bodies[read.body_index("swing")].kind == kind and read.metadata.actuated_joints == ("drive",)


def test_joints_that_gepetto_fixes(tmp_path):
    text = "closed_loop: [[tip_a, tip_b]]\ntype: [3d]\njoint_name: [swing]\njoint_type: [FIXED]\n"
    file, loops = write(tmp_path, text, robot(*TREE, *TIPS))
    at = (lw.Spherical(), "coupler", (EYE, TIP), "ground", (EYE, (1.2, 0.1, 0.0)))
    made = by_hand(at).with_locked(["swing"])
    read = lw.load(file, loops=loops)
    assert read.joint_names == made.joint_names == ("drive", "elbow")
    q, v = lw.random_state(read.spanning_tree, np.random.default_rng(0))
    np.testing.assert_allclose(
        lw.constraints.position_error(read, q), lw.constraints.position_error(made, q), atol=1e-12
    )
    trees = read.spanning_tree, made.spanning_tree
    found, expected = (lw.forward_dynamics(tree, q, v, v) for tree in trees)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# -- solidworks_urdf_exporter2 ------------------------------------------------------------------------

CLOSURES = f"""closures:
- link_a: coupler
  link_b: rocker
  point: {HINGE.tolist()}
  axis: [0.0, 0.0, 1.0]
dependent: [elbow, swing]
independent: [drive]
"""


def test_hinges_of_solidworks(tmp_path):
    file, loops = write(tmp_path, CLOSURES, robot(*TREE), '<mimic joint="drive" multiplier="-0.4"/>')
    read = lw.load(file, loops=loops)
    at_rocker = tuple((HINGE - ROCKER).tolist())
    made = by_hand((lw.Revolute((0.0, 0.0, 1.0)), "coupler", (EYE, TIP), "rocker", (EYE, at_rocker)))
    assert_equal_motions(read, made)
    assert read.metadata.independent_joints == ("drive",) and read.nv == 3  # the elbow mimics no other
    assert np.abs(lw.constraints.position_error(read, lw.neutral(read))).max() < 1e-12
    floating = lw.load(file, loops=loops, floating_base=True)
    assert np.abs(lw.constraints.position_error(floating, lw.neutral(floating))).max() < 1e-12


# -- Drake --------------------------------------------------------------------------------------------


def ball(tag, a, at_a, b, at_b):
    """In the words of URDF, or of SDF."""
    if tag == "urdf":
        body, point = '<drake:ball_constraint_body_{} name="{}"/>', '<drake:ball_constraint_p_{} value="{}"/>'
    else:
        body = "<drake:ball_constraint_body_{0}>{1}</drake:ball_constraint_body_{0}>"
        point = "<drake:ball_constraint_p_{0}>{1}</drake:ball_constraint_p_{0}>"
    ends = (body.format("A", a), point.format("AP", at_a), body.format("B", b), point.format("BQ", at_b))
    return f"<drake:ball_constraint>{''.join(ends)}</drake:ball_constraint>"


def test_ball_constraints_of_drake():
    made = by_hand((lw.Spherical(), "coupler", (EYE, TIP), "rocker", (EYE, (0.5, 0.0, 0.0))))
    constraint = ball("urdf", "coupler", "0.6 0 0", "rocker", "0.5 0 0")
    read = lw.load(robot(*TREE, constraint).replace("MIMIC", ""))
    assert_equal_motions(read, made)


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("ball", lw.Spherical()),
        ("planar", lw.Planar()),
        ("universal", lw.Universal()),
        ("screw", lw.Helical((0.0, 1.0, 0.0), 0.25 / (2.0 * np.pi))),
    ],
)
def test_joints_of_drake(kind, made):
    inside = '<axis xyz="0 1 0"/><drake:screw_thread_pitch value="0.25"/>' if kind == "screw" else ""
    several = "0.1 0.2 0.3" if kind == "planar" else "0.1"
    own = f"""<drake:joint name="hook" type="{kind}"><parent link="arm"/><child link="hand"/>
      <origin xyz="0.3 0.1 0" rpy="0.2 0.3 0.4"/>{inside}<dynamics damping="{several}"/></drake:joint>"""
    read = lw.load(robot(link("arm"), link("hand"), joint("shoulder", "base", "arm"), own))
    builder = lw.Builder().link("arm", 1.0, COM, INERTIA).link("hand", 1.0, COM, INERTIA)
    builder.joint("shoulder", lw.Revolute((0.0, 0.0, 1.0)), "ground", "arm")
    damping = [float(number) for number in several.split()]
    pose = lw.pose((0.3, 0.1, 0.0), rpy=(0.2, 0.3, 0.4))
    builder.joint("hook", made, "arm", "hand", pose, damping=damping if len(damping) > 1 else damping[0])
    same = builder.build("r")
    q, v = lw.random_state(same, np.random.default_rng(0))
    assert read.bodies[1].kind == made and not read.notes
    for function in (lw.forward_dynamics, lw.inverse_dynamics):
        np.testing.assert_allclose(function(read, q, v, v), function(same, q, v, v), rtol=1e-12)
    assert read.bodies[1].damping == same.bodies[1].damping


SDF = """<sdf version="1.9"><model name="m"><link name="plate"/><link name="bob"><pose>0.4 0 0.1 0 0 0.3</pose></link>
  <drake:joint name="floor" type="planar"><drake:parent>world</drake:parent><drake:child>plate</drake:child>
    <pose>0 0 0.1 0.2 0 0</pose><drake:damping>0.1 0.2 0.3</drake:damping></drake:joint>
  <joint name="swing" type="ball"><parent>world</parent><child>bob</child></joint>%s</model></sdf>"""


def test_planar_joints_and_ball_constraints_of_drake_in_sdf():
    read = lw.load(SDF % ball("sdf", "plate", "0.1 0.2 0.3", "bob", "0 0.5 0.1"))
    frame = lw.pose((0.0, 0.0, 0.1), rpy=(0.2, 0.0, 0.0))
    builder = lw.Builder().link("mover").link("plate", 1.0, (0, 0, 0), (1.0, 1.0, 1.0))
    builder.link("bob", 1.0, (0, 0, 0), (1.0, 1.0, 1.0))
    builder.joint("floor", lw.Planar(), "ground", "mover", frame, damping=[0.1, 0.2, 0.3])
    builder.joint("on", lw.Fixed(), "mover", "plate", np.linalg.inv(frame))
    builder.joint("swing", lw.Spherical(), "ground", "bob", (turned(0.3), (0.4, 0.0, 0.1)))
    builder.loop("tie", lw.Spherical(), "plate", (EYE, (0.1, 0.2, 0.3)), "bob", (EYE, (0.0, 0.5, 0.1)))
    assert_equal_motions(read, builder.build("m"))
    assert read.bodies[read.body_index("floor")].damping == (0.1, 0.2, 0.3)


@pytest.mark.parametrize("tag", ["tendon_constraint", "linear_bushing_rpy", "linear_spring_damper"])
def test_what_of_drake_does_not_act_is_noted(tag):
    for text in (robot(link("a"), joint("j", "base", "a"), f"<drake:{tag}/>"), SDF % f"<drake:{tag}/>"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (note,) = lw.load(text).notes
        assert note.what == tag and note.constrains == (tag != "linear_spring_damper")


# -- bad files ----------------------------------------------------------------------------------------

BAD = {
    "no such frame": ("closed_loop: [[tip_a, tip_c]]", "no frame 'tip_c': did you mean"),
    "one frame": ("closed_loop: [[tip_a]]", "is no pair of names of frames"),
    "other type": ("closed_loop: [[tip_a, tip_b]]\ntype: [4d]", "neither 3d nor 6d"),
    "types for others": ("closed_loop: [[tip_a, tip_b]]\ntype: [3d, 3d]", "type has one word for each"),
    "unknown joint": ("closed_loop: []\njoint_name: [elbo]\njoint_type: [SPHERICAL]", "did you mean 'elbow'"),
    "unknown joint type": ("closed_loop: []\njoint_name: [elbow]\njoint_type: [UJOINT_XX]", "known: SPHERICAL, FIXED"),
    "joints without types": ("closed_loop: []\njoint_name: [elbow]", "give a type for each"),
    "unknown motor": ("closed_loop: [[tip_a, tip_b]]\nname_mot: [driv]", "did you mean 'drive'"),
    "no hinges": ("closures: []", "closures is a list of hinges"),
    "part of a hinge": ("closures: [{link_a: coupler}]", "closure 1 needs link_a, link_b, point, axis"),
    "axis without direction": (CLOSURES.replace("[0.0, 0.0, 1.0]", "[0, 0, 0]"), "closure 1"),
    "no number": (CLOSURES.replace("[0.0, 0.0, 1.0]", "[a, 0, 0]"), "axis of closure 1"),
    "no such link": (CLOSURES.replace("coupler", "couple"), "did you mean 'coupler'"),
    "neither": ("loops: []", "this has neither"),
    "not YAML": ("closures: [", "this is not YAML"),
    "deep": ("closures: " + "[" * 1500, "this is not YAML"),
    "a list": ("- 1", "this has neither"),
    "an object": ("closures: !!python/object/apply:os.system ['true']", "this is not YAML"),
    "names": (CLOSURES.replace("[elbow, swing]", "elbow"), "dependent is a list of names"),
}


@pytest.mark.parametrize(("yaml", "message"), BAD.values(), ids=BAD)
def test_bad_yaml(tmp_path, yaml, message):
    file, loops = write(tmp_path, yaml, robot(*TREE, *TIPS))
    with pytest.raises(lw.MechanismError) as caught:
        lw.load(file, loops=loops)
    assert message in str(caught.value) and str(loops) in str(caught.value)


def test_other_keys_formats_and_missing_files(tmp_path, monkeypatch):
    file, loops = write(tmp_path, "closed_loop: [[tip_a, tip_b]]\ntype: [3d]\nrotor_mass: [1]\n", robot(*TREE, *TIPS))
    with pytest.warns(lw.MechanismWarning, match="'rotor_mass' is not read"):
        lw.load(file, loops=loops)
    with pytest.raises(FileNotFoundError, match="no file"):
        lw.load(file, loops=tmp_path / "others.yml")
    with pytest.raises(lw.MechanismError, match="belong to URDF files"):
        lw.load(SDF % "", loops=loops)
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ImportError, match=r"pip install 'linkwise\[yaml\]'"):
        lw.load(file, loops=loops)


BAD_TAGS = {
    "body": (ball("urdf", "couple", "0 0 0", "rocker", "0 0 0"), "no link 'couple': did you mean 'coupler'"),
    "no body": ("<drake:ball_constraint/>", "has no <drake:ball_constraint_body_A>"),
    "two numbers": (ball("urdf", "coupler", "0 0", "rocker", "0 0 0"), "must be three numbers"),
    "type": ('<drake:joint name="x" type="curvilinear"><parent link="rocker"/><child link="tip_a"/></drake:joint>',
             "known: ball, planar, screw, universal"),
}  # fmt: skip


@pytest.mark.parametrize(("part", "message"), BAD_TAGS.values(), ids=BAD_TAGS)
def test_bad_tags_of_drake(part, message):
    with pytest.raises(lw.MechanismError, match=message):
        lw.load(robot(*TREE, '<link name="tip_a"/>' if "tip_a" in part else "", part).replace("MIMIC", ""))


# -- in the wild --------------------------------------------------------------------------------------

FOLDERS = [parent / "shared" / "data" / "extended_urdf" for parent in Path(__file__).parents[2:5]]
ROBOTS = next((folder for folder in FOLDERS if folder.is_dir()), None)


@pytest.mark.skipif(ROBOTS is None, reason="the robots of Gepetto are not beside the checkout")
@pytest.mark.parametrize(
    "name",
    [
        "5bar_linkage",
        "robot_delta",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("cassie_like", "digit_like_2legs")),
    ],
)
def test_robots_of_gepetto_against_pinocchio(name):
    """Accelerations against a dense solution with Pinocchio's mass matrix, bias forces and frame Jacobians."""
    pin, yaml = pytest.importorskip("pinocchio"), pytest.importorskip("yaml")
    file = ROBOTS / name / "robot.urdf"
    table = yaml.safe_load(file.with_suffix(".yaml").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mech = lw.load(file, loops=file.with_suffix(".yaml"))
    assert mech.metadata.actuated_joints == tuple(table["name_mot"])
    model = pinocchio_model(pin, pin.buildModelFromUrdf(str(file)), table)
    data = model.createData()
    frames = [[model.frames[model.getFrameId(end)] for end in pair] for pair in table["closed_loop"]]

    def jacobian(q):
        pin.computeJointJacobians(model, data, q)
        sides = [
            [pin.getFrameJacobian(model, data, f.parentJoint, f.placement, pin.ReferenceFrame.LOCAL) for f in pair]
            for pair in frames
        ]
        return np.concatenate([a - b for a, b in sides])

    rng = np.random.default_rng(0)
    q = lw.constraints.assemble(mech, lw.integrate(mech, lw.neutral(mech), 0.2 * rng.normal(size=mech.nv), 1.0))
    q, v = lw.constraints.project(mech, q, rng.normal(size=mech.nv))
    inertias = np.diag(lw.mass_matrix(mech.spanning_tree, q))  # from 1e-11 to 1e5: forces that suit them
    tau = inertias * rng.normal(size=mech.nv)
    there = to_pinocchio(mech, model, q)
    rates, forces = (by_name(mech, model, x) for x in (v, tau))
    G = jacobian(there)
    assert np.abs(G @ rates).max() < 1e-7 * max(1.0, np.abs(rates).max())
    assert np.linalg.matrix_rank(G, tol=1e-7) == mech.nv - lw.constraints.degrees_of_freedom(mech, q)
    step = 1e-5
    ahead, behind = (jacobian(pin.integrate(model, there, s * rates)) @ rates for s in (step, -step))
    M = pin.crba(model, data, there)
    M = np.triu(M) + np.triu(M, 1).T
    bias = pin.nonLinearEffects(model, data, there, rates)
    scale = 1.0 / np.sqrt(np.diag(M))  # of coordinates: masses differ by many powers of ten
    S, A = M * np.outer(scale, scale), G * scale
    free = np.linalg.solve(S, scale * (forces - bias))
    flexibility = A @ np.linalg.solve(S, A.T)
    drift = -(ahead - behind) / (2.0 * step) - A @ free
    multipliers = np.linalg.lstsq(flexibility, drift, rcond=1e-10)[0]
    expected = scale * (free + np.linalg.solve(S, A.T @ multipliers))
    found = by_name(mech, model, lw.forward_dynamics(mech, q, v, tau))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def pinocchio_model(pin, tree, table):
    """The tree with the joints of the YAML file in place of its own."""
    kinds = dict(zip(table.get("joint_name", ()), table.get("joint_type", ()), strict=True))
    model = pin.Model()
    for k in range(1, tree.njoints):
        name = tree.names[k]
        kind = tree.joints[k]
        if name in kinds:
            ball = kinds[name] == "SPHERICAL"
            kind = pin.JointModelSpherical() if ball else pin.JointModelUniversal(np.eye(3)[0], np.eye(3)[1])
        parent = model.getJointId(tree.names[tree.parents[k]])
        index = model.addJoint(parent, kind, tree.jointPlacements[k], name)
        model.appendBodyToJoint(index, tree.inertias[k], pin.SE3.Identity())
    for frame in tree.frames[1:]:
        parent = model.getJointId(tree.names[frame.parentJoint])
        model.addFrame(pin.Frame(frame.name, parent, 0, frame.placement, frame.type), False)
    return model


def by_name(mech, model, values):
    result = np.zeros(model.nv)
    for name in mech.joint_names:
        joint = model.joints[model.getJointId(name)]
        result[joint.idx_v : joint.idx_v + joint.nv] = values[mech.v_index(name)]
    return result


def to_pinocchio(mech, model, q):
    result = np.zeros(model.nq)
    for name in mech.joint_names:
        joint, own = model.joints[model.getJointId(name)], q[mech.q_index(name)]
        if len(own) == 4:
            own = np.roll(own, -1)  # Pinocchio's quaternions end with the real part
        elif joint.nq == 2 and joint.nv == 1:
            own = np.array([np.cos(own[0]), np.sin(own[0])])
        result[joint.idx_q : joint.idx_q + joint.nq] = own
    return result
