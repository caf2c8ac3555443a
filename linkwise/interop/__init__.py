"""Beside other libraries: states, forces, matrices and Jacobians in the orders and conventions of Pinocchio and MuJoCo,
models of theirs from a mechanism's numbers, and mechanisms as text of the formats that ``mech.save`` writes.

    there = lw.interop.to_pinocchio(mech, model)
    tau = there.inverse.tau(q_there, pinocchio.rnea(model, data, there.q(q), there.v(q, v), there.a(q, v, a)))
"""

import linkwise as lw
from linkwise.writers import text_of

from .conversion import Conversion
from .mechanisms import to_mechanism
from .mujoco import from_mujoco, mujoco_model, to_mujoco
from .pinocchio import from_pinocchio, pinocchio_model, to_pinocchio

__all__ = [
    "Conversion",
    "from_mujoco",
    "from_pinocchio",
    "mjcf_text",
    "mujoco_model",
    "pinocchio_model",
    "to_mechanism",
    "to_mujoco",
    "to_pinocchio",
    "urdf_text",
]
__dir__ = __all__.copy


def urdf_text(mech: lw.Mechanism, strict: bool = False) -> str:
    """The text that ``mech.save("robot.urdf")`` writes. ``strict`` raises for anything URDF cannot express instead of
    warning.
    """
    return text_of(mech, ".urdf", strict=strict)


def mjcf_text(mech: lw.Mechanism, strict: bool = False) -> str:
    """The text that ``mech.save("robot.xml")`` writes. ``strict`` raises for anything MJCF cannot express instead of
    warning.
    """
    return text_of(mech, ".xml", strict=strict)
