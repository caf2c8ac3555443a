"""What can be asked of ``compile``: names, public functions, expressions; everything else is refused by name."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler import known_targets, registry, store
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS, variants
from tests.algorithms import needed_options
from tools.uses import public_names

EVERYTHING = {name: operator.attrgetter(name)(lw) for name in public_names()}  # loaded: functions register when made
COMPILED = [function for function, made in registry._MADE.items() if made.algorithm is not None]
INSTEAD = {function: made.advice for function, made in registry._MADE.items() if made.algorithm is None}


def named(function) -> str:
    return f"{function.__module__}.{function.__name__}"


def arguments(kernel: lw.Kernel, mech: lw.Mechanism) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    states = iter(lw.random_state(mech, rng)[0] for _ in range(2))
    return [
        next(states) if name in kernel.configurations else (0.01 if name == "dt" else 1.0) * rng.normal(size=shape)
        for name, shape in kernel.input_shapes.items()
    ]


@pytest.mark.parametrize("function", COMPILED, ids=named)
def test_public_functions_compile_to_what_they_compute(function):
    """With the arrays in the order in which the function takes them; some functions give parts of the result."""
    loops = function.__module__.startswith("linkwise.constraints")
    mech = lw.mechanisms.five_bar() if loops else lw.mechanisms.stanford_arm()
    if "contact" in function.__name__:
        mech = mech.with_shape("ball", mech.link_names[-1], "sphere", 0.1).with_ground(-0.5)
    options = {name: mech.link_names[-1] for name in ("link",) if name in inspect.signature(function).parameters}
    kernel = lw.compile(function, mech, target="numpy", **({"link": mech.link_names[-1]} if options else {}))
    arrays = arguments(kernel, mech)
    assert list(inspect.signature(function).parameters)[1 : 1 + len(arrays)] == list(kernel.inputs)
    if named(function).endswith("constraints.inverse.inverse_dynamics"):  # of accelerations that loops allow
        arrays[2] = lw.forward_dynamics(mech, *arrays)
    found, expected = kernel(*arrays), function(mech, *arrays, **options)
    same = functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
    if function is lw.formulations.denoc.matrices:
        same(found, np.concatenate(expected, axis=-1))
    elif function is lw.contact.contact_points:  # one row of numbers for each
        gap, *vectors = expected
        same(found, np.concatenate([gap[..., None], *vectors], axis=-1))
    elif isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    else:
        same(found, expected)


def test_every_array_function_compiles():
    modules = "centroidal codegen contact control derivatives extend estimation files forces kinematics motion".split()
    functions = {
        name: value
        for name, value in EVERYTHING.items()
        if inspect.isfunction(value) and ("." not in name or name.rpartition(".")[0] in modules)
    }
    assert {name.rpartition(".")[2] for name, value in functions.items() if value not in COMPILED} == {
        *("base_parameters", "dh_table", "inertial_parameters", "physical_parameters", "rotor_inertias"),  # of no state
        *("check_state", "place_on_ground"),
        *("check_joint", "drive_values", "rotation_about", "tip_to_base"),  # of joints, drives and sweeps of one's own
        *(
            "from_dh",
            "load",
            "load_dh",
            "load_mesh",
            "load_motion",
            "load_srdf",
            "load_trajectory",
            "neutral",
            "pose",
            "random_state",
        ),
        *("check_units", "in_degrees", "in_radians", "read_table", "write_table"),  # tables of states
        *("configuration", "hold_contacts", "hold_frames", "interpolate", "wrenches_at"),  # made of others
        *("register_integrator", "register_reader", "register_target", "rollout_methods"),
        *("algorithms", "c_file", "compile", "export_c", "get_num_threads", "jacobian_of", "set_num_threads", "vjp_of"),
        *("jvp_of", "step_kernel", "view"),
        *("get_single_call_shortcut", "set_single_call_shortcut"),
        "symbolic",  # formulas, not numbers
        *(
            "computed_torque",
            "decoupled_tracking",
            "find_equilibrium",
            "held",
            "inverse_kinematics",
            "inverse_kinematics_branches",
            "joint_feedback",
            "linearize",
            "lqr",
            "operational_space_control",
            "rollout",
            "rollout_derivatives",
            "rollout_vjp",
            "saturated",
            "simulate",
            "step_derivatives",
        ),  # of many calls
        *("activation_rates", "actuator_forces", "joint_force_derivatives", "joint_forces"),  # of force elements
        *("forward_dynamics_second_derivatives", "joint_wrenches_derivatives"),
        *("joint_passes", "velocity_zero", "when"),
        *("implicit_coordinates", "local_parametrization", "rate_jacobian", "time_to_singular"),
        *("encoder_motion", "estimate_payload", "gains", "kalman", "log_likelihood", "smooth"),
        *("constraint_forces_derivatives", "loop_reactions_derivatives", "multipliers_derivatives"),
    }


def refused(function, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lw.compile(function, lw.mechanisms.puma560())


def test_functions_of_other_modules_are_not_taken_for_those_of_trees():
    refused(
        lw.formulations.diagonal.forward_dynamics,
        ".*diagonal.forward_dynamics .*: compile linkwise.formulations.diagonal.motion,",
    )
    refused(
        lw.formulations.diagonal.all_forces,
        "linkwise.dynamics.diagonal.all_forces .*: compile 'diagonal_forces_of_all'$",
    )
    refused(lw.constraints.project, "linkwise.constraints.assembly.project .*: compile 'closed_projection'")
    for function in (lw.simulate, lw.neutral, lw.formulations.diagonal.curvature, lw.jacobian_of):
        refused(
            function, rf"{named(function)} is no algorithm that can be compiled: available: inverse_dynamics, .* all$"
        )


def test_what_is_named_instead_exists():
    assert len(INSTEAD) >= 3
    for advice in INSTEAD.values():
        assert any(
            algorithm in advice
            for algorithm in (*ALGORITHMS, "diagonal.motion", "momenta.motion", "lw.motion.step_kernel")
        )


@pytest.mark.parametrize(
    ("other", "ours"), [("rnea", "inverse_dynamics"), ("aba", "forward_dynamics"), ("crba", "mass_matrix")]
)
def test_names_of_other_libraries(other, ours):
    mech = lw.mechanisms.puma560()
    found, expected = (lw.compile(name, mech, target="numpy") for name in (other, ours))
    assert found.name == ours and found.op_counts == expected.op_counts


@pytest.mark.parametrize(("asked", "meant"), [("rneaa", "rnea"), ("ABBA", "aba"), ("crbaa", "crba")])
def test_slips_in_names_of_other_libraries(asked, meant):
    with pytest.raises(ValueError, match=f"^unknown algorithm '{asked}': did you mean '{meant}'.$"):
        lw.compile(asked, lw.mechanisms.planar_arm(1))


def test_a_users_function_is_not_taken_for_ours():
    def mass_matrix(mech, q):
        return np.eye(3)

    refused(mass_matrix, "mass_matrix is no function of linkwise, .*: did you mean linkwise.mass_matrix.")
    refused(
        functools.wraps(lw.mass_matrix)(lambda mech, q: np.eye(3)),
        "mass_matrix is no function of linkwise, .*: did you mean",
    )
    refused(functools.partial(lw.mass_matrix), "functools.partial.* is no function of linkwise")
    refused(store.kernel_function, "linkwise.compiler.store.kernel_function is no algorithm")


def test_languages_and_targets_follow_from_one_table():
    kernel = lw.compile("mass_matrix", lw.mechanisms.planar_arm(2), target="numpy")
    assert len({kernel.source(language) for language in lw.codegen.LANGUAGES}) == len(lw.codegen.LANGUAGES) >= 4
    with pytest.raises(ValueError, match="language 'fortran'.*'llvm', 'c', 'cuda', 'numpy'"):
        kernel.source("fortran")
    assert {"cpu", "cuda", "numpy"} <= set(known_targets.rollout_targets()) <= set(lw.codegen.TARGETS)


def test_a_target_added_to_the_table_is_offered_everywhere(monkeypatch):
    """One record, and ``compile``, ``kernel.source`` and ``rollout`` know it."""

    def emit(program, options):
        return f"{program.name} in {options.dtype}"

    for table in ("_WRITTEN", "_RUNNING"):
        monkeypatch.setattr(known_targets, table, dict(getattr(known_targets, table)))
    before = lw.codegen.LANGUAGES, lw.codegen.TARGETS
    new = dataclasses.replace(known_targets._RUNNING["numpy"], language="abacus", emit=emit, name="beads")
    lw.extend.register_target(new)
    assert (lw.codegen.LANGUAGES, lw.codegen.TARGETS) == ((*before[0], "abacus"), (*before[1], "beads"))
    mech = lw.mechanisms.planar_arm(2)
    kernel = lw.compile("mass_matrix", mech, target="beads", dtype="float32")
    assert kernel.target == "beads" and kernel.source("abacus") == "mass_matrix in float32"
    q = np.array([0.1, 0.2])
    np.testing.assert_allclose(kernel(q.astype(np.float32)), lw.mass_matrix(mech, q), rtol=1e-5)
    for found, expected in zip(
        *(lw.rollout(mech, q, q, None, 0.1, 2, target=target) for target in ("beads", "numpy")), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_targets_that_contradict_themselves_or_others_are_refused():
    for target, message in (
        (
            lw.extend.Target("c", lambda program, options: ""),
            "language 'c' is known already; known: llvm, c, cuda, numpy",
        ),
        (lw.extend.Target("d", lambda program, options: "", name="d"), "needs a name and a load function, or neither"),
        (dataclasses.replace(known_targets._RUNNING["numpy"], language="d"), "target 'numpy' is known already"),
    ):
        with pytest.raises(ValueError, match=message):
            lw.extend.register_target(target)
    assert "d" not in lw.codegen.LANGUAGES


def test_what_is_neither_name_nor_function_is_refused():
    for asked in (3, None, lw.mechanisms.puma560()):
        with pytest.raises(TypeError, match="an algorithm is a name, a function of linkwise or an operator expression"):
            lw.compile(asked, lw.mechanisms.puma560())


def together(found):
    """All results of a kernel in one vector."""
    return np.concatenate([np.ravel(x) for x in (found if isinstance(found, tuple) else (found,))])


def test_wrenches_are_an_optional_input():
    names = {name for name, algorithm in ALGORITHMS.items() if "wrenches" in algorithm.ports}
    assert {"inverse_dynamics", "forward_dynamics_derivatives", "rk4_step", "diagonal_motion"} < names
    mech = lw.mechanisms.random_tree(4, 1)
    for name in names:
        plain, pushed = (lw.compile(name, mech, target="numpy", ports=ports) for ports in ((), "wrenches"))
        assert pushed.name == f"{plain.name}_with_wrenches" and pushed.inputs == (*plain.inputs, "wrenches")
        arrays = arguments(plain, mech)
        found, expected = together(pushed(*arrays, np.zeros((mech.n_links, 6)))), together(plain(*arrays))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        changed = np.abs(together(pushed(*arrays, np.ones((mech.n_links, 6)))) - expected)
        if (
            any(force in plain.name for force in ("multipliers", "constraint_forces", "loop_reactions"))
            and "by_" not in plain.name
        ):
            assert not changed.any()  # without loops they have no forces
        else:
            assert changed.max() > 1e-6


def test_former_names_of_algorithms_with_optional_inputs_warn():
    mech = lw.mechanisms.planar_arm(2)
    with pytest.warns(DeprecationWarning, match=r"compile\('forward_dynamics', mech, ports=\('wrenches',\)\)"):
        former = lw.compile("forward_dynamics_with_wrenches", mech, target="numpy")
    now = lw.compile("forward_dynamics", mech, target="numpy", ports="wrenches")
    arrays = arguments(now, mech)
    np.testing.assert_array_equal(former(*arrays), now(*arrays))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(now))(*arrays), now(*arrays))
    with pytest.raises(ValueError, match="mass_matrix has no optional input 'wrenches'"):
        lw.compile("mass_matrix", mech, ports="wrenches")
    with pytest.raises(ValueError, match="it has: active, wrenches"):
        lw.compile("closed_multipliers", mech, ports="pushes")


@pytest.mark.parametrize("mech", [lw.mechanisms.planar_arm(2), lw.mechanisms.five_bar()], ids=lambda mech: mech.name)
def test_results_have_the_shapes_that_the_catalogue_names(mech):
    """Without loops, too, where some have no elements: the forces of constraints are then zero, not missing."""
    for algorithm in variants():
        name, options = algorithm.name, needed_options(algorithm, mech)
        try:
            kernel = lw.compile(algorithm, mech, target="numpy", **options)
        except lw.MechanismError:
            assert mech.loops or name.removesuffix("_with_active") in ("operational_inertia", "manipulability")
            continue
        found, serving = kernel(*arguments(kernel, mech)), algorithm.of(mech)
        decided = serving.with_defaults(mech, {})
        for output, array in zip(kernel.output_shapes, found if isinstance(found, tuple) else (found,), strict=True):
            assert array.shape == kernel.output_shapes[output] and output in serving.outputs
            known = serving.result_shape(output, mech, options=decided)
            assert known is None or array.shape == known, name
    motion = lw.compile("constraint_motion", lw.mechanisms.planar_arm(2))
    np.testing.assert_array_equal(motion(np.ones(2), np.ones(2), np.ones(2), np.zeros(0)), np.zeros(2))


def test_arrays_that_are_missing_are_named():
    arm = lw.mechanisms.planar_arm(3)
    for call, message in (
        (
            lambda: lw.formulations.diagonal.rates(arm, np.zeros(3), None),
            r"diagonal_rates: v is missing.* must be \(\.\.\., 3\)",
        ),
        (lambda: lw.link_velocities(arm, np.zeros(3), None), "link_velocities: v is missing"),
        (lambda: lw.mass_matrix(arm, None), "mass_matrix: q is missing"),
        (
            lambda: lw.static_forces(arm, np.zeros(3), {"link1": np.zeros(6)}),
            r"wrenches is a dictionary, but an array \(\.\.\., 3, 6\) is needed",
        ),
    ):
        with pytest.raises(lw.KernelError, match=message):
            call()


def test_expressions_that_are_too_deep_say_so():
    arm, x = lw.mechanisms.planar_arm(2), lw.operators.joint_vector("x")
    nested = x
    for _ in range(600):
        nested = lw.operators.D @ (x + nested)
    with pytest.raises(ValueError, match="the expression is too deep.*Compile parts of it"):
        lw.compile(nested, arm)
    product = x
    for _ in range(60):
        product = lw.operators.D @ product
    q = np.array([0.3, 0.4])
    d = np.diag(lw.compile(lw.operators.D, arm)(q))
    np.testing.assert_allclose(lw.compile(product, arm)(q, np.ones(2)), d**60, rtol=1e-10)
