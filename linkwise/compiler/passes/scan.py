"""Loop over time: a program that runs repeatedly, its outputs becoming its next inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ..ir.program import RECORDS, REPEATS, Program


def scan(
    program: Program,
    carried: Mapping[str, str],
    per_run: Collection[str],
    registers: int = 1,
    last: Collection[str] = (),
) -> Program:
    """The program over time: ``repeats`` runs for each record, after which its outputs are stored.

    carried     output -> input: each output replaces the input of this name before the next run.  All outputs are
               listed and have the shapes of these inputs, whose given values start the first run
    per_run     inputs with a value for every run: shape ``(records, repeats) + core``.  All other inputs stay the same
    registers   number of vector registers per value
    last        outputs returned at the end only, without records; others have shape ``(records,) + core``
    """
    inputs, outputs = ({array.name: array for array in side} for side in (program.inputs, program.outputs))
    back = set(carried.values())
    if carried.keys() != outputs.keys() or inputs.keys() & outputs.keys():
        raise ValueError(f"every output of {program.name} ({', '.join(outputs)}) must feed an input of another name")
    if len(back) != len(carried) or not back <= inputs.keys() or back & set(per_run):
        raise ValueError(f"outputs of {program.name} must feed inputs, each its own, that are not given per run")
    if not per_run or not set(per_run) <= inputs.keys():
        raise ValueError(f"inputs of {program.name} given per run must be some of {', '.join(inputs)}")
    for output, name in carried.items():
        if outputs[output].shape != inputs[name].shape:
            raise ValueError(f"{output} {outputs[output].shape} cannot become {name} {inputs[name].shape}")
    numbers = {name: k for k, name in enumerate(inputs)}
    return replace(
        program,
        inputs=tuple(replace(x, axes=(RECORDS, REPEATS) if x.name in per_run else ()) for x in program.inputs),
        outputs=tuple(replace(x, axes=() if x.name in last else (RECORDS,)) for x in program.outputs),
        carried=tuple((k, numbers[carried[name]]) for k, name in enumerate(outputs)),
        registers=registers,
    )
