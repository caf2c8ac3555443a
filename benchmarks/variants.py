"""Payloads in a loop: a variant of a mechanism and one call of its forward dynamics, against the call alone, and
against MuJoCo (``body_mass`` in place, ``mj_setConst``, ``mj_forward``) and Pinocchio (``inertias[i] = ...``, ``aba``).

The arm is the same in all three, and every answer is compared before its time counts.  MuJoCo and Pinocchio change
their model in place; linkwise makes a new mechanism and leaves the old one as it is.
Below, other edits in such a loop.
"""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pinocchio as pin

import linkwise as lw
from benchmarks.speed import best

LINKS = 6
MASSES = 0.5 + 0.01 * np.arange(1000)
INERTIA = (0.02, 0.03, 0.025)
COM = (0.02, -0.03, 0.15)


def arm() -> str:
    """URDF of an arm with skewed axes and links of one shape."""
    parts = ['<link name="world"/>']
    xx, yy, zz = INERTIA
    for i in range(LINKS):
        axis = " ".join(map(str, [(1, 0, 0), (0, 1, 0), (0, 0, 1)][i % 3]))
        parts.append(
            f'<link name="link{i}"><inertial><origin xyz="{" ".join(map(str, COM))}"/><mass value="2"/>'
            f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="joint{i}" type="continuous"><parent link="{"world" if i == 0 else f"link{i - 1}"}"/>'
            f'<child link="link{i}"/><origin xyz="0 0 0.3" rpy="0.3 0.2 0.1"/><axis xyz="{axis}"/></joint>'
        )
    return f'<robot name="arm">{"".join(parts)}</robot>'


def in_linkwise(text: str, state: tuple[np.ndarray, ...]):
    mech, tip = lw.load(text), f"link{LINKS - 1}"

    def variant_and_call(mass: float) -> np.ndarray:
        return lw.forward_dynamics(mech.with_payload(tip, mass, COM), *state)

    return variant_and_call, lambda mass: lw.forward_dynamics(mech, *state)


def in_mujoco(text: str, state: tuple[np.ndarray, ...]):
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    own = model.body_mass[-1]

    def call(mass: float) -> np.ndarray:
        model.body_mass[-1] = own + mass
        mujoco.mj_setConst(model, data)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = state
        mujoco.mj_forward(model, data)
        return data.qacc.copy()

    return call


def in_pinocchio(text: str, state: tuple[np.ndarray, ...]):
    model = pin.buildModelFromXML(text)
    q, v, tau = state
    angles = np.stack([np.cos(q), np.sin(q)], axis=1).ravel()  # of joints without limits
    own, last = model.inertias[LINKS], model.njoints - 1
    lever, inertia = own.lever.copy(), own.inertia.copy()
    mass_of_link, data = own.mass, model.createData()

    def call(mass: float) -> np.ndarray:
        model.inertias[last] = pin.Inertia(mass_of_link + mass, lever, inertia)
        return pin.aba(model, data, angles, v, tau).copy()

    return call


def main() -> None:
    text = arm()
    state = tuple(np.random.default_rng(0).normal(size=(3, LINKS)))
    variant, plain = in_linkwise(text, state)
    others = {"MuJoCo": in_mujoco(text, state), "Pinocchio": in_pinocchio(text, state)}
    for mass in MASSES[:4]:
        for call in others.values():
            np.testing.assert_allclose(call(mass), variant(mass), rtol=1e-6, atol=1e-6)
    calls = [variant, plain, *others.values()]
    turns = [itertools.cycle(MASSES.tolist()) for _ in calls]
    in_turn = [lambda call=call, turn=turn: call(next(turn)) for call, turn in zip(calls, turns, strict=True)]
    seconds = best(*in_turn, repeats=100)
    ours = seconds[0]
    print(f"a payload and one call of the forward dynamics, arm with {LINKS} joints: {ours * 1e6:.1f} us")
    for name, time in zip(("the call alone", *others), seconds[1:], strict=True):
        print(f"{name:15s} {time * 1e6:6.1f} us, ratio {ours / time:5.2f}")
    edits = other_edits(lw.load(text), state)
    for name, time in zip(edits, best(*edits.values(), repeats=100), strict=True):
        print(f"{name} and the call: {time * 1e6:.1f} us")


def other_edits(mech: lw.Mechanism, state: tuple[np.ndarray, ...]):
    masses, parameters = itertools.cycle(MASSES.tolist()), lw.estimation.inertial_parameters(mech)
    edits = {
        "with_gravity": lambda x: mech.with_gravity((0.0, 0.0, -x)),
        "with_armature": lambda x: mech.parameters.with_armature(joint1=x),
        "with_damping": lambda x: mech.parameters.with_damping(joint1=x),
        "with_limits": lambda x: mech.with_limits(joint1=lw.Limits(-x, x)),
        "with_frame": lambda x: mech.with_frame("tool", "link5", (0.0, 0.0, x)),
        "with_inertial_parameters": lambda x: mech.parameters.with_inertial(x * parameters),
    }
    calls = {}
    for name, edit in edits.items():
        calls[name] = lambda edit=edit: lw.forward_dynamics(edit(next(masses)), *state)
        for _ in range(5):
            calls[name]()
    return calls


if __name__ == "__main__":
    main()
