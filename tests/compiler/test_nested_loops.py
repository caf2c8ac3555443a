"""Nested loops: matrices over the joints, filled along the way inwards of every degree of freedom."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.ir.spec import IllegalProgram, check
from linkwise.compiler.passes.unroll import unroll
from linkwise.compiler.pipeline import trace_with_plan
from linkwise.compiler.runtime.cache import program_key
from linkwise.compiler.targets import numpy_reference
from linkwise.compiler.targets.protocol import Options
from linkwise.mechanics.operators import H, M, phi
from tests.algorithms import VARIANTS
from tests.compiler.targets import cuda_on_host
from tests.compiler.test_export import needs_compiler, run
from tests.compiler.test_loops import MECHANISMS, largest_error, states

NESTED = ("mass_matrix", "inverse_dynamics_derivatives", "inverse_dynamics_derivatives_with_wrenches")
BY_COLUMN = ("mass_matrix_inverse", "forward_dynamics_derivatives", "forward_dynamics_derivatives_with_wrenches")


def in_a_row(mech):
    """The bodies of a tree, each carried by the one before."""
    bodies = tuple(replace(body, parent=k - 1) for k, body in enumerate(mech.bodies))
    return replace(mech, bodies=bodies)


def mechanism_called(name):
    if name == "all joints in a row":
        return in_a_row(lw.mechanisms.random_tree(12, 5, floating_base=True))
    return lw.mechanisms.random_tree(6, 1, ["revolute"]) if name == "branches" else MECHANISMS[name]()


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize(
    "name, mechanism",
    [(name, "pins in slots") for name in NESTED]
    + [("mass_matrix", mechanism) for mechanism in MECHANISMS if mechanism != "pins in slots"]
    + [("inverse_dynamics_derivatives", "chain")]
    + [(name, "branches") for name in BY_COLUMN]
    + [("mass_matrix_inverse", name) for name in ("chain", "one link", "all joints in a row")]
    + [
        pytest.param("inverse_dynamics_derivatives", mechanism, marks=pytest.mark.slow)
        for mechanism in MECHANISMS
        if mechanism not in ("pins in slots", "chain")
    ]
    + [
        pytest.param(BY_COLUMN[1], name, marks=pytest.mark.slow) for name in ("tree", "pins in slots", "links in a row")
    ],
)
def test_nested_loops_mean_what_the_straight_line_means(name, mechanism):
    mech = mechanism_called(mechanism)
    looped, straight = (lw.compile(VARIANTS[name], mech, target="numpy", loops=loops) for loops in (True, False))
    assert looped.traced.loops
    assert looped.traced.is_nested == (mech.n_links > 1)
    assert looped.input_shapes == straight.input_shapes and looped.output_shapes == straight.output_shapes
    arrays = states(mech, looped, (3,))
    expected = straight(*arrays)
    own = 1e-11 if name in BY_COLUMN else 1e-12  # by other algorithms, and ill-conditioned
    assert largest_error(looped(*arrays), expected) < own
    unrolled = check(unroll(looped.traced))  # cells that are read and were not written are found here
    (found,) = numpy_reference.evaluate(unrolled, arrays)
    assert largest_error(found, expected) < own
    assert looped.sparsity[straight.sparsity].all()  # general code has fewer zeros, and none that are not
    assert sum(looped.op_counts.values()) >= sum(unroll(looped.traced).op_counts.values())


STEPS = {
    "branches": lambda: lw.mechanisms.random_tree(6, 1, ["revolute"]),
    "all joints in a row": lambda: in_a_row(lw.mechanisms.random_tree(5, 5, floating_base=True)),
    "links in a row": lambda: lw.mechanisms.chain(37),
}


@pytest.mark.slow_cases("links in a row")
@pytest.mark.parametrize("wrenches", [False, True])
@pytest.mark.parametrize("mechanism", STEPS)
def test_derivatives_of_steps_row_by_row_are_those_of_all_rows(mechanism, wrenches):
    """By sweeps over the links for each row, and by products with matrices: two outputs, made of blocks."""
    mech, ports = STEPS[mechanism](), ("wrenches",) if wrenches else ()
    looped, straight = (
        lw.compile("rk4_step_derivatives", mech, target="numpy", loops=loops, ports=ports) for loops in (True, False)
    )
    assert looped.traced.is_nested and not straight.traced.is_nested
    assert looped.input_shapes == straight.input_shapes and looped.output_shapes == straight.output_shapes
    arrays = states(mech, looped, (3,))
    machine = lw.compile("rk4_step_derivatives", mech, loops=True, ports=ports)
    unrolled = numpy_reference.evaluate(check(unroll(looped.traced)), arrays)
    expected = straight(*arrays)
    for found in (looped(*arrays), machine(*arrays), unrolled):
        for one, other in zip(found, expected, strict=True):
            assert largest_error(one, other) < 1e-11


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize(
    "name, mechanism, dtype",
    [
        ("mass_matrix", "bushy tree", "float64"),
        ("forward_dynamics_derivatives", "branches", "float64"),
        ("inverse_dynamics_derivatives", "chain", "float64"),
        ("inverse_dynamics_derivatives", "chain", "float32"),
        pytest.param("inverse_dynamics_derivatives", "bushy tree", "float64", marks=pytest.mark.slow),
    ],
)
def test_machine_code(name, mechanism, dtype):
    mech = mechanism_called(mechanism)
    looped, reference = (lw.compile(VARIANTS[name], mech, dtype, target, loops=True) for target in ("cpu", "numpy"))
    for batch in ((), (11,), (2, 3)):
        arrays = [x.astype(dtype) for x in states(mech, looped, batch)]
        expected = reference(*arrays)
        out = np.full_like(expected, np.nan)  # nothing is left unwritten where links are on different branches
        assert looped(*arrays, out=out) is out
        assert largest_error(out, expected) < (1e-12 if dtype == "float64" else 1e-5)


def test_long_chains_have_right_matrices():
    """Columns of the mass matrix are forces of unit accelerations; derivatives agree with differences."""
    n, rng = 70, np.random.default_rng(3)
    mech = lw.mechanisms.chain(n)
    (q, v), a, along = lw.random_state(mech, rng), rng.normal(size=n), rng.normal(size=n)
    kernel = lw.compile("inverse_dynamics_derivatives", mech)
    assert kernel.traced.loops
    d_q, d_v, d_a = kernel(q, v, a)
    mass = lw.mass_matrix(mech, q)
    solved = lw.compile("forward_dynamics_derivatives", mech)
    assert solved.traced.loops
    by_q, by_v, by_tau = solved(q, v, lw.inverse_dynamics(mech, q, v, a))
    scale = np.abs(by_tau) @ np.abs(mass)  # entries of the products cancel
    assert (np.abs(by_tau @ mass - np.eye(n)) < 1e-12 * (scale + 1)).all()
    for by, found in ((by_q, d_q), (by_v, d_v)):
        assert (np.abs(mass @ by + found) < 1e-10 * (np.abs(mass) @ np.abs(by) + np.abs(found))).all()
    columns = lw.inverse_dynamics(mech, q, 0 * v, np.eye(n)) - lw.gravity_force(mech, q)
    assert largest_error(mass, columns) < 1e-12
    assert largest_error(d_a, mass) < 1e-12
    h = 1e-6
    for found, (dq, dv) in ((d_q, (along, 0)), (d_v, (0, along))):
        ahead, behind = (lw.inverse_dynamics(mech, q + s * h * dq, v + s * h * dv, a) for s in (1, -1))
        assert largest_error((ahead - behind) / (2 * h), found @ along) < 1e-7


def test_zeros_take_no_memory():
    """Entries of pairs on different branches are in no cells; those of a symmetric matrix in one."""
    mech = MECHANISMS["bushy tree"]()
    program = lw.compile("mass_matrix", mech, target="numpy", loops=True).traced
    (places,) = program.results
    places = places.reshape(mech.nv, mech.nv)
    assert (places < 0).sum() > places.size / 2 and not program.sparsity[0][places < 0].any()
    outside = ~np.array([[a.joint == b.joint for a in dofs(mech)] for b in dofs(mech)])
    assert (places == places.T)[outside].all()


def dofs(mech):
    return [body for body in mech.bodies for _ in range(body.nv)]


def test_expressions_of_the_user():
    mech = MECHANISMS["bushy tree"]()
    looped, straight = (lw.compile(H @ phi @ M @ phi.T @ H.T, mech, target="numpy", loops=x) for x in (True, False))
    q = lw.random_state(mech, np.random.default_rng(0), (4,))[0]
    assert largest_error(looped(q), straight(q)) < 1e-12


@pytest.mark.parametrize("link", ["link9", "link4"])
@pytest.mark.parametrize("mechanism", ["chain", "floating tree", "links in a row"])
def test_jacobians_of_one_frame(mechanism, link):
    """The frame's link is of a kind of its own, and so are those on the way to it."""
    pose = np.array([[0, -1, 0, 0.1], [1, 0, 0, -0.2], [0, 0, 1, 0.3], [0, 0, 0, 1]])
    mech = MECHANISMS[mechanism]().with_frame("probe", link, pose)
    for frame in (link, "probe"):
        looped, straight = (lw.compile("jacobian", mech, target="numpy", link=frame, loops=x) for x in (True, False))
        assert looped.traced.loops and looped.output_shapes == straight.output_shapes
        q = states(mech, looped)[0]
        assert largest_error(looped(q), straight(q)) < 1e-13
        assert (looped.sparsity == straight.sparsity).all()


@needs_compiler
@pytest.mark.parametrize(
    "name, mechanism", [("mass_matrix", "floating tree"), ("forward_dynamics_derivatives", "branches")]
)
def test_exported_c(name, mechanism, tmp_path):
    mech = mechanism_called(mechanism)
    kernel = lw.compile(VARIANTS[name], mech, target="numpy", loops=True)
    arrays = states(mech, kernel, (3,))
    path = lw.export_c(kernel, mech, tmp_path / "kernel.c")
    expected = kernel(*arrays)
    found = run(path, f"{name}_batch", 3, arrays, np.full_like(expected, np.nan))
    assert largest_error(found, expected) < 1e-12


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler on this machine")
@pytest.mark.parametrize("name", ["mass_matrix", "forward_dynamics_derivatives", "rk4_step_derivatives"])
def test_cuda_text_on_the_host(name, monkeypatch, tmp_path):
    cuda_on_host.install(monkeypatch, tmp_path)
    mech = mechanism_called("branches")
    own, reference = (lw.compile(VARIANTS[name], mech, target=target, loops=True) for target in ("cuda", "numpy"))
    arrays = states(mech, reference, (40,))
    for laid in (np.ascontiguousarray, np.asfortranarray):
        both = own(*map(laid, arrays)), reference(*arrays)
        for found, expected in zip(*both, strict=True) if isinstance(both[0], tuple) else [both]:
            assert largest_error(found, expected) < 1e-12


def test_languages_and_plan():
    mech = MECHANISMS["chain"]()
    kernel = lw.compile("mass_matrix", mech, target="numpy", loops=True)
    space: dict = {}
    exec(kernel.source("numpy"), space)  # noqa: S102
    arrays = states(mech, kernel)
    (found,) = space["mass_matrix"](*arrays)
    np.testing.assert_allclose(found, kernel(*arrays), rtol=1e-12, atol=1e-12)
    assert "of rows inwards" in kernel.ir()
    assert "inside, inwards from link to link" in kernel.plan()


def test_variants_of_long_chains_have_loops_too():
    """Code that takes their numbers as inputs has none, and would be too long."""
    mech, rng = lw.mechanisms.chain(40), np.random.default_rng(5)
    (q, v), a = lw.random_state(mech, rng), rng.normal(size=40)
    results = []
    for payload in (1.0, 2.0, 3.0):
        variant = mech.with_payload("link40", payload, [0.0, 0.0, 0.1])
        _, _, by_tau = lw.forward_dynamics_derivatives(variant, q, v, a)
        assert largest_error(by_tau @ lw.mass_matrix(variant, q), np.eye(40)) < 1e-9
        results.append(by_tau)
    assert np.abs(results[0] - results[2]).max() > 1e-6


# -- when ---------------------------------------------------------------------------------------------------


def has_loops(name, mech):
    return trace_with_plan(VARIANTS[name], mech, loops=None).program.loops


def test_long_chains_have_nested_loops_and_humanoids_have_none():
    assert has_loops("mass_matrix", lw.mechanisms.chain(60))
    assert has_loops("inverse_dynamics_derivatives", lw.mechanisms.chain(30))
    assert not has_loops("mass_matrix", lw.mechanisms.chain(24))
    humanoid = lw.mechanisms.random_tree(30, 0, ["revolute"], floating_base=True)  # few of its links are alike
    for name in ("mass_matrix", "mass_matrix_inverse", "inverse_dynamics_derivatives"):
        assert not has_loops(name, humanoid)
    columns = trace_with_plan(VARIANTS["forward_dynamics_derivatives"], humanoid, loops=None).program
    assert columns.loops  # loops over columns alone, not over links
    assert columns.constants_in_code and not columns.is_nested
    assert has_loops("forward_dynamics_derivatives", lw.mechanisms.chain(40))


def test_derivatives_of_steps_of_long_chains_have_nested_loops():
    program = trace_with_plan(VARIANTS["rk4_step_derivatives"], lw.mechanisms.chain(45), loops=None).program
    assert program.is_nested and sum(len(code.nodes) for code, _ in program.blocks) < 50_000


def test_the_length_of_the_code_does_not_grow_with_the_chain():
    keys, sizes = set(), []
    for n in (100, 300):
        program = trace_with_plan(VARIANTS["mass_matrix"], lw.mechanisms.chain(n), loops=None).program
        between = program.cells - len(np.unique(program.results[0]))  # those that are no results
        sizes.append((sum(body.program.size for body, _ in program.bodies), between / n, program.size / n**2))
        keys.add(program_key(program, Options("float64")))
    (short, cells, work), (long, more_cells, more_work) = sizes
    assert long < 1.5 * short and more_cells < 1.1 * cells and more_work < 1.1 * work and len(keys) == 2


# -- what is no legal program -------------------------------------------------------------------------------


def test_illegal_nests_are_refused():
    program = lw.compile("mass_matrix", MECHANISMS["bushy tree"](), target="numpy", loops=True).traced
    assert check(program) is program
    (places,) = program.results
    *before, last = program.loops
    with pytest.raises(IllegalProgram, match="not written completely"):
        check(replace(program, loops=tuple(before)))
    for wrong in (places + program.cells, places[1:]):
        with pytest.raises(IllegalProgram, match="is in no cells"):
            check(replace(program, results=(wrong,)))
    rows = last.inner

    def with_rows(**changes):
        return replace(program, loops=(*before, replace(last, inner=replace(rows, **changes))))

    with pytest.raises(IllegalProgram, match="leads to no iteration"):
        check(with_rows(first=rows.first + len(rows.following)))
    with pytest.raises(IllegalProgram, match="has no end"):
        check(with_rows(following=np.zeros_like(rows.following)))
    with pytest.raises(IllegalProgram, match="not one trip for each"):
        check(with_rows(first=rows.first[1:]))
    with pytest.raises(IllegalProgram, match="a loop that is not there"):
        check(replace(program, loops=(*before, rows)))
    with pytest.raises(IllegalProgram, match="outside its array"):
        check(with_rows(bases=rows.bases + 10**6))
