"""Programs as closed formulas: sums of products of named symbols, as text, LaTeX and SymPy."""

from .expand import FormulaError, expanded
from .formulas import Formulas
from .polynomial import Algebra, Polynomial

__all__ = ["Algebra", "FormulaError", "Formulas", "Polynomial", "expanded"]
