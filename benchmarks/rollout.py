"""Rollouts against four calls of our own forward dynamics and against MuJoCo's rollouts, in one process, on one core.

A step of RK4 needs four forward dynamics; what it costs more is the integrator, the loop and the trajectory in memory.
MuJoCo (``mujoco.rollout``, one thread, RK4) gets the same mechanism through its own URDF import, with everything off
that these motions do not need (contacts, limits, friction, sensors), and the same states and joint forces; the
trajectories are compared before a time counts.  Ratios: time of ours over four forward dynamics (lower is better), time
of MuJoCo over ours (higher is better).

Closed mechanisms: a step against four closed forward dynamics; it ends with a projection of positions and velocities.
"""

from __future__ import annotations

import platform
import time
import warnings
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple

import llvmlite
import mujoco
import mujoco.rollout
import numpy as np
from scipy.spatial.transform import Rotation
from tree_dynamics import ROBOTS, best, cpu_name

import linkwise as lw
from linkwise.compiler.runtime import llvm_loader

BATCH, STEPS, DT = 4096, 50, 1e-3
FILES = {  # path, floating base, states for MuJoCo: its time per step does not depend on their number
    "UR5": ("ur_description/urdf/ur5_robot.urdf", False, 4096),
    "xArm 7": ("xarm_description/urdf/xarm7.urdf", False, 256),
    "Talos, floating": ("talos_data/robots/talos_reduced.urdf", True, 64),
    "chain of 20": (None, False, 64),
}
LIMITS = {"four forward dynamics": 1.3, "MuJoCo": 15.0}  # for the UR5
CLOSED = ("four_bar", "five_bar", "slider_crank", "loader", "delta_robot")
CLOSED_LIMIT = 1.5  # of four closed forward dynamics, for the five-bar
MANY, LONG = 10_000, 1_000  # states and steps of one long rollout of five-bars
OFF = ("CONSTRAINT", "CONTACT", "EQUALITY", "FRICTIONLOSS", "LIMIT", "SENSOR", "SPRING", "DAMPER", "ACTUATION")


def mechanism(name: str) -> lw.Mechanism:
    path, floating_base, _ = FILES[name]
    if path is None:
        return lw.mechanisms.chain(20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(ROBOTS / path, floating_base=floating_base)


# -- MuJoCo's side --------------------------------------------------------------------------------------


def mujoco_model(name: str) -> mujoco.MjModel:
    path, floating_base, _ = FILES[name]
    spec = chain_spec(mechanism(name)) if path is None else file_spec(path, floating_base)
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    spec.option.timestep = DT
    for what in OFF:
        spec.option.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{what}"))
    return spec.compile()


def chain_spec(mech: lw.Mechanism) -> mujoco.MjSpec:
    """A chain of hinges from the same numbers."""
    spec = mujoco.MjSpec()
    parent = spec.worldbody
    for body in mech.bodies:
        x, y, z, w = Rotation.from_matrix(body.rotation).as_quat()
        parent = parent.add_body(name=body.link, pos=body.position, quat=[w, x, y, z])
        parent.mass, parent.ipos, parent.explicitinertial = body.mass, body.com, True
        parent.fullinertia = [body.inertia[i][k] for i, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        parent.add_joint(name=body.joint, type=mujoco.mjtJoint.mjJNT_HINGE, axis=body.kind.axis)
    return spec


def file_spec(path: str, floating_base: bool) -> mujoco.MjSpec:
    """The URDF file as MuJoCo reads it; without shapes, which would need the mesh files, and without damping."""
    root = ElementTree.parse(ROBOTS / path).getroot()
    for part in root:
        for tag in ("visual", "collision", "dynamics"):
            for element in part.findall(tag):
                part.remove(element)
    for other in [part for part in root if part.tag not in ("link", "joint")]:
        root.remove(other)
    ElementTree.SubElement(
        ElementTree.SubElement(root, "mujoco"), "compiler", fusestatic="false" if floating_base else "true"
    )
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(root, encoding="unicode"))
    if floating_base:
        spec.worldbody.first_body().add_freejoint()
    return spec


class Order(NamedTuple):
    """Where MuJoCo's coordinates are in linkwise's; a free base is turned as well (``turned``)."""

    q: list[int]
    v: list[int]
    floating: bool

    def state(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Time, qpos, qvel: a free base moves with its linear velocity in world axes, first."""
        v = v.copy()
        if self.floating:
            v[..., 3:6] = turned(q[..., :4], v[..., 3:6])
        return np.concatenate([np.zeros((*q.shape[:-1], 1)), q[..., self.q], v[..., self.v]], axis=-1)


def order(mech: lw.Mechanism, model: mujoco.MjModel) -> Order:
    q_order, v_order = np.zeros(model.nq, int), np.zeros(model.nv, int)
    floating = isinstance(mech.bodies[0].kind, lw.Floating)
    for body in mech.bodies:
        q, v = np.arange(mech.nq)[mech.q_index(body.joint)], np.arange(mech.nv)[mech.v_index(body.joint)]
        if isinstance(body.kind, lw.Floating):
            joint, q, v = model.joint(0), q[[4, 5, 6, 0, 1, 2, 3]], v[[3, 4, 5, 0, 1, 2]]
        else:
            joint = model.joint(body.joint)
        q_order[joint.qposadr[0] : joint.qposadr[0] + len(q)] = q
        v_order[joint.dofadr[0] : joint.dofadr[0] + len(v)] = v
    return Order(q_order.tolist(), v_order.tolist(), floating)


def turned(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """R u = u + 2 w (p x u) + 2 p x (p x u)."""
    w, p = quaternion[..., :1], quaternion[..., 1:]
    arm = np.cross(p, vector)
    return vector + 2.0 * (w * arm + np.cross(p, arm))


# -- measuring ------------------------------------------------------------------------------------------


class Result(NamedTuple):
    forward: float  # nanoseconds of one forward dynamics
    step: float  # nanoseconds of one step, into arrays that are there
    fresh: float  # into new arrays
    last: float  # the last state only
    semi_implicit: float  # likewise, by the other method
    peer: float  # nanoseconds of a step of MuJoCo
    error: float


def measure(name: str) -> Result:
    mech = mechanism(name)
    rng = np.random.default_rng(2024)
    q, v = lw.random_state(mech, rng, (BATCH,))
    tau = rng.normal(size=(BATCH, STEPS, mech.nv))
    if isinstance(mech.bodies[0].kind, lw.Floating):
        tau[..., :6] = 0.0  # nothing pushes the base
    peer, error = mujoco_call(mech, name, q, v, tau)

    kernel, one, a = lw.compile("forward_dynamics", mech), tau[:, 0].copy(), np.empty_like(v)
    out = np.empty((BATCH, STEPS + 1, mech.nq)), np.empty((BATCH, STEPS + 1, mech.nv))
    seconds = best(
        lambda: kernel(q, v, one, out=a),
        lambda: lw.rollout(mech, q, v, tau, DT, STEPS, out=out),
        lambda: lw.rollout(mech, q, v, tau, DT, STEPS),
        lambda: lw.rollout(mech, q, v, tau, DT, STEPS, final_only=True),
        lambda: lw.rollout(mech, q, v, tau, DT, STEPS, "semi_implicit", final_only=True),
    )
    forward, *steps = (1e9 * x / BATCH for x in seconds)
    (theirs,) = best(peer, rounds=3)
    return Result(forward, *(x / STEPS for x in steps), 1e9 * theirs / FILES[name][2] / STEPS, error)


def mujoco_call(mech: lw.Mechanism, name: str, q, v, tau):
    """MuJoCo's rollout as a call without arguments, and how far its trajectories are from ours."""
    model, count = mujoco_model(name), FILES[name][2]
    data, places = mujoco.MjData(model), order(mech, model)
    initial = places.state(q[:count], v[:count])
    forces = np.ascontiguousarray(tau[:count][..., places.v])
    state, sensors = np.zeros((count, STEPS, initial.shape[-1])), np.zeros((count, STEPS, 0))

    def call():
        return mujoco.rollout.rollout(
            model,
            data,
            initial,
            forces,
            control_spec=int(mujoco.mjtState.mjSTATE_QFRC_APPLIED),
            state=state,
            sensordata=sensors,
        )

    call()
    found = places.state(*lw.rollout(mech, q[:count], v[:count], tau[:count], DT, STEPS))[:, 1:, 1:]
    scale = np.abs(found).max(axis=(1, 2), keepdims=True)
    error = float((np.abs(found - state[..., 1:]) / scale).max())
    if not error < 1e-9:
        raise SystemExit(f"{name}: the trajectories differ by {error:.1e} (relative)")
    return call, error


# -- closed mechanisms ----------------------------------------------------------------------------------


class Closed(NamedTuple):
    forward: float  # nanoseconds of one closed forward dynamics
    step: float  # nanoseconds of one step, into arrays that are there
    last: float  # the last state only
    semi_implicit: float  # likewise, by the other method
    gap: float  # largest error of a loop afterwards


def closed_states(mech: lw.Mechanism, count: int) -> tuple[np.ndarray, np.ndarray]:
    """States around an assembled configuration."""
    rng = np.random.default_rng(2024)
    q = lw.constraints.assemble(mech, mech.initial)
    basis = lw.constraints.null_space(mech, q)
    q = lw.integrate(mech, q, 0.1 * rng.normal(size=(count, basis.shape[1])) @ basis.T, 1.0)
    return lw.constraints.project(mech, q, rng.normal(size=(count, mech.nv)), largest=1.0)


def measure_closed(name: str) -> Closed:
    mech = getattr(lw.mechanisms, name)()
    q, v = closed_states(mech, BATCH)
    tau = np.zeros((BATCH, STEPS, mech.nv))
    kernel, one, a = lw.compile("closed_forward_dynamics", mech), tau[:, 0].copy(), np.empty_like(v)
    out = np.empty((BATCH, STEPS + 1, mech.nq)), np.empty((BATCH, STEPS + 1, mech.nv))
    seconds = best(
        lambda: kernel(q, v, one, out=a),
        lambda: lw.rollout(mech, q, v, tau, DT, STEPS, out=out),
        lambda: lw.rollout(mech, q, v, tau, DT, STEPS, final_only=True),
        lambda: lw.rollout(mech, q, v, tau, DT, STEPS, "semi_implicit", final_only=True),
    )
    forward, *steps = (1e9 * x / BATCH for x in seconds)
    return Closed(forward, *(x / STEPS for x in steps), np.abs(lw.constraints.position_error(mech, out[0])).max())


def many_five_bars() -> tuple[float, float, int]:
    """Seconds of a long rollout, on all threads, the largest gap of a loop, and how many states lost energy."""
    mech = lw.mechanisms.five_bar()
    q, v = closed_states(mech, MANY)
    lw.rollout(mech, q[:8], v[:8], None, DT, 1)  # compiled
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        end = lw.rollout(mech, q, v, None, DT, LONG, final_only=True)
    seconds = time.perf_counter() - start
    energies = [lw.kinetic_energy(mech, *x) + lw.potential_energy(mech, x[0]) for x in ((q, v), end)]
    changed = np.abs(energies[1] - energies[0]) > 1e-4
    return seconds, np.abs(lw.constraints.position_error(mech, end[0])).max(), int(changed.sum())


def report_closed() -> None:
    seconds, gap, changed = many_five_bars()
    print(
        f"\n{MANY} five-bars for {LONG} steps: {seconds:.2f} s, largest gap {gap:.0e}, energy off by more than 1e-4 J "
        f"in {changed} of them (near singular positions, with a warning)"
    )
    lw.codegen.set_num_threads(1)
    print(
        "\nclosed mechanisms, ns per state    forward   step of RK4            semi-implicit   of four closed   largest"
    )
    print("                                  dynamics   kept   last only       last only   forward dynamics      gap")
    results = {name: measure_closed(name) for name in CLOSED}
    for name, r in results.items():
        print(
            f"{name:32}  {r.forward:8.0f} {r.step:6.0f} {r.last:11.0f} {r.semi_implicit:15.0f} "
            f"{r.step / (4.0 * r.forward):18.2f} {r.gap:8.0e}"
        )
    ratio = results["five_bar"].step / (4.0 * results["five_bar"].forward)
    verdict = "met" if ratio <= CLOSED_LIMIT else "NOT met"
    print(f"\nRATIO, five-bar: {ratio:.2f} of four closed forward dynamics (at most {CLOSED_LIMIT}): {verdict}")


def main() -> None:
    report_closed()
    lw.codegen.set_num_threads(1)
    options = llvm_loader.host_options("float64")
    print(
        f"linkwise {lw.__version__}, MuJoCo {mujoco.__version__}, NumPy {np.__version__}, llvmlite "
        f"{llvmlite.__version__}, Python {platform.python_version()}\n"
        f"{cpu_name()} ({options.cpu}), 1 thread on both sides, float64, {options.lanes} lanes, batch {BATCH}, "
        f"{STEPS} steps of {DT} s"
    )
    print("\nnanoseconds per state          forward       step of RK4              semi-implicit   MuJoCo's")
    print("                              dynamics   kept   new arrays   last only   last only        RK4")
    results = {name: measure(name) for name in FILES}
    for name, r in results.items():
        print(
            f"{name:28}  {r.forward:8.0f} {r.step:6.0f} {r.fresh:12.0f} {r.last:11.0f} {r.semi_implicit:11.0f} "
            f"{r.peer:10.0f}"
        )
    print("\nratio                      to four forward dynamics   last only   to MuJoCo   largest relative difference")
    for name, r in results.items():
        four = 4.0 * r.forward
        print(f"{name:28}  {r.step / four:22.2f} {r.last / four:11.2f} {r.peer / r.step:11.1f}   {r.error:.0e}")
    ur5 = results["UR5"]
    to_forward, to_peer = ur5.step / (4.0 * ur5.forward), ur5.peer / ur5.step
    good = to_forward <= LIMITS["four forward dynamics"] and to_peer >= LIMITS["MuJoCo"]
    verdict = "met" if good else "NOT met"
    print(
        f"\nRATIO, UR5: {to_forward:.2f} of four forward dynamics (at most {LIMITS['four forward dynamics']}), "
        f"{to_peer:.1f} times MuJoCo's steps per second (at least {LIMITS['MuJoCo']:.0f}): {verdict}"
    )


if __name__ == "__main__":
    main()
