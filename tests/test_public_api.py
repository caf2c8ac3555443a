"""The file of public names: a change of the interface is a line of its diff."""

from __future__ import annotations

import pytest

import linkwise as lw
from tools import public_api


def test_every_public_name_is_listed():
    lines = public_api.text().splitlines()
    for name in ("forward_dynamics(mech, q, v=None, tau=None", "constraints.assemble(mech", "operators.phi: "):
        assert any(line.startswith(f"linkwise.{name}") for line in lines), name
    assert "    with_gravity(self, gravity)" in lines


def test_a_changed_signature_is_reported(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(public_api, "FILE", tmp_path / "public_api.txt")
    assert public_api.main([]) == 0
    assert public_api.main(["--check"]) == 0
    assert "# linkwise: 62 names, 20 submodules" in capsys.readouterr().out
    monkeypatch.setattr(lw, "neutral", lambda mech, extra=1: None)
    assert public_api.main(["--check"]) == 1
    assert "+linkwise.neutral(mech, extra=1)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("names", "names: 62, and at most 61 are meant"),
        ("submodules", "submodules: 20, and at most 19 are meant"),
        ("names in a submodule", "linkwise.kinematics: 20 names, and at most 19 are meant"),
        ("attributes of Mechanism", "attributes of Mechanism: "),
    ],
)
def test_a_face_that_grows_too_large_is_reported(monkeypatch, capsys, kind, message):
    assert public_api.too_many() == []
    count = {"names": 62, "submodules": 20, "names in a submodule": 20}.get(kind, 1)
    monkeypatch.setitem(public_api.MOST, kind, count - 1)
    assert public_api.main(["--check"]) == 1
    assert message in capsys.readouterr().out
