"""On the ground: a quadruped is dropped and stands, and slopes that its feet hold it on or do not.

python examples/17_on_the_ground.py [folder for pictures]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
LEGS = ("front_left", "front_right", "rear_left", "rear_right")
STEP = 1e-3


def quadruped(friction: float = 0.8) -> lw.Mechanism:
    """A trunk on four legs, whose feet are balls."""
    mech = lw.mechanisms.quadruped(held=())
    for leg in LEGS:
        mech = mech.with_shape(f"{leg}_foot", f"{leg}_toe", "sphere", 0.02)
    return mech.with_ground(-0.02, friction=friction)


def gains(mech: lw.Mechanism) -> dict:
    """Feedback that holds the legs as they are at the neutral configuration."""
    joints = mech.joint_names[1:]
    return {"target": lw.neutral(mech), "kp": dict.fromkeys(joints, 150.0), "kd": dict.fromkeys(joints, 4.0)}


def dropped(mech: lw.Mechanism) -> tuple[np.ndarray, np.ndarray]:
    q = lw.neutral(mech)
    q[:4] = [np.cos(0.1), 0.0, np.sin(0.1), 0.0]  # nose down
    q[6] += 0.25
    return lw.rollout(mech, q, None, None, STEP, 3000, "semi_implicit", feedback=gains(mech))


def slid(friction: float, slopes: np.ndarray) -> np.ndarray:
    """How far it slides within two seconds on slopes, all of them at once: gravity is an input, the same code."""
    mech = quadruped(friction)
    gravity = 9.81 * np.column_stack([np.sin(slopes), 0.0 * slopes, -np.cos(slopes)])
    q, _ = lw.rollout(
        mech, None, None, None, STEP, 2000, "semi_implicit",
        feedback=gains(mech), parameters={"gravity": gravity}, final_only=True,
    )  # fmt: skip
    return q[:, 4]


def main() -> None:
    mech = quadruped()
    q, v = dropped(mech)
    points = lw.contact.contact_points(mech, q, v)
    weight = 9.81 * mech.parameters.masses.sum()
    share = points.force[-1, :, 2].sum() / weight
    height = lw.frame_pose(mech, q[-1], "trunk")[2, 3] + 0.02
    print(f"{mech}: stands {height:.3f} m above the floor, its feet bear {share:.3f} of its weight")
    across = np.linalg.norm(points.force[..., :2], axis=-1)
    print("friction within its cone:", bool((across <= 0.8 * points.force[..., 2] + 1e-9).all()))
    still, some = np.zeros(mech.nv), slice(0, None, 100)
    by_wrenches = lw.forward_dynamics(
        mech, q[some], v[some], still, lw.contact.contact_wrenches(mech, q[some], v[some])
    )
    difference = np.abs(lw.forward_dynamics(mech, q[some], v[some], still, forces="all") - by_wrenches).max()
    print(f"accelerations under what acts and under the wrenches of contact: {difference:.0e} apart")

    figure = pyplot.figure(figsize=(11, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    chosen = q[[0, 150, 250, 3000]]
    lw.viewer.snapshots(mech, chosen, np.arange(4.0), ax=left, count=4, view="xz", title="dropped")
    left.axhline(-0.02, color="0.4", linewidth=1.0)
    time = STEP * np.arange(len(q))
    for leg, force in zip(LEGS, points.force[..., 2].T, strict=True):
        middle.plot(time, force, label=leg.replace("_", " "), linewidth=1.0)
    middle.axhline(weight / 4.0, color="0.6", linestyle=":", linewidth=1.0)
    middle.set(title="forces on the feet", xlabel="t (s)", ylabel="N", ylim=(0.0, 6.0 * weight / 4.0))
    middle.legend(fontsize=7)
    slopes = np.radians(np.linspace(0.0, 24.0, 49))
    for friction in (0.15, 0.25, 0.35):
        right.plot(np.degrees(slopes), slid(friction, slopes), label=f"friction {friction:g}")
        right.axvline(np.degrees(np.arctan(friction)), color="0.6", linestyle=":", linewidth=1.0)
    right.set(title="slid within 2 s", xlabel="slope (degrees)", ylabel="m", ylim=(-0.05, 2.0))
    right.legend(fontsize=7)
    FOLDER.mkdir(exist_ok=True, parents=True)
    path = FOLDER / "17_on_the_ground.png"
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
