"""Kernels: compiled programs as functions of arrays, with everything about them open to inspection."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..display import Text, mimebundle
from ..mechanism import Mechanism
from .ir import printer
from .ir.program import Array, Program
from .passes.unroll import unroll
from .runtime.arrays import UnreadableArrayError, plain

if TYPE_CHECKING:
    from .formulas import Formulas

STATE = ("q", "v")  # inputs that ``check_state`` looks at
PLAN_WIDTH = 112  # of the text of a plan, in columns


def _call(*arrays: Any, out: Any = None) -> NDArray[np.float64]: ...  # type: ignore[empty-body]


_SIGNATURE = inspect.signature(_call)  # of calls of kernels


def _made_again(function: Callable[..., Kernel], arguments: tuple[Any, ...], options: dict[str, Any]) -> Kernel:
    """A kernel that was pickled: its recipe carried out, with machine code from the cache."""
    return function(*arguments, **options)


class KernelError(ValueError):
    """Arrays that do not fit a kernel; the message names the array and what was expected."""


class Kernel:
    """``kernel(*arrays, out=None)``: batches broadcast like a NumPy generalized ufunc.

    Each input has shape ``batch + core``; the result has shape ``batch + core`` of the output.  Not a number in, not a
    number out: where an element of an input is NaN, numbers of every result are, also if these do not depend on it.
    Code that is exported as C or CUDA, and runs on GPUs, leaves out inputs that results do not depend on.

    name, dtype, target   what was compiled, its precision and where it runs
    sweeps                ((direction, name), ...) in the order in which they run
    function              what a call runs, without the object around it
    configurations        inputs that are configurations, each with the mechanism whose it is
    traced                the program before anything is fused or ordered: what other programs are derived from
    """

    # Python calls what it finds in this place: the native function itself, without a method in between, which would
    # take as long as the mass matrix of a small arm.
    __slots__ = ("__call__", "__dict__", "__weakref__")
    if TYPE_CHECKING:

        def __call__(self, *arrays: Any, out: Any = None) -> NDArray[np.float64]: ...

    def __init__(
        self,
        program: Program,
        dtype: str,
        target: str,
        sweeps: Sequence[tuple[str, str]],
        function: Callable[..., Any],
        optimized: Callable[[Program], Program],
        after_each_pass: Callable[[Program], Iterable[tuple[str, Program]]],
        emit: Callable[[Program, str, str], str],
        configurations: Mapping[str, Mechanism] | None = None,
        explain: Callable[[dict[str, int]], str] | None = None,
        origin: str = "",
    ):
        self.name = self.__name__ = program.name  # the latter is what Dask and others call a function
        self.dtype = np.dtype(dtype)
        self.target = target
        self.sweeps = tuple(sweeps)
        self.configurations = dict(configurations or {})
        self._explain = explain  # the plan from operations per sweep, where the expression is known
        self._origin = origin  # where it is not: why it is a recursion, or what it is derived from
        self.traced = program
        self._optimized: Program | None = None
        self._optimize, self._after_each_pass = optimized, after_each_pass
        self._emit = emit
        self.function = function  # what is called, without the object around it
        object.__setattr__(self, "__call__", function)  # a plain assignment is one to a method, for type checkers
        self.__signature__ = _SIGNATURE
        self._recipe: tuple[Callable[..., Kernel], tuple[Any, ...], dict[str, Any]] | None = None

    def __copy__(self) -> Kernel:
        return self  # nothing about a kernel changes

    def __deepcopy__(self, memo: Any) -> Kernel:
        return self

    def made_by(self, function: Callable[..., Kernel], *arguments: Any, **options: Any) -> Kernel:
        """The kernel itself, which now knows what makes it once more: how it is pickled."""
        self._recipe = function, arguments, options
        return self

    def __reduce__(self) -> Any:
        if self._recipe is None:
            raise TypeError(f"{self!r} cannot be pickled: pickle the mechanism and compile where that is loaded")
        return _made_again, self._recipe

    # -- inspection -----------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the arrays, in the order in which they are given."""
        return tuple(array.name for array in self.traced.inputs)

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """Core shape of each input."""
        return {array.name: array.shape for array in self.traced.inputs}

    @property
    def output_shapes(self) -> dict[str, tuple[int, ...]]:
        """Core shape of each output."""
        return {array.name: array.shape for array in self.traced.outputs}

    @property
    def sparsity(self) -> Any:
        """Boolean, in the shape of the result: False where that is zero whatever the inputs are; a tuple if there are
        several results."""
        patterns = self.traced.sparsity
        return patterns[0] if len(patterns) == 1 else patterns

    @property
    def straight_line(self) -> Program:
        """The traced program without loops, link after link."""
        return unroll(self.traced)

    @property
    def program(self) -> Program:
        """The program as it is emitted: simplified, fused and ordered."""
        if self._optimized is None:
            self._optimized = self._optimize(self.traced)
        return self._optimized

    @property
    def op_counts(self) -> dict[str, int]:
        """Scalar operations for one state by class: add, mul, div, sqrt, sincos, ... (a fused one counts as two)."""
        return self.program.op_counts

    def ir(self, stage: str = "optimized") -> str:
        """The program as text, "traced" or "optimized"."""
        if stage not in ("traced", "optimized"):
            raise ValueError(f"stage must be 'traced' or 'optimized', got {stage!r}")
        return printer.text(self.traced if stage == "traced" else self.program)

    def passes(self) -> str:
        """The program as text after tracing and after every pass of the compiler."""
        stages = [("trace", self.traced), *self._after_each_pass(self.traced)]
        return Text("\n".join(f"== {name}\n{printer.text(program)}" for name, program in stages))

    def source(self, language: str = "llvm") -> str:
        """Generated source in one of ``linkwise.codegen.LANGUAGES``: "llvm", "c", "cuda" or "numpy"."""
        return self._emit(self.program, language, self.dtype.name)

    def formulas(self) -> Formulas:
        """Closed formulas of the results in symbols for the elements of the inputs, the mechanism's numbers being
        numbers; for small mechanisms.  ``linkwise.codegen.symbolic`` has symbols for those, too."""
        from .formulas import expanded  # here, as few ask for them
        from .formulas.formulas import formulas_of

        program = self.straight_line
        shapes = self.input_shapes
        return formulas_of(
            self.name,
            [(array.name, array.shape) for array in program.inputs],
            [(array.name, array.shape) for array in program.outputs],
            lambda algebra, given: expanded(program, algebra, given),
            holonomic=shapes.get("q") == shapes.get("v", shapes.get("q")),
        )

    def plan(self) -> str:
        """How the result is computed, with the operations that each part costs: the levels from expression to
        coordinate transforms; of recursions written by hand why they are, and their sweeps and other sections."""
        sections = self._sections()
        counts = {label: sum(links.values()) for label, links in sections.items()}
        lines = [f"{self.name}: {', '.join(self.inputs)} -> {', '.join(self.output_shapes)}"]
        if self._origin:
            lines += textwrap.wrap(self._origin, PLAN_WIDTH, initial_indent="  ", subsequent_indent="      ")
        labels = [f"{name}, {direction.replace('_', ' ')}" for direction, name in self.sweeps]
        if self._explain is not None:
            lines.append(self._explain(counts))
        else:
            for label in dict.fromkeys([*labels, *filter(None, sections)]):  # sweeps of one name share their operations
                numbers = [str(number) for number, other in enumerate(labels, 1) if other == label]
                which = f"sweeps {', '.join(numbers)} together: " if len(numbers) > 1 else ""
                which = f"sweep {numbers[0]}: " if len(numbers) == 1 else which
                lines += _section(which + label, counts.get(label, 0), sections.get(label, {}))
        lines += _loops(self.program)
        lines.append(f"outside the sweeps: {counts.get('', 0)} operations; in all " + self._counted())
        return Text("\n".join(lines))

    def _sections(self) -> dict[str, dict[str, int]]:
        """Operations by section of the recursions, and in it by link, in the order in which they run."""
        sections: dict[str, dict[str, int]] = {}
        for section, node, times in self.program.nodes_by_section:
            if node.op.counts:
                label, _, link = section.rpartition(": ")
                own = sections.setdefault(label, {})
                own[link] = own.get(link, 0) + len(node.op.counts) * times
        return sections

    def _counted(self) -> str:
        return ", ".join(f"{kind} {n}" for kind, n in self.op_counts.items()) or "nothing to compute"

    def __repr__(self) -> str:
        def signature(arrays: Sequence[Array]) -> str:
            return ", ".join(f"{a.name}{list(a.shape)}" for a in arrays)

        program = self.traced
        return (
            f"<Kernel {self.name}: {signature(program.inputs)} -> {signature(program.outputs)}, "
            f"{self.dtype}, target {self.target!r}>"
        )

    _repr_mimebundle_ = mimebundle


def _loops(program: Program) -> list[str]:
    """The loops of a program that has any."""
    if not program.loops:
        return []
    title = "Loops, and code between them" if program.constants_in_code else "Loops over the links"
    between = "them" if program.constants_in_code else "links and sweeps"
    lines = [f"{title} ({program.cells} numbers kept between {between})"]
    for loop in program.loops:
        runs = [f"{times} of {sum(body.program.op_counts.values())} operations" for body, times in loop.all_bodies]
        count = len(loop.bodies)
        bodies = ", ".join(runs[:count])
        if loop.inner is not None:
            bodies += "; inside, inwards from link to link: " + ", ".join(runs[count:])
        lines += textwrap.wrap(f"{loop.label}: {bodies}", PLAN_WIDTH, initial_indent="  ", subsequent_indent="      ")
    return lines


def _section(title: str, count: int, of_links: Mapping[str, int]) -> list[str]:
    """One section of a plan: its operations, and where in it they are."""
    where = ", ".join(f"{link}\N{NO-BREAK SPACE}{n}" for link, n in of_links.items())
    rows = textwrap.wrap(where, PLAN_WIDTH, initial_indent="      ", subsequent_indent="      ")
    return [f"  {title} ({count} operations)", *(row.replace("\N{NO-BREAK SPACE}", " ") for row in rows)]


def explaining(function: Callable[..., Any], program: Program, dtype: str) -> Callable[..., Any]:
    """``function(*arrays, out=None)``, whose complaints about arrays name the array and what was expected."""

    count, masked = len(program.inputs), np.ma.MaskedArray

    def call(*arrays: Any, out: Any = None) -> Any:
        try:
            if len(arrays) != count:  # NumPy would take an array too many for the output and write to it
                raise TypeError
            for array in arrays:
                if type(array) is masked:  # NumPy would compute with what is masked
                    raise TypeError
            return function(*arrays) if out is None else function(*arrays, out=out)
        except (TypeError, ValueError) as error:
            raise _explanation(program, np.dtype(dtype), arrays, out, error) from None

    call.__name__ = call.__qualname__ = program.name  # what Python says of unknown keywords
    return call


def _explanation(program: Program, dtype: np.dtype, arrays: Sequence[Any], out: Any, error: Exception) -> Exception:
    """What is wrong with the arrays, in the user's terms; the original error if nothing is found."""
    name, expected = program.name, program.inputs
    if len(arrays) != len(expected):
        names = ", ".join(f"{a.name} {a.shape}" for a in expected)
        return KernelError(f"{name} takes {len(expected)} arrays ({names}), {len(arrays)} were given")
    if isinstance(error, UnreadableArrayError):
        return KernelError(f"{name}: {expected[error.place].name} {error}")
    batches = []
    for array, given in zip(expected, arrays, strict=True):
        core = ", ".join(map(str, array.shape))
        if given is None:
            return KernelError(f"{name}: {array.name} is missing: it is None, and must be (..., {core})")
        if isinstance(given, Mapping):
            maker = {"wrenches": "wrenches_at(mech, wrenches, q)"}.get(array.name, f"configuration(mech, {array.name})")
            advice = f": lw.{maker} makes one" * (array.name in ("q", "q0", "q1", "wrenches"))
            return KernelError(f"{name}: {array.name} is a dictionary, but an array (..., {core}) is needed{advice}")
        try:
            values = _outline(given)
        except UnreadableArrayError as unread:
            return KernelError(f"{name}: {array.name} {unread}")
        except ValueError as ragged:
            return KernelError(f"{name}: {array.name} is no array: {ragged}")
        if not np.can_cast(values.dtype, dtype, casting="safe" if dtype.itemsize == 8 else "same_kind"):
            return KernelError(
                f"{name}: {array.name} has dtype {values.dtype}, but real numbers that {dtype} can hold are needed"
            )
        if dtype == np.float32 and not np.can_cast(values.dtype, dtype, casting="safe"):
            return KernelError(
                f"{name} is compiled for float32, but {array.name} has dtype {values.dtype}: "
                "convert it with np.asarray(x, np.float32), or compile with dtype='float64'"
            )
        lead = values.ndim - len(array.shape)
        if lead < 0 or values.shape[lead:] != array.shape:
            advice = "; linkwise.motion.check_state(mech, q, v) says what it may be" if array.name in STATE else ""
            return KernelError(f"{name}: {array.name} has shape {values.shape}, expected (..., {core}){advice}")
        batches.append(values.shape[:lead])
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        listed = ", ".join(f"{a.name} {b}" for a, b in zip(expected, batches, strict=True))
        return KernelError(f"{name}: the batch shapes do not broadcast: {listed}")
    given_outputs = out if isinstance(out, tuple) else () if out is None else (out,)
    for array, given in zip(program.outputs, given_outputs, strict=False):
        fault = _output_fault(given, batch + array.shape, dtype)
        if fault:
            return KernelError(
                f"{name}: out {fault}; a writable array of shape {batch + array.shape} and dtype {dtype} is needed"
            )
    return error


def _outline(given: Any) -> np.ndarray:
    """An array with the shape and dtype of ``given``: itself, or a stand-in for one on a GPU, which stays there."""
    device = getattr(given, "__cuda_array_interface__", None)
    if device is None:
        return np.asarray(plain(given))
    return np.broadcast_to(np.empty((), device["typestr"]), device["shape"])


def _output_fault(given: Any, shape: tuple[int, ...], dtype: np.dtype) -> str | None:
    """What keeps a result from being written to ``given``."""
    on_device = hasattr(given, "__cuda_array_interface__")
    if not isinstance(given, np.ndarray) and not on_device:
        return f"is no array but a {type(given).__name__}"
    if not on_device and not given.flags.writeable:
        return "is read-only"
    given = _outline(given)
    if given.shape != shape:
        return f"has shape {given.shape}"
    return None if np.can_cast(dtype, given.dtype, casting="same_kind") else f"has dtype {given.dtype}"
