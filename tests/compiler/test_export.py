"""Exported C files: complete, compiled by the system's compiler, and equal in value to the kernel."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw

COMPILER = shutil.which("cc") or shutil.which("gcc")
CPP_COMPILER = shutil.which("c++") or shutil.which("g++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")


def run(path, function, states, arrays, result, compiler=(COMPILER, "-std=c99")):
    library = path.with_suffix(".so")
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"]
    subprocess.run([*compiler, *strict, "-shared", "-fPIC", path, "-o", library, "-lm"], check=True)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*arrays, result)]
    getattr(ctypes.CDLL(str(library)), function)(ctypes.c_size_t(states), *pointers)
    return result


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(3))
def test_compiled_file_agrees_with_the_kernel(seed, dtype, tmp_path):
    mech = lw.mechanisms.random_tree(6, seed)
    rng = np.random.default_rng(seed)
    q, v = (x.astype(dtype) for x in lw.random_state(mech, rng, (37,)))
    tau = rng.normal(size=v.shape).astype(dtype)
    path = lw.export_c(lw.forward_dynamics, mech, tmp_path / "kernel.c", dtype=dtype)
    got = run(path, "forward_dynamics_batch", 37, (q, v, tau), np.full_like(v, np.nan))
    # The reference is float64: how far float32 may stray depends on how ill-conditioned the tree is.
    expected = lw.forward_dynamics(mech, *(x.astype(float) for x in (q, v, tau)))
    own = np.abs(lw.forward_dynamics(mech, q, v, tau) - expected).max()
    assert np.abs(got - expected).max() <= 4 * own + 1e-9 * np.abs(expected).max()


@needs_compiler
def test_options_and_parameters_reach_the_file(tmp_path):
    mech = lw.mechanisms.puma560()
    rng = np.random.default_rng(0)
    q, _ = lw.random_state(mech, rng, (5,))
    path = lw.export_c("jacobian", mech, tmp_path / "jacobian.c", link="frame6", frame="world")
    got = run(path, "jacobian_batch", 5, (q,), np.empty((5, 6, 6)))
    np.testing.assert_allclose(got, lw.jacobian(mech, q, "frame6", "world"), atol=1e-13)

    masses = rng.uniform(1.0, 2.0, (5, 6))
    path = lw.export_c("gravity_force", mech, tmp_path / "gravity.c", parameters=["mass"])
    got = run(path, "gravity_force_batch", 5, (q, masses), np.empty((5, 6)))
    expected = lw.compile("gravity_force", mech, parameters=["mass"])(q, masses)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@needs_compiler
def test_kernels_are_exported_as_they_are(tmp_path):
    mech = lw.mechanisms.puma560()
    q, v = lw.random_state(mech, np.random.default_rng(0), (5,))
    tau = np.ones_like(v)
    derivative = lw.jacobian_of(lw.compile("forward_dynamics", mech), "q")
    path = lw.export_c(derivative, mech, tmp_path / "derivative.c")
    got = run(path, "forward_dynamics_by_q_batch", 5, (q, v, tau), np.empty((5, 6, 6)))
    np.testing.assert_allclose(got, derivative(q, v, tau), rtol=1e-9, atol=1e-9)
    assert "forward_dynamics_by_q of mechanism 'puma560'" in path.read_text()
    with pytest.raises(TypeError, match="is compiled already and takes no dtype"):
        lw.export_c(derivative, mech, tmp_path / "x.c", dtype="float32")
    with pytest.raises(lw.MechanismError, match="is of another mechanism than 'planar_arm_6'"):
        lw.export_c(derivative, lw.mechanisms.planar_arm(6), tmp_path / "x.c")
    assert not (tmp_path / "x.c").exists()


def test_writes_one_file_and_returns_its_path(tmp_path):
    path = lw.export_c("mass_matrix", lw.mechanisms.cart_pole(), str(tmp_path / "cart.c"))
    assert path == tmp_path / "cart.c"
    assert list(tmp_path.iterdir()) == [path]
    assert lw.compile("mass_matrix", lw.mechanisms.cart_pole()).source("c") in path.read_text()


ORDER = "(a unit quaternion, scalar first; velocities along the axes of the link, angular first)"


def test_the_head_tells_whose_coordinates_are_where(tmp_path):
    builder = lw.Builder().link("body", 1.0, (0, 0, 0), (1, 1, 1)).link("fin", 1.0, (0, 0, 0), (1, 1, 1))
    builder.link("flap", 1.0, (0, 0, 0), (1, 1, 1)).joint("free", lw.Floating(), "ground", "body")
    builder.joint("hinge */ /*\n", lw.Revolute((1, 0, 0)), "body", "fin")
    builder.joint("tie", lw.Revolute((1, 0, 0)), "fin", "flap", mimic=lw.Mimic("hinge */ /*\n", 2.0))
    path = lw.export_c("bias_force", builder.build("fish"), tmp_path / "fish.c")
    head = path.read_text().split("*/")[0]
    assert head.splitlines() == [
        "/*",
        " * bias_force of mechanism 'fish', written by linkwise",
        " * joints in order, with their places in q and v, and the links they move:",
        " *   q[0..6] v[0..5] 'free' (floating) moves 'body'",
        f" *     q: qw qx qy qz x y z; v: wx wy wz vx vy vz {ORDER}",
        " *   q[7] v[6] 'hinge * / / *\\n' (revolute) moves 'fin'",
        " *   q[7] v[6] 'tie' (revolute, follows 'hinge * / / *\\n') moves 'flap'",
        " ",
    ]


def test_the_head_tells_the_order_within_joints(tmp_path):
    builder = lw.Builder()
    kinds = (lw.Spherical(), lw.Universal((1, 0, 0), (0, 1, 0)), lw.Planar(), lw.Cylindrical((0, 0, 1)))
    for k, kind in enumerate(kinds):
        builder.link(f"link{k}", 1.0, (0, 0, 0), (1, 1, 1)).joint(f"joint{k}", kind, "ground", f"link{k}")
    head = lw.export_c("bias_force", builder.build("many"), tmp_path / "many.c").read_text().split("*/")[0]
    assert [line[7:] for line in head.splitlines() if line.startswith(" *     ")] == [
        f"q: qw qx qy qz; v: wx wy wz {ORDER}",
        "q: 1 2; v: 1 2",
        "q: x y angle; v: x y angle",
        "q: angle distance; v: angle distance",
    ]


@needs_compiler
def test_the_function_has_the_name_asked_for(tmp_path):
    mech = lw.mechanisms.cart_pole()
    q, _ = lw.random_state(mech, np.random.default_rng(0), (4,))
    path = lw.export_c("mass_matrix", mech, tmp_path / "cart.c", name="cart_inertia")
    got = run(path, "cart_inertia_batch", 4, (q,), np.empty((4, 2, 2)))
    np.testing.assert_allclose(got, lw.mass_matrix(mech, q), rtol=1e-14)


@pytest.mark.parametrize("name", ["", "two words", "2nd", "double", "t1", "_x", "é", 3])
def test_names_that_c_does_not_have_are_refused(name, tmp_path):
    with pytest.raises(ValueError, match="name must be a C identifier"):
        lw.export_c("mass_matrix", lw.mechanisms.cart_pole(), tmp_path / "x.c", name=name)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(CPP_COMPILER is None, reason="no C++ compiler on this machine")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_file_is_cpp_as_well(dtype, tmp_path):
    mech = lw.mechanisms.random_tree(3, 0)
    q, v = (x.astype(dtype) for x in lw.random_state(mech, np.random.default_rng(0), (4,)))
    path = lw.export_c("bias_force", mech, tmp_path / "bias.c", dtype=dtype)
    got = run(path, "bias_force_batch", 4, (q, v), np.empty_like(v), [CPP_COMPILER, "-x", "c++", "-std=c++17"])
    expected = lw.bias_force(mech, q, v)
    np.testing.assert_allclose(got, expected, atol=100 * np.finfo(dtype).eps * np.abs(expected).max())


def test_refuses_what_it_cannot_honour(tmp_path):
    mech = lw.mechanisms.cart_pole()
    with pytest.raises(TypeError, match="takes no target"):
        lw.export_c("mass_matrix", mech, tmp_path / "x.c", target="cuda")
    with pytest.raises(ValueError, match="mass_matrix"):
        lw.export_c("mas_matrix", mech, tmp_path / "x.c")
    with pytest.raises(OSError):
        lw.export_c("mass_matrix", mech, tmp_path / "no such folder" / "x.c")
    assert not (tmp_path / "x.c").exists()


def test_threads_are_a_public_setting():
    before = lw.codegen.get_num_threads()
    try:
        lw.codegen.set_num_threads(3)
        assert lw.codegen.get_num_threads() == 3
        with pytest.raises(ValueError, match="positive integer"):
            lw.codegen.set_num_threads(0)
    finally:
        lw.codegen.set_num_threads(before)


def test_public_names_are_sorted_and_there():
    assert lw.__all__ == sorted(lw.__all__)
    assert all(hasattr(lw, name) for name in lw.__all__)


@pytest.mark.parametrize("module", [lw, lw.mechanisms, lw.operators], ids=lambda module: module.__name__)
def test_dir_shows_public_names_only(module):
    assert dir(module) == sorted(module.__all__)
