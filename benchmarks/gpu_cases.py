"""What kernels for GPUs are checked on: mechanisms, algorithms, inputs, and how results are compared.

Used by gpu.py on a GPU and by ``python -m tools.catalogue_on_host`` without one, where the module ``cupy`` stands for
the host's compiler; it is imported when a kernel is called.
"""

from __future__ import annotations

import time
import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

import linkwise as lw
from linkwise.mechanics.algorithms.catalogue import variants

FILES = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", False),
    "Panda": ("panda_description/urdf/panda.urdf", False),
    "Solo12": ("solo_description/robots/solo12.urdf", True),
    "Talos": ("talos_data/robots/talos_reduced.urdf", True),
}
BUILT_IN = {
    "chain(20)": lambda: lw.mechanisms.chain(20),
    "five-bar": lw.mechanisms.five_bar,
    "Stewart platform": lw.mechanisms.stewart_platform,
}
VARIANTS = {algorithm.name: algorithm for algorithm in variants()}  # with and without optional inputs
MAIN = (
    "inverse_dynamics forward_dynamics mass_matrix bias_force link_poses forward_dynamics_derivatives "
    "inverse_dynamics_derivatives kinetic_energy integrate difference"
).split()
CLOSED = ("closed_forward_dynamics", "constraint_jacobian", "position_error")
CHECKED = {  # algorithms whose code is small enough to be compiled within seconds
    "UR5": tuple(VARIANTS),
    "Panda": MAIN,
    "Solo12": ("inverse_dynamics", "forward_dynamics", "mass_matrix", "integrate"),
    "Talos": ("inverse_dynamics", "forward_dynamics"),
    "chain(20)": ("inverse_dynamics", "forward_dynamics"),
    "five-bar": CLOSED,
    "Stewart platform": CLOSED,
}
TOLERANCES = {"float64": 1e-12, "float32": 1e-4}
DTYPES = ("float32", "float64")
STATES = 70  # of each check: more than two warps


@cache
def mechanism(name: str, robots: Path) -> lw.Mechanism:
    if name in BUILT_IN:
        return BUILT_IN[name]()
    path, floating_base = FILES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(robots / path, floating_base=floating_base)


def found_robots() -> Path:
    import pinocchio

    return Path(pinocchio.__file__).parents[4] / "share" / "example-robot-data" / "robots"


def initial_states(mech: lw.Mechanism, count: int, rng: np.random.Generator | None = None) -> tuple[np.ndarray, ...]:
    """Random ones; of a closed mechanism near the one it is drawn in, assembled."""
    rng = rng or np.random.default_rng(0)
    if not mech.loops:
        return lw.random_state(mech, rng, (count,))
    drawn = lw.constraints.assemble(mech, mech.initial)
    free = lw.constraints.null_space(mech, drawn)
    q = lw.integrate(mech, drawn, 0.1 * rng.normal(size=(count, free.shape[1])) @ free.T, 1.0)
    return lw.constraints.project(mech, q, rng.normal(size=(count, mech.nv)), largest=1.0)


def states(mech: lw.Mechanism, kernel: lw.Kernel, count: int, seed: int = 0) -> list[np.ndarray]:
    """Random inputs of a kernel, such as its algorithm is meant for: configurations are ones, loops closed; momenta
    those of velocities of about 1; variances positive; steps a millisecond: implicit ones of a second do not converge.
    """
    rng = np.random.default_rng(seed)
    q, v = initial_states(mech, count, rng)
    if mech.loops and any(word in kernel.name for word in OPEN):
        q = lw.integrate(mech, q, rng.normal(size=(count, mech.nv)), 0.01)
        v = rng.normal(size=(count, mech.nv))
    arrays = []
    for name, shape in kernel.input_shapes.items():
        if name in kernel.configurations or (name.startswith("q") and shape == (mech.nq,)):
            arrays.append(q if not arrays else initial_states(mech, count, rng)[0])
            continue
        numbers = rng.uniform(-1.0, 1.0, (count, *shape))
        if name == "v" and mech.loops:
            numbers = v
        elif name == "a" and mech.loops:
            numbers = lw.forward_dynamics(mech, q, v, numbers)
        elif name == "p":
            numbers = (lw.mass_matrix(mech, q) @ numbers[..., None])[..., 0]
        elif name == "dt":
            numbers = rng.uniform(0.5e-3, 1.5e-3, (count, *shape))
        elif name in POSITIVE:
            numbers = 1.5 + numbers
        elif name == "active":
            numbers = np.where(numbers < 0.5, 1.0, 0.0)  # loops hold or let go
        arrays.append(numbers)
    return arrays


#: Words in names of algorithms about loops that are open, or velocities that they do not allow.
OPEN = ("position_error", "impact", "projection", "assembly")
#: Variances, inverse variances and deviations; measurements have a certainty and a spread.
POSITIVE = ("variances", "weights", "of_rates", "of_forces", "deviations")


class Checked(NamedTuple):
    """What came out of a check.

    error     largest difference, of each result relative to its largest number; nan if nothing could be compared
    finite    share of the reference's numbers that are numbers
    seconds   to compile and call
    note      what is to be said: beyond the tolerance, wrong, failed, not for this mechanism
    """

    error: float
    finite: float
    seconds: float
    note: str


OTHER, FAILED = "not for this mechanism", "FAILED"
BEYOND, WRONG = "beyond the tolerance, as on the CPU", "WRONG"
FACTOR = 30.0  # by which errors of badly conditioned states differ, rounded in another order


def max_error(found, expected) -> float:
    """Largest difference, of each result relative to its largest number; infinite where one is no number."""
    error = 0.0
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True):
        good = np.isfinite(other)
        scale = np.abs(other[good]).max(initial=1e-30)
        difference = np.abs(one[good].astype(np.float64) - other[good]).max(initial=0.0) / scale
        error = max(error, float(difference) if np.isfinite(difference) else np.inf)
    return error


def finite_share(expected) -> float:
    given = expected if isinstance(expected, tuple) else (expected,)
    total = sum(x.size for x in given)
    return sum(int(np.isfinite(x).sum()) for x in given) / total if total else 1.0


def check(name: str, algorithm: str, dtype: str, robots: Path) -> Checked:
    """One algorithm of one mechanism in one precision against the NumPy reference."""
    try:
        mech = mechanism(name, robots)
        asked = VARIANTS[algorithm]
        needed = asked.options
        options = {"link": mech.link_names[-1]} if "link" in needed else {}
        reference = lw.compile(asked, mech, target="numpy", **options)
    except lw.MechanismError as error:  # this mechanism has no such quantity
        return Checked(np.nan, 0.0, 0.0, f"{OTHER}: {error}")
    try:
        import cupy

        arrays = [x.astype(dtype) for x in states(mech, reference, STATES)]
        start = time.perf_counter()
        results = lw.compile(asked, mech, dtype=dtype, target="cuda", **options)(*map(cupy.asarray, arrays))
        found = tuple(map(cupy.asnumpy, results)) if isinstance(results, tuple) else cupy.asnumpy(results)
        seconds = time.perf_counter() - start
        with np.errstate(all="ignore"):
            expected = reference(*arrays)
        error, note = max_error(found, expected), ""
        if error > TOLERANCES[dtype]:  # is it the state, which decides on how many digits there are?
            other = max_error(lw.compile(asked, mech, dtype=dtype, **options)(*arrays), expected)
            note = (
                f"{BEYOND if error <= FACTOR * other else WRONG}: {error:.1e} (the CPU in this precision {other:.1e})"
            )
        return Checked(error, finite_share(expected), seconds, note)
    except Exception as error:
        return Checked(np.nan, 0.0, 0.0, f"{FAILED}: {type(error).__name__}: {error}"[:600])
