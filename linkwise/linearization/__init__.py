"""Linear models of mechanisms and their equilibria (spencer2004 Chapter 4, Appendix B).

``linearize`` gives A and B of the local state-space form or of the underlying ODE, ``find_equilibrium`` a place to
linearize at.  All derivatives are exact; nothing is differenced.
"""

from .equilibrium import Equilibrium, EquilibriumError, find_equilibrium
from .linearize import linearize, rate_jacobian
from .state_space import Discrete, Modes, StateSpace

__all__ = [
    "Discrete",
    "Equilibrium",
    "EquilibriumError",
    "Modes",
    "StateSpace",
    "find_equilibrium",
    "linearize",
    "rate_jacobian",
]
