"""jain1995: dynamics in total joint rates nu, in which the mass matrix is the identity."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import operators as op
from linkwise.demo.drawing import COLOURS, GREY, Panel, figure, over, styled, tidy
from linkwise.demo.exhibit import Comparison, Exhibit, Paper, Table, compare

from .diagrams import growth

PAPER = Paper(
    key="jain1995",
    title="Diagonalized Lagrangian Robot Dynamics",
    authors="A. Jain and G. Rodriguez, IEEE Transactions on Robotics and Automation, 1995",
    about="With the factor m of the mass matrix, m m*, and new variables ν = m* v and ε = m⁻¹ τ, the equations of "
    "motion are dν/dt + C(q, ν) = ε: no mass matrix couples the joints, and C does no work.",
    absent=(("Figure 1", "a sketch that defines symbols"),),
)
REST = np.array([0.3, -0.6, 0.5, 0.4, 0.7, -0.2])
RATES = np.array([1.0, -1.0, 2.0, 1.0, -2.0, 3.0])
GOAL = np.array([0.8, -1.0, 0.9, -0.3, 1.1, 0.5])


def _stacked(mech: lw.Mechanism, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """m of (5.1) and its inverse, from stacked matrices."""
    H, phi, K, D = (op.dense(x, mech, q) for x in (op.H, op.phi, op.K, op.D))
    m = (np.eye(mech.nv) + H @ phi @ K) @ np.sqrt(D)  # one degree of freedom per joint: D is diagonal
    return m, np.linalg.inv(m)


# -- tables -------------------------------------------------------------------------------------------


@PAPER.shows("Table 1", "Joint rates and total joint rates from each other")
def table_1() -> Exhibit:
    arm = lw.mechanisms.puma560()
    m, inverse = _stacked(arm, REST)
    nu, back = (
        lw.formulations.diagonal.rates(arm, REST, RATES),
        lw.formulations.diagonal.velocities(arm, REST, lw.formulations.diagonal.rates(arm, REST, RATES)),
    )
    xi = lw.formulations.diagonal.rates(arm, REST, RATES, normalized=False)
    rows = [(name, *(f"{x:.4f}" for x in (RATES[k], xi[k], nu[k], back[k]))) for k, name in enumerate(arm.joint_names)]
    return Exhibit(
        "A Puma 560: relative rates, what each joint does beyond giving way (ξ = D^-½ ν), total rates, and back "
        "again. Both ways are one sweep from base to tip once the gains are there.",
        tables=(Table(("joint", "v", "ξ", "ν", "v from ν"), rows),),
        compared=(
            compare("left column: m* v with stacked matrices", nu, m.T @ RATES, 1e-12),
            compare(
                "right column: inverse of m* by elimination",
                lw.formulations.diagonal.velocities(arm, REST, nu),
                inverse.T @ nu,
                1e-12,
            ),
            compare("½ ν*ν: kinetic energy", nu @ nu / 2.0, lw.kinetic_energy(arm, REST, RATES), 1e-13),
        ),
        remark="As printed, the left column has a minus before G* V+; with it ν would be off by "
        f"{_printed_sign(arm):.2g} (relative).",
    )


def _printed_sign(arm: lw.Mechanism) -> float:
    """How wrong the left column of Table 1 is with its minus: xi = v - G* V+ instead of v + G* V+."""
    xi = lw.formulations.diagonal.rates(arm, REST, RATES, normalized=False)
    printed = 2.0 * RATES - xi
    return float(np.abs(printed - xi).max() / np.abs(xi).max())


@PAPER.shows("Table 2", "Joint moments and working moments from each other")
def table_2() -> Exhibit:
    arm = lw.mechanisms.puma560()
    m, inverse = _stacked(arm, REST)
    tau = np.array([10.0, 20.0, -5.0, 1.0, 0.5, -0.2])
    eps = lw.formulations.diagonal.forces(arm, REST, tau)
    back = lw.formulations.diagonal.torques(arm, REST, eps)
    rows = [(name, *(f"{x:.4f}" for x in (tau[k], eps[k], back[k]))) for k, name in enumerate(arm.joint_names)]
    return Exhibit(
        "The part of each moment that works, ε, is what is left once the moments further out are accounted for; one "
        "sweep from tip to base either way.",
        tables=(Table(("joint", "τ (N m)", "ε", "τ from ε"), rows),),
        compared=(
            compare("left column: m⁻¹ τ by elimination", eps, inverse @ tau, 1e-12),
            compare("right column: m ε with stacked matrices", back, m @ eps, 1e-12),
            compare(
                "power: ν*ε equals v*τ", lw.formulations.diagonal.rates(arm, REST, RATES) @ eps, RATES @ tau, 1e-12
            ),
        ),
        remark="Both columns are printed with z+ = z + G ε; the gain weights D^½ ε.",
    )


@PAPER.shows("Table 3", "Time derivatives of the operators")
def table_3() -> Exhibit:
    """Both columns of the table for a moving arm, against differences along its motion."""
    mech = lw.mechanisms.chain(5)
    q, v = lw.random_state(mech, np.random.default_rng(3))
    local = _rates(mech, q, v, inertial=False)
    inertial = _rates(mech, q, v, inertial=True)
    worst: dict[str, tuple[float, float]] = {}
    for name in ("H", "M", "D", "G", "τ̄"):
        worst[name] = tuple(_off(rates[name], formulas[name]) for rates, formulas in (local, inertial))  # type: ignore[assignment]
    formulas = {
        "H": ("0", "-H Ω̃"),
        "M": ("0", "Ω̃ M - M Ω̃"),
        "D": ("H dP/dt H*", "the same"),
        "G": ("τ̄ dP/dt H* D⁻¹", "local + Ω̃ G"),
        "τ̄": ("-dG/dt H", "local + Ω̃ τ̄ - τ̄ Ω̃"),
    }
    rows = [
        (name, formulas[name][0], f"{worst[name][0]:.1e}", formulas[name][1], f"{worst[name][1]:.1e}")
        for name in formulas
    ]
    return Exhibit(
        "A moving chain of five hinges. Derivatives of the operators by differences along the motion, in the links' "
        "axes (local) and in the world's (inertial), against the table's expressions; Ω is the links' angular "
        "velocity.",
        tables=(Table(("operator", "local derivative", "off by", "inertial derivative", "off by"), rows),),
        compared=(Comparison("largest deviation, relative", max(max(pair) for pair in worst.values()), 1e-7),),
        remark="The scan garbles the first column of D and τ̄; D = H P H* and τ̄ = I - G H are meant.",
    )


def _off(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / (np.abs(expected).max() or 1.0))


def _rates(
    mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, inertial: bool
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Derivatives of the operators by differences, and the expressions of Table 3."""

    def operators(at: np.ndarray) -> dict[str, np.ndarray]:
        named = {"H": op.H, "M": op.M, "D": op.D, "G": op.G, "τ̄": op.tau_bar, "P": op.P}
        values = {name: op.dense(x, mech, at) for name, x in named.items()}
        if inertial:  # rotate six-vectors into the world's axes
            rotation = lw.link_poses(mech, at)[:, :3, :3]
            R = np.zeros((6 * mech.n_links,) * 2)
            for k in range(2 * mech.n_links):
                R[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = rotation[k // 2]
            values = {
                "H": values["H"] @ R.T,
                "D": values["D"],
                "G": R @ values["G"],
                **{name: R @ values[name] @ R.T for name in ("M", "τ̄", "P")},
            }
        return values

    here = operators(q)
    rate = _differences(operators, mech, q, v)
    H, G, D, M, tau_bar = here["H"], here["G"], here["D"], here["M"], here["τ̄"]
    omega_tilde = _omega_tilde(mech, q, v) if inertial else np.zeros_like(M)
    P_local = rate["P"] - omega_tilde @ here["P"] + here["P"] @ omega_tilde
    G_local = tau_bar @ P_local @ H.T @ np.linalg.inv(D)
    expressions = {
        "H": -H @ omega_tilde,
        "M": omega_tilde @ M - M @ omega_tilde,
        "D": H @ P_local @ H.T,
        "G": G_local + omega_tilde @ G,
        "τ̄": -G_local @ H + omega_tilde @ tau_bar - tau_bar @ omega_tilde,
    }
    return rate, expressions


def _omega_tilde(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The cross-product matrix of (6.2) for all links, in the world's axes."""
    omega = np.einsum("kij,kj->ki", lw.link_poses(mech, q)[:, :3, :3], lw.link_velocities(mech, q, v)[:, :3])
    matrix = np.zeros((6 * mech.n_links,) * 2)
    for k in range(2 * mech.n_links):
        x, y, z = omega[k // 2]
        matrix[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
    return matrix


def _differences(
    function: Callable[[np.ndarray], dict[str, np.ndarray]],
    mech: lw.Mechanism,
    q: np.ndarray,
    v: np.ndarray,
    step: float = 1e-3,
) -> dict[str, np.ndarray]:
    """d/dt along v by central differences of sixth order."""
    weights = {1: 0.75, 2: -0.15, 3: 1.0 / 60.0}
    values = {k: function(lw.integrate(mech, q, v, k * step)) for k in (-3, -2, -1, 1, 2, 3)}
    return {
        name: sum(w * (values[k][name] - values[-k][name]) for k, w in weights.items()) / step for name in values[1]
    }


# -- algorithms ---------------------------------------------------------------------------------------


@PAPER.shows("Algorithms 4.1 to 8.1", "What diagonalized dynamics costs")
def algorithms() -> Exhibit:
    sizes = (2, 4, 8, 16, 32)
    requests: dict[str, tuple[Any, dict[str, Any]]] = {
        "4.1 Riccati (gains)": (op.G @ op.joint_vector("x"), {}),
        "Table 1, ν from v": ("diagonal_rates", {}),
        "7.1 Coriolis term, with dP/dt of 6.1": ("diagonal_coriolis", {}),
        "8.1 dν/dt and v": ("diagonal_motion", {}),
        "8.1 unnormalized, dξ/dt and v": ("diagonal_motion", {"normalized": False}),
        "forward dynamics in v, for comparison": ("forward_dynamics", {}),
    }
    counts = {
        name: [
            sum(lw.compile(what, lw.mechanisms.chain(n), target="numpy", **options).op_counts.values()) for n in sizes
        ]
        for name, (what, options) in requests.items()
    }
    ratio = counts["8.1 dν/dt and v"][-1] / counts["forward dynamics in v, for comparison"][-1]
    table = Table(
        ("algorithm", *(f"n = {n}" for n in sizes)), [(name, *map(str, values)) for name, values in counts.items()]
    )
    mech = lw.mechanisms.chain(6)
    rng = np.random.default_rng(8)
    q, v = lw.random_state(mech, rng)
    tau, nu = rng.normal(size=6), lw.formulations.diagonal.rates(mech, q, v)
    a = np.linalg.solve(lw.mass_matrix(mech, q), tau - lw.bias_force(mech, q, v))
    m_rate = _differences(lambda at: {"m": lw.formulations.diagonal.factor(mech, at)}, mech, q, v)["m"]
    expected = lw.formulations.diagonal.factor(mech, q).T @ a + m_rate.T @ v  # d/dt (m* v)
    coriolis = lw.formulations.diagonal.coriolis(mech, q, nu)
    return Exhibit(
        "Operations for general chains, all in proportion to n. The paper expects Algorithm 8.1 to cost about as "
        f"much as forward dynamics; compiled it costs {ratio:.2f} times as much, because its sweep propagates the rate "
        "of a 6 x 6 matrix across each joint.",
        pictures=(growth(sizes, counts),),
        tables=(table,),
        compared=(
            compare(
                "8.1: d/dt (m* v) by elimination and differences",
                lw.formulations.diagonal.forward_dynamics(mech, q, nu, tau),
                expected,
                1e-8,
            ),
            Comparison(
                "7.1: power of the Coriolis term, ν*C over |ν| |C|",
                float(abs(nu @ coriolis) / np.linalg.norm(nu) / np.linalg.norm(coriolis)),
                1e-13,
            ),
        ),
    )


@PAPER.shows("Section 5", "What a total rate is")
def meaning() -> Exhibit:
    mech = lw.mechanisms.planar_arm(4).with_gravity((0.0, 0.0, 0.0))
    start = np.array([-0.2, 0.5, -0.9, 0.7])
    v = _velocity(mech, start)
    nu = lw.formulations.diagonal.rates(mech, start, v)
    # Set in motion from rest by an impulse at the first joint alone, the arm moves with these rates.
    impulse = lw.mass_matrix(mech, start) @ v
    return Exhibit(
        "The first joint rotates. With the other relative rates zero the arm rotates as one body; with the other total "
        "rates zero the outer links are left alone, their joints give way, and the far end hardly moves.",
        pictures=(_locked_and_free(mech, start),),
        compared=(
            Comparison("impulse that the other joints pass on (N m s)", float(np.abs(impulse[1:]).max()), 1e-12),
            compare("½ ν*ν: kinetic energy", nu @ nu / 2.0, lw.kinetic_energy(mech, start, v), 1e-13),
        ),
    )


ONLY_FIRST = np.array([1.0, 0.0, 0.0, 0.0])


def _velocity(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """Relative rates if the total rate of the first joint is 1 and those of the others are 0."""
    return lw.formulations.diagonal.velocities(mech, q, ONLY_FIRST, normalized=False)


@styled
def _locked_and_free(mech: lw.Mechanism, start: np.ndarray) -> Any:
    """Positions with the other relative rates zero, with the other total rates zero, and the rates of the latter."""
    drawn = figure(11.0, 3.6)
    locked, free, bars = drawn.subplots(1, 3)
    for axes, title, rate, colour in (
        (locked, "others locked: v = (1, 0, 0, 0)", lambda q: ONLY_FIRST, COLOURS[0]),
        (free, "others free: ξ = (1, 0, 0, 0)", lambda q: _velocity(mech, q), COLOURS[1]),
    ):
        q = start
        for shade in np.linspace(0.15, 1.0, 6):
            x, y = np.vstack([lw.link_poses(mech, q)[:, :2, 3], lw.frame_pose(mech, q, "tip")[:2, 3]]).T
            axes.plot(x, y, "-o", color=colour, alpha=shade, lw=2, ms=4)
            for _ in range(60):
                middle = lw.integrate(mech, q, rate(q), 1e-3)
                q = lw.integrate(mech, q, rate(middle), 2e-3)
        axes.set(aspect="equal", xlim=(-0.2, 4.0), ylim=(-1.0, 2.0))
        tidy(axes, title, "x (m)", "y (m)")
    places = np.arange(4)
    bars.bar(places - 0.2, ONLY_FIRST, 0.38, color=COLOURS[1], label="total rate ξ")
    bars.bar(places + 0.2, _velocity(mech, start), 0.38, color=COLOURS[0], label="relative rate v")
    bars.axhline(0.0, color=GREY, lw=0.8)
    bars.set_xticks(places, [f"joint {i + 1}" for i in places])
    bars.legend()
    tidy(bars, "the same motion in both", "", "rad/s")
    return drawn


# -- control ------------------------------------------------------------------------------------------


@cache
def _settling() -> tuple[lw.Mechanism, Any, lw.Trajectory]:
    arm = lw.mechanisms.puma560()
    control = lw.formulations.diagonal.rate_feedback(arm, gain=2.0)
    return arm, control, lw.simulate(arm, REST, RATES, 2.0, control, t_eval=np.linspace(0.0, 2.0, 401))


@PAPER.shows("Control 8.1", "Rate feedback: each total rate is damped alone")
def control_8_1() -> Exhibit:
    arm, control, motion = _settling()
    nu, t = lw.formulations.diagonal.rates(arm, motion.q, motion.v), motion.t
    energy = control.lyapunov(motion.q, motion.v)
    expected = energy[0] * np.exp(-4.0 * t)
    panels = [
        Panel("ν", {f"joint {k + 1}": nu[:, k] for k in range(6)}, "total rates, ε = -2 ν"),
        Panel("v (rad/s)", {f"_{k}": motion.v[:, k] for k in range(6)}, "the same motion in joint velocities"),
        Panel("J", {"½ ν*ν": energy, "exp(-4 t)": expected}, "kinetic energy", logarithmic=True),
    ]
    return Exhibit(
        "A Puma 560 in full motion under ε = -c ν, c = 2. Joint velocities cross and overshoot, but kinetic energy "
        "falls exactly as exp(-2 c t), because the Coriolis term does no work.",
        pictures=(over(t, panels, columns=3, width=11.0),),
        compared=(compare("kinetic energy: exponential with the gain", energy, expected, 1e-7),),
    )


@PAPER.shows("Control 8.2", "End-effector regulation")
def control_8_2() -> Exhibit:
    arm = lw.mechanisms.puma560()
    control = lw.formulations.diagonal.end_effector_regulation(arm, "link6", lw.frame_pose(arm, GOAL, "link6"))
    motion = lw.simulate(arm, REST, np.zeros(6), 8.0, control, t_eval=np.linspace(0.0, 8.0, 401))
    error = control.error(motion.q)
    value = control.lyapunov(motion.q, motion.v)
    rises = float(max(0.0, np.diff(value).max()) / value[0])
    panels = [
        Panel(
            "error of the hand",
            {"position (m)": np.linalg.norm(error[:, :3], axis=1), "axes": np.linalg.norm(error[:, 3:], axis=1)},
            logarithmic=True,
        ),
        Panel(
            "J",
            {
                "springs": control.potential(motion.q),
                "½ ν*ν": value - control.potential(motion.q),
                "Lyapunov function": value,
            },
        ),
    ]
    return Exhibit(
        "Springs between the hand and its target, damping in each total rate: the hand goes to its pose without a "
        "mass matrix or an inverse being formed, and the Lyapunov function falls all the way.",
        pictures=(over(motion.t, panels, columns=2, width=9.5),),
        compared=(
            Comparison("pose error after 8 s (m, rad)", float(np.abs(error[-1]).max()), 1e-3),
            Comparison("largest rise of the Lyapunov function, as a share of its start", rises, 1e-9),
        ),
        remark="(8.6) is printed without D^-½ and with the sign of a push; the Lyapunov function asks for the other.",
    )


@PAPER.shows("Lemma 2.2", "Which mechanisms have coordinates that decouple for good")
def flatness() -> Exhibit:
    mechs = [
        lw.mechanisms.cart_pole(),
        lw.mechanisms.double_pendulum(),
        lw.mechanisms.planar_arm(3),
        lw.mechanisms.stanford_arm(),
    ]
    rows, flat = [], {}
    for mech in mechs:
        q, _ = lw.random_state(mech, np.random.default_rng(2))
        symbols = lw.formulations.diagonal.curvature(mech, q)
        size = float(np.abs(symbols).max() / np.abs(lw.mass_matrix(mech, q)).max())
        flat[mech.name] = size
        n = mech.nv
        rows.append(
            (
                mech.name,
                str(n),
                str(n * n * (n * n - 1) // 12),
                f"{size:.1e}",
                "yes" if lw.formulations.diagonal.is_globally_diagonalizable(mech) else "no",
            )
        )
    return Exhibit(
        "New coordinates with ν as their rates exist if and only if all Riemann symbols of the mass matrix vanish. "
        "That is rare.",
        tables=(
            Table(("mechanism", "DoF", "independent symbols", "largest symbol, relative", "coordinates exist"), rows),
        ),
        compared=(
            Comparison("curvature of the cart with a pole, which has them", flat["cart_pole"], 1e-12),
            Comparison(
                "Gauss curvature of the double pendulum: closed form, relative", _double_pendulum_curvature(), 1e-10
            ),
        ),
        remark="The lemma counts N(N+1)/2 symbols; there are N²(N²-1)/12, which agrees for three joints only.",
    )


def _double_pendulum_curvature() -> float:
    """Gauss curvature of the double pendulum's metric by Brioschi's formula, against ``curvature``; relative.

    With E = e + 2 k cos q2, F = f + k cos q2 and G constant, derivatives are by q2 alone, here the first coordinate u:
    the formula is that of the metric G du^2 + 2 F du dq1 + E dq1^2.
    """
    mech, q = lw.mechanisms.double_pendulum(), np.array([0.4, 1.1])
    (E, F), (_, G) = lw.mass_matrix(mech, q)
    k = (E - lw.mass_matrix(mech, [q[0], np.pi / 2.0])[0, 0]) / (2.0 * np.cos(q[1]))
    E_u, E_uu, F_u = -2.0 * k * np.sin(q[1]), -2.0 * k * np.cos(q[1]), -k * np.sin(q[1])
    first = np.linalg.det([[-E_uu / 2.0, 0.0, F_u], [-E_u / 2.0, G, F], [0.0, F, E]])
    second = np.linalg.det([[0.0, 0.0, E_u / 2.0], [0.0, G, F], [E_u / 2.0, F, E]])
    expected = (first - second) / (E * G - F**2) ** 2
    found = lw.formulations.diagonal.curvature(mech, q)[0, 1, 0, 1] / (E * G - F**2)
    return float(abs(abs(found) - abs(expected)) / abs(expected))  # authors differ in the sign of the symbols
