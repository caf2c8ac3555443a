"""How fast kernels are on this machine, against its peak and against other libraries."""

from .peak import fma_peak
from .report import ALGORITHMS, TOLERANCE, Conditions, Measurement, conditions, measure
from .timing import best, cpu_name

__all__ = [
    "ALGORITHMS",
    "TOLERANCE",
    "Conditions",
    "Measurement",
    "best",
    "conditions",
    "cpu_name",
    "fma_peak",
    "measure",
]
