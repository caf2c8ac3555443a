"""Kernels: compiled programs as functions of arrays, with everything about them open to inspection."""

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

PLAN_WIDTH = 112  # of the text of a plan, in columns


def _call(*arrays: Any, out: Any = None) -> NDArray[np.float64]: ...  # type: ignore[empty-body]


_SIGNATURE = inspect.signature(_call)  # of calls of kernels


def _made_again(function: Callable[..., Kernel], arguments: tuple[Any, ...], options: dict[str, Any]) -> Kernel:
    """A kernel that was pickled: its recipe carried out, with machine code from the cache."""
    return function(*arguments, **options)


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
        from .passes.unroll import unroll  # here and below, so that importing the package stays quick

        return unroll(self.traced)

    @property
    def program(self) -> Program:
        """The program as it is emitted: simplified, fused and ordered."""
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

        stages = [("trace", self.traced), *passes.after_each_pass(self.traced)]
        return Text("\n".join(f"== {name}\n{printer.text(program)}" for name, program in stages))

    def source(self, language: str = "llvm") -> str:
        """Generated source in one of ``linkwise.codegen.LANGUAGES``: "llvm", "c", "cuda" or "numpy"."""
        from .known_targets import emit  # here, so that importing the package stays quick

        return emit(self.program, language, self.dtype.name)

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
