"""The named algorithms as operator expressions: methods against each other and against peers, sweeps, kernels."""

from __future__ import annotations

import re

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.compiler.pipeline import trace_algorithm
from linkwise.mechanics.algorithms import expressions as ex
from linkwise.mechanics.operators.plan import plan_for
from linkwise.mechanics.recursions.schedule import TIP_TO_BASE
from tests.algorithms import VARIANTS

from ...peers import robots
from ...peers.pinocchio_peer import from_file
from .random_expressions import StackedVectors

KINDS = lw.mechanisms.EVERY_KIND
METHODS = tuple(ex.FORWARD_DYNAMICS)
MASS_MATRIX = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R
TREES = [
    *(lw.mechanisms.random_tree(6, seed) for seed in range(3)),
    lw.mechanisms.random_tree(8, 12, joints=(*KINDS, "fixed"), floating_base=True),
    lw.mechanisms.chain(7),
]
every_tree = pytest.mark.parametrize("mech", TREES, ids=lambda mech: mech.name)
ROBOTS = [
    ("ur_description/urdf/ur5_robot.urdf", False),
    ("z1_description/urdf/z1.urdf", False),
    ("talos_data/robots/talos_reduced.urdf", True),
]


def compiled(algorithm, mech, **options):
    return lw.compile(VARIANTS.get(algorithm, algorithm), mech, target="numpy", **options)


def close(found, expected, tolerance=1e-10):
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * max(1.0, np.abs(expected).max()))


def state(mech, seed=0):
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng)
    return q, v, rng.normal(size=mech.nv), rng.normal(size=(mech.n_links, 6))


# -- forward dynamics ---------------------------------------------------------------------------------


def test_the_methods_are_those_of_the_papers():
    assert METHODS == ("filter_and_smoother", "bias_free", "biased", "without_dalembert_forces", "composite_bodies")
    with pytest.raises(ValueError, match="method must be one of filter_and_smoother, bias_free"):
        compiled("forward_dynamics", TREES[0], method="fast")


@pytest.mark.parametrize("method", METHODS)
@every_tree
def test_forward_dynamics_solves_the_equations_of_motion(mech, method):
    q, v, tau, wrenches = state(mech)
    mass = op.dense(ex.MASS_MATRIX, mech, q)
    bias = compiled("bias_force", mech)(q, v)
    pushed = op.dense(op.H @ op.phi, mech, q) @ wrenches.ravel()
    size = np.linalg.cond(mass)
    accelerations = compiled("forward_dynamics", mech, method=method)(q, v, tau)
    close(mass @ accelerations, tau - bias, 1e-14 * size + 1e-10)
    accelerations = compiled("forward_dynamics", mech, ports="wrenches", method=method)(q, v, tau, wrenches)
    close(mass @ accelerations, tau - bias + pushed, 1e-14 * size + 1e-10)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("path", "floating"), ROBOTS)
def test_forward_dynamics_of_robots(path, floating, method):
    file = robots.robot(path)
    mech = robots.load(file, floating)
    q, v, tau, wrenches = (x[None] for x in state(mech))
    answers = from_file(file, mech, floating).answers(q, v, tau, wrenches)
    close(compiled("forward_dynamics", mech, method=method)(q, v, tau), answers["forward_dynamics"], 1e-9)
    found = compiled("forward_dynamics", mech, ports="wrenches", method=method)(q, v, tau, wrenches)
    close(found, answers["forward_dynamics_with_wrenches"], 1e-9)


def test_sweeps():
    mech = TREES[-1]
    out, back = "base_to_tip", "tip_to_base"
    expected = {
        "forward_dynamics": [back, out, back],  # of a short arm: the mass matrix, then inverse dynamics
        "inverse_dynamics": [out, back],
        "bias_force": [out, back],
        "gravity_force": [out, back],
        "mass_matrix": [back],
        "mass_matrix_inverse": [back, back, out],  # of a short arm: the mass matrix, then elimination and the way back
        "forward_link_accelerations": [out, back, out],
    }
    for name, directions in expected.items():
        assert [direction for direction, _ in compiled(name, mech).sweeps] == directions, name
    assert [d for d, _ in compiled("forward_dynamics", mech, method="biased").sweeps] == [out, back, out]
    for method in METHODS:
        assert len(compiled("forward_dynamics", mech, method=method).sweeps) == 3
    assert [d for d, _ in compiled("jacobian", mech, link="link7").sweeps] == [out]
    assert [d for d, _ in compiled("operational_inertia", mech, link="link7").sweeps] == [back, out]


def test_why_the_bias_free_algorithm_needs_three_sweeps():
    """It is printed with four; its second (bias forces) and third (whitening) run tip to base one link behind the
    other, and no link of the third waits for a link of the second that comes later, so they are one."""
    sweeps = plan_for(ex.bias_free(ex.b), TREES[0]).sweeps
    assert [[step.action.name for step in sweep.tasks] for sweep in sweeps] == [
        ["spin", "phi.T"],
        ["phi", "riccati", "psi"],
        ["psi.T", "E_phi.T"],
    ]
    middle = sweeps[1]
    bias_forces, whitening = (next(s for s in middle.tasks if s.action.name == name) for name in ("phi", "psi"))
    assert middle.direction == TIP_TO_BASE == bias_forces.direction == whitening.direction
    ancestors, stack = set(), [whitening]
    while stack:
        stack.extend(new := set(stack.pop().dependencies()) - ancestors)
        ancestors |= new
    assert bias_forces in ancestors, "the whitening does need the bias forces"
    assert {s.action.name for s in ancestors if s.direction not in (None, TIP_TO_BASE)} == {"spin", "phi.T"}, (
        "of sweep one"
    )


# -- parts of the motion ------------------------------------------------------------------------------


@every_tree
def test_accelerations_by_cause(mech):
    q, v, tau, _ = state(mech)
    parts = compiled("acceleration_parts", mech)(q, v, tau)
    assert parts.shape == (3, mech.nv)
    at = StackedVectors(mech, q, {"v": v, "tau": tau})
    inverse = np.linalg.inv(at.matrix(ex.MASS_MATRIX))
    size = 1e-10 * np.linalg.norm(inverse)
    for part, forces in zip(
        parts,
        (
            tau,
            -at.H @ at.phi @ at.matrix(ex.b).ravel(),
            -at.H @ at.phi @ at.M @ at.phi.T @ (at.matrix(ex.a) + at.matrix(ex.g)).ravel(),
        ),
        strict=True,
    ):
        close(part, inverse @ forces, max(size, 1e-10))
    close(parts.sum(axis=0), compiled("forward_dynamics", mech)(q, v, tau), max(size, 1e-10))


@every_tree
def test_link_accelerations_as_an_inertial_observer_sees_them(mech):
    """The rates of the velocities' components lack omega x v."""
    q, v, tau, _ = state(mech)
    velocities = compiled("link_velocities", mech)(q, v)
    accelerations = compiled("forward_dynamics", mech)(q, v, tau)
    expected = compiled("link_accelerations", mech)(q, v, accelerations)
    expected[:, 3:] += np.cross(velocities[:, :3], velocities[:, 3:])
    close(compiled("forward_link_accelerations", mech)(q, v, tau), expected, 1e-9)


# -- one link -----------------------------------------------------------------------------------------


@every_tree
def test_jacobians_of_all_frames(mech):
    q, v, _, _ = state(mech)
    for frame in tuple(mech.frames)[1:]:
        pose = compiled("frame_pose", mech, link=frame)(q)
        turn, place = pose[:3, :3], pose[:3, 3]
        own = op.dense(op.B(frame).T @ op.phi.T @ op.H.T, mech, q)
        close(compiled("jacobian", mech, link=frame)(q), own)
        aligned = np.kron(np.eye(2), turn) @ own
        close(compiled("jacobian", mech, link=frame, frame="world_aligned")(q), aligned)
        aligned[3:] += np.cross(place[:, None], aligned[:3], axis=0)
        close(compiled("jacobian", mech, link=frame, frame="world")(q), aligned)


def test_operational_inertia_costs_in_proportion_to_the_way_to_the_link():
    def operations(mech, link):
        program, _ = trace_algorithm(VARIANTS["operational_inertia"], mech, options={"link": link})
        return sum(program.op_counts.get(kind, 0) for kind in ("add", "mul", "div"))

    chain = lw.mechanisms.chain(32)
    short, middle, long = (operations(lw.mechanisms.chain(n), f"link{n}") for n in (8, 16, 32))
    assert long - middle <= 2.05 * (middle - short)
    riccati = sum(trace_algorithm(VARIANTS["mass_matrix_inverse"], chain)[0].op_counts.values())
    assert long < riccati / 2
    near, far = operations(chain, "link8"), operations(chain, "link32")
    assert near < far


@pytest.mark.quick_one_in(2)
@every_tree
def test_operational_inertia(mech):
    q, *_ = state(mech)
    for frame in tuple(mech.frames)[1:]:
        jacobian = op.dense(ex.jacobian(mech, frame), mech, q)
        mobility = jacobian @ np.linalg.solve(op.dense(ex.MASS_MATRIX, mech, q), jacobian.T)
        if np.linalg.cond(mobility) < 1e8:
            found = compiled("operational_inertia", mech, link=frame)(q)
            close(found @ mobility, np.eye(6), 1e-14 * np.linalg.cond(mobility) + 1e-10)
            np.testing.assert_array_equal(found, found.T)


# -- kernels of expressions ---------------------------------------------------------------------------


def test_inputs_are_named_in_order_of_appearance():
    mech = TREES[1]
    x, y, f = op.joint_vector("x"), op.joint_vector("y"), op.link_vector("f")
    kernel = compiled(op.D @ y + op.H @ op.phi @ (f + op.K @ x) + y, mech)
    assert kernel.inputs == ("q", "y", "f", "x")
    assert kernel.input_shapes == {"q": (mech.nq,), "y": (mech.nv,), "f": (mech.n_links, 6), "x": (mech.nv,)}
    assert kernel.output_shapes == {"result": (mech.nv,)}
    assert compiled(op.phi.T @ op.H.T @ x, mech).output_shapes == {"result": (mech.n_links, 6)}
    assert compiled(op.B("link2").T @ op.phi.T @ op.H.T @ x, mech).output_shapes == {"result": (6,)}
    assert compiled(x.T @ op.D @ y, mech).output_shapes == {"result": ()}
    assert compiled(op.H @ op.phi, mech).output_shapes == {"result": (mech.nv, 6 * mech.n_links)}
    with pytest.raises(ValueError, match="must not be called 'q'"):
        compiled(op.D @ op.joint_vector("q"), mech)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_batches_and_precision(dtype):
    mech = TREES[1]
    expression = MASS_MATRIX.inv @ (op.joint_vector("x") - op.H @ op.phi @ op.link_vector("f"))
    kernel = lw.compile(expression, mech, dtype=dtype)
    rng = np.random.default_rng(0)
    q = lw.random_state(mech, rng, (3, 1))[0].astype(dtype)
    x, f = rng.normal(size=(5, mech.nv)).astype(dtype), rng.normal(size=(mech.n_links, 6)).astype(dtype)
    found = kernel(q, x, f)
    assert found.shape == (3, 5, mech.nv) and found.dtype == dtype
    for i in range(3):
        mass = op.dense(ex.MASS_MATRIX, mech, q[i, 0])
        pushed = op.dense(op.H @ op.phi, mech, q[i, 0]) @ f.ravel()
        expected = np.linalg.solve(mass, (x - pushed).T).T
        close(found[i], expected, (1e-10 if dtype == "float64" else 1e-4) * np.linalg.norm(np.linalg.inv(mass)))
    out = np.empty_like(found)
    assert kernel(q, x, f, out=out) is out
    np.testing.assert_array_equal(out, found)


def test_parameters_are_inputs_of_expressions_too():
    mech = TREES[2]
    expression = ex.WHITENING @ op.joint_vector("x")
    kernel = compiled(expression, mech, parameters=("mass", "com", "link2.inertia", "pose"))
    assert kernel.inputs == ("q", "x", "mass", "com", "link2.inertia", "pose")
    q, v, x, _ = state(mech)
    poses = np.zeros((mech.n_links, 4, 4))
    for i, body in enumerate(mech.bodies):
        poses[i, :3, :3], poses[i, :3, 3], poses[i, 3, 3] = body.rotation, body.position, 1.0
    own = [np.array([getattr(b, name) for b in mech.bodies]) for name in ("mass", "com")]
    inertia = np.array(mech.bodies[1].inertia)
    close(kernel(q, x, *own, inertia, poses), compiled(expression, mech)(q, x))
    heavier = lw.Builder()
    for body in mech.bodies:
        parent = "ground" if body.parent < 0 else mech.bodies[body.parent].link
        heavier.link(body.link, 2.0 * body.mass, body.com, body.inertia)
        pose = (body.rotation, np.array(body.position) + 0.1)
        heavier.joint(body.joint, body.kind, parent, body.link, pose, armature=body.armature)
    moved = poses.copy()
    moved[:, :3, 3] += 0.1
    found = kernel(q, x, 2.0 * own[0], own[1], inertia, moved)
    close(found, compiled(expression, heavier.build("heavier"))(q, x))


# -- the seven levels ---------------------------------------------------------------------------------


def levels_of(text: str) -> dict[int, str]:
    """The lines below each title ``Level n, ...``."""
    parts = text.split("\nLevel ")[1:]
    return {int(part[0]): part for part in parts}


@pytest.mark.seed("rodriguez1992", "Section IX", by="library")
def test_the_seven_levels_of_the_papers_example():
    """From (I - H Psi G)* D^-1 (I - H Psi G) T (printed without the star and D, see the errata) to the coordinate
    transforms: each of the levels of Fig. 3 is there and says what Section IX says of it."""
    mech = TREES[-1]
    factor = op.I - op.H @ op.Psi @ op.G
    kernel = compiled(factor.T @ op.D.inv @ factor @ op.joint_vector("T"), mech)
    levels = levels_of(kernel.plan())
    assert sorted(levels) == [1, 2, 3, 4, 5, 6, 7]
    # Level 1, the factorization; Psi is written psi E_phi in this library.
    assert "(I - G.T @ E_phi.T @ psi.T @ H.T) @ D.inv @ (I - H @ psi @ E_phi @ G) @ T" in levels[1]
    # Level 2, "decompose the operators H, Psi, and G that appear at this level".
    named = [line.split()[0] for line in levels[2].splitlines()[1:]]
    assert {"H", "psi", "E_phi", "G", "D"} == set(named)
    # Level 3, "Psi is what is referred to as the Kalman filter transition operator".
    assert "Kalman transition" in levels[2] and "psi" in levels[3]
    # Level 4, "an inward Kalman filtering recursion, from the tip of the manipulator to the base".
    assert "1. tip to base: articulated inertias, psi" in levels[3]
    assert "psi: z_i = x_i + sum over children c of X_c* (z_c + G_c (y_c - H_c z_c) + w_c)" in levels[4]
    # Level 5, "a sequence of transitions in each of the links characterized by the operator psi(k, k-1)".
    assert "psi(parent, i)" in levels[5]
    # Level 6, "two transitions per link": phi(k, k-1) within a link, I - G(k) H(k) across the joint.
    assert "psi(parent, i) = phi(parent, i) tau_bar(i)" in levels[5]
    assert op.tau_bar.record.definition == op.I - op.G @ op.H and "revolute (7:" in levels[6]
    # Level 7, "the necessary coordinate transformation to go from one link to the next".
    assert [line.split(":")[0].strip() for line in levels[7].splitlines()[1:8]] == list(mech.link_names)
    # The corrected expression is forward dynamics from rest without gravity; the printed one would give T back.
    q, _, tau, _ = state(mech)
    close(kernel(q, tau), np.linalg.solve(op.dense(ex.MASS_MATRIX, mech, q), tau), 1e-9)
    printed = compiled(factor.inv @ factor @ op.joint_vector("T"), mech)
    close(printed(q, tau), tau, 1e-9)


# The inverse of a short arm's mass matrix is a recursion (test_explain has the plan of its expression), and so is what
# takes masks of constraints.
PLANNED = [
    name
    for name, one in VARIANTS.items()
    if one.expression is not None and name != "mass_matrix_inverse" and "active" not in one.inputs
]


@pytest.mark.parametrize("name", PLANNED)
def test_every_plan_has_seven_levels(name):
    mech = TREES[-1]
    options = {"link": "link7"} if "link" in VARIANTS[name].options else {}
    kernel = compiled(name, mech, **options)
    assert sorted(levels_of(kernel.plan())) == [1, 2, 3, 4, 5, 6, 7]
    assert len(re.findall(r"^  \d+\. ", levels_of(kernel.plan())[3], flags=re.MULTILINE)) == len(kernel.sweeps)
