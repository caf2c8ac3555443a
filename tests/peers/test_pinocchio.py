"""Every robot of example-robot-data against Pinocchio: fixed and floating base, 100 random states each, to 1e-10.

All robots run on the NumPy target; a sample of them, and all of them among the slow tests, as machine code.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

import linkwise as lw
from tests.peers.robots import FILES, READABLE, REFUSED, large_robots_are_slow, load, pin, robot

from tests.peers.pinocchio_peer import Peer, from_file  # isort: skip (needs pinocchio, which robots may skip for)
from tests.algorithms import VARIANTS

STATES = 100
TOLERANCE = 1e-10
SOLVES_MOTION = ("forward_dynamics", "forward_dynamics_with_wrenches", "mass_matrix_inverse")

CASES = [
    pytest.param(file, floating_base, id=f"{file.stem}-{'floating' if floating_base else 'fixed'}")
    for file in READABLE
    for floating_base in (False, True)
]

COMPILED_SAMPLE = [
    ("ur_description/urdf/ur5_robot.urdf", False),
    ("z1_description/urdf/z1.urdf", False),
    ("panda_description/urdf/panda.urdf", False),  # one finger mimics the other
    ("panda_description/urdf/panda.urdf", True),
    ("go2_description/urdf/go2.urdf", True),
    ("talos_data/robots/talos_reduced.urdf", True),
    ("baxter_description/urdf/baxter.urdf", False),  # two pairs of fingers
]


def relative_errors(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """For each state the norm of the difference over the norm of what is expected; 0 where nothing is expected."""
    assert found.shape == expected.shape
    difference = np.linalg.norm((found - expected).reshape(len(expected), -1), axis=1)
    size = np.linalg.norm(expected.reshape(len(expected), -1), axis=1)
    return np.where(difference == 0.0, 0.0, difference / np.where(size == 0.0, 1.0, size))


def some_links(mech: lw.Mechanism) -> list[str]:
    """The first and the last moving link, one between them, and the one that most joints move."""
    deepest = max(range(mech.n_links), key=lambda i: len(mech.tree.path(i)), default=0)
    chosen = {0, mech.n_links // 2, mech.n_links - 1, deepest} if mech.n_links else set()
    return [mech.link_names[i] for i in sorted(chosen)]


def random_inputs(mech: lw.Mechanism, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, (STATES,))
    a = rng.normal(size=v.shape)
    return {"q": q, "v": v, "a": a, "tau": a, "wrenches": rng.normal(size=(STATES, mech.n_links, 6))}


def compare(file, floating_base: bool, target: str) -> None:
    mech = load(file, floating_base)
    peer = from_file(file, mech, floating_base)
    inputs = random_inputs(mech, crc32(file.name.encode()) + floating_base)
    answers = peer.answers(inputs["q"], inputs["v"], inputs["a"], inputs["wrenches"])
    if not mech.parameters.masses.any():
        answers.pop("center_of_mass")
        with pytest.raises(lw.MechanismError, match="has mass: it has no centre of mass"):
            lw.compile("center_of_mass", mech, target=target)
    failures = []

    def check(what, found, expected, tolerance=TOLERANCE):
        assert found.shape == expected.shape, f"{what}: shape {found.shape} instead of {expected.shape}"
        errors = relative_errors(found, expected)
        if not (errors <= tolerance).all():
            failures.append(f"{what}: relative error {np.max(errors):.2e}")

    for name, expected in answers.items():
        kernel = lw.compile(VARIANTS[name], mech, target=target)
        found = kernel(*(inputs[array] for array in kernel.inputs))
        if name == "mass_matrix_inverse" and mech.nv:
            # Rounding the mass matrix alone moves its inverse by this much; Pinocchio's inverse is no closer to it.
            limit = np.maximum(TOLERANCE, np.finfo(float).eps * np.linalg.cond(answers["mass_matrix"]))
            check(name, found, expected, limit)
        else:
            check(name, found, expected)
    for link in some_links(mech):
        for frame in ("link", "world"):
            found = lw.compile("jacobian", mech, target=target, link=link, frame=frame)(inputs["q"])
            check(f"jacobian of {link} in {frame}", found, peer.jacobians(inputs["q"], link, frame == "world"))
    if mech.parameters.singular_joints:
        for name in SOLVES_MOTION:
            with pytest.raises(
                lw.MechanismError, match=f"joint .*{mech.parameters.singular_joints[0]}.*armature, or make it fixed"
            ):
                lw.compile(VARIANTS[name], mech, target=target)
    assert not failures, "\n".join(failures)


def test_the_robots_are_there():
    assert len(FILES) - len(READABLE) <= len(REFUSED)
    assert len(READABLE) >= 60


@large_robots_are_slow
@pytest.mark.quick_one_in(3)
@pytest.mark.parametrize(("file", "floating_base"), CASES)
def test_every_robot(file, floating_base):
    compare(file, floating_base, target="numpy")


@pytest.mark.slow
@pytest.mark.parametrize(("file", "floating_base"), CASES)
def test_every_robot_as_machine_code(file, floating_base):
    compare(file, floating_base, target="cpu")


@pytest.mark.slow_cases("talos")
@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize(("path", "floating_base"), COMPILED_SAMPLE)
def test_some_robots_as_machine_code(path, floating_base):
    compare(robot(path), floating_base, target="cpu")


@pytest.mark.parametrize("file", [file for file in FILES if file.name in REFUSED], ids=lambda file: file.stem)
def test_files_that_both_refuse(file):
    with pytest.raises(lw.MechanismError, match=REFUSED[file.name]):
        load(file)
    with pytest.raises(ValueError):
        pin.buildModelFromUrdf(str(file))


def test_a_wrong_robot_is_noticed():
    """The comparison can fail: a payload of ten grams on the last link is a difference of far more than 1e-10."""
    file = robot("ur_description/urdf/ur5_robot.urdf")
    mech = load(file)
    model = pin.buildModelFromUrdf(str(file))
    inertia = model.inertias[6]
    model.inertias[6] = pin.Inertia(inertia.mass + 0.01, inertia.lever, inertia.inertia)
    inputs = random_inputs(mech, 0)
    answers = Peer(mech, model).answers(inputs["q"], inputs["v"], inputs["a"], inputs["wrenches"])
    found = lw.inverse_dynamics(mech, inputs["q"], inputs["v"], inputs["a"])
    assert relative_errors(found, answers["inverse_dynamics"]).max() > 1e-5
