"""Files of meshes as triangles with colours: a cube in every format, and what is wrong with bad files."""

import base64
import json
import sys

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
    xyz = "".join(f'<param name="{axis}" type="float"/>' for axis in "XYZ")
    vcount = f"<vcount>{'4 ' * 6}</vcount>" if polygons == "polylist" else ""
    return f"""<?xml version="1.0"?>
    <COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
      <asset><unit name="m" meter="{unit}"/><up_axis>Y_UP</up_axis></asset>
      <library_effects><effect id="e"><profile_COMMON><technique><phong>
        <diffuse><color>0.2 0.4 0.6 1</color></diffuse></phong></technique></profile_COMMON></effect></library_effects>
      <library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
      <library_geometries><geometry id="g"><mesh>
        <source id="p"><float_array id="c" count="24">{" ".join(map(str, CORNERS.ravel()))}</float_array>
          <technique_common><accessor source="#c" count="8" stride="3">{xyz}</accessor></technique_common></source>
        <source id="n"><float_array id="f" count="3">0 0 1</float_array>
          <technique_common><accessor source="#f" count="1" stride="3">{xyz}</accessor></technique_common></source>
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
    (cube,) = lw.files.load_mesh(tmp_path / name)
    assert cube.vertices.shape == (8, 3) and cube.faces.shape == (12, 3), "corners that triangles share are one"
    assert cube.colour is None
    np.testing.assert_allclose(volume([cube]), 6.0, rtol=1e-6)


def test_obj_has_the_colours_of_its_materials(tmp_path):
    (tmp_path / "cube.obj").write_bytes(as_obj())
    (tmp_path / "cube.mtl").write_text("newmtl red\nKd 1 0 0\nnewmtl glass\nKd 0 0 1\nd 0.5\n")
    red, glass = lw.files.load_mesh(tmp_path / "cube.obj")
    assert red.colour == (1.0, 0.0, 0.0, 1.0) and glass.colour == (0.0, 0.0, 1.0, 0.5)
    assert len(red.faces) == 4 and len(glass.faces) == 8
    np.testing.assert_allclose(volume([red, glass]), 6.0, rtol=1e-6)


@pytest.mark.parametrize("polygons", ["polylist", "triangles"])
def test_collada_is_placed_by_its_nodes(tmp_path, polygons):
    (tmp_path / "cube.dae").write_bytes(as_collada(polygons, "1 0 0 0 0 1 0 5 0 0 1 0 0 0 0 1", "0.01"))
    (cube,) = lw.files.load_mesh(tmp_path / "cube.dae")
    assert cube.colour == (0.2, 0.4, 0.6, 1.0)
    rotated = CORNERS @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 2]]) + (10.0, 5.0, 0.0)  # a quarter, then the nodes
    expected = 0.01 * np.array(sorted(rotated.tolist()))
    np.testing.assert_allclose(np.array(sorted(cube.vertices.tolist())), expected, atol=1e-6)
    np.testing.assert_allclose(volume([cube]), 12e-6, rtol=1e-5)


def test_a_mirrored_collada_faces_outwards(tmp_path):
    (tmp_path / "cube.dae").write_bytes(as_collada(matrix="-1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1"))
    np.testing.assert_allclose(volume(lw.files.load_mesh(tmp_path / "cube.dae")), 12.0, rtol=1e-6)


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
        ("cube.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 x\nf 1 2 3", "unmatched data"),
        ("cube.dae", b"<COLLADA><asset>", "malformed XML"),
        ("cube.dae", b"<!DOCTYPE x><COLLADA/>", "document types and entities are refused"),
        ("cube.dae", b"<robot/>", "starts with <COLLADA>"),
        ("cube.mesh", b"", r"read from .stl, .msh, .obj, .dae, .ply, .gltf, .glb"),
    ],
)
def test_bad_files_say_what_is_wrong(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(lw.MechanismError, match=words):
        lw.files.load_mesh(tmp_path / name)


def as_ply(vertices=8):
    lines = ["ply", "format ascii 1.0", f"element vertex {vertices}", *(f"property float {axis}" for axis in "xyz")]
    lines += ["element face 12", "property list uchar int vertex_indices", "end_header"]
    lines += ["{} {} {}".format(*corner) for corner in CORNERS]
    return "\n".join([*lines, *("3 {} {} {}".format(*triangle) for triangle in TRIANGLES), ""]).encode()


def as_gltf(count=8, uri=None):
    data = CORNERS.astype("<f4").tobytes() + np.array(TRIANGLES, dtype="<u2").tobytes()
    uri = uri or "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    corners = {"componentType": 5126, "count": count, "type": "VEC3", "min": [0, 0, 0], "max": [1, 2, 3]}
    if count == 8:
        corners["bufferView"] = 0
    return json.dumps(
        {
            "asset": {"version": "2.0"},
            "scenes": [{"nodes": [0]}],
            "nodes": [{"mesh": 0, "scale": [1, 1, 2]}],
            "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1, "material": 0}]}],
            "materials": [{"pbrMetallicRoughness": {"baseColorFactor": [0.2, 0.4, 0.6, 1.0]}}],
            "accessors": [corners, {"bufferView": 1, "componentType": 5123, "count": 36, "type": "SCALAR"}],
            "bufferViews": [
                {"buffer": 0, "byteOffset": 0, "byteLength": 96},
                {"buffer": 0, "byteOffset": 96, "byteLength": 72},
            ],
            "buffers": [{"byteLength": 168, "uri": uri}],
        }
    ).encode()


@pytest.mark.parametrize("name, content, size", [("cube.ply", as_ply(), 6.0), ("cube.gltf", as_gltf(), 12.0)])
def test_other_formats_that_trimesh_reads(tmp_path, name, content, size):
    (tmp_path / name).write_bytes(content)
    (cube,) = lw.files.load_mesh(tmp_path / name)
    assert cube.vertices.shape == (8, 3) and cube.faces.shape == (12, 3)
    assert cube.colour == (None if name == "cube.ply" else (0.2, 0.4, 0.6, 1.0))
    np.testing.assert_allclose(volume([cube]), size, rtol=1e-6)


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("huge.ply", as_ply(10**15), "announces 1000000000000000 elements"),
        ("huge.gltf", as_gltf(10**12), "announces 1000000000000 elements"),
        ("cut.ply", as_ply()[:200], "cannot be read as a mesh"),
        ("cut.glb", b"glTF\x02\x00\x00\x00\xff\xff\xff\x7f\xff\xff\xff\x7fJSON{", "cannot be read as a mesh"),
        ("other.gltf", as_gltf(uri="../secret.bin"), "cannot be read as a mesh"),
    ],
)
def test_hostile_files_end_in_errors(tmp_path, name, content, words):
    """Headers that announce more than there is, and files beside the mesh that are not beside it."""
    (tmp_path / "secret.bin").write_bytes(bytes(168))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / name).write_bytes(content)
    with pytest.raises(lw.MechanismError, match=words):
        lw.files.load_mesh(tmp_path / "folder" / name)


def test_broken_files_of_all_formats_end_in_errors_or_meshes(tmp_path):
    rng = np.random.default_rng(7)
    files = {"a.stl": as_binary_stl(), "b.stl": as_ascii_stl(), "c.obj": as_obj(), "d.dae": as_collada()}
    for name, content in (files | {"e.ply": as_ply(), "f.gltf": as_gltf()}).items():
        for _ in range(40):
            broken = bytearray(content[: rng.integers(len(content))] if rng.random() < 0.3 else content)
            for place in rng.integers(max(len(broken), 1), size=rng.integers(1, 6)):
                broken[place : place + 1] = rng.bytes(1)
            (tmp_path / name).write_bytes(broken)
            try:
                found = lw.files.load_mesh(tmp_path / name)
            except lw.MechanismError:
                continue
            assert all(np.isfinite(one.vertices).all() and one.faces.max() < len(one.vertices) for one in found)


@pytest.mark.parametrize("module, suffix", [("trimesh", "stl"), ("collada", "dae")])
def test_without_the_libraries_it_says_what_to_install(tmp_path, monkeypatch, module, suffix):
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / f"cube.{suffix}").write_bytes(as_binary_stl() if suffix == "stl" else as_collada())
    with pytest.raises(ImportError, match=rf"read by {module}.*pip install 'linkwise\[meshes\]'") as raised:
        lw.files.load_mesh(tmp_path / f"cube.{suffix}")
    assert isinstance(raised.value, lw.MechanismError)
