"""Nested loops: from every degree of freedom to the root, link by link, as entries of matrices are computed.

The outer loop begins a path for each degree of freedom: it copies what that hands to the parent of its link.  The inner
one goes from there through the ancestors to the ground.  What goes along lies in one of two places by turns, so that it
is never written where it is still to be read.

Or for every column of matrices: sweeps over all links, which read a column and write one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from ...mechanics.recursions.rolled import NotRolled
from ..ir.program import Array, Body, For, Program
from .bodies import TABLE, BodyWriter, Columns, Store
from .groups import with_few_positions
from .packed_matrices import OF_PAIRS

NOTHING = Body(Program((Array("reads", (0,)),), (Array("writes", (0,)),), (), ((),), "column"), (), ())
Beginnings = dict[tuple[int, int], list[Store]]  # by class and degree of freedom of its joint, what is written


def along_paths(
    writer: BodyWriter, class_of: np.ndarray, of_links: np.ndarray, beginnings: Beginnings, width: int, start: int
) -> For:
    """All paths; ``of_links`` are the positions of every link, and ``width`` numbers go along, in cells from ``start``
    on."""
    parents = np.array(writer.values.traced.parents)
    here = _depths(parents) % 2 * width
    positions = np.column_stack([start + here, start + width - here, of_links]).astype(np.int32)
    rows, row_of = _rows(writer, class_of, positions)
    starts = [(i, dof) for i, link_class in enumerate(class_of.tolist()) for k, dof in beginnings if k == link_class]
    links, dofs = np.array(starts, dtype=np.int32).reshape(-1, 2).T
    bases = positions[links]
    for column, (quantity, size) in enumerate(writer.columns.starts, TABLE + 1):
        if quantity == "nv":
            bases[:, column] += dofs * size
        elif (quantity, size) == OF_PAIRS:
            packing = writer.values.traced.packing
            assert packing is not None
            bases[:, column] = packing.of_pairs[packing.dof_starts[links] + dofs]
    numbered = {key: number for number, key in enumerate(beginnings)}
    which = np.array([numbered[class_of[i], dof] for i, dof in starts], dtype=np.int32)
    bodies = (writer.beginning(k, stores, f"way_of_kind_{k}_{dof}") for (k, dof), stores in beginnings.items())
    inner = np.flatnonzero(row_of >= 0)
    following = np.where(parents[inner] >= 0, row_of[parents[inner]], -1)
    first = row_of[parents[links]].astype(np.int32)
    rows = replace(with_few_positions(rows), first=first, following=following.astype(np.int32))
    return with_few_positions(For(rows.label, tuple(bodies), which, bases, rows))


def each_column(sweeps: Sequence[For], columns: Columns, count: int) -> For:
    """Sweeps that are made for each of ``count`` columns of matrices, all links one after the other."""
    firsts = accumulate((len(loop.bodies) for loop in sweeps), initial=0)
    which = np.concatenate([loop.which + first for loop, first in zip(sweeps, firsts, strict=False)])
    bodies = tuple(body for loop in sweeps for body in loop.bodies)
    following = np.arange(1, len(which) + 1, dtype=np.int32)
    following[-1] = -1
    zeros, bases = np.zeros(count, dtype=np.int32), np.concatenate([loop.bases for loop in sweeps])
    rows = For(sweeps[0].label, bodies, which.astype(np.int32), bases, first=zeros, following=following)
    return For("columns", (NOTHING,), zeros, columns.around(count), rows)


def _rows(writer: BodyWriter, class_of: np.ndarray, positions: np.ndarray) -> tuple[For, np.ndarray]:
    """A row for every link that carries others, and which one that is; -1: none."""
    link_classes = [k for k, stores in enumerate(writer.stores) if stores]
    bodies = [writer.body((k,), outwards=False) for k in link_classes]
    of_class = np.full(len(writer.stores), -1)
    of_class[link_classes] = np.arange(len(link_classes))
    which = of_class[class_of]
    links = np.flatnonzero(which >= 0)
    row_of = np.full(len(class_of), -1)
    row_of[links] = np.arange(len(links))
    present = tuple(body for body in bodies if body is not None)
    if len(present) < len(bodies):
        raise NotRolled("nothing is computed along a path")
    label = next((n.section.rpartition(": ")[0] for body in present for n in body.program.nodes if n.section), "ways")
    return For(label, present, which[links].astype(np.int32), positions[links]), row_of


def _depths(parents: np.ndarray) -> np.ndarray:
    depths = np.zeros(len(parents), dtype=int)
    for i, parent in enumerate(parents.tolist()):
        depths[i] = depths[parent] + 1 if parent >= 0 else 0
    return depths
