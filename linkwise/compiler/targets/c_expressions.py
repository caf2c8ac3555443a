"""Shared by C and CUDA C: names, exact literals, and programs as C statements."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np

from ..ir import ops
from ..ir.program import Array, Node, Program
from .protocol import Options

# Words that a generated parameter or local must not take: keywords of C99 and C++, and what the bodies call.
RESERVED = frozenset(
    """
    alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default delete do
    double else enum explicit export extern false float for friend goto if inline int long mutable namespace new not
    nullptr operator or private protected public register restrict return short signed sizeof static struct switch
    template this throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    size_t sin cos sinf cosf sincos sincosf sqrt sqrtf rsqrt rsqrtf atan2 atan2f fma fmaf FMA
    n i blockIdx blockDim threadIdx gridDim
    """.split()
)


@dataclass(frozen=True)
class Real:
    """The C type of every number in one emitted file."""

    name: str  # "double" or "float"
    suffix: str  # of math functions and literals: "" or "f"

    def literal(self, value: float) -> str:
        """The shortest decimal that reads back as exactly the number meant."""
        if self.name == "double":
            return repr(value)
        with np.errstate(over="ignore"):
            rounded = np.float32(value)
        if not np.isfinite(rounded):
            raise OverflowError(f"the constant {value!r} is out of range for float32; compile with dtype='float64'")
        return f"{rounded!s}f"


REALS = {"float64": Real("double", ""), "float32": Real("float", "f")}


def real_of(options: Options) -> Real:
    """The number type that ``options`` asks for."""
    try:
        return REALS[options.dtype]
    except KeyError:
        raise ValueError(f"dtype {options.dtype!r} is not emitted as C; choose one of {', '.join(REALS)}") from None


def identifier(name: str, taken: set[str]) -> str:
    """A C identifier as near to ``name`` as can be, not in ``taken``, to which it is added."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    if word[0].isdigit() or re.fullmatch(r"t\d+|_.*", word):  # t1, t2, ... are the emitted temporaries
        word = "x" + word if word[0] == "_" else "x_" + word
    while word in taken:
        word += "_"
    taken.add(word)
    return word


@dataclass(frozen=True)
class Functions:
    """What a language has for the operations of a program besides C's own.

    sincos     ``sincos(angle, &sine, &cosine)``, "" for none
    divide     ``divide(a, b)``, "" for the operator
    constant   writes a number; None for a literal
    """

    sincos: str = ""
    divide: str = ""
    constant: Callable[[float], str] | None = None


class Body:
    """One program as C statements over named arrays.

    ``address(array, element)`` writes the place of an element, ``functions`` are those of the language.  Elements of
    inputs are read once, into locals ``<array>_<element>``.  ``named`` hears of the names of inputs and outputs before
    an address is asked for; ``eager`` results are written as soon as they are there, and not all at the end.
    """

    declarations: tuple[str, ...] = ()  # what must stand before the function

    def __init__(
        self,
        program: Program,
        real: Real,
        address: Callable[..., str],
        functions: Functions,
        named: Callable[[list[str], list[str]], None] | None = None,
        eager: bool = False,
    ):
        self.real = real
        self.functions = functions
        self.program = program
        self.is_fused = any(node.op in ops.FUSED for node in program.nodes)
        taken = set(RESERVED)
        self.function = identifier(program.name, taken)
        self.inputs = [identifier(array.name, taken) for array in program.inputs]
        self.outputs = [identifier(array.name, taken) for array in program.outputs]
        if named is not None:
            named(self.inputs, self.outputs)
        self._address = address
        self._text: dict[Node, str] = {}  # how each value is written where it is used
        self._number = count()
        self._partner = program.sine_cosine_pairs if functions.sincos else {}
        self._places: dict[Node, list[str]] = {}  # of results
        for name, results in zip(self.outputs, program.results, strict=True):
            for k, node in enumerate(results):
                self._places.setdefault(node, []).append(address(name, k))
        reads, operations = self._reads(taken), self._operations(eager)
        self.statements = [*reads, *operations, "", "/* results */", *self._writes(list(self._places))]

    def _reads(self, taken: set[str]) -> list[str]:
        lines = []
        for node in self.program.nodes:
            if node.op is ops.INPUT:
                array, element = node.value
                name = identifier(f"{self.inputs[array]}_{element}", taken)
                self._text[node] = name
                lines.append(f"const {self.real.name} {name} = {self._address(self.inputs[array], element)};")
        return lines + self._unused()

    def _unused(self) -> list[str]:
        read = {node.value[0] for node in self.program.nodes if node.op is ops.INPUT}
        unused = [name for k, name in enumerate(self.inputs) if k not in read and self.program.inputs[k].size]
        return [f"(void){name}; /* not used */" for name in unused]

    def _operations(self, eager: bool) -> list[str]:
        lines: list[str] = []
        section = ""
        for node in self.program.nodes:
            if node.op is ops.CONST:
                self._text[node] = self._literal(node)
            elif node not in self._text:
                if node.section != section:
                    section = node.section
                    lines += self._heading(section)
                lines.append(self._statement(node))
            if eager and node in self._text:
                partner = self._partner.get(node)
                lines += self._writes([node] if partner is None else [node, partner])
        return lines

    def _literal(self, node: Node) -> str:
        if self.functions.constant is not None:
            return self.functions.constant(node.value)
        literal = self.real.literal(node.value)
        return f"({literal})" if literal.startswith("-") else literal

    @staticmethod
    def _heading(section: str) -> list[str]:
        return ["", f"/* {_comment(section)} */"]

    def _statement(self, node: Node) -> str:
        name = self._name(node)
        if self.functions.sincos and node.op in (ops.SIN, ops.COS):
            partner = self._partner.get(node)
            other = f"{name}_unused" if partner is None else self._name(partner)
            sine, cosine = (name, other) if node.op is ops.SIN else (other, name)
            angle, function = self._text[node.args[0]], self.functions.sincos
            return f"{self.real.name} {sine}, {cosine}; {function}({angle}, &{sine}, &{cosine});"
        kind = "int" if node.op.result == "bool" else self.real.name
        return f"const {kind} {name} = {self._expression(node)};"

    def _name(self, node: Node) -> str:
        self._text[node] = f"t{next(self._number)}"
        return self._text[node]

    def _expression(self, node: Node) -> str:
        a, b, c = ([self._text[arg] for arg in node.args] + ["", "", ""])[:3]
        suffix = self.real.suffix
        forms = {
            ops.ADD: f"{a} + {b}",
            ops.SUB: f"{a} - {b}",
            ops.MUL: f"{a} * {b}",
            ops.DIV: f"{self.functions.divide}({a}, {b})" if self.functions.divide else f"{a} / {b}",
            ops.NEG: f"-{a}",
            ops.SQRT: f"sqrt{suffix}({a})",
            ops.SIN: f"sin{suffix}({a})",
            ops.COS: f"cos{suffix}({a})",
            ops.ATAN2: f"atan2{suffix}({a}, {b})",
            ops.LESS: f"{a} < {b}",
            ops.SELECT: f"{a} ? {b} : {c}",
            ops.FMA: f"FMA({a}, {b}, {c})",
            ops.FMS: f"FMA({a}, {b}, -{c})",
            ops.FNMA: f"FMA(-{a}, {b}, {c})",
            ops.RSQRT: f"rsqrt{suffix}({a})",
            ops.MINIMUM: f"_minimum({a}, {b})",
            ops.MAXIMUM: f"_maximum({a}, {b})",
        }
        return forms[node.op]

    def _writes(self, nodes: list[Node]) -> list[str]:
        """Writes of those of the nodes that are results and not written yet."""
        return [f"{place} = {self._text[node]};" for node in nodes for place in self._places.pop(node, ())]


def parameters(real: Real, inputs: list[str], outputs: list[str], restrict: str) -> list[str]:
    """Declarations of the arrays, inputs first."""
    reads = [f"const {real.name} *{restrict} {name}" for name in inputs]
    return reads + [f"{real.name} *{restrict} {name}" for name in outputs]


def summary(program: Program, inputs: list[str], outputs: list[str]) -> list[str]:
    """Comment above a function: its arrays, core shapes and operations per state."""
    counts = program.op_counts
    lines = [_described("in ", name, array) for name, array in zip(inputs, program.inputs, strict=True)]
    lines += [_described("out", name, array) for name, array in zip(outputs, program.outputs, strict=True)]
    return lines + ["operations per state: " + (", ".join(f"{v} {k}" for k, v in counts.items()) or "none")]


def _described(direction: str, name: str, array: Array) -> str:
    return f"{direction} {name}: {' x '.join(map(str, array.shape)) or 'scalar'}"


def _comment(section: str) -> str:
    return section.replace("*/", "* /") or "(no section)"
