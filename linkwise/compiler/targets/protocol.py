"""Interface of a target: source text for a legal program and, if it can run here, a loader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..ir.program import Program
from ..passes.unroll import unroll


@dataclass(frozen=True)
class Options:
    """Everything besides the program that determines the emitted text; hashed into the cache key."""

    dtype: str = "float64"  # "float64" or "float32"
    lanes: int = 1  # states per vector register; 1 where the target is scalar
    cpu: str = ""  # host CPU name, for targets that compile here
    features: str = ""  # host CPU features, likewise


@dataclass(frozen=True)
class Target:
    """A language that programs are written in and, if there is a loader, a place where they run.

    language          as ``kernel.source`` names it
    emit              source text that evaluates an optimized program over a batch of states; ``program.nodes`` are its
                      operations in order, each with its arguments before it (``compiler/ir/ops.py`` lists them)
    options           for "float64" or "float32"
    name              as ``compile`` names it; None for a language without a loader
    load              ``load(program, dtype)``, from a program before optimization to a function ``f(*arrays,
                      out=None)`` that broadcasts over batches; present if ``name`` is
    over_time         whether programs that run over time (``compiler/passes/scan.py``) can also be loaded, as
                      ``f(*arrays, out=arrays)``; required by rollouts
    loops             whether ``emit`` and ``load`` accept programs with loops (``For`` of ``compiler/ir/program.py``);
                      if not, loops are unrolled first
    loops_of_lists    whether loops may also index cells between long straight-line code (lists, of ``trace/loops.py``)
    most_operations   limit of straight-line code that runs at full speed, None if unlimited
    """

    language: str
    emit: Callable[[Any, Options], str]
    options: Callable[[str], Options] = Options
    name: str | None = None
    load: Callable[[Any, str], Callable[..., Any]] | None = None
    over_time: bool = False
    loops: bool = False
    loops_of_lists: bool = True
    most_operations: int | None = None

    def understood(self, program: Program) -> Program:
        """The program in a form that the target accepts."""
        if self.loops and self.loops_of_lists:
            return program
        indexed = program.constants_in_code and not program.has_fixed_places
        return unroll(program) if indexed or not self.loops else program
