"""Derivatives of quantities by the state: Jacobians of every kind, second derivatives, and those of steps and rollouts.

``linkwise.forward_dynamics_derivatives`` and ``linkwise.inverse_dynamics_derivatives`` are beside their functions;
``linkwise.jacobian_of``, ``jvp_of`` and ``vjp_of`` derive every kernel by every input.
"""

from .constraints.force_derivatives import (
    constraint_forces_derivatives,
    joint_wrenches_derivatives,
    loop_reactions_derivatives,
    multipliers_derivatives,
)
from .dynamics.derivatives import (
    difference_derivatives,
    integrate_derivatives,
    inverse_dynamics_second_derivatives,
    jacobian_derivatives,
    jacobian_rate,
    jacobian_second_rate,
    step_derivatives,
)
from .dynamics.force_elements import joint_force_derivatives
from .dynamics.second_derivatives import forward_dynamics_second_derivatives
from .dynamics.trees import mass_matrix_derivatives
from .motion.gradients import rollout_derivatives, rollout_vjp

__all__ = [
    "constraint_forces_derivatives",
    "difference_derivatives",
    "forward_dynamics_second_derivatives",
    "integrate_derivatives",
    "inverse_dynamics_second_derivatives",
    "jacobian_derivatives",
    "jacobian_rate",
    "jacobian_second_rate",
    "joint_force_derivatives",
    "joint_wrenches_derivatives",
    "loop_reactions_derivatives",
    "mass_matrix_derivatives",
    "multipliers_derivatives",
    "rollout_derivatives",
    "rollout_vjp",
    "step_derivatives",
]
__dir__ = __all__.copy
