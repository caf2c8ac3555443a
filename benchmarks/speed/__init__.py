"""How fast kernels are on this machine, against its peak and against other libraries."""

from linkwise.demo.timing import best, cpu_name

from .peak import fma_peak
from .report import ALGORITHMS, TOLERANCE, Conditions, Measurement, conditions, measure

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
