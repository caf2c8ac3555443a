"""The first minute with the library: one arm in numbers, two motions in pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import linkwise as lw

from . import saha1999, spencer2004
from .drawing import Panel, drawable, over
from .exhibit import Animation, Comparison, Exhibit, Paper, Table, compare

TITLE = "One minute with linkwise"
LEAD = (
    "linkwise computes the dynamics of mechanisms: it compiles each quantity for one given mechanism into machine "
    "code that works on many states at once. Everything here was computed on this machine a moment ago."
)
EXAMPLES = Path(__file__).parents[2] / "examples"  # of a checkout; an installed package comes without
NEXT = (
    *(["python examples/01_load_and_compute.py      the numbered examples, in order"] if EXAMPLES.is_dir() else []),
    "linkwise info robot.urdf                    your own robot",
    "linkwise simulate robot.urdf --duration 2 --plot motion.png --gif motion.gif",
    "linkwise bench robot.urdf                   how fast it is here",
    "linkwise reproduce all                      the papers' figures and tables in a gallery",
    "linkwise --help                             everything else",
)
TOUR = Paper(
    key="tour",
    title="An arm, a swing, a singular position",
    authors="",
    about="Three things to see before reading anything."
    + " The same in Python: the scripts in `examples/`." * EXAMPLES.is_dir(),
)
BATCH = 4096
# The swing of the Stanford arm: where it starts (rad, m), how fast (rad/s), the spring of its slide (N/m), seconds.
STRETCHED, PUSHED = (0.0, np.pi / 2.0, 0.45, 0.6, 0.8, 0.0), (1.2, 0.0, 0.0, 0.0, 0.0, 0.0)
STIFFNESS, SWING = 400.0, 4.0


@TOUR.shows("1", "A Puma 560 in numbers")
def arm() -> Exhibit:
    """Mass matrix, operation counts, speed."""
    from linkwise import bench as speed

    mech = lw.mechanisms.puma560()
    q = np.array([0.3, -0.6, 0.5, 0.4, 0.7, -0.2])
    mass = lw.mass_matrix(mech, q)
    matrix = Table(
        ("mass matrix (kg m²)", *mech.joint_names),
        [
            (name, *(f"{x + 0.0:.4f}" for x in row))
            for name, row in zip(mech.joint_names, np.round(mass, 9), strict=True)
        ],
    )
    at = speed.conditions("float64", 1, BATCH)
    rows = []
    for name in speed.ALGORITHMS:
        kernel, result = lw.compile(name, mech), speed.measure(mech, name, at)
        numpy_ratio = result.against["NumPy, interpreted"][0]
        others = [
            f"{ratio:.0f} x {library}" for library, (ratio, _) in list(result.against.items())[1:] if ratio == ratio
        ]
        counts = ", ".join(f"{kind} {n}" for kind, n in kernel.op_counts.items())
        rows.append(
            (name.replace("_", " "), counts, f"{1e9 * result.batch:.0f}", f"{numpy_ratio:.0f}", "; ".join(others))
        )
    heads = ("function", "operations", "ns per state", "times faster than NumPy", "than others installed")
    shown = len(heads) if any(row[-1] for row in rows) else len(heads) - 1  # without Pinocchio there are no others
    rng = np.random.default_rng(0)
    states, rates = lw.random_state(mech, rng, (1000,))
    a = rng.normal(size=rates.shape)
    tau = lw.inverse_dynamics(mech, states, rates, a)
    return Exhibit(
        "`lw.mechanisms.puma560()`, six joints. Below: its mass matrix in one position, then what the compiled "
        f"functions cost for one state and how fast they are in batches of {BATCH}, one thread, on {at.cpu} "
        f"({at.lanes} lanes of float64); NumPy runs the same programs, operation by operation.",
        pictures=(lw.viewer.draw(mech, q, labels=True),) if drawable() else (),
        tables=(
            matrix,
            Table(heads[:shown], [row[:shown] for row in rows]),
        ),
        compared=(
            compare(
                "forward dynamics undoes inverse dynamics, 1000 states",
                lw.forward_dynamics(mech, states, rates, tau),
                a,
                1e-9,
            ),
            compare("mass matrix: stacked operators of the papers", mass, _stacked(mech, q), 1e-12),
        ),
    )


def _stacked(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    op = lw.operators
    return op.dense(op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R, mech, q)


@TOUR.shows("2", "The Stanford arm swings, its slide on a spring")
def swing() -> Exhibit:
    arm = lw.mechanisms.stanford_arm()
    slide = arm.joint_names[saha1999.SLIDING]
    # Nothing holds the slide of the arm: let go, it would run out for metres.
    spring = lw.Passive.springs({slide: STIFFNESS}, rest={slide: STRETCHED[saha1999.SLIDING]})
    motion = lw.simulate(arm, STRETCHED, PUSHED, SWING, passive=spring, output_step=0.01, rtol=1e-11, atol=1e-11)
    drift = np.abs(motion.energy - motion.energy[0]).max() / motion.kinetic_energy.max()
    table = Table(
        ("joint", "at the start (rad, m)", f"after {motion.t[-1]:g} s", "speed then (rad/s, m/s)"),
        [
            (name, *(f"{x[k]:.3f}" for x in (motion.q[0], motion.q[-1], motion.v[-1])))
            for k, name in enumerate(arm.joint_names)
        ],
    )
    camera = {"trail": arm.link_names[-1], "azimuth": -50.0, "elevation": 18.0, "ticks": False, "dpi": 90}
    return Exhibit(
        f"`lw.simulate(arm, q0, v0, {SWING:g}, passive=spring)`: let go stretched out level, with a push about the "
        f"vertical axis; a spring of {STIFFNESS:g} N/m holds the sliding joint, which nothing else would. The line is "
        "the path of the hand.",
        pictures=(Animation(motion, camera), motion.plot()) if drawable() else (),
        tables=(table,),
        compared=(Comparison("change of energy, as a share of the largest kinetic energy", float(drift), 1e-8),),
    )


@TOUR.shows("3", "A five-bar mechanism passes its singular position")
def five_bar() -> Exhibit:
    duration = 2.0
    motion = spencer2004.with_projection(duration)
    times = spencer2004.passages(motion)
    drift = np.abs(motion.energy - motion.energy[0]).max()
    angles = {"joint 1": motion.q[:, 0], "joints 2 and 4": motion.q[:, 1], "joint 3": motion.q[:, 2]}
    panels = [
        Panel("joint angle (rad)", angles),
        Panel("condition number", {"": spencer2004.condition_numbers(motion)}, logarithmic=True),
    ]
    return Exhibit(
        "A closed loop: when all links lie in one line, most methods divide by zero there. `lw.simulate` passes, at "
        + " and ".join(f"{time:.2f} s" for time in times)
        + ", with the loop closed and the energy kept. Joints 2 and 4 move alike, by symmetry.",
        pictures=(Animation(motion), over(motion.t, panels)) if drawable() else (),
        compared=(
            Comparison("largest gap of the loop (m)", float(motion.constraint_error.max()), 1e-3),
            Comparison("change of energy (J)", float(drift), 1e-6),
            compare("joint 4 moves as joint 2 does", motion.q[:, 3], motion.q[:, 1], 1e-3),
        ),
    )
