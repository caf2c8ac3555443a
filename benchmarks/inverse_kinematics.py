"""Inverse kinematics: solves per second and the share of reachable poses that are solved, against other libraries.

python benchmarks/inverse_kinematics.py [--poses 10000] [--robots ur5,panda,iiwa,talos,kuka] [--repeats 7]

Targets are the poses of random configurations within the limits.  A pose is solved if position and rotation are met to
1e-8 (m, rad) within the limits.  linkwise takes batches of 1024 on one core, so many of them one after the other that
a turn lasts some milliseconds, as it does with all; of the peers, those that are installed take one pose after the
other, or batches where they can.  All are timed in turns, so that a busy machine slows all alike, by the time of the
processor; the best of the repeats counts.

Peers: roboticstoolbox-python (ik_LM in C++, with the damping that solves most per second), pytracik (TRAC-IK),
pinocchio (damped least squares, in Python around its C++), ikpy (optimization in Python).  Closed forms, of arms of
certain geometries: EAIK (C++), ik_geo and py-opw-kinematics (Rust), which give all their solutions, limits not
regarded; ssik (C++), which has the UR5, Panda and iiwa built in, with their own hands, and is asked for one solution
within limits.  pink and mink are steps of differential kinematics, a quadratic program each, and slower than the
pinocchio loop by that program.
"""

import os

os.environ.update({name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")})

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import linkwise as lw

TOLERANCE, BATCH = 1e-8, 1024
BATCHES = 20  # of linkwise, each of other poses, in a turn
#: LBR iiwa 14: positions and roll-pitch-yaw of its joints (multiples of half a turn), and their limits.
IIWA = (
    ((0, 0, 0.1575), (0, 0, 0), 2.96706),
    ((0, 0, 0.2025), (0.5, 0, 1), 2.0944),
    ((0, 0.2045, 0), (0.5, 0, 1), 2.96706),
    ((0, 0, 0.2155), (0.5, 0, 0), 2.0944),
    ((0, 0.1845, 0), (-0.5, 1, 0), 2.96706),
    ((0, 0, 0.2155), (0.5, 0, 0), 2.0944),
    ((0, 0.081, 0), (-0.5, 1, 0), 3.05433),
)


def iiwa_urdf() -> str:
    """The arm as URDF; inertias do not matter here."""
    inertia = '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    parts = ['<robot name="iiwa14"><link name="link0"/>']
    for k, (xyz, halves, limit) in enumerate(IIWA, 1):
        origin = f'xyz="{" ".join(map(str, xyz))}" rpy="{" ".join(str(x * np.pi) for x in halves)}"'
        parts.append(
            f'<link name="link{k}"><inertial><mass value="1"/>{inertia}</inertial></link>'
            f'<joint name="joint{k}" type="revolute"><parent link="link{k - 1}"/><child link="link{k}"/>'
            f'<origin {origin}/><axis xyz="0 0 1"/>'
            f'<limit lower="{-limit}" upper="{limit}" velocity="1.7" effort="200"/></joint>'
        )
    parts.append(
        '<link name="tool"/><joint name="flange" type="fixed"><parent link="link7"/><child link="tool"/>'
        '<origin xyz="0 0 0.045"/></joint></robot>'
    )
    return "".join(parts)


def robots() -> dict[str, tuple[Path, str, str]]:
    """File, frame of the hand and base link of each arm; those of the package example-robot-data, if installed."""
    import pinocchio

    folder = Path(os.environ.get("ROBOTS") or Path(pinocchio.__file__).parents[4] / "share/example-robot-data/robots")
    own = Path(tempfile.mkdtemp())
    iiwa, kuka = own / "iiwa.urdf", own / "kuka.urdf"
    iiwa.write_text(iiwa_urdf())
    kuka.write_text(kuka_urdf())
    return {
        "ur5": (folder / "ur_description/urdf/ur5_robot.urdf", "tool0", "base_link"),
        "panda": (folder / "panda_description/urdf/panda.urdf", "panda_hand", "panda_link0"),
        "iiwa": (iiwa, "tool", "link0"),
        "talos": (folder / "talos_data/robots/talos_left_arm.urdf", "gripper_left_base_link", "arm_left_1_link"),
        "kuka": (kuka, "tool", "link0"),
    }


#: An arm with a spherical wrist as industry has many: a1, a2, c1, c2, c3, c4 of Brandstoetter, Angerer, Hofbaur (2014).
KUKA = (0.4, -0.25, 0.81, 1.0, 0.82, 0.19)


def kuka_urdf() -> str:
    """Joints 1, 4, 6 along z, the others along y, upright at zero."""
    a1, a2, c1, c2, c3, c4 = KUKA
    parts = ['<robot name="kuka"><link name="link0"/>']
    ways = ((0, 0, 0), (a1, 0, c1), (0, 0, c2), (a2, 0, 0), (0, 0, c3), (0, 0, 0))
    for k, (way, axis) in enumerate(zip(ways, "001 010 010 001 010 001".split(), strict=True), 1):
        parts.append(
            f'<link name="link{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" '
            f'iyz="0"/></inertial></link><joint name="joint{k}" type="revolute"><parent link="link{k - 1}"/>'
            f'<child link="link{k}"/><origin xyz="{" ".join(map(str, way))}"/><axis xyz="{" ".join(axis)}"/>'
            '<limit lower="-2.9" upper="2.9" velocity="2" effort="200"/></joint>'
        )
    parts.append(
        '<link name="tool"/><joint name="flange" type="fixed"><parent link="link6"/><child link="tool"/>'
        f'<origin xyz="0 0 {c4}"/></joint></robot>'
    )
    return "".join(parts)


class Arm:
    """A robot, its joints from the base to the hand, and how answers are judged."""

    def __init__(self, file: Path, frame: str, base: str):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.MechanismWarning)
            self.mech = lw.load(file)
        self.file, self.frame, self.base = file, frame, base
        self.bodies = [self.mech.bodies[i] for i in self.mech.tree.path(self.mech.frame(frame).body)]
        self.places = [self.mech.q_index(body.joint).start for body in self.bodies]
        self.lower, self.upper = self.mech.limits.lower[self.places], self.mech.limits.upper[self.places]

    def poses(self, count: int, seed: int) -> np.ndarray:
        q, _ = lw.random_state(self.mech, np.random.default_rng(seed), (count,), within_limits=True)
        return lw.frame_pose(self.mech, q, self.frame)

    def solved(self, poses: np.ndarray, answers: np.ndarray) -> np.ndarray:
        """(n,) of bool: answers (n, joints) that meet poses (n, 4, 4), within the limits."""
        q = np.tile(self.mech.initial, (len(poses), 1))
        q[:, self.places] = answers
        reached = lw.frame_pose(self.mech, np.nan_to_num(q), self.frame)
        way = lw.kinematics.se3.inverse(poses) @ reached
        off = np.maximum(
            np.linalg.norm(way[:, :3, 3], axis=-1), np.linalg.norm(lw.kinematics.so3.log(way[:, :3, :3]), axis=-1)
        )
        within = ((answers >= self.lower - 1e-12) & (answers <= self.upper + 1e-12)).all(axis=-1)
        return (off <= 1.01 * TOLERANCE) & within


# -- peers: a function from an arm to one from poses (n, 4, 4) to answers (n, joints), or None; the answers of closed
# forms are chosen from all their solutions after the time is taken --------------------------------------------------


def roboticstoolbox(arm: Arm):
    import roboticstoolbox as rtb

    chain = rtb.ETS()
    for body in arm.bodies:
        fixed = lw.pose(body.position, matrix=body.rotation)
        axis = np.array(body.kind.axis)
        along = int(np.argmax(np.abs(axis)))
        turn = (rtb.ET.Rx, rtb.ET.Ry, rtb.ET.Rz)[along](flip=bool(axis[along] < 0.0))
        chain = chain * rtb.ET.SE3(fixed) * turn
    hand = arm.mech.frame(arm.frame)
    chain = chain * rtb.ET.SE3(lw.pose(hand.position, matrix=hand.rotation))
    chain.qlim = np.array([arm.lower, arm.upper])
    damping = {"ur5": 0.1, "iiwa": 0.1, "talos": 0.1}.get(arm.name, 1.0)
    return lambda poses: np.array([chain.ik_LM(pose, tol=1e-16, method="chan", k=damping).q for pose in poses])


def tracik(arm: Arm):
    from trac_ik import TracIK

    solver = TracIK(arm.base, arm.frame, str(arm.file), timeout=0.02, epsilon=1e-9)
    rng = np.random.default_rng(0)
    first = lw.frame_pose(arm.mech, arm.mech.initial, arm.base) if arm.base in arm.mech.frames else np.eye(4)

    def run(poses):
        answers = np.full((len(poses), len(arm.places)), np.nan)
        for k, pose in enumerate(lw.kinematics.se3.inverse(first) @ poses):
            found = solver.ik(pose[:3, 3], pose[:3, :3], rng.uniform(arm.lower, arm.upper))
            if found is not None:
                answers[k] = found
        return answers

    return run


def eaik(arm: Arm):
    import eaik.pybindings.EAIK as EAIK

    if len(arm.places) != 6:
        return None  # closed forms of six joints only
    axes, shifts, hand = axes_and_shifts(arm)
    robot = EAIK.Robot(axes.T, shifts.T, hand[:3, :3], [], True)
    if not robot.has_known_decomposition():
        return None

    return lambda poses: robot.calculate_IK_batched(list(poses), 1)


def axes_and_shifts(arm: Arm):
    """(6, 3) directions, (7, 3) from each joint to the next, and the pose of the hand, all at zero."""
    mech, zero = arm.mech, lw.neutral(arm.mech)
    links = lw.link_poses(mech, zero)
    axes, shifts, last = [], [], np.zeros(3)
    for body in arm.bodies:
        link = links[mech.body_index(body.joint)]
        axes.append(link[:3, :3] @ np.array(body.kind.axis))
        shifts.append(link[:3, 3] - last)
        last = link[:3, 3]
    hand = lw.frame_pose(mech, zero, arm.frame)
    return np.array(axes), np.array([*shifts, hand[:3, 3] - last]), hand


def ik_geo(arm: Arm):
    from ik_geo import Robot

    kinds = {"ur5": Robot.three_parallel_two_intersecting, "kuka": Robot.spherical_two_parallel}
    if arm.name not in kinds:
        return None
    axes, shifts, hand = axes_and_shifts(arm)
    if arm.name == "kuka":  # it wants the joints of the wrist where their axes meet
        shifts[3], shifts[4] = shifts[3] + shifts[4], 0.0
    robot = kinds[arm.name](axes.tolist(), shifts.tolist())

    def run(poses):
        rotations = (hand[:3, :3] @ poses[:, :3, :3].swapaxes(1, 2)).tolist()  # by columns
        found = [robot.get_ik(*one) for one in zip(rotations, poses[:, :3, 3].tolist(), strict=True)]
        return [[q for q, is_least_squares in one if not is_least_squares] for one in found]

    return run


def opw(arm: Arm):
    from py_opw_kinematics import KinematicModel, Robot

    if arm.name != "kuka":
        return None
    a1, a2, c1, c2, c3, c4 = KUKA
    robot = Robot(KinematicModel(a1=a1, a2=a2, c1=c1, c2=c2, c3=c3, c4=c4), degrees=False)
    inner = robot._robot  # its own function is slower: it takes SciPy's transforms apart
    assert np.allclose(robot.forward((0.1,) * 6).as_matrix(), lw.frame_pose(arm.mech, np.full(6, 0.1), arm.frame))
    return lambda poses: [inner.inverse(pose, None, None) for pose in poses]


def ssik(arm: Arm):
    from importlib import import_module

    names = {"ur5": "ur5_ik", "panda": "franka_panda_ik", "iiwa": "iiwa14_ik"}
    if arm.name not in names:
        return None
    solver = import_module(f"ssik.prebuilt.{names[arm.name]}")
    rng = np.random.default_rng(0)
    own = [np.array(solver.fk(rng.uniform(arm.lower, arm.upper))) for _ in range(100)]

    def run(poses):  # those of its own hand; it checks its solutions
        found = [solver.solve(pose, max_solutions=1) for pose in own[: len(poses)]]
        return np.array([bool(one) and one[0].fk_residual < TOLERANCE for one in found])

    return run


def chosen(arm: Arm, poses: np.ndarray, solutions) -> np.ndarray:
    """Of all solutions, as formulas give them, one that is within the limits, and meets the pose, if there is one."""
    answers = np.full((len(poses), len(arm.places)), np.nan)
    for k, found in enumerate(solutions):
        q = np.asarray(found.Q) if hasattr(found, "Q") else np.array(found)
        good = np.flatnonzero(arm.solved(np.tile(poses[k], (len(q), 1, 1)), q)) if len(q) else ()
        if len(good):
            answers[k] = q[good[0]]
    return answers


def pinocchio_loop(arm: Arm):
    """Damped least squares with restarts, as Pinocchio's own example has it."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(arm.file))
    data, frame = model.createData(), model.getFrameId(arm.frame)
    rng = np.random.default_rng(0)
    columns = [model.joints[model.getJointId(body.joint)].idx_v for body in arm.bodies]
    places = [model.joints[model.getJointId(body.joint)].idx_q for body in arm.bodies]

    def one(pose):
        wanted = pin.SE3(pose[:3, :3], pose[:3, 3])
        for _ in range(20):
            q = pin.neutral(model)
            q[places] = rng.uniform(arm.lower, arm.upper)
            for _ in range(30):
                pin.framesForwardKinematics(model, data, q)
                error = pin.log6(data.oMf[frame].actInv(wanted)).vector
                if np.linalg.norm(error) < TOLERANCE:
                    return q[places]
                jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL)[:, columns]
                damped = jacobian @ jacobian.T + 0.05 * (error @ error) * np.eye(6)
                q[places] = np.clip(q[places] + jacobian.T @ np.linalg.solve(damped, error), arm.lower, arm.upper)
        return np.full(len(places), np.nan)

    return lambda poses: np.array([one(pose) for pose in poses])


def ikpy(arm: Arm):
    from ikpy.chain import Chain

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chain = Chain.from_urdf_file(str(arm.file), base_elements=[arm.base], last_link_vector=None)
    names = [link.name for link in chain.links]
    places = [names.index(body.joint) for body in arm.bodies]
    if names[-1] not in (arm.frame, *names[-1:]):
        return None

    def run(poses):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.array([chain.inverse_kinematics_frame(p, orientation_mode="all")[places] for p in poses])

    return run


PEERS = {  # and how many poses they are timed with
    "roboticstoolbox ik_LM": (roboticstoolbox, 500),
    "TRAC-IK (pytracik)": (tracik, 100),
    "EAIK (closed form)": (eaik, BATCH),
    "ik_geo (closed form)": (ik_geo, BATCH),
    "OPW (closed form)": (opw, BATCH),
    "ssik": (ssik, 100),
    "pinocchio loop": (pinocchio_loop, 50),
    "ikpy": (ikpy, 5),
}


def ours(arm: Arm):
    def run(poses):
        parts = np.split(poses, range(BATCH, len(poses), BATCH))
        found = [lw.inverse_kinematics(arm.mech, {arm.frame: part}, tolerance=TOLERANCE).q for part in parts]
        return np.concatenate(found)[:, arm.places]

    return run


def timed(run, poses: np.ndarray) -> tuple[float, np.ndarray]:
    start = time.process_time()
    answers = run(poses)
    return time.process_time() - start, answers


def compare(name: str, arm: Arm, poses: int, repeats: int) -> None:
    arm.name = name
    lw.codegen.set_num_threads(1)
    runs, batches = {"linkwise": ours(arm)}, {"linkwise": arm.poses(BATCHES * BATCH, 1)}
    for peer, (make, count) in PEERS.items():
        try:
            run = make(arm)
        except Exception as error:  # not installed, or not for this robot: say so and go on
            print(f"  {peer}: not measured ({type(error).__name__}: {str(error)[:80]})")
            continue
        if run is None:
            print(f"  {peer}: not for this arm")
            continue
        runs[peer], batches[peer] = run, arm.poses(count, 1)
    runs["linkwise"](batches["linkwise"])  # compile
    best: dict[str, float] = {}
    share: dict[str, float] = {}
    for _ in range(repeats):
        for one, run in runs.items():
            seconds, answers = timed(run, batches[one])
            answers = chosen(arm, batches[one], answers) if isinstance(answers, list) else answers
            judged = answers.dtype == bool  # by itself
            good = answers if judged else arm.solved(batches[one][: len(answers)], answers)
            best[one] = max(best.get(one, 0.0), good.sum() / seconds)
            share[one] = good.mean()
    many = arm.poses(poses, 2)
    good = arm.solved(many, runs["linkwise"](many))
    print(
        f"  linkwise: {good.sum()} of {poses} poses solved to {TOLERANCE:g} within limits ({100 * good.mean():.2f} %)"
    )
    for one in sorted(best, key=best.get, reverse=True):
        if not best[one]:
            print(f"  {one}: none of its answers meets a pose, and it is not counted")
            continue
        ratio = best["linkwise"] / best[one]
        print(
            f"  {one:24s} {best[one]:10,.0f} solves/s  {100 * share[one]:6.1f} % solved  linkwise is {ratio:6.1f} times"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--poses", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--robots", default="ur5,panda,iiwa,talos,kuka")
    options = parser.parse_args()
    known = robots()
    for name in options.robots.split(","):
        print(name)
        compare(name, Arm(*known[name]), options.poses, options.repeats)


if __name__ == "__main__":
    main()
