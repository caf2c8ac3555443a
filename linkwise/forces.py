"""Force elements, and the joint forces that they give: springs and dampers, actuators, tendons, fluids.

``forces=`` of ``linkwise.forward_dynamics`` and its like chooses which of them act; wrenches at frames are sums of
these with whatever else pushes a link.
"""

from .dynamics.force_elements import activation_rates, actuator_forces, joint_forces
from .dynamics.frames import wrenches_at
from .dynamics.passive import Passive
from .mechanism import Actuator, EffortRange, FluidForce, GravityCompensation, Tendon

__all__ = [
    "Actuator",
    "EffortRange",
    "FluidForce",
    "GravityCompensation",
    "Passive",
    "Tendon",
    "activation_rates",
    "actuator_forces",
    "joint_forces",
    "wrenches_at",
]
__dir__ = __all__.copy
