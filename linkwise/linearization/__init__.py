"""Linear models of mechanisms and their equilibria (spencer2004 Chapter 4, Appendix B).

``linearize`` gives A and B of the local state-space form or of the underlying ODE, ``find_equilibrium`` a place to
linearize at.  All derivatives are exact; nothing is differenced.
"""

from typing import TYPE_CHECKING

from ..former import moved_from

if not TYPE_CHECKING:
    __getattr__ = moved_from("linearization")
