"""Pictures: mechanisms, a motion as a strip, over time and as an animation, eigenvalues, responses and modes.

python examples/11_pictures.py [folder for pictures]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")


def all_kinds_of_joints() -> lw.Mechanism:
    """Short arms, each on the ground by a joint of another kind."""
    kinds = {
        "revolute": lw.Revolute((0, 1, 0)),
        "prismatic": lw.Prismatic((1, 0, 1)),
        "helical": lw.Helical((0, 1, 0), 0.02),
        "cylindrical": lw.Cylindrical((1, 0, 1)),
        "universal": lw.Universal((1, 0, 0), (0, 1, 0)),
        "pin_in_slot": lw.PinInSlot((1, 0, 0), (0, 1, 0)),
        "spherical": lw.Spherical(),
        "planar": lw.Planar((0, 0, 1)),
        "floating": lw.Floating(),
    }
    builder = lw.Builder()
    for i, (name, kind) in enumerate(kinds.items()):
        builder.link(name, 1.0, (0.05, 0.0, 0.08), (0.002, 0.002, 0.001))
        builder.joint(name, kind, "ground", name, (0.6 * (i // 5), 0.35 * (i % 5), 0.0))
    return builder.build("all_kinds")


def drawings() -> None:
    lw.viewer.draw(lw.mechanisms.loader(), path=picture("loader"))
    lw.viewer.draw(lw.mechanisms.stewart_platform(), path=picture("platform"), elevation=25.0, azimuth=-50.0)
    joints = all_kinds_of_joints()
    q = lw.neutral(joints)
    q[joints.q_index("prismatic")] = 0.1
    q[joints.q_index("cylindrical")] = 0.4, 0.1
    q[joints.q_index("pin_in_slot")] = 0.05, 0.4
    lw.viewer.draw(
        joints, q, path=picture("joints"), labels=True, masses=False, ticks=False, symbols=1.3, azimuth=-20.0
    )


def on_the_floor() -> None:
    robot = lw.mechanisms.quadruped(held=())
    for leg in ("front_left", "front_right", "rear_left", "rear_right"):
        robot = robot.with_shape(f"{leg}_foot", f"{leg}_toe", "sphere", 0.02)
    robot = robot.with_shape("belly", "trunk", "box", (0.2, 0.1, 0.05)).with_ground(-0.02)
    lw.viewer.draw(robot, path=picture("floor"), axes=False)


def motion() -> None:
    pendulum = lw.mechanisms.double_pendulum()
    swing = lw.simulate(pendulum, [2.0, 0.5], [0.0, 0.0], 5.0)
    print(f"{swing}: energy kept to {np.abs(swing.energy - swing.energy[0]).max():.0e} J")
    swing.plot(picture("motion"))
    lw.viewer.snapshots(pendulum, swing, path=picture("snapshots"), count=7, trail="lower")
    with tempfile.TemporaryDirectory() as folder:
        animation = lw.viewer.animate(swing, path=Path(folder) / "swing.gif", fps=10.0, trail="lower", dpi=60)
        with Image.open(animation) as frames:
            print(f"an animation of {frames.n_frames} frames, {animation.stat().st_size // 1024} KiB")


def linear_models() -> None:
    pendulum = lw.mechanisms.double_pendulum()
    model = lw.linearize(pendulum, [0.0, 0.0], [0.0, 0.0])
    lw.viewer.plot_modes(model, path=picture("modes"))
    lw.viewer.plot_bode(model, input="shoulder", path=picture("bode"))
    upright = lw.linearize(pendulum, [np.pi, 0.0], [0.0, 0.0])
    lw.viewer.plot_eigenvalues({"hanging": model, "upright": upright}, path=picture("eigenvalues"))
    turned = np.sort_complex(1j * model.eigenvalues()) - np.sort_complex(upright.eigenvalues())
    print(f"upright, frequencies become rates: {np.abs(turned).max():.0e}")


def picture(name: str) -> Path:
    path = FOLDER / f"11_{name}.png"
    print(f"picture: {path}")
    return path


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    drawings()
    on_the_floor()
    motion()
    linear_models()
