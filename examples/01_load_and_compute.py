"""Load an arm, compute its dynamics for one state and for many, and draw another arm in a few poses.

python examples/01_load_and_compute.py [folder for pictures]
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
DARK, BLUE, ORANGE, GREEN = "#333333", "#0072B2", "#D55E00", "#009E73"  # told apart by colour-blind readers too

ARM = """
<robot name="three_joints">
  <link name="base"/>
  <link name="column">
    <inertial> <origin xyz="0 0 0.15"/> <mass value="4.0"/>
      <inertia ixx="0.04" iyy="0.04" izz="0.02" ixy="0" ixz="0" iyz="0"/> </inertial>
  </link>
  <link name="upper_arm">
    <inertial> <origin xyz="0.2 0 0"/> <mass value="2.0"/>
      <inertia ixx="0.002" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/> </inertial>
  </link>
  <link name="forearm">
    <inertial> <origin xyz="0.15 0 0"/> <mass value="1.0"/>
      <inertia ixx="0.001" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/> </inertial>
  </link>
  <link name="tool">
    <inertial> <mass value="0.2"/> <inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/> </inertial>
  </link>
  <joint name="turn" type="continuous"> <parent link="base"/> <child link="column"/> <axis xyz="0 0 1"/> </joint>
  <joint name="lift" type="continuous">
    <origin xyz="0 0 0.3"/> <parent link="column"/> <child link="upper_arm"/> <axis xyz="0 1 0"/>
  </joint>
  <joint name="bend" type="continuous">
    <origin xyz="0.4 0 0"/> <parent link="upper_arm"/> <child link="forearm"/> <axis xyz="0 1 0"/>
  </joint>
  <joint name="mount" type="fixed"> <origin xyz="0.3 0 0"/> <parent link="forearm"/> <child link="tool"/> </joint>
</robot>
"""


def one_state(mech: lw.Mechanism) -> None:
    """The usual quantities at one state, as a table."""
    q, v, a = np.array([0.3, -0.5, 0.8]), np.array([0.1, 0.4, -0.2]), np.array([0.0, 1.0, 0.5])
    tau = lw.inverse_dynamics(mech, q, v, a)
    columns = {
        "q [rad]": q,
        "v [rad/s]": v,
        "a [rad/s2]": a,
        "tau [N m]": tau,
        "gravity [N m]": lw.gravity_force(mech, q),
        "M diagonal [kg m2]": np.diag(lw.mass_matrix(mech, q)),
    }
    print(f"{'joint':10}" + "".join(f"{title:>20}" for title in columns))
    for i, joint in enumerate(mech.joint_names):
        print(f"{joint:10}" + "".join(f"{values[i]:20.4f}" for values in columns.values()))
    back = lw.forward_dynamics(mech, q, v, tau)
    print(f"forward dynamics of tau gives a back; largest difference {np.abs(back - a).max():.1e} rad/s2")
    print("tool position in the world [m]:", lw.frame_pose(mech, q, "tool")[:3, 3].round(4))
    print("Jacobian of the tool, world axes at the tool, angular rows first:")
    print(lw.jacobian(mech, q, "tool", frame="world_aligned").round(4))


def many_states(mech: lw.Mechanism, states: int = 20_000) -> None:
    """The same calls on a batch, compiled and interpreted."""
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (states,))
    tau = rng.normal(size=v.shape)
    compiled = lw.compile("forward_dynamics", mech)
    interpreted = lw.compile("forward_dynamics", mech, target="numpy")
    difference = np.abs(compiled(q, v, tau) - interpreted(q, v, tau)).max()
    print(f"\n{mech.name}: forward dynamics of {states} states, {lw.codegen.get_num_threads()} threads allowed")
    for name, kernel in (("compiled", compiled), ("NumPy interpreter", interpreted)):
        seconds = min(_seconds(kernel, q, v, tau) for _ in range(3))
        print(f"  {name:18} {seconds * 1e9 / states:8.1f} ns per state")
    print(f"  largest difference {difference:.1e} rad/s2")


def _seconds(kernel: lw.Kernel, *arrays: np.ndarray) -> float:
    start = time.perf_counter()
    kernel(*arrays)
    return time.perf_counter() - start


def draw_poses(mech: lw.Mechanism, poses: dict[str, np.ndarray], path: Path) -> None:
    """Stick figures from the origins of the link frames."""
    figure = plt.figure(figsize=(13, 5))
    for number, (name, q) in enumerate(poses.items(), 1):
        axes = figure.add_subplot(1, len(poses), number, projection="3d")
        joints = np.vstack([np.zeros(3), lw.link_poses(mech, q)[:, :3, 3]])
        hand = lw.frame_pose(mech, q, "frame6")
        finger = hand[:3, 3] + 0.12 * hand[:3, 2]
        stand = np.array([[0, 0, -0.6], [0, 0, 0]])
        axes.plot(*stand.T, color="0.75", linewidth=11, solid_capstyle="butt", label="pedestal (not modelled)")
        axes.plot(*joints.T, color=BLUE, linewidth=3.5, solid_joinstyle="round", label="links")
        axes.plot(*joints[1:].T, "o", color=DARK, markersize=4.5, label="joints")
        axes.plot(*np.stack([hand[:3, 3], finger]).T, color=ORANGE, linewidth=3, label="z axis of the flange")
        mass_centre = lw.center_of_mass(mech, q)
        axes.plot(*mass_centre[:, None], "D", color=GREEN, markersize=6, label="centre of mass")
        axes.set(xlim=(-0.4, 1.0), ylim=(-0.5, 0.5), zlim=(-0.6, 1.0), xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
        axes.set_box_aspect((1.4, 1.0, 1.6), zoom=1.02)
        axes.view_init(elev=18, azim=-62)
        axes.tick_params(labelsize=7, pad=0)
        axes.set(xticks=(0, 0.5, 1.0), yticks=(-0.4, 0, 0.4), zticks=(-0.5, 0, 0.5, 1.0))
        torque = lw.gravity_force(mech, q)[1]
        axes.set_title(f"{name}\nholding torque of joint 2: {torque:.1f} N m", fontsize=10, y=1.04)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False, fontsize=9)
    figure.subplots_adjust(left=0.0, right=0.97, top=0.9, bottom=0.1, wspace=0.1)
    figure.savefig(path, dpi=150, bbox_inches="tight", pad_inches=0.15)
    plt.close(figure)
    print(f"picture: {path}")


if __name__ == "__main__":
    arm = lw.load(ARM)
    print(arm)
    one_state(arm)
    puma = lw.mechanisms.puma560()
    many_states(puma)
    quarter = np.pi / 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw_poses(
        puma,
        {
            "zero": np.zeros(6),
            "ready": np.array([0, quarter, -quarter, 0, 0, 0]),
            "stretched": np.array([0, 0, -quarter, 0, 0, 0]),
            "nominal": np.array([0, quarter / 2, -2 * quarter, 0, quarter / 2, 0]),
        },
        FOLDER / "01_puma_poses.png",
    )
