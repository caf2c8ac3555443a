"""For all tests: every mark ``seed(seed, id, by=...)`` must name an entry of the ledger and, where it says that the
library does it, reach the library; and a test is the same every time."""

from __future__ import annotations

import gc
from collections import Counter

import hypothesis
import pytest

from linkwise.compiler import pipeline
from tests.seeds import ledger
from tests.seeds.reach import reaches_linkwise

KNOWN = ledger.entries()

# On a busy machine an example may take any time; and what passes once must pass again.
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repeatable")

# Programs are made of many small objects that live on: looking for garbage among them takes as long as making them.
gc.set_threshold(200_000, 20, 20)

# Cases that take long, of tests whose other cases are quick: they are slow tests.
LONG_CASES = {
    "test_size_does_not_matter": ("delta_robot", "stewart_platform", "loader", "1000.0-"),
    "test_motions_keep_loops_closed_and_energy": ("8-", "4-five_bar", "4-loader"),
    "test_built_in_mechanisms_by_differences": ("delta_robot", "stewart_platform"),
    "test_accelerations_of_random_closed_mechanisms": ("1]", "2]", "3]", "5]", "8]", "floating]", "and"),
    "test_forward_dynamics_is_that_of_free_bodies": tuple(f"-{seed}]" for seed in range(3, 12)),
    "test_every_algorithm_gives_what_its_ufunc_gives": ("derivatives", "-tree]"),
    "test_degrees_of_freedom_and_accelerations_of_the_exact_one": ("[4-", "[8-"),
    "test_linear_models_of_the_exact_one": ("[4-", "[6-"),
    "test_a_mask_is_the_mechanism_with_just_those_loops": ("humanoid",),
    "test_changes_of_configurations_as_steps": ("joints1-rk4_step",),
    "test_machine_code": ("float32",),
    "test_loops_mean_what_the_straight_line_means": ("rk4_step_with_wrenches",),
    "test_named_algorithms": ("mass_matrix_inverse", "coriolis_matrix"),
    "test_one_body_held_by_one_loop": ("cylindrical", "prismatic", "universal"),
    "test_random_mechanisms_with_some_of_their_loops": ("[2-", "[3-"),
    "test_errors_are_like_pinocchios": ("100 links",),
    "test_every_robot": (
        *("tiago_dual", "centauro", "g1_29dof_with_hand", "alex_psyonic", "tiago-", "talos_reduced_", "talos_full_v2"),
        *("icub-", "human-", "romeo_small", "simple_humanoid_classical", "tiago_pro", "alex_sake"),
        *("talos_reduced_corrected", "talos_reduced_box", "g1_29dof", "-fixed]"),  # each is there on a free base
    ),
    "test_false_identities_get_a_counterexample": tuple(f"[{seed}]" for seed in range(10, 30)),
    "test_true_identities_are_proven": tuple(f"[{seed}]" for seed in range(10, 30)),
    "test_vectors_and_numbers": tuple(f"[{share}]" for share in range(6, 16)),
    "test_matrices": tuple(f"[{share}]" for share in range(6, 16)),
    "test_subsets_give_the_folded_result": ("[1-",),
    "test_the_stretched_five_bar_returns": ("[rk4]",),
    "test_identities_2_to_6_hold_for_trees": ("random_tree_8_4",),
    "test_weights_as_wrenches_are_gravity": ("tree, xi",),
    "test_the_page_is_up_to_date": ("test_the_page_is_up_to_date",),
    "test_expressions": ("[tree",),
    "test_against_products_of_derivatives_of_steps": ("[0]", "[1]"),
    "test_the_examples_of_the_help_run": ("Command bench",),
    "test_random_mechanisms": ("[2-general]", "[0-general]", "[2-planar]", "[2-massless]"),
    "test_random_mechanisms_on_floating_bases_by_differences": ("general-6",),
    "test_the_equations_of_motion_along_the_null_space": ("delta_robot",),
    "test_cuda_text_on_the_host": ("asfortranarray", "forward_dynamics_with_wrenches"),
    "test_loops_of_every_kind_with_joints_that_turn_freely": (
        "PinInSlot",
        "Prismatic",
        "Cylindrical",
        "Planar",
        "Revolute",
    ),
    "test_rows_that_no_tile_has_room_for_are_transposed": ("float32-1]", "float32-32]", "float32-77]", "float64-32]"),
    "test_sines_of_long_programs_come_from_a_loop": ("rows",),
    "test_exported_c": ("semi_implicit_step",),
    "test_some_motions": ("-0]",),
    "test_what_is_printed_is_what_ran": ("[rk4_step_derivatives", "_with_wrenches-", "[momentum_", "[nu_", "[xi_"),
    "test_against_the_program_of_the_step": ("[1-rk4]", "[0-rk4]"),
    "test_closed_mechanisms": ("stewart_platform", "delta_robot"),
    "test_some_robots_as_machine_code": ("talos",),
}


# Tests with many cases alike: every so many of them are quick tests, the others slow ones.
SAMPLED = {
    "test_what_is_printed_is_what_ran": 4,
    "test_every_robot": 3,
    "test_named_algorithms": 3,
    "test_nested_loops_mean_what_the_straight_line_means": 2,
    "test_weights_as_wrenches_are_gravity": 2,
    "test_coriolis_term_closes_the_equation": 2,
    "test_every_kind_of_joint_can_be_locked": 2,
    "test_loops_of_every_kind_with_joints_that_turn_freely": 2,
    "test_accelerations_are_those_of_three_sweeps": 2,
    "test_charts_go_on_bit_by_bit": 2,
    "test_order_of_convergence": 2,
    "test_second_derivatives_of_the_mass_matrix": 2,
    "test_batches_move_like_their_members": 2,
    "test_effective_inertia_and_manipulability": 2,
    "test_motion_and_energy": 2,
    "test_expressions": 3,
    "test_loops_mean_what_the_straight_line_means": 2,
    "test_forward_and_inverse_dynamics_undo_each_other": 2,
    "test_all_of_a_mechanism_is_drawn_inside_the_limits": 3,
    "test_there_is_a_shape_per_link_and_a_mark_per_joint": 3,
    "test_random_trees": 2,
    "test_symmetric_products": 2,
    "test_diagonalized_dynamics": 2,
    "test_compiled_expressions_against_stacked_matrices": 3,
    "test_subsets_give_the_folded_result": 2,
    "test_against_jacobians": 3,
    "test_agrees_with_pinocchio": 2,
    "test_random_models": 2,
    "test_names_and_order_of_declaration": 2,
    "test_against_the_projected_mechanism": 2,
    "test_batches_without_states": 3,
    "test_rates_along_a_motion": 2,
    "test_some_robots_as_machine_code": 2,
    "test_errors_are_like_pinocchios": 2,
    "test_every_input_of_named_algorithms": 2,
    "test_all_numbers_can_be_those_of_another_mechanism": 2,
    "test_operational_inertia": 2,
    "test_jacobian_of_every_frame": 2,
    "test_some_motions": 2,
}


# Random trees of many links, of which one test with quick cases is enough.
LARGE_TREES, ENOUGH = ("[21-", "-21-", "[40-", "-40-"), "test_forward_and_inverse_dynamics_undo_each_other"


@pytest.fixture
def compiled(monkeypatch):
    """The names of programs that were compiled."""
    names: list[str] = []
    load = pipeline.load

    def counted(program, *arguments):
        names.append(program.name)
        return load(program, *arguments)

    monkeypatch.setattr(pipeline, "load", counted)
    return names


def pytest_collection_modifyitems(items):
    seen = Counter()
    for item in items:
        name = getattr(item, "originalname", None) or ""
        long = LONG_CASES.get(name, ())
        if "tests/physics" in item.nodeid and name != ENOUGH:
            long = (*long, *LARGE_TREES)
        if any(part in item.name for part in long):
            item.add_marker(pytest.mark.slow)
        elif name in SAMPLED:
            if seen[item.path, name] % SAMPLED[name]:
                item.add_marker(pytest.mark.slow)
            seen[item.path, name] += 1


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector):
    made = yield
    items = made if isinstance(made, list) else ()  # the tests of one function; classes come back through here
    claims = any(mark.kwargs.get("by") == "library" for item in items for mark in item.iter_markers("seed"))
    if claims and not any(map(reaches_linkwise, items)):
        raise collector.CollectError(f'{items[0].nodeid}: by="library", but nothing that linkwise computes is called')
    for item in items:
        for mark in item.iter_markers("seed"):
            if len(mark.args) != 2 or mark.kwargs.get("by") not in ledger.KINDS or len(mark.kwargs) != 1:
                raise collector.CollectError(
                    f'{item.nodeid}: write @pytest.mark.seed(seed, id, by="library"), or by="model", one entry per mark'
                )
            try:
                ledger.check_key(*mark.args, where=item.nodeid, known=KNOWN)
            except ValueError as error:
                raise collector.CollectError(str(error)) from None
    return made
