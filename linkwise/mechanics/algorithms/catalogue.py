"""The named algorithms: what each takes, what it gives, and what it cannot be asked of.

An algorithm is an operator expression (``expressions.py``), or a recursion written by hand, each with the reason why.
Adding one is adding an entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

from ...mechanism import MechanismError
from ..operators import D
from ..recursions.mass_centres import at_mass_centres
from . import (
    by_columns,
    centroidal,
    compliant_contact,
    configuration,
    constrained_rates,
    denoc,
    dexterity,
    diagonal,
    dynamics,
    dynamics_derivatives,
    energy,
    frame_motion,
    inertia_derivatives,
    integration,
    jacobians,
    kinematics,
    two_sweeps,
)
from . import diagonal_by_elimination as by_elimination
from . import expressions as ex
from .algorithm import CONFIGURATION_FIRST, SHAPES, Algorithm, from_expression
from .catalogue_of_estimation import ESTIMATION_ALGORITHMS
from .catalogue_of_loops import LOOP_ALGORITHMS, MANIFOLD, STEP, closed_step
from .catalogue_of_variables import MOMENTUM_ALGORITHMS, steps_of
from .coriolis_matrix import coriolis_matrix
from .regressor import regressor
from .step_derivatives import step_derivatives

__all__ = ["ALGORITHMS", "CONFIGURATION_FIRST", "SHAPES", "Algorithm", "from_expression", "variants"]

CLOSED = "linkwise.closed"
LINEARIZATION = "linkwise.linearize or linkwise.linearization.rate_jacobian"

# Why recursions are written by hand.
POSES = "poses form a group, not a linear space: no operator gives them"
QUADRATIC = "a sum over links of products of a vector with itself, or of first moments of mass"
CENTRE_OF_MASS = (
    "no link has its origin at the common centre of mass: what expressions give at the ground is moved there"
)
NUMBERS = "a function of numbers that expressions give, not linear in them"
OBSERVERS = "operators see each link in its own frame; observers elsewhere need poses"
COMPOSITE_BODIES = "products of derivatives share composite bodies; operator by operator they would be summed again"
ELIMINATED = (
    "M = U D U* by elimination of its elements (saha1999 40), U^-1 = I - H psi K: no link passes on forces of six "
    "components, which costs less until paths to the base are long"
)
RATES = "rates of articulated inertias: a second recursion beside that of P, which shares its velocities"
CONTACT = "forces that follow from depths and velocities of shapes, not linear in them"
BETWEEN_MASS_CENTRES = "joints are eliminated on their axes, halfway between mass centres: operators act at one frame"
MASS_CENTRES = "twists at mass centres along the world's axes: frames that no link has"


def _of_frame(name: str, inputs: tuple[str, ...], recursion: Callable[..., Any]) -> Algorithm:
    return Algorithm(name, inputs, name, recursion, ("link", "frame"), reason=OBSERVERS)


def _centroidal(name: str, inputs: tuple[str, ...], output: str) -> Algorithm:
    return Algorithm(name, inputs, output, getattr(centroidal, name), reason=CENTRE_OF_MASS)


def _diagonal(name: str, inputs: tuple[str, ...], output: str, **more: Any) -> Algorithm:
    for way in ("expression", "recursion"):
        if way in more:
            more[way] = partial(_of_tree, more[way])
    return Algorithm(
        f"diagonal_{name}",
        inputs,
        output,
        options=("normalized", "fronts", "independent_velocities"),
        coupled=partial(_coupled, name),
        within_loops=True,
        heeds_loops=True,
        **more,
    )


def _of_tree(
    function: Callable[..., Any],
    *given: Any,
    normalized: bool = True,
    fronts: Any = None,
    independent_velocities: Any = None,
    **ports: Any,
) -> Any:
    """A function of trees, which have no constraints to eliminate."""
    _refuse_choice(independent_velocities)
    return function(*given, normalized=normalized, **ports)


def _coupled(name: str, tree: Any, *given: Any, fronts: Any, independent_velocities: Any = None, **more: Any) -> Any:
    """By elimination: of constraints, or of the mass matrix where joints mimic others."""
    if tree.mechanism.loops:
        return constrained_rates.BY_NAME[name](
            tree, *given, fronts=fronts, independent_velocities=independent_velocities, **more
        )
    _refuse_choice(independent_velocities)
    return by_elimination.BY_NAME[name](tree, *given, **more)


def _refuse_choice(independent: Any) -> None:
    if independent is not None:
        raise MechanismError(
            "independent= chooses among coordinates that constraints couple, and there are none: leave it out"
        )


def _transform(name: str, inputs: tuple[str, ...], output: str) -> Algorithm:
    return _diagonal(name, inputs, output, expression=ex.DIAGONALIZING[name], on_tree=lambda tree: tree.regrouped)


def _step(name: str, method: integration.Method) -> Algorithm:
    return Algorithm(
        f"{name}_step",
        STEP,
        "state",
        partial(integration.step, method),
        reason=MANIFOLD,
        solves_motion=True,
        ports=("wrenches",),
        link_by_link=True,
        with_loops=f"closed_{name}_step, linkwise.rollout or linkwise.simulate",
    )


def _step_derivatives(name: str, method: integration.Method) -> Algorithm:
    return Algorithm(
        f"{name}_step_derivatives",
        STEP,
        ("state_by_state", "state_by_tau"),
        partial(step_derivatives, method),
        reason=COMPOSITE_BODIES,
        solves_motion=True,
        ports=("wrenches",),
        with_loops=LINEARIZATION,
    )


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        # -- motion and forces
        Algorithm(
            "inverse_dynamics",
            ("q", "v", "a"),
            "tau",
            expression=lambda mech, wrenches=False: ex.inverse_dynamics(ex.forces_on_links(wrenches)),
            ignores_loops=True,
            ports=("wrenches",),
            constrained="closed_inverse_dynamics",
        ),
        Algorithm(
            "joint_wrenches",
            ("q", "v", "a"),
            "transmitted",
            expression=lambda mech, wrenches=False: ex.joint_wrenches(ex.forces_on_links(wrenches)),
            ignores_loops=True,
            ports=("wrenches",),
            constrained="closed_joint_wrenches",
        ),
        Algorithm(
            "forward_dynamics",
            ("q", "v", "tau"),
            "a",
            two_sweeps.forward_dynamics,
            options=("method",),
            expression=lambda mech, method, wrenches=False: (
                None if method == two_sweeps.NAME else ex.forward_dynamics(mech, method, wrenches)
            ),
            reason=two_sweeps.REASON,
            solves_motion=True,
            ports=("wrenches",),
            defaults={"method": ex.fastest_method},
            on_tree=ex.tree_of_forward_dynamics,
            constrained="closed_forward_dynamics",
        ),
        Algorithm(
            "forward_link_accelerations",
            ("q", "v", "tau"),
            "accelerations",
            expression=ex.forward_link_accelerations,
            solves_motion=True,
        ),
        Algorithm(
            "acceleration_parts",
            ("q", "v", "tau"),
            "parts",
            expression=lambda mech: ex.ACCELERATION_PARTS,
            solves_motion=True,
        ),
        Algorithm("mass_matrix", ("q",), "mass_matrix", expression=lambda mech: ex.MASS_MATRIX),
        Algorithm(
            "mass_matrix_inverse",
            ("q",),
            "mass_matrix_inverse",
            dynamics.mass_matrix_inverse,
            in_loops=by_columns.INVERSE,
            expression=lambda mech: None if ex.is_eliminated_for_less(mech) else ex.MASS_MATRIX_INVERSE,
            reason=ELIMINATED,
            solves_motion=True,
            with_loops=CLOSED,
        ),
        Algorithm("bias_force", ("q", "v"), "tau", expression=lambda mech: ex.BIAS_FORCE),
        Algorithm("gravity_force", ("q",), "tau", expression=lambda mech: ex.GRAVITY_FORCE),
        Algorithm(
            "static_forces",
            ("q",),
            "tau",
            expression=lambda mech, wrenches=False: ex.static_forces(wrenches),
            ignores_loops=True,
            ports=("wrenches",),
            constrained="closed_static_forces",
        ),
        Algorithm("coriolis_matrix", ("q", "v"), "coriolis_matrix", coriolis_matrix, reason=COMPOSITE_BODIES),
        Algorithm("kinetic_energy", ("q", "v"), "energy", energy.kinetic_energy, reason=QUADRATIC),
        Algorithm("potential_energy", ("q",), "energy", energy.potential_energy, reason=QUADRATIC),
        Algorithm("center_of_mass", ("q",), "position", energy.center_of_mass, reason=QUADRATIC),
        Algorithm("momentum", ("q", "v"), "momentum", expression=lambda mech: ex.MOMENTUM),
        Algorithm("momentum_matrix", ("q",), "momentum_matrix", expression=lambda mech: ex.MOMENTUM_MATRIX),
        Algorithm("momentum_rate", ("q", "v", "a"), "momentum_rate", expression=lambda mech: ex.MOMENTUM_RATE),
        _centroidal("centroidal_momentum", ("q", "v"), "momentum"),
        _centroidal("centroidal_momentum_rate", ("q", "v", "a"), "momentum_rate"),
        _centroidal("centroidal_momentum_matrix", ("q",), "momentum_matrix"),
        _centroidal("centroidal_momentum_matrix_rate", ("q", "v"), "momentum_matrix"),
        _centroidal("center_of_mass_jacobian", ("q",), "center_of_mass_jacobian"),
        _centroidal("center_of_mass_velocity", ("q", "v"), "velocity"),
        _centroidal("center_of_mass_acceleration", ("q", "v", "a"), "acceleration"),
        # -- compliant contact
        Algorithm(
            "contact_wrenches",
            ("q", "v"),
            "wrenches",
            compliant_contact.contact_wrenches,
            ("explicit",),
            reason=CONTACT,
        ),
        Algorithm(
            "contact_points",
            ("q", "v"),
            "contact_points",
            compliant_contact.contact_points,
            ("explicit",),
            reason=CONTACT,
            sizes={"contact_points": lambda mech: (len(mech.contact_parts), 10)},
        ),
        Algorithm("contact_energy", ("q",), "energy", compliant_contact.contact_energy, ("explicit",), reason=CONTACT),
        # -- kinematics
        Algorithm("link_poses", ("q",), "poses", kinematics.link_poses, reason=POSES, link_by_link=True),
        Algorithm("frame_pose", ("q",), "pose", kinematics.frame_pose, ("link",), reason=POSES),
        Algorithm("link_velocities", ("q", "v"), "velocities", expression=lambda mech: ex.LINK_VELOCITIES),
        Algorithm(
            "link_accelerations", ("q", "v", "a"), "accelerations", expression=lambda mech: ex.LINK_ACCELERATIONS
        ),
        Algorithm(
            "jacobian",
            ("q",),
            "jacobian",
            jacobians.jacobian,
            ("link", "frame"),
            expression=lambda mech, link, frame="link": ex.jacobian(mech, link) if frame == "link" else None,
            reason=OBSERVERS,
        ),
        Algorithm(
            "frame_velocity",
            ("q", "v"),
            "velocity",
            frame_motion.frame_velocity,
            ("link", "frame"),
            expression=lambda mech, link, frame="link": ex.frame_velocity(mech, link) if frame == "link" else None,
            reason=OBSERVERS,
        ),
        Algorithm(
            "frame_acceleration",
            ("q", "v", "a"),
            "acceleration",
            frame_motion.frame_acceleration,
            ("link", "frame", "classical"),
            expression=lambda mech, link, frame="link", classical=False: (
                ex.frame_acceleration(mech, link) if frame == "link" and not classical else None
            ),
            reason=OBSERVERS,
        ),
        Algorithm(
            "jacobian_rate_times_velocity",
            ("q", "v"),
            "acceleration",
            frame_motion.jacobian_rate_times_velocity,
            ("link", "frame"),
            expression=lambda mech, link, frame="link": (
                ex.jacobian_rate_times_velocity(mech, link) if frame == "link" else None
            ),
            reason=OBSERVERS,
        ),
        _of_frame("jacobian_rate", ("q", "v"), jacobians.jacobian_rate),
        _of_frame("jacobian_second_rate", ("q", "v", "a"), jacobians.jacobian_second_rate),
        _of_frame("jacobian_derivatives", ("q",), jacobians.jacobian_derivatives),
        Algorithm(
            "operational_inertia",
            ("q",),
            "inertia",
            dexterity.operational_inertia,
            ("link", "frame", "units"),
            expression=lambda mech, link, frame="link", **_: (
                ex.operational_inertia(mech, link) if frame == "link" and not mech.loops else None
            ),
            reason=OBSERVERS,
            solves_motion=True,
            heeds_loops=True,
            ports=("active",),
        ),
        Algorithm(
            "effective_inertia",
            ("q", "direction"),
            "inertia",
            dexterity.effective_inertia,
            ("link", "frame", "units"),
            sizes={"direction": (6,)},
            reason=NUMBERS,
            solves_motion=True,
            heeds_loops=True,
            ports=("active",),
        ),
        Algorithm(
            "manipulability",
            ("q",),
            "manipulability",
            dexterity.manipulability,
            ("link", "rows", "frame", "units"),
            reason=NUMBERS,
            ports=("active",),
        ),
        Algorithm(
            "frame_mobilities",
            ("q",),
            "mobilities",
            dexterity.delassus_matrix,
            ("frames", "frame", "units"),
            reason=OBSERVERS,
            solves_motion=True,
            heeds_loops=True,
            ports=("active",),
        ),
        # -- the configuration manifold, steps in time
        Algorithm(
            "coordinate_rates", ("q", "v"), "q_rate", configuration.coordinate_rates, reason=MANIFOLD, link_by_link=True
        ),
        Algorithm("integrate", ("q", "v", "dt"), "q_next", configuration.integrate, reason=MANIFOLD, link_by_link=True),
        Algorithm("difference", ("q0", "q1"), "v", configuration.difference, reason=MANIFOLD, link_by_link=True),
        Algorithm(
            "difference_jacobian",
            ("q0", "q1"),
            "difference_jacobian",
            configuration.difference_jacobian,
            reason=MANIFOLD,
        ),
        Algorithm(
            "difference_derivatives",
            ("q0", "q1"),
            "tangent_partials",
            configuration.difference_derivatives,
            reason=MANIFOLD,
        ),
        Algorithm(
            "integrate_derivatives",
            ("q", "v", "dt"),
            "tangent_partials",
            configuration.integrate_derivatives,
            reason=MANIFOLD,
        ),
        Algorithm("difference_bias", ("q0", "q1", "v"), "v", configuration.difference_bias, reason=MANIFOLD),
        *(_step(name, method) for name, method in integration.METHODS.items()),
        *(_step_derivatives(name, method) for name, method in integration.METHODS.items()),
        # -- derivatives and identification
        Algorithm(
            "inverse_dynamics_derivatives",
            ("q", "v", "a"),
            "partials",
            dynamics_derivatives.inverse_dynamics_derivatives,
            reason=COMPOSITE_BODIES,
            link_by_link=True,
            ignores_loops=True,
            ports=("wrenches",),
            with_loops="linkwise.inverse_dynamics_derivatives itself, which no kernel gives then",
        ),
        Algorithm(
            "forward_dynamics_derivatives",
            ("q", "v", "tau"),
            "partials",
            dynamics_derivatives.forward_dynamics_derivatives,
            reason=COMPOSITE_BODIES,
            in_loops=by_columns.DERIVATIVES,
            solves_motion=True,
            ports=("wrenches",),
            constrained="closed_forward_dynamics_derivatives",
        ),
        Algorithm(
            "inverse_dynamics_second_derivatives",
            ("q", "v", "a"),
            ("d_qq", "d_vv", "d_qv", "d_aq"),
            dynamics_derivatives.inverse_dynamics_second_derivatives,
            reason=COMPOSITE_BODIES,
            ignores_loops=True,
            differentiates="inverse_dynamics_derivatives",
        ),
        Algorithm(
            "mass_matrix_derivatives",
            ("q",),
            "derivatives",
            inertia_derivatives.mass_matrix_derivatives,
            reason=COMPOSITE_BODIES,
        ),
        Algorithm(
            "mass_matrix_second_derivatives",
            ("q",),
            "second_derivatives",
            inertia_derivatives.mass_matrix_second_derivatives,
            reason=COMPOSITE_BODIES,
        ),
        Algorithm("regressor", ("q", "v", "a"), "regressor", regressor, reason=COMPOSITE_BODIES),
        # -- estimation
        *ESTIMATION_ALGORITHMS,
        # -- loops
        *LOOP_ALGORITHMS,
        # -- joint momenta in place of velocities
        *MOMENTUM_ALGORITHMS,
        # -- saha1999: twists at the mass centres
        Algorithm("denoc_matrices", ("q",), "matrices", denoc.matrices, reason=MASS_CENTRES),
        Algorithm("denoc_forces", ("q", "wrenches"), "tau", denoc.forces, reason=MASS_CENTRES),
        Algorithm(
            "denoc_coriolis_matrix", ("q", "v"), "coriolis_matrix", denoc.coriolis_matrix, reason=COMPOSITE_BODIES
        ),
        Algorithm(
            "denoc_inertia_matrix",
            ("q",),
            "inertia_matrix",
            expression=lambda mech: ex.MASS_MATRIX,
            on_tree=at_mass_centres,
        ),
        Algorithm(
            "denoc_udu",
            ("q",),
            "factors",
            expression=lambda mech: (denoc.U, D),
            on_tree=at_mass_centres,
            coupled=denoc.udu_by_elimination,
            solves_motion=True,
        ),
        Algorithm(
            "denoc_inverse_dynamics",
            ("q", "v", "a"),
            "tau",
            expression=lambda mech: ex.inverse_dynamics(ex.b),
            on_tree=at_mass_centres,
            ignores_loops=True,
        ),
        Algorithm(
            "denoc_accelerations",
            ("q", "tau"),
            "a",
            denoc.accelerations,
            reason=BETWEEN_MASS_CENTRES,
            solves_motion=True,
        ),
        Algorithm(
            "denoc_forward_dynamics",
            ("q", "v", "tau"),
            "a",
            denoc.forward_dynamics,
            reason=BETWEEN_MASS_CENTRES,
            solves_motion=True,
        ),
        # -- jain1995: total joint rates
        _transform("rates", ("q", "v"), "nu"),
        _transform("velocities", ("q", "nu"), "v"),
        _transform("forces", ("q", "tau"), "eps"),
        _transform("forces_of_all", ("q", "tau", "wrenches"), "eps"),
        _transform("torques", ("q", "eps"), "tau"),
        _transform("factor", ("q",), "factor"),
        _transform("factor_inverse", ("q",), "factor_inverse"),
        _diagonal(
            "factor_derivatives", ("q",), "derivatives", recursion=inertia_derivatives.factor_derivatives, reason=RATES
        ),
        _diagonal("factor_rate", ("q", "v"), "factor", recursion=inertia_derivatives.factor_rate, reason=RATES),
        _diagonal("coriolis", ("q", "nu"), "coriolis", recursion=diagonal.coriolis, reason=RATES),
        _diagonal("motion", ("q", "nu", "tau"), "motion", recursion=diagonal.motion, reason=RATES, ports=("wrenches",)),
    )
}


def variants() -> list[Algorithm]:
    """All algorithms, each without and with all choices of its optional inputs."""
    return [
        algorithm.with_ports(*chosen)
        for algorithm in ALGORITHMS.values()
        for count in range(len(algorithm.ports) + 1)
        for chosen in combinations(algorithm.ports, count)
    ]


def register_integrator(name: str, method: integration.Method) -> None:
    """Make a method of fixed steps known: ``rollout`` and ``simulate`` then take its name, and ``compile`` the names of
    its steps and their derivatives, NAME_step, closed_NAME_step and NAME_step_derivatives; a ``Tableau`` also in
    momenta and total rates, momentum_NAME_step, nu_NAME_step, xi_NAME_step.

    method   a ``Tableau`` (explicit Runge-Kutta) or a ``Splitting`` (velocities and positions in turn)
    """
    if not isinstance(method, (integration.Tableau, integration.Splitting)):
        raise TypeError(f"a method of fixed steps is a linkwise.Tableau or a linkwise.Splitting, not {method!r}")
    if name in integration.METHODS:
        raise ValueError(f"method {name!r} is known already; known: {', '.join(integration.METHODS)}")
    integration.METHODS[name] = method
    for step in (_step(name, method), closed_step(name, method), _step_derivatives(name, method), *steps_of(name)):
        ALGORITHMS[step.name] = step
