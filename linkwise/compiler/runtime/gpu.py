"""Kernels on the GPU: CUDA C compiled by CuPy, called with arrays of shape ``batch + core`` in place.

CuPy is imported when a kernel is loaded; everything else in linkwise works without it.  The memory layout of a call's
arrays selects the code (``Layout``), which is compiled at the first such call.  Data derived from shapes and strides
alone is kept as a ``_Launch`` and reused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..ir.program import Array, Program
from ..passes import optimize
from ..targets import cuda_c, cuda_transposition
from ..targets.cuda_layout import Layout, choose_layout
from ..targets.protocol import Options
from .arrays import NoDeviceError
from .device_arrays import seen_by_cupy, writable
from .explanations import explaining
from .gufunc import delivered
from .planned_launches import Place, Plan, PlannedLaunch
from .transposed_results import Transposed

LONG = 20_000  # operations above which a single layout with general strides is compiled, as compiling takes long
#: Bytes of local memory per thread above which shared memory is faster, and the maximum share that may remain local.
#: On an H200 five kernels with 232 to 3,872 bytes became 1.1 to 2.9 times as fast; two with 160 and 176 bytes fell to a
#: third, because rows no longer fit.
FAR_BYTES, FEWER = 200, 0.55
COMPARED = 8_192  # operations up to which both are compiled and compared; beyond, shared memory is faster
#: Shared memory per warp, in bytes, for spilled values and tiles beside them: six warps then run at a time.  On an H200
#: that made three kernels of four up to three quarters faster, and none slower; more tiles made some slower.
BESIDE = 37 * 1024
KEPT = 256  # maximum of kept launches


def load(program: Program, options: Options) -> GpuKernel:
    """Compile ``program`` for the current GPU."""
    return GpuKernel(program, options, cupy_with_device())


def load_function(program: Program, dtype: str) -> Callable[..., Any]:
    """A function of arrays from a program before optimization; for a program over time, one that writes to ``out``."""
    function = load(optimize(program), Options(dtype))
    return function if program.carried else explaining(function, program.signature, dtype)


@dataclass(frozen=True)
class _Launch:
    """Launch data derived from shapes and strides.

    kernel    the compiled function
    shared    requested bytes of shared memory
    head      sizes, before the addresses of the arrays
    tail      strides, after them
    results   shapes of the outputs
    transposed    outputs written element by element and then transposed to rows; None if there are none
    """

    kernel: Any
    grid: tuple[int]
    block: tuple[int]
    shared: int
    head: tuple[Any, ...]
    tail: tuple[Any, ...]
    results: tuple[tuple[int, ...], ...]
    transposed: Transposed | None = None


@dataclass(frozen=True)
class _Code:
    """A compiled kernel: threads per block, requested bytes of shared memory, and its layout."""

    function: Any
    threads: int
    shared: int
    layout: Layout


@dataclass(frozen=True)
class _Known:
    """A launch kept for similar arrays, and their extents in memory."""

    launch: _Launch
    reaches: tuple[tuple[int, int], ...]


class GpuKernel:
    """``kernel(*arrays, out=None)``: inputs of shape ``batch + core``, broadcast over their batch shapes.

    If at least one input is on the device, the results are arrays of the same library and nothing leaves the device;
    for NumPy arrays, they are NumPy arrays.  A single output is returned bare, several as a tuple.  Arrays in ``out``
    may be of any library, independent of the inputs; device arrays of the kernel's precision are written directly.
    Work is on the current stream of the library, on the current device.

    Code is compiled for each layout of the arrays, launches are kept by shapes and strides.
    """

    def __init__(self, program: Program, options: Options, cupy: Any):
        program = cuda_c.ordered(program, options)
        self.inputs, self.outputs = program.inputs, program.outputs
        self.dtype = np.dtype(options.dtype)
        self._program, self._options, self._cupy = program, options, cupy
        self._codes: dict[tuple[Layout, bool], _Code] = {}
        self._near: bool | None = None  # whether spilled values go to shared memory; unknown before the first call
        self._launches: dict[Any, _Launch] = {}
        self._known: dict[Any, _Known] = {}

    def launch(self, values: Sequence[Any], results: Sequence[Any] | None) -> _Launch:
        """The launch for inputs, and optional outputs, of these shapes and strides."""
        arrays = (*values, *(results or ()))
        key = (tuple([(x.shape, x.strides) for x in arrays]), results is None)
        try:
            return self._launches[key]
        except KeyError:
            pass
        if len(self._launches) >= KEPT:
            self._launches.clear()
        made = self._launches[key] = self._new_launch(values, results)
        return made

    def plan(self, values: Sequence[Any], results: Sequence[Any]) -> Plan:
        """Launch plan of a call for arrays of these shapes and strides."""
        launch = self.launch(values, results)
        if launch.transposed:
            return launch.transposed.plan(launch)
        (blocks,), (threads,), places = launch.grid, launch.block, map(Place, range(len(values) + len(results)))
        arguments = (*launch.head, *places, *launch.tail)
        return Plan((PlannedLaunch(launch.kernel, blocks, threads, launch.shared, arguments),))

    def handles(self, plan: Plan, device: int) -> dict[Any, int]:
        """Driver handles of the plan's functions on a device, where this loads them."""
        loaded = {}
        with self._cupy.cuda.Device(device):
            for launch in plan.launches:
                if launch.function not in loaded:
                    _permit(launch.function, launch.shared)
                    loaded[launch.function] = launch.function.kernel.ptr
        return loaded

    def carry_out(self, plan: Plan, starts: Sequence[int], stream: int) -> None:
        """Launch a plan on a stream of the current device, given by its address, on arrays at these addresses."""
        streams = self._cupy.cuda
        with streams.ExternalStream(stream) if stream else streams.Stream.null:
            plan.carry_out(starts)

    def run(self, launch: _Launch, arrays: Sequence[Any]) -> None:
        if launch.transposed and launch.grid[0]:
            launch.transposed.run(self._cupy, launch, arrays)
        elif launch.grid[0]:
            launch.kernel(launch.grid, launch.block, (*launch.head, *arrays, *launch.tail), shared_mem=launch.shared)

    def _new_launch(self, values: Sequence[Any], results: Sequence[Any] | None) -> _Launch:
        batch, lengths, shapes = self.sizes(values)
        strides = [self._strides(x.shape, x.strides, a, batch) for x, a in zip(values, self.inputs, strict=True)]
        places = [(x.shape, x.strides) for x in results] if results is not None else [(s, None) for s in shapes]
        strides += [self._strides(s, t, a, batch) for (s, t), a in zip(places, self.outputs, strict=True)]
        sizes, strides = _merged(batch, strides)
        code = self._code(len(sizes), self._have_rows(strides), self._are_equidistant(strides))
        states = math.prod(batch)
        transposed = self._transposed(code.layout, sizes, strides)
        if transposed:
            strides = transposed.kernel_strides(strides)
        tail = []
        arrays = zip(strides, (*self.inputs, *self.outputs), code.layout.rows, code.layout.even, strict=True)
        for (steps, axes, core), array, rows, even in arrays:
            core_steps = [_distance(core, array.shape)] if even and core else core
            tail += [*steps, *axes, *(() if rows else core_steps)]
        head = (states, *lengths, *sizes[1:])
        grid, block = (-(-states // code.threads),), (code.threads,)
        return _Launch(code.function, grid, block, code.shared, _int64(head), _int64(tail), shapes, transposed)

    def sizes(self, values: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...]]:
        """The shape of the batch, the lengths of the axes of time, and the shapes of the outputs."""
        lengths = self._program.times([x.shape for x in values])
        batch = np.broadcast_shapes(*(_batch(x, a) for x, a in zip(values, self.inputs, strict=True)))
        return batch, lengths, tuple((*batch, *lengths[: len(a.axes)], *a.shape) for a in self.outputs)

    def _strides(
        self, shape: Sequence[int], strides: Sequence[int] | None, array: Array, batch: tuple[int, ...]
    ) -> Any:
        """Strides in elements: batch axes, axes of time, and core axes."""
        size = self.dtype.itemsize
        if strides is None:
            steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        else:
            steps = [x // size for x in strides]
        steps = [0 if length == 1 else step for length, step in zip(shape, steps, strict=True)]
        core_axes, axes = len(array.shape), len(array.axes)
        lead = len(shape) - core_axes - axes
        missing = [0] * (len(batch) - lead)
        return missing + steps[:lead], steps[lead : lead + axes], steps[lead + axes :]

    def _have_rows(self, strides: Any) -> tuple[bool, ...]:
        """For each array, whether elements of a state are contiguous and states adjacent."""
        arrays = (*self.inputs, *self.outputs)
        return tuple(
            steps[0] != 0 and _side_by_side(core, array.shape)
            for (steps, _, core), array in zip(strides, arrays, strict=True)
        )

    def _are_equidistant(self, strides: Any) -> tuple[bool, ...]:
        """For each array, whether the elements of a state, in C order, are equidistant."""
        arrays = (*self.inputs, *self.outputs)
        distances = (_distance(core, array.shape) for (_, _, core), array in zip(strides, arrays, strict=True))
        return tuple(distance is not None for distance in distances)

    def _code(self, batch: int, in_rows: tuple[bool, ...], even: tuple[bool, ...]) -> _Code:
        """The code for this layout. Long code is compiled once, for arrays with or without rows."""
        direct = self._layout(batch, (False,) * len(in_rows), even)
        if self._near is None:
            self._near = self._is_faster_with_near_values(direct)
        if self._is_long:
            return self._loaded(direct, self._near)
        room = max(BESIDE - self._bytes_beside_tiles, 0) if self._near else None
        return self._loaded(self._layout(batch, in_rows, even, room), self._near)

    def _is_faster_with_near_values(self, layout: Layout) -> bool:
        """Whether spilled values should go to shared memory rather than local memory, by the bytes that the compiler
        reports as local."""
        if not cuda_c.has_values_that_wait(self._program, self._options):
            return False
        if self._program.size > COMPARED:
            return True
        left = self._loaded(layout, near=False).function.local_size_bytes
        return left >= FAR_BYTES and self._loaded(layout, near=True).function.local_size_bytes < FEWER * left

    @cached_property
    def _bytes_beside_tiles(self) -> int:
        none = (False,) * (len(self.inputs) + len(self.outputs))
        layout = self._layout(1, none, none)
        return cuda_c.bytes_beside_tiles(self._program, self._options, layout)

    @property
    def _is_long(self) -> bool:
        return self._program.size > LONG

    def _layout(self, batch: int, in_rows: tuple[bool, ...], even: tuple[bool, ...], room: int | None = None) -> Layout:
        sharing = room is not None and not (self._program.carried or self._program.loops)
        return choose_layout(self._program, self._options, batch, in_rows, even, room, sharing)

    def _loaded(self, layout: Layout, near: bool) -> _Code:
        key = layout, near
        if key not in self._codes:
            text, threads, shared = cuda_c.emitted(self._program, self._options, layout, near)
            function = self._cupy.RawModule(code=text).get_function(cuda_c.function_name(self._program))
            _permit(function, shared)
            self._codes[key] = _Code(function, threads, shared, layout)
        return self._codes[key]

    @cached_property
    def _transposition(self) -> Any:
        source = cuda_transposition.emit(self._options)
        return self._cupy.RawModule(code=source).get_function(cuda_transposition.NAME)

    def _transposed(self, layout: Layout, sizes: Sequence[int], strides: Any) -> Transposed | None:
        """Outputs with rows too long for a tile, to be transposed afterwards."""
        rows, count = self._have_rows(strides), len(self.inputs)
        which = tuple(
            rows[count + k] and not layout.rows[count + k] and cuda_transposition.pays(array, self.dtype.itemsize)
            for k, array in enumerate(self.outputs)
        )
        if self._program.carried or len(sizes) > 1 or not any(which):
            return None
        steps = tuple(batch_strides[0] for batch_strides, _, _ in strides)
        return Transposed(self._transposition, self.dtype, sizes[0], self.outputs, which, steps)

    def converted(self, values: Any, name: str) -> Any:
        """An array in the kernel's precision; raises if conversion loses more than digits."""
        if values.dtype != self.dtype:
            if not np.can_cast(values.dtype, self.dtype, casting="same_kind"):
                raise TypeError(f"input {name} has dtype {values.dtype}, which is no {self.dtype}")
            return values.astype(self.dtype)
        if any(stride % self.dtype.itemsize for stride in values.strides):
            return self._cupy.ascontiguousarray(values)
        return values

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        cupy = self._cupy
        operands = arrays if out is None else (*arrays, *out) if type(out) is tuple else (*arrays, out)
        known = self._known.get(_key(operands, cupy.ndarray, out is None))
        if known is not None and not (out is not None and self._overlapping(operands, known)):
            return self._relaunch(known.launch, operands, out)
        if len(arrays) != len(self.inputs):
            names = ", ".join(array.name for array in self.inputs)
            raise TypeError(f"the kernel takes {len(self.inputs)} arrays ({names}), {len(arrays)} were given")
        values, library = seen_by_cupy(cupy, arrays)
        with library.stream():
            values = [self.converted(x, a.name) for x, a in zip(values, self.inputs, strict=True)]
            if out is None:
                launch = self.launch(values, None)
                self._remember(arrays, values, launch)
                results = [cupy.empty(shape, self.dtype) for shape in launch.results]
                self.run(launch, (*values, *results))
                converted = [library.deliver(x) for x in results]
                return converted[0] if len(converted) == 1 else tuple(converted)
            return self._written(values, library, out)

    def _relaunch(self, launch: _Launch, operands: tuple[Any, ...], out: Any) -> Any:
        """Repeat a kept launch for CuPy arrays that need no conversion."""
        if out is not None:
            self.run(launch, operands)
            return out
        results = [self._cupy.empty(shape, self.dtype) for shape in launch.results]
        self.run(launch, (*operands, *results))
        return results[0] if len(results) == 1 else tuple(results)

    def _remember(self, arguments: Sequence[Any], taken: Sequence[Any], launch: _Launch, out: Any = None) -> None:
        """Keep a launch for similar calls, if its arrays needed no conversion."""
        key = _key(tuple(arguments), self._cupy.ndarray, out is None)
        if key is not None and all(x is y for x, y in zip(arguments, taken, strict=False)):
            if len(self._known) >= KEPT:
                self._known.clear()
            reaches = tuple(_reach(x) for x in arguments) if out is not None else ()
            self._known[key] = _Known(launch, reaches)

    def _overlapping(self, arrays: tuple[Any, ...], known: _Known) -> bool:
        """Whether a result array shares memory with an input."""
        extents = [(x.data.ptr + low, x.data.ptr + high) for x, (low, high) in zip(arrays, known.reaches, strict=True)]
        count = len(self.inputs)
        return any(low < end and start < high for low, high in extents[:count] for start, end in extents[count:])

    def _written(self, values: list[Any], library: Any, out: Any) -> Any:
        """Run the call with given result arrays: directly for suitable device arrays, otherwise by a copy."""
        cupy = self._cupy
        outputs = out if isinstance(out, tuple) else (out,)
        _, _, shapes = self.sizes(values)
        views = [self._writable_view(x, shape) for x, shape in zip(outputs, shapes, strict=False)]
        views += [None] * (len(shapes) - len(views))
        results = [
            cupy.empty(shape, self.dtype) if view is None else view for view, shape in zip(views, shapes, strict=True)
        ]
        taken = [view for view in views if view is not None]
        values = [x.copy() if any(_overlap(x, view) for view in taken) else x for x in values]
        launch = self.launch(values, results)
        self.run(launch, (*values, *results))
        self._remember((*values, *outputs), (*values, *results), launch, out)
        wanted = [*outputs, *[None] * len(shapes)]
        answers = [
            x if view is not None else library.deliver(result) if x is None else result
            for x, view, result in zip(wanted, views, results, strict=False)
        ]
        return delivered(answers, out, self._copyto)

    def _copyto(self, array: Any, values: Any, casting: Any) -> None:
        """``numpy.copyto`` between arrays of the CPU and the device; skips arrays that are in place already."""
        if values is array:
            return
        target = writable(self._cupy, array)
        if target is not None:
            self._cupy.copyto(target, self._cupy.asarray(values), casting=casting)
        else:
            np.copyto(array, self._cupy.asnumpy(values), casting=casting)

    def _writable_view(self, x: Any, shape: tuple[int, ...]) -> Any:
        """A CuPy view if the kernel can write to it directly, else None. Elements must be distinct and at a multiple of
        the item size."""
        view = writable(self._cupy, x)
        if view is None or view.shape != shape or view.dtype != self.dtype:
            return None
        steps = zip(view.shape, view.strides, strict=True)
        return view if all((step or length < 2) and step % self.dtype.itemsize == 0 for length, step in steps) else None


def _permit(function: Any, shared: int) -> None:
    """Permit a function this much shared memory on the current device."""
    if shared:
        function.max_dynamic_shared_size_bytes = shared
        function.preferred_shared_memory_carveout = 100  # percent


def _int64(numbers: Sequence[int]) -> tuple[Any, ...]:
    return tuple(np.int64(x) for x in numbers)


def _batch(values: Any, array: Array) -> tuple[int, ...]:
    split, axes = values.ndim - len(array.shape), len(array.axes)
    if split < axes or values.shape[split:] != array.shape:
        raise ValueError(f"input {array.name} must have trailing dimensions {array.shape}, its shape is {values.shape}")
    return values.shape[: split - axes]


def _merged(batch: tuple[int, ...], strides: Any) -> tuple[list[int], Any]:
    """The batch with the fewest axes that all arrays allow, at least one."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for k, size in enumerate(batch):
        if size == 1:
            continue
        here = [batch_strides[k] for batch_strides, _, _ in strides]
        if sizes and all(s[-1] == step * size for s, step in zip(steps, here, strict=True)):
            sizes[-1] *= size
            for s, step in zip(steps, here, strict=True):
                s[-1] = step
        else:
            sizes.append(size)
            for s, step in zip(steps, here, strict=True):
                s.append(step)
    if not sizes:
        sizes, steps = [1], [[0] for _ in strides]
    return sizes, [(s, axes, core) for s, (_, axes, core) in zip(steps, strides, strict=True)]


def _side_by_side(strides: Sequence[int], shape: tuple[int, ...]) -> bool:
    """Whether elements are contiguous in C order; strides of axes of length 1 do not matter."""
    expected = 1
    for stride, length in zip(reversed(strides), reversed(shape), strict=True):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


def _distance(strides: Sequence[int], shape: tuple[int, ...]) -> int | None:
    """The common distance of successive elements in C order, an unsigned number of 32 bits; None if there is none."""
    distance, inner = None, 1
    for stride, length in zip(reversed(strides), reversed(shape), strict=True):
        if length != 1:
            distance = stride if distance is None else distance
            if stride != distance * inner or not 0 <= stride < 1 << 32:
                return None
        inner *= length
    return distance or 0


def _overlap(a: Any, b: Any) -> bool:
    """Whether the extents of two arrays in memory overlap."""
    (low, high), (start, end) = (_extent(x) for x in (a, b))
    return low < end and start < high


def _extent(x: Any) -> tuple[int, int]:
    low, high = _reach(x)
    return x.data.ptr + low, x.data.ptr + high


def _reach(x: Any) -> tuple[int, int]:
    """Byte range of an array relative to its first element."""
    steps = [(length - 1) * step for length, step in zip(x.shape, x.strides, strict=True)] if x.size else []
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0) + x.itemsize * bool(x.size)


def _key(arrays: tuple[Any, ...], kind: Any, new: bool) -> Any:
    """The key of a launch if all arrays are CuPy's, else None."""
    key: list[Any] = [new]
    for x in arrays:
        if type(x) is not kind:
            return None
        key.append((x.shape, x.strides, x.dtype.char))
    return tuple(key)


def cupy_with_device() -> Any:
    """CuPy, if installed and a GPU is visible; otherwise raises an error that names the missing part."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError("target 'cuda' needs CuPy: pip install 'linkwise[cuda]'") from error
    try:
        devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise NoDeviceError(_NO_DEVICE) from error
    if not devices:
        raise NoDeviceError(_NO_DEVICE)
    return cupy


_NO_DEVICE = "target 'cuda' needs an NVIDIA GPU with its driver; linkwise[cuda] is installed, but CuPy sees no device"
