"""The file of public names: a change of the interface is a line of its diff."""

from __future__ import annotations

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
    monkeypatch.setattr(lw, "neutral", lambda mech, extra=1: None)
    assert public_api.main(["--check"]) == 1
    assert "+linkwise.neutral(mech, extra=1)" in capsys.readouterr().out
