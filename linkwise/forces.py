"""Force elements and their joint forces: springs and dampers, actuators, tendons, fluids.

``forces=`` of ``linkwise.forward_dynamics`` and similar functions selects the elements that act; wrenches at frames are
sums of these and of other external forces.
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
