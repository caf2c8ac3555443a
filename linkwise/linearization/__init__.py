"""Linear models of mechanisms and their equilibria (spencer2004 Chapter 4, Appendix B).

``linearize`` computes A and B of the local state-space form or of the underlying ODE, ``find_equilibrium`` a state for
it. All derivatives are exact, without finite differences.
"""

from typing import TYPE_CHECKING

from ..former import moved_from

if not TYPE_CHECKING:
    __getattr__ = moved_from("linearization")
