"""A program run again and again: which of its results it gets back, and which inputs are new each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .program import Program

RECORDS, REPEATS = "records", "repeats"  # names of the axes that a recurrence adds to arrays


@dataclass(frozen=True)
class Recurrence:
    """For each record, run the program ``repeats`` times and keep what its outputs then are.

    feeds       ((output, input), ...): each output replaces the input of this name before the next run.  All outputs
                are listed, and have the shapes of the inputs; what is given for these inputs starts the first run
    per_run     inputs with a value of their own for every run: shape ``(records, repeats) + core``
    registers   how many vector registers a value takes: two where a short program waits for its own results
    last        outputs of which no records are kept, but what they are in the end

    All other inputs stay the same.  Outputs have shape ``(records,) + core``; those in ``last`` that of their core.
    """

    feeds: tuple[tuple[str, str], ...]
    per_run: tuple[str, ...]
    registers: int = 1
    last: tuple[str, ...] = ()

    def axes(self, array: str) -> tuple[str, ...]:
        """Names of the axes that the input or output of this name has before its own."""
        if array in self.per_run:
            return (RECORDS, REPEATS)
        return (RECORDS,) if array in dict(self.feeds) and array not in self.last else ()

    def timed_input(self, program: Program) -> tuple[int, int]:
        """The place of an input that is new for each run, and its axis of records, from the end: that of repeats
        follows."""
        position = next(i for i, array in enumerate(program.inputs) if array.name in self.per_run)
        return position, -2 - len(program.inputs[position].shape)

    def lengths(self, program: Program, shapes: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        """How many records and repeats the inputs of these shapes ask for."""
        position, axis = self.timed_input(program)
        return shapes[position][axis], shapes[position][axis + 1]

    def check(self, program: Program) -> None:
        """Refuse what is no recurrence of this program."""
        inputs, outputs = ({array.name: array for array in side} for side in (program.inputs, program.outputs))
        fed, back = dict(self.feeds), {array for _, array in self.feeds}
        if len(self.feeds) != len(outputs) or fed.keys() != outputs.keys() or inputs.keys() & outputs.keys():
            raise ValueError(
                f"every output of {program.name} ({', '.join(outputs)}) must feed an input of another name"
            )
        if len(back) != len(fed) or not back <= inputs.keys() or back & set(self.per_run):
            raise ValueError(f"outputs of {program.name} must feed inputs, each its own, that are not given per run")
        if not self.per_run or not set(self.per_run) <= inputs.keys():
            raise ValueError(f"inputs of {program.name} given per run must be some of {', '.join(inputs)}")
        for output, array in self.feeds:
            if outputs[output].shape != inputs[array].shape:
                raise ValueError(f"{output} {outputs[output].shape} cannot become {array} {inputs[array].shape}")
