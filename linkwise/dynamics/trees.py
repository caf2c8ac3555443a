"""The public functions of arrays.  Each compiles its kernel on first use and keeps it with the mechanism.

Terms of the equation of motion M a + h = tau - G* lambda (mass matrix, bias, gravity) are those of the spanning tree,
also with constraints; solutions (accelerations, forces, reactions) satisfy them.  q is (nq,), v, a and
tau are (nv,), each with any leading batch shape; see docs/conventions.md for frames.
All-float32 arguments give float32 results, everything else is computed in float64.  Kernels of trees, and of terms of
the equation of motion, compute in float32.  Solutions under constraints, with force elements or with settings are
computed in float64 and rounded, because ranks and pivots of constraints need double precision.
"""

from __future__ import annotations

import operator
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.store import either, kernel_function, of_algorithm
from ..mechanism import Mechanism, require_mechanism
from ..mechanism.sampling import redraw_within_limits
from .settings import ForwardDynamicsSettings, InverseDynamicsSettings, JointWrenchesSettings, StaticForcesSettings
from .states import ByJoint, Float64Array

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _solving() -> ModuleType:
    from . import motion_and_forces  # here, so that importing the package stays quick

    return motion_and_forces


@of_algorithm(
    "inverse_dynamics",
    general=lambda: _solving().inverse_dynamics,
    settings=InverseDynamicsSettings,
)
def inverse_dynamics(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    a: ByJoint | None = None,
    wrenches: ArrayLike | None = None,
    **settings: Unpack[InverseDynamicsSettings],
) -> Float64Array:
    """Joint forces (nv,) that give accelerations ``a`` (RNEA), without springs and other force elements
    (``forces="none"``); ``wrenches`` (n_links, 6) act on the links, in link frames.

    With constraints, forces are not unique: the result has the least norm, a force counting as a torque at the
    mechanism's length.  It is zero at joints that are not ``actuated`` (default: all are, with a ``MechanismWarning``
    for forces at floating joints), or at ``unactuated`` ones.  Omitted arguments are zero.

    a              (nv,), consistent with the constraints.  With ``independent`` (as for ``forward_dynamics``), only the
                   accelerations of these joints, rows or coordinates; accelerations by joint, {"crank": 2.0}, are
                   independent.  Further degrees of freedom, such as the spin of a rod between two ball joints, move
                   freely if the unactuated joints determine them
    weights        one positive number per actuated coordinate: minimize the sum of weights * force^2 instead
    distribution   (actuated coordinates, k) or (actuated coordinates,): patterns of shared effort, one per column; the
                   forces are ``distribution @ x`` with the x that produces the motion, the smallest if k exceeds the
                   degrees of freedom
    active         (..., len(mech.loops)) booleans: active constraints, state by state; default: all
    forces, ctrl, activation   active force elements, as for ``forward_dynamics``; their forces are subtracted from the
                   joint forces
    """
    if not settings:
        if wrenches is not None:
            return kernel_function(mech, ("inverse_dynamics", ("ports", ("wrenches",))))(q, v, a, wrenches)
        return kernel_function(mech, "inverse_dynamics")(q, v, a)
    return _solving().inverse_dynamics(mech, q, v, a, wrenches, **settings)


@of_algorithm(
    "joint_wrenches",
    general=lambda: _solving().joint_wrenches,
    settings=JointWrenchesSettings,
)
def joint_wrenches(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    a: ByJoint | None = None,
    wrenches: ArrayLike | None = None,
    **settings: Unpack[JointWrenchesSettings],
) -> Float64Array:
    """(n_links, 6): [moment; force] that each moving joint transmits onto its link (the reaction forces, together with
    the joint's own), at the link's origin, in link axes; ``wrenches`` as in inverse dynamics, without springs and other
    force elements (``forces="none"``).

    The motion is given by accelerations ``a`` or joint forces ``tau``.  Along the degrees of freedom of a joint the
    wrench is the joint force without the rotor's part: H f = tau - armature * a.

    With constraints, accelerations do not determine how joints share a load: ``a`` stands for the forces of
    ``inverse_dynamics`` at the ``actuated`` joints.  Joints that close loops have ``lw.constraints.loop_reactions``.
    Rigid-body mechanics does not determine reactions of overconstrained mechanisms: they belong to the multipliers of
    least norm, forces counting as moments at the mechanism's longest offset.  Couplings act along the degrees of
    freedom only; tooth forces are not among the wrenches.  A kernel (``lw.compile``) takes q, v and a without
    constraints, q, v and tau with them.

    active         (..., len(mech.loops)) booleans: active constraints, state by state; default: all
    forces, ctrl, activation   active force elements, as for ``forward_dynamics``
    """
    if not settings:
        if wrenches is not None:
            return kernel_function(mech, ("joint_wrenches", ("ports", ("wrenches",))))(q, v, a, wrenches)
        return kernel_function(mech, "joint_wrenches")(q, v, a)
    return _solving().joint_wrenches(mech, q, v, a, wrenches, **settings)


@of_algorithm(
    "forward_dynamics",
    general=lambda: _solving().forward_dynamics,
    with_constraints=lambda: _solving().constrained_dynamics.forward_dynamics_of,
    settings=ForwardDynamicsSettings,
)
def forward_dynamics(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    wrenches: ArrayLike | None = None,
    method: str | None = None,
    **settings: Unpack[ForwardDynamicsSettings],
) -> Float64Array:
    """Accelerations (nv,) under joint forces ``tau`` and external ``wrenches`` (n_links, 6), in link frames (ABA), all
    constraints kept; without springs and other force elements (``forces="none"``).  Omitted arguments are zero.

    forces       active force elements: "none"; "all", those that ``mech.with_acting`` leaves switched on; kinds by
                 name ("springs", "damping", "friction", "limits", "actuators", "tendons", "gravity_compensation",
                 "fluid", "contact"); a ``lw.forces.Passive``; or a sequence of kinds and a ``lw.forces.Passive``
    ctrl         (..., n_ctrl): control inputs of ``mech.forces.actuator_names``, or {actuator: input}; zero if left out
    activation   (..., n_activation): states of actuators with dynamics, zero if left out
    active       (..., len(mech.loops)) booleans: active constraints, state by state; others are released, like open
                 contacts; one kernel serves all masks
    method       trees: one of the papers' algorithms, which differ in rounding and cost only: "biased", "bias_free",
                 "without_dalembert_forces" (rodriguez1992 Algorithms 3, 1 and 4), "filter_and_smoother" (rodriguez1986
                 Result 8.1, known as the articulated-body algorithm), "two_sweeps" (inwards and outwards, no
                 velocity sweep; rodriguez1992, end of VII-D), "composite_bodies" (the mass matrix, factored; Walker and
                 Orin 1982).  By default "composite_bodies" for arms of up to seven revolute joints, "biased" if most
                 joints are revolute about skew axes, "bias_free" with mimic joints (the only one for coupled joints),
                 else "filter_and_smoother".
                 With constraints: "elimination" (default; compiled: loops are eliminated cluster by cluster, in O(N);
                 singular and nearly singular states are left to "svd"), "svd" (spencer2004 3.5; the reference, valid
                 in singular positions), "lagrange" (2.4, 2.5), "partitioning", "tangent",
                 "differentiable" (2.43 with different K); they agree away from singular positions
    independent  coordinates of the null space: names of joints and coordinates ("platform.x"), rows (p, nv) with
                 dy/dt = rows v, ``Coordinates`` or ``lw.kinematics.implicit_coordinates(...)`` (2.25-2.31)
    baumgarte    (alpha, beta): loops are pulled closed, g'' + 2 alpha g' + beta^2 g = 0 (3.8, 3.9)
    damping      softens constraints (3.3): the damped least-squares inverse of G, with this fraction of its largest
                 singular value, replaces the pseudo-inverse; accelerations stay bounded, but loops may open near
                 singular positions
    rank         (...): upper bound of the number of independent constraints, for loops that are not exactly closed
    tolerance    singular values of G below this fraction of the largest count as zero, by default 1e-8,
                 and constraints redundant up to the rounding of the data (``redundancy``) do not count

    With ``baumgarte``, ``independent``, ``damping`` or ``tolerance``, "elimination" is replaced by "svd".  A
    ``MechanismWarning`` reports loops open by more than a thousandth of their size or 1 mrad, unless ``baumgarte``
    closes them, and velocities that open loops.  Velocities by joint, {"crank": 10.0}, are completed to consistent
    ones.
    """
    if not settings and method is None:
        if wrenches is not None:
            return kernel_function(mech, ("forward_dynamics", ("ports", ("wrenches",))))(q, v, tau, wrenches)
        return kernel_function(mech, "forward_dynamics")(q, v, tau)
    return _solving().forward_dynamics(mech, q, v, tau, wrenches, method, **settings)


@of_algorithm("forward_link_accelerations")
def forward_link_accelerations(mech: Mechanism, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Float64Array:
    """(n_links, 6): accelerations of the link origins under ``tau`` for an inertial observer, in link axes
    (rodriguez1992 Algorithm 2).
    """
    return kernel_function(mech, "forward_link_accelerations")(q, v, tau)


@of_algorithm("acceleration_parts")
def acceleration_parts(mech: Mechanism, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Float64Array:
    """(3, nv): accelerations due to joint forces, to gyroscopic forces, and to bias accelerations with gravity; their
    sum is forward dynamics (rodriguez1986 10.2).  The split, not the sum, depends on the origins of link frames."""
    return kernel_function(mech, "acceleration_parts")(q, v, tau)


@of_algorithm("mass_matrix")
def mass_matrix(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(nv, nv): the mass matrix, symmetric, armature included."""
    return kernel_function(mech, "mass_matrix")(q)


@of_algorithm("mass_matrix_inverse")
def mass_matrix_inverse(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(nv, nv): inverse mass matrix from its closed-form factors; with mimic joints by elimination."""
    return kernel_function(mech, "mass_matrix_inverse")(q)


@of_algorithm("mass_matrix_derivatives")
def mass_matrix_derivatives(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(nv, nv, nv): [i, j, k] is dM_ij along tangent direction k, in closed form (jain1995 6.12)."""
    return kernel_function(mech, "mass_matrix_derivatives")(q)


@of_algorithm("bias_force")
def bias_force(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(nv,): Coriolis, centrifugal and gravity forces, h in M a + h = tau - G* lambda.

    Constraints change neither h nor the mass matrix M.  ``inverse_dynamics`` returns the forces of a motion.
    """
    return kernel_function(mech, "bias_force")(q, v)


@of_algorithm("gravity_force")
def gravity_force(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(nv,): the gradient of the potential energy: joint forces that hold a tree still.

    With constraints it is the same term of the equations of motion (see ``bias_force``), and holds the spanning tree;
    ``static_forces`` hold the mechanism, with fewer motors.
    """
    return kernel_function(mech, "gravity_force")(q)


@of_algorithm(
    "static_forces",
    general=lambda: _solving().static_forces,
    settings=StaticForcesSettings,
)
def static_forces(
    mech: Mechanism,
    q: ByJoint,
    wrenches: ArrayLike | None = None,
    **settings: Unpack[StaticForcesSettings],
) -> Float64Array:
    """(nv,): joint forces that hold the mechanism still against gravity and ``wrenches`` (n_links, 6) on the links, in
    link frames (``lw.forces.wrenches_at`` converts pushes on frames); without springs and other force elements
    (``forces="none"``).

    For a tree without wrenches they are ``gravity_force``.  With constraints they are the least forces of the
    ``actuated`` joints, as for ``inverse_dynamics``, which explains the other arguments.
    """
    if not settings:
        if wrenches is not None:
            return kernel_function(mech, ("static_forces", ("ports", ("wrenches",))))(q, wrenches)
        return kernel_function(mech, "static_forces")(q)
    return _solving().static_forces(mech, q, wrenches, **settings)


@of_algorithm("coriolis_matrix")
def coriolis_matrix(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(nv, nv): C with C v = bias_force without gravity and dM/dt - 2 C skew."""
    return kernel_function(mech, "coriolis_matrix")(q, v)


@of_algorithm("link_poses")
def link_poses(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(n_links, 4, 4): every link frame in the world."""
    return kernel_function(mech, "link_poses")(q)


@of_algorithm("frame_pose")
def frame_pose(mech: Mechanism, q: ArrayLike, link: str | None = None, *, name: str | None = None) -> Float64Array:
    """(4, 4): the named link or welded frame in the world (``name`` is another word for ``link``)."""
    link = either("frame_pose", link, name)
    return kernel_function(mech, ("frame_pose", ("link", link)))(q)


@of_algorithm("link_velocities")
def link_velocities(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(n_links, 6): [omega; v] of every link frame, in its own axes at its origin."""
    return kernel_function(mech, "link_velocities")(q, v)


@of_algorithm("link_accelerations")
def link_accelerations(mech: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Float64Array:
    """(n_links, 6): time derivative of the components of ``link_velocities``; gravity does not enter."""
    return kernel_function(mech, "link_accelerations")(q, v, a)


@of_algorithm("jacobian")
def jacobian(mech: Mechanism, q: ArrayLike, link: str, frame: str = "link") -> Float64Array:
    """(6, nv): J with [omega; v] = J v of a link or welded frame.

    frame="link": in its own axes at its origin; "world": in world axes at the world's origin;
    "world_aligned": in world axes at its own origin.
    """
    return kernel_function(mech, ("jacobian", ("link", link), ("frame", frame)))(q)


@of_algorithm("kinetic_energy")
def kinetic_energy(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """Scalar per state: kinetic energy, rotors (armature) included."""
    return kernel_function(mech, "kinetic_energy")(q, v)


@of_algorithm("potential_energy")
def potential_energy(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """Scalar per state: potential energy of gravity of the moving links, zero at the world's origin."""
    return kernel_function(mech, "potential_energy")(q)


@of_algorithm("center_of_mass")
def center_of_mass(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(3,): centre of mass of the moving links, in the world."""
    return kernel_function(mech, "center_of_mass")(q)


@of_algorithm("momentum")
def momentum(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(6,): [angular momentum about the world's origin; linear momentum], in world axes."""
    return kernel_function(mech, "momentum")(q, v)


@of_algorithm("coordinate_rates")
def coordinate_rates(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(nq,): dq/dt = N(q) v."""
    return kernel_function(mech, "coordinate_rates")(q, v)


@of_algorithm("integrate")
def integrate(mech: Mechanism, q: ArrayLike, v: ArrayLike, dt: ArrayLike) -> Float64Array:
    """(nq,): the configuration reached from q by moving with constant v for dt, exact on the manifold."""
    return kernel_function(mech, "integrate")(q, v, dt)


@of_algorithm("difference")
def difference(mech: Mechanism, q0: ArrayLike, q1: ArrayLike) -> Float64Array:
    """(nv,): the tangent step from q0 to q1: ``integrate(mech, q0, difference(mech, q0, q1), 1.0)`` is q1."""
    return kernel_function(mech, "difference")(q0, q1)


def interpolate(mech: Mechanism, q0: ArrayLike, q1: ArrayLike, s: ArrayLike) -> Float64Array:
    """(nq,): configuration at s on the motion with constant v from q0 (s = 0) to q1 (s = 1), and beyond.  All
    broadcast: s of shape (100, 1) gives a path of 100 configurations or more."""
    return integrate(mech, q0, difference(mech, q0, q1), s)


def neutral(mech: Mechanism) -> Float64Array:
    """(nq,): the configuration with every joint at zero, its two sides coinciding: angles and lengths 0, quaternions
    [1, 0, 0, 0]."""
    require_mechanism(mech)
    return np.array([x for body in mech.bodies if not body.mimic for x in body.kind.neutral()])


def random_state(
    mech: Mechanism, rng: np.random.Generator, shape: tuple[int, ...] = (), within_limits: bool = False
) -> tuple[Float64Array, Float64Array]:
    """Random (q, v) of shape ``shape + (nq,)``, ``shape + (nv,)``; valid quaternions, normal velocities.  Loops are
    open: ``constraints.assemble`` closes them, ``constraints.project`` makes velocities consistent.

    within_limits   keep to the limits of q and v (``mech.limits``), those of mimic joints included: uniform where a
                    range is finite
    """
    require_mechanism(mech)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator such as np.random.default_rng(0), got {rng!r}")
    try:
        shape = tuple(operator.index(n) for n in ((shape,) if isinstance(shape, int) else shape))
    except TypeError:
        raise TypeError(f"shape must be a tuple of integers, got {shape!r}") from None
    parts = [body.kind.random(rng, shape) for body in mech.bodies if not body.mimic]
    q = np.concatenate(parts, axis=-1) if parts else np.zeros((*shape, 0))
    v = rng.normal(size=(*shape, mech.nv))
    return redraw_within_limits(mech, rng, q, v) if within_limits else (q, v)
