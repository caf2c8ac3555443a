"""The action of each operator at one link, and groups of operators that are fused in one joint transition.

    E_phi inside phi and psi             a force enters before the transition, and is carried along with the others
    G y inside psi, H* y inside psi*     z + G (y - H z) instead of tau_bar z + G y, and likewise for motions
    the bias a inside phi*, psi*, psi    added at the cheapest of the joint's own steps
    M alpha + b                          the inertial force of a rigid link

Values are forces and motions in internal link frames, lists of joint numbers or scalars; None is an exact zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..links.articulation import force_to_parent
from ..links.factor import Factor
from ..links.forces import gyroscopic_force, inertial_force
from ..links.kinematics import propagate_acceleration, propagate_acceleration_with_biases
from ..links.link import combine
from ..links.mobility import respond
from ..recursions.schedule import BASE_TO_TIP, TIP_TO_BASE
from ..recursions.tree import Configuration
from ..scalar import Scalar
from ..spatial import Force, Motion, RigidInertia
from ..spatial.motion import NO_MOTION
from ..spatial.three import ZERO
from .record import Action, Combination, Step, one, taken, weighted_sum
from .rotations import angular_velocity
from .spaces import FORCE, JOINT, MOTION, Space
from .values import halves, inner, minus, plus, times

if TYPE_CHECKING:
    from .evaluate import Evaluation
    from .steps import StepBuilder


def local(
    name: str,
    function: Callable[[Configuration, int, Any], Any],
    needs: tuple[Action, ...] = (),
) -> Action:
    """A block-diagonal operator: ``function(at, i, x)`` of the value at the same link."""

    def compute(run: Evaluation, step: Step, i: int) -> Any:
        x = run.input(step, "x", i)
        return None if x is None else function(run.at, i, x)

    return Action(name, compute, needs=needs)


# -- quantities of the whole tree -----------------------------------------------------------------------

ARTICULATED_INERTIAS = Action(
    "riccati",
    lambda run, step, i: run.at.articulation(i),
    TIP_TO_BASE,
    "P_i = M_i + sum over children c of X_c* P+_c X_c, D = H P H* + R, G = P H* D^-1, P+ = P - G D G*",
    "P+ moved to the parent: phi(parent, i) P+(i) phi*(parent, i)",
    "articulated inertias",
    shared=True,
)
COMPOSITE_INERTIAS = Action(
    "composite",
    lambda run, step, i: run.at.composite(i, run.composites_are_regrouped),
    TIP_TO_BASE,
    "C_i = M_i + sum over children c of X_c* C_c X_c",
    "C moved to the parent: phi(parent, i) C(i) phi*(parent, i)",
    "composite inertias",
    shared=True,
)
MOBILITIES = Action(
    "mobility",
    lambda run, step, i: run.at.mobility(i),
    BASE_TO_TIP,
    "Y_i = T_i X_i Y_parent X_i* T_i* + H_i* D_i^-1 H_i with T_i = I - H_i* G_i*",
    "Y moved to the link: phi*(parent, i) Y(parent) phi(parent, i)",
    "mobilities",
    needs=(ARTICULATED_INERTIAS,),
    shared=True,
)


# -- vectors --------------------------------------------------------------------------------------------


def bias_acceleration(run: Evaluation, step: Step, i: int) -> Motion:
    return propagate_acceleration(run.at.joint_kinematics[i], angular_velocity(run, step, i), NO_MOTION)


def _gravity(run: Evaluation, step: Step, i: int) -> Motion | None:
    tree = run.at.tree
    into = run.at.joint_kinematics[i].transform.motion_into
    return None if run.at.neighbours.has_parent(i) else into(tree.base_acceleration)


def _convection(run: Evaluation, step: Step, i: int) -> Motion:
    velocity = run.input(step, "V", i) or NO_MOTION
    return Motion(ZERO, velocity.angular.cross(velocity.linear))


INPUT = Action("input", lambda run, step, i: run.vectors[step.name][max(i, 0)])
BIAS_ACCELERATION = Action("a", bias_acceleration)
BIAS_FORCE = Action(
    "b",
    lambda run, step, i: gyroscopic_force(run.at.tree.links[i].inertia, angular_velocity(run, step, i).omega),
)
CONVECTION = Action("c", _convection)
GRAVITY = Action("g", _gravity)

# -- joints ---------------------------------------------------------------------------------------------


def _project(at: Configuration, i: int, force: Force) -> list[Scalar]:
    return [force.dot(h) for h in at.joint_kinematics[i].motion]


def _gain(at: Configuration, i: int, x: Sequence[Scalar]) -> Force:
    return combine(at.articulation(i).gain, x)


def _gain_adjoint(at: Configuration, i: int, x: Motion) -> list[Scalar]:
    return [g.dot(x) for g in at.articulation(i).gain]


def _rates(run: Evaluation, step: Step, i: int) -> list[Scalar] | None:
    """y - G* x."""
    y, x = run.input(step, "y", i), run.input(step, "x", i)
    return y if x is None else run.at.articulation(i).rates(y, x)


def _spread(run: Evaluation, step: Step, i: int) -> list[Scalar] | None:
    x = run.input(step, "x", -1)
    return None if x is None else run.at.tree.joint_velocities(i, x)


def _collect(run: Evaluation, step: Step, i: int) -> list[Scalar]:
    tree = run.at.tree
    parts = [run.input(step, "x", k) or [0.0] * link.joint.nv for k, link in enumerate(tree.links)]
    return tree.collect(parts)


_ARTICULATED = (ARTICULATED_INERTIAS,)
H = local("H", _project)
H_ADJOINT = local("H.T", lambda at, i, x: combine(at.joint_kinematics[i].motion, x))
S = Action("S", _spread)
S_ADJOINT = Action("S.T", _collect)
G = local("G", _gain, _ARTICULATED)
G_ADJOINT = local("G.T", _gain_adjoint, _ARTICULATED)
RATES = Action("y - G.T", _rates, needs=_ARTICULATED)
TAU_BAR = local("tau_bar", lambda at, i, x: minus(x, _gain(at, i, _project(at, i, x))), _ARTICULATED)
TAU_BAR_ADJOINT = local(
    "tau_bar.T",
    lambda at, i, x: minus(x, at.joint_kinematics[i].relative_motion(_gain_adjoint(at, i, x))),
    _ARTICULATED,
)
D = local("D", lambda at, i, x: [inner(row, x) for row in at.articulation(i).d], _ARTICULATED)
D_INV = local("D_inv", lambda at, i, x: at.articulation(i).factor.solve(x), _ARTICULATED)
D_HALF = local("D_half", lambda at, i, x: at.articulation(i).factor.half(x), _ARTICULATED)
D_HALF_ADJOINT = local("D_half.T", lambda at, i, x: at.articulation(i).factor.half_adjoint(x), _ARTICULATED)
D_HALF_INV = local("D_half_inv", lambda at, i, x: at.articulation(i).factor.half_inverse(x), _ARTICULATED)
D_HALF_INV_ADJOINT = local(
    "D_half_inv.T", lambda at, i, x: at.articulation(i).factor.half_inverse_adjoint(x), _ARTICULATED
)
R = local("R", lambda at, i, x: [a * b for a, b in zip(at.tree.links[i].armature, x, strict=True)])

# -- inertias -------------------------------------------------------------------------------------------


def _inertia(run: Evaluation, step: Step, i: int) -> RigidInertia:
    link = run.at.tree.links[i]
    return link.regrouped if step in run.regrouped else link.inertia


def _momentum(run: Evaluation, step: Step, i: int) -> Force | None:
    x = run.input(step, "x", i)
    return None if x is None else _inertia(run, step, i) @ x


def _composite(run: Evaluation, step: Step, i: int) -> Force | None:
    x = run.input(step, "x", i)
    return None if x is None else run.at.composite(i, step in run.regrouped) @ x


def _inertial_force(run: Evaluation, step: Step, i: int) -> Force:
    acceleration = run.input(step, "x", i) or NO_MOTION
    return inertial_force(_inertia(run, step, i), angular_velocity(run, step, i).omega, acceleration)


def _block_inverse(inertia: Any, force: Force) -> Motion:
    """The inverse of a block of M or P."""
    block = inertia.articulated() if isinstance(inertia, RigidInertia) else inertia
    return Motion.of(Factor.of([[block.entry(i, j) for j in range(6)] for i in range(6)]).solve(list(force.flat())))


M = Action("M", _momentum)
M_INV = local("M_inv", lambda at, i, x: _block_inverse(at.tree.links[i].inertia, x))
COMPOSITE = Action("C", _composite, needs=(COMPOSITE_INERTIAS,))
INERTIAL_FORCE = Action("inertial", _inertial_force)  # M x + b
P = local("P", lambda at, i, x: at.articulated(i) @ x, _ARTICULATED)
P_INV = local("P_inv", lambda at, i, x: _block_inverse(at.articulated(i), x), _ARTICULATED)
P_PLUS = local("P_plus", lambda at, i, x: at.articulation(i).remaining @ x, _ARTICULATED)

# -- recursions -----------------------------------------------------------------------------------------


def _back(at: Configuration, c: int, force: Force | None) -> Force | None:
    return None if force is None else at.joint_kinematics[c].transform.force_back(force)


def _gathered_force(run: Evaluation, step: Step, i: int) -> Force | None:
    return run.from_children(step, i, lambda c: _back(run.at, c, run.input(step, "x", c)))


def _phi(run: Evaluation, step: Step, i: int) -> Force | None:
    def behind(c: int) -> Force | None:
        return _back(run.at, c, plus(run.value(step, c), run.input(step, "w", c)))

    return run.from_children(step, i, behind, run.input(step, "x", i))


def _psi(run: Evaluation, step: Step, i: int) -> Force | None:
    at = run.at

    def behind(c: int) -> Force | None:
        joint, force = at.articulation(c), run.value(step, c)
        innovation = minus(run.input(step, "y", c), None if force is None else _project(at, c, force))
        if innovation is not None:
            force = plus(force, _gain(at, c, innovation))
        force = plus(force, run.input(step, "w", c))
        if BIAS_ACCELERATION in step.absorbed:
            return force_to_parent(joint.kinematics, angular_velocity(run, step, c), joint.remaining, force)
        return _back(at, c, force)

    return run.from_children(step, i, behind, run.input(step, "x", i))


def _incoming_motion(run: Evaluation, step: Step, i: int, role: str = "x") -> Motion | None:
    """z+: the motion that link i receives from its parent, including biases, before its own joint is added."""

    def of_parent(p: int) -> Motion | None:
        motion = run.input(step, role, p)
        return plus(run.value(step, p), motion) if step.action in (PHI_ADJOINT, PSI_ADJOINT) else motion

    if run.at.neighbours.has_parent(i):
        motion = run.from_parent(step, i, of_parent)
    else:
        motion = run.at.tree.base_acceleration if GRAVITY in step.absorbed else None
    kinematics = run.at.joint_kinematics[i]
    if BIAS_ACCELERATION in step.absorbed:
        propagate = propagate_acceleration if step.action is PHI_ADJOINT else propagate_acceleration_with_biases
        return propagate(kinematics, angular_velocity(run, step, i), motion or NO_MOTION)
    return None if motion is None else kinematics.transform.motion_into(motion)


def _phi_adjoint(run: Evaluation, step: Step, i: int) -> Motion | None:
    return plus(_incoming_motion(run, step, i, "w"), run.input(step, "x", i))


def _psi_adjoint(run: Evaluation, step: Step, i: int) -> Motion | None:
    behind = _incoming_motion(run, step, i, "w")
    y = run.input(step, "y", i)
    rates = y if behind is None else run.at.articulation(i).rates(y, behind)
    joint_motion = None if rates is None else run.at.joint_kinematics[i].relative_motion(rates)
    return plus(plus(behind, joint_motion), run.input(step, "x", i))


# Operators fused into recursions --------------------------------------------------------------------------


def _join_phi(build: StepBuilder, action: Action, space: Space, value: Combination) -> Step:
    at_once = {step.action for step, _ in value}
    if len(at_once) == 1 and (joined := at_once.pop().with_phi) is not None:
        before = weighted_sum((weight, step.inputs.get("x", ())) for step, weight in value)
        return build.step(joined, space, {"x": build.fused(before)})
    entering, rest = taken(value, E_PHI)
    return build.step(action, space, {"x": build.fused(rest), "w": build.fused(entering)})


def _join_phi_adjoint(build: StepBuilder, action: Action, space: Space, value: Combination) -> Step:
    value, uses, absorbed = _biases(value)
    entering, rest = taken(value, E_PHI_ADJOINT)
    return build.step(action, space, {"x": build.fused(rest), "w": build.fused(entering)}, uses, absorbed=absorbed)


def _join_psi(build: StepBuilder, action: Action, space: Space, value: Combination) -> Step:
    entering, rest = taken(value, E_PHI)
    joint, entering = taken(entering, G)
    uses: tuple[Step, ...] = ()
    absorbed: frozenset[Action] = frozenset()
    for step, weight in entering:
        if step.action is P_PLUS and weight == 1.0 and _is_just(step.inputs["x"], BIAS_ACCELERATION):
            uses, absorbed = step.inputs["x"][0][0].uses, frozenset({BIAS_ACCELERATION})
            entering = tuple((s, w) for s, w in entering if s is not step)
            break
    inputs = {"x": build.fused(rest), "y": joint, "w": build.fused(entering)}
    return build.step(action, space, inputs, uses, absorbed=absorbed)


def _join_psi_adjoint(build: StepBuilder, action: Action, space: Space, value: Combination) -> Step:
    """tau_bar* (E_phi* w + a + g) has its value just beyond the joint, where it joins the recursion; H* y joins the
    joint."""
    joint, value = taken(value, H_ADJOINT)
    behind, rest = taken(value, TAU_BAR_ADJOINT)
    behind, uses, absorbed = _biases(behind)
    entering, behind = taken(behind, E_PHI_ADJOINT)
    if behind:
        rest = (*rest, (build.step(TAU_BAR_ADJOINT, space, {"x": build.fused(behind)}), 1.0))
    inputs = {"x": build.fused(rest), "y": joint, "w": build.fused(entering)}
    return build.step(action, space, inputs, uses, absorbed=absorbed)


def _is_just(value: Combination, action: Action) -> bool:
    return [step.action for step, weight in value if weight == 1.0] == [action]


def _biases(value: Combination) -> tuple[Combination, tuple[Step, ...], frozenset[Action]]:
    """Split off a and g if their weight is one."""
    bias_steps = [step for step, weight in value if step.action in (BIAS_ACCELERATION, GRAVITY) and weight == 1.0]
    uses = tuple(use for step in bias_steps for use in step.uses)
    return tuple((s, w) for s, w in value if s not in bias_steps), uses, frozenset(step.action for step in bias_steps)


E_PHI = Action("E_phi", _gathered_force, TIP_TO_BASE, "z_i = sum over children c of X_c* x_c")
E_PHI_ADJOINT = Action("E_phi.T", _incoming_motion, BASE_TO_TIP, "z_i = X_i x_parent")
PROPAGATION = Action(  # E_phi* x + a
    "propagation", _incoming_motion, BASE_TO_TIP, "z_i = X_i x_parent + a_i", label="accelerations across the joints"
)
PHI = Action(
    "phi",
    _phi,
    TIP_TO_BASE,
    "z_i = x_i + sum over children c of X_c* (z_c + w_c)",
    "phi(parent, i): the link's force, moved to the parent's origin and axes",
    join=_join_phi,
)
PHI_ADJOINT = Action(
    "phi.T",
    _phi_adjoint,
    BASE_TO_TIP,
    "z_i = X_i (z_parent + w_parent) + x_i",
    "phi*(parent, i): the parent's motion, moved to the link's origin and axes",
    join=_join_phi_adjoint,
)
PSI = Action(
    "psi",
    _psi,
    TIP_TO_BASE,
    "z_i = x_i + sum over children c of X_c* (z_c + G_c (y_c - H_c z_c) + w_c)",
    "psi(parent, i) = phi(parent, i) tau_bar(i): pass the joint, then move",
    needs=_ARTICULATED,
    join=_join_psi,
)
PSI_ADJOINT = Action(
    "psi.T",
    _psi_adjoint,
    BASE_TO_TIP,
    "z_i = z+ + H_i* (y_i - G_i* z+) + x_i with z+ = X_i (z_parent + w_parent)",
    "psi*(parent, i) = tau_bar*(i) phi*(parent, i): move, then pass the joint",
    needs=_ARTICULATED,
    join=_join_psi_adjoint,
)

# -- matrices, one unit column at a time ------------------------------------------------------------------


def _omega(run: Evaluation, step: Step, i: int) -> Motion | None:
    """psi* H* D^-1 H psi x: Y u with u = psi x between the ground and the forces."""
    at, force = run.at, run.input(step, "u", i)
    if force is not None and run.reaches(step, i):
        return respond(at.mobility(i), force)
    inner_motion = run.from_parent(step, i, lambda p: run.value(step, p))
    behind = None if inner_motion is None else at.joint_kinematics[i].transform.motion_into(inner_motion)
    rates = None if force is None else at.articulation(i).factor.solve(_project(at, i, force))
    rates = minus(rates, None if behind is None else _gain_adjoint(at, i, behind))
    return plus(behind, None if rates is None else at.joint_kinematics[i].relative_motion(rates))


def _gain_adjoint_omega(run: Evaluation, step: Step, i: int) -> list[Scalar] | None:
    """K* Omega x, with Y K computed once for all columns."""
    at = run.at

    def of_parent(p: int) -> Force | Motion | None:
        force = run.input(step, "u", p)
        return force if force is not None and run.reaches(step, p) else run.input(step, "omega", p)

    arriving = run.from_parent(step, i, of_parent)
    if isinstance(arriving, Force):
        return [arriving.dot(response) for response in at.response_to_gain(i)]
    return None if arriving is None else _gain_adjoint(at, i, at.joint_kinematics[i].transform.motion_into(arriving))


def _join_omega(build: StepBuilder, action: Action, space: Space, value: Combination) -> Step:
    value = build.fused(value)
    inputs = {"x": value, "u": one(_join_psi(build, PSI, FORCE, value))}
    if action is KT_OMEGA:
        inputs["omega"] = one(_join_omega(build, OMEGA, MOTION, value))
    return build.step(action, space, inputs)


OMEGA = Action(
    "Omega",
    _omega,
    BASE_TO_TIP,
    "z_i = Y_i u_i on the way to the force, else T_i X_i z_parent",
    needs=(ARTICULATED_INERTIAS, MOBILITIES),
    join=_join_omega,
)
KT_OMEGA = Action(
    "Kt_Omega",
    _gain_adjoint_omega,
    BASE_TO_TIP,
    "z_i = (Y_parent K_i)* u_parent on the way to the force, else G_i* X_i z_parent",
    label="K* Omega",
    needs=(ARTICULATED_INERTIAS, MOBILITIES),
    join=_join_omega,
)

# -- numbers --------------------------------------------------------------------------------------------


def _dot(run: Evaluation, step: Step, i: int) -> Scalar | None:
    total = None
    first = next(iter(step.inputs["x"]))[0].space
    links = (-1,) if first is not None and first.is_single else range(len(run.at.tree.links))
    for k in links:
        x, row = run.input(step, "x", k), run.input(step, "row", k)
        if x is not None and row is not None:
            total = plus(total, inner(x, row))
    return total


def _scale(run: Evaluation, step: Step, i: int) -> Any:
    factor, vector = run.input(step, "x", -1), run.input(step, "v", i)
    return None if factor is None or vector is None else times(vector, factor)


def _solve(run: Evaluation, step: Step, i: int) -> Any:
    """Multiply by the inverse of a small symmetric matrix with a known factorization."""
    assert step.factored is not None
    factor = run.factors[step.factored]
    if step.space == JOINT:
        tree = run.at.tree
        parts = [run.input(step, "x", k) or [0.0] * link.joint.nv for k, link in enumerate(tree.links)]
        return tree.per_joint(factor.solve([number for part in parts for number in part]))[i]
    x = run.input(step, "x", -1)
    if x is None:
        return None
    if isinstance(x, list):
        return factor.solve(x)
    assert step.space is not None
    kind = Force if step.space.holds_forces else Motion
    return kind(*halves(factor.solve(list(x.flat()))))


DOT = Action("dot", _dot)
SCALE = Action("scale", _scale)
SOLVE = Action("small", _solve)
