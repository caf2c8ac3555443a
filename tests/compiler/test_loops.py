"""Programs with loops: the same numbers as straight-line code, on every target, for all that goes from link to link."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.ir.program import CELL, INPUT, OUTPUT
from linkwise.compiler.ir.spec import IllegalProgram, check
from linkwise.compiler.passes.unroll import unroll
from linkwise.compiler.pipeline import trace_with_plan
from linkwise.compiler.runtime.cache import program_key
from linkwise.compiler.targets import numpy_reference
from linkwise.compiler.targets.protocol import Options
from linkwise.mechanics.operators import H, M, joint_vector, phi, psi
from linkwise.mechanics.recursions.link_classes import assembled, classify_links, taken_apart
from linkwise.mechanics.recursions.tree import build_tree
from tests.algorithms import VARIANTS
from tests.compiler.targets import cuda_on_host
from tests.compiler.test_export import needs_compiler, run

#: All algorithms that can have loops.
LOOPED = (
    *("inverse_dynamics", "inverse_dynamics_with_wrenches", "forward_dynamics", "forward_dynamics_with_wrenches"),
    *("joint_wrenches", "joint_wrenches_with_wrenches", "forward_link_accelerations", "bias_force", "gravity_force"),
    *("static_forces", "static_forces_with_wrenches", "link_velocities", "link_accelerations", "link_poses"),
    *("coordinate_rates", "integrate", "difference", "rk4_step", "rk4_step_with_wrenches", "semi_implicit_step"),
    *("semi_implicit_step_with_wrenches", "diagonal_rates", "diagonal_velocities", "diagonal_forces"),
    *("diagonal_forces_of_all", "diagonal_torques"),
)
MECHANISMS = {
    "chain": lambda: lw.mechanisms.chain(9),
    "tree": lambda: lw.mechanisms.random_tree(14, 3),
    "bushy tree": lambda: lw.mechanisms.random_tree(20, 8),
    "floating tree": lambda: lw.mechanisms.random_tree(12, 5, floating_base=True),
    "equal links": lambda: lw.mechanisms.planar_arm(7),
    "links in a row": lambda: lw.mechanisms.chain(37),
    "one link": lambda: lw.mechanisms.random_tree(1, 3, ["prismatic"]),
    "pins in slots": lambda: lw.mechanisms.random_tree(9, 2, ["pin_in_slot", "helical", "universal", "planar"]),
}


def states(mech, kernel, batch=(5,), seed=0):
    """Random inputs of a kernel; configurations are ones."""
    rng = np.random.default_rng(seed)
    arrays = {name: rng.normal(size=(*batch, *shape)) for name, shape in kernel.input_shapes.items()}
    if "dt" in arrays:
        arrays["dt"] *= 1e-3
    return [lw.random_state(mech, rng, batch)[0] if name in ("q", "q0", "q1") else x for name, x in arrays.items()]


def largest_error(found, expected):
    return np.abs(found - expected).max() / max(1.0, np.abs(expected).max())


MEANT = [(name, "floating tree") for name in LOOPED] + [
    (name, mechanism)
    for name in ("forward_dynamics", "inverse_dynamics_with_wrenches", "semi_implicit_step")
    for mechanism in MECHANISMS
    if mechanism != "floating tree"
]


@pytest.mark.slow_cases("rk4_step_with_wrenches")
@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("name, mechanism", MEANT)
def test_loops_mean_what_the_straight_line_means(name, mechanism):
    mech = MECHANISMS[mechanism]()
    looped, straight = (lw.compile(VARIANTS[name], mech, target="numpy", loops=loops) for loops in (True, False))
    assert looped.traced.loops and not straight.traced.loops
    assert looped.input_shapes == straight.input_shapes and looped.output_shapes == straight.output_shapes
    arrays = states(mech, looped)
    expected = straight(*arrays)
    assert largest_error(looped(*arrays), expected) < 1e-11
    unrolled = check(unroll(looped.traced))  # cells that are read and were not written are found here
    (found,) = numpy_reference.evaluate(unrolled, arrays)
    assert largest_error(found, expected) < 1e-11
    assert [name for _, name in looped.sweeps] == [name for _, name in straight.sweeps]
    assert (looped.sparsity == straight.sparsity).all() or looped.sparsity[straight.sparsity].all()


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "name, mechanism",
    [
        ("forward_dynamics", "tree"),
        ("forward_dynamics", "floating tree"),
        ("rk4_step", "equal links"),
        ("rk4_step", "chain"),
        ("forward_dynamics", "links in a row"),
        ("link_poses", "pins in slots"),
    ],
)
def test_machine_code(name, mechanism, dtype):
    mech = MECHANISMS[mechanism]()
    looped, reference = (lw.compile(VARIANTS[name], mech, dtype, target, loops=True) for target in ("cpu", "numpy"))
    for batch in ((), (1,), (37,), (2, 0, 3), (3, 5)):
        arrays = [x.astype(dtype) for x in states(mech, looped, batch)]
        found, expected = looped(*arrays), reference(*arrays)
        assert found.shape == expected.shape and found.dtype == dtype
        if found.size:
            exact = lw.compile(VARIANTS[name], mech, target="numpy", loops=False)(*(x.astype(float) for x in arrays))
            own = largest_error(expected, exact)  # how ill-conditioned the tree is shows in the reference too
            assert largest_error(found, exact) < 30 * own + (1e-12 if dtype == "float64" else 1e-4)


def test_strides_and_given_results():
    mech = MECHANISMS["tree"]()
    kernel = lw.compile("forward_dynamics", mech, loops=True)
    q, v, tau = states(mech, kernel, (11,))
    expected = kernel(q, v, tau)
    np.testing.assert_array_equal(kernel(*(np.asfortranarray(x) for x in (q, v, tau))), expected)
    out = np.empty((22, mech.nv))[::2]
    assert kernel(q, v, tau, out=out) is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(kernel(q, v[3], tau)[3], expected[3])


@pytest.mark.slow_cases("semi_implicit_step")
@needs_compiler
@pytest.mark.parametrize("name", ["forward_dynamics", "semi_implicit_step", "link_velocities"])
def test_exported_c(name, tmp_path):
    mech = MECHANISMS["floating tree"]()
    kernel = lw.compile(VARIANTS[name], mech, target="numpy", loops=True)
    arrays = states(mech, kernel, (13,))
    path = lw.export_c(kernel, mech, tmp_path / "kernel.c")
    expected = kernel(*arrays)
    found = run(path, f"{name}_batch", 13, arrays, np.full_like(expected, np.nan))
    assert largest_error(found, expected) < 1e-11


@pytest.mark.slow_cases("asfortranarray", "forward_dynamics_with_wrenches")
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler on this machine")
@pytest.mark.parametrize("laid", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("name", ["forward_dynamics", "link_poses", "forward_dynamics_with_wrenches"])
def test_cuda_text_on_the_host(name, laid, monkeypatch, tmp_path):
    cuda_on_host.install(monkeypatch, tmp_path)
    mech = MECHANISMS["tree"]()
    own, reference = (lw.compile(VARIANTS[name], mech, target=target, loops=True) for target in ("cuda", "numpy"))
    arrays = states(mech, reference, (40,))
    assert largest_error(own(*map(laid, arrays)), reference(*arrays)) < 1e-11


def test_every_language_writes_loops():
    mech = MECHANISMS["chain"]()
    kernel = lw.compile("forward_dynamics", mech, target="numpy", loops=True)
    for language in lw.codegen.LANGUAGES:
        assert len(kernel.source(language)) < 0.9 * len(
            lw.compile("forward_dynamics", mech, target="numpy", loops=False).source(language)
        )
    space: dict = {}
    exec(kernel.source("numpy"), space)  # noqa: S102
    arrays = states(mech, kernel)
    (found,) = space["forward_dynamics"](*arrays)
    np.testing.assert_allclose(found, kernel(*arrays), rtol=1e-12, atol=1e-12)
    assert "loop angular velocities" in kernel.ir() and "7 times" in kernel.ir()
    assert "Loops over the links" in kernel.plan() and "and 6 like it" in kernel.plan()


def test_expressions_of_the_user():
    mech, x = MECHANISMS["bushy tree"](), joint_vector("x")
    for expression in (H @ phi @ M @ phi.T @ H.T @ x, H @ psi @ M @ psi.T @ H.T @ x):
        looped, straight = (lw.compile(expression, mech, target="numpy", loops=loops) for loops in (True, False))
        arrays = states(mech, looped)
        assert largest_error(looped(*arrays), straight(*arrays)) < 1e-11


def test_rollouts_of_long_chains():
    mech, rng = lw.mechanisms.chain(40), np.random.default_rng(2)
    (q, v), tau = lw.random_state(mech, rng, (3,)), rng.normal(size=(3, 2, 40))
    found = lw.rollout(mech, q, 0.1 * v, tau, 1e-3, 2, method="semi_implicit")
    step = lw.compile("semi_implicit_step", mech, target="numpy", loops=False)
    state = step(q, 0.1 * v, tau[:, 0], 1e-3)
    state = step(state[:, :40], state[:, 40:], tau[:, 1], 1e-3)
    np.testing.assert_allclose(np.concatenate([x[:, -1] for x in found[:2]], axis=-1), state, rtol=1e-9, atol=1e-9)


def test_links_in_a_row_are_done_two_at_a_time():
    program = lw.compile("forward_dynamics", MECHANISMS["links in a row"](), target="numpy", loops=True).traced
    for loop in program.loops:
        assert loop.repeats.max() == 17 and len(loop.which) == 20
        pair = loop.bodies[loop.repeats.argmax()]
        places = {place for place in (*pair.reads, *pair.writes) if place.space == INPUT}
        assert len({place.base for place in places}) <= 1  # what lies side by side has one position
        passing = {place.base for place in (*pair.reads, *pair.writes) if place.space == CELL}
        assert len(passing) == 3  # from the iteration before, to the next one, and what is kept for other sweeps


# -- when ---------------------------------------------------------------------------------------------------


def has_loops(name, mech, **options):
    return trace_with_plan(VARIANTS[name], mech, loops=None, options=options).program.loops


def test_long_chains_have_loops_and_arms_have_none():
    assert has_loops("forward_dynamics", lw.mechanisms.chain(60), method="biased")
    assert not has_loops("forward_dynamics", lw.mechanisms.chain(6), method="biased")
    assert not has_loops("forward_dynamics", lw.mechanisms.puma560(), method="biased")
    humanoid = lw.mechanisms.random_tree(30, 0, ["revolute"], floating_base=True)  # few of its links are alike
    assert not has_loops("forward_dynamics", humanoid, method="biased")


def test_the_length_of_the_code_does_not_grow_with_the_chain():
    sizes = []
    for n in (100, 400):
        program = lw.compile("forward_dynamics", lw.mechanisms.chain(n), target="numpy").traced
        sizes.append((sum(body.program.size for body, _ in program.bodies), program.cells / n, program.size / n))
    (short, cells, work), (long, more_cells, more_work) = sizes
    assert long < 2 * short and more_cells < 1.1 * cells and more_work < 1.1 * work


def test_mechanisms_that_differ_in_numbers_share_code():
    keys, results = set(), []
    for payload in (1.0, 2.0):
        mech = lw.mechanisms.chain(40).with_payload("link40", payload, [0.0, 0.0, 0.1])
        kernel = lw.compile("inverse_dynamics", mech, loops=True)
        keys.add(program_key(kernel.traced, Options("float64")))
        results.append(kernel(*states(mech, kernel)))
    assert len(keys) == 1 and np.abs(results[0] - results[1]).max() > 1e-3


@pytest.mark.parametrize("name", ["coriolis_matrix", "kinetic_energy", "inverse_dynamics_second_derivatives"])
def test_what_has_no_loops_says_so(name):
    with pytest.raises(lw.MechanismError, match="no program with loops"):
        lw.compile(VARIANTS[name], lw.mechanisms.chain(5), loops=True)


def test_factored_matrices_have_no_loops():
    mech = lw.mechanisms.random_tree(30, 1)
    with pytest.raises(lw.MechanismError, match="a matrix over all links is factored"):
        lw.compile("forward_dynamics", mech, loops=True, method="composite_bodies")
    assert not has_loops("forward_dynamics", mech, method="composite_bodies")


def test_mimic_joints_and_parameters_are_compiled_straight():
    mech = lw.mechanisms.chain(5)
    with pytest.raises(lw.MechanismError, match="inputs"):
        lw.compile("inverse_dynamics", mech, loops=True, parameters=["mass"])


# -- kinds of links -----------------------------------------------------------------------------------------


def test_every_link_has_one_kind_and_its_numbers():
    tree = build_tree(lw.mechanisms.random_tree(60, 4))
    kinds = classify_links(tree.links)
    assert sorted(i for kind in kinds for i in kind.links) == list(range(60))
    q = np.random.default_rng(0).normal(size=8)
    for kind in kinds:
        for row, i in enumerate(kind.links):
            link, own = tree.links[i], kind.link(kind.table[row][kind.varies].tolist())
            here, there = (x.joint_kinematics(q[: x.joint.nq].tolist()) for x in (own, link))
            np.testing.assert_allclose(here.transform.rotation(), there.transform.rotation(), atol=1e-12)
            np.testing.assert_allclose(here.transform.position(), there.transform.position(), atol=1e-12)
            for one, other in zip(here.motion, there.motion, strict=True):
                np.testing.assert_allclose(one.flat(), other.flat(), atol=1e-12)
            np.testing.assert_allclose(own.inertia.numbers, link.inertia.numbers, atol=1e-12)
            np.testing.assert_allclose(own.armature, link.armature)


def test_values_are_taken_apart_and_assembled():
    tree = build_tree(lw.mechanisms.puma560())
    value = (tree.links[2].place, tree.links[2].inertia, [1.0, None], 2.0)
    form, numbers = taken_apart(value)
    assert assembled(form, numbers) == value


# -- what is no legal program -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["forward_dynamics", "mass_matrix"])
def test_cells_that_are_read_before_they_are_written_are_refused(name):
    """Loops in another order, and links of the first in the other direction."""
    from dataclasses import replace

    program = lw.compile(name, MECHANISMS["floating tree"](), target="numpy", loops=True).traced
    assert check(program) is program
    for k in range(1, len(program.loops)):
        with pytest.raises(IllegalProgram, match="is read before it is written"):
            check(replace(program, loops=(*program.loops[k:], *program.loops[:k])))
    first, *rest = program.loops
    turned = replace(first, which=first.which[::-1], bases=first.bases[::-1])
    with pytest.raises(IllegalProgram, match="is read before it is written"):
        check(replace(program, loops=(turned, *rest)))


def test_loops_that_leave_their_arrays_are_refused():
    from dataclasses import replace

    program = lw.compile("gravity_force", lw.mechanisms.chain(4), target="numpy", loops=True).traced
    assert check(program) is program
    with pytest.raises(IllegalProgram, match="outside its array"):
        check(replace(program, cells=1))
    with pytest.raises(IllegalProgram, match="not written completely"):
        check(replace(program, loops=program.loops[:1]))
    first, *rest = program.loops
    with pytest.raises(IllegalProgram, match="no body"):
        check(replace(program, loops=(replace(first, which=first.which + 9), *rest)))
    assert any(place.space == OUTPUT for body, _ in program.bodies for place in body.writes)
