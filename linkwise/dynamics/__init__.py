"""The public array functions: trees, derivatives, closed mechanisms, diagonalized dynamics, DeNOC, identification."""

from typing import Any

from ..compiler.registry import DECIDED_OPTIONS
from ..mechanism import Mechanism


def _fronts(mech: Mechanism) -> Any:
    """The order in which loops are eliminated."""
    from .closed.structure import fronts  # here, so that importing the package stays quick

    return fronts(mech)


DECIDED_OPTIONS["fronts"] = _fronts
