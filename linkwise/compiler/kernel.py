"""Kernels: compiled programs as functions of arrays, open to inspection."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..display import Text, mimebundle
from ..mechanism import Mechanism
from .ir.program import Array, Program

if TYPE_CHECKING:
    from .formulas import Formulas

PLAN_WIDTH = 112  # width in columns of a plan's text


def _call(*arrays: Any, out: Any = None) -> NDArray[np.float64]: ...  # type: ignore[empty-body]


_SIGNATURE = inspect.signature(_call)  # counts calls of kernels


def _made_again(function: Callable[..., Kernel], arguments: tuple[Any, ...], options: dict[str, Any]) -> Kernel:
    """Unpickle a kernel: repeat its recipe, with machine code from the cache."""
    return function(*arguments, **options)


class Kernel:
    """``kernel(*arrays, out=None)``: batches broadcast like a NumPy generalized ufunc.

    Each input has shape ``batch + core``; the result has shape ``batch + core`` of the output.  If an element of an
    input is NaN, every result of that state contains NaN, even results independent of it.  Exported C and CUDA code,
    and kernels on GPUs, ignore inputs that no result depends on.

    name, dtype, target   algorithm, precision and where it runs
    sweeps                ((direction, name), ...) in the order in which they run
    function              the native function behind a call
    configurations        configuration inputs, each with its mechanism
    traced                the program before fusing and ordering; derived programs start from it
    """

    # ``__call__`` is a slot with the native function itself: a Python method in between would take as long as the mass
    # matrix of a small arm.
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
        configurations: Mapping[str, Mechanism] | None = None,
        explain: Callable[[dict[str, int]], str] | None = None,
        origin: str = "",
    ):
        self.name = self.__name__ = program.name  # Dask and others read ``__name__`` of a function
        self.dtype = np.dtype(dtype)
        self.target = target
        self.sweeps = tuple(sweeps)
        self.configurations = dict(configurations or {})
        self._explain = explain  # computes the plan from operations per sweep, if the expression is known
        self._origin = origin  # otherwise: why the algorithm is a recursion, or what it was derived from
        self.traced = program
        self._optimized: Program | None = None
        self.function = function  # the native function of a call
        object.__setattr__(self, "__call__", function)  # a plain assignment is one to a method, for type checkers
        self.__signature__ = _SIGNATURE
        self._recipe: tuple[Callable[..., Kernel], tuple[Any, ...], dict[str, Any]] | None = None

    def __copy__(self) -> Kernel:
        return self  # kernels are immutable

    def __deepcopy__(self, memo: Any) -> Kernel:
        return self

    def made_by(self, function: Callable[..., Kernel], *arguments: Any, **options: Any) -> Kernel:
        """Attach the call that rebuilds this kernel on unpickling; returns self."""
        self._recipe = function, arguments, options
        return self

    def __reduce__(self) -> Any:
        if self._recipe is None:
            raise TypeError(f"{self!r} cannot be pickled: pickle the mechanism and compile where that is loaded")
        return _made_again, self._recipe

    # -- inspection -----------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the input arrays in order."""
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
        """Boolean array in the shape of the result, False for elements that are zero for all inputs; a tuple for
        several results."""
        patterns = self.traced.sparsity
        return patterns[0] if len(patterns) == 1 else patterns

    @property
    def straight_line(self) -> Program:
        """The traced program with all loops unrolled."""
        from .passes.unroll import unroll  # imported here and below to keep ``import linkwise`` quick

        return unroll(self.traced)

    @property
    def program(self) -> Program:
        """The program as emitted: simplified, fused and ordered."""
        if self._optimized is None:
            from . import passes

            self._optimized = passes.optimize(self.traced)
        return self._optimized

    @property
    def op_counts(self) -> dict[str, int]:
        """Scalar operations for one state by class: add, mul, div, sqrt, sincos, ... (a fused one counts as two)."""
        return self.traced.op_counts

    def ir(self, stage: str = "optimized") -> str:
        """The program as text, "traced" or "optimized"."""
        if stage not in ("traced", "optimized"):
            raise ValueError(f"stage must be 'traced' or 'optimized', got {stage!r}")
        from .ir import printer

        return printer.text(self.traced if stage == "traced" else self.program)

    def passes(self) -> str:
        """The program as text after tracing and after every pass of the compiler."""
        from . import passes
        from .ir import printer

        stages = [("trace", self.traced), *passes.run_passes(self.traced)]
        return Text("\n".join(f"== {name}\n{printer.text(program)}" for name, program in stages))

    def source(self, language: str = "llvm") -> str:
        """Generated source in one of ``linkwise.codegen.LANGUAGES``: "llvm", "c", "cuda" or "numpy"."""
        from .known_targets import emit  # imported here to keep ``import linkwise`` quick

        return emit(self.program, language, self.dtype.name)

    def formulas(self) -> Formulas:
        """Closed formulas of the results in symbols of the inputs, with the mechanism's numbers; for small mechanisms.
        ``linkwise.codegen.symbolic`` also has symbols for these numbers."""
        from .formulas import expanded  # imported here: rarely used
        from .formulas.formulas import make_formulas

        program = self.straight_line
        shapes = self.input_shapes
        return make_formulas(
            self.name,
            [(array.name, array.shape) for array in program.inputs],
            [(array.name, array.shape) for array in program.outputs],
            lambda algebra, symbol_of: expanded(program, algebra, symbol_of),
            holonomic=shapes.get("q") == shapes.get("v", shapes.get("q")),
        )

    def plan(self) -> str:
        """How the result is computed, with operation counts: all levels from expression to coordinate transforms. For
        handwritten recursions: the reason, the sweeps and the other sections."""
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
        """Operations by section and link, in the order of execution."""
        sections: dict[str, dict[str, int]] = {}
        for section, node, times in self.program.nodes_by_section:
            if node.op.counts:
                label, _, link = section.rpartition(": ")
                links = sections.setdefault(label, {})
                links[link] = links.get(link, 0) + len(node.op.counts) * times
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
    """Text of the loops of a program."""
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
    """Text of one section: its operations and their share per link."""
    where = ", ".join(f"{link}\N{NO-BREAK SPACE}{n}" for link, n in of_links.items())
    rows = textwrap.wrap(where, PLAN_WIDTH, initial_indent="      ", subsequent_indent="      ")
    return [f"  {title} ({count} operations)", *(row.replace("\N{NO-BREAK SPACE}", " ") for row in rows)]
