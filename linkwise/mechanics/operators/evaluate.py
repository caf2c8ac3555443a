"""Steps at work on a tree: the value of every step at every link, computed on demand and kept.

A value is a Force, a Motion, a list of joint numbers or a single scalar, by the step's space; None is an exact zero.
Forces and motions are in internal link frames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..links.articulation import Factor, force_to_parent
from ..links.forces import gyroscopic_force, inertial_force
from ..links.kinematics import (
    AngularVelocity,
    angular_velocity_base_to_tip,
    propagate_acceleration,
    propagate_acceleration_with_biases,
)
from ..links.link import combine
from ..links.mobility import respond
from ..recursions.schedule import BASE_TO_TIP, Sweep, schedule
from ..recursions.sweep import base_to_tip, tip_to_base
from ..recursions.tree import Configuration
from ..scalar import Scalar
from ..spatial import Force, Motion, RigidInertia
from ..spatial.motion import NO_MOTION
from ..spatial.three import ZERO
from .expression import Expression, Vector
from .to_recursions import Combination, Step
from .values import halves, inner, minus, plus, times

JointVector = Sequence[Sequence[Scalar]]  # one list per joint
SmallFactors = dict[Expression, Factor]  # of 6x6 expressions that are inverted at one link


class Evaluation:
    """Values of steps for given vectors: joint vectors as parts per joint, link vectors as forces or motions."""

    def __init__(
        self,
        configuration: Configuration,
        vectors: Mapping[str, Sequence[Any]],
        regrouped: frozenset[Step] = frozenset(),  # see to_recursions.felt_at_joints_only
        small_factors: SmallFactors | None = None,  # shared by evaluations that differ in vectors alone
    ):
        self.at = configuration
        self.vectors = vectors
        self.regrouped = regrouped
        self.small_factors = {} if small_factors is None else small_factors
        self._values: dict[tuple[Step, int], Any] = {}
        self._above: dict[Step, frozenset[int]] = {}

    def prepare(self, sweeps: Sequence[Sweep[Step]]) -> None:
        """Compute whole sweeps link by link: on demand, their values are a recursion as deep as the tree."""
        count = len(self.at.tree.links)
        for sweep in sweeps:
            for i in range(count) if sweep.direction == BASE_TO_TIP else reversed(range(count)):
                for step in sweep.tasks:
                    if step.op in _METHODS:
                        self.value(step, i)

    def total(self, combination: Combination, i: int) -> Any:
        """The weighted sum at link i."""
        result = None
        for step, weight in combination:
            value = self.value(step, i)
            if value is not None:
                result = plus(result, value if weight == 1.0 else times(value, weight))
        return result

    def value(self, step: Step, i: int) -> Any:
        if step.space is not None and step.space.is_single:
            i = -1  # one value for all links
        key = (step, i)
        if key not in self._values:
            self._values[key] = getattr(self, _METHODS[step.op])(step, i)
        return self._values[key]

    def _input(self, step: Step, role: str, i: int) -> Any:
        return self.total(step.inputs.get(role, ()), i)

    # -- vectors --------------------------------------------------------------------------------------

    def _given(self, step: Step, i: int) -> Any:
        return self.vectors[step.name][max(i, 0)]

    def _spin(self, step: Step, i: int) -> AngularVelocity:
        parent = self.at.tree.links[i].parent
        omega = self.value(step, parent).omega if parent >= 0 else ZERO
        return angular_velocity_base_to_tip(
            self.at.joint_kinematics[i], omega, self.at.coordinates[i], self._input(step, "v", i)
        )

    def _angular_velocity_of(self, step: Step, i: int) -> AngularVelocity:
        return next(self.value(use, i) for use in step.uses if use.op == "spin")

    def _bias_a(self, step: Step, i: int) -> Motion:
        return propagate_acceleration(self.at.joint_kinematics[i], self._angular_velocity_of(step, i), NO_MOTION)

    def _bias_b(self, step: Step, i: int) -> Force:
        return gyroscopic_force(self.at.tree.links[i].inertia, self._angular_velocity_of(step, i).omega)

    def _gravity(self, step: Step, i: int) -> Motion | None:
        tree = self.at.tree
        return (
            self.at.joint_kinematics[i].transform.motion_into(tree.base_acceleration)
            if tree.links[i].parent < 0
            else None
        )

    # -- local operators ------------------------------------------------------------------------------

    def _local(self, step: Step, i: int) -> Any:
        x = self._input(step, "x", i)
        return None if x is None else _LOCAL[step.op](self.at, i, x)

    def _inertia_of(self, step: Step, i: int) -> RigidInertia:
        link = self.at.tree.links[i]
        return link.regrouped if step in self.regrouped else link.inertia

    def _inertia(self, step: Step, i: int) -> Force | None:
        x = self._input(step, "x", i)
        return None if x is None else self._inertia_of(step, i) @ x

    def _composite(self, step: Step, i: int) -> Force | None:
        x = self._input(step, "x", i)
        return None if x is None else self.at.composite(i, step in self.regrouped) @ x

    def _inertial(self, step: Step, i: int) -> Force:
        acceleration = self._input(step, "x", i) or NO_MOTION
        return inertial_force(self._inertia_of(step, i), self._angular_velocity_of(step, i).omega, acceleration)

    # -- recursions -----------------------------------------------------------------------------------

    def _phi(self, step: Step, i: int) -> Force | None:
        total = self._input(step, "x", i)
        for c in self.at.children[i]:
            total = plus(total, _back(self.at, c, plus(self.value(step, c), self._input(step, "w", c))))
        return total

    def _psi(self, step: Step, i: int) -> Force | None:
        total = self._input(step, "x", i)
        for c in self.at.children[i]:
            joint, force = self.at.articulation(c), self.value(step, c)
            innovation = minus(self._input(step, "y", c), None if force is None else _project(self.at, c, force))
            if innovation is not None:
                force = plus(force, _gain(self.at, c, innovation))
            force = plus(force, self._input(step, "w", c))
            if "a" in step.flags:
                message = force_to_parent(joint.kinematics, self._angular_velocity_of(step, c), joint.remaining, force)
                total = plus(total, message)
            else:
                total = plus(total, _back(self.at, c, force))
        return total

    def _behind(self, step: Step, i: int, role: str) -> Motion | None:
        """z+: what reaches link i from its parent, biases included, before its own joint adds anything."""
        tree, parent = self.at.tree, self.at.tree.links[i].parent
        if parent >= 0:
            motion = self._input(step, role, parent)
            if step.op in ("phi.T", "psi.T"):
                motion = plus(self.value(step, parent), motion)
        else:
            motion = tree.base_acceleration if "g" in step.flags else None
        if "a" in step.flags:
            propagate = propagate_acceleration if step.op == "phi.T" else propagate_acceleration_with_biases
            return propagate(self.at.joint_kinematics[i], self._angular_velocity_of(step, i), motion or NO_MOTION)
        return None if motion is None else self.at.joint_kinematics[i].transform.motion_into(motion)

    def _phi_adjoint(self, step: Step, i: int) -> Motion | None:
        return plus(self._behind(step, i, "w"), self._input(step, "x", i))

    def _psi_adjoint(self, step: Step, i: int) -> Motion | None:
        behind = self._behind(step, i, "w")
        rates = minus(self._input(step, "y", i), None if behind is None else _gain_adjoint(self.at, i, behind))
        own = None if rates is None else self.at.joint_kinematics[i].relative_motion(rates)
        return plus(plus(behind, own), self._input(step, "x", i))

    def _cross_in(self, step: Step, i: int) -> Force | None:
        total = None
        for c in self.at.children[i]:
            total = plus(total, _back(self.at, c, self._input(step, "x", c)))
        return total

    def _cross_out(self, step: Step, i: int) -> Motion | None:
        return self._behind(step, i, "x")

    # -- one link -------------------------------------------------------------------------------------

    def _place(self, step: Step, i: int) -> Force | None:
        body, way = self.at.to_frame(step.name)
        force = self._input(step, "x", -1)
        return way.force_back(force) if body == i and force is not None else None

    def _pick(self, step: Step, i: int) -> Motion | None:
        body, way = self.at.to_frame(step.name)
        motion = self._input(step, "x", body) if body >= 0 else None
        return None if motion is None else way.motion_into(motion)

    def _impose(self, step: Step, i: int) -> Motion | None:
        body, way = self.at.to_frame(step.name)
        motion = self._input(step, "x", -1)
        return way.motion_back(motion) if body == i and motion is not None else None

    def _feel(self, step: Step, i: int) -> Force | None:
        body, way = self.at.to_frame(step.name)
        force = self._input(step, "x", body) if body >= 0 else None
        return None if force is None else way.force_into(force)

    def _small_inverse(self, step: Step, i: int) -> Any:
        from .matrices import matrix_of  # a matrix is made of evaluations; this one asks for a small matrix

        x = self._input(step, "x", -1)
        if x is None or step.small is None:
            return None
        small, factors = step.small.of, self.small_factors
        if small not in factors or any(isinstance(part, Vector) for part in small.walk()):
            factors[small] = Factor.of(matrix_of(small, self.at, self.vectors))
        factor = factors[small]
        return type(_zero_of(step))(*halves(factor.solve(list(x.flat()))))

    # -- numbers --------------------------------------------------------------------------------------

    def _dot(self, step: Step, i: int) -> Scalar | None:
        total = None
        for k in range(len(self.at.tree.links)):
            x, row = self._input(step, "x", k), self._input(step, "row", k)
            if x is not None and row is not None:
                total = plus(total, inner(x, row))
        return total

    def _scale(self, step: Step, i: int) -> Any:
        factor, vector = self._input(step, "x", -1), self._input(step, "v", i)
        return None if factor is None or vector is None else times(vector, factor)

    # -- matrices (one unit column at a time) -----------------------------------------------------------

    def _reaches(self, step: Step, i: int) -> bool:
        """Whether the forces that enter the step all act on link i or further out."""
        if step not in self._above:
            touched = [k for k in range(len(self.at.tree.links)) if self._input(step, "x", k) is not None]
            ways = [frozenset(self.at.tree.mechanism.path(k)) for k in touched]
            self._above[step] = frozenset.intersection(*ways) if ways else frozenset()
        return i in self._above[step]

    def _omega(self, step: Step, i: int) -> Motion | None:
        """psi* H* D^-1 H psi x; on the way from the ground to the forces it is Y u with u = psi x."""
        force = self._input(step, "u", i)
        if force is not None and self._reaches(step, i):
            return respond(self.at.mobility(i), force)
        parent = self.at.tree.links[i].parent
        propagated = self.value(step, parent) if parent >= 0 else None
        behind = None if propagated is None else self.at.joint_kinematics[i].transform.motion_into(propagated)
        rates = None if force is None else self.at.articulation(i).factor.solve(_project(self.at, i, force))
        rates = minus(rates, None if behind is None else _gain_adjoint(self.at, i, behind))
        return plus(behind, None if rates is None else self.at.joint_kinematics[i].relative_motion(rates))

    def _gain_adjoint_omega(self, step: Step, i: int) -> list[Scalar] | None:
        """K* Omega x, with Y K made once for all columns."""
        parent = self.at.tree.links[i].parent
        if parent < 0:
            return None
        force = self._input(step, "u", parent)
        if force is not None and self._reaches(step, parent):
            return [force.dot(response) for response in self.at.response_to_gain(i)]
        motion = self._input(step, "omega", parent)
        return (
            None
            if motion is None
            else _gain_adjoint(self.at, i, self.at.joint_kinematics[i].transform.motion_into(motion))
        )


def sweeps_of(steps: Sequence[Step]) -> list[Sweep[Step]]:
    """The fused sweeps in which the steps run."""
    return schedule(steps, Step.dependencies, lambda step: step.direction)


def name_of(sweep: Sweep[Step]) -> str:
    """What is done in a sweep."""
    return ", ".join(dict.fromkeys(step.label for step in sweep.tasks))


def run_sweeps(
    at: Configuration,
    steps: Sequence[Step],
    visit: Callable[[Step, int], Any],
    regrouped: frozenset[Step] = frozenset(),
) -> None:
    """Compute every sweep's steps link by link, in the order that the emitted code will have."""
    regrouped_composites = any(step.op == "C" for step in regrouped)
    for sweep in sweeps_of(steps):
        name = name_of(sweep)

        def work(i: int, _: Any, tasks: Sequence[Step] = sweep.tasks) -> tuple[None, None]:
            for step in tasks:
                if step.op in _OF_THE_TREE:
                    _OF_THE_TREE[step.op](at, i)
                elif step.op == "composite":
                    at.composite(i, regrouped_composites)
                else:
                    visit(step, i)
            return None, None  # values stay in ``at`` and in the evaluation; there is nothing to hand on

        (base_to_tip if sweep.direction == BASE_TO_TIP else tip_to_base)(at.tree.links, name, work)


_OF_THE_TREE: dict[str, Callable[[Configuration, int], Any]] = {
    "riccati": Configuration.articulation,
    "mobility": Configuration.mobility,
}


def _zero_of(step: Step) -> Any:
    assert step.space is not None
    return Force(ZERO, ZERO) if step.space.holds_forces else Motion(ZERO, ZERO)


def _back(at: Configuration, c: int, force: Force | None) -> Force | None:
    return None if force is None else at.joint_kinematics[c].transform.force_back(force)


def _project(at: Configuration, i: int, force: Force) -> list[Scalar]:
    return [force.dot(h) for h in at.joint_kinematics[i].motion]


def _gain(at: Configuration, i: int, x: Sequence[Scalar]) -> Force:
    return combine(at.articulation(i).gain, x)


def _gain_adjoint(at: Configuration, i: int, x: Motion) -> list[Scalar]:
    return [g.dot(x) for g in at.articulation(i).gain]


def _block_inverse(inertia: Any, force: Force) -> Motion:
    """The inverse of a block of M or P."""
    block = inertia.articulated() if isinstance(inertia, RigidInertia) else inertia
    return Motion.of(Factor.of([[block.entry(i, j) for j in range(6)] for i in range(6)]).solve(list(force.flat())))


def _apply_d(at: Configuration, i: int, x: Sequence[Scalar]) -> list[Scalar]:
    return [inner(row, x) for row in at.articulation(i).d]


_LOCAL: dict[str, Callable[[Configuration, int, Any], Any]] = {
    "H": _project,
    "H.T": lambda at, i, x: combine(at.joint_kinematics[i].motion, x),
    "M_inv": lambda at, i, x: _block_inverse(at.tree.links[i].inertia, x),
    "P": lambda at, i, x: at.articulated(i) @ x,
    "P_inv": lambda at, i, x: _block_inverse(at.articulated(i), x),
    "P_plus": lambda at, i, x: at.articulation(i).remaining @ x,
    "D": _apply_d,
    "D_inv": lambda at, i, x: at.articulation(i).factor.solve(x),
    "D_half": lambda at, i, x: at.articulation(i).factor.half(x),
    "D_half.T": lambda at, i, x: at.articulation(i).factor.half_adjoint(x),
    "D_half_inv": lambda at, i, x: at.articulation(i).factor.half_inverse(x),
    "D_half_inv.T": lambda at, i, x: at.articulation(i).factor.half_inverse_adjoint(x),
    "R": lambda at, i, x: [a * b for a, b in zip(at.tree.links[i].armature, x, strict=True)],
    "G": _gain,
    "G.T": _gain_adjoint,
    "tau_bar": lambda at, i, x: minus(x, _gain(at, i, _project(at, i, x))),
    "tau_bar.T": lambda at, i, x: minus(x, at.joint_kinematics[i].relative_motion(_gain_adjoint(at, i, x))),
}

_METHODS = {
    **dict.fromkeys(_LOCAL, "_local"),
    "input": "_given",
    "spin": "_spin",
    "a": "_bias_a",
    "b": "_bias_b",
    "g": "_gravity",
    "M": "_inertia",
    "C": "_composite",
    "inertial": "_inertial",
    "phi": "_phi",
    "psi": "_psi",
    "phi.T": "_phi_adjoint",
    "psi.T": "_psi_adjoint",
    "E_phi": "_cross_in",
    "E_phi.T": "_cross_out",
    "carry": "_cross_out",
    "A": "_impose",
    "A.T": "_feel",
    "B": "_place",
    "B.T": "_pick",
    "small": "_small_inverse",
    "dot": "_dot",
    "scale": "_scale",
    "Omega": "_omega",
    "Kt_Omega": "_gain_adjoint_omega",
}
