"""Loops and couplings of URDF+: what they become, and motions against Pinocchio's tree with constraints by hand."""

import json
import pickle
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import Mimic, from_data, to_data

pin = pytest.importorskip("pinocchio")


def link(name, mass=1.0, com="0.1 0.02 0.03", inertia=(0.02, 0.03, 0.04), product=0.001):
    xx, yy, zz = inertia
    return f"""<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/>
      <inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="{product}" ixz="{-product}" iyz="{product}"/></inertial></link>"""


def rotor(name):
    return link(name, mass=0, com="0 0 0", inertia=(0.003, 0.003, 0.004), product=0.0)


def joint(name, parent, child, xyz="0 0 0", axis="0 0 1", more="", kind="continuous", inside=""):
    return f"""<joint name="{name}" type="{kind}" {more}><parent link="{parent}"/><child link="{child}"/>
      <origin xyz="{xyz}"/><axis xyz="{axis}"/>{inside}</joint>"""


def loop(a, at_a, b, at_b, name="pin", kind="revolute", inside='<axis xyz="0 0 1"/>'):
    return f"""<loop name="{name}" type="{kind}"><predecessor link="{a}"><origin xyz="{at_a}"/></predecessor>
      <successor link="{b}"><origin xyz="{at_b}"/></successor>{inside}</loop>"""


def coupling(a, b, ratio, name="gear"):
    return f"""<coupling name="{name}" type="rolling"><predecessor link="{a}"/><successor link="{b}"/>
      <ratio value="{ratio}"/></coupling>"""


def robot(*parts):
    return '<robot name="r"><link name="base"/>' + "\n".join(parts) + "</robot>"


DEPENDENT, INDEPENDENT = 'independent="false"', 'independent="true"'
FOUR_BAR_TREE = (
    *(link("crank"), link("coupler"), link("rocker")),
    joint("drive", "base", "crank", more=INDEPENDENT),
    joint("elbow", "crank", "coupler", "0.3 0 0", more=DEPENDENT),
    joint("swing", "base", "rocker", "0.7 0.1 0", more=DEPENDENT),
)
FOUR_BAR = robot(*FOUR_BAR_TREE, loop("coupler", "0.6 0 0", "rocker", "0.5 0 0"))
SIX_BAR = robot(
    *(link("upper"), link("fore"), link("hand"), link("thigh"), link("shin")),
    joint("a", "base", "upper"),
    joint("b", "upper", "fore", "0.2 0 0"),
    joint("c", "fore", "hand", "0.25 0 0"),
    joint("d", "base", "thigh", "0.1 0 0", more=DEPENDENT),
    joint("e", "thigh", "shin", "0.4 0 0", more=DEPENDENT),
    loop("hand", "0.3 0 0", "shin", "0.35 0 0"),
)
SPATIAL = robot(  # a crank drives a rocker about another axis by a rod with joints that rotate both ways
    *(link("crank"), link("cross", com="0 0 0"), link("rod"), link("rocker")),
    joint("drive", "base", "crank"),
    joint("pitch", "crank", "cross", "0.2 0 0", "0 1 0", more=DEPENDENT),
    joint("yaw", "cross", "rod", axis="0 0 1", more=DEPENDENT),
    joint("swing", "base", "rocker", "0.6 0.1 0.2", "0.6 0.8 0", more=DEPENDENT),
    loop("rod", "0.55 0 0", "rocker", "0.1 0 0.3", kind="spherical", inside=""),
)
ROTOR_CHAIN = robot(
    *(link("one"), rotor("rotor1"), link("two"), rotor("rotor2")),
    joint("shoulder", "base", "one", axis="0 1 0"),
    joint("motor1", "base", "rotor1", axis="0 1 0", more=DEPENDENT),
    joint("elbow", "one", "two", "0.4 0 0", axis="0 0.6 0.8"),
    joint("motor2", "one", "rotor2", "0.4 0 0", axis="0 0.6 0.8", more=DEPENDENT),
    coupling("one", "rotor1", 6.0, "gear1"),
    coupling("two", "rotor2", -7.5, "gear2"),
)
BELT_LEG = robot(  # both motors sit at the hip: the belt of the knee runs over the hip's axis
    *(link("abduct"), link("thigh"), rotor("hip_rotor"), link("shank"), rotor("knee_rotor")),
    joint("roll", "base", "abduct", axis="1 0 0"),
    joint("hip", "abduct", "thigh", "0 0.06 0", "0 -1 0"),
    joint("hip_motor", "abduct", "hip_rotor", "0 0.06 0", "0 -1 0", more=DEPENDENT),
    joint("knee", "thigh", "shank", "0 0 -0.2", "0 -1 0"),
    joint("knee_motor", "abduct", "knee_rotor", "0 0.06 0", "0 -1 0", more=DEPENDENT),
    coupling("thigh", "hip_rotor", 6.0, "hip_gear"),
    coupling("shank", "knee_rotor", 9.0, "knee_belt"),
)


def loaded(text, **options):
    """The mechanism; warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return lw.load(text, **options)


# -- what they become ---------------------------------------------------------------------------------


def test_a_loop_is_a_loop_of_the_mechanism():
    tree = loaded(robot(*FOUR_BAR_TREE))
    made = lw.constraints.Loop("pin", lw.Revolute((0, 0, 1)), "coupler", (0.6, 0, 0), "rocker", (0.5, 0, 0))
    mech = loaded(FOUR_BAR)
    assert mech == tree.with_loops(made) and mech.n_constraints == 5
    assert mech.metadata.independent_joints == ("drive",) and not mech.notes


KINDS = {
    "continuous": lw.Revolute((0, 0, 1)),
    "prismatic": lw.Prismatic((0, 0, 1)),
    "planar": lw.Planar((0, 0, 1)),
    "fixed": lw.Fixed(),
    "spherical": lw.Spherical(),
    "ball": lw.Spherical(),
}


@pytest.mark.parametrize(("kind", "made"), KINDS.items())
def test_every_joint_that_can_close_a_loop(kind, made):
    turned = '<predecessor link="coupler"><origin xyz="0.6 0 0" rpy="0.3 0 0"/>'
    text = FOUR_BAR.replace('type="revolute"', f'type="{kind}"')
    text = text.replace('<predecessor link="coupler"><origin xyz="0.6 0 0"/>', turned)
    (found,) = loaded(text).loops
    assert found.kind == made
    assert np.allclose(found.pose_a[0], [[1, 0, 0], [0, np.cos(0.3), -np.sin(0.3)], [0, np.sin(0.3), np.cos(0.3)]])


def test_a_coupling_of_two_joints_is_a_mimic_joint():
    """The successor moves ``ratio`` times as far as the predecessor."""
    mech = loaded(ROTOR_CHAIN)
    rules = {body.joint: body.mimic for body in mech.bodies}
    assert rules == {"shoulder": None, "motor1": Mimic("shoulder", 6.0), "elbow": None, "motor2": Mimic("elbow", -7.5)}
    assert mech.nv == 2 and not mech.loops and mech.metadata.independent_joints == ("shoulder", "elbow")
    with pytest.warns(lw.files.InertiaWarning, match="inertia but no mass"):  # what nothing drives is no rotor
        free = lw.load(ROTOR_CHAIN, mimic=False)
    assert free.nv == 4 and not free.coordinates.mimic_joints and not free.loops


def test_the_joint_that_is_not_independent_mimics_the_other():
    text = ROTOR_CHAIN.replace(DEPENDENT, INDEPENDENT).replace('name="shoulder" type="continuous"', r"\g")
    text = text.replace(r"\g", f'name="shoulder" type="continuous" {DEPENDENT}')
    mech = loaded(text)
    assert mech.bodies[mech.body_index("shoulder")].mimic == Mimic("motor1", 1 / 6.0)
    assert mech.bodies[mech.body_index("motor2")].mimic == Mimic("elbow", -7.5)  # both say so: the successor
    unsaid = loaded(ROTOR_CHAIN.replace(DEPENDENT, ""))
    assert unsaid == loaded(ROTOR_CHAIN) and unsaid.metadata.independent_joints is None


def test_a_belt_over_several_joints_is_a_coupling():
    mech = loaded(BELT_LEG)
    assert mech.loops == (lw.constraints.Coupling("knee_belt", {"hip": 9.0, "knee": 9.0, "knee_motor": -1.0}),)
    assert mech.coordinates.mimic_joints == ("hip_motor",) and mech.n_constraints == 1
    assert "1 mimic joint, 1 coupling" in repr(mech)
    q = np.array([0.1, 0.2, -0.5, 9.0 * (0.2 - 0.5)])
    assert lw.constraints.position_error(mech, q).tolist() == pytest.approx([0.0], abs=1e-12)
    with pytest.warns(lw.files.InertiaWarning):
        assert not lw.load(BELT_LEG, mimic=False).loops


def test_joints_on_one_side_only_keep_a_link_parallel():
    """A parallelogram of belts: the foot does not rotate against the base."""
    text = robot(
        *(link("thigh"), link("foot")),
        joint("hip", "base", "thigh"),
        joint("ankle", "thigh", "foot", "0.4 0 0"),
        coupling("base", "foot", 1.0),
    )
    (belt,) = loaded(text).loops
    assert dict(belt.ratios) == {"hip": -1.0, "ankle": -1.0}
    with pytest.warns(lw.MechanismWarning, match="holds joint 'hip' at zero: one of its links carries the other"):
        held = lw.load(text.replace('successor link="foot"', 'successor link="thigh"'))
    assert lw.constraints.degrees_of_freedom(held, np.zeros(2)) == 1


def test_couplings_in_a_chain_and_in_a_circle():
    """Chains are composed; a coupling between joints that are tied already is a constraint, here a redundant one."""
    rotors = (joint(f"j{i}", "base", f"r{i}") for i in range(3))
    parts = [
        *(rotor(f"r{i}") for i in range(3)),
        *rotors,
        coupling("r0", "r1", 2.0, "a"),
        coupling("r1", "r2", 3.0, "b"),
    ]
    mech = loaded(robot(*parts))
    assert mech.bodies[2].mimic == Mimic("j0", 6.0) and mech.nv == 1
    backwards = [*parts[:-2], coupling("r1", "r0", 0.5, "a"), coupling("r2", "r1", 1 / 3, "b")]
    assert [body.mimic for body in loaded(robot(*backwards)).bodies] == [Mimic("j2", 0.5 / 3), Mimic("j2", 1 / 3), None]
    contradicting = loaded(robot(*parts, coupling("r0", "r2", 5.0, "c")))
    assert dict(contradicting.loops[0].ratios) == {"j0": 5.0, "j2": -1.0}
    assert lw.constraints.degrees_of_freedom(contradicting, [0.0]) == 0
    with pytest.raises(lw.MechanismError, match="coupling 'c' of 'j0', 'j2' constrains nothing"):
        loaded(robot(*parts, coupling("r0", "r2", 6.0, "c")))


def test_the_fixed_world_under_any_name():
    ground = FOUR_BAR.replace('"base"', '"ground"').replace('predecessor link="coupler"', 'predecessor link="ground"')
    assert loaded(ground).loops[0].link_a == "ground"
    with pytest.warns(lw.MechanismWarning, match="is read as 'ground_link'"):
        assert lw.load(ground, floating_base=True).loops[0].link_a == "ground_link"


@pytest.mark.parametrize("text", [FOUR_BAR, SIX_BAR, ROTOR_CHAIN, BELT_LEG])
def test_nothing_is_lost_on_the_way_to_a_file_and_back(text):
    mech = loaded(text)
    for again in (from_data(json.loads(json.dumps(to_data(mech)))), pickle.loads(pickle.dumps(mech))):
        assert (
            again == mech
            and again.loops == mech.loops
            and again.metadata.independent_joints == mech.metadata.independent_joints
        )


def test_linear_models_have_the_independent_coordinates_of_the_file():
    mech = loaded(FOUR_BAR)
    q = lw.constraints.assemble(mech, [0.8, -0.5, 1.2])
    assert lw.linearize(mech, q).independent == ("drive",)
    other = loaded(FOUR_BAR.replace(DEPENDENT, "").replace(INDEPENDENT, DEPENDENT))
    assert other.metadata.independent_joints == ("elbow", "swing")  # one too many: others are chosen
    assert len(lw.linearize(other, q).independent) == 1


def test_a_floating_base_is_independent():
    mech = loaded(FOUR_BAR.replace('<link name="base"/>', link("base")), floating_base=True)
    assert mech.metadata.independent_joints == ("floating_base", "drive")
    q = lw.constraints.assemble(mech, [*lw.neutral(mech)[:7], 0.8, -0.5, 1.2])
    assert lw.linearize(mech, q).independent[-1] == "drive" and len(lw.linearize(mech, q).independent) == 7


def test_what_of_loops_and_couplings_is_not_read_is_noted():
    more = FOUR_BAR.replace("</loop>", '<limit lower="0" upper="1"/><dynamics damping="1"/></loop>')
    with pytest.warns(lw.files.OmissionWarning, match="not acting: 1 loop with limit, 1 loop with dynamics"):
        assert lw.load(more).loops == loaded(FOUR_BAR).loops
    with pytest.warns(lw.files.OmissionWarning, match="not acting: 2 couplings with offset"):
        lw.load(BELT_LEG.replace("</coupling>", '<offset value="1"/></coupling>'))


# -- motions against Pinocchio ------------------------------------------------------------------------


class Tree:
    """The tree of a file as Pinocchio reads it, which does not look at loops and couplings."""

    def __init__(self, text, q, v):
        self.model = pin.buildModelFromXML(text)
        self.data = self.model.createData()
        self.names = list(self.model.names)[1:]
        self.q, self.v = (np.array([values[name] for name in self.names]) for values in (q, v))
        full = [x for joint, x in zip(self.model.joints[1:], self.q, strict=True) for x in self._coordinates(joint, x)]
        self.mass = pin.crba(self.model, self.data, np.array(full))
        self.mass = np.triu(self.mass) + np.triu(self.mass, 1).T
        self.bias = pin.nonLinearEffects(self.model, self.data, np.array(full), self.v)
        pin.computeJointJacobians(self.model, self.data, np.array(full))
        pin.forwardKinematics(self.model, self.data, np.array(full), self.v, 0.0 * self.v)

    @staticmethod
    def _coordinates(joint, x):
        return (np.cos(x), np.sin(x)) if joint.nq == 2 else (x,)

    def point(self, name, at):
        """Position, Jacobian and acceleration without joint accelerations of a point fixed to a link, in the world."""
        frame = self.model.getFrameId(name)
        placement = pin.updateFramePlacement(self.model, self.data, frame)
        arm = placement.rotation @ np.array(at)
        axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        jacobian = pin.getFrameJacobian(self.model, self.data, frame, axes)
        cross = np.cross(arm, np.eye(3)).T  # arm x omega
        omega = jacobian[3:] @ self.v
        drift = pin.getFrameClassicalAcceleration(self.model, self.data, frame, axes)
        bias = drift.linear + np.cross(drift.angular, arm) + np.cross(omega, np.cross(omega, arm))
        return placement.translation + arm, jacobian[:3] - cross @ jacobian[3:], bias

    def accelerations(self, tau, rows, bias):
        """Lagrange multipliers, as they are in every book; redundant rows do not matter."""
        force = np.array([tau.get(name, 0.0) for name in self.names])
        rows = np.atleast_2d(rows)
        whole = np.block([[self.mass, rows.T], [rows, np.zeros((len(rows),) * 2)]])
        found = np.linalg.lstsq(whole, np.concatenate([force - self.bias, -np.atleast_1d(bias)]), rcond=1e-12)[0]
        return dict(zip(self.names, found, strict=False))

    def row(self, **ratios):
        return [ratios.get(name, 0.0) for name in self.names]


def by_joint(mech, vector):
    """The numbers of v-like vectors of all joints with one coordinate, mimic joints included."""
    return {name: float(mech.coordinates.place(name).velocities(vector)[0]) for name in mech.joint_names}


def positions(mech, q):
    return {name: float(mech.coordinates.place(name).positions(q)[0]) for name in mech.joint_names}


@pytest.mark.parametrize(
    ("text", "a", "at_a", "b", "at_b"),
    [
        (FOUR_BAR, "coupler", (0.6, 0, 0), "rocker", (0.5, 0, 0)),
        (SIX_BAR, "hand", (0.3, 0, 0), "shin", (0.35, 0, 0)),
        (SPATIAL, "rod", (0.55, 0, 0), "rocker", (0.1, 0, 0.3)),
    ],
    ids=["four-bar", "six-bar", "spatial"],
)
def test_closed_chains_move_as_pinocchio_says(text, a, at_a, b, at_b):
    """Of what a revolute joint demands in planar chains, that its two sides meet is all that is not redundant."""
    mech = loaded(text, gravity=(0.0, -9.81, 0.0))
    rng = np.random.default_rng(1)
    q = lw.constraints.assemble(mech, rng.normal(0.0, 0.4, mech.nq) + 0.5)
    q, v = lw.constraints.project(mech, q, rng.normal(size=mech.nv))
    tau = rng.normal(size=mech.nv)
    tree = Tree(text, positions(mech, q), by_joint(mech, v))
    tree.bias += _other_gravity(tree, (0.0, -9.81, 0.0))
    (here, rows_a, bias_a), (there, rows_b, bias_b) = tree.point(a, at_a), tree.point(b, at_b)
    assert np.allclose(here, there, atol=1e-10) and np.allclose((rows_a - rows_b) @ tree.v, 0.0, atol=1e-10)
    expected = tree.accelerations(by_joint(mech, tau), rows_a - rows_b, bias_a - bias_b)
    found = by_joint(mech, lw.forward_dynamics(mech, q, v, tau))
    assert np.linalg.norm(v) > 0.1 and found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def _other_gravity(tree, gravity):
    """What changes in the bias if gravity acts in this direction instead of along -z."""
    full = np.array([x for name, x in zip(tree.names, tree.q, strict=True) for x in (np.cos(x), np.sin(x))])
    before = pin.computeGeneralizedGravity(tree.model, tree.data, full).copy()
    tree.model.gravity.linear = np.array(gravity)
    return pin.computeGeneralizedGravity(tree.model, tree.data, full) - before


def test_geared_rotors_without_mass_move_as_pinocchio_says():
    mech = loaded(ROTOR_CHAIN)
    rng = np.random.default_rng(2)
    q, v = rng.normal(size=2), rng.normal(size=2)
    tree = Tree(ROTOR_CHAIN, positions(mech, q), by_joint(mech, v))
    rows = [tree.row(shoulder=6.0, motor1=-1.0), tree.row(elbow=-7.5, motor2=-1.0)]
    expected = tree.accelerations({"shoulder": 0.7, "elbow": -0.3}, rows, np.zeros(2))
    found = by_joint(mech, lw.forward_dynamics(mech, q, v, [0.7, -0.3]))
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("method", ["svd", "lagrange", "partitioning"])
def test_a_leg_with_belts_moves_as_pinocchio_says(method):
    mech = loaded(BELT_LEG)
    rng = np.random.default_rng(3)
    q, v = (np.append(x, 9.0 * (x[1] + x[2])) for x in rng.normal(size=(2, 3)))
    tau = {"roll": 0.3, "hip": 1.0, "knee": -0.4, "knee_motor": 0.2}
    tree = Tree(BELT_LEG, positions(mech, q), by_joint(mech, v))
    rows = [tree.row(hip=6.0, hip_motor=-1.0), tree.row(hip=9.0, knee=9.0, knee_motor=-1.0)]
    expected = tree.accelerations(tau, rows, np.zeros(2))
    found = lw.forward_dynamics(mech, q, v, list(tau.values()), method=method)
    assert by_joint(mech, found) == pytest.approx(expected, rel=1e-9)


# -- what is wrong ------------------------------------------------------------------------------------

WRONG = {
    "no name": (FOUR_BAR.replace('loop name="pin"', "loop"), '<loop> needs the attribute name="..."'),
    "no type": (FOUR_BAR.replace('type="revolute"', ""), 'needs the attribute type="..."'),
    "unknown type": (
        FOUR_BAR.replace('type="revolute"', 'type="hinge"'),
        "<loop name=\"pin\"> has the unknown type 'hinge'; known: revolute, continuous, prismatic, planar, fixed, ",
    ),
    "free": (FOUR_BAR.replace('type="revolute"', 'type="floating"'), "has the unknown type 'floating'; known: rev"),
    "no successor": (
        robot(*FOUR_BAR_TREE, '<loop name="pin" type="fixed"><predecessor link="rocker"/></loop>'),
        '<loop name="pin"> has no <successor>: write <successor link="..."/> in it',
    ),
    "unknown link": (
        FOUR_BAR.replace('predecessor link="coupler"', 'predecessor link="couplr"'),
        "its predecessor link 'couplr' does not exist: did you mean 'coupler'",
    ),
    "origin of the loop": (
        FOUR_BAR.replace("</loop>", '<origin xyz="1 0 0"/></loop>'),
        "write its <origin> inside <predecessor> and <successor>",
    ),
    "no direction": (FOUR_BAR.replace('<axis xyz="0 0 1"/></loop>', '<axis xyz="0 0 0"/></loop>'), "has no direction"),
    "one body": (
        robot(*FOUR_BAR_TREE, loop("rocker", "0 0 0", "rocker", "0 0 0")),
        "loop 'pin': 'rocker' and 'rocker' are parts of the same rigid body",
    ),
    "two loops": (
        FOUR_BAR.replace("</robot>", loop("crank", "0 0 0", "rocker", "0 0 0") + "</robot>"),
        "there are two loops named 'pin'",
    ),
    "independent": (FOUR_BAR.replace(DEPENDENT, 'independent="no"'), 'independent="no" must be "true" or "false"'),
    "type of a coupling": (BELT_LEG.replace("rolling", "cable"), "has the unknown type 'cable'; known: rolling"),
    "no ratio": (BELT_LEG.replace('<ratio value="9.0"/>', "<ratio/>"), 'needs the attribute value="..."'),
    "ratio zero": (BELT_LEG.replace('value="9.0"', 'value="0"'), "a ratio of 0 couples nothing; give"),
    "coupling of one body": (
        BELT_LEG.replace('successor link="knee_rotor"', 'successor link="shank"'),
        "both its links are parts of one rigid body; name links that move",
    ),
    "coupling over a free joint": (
        BELT_LEG.replace('name="hip" type="continuous"', 'name="hip" type="floating"'),
        '<coupling name="hip_gear">: <joint name="hip"> between its links is floating, and has not one coordinate',
    ),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_with_its_line(text, message):
    with pytest.raises(lw.MechanismError) as error:
        lw.load(text)
    assert message in str(error.value) and str(error.value).startswith("text")


def test_slips_are_reported():
    with pytest.warns(lw.MechanismWarning, match="has no <axis>, so that it is x of its frame on the predecessor"):
        assert lw.load(FOUR_BAR.replace('<axis xyz="0 0 1"/></loop>', "</loop>")).loops[0].kind == lw.Revolute(
            (1, 0, 0)
        )
    with pytest.warns(lw.MechanismWarning, match="unknown attribute 'indepedent'.*did you mean 'independent'"):
        lw.load(FOUR_BAR.replace(INDEPENDENT, 'indepedent="true"'))
    with pytest.warns(lw.MechanismWarning, match="unknown element 'ration', .* did you mean 'ratio'"):
        lw.load(BELT_LEG.replace('<ratio value="9.0"/>', '<ration value="9"/>'))
