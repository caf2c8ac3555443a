import numpy as np
import pytest

from linkwise.compiler.runtime import llvm_loader
from linkwise.compiler.targets import llvm_simd
from tests.compiler.targets.sample_programs import inverse_dynamics


def test_lanes_fill_one_register():
    double, single = llvm_loader.host_options("float64"), llvm_loader.host_options("float32")
    assert single.lanes == 2 * double.lanes and double.lanes in (2, 4, 8)
    assert double.cpu and double.cpu == single.cpu


@pytest.mark.parametrize(
    ("features", "lanes"),
    [({"avx512f": True, "avx512dq": True, "avx512vl": True, "avx": True}, 8), ({"avx": True, "avx2": True}, 4),
     ({"sse2": True}, 2), ({"neon": True}, 2)],
)  # fmt: skip
def test_lanes_on_other_machines(features, lanes, monkeypatch):
    class Features(dict):
        def flatten(self):
            return ",".join(f"+{name}" for name in self)

    monkeypatch.setattr(llvm_loader.llvm, "get_host_cpu_features", lambda: Features(features))
    llvm_loader._host.cache_clear()
    try:
        assert llvm_loader.host_options("float64").lanes == lanes
    finally:
        monkeypatch.undo()
        llvm_loader._host.cache_clear()


def test_unknown_dtype():
    with pytest.raises(ValueError, match="float64"):
        llvm_loader.host_options("int32")


def test_512_bit_registers_are_used_where_the_options_say_so():
    options = llvm_loader.host_options()
    text = llvm_loader.assembly(llvm_simd.emit(inverse_dynamics(3), options), options)
    if options.lanes == 8:
        assert "zmm" in text
    assert np.dtype(options.dtype).itemsize * options.lanes in (16, 32, 64)
