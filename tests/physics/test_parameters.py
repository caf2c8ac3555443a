"""Numbers of the mechanism as inputs of the kernel: every choice gives what the folded kernel gives."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import linkwise as lw
from tests.physics.trees import close

KINDS = ("mass", "com", "inertia", "pose", "gravity")
SUBSETS = [subset for size in range(1, 6) for subset in combinations(KINDS, size)]
ALGORITHMS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "potential_energy", "link_poses")


def poses(mech: lw.Mechanism) -> np.ndarray:
    result = np.tile(np.eye(4), (mech.n_links, 1, 1))
    for pose, body in zip(result, mech.bodies, strict=True):
        pose[:3, :3], pose[:3, 3] = body.rotation, body.position
    return result


def values(mech: lw.Mechanism, name: str) -> np.ndarray:
    """The mechanism's own numbers for a parameter, of all links or of one ("link3.mass")."""
    own = {
        "mass": mech.parameters.masses,
        "com": mech.parameters.coms,
        "inertia": mech.parameters.inertias,
        "pose": poses(mech),
    }
    link, _, kind = name.rpartition(".")
    if kind == "gravity":
        return mech.gravity
    return own[kind][mech.link_names.index(link)] if link else own[kind]


def changed(mech: lw.Mechanism, rng: np.random.Generator) -> lw.Mechanism:
    """Another mechanism with the same joints: all numbers that can be parameters are different."""
    other = lw.mechanisms.random_tree(mech.n_links, int(rng.integers(1 << 30)), joints=("revolute",))
    builder = lw.Builder()
    for body, source in zip(mech.bodies, other.bodies, strict=True):
        parent = "ground" if body.parent < 0 else mech.bodies[body.parent].link
        builder.link(body.link, source.mass, source.com, source.inertia)
        pose = (source.rotation, source.position)
        builder.joint(body.joint, body.kind, parent, body.link, pose, armature=body.armature)
    return builder.build("changed", rng.normal(size=3))


def check(mech: lw.Mechanism, numbers: lw.Mechanism, parameters: tuple[str, ...], algorithm: str, target: str) -> None:
    """The kernel of ``mech`` with the parameters of ``numbers`` is the folded kernel of the mechanism with both."""
    rng = np.random.default_rng(3)
    q, v = lw.random_state(mech, rng, (5,))
    inputs = {"q": q, "v": v, "a": rng.normal(size=v.shape), "tau": rng.normal(size=v.shape)}
    open_kernel = lw.compile(algorithm, mech, target=target, parameters=parameters)
    folded = lw.compile(algorithm, numbers, target=target)
    arrays = [inputs[name] for name in folded.inputs]
    assert open_kernel.inputs == (*folded.inputs, *parameters)
    found = open_kernel(*arrays, *(values(numbers, name) for name in parameters))
    expected = folded(*arrays)
    close(found, expected, 1e-11, core=expected.ndim - 1)


@pytest.mark.slow_cases("[1-")
@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("parameters", SUBSETS, ids="-".join)
@pytest.mark.parametrize("seed", [0, 1])
def test_subsets_give_the_folded_result(parameters, seed):
    mech = lw.mechanisms.random_tree(6, seed)
    for algorithm in ALGORITHMS:
        check(mech, mech, parameters, algorithm, "numpy")


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("target", ["numpy", "cpu"])
def test_all_numbers_can_be_those_of_another_mechanism(seed, target):
    """Nothing of the folded numbers is left: the kernel of one mechanism computes another one."""
    mech = lw.mechanisms.random_tree(5, 10 + seed)
    other = changed(mech, np.random.default_rng(seed))
    for algorithm in ALGORITHMS:
        check(mech, other, KINDS, algorithm, target)


@pytest.mark.parametrize(
    "parameters",
    [
        ("link3.mass",),
        ("link3.com", "link3.mass"),
        ("link2.inertia",),
        ("link1.pose", "link4.pose"),
        ("link5.mass", "gravity"),
        ("com", "link5.mass", "link2.pose"),
    ],
    ids="-".join,
)
@pytest.mark.parametrize("target", ["numpy", "cpu"])
def test_single_entries(parameters, target):
    mech = lw.mechanisms.random_tree(5, 4)
    for algorithm in ("inverse_dynamics", "forward_dynamics"):
        check(mech, mech, parameters, algorithm, target)


def test_a_thousand_payloads_in_one_call():
    """Each payload of its own state; inverse dynamics is affine in a mass whose com and central inertia stay."""
    mech = lw.mechanisms.random_tree(7, 8, joints=("revolute", "prismatic", "spherical"))
    link = mech.link_names[-1]
    rng = np.random.default_rng(0)
    payload = rng.uniform(0.1, 10.0, 1000)
    q, v = lw.random_state(mech, rng, (1000,))
    a = rng.normal(size=v.shape)
    kernel = lw.compile("inverse_dynamics", mech, parameters=(f"{link}.mass",))
    found = kernel(q, v, a, payload)
    empty, unit = kernel(q, v, a, 0.0), kernel(q, v, a, 1.0)
    close(found, empty + payload[:, None] * (unit - empty), 1e-11)
    for i in range(0, 1000, 100):
        close(found[i], lw.inverse_dynamics(_with_last_mass(mech, payload[i]), q[i], v[i], a[i]), 1e-12)
    forward = lw.compile("forward_dynamics", mech, parameters=(f"{link}.mass",))
    close(forward(q, v, found, payload), a, 1e-9)


def test_payloads_broadcast_against_states():
    mech = lw.mechanisms.chain(4)
    rng = np.random.default_rng(1)
    q, v = lw.random_state(mech, rng, (6, 1))
    payload = rng.uniform(0.5, 2.0, 3)
    kernel = lw.compile("bias_force", mech, parameters=("link4.mass",))
    found = kernel(q, v, payload)
    assert found.shape == (6, 3, 4)
    for k in range(3):
        close(found[:, k], kernel(q[:, 0], v[:, 0], payload[k]), 1e-15)


def test_parameters_of_a_mechanism_with_mimic_joints():
    builder = lw.Builder()
    parent = "ground"
    for i in range(1, 4):
        builder.link(f"link{i}", 1.0 + i, (0.1, 0.2, 0.3 * i), (0.1, 0.2, 0.25))
        mimic = lw.Mimic("joint1", -0.7, 0.3) if i == 3 else None
        builder.joint(f"joint{i}", lw.Revolute((1.0, i, 0.5)), parent, f"link{i}", (None, (0.3, 0.0, 0.1)), mimic=mimic)
        parent = f"link{i}"
    mech = builder.build()
    for algorithm in ALGORITHMS:
        check(mech, mech, ("mass", "com", "inertia", "gravity"), algorithm, "numpy")


def _with_last_mass(mech: lw.Mechanism, mass: float) -> lw.Mechanism:
    builder = lw.Builder()
    for i, body in enumerate(mech.bodies):
        parent = "ground" if body.parent < 0 else mech.bodies[body.parent].link
        builder.link(body.link, mass if i == mech.n_links - 1 else body.mass, body.com, body.inertia)
        pose = (body.rotation, body.position)
        builder.joint(body.joint, body.kind, parent, body.link, pose, armature=body.armature)
    return builder.build("loaded", mech.gravity)
