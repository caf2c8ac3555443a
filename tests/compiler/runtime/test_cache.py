import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

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
    assert llvm_loader.load(refuse, symbol, options, key) == first
    first_library = llvm_loader._libraries.pop(key)  # as in a new process: the code is on disk only
    address = llvm_loader.load(refuse, symbol, options, key)
    assert address != first == first_library[symbol]
    ufunc = gufunc.make_gufunc(address, program.inputs, program.outputs, options.dtype, program.name)
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
    root = Path(__file__).resolve().parents[2]
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root)
    assert run.stdout.strip() == "True", run.stderr
