"""Controllers, which compute joint forces from time and state, and the linear models for their design."""

from ..dynamics.frames import effective_inertia, operational_inertia
from ..linearization.equilibrium import Equilibrium, EquilibriumError
from ..linearization.linear_models import rate_jacobian
from ..linearization.state_space import Discrete, Modes, StateSpace
from .decoupled import decoupled_tracking
from .joints import joint_feedback, saturated
from .operational_space import operational_space_control
from .regulators import lqr
from .tracking import computed_torque

__all__ = [
    "Discrete",
    "Equilibrium",
    "EquilibriumError",
    "Modes",
    "StateSpace",
    "computed_torque",
    "decoupled_tracking",
    "effective_inertia",
    "joint_feedback",
    "lqr",
    "operational_inertia",
    "operational_space_control",
    "rate_jacobian",
    "saturated",
]
__dir__ = __all__.copy
