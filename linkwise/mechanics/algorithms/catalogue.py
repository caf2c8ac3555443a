"""The named algorithms: what each takes, what it gives, and what it cannot be asked of.

An algorithm is a function of a tree and of arrays of scalars.  Adding one is adding a line here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...mechanism import Mechanism, MechanismError
from ..operators.apply import apply_expression, input_vectors
from ..operators.expression import JOINT, SCALAR, Expression, Operator, Space
from ..operators.identities import expanded, needs_no_armature
from ..operators.origins import origins_matter
from ..operators.to_recursions import ARTICULATED
from ..recursions.tree import Tree
from . import (
    configuration,
    denoc,
    derivatives,
    diagonal,
    dynamics,
    dynamics_derivatives,
    energy,
    integration,
    jacobians,
    kinematics,
    linearization,
    loop_constraints,
)
from . import expressions as ex
from .coriolis_matrix import coriolis_matrix
from .mimic_joints import refuse_mimic_joints
from .regressor import regressor

SHAPES: dict[str, Callable[[Mechanism], tuple[int, ...]]] = {
    "q": lambda m: (m.nq,),
    "q0": lambda m: (m.nq,),
    "q1": lambda m: (m.nq,),
    "v": lambda m: (m.nv,),
    "a": lambda m: (m.nv,),
    "tau": lambda m: (m.nv,),
    "nu": lambda m: (m.nv,),
    "eps": lambda m: (m.nv,),
    "wrenches": lambda m: (m.n_links, 6),
    "transmitted": lambda m: (m.n_links, 6),
    "dt": lambda m: (),
    "q_rate": lambda m: (m.nq,),
    "q_next": lambda m: (m.nq,),
    "state": lambda m: (m.nq + m.nv,),
    "mass_matrix": lambda m: (m.nv, m.nv),
    "mass_matrix_inverse": lambda m: (m.nv, m.nv),
    "coriolis_matrix": lambda m: (m.nv, m.nv),
    "inertia_matrix": lambda m: (m.nv, m.nv),
    "matrices": lambda m: (6 * m.n_links, 6 * m.n_links + m.nv),
    "factors": lambda m: (2, m.nv, m.nv),
    "factor": lambda m: (m.nv, m.nv),
    "factor_inverse": lambda m: (m.nv, m.nv),
    "derivatives": lambda m: (m.nv,) * 3,
    "partials": lambda m: (3, m.nv, m.nv),
    "second_derivatives": lambda m: (m.nv,) * 4,
    "d_qq": lambda m: (m.nv,) * 3,
    "d_vv": lambda m: (m.nv,) * 3,
    "d_qv": lambda m: (m.nv,) * 3,
    "d_aq": lambda m: (m.nv,) * 3,
    "coriolis": lambda m: (m.nv,),
    "motion": lambda m: (2, m.nv),
    "jacobian": lambda m: (6, m.nv),
    "jacobian_rate": lambda m: (6, m.nv),
    "jacobian_second_rate": lambda m: (6, m.nv),
    "jacobian_derivatives": lambda m: (6, m.nv, m.nv),
    "regressor": lambda m: (m.nv, 10 * m.n_links),
    "parts": lambda m: (3, m.nv),
    "poses": lambda m: (m.n_links, 4, 4),
    "velocities": lambda m: (m.n_links, 6),
    "accelerations": lambda m: (m.n_links, 6),
    "difference_jacobian": lambda m: (m.nv, m.nv),
    "constraint_error": lambda m: (m.n_constraints,),
    "constraint_jacobian": lambda m: (m.n_constraints, m.nv),
    "loop_alignments": lambda m: (len(m.loops),),
    "loop_motion_maps": lambda m: (m.n_constraints, 6),
    "constrained_terms": lambda m: (m.nv + m.n_constraints, m.nv + 2),
    "multipliers": lambda m: (m.n_constraints,),
    "constraint_motion": lambda m: (m.nv + 2 * m.n_constraints,),
    "step_rate_jacobian": lambda m: (m.nv, m.nv),
}

CONFIGURATIONS = ("q", "q0", "q1")  # the names under which algorithms take configurations
CONFIGURATION_FIRST = ("q_next", "state")  # results that are configurations, or begin with one


@dataclass(frozen=True)
class Algorithm:
    """``function(tree, *inputs, **options)`` gives the output array, or several; ``options`` are values fixed when
    compiling."""

    name: str
    inputs: tuple[str, ...]
    output: str | tuple[str, ...]
    function: Callable[..., Any]
    options: tuple[str, ...] = ()
    solves_motion: bool = False  # needs a positive mass matrix, and is wrong where loops are left out
    ignores_loops: bool = False  # gives a result for a mechanism with loops too, but a wrong one
    expression: Callable[..., Expression | None] | None = None  # what it computes, for the same options ...
    may_take_wrenches: bool = False  # ... and ``wrenches=True``: a twin takes wrenches on the links as last input
    differentiates: str | None = None  # see ``derived_from`` in compiler.py
    spaces: Mapping[str, Space] = field(default_factory=dict)  # of inputs that SHAPES does not name
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # core shapes of further inputs
    at_user_origins: bool = False  # the result depends on where the links' origins are
    defaults: Mapping[str, Callable[[Mechanism], Any]] = field(default_factory=dict)  # options that are the mechanism's
    with_loops: str = ""  # what does the same and heeds loops

    def with_defaults(self, mechanism: Mechanism, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with what the mechanism decides where they are silent."""
        silent = (name for name in self.defaults if options.get(name) is None)
        return {**options, **{name: self.defaults[name](mechanism) for name in silent}}

    def shapes(self, mechanism: Mechanism) -> list[tuple[str, tuple[int, ...]]]:
        """Name and core shape of every input."""
        own = {**{name: _shape(space, mechanism) for name, space in self.spaces.items()}, **self.sizes}
        return [(name, own[name] if name in own else SHAPES[name](mechanism)) for name in self.inputs]

    @property
    def configurations(self) -> tuple[str, ...]:
        """The inputs that are configurations, which move along tangent vectors."""
        return tuple(name for name in self.inputs if name in CONFIGURATIONS and name not in {*self.spaces, *self.sizes})

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results."""
        return (self.output,) if isinstance(self.output, str) else self.output

    def result_shape(self, output: str, mechanism: Mechanism) -> tuple[int, ...] | None:
        """Shape of a result, which does not show in the result itself where that has no elements; None if only the
        result tells."""
        if output in SHAPES:
            return SHAPES[output](mechanism)
        if self.expression is None or "q" not in self.inputs or output != "result":
            return None
        expression = self.expression()
        assert expression is not None
        sides = (expression.codomain,) if expression.is_vector else (expression.codomain, expression.domain)
        sizes = [_shape(side, mechanism) for side in sides if side is not None]
        return sizes[0] if expression.is_vector else tuple(math.prod(size) for size in sizes)

    @property
    def under_wrenches(self) -> Algorithm | None:
        """The algorithm that takes wrenches on the links as last input and else is the same, if there is one."""
        if not self.may_take_wrenches:
            return None
        return replace(
            self,
            name=f"{self.name}_with_wrenches",
            inputs=(*self.inputs, "wrenches"),
            expression=self.expression and partial(self.expression, wrenches=True),
            may_take_wrenches=False,
        )

    def check(self, mechanism: Mechanism) -> None:
        """Refuse mechanisms for which the result would be wrong or undefined."""
        if mechanism.loops and (self.solves_motion or self.ignores_loops):
            names = ", ".join(repr(loop.name) for loop in mechanism.loops)
            choice = f"{self.with_loops}, or " if self.with_loops else ""
            raise MechanismError(
                f"{self.name} would ignore the loops {names} of mechanism {mechanism.name!r}: use "
                f"{choice}mech.spanning_tree if the loops are meant to be open"
            )
        if mechanism.singular_joints and self.solves_motion:
            names = ", ".join(map(repr, mechanism.singular_joints))
            raise MechanismError(
                f"{self.name} needs a positive mass matrix, but nothing with inertia moves with joint {names} of "
                f"mechanism {mechanism.name!r}: give its link mass and inertia, the joint armature, or make it fixed"
            )


def _shape(space: Space, mechanism: Mechanism) -> tuple[int, ...]:
    if space == SCALAR:
        return ()
    return (mechanism.nv,) if space == JOINT else (6,) if space.link else (mechanism.n_links, 6)


def from_expression(expression: Expression) -> Algorithm:
    """The algorithm that evaluates an operator expression: q, then its vectors in order of appearance."""
    spaces = input_vectors(expression)

    def evaluate(tree: Tree, q, *arrays):
        mechanism = tree.mechanism
        _refuse(expression, mechanism)
        given = {
            name: [list(array[mechanism.v_index(b.joint)]) for b in mechanism.bodies] if space == JOINT else array
            for (name, space), array in zip(spaces.items(), arrays, strict=True)
        }
        return apply_expression(expression, tree, q, given)

    if "q" in spaces:
        raise ValueError(
            "a vector of an expression must not be called 'q': the kernel's first input is the configuration"
        )
    return Algorithm(
        "expression",
        ("q", *spaces),
        "result",
        evaluate,
        solves_motion=any(
            part.name in ARTICULATED for part in expanded(expression).walk() if isinstance(part, Operator)
        ),
        expression=lambda: expression,
        spaces=spaces,
        at_user_origins=origins_matter(expression),
    )


def _refuse(expression: Expression, mechanism: Mechanism) -> None:
    """What an operator expression cannot be asked of."""
    refuse_mimic_joints(
        mechanism,
        "operators have one coordinate per joint, but {mimic_joints} follow other joints: use the named algorithms, or "
        "build the mechanism without mimic",
    )
    inverse = needs_no_armature(expression)
    if inverse is not None and any(any(b.armature) for b in mechanism.bodies):
        raise MechanismError(
            f"{inverse} is known only without rotor inertias, and joints of mechanism {mechanism.name!r} have "
            "armature: write (H @ phi @ M @ phi.T @ H.T + R).inv"
        )


def _solver(name, inputs, output, function, options=(), expression=None, **more) -> Algorithm:
    return Algorithm(name, inputs, output, function, options, solves_motion=True, expression=expression, **more)


def _of_frame(name, inputs, function) -> Algorithm:
    return Algorithm(name, inputs, name, function, ("link", "frame"))


def _diagonal(name, inputs, output, function, expression=None, **more) -> Algorithm:
    return _solver(f"diagonal_{name}", inputs, output, function, ("normalized",), expression, **more)


STEP = ("q", "v", "tau", "dt")
CLOSED = "linkwise.closed"
LINEARIZATION = "linkwise.linearize or linkwise.linearization.rate_jacobian"

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for listed in (
        Algorithm(
            "inverse_dynamics",
            ("q", "v", "a"),
            "tau",
            dynamics.inverse_dynamics,
            ignores_loops=True,
            expression=lambda wrenches=False: ex.inverse_dynamics(ex.forces_on_links(wrenches)),
            may_take_wrenches=True,
            with_loops=CLOSED,
        ),
        Algorithm(
            "joint_wrenches",
            ("q", "v", "a"),
            "transmitted",
            dynamics.joint_wrenches,
            ignores_loops=True,
            expression=lambda wrenches=False: ex.joint_wrenches(ex.forces_on_links(wrenches)),
            may_take_wrenches=True,
            with_loops="mech.spanning_tree with linkwise.closed.loop_reactions among the wrenches",
        ),
        _solver(
            "forward_dynamics",
            ("q", "v", "tau"),
            "a",
            dynamics.forward_dynamics,
            ("method",),
            lambda method, wrenches=False: ex.FORWARD_DYNAMICS[method](ex.forces_on_links(wrenches)),
            may_take_wrenches=True,
            defaults={"method": dynamics.fastest_method},
            with_loops=CLOSED,
        ),
        _solver(
            "forward_link_accelerations",
            ("q", "v", "tau"),
            "accelerations",
            dynamics.forward_link_accelerations,
            expression=lambda: ex.FORWARD_LINK_ACCELERATIONS,
            at_user_origins=True,
        ),
        _solver("acceleration_parts", ("q", "v", "tau"), "parts", dynamics.acceleration_parts, at_user_origins=True),
        Algorithm(
            "inverse_dynamics_derivatives",
            ("q", "v", "a"),
            "partials",
            dynamics_derivatives.inverse_dynamics_derivatives,
            ignores_loops=True,
            may_take_wrenches=True,
            with_loops=LINEARIZATION,
        ),
        _solver(
            "forward_dynamics_derivatives",
            ("q", "v", "tau"),
            "partials",
            dynamics_derivatives.forward_dynamics_derivatives,
            may_take_wrenches=True,
            with_loops=LINEARIZATION,
        ),
        Algorithm(
            "inverse_dynamics_second_derivatives",
            ("q", "v", "a"),
            ("d_qq", "d_vv", "d_qv", "d_aq"),
            dynamics_derivatives.inverse_dynamics_second_derivatives,
            ignores_loops=True,
            differentiates="inverse_dynamics_derivatives",
        ),
        Algorithm("regressor", ("q", "v", "a"), "regressor", regressor, ignores_loops=True),
        Algorithm("mass_matrix", ("q",), "mass_matrix", dynamics.mass_matrix, expression=lambda: ex.MASS_MATRIX),
        Algorithm("mass_matrix_derivatives", ("q",), "derivatives", derivatives.mass_matrix_derivatives),
        Algorithm(
            "mass_matrix_second_derivatives", ("q",), "second_derivatives", derivatives.mass_matrix_second_derivatives
        ),
        _solver(
            "mass_matrix_inverse",
            ("q",),
            "mass_matrix_inverse",
            dynamics.mass_matrix_inverse,
            expression=lambda: ex.MASS_MATRIX_INVERSE,
            with_loops=CLOSED,
        ),
        Algorithm("bias_force", ("q", "v"), "tau", dynamics.bias_force, expression=lambda: ex.BIAS_FORCE),
        Algorithm("gravity_force", ("q",), "tau", dynamics.gravity_force, expression=lambda: ex.GRAVITY_FORCE),
        Algorithm("coriolis_matrix", ("q", "v"), "coriolis_matrix", coriolis_matrix),
        Algorithm("link_poses", ("q",), "poses", kinematics.link_poses),
        Algorithm("frame_pose", ("q",), "pose", kinematics.frame_pose, options=("link",)),
        Algorithm("link_velocities", ("q", "v"), "velocities", kinematics.link_velocities),
        Algorithm("link_accelerations", ("q", "v", "a"), "accelerations", kinematics.link_accelerations),
        Algorithm(
            "jacobian",
            ("q",),
            "jacobian",
            jacobians.jacobian,
            ("link", "frame"),
            expression=lambda link, frame="link": ex.jacobian(link) if frame == "link" else None,
        ),
        _of_frame("jacobian_rate", ("q", "v"), jacobians.jacobian_rate),
        _of_frame("jacobian_second_rate", ("q", "v", "a"), jacobians.jacobian_second_rate),
        _of_frame("jacobian_derivatives", ("q",), jacobians.jacobian_derivatives),
        _solver(
            "operational_inertia",
            ("q",),
            "inertia",
            dynamics.operational_inertia,
            ("link",),
            lambda link: ex.operational_inertia(link),
            with_loops=CLOSED,
        ),
        Algorithm("kinetic_energy", ("q", "v"), "energy", energy.kinetic_energy),
        Algorithm("potential_energy", ("q",), "energy", energy.potential_energy),
        Algorithm("center_of_mass", ("q",), "position", energy.center_of_mass),
        Algorithm("momentum", ("q", "v"), "momentum", energy.momentum),
        Algorithm("coordinate_rates", ("q", "v"), "q_rate", configuration.coordinate_rates),
        Algorithm("integrate", ("q", "v", "dt"), "q_next", configuration.integrate),
        *(
            _solver(
                f"{name}_step",
                STEP,
                "state",
                partial(integration.step, method),
                may_take_wrenches=True,
                with_loops="linkwise.simulate",
            )
            for name, method in integration.METHODS.items()
        ),
        Algorithm("difference", ("q0", "q1"), "v", configuration.difference),
        Algorithm("difference_jacobian", ("q0", "q1"), "difference_jacobian", configuration.difference_jacobian),
        Algorithm("difference_bias", ("q0", "q1", "v"), "v", configuration.difference_bias),
        Algorithm("position_error", ("q",), "constraint_error", loop_constraints.position_error),
        Algorithm("constraint_jacobian", ("q",), "constraint_jacobian", loop_constraints.constraint_jacobian),
        Algorithm("constraint_bias", ("q", "v"), "constraint_error", loop_constraints.constraint_bias),
        Algorithm("constrained_terms", ("q", "v"), "constrained_terms", loop_constraints.constrained_terms),
        Algorithm("loop_alignments", ("q",), "loop_alignments", loop_constraints.loop_alignments),
        Algorithm("loop_motion_maps", ("q",), "loop_motion_maps", loop_constraints.loop_motion_maps),
        Algorithm(
            "constraint_motion", ("q", "v", "a", "multipliers"), "constraint_motion", linearization.constraint_motion
        ),
        Algorithm("step_rate_jacobian", ("v",), "step_rate_jacobian", linearization.step_rate_jacobian),
        Algorithm("denoc_matrices", ("q",), "matrices", denoc.matrices),
        Algorithm("denoc_inertia_matrix", ("q",), "inertia_matrix", denoc.inertia_matrix),
        Algorithm("denoc_coriolis_matrix", ("q", "v"), "coriolis_matrix", denoc.coriolis_matrix),
        Algorithm("denoc_forces", ("q", "wrenches"), "tau", denoc.forces),
        _solver("denoc_udu", ("q",), "factors", denoc.udu),
        Algorithm("denoc_inverse_dynamics", ("q", "v", "a"), "tau", denoc.inverse_dynamics, ignores_loops=True),
        _solver("denoc_forward_dynamics", ("q", "v", "tau"), "a", denoc.forward_dynamics),
        _diagonal("rates", ("q", "v"), "nu", diagonal.rates, ex.total_rates),
        _diagonal("velocities", ("q", "nu"), "v", diagonal.velocities, ex.relative_rates),
        _diagonal("forces", ("q", "tau"), "eps", diagonal.forces, ex.working_moments),
        _diagonal("forces_of_all", ("q", "tau", "wrenches"), "eps", diagonal.forces_of_all, ex.working_moments_of_all),
        _diagonal("torques", ("q", "eps"), "tau", diagonal.torques, ex.joint_moments),
        _diagonal("factor", ("q",), "factor", diagonal.factor, ex.factor),
        _diagonal("factor_inverse", ("q",), "factor_inverse", diagonal.factor_inverse, ex.factor_inverse),
        _diagonal("factor_derivatives", ("q",), "derivatives", derivatives.factor_derivatives),
        _diagonal("factor_rate", ("q", "v"), "factor", derivatives.factor_rate),
        _diagonal("coriolis", ("q", "nu"), "coriolis", diagonal.coriolis),
        _diagonal("motion", ("q", "nu", "tau"), "motion", diagonal.motion, may_take_wrenches=True),
    )
    for algorithm in (listed, listed.under_wrenches)
    if algorithm
}

#: Name of an algorithm -> name of the one that takes wrenches on the links as last input and else is the same.
WITH_WRENCHES: dict[str, str] = {
    algorithm.name: twin.name for algorithm in ALGORITHMS.values() for twin in (algorithm.under_wrenches,) if twin
}
