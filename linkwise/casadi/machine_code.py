"""Kernels as functions of CasADi that call machine code, whose derivatives are kernels as well.

A function is defined by the sources of its results: the inputs of the kernel, and for each stored element of each
output its index among the kernel's results. Sources of a derivative follow from these; one class serves all orders.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

import linkwise as lw

from ..frameworks import COTANGENT, derivative_of, product_of
from .checks import check_call
from .matrices import identifier, matrix_shape, pattern, positions


@dataclass(frozen=True, eq=False)
class Input:
    """One input: ``core`` is the shape for one state, and ``taken`` the place among the kernel's inputs; None for
    results that CasADi passes to derivatives and that they do not need."""

    rows: int
    columns: int
    core: tuple[int, ...] = ()
    taken: int | None = None

    @property
    def sparsity(self) -> casadi.Sparsity:
        dense = self.taken is not None
        return casadi.Sparsity.dense(self.rows, self.columns) if dense else casadi.Sparsity(self.rows, self.columns)


@dataclass(frozen=True, eq=False)
class Output:
    """One output: column-major ``indices`` of its stored elements, ascending, and their ``sources`` in the flat
    results of all states.
    """

    rows: int
    columns: int
    indices: np.ndarray
    sources: np.ndarray

    @property
    def sparsity(self) -> casadi.Sparsity:
        return pattern(self.rows, self.columns, self.indices)


def machine_function(kernel: lw.Kernel, states: int) -> casadi.Function:
    """The kernel's result for ``states`` states at once, side by side."""
    (shape,) = kernel.output_shapes.values()
    inputs = [_input(core, states, k) for k, core in enumerate(kernel.input_shapes.values())]
    output = _output(shape, states, math.prod(shape), 0, kernel.sparsity.ravel())
    names = [identifier(x) for x in kernel.inputs], [identifier(x) for x in kernel.output_shapes]
    return _MachineCode(identifier(kernel.name), kernel, states, inputs, [output], *names, {})


def _input(core: tuple[int, ...], states: int, taken: int) -> Input:
    rows, columns = matrix_shape(core)
    return Input(rows, columns * states, core, taken)


def _output(shape: Sequence[int], states: int, size: int, start: int, present: np.ndarray) -> Output:
    """The output made of one array per state, which starts at ``start`` within the ``size`` results of that state."""
    rows, columns = matrix_shape(shape)
    indices = positions(shape)
    order = np.argsort(indices)
    order = order[present[order]]
    each = np.arange(states)[:, None]
    return Output(
        rows, columns * states, (each * rows * columns + indices[order]).ravel(), (each * size + start + order).ravel()
    )


_alive: list[casadi.Callback] = []  # CasADi's graphs do not keep them


class _MachineCode(casadi.Callback):
    def __init__(
        self,
        name: str,
        kernel: lw.Kernel,
        states: int,
        inputs: Sequence[Input],
        outputs: Sequence[Output],
        input_names: Sequence[str],
        output_names: Sequence[str],
        options: Mapping[str, Any],
    ):
        casadi.Callback.__init__(self)
        self._kernel, self._states = kernel, states
        self._inputs, self._outputs = inputs, outputs
        self._names = tuple(input_names), tuple(output_names)
        self._size = math.prod(next(iter(kernel.output_shapes.values())))  # results of one state
        self.construct(name, dict(options))
        _alive.append(self)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        check_call(self, arguments, named)
        return super().__call__(*arguments, **named)

    # -- what CasADi asks -----------------------------------------------------------------------------

    def get_n_in(self) -> int:
        return len(self._inputs)

    def get_n_out(self) -> int:
        return len(self._outputs)

    def get_name_in(self, i: int) -> str:
        return self._names[0][i]

    def get_name_out(self, i: int) -> str:
        return self._names[1][i]

    def get_sparsity_in(self, i: int) -> casadi.Sparsity:
        return self._inputs[i].sparsity

    def get_sparsity_out(self, i: int) -> casadi.Sparsity:
        return self._outputs[i].sparsity

    def has_eval_buffer(self) -> bool:
        return True

    def eval_buffer(self, buffers: Sequence[Any], results: Sequence[Any]) -> int:
        arrays = [self._array(x, buffers[k]) for k, x in enumerate(self._inputs) if x.taken is not None]
        values = np.ravel(self._kernel(*arrays))
        for output, buffer in zip(self._outputs, results, strict=True):
            if len(output.sources) and buffer is not None:
                np.frombuffer(buffer)[:] = values[output.sources]
        return 0

    def _array(self, x: Input, buffer: Any) -> np.ndarray:
        """An input as the kernel takes it, the states in front."""
        if buffer is None or not math.prod(x.core):
            return np.zeros((self._states, *x.core))
        by_column = np.frombuffer(buffer).reshape(self._states, x.columns // self._states, x.rows)
        return by_column.swapaxes(1, 2).reshape(self._states, *x.core)

    # -- derivatives ----------------------------------------------------------------------------------

    def has_jacobian(self) -> bool:
        return True

    def get_jacobian(
        self, name: str, input_names: Sequence[str], output_names: Sequence[str], options: Mapping[str, Any]
    ) -> casadi.Function:
        blocks = [self._block(output, x) for output in self._outputs for x in self._inputs]
        inputs = [*self._inputs, *self._known]
        return _MachineCode(name, self._derivative, self._states, inputs, blocks, input_names, output_names, options)

    def has_jac_sparsity(self, output: int, x: int) -> bool:
        return True

    def get_jac_sparsity(self, output: int, x: int, symmetric: bool) -> casadi.Sparsity:
        return self._block(self._outputs[output], self._inputs[x]).sparsity

    def has_reverse(self, directions: int) -> bool:
        return directions == 1 and COTANGENT not in self._kernel.inputs and len(self._outputs) == 1

    def get_reverse(
        self,
        directions: int,
        name: str,
        input_names: Sequence[str],
        output_names: Sequence[str],
        options: Mapping[str, Any],
    ) -> casadi.Function:
        product, states = product_of(self._kernel, self._kernel.inputs), self._states
        shapes = tuple(product.input_shapes.values())
        inputs = [*self._inputs, *self._known, _input(shapes[-1], states, len(shapes) - 1)]
        starts = np.cumsum([0, *map(math.prod, shapes[:-1])]).tolist()
        outputs = [
            _output(core, states, starts[-1], start, np.ones(math.prod(core), bool))
            for core, start in zip(shapes[:-1], starts[:-1], strict=True)
        ]
        return _MachineCode(name, product, states, inputs, outputs, input_names, output_names, options)

    @property
    def _derivative(self) -> lw.Kernel:
        return derivative_of(self._kernel, self._kernel.inputs)

    @property
    def _known(self) -> list[Input]:
        """The results, as further inputs of derivatives."""
        return [Input(output.rows, output.columns) for output in self._outputs]

    def _block(self, output: Output, x: Input) -> Output:
        """The derivative of an output by an input: one column for each element of the input."""
        rows, columns = output.rows * output.columns, x.rows * x.columns
        if x.taken is None:
            return Output(rows, columns, np.zeros(0, int), np.zeros(0, int))
        shapes = list(self._kernel.input_shapes.values())
        start, size, count = (
            sum(map(math.prod, shapes[: x.taken])),
            math.prod(x.core),
            sum(map(math.prod, shapes)),
        )
        state, element = np.divmod(output.sources, self._size)
        present = self._derivative.sparsity.reshape(self._size, count)[element, start : start + size]
        stored, by = np.nonzero(present)
        row = output.indices[stored]
        column = state[stored] * size + positions(x.core)[by]
        indices, sources = column * rows + row, output.sources[stored] * count + start + by
        order = np.argsort(indices)
        return Output(rows, columns, indices[order], sources[order])
