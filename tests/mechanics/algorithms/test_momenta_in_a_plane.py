"""Momenta of links that rotate in one plane: forms of their own, against Lagrange's equations; what they cost."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.passes import optimize
from linkwise.compiler.pipeline import trace_with_plan
from linkwise.dynamics.momenta import cheapest_form
from linkwise.mechanics.algorithms.momenta import FIXED_AXES, FORMS, IN_A_PLANE, PAIRS
from linkwise.mechanics.recursions.fixed_axes import rotates_in_a_plane
from linkwise.mechanics.recursions.tree import build_tree
from tests.algorithms import VARIANTS
from tests.oracle.lagrange import momenta_and_rates

TREE = (-1, 0, 1, 1, 3, 0, -1, 6)


def rotation(rng: np.random.Generator) -> np.ndarray:
    return lw.kinematics.so3.exp(rng.normal(size=3))


def planar_tree(parents=TREE, rotors: bool = True, against: int | None = None) -> lw.Mechanism:
    """Links anywhere about axes that are parallel, in frames that are not; joint ``against`` has its axis reversed."""
    rng = np.random.default_rng(len(parents))
    axis = rotation(rng)[0]
    builder, orientations = lw.Builder(), []
    for i, parent in enumerate(parents):
        before = orientations[parent] if parent >= 0 else np.eye(3)
        orientations.append(rotation(rng))
        factor = rng.normal(size=(3, 3))
        spread = factor @ factor.T  # second moments of mass
        builder.link(f"link{i}", rng.uniform(0.5, 2.0), rng.normal(size=3), np.trace(spread) * np.eye(3) - spread)
        sign = -1.0 if i == against else 1.0
        builder.joint(
            f"joint{i}",
            lw.Revolute(sign * (orientations[i].T @ axis)),
            f"link{parent}" if parent >= 0 else "ground",
            f"link{i}",
            (before.T @ orientations[i], rng.normal(size=3)),
        )
    mech = builder.build("planar_tree", rng.normal(size=3) * 5.0)
    return mech.parameters.with_armature({joint: 0.3 for joint in mech.joint_names}) if rotors else mech


def check(mech: lw.Mechanism, inputs=None, **options) -> None:
    """``inputs``: numbers of the mechanism that its kernel takes."""
    inputs = inputs or {}
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, mech.nv))
    wrenches = rng.normal(size=(mech.n_links, 6))
    p, expected = momenta_and_rates(mech, q, v, tau, wrenches)
    kernel = lw.compile("momentum_motion", mech, ports="wrenches", target="numpy", parameters=[*inputs], **options)
    changes, velocities = kernel(q, p, tau, wrenches, *inputs.values())
    np.testing.assert_allclose(velocities, v, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(changes, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rotors", [False, True])
def test_every_form_is_lagranges_equation(form, rotors):
    mech = planar_tree(rotors=rotors)
    assert rotates_in_a_plane(build_tree(mech))
    check(mech, form=form)


@pytest.mark.parametrize("form", IN_A_PLANE)
def test_an_axis_that_is_reversed_takes_another_form(form):
    mech = planar_tree(against=3)
    assert not rotates_in_a_plane(build_tree(mech))
    check(mech, form=form)


@pytest.mark.parametrize("form", IN_A_PLANE)
def test_masses_and_poses_that_are_inputs(form):
    """Poses could be anything, and are taken by other forms."""
    mech = planar_tree((-1, 0, 1, 1))
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = mech.bodies[2].rotation, mech.bodies[2].position
    check(mech, {"mass": np.array([body.mass for body in mech.bodies])}, form=form)
    check(mech, {"link2.pose": pose}, form=form)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("form", IN_A_PLANE)
def test_total_rates(form, normalized):
    mech = planar_tree()
    q, v, tau = np.random.default_rng(2).normal(size=(3, mech.nv))
    options = {"target": "numpy", "form": form, "normalized": normalized}
    found = lw.compile("momentum_motion_and_total_rates", mech, **options)(
        q, lw.formulations.momenta.momenta(mech, q, v), tau
    )[2]
    np.testing.assert_allclose(found, lw.formulations.diagonal.rates(mech, q, v, normalized), rtol=1e-9, atol=1e-10)


def instructions(name: str, mech: lw.Mechanism) -> int:
    """Operations, a product and a sum that are fused as one."""
    algorithm = VARIANTS[name]
    options = {"form": cheapest_form(mech)} if "form" in algorithm.options else {}
    return sum(1 for node in optimize(trace_with_plan(algorithm, mech, (), options).program).nodes if node.args)


@pytest.mark.parametrize("links", [2, 3, 4, 5, 6, 10, 20])
def test_fewer_instructions_than_forward_dynamics(links):
    mech = lw.mechanisms.planar_arm(links)
    assert cheapest_form(mech) == (PAIRS if links <= 5 else FIXED_AXES)
    assert instructions("momentum_motion", mech) < 0.97 * instructions("forward_dynamics", mech)


def test_operations_of_arms_of_many_links():
    """Beyond the six links where forward dynamics had fewer."""
    for links in (6, 10):
        counts = [
            sum(lw.compile(VARIANTS[name], lw.mechanisms.planar_arm(links), target="numpy").op_counts.values())
            for name in ("momentum_motion", "forward_dynamics")
        ]
        assert counts[0] < counts[1]
