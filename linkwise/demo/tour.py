"""The first minute with the library: one arm in numbers, two motions in pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import linkwise as lw

from .drawing import Panel, drawable, over
from .exhibit import Animation, Comparison, Exhibit, Paper, Table, compare
from .timing import best, cpu_name

TITLE = "One minute with linkwise"
LEAD = (
    "linkwise computes the dynamics of mechanisms: it compiles each quantity for one given mechanism into machine "
    "code that works on many states at once. Everything here was computed on this machine a moment ago."
)
IN_CHECKOUT = (Path(__file__).parents[2] / "examples").is_dir()  # an installed package comes without examples
NEXT = (
    *(["python examples/01_load_and_compute.py      the numbered examples, in order"] if IN_CHECKOUT else []),
    "linkwise info robot.urdf                    your own robot",
    "linkwise simulate robot.urdf --duration 2 --plot motion.png --gif motion.gif",
    *(["linkwise bench robot.urdf                   how fast it is here"] if IN_CHECKOUT else []),
    *(
        ["linkwise reproduce all                      the papers' figures and tables in a gallery"]
        if IN_CHECKOUT
        else []
    ),
    "linkwise --help                             everything else",
)
TOUR = Paper(
    key="tour",
    title="An arm, a swing, a singular position",
    authors="",
    about="Three things to see before reading anything."
    + " The same in Python: the scripts in `examples/`." * IN_CHECKOUT,
)
ALGORITHMS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")
BATCH, FEW = 4096, 256  # states that are computed at a time, and by NumPy
# The swing of the Stanford arm: where it starts (rad, m), how fast (rad/s), the spring of its slide (N/m), seconds.
STRETCHED, PUSHED = (0.0, np.pi / 2.0, 0.45, 0.6, 0.8, 0.0), (1.2, 0.0, 0.0, 0.0, 0.0, 0.0)
SLIDING, STIFFNESS, SWING = 2, 400.0, 4.0
# The five-bar mechanism: seconds, steps of time, the condition number beyond which a position is singular, and the rows
# of the constraint Jacobian that a planar mechanism can violate.
PASSING, STEP, SINGULAR, PLANAR = 2.0, 1e-3, 100.0, (0, 1)
ELBOW = np.pi / 3.0 + np.arccos(2.0 / 3.0)
START = (2.0 * np.pi / 3.0, ELBOW, 2.0 * np.arcsin(2.0 / 3.0), ELBOW)


@TOUR.shows("1", "A Puma 560 in numbers")
def arm() -> Exhibit:
    """Mass matrix, operation counts, speed."""
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
    heads = ("function", "operations", "ns per state", "times faster than NumPy")
    rng = np.random.default_rng(0)
    states, rates = lw.random_state(mech, rng, (BATCH,))
    a = rng.normal(size=rates.shape)
    rows = [_speed(name, mech, states, rates, a) for name in ALGORITHMS]
    tau = lw.inverse_dynamics(mech, states, rates, a)
    return Exhibit(
        "`lw.mechanisms.puma560()`, six joints. Below: its mass matrix in one position, then what the compiled "
        f"functions cost for one state and how fast they are in batches of {BATCH}, one thread, on {cpu_name()}; "
        "NumPy runs the same programs, operation by operation.",
        pictures=(lw.viewer.draw(mech, q, labels=True),) if drawable() else (),
        tables=(matrix, Table(heads, rows)),
        compared=(
            compare(
                "forward dynamics undoes inverse dynamics, all states",
                lw.forward_dynamics(mech, states, rates, tau),
                a,
                1e-9,
            ),
            compare("mass matrix: stacked operators of the papers", mass, _stacked(mech, q), 1e-12),
        ),
    )


def _speed(name: str, mech: lw.Mechanism, *states: np.ndarray) -> tuple[str, ...]:
    """Table row: operations of an algorithm, time per state, and the speed-up over NumPy."""
    kernel, interpreter = lw.compile(name, mech), lw.compile(name, mech, target="numpy")
    arrays = states[: len(kernel.input_shapes)]
    before = lw.codegen.get_num_threads()
    lw.codegen.set_num_threads(1)
    try:
        (seconds,) = best(lambda: kernel(*arrays))
        (interpreted,) = best(lambda: interpreter(*(x[:FEW] for x in arrays)), rounds=2)
    finally:
        lw.codegen.set_num_threads(before)
    counts = ", ".join(f"{kind} {n}" for kind, n in kernel.op_counts.items())
    ratio = interpreted / FEW / (seconds / BATCH)
    return name.replace("_", " "), counts, f"{1e9 * seconds / BATCH:.0f}", f"{ratio:.0f}"


def _stacked(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    op = lw.operators
    return op.dense(op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R, mech, q)


@TOUR.shows("2", "The Stanford arm swings, its slide on a spring")
def swing() -> Exhibit:
    arm = lw.mechanisms.stanford_arm()
    slide = arm.joint_names[SLIDING]
    # Nothing holds the slide of the arm: let go, it would run out for metres.
    spring = lw.forces.Passive.springs({slide: STIFFNESS}, rest={slide: STRETCHED[SLIDING]})
    motion = lw.simulate(
        arm, STRETCHED, PUSHED, SWING, passive=spring, t_eval=0.01, settings=lw.motion.Settings(rtol=1e-11, atol=1e-11)
    )
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
    mech = lw.mechanisms.five_bar()
    motion = lw.simulate(
        mech, START, np.zeros(4), PASSING, method="rk4", step=STEP, settings=lw.motion.Settings(keep_energy=True)
    )
    sizes = np.linalg.svd(lw.constraints.constraint_jacobian(mech, motion.q)[:, PLANAR, :], compute_uv=False)
    condition = sizes[:, 0] / np.maximum(sizes[:, -1], np.finfo(float).eps)
    peaks = (condition[1:-1] > condition[:-2]) & (condition[1:-1] > condition[2:]) & (condition[1:-1] > SINGULAR)
    times = motion.t[1:-1][peaks]
    drift = np.abs(motion.energy - motion.energy[0]).max()
    angles = {"joint 1": motion.q[:, 0], "joints 2 and 4": motion.q[:, 1], "joint 3": motion.q[:, 2]}
    panels = [
        Panel("joint angle (rad)", angles),
        Panel("condition number", {"": condition}, logarithmic=True),
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
