"""Closed forward dynamics against MuJoCo and Pinocchio: same mechanisms, same states, one process, one core, float64.

States lie on the constraint manifold: assembled configurations, random velocities that keep the loops closed, random
joint forces.  What each side does:

linkwise    ``lw.forward_dynamics(mech, q, v, tau)``: a batch of 4096 states in one call, and one state in one
            call from Python.  Loops as the mechanism has them: planar ones are closed by revolute joints, 5 rows each.
MuJoCo      ``mj_forward``: loops as ``connect`` (3 rows), as stiff as it permits; solver Newton, no contacts.  Raw
            calls on 256 ``MjData`` whose states are set beforehand; each starts its solver from its own last answer,
            in MuJoCo's favour.  Its constraints leave out dG/dt v, so that accelerations are compared at rest.
Pinocchio   ``constraintDynamics``: loops as ``CONTACT_3D`` (ball joints and pins) or ``CONTACT_6D`` (welds), with
            proximal settings that converge where rows are redundant.  Raw calls over 256 states whose arrays exist
            beforehand.
lcaba       Pinocchio's loop-constrained articulated bodies: the same constraints, states and settings, but for mu,
            which is 1e-6 as its documentation has it; joints in the order of ``computeJointMinimalOrdering``.  "-"
            where its accelerations differ from those of ``constraintDynamics`` by more than a thousandth.

Neither peer has a batched call of these on one thread, so that a call per state from Python is what there is; "empty
call" is the same call on a pendulum without loops, and bounds from above what Python adds to each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything that has threads is loaded
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import mujoco
import numpy as np
import pinocchio as pin

import linkwise as lw
from benchmarks.speed import best, cpu_name

BATCH, PEER_STATES = 4096, 256
AGREES = 1e-3  # relative, of accelerations: what differs by more is another motion
LINEAR_FIRST = [3, 4, 5, 0, 1, 2]
TALOS = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots" / "talos_data"
BUILT_IN = ("five_bar", "four_bar", "slider_crank", "loader", "delta_robot", "stewart_platform")
NAMES = (*BUILT_IN, "talos_on_two_feet")
PLANAR = BUILT_IN[:4]


# -- mechanisms and their states ------------------------------------------------------------------------


def talos() -> tuple[lw.Mechanism, np.ndarray]:
    """The robot with both feet welded to the ground where they are when it half sits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        mech = lw.load(TALOS / "robots" / "talos_reduced.urdf", floating_base=True)
    model = pin.buildModelFromUrdf(str(TALOS / "robots" / "talos_reduced.urdf"), pin.JointModelFreeFlyer())
    pin.loadReferenceConfigurations(model, str(TALOS / "srdf" / "talos.srdf"), False)
    q = lw.neutral(mech)
    for body in mech.bodies[1:]:
        q[mech.q_index(body.joint)] = model.referenceConfigurations["half_sitting"][
            model.joints[model.getJointId(body.joint)].idx_q
        ]
    feet = []
    for side in ("left", "right"):
        pose = lw.frame_pose(mech, q, f"{side}_sole_link")
        feet.append(lw.constraints.Loop(f"{side}_foot", lw.Fixed(), "ground", pose, f"{side}_sole_link", None))
    return mech.with_loops(*feet), q


def assembled(name: str) -> tuple[lw.Mechanism, np.ndarray]:
    if name == "talos_on_two_feet":
        return talos()
    mech = getattr(lw.mechanisms, name)()
    if name == "five_bar":
        inner = np.pi / 3 + np.arccos(2 / 3)
        return mech, np.array([2 * np.pi / 3, inner, 2 * np.arcsin(2 / 3), inner])
    return mech, lw.neutral(mech)


def states(mech: lw.Mechanism, q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Closed configurations around q, velocities in the null space, joint forces; every PEER_STATES-th is the same."""
    rng = np.random.default_rng(2024)
    basis = lw.constraints.null_space(mech, q)
    some = min(count, PEER_STATES)
    near = lw.integrate(mech, q, 0.1 * rng.normal(size=(some, basis.shape[1])) @ basis.T, 1.0)
    near, v = lw.constraints.project(mech, near, rng.normal(size=(some, mech.nv)), largest=1.0)
    weights = np.array([max(1.0, body.mass) for body in mech.bodies]).mean()
    parts = (near, v, weights * rng.normal(size=v.shape))
    return tuple(np.ascontiguousarray(np.tile(x, (-(-count // some), 1))[:count]) for x in parts)


# -- Pinocchio ------------------------------------------------------------------------------------------


def pinocchio_joint(kind: lw.extend.Joint) -> Any:
    if isinstance(kind, lw.Revolute | lw.Prismatic):
        turns = isinstance(kind, lw.Revolute)
        aligned = "RX RY RZ".split() if turns else "PX PY PZ".split()
        if max(kind.axis) == 1.0:
            return getattr(pin, f"JointModel{aligned[kind.axis.index(1.0)]}")()
        return (pin.JointModelRevoluteUnaligned if turns else pin.JointModelPrismaticUnaligned)(np.array(kind.axis))
    if isinstance(kind, lw.Universal):
        return pin.JointModelUniversal(np.array(kind.axis1), np.array(kind.axis2))
    return {lw.Floating: pin.JointModelFreeFlyer, lw.Spherical: pin.JointModelSpherical}[type(kind)]()


def _depth_first(mech: lw.Mechanism, body: int = -1) -> list[int]:
    """All bodies beyond this one, each followed by those that it carries."""
    children = [i for i, each in enumerate(mech.bodies) if each.parent == body]
    return [i for child in children for i in (child, *_depth_first(mech, child))]


class PinocchioPeer:
    def __init__(self, mech: lw.Mechanism):
        self.model, ids = pin.Model(), {-1: 0}
        q_order: list[int] = []
        v_order: list[int] = []
        for i in _depth_first(mech):  # its sparse factorization supposes that subtrees are contiguous
            body = mech.bodies[i]
            pose = pin.SE3(np.array(body.rotation), np.array(body.position))
            ids[i] = self.model.addJoint(ids[body.parent], pinocchio_joint(body.kind), pose, body.joint)
            inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
            self.model.appendBodyToJoint(ids[i], inertia, pin.SE3.Identity())
            q, v = np.arange(mech.nq)[mech.q_index(body.joint)], np.arange(mech.nv)[mech.v_index(body.joint)]
            if isinstance(body.kind, lw.Floating):
                q, v = q[[4, 5, 6, 1, 2, 3, 0]], v[LINEAR_FIRST]
            elif isinstance(body.kind, lw.Spherical):
                q = q[[1, 2, 3, 0]]
            q_order.extend(q)
            v_order.extend(v)
        self.q_order, self.v_order = q_order, v_order
        self.model.gravity.linear = np.array(mech.gravity)
        if any(np.any(body.armature) for body in mech.bodies):
            self.model.armature = np.concatenate([body.armature for body in mech.bodies])[v_order]
        self.loops = pin.StdVec_RigidConstraintModel()
        for loop in mech.loops:
            sides: list[tuple[int, Any]] = []
            for link, pose in ((loop.link_a, loop.pose_a), (loop.link_b, loop.pose_b)):
                frame = mech.frame(link)
                place = pin.SE3(frame.rotation @ pose[0], frame.rotation @ pose[1] + frame.position)
                sides.append((ids[frame.body], place))
            sides.sort(key=lambda side: side[0] == 0)  # the world last: with the world first lcaba crashes
            (a, place_a), (b, place_b) = sides
            kind = pin.ContactType.CONTACT_6D if isinstance(loop.kind, lw.Fixed) else pin.ContactType.CONTACT_3D
            local = pin.ReferenceFrame.LOCAL
            self.loops.append(pin.RigidConstraintModel(kind, self.model, a, place_a, b, place_b, local))
        self.loop_data = pin.StdVec_RigidConstraintData()
        self.loop_data.extend([loop.createData() for loop in self.loops])
        self.settings = pin.ProximalSettings(1e-12, 1e-12, 1e-9, 20)
        self.data = self.model.createData()
        pin.initConstraintDynamics(self.model, self.data, self.loops, self.loop_data)
        self.lca_settings = pin.ProximalSettings(1e-12, 1e-6, 20)
        self.lca_data = self.model.createData()
        pin.computeJointMinimalOrdering(self.model, self.lca_data, self.loops)

    def given(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """The states as arrays of its own, one triple each."""
        ordered = q[:, self.q_order], v[:, self.v_order], tau[:, self.v_order]
        return [tuple(map(np.array, each)) for each in zip(*ordered, strict=True)]

    def call(self, name: str = "constraintDynamics") -> Callable[..., np.ndarray]:
        """Accelerations of a state of its own by either of its algorithms."""
        function, data, settings = {
            "constraintDynamics": (pin.constraintDynamics, self.data, self.settings),
            "lcaba": (pin.lcaba, self.lca_data, self.lca_settings),
        }[name]
        model, loops, loop_data = self.model, self.loops, self.loop_data
        return lambda q, v, tau: function(model, data, q, v, tau, loops, loop_data, settings)

    def loop_over(self, given: list[tuple[np.ndarray, ...]], name: str = "constraintDynamics") -> Callable[[], None]:
        call = self.call(name)

        def run() -> None:
            for q, v, tau in given:
                call(q, v, tau)

        return run

    def accelerations(self, given: list[tuple[np.ndarray, ...]], name: str = "constraintDynamics") -> np.ndarray:
        call, found = self.call(name), np.empty((len(given), self.model.nv))
        for i, state in enumerate(given):
            found[i, self.v_order] = call(*state)
        return found


# -- MuJoCo ---------------------------------------------------------------------------------------------


class MujocoPeer:
    def __init__(self, mech: lw.Mechanism):
        self.mech = mech
        self.model = _mujoco_spec(mech).compile()
        self.addresses = [self.model.joint(f"{body.joint}_0") for body in mech.bodies]

    def given(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> list[mujoco.MjData]:
        return [self._placed(*each) for each in zip(q, v, tau, strict=True)]

    def _placed(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> mujoco.MjData:
        data = mujoco.MjData(self.model)
        for body, joint in zip(self.mech.bodies, self.addresses, strict=True):
            own_q, own_v, own_tau = (
                q[self.mech.q_index(body.joint)],
                *(x[self.mech.v_index(body.joint)] for x in (v, tau)),
            )
            if isinstance(body.kind, lw.Floating):  # whose parent is the ground, with its axes
                world = _rotation(own_q[:4])
                own_q = np.concatenate([body.position + own_q[4:], own_q[:4]])
                own_v, own_tau = (np.concatenate([world @ x[3:], x[:3]]) for x in (own_v, own_tau))
            data.qpos[joint.qposadr[0] :][: len(own_q)] = own_q
            data.qvel[joint.dofadr[0] :][: len(own_v)] = own_v
            data.qfrc_applied[joint.dofadr[0] :][: len(own_v)] = own_tau
        return data

    def loop_over(self, given: list[mujoco.MjData]) -> Callable[[], None]:
        call, model = mujoco.mj_forward, self.model

        def run() -> None:
            for data in given:
                call(model, data)

        return run

    def accelerations(self, given: list[mujoco.MjData]) -> np.ndarray:
        """At rest, where rates of a free body in its own and in the world's axes differ by a rotation only."""
        found = np.empty((len(given), self.mech.nv))
        for i, data in enumerate(given):
            mujoco.mj_forward(self.model, data)
            for body, joint in zip(self.mech.bodies, self.addresses, strict=True):
                own = np.array(data.qacc[joint.dofadr[0] :][: body.nv])
                if isinstance(body.kind, lw.Floating):
                    own = np.concatenate([own[3:], _rotation(data.qpos[joint.qposadr[0] + 3 :][:4]).T @ own[:3]])
                found[i, self.mech.v_index(body.joint)] = own
        return found


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    flat = np.empty(9)
    mujoco.mju_quat2Mat(flat, np.ascontiguousarray(quaternion))
    return flat.reshape(3, 3)


def _quaternion(rotation: np.ndarray) -> np.ndarray:
    result = np.empty(4)
    mujoco.mju_mat2Quat(result, np.ascontiguousarray(rotation).ravel())
    return result


def _mujoco_spec(mech: lw.Mechanism) -> mujoco.MjSpec:
    spec, kinds = mujoco.MjSpec(), mujoco.mjtJoint
    spec.option.gravity = np.array(mech.gravity)
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    spec.compiler.degree, spec.compiler.boundinertia, spec.compiler.balanceinertia = False, 1e-9, True
    made: list[Any] = [spec.worldbody]
    for body in mech.bodies:
        child = made[body.parent + 1].add_body(name=body.link, pos=body.position, quat=_quaternion(body.rotation))
        if isinstance(body.kind, lw.Universal):
            joints = [(kinds.mjJNT_HINGE, body.kind.axis1), (kinds.mjJNT_HINGE, body.kind.axis2)]
        elif isinstance(body.kind, lw.Floating):
            joints = [(kinds.mjJNT_FREE, (0.0, 0.0, 1.0))]
        else:
            kind = kinds.mjJNT_HINGE if isinstance(body.kind, lw.Revolute) else kinds.mjJNT_SLIDE
            joints = [(kind, body.kind.axis)]
        for i, (kind, axis) in enumerate(joints):
            child.add_joint(name=f"{body.joint}_{i}", type=kind, axis=np.array(axis))
        child.mass, child.ipos, child.explicitinertial = body.mass, np.array(body.com), True
        child.fullinertia = body.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        made.append(child)
    for loop in mech.loops:
        for link, pose in ((loop.link_a, loop.pose_a), (loop.link_b, loop.pose_b)):
            frame = mech.frame(link)
            site = made[frame.body + 1].add_site(name=f"{loop.name}_{link}")
            site.pos = frame.rotation @ pose[1] + frame.position
        spec.add_equality(
            type=mujoco.mjtEq.mjEQ_CONNECT,
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            name1=f"{loop.name}_{loop.link_a}",
            name2=f"{loop.name}_{loop.link_b}",
            solref=[-1e6, -2e3],
            solimp=[0.9999, 0.9999, 0.001, 0.5, 2.0],
        )
    return spec


# -- measuring ------------------------------------------------------------------------------------------


class Result(NamedTuple):
    """Seconds: per state in a batch, for one state; largest relative differences of accelerations."""

    batch: float
    single: float
    pinocchio: float
    lcaba: float | None
    mujoco: float | None
    pinocchio_error: float
    svd_error: float
    mujoco_error: float | None


def measure(name: str) -> Result:
    mech, start = assembled(name)
    q, v, tau = states(mech, start, BATCH)
    some = [x[:PEER_STATES] for x in (q, v, tau)]
    own = lw.forward_dynamics(mech, *some)
    reference = lw.forward_dynamics(mech, *some, method="svd")
    pinocchio = PinocchioPeer(mech)
    given = pinocchio.given(*some)
    calls = [
        lambda: lw.forward_dynamics(mech, q, v, tau),
        pinocchio.loop_over(given),
    ]
    theirs = pinocchio.accelerations(given)
    has_lcaba = _difference(pinocchio.accelerations(given, "lcaba"), theirs) < AGREES
    if has_lcaba:
        calls.append(pinocchio.loop_over(given, "lcaba"))
    mujoco_error = None
    if name in BUILT_IN:
        peer = MujocoPeer(mech)
        calls.append(peer.loop_over(peer.given(*some)))
        at_rest = lw.forward_dynamics(mech, some[0], 0.0 * some[1], some[2])
        mujoco_error = _difference(peer.accelerations(peer.given(some[0], 0.0 * some[1], some[2])), at_rest)
    batch, *others = best(*calls)
    one = [x[0].copy() for x in (q, v, tau)]
    single = best(lambda: lw.forward_dynamics(mech, *one), repeats=200, slice_seconds=0.03)[0]
    peers = [seconds / PEER_STATES for seconds in others]
    return Result(
        batch / BATCH,
        single,
        peers.pop(0),
        peers.pop(0) if has_lcaba else None,
        peers.pop(0) if peers else None,
        _difference(theirs, own),
        _difference(own, reference),
        mujoco_error,
    )


def _difference(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.max(np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)))


def empty_calls() -> tuple[float, float]:
    """Seconds of the peers' calls on a pendulum without loops."""
    builder = lw.Builder().link("bob", 1.0, (0.0, -1.0, 0.0), (0.1, 0.1, 0.1))
    pendulum = builder.joint("hinge", lw.Revolute(), "ground", "bob").build("pendulum")
    zero = np.zeros((PEER_STATES, 1))
    calls = [peer.loop_over(peer.given(zero, zero, zero)) for peer in (PinocchioPeer(pendulum), MujocoPeer(pendulum))]
    first, second = best(*calls)
    return first / PEER_STATES, second / PEER_STATES


def compile_times() -> dict[str, float]:
    """Processor seconds until the first answer, for a batch, in a fresh process with an empty cache of kernels."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LINKWISE_CACHE_DIR": folder}
        command = [sys.executable, str(Path(__file__).resolve()), "--compile"]
        return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)


def print_compile_times() -> None:
    lw.compile("gravity_force", lw.mechanisms.chain(1))  # LLVM itself starts once per process
    times = {}
    for name in NAMES:
        mech, q = assembled(name)
        zero = np.zeros((8, mech.nv))
        start = time.process_time()
        lw.forward_dynamics(mech, np.tile(q, (8, 1)), zero, zero)
        times[name] = time.process_time() - start
    print(json.dumps(times))


# -- reporting ------------------------------------------------------------------------------------------


def main() -> None:
    if sys.argv[1:2] == ["--compile"]:
        print_compile_times()
        return
    lw.codegen.set_num_threads(1)
    print(__doc__)
    print(
        f"linkwise {lw.__version__}, Pinocchio {pin.__version__}, MuJoCo {mujoco.__version__}, NumPy {np.__version__}\n"
        f"{cpu_name()}, 1 thread, float64, batch {BATCH}"
    )
    compiled, (pinocchio_empty, mujoco_empty) = compile_times(), empty_calls()
    print(f"empty call: Pinocchio {pinocchio_empty * 1e6:.2f} us, MuJoCo {mujoco_empty * 1e6:.2f} us\n")
    print(
        "                   per state in a batch (us)                ratio to                single call  of faster"
        "  compile  accelerations differ from\n"
        "                   linkwise  MuJoCo  Pinocchio   lcaba  MuJoCo  Pinocchio   lcaba  (us)            peer   "
        "     s    Pinocchio  SVD      MuJoCo at rest"
    )
    lowest = np.inf
    for name in NAMES:
        r = measure(name)
        faster = min(x for x in (r.pinocchio, r.lcaba, r.mujoco) if x is not None)
        lowest = min(lowest, faster / r.batch)
        other, lcaba = (f"{x * 1e6:6.2f}" if x else "     -" for x in (r.mujoco, r.lcaba))
        other_ratio, lcaba_ratio = (f"{x / r.batch:6.1f}" if x else "     -" for x in (r.mujoco, r.lcaba))
        other_error = f"{r.mujoco_error:.1e}" if r.mujoco_error is not None else "-"
        print(
            f"{name:18} {r.batch * 1e6:8.3f}  {other}  {r.pinocchio * 1e6:9.2f}  {lcaba}  {other_ratio}  "
            f"{r.pinocchio / r.batch:9.1f}  {lcaba_ratio}  {r.single * 1e6:11.2f}  {r.single / faster:9.2f}  "
            f"{compiled[name]:7.2f}  "
            f"{r.pinocchio_error:9.1e}  {r.svd_error:.1e}  {other_error}",
            flush=True,
        )
    print(f"\nRATIO to the faster peer in batches, lowest: {lowest:.2f}")


if __name__ == "__main__":
    main()
