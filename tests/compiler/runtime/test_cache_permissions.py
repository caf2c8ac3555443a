"""Compiled code is not run from where other users could have put theirs."""

from __future__ import annotations

import os
import sys

import pytest

import linkwise as lw
from linkwise.compiler.runtime import cache

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are those of POSIX")
CODE = b"code" * 100


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKWISE_CACHE_DIR", str(tmp_path / "objects"))
    monkeypatch.setattr(cache, "_warned_of", set())
    return tmp_path / "objects"


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o722, 0o720, 0o702])
def test_a_directory_that_others_can_write_is_not_used(folder, mode):
    cache.store("key", CODE)
    assert cache.fetch("key") == CODE
    folder.chmod(mode)
    with pytest.warns(UserWarning, match=rf"objects, which can be written by other users \(mode 0{mode:o}\)") as caught:
        assert cache.fetch("key") is None
        cache.store("other", CODE)  # and neither warns again
        assert lw.codegen.cache.info().files == 1
    assert len(caught) == 1 and f"chmod go-w {folder}" in str(caught[0].message)
    assert [file.name for file in folder.iterdir()] == ["key.object"]
    folder.chmod(mode & ~0o022)  # as the warning says
    assert cache.fetch("key") == CODE


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o1777, 0o1770, 0o500])
def test_directories_in_which_nobody_else_exchanges_files_are_used(folder, mode, recwarn):
    cache.store("key", CODE)
    folder.chmod(mode)
    assert cache.fetch("key") == CODE and not recwarn
    folder.chmod(0o700)


def test_a_directory_of_somebody_else_is_not_used(folder, monkeypatch):
    cache.store("key", CODE)
    owner = folder.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 7)
    if owner == 0:  # that of root is as safe as the system
        os.chown(folder, 4321, -1)
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert cache.fetch("key") is None


def test_files_that_others_own_or_can_write_are_not_run(folder, monkeypatch):
    cache.store("key", CODE)
    file = folder / "key.object"
    assert file.stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700
    for mode in (0o666, 0o620, 0o602):
        file.chmod(mode)
        assert cache.fetch("key") is None
    cache.store("key", CODE)  # written anew
    assert cache.fetch("key") == CODE
    if os.getuid() == 0:
        os.chown(file, 4321, -1)
        assert cache.fetch("key") is None


def test_new_directories_are_ones_own_whatever_the_umask(folder):
    before = os.umask(0)
    try:
        cache.store("key", CODE)
    finally:
        os.umask(before)
    assert cache.fetch("key") == CODE and folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are those of POSIX")
def test_functions_work_without_the_cache(folder):
    """They are compiled anew."""
    folder.mkdir()
    folder.chmod(0o777)
    mech = lw.mechanisms.planar_arm(2).with_payload("link2", 0.123456)
    with pytest.warns(UserWarning, match="neither read from nor kept in"):
        assert lw.mass_matrix(mech, [0.1, 0.2]).shape == (2, 2)
    assert not any(folder.iterdir())
