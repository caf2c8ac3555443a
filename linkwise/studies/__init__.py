"""Studies: thousands of parameters times thousands of motions, on one machine or a cluster, stopped and resumed.

A ``Study`` is frozen data: a mechanism, what varies, what to compute.  Its cases are numbered; each is a pure function
of the study and its number, so that results do not depend on how the study is split, nor on who computes what.
"""

from typing import TYPE_CHECKING

from ..former import moved_from
from . import distributions
from .cases import Case, Cases
from .computations import Computation, Equilibria, Function, LinearModels, Rollout, Singularities
from .errors import StudyError
from .files import StudyFile, load_study
from .results import Results
from .stores import open_study
from .study import Study

__all__ = [
    "Case",
    "Cases",
    "Computation",
    "Equilibria",
    "Function",
    "LinearModels",
    "Results",
    "Rollout",
    "Singularities",
    "Study",
    "StudyError",
    "StudyFile",
    "distributions",
    "load_study",
    "open_study",
]

if not TYPE_CHECKING:
    __getattr__ = moved_from("studies")
__dir__ = __all__.copy
