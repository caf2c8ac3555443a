import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import cache, gufunc, llvm_loader
from linkwise.compiler.targets import llvm_simd, numpy_reference
from tests.compiler.targets.sample_programs import forward_dynamics, inverse_dynamics


@pytest.fixture(autouse=True)
def own_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKWISE_CACHE_DIR", str(tmp_path / "objects"))
    return tmp_path / "objects"


def refuse():
    raise AssertionError("the text was asked for although the object code is there")


def test_the_key_tells_programs_and_options_apart():
    options = llvm_loader.host_options()
    programs = [forward_dynamics(3), forward_dynamics(4), inverse_dynamics(3)]
    keys = {cache.program_key(program, options) for program in programs}
    keys |= {cache.program_key(programs[0], replace(options, **{name: value})) for name, value in
             (("dtype", "float32"), ("lanes", 1), ("cpu", "other"), ("features", "+none"))}  # fmt: skip
    assert len(keys) == 7
    assert cache.program_key(forward_dynamics(3), options) in keys


def test_loading_again_needs_no_text():
    program, options = inverse_dynamics(3), llvm_loader.host_options()
    key, symbol = cache.program_key(program, options), llvm_simd.symbol(program)
    first = llvm_loader.load(lambda: llvm_simd.emit(program, options), symbol, options, key)
    assert llvm_loader.load(refuse, symbol, options, key) is first
    llvm_loader._loaded.pop(key)  # as in a new process: the code is on disk only
    code = llvm_loader.load(refuse, symbol, options, key)
    assert code.address != first.address
    ufunc = gufunc.make_gufunc(code, program.inputs, program.outputs, options.dtype, program.name)
    arrays = np.random.default_rng(0).standard_normal((3, 10, 3))
    np.testing.assert_allclose(ufunc(*arrays), numpy_reference.evaluate(program, arrays)[0], rtol=1e-11)


def test_damaged_files_are_ignored_and_rewritten(own_directory):
    cache.store("key", b"code" * 100)
    path = own_directory / "key.object"
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[-7] ^= 1
    for damaged in (b"", whole[:20], whole[:-1], bytes(flipped), b"x" + whole):
        path.write_bytes(damaged)
        assert cache.fetch("key") is None
        cache.store("key", b"code" * 100)
        assert cache.fetch("key") == b"code" * 100
    assert [file.name for file in own_directory.iterdir()] == ["key.object"]


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("LINKWISE_CACHE_DIR", str(tmp_path / "file" / "objects"))
    cache.store("key", b"code")
    assert cache.fetch("key") is None


def test_concurrent_writers_and_readers():
    contents = [bytes([i]) * 200_000 for i in range(4)]
    strange = []

    def work(content):
        for _ in range(30):
            cache.store("shared", content)
            got = cache.fetch("shared")
            if got not in contents:
                strange.append(got)

    threads = [threading.Thread(target=work, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not strange


def test_another_process_finds_the_code():
    program, options = inverse_dynamics(2), llvm_loader.host_options()
    key = cache.program_key(program, options)
    llvm_loader.load(llvm_simd.emit(program, options), llvm_simd.symbol(program), options, key)
    script = (
        "from linkwise.compiler.runtime import cache, llvm_loader\n"
        "from tests.compiler.targets.sample_programs import inverse_dynamics\n"
        "print(cache.fetch(cache.program_key(inverse_dynamics(2), llvm_loader.host_options())) is not None)"
    )
    root = Path(__file__).resolve().parents[3]
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root)
    assert run.stdout.strip() == "True", run.stderr


# -- its size -----------------------------------------------------------------------------------------


@pytest.fixture
def limit(monkeypatch):
    """Set the limit; it is as before after the test."""
    monkeypatch.setattr(cache, "_limit", None)
    return cache.set_limit


def filled(folder, count, size=1000):
    """Files of so many bytes, the first of them unused for longest."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        path = folder / f"{i:03d}.object"
        path.write_bytes(bytes(size))
        os.utime(path, (1e9 + i, 1e9 + i))


def names(folder):
    return sorted(path.stem for path in folder.iterdir())


def test_what_was_not_used_for_longest_is_deleted(own_directory, limit):
    filled(own_directory, 20)
    limit(20_000)
    assert len(names(own_directory)) == 20
    cache.store("new", bytes(500))
    assert names(own_directory) == [f"{i:03d}" for i in range(3, 20)] + ["new"]  # up to nine tenths are left
    limit(5_000)
    assert names(own_directory) == ["017", "018", "019", "new"]


def test_use_keeps_a_file(own_directory, limit):
    cache.store("old", b"code")
    os.utime(own_directory / "old.object", (1e8, 1e8))
    filled(own_directory, 9)
    assert cache.fetch("old") == b"code"
    limit(5_000)
    assert names(own_directory) == ["005", "006", "007", "008", "old"]


def test_a_process_looks_again_after_it_has_written_a_share(own_directory, limit):
    """Others write too: what they write is seen at the latest after a sixteenth of the limit."""
    limit(160_000)
    filled(own_directory, 200)
    for i in range(9):
        cache.store(f"own{i}", bytes(1000))
    assert len(names(own_directory)) == 209
    cache.store("own9", bytes(1000))
    assert len(names(own_directory)) < 150 and "own0" in names(own_directory)


def test_what_is_larger_than_the_limit_is_not_kept(own_directory, limit):
    limit(0)
    cache.store("key", b"code")
    assert cache.fetch("key") is None and cache.info().files == 0


def test_files_that_were_never_finished_are_deleted(own_directory, limit):
    filled(own_directory, 1)
    for name, age in ((".writing-killed", 2 * 3600), (".writing-now", 0)):
        (own_directory / name).write_bytes(b"half")
        if age:
            os.utime(own_directory / name, (1e9, 1e9))
    (own_directory / "notes.txt").write_text("not ours")
    limit(10_000)
    assert sorted(path.name for path in own_directory.iterdir()) == [".writing-now", "000.object", "notes.txt"]
    assert cache.clear() == cache.Info(own_directory, 1, 1000, 10_000)
    assert [path.name for path in own_directory.iterdir()] == ["notes.txt"]


def test_processes_share_the_limit(own_directory):
    """Several processes write and delete at once: nothing fails, what is read is whole, the limit holds."""
    script = """
import sys
from linkwise.compiler.runtime import cache
for i in range(60):
    code = bytes([i]) * 1000
    cache.store(f"{i:03d}", code)
    for other in range(i):
        found = cache.fetch(f"{other:03d}")
        assert found in (None, bytes([other]) * 1000), other
"""
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "LINKWISE_CACHE_LIMIT": "20000", "LINKWISE_CACHE_DIR": str(own_directory)}
    runs = [
        subprocess.Popen([sys.executable, "-c", script], cwd=root, env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [run.communicate()[1] for run in runs] == [""] * 3 and not any(run.returncode for run in runs)
    # each of the processes may have written a sixteenth that the others have not seen
    assert 0 < cache.info().size <= 20_000 * (1 + 3 / 16) + 3 * 1050


def test_the_limit_is_set_by_a_call_or_the_environment(limit, monkeypatch):
    assert cache.limit() == cache.info().limit == 512_000_000
    monkeypatch.setenv("LINKWISE_CACHE_LIMIT", "1000")
    assert cache.limit() == 1000
    limit(2000)
    assert cache.limit() == 2000
    for wrong in (-1, 0.5, "1 MB", True):
        with pytest.raises(ValueError, match="whole number of bytes, 0 or more"):
            limit(wrong)
    monkeypatch.setattr(cache, "_limit", None)
    monkeypatch.setenv("LINKWISE_CACHE_LIMIT", "1GB")
    with pytest.raises(ValueError, match="LINKWISE_CACHE_LIMIT must be a whole number of bytes, .*, not '1GB'"):
        cache.limit()


def test_kernels_survive_the_clearing_of_the_cache():
    arm, q = lw.mechanisms.planar_arm(2).with_payload("link2", 0.12345, com=(0.1, 0.0, 0.0)), np.zeros(2)
    kernel = lw.compile("mass_matrix", arm)  # of a mechanism whose code no other test has in memory
    expected = kernel(q)
    assert lw.codegen.cache.clear().files >= 1 and lw.codegen.cache.info().files == 0
    np.testing.assert_array_equal(kernel(q), expected)
    np.testing.assert_array_equal(lw.compile("mass_matrix", arm)(q), expected)
