"""Masses in MJCF: given, from shapes, from meshes, and what the compiler's settings make of them."""

import numpy as np
import pytest

from linkwise.readers import load
from tests.readers.mujoco_oracle import Pair

SHAPES = {
    "sphere": 'type="sphere" size="0.3"',
    "capsule": 'type="capsule" size="0.2 0.5"',
    "cylinder": 'type="cylinder" size="0.2 0.5"',
    "ellipsoid": 'type="ellipsoid" size="0.2 0.3 0.5"',
    "box": 'type="box" size="0.2 0.3 0.5"',
    "capsule along fromto": 'type="capsule" size="0.1" fromto="0 0 0 0.3 0.4 0.5"',
    "cylinder against z": 'type="cylinder" size="0.1" fromto="0 0 0 0 0 0.5"',
    "box along fromto": 'type="box" size="0.1" fromto="0.1 0 0 0.3 -0.4 0.5"',
    "ellipsoid along fromto": 'type="ellipsoid" size="0.1" fromto="0.1 0 0 0.3 -0.4 0.5"',
}


def one_body(inside, head="", tail=""):
    return f'<mujoco>{head}<worldbody><body name="b"><freejoint/>{inside}</body></worldbody>{tail}</mujoco>'


def assert_same_mass(text_or_path, tolerance=1e-12):
    pair = Pair(text_or_path)
    by_name = {body.link: body for body in pair.mech.bodies}
    for index in range(1, pair.model.nbody):
        body = by_name[pair.model.body(index).name]
        assert body.mass == pytest.approx(pair.model.body_mass[index], rel=1e-12)
        np.testing.assert_allclose(body.com, pair.model.body_ipos[index], rtol=0, atol=1e-7 * tolerance**0.5)
        expected = pair.body_inertia(index)
        np.testing.assert_allclose(body.inertia, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    return pair


@pytest.mark.parametrize(
    "how", ["", 'density="700"', 'mass="3"', 'shellinertia="true"', 'shellinertia="true" mass="2"']
)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_shapes(shape, how):
    # The hollow ellipsoid is a difference of two nearly equal ones in MuJoCo: 1e-6 thick, and rounded.
    hollow = "shell" in how and "ellipsoid" in shape
    turned = "" if "fromto" in shape else 'pos="0.1 0.2 0.3" euler="10 20 30"'
    assert_same_mass(one_body(f"<geom {shape} {how} {turned}/>"), 1e-5 if hollow else 1e-12)


def test_a_hollow_ellipsoid_is_a_thin_layer_of_even_thickness_along_its_axes():
    (body,) = load(one_body('<geom type="ellipsoid" size="0.2 0.3 0.5" mass="1" shellinertia="true"/>')).bodies
    s, t = np.array([0.2, 0.3, 0.5]), 1e-5
    volumes = [np.prod(x) for x in (s - t, s + t)]
    squares = [volume * x**2 / 5 for volume, x in zip(volumes, (s - t, s + t), strict=True)]
    mean = (squares[1] - squares[0]) / (volumes[1] - volumes[0])
    # MuJoCo's is the difference of two ellipsoids, which rounding leaves six digits of.
    np.testing.assert_allclose(np.diag(body.inertia), mean.sum() - mean, rtol=1e-5)


def test_several_geoms_and_groups():
    geoms = (
        '<geom type="box" size="0.1 0.2 0.3" pos="1 0 0" euler="10 0 0"/><geom size="0.2" group="3"/>'
        '<geom type="capsule" size="0.1 0.2" pos="0 1 0" group="2"/><geom size="9" group="4" density="0"/>'
    )
    assert_same_mass(one_body(geoms))
    pair = assert_same_mass(one_body(geoms, '<compiler inertiagrouprange="2 3"/>'))
    assert len({load(one_body(geoms)).bodies[0].mass, pair.mech.bodies[0].mass}) == 2


@pytest.mark.parametrize("setting", ["true", "auto"])
def test_geoms_against_inertial(setting):
    inertial = '<inertial pos="1 2 3" mass="4" diaginertia="5 6 7" quat="1 2 3 4"/>'
    pair = assert_same_mass(
        one_body(f'{inertial}<geom size="0.1"/>', f'<compiler inertiafromgeom="{setting}"/>'), 1e-12
    )
    assert (pair.mech.bodies[0].mass == 4.0) == (setting == "auto")


COMPILERS = [
    "settotalmass='9'",
    "boundmass='5'",
    "boundinertia='0.1'",
    "balanceinertia='true'",
    "balanceinertia='false'",
]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_compiler_changes_masses(compiler):
    moments = "1 2 9" if "true" in compiler else "1 2 2.5"
    text = (
        f"<mujoco><compiler {compiler}/><worldbody><body name='a'><joint/>"
        f"<inertial pos='1 2 3' mass='2' diaginertia='{moments}' euler='10 20 30'/>"
        "<body name='b'><joint/><geom type='box' size='0.1 0.2 0.3' pos='1 2 3' euler='20 30 40'/></body>"
        "</body></worldbody></mujoco>"
    )
    assert_same_mass(text)


def test_the_total_mass_counts_what_stands_still():
    text = (
        "<mujoco><compiler settotalmass='10'/><worldbody><geom size='5'/><body><geom size='0.1'/></body>"
        "<body name='b'><joint/><geom size='0.1'/></body></worldbody></mujoco>"
    )
    assert load(text).bodies[0].mass == pytest.approx(5.0, rel=1e-14)


def test_a_frame_moves_an_inertial():
    inertial = '<inertial pos="1 2 3" mass="4" diaginertia="5 6 7" quat="1 2 3 4"/>'
    assert_same_mass(one_body(f'<frame pos="1 0 0" euler="10 20 30">{inertial}</frame>'))


# -- meshes -------------------------------------------------------------------------------------------

# A bent beam, far from convex: eight corners of an L, its two ends, and their triangles, all turned outwards.
_L = np.array([[0, 0], [3, 0], [3, 1], [1, 1], [1, 2], [0, 2]], dtype=float)
VERTICES = np.vstack([np.c_[_L, np.zeros(6)], np.c_[_L, np.full(6, 0.5)]])
_CAP = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 5], [3, 4, 5]])
_SIDES = [face for i in range(6) for face in ([i, (i + 1) % 6, 6 + (i + 1) % 6], [i, 6 + (i + 1) % 6, 6 + i])]
FACES = np.vstack([_CAP[:, ::-1], _CAP + 6, _SIDES])


def numbers(values):
    return " ".join(map(str, np.ravel(values)))


def with_mesh(attributes, geom='type="mesh"', inline=True):
    data = f'vertex="{numbers(VERTICES)}" face="{numbers(FACES)}"' if inline else ""
    head = f'<asset><mesh name="beam" {data} {attributes}/></asset>'
    return one_body(f'<geom {geom} mesh="beam" pos="0.1 0.2 0.3" euler="10 20 30"/>', head)


MESHES = {
    "legacy": "",
    "exact": 'inertia="exact"',
    "convex": 'inertia="convex"',
    "shell": 'inertia="shell"',
    "scaled": 'inertia="exact" scale="0.1 0.2 0.3"',
    "mirrored": 'inertia="exact" scale="-0.1 0.2 0.3"',
    "moved": 'inertia="exact" refpos="1 2 3" refquat="1 2 3 4" scale="0.1 0.2 0.3"',
}


@pytest.mark.parametrize("attributes", MESHES.values(), ids=MESHES.keys())
def test_meshes(attributes):
    assert_same_mass(with_mesh(attributes), 1e-8)


def test_the_volume_of_a_mesh_is_exact():
    (body,) = load(with_mesh('inertia="exact"', 'type="mesh" density="1"')).bodies
    assert body.mass == pytest.approx(2.0, rel=1e-14)  # (3 + 1) * 0.5


def test_vertices_without_faces_are_a_hull():
    text = with_mesh("").replace(f'face="{numbers(FACES)}"', "")
    assert_same_mass(text, 1e-8)


def test_defaults_and_mass_of_meshes():
    text = with_mesh("", 'type="mesh" mass="3"').replace(
        "<asset>", '<default><mesh inertia="exact" scale="2 2 2"/></default><asset>'
    )
    assert_same_mass(text, 1e-8)


@pytest.mark.parametrize("kind", ["sphere", "capsule", "cylinder", "ellipsoid", "box"])
def test_shapes_fitted_to_meshes(kind):
    assert_same_mass(with_mesh('inertia="exact"', f'type="{kind}" fitscale="1.2"'), 1e-7)


def as_stl(path):
    record = np.zeros(len(FACES), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    record["corners"] = VERTICES[FACES]
    path.write_bytes(b" " * 80 + np.uint32(len(FACES)).tobytes() + record.tobytes())


def as_obj(path):
    lines = [f"v {x} {y} {z}" for x, y, z in VERTICES] + [f"f {a + 1}//1 {b + 1} {c - 12}" for a, b, c in FACES]
    path.write_text("# a beam\n" + "\n".join(lines) + "\n")


def as_msh(path):
    header = np.array([len(VERTICES), 0, 0, len(FACES)], dtype="<i4")
    path.write_bytes(header.tobytes() + VERTICES.astype("<f4").tobytes() + FACES.astype("<i4").tobytes())


@pytest.mark.parametrize("mirror", [1, -1])
@pytest.mark.parametrize("write", [as_stl, as_obj, as_msh])
def test_files_of_meshes(tmp_path, write, mirror):
    suffix = write.__name__[-3:]
    (tmp_path / "meshes").mkdir()
    write(tmp_path / "meshes" / f"beam.{suffix}")
    attributes = f'file="beam.{suffix}" inertia="exact" scale="{mirror} 2 1"'
    text = with_mesh(attributes, inline=False).replace("<mujoco>", '<mujoco><compiler meshdir="meshes"/>')
    file = tmp_path / "model.xml"
    file.write_text(text)
    assert_same_mass(file, 1e-8)


def test_meshes_that_weigh_nothing_are_not_opened():
    text = with_mesh('file="nowhere.stl"', 'type="mesh" density="0"', inline=False)
    assert load(text.replace("<freejoint/>", '<freejoint/><geom size="0.1"/>')).bodies[0].mass > 0
    fixed = (
        text.replace("<freejoint/>", "")
        .replace('density="0"', "")
        .replace("</worldbody>", '<body><joint/><geom size="1"/></body></worldbody>')
    )
    assert load(fixed).nv == 1
