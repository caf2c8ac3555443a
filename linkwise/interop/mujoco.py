"""MuJoCo: models made from a mechanism's numbers, and coordinates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.writers import text_of

from .conversion import Conversion
from .joints import FreeInWorldAxes, Same
from .pairing import Foreign, paired

LIBRARY = "MuJoCo"
_SIZES = {"FREE": (7, 6), "BALL": (4, 3), "SLIDE": (1, 1), "HINGE": (1, 1)}


def to_mujoco(mech: lw.Mechanism, model: Any, others: Iterable[str] = ()) -> Conversion:
    """Conversion of states, forces, matrices and Jacobians from linkwise's to MuJoCo's coordinates.

    model    an ``mujoco.MjModel`` of the same mechanism: from the same MJCF file, or from one that ``mech.save`` wrote;
             joints are matched by name, in any order, and a free joint with a free joint
    others   names of MuJoCo's joints that are locked in the mechanism: they stay at ``qpos0``, or at the value of an
             equality

    q is qpos, v is qvel, a is qacc, tau is a force such as qfrc_applied. Joints that mimic others here are free in
    MuJoCo: their equalities are forces. ``jacobian`` is of jacp above jacr.
    """
    import mujoco

    kinds = mujoco.mjtJoint
    there, held = {}, _held(mujoco, model)
    for j, name in enumerate(_names(model)):
        kind = kinds(model.jnt_type[j]).name.removeprefix("mjJNT_")
        nq, nv = _SIZES[kind]
        q, v = int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
        there[name] = Foreign(list(range(q, q + nq)), list(range(v, v + nv)), kind == "FREE", kind.lower())
    start = np.array(model.qpos0)
    for j, value in held.items():
        start[model.jnt_qposadr[j]] = value
    locked = [name for j, name in enumerate(_names(model)) if j in held and name not in mech.joint_names]
    pairing = paired(mech, LIBRARY, there, _chart, start, model.nv, [*others, *locked])
    return Conversion(pairing, forth=True)


def from_mujoco(mech: lw.Mechanism, model: Any, others: Iterable[str] = ()) -> Conversion:
    """Conversion from MuJoCo's to linkwise's coordinates; arguments as ``to_mujoco``."""
    return to_mujoco(mech, model, others).inverse


def mujoco_model(mech: lw.Mechanism) -> Any:
    """An ``mujoco.MjModel`` of the mechanism, by way of ``mjcf_text``; a warning lists what MJCF cannot express."""
    import mujoco

    return mujoco.MjModel.from_xml_string(text_of(mech, ".xml", remarks=False))


def _chart(body: Any, joint: Foreign) -> Same:
    if not body.kind.is_free:
        return Same()
    if body.parent >= 0:
        raise lw.MechanismError(f"joint {body.joint!r} floats on a moving link: MuJoCo's free joints are on the world")
    return FreeInWorldAxes(np.array(body.rotation), np.array(body.position))


def _names(model: Any) -> list[str]:
    """The names of joints as linkwise reads them: their own, or those of their bodies."""
    taken = {model.joint(j).name for j in range(model.njnt)}
    names = []
    for j in range(model.njnt):
        body = int(model.jnt_bodyid[j])
        name = model.joint(j).name.strip()
        if not name:
            name = f"{model.body(body).name or f'body{body}'}_joint"
            while name in taken:
                name += "_"
            taken.add(name)
        names.append(name)
    return names


def _held(mujoco: Any, model: Any) -> dict[int, float]:
    """Joints that equalities hold at a coordinate."""
    single = [
        i
        for i in range(model.neq)
        if model.eq_type[i] == mujoco.mjtEq.mjEQ_JOINT and model.eq_obj2id[i] < 0 and model.eq_active0[i]
    ]
    at = {int(model.eq_obj1id[i]): float(model.eq_data[i, 0]) for i in single}
    return {j: float(model.qpos0[model.jnt_qposadr[j]]) + offset for j, offset in at.items()}
