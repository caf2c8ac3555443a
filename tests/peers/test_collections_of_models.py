"""MJCF files by the hundred, wherever they are: each that MuJoCo compiles is read, and has MuJoCo's forces and
accelerations, or a note names what differs.

    LINKWISE_MODELS=/path/to/mujoco_menagerie:/path/to/others python -m pytest tests/peers/test_collections_of_models.py
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

mujoco = pytest.importorskip("mujoco")
from tests.peers.mujoco_forces import Beside, without_constraints  # noqa: E402
from tests.peers.test_acting import with_exact_added_masses  # noqa: E402

TOLERANCE = 1e-9  # of the largest force, or acceleration
FOLDERS = [Path(folder) for folder in os.environ.get("LINKWISE_MODELS", "").split(os.pathsep) if folder]
#: What a difference may come from, by words of notes.  Gravity compensation by actuators is part of their forces in
#: MuJoCo, and of passive ones here.
NAMED = {
    "passive": ("spatial tendon", "nonlinear", "plugin", "mesh in a fluid"),
    "actuators": ("actuator", "actuatorfrcrange", "actuatorgravcomp"),
    "accelerations": ("armature", "deformable body", "free joint with"),
}


def files() -> list:
    """Every file of MJCF in the folders."""
    found = [(folder, file) for folder in FOLDERS for file in sorted(folder.rglob("*.xml"))]
    documents = [(folder, file) for folder, file in found if "<mujoco" in file.read_text(errors="replace")]
    return [pytest.param(file, id=str(file.relative_to(folder))) for folder, file in documents]


@pytest.mark.slow
@pytest.mark.skipif(not FOLDERS, reason="LINKWISE_MODELS names no folders of models")
@pytest.mark.parametrize("file", files())
def test_forces_and_accelerations_are_those_of_mujoco(file):
    try:
        model = mujoco.MjModel.from_xml_path(str(file))
    except ValueError as error:
        pytest.skip(f"MuJoCo refuses it: {str(error).splitlines()[0]}")
    with_exact_added_masses(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mech, free = lw.load(file), lw.load(file, mimic=False).spanning_tree
    if not mech.n_links or any("deformable" in note.what for note in mech.notes):
        return
    compensated = bool(model.jnt_actgravcomp.any())
    for what, (found, expected) in {**forces(model, mech), **accelerations(model, free)}.items():
        size = max(1.0, np.abs(expected).max(initial=0.0))
        agree = np.abs(found - expected).max(initial=0.0) < TOLERANCE * size
        named = [note.what for note in mech.notes if any(word in note.what for word in NAMED[what])]
        assert agree or named or (compensated and what != "accelerations"), (what, found - expected)


def forces(model, mech: lw.Mechanism) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What gives way and what drives, at a random state: ours, MuJoCo's."""
    beside = Beside.of(model, mech)
    there, data, rng = lw.interop.to_mujoco(mech, model), beside.data, np.random.default_rng(1)
    q, v = lw.random_state(mech.spanning_tree, rng)
    data.qpos[:], data.qvel[:] = there.q(q), there.v(q, v)
    ctrl, activation = beside.controls(rng)
    mujoco.mj_forward(model, data)
    smooth = mech.with_acting("springs", "damping", "tendons", "gravity_compensation", "fluid")
    inputs = {"ctrl": ctrl if ctrl.size else None, "activation": activation if activation.size else None}
    ours = {
        "passive": lw.forces.joint_forces(without_constraints(smooth), q, v),
        "actuators": lw.forces.joint_forces(mech.with_acting("actuators"), q, v, **inputs),
    }
    theirs = {"passive": data.qfrc_passive, "actuators": data.qfrc_actuator}
    return {name: (ours[name], there.inverse.tau(data.qpos, theirs[name])) for name in ours}


def accelerations(model, tree: lw.Mechanism) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Under gravity and the forces above, without constraints, where all joints of the model are there: the forces that
    MuJoCo's accelerations need here, in units of the largest inertial force."""
    if tree.nv != model.nv:
        return {}
    there, data = lw.interop.to_mujoco(tree, model), mujoco.MjData(model)
    q, v = lw.random_state(tree, np.random.default_rng(2))
    data.qpos[:], data.qvel[:] = there.q(q), there.v(q, v)
    mujoco.mj_forward(model, data)
    a = there.inverse.a(data.qpos, data.qvel, data.qacc_smooth)
    forces_there = there.inverse.tau(data.qpos, data.qfrc_passive + data.qfrc_actuator)
    kernel = lw.compile("inverse_dynamics", tree, target="numpy")
    inertial = kernel(q, v, a) - kernel(q, v, np.zeros(tree.nv))
    size = max(1.0, np.abs(inertial).max(initial=0.0))
    return {"accelerations": (kernel(q, v, a) / size, forces_there / size)}
