"""Files of meshes as triangles with colours: a cube in every format, and what is wrong with bad files."""

import numpy as np
import pytest

import linkwise as lw

CORNERS = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 2.0) for z in (0.0, 3.0)])
SIDES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))  # seen from outside
TRIANGLES = [triangle for a, b, c, d in SIDES for triangle in ((a, b, c), (a, c, d))]


def volume(surfaces):
    """By Gauss's theorem: positive where triangles face outwards."""
    corners = np.concatenate([one.vertices[one.faces] for one in surfaces]).astype(float)
    return np.linalg.det(corners).sum() / 6.0


def as_binary_stl():
    record = np.zeros(12, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]))
    record["corners"] = CORNERS[TRIANGLES]
    return b"solid header of a binary file".ljust(80) + np.uint32(12).tobytes() + record.tobytes()


def as_ascii_stl():
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join("vertex {} {} {}\n".format(*CORNERS[k]) for k in triangle)
        + "endloop\nendfacet\n"
        for triangle in TRIANGLES
    )
    return f"solid cube\n{facets}endsolid cube\n".encode()


def as_obj():
    lines = ["mtllib cube.mtl", *("v {} {} {}".format(*corner) for corner in CORNERS), "o first", "usemtl red"]
    lines += ["f " + " ".join(f"{k + 1}//1" for k in side) for side in SIDES[:2]]
    lines += ["o second", "usemtl glass", *("f " + " ".join(str(k - 8) for k in side) for side in SIDES[2:])]
    return "\n".join(lines).encode()


def as_collada(polygons="polylist", matrix="1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1", unit="1"):
    numbers = " ".join(f"{k} 0" for side in SIDES for k in side)
    if polygons == "triangles":
        numbers = " ".join(f"{k} 0" for triangle in TRIANGLES for k in triangle)
    vcount = f"<vcount>{'4 ' * 6}</vcount>" if polygons == "polylist" else ""
    return f"""<?xml version="1.0"?>
    <COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
      <asset><unit name="m" meter="{unit}"/><up_axis>Y_UP</up_axis></asset>
      <library_effects><effect id="e"><profile_COMMON><technique><phong>
        <diffuse><color>0.2 0.4 0.6 1</color></diffuse></phong></technique></profile_COMMON></effect></library_effects>
      <library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
      <library_geometries><geometry id="g"><mesh>
        <source id="p"><float_array count="24">{" ".join(map(str, CORNERS.ravel()))}</float_array>
          <technique_common><accessor source="#p" count="8" stride="3"/></technique_common></source>
        <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
        <{polygons} material="symbol" count="6"><input semantic="VERTEX" source="#v" offset="0"/>
          <input semantic="NORMAL" source="#n" offset="1"/>{vcount}<p>{numbers}</p></{polygons}>
      </mesh></geometry></library_geometries>
      <library_visual_scenes><visual_scene id="s"><node><matrix>{matrix}</matrix>
        <node><translate>10 0 0</translate><rotate>0 0 1 90</rotate><scale>1 1 2</scale>
          <instance_geometry url="#g"><bind_material><technique_common>
            <instance_material symbol="symbol" target="#m"/></technique_common></bind_material></instance_geometry>
        </node></node></visual_scene></library_visual_scenes>
      <scene><instance_visual_scene url="#s"/></scene>
    </COLLADA>""".encode()


@pytest.mark.parametrize("name, content", [("cube.stl", as_binary_stl()), ("cube.STL", as_ascii_stl())])
def test_stl(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    (cube,) = lw.load_mesh(tmp_path / name)
    assert cube.vertices.shape == (8, 3) and cube.faces.shape == (12, 3), "corners that triangles share are one"
    assert cube.colour is None
    np.testing.assert_allclose(volume([cube]), 6.0, rtol=1e-6)


def test_obj_has_the_colours_of_its_materials(tmp_path):
    (tmp_path / "cube.obj").write_bytes(as_obj())
    (tmp_path / "cube.mtl").write_text("newmtl red\nKd 1 0 0\nnewmtl glass\nKd 0 0 1\nd 0.5\n")
    red, glass = lw.load_mesh(tmp_path / "cube.obj")
    assert red.colour == (1.0, 0.0, 0.0, 1.0) and glass.colour == (0.0, 0.0, 1.0, 0.5)
    assert len(red.faces) == 4 and len(glass.faces) == 8
    np.testing.assert_allclose(volume([red, glass]), 6.0, rtol=1e-6)


@pytest.mark.parametrize("polygons", ["polylist", "triangles"])
def test_collada_is_placed_by_its_nodes(tmp_path, polygons):
    (tmp_path / "cube.dae").write_bytes(as_collada(polygons, "1 0 0 0 0 1 0 5 0 0 1 0 0 0 0 1", "0.01"))
    (cube,) = lw.load_mesh(tmp_path / "cube.dae")
    assert cube.colour == (0.2, 0.4, 0.6, 1.0)
    rotated = CORNERS @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 2]]) + (10.0, 5.0, 0.0)  # a quarter, then the nodes
    expected = 0.01 * np.array(sorted(rotated.tolist()))
    np.testing.assert_allclose(np.array(sorted(cube.vertices.tolist())), expected, atol=1e-6)
    np.testing.assert_allclose(volume([cube]), 12e-6, rtol=1e-5)


def test_a_mirrored_collada_faces_outwards(tmp_path):
    (tmp_path / "cube.dae").write_bytes(as_collada(matrix="-1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1"))
    np.testing.assert_allclose(volume(lw.load_mesh(tmp_path / "cube.dae")), 12.0, rtol=1e-6)


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("cube.stl", as_binary_stl()[:-1], "no binary STL"),
        ("cut.stl", b"solid x\nfacet", r"cut\.stl cannot be read as a mesh: it has 0 complete vertices for 3 corners"),
        ("empty.stl", b"solid x\n", "no binary STL"),
        (
            "cut.stl",
            as_ascii_stl()[:130],
            "it has 3 complete vertices for 6 corners of facets: is it cut off",
        ),
        ("cut.stl", as_ascii_stl()[:69], "it has 1 complete vertices for 3"),
        ("hello.obj", b"hello", r"hello\.obj cannot be read as a mesh: it has no triangles"),
        ("points.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0", "it has no triangles"),
        ("none.dae", b"<COLLADA/>", "it has no triangles"),
        ("cube.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 x\nf 1 2 3", "could not convert"),
        ("cube.dae", b"<COLLADA><asset>", "malformed XML"),
        ("cube.dae", b"<!DOCTYPE x><COLLADA/>", "document types and entities are refused"),
        ("cube.dae", b"<robot/>", "starts with <COLLADA>"),
        ("cube.mesh", b"", r"read from .stl, .msh, .obj, .dae"),
    ],
)
def test_bad_files_say_what_is_wrong(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(lw.MechanismError, match=words):
        lw.load_mesh(tmp_path / name)
