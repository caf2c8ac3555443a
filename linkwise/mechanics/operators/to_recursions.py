"""From an expression applied to vectors to steps: what each link does, and in which direction the steps run.

A step is one operator at work: local to a link, or a recursion over the links.  Every step's inputs are weighted
sums of other steps.  While steps are made, four things that belong together are joined, because one crossing of a
joint can then do them at once:

    E_phi inside phi and psi             a force enters before the joint is crossed, with what crosses anyway
    G y inside psi, H* y inside psi*     z + G (y - H z) instead of tau_bar z + G y, and likewise for motions
    the bias a inside phi*, psi*, psi    added where a joint's own steps make it cheapest
    M alpha + b                          the inertial force of a rigid link
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..recursions.schedule import BASE_TO_TIP, TIP_TO_BASE
from .expression import FORCE, MOTION, Bias, Covector, Expression, Identity, Operator, Product, Space, Sum, Vector
from .identities import SmallInverse, expanded

RECURSIONS = {
    # step: (direction, what link i computes)
    "phi": (TIP_TO_BASE, "z_i = x_i + sum over children c of X_c* (z_c + w_c)"),
    "phi.T": (BASE_TO_TIP, "z_i = X_i (z_parent + w_parent) + x_i"),
    "psi": (TIP_TO_BASE, "z_i = x_i + sum over children c of X_c* (z_c + G_c (y_c - H_c z_c) + w_c)"),
    "psi.T": (BASE_TO_TIP, "z_i = z+ + H_i* (y_i - G_i* z+) + x_i with z+ = X_i (z_parent + w_parent)"),
    "E_phi": (TIP_TO_BASE, "z_i = sum over children c of X_c* x_c"),
    "E_phi.T": (BASE_TO_TIP, "z_i = X_i x_parent"),
    "carry": (BASE_TO_TIP, "z_i = X_i x_parent + a_i"),
    "riccati": (
        TIP_TO_BASE,
        "P_i = M_i + sum over children c of X_c* P+_c X_c, D = H P H* + R, G = P H* D^-1, P+ = P - G D G*",
    ),
    "spin": (BASE_TO_TIP, "omega_i = X_i omega_parent + H_i* v_i, and the biases a_i, b_i"),
    "composite": (TIP_TO_BASE, "C_i = M_i + sum over children c of X_c* C_c X_c"),
    "mobility": (BASE_TO_TIP, "Y_i = T_i X_i Y_parent X_i* T_i* + H_i* D_i^-1 H_i with T_i = I - H_i* G_i*"),
    "Omega": (BASE_TO_TIP, "z_i = Y_i u_i on the way to the force, else T_i X_i z_parent"),
    "Kt_Omega": (BASE_TO_TIP, "z_i = (Y_parent K_i)* u_parent on the way to the force, else G_i* X_i z_parent"),
}
ARTICULATED = {"P", "P_plus", "P_inv", "D", "D_inv", "G", "G.T", "psi", "psi.T", "tau_bar", "tau_bar.T"}
ARTICULATED |= {"D_half", "D_half.T", "D_half_inv", "D_half_inv.T"}


@dataclass(frozen=True, eq=False)
class Step:
    """One operator at work.  ``inputs`` by role; ``uses`` are steps whose per-link results it needs besides."""

    op: str
    space: Space | None
    inputs: dict[str, Combination] = field(default_factory=dict)
    uses: tuple[Step, ...] = ()
    name: str = ""  # of an input vector, or of a pick-off's link
    flags: frozenset[str] = frozenset()
    small: SmallInverse | None = None

    @property
    def direction(self) -> str | None:
        return RECURSIONS[self.op][0] if self.op in RECURSIONS else None

    @property
    def label(self) -> str:
        return _LABELS.get(self.op, self.op.replace(".T", "*"))

    def dependencies(self) -> Iterable[Step]:
        yield from self.uses
        for combination in self.inputs.values():
            for step, _ in combination:
                yield step


Combination = tuple[tuple[Step, float], ...]

_LABELS = {
    "riccati": "articulated inertias",
    "spin": "angular velocities",
    "composite": "composite inertias",
    "mobility": "mobilities",
    "carry": "accelerations across the joints",
    "Kt_Omega": "K* Omega",
}


class Recursions:
    """Makes steps; equal steps are made once."""

    def __init__(self):
        self._made: list[Step] = []  # inputs first
        self._known: dict[tuple, Step] = {}

    # -- expressions ----------------------------------------------------------------------------------

    def of(self, expression: Expression) -> Combination:
        """The steps of a vector-valued expression."""
        return self._fused(self._value(expanded(expression, keep=("tau_bar",))))

    def steps_for(self, value: Combination) -> list[Step]:
        """The steps that ``value`` needs, inputs first; what was joined into others is left out."""
        needed: set[Step] = set()
        stack = [step for step, _ in value]
        while stack:
            step = stack.pop()
            if step not in needed:
                needed.add(step)
                stack.extend(step.dependencies())
        return [step for step in self._made if step in needed]

    def _value(self, expression: Expression) -> Combination:
        match expression:
            case Vector(name=name, codomain=space):
                return self._one(self.step("input", space, name=name))
            case Bias():
                return self._one(self._bias(expression))
            case Sum(terms=terms):
                return _sum((w, self._value(t)) for w, t in terms)
            case Product(factors=factors):
                value = self._value(factors[-1])
                for factor in reversed(factors[:-1]):
                    value = self._apply(factor, value)
                return value
            case _:
                raise TypeError(f"{expression} is no vector")

    def _apply(self, operator: Expression, value: Combination) -> Combination:
        if not value:
            return ()
        match operator:
            case Identity():
                return value
            case Sum(terms=terms):
                return _sum((w, self._apply(t, value)) for w, t in terms)
            case Product(factors=factors):
                for factor in reversed(factors):
                    value = self._apply(factor, value)
                return value
            case SmallInverse():
                return self._one(self.step("small", operator.codomain, {"x": self._fused(value)}, small=operator))
            case Covector(vector=vector):
                inputs = {"x": self._fused(value), "row": self._value(vector)}
                return self._one(self.step("dot", operator.codomain, inputs))
            case Vector() | Bias():
                return self._one(self.step("scale", operator.codomain, {"x": value, "v": self._value(operator)}))
            case Operator():
                return self._one(self._operator(operator, value))
        raise TypeError(f"{operator} cannot be applied to a vector")

    # -- operators ------------------------------------------------------------------------------------

    def _operator(self, operator: Operator, value: Combination) -> Step:
        op = operator.name + (".T" if operator.adjoint else "")
        space = operator.codomain
        uses = self._implicit(op)
        match op:
            case "phi":
                entering, rest = _take(value, "E_phi")
                return self.step(op, space, {"x": self._fused(rest), "w": self._fused(entering)}, uses)
            case "psi":
                return self._psi(space, value, uses)
            case "phi.T":
                value, biases, flags = _take_biases(value)
                entering, rest = _take(value, "E_phi.T")
                inputs = {"x": self._fused(rest), "w": self._fused(entering)}
                return self.step(op, space, inputs, uses + biases, flags=flags)
            case "psi.T":
                return self._psi_adjoint(space, value, uses)
            case "Omega" | "Kt_Omega":
                return self._omega(op, space, value, uses)
            case "A" | "A.T" | "B" | "B.T":
                return self.step(op, space, {"x": self._fused(value)}, name=operator.link)
            case _:
                return self.step(op, space, {"x": self._fused(value)}, uses)

    def _psi(self, space: Space, value: Combination, uses: tuple[Step, ...]) -> Step:
        entering, rest = _take(value, "E_phi")
        joint, entering = _take(entering, "G")
        biased: tuple[Step, ...] = ()
        flags: frozenset[str] = frozenset()
        for step, weight in entering:
            if step.op == "P_plus" and weight == 1.0 and [s.op for s, w in step.inputs["x"] if w == 1.0] == ["a"]:
                biased, flags = step.inputs["x"][0][0].uses, frozenset({"a"})
                entering = tuple((s, w) for s, w in entering if s is not step)
                break
        inputs = {"x": self._fused(rest), "y": joint, "w": self._fused(entering)}
        return self.step("psi", space, inputs, uses + biased, flags=flags)

    def _psi_adjoint(self, space: Space, value: Combination, uses: tuple[Step, ...]) -> Step:
        """tau_bar* (E_phi* w + a + g) stands just behind the joint: it crosses with the rest; H* y joins the joint."""
        joint, value = _take(value, "H.T")
        behind, rest = _take(value, "tau_bar.T")
        behind, biases, flags = _take_biases(behind)
        entering, behind = _take(behind, "E_phi.T")
        if behind:
            rest = (*rest, (self.step("tau_bar.T", space, {"x": self._fused(behind)}, uses), 1.0))
        inputs = {"x": self._fused(rest), "y": joint, "w": self._fused(entering)}
        return self.step("psi.T", space, inputs, uses + biases, flags=flags)

    def _omega(self, op: str, space: Space, value: Combination, uses: tuple[Step, ...]) -> Step:
        value = self._fused(value)
        inputs = {"x": value, "u": self._one(self._psi(FORCE, value, uses[:1]))}
        if op == "Kt_Omega":
            inputs["omega"] = self._one(self._omega("Omega", MOTION, value, uses))
        return self.step(op, space, inputs, uses)

    def _implicit(self, op: str) -> tuple[Step, ...]:
        if op in ARTICULATED:
            return (self.step("riccati", None),)
        if op == "C":
            return (self.step("composite", None),)
        if op in ("Omega", "Kt_Omega"):
            riccati = self.step("riccati", None)
            return (riccati, self.step("mobility", None, uses=(riccati,)))
        return ()

    def _bias(self, bias: Bias) -> Step:
        if bias.of is None:
            return self.step("g", bias.codomain)
        spin = self.step("spin", None, {"v": self._value(bias.of)})
        return self.step(bias.name, bias.codomain, uses=(spin,))

    # -- sums -----------------------------------------------------------------------------------------

    def _fused(self, value: Combination) -> Combination:
        """Join E_phi* x + a and M x + b."""
        steps = {step.op: (step, weight) for step, weight in value}
        if "a" in steps and "E_phi.T" in steps and steps["a"][1] == steps["E_phi.T"][1] == 1.0:
            kinematics, bias = steps["E_phi.T"][0], steps["a"][0]
            with_ground = "g" in steps and steps["g"][1] == 1.0
            joined = self.step(
                "carry",
                kinematics.space,
                kinematics.inputs,
                bias.uses,
                flags=frozenset({"a", "g"} if with_ground else {"a"}),
            )
            value = _replace(value, (kinematics, bias, *((steps["g"][0],) if with_ground else ())), joined)
        if "b" in steps and "M" in steps and steps["b"][1] == steps["M"][1] == 1.0:
            inertia, bias = steps["M"][0], steps["b"][0]
            joined = self.step("inertial", inertia.space, inertia.inputs, bias.uses)
            value = _replace(value, (inertia, bias), joined)
        return value

    def _one(self, step: Step) -> Combination:
        return ((step, 1.0),)

    def step(self, op, space, inputs=None, uses=(), name="", flags=frozenset(), small=None) -> Step:
        inputs = {role: value for role, value in (inputs or {}).items() if value}
        roles = tuple((role, tuple((id(s), w) for s, w in value)) for role, value in sorted(inputs.items()))
        key = (op, space, roles, tuple(map(id, uses)), name, flags, small)
        if key not in self._known:
            self._known[key] = Step(op, space, inputs, tuple(uses), name, flags, small)
            self._made.append(self._known[key])
        return self._known[key]


def _sum(weighted: Iterable[tuple[float, Combination]]) -> Combination:
    collected: dict[Step, float] = {}
    for weight, combination in weighted:
        for step, inner in combination:
            collected[step] = collected.get(step, 0.0) + weight * inner
    return tuple((step, weight) for step, weight in collected.items() if weight != 0.0)


def _take(value: Combination, op: str) -> tuple[Combination, Combination]:
    """The terms made by ``op``, as they were before it (it is linear), and the other terms."""
    taken = _sum((weight, step.inputs.get("x", ())) for step, weight in value if step.op == op)
    return taken, tuple((step, weight) for step, weight in value if step.op != op)


def _take_biases(value: Combination) -> tuple[Combination, tuple[Step, ...], frozenset[str]]:
    """Split off a and g where they stand with weight one."""
    found = [step for step, weight in value if step.op in ("a", "g") and weight == 1.0]
    uses = tuple(use for step in found for use in step.uses)
    return tuple((s, w) for s, w in value if s not in found), uses, frozenset(step.op for step in found)


def _replace(value: Combination, old: tuple[Step, ...], new: Step) -> Combination:
    return (*((s, w) for s, w in value if s not in old), (new, 1.0))


def regroupable_steps(steps: Sequence[Step], value: Combination) -> frozenset[Step]:
    """The steps M x, M x + b and C x whose forces act on nothing but joints, for motions that come from joints only.

    Then part of every link's inertia may be carried by its parent instead (``Joint.handed_on``): for such motions
    H phi f, and by jain1995 (B.1) H psi f too, are the same for the handed-on inertias.
    """
    consumers: dict[Step | None, list[tuple[Step | None, str]]] = {}
    for step in steps:
        for role, combination in step.inputs.items():
            for used, _ in combination:
                consumers.setdefault(used, []).append((step, role))
    for used, _ in value:
        consumers.setdefault(used, []).append((None, "result"))

    def only_projected(step: Step) -> bool:
        return all(user is not None and user.op == "H" for user, _ in consumers.get(step, ()))

    def only_felt(step: Step) -> bool:
        return all(
            user is not None and user.op in ("phi", "psi") and role == "x" and only_projected(user)
            for user, role in consumers.get(step, ())
        )

    return frozenset(step for step in steps if step.op in _SOURCES and _SOURCES[step.op](step) and only_felt(step))


def _joint_motion(step: Step, biased: bool) -> bool:
    """phi* (H* x), with the bias a (and gravity) exactly where the velocity's forces are added too."""
    made_by_joints = all(source.op == "H.T" for source, _ in step.inputs.get("x", ())) and "w" not in step.inputs
    return step.op == "phi.T" and made_by_joints and ("a" in step.flags) == biased


_SOURCES = {
    "M": lambda step: all(_joint_motion(source, biased=False) for source, _ in step.inputs["x"]),
    "C": lambda step: all(source.op == "H.T" for source, _ in step.inputs["x"]),
    "inertial": lambda step: (
        [(w, _joint_motion(source, biased=True), source.uses[-1:]) for source, w in step.inputs.get("x", ())]
        == [(1.0, True, step.uses)]
    ),
}
