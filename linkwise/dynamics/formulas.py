"""Closed formulas of small mechanisms, in symbols named after joints and parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.formulas import Algebra, FormulaError, Formulas, Polynomial, expanded
from ..compiler.formulas.formulas import elements
from ..compiler.ir.program import Program
from ..compiler.pipeline import compile
from ..constraints.elimination_orders import independent_places, independent_rows
from ..mechanism import Loop, Mechanism, MechanismError, require_mechanism

PARAMETERS = ("mass", "com", "inertia", "pose", "gravity")
AXES = "xyz"
MOST_INVERTED = 4  # degrees of freedom up to which matrices are inverted by cofactors
CONSISTENT = 1e-9  # relative tolerance between the value of a symbol and its definition
RESERVED = re.compile(r"(q|v|a|tau|s|c|u|k|D|kappa|alpha)\d+|K\d+_\d+|Delta|Delta_G")
BY_COFACTORS = ("mass_matrix_inverse", "forward_dynamics")


def symbolic(
    mech: Mechanism,
    algorithm: str = "inverse_dynamics",
    symbols: Mapping[str, str] | None = None,
    parameters: Sequence[str] = PARAMETERS,
    **options: Any,
) -> Formulas:
    """Closed formulas of an algorithm: "inverse_dynamics", "mass_matrix", "mass_matrix_inverse", "forward_dynamics",
    "bias_force", "gravity_force", "coriolis_matrix", "kinetic_energy", "jacobian" and others that ``compile`` knows.

    symbols      definitions of symbols by others, such as {"r1": "l1/2", "I1": "m1*l1**2/12"} for a uniform rod, or
                 only other names, {"l1": "L"}; must hold for the mechanism's numbers
    parameters   parameters that are symbols: "mass", "com", "inertia", "pose", "gravity"; others are numbers, as are
                 rotor inertias, rotations and zeros
    options      of the algorithm, such as link="tip"

    Symbols: coordinates q1, velocities v1, accelerations a1, joint forces tau1; c12 and s12 are the cosine and sine of
    q1 + q2; link k has mass mk, mass centre at rk (xk, yk, zk if it is on no axis), inertia Ik (Ixxk, ... if several
    count) about it, and carries the next joint at lk (lxk, lyk, lzk; branches pk of the link beyond), also one that
    closes a loop; the sides of loop k are at pak and pbk where their links carry more, and dk apart if it is a
    distance; g is gravity.
    """
    if isinstance(algorithm, Mechanism):
        raise TypeError(f"symbolic takes the mechanism first: symbolic(mech, {mech!r})")
    require_mechanism(mech)
    algorithm = algorithm.replace("-", "_") if isinstance(algorithm, str) else algorithm  # as commands write it
    wrong = [name for name in parameters if name not in PARAMETERS]
    if wrong:
        raise ValueError(f"unknown parameter {wrong[0]!r}: available: {', '.join(PARAMETERS)}")
    make: Callable[[_Symbols], Formulas]
    if mech.loops and algorithm == "forward_dynamics":
        make = _forward_within_constraints
    elif algorithm in BY_COFACTORS and not mech.loops and mech.nv <= MOST_INVERTED:
        make = _inverse if algorithm == "mass_matrix_inverse" else _forward
    else:
        make = _Compiled(algorithm, options)
    named = _Symbols(mech, parameters, _short_names(mech, parameters))
    return make(named.with_definitions(symbols) if symbols else named)


class _Compiled:
    """Formulas from the program of a kernel."""

    def __init__(self, algorithm: str, options: Mapping[str, Any]):
        self.algorithm, self.options = algorithm, options

    def __call__(self, symbols: _Symbols) -> Formulas:
        program, results = symbols.expand(self.algorithm, self.options)
        outputs = [(o.name, o.shape, values) for o, values in zip(program.outputs, results, strict=True)]
        return symbols.formulas(self.algorithm, program, outputs)


def _inverse(symbols: _Symbols) -> Formulas:
    """Cofactors over the determinant."""
    n = symbols.mech.nv
    program, (flat,) = symbols.expand("mass_matrix")
    cofactors, over = _inverted(symbols.algebra, flat, n)
    entries = [value * over for row in cofactors for value in row]
    return symbols.formulas("mass_matrix_inverse", program, [("mass_matrix_inverse", (n, n), entries)])


def _forward(symbols: _Symbols) -> Formulas:
    """The inverse mass matrix times u = tau less bias forces."""
    n, algebra = symbols.mech.nv, symbols.algebra
    program, _ = symbols.expand("forward_dynamics", traced_only=True)
    _, (bias,) = symbols.expand("bias_force")
    _, (flat,) = symbols.expand("mass_matrix")
    forces = []
    for k, tau in enumerate(elements("tau", (n,), algebra, symbols.holonomic)):
        value = tau - bias[k]
        forces.append(value if len(value) == 1 else algebra.abbreviation(f"u{k + 1}", f"u_{{{k + 1}}}", value))
    cofactors, over = _inverted(algebra, flat, n)
    entries = []
    for row in cofactors:
        total = algebra.constant(0.0)
        for cofactor, force in zip(row, forces, strict=True):
            total = total + cofactor * force
        entries.append(total * over)
    return symbols.formulas("forward_dynamics", program, [("a", (n,), entries)])


def _forward_within_constraints(symbols: _Symbols) -> Formulas:
    """a = K alpha + kappa: the dependent coordinates from as many constraints by cofactors, and the accelerations alpha
    of the independent ones from K* M K alpha = K* u, u = tau - h - M kappa."""
    mech, algebra = symbols.mech, symbols.algebra
    free, rows = independent_places(mech) or (), independent_rows(mech)
    bound = [k for k in range(mech.nv) if k not in free]
    if max(len(free), len(bound)) > MOST_INVERTED:
        raise FormulaError(
            f"forward_dynamics of mechanism {mech.name!r} inverts matrices of {len(bound)} and {len(free)} rows, and "
            f"formulas are made of up to {MOST_INVERTED}"
        )
    program, _ = symbols.expand("forward_dynamics", traced_only=True)
    (jacobian,), (curvature,) = (symbols.expand(f"constraint_{name}")[1] for name in ("jacobian", "bias"))
    (bias,), (flat,) = (symbols.expand(name)[1] for name in ("bias_force", "mass_matrix"))
    zero, every = algebra.constant(0.0), range(mech.nv)
    block = [jacobian[mech.nv * r + k] for r in rows for k in bound]
    cofactors, over = _inverted(algebra, block, len(bound), "Delta_G", r"\Delta_{G}", symmetric=False)

    def determined(right: Sequence[Polynomial], name: str, latex: str) -> list[Polynomial]:
        """The dependent coordinates x with G x = -right, abbreviated; names have a field for the number."""
        names = []
        for row, k in zip(cofactors, bound, strict=True):
            total = zero
            for cofactor, x in zip(row, right, strict=True):
                total = total - cofactor * x
            total = total * over
            names.append(algebra.abbreviation(name % (k + 1), latex % (k + 1), total) if len(total) > 1 else total)
        return names

    basis = {k: [algebra.constant(float(k == c)) for c in free] for k in free} | {k: [] for k in bound}
    for c in free:
        column = determined([jacobian[mech.nv * r + c] for r in rows], f"K%d_{c + 1}", f"K_{{%d,{c + 1}}}")
        for k, x in zip(bound, column, strict=True):
            basis[k].append(x)
    offset = dict.fromkeys(free, zero)
    curved = determined([curvature[r] for r in rows], "kappa%d", r"\kappa_{%d}")
    offset |= dict(zip(bound, curved, strict=True))

    def times_mass(x: Sequence[Polynomial]) -> list[Polynomial]:
        return [sum((flat[mech.nv * k + j] * x[j] for j in every if x[j].terms), zero) for k in every]

    forces = elements("tau", (mech.nv,), algebra, symbols.holonomic)
    held = times_mass([offset[k] for k in every])
    left = [algebra.abbreviation(f"u{k + 1}", f"u_{{{k + 1}}}", forces[k] - bias[k] - held[k]) for k in every]
    moved = [times_mass([basis[k][c] for k in every]) for c in range(len(free))]
    reduced = [
        sum((basis[k][b] * moved[c][k] for k in every if basis[k][b].terms), zero)
        for b in range(len(free))
        for c in range(len(free))
    ]
    driving = [sum((basis[k][c] * left[k] for k in every if basis[k][c].terms), zero) for c in range(len(free))]
    adjugate, inverse = _inverted(algebra, reduced, len(free))
    alpha = {}
    for row, c in zip(adjugate, free, strict=True):
        numerator = sum((x * force for x, force in zip(row, driving, strict=True)), zero) * inverse
        alpha[c] = algebra.abbreviation(f"alpha{c + 1}", rf"\alpha_{{{c + 1}}}", numerator)
    accelerations = [sum((x * alpha[c] for x, c in zip(basis[k], free, strict=True)), offset[k]) for k in every]
    return symbols.formulas("forward_dynamics", program, [("a", (mech.nv,), accelerations)])


def _inverted(
    algebra: Algebra,
    flat: Sequence[Polynomial],
    n: int,
    name: str = "Delta",
    latex: str = r"\Delta",
    symmetric: bool = True,
) -> tuple[list[list[Polynomial]], Polynomial]:
    """The adjugate of a matrix, and the reciprocal of its determinant as the abbreviation ``name``."""
    matrix = [list(flat[n * i : n * i + n]) for i in range(n)]

    def determinant(rows: list[int], columns: list[int]) -> Polynomial:
        if not rows:
            return algebra.constant(1.0)
        total = algebra.constant(0.0)
        for k, column in enumerate(columns):
            entry = matrix[rows[0]][column]
            if entry.terms:
                total = total + entry * determinant(rows[1:], columns[:k] + columns[k + 1 :]) * (-1.0) ** k
        return total

    every = list(range(n))

    def cofactor(i: int, j: int) -> Polynomial:
        return determinant([k for k in every if k != i], [k for k in every if k != j]) * (-1.0) ** (i + j)

    det = determinant(every, every)
    over = det.power(-1) if len(det) == 1 else algebra.abbreviation(name, latex, det).power(-1)
    if not symmetric:
        return [[cofactor(j, i) for j in every] for i in every], over
    upper = {(i, j): cofactor(i, j) for i in every for j in every[i:]}
    return [[upper[min(i, j), max(i, j)] for j in every] for i in every], over


def _short_names(mech: Mechanism, parameters: Sequence[str]) -> dict[str, str]:
    """Names of inertias: Ik if only one component of a link occurs."""
    try:
        used = _Compiled("mass_matrix", {})(_Symbols(mech, parameters)).symbols
    except FormulaError:  # several components occur
        return {}
    short = {}
    for k in range(1, mech.n_links + 1):
        names_of_moment = [name for name in used if name[0] == "I" and name[1:3].isalpha() and name[3:] == str(k)]
        if len(names_of_moment) == 1:
            short[names_of_moment[0]] = f"I{k}"
    return short


Side = tuple[str, int, np.ndarray, np.ndarray]  # stem and number of its name, rotation, position


def _name_of_joint(mech: Mechanism, i: int) -> tuple[str, int]:
    """Name of a joint's position: the length of its carrier if it carries nothing else."""
    parent = mech.bodies[i].parent
    return ("l", parent + 1) if _carried(mech, parent) == 1 else ("p", i + 1)


def _carried(mech: Mechanism, body: int) -> int:
    """Number of joints that a link carries, loop joints included."""
    ends = [mech.frame(link).body for loop in mech.loops for link in loop.links]
    return sum(link.parent == body for link in mech.bodies) + ends.count(body)


def _sides_of_loops(mech: Mechanism) -> dict[str, Side]:
    """The poses of both sides of all loops, by parameter; the length of a link that carries nothing else."""
    sides: dict[str, Side] = {}
    for k, loop in enumerate(mech.loops, 1):
        if isinstance(loop, Loop):
            for side, link, pose in (("a", loop.link_a, loop.pose_a), ("b", loop.link_b, loop.pose_b)):
                body = mech.frame(link).body
                named = ("l", body + 1) if body >= 0 and _carried(mech, body) == 1 else (f"p{side}", k)
                sides[f"{loop.name}.pose_{side}"] = (*named, *pose)
    return sides


def _lengths_of_distances(mech: Mechanism) -> dict[str, tuple[str, float]]:
    """Parameter -> name and value of the length of a distance."""
    loops = [(k, loop) for k, loop in enumerate(mech.loops, 1) if isinstance(loop, Loop)]
    lengths = [(k, loop.name, getattr(loop.kind, "length", 0.0)) for k, loop in loops]
    return {f"{name}.length": (f"d{k}", float(length)) for k, name, length in lengths if length}


class _Symbols:
    """Symbols of a mechanism's parameters."""

    def __init__(
        self,
        mech: Mechanism,
        parameters: Sequence[str],
        renamed: Mapping[str, str] | None = None,
        definitions: Mapping[str, str] | None = None,
        values: Mapping[str, float] | None = None,
    ):
        self.mech, self.renamed = mech, renamed or {}
        self.parameters = tuple(p for p in PARAMETERS if p in parameters)
        self.sides = _sides_of_loops(mech) if "pose" in parameters else {}
        self.lengths = _lengths_of_distances(mech) if "pose" in parameters else {}
        self.definitions, self.algebra = definitions or {}, Algebra()
        self.values: dict[str, float] = dict(values or {})
        self.holonomic = mech.nq == mech.nv
        self._given: dict[str, list[Polynomial]] = {}

    # -- formulas -------------------------------------------------------------------------------------

    def expand(
        self, algorithm: str, options: Mapping[str, Any] | None = None, traced_only: bool = False
    ) -> tuple[Program, list[list[Polynomial]]]:
        """The program of an algorithm, and its results as polynomials."""
        kernel = compile(
            algorithm,
            self.mech,
            target="numpy",
            parameters=(*self.parameters, *self.sides, *self.lengths),
            loops=False,
            **(options or {}),
        )
        program = kernel.straight_line
        elements = [self.elements(array.name, array.shape) for array in program.inputs]
        if traced_only:
            return program, []
        return program, expanded(program, self.algebra, lambda array, element: elements[array][element])

    def formulas(self, name: str, program: Program, outputs: Any) -> Formulas:
        ports = [a for a in program.inputs if a.name not in (*PARAMETERS, *self.sides, *self.lengths)]
        inputs = [(a.name, a.shape, self.elements(a.name, a.shape)) for a in ports]
        return Formulas(name, self.algebra, inputs, outputs, self.values)

    def elements(self, name: str, shape: tuple[int, ...]) -> list[Polynomial]:
        """The elements of an array as symbols or numbers."""
        if name not in self._given:
            if name in self.sides:
                self._given[name] = self._pose(*self.sides[name])
            elif name in self.lengths:
                self._given[name] = [self._number(*self.lengths[name], "pose")]
            elif name in PARAMETERS:
                self._given[name] = [x for part in self._expand_parameter(name) for x in part]
            else:
                self._given[name] = elements(name, shape, self.algebra, self.holonomic)
        return self._given[name]

    # -- parameters -----------------------------------------------------------------------------------

    def _expand_parameter(self, name: str) -> list[list[Polynomial]]:
        bodies = self.mech.bodies
        if name == "gravity":
            size = float(np.linalg.norm(self.mech.gravity))
            return [
                [
                    self._number("g", size, "gravity") * _clean(x / size) if size else self._zero
                    for x in self.mech.gravity.tolist()
                ]
            ]
        if name == "mass":
            return [[self._number(f"m{k}", body.mass, "mass")] for k, body in enumerate(bodies, 1)]
        if name == "com":
            return [
                self._vector(body.com, f"r{k}", [f"{axis}{k}" for axis in AXES]) for k, body in enumerate(bodies, 1)
            ]
        if name == "inertia":
            return [self._inertia(k, body.inertia) for k, body in enumerate(bodies, 1)]
        return [
            self._pose(*_name_of_joint(self.mech, i), body.rotation, body.position) for i, body in enumerate(bodies)
        ]

    @property
    def _zero(self) -> Polynomial:
        return self.algebra.constant(0.0)

    def _number(self, name: str, value: float, kind: str) -> Polynomial:
        """The symbol of a positive number; a zero stays zero."""
        if value == 0.0:
            return self._zero
        name = self.renamed.get(name, name)
        if name in self.definitions:
            return _parsed(self.definitions[name], self.algebra)
        self.values[name] = value
        return self.algebra.symbol(name, kind=kind)

    def _vector(self, value: np.ndarray, alone: str, names: Sequence[str]) -> list[Polynomial]:
        """Along an axis: one symbol, positive; else one for each component."""
        size = float(np.linalg.norm(value))
        numbers = [_clean(x, size) for x in value.tolist()]
        if sum(x != 0.0 for x in numbers) == 1:
            return [self._number(alone, abs(x), "length") * float(np.sign(x)) if x else self._zero for x in numbers]
        return [self._number(name, x, "length") for name, x in zip(names, numbers, strict=True)]

    def _inertia(self, k: int, value: np.ndarray) -> list[Polynomial]:
        numbers = []
        for i in range(3):
            for j in range(3):
                name = f"I{AXES[min(i, j)]}{AXES[max(i, j)]}{k}"
                number = _clean(float(value[min(i, j), max(i, j)]), float(np.abs(value).max()))
                numbers.append(self._number(name, number, "inertia"))
        return numbers

    def _pose(self, stem: str, number: int, rotation: np.ndarray, position: np.ndarray) -> list[Polynomial]:
        coordinates = self._vector(position, f"{stem}{number}", [f"{stem}{axis}{number}" for axis in AXES])
        rows = []
        for r in range(3):
            rows += [*(self.algebra.constant(_clean(x)) for x in rotation[r].tolist()), coordinates[r]]
        return [*rows, *(self.algebra.constant(x) for x in (0.0, 0.0, 0.0, 1.0))]

    # -- names ----------------------------------------------------------------------------------------

    def with_definitions(self, symbols: Mapping[str, str]) -> _Symbols:
        """Symbols defined by others; their values are checked."""
        for parameter in (*self.parameters, *self.sides, *self.lengths):
            self.elements(parameter, ())  # define the symbols of all parameters
        for name in symbols:
            if name not in self.values:
                known = ", ".join(sorted(self.values))
                raise FormulaError(f"mechanism {self.mech.name!r} has no symbol {name!r}: available: {known}")
        parsed = {name: _parsed(text, self.algebra) for name, text in symbols.items()}
        values = {name: value for name, value in self.values.items() if name not in symbols}
        atoms = self.algebra.atoms
        for name, value in parsed.items():  # definitions that determine the value of a new symbol
            if len(value) == 1:
                ((m, c),) = value.terms.items()
                if len(m) == 1 and m[0][1] == 1:
                    values.setdefault(atoms[m[0][0]].name, self.values[name] / c)
        for name, value in parsed.items():
            number = sum(c * _product(m, atoms, values, name) for m, c in value.terms.items())
            if abs(number - self.values[name]) > CONSISTENT * abs(self.values[name]):
                raise MechanismError(
                    f"{name} = {symbols[name]} does not hold for mechanism {self.mech.name!r}: "
                    f"{self.values[name]:g} is not {number:g}"
                )
        return _Symbols(self.mech, self.parameters, self.renamed, symbols, values)


def _product(monomial: Any, atoms: Any, values: Mapping[str, float], name: str) -> float:
    total = 1.0
    for a, p in monomial:
        if atoms[a].name not in values:
            raise FormulaError(
                f"nothing tells the number of {atoms[a].name}, of which {name} is made: say what it alone is equal to"
            )
        total *= values[atoms[a].name] ** p
    return total


def _clean(x: float, size: float = 1.0) -> float:
    """The number without the rounding error of quarter turns, relative to ``size``."""
    near = float(round(x))
    return near if abs(x - near) < 1e-14 * (max(abs(x), size) if near else size) else x


def _parsed(text: str, algebra: Algebra) -> Polynomial:
    """A formula in symbols, from text in Python's syntax."""

    def walk(node: ast.AST) -> Polynomial:
        match node:
            case ast.Constant(value=int() | float() as number):
                return algebra.constant(number)
            case ast.Name(id=name):
                if RESERVED.fullmatch(name):
                    raise FormulaError(
                        f"{name} is a coordinate, a velocity, an acceleration, a force, a sine or cosine, or the name "
                        f"of an abbreviation: choose another name in {text!r}"
                    )
                return algebra.symbol(name, kind={"m": "mass", "I": "inertia", "g": "gravity"}.get(name[0], "length"))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -walk(operand)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return walk(left) + walk(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return walk(left) - walk(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return walk(left) * walk(right)
            case ast.BinOp(left=left, op=ast.Div(), right=right) if len(divisor := walk(right)) == 1:
                return walk(left) * divisor.power(-1)
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as exponent)):
                return walk(left).power(exponent)
        raise FormulaError(f"{text!r} is no sum of products of symbols, such as 'm1*l1**2/12'")

    try:
        return walk(ast.parse(text, mode="eval").body)
    except SyntaxError:
        raise FormulaError(f"{text!r} is no formula, such as 'm1*l1**2/12'") from None


__all__ = ["FormulaError", "Formulas", "symbolic"]
