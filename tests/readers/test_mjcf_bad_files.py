"""MJCF files that must be refused or reported, and what the message must say."""

import random
import re

import pytest

from linkwise.mechanism import InertiaWarning, MechanismError, MechanismWarning
from linkwise.readers import load

BALL = '<geom size="0.1"/>'
JOINT = f'<body name="a"><joint name="j"/>{BALL}</body>'


def model(bodies=JOINT, head="", tail=""):
    return f"<mujoco>{head}\n<worldbody>{bodies}</worldbody>{tail}</mujoco>"


def body(inside, name="a"):
    return model(f'<body name="{name}">{inside}</body>')


def moving(inside):
    return body(f"<joint/>{inside}")


def equality(inside):
    return model(tail=f"<equality>{inside}</equality>")


LAUGHS = '<!DOCTYPE mujoco [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><mujoco model="&b;"><worldbody/></mujoco>'
EXTERNAL = '<!DOCTYPE mujoco [<!ENTITY x SYSTEM "file:///etc/hostname">]><mujoco model="&x;"><worldbody/></mujoco>'
MANY = "<replicate count='1000'>" * 3 + "<body name='a'/>" + "</replicate>" * 3

TEXTS = {
    "not closed": ("<mujoco>\n<worldbody>\n</mujoco>", "text:3: malformed XML: mismatched tag"),
    "billion laughs": (LAUGHS, "document types and entities are refused"),
    "external entity": (EXTERNAL, "document types and entities are refused"),
    "replicated a billion times": (model(MANY), "makes more than 50000 copies"),
    "replicated at once": (model("<replicate count='1000000000'/>"), "makes more than 50000 copies"),
    "replicated no times": (model("<replicate count='0'/>"), "<replicate>: count must be a whole number from 1 on"),
    "unknown section": (
        model(tail="<actuators/>"),
        "text:2: <actuators>: MuJoCo refuses it: unrecognized element",
    ),
    "unknown element": (moving("<gem/>"), 'text:2: <gem> of <body name="a">: MuJoCo refuses it: unrecognized element'),
    "joint of unknown type": (
        body(f'<joint name="j" type="hing"/>{BALL}'),
        "<joint name=\"j\">: MuJoCo refuses it: invalid keyword: 'hing'",
    ),
    "axis without direction": (
        body(f'<joint axis="0 0 0"/>{BALL}'),
        "<joint> of <body name=.a.>: MuJoCo refuses it: axis too small in joint",
    ),
    "axis of two numbers": (
        body(f'<joint axis="0 1"/>{BALL}'),
        "<joint> of <body name=.a.>: MuJoCo refuses it: attribute 'axis' does not have enough data",
    ),
    "pos is no number": (model('<body pos="0 0 nan"/>'), "pos holds 'nan'; a finite number is needed"),
    "two orientations": (
        model('<body quat="1 0 0 0" euler="0 0 0"/>'),
        "<body>: MuJoCo refuses it: multiple orientation specifiers are not allowed",
    ),
    "quaternion of zeros": (
        model('<body quat="0 0 0 0"/>'),
        "<body>: MuJoCo refuses it: zero quaternion is not allowed",
    ),
    "parallel axes": (model('<body xyaxes="1 0 0 2 0 0"/>'), "<body>: MuJoCo refuses it: error 'yaxis too small'"),
    "free inside": (
        moving(f'{BALL}<body name="b"><freejoint name="f"/>{BALL}</body>'),
        "MuJoCo refuses it: free joint can only be used on top level",
    ),
    "free and more": (
        body(f"<freejoint/><joint/>{BALL}"),
        "<body name=\"a\">: MuJoCo refuses it: more than 6 dofs in body 'a'",
    ),
    "joint of the world": (model("<joint/>" + JOINT), "<joint>: MuJoCo refuses it: World body cannot have joints"),
    "limits without a range": (
        body(f'<joint limited="true"/>{BALL}'),
        r"<joint> of <body name=.a.>: MuJoCo refuses it: range\[0\] should be smaller than range\[1\]",
    ),
    "missing class": (
        body(f'<joint class="leg"/>{BALL}'),
        "of <body name=.a.>: MuJoCo refuses it: unknown default class name 'leg'",
    ),
    "missing childclass": (
        model('<body name="a" childclass="leg"/>'),
        '<body name="a">: MuJoCo refuses it: unknown default childclass',
    ),
    "class without a name": (
        model(head="<default><default/></default>"),
        "text:1: <default>: MuJoCo refuses it: empty class name",
    ),
    "class twice": (
        model(head='<default><default class="x"/><default class="x"/></default>'),
        "text:1: <default>: MuJoCo refuses it: repeated default class name",
    ),
    "main class renamed": (
        model(head='<default class="x"/>'),
        "<default>: MuJoCo refuses it: top-level default class 'main' cannot be renamed",
    ),
    "body twice": (
        model(JOINT + '<body name="a"/>'),
        "<body name=\"a\">: MuJoCo refuses it: repeated name 'a' in body",
    ),
    "body called world": (
        model(JOINT + '<body name="world"/>'),
        "<body name=\"world\">: MuJoCo refuses it: repeated name 'world' in body",
    ),
    "joint twice": (
        model(JOINT + JOINT.replace('"a"', '"b"')),
        "<joint name=\"j\">: MuJoCo refuses it: repeated name 'j' in joint",
    ),
    "two inertials": (
        body("<inertial pos='0 0 0' mass='1'/>" * 2),
        "text:2: <body name=\"a\">: MuJoCo refuses it: unique element 'inertial' found 2 times",
    ),
    "inertial without mass": (
        moving("<inertial pos='0 0 0'/>"),
        "<inertial> of <body name=\"a\">: MuJoCo refuses it: required attribute missing: 'mass'",
    ),
    "inertial without pos": (
        moving("<inertial mass='1'/>"),
        "<inertial> of <body name=\"a\">: MuJoCo refuses it: required attribute missing: 'pos'",
    ),
    "negative mass": (moving("<inertial pos='0 0 0' mass='-1'/>"), "<body name=.a.>: mass=-1 is negative; fix"),
    "negative density": (
        moving("<geom name='g' size='1' density='-2'/>"),
        '<geom name="g">: MuJoCo refuses it: mass, inertia or density are negative',
    ),
    "two inertias": (
        moving("<inertial pos='0 0 0' mass='1' fullinertia='1 1 1 0 0 0' diaginertia='1 1 1'/>"),
        '<body name="a">: MuJoCo refuses it: fullinertia and diagonal inertia cannot both be specified',
    ),
    "geom of unknown type": (
        moving("<geom type='ball' size='1'/>"),
        "<geom> of <body name=.a.>: MuJoCo refuses it: invalid keyword: 'ball'",
    ),
    "geom without size": (moving("<geom name='g'/>"), '<geom name="g">: MuJoCo refuses it: size 0 must be positive'),
    "geom with too few sizes": (
        moving("<geom type='box' size='1 2'/>"),
        "<geom> of <body name=.a.>: MuJoCo refuses it: size 2 must be positive",
    ),
    "sphere along fromto": (
        moving("<geom size='1' fromto='0 0 0 1 1 1'/>"),
        "MuJoCo refuses it: fromto requires capsule, cylinder, box or ellipsoid",
    ),
    "fromto of one point": (
        moving("<geom type='capsule' size='1' fromto='0 0 0 0 0 0'/>"),
        "MuJoCo refuses it: fromto points too close",
    ),
    "pos and fromto": (
        moving("<geom type='capsule' size='1' pos='1 0 0' fromto='0 0 0 1 0 0'/>"),
        "MuJoCo refuses it: both pos and fromto defined",
    ),
    "mesh that is missing": (
        moving("<geom type='mesh' mesh='m'/>"),
        "<geom> of <body name=.a.>: MuJoCo refuses it: mesh 'm' not found",
    ),
    "distance field": (
        moving("<geom name='g' type='sdf'/>"),
        "<geom name=\"g\">: MuJoCo refuses it: mesh geom 'g' .* must have valid meshid",
    ),
    "height field": (
        moving("<geom name='g' type='hfield'/>"),
        '<body name="a">: MuJoCo refuses it: mass and inertia of moving bodies.*give it a geom, or an <inertial>',
    ),
    "hollow mesh": (
        moving("<geom type='mesh' mesh='m' shellinertia='true'/>"),
        "<geom> of <body name=.a.>: MuJoCo refuses it: mesh 'm' not found",
    ),
    "mesh in a text": (
        moving("<geom type='mesh' mesh='m'/>").replace("<worldbody>", "<asset><mesh file='m.stl'/></asset><worldbody>"),
        "<mesh>: 'm.stl' cannot be found, since a text has no folder",
    ),
    "mesh of a builtin shape": (
        moving("<geom type='mesh' mesh='m'/>").replace(
            "<worldbody>", "<asset><mesh name='m' builtin='cone'/></asset><worldbody>"
        ),
        "<mesh name=\"m\">: MuJoCo refuses it: required attribute missing: 'params'$",
    ),
    "mesh with half a scale": (  # whatever the bodies have
        moving("<geom type='mesh' mesh='m'/>").replace(
            "<worldbody>", "<asset><mesh name='m' scale='1 1'/></asset><worldbody>"
        ),
        "<mesh name=\"m\">: MuJoCo refuses it: attribute 'scale' does not have enough data$",
    ),
    "mesh of two corners": (  # whose body has no inertia of its own
        moving("<geom type='mesh' mesh='m'/>").replace(
            "<worldbody>", "<asset><mesh name='m' vertex='0 0 0 1 0 0'/></asset><worldbody>"
        ),
        '<mesh name="m">: MuJoCo refuses it: at least 4 vertices required; give the bodies that use it an <inertial>$',
    ),
    "global coordinates": (
        model(head='<compiler coordinate="global"/>'),
        "text:1: <compiler>: MuJoCo refuses it: global coordinates no longer supported",
    ),
    "bad Euler sequence": (
        model('<body euler="1 2 3"/>', head='<compiler eulerseq="xyw"/>'),
        "MuJoCo refuses it: error 'euler sequence can only contain x, y, z, X, Y, Z'",
    ),
    "angle in grades": (
        model(head='<compiler angle="grade"/>'),
        "<compiler>: MuJoCo refuses it: invalid keyword: 'grade'",
    ),
    "attached model": (
        model(JOINT + "<attach model='m' prefix='p'/>"),
        "<attach>: MuJoCo refuses it: could not find model 'm'",
    ),
    "connect without anchor": (
        equality('<connect body1="a"/>'),
        "<connect>: MuJoCo refuses it: one of .*'anchor'.* must be specified",
    ),
    "unknown body in equality": (
        equality('<connect name="c" body1="b" anchor="0 0 0"/>'),
        "text:2: <connect name=\"c\">: MuJoCo refuses it: unknown element 'b' in equality constraint",
    ),
    "unknown site in equality": (
        equality('<weld site1="s" site2="t"/>'),
        "<weld>: MuJoCo refuses it: unknown element 's' in equality constraint",
    ),
    "unknown joint in equality": (
        equality('<joint joint1="k"/>'),
        "<joint>: MuJoCo refuses it: unknown element 'k' in equality constraint",
    ),
    "unknown equality": (equality("<glue/>"), "<glue>: MuJoCo refuses it: unrecognized element"),
    "mimics itself": (
        equality('<joint joint1="j" joint2="j"/>'),
        "<joint>: MuJoCo refuses it: element 'j' is repeated in equality constraint",
    ),
    "include in a text": (model('<include file="x.xml"/>'), "<include>: 'x.xml' cannot be found, since a text has no"),
    "include from the network": (model('<include file="http://h/x.xml"/>'), "is not a local file"),
    "include from a share": (model('<include file="\\\\h\\x.xml"/>'), "is not a local file"),
}


@pytest.mark.filterwarnings("ignore::linkwise.mechanism.MechanismWarning")
@pytest.mark.parametrize(("text", "message"), TEXTS.values(), ids=TEXTS.keys())
def test_refused(text, message):
    with pytest.raises(MechanismError, match=message) as caught:
        load(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (model(JOINT), "no body is fixed to the world"),
        (
            model(JOINT + "<body name='b'/><body name='c'/>"),
            "the bodies 'b', 'c' are fixed to the world; write <freejoint/>",
        ),
    ],
)
def test_bases_that_cannot_float(text, message):
    with pytest.raises(MechanismError, match=message):
        load(text, floating_base=True)


def test_included_in_a_circle(tmp_path):
    (tmp_path / "a.xml").write_text(model('\n<include file="b.xml"/>'))
    (tmp_path / "b.xml").write_text('<mujocoinclude>\n<include file="b.xml"/></mujocoinclude>')
    with pytest.raises(MechanismError, match="b.xml:2: .*b.xml is included twice, or includes itself"):
        load(tmp_path / "a.xml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<mujocoinclude><geom></mujocoinclude>", "b.xml:1: malformed XML"),
        (b"<!DOCTYPE x []><mujocoinclude/>", "b.xml:1: document types and entities are refused"),
        (b"", "b.xml: the file is empty"),
        (b"<mujocoinclude>\n<include file='nowhere.xml'/></mujocoinclude>", "b.xml:2: <include>: there is no file"),
    ],
)
def test_bad_included_files(tmp_path, content, message):
    (tmp_path / "a.xml").write_text(model('<include file="b.xml"/>'))
    (tmp_path / "b.xml").write_bytes(content)
    with pytest.raises(MechanismError, match=message):
        load(tmp_path / "a.xml")


MESH_FILES = {
    "m.stl": (b"solid ascii", "MuJoCo refuses it: .*invalid header in STL file 'm.stl'.*<inertial>"),
    "m.obj": (b"v 0 0 zero", "at least 4 vertices"),
    "m.msh": (b"\x01\x02", "missing header in MSH file"),
    "m.dae": (b"<COLLADA/>", "no decoder found for mesh file 'm.dae'"),
    "flat.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n", "has coplanar vertices"),
    "few.obj": (b"v 0 0 0\nv 1 0 0\nf 1 2 1\n", "at least 4 vertices"),
    "more.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 1\nf 1 2 9\n", "in face 0, vertex index 8 does not exist"),
}


@pytest.mark.parametrize("name", MESH_FILES)
def test_bad_meshes(tmp_path, name):
    content, message = MESH_FILES[name]
    (tmp_path / name).write_bytes(content)
    file = tmp_path / "model.xml"
    asset = f'<asset><mesh name="m" file="{name}"/></asset>'
    file.write_text(model("<body><joint/><geom type='mesh' mesh='m'/></body>", asset))
    with pytest.raises(MechanismError, match=f'model.xml:1: <mesh name="m">.*{message}'):
        load(file)


# -- reports ------------------------------------------------------------------------------------------


def acted(actuators, tendons=""):
    """A body at the hinge j, with actuators and tendons."""
    return model(
        f'<body><joint name="j"/>{BALL}</body>', tail=f"<tendon>{tendons}</tendon><actuator>{actuators}</actuator>"
    )


REMARKS = {
    "armature of a free body": (
        body(f'<joint type="free" armature="1"/>{BALL}'),
        "not acting: 1 free joint with armature",
    ),
    "misspelt count": (model('<replicate count="2" offsets="1 0 0"><body/></replicate>'), "attribute 'offsets'"),
}


SLIPS = {
    "misspelt armature": (
        body(f'<joint name="j" armatur="1"/>{BALL}'),
        "<joint name=\"j\">: MuJoCo refuses it: unrecognized attribute: 'armatur'",
    ),
    "misspelt setting": (
        model(head='<compiler angel="radian"/>'),
        "<compiler>: MuJoCo refuses it: unrecognized attribute: 'angel'",
    ),
    "misspelt default": (
        model(head='<default><geom densty="1"/></default>'),
        "<geom>: MuJoCo refuses it: unrecognized attribute: 'densty'",
    ),
    "misspelt gear": (
        acted('<motor joint="j" geer="2"/>'),
        "<motor>: MuJoCo refuses it: unrecognized attribute: 'geer'",
    ),
    "misspelt range": (
        acted('<general joint="j" ctrlrang="-1 1"/>'),
        "<general>: MuJoCo refuses it: unrecognized attribute: 'ctrlrang'",
    ),
    "stiff motor": (acted('<motor joint="j" kp="3"/>'), "<motor>: MuJoCo refuses it: unrecognized attribute: 'kp'"),
    "misspelt default of actuators": (
        model(head='<default><motor geer="1"/></default>'),
        "<motor>: MuJoCo refuses it: unrecognized attribute: 'geer'",
    ),
    "misspelt tendon": (
        acted("", '<fixed stifness="1"><joint joint="j" coef="1"/></fixed>'),
        "<fixed>: MuJoCo refuses it: unrecognized attribute: 'stifness'",
    ),
    "misspelt arm": (
        acted("", '<fixed><joint joint="j" coef="1" coeff="1"/></fixed>'),
        "<joint>: MuJoCo refuses it: unrecognized attribute: 'coeff'",
    ),
    "misspelt tie": (
        equality('<joint joint1="j" polycoeff="1"/>'),
        "<joint>: MuJoCo refuses it: unrecognized attribute: 'polycoeff'",
    ),
    "nothing that moves": (
        body("<joint name='j'/>"),
        '<body name="a">: MuJoCo refuses it: mass and inertia of moving bodies.*give it a geom, or an <inertial>',
    ),
}


@pytest.mark.parametrize(("text", "message"), SLIPS.values(), ids=SLIPS.keys())
def test_slips_are_refused(text, message):
    with pytest.raises(MechanismError, match=f"^text:[12]: .*{message}"):
        load(text)


@pytest.mark.parametrize(("text", "message"), REMARKS.values(), ids=REMARKS.keys())
def test_what_is_read_otherwise_than_meant_is_reported(text, message):
    with pytest.warns(MechanismWarning, match=message):
        load(text)


def test_one_slip_in_many_places_is_reported_once():
    frames = "".join(f'<frame name="f{i}" poss="1 0 0"/>' for i in range(5))
    with pytest.warns(MechanismWarning, match="'poss'.*did you mean") as caught:
        load(model(JOINT + frames))
    (slips,) = (str(one.message) for one in caught if "poss" in str(one.message))
    assert 'text:2: <frame name="f0"> has the unknown' in slips and "(and 4 more: " in slips and '"f4"' in slips


def test_moments_that_no_body_has_are_kept_and_reported():
    with pytest.warns(InertiaWarning, match="'a': its principal moments 1, 2, 9 break the triangle inequality"):
        mech = load(moving("<inertial pos='0 0 0' mass='1' diaginertia='1 2 9'/>"))
    assert mech.bodies[0].inertia.diagonal().tolist() == [1, 2, 9]


@pytest.mark.filterwarnings("error")
def test_what_is_no_mechanics_is_skipped_in_silence():
    tail = (
        "<contact><exclude body1='a' body2='world'/></contact><size nkey='1'/><keyframe><key qpos='1'/></keyframe>"
        "<statistic extent='1'/><visual><map znear='1'/></visual><custom><numeric name='n' data='1'/></custom>"
        "<tendon><fixed name='t'><joint joint='j' coef='1'/></fixed></tendon><extension/>"
        "<deformable><skin name='s' file='nowhere.skn'/></deformable>"
    )
    inside = "<camera/><light/><site/><site name='tip' type='box' size='1 1 1'/>"
    plane = '<geom type="plane" size="1 1 1" contype="0" conaffinity="0"/>'
    mech = load(model(f'{plane}<body name="a"><joint name="j"/>{BALL}{inside}</body>', tail=tail))
    assert tuple(mech.frames) == ("ground", "world", "a", "tip") and not mech.notes


# -- mutations ----------------------------------------------------------------------------------------

SOUND = """<mujoco><compiler angle="radian" eulerseq="XYZ"/><option gravity="0 0 -1"/>
  <default><joint armature="0.1"/><default class="c"><geom type="box" size="0.1 0.2 0.3"/></default></default>
  <asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" inertia="convex" scale="1 1 2"/></asset>
  <worldbody><frame pos="1 0 0" euler="1 2 3"><body name="a" childclass="c"><joint name="j" ref="0.3" range="0 1"/>
    <joint name="k" type="slide" axis="1 0 0" pos="0 1 0"/><geom/><geom type="mesh" mesh="m"/>
    <site name="s" zaxis="1 0 0"/>
    <body name="b" axisangle="0 0 1 2"><joint type="ball"/><inertial pos="0 0 0" mass="1" fullinertia="1 1 1 0 0 0"/>
    </body></body></frame>
    <replicate count="3" offset="1 0 0" sep="-"><body name="r"><freejoint name="f"/>
      <geom type="capsule" size="0.1" fromto="0 0 0 1 1 1"/></body></replicate></worldbody>
  <equality><connect body1="b" anchor="0 0 1"/><weld body1="a" body2="r-1" relpose="0 0 0 1 0 0 0"/>
    <joint joint1="k" joint2="j" polycoef="0 2"/></equality></mujoco>"""
JUNK = (
    "",
    "nan",
    "inf",
    "-1",
    "0",
    "1e308",
    "1e-308",
    "x",
    "true",
    "1 2",
    "0 0 0",
    "1 2 3 4 5 6 7 8",
    "ground",
    "world",
)


def mutated(seed):
    rng, text = random.Random(seed), SOUND
    for _ in range(rng.choice((1, 1, 2, 3))):
        attribute, other = (rng.choice(list(re.finditer(r'(\w+)="([^"]*)"', text))) for _ in range(2))
        element = rng.choice(list(re.finditer(r"<(\w+)[^<>]*/>", text)))
        start, end, new = rng.choice(
            [
                (*attribute.span(2), rng.choice(JUNK)),
                (*attribute.span(1), other[1]),
                (*attribute.span(2), other[2]),
                (*element.span(), ""),
                (*element.span(), element[0] * 2),
                (*element.span(1), rng.choice(("body", "geom", "site", "joint", "inertial", "frame"))),
            ]
        )
        text = text[:start] + new + text[end:]
    return text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_damaged_files_are_read_or_refused_with_a_line(count):
    load(SOUND)
    read = 0
    for seed in range(count):
        try:
            load(mutated(seed))
            read += 1
        except MechanismError as error:
            assert str(error).startswith("text:") and "\n" not in str(error)
    assert 0 < read < count
