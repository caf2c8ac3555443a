"""An algorithm traced once per link class.

The algorithm runs on a tree with one link for each class.  The numbers of that link, what it takes from its neighbours
and its elements of the inputs are symbols of the class.  ``assemble`` makes loops of what was traced.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...mechanics.algorithms.algorithm import SHAPES, Algorithm
from ...mechanics.joints import Joint
from ...mechanics.operators.explain import Computation
from ...mechanics.operators.spaces import COORDINATE, FORCE, JOINT, MOTION, Space
from ...mechanics.recursions.link_classes import LinkClass, link_classes_of
from ...mechanics.recursions.rolled import ANY, Assumed, LinksOfClasses, NotRolled, RolledMatrixOfDofs, Rolling
from ...mechanics.recursions.sweep_log import SweepLog
from ...mechanics.recursions.tree import RolledTree, Tree
from ...mechanism import GROUND, Frame, Mechanism
from ..ir.builder import Builder
from ..ir.program import Array, Node, Program
from ..trace import Symbol, symbols
from .assembly import assemble
from .packed_matrices import ANCESTOR_COUNT, AT_ONE_JOINT, OF_PAIRS, Packing
from .values import FROM_THE_END, Column, DividedArray, ElementOfClass, Leaves, Result, Traced


@dataclasses.dataclass(frozen=True)
class Axis:
    """What the first axis of an array counts: the numbers of q, of v, or the links, one after the other; () for an
    array that belongs to no link."""

    parts: tuple[str, ...]

    def __add__(self, other: Axis) -> Axis:
        return Axis(self.parts + other.parts)


class _Counted:
    """Stands for a mechanism where the shapes of arrays are asked for."""

    nq, nv, n_links = Axis(("nq",)), Axis(("nv",)), Axis(("n_links",))


def rolled(
    algorithm: Algorithm,
    mechanism: Mechanism,
    tree: Tree,
    computed: tuple[Computation, ...] | None,
    options: Mapping[str, Any],
    log: SweepLog,
) -> Program:
    """The program with loops of an algorithm on the links of a tree; NotRolled where there is none."""
    if mechanism.coordinates.mimic_joints or not mechanism.bodies:
        raise NotRolled("joints mimic others, or there is no link")
    tree, algorithm = algorithm.tree_for(tree), dataclasses.replace(algorithm, on_tree=None)
    if not all(isinstance(link.joint, Joint) for link in tree.links):
        raise NotRolled("joints are looked at from elsewhere")
    frames = _frames_named(computed, mechanism)
    link_classes = link_classes_of(tree.links, {frame.body for frame in frames})
    template = _template(mechanism, link_classes, frames)
    inputs = [(name, *_divided(name, algorithm)) for name in algorithm.inputs]
    lead = _matrices(algorithm, computed)
    in_blocks = len(algorithm.outputs) > 1 and all(map(_is_in_blocks, algorithm.outputs))
    outputs = (
        []
        if lead is not None or in_blocks
        else [(name, *_divided(name, algorithm, computed)) for name in algorithm.outputs]
    )
    assumed = Assumed()
    while True:
        builder = Builder(numbers=len(inputs))
        log.sweeps.clear()
        log.on_section = lambda label, builder=builder: setattr(builder, "section", label)  # type: ignore[misc]
        leaves = Leaves(builder, len(inputs))
        rolling = Rolling(link_classes, mechanism.tree.parents, leaves.taken, _identity, assumed, leaves.column)
        links = [
            link_class.link([leaves.number(k, int(column)) for column in np.flatnonzero(link_class.varies)])
            for k, link_class in enumerate(link_classes)
        ]
        at = RolledTree(template, LinksOfClasses.of(links, rolling), tree.gravity, whole=mechanism)
        given = symbols([Array(name, _shape(axis, core, template)) for name, axis, core in inputs], builder)
        computed_results = algorithm.run(computed, at, given, options)
        if rolling.confirmed():
            break
    if lead is not None:
        arrays, results, packing = _results_of_matrices(
            algorithm.outputs[0], lead, computed_results, mechanism, builder
        )
    elif in_blocks:
        named = enumerate(zip(algorithm.outputs, computed_results, strict=True))
        both = [_in_blocks(k, name, blocks, mechanism, builder) for k, (name, blocks) in named]
        arrays, results, packing = [array for array, _ in both], [one for _, of in both for one in of], None
    else:
        packing = None
        arrays = [_shaped(_array(part, mechanism, template), mechanism) for part in outputs]
        parts = [computed_results] if len(outputs) == 1 else computed_results
        results = [
            Result(number, element, _node(x, builder))
            for number, (array, part) in enumerate(zip(arrays, parts, strict=True))
            for element, x in zip(array.places, np.array(part, dtype=object).ravel(), strict=True)
        ]
    traced = Traced(
        leaves,
        rolling,
        mechanism.tree.parents,
        [_array(part, mechanism, template) for part in inputs],
        arrays,
        results,
        mechanism.nv,
        packing,
    )
    return assemble(traced, algorithm.name)


def _matrices(algorithm: Algorithm, computed: tuple[Computation, ...] | None) -> tuple[int, ...] | None:
    """If the result is matrices over the joints, the shape that stands before (nv, nv)."""
    if len(algorithm.outputs) > 1:
        return None
    (name,) = algorithm.outputs
    if name in SHAPES:
        shape = _shape_in_axes(name)
        is_matrix = len(shape) > 1 and shape[-2:] == (_Counted.nv, _Counted.nv)
        return shape[:-2] if is_matrix and not any(isinstance(size, Axis) for size in shape[:-2]) else None
    if computed is not None and len(computed) == 1 and not computed[0].expression.is_vector:
        expression = computed[0].expression
        return () if {expression.domain, expression.codomain} <= {JOINT, COORDINATE} else None
    return None


def _results_of_matrices(
    name: str, lead: tuple[int, ...], values: Any, mechanism: Mechanism, builder: Builder
) -> tuple[list[DividedArray], list[Result], Packing | None]:
    """Matrices that were filled pair by pair: entries of degrees of freedom of one link, and of one with another that
    is further out."""
    matrices = values if lead else [values]
    if not all(isinstance(matrix, RolledMatrixOfDofs) for matrix in matrices):
        raise NotRolled("a matrix over all links is not filled pair by pair")
    array = Array(name, (*lead, mechanism.nv, mechanism.nv))
    if not any(matrix.by_column for matrix in matrices):
        return _packed(array, matrices, mechanism, builder)
    n = mechanism.nv
    columns = _columns_of_rows(mechanism, n)
    results: list[Result] = []
    both = [(number, matrix.before) for number, matrix in enumerate(matrices)] + list(enumerate(matrices))
    for number, matrix in both:
        if matrix is not None:
            results += _entries(0, matrix, n, number * n * n, builder)
    return [DividedArray(array, [], columns)], results, None


def _is_in_blocks(name: str) -> bool:
    """Whether an array is made of matrices over the joints, as derivatives of a state by a state are."""
    shape = SHAPES[name](_Sized()) if name in SHAPES else ()  # type: ignore[arg-type]
    return len(shape) == 2 and all(size % _Sized.nv == 0 for size in shape)


class _Sized:
    """Stands for a mechanism where it is asked which sizes of arrays are multiples of that of v."""

    nq, nv, n_links = 1_000_003, 1_000_033, 1_000_037
    loops = ()


def _in_blocks(
    number: int, name: str, blocks: Sequence[Sequence[RolledMatrixOfDofs]], mechanism: Mechanism, builder: Builder
) -> tuple[DividedArray, list[Result]]:
    """An array of matrices that were filled column by column, side by side and below one another."""
    n, width = mechanism.nv, len(blocks[0]) * mechanism.nv
    results: list[Result] = []
    for r, row in enumerate(blocks):
        for c, matrix in enumerate(row):
            results += _entries(number, matrix, width, r * n * width + c * n, builder)
    array = Array(name, (len(blocks) * n, width))
    return DividedArray(array, [], _columns_of_rows(mechanism, width)), results


def _columns_of_rows(mechanism: Mechanism, width: int) -> dict[Column, np.ndarray]:
    """Where elements of matrices lie whose rows have ``width`` elements, by column."""
    columns = {("nv", size): _starts(mechanism, "nv")[:-1] * size for size in (1, width, width + 1)}
    return {**columns, FROM_THE_END: np.zeros(mechanism.n_links, dtype=int)}


def _entries(array: int, matrix: RolledMatrixOfDofs, width: int, offset: int, builder: Builder) -> Iterator[Result]:
    """The entries of a matrix that begins at ``offset`` in an array."""
    start, row, diagonal = ("nv", 1), ("nv", width), ("nv", width + 1)
    for (outer, inner), value in matrix.entries.items():
        if ANY not in (outer, inner):
            element = ElementOfClass(outer[0], diagonal, offset + outer[1] * width + inner[1])
        elif outer == ANY:
            element = ElementOfClass(inner[0], start, offset + inner[1], outer=row)
        else:
            element = ElementOfClass(outer[0], row, offset + outer[1] * width, outer=start)
        yield Result(array, element, _node(value, builder), matrix.by_column)


def _packed(
    array: Array, matrices: Sequence[RolledMatrixOfDofs], mechanism: Mechanism, builder: Builder
) -> tuple[list[DividedArray], list[Result], Packing]:
    """Matrices whose entries lie in cells side by side."""
    entries = [{pair: _node(x, builder) for pair, x in matrix.entries.items()} for matrix in matrices]
    packing = Packing.of(mechanism, [all(of[b, a] is node for (a, b), node in of.items()) for of in entries])
    results, sizes = [], Counter(a[0] for a, b in entries[0] if a == b)
    for number, of in enumerate(entries):
        for (outer, inner), node in of.items():
            if ANY not in (outer, inner):
                offset = packing.start(number) + outer[1] * sizes[outer[0]] + inner[1]
                element = ElementOfClass(outer[0], AT_ONE_JOINT, offset)
            elif outer == ANY:
                element = ElementOfClass(inner[0], ANCESTOR_COUNT, packing.rows(number) + inner[1], outer=OF_PAIRS)
            elif not packing.symmetric[number]:
                element = ElementOfClass(outer[0], ANCESTOR_COUNT, packing.columns(number) + outer[1], outer=OF_PAIRS)
            else:
                continue
            results.append(Result(0, element, node))
    return [DividedArray(array, [], packing.positions)], results, packing


def examples_of(tree: Tree) -> Tree:
    """A tree with one link of each class, to be shown."""
    link_classes = link_classes_of(tree.links)
    links = tuple(
        dataclasses.replace(
            link_class.example, name=f"{link_class.example.name} and {len(link_class.links) - 1} like it"
        )
        if len(link_class.links) > 1
        else link_class.example
        for link_class in link_classes
    )
    return Tree(_template(tree.mechanism, link_classes), links, tree.gravity)


def _identity(number: Any) -> Hashable:
    if isinstance(number, Symbol):
        return number.node
    return float(number) if isinstance(number, (int, float)) else None


def _node(value: Any, builder: Builder) -> Node:
    return value.node if isinstance(value, Symbol) else builder.const(value)


def _frames_named(computed: tuple[Computation, ...] | None, mechanism: Mechanism) -> list[Frame]:
    """The frames that expressions are about."""
    names = {
        space.link
        for frame in computed or ()
        for part in frame.form.walk()
        for space in (part.domain, part.codomain)
        if space is not None and space.link
    }
    return [mechanism.frame(name) for name in sorted(names)]


def _template(mechanism: Mechanism, link_classes: Sequence[LinkClass], named: Sequence[Frame] = ()) -> Mechanism:
    """A mechanism with a body for each class, in a row: sizes and places of its arrays are asked for, and frames that
    have a name in what is computed; nothing else."""
    bodies = [
        dataclasses.replace(mechanism.bodies[link_class.links[0]], parent=k - 1)
        for k, link_class in enumerate(link_classes)
    ]
    names = [GROUND, *(body.link for body in bodies)]
    frames = {name: Frame(name, k - 1, np.eye(3), np.zeros(3)) for k, name in enumerate(names)}
    class_of = {i: k for k, link_class in enumerate(link_classes) for i in link_class.links}
    frames |= {frame.name: dataclasses.replace(frame, body=class_of.get(frame.body, -1)) for frame in named}
    return Mechanism(mechanism.name, tuple(bodies), frames, mechanism.gravity)


def _divided(
    name: str, algorithm: Algorithm, computed: tuple[Computation, ...] | None = None
) -> tuple[Axis, tuple[int, ...]]:
    """How an array of an algorithm is divided among the links: its first axis, and the shape of what follows."""
    if isinstance(space := algorithm.sizes.get(name), Space):
        return _of_space(space)
    if name in algorithm.sizes or name not in SHAPES:
        if computed is not None and len(computed) == 1 and name not in algorithm.sizes:
            expression = computed[0].expression
            if expression.is_vector and expression.codomain is not None:
                return _of_space(expression.codomain)
        raise NotRolled(f"nothing says how {name} is divided among the links")
    first, *rest = _shape_in_axes(name) or (Axis(()),)
    if isinstance(first, int) and rest == [_Counted.nv]:
        return Axis(_Counted.nv.parts * first), ()  # row by row
    if not isinstance(first, Axis) or any(isinstance(size, Axis) for size in rest):
        raise NotRolled(f"{name} is not divided among the links")
    return first, tuple(rest)


def _shape_in_axes(name: str) -> tuple[Any, ...]:
    """The shape of an array, with an Axis where it counts numbers of the links."""
    try:
        return SHAPES[name](_Counted)  # type: ignore[arg-type]
    except (AttributeError, TypeError):
        raise NotRolled(f"{name} is not divided among the links") from None


def _of_space(space: Space) -> tuple[Axis, tuple[int, ...]]:
    if space in (JOINT, COORDINATE):
        return _Counted.nv, ()
    if space in (FORCE, MOTION):
        return _Counted.n_links, (6,)
    raise NotRolled(f"a vector of {space} is not divided among the links")


def _shape(axis: Axis, core: tuple[int, ...], mechanism: Mechanism) -> tuple[int, ...]:
    return (*((sum(getattr(mechanism, part) for part in axis.parts),) if axis.parts else ()), *core)


def _array(part: tuple[str, Axis, tuple[int, ...]], mechanism: Mechanism, template: Mechanism) -> DividedArray:
    name, axis, core = part
    width = int(np.prod(core, dtype=int))
    elements: list[ElementOfClass] = []
    offset = 0
    for quantity in axis.parts:
        starts = _starts(template, quantity)
        for k in range(template.n_links):
            size = (starts[k + 1] - starts[k]) * width
            elements += [ElementOfClass(k, (quantity, width), offset + c) for c in range(size)]
        offset += getattr(mechanism, quantity) * width
    if not axis.parts:
        elements = [ElementOfClass(None, None, c) for c in range(width)]
    columns = {(quantity, width): _starts(mechanism, quantity)[:-1] * width for quantity in axis.parts}
    return DividedArray(Array(name, _shape(axis, core, mechanism)), elements, columns)


def _shaped(part: DividedArray, mechanism: Mechanism) -> DividedArray:
    """The same, with the axes that its array has."""
    name = part.array.name
    shape = SHAPES[name](mechanism) if name in SHAPES else part.array.shape
    return dataclasses.replace(part, array=Array(name, shape)) if np.prod(shape) == part.array.size else part


def _starts(mechanism: Mechanism, quantity: str) -> np.ndarray:
    """Where the numbers of each link begin among those of all."""
    sizes = [1 if quantity == "n_links" else getattr(body, quantity) for body in mechanism.bodies]
    return np.concatenate([[0], np.cumsum(sizes, dtype=int)])
