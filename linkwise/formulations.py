"""Other forms of the equations of motion: diagonalized (``diagonal``), decoupled orthogonal (``denoc``), in momenta."""

from .dynamics import denoc, diagonal, momenta

__path__: list[str] = []  # its modules can be imported by name
__all__ = [
    "denoc",
    "diagonal",
    "momenta",
]
__dir__ = __all__.copy
