"""What a target supplies: source text for a legal program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..ir.program import Program


@dataclass(frozen=True)
class Options:
    """Everything besides the program that decides what is emitted; hashed into the cache key."""

    dtype: str = "float64"  # "float64" or "float32"
    lanes: int = 1  # states per vector register; 1 where the target is scalar
    cpu: str = ""  # host CPU name, for targets that compile here
    features: str = ""  # host CPU features, likewise


class Target(Protocol):
    """A module in this folder with one public function."""

    def emit(self, program: Program, options: Options) -> str:
        """Source text that evaluates ``program`` over a batch of states."""
        ...
