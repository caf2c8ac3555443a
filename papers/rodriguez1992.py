"""rodriguez1992: factorizations of the mass matrix as pictures, identities as residuals, algorithms as counts."""

from __future__ import annotations

from functools import cache

import numpy as np

import linkwise as lw
from linkwise import operators as op
from linkwise.demo.drawing import Panel, over
from linkwise.demo.exhibit import Comparison, Exhibit, Paper, Table, compare

from .diagrams import matrices

PAPER = Paper(
    key="rodriguez1992",
    title="Spatial Operator Factorization and Inversion of the Manipulator Mass Matrix",
    authors="G. Rodriguez and K. Kreutz-Delgado, IEEE Transactions on Robotics and Automation, 1992",
    about="The mass matrix H φ M φ* H* is factored a second time, into triangular operators with a diagonal one "
    "between them, and these are inverted by inspection: (I - H Ψ G)* D⁻¹ (I - H Ψ G). Each expression is an "
    "algorithm.",
    absent=(("Figures 1 and 2", "sketches that define symbols"),),
)
TREES = 24
ALGORITHMS = {
    "Algorithm 1, bias-free": "bias_free",
    "Algorithm 3, biased": "biased",
    "Section VII-D, without D'Alembert forces": "without_dalembert_forces",
}


# -- operators ----------------------------------------------------------------------------------------


@PAPER.shows("Section VI", "The operators and their inverses, as matrices")
def operators() -> Exhibit:
    """phi, psi, the factor and its inverse for an arm and for a tree."""
    arm, tree = lw.mechanisms.chain(8), _branching()
    expressions = {
        "E_φ": (op.E_phi, (6, 6)),
        "φ": (op.phi, (6, 6)),
        "ψ": (op.psi, (6, 6)),
        "H": (op.H, (1, 6)),
        "I + H φ K": (op.I + op.H @ op.phi @ op.K, (1, 1)),
        "I - H ψ K": (op.I - op.H @ op.psi @ op.K, (1, 1)),
        "D": (op.D, (1, 1)),
        "mass matrix": (op.H @ op.phi @ op.M @ op.phi.T @ op.H.T, (1, 1)),
    }
    blocks = {name: block for name, (_, block) in expressions.items()}
    pictures = []
    for mech in (arm, tree):
        q, _ = lw.random_state(mech, np.random.default_rng(1))
        pictures.append(matrices({name: op.dense(e, mech, q) for name, (e, _) in expressions.items()}, blocks=blocks))
    q, _ = lw.random_state(tree, np.random.default_rng(1))
    factor, inverse = (lw.compile(expressions[name][0], tree)(q) for name in ("I + H φ K", "I - H ψ K"))
    return Exhibit(
        "First an arm of eight links, then a tree of the same number: darker is larger, white is zero, links run "
        "base to tip. φ moves forces of all links inwards; ψ is φ with joints that give way. The mass matrix is "
        "full along a branch, while D between its factors is diagonal, and both factors are triangular. Links of "
        "different branches do not see each other in the factors, so inverses stay sparse.",
        pictures=tuple(pictures),
        compared=(
            compare(
                "compiled factor times its compiled inverse, on the tree", factor @ inverse, np.eye(tree.nv), 1e-13
            ),
            compare("numerical inverse of φ against I - E_φ", *_phi_inverse(arm), 1e-12),
        ),
    )


def _branching() -> lw.Mechanism:
    """Eight links with one degree of freedom each, in three branches."""
    builder, rng = lw.Builder(), np.random.default_rng(8)
    for k, parent in enumerate(("ground", "link1", "link2", "link3", "link2", "link5", "link1", "link7"), 1):
        mass = float(rng.uniform(1.0, 2.0))
        builder.link(f"link{k}", mass, rng.uniform(-0.2, 0.2, 3), mass * np.array([0.02, 0.03, 0.04]))
        builder.joint(
            f"joint{k}", lw.Revolute(tuple(rng.normal(size=3))), parent, f"link{k}", (None, rng.uniform(-0.5, 0.5, 3))
        )
    return builder.build("three branches")


def _phi_inverse(mech: lw.Mechanism) -> tuple[np.ndarray, np.ndarray]:
    q, _ = lw.random_state(mech, np.random.default_rng(2))
    return np.linalg.inv(op.dense(op.phi, mech, q)), op.dense(op.I - op.E_phi, mech, q)


# -- identities ---------------------------------------------------------------------------------------


@PAPER.shows("Identities 1 to 6", "The identities, on random trees")
def identities() -> Exhibit:
    """Both sides as stacked matrices, from the operators' definitions; and the compiled inverse."""
    worst: dict[str, float] = {}
    formulas = {
        "1": "φ M φ* = r + Φ r + r Φ*, r: composite bodies (28)",
        "2": "φ M φ* = P + Φ P + P Φ* + Φ P H* D⁻¹ H P Φ* (42)",
        "3": "H φ M φ* H* = (I + H Φ G) D (I + H Φ G)* (43)",
        "4": "(I - Ψ G H) Φ = Ψ (44)",
        "5": "(I + H Φ G)⁻¹ = I - H Ψ G (45)",
        "6": "mass matrix⁻¹ = (I - H Ψ G)* D⁻¹ (I - H Ψ G) (46)",
        "6, compiled": "`lw.mass_matrix_inverse` against the numerical inverse of the stacked mass matrix",
    }
    dofs = []
    for seed in range(TREES):
        mech = lw.mechanisms.random_tree(2 + seed % 9, seed, floating_base=seed % 3 == 0)
        dofs.append(mech.nv)
        q, _ = lw.random_state(mech, np.random.default_rng(seed))
        for name, (left, right) in _sides(mech, q).items():
            scale = np.abs(right).max(initial=0.0) or 1.0
            worst[name] = max(worst.get(name, 0.0), float(np.abs(left - right).max(initial=0.0) / scale))
    rows = [(name, formula, f"{worst[name]:.1e}") for name, formula in formulas.items()]
    return Exhibit(
        f"{TREES} random trees of all kinds of joints, fixed and floating bases, {min(dofs)} to {max(dofs)} "
        "degrees of freedom. The paper proves the identities for arms of hinges; they hold for any tree.",
        tables=(Table(("identity", "", "largest residual, relative"), rows),),
        compared=(Comparison("largest residual of all", max(worst.values()), 1e-9),),
        remark="Section I-B prints the factor of (43) with Ψ, Section X-B with K; I + H Φ G is meant.",
    )


def _sides(mech: lw.Mechanism, q: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    H, phi, M, P, D, G, Psi = (op.dense(x, mech, q) for x in (op.H, op.phi, op.M, op.P, op.D, op.G, op.Psi))
    armature = op.dense(op.R, mech, q)
    identity, Phi, D_inverse = np.eye(mech.nv), phi - np.eye(len(phi)), np.linalg.inv(D)
    all_forces = phi @ M @ phi.T
    composite = all_forces * np.kron(np.eye(mech.n_links), np.ones((6, 6)))
    mass = H @ all_forces @ H.T + armature
    factor, inverse = identity + H @ Phi @ G, identity - H @ Psi @ G
    inverse_mass = np.linalg.inv(mass)
    return {
        "1": (composite + Phi @ composite + composite @ Phi.T, all_forces),
        "2": (P + Phi @ P + P @ Phi.T + Phi @ P @ H.T @ D_inverse @ H @ P @ Phi.T, all_forces),
        "3": (factor @ D @ factor.T, mass),
        "4": ((np.eye(len(phi)) - Psi @ G @ H) @ Phi, Psi),
        "5": (factor @ inverse, identity),
        "6": (inverse.T @ D_inverse @ inverse, inverse_mass),
        "6, compiled": (lw.mass_matrix_inverse(mech, q), inverse_mass),
    }


# -- algorithms ---------------------------------------------------------------------------------------


@PAPER.shows("Algorithms 1 to 3", "Forward dynamics four ways: sweeps and operations")
def algorithms() -> Exhibit:
    sizes = (6, 12, 24)
    rows = []
    requests = {name: ("forward_dynamics", {"method": method}) for name, method in ALGORITHMS.items()}
    requests = {
        **{name: requests[name] for name in list(requests)[:1]},
        "Algorithm 2, with link accelerations": ("forward_link_accelerations", {}),
        **{name: requests[name] for name in list(requests)[1:]},
    }
    for name, (algorithm, options) in requests.items():
        kernels = [lw.compile(algorithm, lw.mechanisms.chain(n), target="numpy", loops=False, **options) for n in sizes]
        sweeps = "; ".join(f"{direction.replace('_', ' ')}: {what}" for direction, what in kernels[0].sweeps)
        rows.append((name, str(len(kernels[0].sweeps)), sweeps, *(str(sum(k.op_counts.values())) for k in kernels)))
    arm = lw.mechanisms.chain(12)
    rng = np.random.default_rng(12)
    q, v = lw.random_state(arm, rng, (100,))
    tau = rng.normal(size=v.shape)
    mass, bias = lw.mass_matrix(arm, q), lw.bias_force(arm, q, v)
    expected = np.linalg.solve(mass, (tau - bias)[..., None])[..., 0]
    compared = [
        compare(f"{name}: Gaussian elimination", lw.forward_dynamics(arm, q, v, tau, method=method), expected, 1e-9)
        for name, method in ALGORITHMS.items()
    ]
    accelerations = lw.kinematics.forward_link_accelerations(arm, q, v, tau)
    compared.append(
        compare(
            "Algorithm 2: link accelerations from joint accelerations",
            accelerations,
            _observed(arm, q, v, expected),
            1e-9,
        )
    )
    return Exhibit(
        "General chains of revolute joints. The paper counts four sweeps for Algorithms 1 and 2, three for the "
        "others; compiled, sweeps in the same direction are fused, so every one of them makes three. All are linear "
        "in the number of links.",
        tables=(Table(("algorithm", "sweeps", "", *(f"operations, n = {n}" for n in sizes)), rows),),
        compared=tuple(compared),
        remark="Algorithm 3 as printed counts the tip force twice, in (60) and (63); (67) has a term too many. See "
        "docs/errata.md.",
    )


def _observed(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Accelerations of link origins as an inertial observer sees them, from those of body-fixed components."""
    velocities, rates = lw.link_velocities(mech, q, v), lw.link_accelerations(mech, q, v, a).copy()
    rates[..., 3:] += np.cross(velocities[..., :3], velocities[..., 3:])
    return rates


@PAPER.shows("Section VIII", "Mobile base: an arm that floats")
def mobile_base() -> Exhibit:
    mech = floating_arm()
    motion = _swing()
    momentum = lw.momentum(mech, motion.q, motion.v)
    position = motion.q[:, 4:7] - motion.q[0, 4:7]
    turned = np.degrees(lw.kinematics.so3.log(lw.kinematics.so3.from_quaternion(motion.q[:, :4])))
    panels = [
        Panel("joint angle (deg)", {f"joint {k + 1}": np.degrees(motion.q[:, 7 + k]) for k in range(3)}),
        Panel(
            "rotation of the base (deg)",
            {f"about {axis}": series for axis, series in zip("xyz", turned.T, strict=True)},
        ),
        Panel("base moved by (m)", dict(zip("xyz", position.T, strict=True))),
    ]
    q, v = lw.random_state(mech, np.random.default_rng(8))
    tau = np.random.default_rng(9).normal(size=mech.nv)
    stacked = op.dense(op.H @ op.phi @ op.M @ op.phi.T @ op.H.T, mech, q)
    found = lw.forward_dynamics(mech, q, v, tau)
    return Exhibit(
        "The base is one more joint with H = I (74). Three motors swing the arm of a free-flying vehicle to and "
        "fro; nothing holds the vehicle, so it answers, and momentum stays zero.",
        pictures=(over(motion.t, panels),),
        compared=(
            Comparison("momentum of the whole (kg m/s, kg m^2/s)", float(np.abs(momentum).max()), 1e-8),
            compare("mass matrix of (79): stacked operators", lw.mass_matrix(mech, q), stacked, 1e-12),
            compare(
                "accelerations of joints and base: Gaussian elimination",
                found,
                np.linalg.solve(stacked, tau - lw.bias_force(mech, q, v)),
                1e-9,
            ),
        ),
    )


def floating_arm() -> lw.Mechanism:
    """A vehicle of 20 kg that floats, with an arm of three links, far from any weight."""
    builder = (
        lw.Builder().link("vehicle", 20.0, (0, 0, 0), (2.0, 1.5, 1.8)).joint("base", lw.Floating(), "ground", "vehicle")
    )
    parent, place = "vehicle", (0.5, 0.0, 0.0)
    for k, axis in enumerate(((0, 0, 1), (0, 1, 0), (0, 1, 0)), 1):
        builder.link(f"arm{k}", 3.0, (0.4, 0, 0), (0.01, 0.16, 0.16))
        builder.joint(f"joint{k}", lw.Revolute(axis), parent, f"arm{k}", (None, place))
        parent, place = f"arm{k}", (0.8, 0.0, 0.0)
    return builder.build("free flyer", (0.0, 0.0, 0.0))


@cache
def _swing() -> lw.Trajectory:
    mech = floating_arm()

    def drive(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        wanted = np.array([0.8, 0.6, -0.9]) * np.sin(2.0 * np.pi * t / 4.0)
        return np.concatenate([np.zeros(6), 60.0 * (wanted - q[7:]) - 15.0 * v[6:]])

    return lw.simulate(mech, lw.neutral(mech), np.zeros(mech.nv), 4.0, drive, t_eval=np.linspace(0.0, 4.0, 401))


@PAPER.shows("Figure 3", "Spatial operators map to efficient recursive algorithms")
def figure_3() -> Exhibit:
    mech = lw.mechanisms.stanford_arm()
    factor, T = op.I - op.H @ op.psi @ op.K, op.joint_vector("T")
    kernel = lw.compile(factor.T @ op.D.inv @ factor @ T, mech)
    rng = np.random.default_rng(3)
    q, _ = lw.random_state(mech, rng, (50,))
    moments = rng.normal(size=(50, 6))
    expected = np.linalg.solve(lw.mass_matrix(mech, q), moments[..., None])[..., 0]
    return Exhibit(
        "The seven levels from expression to coordinate transforms, as `kernel.plan()` prints them for the paper's "
        "own example, (46) applied to joint moments, on the Stanford arm.",
        text=kernel.plan(),
        compared=(compare("Gaussian elimination with the mass matrix", kernel(q, moments), expected, 1e-10),),
        remark="The scan has no picture. The expression printed at level 1 lacks the star and D⁻¹ and would give "
        "back T.",
    )
