"""Studies: thousands of parameters times thousands of motions, on one machine or a cluster, stopped and resumed.

A ``Study`` is frozen data: a mechanism, what varies, what to compute.  Its cases are numbered; each is a pure function
of the study and its number, so that results do not depend on how the study is split, nor on who computes what.
"""

from .cases import Case, Cases
from .computations import Computation, Equilibria, Function, LinearModels, Rollout, Singularities
from .distributions import (
    Choice,
    Distribution,
    FromScipy,
    Given,
    Grid,
    LogNormal,
    MultivariateNormal,
    Normal,
    Offset,
    Relative,
    Triangular,
    Uniform,
    WithinLimits,
)
from .errors import StudyError
from .files import StudyFile, load_study
from .results import Results
from .stores import open_study
from .study import Study

__all__ = [
    "Case",
    "Cases",
    "Choice",
    "Computation",
    "Distribution",
    "Equilibria",
    "FromScipy",
    "Function",
    "Given",
    "Grid",
    "LinearModels",
    "LogNormal",
    "MultivariateNormal",
    "Normal",
    "Offset",
    "Relative",
    "Results",
    "Rollout",
    "Singularities",
    "Study",
    "StudyError",
    "StudyFile",
    "Triangular",
    "Uniform",
    "WithinLimits",
    "load_study",
    "open_study",
]
