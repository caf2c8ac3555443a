"""What a target supplies: source text for a legal program and, where it can run here, a way to load it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..ir.program import Program
from ..passes.unroll import unroll


@dataclass(frozen=True)
class Options:
    """Everything besides the program that decides what is emitted; hashed into the cache key."""

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
    name              as ``compile`` names it; None for what is written only
    load              ``load(program, dtype)``, the program not yet optimized: a function ``f(*arrays, out=None)`` that
                      broadcasts over batches; there is one if there is a name
    over_time         whether programs that run over time (``compiler/passes/scan.py``) can be loaded, too, as
                      ``f(*arrays, out=arrays)``; if not, there are no rollouts
    loops             whether all of these take programs with loops (``For`` of ``compiler/ir/program.py``); if not,
                      they are given straight-line code alone
    loops_of_lists    whether these may index cells between long straight-line code (lists, of ``trace/loops.py``), too
    most_operations   of straight-line code that runs at full speed, where there is such a limit
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
        """The program as the target takes it."""
        if self.loops and self.loops_of_lists:
            return program
        indexed = program.constants_in_code and not program.has_fixed_places
        return unroll(program) if indexed or not self.loops else program
