"""Trace an algorithm once per link class.

The algorithm runs on a tree with one link for each class.  The numbers of that link, values from its neighbours and its
elements of the inputs are symbols of the class.  ``Assembly`` turns the trace into loops.
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
from ...mechanics.recursions.link_classes import LinkClass, classify_links
from ...mechanics.recursions.pairs import Dof
from ...mechanics.recursions.rolled import (
    ANY,
    Assumed,
    LinksOfClasses,
    NotRolled,
    Passed,
    RolledMatrixOfDofs,
    Rolling,
)
from ...mechanics.recursions.sweep_log import SweepLog
from ...mechanics.recursions.tree import RolledTree, Tree
from ...mechanics.scalar import Scalar
from ...mechanism import GROUND, Frame, Mechanism
from ..ir.builder import Builder
from ..ir.program import CELL, INPUT, NUMBER, OUTPUT, Array, Node, Place, Program
from ..trace import Symbol, symbols
from .assembly import Assembly
from .packed_matrices import Packing
from .values import EVERY, FROM_THE_END, Leaf, Leaves, Positions, Result, starts_of_links


class Axis(tuple[str, ...]):
    """The quantity that an axis of an array counts: q, v or links, possibly concatenated; () for an array that belongs
    to no link."""

    def __add__(self, other: Any) -> Axis:
        return Axis((*self, *other))

    def __mul__(self, times: Any) -> Axis:
        return Axis(tuple(self) * times)

    __rmul__ = __mul__


class _Counted:
    """Stands in for a mechanism when shapes of arrays are evaluated."""

    nq, nv, n_links = Axis(("nq",)), Axis(("nv",)), Axis(("n_links",))


Division = tuple[Axis, tuple[int, ...]]  # of an array among the links: its first axis, and the rest of its shape


def rolled(
    algorithm: Algorithm,
    mechanism: Mechanism,
    tree: Tree,
    computed: tuple[Computation, ...] | None,
    options: Mapping[str, Any],
    log: SweepLog,
) -> Program:
    """The program with loops of an algorithm on the links of a tree; raises NotRolled if impossible."""
    if mechanism.coordinates.mimic_joints or not mechanism.bodies:
        raise NotRolled("joints mimic others, or there is no link")
    tree, algorithm = algorithm.tree_for(tree), dataclasses.replace(algorithm, on_tree=None)
    if not all(isinstance(link.joint, Joint) for link in tree.links):
        raise NotRolled("joints are looked at from elsewhere")
    frames = _frames_named(computed, mechanism)
    link_classes = classify_links(tree.links, {frame.body for frame in frames})
    divided = DividedArrays(mechanism, _template(mechanism, link_classes, frames))
    inputs = [(name, _division(name, algorithm)) for name in algorithm.inputs]
    elements = [divided.elements(INPUT, k, *division) for k, (_, division) in enumerate(inputs)]
    lead = _matrices(algorithm, computed)
    in_blocks = len(algorithm.outputs) > 1 and all(map(_is_in_blocks, algorithm.outputs))
    divisions = (
        [] if lead is not None or in_blocks else [_division(name, algorithm, computed) for name in algorithm.outputs]
    )
    assumed = Assumed()
    while True:
        builder = Builder(numbers=len(inputs))
        log.sweeps.clear()
        log.on_section = lambda label, builder=builder: setattr(builder, "section", label)  # type: ignore[misc]
        leaves = Leaves(builder, len(inputs))

        def taken(link_class: int, passed: Passed, k: int, leaves: Leaves = leaves) -> Scalar:
            return leaves.symbol(Leaf(link_class, passed=(passed, k)))

        def column(dof: Dof, matrix: int | None, leaves: Leaves = leaves) -> Scalar:
            return leaves.symbol(Leaf(dof[0], divided.column_element(dof[1], matrix)))

        rolling = Rolling(link_classes, mechanism.tree.parents, taken, _identity, assumed, column)
        links = [
            link_class.link(
                [leaves.symbol(Leaf(k, number=int(column))) for column in np.flatnonzero(link_class.varies)]
            )
            for k, link_class in enumerate(link_classes)
        ]
        at = RolledTree(divided.template, LinksOfClasses.of(links, rolling), tree.gravity, full=mechanism)
        arguments = symbols([Array(name, _shape(division, divided.template)) for name, division in inputs], builder)
        for array, of_array in zip(arguments, elements, strict=True):
            leaves.update({x.node: Leaf(*element) for x, element in zip(array.ravel(), of_array, strict=True)})
        values = algorithm.run(computed, at, arguments, options)
        if rolling.confirmed():
            break
    packing, results = None, list[Result]()
    if lead is not None:
        matrices = values if lead else [values]
        outputs = [Array(algorithm.outputs[0], (*lead, mechanism.nv, mechanism.nv))]
        if not all(isinstance(matrix, RolledMatrixOfDofs) for matrix in matrices):
            raise NotRolled("a matrix over all links is not filled pair by pair")
        if not any(matrix.by_column for matrix in matrices):
            packing = Packing(mechanism, [_is_symmetric(matrix, builder) for matrix in matrices])
            results += _packed(packing, matrices, divided.positions, builder)
        else:
            both = [(number, matrix.before) for number, matrix in enumerate(matrices)] + list(enumerate(matrices))
            for number, matrix in both:
                if matrix is not None:
                    results += divided.entries(0, matrix, mechanism.nv, number * mechanism.nv**2, builder)
    elif in_blocks:
        outputs = []
        for number, (name, blocks) in enumerate(zip(algorithm.outputs, values, strict=True)):
            n, width = mechanism.nv, len(blocks[0]) * mechanism.nv
            outputs.append(Array(name, (len(blocks) * n, width)))
            for r, row in enumerate(blocks):
                for c, matrix in enumerate(row):
                    results += divided.entries(number, matrix, width, r * n * width + c * n, builder)
    else:
        outputs = []
        parts = [values] if len(divisions) == 1 else values
        for number, (name, division, part) in enumerate(zip(algorithm.outputs, divisions, parts, strict=True)):
            outputs.append(_shaped(Array(name, _shape(division, mechanism)), mechanism))
            of_array = divided.elements(OUTPUT, number, *division)
            for element, x in zip(of_array, np.array(part, dtype=object).ravel(), strict=True):
                results.append(Result(*element, _node(x, builder)))
    if any(result.link_class == EVERY for result in results):
        raise NotRolled("a result belongs to no link")
    arrays = [Array(name, _shape(division, mechanism)) for name, division in inputs]
    assembly = Assembly(mechanism, rolling, leaves, divided.positions, results, packing)
    return assembly.program(tuple(arrays), tuple(outputs), algorithm.name)


class DividedArrays:
    """Positions of array elements that belong to links of a class; ``template`` is a mechanism with one link of each
    class."""

    def __init__(self, mechanism: Mechanism, template: Mechanism):
        self.mechanism, self.template, self.positions = mechanism, template, Positions(mechanism)

    def elements(self, space: str, array: int, axis: Axis, core: tuple[int, ...]) -> list[tuple[int, Place]]:
        """For each element of an array in the trace: its link class, and where links of this class store theirs."""
        width = int(np.prod(core, dtype=int))
        elements: list[tuple[int, Place]] = []
        offset = 0
        for quantity in axis:
            base = self.positions.number((quantity, width))
            sizes = np.diff(starts_of_links(self.template, quantity)) * width
            for k, size in enumerate(sizes.tolist()):
                elements += [(k, Place(space, array, base, offset + c)) for c in range(size)]
            offset += getattr(self.mechanism, quantity) * width
        return elements if axis else [(EVERY, Place(space, array, None, c)) for c in range(width)]

    def column_element(self, dof: int, matrix: int | None) -> Place:
        """A link's degree of freedom in a column of a matrix, or of the identity matrix."""
        n, start = self.mechanism.nv, self.positions.number(("nv", 1))
        if matrix is None:
            from_the_end = self.positions.number(FROM_THE_END, np.zeros(self.mechanism.n_links, dtype=int))
            return Place(NUMBER, 0, start, dof, from_the_end)
        return Place(OUTPUT, 0, self.positions.number(("nv", n)), matrix * n * n + dof * n, start)

    def entries(
        self, array: int, matrix: RolledMatrixOfDofs, width: int, offset: int, builder: Builder
    ) -> Iterator[Result]:
        """The entries of a matrix that begins at ``offset`` in an array with rows of ``width`` elements."""
        start, row, diagonal = (self.positions.number(("nv", size)) for size in (1, width, width + 1))
        for (outer, inner), value in matrix.entries.items():
            if ANY not in (outer, inner):
                place = Place(OUTPUT, array, diagonal, offset + outer[1] * width + inner[1])
            elif outer == ANY:
                place = Place(OUTPUT, array, start, offset + inner[1], row)
            else:
                place = Place(OUTPUT, array, row, offset + outer[1] * width, start)
            yield Result((inner if outer == ANY else outer)[0], place, _node(value, builder), matrix.by_column)


def _packed(
    packing: Packing, matrices: Sequence[RolledMatrixOfDofs], positions: Positions, builder: Builder
) -> Iterator[Result]:
    """The entries of packed matrices in cells."""
    ancestors, at_one_joint, of_pairs = packing.numbers(positions)
    for number, matrix in enumerate(matrices):
        sizes = Counter(outer[0] for outer, inner in matrix.entries if outer == inner)
        for (outer, inner), value in matrix.entries.items():
            if ANY not in (outer, inner):
                offset = packing.start(number) + outer[1] * sizes[outer[0]] + inner[1]
                place = Place(CELL, 0, at_one_joint, offset)
            elif outer == ANY:
                place = Place(CELL, 0, ancestors, packing.rows(number) + inner[1], of_pairs)
            elif not packing.symmetric[number]:
                place = Place(CELL, 0, ancestors, packing.columns(number) + outer[1], of_pairs)
            else:
                continue
            yield Result((inner if outer == ANY else outer)[0], place, _node(value, builder))


def _is_symmetric(matrix: RolledMatrixOfDofs, builder: Builder) -> bool:
    return all(
        _node(matrix.entries[inner, outer], builder) is _node(value, builder)
        for (outer, inner), value in matrix.entries.items()
    )


def _matrices(algorithm: Algorithm, computed: tuple[Computation, ...] | None) -> tuple[int, ...] | None:
    """The leading shape before (nv, nv), if the result consists of matrices over the joints."""
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


def _is_in_blocks(name: str) -> bool:
    """Whether an array consists of matrices over the joints, such as derivatives of a state by a state."""
    shape = _shape_in_axes(name) if name in SHAPES else ()
    return len(shape) == 2 and all(isinstance(size, Axis) and {*size} == {"nv"} for size in shape)


def list_examples(tree: Tree) -> Tree:
    """A tree with one link of each class, for display."""
    link_classes = classify_links(tree.links)
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
    """The named frames in the expressions."""
    names = {
        space.link
        for frame in computed or ()
        for part in frame.form.walk()
        for space in (part.domain, part.codomain)
        if space is not None and space.link
    }
    return [mechanism.frame(name) for name in sorted(names)]


def _template(mechanism: Mechanism, link_classes: Sequence[LinkClass], named: Sequence[Frame] = ()) -> Mechanism:
    """A mechanism with a chain of one body per class: it only provides sizes and places of arrays, and the frames named
    in the expressions."""
    bodies = [
        dataclasses.replace(mechanism.bodies[link_class.links[0]], parent=k - 1)
        for k, link_class in enumerate(link_classes)
    ]
    names = [GROUND, *(body.link for body in bodies)]
    frames = {name: Frame(name, k - 1, np.eye(3), np.zeros(3)) for k, name in enumerate(names)}
    class_of = {i: k for k, link_class in enumerate(link_classes) for i in link_class.links}
    frames |= {frame.name: dataclasses.replace(frame, body=class_of.get(frame.body, -1)) for frame in named}
    return Mechanism(mechanism.name, tuple(bodies), frames, mechanism.gravity)


def _division(name: str, algorithm: Algorithm, computed: tuple[Computation, ...] | None = None) -> Division:
    """How an array of an algorithm is divided among the links."""
    if isinstance(space := algorithm.sizes.get(name), Space):
        return _space_shape(space)
    if name in algorithm.sizes or name not in SHAPES:
        if computed is not None and len(computed) == 1 and name not in algorithm.sizes:
            expression = computed[0].expression
            if expression.is_vector and expression.codomain is not None:
                return _space_shape(expression.codomain)
        raise NotRolled(f"nothing says how {name} is divided among the links")
    first, *rest = _shape_in_axes(name) or (Axis(),)
    if isinstance(first, int) and rest == [_Counted.nv]:
        return first * _Counted.nv, ()  # row by row
    if not isinstance(first, Axis) or len({*first}) < len(first) or any(isinstance(size, Axis) for size in rest):
        raise NotRolled(f"{name} is not divided among the links")
    return first, tuple(rest)


def _shape_in_axes(name: str) -> tuple[Any, ...]:
    """The shape of an array, with an Axis for each axis that counts numbers of the links."""
    try:
        return SHAPES[name](_Counted)  # type: ignore[arg-type]
    except (AttributeError, TypeError):
        raise NotRolled(f"{name} is not divided among the links") from None


def _space_shape(space: Space) -> Division:
    if space in (JOINT, COORDINATE):
        return _Counted.nv, ()
    if space in (FORCE, MOTION):
        return _Counted.n_links, (6,)
    raise NotRolled(f"a vector of {space} is not divided among the links")


def _shape(division: Division, mechanism: Mechanism) -> tuple[int, ...]:
    axis, core = division
    return (*((sum(getattr(mechanism, quantity) for quantity in axis),) if axis else ()), *core)


def _shaped(array: Array, mechanism: Mechanism) -> Array:
    """The array with the axes declared in the catalogue."""
    shape = SHAPES[array.name](mechanism) if array.name in SHAPES else array.shape
    return Array(array.name, shape) if np.prod(shape) == array.size else array
