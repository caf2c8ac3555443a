"""DH tables in files: the same arm from TOML, from CSV and from rows; bad tables are refused with what to fix."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.cli.test_dynamics import STANFORD

HEAD = 'convention = "saha1999"\ngravity = [0, 0, -9.81]\n'


def toml(**changes):
    """Table 3 of saha1999 as TOML."""
    names, *lines = (line.split(",") for line in STANFORD.splitlines())
    text = HEAD
    for line in lines:
        row = dict(zip(names, line, strict=True))
        number = {name: float(row[name]) for name in names if name != "kind" and row[name]}
        text += "[[link]]\n" + "".join(
            f"{n} = {number[n]}\n" for n in ("a", "b", "alpha_deg", "theta_deg") if n in number
        )
        text += f"mass = {number['mass']}\nr = {[number[f'r{x}'] for x in 'xyz']}\n"
        text += f"inertia = {[number[f'I{x}{x}'] for x in 'xyz']}\n" + (
            f'kind = "{row["kind"]}"\n' if row["kind"] else ""
        )
    return text


def same(found, expected):
    assert found.nq == expected.nq
    for a, b in zip(found.bodies, expected.bodies, strict=True):
        assert (a.kind, a.joint, a.mass) == (b.kind, b.joint, b.mass)
        for what in ("rotation", "position", "com", "inertia"):
            np.testing.assert_allclose(getattr(a, what), getattr(b, what), atol=1e-16)


@pytest.mark.smoke
@pytest.mark.seed("saha1999", "Appendix A", by="library")
@pytest.mark.seed("saha1999", "Table 3", by="library")
def test_table_3_as_a_file(tmp_path):
    (tmp_path / "arm.csv").write_text("# Table 3\n" + STANFORD)
    (tmp_path / "arm.toml").write_text(toml())
    same(lw.files.load_dh(tmp_path / "arm.csv", "saha1999"), lw.mechanisms.stanford_arm())
    same(
        lw.files.load_dh(tmp_path / "arm.csv"), lw.mechanisms.stanford_arm()
    )  # b and r are symbols of that convention only
    with pytest.raises(lw.MechanismError, match="unknown key 'b' in the convention 'standard'"):
        lw.files.load_dh(tmp_path / "arm.csv", "standard")
    from_toml = lw.files.load_dh(tmp_path / "arm.toml")
    same(from_toml, lw.mechanisms.stanford_arm())
    assert from_toml.name == "arm"


def test_full_inertia_names_and_gravity(tmp_path):
    (tmp_path / "arm.csv").write_text(
        "link,joint,a,alpha,d,mass,com_x,com_y,com_z,I_xx,I_yy,I_zz,I_xy\nrod,hinge,0.4,0.3,0.1,2,.1,.2,.3,1,2,2.5,0.1\n"
    )
    arm = lw.files.load_dh(tmp_path / "arm.csv")
    inertia = [[1, 0.1, 0], [0.1, 2, 0], [0, 0, 2.5]]
    row = {"link": "rod", "joint": "hinge", "a": 0.4, "alpha": 0.3, "d": 0.1, "mass": 2, "com": (0.1, 0.2, 0.3)}
    same(arm, lw.from_dh([{**row, "inertia": inertia}]))
    (tmp_path / "arm.toml").write_text(
        'name = "lamp"\ngravity = [0, -1.6, 0]\n[[link]]\na = 1.0\nalpha = 0.1\nd = 0\nmass = 1\ninertia = [1, 1, 1]\n'
    )
    arm = lw.files.load_dh(tmp_path / "arm.toml")
    assert arm.name == "lamp" and arm.gravity.tolist() == [0, -1.6, 0]


LINK = "[[link]]\na = 0.1\nd = 0.2\nmass = 1.0\ninertia = [1.0, 1.0, 1.0]\n"
BAD = {
    "empty.csv": ("", "the file is empty"),
    "head.csv": ("a,alpha,d\n", "the DH table has no rows"),
    "column.csv": ("a,d\n1,2\n", "there is no column 'alpha'; the first line names a, d"),
    "cells.csv": ("a,alpha,d\n1,2\n", "row 1 has 2 cells, the first line names 3 columns"),
    "word.csv": ("a,alpha,d\n1,x,3\n", "row 1 of the DH table: alpha is 'x', which is no number"),
    "infinite.csv": ("a,alpha,d\n1,nan,3\n", "row 1 of the DH table: alpha"),
    "distance.csv": ("a,alpha\n1,0.2\n", "row 1 of the DH table: a revolute joint needs 'd'"),
    "degrees.csv": (
        "a,alpha,d\n1,-90,0.2\n",
        "alpha = -90 looks like degrees, radians are expected; call it alpha_deg",
    ),
    "millimetres.csv": ("a,alpha,d\n432,0.1,0.2\n", "a = 432.0 looks like millimetres, metres are expected"),
    "inertia.csv": ("a,alpha,d,mass,Ixx,Iyy,Izz\n1,0,0,1,9000,9000,9000\n", "kg m^2 are expected, not kg mm^2"),
    "unknown.csv": ("a,alpha,d,colour\n1,0,0,1\n", "unknown key 'colour'"),
    "syntax.toml": ("a = = 3", "this is not TOML"),
    "rows.toml": ("link = 3\n", "the rows of the table are written as [[link]]"),
    "none.toml": (HEAD, "the DH table has no rows"),
    "key.toml": ("colour = 3\n" + LINK, "unknown key 'colour' above the rows"),
    "both.toml": (LINK + "alpha = 0.1\nalpha_deg = 5\n", "row 1 of the DH table has both alpha and alpha_deg"),
    "truth.toml": (LINK + "alpha_deg = true\n", "alpha_deg is True, which is no number"),
    "text.toml": (LINK + 'alpha_deg = "x"\n', "alpha_deg is 'x', which is no number"),
    "convention.toml": ('convention = "my"\n' + LINK + "alpha = 0\n", "unknown DH convention 'my'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables(tmp_path, name):
    text, complaint = BAD[name]
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(lw.MechanismError) as caught:
        lw.files.load_dh(file)
    assert complaint in str(caught.value) and str(file) in str(caught.value)


def test_other_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        lw.files.load_dh(tmp_path / "absent.csv")
    (tmp_path / "arm.txt").write_text("a,alpha\n")
    with pytest.raises(lw.MechanismError, match="a DH table is a .toml or .csv file"):
        lw.files.load_dh(tmp_path / "arm.txt")
    (tmp_path / "arm.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(lw.MechanismError, match="is no text file"):
        lw.files.load_dh(tmp_path / "arm.csv")


def test_units_can_be_insisted_on(tmp_path):
    (tmp_path / "crane.csv").write_text("a,alpha,d,mass,Ixx,Iyy,Izz\n80,0.1,0,1,1,1,1\n")
    assert lw.files.load_dh(tmp_path / "crane.csv", trust_units=True).nv == 1


@pytest.mark.parametrize(("convention", "key"), [("saha1999", "b"), ("standard", "d"), ("modified", "d")])
def test_a_row_without_its_distance_is_told_of_sliding_joints(convention, key):
    row = {"a": 0.1, "alpha": 0.0, "joint": "prismatic", "theta": 0.0}
    with pytest.raises(
        lw.MechanismError, match=rf"a revolute joint needs '{key}'; if it slides, say kind = \"prismatic\""
    ):
        lw.from_dh([row], convention)
    with pytest.raises(lw.MechanismError, match="a prismatic joint needs 'theta'$"):
        lw.from_dh([{"a": 0.1, "alpha": 0.0, "kind": "prismatic"}], convention)
    assert lw.from_dh([{**row, "kind": "prismatic", "mass": 1.0}], convention).joint_names == ("prismatic",)
