"""What must not matter: names, the order of declaration, the shape of the batch, memory layout, precision."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.physics.trees import Model, close, rebuilt, reordering

ALGORITHMS = {
    "inverse_dynamics": ("q", "v", "a"),
    "forward_dynamics": ("q", "v", "a"),
    "mass_matrix": ("q",),
    "mass_matrix_inverse": ("q",),
    "coriolis_matrix": ("q", "v"),
    "link_poses": ("q",),
    "link_velocities": ("q", "v"),
    "kinetic_energy": ("q", "v"),
    "integrate": ("q", "v", "dt"),
}
MATRICES = ("mass_matrix", "mass_matrix_inverse", "coriolis_matrix")


def inputs(mech: lw.Mechanism, shape: tuple[int, ...], seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, shape)
    return {"q": q, "v": v, "a": rng.normal(size=v.shape), "dt": rng.normal(size=shape)}


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("n, seed", [(n, seed) for n in (3, 7, 15) for seed in range(4)])
def test_names_and_order_of_declaration(n, seed):
    """Joints keep their parents, but everything is declared in a random order (so siblings swap) with other names."""
    old = lw.mechanisms.random_tree(n, seed)
    new = rebuilt(old, np.random.default_rng(seed + 10).permutation(n), lambda name: f"new {name}")
    q_of, v_of, link_of = reordering(old, new, lambda name: f"new {name}")
    assert n == 3 or link_of != sorted(link_of), "the order should have changed"
    before, after = Model(old), Model(new)
    q, v, a, wrenches = before.states(4)
    q_new, v_new, a_new, wrenches_new = q[:, q_of], v[:, v_of], a[:, v_of], wrenches[:, link_of]
    for name in ("inverse_dynamics", "forward_dynamics"):
        close(getattr(after, name)(q_new, v_new, a_new), getattr(before, name)(q, v, a)[:, v_of], 1e-9)
        expected = getattr(before, f"{name}_with_wrenches")(q, v, a, wrenches)[:, v_of]
        close(getattr(after, f"{name}_with_wrenches")(q_new, v_new, a_new, wrenches_new), expected, 1e-9)
    reorder = np.ix_(range(4), v_of, v_of)
    close(after.mass_matrix(q_new), before.mass_matrix(q)[reorder], 1e-12, core=2)
    close(after.mass_matrix_inverse(q_new), before.mass_matrix_inverse(q)[reorder], 1e-9, core=2)
    close(after.link_poses(q_new), before.link_poses(q)[:, link_of], 1e-13, core=3)
    close(after.momentum(q_new, v_new), before.momentum(q, v), 1e-12)


@pytest.fixture(scope="module")
def mech() -> lw.Mechanism:
    return lw.mechanisms.random_tree(6, 2, floating_base=True)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 0, 3), (1,), (0,), (3, 1, 2, 2)], ids=str)
def test_batch_shapes(mech, name, shape):
    """Every state of a batch gives to the last bit what it gives alone, as machine code and on NumPy."""
    given = inputs(mech, shape)
    arrays = [given[array] for array in ALGORITHMS[name]]
    found = getattr(lw, name)(mech, *arrays)
    alone = getattr(lw, name)(mech, *(inputs(mech, ())[array] for array in ALGORITHMS[name]))
    assert found.shape == shape + alone.shape
    assert found.dtype == np.float64
    for index in np.ndindex(*shape):
        assert np.array_equal(found[index], getattr(lw, name)(mech, *(array[index] for array in arrays)))
    reference = lw.compile(name, mech, target="numpy")(*arrays)
    assert reference.shape == found.shape
    close(found, reference, 1e-11, core=found.ndim - len(shape))


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_inputs_broadcast_against_each_other(mech, name):
    given = inputs(mech, (4, 3))
    q, v, a = given["q"][:, :1], given["v"][0], given["a"][0, 0]
    whole = [
        np.broadcast_to(q, (4, 3, mech.nq)),
        np.broadcast_to(v, (4, 3, mech.nv)),
        np.broadcast_to(a, (4, 3, mech.nv)),
    ]
    function = getattr(lw, name)
    assert np.array_equal(function(mech, q, v, a), function(mech, *(np.ascontiguousarray(x) for x in whole)))


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_memory_layout_does_not_matter(mech, name):
    given = inputs(mech, (8,))
    arrays = [given[array] for array in ("q", "v", "a")]
    expected = getattr(lw, name)(mech, *arrays)
    layouts = {
        "Fortran": [np.asfortranarray(x) for x in arrays],
        "strided": [np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3] for x in arrays],
        "reversed": [x[::-1].copy()[::-1] for x in arrays],
        "lists": [x.tolist() for x in arrays],
        "big-endian": [x.astype(">f8") for x in arrays],
    }
    for layout, changed in layouts.items():
        assert np.array_equal(getattr(lw, name)(mech, *changed), expected), layout
    kernel = lw.compile(name, mech)
    out = np.full((8, 2 * mech.nv), np.nan)[:, ::2]
    assert kernel(*arrays, out=out) is out
    assert np.array_equal(out, expected)


def test_output_over_an_input(mech):
    """The result may be written over an argument: NumPy makes the copy that is needed."""
    given = inputs(mech, (9,))
    kernel = lw.compile("forward_dynamics", mech)
    expected = kernel(given["q"], given["v"], given["a"])
    assert np.array_equal(kernel(given["q"], given["v"], given["a"], out=given["a"]), expected)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_single_precision(mech, name):
    given = inputs(mech, (50,))
    arrays = [given[array].astype(np.float32) for array in ALGORITHMS[name]]
    single = getattr(lw, name)(mech, *arrays)
    assert single.dtype == np.float32
    double = getattr(lw, name)(mech, *(array.astype(np.float64) for array in arrays))
    assert double.dtype == np.float64
    size = np.linalg.norm(double.reshape(50, -1), axis=1)
    errors = np.linalg.norm((single - double).reshape(50, -1), axis=1) / size
    assert np.median(errors) < 3e-6
    condition = np.linalg.cond(lw.mass_matrix(mech, given["q"]))
    assert (errors < 1e-6 * np.maximum(condition, 10.0)).all()
    assert not np.array_equal(single, double)


def test_mixed_precision_is_computed_in_double(mech):
    given = inputs(mech, (3,))
    q32 = given["q"].astype(np.float32)
    found = lw.bias_force(mech, q32, given["v"])
    assert found.dtype == np.float64
    assert np.array_equal(found, lw.bias_force(mech, q32.astype(np.float64), given["v"]))


def test_integers_are_numbers(mech):
    q, v = lw.neutral(mech), np.ones(mech.nv)
    found = lw.inverse_dynamics(mech, q.astype(int), v.astype(int), [0] * mech.nv)
    assert np.array_equal(found, lw.inverse_dynamics(mech, q, v, 0.0 * v))


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_large_batches_over_threads_give_the_same(mech, name):
    given = inputs(mech, (20_000,))
    arrays = [given[array] for array in ("q", "v", "a")]
    whole = getattr(lw, name)(mech, *arrays)
    pieces = [getattr(lw, name)(mech, *(x[i : i + 500] for x in arrays)) for i in range(0, 20_000, 500)]
    assert np.array_equal(whole, np.concatenate(pieces))
